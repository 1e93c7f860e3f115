"""Where W starts: the nearest-mean rule, and the space that the must-links shape."""

from __future__ import annotations

import warnings
from itertools import permutations

import numpy as np
import pytest
from numpy.random import RandomState

from pairmargin import cluster_count, start
from pairmargin.kmeans import kmeans
from pairmargin.metrics import clustering_accuracy
from pairmargin.pairs import Pairs
from pairmargin.start import (
    agreement,
    code_spread,
    nearest_mean_head,
    pair_shaped_directions,
    pair_shaped_head,
    start_head,
)

INITS = pytest.mark.parametrize("init", ["random", "k-means", "pairs"])


def centred(codes: np.ndarray) -> np.ndarray:
    return codes - codes.mean(0)


def clouds(
    seed: int, n_clusters: int = 3, n_dims: int = 4, n: int = 90, distance: float = 12.0
) -> tuple[np.ndarray, np.ndarray]:
    """Clouds of variance 1 far from one another: centred codes, and the cloud of each."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % n_clusters
    corners = rng.permutation(np.vstack([np.eye(n_dims), -np.eye(n_dims)]))[:n_clusters]
    return centred(distance * corners[truth] + rng.normal(size=(n, n_dims))), truth


def drowned(seed: int, n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Two classes that differ in the first of six directions, while the second varies four times as much."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 2
    codes = rng.normal(scale=[0.3, 4, 0.3, 0.3, 0.3, 0.3], size=(n, 6))
    codes[:, 0] += 2 * truth
    return centred(codes), truth


def answers(truth: np.ndarray, m: int, seed: int) -> Pairs:
    rng = np.random.default_rng(seed)
    index = np.array([rng.choice(len(truth), 2, replace=False) for _ in range(m)])
    return Pairs(index, truth[index[:, 0]] == truth[index[:, 1]])


def accuracy(labels: np.ndarray, truth: np.ndarray) -> float:
    """The share of points that are right under the best naming of the clusters."""
    n_clusters = max(labels.max(), truth.max()) + 1
    return max(float(np.mean(np.array(naming)[labels] == truth)) for naming in permutations(range(n_clusters)))


def scores_of(codes: np.ndarray, head: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    return codes @ head[0].T + head[1]


def margins(scores: np.ndarray) -> np.ndarray:
    ordered = np.sort(scores, axis=1)
    return ordered[:, -1] - ordered[:, -2]


# The nearest-mean rule


@pytest.mark.parametrize("n_clusters", [2, 3, 6])
@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_best_cluster_is_the_one_with_the_nearest_mean_and_the_median_margin_is_1(n_clusters: int, unit: float) -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        codes = unit * centred(rng.normal(size=(40, 5)))
        labels = rng.permutation(np.arange(40) % n_clusters)
        means = np.array([codes[labels == k].mean(0) for k in range(n_clusters)])
        nearest = ((codes[:, None] - means[None]) ** 2).sum(2).argmin(1)
        scores = scores_of(codes, nearest_mean_head(codes, labels))
        np.testing.assert_array_equal(scores.argmax(1), nearest)
        assert np.median(margins(scores)) == pytest.approx(1)


@pytest.mark.parametrize("empty", [[0], [3], [0, 2], [0, 1, 3]])
def test_a_label_that_nobody_has_gets_no_row(empty: list[int]) -> None:
    occupied = [k for k in range(4) if k not in empty]
    rng = np.random.default_rng(0)
    codes = centred(rng.normal(size=(30, 3)))
    places = np.arange(30) % len(occupied)

    head = nearest_mean_head(codes, np.array(occupied)[places])

    assert head[0].shape == (len(occupied), 3)
    for found, wanted in zip(head, nearest_mean_head(codes, places), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_codes_that_all_coincide_give_finite_scores() -> None:
    head, bias = nearest_mean_head(np.zeros((5, 3)), np.array([0, 0, 1, 1, 1]))
    assert np.isfinite(head).all()
    assert np.isfinite(bias).all()


def test_spread_brings_codes_to_one_length_whatever_their_unit() -> None:
    codes = centred(np.random.default_rng(0).normal(size=(50, 7)))
    for unit in (1e-6, 1.0, 1e6):
        scaled = unit * codes / code_spread(unit * codes)
        assert np.sqrt((scaled**2).sum(1).mean()) == pytest.approx(start.LENGTH)
    assert code_spread(np.zeros((4, 2))) == 1


# The space that the must-links shape


def test_agreement_by_hand() -> None:
    labels = np.repeat([0, 1], 20)
    must_links = [(0, 1), *[(k, 20 + k) for k in range(9)]]  # one kept, nine broken
    cannot_links = [(k, 39 - k) for k in range(9)] + [(2, 3)]  # nine kept, one broken
    weight = [3.0, *[1.0] * 9, *[1.0] * 9, 6.0]
    both = Pairs([*must_links, *cannot_links], [True] * 10 + [False] * 10, weight)
    assert agreement(labels, both) == pytest.approx((3 / 12 + 9 / 15) / 2)
    assert agreement(labels, both[both.same]) == pytest.approx(3 / 12)
    assert agreement(labels, both[~both.same]) == pytest.approx(9 / 15)
    assert agreement(labels, both[:0]) == 0


def test_an_answer_is_never_more_than_a_tenth_of_the_agreement_of_its_kind() -> None:
    """Three answers "same" among fifty: to break one is no worse than to break five of the others."""
    labels = np.repeat([0, 1], 30)
    must_links, cannot_links = [(0, 1), (2, 3), (4, 35)], [(k % 30, 30 + k % 29) for k in range(50)]
    pairs = Pairs([*must_links, *cannot_links], [True] * 3 + [False] * 50)
    assert agreement(labels, pairs) == pytest.approx((9 / 10 + 1) / 2)


def unequal(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Twelve classes, of which two hold 19 points in 20: k-means with twelve clusters tears these two apart."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(12), [285, 285, *[3] * 10])
    return centred(8 * np.eye(12)[truth] + rng.normal(size=(600, 12))), truth


def test_fewer_clusters_are_used_where_the_pairs_say_so_plainly() -> None:
    for seed in range(3):
        codes, truth = unequal(seed)
        pairs = answers(truth, 100, seed)
        labels = scores_of(codes, pair_shaped_head(codes, 12, pairs, RandomState(seed))).argmax(1)
        asked = kmeans(codes, 12, RandomState(seed), n_init=10).labels
        assert clustering_accuracy(truth, asked) < 0.6
        assert len(np.unique(labels)) < 12
        assert clustering_accuracy(truth, labels) > 0.9


def test_all_clusters_are_used_where_fewer_agree_no_better_than_by_chance() -> None:
    for seed in range(3):
        codes, truth = clouds(seed, n_clusters=6, n_dims=8)
        pairs = answers(truth, 100, seed)
        labels = scores_of(codes, pair_shaped_head(codes, 6, pairs, RandomState(seed))).argmax(1)
        assert len(np.unique(labels)) == 6


def test_directions_solve_the_generalised_eigenproblem_written_out() -> None:
    rng = np.random.default_rng(0)
    codes, truth = clouds(0, n_dims=5)
    index = np.array([rng.choice(90, 2, replace=False) for _ in range(40)])
    pairs = Pairs(index, truth[index[:, 0]] == truth[index[:, 1]], rng.uniform(0.5, 2, 40))
    links, weights = pairs.index[pairs.same], pairs.weight[pairs.same]

    within, total = np.zeros((5, 5)), np.zeros((5, 5))
    for (i, j), weight in zip(links, weights, strict=True):
        within += weight / weights.sum() * np.outer(codes[i] - codes[j], codes[i] - codes[j]) / 2
    for code in codes:
        total += np.outer(code, code) / len(codes)
    shrinkage = 5 / (5 + 2 * len(links))  # the prior counts for half as many answers as there are dimensions
    within = (1 - shrinkage) * within + shrinkage * np.trace(within) / 5 * np.eye(5)

    directions = pair_shaped_directions(codes, pairs, n_directions=3)
    assert directions.shape == (5, 3)
    ratios = [(w @ total @ w) / (w @ within @ w) for w in directions.T]
    for w, ratio in zip(directions.T, ratios, strict=True):
        np.testing.assert_allclose(total @ w, ratio * within @ w, atol=1e-8)
        assert w @ within @ w == pytest.approx(1)  # must-linked points are at one distance in all of them
    for w in rng.normal(size=(200, 5)):
        assert (w @ total @ w) / (w @ within @ w) <= max(ratios) + 1e-9
    everything = pair_shaped_directions(codes, pairs, n_directions=5)
    all_ratios = sorted((w @ total @ w) / (w @ within @ w) for w in everything.T)
    np.testing.assert_allclose(sorted(ratios), all_ratios[-3:], rtol=1e-9)  # the three largest


def test_must_links_find_the_direction_that_k_means_drowns() -> None:
    shaped, plain, separations = [], [], []
    for seed in range(5):
        codes, truth = drowned(seed)
        pairs = answers(truth, 60, seed)
        best = codes @ pair_shaped_directions(codes, pairs, n_directions=1)[:, 0]
        gap = abs(best[truth == 0].mean() - best[truth == 1].mean())
        separations.append(gap / best[truth == 0].std())
        shaped.append(accuracy(scores_of(codes, pair_shaped_head(codes, 2, pairs, RandomState(seed))).argmax(1), truth))
        plain.append(accuracy(kmeans(codes, 2, RandomState(seed), n_init=10).labels, truth))
    assert np.mean(separations) > 3  # as data it is 2/0.3 = 6.7
    assert np.mean(plain) < 0.6
    assert np.mean(shaped) > 0.95


def test_shaped_start_has_the_very_same_clusters_as_k_means_in_the_shaped_space(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The clusters of k-means are those of their nearest means, and these means are the shaped space's own."""
    monkeypatch.setattr(cluster_count, "PIECES", 10)  # all three, although two would be better
    for seed in range(5):
        codes, truth = drowned(seed)
        pairs = answers(truth, 60, seed)
        labels = scores_of(codes, pair_shaped_head(codes, 3, pairs, RandomState(seed))).argmax(1)
        for space, agree in ((codes @ pair_shaped_directions(codes, pairs, n_directions=4), True), (codes, False)):
            means = np.array([space[labels == k].mean(0) for k in range(3)])
            nearest = ((space[:, None] - means[None]) ** 2).sum(2).argmin(1)
            assert (np.mean(nearest == labels) > 0.98) == agree


def test_a_run_that_the_pairs_like_is_preferred_to_a_compact_one() -> None:
    """Four clouds in two couples on a line, and a start for three clusters: the answers say which couple to join."""
    rng = np.random.default_rng(0)
    place = np.repeat([0.0, 4.0, 10.0, 14.0], 25)
    codes = centred((place + rng.normal(scale=0.1, size=100))[:, None])
    for joined in ((0.0, 4.0), (10.0, 14.0)):
        truth = np.where(place == joined[0], joined[1], place)
        pairs = answers(np.unique(truth, return_inverse=True)[1], 150, seed=1)
        labels = scores_of(codes, pair_shaped_head(codes, 3, pairs, RandomState(0))).argmax(1)
        assert agreement(labels, pairs) == 1


@pytest.mark.parametrize(
    ("codes", "pairs", "n_directions", "shape"),
    [
        (clouds(0, n_dims=20)[0], Pairs([(0, 3), (1, 4)], [True, True]), 4, (20, 4)),
        (np.repeat(clouds(0, n_dims=4)[0], 2, axis=0), Pairs([(0, 1), (4, 5)], [True, True]), 2, (4, 2)),
        (clouds(0)[0], Pairs([(0, 3)], [True]), 1, (4, 1)),
        (clouds(0, n_clusters=2, n_dims=1)[0], Pairs([(0, 2)], [True]), 6, (1, 1)),
        (np.zeros((5, 3)), Pairs([(0, 1)], [True]), 2, (3, 2)),
    ],
    ids=["fewer links than dimensions", "links that coincide", "one direction", "one dimension", "constant codes"],
)
def test_directions_at_the_edges(codes: np.ndarray, pairs: Pairs, n_directions: int, shape: tuple[int, int]) -> None:
    directions = pair_shaped_directions(codes, pairs, n_directions)
    assert directions.shape == shape
    assert np.isfinite(directions).all()
    assert np.linalg.matrix_rank(directions) == shape[1]


def test_links_that_coincide_leave_the_directions_of_largest_scatter() -> None:
    codes, _ = drowned(0)
    codes = np.vstack([codes, codes])
    directions = pair_shaped_directions(codes, Pairs([(0, 200), (1, 201)], [True, True]), 1)
    assert abs(directions[1, 0]) > 0.99 * np.linalg.norm(directions)


# The start as a whole


@INITS
def test_start_is_a_function_of_the_seed(init: str) -> None:
    """Also where nothing is there to be found, and every run of k-means ends elsewhere."""
    formless = centred(np.random.default_rng(0).normal(size=(90, 4)))
    for codes, n_clusters in ((clouds(0)[0], 3), (formless, 6)):
        pairs = answers(np.arange(90) % 3, 30, 0)
        first, again = (start_head(codes, n_clusters, pairs, init, RandomState(7)) for _ in range(2))
        for a, b in zip(first, again, strict=True):
            np.testing.assert_array_equal(a, b)
        assert first[0].shape == (n_clusters, 4)
        assert first[1].shape == (n_clusters,)
        assert np.median(margins(scores_of(codes, first))) == pytest.approx(1)


def test_random_start_changes_with_the_seed_and_has_no_bias() -> None:
    codes, _ = clouds(0)
    one, other = (start_head(codes, 3, Pairs.empty(), "random", RandomState(seed)) for seed in (1, 2))
    assert not np.allclose(one[0], other[0])
    assert not one[1].any()


@pytest.mark.parametrize("init", ["k-means", "pairs"])
def test_clustering_starts_find_clouds_that_are_plain_to_see(init: str) -> None:
    for seed in range(3):
        codes, truth = clouds(seed, n_clusters=4)
        head = start_head(codes, 4, answers(truth, 40, seed), init, RandomState(seed))
        assert accuracy(scores_of(codes, head).argmax(1), truth) == 1


def test_without_must_links_the_pairs_start_is_the_k_means_start() -> None:
    codes, _ = drowned(0)
    for pairs in (Pairs.empty(), Pairs([(0, 1)], [False])):
        found = start_head(codes, 3, pairs, "pairs", RandomState(3))
        expected = start_head(codes, 3, pairs, "k-means", RandomState(3))
        np.testing.assert_array_equal(found[0], expected[0])


def test_pairs_start_uses_the_pairs() -> None:
    codes, truth = drowned(1)
    pairs = answers(truth, 60, 1)
    found = {init: start_head(codes, 2, pairs, init, RandomState(0)) for init in ("pairs", "k-means")}
    right = {init: accuracy(scores_of(codes, head).argmax(1), truth) for init, head in found.items()}
    assert right["pairs"] > right["k-means"] + 0.2


@INITS
def test_one_cluster_needs_no_choice(init: str) -> None:
    codes, _ = clouds(0)
    head, bias = start_head(codes, 1, Pairs([(0, 1)], [True]), init, RandomState(0))
    assert head.shape == (1, 4)
    assert bias.shape == (1,)
    assert np.isfinite(head).all()
    assert np.isfinite(bias).all()


@INITS
@pytest.mark.parametrize("n_dims", [1, 3])
def test_constant_codes_bring_neither_nan_nor_warnings(init: str, n_dims: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        head = start_head(np.zeros((10, n_dims)), 3, Pairs([(0, 1), (2, 3)], [True, False]), init, RandomState(0))
    assert np.isfinite(scores_of(np.zeros((10, n_dims)), head)).all()


@INITS
def test_fewer_distinct_points_than_clusters(init: str) -> None:
    codes = centred(np.repeat([[0.0, 1.0], [1.0, 0.0]], 5, axis=0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = scores_of(codes, start_head(codes, 4, Pairs([(0, 1), (0, 9)], [True, False]), init, RandomState(0)))
    assert np.isfinite(scores).all()
    if init != "random":
        assert len(set(scores.argmax(1))) == 2
        assert scores[0].argmax() != scores[9].argmax()


# Large inputs, with the limits lowered


def test_wide_codes_are_first_reduced(monkeypatch: pytest.MonkeyPatch) -> None:
    codes, truth = clouds(0, n_clusters=3, n_dims=30)
    pairs = answers(truth, 40, 0)
    seen = []

    def watched(reduced: np.ndarray, *args, **kwargs) -> np.ndarray:
        seen.append(reduced)
        return pair_shaped_directions(reduced, *args, **kwargs)

    monkeypatch.setattr(start, "pair_shaped_directions", watched)
    monkeypatch.setattr(start, "WIDEST", 12)
    head = start_head(codes, 3, pairs, "pairs", RandomState(0))
    assert [reduced.shape for reduced in seen] == [(90, 30), (90, 6)]
    principal = np.linalg.svd(codes, compute_uv=False)[:6]
    np.testing.assert_allclose((seen[1] ** 2).sum(), (principal**2).sum(), rtol=0.02)  # what they can hold at most
    assert head[0].shape == (3, 30)  # the head itself is for the codes as they are
    assert accuracy(scores_of(codes, head).argmax(1), truth) == 1


def test_wide_codes_of_few_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "WIDEST", 12)
    codes, truth = clouds(0, n_clusters=2, n_dims=30, n=4, distance=40)
    head = start_head(codes, 2, Pairs([(0, 2)], [True]), "pairs", RandomState(0))
    assert accuracy(scores_of(codes, head).argmax(1), truth) == 1


def test_wide_constant_codes_bring_neither_nan_nor_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "WIDEST", 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        head = start_head(np.zeros((10, 8)), 2, Pairs([(0, 1)], [True]), "pairs", RandomState(0))
    assert np.isfinite(head[0]).all()


@pytest.mark.parametrize("init", ["k-means", "pairs"])
def test_many_points_are_clustered_from_a_sample(init: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pairmargin.kmeans.SAMPLE", 50)
    codes, truth = clouds(0, n_clusters=3, n=600)
    head = start_head(codes, 3, answers(truth, 40, 0), init, RandomState(0))
    assert accuracy(scores_of(codes, head).argmax(1), truth) == 1
