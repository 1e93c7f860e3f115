"""The report of the experiments: true to the cells, whole in one file, the same again, open about what is missing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from html_page import Page
from matplotlib.figure import Figure as Canvas
from scipy import stats

import pairmargin
from pairmargin.exceptions import ExperimentError, OutputError
from pairmargin.experiments import figures, report, tables
from pairmargin.experiments.report import build_report, missing_cells, rows_of, write_report
from pairmargin.experiments.specs import BALANCED, EXPERIMENTS, METHODS, PRINTED, Experiment
from pairmargin.experiments.store import FALSE_POSITIVE_RATES, KEY, TYPES
from pairmargin.experiments.tables import NBSP, Comparison, markdown
from pairmargin.experiments.verdicts import ACCURACY, ARI, AUC
from pairmargin.looks import spaced_labels
from pairmargin.report import Judgement, Judgements, Pictures, Report, Section, Table, render

TABLE2 = EXPERIMENTS["table2"]


def results(datasets: tuple[str, ...], n_draws: int = 3) -> pd.DataFrame:
    """Made-up results of all the cells of some data sets."""
    rng = np.random.default_rng(0)
    cells = {cell for each in EXPERIMENTS.values() for cell in each.cells(n_draws) if cell.dataset in datasets}
    rows = []
    for cell in sorted(cells):
        quality = 0.3 + 0.6 * list(METHODS).index(cell.method) / len(METHODS) + 0.02 * rng.random()
        tpr = FALSE_POSITIVE_RATES ** (1 - quality)
        values: dict[str, Any] = dict.fromkeys(TYPES, "1.0") | dict.fromkeys(("accuracy", "auc", "nmi"), quality)
        values |= asdict(cell)
        values |= {"ari": quality**2, "clusters": 3, "seconds": quality, "peak_mb": 100.0, "date": "2026-01-05"}
        rows.append(values | {"tpr": " ".join(f"{rate:.3f}" for rate in tpr)})
    return pd.DataFrame(rows)[list(TYPES)].astype(TYPES)


def write_cells(frame: pd.DataFrame, folder: Path) -> Path:
    (folder / "cells").mkdir(parents=True)
    for dataset, rows in frame.groupby("dataset"):
        rows.to_csv(folder / "cells" / f"{dataset}.csv", index=False, lineterminator="\n")
    return folder


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return results(("wine", "mnist"))


@pytest.fixture(scope="module")
def folder(frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_cells(frame, tmp_path_factory.mktemp("results") / "here")
    assert write_report(folder) == folder / "report.html"
    return folder


@pytest.fixture(scope="module")
def html(folder: Path) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")


# Files


def test_all_files_are_there_and_nothing_else(folder: Path) -> None:
    written = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    names = ("fig1", "fig2", "fig3", "ranks", "leaderboard-balanced", "leaderboard-uniform", "questions")
    drawn = {f"figures/{name}.{kind}" for name in names for kind in ("png", "pdf")}
    tables = {"table2.md", "parts.md", "leaderboard.md", "questions.md"}
    assert written == {"report.html", "cells/wine.csv", "cells/mnist.csv"} | tables | drawn


def test_same_results_same_bytes_and_settings_of_matplotlib_stay(folder: Path, frame: pd.DataFrame) -> None:
    before = mpl.rcParams.copy()
    mpl.rcParams["font.size"] = 31  # the taste of whoever calls must not show
    again = {path.name: path.read_bytes() for path in folder.rglob("*.*") if path.suffix != ".csv"}
    try:
        write_report(folder)
        assert mpl.rcParams["font.size"] == 31
    finally:
        mpl.rcParams.update(before)
    for path in folder.rglob("*.*"):
        assert path.suffix == ".csv" or path.read_bytes() == again[path.name], path.name


def test_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match=rf"no results in {tmp_path}; .*: pairmargin experiment run table2 "):
        write_report(tmp_path)
    assert not list(tmp_path.iterdir())


def test_page_that_cannot_be_written_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pairmargin.report.os.access", lambda *_: False)
    with pytest.raises(OutputError, match=r"report\.html cannot be written: no permission"):
        write_report(folder)


# The page


def test_page_asks_for_nothing_from_outside(html: str) -> None:
    page = Page(html)
    for _, attributes in page.tags:
        for name in ("src", "href", "xlink:href", "srcset", "data"):
            assert (attributes.get(name) or "#").startswith(("data:", "#"))
    for address in ("http", "//", "@import", "<script", "<?xml"):
        assert address not in html
    assert len(html) < 1_000_000


def test_page_is_accessible_and_its_ids_are_unique(html: str) -> None:
    page = Page(html)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    used = re.findall(r'(?:href="#|url\(#)([^")]+)', html)
    assert used
    assert set(used) <= set(ids)
    assert all(drawing.get("aria-hidden") == "true" for drawing in page.all("svg"))
    pictures = [each["aria-label"] or "" for each in page.all("div") if each.get("role") == "img"]
    assert len(pictures) == 1 + 4 + 1 + 2 + 2  # ranks, leaderboard; a ROC curve, and accuracy and ARI of Figs. 2 and 3
    assert all("pairmargin" in label for label in pictures)


def test_colours_of_drawings_are_those_of_the_page(html: str) -> None:
    body = html.split("</style>")[1]
    assert not re.findall(r"(?:fill|stroke): #[0-9a-f]{6}", body)
    style = (Path(pairmargin.__file__).parent / "templates" / "style.css").read_text(encoding="utf-8")
    light, dark = (
        dict(re.findall(r"--(\w+): (#\w{6})", part)) for part in style.split("prefers-color-scheme: dark", 1)
    )
    assert {ink: light[ink] for ink in figures.INKS} == figures.INKS
    assert set(figures.INKS) <= set(dark)
    assert set(re.findall(r"var\(--(\w+)\)", body)) <= set(figures.INKS)


def test_a_drawing_in_the_page_keeps_the_figures_that_it_shows() -> None:
    with figures.look():
        canvas = Canvas(figsize=(2, 2))
        axes = canvas.add_subplot()
        axes.plot([0, 1 / 3], [0, 1], label="AUC 0.7153")
        axes.legend()
        svg = figures.inline(canvas, "one")
    assert "AUC 0.7153" in svg
    assert not any(re.search(r"\.\d{3}", tag) for tag in re.findall("<[^>]*>", svg))


def test_all_parts_are_there_in_order(html: str) -> None:
    text = Page(html).text
    parts = [
        "Where we stand",
        "Leaderboard. Accuracy",
        "Mean ranks",
        "Answers as they come",
        "Table 1.",
        "Table 2. Accuracy",
        "Table 2. Adjusted",
        "Fig. 1",
        "Fig. 2",
        "Fig. 3",
    ]
    parts += ["The paper says", "What it costs", "Peak memory", "How this page was made", "torch 1.0", "2026-01-05"]
    places = [text.index(part, text.index("Where we stand")) for part in parts]
    assert places == sorted(places)
    assert "over 3 draws" in text
    assert (
        "With pairmargin, the mean accuracy is above those of all four rivals of the paper on 1 of 1 data sets." in text
    )


def test_missing_results_are_named_with_the_command(html: str, frame: pd.DataFrame) -> None:
    text = Page(html).text
    missing = missing_cells(frame)
    assert set(missing) == set(EXPERIMENTS)
    assert len(missing["fig5"]) == len(EXPERIMENTS["fig5"].cells())
    assert "pairmargin experiment run fig4" in text
    assert "COIL-20, COIL-100" in text
    assert text.count("not computed yet") > 20
    assert re.search(r"statements of the paper hold for pairmargin; \d+ not computed yet", text)
    enough = results(("wine", "mnist"), n_draws=10)
    assert set(missing_cells(enough)) == {"table2", "fig1", "fig4", "fig5", "parts", "leaderboard", "questions"}
    missed = missing_cells(enough)["leaderboard"]
    assert "leaderboard" not in missing_cells(enough, unfinished=missed)  # tried in vain is not missing
    assert {cell.dataset for cell in missing_cells(enough)["table2"]} == set(TABLE2.datasets) - {"wine"}


def test_one_draw_of_one_curve_is_enough(frame: pd.DataFrame) -> None:
    one = frame.query("dataset == 'mnist' and seed == 0 and method == 'paper'")
    built, drawn, halves = build_report(rows_of(one, EXPERIMENTS["fig2"]))
    assert set(halves) == {"parts"}  # which has a thousand answers on MNIST, too
    assert [figure.name for figure in drawn] == ["fig2", "fig3"]
    assert "One draw." in render(built)
    assert "statements of the paper hold" not in render(built)  # nothing is known about any of them


def test_hostile_text_in_new_blocks_stays_text() -> None:
    def blocks(text: str) -> Iterator[Any]:
        yield Table([text, text], [[text, text]], title=text, caption=text, beneath={(0, 1): text}, notes=[text])
        yield Pictures(text, text, [(text, "<svg></svg>")], [(text, "<svg></svg>")])
        yield Judgements((text,) * 4, [Judgement(text, text, [(text, [text], text)])], {text: "good"})

    def page(text: str) -> Page:
        return Page(render(Report("", "", [], [Section("", [], list(blocks(text)))], {})))

    hostile = '</td>"><script>alert(1)</script>{{ 7 * 7 }}'
    assert [tag for tag, _ in page(hostile).tags] == [tag for tag, _ in page("plain").tags]
    assert page(hostile).text == page("plain").text.replace("plain", hostile)


# Tables


@pytest.mark.parametrize("score", [ACCURACY, ARI])
def test_table2_by_hand(frame: pd.DataFrame, score: Any) -> None:
    table = Comparison(rows_of(frame, TABLE2), TABLE2, score).table("Table 2", "caption")
    column = 1 + TABLE2.datasets.index("wine")
    wine = rows_of(frame, TABLE2).query("dataset == 'wine'")
    values = {m: rows[score.name].to_numpy() for m, rows in wine.groupby("method")}
    order = sorted(TABLE2.methods, key=lambda method: -values[method].mean())
    for i, method in enumerate(TABLE2.methods):
        mean, spread = score.scale * values[method].mean(), score.scale * values[method].std(ddof=1)
        shown = f"{mean:.{score.digits}f}{NBSP}±{NBSP}{spread:.{score.digits}f}"
        printed = PRINTED.get(method, {}).get("wine", (None, None))[score is ARI]
        short = printed is not None and values[method].mean() < printed - 0.05
        assert table.rows[i][column] == shown + ("†" if short else "")
        assert ((i, column) in table.best) == (method == order[0])
        assert ((i, column) in table.beneath) == (printed is not None)
    p = stats.wilcoxon(values[order[0]], values[order[1]]).pvalue
    assert table.rows[-1][column] == f"{p:.3f}"
    assert {row[1] for row in table.rows} == {"–"}  # no results on Glass
    assert table.notes == [f"† more than {score.shown(0.05)} below the figure that the paper prints"]


def test_what_the_paper_prints_is_beside_as_many_answers_alone(frame: pd.DataFrame) -> None:
    rows = rows_of(frame, TABLE2)
    few, many = (Comparison(rows.assign(n_pairs=n), TABLE2, ACCURACY) for n in (100, 1000))
    assert few.printed("paper", "wine") == PRINTED["paper"]["wine"][0]
    assert many.printed("paper", "wine") is None
    assert few.printed("paper", "glass") is None  # nothing has been computed there
    table = many.table("", "")
    assert (table.beneath, table.notes) == ({}, [])


def test_a_method_alone_is_not_the_best_of_them(frame: pd.DataFrame) -> None:
    rows = rows_of(frame, TABLE2)
    assert Comparison(rows, TABLE2, ACCURACY).table("", "").best
    assert not Comparison(rows.query("method == 'cmmc'"), TABLE2, ACCURACY).table("", "").best


def test_draws_beyond_the_plan_count_only_where_all_methods_have_them() -> None:
    planned = Experiment("", "", {"wine": (100,)}, ("cmmc", "paper"), seeds=2)
    seeds = {"cmmc": [0, 1, 2], "paper": [0, 2, 3]}
    frame = pd.DataFrame(
        [("wine", method, 100, seed, BALANCED) for method, each in seeds.items() for seed in each], columns=KEY
    )
    kept = rows_of(frame, planned).groupby("method")["seed"].agg(list).to_dict()
    assert kept == {"cmmc": [0, 1, 2], "paper": [0, 2]}


@pytest.mark.parametrize(
    ("differences", "wanted"),
    [
        ([0.1], "–"),
        ([0.0, 0.0, 0.0], "1.000"),
        ([0.1, 0.2], "0.500"),
        (list(np.arange(1, 12) / 10), "< 0.001"),
        ([0.0, 0.1, 0.1], "0.500"),
    ],
)
def test_p_values(differences: list[float], wanted: str) -> None:
    assert tables._wilcoxon(np.array(differences)) == wanted


def test_the_paper_prints_nothing_about_auc(frame: pd.DataFrame) -> None:
    comparison = Comparison(rows_of(frame, EXPERIMENTS["fig1"]), EXPERIMENTS["fig1"], AUC)
    assert comparison.printed("paper", "wine") is None
    assert not comparison.table("", "").beneath


def test_table1_tells_what_differs_from_the_paper() -> None:
    table = tables.table1()
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["Wine"] == ["178", "13", "3"]
    assert rows["Wdbc"] == ["569", "30 (32)", "2"]
    assert rows["Glass"] == ["214", "9", "6 (7)"]
    assert [note.split(":")[0] for note in table.notes] == ["Glass", "Wdbc", "Reuters"]


def test_markdown_has_the_same_cells(folder: Path, frame: pd.DataFrame) -> None:
    text = (folder / "table2.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 2 * (len(TABLE2.methods) + 3)
    assert {len(row) for row in rows} == {1 + len(TABLE2.datasets)}
    assert sum("**" in cell for row in rows for cell in row) == 2  # Wine, accuracy and ARI
    small = Table(["", "a"], [["x", "1"], ["y", "2"]], frozenset({(1, 1)}), "T", "C", {(0, 1): "paper 3"}, ["† note"])
    assert markdown(small) == "**T**\n\nC\n\n|  | a |\n| --- | --: |\n| x | 1 (paper 3) |\n| y | **2** |\n\n† note\n"


def test_costs_are_the_least_of_the_draws_and_their_median_over_numbers_of_pairs(frame: pd.DataFrame) -> None:
    table = tables.cost_table(frame, "seconds", 2, "", "")
    assert table.columns == ["", "Wine", "MNIST"]
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["the paper's settings, β = 0"][0] == "–"
    itml = frame[(frame["method"] == "itml") & (frame["dataset"] == "mnist")]
    least = [of_one_number["seconds"].min() for _, of_one_number in itml.groupby("n_pairs")]
    assert rows["ITML"][1] == f"{np.median(least):.2f}"


# Figures


def test_every_method_has_a_look_of_its_own() -> None:
    drawn = {method for name, each in EXPERIMENTS.items() if name != "parts" for method in each.methods}
    assert drawn < set(figures.STYLES) <= set(METHODS)
    looks = [(style.ink, style.marker, style.dashes) for style in figures.STYLES.values()]
    assert len(looks) == len(set(looks))
    assert all(figures.STYLES[m].width > 2 for m, method in METHODS.items() if method.kind == "ours")
    assert all(figures.STYLES[m].ink == "f6" for m, method in METHODS.items() if method.kind == "peer")


def test_curves_are_means_and_standard_deviations(frame: pd.DataFrame) -> None:
    experiment = EXPERIMENTS["fig3"]
    accuracy, ari = figures.pairs_figure(rows_of(frame, experiment), experiment).panels
    assert (accuracy.y_label, ari.y_label) == ("accuracy (%)", "adjusted Rand index")
    assert [curve.method for curve in ari.curves] == [m for m in METHODS if m in experiment.methods]
    for curve in accuracy.curves:
        rows = frame.query(f"dataset == 'mnist' and method == '{curve.method}' and drawing == 'balanced'")
        for n, mean, spread in zip(curve.x, curve.mean, curve.spread, strict=True):
            values = 100 * rows[rows["n_pairs"] == n]["accuracy"].to_numpy()
            assert (mean, spread) == pytest.approx((values.mean(), values.std(ddof=1)))
        assert tuple(curve.x) == experiment.n_pairs["mnist"]


def test_roc_curves_are_means_with_the_best_first(frame: pd.DataFrame) -> None:
    (panel,) = figures.roc_figure(rows_of(frame, EXPERIMENTS["fig1"]), EXPERIMENTS["fig1"]).panels
    assert [curve.method for curve in panel.curves] == ["pairmargin", "paper", "cmmc", "kissme", "itml", "xing"]
    best = frame.query("dataset == 'wine' and method == 'pairmargin' and drawing == 'balanced' and n_pairs == 100")
    rates = [[float(rate) for rate in text.split()] for text in best["tpr"]]
    np.testing.assert_allclose(panel.curves[0].mean, np.mean(rates, axis=0))
    assert panel.curves[0].label == f"pairmargin  {best['auc'].mean():.3f}"


@pytest.mark.parametrize(
    ("counts", "wanted"),
    [
        ([200, 500, 1000, 2000, 5000], ["200", "500", "1,000", "2,000", "5,000"]),
        ([1000, 2000, 2100, 8000], ["1,000", "", "2,100", "8,000"]),
        ([100], ["100"]),
    ],
)
def test_labels_of_counts_do_not_run_into_each_other(counts: list[int], wanted: list[str]) -> None:
    assert spaced_labels(np.array(counts), np.log(counts)) == wanted


def test_captions_tell_how_every_figure_was_done() -> None:
    assert set(report._PROTOCOL) == {"fig1", "fig2", "fig3", "fig4", "fig5"}


def test_uniform_answers_are_no_part_of_the_paper_s_figures(frame: pd.DataFrame) -> None:
    _, with_them, _ = build_report(frame)
    _, without, _ = build_report(frame[frame["drawing"] == "balanced"])
    for one, other in zip(with_them, without, strict=True):
        assert [panel.description for panel in one.panels] == [panel.description for panel in other.panels]


def test_parts_have_a_table_for_few_answers_and_one_for_many(frame: pd.DataFrame) -> None:
    few, _, many, _ = build_report(frame)[2]["parts"]
    assert few.caption.startswith("100 answers to learn from, half of them same and half different.")
    assert many.caption.startswith("1,000 answers to learn from (300 on Glass, 300 on Wine, 300 on Sonar), half of")
    wine = frame.query("dataset == 'wine' and method == 'pairmargin' and drawing == 'balanced'")
    for table, n_pairs in ((few, 100), (many, 300)):
        shown = 100 * wine[wine["n_pairs"] == n_pairs]["accuracy"].mean()
        assert table.rows[0][table.columns.index("Wine")].startswith(f"{shown:.1f}{NBSP}±")
