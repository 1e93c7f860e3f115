"""What a whole fit costs with everything on, and uniform answers about images that no table shows.

    python benchmarks/fits.py [--quick]

Times are those of one fit on all cores of a machine that does nothing else. Writes results/fits.csv, one row a fit.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from pairmargin import MaxMarginClustering, clustering_accuracy, load_dataset, sample_pairs

ROOT = Path(__file__).parents[1]
N_TRAINING_IMAGES = 60_000  # of MNIST; those for testing come behind them
N_IMAGES = 5_000


def fit(
    name: str, data: tuple[Any, Any], n_pairs: int, seed: int, balanced: bool = True, **settings: Any
) -> dict[str, Any]:
    """Cluster once; how long it took and how good it is."""
    X, y = data
    pairs = sample_pairs(y, n_pairs, balanced=balanced, random_state=seed)
    began = time.perf_counter()
    model = MaxMarginClustering(10, random_state=seed, **settings).fit(X, pairs=pairs)
    seconds = time.perf_counter() - began
    return {"what": name, "seed": seed, "seconds": seconds, "accuracy": clustering_accuracy(y, model.labels_)}


def fits(n_draws: int) -> Iterator[dict[str, Any]]:
    """All of them; the first one only wakes the libraries up."""
    digits = load_dataset("digits", return_X_y=True)
    X, y = load_dataset("mnist", return_X_y=True)
    some = X[:N_IMAGES], y[:N_IMAGES]
    test = slice(N_TRAINING_IMAGES, N_TRAINING_IMAGES + N_IMAGES)
    fit("", digits, 10, 0, max_iter=1)
    for seed in range(n_draws):
        yield fit("digits, 500 answers", digits, 500, seed)
        yield fit("digits, 500 answers, one start", digits, 500, seed, n_init=1)
        yield fit("digits, 500 answers, ten starts", digits, 500, seed, n_init=10)
        yield fit("MNIST, 1000 answers, 400-200-100", some, 1000, seed, hidden_layer_sizes=(400, 200, 100))
        yield fit("MNIST's test images, 1000 uniform answers", (X[test], y[test]), 1000, seed, balanced=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="one draw, nothing is written")
    quick = parser.parse_args().quick
    rows = []
    for row in fits(1 if quick else 5):
        print("{what:45} seed {seed}  {seconds:6.1f} s  accuracy {accuracy:.3f}".format(**row), flush=True)
        rows.append(row)
    frame = pd.DataFrame(rows)
    print(frame.groupby("what", sort=False)[["seconds", "accuracy"]].agg({"seconds": "min", "accuracy": "mean"}))
    if not quick:
        frame.round(4).to_csv(ROOT / "results" / "fits.csv", index=False)


if __name__ == "__main__":
    main()
