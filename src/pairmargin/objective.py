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
ν          neighbour_weight    price of the neighbours
κ          balance_weight      price of the balance
=========  ==================  ====================================================

Two terms go beyond the paper. *Neighbours* are weak must-links: one more hinge of the form (8a) over points that lie
close to each other. *Balance* holds the clusters to the shares of the points that they had at the start.

Everything that (11) to (14) need of a point is the derivative of the objective with respect to its row of
scores: (11) is then dSᵀ[h, 1] + λW, and (12) to (15) are dS·W. `objective_and_subgradient` gives that dS.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from .pairs import Pairs

AT_ONCE = 2**18  # scores that are gathered at a time, few enough to stay in a processor's cache
BALANCE_SHARPNESS = 4.0  # of the softmax by which clusters share the points: of two, a lead of 1 gives one 98 %
MANY = 20  # clusters, above which little is told about each; the usual prices differ from there on
USUAL_PENALTY = 0.001
USUAL_BALANCE = 0.3
TELLING = 5  # "same" answers that tell about a cluster


class Assignments(NamedTuple):
    """The two rival explanations of every pair, with their scores."""

    same: Tensor  # (m,) score of the best single cluster for both
    different: Tensor  # (m,) score of the best two different clusters
    same_cluster: Tensor  # (m,) z⁺
    different_clusters: Tensor  # (m, 2) z⁻


class Terms(NamedTuple):
    """The four terms of (8) and the two beyond; their sum is the objective."""

    must_link: Tensor
    cannot_link: Tensor
    free: Tensor
    norm: Tensor
    neighbours: Tensor
    balance: Tensor

    @property
    def total(self) -> Tensor:
        """The objective, (8) if nothing weighs beyond it."""
        return self.must_link + self.cannot_link + self.free + self.norm + self.neighbours + self.balance


@dataclass(frozen=True)
class Prices:
    """What the terms of the objective weigh beside the answers, which weigh 1."""

    weight_penalty: float  # λ
    free_weight: float  # β
    neighbour_weight: float = 0.0  # ν
    balance_weight: float = 0.0  # κ


def usual_penalty(n_clusters: int, n_same: int) -> float:
    """λ where none is given: what 20 rows of W pay, or as many as the answers tell about, is all that is paid.

    ‖W‖² adds up the rows of all clusters. Of a hundred, with few answers, it would outweigh everything else, and the
    cheapest way to a small norm is to give clusters up (docs/design/neighbours-and-balance.md).
    """
    return USUAL_PENALTY * min(1.0, max(MANY, n_same / TELLING) / n_clusters)


def usual_balance(n_clusters: int) -> float:
    """κ where none is given: nothing else keeps many clusters alive that the answers say little about."""
    return USUAL_BALANCE if n_clusters > MANY else 0.0


@dataclass(frozen=True)
class Problem:
    """The answers as tensors, ready for the objective: built once, read in every iteration."""

    index: Tensor  # (m + l, 2) the answers, then the neighbours
    same: Tensor  # (m + l,) bool, true for neighbours
    weight: Tensor  # (m + l,) sums to 1 over must-links, to 1 over cannot-links, to ν over neighbours
    n_answers: int  # m
    free: Tensor  # (U,) points in no answer
    free_price: float  # β/U
    shares: Tensor  # (K,) of the points, for the balance
    prices: Prices

    @classmethod
    def build(
        cls,
        pairs: Pairs,
        n_samples: int,
        prices: Prices,
        *,
        like: Tensor,
        links: Tensor | None = None,
        shares: Tensor | None = None,
    ) -> Problem:
        """Take the pairs to tensors of the dtype and device of ``like``.

        ``links`` (l, 2) are neighbours; ``shares`` (K,) are needed only if balance has a price.
        """
        shares_of_kind = pairs.weight.copy()
        for kind in (pairs.same, ~pairs.same):
            if kind.any():
                shares_of_kind[kind] /= shares_of_kind[kind].sum()  # 1/n⁺ and 1/n⁻ of (8a), (8b)
        same = torch.as_tensor(pairs.same.copy(), device=like.device)
        weight = torch.as_tensor(shares_of_kind, dtype=like.dtype, device=like.device)
        index = torch.from_numpy(pairs.index.copy())
        is_free = torch.ones(n_samples, dtype=torch.bool, device="cpu")
        is_free[index.flatten()] = False
        index = index.to(like.device)
        if links is not None and prices.neighbour_weight:
            index = torch.cat([index, links.to(like.device)])
            same = torch.cat([same, same.new_ones(len(links))])
            weight = torch.cat([weight, weight.new_full((len(links),), prices.neighbour_weight / max(len(links), 1))])
        free = is_free.nonzero()[:, 0].to(like.device)
        return cls(
            index=index,
            same=same,
            weight=weight,
            n_answers=len(pairs),
            free=free,
            free_price=prices.free_weight / max(len(free), 1),
            shares=like.new_empty(0) if shares is None else shares.to(like),
            prices=prices,
        )


def best_two(scores: Tensor) -> tuple[Tensor, Tensor]:
    """The two highest scores of every row and the clusters they belong to, both (n, 2)."""
    value, cluster = scores.topk(2, dim=1)
    return value, cluster


def assignments(scores: Tensor, index: Tensor, best: tuple[Tensor, Tensor] | None = None) -> Assignments:
    """Find the best "same" and the best "different" explanation of every pair, in O(K) each.

    If both points have the same best cluster, it is their best single one, and for two different clusters one of them
    yields to its second best. If their best clusters differ, these are the best two different ones, and only then must
    all clusters be looked at for the best single one.
    """
    value, cluster = best_two(scores) if best is None else best
    i, j = index[:, 0], index[:, 1]
    value_i, value_j = value[i], value[j]  # (m, 2)
    clash = cluster[i, 0] == cluster[j, 0]
    same, same_cluster = value_i[:, 0] + value_j[:, 0], cluster[i, 0]  # max over z_i1 = z_i2 in (8a)
    for part in torch.split((~clash).nonzero()[:, 0], max(1, AT_ONCE // scores.shape[1])):
        same[part], same_cluster[part] = (scores[i[part]] + scores[j[part]]).max(dim=1)
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
        return scores.new_full((len(index),), torch.inf)
    found = assignments(scores, index)
    return found.same - found.different


def objective(scores: Tensor, problem: Problem, squared_norm: Tensor) -> Terms:
    """The terms, differentiable with respect to the scores and the squared norm of the head: what tests go by."""
    norm = 0.5 * problem.prices.weight_penalty * squared_norm  # λ/2 ‖W‖²
    if scores.shape[1] < 2:  # with one cluster there is nothing to choose, so no hinge
        zero = norm.new_zeros(())
        return Terms(zero, zero, zero, norm, zero, zero)
    best = best_two(scores)
    found = assignments(scores, problem.index, best)
    margin = torch.where(problem.same, found.same - found.different, found.different - found.same)
    loss = problem.weight * (1 - margin).clamp_min(0)
    value = best[0][problem.free]
    free = _free_price(problem, scores) * (1 - (value[:, 0] - value[:, 1])).clamp_min(0).sum()  # eq. (8c)
    return _terms(loss, free, norm, _balance(scores, problem)[0], problem)


def _terms(loss: Tensor, free: Tensor, norm: Tensor, balance: Tensor, problem: Problem) -> Terms:
    """The terms from the price that every answer and every pair of neighbours pays."""
    answers, same = loss[: problem.n_answers], problem.same[: problem.n_answers]
    neighbours = loss[problem.n_answers :].sum()
    must_link, cannot_link = torch.where(same, answers, 0).sum(), torch.where(same, 0, answers).sum()  # eq. (8a), (8b)
    return Terms(must_link, cannot_link, free, norm, neighbours, balance)


def _balance(scores: Tensor, problem: Problem) -> tuple[Tensor, Tensor | float]:
    """κ KL(mean softmax(a S) ‖ shares), a the sharpness, and its slope with respect to the scores, (n, K)."""
    price = problem.prices.balance_weight
    if not price:
        return scores.new_zeros(()), 0.0
    chance = (BALANCE_SHARPNESS * scores).softmax(1)
    mean = chance.mean(0).clamp_min(torch.finfo(scores.dtype).tiny)
    surprise = (mean / problem.shares).log()
    slope = chance * (surprise - (chance @ surprise)[:, None]) / len(scores)
    return price * (mean * surprise).sum(), BALANCE_SHARPNESS * price * slope


def objective_and_subgradient(scores: Tensor, problem: Problem, squared_norm: Tensor) -> tuple[Terms, Tensor, Tensor]:
    """The terms, which answers are violated, and the subgradient with respect to the scores, (n, K).

    Differs from the paper: (11) and (14) sum over all free points, but only those whose margin is below 1 have a
    slope in (8c). (8) is the objective, so (8) is followed.
    """
    step = torch.zeros_like(scores)  # dS
    norm = 0.5 * problem.prices.weight_penalty * squared_norm  # λ/2 ‖W‖²
    if scores.shape[1] < 2:
        zero = norm.new_zeros(())
        return Terms(zero, zero, zero, norm, zero, zero), torch.zeros_like(problem.same[: problem.n_answers]), step
    best = best_two(scores)
    found = assignments(scores, problem.index, best)
    sign = torch.where(problem.same, 1, -1).to(scores.dtype)
    slack = (1 - sign * (found.same - found.different)).clamp_min(0)
    violated = slack > 0  # A⁺ of eq. (9) and A⁻ of eq. (10)

    # The pair terms of (11) to (13): up with the explanation that the answer wants, down with its rival.
    push = torch.where(violated, sign * problem.weight, 0)  # (m + l,)
    n_clusters = scores.shape[1]
    rows = problem.index * n_clusters
    wanted = rows + found.same_cluster[:, None]  # (m + l, 2) positions in the flat dS
    rival = rows + found.different_clusters
    both = push[:, None].expand(-1, 2).flatten()
    step.view(-1).index_add_(0, wanted.flatten(), both, alpha=-1)
    step.view(-1).index_add_(0, rival.flatten(), both, alpha=1)

    # The free term of (11) and (14); free points have neighbours too.
    price = _free_price(problem, scores)
    value, cluster = best[0][problem.free], best[1][problem.free]
    free_slack = (1 - (value[:, 0] - value[:, 1])).clamp_min(0)
    pull = price * (free_slack > 0).to(scores.dtype)
    rows = problem.free * n_clusters
    step.view(-1)[rows + cluster[:, 0]] -= pull
    step.view(-1)[rows + cluster[:, 1]] += pull

    balance, slope = _balance(scores, problem)
    step += slope
    return (
        _terms(problem.weight * slack, price * free_slack.sum(), norm, balance, problem),
        violated[: problem.n_answers],
        step,
    )


def label_subgradient(scores: Tensor, labels: Tensor, weight: Tensor) -> Tensor:
    """Subgradient of the mean hinge by which a point's own cluster should lead all others, (n, K).

    Every point counts by its weight, (n,), which is 1 on average. It is what (8c) becomes when the best cluster of a
    point is given (Crammer, Singer 2001).
    """
    step = torch.zeros_like(scores)
    if scores.shape[1] < 2:
        return step
    own = labels[:, None]
    rival_score, rival = scores.scatter(1, own, -torch.inf).max(1, keepdim=True)
    push = (scores.gather(1, own) - rival_score < 1) * weight[:, None] / len(scores)
    return step.scatter_(1, own, -push).scatter_(1, rival, push)


def _free_price(problem: Problem, scores: Tensor) -> float:
    """β/(UK) of (8c)."""
    return problem.free_price / scores.shape[1]
