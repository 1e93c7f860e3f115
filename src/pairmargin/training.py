"""Algorithm 1: project, score, find what is violated, step; until the objective is flat."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from .batches import Batches
from .checkpoint import NOTHING_KEPT, Keeper, State
from .inputs import Input
from .network import Network
from .objective import Problem, Terms, label_subgradient, objective_and_subgradient
from .team import ALONE, Team

History = list[dict[str, Any]]
PATIENT_PASSES = 3  # over all the data without a significant change, when there is a step for every batch
PATIENCE = 20  # iterations without a significant change of the objective, before line 5 of Algorithm 1 stops

SETTLE = 200  # steps to learn given clusters
SETTLED = 0.995  # share of the points in their cluster that is enough


class Steps(Protocol):
    """A way to move the parameters, given their gradients and the iteration."""

    @property
    def tensors(self) -> list[Tensor]: ...

    def __call__(self, gradients: list[Tensor], iteration: int) -> None: ...


class PaperSteps:
    """Subgradient descent with the paper's step sizes, eq. (16).

    γ_W = 1/(λ(i + 1)) shrinks W by the factor i/(i + 1) before anything is learned: from i = 0 it erases the start.
    Differs from the paper: counting goes on from ``offset``, as if the start were the work of so many iterations.
    """

    def __init__(self, network: Network, weight_penalty: float, layer_rate: float, offset: int) -> None:
        self.network, self.weight_penalty, self.layer_rate, self.offset = network, weight_penalty, layer_rate, offset

    @property
    def tensors(self) -> list[Tensor]:
        """What is remembered from step to step."""
        return []

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

    @property
    def tensors(self) -> list[Tensor]:
        """What is remembered from step to step."""
        return [*self.means, *self.squares]

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


@dataclass(frozen=True)
class Watch:
    """When training ends, who is told of every iteration, who takes part, and what keeps it."""

    max_iter: int
    tol: float  # share of itself that the objective must fall by, now and then
    on_iteration: Callable[[dict[str, Any]], object] | None = None  # is given every row; True ends training
    team: Team = ALONE
    keeper: Keeper = NOTHING_KEPT


def train_in_batches(network: Network, batches: Batches, steps: Steps, watch: Watch) -> History:
    """Algorithm 1 in place with a step for every batch; one row for every pass over the data.

    A row has the means of what its batches cost, each before its step. The network ends as it was after the pass that
    cost least.
    """
    began, team = time.perf_counter(), watch.team
    course = Course(network, steps, watch, PATIENT_PASSES, batches.generator)
    n_answers = batches.problem.n_answers
    is_known = course.history or (n_answers and watch.max_iter)  # else it is looked at first, without steps
    for epoch in range(course.iteration + 1 if is_known else 0, watch.max_iter + 1):
        rows: History = []
        occupied = torch.zeros(len(network.head), dtype=torch.long, device="cpu")
        for x, problem in batches:
            scores = network.scores(x)
            terms, violated, step = objective_and_subgradient(scores, problem, network.squared_norm)
            rows.append(_row(epoch, terms, violated, scores, 0.0))
            occupied += torch.bincount(scores.argmax(1), minlength=len(occupied)).cpu()
            if epoch:
                course.n_steps += 1
                steps(_gradients(network, x, step, problem, team), course.n_steps)
        row = _pass(rows, occupied, time.perf_counter() - began, team)
        if course.gives_up(row, n_answers) or course.is_over(row):
            break
        course.keep()
    return course.end()


def _gradients(network: Network, x: Input, step: Tensor, problem: Problem, team: Team) -> list[Tensor]:
    """The gradients of the whole, from what the members of a team have of it."""
    gradients = network.gradients(x, step, problem.prices.weight_penalty / team.size)
    team.add_up(gradients)
    return gradients


def _pass(rows: History, occupied: Tensor, seconds: float, team: Team) -> dict[str, Any]:
    """What the history says of one pass over the data: means over the batches, and the number of violated answers."""
    names = [name for name in rows[0] if name not in ("iteration", "norm", "seconds", "occupied_clusters")]
    sums = torch.tensor([sum(row[name] for row in rows) for name in names], dtype=torch.float64, device="cpu")
    team.add_up([sums, occupied])
    total = dict(zip(names, sums.tolist(), strict=True))
    norm = sum(row["norm"] for row in rows) / len(rows)
    means = {name: total[name] / len(rows) for name in names}
    objective = means["objective"] - (team.size - 1) * norm  # everyone has counted the norm
    return {
        "iteration": rows[0]["iteration"],
        **means,
        "objective": objective,
        "norm": norm,
        "violated_pairs": int(total["violated_pairs"]),
        "occupied_clusters": int((occupied > 0).sum()),
        "seconds": seconds,
    }


def train(network: Network, x: Input, problem: Problem, steps: Steps, watch: Watch) -> History:
    """Run Algorithm 1 in place; one row for the start (iteration 0) and one for every iteration after it.

    Neither kind of step goes downhill every time, so the network ends as it was where the objective was lowest.
    A member of a team projects its own rows and carries their step back; what is between, which costs little, everyone
    does for all rows.
    """
    began, team = time.perf_counter(), watch.team
    course = Course(network, steps, watch, PATIENCE)
    own = team.share(x.shape[0])
    part = x if team.size == 1 else x.subset(torch.arange(own.start, own.stop, device="cpu"))
    for iteration in range(course.n_steps, watch.max_iter + 1):
        scores = team.put_together(network.scores(part), x.shape[0])  # line 6
        terms, violated, step = objective_and_subgradient(scores, problem, network.squared_norm)  # line 7
        row = _row(iteration, terms, violated, scores, time.perf_counter() - began)
        if course.gives_up(row, problem.n_answers) or course.is_over(row) or iteration == watch.max_iter:  # line 5
            break
        steps(_gradients(network, part, step[own], problem, team), iteration + 1)  # lines 8 to 11
        course.n_steps += 1
        course.keep()
    return course.end()


class Course:
    """How far training has come, and whether it still gets anywhere; kept now and then, and taken up again."""

    def __init__(
        self, network: Network, steps: Steps, watch: Watch, patience: int, generator: torch.Generator | None = None
    ) -> None:
        self.network, self.steps, self.watch, self.patience, self.generator = network, steps, watch, patience, generator
        self.history: History = []
        self.n_steps, self.lowest, self.last_change = 0, torch.inf, 0
        self.best = Best(network)
        state = watch.keeper.load()
        if state is not None:
            self._take_up(state)

    @property
    def iteration(self) -> int:
        """The last one that the history tells of."""
        return int(self.history[-1]["iteration"]) if self.history else 0

    def gives_up(self, row: dict[str, Any], n_answers: int) -> bool:
        """Whether a cluster of the start has emptied; with no answers, only the start knows how many there are."""
        first = self.history[:1]
        return not n_answers and bool(first) and row["occupied_clusters"] < first[0]["occupied_clusters"]

    def is_over(self, row: dict[str, Any]) -> bool:
        """Write a row down; whether the objective has not fallen for too long, or someone wants an end."""
        self.history.append(row)
        self.best.look(row["objective"])
        if row["objective"] < self.lowest - self.watch.tol * abs(row["objective"]):
            self.lowest, self.last_change = row["objective"], row["iteration"]
        tell = self.watch.on_iteration
        is_enough = self.watch.team.anyone(tell is not None and tell(row) is True)
        return is_enough or row["iteration"] - self.last_change >= self.patience

    def keep(self) -> None:
        """Let the keeper have it all, if it is time to."""
        if not self.watch.keeper.is_due(self.iteration):
            return
        names = ("history", "n_steps", "lowest", "last_change")
        facts = {name: getattr(self, name) for name in names} | {"best": self.best.objective}
        self.watch.keeper.save(self._tensors(), facts)

    def end(self) -> History:
        """Leave the network as it was at its best; the rows."""
        self.network.activations.clear()
        self.best.restore()
        return self.history

    def _tensors(self) -> dict[str, list[Tensor]]:
        chance = [] if self.generator is None else [self.generator.get_state()]
        own = {"network": self.network.parameters, "steps": self.steps.tensors, "best": self.best.copies}
        return own | {"chance": chance}

    def _take_up(self, state: State) -> None:
        for name in ("network", "steps", "best"):
            for mine, kept in zip(self._tensors()[name], state.tensors[name], strict=True):
                mine.copy_(kept)
        if self.generator is not None:
            self.generator.set_state(state.tensors["chance"][0])
        self.best.objective = state.facts.pop("best")
        for name, value in state.facts.items():
            setattr(self, name, value)


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


def settle(network: Network, x: Input, labels: Tensor, weight: Tensor, steps: Steps, weight_penalty: float) -> int:
    """Let the whole network learn given clusters, in place; the number of steps that took.

    Every point counts by its weight, which is 1 on average.

    A head that is the nearest mean of every cluster knows only round ones. It stops early on purpose: what the layers
    cannot learn in so many steps may well be wrong.
    """
    for iteration in range(SETTLE):
        scores = network.scores(x)
        if float(((scores.argmax(1) == labels) * weight).double().mean()) >= SETTLED:
            return iteration
        steps(network.gradients(x, label_subgradient(scores, labels, weight), weight_penalty), iteration + 1)
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
