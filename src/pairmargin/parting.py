"""What a trained network lumps together, though the answers do not hold it together.

Where half of the answers are drawn among pairs that are the same, a class has many "same" answers within it. If they
are missing between the halves of a cluster, it is two. It takes halves that find the classes: the parts that a graph of
neighbours falls into, in directions that the cluster's own must-links choose. They have heard these answers, so that
each answer judges halves in which it had no voice (docs/design/fewer-clusters.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .cluster_count import N_FOLDS, between_halves, parted
from .graph import halves_of_graph
from .inputs import Input
from .pairs import Pairs
from .sample import among
from .start import pair_shaped_directions

Array = NDArray[Any]

SURE_SILENCE = 5.0  # "same" answers that must be missing
OUTWEIGHED_BY = 3.0  # missing ones, each that is there: one point in twenty may be in the wrong half
N_DIRECTIONS = 12  # of the points of a cluster


def parted_again(labels: Array, x: Input, pairs: Pairs, n_clusters: int, seeds: Array) -> Array:
    """Clusters (n,), at most ``n_clusters``, after parting those that are surely more than one class, largest first."""
    n, fold = len(labels), np.arange(len(pairs)) % N_FOLDS

    def halves(points: Array, members: Array, heard: Pairs) -> Array:
        inside = among(heard, members, n)
        return halves_of_graph(points @ pair_shaped_directions(points, inside, N_DIRECTIONS), inside, seeds)

    def halve(members: Array, missing: float) -> tuple[Array, float]:
        points = x.points(members).astype(np.float64)
        points -= points.mean(0)
        absent = 0.0
        for f in range(N_FOLDS):
            half, judges = halves(points, members, pairs[fold != f]), pairs[fold == f]
            expected, said = between_halves(half, members, n, judges, missing / N_FOLDS)
            absent += expected - OUTWEIGHED_BY * said
        return halves(points, members, pairs), absent

    by_size = np.argsort(np.argsort(np.bincount(labels), kind="stable"))
    return parted(by_size[labels], pairs, n_clusters, halve, SURE_SILENCE)
