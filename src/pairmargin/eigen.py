"""Eigenvectors of the largest eigenvalues, where the matrix is small enough to be written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

Array = NDArray[Any]


def last_eigenvectors(matrix: Array, n_vectors: int, within: Array | None = None) -> Array:
    """Eigenvectors of a symmetric matrix with the largest eigenvalues, the largest last, (n, ≤ n_vectors).

    With ``within``, those of matrix·v = λ·within·v. LAPACK's way to a few of them gives up on some matrices with many
    equal eigenvalues, as of graphs that the answers have cut into pieces, or finds none without a word; its way to all
    of them never does.
    """
    n = len(matrix)
    first = max(n - n_vectors, 0)
    try:
        found = scipy.linalg.eigh(matrix, within, subset_by_index=(first, n - 1))[1]
        if found.shape[1] == n - first:
            return np.asarray(found)
    except scipy.linalg.LinAlgError:
        pass
    return np.asarray(scipy.linalg.eigh(matrix, within, driver="evd" if within is None else "gvd")[1][:, first:])
