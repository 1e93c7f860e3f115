"""Run the methods of other packages on the draws of an experiment, each in the environment of its package.

    python benchmarks/peers/environments.py
    python benchmarks/peers/run.py leaderboard [--datasets wine] [--methods cobras] [--n-pairs 100] [--seeds 3]
        [--drawings uniform]

A finished cell is stored with all the others, in results/cells. One that fails or takes too long is noted in
results/unfinished.csv with the reason, and is tried again only with --retry.
"""

from __future__ import annotations

import argparse
import os
import subprocess
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import joblib
import numpy as np
import psutil
from environments import FOLDER, HERE, interpreter, is_ready

from pairmargin.exceptions import ExperimentError, PairMarginError, unknown_name
from pairmargin.experiments import specs
from pairmargin.experiments.runner import PeakMemory, scored
from pairmargin.experiments.specs import ASKED, BALANCED, FOREIGN, Cell, Experiment
from pairmargin.experiments.store import Row, Store
from pairmargin.experiments.unfinished import LIMIT, TooSlow, Unfinished

ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
COLUMNS = {"python": "python", "numpy": "numpy", "scipy": "scipy", "scikit-learn": "scikit_learn", "torch": "torch"}
LOOK_EVERY = 1.0  # seconds between two looks at what a worker has taken


class WorkerFailed(Exception):
    """A worker has ended without an answer; the message is the last thing that it said."""


def wanted(
    name: str,
    datasets: Collection[str] | None = None,
    methods: Collection[str] | None = None,
    n_pairs: Collection[int] | None = None,
    seeds: int | None = None,
    drawings: Collection[str] | None = None,
) -> list[Cell]:
    """The draws of an experiment, or of all, with the foreign methods in the place of its own."""
    plans = [
        replace(plan, methods=tuple(methods or _fitting(plan)), extra=(), drawings=_drawn(plan))
        for plan in specs.select(name)
    ]
    cells = {cell for plan in plans for cell in plan.cells(seeds)}
    for what, known, asked in (
        ("foreign method", FOREIGN, methods),
        (f"{name} data set", {cell.dataset for cell in cells}, datasets),
        (f"{name} number of pairs", {str(cell.n_pairs) for cell in cells}, [str(n) for n in n_pairs or ()]),
        (f"{name} drawing", {cell.drawing for cell in cells}, drawings),
    ):
        for each in asked or ():
            if each not in known:
                raise ExperimentError(unknown_name(what, each, sorted(known)))
    return sorted(
        cell
        for cell in cells
        if cell.dataset in (datasets or [cell.dataset])
        and cell.n_pairs in (n_pairs or [cell.n_pairs])
        and cell.drawing in (drawings or [cell.drawing])
    )


def _fitting(plan: Experiment) -> list[str]:
    """The methods that choose their questions, if that is what an experiment is about; else those that take answers."""
    asks = any(drawing in ASKED for drawing in plan.drawings)
    return [name for name, method in FOREIGN.items() if method.asks == asks]


def _drawn(plan: Experiment) -> tuple[str, ...]:
    """The ways of an experiment to draw answers; who asks for them is no matter for other packages."""
    return tuple(drawing for drawing in plan.drawings if drawing not in ASKED) or (BALANCED,)


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
    scores = None if method.asks else specs.agreement(labels, task.test)
    return scored(cell, task, (labels, scores), seconds, memory, versions)


def _call(worker: Sequence[str], limit: float) -> int:
    """Let a worker work; the bytes that it took at most."""
    process = subprocess.Popen(
        worker,
        env=os.environ | ONE_THREAD,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process, PeakMemory(process.pid) as memory:
        try:
            said = _last_words(process, limit)
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise WorkerFailed((said.strip().splitlines() or [f"ended with code {process.returncode}"])[-1])
    return memory.peak


def _last_words(process: subprocess.Popen[str], limit: float) -> str:
    """What a worker says in the end; one that takes more of the processor than it may is not waited for."""
    worker = psutil.Process(process.pid)
    while True:
        try:
            return process.communicate(timeout=LOOK_EVERY)[1]
        except subprocess.TimeoutExpired:
            if sum(worker.cpu_times()[:2]) > limit:  # user and system
                raise TooSlow(limit) from None


def run(
    cells: Iterable[Cell], store: Store, unfinished: Unfinished, environments: Path, limit: float, n_jobs: int = 1
) -> None:
    """Compute cells and store what they give."""

    def attempt(cell: Cell) -> tuple[Cell, Row | str]:
        if reason := unfinished.hopeless(cell):
            return cell, reason
        try:
            return cell, measure(cell, command(cell.method, environments), limit)
        except (TooSlow, WorkerFailed) as error:
            return cell, str(error)

    side_by_side = joblib.Parallel(
        n_jobs, prefer="threads", batch_size=1, pre_dispatch=n_jobs, return_as="generator_unordered"
    )
    for cell, outcome in side_by_side(joblib.delayed(attempt)(cell) for cell in cells):
        if isinstance(outcome, Row):
            store.append(outcome)
            told = f"accuracy {outcome.accuracy:.1%}, ARI {outcome.ari:.3f}, {outcome.seconds:.2f} s"
        else:
            unfinished.note(cell, outcome)
            told = outcome
        print(f"{cell}: {told}", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is asked for and not there yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", help="whose draws are taken, such as table2; all is all of them")
    parser.add_argument("--datasets", nargs="+", metavar="NAME")
    parser.add_argument("--methods", nargs="+", metavar="NAME", help=f"of {', '.join(FOREIGN)}")
    parser.add_argument("--n-pairs", nargs="+", type=int, metavar="N")
    parser.add_argument("--seeds", type=int, help="how many draws, if not the experiment's own number")
    parser.add_argument("--drawings", nargs="+", metavar="NAME", help="balanced or uniform; both if not given")
    parser.add_argument("--limit", type=float, default=LIMIT, help="processor seconds for a worker (%(default)g)")
    parser.add_argument("--jobs", type=int, default=1, help="workers side by side, with one thread each (%(default)s)")
    parser.add_argument("--retry", action="store_true", help="try again what has failed before")
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--environments", type=Path, default=FOLDER)
    asked = parser.parse_args(arguments)
    try:
        cells = wanted(asked.experiment, asked.datasets, asked.methods, asked.n_pairs, asked.seeds, asked.drawings)
        for package in sorted({FOREIGN[cell.method].package for cell in cells}):
            if not is_ready(asked.environments, package):
                raise ExperimentError(
                    f"{asked.environments} has no environment for {package}, or one of other versions; "
                    f"run: python benchmarks/peers/environments.py --folder {asked.environments}"
                )
        store = Store(asked.results)
        with store.writing():
            unfinished, done = Unfinished(asked.results), store.done()
            if asked.retry:
                unfinished.forget(cells)
            waiting = [cell for cell in cells if cell not in done and cell not in unfinished.reasons]
            specs.fetch({cell.dataset for cell in waiting})
            run(waiting, store, unfinished, asked.environments, asked.limit, asked.jobs)
    except PairMarginError as error:
        parser.exit(1, f"{error}\n")


if __name__ == "__main__":
    main()
