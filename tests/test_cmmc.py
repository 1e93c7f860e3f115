"""CMMC: its objective against plain loops, its rounds against a quadratic program, and what it learns."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import RandomState
from scipy.optimize import minimize
from sklearn.datasets import load_iris, load_wine, make_blobs
from sklearn.utils.estimator_checks import parametrize_with_checks

from pairmargin import CMMC, ConflictingPairsError, InvalidPairsError, InvalidParameterError, Pairs, sample_pairs
from pairmargin.baselines import cmmc
from pairmargin.baselines.cmmc import Objective, Place, Planes, concave_convex, lowest_convex, simplex_minimum
from pairmargin.metrics import clustering_accuracy
from pairmargin.objective import Prices, Problem, objective
from pairmargin.start import start_head

SEEDS = pytest.mark.parametrize("seed", range(3))


@pytest.fixture(scope="module")
def wine() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_wine(return_X_y=True)
    return (X - X.mean(0)) / X.std(0), y


@pytest.fixture(scope="module")
def wine_pairs(wine) -> Pairs:
    return sample_pairs(wine[1], 60, random_state=0)


def small_problem(seed: int, n: int = 12, n_dims: int = 3, n_clusters: int = 4) -> tuple[np.ndarray, Pairs, np.ndarray]:
    """Points, weighted pairs and a head, all at random."""
    rng = RandomState(seed)
    index = np.array([rng.choice(n, 2, replace=False) for _ in range(8)])
    pairs = Pairs(index, rng.rand(8) < 0.5, rng.uniform(0.5, 2, 8)).without_conflicts()
    return rng.standard_normal((n, n_dims)), pairs, rng.standard_normal((n_clusters, n_dims + 1))


def tangent_value(goal: Objective, place: Place, tangent: np.ndarray) -> float:
    """λ/2 ‖W‖² + G − ⟨tangent, W⟩ at a place."""
    return place.terms["norm"] + place.height + np.vdot(place.slope - tangent, place.head)


@parametrize_with_checks([CMMC(), CMMC(init="random")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# The objective


@SEEDS
def test_the_losses_are_those_of_plain_loops(seed):
    points, pairs, head = small_problem(seed)
    scores = points @ head[:, :-1].T + head[:, -1]
    expected = {"must_link": 0.0, "cannot_link": 0.0, "free": 0.0, "norm": 0.05 * (head**2).sum()}
    for (i, j), same, weight in zip(pairs.index, pairs.same, pairs.weight, strict=True):
        together = max(scores[i, k] + scores[j, k] for k in range(4))
        apart = max(scores[i, k] + scores[j, m] for k, m in itertools.permutations(range(4), 2))
        kind, margin = ("must_link", together - apart) if same else ("cannot_link", apart - together)
        expected[kind] += weight / pairs.weight[pairs.same == same].sum() * max(0, 1 - margin)
    free = sorted(set(range(12)) - set(pairs.index.ravel().tolist()))
    for i in free:
        second, best = sorted(scores[i])[-2:]
        expected["free"] += 0.7 / (len(free) * 4) * max(0, 1 - best + second)
    assert Objective(points, pairs, 4, 0.7, 0.1).at(head).terms == pytest.approx(expected)


@SEEDS
def test_the_objective_is_the_one_of_the_deep_method(seed):
    points, pairs, head = small_problem(seed)
    scores = torch.from_numpy(points @ head[:, :-1].T + head[:, -1])
    problem = Problem.build(pairs, 12, Prices(0.3, 0.7), like=scores)
    terms = objective(scores, problem, torch.tensor((head**2).sum()))
    place = Objective(points, pairs, 4, 0.7, 0.3).at(head)
    assert place.objective == pytest.approx(float(terms.total))
    found = {name: float(value) for name, value in terms._asdict().items()}
    assert (found.pop("neighbours"), found.pop("balance")) == (0, 0)  # beyond (8)
    assert place.terms == pytest.approx(found)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.01, 100))
def test_planes_touch_g_and_h_and_stay_below(seed, scale):
    points, pairs, head = small_problem(seed)
    goal = Objective(points, pairs, 4, 0.7, 0.1)
    here, there = goal.at(head), goal.at(scale * RandomState(seed + 1).standard_normal(head.shape))
    tangent = goal.slope(here.wanted)
    assert tangent_value(goal, here, tangent) == pytest.approx(here.objective)  # G − H is the sum of the losses

    def height_at(plane: Place, head: np.ndarray) -> float:
        return plane.height + np.vdot(plane.slope, head)

    assert height_at(here, there.head) <= height_at(there, there.head) + 1e-9  # G is convex
    assert tangent_value(goal, there, tangent) >= there.objective - 1e-9  # and so is H


def test_only_points_in_some_hinge_are_kept():
    points, pairs, head = small_problem(0, n=50)
    everything, no_free = (Objective(points, pairs, 4, weight, 0.1) for weight in (1.0, 0.0))
    assert len(everything.points) == 50
    assert len(no_free.points) == len(pairs.points)
    assert no_free.at(head).terms["free"] == 0
    assert no_free.at(head).terms["must_link"] == pytest.approx(everything.at(head).terms["must_link"])


# The convex problem of a round


def quadratic_program(goal: Objective, tangent: np.ndarray) -> float:
    """Least λ/2 ‖W‖² + G − ⟨tangent, W⟩, with a variable for each hinge and a constraint for each of its choices."""
    shape, n_hinges = tangent.shape, len(goal.rows)
    constraints, heights = [], []
    for hinge, (i, j) in enumerate(goal.rows):
        for k, m in itertools.product(range(shape[0]), repeat=2):
            row = np.zeros(tangent.size + n_hinges)
            slope = row[: tangent.size].reshape(shape)
            slope[k] -= goal.points[i]
            slope[m] -= goal.points[j]
            row[tangent.size + hinge] = 1
            constraints.append(row)
            is_free = hinge >= len(goal.same)
            wanted_is_equal = is_free or goal.same[hinge]
            heights.append(float((k == m) != wanted_is_equal))  # 1 for rivals, 0 for what is wanted
    matrix, lowest = np.array(constraints), np.array(heights)
    linear = np.concatenate((-tangent.ravel(), goal.price))
    quadratic = np.concatenate((np.full(tangent.size, goal.penalty), np.zeros(n_hinges)))
    result = minimize(
        lambda v: 0.5 * quadratic @ v**2 + linear @ v,
        np.zeros(len(linear)) + 2.0,
        jac=lambda v: quadratic * v + linear,
        constraints={"type": "ineq", "fun": lambda v: matrix @ v - lowest, "jac": lambda v: matrix},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert result.success
    return float(result.fun)


@SEEDS
def test_a_round_finds_the_minimum_of_the_quadratic_program(seed):
    points, pairs, head = small_problem(seed, n_clusters=3)
    goal = Objective(points, pairs, 3, 0.7, 0.1)
    here, planes = goal.at(head), Planes(head.shape, goal)
    planes.add(here)
    end = lowest_convex(goal, planes, here, tol=1e-7)
    tangent = goal.slope(here.wanted)
    assert tangent_value(goal, end, tangent) == pytest.approx(quadratic_program(goal, tangent), abs=1e-6)


@SEEDS
def test_a_forgetful_model_still_gets_there(seed, monkeypatch):
    points, pairs, head = small_problem(seed)
    goal = Objective(points, pairs, 4, 0.7, 0.1)
    ends = []
    for size in (200, 20):
        monkeypatch.setattr(cmmc, "MAX_PLANES", size)
        here, planes = goal.at(head), Planes(head.shape, goal)
        planes.add(here)
        end = lowest_convex(goal, planes, here, tol=1e-4)
        ends.append(tangent_value(goal, end, goal.slope(here.wanted)))
        assert planes.n <= size
    assert ends[1] == pytest.approx(ends[0], abs=2e-4)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 12), st.booleans())
def test_shares_satisfy_the_conditions_of_a_minimum(seed, n, rank, repeat):
    rng = RandomState(seed)
    factor, gain = rng.standard_normal((n, rank)), rng.standard_normal(n)
    if repeat:  # planes that are parallel or the same
        factor[n // 2 :], gain[n // 2 :] = factor[: n - n // 2], np.round(gain[: n - n // 2])
    start = np.zeros(n)
    start[rng.randint(n)] = 1
    shares = simplex_minimum(factor @ factor.T, gain, start, tol=1e-7)
    assert shares.min() >= 0
    assert shares.sum() == pytest.approx(1)
    slope = factor @ (factor.T @ shares) - gain
    np.testing.assert_allclose(slope[shares > 1e-9], slope.min(), atol=1e-6)  # nothing is gained by any exchange


# The rounds


@SEEDS
@pytest.mark.parametrize("n_clusters", [2, 5])
def test_the_objective_never_rises(seed, n_clusters):
    X, y = make_blobs(150, 4, centers=n_clusters, cluster_std=4, random_state=seed)
    pairs = sample_pairs(y, 40, random_state=seed)
    model = CMMC(n_clusters, init="random", random_state=seed).fit(X, pairs=pairs)
    path = [row["objective"] for row in model.history_]
    assert (np.diff(path) <= 1e-12).all()
    assert path[-2] - path[-1] <= model.tol < path[0] - path[-1]
    assert model.n_iter_ == len(path) - 1 < model.max_iter
    assert model.objective_ == path[-1]
    for iteration, row in enumerate(model.history_):
        assert row["iteration"] == iteration
        assert row["objective"] == pytest.approx(sum(row[k] for k in ("must_link", "cannot_link", "free", "norm")))


def test_a_start_of_large_norm_is_shrunk_and_keeps_its_clusters():
    points, pairs, head = small_problem(0)
    goal = Objective(points, pairs, 4, 1.0, 0.1)
    far, history = concave_convex(goal, 1e4 * head, max_iter=0, tol=1e-3)
    np.testing.assert_array_equal((goal.points @ far.T).argmax(1), (goal.points @ head.T).argmax(1))
    assert history[0]["norm"] == pytest.approx(goal.at(0 * head).objective)
    near, _ = concave_convex(goal, 0.1 * head, max_iter=0, tol=1e-3)
    np.testing.assert_array_equal(near, 0.1 * head)


def test_no_round_stays_with_the_clusters_of_the_start(wine, wine_pairs):
    X, _ = wine
    weight, bias = start_head(2 * X / np.sqrt((X**2).sum(1).mean()), 3, wine_pairs, "pairs", RandomState(0))
    model = CMMC(3, max_iter=0, random_state=0).fit(X, pairs=wine_pairs)
    assert model.n_iter_ == 0
    expected = (2 * X / np.sqrt((X**2).sum(1).mean())) @ weight.T + bias
    np.testing.assert_array_equal(model.labels_, expected.argmax(1))


# What it learns


def test_learns_wine_from_a_hundred_answers_over_several_seeds(wine):
    X, y = wine
    found = [
        clustering_accuracy(y, CMMC(3, random_state=s).fit(X, pairs=sample_pairs(y, 100, random_state=s)).labels_)
        for s in range(3)
    ]
    assert np.mean(found) > 0.97


def test_answers_overrule_what_k_means_would_say():
    rng = RandomState(0)
    y = np.repeat([0, 1], 100)
    X = np.column_stack((2 * y + 0.3 * rng.standard_normal(200), 8 * rng.standard_normal(200)))
    for init, least in (("pairs", 0.97), ("k-means", 0.9)):
        model = CMMC(2, init=init, random_state=0)
        without = clustering_accuracy(y, model.fit(X).labels_)
        assert without < 0.7
        assert clustering_accuracy(y, model.fit(X, pairs=sample_pairs(y, 80, random_state=0)).labels_) > least


def test_without_answers_it_finds_clouds_that_are_plain_to_see():
    X, y = make_blobs(200, 3, centers=4, center_box=(-20, 20), random_state=0)
    for free_weight in (1.0, 0.0):
        assert clustering_accuracy(y, CMMC(4, free_weight=free_weight, random_state=0).fit(X).labels_) == 1


def test_one_cluster(wine, wine_pairs):
    for pairs in (None, wine_pairs):
        model = CMMC(1, random_state=0).fit(wine[0], pairs=pairs)
        assert not model.labels_.any()
        assert model.history_[-1]["cannot_link"] == 0
        assert np.isposinf(model.pair_score(wine[0], wine_pairs)).all()


@pytest.mark.parametrize("kind", [True, False])
def test_one_kind_of_answers_is_enough_to_run(kind, wine, wine_pairs):
    pairs = wine_pairs[wine_pairs.same == kind]
    model = CMMC(3, random_state=0).fit(wine[0], pairs=pairs)
    assert model.history_[-1]["cannot_link" if kind else "must_link"] == 0
    assert np.isfinite(model.objective_)


def test_an_answer_of_weight_two_is_one_said_twice(wine, wine_pairs):
    twice = CMMC(3, random_state=0).fit(wine[0], pairs=wine_pairs + wine_pairs[:10])
    weight = np.where(np.arange(len(wine_pairs)) < 10, 2.0, 1.0)
    heavy = CMMC(3, random_state=0).fit(wine[0], pairs=Pairs(wine_pairs.index, wine_pairs.same, weight))
    np.testing.assert_array_equal(twice.coef_, heavy.coef_)
    assert not np.allclose(heavy.coef_, CMMC(3, random_state=0).fit(wine[0], pairs=wine_pairs).coef_)


# Scores


def test_scores_follow_from_the_stored_arrays(wine, wine_pairs):
    X, _ = wine
    model = CMMC(3, random_state=0).fit(X, pairs=wine_pairs)
    assert model.coef_.shape == (3, 13)
    scores = X @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), scores)
    np.testing.assert_array_equal(model.predict(X), scores.argmax(1))
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    index = wine_pairs.index[:20]
    for (i, j), found in zip(index, model.pair_score(X, index), strict=True):
        apart = scores[i][:, None] + scores[j][None] + np.where(np.eye(3), -np.inf, 0)
        assert found == pytest.approx((scores[i] + scores[j]).max() - apart.max())
    np.testing.assert_array_equal(model.pair_score(X, wine_pairs), model.pair_score(X, wine_pairs.index))


def test_neither_origin_nor_unit_of_x_matters(wine, wine_pairs):
    X, _ = wine
    one = CMMC(3, random_state=0).fit(X, pairs=wine_pairs)
    other = CMMC(3, random_state=0).fit(64 * X + 5, pairs=wine_pairs)
    np.testing.assert_array_equal(one.labels_, other.labels_)
    assert other.objective_ == pytest.approx(one.objective_, abs=2 * one.tol)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtype_follows_x(dtype, wine, wine_pairs):
    X = wine[0].astype(dtype)
    model = CMMC(3, random_state=0).fit(X, pairs=wine_pairs)
    for array in (model.coef_, model.intercept_, model.decision_function(X)):
        assert array.dtype == dtype
    assert (np.diff([row["objective"] for row in model.history_]) <= 1e-5).all()
    assert clustering_accuracy(wine[1], model.labels_) > 0.95


def test_same_seed_same_bits_and_the_global_generators_are_left_alone(wine, wine_pairs):
    torch_before, numpy_before = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    runs = [CMMC(3, random_state=7).fit(wine[0], pairs=wine_pairs) for _ in range(2)]
    np.testing.assert_array_equal(runs[0].coef_, runs[1].coef_)
    assert torch.equal(torch.random.get_rng_state(), torch_before)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_before)  # noqa: NPY002


# Bad input: what, where, and what to do


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_clusters": 0}, "n_clusters=0 must be an integer, 1 or more"),
        ({"n_clusters": 151}, "n_clusters=151 is more than n_samples=150; ask for fewer clusters"),
        ({"init": "zeros"}, "init='zeros' must be 'pairs' or 'k-means' or 'random'"),
        ({"weight_penalty": 0}, "weight_penalty=0 must be a number above 0"),
        ({"free_weight": -1}, "free_weight=-1 must be a number, 0 or more"),
        ({"max_iter": 2.5}, "max_iter=2.5 must be an integer, 0 or more"),
        ({"tol": 0}, "tol=0 must be a number above 0"),
        ({"on_conflict": "ask"}, "on_conflict='ask' must be 'raise' or 'drop' or 'keep'"),
    ],
)
def test_refuses_settings_that_cannot_work(changes, message):
    with pytest.raises(InvalidParameterError, match=message):
        CMMC(**({"n_clusters": 3} | changes)).fit(load_iris().data)


def test_refuses_pairs_that_do_not_fit():
    X = load_iris().data
    with pytest.raises(InvalidPairsError, match="names row 150 but the data has 150 rows"):
        CMMC(3).fit(X, pairs=Pairs([(0, 150)], [True]))
    chain = Pairs.from_lists([(0, 1), (1, 2)], [(0, 2)])
    with pytest.raises(ConflictingPairsError, match='on_conflict="drop"'):
        CMMC(3).fit(X, pairs=chain)
    for choice in ("drop", "keep"):
        assert CMMC(3, on_conflict=choice, random_state=0).fit(X, pairs=chain).labels_.shape == (150,)


@pytest.mark.parametrize("n_distinct", [1, 2, 4])
def test_fewer_distinct_points_than_clusters(n_distinct):
    X = RandomState(0).standard_normal((n_distinct, 3))[np.arange(20) % n_distinct]
    with pytest.warns(UserWarning, match=f"X has only {n_distinct} distinct points but n_clusters=5"):
        model = CMMC(5, random_state=0).fit(X, pairs=Pairs.from_lists([(0, n_distinct)], [(0, 1)] * (n_distinct > 1)))
    assert model.decision_function(X).shape[0] == 20
    assert len(np.unique(model.labels_)) <= n_distinct


def test_a_start_with_fewer_clusters_is_taken_as_it_is(wine, wine_pairs, monkeypatch):
    """As where the answers call for fewer, and pieces of clusters were joined."""
    monkeypatch.setattr(cmmc, "start_head", lambda points, k, *rest: start_head(points, k - 2, *rest))
    model = CMMC(5, random_state=0).fit(wine[0], pairs=wine_pairs)
    assert model.coef_.shape == (3, 13)
    assert clustering_accuracy(wine[1], model.labels_) > 0.9
