"""metric-learn: a metric from the pairs, then k-means under it.

All have their default settings, but for the balance of SDML: with 0.5, scikit-learn's graphical lasso ends in an error.
"""

from __future__ import annotations

from collections.abc import Callable

import metric_learn  # type: ignore[import-not-found]
import numpy as np
from worker import Array, Task, kmeans, serve


def learner(name: str, **settings: float) -> Callable[[Task], Array]:
    """One of its learners from pairs."""

    def cluster(task: Task) -> Array:
        metric = getattr(metric_learn, name)(random_state=task.seed, **settings)
        metric.fit(task.X[task.index], np.where(task.same, 1, -1))
        return kmeans(metric.transform(task.X), task)

    return cluster


if __name__ == "__main__":
    methods = {"itml": learner("ITML"), "mmc": learner("MMC"), "sdml": learner("SDML", balance_param=0.0015)}
    serve("metric-learn", {f"metric-learn-{name}": method for name, method in methods.items()})
