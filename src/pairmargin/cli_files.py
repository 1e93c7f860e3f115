"""``pairmargin fit``, ``predict`` and ``evaluate``. Heavy imports stand inside the commands, as in `cli`."""

from __future__ import annotations

import json as to_json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .exceptions import InvalidParameterError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from .files import Evaluation

READING = "How to read DATA"
SHOWN = 10  # notes; all of them are in run.json

Data = Annotated[Path, typer.Argument(metavar="DATA", show_default=False, help="A table, vectors, or a folder.")]
Model = Annotated[
    Path, typer.Argument(metavar="MODEL", show_default=False, help="The model.safetensors that fit wrote.")
]
Answers = Annotated[
    Path, typer.Option("--pairs", metavar="FILE", show_default=False, help="Answers: a table with a, b and same.")
]
Truth = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Labels to score the result by; nothing learns from them.")
]
AS_JSON = "pairmargin.json"  # the key of `ctx.meta` that says whether messages are to be JSON too


def _note_json(ctx: typer.Context, wanted: bool) -> bool:
    ctx.meta[AS_JSON] = wanted
    return wanted


Json = Annotated[
    bool,
    typer.Option(
        "--json", metavar="", callback=_note_json, help="Print one JSON object, and lines of JSON on stderr meanwhile."
    ),
]


def _reading(text: str, metavar: str | None = None, flag: str | None = None) -> Any:
    return typer.Option(*filter(None, [flag]), metavar=metavar, help=text, rich_help_panel=READING)


Id = Annotated[str | None, _reading("The column with the ids; else rows are counted from 0.", "COLUMN")]
Text = Annotated[str | None, _reading("The column with texts to learn from.", "COLUMN")]
Columns = Annotated[list[str] | None, _reading("Read this column; say it again for more.", "COLUMN")]
Exclude = Annotated[list[str] | None, _reading("Leave this column out; again for more.", "COLUMN")]
Kind = Annotated[str | None, _reading("What to read of a folder that has both.", "image|text")]
Embed = Annotated[str | None, _reading("What texts become.", "tfidf|sentence")]
Size = Annotated[int | None, _reading("Pixels a side that images are stretched to.", "N")]
Colour = Annotated[bool, _reading("Keep the colours of images.", "", flag="--colour")]
ArrayName = Annotated[str | None, _reading("The array with the vectors, of several.", "NAME")]
Encoding = Annotated[str | None, _reading("Of text tables and texts; else utf-8.", "NAME")]
Separator = Annotated[str | None, _reading("Of text tables; else found out.", "CHARACTER")]
Sheet = Annotated[str | None, _reading("Of an Excel file; else the first.", "NAME")]


def given_options(**options: Any) -> dict[str, Any]:
    """Those that the user gave, for `read_items`."""
    return {name: value for name, value in options.items() if value is not None and value is not False}


def fit(
    data: Data,
    pairs: Answers,
    clusters: Annotated[
        str, typer.Option(metavar="K|auto", show_default=False, help="The most clusters, or auto to find out.")
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the results.", show_default="DATA-clusters")
    ] = None,
    truth: Truth = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, max=2**32 - 1, help="Same seed, same clusters.")] = 0,
    sample: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            show_default="20000, or 0 with --batch-size",
            help="Learn from at most so many items, and label the others by it; 0: from all.",
        ),
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Learn from so many items at a time, for large data.")
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep how far it has come there, and go on from it.")
    ] = None,
    patience: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=1, help="How long processes of torchrun wait for each other."),
    ] = 1800,
    on_conflict: Annotated[
        str, typer.Option(metavar="raise|drop|keep", help="What to do with answers that contradict each other.")
    ] = "raise",
    json: Json = False,
    id: Id = None,
    text: Text = None,
    columns: Columns = None,
    exclude: Exclude = None,
    kind: Kind = None,
    embed: Embed = None,
    size: Size = None,
    colour: Colour = False,
    array: ArrayName = None,
    encoding: Encoding = None,
    separator: Separator = None,
    sheet: Sheet = None,
) -> None:
    """Cluster a file by answers: labels, a model, a report and a record, in a folder."""
    from . import MaxMarginClustering
    from .cli_progress import progress
    from .files import fit_files, write_result
    from .files.fitting import SAMPLE
    from .files.outputs import OUTPUTS, record
    from .team import launched
    from .writing import check_apart, new_folder, refusals

    options = given_options(id=id, text=text, columns=columns, exclude=exclude, kind=kind, embed=embed, size=size)
    options |= given_options(colour=colour, array=array, encoding=encoding, separator=separator, sheet=sheet)
    options |= given_options(truth=truth)
    folder = out or Path(f"{data.resolve().stem}-clusters")
    for name in OUTPUTS:
        check_apart(folder / name, data, pairs)
    settings: dict[str, Any] = {"on_conflict": on_conflict, "random_state": seed, "batch_size": batch_size}
    settings["checkpoint"] = None if checkpoint is None else str(checkpoint)
    model = MaxMarginClustering(_number_of(clusters), **settings)
    n_learned = (0 if batch_size else SAMPLE) if sample is None else sample
    errors = _console(stderr=True)
    with launched(patience) as team:
        if team.rank > 0:  # it works for the first one, who writes and tells
            fit_files(model, data, pairs, sample=n_learned, options=options)
            return
        with new_folder(folder) as beside, _warnings(errors, json), progress(model, errors, json) as on_row:
            result = fit_files(model, data, pairs, sample=n_learned, options=options, on_row=on_row)
            with refusals(folder):
                write_result(result, beside)
    told = record(result) | {"out": str(folder)}
    if json:
        typer.echo(to_json.dumps(told, ensure_ascii=False))
    else:
        _tell_fit(told, _console())
    if result.stopped:
        raise typer.Exit(130)


def predict(
    model: Model,
    data: Data,
    out: Annotated[Path, typer.Option(metavar="FILE", show_default=False, help="The CSV file to write.")],
    json: Json = False,
) -> None:
    """Write the clusters of a new file, read just as the first one was; of any length, in little memory."""
    from .files import predict_file

    errors = _console(stderr=True)
    with _counter(errors, json) as on_items, _warnings(errors, json):
        n_items, notes = predict_file(model, data, out, on_items=on_items)
    if json:
        typer.echo(to_json.dumps({"items": n_items, "notes": notes, "out": str(out)}, ensure_ascii=False))
        return
    console = _console()
    _tell_notes(notes, console)
    console.print(f"{n_items:,} items, written to {out}")


def evaluate(model: Model, data: Data, pairs: Answers, truth: Truth = None, json: Json = False) -> None:
    """Hold a model against answers that it has not learned from: agreement, ROC, reliability."""
    from .files import evaluate_files

    with _warnings(_console(stderr=True), json):
        result = evaluate_files(model, data, pairs, truth=truth)
    if json:
        typer.echo(to_json.dumps(result.to_dict(), ensure_ascii=False))
    else:
        _tell_evaluation(result, _console())


def _number_of(clusters: str) -> int | str:
    """K or "auto"."""
    if clusters == "auto":
        return clusters
    try:
        return int(clusters)
    except ValueError:
        raise InvalidParameterError(f"--clusters {clusters} should be a whole number or auto") from None


def _console(stderr: bool = False) -> Console:
    """Plain lines, as long as they are, without what a terminal would obey: names of files and columns are in them."""
    from rich.console import Console

    class Plain(Console):
        def print(self, *things: Any, **settings: Any) -> None:
            super().print(*(_plain(each) if isinstance(each, str) else each for each in things), **settings)

    return Plain(stderr=stderr, highlight=False, markup=False, soft_wrap=True)


def _plain(text: str) -> str:
    """Text with a mark for every control character but tab and newline, and for what is not UTF-8 in a file's name."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", text)


@contextmanager
def _warnings(console: Console, as_json: bool) -> Iterator[None]:
    """A line for each of our warnings instead of a place in the source; before an error too, which they may explain."""
    import warnings

    from .exceptions import PairMarginWarning

    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", PairMarginWarning)
            yield
    finally:
        for each in caught:
            if issubclass(each.category, PairMarginWarning):
                line = to_json.dumps({"warning": str(each.message)}) if as_json else f"Warning: {each.message}"
                console.print(line, style="yellow")
            else:
                warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)


@contextmanager
def _counter(console: Console, as_json: bool) -> Iterator[Any]:
    """A line on a terminal that counts items."""
    with console.status("Reading") if console.is_terminal and not as_json else nullcontext() as status:
        yield None if status is None else lambda n: status.update(f"{n:,} items")


def _tell_notes(notes: Sequence[str], console: Console) -> None:
    for note in notes[:SHOWN]:
        console.print(f"  {note}")
    if len(notes) > SHOWN:
        console.print(f"  … and {len(notes) - SHOWN} more notes")


def _tell_fit(told: dict[str, Any], console: Console) -> None:
    """What a fit has read, learned and written, in a few lines."""
    data, pairs, sizes = told["data"], told["pairs"], told["clusters"]
    console.print(f"{data['items']:,} items with {data['features']:,} features from {data['path']}")
    _tell_notes(told["notes"], console)
    console.print(f"{pairs['answers']:,} answers, {pairs['same']:,} same and {pairs['different']:,} different")
    if told["learned_from"] < data["items"]:
        console.print(f"  learned from {told['learned_from']:,} items; --sample 0 learns from all, in more time")
    shown = ", ".join(f"{size:,}" for size in list(sizes.values())[:SHOWN]) + (", …" if len(sizes) > SHOWN else "")
    console.print(f"{len(sizes)} clusters of {shown} items; {told['answers_kept']:,} answers are kept")
    _tell_scores(told["scores"], console)
    end = "Stopped early; the model so far" if told["stopped"] else "Everything"
    console.print(f"{end} is in {told['out']}", style="bold")


def _tell_scores(scores: dict[str, float] | None, console: Console) -> None:
    if scores:
        console.print(", ".join(f"{name.replace('_', ' ')} {value:.3f}" for name, value in scores.items()))


def _tell_evaluation(result: Evaluation, console: Console) -> None:
    kinds = {"same": result.agreement_same, "different": result.agreement_different}
    by_kind = ", ".join(f"{kind} {share:.1%}" for kind, share in kinds.items() if share is not None)
    console.print(f"{result.answers:,} answers about {result.items:,} items")
    console.print(f"agreement          {result.agreement:.1%} ({by_kind})")
    console.print(f"ROC AUC            {'—' if result.auc is None else f'{result.auc:.3f}'}")
    console.print(f"calibration error  {result.calibration_error:.3f}")
    console.print(f"Brier score        {result.brier:.3f}")
    _tell_scores(result.scores, console)
    console.print(_reliability(result))


def _reliability(result: Evaluation) -> Table:
    """Chances and what came true."""
    from rich.table import Table

    table = Table(caption="chance of “same”, and how often it was", caption_justify="left")
    for heading in ("chance", "answers", "mean chance", "share same"):
        table.add_column(heading, justify="right")
    for each in result.reliability:
        span = f"{each.low:.1f} to {each.high:.1f}"
        table.add_row(span, str(each.answers), f"{each.chance:.3f}", f"{each.same:.3f}")
    return table
