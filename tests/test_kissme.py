"""`KISSME` beside its formula."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from pairmargin import KISSME, Pairs, sample_pairs


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


def gaussian_pairs(together: np.ndarray, apart: np.ndarray, n_each: int) -> tuple[np.ndarray, Pairs]:
    """Points whose differences have the two covariances: every point is in one pair."""
    rng = np.random.default_rng(0)
    rows = [rng.multivariate_normal(np.zeros(len(s)), s, size=n_each) for s in (together, apart)]
    base = rng.normal(size=(2 * n_each, len(together)))
    X = np.vstack([base, base + np.vstack(rows)])
    index = np.column_stack([np.arange(2 * n_each), np.arange(2 * n_each, 4 * n_each)])
    return X, Pairs(index, np.arange(2 * n_each) < n_each)


def test_the_formula_with_many_pairs(wine):
    X, y = wine
    pairs = sample_pairs(y, 2000, random_state=0)
    outer = {True: np.zeros((13, 13)), False: np.zeros((13, 13))}
    for (i, j), same in zip(pairs.index, pairs.same, strict=True):
        outer[bool(same)] += np.outer(X[i] - X[j], X[i] - X[j]) / 1000
    values, vectors = np.linalg.eigh(np.linalg.inv(outer[True]) - np.linalg.inv(outer[False]))
    assert (values < 0).any()  # the projection has something to do
    expected = (vectors * np.maximum(values, 0)) @ vectors.T
    metric = KISSME(shrinkage=0).fit(X, pairs=pairs)
    np.testing.assert_allclose(metric.get_mahalanobis_matrix(), expected, atol=1e-10)
    assert len(metric.components_) == (values > 0).sum()


def test_it_finds_the_likelihood_ratio_that_the_pairs_were_drawn_from():
    together, apart = np.diag([1.0, 1.0, 2.0]), np.diag([1.0, 5.0, 4.0]) + 0.5
    X, pairs = gaussian_pairs(together, apart, n_each=20_000)
    expected = np.linalg.inv(together) - np.linalg.inv(apart)
    assert (np.linalg.eigvalsh(expected) > -0.05).all()
    np.testing.assert_allclose(KISSME().fit(X, pairs=pairs).get_mahalanobis_matrix(), expected, atol=0.1)


def test_shrinkage_is_for_few_pairs_alone(wine):
    X, y = wine
    gaps = []
    for n in (100, 4000):
        pairs = sample_pairs(y, n, random_state=0)
        shrunk, plain = (KISSME(shrinkage=s).fit(X, pairs=pairs).get_mahalanobis_matrix() for s in ("auto", 0))
        gaps.append(np.linalg.norm(shrunk - plain) / np.linalg.norm(plain))
    assert gaps[0] > 0.3
    assert gaps[1] < 0.1


def test_pairs_that_do_not_set_the_kinds_apart_leave_the_identity():
    """Must-links that are longer than cannot-links in every direction: no eigenvalue is positive."""
    X, pairs = gaussian_pairs(np.eye(3) * 9, np.eye(3), n_each=500)
    np.testing.assert_array_equal(KISSME().fit(X, pairs=pairs).components_, np.eye(3))
