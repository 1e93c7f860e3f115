"""Choosing models by held-out answers: scikit-learn's own tools, no answer seen in fit, no row renumbered."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from pairmargin import (
    ITML,
    KISSME,
    InvalidPairsError,
    InvalidParameterError,
    MaxMarginClustering,
    PairClassifier,
    Pairs,
    PairSplit,
    PCKMeans,
    clustering_accuracy,
    sample_pairs,
)
from pairmargin.model_selection import cluster_labels, fit_with_pairs, follows, score_pairs

LINEAR = MaxMarginClustering(3, (), max_iter=30, random_state=0)


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


@pytest.fixture(scope="module")
def pairs(wine):
    return sample_pairs(wine[1], 100, random_state=0)


class Witness(ClusterMixin, BaseEstimator):
    """Remembers all that any of its clones was fitted on."""

    seen: list[tuple[Any, Pairs]] = []  # noqa: RUF012, shared by all clones on purpose

    def __init__(self, knob: int = 0) -> None:
        self.knob = knob

    def fit(self, X, y=None, *, pairs=None):
        self.seen.append((X, pairs))
        self.labels_ = np.zeros(len(X), dtype=int)
        return self

    def pair_score(self, X, index):
        return np.arange(len(index), dtype=float)


def as_set(index: np.ndarray) -> set[tuple[int, int]]:
    return {(min(pair), max(pair)) for pair in index.tolist()}


# What a search sees


@pytest.mark.parametrize("cv", [PairSplit(4, random_state=0), StratifiedKFold(4), 4])
def test_no_held_out_answer_is_seen_in_fit_and_no_row_is_left_out(cv, wine, pairs):
    X, _ = wine
    Witness.seen.clear()
    result = cross_validate(
        PairClassifier(Witness(), X), pairs.index, pairs.same, cv=cv, scoring="roc_auc", return_indices=True
    )
    assert len(Witness.seen) == 4
    for (data, seen), train, test in zip(
        Witness.seen, result["indices"]["train"], result["indices"]["test"], strict=True
    ):
        assert data is X  # all rows, in their order: a row number means the same everywhere
        assert seen == pairs[train]
        assert not as_set(seen.index) & as_set(pairs.index[test])


def test_a_search_holds_out_answers_for_every_candidate_and_refits_on_all(wine, pairs):
    X, _ = wine
    Witness.seen.clear()
    cv = PairSplit(3, random_state=0)
    search = GridSearchCV(PairClassifier(Witness(), X), {"estimator__knob": [1, 2]}, cv=cv, scoring="roc_auc")
    search.fit(pairs.index, pairs.same)
    trained = [pairs[train] for train, _ in cv.split(pairs)]
    assert [seen for _, seen in Witness.seen] == [*trained, *trained, pairs]
    assert all(data is X for data, _ in Witness.seen)  # clones share it


def test_grid_search_finds_the_number_of_clusters_and_refits(wine, pairs):
    X, y = wine
    grid = {"estimator__n_clusters": [2, 3]}
    search = GridSearchCV(PairClassifier(LINEAR, X), grid, cv=PairSplit(3, random_state=0), scoring="roc_auc")
    search.fit(pairs.index, pairs.same)
    assert search.best_params_ == {"estimator__n_clusters": 3}
    assert 0.9 < search.best_score_ <= 1
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])
    assert clustering_accuracy(y, search.best_estimator_.estimator_.labels_) > 0.95
    assert search.predict([(0, 1), (0, 177)]).tolist() == [True, False]


def test_grid_search_over_a_pipeline(wine, pairs):
    X, y = load_wine(return_X_y=True)  # not scaled: the pipeline does it
    model = make_pipeline(StandardScaler(), LINEAR)
    grid = {"estimator__maxmarginclustering__n_clusters": [2, 3]}
    search = GridSearchCV(PairClassifier(model, X), grid, cv=PairSplit(3, random_state=0), scoring="roc_auc")
    search.fit(pairs.index, pairs.same)
    assert search.best_params_ == {"estimator__maxmarginclustering__n_clusters": 3}
    assert clustering_accuracy(y, search.best_estimator_.estimator_[-1].labels_) > 0.95


def test_several_scores_and_weights_at_once(wine, pairs):
    X, _ = wine
    weighted = Pairs(pairs.index, pairs.same, np.linspace(0.5, 2, len(pairs)))
    Witness.seen.clear()
    result = cross_validate(
        PairClassifier(Witness(), X),
        weighted.index,
        weighted.same,
        cv=PairSplit(3, random_state=0),
        params={"sample_weight": weighted.weight},
        scoring=("roc_auc", "accuracy", "balanced_accuracy"),
    )
    assert {"test_roc_auc", "test_accuracy", "test_balanced_accuracy"} <= set(result)
    assert [seen for _, seen in Witness.seen] == [
        weighted[train] for train, _ in PairSplit(3, random_state=0).split(pairs)
    ]


def test_as_many_answers_as_rows_make_no_difference(wine):
    """Handed to `fit` as metadata, pairs would then be sliced like rows."""
    X, y = wine
    pairs = sample_pairs(y, len(X), random_state=0)
    scores = cross_val_score(PairClassifier(LINEAR, X), pairs.index, pairs.same, cv=PairSplit(2, random_state=0))
    assert scores.mean() > 0.85


def test_works_with_metadata_routing(wine, pairs):
    X, _ = wine
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(StandardScaler(), clone(LINEAR).set_fit_request(pairs=True))
        weighted = PairClassifier(model, X).set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        search = GridSearchCV(weighted, {"estimator__maxmarginclustering__max_iter": [5, 30]}, cv=PairSplit(2))
        search.fit(pairs.index, pairs.same, sample_weight=pairs.weight)
        assert search.best_score_ > 0.8


# The classifier


def test_clusters_say_same_where_labels_are_equal(wine, pairs):
    X, _ = wine
    i, j = np.array([(0, 1), (0, 100), (3, 170), (60, 61)]).T
    for model in (LINEAR, PCKMeans(3, random_state=0)):
        same = PairClassifier(model, X).fit(pairs.index, pairs.same)
        labels = same.estimator_.labels_
        assert same.predict(np.column_stack((i, j))).tolist() == (labels[i] == labels[j]).tolist()


def test_a_metric_gets_a_threshold_from_the_answers_it_was_fitted_on(wine, pairs):
    X, y = wine
    same = PairClassifier(KISSME(), X).fit(pairs.index, pairs.same)
    unseen = sample_pairs(y, 300, random_state=1)
    assert same.threshold_ < 0
    assert same.score(unseen.index, unseen.same) > 0.85
    assert same.score(pairs.index, pairs.same) > 0.9


def test_metric_and_clusters_in_one_pipeline_get_the_pairs_both(wine, pairs):
    X, y = wine
    model = make_pipeline(StandardScaler(), make_pipeline(KISSME(), "passthrough"), PCKMeans(3, random_state=0))
    same = PairClassifier(model, X).fit(pairs.index, pairs.same)
    alone = KISSME().fit(scale(X), pairs=pairs)
    np.testing.assert_allclose(same.estimator_[1][0].components_, alone.components_)
    assert clustering_accuracy(y, same.estimator_[-1].labels_) > 0.9


def test_cloning_shares_the_points_and_copies_the_model(wine):
    X, _ = wine
    original = PairClassifier(LINEAR, X).set_params(estimator__tol=0.5)
    twin = clone(original)
    assert twin.data is X
    assert twin.estimator is not original.estimator
    assert twin.estimator.get_params() == original.estimator.get_params()


def test_refuses_models_without_pairs_and_questions_before_fit(wine, pairs):
    X, _ = wine
    for model in (KMeans(3), make_pipeline(StandardScaler(), KMeans(3))):
        with pytest.raises(InvalidParameterError, match="has no step that takes pairs; use MaxMarginClustering"):
            PairClassifier(model, X).fit(pairs.index, pairs.same)
    with pytest.raises(NotFittedError):
        PairClassifier(LINEAR, X).predict(pairs.index)
    with pytest.raises(InvalidPairsError, match="names row 178 but the data has 178 rows"):
        PairClassifier(ITML(), X).fit([(0, 178)], [True])


def test_labels_are_found_or_missed_in_plain_words(wine, pairs):
    X, _ = wine
    fitted = fit_with_pairs(Witness(), X, pairs)
    assert cluster_labels(fitted, X).tolist() == [0] * len(X)
    with pytest.raises(InvalidParameterError, match="Witness has no clusters for these 5 rows"):
        cluster_labels(fitted, X[:5])
    kmeans = KMeans(3, n_init=1, random_state=0).fit(X)
    i, j = pairs.index.T
    assert score_pairs(kmeans, X, pairs).tolist() == (kmeans.labels_[i] == kmeans.labels_[j]).tolist()


# The splitter

N = 6
answers = st.lists(
    st.tuples(st.integers(0, N - 1), st.integers(0, N - 1), st.booleans()).filter(lambda a: a[0] != a[1]),
    min_size=2,
    max_size=10,
)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(answers, st.integers(1, 9))
def test_what_follows_is_what_the_closure_holds(given_answers, cut):
    """Of answers that do not contradict each other, `closure` writes out all that follows."""
    index, same = np.array([a[:2] for a in given_answers]), np.array([a[2] for a in given_answers])
    train, test = np.arange(len(index))[:cut], np.arange(len(index))[cut:]
    known = Pairs(index[train], same[train])
    if not len(test) or known.conflicts():
        return
    closure = known.closure()
    closed = {(i, j, kind) for (i, j), kind in zip(closure.index.tolist(), closure.same, strict=True)}
    wanted = [(*sorted(pair), kind) in closed for pair, kind in zip(index[test].tolist(), same[test], strict=True)]
    assert follows(index, same, train, test).tolist() == wanted


def test_folds_cover_all_answers_once_and_keep_the_proportion(wine):
    pairs = sample_pairs(wine[1], 90, balanced=False, random_state=0)
    folds = list(PairSplit(3, implied="keep", random_state=0).split(pairs))
    assert sorted(np.concatenate([test for _, test in folds]).tolist()) == list(range(90))
    for train, test in folds:
        assert not set(train) & set(test)
        assert abs(pairs.same[test].mean() - pairs.same.mean()) < 0.03


def test_answers_that_follow_are_not_scored(wine):
    pairs = sample_pairs(wine[1], 300, random_state=0)
    whole, rest = (list(PairSplit(5, implied=choice, random_state=0).split(pairs)) for choice in ("keep", "drop"))
    for (train, test), (same_train, kept) in zip(whole, rest, strict=True):
        assert np.array_equal(train, same_train)
        implied = follows(pairs.index, pairs.same, train, test)
        assert 0.2 < implied.mean() < 0.6
        assert kept.tolist() == test[~implied].tolist()


def test_says_so_where_all_answers_follow_from_the_others():
    pairs = Pairs.from_labels(np.arange(20) % 2)
    with pytest.raises(InvalidPairsError, match=r"fold 0 of 2 holds out 95 .* 0 same and 0 different remain"):
        list(PairSplit(2, random_state=1).split(pairs))


def test_same_seed_same_folds(pairs):
    one, other = (list(PairSplit(random_state=3).split(pairs)) for _ in range(2))
    assert all(np.array_equal(a, b) for x, y in zip(one, other, strict=True) for a, b in zip(x, y, strict=True))
    assert PairSplit(7).get_n_splits() == 7
    assert repr(PairSplit(7)) == "PairSplit(implied='drop', n_splits=7, random_state=None)"


@pytest.mark.parametrize(
    ("splitter", "error", "message"),
    [
        (PairSplit(1), InvalidParameterError, "n_splits=1 should be a whole number from 2 up"),
        (PairSplit(51), InvalidParameterError, "n_splits=51 .* of which there are 50"),
        (PairSplit(2.5), InvalidParameterError, "n_splits=2.5 should be a whole number"),
        (PairSplit(implied="some"), InvalidParameterError, 'implied should be "drop" or "keep", not \'some\''),
    ],
)
def test_refuses_settings_that_cannot_work(splitter, error, message, pairs):
    with pytest.raises(error, match=message):
        next(splitter.split(pairs.index, pairs.same))


def test_refuses_to_split_without_answers(pairs):
    with pytest.raises(InvalidPairsError, match="y is None; give the answers"):
        next(PairSplit().split(pairs.index))
