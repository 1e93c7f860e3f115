"""How many clusters the pairs call for, when classes may differ much in size.

k-means cuts the data into clusters of about one size. With as many clusters as there are classes it tears a class of
half the data into pieces. So the start asks the answers how many classes of one size would be as mixed as these are.
If that is far fewer than were asked for, it takes four times as many as that and joins those with must-links across;
then it parts what must-links should hold together, were it one class, and do not.

symbol | name        | meaning
a      | `kept`      | share of the must-links within one cluster
b      | `confused`  | share of the cannot-links within one cluster
q      | `together`  | share of all pairs of points within one cluster, which needs no answers
π      | `same_rate` | share of all pairs of points that are the same; q = π a + (1 − π) b

However many of each kind were drawn, a and b can be read off them, and so can π. Of questions that somebody has picked,
only what their answers join tells of π: docs/design/fewer-clusters.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .pairs import Pairs
from .picked import were_picked

Array = NDArray[Any]

TRIED = (2, 3, 5, 8, 12, 20)  # numbers of clusters to read π off
CANDIDATES = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 24, 28, 34, 40, 50, 60, 70, 85, 100)  # to count clusters
MOST = CANDIDATES[-1]
NEARLY = 0.95  # of the best agreement is enough for the fewest clusters
PIECES = 4.0  # clusters for every class of the 1/π that there seem to be
N_FOLDS = 5  # answers that say which pieces to join are not those that judge it
SURE = 0.75  # standard errors of doubt, in favour of the number of clusters asked for
SURELY = 2.0  # standard errors that a share of kept answers is larger than the true one, at the most
ANSWERS_A_PIECE = 5  # picked ones are about pieces: as they grow in number, smaller pieces can be joined
FINER = 1.5  # times as many pieces, at most, where "same" answers can join them
SAME_A_PIECE = 2  # such answers for every one of them
SILENCE = 0.5  # "same" answers that must be missing between the halves of a cluster for it to be parted
TINY = 1e-6  # in place of shares that must not be 0


class Evidence(NamedTuple):
    """What the answers say of a way to cluster, on average over its runs."""

    kept: float
    confused: float
    together: float


def clusters_to_use(n_clusters: int, pairs: Pairs, runs_for: Callable[[int], Sequence[Array]], n_samples: int) -> int:
    """``n_clusters``, or fewer if the answers make it hard to believe that these, `joined`, are not better.

    ``runs_for(k)`` gives the labels (n,) of some runs with k clusters.
    """
    n_same = int(pairs.same.sum())
    if not N_FOLDS <= n_same < len(pairs) or n_clusters <= PIECES:
        return n_clusters  # fewer "same" answers than folds cannot judge each other
    fewer = _by_same_rate(n_clusters, pairs, runs_for)
    if not were_picked(pairs, n_samples):
        return fewer
    fewer = min(fewer, _pieces(n_clusters, pairs, runs_for))
    if fewer > n_clusters / 2:
        return n_clusters
    return min(max(fewer, len(pairs) // ANSWERS_A_PIECE), n_clusters - 1)


def more_pieces(n_pieces: int, n_clusters: int, pairs: Pairs) -> int:
    """A finer number of pieces, up to ``n_clusters``: the same, if "same" answers are too few to join more."""
    return max(min(int(FINER * n_pieces), int(pairs.same.sum()) // SAME_A_PIECE, n_clusters), n_pieces)


def _by_same_rate(n_clusters: int, pairs: Pairs, runs_for: Callable[[int], Sequence[Array]]) -> int:
    """Pieces for every class of the 1/π that there seem to be, if they agree better with the answers than all would."""
    n_same = int(pairs.same.sum())
    asked = _evidence(runs_for(n_clusters), pairs)
    if PIECES / _largest_same_rate(asked, n_same) >= n_clusters:
        return n_clusters
    found = [_joined_evidence(runs_for(k), pairs) for k in TRIED if k < n_clusters]
    same_rate, error = _same_rate(found, len(pairs) - n_same)
    fewer = max(round(PIECES / same_rate), 2)
    if fewer >= n_clusters:
        return n_clusters
    # The doubts all speak for the number that was asked for: it may keep more, and fewer pairs may be the same.
    low = max(same_rate - SURE * error, TINY)
    asked = asked._replace(kept=asked.kept + SURE * np.sqrt(_variance(asked.kept, n_same)))
    return fewer if _rand(_joined_evidence(runs_for(fewer), pairs), low) > _rand(asked, low) else n_clusters


def _pieces(n_clusters: int, pairs: Pairs, runs_for: Callable[[int], Sequence[Array]]) -> int:
    """As few clusters as are enough for what the answers have joined already, at most ``n_clusters``.

    What they join is one class, so π is at least the share of all pairs that lie together then.
    """
    while True:
        share = np.mean([_together(joined(run, pairs)) for run in runs_for(n_clusters)])
        fewer = max(round(PIECES / share), 2)
        if fewer >= n_clusters:
            return n_clusters
        n_clusters = fewer


def count_clusters(pairs: Pairs, runs_for: Callable[[int], Sequence[Array]], n_samples: int) -> int:
    """How many clusters there seem to be: the fewest of which the runs agree nearly best with the answers.

    It stops looking when twice as many as the best so far have been tried.
    """
    found: dict[int, Evidence] = {}
    for k in (k for k in CANDIDATES if k <= max(n_samples // 4, 2)):
        found[k] = _evidence(runs_for(k), pairs)
        same_rate, _ = _same_rate(list(found.values()), int((~pairs.same).sum()))
        rand = {tried: _rand(evidence, same_rate) for tried, evidence in found.items()}
        best = max(rand, key=rand.__getitem__)
        if k >= 2 * best and k >= TRIED[2]:
            break
    return min((tried for tried in rand if rand[tried] >= NEARLY * rand[best]), default=best)  # below 0, none may be


def joined(labels: Array, pairs: Pairs) -> Array:
    """Clusters (n,) after joining, one by one, the two that raise the agreement with the pairs most, while any do."""
    of_a_kind = np.array([pairs.weight[kind].sum() for kind in (~pairs.same, pairs.same)])
    share = pairs.weight / np.maximum(of_a_kind, TINY)[pairs.same.astype(int)]
    return joined_in_turn(labels, answers_between(labels, pairs, share), least=0)


def parted(
    labels: Array,
    pairs: Pairs,
    n_clusters: int,
    halve: Callable[[Array, float], tuple[Array, float]],
    silence: float = SILENCE,
) -> Array:
    """Clusters (n,), at most ``n_clusters``, after parting those that answers would hold together if they were one.

    ``halve(members, missing)`` gives the halves of a cluster, 0 or 1 (s,), and how many "same" answers are absent
    between them, if every pair of points there should have ``missing`` of them. The larger a cluster, beside two
    classes of average size, the more must be absent. The last clusters come first, in case there is no room for all.
    """
    n, missing = len(labels), missing_rate(labels, pairs)
    waiting = list(range(int(labels.max()) + 1))
    while waiting and labels.max() + 1 < n_clusters:
        cluster = waiting.pop()
        members = np.flatnonzero(labels == cluster)
        enough = silence * max(len(members) / (2 * n / n_clusters), 1)
        if len(members) < 2 or missing * len(members) ** 2 / 2 <= enough:
            continue
        half, absent = halve(members, missing)
        if absent > enough and half.any() and not half.all():
            labels = labels.copy()
            labels[members[half == 1]] = labels.max() + 1
            waiting += [cluster, int(labels.max())]
    return labels


def missing_rate(labels: Array, pairs: Pairs) -> float:
    """How many more "same" answers than "different" ones a pair of points of one class should have.

    With answers as they come, the two are equal, and so they are taken to be where questions were picked.
    """
    share, n, n_same = _together(labels), len(labels), int(pairs.same.sum())
    if share == 1 or were_picked(pairs, n):
        return 0.0
    return float(n_same / share - (len(pairs) - n_same) / (1 - share)) / n**2


def between_halves(half: Array, members: Array, n: int, pairs: Pairs, missing: float) -> tuple[float, float]:
    """The "same" answers that should lie between halves of some of n points; those that do, less "different" ones."""
    side = np.full(n, 2)  # neither
    side[members] = half
    said = float(answers_between(side, pairs, pairs.weight)[0, 1])
    return 2 * missing * float(np.bincount(half, minlength=2).prod()), said


def answers_between(labels: Array, pairs: Pairs, weight: Array) -> Array:
    """What the "same" answers between two clusters weigh, less the "different" ones, (m, m)."""
    n_clusters = int(labels.max()) + 1
    said = np.zeros((n_clusters, n_clusters))
    for kind, sign in ((pairs.same, 1.0), (~pairs.same, -1.0)):
        ends = labels[pairs.index[kind]]  # (·, 2)
        np.add.at(said, (ends[:, 0], ends[:, 1]), sign * weight[kind])
    return said + said.T


def joined_in_turn(
    labels: Array, said: Array, odds: Array | float = 0.0, n_clusters: int = 1, least: float = -np.inf
) -> Array:
    """Clusters (n,) after joining, one by one, the two with the most for it, down to ``n_clusters``.

    What speaks for it must be more than ``least``: what is ``said`` of two clusters (m, m), which adds up, and the
    ``odds`` (m, m), of which joined ones have the mean over their points.
    """
    name, size = np.arange(len(said)), np.bincount(labels, minlength=len(said)).astype(np.float64)
    said, sums = said.copy(), odds * np.outer(size, size)
    for _ in range(np.count_nonzero(size) - n_clusters):
        worth = sums / np.maximum(np.outer(size, size), 1) + said
        worth[size == 0], worth[:, size == 0] = -np.inf, -np.inf
        np.fill_diagonal(worth, -np.inf)
        if worth.max() <= least:
            break
        one, other = np.unravel_index(worth.argmax(), worth.shape)
        for table in (sums, said):
            table[one] += table[other]
            table[:, one] += table[:, other]
        size[one], size[other] = size[one] + size[other], 0
        name[name == other] = one
    return np.asarray(np.unique(name[labels], return_inverse=True)[1])


def _evidence(runs: Sequence[Array], pairs: Pairs) -> Evidence:
    """The shares of runs as they are."""
    return _shares(np.mean([_inside(labels, pairs) for labels in runs], axis=0), runs, pairs)


def _joined_evidence(runs: Sequence[Array], pairs: Pairs) -> Evidence:
    """The shares of runs after joining; every answer is judged by clusters that others have joined."""
    fold = np.arange(len(pairs)) % N_FOLDS
    inside = np.zeros(len(pairs))
    for labels in runs:
        for f in np.unique(fold):
            inside[fold == f] += _inside(joined(labels, pairs[fold != f]), pairs[fold == f]) / len(runs)
    return _shares(inside, [joined(labels, pairs) for labels in runs], pairs)


def _inside(labels: Array, pairs: Pairs) -> Array:
    """Which pairs lie within one cluster."""
    return np.asarray(labels[pairs.index[:, 0]] == labels[pairs.index[:, 1]])


def _shares(inside: Array, runs: Sequence[Array], pairs: Pairs) -> Evidence:
    kept, confused = (float(np.average(inside[kind], weights=pairs.weight[kind])) for kind in (pairs.same, ~pairs.same))
    return Evidence(kept, confused, float(np.mean([_together(labels) for labels in runs])))


def _together(labels: Array) -> float:
    """The share of all pairs of points that lie within one cluster."""
    return float(((np.bincount(labels) / len(labels)) ** 2).sum())


def _same_rate(found: Sequence[Evidence], n_different: int) -> tuple[float, float]:
    """π from q = π a + (1 − π) b, every way to cluster weighing as much as its b is certain; and its standard error."""
    apart = np.array([max(one.kept - one.confused, TINY) for one in found])
    rates = np.array([one.together - one.confused for one in found]) / apart
    variances = np.array([_variance(one.confused, n_different) for one in found]) / apart**2
    error = float(np.sqrt(variances.min()))  # of the best one: they share their answers, so the rest add little
    return float(np.clip(np.average(rates, weights=1 / variances), TINY, 1)), error


def _largest_same_rate(found: Evidence, n_same: int) -> float:
    """What π can be at most: of all pairs, π a are the same and together, and no more than q are together."""
    kept = found.kept - SURELY * np.sqrt(_variance(found.kept, n_same))
    return float(min(found.together / max(kept, TINY), 1))


def _variance(share: float, n: int) -> float:
    """Of a share of n answers; one answer that is kept is no proof that all would be."""
    careful = (share * n + 1) / (n + 2)
    return careful * (1 - careful) / n


def _rand(found: Evidence, same_rate: float) -> float:
    """The adjusted Rand index: pairs of points rightly together, against what chance puts there."""
    right = min(same_rate * found.kept, found.together)  # no more can be rightly together than are together
    chance = same_rate * found.together
    return (right - chance) / max((same_rate + found.together) / 2 - chance, TINY)
