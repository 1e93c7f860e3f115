"""What a person takes home: labels, pairs, the model and a report."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .._version import __version__
from ..exceptions import SessionError
from ..writing import new_folder, refusals
from . import shelves
from .store import SAME, UNSURE
from .worker import MODEL

if TYPE_CHECKING:
    from .session import LabelingSession

SHOWN = 5000  # items on the map of the report, at most


def labels_csv(session: LabelingSession) -> bytes:
    """A line for each item: its id, its cluster with number and name, and the chance that this is right."""
    clustering, names = session.clustering, session.names  # once: another may be learned meanwhile
    rows = zip(session.ids, clustering.cluster.tolist(), shelves.confidence(clustering).tolist(), strict=True)
    return _csv(
        ("id", "cluster", "name", "confidence"),
        ((name, k, names.get(k, ""), f"{chance:.4f}") for name, k, chance in rows),
    )


def pairs_csv(session: LabelingSession) -> bytes:
    """A line for each answer that counts, but for "unsure": as `read_pairs` reads it, with who and when."""
    rows = sorted((row for row, _ in session.answers() if row.answer != UNSURE), key=lambda row: row.number)
    return _csv(
        ("a", "b", "same", "who", "at"),
        ((row.a, row.b, str(row.answer == SAME).lower(), row.who, row.at) for row in rows),
    )


def model_file(session: LabelingSession) -> bytes:
    """The model, with the recipe of the features if they come from a file."""
    from ..persist import load, model_bytes

    model = session._learner.model
    if model is None and session.folder is not None and (session.folder / MODEL).exists():
        model = load(session.folder / MODEL)
    if model is None:
        raise SessionError("there is no model yet; answer some questions, or call refit() first")
    return model_bytes(model, None if session.items is None else session.items.recipe)


def report_html(session: LabelingSession) -> bytes:
    """What came out, on one page."""
    from ..report import Chart, Report, Scatter, Section, Series, Table, render

    progress, clustering = session.progress, session.clustering
    sizes = np.bincount(clustering.cluster, minlength=clustering.chances.shape[1])
    sure = shelves.confidence(clustering)
    named = {k: session.names.get(k, f"cluster {k}") for k in np.flatnonzero(sizes).tolist()}
    table = Table(
        ("cluster", "items", "mean confidence"),
        [(name, f"{sizes[k]:,}", f"{sure[clustering.cluster == k].mean():.0%}") for k, name in named.items()],
    )
    step = math.ceil(len(session.ids) / SHOWN)
    places = Scatter(
        "Map",
        "Two main components of what the network makes of the items" + (f"; one in {step}" if step > 1 else "") + ".",
        np.asarray(clustering.places[::step], dtype=np.float64),
        clustering.cluster[::step].tolist(),
        names=named,
    )
    blocks: list[Scatter | Chart] = [places]
    if len(progress.curve) > 1:
        x, y = np.array(progress.curve, dtype=float).T
        blocks.append(
            Chart("How sure the clusters are", "The mean chance of the items' clusters, after every time of learning.",
                  "answers", "", [Series("sureness", x, y, 0)], max(float(x.max()), 1.0), 1.0)
        )  # fmt: skip
    who = ", ".join(f"{name or 'somebody'} ({n:,})" for name, n in session.people.items()) or "nobody yet"
    agreed = session.kappa
    facts = {"answered by": who, "pairmargin": __version__, "clusters asked for": str(session.n_clusters)}
    facts |= {} if agreed is None else {"Cohen's κ": f"{agreed:.2f}"}
    numbers = [
        (f"{len(session.ids):,}", "items"),
        (f"{len(named)}", "clusters"),
        (f"{progress.answers:,}", f"answers, and {progress.inferred:,} that follow from them"),
        (f"{progress.sureness:.0%}", "mean confidence"),
    ]
    report = Report(
        f"{len(session.ids):,} items in {len(named)} clusters",
        f"Learned from {progress.fitted:,} answers to the question whether two items are the same.",
        numbers,
        [Section("Clusters", [], [table]), Section("Where they lie", [], blocks)],
        facts,
    )
    return render(report).encode()


EXPORTS: dict[str, tuple[str, Callable[[LabelingSession], bytes]]] = {  # file: type, and what makes it
    "labels.csv": ("text/csv; charset=utf-8", labels_csv),
    "pairs.csv": ("text/csv; charset=utf-8", pairs_csv),
    MODEL: ("application/octet-stream", model_file),
    "report.html": ("text/html; charset=utf-8", report_html),
}


def export_all(session: LabelingSession, folder: Path) -> list[Path]:
    """Write every export into a folder; the paths."""
    with new_folder(folder) as beside:
        for name, (_, make) in EXPORTS.items():
            content = make(session)
            with refusals(folder):
                (beside / name).write_bytes(content)
    return [folder / name for name in EXPORTS]


def _csv(header: tuple[str, ...], rows: object) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)  # type: ignore[arg-type]
    return text.getvalue().encode()
