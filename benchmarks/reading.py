"""How long it takes to read a table of a million rows and 50 columns, and how much memory: whole, and in pieces.

    python benchmarks/reading.py [ROWS]

Every figure is taken in a process of its own. The first line of each format is the bare reader, for comparison.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from pairmargin import Recipe, read_items

LEARNED_FROM = 20_000  # rows of the file that the recipe is made of


def write_files(folder: Path, n_rows: int) -> None:
    """The same table as CSV and Parquet, its numbers as an array, and the recipe of the first rows of each."""
    rng = np.random.default_rng(0)
    numbers = {f"x{k}": np.round(rng.normal(size=n_rows) * 10.0 ** (k % 4), 4) for k in range(47)}
    city = rng.choice(["Rome", "Oslo", "Bern", "Paris"], n_rows)
    day = np.datetime64("2020-01-01") + rng.integers(0, 2000, n_rows).astype("timedelta64[D]")
    table = pa.table({"name": [f"r{k}" for k in range(n_rows)], **numbers, "city": city, "day": day})
    arrays = np.column_stack(list(numbers.values()))
    for name, rows in (("large", n_rows), ("small", LEARNED_FROM)):
        pyarrow.csv.write_csv(table.slice(0, rows), folder / f"{name}.csv")
        pyarrow.parquet.write_table(table.slice(0, rows), folder / f"{name}.parquet")
        np.save(folder / f"{name}.npy", arrays[:rows])
    for ending in ("csv", "parquet", "npy"):
        recipe = read_items(folder / f"small.{ending}", id=None if ending == "npy" else "name").recipe
        (folder / f"{ending}.json").write_text(json.dumps(recipe.state()[0]))


def bare(path: Path, recipe: Recipe) -> int:
    """The rows, read by pyarrow or NumPy alone."""
    if path.suffix == ".npy":
        return len(np.load(path))
    return int((pyarrow.csv.read_csv(path) if path.suffix == ".csv" else pyarrow.parquet.read_table(path)).num_rows)


def whole(path: Path, recipe: Recipe) -> int:
    """The items, all at once, by a recipe that is made of them."""
    return len(read_items(path, id=None if path.suffix == ".npy" else "name"))


def pieces(path: Path, recipe: Recipe) -> int:
    """The items, 10 000 at a time, by a recipe that was stored."""
    return sum(len(piece) for piece in recipe.batches(path))


WAYS: dict[str, Callable[[Path, Recipe], int]] = {each.__name__: each for each in (bare, whole, pieces)}


def measure(way: str, folder: str, ending: str) -> None:
    """Print seconds and megabytes of one way to read one file."""
    facts: dict[str, Any] = json.loads(Path(folder, f"{ending}.json").read_text())
    recipe = Recipe.from_state(facts, {})
    WAYS[way](Path(folder, f"small.{ending}"), recipe)  # so that imports are not counted as reading
    start, used = time.perf_counter(), time.process_time()
    rows = WAYS[way](Path(folder, f"large.{ending}"), recipe)
    seconds, worked = time.perf_counter() - start, time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{ending:8} {way:7} {rows:9,} rows {seconds:6.1f} s {worked:6.1f} s of work {peak:6.0f} MB at most")


def run(*command: str) -> None:
    """Do something in a process of its own; it would count the memory of a large parent as its own."""
    subprocess.run([sys.executable, __file__, *command], check=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["write"]:
        write_files(Path(sys.argv[2]), int(sys.argv[3]))
    elif sys.argv[1:2] == ["measure"]:
        measure(*sys.argv[2:])
    else:
        with tempfile.TemporaryDirectory() as folder:
            run("write", folder, *(sys.argv[1:] or ["1000000"]))
            for ending in ("csv", "parquet", "npy"):
                for way in WAYS:
                    run("measure", way, folder, ending)
