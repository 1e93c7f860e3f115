"""A model held against answers that it has not learned from."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..exceptions import InvalidParameterError
from ..metrics import Bin, pair_roc, reliability, truth_scores
from ..persist import load, load_recipe
from ..readers import read_pairs
from .changed import warn_if_changed
from .labels import Array, label


@dataclass(frozen=True)
class Evaluation:
    """How well a model knows held-out answers.

    Attributes
    ----------
    items, answers : int
        How many there are.
    agreement : float
        The share of the answers that the clusters agree with.
    agreement_same, agreement_different : float or None
        The same for each kind of answer, if there are any.
    auc : float or None
        The area under the ROC curve of the pair scores, if there are answers of both kinds.
    calibration_error : float
        By how much the chance of "same" is off from how often it is right, on average over the answers.
    brier : float
        The mean square of chance minus answer; 0.25 is that of a coin.
    reliability : list of Bin
        For each tenth of the chances: how many answers, their mean chance, and the share that is the same.
    scores : dict of str to float, or None
        Agreement with the labels, if asked for.
    """

    items: int
    answers: int
    agreement: float
    agreement_same: float | None
    agreement_different: float | None
    auc: float | None
    calibration_error: float
    brier: float
    reliability: list[Bin]
    scores: dict[str, float] | None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"reliability": [each._asdict() for each in self.reliability]}


def evaluate_files(
    model: str | os.PathLike[str],
    data: str | os.PathLike[str],
    answers: str | os.PathLike[str],
    *,
    truth: str | None = None,
) -> Evaluation:
    """Hold a model against answers about the items of a file.

    Parameters
    ----------
    model : path-like
        A file that `save` has written, with a recipe in it.
    data, answers : path-like
        The items, and what is known about pairs of them. Answers that were learned from prove nothing.
    truth : str, optional
        The column (or array, or ``"folder"``) with labels, to score the clusters by.

    Returns
    -------
    evaluation : Evaluation

    Warns
    -----
    ChangedDataWarning
        If the record beside the model says that it was fitted on a file of this name with other contents.
    """
    network, recipe = load(model), load_recipe(model)
    warn_if_changed(model, data)
    items = (recipe if truth is None else recipe.with_truth(truth)).read(data)
    if truth is not None and items.truth is None:
        raise InvalidParameterError(f"{os.fspath(data)} has no labels called {truth!r}; name a column that is there")
    pairs = read_pairs(answers, items)
    if not len(pairs):
        raise InvalidParameterError(f"{os.fspath(answers)} has no answers; give some to compare with")
    asked, index = np.unique(pairs.index, return_inverse=True)
    features, index = items.features[asked], index.reshape(-1, 2)
    chance, score = network.pair_proba(features, index), network.pair_score(features, index)
    right = (score > 0) == pairs.same
    both = 0 < pairs.same.sum() < len(pairs)
    bins = reliability(pairs.same, chance)
    return Evaluation(
        items=len(items),
        answers=len(pairs),
        agreement=float(right.mean()),
        agreement_same=_mean(right[pairs.same]),
        agreement_different=_mean(right[~pairs.same]),
        auc=pair_roc(pairs.same, score).auc if both and np.isfinite(score).all() else None,
        calibration_error=sum(each.answers * abs(each.chance - each.same) for each in bins) / len(pairs),
        brier=float(np.square(chance - pairs.same).mean()),
        reliability=bins,
        scores=None if items.truth is None else truth_scores(items.truth, label(network, items.features).cluster),
    )


def _mean(right: Array) -> float | None:
    return float(right.mean()) if len(right) else None
