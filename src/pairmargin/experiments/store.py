"""Finished cells on disk: one tidy CSV a data set, in which a kill costs at most the line that was being written.

A cell belongs to a data set and not to an experiment, because experiments share cells: Fig. 3 shows two of the methods
of Fig. 2 again. One process writes at a time; anybody may read meanwhile.
"""

from __future__ import annotations

import csv
import errno
import io
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np
import pandas as pd
from filelock import FileLock, Timeout

from ..exceptions import ExperimentError
from ..writing import new_file, refusals
from .specs import Cell

logger = logging.getLogger("pairmargin")

FALSE_POSITIVE_RATES = np.arange(51) / 50  # of `Row.tpr`; k/50 meets the steps of 50 "different" pairs exactly


@dataclass(frozen=True)
class Row:
    """What one cell gave: a line of a CSV, whose columns are these fields."""

    dataset: str
    method: str
    n_pairs: int
    seed: int
    drawing: str
    accuracy: float
    ari: float
    nmi: float
    auc: float  # of the held-out pairs; nan where a method chooses its questions, which may be these
    clusters: int  # with at least one point
    seconds: float  # of the processor, which other work on the machine does not lengthen
    peak_mb: float
    tpr: str  # true positive rates of the held-out pairs at `FALSE_POSITIVE_RATES`, separated by spaces; or nothing
    pairmargin: str  # versions, from here on
    python: str
    numpy: str
    scipy: str
    scikit_learn: str
    torch: str
    date: str  # UTC

    @property
    def cell(self) -> Cell:
        return Cell(*(getattr(self, name) for name in KEY))


KEY = [field.name for field in fields(Cell)]
_KINDS = {"str": str, "int": int, "float": float}
TYPES = {field.name: _KINDS[str(field.type)] for field in fields(Row)}


class Store:
    """The finished cells of a results folder, in ``cells/<data set>.csv``.

    Parameters
    ----------
    folder : path-like
        The results folder. It is made when something is written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Store(folder).done()
    set()
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._cells = self.folder / "cells"

    # Reading, which needs no lock: a line that is just being written is not seen yet

    def rows(self) -> list[Row]:
        """Every finished cell, sorted; of a cell that stands there twice, the later line."""
        latest = {row.cell: row for path in self._files() for row in _read(path)}
        return [latest[cell] for cell in sorted(latest)]

    def done(self) -> set[Cell]:
        """The finished cells."""
        return {row.cell for row in self.rows()}

    def frame(self) -> pd.DataFrame:
        """Every finished cell as a table, one row a cell, sorted."""
        return pd.DataFrame([astuple(row) for row in self.rows()], columns=list(TYPES)).astype(TYPES)

    # Writing, inside `with store.writing()`

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only one who writes here, and drop the half lines that a killed run has left."""
        lock = FileLock(self._cells / ".lock", timeout=0)
        try:
            self._cells.mkdir(parents=True, exist_ok=True)
            held = lock.acquire()
        except Timeout as error:
            raise ExperimentError(
                f"another run is writing to {self.folder}; wait until it has ended, "
                f"or choose another folder with --results OTHER (results=… in Python)"
            ) from error
        except OSError as error:
            raise ExperimentError(
                f"{self.folder} cannot be written ({error.strerror}); choose another folder with --results OTHER"
            ) from error
        with held:
            for path in self._files():
                with refusals(path):
                    _drop_half_line(path)
            yield

    def append(self, row: Row) -> None:
        """Add a cell that is not there yet: one full line in one write, safe on the disk before this returns.

        If the disk refuses it, the file is as it was.
        """
        path = self._file(row.dataset)
        size = path.stat().st_size if path.exists() else 0
        try:
            with refusals(path), path.open("ab", buffering=0) as file:
                line = (b"" if size else _line(TYPES)) + _line(astuple(row))
                if file.write(line) < len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(file.fileno())
        except BaseException:
            _cut_back(path, size)
            raise

    def replace(self, row: Row) -> None:
        """Put a cell in the place of its older self; a kill leaves the old file or the new one, never half of one."""
        path = self._file(row.dataset)
        _write(path, {old.cell: old for old in _read(path)} | {row.cell: row})

    def remove(self, cell: Cell) -> None:
        """Forget a cell, in the same way."""
        path = self._file(cell.dataset)
        _write(path, {old.cell: old for old in _read(path) if old.cell != cell})

    def _file(self, dataset: str) -> Path:
        return self._cells / f"{dataset}.csv"

    def _files(self) -> list[Path]:
        return sorted(self._cells.glob("*.csv"))


def _cut_back(path: Path, size: int) -> None:
    """Take back what was appended to a file; one that was not there is gone again."""
    with suppress(OSError):  # what cannot be cut off is half a line, which the next run drops
        os.truncate(path, size) if size else path.unlink()


def _write(path: Path, rows: Mapping[Cell, Row]) -> None:
    with new_file(path) as beside, refusals(path):
        beside.write_bytes(_line(TYPES) + b"".join(_line(astuple(row)) for row in rows.values()))


def _line(values: Iterable[object]) -> bytes:
    """A line of CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue().encode()


def _whole_lines(content: bytes) -> int:
    """How many bytes stand in lines that were written to their end."""
    return content.rfind(b"\n") + 1


def _drop_half_line(path: Path) -> None:
    """Cut off a last line that a kill has left unfinished; its cell is then computed again."""
    content = path.read_bytes()
    whole = _whole_lines(content)
    if whole < len(content):
        logger.warning("%s ended in the middle of a line, which is dropped; its cell will be computed again", path)
        os.truncate(path, whole)


def _read(path: Path) -> list[Row]:
    """The rows of one file, without a last line that is not finished."""
    content = path.read_bytes()
    header, *lines = content[: _whole_lines(content)].splitlines() or [_line(TYPES).strip()]
    if header != _line(TYPES).strip():
        raise ExperimentError(
            f"{path} has the columns {header.decode(errors='replace')}, not {','.join(TYPES)}; it is from another "
            f"version of pairmargin: move it away, or choose another folder with --results OTHER"
        )
    return [_parse(line, path, number) for number, line in enumerate(lines, start=2)]


def _parse(line: bytes, path: Path, number: int) -> Row:
    """One line as a row; one that makes no sense is refused."""
    try:
        values = next(csv.reader([line.decode()], strict=True), [])
        if len(values) != len(TYPES):
            raise ValueError(f"{len(values)} values in place of {len(TYPES)}")
        row = Row(*(kind(value) for kind, value in zip(TYPES.values(), values, strict=True)))
        if row.dataset != path.stem:
            raise ValueError(f"a cell of the data set {row.dataset!r}")
    except (ValueError, csv.Error) as error:
        raise ExperimentError(
            f"{path}, line {number} is damaged: {error}; delete the line, and its cell will be computed again"
        ) from error
    return row
