"""Which cluster every training point is in, once all is learned: what the network says and what was answered, together.

The labels z maximise

    Σ_i S_i(z_i)  +  price · ( Σ [z_i = z_j] over must-links  −  Σ [z_i = z_j] over cannot-links ),

the scores of (2) with every answer worth ``price`` margins. A point in no answer takes its best cluster, as in (2).
Where the network cannot learn what was answered, the answers still hold for the points that they are about.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .graph import trusted_components
from .pairs import Pairs

Array = NDArray[Any]

SWEEPS = 50  # enough to end in practice; a bound in case rounding goes in circles


def asked_labels(scores: Array, pairs: Pairs, price: float) -> Array:
    """The clusters (p,) of ``pairs.points``, from their scores (p, K) and the answers.

    Whole components of the must-links move first, then points one by one: only together can the points of a component
    change their mind, and only alone can one of them leave it.
    """
    best: Array = scores.argmax(1)
    if not len(best) or not price:
        return best
    place = np.searchsorted(pairs.points, pairs.index)  # (m, 2) among the points that were asked about
    unary = scores.astype(np.float64)
    answers = Pairs(place, pairs.same, price * pairs.weight)
    links = _signed(answers.index, np.where(answers.same, 1, -1) * answers.weight, len(best))
    found = [_climb(unary, links, labels) for labels in (best, _by_components(unary, answers))]
    return max(found, key=lambda labels: _worth(unary, links, labels))


def _by_components(unary: Array, pairs: Pairs) -> Array:
    """The labels of points where every component of the must-links takes one."""
    component, _ = trusted_components(pairs, len(unary))
    n_components = int(component.max()) + 1
    members = sp.csr_array((np.ones(len(unary)), (component, np.arange(len(unary)))), shape=(n_components, len(unary)))
    apart = ~pairs.same & (component[pairs.index[:, 0]] != component[pairs.index[:, 1]])
    links = _signed(component[pairs.index[apart]], -pairs.weight[apart], n_components)
    together = members @ unary
    return _climb(together, links, together.argmax(1))[component]


def _signed(index: Array, weight: Array, n: int) -> sp.csr_array:
    """What it is worth for two points to be in one cluster, both ways round, (n, n)."""
    row, column = np.concatenate((index, index[:, ::-1])).T
    return sp.csr_array((np.tile(weight, 2), (row, column)), shape=(n, n))


def _climb(unary: Array, links: sp.csr_array, labels: Array) -> Array:
    """Move one after the other, the keenest first, to the cluster that is worth most to it, until nobody wants to."""
    n, n_clusters = unary.shape
    rows = np.arange(n)
    labels = labels.copy()
    worth = unary + (links @ sp.csr_array((np.ones(n), (rows, labels)), shape=(n, n_clusters))).toarray()  # (n, K)
    for _ in range(SWEEPS):
        gain = worth.max(1) - worth[rows, labels]
        keen = np.flatnonzero(gain > 1e-9)
        if not len(keen):
            break
        for i in keen[np.argsort(-gain[keen], kind="stable")]:
            old, new = labels[i], worth[i].argmax()
            if worth[i, new] - worth[i, old] > 1e-9:  # what moved before may have changed its mind
                linked = slice(links.indptr[i], links.indptr[i + 1])
                worth[links.indices[linked], old] -= links.data[linked]
                worth[links.indices[linked], new] += links.data[linked]
                labels[i] = new
    return labels


def _worth(unary: Array, links: sp.csr_array, labels: Array) -> float:
    """The sum that is maximised."""
    ties = links.tocoo()
    together = labels[ties.row] == labels[ties.col]
    return float(unary[np.arange(len(labels)), labels].sum() + ties.data[together].sum() / 2)
