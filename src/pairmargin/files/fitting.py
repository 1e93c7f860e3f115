"""Learn from a file and a file of answers."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..estimator import MaxMarginClustering
from ..metrics import truth_scores
from ..pairs import Pairs
from ..readers import Items, Recipe, read_items, read_pairs
from ..readers.folders import fingerprint
from ..sample import among
from .labels import Array, Labels, label, with_known

OnRow = Callable[[dict[str, Any]], object]
SAMPLE = 20_000  # items to learn from, if there are more


@dataclass(frozen=True, eq=False, repr=False)
class FitResult:
    """What `fit_files` has read and learned; all that the outputs are made of.

    Attributes
    ----------
    items : Items
        What was read: ids, features, faces and notes, all n of them.
    pairs : Pairs
        The answers, about rows of the items.
    model : MaxMarginClustering
        Fitted on ``items.features[rows]``; ``suspicious_pairs_`` are positions in ``pairs``.
    rows : ndarray of shape (m,)
        The items that were learned from, rising: all, or those in answers and a sample of the others.
    labels : Labels
        ``cluster``, ``confidence`` and ``second``, of all items.
    sources : dict of str to dict
        Path, size and sha256 of the "data" and of the "pairs".
    options : dict
        What the reader was asked for.
    seconds : dict of str to float
        What "reading", "fitting" and "labelling" took.
    stopped : bool
        Whether training was stopped before its end.
    """

    items: Items
    pairs: Pairs
    model: MaxMarginClustering
    rows: Array
    labels: Labels
    sources: dict[str, dict[str, Any]]
    options: dict[str, Any]
    seconds: dict[str, float]
    stopped: bool

    @property
    def recipe(self) -> Recipe:
        """What does to other files what was done to this one."""
        return self.items.recipe

    @property
    def truth(self) -> Array | None:
        """The labels that the file has, if they were asked for; nothing has learned from them."""
        return self.items.truth

    @property
    def kept(self) -> Array:
        """Which answers the clusters agree with, of shape (n_pairs,)."""
        one, other = self.labels.cluster[self.pairs.index].T
        return np.asarray((one == other) == self.pairs.same)

    @property
    def scores(self) -> dict[str, float] | None:
        """How well the clusters agree with the truth, if there is one."""
        return None if self.truth is None else truth_scores(self.truth, self.labels.cluster)


def fit_files(
    model: MaxMarginClustering,
    data: str | os.PathLike[str],
    answers: str | os.PathLike[str],
    *,
    sample: int = SAMPLE,
    options: Mapping[str, Any] | None = None,
    on_row: OnRow | None = None,
) -> FitResult:
    """Read items and answers, learn, and label every item.

    Parameters
    ----------
    model : MaxMarginClustering
        The settings; it is fitted in place.
    data, answers : path-like
        As for `read_items` and `read_pairs`.
    sample : int, default=20_000
        The most items to learn from: all that are in answers, and as many of the others as there is room for, drawn at
        random. The rest are labelled by what was learned. 0 learns from all.
    options : dict, optional
        For `read_items`.
    on_row : callable, optional
        Called with the rows of the model's ``callback``, and with rows whose ``phase`` is "read" and "label". If it
        returns True, training ends.

    Returns
    -------
    result : FitResult
    """
    tell = on_row or (lambda row: None)
    options, clock = dict(options or {}), _Clock()
    tell({"phase": "read"})
    items = read_items(data, **options)
    pairs = read_pairs(answers, items)
    pairs.resolve(model.on_conflict)  # here, a contradiction is told by the lines of the file
    sources = {"data": fingerprint(Path(data)), "pairs": fingerprint(Path(answers))}
    clock.lap("reading")
    rows = learned_rows(len(items), pairs, sample, model.random_state)
    stopped = _fit(model, items.features, pairs, rows, tell)
    clock.lap("fitting")
    tell({"phase": "label"})
    labels = with_known(label(model, items.features), model, items.features, rows)
    clock.lap("labelling")
    return FitResult(items, pairs, model, rows, labels, sources, options, clock.laps, stopped)


def learned_rows(n_items: int, pairs: Pairs, sample: int, random_state: Any) -> Array:
    """All rows if they are few enough, else those in answers and some others, rising."""
    if not sample or n_items <= sample:
        return np.arange(n_items)
    answered = np.unique(pairs.index)
    others = np.setdiff1d(np.arange(n_items), answered, assume_unique=True)
    room = min(max(sample - len(answered), 0), len(others))
    drawn = check_random_state(random_state).choice(others, room, replace=False)
    return np.sort(np.concatenate([answered, drawn]))


def _fit(model: MaxMarginClustering, features: Any, pairs: Pairs, rows: Array, tell: OnRow) -> bool:
    """Learn from some rows; whether it was stopped."""
    stopped = False

    def watch(row: dict[str, Any]) -> bool:
        nonlocal stopped
        stopped = tell(row) is True or stopped
        return stopped

    whole = len(rows) == features.shape[0]
    own = pairs if whole else among(pairs, rows, features.shape[0])
    model.callback = watch
    try:
        model.fit(features if whole else features[rows], pairs=own)
    finally:
        model.callback = None
    return stopped


class _Clock:
    """Seconds of one stage after another."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self.last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name], self.last = round(now - self.last, 3), now
