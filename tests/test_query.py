"""Which pair to ask next: never what is known, never twice, and each strategy as it is defined."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.datasets import make_blobs

from pairmargin import FewQuestionsWarning, InvalidParameterError, MaxMarginClustering, Pairs, select_pairs
from pairmargin.objective import pair_margins
from pairmargin.query import STRATEGIES, Known, View, choose

Array = NDArray[np.float64]


@pytest.fixture(scope="module")
def blobs() -> tuple[Array, Array]:
    X, y = make_blobs(60, centers=4, cluster_std=1.0, random_state=0)
    return X, y


def answers(index: Array, y: Array) -> Pairs:
    return Pairs(index, y[index[:, 0]] == y[index[:, 1]])


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
    view = View(X, scores, scores)
    everything = np.column_stack(np.triu_indices(60, 1))
    everything = everything[Known(pairs, 60).is_open(everything)]
    smallest = pair_margins(torch.from_numpy(scores), torch.from_numpy(everything)).abs().min()
    asked = torch.from_numpy(choose(view, pairs, 1, "uncertain"))
    assert pair_margins(torch.from_numpy(scores), asked).abs().item() == pytest.approx(smallest.item())
