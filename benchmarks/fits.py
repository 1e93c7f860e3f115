"""What a whole fit costs with everything on, and uniform answers about images that no table shows.

    python benchmarks/fits.py [--only WORDS] [--quick]

Times are those of one fit on all cores of a machine that does nothing else. Writes results/fits.csv, one row a fit, and
the table of docs/speed.md. `--only uniform` measures again those with that word in their name; the others are kept.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

import readme
from pairmargin import MaxMarginClustering, clustering_accuracy, load_dataset, sample_pairs
from pairmargin.experiments.specs import PAPER_LAYERS

ROOT = Path(__file__).parents[1]
MEASURED = ROOT / "results" / "fits.csv"
N_IMAGES = 5_000
TEST_IMAGES = 60_000  # of MNIST; those for testing come behind those for training


class Fit(NamedTuple):
    """What is clustered, from how many answers and with which settings."""

    dataset: str
    n_pairs: int
    settings: dict[str, Any]
    first: int = 0  # row, of at most so many images
    balanced: bool = True


DEEP = {"hidden_layer_sizes": PAPER_LAYERS["mnist"]}
FITS = {
    "digits, 500 answers": Fit("digits", 500, {}),
    "digits, 500 answers, one start": Fit("digits", 500, {"n_init": 1}),
    "digits, 500 answers, ten starts": Fit("digits", 500, {"n_init": 10}),
    "MNIST, 1000 answers, 400-200-100": Fit("mnist", 1000, DEEP),
    "MNIST's test images, 1000 uniform answers": Fit("mnist", 1000, {}, TEST_IMAGES, balanced=False),
    "MNIST's test images, 1000 uniform answers, 400-200-100": Fit("mnist", 1000, DEEP, TEST_IMAGES, balanced=False),
}


def measure(name: str, seed: int) -> dict[str, Any]:
    """Cluster once; how long it took and how good it is."""
    what = FITS[name]
    X, y = (each[what.first : what.first + N_IMAGES] for each in load_dataset(what.dataset, return_X_y=True))
    pairs = sample_pairs(y, what.n_pairs, balanced=what.balanced, random_state=seed)
    began = time.perf_counter()
    model = MaxMarginClustering(10, random_state=seed, **what.settings).fit(X, pairs=pairs)
    seconds = time.perf_counter() - began
    return {"what": name, "seed": seed, "seconds": seconds, "accuracy": clustering_accuracy(y, model.labels_)}


def table(frame: pd.DataFrame) -> str:
    """In Markdown."""
    lines = ["| a whole fit | seconds, fastest | mean accuracy | lowest | highest |", "|---|--:|--:|--:|--:|"]
    for name, rows in frame.groupby("what", sort=False):
        of = rows.accuracy.agg(["mean", "min", "max"]).map("{:.3f}".format)
        lines.append(f"| {name} | {rows.seconds.min():.1f} | {of['mean']} | {of['min']} | {of['max']} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", default="", metavar="WORDS", help="those with these words in their name")
    parser.add_argument("--quick", action="store_true", help="one draw, nothing is written")
    chosen = parser.parse_args()
    names = [name for name in FITS if chosen.only in name]
    if not names:
        parser.error(f"--only {chosen.only!r} is in none of: {'; '.join(FITS)}")
    MaxMarginClustering(10, max_iter=1).fit(load_dataset("digits").data)  # wakes the libraries up
    rows = []
    for name in names:
        for seed in range(1 if chosen.quick else 5):
            rows.append(measure(name, seed))
            print("{what:55} seed {seed}  {seconds:6.1f} s  accuracy {accuracy:.3f}".format(**rows[-1]), flush=True)
    frame = pd.DataFrame(rows)
    if not chosen.quick:
        if MEASURED.exists():
            kept = pd.read_csv(MEASURED)
            frame = pd.concat([kept[~kept.what.isin(names)], frame])
        frame = frame.sort_values("what", key=lambda what: what.map(list(FITS).index), kind="stable")
        frame.round(4).to_csv(MEASURED, index=False)
        readme.put("fits", table(frame), ROOT / "docs" / "speed.md")
    print(table(frame))


if __name__ == "__main__":
    main()
