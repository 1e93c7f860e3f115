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

from .inputs import BINARY, DenseInput, Input
from .network import Layer


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
        weight = torch.randn(n_visible, n_hidden, generator=generator, dtype=torch.float64).to(like) * 0.01
        return cls(weight, like.new_zeros(n_visible), like.new_zeros(n_hidden), visible)

    def hidden_mean(self, visible: Tensor) -> Tensor:
        """p(h = 1 | v)."""
        return torch.addmm(self.hidden_bias, visible, self.weight).sigmoid_()

    def visible_mean(self, hidden: Tensor) -> Tensor:
        """E[v | h], which for binary units is p(v = 1 | h)."""
        drive = torch.addmm(self.visible_bias, hidden, self.weight.T)
        return drive.sigmoid_() if self.visible == BINARY else drive

    def free_energy(self, visible: Tensor) -> Tensor:
        """−log of the unnormalised probability of v, the hidden units summed out."""
        hidden = softplus(torch.addmm(self.hidden_bias, visible, self.weight)).sum(1)
        if self.visible == BINARY:
            return -(visible @ self.visible_bias) - hidden
        return 0.5 * (visible - self.visible_bias).square().sum(1) - hidden

    def sample_hidden(self, mean: Tensor, generator: torch.Generator) -> Tensor:
        """Draw binary hidden states."""
        return torch.rand(mean.shape, generator=generator, dtype=mean.dtype, device=mean.device).lt(mean).to(mean.dtype)

    def sample_visible(self, mean: Tensor, generator: torch.Generator) -> Tensor:
        """Draw visible states of the layer's own kind."""
        if self.visible == BINARY:
            return self.sample_hidden(mean, generator)
        return mean + torch.randn(mean.shape, generator=generator, dtype=mean.dtype, device=mean.device)

    def negative_phase(self, hidden_mean: Tensor, cd_steps: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Run the chain for CD-k; the last visible and hidden states are means.

        Differs from the textbook: a mean in place of the last visible sample biases the step (a Gaussian machine then
        learns more than its unit variance would allow), but gives much better codes: docs/design/reconstruction.md.
        """
        for step in range(cd_steps):
            visible = self.visible_mean(self.sample_hidden(hidden_mean, generator))
            if step < cd_steps - 1:
                visible = self.sample_visible(visible, generator)
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
    data: Input,
    settings: Pretraining,
    generator: torch.Generator,
    on_epoch: Callable[[dict[str, Any]], object] | None = None,
) -> list[dict[str, Any]]:
    """Raise the likelihood of the data by contrastive divergence, in place; one row of history for each epoch."""
    n = data.shape[0]
    batch_size = min(settings.batch_size, n)
    rate = settings.rate(rbm.visible)
    parameters = (rbm.weight, rbm.visible_bias, rbm.hidden_bias)
    velocity = tuple(torch.zeros_like(p) for p in parameters)
    history = []
    for epoch in range(settings.epochs):
        began = time.perf_counter()
        momentum = min(0.5, settings.momentum) if epoch < 5 else settings.momentum  # Hinton's practical guide, 9.1
        order = torch.randperm(n, generator=generator)
        error = rbm.weight.new_zeros(())
        for batch in torch.split(order, batch_size):
            v0 = data.rows(batch)
            h0 = rbm.hidden_mean(v0)
            v1, h1 = rbm.negative_phase(h0, settings.cd_steps, generator)
            pace = rate / len(v0)
            # ⟨v h⟩_data − ⟨v h⟩_chain, added straight into the velocity
            velocity[0].addmm_(v0.T, h0, beta=momentum, alpha=pace).addmm_(v1.T, h1, alpha=-pace)
            velocity[0].add_(rbm.weight, alpha=-rate * settings.weight_decay)
            difference = v0.sub_(v1)
            velocity[1].mul_(momentum).add_(difference.sum(0), alpha=pace)
            velocity[2].mul_(momentum).add_(h0.sub_(h1).sum(0), alpha=pace)
            for parameter, change in zip(parameters, velocity, strict=True):
                parameter.add_(change)
            error += difference.square_().sum()
        row = {
            "epoch": epoch + 1,
            "reconstruction_error": float(error) / (n * data.shape[1]),
            "seconds": time.perf_counter() - began,
        }
        history.append(row)
        if on_epoch is not None:
            on_epoch(row)
    return history


def pretrain(
    data: Input,
    sizes: tuple[int, ...],
    visible: str,
    settings: Pretraining,
    generator: torch.Generator,
    like: Tensor,
    on_epoch: Callable[[dict[str, Any]], object] | None = None,
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

        history += train_rbm(rbm, data, settings, generator, report)
        layers.append(Layer(rbm.weight, rbm.hidden_bias))
        data = DenseInput(data.times(rbm.weight, rbm.hidden_bias).sigmoid_())
        visible = BINARY
    return layers, history
