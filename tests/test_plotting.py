"""The Displays: what they keep, what they draw, whose axes they use, and how they look."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
import scipy.sparse as sp
from golden_plots import FOLDER, PAGE, PICTURES, run_page, save
from matplotlib.colors import same_color, to_hex
from matplotlib.testing.compare import compare_images
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine, make_blobs
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

import pairmargin
from pairmargin import (
    ITML,
    KISSME,
    ClusterMapDisplay,
    ConstraintGraphDisplay,
    InvalidDataError,
    InvalidPairsError,
    InvalidParameterError,
    LearningCurveDisplay,
    MaxMarginClustering,
    MissingPackageError,
    ObjectiveDisplay,
    PairRocDisplay,
    Pairs,
    PCKMeans,
    pair_roc,
    sample_pairs,
)
from pairmargin.looks import ALARM, INKS, cluster_look
from pairmargin.plotting.graph_layout import laid_out, moved_apart
from pairmargin.plotting.learning_curve import _mixed_order


@pytest.fixture(autouse=True)
def no_figure_stays_open():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


@pytest.fixture(scope="module")
def pairs(wine):
    return sample_pairs(wine[1], 100, random_state=0)


@pytest.fixture(scope="module")
def model(wine, pairs):
    return MaxMarginClustering(3, (5,), pretrain_epochs=2, max_iter=20, random_state=0).fit(wine[0], pairs=pairs)


# How they look


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_as_they_were(name, tmp_path):
    """Draw them anew with ``python tests/golden_plots.py`` if they are meant to differ, and look at them."""
    golden = FOLDER / f"{name}.png"
    assert golden.stat().st_size < 30_000
    assert compare_images(str(golden), str(save(name, tmp_path)), tol=2) is None


def test_settings_of_matplotlib_stay_the_users(model, wine, pairs):
    before = mpl.rcParams.copy()
    ClusterMapDisplay.from_estimator(model, wine[0], pairs=pairs)
    PairRocDisplay.from_estimator(model, wine[0], pairs)
    ObjectiveDisplay.from_estimator(model)
    ConstraintGraphDisplay.from_pairs(pairs)
    assert mpl.rcParams == before


def test_text_follows_a_dark_style(model, wine):
    with plt.style.context("dark_background"):
        drawn = ClusterMapDisplay.from_estimator(model, wine[0])
        line = ObjectiveDisplay.from_estimator(model).line_
    assert same_color(drawn.texts_[0].get_color(), "white")
    assert same_color(line.get_color(), "white")


def test_drawing_libraries_are_imported_when_something_is_drawn():
    code = "from pairmargin import ClusterMapDisplay, PairRocDisplay; import sys; print('matplotlib' in sys.modules)"
    path = f"import sys; sys.path.insert(0, {str(Path(pairmargin.__file__).parents[1])!r})"
    run = subprocess.run([sys.executable, "-c", f"{path}; {code}"], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_missing_packages_are_named_with_the_command_that_brings_them(monkeypatch, wine):
    X, y = wine
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # as if it were not installed
    for draw in (
        lambda: PairRocDisplay.from_predictions([True, False], [1, 0]),
        lambda: ClusterMapDisplay.from_predictions(X, y),
        lambda: LearningCurveDisplay.from_estimator("never looked at", X, None),
        lambda: ObjectiveDisplay.from_history([{"iteration": 0}]),
        lambda: ConstraintGraphDisplay.from_pairs(Pairs([(0, 1)], [True])),
    ):
        with pytest.raises(MissingPackageError, match=r'run: pip install "pairmargin\[plots\]"'):
            draw()
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(
        MissingPackageError, match=r'method="umap" needs umap, .* run: pip install "pairmargin\[umap\]"'
    ):
        ClusterMapDisplay.from_predictions(*wine, method="umap")


# Whose axes they use


def test_given_axes_are_drawn_into_and_none_are_made(model, wine, pairs):
    figure, axes = plt.subplots(1, 4)
    spines = axes[0].spines["top"].get_visible()
    displays = [
        ClusterMapDisplay.from_estimator(model, wine[0], ax=axes[0]),
        PairRocDisplay.from_estimator(model, wine[0], pairs, ax=axes[1]),
        ObjectiveDisplay.from_estimator(model, ax=axes[2]),
        ConstraintGraphDisplay.from_pairs(pairs, ax=axes[3]),
    ]
    assert [display.ax_ for display in displays] == list(axes)
    assert {display.figure_ for display in displays} == {figure}
    assert plt.get_fignums() == [figure.number]
    assert axes[0].spines["top"].get_visible() == spines


def test_a_display_can_be_drawn_again(model, wine, pairs):
    for display in (
        ClusterMapDisplay.from_estimator(model, wine[0], pairs=pairs),
        PairRocDisplay.from_estimator(model, wine[0], pairs),
        ObjectiveDisplay.from_estimator(model),
        ConstraintGraphDisplay.from_pairs(pairs),
        LearningCurveDisplay(train_sizes=[1, 2], scores=[[0.5], [0.6]]).plot(),
    ):
        first = display.ax_
        assert display.plot() is display
        assert display.ax_ is not first


def test_the_code_of_the_page_about_pictures_runs():
    shown = [file for file, _ in run_page()]
    assert len(shown) == 5
    assert all((PAGE.parent / file).stat().st_size < 70_000 for file in shown)


# The cluster map


def test_map_shows_the_codes_by_cluster(model, wine):
    display = ClusterMapDisplay.from_estimator(model, wine[0], s=7)
    codes = PCA(2).fit_transform(model.transform(wine[0]))
    np.testing.assert_allclose(np.abs(display.points), np.abs(codes), atol=1e-6)
    assert list(display.points_) == [0, 1, 2]
    for cluster, dots in display.points_.items():
        assert len(dots.get_offsets()) == (model.labels_ == cluster).sum()
        assert to_hex(dots.get_facecolor()[0]) == cluster_look(cluster)["color"]
        assert dots.get_sizes().tolist() == [7]
    assert [text.get_text() for text in display.texts_] == ["0", "1", "2"]
    assert display.note_ is None
    assert "% of the variance" in display.ax_.get_xlabel()


def test_map_of_a_pipeline_and_of_models_without_codes(wine, pairs):
    X, _ = wine
    step = KMeans(3, n_init=1, random_state=0)
    display = ClusterMapDisplay.from_estimator(make_pipeline(StandardScaler(), step).fit(X), X)
    np.testing.assert_allclose(np.abs(display.points), np.abs(PCA(2).fit_transform(scale(X))))
    pck = PCKMeans(3, random_state=0).fit(X, pairs=pairs)
    assert ClusterMapDisplay.from_estimator(pck, X).labels.tolist() == pck.predict(X).tolist()
    with pytest.raises(InvalidParameterError, match="KISSME has no clusters for these 178 rows"):
        ClusterMapDisplay.from_estimator(KISSME().fit(X, pairs=pairs), X)


def test_answers_are_lines_and_those_not_kept_are_red():
    X, labels = np.array([[0.0, 0], [1, 0], [5, 5], [6, 5]]), [0, 0, 1, 1]
    pairs = Pairs.from_lists(must_link=[(0, 1), (0, 2)], cannot_link=[(1, 3), (2, 3), (1, 2)])
    display = ClusterMapDisplay.from_predictions(X, labels, pairs=pairs)
    counts = {kind: len(lines.get_segments()) for kind, lines in display.lines_.items()}
    assert counts == {"same": 1, "different": 2, "broken same": 1, "broken different": 1}
    for kind, lines in display.lines_.items():
        assert same_color(lines.get_colors()[0][:3], ALARM if "broken" in kind else INKS["f6"])
        assert (lines.get_linestyles()[0][1] is None) == ("same" in kind)  # dashes
    np.testing.assert_allclose(display.lines_["broken same"].get_segments()[0], display.points[[0, 2]])
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["“same”", "“different”", "not kept"]


def test_many_points_are_sampled_and_the_map_says_so():
    X, y = make_blobs(6000, 4, centers=3, random_state=0)
    pairs = Pairs.from_lists([(0, 5999), (17, 3000)], [(4, 5)])
    display = ClusterMapDisplay.from_predictions(X, y, pairs=pairs, max_points=2500, random_state=0)
    assert len(display.points) == len(set(display.rows)) == 2500
    assert set(pairs.points) <= set(display.rows)
    assert display.note_.get_text() == "2,500 of 6,000 points shown"
    assert all(dots.get_rasterized() for dots in display.points_.values())
    np.testing.assert_array_equal(display.labels, y[display.rows])
    np.testing.assert_allclose(np.abs(display.points), np.abs(PCA(2).fit_transform(X)[display.rows]), atol=1e-8)


@pytest.mark.parametrize("n_clusters", [2, 10, 30, 50])
def test_no_two_clusters_look_alike(n_clusters):
    looks = [tuple(cluster_look(k).values()) for k in range(n_clusters)]
    assert len(set(looks)) == n_clusters
    assert ALARM not in INKS.values()


def test_numbers_of_clusters_do_not_cover_each_other():
    X, y = make_blobs(600, 8, centers=30, cluster_std=4, random_state=0)
    display = ClusterMapDisplay.from_predictions(X, y)
    display.figure_.canvas.draw()
    boxes = [text.get_window_extent() for text in display.texts_]
    covered = sum(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])
    assert len(boxes) == 30
    assert covered <= 3


def test_maps_by_other_methods(wine):
    X, y = wine
    display = ClusterMapDisplay.from_predictions(X[:40], y[:40], method="tsne", random_state=0)
    again = ClusterMapDisplay.from_predictions(X[:40], y[:40], method="tsne", random_state=0)
    np.testing.assert_array_equal(display.points, again.points)
    assert display.ax_.get_xlabel() == "t-SNE: only neighbourhoods mean something"
    own = ClusterMapDisplay.from_predictions(X, y, method=PCA(2))
    assert own.ax_.get_xlabel() == "PCA"
    with pytest.raises(InvalidParameterError, match=r"PCA gives shape \(178, 3\); a map needs 2 columns"):
        ClusterMapDisplay.from_predictions(X, y, method=PCA(3))
    with pytest.raises(InvalidParameterError, match=r"there is no method 'tsn' \(did you mean 'tsne'\?\)"):
        ClusterMapDisplay.from_predictions(X, y, method="tsn")


@pytest.mark.parametrize(
    ("X", "labels"),
    [
        (np.arange(5.0)[:, None], [0, 0, 1, 1, 1]),  # one column
        (np.zeros((4, 3)), [0, 1, 0, 1]),  # no variance
        (np.ones((1, 2)), ["a"]),  # one point
        (sp.csr_array(np.eye(6)), list("aabbcc")),  # sparse, and names for labels
    ],
    ids=["one column", "all the same", "one point", "sparse"],
)
def test_odd_data_can_be_mapped(X, labels):
    display = ClusterMapDisplay.from_predictions(X, labels)
    assert display.points.shape == (X.shape[0], 2)
    assert np.isfinite(display.points).all()
    assert [text.get_text() for text in display.texts_] == [str(label) for label in np.unique(labels)]


def test_map_refuses_what_does_not_fit(wine):
    X, y = wine
    with pytest.raises(InvalidDataError, match=r"X has shape \(178, 13\) and labels \(3,\)"):
        ClusterMapDisplay.from_predictions(X, y[:3])
    with pytest.raises(InvalidPairsError, match="names row 500 but the data has 178 rows"):
        ClusterMapDisplay.from_predictions(X, y, pairs=Pairs([(0, 500)], [True]))
    with pytest.raises(InvalidParameterError, match="max_points=0 must be an integer, 1 or more"):
        ClusterMapDisplay.from_predictions(X, y, max_points=0)


# ROC curves


def test_roc_is_that_of_the_pair_score(model, wine, pairs):
    display = PairRocDisplay.from_estimator(model, wine[0], pairs)
    roc = pair_roc(pairs, model.pair_score(wine[0], pairs))
    assert display.roc_auc == roc.auc
    np.testing.assert_array_equal(display.line_.get_xdata(), roc.fpr)
    assert display.line_.get_label() == f"MaxMarginClustering  {roc.auc:.3f}"


def test_several_curves_share_axes_and_one_line_of_chance(wine, pairs):
    X, _ = wine
    first = PairRocDisplay.from_estimator(KISSME().fit(X, pairs=pairs), X, pairs)
    pipeline = make_pipeline(StandardScaler(), ITML()).fit(X, itml__pairs=pairs)
    second = PairRocDisplay.from_estimator(pipeline, X, pairs, ax=first.ax_, name="mine", linestyle="--")
    third = PairRocDisplay.from_estimator(PCKMeans(3, random_state=0).fit(X, pairs=pairs), X, pairs, ax=first.ax_)
    assert second.chance_line_ is third.chance_line_ is None
    assert len({display.line_.get_color() for display in (first, second, third)}) == 3
    assert second.line_.get_linestyle() == "--"
    texts = [text.get_text().split("  ")[0] for text in first.ax_.get_legend().get_texts()]
    assert texts == ["KISSME", "mine", "PCKMeans", "chance"]
    assert PairRocDisplay.from_predictions(pairs, pairs.same, chance=False).chance_line_ is None


# Learning curves


class Notes(KISSME):
    """Notes the answers that every clone is fitted on."""

    seen: list[Pairs | None] = []  # noqa: RUF012, shared by all clones on purpose

    def fit(self, X, y=None, *, pairs=None):
        self.seen.append(pairs)
        return super().fit(X, pairs=pairs)


def as_set(pairs: Pairs | None) -> set[tuple[int, int]]:
    return set() if pairs is None else set(map(tuple, pairs.index.tolist()))


def test_each_set_of_answers_holds_the_one_before_and_none_held_out(wine, pairs):
    Notes.seen.clear()
    tested = []

    def score(model, X, test):
        tested.append(test)
        return 0.5

    display = LearningCurveDisplay.from_estimator(
        Notes(), wine[0], pairs, train_sizes=[0, 10, 40, 70], scoring=score, n_repeats=2, random_state=0
    )
    assert display.train_sizes.tolist() == [0, 10, 40, 70]
    assert display.scores.shape == (4, 2)
    assert display.ax_.get_ylabel() == "score"
    for repeat in range(2):
        sets = [as_set(seen) for seen in Notes.seen[4 * repeat : 4 * repeat + 4]]
        assert [len(each) for each in sets] == [0, 10, 40, 70]
        assert all(small < large for small, large in itertools.pairwise(sets))
        assert not sets[-1] & as_set(tested[4 * repeat])
        assert len(sets[-1] | as_set(tested[4 * repeat])) == 100


def test_more_answers_give_better_metrics(wine):
    X, y = wine
    train, test = sample_pairs(y, 600, random_state=0).split(300, random_state=0)
    display = LearningCurveDisplay.from_estimator(
        KISSME(), X, train, test_pairs=test, train_sizes=(0.05, 1.0), n_repeats=4, random_state=0
    )
    assert display.train_sizes.tolist() == [15, 300]
    assert display.scores[1].mean() > display.scores[0].mean() + 0.03
    assert np.ptp(display.scores[1]) == 0  # all answers: every order is the same set
    np.testing.assert_allclose(display.line_.get_ydata(), display.scores.mean(axis=1))
    assert display.band_ is not None
    assert display.ax_.get_ylabel() == "AUC of held-out answers"


def test_accuracy_where_classes_are_known_and_agreement_where_not(wine, pairs):
    X, y = wine
    pck = PCKMeans(3, n_init=1, random_state=0)
    curve = LearningCurveDisplay.from_estimator(pck, X, pairs, y, train_sizes=[50], n_repeats=1, random_state=0)
    assert curve.ax_.get_ylabel() == "accuracy"
    assert curve.band_ is None
    assert 0.8 < curve.scores[0, 0] <= 1
    other = LearningCurveDisplay.from_estimator(
        pck, X, pairs, scoring="agreement", train_sizes=[50], n_repeats=1, random_state=0, ax=curve.ax_, name="two"
    )
    assert 0.8 < other.scores[0, 0] <= 1
    assert other.line_.get_color() != curve.line_.get_color()
    assert [text.get_text() for text in curve.ax_.get_legend().get_texts()] == ["PCKMeans", "two"]


def test_both_kinds_of_answers_are_well_mixed():
    same = np.arange(100) < 20
    order = _mixed_order(same, np.random.RandomState(0))
    assert sorted(order) == list(range(100))
    for cut in (10, 25, 50, 75):
        assert abs(same[order[:cut]].sum() - 0.2 * cut) <= 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"train_sizes": [10, 90]}, r"train_sizes=\[10, 90\] should be numbers of answers from 0 to 70"),
        ({"train_sizes": [0.5, 1.5]}, r"or shares from 0.0 to 1.0"),
        ({"train_sizes": []}, r"train_sizes=\[\] should be numbers"),
        ({"scoring": "auk"}, r"there is no scoring 'auk' \(did you mean 'auc'\?\)"),
        ({"scoring": "accuracy"}, "needs the true classes; pass y"),
        ({"n_repeats": 0}, "n_repeats=0 must be an integer, 1 or more"),
    ],
)
def test_learning_curve_refuses_settings_that_cannot_work(settings, message, wine, pairs):
    with pytest.raises(InvalidParameterError, match=message):
        LearningCurveDisplay.from_estimator(KISSME(), wine[0], pairs, **settings)
    with pytest.raises(InvalidDataError, match=r"scores have shape \(2, 1\) .* of shape \(3,\); give a row of scores"):
        LearningCurveDisplay(train_sizes=[1, 2, 3], scores=[[1], [2]])


# The objective


def test_parts_stack_up_to_the_objective(model):
    display = ObjectiveDisplay.from_estimator(make_pipeline(StandardScaler(), model), color="red")
    assert list(display.parts_) == ["norm", "free", "must_link", "cannot_link", "neighbours"]  # balance has no price
    top = display.parts_["neighbours"].get_paths()[0].vertices
    for row in model.history_:
        assert max(y for x, y in top if x == row["iteration"]) == pytest.approx(row["objective"])
    assert min(display.line_.get_ydata()) == model.objective_
    assert display.line_.get_color() == "red"


def test_objective_needs_a_history(wine):
    with pytest.raises(InvalidParameterError, match="KISSME has no history_; give a MaxMarginClustering"):
        ObjectiveDisplay.from_estimator(KISSME())
    with pytest.raises(InvalidDataError, match="the history has no rows"):
        ObjectiveDisplay.from_history([])


# The graph of the answers


def test_graph_keeps_groups_together_and_marks_contradictions():
    pairs = Pairs.from_lists([(0, 1), (1, 2), (5, 6)], [(0, 5), (0, 2), (8, 9)])
    display = ConstraintGraphDisplay.from_pairs(pairs)
    counts = {kind: len(lines.get_segments()) for kind, lines in display.lines_.items()}
    assert counts == {"same": 1, "different": 2, "broken same": 2, "broken different": 1}
    assert len(display.conflicts) == 1
    assert [text.get_text() for text in display.texts_] == ["0", "1", "2", "5", "6", "8", "9"]
    assert len(display.discs) == 2
    for rows, (x, y, radius) in zip([(0, 1, 2), (5, 6)], display.discs, strict=True):
        places = display.places[np.searchsorted(pairs.points, rows)]
        assert (np.linalg.norm(places - (x, y), axis=1) < radius).all()


@pytest.mark.parametrize("n", [20, 100, 400])
def test_no_two_dots_of_a_graph_touch_and_no_two_discs_overlap(n, wine):
    pairs = sample_pairs(wine[1], n, random_state=0)
    places, discs = laid_out(pairs)
    apart = np.linalg.norm(places[:, None] - places[None], axis=-1) + 9 * np.eye(len(places))
    assert apart.min() > 0.8  # the diameter of a dot
    between = np.linalg.norm(discs[:, None, :2] - discs[None, :, :2], axis=-1) - discs[:, None, 2] - discs[None, :, 2]
    assert (between + 1e3 * np.eye(len(discs))).min() > 0


def test_the_same_answers_give_the_same_graph(pairs):
    one, other = (ConstraintGraphDisplay.from_pairs(pairs) for _ in range(2))
    np.testing.assert_array_equal(one.places, other.places)


def test_a_large_graph_shows_its_largest_parts_and_says_so():
    pairs = sample_pairs(np.arange(400) % 10, 150, random_state=0)
    display = ConstraintGraphDisplay.from_pairs(pairs, max_groups=30)
    assert display.n_shown <= 30 < display.n_groups
    assert display.note_.get_text() == f"{display.n_shown} of {display.n_groups} groups shown"
    assert display.texts_ == []
    assert as_set(display.pairs) < as_set(pairs)


def test_dots_have_the_colours_of_their_clusters():
    pairs = Pairs.from_lists([(0, 1)], [(1, 3)])
    display = ConstraintGraphDisplay.from_pairs(pairs, labels=["a", "b", "c", "b"])
    colours = [to_hex(colour) for colour in display.points_.get_facecolor()]
    assert colours == [cluster_look(0)["color"], cluster_look(1)["color"], cluster_look(1)["color"]]


def test_graph_refuses_what_it_cannot_draw():
    with pytest.raises(InvalidPairsError, match="there are no answers to draw"):
        ConstraintGraphDisplay.from_pairs(Pairs.empty())
    with pytest.raises(InvalidDataError, match=r"labels have shape \(2,\) but the pairs name row 3"):
        ConstraintGraphDisplay.from_pairs(Pairs([(0, 3)], [True]), labels=[0, 1])
    with pytest.raises(InvalidParameterError, match="max_groups=0 must be an integer, 1 or more"):
        ConstraintGraphDisplay.from_pairs(Pairs([(0, 3)], [True]), max_groups=0)
    with pytest.raises(InvalidPairsError, match="max_groups=1 leaves no answer to draw"):
        ConstraintGraphDisplay.from_pairs(Pairs([(0, 3)], [False]), max_groups=1)


def test_discs_are_moved_apart_and_others_left_alone():
    place = moved_apart(np.array([[0.0, 0], [0, 0], [10, 10]]), np.ones(3))
    assert np.linalg.norm(place[0] - place[1]) > 1.99
    np.testing.assert_allclose(place[2], [10, 10], atol=1e-5)
