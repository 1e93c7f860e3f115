"""The command: light to start, clear when it refuses, and a demo that leaves a page behind."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.console import Console
from rich.progress import Progress
from typer.testing import CliRunner

import pairmargin
from pairmargin import cli, demo
from pairmargin.cli_help import COMMANDS, HELP

HOME = str(Path(pairmargin.__file__).parents[1])
QUICK = {"max_iter": 3, "pretrain_epochs": 1, "hidden_layer_sizes": 20}


def run(*arguments: str | Path) -> tuple[int, str]:
    """The exit code, and all that was said."""
    result = CliRunner().invoke(cli.app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo on a few images, with training that is over at once."""
    monkeypatch.setattr(demo, "draw", partial(demo.draw, n_samples=150))
    monkeypatch.setattr(demo, "run", partial(demo.run, **QUICK))


def test_help_needs_nothing_heavy() -> None:
    code = """
import runpy, sys
sys.path.insert(0, sys.argv[1])
sys.argv = ["pairmargin", "--help"]
import pairmargin, pairmargin.cli
try:
    runpy.run_module("pairmargin", run_name="__main__")
except SystemExit as end:
    assert not end.code, end.code
heavy = {"torch", "sklearn", "scipy", "numpy", "pandas", "pyarrow", "matplotlib", "jinja2"} & set(sys.modules)
assert not heavy, heavy
"""
    done = subprocess.run([sys.executable, "-c", code, HOME], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    assert "Usage: pairmargin" in done.stdout
    assert "demo" in done.stdout


def test_the_first_help_needs_no_command_line_library() -> None:
    code = "import sys; from pairmargin.__main__ import main; main(); print(*sys.modules)"
    line = [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {HOME!r}); {code}", "--help"]
    done = subprocess.run(line, capture_output=True, encoding="utf-8", check=True)
    *said, modules = done.stdout.splitlines(keepends=True)
    assert "".join(said) == HELP
    assert not {"typer", "rich", "typing", "importlib.metadata"} & set(modules.split())


def test_help_names_every_command_with_what_it_does() -> None:
    group = typer.main.get_command(cli.app)
    summaries = {name: (command.help or "").split("\n")[0] for name, command in group.commands.items()}
    assert list(COMMANDS) == list(summaries)
    for name, summary in COMMANDS.items():
        assert summaries[name].startswith(summary.removesuffix(".")), name


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], []])
def test_help(arguments: list[str]) -> None:
    _, said = run(*arguments)
    assert "Cluster anything" in said
    assert "demo" in said


def test_help_of_the_demo_names_its_options() -> None:
    code, said = run("demo", "--help")
    assert code == 0
    assert all(option in said for option in ("--out", "--seed", "--pairs"))


def test_version() -> None:
    assert run("--version") == (0, f"pairmargin {pairmargin.__version__}\n")


@pytest.mark.usefixtures("quick")
def test_demo_shows_three_rows_and_writes_one_file(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "report"
    code, said = run("demo", "--out", folder, "--pairs", "30", "--seed", "1")
    assert code == 0
    rows = [line for line in said.splitlines() if line.startswith("│")]
    assert [row.split("│")[1].strip() for row in rows] == [demo.KMEANS, demo.PRESET, demo.DEFAULT]
    assert all(row.count(".") == 4 for row in rows)  # four numbers each
    assert [path.name for path in folder.iterdir()] == ["index.html"]
    assert str(folder / "index.html") in said
    assert "\x1b" not in said
    assert "\r" not in said
    for stage in (demo.KMEANS, demo.PRESET, demo.DEFAULT, demo.MAPS):
        assert said.count(f"  {stage} …\n") == 1


@pytest.mark.parametrize("pairs", ["0", "-5", str(10**9)])
def test_wrong_number_of_pairs_is_refused_with_the_way_out(pairs: str, tmp_path: Path) -> None:
    code, said = run("demo", f"--pairs={pairs}", "--out", tmp_path / "report")
    assert code == 2
    assert said.startswith(f"Error: {pairs} pairs")
    assert "such as --pairs 100" in said
    assert said.count("\n") == 1
    assert not (tmp_path / "report").exists()


def test_folder_that_cannot_be_is_refused_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "run", lambda *_, **__: pytest.fail("the work was begun"))
    (tmp_path / "file").write_text("in the way")
    code, said = run("demo", "--out", tmp_path / "file" / "report")
    assert code == 2
    assert "cannot be written" in said
    assert "choose another place" in said
    assert said.count("\n") == 1


def test_seed_outside_its_range_is_a_wrong_use() -> None:
    assert run("demo", "--seed", "-1")[0] == 2


def test_interrupt_ends_with_130_and_a_short_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "run", interrupted)
    code, said = run("demo", "--out", tmp_path)
    assert code == 130
    assert said.endswith("Stopped.\n")
    assert list(tmp_path.iterdir()) == []


def test_every_process_of_several_tells_its_own_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = "predict", tmp_path / "m", tmp_path / "x.csv", "--out", tmp_path / "out"
    code, said = run(*wrong)
    assert code == 2
    monkeypatch.setenv("RANK", "1")
    assert run(*wrong) == (2, said.replace("Error: ", "Error: process 1: "))
    assert json.loads(run(*wrong, "--json")[1])["error"].startswith("process 1: ")


def test_one_process_of_several_says_that_all_were_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "draw", interrupted)
    monkeypatch.setenv("RANK", "1")
    assert run("demo", "--out", tmp_path) == (130, "")


def test_error_that_is_not_ours_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(demo, "run", broken)
    with pytest.raises(ZeroDivisionError):
        run("demo", "--out", tmp_path)


def test_bars_follow_the_rows_of_the_estimator() -> None:
    bars = Progress(disable=True)
    task = bars.add_task("our default", total=5, status="")
    shown = bars.tasks[task]
    cli._advance(bars, task, {"phase": "pretrain", "layer": 0, "epoch": 1, "reconstruction_error": 0.25})
    assert (shown.completed, shown.fields["status"]) == (1, "pretrain 0.2500")
    cli._advance(bars, task, {"phase": "train", "iteration": 0, "objective": 0.75})  # the start is no iteration
    assert (shown.completed, shown.fields["status"]) == (1, "objective 0.7500")
    cli._advance(bars, task, {"phase": "train", "iteration": 1, "objective": 0.5})
    assert (shown.completed, shown.fields["status"]) == (2, "objective 0.5000")
    cli._advance(bars, task, {"phase": "step"})
    assert shown.completed == 3
    cli._advance(bars, task, {"phase": "end"})
    assert shown.finished


def test_bars_are_drawn_on_a_terminal_and_gone_at_the_end() -> None:
    screen = StringIO()
    console = Console(file=screen, force_terminal=True, width=100, _environ={})
    with cli._bars(console) as on_step:
        on_step("our default", {"phase": "start", "steps": 5})
        on_step("our default", {"phase": "end"})
    assert "our default" in screen.getvalue()
    assert "5/5" in screen.getvalue()
    assert screen.getvalue().endswith("\x1b[2K")  # the line is wiped
