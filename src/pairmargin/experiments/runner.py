"""How an experiment is run: its cells side by side, each stored as soon as it is finished.

Seconds are those of `Method.cluster` alone: learning, predicting and scoring the held-out pairs, not loading the data.
Memory is the largest resident set of the whole process meanwhile, so Python, torch and the data are part of it; it is
looked at every 10 ms, which works on every system but misses what comes and goes faster. A cell that takes too much of
the processor is stopped and noted: see `unfinished`.
"""

from __future__ import annotations

import logging
import os
import platform
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pkgutil import iter_modules
from typing import TYPE_CHECKING

import joblib
import numpy as np
import psutil
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from threadpoolctl import threadpool_limits

from .. import baselines
from .._version import __version__
from ..exceptions import ExperimentError, unknown_name
from ..metrics import PairRoc, clustering_accuracy, pair_roc
from ..threads import threads_for
from ..validation import POSITIVE, Rules, check_rules, integer
from . import specs
from .questions import curves, follow
from .specs import Cell, Result, Task
from .store import FALSE_POSITIVE_RATES, KEY, Row, Store
from .unfinished import LIMIT, TooSlow, Unfinished, processor_limit

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PeakMemory", "Progress", "measure", "run_experiment", "scored"]

logger = logging.getLogger("pairmargin")

LOOK_EVERY = 0.01  # seconds between two looks at the memory
SHOWN = 3  # failed cells that a message names; the rest it counts

_COUNT = ("an integer, 1 or more, or None for the default", lambda v: v is None or integer(1)[1](v))
RULES: Rules = {"seeds": _COUNT, "n_jobs": _COUNT, "limit": POSITIVE}


@dataclass(frozen=True)
class Progress:
    """How far a run has come."""

    cells: int  # all that were asked for, with those that were there before
    done: int
    failed: int
    seconds_left: float | None  # None while nothing is known
    cell: Cell | None = None  # the one that has just ended; None at the start
    row: Row | None = None  # what it gave; None if it failed or was too slow


def run_experiment(
    name: str,
    *,
    results: str | os.PathLike[str] = "results",
    seeds: int | None = None,
    quick: bool = False,
    n_jobs: int | None = None,
    again: bool = False,
    datasets: Collection[str] | None = None,
    methods: Collection[str] | None = None,
    drawings: Collection[str] | None = None,
    limit: float = LIMIT,
    on_cell: Callable[[Progress], None] | None = None,
) -> pd.DataFrame:
    """Run one of the paper's experiments, or what is still missing of it.

    An experiment consists of cells: a data set, a method, a number of pairs, a way to draw them and a seed. Each is
    stored as soon as it is finished, so a run that was stopped or killed continues where it was, and more seeds extend
    what is there. Needs the packages of ``pip install "pairmargin[experiments]"``.

    Parameters
    ----------
    name : str
        Such as "table2", "fig1" or "leaderboard"; "all" is all of them.
    results : path-like, default="results"
        The folder in which ``cells/<data set>.csv`` hold the finished cells, of all experiments together.
    seeds : int, default=None
        How many draws of the pairs, 0 to seeds − 1. None is what the experiment says.
    quick : bool, default=False
        One seed and fewer numbers of pairs, to see that all is well.
    n_jobs : int, default=None
        How many cells run side by side, with one thread each. None is what ``joblib.parallel_config`` says, or all
        that its backend has: the cores of this machine, or the workers of a cluster.
    again : bool, default=False
        Compute also the cells that are done or were too slow, and replace them.
    datasets, methods, drawings : collection of str, default=None
        Run only these. Drawings are "balanced" and "uniform", and of questions "asked-default", "asked-random", ….
    limit : float, default=600
        Seconds of the processor that a cell may take. One that takes longer is noted in ``unfinished.csv`` and not
        tried again, nor are other seeds and more pairs of its kind. Workers of Dask, which are threads, have no limit.
    on_cell : callable, default=None
        Called with a `Progress` at the start and after every cell.

    Returns
    -------
    frame : DataFrame
        One row a cell that was asked for, whether it was computed now or before: ``accuracy``, ``ari``, ``nmi``,
        ``auc``, ``clusters``, ``seconds``, ``peak_mb``, ``tpr`` and the versions.

    Raises
    ------
    DatasetError
        If a data set is not here and cannot be downloaded; said before any cell is computed.
    ExperimentError
        If a name is not known, if another run is writing to the folder, or, after all the other cells are stored, if
        cells have failed.
    """
    check_rules(RULES, {"seeds": seeds, "n_jobs": n_jobs, "limit": limit})
    wanted = _wanted(name, seeds, quick, {"dataset": datasets, "method": methods, "drawing": drawings})
    store = Store(results)
    with store.writing():
        failures = _run(wanted, store, n_jobs or _all_jobs(), again, limit, on_cell or (lambda progress: None))
    if failures:
        raise ExperimentError(_lament(failures, len(wanted)))
    frame = store.frame()
    keys = frame[KEY].itertuples(index=False, name=None)
    return frame[[Cell(*key) in wanted for key in keys]].reset_index(drop=True)


def _all_jobs() -> int:
    """How many jobs a user's ``joblib.parallel_config`` asks for; else as many as there is room for."""
    asked = int(joblib.effective_n_jobs(None))
    return asked if asked > 1 else int(joblib.effective_n_jobs(-1))


def _run(
    wanted: set[Cell], store: Store, n_jobs: int, again: bool, limit: float, on_cell: Callable[[Progress], None]
) -> dict[Cell, str]:
    """Compute and store what is missing; the cells that failed, with what they said."""
    known, unfinished = {row.cell: row for row in store.rows()}, Unfinished(store.folder)
    if again:
        unfinished.forget(wanted)
    waiting = set(wanted) if again else wanted - set(known) - set(unfinished.reasons)
    specs.fetch({cell.dataset for cell in waiting})
    time_left = TimeLeft(known.values(), n_jobs)
    failures: dict[Cell, str] = {}

    def progress(cell: Cell | None = None, row: Row | None = None) -> Progress:
        done = len(wanted) - len(waiting) - len(failures)
        return Progress(len(wanted), done, len(failures), time_left(waiting), cell, row)

    on_cell(progress())
    with closing(_outcomes(time_left.in_order(waiting), n_jobs, limit, unfinished)) as outcomes:
        for cell, outcome in outcomes:
            waiting.remove(cell)
            if isinstance(outcome, Row):
                save = store.replace if cell in known else store.append
                save(outcome)
                time_left.learn(outcome)
                on_cell(progress(cell, outcome))
            elif isinstance(outcome, NoResult):
                unfinished.note(cell, outcome.reason)
                if cell in known:
                    store.remove(cell)  # it was another program's
                logger.warning("%s: %s", cell, outcome.reason)
                on_cell(progress(cell))
            else:
                failures[cell] = outcome
                logger.error("%s failed: %s", cell, outcome)
                on_cell(progress(cell))
    return failures


def _wanted(name: str, seeds: int | None, quick: bool, filters: Mapping[str, Collection[str] | None]) -> set[Cell]:
    """The cells of an experiment, or of all, that pass the filters, which are about fields of a cell."""
    cells = {cell for experiment in specs.select(name) for cell in experiment.cells(seeds, quick)}
    for field, names in filters.items():
        what = f"{name} {field.replace('dataset', 'data set')}"
        kept = _chosen(names, {getattr(cell, field) for cell in cells}, what)
        cells = {cell for cell in cells if getattr(cell, field) in kept}
    return cells


def _chosen(names: Collection[str] | None, known: set[str], what: str) -> set[str]:
    """The names of a filter, all of them if there is none; one that is not known is refused."""
    for name in names or ():
        if name not in known:
            raise ExperimentError(unknown_name(what, name, sorted(known)))
    return set(names) if names else known


class TimeLeft:
    """An estimate from the cells that are finished, as far as possible of the same data set and method.

    Parameters
    ----------
    rows : iterable of Row
        Cells that are finished.
    n_jobs : int
        How many run side by side.
    """

    def __init__(self, rows: Iterable[Row], n_jobs: int) -> None:
        self._n_jobs = n_jobs
        self._sums: defaultdict[tuple[str, ...], list[float]] = defaultdict(lambda: [0.0, 0.0])  # seconds, cells
        for row in rows:
            self.learn(row)

    def learn(self, row: Row) -> None:
        """Take in one more finished cell."""
        for key in ((row.dataset, row.method), (row.dataset,), ()):
            self._sums[key][0] += row.seconds
            self._sums[key][1] += 1

    def mean(self, dataset: str, method: str) -> float | None:
        """Seconds that a cell takes: as others of its data set and method, else of its data set, else as any other."""
        for key in ((dataset, method), (dataset,), ()):
            if key in self._sums:
                seconds, cells = self._sums[key]
                return seconds / cells
        return None

    def __call__(self, waiting: Iterable[Cell]) -> float | None:
        """Seconds until these cells are done; None while nothing is known."""
        counts = Counter((cell.dataset, cell.method) for cell in waiting)
        if () not in self._sums:
            return None if counts else 0.0
        return sum(n * (self.mean(*kind) or 0.0) for kind, n in counts.items()) / self._n_jobs

    def in_order(self, cells: Iterable[Cell]) -> list[Cell]:
        """Data sets one after the other, since a worker keeps the last it has loaded, and what takes long first.

        Nothing long then starts when the other workers are about to run out of work. A data set that is still unknown
        may well take long; among the cells of one kind, more pairs do.
        """

        def key(cell: Cell) -> tuple[object, ...]:
            whole = self._sums.get((cell.dataset,))
            slowness = whole[0] / whole[1] if whole else np.inf
            return -slowness, cell.dataset, -(self.mean(cell.dataset, cell.method) or 0.0), -cell.n_pairs, cell

        return sorted(cells, key=key)


@dataclass(frozen=True)
class NoResult:
    """Why a cell has none, other than a failure."""

    reason: str


Outcome = Row | NoResult | str  # what a cell gave; why it was not finished; what went wrong


def _outcomes(
    cells: list[Cell], n_jobs: int, limit: float, unfinished: Unfinished
) -> Generator[tuple[Cell, Outcome], None, None]:
    """Every cell with what it gave or what went wrong, as they come."""
    # One cell a batch: a batch comes back as a whole, so a kill would cost more than the cells that are running. None
    # is handed out before its turn: what has been too slow until then decides whether it is tried.
    parallel = joblib.Parallel(n_jobs=n_jobs, batch_size=1, pre_dispatch=n_jobs, return_as="generator_unordered")
    jobs = (joblib.delayed(_attempt)(curve, limit, unfinished.hopeless(curve[0])) for curve in curves(cells))
    try:
        with closing(parallel(jobs)) as done:
            for outcomes in done:
                yield from outcomes
    except BrokenProcessPool as error:
        raise ExperimentError(
            f"a worker process died, perhaps for want of memory ({' '.join(str(error).split())}); what is done is "
            f"stored: run again to continue, with fewer jobs than {n_jobs}"
        ) from error


def _attempt(cells: Sequence[Cell], limit: float = LIMIT, hopeless: str | None = None) -> list[tuple[Cell, Outcome]]:
    """Cells with what they gave, or with what went wrong: one method's failure is no reason to lose the others."""
    outcomes: dict[Cell, Outcome] = {}
    reason: Outcome
    try:
        if hopeless:
            return [(cell, NoResult(hopeless)) for cell in cells]
        if cells[0].drawing not in specs.ASKED:
            return [(cell, measure(cell, limit)) for cell in cells]
        outcomes.update((row.cell, row) for row in measure_curve(cells, limit))
        reason = "the curve ended before it"
    except TooSlow as slow:
        reason = NoResult(str(slow))
    except Exception as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
    return [(cell, outcomes.get(cell, reason)) for cell in cells]


def measure(cell: Cell, limit: float = LIMIT) -> Row:
    """Compute one cell, with one thread.

    Parameters
    ----------
    cell : Cell
    limit : float, default=600
        Seconds of the processor that the method may take.

    Returns
    -------
    row : Row

    Raises
    ------
    TooSlow
        If it takes longer.
    """
    _import_methods()
    with threads_for(1), threadpool_limits(1):
        task = specs.draw(cell)
        with PeakMemory() as memory, processor_limit(limit):
            began = time.process_time()
            labels, scores = specs.METHODS[cell.method].cluster(task)
            seconds = time.process_time() - began
    return scored(cell, task, (labels, scores), seconds, memory.peak)


def measure_curve(cells: Sequence[Cell], limit: float = LIMIT) -> Iterator[Row]:
    """Compute the cells of one curve of questions, with one thread; each of them may take ``limit`` seconds."""
    _import_methods()
    with threads_for(1), threadpool_limits(1), processor_limit(limit * len(cells)), PeakMemory() as memory:
        for cell, task, result, seconds in follow(cells):
            yield scored(cell, task, result, seconds, memory.peak)


def scored(
    cell: Cell, task: Task, result: Result, seconds: float, peak: int, versions: Mapping[str, str] | None = None
) -> Row:
    """What a cell gave, as a row.

    Parameters
    ----------
    cell : Cell
    task : Task
        What was drawn for it.
    result : pair of arrays
        The labels, and the scores of the held-out pairs; None for these where a method has chosen its questions.
    seconds : float
    peak : int
        Bytes of memory.
    versions : mapping, default=None
        Versions other than those of this process, by the names of the columns.

    Returns
    -------
    row : Row
    """
    labels, scores = result
    roc = None if scores is None else pair_roc(task.test, scores)
    return Row(
        cell.dataset,
        cell.method,
        cell.n_pairs,
        cell.seed,
        cell.drawing,
        accuracy=round(clustering_accuracy(task.y, labels), 6),
        ari=round(float(adjusted_rand_score(task.y, labels)), 6),
        nmi=round(float(normalized_mutual_info_score(task.y, labels)), 6),
        auc=round(roc.auc, 6) if roc else np.nan,
        clusters=len(np.unique(labels)),
        seconds=round(seconds, 4),
        peak_mb=round(peak / 1e6, 1),
        tpr=_true_positive_rates(roc) if roc else "",
        **_versions() | dict(versions or {}),
    )


@cache
def _import_methods() -> None:
    """Import what the methods would import at their first call, so that no cell's seconds contain it."""
    import_module("sklearn.decomposition")
    import_module("pairmargin.estimator")
    for module in iter_modules(baselines.__path__, prefix="pairmargin.baselines."):
        import_module(module.name)


def _true_positive_rates(roc: PairRoc) -> str:
    """The curve at `FALSE_POSITIVE_RATES`; where it rises straight up, its upper end."""
    rates = np.interp(FALSE_POSITIVE_RATES, roc.fpr, roc.tpr)  # of equal fpr, NumPy takes the last
    return " ".join(f"{rate:.3f}" for rate in rates)


def _versions() -> dict[str, str]:
    """What a result may depend on, and the day."""
    libraries = {name: version(name.replace("_", "-")) for name in ("numpy", "scipy", "scikit_learn", "torch")}
    ours = {"pairmargin": __version__, "python": platform.python_version()}
    return ours | libraries | {"date": datetime.now(UTC).date().isoformat()}


class PeakMemory:
    """The largest resident memory of a process inside the block, in bytes, looked at every 10 ms.

    Parameters
    ----------
    pid : int, default=None
        The process, which may end meanwhile. None is this one.
    """

    def __init__(self, pid: int | None = None) -> None:
        self._pid = pid

    def __enter__(self) -> PeakMemory:
        self._process = psutil.Process(self._pid)
        self._over = threading.Event()
        self.peak = 0
        self._look()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watcher.join()
        self._look()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_EVERY):
            self._look()

    def _look(self) -> None:
        with suppress(psutil.NoSuchProcess):
            self.peak = max(self.peak, self._process.memory_info().rss)


def _lament(failures: dict[Cell, str], n_wanted: int) -> str:
    """What failed and why, each reason once; the way on."""
    cells_of: defaultdict[str, list[Cell]] = defaultdict(list)
    for cell in sorted(failures):
        cells_of[failures[cell]].append(cell)
    reasons = []
    for message, cells in cells_of.items():
        more = f" and {len(cells) - SHOWN} more" if len(cells) > SHOWN else ""
        reasons.append(f"{'; '.join(map(str, cells[:SHOWN]))}{more}: {message}")
    return (
        f"{len(failures)} of {n_wanted} cells failed, all the others are stored; run again to try them once more:\n"
        + "\n".join(reasons)
    )
