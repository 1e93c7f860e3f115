"""The objective of the paper and its subgradients, as pure functions of the scores.

=========  ==================  ====================================================
symbol     name here           meaning
=========  ==================  ====================================================
h          codes               what the last hidden layer says of a point
W          head                one weight vector (and bias) for each cluster
S          scores              [h, 1] Wᵀ, one row a point, one column a cluster
z⁺         same_cluster        the best single cluster for both points of a pair
z⁻         different_clusters  the best two different clusters for a pair
n⁺, n⁻     (in ``weight``)     total weight of the must-links, of the cannot-links
U          free                the points in no pair
λ          weight_penalty      price of the squared norm of W
β          free_weight         price of the free points
=========  ==================  ====================================================

Everything that (11) to (14) need of a point is the derivative of the objective with respect to its row of
scores: (11) is then dSᵀ[h, 1] + λW, and (12) to (15) are dS·W. `objective_and_subgradient` gives that dS.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from .pairs import Pairs


class Assignments(NamedTuple):
    """The two rival explanations of every pair, with their scores."""

    same: Tensor  # (m,) score of the best single cluster for both
    different: Tensor  # (m,) score of the best two different clusters
    same_cluster: Tensor  # (m,) z⁺
    different_clusters: Tensor  # (m, 2) z⁻


class Terms(NamedTuple):
    """The four terms of (8); their sum is the objective."""

    must_link: Tensor
    cannot_link: Tensor
    free: Tensor
    norm: Tensor

    @property
    def total(self) -> Tensor:
        """The objective (8)."""
        return self.must_link + self.cannot_link + self.free + self.norm


@dataclass(frozen=True)
class Problem:
    """The answers as tensors, ready for the objective: built once, read in every iteration."""

    index: Tensor  # (m, 2)
    same: Tensor  # (m,) bool
    weight: Tensor  # (m,) each pair's share of its kind: sums to 1 over must-links and over cannot-links
    free: Tensor  # (U,) points in no pair
    weight_penalty: float  # λ
    free_weight: float  # β

    @classmethod
    def build(cls, pairs: Pairs, n_samples: int, *, weight_penalty: float, free_weight: float, like: Tensor) -> Problem:
        """Take the pairs and the two prices to tensors of the dtype and device of ``like``."""
        same = torch.as_tensor(pairs.same.copy(), device=like.device)
        weight = torch.as_tensor(pairs.weight.copy(), dtype=like.dtype, device=like.device)
        for kind in (same, ~same):
            if kind.any():
                weight[kind] /= weight[kind].sum()  # 1/n⁺ and 1/n⁻ of (8a), (8b)
        is_free = torch.ones(n_samples, dtype=torch.bool)
        is_free[torch.as_tensor(pairs.index.copy()).flatten()] = False
        return cls(
            index=torch.as_tensor(pairs.index.copy(), device=like.device),
            same=same,
            weight=weight,
            free=is_free.nonzero()[:, 0].to(like.device),
            weight_penalty=weight_penalty,
            free_weight=free_weight,
        )


def best_two(scores: Tensor) -> tuple[Tensor, Tensor]:
    """The two highest scores of every row and the clusters they belong to, both (n, 2)."""
    value, cluster = scores.topk(2, dim=1)
    return value, cluster


def assignments(scores: Tensor, index: Tensor, best: tuple[Tensor, Tensor] | None = None) -> Assignments:
    """Find the best "same" and the best "different" explanation of every pair, in O(K) each.

    Two different clusters with the highest sum need only the two best clusters of either point: if the best ones
    differ they are the answer, and if they coincide one point yields to its second best.
    """
    value, cluster = best_two(scores) if best is None else best
    i, j = index[:, 0], index[:, 1]
    same, same_cluster = (scores[i] + scores[j]).max(dim=1)  # max over z_i1 = z_i2 in (8a)
    value_i, value_j = value[i], value[j]  # (m, 2)
    clash = cluster[i, 0] == cluster[j, 0]
    j_yields = value_i[:, 0] + value_j[:, 1] >= value_i[:, 1] + value_j[:, 0]
    rank_i = (clash & ~j_yields).long()  # 0: keeps its best cluster, 1: takes its second best
    rank_j = (clash & j_yields).long()
    pick = torch.stack([rank_i, rank_j], 1)  # (m, 2)
    different = value_i.gather(1, pick[:, :1])[:, 0] + value_j.gather(1, pick[:, 1:])[:, 0]
    different_clusters = torch.stack([cluster[i, rank_i], cluster[j, rank_j]], 1)  # max over z_i1 ≠ z_i2 in (8a)
    return Assignments(same, different, same_cluster, different_clusters)


def pair_margins(scores: Tensor, index: Tensor) -> Tensor:
    """By how much "same" beats "different" for every pair, (m,)."""
    if scores.shape[1] < 2:  # with one cluster nothing can be different
        return torch.full((len(index),), torch.inf, dtype=scores.dtype, device=scores.device)
    found = assignments(scores, index)
    return found.same - found.different


def objective(scores: Tensor, problem: Problem, squared_norm: Tensor) -> Terms:
    """The terms of (8), differentiable with respect to the scores and the squared norm of the head."""
    norm = 0.5 * problem.weight_penalty * squared_norm  # λ/2 ‖W‖²
    if scores.shape[1] < 2:  # with one cluster there is nothing to choose, so no hinge
        zero = norm.new_zeros(())
        return Terms(zero, zero, zero, norm)
    best = best_two(scores)
    found = assignments(scores, problem.index, best)
    margin = torch.where(problem.same, found.same - found.different, found.different - found.same)
    loss = problem.weight * (1 - margin).clamp_min(0)
    must_link = loss[problem.same].sum()  # eq. (8a)
    cannot_link = loss[~problem.same].sum()  # eq. (8b)
    value = best[0][problem.free]
    free = _free_price(problem, scores) * (1 - (value[:, 0] - value[:, 1])).clamp_min(0).sum()  # eq. (8c)
    return Terms(must_link, cannot_link, free, norm)


def objective_and_subgradient(scores: Tensor, problem: Problem, squared_norm: Tensor) -> tuple[Terms, Tensor, Tensor]:
    """The terms of (8), which pairs are violated, and the subgradient with respect to the scores, (n, K).

    Differs from the paper: (11) and (14) sum over all free points, but only those whose margin is below 1 have a
    slope in (8c). (8) is the objective, so (8) is followed.
    """
    step = torch.zeros_like(scores)  # dS
    norm = 0.5 * problem.weight_penalty * squared_norm  # λ/2 ‖W‖²
    if scores.shape[1] < 2:
        zero = norm.new_zeros(())
        return Terms(zero, zero, zero, norm), torch.zeros_like(problem.same), step
    best = best_two(scores)
    found = assignments(scores, problem.index, best)
    sign = torch.where(problem.same, 1, -1).to(scores.dtype)
    slack = (1 - sign * (found.same - found.different)).clamp_min(0)
    violated = slack > 0  # A⁺ of eq. (9) and A⁻ of eq. (10)
    loss = problem.weight * slack

    # The pair terms of (11) to (13): up with the explanation that the answer wants, down with its rival.
    push = torch.where(violated, sign * problem.weight, 0)  # (m,)
    n_clusters = scores.shape[1]
    rows = problem.index * n_clusters
    wanted = rows + found.same_cluster[:, None]  # (m, 2) positions in the flat dS
    rival = rows + found.different_clusters
    both = push[:, None].expand(-1, 2).flatten()
    step.view(-1).index_add_(0, wanted.flatten(), both, alpha=-1)
    step.view(-1).index_add_(0, rival.flatten(), both, alpha=1)

    # The free term of (11) and (14).
    price = _free_price(problem, scores)
    value, cluster = best[0][problem.free], best[1][problem.free]
    free_slack = (1 - (value[:, 0] - value[:, 1])).clamp_min(0)
    pull = price * (free_slack > 0).to(scores.dtype)
    rows = problem.free * n_clusters
    step.view(-1)[rows + cluster[:, 0]] = -pull
    step.view(-1)[rows + cluster[:, 1]] = pull

    terms = Terms(loss[problem.same].sum(), loss[~problem.same].sum(), price * free_slack.sum(), norm)  # eq. (8)
    return terms, violated, step


def label_subgradient(scores: Tensor, labels: Tensor) -> Tensor:
    """Subgradient of the mean hinge by which a point's own cluster should lead all others, (n, K).

    It is what (8c) becomes when the best cluster of a point is given (Crammer, Singer 2001).
    """
    step = torch.zeros_like(scores)
    if scores.shape[1] < 2:
        return step
    own = labels[:, None]
    rival_score, rival = scores.scatter(1, own, -torch.inf).max(1, keepdim=True)
    push = (scores.gather(1, own) - rival_score < 1).to(scores.dtype) / len(scores)
    return step.scatter_(1, own, -push).scatter_(1, rival, push)


def _free_price(problem: Problem, scores: Tensor) -> float:
    """β/(UK) of (8c)."""
    return problem.free_weight / (max(len(problem.free), 1) * scores.shape[1])
