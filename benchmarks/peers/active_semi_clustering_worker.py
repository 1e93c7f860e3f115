"""active-semi-supervised-clustering: k-means that is held to the pairs, in three ways."""

from __future__ import annotations

from collections.abc import Callable

from active_semi_clustering.semi_supervised import pairwise_constraints  # type: ignore[import-not-found]
from worker import Array, Task, best_of_starts, serve


def clusterer(name: str) -> Callable[[Task], Array]:
    """One of its classes, as it comes; all draw from NumPy's global generator."""

    def cluster(task: Task) -> Array:
        model, links = getattr(pairwise_constraints, name), {"ml": task.links(True), "cl": task.links(False)}
        return best_of_starts(lambda _: model(task.n_clusters).fit(task.X, **links).labels_, task)

    return cluster


if __name__ == "__main__":
    names = ("COPKMeans", "PCKMeans", "MPCKMeans")
    serve("active-semi-supervised-clustering", {f"assc-{name.lower()}": clusterer(name) for name in names})
