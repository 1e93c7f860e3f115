"""metric-learn: a metric from the pairs, then k-means under it.

All have their default settings, but for the balance of SDML, with which scikit-learn's graphical lasso ends in an error
nearly everywhere.
"""

from __future__ import annotations

from collections.abc import Callable

import metric_learn  # type: ignore[import-not-found]
import numpy as np
from worker import Array, Task, kmeans, serve

BALANCES = [0.5 / 10**power for power in range(8)]  # from the default down


def learner(name: str, **settings: float) -> Callable[[Task], Array]:
    """One of its learners from pairs."""

    def cluster(task: Task) -> Array:
        metric = getattr(metric_learn, name)(random_state=task.seed, **settings)
        metric.fit(task.X[task.index], np.where(task.same, 1, -1))
        return kmeans(metric.transform(task.X), task)

    return cluster


def sdml(task: Task) -> Array:
    """SDML with the largest balance that its solver can do with."""
    for balance in BALANCES[:-1]:
        try:
            return learner("SDML", balance_param=balance)(task)
        except RuntimeError:
            continue
    return learner("SDML", balance_param=BALANCES[-1])(task)


if __name__ == "__main__":
    methods = {"itml": learner("ITML"), "mmc": learner("MMC"), "sdml": sdml}
    serve("metric-learn", {f"metric-learn-{name}": method for name, method in methods.items()})
