"""Files of strangers that lie about themselves or unfold to more than the memory holds: refused in a line, at once."""

from __future__ import annotations

import json
import random
import struct
import sys
import zipfile
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from pairmargin import (
    InvalidDataError,
    MaxMarginClustering,
    ModelFileError,
    NotEnoughMemoryError,
    PairMarginError,
    enough_memory,
    load,
    load_recipe,
    read_items,
    read_pairs,
    save,
)

X = np.random.default_rng(0).normal(size=(40, 3))


@pytest.fixture
def little(monkeypatch):
    """A system that has no more than a megabyte."""
    monkeypatch.setattr(enough_memory, "available", lambda: 10**6)


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> bytes:
    """The bytes of a good model."""
    path = tmp_path_factory.mktemp("model") / "m.safetensors"
    save(MaxMarginClustering(2, (4,), max_iter=2, pretrain_epochs=1, n_init=1, random_state=0).fit(X), path)
    return path.read_bytes()


# Small files that unfold


def npz(path: Path) -> None:
    np.savez_compressed(path, X=np.zeros((1000, 300)))


def xlsx(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", "<row/>" * 400_000)


def parquet(path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    column = arrow.array(np.zeros(400_000))
    parquet.write_table(arrow.table({"a": column, "b": column}), path)


def h5ad(path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file.create_dataset("X", shape=(1000, 300), dtype="f8", compression="gzip")


@pytest.mark.usefixtures("little")
@pytest.mark.parametrize("write", [npz, xlsx, parquet, h5ad], ids=lambda each: each.__name__)
def test_a_small_file_that_unfolds_to_more_than_the_memory(write, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "anndata", ModuleType("anndata"))  # it does not come to be used
    path = tmp_path / f"bomb.{write.__name__}"
    write(path)
    assert path.stat().st_size < 50_000
    told = rf"bomb\.{write.__name__}, unpacked, needs at least .* of memory, but 1 MB are available; look whether"
    with pytest.raises(NotEnoughMemoryError, match=told):
        read_items(path)


def test_an_archive_that_says_less_than_it_holds(tmp_path):
    path = tmp_path / "liar.npz"
    npz(path)
    content = bytearray(path.read_bytes())
    place = content.rindex(b"PK\x01\x02") + 24  # of the unpacked size in the list of the archive
    content[place : place + 4] = struct.pack("<I", 200)
    path.write_bytes(content)
    with pytest.raises(InvalidDataError, match=r"liar\.npz is damaged"):
        read_items(path)


def test_entities_that_unfold_in_a_sheet(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["a", "b"])
    book.active.append([1, 2])
    book.save(tmp_path / "good.xlsx")
    names = "abcdefghij"
    entities = '<!ENTITY a "' + "x" * 1000 + '">'
    entities += "".join(f'<!ENTITY {new} "{f"&{old};" * 10}">' for old, new in pairwise(names))
    with (
        zipfile.ZipFile(tmp_path / "good.xlsx") as good,
        zipfile.ZipFile(tmp_path / "laughs.xlsx", "w", zipfile.ZIP_DEFLATED) as bad,
    ):
        for each in good.namelist():
            content = good.read(each)
            if each.endswith("sheet1.xml"):
                text = content.decode().replace("<v>1</v>", "<v>&j;</v>")
                head, mark, rest = text.rpartition("<worksheet")
                content = f"{head}<!DOCTYPE worksheet [{entities}]>{mark}{rest}".encode()
            bad.writestr(each, content)
    with pytest.raises(InvalidDataError, match=r"laughs\.xlsx is damaged or no Excel file"):
        read_items(tmp_path / "laughs.xlsx")


# Files that lie


@pytest.mark.parametrize("shape", ["(1000000000000, 8)", "(9, 9)", "(-1, 3)", "(3,)*9"])
def test_a_npy_file_whose_header_lies(shape, tmp_path):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    content = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + bytes(64)
    (tmp_path / "liar.npy").write_bytes(content)
    with pytest.raises(InvalidDataError, match=r"liar\.npy is damaged or no \.npy file"):
        read_items(tmp_path / "liar.npy")


def test_a_line_that_does_not_end(tmp_path, monkeypatch):
    monkeypatch.setattr("pairmargin.readers.csv_files.BLOCK", 2**16)
    path = tmp_path / "line.csv"
    path.write_text("a,b,same\n" + "1," * 2**17)
    for read in (read_items, read_pairs):
        with pytest.raises(PairMarginError, match=r"line\.csv has a row of more than .*; is a quote not closed\?"):
            read(path)


@pytest.mark.parametrize(
    "header",
    [
        b"{}",
        b"[" * 50_000,
        b'{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,999999]}}',
        b'{"a":{"dtype":"F32","shape":[9999999999999],"data_offsets":[0,16]}}',
        b'{"a":{"dtype":"F32","shape":[4],"data_offsets":[16,0]}}',
        b'{"a":{"dtype":"X9","shape":[4],"data_offsets":[0,16]}}',
    ],
)
def test_a_model_file_whose_header_lies(header, tmp_path):
    path = tmp_path / "m.safetensors"
    for length in (len(header), 2**40, 2**63):
        path.write_bytes(struct.pack("<Q", length) + header + bytes(16))
        with pytest.raises(ModelFileError):
            load(path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("settings", "[" * 100_000 + "]" * 100_000),
        ("settings", "[]"),
        ("settings", '"text"'),
        ("settings", "9" * 5000),
        ("facts", "null"),
        ("facts", "7"),
        ("feature_names", "7"),
        ("format_number", "²"),
        ("recipe", "[]"),
        ("recipe", '{"kind": "table"}'),
    ],
)
def test_a_model_file_whose_words_are_hostile(key, value, model, tmp_path):
    path = tmp_path / "m.safetensors"
    path.write_bytes(with_metadata(model, {key: value}))
    with pytest.raises(ModelFileError):
        (load_recipe if key == "recipe" else load)(path)


def with_metadata(content: bytes, changes: dict[str, str]) -> bytes:
    """A model file with other words in its header."""
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + length])
    header["__metadata__"] |= changes
    written = json.dumps(header).encode()
    return struct.pack("<Q", len(written)) + written + content[8 + length :]


def test_bytes_that_were_changed_anywhere_are_refused_or_harmless(model, tmp_path):
    path, chance = tmp_path / "m.safetensors", random.Random(0)
    length = struct.unpack("<Q", model[:8])[0]
    for _ in range(300):
        content = bytearray(model)
        for _ in range(chance.choice([1, 1, 4])):
            content[chance.randrange(8 + length)] = chance.randrange(256)
        path.write_bytes(content)
        with suppress(ModelFileError):
            load(path)
