"""metric-learn: a metric from the pairs, then k-means under it."""

from __future__ import annotations

from collections.abc import Callable

import metric_learn  # type: ignore[import-not-found]
import numpy as np
from worker import Array, Task, kmeans, serve


def learner(name: str) -> Callable[[Task], Array]:
    """One of its learners from pairs, as it comes."""

    def cluster(task: Task) -> Array:
        metric = getattr(metric_learn, name)(random_state=task.seed)
        metric.fit(task.X[task.index], np.where(task.same, 1, -1))
        return kmeans(metric.transform(task.X), task)

    return cluster


if __name__ == "__main__":
    serve("metric-learn", {f"metric-learn-{name.lower()}": learner(name) for name in ("ITML", "MMC", "SDML")})
