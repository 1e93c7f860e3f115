"""What wrong answers cost, whether they are found, and whether chances come true.

    python benchmarks/trust.py [--quick]

Some of the answers are flipped; the default, and the default without its doubts, learn from them. On clean answers, the
chance of "same" is held against the truth of pairs that nobody has seen. Writes results/trust.csv, the picture
results/figures/reliability.png, and the tables of docs/design/wrong-answers.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

import readme
from pairmargin import MaxMarginClustering, Pairs, clustering_accuracy, load_dataset, sample_pairs
from pairmargin.experiments.figures import look
from pairmargin.experiments.tables import DATASETS
from pairmargin.looks import line_look
from pairmargin.metrics import reliability
from pairmargin.threads import threads_for

ROOT = Path(__file__).parents[1]
N_ANSWERS = {"digits": 500, "segmentation": 500, "wdbc": 500, "glass": 500, "sonar": 500}
FLIPPED = (0.0, 0.1, 0.2)
LOOKED_AT = 0.2  # share of the answers that a person would look at again
N_HELD_OUT = 3_000
BINS = 10


def measure(dataset: str, flipped: float, seed: int) -> dict[str, Any]:
    """One draw: accuracy with and without doubts, and where the flipped answers stand."""
    X, y = load_dataset(dataset, return_X_y=True)
    n_answers = N_ANSWERS[dataset]
    pairs = sample_pairs(y, n_answers, random_state=seed)
    wrong = np.zeros(n_answers, dtype=bool)
    wrong[np.random.RandomState(seed).choice(n_answers, round(flipped * n_answers), replace=False)] = True
    told = Pairs(pairs.index, pairs.same ^ wrong)
    row: dict[str, Any] = {"dataset": dataset, "flipped": flipped, "seed": seed}
    with threads_for(1), threadpool_limits(1):
        for name, robust in (("judged", True), ("believed", False)):
            model = MaxMarginClustering(len(np.unique(y)), robust=robust, on_conflict="keep", random_state=seed)
            model.fit(X, pairs=told)
            row[name] = clustering_accuracy(y, model.labels_)
            if robust:
                first = model.suspicious_pairs_[: round(LOOKED_AT * n_answers)]
                row |= {"error_rate": model.error_rate_, "found": wrong[first].sum() / max(wrong.sum(), 1)}
                row |= _reliability(model, X, y, seed)
    return row


def _reliability(model: MaxMarginClustering, X: Any, y: Any, seed: int) -> dict[str, float]:
    """Of held-out pairs as they come, by how large their chance is: how many, the mean chance, the share of same."""
    asked = sample_pairs(y, N_HELD_OUT, balanced=False, random_state=10_000 + seed)
    told: dict[str, float] = {f"{name}{b}": 0 for b in range(BINS) for name in ("n", "chance", "same")}
    for each in reliability(asked.same, model.pair_proba(X, asked), BINS):
        b, n = round(each.low * BINS), each.answers
        told |= {f"n{b}": n, f"chance{b}": n * each.chance, f"same{b}": n * each.same}
    return told


def gap(frame: pd.DataFrame) -> float:
    """How far chances are from how often they come true, on average over the pairs."""
    sums = frame.filter(regex=r"^(n|chance|same)\d").sum()
    return float(
        sum(abs(sums[f"chance{b}"] - sums[f"same{b}"]) for b in range(BINS)) / sum(sums[f"n{b}"] for b in range(BINS))
    )


def tables(frame: pd.DataFrame) -> str:
    """Both tables in Markdown."""
    lines = [
        "| | flipped | seem wrong | all believed | judged | share of the flipped in the first fifth |",
        "|---|---|---|---|---|---|",
    ]
    for (dataset, flipped), rows in frame.groupby(["dataset", "flipped"], sort=False):
        found = f"{rows.found.mean():.0%}" if flipped else ""
        lines.append(
            f"| {DATASETS[str(dataset)]} | {flipped:.0%} | {rows.error_rate.mean():.0%} | {rows.believed.mean():.3f} "
            f"| {rows.judged.mean():.3f} | {found} |"
        )
    lines += ["", "| | mean gap between chance and truth |", "|---|---|"]
    clean = frame[frame.flipped == 0]
    lines += [
        f"| {DATASETS[str(dataset)]} | {gap(rows):.3f} |" for dataset, rows in clean.groupby("dataset", sort=False)
    ]
    return "\n".join(lines)


def draw(frame: pd.DataFrame, path: Path) -> None:
    """The reliability curves."""
    from matplotlib import pyplot as plt

    with look():
        figure, axes = plt.subplots(figsize=(4.6, 4.4))
        axes.plot([0, 1], [0, 1], color="0.7", linewidth=1, zorder=0)
        for k, (dataset, rows) in enumerate(frame[frame.flipped == 0].groupby("dataset", sort=False)):
            sums = rows.filter(regex=r"^(n|chance|same)\d").sum()
            filled = [b for b in range(BINS) if sums[f"n{b}"] >= 30]
            at = [sums[f"chance{b}"] / sums[f"n{b}"] for b in filled]
            came_true = [sums[f"same{b}"] / sums[f"n{b}"] for b in filled]
            settings = {**line_look(k), "linewidth": 1.6, "marker": "osv^D"[k], "markersize": 5}
            axes.plot(at, came_true, label=DATASETS[str(dataset)], clip_on=False, **settings)
        axes.set(xlabel="chance of “same” that was told", ylabel="share that is the same", xlim=(0, 1), ylim=(0, 1))
        axes.legend(frameon=False)
        figure.tight_layout()
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=200)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="one draw, digits alone, nothing is written")
    quick = parser.parse_args().quick
    work = [(d, f, s) for d in (["digits"] if quick else N_ANSWERS) for f in FLIPPED for s in range(1 if quick else 5)]
    frame = pd.DataFrame(joblib.Parallel(n_jobs=-1)(joblib.delayed(measure)(*one) for one in work))
    print(tables(frame))
    if not quick:
        frame.round(6).to_csv(ROOT / "results" / "trust.csv", index=False)
        draw(frame, ROOT / "results" / "figures" / "reliability.png")
        readme.put("trust", tables(frame), ROOT / "docs" / "design" / "wrong-answers.md")


if __name__ == "__main__":
    main()
