"""Files of a folder: which ones are read, what they are called, and how they are labelled."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..exceptions import InvalidParameterError
from .parts import Array, counted, labels_of, listed

IMAGES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp")
TEXTS = (".txt",)


def find_files(folder: Path, endings: Sequence[str]) -> tuple[list[Path], list[str]]:
    """The files below a folder with these endings, in the order of their names, and notes on what was left out.

    A link that leads out of the folder could show a stranger's files; one to another folder could lead in a circle. A
    name that is not UTF-8 could be in no file that is written, and so be no id.
    """
    home = folder.resolve()
    found, refused, odd = list[Path](), list[Path](), list[Path]()
    for place, folders, names in os.walk(folder):
        refused += [Path(place, name) for name in folders if Path(place, name).is_symlink()]
        for path in (Path(place, name) for name in names if name.lower().endswith(tuple(endings))):
            if path.is_symlink() and not path.resolve().is_relative_to(home):
                refused.append(path)
            elif path.is_file():
                (found if _is_utf8(relative(path, folder)) else odd).append(path)
    notes = []
    if refused:
        why = "out of the folder or to another folder not followed"
        notes.append(f"{counted(len(refused), 'link')} {why}: {_named(refused, folder)}.")
    if odd:
        why = "with a name that is not UTF-8 left out (rename to have it read)"
        notes.append(f"{counted(len(odd), 'file')} {why}: {_named(odd, folder)}.")
    return sorted(found, key=lambda path: relative(path, folder)), notes


def relative(path: Path, folder: Path) -> str:
    """The path from the folder, with forward slashes on every system: an id."""
    return path.relative_to(folder).as_posix()


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # Python has put surrogates where bytes were no characters
        return False
    return True


def _named(paths: Sequence[Path], folder: Path) -> str:
    """The first of them, with a question mark for what is not UTF-8."""
    return listed([name.encode(errors="replace").decode() for name in sorted(relative(each, folder) for each in paths)])


def folder_labels(paths: Sequence[Path], truth: str | None) -> Array | None:
    """The names of the folders that files are in, if these are the labels."""
    if truth is None:
        return None
    if truth != "folder":
        raise InvalidParameterError(f'truth={truth!r} must be "folder" for files: the folder that each one is in')
    return labels_of([path.parent.name for path in paths])


def fingerprint(path: Path) -> dict[str, Any]:
    """Path, size and sha256 of a file, or of the names and contents of all files in a folder that can become items."""
    files = [path]
    if path.is_dir():  # by the parts of their names, which is the same order on every system
        files = sorted(find_files(path, IMAGES + TEXTS)[0], key=lambda file: file.relative_to(path).parts)
    total, size = hashlib.sha256(), 0
    for file in files:
        with file.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256")
        size += file.stat().st_size
        total.update(f"{relative(file, path)}\0{digest.hexdigest()}\n".encode())
    return {"path": str(path), "bytes": size, "sha256": total.hexdigest() if path.is_dir() else digest.hexdigest()}
