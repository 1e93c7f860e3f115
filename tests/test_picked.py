"""Answers to questions that were picked: how they are told from a draw, and what they weigh."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_wine

from pairmargin import MaxMarginClustering, Pairs, sample_pairs
from pairmargin.picked import evened_out, were_picked


@pytest.mark.parametrize("n_pairs", [20, 200, 2000])
@pytest.mark.parametrize("sizes", [[100] * 10, [700, 150, 50, 50, 50]])
def test_whoever_picks_questions_comes_back_to_the_same_points(sizes: list[int], n_pairs: int) -> None:
    truth = np.repeat(np.arange(len(sizes)), sizes)
    for balanced in (True, False):
        assert not were_picked(sample_pairs(truth, n_pairs, balanced=balanced, random_state=0), 1000)
    index = [(i % 5, 5 + i % 300) for i in range(n_pairs)]
    assert were_picked(Pairs(index, truth[[i for i, _ in index]] == truth[[j for _, j in index]]), 1000)


def test_no_answers_were_picked_by_nobody() -> None:
    assert not were_picked(Pairs.empty(), 100)


def test_an_answer_stands_for_the_points_that_lie_nearest_to_what_it_is_about() -> None:
    points = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 5.0, 5.1, 9.0])[:, None]
    pairs = Pairs([(0, 5), (0, 7), (5, 7)], [False, False, False])  # they have 5, 2 and 1 of the 8 points
    assert evened_out(points, pairs) == pytest.approx((1 + np.array([3.5, 3.0, 1.5]) * 3 / 8) / 2)


def test_copies_of_one_point_share_what_it_stands_for_and_none_weighs_nothing() -> None:
    points = np.zeros((6, 2))
    points[3:] = 1
    weight = evened_out(points, Pairs([(0, 1), (0, 3), (4, 5)], [True, False, True]))
    assert (weight > 0).all()
    assert weight.mean() == pytest.approx(1)


def two_classes_asked_about_unevenly() -> tuple[np.ndarray, Pairs]:
    """Blobs around a hard border, which nearly all answers are about, and one that is far away."""
    rng = np.random.RandomState(0)
    centres = np.repeat([[0.0, 0.0], [2.0, 0.0], [20.0, 0.0]], 60, axis=0)
    X, y = centres + rng.standard_normal((180, 2)), np.repeat([0, 1, 2], 60)
    index = [(0, i) for i in (*range(1, 20), *range(60, 80), 120)] + [(60, i) for i in (*range(61, 80), 120)]
    return X, Pairs(index, [y[i] == y[j] for i, j in index])


def test_training_weighs_picked_answers_evenly_unless_told_not_to() -> None:
    X, pairs = two_classes_asked_about_unevenly()
    assert were_picked(pairs, len(X))
    weighed = Pairs(pairs.index, pairs.same, evened_out((X - X.mean(0)) / X.std(0), pairs))
    settings = {"hidden_layer_sizes": (), "n_init": 1, "robust": False, "answer_price": 0.0, "random_state": 0}
    even = MaxMarginClustering(3, **settings).fit(X, pairs=pairs)
    by_hand = MaxMarginClustering(3, even_out=False, **settings).fit(X, pairs=weighed)
    uneven = MaxMarginClustering(3, even_out=False, **settings).fit(X, pairs=pairs)
    np.testing.assert_allclose(even.head_coef_, by_hand.head_coef_)
    assert not np.allclose(even.head_coef_, uneven.head_coef_)


def test_drawn_answers_weigh_what_they_did() -> None:
    X, y = load_wine(return_X_y=True)
    pairs = sample_pairs(y, 40, random_state=0)
    one, other = (
        MaxMarginClustering(3, even_out=even_out, max_iter=5, n_init=1, random_state=0).fit(X, pairs=pairs)
        for even_out in (True, False)
    )
    np.testing.assert_array_equal(one.head_coef_, other.head_coef_)
