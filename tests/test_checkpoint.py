"""A fit that is stopped at any moment goes on from there and ends with the same bits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_wine

from pairmargin import CheckpointError, MaxMarginClustering, OutputError, Pairs, sample_pairs

X, Y = load_wine(return_X_y=True)
PAIRS = sample_pairs(Y, 60, random_state=0)
SETTINGS: dict[str, Any] = {"n_init": 2, "pretrain_epochs": 4, "max_iter": 40, "random_state": 0}
WORKER = """
import sys
from pairmargin import MaxMarginClustering, sample_pairs
from sklearn.datasets import load_wine

X, y = load_wine(return_X_y=True)
say = lambda row: print(row["phase"], row.get("iteration", row.get("epoch")), flush=True)
model = MaxMarginClustering(3, n_init=2, pretrain_epochs=4, max_iter=40, random_state=0, checkpoint=sys.argv[1], callback=say)
model.fit(X, pairs=sample_pairs(y, 60, random_state=0))
"""  # noqa: E501


class Killed(Exception):
    """Instead of a signal."""


def fitted(folder: Path | None = None, **settings: Any) -> MaxMarginClustering:
    return MaxMarginClustering(3, **(SETTINGS | {"checkpoint": folder} | settings)).fit(X, pairs=PAIRS)


def killed_at(folder: Path, phase: str, step: int, **settings: Any) -> None:
    """A fit that ends in the middle of a phase."""

    def on_row(row: dict[str, Any]) -> None:
        if (row["phase"], row.get("iteration", row.get("epoch"))) == (phase, step):
            raise Killed

    with pytest.raises(Killed):
        fitted(folder, callback=on_row, **settings)


def same(one: MaxMarginClustering, other: MaxMarginClustering) -> bool:
    arrays = [(*model.coefs_, model.head_coef_, model.head_intercept_, model.labels_) for model in (one, other)]
    objectives = [[row["objective"] for row in model.history_] for model in (one, other)]
    return all(map(np.array_equal, *arrays)) and objectives[0] == objectives[1]


@pytest.fixture(scope="module")
def whole() -> MaxMarginClustering:
    """The fit that nobody stopped."""
    return fitted()


@pytest.mark.parametrize(
    ("phase", "step"), [("pretrain", 1), ("pretrain", 3), ("judge", 5), ("train", 0), ("train", 17), ("train", 20)]
)
def test_a_fit_goes_on_from_where_it_was(phase, step, whole, tmp_path):
    killed_at(tmp_path, phase, step)
    assert same(fitted(tmp_path), whole)


def test_a_fit_may_be_stopped_again_and_again(whole, tmp_path):
    for phase, step in (("pretrain", 2), ("judge", 1), ("train", 12), ("train", 25), ("train", 31)):
        killed_at(tmp_path, phase, step)
    assert same(fitted(tmp_path), whole)


def test_what_is_done_is_not_done_again(whole, tmp_path):
    killed_at(tmp_path, "train", 25)
    rows: list[tuple[str, int]] = []
    fitted(tmp_path, callback=lambda row: rows.append((row["phase"], row.get("iteration", -1))))
    assert rows[0] == ("train", 21)  # after the last iteration that was kept
    assert same(fitted(tmp_path), whole)  # all is done, and read


def test_in_batches_too(tmp_path):
    settings = {"batch_size": 50, "max_iter": 6, "checkpoint_every": 2}
    killed_at(tmp_path, "train", 3, **settings)
    assert same(fitted(tmp_path, **settings), fitted(**settings))


@pytest.mark.parametrize("line", ["pretrain 2", "judge 20", "train 1", "train 27"])
def test_a_process_may_be_killed(line, whole, tmp_path):
    command = [sys.executable, "-c", WORKER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}) as fit:
        assert fit.stdout is not None
        assert any(said.strip() == line for said in fit.stdout)
        fit.send_signal(signal.SIGKILL)
        fit.stdout.read()
    assert fit.returncode == -signal.SIGKILL
    assert same(fitted(tmp_path), whole)


# What is refused


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"random_state": 1}, "it has random_state=0, now it is 1"),
        ({"hidden_layer_sizes": (7,)}, r"it has hidden_layer_sizes=\(100,\), now it is \(7,\)"),
    ],
)
def test_a_folder_of_other_settings(settings, message, tmp_path):
    killed_at(tmp_path, "train", 5)
    with pytest.raises(CheckpointError, match=message):
        fitted(tmp_path, **settings)


def test_a_folder_of_other_data_or_answers(whole, tmp_path):
    killed_at(tmp_path, "train", 5)
    model = MaxMarginClustering(3, **SETTINGS, checkpoint=tmp_path)
    turned = Pairs(PAIRS.index, np.concatenate([~PAIRS.same[:1], PAIRS.same[1:]]))
    one_row = X.copy()
    one_row[5] += 1
    for data, pairs, what in ((one_row, PAIRS, "data"), (X, PAIRS[:-1], "answers"), (X, turned, "answers")):
        with pytest.raises(CheckpointError, match=f"it does not have the same {what}; choose another folder"):
            model.fit(data, pairs=pairs)
    assert same(fitted(tmp_path), whole)  # none of them has harmed it


def test_a_folder_of_a_network_that_began_elsewhere(tmp_path):
    """What a warm fit goes on from is a part of it."""

    def warm(seed: int, folder: Path | None) -> MaxMarginClustering:
        model = MaxMarginClustering(3, **(SETTINGS | {"random_state": seed}), warm_start=True).fit(X, pairs=PAIRS[:30])
        return model.set_params(checkpoint=folder, random_state=0).fit(X, pairs=PAIRS)

    assert same(warm(0, tmp_path), warm(0, None))
    with pytest.raises(CheckpointError, match="it does not have the same network to go on from"):
        warm(1, tmp_path)
    with pytest.raises(CheckpointError, match="it does not have the same network to go on from"):
        fitted(tmp_path, warm_start=True)


def test_chance_is_told_in_words_that_another_process_uses_too(tmp_path):
    fitted(tmp_path / "one", random_state=np.int64(0))
    fitted(tmp_path / "one")
    fitted(tmp_path / "other", random_state=np.random.RandomState(3))
    fitted(tmp_path / "other", random_state=np.random.RandomState(3))
    with pytest.raises(CheckpointError, match=r"it has random_state=RandomState with \w{16}, now it is RandomState"):
        fitted(tmp_path / "other", random_state=np.random.RandomState(4))


@pytest.mark.parametrize("content", [b"", b"nonsense", None])
def test_a_damaged_file_is_named(content, whole, tmp_path):
    killed_at(tmp_path, "train", 15)
    for path in sorted(tmp_path.iterdir()):
        good = path.read_bytes()
        path.write_bytes(good[: len(good) // 2] if content is None else content)
        with pytest.raises(CheckpointError, match=rf"{path.name} is damaged.*delete"):
            fitted(tmp_path)
        path.write_bytes(good)
    assert same(fitted(tmp_path), whole)


def test_a_stage_whose_file_is_deleted_is_done_again(whole, tmp_path):
    killed_at(tmp_path, "train", 15)
    for path in sorted(tmp_path.glob("*.safetensors")):
        path.unlink()
        assert same(fitted(tmp_path), whole), path.name


def test_a_full_disk_costs_nothing_that_was_kept(whole, tmp_path, monkeypatch):
    killed_at(tmp_path, "train", 15)
    kept = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", _full)
        with pytest.raises(OutputError, match="no space left on device"):
            fitted(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == kept
    assert same(fitted(tmp_path), whole)


def _full(*ignored: Any) -> None:
    raise OSError(28, "No space left on device")


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="file"):
        fitted(tmp_path / "file" / "folder")


def test_what_is_kept_is_no_code(tmp_path):
    killed_at(tmp_path, "train", 5)
    facts = json.loads((tmp_path / "fit.json").read_text())
    assert facts["settings"]["random_state"] == "0"
    assert {path.suffix for path in tmp_path.iterdir()} == {".json", ".safetensors"}
