"""Files that are complete or not there: written beside their place, and moved into it when all is well."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .exceptions import OutputError


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A path beside another one to write to; it takes the other's place at the end, or is gone after an error."""
    beside = _beside(path)
    with refusals(path):
        if path.is_dir():
            raise IsADirectoryError(0, "there is a folder of that name")
        beside.touch()  # so that a place that cannot be written to is refused before the work
    try:
        yield beside
        with refusals(path):
            with beside.open("rb+") as file:
                os.fsync(file.fileno())
            beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder to write to whose files move to another one at the end, or are gone after an error.

    If there is no such folder yet, it comes with all of its files at once. If there is, what is in it stays, but for
    files of the same names.
    """
    is_new = not path.exists()
    beside = _beside(path) if is_new else _beside(path / "new")
    with refusals(path):
        beside.parent.mkdir(parents=True, exist_ok=True)
        beside.mkdir()
    try:
        yield beside
        with refusals(path):
            for file in [] if is_new else sorted(beside.iterdir()):
                file.replace(path / file.name)
            if is_new:
                beside.replace(path)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def check_apart(out: Path, *sources: Path) -> None:
    """Refuse to write over what is read."""
    for source in sources:
        if out.resolve() == source.resolve():
            raise OutputError(f"{out} is the file to read; choose another place for what is written")


@contextmanager
def refusals(path: Path) -> Iterator[None]:
    """What the system refuses, as one line about the path; of paths one in the other, about the outer one."""
    try:
        yield
    except OSError as error:
        first = error.__cause__ if isinstance(error, OutputError) and error.__cause__ else error
        reason = (getattr(first, "strerror", None) or str(first)).lower()
        raise OutputError(f"{path} cannot be written: {reason}; choose another place") from first


def _beside(path: Path) -> Path:
    """A hidden name that nobody else has, on the same disk."""
    return path.with_name(f".{path.name}-{secrets.token_hex(4)}")
