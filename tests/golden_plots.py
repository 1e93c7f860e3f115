"""The pictures that `test_plotting.py` compares, each from fixed numbers, and those of the page about pictures.

``python tests/golden_plots.py`` draws them anew, in ``tests/data`` and ``docs/pictures``. Look at them before you
commit them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import make_blobs

from pairmargin import (
    ClusterMapDisplay,
    ConstraintGraphDisplay,
    LearningCurveDisplay,
    ObjectiveDisplay,
    PairRocDisplay,
    Pairs,
    sample_pairs,
)

FOLDER = Path(__file__).parent / "data"
PAGE = Path(__file__).parents[1] / "docs" / "plots.md"


def cluster_map(figure: Figure) -> None:
    X, y = make_blobs(60, 5, centers=4, cluster_std=2, random_state=0)
    wrong = np.where(np.arange(60) % 7 == 0, 0, y)
    ClusterMapDisplay.from_predictions(X, wrong, pairs=sample_pairs(y, 24, random_state=1), ax=figure.subplots())


def pair_roc(figure: Figure) -> None:
    ax, rng = figure.subplots(), np.random.RandomState(0)
    same = np.arange(60) % 2 == 0
    for strength in (2.0, 0.7):
        score = strength * same + rng.standard_normal(60)
        PairRocDisplay.from_predictions(same, score, name=f"strength {strength}", ax=ax)


def learning_curve(figure: Figure) -> None:
    ax = figure.subplots()
    for name, best in (("one", 0.95), ("another", 0.85)):
        scores = best - 1 / np.array([[10], [20], [50], [100]]) * [[1, 2, 3]]
        LearningCurveDisplay(train_sizes=[10, 20, 50, 100], scores=scores, score_name="AUC", name=name).plot(ax)


def objective(figure: Figure) -> None:
    parts = [
        {"norm": 0.05, "free": 0.2 / (k + 1), "must_link": 0.5 * 0.8**k, "cannot_link": 0.4 * 0.7**k} for k in range(20)
    ]
    history = [{"iteration": k, "objective": sum(row.values()), **row} for k, row in enumerate(parts)]
    ObjectiveDisplay.from_history(history, ax=figure.subplots())


def constraint_graph(figure: Figure) -> None:
    must_link = [(0, 1), (1, 2), (3, 4), (5, 6), (6, 7), (7, 8), (8, 5), (12, 13)]
    cannot_link = [(0, 3), (4, 5), (0, 2), (9, 1), (9, 10), (8, 12), (11, 3), (14, 15)]
    pairs = Pairs.from_lists(must_link, cannot_link)
    ConstraintGraphDisplay.from_pairs(pairs, labels=np.arange(16) % 3, ax=figure.subplots())


PICTURES: dict[str, Callable[[Figure], None]] = {
    f"plot-{draw.__name__.replace('_', '-')}": draw
    for draw in (cluster_map, pair_roc, learning_curve, objective, constraint_graph)
}


def save(name: str, folder: Path) -> Path:
    """Draw a picture with matplotlib's own settings, whatever those of this machine are."""
    file = folder / f"{name}.png"
    with mpl.rc_context():
        mpl.rcdefaults()
        figure = Figure(figsize=(4.8, 3.6), layout="constrained")
        PICTURES[name](figure)
        figure.savefig(file, dpi=70, metadata={"Software": None})
    return file


def run_page() -> list[tuple[str, Figure]]:
    """The figures of the page about pictures, drawn by its own code, each with the file that is shown below it."""
    import matplotlib.pyplot as plt

    plt.close("all")
    names: dict[str, object] = {}
    shown = []
    block = r"```python\n(.*?)```\n(?:\n!\[[^]]*\]\(([^)]*)\))?"  # code, and the picture that follows if there is one
    for code, picture in re.findall(block, PAGE.read_text("utf-8"), re.DOTALL):
        before = plt.get_fignums()
        exec(code, names)
        new = [number for number in plt.get_fignums() if number not in before]
        if new:
            shown.append((picture, plt.figure(new[0])))
    return shown


if __name__ == "__main__":
    mpl.use("Agg")
    for name in PICTURES:
        save(name, FOLDER)
    for file, figure in run_page():
        figure.savefig(PAGE.parent / file, dpi=75, metadata={"Software": None})
