"""`MPCKMeans`: answers shape the distances."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import RandomState
from scipy.sparse import csr_array
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from pairmargin import (
    ConflictingPairsError,
    FewDistinctPointsWarning,
    InvalidParameterError,
    MPCKMeans,
    Pairs,
    clustering_accuracy,
    sample_pairs,
)
from pairmargin.baselines.mpck_means import DiagonalMetrics, FullMetrics, broken_answers, far_apart

KINDS = pytest.mark.parametrize("metric", ["diagonal", "full"])
SHARED = pytest.mark.parametrize("shared", [False, True])


@parametrize_with_checks([MPCKMeans(), MPCKMeans(metric="full", n_init=2), MPCKMeans(shared=True, n_init=2)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def wrong_pairs(wine):
    """Answers at random, so that some of both kinds are broken."""
    pairs = sample_pairs(RandomState(0).permutation(wine[1]), 60, random_state=0)
    return Pairs(pairs.index, pairs.same, RandomState(1).uniform(0.5, 2, len(pairs)))


def stripes(seed, n=200, noise=8.0):
    """Two clusters in the first feature, and much noise in the second."""
    rng = RandomState(seed)
    y = np.arange(n) % 2
    return np.column_stack([5.0 * y + rng.randn(n), noise * rng.randn(n)]), y


def squared(v, metric):
    return v @ (np.diag(metric) if metric.ndim == 1 else metric) @ v


def naive_objective(model, X, pairs, prior, spread, far):
    """J_mpckm by loops over points and pairs, and the prior."""
    A, labels = model.metrics_, model.labels_
    log_det = [np.linalg.slogdet(np.diag(a) if a.ndim == 1 else a)[1] for a in A]
    total = sum(squared(x - model.cluster_centers_[k], A[k]) - log_det[k] for x, k in zip(X, labels, strict=True))
    broken = {True: 0, False: 0}
    for (i, j), same, w in zip(pairs.index, pairs.same, pairs.weight, strict=True):
        a, b, apart = labels[i], labels[j], X[i] - X[j]
        if same and a != b:
            total += model.penalty * w * (squared(apart, A[a]) + squared(apart, A[b])) / 2
        if not same and a == b:
            f = max(squared(v, A[a]) for v in far) - squared(apart, A[a])
            assert f >= 0
            total += model.penalty * w * f
        broken[bool(same)] += same == (a != b)
    traces = [a.sum() if a.ndim == 1 else np.trace(a) for a in A]
    priors = [prior * (spread * t - d) for t, d in zip(traces, log_det, strict=True)]
    assert min(broken.values()) > 0  # both kinds are tested
    return total + (priors[0] if model.shared else sum(priors))


# The objective


@KINDS
@SHARED
def test_objective_is_that_of_the_paper_and_the_prior(metric, shared, wine, wrong_pairs):
    X, pairs = wine[0][:, :4], wrong_pairs
    settings = {"metric": metric, "shared": shared, "penalty": 0.1, "regularization": 2.0, "on_conflict": "keep"}
    model = MPCKMeans(3, n_init=2, random_state=0, **settings).fit(X, pairs=pairs)
    apart = X[pairs.index[:, 0]] - X[pairs.index[:, 1]]
    far = [*far_apart(X - X.mean(0), 20), *apart[~pairs.same]]
    spread = (apart[pairs.same] ** 2).mean() / 2
    assert model.objective_ == pytest.approx(naive_objective(model, X, pairs, 2.0 * 4, spread, far))


@KINDS
@SHARED
def test_objective_falls_with_every_iteration(metric, shared, wine, wrong_pairs):
    settings = {"metric": metric, "shared": shared, "n_init": 1, "tol": 0, "on_conflict": "keep", "random_state": 4}
    last = MPCKMeans(5, **settings).fit(wine[0], pairs=wrong_pairs)
    objectives = [
        MPCKMeans(5, max_iter=k, **settings).fit(wine[0], pairs=wrong_pairs).objective_
        for k in range(1, last.n_iter_ + 1)
    ]
    assert last.n_iter_ > 3
    assert (np.diff(objectives) < 0).all()


@KINDS
@SHARED
def test_metrics_are_those_of_the_paper_and_the_prior(metric, shared, wine, wrong_pairs):
    """The second iteration's metrics follow from the first one's labels."""
    X, pairs = wine[0][:, :4], wrong_pairs
    settings = {"metric": metric, "shared": shared, "penalty": 0.1, "regularization": 2.0, "on_conflict": "keep"}
    labels, found = (
        getattr(MPCKMeans(3, n_init=1, max_iter=k, random_state=0, **settings).fit(X, pairs=pairs), name)
        for k, name in ((1, "labels_"), (2, "metrics_"))
    )
    apart = X[pairs.index[:, 0]] - X[pairs.index[:, 1]]
    far = np.vstack([far_apart(X - X.mean(0), 20), apart[~pairs.same]])
    longest = far[(far**2).sum(1).argmax()]  # in the first metrics, which weigh all features alike
    spread = (apart[pairs.same] ** 2).mean() / 2
    sums = np.zeros((3, 4, 4))
    for h in range(3):
        for x in X[labels == h]:
            sums[h] += np.outer(*2 * [x - X[labels == h].mean(0)])
        for (i, j), v, same, w in zip(pairs.index, apart, pairs.same, 0.1 * pairs.weight, strict=True):
            if same and labels[i] != labels[j]:
                sums[h] += w / 2 * np.outer(v, v) * (h in (labels[i], labels[j]))
            if not same and labels[i] == labels[j] == h:
                sums[h] += w * (np.outer(longest, longest) - np.outer(v, v))
    count = np.bincount(labels)
    if shared:
        sums, count = np.repeat(sums.sum(0)[None], 3, axis=0), np.repeat(len(X), 3)
    if metric == "diagonal":
        sums = np.stack([np.diag(np.diag(s)) for s in sums])
    expected = [(n + 8) * np.linalg.inv(s + 8 * spread * np.eye(4)) for s, n in zip(sums, count, strict=True)]
    np.testing.assert_allclose(found, [np.diag(a) for a in expected] if metric == "diagonal" else expected)


@pytest.mark.parametrize("kind", [DiagonalMetrics, FullMetrics])
def test_metrics_are_the_best_for_a_given_scatter(kind):
    """count · S⁻¹ is where tr(A S) − count · log det A is least."""
    rng = RandomState(0)
    differences, count = rng.randn(30, 3), np.array([12.0, 20.0])
    weight = np.abs(rng.randn(2, 30))
    scatter = kind.scatter(differences, csr_array(weight))
    for k in range(2):
        whole = sum(w * np.outer(v, v) for w, v in zip(weight[k], differences, strict=True))
        np.testing.assert_allclose(scatter[k], np.diag(whole) if kind is DiagonalMetrics else whole)
    best = kind.fitting(scatter, count)

    def value(metrics):
        return ((metrics.matrix * scatter).reshape(2, -1).sum(1) - count * metrics.log_det).sum()

    for _ in range(50):
        step = 0.02 * rng.randn(*best.matrix.shape)
        step = step if kind is DiagonalMetrics else step + step.transpose(0, 2, 1)
        assert value(kind(best.matrix + step * np.abs(best.matrix).min())) > value(best)


@pytest.mark.parametrize("kind", [DiagonalMetrics, FullMetrics])
def test_metrics_measure_as_a_double_loop_does(kind):
    rng = RandomState(0)
    points, centres = rng.randn(9, 3), rng.randn(2, 3)
    root = rng.randn(2, 3, 3)
    matrix = root @ root.transpose(0, 2, 1) + np.eye(3)
    metrics = kind(np.diagonal(matrix, axis1=1, axis2=2).copy() if kind is DiagonalMetrics else matrix)
    full = [np.diag(a) if a.ndim == 1 else a for a in metrics.matrix]
    distances = [[squared(x - c, a) for c, a in zip(centres, full, strict=True)] for x in points]
    np.testing.assert_allclose(metrics.squared_distances(points, centres), distances)
    np.testing.assert_allclose(metrics.squared_lengths(points), [[squared(x, a) for a in full] for x in points])
    np.testing.assert_allclose(metrics.log_det, [np.linalg.slogdet(a)[1] for a in full])
    np.testing.assert_allclose(metrics.trace, [np.trace(a) for a in full])


def test_a_scatter_with_a_negative_part_is_lifted():
    np.testing.assert_allclose(DiagonalMetrics.lifted(np.array([[-3.0, 2.0]]), 0.5), [[0.5, 2.5]])
    turn = np.linalg.qr(RandomState(0).randn(2, 2))[0]
    lifted = FullMetrics.lifted((turn * [-3.0, 2.0] @ turn.T)[None], 0.5)
    np.testing.assert_allclose(lifted[0], turn * [0.5, 2.5] @ turn.T)


def test_broken_answers_count_where_they_are_broken():
    pairs = Pairs([(0, 1), (0, 2), (1, 3), (2, 3)], [True, True, False, False])
    weight = np.array([1.0, 2.0, 3.0, 4.0])
    lengths, longest = broken_answers(pairs, weight, np.array([0, 1, 0, 1]), 2)
    np.testing.assert_array_equal(lengths.toarray(), [[0.5, 0, 0, 0], [0.5, 0, -3, 0]])
    np.testing.assert_array_equal(longest, [0, 3])


def test_far_points_hold_nearly_the_farthest_pair():
    X = RandomState(0).randn(300, 6)
    every = ((X[:, None] - X[None]) ** 2).sum(2)
    assert (far_apart(X, 20) ** 2).sum(1).max() > 0.97 * every.max()
    np.testing.assert_array_equal(far_apart(X[:1], 1), np.zeros((1, 6)))


# What it learns


@KINDS
@SHARED
def test_finds_the_feature_that_matters(metric, shared):
    right, plain = [], []
    for seed in range(4):
        X, y = stripes(seed)
        pairs = sample_pairs(y, 60, random_state=seed)
        settings = {"regularization": 0.1, "n_init": 5, "random_state": seed}
        model = MPCKMeans(2, metric=metric, shared=shared, **settings).fit(X, pairs=pairs)
        weight = model.metrics_ if metric == "diagonal" else np.diagonal(model.metrics_, axis1=1, axis2=2)
        assert (weight[:, 0] > 10 * weight[:, 1]).all()
        right.append(clustering_accuracy(y, model.labels_))
        plain.append(clustering_accuracy(y, KMeans(2, n_init=3, random_state=0).fit_predict(X)))
    assert np.mean(plain) < 0.65
    assert np.mean(right) > 0.9


@KINDS
def test_learns_wine_over_several_seeds(metric, wine):
    X, y = wine
    right = [
        clustering_accuracy(
            y, MPCKMeans(3, metric=metric, random_state=s).fit_predict(X, pairs=sample_pairs(y, 100, random_state=s))
        )
        for s in range(3)
    ]
    assert np.mean(right) > 0.97


def test_a_heavy_prior_leaves_k_means(wine):
    model = MPCKMeans(3, regularization=1e6, tol=0, random_state=0).fit(wine[0])
    kmeans = KMeans(3, n_init=10, random_state=0).fit(wine[0])
    assert adjusted_rand_score(model.labels_, kmeans.labels_) == 1
    np.testing.assert_allclose(model.metrics_, 1, rtol=1e-3)  # standardised features


def test_one_feature_is_the_same_in_both_kinds(wine):
    X, y = wine[0][:, :1], wine[1]
    pairs = sample_pairs(y, 40, random_state=0)
    one, other = (MPCKMeans(3, metric=m, n_init=2, random_state=0).fit(X, pairs=pairs) for m in ("diagonal", "full"))
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_allclose(one.metrics_, other.metrics_[:, :, 0])


def test_full_metrics_do_not_mind_a_rotation(wine):
    X, y = wine
    pairs, turn = sample_pairs(y, 60, random_state=0), np.linalg.qr(RandomState(0).randn(13, 13))[0]
    models = [MPCKMeans(3, metric="full", n_init=2, random_state=0).fit(Z, pairs=pairs) for Z in (X, X @ turn)]
    np.testing.assert_array_equal(models[0].labels_, models[1].labels_)
    np.testing.assert_allclose(turn.T @ models[0].metrics_ @ turn, models[1].metrics_, atol=1e-8)


@pytest.mark.parametrize("change", [lambda X: 1000 * X, lambda X: X + 1e5])
def test_scale_and_place_do_not_matter(change, wine):
    X, y = wine
    pairs = sample_pairs(y, 50, random_state=0)
    labels = [MPCKMeans(3, n_init=2, random_state=0).fit(data, pairs=pairs).labels_ for data in (X, change(X))]
    np.testing.assert_array_equal(*labels)


def test_a_shared_metric_is_the_same_in_all_clusters(wine):
    model = MPCKMeans(3, shared=True, n_init=1, random_state=0).fit(wine[0])
    assert (model.metrics_ == model.metrics_[0]).all()
    assert model.metrics_[0].std() > 0


@KINDS
def test_predict_goes_by_the_metric_of_each_cluster(metric, wine):
    X = wine[0][:, :5]
    model = MPCKMeans(3, metric=metric, n_init=2, random_state=0).fit(X)
    new = RandomState(0).randn(30, 5)
    for x, found in zip(new, model.predict(new), strict=True):
        full = [np.diag(a) if a.ndim == 1 else a for a in model.metrics_]
        price = [squared(x - c, a) - np.linalg.slogdet(a)[1] for c, a in zip(model.cluster_centers_, full, strict=True)]
        assert found == np.argmin(price)
    np.testing.assert_array_equal(model.predict(X), model.labels_)


# At the edges


@KINDS
def test_constant_features_and_tiny_clusters_bring_no_infinity(metric, wine):
    X, y = wine
    X = np.hstack([X, np.zeros((len(X), 2))])
    settings = {"metric": metric, "n_init": 1, "random_state": 0, "on_conflict": "keep"}
    model = MPCKMeans(40, **settings).fit(X, pairs=sample_pairs(RandomState(0).permutation(y), 200, random_state=0))
    assert np.isfinite(model.metrics_).all()
    assert np.isfinite(model.cluster_centers_).all()
    assert np.isfinite(model.objective_)


@KINDS
def test_fewer_distinct_points_than_clusters(metric):
    X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 4, axis=0)
    with pytest.warns(FewDistinctPointsWarning, match="only 2 distinct points but n_clusters=4"):
        model = MPCKMeans(4, metric=metric, random_state=0).fit(X, pairs=Pairs.from_lists([(0, 1)], [(0, 5)]))
    assert np.isfinite(model.metrics_).all()
    assert model.labels_[0] == model.labels_[1] != model.labels_[5]
    assert MPCKMeans(1, metric=metric).fit(np.ones((3, 2))).labels_.tolist() == [0, 0, 0]


def test_same_seed_same_bits_and_dtype(wine):
    X, y = wine[0].astype(np.float32), wine[1]
    pairs, before = sample_pairs(y, 50, random_state=0), np.random.get_state()[1].copy()  # noqa: NPY002
    one, other = (MPCKMeans(5, n_init=2, random_state=7).fit(X, pairs=pairs) for _ in range(2))
    np.testing.assert_array_equal(one.metrics_, other.metrics_)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    assert one.cluster_centers_.dtype == np.float32


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_clusters": 179}, "n_clusters=179 is more than n_samples=178"),
        ({"metric": "cosine"}, "metric='cosine' must be 'diagonal' or 'full'"),
        ({"shared": "yes"}, "shared='yes' must be True or False"),
        ({"penalty": -1}, "penalty=-1 must be a number, 0 or more"),
        ({"regularization": 0}, "regularization=0 must be a number above 0"),
        ({"n_init": 0}, "n_init=0 must be an integer, 1 or more"),
        ({"max_iter": 0}, "max_iter=0 must be an integer, 1 or more"),
        ({"on_conflict": "ask"}, "on_conflict='ask' must be 'raise' or 'drop' or 'keep'"),
    ],
)
def test_refuses_settings_that_cannot_work(settings, message, wine):
    with pytest.raises(InvalidParameterError, match=message):
        MPCKMeans(**({"n_clusters": 3} | settings)).fit(wine[0])


def test_contradictions_and_unfitted_models(wine):
    with pytest.raises(ConflictingPairsError, match='on_conflict="drop"'):
        MPCKMeans(3).fit(wine[0], pairs=Pairs.from_lists([(0, 1), (1, 2)], [(0, 2)]))
    with pytest.raises(NotFittedError):
        MPCKMeans(3).predict(wine[0])


def test_metrics_of_a_scatter_that_is_all_but_flat_are_positive_definite():
    """As answers leave it that outweigh everything else; the inverse of such a matrix need not be symmetric."""
    turn = np.linalg.qr(np.random.RandomState(0).standard_normal((6, 6)))[0]
    scatter = (turn * 10.0 ** np.linspace(0, 25, 6)) @ turn.T
    metrics = FullMetrics.fitting(FullMetrics.lifted(scatter[None], 1e-3), np.array([10.0]))
    assert np.isfinite(metrics.log_det).all()
