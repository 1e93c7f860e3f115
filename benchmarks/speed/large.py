"""A million rows from disk: seconds, memory, and how both grow with the rows and with the answers."""

from __future__ import annotations

import numpy as np

from pairmargin import MaxMarginClustering, clustering_accuracy, sample_pairs

from .measuring import WITH_FILE, Cost, Options, apart, clouds, exponent
from .rows import Row

N_COLUMNS = 128
LAYERS = 256, 64
N_EPOCHS = 10  # of pretraining for each layer, and of training
BATCH = 20_000


def measure(options: Options) -> list[Row]:
    n_most, n_pairs, n_clusters = options.scaled(1_000_000), options.scaled(100_000), 20 if options.quick else 100
    counts = [n_most // 8, n_most // 4, n_most // 2, n_most]
    answers = [n_pairs // 8, n_pairs // 4, n_pairs // 2, n_pairs]
    with clouds(n_most, N_COLUMNS, n_clusters, options.folder) as (path, _):

        def cost(n: int, m: int) -> dict[str, float]:
            return apart(fit, path=str(path), n=n, n_pairs=m, n_clusters=n_clusters)

        by_rows = {(n, n_pairs): cost(n, n_pairs) for n in counts}
        by_pairs = {(counts[1], m): cost(counts[1], m) for m in answers[:-1]}
        by_pairs[counts[1], n_pairs] = by_rows[counts[1], n_pairs]
    size = f"n={n_most} D={N_COLUMNS} K={n_clusters} pairs={n_pairs}"
    whole = by_rows[n_most, n_pairs]
    name = f"fit from disk, {N_COLUMNS}-{LAYERS[0]}-{LAYERS[1]}, {N_EPOCHS} epochs of each RBM and of training"
    rows = [
        Row("large", name, whole["seconds"], "s", "<= 900", size),
        Row("large", "its resident memory above the libraries", whole["megabytes"], "MB", "<= 1500", size, WITH_FILE),
        Row("large", "memory of its own", whole["own_megabytes"], "MB", "", size),
        Row("large", "of which pretraining", whole["pretraining"], "s", "", size),
        Row("large", "of which training", whole["training"], "s", "", size, f"{whole['epochs']:.0f} epochs"),
        Row("large", "points in their cloud", whole["accuracy"], "share", "", size),
    ]
    for what, found in {"rows": by_rows, "answers": by_pairs}.items():
        sizes = [n if what == "rows" else m for n, m in found]
        for unit, key in {"s": "seconds", "MB": "megabytes"}.items():
            costs = [each[key] for each in found.values()]
            name = f"{key} by {what}"
            rows += [
                Row("large", name, cost, unit, "", f"n={n} K={n_clusters} pairs={m}")
                for (n, m), cost in zip(found, costs, strict=True)
            ]
            rows.append(Row("large", f"{name}, fitted exponent", exponent(sizes, costs), "exponent", "<= 1.05", size))
    return rows


def fit(path: str, n: int, n_pairs: int, n_clusters: int) -> dict[str, float]:
    """The fit of a user who has a file of points; a small one before it wakes the libraries up."""
    kinds = np.load(path.replace("points", "kinds"))[:n]
    pairs = sample_pairs(kinds, n_pairs, random_state=0)
    model = MaxMarginClustering(
        n_clusters, LAYERS, batch_size=BATCH, pretrain_epochs=N_EPOCHS, max_iter=N_EPOCHS, random_state=0
    )
    X = np.load(path, mmap_mode="r")[:n]
    few = np.arange(500)
    MaxMarginClustering(3, (5,), batch_size=100, max_iter=1, pretrain_epochs=1, random_state=0).fit(
        X[few], pairs=sample_pairs(kinds[few] % 3, 30, random_state=0)
    )
    with Cost() as cost:
        model.fit(X, pairs=pairs)
    stages = {
        "pretraining": sum(row["seconds"] for row in model.pretraining_history_),
        "training": model.history_[-1]["seconds"],
    }
    accuracy = clustering_accuracy(kinds, model.labels_)
    return cost.figures | stages | {"accuracy": accuracy, "epochs": model.n_iter_}
