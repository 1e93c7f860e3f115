"""Disks that fail: the n-th thing that is written is refused, or the process is killed there."""

from __future__ import annotations

import builtins
import errno
import io
import os
import sqlite3
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

CALLS = "mkdir", "replace", "rename", "fsync", "truncate"  # of os, besides open
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
READ_ONLY = OSError(errno.EROFS, os.strerror(errno.EROFS))


class Killed(BaseException):
    """Instead of a signal, where the process has to go on."""


class Disk:
    """Counts what is written, and lets something happen at one of these moments.

    Parameters
    ----------
    at : int
        The moment, from 1; 0 only counts.
    happens : callable
        Raises, or ends the process.
    """

    def __init__(self, at: int, happens: Callable[[], object]) -> None:
        self.at, self.happens, self.count = at, happens, 0

    def step(self) -> bool:
        """Count; whether this is the moment."""
        self.count += 1
        return self.count == self.at

    def before(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """A function before which it may happen."""

        def counted(*arguments: Any, **options: Any) -> Any:
            is_there = call.__name__ == "mkdir" and os.path.isdir(arguments[0])  # which writes nothing
            if not is_there and self.step():
                self.happens()
            return call(*arguments, **options)

        return counted

    def open(self, file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        """Python's open; what is opened to write is watched."""
        if not set(mode) & set("wax+") or file == os.devnull:
            return OPEN(file, mode, *arguments, **options)
        if self.step():
            self.happens()
        return WatchedFile(self, OPEN(file, mode, *arguments, **options))

    def descriptor(self, path: Any, flags: int, *arguments: Any, **options: Any) -> int:
        """The system's open, of which only writing counts."""
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and self.step():
            self.happens()
        return DESCRIPTOR(path, flags, *arguments, **options)

    def database(self, *arguments: Any, **options: Any) -> sqlite3.Connection:
        """SQLite, of which every statement counts that begins, changes or ends something."""
        disk = self

        class Watched(sqlite3.Connection):
            def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
                writes = not statement.lstrip().startswith(("SELECT", "ROLLBACK", "PRAGMA user", "PRAGMA application"))
                if writes and disk.step():
                    try:
                        disk.happens()
                    except OSError as error:
                        raise sqlite3.OperationalError("database or disk is full") from error
                return super().execute(statement, *values)

        return CONNECT(*arguments, factory=Watched, **options)


OPEN, DESCRIPTOR, CONNECT = io.open, os.open, sqlite3.connect


class WatchedFile:
    """A file of which half may be written when it happens; of many lines, the first two count."""

    def __init__(self, disk: Disk, file: Any) -> None:
        self._disk, self._file, self._left = disk, file, 2

    def write(self, content: Any) -> int:
        self._left -= 1
        if self._left >= 0 and self._disk.step():
            self._file.write(content[: len(content) // 2])
            self._file.flush()
            self._disk.happens()
        return int(self._file.write(content))

    def close(self) -> None:
        if not self._file.closed:
            self._file.close()
            if self._disk.step():
                self._disk.happens()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._file)

    def __enter__(self) -> WatchedFile:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


@contextmanager
def disk(at: int = 0, happens: Callable[[], object] = lambda: None) -> Iterator[Disk]:
    """Everything that is written meanwhile goes through a `Disk`."""
    watched = Disk(at, happens)
    with (
        patch.multiple(os, open=watched.descriptor, **{name: watched.before(getattr(os, name)) for name in CALLS}),
        patch.object(io, "open", watched.open),
        patch.object(builtins, "open", watched.open),
        patch.object(sqlite3, "connect", watched.database),
    ):
        yield watched


def raising(error: BaseException) -> Callable[[], object]:
    """What happens on a disk that refuses."""

    def happens() -> None:
        raise error

    return happens


def moments(work: Callable[[], object]) -> int:
    """How many things a piece of work writes."""
    with disk() as watched:
        work()
    assert watched.count
    return watched.count


def kill_at(number: int, work: Callable[[], object]) -> None:
    """Do a piece of work in another process, which ends without a word at a moment; nothing is cleared up there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about threads, which the other process does not use
        child = os.fork()
    if child == 0:
        try:
            with disk(number, lambda: os._exit(9)):
                work()
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """A real limit of the system: whoever writes past it is told that the file is too large."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, hidden ones too, and folders that are empty."""
    files = {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*"))}
    return {
        name: _content(path) if path.is_file() else b"a folder"
        for name, path in files.items()
        if path.is_file() or not any(path.iterdir())
    }


def _content(path: Path) -> bytes:
    content = path.read_bytes()
    return bytes(sorted(content)) if path.suffix == ".safetensors" else content  # whose header has no fixed order
