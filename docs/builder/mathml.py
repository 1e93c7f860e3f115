"""Equations as MathML, made while the site is built: no script, no fonts from elsewhere, and they follow the theme.

The number of an equation is the paper's, given by ``\\tag{8a}``, and not counted.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

TAG = re.compile(r"\\tag\{([^}]*)\}")


def inline(translator: Any, node: nodes.math) -> None:
    """An expression in a line."""
    translator.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def block(translator: Any, node: nodes.math_block) -> None:
    """An equation of its own, with its number at the right."""
    tex = node.astext()
    tags = TAG.findall(tex)
    number = f'<span class="number" id="eq-{tags[0]}">({tags[0]})</span>' if tags else ""
    equation = tex2mathml(TAG.sub("", tex).strip(), as_block=True)
    translator.body.append(f'<div class="equation"><div>{equation}</div>{number}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
