"""The problem in pieces, for data of which only a part fits into memory, or that needs many steps a pass.

In an epoch every free point, every answer and every link between neighbours comes up in one batch. What a batch has of
the answers and the links counts as many times as there are batches, so that the mean of the subgradients of all
batches of an epoch, at the same parameters, is the subgradient of (8).

Links come in runs of neighbouring ones, which are about fewer points if they are in a good order (`side_by_side`): a
batch of links drawn one by one would be about nearly all points.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from .inputs import DenseInput, Rows
from .objective import Problem
from .team import ALONE, Team

RUN = 256  # links that come together, at most
MIXTURE = 8  # runs that a batch has of them, at least


class Batch(NamedTuple):
    """Some rows, and what there is to learn from them."""

    x: DenseInput
    problem: Problem


class Batches:
    """Batches of some ``size`` free points each, with their share of the answers and links.

    Of each batch a member of a team has its own part. The rows that answers and links are about are read once and
    kept; all others are read in every epoch.
    """

    def __init__(self, x: Rows, problem: Problem, size: int, generator: torch.Generator, team: Team = ALONE) -> None:
        self.x, self.problem, self.size, self.generator, self.team = x, problem, size, generator, team
        rows, self.places = torch.unique(problem.index, return_inverse=True)  # (p,), (m + l, 2)
        self.kept = x.subset(rows)  # (p, D)
        self.is_free = torch.zeros(x.shape[0], dtype=torch.bool, device="cpu")
        self.is_free[problem.free.cpu()] = True

    def __len__(self) -> int:
        return max(-(-self.x.shape[0] // self.size), 1)

    def __iter__(self) -> Iterator[Batch]:
        n_answers, n_all = self.problem.n_answers, len(self.places)
        run = (n_all - n_answers) // (MIXTURE * len(self))
        answers, links = self._parts(n_answers), self._parts(n_all - n_answers, min(max(run, 1), RUN))
        for (numbers, points), of_answers, of_links in zip(
            self.x.batches(self.size, self.generator, self.team), answers, links, strict=True
        ):
            asked = torch.cat([of_answers, of_links + n_answers]).to(self.places.device)
            yield self._batch(points[self.is_free[numbers.cpu()]], asked, len(of_answers))

    def _parts(self, count: int, run: int = 1) -> tuple[Tensor, ...]:
        """The numbers below ``count`` in runs, in a random order: a part for every batch, of it a member's share."""
        n_runs = -(-count // run)
        runs = torch.randperm(n_runs, generator=self.generator, device=self.generator.device)
        within = torch.arange(run, device=runs.device)
        parts = []
        for part in runs.tensor_split(len(self)):
            own = part.sort().values[self.team.share(len(part))]  # what lies close together is one member's
            numbers = (own[:, None] * run + within).flatten()
            parts.append(numbers[numbers < count])
        return tuple(parts)

    def _batch(self, free: Tensor, asked: Tensor, n_answers: int) -> Batch:
        rows, places = torch.unique(self.places[asked], return_inverse=True)
        whole = self.problem
        problem = replace(
            whole,
            index=places + len(free),
            same=whole.same[asked],
            weight=whole.weight[asked] * len(self),
            n_answers=n_answers,
            free=torch.arange(len(free), device=asked.device),
            free_price=whole.free_price * len(self),
        )
        return Batch(DenseInput(torch.cat([free, self.kept.rows(rows)]), self.x.narrow), problem)
