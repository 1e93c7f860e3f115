"""Three pictures of what was measured, drawn from the rows alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

from pairmargin.experiments.figures import look
from pairmargin.looks import INKS

from .rows import REACHED, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OURS, THEIRS, MISSED = INKS["f0"], INKS["f6"], INKS["f1"]
NAMED = 9.0  # points of the letters beside marks


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
    axes = canvas.add_subplot()
    axes.axhspan(100 * REACHED, 101, color=INKS["f2"], alpha=0.08, linewidth=0)
    for name, share in shares.items():
        is_ours = name.startswith(("pairmargin", "the paper"))
        colour, size = (OURS, 90 if name == "pairmargin" else 45) if is_ours else (THEIRS, 34)
        axes.scatter(seconds[name], share, s=size, color=colour, edgecolor="white", linewidth=0.8, zorder=3)
    low = min(shares.values())
    axes.set(
        xlabel="seconds for the whole fit, one thread",
        ylabel="accuracy, %",
        xscale="log",
        xlim=(min(seconds.values()) / 2, max(seconds.values()) * 9),
        ylim=(low - 3, 101),
        title="Handwritten digits, 500 answers",
    )
    axes.text(0.006, 100 * REACHED, "90 % reached", transform=axes.get_yaxis_transform(), va="bottom", color=INKS["f2"])
    _plain(axes, only="x")
    _name_points(axes, {name: (seconds[name], share) for name, share in shares.items()})
    return canvas


def _name_points(axes: Axes, points: dict[str, tuple[float, float]]) -> None:
    """Names to the right of their points, those of close points above one another, each on a line to its point."""
    axes.figure.draw_without_rendering()  # type: ignore[union-attr]
    to_screen, height = axes.transData, NAMED * axes.figure.dpi / 72 * 1.15
    taken: list[tuple[float, float, float]] = []  # left, right, middle
    for name, at in sorted(points.items(), key=lambda item: (item[0] != "pairmargin", -item[1][1])):
        x, y = to_screen.transform(at)
        x, width = x + 9, len(name) * NAMED * axes.figure.dpi / 72 * 0.47
        place = y
        for shift in (k * height / 2 * sign for k in range(60) for sign in (1, -1)):
            place = y + shift
            if all(x > right or x + width < left or abs(place - middle) > height for left, right, middle in taken):
                break
        taken.append((x, x + width, place))
        is_ours = name == "pairmargin"
        axes.annotate(
            name,
            at,
            xytext=tuple(to_screen.inverted().transform((x, place))),
            fontsize=NAMED + 1.5 if is_ours else NAMED - 1,
            fontweight="bold" if is_ours else "normal",
            color=OURS if is_ours else INKS["text"],
            va="center",
            arrowprops={"arrowstyle": "-", "color": INKS["soft"], "linewidth": 0.5, "shrinkA": 0, "shrinkB": 3}
            if abs(place - y) > height / 3
            else None,
        )


def ratios(rows: Sequence[Row]) -> Figure | None:
    """How far every figure is from what was asked of it."""
    asked = [row for row in rows if row.asked and row.figure and float(row.asked[3:]) > 0]
    if not asked:
        return None
    parts = [_share_of_asked(row) for row in asked]
    canvas = Figure(figsize=(8.8, 0.8 + 0.34 * len(asked)), layout="constrained")
    axes = canvas.add_subplot()
    places = np.arange(len(asked))[::-1]
    axes.barh(places, parts, height=0.62, color=[OURS if row.holds else MISSED for row in asked])
    axes.axvline(1, color=INKS["text"], linewidth=1)
    for place, part, row in zip(places, parts, asked, strict=True):
        axes.text(part + 0.015, place, f"{row.shown}  (asked {row.wanted.partition(',')[0]})", va="center", fontsize=8)
    axes.set_yticks(places, [_short(row.what) for row in asked], fontsize=8)
    axes.set(xlim=(0, max(1.15, *parts) + 0.45), xlabel="of what was asked: up to the line is as asked or better")
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    return canvas


def _share_of_asked(row: Row) -> float:
    """The figure over the largest that was allowed, or the smallest that was asked over the figure."""
    assert row.figure is not None
    bound = float(row.asked[3:])
    return row.figure / bound if row.asked[0] == "<" else bound / row.figure


def _short(what: str, most: int = 74) -> str:
    return what if len(what) <= most else f"{what[: most - 1].rstrip(' ,')}…"


def _plain(axes: Axes, only: str = "both") -> None:
    """Counts in words along logarithmic axes."""
    sides = {"x": axes.xaxis, "y": axes.yaxis}
    for side in sides if only == "both" else [only]:
        sides[side].set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        sides[side].set_minor_formatter(NullFormatter())
        sides[side].set_minor_locator(NullLocator())
