"""What is written is complete or not there."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

import pytest

from pairmargin import OutputError, PairMarginError
from pairmargin.writing import check_apart, new_file, new_folder, refusals


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_takes_its_place_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("old")
    with new_file(path) as beside:
        beside.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert names(tmp_path) == ["labels.csv"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_after_an_error_the_old_file_is_there_and_nothing_else(error: type[BaseException], tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("old")
    with suppress(error), new_file(path) as beside:
        beside.write_text("half")
        raise error
    assert path.read_text() == "old"
    assert names(tmp_path) == ["labels.csv"]


def test_a_file_has_the_permissions_that_any_other_has(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    with new_file(tmp_path / "ours") as beside:
        beside.write_text("new")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.parametrize(
    ("make", "reason"),
    [(lambda path: path.mkdir(), "there is a folder of that name"), (lambda path: None, "no such file or directory")],
)
def test_a_place_that_cannot_be_is_refused_before_the_work(make, reason, tmp_path: Path) -> None:
    path = tmp_path / "taken" if "folder" in reason else tmp_path / "nowhere" / "labels.csv"
    make(path)
    told = pytest.raises(OutputError, match=f"{path.name} cannot be written: {reason}; choose another place")
    with told, new_file(path):
        pytest.fail("the work was begun")
    assert names(tmp_path) in ([], ["taken"])


def test_a_new_folder_comes_with_all_its_files_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "out"
    with new_folder(folder) as beside:
        (beside / "a").write_text("1")
        (beside / "b").write_text("2")
        assert not folder.exists()
    assert names(folder) == ["a", "b"]
    assert names(folder.parent) == ["out"]


def test_what_else_is_in_a_folder_stays(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    (tmp_path / "a").write_text("old")
    with new_folder(tmp_path) as beside:
        (beside / "a").write_text("new")
        assert (tmp_path / "a").read_text() == "old"
    assert names(tmp_path) == ["a", "mine"]
    assert (tmp_path / "a").read_text() == "new"


@pytest.mark.parametrize("there", [True, False])
def test_after_an_error_no_trace_of_a_folder_is_left(there: bool, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    if there:
        folder.mkdir()
        (folder / "a").write_text("old")
    with suppress(KeyboardInterrupt), new_folder(folder) as beside:
        (beside / "a").write_text("half")
        raise KeyboardInterrupt
    assert folder.exists() == there
    assert names(tmp_path) == ["out"] * there
    assert not there or [(path.name, path.read_text()) for path in folder.iterdir()] == [("a", "old")]


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("in the way")
    with pytest.raises(OutputError, match="out cannot be written: file exists"), new_folder(tmp_path / "out"):
        pytest.fail("the work was begun")


def test_the_current_folder_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with new_folder(Path()) as beside:
        (beside / "a").write_text("1")
    assert names(tmp_path) == ["a"]


def test_what_the_system_refuses_is_told_in_a_line() -> None:
    told = pytest.raises(OutputError, match=r"^out cannot be written: no space left on device; choose")
    with told as caught, refusals(Path("out")):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert isinstance(caught.value, PairMarginError)
    assert isinstance(caught.value, OSError)


def test_of_two_places_the_outer_one_is_told() -> None:
    with pytest.raises(OutputError, match=r"^out cannot be written: file too large; choose another place$"):
        with_both()


def with_both() -> None:
    with refusals(Path("out")), refusals(Path(".hidden")):
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))


def test_nothing_is_written_over_what_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check_apart(Path("new.csv"), Path("data.csv"))
    with pytest.raises(OutputError, match=r"data\.csv is the file to read"):
        check_apart(tmp_path / "data.csv", Path("model"), Path("data.csv"))
