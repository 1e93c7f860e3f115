"""cobras-ts: COBRAS asks questions of its own, as many as the others get answers; it also finds how many clusters."""

from __future__ import annotations

from cobras_ts.cobras_kmeans import COBRAS_kmeans  # type: ignore[import-not-found]
from worker import Array, Task, serve


class Oracle:
    """Answers by the true labels. The package has one too, but only with a web server that it imports beside it."""

    def __init__(self, labels: Array) -> None:
        self._labels = labels

    def query_points(self, i: int, j: int) -> bool:
        return bool(self._labels[i] == self._labels[j])

    def continue_cluster_process(self) -> bool:
        return True

    def update_clustering(self, clustering: object) -> None:
        """Nobody looks on."""


def cluster(task: Task) -> list[int]:
    """Its k-means variant; the answers of the task are counted, not used."""
    model = COBRAS_kmeans(task.X, Oracle(task.oracle), len(task.index), store_intermediate_results=False)
    return list(model.cluster().construct_cluster_labeling())


if __name__ == "__main__":
    serve("cobras-ts", {"cobras": cluster})
