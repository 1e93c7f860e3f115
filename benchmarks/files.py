"""How long the command takes and how much memory: fit of 100 000 rows, predict of a million, and --help.

    python benchmarks/files.py [ROWS_TO_FIT [ROWS_TO_PREDICT]]

The data are made in a temporary folder: ten overlapping clouds in 50 columns, and 1000 answers. Reading is what pandas
takes, what pyarrow takes on all cores, and what our reader takes to make features of the file in pieces; every figure
comes from a process of its own, and what is compared runs in turns.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

N_COLUMNS, N_CLOUDS, N_ANSWERS = 50, 10, 1000
PARSE = "import sys, pyarrow.csv; pyarrow.csv.read_csv(sys.argv[1])"
PANDAS = "import sys, pandas; pandas.read_csv(sys.argv[1])"
READ = """
import sys
from pairmargin import load_recipe
for piece in load_recipe(sys.argv[1]).batches(sys.argv[2]): pass
"""
START = "import torch, sklearn.base, pairmargin.files.predicting"
COMMAND = "-m", "pairmargin"


class Cost(NamedTuple):
    """What a process took."""

    seconds: float  # on the clock
    work: float  # of the processor, all threads
    megabytes: float  # the most at any time


def cost(*arguments: str) -> Cost:
    """Run Python with these arguments and measure it."""
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"python {' '.join(arguments)} ended with {process.returncode}")
    return Cost(time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def best(*commands: Sequence[str], times: int) -> list[Cost]:
    """The least of several runs of each command, in turns."""
    runs = [[cost(*command) for command in commands] for _ in range(times)]
    return [min(costs) for costs in zip(*runs, strict=True)]


def tell(what: str, found: Cost) -> None:
    print(f"{what:44} {found.seconds:7.2f} s {found.work:7.2f} s of work {found.megabytes:6.0f} MB at most", flush=True)


def write_data(folder: Path, n_fit: int, n_predict: int) -> None:
    """Tables of both sizes, with the number of the cloud, and answers about the first one."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv

    from pairmargin import sample_pairs

    rng = np.random.default_rng(0)
    centres, mixing = rng.normal(scale=0.5, size=(N_CLOUDS, N_COLUMNS)), rng.normal(size=(N_COLUMNS, N_COLUMNS)) / 7
    for name, n_rows in (("fit", n_fit), ("predict", n_predict)):
        cloud = rng.integers(N_CLOUDS, size=n_rows)
        values = ((centres[cloud] + rng.normal(size=(n_rows, N_COLUMNS))) @ mixing).round(4)
        columns = {f"x{k}": values[:, k] for k in range(N_COLUMNS)}
        ids = [f"r{k}" for k in range(n_rows)]
        pyarrow.csv.write_csv(pa.table({"id": ids, **columns, "cloud": cloud}), folder / f"{name}.csv")
        if name == "fit":
            answers = sample_pairs(cloud, N_ANSWERS, random_state=0)
            a, b = ([f"r{k}" for k in side] for side in answers.index.T)
            pyarrow.csv.write_csv(pa.table({"a": a, "b": b, "same": answers.same}), folder / "answers.csv")


def measure(folder: Path) -> None:
    fit, new, answers, out = (str(folder / name) for name in ("fit.csv", "predict.csv", "answers.csv", "out"))
    options = "--clusters", str(N_CLOUDS), "--id", "id", "--truth", "cloud", "--out", out
    tell("fit", cost(*COMMAND, "fit", fit, "--pairs", answers, *options))
    record = json.loads(Path(out, "run.json").read_text())
    print(json.dumps({key: record[key] for key in ("seconds", "learned_from", "iterations", "scores")}))

    model = str(Path(out, "model.safetensors"))
    start, pandas, parse, read, predict = best(
        ("-c", START),
        ("-c", PANDAS, new),
        ("-c", PARSE, new),
        ("-c", READ, model, new),
        (*COMMAND, "predict", model, new, "--out", str(folder / "new.csv")),
        times=3,
    )
    reading = {"pandas": pandas, "pyarrow": parse, "our reader, in pieces": read}
    for what, found in reading.items():
        tell(f"read with {what}", found)
    tell("predict", predict)
    tell("of which: import", start)
    for what, found in reading.items():
        whole, work = predict.seconds / found.seconds, (predict.seconds - start.seconds) / found.seconds
        print(f"predict over reading with {what}: {whole:.2f}, without the imports {work:.2f}")

    nothing, help_ = best(("-c", "pass"), (*COMMAND, "--help"), times=15)
    print(f"--help {1000 * help_.seconds:.0f} ms, {help_.seconds / nothing.seconds:.2f} times python -c pass")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        if sys.argv[1:2] == ["write"]:
            write_data(Path(sys.argv[2]), *map(int, sys.argv[3:]))
        else:
            sizes = [*sys.argv[1:], *["100000", "1000000"][len(sys.argv) - 1 :]]
            cost(__file__, "write", name, *sizes)  # a process that the others are not children of
            measure(Path(name))
