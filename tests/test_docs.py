"""The documents keep their word: links lead somewhere, the tests they name exist, their commands and Python run."""

from __future__ import annotations

import itertools
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pairmargin import cli

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_that_are_there(page):
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", page.read_text()) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_in_the_pages_can_be_compiled(page):
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        lines = [line[4:] for line in block.splitlines() if line.startswith(">>> ")]
        assert compile("\n".join(lines) or block, str(page), "exec").co_code


def test_every_proof_in_the_map_of_the_paper_exists():
    named = re.findall(r"(test_\w+\.py)::(test_\w+)", (ROOT / "docs" / "paper.md").read_text())
    assert len(named) > 8
    missing = [f"{file}::{name}" for file, name in named if f"def {name}(" not in (ROOT / "tests" / file).read_text()]
    assert missing == []


def test_every_page_of_the_docs_is_linked_from_the_readme_or_from_a_page():
    linked = {
        (page.parent / link).resolve() for page in PAGES for link in re.findall(r"\]\(([^)#]+)\)", page.read_text())
    }
    assert [page for page in PAGES if page.parent != ROOT and page.resolve() not in linked] == []


def test_commands_from_files_to_files_run_as_printed(tmp_path, monkeypatch):
    """Those of docs/command-line.md, in their order, with the files that its Python writes; then the README's."""
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "command-line.md").read_text()
    (python,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(compile(python, "command-line.md", "exec"), {})
    readme = (ROOT / "README.md").read_text().partition("Or from files to files")[2].partition("Or with no")[0]
    blocks = re.findall(r"```console\n(.*?)```", page + readme, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if not line.startswith("pip ")]
    assert [line.split()[1] for line in lines] == ["fit", "predict", "evaluate"] * 3
    said = []
    for line in lines:
        program, *arguments = shlex.split(line)
        result = CliRunner().invoke(cli.app, arguments)
        assert (program, result.exit_code) == ("pairmargin", 0), result.output
        said.append(result.stdout)
    printed = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    for told, real in zip(printed, (said[0], said[2]), strict=True):  # figures may differ from machine to machine
        assert _words(real).startswith(_words(told))


def test_the_python_of_the_page_about_labelling_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (python,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "labelling.md").read_text(), re.DOTALL)
    exec(compile(python, "labelling.md", "exec"), {})
    assert (tmp_path / "iris-clusters" / "report.html").exists()


@pytest.mark.parametrize("page", ["README.md", "docs/labelling.md"])
def test_the_command_that_opens_the_page_runs_as_printed(page, tmp_path):
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "pictures").mkdir()
    for k in range(20):
        image.new("L", (4, 4), 12 * k).save(tmp_path / "pictures" / f"{k}.png")
    (line,) = re.findall(r"^pairmargin (label .*)$", (ROOT / page).read_text(), re.MULTILINE)
    command = [sys.executable, "-m", "pairmargin", *shlex.split(line), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        said = list(itertools.takewhile(lambda line: not line.startswith("Open http://127.0.0.1:"), process.stdout))
        process.send_signal(signal.SIGINT)
    assert said[0] == "20 items from pictures; the session is in pictures-session\n"
    assert process.returncode in (0, 130)


def _words(text):
    return re.sub(r"[\d.,%]+", "#", text)
