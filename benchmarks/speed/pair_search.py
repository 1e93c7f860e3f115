"""Finding the best explanations of every pair, against one pass over the scores that it has to look at.

The pass gathers the scores of both ends of every pair, adds them and takes the highest sum of each, in pieces that fit
the cache. The search also has to know which cluster that is, and the best two different clusters.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pairmargin.objective import assignments

from .measuring import Cost, Options, apart, medians, random_pairs
from .rows import Row

N_POINTS = 100_000
PIECE = 2**18  # scores that are gathered together


def measure(options: Options) -> list[Row]:
    n_clusters, n, n_pairs = 1000, options.scaled(N_POINTS), options.scaled(1_000_000)
    size = f"n={n} K={n_clusters} pairs={n_pairs}"
    found = apart(times, n=n, n_clusters=n_clusters, n_pairs=n_pairs, rounds=options.rounds)
    memory = apart(memory_of_search, n=n, n_clusters=n_clusters, n_pairs=n_pairs)
    name, ratio = "pair search, K = 1000", found["search"] / found["bare"]
    return [
        Row("pairs", f"{name}, over one pass over the gathered scores", ratio, "ratio", "<= 3", size),
        Row("pairs", name, found["search"], "s", "", size),
        Row("pairs", f"{name}, memory beside the scores", memory["megabytes"], "MB", "", size),
    ]


def times(n: int, n_clusters: int, n_pairs: int, rounds: int) -> dict[str, float]:
    """The search and the pass, in turns."""
    scores, index = task(n, n_clusters, n_pairs)
    works = (lambda: assignments(scores, index)), (lambda: one_pass(scores, index))
    return dict(zip(("search", "bare"), medians(*works, rounds=rounds), strict=True))


def memory_of_search(n: int, n_clusters: int, n_pairs: int) -> dict[str, float]:
    scores, index = task(n, n_clusters, n_pairs)
    assignments(scores, index[:100])
    with Cost() as cost:
        assignments(scores, index)
    return cost.figures


def task(n: int, n_clusters: int, n_pairs: int) -> tuple[Tensor, Tensor]:
    """Random scores and pairs."""
    scores = torch.rand(n, n_clusters, generator=torch.Generator().manual_seed(0))
    return scores, torch.tensor(random_pairs(n, n_pairs).index.copy())


def one_pass(scores: Tensor, index: Tensor) -> Tensor:
    """The highest sum of the scores of both ends of every pair."""
    parts = torch.split(index, max(PIECE // scores.shape[1], 1))
    return torch.cat([scores[part[:, 0]].add_(scores[part[:, 1]]).amax(1) for part in parts])
