"""Who is ahead: every method at every place, and by how much.

A *place* is a data set, a way to draw the answers and a number of answers; there every method has a mean over the draws
and, among the others, a rank. Places of one data set are no independent witnesses, so ranks are averaged data set by
data set before anything is said about chance.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import astuple
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from .specs import Cell, Experiment
from .store import KEY
from .verdicts import ACCURACY, Score

PLACE = ["dataset", "drawing", "n_pairs"]
DRAW = [*PLACE, "seed"]
CONFIDENCE = 0.95
Place = tuple[str, str, int]


def comparable(frame: pd.DataFrame, unfinished: Iterable[Cell], plan: Experiment) -> pd.DataFrame:
    """What can be compared so far: the draws of a plan on which all of its methods have been tried.

    Parameters
    ----------
    frame : DataFrame
        One row a cell, as `Store.frame` gives it.
    unfinished : iterable of Cell
        What was tried and gave nothing.
    plan : Experiment
        Its methods that have not been tried anywhere are not waited for.

    Returns
    -------
    frame : DataFrame
        One row a cell; an unfinished one has no score. Methods that are not of the plan are there if they have been
        tried on all these draws.
    """
    nothing = pd.DataFrame([astuple(cell) for cell in unfinished], columns=KEY)
    rows = pd.concat([frame, nothing], ignore_index=True).drop_duplicates(KEY)
    planned = {(cell.dataset, cell.drawing, cell.n_pairs, cell.seed) for cell in plan.cells()}
    rows = rows[pd.MultiIndex.from_frame(rows[DRAW]).isin(planned)]
    tried: dict[str, set[tuple[object, ...]]] = defaultdict(set)
    for method, *draw in rows[["method", *DRAW]].itertuples(index=False, name=None):
        tried[method].add(tuple(draw))
    own = [tried[method] for method in plan.methods if method in tried]
    draws = set.intersection(*own) if own else set()
    methods = [method for method in tried if draws <= tried[method]]
    kept = rows["method"].isin(methods) & pd.MultiIndex.from_frame(rows[DRAW]).isin(draws)
    return rows[kept].reset_index(drop=True)


class Standing(NamedTuple):
    """How one method stands to the best at every place."""

    method: str
    mean_rank: float
    won: float  # share of the places where its mean is the highest, or within one standard error of it
    worst: float  # the furthest that it is behind the best, 0 if nowhere; nan if it has no result at all
    worst_place: Place | None
    largest_fall: float  # of its mean from one number of answers to the next, 0 if it never falls
    unfinished: int  # places where it has no result
    seconds: float  # the least of the draws, since other work only adds; median over the places


class Leaderboard:
    """Methods by what they reach at every place.

    Parameters
    ----------
    frame : DataFrame
        One row a cell; the score is nan where a method has not finished, which counts as the last rank of the place.
    score : Score, default=ACCURACY
    """

    def __init__(self, frame: pd.DataFrame, score: Score = ACCURACY) -> None:
        self.rows, self.score = frame, score
        self.draws = frame.pivot(index=DRAW, columns="method", values=score.name)
        is_whole = self.draws.notna().groupby(PLACE).all()
        self.means = self.draws.groupby(PLACE).mean().where(is_whole).dropna(how="all")  # (places, methods)

    @cached_property
    def ranks(self) -> pd.DataFrame:
        """1 is the best of a place; methods without a result share the last ranks."""
        return self.means.rank(axis=1, ascending=False, na_option="bottom")

    @cached_property
    def mean_ranks(self) -> pd.Series:
        """By method, the best first: over the places of a data set, then over the data sets."""
        return self.ranks.groupby("dataset").mean().mean().sort_values(kind="stable")

    @property
    def methods(self) -> list[str]:
        """The best first."""
        return list(self.mean_ranks.index)

    @property
    def n_datasets(self) -> int:
        return int(self.means.index.get_level_values("dataset").nunique())

    @property
    def critical_difference(self) -> float:
        """Mean ranks closer than this may differ by chance (Nemenyi's test, Demšar 2006), data sets being the blocks."""
        k = self.means.shape[1]
        q = stats.studentized_range.ppf(CONFIDENCE, k, np.inf) / np.sqrt(2)
        return float(q * np.sqrt(k * (k + 1) / (6 * self.n_datasets)))

    def standing(self, method: str) -> Standing:
        """How a method stands."""
        best = self.means.idxmax(axis=1)
        behind = self.means.max(axis=1) - self.means[method]
        tied = [behind[place] <= self._standard_error(place, method, best[place]) for place in self.means.index]
        return Standing(
            method,
            float(self.mean_ranks[method]),
            float(np.mean(tied)),
            float(behind.max()),
            behind.idxmax() if behind.notna().any() else None,
            self._largest_fall(method),
            int(behind.isna().sum()),
            float(self._seconds.get(method, np.nan)),
        )

    def _largest_fall(self, method: str) -> float:
        steps = self.means[method].groupby(["dataset", "drawing"]).diff()
        return float(np.fmax(0.0 - steps.min(), 0.0))

    @cached_property
    def _seconds(self) -> pd.Series:
        """By method."""
        return self.rows.groupby(["method", *PLACE])["seconds"].min().groupby("method").median()

    def _standard_error(self, place: Place, method: str, other: str) -> float:
        """Of the mean difference of two methods, draw by draw."""
        draws = self.draws.loc[place]
        differences = (draws[other] - draws[method]).dropna()
        return float(differences.std() / np.sqrt(len(differences))) if len(differences) > 1 else 0.0


def cliques(mean_ranks: pd.Series, critical_difference: float) -> list[tuple[str, str]]:
    """The first and the last of every run of methods that chance may have put in order, none inside another."""
    names, ranks = list(mean_ranks.index), mean_ranks.to_numpy()
    found: list[tuple[int, int]] = []
    for first, rank in enumerate(ranks):
        last = int(np.searchsorted(ranks, rank + critical_difference, side="right")) - 1
        if last > first and (not found or last > found[-1][1]):
            found.append((first, last))
    return [(names[first], names[last]) for first, last in found]
