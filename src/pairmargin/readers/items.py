"""`read_items`, the `Items` that it gives, and the `Recipe` that does the same to later files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..exceptions import InvalidDataError, InvalidParameterError, ModelFileError, did_you_mean
from .columns import Column
from .folders import IMAGES, TEXTS, find_files
from .images import ImageMaker
from .parts import Array, Maker, Options, Part, State, counted
from .table_files import TABLES
from .tables import TableMaker
from .texts import TextMaker
from .vectors import VECTORS, VectorMaker

FORMAT = 1  # of a recipe's state
_MAKERS: dict[str, Any] = {"table": TableMaker, "vector": VectorMaker, "image": ImageMaker, "text": TextMaker}
_WRITING = {"encoding", "separator", "sheet"}
_OPTIONS = {  # that mean something, for each kind
    "table": {"id", "columns", "exclude", "truth"} | _WRITING,
    "vector": {"id", "truth", "array"},
    "image": {"truth", "size", "colour"},
    "text": {"id", "text", "truth", "embed", "n_components", "model"} | _WRITING,
}


@dataclass(frozen=True, eq=False, repr=False)
class Items:
    """What `read_items` has made of a file.

    Attributes
    ----------
    ids : list of str
        A name for each item that stays the same from file to file: from the column that was named as the id, the path
        inside the folder, or else the number of the row, from 0.
    features : ndarray of shape (n, D) or sparse array
        What to cluster: ``MaxMarginClustering(…).fit(items.features)``.
    faces : sequence of str
        What a person is shown: the path of an image, a text, "column: value" line by line, the first numbers of a
        vector. Written out only when looked at.
    kind : {"table", "vector", "image", "text"}
    notes : list of str
        What was done to the data, in plain sentences.
    truth : ndarray of shape (n,) or None
        The labels, if asked for. They are never among the features or on a face: they are there to score the result.
    recipe : Recipe
        Does the same to other files.
    """

    ids: list[str]
    features: Any
    faces: Sequence[str]
    kind: str
    notes: list[str]
    truth: Array | None
    recipe: Recipe

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"Items({len(self)} of kind {self.kind!r}, {counted(self.features.shape[1], 'feature')})"


class Recipe:
    """All that is needed to do to new files exactly what was done to the first one.

    It comes with the `Items` of `read_items`; there is no other way to make one but from its own `state`.

    Attributes
    ----------
    kind : {"table", "vector", "image", "text"}
        What its items are.
    feature_names : list of str or None
        The names of the features of a table.
    columns : tuple of Column or None
        What becomes of each column of a table.
    """

    def __init__(self, maker: Maker) -> None:
        self._maker = maker

    @property
    def kind(self) -> str:
        return self._maker.kind

    @property
    def feature_names(self) -> list[str] | None:
        return self._maker.columns.features if isinstance(self._maker, TableMaker) else None

    @property
    def columns(self) -> tuple[Column, ...] | None:
        return self._maker.columns.columns if isinstance(self._maker, TableMaker) else None

    def __repr__(self) -> str:
        return f"Recipe(kind={self.kind!r})"

    def read(self, path: str | os.PathLike[str]) -> Items:
        """Read a new file with the same columns, levels, medians, vocabulary and components.

        Parameters
        ----------
        path : path-like
            A file or folder of the same kind; a table may come in another format. Labels may be missing from it.

        Returns
        -------
        items : Items
            Its notes count what the recipe did not know: columns, levels, missing values.

        Raises
        ------
        InvalidDataError
            If the file lacks a column that the recipe needs, or cannot be read.
        """
        return self._items(next(self._maker.parts(existing(path), None)))

    def batches(self, path: str | os.PathLike[str], *, rows: int = 10_000) -> Iterator[Items]:
        """Read a new file piece by piece, for files that are larger than the memory.

        Text tables, Parquet, Feather, ``.npy`` and folders are never in memory as a whole; Excel, ``.npz``, ``.mat``
        and ``.h5ad`` are. Ids that come twice are noticed within a piece only.

        Parameters
        ----------
        path : path-like
        rows : int, default=10_000
            How many items a piece has, but for the last one; for images, fewer if some cannot be read.

        Yields
        ------
        items : Items
            Together they are what `read` gives, to the last bit (embeddings of a neural network: to rounding).
        """
        if not _is_whole(rows):
            raise InvalidParameterError(f"rows={rows!r} must be a whole number, 1 or more")
        return map(self._items, self._maker.parts(existing(path), rows))

    def with_truth(self, truth: str) -> Recipe:
        """The same recipe with labels from another column, array or, for files, ``"folder"``.

        Parameters
        ----------
        truth : str

        Returns
        -------
        recipe : Recipe
            Reads the labels too, where they are.
        """
        maker: Any = self._maker  # whichever of the four: all have labels
        if truth in getattr(maker, "shown", ()):
            raise InvalidParameterError(f"truth={truth!r} is a column that the features were made of; name another one")
        return Recipe(replace(maker, truth=truth))

    def state(self) -> State:
        """The recipe as plain values and arrays, to be stored in any file; `from_state` is the way back.

        ``save(model, path, recipe=recipe)`` keeps it with a model.

        Returns
        -------
        facts : dict
            For JSON.
        arrays : dict of str to ndarray
        """
        facts, arrays = self._maker.state()
        return {"format": FORMAT, "kind": self.kind, **facts}, arrays

    @classmethod
    def from_state(cls, facts: dict[str, Any], arrays: dict[str, Array]) -> Recipe:
        """The recipe that `state` has written.

        Parameters
        ----------
        facts : dict
        arrays : dict of str to ndarray
        """
        if facts["format"] > FORMAT:
            raise ModelFileError(
                f"the recipe has format {facts['format']}, this version reads up to {FORMAT}; upgrade pairmargin"
            )
        return cls(_MAKERS[facts["kind"]].from_state(facts, arrays))

    def _items(self, part: Part) -> Items:
        return Items(part.ids, part.features, part.faces, self.kind, part.notes, part.truth, self)


def read_items(
    path: str | os.PathLike[str],
    *,
    kind: str | None = None,
    id: str | None = None,
    truth: str | None = None,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    text: str | None = None,
    embed: str | None = None,
    n_components: int | None = None,
    model: str | None = None,
    size: int | None = None,
    colour: bool | None = None,
    array: str | None = None,
    encoding: str | None = None,
    separator: str | None = None,
    sheet: str | None = None,
) -> Items:
    """Read a file or a folder as items to cluster.

    Parameters
    ----------
    path : path-like
        A table (``.csv``, ``.tsv``, ``.parquet``, ``.feather``, ``.xlsx``), vectors (``.npy``, ``.npz``, ``.mat``,
        ``.h5ad``), or a folder of images (``.png``, ``.jpg``, ``.tif``, ``.webp``) or of texts (``.txt``).
    kind : {"image", "text"}, default=None
        What to read of a folder that has both.
    id : str, default=None
        The column (or, of several arrays, the one) with the ids. None counts the rows from 0.
    truth : str, default=None
        The column (or array) with the labels; for a folder ``"folder"``, if each kind is in a folder of its own.
    columns : list of str, default=None
        The columns of a table to read; None reads all.
    exclude : list of str, default=None
        Columns of a table to take no notice of.
    text : str, default=None
        The column of a table with the texts to learn from.
    embed : {"tfidf", "sentence"}, default="tfidf"
        Texts as main components of tf-idf, or as embeddings of a pretrained model
        (``pip install "pairmargin[text]"``).
    n_components : int, default=200
        The most components of tf-idf.
    model : str, default="all-MiniLM-L6-v2"
        The model of sentence-transformers.
    size : int, default=32
        Images are stretched to a square of so many pixels a side.
    colour : bool, default=False
        Keep red, green and blue.
    array : str, default=None
        The array with the vectors, in a file that has several.
    encoding : str, default="utf-8"
        Of text tables and texts, with or without a byte order mark.
    separator : str, default=None
        Of text tables. None takes commas for ``.csv`` and tabs for ``.tsv``, or what the first rows call for.
    sheet : str, default=None
        Of an Excel file. None takes the first one.

    Returns
    -------
    items : Items

    Raises
    ------
    InvalidDataError
        If the file cannot be read; the message says why, and on which line where there are lines.
    InvalidParameterError
        If a column is not there, or an option means nothing for this kind of file.
    MissingPackageError
        If a package of the extra ``files`` is needed and not installed; the message has the command.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from pairmargin import read_items
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "flowers.csv")
    ...     _ = path.write_text("name,length,colour\\nf1,1.5,red\\nf2,,red\\nf3,4.5,blue\\n")
    ...     items = read_items(path, id="name")
    >>> items
    Items(3 of kind 'table', 3 features)
    >>> items.ids, items.recipe.feature_names
    (['f1', 'f2', 'f3'], ['length', 'colour = blue', 'colour = red'])
    >>> print(items.faces[1])
    length: —
    colour: red
    >>> items.notes[-1]
    'length: 1 missing value filled in with the median, 3.'
    """
    given = {name: value for name, value in locals().items() if name not in ("path", "kind") and value is not None}
    found = existing(path)
    kind = _kind(found, kind, given)
    _check_options(found, kind, given)
    maker, part = _MAKERS[kind].learn(found, given)
    return Recipe(maker)._items(part)


# What a path is, and what may be asked of it


def existing(path: str | os.PathLike[str]) -> Path:
    """The path, if there is something."""
    found = Path(path)
    if not found.exists():
        beside = [each.name for each in found.parent.iterdir()] if found.parent.is_dir() else []
        raise InvalidDataError(f"there is no file or folder {found}{did_you_mean(found.name, beside)}; check the path")
    return found


def _kind(path: Path, kind: str | None, given: Options) -> str:
    """What the items of a path are, by its ending or by what is in the folder."""
    if kind not in (None, "image", "text"):
        raise InvalidParameterError(f'kind={kind!r} must be "image" or "text", for a folder that has both')
    if kind and not path.is_dir():
        raise InvalidParameterError(
            f"kind={kind!r} is for folders; for a column of texts in {path.name} pass text=COLUMN"
        )
    ending = path.suffix.lower()
    if path.is_dir():
        return kind or _kind_of_folder(path)
    if ending in TABLES:
        return "text" if "text" in given else "table"
    if ending in VECTORS:
        return "vector"
    if ending in (*IMAGES, *TEXTS):
        raise InvalidDataError(f"{path.name} is a single file; pass the folder with all of them, {path.parent}")
    hint = "; save it as .xlsx" if ending == ".xls" else ""
    raise InvalidDataError(
        f"{path.name} ends in {ending or 'nothing'}, which is not supported{hint}; there are {', '.join(TABLES)} for "
        f"tables, {', '.join(VECTORS)} for vectors, and folders of {', '.join((*IMAGES, *TEXTS))}"
    )


def _kind_of_folder(path: Path) -> str:
    images, texts = (len(find_files(path, endings)[0]) for endings in (IMAGES, TEXTS))
    if images and texts:
        raise InvalidDataError(f'{path.name} has {images} images and {texts} texts; pass kind="image" or kind="text"')
    if not images and not texts:
        raise InvalidDataError(
            f"the folder {path.name} has neither images ({', '.join(IMAGES)}) nor texts (.txt); pass another one"
        )
    return "image" if images else "text"


def _check_options(path: Path, kind: str, given: Options) -> None:
    """Refuse options that mean nothing for this kind, or that cannot be."""
    for name in given:
        if name not in _OPTIONS[kind] or (path.is_dir() and name in ("id", "text", "separator", "sheet")):
            fits = sorted(other for other, names in _OPTIONS.items() if name in names and other != kind)
            raise InvalidParameterError(
                f"{name}= means nothing for {path.name}, which is of kind {kind!r}, not {fits}; leave it out"
            )
    if given.get("embed") not in (None, "tfidf", "sentence"):
        raise InvalidParameterError(f'embed={given["embed"]!r} must be "tfidf" or "sentence"')
    for name in ("size", "n_components"):
        if name in given and not _is_whole(given[name]):
            raise InvalidParameterError(f"{name}={given[name]!r} must be a whole number, 1 or more")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
