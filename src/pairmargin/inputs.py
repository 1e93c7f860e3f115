"""From raw X to what the first layer sees: the kind of visible units, the scaling, and two products.

Binary units want numbers between 0 and 1 that mean "off" and "on", most of them off: where they are mostly on, off and
on are swapped. Gaussian ones want columns of mean 0 and variance 1, or, where the columns are principal components, a
mean variance of 1. What the data calls for is decided by `choose_visible` and `are_principal_components`;
docs/design/visible-units.md has the measurements behind both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
import scipy.stats
import torch
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler
from sklearn.utils.extmath import randomized_svd
from torch import Tensor

from .exceptions import InvalidDataError

BINARY, GAUSSIAN = "binary", "gaussian"
BINARY_SHARE = 0.4
UNCORRELATED = 0.003  # largest mean squared correlation of columns that are called principal components
IN_ORDER = -0.9  # and their largest rank correlation of variance and place
SAMPLE = 10_000, 500  # rows and columns that are enough to see it
MAIN_COMPONENTS = 100  # of sparse rows, where distances are asked for


class Input(Protocol):
    """The scaled data as the first layer sees it: rows to pretrain on, and two products."""

    shape: tuple[int, int]

    def rows(self, index: Tensor | slice) -> Tensor:
        """Some rows, dense."""

    def times(self, weight: Tensor, bias: Tensor) -> Tensor:
        """X·weight + bias."""

    def transposed_times(self, other: Tensor) -> Tensor:
        """Xᵀ·other."""

    def points(self, rows: NDArray[Any] | slice = slice(None)) -> NDArray[Any]:
        """Some rows as dense points that are as far apart as the rows are."""


class DenseInput:
    """Data that is one dense tensor."""

    def __init__(self, x: Tensor) -> None:
        self.x = x
        self.shape = (x.shape[0], x.shape[1])

    def rows(self, index: Tensor | slice) -> Tensor:
        return self.x[index]

    def times(self, weight: Tensor, bias: Tensor) -> Tensor:
        return torch.addmm(bias, self.x, weight)

    def transposed_times(self, other: Tensor) -> Tensor:
        return self.x.T @ other

    def points(self, rows: NDArray[Any] | slice = slice(None)) -> NDArray[Any]:
        return np.asarray(self.x[rows].cpu().numpy())


class SparseInput:
    """(X − shift) / scale of a sparse X that is never filled in: the shift is moved into the products.

    The products are SciPy's: PyTorch's sparse CSR tensors are still marked as beta.
    """

    def __init__(self, x: sp.csr_array, shift: Tensor, scale: Tensor) -> None:
        self.x = x
        self.x_transposed = x.T.tocsr()
        self.shift = shift / scale
        self.scale = scale
        self.shape = (x.shape[0], x.shape[1])

    def rows(self, index: Tensor | slice) -> Tensor:
        picked = self.x[index.cpu().numpy() if isinstance(index, Tensor) else index]
        return torch.from_numpy(picked.toarray()).to(self.scale) / self.scale - self.shift

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


@dataclass(frozen=True)
class Scaling:
    """How raw columns become inputs; learned by `fit`, kept for `predict`."""

    visible: str  # kind of visible units that the scaled data is meant for
    shift: NDArray[Any]  # (D,)
    scale: NDArray[Any]  # (D,)

    @classmethod
    def learn(cls, x: NDArray[Any] | sp.csr_array, visible: str) -> Scaling:
        """Choose the kind of visible units if it is ``"auto"``, then the shift and the scale that it needs."""
        statistics = StandardScaler(with_mean=not sp.issparse(x)).fit(x)  # float64 inside, knows constant columns
        mean, variance, low, high = statistics.mean_, statistics.var_, float(x.min()), float(x.max())
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

    def apply(self, x: NDArray[Any] | sp.csr_array, device: torch.device) -> Input:
        """Put the data on the scale of `fit`."""
        shift, scale = self.shift.astype(x.dtype), self.scale.astype(x.dtype)
        if sp.issparse(x):
            return SparseInput(sp.csr_array(x), *(torch.from_numpy(a).to(device) for a in (shift, scale)))
        scaled = np.subtract(x, shift, order="C")
        scaled /= scale
        return DenseInput(torch.from_numpy(scaled).to(device))


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


def are_principal_components(x: NDArray[Any], variance: NDArray[Any]) -> bool:
    """Whether the columns are uncorrelated and their variances fall from first to last, as PCA and SVD leave them.

    Their variances are then all that is known of the shape of the data, and one scale a column would erase it.
    """
    places = np.flatnonzero(variance > np.finfo(x.dtype).eps * variance.max(initial=0))
    places = places[:: -(-len(places) // SAMPLE[1]) or 1]
    spread = variance[places]
    if len(places) < 3 or np.ptp(spread) == 0 or scipy.stats.spearmanr(spread, places).statistic > IN_ORDER:
        return False
    rows = x[:: -(-len(x) // SAMPLE[0]), places]
    squared = np.corrcoef(rows, rowvar=False) ** 2
    return bool((squared.sum() - len(places)) / (squared.size - len(places)) < UNCORRELATED)
