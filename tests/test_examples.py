"""Every example runs and says what it should."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
ENDINGS = {"wine.py": "the loaded model agrees: True\n"}


def test_every_example_is_listed_here():
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(ENDINGS)


@pytest.mark.parametrize("name", ENDINGS)
def test_example(name, capsys):
    runpy.run_path(str(EXAMPLES / name))
    assert capsys.readouterr().out.endswith(ENDINGS[name])
