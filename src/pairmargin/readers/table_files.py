"""Files that hold tables: CSV, TSV, Parquet, Feather and Excel, each as tables of pyarrow, whole or in pieces."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ..enough_memory import check_memory
from ..exceptions import InvalidDataError, InvalidParameterError, NotEnoughMemoryError, unknown_name
from ..extras import need
from .csv_files import MISSING, TextTable
from .parts import UNPACKED, Options, ahead, check_distinct, check_unpacked, listed

BUFFER = 2**18  # bytes of each column of a Parquet file that are read at a time
MOST_LINES = 2**20  # that a sheet of Excel can have
CELL = 8  # bytes that a cell of a sheet takes at the least
STEP = 2**24  # bytes of cells after which the memory is looked at again
Line = tuple[int, tuple[Any, ...]]  # of a sheet: its number from 1, and its cells


class TableFile(Protocol):
    """A file that holds a table."""

    @property
    def path(self) -> Path: ...

    @property
    def names(self) -> list[str]: ...

    @property
    def notes(self) -> list[str]: ...

    def read(self, columns: list[str], kinds: Mapping[str, str]) -> Any:
        """Some columns, whole; `kinds` are what to read text as, where it is known."""

    def batches(self, columns: list[str], kinds: Mapping[str, str], rows: int) -> Iterator[Any]:
        """Some columns in record batches of any length."""

    def place(self, row: int) -> str:
        """Where a row is, for a message."""


@dataclass(frozen=True)
class ArrowFile:
    """A Parquet or Feather file."""

    path: Path
    names: list[str]
    notes: list[str]

    @classmethod
    def open(cls, path: Path, options: Options) -> ArrowFile:
        arrow = need("pyarrow", f"reading {path.name}")
        try:
            names = cls(path, [], []).source().schema_arrow.names
        except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
            raise InvalidDataError(
                f"{path.name} is damaged or no {_form(path)} file ({error}); save it again"
            ) from error
        check_distinct(names, path)
        return cls(path, [name for name in names if not name.startswith("__index_level_")], [])  # an index of pandas

    def source(self) -> Any:
        """The opened file."""
        if _form(self.path) == "Parquet":
            from pyarrow.parquet import ParquetFile

            # Or else it holds all bytes of a row group, which may be all rows of the file.
            return ParquetFile(self.path, pre_buffer=False, buffer_size=BUFFER)
        return _Feather(self.path)

    def read(self, columns: list[str], kinds: Mapping[str, str]) -> Any:
        import pyarrow as pa

        source = self.source()
        schema = source.schema_arrow
        if _form(self.path) == "Parquet":  # of a column that is always the same, a billion rows are a few bytes
            bits = sum(_bits(schema.field(name).type) for name in columns)
            check_memory(source.metadata.num_rows * bits // 8, f"{self.path.name}, unpacked,", UNPACKED)
        own = pa.schema([schema.field(name) for name in columns])
        return pa.Table.from_batches(self.batches(columns, kinds, 2**16), own)

    def batches(self, columns: list[str], kinds: Mapping[str, str], rows: int) -> Iterator[Any]:
        import pyarrow as pa

        try:
            for batch in self.source().iter_batches(batch_size=rows, columns=columns):
                chosen = batch.select(columns)
                chosen.validate(full=True)  # text that is no UTF-8 would only show when it is looked at
                yield chosen
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise InvalidDataError(f"{self.path.name} is damaged ({error}); save it again") from error

    def place(self, row: int) -> str:
        return f"row {row} of {self.path.name}"


def _bits(kind: Any) -> int:
    """What a value of a type takes at the least."""
    try:
        return int(kind.bit_width)
    except ValueError:
        return 0 if str(kind) == "null" else 32  # text has at least a place where it begins


class _Feather:
    """A Feather file as if it were a Parquet file."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        self.file = pa.ipc.open_file(pa.memory_map(str(path)))
        self.schema_arrow = self.file.schema

    def iter_batches(self, batch_size: int, columns: list[str]) -> Iterator[Any]:
        for number in range(self.file.num_record_batches):
            batch = self.file.get_batch(number)
            for start in range(0, batch.num_rows, batch_size):
                yield batch.slice(start, batch_size)


@dataclass(frozen=True)
class ExcelFile:
    """One sheet of an Excel file, read whole: Excel holds a million rows at most."""

    path: Path
    names: list[str]
    notes: list[str]
    cells: list[tuple[Any, ...]]
    lines: list[int]

    @classmethod
    def open(cls, path: Path, options: Options) -> ExcelFile:
        rows, notes = _sheet(path, options.get("sheet"))
        if not rows:
            raise InvalidDataError(f"{path.name} is empty; it should have column names and one row for each item")
        width = max(len(row) for _, row in rows)
        header, *cells = (row + (None,) * (width - len(row)) for _, row in rows)
        names = [f"column {k}" if cell is None else str(cell).strip() for k, cell in enumerate(header, 1)]
        check_distinct(names, path)
        return cls(path, names, notes, cells, [line for line, _ in rows[1:]])

    def read(self, columns: list[str], kinds: Mapping[str, str]) -> Any:
        arrow = need("pyarrow", f"reading {self.path.name}")
        places = [self.names.index(name) for name in columns]
        return arrow.table({self.names[k]: _arrow_column(arrow, [row[k] for row in self.cells]) for k in places})

    def batches(self, columns: list[str], kinds: Mapping[str, str], rows: int) -> Iterator[Any]:
        yield from self.read(columns, kinds).to_batches(rows)

    def place(self, row: int) -> str:
        return f"line {self.lines[row]} of {self.path.name}"


def _sheet(path: Path, wanted: str | None) -> tuple[list[Line], list[str]]:
    """The lines of the sheet that is wanted, or of the first one."""
    openpyxl = need("openpyxl", f"reading {path.name}")
    try:
        check_unpacked(path)
        with warnings.catch_warnings():  # about styles and checks in the sheet, which do not matter here
            warnings.simplefilter("ignore", UserWarning)
            with closing(openpyxl.load_workbook(path, read_only=True, data_only=True)) as book:
                names = book.sheetnames
                if wanted is not None and wanted not in names:
                    raise InvalidParameterError(unknown_name("sheet", wanted, names))
                sheet = book[wanted or names[0]]
                sheet.reset_dimensions()  # some programs write wrong ones
                rows = _lines(sheet, path.name)
    except (InvalidParameterError, InvalidDataError, NotEnoughMemoryError):
        raise
    except Exception as error:  # a damaged file can trip openpyxl anywhere
        raise InvalidDataError(f"{path.name} is damaged or no Excel file ({error}); save it again") from error
    unread = [name for name in names if name != (wanted or names[0])]
    notes = [f"only the sheet {wanted or names[0]!r} is read, not {listed(unread)}."] if unread else []
    return rows, notes


def _lines(sheet: Any, name: str) -> list[Line]:
    """The lines of a sheet that hold something; a few bytes can say that there are billions, or very wide ones."""
    rows, width, checked = list[Line](), 0, 0
    for line, row in enumerate(sheet.iter_rows(values_only=True), 1):
        if line > MOST_LINES:
            raise InvalidDataError(
                f"{name} has more than {MOST_LINES:,} lines, the most that Excel knows; "
                "look whether it is what it should be, or save it as CSV"
            )
        if any(cell is not None for cell in row):
            rows.append((line, row))
            width = max(width, len(row))
            if (needed := CELL * width * len(rows)) > checked:
                check_memory(needed, f"{name}, unpacked,", UNPACKED)
                checked = needed + STEP
    return rows


def _arrow_column(arrow: Any, cells: list[Any]) -> Any:
    """Cells of a sheet as one column: of one type if they have one, else of text."""
    values = [None if isinstance(cell, str) and cell.strip() in MISSING else cell for cell in cells]
    try:
        return arrow.array(values)
    except (arrow.ArrowInvalid, arrow.ArrowTypeError):
        return arrow.array([None if value is None else str(value) for value in values])


TABLES: dict[str, Any] = {
    ".csv": TextTable,
    ".tsv": TextTable,
    ".tab": TextTable,
    ".parquet": ArrowFile,
    ".feather": ArrowFile,
    ".xlsx": ExcelFile,
    ".xlsm": ExcelFile,
}


def _form(path: Path) -> str:
    return path.suffix[1:].capitalize()


def open_table(path: Path, options: Options) -> TableFile:
    """A table's file, by its ending."""
    file: TableFile = TABLES[path.suffix.lower()].open(path, options)
    return file


def check_names(file: TableFile, names: Sequence[str], parameter: str) -> None:
    """Refuse columns that the file does not have."""
    for name in names:
        if name not in file.names:
            raise InvalidParameterError(f"{parameter}: {unknown_name('column', name, file.names)} in {file.path.name}")


def check_needed(file: TableFile, names: Sequence[str]) -> None:
    """Refuse a file that lacks columns which a recipe was made with."""
    if missing := [name for name in names if name not in file.names]:
        raise InvalidDataError(
            f"{file.path.name} has no column {listed(list(map(repr, missing)))}, which the recipe was made with; "
            f"its columns are {listed(file.names, 20)}"
        )


def in_pieces(file: TableFile, columns: list[str], kinds: Mapping[str, str], rows: int | None) -> Iterator[Any]:
    """A file's table whole, or in tables of just ``rows`` (the last one may have fewer)."""
    arrow = need("pyarrow", f"reading {file.path.name}")
    held, empty = list[Any](), True
    if rows is None:
        held = [file.read(columns, kinds)]
    else:
        for batch in ahead(file.batches(columns, kinds, rows)):
            held.append(arrow.Table.from_batches([batch]))
            while sum(map(len, held)) >= rows:
                table = arrow.concat_tables(held)
                yield table.slice(0, rows)
                held, empty = [table.slice(rows)], False
    if sum(map(len, held)):
        yield arrow.concat_tables(held)
    elif empty:
        raise InvalidDataError(f"{file.path.name} has column names but no rows; add one row for each item")
