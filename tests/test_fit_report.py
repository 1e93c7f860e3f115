"""The report of a fit: safe with any data, whole in one file, true to what was found, and of a bearable size."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from html_page import Page
from PIL import Image

from pairmargin import InvalidDataError, Items, MaxMarginClustering, Pairs, read_items, write_report
from pairmargin.fit_report import build_report
from pairmargin.fit_report.blocks import PointMap, Profiles, Size, Sizes
from pairmargin.fit_report.faces import SIDE, face, shortened
from pairmargin.fit_report.findings import Findings
from pairmargin.fit_report.sections import answers_section, percent, profiles_section, questions_section
from pairmargin.fit_report.traits import number, traits_of
from pairmargin.plotting.flat_points import flat_points

N = 40
QUICK: dict[str, Any] = {
    "max_iter": 3,
    "pretrain_epochs": 1,
    "hidden_layer_sizes": 8,
    "n_init": 1,
    "random_state": 0,
}
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onload='alert(1)",
    "</style><script>1</script>",
    "</script><script>1</script><!--",
    "{{ 7 * 7 }}{% for %}",
]
TAGS = re.findall(
    r"\w+",
    """html head meta title link style body header main footer section nav article details summary h1 h2 h3 p ul li dl
    dt dd div span a bdi small strong button noscript figure figcaption table thead tbody tr th td svg g path rect
    circle text img script""",
)


class Labels(NamedTuple):
    cluster: np.ndarray
    confidence: np.ndarray


def labels(cluster: Any, confidence: Any = 0.9) -> Labels:
    cluster = np.asarray(cluster)
    return Labels(cluster, np.broadcast_to(np.asarray(confidence, dtype=float), cluster.shape))


# Items of every kind, in two groups


def table(folder: Path, word: str = "plain") -> Items:
    names = [f"{word} id", f"{word} size", f"{word} kind", f"{word} day", f"{word} flag", f"{word} truth"]
    lines = [",".join(map(_quoted, names))]
    for k in range(N):
        group = k % 2
        cells = [
            f"{word} {k}",
            10 * group + k / 10,
            f"{word} {'ab'[group]}",
            f"20{10 + 10 * group}-03-{k % 28 + 1:02d}",
        ]
        lines.append(",".join(_quoted(str(cell)) for cell in [*cells, str(k % 4 > 1).lower(), f"{word} {group}"]))
    path = folder / "table.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return read_items(path, id=names[0], truth=names[-1])


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


def vectors(folder: Path, word: str = "plain") -> Items:
    rng = np.random.default_rng(0)
    path = folder / "vectors.npz"
    X = rng.normal(size=(N, 4)) + 5 * (np.arange(N) % 2)[:, None]
    names = np.array([f"{word} {k}" for k in range(N)])
    np.savez(path, X=X, names=names, truth=np.array([f"{word} {k % 2}" for k in range(N)]))
    return read_items(path, array="X", id="names", truth="truth")


def images(folder: Path, word: str = "plain") -> Items:
    rng = np.random.default_rng(0)
    for k in range(N):
        place = folder / "images" / f"{word.replace('/', '')} {k % 2}"
        place.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 60, size=(10, 10)) + 190 * (k % 2)
        Image.fromarray(pixels.astype(np.uint8)).save(place / f"{word.replace('/', '')} {k:02d}.png")
    return read_items(folder / "images", truth="folder")


def texts(folder: Path, word: str = "plain") -> Items:
    path = folder / "texts.csv"
    said = ["the orchestra played a waltz", "the striker scored a goal"]
    rows = [
        f"{_quoted(f'{word} {k}')},{_quoted(f'{said[k % 2]} {word} {k}')},{_quoted(f'{word} {k % 2}')}"
        for k in range(N)
    ]
    path.write_text("\n".join(["id,text,truth", *rows]) + "\n", encoding="utf-8")
    return read_items(path, id="id", text="text", truth="truth")


KINDS = {"table": table, "vector": vectors, "image": images, "text": texts}
GROUPS = labels(np.arange(N) % 2, np.linspace(0.3, 1, N))
PAIRS = Pairs([(0, 2), (1, 3), (0, 1), (2, 3), (4, 5)], [True, True, False, False, True])  # the last is not kept


def fitted(items: Items, n_clusters: int = 2, pairs: Pairs | None = None) -> MaxMarginClustering:
    return MaxMarginClustering(n_clusters, **QUICK).fit(items.features, pairs=pairs)


@pytest.fixture(scope="module", params=KINDS)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Items, str]:
    items = KINDS[request.param](tmp_path_factory.mktemp(request.param))
    return items, build_report(items, fitted(items, pairs=PAIRS), PAIRS, labels=GROUPS, source="my data")


@pytest.fixture
def rows(tmp_path: Path) -> Items:
    return table(tmp_path)


def section(html: str, title: str) -> str:
    """The part of a page under a heading."""
    (found,) = re.findall(rf'<h2 id="s\d+">{title}</h2>(.*?)</section>', html, re.DOTALL)
    return found


# Whole and safe


def check_safe(html: str) -> None:
    page = Page(html)
    for tag, attributes in page.tags:
        assert tag in TAGS
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        for name in ("src", "href", "srcset", "data", "action", "poster", "xlink:href"):
            assert (attributes.get(name) or "#").startswith(("data:image/", "data:,", "#"))
    assert [attributes.get("type") for attributes in page.all("script")] == ["application/json", None]


def test_page_asks_for_nothing_from_outside(built: tuple[Items, str]) -> None:
    _, html = built
    check_safe(html)
    bare = re.sub(r"data:image/\w+;base64,[A-Za-z0-9+/=]+|sha256-[A-Za-z0-9+/=]+", "", html)
    for way_out in ("http:", "https:", "//", "url(", "@import", "fetch(", "XMLHttp", "WebSocket", "import("):
        assert way_out not in bare


def test_policy_allows_this_style_and_this_script_and_nothing_else(built: tuple[Items, str]) -> None:
    _, html = built
    (policy,) = [meta["content"] for meta in Page(html).all("meta") if "http-equiv" in meta]
    assert policy is not None
    assert html.index("Content-Security-Policy") < html.index("<style>")
    (style,), (script,) = (re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL) for tag in ("style", "script"))
    allowed = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)]
    assert policy == (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src 'sha256-{allowed[0]}'; script-src 'sha256-{allowed[1]}'"
    )


@pytest.mark.parametrize("word", HOSTILE)
@pytest.mark.parametrize("kind", KINDS)
def test_hostile_data_stays_text(kind: str, word: str, tmp_path: Path) -> None:
    items = KINDS[kind](tmp_path, word)
    items = replace(items, notes=[word])
    html = build_report(items, fitted(items), PAIRS, labels=GROUPS, title=word, source=word, map_method="pca")
    check_safe(html)
    text = Page(html).text
    for shown in (word, f"{word.replace('/', '') if kind == 'image' else word} 0"):
        assert shown in text


@pytest.mark.parametrize("word", HOSTILE)
def test_hostile_names_change_nothing_else_on_the_page(word: str, tmp_path: Path) -> None:
    pages = []
    for name in ("plain", word):
        items = table(tmp_path, name)
        pages.append(Page(build_report(items, fitted(items), PAIRS, labels=GROUPS, map_method="pca")))
    harmless, hostile = ([(tag, set(attributes)) for tag, attributes in page.tags] for page in pages)
    assert hostile == harmless


def test_map_tells_what_the_items_are_called(built: tuple[Items, str]) -> None:
    items, html = built
    (told,) = re.findall(r'id="map-data">(.*?)</script>', html, re.DOTALL)
    data = json.loads(told)
    assert data["name"] == items.ids
    assert data["label"] == list(items.truth)
    assert data["cluster"] == GROUPS.cluster.tolist()
    assert len(data["x"]) == len(data["y"]) == N
    assert ("sheet" in data) == (items.kind == "image")
    assert ("text" in data) == (items.kind != "image")


def test_names_that_are_no_text_do_not_stop_the_page(rows: Items, tmp_path: Path) -> None:
    strange = replace(rows, ids=[f"\udcff\x00{k}" for k in range(N)])
    page = write_report(tmp_path / "page.html", strange, fitted(strange), PAIRS, map_method="pca")
    assert "?" in Page(page.read_text(encoding="utf-8")).text


def test_page_is_accessible(built: tuple[Items, str]) -> None:
    page = Page(built[1])
    page.check_accessible()
    assert all(cell.get("scope") for cell in page.all("th"))
    assert all(button["type"] == "button" for button in page.all("button"))
    assert {link["href"] for link in page.all("a")} == {f"#s{k}" for k in range(1, 8)}


# What it says


def test_all_parts_are_there(built: tuple[Items, str]) -> None:
    items, html = built
    page = Page(html)
    for said in (
        "40 ",
        "in 2 clusters",
        "from my data",
        "of 5 answers kept",
        "3 “same” and 2 “different”",
        *items.notes,
    ):
        assert said in page.text
    for title in (
        "The clusters",
        "The map",
        "What is typical of each",
        "Against the labels",
        "The answers",
        "How it learned",
    ):
        assert section(html, title)
    assert len(page.all("article")) == 2


def test_answers_that_are_not_kept_are_shown_with_both_items(built: tuple[Items, str]) -> None:
    items, html = built
    shown = section(html, "The answers")
    assert "agree with 2 of 3 “same” and with 2 of 2 “different”" in shown
    assert shown.count("not kept: in 0 and 1") == 1
    assert "= same" in Page(shown).text.replace("\n", "")
    for row in (4, 5):
        assert items.ids[row] in shown
    assert '<path class="broken" d="M' in html


@pytest.mark.parametrize(("took", "told"), [(5.2, "took 8 seconds"), (600, "took 10 minutes")])
def test_the_head_says_how_long_it_took_and_what_was_learned_from(rows: Items, took: float, told: str) -> None:
    seconds = {"reading": 3.1, "fitting": took}
    html = build_report(rows, fitted(rows), PAIRS, seconds=seconds, n_learned=30, map_method="pca")
    assert told in html
    assert "learned from 30 of them" in html
    assert f"reading 3.1 s, fitting {took:.1f} s" in html


def test_without_labels_nothing_is_scored(rows: Items) -> None:
    html = build_report(replace(rows, truth=None), fitted(rows), PAIRS, map_method="pca")
    assert "Against the labels" not in html
    assert "in the right cluster" not in html
    assert "median confidence" in html


def test_labels_of_some_items_score_those(rows: Items) -> None:
    some = np.array([None if k < 10 else f"g{k % 2}" for k in range(N)], dtype=object)
    html = build_report(replace(rows, truth=some), fitted(rows), PAIRS, labels=GROUPS, map_method="pca")
    assert "100.0\N{NO-BREAK SPACE}%" in Page(html).text
    assert sorted(re.findall(r'<td class="shade9">(\d+)</td>', section(html, "Against the labels"))) == ["15", "15"]


def test_a_page_without_answers_says_so(rows: Items) -> None:
    html = build_report(rows, fitted(rows), map_method="pca")
    assert "There were none" in section(html, "The answers")
    assert "sorted without any answer" in html


@pytest.mark.parametrize("kind", KINDS)
def test_a_single_cluster_is_shown_too(kind: str, tmp_path: Path) -> None:
    items = KINDS[kind](tmp_path)
    page = Page(build_report(items, fitted(items, 1), Pairs([(0, 1)], [True]), map_method="pca"))
    assert "40" in page.text
    assert "in 1 cluster" in page.text
    assert "nothing left" in page.text


def test_labels_are_the_models_own_unless_given(rows: Items) -> None:
    model = fitted(rows)
    own = Findings.gather(rows, model, None, None)
    np.testing.assert_array_equal(own.cluster, model.labels_)
    np.testing.assert_allclose(own.confidence, model.cluster_proba(rows.features)[np.arange(N), own.cluster])
    model.fit(rows.features[:20])
    np.testing.assert_array_equal(Findings.gather(rows, model, None, None).cluster, model.predict(rows.features))
    with pytest.raises(InvalidDataError, match="there are 40 items but labels of 3"):
        Findings.gather(rows, model, None, labels([0, 1, 0]))


def test_typical_members_are_nearest_to_the_centre_and_others_least_sure(rows: Items) -> None:
    found = replace(Findings.gather(rows, fitted(rows), None, GROUPS), codes=np.c_[np.arange(N), np.zeros(N)])
    assert found.typical(0, 2).tolist() in ([18, 20], [20, 18])  # the mean of 0, 2, … 38 is 19
    assert found.doubtful(1, 2).tolist() == [1, 3]
    (block,) = profiles_section(found, traits_of(found, 3)).blocks
    assert isinstance(block, Profiles)
    for profile in block.profiles:
        names = [shown.name for shown, _ in (*profile.typical, *profile.doubtful)]
        assert len(names) == len(set(names)) == 9


def test_the_most_suspicious_answers_come_first(rows: Items) -> None:
    rng = np.random.default_rng(0)
    index = rng.permutation(np.array([(i, j) for i in range(N) for j in range(i)]))[:30]
    pairs = Pairs(index, [(i - j) % 2 == 0 for i, j in index])
    model = fitted(rows, pairs=pairs)
    found = Findings.gather(rows, model, pairs, GROUPS)
    assert found.kept.all()
    (block,) = answers_section(found, []).blocks
    shown = [(card.left.name, card.right.name) for card in block.cards]
    expected = [pairs.index[k].tolist() for k in model.suspicious_pairs_[:3]]
    assert shown == [(rows.ids[i], rows.ids[j]) for i, j in expected]
    model.robust = False
    assert not answers_section(Findings.gather(rows, model, pairs, GROUPS), []).blocks


def test_questions_are_about_items_that_the_model_is_unsure_of(rows: Items, monkeypatch: pytest.MonkeyPatch) -> None:
    def chances(_: Findings, asked: np.ndarray) -> np.ndarray:
        return np.where(asked[:, None] == 0, [0.5, 0.5], np.eye(2)[asked % 2])

    monkeypatch.setattr(Findings, "chances", chances)
    found = Findings.gather(rows, fitted(rows, pairs=PAIRS), PAIRS, GROUPS)
    (block,) = questions_section(found, []).blocks
    assert [card.left.name for card in block.cards] == [rows.ids[0]]
    assert block.cards[0].same is None


# What sets clusters apart


def test_columns_are_told_in_the_units_of_the_file(rows: Items) -> None:
    found = Findings.gather(rows, fitted(rows), None, GROUPS)
    high = {trait.column: trait for trait in traits_of(found, 10)[1]}
    assert high["plain size"].here == "12"
    assert high["plain size"].elsewhere == "1.9"
    assert high["plain size"].gist == "high plain size"
    assert high["plain kind"].name in ("plain kind = plain a", "plain kind = plain b")
    assert {high["plain kind"].here, high["plain kind"].elsewhere} == {"0 %", "100 %"}
    assert high["plain day"].here.startswith("2020-03-")
    assert high["plain day"].elsewhere.startswith("2010-03-")
    assert high["plain day"].gist == "late plain day"
    assert "plain flag" not in high  # half of both
    assert all(
        abs(low.effect + high[low.column].effect) < 1e-6 or low.name != high[low.column].name
        for low in traits_of(found, 10)[0]
    )


def test_effects_are_differences_of_means_in_standard_deviations(tmp_path: Path) -> None:
    items = vectors(tmp_path)
    cluster = np.random.default_rng(0).integers(3, size=N)
    traits = traits_of(Findings.gather(items, fitted(items), None, labels(cluster)), 4)
    X = items.features
    for k in range(3):
        expected = (X[cluster == k].mean(0) - X[cluster != k].mean(0)) / X.std(0)
        for trait in traits[k]:
            assert trait.effect == pytest.approx(expected[int(trait.name.split()[1])])
        assert [abs(trait.effect) for trait in traits[k]] == sorted((abs(t.effect) for t in traits[k]), reverse=True)


def test_sparse_vectors_have_the_traits_of_dense_ones(tmp_path: Path) -> None:
    items = vectors(tmp_path)
    found = Findings.gather(items, fitted(items), None, GROUPS)
    sparse = replace(found, items=replace(items, features=sp.csr_array(items.features)))
    for one, other in zip(traits_of(found, 4)[0], traits_of(sparse, 4)[0], strict=True):
        assert one.effect == pytest.approx(other.effect)


def test_words_are_those_of_one_cluster(tmp_path: Path) -> None:
    items = texts(tmp_path)
    traits = traits_of(Findings.gather(items, fitted(items), None, GROUPS), 3)
    assert {trait.name for trait in traits[0]} == {"orchestra", "played", "waltz"}
    assert {trait.name for trait in traits[1]} == {"striker", "scored", "goal"}
    assert {(trait.here, trait.elsewhere) for trait in traits[0]} == {("100 %", "0 %")}


@pytest.mark.parametrize(("value", "told"), [(0.12345, "0.123"), (12.3456, "12.3"), (123456.7, "123,457"), (-5, "-5")])
def test_numbers_are_short(value: float, told: str) -> None:
    assert number(value) == told


@pytest.mark.parametrize(
    ("share", "chance", "counted"),
    [
        (0, "< 1 %", "0 %"),
        (0.004, "< 1 %", "< 1 %"),
        (0.5, "50 %", "50 %"),
        (0.996, "> 99 %", "> 99 %"),
        (1, "> 99 %", "100 %"),
    ],
)
def test_no_chance_is_said_to_be_certain(share: float, chance: str, counted: str) -> None:
    assert percent(share).replace("\N{NO-BREAK SPACE}", " ") == chance
    assert percent(share, whole=True).replace("\N{NO-BREAK SPACE}", " ") == counted


# Faces


def test_small_pictures_are_kept_to_the_last_bit_and_large_ones_shrunk(tmp_path: Path) -> None:
    items = images(tmp_path)
    shown = face(items, 3)
    assert shown.few_pixels
    np.testing.assert_array_equal(_decoded(shown.uri), np.asarray(Image.open(items.faces[3])))
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (300, 600, 3), dtype=np.uint8)).save(items.faces[3])
    shown = face(items, 3)
    assert not shown.few_pixels
    assert _decoded(shown.uri).shape == (SIDE // 2, SIDE, 3)
    Path(items.faces[3]).unlink()
    assert _decoded(face(items, 3).uri).shape == (32, 32)  # what was read of it


def _decoded(uri: str) -> np.ndarray:
    return np.asarray(Image.open(BytesIO(base64.b64decode(uri.split(",")[1]))))


def test_coloured_pictures_have_their_colours(tmp_path: Path) -> None:
    images(tmp_path)
    items = read_items(tmp_path / "images", colour=True)
    features = items.features.copy()
    features[0].reshape(32, 32, 3)[:] = (1, 0, 0)
    gone = replace(items, features=features, faces=["nowhere.png"] * N)
    assert _decoded(face(gone, 0).uri)[5, 5].tolist() == [255, 0, 0]


@pytest.mark.parametrize(
    ("text", "letters", "short"),
    [
        ("one  two\n three", 20, "one two three"),
        ("one two three", 10, "one two…"),
        ("x" * 50, 10, "x" * 9 + "…"),
        (" " * 1000 + "late", 10, "…"),
    ],
)
def test_long_texts_are_cut_at_a_word(text: str, letters: int, short: str) -> None:
    assert shortened(text, letters) == short


# Sizes


@pytest.mark.parametrize("kind", ["text", "table"])
def test_many_items_and_clusters_make_no_endless_page(kind: str, tmp_path: Path) -> None:
    items = KINDS[kind](tmp_path)
    model = fitted(items)
    often = np.arange(6000) % N
    faces: Any = (
        [f"{items.faces[k]} {'word ' * 2000}" for k in often]
        if kind == "text"
        else items.faces.__class__(items.faces.table.take(often))
    )
    many = replace(
        items,
        ids=[f"{'long ' * 60} {k}" for k in range(6000)],
        features=items.features[often],
        faces=faces,
        truth=np.array([f"label {k % 300}" for k in range(6000)]),
        notes=["a note " * 500] * 200,
    )
    pairs = Pairs([(k, k + 1) for k in range(0, 2000, 2)], [True] * 1000)
    html = build_report(many, model, pairs, labels=labels(np.arange(6000) % 200), map_method="pca")
    assert len(html) < 2_500_000
    page = Page(html)
    assert len(page.all("article")) == 30
    assert "2,000 of 6,000" in page.text
    assert "and 140 smaller clusters" in page.text
    assert section(html, "The answers").count("not kept: in") == 24


def test_bars_have_the_lengths_of_their_counts() -> None:
    block = Sizes([Size(0, "", (6, 2, 0), "80 %", "90 %"), Size(1, "", (1, 0, 1), "20 %", "90 %")], "row")
    assert list(block.bars(block.sizes[0])) == [(0, 75, 0), (75, 25, 1)]
    assert list(block.bars(block.sizes[1])) == [(0, 12.5, 0), (12.5, 12.5, 2)]


def test_map_shows_every_point_once_inside_its_frame() -> None:
    points = np.random.default_rng(0).normal(size=(60, 2)) * (5, 2)
    cluster = np.arange(60) % 3
    shown = PointMap("", "", points, cluster, np.linspace(0, 1, 60), [(k, "") for k in range(3)], {}, [(0, 59)])
    placed = shown.placed()
    assert placed.min() >= 0
    assert (placed.max(0) <= (shown.side, shown.height)).all()
    drawn = sorted(dot for *_, path in shown.paths() for dot in re.findall(r"M([\d.]+) ([\d.]+)h0", path))
    assert drawn == sorted((f"{x:g}", f"{y:g}") for x, y in placed.tolist())
    assert {(k, pale) for k, pale, _ in shown.paths()} == {(k, pale) for k in range(3) for pale in (False, True)}
    for x, y, k in shown.middles():
        assert [x, y] in placed[cluster == k].tolist()
    assert shown.lines() == "M{:g} {:g}L{:g} {:g}".format(*placed[0], *placed[59])


@pytest.mark.parametrize("width", [1, 3])
def test_points_that_are_all_the_same_still_have_a_map(width: int) -> None:
    points, _ = flat_points(np.ones((12, width)), np.arange(12), "tsne", np.random.RandomState(0))
    assert np.isfinite(points).all()
    assert points.shape == (12, 2)


def test_same_seed_same_page(tmp_path: Path) -> None:
    items = table(tmp_path)
    make: Callable[[], str] = lambda: build_report(items, fitted(items, pairs=PAIRS), PAIRS)  # noqa: E731
    assert make() == make()
