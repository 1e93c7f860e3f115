"""Labels that the scores and the answers decide together."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairmargin.labelling import asked_labels, lesson
from pairmargin.pairs import Pairs


def groups_of(pairs: Pairs, believed: np.ndarray, n: int) -> list[set[int]]:
    """Points joined by believed must-links, unless a believed cannot-link is among them; written out."""
    groups = [{i} for i in range(n)]
    for (i, j), same, trusted in zip(pairs.index.tolist(), pairs.same, believed, strict=True):
        if same and trusted:
            one, other = (next(group for group in groups if end in group) for end in (i, j))
            if one is not other:
                groups.remove(other)
                one |= other
    apart = pairs.index[~pairs.same & believed].tolist()
    torn = [group for group in groups if any(i in group and j in group for i, j in apart)]
    return [group for group in groups if group not in torn] + [{i} for group in torn for i in group]


def worth(scores: np.ndarray, pairs: Pairs, price: float, labels: np.ndarray, believed: np.ndarray) -> float:
    """The sum to maximise, written out: what follows from a cannot-link is said of all points of two groups."""
    total = scores[np.arange(len(labels)), labels].sum()
    home = {i: g for g, group in enumerate(groups_of(pairs, believed, len(labels))) for i in group}
    said: dict[tuple[int, int], list[float]] = {}
    for (i, j), same, weight, trusted in zip(pairs.index.tolist(), pairs.same, pairs.weight, believed, strict=True):
        if trusted and not same and home[i] != home[j]:
            said.setdefault((min(home[i], home[j]), max(home[i], home[j])), []).append(weight)
        elif labels[i] == labels[j]:
            total += price * weight if same else -price * weight
    for i, j in product(range(len(labels)), repeat=2):
        if labels[i] == labels[j]:
            total -= price * np.mean(said.get((home[i], home[j]), 0))
    return float(total)


def labels_of(scores: np.ndarray, pairs: Pairs, price: float, believed: np.ndarray | None = None) -> np.ndarray:
    labels = scores.argmax(1)
    trusted = np.ones(len(pairs), dtype=bool) if believed is None else believed
    labels[pairs.points] = asked_labels(scores[pairs.points], pairs, price, trusted)
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
    labels, all_believed = labels_of(scores, pairs, 3.0), np.ones(3, dtype=bool)
    assert worth(scores, pairs, 3.0, labels, all_believed) == max(
        worth(scores, pairs, 3.0, np.array(each), all_believed) for each in product(range(2), repeat=3)
    )


def test_what_follows_from_an_answer_counts_for_all_points_of_two_groups() -> None:
    """Two groups of five that want the same cluster; one answer says that they are different."""
    scores = np.repeat([[2.0, 0], [1.5, 0]], 5, axis=0)
    inside = [(i, i + 1) for i in (0, 1, 2, 3, 5, 6, 7, 8)]
    pairs = Pairs.from_lists(must_link=inside, cannot_link=[(0, 5)])
    assert labels_of(scores, pairs, 3.0).tolist() == [0] * 5 + [1] * 5
    doubted = pairs.same  # nothing follows from the cannot-link, and alone it is worth less than five scores
    assert labels_of(scores, pairs, 1.0, believed=doubted).tolist() == [0] * 10


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 10), st.floats(0.1, 10))
def test_it_is_no_worse_than_the_scores_alone_and_nobody_wants_to_move(seed: int, n_pairs: int, price: float) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(8, 3))
    places = rng.permutation([(i, j) for i in range(8) for j in range(i)])[:n_pairs]
    pairs, believed = Pairs(places, rng.random(n_pairs) < 0.5, rng.random(n_pairs) + 0.1), rng.random(n_pairs) < 0.8

    labels = labels_of(scores, pairs, price, believed)

    reached = worth(scores, pairs, price, labels, believed)
    assert reached >= worth(scores, pairs, price, scores.argmax(1), believed) - 1e-9
    for i, k in product(range(8), range(3)):
        moved = labels.copy()
        moved[i] = k
        assert worth(scores, pairs, price, moved, believed) <= reached + 1e-6


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_scores_of_any_precision(kind: type) -> None:
    scores = np.array([[1, 0], [0, 1], [1, 0]], dtype=kind)
    assert labels_of(scores, Pairs.from_lists(must_link=[(0, 1), (1, 2)]), 3.0).tolist() == [0, 0, 0]


def test_in_a_lesson_points_go_with_the_nearest_asked_point_of_their_cluster() -> None:
    """Cluster 0 holds two clouds, of which the answers send one away; 1 is moved as a whole, 2 is not asked about."""
    codes = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [9.0], [9.1], [5.2]])
    labels = np.array([0, 0, 0, 0, 0, 1, 1, 2])
    is_asked = np.isin(np.arange(8), [0, 3, 5])
    taught = lesson(labels, is_asked, np.array([0, 1, 3]), codes)
    np.testing.assert_array_equal(taught, [0, 0, 0, 1, 1, 3, 3, 2])
    np.testing.assert_array_equal(labels, [0, 0, 0, 0, 0, 1, 1, 2])  # the ones that were given are left alone


def test_a_lesson_that_tells_nobody_to_move_moves_nobody() -> None:
    rng = np.random.default_rng(0)
    labels, is_asked = rng.integers(4, size=50), rng.random(50) < 0.3
    np.testing.assert_array_equal(lesson(labels, is_asked, labels[is_asked], rng.normal(size=(50, 2))), labels)
    everyone = np.ones(50, dtype=bool)
    np.testing.assert_array_equal(lesson(labels, everyone, 3 - labels, rng.normal(size=(50, 2))), 3 - labels)
