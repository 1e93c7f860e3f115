"""Columns of a table as features: what was decided for each of them, and doing it again to other rows.

A table of plain numbers is left as it is: the estimator looks at the columns themselves to choose its scale (pixels,
principal components, anything else), and standardised columns would hide that. As soon as other columns are among
them, numbers and dates are brought to mean 0 and variance 1. Two rows that differ in a category are then √2 apart in
it, just as two rows typically are in a number: no column drowns the others.

Features are float32, at half the memory, unless some column's values are so large beside its spread that this would
lose them; what is standardised is so in float64 first and can never be lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..exceptions import InvalidDataError
from .parts import Array, Count, counted, listed

LEVELS = 30  # most levels of a category that get a feature of their own
RARE = 0.01  # share of the rows below which a level counts as rare
COVERED = 0.5  # least share of the rows that the kept levels of a category must cover
LOST = 1e-4  # largest error of float32, as a share of a column's standard deviation
ROWS = 2**16  # rows that are transformed at a time: they stay in the processor's cache
DAY = 86_400e6  # in microseconds
FloatArray = NDArray[np.float64]


class Source(Protocol):
    """The file that a table is from, for messages."""

    def place(self, row: int) -> str:
        """Where a row is."""


@dataclass(frozen=True)
class Column:
    """What becomes of one column."""

    name: str
    kind: str  # "number", "flag", "date", "zoned date", "time" or "category"
    fill: float = 0.0  # for a missing number
    shift: float = 0.0
    scale: float = 1.0
    levels: tuple[str, ...] = ()  # with a feature each
    other: bool = False  # whether there is a feature for all other levels
    missing: bool = False  # whether there is one for rows without a value

    @property
    def features(self) -> list[str]:
        """Their names."""
        if self.kind != "category":
            return [self.name]
        levels = [*self.levels, *["(other)"] * self.other, *["(missing)"] * self.missing]
        return [f"{self.name} = {level}" for level in levels]


@dataclass(frozen=True)
class Columns:
    """What becomes of the columns of a table."""

    columns: tuple[Column, ...]
    dtype: str

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def features(self) -> list[str]:
        return [feature for column in self.columns for feature in column.features]

    @property
    def kinds(self) -> dict[str, str]:
        """What the columns of a text table are to be read as."""
        return {column.name: column.kind for column in self.columns}

    def apply(self, table: Any, file: Source, start: int) -> tuple[Array, list[str], list[str]]:
        """The features of a table whose first row is number ``start`` of the file, what was filled in, what is new."""
        features = np.zeros((table.num_rows, len(self.features)), dtype=self.dtype)
        filled, unknown = Counter[str](), dict[str, Counter[str]]()
        first = 0
        for batch in table.select(self.names).to_batches(max_chunksize=ROWS):
            block, place = features[first : first + batch.num_rows], 0
            for column, values in zip(self.columns, batch.columns, strict=True):
                width = len(column.features)
                if column.kind == "category":
                    unknown.setdefault(column.name, Counter()).update(
                        _spread(column, values, block[:, place:][:, :width])
                    )
                else:
                    filled[column.name] += _scale(column, values, block[:, place], file, start + first)
                place += width
            first += batch.num_rows
        return features, list(self._filled(filled)), list(self._unknown(unknown))

    def _filled(self, filled: Counter[str]) -> Iterator[str]:
        for column in self.columns:
            if number := filled[column.name]:
                yield Count.of(f"{column.name}: ", number, "missing value", f" filled in with {_in_words(column)}")

    def _unknown(self, unknown: dict[str, Counter[str]]) -> Iterator[str]:
        for column in self.columns:
            if levels := unknown.get(column.name):
                total, most = sum(levels.values()), levels.most_common(1)[0][0]
                become = "counted as (other)" if column.other and most != "(missing)" else "all zeros"
                end = f", such as {most}: {become}."
                yield Count.of(f"{column.name}: ", total, "value", " of no level of the recipe", end=end)

    def state(self) -> dict[str, Any]:
        return {"dtype": self.dtype, "columns": [asdict(column) for column in self.columns]}

    @classmethod
    def from_state(cls, facts: dict[str, Any]) -> Columns:
        columns = [Column(**{**column, "levels": tuple(column["levels"])}) for column in facts["columns"]]
        return cls(tuple(columns), facts["dtype"])


# Doing it


def _scale(column: Column, values: Any, out: Array, file: Source, start: int) -> int:
    """Write a column of numbers to ``out``; how many were missing."""
    numbers = _numbers(values, column.kind, column.name, file, start)
    missing = np.isnan(numbers)
    numbers = np.where(missing, column.fill, numbers)
    with np.errstate(over="ignore"):
        out[:] = (numbers - column.shift) / column.scale if (column.shift, column.scale) != (0, 1) else numbers
    _check_finite(out, numbers, column.name, file, start)
    return int(missing.sum())


def _check_finite(features: Array, numbers: FloatArray, name: str, file: Source, start: int) -> None:
    """Refuse features that are infinite, showing the numbers that they come from."""
    if not np.isfinite(features).all():
        row = int(np.argmin(np.isfinite(features)))
        raise InvalidDataError(
            f"{file.place(start + row)} has {numbers[row]:g} for {name!r}, too large to calculate with; "
            "correct it, or leave the cell empty"
        )


def _spread(column: Column, values: Any, out: Array) -> Counter[str]:
    """Write a category to ``out`` as zeros and ones; the levels that the recipe does not know, with their numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = _as_text(values)
    code = pc.index_in(texts, value_set=pa.array(column.levels, pa.string())).fill_null(-1)
    code = code.to_numpy(zero_copy_only=False)
    missing = np.asarray(texts.is_null())
    unknown = (code < 0) & ~missing
    if column.other:
        code = np.where(unknown, len(column.levels), code)
    if column.missing:
        code = np.where(missing, len(column.features) - 1, code)
    rows = np.flatnonzero(code >= 0)
    out[rows, code[rows]] = 1
    found = Counter(texts.filter(pa.array(unknown)).to_pylist()) if unknown.any() else Counter[str]()
    if missing.any() and not column.missing:
        found["(missing)"] += int(missing.sum())
    return found


def _numbers(values: Any, kind: str, name: str, file: Source, start: int) -> FloatArray:
    """Numbers, flags, dates and times as float64, with NaN where there is none."""
    import pyarrow as pa

    try:
        if kind in ("date", "zoned date"):
            numbers = values.cast(pa.timestamp("us", tz=getattr(values.type, "tz", None)), safe=False)
            return _float(numbers.cast(pa.int64())) / DAY
        if kind == "time":
            return _float(values.cast(pa.time64("us")).cast(pa.int64())) / 1e6
        return _float(values)
    except (pa.ArrowException, ValueError) as error:
        raise InvalidDataError(
            f"{name!r} should be a {kind}, but from {file.place(start)} on it is {values.type} ({error}); "
            "correct the file, or read it with read_items for a recipe of its own"
        ) from error


def _float(values: Any) -> FloatArray:
    import pyarrow as pa

    if pa.types.is_boolean(values.type):
        values = values.cast(pa.uint8())
    numbers: FloatArray = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers


def _as_text(values: Any) -> Any:
    """Values of any simple type as text."""
    import pyarrow as pa

    return values if values.type == pa.string() else values.cast(pa.string())


def texts_of(values: Any) -> list[str | None]:
    """A column as a list of text, whole numbers without a point, None where there is none."""
    import pyarrow as pa

    if pa.types.is_floating(values.type):
        return [None if v is None else str(int(v)) if v.is_integer() else str(v) for v in values.to_pylist()]
    texts: list[str | None] = _as_text(values).to_pylist()
    return texts


# Deciding it


class Spread(NamedTuple):
    """How the numbers of a column lie."""

    mean: float
    deviation: float
    size: float  # of the largest, without its sign

    @property
    def needs_double(self) -> bool:
        """Whether float32 would round them by too much, or to nothing, or to infinity."""
        rounding = float(np.finfo(np.float32).eps) / 2 * self.size
        return rounding > LOST * self.deviation or not 1e-30 < self.size < 1e30


def learn_columns(table: Any, file: Any, *, chosen: bool) -> tuple[Columns, list[str]]:
    """Decide what becomes of each column of a table, and say so; ``chosen`` if the user named the columns."""
    kept, left, notes = list[Column](), dict[str, list[str]](), list[str]()
    spread = dict[str, Spread]()
    for name in table.column_names:
        kind = _kind(table.column(name).type)
        if kind == "category":
            column, reason = _learn_category(name, table.column(name), notes)
        elif kind:
            column, reason = _learn_number(name, kind, table.column(name), file, spread)
            if column and not chosen and _counts_rows(table.column(name)):
                column, reason = None, "it counts the rows; name it in columns= to use it"
        else:
            column, reason = None, f"{table.column(name).type} cannot be a feature"
        if column:
            kept.append(column)
        else:
            left.setdefault(reason, []).append(name)
    notes = [*_dates(kept), *notes, *(f"left out: {listed(names)} ({reason})." for reason, names in left.items())]
    if not kept:
        raise InvalidDataError(f"{file.path.name} has no column to learn from; {' '.join(notes)}")
    return _on_one_scale(kept, spread, notes)


def _kind(kind: Any) -> str | None:
    """What a column of this type is taken for."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return _kind(kind.value_type)
    if types.is_boolean(kind):
        return "flag"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind):
        return "number"
    if types.is_timestamp(kind) or types.is_date(kind):
        return "zoned date" if getattr(kind, "tz", None) else "date"
    if types.is_time(kind):
        return "time"
    if types.is_string(kind) or types.is_large_string(kind) or getattr(types, "is_string_view", types.is_string)(kind):
        return "category"
    return None


def _learn_number(
    name: str, kind: str, values: Any, file: Source, spread: dict[str, Spread]
) -> tuple[Column | None, str]:
    """A column of numbers with its median, or why it is left out."""
    numbers = _numbers(values.combine_chunks(), kind, name, file, 0)
    known = numbers[~np.isnan(numbers)]
    if len(known) == 0:
        return None, "without a single value"
    low, high = known.min(), known.max()
    if low == high and len(known) == len(numbers):
        return None, "the same in every row"
    if low == high:
        return None, "the same wherever there is a value"
    _check_finite(np.nan_to_num(numbers, nan=0, posinf=np.inf, neginf=-np.inf), numbers, name, file, 0)
    size = float(max(abs(low), abs(high)))
    fill = float(np.median(known)) if kind != "flag" else float(known.mean() > 0.5)
    filled = np.where(np.isnan(numbers), fill, numbers) / size  # so that no square overflows
    spread[name] = Spread(float(filled.mean()) * size, float(filled.std()) * size or 1.0, size)
    return Column(name, kind, fill), ""


def _counts_rows(values: Any) -> bool:
    """Whether a column is 0, 1, 2, … from any start."""
    from pyarrow import types

    if not types.is_integer(values.type) or values.null_count or len(values) < 3:
        return False
    return bool((np.diff(values.to_numpy()) == 1).all())


def _learn_category(name: str, values: Any, notes: list[str]) -> tuple[Column | None, str]:
    """A column of text with the levels that get a feature, or why it is left out."""
    import pyarrow.compute as pc

    table = pc.value_counts(_as_text(values.combine_chunks())).to_pylist()
    counts = {entry["values"]: entry["counts"] for entry in table}
    missing = counts.pop(None, 0)
    n_rows, n_known = len(values), sum(counts.values())
    if len(counts) + bool(missing) < 2:
        return None, "the same in every row" if counts else "without a single value"
    if len(counts) > LEVELS and (word := _word_among_numbers(counts)):
        return None, f"numbers, but for {word!r}; correct it, or leave the cell empty"
    if len(counts) == n_known > 2:
        return None, "text that is different in every row; pass text=COLUMN to learn from it"
    levels = sorted(counts, key=lambda level: (-counts[level], level))
    common = [level for level in levels[:LEVELS] if counts[level] >= RARE * n_rows]
    if len(levels) - len(common) == 1:
        common = levels  # one rare level is no group
    if sum(counts[level] for level in common) < COVERED * n_known:
        return None, "text with too many different values; pass text=COLUMN to learn from it"
    rare = len(levels) - len(common)
    column = Column(name, "category", levels=tuple(sorted(common)), other=rare > 0, missing=missing > 0)
    grouped = f", its {rare:,} rare ones together as (other)" if rare else ""
    none = f", {counted(missing, 'row')} without a value as (missing)" if missing else ""
    notes.append(
        f"{name}: {counted(len(levels), 'level')} as {len(column.features)} features of 0 or 1{grouped}{none}."
    )
    return column, ""


def _word_among_numbers(counts: dict[str, int]) -> str | None:
    """The most frequent value that is no number, if most of them are numbers."""
    words = {value: count for value, count in counts.items() if not _is_number(value)}
    return max(words, key=lambda word: words[word]) if words and len(words) < len(counts) / 2 else None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _dates(kept: list[Column]) -> Iterator[str]:
    """What is said of dates and times."""
    if dates := [column.name for column in kept if column.kind.endswith("date")]:
        yield f"dates as numbers of days: {listed(dates)}."
    if times := [column.name for column in kept if column.kind == "time"]:
        yield f"times of day as numbers of seconds: {listed(times)}."


def _on_one_scale(kept: list[Column], spread: dict[str, Spread], notes: list[str]) -> tuple[Columns, list[str]]:
    """Standardise numbers and dates if there is anything but plain numbers, and choose the precision."""
    lost = list[str]()
    if all(column.kind == "number" for column in kept):
        lost = [column.name for column in kept if spread[column.name].needs_double]
    else:
        scaled = [column.name for column in kept if column.kind not in ("flag", "category")]
        kept = [
            replace(column, shift=spread[column.name].mean, scale=spread[column.name].deviation)
            if column.name in scaled
            else column
            for column in kept
        ]
        if scaled:
            notes.append(f"brought to mean 0 and variance 1, to go with the other columns: {listed(scaled)}.")
    if lost:
        notes.append(f"kept in double precision, since single would lose too much of them: {listed(lost)}.")
    features = Columns(tuple(kept), "float64" if lost else "float32")
    notes.insert(0, f"{counted(len(kept), 'column')} used, {counted(len(features.features), 'feature')}.")
    return features, notes


def _in_words(column: Column) -> str:
    """What a missing number is filled in with."""
    if column.kind == "flag":
        return f"the more frequent value, {bool(column.fill)}"
    if column.kind.endswith("date"):
        day = np.datetime64(round(column.fill * DAY), "us").astype("datetime64[s]")
        return f"the median, {day}"
    return f"the median, {column.fill:g}"
