"""The network and its written-out backward pass, against plain PyTorch with autograd."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

from pairmargin.inputs import DenseInput, Input, SparseInput
from pairmargin.neighbours import neighbour_links
from pairmargin.network import Layer, Network
from pairmargin.objective import Prices, Problem, objective, objective_and_subgradient
from pairmargin.pairs import Pairs
from pairmargin.training import AdamSteps, Watch, train

N_POINTS, N_FEATURES, N_CLUSTERS = 12, 6, 4
PENALTY, SPREAD = 0.3, 0.4
DEPTHS = pytest.mark.parametrize("sizes", [(), (5,), (5, 7, 3)], ids=["no layer", "one layer", "three layers"])
KINDS = pytest.mark.parametrize("kind", ["dense", "sparse"])


def make_input(kind: str, seed: int = 0) -> tuple[Input, Tensor]:
    """An input, and the scaled matrix that it stands for."""
    rng = np.random.default_rng(seed)
    if kind == "dense":
        filled = torch.tensor(rng.normal(size=(N_POINTS, N_FEATURES)))
        return DenseInput(filled.clone()), filled
    raw = rng.normal(size=(N_POINTS, N_FEATURES)) * (rng.random((N_POINTS, N_FEATURES)) < 0.4)
    shift, scale = torch.tensor(rng.normal(size=N_FEATURES)), torch.tensor(rng.uniform(0.5, 3, N_FEATURES))
    return SparseInput(sp.csr_array(raw), shift, scale), (torch.tensor(raw) - shift) / scale


def make_network(sizes: tuple[int, ...], seed: int = 1) -> Network:
    """Random numbers everywhere: no bias and no centre is zero, and the spread is not 1."""
    rng = np.random.default_rng(seed)

    def tensor(*shape: int) -> Tensor:
        return torch.tensor(rng.normal(size=shape))

    widths = (N_FEATURES, *sizes)
    layers = [Layer(tensor(a, b), tensor(b)) for a, b in zip(widths, sizes, strict=False)]
    return Network(layers, tensor(widths[-1]), SPREAD, tensor(N_CLUSTERS, widths[-1]), tensor(N_CLUSTERS))


def leaves_of(network: Network) -> list[Tensor]:
    """Copies of the parameters that autograd can follow: weight, bias of each layer, then the head and its bias."""
    parts = [part for layer in network.layers for part in (layer.weight, layer.bias)]
    return [part.clone().requires_grad_() for part in (*parts, network.head, network.head_bias)]


def plain_scores(leaves: list[Tensor], centre: Tensor, x: Tensor) -> Tensor:
    """The model in plain PyTorch: eq. (3), then (1)."""
    *layers, head, head_bias = leaves
    for weight, bias in zip(layers[::2], layers[1::2], strict=True):
        x = 1 / (1 + torch.exp(-(x @ weight + bias)))
    return (x - centre) / SPREAD @ head.T + head_bias


def assert_all_close(found: list[Tensor], expected: list[Tensor]) -> None:
    assert [f.shape for f in found] == [e.shape for e in expected]
    for f, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(f.detach(), e.detach(), rtol=1e-9, atol=1e-11)


@KINDS
@DEPTHS
def test_codes_and_scores_are_those_of_the_plain_model(sizes: tuple[int, ...], kind: str) -> None:
    network, (x, filled) = make_network(sizes), make_input(kind)
    scores = plain_scores(leaves_of(network), network.centre, filled)
    codes = filled
    for layer in network.layers:
        codes = torch.sigmoid(codes @ layer.weight + layer.bias)
    assert_all_close([network.scores(x), network.codes(x)], [scores, codes])


@KINDS
@DEPTHS
def test_gradients_of_any_function_of_the_scores_equal_autograd(sizes: tuple[int, ...], kind: str) -> None:
    """A random dS is the derivative of ⟨dS, S⟩; with λ/2 ‖W‖² on top that tests the backward pass alone."""
    network, (x, filled) = make_network(sizes), make_input(kind)
    step = torch.tensor(np.random.default_rng(2).normal(size=(N_POINTS, N_CLUSTERS)))
    leaves = leaves_of(network)
    norm = leaves[-2].square().sum() + leaves[-1].square().sum()
    value = (step * plain_scores(leaves, network.centre, filled)).sum() + PENALTY / 2 * norm
    network.scores(x)
    assert_all_close(network.gradients(x, step, PENALTY), list(torch.autograd.grad(value, leaves)))


@KINDS
@DEPTHS
def test_gradients_of_the_objective_equal_autograd(sizes: tuple[int, ...], kind: str) -> None:
    """From X to (8) and back, with nothing of ours between the parameters and the scores on autograd's side."""
    pairs = Pairs([(0, 1), (2, 3), (1, 4), (5, 0)], [True, False, True, False], [1.0, 2.0, 0.5, 1.0])
    network, (x, filled) = make_network(sizes), make_input(kind)
    neighbours = torch.tensor(np.random.default_rng(3).integers(1, N_POINTS, (N_POINTS, 2)))
    neighbours = (neighbours + torch.arange(N_POINTS)[:, None]) % N_POINTS  # of nobody itself
    shares = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)
    prices = Prices(PENALTY, 2.0, neighbour_weight=0.7, balance_weight=1.5)
    problem = Problem.build(
        pairs,
        N_POINTS,
        prices,
        like=network.head,
        links=torch.from_numpy(neighbour_links(neighbours.numpy())),
        shares=shares,
    )
    leaves = leaves_of(network)
    norm = leaves[-2].square().sum() + leaves[-1].square().sum()
    value = objective(plain_scores(leaves, network.centre, filled), problem, norm).total
    terms, _, step = objective_and_subgradient(network.scores(x), problem, network.squared_norm)
    assert float(terms.total) == pytest.approx(float(value.detach()), rel=1e-12)
    gradients = network.gradients(x, step, PENALTY)
    assert_all_close(gradients, list(torch.autograd.grad(value, leaves)))
    assert all(g.abs().sum() > 0 for g in gradients)


@DEPTHS
def test_parameters_are_the_tensors_themselves_and_line_up_with_the_gradients(sizes: tuple[int, ...]) -> None:
    network, (x, _) = make_network(sizes), make_input("dense")
    network.scores(x)
    gradients = network.gradients(x, torch.ones(N_POINTS, N_CLUSTERS, dtype=torch.float64), PENALTY)
    assert [g.shape for g in gradients] == [p.shape for p in network.parameters]
    assert network.parameters[-2] is network.head
    assert network.parameters[-1] is network.head_bias
    assert all(p is q for p, q in zip(network.parameters, network.parameters, strict=True))
    if sizes:
        assert network.parameters[0] is network.layers[0].weight
        assert network.parameters[1] is network.layers[0].bias


@DEPTHS
def test_training_a_copy_leaves_the_original_as_it_was(sizes: tuple[int, ...]) -> None:
    network, (x, _) = make_network(sizes), make_input("dense")
    scores, kept = network.scores(x), [p.clone() for p in network.parameters]
    problem = Problem.build(Pairs([(0, 1), (2, 3)], [True, False]), N_POINTS, Prices(PENALTY, 2.0), like=network.head)
    other = network.copy()
    assert torch.equal(other.scores(x), scores)
    train(other, x, problem, AdamSteps(other, 0.1, 0.1), Watch(max_iter=3, tol=0.0))
    assert all(torch.equal(p, was) for p, was in zip(network.parameters, kept, strict=True))
    assert torch.equal(network.scores(x), scores)
    assert not any(torch.equal(p, was) for p, was in zip(other.parameters, kept, strict=True))


def test_squared_norm_counts_the_bias_as_one_more_column() -> None:
    network = Network([], torch.zeros(2), SPREAD, torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([5.0, 6.0]))
    assert float(network.squared_norm) == 1 + 4 + 9 + 16 + 25 + 36


@KINDS
@DEPTHS
def test_neither_pass_writes_on_the_data_the_parameters_or_the_step(sizes: tuple[int, ...], kind: str) -> None:
    network, (x, filled) = make_network(sizes), make_input(kind)
    step = torch.tensor(np.random.default_rng(2).normal(size=(N_POINTS, N_CLUSTERS)))
    kept = [t.clone() for t in (*network.parameters, network.centre, step)]
    scores = network.scores(x)
    first = network.gradients(x, step, PENALTY)
    assert_all_close([*network.parameters, network.centre, step], kept)
    assert_all_close([x.rows(slice(None))], [filled])
    assert_all_close([network.scores(x), *network.gradients(x, step, PENALTY)], [scores, *first])


def test_backward_pass_uses_up_the_activations() -> None:
    network, (x, _) = make_network((5, 7, 3)), make_input("dense")
    network.scores(x)
    assert len(network.activations) == 3
    network.gradients(x, torch.zeros(N_POINTS, N_CLUSTERS, dtype=torch.float64), PENALTY)
    assert network.activations == []


def test_float32_stays_float32() -> None:
    raw = sp.csr_array(np.eye(4, 3, dtype=np.float32))
    x = SparseInput(raw, torch.zeros(3), torch.ones(3))
    network = Network([Layer(torch.ones(3, 2), torch.zeros(2))], torch.zeros(2), SPREAD, torch.eye(2), torch.zeros(2))
    scores = network.scores(x)
    assert {scores.dtype} | {g.dtype for g in network.gradients(x, torch.ones(4, 2), PENALTY)} == {torch.float32}


# The sparse input


def test_sparse_products_equal_the_dense_ones_of_the_filled_in_matrix() -> None:
    rng = np.random.default_rng(3)
    for seed in range(10):
        sparse, filled = make_input("sparse", seed)
        dense = DenseInput(filled)
        weight, bias = torch.tensor(rng.normal(size=(N_FEATURES, 3))), torch.tensor(rng.normal(size=3))
        other = torch.tensor(rng.normal(size=(N_POINTS, 2)))
        assert sparse.shape == dense.shape == (N_POINTS, N_FEATURES)
        assert_all_close(
            [sparse.times(weight, bias), sparse.transposed_times(other)],
            [dense.times(weight, bias), dense.transposed_times(other)],
        )


@pytest.mark.parametrize("index", [slice(None), slice(2, 5), slice(0, 1), torch.tensor([3, 0, 3]), torch.tensor([7])])
def test_sparse_rows_equal_the_dense_ones(index: Tensor | slice) -> None:
    sparse, filled = make_input("sparse")
    assert_all_close([sparse.rows(index)], [DenseInput(filled).rows(index)])


def test_sparse_products_with_empty_rows_and_columns() -> None:
    raw = sp.csr_array((3, 2))
    shift, scale = torch.tensor([1.0, -2.0], dtype=torch.float64), torch.tensor([2.0, 4.0], dtype=torch.float64)
    sparse, dense = SparseInput(raw, shift, scale), DenseInput((-shift / scale).repeat(3, 1))
    weight = torch.tensor([[1.0, 2.0], [3.0, 5.0]], dtype=torch.float64)
    bias, other = weight[0], torch.ones(3, 2, dtype=torch.float64)
    assert_all_close(
        [sparse.times(weight, bias), sparse.transposed_times(other)],
        [dense.times(weight, bias), dense.transposed_times(other)],
    )
