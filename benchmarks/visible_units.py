"""Binary or Gaussian visible units? Both, on every kind of data, beside the number that decides between them.

    PAIRMARGIN_DATA=… python benchmarks/visible_units.py [--draws 5]

The number is the data's share of the variance that off-or-on columns would have (`pairmargin.inputs`). Writes
results/visible_units.csv and prints the table of docs/design/visible-units.md.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed
from sklearn.preprocessing import minmax_scale

from pairmargin import MaxMarginClustering, clustering_accuracy, load_dataset, sample_pairs
from pairmargin.inputs import Scaling, binary_share

RESULTS = Path(__file__).parents[1] / "results" / "visible_units.csv"
Data = tuple[Any, Any]


def raw(name: str) -> Callable[[], Data]:
    """The data set as it is."""
    return lambda: load_dataset(name, return_X_y=True)


def squeezed(name: str) -> Callable[[], Data]:
    """Every column of a table brought to the range 0 to 1, as users do."""

    def load() -> Data:
        X, y = load_dataset(name, return_X_y=True)
        return minmax_scale(X), y

    return load


def part(name: str, rows: slice) -> Callable[[], Data]:
    """Some rows of a large data set."""

    def load() -> Data:
        X, y = load_dataset(name, return_X_y=True)
        return X[rows], y[rows]

    return load


def one_hot(name: str) -> Callable[[], Data]:
    """A table with every column cut into thirds, one 0/1 column for each."""

    def load() -> Data:
        X, y = load_dataset(name, return_X_y=True)
        thirds = (X[:, :, None] > np.quantile(X, [1 / 3, 2 / 3], axis=0).T).sum(2)
        return (thirds[:, :, None] == np.arange(3)).reshape(len(X), -1).astype(float), y

    return load


CASES: dict[str, tuple[Callable[[], Data], int]] = {  # data, number of pairs
    "MNIST, 2000 images": (part("mnist", slice(0, 2000)), 200),
    "digits, 0 to 16": (raw("digits"), 100),
    "COIL-20": (raw("coil20"), 400),
    "COIL-100, 20 objects": (part("coil100", slice(0, 1440)), 400),
    "Wine in thirds, 0/1": (one_hot("wine"), 100),
    "Wdbc in thirds, 0/1": (one_hot("wdbc"), 100),
    "Sonar": (raw("sonar"), 100),
    "Wine": (raw("wine"), 100),
    "Wine, columns 0 to 1": (squeezed("wine"), 100),
    "Wdbc, columns 0 to 1": (squeezed("wdbc"), 100),
    "Glass, columns 0 to 1": (squeezed("glass"), 100),
    "Segmentation, columns 0 to 1": (squeezed("segmentation"), 100),
    "Iris, columns 0 to 1": (squeezed("iris"), 100),
}


def accuracy(case: str, visible: str, draw: int) -> float:
    """One fit."""
    torch.set_num_threads(1)
    load, n_pairs = CASES[case]
    X, y = load()
    model = MaxMarginClustering(len(np.unique(y)), visible=visible, random_state=draw)
    return clustering_accuracy(y, model.fit(X, pairs=sample_pairs(y, n_pairs, random_state=draw)).labels_)


def main() -> None:
    """Measure every case with both kinds of units."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=5)
    draws = parser.parse_args().draws
    cells = [(case, visible, draw) for case in CASES for visible in ("binary", "gaussian") for draw in range(draws)]
    found = dict(zip(cells, Parallel(n_jobs=2)(delayed(accuracy)(*cell) for cell in cells), strict=True))
    rows = []
    for case, (load, _) in CASES.items():
        X = load()[0]
        binary, gaussian = (
            np.mean([found[case, kind, draw] for draw in range(draws)]) for kind in ("binary", "gaussian")
        )
        share = binary_share(X.mean(0), X.var(0), X.min(), X.max())
        rows.append([case, f"{share:.2f}", f"{binary:.3f}", f"{gaussian:.3f}", Scaling.learn(X, "auto").visible])
    header = ["data", "share", "binary", "gaussian", "chosen"]
    with RESULTS.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])
    for row in [header, ["---"] * len(header), *rows]:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
