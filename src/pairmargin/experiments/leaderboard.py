"""Who is ahead: every method at every place, and by how much.

A *place* is a data set, a way to draw the answers and a number of answers; there every method has a mean over the draws
and, among the others, a rank. Places of one data set are no independent witnesses, so ranks are averaged data set by
data set before anything is said about chance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from .verdicts import ACCURACY, Score

PLACE = ["dataset", "drawing", "n_pairs"]
CONFIDENCE = 0.95


class Standing(NamedTuple):
    """How one method stands to the best at every place."""

    method: str
    mean_rank: float
    won: float  # share of the places where its mean is the highest, or within one standard error of it
    worst: float  # the furthest that it is behind the best, 0 if nowhere
    worst_place: tuple[str, str, int]


class Leaderboard:
    """Methods by what they reach at every place.

    Parameters
    ----------
    frame : DataFrame
        One row a cell.
    score : Score, default=ACCURACY
    """

    def __init__(self, frame: pd.DataFrame, score: Score = ACCURACY) -> None:
        self.draws = frame.pivot_table(index=[*PLACE, "seed"], columns="method", values=score.name)
        self.means = self.draws.groupby(PLACE).mean()  # (places, methods); nan where a method has no result

    @property
    def ranks(self) -> pd.DataFrame:
        """1 is the best of a place; methods without a result share the last ranks."""
        return self.means.rank(axis=1, ascending=False, na_option="bottom")

    @property
    def mean_ranks(self) -> pd.Series:
        """By method, the best first: over the places of a data set, then over the data sets."""
        return self.ranks.groupby("dataset").mean().mean().sort_values(kind="stable")

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
        worst = behind.idxmax()
        return Standing(method, float(self.mean_ranks[method]), float(np.mean(tied)), float(behind[worst]), worst)

    def largest_fall(self, method: str) -> float:
        """The most that the mean falls from one number of answers to the next; 0 if it never does."""
        steps = self.means[method].groupby(["dataset", "drawing"]).diff()
        return float(max(-steps.min(), 0.0))

    def _standard_error(self, place: tuple[str, str, int], method: str, other: str) -> float:
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
