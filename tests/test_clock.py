"""A clock that goes backwards: order is by number, and nothing breaks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sklearn.datasets import load_iris

from pairmargin import LabelingSession, MaxMarginClustering, SimulatedPerson, sample_pairs
from pairmargin.web import store
from pairmargin.web.store import DIFFERENT, SAME, AnswerStore

X, Y = load_iris(return_X_y=True)


@pytest.fixture
def falling(monkeypatch) -> None:
    """Every look at the calendar is a day before the last one."""

    class Falling(datetime):
        days = 0

        @classmethod
        def now(cls, tz=None):
            cls.days += 1
            return datetime(2026, 1, 31, tzinfo=UTC) - timedelta(days=cls.days)

    monkeypatch.setattr(store, "datetime", Falling)


@pytest.mark.usefixtures("falling")
def test_the_later_answer_counts_whatever_the_clock_says(tmp_path):
    answers = AnswerStore(tmp_path / "answers.sqlite")
    first, second = (answers.add("Ada", "f1", "f2", said)[0] for said in (SAME, DIFFERENT))
    assert second.at < first.at
    assert [each.answer for each in answers.current()] == [DIFFERENT]
    assert answers.undo("Ada") == second
    assert [each.answer for each in answers.current()] == [SAME]
    answers.close()
    again = AnswerStore(tmp_path / "answers.sqlite")
    assert [each.number for each in again.log()] == [1, 2, 3]
    assert [each.answer for each in again.current()] == [SAME]
    again.close()


@pytest.mark.usefixtures("falling")
def test_a_session_asks_learns_and_exports_in_order(tmp_path):
    settings = {"max_iter": 5, "pretrain_epochs": 2, "n_init": 1}
    with LabelingSession(X, 3, folder=tmp_path / "session", **settings) as session:
        SimulatedPerson(Y).answer(session, 12, refit_every=4)
        session.undo()
        counts = [count for count, _ in session.progress.curve]
        assert counts == sorted(counts)
        session.export(tmp_path / "out")
        numbers = [row.number for row, _ in session.answers()]
    header, *lines = (tmp_path / "out" / "pairs.csv").read_text().splitlines()
    times = [line.split(",")[header.split(",").index("at")] for line in lines]
    assert times == sorted(times, reverse=True)  # in the order of their numbers, in which the clock fell
    assert len(times) == len(numbers) == 11
    with LabelingSession(X, folder=tmp_path / "session", **settings) as session:
        assert sorted(row.number for row, _ in session.answers()) == sorted(numbers)


def test_seconds_do_not_follow_the_calendar(tmp_path, monkeypatch):
    moments = iter(range(10**9, 0, -1000))
    monkeypatch.setattr("time.time", lambda: next(moments))
    settings = {"max_iter": 5, "pretrain_epochs": 2, "n_init": 1, "random_state": 0}
    for folder in (tmp_path / "kept", tmp_path / "kept"):  # the second one goes on from the first
        model = MaxMarginClustering(3, **settings, checkpoint=folder).fit(X, pairs=sample_pairs(Y, 30, random_state=0))
        assert all(row["seconds"] >= 0 for row in [*model.history_, *model.pretraining_history_])
