"""`LearningCurveDisplay`: whether it is worth asking more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from ..exceptions import InvalidDataError, InvalidParameterError, unknown_name
from ..looks import count_axis, line_look
from ..metrics import clustering_accuracy, pair_roc
from ..model_selection import cluster_labels, fit_with_pairs, score_pairs
from ..pairs import Pairs
from ..validation import check_rules, integer
from .parts import axes_for, model_name, need_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import FillBetweenPolyCollection

Array = NDArray[Any]
Scorer = Callable[[Any, Any, Pairs], float]  # a fitted model, X and held-out answers → how good it is


class LearningCurveDisplay:
    """How good a model is against the number of answers it was given.

    Make one with `from_estimator`. Several may be drawn into the same axes.

    Parameters
    ----------
    train_sizes : ndarray of shape (n_sizes,)
        Numbers of answers.
    scores : ndarray of shape (n_sizes, n_repeats)
        The score for every number of answers, in every repetition.
    score_name : str
        What the score is, for the axis.
    name : str, optional
        Of the model, for the legend.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    line_ : matplotlib Line2D
        The mean over the repetitions.
    band_ : matplotlib FillBetweenPolyCollection or None
        One standard deviation on either side, if there is more than one repetition.

    Examples
    --------
    >>> from pairmargin import KISSME, LearningCurveDisplay, sample_pairs
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_wine(return_X_y=True)
    >>> pairs = sample_pairs(y, 300, random_state=0)
    >>> display = LearningCurveDisplay.from_estimator(KISSME(), scale(X), pairs, random_state=0)
    >>> display.train_sizes.tolist(), display.scores.shape
    ([21, 52, 105, 158, 210], (5, 5))
    """

    def __init__(
        self, *, train_sizes: ArrayLike, scores: ArrayLike, score_name: str = "score", name: str | None = None
    ) -> None:
        self.train_sizes, self.scores = np.asarray(train_sizes), np.asarray(scores, dtype=np.float64)
        self.score_name, self.name = score_name, name
        if self.train_sizes.ndim != 1 or self.scores.shape[:1] != self.train_sizes.shape or self.scores.ndim != 2:
            raise InvalidDataError(
                f"scores have shape {self.scores.shape} but there are train_sizes of shape {self.train_sizes.shape}; "
                "give a row of scores for each size"
            )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        pairs: Pairs,
        y: ArrayLike | None = None,
        *,
        test_pairs: Pairs | None = None,
        train_sizes: Sequence[float] | ArrayLike = (0.1, 0.25, 0.5, 0.75, 1.0),
        scoring: str | Scorer | None = None,
        test_size: float = 0.3,
        n_repeats: int = 5,
        n_jobs: int | None = None,
        random_state: int | RandomState | None = None,
        name: str | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> LearningCurveDisplay:
        """Fit clones on more and more of the answers, and draw how good they are.

        Every repetition puts the answers in an order of its own, "same" and "different" well mixed, and fits on the
        first few, then on more: each set holds the one before.

        Parameters
        ----------
        estimator : estimator
            A model or a pipeline; it is cloned, never fitted itself.
        X : array-like of shape (n_samples, n_features)
            The points.
        pairs : Pairs
            The answers.
        y : array-like of shape (n_samples,), optional
            The true classes, if known: then the score is the accuracy of the clusters. They are never trained on.
        test_pairs : Pairs, optional
            Answers to score on. Without them and without ``y``, every repetition holds out some of ``pairs``.
        train_sizes : array-like, default=(0.1, 0.25, 0.5, 0.75, 1.0)
            Numbers of answers, or shares (floats up to 1) of all that can be trained on.
        scoring : {"auc", "agreement", "accuracy"} or callable, optional
            "auc", the default without ``y``, is the area under the ROC curve of the held-out answers; "agreement" the
            mean of the share of held-out "same" answers that the clusters keep and the same share of "different" ones;
            "accuracy", the default with ``y``, is `clustering_accuracy`. A callable gets the fitted model, X and the
            held-out answers.
        test_size : float or int, default=0.3
            The share of ``pairs`` to hold out, or their number.
        n_repeats : int, default=5
            Number of repetitions.
        n_jobs : int, optional
            Repetitions side by side, by joblib.
        random_state : int, RandomState instance or None, default=None
            For the order of the answers; the model has its own.
        name : str, optional
            For the legend; the name of its class if not given.
        ax : matplotlib Axes, optional
            Where to draw; a new figure if not given.
        **kwargs
            For `plot`.

        Returns
        -------
        display : LearningCurveDisplay
        """
        need_matplotlib()
        check_rules({"n_repeats": integer(1)}, {"n_repeats": n_repeats})
        score, score_name, needs_answers = _scorer(scoring, y)
        rng = check_random_state(random_state)
        holds_out = test_pairs is None and needs_answers
        draws = [
            pairs.split(test_size, random_state=rng) if holds_out else (pairs, test_pairs) for _ in range(n_repeats)
        ]
        sizes = _counts(train_sizes, len(draws[0][0]))
        jobs = (
            delayed(_nested_scores)(estimator, X, train, test, sizes, score, int(rng.randint(2**31 - 1)))
            for train, test in draws
        )
        scores = np.transpose(Parallel(n_jobs=n_jobs)(jobs))  # (sizes, repeats)
        display = cls(train_sizes=sizes, scores=scores, score_name=score_name, name=name or model_name(estimator))
        return display.plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, *, name: str | None = None, **kwargs: Any) -> LearningCurveDisplay:
        """Draw the mean and, around it, one standard deviation.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure if not given.
        name : str, optional
            For the legend.
        **kwargs
            Settings of the line, for ``Axes.plot``.

        Returns
        -------
        self : LearningCurveDisplay
        """
        self.ax_, self.figure_ = axes_for(ax)
        others = [line for line in self.ax_.get_lines() if line.get_gid() == "learning curve"]
        mean = self.scores.mean(axis=1)
        look = line_look(len(others)) | {"marker": "o", "label": name or self.name} | kwargs
        (self.line_,) = self.ax_.plot(self.train_sizes, mean, gid="learning curve", **look)
        self.band_: FillBetweenPolyCollection | None = None
        if self.scores.shape[1] > 1:
            spread, colour = self.scores.std(axis=1, ddof=1), self.line_.get_color()
            self.band_ = self.ax_.fill_between(
                self.train_sizes, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0
            )
        counts = np.concatenate([np.asarray(line.get_xdata(), dtype=float) for line in [*others, self.line_]])
        count_axis(self.ax_, np.unique(counts))
        self.ax_.set(xlabel="number of answers", ylabel=self.score_name)
        if look["label"]:
            self.ax_.legend(loc="lower right", frameon=False)
        return self


# How they are measured


def _scorer(scoring: str | Scorer | None, y: ArrayLike | None) -> tuple[Scorer, str, bool]:
    """How a fitted model is scored, what the score is called, and whether it looks at held-out answers."""
    if callable(scoring):
        return scoring, getattr(scoring, "__name__", "score"), True
    scoring = scoring or ("auc" if y is None else "accuracy")
    if scoring == "auc":
        return _auc, "AUC of held-out answers", True
    if scoring == "agreement":
        return _agreement, "agreement with held-out answers", True
    if scoring != "accuracy":
        raise InvalidParameterError(unknown_name("scoring", scoring, ("auc", "agreement", "accuracy")))
    if y is None:
        raise InvalidParameterError('scoring="accuracy" needs the true classes; pass y, or scoring="auc"')
    return partial(_accuracy, np.asarray(y)), "accuracy", False


def _auc(model: Any, X: Any, test: Pairs) -> float:
    return pair_roc(test, score_pairs(model, X, test, known=True)).auc


def _accuracy(y: Array, model: Any, X: Any, test: Pairs) -> float:
    return clustering_accuracy(y, cluster_labels(model, X, known=True))


def _agreement(model: Any, X: Any, test: Pairs) -> float:
    """The shares of "same" and of "different" answers that the clusters keep, and the mean of the two."""
    labels = cluster_labels(model, X, known=True)
    is_kept = (labels[test.index[:, 0]] == labels[test.index[:, 1]]) == test.same
    kinds = [kind for kind in (test.same, ~test.same) if kind.any()]
    return float(np.mean([np.average(is_kept[kind], weights=test.weight[kind]) for kind in kinds]))


def _counts(train_sizes: Sequence[float] | ArrayLike, n_pairs: int) -> Array:
    """Numbers of answers, rising, from numbers or shares."""
    given = np.unique(np.asarray(train_sizes))
    is_share = given.dtype.kind == "f"
    least, most = (0.0, 1.0) if is_share else (0, n_pairs)
    if given.ndim != 1 or not len(given) or given.dtype.kind not in "iuf" or given[0] < least or given[-1] > most:
        raise InvalidParameterError(
            f"train_sizes={train_sizes!r} should be numbers of answers from 0 to {n_pairs}, which is all that can be "
            "trained on, or shares from 0.0 to 1.0"
        )
    return np.unique(np.maximum(np.rint(given * n_pairs), given > 0).astype(int)) if is_share else given


def _nested_scores(
    estimator: Any, X: Any, train: Pairs, test: Pairs, sizes: Array, score: Scorer, seed: int
) -> list[float]:
    """The scores of clones that are fitted on the first so many of the shuffled answers."""
    order = _mixed_order(train.same, check_random_state(seed))
    fitted = (fit_with_pairs(clone(estimator), X, train[order[:size]] if size else None) for size in sizes)
    return [score(model, X, test) for model in fitted]


def _mixed_order(same: Array, rng: RandomState) -> Array:
    """The answers in random order, with both kinds in nearly the same proportion wherever the order is cut."""
    place = np.empty(len(same))
    for kind in (same, ~same):
        n = int(kind.sum())
        place[kind] = (rng.permutation(n) + rng.random_sample()) / max(n, 1)
    return np.argsort(place, kind="stable")
