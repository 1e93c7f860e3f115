"""``pairmargin experiment``: what it says, what it hands on, and how it refuses."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer
from rich.console import Console
from test_runner import FakeExperiment, install
from typer.testing import CliRunner

import pairmargin
from pairmargin import cli, cli_experiment
from pairmargin.experiments import runner, specs
from pairmargin.experiments.runner import Progress
from pairmargin.experiments.unfinished import LIMIT

HOME = Path(pairmargin.__file__).parents[1]
APP = typer.Typer(cls=cli._Commands)
APP.add_typer(cli_experiment.app, name="experiment")


def command(*arguments: str | Path) -> tuple[int, str]:
    """The exit code, and all that was said."""
    result = CliRunner().invoke(APP, ["experiment", *map(str, arguments)], env={"COLUMNS": "140"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


@dataclass(frozen=True)
class Titled(FakeExperiment):
    title: str = "Two halves of a line"


@pytest.fixture(autouse=True)
def small_world(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch.setattr)
    monkeypatch.setattr(specs, "EXPERIMENTS", {"tiny": Titled()})


# What it says


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_help_names_the_commands(arguments: list[str]) -> None:
    _, said = command(*arguments)
    assert all(f" {name} " in said for name in ("list", "run", "report"))


def test_help_needs_nothing_heavy() -> None:
    code = "import sys, pairmargin.cli_experiment; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=HOME)
    assert not {"torch", "sklearn", "numpy", "pandas", "joblib", "filelock", "psutil"} & set(done.stdout.split())


def test_run_ends_in_a_table_and_the_next_step(tmp_path: Path) -> None:
    code, said = command("run", "tiny", "--jobs", "1", "--results", tmp_path)
    assert code == 0
    assert "0/12 cells\n" in said
    assert "12/12 cells\n" in said
    rows = [[part.strip() for part in line.split("│")[1:-1]] for line in said.splitlines() if line.startswith("│")]
    means = runner.Store(tmp_path).frame().groupby(["method", "dataset"])[["accuracy", "ari"]].mean()
    for (method, *values), name in zip(rows, ("halves", "thirds"), strict=True):
        assert method == name
        expected = [means.loc[(name, dataset)] for dataset in ("curve", "line")]
        assert values == [f"{mean['accuracy']:.1%}  {mean['ari']:.3f}" for mean in expected]
    assert said.endswith(f"pairmargin experiment report --results {tmp_path}\n")


def test_list_shows_how_much_is_done(tmp_path: Path) -> None:
    command("run", "tiny", "--jobs", "1", "--quick", "--results", tmp_path)
    code, said = command("list", "--results", tmp_path)
    assert code == 0
    (line,) = (line for line in said.splitlines() if line.startswith("│"))
    found = [part.strip() for part in line.split("│")[1:-1]]
    assert found == ["tiny", "Two halves of a line", "line, curve", "halves, thirds", "12", "4"]


def test_report_says_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = ModuleType("report")
    fake.write_report = lambda results: results / "report.html"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pairmargin.experiments.report", fake)
    assert command("report", "--results", tmp_path) == (0, f"The report is in {tmp_path / 'report.html'}\n")


# What it hands on


def test_run_hands_on_its_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    def watched(name: str, *, on_cell: Callable[[Progress], None], **options: Any) -> Any:
        seen.update(options, name=name)
        return real(name, results=tmp_path, n_jobs=1, on_cell=on_cell)

    real = runner.run_experiment
    monkeypatch.setattr(runner, "run_experiment", watched)
    options = "--seeds 4 --jobs 3 --again --dataset line --dataset curve --method halves --drawing uniform"
    options += " --limit 9 --results other"
    assert command("run", "tiny", *options.split())[0] == 0
    assert seen == {
        "name": "tiny",
        "results": Path("other"),
        "seeds": 4,
        "quick": False,
        "n_jobs": 3,
        "again": True,
        "datasets": ["line", "curve"],
        "methods": ["halves"],
        "drawings": ["uniform"],
        "limit": 9.0,
    }
    assert command("run", "tiny", "--quick")[0] == 0
    assert seen == {
        "name": "tiny",
        "results": Path("results"),
        "seeds": None,
        "quick": True,
        "n_jobs": None,
        "again": False,
        "datasets": None,
        "methods": None,
        "drawings": None,
        "limit": LIMIT,
    }


# How it refuses


def test_cells_that_fail_end_in_one_line_and_exit_code_1(tmp_path: Path) -> None:
    code, said = command("run", "shaky", "--jobs", "1", "--results", tmp_path)
    assert code == 1
    assert "4/6 cells 2 failed\n" in said
    last = said.splitlines()[-1]
    assert last.startswith("Error: 2 of 6 cells failed")
    assert last.endswith("seed 2: ZeroDivisionError: nothing to divide by")


def test_an_interrupt_says_how_to_continue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "run_experiment", interrupted)
    code, said = command("run", "tiny", "--results", tmp_path)
    assert code == 130
    assert said == f"What is done is kept in {tmp_path}; the same command continues.\nStopped.\n"


@pytest.mark.parametrize("arguments", [["list"], ["run", "tiny"]])
@pytest.mark.parametrize("package", ["filelock", "pandas"])
def test_a_missing_package_gives_the_command(
    package: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("runner", "store"):
        monkeypatch.delitem(sys.modules, f"pairmargin.experiments.{name}")
    monkeypatch.setitem(sys.modules, package, None)
    code, said = command(*arguments)
    assert code == 1
    assert said == (
        f'Error: an experiment needs {package}, which is not installed; run: pip install "pairmargin[experiments]"\n'
    )


def test_a_package_missing_only_when_the_report_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    def write_report(results: Path) -> None:
        import matplotlib.nothing_of_this_name  # noqa: F401

    fake = ModuleType("report")
    fake.write_report = write_report  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pairmargin.experiments.report", fake)
    code, said = command("report")
    assert code == 1
    assert "an experiment needs matplotlib, which" in said


def test_a_module_of_ours_that_is_missing_is_a_fault_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pairmargin.experiments.report", None)
    with pytest.raises(ModuleNotFoundError):
        command("report")


@pytest.mark.parametrize("option", ["--seeds", "--jobs"])
def test_numbers_that_cannot_be_are_a_wrong_use(option: str) -> None:
    assert command("run", "tiny", option, "0")[0] == 2


# The bar

NOW = Progress(cells=40, done=10, failed=2, seconds_left=90.0)


def test_bar_is_drawn_on_a_terminal_and_gone_at_the_end() -> None:
    screen = StringIO()
    with cli_experiment._bar(Console(file=screen, force_terminal=True, width=100, _environ={}), "tiny") as on_cell:
        on_cell(NOW)
    drawn = screen.getvalue()
    assert "12/40" in drawn
    assert "2 failed, about 2 min left" in drawn
    assert drawn.endswith("\x1b[2K")  # the line is wiped


def test_without_a_terminal_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 0.0
    monkeypatch.setattr(cli_experiment.time, "monotonic", lambda: clock)
    screen = StringIO()
    with cli_experiment._bar(Console(file=screen, width=100), "tiny") as on_cell:
        for done in range(41):
            on_cell(replace(NOW, done=done, failed=0, seconds_left=40.0 - done))
            clock += 1
    assert screen.getvalue().splitlines() == [
        "  0/40 cells about 40 s left",
        "  15/40 cells about 25 s left",
        "  30/40 cells about 10 s left",
        "  40/40 cells",
    ]


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0 s"), (59, "59 s"), (90, "2 min"), (3599, "1 h 0 min"), (12_000, "3 h 20 min")]
)
def test_durations_in_words(seconds: float, words: str) -> None:
    assert cli_experiment._duration(seconds) == words
