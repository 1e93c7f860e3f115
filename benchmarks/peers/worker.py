"""What the workers share: a task from a file, the clock, an answer into a file.

    python metric_learn_worker.py METHOD TASK.npz ANSWER.npz

A worker runs in the environment of its package, which has no pairmargin. The clock runs while a method learns and
clusters, not while anything is imported or read.
"""

from __future__ import annotations

import platform
import random
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

Array = NDArray[Any]
N_STARTS = 10  # of whatever starts at random
LONG_ENOUGH = 120.0  # seconds of the processor, after which no further start begins


@dataclass(frozen=True)
class Task:
    """What a method is given; the fields are the arrays of the file."""

    X: Array  # (n, D)
    n_clusters: int
    index: Array  # (m, 2)
    same: Array  # (m,)
    seed: int
    oracle: Array  # (n,) true labels, for a method that asks its own questions; empty for the others

    def links(self, same: bool) -> list[tuple[int, int]]:
        """The must-links, or the cannot-links."""
        return [(int(i), int(j)) for i, j in self.index[self.same == same]]


def kmeans(X: Array, task: Task) -> Array:
    """The best of ten starts."""
    return np.asarray(KMeans(task.n_clusters, n_init=N_STARTS, random_state=task.seed).fit_predict(X))


def best_of_starts(start: Callable[[int], Any], task: Task) -> Array:
    """The same for packages that start once: ``start`` makes labels from a seed; it may fail, but not every time."""
    began = time.process_time()
    found: list[tuple[float, Array]] = []
    for k in range(N_STARTS):
        try:
            labels = np.asarray(start(N_STARTS * task.seed + k))
            found.append((_cost(labels, task), labels))
        except Exception:
            if not found and k == N_STARTS - 1:
                raise
        if found and time.process_time() - began > LONG_ENOUGH:
            break
    return min(found, key=lambda each: each[0])[1]


def _cost(labels: Array, task: Task) -> float:
    """What PCK-means minimises: half the squares around the means, and the broken answers."""
    parts = [task.X[labels == label] for label in np.unique(labels)]
    a, b = labels[task.index.T]
    return float(sum(((part - part.mean(0)) ** 2).sum() for part in parts) / 2 + ((a == b) != task.same).sum())


def serve(package: str, methods: Mapping[str, Callable[[Task], Any]]) -> None:
    """Do what the command line asks for."""
    method, task_file, answer_file = sys.argv[1:]
    with np.load(task_file) as file:
        arrays = {name: file[name] for name in file}
    task = Task(**arrays | {name: int(arrays[name]) for name in ("n_clusters", "seed")})
    random.seed(task.seed)
    np.random.seed(task.seed)  # noqa: NPY002 (some of the packages know no other generator)
    began = time.process_time()
    labels = np.asarray(methods[method](task))
    seconds = time.process_time() - began
    names = (package, "numpy", "scipy", "scikit-learn", "torch")
    versions = [("python", platform.python_version()), *((name, _version(name)) for name in names)]
    np.savez(answer_file, labels=labels, seconds=seconds, versions=np.array(versions))


def _version(name: str) -> str:
    """Nothing, if a package is not here."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
