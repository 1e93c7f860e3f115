"""How experiments are run: what is done is kept and skipped, what fails is told at the end, and figures are right."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import joblib
import numpy as np
import pytest
import torch
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from threadpoolctl import threadpool_info

from pairmargin import ExperimentError, InvalidParameterError, Pairs, clustering_accuracy, pair_roc, run_experiment
from pairmargin.experiments import runner, specs
from pairmargin.experiments.runner import PeakMemory, Progress, TimeLeft, measure
from pairmargin.experiments.specs import DRAWINGS, Cell
from pairmargin.experiments.store import FALSE_POSITIVE_RATES, Row, Store
from pairmargin.experiments.unfinished import TooSlow, Unfinished, processor_limit

# A small world: two data sets of 40 points on a line, and methods that are over at once

FACTS = "dataset", "method", "n_pairs", "seed", "drawing", "accuracy", "ari", "nmi", "auc", "clusters", "tpr"
CALLS: list[Cell] = []


@dataclass(frozen=True)
class FakeTask:
    cell: Cell
    X: Any
    y: Any
    train: Pairs
    test: Pairs


@dataclass(frozen=True)
class FakeMethod:
    cluster: Callable[[FakeTask], tuple[Any, Any]]


@dataclass(frozen=True)
class FakeExperiment:
    datasets: tuple[str, ...] = ("line", "curve")
    methods: tuple[str, ...] = ("halves", "thirds")
    n_pairs: tuple[int, ...] = (20,)
    drawings: tuple[str, ...] = ("balanced",)

    def cells(self, seeds: int | None = None, quick: bool = False) -> list[Cell]:
        numbers = range(seeds or (1 if quick else 3))
        return [
            Cell(d, m, n, seed, drawing)
            for d, m, n, seed, drawing in product(self.datasets, self.methods, self.n_pairs, numbers, self.drawings)
        ]


EXPERIMENTS = {
    "tiny": FakeExperiment(),
    "shaky": FakeExperiment(("line",), ("halves", "broken")),
    "slow": FakeExperiment(("line",), ("slow",)),
    "busy": FakeExperiment(("line",), ("busy",), (20, 50, 80)),
}


def draw(cell: Cell) -> FakeTask:
    CALLS.append(cell)
    rng = np.random.default_rng([cell.seed, len(cell.dataset)])
    y = np.arange(40) % 2
    index = np.array([(i, i + step) for i in range(20) for step in (1, 2)])
    pairs = Pairs(index, y[index[:, 0]] == y[index[:, 1]])
    return FakeTask(cell, y + rng.normal(scale=0.6, size=40), y, pairs, pairs)


def split(task: FakeTask, n_parts: int) -> tuple[Any, Any]:
    edges = np.quantile(task.X, np.arange(1, n_parts) / n_parts)
    i, j = task.test.index.T
    return np.searchsorted(edges, task.X), -np.abs(task.X[i] - task.X[j])


def broken(task: FakeTask) -> tuple[Any, Any]:
    if task.cell.seed != 1:
        raise ZeroDivisionError("nothing to\n divide by")
    return split(task, 2)


def slow(task: FakeTask) -> tuple[Any, Any]:
    time.sleep(0.1)
    return split(task, 2)


def busy(task: FakeTask) -> tuple[Any, Any]:
    if task.cell.seed == 1 and task.cell.n_pairs == 50:
        while True:
            pass
    return split(task, 2)


METHODS = {
    "halves": FakeMethod(partial(split, n_parts=2)),
    "thirds": FakeMethod(partial(split, n_parts=3)),
    "broken": FakeMethod(broken),
    "slow": FakeMethod(slow),
    "busy": FakeMethod(busy),
}


def install(put: Callable[[Any, str, Any], None] = setattr) -> None:
    """Put the small world in the place of the paper's; also in the processes that tests start."""
    put(specs, "METHODS", METHODS)
    put(specs, "draw", draw)
    put(specs, "fetch", lambda datasets: None)
    put(specs, "select", lambda name: [EXPERIMENTS[name]] if name != "all" else list(EXPERIMENTS.values()))


@pytest.fixture(autouse=True)
def small_world(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch.setattr)
    CALLS.clear()


run = partial(run_experiment, n_jobs=1)


def facts(folder: Path) -> list[tuple[Any, ...]]:
    """What a store holds, but for what changes from run to run."""
    return list(Store(folder).frame()[list(FACTS)].itertuples(index=False, name=None))


# Running, continuing, extending


def test_a_run_gives_and_stores_every_cell(tmp_path: Path) -> None:
    frame = run("tiny", results=tmp_path)
    assert [Cell(*key) for key in frame[list(FACTS[:5])].itertuples(index=False)] == sorted(EXPERIMENTS["tiny"].cells())
    assert facts(tmp_path) == list(frame[list(FACTS)].itertuples(index=False, name=None))
    assert frame.groupby("method")["clusters"].unique().map(list).to_dict() == {"halves": [2], "thirds": [3]}
    assert frame.groupby("method")["accuracy"].mean()["halves"] > frame.groupby("method")["accuracy"].mean()["thirds"]


def test_what_is_done_is_skipped_and_more_seeds_extend_it(tmp_path: Path) -> None:
    run("tiny", results=tmp_path, seeds=2)
    before = Store(tmp_path).rows()
    CALLS.clear()
    frame = run("tiny", results=tmp_path)
    assert sorted(CALLS) == [cell for cell in sorted(EXPERIMENTS["tiny"].cells()) if cell.seed == 2]
    assert set(before) < set(Store(tmp_path).rows())
    CALLS.clear()
    assert len(run("tiny", results=tmp_path, quick=True)) == 4 < len(frame)  # of all that is stored, what is asked for
    assert not CALLS


def test_again_computes_and_replaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("tiny", results=tmp_path)
    old = Store(tmp_path).frame()
    monkeypatch.setitem(METHODS, "halves", METHODS["thirds"])
    new = run("tiny", results=tmp_path, again=True, methods=["halves"])
    assert new["clusters"].eq(3).all()
    whole = Store(tmp_path).frame()
    assert len(whole) == len(old)
    assert whole[whole["method"] == "thirds"].equals(old[old["method"] == "thirds"])
    lines = [path.read_text().count("\n") for path in (tmp_path / "cells").glob("*.csv")]
    assert sum(lines) == len(old) + 2  # and two headers: nothing stands there twice


def test_experiments_share_their_cells(tmp_path: Path) -> None:
    run("tiny", results=tmp_path)
    CALLS.clear()
    run("all", results=tmp_path, methods=["halves", "slow"])
    assert [Cell("line", "slow", 20, seed) for seed in range(3)] == CALLS


def test_one_way_to_draw_can_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXPERIMENTS, "both", FakeExperiment(drawings=DRAWINGS))
    assert set(run("both", results=tmp_path, drawings=["uniform"])["drawing"]) == {"uniform"}
    with pytest.raises(ExperimentError, match=r"no both drawing 'unifrom' \(did you mean 'uniform'\?\)"):
        run("both", results=tmp_path, drawings=["unifrom"])


def test_the_result_does_not_depend_on_the_way(tmp_path: Path) -> None:
    run("tiny", results=tmp_path / "once")
    for dataset in ("curve", "line"):
        run("tiny", results=tmp_path / "parts", datasets=[dataset])
    assert facts(tmp_path / "once") == facts(tmp_path / "parts")


def test_cells_side_by_side_in_processes(tmp_path: Path) -> None:
    run("tiny", results=tmp_path / "one")
    CALLS.clear()
    with joblib.parallel_config("loky", initializer=install):
        run_experiment("tiny", results=tmp_path / "two", n_jobs=2)
    assert not CALLS  # all was done elsewhere
    assert facts(tmp_path / "two") == facts(tmp_path / "one")


# Kills, interrupts, failures


def test_a_killed_run_continues_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "cells" / "line.csv"
    code = f"import test_runner; test_runner.install(); test_runner.run('slow', results={str(tmp_path)!r}, seeds=500)"
    process = subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parent)
    try:
        give_up = time.monotonic() + 120
        while not (path.exists() and path.read_bytes().count(b"\n") > 3):
            assert process.poll() is None
            assert time.monotonic() < give_up
            time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    with path.open("ab") as file:
        file.write(b"line,slow,20,499,0.")  # what a kill in the middle of a write leaves
    kept = Store(tmp_path).done()
    assert 3 <= len(kept) < 500
    run("slow", results=tmp_path, seeds=len(kept) + 2)
    assert len(CALLS) == 2
    run("slow", results=tmp_path / "whole", seeds=len(kept) + 2, n_jobs=1)
    assert facts(tmp_path) == facts(tmp_path / "whole")


def test_an_interrupt_keeps_what_is_done_and_frees_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(task: FakeTask) -> tuple[Any, Any]:
        if task.cell.seed == 2:
            raise KeyboardInterrupt
        return split(task, 2)

    monkeypatch.setitem(METHODS, "slow", FakeMethod(interrupted))
    with pytest.raises(KeyboardInterrupt):
        run("slow", results=tmp_path)
    assert Store(tmp_path).done() == set(EXPERIMENTS["slow"].cells(seeds=2))
    monkeypatch.undo()
    install(monkeypatch.setattr)
    assert len(run("slow", results=tmp_path)) == 3


def test_a_second_run_on_the_folder_is_refused(tmp_path: Path) -> None:
    with Store(tmp_path).writing(), pytest.raises(ExperimentError, match="another run is writing to"):
        run("tiny", results=tmp_path)
    assert not CALLS


def test_cells_that_fail_are_told_after_the_others_are_stored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(
        ExperimentError,
        match=r"2 of 6 cells failed, all the others are stored; run again .*\n"
        r"line, broken, 20 pairs, seed 0; line, broken, 20 pairs, seed 2: ZeroDivisionError: nothing to divide by$",
    ):
        run("shaky", results=tmp_path)
    assert Store(tmp_path).done() == {cell for cell in EXPERIMENTS["shaky"].cells() if cell.method == "halves"} | {
        Cell("line", "broken", 20, 1)
    }
    assert "line, broken, 20 pairs, seed 2 failed: ZeroDivisionError: nothing to divide by" in caplog.text
    CALLS.clear()
    with pytest.raises(ExperimentError, match="2 of 6"):
        run("shaky", results=tmp_path)
    assert [cell.seed for cell in CALLS] == [0, 2]  # they alone are tried again


def test_many_failures_of_one_kind_are_counted(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match=r"seed 0; .* seed 2; .* seed 3 and 5 more: ZeroDivisionError"):
        run("shaky", results=tmp_path, seeds=9, methods=["broken"])


def test_a_worker_that_dies_is_told_with_the_way_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Dying:
        def __init__(self, **_: Any) -> None: ...

        def __call__(self, work: Any) -> Any:
            yield runner._attempt([Cell("line", "slow", 20, 1)])
            raise runner.BrokenProcessPool("a worker was\nkilled")

    monkeypatch.setattr(joblib, "Parallel", Dying)
    with pytest.raises(ExperimentError, match=r"a worker process died.*\(a worker was killed\).*fewer jobs than 2"):
        run("slow", results=tmp_path, n_jobs=2)
    assert Store(tmp_path).done() == {Cell("line", "slow", 20, 1)}


# Too slow


def test_what_takes_too_long_is_noted_and_not_tried_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    frame = run("busy", results=tmp_path, limit=0.3)
    noted = Unfinished(tmp_path).reasons
    assert noted[Cell("line", "busy", 50, 1)] == "took more than 0.3 s"
    assert noted[Cell("line", "busy", 50, 2)] == "not tried: seed 1 of 50 pairs took more than 0.3 s"
    assert {cell.n_pairs for cell in noted} <= {50, 80}  # with fewer pairs it may be fast enough
    assert set(noted) | Store(tmp_path).done() == set(EXPERIMENTS["busy"].cells())
    assert len(frame) + len(noted) == 9
    assert "line, busy, 50 pairs, seed 1: took more than 0.3 s" in caplog.text
    CALLS.clear()
    run("busy", results=tmp_path, limit=0.3)
    assert not CALLS
    more = {cell for cell in EXPERIMENTS["busy"].cells(seeds=4) if cell.seed == 3}
    run("busy", results=tmp_path, limit=0.3, seeds=4)
    assert [cell.n_pairs for cell in CALLS] == [20]
    assert more <= set(Unfinished(tmp_path).reasons) | Store(tmp_path).done()


def test_again_tries_also_what_was_too_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("busy", results=tmp_path, limit=0.3)
    monkeypatch.setitem(METHODS, "busy", METHODS["halves"])
    assert len(run("busy", results=tmp_path, again=True)) == 9
    assert not Unfinished(tmp_path).reasons


def test_again_forgets_the_result_of_what_has_become_too_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as fast:
        fast.setitem(METHODS, "busy", METHODS["halves"])
        run("busy", results=tmp_path)
    frame = run("busy", results=tmp_path, again=True, limit=0.3)
    slow = set(Unfinished(tmp_path).reasons)
    assert Cell("line", "busy", 50, 1) in slow
    assert (len(frame) + len(slow), Store(tmp_path).done() & slow) == (9, set())


def test_the_limit_holds_in_other_processes_too(tmp_path: Path) -> None:
    with joblib.parallel_config("loky", initializer=install):
        run_experiment("busy", results=tmp_path, n_jobs=2, limit=0.3)
    assert Cell("line", "busy", 50, 1) in Unfinished(tmp_path).reasons
    assert {cell for cell in EXPERIMENTS["busy"].cells() if cell.n_pairs == 20} <= Store(tmp_path).done()


def test_waiting_is_not_working() -> None:
    with processor_limit(0.1):
        time.sleep(0.3)
    with pytest.raises(TooSlow, match=r"took more than 0\.1 s"), processor_limit(0.1):
        work(60)
    work(0.2)  # the limit ends with its block


def work(seconds: float) -> None:
    began = time.process_time()
    while time.process_time() - began < seconds:
        pass


def test_notes_of_another_layout_are_refused(tmp_path: Path) -> None:
    (tmp_path / "unfinished.csv").write_text("dataset,method,n_pairs,seed,reason\nline,busy,20,0,slow\n")
    with pytest.raises(ExperimentError, match=r"unfinished\.csv does not have the columns dataset,.*drawing,reason"):
        Unfinished(tmp_path)


# What is refused


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"datasets": ["lime"]}, "there is no tiny data set 'lime' (did you mean 'line'?); there are curve, line"),
        ({"datasets": ["line", "zzz"]}, "there is no tiny data set 'zzz'; there are curve, line"),
        ({"methods": ["halfs"]}, "there is no tiny method 'halfs' (did you mean 'halves'?); there are halves, thirds"),
    ],
)
def test_filters_that_are_not_known_are_refused(arguments: Any, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match=f"^{re.escape(complaint)}$"):
        run("tiny", results=tmp_path / "results", **arguments)
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("arguments", [{"seeds": 0}, {"n_jobs": 0}, {"n_jobs": -1}, {"seeds": 2.5}])
def test_numbers_that_cannot_be_are_refused(arguments: Any, tmp_path: Path) -> None:
    (name, value) = next(iter(arguments.items()))
    with pytest.raises(InvalidParameterError, match=f"{name}={value} must be an integer, 1 or more, or None"):
        run_experiment("tiny", results=tmp_path, **arguments)


@pytest.mark.parametrize("limit", [0, -1, "long"])
def test_a_limit_that_cannot_be_is_refused(limit: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidParameterError, match=r"limit=.* must be a number above 0"):
        run("tiny", results=tmp_path, limit=limit)


# Progress, time and order


def test_progress_is_told_at_the_start_and_after_every_cell(tmp_path: Path) -> None:
    run("shaky", results=tmp_path, methods=["halves"], seeds=1)
    said: list[Progress] = []
    with pytest.raises(ExperimentError):
        run("shaky", results=tmp_path, on_cell=said.append)
    first, *later = said
    assert (first.cells, first.done, first.failed, first.cell, first.row) == (6, 1, 0, None, None)
    assert [now.done + now.failed for now in later] == [2, 3, 4, 5, 6]
    assert (later[-1].done, later[-1].failed, later[-1].seconds_left) == (4, 2, 0)
    assert [now.row is None for now in later] == [now.cell.method == "broken" and now.cell.seed != 1 for now in later]
    assert all(now.row.cell == now.cell for now in later if now.row is not None)


def row(dataset: str, method: str, seconds: float) -> Row:
    rest = ("0.1", "3.11", "2", "1", "1.9", "2.13", "2026-01-31")
    return Row(dataset, method, 20, 0, "balanced", 0.5, 0.5, 0.5, 0.5, 2, seconds, 100.0, "", *rest)


def test_the_time_left_is_of_the_nearest_kin() -> None:
    time_left = TimeLeft([], n_jobs=2)
    cells = [Cell("line", "a", 20, 0), Cell("line", "b", 20, 0), Cell("curve", "a", 20, 0)]
    assert time_left([]) == 0
    assert time_left(cells) is None
    for finished in (row("line", "a", 1), row("line", "a", 3), row("line", "c", 8)):
        time_left.learn(finished)
    assert time_left(cells[:1]) == 2 / 2  # line, a
    assert time_left(cells[1:2]) == 4 / 2  # line
    assert time_left(cells[2:]) == 4 / 2  # all
    time_left.learn(row("sphere", "a", 28))
    assert time_left(cells) == (2 + 4 + 10) / 2


def test_data_sets_stay_together_and_long_cells_come_first() -> None:
    time_left = TimeLeft([row("short", "a", 1), row("long", "a", 5), row("long", "b", 90)], n_jobs=1)
    cells = [Cell(d, m, n, 0) for n in (20, 50) for d in ("short", "new", "long") for m in ("a", "b")]
    ordered = time_left.in_order(cells)
    assert sorted(ordered) == sorted(cells)
    assert [cell.dataset for cell in ordered] == ["new"] * 4 + ["long"] * 4 + ["short"] * 4
    assert [(cell.method, cell.n_pairs) for cell in ordered[4:8]] == [("b", 50), ("b", 20), ("a", 50), ("a", 20)]


# One cell


def test_measure_gives_the_figures_of_the_labels_and_scores() -> None:
    cell = Cell("line", "thirds", 20, 0)
    task = draw(cell)
    labels, scores = split(task, 3)
    found, roc = measure(cell), pair_roc(task.test, scores)
    assert found.cell == cell
    assert found.accuracy == pytest.approx(clustering_accuracy(task.y, labels), abs=1e-6)
    assert found.ari == pytest.approx(adjusted_rand_score(task.y, labels), abs=1e-6)
    assert found.nmi == pytest.approx(normalized_mutual_info_score(task.y, labels), abs=1e-6)
    assert found.auc == pytest.approx(roc.auc, abs=1e-6)
    assert found.clusters == 3
    assert found.torch == torch.__version__
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", found.date)


def test_seconds_are_those_of_the_method_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]

    def slow_draw(cell: Cell) -> FakeTask:
        clock[0] += 100
        return draw(cell)

    def slow_method(task: FakeTask) -> tuple[Any, Any]:
        clock[0] += 2.5
        return split(task, 2)

    monkeypatch.setattr(runner, "time", SimpleNamespace(process_time=lambda: clock[0]))
    monkeypatch.setattr(specs, "draw", slow_draw)
    monkeypatch.setitem(METHODS, "slow", FakeMethod(slow_method))
    assert measure(Cell("line", "slow", 20, 0)).seconds == 2.5


def test_what_the_methods_import_is_there_before_the_clock_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    imported: list[str] = []
    seen: list[str] = []

    def looking(task: FakeTask) -> tuple[Any, Any]:
        seen.extend(imported)
        return split(task, 2)

    monkeypatch.setattr(runner, "import_module", imported.append)
    monkeypatch.setitem(METHODS, "slow", FakeMethod(looking))
    runner._import_methods.cache_clear()
    measure(Cell("line", "slow", 20, 0))
    assert {"pairmargin.estimator", "pairmargin.baselines.kissme", "pairmargin.baselines.xing"} < set(seen)
    runner._import_methods.cache_clear()


def test_a_cell_has_one_thread_and_what_was_set_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def looking(task: FakeTask) -> tuple[Any, Any]:
        seen.extend([torch.get_num_threads(), *(pool["num_threads"] for pool in threadpool_info())])
        return split(task, 2)

    monkeypatch.setitem(METHODS, "slow", FakeMethod(looking))
    torch.set_num_threads(2)
    measure(Cell("line", "slow", 20, 0))
    assert set(seen) == {1}
    assert torch.get_num_threads() == 2


def test_true_positive_rates_are_those_that_counting_gives() -> None:
    rng = np.random.default_rng(0)
    same = rng.random(100) < 0.5
    scores = same + rng.normal(size=100)  # all different: the curve is made of steps
    rates = [float(rate) for rate in runner._true_positive_rates(pair_roc(same, scores)).split()]
    assert len(rates) == len(FALSE_POSITIVE_RATES) == 51
    for allowed, rate in zip(FALSE_POSITIVE_RATES, rates, strict=True):
        thresholds = [t for t in scores if np.mean(scores[~same] >= t) <= allowed]
        best = max((np.mean(scores[same] >= t) for t in thresholds), default=0.0)
        assert rate == pytest.approx(best, abs=1 / same.sum() + 5e-4)
        assert rate >= best - 5e-4


def test_equal_scores_give_the_diagonal() -> None:
    roc = pair_roc([True, False] * 10, np.zeros(20))
    assert runner._true_positive_rates(roc) == " ".join(f"{rate:.3f}" for rate in FALSE_POSITIVE_RATES)


def test_peak_memory_sees_what_is_gone_again() -> None:
    with PeakMemory() as before:
        pass
    with PeakMemory() as during:
        block = np.ones(25_000_000)  # 200 MB
        time.sleep(0.2)
        del block
    assert during.peak - before.peak > 150e6
