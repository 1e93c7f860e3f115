"""Spectral clustering with links: the graph, the links in it, the eigenvectors, and graphs that fall apart."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import RandomState
from sklearn.datasets import load_digits, make_blobs, make_moons
from sklearn.metrics import euclidean_distances
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks

from pairmargin import (
    ConflictingPairsError,
    FewDistinctPointsWarning,
    InvalidDataError,
    InvalidPairsError,
    InvalidParameterError,
    LinkedSpectralClustering,
    Pairs,
    clustering_accuracy,
    sample_pairs,
)
from pairmargin import graph as graphs
from pairmargin.baselines import spectral

AFFINITIES = pytest.mark.parametrize("affinity", ["nearest_neighbors", "rbf"])


def points(seed: int = 0, n: int = 40, d: int = 3) -> np.ndarray:
    return RandomState(seed).standard_normal((n, d))


def naive_affinity(X: np.ndarray, n_neighbors: int | None, gamma: float | None) -> np.ndarray:
    """Point by point: neighbours by sorting, a scale from the seventh, a tie if either is a neighbour."""
    distance = euclidean_distances(X)
    order = np.argsort(distance, axis=1)[:, 1:]
    scale = [distance[i, order[i, 6]] for i in range(len(X))]
    affinity = np.zeros((len(X), len(X)))
    for i in range(len(X)):
        for j in order[i][:n_neighbors]:
            by = 1 / (scale[i] * scale[j]) if gamma is None else gamma
            affinity[i, j] = affinity[j, i] = np.exp(-by * distance[i, j] ** 2)
    return affinity


def dense(matrix: np.ndarray | sp.csr_array) -> np.ndarray:
    return matrix.toarray() if sp.issparse(matrix) else matrix


@parametrize_with_checks([LinkedSpectralClustering(3), LinkedSpectralClustering(3, affinity="rbf")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# The graph


@pytest.mark.parametrize("gamma", [None, 0.7])
@pytest.mark.parametrize(("affinity", "n_neighbors"), [("nearest_neighbors", 9), ("rbf", None)])
def test_affinities_point_by_point(affinity, n_neighbors, gamma):
    X = points()
    model = LinkedSpectralClustering(2, affinity=affinity, n_neighbors=n_neighbors or 10, gamma=gamma).fit(X)
    found = dense(model.affinity_matrix_)
    np.testing.assert_allclose(found, naive_affinity(X, n_neighbors, gamma), atol=1e-12)
    np.testing.assert_allclose(found, found.T, rtol=1e-12)


def test_the_graph_of_neighbours_stays_sparse():
    X = points(n=700, d=5)
    graph = LinkedSpectralClustering(4, n_neighbors=6).fit(X, pairs=Pairs([(0, 1)], [True])).affinity_matrix_
    assert sp.issparse(graph)
    assert 6 * 700 < graph.nnz < 12 * 700 + 2


def test_sparse_points_give_what_dense_ones_give():
    X = np.where(points(1, d=8) > 0, points(1, d=8), 0)
    found = [LinkedSpectralClustering(3, random_state=0).fit(data) for data in (X, sp.csr_array(X))]
    np.testing.assert_allclose(*(dense(model.affinity_matrix_) for model in found), atol=1e-12)


# The links


@AFFINITIES
@settings(max_examples=20, deadline=None)
@given(places=st.sets(st.tuples(st.integers(0, 39), st.integers(0, 39)).filter(lambda p: p[0] != p[1]), max_size=30))
def test_links_and_what_follows_from_them_are_the_largest_or_none(affinity, places):
    y = RandomState(0).randint(0, 3, 40)
    index = np.array(sorted(places), dtype=int).reshape(-1, 2)
    pairs = Pairs(index, y[index[:, 0]] == y[index[:, 1]])
    model = LinkedSpectralClustering(3, affinity=affinity, n_init=1, random_state=0)
    expected = dense(model.fit(points()).affinity_matrix_).copy()
    for (i, j), same in zip(pairs.closure().index, pairs.closure().same, strict=True):
        expected[i, j] = expected[j, i] = float(same)
    found = model.fit(points(), pairs=pairs).affinity_matrix_
    np.testing.assert_allclose(dense(found), expected, rtol=1e-12)
    assert not sp.issparse(found) or (found.data > 0).all()  # what is cut takes no room


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_links_in_given_affinities_are_as_large_as_the_largest_and_leave_them_alone(make):
    given_affinity = make(5 * rbf_kernel(points()))
    before = dense(given_affinity).copy()
    pairs = Pairs.from_lists([(0, 1)], [(0, 2)])
    found = dense(LinkedSpectralClustering(2, affinity="precomputed").fit(given_affinity, pairs=pairs).affinity_matrix_)
    assert found[[0, 1], [1, 0]].tolist() == [5, 5]
    assert found[[0, 2, 1, 2], [2, 0, 2, 1]].tolist() == [0, 0, 0, 0]
    np.testing.assert_array_equal(dense(given_affinity), before)


def test_very_many_pairs_are_taken_as_given(monkeypatch, caplog):
    pairs = Pairs.from_lists([(0, 1), (1, 2)])
    monkeypatch.setattr(spectral, "CLOSED_UP_TO", 2)
    with caplog.at_level("INFO", "pairmargin"):
        graph = LinkedSpectralClustering(2, affinity="rbf").fit(points(), pairs=pairs).affinity_matrix_
    assert graph[0, 1] == graph[1, 2] == 1 > graph[0, 2]
    assert "3 points are in pairs, more than 2" in caplog.text


def test_links_decide_where_the_points_do_not():
    """One cloud without a gap: the links say which way to cut."""
    rng = RandomState(0)
    X = rng.uniform(size=(400, 2))
    for axis in (0, 1):
        y = (X[:, axis] > 0.5).astype(int)
        labels = LinkedSpectralClustering(2, random_state=0).fit(X, pairs=sample_pairs(y, 150, random_state=0)).labels_
        assert clustering_accuracy(y, labels) > 0.9


def test_answers_help_on_digits_over_several_draws():
    X, y = load_digits(return_X_y=True)
    X, y = X[::2] / 16, y[::2]
    found = {m: [] for m in (0, 500)}
    for seed in range(3):
        for m, accuracies in found.items():
            model = LinkedSpectralClustering(10, random_state=seed).fit(X, pairs=sample_pairs(y, m, random_state=seed))
            accuracies.append(clustering_accuracy(y, model.labels_))
    assert np.mean(found[0]) > 0.7
    assert np.mean(found[500]) > np.mean(found[0]) + 0.05


# The eigenvectors


def test_rows_are_eigenvectors_of_the_matrix_written_out():
    model = LinkedSpectralClustering(3).fit(points(), pairs=Pairs.from_lists([(0, 1)], [(2, 3)]))
    bare = LinkedSpectralClustering(3).fit(points()).affinity_matrix_  # the teleport is a share of its mean degree
    whole = dense(model.affinity_matrix_) + graphs.TELEPORT * bare.sum(1).mean() / 40
    root = 1 / np.sqrt(whole.sum(1))
    vectors = np.linalg.eigh(root[:, None] * whole * root)[1][:, -3:]
    expected = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    # rows of length 1, up to the signs of the eigenvectors: their dot products tell
    np.testing.assert_allclose(model.embedding_ @ model.embedding_.T, expected @ expected.T, atol=1e-8)


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_one_by_one_and_all_at_once_agree(kind, monkeypatch):
    X = make_blobs(300, centers=4, cluster_std=2, random_state=0)[0]
    affinity = {"sparse": "nearest_neighbors", "dense": "rbf"}[kind]
    found = []
    for limit in (0, 1000):
        monkeypatch.setattr(graphs, "DENSE_UP_TO", limit)
        found.append(LinkedSpectralClustering(4, affinity=affinity, random_state=0).fit(X).embedding_)
    np.testing.assert_allclose(*(rows @ rows.T for rows in found), atol=1e-6)


@AFFINITIES
def test_same_seed_same_bits_and_the_embedding_needs_none(affinity):
    X, before = points(n=600), np.random.get_state()[1].copy()  # noqa: NPY002
    one, again, other = (LinkedSpectralClustering(5, affinity=affinity, random_state=s).fit(X) for s in (0, 0, 1))
    np.testing.assert_array_equal(one.labels_, again.labels_)
    np.testing.assert_array_equal(one.embedding_, other.embedding_)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_moons_are_found_without_an_answer():
    X, y = make_moons(300, noise=0.05, random_state=0)
    assert clustering_accuracy(y, LinkedSpectralClustering(2, random_state=0).fit(X).labels_) == 1


# Graphs that fall apart, copies, and other edges


@pytest.mark.parametrize("n", [60, 1200])
def test_parts_are_the_clusters_if_there_are_as_many(n):
    X, y = make_blobs(n, centers=[[0, 0], [0, 100], [100, 0], [100, 100]], random_state=0)
    assert clustering_accuracy(y, LinkedSpectralClustering(4, n_neighbors=5, random_state=0).fit(X).labels_) == 1


def test_more_parts_than_clusters_go_together_by_distance():
    X, y = make_blobs(240, centers=[[0, 0], [0, 20], [20, 0], [500, 0], [500, 20], [520, 0]], random_state=0)
    labels = LinkedSpectralClustering(2, n_neighbors=5, random_state=0).fit(X).labels_
    assert clustering_accuracy(y // 3, labels) == 1


def test_a_few_points_far_from_all_others_are_no_cluster():
    far = np.array([[4, 60 + 0.1 * i] for i in range(4)])
    for seed in range(15):
        X, y = make_blobs(300, centers=[[0, 0], [8, 0]], random_state=seed)
        labels = LinkedSpectralClustering(2, n_init=1, random_state=0).fit(np.vstack((X, far))).labels_
        assert clustering_accuracy(y, labels[:300]) > 0.98


def test_affinities_that_fall_apart_may_be_given():
    block = np.ones((5, 5))
    apart = sp.csr_array(sp.block_diag([block, block, block]))
    labels = LinkedSpectralClustering(3, affinity="precomputed", random_state=0).fit(apart).labels_
    assert clustering_accuracy(np.repeat([0, 1, 2], 5), labels) == 1


@AFFINITIES
def test_copies_stay_together(affinity):
    X = np.vstack((np.repeat([[0.0, 0], [0.1, 0], [5, 5], [5.1, 5]], 30, axis=0), points(d=2)[:20]))
    model = LinkedSpectralClustering(2, affinity=affinity, random_state=0).fit(X)
    assert np.isfinite(model.embedding_).all()
    groups = model.labels_[:120].reshape(4, 30)
    assert (groups == groups[:, :1]).all()
    assert groups[0, 0] == groups[1, 0] != groups[2, 0] == groups[3, 0]


@AFFINITIES
def test_fewer_distinct_points_than_clusters_works_and_warns(affinity):
    X = np.repeat([[0.0, 1], [5, 5]], 15, axis=0)
    with pytest.warns(FewDistinctPointsWarning, match="only 2 distinct points but n_clusters=3"):
        model = LinkedSpectralClustering(3, affinity=affinity, random_state=0).fit(X)
    assert model.labels_.shape == (30,)
    assert np.isfinite(model.embedding_).all()


@AFFINITIES
@pytest.mark.parametrize("n", [1, 2, 3])
def test_very_few_points(affinity, n):
    assert LinkedSpectralClustering(1, affinity=affinity).fit(points(n=n)).labels_.tolist() == [0] * n
    assert set(LinkedSpectralClustering(n, affinity=affinity).fit(points(n=n)).labels_) == set(range(n))


def test_no_affinity_at_all_may_be_given():
    model = LinkedSpectralClustering(2, affinity="precomputed", random_state=0)
    with pytest.warns(FewDistinctPointsWarning):
        model.fit(np.zeros((4, 4)), pairs=Pairs.from_lists([(0, 1), (2, 3)]))
    assert clustering_accuracy([0, 0, 1, 1], model.labels_) == 1


def test_every_point_in_a_pair_works():
    X, y = make_blobs(60, centers=3, cluster_std=20, random_state=0)
    labels = LinkedSpectralClustering(3, random_state=0).fit_predict(X, pairs=Pairs.from_labels(y))
    assert clustering_accuracy(y, labels) == 1


def test_pickles():
    model = LinkedSpectralClustering(2, random_state=0).fit(points())
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).labels_, model.labels_)


# Bad input


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_clusters": 0}, "n_clusters=0 must be an integer, 1 or more"),
        ({"n_clusters": 41}, "n_clusters=41 is more than n_samples=40"),
        ({"affinity": "cosine"}, "affinity='cosine' must be 'nearest_neighbors' or 'rbf' or 'precomputed'"),
        ({"n_neighbors": 0}, "n_neighbors=0 must be an integer, 1 or more"),
        ({"gamma": -1}, "gamma=-1 must be a number above 0, or None for a scale of each point's own"),
        ({"n_init": 0}, "n_init=0 must be an integer, 1 or more"),
        ({"on_conflict": "keep"}, "on_conflict='keep' must be 'raise' or 'drop'"),
    ],
)
def test_refuses_settings_that_cannot_work(changes, message):
    with pytest.raises(InvalidParameterError, match=message):
        LinkedSpectralClustering(**({"n_clusters": 3} | changes)).fit(points())


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_refuses_what_are_no_affinities(make):
    crooked, negative = np.eye(4), np.eye(4)
    crooked[1, 2], negative[1, 2], negative[2, 1] = 0.5, -1, -1
    model = LinkedSpectralClustering(2, affinity="precomputed")
    with pytest.raises(
        InvalidDataError, match=r'X has shape \(4, 3\); with affinity="precomputed" it should be square'
    ):
        model.fit(make(crooked[:, :3]))
    with pytest.raises(InvalidDataError, match=r"differ by up to 0.5 from their mirror image; give \(X \+ X.T\) / 2"):
        model.fit(make(crooked))
    with pytest.raises(InvalidDataError, match=r"an affinity is -1.0; affinities should be 0 or more"):
        model.fit(make(negative))


def test_contradictions_are_raised_or_dropped():
    chain = Pairs.from_lists([(0, 1), (1, 2)], [(0, 2)])
    with pytest.raises(ConflictingPairsError, match='on_conflict="drop"'):
        LinkedSpectralClustering(3).fit(points(), pairs=chain)
    assert LinkedSpectralClustering(3, on_conflict="drop").fit(points(), pairs=chain).labels_.shape == (40,)
    with pytest.raises(InvalidPairsError, match="names row 40 but the data has 40 rows"):
        LinkedSpectralClustering(3).fit(points(), pairs=Pairs([(0, 40)], [True]))
