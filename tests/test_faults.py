"""Full disks, read-only folders and kills at every single thing that is written.

Each piece of work is done once to count what it writes, and then again and again while the first, the second, … of
these is refused or is the moment of a kill. What was there before must be there still, or be complete and new; nothing
else is left; an error is one of ours; and the next try works.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from faults import FULL, READ_ONLY, Killed, contents, disk, files_of_at_most, kill_at, moments, raising
from sklearn.datasets import load_iris
from typer.testing import CliRunner, Result

from pairmargin import (
    LabelingSession,
    MaxMarginClustering,
    OutputError,
    PairMarginError,
    Pairs,
    SessionError,
    SimulatedPerson,
    cli,
    load,
    sample_pairs,
    save,
)
from pairmargin.checkpoint import Checkpoint
from pairmargin.experiments.specs import Cell
from pairmargin.experiments.store import FALSE_POSITIVE_RATES, Row, Store
from pairmargin.experiments.unfinished import Unfinished
from pairmargin.files import FitResult, fit_files, outputs, predict_file, write_result
from pairmargin.report import Report, write
from pairmargin.web.learning import Clustering
from pairmargin.web.store import SAME, AnswerStore
from pairmargin.web.worker import BackgroundLearner
from pairmargin.writing import new_file, new_folder, refusals

X, Y = load_iris(return_X_y=True)
QUICK: dict[str, Any] = {"max_iter": 5, "pretrain_epochs": 2, "n_init": 1, "random_state": 0}
ERRORS = [pytest.param(FULL, id="full"), pytest.param(READ_ONLY, id="read-only")]
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a copy of this process")
needs_limits = pytest.mark.skipif(os.name != "posix", reason="limits the size of files as POSIX does")


@dataclass(frozen=True)
class Work:
    """Something that writes: what is there before, and what writes."""

    before: Callable[[Path], object]
    writes: Callable[[Path], object]
    is_one_file: bool = True  # else a kill may leave some files new and some old


def row(seed: int = 0, accuracy: float = 0.75) -> Row:
    rates = " ".join(f"{rate:.3f}" for rate in FALSE_POSITIVE_RATES)
    numbers = (accuracy, 0.5, 0.25, 0.875, 3, 1.5, 400.5)
    return Row("wine", "kissme", 100, seed, "balanced", *numbers, rates, *["1"] * 6, "2026-01-31")


def with_rows(folder: Path) -> None:
    store = Store(folder)
    with store.writing():
        store.append(row(0))


def with_no_rows(folder: Path) -> None:
    with Store(folder).writing():
        pass


def appended(folder: Path) -> None:
    store = Store(folder)
    with store.writing():
        store.append(row(1))


def replaced(folder: Path) -> None:
    store = Store(folder)
    with store.writing():
        store.replace(row(0, accuracy=1.0))


def noted(folder: Path) -> None:
    Unfinished(folder).note(Cell("wine", "xing", 20, 1, "balanced"), "took more than 600 s")


def kept(folder: Path) -> None:
    checkpoint = Checkpoint(folder / "kept", 1, {"n_clusters": 3}, {"data": b"data"})
    checkpoint.stage("training").save({"weights": [torch.ones(50)]}, {"iteration": 2})


def kept_before(folder: Path) -> None:
    checkpoint = Checkpoint(folder / "kept", 1, {"n_clusters": 3}, {"data": b"data"})
    checkpoint.stage("training").save({"weights": [torch.zeros(50)]}, {"iteration": 1})


def clustering(of: int) -> Clustering:
    places = np.full((6, 2), of, dtype=np.float32)
    pairs = np.zeros((0, 2), dtype=np.int64)
    return Clustering(np.arange(6) % 2, np.full((6, 2), 0.5), places, pairs, pairs, np.zeros(0), np.zeros(0, bool))


def text(name: str) -> Callable[[Path], object]:
    """The file of yesterday."""
    return lambda folder: (folder / name).write_text("of yesterday")


def nothing(folder: Path) -> None:
    """There is nothing before."""


def old_folder(folder: Path) -> None:
    (folder / "out").mkdir()
    for name in ("labels.csv", "mine"):
        (folder / "out" / name).write_text("of yesterday")


def fitted(found: FitResult, folder: Path) -> None:
    """What the command does when it has learned."""
    with new_folder(folder) as beside, refusals(folder):
        write_result(found, beside)


@pytest.fixture(scope="module")
def model() -> MaxMarginClustering:
    return MaxMarginClustering(3, **QUICK).fit(X, pairs=sample_pairs(Y, 30, random_state=0))


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """A fit of a file, ready to be written."""
    folder = tmp_path_factory.mktemp("iris")
    lines = ["a,b,c,d", *(",".join(map(str, each)) for each in X)]
    (folder / "flowers.csv").write_text("\n".join(lines))
    sample_pairs(Y, 30, random_state=0).to_csv(folder / "answers.csv")
    found = fit_files(MaxMarginClustering(3, **QUICK), folder / "flowers.csv", folder / "answers.csv")
    write_result(found, folder)
    return found, folder


@pytest.fixture
def works(model, result, monkeypatch) -> dict[str, Work]:
    """Everything that writes."""
    found, source = result
    told = outputs.record(found)
    monkeypatch.setattr(outputs, "record", lambda result: told)  # which has the time in it
    monkeypatch.setattr("pairmargin.fit_report.page.build_report", lambda *_, **__: "<!doctype html>" + "x" * 99)
    predict = "predict", source / "model.safetensors", source / "flowers.csv", "--out"
    return {
        "save": Work(text("m.safetensors"), lambda folder: save(model, folder / "m.safetensors")),
        "save anew": Work(nothing, lambda folder: save(model, folder / "m.safetensors")),
        "page": Work(text("index.html"), lambda folder: write(Report("Title", "lead", [], [], {}), folder)),
        "pairs": Work(text("p.csv"), lambda folder: Pairs([[0, 1], [1, 2]], [True, False]).to_csv(folder / "p.csv")),
        "fit anew": Work(nothing, lambda folder: fitted(found, folder / "deep" / "out")),
        "fit": Work(old_folder, lambda folder: fitted(found, folder / "out"), is_one_file=False),
        "predict": Work(text("new.csv"), lambda folder: run(*predict, folder / "new.csv")),
        "predict_file": Work(nothing, lambda folder: predict_file(*predict[1:3], folder / "new.csv")),
        "append": Work(with_rows, appended),
        "first cell": Work(with_no_rows, appended),
        "replace": Work(with_rows, replaced),
        "unfinished": Work(lambda folder: Unfinished(folder).note(Cell("iris", "xing", 20, 1, "uniform"), "?"), noted),
        "checkpoint": Work(kept_before, kept),
        "clustering": Work(
            lambda folder: clustering(1).save(folder / "c.safetensors"),
            lambda folder: clustering(2).save(folder / "c.safetensors"),
        ),
    }


NAMES = [
    "save", "save anew", "page", "pairs", "fit anew", "fit", "predict", "predict_file", "append", "first cell",
    "replace", "unfinished", "checkpoint", "clustering",
]  # fmt: skip


class RefusedError(PairMarginError):
    """The command has said so, in a line."""


def run(*arguments: str | Path) -> Result:
    """The command; what it refuses in a line and by its exit code is raised."""
    result = CliRunner().invoke(cli.app, [str(argument) for argument in arguments])
    if isinstance(result.exception, SystemExit):
        assert result.exit_code == 2
        assert re.fullmatch(r"Error: .* cannot be written: .*; choose another place\n", result.stderr), result.stderr
        raise RefusedError(result.stderr)
    if result.exception is not None:
        raise result.exception
    return result


def without_locks(found: dict[str, bytes]) -> dict[str, bytes]:
    """The lock of the cells stays, and says nothing."""
    return {name: content for name, content in found.items() if not name.endswith(".lock")}


def prepared(work: Work, folder: Path) -> tuple[dict[str, bytes], dict[str, bytes], int]:
    """What is there before and after the work, and how many things it writes."""
    first = folder / "undisturbed"
    first.mkdir(parents=True)
    work.before(first)
    old = without_locks(contents(first))
    count = moments(lambda: work.writes(first))
    new = without_locks(contents(first))
    assert new != old
    return old, new, count


def test_all_works_are_tried(works):
    assert list(works) == NAMES


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("name", NAMES)
def test_what_the_disk_refuses_leaves_all_as_it_was(name, error, works, tmp_path):
    work = works[name]
    old, new, count = prepared(work, tmp_path)
    for number in range(1, count + 1):
        folder = tmp_path / str(number)
        folder.mkdir()
        work.before(folder)
        with pytest.raises(PairMarginError), disk(number, raising(error)):
            work.writes(folder)
        assert without_locks(contents(folder)) == old, number
        work.writes(folder)
        assert without_locks(contents(folder)) == new, number


def test_the_command_tells_it_in_a_line(works, result, tmp_path, monkeypatch):
    found, source = result
    monkeypatch.setattr("pairmargin.files.fit_files", lambda *_, **__: found)
    fit = "fit", source / "flowers.csv", "--pairs", source / "answers.csv", "--clusters", "3", "--out", tmp_path / "out"
    count = moments(lambda: run(*fit[:-1], tmp_path / "all" / "out"))
    for number in range(1, count, 9):
        with pytest.raises(RefusedError), disk(number, raising(FULL)):
            run(*fit)
        assert not (tmp_path / "out").exists()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["all"]
    run(*fit)
    assert contents(tmp_path / "out") == contents(tmp_path / "all" / "out")


@pytest.mark.parametrize("name", NAMES)
def test_an_interruption_leaves_all_as_it_was(name, works, tmp_path):
    work = works[name]
    old, new, count = prepared(work, tmp_path)
    for number in range(1, count + 1):
        folder = tmp_path / str(number)
        folder.mkdir()
        work.before(folder)
        with pytest.raises(Killed), disk(number, raising(Killed())):
            work.writes(folder)
        assert without_locks(contents(folder)) == old, number
        work.writes(folder)
        assert without_locks(contents(folder)) == new, number


@needs_fork
@pytest.mark.parametrize("name", NAMES)
def test_a_kill_leaves_old_or_new_and_the_next_one_clears_up(name, works, tmp_path):
    work = works[name]
    old, new, count = prepared(work, tmp_path)
    for number in range(1, count + 1):
        folder = tmp_path / str(number)
        folder.mkdir()
        work.before(folder)
        kill_at(number, lambda folder=folder: work.writes(folder))
        found = without_locks(contents(folder))
        seen = {path: each for path, each in found.items() if not is_hidden(path) and each != b"a folder"}
        if name in ("append", "first cell"):
            before = [row(0)] * (name == "append")
            assert Store(folder).rows() in (before, [*before, row(1)])  # half a line is not read
        elif work.is_one_file:
            assert seen in (old, new), number
        else:
            assert all(each in (old.get(path), new.get(path)) for path, each in seen.items()), number
            assert seen.keys() >= old.keys()
        if seen != new:
            work.writes(folder)
        assert without_locks(contents(folder)) == new, number


def is_hidden(path: str) -> bool:
    return any(part.startswith(".") for part in Path(path).parts)


@needs_limits
@pytest.mark.parametrize("size", [0, 1, 60, 1000, 4096])
@pytest.mark.parametrize("name", NAMES)
def test_a_real_limit_of_the_system(name, size, works, tmp_path):
    work = works[name]
    old, new, _ = prepared(work, tmp_path)
    folder = tmp_path / "limited"
    folder.mkdir()
    work.before(folder)
    refused = False
    with files_of_at_most(size):
        try:
            work.writes(folder)
        except PairMarginError:
            refused = True
    assert refused == (max(map(len, new.values())) > size)
    assert without_locks(contents(folder)) == (old if refused else new)
    if refused:
        work.writes(folder)
        assert without_locks(contents(folder)) == new


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere, Windows asks otherwise")
@pytest.mark.parametrize("name", NAMES)
def test_a_folder_that_is_really_read_only(name, works, tmp_path):
    work = works[name]
    folder = tmp_path / "closed"
    folder.mkdir()
    work.before(folder)
    places = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    old = contents(folder)
    for path in places:
        path.chmod(0o555)
    try:
        with pytest.raises(PairMarginError):
            work.writes(folder)
    finally:
        for path in places:
            path.chmod(0o755)
    assert without_locks(contents(folder)) == without_locks(old)
    work.writes(folder)


# What the next one clears up, and what it leaves alone


@pytest.mark.skipif(os.name != "posix", reason="asks the system whether a writer is alive")
def test_what_a_living_writer_uses_is_left_alone(tmp_path):
    path = tmp_path / "labels.csv"
    with new_file(path) as first:
        first.write_text("first")
        with new_file(path) as second:
            second.write_text("second")
            assert first.exists()
        assert path.read_text() == "second"
    assert path.read_text() == "first"
    with new_folder(tmp_path / "out") as first, new_folder(tmp_path / "out") as second:
        assert first.exists()
        assert second.exists()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["labels.csv", "out"]


@pytest.mark.skipif(os.name != "posix", reason="asks the system whether a writer is alive")
def test_files_of_other_names_are_left_alone(tmp_path):
    others = [
        ".labels.csv",
        ".labels.csv-backup",
        ".labels.csv-0123abcd.txt",
        ".other.csv-0123abcd",
        "labels.csv-0123abcd",
    ]
    for name in others:
        (tmp_path / name).write_text("mine")
    (tmp_path / ".labels.csv-0123abcd").write_text("left by a kill")
    with new_file(tmp_path / "labels.csv") as beside:
        beside.write_text("new")
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted([*others, "labels.csv"])


def test_a_folder_in_the_way_of_one_file_leaves_the_others_as_they_were(tmp_path):
    (tmp_path / "a").write_text("old")
    (tmp_path / "c").mkdir()
    with pytest.raises(OutputError, match="cannot be written"), new_folder(tmp_path) as beside:
        [(beside / name).write_text("new") for name in "abc"]
    assert contents(tmp_path) == {"a": b"old", "c": b"a folder"}


# A fit that keeps how far it has come


def test_a_fit_goes_on_after_every_refusal(tmp_path):
    settings = QUICK | {"checkpoint_every": 1, "checkpoint": tmp_path / "kept"}
    pairs = sample_pairs(Y, 30, random_state=0)
    whole = MaxMarginClustering(3, **(settings | {"checkpoint": None})).fit(X, pairs=pairs)
    count = moments(lambda: MaxMarginClustering(3, **(settings | {"checkpoint": tmp_path / "all"})).fit(X, pairs=pairs))
    steps = range(1, count + 1, max(count // 12, 1))
    for number in steps:  # each goes on from where the last one was refused
        with disk(number, raising(FULL)), suppress(OutputError):
            MaxMarginClustering(3, **settings).fit(X, pairs=pairs)
        assert not [name for name in contents(tmp_path / "kept") if is_hidden(name)]
    last = MaxMarginClustering(3, **settings).fit(X, pairs=pairs)
    assert np.array_equal(last.head_coef_, whole.head_coef_)
    assert np.array_equal(last.labels_, whole.labels_)


# The page's session


def answered(store: AnswerStore) -> None:
    store.add("Ada", "f1", "f2", SAME, key="k1")
    store.add("Ada", "f1", "f3", SAME, key="k2")
    store.undo("Ada", key="k3")
    store.set_fact("names", {"0": "cats"})
    store.add_all([("Bob", "f1", f"g{k}", SAME) for k in range(3)])


def state(path: Path) -> tuple[list[tuple[Any, ...]], Any]:
    """What a log says, but for the times."""
    store = AnswerStore(path)
    try:
        return [astuple(replace(each, at="")) for each in store.log()], store.fact("names")
    finally:
        store.close()


def written(path: Path) -> None:
    store = AnswerStore(path)
    try:
        answered(store)
    finally:
        store.close()


@pytest.mark.parametrize("error", ERRORS)
def test_answers_that_the_disk_refuses_are_all_or_nothing(error, tmp_path):
    count = moments(lambda: written(tmp_path / "whole.sqlite"))
    wanted = state(tmp_path / "whole.sqlite")
    for number in range(1, count + 1):
        path = tmp_path / f"{number}.sqlite"
        with pytest.raises((OutputError, SessionError)), disk(number, raising(error)):
            written(path)
        rows, names = state(path)
        assert (rows, names) in prefixes(*wanted), number
        written_again(path)
        assert state(path) == wanted


def prefixes(rows: list[Any], names: Any) -> list[Any]:
    """What may have been said to be done: rows one by one, the last three at once."""
    return [(rows[:n], None) for n in range(4)] + [(rows[:3], names)]


def written_again(path: Path) -> None:
    """The same requests, as the page sends them again; those that were there count once."""
    store = AnswerStore(path)
    answered(store)
    store.close()


@needs_fork
def test_answers_after_a_kill_at_any_statement(tmp_path):
    count = moments(lambda: written(tmp_path / "whole.sqlite"))
    wanted = state(tmp_path / "whole.sqlite")
    for number in range(1, count + 1):
        path = tmp_path / f"{number}.sqlite"
        kill_at(number, lambda path=path: written(path))
        assert state(path) in prefixes(*wanted), number
        written_again(path)
        assert state(path) == wanted


def taken(store: AnswerStore) -> int:
    """How many answers find room."""
    for number in range(10_000):
        try:
            store.add("Ada", "f1", f"g{number}" * 300, SAME)
        except OutputError:
            return number
    raise AssertionError("the disk is not full")


@needs_limits
def test_answers_on_a_disk_that_is_really_full(tmp_path):
    for size in (0, 4096, 20_000, 30_000, 40_000, 60_000):
        path, said = tmp_path / f"{size}.sqlite", 0
        with files_of_at_most(size), suppress(SessionError, OutputError), closing(AnswerStore(path)) as store:
            said = taken(store)
            assert len(store.log()) == said
        assert said > 0 or size < 40_000
        store = AnswerStore(path)
        assert len(store.log()) == said
        store.add("Ada", "f1", "f2", SAME)
        store.close()


def test_a_session_is_the_same_in_memory_and_on_disk_after_every_refusal(tmp_path):
    def use(session: LabelingSession) -> None:
        session.answer(SAME, (0, 1), who="Ada")
        session.rename(0, "cats")
        session.set_clusters(2)
        session.undo(who="Ada")

    def told(session: LabelingSession) -> tuple[Any, ...]:
        return session.names, session.n_clusters, [each.number for each, _ in session.answers()], len(session.pairs)

    data = X[::10]
    with disk() as watched, LabelingSession(data, 3, folder=tmp_path / "whole") as session:
        watched.count = 0
        use(session)
        count = watched.count
    for number in range(1, count + 1):
        folder = tmp_path / str(number)
        with disk() as watched, LabelingSession(data, 3, folder=folder) as session:
            watched.count, watched.at, watched.happens = 0, number, raising(FULL)
            with pytest.raises(OutputError, match="make room"):
                use(session)
            watched.at = 0
            now = told(session)
        with LabelingSession(data, folder=folder) as session:
            assert told(session) == now, number


def test_a_session_opens_exports_and_learns_after_every_refusal(tmp_path):
    data, labels = X[::5], Y[::5]
    settings = {"max_iter": 5, "pretrain_epochs": 2, "n_init": 1}

    def use(folder: Path) -> None:
        with LabelingSession(data, 3, folder=folder / "session", **settings) as session:
            SimulatedPerson(labels).answer(session, 6, refit_every=6)
            session.export(folder / "out")

    count = moments(lambda: use(tmp_path / "whole"))
    for number in range(1, count + 1, max(count // 8, 1)):
        folder = tmp_path / str(number)
        with pytest.raises(PairMarginError), disk(number, raising(FULL)):
            use(folder)
        assert not (folder / "out").exists(), number
        assert not [name for name in contents(folder) if is_hidden(name)], number
        use(folder)
        assert sorted(contents(folder / "out")) == ["labels.csv", "model.safetensors", "pairs.csv", "report.html"]
        assert load(folder / "out" / "model.safetensors").n_features_in_ == 4


def test_a_process_that_cannot_be_begun_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("subprocess.Popen", lambda *_, **__: pytest.fail("begun without its data"))
    for number in range(1, 9):
        with pytest.raises(OutputError, match="no space left"), disk(number, raising(FULL)):
            BackgroundLearner(X, tmp_path / "out", 0, {}, "default", lambda *_: None)
        assert not list(tmp_path.iterdir()), number
