"""The settings of the site; `make docs` builds it, and `docs/design/documentation.md` says why so."""

import sys
from pathlib import Path

from pygments.lexers import BashLexer

sys.path.insert(0, str(Path(__file__).parent / "builder"))

from pairmargin import __version__

project = "pairmargin"
author = "The pairmargin developers"
project_copyright = "The pairmargin developers"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc", "examples", "mathml", "cells"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["builder", "static"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
default_role = "py:obj"

autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
autosummary_generate = False

html_theme = "furo"
html_title = "pairmargin"
html_logo = "static/logo.svg"
html_favicon = "static/logo.svg"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#3a45c0", "color-brand-content": "#3a45c0"},
    "dark_css_variables": {"color-brand-primary": "#98a2ff", "color-brand-content": "#98a2ff"},
}
pygments_style = "default"
pygments_dark_style = "github-dark"


def setup(app):
    """Colour commands; leave out the methods that scikit-learn adds to every estimator for metadata routing."""
    app.add_lexer("console", BashLexer)  # commands without a prompt, so that they can be copied
    app.connect("autodoc-skip-member", lambda app, what, name, member, skip, options: skip or name.endswith("_request"))
