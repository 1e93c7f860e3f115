"""`Pairs`, the value that holds answers: ways in, ways out, holding some out, what follows and what disagrees."""

from __future__ import annotations

import csv
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse.csgraph import connected_components
from sklearn.utils import check_random_state

from ..exceptions import ConflictingPairsError, InvalidPairsError, InvalidParameterError
from ..writing import new_file, refusals
from .arithmetic import canonical, link_graph
from .checks import (
    as_numbers,
    check_columns,
    check_index,
    check_same,
    check_size,
    check_test_size,
    check_weight,
    column,
    label_codes,
    parse_same,
    read_table,
    reject,
    rows_of_points,
)
from .html import N_ROWS, notebook_table
from .logic import Conflict, closure, confirmed, contradictions, hitting_set

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    IntArray = NDArray[np.int64]
    FloatArray = NDArray[np.float64]
    BoolArray = NDArray[np.bool_]
    RandomState = int | np.random.RandomState | None

logger = logging.getLogger("pairmargin")

_PAIRS = "pairs[{}] ="
FEW = 10_000  # answers, among which a notebook looks for contradictions unasked


class Pairs:
    """Answers "same" or "different" about pairs of rows.

    An immutable value. Pairs are stored with the smaller row first and in sorted order, whatever order they came in.
    A repeated answer is merged and its weights add up, so saying it twice counts twice. A pair called both same and
    different stays as two answers; `conflicts` finds them.

    Parameters
    ----------
    index : array-like of shape (m, 2)
        Row numbers, counted from 0.
    same : array-like of shape (m,)
        True (or 1) where the two rows belong together, False (or 0) where they do not.
    weight : array-like of shape (m,), default=None
        How much each answer counts, above 0. None lets every answer count once.
    n_samples : int, default=None
        The number of rows in the data, if known: row numbers beyond it are then refused here rather than in `fit`.

    Attributes
    ----------
    index : ndarray of shape (m, 2), int64
    same : ndarray of shape (m,), bool
    weight : ndarray of shape (m,), float64
    must_link, cannot_link : ndarray of shape (·, 2), int64
        The pairs that are same, and those that are different.
    points : ndarray, int64
        The rows that are in any pair, sorted.

    Examples
    --------
    >>> from pairmargin import Pairs
    >>> pairs = Pairs([(4, 2), (0, 1), (1, 0)], [False, True, True])
    >>> pairs
    Pairs(2 pairs: 1 same, 1 different)
    >>> pairs.index.tolist(), pairs.same.tolist(), pairs.weight.tolist()
    ([[0, 1], [2, 4]], [True, False], [2.0, 1.0])
    """

    # `_first` and `_names` remember where an answer came from, so that messages speak in the user's own numbering:
    # `_names[same]` is a template such as "pairs[{}] =", to be filled from `_first`.
    __slots__ = ("_first", "_index", "_names", "_same", "_weight")
    _index: IntArray
    _same: BoolArray
    _weight: FloatArray
    _first: IntArray
    _names: tuple[str, str]

    def __init__(
        self, index: ArrayLike, same: ArrayLike, weight: ArrayLike | None = None, *, n_samples: int | None = None
    ) -> None:
        rows = check_index(index, _PAIRS.format)
        answers = check_same(same, len(rows))
        self._store(rows, answers, check_weight(weight, len(rows), "weight[{}] =".format))
        if n_samples is not None:
            self._check_range(n_samples)

    def _store(
        self,
        index: IntArray,
        same: BoolArray,
        weight: FloatArray | None = None,
        first: IntArray | None = None,
        names: tuple[str, str] = (_PAIRS, _PAIRS),
    ) -> Pairs:
        """Keep arrays that need no check, in canonical order and read-only."""
        weight = np.ones(len(index)) if weight is None else weight
        first = np.arange(len(index)) if first is None else first
        self._index, self._same, self._weight, self._first = arrays = canonical(index, same, weight, first)
        for array in arrays:
            array.flags.writeable = False
        self._names = names
        return self

    @classmethod
    def _make(cls, *state: Any) -> Pairs:
        return cls.__new__(cls)._store(*state)

    def __reduce__(self) -> tuple[Any, ...]:
        # Unpickled arrays are writeable: going through `_store` locks them again.
        return self._make, (self._index, self._same, self._weight, self._first, self._names)

    # Other ways in

    @classmethod
    def empty(cls) -> Pairs:
        """No answers at all.

        Examples
        --------
        >>> Pairs.empty()
        Pairs(0 pairs: 0 same, 0 different)
        """
        return cls([], [])

    @classmethod
    def from_lists(
        cls, must_link: Iterable[Sequence[int]] | ArrayLike = (), cannot_link: Iterable[Sequence[int]] | ArrayLike = ()
    ) -> Pairs:
        """Pairs from a list of "same" pairs and a list of "different" pairs.

        Parameters
        ----------
        must_link, cannot_link : iterable of (int, int)

        Examples
        --------
        >>> Pairs.from_lists(must_link=[(0, 1), (1, 2)], cannot_link=[(2, 3)])
        Pairs(3 pairs: 2 same, 1 different)
        """
        names = ("cannot_link[{}] =", "must_link[{}] =")
        different, same = check_index(cannot_link, names[0].format), check_index(must_link, names[1].format)
        answers = np.repeat([False, True], [len(different), len(same)])
        first = np.concatenate((np.arange(len(different)), np.arange(len(same))))
        return cls._make(np.concatenate((different, same)), answers, None, first, names)

    @classmethod
    def from_labels(cls, y: Sequence[object] | ArrayLike) -> Pairs:
        """All pairs among the rows whose label is known.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Labels of any kind; −1, None and NaN mean unknown.

        Examples
        --------
        >>> Pairs.from_labels(["cat", "dog", None, "cat"])
        Pairs(3 pairs: 1 same, 2 different)
        """
        codes = label_codes(y)
        rows = np.flatnonzero(codes >= 0)
        check_size(len(rows) * (len(rows) - 1) // 2, "these labels give", "draw some with sample_pairs(y, n)")
        i, j = (rows[place] for place in np.triu_indices(len(rows), 1))
        return cls._make(np.column_stack((i, j)), codes[i] == codes[j])

    @classmethod
    def from_signed(cls, index: ArrayLike, sign: ArrayLike) -> Pairs:
        """Pairs from answers written as +1 (same) and −1 (different).

        Parameters
        ----------
        index : array-like of shape (m, 2)
        sign : array-like of shape (m,)

        Examples
        --------
        >>> Pairs.from_signed([(0, 1), (0, 2)], [+1, -1])
        Pairs(2 pairs: 1 same, 1 different)
        """
        given = column(sign, "sign")
        numbers = as_numbers(given)
        bad = np.abs(numbers) != 1
        reject(bad, given, "sign[{}] =".format, "is neither +1 nor -1; for True and False use Pairs(index, same)")
        return cls(index, numbers == 1)

    @classmethod
    def from_metric_learn(cls, pairs: ArrayLike, y: ArrayLike, X: ArrayLike | None = None) -> Pairs:
        """Pairs from what the weakly supervised learners of metric-learn are fitted on.

        Parameters
        ----------
        pairs : array-like of shape (m, 2) or (m, 2, n_features)
            Row numbers, or the points themselves.
        y : array-like of shape (m,)
            +1 where the two are the same, −1 where they are not.
        X : array-like of shape (n_samples, n_features), optional
            The data, in which points are looked up: each must be exactly one of its rows.

        Examples
        --------
        >>> X = [[0.0, 1.0], [0.5, 1.0], [9.0, 8.0]]
        >>> Pairs.from_metric_learn([[X[0], X[1]], [X[1], X[2]]], [+1, -1], X).index.tolist()
        [[0, 1], [1, 2]]
        """
        given = np.asarray(pairs)
        return cls.from_signed(rows_of_points(given, X) if given.ndim == 3 else given, y)

    @classmethod
    def from_positive_negative(cls, a: ArrayLike, b: ArrayLike, c: ArrayLike, d: ArrayLike) -> Pairs:
        """Pairs from the four arrays (a, b, c, d) of metric-learn's ``Constraints.positive_negative_pairs``.

        Parameters
        ----------
        a, b : array-like of shape (m,)
            Rows that are the same: ``a[k]`` and ``b[k]``.
        c, d : array-like of shape (l,)
            Rows that are different: ``c[k]`` and ``d[k]``.

        Examples
        --------
        >>> Pairs.from_positive_negative([0, 1], [2, 3], [0], [1])
        Pairs(3 pairs: 2 same, 1 different)
        """
        ends = [column(rows, name) for rows, name in ((a, "a"), (b, "b"), (c, "c"), (d, "d"))]
        for one, other, names in ((ends[0], ends[1], "a and b"), (ends[2], ends[3], "c and d")):
            if len(one) != len(other):
                raise InvalidPairsError(f"{names} have {len(one)} and {len(other)} rows; give two rows for each pair")
        return cls.from_lists(np.column_stack(ends[:2]), np.column_stack(ends[2:]))

    @classmethod
    def from_frame(cls, frame: Any) -> Pairs:
        """Pairs from a table with the columns `a`, `b`, `same` and, if wanted, `weight`.

        Parameters
        ----------
        frame : data frame or mapping
            A pandas or polars data frame, a dict of lists: anything with named columns. `same` holds booleans,
            1 and 0, 1 and −1, or the words true / false, same / different, yes / no in any case.

        Examples
        --------
        >>> Pairs.from_frame({"a": [0, 0], "b": [1, 2], "same": ["yes", "no"]})
        Pairs(2 pairs: 1 same, 1 different)
        """
        if not (isinstance(frame, Mapping) or hasattr(frame, "columns")):
            raise InvalidPairsError(f"from_frame needs a table with named columns, not {type(frame).__name__}")
        columns = list(getattr(frame, "columns", frame))
        check_columns(columns, "the table")
        a = column(frame["a"], "a")
        index = np.column_stack((a, column(frame["b"], "b", len(a))))
        same = parse_same(column(frame["same"], "same"), "same[{}] =".format)
        return cls(index, same, frame["weight"] if "weight" in columns else None)

    @classmethod
    def read_csv(cls, path: str | os.PathLike[str]) -> Pairs:
        """Read a CSV file with the columns `a`, `b`, `same` and, if wanted, `weight`, such as `to_csv` writes.

        Parameters
        ----------
        path : str or path-like
            `same` is understood as in `from_frame`; other columns are ignored.
        """
        name = Path(path).name
        lines, table = read_table(path, name)
        return cls._from_table(table, lines, "line {} of " + name.replace("{", "{{").replace("}", "}}") + ":")

    @classmethod
    def _from_table(cls, table: Mapping[str, Sequence[Any]], places: Sequence[int], template: str) -> Pairs:
        """Pairs from the columns of a file; ``template`` names an answer in messages, filled from its place."""

        def label(k: int) -> str:
            return template.format(places[k])

        index = check_index(zip(table["a"], table["b"], strict=True), label)
        same = parse_same(column(table["same"], "same"), label)
        weight = check_weight(table.get("weight"), len(index), label)
        return cls._make(index, same, weight, np.array(places, dtype=np.int64), (template, template))

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the columns `a`, `b`, `same`, `weight`, all or nothing; `read_csv` gives the same back, bit by bit.

        Parameters
        ----------
        path : str or path-like
        """
        answers = np.where(self._same, "true", "false")
        rows = zip(*self._index.T.tolist(), answers.tolist(), self._weight.tolist(), strict=True)
        with (
            new_file(Path(path)) as beside,
            refusals(Path(path)),
            beside.open("w", newline="", encoding="utf-8") as file,
        ):
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("a", "b", "same", "weight"))
            writer.writerows(rows)

    @staticmethod
    def check(pairs: object, n_samples: int) -> Pairs:
        """Accept what an estimator is given as `pairs`: the one gate of every `fit`.

        Parameters
        ----------
        pairs : Pairs, None, (index, same) or (index, same, weight)
        n_samples : int
            The number of rows in the data.

        Returns
        -------
        pairs : Pairs
            None becomes no pairs at all.

        Examples
        --------
        >>> Pairs.check(([(0, 1)], [True]), n_samples=2)
        Pairs(1 pair: 1 same, 0 different)
        """
        if pairs is None:
            pairs = Pairs.empty()
        elif isinstance(pairs, tuple) and len(pairs) in (2, 3):
            pairs = Pairs(*pairs)
        elif not isinstance(pairs, Pairs):
            raise InvalidPairsError(
                f"pairs should be Pairs, not {type(pairs).__name__}; make them with Pairs(index, same), "
                "Pairs.from_lists, Pairs.from_labels, Pairs.from_signed, Pairs.from_frame or Pairs.read_csv"
            )
        pairs._check_range(n_samples)
        return pairs

    @staticmethod
    def check_rows(index: ArrayLike | Pairs, n_samples: int) -> IntArray:
        """Accept what a ``pair_score`` is asked about: pairs of rows, with answers or without.

        Parameters
        ----------
        index : Pairs or array-like of shape (m, 2)
        n_samples : int
            The number of rows in the data.

        Returns
        -------
        rows : ndarray of shape (m, 2)
            In the order in which they were given.

        Examples
        --------
        >>> Pairs.check_rows([(3, 1)], n_samples=4)
        array([[3, 1]])
        """
        if isinstance(index, Pairs):
            return Pairs.check(index, n_samples).index.copy()
        rows = np.asarray(index) if np.size(index) else np.empty((0, 2))
        Pairs(rows, np.ones(len(rows), dtype=bool), n_samples=n_samples)  # for its checks
        return rows.astype(np.int64)

    def _check_range(self, n_samples: int) -> None:
        beyond = self._index[:, 1] >= n_samples  # the larger row of each pair comes second
        if beyond.any():
            row = int(np.argmax(beyond))
            raise InvalidPairsError(
                f"{self._describe(row)} names row {self._index[row, 1]} but the data has {n_samples} rows, "
                "counted from 0; correct the pair or leave it out"
            )

    # The value

    @property
    def index(self) -> IntArray:
        return self._index

    @property
    def same(self) -> BoolArray:
        return self._same

    @property
    def weight(self) -> FloatArray:
        return self._weight

    @property
    def must_link(self) -> IntArray:
        return self._index[self._same]

    @property
    def cannot_link(self) -> IntArray:
        return self._index[~self._same]

    @property
    def points(self) -> IntArray:
        return np.unique(self._index)

    def __len__(self) -> int:
        return len(self._index)

    def __repr__(self) -> str:
        n_same = int(self._same.sum())
        noun = "pair" if len(self) == 1 else "pairs"
        return f"{type(self).__name__}({len(self)} {noun}: {n_same} same, {len(self) - n_same} different)"

    def _repr_html_(self) -> str:
        """The counts and the first answers, for notebooks."""
        first = range(min(len(self), N_ROWS))
        a, b = self._index[: len(first)].T.tolist() if len(self) else ([], [])
        said = [self._names[int(self._same[k])].format(self._first[k]).rstrip(" =:") for k in first]
        return notebook_table(
            n_same=int(self._same.sum()),
            n_different=int((~self._same).sum()),
            n_points=len(self.points),
            n_conflicts=sum(1 for _ in contradictions(self._index, self._same)) if len(self) <= FEW else None,
            rows=list(zip(a, b, self._same.tolist(), self._weight.tolist(), said, strict=False)),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pairs):
            return NotImplemented
        mine, theirs = (self._index, self._same, self._weight), (other._index, other._same, other._weight)
        return all(map(np.array_equal, mine, theirs))

    def __getitem__(self, where: Any) -> Pairs:
        """Some of the pairs, by a mask, a slice or an array of places; a place named twice counts twice."""
        rows = np.arange(len(self))[where]
        if rows.ndim != 1:
            raise InvalidPairsError(
                f"choose pairs with a mask, a slice or a list of places such as [[0]], not {where!r}"
            )
        return self._make(self._index[rows], self._same[rows], self._weight[rows], self._first[rows], self._names)

    def __add__(self, other: Pairs) -> Pairs:
        """The answers of both; what both say counts twice. Messages number them through, `self` first."""
        if not isinstance(other, Pairs):
            return NotImplemented
        fields = ("_index", "_same", "_weight")
        return self._make(*(np.concatenate((getattr(self, name), getattr(other, name))) for name in fields))

    def split(self, test_size: float = 0.5, *, random_state: RandomState = None) -> tuple[Pairs, Pairs]:
        """Hold out some pairs, with "same" and "different" in the same proportion on both sides.

        Pairs are what to hold out in a cross-validation, never rows: leaving out rows would renumber the pairs.

        Parameters
        ----------
        test_size : float or int, default=0.5
            The share of the pairs to hold out, between 0 and 1, or their number.
        random_state : int, RandomState instance or None, default=None

        Returns
        -------
        train, test : Pairs
            Neither is empty.

        Examples
        --------
        >>> Pairs.from_labels([0, 0, 1, 1]).split(test_size=3, random_state=0)
        (Pairs(3 pairs: 1 same, 2 different), Pairs(3 pairs: 1 same, 2 different))
        """
        n_test = check_test_size(test_size, len(self))
        n_test_same = round(n_test * self._same.mean())
        rng = check_random_state(random_state)
        same, different = (rng.permutation(np.flatnonzero(kind)) for kind in (self._same, ~self._same))
        held_out = np.zeros(len(self), dtype=bool)
        held_out[same[:n_test_same]] = True
        held_out[different[: n_test - n_test_same]] = True
        return self[~held_out], self[held_out]

    # What follows from the answers, and where they disagree

    def components(self, n_samples: int) -> IntArray:
        """The groups that the "same" answers make of the rows.

        Parameters
        ----------
        n_samples : int
            The number of rows in the data.

        Returns
        -------
        component : ndarray of shape (n_samples,)
            Equal numbers for rows that a chain of "same" answers joins.

        Examples
        --------
        >>> Pairs.from_lists(must_link=[(0, 2), (2, 3)]).components(5).tolist()
        [0, 1, 0, 0, 2]
        """
        self._check_range(n_samples)
        return connected_components(link_graph(self.must_link, n_samples), directed=False)[1].astype(np.int64)

    def closure(self) -> Pairs:
        """Add every answer that follows: the same as the same is the same, and different from the different.

        Returns
        -------
        pairs : Pairs
            Given answers keep their weight, those that follow get weight 1.

        Raises
        ------
        ConflictingPairsError
            If the answers contradict each other.

        Examples
        --------
        >>> closed = Pairs.from_lists(must_link=[(0, 1)], cannot_link=[(1, 2)]).closure()
        >>> closed.must_link.tolist(), closed.cannot_link.tolist()
        ([[0, 1]], [[0, 2], [1, 2]])
        """
        self._refuse_conflicts("remove one of them, or call without_conflicts() first")
        return self._make(*closure(self._index, self._same, self._weight))

    def conflicts(self) -> list[Conflict]:
        """The "different" answers whose rows are joined by "same" answers, each with a shortest chain.

        Examples
        --------
        >>> pairs = Pairs([(4, 6), (6, 9), (9, 4)], [True, True, False])
        >>> print(pairs.conflicts()[0])
        pairs[2] = (4, 9) is "different" but pairs[0] = (4, 6), pairs[1] = (6, 9) chain them as "same"
        """
        return [
            Conflict(row, tuple(chain), self._contradiction(row, chain))
            for row, chain in contradictions(self._index, self._same)
        ]

    def confirmed(self) -> BoolArray:
        """Which answers the others confirm: the opposite answer would contradict them.

        Returns
        -------
        confirmed : ndarray of shape (m,)
            Answers that are contradicted are confirmed by nobody.

        Examples
        --------
        >>> pairs = Pairs.from_lists(must_link=[(0, 1), (1, 2), (0, 2)], cannot_link=[(0, 3)])
        >>> pairs.confirmed().tolist()
        [True, True, False, True]
        """
        return confirmed(self._index, self._same)

    def without_conflicts(self) -> Pairs:
        """Drop answers until none contradict each other, and log which.

        The answer in the most conflicts per unit of weight goes first: one wrong "same" that joins two groups
        goes rather than the many right "different" between them.

        Examples
        --------
        >>> Pairs([(0, 1), (0, 1)], [True, False], weight=[2, 1]).without_conflicts()
        Pairs(1 pair: 1 same, 0 different)
        """
        kept, dropped = self, list[str]()
        # A chain that is broken may leave another, longer one behind; hence the rounds.
        while sets := [[row, *chain] for row, chain in contradictions(kept._index, kept._same)]:
            drop = hitting_set(sets, kept._weight, kept._same)
            dropped += map(kept._describe, np.flatnonzero(drop).tolist())
            kept = kept[~drop]
        if dropped:
            shown = ", ".join(dropped[:10]) + (", …" if len(dropped) > 10 else "")
            logger.info("dropped %d of %d answers that contradict others: %s", len(dropped), len(self), shown)
        return kept

    def resolve(self, on_conflict: str) -> Pairs:
        """Deal with contradictions as an estimator's `on_conflict` says.

        Parameters
        ----------
        on_conflict : {"raise", "drop", "keep"}
            Refuse them, drop answers as `without_conflicts` does, or keep all.

        Returns
        -------
        pairs : Pairs
        """
        if on_conflict == "raise":
            self._refuse_conflicts('remove one of them, or pass on_conflict="drop" or "keep"')
            return self
        if on_conflict == "drop":
            return self.without_conflicts()
        if on_conflict == "keep":
            return self
        raise InvalidParameterError(f'on_conflict should be "raise", "drop" or "keep", not {on_conflict!r}')

    def is_in(self, others: Pairs) -> BoolArray:
        """Which of these answers are among others.

        Parameters
        ----------
        others : Pairs

        Returns
        -------
        found : ndarray of shape (m,)
        """
        points = np.union1d(self._index, others._index)
        ours, theirs = (
            np.searchsorted(points, pairs._index) @ (2 * len(points), 2) + pairs._same for pairs in (self, others)
        )
        return np.isin(ours, theirs)

    def _refuse_conflicts(self, way_out: str) -> None:
        """Raise if there are conflicts, with the first three in full."""
        found = self.conflicts()
        if found:
            told = [conflict.message for conflict in found[:3]]
            if len(found) > 3:
                told.append(f"and {len(found) - 3} more")
            raise ConflictingPairsError("; ".join([*told, way_out]))

    def _describe(self, row: int) -> str:
        """An answer as the user gave it: ``pairs[17] = (4, 9)``."""
        i, j = self._index[row].tolist()
        return f"{self._names[int(self._same[row])].format(self._first[row])} ({i}, {j})"

    def _contradiction(self, row: int, chain: Sequence[int]) -> str:
        verb = 'says "same"' if len(chain) == 1 else 'chain them as "same"'
        return f'{self._describe(row)} is "different" but {", ".join(map(self._describe, chain))} {verb}'
