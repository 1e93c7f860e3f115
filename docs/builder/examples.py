"""Sphinx runs every page and puts below an example what it gave: text, tables, figures that follow the theme."""

from __future__ import annotations

import io
import re
from html import escape
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pages
from sphinx.application import Sphinx
from sphinx.errors import SphinxError

INK, SOFT, PAPER = "#010203", "#040506", "#fcfdfe"  # stand for colours of the theme until the figure is written
THEME = {
    INK: "var(--color-foreground-primary)",
    SOFT: "var(--color-foreground-border)",
    PAPER: "var(--color-background-primary)",
}
STYLE = {
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "legend.facecolor": PAPER,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "axes.edgecolor": SOFT,
    "legend.edgecolor": SOFT,
    "figure.figsize": (6.4, 4.0),
    "figure.constrained_layout.use": True,
    "font.size": 11,
    "axes.titlesize": 12,
    "svg.fonttype": "none",  # text stays text, in the reader's own font
    "svg.hashsalt": "pairmargin",
}
LONGEST = 24  # lines of text that are shown
FONT = re.compile(r"font-family: [^;\"]*")


def run_page(app: Sphinx, docname: str, source: list[str]) -> None:
    """Replace the text of a page by the text with what its examples gave."""
    page = Path(app.env.doc2path(docname))
    text = source[0]
    with mpl.rc_context(STYLE):
        try:
            done = pages.run(page, text)
        except pages.PageError as error:
            raise SphinxError(str(error)) from error
        parts, end = [], 0
        for piece, output in done:
            parts += [text[end : piece.span[0]], _code(piece, text), *_results(piece, output)]
            end = piece.span[1]
            if piece.picture and not output.figures:  # a picture that is a file
                parts.append(text[piece.code_end : end])
    source[0] = "".join(parts) + text[end:]


def _code(piece: pages.Piece, text: str) -> str:
    if piece.is_hidden:
        return ""
    return re.sub(r"^<!-- not run.*?-->\n+", "", text[piece.span[0] : piece.code_end], flags=re.DOTALL)


def _results(piece: pages.Piece, output: pages.Output) -> list[str]:
    if piece.is_hidden:
        output.text = output.html = ""
    found = []
    if output.text.strip():
        found.append(f"\n\n``````{{code-block}} text\n:class: output\n\n{_shortened(output.text)}\n``````\n")
    if output.html:
        found.append(_raw(f'<div class="output html">{output.html}</div>'))
    if output.figures:
        assert piece.picture is not None
        found.append(_raw(f'<figure class="output">{svg(output.figures[0], piece.picture)}</figure>'))
    return found


def _shortened(text: str) -> str:
    lines = [line if len(line) < 240 else f"{line[:240]} …" for line in text.rstrip().splitlines()]
    if len(lines) <= LONGEST:
        return "\n".join(lines)
    return "\n".join([*lines[: LONGEST - 4], f"… and {len(lines) - LONGEST + 4} more lines"])


def _raw(html: str) -> str:
    return f"\n\n``````{{raw}} html\n{html}\n``````\n"


def svg(figure: Any, words: str) -> str:
    """A figure as part of a page: its text in the page's font, its inks those of the theme."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    drawn = buffer.getvalue()
    drawn = drawn[drawn.index("<svg") :]
    drawn = re.sub(r"<metadata>.*?</metadata>", "", drawn, flags=re.DOTALL)
    for ink, colour in THEME.items():
        drawn = drawn.replace(ink, colour)
    drawn = FONT.sub("font-family: var(--font-stack)", drawn)
    width = float(figure.get_figwidth()) * 100  # pixels at most
    drawn = re.sub(r'<svg (.*?)width="[^"]*" height="[^"]*"', r"<svg \1", drawn, count=1, flags=re.DOTALL)
    return drawn.replace("<svg ", f'<svg role="img" aria-label="{escape(words)}" style="max-width: {width:.0f}px" ', 1)


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx."""
    app.connect("source-read", run_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
