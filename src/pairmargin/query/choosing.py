"""`select_pairs`: the strategies by name."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from ..exceptions import FewQuestionsWarning, InvalidParameterError, unknown_name
from ..pairs import Pairs
from ..validation import check_rules, integer
from .known import Known
from .neighbourhoods import explore_and_consolidate, min_max, normalised_point_uncertainty
from .simple import ask_at_random, ask_the_uncertain
from .teaching import ask_what_teaches_most
from .view import View

Array = NDArray[Any]
Strategy = Callable[[View, Known, int, RandomState], Array]

STRATEGIES: dict[str, Strategy] = {
    "default": ask_what_teaches_most,
    "random": ask_at_random,
    "uncertain": ask_the_uncertain,
    "explore": explore_and_consolidate,
    "min-max": min_max,
    "npu": normalised_point_uncertainty,
}


def select_pairs(
    model: Any,
    X: ArrayLike,
    pairs: Pairs | None,
    n: int,
    strategy: str = "default",
    random_state: int | RandomState | None = None,
    *,
    exclude: ArrayLike = (),
) -> Array:
    """The pairs to ask about next.

    No question is asked whose answer follows from the others, and of several at once none is about what another is
    about already. Where answers contradict each other, only those are believed that are in no contradiction.

    Parameters
    ----------
    model : MaxMarginClustering or None
        Fitted to X and, at best, to the answers so far. None, or one that is not fitted yet, looks at X alone.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The points.
    pairs : Pairs or None
        The answers so far.
    n : int
        How many pairs.
    strategy : str, default="default"
        "default" asks about the point that teaches most, or whether two cores are the same; "random" draws evenly;
        "uncertain" asks where "same" and "different" of eq. (8) are closest; "explore" is explore-and-consolidate,
        "min-max" what is farthest from all that is known, "npu" normalised point-based uncertainty: see
        `pairmargin.query.teaching` and `pairmargin.query.neighbourhoods`.
    random_state : int, RandomState instance or None, default=None
    exclude : array-like of shape (m, 2), default=()
        Pairs that are not to be asked, such as those that a person was unsure of, nor others that say the same.

    Returns
    -------
    index : ndarray of shape (≤ n, 2)
        Row numbers, the most valuable question first. With fewer rows than `n`, and a `FewQuestionsWarning`, if there
        are not as many open questions.

    Examples
    --------
    >>> from pairmargin import Pairs, select_pairs
    >>> pairs = Pairs.from_lists(must_link=[(0, 1)], cannot_link=[(1, 2)])
    >>> select_pairs(None, [[0.0], [0.1], [5.0], [5.1]], pairs, 2, "random", random_state=0).shape
    (2, 2)
    """
    return choose(View.of(model, X, random_state), pairs, n, strategy, random_state, exclude=exclude)


def choose(
    view: View,
    pairs: Pairs | None,
    n: int,
    strategy: str = "default",
    random_state: int | RandomState | None = None,
    *,
    exclude: ArrayLike = (),
) -> Array:
    """`select_pairs` for one who keeps the view between two questions, which is where most of the time goes."""
    check_rules({"n": integer(0)}, {"n": n})
    if strategy not in STRATEGIES:
        raise InvalidParameterError(unknown_name("strategy", strategy, STRATEGIES))
    known = Known(Pairs.check(pairs, len(view.scores)), len(view.scores), exclude)
    found = STRATEGIES[strategy](view, known, n, check_random_state(random_state)) if n else np.empty((0, 2))
    if len(found) < n:
        warnings.warn(
            f"{n} pairs were asked for but only {len(found)} questions are left whose answers do not follow from the "
            "others",
            FewQuestionsWarning,
            stacklevel=3,
        )
    return np.asarray(found, dtype=np.int64)
