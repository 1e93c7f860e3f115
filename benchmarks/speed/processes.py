"""Two processes with one thread each against one process with one thread, in large batches.

How much two cores can give is told by two processes that only multiply matrices, and never talk to each other, right
before and right after the fit. Where other machines share the cores, that may be far less than twice as much.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from pairmargin import MaxMarginClustering, sample_pairs
from pairmargin.team import Team

from .measuring import Options, clouds, medians_apart
from .rows import Row

N_COLUMNS, LAYERS, N_CLUSTERS, N_PAIRS = 784, (400, 200, 100), 10, 5000
BATCH, PRETRAIN_BATCH = 10_000, 2_000
ASKED = {"both": ">= 1.6", "pretraining": "", "training": "", "whole": "", "products": ""}
MOST = 2.1  # times as fast as one that two processes can be
BUSY = "not to be believed: the machine was busy"


def measure(options: Options) -> list[Row]:
    n = options.scaled(60_000)
    size = f"n={n} D={N_COLUMNS} K={N_CLUSTERS} pairs={N_PAIRS} batch={BATCH}"
    with clouds(n, N_COLUMNS, N_CLUSTERS, options.folder) as (path, _):
        task: dict[str, Any] = {"work": fit, "path": str(path), "threads": 1}
        one, two = medians_apart(task, task | {"processes": 2}, rounds=1 if options.quick else 3)
    names = {
        "both": "pretraining and training",
        "pretraining": "pretraining",
        "training": "training",
        "whole": "the whole fit, with the start, which one of them makes",
        "products": "bare matrix products, which is what the machine can give",
    }
    gain = {name: one[name] / two[name] for name in names}
    note = BUSY if gain["products"] > MOST else ""
    rows = [
        Row("processes", f"two processes over one: {words}", gain[name], "ratio", ASKED[name], size, note)
        for name, words in names.items()
    ]
    share, what = gain["both"] / gain["products"], "pretraining and training, as a share of what the machine can give"
    return [*rows, Row("processes", f"two processes over one: {what}", share, "ratio", "", size, note)]


def fit(path: str) -> dict[str, float]:
    """One fit by a team, or alone; seconds of its stages."""
    torch.set_num_threads(1)
    team = _join()
    X, kinds = np.load(path, mmap_mode="r"), np.load(path.replace("points", "kinds"))
    pairs = sample_pairs(kinds, N_PAIRS, random_state=0)
    model = MaxMarginClustering(
        N_CLUSTERS,
        LAYERS,
        n_init=1,
        init="k-means",
        robust=False,
        batch_size=BATCH,
        pretrain_batch_size=PRETRAIN_BATCH,
        pretrain_epochs=3,
        max_iter=5,
        tol=0.0,
        random_state=0,
    )
    products = _products(team)
    began = time.perf_counter()
    model.fit(X, pairs=pairs)
    whole = time.perf_counter() - began
    products += _products(team)
    pretraining = sum(row["seconds"] for row in model.pretraining_history_)
    training = model.history_[-1]["seconds"]
    if team.size > 1:
        dist.destroy_process_group()
    stages = {"pretraining": pretraining, "training": training, "both": pretraining + training}
    return stages | {"whole": whole, "products": products}


def _join() -> Team:
    if dist.is_torchelastic_launched():
        dist.init_process_group("gloo", timeout=timedelta(minutes=10))
    return Team.current()


def _products(team: Team) -> float:
    """Seconds for a hundred products of a batch, of which a member has its share."""
    rows = torch.rand(BATCH, N_COLUMNS)[team.share(BATCH)]
    weight = torch.rand(N_COLUMNS, LAYERS[0])
    team.meet()
    began = time.perf_counter()
    for _ in range(100):
        torch.mm(rows, weight)
    team.meet()
    return time.perf_counter() - began
