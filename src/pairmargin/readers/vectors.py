"""Vectors in files, one row for each item: ``.npy``, ``.npz``, ``.mat`` and ``.h5ad``.

They keep their own precision: a memory map of float64 costs no memory, a copy in float32 would. Nothing is unpickled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
import scipy.io
import scipy.sparse as sp

from ..enough_memory import check_memory
from ..exceptions import InvalidDataError, InvalidParameterError, NotEnoughMemoryError, unknown_name
from ..extras import need
from .parts import UNPACKED, Array, Options, Part, State, check_ids, check_unpacked, labels_of, row_numbers, spans

ROWS = 2**14  # rows that are looked at at a time
SHOWN = 8  # numbers of a vector that a person is shown
Content = tuple[Any, Array | None, Array | None]  # features, ids, labels


@dataclass(frozen=True)
class VectorMaker:
    """Rows of an array as items."""

    width: int
    array: str | None
    id: str | None
    truth: str | None
    kind = "vector"

    @classmethod
    def learn(cls, path: Path, options: Options) -> tuple[VectorMaker, Part]:
        """Nothing is learned but how long the vectors are."""
        names = options.get("array"), options.get("id"), options.get("truth")
        content = _content(path, *names)
        maker = cls(content[0].shape[1], *names)
        part = next(maker._cut(path, content, None))
        n_items, width = part.features.shape
        return maker, part._replace(notes=[f"{n_items:,} vectors of {width:,} numbers, as they are.", *part.notes])

    def parts(self, path: Path, rows: int | None) -> Iterator[Part]:
        content = _content(path, self.array, self.id, self.truth, again=True)
        if content[0].shape[1] != self.width:
            raise InvalidDataError(
                f"{path.name} has vectors of {content[0].shape[1]} numbers, but the recipe was made with {self.width}; "
                "give vectors as long as those, or read it with read_items for a recipe of its own"
            )
        return self._cut(path, content, rows)

    def _cut(self, path: Path, content: Content, rows: int | None) -> Iterator[Part]:
        features, ids, truth = content
        if ids is not None:
            ids = np.array(
                check_ids([str(name) for name in ids], lambda row: f"row {row} of {path.name}"), dtype=object
            )
        for span in spans(features.shape[0], rows):
            chosen = _as_floats(features if rows is None else _some_rows(features, span))
            check_finite(chosen, path.name, span.start)
            names = row_numbers(span.start, span.stop) if ids is None else ids[span].tolist()
            labels = None if truth is None else truth[span]
            yield Part(names, chosen, VectorFaces(chosen), labels, [])

    def state(self) -> State:
        return {"width": self.width, "array": self.array, "id": self.id, "truth": self.truth}, {}

    @classmethod
    def from_state(cls, facts: dict[str, Any], arrays: dict[str, Array]) -> VectorMaker:
        return cls(facts["width"], facts["array"], facts["id"], facts["truth"])


class VectorFaces(Sequence[str]):
    """The first numbers of each vector; written out only when looked at."""

    def __init__(self, features: Any) -> None:
        self.features = features

    def __len__(self) -> int:
        return int(self.features.shape[0])

    @overload
    def __getitem__(self, where: int) -> str: ...

    @overload
    def __getitem__(self, where: slice) -> list[str]: ...

    def __getitem__(self, where: int | slice) -> str | list[str]:
        if isinstance(where, slice):
            return [self[k] for k in range(*where.indices(len(self)))]
        row = range(len(self))[where]
        numbers = _dense(self.features[[row], :SHOWN]).ravel()
        return ", ".join(f"{number:.4g}" for number in numbers) + (", …" if self.features.shape[1] > SHOWN else "")


def _some_rows(features: Any, span: slice) -> Any:
    """Some rows; of a memory map a copy, by a map of its own, so that no more than these rows stay in memory."""
    if not isinstance(features, np.memmap):
        return features[span]
    where = str(features.filename), features.dtype
    order: Literal["C", "F"] = "C" if features.flags.c_contiguous else "F"
    again = np.memmap(*where, mode="r", offset=features.offset, shape=features.shape, order=order)
    return np.array(again[span])


def _dense(features: Any) -> Array:
    return np.asarray(features.toarray() if hasattr(features, "toarray") else features)


def _csr(array: Any) -> Any:
    """A sparse array of any form as CSR, any other as it is; one whose indices lie outside of it is refused."""
    if hasattr(array, "check_format"):
        array.check_format(full_check=True)  # SciPy would write wherever an index says
    return sp.csr_array(array) if hasattr(array, "tocsr") else array


def _as_floats(features: Any) -> Any:
    """Floats as they are; whole numbers as float32 where it holds all numbers of their type, else as float64."""
    if features.dtype in (np.float32, np.float64):
        return features
    return features.astype(np.float32 if features.dtype.itemsize <= 2 else np.float64)


def check_finite(features: Any, name: str, start: int) -> None:
    """Refuse NaN and infinity, saying where; a memory map is looked at in pieces."""
    for span in spans(features.shape[0], ROWS):
        block = features[span]
        if np.isfinite(block.data if hasattr(block, "indptr") else block).all():
            continue
        dense = _dense(block)
        row, column = np.argwhere(~np.isfinite(dense))[0].tolist()
        raise InvalidDataError(
            f"{name} has {dense[row, column]} at row {start + span.start + row}, column {column}; "
            "fill it in (sklearn.impute), or leave the row out"
        )


# One function for each ending: features, ids or None, labels or None


def _content(path: Path, array: str | None, id: str | None, truth: str | None, again: bool = False) -> Content:
    """What a file holds, checked but for NaN."""
    arrays = VECTORS[path.suffix.lower()](path)
    if again and truth not in arrays:
        truth = None  # new files need no labels
    for parameter, name in (("array", array), ("id", id), ("truth", truth)):
        if name is not None and name not in arrays:
            raise InvalidParameterError(f"{parameter}: {unknown_name('array', name, arrays)} in {path.name}")
    features = arrays[array or _only(path, {name: each for name, each in arrays.items() if name not in (id, truth)})]
    _check_shape(path, features)
    ids, labels = (None if name is None else np.asarray(arrays[name]).ravel() for name in (id, truth))
    for name, values in ((id, ids), (truth, labels)):
        if values is not None and len(values) != features.shape[0]:
            raise InvalidDataError(
                f"{path.name} has {features.shape[0]} vectors but {len(values)} values in {name!r}; give one each"
            )
    if ids is None and "obs_names" in arrays:
        ids = arrays["obs_names"]  # cells have names
    return features, ids, labels


def _only(path: Path, arrays: dict[str, Any]) -> str:
    """The name of the array that must be meant: the only one, or the only one with several columns."""
    for candidates in (list(arrays), [name for name, each in arrays.items() if each.ndim == 2 and min(each.shape) > 1]):
        if len(candidates) == 1:
            return candidates[0]
    if "X" in arrays and path.suffix.lower() == ".h5ad":
        return "X"
    held = ", ".join(f"{name} {each.shape}" for name, each in arrays.items()) or "no array"
    raise InvalidDataError(f"{path.name} holds {held}; pass array=NAME to say which one has the vectors")


def _check_shape(path: Path, features: Any) -> None:
    """Refuse what is not a table of numbers."""
    if features.dtype.kind not in "biuf":
        raise InvalidDataError(f"{path.name} holds {features.dtype}, not numbers; save an array of numbers")
    if features.ndim != 2:
        way_out = {0: "save an array", 1: "for items of one number use X.reshape(-1, 1)"}
        raise InvalidDataError(
            f"{path.name} has shape {features.shape}, but needs one row for each item; "
            + way_out.get(features.ndim, "make rows of it with X.reshape(len(X), -1)")
        )
    if 0 in features.shape:
        raise InvalidDataError(
            f"{path.name} has shape {features.shape}: there is nothing in it; save an array with rows"
        )


def _npy(path: Path) -> dict[str, Any]:
    with _refusals(path):
        with path.open("rb") as file:
            np.lib.format.read_magic(file)  # for it alone, NumPy would try archives and pickles too
        return {"array": np.load(path, mmap_mode="r", allow_pickle=False)}


def _npz(path: Path) -> dict[str, Any]:
    with _refusals(path), path.open("rb") as file:
        content = np.load(file, allow_pickle=False)
        if isinstance(content, np.ndarray):
            raise ValueError("it is a .npy file")
        check_unpacked(path)
        if {"format", "shape", "data"} <= set(content.files):
            file.seek(0)
            return {"array": _csr(sp.load_npz(file))}
        return {name: content[name] for name in content.files}


def _mat(path: Path) -> dict[str, Any]:
    with _refusals(path):
        content = scipy.io.loadmat(path)
        arrays = {name: each for name, each in content.items() if not name.startswith("__") and hasattr(each, "dtype")}
        return {name: _csr(each) for name, each in arrays.items()}


def _h5ad(path: Path) -> dict[str, Any]:
    anndata = need("anndata", f"reading {path.name}")
    with _refusals(path):
        _check_datasets(path)
        content = anndata.read_h5ad(path)
        features = _csr(content.X)
    columns = {str(name): labels_of(list(map(str, content.obs[name]))) for name in content.obs.columns}
    return {**columns, "X": features, "obs_names": np.asarray(content.obs_names, dtype=object)}


def _check_datasets(path: Path) -> None:
    """Refuse a small HDF5 file that unfolds to more than the memory holds."""
    h5py, sizes = need("h5py", f"reading {path.name}"), list[int]()
    with h5py.File(path) as file:
        file.visititems(lambda name, each: sizes.append(getattr(each, "nbytes", 0)))
    check_memory(sum(sizes), f"{path.name}, unpacked,", UNPACKED)


@contextmanager
def _refusals(path: Path) -> Iterator[None]:
    """What NumPy, SciPy and anndata say of files they cannot read, in a line of ours."""
    try:
        yield
    except NotEnoughMemoryError:
        raise
    except NotImplementedError as error:
        raise InvalidDataError(f"{path.name} is a Matlab file of version 7.3; save it with -v7") from error
    except Exception as error:  # a damaged file can trip them anywhere
        if "Python objects" in str(error) or "Object arrays" in str(error):
            raise InvalidDataError(
                f"{path.name} holds Python objects, which only pickle could read, and pickle can run a stranger's "
                "code; save an array of numbers"
            ) from error
        why = "" if "pickle" in str(error) else f" ({error})"  # NumPy takes whatever it does not know for a pickle
        raise InvalidDataError(f"{path.name} is damaged or no {path.suffix} file{why}; save it again") from error


VECTORS: dict[str, Callable[[Path], dict[str, Any]]] = {".npy": _npy, ".npz": _npz, ".mat": _mat, ".h5ad": _h5ad}
