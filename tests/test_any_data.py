"""Whatever is given, there is a result without NaN or an error of ours, and no warning but ours.

Some hundred cases of `any_data.py` here; ``python tests/fuzz.py --cases 20000`` tries as many as you like.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from any_data import ATTEMPTS, CLUSTERERS, METRICS, only_ours, outcomes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs

from pairmargin import (
    ConflictingPairsError,
    InvalidDataError,
    MaxMarginClustering,
    Pairs,
    clustering_accuracy,
    sample_pairs,
    select_pairs,
)

few = settings(
    derandomize=True, database=None, deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow]
)
SIZES = [1e-30, 1e-12, 1e12, 1e30]
ALL = {"MaxMarginClustering": (MaxMarginClustering, {})} | CLUSTERERS | METRICS


@pytest.mark.parametrize("name", ATTEMPTS)
@few
@given(data=st.data())
def test_a_result_or_an_error_of_ours(name: str, data: st.DataObject) -> None:
    ATTEMPTS[name](data.draw)


def test_an_attempt_tells_a_mistake_from_a_refusal() -> None:
    before = outcomes["ConflictingPairsError"]
    with only_ours():
        raise ConflictingPairsError("the answers contradict each other")
    assert outcomes["ConflictingPairsError"] == before + 1
    with pytest.raises(ZeroDivisionError), only_ours():
        raise ZeroDivisionError
    with pytest.raises(RuntimeWarning, match="divide by zero"), only_ours():
        np.ones(1) / np.zeros(1)


def clouds() -> tuple[Any, Any, Pairs]:
    X, y = make_blobs(45, 3, centers=3, cluster_std=0.5, random_state=0)
    return X, y, sample_pairs(y, 30, random_state=0)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["MaxMarginClustering", *CLUSTERERS])
def test_clusters_of_any_size_are_found(name: str, size: float, kind: type) -> None:
    """Squares of such numbers are nothing or infinite in single precision."""
    X, y, pairs = clouds()
    quick = {"pretrain_epochs": 2, "n_init": 1, "max_iter": 20} if name == "MaxMarginClustering" else {}
    model = ALL[name][0](3, random_state=0, **quick)
    assert clustering_accuracy(y, model.fit((size * X).astype(kind), pairs=pairs).labels_) == 1


@pytest.mark.parametrize("name", ALL)
def test_numbers_that_have_no_squares_at_all_are_refused(name: str) -> None:
    X, _, pairs = clouds()
    with pytest.raises(InvalidDataError, match=r"X has numbers up to 9\.\d*e\+200, too large to calculate with"):
        ALL[name][0]().set_params(**({} if name in METRICS else {"n_clusters": 3})).fit(X * 1e200, pairs=pairs)


@pytest.mark.parametrize("name", ["CMMC", "COPKMeans", "MPCKMeans", "PCKMeans", *METRICS])
def test_sparse_data_are_refused_by_those_that_need_them_dense(name: str) -> None:
    with pytest.raises(InvalidDataError, match=r"X is a sparse csr_array, but dense data is required; pass X.toarray"):
        ALL[name][0]().fit(sp.csr_array(np.eye(10)))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_questions_about_what_is_no_number_are_refused(value: float) -> None:
    with pytest.raises(InvalidDataError, match="row 1, column 0"):
        select_pairs(None, [[0.0], [value], [1.0]], None, 1)
    with pytest.raises(InvalidDataError, match="2D"):
        select_pairs(None, [0.0, 1.0], None, 1)  # type: ignore[list-item]


def test_many_clusters_of_few_points_are_asked_about_without_a_warning() -> None:
    X = np.random.RandomState(0).standard_normal((9, 2))
    assert len(select_pairs(MaxMarginClustering(8), X, None, 3, "npu", random_state=0)) == 3


def test_a_point_that_is_different_from_everything_known_is_no_division_by_zero() -> None:
    X = np.array([[0.0], [1.0], [10.0], [11.0], [20.0]])
    pairs = Pairs.from_lists(must_link=[(0, 1), (2, 3)], cannot_link=[(0, 2), (4, 0), (4, 2)])
    with pytest.warns(UserWarning, match="only 0 questions are left"):
        assert len(select_pairs(MaxMarginClustering(2), X, pairs, 1, random_state=0)) == 0
