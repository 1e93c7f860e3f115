"""What is run: the cells of every experiment, what a method is given, and that every method can take it."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pairmargin import DatasetError, ExperimentError, Pairs, datasets, load_dataset, run_experiment
from pairmargin.experiments import specs
from pairmargin.experiments.specs import (
    COMPARED,
    EXPERIMENTS,
    METHODS,
    PRINTED,
    RARER_PAIRS,
    UCI,
    Cell,
    can_be_drawn,
    draw,
    select,
)

WINE = Cell("wine", "pairmargin", 100, 3)


# Cells


def test_every_figure_has_five_numbers_of_pairs_and_five_draws_and_the_table_ten() -> None:
    assert list(EXPERIMENTS) == ["table2", "fig1", "fig2", "fig3", "fig4", "fig5", "parts", "leaderboard", "questions"]
    for name, experiment in EXPERIMENTS.items():
        n_numbers, n_seeds = {"table2": (1, 10), "fig1": (1, 10), "parts": (2, 5)}.get(name, (5, 5))
        assert all(len(numbers) >= n_numbers for numbers in experiment.n_pairs.values())
        assert experiment.seeds >= n_seeds


def test_methods_of_every_kind_stand_in_the_comparisons() -> None:
    for name in ("table2", "fig1", "fig2", "fig5"):
        assert set(PRINTED) | {"pairmargin", "k-means", "cop-k-means", "spectral"} <= set(EXPERIMENTS[name].methods)
    assert {METHODS[name].kind for name in COMPARED} == {"ours", "rival", "peer"}


def test_cells_are_the_product_of_what_an_experiment_names() -> None:
    fig5 = EXPERIMENTS["fig5"]
    cells = fig5.cells()
    assert len(set(cells)) == len(cells) == 5 * 5 * (len(COMPARED) + 2)
    assert {cell.n_pairs for cell in fig5.cells(quick=True)} == {500, 2000}
    assert {cell.seed for cell in fig5.cells(quick=True)} == {0}
    assert {cell.seed for cell in fig5.cells(seeds=7, quick=True)} == set(range(7))


def test_the_figure_of_the_table_s_cells_needs_no_more_of_them() -> None:
    assert set(EXPERIMENTS["fig1"].cells()) == set(EXPERIMENTS["table2"].cells())


def test_the_leaderboard_is_every_method_on_every_data_set_drawn_in_both_ways() -> None:
    board, parts = EXPERIMENTS["leaderboard"], EXPERIMENTS["parts"]
    assert set(board.datasets) == set(parts.datasets) == {*UCI, "reuters", "mnist", "coil20", "coil100", "digits"}
    assert set(board.methods) == set(COMPARED) == {name for name in METHODS if METHODS[name].kind != "variant"}
    assert board.n_pairs["coil100"] == (50, 100, 200, 500, 1000, 2000, 5000)
    assert board.n_pairs["wine"] == board.n_pairs["glass"] == (50, 100, 200, 500, 1000, 2000)
    assert len(board.cells()) == ((7 + 6) * 20 + (6 + 7 * 7) * 5) * 2 * len(COMPARED)  # Sonar, Glass; Wine and the rest
    assert len(board.cells(seeds=3)) == (8 * 7 + 2 * 6) * 2 * 3 * len(COMPARED)
    quick = board.cells(quick=True)
    assert {(cell.drawing, cell.n_pairs, cell.seed) for cell in quick} == {
        (drawing, n, 0) for drawing in ("balanced", "uniform") for n in (50, 500)
    }
    assert {cell.n_pairs for cell in parts.at(1).cells()} == {300, 1000}


def test_other_experiments_draw_half_and_half() -> None:
    others = [each for name, each in EXPERIMENTS.items() if name not in ("leaderboard", "questions")]
    assert {cell.drawing for each in others for cell in each.cells()} == {"balanced"}


@pytest.mark.parametrize("dataset", sorted(RARER_PAIRS.keys() - {"mnist", "reuters"}))  # which have millions
def test_pairs_of_the_rarer_kind_are_counted_right(dataset: str) -> None:
    try:
        _, y = load_dataset(dataset, return_X_y=True)
    except DatasetError:
        pytest.skip(f"the files of {dataset} are not here")
    sizes = np.unique(y, return_counts=True)[1]
    n_same = int((sizes * (sizes - 1) // 2).sum())
    assert RARER_PAIRS[dataset] == min(n_same, len(y) * (len(y) - 1) // 2 - n_same)


def test_a_draw_takes_half_of_the_rarer_pairs_at_most() -> None:
    assert can_be_drawn("wine", 5324 // 2)  # as many are held out
    assert not can_be_drawn("wine", 5324 // 2 + 1)
    assert can_be_drawn("coil20", 51_120 - 1000)  # images are scored on a thousand
    assert not can_be_drawn("coil20", 51_121 - 1000)
    assert all(
        can_be_drawn(d, n) for each in EXPERIMENTS.values() for d, numbers in each.n_pairs.items() for n in numbers
    )


def test_all_are_all_and_a_wrong_name_is_refused() -> None:
    assert select("all") == list(EXPERIMENTS.values())
    assert select("fig3") == [EXPERIMENTS["fig3"]]
    with pytest.raises(ExperimentError, match=r"no experiment 'tabel2' \(did you mean 'table2'\?\); there are table2"):
        select("tabel2")


# What a method is given


def test_a_draw_depends_on_the_seed_alone() -> None:
    one, same = draw(WINE), draw(Cell("wine", "itml", 100, 3))
    for ours, theirs in ((one.train, same.train), (one.test, same.test)):
        np.testing.assert_array_equal(ours.index, theirs.index)
    other = draw(Cell("wine", "pairmargin", 100, 4))
    assert set(map(tuple, one.train.index)) != set(map(tuple, other.train.index))


def test_half_of_the_answers_are_held_out_and_none_is_given_twice() -> None:
    task = draw(WINE)
    assert (len(task.train), len(task.test), task.n_clusters) == (100, 100, 3)
    assert not set(map(tuple, task.train.index)) & set(map(tuple, task.test.index))
    i, j = task.train.index.T
    np.testing.assert_array_equal(task.y[i] == task.y[j], task.train.same)


def digest(train: Pairs, test: Pairs) -> str:
    return hashlib.sha256(b"".join(a.tobytes() for p in (train, test) for a in (p.index, p.same))).hexdigest()[:16]


@pytest.mark.parametrize(
    ("dataset", "seed", "wanted"),
    [("wine", 3, "a2d174cd1397ff3e"), ("digits", 4, "5c49fc5460703bbd")],
)
def test_balanced_answers_are_those_of_the_results_that_are_there(dataset: str, seed: int, wanted: str) -> None:
    task = draw(Cell(dataset, "pairmargin", 100, seed))
    assert digest(task.train, task.test) == wanted


@pytest.mark.parametrize(("dataset", "share"), [("wine", 0.338), ("digits", 0.0995)])
def test_uniform_answers_come_as_they_are_and_are_scored_on_the_same_pairs(dataset: str, share: float) -> None:
    cells = [Cell(dataset, "pairmargin", 1000, seed, "uniform") for seed in range(10)]
    tasks = [draw(cell) for cell in cells]
    assert np.mean([task.train.same.mean() for task in tasks]) == pytest.approx(share, abs=0.015)
    for cell, task in zip(cells, tasks, strict=True):
        assert (len(task.train), task.test.same.mean()) == (1000, 0.5)
        assert task.test == draw(replace(cell, drawing="balanced")).test
        assert task.train == draw(replace(cell, method="itml")).train
        assert not set(map(tuple, task.train.index)) & set(map(tuple, task.test.index))
        i, j = task.train.index.T
        np.testing.assert_array_equal(task.y[i] == task.y[j], task.train.same)
    assert tasks[0].train != tasks[1].train


def test_a_cell_in_words() -> None:
    assert str(WINE) == "wine, pairmargin, 100 pairs, seed 3"
    assert str(replace(WINE, drawing="uniform")) == "wine, pairmargin, 100 uniform pairs, seed 3"


@pytest.mark.parametrize("dataset", ["mnist", "coil20"])
def test_images_are_scored_on_a_thousand_pairs(dataset: str) -> None:
    try:
        task = draw(Cell(dataset, "pairmargin", 200, 1))
    except DatasetError:
        pytest.skip(f"the files of {dataset} are not here")
    assert (len(task.train), len(task.test)) == (200, 1000)
    assert task.X.dtype == np.float32
    if dataset == "mnist":
        X, y = load_dataset("mnist", return_X_y=True)
        rows = np.random.RandomState(1).choice(60_000, 5000, replace=False)
        np.testing.assert_array_equal(task.y, y[rows])
        np.testing.assert_array_equal(task.X, X[rows])


def test_files_are_fetched_before_any_cell_is_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAIRMARGIN_DATA", str(tmp_path / "nowhere"))

    def no_network(*_: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr(datasets, "_download", no_network)
    monkeypatch.setattr(specs, "draw", lambda cell: pytest.fail("a cell was computed"))
    with pytest.raises(DatasetError, match=r"glass cannot be downloaded: no network; you can put its files"):
        run_experiment("table2", results=tmp_path, datasets=["glass", "wine"], quick=True, n_jobs=1)
    assert not list(tmp_path.glob("cells/*.csv"))


def test_metrics_of_wide_data_are_learned_on_principal_components() -> None:
    rng, one = np.random.default_rng(0), draw(WINE)
    for n_columns, n_kept in ((400, 400), (401, 100)):
        X = rng.normal(size=(len(one.y), n_columns))
        assert specs.metric_inputs(replace(one, X=X)).shape == (len(X), n_kept)


def test_a_pair_agrees_if_its_cluster_is_one() -> None:
    pairs = Pairs([(0, 1), (1, 2)], [True, True])
    assert specs.agreement(np.array([1, 1, 0]), pairs).tolist() == [1.0, 0.0]


# Methods


@pytest.mark.parametrize("name", METHODS)
def test_every_method_clusters_and_scores(name: str) -> None:
    task = draw(WINE)
    labels, scores = METHODS[name].cluster(task)
    assert labels.shape == task.y.shape
    assert set(np.unique(labels)) <= set(range(3))
    assert scores.shape == (100,)
    assert scores[task.test.same].mean() > scores[~task.test.same].mean()


def test_the_paper_s_layers_are_those_of_its_section_4() -> None:
    assert specs.PAPER_LAYERS["mnist"] == (400, 200, 100)
    assert {specs.PAPER_LAYERS[name] for name in UCI} == {(64,), (100,)}
