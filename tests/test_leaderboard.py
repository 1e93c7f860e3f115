"""Who is ahead: ranks, ties, falls and chance by hand, and how the page tells them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pairmargin.experiments import leaderboard_report, rank_figure
from pairmargin.experiments.leaderboard import Leaderboard, cliques, comparable
from pairmargin.experiments.leaderboard_report import PLAN, find_board, section, sentence, table
from pairmargin.experiments.specs import COMPARED, DRAWINGS, FOREIGN, LABELS, Cell
from pairmargin.experiments.tables import markdown
from pairmargin.report import Report, render

Score = Callable[[Cell], float]
SKILL = {method: 0.9 - 0.05 * order for order, method in enumerate(("pairmargin", "paper", "cmmc", "k-means"))}
METHODS = tuple(SKILL)


def cells(
    methods: Sequence[str] = METHODS,
    datasets: Sequence[str] = ("wine", "mnist"),
    counts: Sequence[int] = (50, 100),
    seeds: int = 3,
) -> Iterator[Cell]:
    for method in methods:
        for dataset in datasets:
            for drawing in DRAWINGS:
                for n in counts:
                    yield from (Cell(dataset, method, n, seed, drawing) for seed in range(seeds))


def skill(cell: Cell) -> float:
    """The default first, then in order; a draw is easier or harder for all alike."""
    return SKILL.get(cell.method, 0.5) + 0.01 * cell.seed


def results(score: Score = skill, **chosen: Sequence[str]) -> pd.DataFrame:
    """One row a cell; a score of nan is one that is not there."""
    rows = [asdict(cell) | {"accuracy": score(cell), "seconds": 2.0 + cell.seed} for cell in cells(**chosen)]
    return pd.DataFrame(rows).dropna(subset="accuracy").reset_index(drop=True)


def board(score: Score = skill) -> Leaderboard:
    found = find_board(results(score))
    assert found is not None
    return found


# Ranks


def test_ranks_are_those_of_the_means_and_averaged_by_data_set() -> None:
    assert board().mean_ranks == {"pairmargin": 1, "paper": 2, "cmmc": 3, "k-means": 4}

    def swapped(cell: Cell) -> float:  # on one of four places of MNIST, k-means is the best
        best = cell.method == "k-means" and (cell.dataset, cell.drawing, cell.n_pairs) == ("mnist", "uniform", 100)
        return 0.99 if best else skill(cell)

    frame = results(swapped)
    extra = results(skill, datasets=("wine",)).assign(n_pairs=lambda rows: 10 * rows["n_pairs"])
    ranks = Leaderboard(pd.concat([frame, extra])).mean_ranks  # more places of Wine do not make it count for more
    assert ranks == {"pairmargin": 1.125, "paper": 2.125, "cmmc": 3.125, "k-means": 3.625}


def test_equals_share_a_rank() -> None:
    ranks = board(lambda cell: 0.8 if cell.method in ("paper", "pairmargin") else skill(cell) - 0.3).mean_ranks
    assert ranks["paper"] == ranks["pairmargin"] == 1.5


def test_the_same_skill_wins_and_ties_within_one_standard_error() -> None:
    def close(cell: Cell) -> float:  # the paper is behind by 0.01 on the mean, give or take
        differences = {"wine": (0.0, 0.01, 0.02), "mnist": (0.009, 0.01, 0.011)}[cell.dataset]
        return 0.8 - (differences[cell.seed] if cell.method == "paper" else 0.3 * (cell.method != "pairmargin"))

    found = board(close)
    own, paper = found.standing("pairmargin"), found.standing("paper")
    assert (own.won, own.worst) == (1, 0)
    assert paper.won == 0  # 0.01 is more than 0.01 / √3 and much more than 0.001 / √3
    wider = board(
        lambda cell: close(cell) + (0.03 * (cell.seed - 1) if (cell.method, cell.dataset) == ("paper", "wine") else 0)
    )
    assert wider.standing("paper").won == 0.5
    assert paper.worst == pytest.approx(0.01)


def test_the_furthest_behind_and_the_largest_fall_are_of_the_means() -> None:
    def world(cell: Cell) -> float:
        where = cell.method, cell.dataset, cell.drawing, cell.n_pairs
        return skill(cell) - {("paper", "mnist", "uniform", 100): 0.2, ("cmmc", "wine", "balanced", 50): 0.1}.get(
            where, 0
        )

    found = board(world)
    paper, cmmc = found.standing("paper"), found.standing("cmmc")
    assert (paper.worst, paper.worst_place) == (pytest.approx(0.25), ("mnist", "uniform", 100))
    assert paper.largest_fall == pytest.approx(0.2)
    assert cmmc.largest_fall == 0  # it rises, and another drawing is not the next number
    assert cmmc.seconds == 2


def test_who_has_not_finished_is_last_there_and_nowhere_else() -> None:
    slow = [cell for cell in cells(("paper",), ("mnist",), (100,)) if cell.drawing == "uniform"]
    frame = results(lambda cell: np.nan if cell in slow[1:] else skill(cell))
    found = find_board(frame, slow[1:])
    assert found is not None
    assert found.ranks.loc[("mnist", "uniform", 100), "paper"] == 4  # though one of its draws is there
    assert found.mean_ranks["paper"] == pytest.approx((2 + (2 + 2 + 2 + 4) / 4) / 2)
    standing = found.standing("paper")
    assert (standing.unfinished, standing.worst) == (1, pytest.approx(0.05))
    assert found.standing("k-means").unfinished == 0
    assert "the paper's settings has no result at 1 of the places" in table(found).notes[0]


def test_who_never_finishes_has_the_last_rank_and_no_figures() -> None:
    slow = list(cells(("cmmc",)))
    found = find_board(results(lambda cell: np.nan if cell.method == "cmmc" else skill(cell)), slow)
    assert found is not None
    assert found.mean_ranks["cmmc"] == 4
    assert table(found).rows[-1][1:] == ["4.00", "0\N{NO-BREAK SPACE}%", "–", "0.0", "–"]


def test_critical_difference_is_that_of_the_table_of_demsar() -> None:
    rng = np.random.default_rng(0)
    found = Leaderboard(results(lambda cell: rng.random(), datasets=("wine", "glass", "sonar", "wdbc", "mnist")))
    assert found.critical_difference == pytest.approx(2.569 * np.sqrt(4 * 5 / (6 * 5)), abs=1e-3)  # q of 4 methods


def test_cliques_are_the_longest_runs_that_chance_allows() -> None:
    ranks = {"a": 1.0, "b": 1.5, "c": 2.4, "d": 4.0, "e": 4.1}
    assert cliques(ranks, 1.0) == [("a", "b"), ("b", "c"), ("d", "e")]
    assert cliques(ranks, 0.05) == []
    assert cliques(ranks, 5.0) == [("a", "e")]


# What is compared


def test_only_draws_that_all_methods_have_tried_are_compared() -> None:
    frame = results(lambda cell: np.nan if (cell.method, cell.seed, cell.n_pairs) == ("cmmc", 2, 50) else skill(cell))
    kept = comparable(frame, [], PLAN)
    assert {(n, seed) for n, seed in kept[["n_pairs", "seed"]].itertuples(index=False)} == {
        (50, 0), (50, 1), (100, 0), (100, 1), (100, 2)
    }  # fmt: skip
    assert kept.groupby("method").size().nunique() == 1


def test_seeds_and_places_beyond_the_plan_do_not_count() -> None:
    frame = results(datasets=("glass", "mnist"), seeds=9, counts=(50, 8000))
    kept = comparable(frame, [], PLAN)
    assert set(kept.loc[kept["dataset"] == "mnist", "seed"]) == set(range(PLAN.seeds))
    assert set(kept.loc[kept["dataset"] == "glass", "seed"]) == set(range(9))  # of up to twenty
    assert set(kept["n_pairs"]) == {50}


def test_methods_of_other_packages_have_a_board_of_what_they_were_tried_on() -> None:
    assert not set(PLAN.methods) & set(FOREIGN)
    both = results(methods=(*METHODS, "pml-contrastive", "metric-learn-itml"))
    missing = both[~((both["method"] == "pml-contrastive") & (both["n_pairs"] == 50))]
    own, found = find_board(missing), find_board(missing, other_packages=True)
    assert own is not None
    assert found is not None
    assert set(own.methods) == set(METHODS)
    assert set(found.methods) == {*METHODS, "pml-contrastive", "metric-learn-itml"}
    assert (len(own.means), len(found.means)) == (8, 4)  # places with 50 answers wait for the contrastive loss
    assert table(found).notes[-1].endswith("python benchmarks/peers/run.py leaderboard")
    assert table(found).title.startswith("Leaderboard with other packages")
    tried = find_board(missing, cells(("pml-contrastive",), counts=(50,)), other_packages=True)
    assert tried is not None
    assert len(tried.means) == 8  # tried in vain is the last rank
    assert tried.standing("pml-contrastive").unfinished == 4
    assert find_board(results(), other_packages=True) is None


def test_who_asks_questions_is_not_among_those_with_the_same_answers() -> None:
    asking = results(methods=(*METHODS, "cobras"))
    given = results(methods=("metric-learn-itml",))
    assert find_board(asking, other_packages=True) is None
    found = find_board(pd.concat([asking, given]), other_packages=True)
    assert found is not None
    assert set(found.methods) == {*METHODS, "metric-learn-itml"}


def test_the_board_with_other_packages_stands_below_ours(tmp_path: Path) -> None:
    wider = find_board(results(methods=(*METHODS, "pml-contrastive")), other_packages=True)
    page = section(board(), wider)
    assert [getattr(block, "title", "") for block in page.blocks].count("Mean ranks") == 2
    leaderboard_report.save(board(), tmp_path, wider)
    assert (tmp_path / "ranks-other-packages.png").exists()


@pytest.mark.parametrize("frame", [results().iloc[:0], results(methods=("paper",)), results(counts=(77,))])
def test_without_two_methods_at_one_place_there_is_no_leaderboard(frame: pd.DataFrame) -> None:
    assert find_board(frame) is None


# How it is told


def test_table_has_the_figures_and_marks_the_best() -> None:
    found = table(board())
    assert [row[0] for row in found.rows] == [LABELS[method] for method in METHODS]
    assert found.rows[0][1:] == ["1.00", "100\N{NO-BREAK SPACE}%", "0.0", "0.0", "2.00"]
    assert found.rows[2][1:4] == ["3.00", "0\N{NO-BREAK SPACE}%", "10.0"]
    assert found.best == {(0, 1), (0, 2), (0, 3)}
    assert (0, 3) not in found.beneath
    assert found.beneath[1, 3].startswith(("Wine, ", "MNIST, "))
    assert found.caption.startswith("8 places: 2 data sets, 50 to 100 answers where there are as many, drawn half same")
    assert "3 draws of answers" in found.caption
    assert found.notes == [
        "128 of 136 places are not computed yet for all the methods, and are not counted: "
        "pairmargin experiment run leaderboard"
    ]


def test_the_whole_plan_leaves_nothing_to_be_computed() -> None:
    rows = [asdict(cell) | {"accuracy": 0.5, "seconds": 1.0} for cell in replace(PLAN, methods=COMPARED[:2]).cells(2)]
    found = find_board(pd.DataFrame(rows))
    assert found is not None
    assert len(found.means) == 136
    assert table(found).notes == []


def test_sentence_says_where_the_default_stands() -> None:
    assert sentence(board()) == (
        "pairmargin with nothing else set: mean rank 1.00, number 1 of 4 methods; the best or level with the best at "
        "100\N{NO-BREAK SPACE}% of 8 places; at most 0.0 points behind the best; at most 0.0 points lost from one "
        "number of answers to the next."
    )
    behind = board(lambda cell: 0.7 - 0.05 * (cell.n_pairs == 100) if cell.method == "pairmargin" else skill(cell))
    assert "number 4 of 4 methods; the best or level with the best at 0" in sentence(behind)
    assert "; at most 21.0 points behind the best (" in sentence(behind)
    assert "; at most 5.0 points lost from one number of answers to the next." in sentence(behind)


def test_section_has_the_table_the_ranks_and_the_curves_of_both_drawings() -> None:
    found = section(board())
    assert [block.kind for block in found.blocks] == ["table", "pictures", "pictures", "pictures"]
    page = render(Report("", "", [], [found], {}))
    for words in ("Half of the answers are same", "Answers as they come", "may be chance", ">Wine<", ">MNIST<"):
        assert words in page
    assert page.count('role="img"') == 1 + 2 + 2
    assert 'class="drawings scroll" tabindex="0"' in page


def test_hostile_names_stay_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LABELS, "cmmc", "<script>alert(1)</script>")
    page = render(Report("", "", [], [section(board())], {}))
    assert "<script" not in page
    assert page.count("&lt;script") >= 3  # in the table, in the diagram and in what is read aloud


def test_diagram_describes_every_method_and_is_the_same_again(tmp_path: Path) -> None:
    found = board()
    words = rank_figure.describe(found)
    assert words.startswith("Mean ranks, 1 is best: pairmargin 1.0; the paper's settings 2.0; CMMC 3.0; k-means")
    assert rank_figure.svg(found) == rank_figure.svg(found)
    leaderboard_report.save(found, tmp_path)
    names = {"ranks", "leaderboard-balanced", "leaderboard-uniform"}
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}.{kind}" for name in names for kind in ("png", "pdf")}


def test_readme_has_the_table_and_the_diagram_or_else_the_command(tmp_path: Path) -> None:
    path = Path(__file__).parents[1] / "benchmarks" / "readme.py"
    spec = spec_from_file_location("readme", path)
    assert spec is not None
    assert spec.loader is not None
    readme = module_from_spec(spec)
    spec.loader.exec_module(readme)
    readme.RESULTS, page = tmp_path, tmp_path / "README.md"
    page.write_text("before\n<!-- leaderboard -->\nold\n<!-- /leaderboard -->\nafter\n")
    readme.put("leaderboard", readme.measured("leaderboard"), page)
    lines = page.read_text().splitlines()
    assert lines[0] == "before"
    assert lines[2:] == ["Not computed yet: `pairmargin experiment run leaderboard`", "<!-- /leaderboard -->", "after"]
    (tmp_path / "leaderboard.md").write_text(markdown(table(board())))
    readme.put("leaderboard", readme.measured("leaderboard"), page)
    assert "| pairmargin | **1.00** |" in page.read_text()
    assert "](results/figures/ranks.png)\n<!-- /leaderboard -->" in page.read_text()
