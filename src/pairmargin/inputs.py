"""From raw X to what the first layer sees: the kind of visible units, the scaling, and two products.

Binary units want numbers between 0 and 1 that mean "off" and "on", most of them off: where they are mostly on, off and
on are swapped. Gaussian ones want columns of mean 0 and variance 1, or, where the columns are principal components, a
mean variance of 1. What the data calls for is decided by `choose_visible` and `are_principal_components`;
docs/design/visible-units.md has the measurements behind both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
import scipy.sparse as sp
import scipy.stats
import torch
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler
from sklearn.utils.extmath import randomized_svd
from torch import Tensor

from .exceptions import InvalidDataError
from .stored import StoredRows, shuffled_pieces
from .team import ALONE, Team

BINARY, GAUSSIAN = "binary", "gaussian"
BINARY_SHARE = 0.4
UNCORRELATED = 0.003  # largest mean squared correlation of columns that are called principal components
IN_ORDER = -0.9  # and their largest rank correlation of variance and place
SAMPLE = 10_000, 500  # rows and columns that are enough to see it
FEW = 50_000  # rows in memory that are looked at together
PIECE = 20_000  # rows that are looked at together, of data that stays on disk
WINDOW = 50_000  # rows that are shuffled together, of data that stays on disk
MAIN_COMPONENTS = 100  # of sparse rows, where distances are asked for


class Rows(Protocol):
    """The scaled data as the first layer sees it, a part at a time."""

    shape: tuple[int, int]
    narrow: torch.dtype | None  # the type of both products with the data, if it is not that of their results

    def rows(self, index: Tensor | slice) -> Tensor:
        """Some rows, dense."""

    def subset(self, index: Tensor) -> Input:
        """Some rows as data of their own, in memory."""

    def batches(self, size: int, generator: torch.Generator, team: Team = ALONE) -> Iterator[tuple[Tensor, Tensor]]:
        """All rows once, in a random order, ``size`` at a time but for the last: their numbers, and they.

        Of every batch, a member of a team gets its share.
        """

    def above(self, weight: Tensor, bias: Tensor) -> Rows:
        """What a logistic layer makes of the data."""


class Input(Rows, Protocol):
    """The scaled data as a whole: two products, and points in space."""

    def times(self, weight: Tensor, bias: Tensor) -> Tensor:
        """X·weight + bias."""

    def transposed_times(self, other: Tensor) -> Tensor:
        """Xᵀ·other."""

    def points(self, rows: NDArray[Any] | slice = slice(None)) -> NDArray[Any]:
        """Some rows as dense points that are as far apart as the rows are."""


class DenseInput:
    """Data that is one dense tensor, kept and multiplied in a narrow type if there is one."""

    def __init__(self, x: Tensor, narrow: torch.dtype | None = None) -> None:
        self.x, self.narrow, self.dtype = x.to(narrow or x.dtype), narrow, x.dtype
        self.shape = (x.shape[0], x.shape[1])

    def rows(self, index: Tensor | slice) -> Tensor:
        if isinstance(index, slice):
            return self.x[index].to(self.dtype)
        return self.x.index_select(0, index.to(self.x.device)).to(self.dtype)  # brackets take 4 times as long

    def subset(self, index: Tensor) -> Input:
        return DenseInput(self.rows(index), self.narrow)

    def batches(self, size: int, generator: torch.Generator, team: Team = ALONE) -> Iterator[tuple[Tensor, Tensor]]:
        return _shuffled(self, size, generator, team)

    def above(self, weight: Tensor, bias: Tensor) -> Rows:
        return DenseInput(self.times(weight, bias).sigmoid_())

    def times(self, weight: Tensor, bias: Tensor) -> Tensor:
        if self.narrow is None:
            return torch.addmm(bias, self.x, weight)
        return torch.mm(self.x, weight.to(self.narrow)).to(self.dtype).add_(bias)

    def transposed_times(self, other: Tensor) -> Tensor:
        return (self.x.T @ other.to(self.x.dtype)).to(self.dtype)

    def points(self, rows: NDArray[Any] | slice = slice(None)) -> NDArray[Any]:
        return np.asarray(self.x[rows].to(self.dtype).cpu().numpy())


class SparseInput:
    """(X − shift) / scale of a sparse X that is never filled in: the shift is moved into the products.

    The products are SciPy's: PyTorch's sparse CSR tensors are still marked as beta.
    """

    narrow: torch.dtype | None = None

    def __init__(self, x: sp.csr_array, shift: Tensor, scale: Tensor) -> None:
        self.x = x
        self.x_transposed = x.T.tocsr()
        self.shift = shift / scale
        self.scale = scale
        self.shape = (x.shape[0], x.shape[1])

    def subset(self, index: Tensor) -> Input:
        return SparseInput(self.x[index.cpu().numpy()], self.shift * self.scale, self.scale)

    def rows(self, index: Tensor | slice) -> Tensor:
        picked = self.x[index.cpu().numpy() if isinstance(index, Tensor) else index]
        return torch.from_numpy(picked.toarray()).to(self.scale) / self.scale - self.shift

    def batches(self, size: int, generator: torch.Generator, team: Team = ALONE) -> Iterator[tuple[Tensor, Tensor]]:
        return _shuffled(self, size, generator, team)

    def above(self, weight: Tensor, bias: Tensor) -> Rows:
        return DenseInput(self.times(weight, bias).sigmoid_())

    def times(self, weight: Tensor, bias: Tensor) -> Tensor:
        return self._product(self.x, weight / self.scale[:, None]).add_(bias - self.shift @ weight)

    def transposed_times(self, other: Tensor) -> Tensor:
        product = self._product(self.x_transposed, other).div_(self.scale[:, None])
        return product.sub_(torch.outer(self.shift, other.sum(0)))

    def points(self, rows: NDArray[Any] | slice = slice(None)) -> NDArray[Any]:
        """The main components of these rows, which are never filled in."""
        scaled = self.x[rows] @ sp.diags_array(1 / self.scale.cpu().numpy())
        left, size, _ = randomized_svd(scaled, min(MAIN_COMPONENTS, *scaled.shape), random_state=0)
        return np.asarray(left * size)

    def _product(self, left: sp.csr_array, right: Tensor) -> Tensor:
        return torch.from_numpy(np.asarray(left @ right.cpu().numpy())).to(self.scale)


def _shuffled(x: Rows, size: int, generator: torch.Generator, team: Team) -> Iterator[tuple[Tensor, Tensor]]:
    for numbers in torch.split(torch.randperm(x.shape[0], generator=generator, device=generator.device), size):
        own = numbers[team.share(len(numbers))]
        yield own, x.rows(own)


def _shares(n: int, size: int, team: Team) -> tuple[int, NDArray[Any]]:
    """A member's own part of n rows, which it reads: where it starts, and how much of it is for every batch."""
    totals = np.minimum(size, n - np.arange(0, n, size))
    edges = totals * np.arange(team.size + 1)[:, None] // team.size  # (members + 1, batches), as in `Team.share`
    lengths = np.diff(edges, axis=0)
    return int(lengths[: team.rank].sum()), lengths[team.rank]


class ScaledRows:
    """(X − shift) / scale of an X that stays where it is; rows are read and scaled when they are needed.

    Batches come from a window of some runs at a time, which is shuffled: files are read in long pieces.
    """

    def __init__(
        self,
        source: StoredRows,
        shift: NDArray[Any],
        scale: NDArray[Any],
        device: torch.device,
        narrow: torch.dtype | None = None,
    ) -> None:
        self.source, self.shift, self.scale, self.device, self.narrow = source, shift, scale, device, narrow
        self.shape = source.shape

    def rows(self, index: Tensor | slice) -> Tensor:
        if isinstance(index, slice):
            return self.scaled(self.source.read(slice(*index.indices(self.shape[0]))))
        return self.scaled(self.source.take(index.cpu().numpy()))

    def subset(self, index: Tensor) -> Input:
        return DenseInput(self.rows(index), self.narrow)

    def batches(self, size: int, generator: torch.Generator, team: Team = ALONE) -> Iterator[tuple[Tensor, Tensor]]:
        """A member of a team reads its share of the rows, and gets its share of every batch from there."""
        seed = torch.randint(2**62, (), generator=generator, device=generator.device)
        rng = np.random.default_rng(int(seed))
        start, lengths = _shares(self.shape[0], size, team)
        own = slice(start, start + int(lengths.sum()))
        waiting = list(lengths)
        numbers, rows = np.empty(0, dtype=np.int64), np.empty((0, self.shape[1]), dtype=self.source.dtype)
        for more, values in shuffled_pieces(self.source, own, max(WINDOW, size), rng):
            numbers, rows = np.concatenate([numbers, more]), np.concatenate([rows, values])
            while waiting and waiting[0] <= len(numbers):
                length = waiting.pop(0)
                yield torch.from_numpy(numbers[:length]), self.scaled(rows[:length])
                numbers, rows = numbers[length:], rows[length:]
        for _ in waiting:  # a member that has no rows at all takes part with none
            yield torch.from_numpy(numbers), self.scaled(rows)

    def above(self, weight: Tensor, bias: Tensor) -> Rows:
        return LayeredRows(self, weight, bias)

    def scaled(self, values: NDArray[Any], room: NDArray[Any] | None = None) -> Tensor:
        """Rows as they are stored, on the scale of `fit`; in a room that is there already, if it is given."""
        scaled = torch.from_numpy(np.subtract(values, self.shift, out=room, dtype=values.dtype))
        return scaled.div_(torch.from_numpy(self.scale)).to(self.device)


class LayeredRows:
    """What a logistic layer makes of data, worked out when it is needed."""

    narrow: torch.dtype | None = None

    def __init__(self, below: Rows, weight: Tensor, bias: Tensor) -> None:
        self.below, self.weight, self.bias = below, weight, bias
        self.shape = (below.shape[0], weight.shape[1])

    def rows(self, index: Tensor | slice) -> Tensor:
        return self._through(self.below.rows(index))

    def subset(self, index: Tensor) -> Input:
        return DenseInput(self.rows(index))

    def batches(self, size: int, generator: torch.Generator, team: Team = ALONE) -> Iterator[tuple[Tensor, Tensor]]:
        return ((numbers, self._through(rows)) for numbers, rows in self.below.batches(size, generator, team))

    def above(self, weight: Tensor, bias: Tensor) -> Rows:
        return LayeredRows(self, weight, bias)

    def _through(self, rows: Tensor) -> Tensor:
        return torch.addmm(self.bias, rows, self.weight).sigmoid_()


def pieces(x: Rows, team: Team = ALONE) -> Iterator[Input]:
    """All rows in their order, or a member's share: as they are if they are few and in memory, else some at a time.

    What was read from disk is there until the next piece comes, which takes its place.
    """
    own = team.share(x.shape[0])
    if not isinstance(x, ScaledRows):
        if team.size == 1 and x.shape[0] <= FEW:
            yield cast(Input, x)
        else:
            for rows in torch.split(torch.arange(own.start, own.stop, device="cpu"), FEW):
                yield x.subset(rows)
        return
    if own.start == own.stop:  # a member that has no rows at all takes part with none
        yield x.subset(torch.empty(0, dtype=torch.long, device="cpu"))
    start, room = own.start, np.empty((0, x.shape[1]), dtype=x.source.dtype)
    for run in x.source.runs():
        stop = min(run.stop, own.stop)
        if stop - start >= PIECE or start < stop == own.stop:
            values = x.source.read(slice(start, stop))
            if len(room) < len(values):
                room = np.empty_like(values, order="C", subok=False)
            scaled = x.scaled(values, room[: len(values)])
            if not scaled.sum().isfinite():  # four times as fast as a look at every number
                check_finite(values, first_row=start)
            yield DenseInput(scaled, x.narrow)
            start = stop


@dataclass(frozen=True)
class Scaling:
    """How raw columns become inputs; learned by `fit`, kept for `predict`."""

    visible: str  # kind of visible units that the scaled data is meant for
    shift: NDArray[Any]  # (D,)
    scale: NDArray[Any]  # (D,)

    @classmethod
    def learn(cls, x: NDArray[Any] | sp.csr_array | StoredRows, visible: str) -> Scaling:
        """Choose the kind of visible units if it is ``"auto"``, then the shift and the scale that it needs."""
        statistics, low, high = _statistics(x)  # float64 inside, knows constant columns
        mean, variance = statistics.mean_, statistics.var_
        if visible == "auto":
            visible = choose_visible(mean, variance, low, high)
        if visible == GAUSSIAN:
            scale = statistics.scale_
            if not sp.issparse(x) and are_principal_components(x, variance):
                scale = np.full_like(scale, np.sqrt(variance.mean()))  # whitened, they would be noise
            return cls(visible, mean.astype(x.dtype), scale.astype(x.dtype))
        if low < 0:
            raise InvalidDataError(
                f'visible="binary" needs values that are not negative, but X has {low:g}; '
                'use visible="gaussian", or shift and scale X to the range 0 to 1'
            )
        n_features = x.shape[1]
        one_scale = max(high, 1.0)  # one for all columns: a faint pixel stays faint
        if mean.mean() > one_scale / 2:  # dark ink on white paper: units that are nearly all on
            return cls(visible, np.full(n_features, one_scale, x.dtype), np.full(n_features, -one_scale, x.dtype))
        return cls(visible, np.zeros(n_features, x.dtype), np.full(n_features, one_scale, x.dtype))

    def apply(
        self, x: NDArray[Any] | sp.csr_array | StoredRows, device: torch.device, narrow: torch.dtype | None = None
    ) -> Rows:
        """Put the data on the scale of `fit`; what stays where it is, row by row as it is read.

        Products with dense data may be in a narrow type; sparse data have SciPy's products, which know none.
        """
        shift, scale = self.shift.astype(x.dtype), self.scale.astype(x.dtype)
        if not isinstance(x, np.ndarray) and not sp.issparse(x):
            return ScaledRows(x, shift, scale, device, narrow)
        if sp.issparse(x):
            return SparseInput(sp.csr_array(x), *(torch.from_numpy(a).to(device) for a in (shift, scale)))
        scaled = np.subtract(x, shift, order="C")
        scaled /= scale
        return DenseInput(torch.from_numpy(scaled).to(device), narrow)


def _statistics(x: NDArray[Any] | sp.csr_array | StoredRows) -> tuple[StandardScaler, float, float]:
    """Means and variances of the columns, and the lowest and the highest number of all."""
    if isinstance(x, np.ndarray) or sp.issparse(x):
        return StandardScaler(with_mean=not sp.issparse(x)).fit(x), float(x.min()), float(x.max())
    statistics, low, high = StandardScaler(), np.inf, -np.inf
    for run in x.runs():
        values = x.read(run)
        check_finite(values, first_row=run.start)
        statistics.partial_fit(values)
        low, high = min(low, float(values.min())), max(high, float(values.max()))
    return statistics, low, high


def check_finite(X: Any, first_row: int = 0) -> None:
    """Refuse NaN and infinity, saying where the first one is."""
    sparse = bool(sp.issparse(X))
    values = X.data if sparse else X
    finite = np.isfinite(values)
    if finite.all():
        return
    first = np.argwhere(~finite)[0]
    row, column = (np.searchsorted(X.indptr, first[0], "right") - 1, X.indices[first[0]]) if sparse else first
    found = "NaN" if np.isnan(X[row, column]) else "infinity"
    raise InvalidDataError(
        f"Input X contains {found} at row {first_row + row}, column {column}; fill it in (sklearn.impute) or leave the "
        "row out"
    )


def fingerprint(X: Any) -> bytes:
    """A few bytes that other data do not share; of data that stay on disk, of their form and some of their rows."""
    arrays: tuple[NDArray[Any], ...]
    if isinstance(X, np.ndarray):
        arrays = (X,)
    elif hasattr(X, "indptr"):
        arrays = X.data, X.indices, X.indptr
    else:
        arrays = (X.take(np.unique(np.linspace(0, X.shape[0] - 1, 64).astype(int))),)
    found = hashlib.blake2b(repr((tuple(X.shape), str(X.dtype), len(arrays))).encode())
    for array in arrays:
        found.update(np.ascontiguousarray(array).data)
    return found.digest()


def check_stored(X: Any) -> None:
    """Refuse data that stay on disk and hold what is no finite number; those in memory have been looked at."""
    for run in X.runs() if hasattr(X, "runs") else ():
        check_finite(X.read(run), first_row=run.start)


def first_rows(X: Any, size: int) -> NDArray[Any]:
    """The first rows of an array, a sparse one, or one that stays on disk."""
    if isinstance(X, np.ndarray):
        return X[:size]
    stored = not hasattr(X, "toarray")  # nor is it sparse
    return np.asarray(X.read(slice(0, min(size, X.shape[0]))) if stored else X[:size].toarray())


def choose_visible(mean: NDArray[Any], variance: NDArray[Any], low: float, high: float) -> str:
    """Binary or Gaussian visible units, from how close the columns come to being off-or-on."""
    return BINARY if binary_share(mean, variance, low, high) >= BINARY_SHARE else GAUSSIAN


def binary_share(mean: NDArray[Any], variance: NDArray[Any], low: float, high: float) -> float:
    """The columns' variance, as a share of what it would be if they were always off or on with the same means.

    A number between 0 and 1 with mean m has a variance of at most m(1 − m), reached just when it is always 0 or 1.
    All columns are put on one scale first.
    """
    one_scale = max(high, 1.0)
    mean = mean / one_scale
    possible = float((mean * (1 - mean)).sum())
    return float((variance / one_scale**2).sum()) / possible if low >= 0 and possible > 0 else 0.0


def are_principal_components(x: NDArray[Any] | StoredRows, variance: NDArray[Any]) -> bool:
    """Whether the columns are uncorrelated and their variances fall from first to last, as PCA and SVD leave them.

    Their variances are then all that is known of the shape of the data, and one scale a column would erase it.
    """
    places = np.flatnonzero(variance > np.finfo(x.dtype).eps * variance.max(initial=0))
    places = places[:: -(-len(places) // SAMPLE[1]) or 1]
    spread = variance[places]
    if len(places) < 3 or np.ptp(spread) == 0 or scipy.stats.spearmanr(spread, places).statistic > IN_ORDER:
        return False
    some = np.arange(0, x.shape[0], -(-x.shape[0] // SAMPLE[0]))
    rows = (x[some] if isinstance(x, np.ndarray) else x.take(some))[:, places]
    squared = np.corrcoef(rows, rowvar=False) ** 2
    return bool((squared.sum() - len(places)) / (squared.size - len(places)) < UNCORRELATED)
