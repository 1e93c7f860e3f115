"""What was measured, as rows of results/bench.csv and as tables of a page."""

from __future__ import annotations

import csv
import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = "pairmargin", "torch", "numpy", "scikit-learn"
SIGNS = {">=": "≥", "<=": "≤"}


@dataclass(frozen=True)
class Row:
    """One figure."""

    part: str  # the question that it answers
    what: str
    figure: float | None  # None: it could not be measured, for the reason in the note
    unit: str  # "ratio", "exponent", "s", "MB", "share" or "modules"
    asked: str = ""  # such as ">= 5" or "<= 1.3"
    size: str = ""  # such as "n=1000 pairs=50"
    note: str = ""
    cores: int = 0
    versions: str = ""
    date: str = ""

    @property
    def holds(self) -> bool:
        """Whether the figure is what was asked; True if nothing was."""
        if not self.asked or self.figure is None:
            return not self.asked
        bound = float(self.asked[3:])
        return self.figure >= bound if self.asked[0] == ">" else self.figure <= bound

    @property
    def sizes(self) -> dict[str, float]:
        """The numbers in ``size``."""
        return {name: float(value) for name, _, value in (each.partition("=") for each in self.size.split())}

    @property
    def shown(self) -> str:
        """The figure in words."""
        if self.figure is None:
            return self.note
        if self.unit in ("s", "MB"):
            digits = max(0, 2 - len(str(int(self.figure)))) if self.unit == "s" else 0
            return f"{self.figure:,.{digits}f} {self.unit}"
        if self.unit == "share":
            return f"{self.figure:.1%}"
        return f"{self.figure:.0f}" if self.unit == "modules" else f"{self.figure:.2f}"

    @property
    def wanted(self) -> str:
        """What was asked, in words, and whether it was missed."""
        sign, _, bound = self.asked.partition(" ")
        return f"{SIGNS[sign]} {bound}{'' if self.holds else ', **not reached**'}" if self.asked else ""


COLUMNS = [field.name for field in fields(Row)]


def signed(rows: Iterable[Row]) -> list[Row]:
    """The rows with what they were measured on, and when."""
    versions = "; ".join([f"python {platform.python_version()}", *(f"{name} {version(name)}" for name in PACKAGES)])
    today = datetime.now(UTC).date().isoformat()
    return [replace(row, cores=os.cpu_count() or 0, versions=versions, date=today) for row in rows]


def merged(old: Iterable[Row], new: Sequence[Row], order: Sequence[str]) -> list[Row]:
    """The new rows in the place of all old ones that answer the same questions."""
    answered = {row.part for row in new}
    together = [*(row for row in old if row.part not in answered), *new]
    return sorted((row for row in together if row.part in order), key=lambda row: order.index(row.part))


def read(path: Path) -> list[Row]:
    """The rows of a file; none if there is no file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [_row(each) for each in csv.DictReader(file)]


def _row(fields: dict[str, Any]) -> Row:
    figure = float(fields["figure"]) if fields["figure"] else None
    return Row(**fields | {"figure": figure, "cores": int(fields["cores"])})


def write(path: Path, rows: Iterable[Row]) -> None:
    """Put rows into a file, figures to five digits."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            figure = "" if row.figure is None else f"{row.figure:.5g}"
            writer.writerow(asdict(row) | {"figure": figure})


def table(rows: Iterable[Row]) -> str:
    """A table in Markdown, with what was asked."""
    lines = ["| | size | figure | asked |", "|---|---|---|---|"]
    for row in rows:
        note = f" ({row.note})" if row.note and row.figure is not None else ""
        lines.append(f"| {row.what}{note} | {row.size} | {row.shown} | {row.wanted} |")
    return "\n".join(lines)


def methods_table(rows: Sequence[Row]) -> str:
    """Accuracy, seconds and memory of methods, a line for each, the fastest first of those that are right enough."""
    lines = ["| | accuracy | seconds | memory |", "|---|---|---|---|"]
    names = list(dict.fromkeys(row.what for row in rows))
    found = {name: {row.unit: row for row in rows if row.what == name} for name in names}

    def rank(name: str) -> tuple[bool, float]:
        share, seconds = found[name].get("share"), found[name].get("s")
        if share is None or share.figure is None or seconds is None or seconds.figure is None:
            return True, float("inf")
        return share.figure < REACHED, seconds.figure

    for name in sorted(names, key=rank):
        cells = [found[name][unit].shown if unit in found[name] else "" for unit in ("share", "s", "MB")]
        label = f"**{name}**" if name == "pairmargin" else name
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(lines)


REACHED = 0.9  # accuracy that digits are timed for
