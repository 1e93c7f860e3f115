"""How the methods of other packages are run, with a worker that needs none of them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pairmargin import ExperimentError, clustering_accuracy
from pairmargin.experiments import specs
from pairmargin.experiments.report import write_report
from pairmargin.experiments.specs import FOREIGN, LABELS, METHODS, Cell
from pairmargin.experiments.store import Store

PEERS = Path(__file__).parents[1] / "benchmarks" / "peers"
WORKER = """
import sys, time
import numpy as np

method, question, answer = sys.argv[1:]
with np.load(question) as file:
    X, seed, oracle = file["X"], int(file["seed"]), file["oracle"]
    assert X.dtype == float and len(file["index"]) == len(file["same"]) == 100 and file["n_clusters"] == 3
if method == "metric-learn-mmc" and seed == 1:
    while time.process_time() < 600:
        pass
if method == "assc-copkmeans":
    raise ZeroDivisionError("nothing to divide by")
labels = oracle if len(oracle) else np.searchsorted(np.quantile(X[:, 0], [1 / 3, 2 / 3]), X[:, 0])
np.savez(answer, labels=labels, seconds=1.5, versions=np.array([("python", "3.11"), ("numpy", "1.23.5")]))
"""
WINE = ["table2", "--datasets", "wine", "--limit", "20"]


@pytest.fixture(scope="module")
def peers() -> Any:
    """benchmarks/peers/run.py, which is not installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(PEERS)
        yield import_module("run")


@pytest.fixture
def calls(peers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The small worker in the place of all, and the methods that it was called for."""
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    calls: list[str] = []

    def command(method: str, environments: Path) -> list[str]:
        calls.append(method)
        return [sys.executable, str(script), method]

    monkeypatch.setattr(peers, "command", command)
    monkeypatch.setattr(peers, "is_ready", lambda folder, package: True)
    return calls


def run(peers: Any, results: Path, *options: str, methods: Sequence[str] = ("cobras",), seeds: int = 1) -> None:
    peers.main([*WINE, "--methods", *methods, "--seeds", str(seeds), "--results", str(results), *options])


def failed(results: Path) -> list[str]:
    return (results / "unfinished.csv").read_text().splitlines()


def test_every_foreign_method_has_a_name_of_its_own_a_worker_and_pins(peers: Any) -> None:
    assert not set(FOREIGN) & set(METHODS)
    assert set(LABELS) == set(FOREIGN) | set(METHODS)
    assert len(set(LABELS.values())) == len(LABELS)
    assert {method.package for method in FOREIGN.values()} == set(import_module("environments").PACKAGES)
    for name, method in FOREIGN.items():
        python, worker, asked = peers.command(name, Path("here"))
        assert Path(python).is_absolute()
        assert Path(python).is_relative_to(Path("here", method.package).absolute())
        assert (Path(worker).is_file(), asked) == (True, name)
        assert "==" in (PEERS / f"{method.package}.txt").read_text()


def test_no_experiment_runs_them_by_itself() -> None:
    assert not {method for plan in specs.EXPERIMENTS.values() for method in plan.methods} & set(FOREIGN)


def test_draws_are_those_of_the_experiment(peers: Any) -> None:
    cells = peers.wanted("fig5", methods=["cobras"])
    assert {(c.dataset, c.n_pairs, c.seed) for c in specs.EXPERIMENTS["fig5"].cells()} == {
        (c.dataset, c.n_pairs, c.seed) for c in cells
    }
    assert {cell.method for cell in cells} == {"cobras"}
    both = peers.wanted("all", datasets=["wine", "coil20"], n_pairs=[4000], seeds=2)
    assert {(cell.dataset, cell.drawing) for cell in both} == {("coil20", "balanced")}  # Fig. 4
    given = {name for name, method in FOREIGN.items() if not method.asks}
    assert {cell.method for cell in both} == given
    assert len(both) == 2 * len(given)
    assert {cell.method for cell in peers.wanted("questions", datasets=["wine"])} == {"cobras"}
    drawn = peers.wanted(
        "leaderboard", datasets=["wine"], methods=["cobras"], n_pairs=[50], seeds=1, drawings=["uniform"]
    )
    assert [cell.drawing for cell in drawn] == ["uniform"]


@pytest.mark.parametrize(
    ("filters", "complaint"),
    [
        ({"methods": ["cobra"]}, r"no foreign method 'cobra' \(did you mean 'cobras'\?\)"),
        ({"datasets": ["mnist"]}, "no table2 data set 'mnist'"),
        ({"n_pairs": [7]}, "no table2 number of pairs '7'; there are 100"),
        ({"drawings": ["uniform"]}, "no table2 drawing 'uniform'; there are balanced"),
    ],
)
def test_filters_that_are_not_known_are_refused(peers: Any, filters: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ExperimentError, match=complaint):
        peers.wanted("table2", **filters)


def test_without_an_environment_nothing_is_started(
    peers: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="1"):
        run(peers, tmp_path / "results", "--environments", str(tmp_path / "none"))
    assert "none has no environment for cobras_ts" in capsys.readouterr().err
    assert not (tmp_path / "results").exists()


def test_an_answer_becomes_a_row_beside_the_others(peers: Any, calls: list[str], tmp_path: Path) -> None:
    run(peers, tmp_path, methods=["cobras", "pml-contrastive"])
    asking, given = Store(tmp_path).rows()
    assert (asking.cell, given.cell) == (Cell("wine", "cobras", 100, 0), Cell("wine", "pml-contrastive", 100, 0))
    assert asking.accuracy == 1.0  # it alone was shown the labels
    assert (np.isnan(asking.auc), asking.tpr) == (True, "")  # and may have asked about the pairs held out
    task = specs.draw(given.cell)
    X = specs.inputs(task)
    labels = np.searchsorted(np.quantile(X[:, 0], [1 / 3, 2 / 3]), X[:, 0])
    assert given.accuracy == pytest.approx(clustering_accuracy(task.y, labels), abs=1e-6)
    assert (given.seconds, given.clusters) == (1.5, 3)
    assert given.peak_mb > 10
    assert (given.numpy, given.python, given.torch) == ("1.23.5", "3.11", "")


def test_what_is_done_is_skipped(peers: Any, calls: list[str], tmp_path: Path) -> None:
    run(peers, tmp_path)
    run(peers, tmp_path, "--jobs", "2", seeds=3)
    assert calls == ["cobras"] * 3
    assert len(Store(tmp_path).done()) == 3


def test_what_fails_is_noted_and_tried_again_only_if_asked(peers: Any, calls: list[str], tmp_path: Path) -> None:
    run(peers, tmp_path, methods=["assc-copkmeans", "cobras"])
    assert failed(tmp_path)[1:] == ["wine,assc-copkmeans,100,0,balanced,ZeroDivisionError: nothing to divide by"]
    assert [cell.method for cell in Store(tmp_path).done()] == ["cobras"]
    run(peers, tmp_path, methods=["assc-copkmeans"])
    assert len(calls) == 2
    run(peers, tmp_path, "--retry", methods=["assc-copkmeans"])
    assert calls == ["assc-copkmeans", "cobras", "assc-copkmeans"]
    assert len(failed(tmp_path)) == 2


def test_after_a_slow_draw_the_others_of_its_kind_are_not_tried(peers: Any, calls: list[str], tmp_path: Path) -> None:
    run(peers, tmp_path, "--limit", "2", methods=["metric-learn-mmc"], seeds=4)
    assert [cell.seed for cell in Store(tmp_path).done()] == [0]
    assert [line.rpartition(",")[2] for line in failed(tmp_path)[1:]] == [
        "took more than 2 s",
        *["not tried: seed 1 of 100 pairs took more than 2 s"] * 2,
    ]
    run(peers, tmp_path, methods=["metric-learn-mmc"], seeds=4)
    assert len(calls) == 2  # a note is as good as a result


def test_the_draws_of_the_leaderboard_are_of_both_kinds(peers: Any) -> None:
    cells = peers.wanted("leaderboard", datasets=["wine"], n_pairs=[50], seeds=1)
    assert {(cell.method, cell.drawing) for cell in cells} == {
        (name, drawing) for name, method in FOREIGN.items() if not method.asks for drawing in specs.DRAWINGS
    }


def test_the_report_of_the_paper_leaves_them_out(peers: Any, calls: list[str], tmp_path: Path) -> None:
    run(peers, tmp_path)
    with pytest.raises(ExperimentError, match="there are no results"):
        write_report(tmp_path)
