"""Algorithm 1: project, score, find what is violated, step; until the objective is flat."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .inputs import Input
from .network import Network
from .objective import Problem, Terms, label_subgradient, objective_and_subgradient

History = list[dict[str, Any]]
Steps = Callable[[list[Tensor], int], None]  # moves the parameters, given their gradients and the iteration
PATIENCE = 20  # iterations without a significant change of the objective, before line 5 of Algorithm 1 stops

SETTLE = 200  # steps to learn the clusters of the start
SETTLED = 0.995  # share of the points in their cluster that is enough


class PaperSteps:
    """Subgradient descent with the paper's step sizes, eq. (16).

    γ_W = 1/(λ(i + 1)) shrinks W by the factor i/(i + 1) before anything is learned: from i = 0 it erases the start.
    Differs from the paper: counting goes on from ``offset``, as if the start were the work of so many iterations.
    """

    def __init__(self, network: Network, weight_penalty: float, layer_rate: float, offset: int) -> None:
        self.network, self.weight_penalty, self.layer_rate, self.offset = network, weight_penalty, layer_rate, offset

    def __call__(self, gradients: list[Tensor], iteration: int) -> None:
        """Move every parameter once; ``iteration`` counts from 1 as in Algorithm 1."""
        head_rate = 1 / (self.weight_penalty * (iteration + 1 + self.offset))  # γ_W
        *layers, head, head_bias = self.network.parameters
        for parameter, gradient in zip(layers, gradients, strict=False):
            parameter.sub_(gradient, alpha=self.layer_rate)  # γ_θ
        head.sub_(gradients[-2], alpha=head_rate)
        head_bias.sub_(gradients[-1], alpha=head_rate)


class AdamSteps:
    """Adam (Kingma & Ba 2015), with one rate for the head and a smaller one for the layers.

    The rates rise from 0 over the first ``ramp`` iterations: Adam's first steps are of full size whatever the slope,
    and may empty a cluster. Written out because `torch.optim` brings in PyTorch's compiler, which adds seconds to the
    first fit.
    """

    def __init__(self, network: Network, head_rate: float, layer_rate: float, ramp: int = 1) -> None:
        self.parameters, self.ramp = network.parameters, ramp
        self.rates = [layer_rate] * (len(self.parameters) - 2) + [head_rate] * 2
        self.means = [torch.zeros_like(p) for p in self.parameters]
        self.squares = [torch.zeros_like(p) for p in self.parameters]

    def __call__(self, gradients: list[Tensor], iteration: int) -> None:
        """Move every parameter once; ``iteration`` counts from 1."""
        pace = min(iteration / self.ramp, 1)
        unbias_mean, unbias_square = 1 - 0.9**iteration, 1 - 0.999**iteration
        for parameter, gradient, rate, mean, square in zip(
            self.parameters, gradients, self.rates, self.means, self.squares, strict=True
        ):
            mean.lerp_(gradient, 0.1)
            square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
            size = (square / unbias_square).sqrt_().add_(1e-8)
            parameter.addcdiv_(mean, size, value=-pace * rate / unbias_mean)


def train(
    network: Network,
    x: Input,
    problem: Problem,
    steps: Steps,
    *,
    max_iter: int,
    tol: float,
    on_iteration: Callable[[dict[str, Any]], object] | None = None,
) -> History:
    """Run Algorithm 1 in place; one row for the start (iteration 0) and one for every iteration after it.

    Neither kind of step goes downhill every time, so the network ends as it was where the objective was lowest.
    Training ends early if ``on_iteration``, which is given every row, returns True.
    """
    history: History = []
    began = time.perf_counter()
    lowest, last_change = torch.inf, 0
    best = Best(network)
    for iteration in range(max_iter + 1):
        scores = network.scores(x)  # line 6
        terms, violated, step = objective_and_subgradient(scores, problem, network.squared_norm)  # line 7
        row = _row(iteration, terms, violated, scores, time.perf_counter() - began)
        if not problem.n_answers and history and row["occupied_clusters"] < history[0]["occupied_clusters"]:
            break  # with no answers, only the start knows how many clusters there are
        history.append(row)
        best.look(row["objective"])
        if on_iteration is not None and on_iteration(row) is True:
            break
        if row["objective"] < lowest - tol * abs(row["objective"]):
            lowest, last_change = row["objective"], iteration
        if iteration == max_iter or iteration - last_change >= PATIENCE:  # lines 4 and 5
            break
        steps(network.gradients(x, step, problem.prices.weight_penalty), iteration + 1)  # lines 8 to 11
    network.activations.clear()
    best.restore()
    return history


class Best:
    """A network's parameters where its objective was lowest so far."""

    def __init__(self, network: Network) -> None:
        self.parameters = network.parameters
        self.copies = [torch.empty_like(p) for p in self.parameters]
        self.objective = torch.inf

    def look(self, objective: float) -> None:
        """Copy the parameters if this is the lowest."""
        if objective < self.objective:
            self.objective = objective
            for copy, parameter in zip(self.copies, self.parameters, strict=True):
                copy.copy_(parameter)

    def restore(self) -> None:
        """Put the parameters back, unless no objective was a number."""
        if self.objective < torch.inf:
            for copy, parameter in zip(self.copies, self.parameters, strict=True):
                parameter.copy_(copy)


def settle(network: Network, x: Input, labels: Tensor, steps: Steps, weight_penalty: float) -> int:
    """Let the whole network learn the clusters of the start, in place; the number of steps that took.

    A head that is the nearest mean of every cluster knows only round ones. It stops early on purpose: what the layers
    cannot learn in so many steps may well be wrong.
    """
    for iteration in range(SETTLE):
        scores = network.scores(x)
        if float((scores.argmax(1) == labels).double().mean()) >= SETTLED:
            return iteration
        steps(network.gradients(x, label_subgradient(scores, labels), weight_penalty), iteration + 1)
    return SETTLE


def _row(iteration: int, terms: Terms, violated: Tensor, scores: Tensor, seconds: float) -> dict[str, Any]:
    """What the history says of one iteration."""
    return {
        "iteration": iteration,
        "objective": float(terms.total),
        "must_link": float(terms.must_link),
        "cannot_link": float(terms.cannot_link),
        "free": float(terms.free),
        "norm": float(terms.norm),
        "neighbours": float(terms.neighbours),
        "balance": float(terms.balance),
        "violated_pairs": int(violated.sum()),
        "occupied_clusters": int((torch.bincount(scores.argmax(1)) > 0).sum()),
        "seconds": seconds,
    }
