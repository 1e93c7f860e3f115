"""Questions for a page that is read once: doubtful points beside typical ones, where only some have chances."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..pairs import Pairs
from .known import Known

Array = NDArray[Any]

SURE = 0.02  # a pair is not worth a question if its answer is known but for this chance


def open_questions(
    rows: Array, chances: Array, landmarks: Array, landmark_chances: Array, pairs: Pairs, n_questions: int
) -> tuple[Array, Array]:
    """The pairs of a row and a landmark whose answer is the least certain, and follows from no answer yet.

    A row is asked about once, against the landmark with which it is as likely the same as not: a single answer then
    settles most about it. No border between two clusters has more than a third of the questions, if there are others
    to ask about.

    Parameters
    ----------
    rows : ndarray of shape (r,)
        Row numbers to ask about.
    chances : ndarray of shape (r, k)
        Their chances of every cluster.
    landmarks : ndarray of shape (l,)
        Row numbers to compare with, such as the most typical point of every cluster.
    landmark_chances : ndarray of shape (l, k)
        Their chances.
    pairs : Pairs
        The answers so far.
    n_questions : int
        How many pairs, at most.

    Returns
    -------
    index : ndarray of shape (m, 2)
        Pairs of a row and a landmark, the most open question first.
    chance : ndarray of shape (m,)
        Of "same".

    Examples
    --------
    >>> import numpy as np
    >>> from pairmargin import Pairs
    >>> chances = np.array([[0.5, 0.5], [0.9, 0.1], [0.4, 0.6]])
    >>> answered = Pairs.from_lists(must_link=[(0, 3)])  # row 3 is typical of cluster 0, row 4 of cluster 1
    >>> index, chance = open_questions(np.arange(3), chances, np.array([3, 4]), np.eye(2), answered, 2)
    >>> index.tolist(), chance.tolist()
    ([[2, 3], [1, 3]], [0.4, 0.9])
    """
    if not len(rows) or not len(landmarks):
        return np.empty((0, 2), dtype=int), np.empty(0)
    same = chances @ landmark_chances.T  # (r, l)
    index = np.stack(np.broadcast_arrays(rows[:, None], landmarks[None]), axis=-1)  # (r, l, 2)
    known = Known(pairs, int(max(index.max(), pairs.index.max(initial=0))) + 1)
    is_open = known.is_open(index.reshape(-1, 2)).reshape(same.shape)
    settled = np.isin(known.group[rows], known.group[landmarks])  # its cluster is known as surely as a landmark's
    doubt = np.where(is_open & ~settled[:, None], np.abs(same - 0.5), 1.0)
    opponent = doubt.argmin(1)
    doubt = doubt[np.arange(len(rows)), opponent]
    order = np.argsort(doubt, kind="stable")
    order = order[doubt[order] <= 0.5 - SURE]
    chosen = _spread_out(order, _borders(chances), n_questions)
    chosen = chosen[np.argsort(doubt[chosen], kind="stable")]
    return index[chosen, opponent[chosen]], same[chosen, opponent[chosen]]


def _borders(chances: Array) -> Array:
    """A number for the two best clusters of every row, (r,)."""
    if chances.shape[1] < 2:
        return np.zeros(len(chances), dtype=int)
    best = np.sort(np.argpartition(chances, -2, axis=1)[:, -2:], axis=1)
    return np.asarray(best @ (chances.shape[1], 1))


def _spread_out(order: Array, kinds: Array, n: int) -> Array:
    """The first n in order; those of a kind that already has a third of them wait until others run out."""
    most = max(n // 3, 1)
    places = np.empty(len(order), dtype=int)
    for kind in np.unique(kinds[order]):
        own = kinds[order] == kind
        places[own] = np.arange(own.sum())
    return order[np.argsort(places >= most, kind="stable")][:n]
