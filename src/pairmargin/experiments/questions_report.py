"""Which strategy needs the fewest questions: the curves, and a table of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..looks import count_axis, line_look
from ..report import Table
from .figures import look, write_files
from .specs import QUESTIONS
from .tables import DATASETS, NOTHING, draws_of
from .verdicts import ACCURACY

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

NAME = "questions"
SHOWN = (100, 250, 500)  # numbers of answers in the table
OURS, RANDOM = "asked-default", "asked-random"
ASKERS = {  # the column `drawing`, or the method, of those who ask: how they are called
    OURS: "our default",
    RANDOM: "random",
    "asked-uncertain": "uncertain",
    "asked-explore": "explore and consolidate",
    "asked-min-max": "min-max",
    "asked-npu": "NPU",
    "cobras": "COBRAS, its own clusters",
}


def answers_asked_for(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of those who ask, with the column ``asker``, on data sets where our default has asked."""
    asker = frame["drawing"].where(frame["method"] != "cobras", "cobras")
    planned = [n in QUESTIONS.get(dataset, ()) for dataset, n in zip(frame["dataset"], frame["n_pairs"], strict=True)]
    rows = frame.assign(asker=asker)[asker.isin(list(ASKERS)) & np.array(planned, dtype=bool)]
    return rows[rows["dataset"].isin(rows["dataset"][rows["asker"] == OURS])]


def table(rows: pd.DataFrame) -> Table:
    """Mean accuracy of every asker at the numbers of `SHOWN`, the best of each place in bold.

    In the last column, after how many answers our default is as good as random ones are there.
    """
    means = rows.groupby(["asker", "dataset", "n_pairs"])[ACCURACY.name].mean()
    datasets = [dataset for dataset in DATASETS if dataset in means.index.get_level_values("dataset")]
    askers = [asker for asker in ASKERS if asker in means.index.get_level_values("asker")]
    places = [(dataset, n) for dataset in datasets for n in SHOWN]
    values = np.array([[means.get((asker, *place), np.nan) for asker in askers] for place in places])
    lines = [
        [f"{DATASETS[dataset]}, {n}", *(NOTHING if np.isnan(v) else ACCURACY.shown(v) for v in line)]
        for (dataset, n), line in zip(places, values, strict=True)
    ]
    for line, (dataset, n) in zip(lines, places, strict=True):
        curves = [means.get((asker, dataset), pd.Series(dtype=float)) for asker in (OURS, RANDOM)]
        line.append(answers_for(curves[1].get(n, np.nan), curves[0]))
    return Table(
        ["", *(ASKERS[asker] for asker in askers), "our default is as good as random after"],
        lines,
        best=frozenset((k, int(column) + 1) for k, line in enumerate(values) for column in _highest(line)),
        title="Questions. Accuracy (%)",
        caption="After so many answers of a person without errors, who is asked one question at a time; the default "
        f"estimator clusters. Means over {draws_of(rows)}.",
    )


def _highest(values: np.ndarray) -> np.ndarray:
    """Where the highest of some figures is, more than once if several are; nowhere if there are none."""
    return np.flatnonzero(values > np.nanmax(values, initial=-np.inf) - 1e-9)


def answers_for(accuracy: float, curve: pd.Series[float]) -> str:
    """The number of answers, on straight lines between those of a curve, from which on it has an accuracy."""
    if np.isnan(accuracy) or not len(curve) or accuracy > curve.max():
        return NOTHING
    first = int(np.argmax(curve.to_numpy() >= accuracy))
    if first == 0:
        return f"≤ {curve.index[0]}"
    (x0, x1), (y0, y1) = curve.index[first - 1 : first + 1], curve.iloc[first - 1 : first + 1]
    return f"{np.ceil(x0 + (x1 - x0) * (accuracy - y0) / (y1 - y0)):.0f}"


def save(rows: pd.DataFrame, folder: Path) -> list[Path]:
    """Write the curves as ``questions.png`` and ``questions.pdf``."""
    with look():
        return write_files(_drawn(rows), folder, NAME)


def _drawn(rows: pd.DataFrame) -> Canvas:
    """Accuracy against the number of answers, one panel a data set."""
    from matplotlib.figure import Figure as Canvas

    datasets = [dataset for dataset in DATASETS if (rows["dataset"] == dataset).any()]
    n_columns = min(3, len(datasets))
    n_rows = -(-len(datasets) // n_columns)
    canvas = Canvas(figsize=(4.4 * n_columns, 3.4 * n_rows + 0.5), layout="constrained")
    lines = {}
    for number, dataset in enumerate(datasets, start=1):
        axes = canvas.add_subplot(n_rows, n_columns, number)
        own = rows[rows["dataset"] == dataset]
        for k, asker in enumerate(ASKERS):
            means = own[own["asker"] == asker].groupby("n_pairs")[ACCURACY.name].mean() * ACCURACY.scale
            if len(means):
                settings = {
                    **line_look(k),
                    "linewidth": 2.8 if k == 0 else 1.3,
                    "marker": "osv^DPx"[k],
                    "markersize": 4,
                }
                (lines[asker],) = axes.plot(means.index, means, label=ASKERS[asker], zorder=10 - k, **settings)
        axes.set(title=DATASETS[dataset], xlabel="answers", ylabel=ACCURACY.label)
        count_axis(axes, np.unique(own["n_pairs"]).astype(float))
    handles = [lines[asker] for asker in ASKERS if asker in lines]
    canvas.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return canvas
