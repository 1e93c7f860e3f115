"""Files that are complete or not there: written beside their place, and moved into it when all is well.

What a killed process has left beside a place is cleared away by the next one that writes there.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .exceptions import OutputError

try:
    import fcntl
except ImportError:  # Windows has none
    fcntl = None  # type: ignore[assignment]


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A path beside another one to write to; it takes the other's place at the end, or is gone after an error."""
    beside = _beside(path)
    try:
        with refusals(path):
            if path.is_dir():
                raise IsADirectoryError(0, "there is a folder of that name")
            _clear_leftovers(beside)
            beside.touch()  # so that a place that cannot be written to is refused before the work
        with _in_use(beside):
            yield beside
            with refusals(path):
                _to_disk(beside)
                beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder to write to whose files move to another one at the end, or are gone after an error.

    If there is no such folder yet, it comes with all of its files at once. If there is, what is in it stays, but for
    files of the same names. These are moved one by one: a kill at that moment may leave some old and some new, each of
    them complete.
    """
    is_new = not path.exists()
    beside = _beside(path) if is_new else _beside(path / "new")
    made = [each for each in (beside.parent, *beside.parent.parents) if not each.exists()]
    done = False
    try:
        with refusals(path):
            beside.parent.mkdir(parents=True, exist_ok=True)
            _clear_leftovers(beside)
            beside.mkdir()
        with _in_use(beside):
            yield beside
            with refusals(path):
                for file in filter(Path.is_file, beside.iterdir()):
                    _to_disk(file)
                if is_new:
                    beside.replace(path)
                else:
                    _move_all(beside, path)
        done = True
    finally:
        shutil.rmtree(beside, ignore_errors=True)
        for folder in [] if done else made:
            with suppress(OSError):  # there is something in it
                folder.rmdir()


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


def _to_disk(file: Path) -> None:
    """Wait until what was written is on the disk."""
    with file.open("rb+") as opened:
        os.fsync(opened.fileno())


def _move_all(source: Path, target: Path) -> None:
    """Move files into a folder in which some may be already; after an error, it is as it was."""
    old, moved = source / ".old", list[str]()
    files = sorted(source.iterdir())
    old.mkdir()
    try:
        for file in files:
            _keep(target / file.name, old / file.name)
            moved.append(file.name)
            file.replace(target / file.name)
    except BaseException:
        for name in moved:
            with suppress(OSError):  # one that could not be moved
                (old / name).replace(target / name) if (old / name).exists() else (target / name).unlink()
        raise


def _keep(file: Path, second: Path) -> None:
    """Give a file a second name, or make a copy where the disk knows no second names."""
    if file.is_file():
        try:
            os.link(file, second)
        except OSError:
            shutil.copy2(file, second)


@contextmanager
def _in_use(beside: Path) -> Iterator[None]:
    """Show others that the process that writes there is alive: the system takes the lock from one that is not."""
    if fcntl is None:
        yield
        return
    descriptor = os.open(beside, os.O_RDONLY)
    try:
        with suppress(OSError):  # some disks of a network know no locks
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _clear_leftovers(beside: Path) -> None:
    """Remove what killed processes have left of the same name; without locks, nobody knows."""
    if fcntl is None:
        return
    alike = re.compile(re.escape(beside.name[:-8]) + "[0-9a-f]{8}")
    for left in [each for each in beside.parent.iterdir() if alike.fullmatch(each.name)]:
        with suppress(OSError):  # another one is faster, or uses it
            descriptor = os.open(left, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            finally:
                os.close(descriptor)
