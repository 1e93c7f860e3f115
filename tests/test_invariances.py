"""What must not matter: the order of rows and of answers, names of clusters, what follows anyway, precision, threads,
the byte order of the data, and what anybody else does with random numbers.

Not tested, for want of such a machine: that ARM and x86 give the same labels. Bits may differ there, as with another
number of threads: sums are added up in another order.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pair_strategies import N, build, consistent_answers
from safetensors import safe_open
from sklearn.base import clone
from sklearn.datasets import load_wine, make_blobs
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from pairmargin import (
    CMMC,
    ITML,
    KISSME,
    COPKMeans,
    KernelKMeans,
    LinkedSpectralClustering,
    MaxMarginClustering,
    MPCKMeans,
    Pairs,
    PCKMeans,
    XingMetric,
    clustering_accuracy,
    pair_roc,
    sample_pairs,
    save,
    select_pairs,
)
from pairmargin.graph import LinkedGraph, neighbour_graph
from pairmargin.query import STRATEGIES, Known

prove = settings(deadline=None, derandomize=True, max_examples=60)
OURS = MaxMarginClustering(3, 8, pretrain_epochs=3, n_init=2, max_iter=20, random_state=0)
CLUSTERERS = [
    cls(3, random_state=0) for cls in (CMMC, COPKMeans, KernelKMeans, LinkedSpectralClustering, MPCKMeans, PCKMeans)
]
METRICS = [ITML(), KISSME(), XingMetric()]


def named(*estimators: Any) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("estimator", estimators, ids=[type(each).__name__ for each in estimators])


each = named(OURS, *CLUSTERERS, *METRICS)
each_clusterer = named(OURS, *CLUSTERERS)


@pytest.fixture(scope="module")
def clouds() -> tuple[Any, Any, Pairs]:
    X, y = make_blobs(90, 4, centers=3, cluster_std=0.7, random_state=1)
    return X, y, sample_pairs(y, 40, random_state=0)


@pytest.fixture(scope="module")
def wine() -> tuple[Any, Any]:
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def learned(estimator: Any) -> dict[str, Any]:
    """Every array that was learned, by its name."""
    found = {}
    for name, value in vars(estimator).items():
        if name.endswith("_"):
            for k, part in enumerate(value if isinstance(value, list) else [value]):
                if isinstance(part, np.ndarray):
                    found[f"{name}{k}"] = part
    return found


def check_same_bits(one: Any, other: Any) -> None:
    left, right = learned(one), learned(other)
    assert left.keys() == right.keys()
    assert left
    for name in left:
        np.testing.assert_array_equal(left[name], right[name], err_msg=name)


# The order of the rows


def renumbered(pairs: Pairs, order: Any) -> Pairs:
    """The same answers when row ``order[k]`` has become row k."""
    return Pairs(np.argsort(order)[pairs.index], pairs.same, pairs.weight)


@each_clusterer
def test_clear_clusters_are_the_same_in_any_order_of_the_rows(estimator, clouds):
    X, _, pairs = clouds
    order = np.random.RandomState(0).permutation(len(X))
    plain = clone(estimator).fit(X, pairs=pairs).labels_
    shuffled = clone(estimator).fit(X[order], pairs=renumbered(pairs, order)).labels_
    assert clustering_accuracy(plain[order], shuffled) == 1


@named(KISSME(), XingMetric(tol=1e-9), ITML(tol=1e-9, max_iter=20_000))
def test_metrics_are_the_same_in_any_order_of_the_rows(estimator, wine):
    X, pairs = wine[0][:, :5], sample_pairs(wine[1], 40, random_state=0)
    order = np.random.RandomState(0).permutation(len(X))
    plain = clone(estimator).fit(X, pairs=pairs).get_mahalanobis_matrix()
    shuffled = clone(estimator).fit(X[order], pairs=renumbered(pairs, order)).get_mahalanobis_matrix()
    np.testing.assert_allclose(plain, shuffled, atol=1e-4 * np.abs(plain).max())


def test_where_clusters_overlap_no_order_of_the_rows_is_better_than_another(wine):
    """Other rows draw other random numbers: each fit differs a little, their mean does not."""
    X, y = wine
    by_class = np.argsort(y, kind="stable")
    accuracy = {"by class": [], "shuffled": []}
    for seed in range(4):
        pairs = sample_pairs(y, 30, random_state=seed)
        orders = {"by class": by_class, "shuffled": np.random.RandomState(seed).permutation(len(X))}
        for name, order in orders.items():
            model = clone(OURS).set_params(random_state=seed).fit(X[order], pairs=renumbered(pairs, order))
            accuracy[name].append(clustering_accuracy(y[order], model.labels_))
    assert abs(np.mean(accuracy["by class"]) - np.mean(accuracy["shuffled"])) < 0.03
    assert np.mean(accuracy["shuffled"]) > 0.9


def test_a_row_is_judged_by_itself(wine):
    X, y = wine
    model, order = clone(OURS).fit(X, pairs=sample_pairs(y, 40, random_state=0)), np.arange(len(X))[::-1]
    for ask in (model.predict, model.decision_function, model.transform, model.cluster_proba):
        np.testing.assert_allclose(ask(X[order]), ask(X)[order], rtol=1e-9)
        np.testing.assert_allclose(ask(X[:1]), ask(X)[:1], rtol=1e-9)


# The order of the answers, and how often they are given


@each
def test_the_order_of_the_answers_and_of_their_ends_gives_the_same_bits(estimator, clouds):
    X, _, pairs = clouds
    order = np.random.RandomState(0).permutation(len(pairs))
    other = Pairs(pairs.index[order, ::-1], pairs.same[order], pairs.weight[order])
    check_same_bits(clone(estimator).fit(X, pairs=pairs), clone(estimator).fit(X, pairs=other))


@each
def test_an_answer_given_twice_gives_the_bits_of_a_weight_of_two(estimator, clouds):
    X, _, pairs = clouds
    twice = Pairs(np.vstack([pairs.index, pairs.index[:9]]), np.r_[pairs.same, pairs.same[:9]])
    heavy = Pairs(pairs.index, pairs.same, np.where(np.arange(len(pairs)) < 9, 2.0, 1.0))
    check_same_bits(clone(estimator).fit(X, pairs=twice), clone(estimator).fit(X, pairs=heavy))


# Names of clusters


@prove
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=15), st.permutations("abcd"))
def test_names_of_classes_and_clusters_do_not_matter(labels, names):
    true, pred = map(np.array, zip(*labels, strict=True))
    accuracy = clustering_accuracy(true, pred)
    assert clustering_accuracy(np.array(names)[true], pred) == accuracy
    assert clustering_accuracy(true, np.array(names)[pred]) == accuracy
    assert clustering_accuracy(pred, true) == accuracy


# Answers that follow from others: the groups, the conflicts and the questions stay; only what is counted answer by
# answer, as the hinges of the objective are, may change


@prove
@given(consistent_answers(), st.data())
def test_an_answer_that_follows_changes_no_group_no_conflict_and_no_question(answers, data):
    pairs = build(answers)
    closed = pairs.closure()
    assume(len(closed) > len(pairs))
    more = pairs + closed[[data.draw(st.integers(0, len(closed) - 1))]]
    assert more.conflicts() == []
    np.testing.assert_array_equal(more.components(N), pairs.components(N))
    np.testing.assert_array_equal(more.closure().index, closed.index)
    np.testing.assert_array_equal(more.closure().same, closed.same)
    before, after = Known(pairs, N), Known(more, N)
    np.testing.assert_array_equal(after.open_pairs(), before.open_pairs())
    np.testing.assert_array_equal(after.group, before.group)


@prove
@given(consistent_answers())
def test_a_contradiction_is_one_whether_what_follows_is_written_out_or_not(answers):
    pairs = build(answers)
    closed = pairs.closure()
    assume(len(closed))
    for row in range(len(closed)):
        against = Pairs(closed.index[[row]], ~closed.same[[row]])
        assert (pairs + against).conflicts()
        assert (closed + against).conflicts()


@named(COPKMeans(3, random_state=0), LinkedSpectralClustering(3, random_state=0))
def test_methods_that_think_for_themselves_give_the_same_bits_with_what_follows(estimator, clouds):
    X, _, pairs = clouds
    assert len(pairs.closure()) > len(pairs)
    check_same_bits(clone(estimator).fit(X, pairs=pairs), clone(estimator).fit(X, pairs=pairs.closure()))


def test_the_graph_of_the_start_is_the_same_with_what_follows(clouds):
    X, _, pairs = clouds
    plain, told = (LinkedGraph.build(neighbour_graph(X), given) for given in (pairs, pairs.closure()))
    np.testing.assert_array_equal(plain.degree, told.degree)
    vector = np.random.RandomState(0).standard_normal(len(X))
    np.testing.assert_array_equal(plain @ vector, told @ vector)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_questions_do_not_depend_on_whether_what_follows_was_said(strategy, clouds):
    X, _, pairs = clouds
    plain, told = (select_pairs(None, X, given, 5, strategy, random_state=0) for given in (pairs, pairs.closure()))
    np.testing.assert_array_equal(plain, told)


# Precision, threads, byte order


@each_clusterer
def test_single_and_double_precision_agree_on_clear_clusters(estimator, clouds):
    X, _, pairs = clouds
    labels = [clone(estimator).fit(X.astype(kind), pairs=pairs).labels_ for kind in (np.float32, np.float64)]
    assert clustering_accuracy(*labels) == 1


@named(*METRICS)
def test_single_and_double_precision_rank_pairs_alike(estimator, wine):
    X, y = wine
    pairs, unseen = sample_pairs(y, 200, random_state=0).split(0.5, random_state=0)
    auc = [
        pair_roc(unseen, clone(estimator).fit(Z, pairs=pairs).pair_score(Z, unseen)).auc
        for Z in (X.astype(np.float32), X)
    ]
    assert auc[0] == pytest.approx(auc[1], abs=0.01)


@each_clusterer
def test_one_thread_and_two_find_the_same_clusters(estimator, clouds):
    X, _, pairs = clouds
    labels, before = [], torch.get_num_threads()
    try:
        for n_threads in (1, 2):
            torch.set_num_threads(n_threads)
            with threadpool_limits(n_threads):
                labels.append(clone(estimator).fit(X, pairs=pairs).labels_)
    finally:
        torch.set_num_threads(before)
    assert clustering_accuracy(*labels) == 1


@each
@pytest.mark.parametrize("kind", ["f8", "f4"])
def test_the_byte_order_of_the_data_does_not_matter(estimator, kind, clouds):
    X, _, pairs = clouds
    little, big = X.astype(f"<{kind}"), X.astype(f">{kind}")
    check_same_bits(clone(estimator).fit(little, pairs=pairs), clone(estimator).fit(big, pairs=pairs))


def test_a_model_file_has_numbers_of_known_width_alone(clouds, tmp_path):
    """The format is little-endian everywhere; numbers as wide as a machine's word would tie a file to it."""
    X, _, pairs = clouds
    model = clone(OURS).fit(X.astype(np.float32), pairs=pairs)
    save(model, tmp_path / "model.safetensors")
    with safe_open(tmp_path / "model.safetensors", framework="numpy") as file:
        kinds = {name: file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118 - not a dict
    assert {name for name, kind in kinds.items() if kind == "I64"} == {"labels_", "suspicious_pairs_"}
    assert set(kinds.values()) == {"I64", "F32", "F64"}


def test_labels_and_rows_are_64_bits_wide_on_every_machine(clouds):
    X, _, pairs = clouds
    model = clone(OURS).fit(X, pairs=pairs)
    asked = select_pairs(model, X, pairs, 2, "random", random_state=0)
    for rows in (pairs.index, pairs.points, pairs.components(90), model.labels_, model.predict(X), asked):
        assert rows.dtype == np.int64


# Other people's random numbers


@pytest.fixture
def everybody_s_chance():
    """The state of all generators that everybody shares, put back at the end."""
    states = random.getstate(), np.random.get_state(), torch.random.get_rng_state()  # noqa: NPY002
    yield lambda: (random.getstate(), np.random.get_state()[1].tolist(), torch.random.get_rng_state().tolist())  # noqa: NPY002
    random.setstate(states[0])
    np.random.set_state(states[1])  # noqa: NPY002
    torch.random.set_rng_state(states[2])


def shake(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    torch.manual_seed(seed)


@each
def test_shared_generators_are_neither_listened_to_nor_moved(estimator, clouds, everybody_s_chance):
    X, _, pairs = clouds
    fitted = []
    for seed in (1, 2):
        shake(seed)
        before = everybody_s_chance()
        fitted.append(clone(estimator).fit(X, pairs=pairs))
        assert everybody_s_chance() == before
    check_same_bits(*fitted)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_drawing_and_asking_neither_listen_to_shared_generators_nor_move_them(strategy, clouds, everybody_s_chance):
    X, y, pairs = clouds
    found = []
    for seed in (1, 2):
        shake(seed)
        before = everybody_s_chance()
        asked = select_pairs(None, X, pairs, 4, strategy, random_state=3)
        drawn, split = sample_pairs(y, 9, random_state=3), pairs.split(random_state=3)[0]
        assert everybody_s_chance() == before
        found.append((asked.tolist(), drawn.index.tolist(), split.index.tolist()))
    assert found[0] == found[1]
