"""What runs the pages of the documentation: what it shows, and what it does not let pass."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs" / "builder"))
import pages  # noqa: E402

PAGE = ROOT / "docs" / "page.md"  # of which only the name is used


def run(text):
    return [output for _, output in pages.run(PAGE, text)]


def test_the_value_of_the_last_line_is_shown_unless_something_was_printed():
    first, second, third = run("```python\nx = 2\nx + 1\n```\n\n```python\nprint(x)\nx\n```\n\n```python\nx = 3\n```\n")
    assert (first.text, second.text, third.text) == ("3\n", "2\n", "")


def test_hidden_code_is_run_and_a_page_has_a_folder_of_its_own():
    write = "from pathlib import Path\n\nPath('a.txt').write_text('hello')\n"
    hidden, shown = run(f"<!-- python\n{write}-->\n\n```console\ncat a.txt\n```\n")
    assert (hidden.html, shown.text) == ("", "hello")
    assert not Path("a.txt").exists()


def test_commands_are_run_in_the_same_process():
    (output,) = run("```console\npairmargin --version\n```\n")
    assert output.text.startswith("pairmargin ")


def test_a_figure_has_words():
    draw = "```python\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\n```\n"
    (output,) = run(draw + "\n<!-- picture: a line -->\n")
    assert len(output.figures) == 1
    with pytest.raises(pages.PageError, match="write <!-- picture"):
        run(draw)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# A\n\n```python\n1 / 0\n```\n", "docs/page.md, line 4: ZeroDivisionError"),
        ("```python\n>>> 1 + 1\n3\n```\n", "Expected"),
        ("```python\nimport warnings\nwarnings.warn('old', DeprecationWarning)\n```\n", "DeprecationWarning: old"),
        ("```console\npairmargin data fetch no-such-set\n```\n", "exit code 1.*no-such-set"),
        ("```console\npairmargin --version\n```\n\n```text\nsomething else\n```\n", "it prints\npairmargin"),
        ("```console\nmake tea\n```\n", "there is no 'tea'"),
        ('```console\npip install "pairmargin[tea]"\n```\n', "there is no 'tea'"),
        ("```console\nrm -rf /\n```\n", "'rm' is no command that a page may run"),
        ("<!-- not run: hours -->\n\n```console\npairmargin experiment run all --tea\n```\n", "No such option.*--tea"),
        ("<!-- not run: hours -->\n\n```console\npython benchmarks/tea.py\n```\n", "there is no 'benchmarks/tea.py'"),
        ("<!-- not run: for show -->\n\n```python\nx = = 1\n```\n", "SyntaxError"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text, message):
    with pytest.raises(pages.PageError, match=f"(?s){message}"):
        run(text)


def test_an_equation_keeps_the_number_of_the_paper():
    pytest.importorskip("sphinx")
    from types import SimpleNamespace

    import mathml
    from docutils import nodes

    translator = SimpleNamespace(body=[])
    with pytest.raises(nodes.SkipNode):
        mathml.block(translator, nodes.math_block("", r"\lambda \| W \|^2 \tag{8a}"))
    assert "<math" in translator.body[0]
    assert 'id="eq-8a">(8a)</span>' in translator.body[0]
    assert "tag" not in translator.body[0]


def test_figures_take_their_inks_from_the_theme():
    pytest.importorskip("sphinx")
    import examples
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(examples.STYLE):
        figure = Figure()
        figure.subplots().set_title("a title")
        drawn = examples.svg(figure, 'a "title"')
    assert 'aria-label="a &quot;title&quot;"' in drawn
    assert "var(--color-foreground-primary)" in drawn
    assert not any(ink in drawn for ink in examples.THEME)
