"""Run the methods of other packages on the draws of an experiment, each in the environment of its package.

    python benchmarks/peers/environments.py
    python benchmarks/peers/run.py table2 [--datasets wine] [--methods cobras] [--n-pairs 100] [--seeds 3]

A finished cell is stored with all the others, in results/cells. One that fails or takes too long is noted in
results/peers-failed.csv with the reason, and is tried again only with --retry.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
from collections.abc import Collection, Iterable, Sequence
from dataclasses import astuple, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import joblib
import numpy as np
from environments import FOLDER, HERE, interpreter, is_ready

from pairmargin.exceptions import ExperimentError, PairMarginError, unknown_name
from pairmargin.experiments import specs
from pairmargin.experiments.runner import PeakMemory, scored
from pairmargin.experiments.specs import FOREIGN, Cell
from pairmargin.experiments.store import Row, Store

ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
COLUMNS = {"python": "python", "numpy": "numpy", "scipy": "scipy", "scikit-learn": "scikit_learn", "torch": "torch"}


class TooSlow(Exception):
    """A worker has taken longer than it may."""


class WorkerFailed(Exception):
    """A worker has ended without an answer; the message is the last thing that it said."""


class Failures:
    """The cells that gave nothing, and why: a CSV beside the finished ones."""

    def __init__(self, results: Path) -> None:
        self._path = results / "peers-failed.csv"
        self.reasons: dict[Cell, str] = {}
        if self._path.exists():
            with self._path.open(newline="", encoding="utf-8") as file:
                _, *lines = csv.reader(file)
            self.reasons = {Cell(d, m, int(n), int(seed)): reason for d, m, n, seed, reason in lines}

    def note(self, cell: Cell, reason: str) -> None:
        self.reasons[cell] = reason
        self._write()

    def forget(self, cells: Iterable[Cell]) -> None:
        for cell in cells:
            self.reasons.pop(cell, None)
        self._write()

    def _write(self) -> None:
        fresh = self._path.with_suffix(".new")
        with fresh.open("w", newline="", encoding="utf-8") as file:
            lines = csv.writer(file, lineterminator="\n")
            lines.writerow([*(field.name for field in fields(Cell)), "reason"])
            lines.writerows([*astuple(cell), self.reasons[cell]] for cell in sorted(self.reasons))
        os.replace(fresh, self._path)


def wanted(
    name: str,
    datasets: Collection[str] | None = None,
    methods: Collection[str] | None = None,
    n_pairs: Collection[int] | None = None,
    seeds: int | None = None,
) -> list[Cell]:
    """The draws of an experiment, or of all, with the foreign methods in the place of its own."""
    chosen = tuple(methods or FOREIGN)
    plans = [replace(plan, methods=chosen, extra=()) for plan in specs.select(name)]
    cells = {cell for plan in plans for cell in plan.cells(seeds)}
    for what, known, asked in (
        ("foreign method", FOREIGN, methods),
        (f"{name} data set", {cell.dataset for cell in cells}, datasets),
        (f"{name} number of pairs", {str(cell.n_pairs) for cell in cells}, [str(n) for n in n_pairs or ()]),
    ):
        for each in asked or ():
            if each not in known:
                raise ExperimentError(unknown_name(what, each, sorted(known)))
    return sorted(c for c in cells if c.dataset in (datasets or [c.dataset]) and c.n_pairs in (n_pairs or [c.n_pairs]))


def command(method: str, environments: Path) -> list[str]:
    """How the worker of a method is started."""
    package = FOREIGN[method].package
    return [str(interpreter(environments, package)), str(HERE / f"{package}_worker.py"), method]


def measure(cell: Cell, worker: Sequence[str], limit: float) -> Row:
    """One cell. Seconds are those that the worker counts; memory is that of its process from start to end."""
    task, method = specs.draw(cell), FOREIGN[cell.method]
    with TemporaryDirectory() as folder:
        question, answer = (os.path.join(folder, name) for name in ("task.npz", "answer.npz"))
        np.savez(
            question,
            X=(specs.metric_inputs if method.learns_metric else specs.inputs)(task).astype(float),
            n_clusters=task.n_clusters,
            index=task.train.index,
            same=task.train.same,
            seed=task.seed,
            oracle=task.y if method.asks else [],
        )
        memory = _call([*worker, question, answer], limit)
        with np.load(answer) as file:
            labels, seconds, found = file["labels"], float(file["seconds"]), dict(file["versions"].tolist())
    versions = {column: found.get(name, "") for name, column in COLUMNS.items()}
    return scored(cell, task, (labels, specs.agreement(labels, task.test)), seconds, memory, versions)


def _call(worker: Sequence[str], limit: float) -> int:
    """Let a worker work; the bytes that it took at most."""
    process = subprocess.Popen(
        worker, env=os.environ | ONE_THREAD, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    with process, PeakMemory(process.pid) as memory:
        try:
            _, said = process.communicate(timeout=limit)
        except BaseException as error:
            process.kill()
            if isinstance(error, subprocess.TimeoutExpired):
                raise TooSlow(f"took more than {limit:g} s") from None
            raise
    if process.returncode:
        raise WorkerFailed((said.strip().splitlines() or [f"ended with code {process.returncode}"])[-1])
    return memory.peak


def run(
    cells: Iterable[Cell], store: Store, failures: Failures, environments: Path, limit: float, n_jobs: int = 1
) -> None:
    """Compute cells and store what they give; after a draw that is too slow, no other one of its kind is tried."""
    slow: dict[Cell, int] = {}

    def attempt(cell: Cell) -> tuple[Cell, Row | str]:
        kind = replace(cell, seed=0)
        if kind in slow:
            return cell, f"not tried: seed {slow[kind]} took more than {limit:g} s"
        try:
            return cell, measure(cell, command(cell.method, environments), limit)
        except TooSlow as error:
            slow[kind] = cell.seed
            return cell, str(error)
        except WorkerFailed as error:
            return cell, str(error)

    side_by_side = joblib.Parallel(
        n_jobs, prefer="threads", batch_size=1, pre_dispatch=n_jobs, return_as="generator_unordered"
    )
    for cell, outcome in side_by_side(joblib.delayed(attempt)(cell) for cell in cells):
        if isinstance(outcome, Row):
            store.append(outcome)
            told = f"accuracy {outcome.accuracy:.1%}, ARI {outcome.ari:.3f}, {outcome.seconds:.2f} s"
        else:
            failures.note(cell, outcome)
            told = outcome
        print(f"{cell.dataset}, {cell.method}, {cell.n_pairs} pairs, seed {cell.seed}: {told}", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is asked for and not there yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", help="whose draws are taken, such as table2; all is all of them")
    parser.add_argument("--datasets", nargs="+", metavar="NAME")
    parser.add_argument("--methods", nargs="+", metavar="NAME", help=f"of {', '.join(FOREIGN)}")
    parser.add_argument("--n-pairs", nargs="+", type=int, metavar="N")
    parser.add_argument("--seeds", type=int, help="how many draws, if not the experiment's own number")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds that a worker may take (%(default)g)")
    parser.add_argument("--jobs", type=int, default=1, help="workers side by side, with one thread each (%(default)s)")
    parser.add_argument("--retry", action="store_true", help="try again what has failed before")
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--environments", type=Path, default=FOLDER)
    asked = parser.parse_args(arguments)
    try:
        cells = wanted(asked.experiment, asked.datasets, asked.methods, asked.n_pairs, asked.seeds)
        for package in sorted({FOREIGN[cell.method].package for cell in cells}):
            if not is_ready(asked.environments, package):
                raise ExperimentError(
                    f"{asked.environments} has no environment for {package}, or one of other versions; "
                    f"run: python benchmarks/peers/environments.py --folder {asked.environments}"
                )
        store = Store(asked.results)
        with store.writing():
            failures, done = Failures(asked.results), store.done()
            if asked.retry:
                failures.forget(cells)
            waiting = [cell for cell in cells if cell not in done and cell not in failures.reasons]
            specs.fetch({cell.dataset for cell in waiting})
            run(waiting, store, failures, asked.environments, asked.limit, asked.jobs)
    except PairMarginError as error:
        parser.exit(1, f"{error}\n")


if __name__ == "__main__":
    main()
