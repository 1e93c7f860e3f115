"""Algorithm 1: when it stops, what it writes down, and that its steps are the ones they claim to be."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from pairmargin.inputs import DenseInput
from pairmargin.neighbours import neighbour_links
from pairmargin.network import Layer, Network
from pairmargin.objective import Prices, Problem, objective
from pairmargin.pairs import Pairs
from pairmargin.threads import WORTH_SHARING, threads_for
from pairmargin.training import PATIENCE, SETTLE, AdamSteps, PaperSteps, Steps, Watch, settle, train

KEYS = {
    "iteration",
    "objective",
    "must_link",
    "cannot_link",
    "free",
    "norm",
    "neighbours",
    "balance",
    "violated_pairs",
    "occupied_clusters",
    "seconds",
}
SPREAD = 0.4
TERMS = ("must_link", "cannot_link", "free", "norm", "neighbours", "balance")
BEYOND = pytest.mark.parametrize("beyond", [False, True], ids=["(8)", "beyond (8)"])


def toy(
    sizes: tuple[int, ...] = (4,), seed: int = 0, penalty: float = 0.02, beyond: bool = False
) -> tuple[Network, DenseInput, Problem]:
    """Three clouds in the plane with some answers about them, and a random network.

    Beyond (8), everybody has the next two of its cloud as neighbours, and the shares are not those of the clouds.
    """
    rng = np.random.default_rng(seed)
    truth = np.repeat([0, 1, 2], 10)
    x = np.array([[0, 3], [3, -3], [-3, -3]])[truth] + rng.normal(size=(30, 2))
    index = np.array([rng.choice(30, 2, replace=False) for _ in range(20)])
    pairs = Pairs(index, truth[index[:, 0]] == truth[index[:, 1]])

    def tensor(*shape: int) -> Tensor:
        return torch.tensor(rng.normal(size=shape))

    widths = (2, *sizes)
    layers = [Layer(tensor(a, b), tensor(b)) for a, b in zip(widths, sizes, strict=False)]
    x = DenseInput(torch.tensor(x))
    network = Network(layers, torch.zeros(widths[-1]).double(), SPREAD, tensor(3, widths[-1]), tensor(3))
    network.centre = network.codes(x).mean(0)
    neighbours = torch.tensor([[10 * (i // 10) + (i + step) % 10 for step in (1, 2)] for i in range(30)])
    shares = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
    prices = Prices(penalty, 1.0, 0.4, 0.8) if beyond else Prices(penalty, 1.0)
    problem = Problem.build(
        pairs, 30, prices, like=network.head, links=torch.from_numpy(neighbour_links(neighbours.numpy())), shares=shares
    )
    return network, x, problem


def leaves_of(network: Network) -> list[Tensor]:
    return [p.clone().requires_grad_() for p in network.parameters]


def plain_objective(leaves: list[Tensor], centre: Tensor, x: DenseInput, problem: Problem) -> Tensor:
    """(8) as a function of the parameters, in plain PyTorch up to the scores."""
    *layers, head, head_bias = leaves
    codes = x.x
    for weight, bias in zip(layers[::2], layers[1::2], strict=True):
        codes = torch.sigmoid(codes @ weight + bias)
    norm = head.square().sum() + head_bias.square().sum()
    return objective((codes - centre) / SPREAD @ head.T + head_bias, problem, norm).total


def scripted(values: list[float]) -> tuple[Network, DenseInput, Problem, Steps, list[int]]:
    """A run whose objective takes the given values, whatever the gradients say, and the list of iterations stepped.

    Without pairs and with no price on free points (8) is λ/2 ‖W‖², so setting W sets the objective.
    """
    network = Network([], torch.zeros(1).double(), 1.0, torch.zeros(2, 1).double(), torch.zeros(2).double())
    x = DenseInput(torch.ones(3, 1).double())
    problem = Problem.build(Pairs.empty(), 3, Prices(2.0, 0.0), like=network.head)
    stepped = []

    def steps(gradients: list[Tensor], iteration: int) -> None:
        stepped.append(iteration)
        network.head[0, 0] = values[iteration] ** 0.5

    network.head[0, 0] = values[0] ** 0.5
    return network, x, problem, steps, stepped


def run_script(values: list[float], *, max_iter: int, tol: float) -> list[dict]:
    network, x, problem, steps, _ = scripted(values)
    return train(network, x, problem, steps, Watch(max_iter=max_iter, tol=tol))


# When it stops


def test_flat_objective_stops_after_patience() -> None:
    history = run_script([4.0] * 200, max_iter=150, tol=1e-5)
    assert [row["iteration"] for row in history] == list(range(PATIENCE + 1))


def test_patience_counts_from_the_last_significant_change() -> None:
    history = run_script([8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0] + [1.0] * 200, max_iter=150, tol=1e-5)
    assert history[-1]["iteration"] == 7 + PATIENCE


def test_rising_objective_stops() -> None:
    assert run_script([float(k + 1) for k in range(200)], max_iter=150, tol=0.0)[-1]["iteration"] == PATIENCE


def test_what_is_significant_is_relative_and_for_tol_to_say() -> None:
    falling = [1000 * 0.999**k for k in range(200)]  # one part in a thousand at every iteration
    assert run_script(falling, max_iter=100, tol=1e-4)[-1]["iteration"] == 100
    assert run_script(falling, max_iter=100, tol=0.5)[-1]["iteration"] == PATIENCE
    assert run_script([v * 1e-6 for v in falling], max_iter=100, tol=1e-4)[-1]["iteration"] == 100
    # Less than tol at each iteration, but more than tol within the patience: small changes add up.
    assert run_script(falling, max_iter=100, tol=0.01)[-1]["iteration"] == 100


def test_any_fall_counts_without_a_tolerance() -> None:
    assert run_script([1 - 1e-9 * k for k in range(200)], max_iter=60, tol=0.0)[-1]["iteration"] == 60


@pytest.mark.parametrize("max_iter", [1, 3, PATIENCE + 5])
def test_max_iter_is_respected_and_steps_count_from_1(max_iter: int) -> None:
    network, x, problem, steps, stepped = scripted([100.0 - k for k in range(90)])
    history = train(network, x, problem, steps, Watch(max_iter=max_iter, tol=1e-5))
    assert [row["iteration"] for row in history] == list(range(max_iter + 1))
    assert stepped == list(range(1, max_iter + 1))
    assert history[-1]["objective"] == pytest.approx(100 - max_iter)  # of the network as it is left


def test_no_step_is_taken_after_the_decision_to_stop() -> None:
    network, x, problem, steps, stepped = scripted([4.0] * 90)
    history = train(network, x, problem, steps, Watch(max_iter=80, tol=1e-5))
    assert stepped == [row["iteration"] for row in history[1:]]


@pytest.mark.parametrize("n_answers", [0, 1])
def test_without_answers_no_cluster_of_the_start_is_given_up(n_answers: int) -> None:
    """Neighbours are no answers: they would put everything into one cluster."""
    network = Network([], torch.zeros(2).double(), 1.0, torch.eye(2).double(), torch.zeros(2).double())
    x = DenseInput(torch.eye(2).double().repeat(2, 1))
    pairs, neighbours = Pairs([(0, 2)], [True])[:n_answers], torch.tensor([[1], [0], [3], [2]])
    problem = Problem.build(
        pairs,
        4,
        Prices(0.0, 0.0, neighbour_weight=1.0),
        like=network.head,
        links=torch.from_numpy(neighbour_links(neighbours.numpy())),
    )

    def steps(gradients: list[Tensor], iteration: int) -> None:
        network.head_bias[0] += 0.4  # the other cluster is empty from the third step on

    history = train(network, x, problem, steps, Watch(max_iter=5, tol=0.0))
    assert [row["occupied_clusters"] for row in history] == ([2, 2, 2, 1, 1, 1] if n_answers else [2, 2, 2])
    assert len(set(network.scores(x).argmax(1).tolist())) == (1 if n_answers else 2)


@pytest.mark.parametrize("start", [4.0, float("nan")])
def test_a_broken_objective_does_not_run_for_ever(start: float) -> None:
    assert run_script([start] + [float("nan")] * 200, max_iter=150, tol=1e-5)[-1]["iteration"] == PATIENCE


# What it writes down


@BEYOND
def test_history_starts_with_the_start_and_its_terms_add_up(beyond: bool) -> None:
    network, x, problem = toy(beyond=beyond)
    start = float(plain_objective(network.parameters, network.centre, x, problem))
    seen = []
    history = train(
        network, x, problem, AdamSteps(network, 0.05, 0.01), Watch(max_iter=12, tol=0.0, on_iteration=seen.append)
    )
    assert history == seen
    assert history[0]["iteration"] == 0
    assert history[0]["objective"] == pytest.approx(start, rel=1e-12)
    end = float(plain_objective(network.parameters, network.centre, x, problem))
    assert history[-1]["objective"] == pytest.approx(end, rel=1e-12)
    for row in history:
        assert set(row) == KEYS
        assert row["objective"] == pytest.approx(sum(row[name] for name in TERMS), rel=1e-12)
        assert {type(row[name]) for name in (*TERMS, "objective", "seconds")} == {float}
        assert {type(row[name]) for name in ("iteration", "violated_pairs", "occupied_clusters")} == {int}
        assert (row["neighbours"] > 0, row["balance"] > 0) == (beyond, beyond)
        assert row["violated_pairs"] <= 20  # answers, not neighbours
    seconds = [row["seconds"] for row in history]
    assert seconds == sorted(seconds)
    assert network.activations == []  # what the last pass left behind is given back


def test_violated_pairs_and_occupied_clusters_are_counted() -> None:
    """Scores by hand: points 0 and 1 in cluster 0 by a margin of 4, point 2 in cluster 2 by 0.25, none in 1."""
    network = Network([], torch.zeros(3).double(), 1.0, torch.eye(3).double(), torch.zeros(3).double())
    x = DenseInput(torch.tensor([[5.0, 0, 1], [5.0, 0, 1], [0, -1, 0.25]]).double())
    pairs = Pairs([(0, 1), (0, 2), (1, 2)], [True, True, False])  # holds by 4; broken; holds by 0.25
    problem = Problem.build(pairs, 3, Prices(0.0, 1.0), like=network.head)
    (row, _) = train(network, x, problem, lambda gradients, iteration: None, Watch(max_iter=1, tol=0.0))
    assert row["violated_pairs"] == 2
    assert row["occupied_clusters"] == 2
    assert row["must_link"] == pytest.approx(0.5 * (0 + 1.25))
    assert row["cannot_link"] == pytest.approx(0.75)


# That it learns


@pytest.mark.parametrize("sizes", [(), (4,), (6, 4)], ids=["no layer", "one layer", "two layers"])
@pytest.mark.parametrize("solver", ["adam", "paper"])
def test_objective_falls_on_an_easy_toy(sizes: tuple[int, ...], solver: str) -> None:
    ratios, shares = [], []
    for seed in range(5):
        network, x, problem = toy(sizes, seed=seed)
        steps = AdamSteps(network, 0.05, 0.02) if solver == "adam" else PaperSteps(network, 0.02, 0.01, 200)
        history = train(network, x, problem, steps, Watch(max_iter=300, tol=0.0))
        ratios.append(history[-1]["objective"] / history[0]["objective"])
        shares.append(history[-1]["violated_pairs"] / max(history[0]["violated_pairs"], 1))
    assert max(ratios) < 0.8
    assert np.mean(ratios) < 0.5
    assert np.mean(shares) < 0.6


def table(scores: list[list[float]]) -> tuple[Network, DenseInput]:
    """A network that can give every point any scores: the head is a table of them."""
    head = torch.tensor(scores, dtype=torch.float64).T.contiguous()
    n_clusters, n_points = head.shape
    network = Network([], torch.zeros(n_points).double(), 1.0, head, torch.zeros(n_clusters).double())
    return network, DenseInput(torch.eye(n_points).double())


@pytest.mark.parametrize("price", [0.0, 1.0])
def test_a_point_goes_where_its_neighbours_are_if_that_has_a_price(price: float) -> None:
    network, x = table([[0.0, 1.0], [3.0, 0.0], [3.0, 0.0], [0.0, 3.0], [0.0, 3.0]])
    neighbours = torch.tensor([[1], [2], [0], [4], [3]])  # three, and two others
    problem = Problem.build(
        Pairs.empty(),
        5,
        Prices(0.0, 0.0, price),
        like=network.head,
        links=torch.from_numpy(neighbour_links(neighbours.numpy())),
    )
    train(network, x, problem, AdamSteps(network, 0.05, 0.0), Watch(max_iter=100, tol=0.0))
    assert network.scores(x).argmax(1).tolist() == ([0, 0, 0, 1, 1] if price else [1, 0, 0, 1, 1])


@pytest.mark.parametrize("price", [0.0, 20.0])
def test_clusters_keep_their_shares_if_that_has_a_price(price: float) -> None:
    """The head's bias is there for all, so the one answer takes them all along."""
    network, x = table([[0.5, 0.0], [0.0, 0.4]] * 10)
    prices, shares = Prices(0.001, 0.0, balance_weight=price), torch.tensor([0.5, 0.5])
    problem = Problem.build(Pairs([(0, 1)], [True]), 20, prices, like=network.head, shares=shares)
    train(network, x, problem, AdamSteps(network, 0.05, 0.0), Watch(max_iter=300, tol=0.0))
    scores = network.scores(x)
    found = scores.argmax(1)
    assert found[0] == found[1]  # the answer is heard all the same
    assert found.bincount().tolist() == ([11, 9] if price else [20])
    assert (float(((4 * scores).softmax(1).mean(0) - 0.5).abs().max()) < 0.05) == (price > 0)


# The steps


def test_paper_steps_are_equation_16() -> None:
    penalty, layer_rate, offset, iteration = 0.04, 0.3, 7, 5
    network, _, _ = toy((4, 3))
    before = [p.clone() for p in network.parameters]
    gradients = [torch.full_like(p, k + 1.0) for k, p in enumerate(before)]
    PaperSteps(network, penalty, layer_rate, offset)(gradients, iteration)
    rates = [layer_rate] * 4 + [1 / (penalty * (iteration + 1 + offset))] * 2  # γ_θ, then γ_W
    for after, was, gradient, rate in zip(network.parameters, before, gradients, rates, strict=True):
        np.testing.assert_allclose(after, was - rate * gradient, rtol=1e-12)


def test_paper_steps_without_layers_move_the_head_alone() -> None:
    network, _, _ = toy(())
    head, bias = network.head.clone(), network.head_bias.clone()
    PaperSteps(network, 0.5, 99.0, 0)([torch.ones(3, 2).double(), torch.ones(3).double()], 1)
    np.testing.assert_allclose(network.head, head - 1.0, rtol=1e-12)  # γ_W = 1/(0.5 · 2)
    np.testing.assert_allclose(network.head_bias, bias - 1.0, rtol=1e-12)


@pytest.mark.parametrize("offset", [0, 100])
def test_paper_steps_shrink_an_idle_head_by_what_the_docstring_says(offset: int) -> None:
    """With no hinge active the gradient is λW, and step i leaves (i + offset)/(i + 1 + offset) of W."""
    network, _, _ = toy(())
    before, penalty = network.head.clone(), 0.02
    steps = PaperSteps(network, penalty, 0.01, offset)
    for iteration in (1, 2, 3):
        steps([penalty * network.head, penalty * network.head_bias], iteration)
    np.testing.assert_allclose(network.head, before * (1 + offset) / (4 + offset), rtol=1e-12)


@BEYOND
@pytest.mark.parametrize("sizes", [(), (4,), (5, 4)], ids=["no layer", "one layer", "two layers"])
def test_training_with_paper_steps_equals_descent_by_autograd(sizes: tuple[int, ...], beyond: bool) -> None:
    penalty, layer_rate, offset = 0.1, 0.05, 10
    network, x, problem = toy(sizes, penalty=penalty, beyond=beyond)
    leaves, course = leaves_of(network), []
    for iteration in range(1, 8):
        value = plain_objective(leaves, network.centre, x, problem)
        course.append((float(value.detach()), leaves))
        gradients = torch.autograd.grad(value, leaves)
        head_rate = 1 / (penalty * (iteration + 1 + offset))
        rates = [layer_rate] * (len(leaves) - 2) + [head_rate] * 2
        leaves = [(p - rate * g).detach().requires_grad_() for p, g, rate in zip(leaves, gradients, rates, strict=True)]
    history = train(network, x, problem, PaperSteps(network, penalty, layer_rate, offset), Watch(max_iter=6, tol=0.0))
    np.testing.assert_allclose([row["objective"] for row in history], [value for value, _ in course], rtol=1e-9)
    for found, expected in zip(network.parameters, min(course, key=lambda step: step[0])[1], strict=True):
        np.testing.assert_allclose(found, expected.detach(), rtol=1e-9, atol=1e-12)


@BEYOND
@pytest.mark.parametrize("sizes", [(), (4,), (5, 4)], ids=["no layer", "one layer", "two layers"])
def test_training_with_adam_steps_equals_adam_on_autograd(sizes: tuple[int, ...], beyond: bool) -> None:
    head_rate, layer_rate = 0.03, 0.007
    network, x, problem = toy(sizes, beyond=beyond)
    leaves = leaves_of(network)
    rates = [layer_rate] * (len(leaves) - 2) + [head_rate] * 2
    adam = torch.optim.Adam([{"params": [p], "lr": rate} for p, rate in zip(leaves, rates, strict=True)])
    values = []
    for _ in range(7):
        adam.zero_grad()
        value = plain_objective(leaves, network.centre, x, problem)
        value.backward()
        values.append(float(value.detach()))
        adam.step()
    history = train(network, x, problem, AdamSteps(network, head_rate, layer_rate), Watch(max_iter=7, tol=0.0))
    np.testing.assert_allclose([row["objective"] for row in history[:-1]], values, rtol=1e-9)
    for found, expected in zip(network.parameters, leaves, strict=True):
        np.testing.assert_allclose(found, expected.detach(), rtol=1e-7, atol=1e-9)


# Threads


def test_small_work_gets_one_thread_and_the_number_comes_back() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with threads_for(100, 64, 32, 10):
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
        with pytest.raises(KeyError), threads_for(1, 1, 1):
            raise KeyError
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_work_with_one_large_product_keeps_its_threads() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        rows = int(WORTH_SHARING / (2 * 400 * 300)) + 1
        with threads_for(rows, 2, 400, 300, 5):  # two wide neighbours are enough
            assert torch.get_num_threads() == 2
        with threads_for(rows, 400, 2, 300, 5):  # the same widths, but never side by side
            assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


# The lowest network, and the clusters of the start


def test_the_network_that_is_left_is_the_lowest() -> None:
    network, x, problem = toy()
    history = train(network, x, problem, AdamSteps(network, 2.0, 2.0), Watch(max_iter=30, tol=0.0))
    lowest = min(row["objective"] for row in history)
    assert lowest < history[-1]["objective"]  # steps so large go up as well as down
    end = float(plain_objective(network.parameters, network.centre, x, problem))
    assert end == pytest.approx(lowest, rel=1e-12)


def test_settling_teaches_the_clusters_of_the_start() -> None:
    network, x, _ = toy()
    labels = torch.arange(3).repeat_interleave(10)
    n_steps = settle(network, x, labels, torch.ones(30, dtype=torch.float64), AdamSteps(network, 0.05, 0.05), 0.001)
    assert 0 < n_steps < SETTLE
    assert torch.equal(network.scores(x).argmax(1), labels)
    assert settle(network, x, labels, torch.ones(30, dtype=torch.float64), AdamSteps(network, 0.05, 0.05), 0.001) == 0


def test_settling_ends_when_those_that_count_have_learned() -> None:
    network, x, _ = toy()
    labels = network.scores(x).argmax(1)
    labels[:10] = (labels[:10] + 1) % 3  # which are all wrong
    weight = torch.ones(30, dtype=torch.float64)
    weight[:10] = 0
    assert settle(network, x, labels, weight * 1.5, AdamSteps(network, 0.05, 0.05), 0.001) == 0
    assert settle(network, x, labels, 3 - 3 * weight, AdamSteps(network, 0.05, 0.05), 0.001) > 0
    assert torch.equal(network.scores(x).argmax(1)[:10], labels[:10])
