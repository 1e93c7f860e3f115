"""Cells that gave nothing: the limit that every cell has, and a note of those that reached it or failed.

A method that is too slow somewhere is noted and not tried again, nor on other draws of the place or with more answers
there: it will not be faster. A note is as good as a result to a run that continues, and the last rank to a leaderboard.
"""

from __future__ import annotations

import csv
import os
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path

from ..exceptions import ExperimentError
from ..writing import new_file, refusals
from .specs import Cell
from .store import KEY

LIMIT = 600.0  # seconds of the processor that a cell may take
TOO_SLOW = "took more than"  # how the note on a slow cell begins
COLUMNS = [*KEY, "reason"]


class TooSlow(Exception):
    """A cell has taken more of the processor than it may."""

    def __init__(self, limit: float) -> None:
        super().__init__(f"{TOO_SLOW} {limit:g} s")


@contextmanager
def processor_limit(seconds: float) -> Iterator[None]:
    """Raise `TooSlow` in a block that takes longer than this, by the clock of the processor.

    A signal does it, between two steps of Python. Where there is none (Windows, threads), there is no limit.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise TooSlow(seconds)

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


class Unfinished:
    """The cells of a results folder that gave nothing, and why: ``unfinished.csv``.

    Parameters
    ----------
    folder : path-like
        The results folder. Write only inside `Store.writing`.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._path = Path(folder) / "unfinished.csv"
        self.reasons: dict[Cell, str] = _read(self._path) if self._path.exists() else {}

    def note(self, cell: Cell, reason: str) -> None:
        """Remember why a cell gave nothing."""
        self.reasons[cell] = reason
        self._write()

    def forget(self, cells: Iterable[Cell]) -> None:
        """Let cells be tried again."""
        known = self.reasons.keys() & set(cells)
        for cell in known:
            del self.reasons[cell]
        if known:
            self._write()

    def hopeless(self, cell: Cell) -> str | None:
        """Why a cell need not be tried: its method was too slow there with as many answers, or with fewer."""
        for other, reason in self.reasons.items():
            if _kind(other) == _kind(cell) and other.n_pairs <= cell.n_pairs and reason.startswith(TOO_SLOW):
                return f"not tried: seed {other.seed} of {other.n_pairs} pairs {reason}"
        return None

    def _write(self) -> None:
        path = self._path
        with new_file(path) as beside, refusals(path), beside.open("w", newline="", encoding="utf-8") as file:
            lines = csv.writer(file, lineterminator="\n")
            lines.writerow(COLUMNS)
            lines.writerows([*astuple(cell), self.reasons[cell]] for cell in sorted(self.reasons))


def _kind(cell: Cell) -> tuple[str, ...]:
    return cell.dataset, cell.method, cell.drawing


def _read(path: Path) -> dict[Cell, str]:
    with path.open(newline="", encoding="utf-8") as file:
        header, *lines = csv.reader(file)
        if header != COLUMNS or any(len(line) != len(COLUMNS) for line in lines):
            raise ExperimentError(f"{path} does not have the columns {','.join(COLUMNS)} throughout; move it away")
    return {Cell(d, m, int(n), int(seed), drawing): reason for d, m, n, seed, drawing, reason in lines}
