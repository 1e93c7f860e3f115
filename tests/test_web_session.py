"""A session without a page: questions, answers, undo, clusters, people, and the same again tomorrow."""

from __future__ import annotations

import itertools
import os
import pickle
import signal
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import cohen_kappa_score

from pairmargin import (
    InvalidPairsError,
    InvalidParameterError,
    LabelingSession,
    PairMarginError,
    Pairs,
    SessionError,
    SimulatedPerson,
    clustering_accuracy,
    sample_pairs,
)
from pairmargin.web.closure import Closure
from pairmargin.web.learning import Learner, Request
from pairmargin.web.people import kappa
from pairmargin.web.shelves import carried
from pairmargin.web.store import DIFFERENT, SAME, UNSURE

X, Y = load_iris(return_X_y=True)
QUICK = {"n_init": 1, "pretrain_epochs": 5, "max_iter": 30}


def a_session(**options):
    return LabelingSession(X, 3, **(QUICK | options))


def judge(i, j):
    return SAME if Y[i] == Y[j] else DIFFERENT


def test_a_person_who_knows_leads_to_the_right_clusters():
    session = a_session()
    SimulatedPerson(Y).answer(session, 40, refit_every=20)
    assert clustering_accuracy(Y, session.labels) > 0.93
    assert session.progress.answers == 40
    assert session.progress.fitted == 40
    assert session.progress.inferred > 0


def test_same_seed_and_answers_give_the_same_questions():
    asked = []
    for _ in range(2):
        session = a_session(random_state=3)
        SimulatedPerson(Y).answer(session, 10, refit_every=5)
        asked.append(session.pairs.index.tolist())
    assert asked[0] == asked[1]


def test_questions_stay_until_they_are_answered_and_are_not_asked_twice():
    session = a_session()
    first = session.next_pairs(3)
    assert session.next_pairs(3).tolist() == first.tolist()
    session.answer(UNSURE)
    after = session.next_pairs(3)
    assert after[:2].tolist() == first[1:].tolist()
    assert first[0].tolist() not in after.tolist()


def test_no_question_follows_from_the_answers():
    session = a_session()
    closure, seen = Closure(), set()
    for _ in range(60):
        i, j = session.next_pairs(1)[0].tolist()
        assert closure.follows(i, j) is None
        assert (i, j) not in seen
        seen.add((i, j))
        session.answer(judge(i, j))
        closure.add(i, j, Y[i] == Y[j])


def test_it_ends_when_nothing_is_left_to_ask():
    session = LabelingSession([[0.0], [0.1], [5.0], [5.1]], 2)
    n = 0
    while len(pairs := session.next_pairs()):
        i, j = pairs[0].tolist()
        session.answer(SAME if i // 2 == j // 2 else DIFFERENT)
        n += 1
    assert n <= 5
    assert session.progress.answers + session.progress.inferred == 6
    with pytest.raises(SessionError, match="no open question"):
        session.answer(SAME)


def test_undo_takes_back_and_asks_again():
    session = a_session()
    first, second = session.next_pairs(2).tolist()
    session.answer(SAME)
    session.answer(SAME)
    assert session.undo().answer == SAME
    assert session.progress.answers == 1
    assert session.next_pairs(1)[0].tolist() == second
    session.undo()
    assert session.next_pairs(2).tolist() == [first, second]
    assert session.undo() is None


def test_an_answer_may_be_changed_and_deleted():
    session = a_session()
    session.answer(SAME, (1, 0))
    session.answer(DIFFERENT, (0, 1))
    assert session.pairs.cannot_link.tolist() == [[0, 1]]
    assert session.progress.inferred == 0
    session.answer("deleted", (0, 1))
    assert len(session.pairs) == 0


def test_wrong_input_is_refused():
    with pytest.raises(InvalidParameterError, match=r"overlap=2 must be between 0 and 1"):
        a_session(overlap=2)
    with pytest.raises(InvalidParameterError, match="n_clusters=151 must be from 1 to 150"):
        LabelingSession(X, 151)
    with pytest.raises(InvalidParameterError, match=r"X has shape \(1, 2\)"):
        LabelingSession([[1.0, 2.0]])
    session = a_session()
    for pair in ((0, 0), (0, 150), (-1, 3), (1, 2, 3)):
        with pytest.raises(InvalidPairsError, match="two different row numbers from 0 to 149"):
            session.answer(SAME, pair)
    with pytest.raises(InvalidParameterError, match="cluster=9 must be from 0 to"):
        session.rename(9, "setosa")
    with pytest.raises(InvalidParameterError, match="at most 100 letters"):
        session.rename(0, "x" * 101)


def test_a_folder_opens_again(tmp_path):
    with a_session(folder=tmp_path / "s") as session:
        SimulatedPerson(Y, name="Ada").answer(session, 12)
        session.rename(1, "setosa")
        told = session.pairs, session.labels, session.progress, session.names
    with LabelingSession(X, folder=tmp_path / "s") as again:
        assert again.pairs == told[0]
        assert again.n_clusters == 3
        np.testing.assert_array_equal(again.labels, told[1])
        assert (again.progress, again.names) == told[2:]
        assert again.people == {"Ada": 12}


def test_other_data_are_refused(tmp_path):
    a_session(folder=tmp_path).close()
    with pytest.raises(SessionError, match="150 items then, 149 now"):
        LabelingSession(X[:-1], 3, folder=tmp_path)
    with pytest.raises(SessionError, match="or other contents"):
        LabelingSession(X + 1, 3, folder=tmp_path)


def test_a_damaged_clustering_is_made_again(tmp_path):
    with a_session(folder=tmp_path) as session:
        session.answer(SAME, (0, 1))
        session.refit()
    (tmp_path / "clustering.safetensors").write_bytes(b"no more")
    with a_session(folder=tmp_path) as again:
        assert len(again.labels) == 150
        assert len(again.pairs) == 1


class Trap:
    """What leaves a trace when it is unpickled."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return self.trace.touch, ()


def test_nothing_in_the_folder_is_unpickled(tmp_path):
    folder, trace = tmp_path / "session", tmp_path / "trace"
    with a_session(folder=folder) as session:
        session.answer(SAME, (0, 1))
    for name in ("clustering.safetensors", "model.safetensors"):
        (folder / name).write_bytes(pickle.dumps(Trap(trace)))
    with a_session(folder=folder) as again:
        assert len(again.pairs) == 1
        with pytest.raises(PairMarginError):
            again.export(tmp_path / "out")
    assert not trace.exists()
    pickle.loads(pickle.dumps(Trap(trace)))
    assert trace.exists()  # the trap would have worked


def test_people_are_not_asked_the_same(tmp_path):
    session = a_session()
    ada, bob = (set(map(tuple, session.next_pairs(20, who=who).tolist())) for who in ("Ada", "Bob"))
    assert len(ada) == len(bob) == 20
    assert not ada & bob


def test_people_are_asked_the_same_if_that_is_wanted():
    session = a_session(overlap=1.0)
    i, j = session.next_pairs(who="Ada")[0].tolist()
    session.answer(SAME, who="Ada")
    assert session.next_pairs(who="Bob")[0].tolist() == [i, j]
    session.answer(DIFFERENT, who="Bob")
    assert session.disagreements == [(i, j)]
    assert len(session.pairs) == 0
    session.answer(DIFFERENT, (i, j), who="Cy")
    assert session.pairs.cannot_link.tolist() == [[i, j]]


def test_kappa_is_that_of_scikit_learn():
    rng = np.random.RandomState(0)
    said = rng.choice([SAME, DIFFERENT, UNSURE], size=(200, 2), p=[0.3, 0.5, 0.2])
    said[:100, 1] = said[:100, 0]
    votes = {(0, k + 1): {"Ada": str(a), "Bob": str(b)} for k, (a, b) in enumerate(said)}
    sure = (said != UNSURE).all(1)
    assert kappa(votes) == pytest.approx(cohen_kappa_score(*said[sure].T))
    assert kappa({(0, 1): {"Ada": SAME}}) is None
    assert kappa({(0, 1): {"Ada": SAME, "Bob": SAME}}) is None


@pytest.mark.parametrize("seed", range(5))
def test_the_closure_is_that_of_pairs(seed):
    rng = np.random.RandomState(seed)
    labels = rng.randint(4, size=30)
    closure, index = Closure(), np.array(list(itertools.combinations(range(30), 2)))
    index = index[rng.choice(len(index), 40, replace=False)]
    for i, j in index.tolist():
        assert closure.add(i, j, bool(labels[i] == labels[j]))
    closed = Pairs(index, labels[index[:, 0]] == labels[index[:, 1]]).closure()
    assert closure.n_known == len(closed)
    assert all(closure.follows(i, j) is bool(same) for (i, j), same in zip(closed.index, closed.same, strict=True))


def test_a_contradiction_changes_nothing():
    closure = Closure()
    assert closure.add(0, 1, True)
    assert closure.add(1, 2, True)
    assert not closure.add(0, 2, False)
    assert closure.follows(0, 2) is True


def test_moving_an_item_becomes_answers():
    session = a_session()
    session.refit()
    item, target = 0, (session.labels[0] + 1) % 3
    session.move(item, target)
    assert {int(pair) for pair in session.pairs.index[:, 0]} == {0}
    other = session.pairs.must_link[0][1]
    assert session.labels[other] == target
    session.refit(fresh=True)
    assert session.labels[item] == session.labels[other]


def test_merging_and_splitting_change_the_number_of_clusters():
    session = a_session()
    session.refit()
    session.merge(0, 1)
    assert (session.n_clusters, len(session.pairs.must_link)) == (2, 1)
    session.refit()
    assert len(np.unique(session.labels)) <= 2
    cluster = int(np.bincount(session.labels).argmax())
    session.split(cluster)
    assert (session.n_clusters, len(session.pairs.cannot_link)) == (3, 1)


def test_clusters_keep_their_numbers_when_learning_starts_anew():
    session = a_session()
    SimulatedPerson(Y).answer(session, 30, refit_every=30)
    before = session.labels.copy()
    session.refit(fresh=True)
    assert (before == session.labels).mean() > 0.9


def test_wrong_answers_come_first_in_the_list_and_stay_there():
    session = a_session()
    pairs = sample_pairs(Y, 120, random_state=0)
    for pair in pairs.index:
        session.answer(judge(*pair), tuple(pair))
    wrong = [(0, 60), (1, 110), (2, 70), (3, 120), (4, 80), (5, 130)]  # one kind of iris is unlike the others
    for pair in wrong:
        session.answer(SAME, pair)
    for fresh in (True, False):
        session.refit(fresh=fresh)
        rows = session.answers()
        first = {tuple(sorted((int(row.a), int(row.b)))) for row, doubt in rows[:13]}
        assert len(first & set(wrong)) >= 5  # of 126 answers, in the first tenth
        assert min(doubt for row, doubt in rows[:5]) > 0.5
        assert np.median([doubt for _, doubt in rows]) < 0.1
        assert clustering_accuracy(Y, session.labels) > 0.9
        session.answer(judge(7, 149), (7, 149))


def test_answers_go_to_a_file_and_come_back(tmp_path):
    session = a_session()
    SimulatedPerson(Y, name="Ada").answer(session, 15, refit_every=15)
    session.answer(UNSURE, (0, 149))
    paths = session.export(tmp_path / "out")
    assert {path.name for path in paths} == {"labels.csv", "pairs.csv", "model.safetensors", "report.html"}
    other = a_session()
    assert other.import_pairs(tmp_path / "out" / "pairs.csv") == 15
    assert other.pairs == session.pairs
    assert other.people == {"Ada": 15}


def test_a_file_that_is_taken_over_again_undoes_nothing(tmp_path):
    path = tmp_path / "known.csv"
    path.write_text("a,b,same\n0,1,true\n0,60,true\n")
    session = a_session()
    assert session.import_pairs(path) == 2
    assert session.people == {"known": 2}
    session.answer(DIFFERENT, (0, 60), who="known")
    session.answer("deleted", (0, 1), who="known")
    assert session.import_pairs(path) == 0
    assert session.pairs.cannot_link.tolist() == [[0, 60]]
    assert len(session.pairs) == 1


def test_progress_tells_what_was_expected():
    session = a_session()
    assert session.progress.agreement is None
    i, j = 0, 1
    chance = session.chance(i, j)
    session.answer(SAME if chance > 0.5 else DIFFERENT, (i, j))
    assert session.progress.agreement == 1.0
    assert 0 <= session.progress.expected_gain <= 5
    assert 0 < session.progress.sureness <= 1


def test_a_simulated_person_errs_as_often_as_asked():
    person = SimulatedPerson([0] * 500, error_rate=0.2, unsure_rate=0.1, random_state=0)
    said = [person.judge(0, k) for k in range(500)]
    assert said.count(DIFFERENT) / 500 == pytest.approx(0.18, abs=0.05)
    assert said.count(UNSURE) / 500 == pytest.approx(0.1, abs=0.04)
    with pytest.raises(InvalidParameterError, match="error_rate=2"):
        SimulatedPerson([0], error_rate=2)


def test_learning_goes_on_in_another_process(tmp_path):
    with a_session(folder=tmp_path, background=True) as session:
        for i, j in session.next_pairs(10).tolist():
            session.answer(judge(i, j), (i, j))
        session.refit()
        assert session.progress.fitted == 10
        assert not session.is_learning
        assert session.progress.curve[-1][0] == 10
        session.refit(fresh=False)
        assert not session.clustering.is_fresh


def test_what_fails_in_the_other_process_is_told(tmp_path):
    with (
        LabelingSession(X, 3, folder=tmp_path, background=True, max_iter=-1) as session,
        pytest.raises(SessionError, match="learning has failed: InvalidParameterError: max_iter"),
    ):
        session.refit()


def test_nothing_in_the_current_folder_is_imported(tmp_path, monkeypatch):
    here, trace = tmp_path / "here", tmp_path / "trace"
    here.mkdir()
    (here / "queue.py").write_text(f"open({str(trace)!r}, 'w').close()\nfrom _queue import SimpleQueue\n")
    monkeypatch.chdir(here)
    with a_session(folder=tmp_path / "session", background=True) as session:
        session.refit()
    assert not trace.exists()


def test_names_stay_with_their_items():
    before = np.array([0, 0, 1, 1, 1, 2, 2, 3, 3])
    after = np.array([0, 0, 0, 0, 0, 1, 1, 2, 2])  # 0 and 1 were merged
    names = {0: "small", 1: "large", 2: "red", 3: "blue"}
    assert carried(names, before, after) == {0: "large", 1: "red", 2: "blue"}


def test_numbers_and_doubts_outlive_the_process(tmp_path):
    with a_session(folder=tmp_path) as session:
        SimulatedPerson(Y).answer(session, 30, refit_every=30)
        before = session.clustering
    with a_session(folder=tmp_path) as again:
        again.refit(fresh=True)
        assert (before.cluster == again.labels).mean() > 0.9
    learner = Learner(X, 0, {})
    learner.go_on_with(replace(before, doubt=np.full(30, 0.9)))
    np.testing.assert_allclose(learner._trust_in(again.pairs), 0.1)


def test_a_number_that_changes_while_it_learns_is_not_lost():
    session = a_session()
    session.set_clusters(5)
    request = Request(session.pairs, session._memory.unsettled(), 4, fresh=True)
    session._take(request, session._learner.learn(request), "")
    assert session._is_number_new()


def test_corrections_and_undo_are_learned_too(tmp_path):
    with a_session(folder=tmp_path, background=True) as session:
        session.refit()
        n = session._asked
        for k in range(1, 6):
            session.answer(SAME, (0, k))
            session.answer(DIFFERENT, (0, k))
        assert session._asked == n + 1
        session.refit()
        for _ in range(10):
            session.undo()
        assert session._asked == n + 3


def test_an_answer_is_kept_when_the_process_that_learns_has_died(tmp_path):
    with a_session(folder=tmp_path, background=True) as session:
        session.refit()
        session._background._process.kill()
        session._background._reader.join()
        for k in range(1, 11):
            session.answer(SAME, (0, k))
        assert len(session.pairs) == 10
        session.refit()  # in a process that has begun anew
        assert (session.progress.fitted, session.is_learning) == (10, False)


def test_a_process_that_dies_while_it_learns_is_told_and_begins_anew(tmp_path):
    with a_session(folder=tmp_path, background=True) as session:
        session.refit()
        os.kill(session._background._process.pid, signal.SIGSTOP)  # so that it has not ended before it is killed
        session.refit(wait=False)
        session._background._process.kill()
        session._background._reader.join()
        assert (session.is_learning, "has ended" in session.error) == (False, True)
        session.refit()
        assert session.error == ""


def test_another_number_of_clusters_is_learned_when_a_session_is_opened(tmp_path):
    with a_session(folder=tmp_path, background=True) as session:
        session.refit()
        k = session.n_clusters
    with a_session(folder=tmp_path, background=True) as same:
        assert not same.is_learning
    with LabelingSession(X, k + 1, folder=tmp_path, background=True, **QUICK) as other:
        assert other.is_learning
        other.refit()
        assert other.clustering.is_fresh
        assert other.clustering.chances.shape[1] == k + 1


def test_answers_of_several_people_keep_their_names_in_any_order(tmp_path):
    path = tmp_path / "team.csv"
    path.write_text("a,b,same,who\n4,5,true,Zoe\n0,1,false,Ada\n1,0,false,Bob\n0,1,true,Zoe\n")
    session = a_session()
    assert session.import_pairs(path) == 4
    said = {(row.a, row.b, row.who, row.answer) for row, _ in session.answers()}
    assert said == {
        ("4", "5", "Zoe", SAME),
        ("0", "1", "Ada", DIFFERENT),
        ("0", "1", "Bob", DIFFERENT),
        ("0", "1", "Zoe", SAME),
    }
