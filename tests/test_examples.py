"""Every example runs and says what it should."""

import re
import runpy
import warnings
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
ENDINGS = {  # what the last line looks like
    "pictures.py": r"accuracy 0\.9\d\d",
    "table.py": r"apart in: (.*), (.*), (.*)",
    "texts.py": r"a new text is filed with: (scipy\.stats/\w+\.txt(, )?){3}",
    "wine.py": r"the loaded model agrees: True",
    "wrong_answers.py": r"accuracy after a second look at 20: 0\.9\d\d",
}


def test_every_example_is_listed_here():
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(ENDINGS)


@pytest.mark.parametrize("name", ENDINGS)
def test_example(name, capsys):
    with warnings.catch_warnings():  # whatever an example changes
        runpy.run_path(str(EXAMPLES / name))
    assert re.fullmatch(ENDINGS[name], capsys.readouterr().out.splitlines()[-1])


@pytest.mark.parametrize("name", ENDINGS)
def test_examples_are_short_and_say_what_they_are(name):
    text = (EXAMPLES / name).read_text()
    assert text.startswith('"""')
    assert len(text.splitlines()) < 60
