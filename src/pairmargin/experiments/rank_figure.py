"""The critical-difference diagram of a leaderboard (Demšar 2006): mean ranks on a line, bars over what chance may do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from .figures import INKS, STYLES, inline, look, write_files
from .leaderboard import Leaderboard, cliques
from .specs import LABELS, METHODS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

WIDTH, ROW = 8.0, 0.24  # inches


def save(board: Leaderboard, folder: Path) -> list[Path]:
    """Write the diagram as ``ranks.png`` and ``ranks.pdf``."""
    with look():
        return write_files(_canvas(board), folder, "ranks")


def svg(board: Leaderboard) -> str:
    """The diagram for a page."""
    with look():
        return inline(_canvas(board), "ranks")


def describe(board: Leaderboard) -> str:
    """What those read who cannot see it."""
    ranks = "; ".join(f"{LABELS[method]} {rank:.1f}" for method, rank in board.mean_ranks.items())
    return f"Mean ranks, 1 is best: {ranks}. Ranks closer than {board.critical_difference:.1f} may differ by chance."


def _canvas(board: Leaderboard) -> Canvas:
    from matplotlib.figure import Figure as Canvas

    ranks = board.mean_ranks
    n_rows = (len(ranks) + 1) // 2
    bars = cliques(ranks, board.critical_difference)
    depth = n_rows + 1 + 0.5 * len(bars)  # in rows, under the line
    canvas = Canvas(figsize=(WIDTH, ROW * (depth + 3)))
    axes = canvas.add_axes((0, 0, 1, 1), xlim=(0, 1), ylim=(-depth, 3))
    axes.axis("off")
    left, right = 0.3, 0.7  # the line itself; labels stand on both sides of it

    def place(rank: float) -> float:
        return left + (rank - 1) / (len(ranks) - 1 or 1) * (right - left)

    axes.plot([left, right], [0, 0], color=INKS["soft"], linewidth=1)
    for rank in range(1, len(ranks) + 1):
        axes.plot([place(rank)] * 2, [0, 0.3], color=INKS["soft"], linewidth=1)
        axes.text(place(rank), 0.5, str(rank), ha="center", va="bottom", fontsize=8, color=INKS["soft"])
    end = min(1 + board.critical_difference, len(ranks))
    axes.plot([left, place(end)], [2.0, 2.0], color=INKS["text"], linewidth=2)
    axes.text(left - 0.01, 2.0, "may be chance", ha="right", va="center", fontsize=8, color=INKS["soft"])
    for number, (first, last) in enumerate(bars):
        y = -0.5 - 0.5 * number
        axes.plot([place(ranks[first]) - 0.004, place(ranks[last]) + 0.004], [y, y], color=INKS["text"], linewidth=2.5)
    _names(axes, ranks, place_of={m: place(r) for m, r in ranks.items()}, top=-1 - 0.5 * len(bars), ends=(left, right))
    return canvas


def _names(axes: Axes, ranks: pd.Series, place_of: dict[str, float], top: float, ends: tuple[float, float]) -> None:
    """Every method on a row of its own, the better half on the left from the top, the others on the right."""
    half = (len(ranks) + 1) // 2
    for order, (method, rank) in enumerate(ranks.items()):
        on_left = order < half
        y = top - (order if on_left else len(ranks) - 1 - order)
        end = ends[0] - 0.02 if on_left else ends[1] + 0.02
        ours = method in METHODS and METHODS[method].kind == "ours"
        ink = STYLES[method].colour if ours and method in STYLES else INKS["text"]
        axes.plot([place_of[method]] * 2 + [end], [0, y, y], color=ink, linewidth=1.8 if ours else 0.8)
        name = f"{LABELS[method]}  {rank:.1f}" if on_left else f"{rank:.1f}  {LABELS[method]}"
        weight = "bold" if ours else "normal"
        axes.text(
            end + (-0.01 if on_left else 0.01),
            y,
            name,
            ha="right" if on_left else "left",
            va="center",
            fontsize=8.5,
            color=ink,
            fontweight=weight,
        )
