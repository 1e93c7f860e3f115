"""Data sets by name: ``load_dataset("wine")``.

Files are looked for in the folder that the environment variable ``PAIRMARGIN_DATA`` names, one folder a data set, and
checked by sha256 before they are read. What scikit-learn ships needs no file.
"""

from __future__ import annotations

import gzip
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import sklearn.datasets
from numpy.typing import NDArray
from sklearn.utils import Bunch

from .exceptions import DatasetError

Array = NDArray[Any]
UCI = "UCI Machine Learning Repository, CC BY 4.0"
COIL = "Columbia University Image Library, for research; cite Nene, Nayar and Murase (1996)"


@dataclass(frozen=True)
class Source:
    """Where a data set comes from and how its files are read."""

    title: str
    terms: str
    files: dict[str, str]  # name in the data set's folder: sha256
    read: Callable[[list[Path]], tuple[Array, Array]]
    shipped: Callable[..., Bunch] | None = None  # scikit-learn's own copy


def list_datasets() -> list[str]:
    """The names that `load_dataset` knows.

    Examples
    --------
    >>> from pairmargin import list_datasets
    >>> "wine" in list_datasets()
    True
    """
    return sorted(SOURCES)


def load_dataset(name: str, *, return_X_y: bool = False) -> Any:
    """Load a data set.

    Parameters
    ----------
    name : str
        One of `list_datasets`.
    return_X_y : bool, default=False
        Give just ``(data, target)``.

    Returns
    -------
    dataset : Bunch
        ``data`` (n, D) floats, ``target`` (n,) integers from 0, ``target_names``, ``DESCR``, ``terms``.

    Examples
    --------
    >>> from pairmargin import load_dataset
    >>> load_dataset("digits").data.shape
    (1797, 64)
    """
    if name not in SOURCES:
        raise DatasetError(f"there is no data set {name!r}; there are {', '.join(list_datasets())}")
    source = SOURCES[name]
    folder = os.environ.get("PAIRMARGIN_DATA")
    paths = [Path(folder) / name / file for file in source.files] if folder else []
    if source.files and all(path.exists() for path in paths) and paths:
        for path, digest in zip(paths, source.files.values(), strict=True):
            _check_digest(path, digest)
        data, raw = source.read(paths)
        names, target = np.unique(raw, return_inverse=True)
    elif source.shipped is not None:
        shipped = source.shipped()
        data, target, names = shipped.data, shipped.target, shipped.target_names
    else:
        raise DatasetError(_missing(name, source, paths))
    if return_X_y:
        return data, target
    return Bunch(data=data, target=target, target_names=names, DESCR=source.title, terms=source.terms)


def _missing(name: str, source: Source, paths: list[Path]) -> str:
    files = ", ".join(f"{name}/{file}" for file in source.files)
    if not paths:
        return f"{name} needs {files} in a folder of your choice, and PAIRMARGIN_DATA set to that folder"
    absent = ", ".join(str(path) for path in paths if not path.exists())
    return f"{name} needs the file {absent}; put it there, or set PAIRMARGIN_DATA to the folder that holds {files}"


def _check_digest(path: Path, digest: str) -> None:
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != digest:
        raise DatasetError(f"{path} has sha256 {found}, not {digest}: damaged or another version; fetch it again")


def _table(label: int, first: int, last: int | None, width: int) -> Callable[[list[Path]], tuple[Array, Array]]:
    """A reader of comma-separated rows of ``width``: the label's column, then the features' first and last."""

    def read(paths: list[Path]) -> tuple[Array, Array]:
        rows = [line.strip().split(",") for path in paths for line in path.read_text().splitlines()]
        rows = [row for row in rows if len(row) == width]  # drops blank lines and the header of Segmentation
        labels = np.array([row[label] for row in rows])
        return np.array([row[first:last] for row in rows], dtype=np.float64), labels

    return read


def _matlab(paths: list[Path]) -> tuple[Array, Array]:
    """Deng Cai's layout: ``fea`` and ``gnd``."""
    content = scipy.io.loadmat(paths[0])
    return content["fea"].astype(np.float64), content["gnd"].ravel()


def _idx(path: Path) -> Array:
    """One file of the IDX format: two zero bytes, the type, the number of dimensions, then each of them."""
    content = gzip.decompress(path.read_bytes())
    n_dims = content[3]
    shape = np.frombuffer(content, ">i4", n_dims, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * n_dims).reshape(shape)


def _mnist(paths: list[Path]) -> tuple[Array, Array]:
    """All 70 000 images, first the training and then the test part, with pixels from 0 to 1."""
    train, train_labels, test, test_labels = map(_idx, paths)
    images = np.concatenate([train, test]).reshape(-1, 28 * 28)
    return images / np.float32(255), np.concatenate([train_labels, test_labels])


SOURCES: dict[str, Source] = {
    "glass": Source(
        "Glass Identification, 214 × 9, 6 classes",
        UCI,
        {"glass.data": "dd67373f4baf2807345df02cbfef2093d342e61ad0d82a4fb79af43ef8ce449d"},
        _table(label=-1, first=1, last=-1, width=11),
    ),
    "wdbc": Source(
        "Breast Cancer Wisconsin (Diagnostic), 569 × 30, 2 classes",
        UCI,
        {"wdbc.data": "d606af411f3e5be8a317a5a8b652b425aaf0ff38ca683d5327ffff94c3695f4a"},
        _table(label=1, first=2, last=None, width=32),
        sklearn.datasets.load_breast_cancer,
    ),
    "wine": Source(
        "Wine, 178 × 13, 3 classes",
        UCI,
        {"wine.data": "6be6b1203f3d51df0b553a70e57b8a723cd405683958204f96d23d7cd6aea659"},
        _table(label=0, first=1, last=None, width=14),
        sklearn.datasets.load_wine,
    ),
    "sonar": Source(
        "Sonar, Mines vs. Rocks, 208 × 60, 2 classes",
        UCI,
        {"sonar.all-data": "e90434cdbf00fcf93ffa911fe447ae25606979658e60f1d32e155c3b5240234d"},
        _table(label=-1, first=0, last=-1, width=61),
    ),
    "segmentation": Source(
        "Image Segmentation, 2310 × 19, 7 classes",
        UCI,
        {
            "segmentation.data": "ed5b5aee8081bbe875357149f73f50d7085e22cc0897f5b52eb7b52fea969a5b",
            "segmentation.test": "2e9e966479d54c6aaec309059376dd9c89c1b46bf3a23aceeefb36d20d93a189",
        },
        _table(label=0, first=1, last=None, width=20),
    ),
    "mnist": Source(
        "MNIST handwritten digits, 70 000 × 784, 10 classes",
        "Y. LeCun and C. Cortes; commonly stated CC BY-SA 3.0",
        {
            "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        },
        _mnist,
    ),
    "coil20": Source(
        "COIL-20, 1440 × 1024 grey pixels, 20 objects",
        COIL,
        {"COIL20.mat": "2a35c105dbb327492b90389e55612bcbf39187bc7c408252239903e4ce7d6958"},
        _matlab,
    ),
    "coil100": Source(
        "COIL-100, 7200 × 1024 grey pixels, 100 objects",
        COIL,
        {"COIL100_32x32_gray_rebuilt.mat": "ad2daab8563013c9b37ba9d492097f2dc4fa75ca47db9e106c2cb53a9e99cf21"},
        _matlab,
    ),
    "digits": Source("Handwritten digits, 1797 × 64, 10 classes", UCI, {}, _matlab, sklearn.datasets.load_digits),
    "iris": Source("Iris, 150 × 4, 3 classes", UCI, {}, _matlab, sklearn.datasets.load_iris),
}
