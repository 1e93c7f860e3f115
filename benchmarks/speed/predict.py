"""A million predictions from a file, against the matrix products over the same file, and against reading it.

The file has just been written, so the system holds it in memory for all three.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from pairmargin import MaxMarginClustering, Pairs
from pairmargin.inputs import PIECE

from .measuring import WITH_FILE, Array, Cost, Options, apart, clouds, medians
from .rows import Row

N_COLUMNS, LAYERS, N_CLUSTERS = 784, (400, 200, 100), 10


def measure(options: Options) -> list[Row]:
    n = options.scaled(1_000_000)
    size = f"n={n} D={N_COLUMNS} K={N_CLUSTERS}"
    with clouds(n, N_COLUMNS, N_CLUSTERS, options.folder) as (path, _):
        found = apart(times, path=str(path), rounds=options.rounds)
        memory = apart(memory_of_prediction, path=str(path))
    name = "predict, 784-400-200-100"
    speed, reading = found["bare"] / found["ours"], found["ours"] / found["read"]
    return [
        Row("predict", f"{name}, its speed as a share of its bare matrix products", speed, "ratio", ">= 0.8", size),
        Row("predict", name, found["ours"], "s", "", size),
        Row("predict", f"{name}, over reading the file", reading, "ratio", "", size),
        Row("predict", f"{name}, resident memory", memory["megabytes"], "MB", "", size, WITH_FILE),
        Row("predict", f"{name}, memory of its own", memory["own_megabytes"], "MB", "", size),
    ]


def a_model(X: Array) -> MaxMarginClustering:
    """Some model of the size in question: what it has learned does not matter here."""
    settings: dict[str, Any] = {"n_init": 1, "init": "random", "neighbour_weight": 0.0, "robust": False}
    model = MaxMarginClustering(N_CLUSTERS, LAYERS, pretrain_epochs=1, max_iter=1, random_state=0, **settings)
    return model.fit(np.array(X[:1000]), pairs=Pairs([[0, 1], [2, 3]], [True, False]))


def times(path: str, rounds: int) -> dict[str, float]:
    """Prediction, its products, and reading, in turns."""
    X = np.load(path, mmap_mode="c")  # PyTorch warns of what cannot be written
    model = a_model(X)
    weights = [torch.from_numpy(w) for w in (*model.coefs_, np.ascontiguousarray(model.head_coef_.T))]

    def bare() -> None:
        for start in range(0, len(X), PIECE):
            h = torch.from_numpy(np.asarray(X[start : start + PIECE]))
            for weight in weights:
                h = torch.mm(h, weight)

    def read() -> None:
        with open(path, "rb", buffering=0) as file:
            piece = bytearray(PIECE * N_COLUMNS * 4)
            while file.readinto(piece):
                pass

    works = (lambda: model.predict(X)), bare, read
    return dict(zip(("ours", "bare", "read"), medians(*works, rounds=rounds), strict=True))


def memory_of_prediction(path: str) -> dict[str, float]:
    X = np.load(path, mmap_mode="r")
    model = a_model(X)
    model.predict(X[:1000])
    with Cost() as cost:
        model.predict(X)
    return cost.figures
