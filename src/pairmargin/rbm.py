"""Restricted Boltzmann machines, contrastive divergence, and the greedy stack that starts the network.

======  ============  ======================================================
symbol  name here     meaning
======  ============  ======================================================
v       visible       a row of data, or the units below
h       hidden        the units that are learned
θ       weight        (visible, hidden) couplings; no coupling inside a layer
a, b    …_bias        visible and hidden biases
======  ============  ======================================================

Energies: binary visible units E = −aᵀv − bᵀh − vᵀθh; Gaussian ones, of variance 1, E = ‖v − a‖²/2 − bᵀh − vᵀθh.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from .checkpoint import NOTHING_KEPT, Keeper
from .inputs import BINARY, Rows
from .network import Layer
from .team import ALONE, Team


@dataclass(frozen=True)
class Chance:
    """Random numbers for the rows of a batch, of which a member of a team has its share.

    Everyone draws for the whole batch, so that nothing depends on how many they are.
    """

    generator: torch.Generator
    team: Team = ALONE
    n_rows: int = 0  # of the whole batch; a team needs to know

    def draw(self, what: Callable[..., Tensor], like: Tensor) -> Tensor:
        """Numbers of the form of ``like``, which are the member's own rows."""
        n_rows = len(like) if self.team.size == 1 else self.n_rows
        drawn = what(n_rows, like.shape[1], generator=self.generator, dtype=like.dtype, device=like.device)
        return drawn if self.team.size == 1 else drawn[self.team.share(n_rows)]


@dataclass
class RBM:
    """One restricted Boltzmann machine."""

    weight: Tensor  # (visible, hidden)
    visible_bias: Tensor  # (visible,)
    hidden_bias: Tensor  # (hidden,)
    visible: str = BINARY

    @classmethod
    def random(cls, n_visible: int, n_hidden: int, visible: str, generator: torch.Generator, like: Tensor) -> RBM:
        """Small random couplings and no biases."""
        drawn = torch.randn(n_visible, n_hidden, generator=generator, dtype=torch.float64, device=generator.device)
        return cls(drawn.to(like) * 0.01, like.new_zeros(n_visible), like.new_zeros(n_hidden), visible)

    def hidden_mean(self, visible: Tensor) -> Tensor:
        """p(h = 1 | v)."""
        return torch.addmm(self.hidden_bias, visible, self.weight).sigmoid_()

    def visible_mean(self, hidden: Tensor) -> Tensor:
        """E[v | h], which for binary units is p(v = 1 | h)."""
        drive = torch.addmm(self.visible_bias, hidden, self.weight.T)
        return drive.sigmoid_() if self.visible == BINARY else drive

    def free_energy(self, visible: Tensor) -> Tensor:
        """−log of the unnormalised probability of v, the hidden units summed out: what tests go by."""
        hidden = softplus(torch.addmm(self.hidden_bias, visible, self.weight)).sum(1)
        if self.visible == BINARY:
            return -(visible @ self.visible_bias) - hidden
        return 0.5 * (visible - self.visible_bias).square().sum(1) - hidden

    def sample_hidden(self, mean: Tensor, chance: Chance) -> Tensor:
        """Draw binary hidden states."""
        return chance.draw(torch.rand, mean).lt_(mean)

    def sample_visible(self, mean: Tensor, chance: Chance) -> Tensor:
        """Draw visible states of the layer's own kind."""
        if self.visible == BINARY:
            return self.sample_hidden(mean, chance)
        return mean + chance.draw(torch.randn, mean)

    def negative_phase(self, hidden_mean: Tensor, cd_steps: int, chance: Chance) -> tuple[Tensor, Tensor]:
        """Run the chain for CD-k; the last visible and hidden states are means.

        Differs from the textbook: a mean in place of the last visible sample biases the step (a Gaussian machine then
        learns more than its unit variance would allow), but gives much better codes: docs/design/reconstruction.md.
        """
        for step in range(cd_steps):
            visible = self.visible_mean(self.sample_hidden(hidden_mean, chance))
            if step < cd_steps - 1:
                visible = self.sample_visible(visible, chance)
            hidden_mean = self.hidden_mean(visible)
        return visible, hidden_mean


@dataclass(frozen=True)
class Pretraining:
    """How an RBM is trained."""

    epochs: int = 50
    batch_size: int = 100
    learning_rate: float | None = None  # None: 0.1 for binary, 0.01 for Gaussian visible units
    cd_steps: int = 1
    momentum: float = 0.9
    weight_decay: float = 2e-4

    def rate(self, visible: str) -> float:
        """The learning rate for a kind of visible units."""
        if self.learning_rate is not None:
            return self.learning_rate
        return 0.1 if visible == BINARY else 0.01


def train_rbm(
    rbm: RBM,
    data: Rows,
    settings: Pretraining,
    generator: torch.Generator,
    on_epoch: Callable[[dict[str, Any]], object] | None = None,
    team: Team = ALONE,
    keeper: Keeper = NOTHING_KEPT,
) -> list[dict[str, Any]]:
    """Raise the likelihood of the data by contrastive divergence, in place; one row of history for each epoch.

    Of every batch a member of a team sees its share; all take the step of the whole batch.
    """
    n = data.shape[0]
    batch_size = min(settings.batch_size, n)
    rate = settings.rate(rbm.visible)
    parameters = (rbm.weight, rbm.visible_bias, rbm.hidden_bias)
    velocity = tuple(torch.zeros_like(p) for p in parameters)
    history: list[dict[str, Any]] = []
    state = keeper.load()
    if state is not None:
        history = state.facts["history"]
        generator.set_state(state.tensors["chance"][0])
        for mine, kept in zip(parameters + velocity, state.tensors["rbm"], strict=True):
            mine.copy_(kept)
    for epoch in range(len(history), settings.epochs):
        began = time.perf_counter()
        momentum = min(0.5, settings.momentum) if epoch < 5 else settings.momentum  # Hinton's practical guide, 9.1
        error = rbm.weight.new_zeros(())
        for first, (_, v0) in zip(range(0, n, batch_size), data.batches(batch_size, generator, team), strict=True):
            n_rows = min(batch_size, n - first)
            h0 = rbm.hidden_mean(v0)
            v1, h1 = rbm.negative_phase(h0, settings.cd_steps, Chance(generator, team, n_rows))
            keep, pace = momentum / team.size, rate / n_rows  # what the team has is added up
            # ⟨v h⟩_data − ⟨v h⟩_chain, added straight into the velocity
            velocity[0].addmm_(v0.T, h0, beta=keep, alpha=pace).addmm_(v1.T, h1, alpha=-pace)
            difference = v0.sub_(v1)
            velocity[1].mul_(keep).add_(difference.sum(0), alpha=pace)
            velocity[2].mul_(keep).add_(h0.sub_(h1).sum(0), alpha=pace)
            team.add_up(velocity)
            velocity[0].add_(rbm.weight, alpha=-rate * settings.weight_decay)
            for parameter, change in zip(parameters, velocity, strict=True):
                parameter.add_(change)
            error += difference.square_().sum()
        team.add_up([error])
        row = {
            "epoch": epoch + 1,
            "reconstruction_error": float(error) / (n * data.shape[1]),
            "seconds": time.perf_counter() - began,
        }
        history.append(row)
        if on_epoch is not None:
            on_epoch(row)
        if keeper.is_due(epoch + 1) or epoch + 1 == settings.epochs:
            keeper.save({"rbm": parameters + velocity, "chance": [generator.get_state()]}, {"history": history})
    return history


def pretrain(
    data: Rows,
    sizes: tuple[int, ...],
    visible: str,
    settings: Pretraining,
    generator: torch.Generator,
    like: Tensor,
    on_epoch: Callable[[dict[str, Any]], object] | None = None,
    team: Team = ALONE,
    keeper_of: Callable[[str], Keeper] = lambda stage: NOTHING_KEPT,
) -> tuple[list[Layer], list[dict[str, Any]]]:
    """Train a stack of RBMs greedily, each on the hidden means of the one below; the upper ones are binary."""
    layers: list[Layer] = []
    history: list[dict[str, Any]] = []
    for depth, size in enumerate(sizes, start=1):
        rbm = RBM.random(data.shape[1], size, visible, generator, like)

        def report(row: dict[str, Any], depth: int = depth) -> None:
            row["layer"] = depth
            if on_epoch is not None:
                on_epoch(row)

        history += train_rbm(rbm, data, settings, generator, report, team, keeper_of(f"layer-{depth}"))
        layers.append(Layer(rbm.weight, rbm.hidden_bias))
        if depth < len(sizes):
            data, visible = data.above(rbm.weight, rbm.hidden_bias), BINARY
    return layers, history
