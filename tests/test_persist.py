"""Models on disk: what comes back, what is refused, and the file that must load for ever."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.random import RandomState
from safetensors.numpy import load_file, save_file
from sklearn.datasets import load_iris

from pairmargin import MaxMarginClustering, ModelFileError, load, load_recipe, sample_pairs, save

GOLDEN = Path(__file__).parent / "data" / "iris-format-1.safetensors"
GOLDEN_2 = GOLDEN.with_name("iris-format-2.safetensors")


@pytest.fixture
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture
def model(iris):
    X, y = iris
    settings = {"n_init": 1, "pretrain_epochs": 3, "max_iter": 20, "random_state": 0}
    return MaxMarginClustering(3, (8, 4), **settings).fit(X, pairs=sample_pairs(y, 40, random_state=0))


def rewritten(path, target, arrays=None, **metadata):
    """A copy of a model file with some arrays and some metadata replaced; None takes an entry out."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        old = file.metadata()
    replaced = {k: v for k, v in (old | metadata).items() if v is not None}
    save_file({k: v for k, v in (load_file(path) | (arrays or {})).items() if v is not None}, target, replaced)
    return target


@pytest.mark.parametrize("sizes", [(), 5, (8, 4)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_round_trip_gives_the_same_scores_bit_for_bit(sizes, dtype, iris, tmp_path):
    X, pairs = iris[0].astype(dtype), sample_pairs(iris[1], 30, random_state=0)
    model = MaxMarginClustering(3, sizes, n_init=1, pretrain_epochs=2, max_iter=5, random_state=0).fit(X, pairs=pairs)
    save(model, tmp_path / "m.safetensors")
    again = load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    np.testing.assert_array_equal(again.cluster_proba(X), model.cluster_proba(X))
    np.testing.assert_array_equal(again.pair_proba(X, pairs), model.pair_proba(X, pairs))
    assert again.get_params() == model.get_params()
    learned = {name for name in vars(model) if name.endswith("_")}
    assert learned == {name for name in vars(again) if name.endswith("_")}
    for name in learned:
        np.testing.assert_equal(getattr(again, name), getattr(model, name))


def test_a_loaded_model_goes_on_learning(model, iris, tmp_path):
    X, y = iris
    save(model, tmp_path / "m.safetensors")
    again = load(tmp_path / "m.safetensors").set_params(warm_start=True, max_iter=50)
    again.fit(X, pairs=sample_pairs(y, 60, random_state=1))
    assert again.n_iter_ > 0


def test_column_names_come_back(iris, tmp_path):
    frame = pd.DataFrame(iris[0], columns=list("abcd"))
    save(MaxMarginClustering(3, (), n_init=1, max_iter=2).fit(frame), tmp_path / "m.safetensors")
    with pytest.raises(ValueError, match="feature names"):
        load(tmp_path / "m.safetensors").predict(frame[list("dcba")])


def test_what_json_cannot_hold_comes_back_as_none(iris, tmp_path):
    rows = []
    model = MaxMarginClustering(
        np.int64(3), np.array([4]), n_init=1, max_iter=2, callback=rows.append, random_state=RandomState(0)
    ).fit(iris[0])
    save(model, tmp_path / "m.safetensors")
    again = load(tmp_path / "m.safetensors")
    assert again.callback is None
    assert again.random_state is None
    assert (again.n_clusters, again.hidden_layer_sizes) == (3, (4,))


def test_the_file_says_what_wrote_it(model, tmp_path):
    from safetensors import safe_open

    save(model, tmp_path / "m.safetensors")
    with safe_open(tmp_path / "m.safetensors", framework="numpy") as file:
        metadata = {k: json.loads(v) for k, v in file.metadata().items()}
    assert metadata["format"] == "pairmargin"
    assert metadata["format_number"] == 2
    assert set(metadata["versions"]) == {"python", "pairmargin", "numpy", "scikit-learn", "torch", "safetensors"}


def test_a_file_of_format_1_loads_for_ever(iris):
    recorded = json.loads(GOLDEN.with_suffix(".json").read_text())
    model = load(GOLDEN)
    np.testing.assert_allclose(model.decision_function(iris[0])[::30], recorded["scores"], rtol=1e-10)
    np.testing.assert_array_equal(model.predict(iris[0]), recorded["labels"])
    assert model.n_clusters == model.n_clusters_found_ == 3
    chance = model.cluster_proba(iris[0])  # what it knew nothing of can still be asked
    np.testing.assert_allclose(chance.sum(1), 1)
    np.testing.assert_array_equal(chance.argmax(1), recorded["labels"])
    assert (model.error_rate_, len(model.answer_trust_), len(model.suspicious_pairs_)) == (0, 0, 0)


def test_a_file_of_format_1_goes_on_learning(iris):
    model = load(GOLDEN).set_params(warm_start=True, max_iter=2)
    assert model.fit(iris[0], pairs=sample_pairs(iris[1], 30, random_state=0)).answer_trust_.shape == (30,)


def test_a_file_of_format_2_loads_for_ever(iris, tmp_path):
    recorded = json.loads(GOLDEN_2.with_suffix(".json").read_text())
    flowers = [",".join(map(str, row)) + (",blue" if k % 2 else ",white") for k, row in enumerate(iris[0])]
    (tmp_path / "flowers.csv").write_text("\n".join(["a,b,c,d,colour", *flowers, ""]))
    features = load_recipe(GOLDEN_2).read(tmp_path / "flowers.csv").features
    model = load(GOLDEN_2)
    np.testing.assert_allclose(model.decision_function(features)[::30], recorded["scores"], rtol=1e-10)
    np.testing.assert_array_equal(model.predict(features), recorded["labels"])
    np.testing.assert_allclose(model.cluster_proba(features)[0], recorded["first_chances"], rtol=1e-10)
    assert model.suspicious_pairs_[:5].tolist() == recorded["suspicious"]
    assert (model.n_clusters, model.n_clusters_found_, model.error_rate_) == (4, recorded["clusters"], 0)


def test_unfitted_models_are_not_saved(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        save(MaxMarginClustering(3), tmp_path / "m.safetensors")
    assert not list(tmp_path.iterdir())


def test_a_failed_save_leaves_the_old_file_and_nothing_else(model, tmp_path, monkeypatch):
    path = tmp_path / "m.safetensors"
    path.write_bytes(b"the old one")

    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        save(model, path)
    assert path.read_bytes() == b"the old one"
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_file_is_called_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.safetensors")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not a model", b"\x80\x04pickled", b"\xff" * 64])
def test_a_foreign_file_is_refused(content, tmp_path):
    path = tmp_path / "m.safetensors"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="damaged, cut short or no model file"):
        load(path)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused(share, tmp_path):
    content = GOLDEN.read_bytes()
    path = tmp_path / "m.safetensors"
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(ModelFileError):
        load(path)


def test_a_safetensors_file_of_somebody_else_is_refused(tmp_path):
    save_file({"weight": np.zeros(3)}, tmp_path / "m.safetensors")
    with pytest.raises(ModelFileError, match=r"not one that pairmargin\.save has written"):
        load(tmp_path / "m.safetensors")


@pytest.mark.parametrize(
    ("arrays", "metadata", "message"),
    [
        ({}, {"format_number": "3"}, "has format number 3, this version reads up to 2; upgrade pairmargin"),
        ({}, {"format_number": None}, "has format number none"),
        ({"head_coef_": None}, {}, "head_coef_"),
        ({"answer_trust_": None}, {}, "answer_trust_"),
        ({"head_coef_": np.zeros((3, 9))}, {}, r"head_coef_ has shape \(3, 9\), not \(3, 4\)"),
        ({"coefs_.1": np.zeros((2, 2))}, {}, r"coefs_.1 has shape \(2, 2\), not \(8, 4\)"),
        ({}, {"settings": '{"n_clusters": 3}'}, "hidden_layer_sizes"),
        ({}, {"settings": '{"n_clusters": 3, "hidden_layer_sizes": [8, 4], "evil": 1}'}, "evil"),
        ({}, {"facts": "{"}, "damaged"),
        ({}, {"facts": "[]"}, "lacks something"),
    ],
)
def test_a_tampered_file_is_refused(arrays, metadata, message, model, tmp_path):
    save(model, tmp_path / "m.safetensors")
    path = rewritten(tmp_path / "m.safetensors", tmp_path / "n.safetensors", arrays, **metadata)
    with pytest.raises(ModelFileError, match=message):
        load(path)


def test_a_file_without_a_recipe_says_so(model, tmp_path):
    save(model, tmp_path / "m.safetensors")
    for path in (tmp_path / "m.safetensors", GOLDEN):  # the second is from before there were recipes
        with pytest.raises(
            ModelFileError, match=r"has no recipe; write one with save\(model, path, recipe=items\.recipe\)"
        ):
            load_recipe(path)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"format": 1, "kind": "smell"}, "lacks something that it needs"),
        ({"format": 1, "kind": "vector"}, "lacks something that it needs"),
        ({"format": 99}, "format 99, this version reads up to 1; upgrade pairmargin"),
    ],
)
def test_a_recipe_that_makes_no_sense_is_refused(model, tmp_path, facts, message):
    save(model, tmp_path / "m.safetensors")
    odd = rewritten(tmp_path / "m.safetensors", tmp_path / "odd.safetensors", recipe=json.dumps(facts))
    with pytest.raises(ModelFileError, match=message):
        load_recipe(odd)
    assert load(odd).n_clusters == 3  # the model is as good as before
