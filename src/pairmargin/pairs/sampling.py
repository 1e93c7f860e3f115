"""Drawing pairs whose answers follow from labels, for experiments."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.random import sample_without_replacement

from ..exceptions import InvalidPairsError, InvalidParameterError
from .arithmetic import places_between, places_within
from .checks import MAX_PAIRS, label_codes
from .pairs import Pairs

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    IntArray = NDArray[np.int64]


def sample_pairs(
    y: Sequence[object] | ArrayLike,
    n: int,
    *,
    balanced: bool = True,
    random_state: int | np.random.RandomState | None = None,
) -> Pairs:
    """Draw distinct pairs whose answers follow from labels.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels of any kind; rows labelled −1, None or NaN are never drawn.
    n : int
        How many pairs.
    balanced : bool, default=True
        Draw half of them among the "same" pairs and half among the "different" ones (of an odd `n`, one more "same"),
        evenly within each kind. False draws evenly among all pairs.
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    pairs : Pairs

    Examples
    --------
    >>> from pairmargin import sample_pairs
    >>> sample_pairs([0, 0, 0, 1, 1, 1, -1], n=6, random_state=0)
    Pairs(6 pairs: 3 same, 3 different)
    """
    if not isinstance(n, Integral) or isinstance(n, bool) or n < 0:
        raise InvalidParameterError(f"n should be a whole number from 0 up, not {n!r}")
    codes = label_codes(y)
    rows = np.argsort(codes, kind="stable")
    rows = rows[codes[rows] >= 0]  # the rows with a label, label by label
    size = np.bincount(codes[rows]).astype(np.int64)
    end = np.cumsum(size)
    rng = check_random_state(random_state)
    # Pairs are drawn as ranks among all of a kind, and only those drawn are ever written out.
    if balanced:
        later = len(rows) - end  # every row is "different" from the rows of the labels that come later
        same = _draw(int((size * (size - 1) // 2).sum()), (n + 1) // 2, '"same" pairs', rng)
        different = _draw(int((size * later).sum()), n // 2, '"different" pairs', rng)
        between = places_between(different, end - size, size, end, later)
        places = np.concatenate((places_within(same, size), between), axis=1)
    else:
        places = places_within(_draw(len(rows) * (len(rows) - 1) // 2, n, "pairs", rng), np.array([len(rows)]))
    index = np.sort(rows[places].T, axis=1)
    index = index[np.lexsort((index[:, 1], index[:, 0]))]
    return Pairs._make(index, codes[index[:, 0]] == codes[index[:, 1]])


def _draw(population: int, n: int, kind: str, rng: np.random.RandomState) -> IntArray:
    """`n` distinct ranks below `population`, each set of ranks as likely as any other."""
    if n > population:
        raise InvalidPairsError(f"{n} {kind} were asked for but these labels give only {population}; ask for fewer")
    # "auto" would write out a large population as soon as one in a hundred is drawn.
    method = "auto" if population < MAX_PAIRS else "tracking_selection"
    ranks: IntArray = sample_without_replacement(population, n, method=method, random_state=rng)
    return ranks.astype(np.int64, copy=False)
