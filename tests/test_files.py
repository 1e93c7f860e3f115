"""From files to files: what is learned, labelled, written down and held against other answers."""

from __future__ import annotations

import csv
import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris

from pairmargin import (
    ChangedDataWarning,
    InvalidParameterError,
    MaxMarginClustering,
    OutputError,
    Pairs,
    clustering_accuracy,
    load,
    load_recipe,
    pair_roc,
    read_items,
    read_pairs,
    sample_pairs,
)
from pairmargin.files import evaluate_files, fit_files, labels, outputs, predict_file, write_result
from pairmargin.files.fitting import fingerprint, learned_rows, truth_scores

QUICK = {"max_iter": 20, "pretrain_epochs": 3, "n_init": 1, "random_state": 0}
X, Y = load_iris(return_X_y=True)


def write_csv(path: Path, header: str, rows) -> Path:
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def write_answers(path: Path, pairs: Pairs) -> Path:
    rows = ((f"f{i}", f"f{j}", same) for (i, j), same in zip(pairs.index, pairs.same, strict=True))
    return write_csv(path, "a,b,same", rows)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Iris with names and kinds, answers to learn from, and answers to compare with."""
    folder = tmp_path_factory.mktemp("iris")
    rows = ((f"f{k}", *row, f"kind {y}") for k, (row, y) in enumerate(zip(X, Y, strict=True)))
    write_csv(folder / "flowers.csv", "name,a,b,c,d,kind", rows)
    learn, held_out = sample_pairs(Y, 120, random_state=0).split(0.5, random_state=0)
    write_answers(folder / "answers.csv", learn)
    write_answers(folder / "held-out.csv", held_out)
    return folder


def fitted(folder: Path, **changes):
    options = {"id": "name", "truth": "kind"}
    return fit_files(
        MaxMarginClustering(3, **QUICK),
        folder / "flowers.csv",
        folder / "answers.csv",
        **({"options": options} | changes),
    )


@pytest.fixture(scope="module")
def result(folder):
    return fitted(folder)


@pytest.fixture(scope="module")
def model(folder, result) -> Path:
    write_result(result, folder)
    return folder / "model.safetensors"


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


# Learning


def test_it_learns_what_the_estimator_learns(folder, result):
    items = read_items(folder / "flowers.csv", id="name", truth="kind")
    pairs = read_pairs(folder / "answers.csv", items)
    by_hand = MaxMarginClustering(3, **QUICK).fit(items.features, pairs=pairs)
    np.testing.assert_array_equal(result.labels.cluster, by_hand.labels_)
    assert result.model.objective_ == by_hand.objective_
    assert result.model.callback is None
    assert list(result.rows) == list(range(150))
    assert not result.stopped


def test_truth_changes_nothing_but_the_scores(folder, result):
    blind = fitted(folder, options={"id": "name", "exclude": ["kind"]})
    np.testing.assert_array_equal(blind.labels.cluster, result.labels.cluster)
    assert blind.truth is None
    assert blind.scores is None
    assert result.scores["accuracy"] == clustering_accuracy(Y, result.labels.cluster) > 0.8


def test_labels_that_are_missing_are_not_scored():
    truth, cluster = np.array(["a", None, "b", "a"], dtype=object), np.array([0, 1, 1, 0])
    assert truth_scores(truth, cluster)["accuracy"] == 1
    assert truth_scores(np.array([None], dtype=object), np.array([0])) == {}


def test_a_sample_has_all_that_answers_are_about():
    pairs = Pairs([(5, 90), (17, 3)], [True, False])
    rows = learned_rows(100, pairs, 20, 0)
    assert len(rows) == 20
    assert {3, 5, 17, 90} <= set(rows)
    assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(rows, learned_rows(100, pairs, 20, 0))
    assert set(rows) != set(learned_rows(100, pairs, 20, 1))
    assert list(learned_rows(100, pairs, 2, 0)) == [3, 5, 17, 90]
    assert len(learned_rows(100, pairs, 0, 0)) == len(learned_rows(100, pairs, 100, 0)) == 100


def test_what_was_not_learned_from_is_labelled_by_what_was(folder):
    part = fitted(folder, sample=100)
    assert len(part.rows) == len(part.model.labels_) == 100
    np.testing.assert_array_equal(part.labels.cluster[part.rows], part.model.labels_)
    others = np.setdiff1d(np.arange(150), part.rows)
    np.testing.assert_array_equal(part.labels.cluster[others], part.model.predict(part.items.features[others]))
    np.testing.assert_array_equal(part.rows[np.searchsorted(part.rows, part.pairs.index)], part.pairs.index)
    assert part.kept.mean() > 0.8  # the answers were renumbered as the rows were


def test_rows_are_told_and_can_stop_the_training(folder):
    phases = []

    def on_row(row):
        phases.append(row["phase"])
        return row["phase"] == "train" and row["iteration"] == 3

    part = fitted(folder, on_row=on_row)
    assert part.stopped
    assert part.model.n_iter_ == 3
    assert list(dict.fromkeys(phases)) == ["read", "pretrain", "judge", "train", "label"]


def test_fingerprints(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"abc")
    assert fingerprint(path) == {"path": str(path), "bytes": 3, "sha256": hashlib.sha256(b"abc").hexdigest()}
    first = fingerprint(tmp_path)["sha256"]
    assert fingerprint(tmp_path)["sha256"] == first
    path.rename(tmp_path / "b.txt")
    assert fingerprint(tmp_path)["sha256"] != first


def test_the_fingerprint_of_a_folder_is_that_of_what_becomes_items(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a-b").mkdir()
    for name in ("a-b/x.txt", "a/x.txt", "B.PNG"):
        (tmp_path / name).write_text(name)
    stored = hashlib.sha256()  # as sessions of before have it
    for name in ("B.PNG", "a/x.txt", "a-b/x.txt"):
        stored.update(f"{name}\0{hashlib.sha256(name.encode()).hexdigest()}\n".encode())
    assert fingerprint(tmp_path)["sha256"] == stored.hexdigest()
    (tmp_path / ".DS_Store").write_bytes(b"\0\1")
    (tmp_path / "a" / "Thumbs.db").write_bytes(b"\0\1")
    assert fingerprint(tmp_path) == {"path": str(tmp_path), "bytes": 21, "sha256": stored.hexdigest()}


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="needs links")
def test_a_fingerprint_takes_nothing_from_outside_of_the_folder(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("a")
    before = fingerprint(folder)
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "leak.txt").symlink_to(tmp_path / "secret.txt")
    assert fingerprint(folder) == before


# Labels


def test_confidence_and_second_choice_are_those_of_the_chances(result):
    chances = result.model.cluster_proba(result.items.features)
    found = labels.label(result.model, result.items.features)
    np.testing.assert_array_equal(found.cluster, result.model.predict(result.items.features))
    np.testing.assert_array_equal(found.confidence, chances.max(1))
    np.testing.assert_array_equal(found.second, np.argsort(chances, axis=1)[:, -2])


def test_where_answers_weigh_more_than_scores_the_scores_come_second(result):
    features, rows = result.items.features, np.array([4, 7])
    by_scores = labels.label(result.model, features)
    wanted = (by_scores.cluster[rows] + [0, 1]) % 3

    class Model:
        labels_ = wanted
        cluster_proba = result.model.cluster_proba

    found = labels.with_known(by_scores, Model(), features, rows)
    assert list(found.cluster[rows]) == list(wanted)
    assert found.second[7] == by_scores.cluster[7]
    assert found.confidence[7] == result.model.cluster_proba(features[[7]])[0, wanted[1]]
    for ours, before in zip(found, by_scores, strict=True):
        np.testing.assert_array_equal(np.delete(ours, 7), np.delete(before, 7))


def test_a_single_cluster_has_no_second(tmp_path):
    model = MaxMarginClustering(1, **QUICK).fit(X)
    with (tmp_path / "labels.csv").open("w", newline="") as file:
        labels.write_rows(file, ['with "quotes", and comma'], labels.label(model, X[:1]))
    assert (tmp_path / "labels.csv").read_text() == '"with ""quotes"", and comma",0,1.0000,\n'


# Outputs


def test_outputs(folder, result, model):
    rows = rows_of(folder / "labels.csv")
    assert list(rows[0]) == ["id", "cluster", "confidence", "second_choice"]
    assert [row["id"] for row in rows] == result.items.ids
    assert [int(row["cluster"]) for row in rows] == result.labels.cluster.tolist()
    assert all(0 < float(row["confidence"]) <= 1 and row["second_choice"] != row["cluster"] for row in rows)
    np.testing.assert_array_equal(load(model).coefs_[0], result.model.coefs_[0])
    assert load_recipe(model).feature_names == ["a", "b", "c", "d"]


def test_the_record_is_enough_to_do_it_again(folder, model):
    told = json.loads((folder / "run.json").read_text())
    again = MaxMarginClustering(**told["settings"], random_state=told["seed"])
    second = fit_files(again, told["data"]["path"], told["pairs"]["path"], options=told["options"])
    assert second.model.objective_ == told["objective"]
    assert told["clusters"] == {str(k): int(n) for k, n in enumerate(np.bincount(second.labels.cluster))}
    assert told["data"]["sha256"] == hashlib.sha256((folder / "flowers.csv").read_bytes()).hexdigest()
    assert told["data"]["items"] == told["learned_from"] == 150
    assert told["pairs"]["answers"] == told["pairs"]["same"] + told["pairs"]["different"] == 60
    assert told["answers_kept"] == second.kept.sum()
    assert told["notes"] == second.items.notes
    assert set(told["versions"]) >= {"pairmargin", "python", "torch"}
    assert set(told["seconds"]) == {"reading", "fitting", "labelling"}
    assert told["scores"]["accuracy"] == pytest.approx(clustering_accuracy(Y, second.labels.cluster))
    assert told["stopped"] is False


def test_the_record_holds_nothing_that_json_does_not_know(result):
    json.dumps(outputs.record(result), allow_nan=False)


# New files


def test_new_files_are_labelled_as_the_first_one_was(folder, model, tmp_path):
    n_items, notes = predict_file(model, folder / "flowers.csv", tmp_path / "new.csv")
    assert (n_items, notes) == (150, [])
    by_scores = labels.label(load(model), load_recipe(model).read(folder / "flowers.csv").features)
    rows = rows_of(tmp_path / "new.csv")
    assert [row["id"] for row in rows] == [f"f{k}" for k in range(150)]
    assert [int(row["cluster"]) for row in rows] == by_scores.cluster.tolist()
    assert [float(row["confidence"]) for row in rows] == pytest.approx(by_scores.confidence, abs=5e-5)


def test_pieces_are_the_whole(folder, model, tmp_path, monkeypatch):
    counts = []
    predict_file(model, folder / "flowers.csv", tmp_path / "whole.csv")
    monkeypatch.setattr("pairmargin.files.predicting.ROWS", 40)
    predict_file(model, folder / "flowers.csv", tmp_path / "pieces.csv", on_items=counts.append)
    assert counts == [40, 80, 120, 150]
    assert (tmp_path / "pieces.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_notes_of_pieces_add_up(folder, model, tmp_path, monkeypatch):
    lines = (folder / "flowers.csv").read_text().splitlines()
    for k in (3, 60, 61, 149):
        name, _, *rest = lines[k].split(",")
        lines[k] = ",".join([name, "", *rest])
    (tmp_path / "gaps.csv").write_text("\n".join([lines[0] + ",new", *(f"{line},1" for line in lines[1:])]))
    _, whole = predict_file(model, tmp_path / "gaps.csv", tmp_path / "new.csv")
    monkeypatch.setattr("pairmargin.files.predicting.ROWS", 40)
    _, pieces = predict_file(model, tmp_path / "gaps.csv", tmp_path / "new.csv")
    assert pieces == whole
    assert len(whole) == 2
    assert ": 4 missing values filled in with the median, " in whole[1]


def test_a_file_that_fails_half_way_leaves_nothing(folder, model, tmp_path, monkeypatch):
    lines = (folder / "flowers.csv").read_text().splitlines()
    lines[100] = "f99,1,2,3"
    (tmp_path / "ragged.csv").write_text("\n".join(lines))
    monkeypatch.setattr("pairmargin.files.predicting.ROWS", 40)
    with pytest.raises(ValueError, match=r"line 101 of ragged\.csv"):
        predict_file(model, tmp_path / "ragged.csv", tmp_path / "new.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["ragged.csv"]


def test_what_is_read_is_not_written_over(folder, model):
    before = (folder / "flowers.csv").read_bytes()
    for path in (folder / "flowers.csv", model):
        with pytest.raises(OutputError, match="is the file to read"):
            predict_file(model, folder / "flowers.csv", path)
    assert (folder / "flowers.csv").read_bytes() == before


# Held-out answers


def test_evaluation_by_hand(folder, model):
    found = evaluate_files(model, folder / "flowers.csv", folder / "held-out.csv", truth="kind")
    items = load_recipe(model).read(folder / "flowers.csv")
    pairs, network = read_pairs(folder / "held-out.csv", items), load(model)
    one, other = network.predict(items.features)[pairs.index].T
    right, chance = (one == other) == pairs.same, network.pair_proba(items.features, pairs)
    assert (found.items, found.answers) == (150, 60)
    assert found.agreement == right.mean()
    assert found.agreement_same == right[pairs.same].mean()
    assert found.agreement_different == right[~pairs.same].mean()
    assert found.auc == pytest.approx(pair_roc(pairs, network.pair_score(items.features, pairs)).auc)
    assert found.brier == pytest.approx(np.mean((chance - pairs.same) ** 2), rel=1e-5)
    assert sum(each.answers for each in found.reliability) == 60
    assert 0 <= found.calibration_error < 0.5
    assert found.scores["accuracy"] == clustering_accuracy(Y, network.predict(items.features))
    json.dumps(found.to_dict(), allow_nan=False)


def test_answers_of_one_kind_have_no_roc(folder, model, tmp_path):
    path = write_csv(tmp_path / "same.csv", "a,b,same", [("f0", "f1", 1), ("f2", "f3", 1)])
    found = evaluate_files(model, folder / "flowers.csv", path)
    assert found.auc is None
    assert found.agreement_different is None
    assert found.agreement_same == found.agreement
    assert found.scores is not None  # the model was made with a column of labels


def test_what_evaluation_refuses(folder, model, tmp_path):
    (tmp_path / "none.csv").write_text("a,b,same\n")
    with pytest.raises(ValueError, match=r"none\.csv"):
        evaluate_files(model, folder / "flowers.csv", tmp_path / "none.csv")
    with pytest.raises(InvalidParameterError, match=r"flowers\.csv has no labels called 'sort'"):
        evaluate_files(model, folder / "flowers.csv", folder / "held-out.csv", truth="sort")
    with pytest.raises(InvalidParameterError, match="truth='a' is a column that the features were made of"):
        evaluate_files(model, folder / "flowers.csv", folder / "held-out.csv", truth="a")


# A file that has changed since


def changed(folder: Path, where: Path, name: str = "flowers.csv") -> Path:
    """The file that was fitted, in another place and with one row less."""
    lines = (folder / "flowers.csv").read_text().splitlines()
    (where / name).write_text("\n".join(lines[:-1]) + "\n")
    return where / name


def test_a_file_that_has_changed_since_the_fit_is_told(folder, model, tmp_path):
    data = changed(folder, tmp_path)
    told = rf"flowers\.csv has changed since .*\({(folder / 'flowers.csv').stat().st_size:,} bytes then, .* fit again"
    with pytest.warns(ChangedDataWarning, match=told):
        n_items, _ = predict_file(model, data, tmp_path / "labels.csv")
    assert n_items == 149  # it is labelled all the same
    write_csv(tmp_path / "some.csv", "a,b,same", [("f0", "f1", 1), ("f2", "f99", 0)])
    with pytest.warns(ChangedDataWarning, match="other contents"):
        evaluate_files(model, data, tmp_path / "some.csv")


def test_what_is_the_same_or_new_or_unknown_is_not(folder, model, tmp_path):
    predict_file(model, folder / "flowers.csv", tmp_path / "1.csv")  # warnings are errors
    predict_file(model, changed(folder, tmp_path, "new.csv"), tmp_path / "2.csv")
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "model.safetensors").write_bytes(model.read_bytes())
    data = changed(folder, tmp_path)
    predict_file(alone / "model.safetensors", data, tmp_path / "3.csv")
    for damaged in ("", "[]", '{"data": 7}', '{"data": {"path": "flowers.csv"}}', "\udcff"):
        (alone / "run.json").write_text(damaged, encoding="utf-8", errors="surrogateescape")
        predict_file(alone / "model.safetensors", data, tmp_path / "4.csv")
