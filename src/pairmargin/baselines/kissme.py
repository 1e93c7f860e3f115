"""KISSME: the metric that a likelihood ratio of two Gaussians gives.

symbol   name           meaning
──────   ───────────    ──────────────────────────────────────────────────
Σ_S      together       covariance of the differences of must-links
Σ_D      apart          covariance of the differences of cannot-links
M        (returned)     Σ_S⁻¹ − Σ_D⁻¹ without its negative eigenvalues
"""

from __future__ import annotations

import numpy as np

from ..pairs import Pairs
from ..validation import Rules, check_rules
from .mahalanobis import SHRINKAGE, Array, MahalanobisMetric, differences, power, shrunk_covariance

RULES: Rules = {"shrinkage": SHRINKAGE}


class KISSME(MahalanobisMetric):
    """Keep it simple and straightforward: two covariances, inverted and subtracted.

    If the differences of must-linked and of cannot-linked points are Gaussian of mean 0, the logarithm of their
    likelihood ratio is, up to a constant, the squared distance under Σ_D⁻¹ − Σ_S⁻¹.

    Parameters
    ----------
    shrinkage : "auto" or float, default="auto"
        Share of a scaled identity in both covariances. "auto" follows from their spread and from the number of pairs
        (oracle approximating shrinkage, made for the Gaussians that the method supposes); it makes 50 must-links
        enough in 400 dimensions. 0 is the paper to the letter, with pseudo-inverses where there are too few pairs.

    Attributes
    ----------
    components_ : ndarray of shape (rank, n_features)
        L with M = LᵀL, its longest direction first.
    n_features_in_ : int

    Notes
    -----
    The metric is the identity, and ``transform`` changes nothing, if must-links or cannot-links are missing, if the
    points of all of a kind coincide, or if no direction sets the two kinds apart.

    Differs from the paper: it reduces X by PCA until the covariances can be inverted, which takes a dimension to choose
    and throws directions away unasked; shrinking takes neither.

    References
    ----------
    M. Köstinger, M. Hirzer, P. Wohlhart, P. M. Roth, H. Bischof (2012). Large scale metric learning from equivalence
    constraints. CVPR.

    Examples
    --------
    >>> from pairmargin import KISSME, pair_roc, sample_pairs
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_wine(return_X_y=True)
    >>> known, unseen = sample_pairs(y, 200, random_state=0).split(100, random_state=0)
    >>> metric = KISSME().fit(scale(X), pairs=known)
    >>> pair_roc(unseen, metric.pair_score(scale(X), unseen)).auc > 0.95
    True
    """

    def __init__(self, *, shrinkage: float | str = "auto") -> None:
        self.shrinkage = shrinkage

    def _learn(self, X: Array, pairs: Pairs) -> Array:
        check_rules(RULES, self.get_params(deep=False))
        kinds = [(differences(X, pairs.index[kind]), pairs.weight[kind]) for kind in (pairs.same, ~pairs.same)]
        if not all(rows.any() for rows, _ in kinds):
            return np.eye(X.shape[1])
        together, apart = (shrunk_covariance(rows, weight, self.shrinkage) for rows, weight in kinds)
        return power(together, -1) - power(apart, -1)  # sect. 3.1: M = Σ_S⁻¹ − Σ_D⁻¹
