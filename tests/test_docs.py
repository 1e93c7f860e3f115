"""The documents keep their word: links lead somewhere, what they name exists, and every example runs as printed."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

import pairmargin

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs" / "builder"))
import pages  # noqa: E402

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
ELSEWHERE = {ROOT / "docs" / "plots.md"}  # `test_plotting.py` runs it, and compares its pictures
RUN = [page for page in PAGES if page not in ELSEWHERE and list(pages.pieces(page.read_text("utf-8")))]


def name(page):
    return str(page.relative_to(ROOT))


def prose(page):
    """A page without its code."""
    return re.sub(r"^```.*?^```$|<!--.*?-->", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


def links(page):
    """Where the links of a page lead: a file and a heading."""
    found = [link.partition("#") for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)) if "://" not in link]
    return [((page.parent / file).resolve() if file else page, heading) for file, _, heading in found]


def headings(page):
    """The anchors of a page, as forges make them of its headings."""
    titles = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in titles]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_to_files_and_headings_that_are_there(page):
    assert [file for file, _ in links(page) if not file.exists()] == []
    wrong = [(name(file), heading) for file, heading in links(page) if heading and heading not in headings(file)]
    assert wrong == []


@pytest.mark.parametrize("page", RUN, ids=name)
def test_every_example_runs_as_printed(page):
    pages.run(page)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_what_is_not_run_can_be_compiled(page):
    for block in re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
        lines = [line[4:] for line in block.splitlines() if line.startswith(">>> ")]
        assert compile("\n".join(lines) or block, str(page), "exec").co_code


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_example_has_a_form_that_nobody_runs(page):
    kinds = re.findall(r"^```(\S+)$", page.read_text("utf-8"), re.MULTILINE)
    assert set(kinds) <= {"python", "console", "text", "{toctree}", "{include}", "{eval-rst}"}


def test_every_proof_in_the_map_of_the_paper_exists():
    named = re.findall(r"(test_\w+\.py)::(test_\w+)", (ROOT / "docs" / "paper.md").read_text())
    assert len(named) > 8
    missing = [f"{file}::{test}" for file, test in named if f"def {test}(" not in (ROOT / "tests" / file).read_text()]
    assert missing == []


def test_every_page_of_the_docs_is_linked_from_the_readme_or_from_a_page():
    linked = {file for page in PAGES for file, _ in links(page)}
    assert [name(page) for page in PAGES if page.parent != ROOT and page.resolve() not in linked] == []


def test_the_api_has_every_public_name_once():
    documented = [
        found
        for page in (ROOT / "docs" / "api").glob("*.md")
        for found in re.findall(r"^\.\. auto\w+:: pairmargin\.(\w+)$", page.read_text(), re.MULTILINE)
    ]
    assert sorted(documented) == sorted(set(pairmargin.__all__) - {"__version__"})


def test_no_page_names_a_machine():
    for page in PAGES:
        assert not re.search(r"(?<![\w.])/(home|root|opt|mnt|Users)/|localhost", page.read_text("utf-8")), name(page)


@pytest.mark.parametrize("page", ["README.md", "docs/labelling.md"])
def test_the_command_that_opens_the_page_runs_as_printed(page, tmp_path):
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "pictures").mkdir()
    for k in range(20):
        image.new("L", (4, 4), 12 * k).save(tmp_path / "pictures" / f"{k}.png")
    (line,) = re.findall(r"^pairmargin (label .*)$", (ROOT / page).read_text(), re.MULTILINE)
    command = [sys.executable, "-m", "pairmargin", *shlex.split(line), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        said = process.stdout.readline()
        link = next(found[0] for line in process.stdout if (found := re.search(r"http://\S+", line)))
        browser = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor())
        with browser.open(link, timeout=60) as response:
            assert b"<title>pairmargin</title>" in response.read()
        process.send_signal(signal.SIGINT)
        process.stdout.read()
    assert said == "20 items from pictures; the session is in pictures-session\n"
    assert process.returncode in (0, 130)
