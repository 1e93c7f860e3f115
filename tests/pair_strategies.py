"""Answers for the tests of `Pairs`: strategies for hypothesis, and slow ways to say what is right."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from pairmargin import Pairs

prove = settings(deadline=None, derandomize=True, max_examples=200)

N = 7
rows = st.tuples(st.integers(0, N - 1), st.integers(0, N - 1)).filter(lambda pair: pair[0] != pair[1])
weights = st.floats(1e-3, 1e3)
any_answers = st.lists(st.tuples(rows, st.booleans(), weights), max_size=12)
labels = st.lists(st.integers(-1, 3), min_size=N, max_size=N)


def build(answers: list[tuple[tuple[int, int], bool, float]]) -> Pairs:
    return Pairs([pair for pair, _, _ in answers], [same for _, same, _ in answers], [w for _, _, w in answers])


@st.composite
def consistent_answers(draw: st.DrawFn) -> list[tuple[tuple[int, int], bool, float]]:
    y = draw(st.lists(st.integers(0, 3), min_size=N, max_size=N))
    return [((i, j), y[i] == y[j], w) for (i, j), w in draw(st.lists(st.tuples(rows, weights), max_size=12))]


def distances(pairs: Pairs, n: int = N) -> np.ndarray:
    """The number of "same" answers between all rows, by Floyd and Warshall."""
    d = np.full((n, n), np.inf)
    np.fill_diagonal(d, 0)
    for i, j in pairs.must_link:
        d[i, j] = d[j, i] = 1
    for k, i, j in itertools.product(range(n), repeat=3):
        d[i, j] = min(d[i, j], d[i, k] + d[k, j])
    return d


def as_dict(pairs: Pairs) -> dict[tuple[int, int, bool], float]:
    return {(i, j, s): w for (i, j), s, w in zip(pairs.index.tolist(), pairs.same.tolist(), pairs.weight, strict=True)}
