"""What needs more memory than there is is refused before it starts, with both numbers and a way out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from pairmargin import MaxMarginClustering, NotEnoughMemoryError, PairMarginError, cli, enough_memory
from pairmargin.enough_memory import available, check_memory, fit_bytes, in_words, told_when_used_up

X = np.random.default_rng(0).normal(size=(200, 10))
QUICK = {"max_iter": 2, "pretrain_epochs": 1, "n_init": 1, "init": "random", "random_state": 0}


@pytest.fixture
def little(monkeypatch):
    """A system that has no more than ten kilobytes."""
    monkeypatch.setattr(enough_memory, "available", lambda: 10_000)


@pytest.mark.usefixtures("little")
def test_a_fit_that_cannot_be_is_refused_before_it_starts():
    model = MaxMarginClustering(2, **QUICK, callback=lambda row: pytest.fail("it was begun"))
    told = r"^this fit needs at least 1 MB of memory, but 1 MB are available; .*batch_size=.*--batch-size.*float32"
    with pytest.raises(NotEnoughMemoryError, match=told) as caught:
        model.fit(X)
    assert isinstance(caught.value, PairMarginError)
    assert isinstance(caught.value, MemoryError)
    with pytest.raises(NotEnoughMemoryError, match="X as float64 needs at least"):
        model.fit((10 * X).astype(np.int32))
    with pytest.raises(NotEnoughMemoryError, match="this fit"):
        model.fit(sp.csr_array(X))


@pytest.mark.usefixtures("little")
def test_a_fit_in_batches_is_not_refused():
    assert len(MaxMarginClustering(2, **QUICK, batch_size=50).fit(X).labels_) == len(X)


def test_what_is_counted():
    copy, codes = 200 * 10 * 8, 2 * 200 * (7 + 3) * 8
    assert fit_bytes(X, (7, 3)) == copy + codes
    assert fit_bytes(X.astype(np.float32), (7, 3)) == (copy + codes) // 2
    assert fit_bytes(X, ()) == copy
    assert fit_bytes(sp.csr_array(np.eye(200)), ()) == 200 * 8


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        np._core._exceptions._ArrayMemoryError((10**12,), np.dtype(float)),
        RuntimeError("[enforce fail at alloc_cpu.cpp:124] DefaultCPUAllocator: can't allocate memory: you tried to"),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB."),
    ],
)
def test_memory_that_runs_out_in_the_middle_is_told_the_same_way(error):
    def run_out(row):
        raise error

    with pytest.raises(NotEnoughMemoryError, match=r"used up in the middle of the fit.*batch_size=") as caught:
        MaxMarginClustering(2, **QUICK, callback=run_out).fit(X)
    assert caught.value.__cause__ is error


def test_other_errors_stay_what_they_are():
    with pytest.raises(RuntimeError, match=r"^another$"), told_when_used_up():
        raise RuntimeError("another")


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")
def test_a_real_limit_of_the_system():
    program = (
        "import resource, numpy as np; from pairmargin import MaxMarginClustering, NotEnoughMemoryError\n"
        "import pairmargin.stages, torch; torch.set_num_threads(1)\n"
        "X = np.ones((100_000, 10)); X[:, 0] = np.arange(100_000)\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * 4096\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 60_000_000,) * 2)\n"
        "settings = dict(max_iter=1, pretrain_epochs=1, init='random', n_init=1, neighbour_weight=0)\n"
        "try: MaxMarginClustering(2, (300,), **settings).fit(X)\n"
        "except NotEnoughMemoryError as error: print('told:', error)\n"
    )
    environment = {"PYTHONPATH": str(Path(enough_memory.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert run.stdout.startswith("told: the memory was used up in the middle of the fit"), run.stderr[-2000:]


def test_the_command_says_it_in_a_line(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    data, answers = tmp_path / "data.csv", tmp_path / "answers.csv"
    data.write_text("a,b\n1,2\n3,4\n5,6\n")
    answers.write_text("a,b,same\n0,1,yes\n")
    fit = [str(each) for each in ("fit", data, "--pairs", answers, "--clusters", "2", "--out", tmp_path / "out")]
    monkeypatch.setattr(enough_memory, "available", lambda: 10)
    told = CliRunner().invoke(cli.app, fit)
    assert (told.exit_code, told.stderr.count("\n")) == (1, 1)
    assert told.stderr.startswith("Error: this fit needs at least 1 MB of memory, but 1 MB are available; learn from")

    def used_up(*_, **__):
        raise MemoryError

    monkeypatch.setattr("pairmargin.files.fitting.read_items", used_up)
    told = CliRunner().invoke(cli.app, fit)
    assert (told.exit_code, told.stderr.count("\n")) == (1, 1)
    assert "the memory is not enough to read this" in told.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers.csv", "data.csv"]


# What is left


def test_where_the_system_does_not_say_nothing_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(enough_memory, "SYSTEM", tmp_path / "none")
    assert available() is None
    check_memory(10**18, "anything")


def test_what_the_system_says(tmp_path, monkeypatch):
    for name in ("SYSTEM", "GROUPS", "OWN_GROUPS"):
        monkeypatch.setattr(enough_memory, name, tmp_path / name)
    (tmp_path / "SYSTEM").write_text(
        "MemTotal: 9000 kB\nMemAvailable:  4000 kB\nSwapFree: 500 kB\nHugePages_Total: 0\n"
    )
    assert available() == 4500 * 1024
    group = tmp_path / "GROUPS" / "jobs" / "mine"  # of version 2
    group.mkdir(parents=True)
    (tmp_path / "OWN_GROUPS").write_text("0::/jobs/mine\n")
    for folder, limit, used in ((group, "max", 1000), (group.parent, "2000000", 1_200_000)):
        (folder / "memory.max").write_text(f"{limit}\n")
        (folder / "memory.current").write_text(f"{used}\n")
    (group.parent / "memory.stat").write_text("anon 1000\nfile 300000\n")
    assert available() == 1_100_000 + 500 * 1024  # what is not used, and files that can be forgotten
    old = tmp_path / "GROUPS" / "memory" / "mine"  # of version 1
    old.mkdir(parents=True)
    (tmp_path / "OWN_GROUPS").write_text("3:cpuset:/\n4:memory:/mine\n0::/\n")
    (old / "memory.limit_in_bytes").write_text("900000\n")
    (old / "memory.usage_in_bytes").write_text("500000\n")
    (old / "memory.stat").write_text("total_cache 100000\n")
    assert available() == 500_000 + 500 * 1024


def test_this_system_says_something_or_nothing():
    left = available()
    assert left is None or left > 2**20


def test_sizes_in_words():
    assert [in_words(size) for size in (1, 5_000_001, 123_456_789, 2_000_000_000_000)] == [
        "1 MB",
        "6 MB",
        "0.1 GB",
        "2,000.0 GB",
    ]
