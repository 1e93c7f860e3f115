"""The clusters of items as they stand in a file: cluster, confidence and second choice."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import Any, NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray

from ..estimator import MaxMarginClustering

Array = NDArray[Any]
HEADER = "id", "cluster", "confidence", "second_choice"
ROWS = 10_000  # that are looked at together: little memory, and no slower than more


class Labels(NamedTuple):
    """The cluster of every item, the chance that it is the right one, and the next best cluster."""

    cluster: Array  # (n,)
    confidence: Array  # (n,)
    second: Array  # (n,) −1 where there is but one cluster


def label(model: MaxMarginClustering, features: Any) -> Labels:
    """The clusters of items by their scores, a few thousand at a time."""
    parts = [_label(model, features[start : start + ROWS]) for start in range(0, features.shape[0], ROWS)]
    return Labels(*map(np.concatenate, zip(*parts, strict=True)))


def with_known(labels: Labels, model: MaxMarginClustering, features: Any, rows: Array) -> Labels:
    """Labels that hold to what `fit` decided for some rows, where answers weigh more than scores."""
    cluster, confidence, second = (array.copy() for array in labels)
    changed = np.flatnonzero(model.labels_ != cluster[rows])
    if len(changed):
        there, known = rows[changed], model.labels_[changed]
        second[there] = cluster[there]  # what the scores say
        cluster[there] = known
        confidence[there] = model.cluster_proba(features[there])[np.arange(len(there)), known]
    return Labels(cluster, confidence, second)


def write_header(file: TextIO) -> None:
    """The first line of a file of labels."""
    _writer(file).writerow(HEADER)


def write_rows(file: TextIO, ids: Sequence[str], labels: Labels) -> None:
    """A line for each item."""
    chances = [f"{chance:.4f}" for chance in labels.confidence.tolist()]
    others = ["" if cluster < 0 else cluster for cluster in labels.second.tolist()]
    _writer(file).writerows(zip(ids, labels.cluster.tolist(), chances, others, strict=True))


def _writer(file: TextIO) -> Any:
    return csv.writer(file, lineterminator="\n")


def _label(model: MaxMarginClustering, features: Any) -> Labels:
    chances = model.cluster_proba(features)
    rows = np.arange(len(chances))
    best = chances.argmax(1)
    confidence = chances[rows, best]
    if chances.shape[1] == 1:
        return Labels(best, confidence, np.full(len(best), -1))
    chances[rows, best] = -1
    return Labels(best, confidence, chances.argmax(1))
