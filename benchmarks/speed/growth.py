"""How the cost of a training step grows with the rows, the answers, the clusters and the layers."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import torch

from pairmargin.objective import assignments

from .measuring import Options, Work, apart, exponent, medians
from .pair_search import task
from .rows import Row
from .steps import N_LINKS, our_step

SIZES = {
    "rows": [10_000, 20_000, 40_000, 80_000],
    "answers": [20_000, 80_000, 320_000],
    "clusters": [10, 100, 1000],
    "layers": [1, 2, 4, 8],
}
ASKED = "<= 1.05"


def measure(options: Options) -> list[Row]:
    rows = []
    for what, sizes in SIZES.items():
        some = sizes[:-1] if options.quick else sizes
        found = apart(times, what=what, sizes=some, rounds=options.rounds)["seconds"]
        unit = {"answers": "pair search", "clusters": "pair search"}.get(what, "training step")
        name = f"{unit}, by the number of {what}"
        rows += [Row("growth", name, seconds, "s", "", f"{what}={n}") for n, seconds in zip(some, found, strict=True)]
        rows.append(Row("growth", f"{name}, fitted exponent", exponent(some, found), "exponent", ASKED))
    return rows


def times(what: str, sizes: list[int], rounds: int) -> dict[str, list[float]]:
    """Seconds of a step of every size, in turns."""
    if what in ("answers", "clusters"):
        tasks = [task(20_000, 10, size) if what == "answers" else task(20_000, size, 20_000) for size in sizes]
        works: list[Work] = [partial(assignments, *each) for each in tasks]
    else:
        works = [_step(size, 1) if what == "rows" else _step(20_000, size) for size in sizes]
    return {"seconds": medians(*works, rounds=rounds)}


def _step(n: int, n_layers: int) -> Work:
    generator = torch.Generator().manual_seed(0)
    widths = [64] + [100] * n_layers + [10]
    weights = [0.1 * torch.randn(a, b, generator=generator) for a, b in pairwise(widths)]
    return our_step(torch.rand(n, widths[0], generator=generator), weights, N_LINKS, n_pairs=500)
