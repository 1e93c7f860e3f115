"""Packages that come with an extra: import one, or say which command brings it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from .exceptions import MissingPackageError

EXTRAS = {  # what a package is imported as, and the extra of ours that brings it
    "pyarrow": "files",
    "openpyxl": "files",
    "PIL": "files",
    "anndata": "h5ad",
    "h5py": "h5ad",
    "sentence_transformers": "text",
    "matplotlib": "plots",
    "umap": "umap",
    "starlette": "web",
    "uvicorn": "web",
}


def need(module: str, what: str) -> Any:
    """Import a module of a package that comes with an extra; ``what`` needs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:  # the package itself, or one that it needs in turn
        raise missing(error, what, EXTRAS[module.partition(".")[0]]) from error


@contextmanager
def coming_with(extra: str, what: str) -> Iterator[None]:
    """Where a package of an extra is missing, say that ``what`` needs it, and how to get it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == __package__:
            raise
        raise missing(error, what, extra) from error


def missing(error: ModuleNotFoundError, what: str, extra: str) -> MissingPackageError:
    """What to say where a package of an extra is not installed."""
    package = (error.name or "a package").partition(".")[0]
    return MissingPackageError(f"{what} needs {package}, which is not installed; run: {install(extra)}")


def install(extra: str) -> str:
    """The command that brings an extra."""
    return f'pip install "pairmargin[{extra}]"'
