"""How `Pairs` look in a notebook: counts, and a table of the first answers, in the notebook's own colours."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

Row = tuple[int, int, bool, float, str]  # the two rows, the answer, its weight, where it was said
N_ROWS = 8  # of the table

# Inherited text and see-through greys can be read on any page. No ink can be read on white and on dark grey alike, so
# it is only in the dots before the words: there, a contrast of 3 is enough.
_BOX = "display:inline-block;border:1px solid rgba(128,128,128,.35);border-radius:8px;padding:.6em .9em"
_SOFT = "opacity:.65"
_CELL = "white-space:nowrap;padding:.15em .9em .15em 0;text-align:left;background:none;border:0"
_INK = {"same": "#15865c", "different": "#c75014", "contradicted": "#dd3137"}


def notebook_table(
    *,
    n_same: int,
    n_different: int,
    n_points: int,
    n_conflicts: int | None,
    rows: Sequence[Row],
) -> str:
    """A box with the counts and the first answers; everything is escaped."""
    n_pairs = n_same + n_different
    head = f"<strong>{n_pairs:,} answer{'' if n_pairs == 1 else 's'}</strong> about {n_points:,} rows"
    kinds = {"same": n_same, "different": n_different} | ({"contradicted": n_conflicts} if n_conflicts else {})
    counts = " ".join(f'<span style="margin-right:.6em">{_marked(kind, f"{n:,} ")}</span>' for kind, n in kinds.items())
    body = _table(rows) if rows else ""
    more = f'<div style="{_SOFT}">… and {n_pairs - len(rows):,} more</div>' if n_pairs > len(rows) else ""
    return f'<div style="{_BOX}"><div>{head}</div><div>{counts}</div>{body}{more}</div>'


def _table(rows: Sequence[Row]) -> str:
    """The answers; weights only where they differ."""
    weighted = any(weight != 1 for _, _, _, weight, _ in rows)
    names = ["row", "row", "answer", *(["weight"] if weighted else []), "given as"]
    head = "".join(f'<th style="{_CELL};{_SOFT};font-weight:normal">{name}</th>' for name in names)
    lines = []
    for a, b, same, weight, where in rows:
        answer = _marked("same" if same else "different")
        cells = [f"{a}", f"{b}", answer, *([f"{weight:g}"] if weighted else []), escape(where)]
        lines.append("<tr>" + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells) + "</tr>")
    style = "color:inherit;font:inherit;border-collapse:collapse;border:0;margin:.5em 0 .2em"
    return f'<table style="{style}"><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table>'


def _marked(kind: str, before: str = "") -> str:
    """A word behind a dot in its colour."""
    return f'<span style="color:{_INK[kind]}" aria-hidden="true">●</span> {before}{kind}'
