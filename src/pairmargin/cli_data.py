"""``pairmargin data``: list and fetch. Heavy imports stand inside the commands, as in `cli`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated

import typer

from .exceptions import DatasetError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table

    from .dataset_sources import File

app = typer.Typer(no_args_is_help=True, help="See which data sets there are, and download them.")


@app.command("list")
def list_known() -> None:
    """Show every data set, and whether it is on this machine."""
    from rich.console import Console

    from .datasets import data_folder

    console = Console()
    console.print(_overview())
    console.print(f"Files are looked for in {data_folder()}", markup=False, highlight=False, soft_wrap=True)


def _overview() -> Table:
    """One row for each data set."""
    from rich.filesize import decimal
    from rich.table import Table

    from .dataset_sources import SOURCES
    from .datasets import find_edition, is_here

    table = Table("name")
    for heading in ("rows × dims", "classes"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("where", no_wrap=True)
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("terms")
    for name, source in SOURCES.items():
        edition = find_edition(name)
        shape = f"{source.n_rows} × {len(source.feature_names)}"
        where = "not yet here" if not is_here(name, edition) else "file" if edition.files else "scikit-learn"
        size = decimal(sum(file.size for file in edition.files)) if edition.files else ""
        table.add_row(name, shape, str(len(source.classes)), where, size, source.terms)
    return table


@app.command()
def fetch(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="The data sets to fetch.")] = None,
    everything: Annotated[bool, typer.Option("--all", metavar="", help="Fetch every data set.")] = False,
) -> None:
    """Download data sets that are not here yet, and check those that are."""
    from rich.console import Console

    from .datasets import find_source, list_datasets

    if bool(names) == everything:
        raise typer.BadParameter("give the names of data sets, or --all")
    wanted = list(dict.fromkeys(names or list_datasets()))
    for name in wanted:
        find_source(name)  # a wrong name is refused before anything is downloaded
    _quiet_pooch()
    failures = _fetch_each(wanted, Console())
    if failures and len(wanted) == 1:
        raise failures[wanted[0]]
    for error in failures.values():
        Console(stderr=True).print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)
    if failures:
        raise DatasetError(f"{len(failures)} of {len(wanted)} data sets could not be fetched: {', '.join(failures)}")


def _quiet_pooch() -> None:
    """Leave the telling to our bars and lines."""
    with suppress(ModuleNotFoundError):
        import pooch

        pooch.get_logger().setLevel("WARNING")


def _fetch_each(names: list[str], console: Console) -> dict[str, DatasetError]:
    """Fetch and check every one, with a line on how it went; what went wrong is given back."""
    failures = {}
    for name in names:
        try:
            outcome = _fetch(name, console)
        except DatasetError as error:
            outcome, failures[name] = "failed", error
        console.print(f"{name}: {outcome}", markup=False, highlight=False)
    return failures


def _fetch(name: str, console: Console) -> str:
    """Fetch and check one data set; says what was done."""
    from .datasets import fetch_files, find_edition, is_here

    edition = find_edition(name)
    if not edition.files:
        return "comes with scikit-learn"
    was_here = is_here(name, edition)
    with _bars(console) as start_bar:
        fetch_files(name, edition, progress=start_bar)
    return "already here, checked" if was_here else "fetched, checked"


class _Bar:
    """One file's bar, in the words that pooch's downloader uses of tqdm's."""

    def __init__(self, bars: Progress, name: str) -> None:
        self._bars = bars
        self._task = bars.add_task(name, total=None)

    @property
    def total(self) -> float | None:
        return self._bars.tasks[self._task].total

    @total.setter
    def total(self, n_bytes: int) -> None:
        self._bars.update(self._task, total=n_bytes or None)  # 0: the server did not say

    def update(self, n_bytes: int) -> None:
        self._bars.advance(self._task, n_bytes)

    def reset(self) -> None:
        self._bars.reset(self._task)

    def close(self) -> None:
        self._bars.stop_task(self._task)


@contextmanager
def _bars(console: Console) -> Iterator[Callable[[File], _Bar]]:
    """A bar for every download; where there is no terminal to draw on, a line for every download."""
    from rich import progress

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(bar_width=20),
        progress.DownloadColumn(),
        progress.TransferSpeedColumn(),
    )
    with progress.Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:

        def start(file: File) -> _Bar:
            if bars.disable:
                console.print(f"  {file.url} …", markup=False, highlight=False, soft_wrap=True)
            return _Bar(bars, file.name)

        yield start
