"""What is run: the data sets, the methods and the cells of every table and figure of the paper's section 4, and ours.

A cell is one method on one draw of a data set: its answers, its start and, on MNIST, its images all follow from the
seed. The true labels draw the answers and score the result; no method sees them. Answers are drawn in one of two ways,
or one by one asked for by a strategy of `select_pairs`:

=========  ==============================================================================
balanced   half of them "same", half "different"
uniform    evenly among all pairs, as they come: of K classes of one size, 1 in K is "same"
asked-…    what the strategy of this name has asked for: see `questions`
=========  ==============================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..datasets import fetch_files, find_edition, load_dataset
from ..exceptions import ExperimentError, unknown_name
from ..pairs import Pairs, sample_pairs

Array = NDArray[Any]
BALANCED, UNIFORM = DRAWINGS = ("balanced", "uniform")
ASKED = {f"asked-{name}": name for name in ("default", "random", "uncertain", "explore", "min-max", "npu")}
UCI = ("glass", "wdbc", "wine", "sonar", "segmentation")
N_HELD_OUT = 1_000  # pairs to score on, where the paper does not say how many
IMAGES = ("mnist", "coil20", "coil100")
N_IMAGES = 5_000  # of MNIST's training part, § 4.2
WIDEST_METRIC = 400  # metrics of more columns than this are learned on WIDEST_METRIC // 4 principal components
LARGEST_SHARE = 0.5  # of the pairs of a kind, "same" or "different", that a draw may take, held-out ones included
RARER_PAIRS = {  # how many pairs a data set has of the kind that it has fewer of
    "glass": 5_921,
    "wdbc": 75_684,
    "wine": 5_324,
    "sonar": 10_761,
    "segmentation": 379_995,
    "reuters": 9_191_865,
    "mnist": 1_247_500,  # of 5000 images: no fewer, whatever the draw
    "coil20": 51_120,
    "coil100": 255_600,
    "digits": 160_596,
}
PAPER_LAYERS = {"mnist": (400, 200, 100), **dict.fromkeys(UCI, (64,)), "sonar": (100,)}  # § 4.1, § 4.2; else (100,)


@dataclass(frozen=True, order=True)
class Cell:
    """One fit: the unit of work, and the key of a row of the results."""

    dataset: str
    method: str
    n_pairs: int
    seed: int
    drawing: str = BALANCED

    def __str__(self) -> str:
        kind = "" if self.drawing == BALANCED else f"{self.drawing} "
        return f"{self.dataset}, {self.method}, {self.n_pairs} {kind}pairs, seed {self.seed}"


@dataclass(frozen=True)
class Task:
    """What a method is given, and what it is scored with."""

    X: Array  # (n, D)
    y: Array  # (n,) for the score alone
    n_clusters: int
    train: Pairs
    test: Pairs
    dataset: str
    seed: int


def fetch(datasets: Iterable[str]) -> None:
    """Download and check what is not here yet: once, and before anything else, rather than in every cell."""
    for name in sorted(datasets):
        fetch_files(name, find_edition(name))


def draw(cell: Cell) -> Task:
    """The data and the answers of a cell; the same for every method."""
    X, y = _load(cell.dataset)
    if cell.dataset == "mnist":
        rows = np.random.RandomState(cell.seed).choice(60_000, N_IMAGES, replace=False)
        X, y = X[rows], y[rows]
    n_test = n_held_out(cell.dataset, cell.n_pairs)
    train, test = sample_pairs(y, cell.n_pairs + n_test, random_state=cell.seed).split(n_test, random_state=cell.seed)
    if cell.drawing == UNIFORM:  # scored on the same pairs, so that the two drawings compare
        train = _uniform_pairs(y, cell.n_pairs, test, cell.seed)
    return Task(X, y, len(np.unique(y)), train, test, cell.dataset, cell.seed)


def n_held_out(dataset: str, n_pairs: int) -> int:
    """How many pairs a cell is scored on."""
    return N_HELD_OUT if dataset in IMAGES else n_pairs  # half and half, § 4.1


def can_be_drawn(dataset: str, n_pairs: int) -> bool:
    """Whether a data set is large enough for so many pairs and those held out: the rule of `LARGEST_SHARE`."""
    return (n_pairs + n_held_out(dataset, n_pairs)) / 2 <= LARGEST_SHARE * RARER_PAIRS[dataset]


def _uniform_pairs(y: Array, n_pairs: int, test: Pairs, seed: int) -> Pairs:
    """Pairs drawn evenly among all that are not held out."""
    pairs = sample_pairs(y, n_pairs + len(test), balanced=False, random_state=seed)
    taken = set(map(tuple, test.index.tolist()))
    free = [place for place, pair in enumerate(pairs.index.tolist()) if tuple(pair) not in taken]
    return pairs[np.random.RandomState(seed).permutation(free)[:n_pairs]]


@lru_cache(maxsize=1)
def _load(dataset: str) -> tuple[Array, Array]:
    """A data set, kept until the next one is asked for; what is wide is kept in single precision."""
    X, y = load_dataset(dataset, return_X_y=True)
    return (X.astype(np.float32) if X.shape[1] > 100 else X), y


# Methods ------------------------------------------------------------------------------------------------------------

Result = tuple[Array, Array | None]  # labels (n,), scores of the held-out pairs (m,): the higher, the more the same


@dataclass(frozen=True)
class Method:
    """A way to cluster, as it stands in the tables."""

    label: str
    kind: str  # "ours", "rival" of the paper, "peer" of today, or "variant" of ours
    cluster: Callable[[Task], Result]


def inputs(task: Task) -> Array:
    """X on the scale that our own first layer sees, so that no method is handicapped by its units."""
    import torch

    from ..inputs import DenseInput, Scaling

    scaled = Scaling.learn(task.X, "auto").apply(task.X, torch.device("cpu"))
    assert isinstance(scaled, DenseInput)
    return scaled.x.numpy()


def metric_inputs(task: Task) -> Array:
    """The same for those who learn a metric; where a matrix of all columns would be too large, principal components."""
    from sklearn.decomposition import PCA

    X = inputs(task)
    if X.shape[1] > WIDEST_METRIC:
        X = PCA(WIDEST_METRIC // 4, random_state=task.seed).fit_transform(X)
    return X


def agreement(labels: Array, pairs: Pairs) -> Array:
    """Scores of pairs from clusters alone: 1 for a pair in one cluster, else 0."""
    a, b = labels[pairs.index.T]
    return np.asarray(a == b, dtype=float)


def _ours(**changes: Any) -> Callable[[Task], Result]:
    """Our default settings, with changes."""

    def cluster(task: Task) -> Result:
        from ..estimator import MaxMarginClustering

        model = MaxMarginClustering(task.n_clusters, random_state=task.seed, **changes).fit(task.X, pairs=task.train)
        return model.labels_, model.pair_score(task.X, task.test)

    return cluster


def _paper(**changes: Any) -> Callable[[Task], Result]:
    """The paper's settings and layers, with changes."""

    def cluster(task: Task) -> Result:
        from ..estimator import MaxMarginClustering

        settings = {"hidden_layer_sizes": PAPER_LAYERS.get(task.dataset, (100,)), **changes}
        model = MaxMarginClustering.paper(task.n_clusters, random_state=task.seed, **settings)
        model.fit(task.X, pairs=task.train)
        return model.labels_, model.pair_score(task.X, task.test)

    return cluster


def _metric(name: str) -> Callable[[Task], Result]:
    """A metric learned from the answers, then kernel k-means, § 4.1."""

    def cluster(task: Task) -> Result:
        import pairmargin

        X = metric_inputs(task)
        metric = getattr(pairmargin, name)().fit(X, pairs=task.train)
        return _kernel_kmeans(metric.transform(X), task), metric.pair_score(X, task.test)

    return cluster


def _kernel_kmeans(X: Array, task: Task) -> Array:
    """Kernel k-means; where the answers call for fewer clusters, it is given as many as our own start would take."""
    from ..baselines.kernel_kmeans import KernelKMeans
    from ..cluster_count import clusters_to_use, joined

    def labels(n_clusters: int, n_init: int) -> Array:
        model = KernelKMeans(n_clusters, n_init=n_init, random_state=task.seed)
        return np.asarray(model.fit(X).labels_)

    n_clusters = clusters_to_use(task.n_clusters, task.train, lambda k: [labels(k, n_init=2)], len(task.y))
    found = labels(n_clusters, n_init=10)
    return found if n_clusters == task.n_clusters else joined(found, task.train)


def _cmmc(task: Task) -> Result:
    from ..baselines.cmmc import CMMC

    X = inputs(task)
    model = CMMC(task.n_clusters, random_state=task.seed).fit(X, pairs=task.train)
    return model.labels_, model.pair_score(X, task.test)


def _kmeans(task: Task) -> Result:
    from sklearn.cluster import KMeans

    X = inputs(task)
    a, b = X[task.test.index.T]
    return KMeans(task.n_clusters, n_init=10, random_state=task.seed).fit_predict(X), -((a - b) ** 2).sum(1)


def _peer(name: str, **settings: Any) -> Callable[[Task], Result]:
    """A method that gives clusters and nothing else; a pair is scored by whether both its points are in one."""

    def cluster(task: Task) -> Result:
        import pairmargin

        model = getattr(pairmargin, name)(task.n_clusters, random_state=task.seed, **settings)
        labels = model.fit(inputs(task), pairs=task.train).labels_
        return labels, agreement(labels, task.test)

    return cluster


METHODS: dict[str, Method] = {
    "xing": Method("Xing", "rival", _metric("XingMetric")),
    "itml": Method("ITML", "rival", _metric("ITML")),
    "kissme": Method("KISSME", "rival", _metric("KISSME")),
    "cmmc": Method("CMMC", "rival", _cmmc),
    "paper": Method("the paper's settings", "ours", _paper()),
    "pairmargin": Method("pairmargin", "ours", _ours()),
    "paper-linear": Method("the paper's settings, no hidden layer", "variant", _paper(hidden_layer_sizes=())),
    "paper-no-free": Method("the paper's settings, β = 0", "variant", _paper(free_weight=0.0)),
    "paper-letter": Method("the paper to the letter", "variant", _paper(init="random", step_offset=0)),
    "pairmargin-no-free": Method("pairmargin, β = 0", "variant", _ours(free_weight=0.0)),
    "pairmargin-no-neighbours": Method("pairmargin, no neighbours", "variant", _ours(neighbour_weight=0.0)),
    "pairmargin-balance": Method("pairmargin, balance 0.5", "variant", _ours(balance_weight=0.5)),
    "pairmargin-one-start": Method("pairmargin, one start", "variant", _ours(n_init=1)),
    "pairmargin-trusting": Method("pairmargin, no answer doubted", "variant", _ours(robust=False)),
    "pairmargin-scores": Method("pairmargin, labels by scores alone", "variant", _ours(answer_price=0.0)),
    "pairmargin-linear": Method("pairmargin, no hidden layer", "variant", _ours(hidden_layer_sizes=())),
    "pairmargin-start": Method("pairmargin, its start alone", "variant", _ours(max_iter=0)),
    "pairmargin-pairs": Method("pairmargin, k-means in shaped codes as start", "variant", _ours(init="pairs")),
    "pairmargin-k-means": Method("pairmargin, k-means as start", "variant", _ours(init="k-means")),
    "pairmargin-random": Method("pairmargin, random start", "variant", _ours(init="random")),
    "k-means": Method("k-means, no answers", "peer", _kmeans),
    "cop-k-means": Method("COP-k-means", "peer", _peer("COPKMeans", on_infeasible="violate")),
    "pck-means": Method("PCK-means", "peer", _peer("PCKMeans")),
    "mpck-means": Method("MPCK-means", "peer", _peer("MPCKMeans")),
    "spectral": Method("spectral with links", "peer", _peer("LinkedSpectralClustering")),
}
COMPARED = tuple(name for name, method in METHODS.items() if method.kind != "variant")
PARTS = (
    "pairmargin",
    *(name for name in METHODS if name.startswith("pairmargin-")),
    "paper",
    "paper-letter",
    "k-means",
)
TRANSDUCTIVE = ("paper", "paper-no-free", "pairmargin", "pairmargin-no-free")


@dataclass(frozen=True)
class Foreign:
    """A method of another package, which runs in an environment of its own: see benchmarks/peers."""

    label: str
    package: str  # stem of its files there
    learns_metric: bool = False  # it is given `metric_inputs`
    asks: bool = False  # it asks for as many answers as the others are given, of its own choice


FOREIGN: dict[str, Foreign] = {
    "metric-learn-itml": Foreign("metric-learn: ITML", "metric_learn", learns_metric=True),
    "metric-learn-mmc": Foreign("metric-learn: MMC", "metric_learn", learns_metric=True),
    "metric-learn-sdml": Foreign("metric-learn: SDML", "metric_learn", learns_metric=True),
    "pml-contrastive": Foreign("pytorch-metric-learning: contrastive loss", "pytorch_metric_learning"),
    "assc-copkmeans": Foreign("active-semi-supervised-clustering: COP-k-means", "active_semi_clustering"),
    "assc-pckmeans": Foreign("active-semi-supervised-clustering: PCK-means", "active_semi_clustering"),
    "assc-mpckmeans": Foreign(
        "active-semi-supervised-clustering: MPCK-means", "active_semi_clustering", learns_metric=True
    ),
    "cobras": Foreign("cobras-ts: COBRAS, its own questions", "cobras_ts", asks=True),
    "cognitivefactory-kmeans": Foreign("cognitivefactory: COP-k-means", "cognitivefactory"),
    "cognitivefactory-spectral": Foreign("cognitivefactory: spectral", "cognitivefactory"),
    "clustpy-dec": Foreign("ClustPy: DEC, no answers", "clustpy"),
    "clustpy-idec": Foreign("ClustPy: IDEC, no answers", "clustpy"),
    "clustpy-dcn": Foreign("ClustPy: DCN, no answers", "clustpy"),
}
LABELS = {name: each.label for name, each in (METHODS | FOREIGN).items()}


# Experiments --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Experiment:
    """A table or a figure."""

    name: str
    title: str
    n_pairs: Mapping[str, tuple[int, ...]]  # by data set
    methods: tuple[str, ...]
    seeds: int
    extra: tuple[tuple[str, str], ...] = ()  # (data set, method) that one of the paper's claims needs besides
    drawings: tuple[str, ...] = (BALANCED,)
    more_seeds: Mapping[str, int] = field(default_factory=dict)  # by data set, where one draw is much like no other

    @property
    def datasets(self) -> tuple[str, ...]:
        return tuple(self.n_pairs)

    def cells(self, seeds: int | None = None, quick: bool = False) -> list[Cell]:
        """Every fit; ``quick`` takes one draw, and of a curve its first and middle number of pairs."""
        asked = seeds or (1 if quick else None)
        both = [(dataset, method) for dataset in self.datasets for method in self.methods] + list(self.extra)
        return [
            Cell(dataset, method, n_pairs, seed, drawing)
            for dataset, method in both
            for drawing in self.drawings
            for n_pairs in self._numbers(dataset, quick)
            for seed in range(asked or self.more_seeds.get(dataset, self.seeds))
        ]

    def at(self, place: int) -> Experiment:
        """The same with one number of pairs a data set, the first, the second or a later one."""
        return replace(self, n_pairs={dataset: (numbers[place],) for dataset, numbers in self.n_pairs.items()})

    def _numbers(self, dataset: str, quick: bool) -> tuple[int, ...]:
        numbers = self.n_pairs[dataset]
        return tuple(sorted({numbers[0], numbers[len(numbers) // 2]})) if quick else numbers


TABLE = dict.fromkeys((*UCI, "reuters"), (100,))
OWN = {dataset: (100, 300 if dataset in ("glass", "wine", "sonar") else 1000) for dataset in RARER_PAIRS}
COUNTS = (50, 100, 200, 500, 1000, 2000, 5000)
BOARD = {dataset: tuple(n for n in COUNTS if can_be_drawn(dataset, n)) for dataset in RARER_PAIRS}
MNIST = {"mnist": (200, 500, 1000, 2000, 5000)}
COIL20 = {"coil20": (200, 400, 1000, 2000, 4000)}
COIL100 = {"coil100": (500, 1000, 2000, 4000, 8000)}

QUESTIONS = {
    dataset: (25, 50, 100, 250, 500, *((1000,) if dataset == "mnist" else ()))
    for dataset in RARER_PAIRS
    if dataset != "coil100"
}

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        Experiment("table2", "Table 2: accuracy and ARI from 100 answers", TABLE, COMPARED, seeds=10),
        Experiment("fig1", "Fig. 1: ROC of held-out pairs", TABLE, COMPARED, seeds=10),
        Experiment("fig2", "Fig. 2: MNIST, more and more answers", MNIST, COMPARED, seeds=5),
        Experiment("fig3", "Fig. 3: MNIST, with and without the transductive term", MNIST, TRANSDUCTIVE, seeds=5),
        Experiment(
            "fig4",
            "Fig. 4: COIL-20 and COIL-100, with and without the transductive term",
            COIL20 | COIL100,
            TRANSDUCTIVE,
            seeds=5,
        ),
        Experiment(
            "fig5",
            "Fig. 5: COIL-100, more and more answers",
            COIL100,
            COMPARED,
            seeds=5,
            extra=(("coil100", "paper-linear"), ("coil100", "pairmargin-linear")),
        ),
        Experiment("parts", "What each part of our default brings", OWN, PARTS, seeds=5),
        Experiment(
            "leaderboard",
            "Leaderboard: every method, from few answers to many, drawn in two ways",
            BOARD,
            COMPARED,
            seeds=5,
            drawings=DRAWINGS,
            more_seeds={"glass": 20, "sonar": 20},
        ),
        Experiment(
            "questions",
            "Questions: which strategy needs the fewest",
            QUESTIONS,
            ("pairmargin",),
            seeds=5,
            drawings=tuple(ASKED),
        ),
    )
}


def select(name: str) -> list[Experiment]:
    """The experiments that a name stands for; "all" are all of them."""
    if name == "all":
        return list(EXPERIMENTS.values())
    if name not in EXPERIMENTS:
        raise ExperimentError(unknown_name("experiment", name, [*EXPERIMENTS, "all"]))
    return [EXPERIMENTS[name]]


# What the paper printed ---------------------------------------------------------------------------------------------

PRINTED_FROM = 100  # answers
PRINTED: dict[str, dict[str, tuple[float, float]]] = {  # Table 2: accuracy, ARI
    "xing": {
        "glass": (0.462, 0.214),
        "wdbc": (0.919, 0.70),
        "wine": (0.815, 0.584),
        "sonar": (0.534, 0.02),
        "segmentation": (0.285, 0.12),
        "reuters": (0.443, 0.14),
    },
    "itml": {
        "glass": (0.474, 0.223),
        "wdbc": (0.921, 0.71),
        "wine": (0.702, 0.520),
        "sonar": (0.692, 0.14),
        "segmentation": (0.300, 0.14),
        "reuters": (0.450, 0.15),
    },
    "kissme": {
        "glass": (0.365, 0.07),
        "wdbc": (0.779, 0.287),
        "wine": (0.652, 0.466),
        "sonar": (0.673, 0.12),
        "segmentation": (0.276, 0.09),
        "reuters": (0.497, 0.17),
    },
    "cmmc": {
        "glass": (0.432, 0.217),
        "wdbc": (0.895, 0.620),
        "wine": (0.971, 0.918),
        "sonar": (0.721, 0.191),
        "segmentation": (0.514, 0.35),
        "reuters": (0.665, 0.22),
    },
    "paper": {
        "glass": (0.509, 0.219),
        "wdbc": (0.915, 0.689),
        "wine": (0.988, 0.965),
        "sonar": (0.726, 0.20),
        "segmentation": (0.571, 0.41),
        "reuters": (0.727, 0.56),
    },
}
