"""Answers on disk: a log in SQLite to which rows are only ever added.

A row is an answer of a person about two items, that it is withdrawn (`DELETED`), or that an earlier row is undone. What
counts now is the last row of each person about each pair that is not undone: the view ``current``. When a method
returns, what it has written is on the disk (WAL, synchronous full), also if the power then fails.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..exceptions import InvalidPairsError, InvalidParameterError, OutputError, SessionError

SAME, DIFFERENT, UNSURE, DELETED = "same", "different", "unsure", "deleted"
ANSWERS = SAME, DIFFERENT, UNSURE
FILE = "answers.sqlite"
VERSION = 1  # of the tables
LONGEST = 200  # characters of a person's name
_OWN = 0x706D6172  # "pmar": the file is ours
_SCHEMA = f"""
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE log (
  number INTEGER PRIMARY KEY,
  at TEXT NOT NULL,
  who TEXT NOT NULL,
  a TEXT NOT NULL,
  b TEXT NOT NULL,
  answer TEXT NOT NULL CHECK (answer IN ('{SAME}', '{DIFFERENT}', '{UNSURE}', '{DELETED}')),
  chance REAL,
  key TEXT UNIQUE,
  undoes INTEGER UNIQUE REFERENCES log,
  CHECK (a < b)
);
CREATE VIEW standing AS
  SELECT * FROM log WHERE undoes IS NULL AND number NOT IN (SELECT undoes FROM log WHERE undoes IS NOT NULL);
CREATE VIEW current AS
  SELECT * FROM standing
  WHERE number IN (SELECT max(number) FROM standing GROUP BY who, a, b) AND answer != '{DELETED}';
PRAGMA application_id = {_OWN};
PRAGMA user_version = {VERSION};
"""
_TURNS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # bidirectional controls
_COLUMNS = "number, at, who, a, b, answer, chance, key, undoes"


@dataclass(frozen=True)
class Answer:
    """A row of the log.

    Attributes
    ----------
    number : int
        Its place in the log.
    at : str
        When, in UTC, as ISO 8601.
    who : str
        The name of the person; empty if there is but one, who gave none.
    a, b : str
        The ids of the two items, the smaller first.
    answer : {"same", "different", "unsure", "deleted"}
    chance : float or None
        The chance of "same" in the eyes of the model that had not seen the answer.
    key : str or None
        What the page calls it, so that an answer that is sent twice counts once.
    undoes : int or None
        The number of the row that this one undoes.
    """

    number: int
    at: str
    who: str
    a: str
    b: str
    answer: str
    chance: float | None = None
    key: str | None = None
    undoes: int | None = None

    @property
    def pair(self) -> tuple[str, str]:
        return self.a, self.b


class AnswerStore:
    """The log of a session; safe to use from several threads.

    Parameters
    ----------
    path : Path or None
        The file, made if it is not there; None keeps everything in memory.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path, self._lock = path, threading.RLock()
        try:
            self._database = sqlite3.connect(
                path or ":memory:", timeout=1, check_same_thread=False, isolation_level=None
            )
        except sqlite3.DatabaseError as error:
            raise self._unopened(error) from error
        try:
            self._open()
        except sqlite3.DatabaseError as error:
            self._database.close()
            raise self._unopened(error) from error
        except BaseException:
            self._database.close()
            raise

    def _unopened(self, error: sqlite3.DatabaseError) -> SessionError:
        way_out = (
            "make room, or choose another folder" if isinstance(error, sqlite3.OperationalError) else "is it ours?"
        )
        reason = "another process has it open; stop that one" if "locked" in str(error) else f"{error}; {way_out}"
        return SessionError(f"{self._path} cannot be opened: {reason}")

    def _open(self) -> None:
        run = self._database.execute
        run("PRAGMA locking_mode = EXCLUSIVE")  # who has it in memory is the only one to write
        run("PRAGMA journal_mode = WAL")
        self._file = os.stat(self._path or os.devnull)
        run("PRAGMA synchronous = FULL")
        run("PRAGMA fullfsync = ON")  # macOS would else leave the answer in the disk's own memory
        version, own = (run(f"PRAGMA {name}").fetchone()[0] for name in ("user_version", "application_id"))
        if version == 0 and not run("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            with self.writing():
                for statement in _SCHEMA.split(";"):
                    run(statement)
        elif own != _OWN:
            raise SessionError(f"{self._path} is not the file of a session; choose another folder")
        elif version > VERSION:
            raise SessionError(
                f"{self._path} has version {version}, this one reads up to {VERSION}; upgrade pairmargin"
            )

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._database.close()

    # What is written

    def add(
        self, who: str, a: str, b: str, answer: str, *, chance: float | None = None, key: str | None = None
    ) -> tuple[Answer, bool]:
        """Write an answer.

        Parameters
        ----------
        who : str
        a, b : str
            Ids of two items, in any order.
        answer : {"same", "different", "unsure", "deleted"}
            The last takes the person's earlier answer back.
        chance : float, optional
            The chance of "same" in the eyes of the model.
        key : str, optional
            A key that was there before writes nothing.

        Returns
        -------
        row : Answer
            The new row, or that with the key.
        is_new : bool
        """
        if answer not in (*ANSWERS, DELETED):
            raise InvalidParameterError(f"answer={answer!r} must be one of {', '.join((*ANSWERS, DELETED))}")
        if a == b:
            raise InvalidPairsError(f"an item is always the same as itself: {a!r}; ask about two")
        with self.writing():
            if key is not None and (known := self._rows("log WHERE key = ?", check_key(key))):
                row = known[0]
                if (row.who, *row.pair, row.answer, row.undoes) != (who, min(a, b), max(a, b), answer, None):
                    raise InvalidParameterError(f"key={key!r} belongs to row {row.number}, about something else")
                return row, False
            return self._append(check_name(who), min(a, b), max(a, b), answer, chance, key, None), True

    def undo(self, who: str, *, key: str | None = None) -> Answer | None:
        """Take back the last thing that a person did and that still stands.

        Parameters
        ----------
        who : str
        key : str, optional
            A key that was there before undoes nothing more.

        Returns
        -------
        row : Answer or None
            The row that is undone; None if nothing is left.
        """
        with self.writing():
            if key is not None and (known := self._rows("log WHERE key = ?", check_key(key))):
                if known[0].undoes is None or known[0].who != who:
                    raise InvalidParameterError(
                        f"key={key!r} belongs to row {known[0].number}, which undoes nothing of {who!r}"
                    )
                return self._rows("log WHERE number = ?", known[0].undoes)[0]
            last = self._rows("standing WHERE who = ? ORDER BY number DESC LIMIT 1", who)
            if not last:
                return None
            row = last[0]
            self._append(who, row.a, row.b, row.answer, None, key, row.number)
            return row

    def _append(self, *values: Any) -> Answer:
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        marks = ", ".join("?" * (len(values) + 1))
        cursor = self._database.execute(
            f"INSERT INTO log (at, who, a, b, answer, chance, key, undoes) VALUES ({marks})", (at, *values)
        )
        return Answer(int(cursor.lastrowid or 0), at, *values)

    def set_fact(self, name: str, value: Any) -> None:
        """Keep something about the session, as JSON."""
        with self.writing():
            self._database.execute(
                "INSERT INTO facts VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (name, json.dumps(value)),
            )

    # What is read

    def fact(self, name: str, default: Any = None) -> Any:
        """What was kept under a name."""
        with self._reading():
            row = self._database.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return default if row is None else json.loads(row[0])

    def is_done(self, key: str | None) -> bool:
        """Whether rows that were written together, the first of them as ``key-0``, are there."""
        return key is not None and bool(self._rows("log WHERE key = ?", check_key(f"{key}-0")))

    def log(self) -> list[Answer]:
        """Every row, in order."""
        return self._rows("log ORDER BY number")

    def current(self) -> list[Answer]:
        """What counts now, in the order in which it was said."""
        return self._rows("current ORDER BY number")

    def _rows(self, rest: str, *values: Any) -> list[Answer]:
        with self._reading():
            return [Answer(*row) for row in self._database.execute(f"SELECT {_COLUMNS} FROM {rest}", values)]

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """What cannot be read, in a line of ours; inside `writing`, that one says it."""
        with self._lock:
            try:
                yield
            except sqlite3.DatabaseError as error:
                if self._database.in_transaction:
                    raise
                raise SessionError(f"{self._path} cannot be read: {error}; is the disk all right?") from error

    @contextmanager
    def writing(self) -> Iterator[None]:
        """All or nothing, and on the disk at the end; inside another one, at the end of that."""
        with self._lock:
            if self._database.in_transaction:
                yield
                return
            try:
                self._check_there()
                self._database.execute("BEGIN IMMEDIATE")
                yield
                self._database.execute("COMMIT")
            except sqlite3.DatabaseError as error:  # a full disk, no permission, a damaged file
                self._roll_back()
                raise OutputError(f"{self._path} cannot be written: {error}; make room, and answer again") from error
            except BaseException:
                self._roll_back()
                raise

    def _check_there(self) -> None:
        """A file that was removed can still be written to, until it is closed; nobody would ever see it again."""
        try:
            is_there = os.path.samestat(os.stat(self._path or os.devnull), self._file)
        except OSError:
            is_there = False
        if not is_there:
            raise OutputError(f"{self._path} was removed or replaced; put it back, or open the session again")

    def _roll_back(self) -> None:
        if self._database.in_transaction:
            with suppress(sqlite3.DatabaseError):  # what is not committed counts no more when it is opened again
                self._database.execute("ROLLBACK")

    def add_all(self, answers: Iterable[tuple[str, str, str, str]], key: str | None = None) -> int:
        """Write many answers (who, a, b, answer), all of them or none; how many. With a key that was there, none."""
        number = 0
        with self.writing():
            if self.is_done(key):
                return 0
            for number, answer in enumerate(answers, 1):
                self.add(*answer, key=None if key is None else f"{key}-{number - 1}")
        return number


def check_key(key: str) -> str:
    """A key, if it is one."""
    if len(key) > LONGEST or not (key.isascii() and key.isprintable()):
        raise InvalidParameterError(f"key={key[:40]!r} must have at most {LONGEST} plain letters")
    return key


def check_name(who: object) -> str:
    """A person's name, if it is one."""
    if not isinstance(who, str) or len(who) > LONGEST:
        raise InvalidParameterError(f"who={str(who)[:40]!r} must be a name of at most {LONGEST} letters")
    if not is_plain(who):
        raise InvalidParameterError(f"who={who[:40]!r} must have no line ends and no control characters")
    return who


def is_plain(text: str) -> bool:
    """Whether a text is without control characters, line ends and what turns the direction of reading.

    Joiners, which several scripts and many emoji need, are welcome.
    """
    return not any(unicodedata.category(each) in ("Cc", "Cs", "Zl", "Zp") or each in _TURNS for each in text)
