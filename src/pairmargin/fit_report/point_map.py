"""The items in two dimensions: which of them, where, and what is told about each."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..plotting.flat_points import drawn_rows, flat_points
from .blocks import DOUBTFUL, PointMap
from .faces import face, picture_sheet, shortened
from .findings import Array, Findings

POINTS = 2000  # on the map; t-SNE of so many takes some seconds
LINES = 200  # most answers that are drawn
LETTERS = 120  # that are told about a point
CELLS = 4
NAMES = {"pca": "the two main directions", "tsne": "t-SNE", "umap": "UMAP"}


def chosen_method(method: str, n: int) -> str:
    """How to come to two dimensions: "auto" takes UMAP where it is installed, else t-SNE."""
    if method != "auto":
        return method
    if n < 10:
        return "pca"  # too few for neighbourhoods
    return "umap" if find_spec("umap") else "tsne"


def point_map(findings: Findings, gists: dict[int, str], columns: list[str], method: str, seed: int) -> PointMap:
    """A map of the codes, of a sample of the items if there are many."""
    rng = check_random_state(seed)
    broken = findings.pairs[~findings.kept][:LINES]
    rows = drawn_rows(len(findings), POINTS, broken, rng)
    method = chosen_method(method, len(rows))
    points, _ = flat_points(findings.codes, rows, method, rng)
    return PointMap(
        "Every dot is a " + findings.noun,
        _caption(findings, len(rows), method, len(broken)),
        points,
        findings.cluster[rows],
        findings.confidence[rows],
        [(cluster, gists.get(cluster, "")) for cluster in sorted(findings.sizes)],
        _told(findings, rows, columns),
        [(int(i), int(j)) for i, j in np.searchsorted(rows, broken.index)],
    )


def _caption(findings: Findings, n_shown: int, method: str, n_broken: int) -> str:
    n, noun = len(findings), findings.noun
    told = [f"{n_shown:,} of {n:,} {noun}s, drawn at random." if n_shown < n else ""]
    alike = "What the model finds alike lies close together"
    if method == "pca":
        told.append(f"{alike}: {NAMES[method]} of its codes.")
    else:
        told.append(f"{alike} ({NAMES.get(method, method)} of its codes; distances between far groups mean nothing).")
    if (findings.confidence < DOUBTFUL).any():
        told.append(f"Paler dots: less sure than {100 * DOUBTFUL:.0f} %.")
    if n_broken:
        told.append("Lines: answers that are not kept.")
    return " ".join(filter(None, told))


def _told(findings: Findings, rows: Array, columns: list[str]) -> dict[str, Any]:
    """What the page can tell about every point."""
    items = findings.items
    told: dict[str, Any] = {"name": [shortened(items.ids[row], LETTERS) for row in rows.tolist()]}
    if items.kind == "image":
        told["sheet"], told["across"] = picture_sheet(items, rows)
    else:
        faces = [face(items, row, columns[:CELLS], LETTERS) for row in rows.tolist()]
        cells = ["\n".join(f"{name}: {value}" for name, value in each.cells) for each in faces]
        told["text"] = [each.text or lines for each, lines in zip(faces, cells, strict=True)]
    if findings.truth is not None:
        told["label"] = [shortened(label or "", LETTERS) for label in findings.truth[rows].tolist()]
    return told
