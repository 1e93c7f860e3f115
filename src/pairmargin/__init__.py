"""Cluster anything from a few "same" or "different" answers.

The public names, and nothing else. Each is imported when it is first used, so that ``import pairmargin`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from .datasets import list_datasets, load_dataset
    from .estimator import MaxMarginClustering
    from .exceptions import (
        ConflictingPairsError,
        DatasetError,
        FewDistinctPointsWarning,
        InvalidDataError,
        InvalidPairsError,
        InvalidParameterError,
        ModelFileError,
        PairMarginError,
        PairMarginWarning,
    )
    from .metrics import clustering_accuracy, pair_roc
    from .pairs import Pairs, sample_pairs
    from .persist import load, save

__all__ = [
    "ConflictingPairsError",
    "DatasetError",
    "FewDistinctPointsWarning",
    "InvalidDataError",
    "InvalidPairsError",
    "InvalidParameterError",
    "MaxMarginClustering",
    "ModelFileError",
    "PairMarginError",
    "PairMarginWarning",
    "Pairs",
    "__version__",
    "clustering_accuracy",
    "list_datasets",
    "load",
    "load_dataset",
    "pair_roc",
    "sample_pairs",
    "save",
]

_HOME = {
    "MaxMarginClustering": "estimator",
    "Pairs": "pairs",
    "clustering_accuracy": "metrics",
    "list_datasets": "datasets",
    "load": "persist",
    "load_dataset": "datasets",
    "pair_roc": "metrics",
    "sample_pairs": "pairs",
    "save": "persist",
} | {name: "exceptions" for name in __all__ if name.endswith(("Error", "Warning"))}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
