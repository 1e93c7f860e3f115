"""What is known about a fit, worked out once for the whole page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..estimator import MaxMarginClustering
from ..exceptions import InvalidDataError
from ..pairs import Pairs
from ..readers import Items
from ..stages import FEWEST

Array = NDArray[Any]

ROWS = 10_000  # that are looked at together: little memory, and no slower than more
NOUNS = {"table": "row", "vector": "vector", "image": "picture", "text": "text"}


class Labels(Protocol):
    """The cluster of every item and the chance that it is the right one, of shape (n,) each."""

    @property
    def cluster(self) -> Array: ...

    @property
    def confidence(self) -> Array: ...


@dataclass(frozen=True, eq=False)
class Findings:
    """A fit and its items.

    Attributes
    ----------
    items : Items
    model : MaxMarginClustering
        Fitted to all of them or to some.
    pairs : Pairs
        The answers, about rows of the items.
    cluster, confidence : ndarray of shape (n,)
    codes : ndarray of shape (n, d)
    """

    items: Items
    model: MaxMarginClustering
    pairs: Pairs
    cluster: Array
    confidence: Array
    codes: Array

    @classmethod
    def gather(cls, items: Items, model: MaxMarginClustering, pairs: Pairs | None, labels: Labels | None) -> Findings:
        """Look at every item once."""
        n = len(items)
        pairs = Pairs.check(pairs, n)
        starts = range(0, n, ROWS)
        codes = np.concatenate([model.transform(items.features[k : k + ROWS]).astype(np.float32) for k in starts])
        if labels is not None:
            cluster, confidence = np.asarray(labels.cluster), np.asarray(labels.confidence)
        else:
            chances = np.concatenate([model.cluster_proba(items.features[k : k + ROWS]) for k in starts])
            cluster = model.labels_ if len(getattr(model, "labels_", ())) == n else chances.argmax(1)
            confidence = chances[np.arange(n), cluster]
        if cluster.shape != (n,) or confidence.shape != (n,):
            raise InvalidDataError(f"there are {n} items but labels of {len(cluster)}; give one for each")
        return cls(items, model, pairs, cluster, confidence, codes)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def noun(self) -> str:
        """What an item is called."""
        return NOUNS[self.items.kind]

    @cached_property
    def sizes(self) -> Mapping[int, int]:
        """How many items each cluster has, the largest first."""
        numbers, counts = np.unique(self.cluster, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        return dict(zip(numbers[order].tolist(), counts[order].tolist(), strict=True))

    @cached_property
    def distance(self) -> Array:
        """How far every item is from the centre of its cluster, by its code, (n,)."""
        distance = np.empty(len(self))
        for k in self.sizes:
            own = self.members(k)
            distance[own] = np.linalg.norm(self.codes[own] - self.codes[own].mean(0), axis=1)
        return distance

    def members(self, cluster: int) -> Array:
        """The rows of a cluster."""
        return np.flatnonzero(self.cluster == cluster)

    def typical(self, cluster: int, most: int) -> Array:
        """The members that are nearest to the centre, the nearest first."""
        own = self.members(cluster)
        return own[np.argsort(self.distance[own], kind="stable")][:most]

    def doubtful(self, cluster: int, most: int) -> Array:
        """The members that the model is the least sure of, the least sure first."""
        own = self.members(cluster)
        return own[np.argsort(self.confidence[own], kind="stable")][:most]

    def chances(self, rows: Array) -> Array:
        """The chance of every cluster for some rows."""
        return self.model.cluster_proba(self.items.features[rows])

    @cached_property
    def kept(self) -> Array:
        """Which answers the clusters agree with, (m,)."""
        one, other = self.cluster[self.pairs.index].T
        return np.asarray((one == other) == self.pairs.same)

    @cached_property
    def is_judged(self) -> bool:
        """Whether every answer was judged by networks that had not seen it."""
        judged = len(getattr(self.model, "suspicious_pairs_", ())) == len(self.pairs) >= FEWEST
        return judged and self.model.robust and len(self.sizes) > 1

    @cached_property
    def suspicion(self) -> Array:
        """The places of the answers, the most suspicious first, (m,)."""
        return np.asarray(self.model.suspicious_pairs_) if self.is_judged else np.arange(len(self.pairs))

    @cached_property
    def truth(self) -> Array | None:
        """The label of every item as text, None where there is none, if there are any."""
        truth = self.items.truth
        if truth is None or all(name is None for name in truth):
            return None
        return np.array([None if name is None else str(name) for name in truth], dtype=object)
