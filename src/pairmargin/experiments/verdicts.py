"""Paired differences over draws, and what they say about a statement.

Every draw (seed) gives all methods the same points and the same answers, so a statement about methods is judged by
differences taken draw by draw, and by the 95 % interval (Student's t) of their mean:

================  ===================================================================
holds             the whole interval is on the side that is claimed
does not hold     the whole interval is on the other side
within noise      the interval covers the border, so that these draws cannot tell
not computed yet  fewer than two draws have all the cells that the statement is about
================  ===================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

CONFIDENCE = 0.95


class Verdict(Enum):
    """How our figures stand to a claim."""

    HOLDS = "holds"
    NOISE = "within noise"
    FAILS = "does not hold"
    UNKNOWN = "not computed yet"


@dataclass(frozen=True)
class Score:
    """A column of the results that says how good a result is, and how it is written."""

    name: str
    label: str
    short: str
    scale: int = 1
    digits: int = 3

    def shown(self, value: float) -> str:
        """The value as the paper prints it."""
        return f"{value * self.scale:.{self.digits}f}"

    def signed(self, value: float) -> str:
        """A difference of two values."""
        return f"{value * self.scale:+.{self.digits}f}".replace("-", "−")


ACCURACY = Score("accuracy", "accuracy (%)", "accuracy", 100, 1)
ARI = Score("ari", "adjusted Rand index", "ARI")
AUC = Score("auc", "area under the ROC curve", "AUC")


class Draws:
    """The scores of a results frame, each a series over the draws."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._groups = {
            key: group.set_index("seed") for key, group in frame.groupby(["dataset", "n_pairs", "method"], sort=False)
        }

    def __call__(self, score: Score, dataset: str, n_pairs: int, method: str) -> pd.Series[float]:
        """One value a draw; none where nothing has been computed."""
        group = self._groups.get((dataset, n_pairs, method))
        return pd.Series(dtype=float) if group is None else group[score.name]


class Interval(NamedTuple):
    """The mean of paired differences and where the true mean lies, with a confidence of 95 %."""

    mean: float
    low: float
    high: float


def interval(differences: pd.Series[float]) -> Interval | None:
    """Student's interval of the mean; None for fewer than two draws.

    Examples
    --------
    >>> [round(end, 3) for end in interval(pd.Series([0.01, 0.02, 0.03]))]
    [0.02, -0.005, 0.045]
    """
    values = differences.dropna().to_numpy(float)
    if len(values) < 2:
        return None
    mean, error = float(values.mean()), float(values.std(ddof=1)) / np.sqrt(len(values))
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1) * error)
    return Interval(mean, mean - half, mean + half)


@dataclass(frozen=True, eq=False)
class Part:
    """One difference that a claim speaks of: claimed to be above a border, or below it."""

    what: str
    score: Score
    differences: pd.Series[float]  # one a draw
    border: float = 0.0
    below: bool = False

    @cached_property
    def interval(self) -> Interval | None:
        return interval(self.differences)

    @property
    def verdict(self) -> Verdict:
        """On which side of the border the interval lies."""
        if self.interval is None:
            return Verdict.UNKNOWN
        if self.interval.low <= self.border <= self.interval.high:
            return Verdict.NOISE
        return Verdict.HOLDS if (self.interval.mean < self.border) == self.below else Verdict.FAILS

    @property
    def figures(self) -> str:
        """The difference and its interval in words."""
        if self.interval is None:
            return f"{self.what}: {self.score.short} {Verdict.UNKNOWN.value}"
        mean, low, high = map(self.score.signed, self.interval)
        return f"{self.what}: {self.score.short} {mean} ({low} to {high})"


def all_hold(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict on a claim that is made of all its parts: as good as the worst of them."""
    for worst in (Verdict.FAILS, Verdict.UNKNOWN, Verdict.NOISE):
        if worst in verdicts:
            return worst
    return Verdict.HOLDS if verdicts else Verdict.UNKNOWN


def most_hold(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict on a claim that is made "in most cases": what more than half of its parts say."""
    if Verdict.UNKNOWN in verdicts or not verdicts:
        return Verdict.UNKNOWN
    usual = [verdict for verdict in Verdict if 2 * verdicts.count(verdict) > len(verdicts)]
    return usual[0] if usual else Verdict.NOISE
