"""Xing, Ng, Jordan and Russell's metric: cannot-linked points as far apart as must-linked ones allow.

symbol   name         meaning
──────   ─────────    ──────────────────────────────────────────────────────────────────────────────
A        (returned)   the metric, (d, d)
S, D     (pairs)      must-links, cannot-links
g        total        Σ_D ‖x − y‖_A, to be as large as can be, eq. (6)
f        scatter      Σ_S ‖x − y‖²_A = tr(A · scatter), at most 1, eq. (7)
U        white        cannot-linked differences after scatter^(-1/2), (m, r)
B        factor       A = scatter^(-1/2) BᵀB scatter^(-1/2), (r, r), so that f(A) = ‖B‖² in the Frobenius norm
G        gradient     of g with respect to BᵀB, (r, r)
"""

from __future__ import annotations

import numpy as np

from ..pairs import Pairs
from ..validation import NOT_NEGATIVE, Rules, check_rules, integer
from .mahalanobis import SHRINKAGE, Array, MahalanobisMetric, differences, not_coincident, power, shrunk_covariance

RULES: Rules = {
    "diagonal": ("True or False", lambda v: isinstance(v, (bool, np.bool_))),
    "shrinkage": SHRINKAGE,
    "max_iter": integer(1),
    "tol": NOT_NEGATIVE,
}


class XingMetric(MahalanobisMetric):
    """The metric with the largest sum of distances of cannot-links, for a given sum of squares of must-links.

    Parameters
    ----------
    diagonal : bool, default=False
        Learn a weight for each column only.
    shrinkage : "auto" or float, default="auto"
        Share of a scaled identity in the scatter of the must-links. "auto" follows from its spread and from the number
        of must-links (oracle approximating shrinkage). 0 is the paper to the letter, and leaves out directions that no
        must-link has a part in: there the paper's problem has no bound.
    max_iter : int, default=1000
        Largest number of iterations.
    tol : float, default=0.001
        Training stops when the sum of distances is certain to be within this share of the best there is.

    Attributes
    ----------
    components_ : ndarray of shape (rank, n_features)
        L with A = LᵀL, its longest direction first.
    n_iter_ : int
        Iterations that were run; ``max_iter`` if the last one was not yet within ``tol``.
    n_features_in_ : int

    Notes
    -----
    The metric is the identity, and ``transform`` changes nothing, if must-links or cannot-links are missing, or if the
    points of all of a kind coincide.

    Differs from the paper: it solves the problem by gradient ascent with two alternating projections, and the diagonal
    case by Newton's method. Where the scatter of the must-links is white, the constraints (7) and (8) are a ball for
    the factor B, on which a sum of lengths ‖Bu‖, being convex in B, is raised by ``B ← BG / ‖BG‖``: no step size and no
    projection, and never downhill. The problem is convex, hence the optimum is the paper's; a bound from its gradient,
    ``g(A*) − g(A) ≤ λ_max(G) − g(A)/2``, tells when it is reached. The best metric has few directions.

    References
    ----------
    E. P. Xing, A. Y. Ng, M. I. Jordan, S. Russell (2003). Distance metric learning, with application to clustering with
    side-information. NIPS 15.
    M. Journée, Y. Nesterov, P. Richtárik, R. Sepulchre (2010). Generalized power method for sparse principal component
    analysis. JMLR 11. (Convex functions on a sphere.)

    Examples
    --------
    >>> from pairmargin import XingMetric, pair_roc, sample_pairs
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_wine(return_X_y=True)
    >>> known, unseen = sample_pairs(y, 200, random_state=0).split(100, random_state=0)
    >>> metric = XingMetric().fit(scale(X), pairs=known)
    >>> pair_roc(unseen, metric.pair_score(scale(X), unseen)).auc > 0.9
    True
    """

    def __init__(
        self, *, diagonal: bool = False, shrinkage: float | str = "auto", max_iter: int = 1000, tol: float = 1e-3
    ) -> None:
        self.diagonal = diagonal
        self.shrinkage = shrinkage
        self.max_iter = max_iter
        self.tol = tol

    def _learn(self, X: Array, pairs: Pairs) -> Array:
        check_rules(RULES, self.get_params(deep=False))
        together, apart = differences(X, pairs.must_link), differences(X, pairs.cannot_link)
        told = not_coincident(apart)
        self.n_iter_ = 1  # the identity is looked at, if nothing else
        if not (together.any() and told.any()):
            return np.eye(X.shape[1])
        weight = pairs.weight[pairs.same]
        scatter = weight.sum() * shrunk_covariance(together, weight, self.shrinkage)
        whiten = power(np.diag(np.diag(scatter)) if self.diagonal else scatter, -0.5)
        white, weight = apart[told] @ whiten, pairs.weight[~pairs.same][told]
        solve = best_diagonal if self.diagonal else best_factor
        factor, self.n_iter_ = solve(white, weight, self.max_iter, self.tol)
        root = factor @ whiten
        return np.asarray(root.T @ root)


def best_factor(white: Array, weight: Array, max_iter: int, tol: float) -> tuple[Array, int]:
    """The matrix B of norm 1 with the largest Σ weight ‖Bu‖, and the iterations it took."""
    # It has no part outside the span of the rows: fewer than d of them make a smaller problem.
    basis, inside = np.linalg.qr(white.T)  # (d, r), (r, m)
    white = inside.T
    factor = np.eye(len(inside)) / np.sqrt(len(inside))
    for n_iter in range(1, max_iter + 1):
        lengths = np.linalg.norm(white @ factor.T, axis=1)  # (m,)
        gradient = (white * (weight / lengths)[:, None]).T @ white / 2  # (r, r)
        if n_iter == max_iter or _is_best(np.linalg.eigvalsh(gradient)[-1], weight @ lengths, tol):
            break
        factor = factor @ gradient
        factor /= np.linalg.norm(factor)  # eq. (7), with equality; eq. (8) holds for any BᵀB
    return factor @ basis.T, n_iter


def best_diagonal(white: Array, weight: Array, max_iter: int, tol: float) -> tuple[Array, int]:
    """The same among diagonal matrices: every product is one of vectors."""
    squares = white**2  # (m, d)
    factor = np.full(white.shape[1], 1 / np.sqrt(white.shape[1]))
    for n_iter in range(1, max_iter + 1):
        lengths = np.sqrt(squares @ factor**2)  # (m,)
        gradient = (weight / lengths) @ squares / 2  # (d,)
        if n_iter == max_iter or _is_best(gradient.max(), weight @ lengths, tol):
            break
        factor *= gradient
        factor /= np.linalg.norm(factor)
    return np.diag(factor), n_iter


def _is_best(steepest: float, total: float, tol: float) -> bool:
    """Whether g(A*) − g(A), which is at most λ_max(G) − g(A)/2, is within a share ``tol`` of g(A), eq. (6)."""
    return bool(steepest - total / 2 <= tol * total)
