"""The critical-difference diagram of a leaderboard (Demšar 2006): mean ranks on a line, bars for what may be chance."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..looks import INKS
from .figures import STYLES, inline, look, write_files
from .leaderboard import Leaderboard, cliques
from .specs import LABELS, METHODS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

NAME = "ranks"
LINE, ROW, LETTER, GAP = 3.8, 0.24, 0.068, 0.18  # inches: the line, a row, a letter of a name, what parts them
REM = 5.6  # an inch on a page, so that names are as large as small print there, however long they are


def save(board: Leaderboard, folder: Path, name: str = NAME) -> list[Path]:
    """Write the diagram as PNG and PDF."""
    with look():
        return write_files(_canvas(board), folder, name)


def svg(board: Leaderboard, name: str = NAME) -> str:
    """The diagram for a page, on which its name is known once."""
    with look():
        canvas = _canvas(board)
        return inline(canvas, name).replace("<svg ", f'<svg style="width: {REM * canvas.get_figwidth():.1f}rem" ', 1)


def describe(board: Leaderboard) -> str:
    """What those read who cannot see it."""
    ranks = "; ".join(f"{LABELS[method]} {rank:.1f}" for method, rank in board.mean_ranks.items())
    return f"Mean ranks, 1 is best: {ranks}. Ranks closer than {board.critical_difference:.1f} may differ by chance."


def _canvas(board: Leaderboard) -> Canvas:
    from matplotlib.figure import Figure as Canvas

    ranks, bars = board.mean_ranks, cliques(board.mean_ranks, board.critical_difference)
    half = (len(ranks) + 1) // 2
    top = -1 - 0.5 * len(bars)  # the first row of names; all heights are in rows, 0 is the line
    names = [f"{LABELS[method]}  {rank:.1f}" for method, rank in ranks.items()]
    left, right = (2 * GAP + LETTER * max(map(len, side), default=0) for side in (names[:half], names[half:]))
    left = max(left, 1.2)  # for the words beside the critical difference
    height = 3 + half - top
    canvas = Canvas(figsize=(left + LINE + right, ROW * height))
    axes = canvas.add_axes((0, 0, 1, 1), xlim=(-left, LINE + right), ylim=(top - half, 3))  # inches, rows
    axes.axis("off")

    def place(rank: float) -> float:
        return LINE * (rank - 1) / (len(ranks) - 1 or 1)

    _scale(axes, place, len(ranks), board.critical_difference)
    for number, (first, last) in enumerate(bars):
        ends = place(ranks[first]) - 0.03, place(ranks[last]) + 0.03
        axes.plot(ends, [-0.5 - 0.5 * number] * 2, color=INKS["text"], linewidth=2.5)
    for order, (method, rank) in enumerate(ranks.items()):  # the better half on the left from the top, then upwards
        is_left = order < half
        y = top - (order if is_left else len(ranks) - 1 - order)
        _name(axes, method, rank, place(rank), y, end=-GAP if is_left else LINE + GAP)
    return canvas


def _scale(axes: Axes, place: Callable[[float], float], n_ranks: int, critical_difference: float) -> None:
    """The line with its ranks, and above it how far chance reaches."""
    axes.plot([place(1), place(n_ranks)], [0, 0], color=INKS["soft"], linewidth=1)
    for rank in range(1, n_ranks + 1, 1 if n_ranks < 15 else 2):
        axes.plot([place(rank)] * 2, [0, 0.3], color=INKS["soft"], linewidth=1)
        axes.text(place(rank), 0.5, str(rank), ha="center", va="bottom", fontsize=8, color=INKS["soft"])
    reach = place(min(1 + critical_difference, n_ranks))
    axes.plot([place(1), reach], [2.2, 2.2], color=INKS["text"], linewidth=2.5)
    axes.text(-GAP, 2.2, "may be chance", ha="right", va="center", fontsize=8, color=INKS["soft"])


def _name(axes: Axes, method: str, rank: float, x: float, y: float, end: float) -> None:
    """A method at the end of its row, to the left or the right of the line, joined to its place on it."""
    is_left = end < 0
    ours = method in METHODS and METHODS[method].kind == "ours"
    ink = STYLES[method].colour if ours else INKS["text"]
    axes.plot([x, x, end], [0, y, y], color=ink, linewidth=1.8 if ours else 0.8)
    axes.text(
        end + (-0.06 if is_left else 0.06),
        y,
        f"{LABELS[method]}  {rank:.1f}" if is_left else f"{rank:.1f}  {LABELS[method]}",
        ha="right" if is_left else "left",
        va="center",
        fontsize=8.5,
        color=ink,
        fontweight="bold" if ours else "normal",
    )
