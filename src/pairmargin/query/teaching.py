"""Our own strategy: the point that teaches most, beside the cluster where it most likely belongs.

Every cluster has a *core*: the largest group that is known to lie there, or, at first, its most typical point. A point
is put beside the core of its likeliest cluster, then of the second; one or two questions tell where it belongs, and
with it whatever is known of the core.

What a point teaches is summed up over the points that resemble it: how doubtful they are, times by how much it is more
like them than anything known is. At first all are in doubt a little and nothing is known, so that it is the typical
points of dense regions that come first; when these are known, it is the doubtful ones on the borders. As with
normalised point-based uncertainty (Xiong, Azimi, Fern 2014), it is divided by the number of questions that the point
is expected to take.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.random import RandomState
from numpy.typing import NDArray

from .known import Known
from .neighbourhoods import expected_questions
from .view import View

Array = NDArray[Any]

DOUBT = 0.1  # that there is about every point, however sure the model is


def ask_what_teaches_most(view: View, known: Known, n: int, rng: RandomState) -> Array:
    """The points that teach most, each beside the core of its likeliest cluster."""
    found = np.empty((0, 2), dtype=np.int64)
    while len(found) < n:
        cores = Cores(view, known)
        open_chance = np.where(known.is_open_to(cores.groups), cores.chance, 0)  # (n, cores)
        worth = teaching(view.likeness, cores) / expected_questions(cores.chance)
        is_candidate = (open_chance.max(1) > 0) & ~cores.is_settled
        is_candidate[found[:, 0]] = False
        candidates = np.flatnonzero(is_candidate)
        if not len(candidates):
            return np.concatenate([found, known.draw(n - len(found), rng)])
        i = candidates[worth[candidates].argmax()]
        j = cores.representative[open_chance[i].argmax()]
        found = np.concatenate([found, [(i, j)]])
        known.close(found[-1:])
    return found


def teaching(likeness: sp.csr_array, cores: Cores) -> Array:
    """What is learned from knowing where a point belongs, (n,)."""
    known = likeness[cores.is_settled]
    cover = known.max(axis=0).toarray().ravel() if known.shape[0] else np.zeros(likeness.shape[0])  # (n,)
    news = sp.csr_array(
        (np.maximum(likeness.data - cover[likeness.indices], 0), likeness.indices, likeness.indptr), likeness.shape
    )
    return np.asarray(news @ cores.doubt)


class Cores:
    """A core for every cluster, and more where a cluster is known to hold different things.

    Attributes
    ----------
    groups : ndarray of shape (c,)
    home : ndarray of shape (c,)
        The cluster that a core lies in.
    representative : ndarray of shape (c,)
        The most typical point of a core.
    is_settled : ndarray of shape (n,)
        Whether a point is in a core.
    chance : ndarray of shape (n, c)
        The chance that a point belongs with a core, given what it is known to be different from.
    doubt : ndarray of shape (n,)
        How much is to be learned about a point itself.
    """

    def __init__(self, view: View, known: Known) -> None:
        typical = view.typicality
        self.groups, self.home = _find(view, known)
        place = np.full(len(known.size), -1)
        place[self.groups] = np.arange(len(self.groups))
        core = place[known.group]  # (n,) of a point, or −1
        self.is_settled: Array = core >= 0
        members = np.flatnonzero(self.is_settled)
        order = members[np.argsort(-typical[members], kind="stable")]
        self.representative: Array = np.empty(len(self.groups), dtype=np.int64)
        self.representative[core[order[::-1]]] = order[::-1]  # the last to be written is the most typical
        self.chance = self._chances(view, known, core)
        self.doubt: Array = np.where(self.is_settled, 0, np.maximum(1 - self.chance.max(1), DOUBT))

    def _chances(self, view: View, known: Known, core: Array) -> Array:
        chance = view.chances[:, self.home] * self._shares(view, core)
        chance = np.where(known.is_different_from(self.groups), 0, chance + 1e-9)
        total = chance.sum(1, keepdims=True)
        return np.asarray(np.divide(chance, total, out=np.zeros_like(chance), where=total > 0))

    def _shares(self, view: View, core: Array) -> Array:
        """How several cores share a cluster: each has the points that are nearest to it, (n, c)."""
        share = np.ones((len(core), len(self.groups)))
        for cluster in np.flatnonzero(np.bincount(self.home) > 1):
            rivals = np.flatnonzero(self.home == cluster)
            gap = np.column_stack([_squared_distance(view.codes, view.codes[core == c]) for c in rivals])
            near = np.exp(-(gap - gap.min(1, keepdims=True)) / (np.median(gap) or 1.0))
            share[:, rivals] = near / near.sum(1, keepdims=True)
        return share


def _find(view: View, known: Known) -> tuple[Array, Array]:
    """The cores and their clusters."""
    n_clusters = view.chances.shape[1]
    touched = np.union1d(np.flatnonzero(known.size > 1), known.different.ravel())
    members = sp.csr_array((np.ones(len(known.group)), (known.group, np.arange(len(known.group)))))
    home = (members @ view.chances)[touched].argmax(1)
    typical = np.zeros(len(known.size))
    np.maximum.at(typical, known.group, view.typicality)
    is_different = known.is_different_from(touched)  # (n, touched)
    first = np.unique(known.group, return_index=True)[1]
    chosen: dict[int, int] = {}  # group → cluster
    for place in np.lexsort((-typical[touched], -known.size[touched])):
        group, cluster = int(touched[place]), int(home[place])
        mates = [other for other, where in chosen.items() if where == cluster]
        if all(is_different[first[other], place] for other in mates):
            chosen[group] = cluster
    best = view.chances.argmax(1)
    for cluster in set(range(n_clusters)) - set(chosen.values()):
        own = np.flatnonzero(best == cluster)
        if len(own):
            chosen[int(known.group[own[view.typicality[own].argmax()]])] = cluster
    return np.array(list(chosen)), np.array(list(chosen.values()))


def _squared_distance(codes: Array, others: Array) -> Array:
    """From the nearest of others, (n,)."""
    products = codes @ others.T
    return np.asarray(((codes**2).sum(1)[:, None] - 2 * products + (others**2).sum(1)).min(1).clip(0))
