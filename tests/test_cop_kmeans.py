"""`COPKMeans`: no answer is broken."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import RandomState
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from pairmargin import (
    ConflictingPairsError,
    COPKMeans,
    FewDistinctPointsWarning,
    InvalidPairsError,
    InvalidParameterError,
    Pairs,
    clustering_accuracy,
    sample_pairs,
)
from pairmargin.baselines.cop_kmeans import Groups, place

reproducible = settings(derandomize=True, deadline=None)


@parametrize_with_checks([COPKMeans(), COPKMeans(n_init=1, on_infeasible="violate")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def n_broken(labels, pairs):
    first, second = labels[pairs.index].T
    return int(((first == second) != pairs.same).sum())


def clusterings(pairs, n, n_clusters):
    """All clusterings of n points that break no answer."""
    every = np.indices((n_clusters,) * n).reshape(n, -1).T  # (K ** n, n)
    first, second = every[:, pairs.index[:, 0]], every[:, pairs.index[:, 1]]
    return every[((first == second) == pairs.same).all(axis=1)]


def inertia(X, labels):
    return sum(((X[labels == k] - X[labels == k].mean(0)) ** 2).sum() for k in set(labels))


@st.composite
def answers(draw, n=7):
    every = list(itertools.combinations(range(n), 2))
    must = draw(st.lists(st.sampled_from(every), max_size=2))
    cannot = draw(st.lists(st.sampled_from(every), max_size=18))
    return Pairs.from_lists(must, cannot).without_conflicts()


# Answers are kept


@reproducible
@given(answers(), st.integers(1, 4), st.integers(0, 99))
def test_breaks_no_answer_and_gives_up_only_where_nothing_is_possible(pairs, n_clusters, seed):
    X = RandomState(seed).randn(7, 2)
    model = COPKMeans(n_clusters, n_init=2, random_state=seed)
    if len(clusterings(pairs, 7, n_clusters)):
        assert n_broken(model.fit(X, pairs=pairs).labels_, pairs) == 0
    else:
        with pytest.raises(InvalidPairsError, match=rf"of 7 points found none of n_clusters={n_clusters} clusters"):
            model.fit(X, pairs=pairs)


@reproducible
@given(st.integers(0, 999), st.integers(5, 40))
def test_two_clusters_that_exist_are_always_found(seed, m):
    truth = RandomState(seed).permutation(np.arange(12) % 2)
    pairs = sample_pairs(truth, m, balanced=False, random_state=seed)
    labels = COPKMeans(2, n_init=1, random_state=0).fit(RandomState(seed).randn(12, 1), pairs=pairs).labels_
    assert n_broken(labels, pairs) == 0


@pytest.mark.parametrize("m", [100, 400, 2000])
def test_keeps_all_answers_about_wine(m, wine):
    X, y = wine
    for seed in range(3):
        pairs = sample_pairs(y, m, random_state=seed)
        model = COPKMeans(3, n_init=2, random_state=seed).fit(X, pairs=pairs)
        assert n_broken(model.labels_, pairs) == 0
        assert clustering_accuracy(y, model.labels_) > (0.95 if m == 100 else 0.98)


def test_finds_the_best_of_all_clusterings_of_a_few_points():
    found = 0
    for seed in range(20):
        rng = RandomState(seed)
        X, pairs = rng.randn(7, 2), sample_pairs(rng.randint(3, size=7), 4, balanced=False, random_state=seed)
        best = min(inertia(X, labels) for labels in clusterings(pairs, 7, 3))
        model = COPKMeans(3, n_init=30, tol=0, random_state=0).fit(X, pairs=pairs)
        assert model.inertia_ >= best - 1e-9
        found += model.inertia_ == pytest.approx(best)
    assert found >= 17  # nearest first is not always best


# The order in which groups are placed


def test_groups_are_one_point_with_their_weight():
    points = np.array([[0.0], [2.0], [10.0], [20.0]])
    pairs = Pairs.from_lists(must_link=[(0, 1)], cannot_link=[(0, 2), (1, 2)])
    groups = Groups.build(points, pairs.components(4), pairs.cannot_link)
    assert groups.means[:, 0].tolist() == [1, 10, 20]
    assert groups.size.tolist() == [2, 1, 1]
    assert groups.different.toarray().tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]  # said twice, counts once
    centres = np.array([[0.0], [5.0]])
    whole = [((points[:2] - c) ** 2).sum() - 2 for c in centres]  # but for the two distances of 1 from their mean
    np.testing.assert_allclose(groups.cost(centres)[0], whole)


def test_the_group_with_the_most_answers_chooses_first():
    different = Groups.build(np.zeros((4, 1)), np.arange(4), np.array([[0, 3], [1, 3], [2, 3]])).different
    labels, homeless = place(np.array([[0.0, 1], [0, 1], [0, 1], [0, 1]]), different)
    assert labels.tolist() == [1, 1, 1, 0]
    assert not homeless.any()


def test_a_group_with_fewer_clusters_left_chooses_before_others():
    # A ring of six in two clusters. Were 0, 1 and 2 to choose first, 3 would lie between different clusters.
    ring = np.array([[0, 3], [3, 1], [1, 4], [4, 2], [2, 5], [5, 0]])
    different = Groups.build(np.zeros((6, 1)), np.arange(6), ring).different
    labels, homeless = place(np.array([[0.0, 1], [1, 0], [0, 1], [0, 1], [0, 1], [0, 1]]), different)
    assert labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert not homeless.any()


def test_a_group_without_a_place_breaks_as_few_answers_as_it_can_nearby():
    # Three points that all differ share two clusters with a fourth that differs from none.
    different = Groups.build(np.zeros((4, 1)), np.arange(4), np.array([[0, 1], [1, 2], [0, 2]])).different
    labels, homeless = place(np.array([[0.0, 9], [9, 0], [5, 4], [1, 2]]), different)
    assert labels.tolist() == [0, 1, 1, 0]
    assert homeless.tolist() == [False, False, True, False]


# What cannot be


@pytest.fixture
def triangle():
    return Pairs.from_lists(must_link=[(2, 3)], cannot_link=[(0, 1), (1, 2), (0, 3)])


def test_says_how_many_points_found_no_place_and_what_to_do(triangle, wine):
    message = (
        r"[12] of 178 points found none of n_clusters=2 clusters .* in 3 runs of up to 10 starts; ask for more "
        r'clusters, raise n_init, .* on_infeasible="violate"'
    )
    with pytest.raises(InvalidPairsError, match=message):
        COPKMeans(2, n_init=3).fit(wine[0], pairs=triangle)


def test_violates_only_what_it_must(triangle, wine):
    labels = COPKMeans(2, on_infeasible="violate", random_state=0).fit(wine[0], pairs=triangle).labels_
    assert labels[2] == labels[3]
    assert n_broken(labels, triangle) == 1
    assert n_broken(COPKMeans(3, random_state=0).fit(wine[0], pairs=triangle).labels_, triangle) == 0


def test_contradictions_are_raised_or_dropped(wine):
    chain = Pairs.from_lists([(0, 1), (1, 2)], [(0, 2)])
    with pytest.raises(ConflictingPairsError, match='on_conflict="drop"'):
        COPKMeans(3).fit(wine[0], pairs=chain)
    labels = COPKMeans(3, on_conflict="drop", random_state=0).fit(wine[0], pairs=chain).labels_
    assert n_broken(labels, chain) == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_clusters": 0}, "n_clusters=0 must be an integer, 1 or more"),
        ({"n_clusters": 179}, "n_clusters=179 is more than n_samples=178"),
        ({"n_init": 2.0}, "n_init=2.0 must be an integer"),
        ({"max_iter": 0}, "max_iter=0 must be an integer, 1 or more"),
        ({"tol": -1}, "tol=-1 must be a number, 0 or more"),
        ({"on_infeasible": "keep"}, "on_infeasible='keep' must be 'raise' or 'violate'"),
        ({"on_conflict": "keep"}, "on_conflict='keep' must be 'raise' or 'drop'"),
    ],
)
def test_refuses_settings_that_cannot_work(settings, message, wine):
    with pytest.raises(InvalidParameterError, match=message):
        COPKMeans(**({"n_clusters": 3} | settings)).fit(wine[0])


# The rest


def test_without_answers_it_is_k_means(wine):
    model = COPKMeans(3, tol=0, random_state=0).fit(wine[0])
    kmeans = KMeans(3, n_init=10, tol=0, random_state=0).fit(wine[0])
    assert model.inertia_ == pytest.approx(kmeans.inertia_, rel=1e-6)
    assert adjusted_rand_score(model.labels_, kmeans.labels_) == 1
    np.testing.assert_array_equal(model.predict(wine[0]), model.labels_)


def test_inertia_falls_with_every_iteration_and_is_that_of_the_labels(wine):
    X, y = wine
    pairs = sample_pairs(RandomState(1).permutation(y), 40, random_state=0).without_conflicts()
    settings = {"n_init": 1, "tol": 0, "on_infeasible": "violate", "random_state": 0}
    last = COPKMeans(6, **settings).fit(X, pairs=pairs)
    inertias = [COPKMeans(6, max_iter=k, **settings).fit(X, pairs=pairs).inertia_ for k in range(1, last.n_iter_ + 1)]
    assert last.n_iter_ > 3
    assert (np.diff(inertias) < 0).all()
    assert last.inertia_ == pytest.approx(((X - last.cluster_centers_[last.labels_]) ** 2).sum())


def test_many_dimensions_do_not_draw_all_points_to_the_groups():
    """The mean of two points is closer to all others than a point is: as a start it would take them all."""
    rng = RandomState(0)
    y = np.arange(600) % 15
    X = rng.randn(15, 300)[y] * 0.3 + rng.randn(600, 300)
    pairs = sample_pairs(y, 20, random_state=0)
    without, with_answers = (
        clustering_accuracy(y, COPKMeans(15, n_init=3, random_state=0).fit(X, pairs=p).labels_) for p in (None, pairs)
    )
    assert with_answers > without - 0.1


def test_fewer_distinct_points_than_clusters():
    X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 4, axis=0)
    with pytest.warns(FewDistinctPointsWarning, match="only 2 distinct points but n_clusters=4"):
        model = COPKMeans(4, random_state=0).fit(X, pairs=Pairs.from_lists([(0, 7)], [(0, 1), (1, 2), (0, 2)]))
    assert np.isfinite(model.cluster_centers_).all()
    assert len(set(model.labels_[:3])) == 3  # points that coincide may still be called different


def test_same_seed_same_bits_dtype_and_unfitted(wine):
    X, y = wine[0].astype(np.float32), wine[1]
    pairs = sample_pairs(y, 50, random_state=0)
    one, other = (COPKMeans(5, n_init=2, random_state=7).fit(X, pairs=pairs) for _ in range(2))
    np.testing.assert_array_equal(one.cluster_centers_, other.cluster_centers_)
    assert one.cluster_centers_.dtype == np.float32
    with pytest.raises(NotFittedError):
        COPKMeans(3).predict(X)


def test_fewer_groups_than_clusters():
    """The answers join all points to two groups, so that four of six clusters stay empty."""
    X = RandomState(0).standard_normal((12, 2))
    pairs = Pairs.from_labels(np.arange(12) % 2)
    model = COPKMeans(6, random_state=0).fit(X, pairs=pairs)
    assert clustering_accuracy(np.arange(12) % 2, model.labels_) == 1
    assert np.isfinite(model.cluster_centers_).all()
