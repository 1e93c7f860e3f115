"""``pairmargin data``: what there is, what is fetched, and what is said when it fails."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import replace
from functools import partial
from hashlib import sha256
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.console import Console
from rich.progress import Progress
from typer.testing import CliRunner

import pairmargin
from pairmargin import DatasetError, cli, cli_data, dataset_sources, datasets, list_datasets

ROWS = b"1,1.5,13,4,1,71,0,8,0,0,1\n2,1.6,12,3,2,72,0,7,0,0,7\n"  # as glass.data

root = typer.Typer(cls=cli._Commands, context_settings={"terminal_width": 200})
root.add_typer(cli_data.app, name="data")


def run(*arguments: str) -> tuple[int, str]:
    """The exit code, and all that was said."""
    result = CliRunner().invoke(root, ["data", *arguments], env={"COLUMNS": "200"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("PAIRMARGIN_DATA", str(tmp_path))
    return tmp_path


def shorten_glass(monkeypatch: pytest.MonkeyPatch, **change: Any) -> None:
    """Glass of two rows."""
    source = dataset_sources.SOURCES["glass"]
    file = replace(source.editions[0].files[0], size=len(ROWS), sha256=sha256(ROWS).hexdigest(), **change)
    edition = replace(source.editions[0], files=(file,))
    monkeypatch.setitem(dataset_sources.SOURCES, "glass", replace(source, editions=(edition,)))


@pytest.fixture
def downloads(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes | Exception]:
    """What a download of a file gives, by the file's name; there is no network for any other file."""
    shorten_glass(monkeypatch)
    found: dict[str, bytes | Exception] = {"glass.data": ROWS}

    def download(file: dataset_sources.File, path: Path, progress: Any) -> None:
        content = found.get(file.name, OSError("no network"))
        if isinstance(content, Exception):
            raise content
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        progress.total = len(content)
        progress.update(2**16)  # as pooch does: by whole chunks, then all anew
        progress.reset()
        progress.update(len(content))
        progress.close()

    monkeypatch.setattr(datasets, "_download", download)
    return found


def row_of(said: str, name: str) -> list[str]:
    line = next(line for line in said.splitlines() if line.startswith(f"│ {name} "))
    return [cell.strip() for cell in line.strip("│").split("│")]


def test_help_needs_nothing_heavy() -> None:
    code = """
import sys
sys.path.insert(0, sys.argv[1])
import pairmargin.cli_data
heavy = {"torch", "sklearn", "scipy", "numpy", "pooch", "requests", "PIL"} & set(sys.modules)
assert not heavy, heavy
"""
    home = str(Path(pairmargin.__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", code, home], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr


def test_list_says_where_everything_is(folder: Path) -> None:
    (folder / "glass").mkdir()
    (folder / "glass" / "glass.data").write_bytes(ROWS)
    code, said = run("list")
    assert code == 0
    assert row_of(said, "glass") == ["glass", "214 × 9", "6", "file", "11.9 kB", "CC BY 4.0"]
    assert row_of(said, "wine") == ["wine", "178 × 13", "3", "scikit-learn", "", "CC BY 4.0"]
    assert row_of(said, "mnist")[:5] == ["mnist", "70000 × 784", "10", "not yet here", "11.6 MB"]
    assert row_of(said, "coil100")[3:] == ["not yet here", "125.0 MB", "research; cite CUCS-006-96"]
    assert all(row_of(said, name) for name in list_datasets())
    assert f"Files are looked for in {folder}\n" in said


@pytest.mark.usefixtures("downloads")
def test_fetch_downloads_and_then_only_checks(folder: Path) -> None:
    code, said = run("fetch", "glass", "wine", "glass")
    assert code == 0
    url = dataset_sources.SOURCES["glass"].editions[0].files[0].url
    assert said == f"  {url} …\nglass: fetched, checked\nwine: comes with scikit-learn\n"
    assert (folder / "glass" / "glass.data").read_bytes() == ROWS
    assert run("fetch", "glass") == (0, "glass: already here, checked\n")


def test_one_failure_is_the_error(folder: Path, downloads: dict[str, bytes | Exception]) -> None:
    downloads["glass.data"] = OSError("the wire is cut")
    code, said = run("fetch", "glass")
    assert code == 1
    assert "glass: failed\n" in said
    assert "Error: glass cannot be downloaded: the wire is cut; you can put its files in place by hand" in said
    assert str(folder / "glass" / "glass.data") in said


def test_a_damaged_file_is_an_error(folder: Path) -> None:
    (folder / "glass").mkdir()
    (folder / "glass" / "glass.data").write_bytes(b"1,2,3")
    code, said = run("fetch", "glass")
    assert code == 1
    assert "damaged or another version; delete it and load it again" in said


@pytest.mark.usefixtures("folder", "downloads")
def test_all_goes_on_after_a_failure_and_tells_them_at_the_end() -> None:
    code, said = run("fetch", "--all")
    assert code == 1
    outcome = dict(line.split(": ", 1) for line in said.splitlines() if line.split(":")[0] in list_datasets())
    shipped = {"digits", "iris", "wdbc", "wine"}
    assert {name for name, text in outcome.items() if text == "comes with scikit-learn"} == shipped
    assert outcome["glass"] == "fetched, checked"
    failed = sorted(set(list_datasets()) - shipped - {"glass"})
    assert [name for name, text in outcome.items() if text == "failed"] == failed
    assert said.count("cannot be downloaded: no network") == len(failed)
    assert said.endswith(f"Error: 6 of 11 data sets could not be fetched: {', '.join(failed)}\n")


@pytest.mark.usefixtures("folder")
def test_a_wrong_name_is_refused_before_any_download(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets, "_download", lambda *_: pytest.fail("a download was begun"))
    code, said = run("fetch", "glass", "whine")
    assert code == 1
    assert said.startswith("Error: there is no data set 'whine' (did you mean 'wine'?); there are")


@pytest.mark.parametrize("arguments", [["fetch"], ["fetch", "glass", "--all"]])
def test_names_or_all_but_not_both(arguments: list[str]) -> None:
    code, said = run(*arguments)
    assert code == 2
    assert "give the names of data sets, or --all" in said


@pytest.mark.usefixtures("folder")
def test_without_pooch_the_command_still_tells_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    code, said = run("fetch", "glass")
    assert code == 1
    assert 'that needs pooch: pip install "pairmargin[experiments]"' in said


def test_bar_follows_the_words_of_pooch() -> None:
    with Progress(console=Console(file=StringIO(), force_terminal=True)) as bars:
        bar = cli_data._Bar(bars, "some.file")
        assert bar.total is None
        bar.total = 1000
        bar.update(600)
        bar.update(600)  # the last chunk is seldom full
        bar.reset()
        bar.update(1000)
        bar.close()
        assert bar.total == 1000
        assert bars.tasks[0].completed == 1000
        assert bars.finished
        unknown = cli_data._Bar(bars, "other.file")
        unknown.total = 0  # the server does not say
        assert unknown.total is None


@pytest.mark.usefixtures("folder", "downloads")
def test_bars_are_drawn_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TERM", raising=False)  # a dumb one would show no bars
    screen = StringIO()
    console = Console(file=screen, force_terminal=True, width=100)
    assert cli_data._fetch("glass", console) == "fetched, checked"
    assert "glass.data" in screen.getvalue()
    assert "━" in screen.getvalue()
    with pytest.raises(DatasetError, match="sonar cannot be downloaded: no network"):
        cli_data._fetch("sonar", console)


def test_bars_under_pooch_itself(folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture) -> None:
    pytest.importorskip("pooch")
    (folder / "served").write_bytes(ROWS)
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    monkeypatch.setattr(SimpleHTTPRequestHandler, "log_message", lambda *_: None)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        shorten_glass(monkeypatch, url=f"http://127.0.0.1:{server.server_port}/served")
        code, said = run("fetch", "glass")
        server.shutdown()
    assert code == 0
    assert said.endswith("/served …\nglass: fetched, checked\n")
    assert capfd.readouterr().err == ""  # pooch keeps quiet
    assert (folder / "glass" / "glass.data").read_bytes() == ROWS
