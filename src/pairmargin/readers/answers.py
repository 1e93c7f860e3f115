"""`read_pairs`: answers in files, in which items go by ids or by row numbers."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..exceptions import InvalidDataError, InvalidPairsError, InvalidParameterError, did_you_mean
from ..pairs import Pairs
from ..pairs.checks import check_columns, number
from .columns import texts_of
from .csv_files import TextTable
from .items import Items, existing
from .parts import Options, encoding_error
from .table_files import TABLES, open_table

Cells = dict[str, list[str | None]]
CANDIDATES = 20_000  # ids among which the nearest one is looked for


def read_pairs(
    path: str | os.PathLike[str],
    items: Items | Sequence[str] | None = None,
    *,
    encoding: str | None = None,
    separator: str | None = None,
) -> Pairs:
    """Read answers from a table with the columns `a`, `b`, `same` and, if wanted, `weight`.

    Parameters
    ----------
    path : path-like
        A CSV, TSV, Parquet, Feather or Excel file. `a` and `b` are ids, or row numbers from 0 if not one of them is an
        id. `same` is true or false, same or different, yes or no, 1 or 0, +1 or -1. Other columns, such as who
        answered and when, are ignored.
    items : Items or sequence of str, default=None
        The items, or their ids in the order of their rows. None takes `a` and `b` as row numbers.
    encoding, separator : str, default=None
        As in `read_items`.

    Returns
    -------
    pairs : Pairs

    Raises
    ------
    InvalidPairsError
        If an answer is not well formed or names an item that is not there, with the line and the nearest id.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from pairmargin import read_pairs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "answers.csv")
    ...     _ = path.write_text("a,b,same,who\\nf1,f2,yes,Ada\\nf3,f1,no,Ada\\n")
    ...     read_pairs(path, ["f1", "f2", "f3"])
    Pairs(2 pairs: 1 same, 1 different)
    """
    found = existing(path)
    if found.suffix.lower() not in TABLES:
        raise InvalidParameterError(
            f"answers are read from {', '.join(TABLES)}, not from {found.name}; save them as one of these"
        )
    ids = items.ids if isinstance(items, Items) else items
    return _answers(found, ids, {"encoding": encoding, "separator": separator})


def read_people(path: str | os.PathLike[str], ids: Sequence[str]) -> dict[str, Pairs]:
    """The answers of each person in the column `who` of a file; without that column, all are of the file's name."""
    found = existing(path)
    read_pairs(found, ids)  # for its checks of the whole
    table, places, template = _table(found, ids, {})
    rows: dict[str, list[int]] = {}
    for row, who in enumerate(table.get("who", [found.stem] * len(places))):
        rows.setdefault(who or "", []).append(row)
    return {
        who: Pairs._from_table(
            {name: [cells[k] for k in own] for name, cells in table.items()}, [places[k] for k in own], template
        )
        for who, own in rows.items()
    }


def _answers(path: Path, ids: Sequence[str] | None, options: Options) -> Pairs:
    """The answers of a file about items with these ids, or about rows if there are none."""
    pairs = Pairs._from_table(*_table(path, ids, options))
    return pairs if ids is None else Pairs.check(pairs, len(ids))


def _table(path: Path, ids: Sequence[str] | None, options: Options) -> tuple[dict[str, list[Any]], list[int], str]:
    """The columns of a file with rows in place of ids, where each line stands in it, and how to say so."""
    try:
        cells, places, template = _cells(path, options)
    except InvalidDataError as error:
        raise InvalidPairsError(str(error)) from error
    table: dict[str, list[Any]] = {**cells, "a": list(map(number, cells["a"])), "b": list(map(number, cells["b"]))}
    if "weight" in cells:
        table["weight"] = list(map(number, cells["weight"]))
    if ids is not None:
        rows = {name: row for row, name in enumerate(ids)}
        if not _are_row_numbers(table, cells, rows):
            for side in ("a", "b"):
                table[side] = [
                    _row(cell, rows, side, template.format(k)) for cell, k in zip(cells[side], places, strict=True)
                ]
    return table, places, template


def _cells(path: Path, options: Options) -> tuple[Cells, list[int], str]:
    """The columns that matter, where each row stands in the file, and how to say so."""
    file = open_table(path, options)
    check_columns(file.names, path.name)
    columns: list[str] = [name for name in ("a", "b", "same", "weight", "who") if name in file.names]
    name = path.name.replace("{", "{{").replace("}", "}}")
    if not isinstance(file, TextTable):
        table = file.read(columns, {})
        cells = {column: texts_of(table.column(column)) for column in columns}
        return cells, list(range(table.num_rows)), f"row {{}} of {name}:"
    lines = list(_whole(file))
    held = {column: file.names.index(column) for column in columns}
    cells = {column: [row[place].strip() or None for _, row in lines] for column, place in held.items()}
    return cells, [line for line, _ in lines], f"line {{}} of {name}:"


def _whole(file: TextTable) -> Iterable[tuple[int, list[str]]]:
    """The rows of a text table, unless one has too few or too many cells."""
    line = file.skip
    try:
        for line, row in file.lines():
            if len(row) != len(file.names):
                raise file.ragged(line, row)
            yield line, row
    except UnicodeError:
        raise encoding_error(file.path, file.encoding) from None
    except csv.Error as error:
        raise InvalidDataError(
            f"{file.path.name} cannot be read after line {line} ({error}); is a quote not closed?"
        ) from error


def _are_row_numbers(table: Mapping[str, list[Any]], cells: Cells, rows: Mapping[str, int]) -> bool:
    """Whether the answers go by row numbers: not one is an id, and all are whole numbers."""
    sides = [(number, cell) for side in ("a", "b") for number, cell in zip(table[side], cells[side], strict=True)]
    return all(isinstance(number, int) and cell not in rows for number, cell in sides)


def _row(cell: str | None, rows: Mapping[str, int], side: str, place: str) -> int:
    """The row of an id."""
    if cell is None:
        raise InvalidPairsError(f"{place} has no {side}; give the ids of two items")
    if cell in rows:
        return rows[cell]
    alike = [name for name in rows if abs(len(name) - len(cell)) <= 2][:CANDIDATES]
    raise InvalidPairsError(
        f"{place} {cell!r} is not the id of an item{did_you_mean(cell, alike)}; correct it, or leave the line out"
    )
