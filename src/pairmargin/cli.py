"""The command ``pairmargin``. Heavy imports stand inside the commands, so that ``--help`` is quick."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from . import cli_data, cli_experiment, cli_files, cli_label
from ._version import __version__
from .cli_help import HELP
from .cli_progress import counting_bars
from .exceptions import (
    DatasetError,
    ExperimentError,
    MissingPackageError,
    NotEnoughMemoryError,
    PairMarginError,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID
    from rich.table import Table

    from .demo import Demo, OnStep


COULD_NOT, REFUSED, STOPPED = 1, 2, 130  # exit codes: it failed here, the input or the output is wrong, Ctrl-C
NOT_THE_INPUT = DatasetError, ExperimentError, MissingPackageError, MemoryError


class _Commands(TyperGroup):
    """The commands; what pairmargin or the system refuses becomes one line on stderr and an exit code.

    With ``--json`` the line is an object with the keys ``error`` and ``exit_code``.
    """

    def format_help(self, ctx: Any, formatter: Any) -> None:
        typer.echo(HELP, nl=False)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (PairMarginError, OSError, MemoryError) as error:
            code = COULD_NOT if isinstance(error, NOT_THE_INPUT) else REFUSED
            message = " ".join(str(error).split())
            if isinstance(error, MemoryError) and not isinstance(error, NotEnoughMemoryError):
                message = f"the memory is not enough to read this ({message or 'it is used up'}); give less at a time"
            if _rank() != "0":
                message = f"process {_rank()}: {message}"
            as_json = ctx.meta.get(cli_files.AS_JSON)
            _complain(json.dumps({"error": message, "exit_code": code}) if as_json else f"Error: {message}")
            raise typer.Exit(code) from error
        except KeyboardInterrupt as interrupt:
            if _rank() == "0":  # all are stopped together
                _complain("Stopped.")
            raise typer.Exit(STOPPED) from interrupt


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


app.command()(cli_files.fit)
app.command()(cli_files.predict)
app.command()(cli_files.evaluate)
app.command()(cli_label.label)
app.add_typer(cli_data.app, name="data")
app.add_typer(cli_experiment.app, name="experiment")


def _complain(line: str) -> None:
    cli_files._console(stderr=True).print(line, style="red")


def _rank() -> str:
    """Which one this is of several processes that torchrun has started, each of which tells its own errors."""
    return os.environ.get("RANK", "0")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pairmargin {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Cluster anything from a few "same" or "different" answers."""


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of the report; its index.html is written anew.")
    ] = Path("demo-report"),
    seed: Annotated[int, typer.Option(metavar="N", min=0, max=2**32 - 1, help="Same seed, same clusters.")] = 0,
    pairs: Annotated[int, typer.Option(metavar="N", help="How many answers to learn from.")] = 100,
) -> None:
    """Cluster handwritten digits from 100 answers and write a report; needs no network and less than a minute."""
    from rich.console import Console

    from . import demo as digits
    from . import report

    console = Console()
    task = digits.draw(pairs, seed)
    folder = report.make_folder(out)  # before the work, so that a wrong folder costs no time
    console.print(f"Clustering {len(task.y)} handwritten digits from {pairs} answers", highlight=False)
    with _bars(console) as on_step:
        result = digits.run(task, on_step=on_step)
    console.print(_demo_table(result))
    page = report.write(digits.build_report(result), folder)
    console.print(f"The report is in {page}", style="bold", markup=False, highlight=False, soft_wrap=True)


def _demo_table(result: Demo) -> Table:
    """The three methods side by side."""
    from rich.table import Table

    table = Table(caption=f"AUC: on {len(result.task.held_out)} held-out pairs")
    table.add_column("method")
    for name in ("accuracy", "ARI", "AUC", "seconds"):
        table.add_column(name, justify="right")
    for row in result.rows():
        table.add_row(*row)
    return table


@contextmanager
def _bars(console: Console) -> Iterator[OnStep]:
    """A bar for every stage; where there is no terminal to draw on, a line for every stage."""
    with counting_bars(console) as bars:
        tasks: dict[str, TaskID] = {}

        def on_step(stage: str, row: Mapping[str, Any]) -> None:
            if row["phase"] == "start":
                tasks[stage] = bars.add_task(stage, total=row["steps"], status="")
                if bars.disable:
                    console.print(f"  {stage} …", highlight=False)
            else:
                _advance(bars, tasks[stage], row)

        yield on_step


def _advance(bars: Progress, task: TaskID, row: Mapping[str, Any]) -> None:
    """Move a bar as a row of the estimator's callback says."""
    if row["phase"] == "pretrain":
        bars.update(task, advance=1, status=f"pretrain {row['reconstruction_error']:.4f}")
    elif row["phase"] == "train":
        bars.update(task, advance=row["iteration"] > 0, status=f"objective {row['objective']:.4f}")
    elif row["phase"] == "step":
        bars.advance(task)
    elif row["phase"] == "end":  # which training may reach before its last iteration
        bars.update(task, completed=bars.tasks[task].total)
