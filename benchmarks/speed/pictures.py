"""Three pictures of what was measured, drawn from the rows alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from pairmargin.experiments.figures import look
from pairmargin.looks import INKS

from .rows import REACHED, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OURS, THEIRS, MISSED = INKS["f0"], INKS["f6"], INKS["f1"]
LONGEST = 2.5  # bar, in units of what was asked
WIDEST = 56  # letters of a name on one line


def draw(rows: Sequence[Row], folder: Path) -> dict[str, Path]:
    """All pictures that the rows are enough for, by the question that they answer."""
    drawn = {}
    with look():
        for part, figure in (
            ("large", growth(rows)),
            ("digits", accuracy_and_time(rows)),
            ("asked", ratios(rows)),
        ):
            if figure is not None:
                folder.mkdir(parents=True, exist_ok=True)
                drawn[part] = folder / f"bench-{part}.png"
                figure.savefig(drawn[part], dpi=200, metadata={"Software": None})
    return drawn


def growth(rows: Sequence[Row]) -> Figure | None:
    """Seconds and memory of a fit from disk, against the rows and against the answers."""
    large = [row for row in rows if row.part == "large"]
    if not large:
        return None
    canvas = Figure(figsize=(8.8, 3.5), layout="constrained")
    for place, (key, title, unit) in enumerate(
        (("seconds", "Time", "seconds"), ("megabytes", "Memory above the libraries", "megabytes")), start=1
    ):
        axes = canvas.add_subplot(1, 2, place)
        for what, name, ink, marker in (("rows", "n", OURS, "o"), ("answers", "pairs", MISSED, "s")):
            points = sorted((row.sizes[name], row.figure) for row in large if row.what == f"{key} by {what}")
            slope = next(row for row in large if row.what == f"{key} by {what}, fitted exponent").figure
            if not points or slope is None:
                continue
            x, y = np.array(points, dtype=float).T
            label = f"by {what}, exponent {slope:.2f}"
            fitted = np.exp(np.polyval(np.polyfit(np.log(x), np.log(y), 1), np.log(x)))
            axes.plot(x, fitted, color=ink, linewidth=1.6, alpha=0.5)
            axes.plot(x, y, marker, color=ink, markersize=6, markeredgecolor="white", label=label)
        axes.set(title=title, xlabel="rows, or answers", ylabel=unit, xscale="log", yscale="log")
        _plain(axes)
        axes.legend(loc="best", handletextpad=0.3)
    return canvas


def accuracy_and_time(rows: Sequence[Row]) -> Figure | None:
    """Every method on digits: how often it is right, against how long it takes."""
    digits = [row for row in rows if row.part == "digits" and row.figure is not None]
    shares = {row.what: 100 * (row.figure or 0) for row in digits if row.unit == "share"}
    seconds = {row.what: row.figure or 0 for row in digits if row.unit == "s"}
    if not shares:
        return None
    canvas = Figure(figsize=(8.8, 5.2), layout="constrained")
    axes, key = canvas.subplots(1, 2, width_ratios=(1.7, 1))
    axes.axhspan(100 * REACHED, 101, color=INKS["f2"], alpha=0.08, linewidth=0)
    key.axis("off")
    ranked = sorted(shares, key=lambda name: -shares[name])
    for number, name in enumerate(ranked, start=1):
        colour = OURS if name.startswith(("pairmargin", "the paper")) else THEIRS
        at, is_default = (seconds[name], shares[name]), name == "pairmargin"
        axes.scatter(*at, s=100 if is_default else 36, color=colour, edgecolor="white", linewidth=0.8, zorder=3)
        words = {"color": colour if colour == OURS else INKS["text"], "fontweight": "bold" if is_default else "normal"}
        axes.annotate(
            f"{number} {name}" if is_default else str(number),
            at,
            xytext=(6, 2),
            textcoords="offset points",
            fontsize=10.5 if is_default else 7.5,
            **words,
        )
        line = {"transform": key.transAxes, "fontsize": 7.5, "va": "top", **words}
        height = 1 - (number - 1) / len(ranked)
        key.text(0.07, height, str(number), ha="right", **line)
        key.text(0.1, height, name, **line)
    axes.set(
        xlabel="seconds for the whole fit, one thread",
        ylabel="accuracy, %",
        xscale="log",
        xlim=(min(seconds.values()) / 2, max(seconds.values()) * 2),
        ylim=(min(shares.values()) - 3, 101),
        title="Handwritten digits, 500 answers",
    )
    axes.text(0.01, 100 * REACHED + 0.2, "90 % reached", transform=axes.get_yaxis_transform(), color=INKS["f2"])
    _plain(axes, only="x")
    return canvas


def ratios(rows: Sequence[Row]) -> Figure | None:
    """How far every figure is from what was asked of it."""
    asked = [row for row in rows if row.asked and row.figure and float(row.asked[3:]) > 0]
    if not asked:
        return None
    parts = [min(_share_of_asked(row), LONGEST) for row in asked]
    canvas = Figure(figsize=(8.8, 0.8 + 0.36 * len(asked)), layout="constrained")
    axes = canvas.add_subplot()
    places = np.arange(len(asked))[::-1]
    axes.barh(places, parts, height=0.6, color=[OURS if row.holds else MISSED for row in asked])
    axes.axvline(1, color=INKS["text"], linewidth=1)
    axes.text(1, 1.005, "asked", transform=axes.get_xaxis_transform(), ha="center", va="bottom", fontsize=8)
    axes.set_yticks(places, [fill(row.what, WIDEST) for row in asked], fontsize=7.5)
    axes.set(xlim=(0, max(1.2, *parts)), ylim=(-0.6, len(asked) - 0.4))
    axes.set_xlabel("share of what was asked: a bar that ends before the line is better than asked")
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    right = axes.twinx()
    right.set(ylim=axes.get_ylim())
    right.set_yticks(places, [f"{row.shown}   ({row.wanted.partition(',')[0]})" for row in asked], fontsize=8)
    right.tick_params(axis="y", length=0)
    right.grid(visible=False)
    for label, row in zip(right.get_yticklabels(), asked, strict=True):
        label.set_color(INKS["text"] if row.holds else MISSED)
    return canvas


def _share_of_asked(row: Row) -> float:
    """The figure over the largest that was allowed, or the smallest that was asked over the figure."""
    assert row.figure is not None
    bound = float(row.asked[3:])
    return row.figure / bound if row.asked[0] == "<" else bound / row.figure


def _count(value: float) -> str:
    return f"{value / 1e6:g} M" if value >= 1e6 else f"{value / 1e3:g} k" if value >= 1e4 else f"{value:,.6g}"


def _plain(axes: Axes, only: str = "both") -> None:
    """Counts in words along logarithmic axes."""
    sides = {"x": axes.xaxis, "y": axes.yaxis}
    for side in sides if only == "both" else [only]:
        sides[side].set_major_locator(LogLocator(subs=(1, 2, 5) if only == "both" else (1,)))
        sides[side].set_major_formatter(FuncFormatter(lambda value, _: _count(value)))
        sides[side].set_minor_formatter(NullFormatter())
        sides[side].set_minor_locator(NullLocator())
