"""The benchmark's arithmetic: exponents, verdicts, rows that replace their own, tables and pages."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(scope="module")
def bench() -> Iterator[Any]:
    """benchmarks/bench.py and its modules, which are not installed."""
    pytest.importorskip("matplotlib")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(BENCHMARKS), str(BENCHMARKS / "peers"), *sys.path])
        names = ("rows", "measuring", "pictures", "digits")
        parts = {name: import_module(f"speed.{name}") for name in names}
        yield SimpleNamespace(main=import_module("bench"), **parts)


def a_million(bench: Any) -> list[Any]:
    """Rows as the part "large" would give them: time grows with n, memory with its root."""
    Row = bench.rows.Row
    rows = [Row("large", "fit from disk", 840.0, "s", "<= 900", "n=8000 pairs=100")]
    for what, name in (("rows", "n"), ("answers", "pairs")):
        for key, unit, power in (("seconds", "s", 1.0), ("megabytes", "MB", 0.5)):
            rows += [
                Row("large", f"{key} by {what}", 3.0 * n**power, unit, "", f"{name}={n}") for n in (1000, 2000, 4000)
            ]
            rows.append(Row("large", f"{key} by {what}, fitted exponent", power, "exponent", "<= 1.05"))
    return rows


def digits(bench: Any) -> list[Any]:
    Row = bench.rows.Row
    found = {"pairmargin": (0.97, 4.0, 500.0), "slow": (0.95, 40.0, 300.0), "wrong": (0.6, 0.1, 200.0)}
    return [
        *(
            Row("digits", name, figure, unit)
            for name, figures in found.items()
            for unit, figure in zip(("share", "s", "MB"), figures, strict=True)
        ),
        Row("digits", "absent", None, "share", note="not installed"),
        Row("digits", "over the fastest", 0.1, "ratio", "<= 2", note="slow: 95 %"),
    ]


@pytest.mark.parametrize("power", [0.0, 1.0, 1.5])
def test_the_exponent_of_a_power_is_found(bench: Any, power: float) -> None:
    sizes = [10, 40, 300, 1000]
    assert bench.measuring.exponent(sizes, [7.0 * n**power for n in sizes]) == pytest.approx(power, abs=1e-9)


@pytest.mark.parametrize(
    ("figure", "asked", "holds", "wanted"),
    [
        (1.2, "<= 1.3", True, "≤ 1.3"),
        (1.4, "<= 1.3", False, "≤ 1.3, **not reached**"),
        (0.8, ">= 0.8", True, "≥ 0.8"),
        (0.7, ">= 0.8", False, "≥ 0.8, **not reached**"),
        (9.0, "", True, ""),
        (None, "<= 1", False, "≤ 1, **not reached**"),
    ],
)
def test_a_row_knows_whether_it_is_what_was_asked(
    bench: Any, figure: float | None, asked: str, holds: bool, wanted: str
) -> None:
    row = bench.rows.Row("steps", "something", figure, "ratio", asked)
    assert (row.holds, row.wanted) == (holds, wanted)


@pytest.mark.parametrize(
    ("figure", "unit", "shown"),
    [
        (1.005, "ratio", "1.00"),
        (0.1234, "s", "0.1 s"),
        (12.3, "s", "12 s"),
        (1234.5, "MB", "1,234 MB"),
        (0.9712, "share", "97.1%"),
        (0.0, "modules", "0"),
        (None, "share", "not installed"),
    ],
)
def test_figures_are_told_with_as_many_digits_as_they_have(
    bench: Any, figure: float | None, unit: str, shown: str
) -> None:
    assert bench.rows.Row("digits", "it", figure, unit, note="not installed").shown == shown


def test_rows_of_a_part_replace_just_their_own(bench: Any) -> None:
    Row = bench.rows.Row
    old = [
        Row("growth", "a", 1.0, "s"),
        Row("steps", "b", 2.0, "s"),
        Row("steps", "c", 3.0, "s"),
        Row("gone", "d", 4, "s"),
    ]
    new = [Row("steps", "e", 5.0, "s")]
    found = bench.rows.merged(old, new, ["steps", "growth"])
    assert [row.what for row in found] == ["e", "a"]


def test_rows_come_back_from_their_file(bench: Any, tmp_path: Path) -> None:
    file = tmp_path / "bench.csv"
    assert bench.rows.read(file) == []
    rows = bench.rows.signed(digits(bench))
    bench.rows.write(file, rows)
    assert bench.rows.read(file) == rows
    assert rows[0].cores > 0
    assert "torch" in rows[0].versions


def test_the_sizes_of_a_row_are_numbers(bench: Any) -> None:
    assert bench.rows.Row("large", "it", 1.0, "s", size="n=1000 K=10").sizes == {"n": 1000, "K": 10}


def test_methods_that_get_there_come_first_the_fastest_before_the_others(bench: Any) -> None:
    lines = bench.rows.methods_table([row for row in digits(bench) if row.unit != "ratio"]).splitlines()
    assert lines[2:] == [
        "| **pairmargin** | 97.0% | 4.0 s | 500 MB |",
        "| slow | 95.0% | 40 s | 300 MB |",
        "| wrong | 60.0% | 0.1 s | 200 MB |",
        "| absent | not installed |  |  |",
    ]


def test_the_page_has_a_table_for_every_part_and_says_so_if_there_is_nothing(bench: Any) -> None:
    assert bench.main.page([], []) == bench.main.NOTHING
    page = bench.main.page(bench.rows.signed([*a_million(bench), *digits(bench)]), ["large", "digits", "asked"])
    assert [line for line in page.splitlines() if line.startswith("## ")] == [
        "## A million rows from disk",
        "## Digits: who gets nine of ten right, and how soon",
    ]
    assert page.count("![") == 3
    assert re.search(r"\| over the fastest \(slow: 95 %\) \| .* \| 0\.10 \| ≤ 2 \|", page)
    assert re.search(r"\| seconds by rows, fitted exponent \| .* \| 1\.00 \| ≤ 1\.05 \|", page)
    assert "| seconds by rows |" not in page


def test_pictures_are_drawn_of_what_there_is(bench: Any, tmp_path: Path) -> None:
    assert bench.pictures.draw([], tmp_path) == {}
    drawn = bench.pictures.draw([*a_million(bench), *digits(bench)], tmp_path)
    assert set(drawn) == set(bench.main.PICTURES)
    assert all(path.stat().st_size > 5000 for path in drawn.values())


def test_the_verdict_allows_twice_the_time_only_to_who_is_right_more_often(bench: Any) -> None:
    def verdict(share: float) -> Any:
        ours, other = {"share": share, "s": 6.0}, {"share": 0.93, "s": 4.0}
        return bench.digits._verdict({"pairmargin": [ours], "cobras": [other], "sklearn-kmeans": []})

    assert (verdict(0.95).figure, verdict(0.95).asked) == (1.5, "<= 2")
    assert (verdict(0.92).figure, verdict(0.92).asked) == (1.5, "<= 1")
    nobody = bench.digits._verdict({"pairmargin": [{"share": 0.95, "s": 6.0}], "cobras": [{"share": 0.5, "s": 1.0}]})
    assert nobody.figure is None


def test_random_pairs_are_distinct(bench: Any) -> None:
    pairs = bench.measuring.random_pairs(50, 200)
    assert len(pairs) == len(np.unique(np.sort(pairs.index, 1), axis=0)) == 200


def test_clouds_are_in_a_file_for_a_while(bench: Any, tmp_path: Path) -> None:
    with bench.measuring.clouds(300, 4, 3, tmp_path) as (path, kinds):
        points = np.load(path, mmap_mode="r")
        assert (points.shape, points.dtype) == ((300, 4), np.float32)
        assert set(kinds) == {0, 1, 2}
        np.testing.assert_array_equal(np.load(path.with_name("kinds.npy")), kinds)
    assert list(tmp_path.iterdir()) == []
