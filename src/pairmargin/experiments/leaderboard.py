"""Who is ahead: every method at every place, and by how much.

A *place* is a data set, a way to draw the answers and a number of answers; there every method has a mean over the draws
and, among the others, a rank. Places of one data set are no independent witnesses, so ranks are averaged data set by
data set before anything is said about chance.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import astuple
from functools import cached_property
from typing import NamedTuple, cast

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


def comparable(
    frame: pd.DataFrame, unfinished: Iterable[Cell], plan: Experiment, others: Iterable[str] = ()
) -> pd.DataFrame:
    """What can be compared so far: the draws of a plan on which all of its methods have been tried, and others too.

    Parameters
    ----------
    frame : DataFrame
        One row a cell, as `Store.frame` gives it.
    unfinished : iterable of Cell
        What was tried and gave nothing.
    plan : Experiment
    others : iterable of str
        Methods that are not of the plan, and are waited for like its own: unless they have not been tried anywhere.

    Returns
    -------
    frame : DataFrame
        One row a cell; an unfinished one has no score.
    """
    nothing = pd.DataFrame([astuple(cell) for cell in unfinished], columns=KEY).astype({"n_pairs": int, "seed": int})
    rows = pd.concat([frame, nothing], ignore_index=True).drop_duplicates(KEY)
    planned = {(cell.dataset, cell.drawing, cell.n_pairs, cell.seed) for cell in plan.cells()}
    rows = rows[pd.MultiIndex.from_frame(rows[DRAW]).isin(planned)]
    tried: dict[str, set[tuple[object, ...]]] = defaultdict(set)
    for method, *draw in rows[["method", *DRAW]].itertuples(index=False, name=None):
        tried[method].add(tuple(draw))
    methods = {*plan.methods, *others}
    own = [tried[method] for method in methods if method in tried]
    draws = set.intersection(*own) if own else set()
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
        draws = frame.pivot(index=DRAW, columns="method", values=score.name)
        is_whole = draws.notna().groupby(PLACE).all()
        self.means = draws.groupby(PLACE).mean().where(is_whole).dropna(how="all")  # (places, methods)
        self.draws = draws[[draw[:-1] in self.means.index for draw in draws.index]]  # (draws, methods)

    @cached_property
    def ranks(self) -> pd.DataFrame:
        """1 is the best of a place; methods without a result share the last ranks."""
        return self.means.rank(axis=1, ascending=False, na_option="bottom")

    @cached_property
    def mean_ranks(self) -> dict[str, float]:
        """By method, the best first: over the places of a data set, then over the data sets."""
        means = self.ranks.groupby("dataset").mean().mean().sort_values(kind="stable")
        return {str(method): float(rank) for method, rank in means.items()}

    @property
    def methods(self) -> list[str]:
        """The best first."""
        return list(self.mean_ranks)

    @property
    def n_datasets(self) -> int:
        return int(self.means.index.get_level_values("dataset").nunique())

    @property
    def critical_difference(self) -> float:
        """Mean ranks closer than this may differ by chance (Nemenyi's test, Demšar 2006), with data sets as blocks."""
        k = self.means.shape[1]
        q = stats.studentized_range.ppf(CONFIDENCE, k, np.inf) / np.sqrt(2)
        return float(q * np.sqrt(k * (k + 1) / (6 * self.n_datasets)))

    def standing(self, method: str) -> Standing:
        """How a method stands."""
        behind = self.means.max(axis=1) - self.means[method]
        error = (self._best - self.draws[method]).groupby(PLACE).sem().fillna(0.0)  # of one draw, nothing is known
        return Standing(
            method,
            self.mean_ranks[method],
            float((behind <= error).mean()),
            float(behind.max()),
            cast(Place, behind.idxmax()) if behind.notna().any() else None,
            self._largest_fall(method),
            int(behind.isna().sum()),
            float(self._seconds.get(method, np.nan)),
        )

    def _largest_fall(self, method: str) -> float:
        """Over the draws that both numbers of answers have: there may be more of one than of the other."""
        falls = [0.0]
        for _, rows in self.draws[method].groupby(["dataset", "drawing"]):
            by_number = rows.unstack("n_pairs").dropna(axis=1, how="all")
            falls += (-by_number.diff(axis=1).mean()).dropna().tolist()
        return max(falls)

    @cached_property
    def _seconds(self) -> pd.Series:
        """By method."""
        return self.rows.groupby(["method", *PLACE])["seconds"].min().groupby("method").median()

    @cached_property
    def _best(self) -> pd.Series:
        """Draw by draw, what the method gave that has the highest mean at the place."""
        leaders = self.means.idxmax(axis=1)
        scores = [self.draws.at[draw, leaders[draw[:-1]]] for draw in self.draws.index]
        return pd.Series(scores, self.draws.index)


def cliques(mean_ranks: Mapping[str, float], critical_difference: float) -> list[tuple[str, str]]:
    """The first and the last of every run of methods that chance may have put in order, none inside another."""
    names, ranks = list(mean_ranks), np.array(list(mean_ranks.values()))
    found: list[tuple[int, int]] = []
    for first, rank in enumerate(ranks):
        last = int(np.searchsorted(ranks, rank + critical_difference, side="right")) - 1
        if last > first and (not found or last > found[-1][1]):
            found.append((first, last))
    return [(names[first], names[last]) for first, last in found]
