"""`ConstraintGraphDisplay`: the answers as a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..exceptions import InvalidDataError, InvalidPairsError
from ..looks import INKS, cluster_look
from ..pairs import Conflict, Pairs
from .graph_layout import laid_out, largest_parts
from .parts import axes_for, draw_links, link_legend, note

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.text import Text

Array = NDArray[Any]

ROOM_FOR_NUMBERS = 110  # square points of a dot, from which on the number of its row fits in


class ConstraintGraphDisplay:
    """The answers as a graph: groups that "same" answers make, "different" answers between them, contradictions in red.

    A dot is a row. Solid lines are "same", and the rows that they join stand together on a grey disc; dashed lines are
    "different". Of a contradiction, the "different" answer and the chain of "same" answers against it are red. Make one
    with `from_pairs`.

    Parameters
    ----------
    pairs : Pairs
        The answers to draw.
    places : ndarray of shape (n_points, 2)
        Where each of ``pairs.points`` is.
    discs : ndarray of shape (n_groups, 3)
        Middle and radius of the groups of two rows and more.
    labels : ndarray of shape (n_points,), optional
        The clusters of the points, for their colours.
    n_groups, n_shown : int, optional
        How many groups there are, and how many of them are drawn; a row in no "same" answer is a group of its own.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    conflicts : list of Conflict
        The contradictions.
    points_ : matplotlib PathCollection
        The rows.
    lines_ : dict of matplotlib LineCollection
        The answers: "same", "different", "broken same" and "broken different".
    texts_ : list of matplotlib Text
        The row numbers, if there is room for them.
    note_ : matplotlib Text or None
        How many groups are shown, if not all are.

    Examples
    --------
    >>> from pairmargin import ConstraintGraphDisplay, Pairs
    >>> pairs = Pairs.from_lists(must_link=[(0, 1), (1, 2)], cannot_link=[(0, 2), (2, 3)])
    >>> display = ConstraintGraphDisplay.from_pairs(pairs)
    >>> print(display.conflicts[0])
    cannot_link[0] = (0, 2) is "different" but must_link[0] = (0, 1), must_link[1] = (1, 2) chain them as "same"
    """

    def __init__(
        self,
        *,
        pairs: Pairs,
        places: Array,
        discs: Array,
        labels: Array | None = None,
        n_groups: int | None = None,
        n_shown: int | None = None,
    ) -> None:
        self.pairs, self.places, self.discs, self.labels = pairs, places, discs, labels
        self.n_groups, self.n_shown = n_groups, n_shown
        self.conflicts: list[Conflict] = pairs.conflicts()

    @classmethod
    def from_pairs(
        cls,
        pairs: Pairs,
        *,
        labels: ArrayLike | None = None,
        max_groups: int = 150,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> ConstraintGraphDisplay:
        """Lay the answers out and draw them; the same answers give the same picture.

        Parameters
        ----------
        pairs : Pairs
            The answers.
        labels : array-like of shape (n_samples,), optional
            The cluster of every row of the data, for the colours of the dots.
        max_groups : int, default=150
            If there are more, so many in the largest connected parts are drawn, and the picture says so.
        ax : matplotlib Axes, optional
            Where to draw; a new figure if not given.
        **kwargs
            For `plot`.

        Returns
        -------
        display : ConstraintGraphDisplay
        """
        if not len(pairs):
            raise InvalidPairsError("there are no answers to draw; give at least one")
        n_rows = int(pairs.points[-1]) + 1
        clusters = None if labels is None else np.asarray(labels)
        if clusters is not None and (clusters.ndim != 1 or len(clusters) < n_rows):
            raise InvalidDataError(
                f"labels have shape {clusters.shape} but the pairs name row {n_rows - 1}; give one each"
            )
        shown, n_groups, n_shown = largest_parts(pairs, max_groups)
        places, discs = laid_out(shown)
        display = cls(
            pairs=shown,
            places=places,
            discs=discs,
            labels=None if clusters is None else clusters[shown.points],
            n_groups=n_groups,
            n_shown=n_shown,
        )
        return display.plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, *, numbers: bool | None = None, **kwargs: Any) -> ConstraintGraphDisplay:
        """Draw the graph.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure if not given.
        numbers : bool, optional
            Whether every dot has the number of its row; if there is room and nothing is said.
        **kwargs
            Settings of the dots, for ``Axes.scatter``.

        Returns
        -------
        self : ConstraintGraphDisplay
        """
        self.ax_, self.figure_ = axes_for(ax)
        from matplotlib.patches import Circle

        self.ax_.set_axis_off()
        self._set_limits()
        for x, y, radius in self.discs:
            self.ax_.add_patch(Circle((x, y), radius, facecolor=INKS["f6"], alpha=0.18, linewidth=0, zorder=0.5))
        index = np.searchsorted(self.pairs.points, self.pairs.index)
        self.lines_ = draw_links(self.ax_, self.places[index], self.pairs.same, self._in_conflict(), many=150)
        size = self._dot_size()
        look: dict[str, Any] = {"s": size, "c": self._colours(), "linewidths": 0, "zorder": 3} | kwargs
        self.points_: PathCollection = self.ax_.scatter(*self.places.T, **look)
        self.texts_ = self._draw_numbers() if (size >= ROOM_FOR_NUMBERS if numbers is None else numbers) else []
        link_legend(self.ax_, self.lines_, "contradiction")
        self.note_: Text | None = None
        if self.n_groups is not None and self.n_shown is not None and self.n_shown < self.n_groups:
            self.note_ = note(self.ax_, f"{self.n_shown:,} of {self.n_groups:,} groups shown")
        return self

    def _set_limits(self) -> None:
        """Room for all dots and discs, on one scale for both directions."""
        outer = np.vstack((np.column_stack((self.places, np.full(len(self.places), 0.5))), self.discs))
        low, high = (outer[:, :2] - outer[:, 2:]).min(0), (outer[:, :2] + outer[:, 2:]).max(0)
        self.ax_.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")

    def _dot_size(self) -> float:
        """The size of dots in square points, so that they keep apart whatever the size of the picture."""
        box = self.ax_.get_window_extent()
        width, height = np.ptp(self.ax_.get_xlim()), np.ptp(self.ax_.get_ylim())
        unit = min(box.width / width, box.height / height) * 72 / self.figure_.dpi  # points
        return float(np.clip((0.8 * unit) ** 2, 8, 260))

    def _in_conflict(self) -> Array:
        """Which answers are part of a contradiction, (m,)."""
        mask = np.zeros(len(self.pairs), dtype=bool)
        for conflict in self.conflicts:
            mask[[conflict.different, *conflict.chain]] = True
        return mask

    def _colours(self) -> list[str]:
        """The colour of every dot."""
        if self.labels is None:
            return [INKS["f0"]] * len(self.places)
        return [cluster_look(k)["color"] for k in np.unique(self.labels, return_inverse=True)[1].tolist()]

    def _draw_numbers(self) -> list[Text]:
        """The row numbers, dark on light dots and light on dark ones."""
        from matplotlib.colors import to_rgb

        rows = self.pairs.points.tolist()
        height = float(np.sqrt(self.points_.get_sizes()[0])) / (0.7 * len(str(rows[-1])) + 0.6)  # the longest fits in
        look: dict[str, Any] = {"ha": "center", "va": "center_baseline", "fontsize": height, "zorder": 4}
        texts = []
        for row, (x, y), colour in zip(rows, self.places, self._colours(), strict=True):
            ink = INKS["text"] if np.dot(to_rgb(colour), (0.3, 0.6, 0.1)) > 0.6 else INKS["card"]
            texts.append(self.ax_.text(x, y, f"{row}", color=ink, **look))
        return texts
