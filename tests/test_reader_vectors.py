"""Vectors in files: shapes, types, several arrays in one file, and what is refused."""

from __future__ import annotations

import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp

from pairmargin import InvalidDataError, InvalidParameterError, MissingPackageError, read_items

X = np.random.default_rng(0).normal(size=(9, 4))


@pytest.fixture
def save(tmp_path):
    def call(array, name="x.npy"):
        np.save(tmp_path / name, array, allow_pickle=True)
        return tmp_path / name

    return call


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("float32", "float32"),
        ("float64", "float64"),
        ("float16", "float32"),
        ("uint8", "float32"),
        ("bool", "float32"),
        ("int32", "float64"),  # float32 holds whole numbers up to 2²⁴ only
        (">f8", "float64"),  # torch knows no other order of bytes
    ],
)
def test_numbers_keep_their_values(save, given, found):
    array = (X * 10).astype(given)
    items = read_items(save(array))
    assert items.features.dtype == found
    assert np.array_equal(items.features, array)
    assert items.ids == [str(k) for k in range(9)]
    assert items.notes == ["9 vectors of 4 numbers, as they are."]


def test_an_array_on_disk_stays_there(save):
    items = read_items(save(X))
    assert isinstance(items.features, np.memmap)
    assert not items.features.flags.writeable
    assert [piece.features.shape for piece in items.recipe.batches(save(X), rows=4)] == [(4, 4), (4, 4), (1, 4)]


def test_faces_are_the_first_numbers(save):
    items = read_items(save(np.arange(20.0).reshape(2, 10)))
    assert items.faces[1] == "10, 11, 12, 13, 14, 15, 16, 17, …"
    assert items.faces[:1] == ["0, 1, 2, 3, 4, 5, 6, 7, …"]
    assert read_items(save(X[:, :1])).faces[0] == f"{X[0, 0]:.4g}"


def test_sparse_arrays_stay_sparse(tmp_path):
    for form in (sp.csr_array, sp.csc_matrix, sp.coo_array):
        sp.save_npz(tmp_path / "x.npz", form(np.eye(6)))
        items = read_items(tmp_path / "x.npz")
        assert sp.issparse(items.features)
        assert items.features.format == "csr"
        assert items.faces[2] == "0, 0, 1, 0, 0, 0"
        pieces = [piece.features.toarray() for piece in items.recipe.batches(tmp_path / "x.npz", rows=4)]
        assert np.array_equal(np.concatenate(pieces), np.eye(6))


def test_several_arrays_in_one_file(tmp_path):
    path = tmp_path / "x.npz"
    names = np.array([f"n{k}" for k in range(9)])
    np.savez(path, data=X, label=np.arange(9) % 3, name=names)
    items = read_items(path, truth="label", id="name")
    assert np.array_equal(items.features, X)
    assert items.truth.tolist() == [0, 1, 2] * 3
    assert items.ids == names.tolist()
    assert [piece.ids for piece in items.recipe.batches(path, rows=8)] == [names[:8].tolist(), ["n8"]]
    np.savez(path, data=X, more=2 * X)
    assert np.array_equal(read_items(path, array="more").features, 2 * X)
    with pytest.raises(InvalidDataError, match=r"holds data \(9, 4\), more \(9, 4\); pass array=NAME"):
        read_items(path)
    with pytest.raises(InvalidParameterError, match=r"array: there is no array 'mor' \(did you mean 'more'\?\)"):
        read_items(path, array="mor")


def test_matlab_files(tmp_path):
    path = tmp_path / "x.mat"
    scipy.io.savemat(path, {"fea": sp.csc_array(X), "gnd": np.arange(9)[:, None]})
    items = read_items(path, truth="gnd")
    assert np.array_equal(items.features.toarray(), X)
    assert items.truth.tolist() == list(range(9))
    path.write_bytes(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + b"\x89HDF")
    with pytest.raises(InvalidDataError, match=r"x\.mat is a Matlab file of version 7\.3; save it with -v7"):
        read_items(path)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (X[:, 0], r"shape \(9,\), but needs one row for each item; for items of one number use X\.reshape\(-1, 1\)"),
        (X.reshape(9, 2, 2), r"shape \(9, 2, 2\), .* make rows of it with X\.reshape\(len\(X\), -1\)"),
        (np.array(3.0), r"shape \(\)"),
        (np.zeros((0, 3)), r"shape \(0, 3\): there is nothing in it"),
        (np.where(X > 1.2, np.nan, X), r"x\.npy has nan at row \d, column \d; fill it in"),
        (np.where(X[7, 2] == X, -np.inf, X), r"x\.npy has -inf at row 7, column 2"),
        (np.array([["a", "b"]]), r"holds <U1, not numbers"),
        (X + 1j, "holds complex128, not numbers"),
        (np.array([{}, {}], dtype=object), "holds Python objects, which only pickle could read"),
        (np.zeros(3, dtype=[("a", float)]), "not numbers"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused(save, array, message):
    with pytest.raises(InvalidDataError, match=message):
        read_items(save(array))


def test_nan_in_a_later_piece_is_named_by_its_row(save):
    recipe = read_items(save(X)).recipe
    bad = X.copy()
    bad[8, 1] = np.nan
    with pytest.raises(InvalidDataError, match=r"y\.npy has nan at row 8, column 1"):
        list(recipe.batches(save(bad, "y.npy"), rows=3))


def test_nan_in_a_sparse_array_is_named(tmp_path):
    bad = np.eye(5)
    bad[3, 3] = np.nan
    sp.save_npz(tmp_path / "x.npz", sp.csr_array(bad))
    with pytest.raises(InvalidDataError, match=r"nan at row 3, column 3"):
        read_items(tmp_path / "x.npz")


@pytest.mark.parametrize("form", ["csr", "csc", "bsr", "coo"])
@pytest.mark.parametrize("index", [5, -1])
def test_indices_outside_of_a_sparse_array_are_refused(tmp_path, form, index):
    good = sp.coo_array(np.eye(5)).asformat(form)
    where = {"col": good.col, "row": good.row} if form == "coo" else {"indices": good.indices, "indptr": good.indptr}
    first = next(iter(where))
    where[first] = np.array([0, 1, index, 3, 4], dtype=np.int32)  # SciPy would write wherever it says
    np.savez(tmp_path / "x.npz", format=form, shape=good.shape, data=good.data, **where)
    with pytest.raises(InvalidDataError, match=r"x\.npz is damaged .*ind"):
        read_items(tmp_path / "x.npz")


def test_indices_outside_of_a_sparse_matrix_of_matlab_are_refused(tmp_path):
    bad = sp.csc_array(np.eye(5))
    bad.indices[2] = 5
    scipy.io.savemat(tmp_path / "x.mat", {"x": bad})
    with pytest.raises(InvalidDataError, match=r"x\.mat is damaged .*ind"):
        read_items(tmp_path / "x.mat")


def test_indices_outside_of_a_sparse_matrix_of_cells_are_refused(tmp_path, monkeypatch):
    h5py, bad = pytest.importorskip("h5py"), sp.csr_array(np.eye(5))
    bad.indices[2] = 5
    cells = SimpleNamespace(X=bad, obs=pd.DataFrame(index=list("abcde")), obs_names=list("abcde"))
    monkeypatch.setitem(sys.modules, "anndata", SimpleNamespace(read_h5ad=lambda path: cells))
    h5py.File(tmp_path / "x.h5ad", "w").close()
    with pytest.raises(InvalidDataError, match=r"x\.h5ad is damaged .*ind"):
        read_items(tmp_path / "x.h5ad")


class Trap:
    """Would run code if it were unpickled."""

    def __reduce__(self):
        return exec, ("raise SystemExit('unpickled')",)


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.mat"])
def test_nothing_is_ever_unpickled(tmp_path, name):
    (tmp_path / name).write_bytes(pickle.dumps(Trap()))
    with pytest.raises(InvalidDataError, match=r"is damaged or no"):
        read_items(tmp_path / name)


def test_objects_in_an_archive_are_refused(tmp_path):
    np.savez(tmp_path / "x.npz", data=np.array([Trap()], dtype=object))
    with pytest.raises(InvalidDataError, match="holds Python objects"):
        read_items(tmp_path / "x.npz")


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.mat"])
@pytest.mark.parametrize("content", [b"", b"junk", b"PK\x03\x04junk", b"\x93NUMPYjunk"])
def test_damaged_files_are_refused(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidDataError, match="is damaged or no"):
        read_items(tmp_path / name)


def test_later_vectors_must_be_as_long(save):
    recipe = read_items(save(X)).recipe
    with pytest.raises(InvalidDataError, match=r"y\.npy has vectors of 3 numbers, but the recipe was made with 4"):
        recipe.read(save(X[:, :3], "y.npy"))


def test_ids_and_labels_must_be_as_many(tmp_path):
    np.savez(tmp_path / "x.npz", data=X, label=np.arange(8))
    with pytest.raises(InvalidDataError, match=r"has 9 vectors but 8 values in 'label'"):
        read_items(tmp_path / "x.npz", truth="label")
    np.savez(tmp_path / "x.npz", data=X, name=np.array(list("abcdefgha")))
    with pytest.raises(InvalidDataError, match=r"the id 'a' comes twice: row 0 of x\.npz and row 8 of x\.npz"):
        read_items(tmp_path / "x.npz", id="name")


def test_cells_of_h5ad(tmp_path):
    path = tmp_path / "x.h5ad"
    try:
        import anndata
    except ModuleNotFoundError:
        path.write_bytes(b"?")
        with pytest.raises(
            MissingPackageError, match=r'reading x\.h5ad needs anndata, .* run: pip install "pairmargin\[h5ad\]"'
        ):
            read_items(path)
        pytest.skip("anndata is not installed")
    names, genes, kinds = (pd.Index(list(letters), dtype=object) for letters in ("wxyz", "1234", "ab"))  # no Arrow
    obs = pd.DataFrame({"kind": pd.Categorical.from_codes([0, 1, 0, 1], kinds)}, index=names)
    anndata.AnnData(sp.csr_matrix(np.eye(4)), obs=obs, var=pd.DataFrame(index=genes)).write_h5ad(path)
    items = read_items(path, truth="kind")
    assert items.ids == list("wxyz")
    assert items.truth.tolist() == list("abab")
    assert np.array_equal(items.features.toarray(), np.eye(4))
    import h5py

    with h5py.File(path, "r+") as file:
        file["X/indices"][2] = 4
    with pytest.raises(InvalidDataError, match=r"x\.h5ad is damaged"):
        read_items(path)
