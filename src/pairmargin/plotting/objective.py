"""`ObjectiveDisplay`: what the training did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..exceptions import InvalidDataError, InvalidParameterError
from ..looks import cluster_look, parts_of
from ..model_selection import last_step
from .parts import axes_for, text_colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection


class ObjectiveDisplay:
    """The objective and its parts, iteration by iteration.

    The parts are stacked: their sum is the objective. Make one with `from_estimator` or `from_history`.

    Parameters
    ----------
    history : list of dict
        Rows as in ``history_`` of a fitted `MaxMarginClustering`.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    line_ : matplotlib Line2D
        The objective.
    parts_ : dict of matplotlib PolyCollection
        The parts by their names in ``history_``, from the bottom up.

    Examples
    --------
    >>> from pairmargin import MaxMarginClustering, ObjectiveDisplay
    >>> from sklearn.datasets import load_wine
    >>> model = MaxMarginClustering(3, hidden_layer_sizes=(), random_state=0).fit(load_wine().data)
    >>> list(ObjectiveDisplay.from_estimator(model).parts_)
    ['norm', 'free', 'neighbours']
    """

    def __init__(self, *, history: Sequence[Mapping[str, Any]]) -> None:
        if not history:
            raise InvalidDataError("the history has no rows; give history_ of a fitted MaxMarginClustering")
        self.history = history

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None, **kwargs: Any) -> ObjectiveDisplay:
        """Draw what a fitted model went through.

        Parameters
        ----------
        estimator : MaxMarginClustering
            Fitted; or a fitted pipeline that ends with one.
        ax : matplotlib Axes, optional
            Where to draw; a new figure if not given.
        **kwargs
            For `plot`.

        Returns
        -------
        display : ObjectiveDisplay
        """
        model = last_step(estimator)
        if not hasattr(model, "history_"):
            raise InvalidParameterError(
                f"{type(model).__name__} has no history_; give a MaxMarginClustering that is fitted"
            )
        return cls.from_history(model.history_, ax=ax, **kwargs)

    @classmethod
    def from_history(
        cls, history: Sequence[Mapping[str, Any]], *, ax: Axes | None = None, **kwargs: Any
    ) -> ObjectiveDisplay:
        """Draw the rows of a history.

        Parameters
        ----------
        history : list of dict
            Rows as in ``history_`` of a fitted `MaxMarginClustering`.
        ax, **kwargs
            As in `from_estimator`.

        Returns
        -------
        display : ObjectiveDisplay
        """
        return cls(history=history).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> ObjectiveDisplay:
        """Draw the parts as a stack and the objective on top of it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure if not given.
        **kwargs
            Settings of the line of the objective, for ``Axes.plot``.

        Returns
        -------
        self : ObjectiveDisplay
        """
        self.ax_, self.figure_ = axes_for(ax)
        from matplotlib.ticker import MaxNLocator

        x = [row["iteration"] for row in self.history]
        parts = parts_of(self.history)
        heights = [[row[part] for row in self.history] for part in parts]
        colours = [cluster_look(ink)["color"] for _, ink in parts.values()]
        bands = self.ax_.stackplot(x, heights, colors=colours, labels=[label for label, _ in parts.values()], alpha=0.8)
        self.parts_: dict[str, PolyCollection] = dict(zip(parts, bands, strict=True))
        look = {"color": text_colour(), "linewidth": 1.8, "label": "objective"} | kwargs
        (self.line_,) = self.ax_.plot(x, [row["objective"] for row in self.history], **look)
        self.ax_.set(xlabel="iteration", ylabel="objective", ylim=(0, None))
        self.ax_.xaxis.set_major_locator(MaxNLocator(integer=True))
        self.ax_.margins(x=0)
        self.ax_.legend(handles=[self.line_, *bands[::-1]], frameon=False)  # from the top down, as in the picture
        return self
