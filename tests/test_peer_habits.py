"""What others test of their own estimators, and is true of ours: scikit-learn of all, metric-learn of metrics and
pairs, active-semi-supervised-clustering of links. The checks are our own."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest
from numpy.random import RandomState
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline

from pairmargin import (
    CMMC,
    ITML,
    KISSME,
    ConflictingPairsError,
    COPKMeans,
    KernelKMeans,
    LinkedSpectralClustering,
    MaxMarginClustering,
    MPCKMeans,
    Pairs,
    PCKMeans,
    XingMetric,
    clustering_accuracy,
    pair_roc,
    sample_pairs,
)

OURS = MaxMarginClustering(3, 8, pretrain_epochs=3, n_init=1, max_iter=30, random_state=0)
WITH_CENTRES = [cls(3, random_state=0) for cls in (COPKMeans, MPCKMeans, PCKMeans)]
LINKED = [*WITH_CENTRES, CMMC(3, random_state=0), LinkedSpectralClustering(3, random_state=0)]
METRICS = [ITML(), KISSME(), XingMetric(), XingMetric(diagonal=True)]


def named(*estimators: Any) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("estimator", estimators, ids=[type(each).__name__ for each in estimators])


each = named(OURS, *LINKED, KernelKMeans(3, random_state=0), *METRICS)
each_linked = named(OURS, *LINKED)
each_metric = named(*METRICS)


@pytest.fixture(scope="module")
def iris() -> tuple[Any, Any, Pairs]:
    X, y = load_iris(return_X_y=True)
    return X, y, sample_pairs(y, 60, random_state=0)


def result(estimator: Any, X: Any) -> Any:
    return estimator.transform(X) if hasattr(estimator, "transform") else estimator.labels_


# scikit-learn: settings, and fitting again


@each
def test_settings_that_are_set_are_those_that_are_given(estimator, iris):
    changed = type(estimator)().set_params(**estimator.get_params())
    assert changed.get_params() == estimator.get_params()
    np.testing.assert_array_equal(
        result(changed.fit(iris[0], pairs=iris[2]), iris[0]),
        result(clone(estimator).fit(iris[0], pairs=iris[2]), iris[0]),
    )


@each
def test_a_second_fit_forgets_the_first(estimator, iris):
    X, y, pairs = iris
    other, fresh = clone(estimator), clone(estimator).fit(X, pairs=pairs)
    other.fit(X[:80, :2], pairs=sample_pairs(y[:80], 20, random_state=1))
    np.testing.assert_array_equal(result(other.fit(X, pairs=pairs), X), result(fresh, X))
    assert vars(other).keys() == vars(fresh).keys()


@each
def test_fit_writes_neither_on_the_data_nor_on_the_answers(estimator, iris):
    X, _, pairs = iris
    own, before = X.copy(), pickle.dumps(pairs)
    clone(estimator).fit(own, pairs=pairs)
    np.testing.assert_array_equal(own, X)
    assert pickle.dumps(pairs) == before


@each
def test_no_answers_are_the_same_said_or_unsaid_and_labels_are_not_looked_at(estimator, iris):
    X, y, _ = iris
    unsaid = result(clone(estimator).fit(X), X)
    for fitted in (
        clone(estimator).fit(X, pairs=Pairs.empty()),
        clone(estimator).fit(X, y),
        clone(estimator).fit(X, -y),
    ):
        np.testing.assert_array_equal(result(fitted, X), unsaid)


@named(OURS, *LINKED, KernelKMeans(3, random_state=0))
def test_a_seed_and_its_generator_give_the_same(estimator, iris):
    X, _, pairs = iris
    drawn = clone(estimator).set_params(random_state=RandomState(0))
    labels = clone(estimator).fit_predict(X, pairs=pairs)
    np.testing.assert_array_equal(drawn.fit(X, pairs=pairs).labels_, labels)


@named(OURS, *WITH_CENTRES, CMMC(3, random_state=0), KernelKMeans(3, random_state=0))
def test_predict_gives_an_integer_for_every_row_be_it_one_or_many(estimator, iris):
    X, _, pairs = iris
    fitted = clone(estimator).fit(X, pairs=pairs)
    for rows in (X[:1], X, np.vstack([X, X + 0.1])):
        labels = fitted.predict(rows)
        assert labels.shape == (len(rows),)
        assert labels.dtype.kind == "i"
        assert set(labels) <= set(range(3))


def test_a_metric_and_a_clusterer_both_hear_the_answers_in_one_pipeline(iris):
    X, y, pairs = iris
    pipeline = Pipeline([("narrow", PCA(3)), ("metric", KISSME()), ("clusters", PCKMeans(3, random_state=0))])
    told = pipeline.fit(X, metric__pairs=pairs, clusters__pairs=pairs)
    narrow = PCA(3).fit_transform(X)
    by_hand = KISSME().fit(narrow, pairs=pairs).transform(narrow)
    np.testing.assert_array_equal(told[-1].labels_, PCKMeans(3, random_state=0).fit(by_hand, pairs=pairs).labels_)
    assert clustering_accuracy(y, told.predict(X)) > 0.9
    untold = clone(pipeline).fit(X)
    assert not np.allclose(untold[1].components_, told[1].components_)


# metric-learn: scores of pairs, and metrics that are metrics


@named(OURS, CMMC(3, random_state=0), *METRICS)
def test_scores_rank_unseen_pairs_and_do_not_depend_on_how_pairs_are_asked(estimator, iris):
    X, y, _ = iris
    known, unseen = sample_pairs(y, 200, random_state=1).split(0.5, random_state=0)
    fitted = clone(estimator).fit(X, pairs=known)
    score = fitted.pair_score(X, unseen)
    assert pair_roc(unseen, score).auc > 0.85
    order = RandomState(0).permutation(len(unseen))
    for asked, expected in (
        (unseen.index[order], score[order]),
        (unseen.index[:, ::-1], score),
        (unseen.index.tolist(), score),
        (unseen.index[:1], score[:1]),
    ):
        np.testing.assert_allclose(fitted.pair_score(X, asked), expected, rtol=1e-9)
    assert fitted.pair_score(X, []).shape == (0,)


@each_metric
def test_a_metric_is_one(estimator, iris):
    X, _, pairs = iris
    fitted = clone(estimator).fit(X, pairs=pairs)
    matrix = fitted.get_mahalanobis_matrix()
    np.testing.assert_allclose(matrix, matrix.T, rtol=1e-12)
    assert np.linalg.eigvalsh(matrix).min() >= -1e-9 * np.abs(matrix).max()
    rows = RandomState(0).permutation(len(X))[:12]
    places = [(i, j) for i, j in itertools.permutations(rows, 2)]
    distance = dict(zip(places, np.sqrt(-fitted.pair_score(X, places)), strict=True))
    for i, j, k in itertools.permutations(rows, 3):
        assert distance[i, k] <= distance[i, j] + distance[j, k] + 1e-9


@each_metric
def test_answers_that_contradict_each_other_stand_side_by_side_in_a_metric(estimator, iris):
    X, _, pairs = iris
    both = pairs + Pairs(pairs.index[:3], ~pairs.same[:3])
    assert np.isfinite(clone(estimator).fit(X, pairs=both).components_).all()


# active-semi-supervised-clustering: links


@each_linked
def test_links_that_contradict_each_other_are_refused_by_name(estimator, iris):
    chain = Pairs([(4, 6), (6, 9), (9, 4)], [True, True, False])
    with pytest.raises(ConflictingPairsError, match=r'pairs\[2\] = \(4, 9\) is "different" but pairs\[0\] = \(4, 6\)'):
        clone(estimator).fit(iris[0], pairs=chain)


@named(OURS, *WITH_CENTRES)
def test_what_follows_from_links_holds(estimator):
    """Two clouds; a chain of answers takes one point of the left cloud to the right one, and holds another apart."""
    X, _ = make_blobs([10, 10], 2, centers=[[-4, 0], [4, 0]], cluster_std=0.5, random_state=0)
    pairs = Pairs.from_lists(must_link=[(0, 10), (10, 11), (11, 12), (1, 2)], cannot_link=[(12, 1)])
    settings = {"n_clusters": 2} | ({"penalty": 1e3} if "penalty" in estimator.get_params() else {})
    labels = clone(estimator).set_params(**settings).fit(X, pairs=pairs).labels_
    assert labels[0] == labels[12]
    assert labels[0] != labels[2]


@named(OURS, *WITH_CENTRES, CMMC(3, random_state=0))
def test_if_all_are_the_same_there_is_one_cluster(estimator):
    X, _ = make_blobs(12, 2, centers=1, random_state=0)
    pairs = Pairs.from_labels(np.zeros(12))
    assert len(set(clone(estimator).set_params(n_clusters=2).fit(X, pairs=pairs).labels_)) == 1


@named(*WITH_CENTRES)
def test_if_no_two_are_the_same_every_point_has_a_cluster(estimator):
    X, pairs = np.arange(5.0)[:, None] ** 2, Pairs.from_labels(range(5))
    settings = {"n_clusters": 5} | ({"penalty": 1e3} if "penalty" in estimator.get_params() else {})
    assert len(set(clone(estimator).set_params(**settings).fit(X, pairs=pairs).labels_)) == 5


@each_linked
def test_links_are_kept_more_often_than_without_them(estimator):
    """Clouds so close that k-means tears many links."""
    kept = []
    for seed in range(3):
        X, y = make_blobs(60, 2, centers=3, cluster_std=2.5, center_box=(-5, 5), random_state=seed)
        pairs = sample_pairs(y, 40, random_state=seed)
        for given in (pairs, None):
            labels = clone(estimator).set_params(random_state=seed).fit(X, pairs=given).labels_
            kept.append(np.mean((labels[pairs.index[:, 0]] == labels[pairs.index[:, 1]]) == pairs.same))
    assert np.mean(kept[::2]) > np.mean(kept[1::2]) + 0.05
