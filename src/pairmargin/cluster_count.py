"""How many clusters the pairs call for, when classes may differ much in size.

k-means cuts the data into clusters of about one size. With as many clusters as there are classes it tears a class of
half the data into pieces, so the start also tries fewer clusters, joins pieces that must-links lie across, and takes
what the answers prefer: the largest adjusted Rand index, as far as they can tell it.

symbol | name        | meaning
a      | `kept`      | share of the must-links within one cluster
b      | `confused`  | share of the cannot-links within one cluster
q      | `together`  | share of all pairs of points within one cluster, which needs no answers
π      | `same_rate` | share of all pairs of points that are the same; q = π a + (1 − π) b

However the answers were picked, a and b can be read off them, and so can π: docs/design/fewer-clusters.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .pairs import Pairs

Array = NDArray[Any]

LADDER = (2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200)  # numbers of clusters that are tried
N_FOLDS = 5  # answers that say which pieces to join are not those that judge it
TINY = 1e-6  # in place of shares that must not be 0
SURE = 2.0  # standard errors by which fewer clusters must be better to be preferred


class Evidence(NamedTuple):
    """What the answers say of a way to cluster, on average over its runs."""

    kept: float
    confused: float
    together: float


def clusters_to_use(n_clusters: int, pairs: Pairs, runs_for: Callable[[int], Sequence[Array]]) -> int:
    """``n_clusters``, or fewer if the answers make it hard to believe that they are not better.

    ``runs_for(k)`` gives the labels of some runs with k clusters; fewer clusters are judged after `joined`.
    """
    n_same = int(pairs.same.sum())
    if not 0 < n_same < len(pairs):
        return n_clusters
    fewer = [k for k in LADDER if k < n_clusters]
    found = {k: _evidence(runs_for(k), k, pairs, join=True) for k in fewer}
    found[n_clusters] = _evidence(runs_for(n_clusters), n_clusters, pairs, join=False)
    same_rate, error = _same_rate(list(found.values()), len(pairs) - n_same)
    best, asked = max(found, key=lambda k: _rand(found[k], same_rate)), found[n_clusters]
    # The doubts all speak for the number that was asked for: it may keep more, and fewer pairs may be the same.
    careful = asked._replace(kept=asked.kept + SURE * np.sqrt(_variance(asked.kept, n_same)))
    low = max(same_rate - SURE * error, TINY)
    return best if _rand(found[best], low) > _rand(careful, low) else n_clusters


def joined(labels: Array, n_clusters: int, pairs: Pairs) -> Array:
    """Clusters (n,) after joining, one by one, the two that raise the agreement with the pairs most, while any do."""
    votes = np.zeros((n_clusters, n_clusters))
    for kind, sign in ((pairs.same, 1.0), (~pairs.same, -1.0)):
        ends = labels[pairs.index[kind]]  # (m, 2)
        np.add.at(votes, (ends[:, 0], ends[:, 1]), sign * pairs.weight[kind] / max(pairs.weight[kind].sum(), 1e-300))
    votes += votes.T
    np.fill_diagonal(votes, -np.inf)
    name = np.arange(n_clusters)
    while votes.max() > 0:
        one, other = np.unravel_index(votes.argmax(), votes.shape)
        votes[one] += votes[other]
        votes[:, one] += votes[:, other]
        votes[other], votes[:, other], votes[one, one] = -np.inf, -np.inf, -np.inf
        name[name == other] = one
    return np.asarray(np.unique(name[labels], return_inverse=True)[1])


def _evidence(runs: Sequence[Array], n_clusters: int, pairs: Pairs, *, join: bool) -> Evidence:
    """The shares of one way to cluster; with ``join``, every answer is judged by clusters that others have joined."""
    inside, together = np.zeros(len(pairs)), 0.0
    fold = np.arange(len(pairs)) % min(N_FOLDS, len(pairs))
    for labels in runs:
        sizes = np.bincount(joined(labels, n_clusters, pairs) if join else labels) / len(labels)
        together += float((sizes**2).sum()) / len(runs)
        for f in range(fold.max() + 1):
            final = joined(labels, n_clusters, pairs[fold != f]) if join else labels
            judged = pairs.index[fold == f]
            inside[fold == f] += (final[judged[:, 0]] == final[judged[:, 1]]) / len(runs)
    share = [np.average(inside[kind], weights=pairs.weight[kind]) for kind in (pairs.same, ~pairs.same)]
    return Evidence(float(share[0]), float(share[1]), together)


def _same_rate(found: list[Evidence], n_different: int) -> tuple[float, float]:
    """π from q = π a + (1 − π) b, every way to cluster weighing as much as its b is certain; and its standard error."""
    apart = np.array([max(one.kept - one.confused, TINY) for one in found])
    rates = np.array([one.together - one.confused for one in found]) / apart
    variances = np.array([_variance(one.confused, n_different) for one in found]) / apart**2
    error = float(np.sqrt(variances.min()))  # of the best one: they share their answers, so the rest add little
    return float(np.clip(np.average(rates, weights=1 / variances), TINY, 1)), error


def _variance(share: float, n: int) -> float:
    """Of a share of n answers; one answer that is kept is no proof that all would be."""
    careful = (share * n + 1) / (n + 2)
    return careful * (1 - careful) / n


def _rand(found: Evidence, same_rate: float) -> float:
    """The adjusted Rand index: pairs of points rightly together, against what chance puts there."""
    right = min(same_rate * found.kept, found.together)  # no more can be rightly together than are together
    chance = same_rate * found.together
    return (right - chance) / max((same_rate + found.together) / 2 - chance, 1e-12)
