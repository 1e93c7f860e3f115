"""Several people and one session: what they say together, where they disagree, and how far they agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations

from .store import DIFFERENT, SAME

Pair = tuple[int, int]
Votes = Mapping[Pair, Mapping[str, str]]  # pair: person: answer


def verdict(votes: Mapping[str, str]) -> bool | None:
    """What the most say, True for "same"; None if they are as many as the others, or all unsure."""
    balance = sum({SAME: 1, DIFFERENT: -1}.get(answer, 0) for answer in votes.values())
    return None if balance == 0 else balance > 0


def disagreements(votes: Votes) -> list[Pair]:
    """The pairs that some call the same and others different."""
    return [pair for pair, said in votes.items() if {SAME, DIFFERENT} <= set(said.values())]


def kappa(votes: Votes) -> float | None:
    """Cohen's κ of every two people over the pairs that both are sure of, weighted by how many these are.

    1 is complete agreement, 0 what chance would do; None if no two people have a pair in common, or if there is nothing
    to disagree about because all answers are alike.
    """
    both: dict[tuple[str, str], list[tuple[bool, bool]]] = {}  # what two people say of the pairs they share
    for said in votes.values():
        sure_ones = sorted((who, answer == SAME) for who, answer in said.items() if answer in (SAME, DIFFERENT))
        for (one, a), (other, b) in combinations(sure_ones, 2):
            both.setdefault((one, other), []).append((a, b))
    total = weight = 0.0
    for sure in both.values():
        value = _kappa(sure)
        if value is not None:
            total, weight = total + value * len(sure), weight + len(sure)
    return total / weight if weight else None


def _kappa(pairs: Iterable[tuple[bool, bool]]) -> float | None:
    pairs = list(pairs)
    if not pairs:
        return None
    n = len(pairs)
    observed = sum(a == b for a, b in pairs) / n
    one, other = (sum(side) / n for side in zip(*pairs, strict=True))
    chance = one * other + (1 - one) * (1 - other)
    return None if chance == 1 else (observed - chance) / (1 - chance)
