"""Tables of the site: what the paper printed stands small below our figure, and short cells stay on one line."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

PRINTED = re.compile(r"(.+) \((paper .+)\)", re.DOTALL)
SHORT = 12  # letters


def mark_cells(app: Sphinx, doctree: nodes.document) -> None:
    """Mark the cells of all tables for the style sheet."""
    for cell in doctree.findall(nodes.entry):
        if len(cell.astext()) <= SHORT:
            cell["classes"].append("short")
        for text in list(cell.findall(nodes.Text)):
            if found := PRINTED.fullmatch(str(text)):
                ours, printed = found.groups()
                text.parent.replace(text, [nodes.Text(ours), nodes.inline("", printed, classes=["printed"])])


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx."""
    app.connect("doctree-read", mark_cells)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
