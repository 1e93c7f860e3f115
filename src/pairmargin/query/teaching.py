"""Our own strategy: the point that teaches most, beside the cluster where it most likely belongs.

Every cluster has a *core*: the largest group that is known to lie there, or, at first, its most typical point. A point
is put beside the core of its likeliest cluster, then of the second; one or two questions tell where it belongs, and
with it whatever is known of the core.

Between two models the answers go on teaching: a point that was asked about tells those that resemble it where it
belongs, or at least where not.

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

from .known import Known, places_among
from .neighbourhoods import expected_questions
from .view import View

Array = NDArray[Any]

DOUBT = 0.5  # about a point of which the model is sure, while nothing is known
MODEL = 1.0  # as many neighbours, asked about and just like a point, tell as much about it as the model does
LARGE = 2  # times an equal share of the points, and a core may have parts that nothing resembles


def ask_what_teaches_most(view: View, known: Known, n: int, rng: RandomState) -> Array:
    """The points that teach most, each beside the core of its likeliest cluster."""
    found: Array = np.empty((0, 2), dtype=np.int64)
    cores = Cores(view, known)
    while len(found) < n:
        is_open = known.is_open_to(cores.groups)  # (n, cores)
        is_open[found.ravel()] = False  # of several at once, one about each point
        seen = cores.is_settled.copy()
        seen[found[:, 0]] = True
        asked = max(_point(view, known, cores, is_open, seen), _two_cores(view, cores, is_open))
        if not asked[0] > 0:
            return np.concatenate([found, known.draw(n - len(found), rng)])
        found = np.concatenate([found, [asked[1]]])
        known.close(found[-1:])
    return found


def _point(view: View, known: Known, cores: Cores, is_open: Array, seen: Array) -> tuple[float, tuple[int, int]]:
    """The best question about a point beside a core, and what it is worth."""
    questions = expected_questions(cores.chance)  # none for a point that is known to be different from all cores
    worth: Array = teaching(view.likeness, cores.doubt, seen) / np.where(questions > 0, questions, 1)
    chance = np.where(is_open & ~cores.is_settled[:, None], cores.chance, 0)
    worth = np.bincount(known.group, worth)[known.group]  # one answer tells where all of a group belong
    i = int(np.where(chance.max(1) > 0, worth, -1).argmax())
    return (float(worth[i]) if chance[i].max() > 0 else 0.0), (i, int(cores.representative[chance[i].argmax()]))


def _two_cores(view: View, cores: Cores, is_open: Array) -> tuple[float, tuple[int, int]]:
    """The best question about two cores, and what it is worth: the points of the smaller one, if they are the same.

    They may well be if many points resemble points of both, or if one of them is very large: whatever a point looks
    like, it may belong to a class that has half of all points. Likely rivals come first, so the more others a core is
    known to be different from, the less likely it is to be the same as one more. But when there are more cores than
    clusters, some of them must be the same.
    """
    around = view.likeness @ np.eye(len(cores.groups))[cores.chance.argmax(1)]
    around /= around.sum(1, keepdims=True)  # (n, cores) of all that is like a point, the share that belongs with a core
    n_rivals = cores.is_different.sum(1)
    mass = np.maximum(cores.chance.sum(0), 1)
    smaller = np.minimum(mass[:, None], mass)  # (cores, cores)
    n_parts = cores.has_part.sum(0)
    large = np.maximum(mass / len(view.codes) - LARGE / view.n_clusters, 0) * n_parts / (n_parts + n_rivals)
    same = around.T @ around / smaller + np.maximum(large[:, None], large)
    same /= 1 + np.minimum(n_rivals[:, None], n_rivals)
    same *= is_open[cores.representative]
    np.fill_diagonal(same, 0)
    if same.any():
        same *= max(1, 2 * (len(cores.groups) - view.n_clusters) / same.sum())  # each two are there twice
    worth = np.minimum(same, 1) * smaller
    a, b = np.unravel_index(worth.argmax(), worth.shape)
    return float(worth[a, b]), (int(cores.representative[a]), int(cores.representative[b]))


def teaching(likeness: sp.csr_array, doubt: Array, seen: Array) -> Array:
    """What is learned from knowing where a point belongs, if some have been seen already, (n,)."""
    cover = likeness[seen].max(axis=0).toarray().ravel() if seen.any() else np.zeros(len(doubt))
    news = np.maximum(likeness.data - cover[likeness.indices], 0)
    return np.asarray(sp.csr_array((news, likeness.indices, likeness.indptr), likeness.shape) @ doubt)


class Cores:
    """A core for every cluster, and more where a cluster is known to hold different things.

    Attributes
    ----------
    groups : ndarray of shape (c,)
    has_part : ndarray of shape (K, c)
        Whether a core has a part in a cluster: it lies there, or what is known of the cluster lies in the core.
    representative : ndarray of shape (c,)
        The most typical point of a core.
    is_different : ndarray of shape (c, c)
        Which cores are known to be different.
    is_settled : ndarray of shape (n,)
        Whether a point is in a core.
    chance : ndarray of shape (n, c)
        The chance that a point belongs with a core, given what is known of it and of those that it resembles.
    doubt : ndarray of shape (n,)
        How much is to be learned about a point itself.
    """

    def __init__(self, view: View, known: Known) -> None:
        typical = view.typicality
        self.groups, self.has_part = _find(view, known)
        core = places_among(self.groups, len(known.size))[known.group]  # (n,) of a point, or −1
        self.is_settled: Array = core >= 0
        members = np.flatnonzero(self.is_settled)
        order = members[np.argsort(-typical[members], kind="stable")]
        self.representative: Array = np.empty(len(self.groups), dtype=np.int64)
        self.representative[core[order[::-1]]] = order[::-1]  # the last to be written is the most typical
        is_different = known.is_different_from(self.groups)  # (n, c)
        self.is_different: Array = is_different[self.representative]
        self.chance = self._chances(view, core, is_different)
        least = DOUBT / (1 + len(members) / len(self.groups))  # it fades with the points of every core
        self.doubt: Array = np.where(self.is_settled, 0, np.maximum(1 - self.chance.max(1), least))

    def _chances(self, view: View, core: Array, is_different: Array) -> Array:
        by_model = _shared_out(self._by_cluster(view, core))
        told = _shared_out(np.where(is_different, 0, by_model))
        told[self.is_settled] = np.eye(len(self.groups))[core[self.is_settled]]
        told[~self.is_settled & ~is_different.any(1)] = 0  # nothing but what the model says anyway
        return _shared_out(np.where(is_different, 0, MODEL * by_model + view.likeness @ told + 1e-9))

    def _by_cluster(self, view: View, core: Array) -> Array:
        """The chances of the clusters, passed on to their cores, (n, c): of several, most to the nearest."""
        is_shared = self.has_part.sum(1) > 1
        passed: Array = view.chances[:, ~is_shared] @ self.has_part[~is_shared].astype(float)
        for cluster in np.flatnonzero(is_shared):
            rivals = np.flatnonzero(self.has_part[cluster])
            gap = np.column_stack([_squared_distance(view.codes, view.codes[core == c]) for c in rivals])
            near = np.exp(-(gap - gap.min(1, keepdims=True)) / (np.median(gap) or 1.0))
            passed[:, rivals] += view.chances[:, [cluster]] * near / near.sum(1, keepdims=True)
        return passed


def _find(view: View, known: Known) -> tuple[Array, Array]:
    """The cores (c,), and which of them have a part in which cluster, (K, c).

    A cluster of which all that is known belongs to one core elsewhere is a piece of that: it gets no core of its own.
    """
    touched = np.union1d(np.flatnonzero(known.size > 1), known.different.ravel())
    members = sp.csr_array((np.ones(len(known.group)), (known.group, np.arange(len(known.group)))))
    home = (members @ view.chances)[touched].argmax(1)
    typical = np.zeros(len(known.size))
    np.maximum.at(typical, known.group, view.typicality)
    first = np.unique(known.group, return_index=True)[1]
    is_different = known.is_different_from(touched)[first]  # (groups, touched)
    chosen: dict[int, list[int]] = {}  # group → clusters
    for place in np.lexsort((-typical[touched], -known.size[touched])):
        group, cluster = int(touched[place]), int(home[place])
        mates = [other for other, where in chosen.items() if cluster in where]
        tried = is_different[list(chosen), place].sum()  # beside two cores and the same as neither: something new
        if all(is_different[other, place] for other in mates) and (not mates or known.size[group] > 1 or tried > 1):
            chosen[group] = [cluster]
    best, is_known = view.chances.argmax(1), np.isin(known.group, list(chosen))
    taken = {cluster for where in chosen.values() for cluster in where}
    for cluster in sorted(set(range(view.chances.shape[1])) - taken):
        own = np.flatnonzero(best == cluster)
        met, free = np.unique(known.group[own[is_known[own]]]), own[~is_known[own]]
        if len(met) == 1:
            chosen[int(met[0])].append(cluster)
        elif len(free):
            chosen[int(known.group[free[view.typicality[free].argmax()]])] = [cluster]
    has_part = np.zeros((view.chances.shape[1], len(chosen)), dtype=bool)
    for core, clusters in enumerate(chosen.values()):
        has_part[clusters, core] = True
    return np.array(list(chosen)), has_part


def _shared_out(shares: Array) -> Array:
    """Rows that sum to 1, but for those without anything."""
    total = shares.sum(1, keepdims=True)
    return np.asarray(np.divide(shares, total, out=np.zeros_like(shares), where=total > 0))


def _squared_distance(codes: Array, others: Array) -> Array:
    """From the nearest of others, (n,)."""
    products = codes @ others.T
    return np.asarray(((codes**2).sum(1)[:, None] - 2 * products + (others**2).sum(1)).min(1).clip(0))
