"""The page: whole in one file, safe with any text, true to its numbers, legible to all."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from html_page import Page
from PIL import Image

import pairmargin
from pairmargin import Pairs, demo
from pairmargin.exceptions import OutputError
from pairmargin.report import (
    Answers,
    Chart,
    Report,
    Scatter,
    Section,
    Series,
    Sheet,
    Sheets,
    Table,
    Tile,
    _ticks,
    make_folder,
    render,
    write,
)

STYLE = (Path(pairmargin.__file__).parent / "templates" / "style.css").read_text(encoding="utf-8")
QUICK = {"max_iter": 3, "pretrain_epochs": 1, "hidden_layer_sizes": 20}


@pytest.fixture(scope="module")
def digits() -> demo.Demo:
    return demo.run(demo.draw(30, 0, n_samples=150), **QUICK)


@pytest.fixture(scope="module")
def html(digits: demo.Demo) -> str:
    return render(demo.build_report(digits))


def every_block(text: str) -> Report:
    """A report that shows one of everything, with the same text wherever text can stand."""
    tile = Tile(np.eye(3), text, wrong=True)
    line = Series(text, np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    blocks = [
        Table([text, text], [[text, text]], frozenset({(0, 1)})),
        Answers([(tile, tile, True), (tile, tile, False)]),
        Sheets([Sheet(text, text, 3, [tile], [tile])]),
        Scatter(text, text, np.array([[0.0, 0.0], [1.0, 2.0]]), [0, 1], {1: text}, {0: text}),
        Chart(text, text, text, text, [replace(line, band=True, colour=1), line], 1, 1),
    ]
    return Report(text, text, [(text, text)], [Section(text, [text], blocks)], {text: text})


# Whole and safe


def test_page_asks_for_nothing_from_outside(html: str) -> None:
    page = Page(html)
    for _, attributes in page.tags:
        for name in ("src", "href", "srcset", "data", "action", "poster", "xlink:href"):
            assert (attributes.get(name) or "#").startswith(("data:", "#"))
    bare = re.sub(r"data:image/png;base64,[A-Za-z0-9+/=]+", "", html)
    for address in ("http", "//", "url(", "@import"):
        assert address not in bare
    assert not page.all("script")
    assert len(html) < 3_000_000


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "' onload='alert(1)",
        "</style><script>1</script>",
        "{{ 7 * 7 }}{% for %}",
        "]]>&amp;<!--",
    ],
)
def test_hostile_text_stays_text(hostile: str) -> None:
    harmless, page = Page(render(every_block("plain"))), Page(render(every_block(hostile)))
    assert [(tag, set(attributes)) for tag, attributes in page.tags] == [
        (tag, set(attributes)) for tag, attributes in harmless.tags
    ]
    assert page.text == harmless.text.replace("plain", hostile)


def test_page_is_accessible(html: str) -> None:
    Page(html).check_accessible()


# What the demo shows


def test_all_parts_are_there(html: str, digits: demo.Demo) -> None:
    page = Page(html)
    for title in (
        "What an answer is",
        "How well it went",
        "What is in each cluster",
        "Before and after",
        "How it learned",
        "How this page was made",
    ):
        assert title in page.text
    for row in digits.rows():
        assert all(cell in page.text for cell in row)
    assert len(page.all("table")) == 1
    assert len(page.all("article")) == 10
    assert len(page.all("figure")) == 5  # two maps, the ROC curves, two objectives
    assert page.text.count("= same") == page.text.count("≠ different") == 6
    assert f"pairmargin {pairmargin.__version__}" in page.text
    assert "pairmargin demo --seed 0 --pairs 30" in page.text


def test_wrong_places_are_counted_alike_everywhere(digits: demo.Demo) -> None:
    _, _, _, maps, _ = demo.build_report(digits).sections
    for outcome, shown in zip((digits.outcomes[0], digits.outcomes[2]), maps.blocks, strict=True):
        assert isinstance(shown, Scatter)
        assert len(shown.marks) == round((1 - outcome.accuracy) * len(digits.task.y))


def test_sheets_go_from_typical_to_the_border(digits: demo.Demo) -> None:
    ours = digits.outcomes[2]
    for cluster in range(10):
        sheet = demo._sheet(digits.task, ours, cluster)
        rows = [int(tile.caption.split()[1].strip(",")) for tile in (*sheet.typical, *sheet.border)]
        assert len(rows) == len(set(rows)) == min((ours.labels == cluster).sum(), demo.TYPICAL + demo.BORDER)
        assert (np.diff(ours.margins[rows]) <= 0).all()
        assert [tile.wrong for tile in sheet.typical] == [digits.task.y[row] != sheet.colour for row in rows[:40]]


def test_empty_cluster_is_shown_as_empty(digits: demo.Demo) -> None:
    nobody = replace(digits.outcomes[2], labels=np.zeros(150, dtype=int))
    sheets = [demo._sheet(digits.task, nobody, cluster) for cluster in range(10)]
    assert [sheet.facts == "empty" for sheet in sheets] == [False] + [True] * 9
    assert "(most are" in sheets[0].facts or sheets[0].colour == np.bincount(digits.task.y).argmax()


def test_methods_never_see_the_digits_and_no_pair_is_asked_twice(digits: demo.Demo) -> None:
    learned, scored = ({tuple(pair) for pair in pairs.index} for pairs in (digits.task.pairs, digits.task.held_out))
    assert not learned & scored
    assert len(learned) == 30
    assert len(scored) == demo.HELD_OUT


def test_same_seed_same_demo(digits: demo.Demo) -> None:
    again = demo.run(demo.draw(30, 0, n_samples=150), **QUICK)
    assert [row[:-1] for row in again.rows()] == [row[:-1] for row in digits.rows()]  # all but the seconds
    np.testing.assert_array_equal(again.maps, digits.maps)


def test_one_answer_is_enough() -> None:
    page = Page(render(demo.build_report(demo.run(demo.draw(1, n_samples=150), **QUICK))))
    assert "sorted from 1 answer" in page.text


# Drawing


def test_picture_is_black_ink_of_the_given_strength() -> None:
    ink = np.array([[0.0, 0.25, 1.0], [2.0, -1.0, 0.5]])
    png = BytesIO(base64.b64decode(Tile(ink, "").uri.split(",")[1]))
    picture = np.asarray(Image.open(png).convert("RGBA")) / 255
    assert picture.shape == (2, 3, 4)
    assert (picture[:, :, :3] == 0).all()
    np.testing.assert_allclose(picture[:, :, 3], ink.clip(0, 1), atol=1 / 255)


@pytest.mark.parametrize(
    ("top", "wanted"),
    [
        (1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0.9, [0, 0.2, 0.4, 0.6, 0.8]),
        (476, [0, 100, 200, 300, 400]),
        (3, [0, 1, 2, 3]),
    ],
)
def test_ticks_are_round_numbers(top: float, wanted: list[float]) -> None:
    np.testing.assert_allclose(_ticks(top), wanted)


def test_bands_stand_on_one_another_and_lines_at_their_height() -> None:
    x = np.array([0.0, 10.0])
    bands = [Series(name, x, np.array(y), 0, band=True) for name, y in (("a", [1.0, 2.0]), ("b", [3.0, 2.0]))]
    chart = Chart("", "", "", "", [Series("sum", x, np.array([4.0, 4.0])), *bands], 10, 4)
    drawn = {series.name: path for series, path in chart.paths()}
    assert list(drawn) == ["a", "b", "sum"]  # lines are drawn last, over the bands
    left, top, right, bottom = chart.frame
    assert drawn["sum"] == f"M{left:.1f},{top:.1f} {right:.1f},{top:.1f}"
    quarter, half = bottom - (bottom - top) / 4, bottom - (bottom - top) / 2
    assert drawn["b"] == f"M{left:.1f},{top:.1f} {right:.1f},{top:.1f} {right:.1f},{half:.1f} {left:.1f},{quarter:.1f}Z"


def test_map_keeps_its_shape_inside_its_frame_and_marks_come_last() -> None:
    points = np.random.default_rng(0).normal(size=(50, 2)) * (5, 1)
    shown = Scatter("", "", points, [12] * 50, {3: "odd"}, {12: "name", 4: "nobody"})
    placed = shown.placed()
    assert placed.min() >= 0
    assert placed.max() <= shown.side
    np.testing.assert_allclose(
        np.ptp(placed, axis=0)[1] / np.ptp(placed, axis=0)[0], np.ptp(points[:, 1]) / np.ptp(points[:, 0])
    )
    *others, last = shown.dots()
    assert last == (*placed[3].tolist(), 2, "odd")
    assert not any(mark for *_, mark in others)
    assert [name for *_, name in shown.middles()] == ["name"]


# Colours

VISION = {  # Machado, Oliveira and Fernandes (2009), full severity, on linear RGB
    "normal": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def linear_rgb(colour: str) -> np.ndarray:
    """A colour of a style sheet, as light."""
    c = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def colours(scheme: str) -> dict[str, np.ndarray]:
    """The colours of the style sheet as linear RGB."""
    light, dark = STYLE.split("prefers-color-scheme: dark", 1)
    found = re.findall(r"--(\w+): (#[0-9a-f]{6})", light if scheme == "light" else dark)
    return {name: linear_rgb(value) for name, value in found}


def oklab(linear: np.ndarray) -> np.ndarray:
    """Björn Ottosson's OKLab, in which distance is difference as seen."""
    cones = [
        [0.41222147, 0.53633254, 0.05144599],
        [0.2119035, 0.68069955, 0.10739696],
        [0.08830246, 0.28171884, 0.6299787],
    ]
    lab = [
        [0.21045426, 0.79361779, -0.00407205],
        [1.9779985, -2.42859221, 0.45059371],
        [0.02590404, 0.78277177, -0.80867577],
    ]
    return np.array(lab) @ np.cbrt(np.array(cones) @ linear.clip(0, 1))


def contrast(a: np.ndarray, b: np.ndarray) -> float:
    """The contrast ratio of WCAG 2."""
    dark, light = sorted(float(colour @ [0.2126, 0.7152, 0.0722]) for colour in (a, b))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_cluster_colours_stay_apart(scheme: str, vision: str) -> None:
    seen = np.array([oklab(np.array(VISION[vision]) @ colours(scheme)[f"c{k}"]) for k in range(10)])
    apart = np.linalg.norm(seen[:, None] - seen[None], axis=2)[np.triu_indices(10, 1)]
    assert apart.min() > 0.09  # matplotlib's tab10 has 0.007 for a protan reader


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_legible(scheme: str) -> None:
    found = colours(scheme)
    for ground in ("page", "card"):
        assert all(contrast(found[name], found[ground]) >= 4.5 for name in ("text", "soft", "same", "different"))
        assert all(contrast(found[f"c{k}"], found[ground]) >= (1.9 if scheme == "light" else 3) for k in range(10))


def test_answers_in_a_notebook_are_legible_on_white_and_on_black() -> None:
    torn = Pairs([(0, 1), (1, 2), (2, 0)], [True, True, False])
    inks = set(re.findall(r"color:(#[0-9a-f]{6})", torn._repr_html_()))
    assert len(inks) == 3
    assert all(contrast(linear_rgb(ink), np.full(3, page)) >= 4.5 for ink in inks for page in (0, 1))


# Files


def test_writing_leaves_other_files_alone(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("old")
    (tmp_path / "mine.txt").write_text("mine")
    page = write(every_block("new"), tmp_path)
    assert page == tmp_path / "index.html"
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 2


def test_folder_in_place_of_the_page_is_refused(tmp_path: Path) -> None:
    (tmp_path / "index.html").mkdir()
    with pytest.raises(OutputError, match=r"index\.html cannot be written: there is a folder of that name; choose"):
        make_folder(tmp_path)


def test_folder_without_permission_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pairmargin.report.os.access", lambda *_: False)
    with pytest.raises(OutputError, match="no permission to write there; choose another place"):
        write(every_block("new"), tmp_path)


def test_disk_that_fails_while_writing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    page = write(every_block("old"), tmp_path)
    before = page.read_bytes()
    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OutputError, match="no space left on device"):
        write(every_block("new"), tmp_path)
    assert page.read_bytes() == before  # the old page stays whole
    assert list(tmp_path.iterdir()) == [page]
