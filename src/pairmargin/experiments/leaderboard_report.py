"""The leaderboard as a section of the page, as figures and as a table for the README."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from ..report import Pictures, Section, Table
from . import figures, rank_figure
from .leaderboard import Leaderboard, Place, Standing, comparable
from .specs import BALANCED, EXPERIMENTS, FOREIGN, LABELS, UNIFORM, Cell
from .tables import DATASETS, NBSP, NOTHING, draws_of

PLAN = EXPERIMENTS["leaderboard"]
DEFAULT = "pairmargin"
WIDER = "ranks-other-packages"  # figure of the board on which methods of other packages stand too
N_CURVES = 6  # methods whose curves are drawn
DRAWN = {BALANCED: "Half of the answers are same", UNIFORM: "Answers as they come"}
_DRAWN = {BALANCED: "drawn half same and half different", UNIFORM: "drawn as they come"}
_COLUMNS = ["", "mean rank", "won or tied", "furthest behind", "largest fall", "seconds"]
_MEANING = (
    "Mean rank: over the places of a data set, then over the data sets; 1 is best. Won or tied: the share of the "
    "places where the mean accuracy is the highest, or behind it by no more than one standard error. Furthest behind "
    "the best of a place, and largest fall of the mean from one number of answers to the next: in points of accuracy. "
    "Seconds: of the processor, the least of the draws, median over the places."
)
_RANKS = (
    "The line above shows how far apart two mean ranks must be not to be a matter of chance (Nemenyi's test at 5 %, "
    "Demšar 2006, with data sets as blocks, because places of one data set are no independent witnesses). Thick bars "
    "join methods that are closer."
)
SAME_ANSWERS = tuple(name for name, method in FOREIGN.items() if not method.asks)  # who asks stands with the questions


def find_board(
    frame: pd.DataFrame, unfinished: Iterable[Cell] = (), *, other_packages: bool = False
) -> Leaderboard | None:
    """The leaderboard of our methods, or with other packages; None if there is nothing to compare.

    Parameters
    ----------
    frame : DataFrame
        One row a cell, of all methods, those of other packages too.
    unfinished : iterable of Cell
        What was tried and gave nothing.
    other_packages : bool, default=False
        Whether methods of other packages stand on it too: then it is about the draws that all of these were tried on.
        One that chooses its own questions is not given the same answers as the others, and does not.
    """
    if not other_packages:
        rows = comparable(frame, unfinished, PLAN)
    else:
        rows = comparable(frame, unfinished, PLAN, SAME_ANSWERS)
        if not rows["method"].isin(SAME_ANSWERS).any():
            return None
    return Leaderboard(rows) if rows["method"].nunique() > 1 else None


def save(board: Leaderboard, folder: Path, wider: Leaderboard | None = None) -> None:
    """Write the figures as PNG and PDF, also of the board with other packages if there is one."""
    rank_figure.save(board, folder)
    for figure in _curves(board):
        figures.save(figure, folder)
    if wider:
        rank_figure.save(wider, folder, WIDER)


def section(board: Leaderboard, wider: Leaderboard | None = None) -> Section:
    """The leaderboard on the page, and the one with other packages if there is one."""
    both = [table(board), _ranks(board), *map(_pictures, _curves(board))]
    if wider:
        both += [table(wider), _ranks(wider, WIDER)]
    return Section("Leaderboard", [sentence(board)], both)


def _ranks(board: Leaderboard, name: str = rank_figure.NAME) -> Pictures:
    """The mean ranks as a block of the page."""
    drawing = rank_figure.describe(board), rank_figure.svg(board, name)
    return Pictures("Mean ranks", _RANKS, [drawing], wide_drawings=True)


def sentence(board: Leaderboard) -> str:
    """Where the default stands, in words."""
    if DEFAULT not in board.methods:
        return f"{LABELS[DEFAULT]} has not been computed yet."
    own, order = board.standing(DEFAULT), board.methods.index(DEFAULT) + 1
    rank = f"mean rank {own.mean_rank:.2f}, number {order} of {len(board.methods)} methods"
    won = f"the best or level with the best at {_percent(own.won)} of {len(board.means)} places"
    behind = f"at most {_points(own.worst)} points behind the best{_at(own.worst_place) if own.worst else ''}"
    fall = f"at most {_points(own.largest_fall)} points lost from one number of answers to the next"
    return f"{LABELS[DEFAULT]} with nothing else set: {rank}; {won}; {behind}; {fall}."


def table(board: Leaderboard) -> Table:
    """Every method with its standing, the best first."""
    standings = [board.standing(method) for method in board.methods]
    leads = {1: [-s.mean_rank for s in standings], 2: [s.won for s in standings], 3: [-s.worst for s in standings]}
    best = {(i, k) for k, column in leads.items() for i, lead in enumerate(column) if lead == np.nanmax(column)}
    beneath = {(i, 3): _place(s.worst_place) for i, s in enumerate(standings) if s.worst_place and s.worst > 0}
    return Table(
        _COLUMNS,
        [[LABELS[each.method], *_figures(each)] for each in standings],
        best=frozenset(best),
        title="Leaderboard with other packages. Accuracy" if _others(board) else "Leaderboard. Accuracy",
        caption=f"{_places(board)} {_MEANING}",
        beneath=beneath,
        notes=_notes(board, standings),
    )


def _figures(standing: Standing) -> list[str]:
    """The columns of one method."""
    behind = NOTHING if np.isnan(standing.worst) else _points(standing.worst)
    seconds = NOTHING if np.isnan(standing.seconds) else f"{standing.seconds:,.2f}"
    return [f"{standing.mean_rank:.2f}", _percent(standing.won), behind, _points(standing.largest_fall), seconds]


def _places(board: Leaderboard) -> str:
    """Over what the methods are compared."""
    counts = board.means.index.get_level_values("n_pairs")
    numbers = f"{counts.min():,} to {counts.max():,}" if counts.min() < counts.max() else f"{counts.min():,}"
    datasets = "1 data set" if board.n_datasets == 1 else f"{board.n_datasets} data sets"
    drawings = set(board.means.index.get_level_values("drawing"))
    return (
        f"{len(board.means)} places: {datasets}, {numbers} answers where there are as many, "
        f"{' or '.join(words for drawing, words in _DRAWN.items() if drawing in drawings)}. At each place "
        f"{draws_of(board.rows)} of answers, the same for all methods."
    )


def _notes(board: Leaderboard, standings: Iterable[Standing]) -> list[str]:
    """What is missing, and who had no result where."""
    notes = [
        f"{LABELS[each.method]} has no result at {each.unfinished} of the places, which count as its last ranks."
        for each in standings
        if each.unfinished
    ]
    planned = {(cell.dataset, cell.drawing, cell.n_pairs) for cell in PLAN.cells(seeds=1)}
    if missing := len(planned - set(board.means.index)):
        notes.append(
            f"{missing} of {len(planned)} places are not computed yet for all the methods, and are not counted: "
            f"{'python benchmarks/peers/run.py' if _others(board) else 'pairmargin experiment run'} {PLAN.name}"
        )
    return notes


def _others(board: Leaderboard) -> list[str]:
    """The methods of other packages."""
    return [method for method in board.methods if method in FOREIGN]


def _curves(board: Leaderboard) -> list[figures.Figure]:
    """Accuracy against the number of answers for the best methods of the package, one figure a drawing."""
    best = [method for method in board.methods if method in PLAN.methods][:N_CURVES]
    rows = board.rows[board.rows["method"].isin({*best, DEFAULT})]
    found = [figures.board_figure(rows, PLAN, drawing) for drawing in DRAWN]
    return [figure for figure in found if figure.panels]


def _pictures(figure: figures.Figure) -> Pictures:
    """The curves of one drawing as a block of the page."""
    return Pictures(
        DRAWN[figure.name.removeprefix(f"{PLAN.name}-")],
        f"The methods of this package with the best mean ranks, up to {N_CURVES} of them. Lines: means over the draws; "
        "bands: ± standard deviation.",
        [(panel.description, figures.panel_svg(panel, f"{figure.name}-{k}")) for k, panel in enumerate(figure.panels)],
        [(LABELS[method], figures.sign_svg(method, figure.name)) for method in figure.shared_legend],
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f}{NBSP}%"


def _points(share: float) -> str:
    return f"{100 * share:.1f}"


def _place(place: Place) -> str:
    dataset, drawing, n_pairs = place
    return f"{DATASETS[dataset]}, {n_pairs:,} {drawing}"


def _at(place: Place | None) -> str:
    return f" ({_place(place)})" if place else ""
