"""Every package that can be missing is named with the extra that brings it, and that extra does bring it."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from pairmargin import MissingPackageError
from pairmargin.extras import EXTRAS, need

ROOT = Path(__file__).parents[1]
BROUGHT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
SOLD_AS = {"PIL": "pillow", "umap": "umap-learn", "sentence_transformers": "sentence-transformers"}


@pytest.mark.parametrize("package", EXTRAS)
def test_the_extra_brings_the_package(package):
    brought = [re.split("[<>=]", each)[0] for each in BROUGHT[EXTRAS[package]]]
    assert SOLD_AS.get(package, package) in brought


@pytest.mark.parametrize("package", EXTRAS)
def test_a_missing_package_is_named_with_the_command(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    command = f'this needs {package}, which is not installed; run: pip install "pairmargin[{EXTRAS[package]}]"'
    with pytest.raises(MissingPackageError, match=re.escape(command)):
        need(package, "this")


def test_experiments_without_their_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "psutil", None)
    monkeypatch.delitem(sys.modules, "pairmargin.experiments.runner", raising=False)
    command = 'run_experiment needs psutil, which is not installed; run: pip install "pairmargin[experiments]"'
    with pytest.raises(MissingPackageError, match=re.escape(command)):
        from pairmargin import run_experiment  # noqa: F401


def test_each_dependency_is_justified_once():
    page = (ROOT / "docs" / "design" / "dependencies.md").read_text()
    tables = [line.split("|")[1:3] for line in page.splitlines() if line.startswith("| ")]
    named = [name.strip() for names, _ in tables for name in names.split(",")]
    wanted = {re.split("[<>=]", each)[0] for extra, each in _dependencies() if extra != "dev"}
    assert [name for name in sorted(wanted) if named.count(name) != 1] == []


def _dependencies():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    yield from (("", each) for each in project["dependencies"])
    for extra, brought in BROUGHT.items():
        yield from ((extra, each) for each in brought if not each.startswith("pairmargin["))
