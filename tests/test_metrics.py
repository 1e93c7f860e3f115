"""Clustering accuracy and pair ROC against slow definitions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairmargin.exceptions import InvalidDataError, InvalidPairsError
from pairmargin.metrics import PairRoc, clustering_accuracy, pair_roc, reliability, truth_scores
from pairmargin.pairs import Pairs

prove = settings(deadline=None, derandomize=True, max_examples=200)


def best_by_trying_all(true, pred):
    """The best one-to-one matching of clusters with classes, None standing for no class."""
    clusters, classes = sorted(set(pred)), sorted(set(true))
    choices = itertools.permutations(classes + [None] * len(clusters), len(clusters))
    return max(
        np.mean([dict(zip(clusters, c, strict=True))[p] == t for t, p in zip(true, pred, strict=True)]) for c in choices
    )


@prove
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=12))
def test_accuracy_is_that_of_the_best_matching(labels):
    true, pred = zip(*labels, strict=True)
    assert clustering_accuracy(true, pred) == pytest.approx(best_by_trying_all(true, pred))
    assert clustering_accuracy(true, pred) == pytest.approx(clustering_accuracy(pred, true))


def test_clusters_are_scored_on_the_points_that_have_a_label():
    truth = np.array(["a", None, "a", "b", "b", None], dtype=object)
    cluster = np.array([0, 1, 0, 1, 0, 0])
    found = truth_scores(truth, cluster)
    assert found["accuracy"] == clustering_accuracy(["a", "a", "b", "b"], [0, 0, 1, 0]) == 0.75
    assert found["adjusted_rand"] == pytest.approx(0)  # of the 6 pairs as many agree as by chance
    assert found["normalized_mutual_information"] == pytest.approx(0.3437, abs=1e-4)
    assert truth_scores(truth[[1, 5]], cluster[[1, 5]]) == {}


def test_names_of_clusters_do_not_matter():
    true = ["cat", "dog", "dog", "bird"]
    for pred in ([3, 1, 1, -1], ["x", "y", "y", "z"], [0.5, 0.1, 0.1, 7], np.array(true, dtype=object)):
        assert clustering_accuracy(true, pred) == 1.0
    assert isinstance(clustering_accuracy(true, true), float)


def test_fewer_and_more_clusters_than_classes():
    assert clustering_accuracy([0, 0, 0, 1, 2], [7, 7, 7, 7, 7]) == 0.6
    assert clustering_accuracy([0, 0, 0, 0], [0, 1, 2, 2]) == 0.5


@pytest.mark.parametrize(
    ("true", "pred", "message"),
    [
        ([], [], r"labels_true has shape \(0,\); give one label for each of at least one point"),
        ([0], [], r"labels_pred has shape \(0,\)"),
        ([[0, 1]], [0, 1], r"labels_true has shape \(1, 2\)"),
        ([0, 1, 1], [0, 1], "labels_true has 3 labels but labels_pred has 2; give one of each for every point"),
    ],
)
def test_labels_that_cannot_be_compared(true, pred, message):
    with pytest.raises(InvalidDataError, match=message):
        clustering_accuracy(true, pred)


def auc_by_counting(same, score, weight):
    """The chance that a "same" pair scores higher than a "different" one, ties counting half."""
    wins = total = 0.0
    for i, j in itertools.product(np.flatnonzero(same), np.flatnonzero(~same)):
        total += weight[i] * weight[j]
        wins += weight[i] * weight[j] * ((score[i] > score[j]) + (score[i] == score[j]) / 2)
    return wins / total


both_kinds = st.lists(st.tuples(st.booleans(), st.integers(-3, 3), st.floats(0.1, 10)), min_size=2, max_size=15).filter(
    lambda answers: len({same for same, _, _ in answers}) == 2
)


@prove
@given(both_kinds)
def test_auc_is_the_chance_that_same_scores_higher(answers):
    same, score, weight = (np.array(column) for column in zip(*answers, strict=True))
    assert pair_roc(same, score).auc == pytest.approx(auc_by_counting(same, score, np.ones(len(same))))
    pairs = Pairs([(0, k + 1) for k in range(len(same))], same, weight)
    assert pair_roc(pairs, score).auc == pytest.approx(auc_by_counting(same, score, weight))


@prove
@given(both_kinds)
def test_the_curve_is_made_of_shares_above_thresholds(answers):
    same, score, _ = (np.array(column) for column in zip(*answers, strict=True))
    roc = pair_roc(same.astype(int), score)
    assert isinstance(roc, PairRoc)
    for fpr, tpr, threshold in zip(roc.fpr, roc.tpr, roc.thresholds, strict=True):
        assert tpr == pytest.approx((score >= threshold)[same].mean())
        assert fpr == pytest.approx((score >= threshold)[~same].mean())
    assert (roc.fpr[0], roc.tpr[0], roc.fpr[-1], roc.tpr[-1]) == (0, 0, 1, 1)


def test_a_perfect_and_a_reversed_score():
    pairs = Pairs.from_labels([0, 0, 1, 1])
    assert pair_roc(pairs, pairs.same).auc == 1.0
    assert pair_roc(pairs, ~pairs.same).auc == 0.0
    assert pair_roc(pairs, np.zeros(len(pairs))).auc == 0.5


@pytest.mark.parametrize(
    ("same", "score", "error", "message"),
    [
        ([True, True], [0, 1], InvalidPairsError, "needs both kinds of pairs, but 2 of 2 are same; add some"),
        (Pairs([(0, 1)], [False]), [0], InvalidPairsError, "but 0 of 1 are same"),
        (Pairs.empty(), [], InvalidPairsError, "but 0 of 0 are same"),
        ([1, -1], [0, 1], InvalidPairsError, "the answers are int64 .*give Pairs, or True or False for each pair"),
        (["yes", "no"], [0, 1], InvalidPairsError, "give Pairs, or True or False"),
        ([[True, False]], [0, 1], InvalidPairsError, r"of shape \(1, 2\)"),
        (
            [True, False],
            [0],
            InvalidDataError,
            r"score has shape \(1,\) but there are 2 pairs; give one score for each",
        ),
        ([True, False], [0, np.nan], InvalidDataError, r"score\[1\] is nan; scores should be finite numbers"),
    ],
)
def test_what_has_no_curve(same, score, error, message):
    with pytest.raises(error, match=message):
        pair_roc(same, score)


def test_reliability_by_hand():
    bins = reliability([True, False, True, True, False], [0.05, 0.0, 0.55, 1.0, 0.99])
    assert [(each.low, each.high, each.answers) for each in bins] == [(0.0, 0.1, 2), (0.5, 0.6, 1), (0.9, 1.0, 2)]
    assert [each.chance for each in bins] == pytest.approx([0.025, 0.55, 0.995])
    assert [each.same for each in bins] == [0.5, 1, 0.5]
