"""How fast it is, in ratios taken in one run: against bare matrix products, and against scikit-learn's RBM.

    python benchmarks/speed.py [--quick]

Every figure is the ratio of two medians over rounds in which the rivals take turns, so that a busy machine slows
both. Prints a table and writes results/speed.csv.
"""

from __future__ import annotations

import argparse
import csv
import gc
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.neural_network import BernoulliRBM

import readme
from pairmargin import Pairs
from pairmargin.inputs import BINARY, DenseInput
from pairmargin.network import Layer, Network
from pairmargin.objective import Prices, Problem, assignments, objective_and_subgradient
from pairmargin.rbm import RBM, Pretraining, train_rbm
from pairmargin.threads import threads_for
from pairmargin.training import AdamSteps, Watch, train

RESULTS = Path(__file__).parents[1] / "results" / "speed.csv"
Work = Callable[[], Any]


def medians(*works: Work, rounds: int) -> list[float]:
    """Median seconds of each piece of work; they take turns, after one round that is not counted."""
    seconds: list[list[float]] = [[] for _ in works]
    for turn in range(rounds + 1):
        for work, taken in zip(works, seconds, strict=True):
            gc.collect()
            began = time.perf_counter()
            work()
            if turn:
                taken.append(time.perf_counter() - began)
    return [statistics.median(s) for s in seconds]


def exponent(sizes: list[int], seconds: list[float]) -> float:
    """Slope of log(seconds) over log(size): 1 is linear."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def holds(figure: float, asked: str) -> bool:
    """Whether a figure is what was asked: ">= 5", "<= 1.5", or nothing."""
    return not asked or (figure >= float(asked[3:]) if asked[0] == ">" else figure <= float(asked[3:]))


def random_pairs(n_samples: int, n_pairs: int, rng: np.random.RandomState) -> Pairs:
    """Distinct random pairs, every other one "same"."""
    first = rng.randint(0, n_samples, 3 * n_pairs)
    second = (first + 1 + rng.randint(0, n_samples - 1, 3 * n_pairs)) % n_samples
    index = np.unique(np.sort(np.column_stack([first, second]), 1), axis=0)
    index = index[rng.permutation(len(index))[:n_pairs]]
    return Pairs(index, np.arange(len(index)) % 2 == 0)


def cd_epoch(rounds: int, n: int) -> list[tuple[str, float, str]]:
    """One epoch of CD-1 in batches of 100, 784 → 400 binary units."""
    visible, hidden, batch = 784, 400, 100
    x = torch.rand(n, visible, generator=torch.Generator().manual_seed(0)).lt(0.2).float()
    generator = torch.Generator().manual_seed(0)
    rbm = RBM.random(visible, hidden, BINARY, generator, x)
    once = Pretraining(epochs=1, batch_size=batch)
    rival = BernoulliRBM(hidden, batch_size=batch, n_iter=1, random_state=0)
    dense = x.numpy()

    def ours() -> None:
        with threads_for(batch, visible, hidden):
            train_rbm(rbm, DenseInput(x), once, generator)

    v, h, weight = x[:batch].clone(), torch.rand(batch, hidden), torch.rand(visible, hidden)
    up, down, coupling = torch.empty(batch, hidden), torch.empty(batch, visible), torch.empty(visible, hidden)

    def bare() -> None:
        with threads_for(batch, visible, hidden):
            for _ in range(n // batch):
                torch.mm(v, weight, out=up)  # p(h | data)
                torch.mm(h, weight.T, out=down)  # reconstruction
                torch.mm(v, weight, out=up)  # p(h | reconstruction)
                torch.mm(v.T, h, out=coupling)  # ⟨v h⟩ of the data
                torch.mm(v.T, h, out=coupling)  # ⟨v h⟩ of the reconstruction

    mine, products, theirs = medians(ours, bare, lambda: rival.fit(dense), rounds=rounds)
    name = f"CD-1 epoch, {n} x 784 -> 400"
    return [
        (f"{name}: times faster than scikit-learn's BernoulliRBM", theirs / mine, ">= 5"),
        (f"{name}: the same, if it were nothing but its bare matrix products", theirs / products, ""),
        (f"{name}: time over its bare matrix products", mine / products, "<= 1.5"),
    ]


def training_iteration(rounds: int, n: int) -> list[tuple[str, float, str]]:
    """One full-batch iteration, 784 → 400 → 200 → 100 → 10 clusters, 5000 pairs."""
    generator = torch.Generator().manual_seed(0)
    sizes = [784, 400, 200, 100, 10]
    x = torch.rand(n, sizes[0], generator=generator)
    weights = [torch.randn(a, b, generator=generator) * 0.05 for a, b in pairwise(sizes)]
    layers = [Layer(w.clone(), torch.zeros(w.shape[1])) for w in weights[:-1]]
    network = Network(layers, torch.full((100,), 0.5), 1.0, weights[-1].T.contiguous(), torch.zeros(10))
    pairs = random_pairs(n, 5000, np.random.RandomState(0))
    problem = Problem.build(pairs, n, Prices(0.02, 1.0), like=x)
    steps = AdamSteps(network, 1e-4, 1e-4)
    data = DenseInput(x)

    def ours() -> None:
        scores = network.scores(data)
        _, _, step = objective_and_subgradient(scores, problem, network.squared_norm)
        steps(network.gradients(data, step, problem.prices.weight_penalty), 1)

    units = [torch.rand(n, width) for width in sizes[1:]]

    def bare() -> None:
        below = [x, *units[:-1]]
        for a, w in zip(below, weights, strict=True):  # forward
            torch.mm(a, w)
        for depth in range(len(weights) - 1, -1, -1):  # backward
            torch.mm(below[depth].T, units[depth])
            if depth:
                torch.mm(units[depth], weights[depth].T)

    mine, products = medians(ours, bare, rounds=rounds)
    name = f"training iteration, {n} x 784, [400, 200, 100], K = 10, 5000 pairs"
    return [(f"{name}: time over its bare matrix products", mine / products, "<= 1.5")]


def growth(rounds: int) -> list[tuple[str, float, str]]:
    """How the cost of an iteration grows with the rows, the pairs and the clusters."""
    rng = np.random.RandomState(0)

    def iteration(n: int) -> Work:
        x = torch.rand(n, 64)
        network = Network([Layer(torch.randn(64, 100) * 0.1, torch.zeros(100))], torch.full((100,), 0.5), 1.0,
                          torch.randn(10, 100), torch.zeros(10))  # fmt: skip
        problem = Problem.build(random_pairs(n, 500, rng), n, Prices(0.02, 1.0), like=x)
        return lambda: train(
            network, DenseInput(x), problem, AdamSteps(network, 1e-3, 1e-3), Watch(max_iter=3, tol=0.0)
        )

    def pair_search(n_pairs: int, n_clusters: int) -> Work:
        scores = torch.rand(20_000, n_clusters)
        index = torch.tensor(random_pairs(20_000, n_pairs, rng).index.copy())
        return lambda: assignments(scores, index)

    rows, counts, clusters = [10_000, 20_000, 40_000, 80_000], [10_000, 40_000, 160_000], [10, 100, 1000]
    by_rows = medians(*(iteration(n) for n in rows), rounds=rounds)
    by_pairs = medians(*(pair_search(m, 10) for m in counts), rounds=rounds)
    by_clusters = medians(*(pair_search(5000, k) for k in clusters), rounds=rounds)
    return [
        ("growth with the rows, fitted exponent", exponent(rows, by_rows), "<= 1.15"),
        ("growth with the pairs, fitted exponent", exponent(counts, by_pairs), "<= 1.15"),
        ("growth with the clusters, fitted exponent", exponent(clusters, by_clusters), "<= 1.15"),
        ("pair search, K = 1000 over K = 10", by_clusters[-1] / by_clusters[0], "<= 150"),
    ]


def imports() -> list[tuple[str, float, str]]:
    """How many modules of torch `import pairmargin` and the command's help bring in."""
    rows = []
    for name, code in {
        "import pairmargin": "import sys, pairmargin",
        "pairmargin --help": "import sys; sys.argv = ['pairmargin', '--help']\nfrom pairmargin.cli import main\n"
        "try: main()\nexcept SystemExit: pass",
    }.items():
        count = "\nprint(sum(m.split('.')[0] == 'torch' for m in sys.modules))"
        out = subprocess.run([sys.executable, "-c", code + count], capture_output=True, text=True, check=True).stdout
        rows.append((f"{name}: modules of torch imported", float(out.split()[-1]), "<= 0"))
    return rows


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the data, three rounds")
    quick = parser.parse_args().quick
    rounds, share = (3, 10) if quick else (7, 1)
    rows = [
        *cd_epoch(rounds, 10_000 // share),
        *training_iteration(rounds, 60_000 // share),
        *growth(rounds),
        *imports(),
    ]
    lines = ["| | figure | asked |", "|---|---|---|"]
    for name, figure, asked in rows:
        wanted = asked.replace(">=", "≥").replace("<=", "≤") + ("" if holds(figure, asked) else ", not reached")
        lines.append(f"| {name} | {figure:.2f} | {wanted} |")
    print("\n".join(lines))
    if not quick:
        readme.put("speed", "\n".join(lines))
        with RESULTS.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["what", "figure", "asked", "cores", "torch", "python"])
            facts = [os.cpu_count(), torch.__version__, platform.python_version()]
            writer.writerows([name, f"{figure:.3f}", asked, *facts] for name, figure, asked in rows)


if __name__ == "__main__":
    main()
