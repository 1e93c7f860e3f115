"""The answers of a session as they are used all the time: who said what, what follows, what was expected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import people
from .closure import Closure
from .people import Pair
from .store import DELETED, SAME, UNSURE, Answer

Array = NDArray[Any]


class Memory:
    """What counts now, in memory; the store has it on disk.

    Parameters
    ----------
    rows : dict of str to int
        The row of every id.

    Attributes
    ----------
    current : dict of (who, pair) to Answer
    votes : dict of pair to dict of who to answer
    closure : Closure
        What follows from what people say together.
    expected : list of bool
        For every answer that is sure, in order: whether the model had expected it.
    people : dict of who to int
        How many pairs each person has answered.
    shared : dict of pair to dict of who to answer
        The votes of pairs that several people have answered.
    n_unsettled : int
        How many pairs are answered but not settled.
    """

    def __init__(self, rows: Mapping[str, int]) -> None:
        self._rows = rows
        self.renew(())

    def renew(self, answers: Iterable[Answer]) -> None:
        """Forget everything but these answers, in order."""
        self.current: dict[tuple[str, Pair], Answer] = {}
        self.votes: dict[Pair, dict[str, str]] = {}
        self.expected: list[bool] = []
        self.people: dict[str, int] = {}
        self.closure = Closure()
        for row in answers:
            self._keep(row)
        for pair, same in self.settled().items():
            self.closure.add(*pair, same)
        self.shared = {pair: votes for pair, votes in self.votes.items() if len(votes) > 1}
        self.n_unsettled = len(self.unsettled())

    def is_simple(self, row: Answer) -> bool:
        """Whether a new answer only adds to what is known. If not, what followed before may follow no more."""
        return row.answer != DELETED and self.pair_of(row) not in self.votes

    def take(self, row: Answer) -> None:
        """Keep a new answer that is simple."""
        self._keep(row)
        if row.answer == UNSURE:
            self.n_unsettled += 1
        else:
            self.closure.add(*self.pair_of(row), row.answer == SAME)

    def pair_of(self, row: Answer) -> Pair:
        """The rows that an answer is about, the smaller first."""
        i, j = self._rows[row.a], self._rows[row.b]
        return (i, j) if i < j else (j, i)

    def settled(self) -> dict[Pair, bool]:
        """What people say together, True for "same", where they do."""
        said = {pair: people.verdict(votes) for pair, votes in self.votes.items()}
        return {pair: same for pair, same in said.items() if same is not None}

    def unsettled(self) -> Array:
        """The pairs that are answered but not settled, (·, 2)."""
        pairs = [pair for pair, votes in self.votes.items() if people.verdict(votes) is None]
        return np.array(pairs, dtype=np.int64).reshape(-1, 2)

    def _keep(self, row: Answer) -> None:
        pair = self.pair_of(row)
        self.current[row.who, pair] = row
        self.votes.setdefault(pair, {})[row.who] = row.answer
        self.people[row.who] = self.people.get(row.who, 0) + 1
        if row.answer != UNSURE and row.chance is not None:
            self.expected.append((row.chance > 0.5) == (row.answer == SAME))
