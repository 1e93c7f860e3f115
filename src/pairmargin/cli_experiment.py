"""``pairmargin experiment``: list, run and report. Heavy imports stand inside the commands, as in `cli`."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .cli_progress import counting_bars
from .extras import coming_with

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console
    from rich.table import Table

    from .experiments.runner import Progress

app = typer.Typer(no_args_is_help=True, help="Run the paper's experiments, and tell what came out.")

LINE_EVERY = 15.0  # seconds between two lines where there is no terminal for a bar

Results = Annotated[Path, typer.Option(metavar="DIR", help="Folder of the finished cells and of the report.")]


@app.command("list")
def list_experiments(results: Results = Path("results")) -> None:
    """Show the experiments, and how much of each is done."""
    from rich.console import Console
    from rich.table import Column, Table

    with coming_with("experiments", "an experiment"):
        from .experiments.specs import EXPERIMENTS
        from .experiments.store import Store
        from .experiments.unfinished import Unfinished
    finished = Store(results).done() | Unfinished(results).reasons.keys()
    methods = Column("methods", overflow="fold")  # a name that is cut short could not be given to --method
    table = Table("name", "title", "data sets", methods, caption=f"done: in {results}")
    for name in ("cells", "done"):
        table.add_column(name, justify="right")
    for name, experiment in EXPERIMENTS.items():
        cells = set(experiment.cells())
        names = ", ".join(experiment.datasets), ", ".join(experiment.methods)
        table.add_row(name, experiment.title, *names, str(len(cells)), str(len(cells & finished)))
    Console().print(table)


@app.command()
def run(
    name: Annotated[str, typer.Argument(help="Such as table2, fig1 or leaderboard; all is all of them.")],
    seeds: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="How many draws of the pairs, if not the usual number.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", metavar="", help="One seed and fewer numbers of pairs, to see that all is well.")
    ] = False,
    jobs: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Cells side by side; all cores if not given.")
    ] = None,
    dataset: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this data set; may be given again.")
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this method; may be given again.")
    ] = None,
    drawing: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Only answers of this kind, such as uniform or asked-npu; may be given again."
        ),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", metavar="", help="Compute also what is done, and replace it.")
    ] = False,
    limit: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", min=0.1, help="Seconds of the processor that a cell may take before it is given up."
        ),
    ] = 600.0,
    results: Results = Path("results"),
) -> None:
    """Run an experiment, or what is still missing of it; it may be stopped at any time and continues where it was."""
    from rich.console import Console

    with coming_with("experiments", "an experiment"):
        from .experiments.runner import run_experiment
    console = Console()
    try:
        with _bar(console, name) as on_cell:
            frame = run_experiment(
                name,
                results=results,
                seeds=seeds,
                quick=quick,
                n_jobs=jobs,
                again=again,
                datasets=dataset,
                methods=method,
                drawings=drawing,
                limit=limit,
                on_cell=on_cell,
            )
    except KeyboardInterrupt:
        _say(console, f"What is done is kept in {results}; the same command continues.")
        raise
    console.print(_means(frame))
    _say(console, f"For the tables and figures: pairmargin experiment report --results {results}")


@app.command()
def report(results: Results = Path("results")) -> None:
    """Write the tables and figures of everything that is done."""
    from rich.console import Console

    with coming_with("experiments", "an experiment"):
        from .experiments.report import write_report

        page = write_report(results)
    _say(Console(), f"The report is in {page}")


def _say(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def _means(frame: pd.DataFrame) -> Table:
    """Mean accuracy and ARI of every method on every data set."""
    from rich.table import Table

    means = frame.groupby(["method", "dataset"], sort=False)[["accuracy", "ari"]].mean()
    cells = (means["accuracy"].map("{:.1%}".format) + "  " + means["ari"].map("{:.3f}".format)).unstack(fill_value="")
    table = Table("method", caption="accuracy and ARI, means over seeds and numbers of pairs")
    for dataset in cells.columns:
        table.add_column(str(dataset), justify="right")
    for method, values in cells.iterrows():
        table.add_row(str(method), *values)
    return table


@contextmanager
def _bar(console: Console, name: str) -> Iterator[Callable[[Progress], None]]:
    """A bar that follows the cells; where there is no terminal to draw on, a line now and then."""
    with counting_bars(console) as bars:
        task = bars.add_task(name, total=None, status="")
        said = -math.inf

        def on_cell(now: Progress) -> None:
            nonlocal said
            bars.update(task, total=now.cells, completed=now.done + now.failed, status=_status(now))
            if bars.disable and (time.monotonic() - said >= LINE_EVERY or now.done + now.failed == now.cells):
                said = time.monotonic()
                _say(console, f"  {now.done}/{now.cells} cells {_status(now)}".rstrip())

        yield on_cell


def _status(now: Progress) -> str:
    """What failed, and how long it will still take."""
    parts = []
    if now.failed:
        parts.append(f"{now.failed} failed")
    if now.seconds_left:
        parts.append(f"about {_duration(now.seconds_left)} left")
    return ", ".join(parts)


def _duration(seconds: float) -> str:
    """Such as 40 s, 12 min or 3 h 20 min."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
