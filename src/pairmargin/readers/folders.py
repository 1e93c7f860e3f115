"""Files of a folder: which ones are read, what they are called, and how they are labelled."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..exceptions import InvalidParameterError
from .parts import Array, counted, labels_of, listed


def find_files(folder: Path, endings: Sequence[str]) -> tuple[list[Path], list[str]]:
    """The files below a folder with these endings, in the order of their names, and a note on links that were refused.

    A link that leads out of the folder could show a stranger's files; one to another folder could lead in a circle.
    """
    home = folder.resolve()
    found, refused = [], []
    for place, folders, names in os.walk(folder):
        refused += [Path(place, name) for name in folders if Path(place, name).is_symlink()]
        for path in (Path(place, name) for name in names if name.lower().endswith(tuple(endings))):
            if path.is_symlink() and not path.resolve().is_relative_to(home):
                refused.append(path)
            elif path.is_file():
                found.append(path)
    notes = []
    if refused:
        named = listed(sorted(relative(path, folder) for path in refused))
        notes = [f"{counted(len(refused), 'link')} out of the folder or to another folder not followed: {named}."]
    return sorted(found, key=lambda path: relative(path, folder)), notes


def relative(path: Path, folder: Path) -> str:
    """The path from the folder, with forward slashes on every system: an id."""
    return path.relative_to(folder).as_posix()


def folder_labels(paths: Sequence[Path], truth: str | None) -> Array | None:
    """The names of the folders that files are in, if these are the labels."""
    if truth is None:
        return None
    if truth != "folder":
        raise InvalidParameterError(f'truth={truth!r} must be "folder" for files: the folder that each one is in')
    return labels_of([path.parent.name for path in paths])


def fingerprint(path: Path) -> dict[str, Any]:
    """Path, size and sha256 of a file, or of the names and contents of all files in a folder."""
    files = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
    total, size = hashlib.sha256(), 0
    for file in files:
        with file.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256")
        size += file.stat().st_size
        total.update(f"{file.relative_to(path).as_posix()}\0{digest.hexdigest()}\n".encode())
    return {"path": str(path), "bytes": size, "sha256": total.hexdigest() if path.is_dir() else digest.hexdigest()}
