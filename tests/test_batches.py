"""Batches: everything comes up once, and their mean step is the step of the whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris

from pairmargin import MaxMarginClustering, Pairs, clustering_accuracy, sample_pairs
from pairmargin.batches import Batches
from pairmargin.inputs import DenseInput, ScaledRows
from pairmargin.network import Layer, Network
from pairmargin.objective import Prices, Problem, objective_and_subgradient
from pairmargin.stored import stored_rows

N, D, K = 47, 5, 4
PENALTY = 0.1


def case(stored: bool = False, n_answers: int = 20) -> tuple[Network, Any, DenseInput, Problem]:
    """A network, data as it is given and as a whole, and a problem with answers, links and free points."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    index = np.array([rng.choice(30, 2, replace=False) for _ in range(n_answers)]).reshape(-1, 2)
    pairs = Pairs(index, rng.random(n_answers) < 0.5).resolve("drop") if n_answers else Pairs.empty()
    links = torch.tensor(rng.choice(N, (25, 2)))

    def tensor(*shape: int) -> torch.Tensor:
        return torch.tensor(rng.normal(size=shape))

    network = Network([Layer(tensor(D, 3), tensor(3))], tensor(3), 0.7, tensor(K, 3), tensor(K))
    problem = Problem.build(pairs, N, Prices(PENALTY, 1.5, 0.6), like=network.head, links=links)
    whole = DenseInput(torch.from_numpy(X))
    x = ScaledRows(stored_rows(X), np.zeros(D), np.ones(D), torch.device("cpu")) if stored else whole
    return network, x, whole, problem


def step(network: Network, x: Any, problem: Problem) -> tuple[float, list[torch.Tensor]]:
    """The objective and its slope."""
    terms, _, slope = objective_and_subgradient(network.scores(x), problem, network.squared_norm)
    return float(terms.total), network.gradients(x, slope, PENALTY)


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("size", [1, 10, 46, 47, 100])
@pytest.mark.parametrize("n_answers", [0, 2, 20])
def test_the_mean_step_of_an_epoch_is_that_of_the_whole(size: int, stored: bool, n_answers: int) -> None:
    network, x, whole, problem = case(stored, n_answers)
    batches = Batches(x, problem, size, torch.Generator().manual_seed(0))
    found = [step(network, *batch) for batch in batches]
    assert len(found) == len(batches) == -(-N // size)
    value, slopes = step(network, whole, problem)
    assert np.mean([value for value, _ in found]) == pytest.approx(value, rel=1e-12)
    for k, slope in enumerate(slopes):
        mean = torch.stack([each[k] for _, each in found]).mean(0)
        torch.testing.assert_close(mean, slope, rtol=1e-10, atol=1e-12)


def test_epochs_differ_and_seeds_repeat() -> None:
    _, x, _, problem = case()

    def epochs(seed: int) -> list[list[float]]:
        batches = Batches(x, problem, 10, torch.Generator().manual_seed(seed))
        return [[float(batch.x.x.sum()) for batch in batches] for _ in range(2)]

    one, two = epochs(0)
    assert one != two
    assert epochs(0) == [one, two] != epochs(1)


def test_clusters_clouds_in_batches() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=600)
    X = rng.normal(size=(600, 4)) + 8 * np.eye(4)[y]
    pairs = sample_pairs(y, 60, random_state=0)
    model = MaxMarginClustering(3, (8,), batch_size=50, max_iter=5, pretrain_epochs=5, random_state=0)
    model.fit(X, pairs=pairs)
    assert clustering_accuracy(y, model.labels_) > 0.98
    assert [row["iteration"] for row in model.history_] == list(range(1, len(model.history_) + 1))
    assert np.array_equal(model.labels_, model.fit(X, pairs=pairs).labels_)


def test_batches_larger_than_the_data_are_one_step_for_all() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=80)
    X = rng.normal(size=(80, 3)) + 5 * y[:, None]
    pairs = sample_pairs(y, 20, random_state=0)
    settings = {"max_iter": 10, "pretrain_epochs": 3, "random_state": 0}
    whole = MaxMarginClustering(2, (4,), **settings).fit(X, pairs=pairs)
    batch = MaxMarginClustering(2, (4,), batch_size=80, **settings).fit(X, pairs=pairs)
    assert np.array_equal(whole.labels_, batch.labels_)


def test_no_iteration_at_all_stays_at_the_start() -> None:
    rng = np.random.default_rng(0)
    X, pairs = rng.normal(size=(60, 3)), Pairs.from_lists([(0, 1)], [(2, 3)])
    model = MaxMarginClustering(3, (4,), batch_size=16, max_iter=0, pretrain_epochs=1, n_init=2, random_state=0)
    model.fit(X, pairs=pairs)
    assert (model.n_iter_, len(model.history_)) == (0, 1)
    assert np.isfinite(model.objective_)


@pytest.mark.parametrize("batch_size", [None, 50])
def test_without_answers_no_cluster_of_the_start_is_given_up(batch_size: int | None) -> None:
    X = load_iris().data
    model = MaxMarginClustering(6, n_init=1, batch_size=batch_size, random_state=0)
    assert model.fit(X).n_clusters_found_ == 6
