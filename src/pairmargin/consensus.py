"""The default start: many clusterings of several views of the data, and what they agree on.

======  ======================================================================================================
view    what it is
======  ======================================================================================================
shaped  codes in the directions that bring must-linked points together; good with few answers
graphs  first eigenvectors of two graphs of neighbours, of the shaped codes and of the shaped inputs, with the answers
        in them; good with many answers, and with clusters that are not round
======  ======================================================================================================

How many eigenvectors are best differs from data set to data set, and no answers say so reliably. So k-means looks at
the shaped codes beside K eigenvectors, beside half as many more, and beside three times as many, of which the
must-links then choose the directions. All these clusterings vote on which points belong together, those that agree
with the answers louder. Every other start is what k-means finds in their votes; the rest are put together of pieces,
where votes and answers make it likeliest that two are of one cluster (docs/design/consensus-start.md).

Where the answers call for fewer clusters than were asked for, what k-means finds is pieces to begin with; the starts
are put together of them as long as that is likely enough (docs/design/fewer-clusters.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from .cluster_count import (
    MOST,
    answers_between,
    between_halves,
    clusters_to_use,
    count_clusters,
    joined,
    joined_in_turn,
    more_pieces,
    parted,
)
from .eigen import last_eigenvectors
from .graph import TELEPORT, LinkedGraph, eigenvectors, neighbour_graph, rows_of_length_1
from .inputs import Input
from .kmeans import SAMPLE, Clustering, kmeans_runs, most_compact, two_parts
from .pairs import Pairs
from .sample import among
from .start import (
    N_RUNS,
    N_TRIALS,
    agreement,
    best_run,
    n_directions,
    pair_shaped_directions,
)

Array = NDArray[Any]

RUNS_EACH = 10  # clusterings of every view
MANY = 50  # eigenvectors beyond one for each cluster, of which the must-links choose directions
NO_NEWS = 0.99  # adjusted Rand index of two starts that are as good as one
LOUDNESS = 20.0  # a clustering that keeps 5 % more of the answers has e times the vote
PIECES = 2  # for every cluster of a start that is put together of them; every other start is
ANSWER = 1.5  # what one between two pieces adds to the log odds that they are of one cluster, or takes from them
DOUBT = 0.02  # of votes, however unanimous
LIKELY = -0.3  # log odds that are enough for one cluster, where the answers do not say how many there are
UNHEARD = 60.0  # "same" answers with which twice as low odds are enough
UNLIKELY = -3.0  # log odds that are never enough
FEWEST = 2  # clusters, since there are "different" answers too


class Start(NamedTuple):
    """Clusters of some points, for the network to learn before anything else."""

    rows: Array  # (s,)
    labels: Array  # (s,)


def consensus_starts(
    codes: Array, x: Input, n_clusters: int | None, pairs: Pairs, rng: RandomState, n_starts: int = 1
) -> list[Start]:
    """Cluster the codes and the inputs, which are the same rows, in many ways, and take what they agree on.

    Every start but the first leaves half of the clusterings out, and one that is no news is dropped. Without a number
    of clusters, the answers say how many there are.
    """
    with threadpool_limits(1):  # k-means on several threads adds up in an order that changes from run to run
        rows = _rows_to_look_at(len(codes), pairs, rng)
        codes, inputs, pairs = codes[rows], x.points(rows).astype(np.float64), among(pairs, rows, len(codes))
        seeds = rng.randint(np.iinfo(np.int32).max, size=N_RUNS)
        directions = pair_shaped_directions(codes, pairs, n_directions(n_clusters or MOST))

        def simple_runs(k: int) -> list[Array]:
            shaped = codes @ directions[:, -n_directions(k) :]
            return [run.labels for run in _runs(shaped, k, seeds[:N_TRIALS])]

        if n_clusters is None:
            n_clusters = n_used = count_clusters(pairs, simple_runs, len(codes))
        else:
            n_used = clusters_to_use(n_clusters, pairs, simple_runs, len(codes))
        has_pieces = n_used < n_clusters  # of clusters, to be joined before anyone votes
        looks = views(codes, inputs, pairs, n_used)
        if has_pieces:  # few must-links cannot both choose directions and say what to join
            looks[-1] = codes @ directions[:, -n_directions(n_used) :]
        numbers = [n_used, more_pieces(n_used, n_clusters, pairs)] if has_pieces else [n_used]
        shares = np.split(seeds[:RUNS_EACH], len(numbers))
        runs = [
            run for look in looks for k, share in zip(numbers, shares, strict=True) for run in _runs(look, k, share)
        ]
        if has_pieces:
            runs = [run._replace(labels=joined(run.labels, pairs)) for run in runs]
            n_used = int(np.median([run.labels.max() + 1 for run in runs]))
        most = n_clusters if has_pieces else len(codes)
        shaped = (codes @ directions).astype(np.float32)

        def halve(members: Array, missing: float) -> tuple[Array, float]:
            half = two_parts(shaped[members], seeds[:N_TRIALS])
            expected, said = between_halves(half, members, len(codes), pairs, missing)
            return half, expected if said <= 0 else 0.0

        votes = _votes(runs, pairs)
        found: list[Array] = []
        while len(found) < n_starts:
            heard = rng.choice(len(runs), len(runs) // 2, replace=False) if found else np.arange(len(runs))
            heard_runs, heard_votes = [runs[r].labels for r in heard], votes[heard]
            agreed = consensus_space(heard_runs, heard_votes, 2 * n_used)
            n_pieces = n_used if len(found) % 2 else min(PIECES * n_used, most)
            pieces = _runs(agreed, n_pieces, seeds[:RUNS_EACH])
            odds = partial(same_cluster_odds, runs=heard_runs, votes=heard_votes)
            if has_pieces:
                labels = most_compact(pieces)  # answers that join do not judge as well
                labels = assembled(labels, odds(labels), pairs, FEWEST, likely_enough(pairs))
                found.append(parted(labels, pairs, n_clusters, halve))
            else:
                whole = [run._replace(labels=assembled(run.labels, odds(run.labels), pairs, n_used)) for run in pieces]
                found.append(best_run(whole, pairs))
        return [Start(rows, labels) for labels in _that_differ(found)]


def _that_differ(clusterings: Sequence[Array]) -> list[Array]:
    """Those that are not as good as the same as one before them."""
    kept: list[Array] = []
    for labels in clusterings:
        if all(adjusted_rand_score(labels, other) < NO_NEWS for other in kept):
            kept.append(labels)
    return kept


def disagreement(clusterings: Sequence[Array]) -> Array:
    """How far each of several clusterings is from all others: 1 less their mean adjusted Rand index, but never 0."""
    index = np.array([[adjusted_rand_score(one, other) for other in clusterings] for one in clusterings])
    agreed = (index.sum(1) - 1) / (len(clusterings) - 1)
    return np.asarray(np.maximum(1 - agreed, 1 - NO_NEWS))


def views(codes: Array, inputs: Array, pairs: Pairs, n_clusters: int) -> list[Array]:
    """The ways to look at points with these codes and inputs, each (n, ·)."""
    shaped = [_shaped(z, pairs, n_clusters) for z in (codes, inputs)]
    graphs = [LinkedGraph.build(neighbour_graph(z), pairs) for z in shaped]
    n_vectors = min(3 * n_clusters, n_clusters + MANY, len(codes))
    vectors = [eigenvectors(graph, graph.degree, n_vectors, TELEPORT * graph.tie) for graph in graphs]

    def first(n: int) -> list[Array]:
        return [rows_of_length_1(v[:, -n:]) for v in vectors]  # the first eigenvector is the last column

    graph_views = (
        first(n_clusters),
        first(n_clusters * 3 // 2),
        [_shaped(v, pairs, n_clusters) for v in first(n_vectors)],
    )
    return [np.hstack([_of_length_1(part) for part in (shaped[0], *parts)]) for parts in graph_views]


def consensus_space(runs: Sequence[Array], votes: Array, n_dims: int) -> Array:
    """Points (n, < n_dims) that are the closer, the more votes there are for one cluster of both.

    Two points of a cluster of c points have 1/c of its run's vote. The space holds the first eigenvectors of that
    n × n matrix, which is never written out, without the first, which is the same for all.
    """
    n = len(runs[0])
    shares = [v / np.bincount(run)[run] for run, v in zip(runs, votes / votes.sum(), strict=True)]
    tables = [sp.csr_array((np.sqrt(share), (np.arange(n), run))) for run, share in zip(runs, shares, strict=True)]
    members = sp.hstack(tables, format="csr")  # (n, clusters of all runs)
    shared = (members.T @ members).toarray()
    return np.asarray(np.sqrt(n) * (members @ last_eigenvectors(shared, n_dims))[:, :-1])


def same_cluster_odds(pieces: Array, runs: Sequence[Array], votes: Array) -> Array:
    """Log odds by the votes that a point of one piece and one of another are of one cluster, (m, m)."""
    n_pieces = int(pieces.max()) + 1
    together = np.zeros((n_pieces, n_pieces))
    for run, vote in zip(runs, votes / votes.sum(), strict=True):
        members = sp.csr_array((np.ones(len(run)), (pieces, run)), shape=(n_pieces, int(run.max()) + 1)).toarray()
        share = members / np.maximum(members.sum(1, keepdims=True), 1)
        together += vote * (share @ share.T)
    return np.asarray(np.log((together + DOUBT) / (1 - together + DOUBT)))


def assembled(pieces: Array, odds: Array, pairs: Pairs, n_clusters: int, least: float = -np.inf) -> Array:
    """Join pieces (n,), always the two that are likeliest one cluster, until there are no more than ``n_clusters``.

    Joined ones have the mean of the odds (m, m) of their points, and all the answers. What has no more for it than
    ``least`` stays apart.
    """
    said = ANSWER * answers_between(pieces, pairs, pairs.weight)
    return joined_in_turn(pieces, said, odds, n_clusters, least)


def likely_enough(pairs: Pairs) -> float:
    """The log odds from which two pieces are taken for one cluster, if its size and number are not known.

    The fewer "same" answers there are, the less the clusterings that vote have been joined, and the more cautious are
    their votes.
    """
    return max(LIKELY * (1 + (UNHEARD / max(int(pairs.same.sum()), 1)) ** 2), UNLIKELY)


def _votes(runs: Sequence[Clustering], pairs: Pairs) -> Array:
    """How much each clustering has to say, the loudest 1."""
    agreements = np.array([agreement(run.labels, pairs) for run in runs])
    return np.asarray(np.exp(LOUDNESS * (agreements - agreements.max())))


def _runs(points: Array, n_clusters: int, seeds: Array) -> list[Clustering]:
    """k-means from several seeds; single precision is enough for votes, and twice as fast."""
    return kmeans_runs(points.astype(np.float32), n_clusters, seeds)


def _shaped(points: Array, pairs: Pairs, n_clusters: int) -> Array:
    """Points of mean 0 in the directions that bring must-linked ones together."""
    centred = points - points.mean(0)
    return np.asarray(centred @ pair_shaped_directions(centred, pairs, n_directions(n_clusters)))


def _of_length_1(points: Array) -> Array:
    """Points of mean 0 and mean square length 1."""
    centred = points - points.mean(0)
    length = np.sqrt((centred**2).sum(1).mean())
    return np.asarray(centred / length if length > 0 else centred)


def _rows_to_look_at(n: int, pairs: Pairs, rng: RandomState) -> Array:
    """All rows, or where there are very many, a sample that begins with those in pairs."""
    if n <= SAMPLE:
        return np.arange(n)
    asked = pairs.points if len(pairs.points) <= SAMPLE // 2 else rng.choice(pairs.points, SAMPLE // 2, replace=False)
    others = rng.choice(np.setdiff1d(np.arange(n), asked), SAMPLE - len(asked), replace=False)
    return np.sort(np.concatenate([asked, others]))
