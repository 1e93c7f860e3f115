"""Rows of a table as items: their ids, their labels, and the lines that a person is shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

from ..exceptions import InvalidDataError, InvalidParameterError
from .columns import Columns, learn_columns, texts_of
from .parts import Array, Options, Part, State, check_ids, labels_of, listed, row_numbers
from .table_files import TableFile, check_names, check_needed, in_pieces, open_table

SHOWN = 20  # columns of a row that a person is shown


class RowFaces(Sequence[str]):
    """Rows of a table as a person is shown them, "name: value" on a line each; written out only when looked at."""

    def __init__(self, table: Any) -> None:
        self.more = max(0, table.num_columns - SHOWN)
        self.table = table.select(table.column_names[:SHOWN])

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @overload
    def __getitem__(self, where: int) -> str: ...

    @overload
    def __getitem__(self, where: slice) -> list[str]: ...

    def __getitem__(self, where: int | slice) -> str | list[str]:
        if isinstance(where, slice):
            return [self[k] for k in range(*where.indices(len(self)))]
        row = range(len(self))[where]
        lines = [f"{name}: {_shown(self.table.column(name)[row])}" for name in self.table.column_names]
        return "\n".join(lines + ([f"… and {self.more} more"] if self.more else []))


def _shown(cell: Any) -> str:
    try:
        value = cell.as_py()
    except (ValueError, ImportError):  # a time that Python's own cannot hold
        return str(cell)
    if value is None:
        return "—"
    return f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class TableMaker:
    """Rows of a table as items."""

    columns: Columns
    shown: list[str]
    id: str | None
    truth: str | None
    options: Options  # how text tables are written, if the user said so
    kind = "table"

    @classmethod
    def learn(cls, path: Path, options: Options) -> tuple[TableMaker, Part]:
        """Decide what becomes of each column, and do it."""
        file = open_table(path, options)
        key, truth = options.get("id"), options.get("truth")
        used = _used_columns(file, options)
        as_text = dict.fromkeys(_some(key, truth), "category")
        table = next(in_pieces(file, [*used, *as_text], as_text, None))
        columns, notes = learn_columns(table.select(used), file, chosen=options.get("columns") is not None)
        maker = cls(columns, used, key, truth, writing(options))
        part, filled, _ = maker._part(file, table, 0)
        return maker, part._replace(notes=[*file.notes, *notes, *filled])

    def parts(self, path: Path, rows: int | None) -> Iterator[Part]:
        file = open_table(path, self.options)
        check_needed(file, [*self.columns.names, *_some(self.id)])
        wanted = [name for name in [*self.shown, *_some(self.id, self.truth)] if name in file.names]
        notes = [*file.notes]
        if unknown := [name for name in file.names if name not in wanted]:
            notes.append(f"columns that the recipe does not know are ignored: {listed(unknown)}.")
        start = 0
        kinds = {name: self.columns.kinds.get(name, "category") for name in wanted}  # what they were, or text
        for table in in_pieces(file, wanted, kinds, rows):
            part, filled, new = self._part(file, table, start)
            yield part._replace(notes=[*notes, *filled, *new])
            start, notes = start + table.num_rows, []

    def _part(self, file: TableFile, table: Any, start: int) -> tuple[Part, list[str], list[str]]:
        """The items of a table, what was filled in, and what the recipe does not know."""
        features, filled, new = self.columns.apply(table, file, start)
        shown = RowFaces(table.select([name for name in self.shown if name in table.column_names]))
        ids, truth = ids_and_truth(file, table, start, self.id, self.truth)
        return Part(ids, features, shown, truth, []), filled, new

    def state(self) -> State:
        facts = {"shown": self.shown, "id": self.id, "truth": self.truth, "options": self.options}
        return facts | {"columns": self.columns.state()}, {}

    @classmethod
    def from_state(cls, facts: dict[str, Any], arrays: dict[str, Array]) -> TableMaker:
        columns = Columns.from_state(facts["columns"])
        return cls(columns, facts["shown"], facts["id"], facts["truth"], facts["options"])


def ids_and_truth(
    file: TableFile, table: Any, start: int, id: str | None, truth: str | None
) -> tuple[list[str], Array | None]:
    """The ids of a table's rows, and their labels if there are any."""
    if id is None:
        ids = row_numbers(start, start + table.num_rows)
    else:
        ids = check_ids(
            [name and name.strip() for name in texts_of(table.column(id))], lambda row: file.place(start + row)
        )
    labels = labels_of(texts_of(table.column(truth))) if truth in table.column_names else None
    return ids, labels


def _used_columns(file: TableFile, options: Options) -> list[str]:
    """The columns to read, in the file's order, without id and label."""
    for parameter in ("columns", "exclude"):
        if isinstance(options.get(parameter), str):
            raise InvalidParameterError(f"{parameter}={options[parameter]!r} must be a list: [{options[parameter]!r}]")
        check_names(file, options.get(parameter) or (), parameter)
    for parameter in ("id", "truth"):
        check_names(file, _some(options.get(parameter)), parameter)
    left = {*(options.get("exclude") or ()), *_some(options.get("id"), options.get("truth"))}
    wanted = options.get("columns") or file.names
    used = [name for name in file.names if name in wanted and name not in left]
    if not used:
        raise InvalidDataError(f"{file.path.name} has no column left to learn from; it has {listed(file.names, 20)}")
    return used


def _some(*names: str | None) -> list[str]:
    """The names that are given, each once."""
    return list(dict.fromkeys(name for name in names if name is not None))


def writing(options: Options) -> Options:
    """What the user said about how files are written; it holds for later files too."""
    return {name: options[name] for name in ("encoding", "separator", "sheet") if options.get(name) is not None}
