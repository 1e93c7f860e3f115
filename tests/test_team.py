"""Processes that fit one model together: real ones, in a real process group."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch.distributed as dist

from pairmargin import MaxMarginClustering, Pairs, clustering_accuracy, sample_pairs
from pairmargin.exceptions import TeamError
from pairmargin.team import Team, launched

WORKER = Path(__file__).with_name("team_worker.py")
ENVIRONMENT = os.environ | {
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": os.pathsep.join(sys.path),
    "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",  # else a restart may look for the processes that died
}
SETTINGS: dict[str, Any] = {"n_clusters": 3, "hidden_layer_sizes": [8, 5], "max_iter": 15, "pretrain_epochs": 3}
SETTINGS |= {"pretrain_batch_size": 32, "random_state": 0}


def clouds(n: int = 150) -> tuple[Any, Any, Pairs]:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=n)
    X = rng.normal(size=(n, 4)) + 8 * np.eye(4)[y]
    return X, y, sample_pairs(y, 60, random_state=0)


def run(folder: Path, size: int, **task: Any) -> list[Any]:
    """Let a team fit a model; what each member has, or the line that it complains with."""
    write_task(folder, task)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={size}"]
    command.append("--max-restarts=1" if "dies_at" in task else "--max-restarts=0")
    done = subprocess.run(
        [*command, str(WORKER), str(folder)],
        capture_output=True,
        text=True,
        timeout=300,
        env=ENVIRONMENT,
    )
    assert done.returncode == 0, done.stderr
    errors = sorted(folder.glob("error*.txt"))
    if errors:
        return [path.read_text() for path in errors]
    return [dict(np.load(folder / f"model{rank}.npz")) for rank in range(size)]


def write_task(folder: Path, task: dict[str, Any]) -> None:
    X, _, pairs = clouds()
    np.savez(folder / "data.npz", X=X, index=pairs.index, same=pairs.same)
    (folder / "task.json").write_text(json.dumps(task))


def lose(command: list[str], size: int, lost: int) -> list[str]:
    """Let a team work that one member leaves alone; what the others have written.

    There is no ``torchrun`` here, which would end all of them. Like it, the test keeps the place where they meet.
    """
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port), "TORCHELASTIC_USE_AGENT_STORE": "True"}
    members = [
        subprocess.Popen(
            [sys.executable, *command],
            env=ENVIRONMENT | place | {"RANK": str(rank), "WORLD_SIZE": str(size)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(size)
    ]
    told = [member.communicate(timeout=100)[0] for rank, member in enumerate(members) if rank != lost]
    members[lost].kill()
    members[lost].communicate()
    assert [member.returncode for rank, member in enumerate(members) if rank != lost] == [0] * (size - 1)
    return told


def alone(**changes: Any) -> MaxMarginClustering:
    X, _, pairs = clouds()
    return MaxMarginClustering(**(SETTINGS | changes)).fit(X, pairs=pairs)


@pytest.mark.parametrize("size", [2, 4])
def test_a_team_finds_what_one_process_finds_and_all_have_the_same_bits(size: int, tmp_path: Path) -> None:
    found, one = run(tmp_path, size, settings=SETTINGS), alone()
    for each in found[1:]:
        for name, array in found[0].items():
            assert array.tobytes() == each[name].tobytes(), name
    np.testing.assert_allclose(found[0]["head"], one.head_coef_, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found[0]["coef0"], one.coefs_[0], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found[0]["objective"], [row["objective"] for row in one.history_], rtol=1e-5)
    np.testing.assert_allclose(found[0]["trust"], one.answer_trust_, atol=1e-5)
    assert np.array_equal(found[0]["labels"], one.labels_)


@pytest.mark.parametrize("stored", [False, True])
def test_batches_in_a_team(stored: bool, tmp_path: Path) -> None:
    found = run(tmp_path, 2, settings=SETTINGS | {"batch_size": 40, "max_iter": 6}, stored=stored)
    for name, array in found[0].items():
        assert array.tobytes() == found[1][name].tobytes(), name
    _, y, _ = clouds()
    assert clustering_accuracy(y, found[0]["labels"]) > 0.95


@pytest.mark.parametrize("dies_at", [("pretrain", 2), ("judge", 3), ("train", 12)])
def test_the_death_of_a_process_costs_only_the_work_since_the_last_checkpoint(
    dies_at: tuple[str, int], tmp_path: Path
) -> None:
    for name in ("calm", "restless"):
        (tmp_path / name).mkdir()
    calm = run(tmp_path / "calm", 2, settings=SETTINGS)
    settings = SETTINGS | {"checkpoint": str(tmp_path / "kept")}
    restless = run(tmp_path / "restless", 2, settings=settings, dies_at=dies_at)
    for name, array in calm[0].items():
        assert array.tobytes() == restless[0][name].tobytes(), name


def test_the_command_under_torchrun(tmp_path: Path) -> None:
    X, y, pairs = clouds()
    np.save(tmp_path / "clouds.npy", X)
    lines = [f"{i},{j},{bool(same)}" for (i, j), same in zip(pairs.index, pairs.same, strict=True)]
    (tmp_path / "answers.csv").write_text("\n".join(["a,b,same", *lines]) + "\n")
    fit = ["fit", "clouds.npy", "--pairs", "answers.csv", "--clusters", "3", "--batch-size", "50"]
    written = {}
    for size in (1, 2):
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={size}"]
        command += ["-m", "pairmargin", *fit, "--out", f"out{size}", "--checkpoint", f"kept{size}", "--json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path, env=ENVIRONMENT)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["learned_from"] == 150  # one of them tells
        written[size] = np.loadtxt(tmp_path / f"out{size}" / "labels.csv", delimiter=",", skiprows=1, usecols=1)
        assert clustering_accuracy(y, written[size].astype(int)) > 0.95
    assert clustering_accuracy(written[1].astype(int), written[2].astype(int)) > 0.95


def test_other_data_answers_or_settings_on_one_process_are_noticed(tmp_path: Path) -> None:
    told = run(tmp_path, 2, settings=SETTINGS, differs=True)
    assert len(told) == 2
    for lines in told:
        for line, what in zip(lines.splitlines(), ("X", "the list of answers", "the setting max_iter"), strict=True):
            assert line.startswith(f"TeamError: {what} of process 1 differs from that of process 0; give every process")


def test_a_process_that_hangs_in_training_is_named(tmp_path: Path) -> None:
    write_task(tmp_path, {"settings": SETTINGS, "patience": 3, "hangs_at": ("train", 4)})
    lose([str(WORKER), str(tmp_path)], size=2, lost=1)
    assert not list(tmp_path.glob("model*.npz"))
    complaint = (tmp_path / "error0.txt").read_text()
    assert complaint.startswith("TeamError: process 1 of 2 did not answer process 0 for ")
    assert "longer timeout=, or the command a longer --patience" in complaint


MEMBER = """
import os, sys, time
from datetime import timedelta
import torch
import torch.distributed as dist
from pairmargin import TeamError, team
team.LOOK, team.GRACE = timedelta(seconds=0.2), 3
lost, end, patience = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
dist.init_process_group("gloo", timeout=timedelta(seconds=patience))
own = team.Team.current()
own.meet()
if own.rank == lost:
    time.sleep(1000) if end == "hangs" else os._exit(1)
try:
    own.add_up([torch.ones(1000)])
except TeamError as error:
    print(error)
dist.destroy_process_group()
"""


@pytest.mark.parametrize(("lost", "end", "patience"), [(0, "hangs", 2), (2, "dies", 100)])
def test_all_others_name_the_one_that_is_missing_and_no_other(lost: int, end: str, patience: int) -> None:
    told = lose(["-c", MEMBER, str(lost), end, str(patience)], size=3, lost=lost)
    others = [rank for rank in range(3) if rank != lost]
    for rank, line in zip(others, told, strict=True):
        words = f"process {lost} of 3 did not answer process {rank} for "
        assert line.startswith(words)
        assert int(line.removeprefix(words).split()[0]) < 50  # seconds; nobody waits for one that has died


def test_without_a_place_to_meet_the_first_process_is_the_suspect(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object, **settings: object) -> None:
        raise dist.DistNetworkError("Connection reset by peer")

    monkeypatch.setattr(dist, "all_reduce", gone)
    monkeypatch.setattr("pairmargin.team._store", gone)
    with pytest.raises(TeamError, match="process 0 of 2 did not answer process 1"):
        Team(1, 2).anyone(True)


def test_a_failure_of_all_is_nobodys_in_particular(monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(*_: object, **settings: object) -> None:
        raise RuntimeError("no backend for this")

    store = dist.HashStore()
    store.set("pairmargin/here/0", "here")
    monkeypatch.setattr(dist, "all_reduce", cannot)
    monkeypatch.setattr("pairmargin.team._store", lambda: store)
    with pytest.raises(TeamError, match="the 2 processes cannot talk to each other: no backend for this"):
        Team(1, 2).anyone(True)


def test_the_command_waits_as_long_as_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Any] = []
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(dist, "init_process_group", lambda *args, **settings: begun.append((*args, settings)))
    monkeypatch.setattr(dist, "destroy_process_group", lambda: begun.append("over"))
    with launched(7.5) as team:
        assert team == Team()
    assert begun == [("gloo", {"timeout": timedelta(seconds=7.5)}), "over"]


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_shares_are_all_there_is(size: int) -> None:
    shares = [Team(rank, size).share(20) for rank in range(size)]
    assert [row for share in shares for row in range(20)[share]] == list(range(20))
    assert max(share.stop - share.start for share in shares) - min(share.stop - share.start for share in shares) <= 1
