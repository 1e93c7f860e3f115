"""Restricted Boltzmann machines small enough to enumerate: every sum over states is done in full."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import product
from threading import Barrier
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import expit, logsumexp
from torch import Tensor

from pairmargin.checkpoint import Keeper, State
from pairmargin.inputs import BINARY, GAUSSIAN, DenseInput
from pairmargin.rbm import RBM, Chance, Pretraining, pretrain, train_rbm
from pairmargin.team import Team

KINDS = pytest.mark.parametrize("visible", [BINARY, GAUSSIAN])
N_VISIBLE, N_HIDDEN = 4, 3
V = np.array(list(product([0.0, 1.0], repeat=N_VISIBLE)))  # (16, 4) every state of the binary visible units
H = np.array(list(product([0.0, 1.0], repeat=N_HIDDEN)))  # (8, 3) every state of the hidden units


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def make_rbm(visible: str, seed: int = 0, scale: float = 1.0) -> RBM:
    """A 4 × 3 machine with no zero anywhere."""
    rng = np.random.default_rng(seed)
    shapes = [(N_VISIBLE, N_HIDDEN), (N_VISIBLE,), (N_HIDDEN,)]
    return RBM(*(torch.tensor(rng.normal(scale=scale, size=shape)) for shape in shapes), visible)


def numbers(rbm: RBM) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """θ, a, b as they are now; training moves them in place."""
    return rbm.weight.numpy().copy(), rbm.visible_bias.numpy().copy(), rbm.hidden_bias.numpy().copy()


def binary_table(rbm: RBM) -> np.ndarray:
    """The unnormalised log probability −E(v, h) of every state of a binary machine, (16, 8)."""
    theta, a, b = numbers(rbm)
    return np.array([[a @ v + b @ h + v @ theta @ h for h in H] for v in V])


def gaussian_mixture(rbm: RBM) -> tuple[np.ndarray, np.ndarray]:
    """p(v) of a Gaussian machine as a mixture of 2^H normals of variance 1: log weights (8,) and means (8, 4).

    Completing the square in −E: −‖v − a‖²/2 + bᵀh + vᵀθh = −‖v − (a + θh)‖²/2 + bᵀh + aᵀθh + ‖θh‖²/2.
    """
    theta, a, b = numbers(rbm)
    log_weights = np.array([b @ h + a @ theta @ h + (theta @ h) @ (theta @ h) / 2 for h in H])
    return log_weights - logsumexp(log_weights), np.array([a + theta @ h for h in H])


def log_joint(rbm: RBM, v: np.ndarray) -> np.ndarray:
    """log p(v, h) for given rows v and all h, (n, 8); normalised over everything."""
    if rbm.visible == BINARY:
        table = binary_table(rbm)
        rows = (v @ [8, 4, 2, 1]).astype(int)  # the place of a state in V
        return (table - logsumexp(table))[rows]
    log_weights, means = gaussian_mixture(rbm)
    squares = ((v[:, None, :] - means[None]) ** 2).sum(2)
    return log_weights - squares / 2 - N_VISIBLE / 2 * np.log(2 * np.pi)


def log_likelihood(rbm: RBM, v: np.ndarray) -> float:
    """Exact mean log p(v)."""
    return float(logsumexp(log_joint(rbm, v), axis=1).mean())


def some_rows(visible: str, n: int = 16) -> np.ndarray:
    return V if visible == BINARY else np.random.default_rng(9).normal(scale=2, size=(n, N_VISIBLE))


def bars_and_stripes(copies: int = 1) -> np.ndarray:
    """All 2 × 2 images whose rows, or whose columns, are of one colour: 6 different ones."""
    images = [v for v in V if (v[0] == v[1] and v[2] == v[3]) or (v[0] == v[2] and v[1] == v[3])]
    assert len(images) == 6
    return np.repeat(images, copies, axis=0)


def two_clouds(seed: int, n: int = 400) -> np.ndarray:
    """A mixture of two normals of variance 1, six apart."""
    rng = np.random.default_rng(seed)
    centre = np.array([1.0, -1.0, 2.0, 0.0])
    side = rng.choice([-1, 1], size=(n, 1))
    return 0.5 + side * 3 * centre / np.linalg.norm(centre) + rng.normal(size=(n, N_VISIBLE))


def structured(n: int = 200, n_features: int = 12, seed: int = 0) -> np.ndarray:
    """Noisy copies of four binary patterns."""
    rng = np.random.default_rng(seed)
    patterns = rng.random((4, n_features)) < 0.5
    flipped = rng.random((n, n_features)) < 0.05
    return (patterns[rng.integers(4, size=n)] ^ flipped).astype(float)


# Against the enumerated machine


@KINDS
def test_hidden_mean_is_the_enumerated_conditional(visible: str) -> None:
    rbm, v = make_rbm(visible), some_rows(visible)
    joint = np.exp(log_joint(rbm, v))
    expected = joint @ H / joint.sum(1, keepdims=True)
    np.testing.assert_allclose(rbm.hidden_mean(torch.tensor(v)), expected, rtol=1e-9)


def test_visible_mean_of_binary_units_is_the_enumerated_conditional() -> None:
    rbm = make_rbm(BINARY)
    joint = np.exp(binary_table(rbm))
    expected = joint.T @ V / joint.sum(0)[:, None]
    np.testing.assert_allclose(rbm.visible_mean(torch.tensor(H)), expected, rtol=1e-9)


def test_visible_mean_of_gaussian_units_is_the_mean_of_the_mixture_component() -> None:
    rbm = make_rbm(GAUSSIAN)
    np.testing.assert_allclose(rbm.visible_mean(torch.tensor(H)), gaussian_mixture(rbm)[1], rtol=1e-9)


def test_free_energy_of_binary_units_is_the_enumerated_sum() -> None:
    rbm = make_rbm(BINARY)
    np.testing.assert_allclose(-rbm.free_energy(torch.tensor(V)), logsumexp(binary_table(rbm), axis=1), rtol=1e-9)


def test_free_energy_of_gaussian_units_is_the_log_of_the_mixture_up_to_a_constant() -> None:
    rbm, v = make_rbm(GAUSSIAN), some_rows(GAUSSIAN, n=50)
    log_p = logsumexp(log_joint(rbm, v), axis=1)
    constant = log_p + rbm.free_energy(torch.tensor(v)).numpy()  # −log Z
    np.testing.assert_allclose(constant, constant[0], rtol=1e-9)
    assert np.ptp(log_p) > 5  # the rows do differ


def test_gaussian_mixture_used_here_sums_to_one() -> None:
    """The yardstick itself: a 4-dimensional integral of p(v) by importance sampling."""
    rbm, rng = make_rbm(GAUSSIAN, scale=0.5), np.random.default_rng(0)
    v = rng.normal(scale=2.5, size=(200_000, N_VISIBLE))
    log_proposal = -(v**2).sum(1) / (2 * 2.5**2) - N_VISIBLE / 2 * np.log(2 * np.pi * 2.5**2)
    assert np.exp(logsumexp(log_joint(rbm, v), axis=1) - log_proposal).mean() == pytest.approx(1, abs=0.02)


# Sampling


def test_hidden_samples_are_on_and_off_as_often_as_asked() -> None:
    mean = torch.tensor([0.0, 0.1, 0.5, 0.9, 1.0], dtype=torch.float64).expand(20_000, -1)
    drawn = make_rbm(BINARY).sample_hidden(mean, Chance(generator(0)))
    assert set(drawn.unique().tolist()) == {0.0, 1.0}
    np.testing.assert_allclose(drawn.mean(0), mean[0], atol=0.015)
    assert drawn[:, 0].sum() == 0
    assert drawn[:, -1].sum() == len(drawn)


def test_visible_samples_are_of_their_own_kind() -> None:
    mean = torch.tensor([0.2, 0.7], dtype=torch.float64).expand(20_000, -1)
    off_or_on = make_rbm(BINARY).sample_visible(mean, Chance(generator(0)))
    assert set(off_or_on.unique().tolist()) == {0.0, 1.0}
    np.testing.assert_allclose(off_or_on.mean(0), mean[0], atol=0.015)
    real = make_rbm(GAUSSIAN).sample_visible(mean, Chance(generator(0)))
    np.testing.assert_allclose(real.mean(0), mean[0], atol=0.03)
    np.testing.assert_allclose(real.var(0), 1, atol=0.05)


def test_alternating_samples_reach_the_distribution_of_the_machine() -> None:
    rbm, source = make_rbm(BINARY, seed=1), generator(0)
    v = torch.zeros(20_000, N_VISIBLE, dtype=torch.float64)
    for _ in range(100):
        v = rbm.sample_visible(rbm.visible_mean(rbm.sample_hidden(rbm.hidden_mean(v), Chance(source))), Chance(source))
    seen = np.bincount((v.numpy() @ [8, 4, 2, 1]).astype(int), minlength=16) / len(v)
    exact = np.exp(logsumexp(binary_table(rbm), axis=1) - logsumexp(binary_table(rbm)))
    assert np.abs(seen - exact).sum() / 2 < 0.03  # total variation
    assert np.abs(1 / 16 - exact).sum() / 2 > 0.2  # all states alike would be far off


# Contrastive divergence


def chain_statistics(rbm: RBM, data: np.ndarray, cd_steps: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """⟨vh⟩, ⟨v⟩ and ⟨h⟩ at the end of the chain."""
    v, h = rbm.negative_phase(rbm.hidden_mean(torch.tensor(data)), cd_steps, Chance(generator(seed)))
    return (v.T @ h / len(v)).numpy(), v.mean(0).numpy(), h.mean(0).numpy()


@KINDS
def test_long_chains_end_with_the_statistics_of_the_machine(visible: str) -> None:
    """The last visible state is E[v | h], so the exact limit is a sum over the machine's own p(h)."""
    rbm = make_rbm(visible, seed=2, scale=0.7)
    if visible == BINARY:
        p_hidden = np.exp(logsumexp(binary_table(rbm), axis=0) - logsumexp(binary_table(rbm)))
    else:
        p_hidden = np.exp(gaussian_mixture(rbm)[0])
    v = rbm.visible_mean(torch.tensor(H)).numpy()
    h = rbm.hidden_mean(torch.tensor(v)).numpy()
    exact = (v.T @ (h * p_hidden[:, None]), p_hidden @ v, p_hidden @ h)
    start = np.zeros((20_000, N_VISIBLE))
    for seed in range(3):
        for found, expected in zip(chain_statistics(rbm, start, 40, seed), exact, strict=True):
            np.testing.assert_allclose(found, expected, atol=0.03)
    short = chain_statistics(rbm, start, 1, 0)
    assert max(np.abs(f - e).max() for f, e in zip(short, exact, strict=True)) > 0.06  # one step is not there yet


def exact_gradient(rbm: RBM, data: np.ndarray) -> list[np.ndarray]:
    """The slope of the exact mean log-likelihood in θ, a and b: ⟨·⟩_data − ⟨·⟩_machine."""
    p = np.exp(binary_table(rbm) - logsumexp(binary_table(rbm)))  # (16, 8)
    h = rbm.hidden_mean(torch.tensor(data)).numpy()
    return [data.T @ h / len(data) - V.T @ p @ H, data.mean(0) - p.sum(1) @ V, h.mean(0) - p.sum(0) @ H]


def test_exact_gradient_used_here_is_that_of_the_likelihood() -> None:
    """The yardstick itself, by finite differences in one coupling and one bias of each kind."""
    data, eps, rbm = bars_and_stripes(), 1e-5, make_rbm(BINARY)
    exact = exact_gradient(rbm, data)
    for parameter, gradient in zip((rbm.weight, rbm.visible_bias, rbm.hidden_bias), exact, strict=True):
        parameter.view(-1)[2] += eps
        above = log_likelihood(rbm, data)
        parameter.view(-1)[2] -= 2 * eps
        below = log_likelihood(rbm, data)
        parameter.view(-1)[2] += eps
        assert (above - below) / (2 * eps) == pytest.approx(gradient.ravel()[2], rel=1e-5)


def test_long_chains_come_close_to_the_gradient_of_the_exact_likelihood() -> None:
    """⟨v⟩ is unbiased; ⟨vh⟩ and ⟨h⟩ are only close, because the last visible state is a mean and not a sample."""
    data, errors = bars_and_stripes(copies=3000), {1: [], 40: []}
    for seed in range(6):
        rbm = make_rbm(BINARY, seed=seed)
        exact = exact_gradient(rbm, data)
        h = rbm.hidden_mean(torch.tensor(data)).numpy()
        seen = [data.T @ h / len(data), data.mean(0), h.mean(0)]
        for cd_steps, kept in errors.items():
            chain = chain_statistics(rbm, data, cd_steps, seed)
            found = [s - c for s, c in zip(seen, chain, strict=True)]
            a, b = (np.concatenate([part.ravel() for part in gradient]) for gradient in (found, exact))
            assert a @ b / np.linalg.norm(a) / np.linalg.norm(b) > 0.9  # the cosine
            kept.append(np.linalg.norm(a - b) / np.linalg.norm(b))
        np.testing.assert_allclose(found[1], exact[1], atol=0.02)
    assert np.mean(errors[40]) < 0.2
    assert np.mean(errors[40]) < 0.8 * np.mean(errors[1])


def test_chance_is_the_same_in_both_precisions() -> None:
    one, other = (
        RBM.random(5, 4, BINARY, generator(3), torch.zeros(1, dtype=d)) for d in (torch.float32, torch.float64)
    )
    assert (one.weight.dtype, other.weight.dtype) == (torch.float32, torch.float64)
    np.testing.assert_array_equal(one.weight, (other.weight * 100).float() * 0.01)
    assert 0.004 < float(other.weight.std()) < 0.02


def gains(make_data: Callable[[int], np.ndarray], visible: str, settings: Pretraining) -> list[float]:
    """By how much training raises the exact log-likelihood, for five seeds."""
    found = []
    for seed in range(5):
        data = make_data(seed)
        rbm = RBM.random(N_VISIBLE, N_HIDDEN, visible, generator(seed), torch.tensor(data))
        before = log_likelihood(rbm, data)
        train_rbm(rbm, DenseInput(torch.tensor(data)), settings, generator(seed))
        found.append(log_likelihood(rbm, data) - before)
    return found


def test_training_raises_the_exact_likelihood_of_bars_and_stripes() -> None:
    settings = Pretraining(epochs=150, batch_size=12)
    found = gains(lambda seed: bars_and_stripes(copies=10), BINARY, settings)
    # The start says 1/16 of every image, the best possible 1/6: log(16/6) = 0.98 is all there is to gain.
    assert np.mean(found) > 0.3
    assert max(found) < np.log(16 / 6)


def test_training_raises_the_exact_likelihood_of_two_clouds() -> None:
    found = gains(two_clouds, GAUSSIAN, Pretraining(epochs=60, batch_size=50))
    assert np.mean(found) > 2  # about 9/2 is lost by describing both clouds as one of variance 1
    assert min(found) > 1


# One update after another, by hand


def replayed(
    rbm: RBM, data: np.ndarray, settings: Pretraining, source: torch.Generator
) -> tuple[list[np.ndarray], list[float]]:
    """What training must do, one row at a time in numpy, with the same draws: parameters and errors."""

    def draw(like: np.ndarray, how: Callable[..., Tensor] = torch.rand) -> np.ndarray:
        return how(like.shape, generator=source, dtype=torch.float64).numpy()

    parameters = list(numbers(rbm))
    velocity = [np.zeros_like(p) for p in parameters]
    rate, errors = settings.rate(rbm.visible), []
    for epoch in range(settings.epochs):
        momentum = min(0.5, settings.momentum) if epoch < 5 else settings.momentum
        order, error = torch.randperm(len(data), generator=source).numpy(), 0.0
        for start in range(0, len(data), settings.batch_size):
            v0 = data[order[start : start + settings.batch_size]]
            theta, a, b = parameters
            h0 = h = expit(v0 @ theta + b)
            for k in range(settings.cd_steps):
                v = (draw(h) < h).astype(float) @ theta.T + a
                if rbm.visible == BINARY:
                    v = expit(v)
                if k < settings.cd_steps - 1:
                    v = (draw(v) < v).astype(float) if rbm.visible == BINARY else v + draw(v, torch.randn)
                h = expit(v @ theta + b)
            ascent = [np.zeros_like(p) for p in parameters]
            for row in range(len(v0)):
                ascent[0] += (np.outer(v0[row], h0[row]) - np.outer(v[row], h[row])) / len(v0)
                ascent[1] += (v0[row] - v[row]) / len(v0)
                ascent[2] += (h0[row] - h[row]) / len(v0)
                error += ((v0[row] - v[row]) ** 2).sum()
            ascent[0] -= settings.weight_decay * theta  # couplings decay, biases do not
            velocity = [momentum * old + rate * new for old, new in zip(velocity, ascent, strict=True)]
            parameters = [p + change for p, change in zip(parameters, velocity, strict=True)]
        errors.append(error / data.size)
    return parameters, errors


@pytest.mark.parametrize(
    "settings",
    [
        Pretraining(epochs=1, batch_size=5),
        Pretraining(epochs=8, batch_size=2, momentum=0.8, weight_decay=0.1),  # a last batch of one row
        Pretraining(epochs=8, batch_size=2, momentum=0.2, weight_decay=0.0, learning_rate=0.3),
        Pretraining(epochs=2, batch_size=3, cd_steps=3),
    ],
    ids=["one step", "momentum and decay", "low momentum", "CD-3"],
)
@KINDS
def test_updates_are_those_worked_out_row_by_row(visible: str, settings: Pretraining) -> None:
    rbm = make_rbm(visible, seed=5)
    data = bars_and_stripes()[:5] if visible == BINARY else two_clouds(0, n=5)
    expected, errors = replayed(rbm, data, settings, generator(11))
    history = train_rbm(rbm, DenseInput(torch.tensor(data)), settings, generator(11))
    for found, wanted in zip(numbers(rbm), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose([row["reconstruction_error"] for row in history], errors, rtol=1e-9)


def test_training_leaves_the_data_alone_even_in_one_batch() -> None:
    data = torch.tensor(bars_and_stripes())
    before = data.clone()
    train_rbm(make_rbm(BINARY), DenseInput(data), Pretraining(epochs=3, batch_size=1000), generator(0))
    assert torch.equal(data, before)


def test_weight_decay_alone_shrinks_the_couplings() -> None:
    """With all decay and no slope from the data to speak of, couplings shrink by 1 − rate · decay at every update."""
    rbm = RBM(torch.ones(4, 3, dtype=torch.float64), torch.zeros(4).double(), torch.full((3,), -500.0).double())
    settings = Pretraining(epochs=3, batch_size=6, learning_rate=0.1, momentum=0.0, weight_decay=0.5)
    train_rbm(rbm, DenseInput(torch.tensor(bars_and_stripes())), settings, generator(0))
    np.testing.assert_allclose(rbm.weight, (1 - 0.1 * 0.5) ** 3, rtol=1e-12)  # hidden units are never on


def test_rate_follows_the_kind_of_units_unless_given() -> None:
    assert (Pretraining().rate(BINARY), Pretraining().rate(GAUSSIAN)) == (0.1, 0.01)
    assert Pretraining(learning_rate=0.7).rate(BINARY) == Pretraining(learning_rate=0.7).rate(GAUSSIAN) == 0.7


def test_seconds_are_those_of_the_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10.0, 10.5, 20.0, 22.0])
    monkeypatch.setattr("pairmargin.rbm.time", SimpleNamespace(perf_counter=lambda: next(clock)))
    settings = Pretraining(epochs=2)
    history = train_rbm(make_rbm(BINARY), DenseInput(torch.tensor(bars_and_stripes())), settings, generator(0))
    assert [row["seconds"] for row in history] == [0.5, 2.0]


# Stopped, and in a team


class MemoryKeeper(Keeper):
    """Keeps everything in memory, every third epoch."""

    def __init__(self) -> None:
        self.states: dict[int, State] = {}

    def load(self) -> State | None:
        return deepcopy(self.states[max(self.states)]) if self.states else None

    def is_due(self, iteration: int) -> bool:
        return iteration % 3 == 0

    def save(self, tensors: Mapping[str, Sequence[Tensor]], facts: dict[str, Any]) -> None:
        self.states[len(facts["history"])] = deepcopy(
            State({name: list(each) for name, each in tensors.items()}, facts)
        )


@KINDS
def test_training_that_was_stopped_goes_on_to_the_same_bits(visible: str) -> None:
    data, settings = (
        DenseInput(torch.tensor(two_clouds(0, n=7))),
        Pretraining(epochs=8, batch_size=3, learning_rate=0.1),
    )
    whole, kept = make_rbm(visible), MemoryKeeper()
    history = train_rbm(whole, data, settings, generator(3), keeper=kept)
    assert list(kept.states) == [3, 6, 8]  # when it is due, and at the end
    for stopped_at in (3, 6, 8):
        again, source, keeper = make_rbm(visible, seed=1), generator(4), MemoryKeeper()
        keeper.states = {stopped_at: kept.states[stopped_at]}
        seen: list[dict[str, Any]] = []
        rows = train_rbm(again, data, settings, source, seen.append, keeper=keeper)
        assert [row["epoch"] for row in seen] == list(range(stopped_at + 1, 9))  # what is done is not done again
        assert [row["reconstruction_error"] for row in rows] == [row["reconstruction_error"] for row in history]
        for found, wanted in zip(numbers(again), numbers(whole), strict=True):
            np.testing.assert_array_equal(found, wanted)


@dataclass(frozen=True)
class ThreadTeam(Team):
    """A member of a team that works in threads; what they add up passes through a table that all can see."""

    table: dict[int, list[Tensor]] = field(default_factory=dict)
    barrier: Barrier | None = None

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        assert self.barrier is not None
        self.table[self.rank] = [tensor.clone() for tensor in tensors]
        self.barrier.wait(60)
        for tensor, parts in zip(
            tensors, zip(*(self.table[rank] for rank in range(self.size)), strict=True), strict=True
        ):
            tensor.copy_(sum(parts))
        self.barrier.wait(60)


@pytest.mark.parametrize(("size", "cd_steps"), [(2, 1), (3, 2)])
@KINDS
def test_a_team_takes_the_steps_that_one_alone_would(visible: str, size: int, cd_steps: int) -> None:
    data = DenseInput(torch.tensor(two_clouds(0, n=11)))
    settings = Pretraining(epochs=7, batch_size=4, cd_steps=cd_steps, learning_rate=0.1, weight_decay=0.1)
    alone = make_rbm(visible)
    expected = train_rbm(alone, data, settings, generator(2))
    table: dict[int, list[Tensor]] = {}
    barrier = Barrier(size)

    def work(rank: int) -> tuple[RBM, list[dict[str, Any]]]:
        rbm, team = make_rbm(visible), ThreadTeam(rank, size, table, barrier)
        return rbm, train_rbm(rbm, data, settings, generator(2), team=team)

    with ThreadPoolExecutor(size) as pool:
        members = list(pool.map(work, range(size)))
    for rbm, history in members:
        for found, wanted in zip(numbers(rbm), numbers(alone), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
        errors = [row["reconstruction_error"] for row in history]
        np.testing.assert_allclose(errors, [row["reconstruction_error"] for row in expected], rtol=1e-9)


# The stack


def run_stack(sizes: tuple[int, ...], seed: int = 0, visible: str = BINARY, **settings):
    data = torch.tensor(structured())
    return pretrain(DenseInput(data), sizes, visible, Pretraining(**settings), generator(seed), data)


def test_stack_of_three_has_the_shapes_and_the_history_it_should() -> None:
    seen = []
    data = torch.tensor(structured())
    layers, history = pretrain(
        DenseInput(data), (8, 6, 5), BINARY, Pretraining(epochs=4), generator(0), data, seen.append
    )
    assert [tuple(layer.weight.shape) for layer in layers] == [(12, 8), (8, 6), (6, 5)]
    assert [tuple(layer.bias.shape) for layer in layers] == [(8,), (6,), (5,)]
    assert [(row["layer"], row["epoch"]) for row in history] == [(k, e) for k in (1, 2, 3) for e in (1, 2, 3, 4)]
    assert all(set(row) == {"layer", "epoch", "reconstruction_error", "seconds"} for row in history)
    assert seen == history


@KINDS
def test_stack_is_one_machine_on_the_hidden_means_of_the_other_and_binary_above(visible: str) -> None:
    data, settings, source = torch.tensor(structured()), Pretraining(epochs=3), generator(4)
    layers, _ = pretrain(DenseInput(data), (8, 6, 5), visible, settings, generator(4), data)
    below = data
    for layer, kind in zip(layers, (visible, BINARY, BINARY), strict=True):
        rbm = RBM.random(below.shape[1], len(layer.bias), kind, source, data)
        train_rbm(rbm, DenseInput(below), settings, source)
        np.testing.assert_allclose(layer.weight, rbm.weight, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(layer.bias, rbm.hidden_bias, rtol=1e-9, atol=1e-12)
        below = rbm.hidden_mean(below)


def test_reconstruction_error_falls_in_every_layer_on_structured_data() -> None:
    ratios = []
    for seed in range(3):
        _, history = run_stack((8, 6, 5), seed=seed, epochs=40, batch_size=20)
        for depth in (1, 2, 3):
            errors = [row["reconstruction_error"] for row in history if row["layer"] == depth]
            ratios.append(errors[-1] / errors[0])
    assert max(ratios) < 0.9
    assert np.mean(ratios) < 0.6


def test_same_seed_same_bits_and_another_seed_other_bits() -> None:
    torch.manual_seed(0)
    (first, _), (again, _), (other, _) = (run_stack((8, 6, 5), seed=s, epochs=3) for s in (1, 1, 2))
    for one, two in zip(first, again, strict=True):
        assert torch.equal(one.weight, two.weight)
        assert torch.equal(one.bias, two.bias)
    assert not torch.equal(first[0].weight, other[0].weight)


def test_global_generators_stay_untouched() -> None:
    torch.manual_seed(0)
    before, numpy_before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    run_stack((8, 6), epochs=2, cd_steps=2)
    assert torch.equal(torch.get_rng_state(), before)
    assert (np.random.get_state()[1] == numpy_before).all()  # noqa: NPY002


def test_stack_of_none_is_empty() -> None:
    assert run_stack(()) == ([], [])


def test_no_epochs_leave_small_random_couplings_and_no_biases() -> None:
    layers, history = run_stack((50,), epochs=0)
    assert history == []
    assert not layers[0].bias.any()
    assert float(layers[0].weight.std()) == pytest.approx(0.01, rel=0.2)


def test_start_and_training_follow_the_dtype() -> None:
    data = torch.tensor(structured(), dtype=torch.float32)
    layers, _ = pretrain(DenseInput(data), (8, 6), BINARY, Pretraining(epochs=1), generator(0), data)
    assert {t.dtype for layer in layers for t in (layer.weight, layer.bias)} == {torch.float32}
