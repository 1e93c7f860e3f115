"""Who is asked what: no pair twice, unless that is wanted, and nothing that follows from the answers."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence

import numpy as np

from ..exceptions import SessionError
from .memory import Memory
from .people import Pair
from .store import check_name

PATIENCE = 600.0  # seconds after which a question that nobody answered may go to somebody else
DRAWS = 1000  # pairs that are drawn to find one that is open
MOST_PEOPLE = 1000


class Desk:
    """Hands out questions to people, and remembers which they have not answered yet.

    Parameters
    ----------
    memory : Memory
    n_items : int
    overlap : float
        The share of questions that somebody else has answered already.
    random_state : int
    """

    def __init__(self, memory: Memory, n_items: int, overlap: float, random_state: int) -> None:
        self._memory, self._n_items, self._overlap = memory, n_items, overlap
        self._rng = np.random.RandomState(random_state)
        self._open: dict[str, dict[Pair, float]] = {}  # person: question: when it was asked

    def next(self, who: str, n: int, best: Sequence[Sequence[int]]) -> list[Pair]:
        """The person's open questions and new ones, at most n; ``best`` are those to take first."""
        own = self.admit(who)
        for pair in [pair for pair in own if not self._is_worth(pair, who)]:
            del own[pair]
        candidates = self._candidates(who, best)
        while len(own) < n and (new := next(candidates, None)) is not None:
            own[new] = time.monotonic()
        return list(own)[:n]

    def admit(self, who: str) -> dict[Pair, float]:
        """Whoever asks or answers, if there is room; the questions that are open for this person."""
        if who not in self._open and len(self._open) >= MOST_PEOPLE:
            raise SessionError(f"more than {MOST_PEOPLE} people answer; open the session again to forget some")
        return self._open.setdefault(check_name(who), {})

    def answered(self, who: str, pair: Pair) -> None:
        """The person has answered."""
        self._open[who].pop(pair, None)

    def ask_again(self, who: str, pair: Pair) -> None:
        """The person's answer was taken back: the question comes first."""
        if self._is_worth(pair, who):
            others = {each: when for each, when in self._open.get(who, {}).items() if each != pair}
            self._open[who] = {pair: time.monotonic(), **others}

    def _candidates(self, who: str, best: Sequence[Sequence[int]]) -> Iterator[Pair]:
        """New questions for a person, one after the other."""
        now = time.monotonic()
        taken = {pair for own in self._open.values() for pair, when in own.items() if now - when < PATIENCE}
        taken |= set(self._open[who])
        for i, j in itertools.chain(best, self._drawn()):
            if self._overlap and self._rng.random_sample() < self._overlap:
                shared = [pair for pair in self._memory.votes if pair not in taken and self._is_worth(pair, who)]
                if shared:
                    taken.add(pair := shared[self._rng.randint(len(shared))])
                    yield pair
            pair = (i, j) if i < j else (j, i)
            if i != j and pair not in taken and pair not in self._memory.votes and self._is_worth(pair, who):
                taken.add(pair)
                yield pair

    def _drawn(self) -> Iterator[Sequence[int]]:
        """Pairs at random, for when all others are asked."""
        yield from self._rng.randint(self._n_items, size=(DRAWS, 2)).tolist()

    def _is_worth(self, pair: Pair, who: str) -> bool:
        """Whether a question still makes sense for a person."""
        votes = self._memory.votes.get(pair)
        if votes is not None:
            return who not in votes and self._overlap > 0
        return self._memory.closure.follows(*pair) is None
