"""How long it takes to put nine of ten handwritten digits right, from 500 answers: every method we know of.

All have one thread, the same draws and a process of their own. Seconds are those of the whole fit; memory is that of
the whole process, with its libraries. Some methods listen to no answers.
"""

from __future__ import annotations

from pathlib import Path
from statistics import mean, median
from typing import Any

import run as peers
from environments import is_ready

from pairmargin import MaxMarginClustering
from pairmargin.experiments import specs
from pairmargin.experiments.runner import measure as measure_cell
from pairmargin.experiments.specs import COMPARED, FOREIGN, Cell, Method, Result, Task, agreement
from pairmargin.experiments.unfinished import LIMIT, TooSlow

from .measuring import Options, apart
from .rows import REACHED, Row

N_PAIRS, N_DRAWS = 500, 3
QUICK_LIMIT = 120.0  # seconds of the processor
OURS = ("pairmargin", "pairmargin-quick")
IN_A_HURRY: dict[str, Any] = {  # the linear method from one start, and nothing judged, linked or taught
    "hidden_layer_sizes": (),
    "visible": "binary",
    "init": "pairs",
    "n_init": 1,
    "max_iter": 20,
    "neighbour_weight": 0.0,
    "robust": False,
    "answer_price": 0.0,
}


def _from_sklearn(name: str, **settings: Any) -> Method:
    def cluster(task: Task) -> Result:
        from sklearn import cluster

        model = getattr(cluster, name)(task.n_clusters, random_state=task.seed, **settings)
        labels = model.fit(specs.inputs(task)).labels_
        return labels, agreement(labels, task.test)

    return Method(f"scikit-learn: {name}, no answers", "peer", cluster)


def _quick(task: Task) -> Result:
    model = MaxMarginClustering(task.n_clusters, random_state=task.seed, **IN_A_HURRY).fit(task.X, pairs=task.train)
    return model.labels_, model.pair_score(task.X, task.test)


HERE = {
    **{name: specs.METHODS[name] for name in COMPARED if name != "k-means"},
    "pairmargin-quick": Method("pairmargin, in a hurry", "variant", _quick),
    "sklearn-kmeans": _from_sklearn("KMeans", n_init=10),
    "sklearn-minibatch": _from_sklearn("MiniBatchKMeans", n_init=10),
    "sklearn-spectral": _from_sklearn("SpectralClustering", affinity="nearest_neighbors"),
}
LABELS = {name: each.label for name, each in HERE.items()} | {name: each.label for name, each in FOREIGN.items()}


def measure(options: Options) -> list[Row]:
    found: dict[str, list[dict[str, float]]] = {name: [] for name in LABELS}
    reasons: dict[str, str] = {}
    for seed in range(1 if options.quick else N_DRAWS):
        for name in LABELS:
            if name in reasons:
                continue
            try:
                found[name].append(_cell(name, seed, options))
            except (LookupError, RuntimeError) as error:
                reasons[name] = str(error)
            print(f"digits, {name}, seed {seed}: {reasons.get(name) or found[name][-1]}", flush=True)
    rows = []
    for name, label in LABELS.items():
        rows += _rows(label, found[name], reasons.get(name, ""))
    return [*rows, _verdict(found)]


def _cell(name: str, seed: int, options: Options) -> dict[str, float]:
    """Accuracy, seconds and megabytes of one fit."""
    limit = QUICK_LIMIT if options.quick else LIMIT
    if name in HERE:
        return apart(ours, method=name, seed=seed, limit=limit, threads=1)
    return peer(name, seed, limit, options.environments)


def ours(method: str, seed: int, limit: float) -> dict[str, float]:
    """A method that needs no environment of its own."""
    specs.METHODS.update(HERE)
    return _figures(measure_cell(Cell("digits", method, N_PAIRS, seed), limit))


def peer(method: str, seed: int, limit: float, environments: Path) -> dict[str, float]:
    """A method of another package."""
    if not is_ready(environments, FOREIGN[method].package):
        raise LookupError("not installed")
    try:
        return _figures(
            peers.measure(Cell("digits", method, N_PAIRS, seed), peers.command(method, environments), limit)
        )
    except (TooSlow, peers.WorkerFailed) as error:
        raise RuntimeError(str(error)) from error


def _figures(row: Any) -> dict[str, float]:
    return {"share": row.accuracy, "s": row.seconds, "MB": row.peak_mb}


def _rows(label: str, found: list[dict[str, float]], reason: str) -> list[Row]:
    """The mean accuracy, and the median of what it cost."""
    size = f"n=1797 pairs={N_PAIRS} draws={len(found)}"
    if not found:
        return [Row("digits", label, None, "share", "", size, reason.strip().splitlines()[-1])]
    return [
        Row("digits", label, (mean if unit == "share" else median)([each[unit] for each in found]), unit, "", size)
        for unit in ("share", "s", "MB")
    ]


def _verdict(found: dict[str, list[dict[str, float]]]) -> Row:
    """The seconds of our fastest setting that is right often enough, over those of the fastest other package that is.

    Twice as long is allowed if we are right more often.
    """
    means = {
        name: (mean(each["share"] for each in runs), median(each["s"] for each in runs))
        for name, runs in found.items()
        if runs
    }
    there = [name for name in means if means[name][0] >= REACHED]
    what = f"seconds to {REACHED:.0%}, over the fastest method of another package that gets there"
    size = f"n=1797 pairs={N_PAIRS}"
    rivals = [name for name in there if name in FOREIGN or name.startswith("sklearn")]
    own = [name for name in there if name in OURS]
    if not rivals or not own:
        return Row("digits", what, None, "ratio", "", size, "no rival gets there" if own else "not measured")
    ours, rival = (min(names, key=lambda name: means[name][1]) for names in (own, rivals))
    (accuracy, seconds), (other, least) = means[ours], means[rival]
    note = f"{LABELS[rival]}: {other:.1%} in {least:.2g} s; {LABELS[ours]}: {accuracy:.1%} in {seconds:.2g} s"
    return Row("digits", what, seconds / least, "ratio", "<= 2" if accuracy > other else "<= 1", size, note)
