"""What metric-learn learns from pairs of iris: the numbers that tests/test_itml.py and tests/test_xing.py compare with.

metric-learn 0.7.0 does not run on today's scikit-learn, hence an environment of its own, outside of the repository:

    python3.11 -m venv old
    old/bin/pip install metric-learn==0.7.0 scikit-learn==1.2.2 "numpy<2" "scipy<1.12"
    old/bin/python benchmarks/record_metric_learn.py tests/data/metric-learn-iris.json

Imports nothing of ours. The pairs are written down with the rest, sorted and each once, as `Pairs` keeps them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import metric_learn  # type: ignore[import-not-found]
import numpy as np
import scipy
import sklearn
from sklearn.datasets import load_iris

N_EACH = 60  # must-links, and as many cannot-links
ITML_SETTINGS: list[dict[str, Any]] = [
    {"gamma": 1.0, "bounds": [0.5, 12.0], "tol": 1e-3, "max_iter": 1000},
    {"gamma": 1.0, "bounds": [0.5, 12.0], "tol": 1e-12, "max_iter": 7},
    {"gamma": 0.1, "bounds": [0.05, 30.0], "tol": 1e-6, "max_iter": 1000},
]
XING_SETTINGS: list[dict[str, Any]] = [
    {"diagonal": False, "tol": 1e-9, "max_iter": 1000, "max_proj": 10_000},
    {"diagonal": True, "tol": 1e-12, "max_iter": 1000},
]


def draw_pairs(y: Any) -> tuple[Any, Any]:
    """Rows (m, 2), sorted, and whether their labels are the same."""
    rng = np.random.default_rng(2015)
    index = np.column_stack(np.triu_indices(len(y), 1))
    same = y[index[:, 0]] == y[index[:, 1]]
    drawn = np.concatenate([rng.choice(np.flatnonzero(kind), N_EACH, replace=False) for kind in (same, ~same)])
    drawn.sort()
    return index[drawn], same[drawn]


def learned(model: Any, points: Any, sign: Any, settings: dict[str, Any], **fit: Any) -> dict[str, Any]:
    """The settings and the matrix they lead to."""
    model.fit(points, sign, **fit)
    return settings | {"matrix": model.get_mahalanobis_matrix().tolist(), "n_iter": getattr(model, "n_iter_", None)}


def record() -> dict[str, Any]:
    """Everything that goes into the file."""
    X, y = load_iris(return_X_y=True)
    index, same = draw_pairs(y)
    points, sign = X[index], np.where(same, 1, -1)
    itml = []
    for settings in ITML_SETTINGS:
        options = {name: value for name, value in settings.items() if name != "bounds"}
        itml.append(learned(metric_learn.ITML(**options), points, sign, settings, bounds=settings["bounds"]))
    xing = [learned(metric_learn.MMC(**settings), points, sign, settings) for settings in XING_SETTINGS]
    modules = {"metric-learn": metric_learn, "scikit-learn": sklearn, "numpy": np, "scipy": scipy}
    return {
        "versions": {name: module.__version__ for name, module in modules.items()},
        "index": index.tolist(),
        "same": same.tolist(),
        "itml": itml,
        "xing": xing,
    }


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(record(), indent=1) + "\n", encoding="utf-8")
