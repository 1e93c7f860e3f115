"""The report of a fit as one HTML file."""

from __future__ import annotations

import base64
import hashlib
import os
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from .._version import __version__
from ..estimator import MaxMarginClustering
from ..metrics import truth_scores
from ..pairs import Pairs
from ..readers import Items
from ..readers.parts import counted
from ..report import Report, Section, templates
from ..writing import new_file, refusals
from .faces import shortened
from .findings import Findings, Labels
from .point_map import point_map
from .sections import (
    answers_section,
    gists_of,
    labels_section,
    objective_section,
    percent,
    profiles_section,
    questions_section,
    sizes_section,
    telling_columns,
)
from .traits import traits_of

TRAITS = {"text": 10}  # that are shown of a cluster
NOTES = 40  # of the reader
SETTINGS = ("n_clusters", "hidden_layer_sizes", "init", "n_init", "solver", "max_iter", "random_state")


def write_report(
    path: str | os.PathLike[str],
    items: Items,
    model: MaxMarginClustering,
    pairs: Pairs | None = None,
    *,
    labels: Labels | None = None,
    title: str | None = None,
    source: str | None = None,
    seconds: Mapping[str, float] | None = None,
    n_learned: int | None = None,
    map_method: str = "auto",
    random_state: int = 0,
) -> Path:
    """Write what a fit has found as one page that opens in any browser, without a network.

    Parameters
    ----------
    path : path-like
        The HTML file to write.
    items : Items
        What was clustered, from `read_items`. Labels in ``items.truth`` score the clusters.
    model : MaxMarginClustering
        Fitted to their features, or to those of some of them.
    pairs : Pairs, optional
        The answers that it has learned from, about rows of the items.
    labels : optional
        Arrays ``cluster`` and ``confidence``, one value for each item. Left out, they are the model's own.
    title : str, optional
        The headline.
    source : str, optional
        Where the items are from, such as the name of the file.
    seconds : dict of str to float, optional
        How long each stage took.
    n_learned : int, optional
        How many items were learned from, if not all.
    map_method : {"auto", "umap", "tsne", "pca"}, default="auto"
        How the map comes to two dimensions: "auto" takes UMAP where it is installed, else t-SNE.
    random_state : int, default=0
        Of the map.

    Returns
    -------
    path : Path

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from pairmargin import MaxMarginClustering, read_items, write_report
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data, page = pathlib.Path(folder, "points.npy"), pathlib.Path(folder, "report.html")
    ...     np.save(data, np.repeat([[0.0, 1.0], [5.0, 4.0]], 10, axis=0) + np.arange(20)[:, None] / 100)
    ...     items = read_items(data)
    ...     model = MaxMarginClustering(2, random_state=0).fit(items.features)
    ...     "20 vectors in 2 clusters" in write_report(page, items, model).read_text(encoding="utf-8")
    True
    """
    html = build_report(
        items,
        model,
        pairs,
        labels=labels,
        title=title,
        source=source,
        seconds=seconds,
        n_learned=n_learned,
        map_method=map_method,
        random_state=random_state,
    )
    page = Path(path)
    with new_file(page) as beside, refusals(page):
        beside.write_bytes(html.encode("utf-8", errors="replace"))  # names of files need not be text
    return page


def build_report(
    items: Items,
    model: MaxMarginClustering,
    pairs: Pairs | None = None,
    *,
    labels: Labels | None = None,
    title: str | None = None,
    source: str | None = None,
    seconds: Mapping[str, float] | None = None,
    n_learned: int | None = None,
    map_method: str = "auto",
    random_state: int = 0,
) -> str:
    """The page of `write_report` as text; the parameters are those.

    Returns
    -------
    html : str
    """
    findings = Findings.gather(items, model, pairs, labels)
    traits = traits_of(findings, TRAITS.get(items.kind, 6))
    gists, columns = gists_of(traits), telling_columns(traits)
    scores = {} if findings.truth is None else truth_scores(findings.truth, findings.cluster)
    the_map = point_map(findings, gists, columns, map_method, random_state)
    sections = [
        sizes_section(findings, gists),
        Section("The map", [], [the_map]),
        profiles_section(findings, traits),
        labels_section(findings, scores),
        answers_section(findings, columns),
        questions_section(findings, columns),
        objective_section(findings),
    ]
    report = Report(
        title or f"{counted(len(items), findings.noun)} in {counted(len(findings.sizes), 'cluster')}",
        _lead(findings, source, seconds, n_learned),
        _numbers(findings, scores),
        [section for section in sections if section is not None],
        _facts(findings, source, seconds, the_map.caption),
    )
    return _render(report, items.notes)


def _lead(findings: Findings, source: str | None, seconds: Mapping[str, float] | None, n_learned: int | None) -> str:
    n, m, noun = len(findings), len(findings.pairs), findings.noun
    same = int(findings.pairs.same.sum())
    told = f"{counted(n, noun)}{f' from {shortened(source, 120)}' if source else ''}"
    told += f", sorted by {counted(m, 'answer')}" if m else ", sorted without any answer"
    told += f", {same:,} “same” and {m - same:,} “different”." if m else "."
    if n_learned is not None and n_learned < n:
        told += f" The model learned from {n_learned:,} of them, and put the others where they belong by that."
    if seconds:
        told += f" All that took {_duration(sum(seconds.values()))}."
    return told


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds / 60:.0f} minutes"


def _numbers(findings: Findings, scores: Mapping[str, float]) -> list[tuple[str, str]]:
    m = len(findings.pairs)
    numbers = [(f"{len(findings):,}", f"{findings.noun}s"), (f"{len(findings.sizes):,}", "clusters")]
    if m:
        numbers.append((f"{int(findings.kept.sum()):,}", f"of {counted(m, 'answer')} kept"))
    if scores:
        numbers.append((f"{100 * scores['accuracy']:.1f}\N{NO-BREAK SPACE}%", "in the right cluster, by the labels"))
    else:
        numbers.append((percent(float(np.median(findings.confidence))), "median confidence"))
    return numbers


def _facts(
    findings: Findings, source: str | None, seconds: Mapping[str, float] | None, map_told: str
) -> dict[str, str]:
    """The foot of the page: settings, time, versions."""
    model = findings.model
    libraries = [f"{name} {version(name)}" for name in ("numpy", "scikit-learn", "torch")]
    facts = {"Data": source or "", "Model": ", ".join(f"{name}={getattr(model, name)!r}" for name in SETTINGS)}
    if seconds:
        facts["Time"] = ", ".join(f"{stage} {took:.1f} s" for stage, took in seconds.items())
    facts["Map"] = map_told
    facts["Versions"] = ", ".join([f"pairmargin {__version__}", f"Python {platform.python_version()}", *libraries])
    return {name: value for name, value in facts.items() if value}


def _render(report: Report, notes: list[str]) -> str:
    """The page, which allows itself nothing but its own style, script and pictures."""
    environment = templates()
    folder = Path(__file__).parents[1] / "templates"
    style, script = (
        "\n".join((folder / name).read_text(encoding="utf-8") for name in names)
        for names in (("style.css", "fit.css"), ("fit.js",))
    )
    policy = (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src '{_hash(style)}'; script-src '{_hash(script)}'"
    )
    shown = [shortened(note, 600) for note in notes[:NOTES]]
    if len(notes) > NOTES:
        shown.append(f"… and {len(notes) - NOTES} more")
    inside: dict[str, Any] = {"style": style, "script": script, "policy": policy, "notes": shown}
    return environment.get_template("fit.html").render(report=report, **inside)


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
