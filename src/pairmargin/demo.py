"""``pairmargin demo``: handwritten digits from 100 answers, and what the report shows of them.

The true digits answer the questions that a person would answer, and score the result; no method sees them.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from ._version import __version__
from .datasets import load_dataset
from .estimator import MaxMarginClustering
from .exceptions import InvalidParameterError
from .looks import parts_of
from .metrics import PairRoc, clustering_accuracy, pair_roc
from .objective import pair_margins
from .pairs import Pairs, sample_pairs
from .report import Answers, Chart, Report, Scatter, Section, Series, Sheet, Sheets, Table, Tile

Array = NDArray[Any]
OnStep = Callable[[str, Mapping[str, Any]], None]  # the stage, and a row whose "phase" says what has happened
KMEANS, PRESET, DEFAULT, MAPS = "k-means, no answers", "the paper's preset", "our default", "two maps"
N_DIGITS, HELD_OUT, TYPICAL, BORDER = 10, 100, 40, 10


@dataclass(frozen=True)
class Task:
    """The images, the answers to learn from and those to score with."""

    X: Array  # (n, 64), ink from 0 to 1
    y: Array  # (n,) the true digits
    pairs: Pairs
    held_out: Pairs
    seed: int
    source: str


@dataclass(frozen=True)
class Outcome:
    """What one method found."""

    name: str
    labels: Array  # (n,)
    margins: Array  # (n,) how much better the best cluster is than the second
    stands_for: Array  # (K,) the digit of every cluster, matched one to one
    accuracy: float
    ari: float
    roc: PairRoc
    seconds: float
    codes: Array  # (n, d) what the method sees of an image
    settings: str
    history: Sequence[Mapping[str, float]] = ()


@dataclass(frozen=True)
class Demo:
    """Everything that the table and the report show."""

    task: Task
    outcomes: tuple[Outcome, Outcome, Outcome]  # k-means, the paper's preset, our default
    maps: tuple[Array, Array]  # (n, 2) each: of the codes before and after training

    def rows(self) -> list[list[str]]:
        """The table as text: method, accuracy, ARI, AUC, seconds."""
        return [
            [o.name, f"{o.accuracy:.1%}", f"{o.ari:.3f}", f"{o.roc.auc:.3f}", f"{o.seconds:.1f}"] for o in self.outcomes
        ]


def draw(n_pairs: int = 100, seed: int = 0, *, n_samples: int | None = None) -> Task:
    """Load the digits and draw the answers.

    Parameters
    ----------
    n_pairs : int, default=100
        How many answers to learn from; 100 more are held out to score with.
    seed : int, default=0
        Of the draw, and of everything after it.
    n_samples : int, optional
        Take only so many of the 1797 images.

    Returns
    -------
    task : Task
    """
    digits = load_dataset("digits")
    X, y = digits.data[:n_samples] / 16, digits.target[:n_samples]
    counts = np.bincount(y)
    most = int((counts * (counts - 1)).sum()) - HELD_OUT  # half of the pairs drawn are "same" ones
    if not 1 <= n_pairs <= most:
        raise InvalidParameterError(f"{n_pairs} pairs cannot be drawn; ask for 1 to {most}, such as --pairs 100")
    drawn = sample_pairs(y, n_pairs + HELD_OUT, random_state=seed)
    return Task(X, y, *drawn.split(HELD_OUT, random_state=seed), seed, f"{digits.title}; {digits.terms}")


def run(task: Task, *, on_step: OnStep | None = None, **settings: Any) -> Demo:
    """Cluster with three methods, and draw two maps.

    Parameters
    ----------
    task : Task
        From `draw`.
    on_step : callable, optional
        Called with a stage and a row: at its start, at its end, and whenever the estimator calls back.
    **settings
        Of both `MaxMarginClustering` models, in place of what the preset and the default say.

    Returns
    -------
    demo : Demo
    """
    report = on_step or (lambda stage, row: None)
    with threadpool_limits(1):  # at this size more threads cost more than they give
        outcomes = (
            _kmeans(task, report),
            _ours(PRESET, MaxMarginClustering.paper, task, report, settings),
            _ours(DEFAULT, MaxMarginClustering, task, report, settings),
        )
        pretrained = MaxMarginClustering(N_DIGITS, random_state=task.seed, **(settings | {"max_iter": 0})).fit(task.X)
        maps = _maps(task, pretrained.transform(task.X), outcomes[-1].codes, report)
    return Demo(task, outcomes, maps)


def _kmeans(task: Task, report: OnStep) -> Outcome:
    """k-means on the pixels, as a model with scores: minus the squared distance to each centre."""
    report(KMEANS, {"phase": "start", "steps": 1})
    began = time.perf_counter()
    model = KMeans(N_DIGITS, n_init=10, random_state=task.seed).fit(task.X)
    seconds = time.perf_counter() - began
    report(KMEANS, {"phase": "end"})
    settings = f"KMeans(n_clusters={N_DIGITS}, n_init=10, random_state={task.seed}) on the pixels"
    scores = -(model.transform(task.X) ** 2)
    return Outcome(KMEANS, **_judged(task, scores), seconds=seconds, codes=task.X, settings=settings)


def _ours(
    name: str, make: Callable[..., MaxMarginClustering], task: Task, report: OnStep, changes: dict[str, Any]
) -> Outcome:
    """One of our models, fitted to the answers."""
    model = make(N_DIGITS, random_state=task.seed, callback=lambda row: report(name, row), **changes)
    report(name, {"phase": "start", "steps": model.pretrain_epochs + model.max_iter})
    began = time.perf_counter()
    model.fit(task.X, pairs=task.pairs)
    seconds = time.perf_counter() - began
    report(name, {"phase": "end"})
    told = ("hidden_layer_sizes", "init", "solver", "weight_penalty", "free_weight", "max_iter", "pretrain_epochs")
    settings = [f"{setting}={getattr(model, setting)!r}" for setting in told]
    return Outcome(
        name,
        **_judged(task, model.decision_function(task.X)),
        seconds=seconds,
        codes=model.transform(task.X),
        settings=f"{', '.join(settings)}; {model.visible_} units, {model.n_iter_} iterations",
        history=model.history_,
    )


def _judged(task: Task, scores: Array) -> dict[str, Any]:
    """What the scores (n, K) of a method are worth: every method is judged in the same way."""
    labels = scores.argmax(1)
    second, first = np.partition(scores, -2, axis=1)[:, -2:].T
    counts = np.zeros((N_DIGITS, N_DIGITS))
    np.add.at(counts, (labels, task.y), 1)
    pair_scores = pair_margins(torch.from_numpy(scores), torch.from_numpy(task.held_out.index.copy()))
    return {
        "labels": labels,
        "margins": first - second,
        "stands_for": linear_sum_assignment(counts, maximize=True)[1],
        "accuracy": clustering_accuracy(task.y, labels),
        "ari": float(adjusted_rand_score(task.y, labels)),
        "roc": pair_roc(task.held_out, pair_scores.numpy()),
    }


def _maps(task: Task, pretrained: Array, learned: Array, report: OnStep) -> tuple[Array, Array]:
    """t-SNE of the codes before and after training, from the same start so that places can be compared."""
    report(MAPS, {"phase": "start", "steps": 2})
    start = PCA(2, svd_solver="full").fit_transform(task.X)
    tsne = TSNE(init=start / start[:, 0].std() * 1e-4, max_iter=400, random_state=task.seed)
    before = tsne.fit_transform(pretrained)
    report(MAPS, {"phase": "step"})
    after = tsne.fit_transform(learned)
    report(MAPS, {"phase": "end"})
    return before, after


def build_report(demo: Demo) -> Report:
    """Lay out what was found.

    Parameters
    ----------
    demo : Demo
        From `run`.

    Returns
    -------
    report : Report
        For `pairmargin.report.write`.
    """
    task, (kmeans, _, ours) = demo.task, demo.outcomes
    n, n_pairs = len(task.y), len(task.pairs)
    lead = (
        f"Nobody told the computer what a digit is. It looked at {n:,} images of handwriting, heard {n_pairs:,} times "
        "whether two of them are the same digit, and sorted all the images into ten clusters. Without any answer, "
        f"k-means puts {kmeans.accuracy:.1%} of them in the right place; with the answers it is {ours.accuracy:.1%}."
    )
    numbers = [
        (f"{n:,}", "images"),
        (f"{n_pairs:,}", f"answered, of {n * (n - 1) // 2:,} possible pairs"),
        (f"{kmeans.accuracy:.1%}", "right without answers: k-means"),
        (f"{ours.accuracy:.1%}", "right with answers: our default"),
    ]
    sections = [_answers(task), _results(demo), _clusters(task, ours), _before_after(demo), _objectives(demo)]
    title = f"Handwritten digits, sorted from {n_pairs:,} {'answer' if n_pairs == 1 else 'answers'}"
    return Report(title, lead, numbers, sections, _facts(demo))


def _answers(task: Task) -> Section:
    """A few of the answers."""
    rng = np.random.default_rng(task.seed)
    links = ((task.pairs.must_link, True), (task.pairs.cannot_link, False))
    shown = [(_tile(task, i), _tile(task, j), same) for index, same in links for i, j in rng.permutation(index)[:6]]
    text = (
        f"Two images and one word: that is all a person has to say. Here are {len(shown)} of the "
        f"{len(links[0][0]):,} “same” and {len(links[1][0]):,} “different”. In this demo the words were read off the "
        "true digits; no method sees the digits themselves."
    )
    return Section("What an answer is", [text], [Answers(shown)])


def _results(demo: Demo) -> Section:
    """The three methods side by side: a table, and the ROC curves on held-out pairs."""
    measured = np.array([[o.accuracy, o.ari, o.roc.auc, -o.seconds] for o in demo.outcomes])
    best = frozenset((int(row), column + 1) for column, row in enumerate(measured.argmax(0)))
    table = Table(["method", "accuracy", "ARI", "AUC", "seconds"], demo.rows(), best)
    lines = [
        Series(f"{o.name}: AUC {o.roc.auc:.3f}", o.roc.fpr, o.roc.tpr, colour, dashes=dashes)
        for o, (colour, dashes) in zip(demo.outcomes, ((None, "2 5"), (9, "8 4"), (0, "")), strict=True)
    ]
    title, caption = f"{HELD_OUT} held-out pairs", "ROC curves: the closer to the upper left corner, the better."
    chart = Chart(title, caption, "unequal pairs called same", "equal pairs called same", lines, 1, 1)
    text = [
        "Accuracy is the share of all images in the right place, when every cluster stands for one digit and the two "
        "are matched as well as can be. ARI, the adjusted Rand index, is 0 for chance and 1 for a perfect result.",
        f"AUC is measured on {HELD_OUT} further pairs that no method has heard an answer to. Sort them from surely the "
        "same to surely different: wherever the list is cut, the curve says how many of the equal pairs are above the "
        "cut and how many unequal ones have slipped in. AUC is the area under it, the chance that an equal pair stands "
        "above an unequal one.",
        "All three methods score a pair in the same way: the best that one cluster for both images can reach, minus "
        "the best that two different clusters can reach. For k-means, the score of a cluster is minus the squared "
        "distance to its centre.",
    ]
    return Section("How well it went", text, [table, chart], beside=True)


def _clusters(task: Task, ours: Outcome) -> Section:
    """A contact sheet of every cluster, in the order of the digits they stand for."""
    sheets = [_sheet(task, ours, int(cluster)) for cluster in np.argsort(ours.stands_for)]
    text = (
        f"The ten clusters of {DEFAULT}. On top the {TYPICAL} images it is surest of, below those at the border, where "
        "the best cluster hardly beats the second. Frames mark images in the wrong place. The digit of a cluster, its "
        "share and the frames come from the true digits, which serve here only to score."
    )
    return Section("What is in each cluster", [text], [Sheets(sheets)])


def _sheet(task: Task, outcome: Outcome, cluster: int) -> Sheet:
    digit = int(outcome.stands_for[cluster])
    members = np.flatnonzero(outcome.labels == cluster)
    members = members[np.argsort(-outcome.margins[members], kind="stable")]
    facts = "empty"
    if len(members):
        counts = np.bincount(task.y[members], minlength=N_DIGITS)
        facts = f"{len(members):,} images, {counts[digit] / len(members):.0%} of them {digit}s"
        facts += "" if counts.argmax() == digit else f" (most are {counts.argmax()}s)"
    border = members[TYPICAL:][-BORDER:]
    tiles = [[_tile(task, row, digit) for row in rows] for rows in (members[:TYPICAL], border)]
    return Sheet(str(digit), facts, digit, *tiles)


def _tile(task: Task, row: int, expected: int | None = None) -> Tile:
    """One image; wrong if it is not the digit expected."""
    digit = int(task.y[row])
    return Tile(task.X[row].reshape(8, 8), f"image {row}, a {digit}", expected is not None and digit != expected)


def _before_after(demo: Demo) -> Section:
    """Two maps of all the images."""
    kmeans, _, ours = demo.outcomes
    maps = [
        _map(
            "Before: the pretrained codes", f"Colours: the clusters of {kmeans.name}.", demo.task, kmeans, demo.maps[0]
        ),
        _map("After: the learned codes", f"Colours: the clusters of {ours.name}.", demo.task, ours, demo.maps[1]),
    ]
    text = (
        "Every dot is an image, and images that are alike lie close together (t-SNE; only neighbourhoods mean "
        "something, not the distance between far groups). Both maps show codes, what the network says of an image: "
        "the first when it has looked at the images but heard no answer, the second when it has learned from the "
        "answers. Ringed dots are in the wrong cluster; point at one to see its digit."
    )
    return Section("Before and after", [text], maps)


def _map(title: str, caption: str, task: Task, outcome: Outcome, points: Array) -> Scatter:
    colours = outcome.stands_for[outcome.labels]
    wrong = np.flatnonzero(colours != task.y)
    return Scatter(
        title,
        f"{caption} {len(wrong):,} of {len(colours):,} images are in the wrong one.",
        points,
        colours.tolist(),
        {int(row): f"a {task.y[row]} among the {colours[row]}s" for row in wrong},
        {digit: str(digit) for digit in range(N_DIGITS)},
    )


def _objectives(demo: Demo) -> Section:
    """What training has brought down, for the two models of ours."""
    rows = [row for o in demo.outcomes for row in o.history]
    x_max, y_max = (max(row[name] for row in rows) for name in ("iteration", "objective"))
    charts = [_objective(o.name, o.history, x_max, y_max) for o in demo.outcomes if o.history]
    text = (
        "Training lowers one number, the objective: the line on top, and the sum of the bands under it. An answer "
        "is broken as long as the model does not keep it with a margin of 1; images in no answer are pushed away from "
        "the borders between clusters, and close neighbours into one of them; and the head, which turns codes into "
        "cluster scores, is kept small."
    )
    return Section("How it learned", [text], charts)


def _objective(name: str, history: Sequence[Mapping[str, float]], x_max: float, y_max: float) -> Chart:
    x = np.array([row["iteration"] for row in history])
    terms = [
        Series(label, x, np.array([row[term] for row in history]), colour, band=True)
        for term, (label, colour) in parts_of(history).items()
    ]
    total = Series("objective", x, np.array([row["objective"] for row in history]))
    first, last = history[0]["objective"], history[-1]["objective"]
    caption = f"From {first:.3f} to {last:.3f} in {history[-1]['iteration']} iterations."
    return Chart(name, caption, "iteration", "objective", [*terms, total], x_max, y_max)


def _facts(demo: Demo) -> dict[str, str]:
    """The foot of the page: all that is needed to do it again."""
    task = demo.task
    versions = [f"{name} {version(name)}" for name in ("numpy", "scikit-learn", "torch")]
    return {
        "Do it again": f"pairmargin demo --seed {task.seed} --pairs {len(task.pairs)}",
        "Data": task.source,
        "Answers": f"{task.pairs.same.sum()} same and {(~task.pairs.same).sum()} different to learn from; "
        f"{task.held_out.same.sum()} same and {(~task.held_out.same).sum()} different held out",
        **{o.name: o.settings for o in demo.outcomes},
        "Maps": "t-SNE with perplexity 30 and 400 iterations, both from the two main directions of the pixels",
        "Versions": ", ".join([f"pairmargin {__version__}", f"Python {platform.python_version()}", *versions]),
    }
