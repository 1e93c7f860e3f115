"""Answers on disk: what counts, undo, keys, versions, and what happens when the process is killed."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading

import pytest

from pairmargin import InvalidPairsError, InvalidParameterError, OutputError, SessionError
from pairmargin.web.store import DELETED, DIFFERENT, SAME, UNSURE, AnswerStore


@pytest.fixture
def path(tmp_path):
    return tmp_path / "answers.sqlite"


def current(store):
    return {(each.who, *each.pair): each.answer for each in store.current()}


def test_an_answer_has_its_person_its_time_and_its_items_in_order():
    row, is_new = AnswerStore().add("Ada", "f2", "f1", SAME, chance=0.25)
    assert (row.number, row.who, row.pair, row.answer, row.chance, is_new) == (1, "Ada", ("f1", "f2"), SAME, 0.25, True)
    assert row.at.startswith("20")
    assert row.at.endswith("+00:00")


def test_a_later_answer_of_the_same_person_takes_the_place_of_the_earlier():
    store = AnswerStore()
    store.add("Ada", "f1", "f2", SAME)
    store.add("Bob", "f1", "f2", UNSURE)
    store.add("Ada", "f2", "f1", DIFFERENT)
    assert current(store) == {("Ada", "f1", "f2"): DIFFERENT, ("Bob", "f1", "f2"): UNSURE}
    assert [row.answer for row in store.log()] == [SAME, UNSURE, DIFFERENT]


def test_undo_is_a_row_and_goes_back_step_by_step():
    store = AnswerStore()
    store.add("Ada", "f1", "f2", SAME)
    store.add("Ada", "f1", "f2", DIFFERENT)
    store.add("Bob", "f3", "f4", SAME)
    store.add("Ada", "f1", "f2", DELETED)
    key = ("Ada", "f1", "f2")
    assert key not in current(store)
    assert store.undo("Ada").answer == DELETED
    assert current(store)[key] == DIFFERENT
    assert store.undo("Ada").answer == DIFFERENT
    assert current(store)[key] == SAME
    assert store.undo("Ada").answer == SAME
    assert store.undo("Ada") is None
    assert current(store) == {("Bob", "f3", "f4"): SAME}
    assert len(store.log()) == 7


def test_what_is_sent_twice_counts_once():
    store = AnswerStore()
    first, is_new = store.add("Ada", "f1", "f2", SAME, key="k1")
    again, is_new_again = store.add("Ada", "f1", "f2", SAME, key="k1")
    assert (is_new, is_new_again, first) == (True, False, again)
    store.add("Ada", "f3", "f4", SAME, key="k2")
    assert store.undo("Ada", key="u1") == store.undo("Ada", key="u1")
    assert current(store) == {("Ada", "f1", "f2"): SAME}


def test_wrong_answers_are_refused_and_leave_nothing_behind():
    store = AnswerStore()
    with pytest.raises(InvalidParameterError, match="'perhaps' must be one of same, different, unsure"):
        store.add("Ada", "f1", "f2", "perhaps")
    with pytest.raises(InvalidPairsError, match="'f1'"):
        store.add("Ada", "f1", "f1", SAME)
    with pytest.raises(InvalidParameterError, match="at most 200"):
        store.add("A" * 201, "f1", "f2", SAME)
    with pytest.raises(InvalidPairsError):
        store.add_all([("Ada", "f1", "f2", SAME), ("Ada", "f1", "f1", SAME)])
    assert store.log() == []


def test_what_is_broken_off_leaves_nothing_behind():
    store = AnswerStore()

    def broken_off():
        yield "Ada", "f1", "f2", SAME
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.add_all(broken_off())
    assert store.log() == []
    store.add("Ada", "f3", "f4", SAME)
    assert current(store) == {("Ada", "f3", "f4"): SAME}


def test_it_opens_again_with_answers_and_facts(path):
    store = AnswerStore(path)
    store.add("Ada", "Ä\n1", "f2", SAME)
    store.set_fact("names", {"0": "cats"})
    store.set_fact("names", {"0": "dogs"})
    store.close()
    again = AnswerStore(path)
    assert current(again) == {("Ada", "f2", "Ä\n1"): SAME}
    assert (again.fact("names"), again.fact("none", 7)) == ({"0": "dogs"}, 7)


def test_every_commit_waits_for_the_disk(path):
    run = AnswerStore(path)._database.execute
    assert run("PRAGMA journal_mode").fetchone() == ("wal",)
    assert run("PRAGMA synchronous").fetchone() == (2,)


def test_other_files_are_refused(path):
    path.write_text("no database at all, but long enough to look like something")
    with pytest.raises(SessionError, match=r"answers\.sqlite cannot be opened: file is not a database"):
        AnswerStore(path)
    other = path.with_name("other.sqlite")
    sqlite3.connect(other).execute("CREATE TABLE theirs (x)").connection.close()
    with pytest.raises(SessionError, match="not the file of a session"):
        AnswerStore(other)


def test_a_file_of_a_later_version_is_refused(path):
    store = AnswerStore(path)
    store._database.execute("PRAGMA user_version = 99")
    store.close()
    with pytest.raises(SessionError, match="version 99, this one reads up to 1; upgrade"):
        AnswerStore(path)


def test_a_second_process_is_refused(path):
    store = AnswerStore(path)
    with pytest.raises(SessionError, match="another process has it open"):
        AnswerStore(path)
    store.close()
    AnswerStore(path).close()


def test_what_the_disk_refuses_is_told(path):
    store = AnswerStore(path)
    store._database.execute("PRAGMA max_page_count = 1")
    with pytest.raises(OutputError, match="cannot be written: database or disk is full; make room"):
        store.add_all(("Ada", "f1", f"g{k}" * 50, SAME) for k in range(10_000))
    assert store.log() == []


def test_a_file_that_was_removed_takes_no_answers(path):
    """It could still be written to; but nobody would ever find the answers."""
    store = AnswerStore(path)
    store.add("Ada", "f1", "f2", SAME)
    away = path.with_name("away")
    path.rename(away)
    with pytest.raises(OutputError, match="was removed or replaced; put it back"):
        store.add("Ada", "f3", "f4", SAME)
    path.write_bytes(b"")
    with pytest.raises(OutputError, match="was removed or replaced"):
        store.set_fact("names", {})
    path.unlink()
    away.rename(path)
    store.add("Ada", "f3", "f4", SAME)
    assert len(store.log()) == 2


def test_many_threads_lose_and_double_nothing(path):
    store = AnswerStore(path)

    def answer(person):
        for k in range(25):
            store.add(f"p{person}", "f1", f"g{k}", SAME, key=f"{person}-{k}")
            store.add(f"p{person}", "f1", f"g{k}", SAME, key=f"{person}-{k}")

    threads = [threading.Thread(target=answer, args=(person,)) for person in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.log()) == len(store.current()) == 200


def test_an_acknowledged_answer_survives_a_kill(path):
    program = (
        "import sys, pathlib; from pairmargin.web.store import AnswerStore\n"
        "store, k = AnswerStore(pathlib.Path(sys.argv[1])), 0\n"
        "while True:\n"
        "    row, _ = store.add('Ada', 'f1', f'g{k}', 'same'); print(row.number, flush=True); k += 1\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, path], stdout=subprocess.PIPE, text=True) as process:
        for _ in range(20):
            process.stdout.readline()
        process.kill()
        told = process.stdout.read().split()
    last = max([20, *map(int, told)])
    numbers = [row.number for row in AnswerStore(path).log()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= last
