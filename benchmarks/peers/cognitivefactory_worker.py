"""cognitivefactory-interactive-clustering: its COP-k-means and its spectral clustering.

Of its others, MPCK-means is that of active-semi-supervised-clustering over again, hierarchical clustering took 20 s for
the 178 points of Wine, and DBSCAN and affinity propagation cannot be told the number of clusters.
"""

from __future__ import annotations

from cognitivefactory.interactive_clustering.clustering import factory  # type: ignore[import-not-found]
from cognitivefactory.interactive_clustering.constraints.binary import (  # type: ignore[import-not-found]
    BinaryConstraintsManager,
)
from scipy.sparse import csr_matrix
from worker import Array, Task, best_of_starts, serve


def cluster(task: Task, algorithm: str, seed: int) -> list[int]:
    """One start; points are named and are rows of sparse matrices, as its text tools would make them."""
    names = [str(i) for i in range(len(task.X))]
    answers = BinaryConstraintsManager(names)
    for kind, same in (("MUST_LINK", True), ("CANNOT_LINK", False)):
        for i, j in task.links(same):
            answers.add_constraint(names[i], names[j], kind)
    vectors = {name: csr_matrix(x) for name, x in zip(names, task.X, strict=True)}
    found = factory.clustering_factory(algorithm, random_seed=seed).cluster(answers, vectors, task.n_clusters)
    return [found[name] for name in names]


def kmeans(task: Task) -> Array:
    return best_of_starts(lambda seed: cluster(task, "kmeans", seed), task)


def spectral(task: Task) -> list[int]:
    """Once: it ends with scikit-learn's k-means, which has starts of its own."""
    return cluster(task, "spectral", task.seed)


if __name__ == "__main__":
    methods = {"cognitivefactory-kmeans": kmeans, "cognitivefactory-spectral": spectral}
    serve("cognitivefactory-interactive-clustering", methods)
