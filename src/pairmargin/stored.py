"""X that stays where it is: memory maps, HDF5, Zarr and Parquet, of which a few rows at a time are read.

All of them can be read in *runs*, pieces of neighbouring rows that cost about as much as a few of their rows: a chunk
of an HDF5 or Zarr array, a row group of a Parquet file, some megabytes of a memory map.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .exceptions import InvalidDataError, InvalidParameterError
from .extras import need

Array = NDArray[Any]

RUN = 2**21  # bytes that are read together, at least
MOST_HELD = 2**26  # bytes of a memory map that are held at a time, as far as the system is asked
AROUND = 2**16  # bytes that the system reads around one row


class StoredRows(Protocol):
    """Rows that are read when they are needed."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]

    def runs(self) -> list[slice]:
        """All rows, in pieces that are read together."""

    def read(self, run: slice) -> Array:
        """The rows of a run, float32 or float64."""

    def take(self, rows: Array) -> Array:
        """Some rows, in the order that is asked for."""


def is_stored(X: Any) -> bool:
    """Whether X is an array that is on disk: an HDF5 dataset, a Zarr array, `ParquetRows`."""
    return isinstance(X, ParquetRows) or (
        not isinstance(X, np.ndarray)
        and (_is_closed(X) or (all(hasattr(X, name) for name in ("shape", "dtype")) and _is_chunked(X)))
    )


def _is_chunked(X: Any) -> bool:
    """Whether X has chunks of one size each, as arrays on disk have; those of others, such as dask's, are in memory."""
    chunks = getattr(X, "chunks", ())
    return hasattr(X, "chunks") and (chunks is None or all(isinstance(size, Integral) for size in chunks))


def _is_closed(X: Any) -> bool:
    """Whether X is a dataset of an HDF5 file that was closed; such a one has no shape any more."""
    return type(X).__module__.startswith("h5py.") and not X


def stored_rows(X: Any) -> StoredRows:
    """X as rows that are read when they are needed, if it is an array of two dimensions, on disk or not."""
    if isinstance(X, ParquetRows):
        return X
    if _is_closed(X):
        raise InvalidDataError("X is a dataset of a closed HDF5 file; keep it open while X is in use")
    if len(X.shape) != 2:
        raise InvalidDataError(f"Expected 2D array, but X has the shape {tuple(X.shape)}; give it rows and columns")
    return MappedRows(X) if isinstance(X, np.ndarray) else ChunkedRows(X)


def _working_type(dtype: Any) -> np.dtype[Any]:
    """What numbers of a type are worked with as."""
    if np.dtype(dtype).kind not in "fiub":
        raise InvalidDataError(f"X holds {dtype}, not numbers; convert it to float32")
    is_wide = np.dtype(dtype).kind == "f" and np.dtype(dtype).itemsize >= 8
    return np.dtype(np.float64 if is_wide else np.float32)


def _cut(n: int, length: int) -> list[slice]:
    return [slice(start, min(start + length, n)) for start in range(0, n, length)]


class MappedRows:
    """An array or a memory map: the system reads what is looked at.

    It would keep all of it as long as nobody else needs the memory, so what was looked at is given back now and then.
    """

    def __init__(self, array: Array) -> None:
        _check_length(array)
        self.array, self.shape, self.dtype = array, (array.shape[0], array.shape[1]), _working_type(array.dtype)
        self._held = 0  # bytes looked at since the last were given back

    def runs(self) -> list[slice]:
        row = max(self.shape[1] * self.array.dtype.itemsize, 1)
        return _cut(self.shape[0], max(RUN // row, 1))

    def read(self, run: slice) -> Array:
        _check_length(self.array)
        return self._held_for(np.asarray(self.array[run], dtype=self.dtype), self.array[run].nbytes)

    def take(self, rows: Array) -> Array:
        _check_length(self.array)
        return self._held_for(np.asarray(self.array[rows], dtype=self.dtype), len(rows) * AROUND)

    def _held_for(self, values: Array, n_bytes: int) -> Array:
        """The values that so much was looked at for; if it is much by now, it is given back.

        Nothing is lost: whoever looks at it again reads it again from the file.
        """
        self._held += n_bytes
        if self._held > MOST_HELD:
            mapped = _mapped(self.array)
            if getattr(mapped, "mode", "c") != "c" and hasattr(mmap, "MADV_DONTNEED"):  # "c" may hold changes
                mapped.base.madvise(mmap.MADV_DONTNEED)
            self._held = 0
        return values


def _mapped(array: Array) -> Any:
    """Of slices and views, what was mapped."""
    base: Any = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    return base


def _check_length(array: Array) -> None:
    """Refuse a map of a file that has become shorter: to look at what is missing would end the process."""
    base = _mapped(array)
    name = getattr(base, "filename", None)
    if name is None:
        return
    needed = base.offset + base.nbytes
    there = os.path.getsize(name) if os.path.exists(name) else 0
    if there < needed:
        raise InvalidDataError(
            f"{Path(name).name} has {there:,} bytes, but the memory map needs {needed:,}; write the file again"
        )


class ChunkedRows:
    """An HDF5 dataset or a Zarr array: whole chunks are read and unpacked."""

    def __init__(self, array: Any) -> None:
        self.array, self.shape, self.dtype = array, (array.shape[0], array.shape[1]), _working_type(array.dtype)

    def runs(self) -> list[slice]:
        together = getattr(self.array, "shards", None) or getattr(self.array, "chunks", None) or (1, 1)
        row = max(self.shape[1] * np.dtype(self.array.dtype).itemsize, 1)
        return _cut(self.shape[0], together[0] * max(RUN // (together[0] * row), 1))

    def read(self, run: slice) -> Array:
        with _damage_named(run):
            return np.asarray(self.array[run], dtype=self.dtype)

    def take(self, rows: Array) -> Array:
        return _by_runs(self, rows)


@contextmanager
def _damage_named(run: slice) -> Iterator[None]:
    """Say which rows of a damaged file cannot be read."""
    try:
        yield
    except (OSError, RuntimeError, ValueError) as error:  # of h5py, of zarr and its codecs, of pyarrow
        why = " ".join(str(error).split())
        raise InvalidDataError(
            f"rows {run.start} to {run.stop - 1} of X cannot be read ({why}); write the file again"
        ) from error


class ParquetRows:
    """The columns of a Parquet file, or of all Parquet files of a folder, as an array that stays on disk.

    Parameters
    ----------
    path : path-like
        A file, or a folder whose ``.parquet`` files follow one another by name and have the same columns.
    columns : list of str, optional
        The columns to use, all of them numbers; None takes all.

    Attributes
    ----------
    shape : tuple of int
    columns : list of str
    dtype : dtype
        float32, or float64 if all columns are.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> from pairmargin import ParquetRows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "points.parquet")
    ...     pq.write_table(pa.table({"a": [1.0, 2.0, 3.0], "b": [4.0, 5.0, 6.0]}), path)
    ...     rows = ParquetRows(path, columns=["b"])
    ...     rows.shape, rows.take([2, 0]).ravel().tolist()
    ((3, 1), [6.0, 4.0])
    """

    def __init__(self, path: str | os.PathLike[str], columns: list[str] | None = None) -> None:
        arrow, parquet = need("pyarrow", "reading Parquet"), need("pyarrow.parquet", "reading Parquet")
        self.path = Path(path)
        paths = sorted(self.path.glob("*.parquet")) if self.path.is_dir() else [self.path]
        if not paths or not self.path.exists():
            raise InvalidDataError(f"there is no Parquet file at {self.path}; check the path")
        self._groups: list[tuple[Any, int]] = []  # file and number of each row group
        self._starts = [0]
        self.columns: list[str] = []
        self.dtype: np.dtype[Any] = np.dtype(np.float32)
        for each in paths:
            try:
                file = parquet.ParquetFile(each, memory_map=True)
            except (arrow.ArrowException, OSError) as error:
                raise InvalidDataError(f"{each.name} is damaged or no Parquet file ({error}); save it again") from error
            self._check_schema(each, file.schema_arrow, columns)
            for group in range(file.num_row_groups):
                self._groups.append((file, group))
                self._starts.append(self._starts[-1] + file.metadata.row_group(group).num_rows)
        self.shape = (self._starts[-1], len(self.columns))

    def runs(self) -> list[slice]:
        """All rows, in the row groups of the files."""
        return [slice(a, b) for a, b in zip(self._starts[:-1], self._starts[1:], strict=True) if b > a]

    def read(self, run: slice) -> Array:
        """The rows of a run, of shape (·, n_columns)."""
        found = np.empty((run.stop - run.start, self.shape[1]), dtype=self.dtype)
        for (file, group), start, stop in zip(self._groups, self._starts[:-1], self._starts[1:], strict=True):
            first, last = max(start, run.start), min(stop, run.stop)
            if first < last:
                with _damage_named(slice(first, last)):
                    table = file.read_row_group(group, columns=self.columns)
                for place, column in enumerate(table.columns):
                    found[first - run.start : last - run.start, place] = column.to_numpy()[first - start : last - start]
        return found

    def take(self, rows: ArrayLike) -> Array:
        """Some rows by their numbers, in the order that is asked for."""
        return _by_runs(self, np.asarray(rows))

    def _check_schema(self, path: Path, schema: Any, columns: list[str] | None) -> None:
        """Learn the columns of the first file, and refuse others that do not have them."""
        types = need("pyarrow", "reading Parquet").types
        kinds = dict(zip(schema.names, schema.types, strict=True))
        wanted = self.columns or list(columns or schema.names)
        for name in wanted:
            if name not in kinds:
                raise (InvalidDataError if self.columns else InvalidParameterError)(
                    f"{path.name} has no column {name!r}; it has {', '.join(list(kinds)[:20])}"
                )
            if not (types.is_integer(kinds[name]) or types.is_floating(kinds[name]) or types.is_boolean(kinds[name])):
                raise InvalidDataError(
                    f"column {name!r} of {path.name} holds {kinds[name]}, not numbers; leave it out with columns=[…]"
                )
        if not self.columns:
            self.columns = wanted
            self.dtype = np.dtype(np.float64 if all(types.is_float64(kinds[name]) for name in wanted) else np.float32)


def _by_runs(source: StoredRows, rows: Array) -> Array:
    """Some rows of what is best read in runs: each run that has some of them, once."""
    beyond = (rows < 0) | (rows >= source.shape[0])
    if beyond.any():
        raise InvalidDataError(f"there is no row {rows[beyond][0]}; X has {source.shape[0]} rows, counted from 0")
    found = np.empty((len(rows), source.shape[1]), dtype=source.dtype)
    order = np.argsort(rows, kind="stable")
    rising = rows[order]
    for run in source.runs():
        first, last = np.searchsorted(rising, (run.start, run.stop))
        if first < last:
            found[order[first:last]] = source.read(run)[rising[first:last] - run.start]
    return found


def shuffled_pieces(
    source: StoredRows, part: slice, n_rows: int, rng: np.random.Generator
) -> Iterator[tuple[Array, Array]]:
    """The rows of a part once, in a random order of runs: shuffled pieces of about ``n_rows``, with their numbers."""
    cut = [slice(max(run.start, part.start), min(run.stop, part.stop)) for run in source.runs()]
    runs = [run for run in cut if run.start < run.stop]
    waiting: list[slice] = []
    size = 0
    for k in rng.permutation(len(runs)):
        waiting.append(runs[k])
        size += runs[k].stop - runs[k].start
        if size >= n_rows:
            yield _shuffled(source, waiting, rng)
            waiting, size = [], 0
    if waiting:
        yield _shuffled(source, waiting, rng)


def _shuffled(source: StoredRows, runs: list[slice], rng: np.random.Generator) -> tuple[Array, Array]:
    numbers = np.concatenate([np.arange(run.start, run.stop) for run in runs])
    values = np.concatenate([source.read(run) for run in runs])
    order = rng.permutation(len(numbers))
    return numbers[order], values[order]
