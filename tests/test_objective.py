"""The objective (8), the two terms beyond it, and the subgradients (9) to (14), against loops too slow to be wrong."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pairmargin.inputs import DenseInput
from pairmargin.neighbours import neighbour_links
from pairmargin.network import Network
from pairmargin.objective import (
    Prices,
    Problem,
    Terms,
    assignments,
    best_two,
    label_subgradient,
    objective,
    objective_and_subgradient,
    pair_margins,
    usual_balance,
    usual_penalty,
)
from pairmargin.pairs import Pairs

PENALTY, FREE_WEIGHT = 0.3, 1.7  # λ and β: not the defaults, and not 1
NEIGHBOUR_WEIGHT, BALANCE_WEIGHT = 0.6, 2.3  # ν and κ, where a case has neighbours and shares
SHARP = 4  # the balance goes by softmax(4 S)
quick = settings(deadline=None, derandomize=True, max_examples=60)


class Case(NamedTuple):
    """Scores and answers as a person would write them down: unsorted, either way round, perhaps repeated."""

    scores: np.ndarray  # (n, K)
    answers: list[tuple[int, int, bool, float]]  # i, j, same, weight
    neighbours: np.ndarray | None = None  # (n, k), or they have no price
    shares: np.ndarray | None = None  # (K,), or balance has no price

    @property
    def pairs(self) -> Pairs:
        if not self.answers:
            return Pairs.empty()
        i, j, same, weight = zip(*self.answers, strict=True)
        return Pairs(list(zip(i, j, strict=True)), same, weight)

    @property
    def free(self) -> list[int]:
        """U: the points in no pair."""
        asked = {point for i, j, *_ in self.answers for point in (i, j)}
        return [point for point in range(len(self.scores)) if point not in asked]

    def share(self, answer: tuple[int, int, bool, float]) -> float:
        """The answer's weight over the total weight of its kind: 1/n⁺ or 1/n⁻ if all weights are 1."""
        _, _, same, weight = answer
        return weight / sum(other[3] for other in self.answers if other[2] == same)

    @property
    def links(self) -> list[tuple[int, int]]:
        """Every two points of which one names the other, or both do."""
        rows = [] if self.neighbours is None else self.neighbours.tolist()
        return sorted({(min(i, j), max(i, j)) for i, row in enumerate(rows) for j in row})

    @property
    def hinges(self) -> list[tuple[int, int, bool, float]]:
        """The answers with their price, then the links with theirs."""
        answers = [(i, j, same, self.share((i, j, same, weight))) for i, j, same, weight in self.answers]
        return answers + [(i, j, True, NEIGHBOUR_WEIGHT / len(self.links)) for i, j in self.links]


def problem_of(case: Case, dtype: torch.dtype = torch.float64) -> Problem:
    neighbours = None if case.neighbours is None else torch.tensor(case.neighbours, dtype=torch.long)
    shares = None if case.shares is None else torch.tensor(case.shares)
    prices = Prices(
        PENALTY,
        FREE_WEIGHT,
        0.0 if neighbours is None else NEIGHBOUR_WEIGHT,
        0.0 if shares is None else BALANCE_WEIGHT,
    )
    like = torch.empty(0, dtype=dtype)
    return Problem.build(
        case.pairs,
        len(case.scores),
        prices,
        like=like,
        links=None if neighbours is None else torch.from_numpy(neighbour_links(neighbours.numpy())),
        shares=shares,
    )


def fast_terms(case: Case, squared_norm: float = 0.0) -> np.ndarray:
    norm = torch.tensor(squared_norm, dtype=torch.float64)
    return np.array([float(t) for t in objective(torch.tensor(case.scores), problem_of(case), norm)])


def random_case(seed: int, n_clusters: int, *, ties: bool = False, n_points: int = 9, n_answers: int = 8) -> Case:
    """Scores of a few units, so that some hinges are active and some are not; whole numbers if ties are wanted.

    Of any four seeds in a row, one has neighbours, one has shares, one has both, and one has neither.
    """
    rng = np.random.default_rng(seed)
    scores = rng.integers(-2, 3, (n_points, n_clusters)) * 0.5 if ties else rng.normal(size=(n_points, n_clusters))
    answers = []
    for _ in range(n_answers):
        i, j = rng.choice(n_points - 2, 2, replace=False)  # leaves at least two points free
        answers.append((int(i), int(j), bool(rng.random() < 0.5), float(rng.choice([0.5, 1.0, 3.0]))))
    neighbours = random_neighbours(n_points, 2, rng) if seed % 2 else None
    shares = random_shares(n_clusters, rng) if seed % 4 > 1 else None
    return Case(scores.astype(float), answers, neighbours, shares)


def random_neighbours(n_points: int, k: int, rng: np.random.Generator) -> np.ndarray:
    others = [np.delete(np.arange(n_points), i) for i in range(n_points)]
    return np.array([rng.permutation(row)[:k] for row in others]).reshape(n_points, k)


def random_shares(n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    shares = rng.uniform(0.2, 1, n_clusters)
    return shares / shares.sum()


def same_options(scores: np.ndarray, i: int, j: int) -> dict[tuple[int, int], float]:
    """The score of every way to put i and j into one cluster."""
    return {(k, k): scores[i, k] + scores[j, k] for k in range(scores.shape[1])}


def different_options(scores: np.ndarray, i: int, j: int) -> dict[tuple[int, int], float]:
    """The score of every way to put i and j into two clusters: K(K − 1) of them."""
    clusters = range(scores.shape[1])
    return {(k, m): scores[i, k] + scores[j, m] for k, m in product(clusters, clusters) if k != m}


def naive_margin(scores: np.ndarray, i: int, j: int) -> float:
    """same − different."""
    return max(same_options(scores, i, j).values()) - max(different_options(scores, i, j).values())


def naive_free_margin(scores: np.ndarray, i: int) -> float:
    best = max(scores[i])
    winner = list(scores[i]).index(best)
    return best - max(s for k, s in enumerate(scores[i]) if k != winner)


def naive_balance(case: Case) -> float:
    """κ Σ_k m_k log(m_k / share_k), where m_k is the mean chance of cluster k."""
    if case.shares is None:
        return 0.0
    n_points, n_clusters = case.scores.shape
    mean = [0.0] * n_clusters
    for row in case.scores:
        for k in range(n_clusters):
            mean[k] += math.exp(SHARP * row[k]) / sum(math.exp(SHARP * s) for s in row) / n_points
    return BALANCE_WEIGHT * sum(m * math.log(m / share) for m, share in zip(mean, case.shares, strict=True))


def balance_slope(case: Case) -> np.ndarray:
    """The slope of the balance with respect to the scores, by autograd."""
    if case.shares is None:
        return np.zeros(case.scores.shape)
    scores = torch.tensor(case.scores, requires_grad=True)
    mean = ((SHARP * scores).exp() / (SHARP * scores).exp().sum(1, keepdim=True)).mean(0)
    (BALANCE_WEIGHT * (mean * (mean / torch.tensor(case.shares)).log()).sum()).backward()
    return scores.grad.numpy()


def naive_terms(case: Case, squared_norm: float = 0.0) -> np.ndarray:
    """The four terms of (8), the neighbours and the balance, by loops over everything."""
    must_link = cannot_link = free = neighbours = 0.0
    for answer in case.answers:
        i, j, same, _ = answer
        if same:
            must_link += case.share(answer) * max(0.0, 1 - naive_margin(case.scores, i, j))  # (8a)
        else:
            cannot_link += case.share(answer) * max(0.0, 1 + naive_margin(case.scores, i, j))  # (8b)
    for i in case.free:
        price = FREE_WEIGHT / (len(case.free) * case.scores.shape[1])
        free += price * max(0.0, 1 - naive_free_margin(case.scores, i))  # (8c)
    for i, j in case.links:
        price = NEIGHBOUR_WEIGHT / len(case.links)
        neighbours += price * max(0.0, 1 - naive_margin(case.scores, i, j))  # (8a) once more
    return np.array([must_link, cannot_link, free, PENALTY / 2 * squared_norm, neighbours, naive_balance(case)])


def gap(options: list[float]) -> float:
    """How far the best option is ahead of the next."""
    *_, second, best = [-np.inf, *sorted(options)]
    return best - second


def distance_to_kinks(case: Case) -> float:
    """How far the scores can move before a hinge opens or closes, or a maximum changes hands."""
    distances = [np.inf]
    for i, j, same, _ in case.hinges:
        margin = naive_margin(case.scores, i, j)
        distances.append(abs(1 - margin if same else 1 + margin))
        distances.append(gap(list(same_options(case.scores, i, j).values())))
        distances.append(gap(list(different_options(case.scores, i, j).values())))
    for i in case.free:
        third = sorted(case.scores[i])[:-1]
        distances += [abs(1 - naive_free_margin(case.scores, i)), gap(list(case.scores[i])), gap(third)]
    return min(distances)


def smooth_case(seed: int, n_clusters: int, distance: float = 0.02) -> Case:
    """The first random case from a seed on that is away from all kinks."""
    cases = (random_case(10_000 * seed + k, n_clusters, n_points=6, n_answers=3) for k in range(5000))
    return next(case for case in cases if distance_to_kinks(case) > distance)


@st.composite
def cases(draw: st.DrawFn, min_clusters: int = 2) -> Case:
    n_points, n_clusters = draw(st.integers(2, 6)), draw(st.integers(min_clusters, 6))
    value = draw(st.sampled_from([st.floats(-3, 3), st.integers(-2, 2).map(float)]))  # the second kind is full of ties
    scores = draw(arrays(np.float64, (n_points, n_clusters), elements=value))
    point = st.integers(0, n_points - 1)
    answer = st.tuples(point, point, st.booleans(), st.sampled_from([0.5, 1.0, 2.0])).filter(lambda a: a[0] != a[1])
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    n_neighbours = draw(st.none() | st.integers(0, n_points - 1))
    neighbours = None if n_neighbours is None else random_neighbours(n_points, n_neighbours, rng)
    shares = random_shares(n_clusters, rng) if draw(st.booleans()) else None
    return Case(scores, draw(st.lists(answer, max_size=6)), neighbours, shares)


# The value, eq. (8)


@pytest.mark.parametrize("ties", [False, True], ids=["no ties", "ties"])
@pytest.mark.parametrize("n_clusters", [2, 3, 4, 5, 6])
def test_objective_equals_the_loop_over_all_pairs_of_clusters(n_clusters: int, ties: bool) -> None:
    for seed in range(25):
        case = random_case(seed, n_clusters, ties=ties)
        np.testing.assert_allclose(fast_terms(case, 2.5), naive_terms(case, 2.5), rtol=1e-6, atol=1e-12)


@quick
@given(cases())
def test_objective_equals_the_loop_on_what_hypothesis_finds(case: Case) -> None:
    np.testing.assert_allclose(fast_terms(case, 2.5), naive_terms(case, 2.5), rtol=1e-6, atol=1e-12)


def test_objective_in_numbers_worked_out_on_paper() -> None:
    scores = np.array([[2.0, 0.0], [0.5, 1.0], [3.0, 0.0], [0.25, 0.0]])
    case = Case(scores, [(0, 1, True, 1.0), (0, 2, False, 1.0)])
    # (0, 1): same 2.5, different 3, so 1 − (−0.5); (0, 2): same 5, different 3, so 1 + 2; point 3: 1 − 0.25
    expected = [1.5, 3.0, FREE_WEIGHT / (1 * 2) * 0.75, PENALTY / 2 * 4.0]
    np.testing.assert_allclose(fast_terms(case, 4.0), [*expected, 0, 0], rtol=1e-12)
    # (2, 3): same 3.25, different 3, so 1 − 0.25; 3 is free and the neighbour of 2, which is not
    close = case._replace(neighbours=np.array([[1], [0], [3], [2]]))
    np.testing.assert_allclose(fast_terms(close, 4.0), [*expected, NEIGHBOUR_WEIGHT / 2 * (1.5 + 0.75), 0], rtol=1e-12)


def test_balance_in_numbers_worked_out_on_paper() -> None:
    case = Case(np.log([[0.5, 0.5], [0.25, 0.75]]) / SHARP, [], shares=np.array([0.5, 0.5]))  # together 3/8 and 5/8
    expected = BALANCE_WEIGHT * (0.375 * math.log(0.75) + 0.625 * math.log(1.25))
    assert fast_terms(case)[5] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("n_clusters", "n_same", "rows"),
    [(1, 0, 1), (10, 0, 10), (20, 3, 20), (21, 0, 20), (100, 25, 20), (100, 100, 20), (100, 250, 50), (100, 500, 100)],
)
def test_no_more_rows_of_the_head_are_paid_for_than_twenty_or_one_for_five_same_answers(n_clusters, n_same, rows):
    assert usual_penalty(n_clusters, n_same) == pytest.approx(0.001 * rows / n_clusters, rel=1e-12)


def test_balance_has_a_usual_price_where_clusters_are_many():
    assert [usual_balance(n_clusters) for n_clusters in (1, 10, 20, 21, 500)] == [0, 0, 0, 0.3, 0.3]


def test_total_is_the_sum_of_the_six_terms() -> None:
    assert float(Terms(*torch.tensor([1.0, 10.0, 100.0, 1000.0, 10_000.0, 100_000.0])).total) == 111_111.0


@pytest.mark.parametrize("ties", [False, True], ids=["no ties", "ties"])
def test_pair_margin_is_the_naive_one(ties: bool) -> None:
    for seed in range(20):
        case = random_case(seed, 2 + seed % 3, ties=ties)
        index = torch.tensor([(i, j) for i, j, *_ in case.answers])
        expected = [naive_margin(case.scores, i, j) for i, j, *_ in case.answers]
        np.testing.assert_allclose(pair_margins(torch.tensor(case.scores), index), expected, atol=1e-12)


@quick
@given(cases())
def test_best_two_are_the_two_highest_scores_and_where_they_stand(case: Case) -> None:
    value, cluster = best_two(torch.tensor(case.scores))
    np.testing.assert_array_equal(value, -np.sort(-case.scores, axis=1)[:, :2])
    np.testing.assert_array_equal(np.take_along_axis(case.scores, cluster.numpy(), 1), value)
    assert (cluster[:, 0] != cluster[:, 1]).all()


@quick
@given(cases())
def test_assignments_reach_the_maxima_even_with_ties(case: Case) -> None:
    index = case.pairs.index.copy()
    found = assignments(torch.tensor(case.scores), torch.tensor(index))
    for row, (i, j) in enumerate(index):
        together, apart = same_options(case.scores, i, j), different_options(case.scores, i, j)
        z = int(found.same_cluster[row])
        first, second = found.different_clusters[row].tolist()
        assert together[z, z] == float(found.same[row]) == max(together.values())
        assert apart[first, second] == float(found.different[row]) == max(apart.values())


def test_assignments_are_the_same_however_few_are_looked_at_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    case = random_case(1, 5, n_points=12, n_answers=20)
    scores, index = torch.tensor(case.scores), torch.tensor([(i, j) for i, j, *_ in case.answers])
    at_once = assignments(scores, index)
    for few in (1, 10, 11):  # a pair at a time, though it has five scores; two; two, with one over
        monkeypatch.setattr("pairmargin.objective.AT_ONCE", few)
        for found, wanted in zip(assignments(scores, index), at_once, strict=True):
            assert torch.equal(found, wanted)


# What cannot matter


@quick
@given(cases(min_clusters=1), st.randoms(use_true_random=False))
def test_renaming_the_clusters_changes_nothing(case: Case, random) -> None:
    order = list(range(case.scores.shape[1]))
    random.shuffle(order)
    shares = None if case.shares is None else case.shares[order]
    renamed = case._replace(scores=case.scores[:, order], shares=shares)
    np.testing.assert_allclose(fast_terms(renamed), fast_terms(case), atol=1e-12)


@quick
@given(cases(min_clusters=1), st.data())
def test_swapping_the_points_of_a_pair_changes_nothing(case: Case, data: st.DataObject) -> None:
    problem = problem_of(case)
    swap = data.draw(st.lists(st.booleans(), min_size=len(problem.index), max_size=len(problem.index)))
    swap = torch.tensor(swap, dtype=torch.bool)
    swapped = replace(problem, index=torch.where(swap[:, None], problem.index.flip(1), problem.index))
    scores, zero = torch.tensor(case.scores), torch.zeros(())
    np.testing.assert_allclose(objective(scores, swapped, zero), objective(scores, problem, zero), atol=1e-12)
    np.testing.assert_allclose(pair_margins(scores, swapped.index), pair_margins(scores, problem.index), atol=1e-12)


@quick
@given(cases(min_clusters=1), st.data())
def test_adding_a_constant_to_all_scores_of_a_point_changes_nothing(case: Case, data: st.DataObject) -> None:
    shift = data.draw(arrays(np.float64, (len(case.scores), 1), elements=st.floats(-100, 100)))
    np.testing.assert_allclose(fast_terms(case._replace(scores=case.scores + shift)), fast_terms(case), atol=1e-11)


@quick
@given(cases(), st.data())
def test_weight_two_is_the_same_answer_given_twice(case: Case, data: st.DataObject) -> None:
    twice = data.draw(st.sets(st.integers(0, max(len(case.answers) - 1, 0))))
    heavy = [(i, j, s, w * (2 if k in twice else 1)) for k, (i, j, s, w) in enumerate(case.answers)]
    repeated = case.answers + [answer for k, answer in enumerate(case.answers) if k in twice]
    np.testing.assert_allclose(
        fast_terms(case._replace(answers=heavy)), fast_terms(case._replace(answers=repeated)), atol=1e-12
    )


def test_scaling_all_weights_of_a_kind_changes_nothing() -> None:
    case = random_case(3, 4)
    scaled = [(i, j, same, weight * (10 if same else 0.1)) for i, j, same, weight in case.answers]
    np.testing.assert_allclose(fast_terms(case._replace(answers=scaled)), fast_terms(case), rtol=1e-12)


@pytest.mark.parametrize(
    "neighbours",
    [[[1], [0], [3], [2]], [[1], [3], [3], [1]], [[1, 2], [3, 0], [3, 0], [1, 2]]],
    ids=["both name each other", "some do", "all do"],
)
def test_a_link_is_there_once_whoever_names_whom(neighbours: list[list[int]]) -> None:
    case = Case(np.zeros((4, 3)), [(2, 3, True, 1.0)], neighbours=np.array(neighbours))
    problem = problem_of(case)
    assert problem.n_answers == 1
    assert problem.index.tolist() == [[2, 3], *(list(link) for link in case.links)]
    assert problem.same.all()
    np.testing.assert_allclose(problem.weight[1:], NEIGHBOUR_WEIGHT / len(case.links))


def test_neighbours_answer_nothing() -> None:
    """A neighbour of a point in an answer is still free, and no link is among the violated answers."""
    case = Case(np.zeros((4, 3)), [(0, 1, True, 1.0)], neighbours=np.array([[1], [2], [1], [0]]))
    problem = problem_of(case)
    _, violated, _ = objective_and_subgradient(torch.tensor(case.scores), problem, torch.zeros(()))
    assert problem.free.tolist() == [2, 3]
    assert violated.tolist() == [True]


@pytest.mark.parametrize("price", [0.0, 0.5])
def test_neighbours_need_a_price_and_a_price_needs_neighbours(price: float) -> None:
    case, like = random_case(0, 3), torch.empty(0, dtype=torch.float64)
    neighbours = None if price else torch.tensor([[1]] + [[0]] * 8)
    prices = Prices(PENALTY, FREE_WEIGHT, neighbour_weight=price)
    problem = Problem.build(
        case.pairs,
        9,
        prices,
        like=like,
        links=None if neighbours is None else torch.from_numpy(neighbour_links(neighbours.numpy())),
    )
    assert len(problem.index) == len(problem.same) == len(problem.weight) == problem.n_answers == 8


# The edges


EDGES = {
    "no pairs": [],
    "must-links alone": [(0, 1, True, 1.0), (1, 2, True, 2.0)],
    "cannot-links alone": [(0, 1, False, 1.0), (1, 2, False, 2.0)],
    "no free points": [(0, 1, True, 1.0), (2, 3, False, 1.0), (0, 4, False, 1.0)],
}


BEYOND = {
    "(8)": {},
    "neighbours": {"neighbours": np.array([[1], [2], [1], [4], [0]])},
    "nobody has a neighbour": {"neighbours": np.empty((5, 0), dtype=int)},
    "balance": {"shares": np.array([0.2, 0.3, 0.5])},
    "both": {"neighbours": np.array([[1, 3], [2, 0], [1, 4], [4, 2], [0, 1]]), "shares": np.array([0.6, 0.3, 0.1])},
}


@pytest.mark.parametrize("beyond", BEYOND)
@pytest.mark.parametrize("name", EDGES)
def test_edges_equal_the_loop_and_missing_terms_are_zero(name: str, beyond: str) -> None:
    case = Case(np.random.default_rng(1).normal(scale=0.3, size=(5, 3)), EDGES[name], **BEYOND[beyond])
    scores, norm = torch.tensor(case.scores), torch.tensor(2.0, dtype=torch.float64)
    terms, violated, step = objective_and_subgradient(scores, problem_of(case), norm)
    np.testing.assert_allclose(fast_terms(case, 2.0), naive_terms(case, 2.0), rtol=1e-12)
    np.testing.assert_allclose(terms, naive_terms(case, 2.0), rtol=1e-12)
    assert violated.shape == (len(case.answers),)
    assert step.isfinite().all()
    kinds = {same for _, _, same, _ in case.answers}
    assert [bool(term > 0) for term in (terms.must_link, terms.cannot_link, terms.free)] == [
        True in kinds,
        False in kinds,
        bool(case.free),
    ]
    assert (terms.neighbours > 0, terms.balance > 0) == (bool(case.links), case.shares is not None)


def test_with_one_cluster_only_the_norm_is_left() -> None:
    answers = [(0, 1, True, 1.0), (0, 2, False, 1.0)]
    case = Case(np.array([[1.0], [-2.0], [3.0]]), answers, np.array([[1], [2], [1]]), np.array([1.0]))
    scores, norm = torch.tensor(case.scores), torch.tensor(2.0, dtype=torch.float64)
    terms, violated, step = objective_and_subgradient(scores, problem_of(case), norm)
    assert [float(t) for t in terms] == [0, 0, 0, PENALTY, 0, 0]
    assert [float(t) for t in objective(scores, problem_of(case), norm)] == [0, 0, 0, PENALTY, 0, 0]
    assert violated.shape == (2,)
    assert not violated.any()
    assert violated.dtype == torch.bool
    np.testing.assert_array_equal(step, np.zeros((3, 1)))
    margins = pair_margins(scores, problem_of(case).index)
    assert (margins.tolist(), margins.dtype) == ([np.inf] * 4, scores.dtype)


def test_problem_follows_the_dtype_and_leaves_the_pairs_alone() -> None:
    case = random_case(3, 3)
    pairs, before = case.pairs, case.pairs.weight.copy()
    neighbours, shares = torch.tensor(case.neighbours), torch.tensor(case.shares)
    like = torch.empty(0, dtype=torch.float32)
    problem = Problem.build(
        pairs,
        9,
        Prices(1.0, 1.0, 1.0, 1.0),
        like=like,
        links=None if neighbours is None else torch.from_numpy(neighbour_links(neighbours.numpy())),
        shares=shares,
    )
    assert (problem.weight.dtype, problem.shares.dtype) == (torch.float32, torch.float32)
    np.testing.assert_array_equal(neighbours, case.neighbours)
    np.testing.assert_array_equal(pairs.weight, before)
    scores = torch.tensor(case.scores, dtype=torch.float32)
    terms, _, step = objective_and_subgradient(scores, problem_of(case, torch.float32), torch.zeros(()))
    assert {step.dtype} | {t.dtype for t in terms} == {torch.float32}
    np.testing.assert_allclose(terms, naive_terms(case), rtol=1e-5)


def test_shares_sum_to_one_over_each_kind() -> None:
    problem = problem_of(random_case(5, 3))
    weight, same = problem.weight[: problem.n_answers], problem.same[: problem.n_answers]
    assert float(weight[same].sum()) == pytest.approx(1)
    assert float(weight[~same].sum()) == pytest.approx(1)
    assert float(problem.weight[problem.n_answers :].sum()) == pytest.approx(NEIGHBOUR_WEIGHT)


# The subgradient, eq. (9) to (14)


@quick
@given(cases(min_clusters=1))
def test_value_beside_the_subgradient_is_the_objective(case: Case) -> None:
    scores, norm = torch.tensor(case.scores), torch.tensor(3.0, dtype=torch.float64)
    terms, _, _ = objective_and_subgradient(scores, problem_of(case), norm)
    np.testing.assert_allclose(terms, objective(scores, problem_of(case), norm), rtol=1e-9, atol=1e-12)


def test_a_term_without_loss_is_exactly_zero() -> None:
    """No rounding of one term may leak into another, however large it is: the history is read by people."""
    for seed in range(100):
        case = random_case(seed, 5, n_points=30, n_answers=60)
        must_links = [(i, j, True, w) for i, j, _, w in case.answers]
        far = np.full((2, 5), -50.0)
        far[0, 1] = far[1, 3] = 50.0  # the last two points: a cannot-link that holds by a wide margin
        scores = np.vstack([case.scores * 1e3, far])
        case = Case(scores, [*must_links, (30, 31, False, 1.0)])
        terms, _, _ = objective_and_subgradient(torch.tensor(scores), problem_of(case), torch.zeros(()))
        assert float(terms.cannot_link) == 0


def test_neighbours_without_loss_are_exactly_zero() -> None:
    """All points are far inside one cluster, and nothing but the cannot-links is against that."""
    for seed in (1, 5, 9, 13):
        case = random_case(seed, 5, n_points=30, n_answers=60)
        scores = case.scores * 1e3
        scores[:, 2] += 1e5
        case = case._replace(scores=scores, answers=[(i, j, False, w) for i, j, _, w in case.answers])
        terms, _, _ = objective_and_subgradient(torch.tensor(scores), problem_of(case), torch.zeros(()))
        assert float(terms.cannot_link) > 1e4
        assert [float(terms.must_link), float(terms.free), float(terms.neighbours)] == [0, 0, 0]


# The balance


@pytest.mark.parametrize("n_clusters", [2, 3, 6])
def test_the_slope_of_the_balance_equals_autograd(n_clusters: int) -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        case = Case(rng.normal(scale=3, size=(20, n_clusters)), [], shares=random_shares(n_clusters, rng))
        problem = replace(problem_of(case), free_price=0.0, prices=Prices(0.0, 0.0, balance_weight=BALANCE_WEIGHT))
        _, _, step = objective_and_subgradient(torch.tensor(case.scores), problem, torch.zeros(()))
        np.testing.assert_allclose(step, balance_slope(case), atol=1e-14)
        assert step.abs().sum() > 1e-4


@quick
@given(cases())
def test_balance_is_zero_where_the_shares_are_met_and_above_everywhere_else(case: Case) -> None:
    met = (SHARP * torch.tensor(case.scores)).softmax(1).mean(0).numpy()
    problem = replace(
        problem_of(case._replace(shares=met)), prices=Prices(0.0, 0.0, balance_weight=BALANCE_WEIGHT), free_price=0.0
    )
    problem = replace(problem, weight=torch.zeros_like(problem.weight))
    terms, _, step = objective_and_subgradient(torch.tensor(case.scores), problem, torch.zeros(()))
    assert float(terms.balance) == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(step, 0, atol=1e-12)
    other = np.roll(met, 1) if np.ptp(met) > 0.01 else random_shares(len(met), np.random.default_rng(0))
    assert fast_terms(case._replace(shares=other))[5] > 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_cluster_that_no_point_would_ever_take_leaves_numbers_that_are_finite(dtype: torch.dtype) -> None:
    """Its chance is 0 in the arithmetic of the machine, and 0 log 0 is 0."""
    case = Case(np.array([[1.0, 0.0, -1000.0], [0.0, 1.0, -1000.0]]), [], shares=np.array([0.4, 0.4, 0.2]))
    scores = torch.tensor(case.scores, dtype=dtype)
    terms, _, step = objective_and_subgradient(scores, problem_of(case, dtype), torch.zeros((), dtype=dtype))
    assert float(terms.balance) == pytest.approx(BALANCE_WEIGHT * math.log(0.5 / 0.4), rel=1e-5)
    assert step.isfinite().all()


@quick
@given(cases())
def test_violated_are_the_sets_9_and_10(case: Case) -> None:
    _, violated, _ = objective_and_subgradient(torch.tensor(case.scores), problem_of(case), torch.zeros(()))
    answers = zip(case.pairs.index, case.pairs.same, strict=True)
    margins = np.array([naive_margin(case.scores, i, j) * (1 if same else -1) for (i, j), same in answers])
    np.testing.assert_array_equal(violated, margins < 1)  # a margin of exactly 1 is not violated


@pytest.mark.parametrize("n_clusters", [2, 3, 6])
def test_objective_passes_gradcheck_away_from_kinks(n_clusters: int) -> None:
    for seed in range(4):
        case = smooth_case(seed, n_clusters)
        problem = problem_of(case)
        scores = torch.tensor(case.scores, requires_grad=True)
        norm = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(lambda s, n, p=problem: objective(s, p, n).total, (scores, norm), eps=1e-6)


@pytest.mark.parametrize("n_clusters", [2, 3, 4, 6])
def test_subgradient_equals_autograd_away_from_ties(n_clusters: int) -> None:
    for seed in range(30):
        case = random_case(seed, n_clusters, n_points=40, n_answers=60)
        scores = torch.tensor(case.scores, requires_grad=True)
        problem = problem_of(case)
        (expected,) = torch.autograd.grad(objective(scores, problem, torch.zeros(())).total, scores)
        _, _, step = objective_and_subgradient(scores.detach(), problem, torch.zeros(()))
        np.testing.assert_allclose(step, expected, atol=1e-14)
        assert step.abs().sum() > 0


@quick
@given(cases())
def test_subgradient_with_ties_is_that_of_the_reported_assignments(case: Case) -> None:
    """With ties any best assignment gives a subgradient: it must be the one that `assignments` reports."""
    scores, problem, pairs = torch.tensor(case.scores), problem_of(case), case.pairs
    found, (_, cluster) = assignments(scores, problem.index), best_two(scores)
    _, violated, step = objective_and_subgradient(scores, problem, torch.zeros(()))
    expected = np.zeros(case.scores.shape)
    open_links = [naive_margin(case.scores, i, j) < 1 for i, j in case.links]
    rows = zip([*pairs.index.tolist(), *case.links], [*violated.tolist(), *open_links], strict=True)
    for row, ((i, j), is_open) in enumerate(rows):
        if not is_open:
            continue
        push = float(problem.weight[row]) * (1 if problem.same[row] else -1)
        z, (z_i, z_j) = int(found.same_cluster[row]), found.different_clusters[row].tolist()
        for point, down, up in ((i, z, z_i), (j, z, z_j)):
            expected[point, down] -= push
            expected[point, up] += push
    for i in case.free:
        if naive_free_margin(case.scores, i) < 1:
            first, second = cluster[i].tolist()
            price = FREE_WEIGHT / (len(case.free) * case.scores.shape[1])
            expected[i, first] -= price
            expected[i, second] += price
    expected += balance_slope(case)
    np.testing.assert_allclose(step, expected, atol=1e-12)


def feature(h: np.ndarray, z: int, n_clusters: int) -> np.ndarray:
    """Φ(h, z) of (1): h in block z, zeros elsewhere."""
    phi = np.zeros((n_clusters, len(h)))
    phi[z] = h
    return phi


def naive_subgradients(case: Case, codes: np.ndarray, head: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """dW of (11) and dH of (12) to (15), term by term as printed; ``codes`` are [h, 1] and ``head`` has the biases.

    The free points are those with a margin below 1: (8c) has no slope at the others. Neighbours enter like must-links,
    and the slope of the balance is added as it is.
    """
    n_clusters = len(head)
    d_head, d_codes = PENALTY * head, np.zeros_like(codes)
    for i, j, same, price in case.hinges:
        together, apart = same_options(case.scores, i, j), different_options(case.scores, i, j)
        wanted, rival = max(together, key=together.get), max(apart, key=apart.get)  # z⁺ and z⁻
        if not same:
            wanted, rival = rival, wanted
        if (together | apart)[wanted] - (together | apart)[rival] >= 1:
            continue  # not in A⁺ of (9) or A⁻ of (10)
        for point, z, s in ((i, wanted[0], rival[0]), (j, wanted[1], rival[1])):
            phi_z, phi_s = (feature(codes[point], cluster, n_clusters) for cluster in (z, s))
            d_head -= price * (phi_z - phi_s)  # second and third line of (11)
            d_codes[point] -= price * (head[z] - head[s])  # (12), (13)
    for i in case.free:
        s, z = np.argsort(case.scores[i])[-2:]
        if case.scores[i, z] - case.scores[i, s] < 1:
            price = FREE_WEIGHT / (len(case.free) * n_clusters)
            d_head -= price * (feature(codes[i], z, n_clusters) - feature(codes[i], s, n_clusters))  # last line of (11)
            d_codes[i] -= price * (head[z] - head[s])  # (14)
    return d_head + balance_slope(case).T @ codes, d_codes + balance_slope(case) @ head


@pytest.mark.parametrize("n_clusters", [2, 3, 5])
def test_equations_11_to_14_as_printed(n_clusters: int) -> None:
    for seed in range(20):
        drawn = random_case(seed, n_clusters, n_points=12, n_answers=10)
        rng = np.random.default_rng(seed)
        h, centre = rng.random((12, 4)), rng.random(4)
        head, bias = rng.normal(scale=2, size=(n_clusters, 4)), rng.normal(size=n_clusters)
        network = Network([], torch.tensor(centre), 0.4, torch.tensor(head), torch.tensor(bias))
        x = DenseInput(torch.tensor(h))
        scores = network.scores(x)
        case = drawn._replace(scores=scores.numpy())
        _, _, step = objective_and_subgradient(scores, problem_of(case), network.squared_norm)

        codes = np.column_stack([(h - centre) / 0.4, np.ones(12)])  # the paper's [h, 1], on centred and scaled codes
        d_head, d_codes = naive_subgradients(case, codes, np.column_stack([head, bias]))
        np.testing.assert_allclose(scores, codes @ np.column_stack([head, bias]).T, atol=1e-12)
        np.testing.assert_allclose(np.column_stack(network.gradients(x, step, PENALTY)), d_head, atol=1e-12)
        np.testing.assert_allclose(step @ network.head, d_codes[:, :-1], atol=1e-12)


@pytest.mark.parametrize("n_clusters", [2, 5])
def test_label_subgradient_is_that_of_the_hinge_against_the_best_other_cluster(n_clusters: int) -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(40, n_clusters, generator=generator, dtype=torch.float64, requires_grad=True)
    labels = torch.randint(n_clusters, (40,), generator=generator)
    weight = torch.rand(40, generator=generator, dtype=torch.float64)
    others = scores.masked_fill(torch.nn.functional.one_hot(labels, n_clusters).bool(), -torch.inf).max(1).values
    hinge = ((1 - scores[torch.arange(40), labels] + others).clamp_min(0) * weight).mean()
    hinge.backward()
    torch.testing.assert_close(label_subgradient(scores.detach(), labels, weight), scores.grad)
    assert not label_subgradient(scores.detach()[:, :1], labels * 0, weight).any()
