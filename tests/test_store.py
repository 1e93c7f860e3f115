"""Finished cells on disk: nothing is lost but a half line, and what cannot be read is named."""

from __future__ import annotations

import os
import re
from dataclasses import astuple, fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pairmargin import ExperimentError
from pairmargin.experiments import store as module
from pairmargin.experiments.specs import Cell
from pairmargin.experiments.store import FALSE_POSITIVE_RATES, Row, Store

TPR = " ".join(f"{rate:.3f}" for rate in FALSE_POSITIVE_RATES)


def row(
    dataset: str = "wine",
    method: str = "kissme",
    n_pairs: int = 100,
    seed: int = 0,
    drawing: str = "balanced",
    accuracy: float = 0.75,
) -> Row:
    """What a cell may give."""
    key, numbers = (dataset, method, n_pairs, seed, drawing), (accuracy, 0.5, 0.25, 0.875, 3, 1.5, 400.5)
    return Row(*key, *numbers, TPR, "0.1", "3.11", "2", "1", "1.9", "2.13", "2026-01-31")


def filled(folder: Path, *rows: Row) -> Store:
    """A store that holds these rows."""
    store = Store(folder)
    with store.writing():
        for each in rows:
            store.append(each)
    return store


def test_what_is_appended_comes_back_sorted_and_as_it_was(tmp_path: Path) -> None:
    rows = [row(seed=1), row(seed=0, accuracy=1 / 3), row("iris"), row(method='a "new", better one')]
    rows.append(row(seed=1, drawing="uniform"))
    store = filled(tmp_path / "new" / "results", *rows)
    assert store.rows() == sorted(rows, key=lambda each: each.cell)
    assert store.done() == {each.cell for each in rows}
    assert sorted(path.name for path in (store.folder / "cells").glob("*.csv")) == ["iris.csv", "wine.csv"]


def test_a_row_knows_its_cell() -> None:
    assert row("iris", "xing", 20, 7).cell == Cell("iris", "xing", 20, 7, "balanced")
    assert row("iris", "xing", 20, 7, "uniform").cell == Cell("iris", "xing", 20, 7, "uniform")


def test_the_columns_are_tidy_and_one_line_is_one_cell(tmp_path: Path) -> None:
    filled(tmp_path, row(), row(seed=1))
    header, *lines = (tmp_path / "cells" / "wine.csv").read_text().splitlines()
    assert header == (
        "dataset,method,n_pairs,seed,drawing,accuracy,ari,nmi,auc,clusters,seconds,peak_mb,tpr,"
        "pairmargin,python,numpy,scipy,scikit_learn,torch,date"
    )
    assert len(lines) == 2
    assert lines[0].startswith("wine,kissme,100,0,balanced,0.75,0.5,0.25,0.875,3,1.5,400.5,0.000 0.020 0.040 ")


def test_frame_has_the_types_of_the_columns_also_when_empty(tmp_path: Path) -> None:
    empty, full = Store(tmp_path / "none").frame(), filled(tmp_path, row(), row("iris")).frame()
    assert list(empty.columns) == list(full.columns) == [field.name for field in fields(Row)]
    for frame in (empty, full):
        assert frame["accuracy"].dtype == np.float64
        assert frame["seed"].dtype.kind == "i"
    assert len(empty) == 0
    assert full["dataset"].tolist() == ["iris", "wine"]
    assert tuple(full.iloc[1]) == astuple(row())
    assert not (tmp_path / "none").exists()  # reading leaves no trace


def test_of_a_cell_that_stands_there_twice_the_later_line_counts(tmp_path: Path) -> None:
    store = filled(tmp_path, row(accuracy=0.5), row(seed=1), row(accuracy=0.75))
    assert [(each.seed, each.accuracy) for each in store.rows()] == [(0, 0.75), (1, 0.75)]


def test_every_line_is_on_the_disk_before_append_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    monkeypatch.setattr(os, "fsync", lambda number: sizes.append(os.fstat(number).st_size))
    filled(tmp_path, row(), row(seed=1))
    content = (tmp_path / "cells" / "wine.csv").read_bytes()
    assert sizes == [content.rindex(b"wine"), len(content)]


# Kills and damage

ROWS = [row(seed=seed) for seed in range(3)]
CONTENT = b"".join(module._line(values) for values in (module.TYPES, *map(astuple, ROWS)))


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(size=st.integers(0, len(CONTENT)))
def test_a_kill_at_any_byte_costs_one_line_at_most(size: int, tmp_path: Path) -> None:
    path = tmp_path / "cells" / "wine.csv"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(CONTENT[:size])
    whole = max(CONTENT[:size].count(b"\n") - 1, 0)
    store = Store(tmp_path)
    assert store.rows() == ROWS[:whole]
    assert path.stat().st_size == size  # a reader changes nothing, for somebody may be writing
    with store.writing():
        for each in ROWS[whole:]:
            store.append(each)
    assert path.read_bytes() == CONTENT


def test_the_half_line_that_is_dropped_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = filled(tmp_path, row(), row(seed=1))
    path = tmp_path / "cells" / "wine.csv"
    os.truncate(path, path.stat().st_size - 1)
    with store.writing():
        assert store.done() == {row().cell}
    assert "wine.csv ended in the middle of a line" in caplog.text
    caplog.clear()
    with store.writing():
        pass
    assert not caplog.text


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (b"0.75,0.5", b"0.75", "19 values in place of 20"),
        (b"0.75,0.5", b"0.7x,0.5", "could not convert string to float: '0.7x'"),
        (b"kissme,100", b"kissme,1e2", r"invalid literal for int\(\) .* '1e2'"),
        (b"kissme", b'"kissme', "unexpected end of data"),
        (b"kissme", b"kiss\xff\xff", "can't decode"),
        (b"wine,", b"iris,", "a cell of the data set 'iris'"),
        (b"wine,", b"\n", "0 values in place of 20"),
    ],
)
def test_a_line_that_is_damaged_is_named(old: bytes, new: bytes, complaint: str, tmp_path: Path) -> None:
    store = filled(tmp_path, *ROWS)
    path = tmp_path / "cells" / "wine.csv"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(old, new, 1)
    path.write_bytes(b"".join(lines))
    with pytest.raises(ExperimentError, match=rf"wine\.csv, line 3 is damaged: .*{complaint}.*; delete the line, and"):
        store.rows()


@pytest.mark.parametrize(("old", "new"), [(b"accuracy,ari", b"accuracy,kappa"), (b"seed,drawing,", b"seed,")])
def test_another_layout_is_refused(old: bytes, new: bytes, tmp_path: Path) -> None:
    store = filled(tmp_path, row())
    path = tmp_path / "cells" / "wine.csv"
    path.write_bytes(path.read_bytes().replace(old, new, 1))
    with pytest.raises(ExperimentError, match=rf"wine\.csv has the columns dataset,.*{new.decode()}.*another version"):
        store.frame()


def test_line_ends_of_another_system_are_understood(tmp_path: Path) -> None:
    store = filled(tmp_path, *ROWS)
    path = tmp_path / "cells" / "wine.csv"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert store.rows() == ROWS


# Replacing


def test_replace_puts_a_cell_in_its_old_place(tmp_path: Path) -> None:
    store = filled(tmp_path, *ROWS, row("iris"))
    better = replace(ROWS[1], accuracy=1.0)
    with store.writing():
        store.replace(better)
    assert store.rows() == [row("iris"), ROWS[0], better, ROWS[2]]
    lines = (tmp_path / "cells" / "wine.csv").read_text().splitlines()
    assert [line.split(",")[3] for line in lines] == ["seed", "0", "1", "2"]
    assert not [path for path in (tmp_path / "cells").iterdir() if path.suffix == ".new"]


def test_a_removed_cell_is_gone_and_no_other(tmp_path: Path) -> None:
    store = filled(tmp_path, *ROWS, row("iris"))
    with store.writing():
        store.remove(ROWS[1].cell)
    assert store.rows() == [row("iris"), ROWS[0], ROWS[2]]


def test_replace_that_is_killed_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = filled(tmp_path, *ROWS)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt), store.writing():
        store.replace(replace(ROWS[1], accuracy=1.0))
    assert store.rows() == ROWS
    monkeypatch.undo()
    with store.writing():
        store.replace(replace(ROWS[1], accuracy=1.0))
    assert store.rows()[1].accuracy == 1


# One writer


def test_a_second_writer_is_sent_away_at_once_and_a_reader_is_not(tmp_path: Path) -> None:
    store = filled(tmp_path, row())
    with store.writing():
        with (
            pytest.raises(
                ExperimentError, match=rf"another run is writing to {re.escape(str(tmp_path))}; wait .*--results OTHER"
            ),
            Store(tmp_path).writing(),
        ):
            pytest.fail("two writers at once")
        assert Store(tmp_path).done() == {row().cell}
    with Store(tmp_path).writing():
        pass  # the lock is free again


def test_the_lock_is_free_after_an_error(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with pytest.raises(ZeroDivisionError), store.writing():
        raise ZeroDivisionError
    with Store(tmp_path).writing():
        pass


def test_a_folder_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with (
        pytest.raises(ExperimentError, match=r"file cannot be written \(.+\); choose another"),
        Store(tmp_path / "file").writing(),
    ):
        pytest.fail("written into a file")
