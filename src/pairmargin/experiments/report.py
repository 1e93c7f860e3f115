"""The results as a page, as figures and as a table for the README."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path

import pandas as pd

from ..exceptions import ExperimentError
from ..report import Judgement, Judgements, Pictures, Report, Section, Table, make_folder, write
from ..writing import new_file, refusals
from . import figures, leaderboard_report, questions_report
from .claims import RIVALS, SLIGHT, SUBJECTS, Finding, judge
from .leaderboard import DRAW, PLACE, Leaderboard
from .specs import BALANCED, EXPERIMENTS, METHODS, N_HELD_OUT, N_IMAGES, WIDEST_METRIC, Cell, Experiment
from .store import KEY, Store
from .tables import DATASETS, ONE_DRAW, Comparison, cost_table, draws_of, markdown, table1
from .unfinished import Unfinished
from .verdicts import ACCURACY, ARI, Verdict

FILE = "report.html"
TONES = {Verdict.HOLDS.value: "good", Verdict.FAILS.value: "bad"}
VERSIONS = ("pairmargin", "python", "numpy", "scipy", "scikit_learn", "torch")
_BOLD = "The best of each column is bold; p is of its difference from the second best (Wilcoxon's signed-rank test)."
_LEAD = (
    "Gang Chen (2015) compares deep transductive maximum margin clustering with four other methods on nine data sets. "
    "Here are the same comparisons with pairmargin, and with more peers. In every draw, all methods get the same "
    "points and the same answers; figures of the paper stand beside ours where it prints them."
)
_HALVES = "half of them same and half different"
_ANSWERS = f"100 answers to learn from, {_HALVES}, and as many pairs held out."
_MNIST = f"{N_IMAGES:,} images drawn from the training part; {N_HELD_OUT:,} pairs held out."
_PROJECTED = (
    f"Xing, ITML and KISSME learn their metric on {WIDEST_METRIC // 4} principal components, because it has a number "
    f"for every two of more than {WIDEST_METRIC} pixels."
)
_METRICS = "Xing, ITML and KISSME learn a metric, in which kernel k-means then clusters."
_PARTS = (
    "pairmargin without one of its parts or with another start; the paper's settings, whose start is ours because the "
    "paper leaves it open; and the same from a random start with the step size as printed, which is the paper to the "
    "letter."
)
_PROTOCOL = {
    "fig1": f"{_ANSWERS} How well the score of a method tells the held-out pairs apart; its AUC beside its name.",
    "fig2": f"{_MNIST} {_PROJECTED}",
    "fig3": f"{_MNIST} Dashed: β = 0, without the term for points in no answer.",
    "fig4": "32 × 32 pixels. Dashed: β = 0, without the term for points in no answer.",
    "fig5": f"32 × 32 pixels. {_PROJECTED}",
}
_FIGURES = "A method has the same colour and sign in all the figures."
_CLAIMS = (
    "Every statement about results in the paper's section 4, in our words, judged by differences between methods draw "
    "by draw: their mean, and in brackets its 95 % interval (Student's t). A statement holds if the whole interval is "
    "on the side that it claims, and does not hold if the whole interval is on the other; else these draws cannot "
    f"tell. Where the paper says “no advantage” or “as well as”, a difference up to {SLIGHT} counts as none."
)


def write_report(results: str | os.PathLike[str]) -> Path:
    """Write what the results say: ``report.html``, ``figures/*`` as PNG and PDF, and every table that a page shows.

    Those are ``table2.md``, ``parts.md``, ``leaderboard.md``, ``leaderboard-other-packages.md``, and ``questions.md``,
    which is not on the page.

    Parameters
    ----------
    results : path-like
        A results folder, with the cells that ``pairmargin experiment run`` has computed so far.

    Returns
    -------
    page : Path
        The page, which needs no other file.
    """
    folder = Path(results)
    everything, unfinished = Store(folder).frame(), Unfinished(folder).reasons
    frame = everything[everything["method"].isin(list(METHODS)) & everything["dataset"].isin(list(DATASETS))]
    if frame.empty:
        raise ExperimentError(
            f"there are no results in {folder}; compute some first: pairmargin experiment run table2 --results {folder}"
        )
    make_folder(folder, FILE)  # before the work, so that a folder that cannot be written costs no time
    board = leaderboard_report.find_board(everything, unfinished)
    wider = leaderboard_report.find_board(everything, unfinished, other_packages=True)
    report, drawn, tables = build_report(frame, board, unfinished, wider)
    for figure in drawn:
        figures.save(figure, folder / "figures")
    if board:
        leaderboard_report.save(board, folder / "figures", wider)
    asked = questions_report.answers_asked_for(everything)
    if not asked.empty:
        questions_report.save(asked, folder / "figures")
        tables[questions_report.NAME] = [questions_report.table(asked)]
    for name, halves in tables.items():
        path = folder / f"{name}.md"
        with new_file(path) as beside, refusals(path):
            beside.write_text("\n".join(map(markdown, halves)), encoding="utf-8")
    return write(report, folder, FILE)


def build_report(
    frame: pd.DataFrame,
    board: Leaderboard | None = None,
    unfinished: Iterable[Cell] = (),
    wider: Leaderboard | None = None,
) -> tuple[Report, list[figures.Figure], dict[str, list[Table]]]:
    """The page, the paper's figures and the tables that are also written on their own, from one row a cell."""
    missing = missing_cells(frame, unfinished)
    frame = frame[frame["drawing"] == BALANCED]  # the paper knows no other drawing
    findings = judge(frame)
    tables, drawn = _comparisons(frame), _figures(frame)
    if board:
        tables["leaderboard"] = [leaderboard_report.table(board)]
    if wider:
        tables["leaderboard-other-packages"] = [leaderboard_report.table(wider)]
    sections = [
        Section("Where we stand", _standing(frame, findings), [_missing_table(missing)] if missing else []),
        *([leaderboard_report.section(board, wider)] if board else []),
        Section("The paper's tables", [], [table1(), *tables.get("table2", [])]),
        Section("The paper's figures", [_FIGURES], [_pictures(frame, figure) for figure in drawn]),
        Section("What the paper says", [_CLAIMS], [_judgements(findings)]),
        Section("What each part brings", [], tables.get("parts", [])),
        Section("What it costs", [], _costs(frame)),
    ]
    report = Report("The paper's experiments, done again", _LEAD, _numbers(frame, findings), sections, _facts(frame))
    return report, drawn, tables


def rows_of(frame: pd.DataFrame, experiment: Experiment) -> pd.DataFrame:
    """The rows that belong to an experiment: of the draws that it plans, and of others if all its methods have them."""
    planned = {(cell.dataset, cell.method, cell.n_pairs, cell.drawing) for cell in experiment.cells(seeds=1)}
    rows = frame[pd.MultiIndex.from_frame(frame[["dataset", "method", "n_pairs", "drawing"]]).isin(planned)]
    of_draw, of_place = (rows.groupby(keys)["method"].transform("nunique") for keys in (DRAW, PLACE))
    draws = {(cell.dataset, cell.seed) for cell in experiment.cells()}
    return rows[(of_draw == of_place) | pd.MultiIndex.from_frame(rows[["dataset", "seed"]]).isin(draws)]


def missing_cells(frame: pd.DataFrame, unfinished: Iterable[Cell] = ()) -> dict[str, list[Cell]]:
    """What every experiment still lacks and nobody has tried; experiments that lack nothing are left out."""
    done = {Cell(*key) for key in frame[KEY].itertuples(index=False, name=None)} | set(unfinished)
    missing = {name: [cell for cell in each.cells() if cell not in done] for name, each in EXPERIMENTS.items()}
    return {name: cells for name, cells in missing.items() if cells}


# Where we stand


def _numbers(frame: pd.DataFrame, findings: Sequence[Finding]) -> list[tuple[str, str]]:
    """The figures at the head of the page."""
    numbers = [
        (f"{len(frame):,}", "results: one method, one data set, one number of pairs, one draw"),
        (str(frame["seed"].nunique()), "draws of points and pairs, the same for every method"),
    ]
    for subject in SUBJECTS:
        verdicts = [finding.verdict for finding in findings if finding.subject == subject]
        known = [verdict for verdict in verdicts if verdict is not Verdict.UNKNOWN]
        if known:
            share = f"{known.count(Verdict.HOLDS)} of {len(known)}"
            unknown = f"; {len(verdicts) - len(known)} not computed yet" if len(known) < len(verdicts) else ""
            numbers.append((share, f"statements of the paper hold for {METHODS[subject.method].label}{unknown}"))
    return numbers


def _standing(frame: pd.DataFrame, findings: Sequence[Finding]) -> list[str]:
    """A few sentences, all of them computed."""
    rows = rows_of(frame, EXPERIMENTS["table2"])
    sentences = [] if rows.empty else _table2_standing(Comparison(rows, EXPERIMENTS["table2"], ACCURACY))
    for subject in SUBJECTS:
        verdicts = Counter(finding.verdict for finding in findings if finding.subject == subject)
        told = ", ".join(f"{verdict.value} {verdicts[verdict]}" for verdict in Verdict if verdicts[verdict])
        what = f"the paper's {verdicts.total()} statements about its results"
        sentences.append(f"With {METHODS[subject.method].label}, {what}: {told}.")
    return sentences


def _table2_standing(comparison: Comparison) -> list[str]:
    """How our two versions stand to the paper's rivals and to its printed figures."""
    sentences = []
    for method in (subject.method for subject in SUBJECTS):
        known = comparison.computed(method, *RIVALS)
        won = [dataset for dataset in known if comparison.ranking(dataset, [method, *RIVALS])[0] == method]
        if known:
            what = "the mean accuracy is above those of all four rivals of the paper"
            sentences.append(f"With {METHODS[method].label}, {what} on {_share(won, known)}.")
    printed = {d: comparison.printed("paper", d) for d in comparison.computed("paper")}
    reached = [d for d, figure in printed.items() if figure is not None and comparison.mean("paper", d) >= figure]
    if printed:
        what = "the mean accuracy reaches the one that the paper prints"
        sentences.append(f"With {METHODS['paper'].label}, {what} on {_share(reached, list(printed))}.")
    return sentences


def _share(some: Sequence[str], known: Sequence[str]) -> str:
    """Some of the data sets: how many, and which."""
    names = f" ({', '.join(DATASETS[d] for d in some)})" if 0 < len(some) < len(known) else ""
    return f"{len(some)} of {len(known)} data sets{names}"


def _missing_table(missing: Mapping[str, Sequence[Cell]]) -> Table:
    """What to compute next, and how."""
    rows = []
    for name, cells in missing.items():
        datasets = [title for dataset, title in DATASETS.items() if dataset in {cell.dataset for cell in cells}]
        count = f"{len(cells):,} of {len(EXPERIMENTS[name].cells()):,}"
        rows.append([name, count, ", ".join(datasets), f"pairmargin experiment run {name}"])
    columns = ["", "missing results", "on", "computed by"]
    caption = "The page shows what there is. Results that are already there are not computed again."
    return Table(columns, rows, title="Not computed yet", caption=caption, words=frozenset({2, 3}))


# Tables, figures, claims, costs


def _comparisons(frame: pd.DataFrame) -> dict[str, list[Table]]:
    """Accuracy and ARI for each of the experiments that are told as a table; none where nothing has been computed."""
    table2, parts = EXPERIMENTS["table2"], EXPERIMENTS["parts"]
    few, many = (_compared(frame, parts.at(k), "Parts", f"{_answers(parts, k)} {_PARTS}") for k in (0, 1))
    found = {"table2": _compared(frame, table2, "Table 2", f"{_ANSWERS} {_METRICS}"), "parts": few + many}
    return {name: tables for name, tables in found.items() if tables}


def _compared(frame: pd.DataFrame, experiment: Experiment, title: str, protocol: str) -> list[Table]:
    rows = rows_of(frame, experiment)
    if rows.empty:
        return []
    draws = draws_of(rows)
    spread = f"Mean ± standard deviation over {draws}" if draws != ONE_DRAW else "One draw"
    captions = {ACCURACY: f"{protocol} {spread}; beside it, the paper's figure. {_BOLD}", ARI: "Of the same clusters."}
    return [Comparison(rows, experiment, score).table(title, words) for score, words in captions.items()]


def _answers(experiment: Experiment, place: int) -> str:
    """How many answers there are, if every data set has its first, second or later number of them."""
    numbers = {dataset: counts[place] for dataset, counts in experiment.n_pairs.items()}
    usual = max(numbers.values())
    fewer = [f"{n:,} on {DATASETS[dataset]}" for dataset, n in numbers.items() if n < usual]
    exceptions = f" ({', '.join(fewer)})" if fewer else ""
    return f"{usual:,} answers to learn from{exceptions}, {_HALVES}."


def _figures(frame: pd.DataFrame) -> list[figures.Figure]:
    """The figures that have something to show."""
    makers = {"fig1": figures.roc_figure} | dict.fromkeys(("fig2", "fig3", "fig4", "fig5"), figures.pairs_figure)
    drawn = [make(rows_of(frame, EXPERIMENTS[name]), EXPERIMENTS[name]) for name, make in makers.items()]
    return [figure for figure in drawn if figure.panels]


def _pictures(frame: pd.DataFrame, figure: figures.Figure) -> Pictures:
    """A figure as a block of the page."""
    name, experiment = figure.name, EXPERIMENTS[figure.name]
    draws = draws_of(rows_of(frame, experiment))
    spread = f"Lines: means over {draws}; bands: ± standard deviation." if draws != ONE_DRAW else "One draw."
    return Pictures(
        experiment.title,
        f"{_PROTOCOL[name]} {spread}",
        [(panel.description, figures.panel_svg(panel, f"{name}-{k}")) for k, panel in enumerate(figure.panels)],
        [(METHODS[method].label, figures.sign_svg(method, name)) for method in figure.shared_legend],
    )


def _judgements(findings: Sequence[Finding]) -> Judgements:
    """The claims as a block of the page."""
    rows = [
        Judgement(
            claim.text,
            claim.place,
            [(METHODS[f.subject.method].label, [part.figures for part in f.parts], f.verdict.value) for f in group],
        )
        for claim, group in groupby(findings, key=lambda finding: finding.claim)
    ]
    return Judgements(("The paper says", "tried with", "our figures", "verdict"), rows, TONES)


def _costs(frame: pd.DataFrame) -> list[Table]:
    """Time and memory."""
    over = "The least of the draws, as other work on the machine only adds; median over the numbers of pairs"
    return [
        cost_table(
            frame,
            "seconds",
            2,
            "Seconds",
            f"{over}; of the processor, with one thread; fitting and clustering, without loading the data.",
        ),
        cost_table(frame, "peak_mb", 0, "Peak memory in MB", f"{over}; the whole process, with its libraries."),
    ]


def _facts(frame: pd.DataFrame) -> dict[str, str]:
    """The foot of the page: how to do it again, and with what it was done."""
    versions = [f"{name.replace('_', '-')} {' and '.join(sorted(frame[name].unique()))}" for name in VERSIONS]
    first, last = frame["date"].min(), frame["date"].max()
    return {
        "Do it again": "pairmargin experiment run all, then pairmargin experiment report",
        "Versions": ", ".join(versions),
        "Computed": first if first == last else f"{first} to {last}",
        "Figures": "figures/*.png and figures/*.pdf beside this page; every number is in cells/*.csv",
    }
