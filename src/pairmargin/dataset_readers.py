"""From the files of a data set to its numbers: ``data`` (n, D), ``labels`` (n,), and what else there is."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import normalize
from sklearn.utils import Bunch
from threadpoolctl import threadpool_limits

from .exceptions import DatasetError
from .extras import install

Array = NDArray[Any]
Read = Callable[[list[Path]], Bunch]

AGAIN = "delete it and load it again"
N_COMPONENTS = 400  # of Reuters, as in the paper
GREY = np.array([0.2989, 0.5870, 0.1140])  # of red, green and blue, as in Matlab's rgb2gray


def table(label: int, first: int, last: int | None, width: int) -> Read:
    """A reader of comma-separated rows of ``width``: the label's column, then the features' first and last."""

    def read(paths: list[Path]) -> Bunch:
        rows = [line.strip().split(",") for path in paths for line in path.read_text().splitlines()]
        rows = [row for row in rows if len(row) == width]  # drops blank lines and the header of Segmentation
        data = np.array([row[first:last] for row in rows], dtype=np.float64)
        return Bunch(data=data, labels=np.array([row[label] for row in rows]))

    return read


def matlab(highest: float) -> Read:
    """A reader of Deng Cai's layout, ``fea`` and ``gnd``, for pixels from 0 to ``highest``."""

    def read(paths: list[Path]) -> Bunch:
        content = scipy.io.loadmat(paths[0])
        return Bunch(data=np.ascontiguousarray(content["fea"] / highest), labels=content["gnd"].ravel())

    return read


def reuters(paths: list[Path]) -> Bunch:
    """Word counts as tf-idf, then their main components; never dense, which would take 1.3 GB."""
    content = scipy.io.loadmat(paths[0])
    tfidf = TfidfTransformer().fit_transform(content["fea"].tocsr())  # (8293, 18933)
    with threadpool_limits(1):  # the same bits on any number of cores
        data = normalize(TruncatedSVD(N_COMPONENTS, random_state=0).fit_transform(tfidf))
    train, test = (content[key].ravel().astype(np.intp) - 1 for key in ("trainIdx", "testIdx"))  # Matlab counts from 1
    return Bunch(data=data, labels=content["gnd"].ravel(), tfidf=tfidf, train_rows=train, test_rows=test)


def mnist(paths: list[Path]) -> Bunch:
    """All 70 000 images, first the training and then the test part."""
    train, train_labels, test, test_labels = map(_idx, paths)
    images = np.concatenate([train, test]).reshape(-1, 28 * 28)
    return Bunch(
        data=images / np.float32(255),  # float64 would take 439 MB
        labels=np.concatenate([train_labels, test_labels]),
        train_rows=np.arange(len(train)),
        test_rows=np.arange(len(train), len(images)),
    )


def _idx(path: Path) -> Array:
    """One file of the IDX format: two zero bytes, the type, the number of dimensions, then each of them."""
    content = gzip.decompress(path.read_bytes())
    n_dims = content[3]
    shape = np.frombuffer(content, ">i4", n_dims, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * n_dims).reshape(shape)


def pictures(pattern: str, n_objects: int, angles: range, balance: Sequence[float]) -> Read:
    """A reader of Columbia's archives, one picture for each object and angle, down to 32 × 32 grey pixels."""

    def read(paths: list[Path]) -> Bunch:
        names = [pattern.format(thing, angle) for thing in range(1, n_objects + 1) for angle in angles]
        with zipfile.ZipFile(paths[0]) as archive:
            if missing := set(names) - set(archive.namelist()):
                raise DatasetError(f"{paths[0]} lacks {len(missing)} pictures, such as {min(missing)}; {AGAIN}")
            data = np.stack([_shrink(_picture(archive.read(name))) for name in names]) / 255
        if not np.allclose(balance_of(data), balance, rtol=0, atol=5e-4):
            raise DatasetError(f"{paths[0]} has other pictures: {balance_of(data)}, not {list(balance)}; {AGAIN}")
        return Bunch(data=data, labels=np.repeat(np.arange(1, n_objects + 1), len(angles)))

    return read


def _picture(content: bytes) -> Array:
    """The pixels of a PNG, (128, 128) if grey or (128, 128, 3)."""
    try:
        from PIL import Image
    except ModuleNotFoundError as error:
        raise DatasetError(f"pictures are read with Pillow: {install('experiments')}") from error
    with Image.open(io.BytesIO(content)) as image:
        return np.asarray(image)


def _shrink(picture: Array) -> Array:
    """Means of 4 × 4 pixels, column by column as Matlab stores them; a picture in colour is made grey and rounded."""
    if picture.ndim == 3:
        return _round(_shrink(_round(picture @ GREY)))
    means: Array = picture.reshape(32, 4, 32, 4).mean((1, 3))
    return means.T.ravel()  # (1024,)


def _round(values: Array) -> Array:
    """To the nearest integer, halves upwards."""
    return np.floor(values + 0.5).astype(np.uint8)


def balance_of(data: Array) -> list[float]:
    """Mean pixel, evenly and by weights that rise with the row and with the column.

    Other pictures or another order change it, another way to round a half hardly does: a sha256 would refuse that too.
    """
    row, column = (np.linspace(0, 1, length) for length in data.shape)
    return [float(value) for value in (data.mean(), row @ data.mean(1) / len(row), data.mean(0) @ column / len(column))]
