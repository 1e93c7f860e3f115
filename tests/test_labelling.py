"""Labels that the scores and the answers decide together."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairmargin.labelling import asked_labels
from pairmargin.pairs import Pairs


def worth(scores: np.ndarray, pairs: Pairs, price: float, labels: np.ndarray) -> float:
    """The sum to maximise, written out."""
    together = labels[pairs.index[:, 0]] == labels[pairs.index[:, 1]]
    answers = np.where(pairs.same, 1, -1) * pairs.weight * together
    return float(scores[np.arange(len(labels)), labels].sum() + price * answers.sum())


def labels_of(scores: np.ndarray, pairs: Pairs, price: float) -> np.ndarray:
    labels = scores.argmax(1)
    labels[pairs.points] = asked_labels(scores[pairs.points], pairs, price)
    return labels


def test_without_answers_and_without_a_price_the_best_score_decides() -> None:
    scores = np.random.default_rng(0).normal(size=(20, 3))
    pairs = Pairs.from_lists(must_link=[(0, 1), (2, 3)], cannot_link=[(4, 5)])
    assert np.array_equal(labels_of(scores, Pairs.empty(), 3.0), scores.argmax(1))
    assert np.array_equal(labels_of(scores, pairs, 0.0), scores.argmax(1))


def test_points_in_no_answer_keep_their_best_cluster() -> None:
    scores = np.random.default_rng(1).normal(size=(30, 4))
    pairs = Pairs.from_lists(must_link=[(0, 1), (1, 2)], cannot_link=[(3, 4)])
    labels = labels_of(scores, pairs, 100.0)
    assert np.array_equal(labels[5:], scores[5:].argmax(1))


def test_a_component_moves_as_one() -> None:
    """Each of three is for its own cluster, by a little, and all have 2 as their second choice."""
    scores = np.array([[1.0, 0, 0.9], [0, 1.0, 0.9], [1.0, 0, 0.9]])
    pairs = Pairs.from_lists(must_link=[(0, 1), (1, 2)])
    assert labels_of(scores, pairs, 3.0).tolist() == [2, 2, 2]


def test_an_answer_is_worth_its_price_and_no_more() -> None:
    scores = np.array([[5.0, 0], [0, 5.0]])
    must = Pairs.from_lists(must_link=[(0, 1)])
    assert len(set(labels_of(scores, must, 6.0))) == 1
    assert labels_of(scores, must, 4.0).tolist() == [0, 1]
    cannot = Pairs.from_lists(cannot_link=[(0, 1)])
    assert labels_of(np.array([[5.0, 0], [4.0, 0]]), cannot, 5.0).tolist() == [0, 1]
    assert labels_of(np.array([[5.0, 0], [4.0, 0]]), cannot, 3.0).tolist() == [0, 0]


def test_one_wrong_answer_does_not_drag_a_component_along() -> None:
    """Two groups of five, each sure of itself and tied together, and one must-link across."""
    scores = np.repeat([[2.0, 0], [0, 2.0]], 5, axis=0)
    inside = [(i, i + 1) for i in (0, 1, 2, 3, 5, 6, 7, 8)]
    labels = labels_of(scores, Pairs.from_lists(must_link=[*inside, (4, 5)]), 3.0)
    assert labels.tolist() == [0] * 5 + [1] * 5


def test_answers_that_contradict_each_other_are_weighed() -> None:
    scores = np.array([[1.0, 0], [1.0, 0], [0, 0.1]])
    pairs = Pairs.from_lists(must_link=[(0, 1), (1, 2)], cannot_link=[(0, 2)])
    labels = labels_of(scores, pairs, 3.0)
    assert worth(scores, pairs, 3.0, labels) == max(
        worth(scores, pairs, 3.0, np.array(each)) for each in product(range(2), repeat=3)
    )


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 10), st.floats(0.1, 10))
def test_it_is_no_worse_than_the_scores_alone_and_nobody_wants_to_move(seed: int, n_pairs: int, price: float) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(8, 3))
    places = rng.permutation([(i, j) for i in range(8) for j in range(i)])[:n_pairs]
    pairs = Pairs(places, rng.random(n_pairs) < 0.5)

    labels = labels_of(scores, pairs, price)

    reached = worth(scores, pairs, price, labels)
    assert reached >= worth(scores, pairs, price, scores.argmax(1)) - 1e-9
    for i, k in product(range(8), range(3)):
        moved = labels.copy()
        moved[i] = k
        assert worth(scores, pairs, price, moved) <= reached + 1e-6


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_scores_of_any_precision(kind: type) -> None:
    scores = np.array([[1, 0], [0, 1], [1, 0]], dtype=kind)
    assert labels_of(scores, Pairs.from_lists(must_link=[(0, 1), (1, 2)]), 3.0).tolist() == [0, 0, 0]
