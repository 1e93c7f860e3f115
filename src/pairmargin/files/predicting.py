"""The clusters of a new file, piece by piece."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from ..persist import load, load_recipe
from ..readers.parts import add_notes, ahead
from ..writing import check_apart, new_file, refusals
from .changed import warn_if_changed
from .labels import ROWS, label, write_header, write_rows


def predict_file(
    model: str | os.PathLike[str],
    data: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    on_items: Callable[[int], object] | None = None,
) -> tuple[int, list[str]]:
    """Write the cluster, the confidence and the second choice of every item of a file.

    Memory does not depend on the length of the file, where its format can be read in pieces. The output is complete or
    not there.

    Parameters
    ----------
    model : path-like
        A file that `save` has written, with a recipe in it.
    data, out : path-like
        What to read, and the CSV file to write.
    on_items : callable, optional
        Called with the number of items that are done, after every piece.

    Returns
    -------
    n_items : int
    notes : list of str
        What the recipe did to the file, all pieces together.

    Warns
    -----
    ChangedDataWarning
        If the record beside the model says that it was fitted on a file of this name with other contents.
    """
    network, recipe, path = load(model), load_recipe(model), Path(out)
    check_apart(path, Path(model), Path(data))
    warn_if_changed(model, data)
    n_items, notes = 0, dict[object, str]()
    with new_file(path) as beside, _opened(beside, path) as file:
        with refusals(path):
            write_header(file)
        for piece in ahead(recipe.batches(data, rows=ROWS)):
            labels = label(network, piece.features)
            with refusals(path):
                write_rows(file, piece.ids, labels)
            n_items += len(piece)
            add_notes(notes, piece.notes)
            if on_items is not None:
                on_items(n_items)
    return n_items, list(notes.values())


@contextmanager
def _opened(beside: Path, path: Path) -> Iterator[TextIO]:
    """A file to write to, which is closed at the end; what the system refuses then is about the path."""
    with refusals(path):
        file = beside.open("w", encoding="utf-8", newline="")
    try:
        yield file
    finally:
        with refusals(path):
            file.close()
