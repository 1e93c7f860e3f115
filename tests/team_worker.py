"""A member of a team: fits a model with settings from a file, and writes what came out to a file of its own."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from pairmargin import MaxMarginClustering, PairMarginError, Pairs, team


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    task = json.loads((folder / "task.json").read_text())
    dist.init_process_group("gloo", timeout=timedelta(seconds=task.get("patience", 60)))
    rank = dist.get_rank()
    if "hangs_at" in task:
        team.GRACE = 2
    data = np.load(folder / "data.npz")
    X, pairs = data["X"], Pairs(data["index"], data["same"])
    if "differs" in task:
        (folder / f"error{rank}.txt").write_text("\n".join(complaints(X, pairs, task["settings"], rank)))
        dist.destroy_process_group()
        return
    if task.get("stored"):
        np.save(folder / f"X{rank}.npy", X)
        X = np.load(folder / f"X{rank}.npy", mmap_mode="r")
    dies_at = task.get("dies_at") if os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0" else None

    def on_row(row: dict[str, Any]) -> None:
        at = [row["phase"], row.get("iteration", row.get("epoch"))]
        if rank == 1 and at == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if rank == 1 and at == task.get("hangs_at"):
            time.sleep(1000)

    try:
        model = MaxMarginClustering(**task["settings"], callback=on_row).fit(X, pairs=pairs)
    except PairMarginError as error:
        (folder / f"error{rank}.txt").write_text(f"{type(error).__name__}: {error}")
        if "hangs_at" not in task:
            dist.barrier()  # one that leaves takes the connection along
        dist.destroy_process_group()
        return
    arrays = {f"coef{k}": array for k, array in enumerate(model.coefs_)}
    objective = [row["objective"] for row in model.history_]
    np.savez(
        folder / f"model{rank}.npz",
        head=model.head_coef_,
        bias=model.head_intercept_,
        labels=model.labels_,
        objective=objective,
        trust=model.answer_trust_,
        unit=model.score_unit_,
        **arrays,
    )
    dist.destroy_process_group()


def complaints(X: Any, pairs: Pairs, settings: dict[str, Any], rank: int) -> Iterator[str]:
    """What a member says if the second one has other data, other answers, or other settings."""
    for data, answers, changes in ((X + rank, pairs, {}), (X, pairs[rank:], {}), (X, pairs, {"max_iter": 5 + rank})):
        try:
            MaxMarginClustering(**(settings | changes)).fit(data, pairs=answers)
            yield "it learned"
        except PairMarginError as error:
            yield f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
