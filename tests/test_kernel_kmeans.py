"""Kernel k-means against k-means itself, against a naive version, and at the edges."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import RandomState
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, make_blobs, make_circles
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks

from pairmargin import (
    FewDistinctPointsWarning,
    InvalidDataError,
    InvalidPairsError,
    InvalidParameterError,
    KernelKMeans,
    Pairs,
    clustering_accuracy,
)
from pairmargin.baselines import kernel_kmeans

KERNELS = pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "laplacian", "cosine"])


def random_points(seed: int, n: int = 60, d: int = 4) -> np.ndarray:
    return RandomState(seed).standard_normal((n, d))


def random_labels(seed: int, n: int = 60, n_clusters: int = 5) -> np.ndarray:
    return RandomState(seed).permutation(np.arange(n) % n_clusters)


def naive_objective(gram: np.ndarray, labels: np.ndarray, weight: np.ndarray) -> float:
    """The weighted sum of squared distances, cluster by cluster, as the definition says."""
    total = 0.0
    for k in set(labels):
        w, block = weight[labels == k], gram[np.ix_(labels == k, labels == k)]
        total += w @ block.diagonal() - w @ block @ w / w.sum()
    return total


def naive_nearest(gram: np.ndarray, labels: np.ndarray, weight: np.ndarray, n_clusters: int) -> np.ndarray:
    distance = np.empty((n_clusters, len(gram)))
    for k in range(n_clusters):
        mean = np.where(labels == k, weight, 0) / weight[labels == k].sum()
        distance[k] = gram.diagonal() - 2 * gram @ mean + mean @ gram @ mean
    return distance.argmin(0)


ORDER = "the draw of the seeds depends on the order of the rows, as in scikit-learn's own KMeans"
WEIGHT_CHECKS = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")


@parametrize_with_checks(
    [KernelKMeans(3), KernelKMeans(3, kernel="rbf", init="random")],
    expected_failed_checks=lambda _: dict.fromkeys(WEIGHT_CHECKS, ORDER),
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# What it computes


@pytest.mark.parametrize("kernel", ["linear", "precomputed"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_from_the_same_start_it_ends_where_k_means_ends(kernel, dtype):
    for seed in range(5):
        X = (random_points(seed, n=300, d=6) + 5).astype(dtype)
        start = random_labels(seed, n=300)
        centres = np.array([X[start == k].mean(0) for k in range(5)])
        expected = KMeans(5, init=centres, n_init=1, tol=0, algorithm="lloyd").fit(X)
        data = X if kernel == "linear" else X @ X.T
        found = KernelKMeans(5, kernel=kernel, init=start, tol=0).fit(data)
        np.testing.assert_array_equal(found.labels_, expected.labels_)
        np.testing.assert_array_equal(found.predict(data), expected.labels_)
        assert found.n_iter_ == expected.n_iter_
        assert found.inertia_ == pytest.approx(expected.inertia_, rel=1e-4 if dtype == np.float32 else 1e-10)


@KERNELS
def test_one_iteration_is_what_the_definition_says(kernel):
    X, start = random_points(0), random_labels(0)
    weight = RandomState(1).uniform(0.1, 3, 60)
    gram = pairwise_kernels(X, metric=kernel, filter_params=True, gamma=0.3, degree=3, coef0=1)
    settings = {"kernel": kernel, "gamma": 0.3, "init": start}
    one = KernelKMeans(5, max_iter=1, **settings).fit(X, sample_weight=weight)
    np.testing.assert_array_equal(one.labels_, naive_nearest(gram, start, weight, 5))
    end = KernelKMeans(5, tol=0, **settings).fit(X, sample_weight=weight)
    assert end.inertia_ == pytest.approx(naive_objective(gram, end.labels_, weight))
    np.testing.assert_array_equal(end.labels_, naive_nearest(gram, end.labels_, weight, 5))


@KERNELS
def test_the_objective_never_rises(kernel):
    X, start = random_points(1, n=200), random_labels(1, n=200, n_clusters=7)
    model = KernelKMeans(7, kernel=kernel, init=start, tol=0)
    n_iter = model.fit(X).n_iter_
    assert n_iter > 5
    fall = [model.set_params(max_iter=m).fit(X).inertia_ for m in range(1, n_iter + 1)]
    assert (np.diff(fall)[:-1] < 0).all()
    assert fall[-1] <= fall[-2]


def test_tol_stops_when_little_is_gained():
    X, start = random_points(1, n=400), random_labels(1, n=400)
    full, short = (KernelKMeans(5, init=start, tol=tol).fit(X) for tol in (0, 0.01))
    assert short.n_iter_ < full.n_iter_
    before, last = (KernelKMeans(5, init=start, tol=0, max_iter=short.n_iter_ - k).fit(X).inertia_ for k in (1, 0))
    assert before - last <= 0.01 * last
    assert short.inertia_ == last
    np.testing.assert_array_equal(short.labels_, short.predict(X))  # also when it stops early


def test_sums_that_follow_the_moves_do_not_drift():
    X = random_points(2, n=500).astype(np.float32)
    gram = rbf_kernel(X)
    model = KernelKMeans(8, kernel="precomputed", init=random_labels(2, n=500, n_clusters=8), tol=0).fit(gram)
    assert model.n_iter_ > 10
    assert model.inertia_ == pytest.approx(naive_objective(gram.astype(float), model.labels_, np.ones(500)), rel=1e-5)


def test_finds_a_ring_around_a_cloud_that_k_means_cannot():
    X, y = make_circles(200, factor=0.1, noise=0.05, random_state=0)
    radii = (X**2).sum(1)
    assert clustering_accuracy(y, KernelKMeans(2, random_state=0).fit(X).labels_) < 0.8
    found = KernelKMeans(2, kernel="precomputed", random_state=0).fit(np.outer(radii, radii))
    assert clustering_accuracy(y, found.labels_) > 0.98
    assert found.predict(0 * radii[None]) == found.labels_[y == 1][0]  # the middle


# Weights


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_weight_of_two_is_the_point_twice_and_of_zero_not_at_all(kernel):
    X, start = random_points(3), random_labels(3)
    weight = RandomState(3).randint(0, 4, 60)
    settings = {"kernel": kernel, "tol": 0}
    weighted = KernelKMeans(5, init=start, **settings).fit(X, sample_weight=weight)
    repeated = KernelKMeans(5, init=start.repeat(weight), **settings).fit(X.repeat(weight, axis=0))
    np.testing.assert_array_equal(weighted.labels_.repeat(weight), repeated.labels_)
    np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))
    assert weighted.inertia_ == pytest.approx(repeated.inertia_)


@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_points_without_weight_are_no_seeds(init):
    X = np.vstack((random_points(0, n=40), 1000 + random_points(1, n=40)))
    weight = np.repeat([1.0, 0.0], 40)
    model = KernelKMeans(3, init=init, random_state=0).fit(X, sample_weight=weight)
    assert set(model.labels_[:40]) == {0, 1, 2}
    np.testing.assert_array_equal(model.labels_, model.predict(X))


# Starts


def test_spread_seeds_lie_in_different_clouds():
    X, y = make_blobs(200, centers=8, cluster_std=0.01, random_state=0)
    for seed in range(5):
        one_start = KernelKMeans(8, n_init=1, random_state=seed)
        assert clustering_accuracy(y, one_start.fit(X).labels_) == 1
        assert clustering_accuracy(y, one_start.set_params(kernel="rbf").fit(X).labels_) == 1


def test_masses_decide_what_is_drawn():
    mass = np.array([0.0, 1.0, 0.0, 3.0, 0.0])
    counts = np.bincount(kernel_kmeans._draw(mass, 4000, RandomState(0)), minlength=5)
    assert counts[[0, 2, 4]].tolist() == [0, 0, 0]
    assert counts[3] / 4000 == pytest.approx(0.75, abs=0.03)


@pytest.mark.parametrize(("edge", "expected"), [(0.0, 1), (np.nextafter(1, 0), 3)])
def test_what_has_no_mass_is_not_drawn_even_at_the_edge(edge, expected):
    class Edge(RandomState):
        def uniform(self, size):
            return np.full(size, edge)

    assert kernel_kmeans._draw(np.array([0.0, 1, 0, 3]), 2, Edge(0)).tolist() == [expected] * 2


def test_more_starts_keep_the_best():
    X = random_points(4, n=300, d=2)
    several = KernelKMeans(8, init="random", n_init=6, random_state=0).fit(X).inertia_
    rng = RandomState(0)  # the six starts one by one
    alone = [KernelKMeans(8, init="random", n_init=1, random_state=rng).fit(X).inertia_ for _ in range(6)]
    assert several == min(alone) < max(alone)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_same_seed_same_bits(kernel):
    X, before = random_points(5), np.random.get_state()[1].copy()  # noqa: NPY002
    one, other = (KernelKMeans(4, kernel=kernel, random_state=7).fit(X) for _ in range(2))
    np.testing.assert_array_equal(one.labels_, other.labels_)
    assert one.inertia_ == other.inertia_
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


# Empty clusters


@settings(max_examples=60, deadline=None)
@given(
    points=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=6, max_size=25),
    starts=st.lists(st.integers(0, 4), min_size=25, max_size=25),
    kernel=st.sampled_from(["linear", "rbf"]),
    max_iter=st.sampled_from([1, 2, 100]),
)
def test_no_cluster_is_empty_where_there_are_enough_distinct_points(points, starts, kernel, max_iter):
    X = np.array([*points, (0, 9), (9, 0), (9, 9), (20, 20), (30, 0)], dtype=float)  # 5 distinct ones at least
    start = np.resize(starts, len(X))
    model = KernelKMeans(5, kernel=kernel, init=start, tol=0, max_iter=max_iter).fit(X)
    assert set(model.labels_) == set(range(5))


def test_an_empty_cluster_takes_the_farthest_point():
    X = np.array([[0.0], [1], [2], [50], [51], [52], [60]])
    model = KernelKMeans(3, init=[0, 0, 0, 1, 1, 1, 1], max_iter=1).fit(X)
    assert model.labels_.tolist() == [0, 0, 0, 1, 1, 1, 2]


def test_no_cluster_gives_its_only_point_away():
    labels, away = np.array([0, 1, 1]), np.array([9.0, 1, 0])
    assert kernel_kmeans._refill(labels, away, np.ones(3), 3, rounding=1e-9)
    assert labels.tolist() == [0, 2, 1]


@pytest.mark.parametrize("seed", [88, 537, 627, 850])  # here a cluster loses its last point in the second iteration
def test_an_iteration_that_fills_a_cluster_is_not_the_last(seed):
    rng = RandomState(seed)
    X, start = rng.standard_normal((12, 2)), rng.randint(0, 5, 12)
    model = KernelKMeans(5, init=start, tol=10).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed"])
def test_fewer_distinct_points_than_clusters_works_and_warns(kernel):
    X = np.repeat([[0.0, 1], [5, 5]], 10, axis=0)
    data = X @ X.T if kernel == "precomputed" else X
    with pytest.warns(FewDistinctPointsWarning, match="only 2 distinct points but n_clusters=4"):
        model = KernelKMeans(4, kernel=kernel, random_state=0).fit(data)
    assert len(set(model.labels_[:10])) == len(set(model.labels_[10:])) == 1
    assert model.inertia_ == pytest.approx(0, abs=1e-12)
    np.testing.assert_array_equal(model.predict(data), model.labels_)


# What goes in and what comes out


@KERNELS
def test_sparse_gives_what_dense_gives(kernel):
    X = np.where(random_points(6) > 0, random_points(6), 0)
    dense, sparse = (KernelKMeans(4, kernel=kernel, random_state=0).fit(data) for data in (X, sp.csr_array(X)))
    np.testing.assert_array_equal(dense.labels_, sparse.labels_)
    np.testing.assert_array_equal(sparse.predict(sp.csr_matrix(X)), dense.predict(X))


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_precomputed_kernel_gives_what_its_name_gives(order):
    X, new = random_points(7), random_points(8, n=9)
    gram = np.array(rbf_kernel(X, gamma=0.5), order=order)
    named = KernelKMeans(4, kernel="rbf", gamma=0.5, random_state=0).fit(X)
    given_kernel = KernelKMeans(4, kernel="precomputed", random_state=0).fit(gram)
    np.testing.assert_array_equal(given_kernel.labels_, named.labels_)
    np.testing.assert_array_equal(given_kernel.predict(rbf_kernel(new, X, gamma=0.5)), named.predict(new))


def test_a_function_may_be_the_kernel():
    def power(a, b, exponent):
        return (a @ b + 1) ** exponent

    X = random_points(9, n=30)
    by_function = KernelKMeans(3, kernel=power, kernel_params={"exponent": 2}, random_state=0).fit(X)
    by_name = KernelKMeans(3, kernel="poly", gamma=1, degree=2, random_state=0).fit(X)
    np.testing.assert_array_equal(by_function.labels_, by_name.labels_)
    np.testing.assert_array_equal(by_function.predict(X), by_name.predict(X))


def test_the_kernel_has_the_dtype_of_x_and_blocks_do_not_show(monkeypatch):
    X = random_points(10, n=50).astype(np.float32)
    whole = KernelKMeans(3, kernel="laplacian", random_state=0).fit(X)
    assert whole._gram(X).matrix.dtype == np.float32
    monkeypatch.setattr(kernel_kmeans, "BLOCK", 7)
    blocks = KernelKMeans(3, kernel="laplacian", random_state=0).fit(X)
    np.testing.assert_array_equal(blocks.labels_, whole.labels_)
    np.testing.assert_array_equal(blocks.predict(X), whole.labels_)


def test_far_from_the_origin_float32_still_tells_points_apart():
    X, y = make_blobs(100, centers=[[0, 0], [3, 3]], cluster_std=0.3, random_state=0)
    model = KernelKMeans(2, random_state=0).fit((X + 10_000).astype(np.float32))
    assert clustering_accuracy(y, model.labels_) == 1


def test_pairs_are_checked_and_ignored():
    X, y = load_iris(return_X_y=True)
    plain, with_pairs = (
        KernelKMeans(3, random_state=0).fit_predict(X, pairs=pairs) for pairs in (None, Pairs.from_labels(y))
    )
    np.testing.assert_array_equal(plain, with_pairs)
    with pytest.raises(InvalidPairsError, match="names row 150 but the data has 150 rows"):
        KernelKMeans(3).fit(X, pairs=Pairs([(0, 150)], [True]))


def test_clones_and_pickles():
    X = random_points(11)
    model = KernelKMeans(3, kernel="rbf", random_state=0).fit(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.labels_)
    assert not hasattr(clone(model), "labels_")


@pytest.mark.parametrize("n", [1, 3])
def test_one_cluster_and_as_many_as_points(n):
    X = random_points(12, n=n)
    assert KernelKMeans(1, kernel="rbf").fit(X).labels_.tolist() == [0] * n
    assert set(KernelKMeans(n, kernel="rbf").fit(X).labels_) == set(range(n))


# Bad input


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_clusters": 0}, "n_clusters=0 must be an integer, 1 or more"),
        ({"n_clusters": 61}, "n_clusters=61 is more than n_samples=60"),
        ({"kernel": "gauss"}, "kernel='gauss' must be callable or one of precomputed, .*rbf"),
        ({"gamma": 0}, "gamma=0 must be a number above 0, or None for 1 / n_features"),
        ({"degree": -1}, "degree=-1 must be a number above 0"),
        ({"coef0": "one"}, "coef0='one' must be a number"),
        ({"kernel_params": 3}, "kernel_params=3 must be a dict or None"),
        ({"init": "best"}, r"init='best' must be 'k-means\+\+', 'random' or labels"),
        ({"init": [0, 1]}, r"init is int64 of shape \(2,\); give one integer for each of the 60 points"),
        ({"init": np.zeros(60)}, r"init is float64 of shape \(60,\)"),
        ({"init": np.arange(60)}, "init\\[5\\] is 5; clusters are numbered from 0 to 4"),
        ({"n_init": 0}, "n_init=0 must be an integer, 1 or more"),
        ({"max_iter": 0}, "max_iter=0 must be an integer, 1 or more"),
        ({"tol": -1}, "tol=-1 must be a number, 0 or more"),
    ],
)
def test_refuses_settings_that_cannot_work(changes, message):
    with pytest.raises(InvalidParameterError, match=message):
        KernelKMeans(**({"n_clusters": 5} | changes)).fit(random_points(0))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.ones(59), r"sample_weight has shape \(59,\) but there are 60 points"),
        (np.r_[np.ones(58), -1, 1], "sample_weight\\[58\\] is -1.0; weights should be finite numbers, 0 or more"),
        (np.r_[np.nan, np.ones(59)], "sample_weight\\[0\\] is nan"),
        (np.zeros(60), "every sample_weight is zero; let some point count"),
    ],
)
def test_refuses_weights_that_are_none(weight, message):
    with pytest.raises(InvalidDataError, match=message):
        KernelKMeans(3).fit(random_points(0), sample_weight=weight)


def test_refuses_what_is_no_kernel():
    with pytest.raises(InvalidDataError, match=r'X has shape \(60, 4\); with kernel="precomputed" it should be square'):
        KernelKMeans(3, kernel="precomputed").fit(random_points(0))
    crooked = np.eye(5)
    crooked[1, 3] = 0.5
    with pytest.raises(InvalidDataError, match=r"not symmetric: X\[1, 3\] = 0.5 but X\[3, 1\] = 0.0"):
        KernelKMeans(3, kernel="precomputed").fit(crooked)


def test_an_unfitted_model_says_so():
    with pytest.raises(NotFittedError):
        KernelKMeans().predict(random_points(0))


def test_a_kernel_whose_numbers_are_too_large_is_refused():
    X = 1e60 * np.random.RandomState(0).standard_normal((9, 2))
    with pytest.raises(InvalidDataError, match="the kernel 'poly' has numbers up to inf, too large to calculate with"):
        KernelKMeans(2, kernel="poly", random_state=0).fit(X)
