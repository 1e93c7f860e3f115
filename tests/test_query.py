"""Which pair to ask next: never what is known, never twice, and each strategy as it is defined."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from sklearn.datasets import make_blobs

from pairmargin import FewQuestionsWarning, InvalidParameterError, MaxMarginClustering, Pairs, select_pairs
from pairmargin.objective import pair_margins
from pairmargin.query import STRATEGIES, Known, View, choose
from pairmargin.query.neighbourhoods import entropy, expected_questions
from pairmargin.query.teaching import Cores, _two_cores, teaching

Array = NDArray[np.float64]


@pytest.fixture(scope="module")
def blobs() -> tuple[Array, Array]:
    X, y = make_blobs(60, centers=4, cluster_std=1.0, random_state=0)
    return X, y


def answers(index: Array, y: Array) -> Pairs:
    return Pairs(index, y[index[:, 0]] == y[index[:, 1]])


def test_a_first_look_is_in_units_of_the_median_margin() -> None:
    """Two clusters that are close and one far away, by which the median score is above 0."""
    X = np.repeat([0.0, 2.0, 30.0], [42, 42, 16])[:, None] + np.random.default_rng(0).normal(scale=0.1, size=(100, 1))
    scores = np.sort(View.of_data(X, 3, 0).scores, axis=1)
    assert np.median(scores) > 0
    assert np.median(scores[:, -1] - scores[:, -2]) == pytest.approx(1, abs=0.05)


def test_a_number_of_clusters_of_numpy_is_a_number(blobs: tuple[Array, Array]) -> None:
    assert View.of(MaxMarginClustering(np.int64(4)), blobs[0], 0).n_clusters == 4


def test_known_closes_what_follows_and_what_was_left_alone() -> None:
    known = Known(Pairs.from_lists([(0, 1)], [(1, 2)]), 5, exclude=[(3, 4)])
    index = np.array([(0, 1), (0, 2), (2, 0), (3, 4), (0, 3), (2, 4)])
    assert known.is_open(index).tolist() == [False, False, False, False, True, True]
    known.close(np.array([(1, 3)]))
    assert not known.is_open(np.array([(0, 3)])).any()


def test_a_group_with_a_contradiction_proves_nothing_but_is_not_asked_again() -> None:
    known = Known(Pairs.from_lists([(0, 1), (1, 2)], [(0, 2)]), 4)
    assert not known.is_open(np.array([(0, 1), (1, 2), (0, 2)])).any()
    assert known.is_open(np.array([(0, 3)])).all()


def test_open_pairs_are_each_two_groups_once() -> None:
    known = Known(Pairs.from_lists([(0, 1)], [(1, 2)]), 4)
    assert known.open_pairs().tolist() == [[0, 3], [2, 3]]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_question_whose_answer_is_known_and_none_twice(strategy: str, blobs: tuple[Array, Array]) -> None:
    X, y = blobs
    view = View.of_data(X, 4, 0)
    pairs = Pairs.empty()
    for _ in range(12):
        index = choose(view, pairs, 5, strategy, random_state=0)
        assert index.shape == (5, 2)
        for k in range(5):  # also in the light of the questions before it in the same batch
            known = Known(pairs, len(X), exclude=index[:k])
            assert known.is_open(index[k : k + 1]).all()
        pairs = pairs + answers(index, y)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_asking_ends_when_all_is_known_and_says_so(strategy: str) -> None:
    X, y = make_blobs(12, centers=3, random_state=0)
    view = View.of_data(X, 3, 0)
    pairs = Pairs.empty()
    for _ in range(66):
        if not len(Known(pairs, 12).open_pairs()):
            break
        pairs = pairs + answers(choose(view, pairs, 1, strategy, random_state=0), y)
    with pytest.warns(FewQuestionsWarning, match="1 pairs were asked for but only 0"):
        assert choose(view, pairs, 1, strategy, random_state=0).shape == (0, 2)
    closed = pairs.closure()
    assert len(closed) == 66


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_same_seed_asks_the_same(strategy: str, blobs: tuple[Array, Array]) -> None:
    X, y = blobs
    pairs = answers(np.array([(0, 1), (2, 3), (4, 5)]), y)
    first, second = (select_pairs(None, X, pairs, 6, strategy, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_unsure_pairs_are_left_alone(strategy: str, blobs: tuple[Array, Array]) -> None:
    X, _ = blobs
    unsure: list[tuple[int, int]] = []
    for _ in range(8):
        index = select_pairs(None, X, None, 2, strategy, random_state=0, exclude=unsure)
        new = [(int(min(pair)), int(max(pair))) for pair in index]
        assert not set(new) & set(unsure)
        unsure += new


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("n_clusters", [1, 2, 4])
def test_small_and_odd_data(strategy: str, n_clusters: int) -> None:
    for X in (np.array([[0.0], [1.0], [3.0]]), np.zeros((3, 2))):
        view = View.of_data(X, n_clusters, 0)
        index = choose(view, None, 1, strategy, random_state=0)
        assert index.shape == (1, 2)
        assert index[0, 0] != index[0, 1]
        assert choose(view, None, 0, strategy, random_state=0).shape == (0, 2)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_contradictions_do_not_stop_the_questions(strategy: str, blobs: tuple[Array, Array]) -> None:
    X, _ = blobs
    pairs = Pairs.from_lists([(0, 1), (1, 2), (5, 6)], [(0, 2), (0, 1), (6, 7)])
    index = select_pairs(None, X, pairs, 4, strategy, random_state=0)
    assert Known(pairs, len(X)).is_open(index).all()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_fitted_model_and_one_that_is_not(strategy: str, blobs: tuple[Array, Array]) -> None:
    X, y = blobs
    pairs = answers(np.arange(20).reshape(-1, 2), y)
    model = MaxMarginClustering(4, n_init=1, max_iter=5, pretrain_epochs=2, random_state=0)
    assert select_pairs(model, X, pairs, 3, strategy, random_state=0).shape == (3, 2)
    assert select_pairs(model.fit(X, pairs=pairs), X, pairs, 3, strategy, random_state=0).shape == (3, 2)


def test_a_strategy_that_is_not_there_and_a_number_that_is_none() -> None:
    with pytest.raises(InvalidParameterError, match="did you mean 'random'"):
        select_pairs(None, [[0.0], [1.0]], None, 1, "randon")
    with pytest.raises(InvalidParameterError, match="n=-1 must be an integer, 0 or more"):
        select_pairs(None, [[0.0], [1.0]], None, -1)


def test_random_draws_every_open_pair_of_points_as_often() -> None:
    pairs = Pairs.from_lists([(0, 1)], [(1, 2)])  # open: two groups {0, 1}, {2} with 3 and with 4, and 3 with 4
    view = View.of_data(np.arange(5.0)[:, None], 2, 0)
    count = np.zeros((5, 5))
    for seed in range(2000):
        i, j = np.sort(choose(view, pairs, 1, "random", seed)[0])
        count[i, j] += 1
    drawn = count[count > 0]
    assert len(drawn) == 7
    np.testing.assert_allclose(drawn, 2000 / 7, rtol=0.25)


def test_uncertain_finds_the_smallest_difference_of_all_pairs(blobs: tuple[Array, Array]) -> None:
    X, y = blobs
    rng = np.random.RandomState(0)
    pairs = answers(rng.permutation(60)[:30].reshape(-1, 2), y)
    scores = rng.standard_normal((60, 4))
    view = View(X, scores, scores, 4)
    everything = np.column_stack(np.triu_indices(60, 1))
    everything = everything[Known(pairs, 60).is_open(everything)]
    smallest = pair_margins(torch.from_numpy(scores), torch.from_numpy(everything)).abs().min()
    asked = torch.from_numpy(choose(view, pairs, 1, "uncertain"))
    assert pair_margins(torch.from_numpy(scores), asked).abs().item() == pytest.approx(smallest.item())


@pytest.mark.parametrize("strategy", ["default", "explore", "min-max"])
def test_separate_clusters_are_all_found_with_the_fewest_questions(strategy: str) -> None:
    X, y = make_blobs(100, centers=5, cluster_std=0.2, random_state=1)
    view = View.of_data(X, 5, 0)
    pairs = Pairs.empty()
    for _ in range(5 * 4 // 2 + 5):
        pairs = pairs + answers(choose(view, pairs, 1, strategy, random_state=0), y)
    asked_of = {int(label) for label in y[pairs.points]}
    assert asked_of == set(range(5))
    if strategy != "default":  # which takes it for granted that clusters are different if the model is sure of it
        assert len(Known(pairs, 100).all_different()) == 5


def test_groups_that_are_all_different() -> None:
    pairs = Pairs.from_lists([(0, 1), (1, 2), (3, 4)], [(0, 3), (3, 5), (0, 5), (3, 6)])
    known = Known(pairs, 8)
    assert known.all_different().tolist() == known.group[[0, 3, 5]].tolist()  # 6 may be with 0 or with 5


def test_min_max_takes_the_farthest_point_beside_the_nearest_neighbourhood(blobs: tuple[Array, Array]) -> None:
    X, y = blobs
    view = View.of_data(X, 4, 0)
    one, other = np.flatnonzero(y == 0)[:3], np.flatnonzero(y == 1)[:2]
    pairs = Pairs.from_lists([(one[0], one[1]), (one[0], one[2]), (other[0], other[1])], [(one[0], other[0])])
    i, j = choose(view, pairs, 1, "min-max", random_state=0)[0]
    distance = np.linalg.norm(view.codes[:, None] - view.codes[pairs.points], axis=2)
    assert i == distance.min(1).argmax()
    assert j == pairs.points[distance[i].argmin()]


def test_a_point_goes_on_to_the_next_neighbourhood_until_one_is_the_same(blobs: tuple[Array, Array]) -> None:
    X, y = blobs
    view = View.of_data(X, 4, 0)
    firsts = [int(np.flatnonzero(y == k)[0]) for k in range(3)]
    apart = [(a, b) for a in firsts for b in firsts if a < b]
    i = int(np.flatnonzero(y == 3)[0])
    for strategy in ("explore", "min-max", "npu"):
        pairs = Pairs.from_lists([(firsts[0], int(np.flatnonzero(y == 0)[1]))], [*apart, (firsts[0], i)])
        assert i in choose(view, pairs, 1, strategy, random_state=0)[0]


def test_entropy_and_expected_questions_by_hand() -> None:
    chance = np.array([[0.5, 0.5, 0.0], [0.2, 0.7, 0.1], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(entropy(chance)[[0, 2]], [np.log(2), 0])
    np.testing.assert_allclose(expected_questions(chance), [1.5, 0.7 + 2 * 0.2 + 3 * 0.1, 1])


def test_npu_takes_the_most_uncertain_point_for_a_question(blobs: tuple[Array, Array]) -> None:
    X, y = blobs
    view = View.of_data(X, 4, 0)
    groups = [np.flatnonzero(y == k)[:2] for k in range(3)]
    pairs = Pairs.from_lists(groups, [(a[0], b[0]) for a in groups for b in groups if a[0] < b[0]])
    leaf = view.forest_leaves.toarray() > 0
    value = np.full(len(X), -1.0)
    for i in set(range(len(X))) - set(pairs.points.tolist()):
        likeness = np.array([np.mean([(leaf[i] & leaf[j]).sum() for j in group]) for group in groups])
        p = likeness / likeness.sum() if likeness.sum() else np.full(3, 1 / 3)
        p = np.sort(p)[::-1]
        value[i] = -sum(q * np.log(q) for q in p if q > 0) / (p @ [1, 2, 3])
    i, _ = choose(view, pairs, 1, "npu", random_state=0)[0]
    assert value[i] == pytest.approx(value.max())


def test_default_asks_about_typical_points_before_outliers() -> None:
    rng = np.random.RandomState(0)
    centres = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    X = np.concatenate([centres[k] + rng.standard_normal((30, 2)) for k in range(3)] + [rng.uniform(-8, 18, (6, 2))])
    index = select_pairs(MaxMarginClustering(3), X, None, 6, random_state=0)
    assert index.max() < 90


def test_default_asks_whether_clusters_that_overlap_are_one() -> None:
    X, y = make_blobs(120, centers=2, cluster_std=1.0, center_box=(-20, 20), random_state=3)
    view = View.of_data(X, 4, 0)
    i, j = choose(view, None, 1, random_state=0)[0]
    assert y[i] == y[j]
    assert view.scores[i].argmax() != view.scores[j].argmax()


def test_default_goes_on_with_the_second_likeliest_cluster(blobs: tuple[Array, Array]) -> None:
    X, _ = blobs
    view = View.of_data(X, 4, 0)
    sure = view.chances.argmax(1)
    cores = [np.flatnonzero(sure == k)[np.argsort(-view.typicality[sure == k])][:3] for k in range(4)]
    links = [(core[0], member) for core in cores for member in core[1:]]
    apart = [(a[0], b[0]) for a in cores for b in cores if a[0] < b[0]]
    i = np.setdiff1d(np.arange(60), np.concatenate(cores))[0]
    first, second = np.argsort(-view.chances[i])[:2]
    known = Known(Pairs.from_lists(links, [*apart, (i, cores[first][0])]), 60)
    chance = Cores(view, known).chance[i]
    assert set(cores[second]) >= {Cores(view, known).representative[chance.argmax()]}
    assert chance.sum() == pytest.approx(1)


def three_bunches(gaps: tuple[float, float], chances: list[list[float]]) -> View:
    """Thirty points each, side by side, and what a model says of every bunch."""
    codes = 0.1 * np.random.RandomState(0).randn(90, 2)
    codes[:, 0] += np.repeat([0, gaps[0], sum(gaps)], 30)
    each = np.repeat(chances, 30, axis=0)
    return View(codes, each, each, len(chances[0]))


def test_answers_speak_for_those_that_resemble_a_point_before_there_is_a_new_model() -> None:
    view = three_bunches((3, 3), [[0.9, 0.1], [0.6, 0.4], [0.1, 0.9]])
    left, middle, right = 0, 45, 89

    def chance(*more: tuple[tuple[int, int], bool]) -> Array:
        """Of every point, that it belongs with the core on the right."""
        index, same = zip(((left, right), False), *more, strict=True)
        cores = Cores(view, Known(Pairs(index, same), 90))
        assert cores.has_part.sum(0).tolist() == cores.has_part.sum(1).tolist() == [1, 1]
        return cores.chance[:, cores.has_part[1]].ravel()

    before = chance()
    beside = 30 + np.argsort(((view.codes[30:60] - view.codes[middle]) ** 2).sum(1))[1:6]
    for told in (chance(((middle, right), True)), chance(((middle, left), False))):  # not the one, so the other
        assert (told > before + 0.1)[beside].all()
        np.testing.assert_allclose(told[1:30], before[1:30])  # nothing that resembles them


def test_cores_with_likenesses_across_are_compared_before_those_with_doubts_between() -> None:
    view = three_bunches((0.3, 3), [[0.8, 0.01, 0.19], [0.01, 0.98, 0.01], [0.19, 0.01, 0.8]])
    i, j = choose(view, Pairs.empty(), 1, random_state=0)[0]
    assert {i // 30, j // 30} == {0, 1}


def test_a_very_large_core_may_have_parts_that_nothing_resembles() -> None:
    view = three_bunches((9, 9), np.eye(3).tolist())
    known = Known(Pairs([(0, 45)], [True]), 90)  # two bunches are one thing, which has two thirds of all points
    for n_clusters, is_large in ((10, True), (3, False)):
        seen = replace(view, n_clusters=n_clusters)
        cores = Cores(seen, known)
        worth, asked = _two_cores(seen, cores, known.is_open_to(cores.groups))
        assert (worth > 1) == is_large  # in points
        assert not is_large or sorted(np.array(asked) >= 60) == [False, True]


def test_a_cluster_that_is_known_to_be_a_piece_of_another_gets_no_core_of_its_own() -> None:
    view = three_bunches((3, 3), [[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.05, 0.05, 0.9]])
    cores = Cores(view, Known(Pairs([(0, 45)], [True]), 90))  # the first bunch and the second
    assert cores.has_part.sum(0).tolist() == [2, 1]
    np.testing.assert_allclose(cores.chance[:60, 0], 0.95, atol=0.03)
    cores = Cores(view, Known(Pairs([(0, 45), (0, 31)], [True, False]), 90))  # of which part is something else
    assert cores.has_part.sum(1).tolist() == [1, 1, 1]
    assert len(cores.groups) == 3


def test_what_a_point_teaches_is_what_others_do_not() -> None:
    likeness = sp.csr_array(np.array([[1, 0.5, 0.2], [0.5, 1, 0], [0.2, 0, 1]]))
    doubt = np.array([0.0, 0.4, 0.6])
    np.testing.assert_allclose(teaching(likeness, doubt, np.zeros(3, bool)), [0.5 * 0.4 + 0.2 * 0.6, 0.4, 0.6])
    seen = np.array([True, False, False])
    np.testing.assert_allclose(teaching(likeness, doubt, seen), [0, 0.5 * 0.4, 0.8 * 0.6])


def test_default_asks_about_different_regions_at_once() -> None:
    X, y = make_blobs(200, centers=4, cluster_std=0.5, random_state=1)
    view = View.of_data(X, 4, 0)
    tips = [np.flatnonzero(y == k)[0] for k in range(4)]
    pairs = Pairs.from_lists(cannot_link=[(a, b) for a in tips for b in tips if a < b])
    assert len(np.unique(y[choose(view, pairs, 4)[:, 0]])) >= 3
