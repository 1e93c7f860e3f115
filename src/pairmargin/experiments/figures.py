"""The paper's figures from our results: what they show, as plain values, and how it is drawn.

A `Figure` is a few panels of curves. It is saved whole as PNG and PDF; on the page every panel is an SVG of its own, so
that a phone can put one under the other, and takes its colours from the style sheet, so that it follows light and dark.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..looks import INKS, count_axis
from ..writing import new_file, refusals
from .specs import METHODS, Experiment
from .store import FALSE_POSITIVE_RATES
from .tables import DATASETS
from .verdicts import ACCURACY, ARI, Score

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Style:
    """How a method looks in every figure."""

    ink: str
    marker: str
    dashes: tuple[float, ...] = ()
    width: float = 1.5
    band: bool = True  # whether its spread is drawn
    filled: bool = True

    @property
    def colour(self) -> str:
        return INKS[self.ink]

    def line(self) -> dict[str, Any]:
        """The settings of matplotlib."""
        return {
            "color": self.colour,
            "linewidth": self.width,
            "linestyle": (0, self.dashes) if self.dashes else "-",
            "marker": self.marker,
            "markersize": 3.5 + self.width,
            "markerfacecolor": self.colour if self.filled else "none",
            "markeredgewidth": 1.2,
        }


STYLES = {  # ours strong, the paper's rivals in colour, further peers thin and grey
    "pairmargin": Style("f0", "o", width=2.8),
    "paper": Style("f1", "D", width=2.2),
    "pairmargin-no-free": Style("f0", "o", (4, 2), filled=False),
    "paper-no-free": Style("f1", "D", (4, 2), filled=False),
    "pairmargin-linear": Style("f0", "s", (1, 1.5), filled=False, band=False),
    "paper-linear": Style("f1", "s", (1, 1.5), filled=False, band=False),
    "xing": Style("f5", "v"),
    "itml": Style("f2", "^"),
    "kissme": Style("f3", "s"),
    "cmmc": Style("f4", "P"),
    "k-means": Style("f6", "x", (1, 2), 1.0, band=False),
    "cop-k-means": Style("f6", "<", (5, 2), 1.0, band=False),
    "pck-means": Style("f6", ">", (3, 1, 1, 1), 1.0, band=False),
    "mpck-means": Style("f6", "d", (), 1.0, band=False),
    "spectral": Style("f6", "*", (2, 1), 1.0, band=False),
}


@dataclass(frozen=True)
class Curve:
    """The mean over the draws of one method, and its standard deviation."""

    method: str
    x: Floats
    mean: Floats
    spread: Floats  # nan where there is one draw
    label: str


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]
    is_roc: bool = False

    @property
    def description(self) -> str:
        """What those read who cannot see it: every method with its last value."""
        ends = "; ".join(curve.label if self.is_roc else f"{curve.label} {curve.mean[-1]:.3g}" for curve in self.curves)
        return f"{self.title}: {self.y_label} against {self.x_label}. {ends}."


@dataclass(frozen=True)
class Figure:
    """Panels that belong together."""

    name: str
    panels: Sequence[Panel]

    @property
    def shared_legend(self) -> list[str]:
        """The methods that are drawn, in the order of `specs.METHODS`; none if the panels have their own legends."""
        drawn = {curve.method for panel in self.panels for curve in panel.curves if not panel.is_roc}
        return [method for method in METHODS if method in drawn]


# What is shown


def roc_figure(frame: pd.DataFrame, experiment: Experiment) -> Figure:
    """ROC curves of the held-out pairs, one panel a data set: ours and the paper's rivals.

    Parameters
    ----------
    frame : DataFrame
        The rows of the experiment.
    experiment : Experiment

    Returns
    -------
    figure : Figure
        Data sets and methods of which nothing has been computed are left out.
    """
    panels = []
    for dataset, rows in _datasets(frame, experiment):
        curves = [_roc(str(method), group) for method, group in rows.groupby("method") if STYLES[str(method)].band]
        curves.sort(key=lambda curve: float(curve.mean.mean()), reverse=True)  # the legend reads from best to worst
        panels.append(Panel(DATASETS[dataset], "false positive rate", "true positive rate", curves, is_roc=True))
    return Figure(experiment.name, panels)


def _roc(method: str, rows: pd.DataFrame) -> Curve:
    rates = np.array([np.fromstring(text, sep=" ") for text in rows["tpr"]])  # (draws, 51)
    spread = rates.std(axis=0, ddof=1) if len(rates) > 1 else np.full(rates.shape[1], np.nan)
    label = f"{METHODS[method].label}  {rows['auc'].mean():.3f}"
    return Curve(method, FALSE_POSITIVE_RATES, rates.mean(axis=0), spread, label)


def pairs_figure(frame: pd.DataFrame, experiment: Experiment) -> Figure:
    """Accuracy and ARI against the number of pairs, two panels a data set.

    Parameters
    ----------
    frame : DataFrame
        The rows of the experiment.
    experiment : Experiment

    Returns
    -------
    figure : Figure
    """
    panels = [
        Panel(DATASETS[dataset], "number of pairs", score.label, _curves(rows, score))
        for dataset, rows in _datasets(frame, experiment)
        for score in (ACCURACY, ARI)
    ]
    return Figure(experiment.name, panels)


def board_figure(frame: pd.DataFrame, experiment: Experiment, drawing: str) -> Figure:
    """Accuracy against the number of pairs that were drawn in one way, one panel a data set.

    Parameters
    ----------
    frame : DataFrame
        The rows of the methods to show.
    experiment : Experiment
    drawing : str

    Returns
    -------
    figure : Figure
    """
    drawn = frame[(frame["drawing"] == drawing) & frame[ACCURACY.name].notna()]
    panels = [
        Panel(DATASETS[dataset], "number of pairs", ACCURACY.label, _curves(rows, ACCURACY))
        for dataset, rows in _datasets(drawn, experiment)
    ]
    return Figure(f"{experiment.name}-{drawing}", panels)


def _curves(rows: pd.DataFrame, score: Score) -> list[Curve]:
    curves = []
    for method in (method for method in METHODS if (rows["method"] == method).any()):
        by_count = rows[rows["method"] == method].groupby("n_pairs")[score.name]
        mean, spread = by_count.mean() * score.scale, by_count.std() * score.scale
        x = mean.index.to_numpy(float)
        curves.append(Curve(method, x, mean.to_numpy(), spread.to_numpy(), METHODS[method].label))
    return curves


def _datasets(frame: pd.DataFrame, experiment: Experiment) -> Iterator[tuple[str, pd.DataFrame]]:
    """The data sets of an experiment of which something has been computed."""
    for dataset in experiment.datasets:
        rows = frame[frame["dataset"] == dataset]
        if not rows.empty:
            yield dataset, rows


# How it is drawn


def save(figure: Figure, folder: Path) -> list[Path]:
    """Write a figure as ``<name>.png`` and ``<name>.pdf``, byte for byte the same for the same results.

    Parameters
    ----------
    figure : Figure
    folder : Path
        Made if it is not there.

    Returns
    -------
    files : list of Path
    """
    with look():
        return write_files(_draw_all(figure), folder, figure.name)


def write_files(canvas: Canvas, folder: Path, name: str) -> list[Path]:
    """A drawing as PNG and as PDF, without anything in them that changes from run to run."""
    with refusals(folder):
        folder.mkdir(parents=True, exist_ok=True)
    settings: dict[str, dict[str, Any]] = {
        "png": {"dpi": 200, "metadata": {"Software": None}},
        "pdf": {"metadata": {"CreationDate": None, "Producer": None, "Creator": None}},
    }
    for form, own in settings.items():
        path = folder / f"{name}.{form}"
        with new_file(path) as beside, refusals(path):
            canvas.savefig(beside, format=form, **own)
    return [folder / f"{name}.{form}" for form in settings]


def panel_svg(panel: Panel, name: str) -> str:
    """One panel as an SVG for a page whose style sheet has the colours of `INKS`.

    Parameters
    ----------
    panel : Panel
    name : str
        Goes before every id in it, because ids are unique on a page.

    Returns
    -------
    svg : str
    """
    from matplotlib.figure import Figure as Canvas

    with look():
        canvas = Canvas(figsize=(3.5, 3.5) if panel.is_roc else (4.0, 3.1), layout="constrained")
        _draw(canvas.add_subplot(), panel)
        return inline(canvas, name)


def sign_svg(method: str, name: str) -> str:
    """The sign of a method in the legend of a page, its line with its marker; `name` goes before every id in it."""
    from matplotlib.figure import Figure as Canvas

    with look():
        canvas = Canvas(figsize=(0.45, 0.16))
        axes = canvas.add_axes((0, 0, 1, 1), xlim=(0, 1), ylim=(0, 1))
        axes.axis("off")
        axes.plot([0.05, 0.5, 0.95], [0.5, 0.5, 0.5], **STYLES[method].line(), markevery=[1])
        return inline(canvas, f"{name}-{method}").replace("<svg ", '<svg class="sign" ', 1)


@contextmanager
def look() -> Iterator[None]:
    """The settings of matplotlib for all figures; those of the caller come back."""
    import matplotlib as mpl

    settings: dict[Any, Any] = {
        "font.family": "DejaVu Sans",  # comes with matplotlib: the same picture everywhere
        "font.size": 9,
        "text.color": INKS["text"],
        "axes.edgecolor": INKS["soft"],
        "axes.labelcolor": INKS["soft"],
        "axes.titlecolor": INKS["text"],
        "axes.titlesize": 10.5,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "axes.grid": True,
        "grid.color": INKS["rule"],
        "xtick.color": INKS["soft"],
        "ytick.color": INKS["soft"],
        "legend.frameon": False,
        "legend.facecolor": INKS["card"],
        "legend.edgecolor": "none",
        "figure.constrained_layout.w_pad": 0.1,
        "pdf.fonttype": 42,
        "svg.fonttype": "none",
        "svg.hashsalt": "pairmargin",
    }
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(settings)
        yield


def _draw_all(figure: Figure) -> Canvas:
    """All panels in a grid, with their legend under them."""
    from matplotlib.figure import Figure as Canvas
    from matplotlib.lines import Line2D

    n_columns = 3 if len(figure.panels) > 4 else 2
    n_rows = -(-len(figure.panels) // n_columns)
    n_legend_rows = -(-len(figure.shared_legend) // 4)
    canvas = Canvas(figsize=(4.4 * n_columns, 3.6 * n_rows + 0.25 * n_legend_rows), layout="constrained")
    for number, panel in enumerate(figure.panels, start=1):
        _draw(canvas.add_subplot(n_rows, n_columns, number), panel)
    signs = [Line2D([], [], **STYLES[method].line(), label=METHODS[method].label) for method in figure.shared_legend]
    if signs:
        canvas.legend(handles=signs, loc="outside lower center", ncols=4, handlelength=3)
    return canvas


def _draw(axes: Axes, panel: Panel) -> None:
    """The curves of a panel, ours last and so on top."""
    for curve in sorted(panel.curves, key=lambda curve: STYLES[curve.method].width):
        style = STYLES[curve.method]
        line = {**style.line(), "marker": ""} if panel.is_roc else style.line()
        axes.plot(curve.x, curve.mean, **line, label=curve.label)
        if style.band and (style.width > 2 or not panel.is_roc):  # more bands than ours would hide the ROC curves
            low, high = curve.mean - curve.spread, curve.mean + curve.spread
            axes.fill_between(curve.x, low, high, color=style.colour, alpha=0.14, linewidth=0)
    axes.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label)
    (_finish_roc if panel.is_roc else _finish_counts)(axes, panel)


def _finish_roc(axes: Axes, panel: Panel) -> None:
    """Square axes, the diagonal of a coin, and the areas in the corner that good curves leave empty."""
    axes.plot([0, 1], [0, 1], color=INKS["soft"], linewidth=0.8, linestyle=(0, (1, 2)))
    axes.set(xlim=(0, 1), ylim=(0, 1.005), aspect="equal")
    lines = {line.get_label(): line for line in axes.get_lines()}
    handles = [lines[curve.label] for curve in panel.curves]
    axes.legend(
        handles=handles,
        loc="lower right",
        borderpad=0.2,
        fontsize=7.5,
        frameon=True,
        framealpha=0.85,
        handlelength=1.2,
        labelspacing=0.25,
    )


def _finish_counts(axes: Axes, panel: Panel) -> None:
    """A tick at every number of pairs."""
    count_axis(axes, np.unique(np.concatenate([curve.x for curve in panel.curves])))
    axes.grid(axis="x", visible=False)


def _shortened(tag: re.Match[str]) -> str:
    """A tag with hundredths of a point, which are enough, and half as long; words between tags stay as they are."""
    return re.sub(r"(\.\d\d)\d+", r"\1", tag[0])


def inline(canvas: Canvas, name: str) -> str:
    """A drawing as SVG inside a page: no prolog, its own ids, the colours and the font of the page."""
    file = io.StringIO()
    canvas.savefig(file, format="svg", transparent=True, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    svg = file.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r'\s(xmlns(:\w+)?|version|width|height)="[^"]*"', "", svg[: svg.index(">")]) + svg[svg.index(">") :]
    svg = svg.replace("<svg", '<svg aria-hidden="true"', 1)
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    svg = re.sub("'DejaVu Sans'[^;\"]*", "system-ui, sans-serif", svg)
    svg = re.sub("<[^>]*>", _shortened, svg)
    for ink, colour in INKS.items():
        svg = svg.replace(colour, f"var(--{ink})")
    return svg
