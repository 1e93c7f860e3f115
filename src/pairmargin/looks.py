"""How figures look, wherever they are drawn: colours, markers, names of the parts of the objective, axes of counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.floating[Any]]

INKS = {  # of the light page; on the page itself, a colour is the variable of that name in the style sheet
    "card": "#ffffff",
    "text": "#1b1f24",
    "soft": "#59626e",
    "rule": "#e2e4e7",
    "f0": "#0072b2",  # f for lines that are methods
    "f1": "#d55e00",
    "f2": "#009e73",
    "f3": "#cc79a7",
    "f4": "#56b4e9",
    "f5": "#e69f00",
    "f6": "#8a929c",
    "c0": "#4854d8",  # c for clusters
    "c1": "#d8b400",
    "c2": "#9c3c18",
    "c3": "#00c0fc",
    "c4": "#cc4860",
    "c5": "#6c84fc",
    "c6": "#8478a8",
    "c7": "#784890",
    "c8": "#9cb490",
    "c9": "#b49000",
}
ALARM = "#e3001b"  # what is wrong, in pictures with clusters: no cluster has it
MARKERS = ("o", "s", "^", "P", "X")  # ten clusters have the first, the next ten the second, and so on

TERMS = {  # the parts of the objective, from the bottom to the top of a stack: (name, number of its cluster ink)
    "norm": ("size of the head", 6),
    "free": ("free points near a border", 8),
    "must_link": ("broken “same” answers", 1),
    "cannot_link": ("broken “different” answers", 2),
    "neighbours": ("neighbours in two clusters", 3),
    "balance": ("clusters out of balance", 7),
}


def parts_of(history: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, int]]:
    """The parts of the objective that have a price in a history."""
    return {part: look for part, look in TERMS.items() if any(row.get(part, 0) for row in history)}


def line_look(k: int) -> dict[str, Any]:
    """The settings of matplotlib for the k-th line of a picture."""
    return {"color": INKS[f"f{k % 7}"], "linewidth": 2.2, "linestyle": ("-", (0, (4, 1.5)), (0, (1, 1)))[k // 7 % 3]}


def cluster_look(k: int) -> dict[str, str]:
    """The settings of matplotlib for the points of cluster k: a colour, and beyond ten clusters another marker."""
    return {"color": INKS[f"c{k % 10}"], "marker": MARKERS[k // 10 % len(MARKERS)]}


def count_axis(axes: Axes, counts: Floats) -> None:
    """A tick at every count; equal factors are equal distances where the counts span a wide range."""
    is_wide = counts[0] > 0 and counts[-1] >= 8 * counts[0]
    axes.set_xscale("log" if is_wide else "linear")
    axes.set_xticks(counts, spaced_labels(counts, np.log(counts) if is_wide else counts))
    axes.minorticks_off()


def spaced_labels(counts: Floats, places: Floats, least: float = 0.12) -> list[str]:
    """The counts in words, empty where the label would run into the one to its right."""
    labels: list[str] = []
    right = np.inf
    for count, place in zip(counts[::-1], places[::-1], strict=True):
        is_clear = right - place >= least * np.ptp(places)
        labels.append(f"{count:,.0f}" if is_clear else "")
        right = place if is_clear else right
    return labels[::-1]
