"""Data sets by name: ``load_dataset("wine")``.

Of the editions of a data set, the first that is all here is read; if none is, the first that has a public address is
downloaded.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from .dataset_readers import AGAIN
from .dataset_sources import SOURCES, Edition, File, Source
from .exceptions import DatasetError, unknown_name
from .extras import install

Array = NDArray[Any]


def list_datasets() -> list[str]:
    """The names that `load_dataset` knows.

    Returns
    -------
    names : list of str

    Examples
    --------
    >>> from pairmargin import list_datasets
    >>> "wine" in list_datasets()
    True
    """
    return sorted(SOURCES)


def load_dataset(name: str, *, return_X_y: bool = False) -> Any:
    """Load a data set, after downloading what of it is not here yet.

    Files are looked for as ``NAME/FILE`` in the folder that the environment variable ``PAIRMARGIN_DATA`` names, or else
    in a cache of the user's, and checked by sha256 before they are read. Downloading needs pooch
    (``pip install "pairmargin[experiments]"``). Wine, wdbc, digits and iris come with scikit-learn and need no file.

    Parameters
    ----------
    name : str
        One of `list_datasets`.
    return_X_y : bool, default=False
        Give just ``(data, target)``.

    Returns
    -------
    dataset : Bunch
        ``data`` (n, D) float64, but float32 for MNIST; ``target`` (n,) integers from 0; ``target_names``;
        ``feature_names``; ``title`` with the numbers; ``DESCR``; ``processing``, what was done to the data;
        ``source``, an address; ``terms`` of use. MNIST and Reuters also have ``train_rows`` and ``test_rows``,
        Reuters the sparse ``tfidf`` (n, 18933) that ``data`` was made of.

    Raises
    ------
    DatasetError
        If there is no such data set, or if its files are damaged or cannot be had; it says where to put which file.

    Examples
    --------
    >>> from pairmargin import load_dataset
    >>> digits = load_dataset("digits")
    >>> digits.data.shape
    (1797, 64)
    >>> digits.title
    'Handwritten digits, 1797 × 64, 10 classes'
    """
    source = find_source(name)
    edition = find_edition(name)
    content = edition.read(fetch_files(name, edition))
    target = _target(content.pop("labels"), list(source.classes))
    if return_X_y:
        return content.data, target
    return Bunch(
        **content,
        target=target,
        target_names=np.array(list(source.classes.values())),
        feature_names=list(source.feature_names),
        title=source.summary,
        DESCR=f"{source.summary}. {source.about}",
        processing=source.processing,
        source=source.page,
        terms=source.terms,
    )


def _target(labels: Array, order: list[Any]) -> Array:
    """Labels as their places in ``order``."""
    found, inverse = np.unique(labels, return_inverse=True)
    return np.array([order.index(label) for label in found.tolist()])[inverse]


# Files: where they are, whence they come, whether they are what they should be


def find_source(name: str) -> Source:
    """What is known of a data set; a name that is not known is refused."""
    if name not in SOURCES:
        raise DatasetError(unknown_name("data set", name, list_datasets()))
    return SOURCES[name]


def data_folder() -> Path:
    """Where files are looked for: ``PAIRMARGIN_DATA``, or a cache of the user's."""
    if folder := os.environ.get("PAIRMARGIN_DATA"):
        return Path(folder).expanduser()
    try:
        import pooch
    except ModuleNotFoundError:
        return Path.home() / ".cache" / "pairmargin"
    return Path(pooch.os_cache("pairmargin"))


def paths_of(name: str, edition: Edition) -> list[Path]:
    """Where the files of an edition are, or should be."""
    return [data_folder() / name / file.name for file in edition.files]


def is_here(name: str, edition: Edition) -> bool:
    """Whether all files of an edition are on this machine."""
    return all(path.exists() for path in paths_of(name, edition))


def find_edition(name: str) -> Edition:
    """The first edition that is all here, or else the first that can be downloaded."""
    editions = find_source(name).editions
    here = (edition for edition in editions if is_here(name, edition))
    public = (edition for edition in editions if all(file.url for file in edition.files))
    return next(here, None) or next(public)


def fetch_files(name: str, edition: Edition, *, progress: Callable[[File], Any] | None = None) -> list[Path]:
    """The paths of an edition's files, all of them here and checked; ``progress`` makes a bar for pooch."""
    paths = paths_of(name, edition)
    missing = {path: file for path, file in zip(paths, edition.files, strict=True) if not path.exists()}
    for path, file in missing.items():
        try:
            _download(file, path, progress(file) if progress else False)
        except ModuleNotFoundError as error:
            raise DatasetError(_by_hand(name, missing, f"that needs {error.name}: {install('experiments')}")) from error
        except (OSError, ValueError) as error:  # of requests, of the disk; of pooch, if the sha256 is another
            raise DatasetError(_by_hand(name, missing, _reason(error))) from error
    for path, file in zip(paths, edition.files, strict=True):
        _check(path, file)
    return paths


def _download(file: File, path: Path, progress: Any) -> None:
    """Download to a temporary name, check, then move into place: a file is there whole or not at all."""
    import pooch

    downloader = pooch.HTTPDownloader(
        progressbar=progress,
        chunk_size=2**16,
        headers={"Accept-Encoding": "identity"},  # a server that packs the file once more would hide its size
    )
    pooch.retrieve(file.url, file.sha256, fname=path.name, path=path.parent, downloader=downloader)


def _reason(error: Exception) -> str:
    """Why a download failed, in a few words: the whole story of requests fills a screen."""
    response = getattr(error, "response", None)
    if response is not None:
        return f"the server says {response.status_code} {response.reason}"
    if type(error).__module__.startswith("requests"):
        return f"the server cannot be reached ({type(error).__name__})"
    return str(error)


def _by_hand(name: str, missing: Mapping[Path, File], reason: str) -> str:
    """What to put where, for a person with a browser."""
    lines = [
        f"{path} from {file.url}" + (f" with sha256 {file.sha256}" if file.sha256 else "")
        for path, file in missing.items()
    ]
    return f"{name} cannot be downloaded: {reason}; you can put its files in place by hand:\n" + ";\n".join(lines)


def _check(path: Path, file: File) -> None:
    """Refuse a damaged file: by its sha256, or by the checksums inside an archive."""
    if file.sha256:
        _check_digest(path, file.sha256)
    else:
        _check_archive(path)


def _check_digest(path: Path, sha256: str) -> None:
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != sha256:
        raise DatasetError(f"{path} has sha256 {found}, not {sha256}: damaged or another version; {AGAIN}")


def _check_archive(path: Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            damage = archive.testzip()
    except (zipfile.BadZipFile, zlib.error) as error:
        damage = str(error)
    if damage:
        raise DatasetError(f"{path} is a damaged archive ({damage}); {AGAIN}")
