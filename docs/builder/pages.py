"""Run a page of the documentation: its Python and its commands, from top to bottom, in an empty folder.

The tests run every page with this, and the site is built with it, so that what is shown below an example is what the
example gave. A page stays plain Markdown, which any forge can show:

    ```python            is run; what it prints is shown below it, or else the value of its last line
    ```console           is run too, line by line; ``pip`` and ``make`` are looked up and not run
    <!-- python … -->    is run and not shown: what a reader has, or need not see
    <!-- not run: … -->  above a block gives the reason why it is not; commands are then checked by their own parser
    ```text              right below a block is what it printed: the words must be the same, the figures may differ
    <!-- picture: … -->  below a block says what its figure shows. A picture there says it too, and is replaced by it

All Python of a page shares its names. Lines with ``>>>`` are a doctest.
"""

from __future__ import annotations

import ast
import doctest
import io
import os
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
import warnings
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
HARMLESS = {"cat", "head", "ls", "mkdir"}  # commands beside our own that a page may run
PIECE = re.compile(
    r"(?:^<!-- not run: (?P<reason>.*?) -->\n+)?"
    r"(?:^```(?P<kind>python|console)\n(?P<shown>.*?)^```$|^<!-- python\n(?P<hidden>.*?)^-->$)"
    r"(?P<after>\n+(?:!\[(?P<alt>[^]]*)\]\([^)]*\)|<!-- picture: (?P<words>.*?) -->|```text\n(?P<printed>.*?)^```$))?",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Piece:
    """An example of a page."""

    kind: str  # "python" or "console"
    code: str
    line: int  # of the page, where the code starts
    is_hidden: bool
    reason: str | None  # why it is not run
    picture: str | None  # what its figure shows
    printed: str | None  # what it is said to print
    span: tuple[int, int]  # where it stands, with what belongs to it
    code_end: int


@dataclass
class Output:
    """What an example gave."""

    text: str = ""
    html: str = ""
    figures: list[Any] = field(default_factory=list)


class PageError(Exception):
    """An example that does not do what its page says."""


def pieces(text: str) -> Iterator[Piece]:
    """The examples of a page."""
    for found in PIECE.finditer(text):
        hidden = found["hidden"] is not None
        group = "hidden" if hidden else "shown"
        yield Piece(
            kind="python" if hidden else found["kind"],
            code=found[group],
            line=text.count("\n", 0, found.start(group)) + 1,
            is_hidden=hidden,
            reason=found["reason"],
            picture=found["alt"] or found["words"],
            printed=found["printed"],
            span=found.span(),
            code_end=found.start("after") if found["after"] else found.end(),
        )


def run(page: Path, text: str | None = None) -> list[tuple[Piece, Output]]:
    """Run a page; its examples and what they gave."""
    import matplotlib as mpl

    mpl.use("Agg")
    names: dict[str, Any] = {"__name__": "__main__"}
    text = page.read_text("utf-8") if text is None else text
    columns = os.environ.get("COLUMNS")
    with TemporaryDirectory() as folder, chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("error")
        os.environ["COLUMNS"] = "92"  # how wide the command writes
        try:
            return [(piece, _run_piece(piece, page, names)) for piece in pieces(text)]
        finally:
            os.environ.pop("COLUMNS")
            if columns is not None:
                os.environ["COLUMNS"] = columns


def _run_piece(piece: Piece, page: Path, names: dict[str, Any]) -> Output:
    where = f"{page.relative_to(ROOT)}, line {piece.line}"
    try:
        if piece.kind == "console":
            output = Output("".join(_run_line(line, piece.reason) for line in _lines(piece.code)))
            if piece.printed and not _words(output.text).startswith(_words(piece.printed)):
                raise PageError(f"it prints\n{output.text}")
            return output
        if piece.reason:
            compile(piece.code, where, "exec")
            return Output()
        if piece.code.startswith(">>> "):
            return _run_doctest(piece, page, names)
        return _run_python(piece, page, names)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise PageError(f"{where}: {type(error).__name__}: {error}") from error


def _run_python(piece: Piece, page: Path, names: dict[str, Any]) -> Output:
    """Run Python as a notebook does: what is printed counts, and the value of the last line."""
    import matplotlib.pyplot as plt

    plt.close("all")
    tree = ast.parse("\n" * (piece.line - 1) + piece.code, str(page))
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        tree.body.pop()
    output = Output()
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, str(page), "exec"), names)
        value = None
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), str(page), "eval"), names)
    output.text = printed.getvalue()
    output.figures = [plt.figure(number) for number in plt.get_fignums()]
    if output.figures and not piece.picture:
        raise PageError("it draws a figure; write <!-- picture: what it shows --> below it")
    if piece.picture and not output.figures and "<!-- picture" in page.read_text("utf-8")[slice(*piece.span)]:
        raise PageError("it draws no figure")
    if not output.text and not output.figures:
        _show_value(value, output)
    return output


def _show_value(value: Any, output: Output) -> None:
    """The value of the last line, unless it is a model or nothing."""
    from sklearn.base import BaseEstimator

    if value is None or isinstance(value, BaseEstimator):
        return
    if hasattr(value, "_repr_html_"):
        output.html = value._repr_html_()
    else:
        output.text = f"{value!r}\n"


def _run_doctest(piece: Piece, page: Path, names: dict[str, Any]) -> Output:
    test = doctest.DocTestParser().get_doctest(piece.code, names, str(page), str(page), piece.line)
    report: list[str] = []
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(test, out=report.append, clear_globs=False)
    names |= test.globs
    if runner.failures:
        raise PageError("".join(report))
    return Output()


def _words(text: str) -> str:
    """A text without its figures, which may differ from machine to machine."""
    return re.sub(r"[\d.,%]+", "#", text)


def _lines(code: str) -> list[str]:
    """The commands of a block, with continued lines put together."""
    return [line.strip() for line in code.replace("\\\n", " ").splitlines() if line.strip()]


def _run_line(line: str, reason: str | None) -> str:
    """Run a command, or look it up; what it printed."""
    printed = ""
    for words in (shlex.split(command, comments=True) for command in line.split(" && ")):
        if words[0] in ("pip", "make") or reason:
            _look_up(words)
        elif words[0] == "pairmargin":
            printed += _run_ours(words[1:])
        elif words[0] == "python":
            printed += _run_script(words[1:])
        elif words[0] in HARMLESS:
            printed += subprocess.run(words, capture_output=True, text=True, check=True).stdout
        else:
            raise PageError(f"{words[0]!r} is no command that a page may run")
    return printed


def _run_ours(arguments: list[str]) -> str:
    from pairmargin.cli import app

    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            app(arguments, prog_name="pairmargin")
        except SystemExit as end:
            if end.code:
                raise PageError(f"exit code {end.code}: {err.getvalue()}") from end
    return out.getvalue()


def _run_script(arguments: list[str]) -> str:
    before = sys.argv
    sys.argv = arguments
    with redirect_stdout(io.StringIO()) as printed:
        try:
            runpy.run_path(str(ROOT / arguments[0]), run_name="__main__")
        finally:
            sys.argv = before
    return printed.getvalue()


def _look_up(words: list[str]) -> None:
    """Is there such a command, script, target or extra?"""
    if words[0] == "make":
        targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        unknown = [target for target in words[1:] if target not in targets]
    elif words[0] == "pip":
        known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        asked = re.findall(r"\[(.*?)\]", " ".join(words))
        unknown = [extra for extras in asked for extra in extras.split(",") if extra not in known]
    elif words[0] == "python":
        unknown = [word for word in words[1:2] if word != "-m" and not (ROOT / word).exists()]
    elif words[0] == "pairmargin":
        _parse(words[1:])
        unknown = []
    elif words[0] == "torchrun":  # with PyTorch
        unknown = []
        if "-m" in words:
            _look_up(words[words.index("-m") + 1 :])
    else:
        unknown = words[:1]
    if unknown:
        raise PageError(f"there is no {unknown[0]!r}, which {' '.join(words)!r} asks for")


def _parse(arguments: list[str]) -> None:
    """Let the command's own parser read the arguments, and go no further."""
    import typer

    from pairmargin.cli import app

    command = typer.main.get_command(app)
    context = command.make_context("pairmargin", arguments, resilient_parsing=False)
    while hasattr(command, "resolve_command"):
        rest = [*context._protected_args, *context.args] if hasattr(context, "_protected_args") else context.args
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)
