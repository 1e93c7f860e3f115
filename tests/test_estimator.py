"""`MaxMarginClustering` as a user meets it."""

from __future__ import annotations

import copy
import logging
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine, make_blobs
from sklearn.exceptions import NotFittedError
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
    sample_pairs,
)

QUICK = {"pretrain_epochs": 5, "max_iter": 30, "random_state": 0}


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True)


@pytest.fixture(scope="module")
def wine_pairs(wine):
    return sample_pairs(wine[1], 100, random_state=0)


@parametrize_with_checks(
    [
        MaxMarginClustering(),
        MaxMarginClustering(hidden_layer_sizes=()),
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
    model = MaxMarginClustering(3, (9, 7), **QUICK).fit(X, pairs=wine_pairs)
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
        assert row["objective"] == pytest.approx(row["must_link"] + row["cannot_link"] + row["free"] + row["norm"])
        assert 0 <= row["violated_pairs"] <= len(wine_pairs)
        assert 1 <= row["occupied_clusters"] <= 3
    assert model.objective_ == min(row["objective"] for row in model.history_) < model.history_[0]["objective"]
    errors = [row["reconstruction_error"] for row in model.pretraining_history_]
    assert len(errors) == QUICK["pretrain_epochs"]
    assert errors[-1] < errors[0]


def test_restarts_keep_the_lowest_objective(wine, wine_pairs):
    ends = []
    model = MaxMarginClustering(3, n_init=4, init="random", callback=ends.append, **QUICK)
    model.fit(wine[0], pairs=wine_pairs)
    rows = [row for row in ends if row["phase"] == "train"]
    starts = [k for k, row in enumerate(rows) if row["iteration"] == 0]
    lowest = [min(row["objective"] for row in rows[a:b]) for a, b in zip(starts, [*starts[1:], len(rows)], strict=True)]
    assert len(lowest) == 4
    assert model.objective_ == min(lowest) < max(lowest)


def test_warm_start_goes_on_with_more_pairs(wine):
    X, y = wine
    few, more = sample_pairs(y, 10, random_state=0), sample_pairs(y, 200, random_state=1)
    model = MaxMarginClustering(3, warm_start=True, random_state=0).fit(X, pairs=few)
    before, pretraining = clustering_accuracy(y, model.labels_), model.pretraining_history_
    ended = model.head_coef_.copy()
    model.set_params(max_iter=1).fit(X, pairs=more)
    assert np.abs(model.head_coef_ - ended).max() < 0.02  # one small step from where it was
    model.set_params(max_iter=300).fit(X, pairs=few + more)
    assert model.pretraining_history_ is pretraining
    assert clustering_accuracy(y, model.labels_) >= max(before, 0.97)


def test_warm_start_refuses_another_shape(wine):
    model = MaxMarginClustering(3, warm_start=True, **QUICK).fit(wine[0])
    with pytest.raises(InvalidParameterError, match=r"n_clusters=3, but .* 4 are asked for; set warm_start=False"):
        model.set_params(n_clusters=4).fit(wine[0])


# Same seed, same bits


@pytest.mark.parametrize("solver", ["adam", "subgradient"])
def test_same_seed_same_bits(solver, wine, wine_pairs):
    runs = [MaxMarginClustering(3, solver=solver, **QUICK).fit(wine[0], pairs=wine_pairs) for _ in range(2)]
    np.testing.assert_array_equal(runs[0].head_coef_, runs[1].head_coef_)
    np.testing.assert_array_equal(runs[0].coefs_[0], runs[1].coefs_[0])


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
            model = MaxMarginClustering(4, (300,), pretrain_epochs=1, max_iter=10, random_state=0)
            labels.append(model.fit(X.astype(np.float32), pairs=pairs).labels_)
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(*labels)


# What goes in and what comes out


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtype_follows_x(dtype, wine, wine_pairs):
    X = wine[0].astype(dtype)
    model = MaxMarginClustering(3, **QUICK).fit(X, pairs=wine_pairs)
    for array in (model.head_coef_, model.coefs_[0], model.transform(X), model.decision_function(X)):
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


def test_an_unfitted_model_says_so(wine):
    with pytest.raises(NotFittedError):
        MaxMarginClustering(3).predict(wine[0])


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
        ({"n_clusters": 179}, "n_clusters=179 is more than n_samples=178; ask for fewer clusters"),
        ({"hidden_layer_sizes": (10, 0)}, r"hidden_layer_sizes=\(10, 0\) must be positive integers"),
        ({"hidden_layer_sizes": -3}, "hidden_layer_sizes=-3 must be positive integers"),
        ({"hidden_layer_sizes": (2.5,)}, "must be positive integers"),
        ({"hidden_layer_sizes": "wide"}, "hidden_layer_sizes='wide' must be positive integers"),
        ({"visible": "poisson"}, "visible='poisson' must be 'auto' or 'binary' or 'gaussian'"),
        ({"init": "zeros"}, "init='zeros' must be 'graph' or 'pairs' or 'k-means' or 'random'"),
        ({"solver": "lbfgs"}, "solver='lbfgs' must be 'adam' or 'subgradient'"),
        ({"weight_penalty": -1}, "weight_penalty=-1 must be a number, 0 or more"),
        ({"free_weight": np.nan}, "free_weight=nan must be a number, 0 or more"),
        ({"learning_rate": 0}, "learning_rate=0 must be a number above 0, or None for the default"),
        ({"momentum": 1}, "momentum=1 must be a number from 0 to below 1"),
        ({"max_iter": -1}, "max_iter=-1 must be an integer, 0 or more"),
        ({"on_conflict": "ask"}, "on_conflict='ask' must be 'raise' or 'drop' or 'keep'"),
        ({"verbose": "loud"}, "verbose='loud' must be True, False or an integer"),
        ({"callback": 3}, "callback=3 must be callable or None"),
        ({"device": "abacus"}, "device='abacus' must be \"auto\" or a PyTorch device"),
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


def test_refuses_another_number_of_features(wine):
    model = MaxMarginClustering(3, **QUICK).fit(wine[0])
    with pytest.raises(InvalidDataError, match="X has 12 features, but MaxMarginClustering is expecting 13"):
        model.predict(wine[0][:, :12])


def test_pair_score_refuses_rows_that_do_not_exist(wine):
    model = MaxMarginClustering(3, **QUICK).fit(wine[0])
    for index in ([(0, 200)], Pairs([(0, 200)], [True])):
        with pytest.raises(InvalidPairsError, match="names row 200 but the data has 178 rows"):
            model.pair_score(wine[0], index)


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
