"""A person for tests and experiments, who knows the labels and errs now and then."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from ..exceptions import InvalidParameterError
from .session import LabelingSession
from .store import DIFFERENT, SAME, UNSURE


class SimulatedPerson:
    """Answers by labels.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        The truth.
    error_rate, unsure_rate : float, default=0
        The share of answers that are wrong, and that are "unsure".
    name : str, default=""
        Who answers.
    random_state : int, RandomState instance or None, default=None

    Examples
    --------
    >>> from pairmargin import LabelingSession, SimulatedPerson, clustering_accuracy
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> session = LabelingSession(X, n_clusters=3, random_state=0)
    >>> SimulatedPerson(y).answer(session, 30, refit_every=15)
    >>> clustering_accuracy(y, session.labels) > 0.9
    True
    """

    def __init__(
        self,
        labels: ArrayLike,
        *,
        error_rate: float = 0.0,
        unsure_rate: float = 0.0,
        name: str = "",
        random_state: int | RandomState | None = None,
    ) -> None:
        for parameter, rate in {"error_rate": error_rate, "unsure_rate": unsure_rate}.items():
            if not 0 <= rate <= 1:
                raise InvalidParameterError(f"{parameter}={rate!r} must be between 0 and 1")
        self.labels, self.name = np.asarray(labels), name
        self.error_rate, self.unsure_rate = error_rate, unsure_rate
        self._rng = check_random_state(random_state)

    def judge(self, i: int, j: int) -> str:
        """What this person says of two rows."""
        if self._rng.random_sample() < self.unsure_rate:
            return UNSURE
        is_same = bool(self.labels[i] == self.labels[j])
        errs = self._rng.random_sample() < self.error_rate
        return SAME if is_same != errs else DIFFERENT

    def answer(self, session: LabelingSession, n: int, *, refit_every: int = 10, **refit: Any) -> None:
        """Answer questions of a session, and let it learn after every few and at the end.

        Parameters
        ----------
        session : LabelingSession
        n : int
            How many questions; fewer if the session has no more.
        refit_every : int, default=10
        **refit
            For `LabelingSession.refit`.
        """
        left = n
        while left > 0 and len(pairs := session.next_pairs(min(refit_every, left), who=self.name)):
            for i, j in pairs.tolist():
                session.answer(self.judge(i, j), (i, j), who=self.name)
            left -= len(pairs)
            session.refit(**refit)
