"""Data, answers and settings of every kind, and what is done with them: `test_any_data.py` and `fuzz.py` share this.

An attempt draws a problem, does something with it, and looks at what comes out. Whatever is drawn, there is a result
without NaN, or an error of ours; and no warning but ours.
"""

from __future__ import annotations

import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

from pairmargin import (
    CMMC,
    ITML,
    KISSME,
    COPKMeans,
    KernelKMeans,
    LinkedSpectralClustering,
    MaxMarginClustering,
    MPCKMeans,
    PairMarginError,
    PairMarginWarning,
    Pairs,
    PCKMeans,
    XingMetric,
    load,
    sample_pairs,
    save,
    select_pairs,
)
from pairmargin.query.choosing import STRATEGIES

outcomes: Counter[str] = Counter()  # how many attempts had a result, and how many were refused by which error


class Problem(NamedTuple):
    """What an estimator is given."""

    X: Any
    n: int
    pairs: Pairs
    n_clusters: int


@contextmanager
def only_ours() -> Iterator[None]:
    """Let errors of ours pass, which end an attempt, and warnings of ours; everything else is a mistake of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", PairMarginWarning)
        try:
            yield
            outcomes["a result"] += 1
        except PairMarginError as error:
            outcomes[type(error).__name__] += 1


# Data

SHAPES: dict[str, Callable[[np.random.RandomState, int, int], Any]] = {
    "clouds": lambda rng, n, d: rng.standard_normal((n, d)) + 8 * rng.randint(3, size=(n, 1)),
    "noise": lambda rng, n, d: rng.standard_normal((n, d)),
    "shares": lambda rng, n, d: rng.uniform(size=(n, d)),
    "on or off": lambda rng, n, d: rng.randint(2, size=(n, d)),
    "counts": lambda rng, n, d: rng.poisson(2, (n, d)),
    "few distinct": lambda rng, n, d: rng.standard_normal((2, d))[rng.randint(2, size=n)],
    "constant": lambda rng, n, d: np.full((n, d), rng.standard_normal()),
    "zeros": lambda rng, n, d: np.zeros((n, d)),
    "a line": lambda rng, n, d: rng.standard_normal((n, 1)) * rng.standard_normal(d),
    "outliers": lambda rng, n, d: rng.standard_cauchy((n, d)) ** 3,
    "far away": lambda rng, n, d: 1e6 + rng.standard_normal((n, d)),
    "falling columns": lambda rng, n, d: rng.standard_normal((n, d)) * 10.0 ** -np.arange(d),
}
KINDS = ["f8", "f4", "f2", "i8", "i4", "i1", "u1", "?", ">f8", ">i4", "f8", "f4"]
LAYOUTS = ["C", "F", "every other row", "every other column", "backwards", "read-only", "list", "csr", "csc", "coo"]


@st.composite
def data(draw: st.DrawFn, max_rows: int = 50) -> Any:
    """Points of any number, kind, size and layout, (n, d)."""
    n, d = draw(st.integers(1, max_rows)), draw(st.integers(1, 8))
    rng = np.random.RandomState(draw(st.integers(0, 2**32 - 1)))
    values = SHAPES[draw(st.sampled_from(list(SHAPES)))](rng, n, d)
    if draw(st.booleans()):
        values = values * 10.0 ** draw(st.integers(-30, 30))
    if draw(st.integers(0, 9)) == 0:  # every column on a scale of its own
        values = values * 10.0 ** rng.randint(-30, 31, size=d)
    with np.errstate(all="ignore"):
        values = np.asarray(values).astype(draw(st.sampled_from(KINDS)))
    return laid_out(values, draw(st.sampled_from(LAYOUTS)))


def laid_out(values: Any, layout: str) -> Any:
    """The same numbers, otherwise in memory."""
    if layout == "F":
        return np.asfortranarray(values)
    if layout == "every other row":
        return np.repeat(values, 2, axis=0)[::2]
    if layout == "every other column":
        return np.repeat(values, 2, axis=1)[:, ::2]
    if layout == "backwards":
        return values[::-1, ::-1]
    if layout == "read-only":
        values.flags.writeable = False
    if layout == "list":
        return values.tolist()
    if layout in ("csr", "csc", "coo") and values.dtype.kind in "fiu" and values.dtype.isnative and values.itemsize > 2:
        return sp.coo_array(values).asformat(layout)
    return values


# Answers


@st.composite
def answers(draw: st.DrawFn, n: int) -> Pairs:
    """No answers, some of one kind, of both, that contradict each other or not, of any weight, or all there are."""
    if n < 2:
        return Pairs.empty()
    rng = np.random.RandomState(draw(st.integers(0, 2**32 - 1)))
    how = draw(st.sampled_from(["none", "few", "some", "very many", "all"]))
    if how == "none":
        return Pairs.empty()
    if how == "all":
        index = np.column_stack(np.triu_indices(n, 1))
    else:
        m = {"few": 3, "some": n, "very many": 5 * n}[how]
        index = rng.randint(n, size=(m, 2))
        index = index[index[:, 0] != index[:, 1]]
    y = rng.randint(draw(st.integers(1, 5)), size=n)
    said = draw(st.sampled_from(["true", "true", "noisy", "anything", "same", "different"]))
    same = {
        "true": y[index[:, 0]] == y[index[:, 1]],
        "noisy": (y[index[:, 0]] == y[index[:, 1]]) ^ (rng.uniform(size=len(index)) < 0.1),
        "anything": rng.uniform(size=len(index)) < 0.5,
        "same": np.ones(len(index), dtype=bool),
        "different": np.zeros(len(index), dtype=bool),
    }[said]
    low, high = draw(st.sampled_from([(0, 0), (0, 0), (-1, 1), (-30, 30)]))
    return Pairs(index, same, 10.0 ** rng.uniform(low, high, size=len(index)))


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    X = draw(data())
    n = len(X) if isinstance(X, list) else X.shape[0]
    return Problem(X, n, draw(answers(n)), draw(st.integers(1, n)))


# Settings

on_conflict = st.sampled_from(["raise", "drop", "drop"])
on_conflict_or_keep = st.sampled_from(["raise", "drop", "keep", "keep"])
seeds = st.integers(0, 2**32 - 1)
DEEP = {
    "hidden_layer_sizes": st.sampled_from([(), 1, 4, (5, 3)]),
    "visible": st.sampled_from(["auto", "auto", "gaussian", "binary"]),
    "init": st.sampled_from(["consensus", "pairs", "k-means", "random"]),
    "n_init": st.integers(1, 2),
    "solver": st.sampled_from(["adam", "adam", "subgradient"]),
    "free_weight": st.sampled_from([0.0, 1.0]),
    "neighbour_weight": st.sampled_from([0.0, 0.3]),
    "max_iter": st.integers(0, 5),
    "pretrain_epochs": st.integers(0, 2),
    "pretrain_batch_size": st.sampled_from([1, 7, 100]),
    "answer_price": st.sampled_from([0.0, 3.0]),
    "robust": st.booleans(),
    "even_out": st.booleans(),
    "on_conflict": on_conflict_or_keep,
    "batch_size": st.sampled_from([None, None, None, 1, 16]),
    "precision": st.sampled_from(["full", "full", "full", "bfloat16"]),
    "random_state": seeds,
}
CLUSTERERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "CMMC": (CMMC, {"init": st.sampled_from(["pairs", "k-means", "random"]), "max_iter": st.integers(0, 3)}),
    "COPKMeans": (COPKMeans, {"on_infeasible": st.sampled_from(["raise", "violate"]), "on_conflict": on_conflict}),
    "KernelKMeans": (
        KernelKMeans,
        {
            "kernel": st.sampled_from(["linear", "rbf", "poly", "sigmoid", "cosine"]),
            "init": st.sampled_from(["k-means++", "random"]),
            "n_init": st.integers(1, 3),
        },
    ),
    "LinkedSpectralClustering": (
        LinkedSpectralClustering,
        {"affinity": st.sampled_from(["nearest_neighbors", "rbf"]), "n_init": st.just(2), "on_conflict": on_conflict},
    ),
    "MPCKMeans": (
        MPCKMeans,
        {
            "metric": st.sampled_from(["diagonal", "full"]),
            "shared": st.booleans(),
            "n_init": st.integers(1, 2),
            "on_conflict": on_conflict_or_keep,
        },
    ),
    "PCKMeans": (PCKMeans, {"n_init": st.integers(1, 2), "on_conflict": on_conflict_or_keep}),
}
METRICS: dict[str, tuple[Any, dict[str, Any]]] = {
    "ITML": (ITML, {"prior": st.sampled_from(["identity", "covariance"]), "max_iter": st.integers(1, 20)}),
    "KISSME": (KISSME, {"shrinkage": st.sampled_from(["auto", 0.0, 0.5, 1.0])}),
    "XingMetric": (
        XingMetric,
        {"diagonal": st.booleans(), "shrinkage": st.sampled_from(["auto", 0.0, 1.0]), "max_iter": st.integers(1, 20)},
    ),
}


# Attempts


def try_max_margin_clustering(draw: Callable[[Any], Any]) -> None:
    """Fit, ask everything that there is to ask, save and load."""
    X, n, pairs, n_clusters = problem = draw(problems())
    settings = draw(st.fixed_dictionaries(DEEP))
    if settings["batch_size"] is None:
        settings["balance_weight"] = draw(st.sampled_from([0.0, 1.0]))
    if 0 < pairs.same.sum() < len(pairs) and draw(st.sampled_from([False, False, True])):
        n_clusters, settings["init"] = "auto", "consensus"
    with only_ours():
        model = MaxMarginClustering(n_clusters, **settings).fit(X, pairs=pairs)
        check_labels(model.labels_, n, n if n_clusters == "auto" else n_clusters)
        assert model.n_clusters_found_ == len(np.unique(model.labels_))
        assert sorted(model.suspicious_pairs_) == list(range(len(pairs)))
        check_finite(model)
        assert ((model.answer_trust_ >= 0) & (model.answer_trust_ <= 1)).all()
        check_deep_model(model, problem)


def check_deep_model(model: Any, problem: Problem) -> None:
    X, n, pairs, _ = problem
    scores = model.decision_function(X)
    k = len(model.head_coef_)
    assert scores.shape == (n, k)
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(model.predict(X), scores.argmax(1))
    codes = model.transform(X)
    assert codes.shape == (n, len(model.get_feature_names_out()))
    assert np.isfinite(codes).all()
    chance = model.cluster_proba(X)
    assert (chance >= 0).all()
    np.testing.assert_allclose(chance.sum(1), 1, rtol=1e-3 if chance.dtype == np.float32 else 1e-9)
    asked = np.column_stack([np.arange(n), (np.arange(n) + 1) % n])[: n if n > 1 else 0]
    for index in (pairs, asked):
        score, same = model.pair_score(X, index), model.pair_proba(X, index)
        assert score.shape == same.shape == (len(index),)
        assert np.isfinite(score).all() or (k == 1 and (score > 0).all())  # with one cluster nothing is different
        assert ((same >= 0) & (same <= 1 + 1e-6)).all()
    with tempfile.TemporaryDirectory() as folder:
        save(model, Path(folder) / "model.safetensors")
        again = load(Path(folder) / "model.safetensors")
    np.testing.assert_array_equal(again.decision_function(X), scores)
    np.testing.assert_array_equal(again.labels_, model.labels_)


def clusterer_attempt(name: str) -> Callable[[Callable[[Any], Any]], None]:
    def attempt(draw: Callable[[Any], Any]) -> None:
        X, n, pairs, n_clusters = draw(problems())
        make, choices = CLUSTERERS[name]
        settings = draw(st.fixed_dictionaries({**choices, "random_state": seeds}))
        with only_ours():
            model = make(n_clusters, **settings).fit(X, pairs=pairs)
            check_labels(model.labels_, n, n_clusters)
            check_finite(model)
            if hasattr(model, "predict"):
                check_labels(model.predict(X), n, n_clusters)

    return attempt


def metric_attempt(name: str) -> Callable[[Callable[[Any], Any]], None]:
    def attempt(draw: Callable[[Any], Any]) -> None:
        X, n, pairs, _ = draw(problems())
        make, choices = METRICS[name]
        settings = draw(st.fixed_dictionaries(choices))
        with only_ours():
            metric = make(**settings).fit(X, pairs=pairs)
            check_finite(metric)
            assert metric.components_.any()
            assert metric.transform(X).shape == (n, len(metric.components_))
            assert np.isfinite(metric.transform(X)).all()
            score = metric.pair_score(X, pairs)
            assert np.isfinite(score).all()
            assert (score <= 0).all()

    return attempt


def try_pairs(draw: Callable[[Any], Any]) -> None:
    """All that `Pairs` can do, and drawing pairs from labels."""
    n = draw(st.integers(1, 30))
    pairs = draw(answers(n))
    with only_ours():
        kept = pairs.without_conflicts()
        assert kept.conflicts() == []
        assert kept.is_in(pairs).all()
        closed = kept.closure()
        assert closed.closure() == closed
        assert pairs.is_in(kept).sum() == len(kept)
        assert (closed.components(n) == kept.components(n)).all()
        assert np.isfinite(closed.weight).all()
        assert len(pairs.confirmed()) == len(pairs)
        assert pairs._repr_html_()
        with tempfile.TemporaryDirectory() as folder:
            pairs.to_csv(Path(folder) / "pairs.csv")
            assert Pairs.read_csv(Path(folder) / "pairs.csv") == pairs
    with only_ours():
        y = draw(st.lists(st.sampled_from([-1, 0, 1, 2, 10**12]), max_size=30))
        wanted = draw(st.integers(0, 40))
        drawn = sample_pairs(y, wanted, balanced=draw(st.booleans()), random_state=draw(seeds))
        assert len(drawn) == wanted
        assert all((y[i] == y[j]) == s for (i, j), s in zip(drawn.index, drawn.same, strict=True))
    with only_ours():
        train, test = pairs.split(draw(st.sampled_from([0.5, 0.1, 1, 5])), random_state=draw(seeds))
        assert len(train) + len(test) == len(pairs)


def try_select_pairs(draw: Callable[[Any], Any]) -> None:
    """Questions by every strategy, with a model and without."""
    X, n, pairs, n_clusters = draw(problems())
    model = MaxMarginClustering(n_clusters, 3, init="k-means", n_init=1, max_iter=1, pretrain_epochs=1, random_state=0)
    strategy, wanted, seed = draw(st.sampled_from(list(STRATEGIES))), draw(st.integers(0, 5)), draw(seeds)
    with only_ours():
        if draw(st.booleans()):
            model.set_params(on_conflict="keep", robust=False).fit(X, pairs=pairs)
        found = select_pairs(model, X, pairs, wanted, strategy, seed)
        assert found.shape == (len(found), 2)
        assert len(found) <= wanted
        assert ((found >= 0) & (found < n)).all()
        assert (found[:, 0] != found[:, 1]).all()
        asked_before = set(map(tuple, pairs.index.tolist()))
        assert not asked_before & set(map(tuple, np.sort(found, axis=1).tolist()))


ATTEMPTS: dict[str, Callable[[Callable[[Any], Any]], None]] = {
    "MaxMarginClustering": try_max_margin_clustering,
    **{name: clusterer_attempt(name) for name in CLUSTERERS},
    **{name: metric_attempt(name) for name in METRICS},
    "Pairs": try_pairs,
    "select_pairs": try_select_pairs,
}


def check_labels(labels: Any, n: int, n_clusters: int) -> None:
    assert labels.shape == (n,)
    assert labels.dtype.kind == "i"
    assert ((labels >= 0) & (labels < n_clusters)).all()


def check_finite(model: Any) -> None:
    """No number that was learned is NaN or infinite."""
    for name, value in vars(model).items():
        if name.endswith("_") and not name.startswith("_"):
            assert is_finite(value), f"{name} = {value}"


def is_finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(is_finite, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(is_finite, value))
    if isinstance(value, (float, np.ndarray, np.floating)) and np.asarray(value).dtype.kind == "f":
        return bool(np.isfinite(value).all())
    return True
