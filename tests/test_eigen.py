"""Eigenvectors: those of the largest eigenvalues, also where LAPACK's fast way gives up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

from pairmargin.eigen import last_eigenvectors


def symmetric(n: int, seed: int = 0) -> Any:
    half = np.random.default_rng(seed).normal(size=(n, n))
    return half + half.T


@pytest.mark.parametrize("with_metric", [False, True])
@pytest.mark.parametrize("gives_up", [False, True])
def test_are_those_of_the_largest_eigenvalues(
    monkeypatch: pytest.MonkeyPatch, with_metric: bool, gives_up: bool
) -> None:
    matrix, root = symmetric(6), symmetric(6, seed=1)
    within = root @ root + np.eye(6) if with_metric else None
    eigh = scipy.linalg.eigh

    def fast_way_gives_up(*args: Any, subset_by_index: Any = None, **settings: Any) -> Any:
        if subset_by_index is not None:
            raise scipy.linalg.LinAlgError("Internal Error.")
        return eigh(*args, **settings)

    if gives_up:
        monkeypatch.setattr(scipy.linalg, "eigh", fast_way_gives_up)
    found = last_eigenvectors(matrix, 2, within)
    values = eigh(matrix, within, eigvals_only=True)[-2:]
    metric = np.eye(6) if within is None else within
    np.testing.assert_allclose(matrix @ found, metric @ found * values, atol=1e-10)
    np.testing.assert_allclose(found.T @ metric @ found, np.eye(2), atol=1e-10)


def test_more_than_there_are_is_all_of_them() -> None:
    assert last_eigenvectors(symmetric(3), 5).shape == (3, 3)


@pytest.mark.parametrize("n", range(10, 21))
def test_of_points_that_are_all_tied_alike_none_is_missing(n: int) -> None:
    """LAPACK's way to a few eigenvectors finds none of some such matrices, n = 16 among them, without a word."""
    tied = np.ones((n, n)) - np.eye(n)
    root = 1 / np.sqrt(tied.sum(1) * 1.001)
    found = last_eigenvectors(root[:, None] * (tied + 0.001 * (n - 1) / n) * root, 2)
    assert found.shape == (n, 2)
    np.testing.assert_allclose(found.T @ found, np.eye(2), atol=1e-10)
    np.testing.assert_allclose(np.abs(found[:, -1]), n**-0.5)
