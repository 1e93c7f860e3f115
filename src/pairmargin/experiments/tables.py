"""The paper's tables from our results, and what the methods cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from ..dataset_sources import SOURCES, Source
from ..report import Table
from .specs import METHODS, PRINTED, PRINTED_FROM, Experiment
from .verdicts import ACCURACY, ARI, Score

DATASETS = {  # how the paper writes them
    "glass": "Glass",
    "wdbc": "Wdbc",
    "wine": "Wine",
    "sonar": "Sonar",
    "segmentation": "Segmentation",
    "reuters": "Reuters",
    "mnist": "MNIST",
    "coil20": "COIL-20",
    "coil100": "COIL-100",
    "digits": "digits",
}
PRINTED_SIZES = {  # Table 1 of the paper: vectors, dimensions, clusters
    "glass": (214, 9, 7),
    "wdbc": (569, 32, 2),
    "wine": (178, 13, 3),
    "sonar": (208, 60, 2),
    "segmentation": (2310, 19, 7),
    "reuters": (8293, 18933, 65),
}
SIZE_NOTES = {
    "glass": "Glass: the data define seven kinds of glass, of which six occur.",
    "wdbc": "Wdbc: the paper's 32 columns count the patient's number and the diagnosis, which is the answer itself.",
    "reuters": "Reuters: the 18,933 terms are projected to their main directions on loading, as in the paper.",
}
TOLERATED = 0.05  # a result this far below the printed one is marked
MARK = "†"
NOTHING = "–"
ONE_DRAW = "1 draw"
NBSP = "\N{NO-BREAK SPACE}"
_NAMES = {"method": list(METHODS), "dataset": list(DATASETS)}


def table1() -> Table:
    """The data sets of the paper's Table 1, as `load_dataset` gives them and as printed."""
    ours = {name: _loaded_size(SOURCES[name]) for name in PRINTED_SIZES}
    rows = [[DATASETS[name], *map(_beside, ours[name], printed)] for name, printed in PRINTED_SIZES.items()]
    notes = [note for name, note in SIZE_NOTES.items() if ours[name] != PRINTED_SIZES[name]]
    caption = "Sizes as loaded here; in brackets those that the paper prints, where they differ."
    return Table(["", "points", "features", "classes"], rows, title="Table 1. Data sets", caption=caption, notes=notes)


def _loaded_size(source: Source) -> tuple[int, int, int]:
    return source.n_rows, len(source.feature_names), len(source.classes)


def _beside(ours: int, printed: int) -> str:
    return f"{ours:,}" if ours == printed else f"{ours:,} ({printed:,})"


class Comparison:
    """One score of every method on every data set of an experiment.

    Parameters
    ----------
    frame : DataFrame
        The rows of the experiment, with one number of pairs a data set.
    experiment : Experiment
    score : Score
    """

    def __init__(self, frame: pd.DataFrame, experiment: Experiment, score: Score) -> None:
        self.score = score
        self.datasets = list(experiment.datasets)
        self.methods = [method for method in experiment.methods if (frame["method"] == method).any()]
        self._n_pairs = frame.groupby("dataset")["n_pairs"].first()
        groups = frame.groupby(["method", "dataset"])
        self._draws = {key: group.set_index("seed")[score.name] for key, group in groups}

    def mean(self, method: str, dataset: str) -> float:
        """Over the draws; nan where nothing has been computed."""
        return float(self._draws[method, dataset].mean()) if (method, dataset) in self._draws else np.nan

    def ranking(self, dataset: str, methods: Sequence[str]) -> list[str]:
        """Those of some methods that have results on a data set, the highest mean first."""
        known = [method for method in methods if (method, dataset) in self._draws]
        return sorted(known, key=lambda method: self.mean(method, dataset), reverse=True)

    def computed(self, *methods: str) -> list[str]:
        """The data sets on which all of some methods have results."""
        return [dataset for dataset in self.datasets if len(self.ranking(dataset, methods)) == len(methods)]

    def printed(self, method: str, dataset: str) -> float | None:
        """What the paper prints for as many answers; None where it prints nothing."""
        figures = PRINTED.get(method, {}).get(dataset) if self._n_pairs.get(dataset) == PRINTED_FROM else None
        return None if figures is None else dict(zip((ACCURACY, ARI), figures, strict=True)).get(self.score)

    def falls_short(self, method: str, dataset: str) -> bool:
        """Whether our result is well below the printed one."""
        printed = self.printed(method, dataset)
        return printed is not None and self.mean(method, dataset) < printed - TOLERATED

    def table(self, name: str, caption: str) -> Table:
        """Mean ± standard deviation over the draws, the best of each column in bold, the paper's figures beneath."""
        rows = [[METHODS[m].label, *(self._cell(m, d) for d in self.datasets)] for m in self.methods]
        places = {(m, d): (i, k) for i, m in enumerate(self.methods) for k, d in enumerate(self.datasets, start=1)}
        prints = {place: self.printed(*names) for names, place in places.items()}
        rankings = {d: self.ranking(d, self.methods) for d in self.datasets}
        label = self.score.label
        return Table(
            ["", *(DATASETS[d] for d in self.datasets)],
            [*rows, ["p, best against second", *map(self._p_value, self.datasets)]],
            best=frozenset(places[names[0], d] for d, names in rankings.items() if len(names) > 1),
            title=f"{name}. {label[0].upper()}{label[1:]}",
            caption=caption,
            beneath={
                place: f"paper {self.score.shown(figure)}" for place, figure in prints.items() if figure is not None
            },
            notes=self._notes(),
        )

    def _cell(self, method: str, dataset: str) -> str:
        if (method, dataset) not in self._draws:
            return NOTHING
        values, mark = self._draws[method, dataset], MARK if self.falls_short(method, dataset) else ""
        if len(values) == 1:
            return self.score.shown(values.mean()) + mark
        return f"{self.score.shown(values.mean())}{NBSP}±{NBSP}{self.score.shown(values.std())}{mark}"

    def _p_value(self, dataset: str) -> str:
        """Wilcoxon's signed-rank test, paired over the draws, of the two methods with the highest means."""
        leaders = [self._draws[method, dataset] for method in self.ranking(dataset, self.methods)[:2]]
        return _wilcoxon((leaders[0] - leaders[1]).dropna().to_numpy(float)) if len(leaders) == 2 else NOTHING

    def _notes(self) -> list[str]:
        """What the mark means, if it is there."""
        is_short = any(self.falls_short(m, d) for m in self.methods for d in self.datasets)
        return [f"{MARK} more than {self.score.shown(TOLERATED)} below the figure that the paper prints"] * is_short


def _wilcoxon(differences: NDArray[np.floating[Any]]) -> str:
    if len(differences) < 2:
        return NOTHING
    p = float(stats.wilcoxon(differences).pvalue) if differences.any() else 1.0
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"


def cost_table(frame: pd.DataFrame, column: str, digits: int, title: str, caption: str) -> Table:
    """The least cost of any draw, since other work on the machine only adds to it; its median over numbers of pairs."""
    least = frame.groupby(["method", "dataset", "n_pairs"])[column].min()
    costs = least.groupby(["method", "dataset"]).median().to_dict()
    methods, datasets = ([name for name in names if (frame[kind] == name).any()] for kind, names in _NAMES.items())
    rows = [
        [METHODS[m].label, *(f"{costs[m, d]:,.{digits}f}" if (m, d) in costs else NOTHING for d in datasets)]
        for m in methods
    ]
    return Table(["", *(DATASETS[d] for d in datasets)], rows, title=title, caption=caption)


def markdown(table: Table) -> str:
    """A table in Markdown: the best in bold, second lines in brackets, the notes under it."""

    def cell(i: int, k: int, text: str) -> str:
        bold = f"**{text}**" if (i, k) in table.best else text
        return f"{bold} ({table.beneath[i, k]})" if (i, k) in table.beneath else bold

    lines = [
        table.columns,
        ["---", *("--:" for _ in table.columns[1:])],
        *([cell(i, k, text) for k, text in enumerate(row)] for i, row in enumerate(table.rows)),
    ]
    body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    parts = [f"**{table.title}**", table.caption, body, *table.notes]
    return "\n\n".join(part for part in parts if part) + "\n"


def draws_of(frame: pd.DataFrame) -> str:
    """How many draws the cells of a frame have, in words."""
    counts = frame.groupby(["dataset", "method", "n_pairs"])["seed"].nunique()
    few, many = int(counts.min()), int(counts.max())
    if many == 1:
        return ONE_DRAW
    return f"{few} to {many} draws" if few < many else f"{many} draws"
