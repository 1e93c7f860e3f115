"""Which cluster every training point is in, once all is learned: what the network says and what was answered, together.

The labels z maximise

    Σ_i S_i(z_i)  +  price · ( Σ [z_i = z_j] over must-links  −  Σ [z_i = z_j] over cannot-links ),

the scores of (2) with every answer worth ``price`` margins. A point in no answer takes its best cluster, as in (2).
Where the network cannot learn what was answered, the answers still hold for the points that they are about.

Must-links make *groups*, and a cannot-link between two of them holds for all their points. It counts for all of them,
so that a few answers outweigh the scores of two large groups that share a cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances_argmin

from .graph import trusted_components
from .pairs import Pairs
from .pairs.arithmetic import link_graph

Array = NDArray[Any]

SWEEPS = 50  # enough to end in practice; a bound in case rounding goes in circles


def asked_labels(scores: Array, pairs: Pairs, price: float, believed: Array) -> Array:
    """The clusters (p,) of ``pairs.points``, from their scores (p, K) and the answers, of which some are believed.

    Whole groups move first, then points one by one: only together can the points of a group change their mind, and
    only alone can one of them leave it.
    """
    best: Array = scores.argmax(1)
    if not len(best) or not price:
        return best
    place = np.searchsorted(pairs.points, pairs.index)  # (m, 2) among the points that were asked about
    ties = Ties.of(Pairs(place, pairs.same, price * pairs.weight), believed, len(best))
    unary = scores.astype(np.float64)
    starts = [best, *(labels[ties.group] for labels in _of_groups(ties.members @ unary, ties.of_groups()))]
    found = [_climb(unary, ties, labels) for labels in starts]
    return max(found, key=lambda labels: ties.worth(unary, labels))


def lesson(labels: Array, is_asked: Array, insisted: Array, codes: Array) -> Array:
    """What to teach points (n,) in these clusters, of which those that were asked about insist on others.

    Each of the others goes where the asked point of its cluster that has the nearest code goes: a cluster that the
    answers part is parted as a whole, and one that they leave alone, or never mention, stays as it is.
    """
    taught = labels.copy()
    taught[is_asked] = insisted
    for cluster in np.unique(labels[is_asked & (taught != labels)]):
        asked, others = (np.flatnonzero((labels == cluster) & chosen) for chosen in (is_asked, ~is_asked))
        if len(others):
            taught[others] = taught[asked[pairwise_distances_argmin(codes[others], codes[asked])]]
    return taught


@dataclass(frozen=True)
class Ties:
    """What the answers make of labels. What follows from them is never written out: it may be half of p² answers."""

    direct: sp.csr_array  # (p, p) what it is worth for two points to be in one cluster
    group: Array  # (p,)
    push: sp.csr_array  # (G, G) what it costs any point of one group to be in one cluster with any of the other

    @classmethod
    def of(cls, pairs: Pairs, believed: Array, n: int) -> Ties:
        """Nothing follows from answers that are not believed, or that contradict others: they count one by one."""
        group, _ = trusted_components(pairs[believed], n)
        ends = group[pairs.index]
        follows = believed & ~pairs.same & (ends[:, 0] != ends[:, 1])
        direct = np.where(pairs.same, 1, -1) * pairs.weight
        n_groups = int(group.max()) + 1
        weights = pairs.weight[follows], np.ones(int(follows.sum()))
        push, count = (link_graph(ends[follows], n_groups, weight) for weight in weights)
        push.data /= count.data  # several answers say the same of two groups
        return cls(link_graph(pairs.index[~follows], n, direct[~follows]), group, push)

    @property
    def members(self) -> sp.csr_array:
        """Which points a group has, (G, p)."""
        n = len(self.group)
        return sp.csr_array((np.ones(n), (self.group, np.arange(n))))

    def of_groups(self) -> Ties:
        """The same between whole groups."""
        members = self.members
        size = sp.diags_array(members.sum(1))
        direct = members @ self.direct @ members.T - size @ self.push @ size
        direct = sp.csr_array(direct - sp.diags_array(direct.diagonal()))  # a group cannot leave itself
        return Ties(direct, np.arange(direct.shape[0]), sp.csr_array(direct.shape))

    def worth(self, unary: Array, labels: Array) -> float:
        """The sum that is maximised."""
        chosen = _chosen(labels, unary.shape[1])
        crowd = self.members @ chosen
        answers = (chosen * (self.direct @ chosen)).sum() - (crowd * (self.push @ crowd)).sum()
        return float((unary * chosen).sum() + answers / 2)


def _of_groups(unary: Array, ties: Ties) -> list[Array]:
    """Labels of groups with these scores (G, K): from where each likes it best, and from choosing in turn."""
    in_turn = np.argsort(-np.ptp(unary, axis=1), kind="stable")  # those first to whom it matters most
    return [_climb(unary, ties, labels) for labels in (unary.argmax(1), _one_by_one(unary, ties.direct, in_turn))]


def _one_by_one(unary: Array, links: sp.csr_array, order: Array) -> Array:
    """Labels chosen one after the other, each with those before it in mind."""
    worth, labels = unary.copy(), np.empty(len(unary), dtype=np.int64)
    for i in order:
        labels[i] = worth[i].argmax()
        linked = slice(links.indptr[i], links.indptr[i + 1])
        worth[links.indices[linked], labels[i]] += links.data[linked]
    return labels


def _climb(unary: Array, ties: Ties, labels: Array) -> Array:
    """Move one after the other, the keenest first, to the cluster that is worth most to it, until nobody wants to."""
    rows, labels = np.arange(len(unary)), labels.copy()
    chosen = _chosen(labels, unary.shape[1])
    worth = unary + ties.direct @ chosen  # (p, K)
    crowd = ties.push @ (ties.members @ chosen)  # (G, K) what the points of other groups cost one of this group
    for _ in range(SWEEPS):
        value = worth - crowd[ties.group]
        gain = value.max(1) - value[rows, labels]
        keen = np.flatnonzero(gain > 1e-9)
        if not len(keen):
            break
        for i in keen[np.argsort(-gain[keen], kind="stable")]:
            value = worth[i] - crowd[ties.group[i]]
            old, new = labels[i], value.argmax()
            if value[new] - value[old] > 1e-9:  # what moved before may have changed its mind
                for links, row, table in ((ties.direct, i, worth), (ties.push, ties.group[i], crowd)):
                    linked = slice(links.indptr[row], links.indptr[row + 1])
                    table[links.indices[linked], old] -= links.data[linked]
                    table[links.indices[linked], new] += links.data[linked]
                labels[i] = new
    return labels


def _chosen(labels: Array, n_clusters: int) -> Array:
    """1 where a point is, else 0, (p, K)."""
    return np.asarray(np.eye(n_clusters)[labels])
