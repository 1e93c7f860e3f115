"""Which pairs to ask about: open ones, each row once, not all at one border."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairmargin import Pairs
from pairmargin.query import Known
from pairmargin.query.landmarks import open_questions

SURE = np.eye(2)  # of the landmarks, one for each of two clusters
NONE = Pairs.empty()


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda pair: pair[0] != pair[1]), max_size=8))
def test_what_is_not_open_is_what_the_closure_has(index: list[tuple[int, int]]) -> None:
    label = np.arange(8) % 3
    pairs = Pairs(index, [label[i] == label[j] for i, j in index]) if index else NONE
    closed = {tuple(pair) for pair in (pairs.closure().index.tolist() if index else [])}
    asked = np.array([(i, j) for i in range(8) for j in range(i + 1, 8)])
    assert (~Known(pairs, 8).is_open(asked)).tolist() == [tuple(pair) in closed for pair in asked.tolist()]


def test_the_least_certain_pair_comes_first_and_each_row_once() -> None:
    rows, chances = np.array([5, 6, 7]), np.array([[0.8, 0.2], [0.45, 0.55], [0.3, 0.7]])
    index, chance = open_questions(rows, chances, np.array([0, 1]), SURE, NONE, 10)
    assert index[:, 0].tolist() == [6, 7, 5]
    np.testing.assert_allclose(np.abs(chance - 0.5), [0.05, 0.2, 0.3])


def test_no_question_whose_answer_follows() -> None:
    rows, chances = np.array([5, 6, 7, 8]), np.full((4, 2), 0.5)
    pairs = Pairs.from_lists(must_link=[(5, 9), (9, 0)], cannot_link=[(6, 9)])
    index, _ = open_questions(rows, chances, np.array([0, 1]), SURE, pairs, 10)
    assert Known(pairs, 10).is_open(index).all()
    assert sorted(index[:, 0].tolist()) == [6, 7, 8]  # row 5 is as good as the landmark 0
    assert [6, 1] in index.tolist()  # row 6 is not, but still may be like the landmark 1


@pytest.mark.parametrize("chances", [np.empty((0, 2)), np.array([[1.0, 0.0], [0.0, 1.0]])])
def test_nothing_is_asked_where_all_is_known(chances: np.ndarray) -> None:
    index, chance = open_questions(np.arange(len(chances)), chances, np.array([8, 9]), SURE, NONE, 5)
    assert index.shape == (0, 2)
    assert chance.shape == (0,)


def test_a_single_cluster_leaves_nothing_to_ask() -> None:
    index, _ = open_questions(np.arange(3), np.ones((3, 1)), np.array([9]), np.ones((1, 1)), NONE, 5)
    assert index.shape == (0, 2)


def test_questions_are_spread_over_the_borders() -> None:
    at_first, at_second = np.tile([0.5, 0.5, 0.0], (9, 1)), np.tile([0.0, 0.4, 0.6], (2, 1))
    chances = np.concatenate((at_first, at_second))
    index, _ = open_questions(np.arange(11), chances, np.array([20, 21, 22]), np.eye(3), NONE, 6)
    assert len(index) == 6
    assert {9, 10} <= set(index[:, 0].tolist())  # though nine others are less certain
