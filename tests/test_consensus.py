"""The default start: views of the data, clusterings that vote, and starts that differ."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from numpy.random import RandomState
from sklearn.metrics import adjusted_rand_score

from pairmargin import consensus
from pairmargin.consensus import (
    LIKELY,
    UNLIKELY,
    assembled,
    consensus_space,
    consensus_starts,
    likely_enough,
    same_cluster_odds,
    views,
)
from pairmargin.inputs import Input, Scaling
from pairmargin.kmeans import kmeans_runs
from pairmargin.metrics import clustering_accuracy
from pairmargin.pairs import Pairs, sample_pairs
from pairmargin.sample import among
from pairmargin.start import pair_shaped_head


def clouds(seed: int, n_clusters: int = 3, n_dims: int = 4, n: int = 90) -> tuple[np.ndarray, np.ndarray]:
    """Clouds of variance 1 far from one another, of mean 0, and the cloud of each point."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % n_clusters
    points = 12 * np.eye(n_dims)[:n_clusters][truth] + rng.normal(size=(n, n_dims))
    return points - points.mean(0), truth


def rings(n: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two rings, one inside the other: round clusters they are not."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 2
    angle, radius = rng.uniform(0, 2 * np.pi, n), np.array([1.0, 4.0])[truth] + rng.normal(scale=0.1, size=n)
    points = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    return points - points.mean(0), truth


def answers(truth: np.ndarray, m: int, seed: int) -> Pairs:
    rng = np.random.default_rng(seed)
    index = np.array([rng.choice(len(truth), 2, replace=False) for _ in range(m)], dtype=int).reshape(m, 2)
    return Pairs(index, truth[index[:, 0]] == truth[index[:, 1]])


def as_input(points: np.ndarray) -> Input:
    return Scaling.learn(points, "gaussian").apply(points, torch.device("cpu"))


def starts_of(points: np.ndarray, n_clusters: int, pairs: Pairs, seed: int = 0, n: int = 1) -> list[consensus.Start]:
    return consensus_starts(points, as_input(points), n_clusters, pairs, RandomState(seed), n)


def test_clusters_that_are_not_round_are_found() -> None:
    points, truth = rings()
    pairs = answers(truth, 40, seed=1)

    (found,) = starts_of(points, 2, pairs)

    assert clustering_accuracy(truth[found.rows], found.labels) == 1
    head, bias = pair_shaped_head(points, 2, pairs, RandomState(0))
    assert clustering_accuracy(truth, (points @ head.T + bias).argmax(1)) < 0.8  # k-means in shaped codes alone


def test_starts_are_a_function_of_the_seed() -> None:
    points = np.random.default_rng(0).normal(size=(150, 5))  # no clusters at all, so that starts differ
    first, second = (starts_of(points - points.mean(0), 6, Pairs.empty(), seed=7, n=4) for _ in range(2))
    assert len(first) == len(second) > 1
    assert all(np.array_equal(one.labels, other.labels) for one, other in zip(first, second, strict=True))


@pytest.mark.parametrize("n_pairs", [0, 1, 60])
def test_clouds_are_found_from_any_number_of_answers(n_pairs: int) -> None:
    points, truth = clouds(3)
    (found,) = starts_of(points, 3, answers(truth, n_pairs, 0))
    assert clustering_accuracy(truth, found.labels) == 1


def test_a_start_that_is_no_news_is_dropped_and_the_others_differ() -> None:
    points, truth = clouds(3)
    assert len(starts_of(points, 3, answers(truth, 30, 0), n=5)) == 1  # all see the same three clouds

    points = np.random.default_rng(0).normal(size=(150, 5))  # no clusters at all
    several = starts_of(points - points.mean(0), 6, Pairs.empty(), n=4)
    assert len(several) > 1
    for i, one in enumerate(several):
        assert all(adjusted_rand_score(one.labels, other.labels) < consensus.NO_NEWS for other in several[:i])


def test_parts_of_a_view_have_mean_0_and_length_1_each() -> None:
    points, truth = clouds(1, n_dims=6)
    found = views(points, 100 * points, answers(truth, 30, 0), 3)

    for view, n_vectors in zip(found, (3, 4, 4), strict=True):  # K, 3K/2, and 2(K - 1) directions of 3K
        assert view.shape == (len(points), 4 + 2 * n_vectors)  # 2(K - 1) directions of the codes, and two graphs
        np.testing.assert_allclose(view.mean(0), 0, atol=1e-9)
        for part in np.split(view, [4, 4 + n_vectors], axis=1):
            assert (part**2).sum(1).mean() == pytest.approx(1)


def test_consensus_space_holds_the_votes_written_out() -> None:
    rng = np.random.default_rng(0)
    runs, votes = [rng.integers(0, 3, 20) for _ in range(4)], np.array([1.0, 0.5, 0.2, 0.1])

    space = consensus_space(runs, votes, n_dims=100)

    together = sum(
        v / votes.sum() * (run[:, None] == run) / np.bincount(run)[run] for run, v in zip(runs, votes, strict=True)
    )
    value, vector = np.linalg.eigh(20 * together)
    np.testing.assert_allclose(vector[:, -1], vector[0, -1], atol=1e-9)  # the first eigenvector is the same for all
    np.testing.assert_allclose(space @ space.T, (vector[:, :-1] * value[:-1]) @ vector[:, :-1].T, atol=1e-9)


def test_who_agrees_with_the_answers_is_heard() -> None:
    truth = np.arange(40) % 2
    crowd = [np.arange(40) // 20] * 5  # five clusterings that see something else
    runs = [consensus.Clustering(labels, 1.0) for labels in (truth, *crowd)]
    pairs = answers(truth, 30, 0)

    votes = consensus._votes(runs, pairs)

    assert votes[0] == 1
    assert votes[1:].sum() < 0.01
    first = consensus_space([run.labels for run in runs], votes, 3)[:, -1]
    assert clustering_accuracy(truth, (first > 0).astype(int)) == 1


def test_of_very_many_points_a_sample_is_looked_at_that_begins_with_those_in_pairs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(consensus, "SAMPLE", 60)
    points, truth = clouds(0, n=300)
    pairs = answers(truth, 12, seed=0)

    (found,) = starts_of(points, 3, pairs)

    assert len(found.rows) == len(np.unique(found.rows)) == 60
    assert np.isin(pairs.points, found.rows).all()
    assert clustering_accuracy(truth[found.rows], found.labels) == 1


def test_where_even_the_points_in_pairs_are_too_many_the_pairs_that_remain_keep_their_points(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(consensus, "SAMPLE", 60)
    truth = np.arange(300) % 3
    pairs = answers(truth, 200, seed=0)

    rows = consensus._rows_to_look_at(300, pairs, RandomState(0))
    kept = among(pairs, rows, 300)

    assert len(rows) == 60
    whole = {(*pair, same) for pair, same in zip(pairs.index.tolist(), pairs.same.tolist(), strict=True)}
    assert 0 < len(kept) < len(pairs)
    assert {(*pair, same) for pair, same in zip(rows[kept.index].tolist(), kept.same.tolist(), strict=True)} <= whole


def test_sparse_inputs_are_looked_at_by_their_main_components() -> None:
    dense, _ = clouds(2, n_dims=5)
    sparse = sp.csr_array(np.where(np.abs(dense) > 3, dense, 0))
    scaled = Scaling.learn(sparse, "gaussian").apply(sparse, torch.device("cpu"))

    seen = scaled.points()

    plain = scaled.rows(slice(None)).numpy()
    apart = ((seen[:, None] - seen) ** 2).sum(2), ((plain[:, None] - plain) ** 2).sum(2)
    np.testing.assert_allclose(*apart, atol=1e-6 * apart[1].max())


def test_pieces_are_joined_where_votes_and_answers_make_it_likeliest() -> None:
    """Of four pieces of ten points, most votes have 0 with 1, half of them 1 with 2, and the answers part 0 from 1."""
    pieces = np.repeat(np.arange(4), 10)
    runs = [np.array(clusters)[pieces] for clusters in ([0, 0, 1, 2], [0, 0, 0, 1], [0, 1, 1, 2])]
    odds = same_cluster_odds(pieces, runs, np.array([2.0, 1.0, 1.0]))
    np.testing.assert_allclose(odds, odds.T)
    assert odds[0, 1] > odds[1, 2] == 0 > odds[0, 2] > odds[2, 3]

    def clusters(n: int, pairs: Pairs) -> list[int]:
        return assembled(pieces, odds, pairs, n)[::10].tolist()

    assert clusters(3, Pairs.empty()) == [0, 0, 1, 2]
    assert clusters(2, Pairs.empty()) == [0, 0, 0, 1]
    apart = Pairs.from_lists(cannot_link=[(k, 10 + k) for k in range(5)])
    assert clusters(3, apart) == [0, 1, 1, 2]
    assert clusters(4, apart) == [0, 1, 2, 3]
    as_one = Pairs.from_lists(must_link=[(0, 30)], cannot_link=[(k, 10 + k) for k in range(5)])
    assert clusters(2, as_one) == [0, 1, 1, 0]  # nothing but one answer has 0 with 3; nothing has the rest with either


def test_pieces_stay_apart_where_too_little_speaks_for_one_cluster() -> None:
    pieces = np.repeat(np.arange(3), 10)
    odds = np.array([[0.0, -0.5, -2.0], [-0.5, 0.0, -2.0], [-2.0, -2.0, 0.0]])
    assert assembled(pieces, odds, Pairs.empty(), 1, least=-1)[::10].tolist() == [0, 0, 1]
    assert assembled(pieces, odds, Pairs.from_lists(must_link=[(0, 20)]), 1, least=-1)[::10].tolist() == [0, 0, 0]
    apart = Pairs.from_lists(cannot_link=[(0, 10)])
    assert assembled(pieces, odds, apart, 1, least=-1)[::10].tolist() == [0, 1, 2]


def test_the_fewer_same_answers_the_less_likely_need_one_cluster_be() -> None:
    def enough(n_same: int) -> float:
        return likely_enough(Pairs.from_lists([(0, k) for k in range(1, n_same + 1)], [(0, 5_000)]))

    assert enough(0) == enough(1) == UNLIKELY
    assert enough(60) == 2 * LIKELY
    assert UNLIKELY < enough(25) < enough(100) < enough(1000) < LIKELY


@pytest.mark.parametrize("n_pairs", [30, 60, 200])
def test_classes_of_very_different_sizes_are_put_together_from_few_answers(n_pairs: int) -> None:
    """Two of twenty classes have three quarters of the points; k-means with 20 clusters tears them up."""
    rng = np.random.default_rng(0)
    sizes = [500, 250] + [14] * 18
    truth = np.repeat(np.arange(20), sizes)
    points = (6.0 * rng.standard_normal((20, 5)))[truth] + rng.standard_normal((len(truth), 5))
    points[truth < 2] += 3.0 * rng.standard_normal(((truth < 2).sum(), 5)) * [1, 1, 0, 0, 0]
    points -= points.mean(0)
    torn = kmeans_runs(points.astype(np.float32), 20, np.arange(3))[0].labels
    starts = starts_of(points, 20, sample_pairs(truth, n_pairs, random_state=0), n=2)
    assert clustering_accuracy(truth, torn) < 0.5
    for start in starts:
        assert start.labels.max() < 20
        assert clustering_accuracy(truth, start.labels) > 0.7


def test_pieces_that_nobody_is_in_are_not_counted() -> None:
    pieces = np.array([0, 0, 3, 3, 5])
    odds = np.zeros((6, 6))
    odds[0, 3] = odds[3, 0] = 1
    assert assembled(pieces, odds, Pairs.empty(), 2).tolist() == [0, 0, 0, 0, 1]
    assert assembled(pieces, odds, Pairs.empty(), 4).tolist() == [0, 0, 1, 1, 2]


def test_a_start_of_pieces_finds_two_clusters_that_k_means_takes_for_one() -> None:
    """A long cluster beside two small close ones: three round clusters would cut the long one and join the small."""
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], [200, 50, 50])
    points = rng.normal(scale=0.2, size=(300, 2))
    points[:200, 0] += np.linspace(-8, 8, 200)
    points[200:, 1] += 4
    points[250:, 0] += 1.5
    points -= points.mean(0)
    best = dict.fromkeys((1, 2), 0.0)
    for n_pieces in best:
        pieces = kmeans_runs(points.astype(np.float32), 3 * n_pieces, np.arange(5))
        odds = np.zeros((3 * n_pieces, 3 * n_pieces))
        found = [assembled(run.labels, odds, answers(truth, 40, 1), 3) for run in pieces]
        best[n_pieces] = max(clustering_accuracy(truth, labels) for labels in found)
    assert best[1] < 0.8 < 0.95 < best[2]
