"""What a fit leaves behind: labels, the model, a record of how it came about, and a page to look at."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from .._version import __version__
from ..fit_report import write_report
from ..persist import save
from .changed import RECORD
from .fitting import FitResult
from .labels import write_header, write_rows

LIBRARIES = "numpy", "scipy", "scikit-learn", "torch", "safetensors", "faiss-cpu"


def write_labels(result: FitResult, path: Path) -> None:
    """A line for each item."""
    with path.open("w", encoding="utf-8", newline="") as file:
        write_header(file)
        write_rows(file, result.items.ids, result.labels)


def write_model(result: FitResult, path: Path) -> None:
    """The model with its recipe."""
    save(result.model, path, recipe=result.recipe)


def write_record(result: FitResult, path: Path) -> None:
    """How it came about, and what came out."""
    path.write_text(json.dumps(record(result), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def write_page(result: FitResult, path: Path) -> None:
    """What came out, to look at."""
    write_report(
        path,
        result.items,
        result.model,
        result.pairs,
        labels=result.labels,
        source=Path(result.sources["data"]["path"]).name,
        seconds=result.seconds,
        n_learned=len(result.rows),
    )


OUTPUTS: dict[str, Callable[[FitResult, Path], None]] = {  # the files of a fit, and what writes each of them
    "labels.csv": write_labels,
    "model.safetensors": write_model,
    RECORD: write_record,
    "report.html": write_page,
}


def write_result(result: FitResult, folder: Path) -> None:
    """Write every output into a folder.

    Parameters
    ----------
    result : FitResult
    folder : Path
        It is there, and nobody looks at it before all is written: see `new_folder`.
    """
    for name, write in OUTPUTS.items():
        write(result, folder / name)


def record(result: FitResult) -> dict[str, Any]:
    """All that is needed to do it again, what the reader did, and what came out; for JSON."""
    model, pairs, sizes = result.model, result.pairs, np.bincount(result.labels.cluster)
    settings = model.get_params(deep=False)
    del settings["callback"]
    return {
        "stopped": result.stopped,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "data": result.sources["data"]
        | {"kind": result.items.kind, "items": len(result.items), "features": int(result.items.features.shape[1])},
        "pairs": result.sources["pairs"]
        | {"answers": len(pairs), "same": int(pairs.same.sum()), "different": int((~pairs.same).sum())},
        "options": result.options,
        "notes": result.items.notes,
        "seed": settings.pop("random_state"),
        "settings": settings,
        "versions": {"pairmargin": __version__, "python": platform.python_version()}
        | {name: version(name) for name in LIBRARIES},
        "learned_from": len(result.rows),
        "clusters": {str(k): int(size) for k, size in enumerate(sizes) if size},
        "answers_kept": int(result.kept.sum()),
        "error_rate": round(float(model.error_rate_), 4),
        "iterations": int(model.n_iter_),
        "objective": float(model.objective_),
        "scores": result.scores,
        "seconds": result.seconds,
    }
