"""The experiment that lets strategies ask: its curves, its answers and its cells."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs

from pairmargin import Pairs, run_experiment
from pairmargin.experiments import questions, questions_report, specs
from pairmargin.experiments.specs import ASKED, EXPERIMENTS, Cell
from pairmargin.experiments.store import Store
from pairmargin.query import STRATEGIES, View


def test_every_strategy_is_asked() -> None:
    assert set(ASKED.values()) == set(STRATEGIES)
    plan = EXPERIMENTS["questions"]
    assert {cell.drawing for cell in plan.cells()} == set(ASKED)
    assert {n for counts in plan.n_pairs.values() for n in counts} == {25, 50, 100, 250, 500, 1000}


def test_a_curve_is_computed_in_one_go_and_drawn_cells_stand_alone() -> None:
    asked = [Cell("wine", "pairmargin", n, 0, "asked-npu") for n in (100, 25)]
    drawn = [Cell("wine", "pairmargin", n, 0) for n in (25, 100)]
    assert questions.curves([asked[0], drawn[0], asked[1], drawn[1]]) == [asked[::-1], [drawn[0]], [drawn[1]]]


def test_models_are_fitted_at_every_count_and_half_way() -> None:
    assert questions.stops([50, 25, 100]) == [12, 25, 37, 50, 75, 100]
    assert questions.stops([1]) == [1]


def test_answers_are_those_of_the_labels_and_end_when_all_is_known() -> None:
    X, y = make_blobs(10, centers=2, random_state=0)
    view = View.of_data(X, 2, 0)
    pairs = questions.answered(view, Pairs.empty(), y, 5, "random", np.random.RandomState(0))
    assert len(pairs) == 5
    np.testing.assert_array_equal(pairs.same, y[pairs.index[:, 0]] == y[pairs.index[:, 1]])
    pairs = questions.answered(view, pairs, y, 45, "random", np.random.RandomState(0))
    assert len(pairs) < 45
    assert len(pairs.closure()) == 45


def test_a_run_stores_every_cell_of_a_curve_and_is_the_same_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = specs.replace(EXPERIMENTS["questions"], n_pairs={"wine": (4, 8)}, drawings=("asked-default",))
    monkeypatch.setattr(specs, "EXPERIMENTS", {"questions": plan})
    monkeypatch.setattr(specs, "QUESTIONS", plan.n_pairs)
    frame = run_experiment("questions", results=tmp_path / "one", seeds=1, n_jobs=1)
    assert frame["n_pairs"].tolist() == [4, 8]
    assert frame["accuracy"].min() > 0.9
    (cell,) = (cell for cell in Store(tmp_path / "one").done() if cell.n_pairs == 8)
    monkeypatch.setattr(plan.__class__, "cells", lambda *_: [cell])
    alone = run_experiment("questions", results=tmp_path / "two", seeds=1, n_jobs=1)
    assert frame["auc"].isna().all()  # a strategy may have asked about the pairs held out
    columns = ["n_pairs", "accuracy", "ari"]
    assert alone[columns].to_numpy().tolist() == frame[columns][1:].to_numpy().tolist()


def test_curves_and_table_tell_who_asks_best(tmp_path: Path) -> None:
    cells = [(d, n, seed) for d in ("asked-default", "asked-npu") for n in (100, 250) for seed in (0, 1)]
    rows = [("wine", "pairmargin", n, seed, d, 0.9 + 0.05 * (d == "asked-default")) for d, n, seed in cells]
    rows += [
        ("wine", "cobras", 100, 0, "balanced", 0.97),
        ("wine", "cobras", 250, 0, "balanced", 0.95),
        ("wine", "pairmargin", 100, 0, "balanced", 1.0),
    ]
    frame = pd.DataFrame(rows, columns=["dataset", "method", "n_pairs", "seed", "drawing", "accuracy"])
    asked = questions_report.answers_asked_for(frame)
    assert len(asked) == 10  # not the drawn ones
    others = frame.assign(dataset="sonar")[frame["drawing"] != "asked-default"]
    assert len(questions_report.answers_asked_for(pd.concat([frame, others]))) == 10  # nor where we have not asked
    table = questions_report.table(asked)
    assert table.columns[1:4] == ["our default", "NPU", "COBRAS, its own clusters"]
    assert table.rows == [
        ["Wine, 100", "95.0", "90.0", "97.0", "–"],
        ["Wine, 250", "95.0", "90.0", "95.0", "–"],
        ["Wine, 500", "–", "–", "–", "–"],
    ]
    assert table.best == {(0, 3), (1, 1), (1, 3)}
    png, pdf = questions_report.save(asked, tmp_path)
    assert png.stat().st_size > 10_000
    assert pdf.exists()


@pytest.mark.parametrize(
    ("accuracy", "answers"),
    [(0.5, "≤ 25"), (0.6, "≤ 25"), (0.7, "38"), (0.8, "50"), (0.75, "44"), (0.9, "–"), (np.nan, "–")],
)
def test_how_many_answers_make_an_accuracy(accuracy: float, answers: str) -> None:
    curve = pd.Series([0.6, 0.8, 0.7], index=[25, 50, 100])
    assert questions_report.answers_for(accuracy, curve) == answers
    assert questions_report.answers_for(accuracy, curve[:0]) == "–"
