"""What sets a cluster apart from the others: columns whose mean differs, words that are said more often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils import check_random_state

from ..readers.columns import DAY, Column
from .findings import ROWS, Array, Findings

TEXTS, LETTERS = 5000, 2000  # texts whose words are counted, and how much of each
WORDS = 20_000
LEAST = 0.2  # standard deviations that a mean must be off, to be worth a line


@dataclass(frozen=True)
class Trait:
    """One thing in which a cluster is unlike the other clusters."""

    name: str
    here: str  # in the units of the file
    elsewhere: str
    effect: float  # with a sign: of means in standard deviations, of words between −1 and 1
    gist: str  # in a word or two
    column: str = ""  # of the table


def traits_of(findings: Findings, most: int) -> dict[int, list[Trait]]:
    """What sets each cluster apart, the strongest first; pictures say it themselves."""
    if len(findings.sizes) < 2 or findings.items.kind == "image":
        return {k: [] for k in findings.sizes}
    if findings.items.kind == "text":
        return _words(findings, most)
    return _columns(findings, most)


# Means of columns


@dataclass(frozen=True)
class _Feature:
    """A feature and what it was in the file."""

    name: str
    column: Column

    def told(self, mean: float) -> str:
        """A mean in the units of the file."""
        if self.column.kind in ("flag", "category"):
            return f"{100 * mean:.0f} %"
        value = mean * self.column.scale + self.column.shift
        if self.column.kind in ("date", "zoned date"):
            return str(np.datetime64(round(value * DAY), "us").astype("datetime64[D]"))
        if self.column.kind == "time":
            return str(np.datetime64(round(value), "s"))[11:16]
        return number(value)

    def gist(self, effect: float) -> str:
        up, down = {"date": ("late", "early"), "zoned date": ("late", "early"), "time": ("late", "early")}.get(
            self.column.kind, ("high", "low")
        )
        if self.column.kind in ("flag", "category"):
            up, down = "often", "rarely"
        return f"{up if effect > 0 else down} {self.name}"


def number(value: float) -> str:
    """A number with as many digits as a reader needs."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _columns(findings: Findings, most: int) -> dict[int, list[Trait]]:
    features = _features(findings)
    here, elsewhere, effect = _means(findings)
    found = {}
    for place, cluster in enumerate(findings.sizes):
        traits, columns = list[Trait](), set[str]()
        for j in np.argsort(-np.abs(effect[place]), kind="stable"):
            feature, strength = features[j], float(effect[place, j])
            if len(traits) == most or abs(strength) < LEAST:
                break
            if feature.column.name not in columns:  # two levels of one column would say the same twice
                columns.add(feature.column.name)
                means = feature.told(float(here[place, j])), feature.told(float(elsewhere[place, j]))
                traits.append(Trait(feature.name, *means, strength, feature.gist(strength), feature.column.name))
        found[cluster] = traits
    return found


def _features(findings: Findings) -> list[_Feature]:
    columns = findings.items.recipe.columns
    if columns is None:
        names = [f"number {j}" for j in range(findings.items.features.shape[1])]
        return [_Feature(name, Column(name, "number")) for name in names]
    return [_Feature(name, column) for column in columns for name in column.features]


def _means(findings: Findings) -> tuple[Array, Array, Array]:
    """Means (k, D) of each cluster and of all others, in the order of `sizes`, and how many deviations are between."""
    X, n = findings.items.features, len(findings)
    place = np.argsort(list(findings.sizes))[np.searchsorted(sorted(findings.sizes), findings.cluster)]
    is_sparse = hasattr(X, "toarray")
    origin = np.zeros(X.shape[1]) if is_sparse else np.asarray(X[:ROWS], dtype=np.float64).mean(0)
    total, squares = np.zeros((len(findings.sizes), X.shape[1])), np.zeros(X.shape[1])
    for start in range(0, n, ROWS):
        part: Any = X[start : start + ROWS].astype(np.float64)
        part = part if is_sparse else part - origin  # so that squares do not drown what they differ in
        rows = np.arange(part.shape[0])
        own = sp.csr_array((np.ones(len(rows)), (place[start : start + ROWS], rows)), shape=(len(total), len(rows)))
        sums = own @ part
        total += sums.toarray() if is_sparse else sums
        squares += np.asarray((part.multiply(part) if is_sparse else part * part).sum(0)).ravel()
    size = np.array(list(findings.sizes.values()))[:, None]
    deviation = np.sqrt(np.maximum(squares / n - (total.sum(0) / n) ** 2, 0))
    here, elsewhere = total / size, (total.sum(0) - total) / (n - size)
    with np.errstate(divide="ignore", invalid="ignore"):
        effect = np.where(deviation > 1e-12, (here - elsewhere) / deviation, 0.0)
    return here + origin, elsewhere + origin, effect


# Words


def _words(findings: Findings, most: int) -> dict[int, list[Trait]]:
    """Words that are in more texts of a cluster than of the others, by the difference of the roots of both shares."""
    n = len(findings)
    rows = np.arange(n) if n <= TEXTS else np.sort(check_random_state(0).choice(n, TEXTS, replace=False))
    texts = [findings.items.faces[row][:LETTERS] for row in rows.tolist()]
    counter = CountVectorizer(binary=True, min_df=2 if len(texts) >= 10 else 1, max_features=WORDS)
    try:
        there = counter.fit_transform(texts)
    except ValueError:  # of scikit-learn, if no word is left
        return {k: [] for k in findings.sizes}
    names, found = counter.get_feature_names_out(), {}
    total = np.asarray(there.sum(0)).ravel()
    for cluster in findings.sizes:
        own = findings.cluster[rows] == cluster
        count = np.asarray(there[np.flatnonzero(own)].sum(0)).ravel()
        here, elsewhere = count / max(own.sum(), 1), (total - count) / max((~own).sum(), 1)
        effect = np.sqrt(here) - np.sqrt(elsewhere)
        best = np.argsort(-effect, kind="stable")[:most]
        found[cluster] = [
            Trait(names[j], f"{100 * here[j]:.0f} %", f"{100 * elsewhere[j]:.0f} %", float(effect[j]), names[j])
            for j in best.tolist()
            if effect[j] > 0
        ]
    return found
