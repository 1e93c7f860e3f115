"""Text tables, CSV and TSV: find out how one is written, read it fast, and say what is wrong on which line.

pyarrow reads; it names no lines when it reads on several threads. So a file that it refuses is read once more by
Python's own csv, slowly, just to say where the trouble is.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from ..exceptions import InvalidDataError, InvalidParameterError
from .parts import Options, check_distinct, check_encoding, counted, encoding_error

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
MISSING = ("", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NAN", "NULL", "null", "None")  # cells without a value
KINDS = {  # that a column may be read as: pyarrow's type, and what a person calls a value of it
    "number": ("double", "a number"),
    "flag": ("bool", "true or false"),
    "date": ("timestamp[us]", "a date such as 2024-01-31"),
    "zoned date": ("timestamp[us]", "a date such as 2024-01-31 00:00Z"),
    "time": ("time32[s]", "a time such as 12:30:00"),
    "category": ("string", "text"),
}
SAMPLE = 2**20, 20  # bytes and rows that are looked at to find out how a file is written
BLOCK = 2**24  # bytes that are read at a time; no row may be longer
SMALL_BLOCK = 2**21  # the same when reading in pieces: pyarrow reads many blocks ahead
_NUMBER = re.compile(r"[-+]?\d*\.?\d+([eE][-+]?\d+)?")
_WITH_COMMA, _WITH_POINT = re.compile(r"[-+]?\d+,\d+"), re.compile(r"[-+]?\d+\.\d+")


@dataclass(frozen=True)
class TextTable:
    """A CSV or TSV file, and how it is written."""

    path: Path
    separator: str
    decimal: str
    encoding: str
    names: list[str]
    skip: int  # rows before the first item: the header, and empty lines above it
    notes: list[str]

    @classmethod
    def open(cls, path: Path, options: Options) -> TextTable:
        """Look at the first rows."""
        encoding, given = options.get("encoding") or "utf-8", options.get("separator")
        check_encoding(encoding)
        if given is not None and (not isinstance(given, str) or len(given) != 1):
            raise InvalidParameterError(f'separator={given!r} must be one character, such as "," or ";"')
        sample = _sample(path, encoding)
        usual = "," if path.suffix.lower() == ".csv" else "\t"
        separator = _separator(path, sample, given or usual, fixed=given is not None)
        rows = _rows(sample, separator)
        skip = next((k for k, row in enumerate(rows) if row), None)
        if skip is None:
            raise InvalidDataError(
                f"{path.name} begins with empty lines alone; it should have column names and one row for each item"
            )
        names, headless = _names(rows[skip])
        notes = [] if separator in (given, usual) else [f"{path.name} is separated by {SEPARATORS[separator]}."]
        if headless:
            notes.append(f"{path.name} has no header: its columns are called {names[0]} to {names[-1]}.")
        cells = [cell.strip() for row in rows[skip:] for cell in row]
        decimal = "."
        if separator == ";" and any(map(_WITH_COMMA.fullmatch, cells)) and not any(map(_WITH_POINT.fullmatch, cells)):
            decimal = ","
            notes.append(f"{path.name} writes numbers with a decimal comma.")
        check_distinct(names, path)
        return cls(path, separator, decimal, encoding, names, skip + (not headless), notes)

    def read(self, columns: list[str], kinds: Mapping[str, str]) -> Any:
        """The whole table; kinds that are not given are found out from all rows."""
        from pyarrow import csv as reader

        try:
            table = reader.read_csv(self.path, *self._settings(reader, columns, kinds, BLOCK))
        except ValueError as error:  # ArrowInvalid and UnicodeDecodeError are such
            raise self._blame(kinds, error) from error
        if any(str(field.type) == "binary" for field in table.schema):  # what pyarrow makes of text it cannot decode
            raise encoding_error(self.path, self.encoding)
        return table

    def batches(self, columns: list[str], kinds: Mapping[str, str], rows: int) -> Iterator[Any]:
        """The table in blocks of the reader's own size."""
        from pyarrow import csv as reader

        try:
            with reader.open_csv(self.path, *self._settings(reader, columns, kinds, SMALL_BLOCK)) as blocks:
                yield from blocks
        except ValueError as error:
            raise self._blame(kinds, error) from error

    def _settings(self, reader: Any, columns: list[str], kinds: Mapping[str, str], block: int) -> tuple[Any, Any, Any]:
        """pyarrow's options for reading, parsing and converting."""
        reading = reader.ReadOptions(
            column_names=self.names, skip_rows_after_names=self.skip, encoding=self.encoding, block_size=block
        )
        parsing = reader.ParseOptions(delimiter=self.separator, newlines_in_values=True)
        converting = reader.ConvertOptions(
            include_columns=columns,
            column_types={name: _type(kind) for name, kind in kinds.items() if name in columns},
            null_values=MISSING,
            strings_can_be_null=True,
            decimal_point=self.decimal,
        )
        return reading, parsing, converting

    def place(self, row: int) -> str:
        """Where a row is, for a message."""
        try:
            line = next(itertools.islice(self.lines(), row, None))[0]
        except csv.Error:  # a cell that is longer than Python's csv takes
            line = row + self.skip + 1
        return f"line {line} of {self.path.name}"

    def lines(self) -> Iterator[tuple[int, list[str]]]:
        """Every row with the number of its first line, also those that are too short or too long; slow."""
        with self.path.open(newline="", encoding="utf-8-sig" if _is_utf8(self.encoding) else self.encoding) as file:
            reader = csv.reader(self._bounded(file), delimiter=self.separator)
            line = 1
            for number, row in enumerate(reader):
                if row and number >= self.skip:
                    yield line, row
                line = reader.line_num + 1

    def _bounded(self, file: TextIO) -> Iterator[str]:
        """The lines of a file, of which none may be too long for the memory."""
        while text := file.readline(BLOCK):
            if len(text) == BLOCK:
                raise self._too_long()
            yield text

    def _too_long(self) -> InvalidDataError:
        limit = f"{BLOCK >> 20} MB, or {SMALL_BLOCK >> 20} MB when it is read in pieces"
        return InvalidDataError(f"{self.path.name} has a row of more than {limit}; is a quote not closed?")

    def ragged(self, line: int, row: list[str]) -> InvalidDataError:
        """What to say of a row that has too few or too many cells."""
        return InvalidDataError(
            f"line {line} of {self.path.name} has {counted(len(row), 'value')}, but there are "
            f"{counted(len(self.names), 'column')}; correct the line, or put quotes around values with a "
            f"{self.separator!r} in them"
        )

    def _blame(self, kinds: Mapping[str, str], error: Exception) -> InvalidDataError:
        """The first row that cannot be read, and why."""
        found = re.search(r"CSV column #(\d+):.* invalid value '(.*)'", str(error), re.DOTALL)
        place, value = (int(found[1]), found[2]) if found else (0, None)
        try:
            for line, row in self.lines():
                if len(row) != len(self.names):
                    return self.ragged(line, row)
                if row[place] == value:
                    return InvalidDataError(
                        f"line {line} of {self.path.name} has {value!r} for {self.names[place]!r}, which should be "
                        f"{KINDS[kinds[self.names[place]]][1]}; correct it, or leave the cell empty"
                    )
        except UnicodeError:
            return encoding_error(self.path, self.encoding)
        except csv.Error:
            pass
        except InvalidDataError as too_long:
            return too_long
        if "straddling" in str(error):
            return self._too_long()
        return InvalidDataError(f"{self.path.name} cannot be read ({error}); save it again")


def _type(kind: str) -> Any:
    """What pyarrow calls a kind; a type with a time zone has no name."""
    import pyarrow as pa

    return pa.timestamp("us", tz="UTC") if kind == "zoned date" else KINDS[kind][0]


def _is_utf8(encoding: str) -> bool:
    return encoding.lower().replace("_", "-") in ("utf-8", "utf8", "utf-8-sig")


def _sample(path: Path, encoding: str) -> str:
    """The first whole lines of a file, without a byte order mark."""
    with path.open("rb") as file:
        content = file.read(SAMPLE[0])
    if not content.strip():
        raise InvalidDataError(
            f"{path.name} is empty; it should have a line of column names and one line for each item"
        )
    try:
        with path.open(newline="", encoding="utf-8-sig" if _is_utf8(encoding) else encoding) as file:
            text = file.read(SAMPLE[0])
    except UnicodeError:
        raise encoding_error(path, encoding) from None
    if "\0" in text:
        raise encoding_error(path, encoding)
    return text if len(content) < SAMPLE[0] else text[: text.rfind("\n") + 1] or text


def _rows(sample: str, separator: str) -> list[list[str]]:
    """The first rows of the sample; an empty line is an empty row."""
    reader = csv.reader(io.StringIO(sample, newline=""), delimiter=separator)
    try:
        return list(itertools.islice(reader, SAMPLE[1]))
    except csv.Error:  # one cell that is longer than Python's csv takes
        return [sample.split("\n", 1)[0].split(separator)]


def _separator(path: Path, sample: str, usual: str, *, fixed: bool) -> str:
    """The usual separator, unless it finds one column where another finds several in every row."""

    def width(separator: str) -> int:
        widths = {len(row) for row in _rows(sample, separator) if row}
        return widths.pop() if len(widths) == 1 else 1

    if len(next(filter(None, _rows(sample, usual)), [])) > 1:
        return usual
    best = max(SEPARATORS, key=width)
    if width(best) == 1:
        return usual
    if fixed:
        raise InvalidDataError(
            f"{path.name} has one column with separator={usual!r} but {width(best)} with {best!r}; "
            f"pass separator={best!r}"
        )
    return best


def _names(header: list[str]) -> tuple[list[str], bool]:
    """The names of the columns, and whether the file has none: then its first line is all numbers."""
    numbers = [float(cell) for cell in header if _NUMBER.fullmatch(cell.strip())]
    counts_up = all(later - earlier == 1 for earlier, later in itertools.pairwise(numbers))  # as pandas writes it
    if len(numbers) == len(header) and not (counts_up and len(header) > 1):
        return [f"column {k}" for k in range(1, len(header) + 1)], True
    return [cell.strip() or f"column {k}" for k, cell in enumerate(header, 1)], False
