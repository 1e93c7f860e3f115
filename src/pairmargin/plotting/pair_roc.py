"""`PairRocDisplay`: how well same is told from different."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike, NDArray

from ..looks import INKS, line_look
from ..metrics import pair_roc
from ..model_selection import score_pairs
from ..pairs import Pairs
from .parts import axes_for, model_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

Array = NDArray[Any]


class PairRocDisplay:
    """The ROC curve of held-out answers, "same" being the positive one.

    Make one with `from_estimator` or `from_predictions`. Several may be drawn into the same axes.

    Parameters
    ----------
    fpr, tpr : ndarray
        False and true positive rates.
    roc_auc : float
        The area under the curve.
    name : str, optional
        Of the model, for the legend.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    line_ : matplotlib Line2D
        The curve.
    chance_line_ : matplotlib Line2D or None
        The diagonal, if this display drew it.

    Examples
    --------
    >>> from pairmargin import KISSME, PairRocDisplay, sample_pairs
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_wine(return_X_y=True)
    >>> train, test = sample_pairs(y, 200, random_state=0).split(random_state=0)
    >>> metric = KISSME().fit(scale(X), pairs=train)
    >>> PairRocDisplay.from_estimator(metric, scale(X), test).roc_auc > 0.9
    True
    """

    def __init__(self, *, fpr: Array, tpr: Array, roc_auc: float, name: str | None = None) -> None:
        self.fpr, self.tpr, self.roc_auc, self.name = fpr, tpr, roc_auc, name

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, pairs: Pairs, *, name: str | None = None, ax: Axes | None = None, **kwargs: Any
    ) -> PairRocDisplay:
        """Draw the curve of a fitted model.

        Parameters
        ----------
        estimator : estimator
            A fitted model or pipeline. One that has clusters but no ``pair_score`` scores 1 or 0.
        X : array-like of shape (n_samples, n_features)
            The points.
        pairs : Pairs
            Answers that the model was not fitted on.
        name : str, optional
            For the legend; the name of its class if not given.
        ax : matplotlib Axes, optional
            Where to draw; a new figure if not given.
        **kwargs
            For `plot`.

        Returns
        -------
        display : PairRocDisplay
        """
        score = score_pairs(estimator, X, pairs)
        return cls.from_predictions(pairs, score, name=name or model_name(estimator), ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        pairs: Pairs | ArrayLike,
        score: ArrayLike,
        *,
        name: str | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> PairRocDisplay:
        """Draw the curve of scores.

        Parameters
        ----------
        pairs : Pairs or array-like of bool of shape (m,)
            The answers.
        score : array-like of shape (m,)
            The larger, the more likely the same, as for `pair_roc`.
        name, ax, **kwargs
            As in `from_estimator`.

        Returns
        -------
        display : PairRocDisplay
        """
        roc = pair_roc(pairs, score)
        return cls(fpr=roc.fpr, tpr=roc.tpr, roc_auc=roc.auc, name=name).plot(ax, **kwargs)

    def plot(
        self, ax: Axes | None = None, *, name: str | None = None, chance: bool = True, **kwargs: Any
    ) -> PairRocDisplay:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure if not given.
        name : str, optional
            For the legend.
        chance : bool, default=True
            Whether to draw the diagonal of a coin, unless the axes have one.
        **kwargs
            Settings of the curve, for ``Axes.plot``.

        Returns
        -------
        self : PairRocDisplay
        """
        self.ax_, self.figure_ = axes_for(ax)
        drawn = [line.get_gid() for line in self.ax_.get_lines()]
        self.chance_line_: Line2D | None = None
        if chance and "chance" not in drawn:
            settings: dict[str, Any] = {"color": INKS["f6"], "linewidth": 1, "linestyle": (0, (1, 2)), "zorder": 1}
            (self.chance_line_,) = self.ax_.plot([0, 1], [0, 1], gid="chance", label="chance  0.500", **settings)
        label = f"{name or self.name or 'AUC'}  {self.roc_auc:.3f}"
        look = line_look(drawn.count("roc")) | {"label": label} | kwargs
        (self.line_,) = self.ax_.plot(self.fpr, self.tpr, gid="roc", **look)
        self.ax_.set(xlabel="“different” pairs called same", ylabel="“same” pairs called same")
        self.ax_.set(xlim=(-0.005, 1), ylim=(0, 1.01), aspect="equal")
        lines = [line for line in self.ax_.get_lines() if line.get_gid() in ("roc", "chance")]
        lines.sort(key=lambda line: line.get_gid() == "chance")  # chance is the last in the legend
        self.ax_.legend(handles=lines, loc="lower right", title="area under the curve", alignment="left", frameon=False)
        return self
