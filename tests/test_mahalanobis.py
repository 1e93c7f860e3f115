"""What `XingMetric`, `ITML` and `KISSME` have in common, and the covariances under two of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.utils.estimator_checks import parametrize_with_checks

from pairmargin import (
    ITML,
    KISSME,
    InvalidDataError,
    InvalidPairsError,
    InvalidParameterError,
    Pairs,
    XingMetric,
    pair_roc,
    sample_pairs,
)
from pairmargin.baselines.mahalanobis import components, power, shrunk_covariance

METRICS = [XingMetric(), XingMetric(diagonal=True), ITML(), ITML(prior="covariance"), KISSME()]
EACH_METRIC = pytest.mark.parametrize("metric", METRICS, ids=repr)
BOTH_KINDS = pytest.mark.parametrize("metric", [XingMetric(), XingMetric(diagonal=True), KISSME()], ids=repr)


@parametrize_with_checks([XingMetric(), XingMetric(diagonal=True), ITML(), ITML(prior="covariance"), KISSME()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


def drowned(seed: int, metric: object, n_dims: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Two classes that differ in one direction, an axis for a diagonal metric, which noise in all the others drowns."""
    rng = np.random.default_rng(seed)
    y = np.arange(200) % 2
    X = rng.normal(size=(200, n_dims))
    X[:, 0] = 2 * y + 0.3 * X[:, 0]
    turn = np.eye(n_dims) if getattr(metric, "diagonal", False) else np.linalg.qr(rng.normal(size=(n_dims, n_dims)))[0]
    return X @ turn, y


# What they promise


@EACH_METRIC
def test_distances_of_the_transformed_points_are_those_of_the_matrix(metric, wine):
    X, y = wine
    pairs = sample_pairs(y, 60, random_state=0)
    metric.fit(X, pairs=pairs)
    matrix, index = metric.get_mahalanobis_matrix(), [(5, 2), (7, 100), (0, 177)]
    apart = np.array([X[i] - X[j] for i, j in index])
    squared = [difference @ matrix @ difference for difference in apart]
    np.testing.assert_allclose(metric.pair_score(X, index), np.negative(squared))
    coded = metric.transform(X)
    np.testing.assert_allclose([((coded[i] - coded[j]) ** 2).sum() for i, j in index], squared)
    np.testing.assert_array_equal(metric.pair_score(X, pairs), metric.pair_score(X, pairs.index))
    assert coded.shape == (len(X), len(metric.components_))
    assert len(metric.get_feature_names_out()) == len(metric.components_)
    assert (np.diff(np.linalg.norm(metric.components_, axis=1)) <= 1e-12).all()


@EACH_METRIC
def test_answers_help_to_tell_same_from_different(metric):
    """Where the Euclidean distance is little better than chance."""
    learned, euclidean = [], []
    for seed in range(5):
        X, y = drowned(seed, metric)
        known, unseen = sample_pairs(y, 200, random_state=seed).split(100, random_state=seed)
        learned.append(pair_roc(unseen, metric.fit(X, pairs=known).pair_score(X, unseen)).auc)
        euclidean.append(pair_roc(unseen, KISSME().fit(X).pair_score(X, unseen)).auc)  # not told anything
    assert np.mean(learned) > np.mean(euclidean) + 0.15


@EACH_METRIC
@pytest.mark.parametrize("n_dims", [60, 400])
def test_fewer_pairs_than_dimensions(metric, n_dims):
    """50 must-links and 50 cannot-links, where sample covariances cannot be inverted."""
    X, y = drowned(0, metric, n_dims)
    known, unseen = sample_pairs(y, 200, random_state=0).split(100, random_state=0)
    score = metric.fit(X, pairs=known).pair_score(X, unseen)
    assert np.isfinite(score).all()
    assert pair_roc(known, metric.pair_score(X, known)).auc > 0.8  # what it was told it holds


@EACH_METRIC
def test_the_origin_does_not_matter(metric, wine):
    X, y = wine
    pairs = sample_pairs(y, 60, random_state=1)
    here, there = (clone(metric).fit(X + shift, pairs=pairs).get_mahalanobis_matrix() for shift in (0, 3))
    np.testing.assert_allclose(here, there, rtol=1e-6, atol=1e-9 * np.abs(here).max())


@EACH_METRIC
def test_units_do_not_matter(metric, wine):
    X, y = wine
    pairs = sample_pairs(y, 60, random_state=1)
    metres, inches = (clone(metric).fit(unit * X, pairs=pairs).pair_score(unit * X, pairs) for unit in (1.0, 39.4))
    ratio = inches / metres
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-6)


@pytest.mark.parametrize("metric", [XingMetric(), ITML(), ITML(prior="covariance"), KISSME()], ids=repr)
def test_axes_do_not_matter(metric, wine):
    X, y = wine
    pairs = sample_pairs(y, 60, random_state=1)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(13, 13)))[0]
    plain, turned = (clone(metric).fit(Z, pairs=pairs).pair_score(Z, pairs) for Z in (X, X @ turn))
    np.testing.assert_allclose(plain, turned, rtol=1e-6)


@pytest.mark.parametrize(
    "metric",
    [
        XingMetric(shrinkage=0, tol=1e-9),
        XingMetric(shrinkage=0, tol=1e-9, diagonal=True),
        KISSME(shrinkage=0),
        ITML(bounds=(5, 40), tol=1e-9, max_iter=20_000),
    ],
    ids=repr,
)
def test_a_weight_of_two_is_saying_it_twice(metric, wine):
    """The second time of copies of the points."""
    X, y = wine[0][:, :4], wine[1]
    n, twice = len(X), np.arange(40) % 3 == 0
    pairs = sample_pairs(y, 40, random_state=2)
    heavy = Pairs(pairs.index, pairs.same, np.where(twice, 2.0, 1.0))
    repeated = Pairs(np.vstack([pairs.index, pairs.index[twice] + n]), np.r_[pairs.same, pairs.same[twice]])
    expected = metric.fit(np.vstack([X, X]), pairs=repeated).get_mahalanobis_matrix()
    found = metric.fit(X, pairs=heavy).get_mahalanobis_matrix()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
    plain = metric.fit(X, pairs=pairs).get_mahalanobis_matrix()
    assert np.abs(plain - expected).max() > 1e-3 * np.abs(expected).max()


@EACH_METRIC
def test_single_precision_in_and_out(metric, wine):
    X, y = wine
    pairs = sample_pairs(y, 60, random_state=0)
    single, double = X.astype(np.float32), X.astype(np.float32).astype(np.float64)
    score = metric.fit(single, pairs=pairs).pair_score(single, pairs)
    assert metric.transform(single).dtype == score.dtype == np.float32
    np.testing.assert_allclose(score, metric.fit(double, pairs=pairs).pair_score(double, pairs), rtol=1e-3)


def test_pairs_reach_a_metric_inside_a_pipeline(wine):
    X, y = load_wine(return_X_y=True)
    pairs = sample_pairs(y, 60, random_state=0)
    pipeline = make_pipeline(StandardScaler(), KISSME()).fit(X, kissme__pairs=pairs)
    np.testing.assert_allclose(pipeline.transform(X), KISSME().fit(wine[0], pairs=pairs).transform(wine[0]))


# Too little to learn from


@pytest.mark.parametrize("metric", [XingMetric(), XingMetric(diagonal=True), ITML(), KISSME()], ids=repr)
def test_without_pairs_nothing_changes(metric, wine):
    X, _ = wine
    for pairs in (None, Pairs.empty()):
        np.testing.assert_allclose(metric.fit(X, pairs=pairs).get_mahalanobis_matrix(), np.eye(13), atol=1e-12)


@BOTH_KINDS
@pytest.mark.parametrize("same", [True, False])
def test_one_kind_alone_changes_nothing(metric, same, wine):
    X, y = wine
    pairs = sample_pairs(y, 40, random_state=0)
    metric.fit(X, pairs=pairs[pairs.same == same])
    np.testing.assert_array_equal(metric.transform(X), X)


@BOTH_KINDS
@pytest.mark.parametrize("coincide", [[True], [False], [True, False]])
def test_points_that_coincide_tell_nothing(metric, coincide):
    X = np.repeat(np.random.default_rng(0).normal(size=(6, 3)), 2, axis=0)  # rows 0 and 1, 2 and 3, … are the same
    index = [(0, 1) if True in coincide else (0, 4), (2, 3) if False in coincide else (2, 10)]
    metric.fit(X, pairs=Pairs(index, [True, False]))
    np.testing.assert_array_equal(metric.transform(X), X)


@EACH_METRIC
def test_points_that_coincide_beside_others(metric, wine):
    X, y = wine
    X, y = np.vstack([X, X[:20]]), np.r_[y, y[:20]]
    copies = Pairs(np.column_stack([np.arange(20), np.arange(len(X) - 20, len(X))]), np.arange(20) < 10)
    metric.fit(X, pairs=sample_pairs(y, 60, random_state=0) + copies)
    assert np.isfinite(metric.pair_score(X, copies)).all()
    np.testing.assert_allclose(metric.pair_score(X, copies), 0, atol=1e-12)


@EACH_METRIC
@pytest.mark.parametrize("shrinkage", ["auto", 0])
def test_constant_columns(metric, shrinkage, wine):
    X, y = wine
    X = np.column_stack([X[:, :5], np.full(len(X), 7.0), np.zeros(len(X))])
    if "shrinkage" in metric.get_params():
        metric = clone(metric).set_params(shrinkage=shrinkage)
    pairs = sample_pairs(y, 60, random_state=0)
    score = metric.fit(X, pairs=pairs).pair_score(X, pairs)
    assert np.isfinite(metric.components_).all()
    assert np.isfinite(score).all()
    assert (score < 0).any()


@st.composite
def small_problems(draw):
    """A few points, many of which coincide, and any answers about them."""
    n, d = draw(st.integers(2, 6)), draw(st.integers(1, 3))
    value = st.sampled_from([0.0, 1.0, -2.0, 0.5])
    X = np.array(draw(st.lists(st.lists(value, min_size=d, max_size=d), min_size=n, max_size=n)))
    pair = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda p: p[0] != p[1])
    index = draw(st.lists(pair, max_size=8))
    return X, Pairs(index, draw(st.lists(st.booleans(), min_size=len(index), max_size=len(index))))


@EACH_METRIC
@settings(max_examples=60, deadline=None)
@given(problem=small_problems())
def test_whatever_is_asked_the_metric_is_finite_and_not_zero(metric, problem):
    X, pairs = problem
    matrix = clone(metric).fit(X, pairs=pairs).get_mahalanobis_matrix()
    assert np.isfinite(matrix).all()
    assert np.linalg.eigvalsh(matrix)[-1] > 0


# What they refuse


@EACH_METRIC
def test_data_and_pairs_are_checked(metric, wine):
    X, _ = wine
    with pytest.raises(InvalidDataError, match="Input X contains NaN at row 0, column 0"):
        metric.fit([[np.nan, 1.0], [0.0, 1.0]])
    with pytest.raises(InvalidPairsError, match=r"names row 178 but the data has 178 rows"):
        metric.fit(X, pairs=Pairs([(0, 178)], [True]))
    with pytest.raises(InvalidPairsError, match="pairs should be Pairs, not list"):
        metric.fit(X, pairs=[(0, 1)])
    with pytest.raises(NotFittedError):
        clone(metric).get_mahalanobis_matrix()


def test_rows_that_are_asked_about_are_checked(wine):
    X, _ = wine
    metric = KISSME().fit(X)
    assert metric.pair_score(X, []).shape == (0,)
    with pytest.raises(InvalidPairsError, match="names row 200 but the data has 178 rows"):
        metric.pair_score(X, [(3, 200)])
    with pytest.raises(InvalidPairsError, match="names row 200 but the data has 178 rows"):
        metric.pair_score(X, Pairs([(3, 200)], [True]))


@pytest.mark.parametrize("shrinkage", ["none", -0.1, 1.5, None, np.nan, True])
@pytest.mark.parametrize("metric", [XingMetric(), KISSME()], ids=repr)
def test_shrinkage_is_checked(metric, shrinkage, wine):
    with pytest.raises(InvalidParameterError, match=r"shrinkage=.* must be 'auto' or a number from 0 to 1"):
        clone(metric).set_params(shrinkage=shrinkage).fit(wine[0])


# Matrices


def test_components_leave_out_what_is_not_positive():
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    found = components((turn * [9.0, -4.0, 1e-17, 4.0]) @ turn.T)
    np.testing.assert_allclose(found.T @ found, (turn * [9.0, 0.0, 0.0, 4.0]) @ turn.T, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), [3.0, 2.0])
    np.testing.assert_array_equal(components(-np.eye(3)), np.eye(3))
    np.testing.assert_array_equal(components(np.zeros((2, 2))), np.eye(2))


def test_power_is_the_pseudo_inverse_and_the_root():
    rows = np.random.default_rng(0).normal(size=(3, 5))
    matrix = rows.T @ rows  # of rank 3
    np.testing.assert_allclose(power(matrix, -1), np.linalg.pinv(matrix), atol=1e-10)
    np.testing.assert_allclose(power(matrix, 0.5) @ power(matrix, 0.5), matrix, atol=1e-10)


def test_covariance_is_the_weighted_mean_of_outer_products():
    rng = np.random.default_rng(0)
    apart, weight = rng.normal(size=(7, 3)), rng.uniform(1, 3, size=7)
    naive = sum(w * np.outer(v, v) for v, w in zip(apart, weight, strict=True)) / weight.sum()
    np.testing.assert_allclose(shrunk_covariance(apart, weight, 0), naive)
    np.testing.assert_allclose(shrunk_covariance(apart, weight, 1), np.eye(3) * np.trace(naive) / 3)
    np.testing.assert_allclose(np.trace(shrunk_covariance(apart, weight, "auto")), np.trace(naive))


def test_automatic_shrinkage_comes_closer_to_the_truth_than_any_fixed_one():
    """On average over many numbers of answers, with a truth that only the test knows."""
    truth = np.diag([9.0, 4.0, *np.full(18, 0.3)])
    errors = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        for n_answers in (10, 40, 200):
            apart = rng.multivariate_normal(np.zeros(20), truth, size=n_answers)
            shrunk = [shrunk_covariance(apart, np.ones(n_answers), s) for s in ("auto", *np.linspace(0, 1, 11))]
            errors.append([np.linalg.norm(matrix - truth) for matrix in shrunk])
    automatic, *fixed = np.mean(np.array(errors) / np.min(errors, axis=1, keepdims=True), axis=0)
    assert automatic < min(fixed)


def test_automatic_shrinkage_fades_out_and_does_not_depend_on_the_unit_of_weight():
    rng = np.random.default_rng(0)
    apart = rng.normal(size=(5000, 4)) * [4, 2, 1, 1]
    plain = shrunk_covariance(apart, np.ones(5000), 0)
    for weight in (1.0, 7.0):
        np.testing.assert_allclose(shrunk_covariance(apart, np.full(5000, weight), "auto"), plain, atol=0.01)
    one = shrunk_covariance(apart[:1], np.ones(1), "auto")
    np.testing.assert_allclose(one, np.eye(4) * (apart[0] ** 2).mean())  # a single answer tells the scale, no more
