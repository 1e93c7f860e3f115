"""Everything is made where the data is, and nothing moves silently: shown without a GPU, in two ways.

On the device ``meta`` tensors have a form and no values, and an operation between it and the CPU is an error. All that
is arithmetic runs there: the layers, the head, the objective, the steps, contrastive divergence. What needs values
cannot: `Problem.build` (are there answers of a kind, which points are free), `train` and `settle` (the history and the
shares are Python numbers), `train_rbm` (so is its error), batches (``torch.unique`` counts, generators draw), the start
and the neighbours (NumPy).

So whole fits run on the CPU while ``meta`` is where PyTorch makes tensors unless told otherwise: a tensor that is made
without saying where is then on the wrong device, and the fit fails, as it would on a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

from pairmargin import MaxMarginClustering, Pairs, estimator, sample_pairs
from pairmargin.inputs import DenseInput, Scaling
from pairmargin.network import Layer, Network
from pairmargin.objective import (
    Prices,
    Problem,
    assignments,
    label_subgradient,
    objective_and_subgradient,
    pair_margins,
)
from pairmargin.rbm import RBM, Chance
from pairmargin.training import AdamSteps, Best, PaperSteps

META = torch.device("meta")
N, D, K = 30, 6, 3
PRICES = Prices(0.1, 1.0, 0.5, 0.5)


def network(device: torch.device) -> Network:
    sizes = [(D, 5), (5, 4)]
    layers = [Layer(torch.ones(a, b, device=device), torch.ones(b, device=device)) for a, b in sizes]
    centre, head, bias = (torch.ones(*shape, device=device) for shape in ((4,), (K, 4), (K,)))
    return Network(layers, centre, 2.0, head, bias)


def data(device: torch.device) -> DenseInput:
    return DenseInput(torch.ones(N, D, device=device))


def problem(device: torch.device) -> Problem:
    """Answers on a device; those on ``meta`` are built on the CPU, where they can be counted."""
    pairs = Pairs.from_lists([(0, 1), (2, 3)], [(4, 5)])
    links, like = torch.tensor([[6, 7], [8, 9]]), torch.ones(1)
    built = Problem.build(pairs, N, PRICES, like=like, links=links, shares=torch.full((K,), 1 / K))
    moved = {name: value.to(device) for name, value in vars(built).items() if isinstance(value, Tensor)}
    return replace(built, **moved)


def all_on(device: torch.device, *tensors: Tensor) -> bool:
    return all(tensor.device == device for tensor in tensors)


def test_rows_are_chosen_by_numbers_from_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """``meta`` takes an index of the CPU, a GPU does not."""
    select = Tensor.index_select

    def strict(x: Tensor, dim: int, index: Tensor) -> Tensor:
        assert x.device == index.device
        return select(x, dim, index)

    monkeypatch.setattr(Tensor, "index_select", strict)
    for device in (META, torch.device("cpu")):
        assert data(device).subset(torch.arange(4, device="cpu")).shape == (4, D)


def test_a_network_stays_where_it_is() -> None:
    net, x = network(META), data(META)
    scores = net.scores(x)
    assert scores.shape == (N, K)
    assert all_on(META, scores, net.squared_norm, *net.activations, *net.copy().parameters)
    gradients = net.gradients(x, torch.ones_like(scores), 0.1)
    assert [g.shape for g in gradients] == [p.shape for p in net.parameters]
    assert all_on(META, *gradients)


def test_auto_is_the_accelerator_or_else_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    for there, wanted in ((None, torch.device("cpu")), (META, META)):
        monkeypatch.setattr("torch.accelerator.current_accelerator", lambda there=there: there)
        assert estimator._device("auto") == wanted


def test_a_network_that_was_kept_comes_back_to_its_device() -> None:
    kept = [tensor.cpu() for tensor in network(torch.device("cpu")).tensors]
    found = Network.of(kept, META)
    assert all_on(META, *found.parameters, found.centre)
    assert found.spread == 2


@pytest.mark.parametrize("steps", ["adam", "paper"])
def test_steps_move_parameters_where_they_are(steps: str) -> None:
    net = network(META)
    move = AdamSteps(net, 0.1, 0.1, 5) if steps == "adam" else PaperSteps(net, 0.1, 0.1, 3)
    move([torch.ones_like(p) for p in net.parameters], 1)
    assert all_on(META, *net.parameters, *move.tensors, *Best(net).copies)


def test_the_objective_stays_where_the_scores_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.fx.experimental._config.meta_nonzero_assume_all_nonzero", True)  # all pairs are searched
    scores, asked = torch.ones(N, K, device=META), problem(META)
    found = assignments(scores, asked.index)
    assert all_on(META, *found, pair_margins(scores, asked.index), pair_margins(scores[:, :1], asked.index))
    terms, violated, step = objective_and_subgradient(scores, asked, torch.ones((), device=META))
    assert all_on(META, *terms, violated, step)
    assert step.shape == (N, K)
    labels, weight = torch.zeros(N, dtype=torch.long, device=META), torch.ones(N, device=META)
    assert all_on(META, label_subgradient(scores, labels, weight))


def test_contrastive_divergence_stays_where_the_data_is() -> None:
    class Untouched(Chance):  # generators have values, and ``meta`` has none
        def draw(self, what: Any, like: Tensor) -> Tensor:
            return what(*like.shape, dtype=like.dtype, device=like.device)

    for visible in ("binary", "gaussian"):
        rbm = RBM.random(D, 4, visible, torch.Generator(), torch.ones(1, device=META))
        v0 = data(META).x
        h0 = rbm.hidden_mean(v0)
        v1, h1 = rbm.negative_phase(h0, 2, Untouched(torch.Generator()))
        assert all_on(META, rbm.weight, h0, v1, h1, rbm.free_energy(v0))


def test_rows_go_to_the_device_that_is_asked_for(tmp_path: Path) -> None:
    rows = np.arange(N * D, dtype=np.float32).reshape(N, D)
    x = Scaling.learn(rows, "gaussian").apply(rows, META)
    assert all_on(META, x.rows(slice(0, 3)), x.subset(torch.arange(4)).rows(slice(None)))
    assert all_on(META, x.above(torch.ones(D, 2, device=META), torch.ones(2, device=META)).rows(slice(None)))


@pytest.fixture
def nowhere_by_default() -> Iterator[None]:
    """Tensors that are made without a device have no values."""
    torch.set_default_device("meta")
    yield
    torch.set_default_device(None)


@pytest.mark.usefixtures("nowhere_by_default")
def test_the_default_device_is_a_trap() -> None:
    with pytest.raises((RuntimeError, NotImplementedError)):
        float(torch.zeros(3).sum())


def clouds() -> tuple[Any, Any, Pairs]:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=90)
    X = rng.normal(size=(90, 4)) + 8 * np.eye(4)[y]
    return X, y, sample_pairs(y, 40, random_state=0)


SMALL: dict[str, Any] = {"hidden_layer_sizes": (5, 4), "pretrain_epochs": 2, "max_iter": 4, "random_state": 0}


@pytest.mark.parametrize(
    "settings",
    [
        {"n_init": 2},
        {"solver": "subgradient", "init": "k-means", "balance_weight": 0.1, "neighbour_weight": 0.0},
        {"batch_size": 40},
        {"sparse": True},
        {"hidden_layer_sizes": ()},
        {"n_clusters": "auto"},
        {"checkpoint": True},
    ],
    ids=lambda settings: ", ".join(settings),
)
def test_a_fit_makes_no_tensor_without_saying_where(settings: dict[str, Any], tmp_path: Path) -> None:
    X, _, pairs = clouds()
    changes = {name: value for name, value in settings.items() if name != "sparse"}
    if "checkpoint" in changes:
        changes["checkpoint"] = tmp_path
    X = sp.csr_array(np.maximum(X, 0)) if "sparse" in settings else X
    there = MaxMarginClustering(**({"n_clusters": 3} | SMALL | changes | {"checkpoint": None})).fit(X, pairs=pairs)
    torch.set_default_device("meta")
    try:
        for _ in range(2 if "checkpoint" in changes else 1):  # the second one reads what the first one kept
            model = MaxMarginClustering(**({"n_clusters": 3} | SMALL | changes)).fit(X, pairs=pairs)
        found = model.decision_function(X), model.pair_score(X, pairs), model.pair_proba(X, pairs)
    finally:
        torch.set_default_device(None)
    np.testing.assert_array_equal(model.labels_, there.labels_)
    np.testing.assert_array_equal(found[0], there.decision_function(X))
    np.testing.assert_array_equal(found[1], there.pair_score(X, pairs))
