"""What the Displays share: where they draw, lines for answers, and texts that can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..extras import need
from ..looks import ALARM, INKS
from ..model_selection import last_step

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.text import Text

Array = NDArray[Any]

DASHES = (0, (4, 2.5))


def need_matplotlib() -> None:
    """Say how to get matplotlib where it is missing, before any work is done."""
    need("matplotlib.pyplot", "a picture")


def axes_for(ax: Axes | None) -> tuple[Axes, Figure | SubFigure]:
    """The user's axes, or those of a new figure with nothing but what is needed."""
    need_matplotlib()
    import matplotlib.pyplot as plt

    if ax is None:
        _, ax = plt.subplots(layout="constrained")
        ax.spines[["top", "right"]].set_visible(False)
    return ax, ax.figure


def text_colour() -> Any:
    """The colour of text in the user's style, dark or light."""
    from matplotlib import rcParams

    return rcParams["text.color"]


def model_name(estimator: Any) -> str:
    """The class of a model, or of the last step of a pipeline."""
    return type(last_step(estimator)).__name__


def draw_links(ax: Axes, segments: Array, same: Array, broken: Array, *, many: int) -> dict[str, LineCollection]:
    """Answers as lines (m, 2, 2): solid or dashed, grey or red, thinner from `many` on; only the kinds there are."""
    from matplotlib.collections import LineCollection

    thin = float(np.clip(np.sqrt(many / len(segments)), 0.3, 1))  # more would be one grey area
    quiet: dict[str, Any] = {"colors": INKS["f6"], "linewidths": 0.9 * thin, "alpha": 0.75 * thin, "zorder": 0.9}
    loud: dict[str, Any] = {"colors": ALARM, "linewidths": 1.6, "zorder": 2.5}
    kinds = {
        "same": (same & ~broken, quiet | {"linewidths": 1.4 * thin}),
        "different": (~same & ~broken, quiet | {"linestyles": [DASHES]}),
        "broken same": (same & broken, loud),
        "broken different": (~same & broken, loud | {"linestyles": [DASHES]}),
    }
    lines = {name: LineCollection(list(segments[mask]), **look) for name, (mask, look) in kinds.items() if mask.any()}
    for line in lines.values():
        ax.add_collection(line)
    return lines


def link_legend(ax: Axes, lines: dict[str, LineCollection], broken: str) -> None:
    """What the lines mean, under the picture; red solid and red dashed lines have one entry."""
    from matplotlib.lines import Line2D
    from matplotlib.transforms import ScaledTranslation

    looks: dict[str, tuple[str, dict[str, Any]]] = {
        "same": ("“same”", {"color": INKS["f6"], "linewidth": 1.4}),
        "different": ("“different”", {"color": INKS["f6"], "linewidth": 0.9, "linestyle": DASHES}),
        "broken different": (broken, {"color": ALARM, "linestyle": DASHES}),
        "broken same": (broken, {"color": ALARM}),
    }
    signs = {looks[kind][0]: Line2D([], [], **looks[kind][1]) for kind in looks if kind in lines}
    under = ax.transAxes + ScaledTranslation(0, -22 / 72, ax.figure.dpi_scale_trans)  # below the name of the axis
    place: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, 0), "bbox_transform": under, "ncols": 3}
    ax.legend(list(signs.values()), list(signs), **place, frameon=False, fontsize="small", borderaxespad=0)


def haloed(ax: Axes, place: Array, text: str, **look: Any) -> Text:
    """Text that can be read on points of any colour, in a light style and a dark one."""
    from matplotlib.patheffects import withStroke

    halo = withStroke(linewidth=3, foreground=ax.get_facecolor())
    settings = {"color": text_colour(), "ha": "center", "va": "center", "zorder": 4, "path_effects": [halo]} | look
    x, y = place.tolist()
    return ax.text(x, y, text, **settings)


def note(ax: Axes, text: str) -> Text:
    """A remark above the picture, on the right."""
    return ax.text(1, 1.01, text, transform=ax.transAxes, ha="right", va="bottom", fontsize="small", color=INKS["f6"])
