"""``pairmargin label``. Heavy imports stand inside the command, as in `cli`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .cli_files import (
    ArrayName,
    Colour,
    Columns,
    Data,
    Embed,
    Encoding,
    Exclude,
    Id,
    Kind,
    Separator,
    Sheet,
    Size,
    Text,
    _console,
    _tell_notes,
    given_options,
)


def label(
    data: Data,
    clusters: Annotated[
        int | None,
        typer.Option(metavar="K", min=1, show_default="8, or as the session has it", help="The most clusters."),
    ] = None,
    session: Annotated[
        Path | None, typer.Option(metavar="DIR", show_default="DATA-session", help="Where everything is kept.")
    ] = None,
    port: Annotated[int, typer.Option(metavar="P", min=0, max=65535, help="Of the page; 0 takes a free one.")] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", metavar="", help="Only print the link.")] = False,
    host: Annotated[
        str, typer.Option(metavar="H", help="0.0.0.0 opens the page to the local network, for those with the link.")
    ] = "127.0.0.1",
    overlap: Annotated[
        float,
        typer.Option(metavar="SHARE", min=0, max=1, help="Share of questions that somebody else has answered already."),
    ] = 0.0,
    pairs: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Answers to begin with: a table with a, b and same.")
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, max=2**32 - 1, help="Same seed and answers, same questions.")
    ] = 0,
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
    """Answer "same" or "different" in the browser, and take home the clusters."""
    from .extras import need

    need("uvicorn", "the page")
    need("starlette.applications", "the page")
    import threading
    import webbrowser

    from .web.security import is_loopback, new_token
    from .web.serving import listening, open_session, serve

    options = given_options(id=id, text=text, columns=columns, exclude=exclude, kind=kind, embed=embed, size=size)
    options |= given_options(colour=colour, array=array, encoding=encoding, separator=separator, sheet=sheet)
    folder = session or Path(f"{data.resolve().stem}-session")
    console = _console()
    with listening(host, port) as sock:
        opened, faces = open_session(data, folder, clusters, options, random_state=seed, overlap=overlap)
        with opened:
            console.print(f"{len(opened.ids):,} items from {data}; the session is in {folder}")
            _tell_notes(faces.items.notes, console)
            if pairs is not None:
                n_new = opened.import_pairs(pairs)
                console.print(f"{n_new:,} answers from {pairs}" if n_new else f"nothing new in {pairs}")

            def on_start(link: str) -> None:
                console.print(f"Open {link}", style="bold")
                if not is_loopback(host):
                    console.print("Whoever has this link can see the data and answer.", style="yellow")
                console.print("Ctrl-C ends it. Every answer is kept.")
                if not no_browser:
                    threading.Thread(target=webbrowser.open, args=(link,), daemon=True).start()  # it may take its time

            serve(opened, faces, sock, new_token(), on_start)
