"""`MaxMarginClustering` as a user meets it."""

from __future__ import annotations

import copy
import logging
import pickle
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine, make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from pairmargin import (
    ConflictingPairsError,
    FewDistinctPointsWarning,
    InvalidDataError,
    InvalidPairsError,
    InvalidParameterError,
    MaxMarginClustering,
    Pairs,
    clustering_accuracy,
    neighbours,
    sample_pairs,
    stages,
)
from pairmargin.labelling import asked_labels
from pairmargin.stages import FEWEST, SCREEN, Stages
from pairmargin.trust import BELIEVED

QUICK = {"n_init": 1, "pretrain_epochs": 5, "max_iter": 30, "random_state": 0}


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True)


@pytest.fixture(scope="module")
def wine_pairs(wine):
    return sample_pairs(wine[1], 100, random_state=0)


@pytest.fixture
def trainings(monkeypatch):
    """Every training of a fit, in order: its ``max_iter``, the number of answers, and its history."""
    seen = []
    train = stages.train

    def noted(network, x, problem, steps, watch):
        history = train(network, x, problem, steps, watch)
        seen.append((watch.max_iter, problem.n_answers, history))
        return history

    monkeypatch.setattr(stages, "train", noted)
    return seen


@parametrize_with_checks(
    [
        MaxMarginClustering(),
        MaxMarginClustering(hidden_layer_sizes=(), n_init=1),
        MaxMarginClustering.paper(hidden_layer_sizes=20),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# What it learns


@pytest.mark.parametrize("make", [MaxMarginClustering, MaxMarginClustering.paper])
def test_learns_wine_from_a_hundred_answers_over_several_seeds(make, wine):
    X, y = wine
    accuracies = [
        clustering_accuracy(y, make(3, random_state=seed).fit(X, pairs=sample_pairs(y, 100, random_state=seed)).labels_)
        for seed in range(3)
    ]
    assert np.mean(accuracies) > 0.96


def test_the_preset_has_the_settings_of_section_4_and_can_be_changed():
    model = MaxMarginClustering.paper(7, 64, random_state=3)
    settings = model.get_params()
    assert (settings["weight_penalty"], settings["free_weight"], settings["layer_learning_rate"]) == (0.02, 1, 0.01)
    assert (settings["solver"], settings["cd_steps"], settings["hidden_layer_sizes"]) == ("subgradient", 1, 64)
    assert (settings["n_clusters"], settings["random_state"]) == (7, 3)
    beyond = "neighbour_weight", "balance_weight", "robust", "even_out", "n_init", "answer_price"  # not in the paper
    assert [settings[name] for name in beyond] == [0, 0, False, False, 1, 0]
    letter = MaxMarginClustering.paper(7, init="random", step_offset=0)
    assert (letter.init, letter.step_offset) == ("random", 0)


def test_answers_help(wine):
    X, y = wine
    X = X.copy()
    X[:, :5] = 30 * np.random.RandomState(0).standard_normal((len(X), 5)) * X.std()  # noise that k-means follows
    model = MaxMarginClustering(3, hidden_layer_sizes=(), random_state=0)
    without = clustering_accuracy(y, model.fit(X).labels_)
    with_answers = clustering_accuracy(y, model.fit(X, pairs=sample_pairs(y, 400, random_state=0)).labels_)
    assert with_answers > without + 0.02


@pytest.mark.parametrize("sizes", [(), (10,), (12, 8, 6), 10, [10], np.array([10])])
def test_any_number_of_layers(sizes, wine, wine_pairs):
    X, y = wine
    model = MaxMarginClustering(3, sizes, random_state=0).fit(X, pairs=wine_pairs)
    widths = np.atleast_1d(sizes).astype(int).tolist() if not isinstance(sizes, tuple) else list(sizes)
    assert [w.shape[1] for w in model.coefs_] == widths
    assert model.transform(X).shape == (len(X), widths[-1] if widths else X.shape[1])
    if not widths:  # the linear method on standardised input
        np.testing.assert_allclose(model.transform(X), StandardScaler().fit_transform(X))
        assert clustering_accuracy(y, model.labels_) > 0.95


def test_scores_follow_from_the_stored_arrays(wine, wine_pairs):
    X, _ = wine
    model = MaxMarginClustering(3, (9, 7), answer_price=0.0, **QUICK).fit(X, pairs=wine_pairs)
    codes = (X - model.input_shift_) / model.input_scale_
    for weight, bias in zip(model.coefs_, model.intercepts_, strict=True):
        codes = 1 / (1 + np.exp(-(codes @ weight + bias)))
    scores = (codes - model.code_mean_) / model.code_spread_ @ model.head_coef_.T + model.head_intercept_
    np.testing.assert_allclose(model.transform(X), codes)
    np.testing.assert_allclose(model.decision_function(X), scores)
    np.testing.assert_array_equal(model.predict(X), scores.argmax(1))
    np.testing.assert_array_equal(model.labels_, model.predict(X))


def test_pair_score_is_same_minus_different(wine, wine_pairs):
    X, _ = wine
    model = MaxMarginClustering(3, **QUICK).fit(X, pairs=wine_pairs)
    scores = model.decision_function(X)
    index = wine_pairs.index[:20]
    for (i, j), found in zip(index, model.pair_score(X, index), strict=True):
        together = scores[i] + scores[j]
        apart = scores[i][:, None] + scores[j][None] + np.where(np.eye(3), -np.inf, 0)
        assert found == pytest.approx(together.max() - apart.max())
    np.testing.assert_array_equal(model.pair_score(X, wine_pairs), model.pair_score(X, wine_pairs.index))
    np.testing.assert_allclose(model.pair_score(X, index[:, ::-1]), model.pair_score(X, index))


def test_history_tells_of_every_iteration(wine, wine_pairs):
    model = MaxMarginClustering(3, **QUICK).fit(wine[0], pairs=wine_pairs)
    assert [row["iteration"] for row in model.history_] == list(range(model.n_iter_ + 1))
    for row in model.history_:
        terms = ("must_link", "cannot_link", "free", "norm", "neighbours", "balance")
        assert row["objective"] == pytest.approx(sum(row[name] for name in terms))
        assert (row["neighbours"] > 0, row["balance"]) == (True, 0)
        assert 0 <= row["violated_pairs"] <= len(wine_pairs)
        assert 1 <= row["occupied_clusters"] <= 3
    assert model.objective_ == min(row["objective"] for row in model.history_) < model.history_[0]["objective"]
    errors = [row["reconstruction_error"] for row in model.pretraining_history_]
    assert len(errors) == QUICK["pretrain_epochs"]
    assert errors[-1] < errors[0]


def lowest(history, n_iter=None):
    """The lowest objective of the first iterations, or of all."""
    return min(row["objective"] for row in history[: None if n_iter is None else n_iter + 1])


@pytest.mark.parametrize("max_iter", [30, 10])
def test_of_several_starts_one_is_trained_to_the_end(max_iter, wine, wine_pairs, trainings):
    rows = []
    settings = {"n_init": 4, "init": "random", "robust": False, "answer_price": 0.0, "max_iter": max_iter}
    settings["callback"] = rows.append
    model = MaxMarginClustering(3, **(QUICK | settings)).fit(wine[0], pairs=wine_pairs)
    screen = min(SCREEN, max_iter)
    assert [n_iter for n_iter, _, _ in trainings] == [screen] * 4 + [max_iter]
    *screened, kept = [[row["objective"] for row in history] for _, _, history in trainings]
    assert kept[: screen + 1] in screened  # the same start, and the same steps
    assert len({min(objectives) for objectives in screened}) == 4
    assert model.history_ is trainings[-1][2]
    assert model.objective_ == min(kept)
    assert [row["objective"] for row in rows if row["phase"] == "train"] == kept
    assert sum(row["phase"] == "screen" for row in rows) == sum(map(len, screened))


ODD, EVEN = [0, 1] * 10, [0] * 10 + [1] * 10  # clusterings that have nothing in common


@pytest.mark.parametrize(
    ("courses", "winner"),
    [
        ([(0.25, 2, 0, EVEN), (0.2, 2, 0, ODD)], 1),  # two starts agree equally well with each other
        ([(0.25, 2, 0, EVEN), (0.2, 2, 0, ODD), (0.3, 2, 0, EVEN)], 0),  # the lowest is alone with what it says
        ([(0.25, 2, 0, EVEN), (0.01, 2, 0, ODD), (0.3, 2, 0, EVEN)], 1),  # but may be so much lower
        ([(0.27, 10, 0.07, EVEN), (0.22, 9, 0.14, EVEN)], 0),  # fewer clusters are learned sooner, and end higher
        ([(0.27, 10, 0.14, EVEN), (0.22, 9, 0.07, EVEN)], 1),
        ([(0.27, 10, 0.07, EVEN), (0.25, 10, 0.08, EVEN), (0.22, 9, 0.14, EVEN)], 1),  # of ten, 25 iterations choose
        ([(0.27, 10, 0.07, EVEN), (0.25, 10, 0.07, EVEN), (0.22, 9, 0.06, ODD)], 1),  # agreement counts to the end
        ([(0.27, 20, 0.07, EVEN), (0.22, 19, 0.14, EVEN)], 0),
        ([(0.27, 100, 0.07, EVEN), (0.22, 99, 0.14, EVEN)], 1),  # of a hundred, one is as good as none
    ],
)
def test_a_start_is_chosen_by_objective_and_agreement(courses, winner):
    """Objective after a little training, number of clusters, objective at the end, and clusters, of every start."""

    class Start:
        def __init__(self, number):
            self.number, self.activations = number, []

        def copy(self):
            return self

        def scores(self, x):
            return torch.nn.functional.one_hot(torch.tensor(courses[self.number][3]))

    class Work:
        def reporter(self, phase):
            return None

        def train(self, start, x, pairs, links, n_steps, on_iteration):
            soon, n_clusters, late, _ = courses[start.number]
            return [{"objective": late if n_steps is None else soon, "occupied_clusters": n_clusters}]

    starts = [Start(number) for number in range(len(courses))]
    sample = SimpleNamespace(x=SimpleNamespace(shape=(20, 1), rows=lambda _: None), pairs=None)
    assert Stages.most_promising(Work(), starts, sample, None).number == winner


def test_answers_are_judged_by_networks_that_train_on_the_others(wine, wine_pairs, trainings):
    MaxMarginClustering(3, **QUICK).fit(wine[0], pairs=wine_pairs)
    *folds, (_, n_answers, _) = trainings
    assert n_answers == 100
    assert sorted(100 - seen for _, seen, _ in folds) == [33, 33, 34]
    trainings.clear()
    for settings, pairs in (({}, wine_pairs[: FEWEST - 1]), ({"robust": False}, wine_pairs)):
        MaxMarginClustering(3, **QUICK, **settings).fit(wine[0], pairs=pairs)
    assert [n_answers for _, n_answers, _ in trainings] == [FEWEST - 1, 100]  # too few to judge, and not asked to


def test_labels_keep_answers_that_no_score_can(wine, wine_pairs):
    """Copies of a row have the same scores, whatever is learned."""
    X = np.vstack([wine[0], wine[0][:1]])
    pairs = wine_pairs + Pairs([(0, 178)], [False])
    labels = {}
    for price in (0.0, 1000.0):
        model = MaxMarginClustering(3, answer_price=price, **QUICK).fit(X, pairs=pairs)
        labels[price] = model.labels_
        assert model.predict(X)[0] == model.predict(X)[178]
    assert labels[0.0][0] == labels[0.0][178]
    assert labels[1000.0][0] != labels[1000.0][178]
    together = labels[1000.0][pairs.index[:, 0]] == labels[1000.0][pairs.index[:, 1]]
    np.testing.assert_array_equal(together, pairs.same)
    free = np.setdiff1d(np.arange(179), pairs.points)
    np.testing.assert_array_equal(labels[1000.0][free], model.predict(X)[free])


@pytest.mark.parametrize("share", [0.0, 0.15])
def test_the_start_is_looked_for_again_where_answers_seem_wrong(wine, trainings, share, monkeypatch):
    X, y = wine
    believed, starts = [], stages.Stages.starts

    def watched(self, sample, layers, n_clusters):
        believed.append(len(sample.pairs))
        return starts(self, sample, layers, n_clusters)

    monkeypatch.setattr(stages.Stages, "starts", watched)
    pairs = sample_pairs(y, 200, random_state=0)
    wrong = np.zeros(200, dtype=bool)
    wrong[np.random.RandomState(0).choice(200, int(share * 200), replace=False)] = True
    told = Pairs(pairs.index, pairs.same ^ wrong)
    model = MaxMarginClustering(3, random_state=0, on_conflict="keep").fit(X, pairs=told)
    judging = [n_answers for max_iter, n_answers, _ in trainings if max_iter == stages.FOLD_ITER]
    assert len(judging) == (2 if share else 1) * stages.N_FOLDS
    assert set(judging) <= {133, 134}  # all answers are judged, both times
    assert believed[0] == 200
    assert len(believed) == (2 if share else 1)
    assert believed[-1] < 200 or not share  # those that seem wrong have no say the second time
    assert (model.error_rate_ > 0) == bool(share)
    assert clustering_accuracy(y, model.labels_) > 0.95


@pytest.mark.parametrize("batch_size", [None, 60])
def test_half_the_bits_cluster_as_well(wine, wine_pairs, batch_size):
    X, y = wine
    models = [
        MaxMarginClustering(3, precision=precision, batch_size=batch_size, **QUICK).fit(X, pairs=wine_pairs)
        for precision in ("full", "bfloat16")
    ]
    full, narrow = models
    assert narrow.decision_function(X).dtype == X.dtype
    assert not np.array_equal(full.head_coef_, narrow.head_coef_)
    assert clustering_accuracy(y, narrow.labels_) > clustering_accuracy(y, full.labels_) - 0.03


@pytest.fixture(scope="module")
def hard_wine(wine):
    """Three columns of Wine, too few to tell its kinds apart by, and half again the answers."""
    return wine[0][:, 1:4], sample_pairs(wine[1], 150, random_state=0)


def test_lessons_leave_a_local_minimum(hard_wine, trainings, monkeypatch):
    X, pairs = hard_wine
    objective, agreement = {}, {}
    for lessons in (0, stages.LESSONS):
        monkeypatch.setattr(stages, "LESSONS", lessons)
        model = MaxMarginClustering(3, (20,), random_state=0).fit(X, pairs=pairs)
        objective[lessons], agreement[lessons] = model.objective_, (model.labels_ == model.predict(X)).mean()
        assert model.objective_ == min(row["objective"] for row in model.history_)
        scores = model.decision_function(X)[pairs.points]
        weighed = Pairs(pairs.index, pairs.same, model.answer_trust_)
        expected = asked_labels(scores, weighed, model.answer_price, model.answer_trust_ >= BELIEVED)
        np.testing.assert_array_equal(model.labels_[pairs.points], expected)
    assert objective[stages.LESSONS] < 0.95 * objective[0]
    assert agreement[stages.LESSONS] > agreement[0]
    whole = [history for max_iter, n_answers, history in trainings if (max_iter, n_answers) == (model.max_iter, 150)]
    assert len(whole) > 2  # once without lessons, then with them


def test_a_lesson_that_raises_the_objective_is_forgotten(hard_wine, monkeypatch):
    X, pairs = hard_wine
    monkeypatch.setattr(stages, "LESSONS", 0)
    without = MaxMarginClustering(3, **QUICK).fit(X, pairs=pairs)
    monkeypatch.setattr(stages, "LESSONS", 1)

    settled = stages.Stages.settle

    def spoil(self, network, x, labels, weight=None):
        if weight is None:  # a start
            settled(self, network, x, labels)
        else:  # a lesson
            network.head.mul_(100)

    monkeypatch.setattr(stages.Stages, "settle", spoil)
    spoiled = MaxMarginClustering(3, **QUICK).fit(X, pairs=pairs)
    np.testing.assert_array_equal(spoiled.head_coef_, without.head_coef_)
    assert spoiled.history_[-1]["objective"] == without.history_[-1]["objective"]


def test_a_lesson_keeps_the_clusters_that_no_answer_is_about(monkeypatch):
    """Twelve clouds on a circle; two of them, which are asked about, are taught to change places."""
    y = np.repeat(np.arange(12), 20)
    X = np.column_stack([np.cos(y * np.pi / 6), np.sin(y * np.pi / 6)])
    X += np.random.default_rng(0).normal(scale=0.03, size=X.shape)
    pairs = sample_pairs(y[:40], 200, random_state=0)
    taught, settled = [], stages.Stages.settle

    def watched(self, network, x, labels, weight=None):
        settled(self, network, x, labels, weight)
        if weight is not None:
            taught.append((labels, network.scores(x).argmax(1).numpy(), weight))

    def in_turn(scores, *_):
        one, other = np.unique(scores.argmax(1))
        return np.where(scores.argmax(1) == one, other, one)

    monkeypatch.setattr(stages.Stages, "settle", watched)
    monkeypatch.setattr(stages, "asked_labels", in_turn)
    MaxMarginClustering(12, even_out=False, **QUICK).fit(X, pairs=pairs)
    assert taught
    for given, learned, weight in taught:
        assert len(np.unique(given)) == 12
        assert (learned == given)[pairs.points].mean() > 0.9
        assert (learned == given)[40:].mean() > 0.9
        assert weight.mean() == pytest.approx(1)
        assert weight[pairs.points].sum() == pytest.approx(120)  # one half speaks for those asked about


def test_a_lesson_about_few_of_many_points_is_for_some_of_the_others(monkeypatch):
    monkeypatch.setattr(stages, "REMINDED", 20)
    asked = np.array([3, 50, 99])
    rows, is_asked = stages._lesson_rows(asked, 100)
    np.testing.assert_array_equal(rows[is_asked], asked)
    assert 10 < len(rows) <= 23
    assert np.diff(rows).max() <= 10  # from all over the data
    weight = stages._half_for(is_asked)
    assert weight[is_asked].sum() == pytest.approx(weight[~is_asked].sum())
    assert weight.mean() == pytest.approx(1)
    rows, is_asked = stages._lesson_rows(np.arange(100), 100)
    assert len(rows) == is_asked.sum() == 100
    np.testing.assert_array_equal(stages._half_for(is_asked), 1)


@pytest.mark.parametrize("stop_in", ["train", "revise"])
def test_a_fit_that_was_stopped_takes_no_more_lessons(hard_wine, stop_in):
    X, pairs = hard_wine
    rows = []

    def stop(row):
        rows.append((row["phase"], row.get("iteration")))
        return rows[-1] == (stop_in, 3)

    MaxMarginClustering(3, callback=stop, **QUICK).fit(X, pairs=pairs)
    assert rows[-1] == (stop_in, 3)
    assert rows.count(rows[-1]) == 1


@pytest.fixture(scope="module")
def lumped_clouds():
    """Five clouds, the small ones lumped by a fit that may use no more than three clusters; then five may be used."""
    y = np.repeat(np.arange(5), [150, 150, 40, 40, 40])
    X = (6.0 * np.random.default_rng(0).normal(size=(5, 4)))[y] + np.random.default_rng(1).normal(size=(420, 4))
    model = MaxMarginClustering(3, (20,), warm_start=True, **QUICK)
    model.fit(X, pairs=sample_pairs(y.clip(max=2), 400, random_state=0))
    assert model.n_clusters_found_ == 3
    return X, y, model.set_params(n_clusters=5)


def silent_about(lumped, y, n_pairs):
    """Answers with no "different" one inside what is lumped together."""
    pairs = sample_pairs(y, n_pairs, random_state=1)
    return pairs[pairs.same | (lumped[pairs.index[:, 0]] != lumped[pairs.index[:, 1]])]


def test_what_answers_do_not_hold_together_is_parted_if_clusters_are_left(lumped_clouds):
    X, y, known = lumped_clouds
    pairs = silent_about(known.labels_, y, 600)
    phases = []
    model = copy.deepcopy(known).set_params(callback=lambda row: phases.append(row["phase"]))
    model.fit(X, pairs=pairs)
    assert phases[-1] == "revise"
    assert model.n_clusters_found_ == len(model.head_coef_) == 5
    assert clustering_accuracy(y, model.predict(X)) > 0.98
    assert model.objective_ == min(row["objective"] for row in model.history_)

    stopped = copy.deepcopy(known).set_params(callback=lambda row: row["phase"] == "train")
    assert stopped.fit(X, pairs=pairs).n_clusters_found_ == 3


def test_a_lump_that_answers_hold_together_is_left_alone(lumped_clouds):
    X, y, known = lumped_clouds
    model = copy.deepcopy(known).fit(X, pairs=sample_pairs(y.clip(max=2), 600, random_state=1))
    assert model.n_clusters_found_ == 3


def test_the_paper_parts_nothing(lumped_clouds):
    X, y, known = lumped_clouds
    model = copy.deepcopy(known).set_params(init="pairs").fit(X, pairs=silent_about(known.labels_, y, 600))
    assert model.n_clusters_found_ == 3


def test_balance_holds_the_shares_that_the_start_had():
    """Two clouds of one size; the only answer ties them together, and nothing else keeps them apart."""
    y = np.arange(60) % 2
    X = 6 * y[:, None] + np.random.default_rng(0).normal(size=(60, 2))
    settings = QUICK | {"init": "k-means", "free_weight": 0.0, "neighbour_weight": 0.0, "answer_price": 0.0}
    found = {}
    for price in (0.0, 10.0):
        model = MaxMarginClustering(2, 5, balance_weight=price, **(settings | {"max_iter": 300}))
        found[price] = model.fit(X, pairs=Pairs([(0, 1)], [True]))
        assert (model.history_[-1]["balance"] > 0) == (price > 0)
        assert model.n_clusters_found_ == len(set(model.labels_))
    assert found[0.0].n_clusters_found_ == 1
    shares = np.bincount(found[10.0].labels_, minlength=2) / 60
    np.testing.assert_allclose(shares, 0.5, atol=0.1)
    chance = softmax(4 * found[10.0].decision_function(X), axis=1).mean(0)
    np.testing.assert_allclose(chance, 0.5, atol=0.02)


def test_many_clusters_outlive_few_answers():
    """Fifty clouds of ten points, 30 answers: neither the norm nor the neighbours empty what the start has found."""
    settings, n_found, accuracies = QUICK | {"init": "k-means", "max_iter": 200}, [], []
    for seed in range(3):
        X, y = make_blobs(500, 8, centers=50, cluster_std=1.6, random_state=seed)
        pairs = sample_pairs(y, 30, random_state=seed)
        usual = MaxMarginClustering(50, 20, **(settings | {"random_state": seed})).fit(X, pairs=pairs)
        start = clone(usual).set_params(max_iter=0).fit(X, pairs=pairs)
        merging = clone(usual).set_params(weight_penalty=0.001, balance_weight=0.0).fit(X, pairs=pairs)
        n_found.append([model.n_clusters_found_ for model in (start, usual, merging)])
        accuracies.append([clustering_accuracy(y, model.labels_) for model in (start, usual, merging)])
    found, (at_start, usual, merging) = np.mean(n_found, axis=0), np.mean(accuracies, axis=0)
    assert found[1] > found[0] - 3
    assert found[2] < found[0] - 5
    assert usual > at_start - 0.02
    assert usual > merging + 0.05


def test_neighbours_are_no_more_than_half_a_class(monkeypatch):
    asked, among = [], neighbours.KnownLinks.among
    monkeypatch.setattr(
        neighbours.KnownLinks, "among", lambda own, points, k: (asked.append(k), among(own, points, k))[1]
    )
    X = np.random.default_rng(0).normal(size=(60, 2))
    for n_clusters in (2, 3, 6, 60):
        MaxMarginClustering(n_clusters, (), **(QUICK | {"init": "k-means", "max_iter": 0})).fit(X)
    assert asked == [10, 10, 5, 1]


def test_the_more_neighbours_weigh_the_fewer_are_torn_apart():
    """Points without clusters, and answers at random: only neighbours say anything about them."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(150, 2))
    pairs = sample_pairs(rng.integers(0, 2, 150), 60, random_state=0)
    near = NearestNeighbors(n_neighbors=10).fit(X).kneighbors()[1]
    torn = []
    for price in (0.0, 3.0):
        settings = QUICK | {"init": "random", "robust": False, "answer_price": 0.0, "max_iter": 200}
        models = [
            MaxMarginClustering(3, (), neighbour_weight=price, **(settings | {"random_state": seed}))
            for seed in range(3)
        ]
        labels = [model.fit(X, pairs=pairs).labels_ for model in models]
        torn.append(np.mean([found[near] != found[:, None] for found in labels]))
    assert torn[1] < 0.6 * torn[0]


def test_warm_start_goes_on_with_more_pairs(wine):
    X, y = wine
    few, more = sample_pairs(y, 10, random_state=0), sample_pairs(y, 200, random_state=1)
    model = MaxMarginClustering(3, warm_start=True, answer_price=0.0, random_state=0).fit(X, pairs=few)
    before, pretraining = clustering_accuracy(y, model.labels_), model.pretraining_history_
    ended = model.head_coef_.copy()
    model.set_params(max_iter=1).fit(X, pairs=more)
    assert np.abs(model.head_coef_ - ended).max() < 0.02  # one small step from where it was
    model.set_params(max_iter=300).fit(X, pairs=few + more)
    assert model.pretraining_history_ is pretraining
    assert clustering_accuracy(y, model.labels_) >= max(before, 0.97)


def test_hearing_the_same_answers_again_makes_nobody_surer():
    """The network that a warm start goes on from has learned them all, and may not judge them."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    X = np.hstack([1.5 * np.eye(3)[y], np.zeros((300, 30))]) + rng.normal(size=(300, 33))  # classes that overlap
    pairs = sample_pairs(y, 120, random_state=0)
    model = MaxMarginClustering(3, n_init=1, warm_start=True, random_state=0).fit(X, pairs=pairs)
    before = model.sharpness_
    assert model.fit(X, pairs=pairs).sharpness_ < 1.3 * before


@pytest.mark.parametrize(("warm", "n_searches"), [(True, 1), (False, 2)])
def test_a_warm_start_looks_for_the_neighbours_of_the_same_points_once(warm, n_searches, wine, monkeypatch):
    X, y = wine
    searches, search = [], neighbours.nearest_neighbours
    monkeypatch.setattr(neighbours, "nearest_neighbours", lambda *a: searches.append(a) or search(*a))
    model = MaxMarginClustering(3, init="pairs", warm_start=warm, **QUICK)
    few, _ = (model.fit(X, pairs=sample_pairs(y, n, random_state=0)).labels_ for n in (20, 40))
    assert len(searches) == n_searches
    np.testing.assert_array_equal(clone(model).fit(X, pairs=sample_pairs(y, 20, random_state=0)).labels_, few)
    assert len(searches) == n_searches + 1  # a clone remembers nothing


def test_warm_start_refuses_another_shape(wine):
    model = MaxMarginClustering(3, warm_start=True, **QUICK).fit(wine[0])
    for changed, message in (
        ({"n_clusters": 2}, r"3 clusters, but .* n_clusters=2 are asked for; set warm_start=False"),
        ({"n_clusters": 3, "hidden_layer_sizes": 5}, r"hidden_layer_sizes=\(100,\) .* but hidden_layer_sizes=\(5,\)"),
    ):
        with pytest.raises(InvalidParameterError, match=message):
            model.set_params(**changed).fit(wine[0])
    model.set_params(n_clusters=4, hidden_layer_sizes=100).fit(wine[0])  # at most 4
    assert model.head_coef_.shape == (3, 100)


# Same seed, same bits


@pytest.mark.parametrize("settings", [{}, {"solver": "subgradient"}, {"n_init": 3}, {"n_init": 3, "init": "random"}])
def test_same_seed_same_bits(settings, wine, wine_pairs):
    runs = [MaxMarginClustering(3, **(QUICK | settings)).fit(wine[0], pairs=wine_pairs) for _ in range(2)]
    np.testing.assert_array_equal(runs[0].head_coef_, runs[1].head_coef_)
    np.testing.assert_array_equal(runs[0].coefs_[0], runs[1].coefs_[0])
    np.testing.assert_array_equal(runs[0].suspicious_pairs_, runs[1].suspicious_pairs_)
    np.testing.assert_array_equal(runs[0].cluster_proba(wine[0]), runs[1].cluster_proba(wine[0]))


def test_the_global_generators_are_left_alone(wine, wine_pairs):
    torch_before, numpy_before = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    MaxMarginClustering(3, **QUICK).fit(wine[0], pairs=wine_pairs)
    assert torch.equal(torch.random.get_rng_state(), torch_before)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_before)  # noqa: NPY002


def test_one_thread_and_two_give_the_same_labels():
    X, y = make_blobs(3000, 300, centers=4, cluster_std=9, random_state=0)
    pairs = sample_pairs(y, 100, random_state=0)
    before, labels = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            # wide enough that two threads do share the products
            model = MaxMarginClustering(4, (300,), **(QUICK | {"pretrain_epochs": 1, "max_iter": 10}))
            labels.append(model.fit(X.astype(np.float32), pairs=pairs).labels_)
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(*labels)


# What goes in and what comes out


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtype_follows_x(dtype, wine, wine_pairs):
    X = wine[0].astype(dtype)
    model = MaxMarginClustering(3, **QUICK).fit(X, pairs=wine_pairs)
    computed = (model.transform(X), model.decision_function(X), model.cluster_proba(X), model.pair_proba(X, [(0, 1)]))
    for array in (model.head_coef_, model.coefs_[0], *computed):
        assert array.dtype == dtype


def test_integers_are_taken(wine_pairs):
    X = np.random.RandomState(0).randint(0, 9, (178, 5))
    assert MaxMarginClustering(3, **QUICK).fit(X, pairs=wine_pairs).head_coef_.dtype == np.float64


@pytest.mark.parametrize("sizes", [(), (10,), (10, 5)])
@pytest.mark.parametrize("visible", ["binary", "gaussian"])
def test_sparse_gives_what_dense_gives(sizes, visible):
    X, y = make_blobs(120, 30, centers=3, random_state=0)
    X = np.where(X > 2, X, 0)
    pairs = sample_pairs(y, 40, random_state=0)
    settings = {"visible": visible, "pretrain_batch_size": 40, **QUICK}
    dense = MaxMarginClustering(3, sizes, **settings).fit(X, pairs=pairs)
    sparse = MaxMarginClustering(3, sizes, **settings).fit(sp.csr_array(X), pairs=pairs)
    np.testing.assert_allclose(sparse.decision_function(sp.csr_array(X)), dense.decision_function(X), atol=1e-6)
    np.testing.assert_array_equal(sparse.predict(sp.csr_matrix(X)), dense.predict(X))
    np.testing.assert_allclose(sparse.cluster_proba(sp.csr_array(X)), dense.cluster_proba(X), atol=1e-6)


def test_frames_in_and_frames_out(wine, wine_pairs):
    frame = pd.DataFrame(wine[0], columns=load_wine().feature_names)
    model = MaxMarginClustering(3, 5, **QUICK).set_output(transform="pandas").fit(frame, pairs=wine_pairs)
    codes = model.transform(frame)
    assert list(codes.columns) == [f"maxmarginclustering{i}" for i in range(5)]
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.predict(wine[0])


def test_lives_in_a_pipeline(wine, wine_pairs):
    pipeline = make_pipeline(StandardScaler(), MaxMarginClustering(3, **QUICK))
    pipeline.fit(wine[0], maxmarginclustering__pairs=wine_pairs)
    assert pipeline.predict(wine[0]).shape == (178,)


def test_clones_copies_and_pickles(wine, wine_pairs):
    model = MaxMarginClustering(3, **QUICK).fit(wine[0], pairs=wine_pairs)
    assert clone(model).get_params() == model.get_params()
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.decision_function(wine[0]), model.decision_function(wine[0]))
        np.testing.assert_array_equal(other.cluster_proba(wine[0]), model.cluster_proba(wine[0]))


def test_fit_predict_takes_pairs(wine, wine_pairs):
    model = MaxMarginClustering(3, **QUICK)
    np.testing.assert_array_equal(model.fit_predict(wine[0], pairs=wine_pairs), model.labels_)


def test_verbose_logs_and_callback_is_called(wine, caplog):
    rows = []
    with caplog.at_level(logging.INFO, "pairmargin"):
        MaxMarginClustering(3, 5, verbose=2, callback=rows.append, **QUICK).fit(wine[0])
    assert "pretraining 1 layers on 178 x 13, gaussian visible units" in caplog.text
    assert {row["phase"] for row in rows} == {"pretrain", "train"}
    assert rows[0]["layer"] == rows[0]["epoch"] == 1


def test_verbose_reaches_who_has_set_up_no_logging(wine, monkeypatch, capsys):
    logger = logging.getLogger("pairmargin")
    monkeypatch.setattr(logger, "hasHandlers", lambda: False)  # pytest has set up one
    before = logger.handlers.copy(), logger.level
    MaxMarginClustering(3, 5, **QUICK).fit(wine[0])
    assert capsys.readouterr().err == ""
    MaxMarginClustering(3, 5, verbose=1, **QUICK).fit(wine[0])
    assert "pretraining 1 layers on 178 x 13" in capsys.readouterr().err
    assert (logger.handlers, logger.level) == before


def test_callback_that_returns_true_ends_training_with_the_best_network_so_far(wine, wine_pairs):
    phases = []

    def stop(row):
        phases.append(row["phase"])
        return row["phase"] == "train" and row["iteration"] == 4

    settings = QUICK | {"max_iter": 30}
    whole = MaxMarginClustering(3, **settings).fit(wine[0], pairs=wine_pairs)
    model = MaxMarginClustering(3, **settings, callback=stop).fit(wine[0], pairs=wine_pairs)
    assert model.n_iter_ == 4
    assert [row["objective"] for row in model.history_] == [row["objective"] for row in whole.history_[:5]]
    assert model.objective_ == lowest(model.history_)
    assert list(dict.fromkeys(phases))[-2:] == ["judge", "train"]
    np.testing.assert_array_equal(model.answer_trust_, whole.answer_trust_)  # of networks that trained to their end


def test_callback_that_returns_anything_but_true_stops_nothing(wine):
    model = MaxMarginClustering(3, **QUICK, callback=lambda row: 1).fit(wine[0])
    assert model.n_iter_ == QUICK["max_iter"]


def test_an_unfitted_model_says_so(wine):
    model = MaxMarginClustering(3)
    for ask in (model.predict, model.cluster_proba, lambda X: model.pair_proba(X, [(0, 1)])):
        with pytest.raises(NotFittedError):
            ask(wine[0])


# Bad input: what, where, and what to do


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_names_the_place_of_a_value_that_is_no_number(value, make, wine):
    X = wine[0].copy()
    X[7, 3] = value
    found = "NaN" if np.isnan(value) else "infinity"
    with pytest.raises(InvalidDataError, match=f"contains {found} at row 7, column 3; fill it in"):
        MaxMarginClustering(3, **QUICK).fit(make(X))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_clusters": 0}, "n_clusters=0 must be an integer, 1 or more"),
        ({"n_clusters": 2.5}, "n_clusters=2.5 must be an integer"),
        ({"n_clusters": "many"}, "n_clusters='many' must be an integer, 1 or more, or \"auto\""),
        ({"n_clusters": "auto"}, 'needs answers of both kinds, but 0 are "same" and 0 "different"; give some'),
        ({"n_clusters": "auto", "init": "pairs"}, "goes with init=\"consensus\", not 'pairs'; give the number"),
        ({"n_clusters": 179}, "n_clusters=179 is more than n_samples=178; ask for fewer clusters"),
        ({"hidden_layer_sizes": (10, 0)}, r"hidden_layer_sizes=\(10, 0\) must be positive integers"),
        ({"hidden_layer_sizes": -3}, "hidden_layer_sizes=-3 must be positive integers"),
        ({"hidden_layer_sizes": (2.5,)}, "must be positive integers"),
        ({"hidden_layer_sizes": "wide"}, "hidden_layer_sizes='wide' must be positive integers"),
        ({"visible": "poisson"}, "visible='poisson' must be 'auto' or 'binary' or 'gaussian'"),
        ({"init": "zeros"}, "init='zeros' must be 'consensus' or 'pairs' or 'k-means' or 'random'"),
        ({"n_init": 0}, "n_init=0 must be an integer, 1 or more"),
        ({"n_init": 2.5}, "n_init=2.5 must be an integer, 1 or more"),
        ({"solver": "lbfgs"}, "solver='lbfgs' must be 'adam' or 'subgradient'"),
        ({"weight_penalty": -1}, "weight_penalty=-1 must be a number, 0 or more, or None for the default"),
        ({"free_weight": np.nan}, "free_weight=nan must be a number, 0 or more"),
        ({"neighbour_weight": -0.1}, "neighbour_weight=-0.1 must be a number, 0 or more"),
        ({"neighbour_weight": None}, "neighbour_weight=None must be a number, 0 or more"),
        ({"balance_weight": np.inf}, "balance_weight=inf must be a number, 0 or more"),
        ({"balance_weight": "equal"}, "balance_weight='equal' must be a number, 0 or more"),
        ({"answer_price": -3}, "answer_price=-3 must be a number, 0 or more"),
        ({"answer_price": np.nan}, "answer_price=nan must be a number, 0 or more"),
        ({"robust": "yes"}, "robust='yes' must be True or False"),
        ({"robust": 1}, "robust=1 must be True or False"),
        ({"even_out": None}, "even_out=None must be True or False"),
        ({"learning_rate": 0}, "learning_rate=0 must be a number above 0, or None for the default"),
        ({"momentum": 1}, "momentum=1 must be a number from 0 to below 1"),
        ({"max_iter": -1}, "max_iter=-1 must be an integer, 0 or more"),
        ({"on_conflict": "ask"}, "on_conflict='ask' must be 'raise' or 'drop' or 'keep'"),
        ({"verbose": "loud"}, "verbose='loud' must be True, False or an integer"),
        (
            {"batch_size": 9, "balance_weight": 0.5},
            "balance_weight=0.5 needs all points at once, not batch_size=9; leave",
        ),
        ({"callback": 3}, "callback=3 must be callable or None"),
        ({"device": "abacus"}, "device='abacus' must be \"auto\" or a PyTorch device"),
        ({"device": "xla"}, 'device=\'xla\' is not there .*; use "auto" or "cpu"'),
        ({"warm_start": "no"}, "warm_start='no' .* True or False"),
        ({"random_state": "x"}, "random_state='x' .* an integer from 0"),
        ({"solver": "subgradient", "weight_penalty": 0}, "weight_penalty=0 leaves the step"),
    ],
)
def test_refuses_settings_that_cannot_work(settings, message, wine):
    with pytest.raises(InvalidParameterError, match=message):
        MaxMarginClustering(**({"n_clusters": 3} | settings)).fit(wine[0])


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (([(0, 178)], [True]), "names row 178 but the data has 178 rows"),
        (([(3, 3)], [True]), "3"),
        (([(0, 1.5)], [True]), "1.5"),
        (([(0, 1, 2)], [True]), "2"),
        ("same", "pairs should be Pairs, not str"),
    ],
)
def test_refuses_pairs_that_are_not_well_formed(pairs, message, wine):
    with pytest.raises(InvalidPairsError, match=message):
        MaxMarginClustering(3, **QUICK).fit(wine[0], pairs=pairs)


def test_contradictions_are_raised_dropped_or_kept(wine):
    X, _ = wine
    chain = Pairs.from_lists([(0, 1), (1, 2)], [(0, 2)])
    with pytest.raises(ConflictingPairsError, match='on_conflict="drop"'):
        MaxMarginClustering(3, **QUICK).fit(X, pairs=chain)
    for choice in ("drop", "keep"):
        assert MaxMarginClustering(3, on_conflict=choice, **QUICK).fit(X, pairs=chain).labels_.shape == (178,)


def test_what_is_said_of_the_answers_is_in_the_order_they_were_given(wine):
    """Also of those that were dropped, or their places would be those of others."""
    given = Pairs.from_lists([(0, 1), (1, 2), (5, 6)], [(0, 2), (3, 4)])
    for choice in ("drop", "keep"):
        model = MaxMarginClustering(3, on_conflict=choice, **QUICK).fit(wine[0], pairs=given)
        assert sorted(model.suspicious_pairs_) == list(range(len(given)))
        assert model.answer_trust_.shape == (len(given),)


def test_refuses_another_number_of_features(wine):
    model = MaxMarginClustering(3, **QUICK).fit(wine[0])
    with pytest.raises(InvalidDataError, match="X has 12 features, but MaxMarginClustering is expecting 13"):
        model.predict(wine[0][:, :12])


def test_questions_about_rows_that_do_not_exist_are_refused(wine):
    model = MaxMarginClustering(3, **QUICK).fit(wine[0])
    for index in ([(0, 200)], Pairs([(0, 200)], [True])):
        with pytest.raises(InvalidPairsError, match="names row 200 but the data has 178 rows"):
            model.pair_score(wine[0], index)
        with pytest.raises(InvalidPairsError, match="names row 200 but the data has 178 rows"):
            model.pair_proba(wine[0], index)


def test_binary_units_refuse_negative_values():
    with pytest.raises(InvalidDataError, match=r'not negative, but X has -1; use visible="gaussian"'):
        MaxMarginClustering(2, visible="binary").fit([[0.0, 1], [-1, 1], [1, 0]])


# Odd input that works


def test_a_constant_column_changes_nothing_and_warns_of_nothing(wine, wine_pairs):
    X = np.column_stack([wine[0], np.full(178, 3.14)])
    model = MaxMarginClustering(3, random_state=0).fit(X, pairs=wine_pairs)
    assert clustering_accuracy(wine[1], model.labels_) > 0.95


@pytest.mark.parametrize("kind", [True, False, None])
def test_pairs_of_one_kind_or_none_at_all_work(kind, wine, wine_pairs):
    X, y = wine
    pairs = None if kind is None else wine_pairs[wine_pairs.same == kind]
    model = MaxMarginClustering(3, random_state=0).fit(X, pairs=pairs)
    assert clustering_accuracy(y, model.labels_) > 0.8
    assert set(model.labels_) == {0, 1, 2}


def test_fewer_distinct_points_than_clusters_works_and_warns():
    X = np.repeat([[0.0, 1], [5, 5]], 10, axis=0)
    with pytest.warns(FewDistinctPointsWarning, match="only 2 distinct points but n_clusters=4"):
        model = MaxMarginClustering(4, **QUICK).fit(X, pairs=Pairs([(0, 1), (0, 10)], [True, False]))
    assert len(set(model.labels_[:10])) == len(set(model.labels_[10:])) == 1
    assert model.labels_[0] != model.labels_[10]
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("n", [1, 2])
def test_one_cluster_and_one_point_work(n):
    X = np.arange(2.0 * n).reshape(n, 2)
    model = MaxMarginClustering(1, **QUICK).fit(X)
    assert model.labels_.tolist() == [0] * n
    assert MaxMarginClustering(n, **QUICK).fit(X).labels_.shape == (n,)


def test_every_point_in_a_pair_works():
    X, y = load_iris(return_X_y=True)
    model = MaxMarginClustering(3, random_state=0).fit(X, pairs=Pairs.from_labels(y))
    assert model.history_[0]["free"] == 0
    assert clustering_accuracy(y, model.labels_) > 0.95


def test_a_fit_gives_no_warning(wine, wine_pairs):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MaxMarginClustering(3, **QUICK).fit(wine[0], pairs=wine_pairs)


def test_dark_ink_on_white_paper_is_the_same_as_bright_ink_on_dark() -> None:
    X, y = load_digits(return_X_y=True)
    pairs = sample_pairs(y[:300], 60, random_state=0)
    settings = {"n_clusters": 10, "n_init": 1, "max_iter": 20, "pretrain_epochs": 5, "random_state": 0}
    bright = MaxMarginClustering(**settings).fit(X[:300], pairs=pairs)
    dark = MaxMarginClustering(**settings).fit(16 - X[:300], pairs=pairs)
    assert np.array_equal(bright.labels_, dark.labels_)
    assert np.array_equal(bright.predict(X[300:400]), dark.predict(16 - X[300:400]))
