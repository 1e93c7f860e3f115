"""What `Pairs` accepts and what it refuses; every message names the answer, the value found and the way out."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from ..exceptions import InvalidPairsError, InvalidParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    IntArray = NDArray[np.int64]
    FloatArray = NDArray[np.float64]
    BoolArray = NDArray[np.bool_]
    Label = Callable[[int], str]  # the position of an answer → how a message names it

MAX_PAIRS = 50_000_000  # 1.65 GB as arrays; wanting more is nearly always a slip
_ANSWERS = dict.fromkeys(("true", "same", "yes", "1", "+1", "1.0"), True)
_ANSWERS |= dict.fromkeys(("false", "different", "no", "0", "-1", "0.0", "-1.0"), False)


def _array(values: Any, name: str) -> NDArray[Any]:
    """`values` as an array, in which nothing but numbers was converted, so that messages show what was given."""
    if not hasattr(values, "__array__"):
        try:
            values = list(values)  # sets, zips and generators too
        except TypeError:
            raise InvalidPairsError(f"{name} should be a list or an array, not {values!r}") from None
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths
        return np.fromiter(values, dtype=object)
    return array if array.dtype.kind in "biuf" else np.asarray(values, dtype=object)


def as_numbers(array: NDArray[Any]) -> NDArray[Any]:
    """`array` as numbers; what is none becomes NaN, which no check lets pass."""
    if array.dtype.kind in "biuf":
        return array
    numbers = [value if isinstance(value, Real) else np.nan for value in array.ravel()]
    return np.array(numbers, dtype=np.float64).reshape(array.shape)


def column(values: Any, name: str, length: int | None = None) -> NDArray[Any]:
    """`values` as an array of shape (length,)."""
    array = _array(values, name)
    if array.ndim != 1:
        hint = "for two lists of pairs use Pairs.from_lists(must_link, cannot_link)"
        raise InvalidPairsError(f"{name} has shape {array.shape}; give one value for each pair ({hint})")
    if length is not None and len(array) != length:
        raise InvalidPairsError(f"there are {length} pairs but {len(array)} values in {name}; give one for each pair")
    return array


def reject(bad: BoolArray, given: NDArray[Any], label: Label, problem: str) -> None:
    """Refuse the first of the `given` where `bad` holds."""
    if bad.any():
        k = int(np.argmax(bad))
        value = given[k].tolist() if hasattr(given[k], "tolist") else given[k]
        raise InvalidPairsError(f"{label(k)} {tuple(value) if isinstance(value, list) else value!r} {problem}")


def check_index(index: Any, label: Label) -> IntArray:
    """Two different row numbers a pair, (m, 2)."""
    given = _array(index, "index")
    if len(given) == 0:
        return np.empty((0, 2), dtype=np.int64)
    if given.shape != (len(given), 2):
        bad = np.array([np.shape(row) != (2,) for row in given])
        reject(bad, given, label, "is not a pair; give two row numbers (i, j) for each")
    # Booleans are numbers to numpy, but as row numbers they are a slip.
    numbers = np.full(given.shape, np.nan) if given.dtype.kind == "b" else as_numbers(given)
    whole = (np.abs(numbers) < 2**63) & (numbers == np.floor(numbers))
    reject(~whole.all(axis=1), given, label, "should be two whole numbers; give the numbers of the rows")
    i, j = numbers.astype(np.int64).T
    reject((i < 0) | (j < 0), given, label, "has a negative row number; count the rows from 0")
    reject(i == j, given, label, "pairs a row with itself; leave it out")
    return np.column_stack((i, j))


def check_same(same: Any, length: int) -> BoolArray:
    """One True or False a pair, (m,)."""
    given = column(same, "same", length)
    numbers = as_numbers(given)
    hint = "for +1 and -1 use Pairs.from_signed, for words Pairs.from_frame"
    reject((numbers != 0) & (numbers != 1), given, "same[{}] =".format, f"is neither True nor False; {hint}")
    return numbers.astype(bool)


def rows_of_points(points: NDArray[Any], X: Any) -> IntArray:
    """The rows of X that the points (m, 2, d) of pairs are, (m, 2)."""
    if X is None:
        raise InvalidPairsError(f"pairs has shape {points.shape}: these are points; pass X to look up their rows")
    data = np.asarray(X)
    if data.ndim != 2 or points.shape[1:] != (2, data.shape[1]):
        raise InvalidPairsError(
            f"pairs has shape {points.shape} but X has shape {data.shape}; give two points of X's columns for each pair"
        )
    kind = np.result_type(data, points)
    rows: dict[bytes, list[int]] = {}
    for row, values in enumerate(data.astype(kind) + 0):  # + 0 makes 0.0 of −0.0, whose bytes differ
        rows.setdefault(values.tobytes(), []).append(row)
    index = np.empty(points.shape[:2], dtype=np.int64)
    for (k, end), _ in np.ndenumerate(index):
        found = rows.get((points[k, end].astype(kind) + 0).tobytes(), [])
        if len(found) != 1:
            problem = f"is rows {found[0]} and {found[1]} of X" if found else "is no row of X, to the last bit"
            raise InvalidPairsError(f"pairs[{k}][{end}] {problem}; give row numbers, of shape (m, 2), instead")
        index[k, end] = found[0]
    return index


def check_weight(weight: Any, length: int, label: Label) -> FloatArray:
    """One positive weight a pair, (m,)."""
    if weight is None:
        return np.ones(length)
    given = column(weight, "weight", length)
    numbers = as_numbers(given).astype(np.float64)
    bad = ~(np.isfinite(numbers) & (numbers > 0))
    reject(bad, given, label, "is no weight; give a finite number above 0, or leave the pair out")
    return numbers


def check_size(n_pairs: int, subject: str, way_out: str) -> None:
    if n_pairs > MAX_PAIRS:
        raise InvalidPairsError(f"{subject} {n_pairs} pairs, more than {MAX_PAIRS}; {way_out}")


def check_test_size(test_size: float, n_pairs: int) -> int:
    """How many of `n_pairs` to hold out, leaving at least one on both sides."""
    if n_pairs < 2:
        raise InvalidPairsError(f"{n_pairs} pairs cannot be split in two; at least 2 are needed")
    if isinstance(test_size, Integral) and not isinstance(test_size, bool):
        if not 1 <= test_size < n_pairs:
            raise InvalidParameterError(f"test_size should be between 1 and {n_pairs - 1} pairs, not {test_size!r}")
        return int(test_size)
    if not isinstance(test_size, Real) or isinstance(test_size, bool) or not 0 < test_size < 1:
        raise InvalidParameterError(
            f"test_size should be a number of pairs or a share between 0 and 1, not {test_size!r}"
        )
    return min(max(1, round(n_pairs * float(test_size))), n_pairs - 1)


def check_columns(found: Sequence[object], where: str) -> None:
    missing = [name for name in ("a", "b", "same") if name not in found]
    if missing:
        raise InvalidPairsError(f"{where} has no column {', '.join(missing)}; its columns are {found}")


def parse_same(given: NDArray[Any], label: Label) -> BoolArray:
    """Booleans, numbers or words as answers."""
    answers = [_ANSWERS.get(str(value).strip().lower()) for value in given.tolist()]
    bad = np.array([answer is None for answer in answers], dtype=bool)
    reject(bad, given, label, "is no answer; use true or false, same or different, yes or no, 1 or 0, +1 or -1")
    return np.array(answers, dtype=bool)


def number(text: str | None) -> int | float | str | None:
    """`text` as a number, or as it is for the checks to refuse."""
    if text is not None and "_" in text:  # Python reads 1_0 as 10, but it is an id
        return text
    for kind in (int, float):
        try:
            return kind(text)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            continue
    return text


def read_table(path: str | os.PathLike[str], name: str) -> tuple[list[int], dict[str, list[Any]]]:
    """The line numbers and the columns of a CSV file."""
    with open(path, newline="", encoding="utf-8-sig") as file:  # spreadsheets like to write a byte order mark
        reader = csv.DictReader(file)
        try:
            found = list(reader.fieldnames or ())
            rows = [(reader.line_num, row) for row in reader]
        except (csv.Error, UnicodeDecodeError) as error:
            raise InvalidPairsError(f"{name} cannot be read after line {reader.line_num}: {error}") from error
    check_columns(found, name)
    columns = [column for column in ("a", "b", "same", "weight") if column in found]
    return [line for line, _ in rows], {column: [number(row[column]) for _, row in rows] for column in columns}


def label_codes(y: Any) -> IntArray:
    """Labels of any kind as 0, 1, …, with −1 for unknown."""
    # numpy would turn a list such as ["cat", None, -1] into text.
    array = np.asarray(y) if hasattr(y, "dtype") else np.array(y, dtype=object)
    if array.ndim != 1:
        raise InvalidPairsError(f"y has shape {array.shape}; give one label for each row")
    if array.dtype.kind == "O":
        seen: dict[object, int] = {}
        return np.array([seen.setdefault(v, len(seen)) if _is_known(v) else -1 for v in array], dtype=np.int64)
    known = array == array  # NaN and NaT are not equal to themselves
    if array.dtype.kind in "iuf":
        known &= array != -1
    codes = np.full(len(array), -1)
    codes[known] = np.unique(array[known], return_inverse=True)[1]
    return codes


def _is_known(label: object) -> bool:
    # NaN is not equal to itself, and pandas' NA is neither equal nor unequal.
    equal = label == label
    return label is not None and isinstance(equal, (bool, np.bool_)) and bool(equal) and label != -1
