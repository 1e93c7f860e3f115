"""X that stays on disk: every kind gives the rows that are there, once, and in the order that is asked for."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pairmargin import MaxMarginClustering, ParquetRows, sample_pairs, stored
from pairmargin.exceptions import InvalidDataError, InvalidParameterError
from pairmargin.stored import is_stored, shuffled_pieces, stored_rows

X = np.arange(600, dtype=np.float32).reshape(120, 5) / 7


class Chunked:
    """What an HDF5 dataset or a Zarr array looks like, without the packages; counts what is read."""

    def __init__(self, array: Any, chunks: tuple[int, int] | None = (16, 5)) -> None:
        self.array, self.chunks, self.shape, self.dtype, self.n_read = array, chunks, array.shape, array.dtype, 0

    def __getitem__(self, rows: slice) -> Any:
        assert isinstance(rows, slice)  # they are slow at anything else
        self.n_read += len(self.array[rows])
        return self.array[rows]


REAL = ["hdf5", "hdf5 whole", "hdf5 packed", "zarr", "zarr 2", "zarr shards"]


def real(kind: str, array: Any, folder: Path) -> Any:
    """An HDF5 dataset or a Zarr array in a file."""
    rows, columns = 16, array.shape[1]
    if kind.startswith("hdf5"):
        form = {"hdf5": {"chunks": (rows, columns)}, "hdf5 whole": {}}
        packed = {"chunks": (rows, 2), "compression": "gzip", "shuffle": True}
        file = pytest.importorskip("h5py").File(folder / "x.h5", "w")
        return file.create_dataset("points", data=array, **form.get(kind, packed))
    form = {"zarr": {}, "zarr 2": {"zarr_format": 2}, "zarr shards": {"shards": (4 * rows, columns)}}
    place = pytest.importorskip("zarr").create_array(
        folder / "x.zarr", shape=array.shape, chunks=(rows, columns), dtype=array.dtype, **form[kind]
    )
    place[:] = array
    return place


@pytest.fixture(params=["memmap", "npy", "chunked", "contiguous", "parquet", "folder", *REAL])
def source(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(stored, "RUN", 400)  # bytes: a run has 20 rows
    if request.param == "memmap":
        X.tofile(tmp_path / "x.bin")
        return np.memmap(tmp_path / "x.bin", dtype=np.float32, mode="r", shape=X.shape)
    if request.param == "npy":
        np.save(tmp_path / "x.npy", X)
        return np.load(tmp_path / "x.npy", mmap_mode="r")
    if request.param in ("chunked", "contiguous"):
        return Chunked(X, (16, 5) if request.param == "chunked" else None)
    if request.param in REAL:
        return real(request.param, X, tmp_path)
    pytest.importorskip("pyarrow")
    if request.param == "parquet":
        write_parquet(tmp_path / "x.parquet", X)
        return ParquetRows(tmp_path / "x.parquet")
    for part in range(3):
        write_parquet(tmp_path / f"{part}.parquet", X[40 * part : 40 * part + 40])
    return ParquetRows(tmp_path)


def write_parquet(path: Path, array: Any, names: str = "abcde") -> None:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table(dict(zip(names, array.T, strict=True))), path, row_group_size=25)


def test_rows_are_those_of_the_array(source: Any) -> None:
    rows = stored_rows(source)
    assert rows.shape == X.shape
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(np.concatenate([rows.read(run) for run in rows.runs()]), X)
    some = np.array([119, 3, 3, 57, 0, 24, 25])
    np.testing.assert_array_equal(rows.take(some), X[some])
    np.testing.assert_array_equal(rows.read(slice(10, 95)), X[10:95])


def test_pieces_have_every_row_once_in_another_order(source: Any) -> None:
    numbers, values = zip(
        *shuffled_pieces(stored_rows(source), slice(0, 120), 30, np.random.default_rng(0)), strict=True
    )
    every = np.concatenate(numbers)
    assert sorted(every) == list(range(120))
    assert every.tolist() != list(range(120))
    np.testing.assert_array_equal(np.concatenate(values), X[every])
    assert max(map(len, numbers)) <= 30 + 40


def test_a_run_is_read_once_however_many_rows_it_has() -> None:
    chunked = Chunked(X)
    stored_rows(chunked).take(np.array([1, 17, 2, 18, 1]))
    assert chunked.n_read == 120  # all are in one run of 2 MB
    assert is_stored(chunked)
    assert not is_stored(X)


def clouds(n: int = 300) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=n)
    return (rng.normal(size=(n, 4)) + 8 * np.eye(4)[y]).astype(np.float32), y


@pytest.mark.parametrize("kind", ["memmap", "chunked", "parquet", "hdf5 packed", "zarr shards"])
def test_a_model_learns_from_disk_what_it_learns_from_memory(kind: str, tmp_path: Path) -> None:
    points, y = clouds()
    if kind == "memmap":
        np.save(tmp_path / "x.npy", points)
        there: Any = np.load(tmp_path / "x.npy", mmap_mode="r")
    elif kind == "chunked":
        there = Chunked(points, (32, 4))
    elif kind in REAL:
        there = real(kind, points, tmp_path)
    else:
        pytest.importorskip("pyarrow")
        write_parquet(tmp_path / "x.parquet", points, "abcd")
        there = ParquetRows(tmp_path / "x.parquet")
    pairs = sample_pairs(y, 40, random_state=0)
    model = MaxMarginClustering(3, (6,), batch_size=50, max_iter=3, pretrain_epochs=2, random_state=0)
    model.fit(there, pairs=pairs)
    assert len(set(zip(model.labels_, y, strict=True))) == 3
    for method in (model.predict, model.decision_function, model.transform, model.cluster_proba):
        np.testing.assert_allclose(method(there), method(points), rtol=1e-5, atol=1e-5)
    with pytest.raises(InvalidDataError, match="3 features, but MaxMarginClustering is expecting 4"):
        model.predict(Chunked(points[:, :3]))


@pytest.mark.parametrize("kind", ["hdf5", "zarr"])
@pytest.mark.parametrize("dtype", ["int16", "uint8", "bool", "float16", "float32", "float64", ">f4", ">f8"])
def test_all_kinds_of_numbers(kind: str, dtype: str, tmp_path: Path) -> None:
    array = (np.arange(60).reshape(20, 3) % 7).astype(dtype)
    rows = stored_rows(real(kind, array, tmp_path))
    found = rows.take(np.array([17, 3]))
    assert found.dtype == rows.dtype == (np.float64 if dtype in ("float64", ">f8") else np.float32)
    np.testing.assert_array_equal(found, array[[17, 3]].astype(float))


def test_a_file_that_is_closed_is_refused(tmp_path: Path) -> None:
    points = real("hdf5", X, tmp_path)
    points.file.close()
    for ask in (MaxMarginClustering(3, batch_size=50).fit, stored_rows):
        with pytest.raises(InvalidDataError, match="closed HDF5 file; keep it open"):
            ask(points)


@pytest.mark.parametrize("kind", ["hdf5", "zarr"])
def test_a_chunk_that_is_damaged_is_named_with_its_rows(kind: str, tmp_path: Path) -> None:
    points = real({"hdf5": "hdf5 packed"}.get(kind, kind), X, tmp_path)
    if kind == "hdf5":
        place, size = points.id.get_chunk_info(0).byte_offset, points.id.get_chunk_info(0).size
        points.file.close()
        with (tmp_path / "x.h5").open("r+b") as file:
            file.seek(place)
            file.write(b"x" * size)
        points = pytest.importorskip("h5py").File(tmp_path / "x.h5")["points"]
    else:
        for path in (tmp_path / "x.zarr").rglob("c/0/0"):
            path.write_bytes(b"x")
    with pytest.raises(InvalidDataError, match=r"rows 0 to 119 of X cannot be read \(.*\); write the file again"):
        stored_rows(points).take(np.array([1, 50]))


def test_a_memory_map_of_a_file_that_was_cut_is_refused(tmp_path: Path) -> None:
    X.tofile(tmp_path / "x.bin")
    there = np.memmap(tmp_path / "x.bin", dtype=np.float32, mode="r", shape=X.shape)
    (tmp_path / "x.bin").write_bytes(b"")
    for each in (there, there[10:, :2], np.asarray(there)):
        with pytest.raises(InvalidDataError, match=r"x\.bin has 0 bytes, but the memory map needs 2,400"):
            stored_rows(each)


def test_a_file_that_is_cut_while_it_is_read_is_refused(tmp_path: Path) -> None:
    X.tofile(tmp_path / "x.bin")
    rows = stored_rows(np.memmap(tmp_path / "x.bin", dtype=np.float32, mode="r", shape=X.shape))
    rows.read(slice(0, 5))
    (tmp_path / "x.bin").write_bytes(b"")
    for look in (lambda: rows.read(slice(5, 10)), lambda: rows.take(np.array([7]))):
        with pytest.raises(InvalidDataError, match=r"x\.bin has 0 bytes, but the memory map needs 2,400"):
            look()


def test_infinity_on_disk_is_found_with_its_row() -> None:
    points = clouds()[0].copy()
    points[217, 2] = np.nan
    with pytest.raises(InvalidDataError, match="NaN at row 217, column 2"):
        MaxMarginClustering(3, batch_size=50).fit(Chunked(points))


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (Chunked(np.zeros(4), (4,)), r"shape \(4,\)"),  # type: ignore[arg-type]
        (Chunked(np.array([["a"]])), "not numbers"),
        (Chunked(np.zeros((0, 3))), "at least one row"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused(array: Any, words: str) -> None:
    with pytest.raises(InvalidDataError, match=words):
        MaxMarginClustering(2, batch_size=2).fit(array)


def test_parquet_files_must_fit_together(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    write_parquet(tmp_path / "1.parquet", X)
    write_parquet(tmp_path / "2.parquet", X, "abcdx")
    with pytest.raises(InvalidDataError, match=r"2\.parquet has no column 'e'; it has a, b, c, d, x"):
        ParquetRows(tmp_path)
    with pytest.raises(InvalidParameterError, match="no column 'z'"):
        ParquetRows(tmp_path / "1.parquet", columns=["z"])
    (tmp_path / "2.parquet").write_bytes(b"PAR1")
    with pytest.raises(InvalidDataError, match=r"2\.parquet is damaged or no Parquet file"):
        ParquetRows(tmp_path)
    with pytest.raises(InvalidDataError, match="no Parquet file at"):
        ParquetRows(tmp_path / "nothing.parquet")


def test_parquet_columns_in_another_order_are_found_by_name(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    write_parquet(tmp_path / "1.parquet", X)
    write_parquet(tmp_path / "2.parquet", X[:, ::-1], "edcba")
    np.testing.assert_array_equal(ParquetRows(tmp_path).take([3, 123]), X[[3, 3]])
    np.testing.assert_array_equal(ParquetRows(tmp_path, columns=["d", "a"]).take([3, 123]), X[[3, 3]][:, [3, 0]])


@pytest.mark.parametrize(("later", "words"), [(["x"], "holds string, not numbers"), ([None], "NaN at row 1, column 0")])
def test_parquet_columns_that_change_their_kind(later: list[Any], words: str, tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"a": [1.0]}), tmp_path / "1.parquet")
    kind = pa.float64() if later == [None] else pa.string()
    parquet.write_table(pa.table({"a": pa.array(later, kind)}), tmp_path / "2.parquet")
    with pytest.raises(InvalidDataError, match=words):
        MaxMarginClustering(1, batch_size=1).fit(ParquetRows(tmp_path))


def test_parquet_columns_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"a": [1.0], "name": ["x"]}), tmp_path / "x.parquet")
    with pytest.raises(InvalidDataError, match=r"column 'name' of x\.parquet holds string"):
        ParquetRows(tmp_path / "x.parquet")
    assert ParquetRows(tmp_path / "x.parquet", columns=["a"]).shape == (1, 1)


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_what_was_read_of_a_map_is_given_back_and_read_again(tmp_path, mode, monkeypatch):
    monkeypatch.setattr("pairmargin.stored.MOST_HELD", 5_000)
    whole = np.random.default_rng(0).random((3000, 4), dtype=np.float32)
    np.save(tmp_path / "x.npy", whole)
    mapped = np.load(tmp_path / "x.npy", mmap_mode=mode)
    changed = mode != "r"
    if changed:
        mapped[7] = whole[7] = 5.0  # in the file, or in memory alone, where it must not be forgotten
    rows = stored_rows(mapped[:2500])
    monkeypatch.setattr("pairmargin.stored.RUN", 1_600)
    held = [rows.read(run) for run in rows.runs()]
    np.testing.assert_array_equal(np.concatenate(held), whole[:2500])
    np.testing.assert_array_equal(rows.take(np.array([2400, 7, 3])), whole[[2400, 7, 3]])
    np.testing.assert_array_equal(np.concatenate(held), whole[:2500])


def test_rows_that_are_not_there_are_refused(tmp_path: Path) -> None:
    write_parquet(tmp_path / "few.parquet", np.arange(15.0).reshape(3, 5))
    rows = ParquetRows(tmp_path / "few.parquet")
    for row in (-1, 3):
        with pytest.raises(InvalidDataError, match=f"there is no row {row}; X has 3 rows, counted from 0"):
            rows.take([0, row])


def test_a_row_group_that_is_damaged_is_named_with_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "large.parquet"
    write_parquet(path, np.random.default_rng(0).normal(size=(3000, 5)))
    rows = ParquetRows(path)
    content = bytearray(path.read_bytes())
    content[4:400] = bytes(396)
    path.write_bytes(content)
    with pytest.raises(InvalidDataError, match=r"rows 0 to \d+ of X cannot be read \(Couldn't deserialize"):
        rows.read(slice(0, 10))


def test_an_array_with_chunks_of_many_sizes_is_in_memory() -> None:
    """Such as dask's."""
    assert not is_stored(SimpleNamespace(shape=(10, 2), dtype=np.dtype(float), chunks=((5, 5), (2,))))
    assert is_stored(SimpleNamespace(shape=(10, 2), dtype=np.dtype(float), chunks=(5, 2)))


def test_a_warm_fit_that_is_refused_leaves_the_model_as_it_was() -> None:
    X, y = clouds()
    model = MaxMarginClustering(2, n_init=1, batch_size=100, warm_start=True, neighbour_weight=0.0, random_state=0)
    model.fit(X, pairs=sample_pairs(y, 20, random_state=0))
    before = {name: np.copy(value) for name, value in vars(model).items() if isinstance(value, np.ndarray)}
    bad = X.copy()
    bad[7, 1] = np.nan
    with pytest.raises(InvalidDataError, match="NaN at row 7, column 1"):
        model.fit(Chunked(bad), pairs=sample_pairs(y, 20, random_state=0))
    for name, value in before.items():
        np.testing.assert_array_equal(getattr(model, name), value, err_msg=name)


def test_names_of_columns_are_known_after_a_fit_in_batches() -> None:
    X, y = clouds()
    frame = pd.DataFrame(X).rename(columns="c{}".format)
    model = MaxMarginClustering(2, n_init=1, batch_size=100, random_state=0)
    model.fit(frame, pairs=sample_pairs(y, 20, random_state=0))
    assert model.feature_names_in_.tolist() == list(frame)
    with pytest.raises(InvalidDataError, match="feature names should match"):
        model.predict(frame[frame.columns[::-1]])
