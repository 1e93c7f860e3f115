"""How far the answers can be trusted, and how sure the scores can be.

Each answer is judged by a network that has not seen it. Two numbers are then read off all answers together, those that
make them most likely:

=======  ============  =====================================================================================
symbol   name here     meaning
=======  ============  =====================================================================================
a        sharpness     the chance of a cluster is softmax(a · scores), scores in units of their median margin
ε        error_rate    share of the answers that are wrong
p        same_chance   Σ_k p_ik p_jk, the chance that two points are in one cluster
=======  ============  =====================================================================================

The answers that were given may be "same" far more often than pairs are: where one pair in ten is the same and half of
the answers are, a pair that the network thinks apart is the same nine times as often as it says. So p is first moved as
the odds of "same" are (Elkan 2001), unless the questions were picked by what the network did not know. If a share s of
the answers is "same", and ε of them are mistakes, (s − ε) / (1 − 2ε) is meant so.

An answer comes out right with the chance (1 − ε) p + ε (1 − p) if it is "same", and the trust in it is the chance that
it is no mistake, given what the network thinks. If the answers are as likely without mistakes, all are trusted.

Networks know little where classes overlap, but answers know each other: that many agree which might have contradicted
each other makes a small ε likely, and an answer that others confirm is a mistake with the chance ε² only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit, logit, softmax
from torch import Tensor

from .checkpoint import State
from .objective import best_two

Array = NDArray[Any]

SHARPNESSES = np.exp(np.linspace(-3, 3, 37))
USUAL_SHARPNESS = 2.0  # before any answer is seen; it counts for little
ERROR_RATES = np.concatenate([[0.0], np.linspace(0.01, 0.4, 40)])
PROOF = 4.0  # by how much mistakes must raise the log-likelihood, to be believed in
UNDECIDED = 1e-6  # share of the largest margin, below which a median margin is rounding
USUAL_SHARE = 10.0  # answers that the share of "same" among all pairs counts for, beside that among the answers
BELIEVED = 0.85  # trust below which nothing follows from an answer: one mistake takes whole groups along
TINY = 1e-3  # no network is surer than this
ENOUGH = 20_000  # answers that tell the two numbers
AT_ONCE = 10_000  # answers whose chances are computed together


class Trust(NamedTuple):
    """What the judgement of all answers comes to."""

    sharpness: float
    error_rate: float
    right: Array  # (m,) the chance of every answer in the eyes of who has not seen it
    trust: Array  # (m,) the chance that it is no mistake

    @classmethod
    def complete(cls, n_answers: int) -> Trust:
        """All answers are right, as far as anyone knows."""
        return cls(USUAL_SHARPNESS, 0.0, np.ones(n_answers), np.ones(n_answers))

    @property
    def believed(self) -> Array:
        """Which answers are likely enough to be right that something may follow from them, (m,)."""
        return np.asarray(self.trust >= BELIEVED)

    def packed(self) -> State:
        """What a checkpoint keeps of it."""
        tensors = {"right": [torch.from_numpy(self.right)], "trust": [torch.from_numpy(self.trust)]}
        return State(tensors, {"sharpness": self.sharpness, "error_rate": self.error_rate})

    @classmethod
    def unpacked(cls, state: State) -> Trust:
        """What a checkpoint has kept."""
        right, trust = (state.tensors[name][0].numpy() for name in ("right", "trust"))
        return cls(state.facts["sharpness"], state.facts["error_rate"], right, trust)


def margins(scores: Tensor) -> Tensor:
    """By how much the best cluster of every point leads, (n,); 1 if there is nothing to lead."""
    if scores.shape[1] < 2:
        return scores.new_ones(len(scores))
    value = best_two(scores)[0]
    return value[:, 0] - value[:, 1]


def median_margin(margin: Tensor) -> float:
    """Half of the points lead by more than this; 1 if most points are undecided."""
    median = float(margin.median())
    return median if median > UNDECIDED * float(margin.max()) else 1.0


def chances(scores: Array, sharpness: float) -> Array:
    """The chance of every cluster, from scores in units of their median margin."""
    return np.asarray(softmax(sharpness * scores, axis=-1))


def same_chances(ends: Array, sharpness: float) -> Array:
    """The chance that both ends (m, 2, K) of a pair are in one cluster, (m,)."""
    parts = []
    for start in range(0, len(ends), AT_ONCE):
        one, other = np.moveaxis(chances(ends[start : start + AT_ONCE], sharpness), 1, 0)
        parts.append((one * other).sum(1))
    return np.concatenate(parts) if parts else np.empty(0)


def judged(ends: Array, same: Array, confirmed: Array, were_drawn: bool, proof: float = PROOF) -> Trust:
    """Judge answers by the scores (m, 2, K) that their ends have in networks that have not seen them.

    An answer that others confirm speaks against mistakes, and would take two of them to be one. There is none unless
    mistakes raise the log-likelihood by ``proof``.
    """
    few = slice(None, None, -(-len(same) // ENOUGH))
    found = {}
    for sharpness in SHARPNESSES:
        seen = _seen(ends[few], sharpness, were_drawn)
        plausible = -0.5 * np.log(sharpness / USUAL_SHARPNESS) ** 2
        for rate in ERROR_RATES:
            mistaken = _mistaken(rate, confirmed[few])
            agreed = plausible + confirmed[few].sum() * np.log(1 - rate)
            found[rate, sharpness] = agreed + np.log(_told(_right(seen, same[few], mistaken), mistaken)).sum()
    rate, sharpness = max(found, key=lambda key: found[key])
    honest = max((key for key in found if key[0] == 0), key=lambda key: found[key])
    if found[rate, sharpness] - found[honest] < proof:
        rate, sharpness = honest
    mistaken = _mistaken(rate, confirmed)
    right = _right(_seen(ends, sharpness, were_drawn), same, mistaken)
    return Trust(float(sharpness), float(rate), right, (1 - mistaken) * right / _told(right, mistaken))


class _Seen(NamedTuple):
    """What networks think of pairs that they were not asked about."""

    odds: Array  # (m,) log odds that two points are in one cluster
    among_pairs: float | None  # the chance of that for any two points; nothing to go by where questions were picked


def _seen(ends: Array, sharpness: float, were_drawn: bool) -> _Seen:
    odds = logit(np.clip(same_chances(ends, sharpness), TINY, 1 - TINY))
    cluster_shares = chances(ends, sharpness).mean((0, 1))
    return _Seen(odds, min(float((cluster_shares**2).sum()), 1 - TINY) if were_drawn else None)


def _right(seen: _Seen, same: Array, mistaken: Array) -> Array:
    """The chance of every answer, had nobody made a mistake."""
    odds = seen.odds
    if seen.among_pairs is not None:
        rate, share = mistaken.mean(), same.mean()
        meant = np.clip((share - rate) / (1 - 2 * rate), 0, 1) * len(same)
        odds = odds + logit((meant + USUAL_SHARE * seen.among_pairs) / (len(same) + USUAL_SHARE))
        odds = odds - logit(seen.among_pairs)
    chance = np.clip(expit(odds), TINY, 1 - TINY)
    return np.where(same, chance, 1 - chance)


def _mistaken(rate: float, confirmed: Array) -> Array:
    """The chance of a mistake, before anyone looks at the points."""
    return np.where(confirmed, rate**2, rate)


def _told(right: Array, mistaken: Array) -> Array:
    """The chance of the answer that was given, if without a mistake it is as likely as ``right``."""
    return np.asarray((1 - mistaken) * right + mistaken * (1 - right))
