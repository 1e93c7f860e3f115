"""`PCKMeans`, and what it shares with its relatives in `linked_kmeans`."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import RandomState
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine, make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from pairmargin import (
    ConflictingPairsError,
    FewDistinctPointsWarning,
    InvalidDataError,
    InvalidPairsError,
    InvalidParameterError,
    Pairs,
    PCKMeans,
    clustering_accuracy,
    sample_pairs,
)
from pairmargin.baselines.linked_kmeans import (
    Prices,
    choose,
    choose_as_groups,
    cluster_means,
    descend,
    linked_start,
    nearest,
    spread_out,
    squared_distances,
    turns,
)

reproducible = settings(derandomize=True, deadline=None)


@parametrize_with_checks([PCKMeans(), PCKMeans(n_init=1, penalty=0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@st.composite
def problems(draw):
    """Prices of a small problem, its pairs (contradictions among them), and labels."""
    n, n_clusters = draw(st.integers(2, 9)), draw(st.integers(1, 4))
    every = list(itertools.combinations(range(n), 2))
    index = draw(st.lists(st.sampled_from(every), min_size=1, max_size=12))
    rng = RandomState(draw(st.integers(0, 999)))
    pairs = Pairs(index, rng.rand(len(index)) < 0.5, rng.uniform(0.1, 3, len(index)))
    distance, answer = rng.rand(n, n_clusters), rng.rand(len(pairs), n_clusters)
    return distance, answer, pairs, rng.randint(n_clusters, size=n)


def naive_total(distance, answer, pairs, labels):
    """What every point pays, and every broken answer: "same" by halves in both clusters, "different" in their one."""
    total = sum(distance[i, k] for i, k in enumerate(labels))
    for price, (i, j), same in zip(answer, pairs.index, pairs.same, strict=True):
        if same and labels[i] != labels[j]:
            total += (price[labels[i]] + price[labels[j]]) / 2
        if not same and labels[i] == labels[j]:
            total += price[labels[i]]
    return total


# What linked points choose


@reproducible
@given(problems())
def test_prices_add_up_to_what_is_broken(problem):
    distance, answer, pairs, labels = problem
    prices = Prices.of_answers(distance, answer, pairs, fixed=5.0)
    assert prices.total(pairs, labels) == pytest.approx(5 + naive_total(distance, answer, pairs, labels))


@reproducible
@given(problems(), st.integers(0, 999))
def test_a_sweep_is_one_point_after_another_in_a_random_order(problem, seed):
    distance, answer, pairs, labels = problem
    expected = labels.copy()
    for i in np.argsort(RandomState(seed).permutation(len(labels))):
        totals = []
        for k in range(distance.shape[1]):
            expected[i] = k
            totals.append(naive_total(distance, answer, pairs, expected))
        expected[i] = int(np.argmin(totals))
    found = choose(Prices.of_answers(distance, answer, pairs), pairs.index, labels, RandomState(seed))
    np.testing.assert_array_equal(found, expected)


@reproducible
@given(problems(), st.integers(0, 999))
def test_linked_points_take_turns_and_others_do_not_wait(problem, seed):
    index, n = problem[2].index, len(problem[3])
    place, turn = RandomState(seed).permutation(n), turns(index, n, RandomState(seed))
    for i in range(n):
        neighbours = set(index[(index == i).any(axis=1)].ravel()) - {i}
        before = [turn[j] for j in neighbours if place[j] < place[i]]
        assert turn[i] == (max(before) + 1 if before else 0)


@reproducible
@given(problems(), st.integers(0, 999))
def test_groups_move_as_one_where_that_is_cheaper(problem, seed):
    distance, answer, pairs, labels = problem
    prices, group = Prices.of_answers(distance, answer, pairs), pairs.components(len(labels))
    found = choose_as_groups(prices, pairs.index, labels, group, RandomState(seed))
    assert prices.total(pairs, found) <= prices.total(pairs, labels) + 1e-9
    for g in set(group):
        if len(set(labels[group == g])) == 1:
            assert len(set(found[group == g])) == 1


def test_a_group_that_no_point_can_leave_alone_leaves_at_once():
    pairs, labels = Pairs.from_lists(must_link=[(0, 1), (1, 2)]), np.zeros(3, dtype=int)
    prices = Prices.of_answers(np.array([[1.0, 0.0]] * 3), np.full((2, 2), 9.0), pairs)
    assert choose(prices, pairs.index, labels, RandomState(0)).tolist() == [0, 0, 0]
    moved = choose_as_groups(prices, pairs.index, labels, np.zeros(3, dtype=int), RandomState(0))
    assert moved.tolist() == [1, 1, 1]


class Scripted:
    """A model whose first prices send all points to one cluster, and the next ones to the other."""

    def __init__(self, pairs, first=True):
        self.pairs, self.first = pairs, first

    def prices(self):
        distance = np.array([[1.0, 2.0] if self.first else [1.0, 0.0]] * 3)
        return Prices.of_answers(distance, np.full((len(self.pairs), 2), 9.0), self.pairs)

    def update(self, labels, prices):
        return Scripted(self.pairs, first=False)


def test_a_descent_moves_points_and_groups():
    for pairs in (Pairs.empty(), Pairs.from_lists(must_link=[(0, 1), (1, 2)])):
        fit = descend(Scripted(pairs), pairs, max_iter=9, least_fall=0, rng=RandomState(0))
        assert fit.labels.tolist() == [1, 1, 1]
        assert (fit.objective, fit.n_iter, fit.model.first) == (0, 2, False)


def test_a_descent_ends_where_the_objective_falls_by_less():
    fit = descend(Scripted(Pairs.empty()), Pairs.empty(), max_iter=9, least_fall=5, rng=RandomState(0))
    assert (fit.objective, fit.n_iter) == (0, 2)  # the last fall, of 3, is kept
    fit = descend(Scripted(Pairs.empty()), Pairs.empty(), max_iter=1, least_fall=0, rng=RandomState(0))
    assert (fit.objective, fit.n_iter) == (3, 1)


# Starts, means and distances


def test_distances_are_those_of_a_double_loop():
    rng = RandomState(0)
    points, centres = rng.randn(20, 3), rng.randn(4, 3)
    expected = [[((x - c) ** 2).sum() for c in centres] for x in points]
    np.testing.assert_allclose(squared_distances(points, centres), expected)
    np.testing.assert_array_equal(nearest(points + 1e8, centres + 1e8), np.argmin(expected, axis=1))


def test_means_are_weighted_and_an_empty_cluster_goes_where_it_is_dearest():
    points, weight = np.array([[0.0], [3.0], [10.0]]), np.array([2, 1, 1])
    cost = np.array([[1.0, 9, 9], [2, 9, 9], [7, 9, 9]])
    means = cluster_means(points, weight, np.array([0, 0, 0]), cost)
    assert means[:, 0].tolist() == [(2 * 0 + 3 + 10) / 4, 10, 3]


def test_spread_out_takes_a_centre_from_every_cloud():
    X, y = make_blobs(60, centers=6, cluster_std=0.1, random_state=1)
    for seed in range(5):
        centres = spread_out(X, np.ones(60), 6, RandomState(seed))
        assert set(y[nearest(centres, X)]) == set(range(6))
    only = spread_out(X, (y == 2).astype(float), 3, RandomState(0))
    assert set(y[nearest(only, X)]) == {2}


def test_start_is_from_neighbourhoods_if_there_are_enough():
    points = np.array([[0.0], [1], [10], [12], [30], [33], [50]])
    pairs = Pairs.from_lists(must_link=[(0, 1), (2, 3), (4, 5)])
    starts = {k: linked_start(points, pairs, k, RandomState(0))[:, 0].tolist() for k in (2, 3, 4)}
    assert sorted(starts[3]) == [0.5, 11, 31.5]
    assert set(starts[2]) < {0.5, 11, 31.5}
    assert set(starts[4]) < set(points[:, 0])


# The method


@pytest.mark.parametrize("penalty", [0.0, 0.1, 1.0])
def test_objective_is_that_of_the_paper(penalty, wine):
    X, y = wine
    wrong = sample_pairs(RandomState(0).permutation(y), 60, random_state=0)  # so that some answers are broken
    pairs = Pairs(wrong.index, wrong.same, RandomState(1).uniform(0.5, 2, len(wrong)))
    model = PCKMeans(3, penalty=penalty, n_init=2, on_conflict="keep", random_state=0).fit(X, pairs=pairs)
    scale = penalty * sum(((x - X.mean(0)) ** 2).sum() for x in X) / len(X)
    distance = [[((x - c) ** 2).sum() / 2 for c in model.cluster_centers_] for x in X]
    answer = scale * np.repeat(pairs.weight[:, None], 3, axis=1)
    expected = naive_total(np.array(distance), answer, pairs, model.labels_)
    assert model.objective_ == pytest.approx(expected)
    assert model.inertia_ == pytest.approx(2 * sum(distance[i][k] for i, k in enumerate(model.labels_)))
    if penalty:
        assert model.objective_ > model.inertia_ / 2  # something is broken


def test_objective_falls_with_every_iteration(wine):
    X, y = wine
    pairs = sample_pairs(RandomState(0).permutation(y), 80, random_state=0)
    settings = {"n_init": 1, "tol": 0, "on_conflict": "keep", "random_state": 3}
    last = PCKMeans(6, **settings).fit(X, pairs=pairs)
    assert last.n_iter_ > 4
    objectives = [
        PCKMeans(6, max_iter=k, **settings).fit(X, pairs=pairs).objective_ for k in range(1, last.n_iter_ + 1)
    ]
    assert (np.diff(objectives) < 0).all()
    assert objectives[-1] == last.objective_


def test_finds_the_best_of_all_clusterings_of_a_few_points():
    found = 0
    for seed in range(10):
        rng = RandomState(seed)
        X, truth = rng.randn(6, 2), rng.randint(3, size=6)
        pairs = sample_pairs(truth, 4, balanced=False, random_state=seed)
        price = 0.3 * ((X - X.mean(0)) ** 2).sum() / 6
        best = np.inf
        for labels in itertools.product(range(3), repeat=6):
            k = np.array(labels)
            inertia = sum(((X[k == c] - X[k == c].mean(0)) ** 2).sum() for c in set(labels))
            first, second = k[pairs.index].T
            best = min(best, inertia / 2 + price * ((first == second) != pairs.same).sum())
        objective = PCKMeans(3, penalty=0.3, n_init=15, tol=0, random_state=0).fit(X, pairs=pairs).objective_
        assert objective >= best - 1e-9
        found += objective == pytest.approx(best)
    assert found >= 9  # one point or group at a time does not always get there


@pytest.mark.parametrize(("settings", "pairs"), [({}, None), ({"penalty": 0}, ([(0, 1), (2, 3)], [True, False]))])
def test_without_answers_it_is_k_means(settings, pairs, wine):
    model = PCKMeans(3, tol=0, random_state=0, **settings).fit(wine[0], pairs=pairs)
    kmeans = KMeans(3, n_init=10, tol=0, random_state=0).fit(wine[0])
    assert model.inertia_ == pytest.approx(kmeans.inertia_, rel=1e-6)
    assert adjusted_rand_score(model.labels_, kmeans.labels_) == 1
    np.testing.assert_array_equal(model.predict(wine[0]), model.labels_)


def test_a_high_penalty_keeps_answers_that_a_low_one_breaks(wine):
    X, y = wine
    pairs = sample_pairs(y, 100, random_state=0)

    def n_broken(penalty):
        first, second = PCKMeans(3, penalty=penalty, random_state=0).fit(X, pairs=pairs).labels_[pairs.index].T
        return ((first == second) != pairs.same).sum()

    assert n_broken(10) == 0 < n_broken(0.001)


def test_the_weightier_of_two_answers_is_kept():
    X = np.array([[0.0], [0.2], [5.0], [9.8], [10.0]])  # the point in the middle is asked to both sides
    for weight in ([3.0, 1.0], [1.0, 3.0]):
        pairs = Pairs([(1, 2), (2, 3), (1, 3)], [True, True, False], [*weight, 9.0])
        labels = PCKMeans(2, on_conflict="keep", random_state=0).fit(X, pairs=pairs).labels_
        assert labels[1] != labels[3]
        assert labels[2] == labels[1 if weight[0] > weight[1] else 3]


def test_answers_help_over_several_seeds(wine):
    X, y = wine
    X = np.hstack([X, RandomState(0).randn(len(X), 20)])
    right = {"with": [], "without": []}
    for seed in range(4):
        pairs = sample_pairs(y, 200, random_state=seed)
        right["with"].append(clustering_accuracy(y, PCKMeans(3, random_state=seed).fit_predict(X, pairs=pairs)))
        right["without"].append(clustering_accuracy(y, PCKMeans(3, random_state=seed).fit_predict(X)))
    assert np.mean(right["with"]) > max(0.97, np.mean(right["without"]) + 0.01)


@pytest.mark.parametrize("change", [lambda X: 1000 * X, lambda X: X + 1e5])
def test_scale_and_place_do_not_matter(change, wine):
    X, y = wine
    pairs = sample_pairs(y, 50, random_state=0)
    labels = [PCKMeans(3, n_init=3, random_state=0).fit(data, pairs=pairs).labels_ for data in (X, change(X))]
    np.testing.assert_array_equal(*labels)


def test_same_seed_same_bits_and_the_global_generator_is_left_alone(wine):
    X, y = wine
    pairs, before = sample_pairs(y, 50, random_state=0), np.random.get_state()[1].copy()  # noqa: NPY002
    one, other = (PCKMeans(5, n_init=2, random_state=7).fit(X, pairs=pairs) for _ in range(2))
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_array_equal(one.cluster_centers_, other.cluster_centers_)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_no_cluster_stays_empty(wine):
    X, y = wine
    model = PCKMeans(40, n_init=1, random_state=0).fit(X, pairs=sample_pairs(y, 300, random_state=0))
    assert np.isfinite(model.cluster_centers_).all()
    free = PCKMeans(40, n_init=1, tol=0, random_state=0).fit(X)
    assert len(set(free.labels_)) == 40


def test_fewer_distinct_points_than_clusters():
    X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 4, axis=0)
    with pytest.warns(FewDistinctPointsWarning, match="only 2 distinct points but n_clusters=4"):
        model = PCKMeans(4, random_state=0).fit(X, pairs=Pairs.from_lists([(0, 1)], [(0, 2)]))
    assert np.isfinite(model.cluster_centers_).all()
    assert model.labels_[0] == model.labels_[1]


def test_dtype_follows_x(wine):
    X, y = wine
    model = PCKMeans(3, n_init=1, random_state=0).fit(X.astype(np.float32), pairs=sample_pairs(y, 50, random_state=0))
    assert model.cluster_centers_.dtype == np.float32
    assert model.predict(X.astype(np.float32)).shape == (178,)
    assert clone(model).get_params() == model.get_params()


# Bad input


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_clusters": 0}, "n_clusters=0 must be an integer, 1 or more"),
        ({"n_clusters": 179}, "n_clusters=179 is more than n_samples=178; ask for fewer clusters"),
        ({"penalty": -1}, "penalty=-1 must be a number, 0 or more"),
        ({"n_init": 0}, "n_init=0 must be an integer, 1 or more"),
        ({"max_iter": 0}, "max_iter=0 must be an integer, 1 or more"),
        ({"tol": np.nan}, "tol=nan must be a number, 0 or more"),
        ({"on_conflict": "ask"}, "on_conflict='ask' must be 'raise' or 'drop' or 'keep'"),
    ],
)
def test_refuses_settings_that_cannot_work(settings, message, wine):
    with pytest.raises(InvalidParameterError, match=message):
        PCKMeans(**({"n_clusters": 3} | settings)).fit(wine[0])


def test_refuses_bad_data_and_bad_pairs(wine):
    X = wine[0].copy()
    with pytest.raises(InvalidPairsError, match="names row 178 but the data has 178 rows"):
        PCKMeans(3).fit(X, pairs=([(0, 178)], [True]))
    with pytest.raises(NotFittedError):
        PCKMeans(3).predict(X)
    X[7, 3] = np.nan
    with pytest.raises(InvalidDataError, match="contains NaN at row 7, column 3"):
        PCKMeans(3).fit(X)


def test_contradictions_are_raised_dropped_or_kept(wine):
    chain = Pairs.from_lists([(0, 1), (1, 2)], [(0, 2)])
    with pytest.raises(ConflictingPairsError, match='on_conflict="drop"'):
        PCKMeans(3).fit(wine[0], pairs=chain)
    for choice in ("drop", "keep"):
        assert PCKMeans(3, n_init=1, on_conflict=choice).fit(wine[0], pairs=chain).labels_.shape == (178,)
