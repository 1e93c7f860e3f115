"""``pairmargin label`` before the page is there: what it refuses, and how."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from pairmargin import OutputError, SessionError, cli
from pairmargin.web.serving import link, listening, open_session


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("name,size\n" + "".join(f"p{k},{k * k % 7}\n" for k in range(10)))
    return path


def run(*arguments):
    return CliRunner().invoke(cli.app, ["label", *map(str, arguments)])


@pytest.mark.parametrize("package", ["uvicorn", "starlette"])
def test_a_missing_extra_is_named_with_the_command(package, table, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, package, None)
    result = run(table)
    assert result.exit_code == 1
    assert f'the page needs {package}, which is not installed; run: pip install "pairmargin[web]"' in result.stderr


def test_data_that_are_not_there_are_named(tmp_path):
    result = run(tmp_path / "nothing.csv")
    assert result.exit_code == 2
    assert "there is no file or folder" in result.stderr


def test_a_session_inside_the_data_is_refused(tmp_path):
    image = pytest.importorskip("PIL.Image")
    image.new("L", (4, 4)).save(tmp_path / "a.png")
    result = run(tmp_path, "--session", tmp_path / "session")
    assert result.exit_code == 2
    assert "is inside the data; choose one outside, with --session" in result.stderr
    assert not (tmp_path / "session").exists()


def test_a_port_that_is_taken_is_told(table):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = run(table, "--port", taken.getsockname()[1])
    assert result.exit_code == 2
    assert "choose another --port" in result.stderr


def test_a_host_that_is_not_ours_is_told():
    with pytest.raises(OutputError, match="is that --host an address of this machine"):
        listening("192.0.2.1", 0)


def test_other_data_are_refused(table, tmp_path):
    from pairmargin.web.session import LabelingSession

    LabelingSession([[0.0], [1.0], [2.0]], 2, folder=tmp_path / "session").close()
    result = run(table, "--session", tmp_path / "session", "--no-browser")
    assert result.exit_code == 2
    assert "not those that the session" in result.stderr


def test_a_free_port_is_taken_and_the_link_has_the_token():
    with listening("127.0.0.1", 0) as sock:
        port = sock.getsockname()[1]
    assert port > 0
    assert link("127.0.0.1", port, "abc") == f"http://127.0.0.1:{port}/?token=abc"
    assert link("::1", 80, "abc") == "http://[::1]:80/?token=abc"
    assert "0.0.0.0" not in link("0.0.0.0", 80, "abc")


def test_the_same_file_read_in_another_way_is_refused(table, tmp_path):
    def opened(**options):
        session, _ = open_session(table, tmp_path / "session", 2, options)
        session.close()
        return session

    opened(id="name")
    with pytest.raises(SessionError, match="read with other options; pass the same ones"):
        opened()
    opened(id="name")


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C is sent in another way there")
def test_control_c_ends_it_without_a_word(table, tmp_path):
    pytest.importorskip("uvicorn")
    arguments = ["label", str(table), "--session", str(tmp_path / "session"), "--no-browser"]
    process = subprocess.Popen(
        [sys.executable, "-m", "pairmargin", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert any("http://" in line for line in process.stdout)
    process.send_signal(signal.SIGINT)
    _, complaints = process.communicate(timeout=120)
    assert process.returncode in (0, 130)
    assert "Traceback" not in complaints
    session, _ = open_session(table, tmp_path / "session", None, {})  # nobody has it any more
    session.close()
