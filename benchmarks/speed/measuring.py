"""The clock, the memory, processes of their own, and data to measure with.

    python -m speed.measuring MODULE:FUNCTION SETTINGS ANSWER    # what `apart` starts

Rivals take turns in one run, so that a busy machine slows all of them. What is heavy runs in a process of its own, so
that its memory is not that of others.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

from pairmargin import Pairs

HERE = Path(__file__).parents[1]
LOOK_EVERY = 0.01  # seconds between two looks at the memory
PIECE = 50_000  # rows that are written together
SPREAD = 0.6  # of the centres of clouds whose points have a spread of 1
WITH_FILE = "the pages of the file included"

Array = NDArray[Any]
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


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Slope of log(cost) over log(size): 1 is linear."""
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])


@dataclass(frozen=True)
class Options:
    """How much is measured, and where the data may be written."""

    quick: bool
    environments: Path  # of the peers
    folder: Path | None = None  # None: where the system keeps what is temporary

    @property
    def rounds(self) -> int:
        return 3 if self.quick else 7

    def scaled(self, n: int) -> int:
        """A size, or a twentieth of it."""
        return n // 20 if self.quick else n


class Cost:
    """Seconds and megabytes of what happens inside the block, above what was resident before it.

    ``megabytes`` counts all resident pages, those of mapped files too, which the system takes back when it needs them;
    ``own_megabytes`` leaves them out where the system tells them apart.
    """

    def __enter__(self) -> Cost:
        gc.collect()
        self._process, self._over = psutil.Process(), threading.Event()
        self._before, self._peak = self._resident(), (0, 0)
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()
        self._began = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._began
        self._over.set()
        self._watcher.join()
        self._look()
        self.megabytes, self.own_megabytes = (
            max(peak - before, 0) / 2**20 for peak, before in zip(self._peak, self._before, strict=True)
        )

    @property
    def figures(self) -> dict[str, float]:
        return {"seconds": self.seconds, "megabytes": self.megabytes, "own_megabytes": self.own_megabytes}

    def _resident(self) -> tuple[int, int]:
        found = self._process.memory_info()
        return found.rss, found.rss - getattr(found, "shared", 0)

    def _look(self) -> None:
        whole, own = self._resident()
        self._peak = max(self._peak[0], whole), max(self._peak[1], own)

    def _watch(self) -> None:
        while not self._over.wait(LOOK_EVERY):
            self._look()


def apart(
    work: Callable[..., dict[str, Any]], *, processes: int = 1, threads: int | None = None, **settings: Any
) -> dict[str, Any]:
    """What a function gives in a process of its own, or the first of several that are a process group."""
    launch = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"] if processes > 1 else []
    path = [str(HERE), str(HERE / "peers"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path)}
    if threads is not None:
        environment |= {f"{library}_NUM_THREADS": str(threads) for library in ("OMP", "OPENBLAS", "MKL")}
    with TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        task = ["-m", "speed.measuring", f"{work.__module__}:{work.__name__}", json.dumps(settings), str(answer)]
        done = subprocess.run([sys.executable, *launch, *task], env=environment, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise RuntimeError(f"{work.__name__} ended with {done.returncode}:\n{done.stderr[-3000:]}")
        found: dict[str, Any] = json.loads(answer.read_text())
        return found


def medians_apart(*works: dict[str, Any], rounds: int) -> list[dict[str, float]]:
    """`apart` for each of several settings, in turns; the medians of their figures."""
    found: list[list[dict[str, float]]] = [[] for _ in works]
    for _ in range(rounds):
        for work, runs in zip(works, found, strict=True):
            runs.append(apart(**work))
    return [{name: statistics.median(run[name] for run in runs) for name in runs[0]} for runs in found]


def random_pairs(n_samples: int, n_pairs: int, seed: int = 0) -> Pairs:
    """Distinct random pairs, every other one "same"."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, n_samples, 2 * n_pairs)
    second = (first + 1 + rng.integers(0, n_samples - 1, 2 * n_pairs)) % n_samples
    keys = np.unique(np.minimum(first, second) * n_samples + np.maximum(first, second))
    keys = rng.permutation(keys)[:n_pairs]
    return Pairs(np.column_stack([keys // n_samples, keys % n_samples]), np.arange(len(keys)) % 2 == 0)


@contextmanager
def clouds(n: int, n_columns: int, n_clouds: int, folder: Path | None) -> Iterator[tuple[Path, Array]]:
    """A file of points in Gaussian clouds, written piece by piece, while the block lasts; and the cloud of each."""
    rng = np.random.default_rng(0)
    centres = SPREAD * rng.standard_normal((n_clouds, n_columns), dtype=np.float32)
    kinds = rng.integers(n_clouds, size=n)
    with TemporaryDirectory(dir=folder) as name:
        path = Path(name) / "points.npy"
        with path.open("wb") as file:
            header = {"descr": "<f4", "fortran_order": False, "shape": (n, n_columns)}
            np.lib.format.write_array_header_1_0(file, header)
            for start in range(0, n, PIECE):
                kind = kinds[start : start + PIECE]
                points = rng.standard_normal((len(kind), n_columns), dtype=np.float32)
                points += centres[kind]
                points.tofile(file)
        np.save(Path(name) / "kinds.npy", kinds)
        yield path, kinds


def main() -> None:
    """Do what `apart` asks for; of a process group, the first member answers."""
    name, settings, answer = sys.argv[1:]
    module, _, function = name.partition(":")
    found = getattr(import_module(module), function)(**json.loads(settings))
    if os.environ.get("RANK", "0") == "0":
        Path(answer).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
