"""`ITML` beside metric-learn's matrices and what its optimum must satisfy."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.distance import pdist
from sklearn.datasets import load_iris, load_wine
from sklearn.preprocessing import scale

from pairmargin import ITML, InvalidParameterError, Pairs, sample_pairs
from pairmargin.baselines import itml

GOLDEN = json.loads((Path(__file__).parent / "data" / "metric-learn-iris.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


@pytest.mark.parametrize("golden", GOLDEN["itml"], ids=lambda golden: f"gamma={golden['gamma']}, tol={golden['tol']}")
def test_matrices_of_metric_learn(golden):
    settings = {name: golden[name] for name in ("gamma", "bounds", "tol", "max_iter")}
    metric = ITML(**settings).fit(load_iris().data, pairs=Pairs(GOLDEN["index"], GOLDEN["same"]))
    np.testing.assert_allclose(metric.get_mahalanobis_matrix(), golden["matrix"], rtol=1e-9, atol=1e-11)
    assert metric.n_iter_ == golden["n_iter"] + 1  # theirs counts from 0
    np.testing.assert_array_equal(metric.bounds_, golden["bounds"])


def test_one_constraint_in_closed_form():
    """The metric changes along the difference alone, until its squared length meets the bound that it moves."""
    X = np.array([[0.0, 0.0], [4.0, 0.0], [1.0, 3.0]])
    for gamma in (0.5, 1.0, 10.0):
        for same, bound in ((True, 2.0), (False, 50.0)):
            metric = ITML(gamma=gamma, bounds=(2.0, 50.0)).fit(X, pairs=Pairs([(0, 1)], [same]))
            met = (gamma + 1) / (gamma / bound + 1 / 16)  # 1/p' = (γ/bound + 1/p) / (γ + 1), with p = 16
            np.testing.assert_allclose(metric.get_mahalanobis_matrix(), np.diag([met / 16, 1]), atol=1e-9)


def test_constraints_that_hold_already_change_nothing():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [9.0, 3.0]])
    pairs = Pairs.from_lists(must_link=[(0, 1)], cannot_link=[(0, 2)])
    metric = ITML(bounds=(2.0, 50.0)).fit(X, pairs=pairs)
    np.testing.assert_allclose(metric.get_mahalanobis_matrix(), np.eye(2), atol=1e-12)
    assert metric.n_iter_ == 1


def test_hard_constraints_hold(wine):
    """With a high price on moving the bounds, and bounds that can be met."""
    X, y = wine
    pairs = sample_pairs(y, 12, random_state=0)
    metric = ITML(gamma=1e6, bounds=(8.0, 25.0), tol=1e-9, max_iter=5000).fit(X, pairs=pairs)
    squared = -metric.pair_score(X, pairs)
    assert (squared[pairs.same] <= 8 * 1.001).all()
    assert (squared[~pairs.same] >= 25 * 0.999).all()
    plain = ((X[pairs.index[:, 0]] - X[pairs.index[:, 1]]) ** 2).sum(1)
    assert (plain[pairs.same] > 8).any()
    assert (plain[~pairs.same] < 25).any()


def test_the_optimum_of_the_primal_problem():
    """LogDet(A, I) + γ LogDet(ξ, ξ₀) over A and ξ, by a general optimiser over Cholesky factors."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(12, 2))
    pairs = Pairs(rng.permutation(12).reshape(6, 2), np.arange(6) < 3)
    bounds, gamma = (0.5, 6.0), 0.7
    apart = X[pairs.index[:, 0]] - X[pairs.index[:, 1]]
    bound = np.where(pairs.same, *bounds)

    def objective(v: np.ndarray) -> float:
        factor = np.array([[np.exp(v[0]), 0.0], [v[1], np.exp(v[2])]])
        squared = ((apart @ factor) ** 2).sum(1)
        # The best ξ is the bound where it holds, and the squared distance where it does not.
        slack = np.where(pairs.same, np.maximum(squared, bound), np.minimum(squared, bound))
        divergence = (factor**2).sum() - 2 * (v[0] + v[2]) - 2
        return float(divergence + gamma * (slack / bound - np.log(slack / bound) - 1).sum())

    best = minimize(objective, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13}).x
    factor = np.array([[np.exp(best[0]), 0.0], [best[1], np.exp(best[2])]])
    metric = ITML(gamma=gamma, bounds=bounds, tol=1e-10, max_iter=10_000).fit(X, pairs=pairs)
    np.testing.assert_allclose(metric.get_mahalanobis_matrix(), factor @ factor.T, atol=1e-5)


def test_bounds_are_percentiles_of_squared_distances(wine):
    X, y = wine
    metric = ITML(max_iter=1).fit(X, pairs=sample_pairs(y, 10, random_state=0))
    np.testing.assert_allclose(metric.bounds_, np.percentile(pdist(X) ** 2, (5, 95)))


def test_bounds_leave_out_points_that_coincide():
    X = np.array([[0.0], [0.0], [0.0], [0.0], [1.0], [3.0]])
    assert (ITML().fit(X).bounds_ >= 1).all()
    np.testing.assert_array_equal(ITML().fit(np.zeros((4, 2))).bounds_, [1, 1])


def test_bounds_come_from_a_sample_of_many_points(monkeypatch, wine):
    X, _ = wine
    monkeypatch.setattr(itml, "SAMPLE", 60)
    np.testing.assert_allclose(ITML().fit(X).bounds_, np.percentile(pdist(X[::3]) ** 2, (5, 95)))


def test_more_dimensions_than_pairs_is_the_same_problem(wine):
    """The metric is the identity in all directions that no difference has a part in."""
    X, y = wine
    pairs = sample_pairs(y, 6, random_state=0)
    matrix = ITML().fit(X, pairs=pairs).get_mahalanobis_matrix()
    apart = X[pairs.index[:, 0]] - X[pairs.index[:, 1]]
    across = np.linalg.svd(apart)[2][6:]  # (7, 13), orthogonal to every difference
    np.testing.assert_allclose(across @ matrix, across, atol=1e-10)
    assert np.abs(matrix - np.eye(13)).max() > 0.05


def test_covariance_prior_whitens(wine):
    X, y = wine
    X = X @ np.diag(np.arange(1.0, 14.0))
    coded = ITML(prior="covariance").fit(X).transform(X)
    np.testing.assert_allclose(np.cov(coded.T), np.eye(13), atol=1e-10)
    with_pairs = ITML(prior="covariance").fit(X, pairs=sample_pairs(y, 40, random_state=0))
    assert np.percentile(pdist(coded) ** 2, 95) == pytest.approx(with_pairs.bounds_[1])


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"gamma": 0}, "gamma=0 must be a number above 0"),
        ({"bounds": (1, 2, 3)}, r"bounds=\(1, 2, 3\) must be two numbers above 0"),
        ({"bounds": (0, 2)}, r"bounds=\(0, 2\) must be two numbers above 0"),
        ({"bounds": 3}, "bounds=3 must be two numbers above 0, or None to read them off the data"),
        ({"prior": "random"}, "prior='random' must be 'identity' or 'covariance'"),
        ({"max_iter": 0}, "max_iter=0 must be an integer, 1 or more"),
        ({"tol": -1}, "tol=-1 must be a number, 0 or more"),
    ],
)
def test_settings_are_checked(setting, message):
    with pytest.raises(InvalidParameterError, match=message):
        ITML(**setting).fit([[0.0], [1.0]])


@pytest.mark.parametrize("width", [1e9, 1e27])
def test_weights_and_distances_of_any_size_bring_no_infinity(width):
    """One column is far wider than the other, and no answer may be broken at all."""
    X = np.array([[0, 0], [0, 1], [width, 0], [width, 1], [0, 2], [0, 3]])
    pairs = Pairs([(0, 2), (1, 3), (0, 1), (2, 3)], [True, True, False, False], np.full(4, 1e30))
    assert np.isfinite(ITML(max_iter=20).fit(X, pairs=pairs).components_).all()
