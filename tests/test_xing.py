"""`XingMetric` beside metric-learn's matrices, general optimisers and the bound on what is left to gain."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_iris, load_wine
from sklearn.preprocessing import scale

from pairmargin import InvalidParameterError, Pairs, XingMetric, sample_pairs
from pairmargin.baselines.mahalanobis import shrunk_covariance

GOLDEN = json.loads((Path(__file__).parent / "data" / "metric-learn-iris.json").read_text(encoding="utf-8"))
DIAGONAL = pytest.mark.parametrize("diagonal", [False, True], ids=["full", "diagonal"])


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


def differences(X: np.ndarray, pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
    """Of must-links and of cannot-links."""
    (a, b), (c, d) = pairs.must_link.T, pairs.cannot_link.T
    return X[a] - X[b], X[c] - X[d]


def sum_of_squares(together: np.ndarray, matrix: np.ndarray) -> float:
    return sum(v @ matrix @ v for v in together)


def sum_of_distances(apart: np.ndarray, matrix: np.ndarray) -> float:
    return sum(np.sqrt(v @ matrix @ v) for v in apart)


@pytest.mark.parametrize("golden", GOLDEN["xing"], ids=["full", "diagonal"])
def test_beside_metric_learn(golden):
    """The same convex problem. Theirs stops a little early: ours must be at least as good, and nearly the same."""
    X, pairs = load_iris().data, Pairs(GOLDEN["index"], GOLDEN["same"])
    together, apart = differences(X, pairs)
    metric = XingMetric(diagonal=golden["diagonal"], shrinkage=0, tol=1e-9).fit(X, pairs=pairs)
    ours, theirs = metric.get_mahalanobis_matrix(), np.array(golden["matrix"])
    theirs /= sum_of_squares(together, theirs)
    assert sum_of_squares(together, ours) == pytest.approx(1)
    assert 1 <= sum_of_distances(apart, ours) / sum_of_distances(apart, theirs) < 1.01
    assert np.sum(ours * theirs) / np.linalg.norm(ours) / np.linalg.norm(theirs) > 0.9  # the angle between them


def test_full_optimum_by_a_general_optimiser():
    """Over Cholesky factors, in three dimensions, with a few answers that count more."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 3)) * [1, 2, 3]
    pairs = Pairs(rng.permutation(40).reshape(20, 2), np.arange(20) % 2 == 0, rng.uniform(1, 3, size=20))
    together, apart = differences(X, pairs)
    weight = pairs.weight[~pairs.same]
    scatter = (together * pairs.weight[pairs.same][:, None]).T @ together
    lower = np.tril_indices(3)

    def loss(v: np.ndarray) -> float:
        factor = np.zeros((3, 3))
        factor[lower] = v
        return -float(weight @ np.linalg.norm(apart @ factor, axis=1)) / np.sqrt(np.sum(factor * (scatter @ factor)))

    best = min(minimize(loss, rng.normal(size=6), tol=1e-12).fun for _ in range(5))
    metric = XingMetric(shrinkage=0, tol=1e-8, max_iter=20_000).fit(X, pairs=pairs)
    matrix = metric.get_mahalanobis_matrix()
    assert np.trace(matrix @ scatter) == pytest.approx(1)
    distances = np.sqrt(np.einsum("ij,jk,ik->i", apart, matrix, apart))
    assert weight @ distances == pytest.approx(-best, rel=1e-6)


def test_diagonal_optimum_by_newtons_objective(wine):
    """The paper's own form of the diagonal problem: Σ_S ‖·‖² − log Σ_D ‖·‖, whose optimum differs by a factor."""
    X, y = wine
    pairs = sample_pairs(y, 60, random_state=0)
    together, apart = differences(X, pairs)
    within, between = (together**2).sum(0), apart**2

    def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
        lengths = np.sqrt(between @ w + 1e-300)
        return within @ w - np.log(lengths.sum()), within - (between / (2 * lengths[:, None])).sum(0) / lengths.sum()

    best = minimize(objective, 1 / within, jac=True, bounds=[(0, None)] * 13, tol=1e-14, options={"maxiter": 5000}).x
    metric = XingMetric(diagonal=True, shrinkage=0, tol=1e-9, max_iter=100_000).fit(X, pairs=pairs)
    matrix = metric.get_mahalanobis_matrix()
    np.testing.assert_allclose(matrix, np.diag(np.diag(matrix)), atol=1e-15)
    np.testing.assert_allclose(np.diag(matrix), best / (within @ best), atol=1e-5 * matrix.max())


@DIAGONAL
@pytest.mark.parametrize("shrinkage", ["auto", 0.3])
def test_the_bound_holds_and_iterations_never_go_downhill(diagonal, shrinkage, wine):
    X, y = wine
    pairs = sample_pairs(y, 80, random_state=3)
    together, apart = differences(X, pairs)
    scatter = shrunk_covariance(together, np.ones(len(together)), shrinkage) * len(together)
    totals = []
    for max_iter in (1, 2, 3, 5, 10, 5000):
        matrix = (
            XingMetric(diagonal=diagonal, shrinkage=shrinkage, max_iter=max_iter, tol=1e-7)
            .fit(X, pairs=pairs)
            .get_mahalanobis_matrix()
        )
        assert np.trace(matrix @ scatter) == pytest.approx(1)
        totals.append(sum_of_distances(apart, matrix))
    assert (np.diff(totals) > 0).all()
    for tol in (0.1, 0.01, 0.001):
        metric = XingMetric(diagonal=diagonal, shrinkage=shrinkage, tol=tol).fit(X, pairs=pairs)
        gap = totals[-1] - sum_of_distances(apart, metric.get_mahalanobis_matrix())
        assert gap <= tol * totals[-1]
        assert metric.n_iter_ < 1000


@DIAGONAL
def test_no_metric_that_is_allowed_does_better(diagonal, wine):
    X, y = wine
    pairs = sample_pairs(y, 60, random_state=0)
    together, apart = differences(X, pairs)
    best = sum_of_distances(
        apart, XingMetric(diagonal=diagonal, shrinkage=0).fit(X, pairs=pairs).get_mahalanobis_matrix()
    )
    rng = np.random.default_rng(0)
    for rank in (1, 3, 13):
        factor = np.diag(rng.normal(size=13)) if diagonal else rng.normal(size=(13, rank))
        other = factor @ factor.T
        assert sum_of_distances(apart, other / sum_of_squares(together, other)) < best


def test_columns_on_which_must_links_agree_and_cannot_links_differ_win():
    rng = np.random.default_rng(0)
    y = np.arange(100) % 2
    X = rng.normal(size=(100, 4))
    X[:, 2] = y + 0.1 * X[:, 2]
    weights = np.diag(
        XingMetric(diagonal=True).fit(X, pairs=sample_pairs(y, 60, random_state=0)).get_mahalanobis_matrix()
    )
    assert weights[2] > 0.9 * weights.sum()


def test_without_shrinkage_directions_of_no_must_link_stay_out():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 5.0]])
    pairs = Pairs.from_lists(must_link=[(0, 1)], cannot_link=[(0, 2)])
    matrix = XingMetric(shrinkage=0).fit(X, pairs=pairs).get_mahalanobis_matrix()
    np.testing.assert_allclose(matrix, np.diag([1.0, 0.0]), atol=1e-12)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"diagonal": 1}, "diagonal=1 must be True or False"),
        ({"max_iter": 0}, "max_iter=0 must be an integer, 1 or more"),
        ({"tol": -0.1}, "tol=-0.1 must be a number, 0 or more"),
    ],
)
def test_settings_are_checked(setting, message):
    with pytest.raises(InvalidParameterError, match=message):
        XingMetric(**setting).fit([[0.0], [1.0]])
