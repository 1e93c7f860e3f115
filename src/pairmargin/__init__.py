"""Cluster anything from a few "same" or "different" answers.

The public names, and nothing else. Each is imported when it is first used, so that ``import pairmargin`` is quick.
"""

from __future__ import annotations

from ._version import __version__

TYPE_CHECKING = False  # true to type checkers; `typing` would take longer to import than all the rest
if TYPE_CHECKING:
    from .baselines.cmmc import CMMC
    from .baselines.cop_kmeans import COPKMeans
    from .baselines.itml import ITML
    from .baselines.kernel_kmeans import KernelKMeans
    from .baselines.kissme import KISSME
    from .baselines.mpck_means import MPCKMeans
    from .baselines.pck_means import PCKMeans
    from .baselines.spectral import LinkedSpectralClustering
    from .baselines.xing import XingMetric
    from .datasets import list_datasets, load_dataset
    from .estimator import MaxMarginClustering
    from .exceptions import (
        ChangedDataWarning,
        CheckpointError,
        ConflictingPairsError,
        DatasetError,
        ExperimentError,
        FewDistinctPointsWarning,
        FewQuestionsWarning,
        InvalidDataError,
        InvalidPairsError,
        InvalidParameterError,
        MissingPackageError,
        ModelFileError,
        NotEnoughMemoryError,
        OutputError,
        PairMarginError,
        PairMarginWarning,
        SessionError,
        TeamError,
    )
    from .experiments.runner import run_experiment
    from .fit_report import write_report
    from .metrics import clustering_accuracy, pair_roc
    from .model_selection import PairClassifier, PairSplit
    from .pairs import Pairs, sample_pairs
    from .persist import load, load_recipe, save
    from .plotting import (
        ClusterMapDisplay,
        ConstraintGraphDisplay,
        LearningCurveDisplay,
        ObjectiveDisplay,
        PairRocDisplay,
    )
    from .query import select_pairs
    from .readers import Items, Recipe, read_items, read_pairs
    from .stored import ParquetRows
    from .web import LabelingSession, SimulatedPerson

__all__ = [
    "CMMC",
    "ITML",
    "KISSME",
    "COPKMeans",
    "ChangedDataWarning",
    "CheckpointError",
    "ClusterMapDisplay",
    "ConflictingPairsError",
    "ConstraintGraphDisplay",
    "DatasetError",
    "ExperimentError",
    "FewDistinctPointsWarning",
    "FewQuestionsWarning",
    "InvalidDataError",
    "InvalidPairsError",
    "InvalidParameterError",
    "Items",
    "KernelKMeans",
    "LabelingSession",
    "LearningCurveDisplay",
    "LinkedSpectralClustering",
    "MPCKMeans",
    "MaxMarginClustering",
    "MissingPackageError",
    "ModelFileError",
    "NotEnoughMemoryError",
    "ObjectiveDisplay",
    "OutputError",
    "PCKMeans",
    "PairClassifier",
    "PairMarginError",
    "PairMarginWarning",
    "PairRocDisplay",
    "PairSplit",
    "Pairs",
    "ParquetRows",
    "Recipe",
    "SessionError",
    "SimulatedPerson",
    "TeamError",
    "XingMetric",
    "__version__",
    "clustering_accuracy",
    "list_datasets",
    "load",
    "load_dataset",
    "load_recipe",
    "pair_roc",
    "read_items",
    "read_pairs",
    "run_experiment",
    "sample_pairs",
    "save",
    "select_pairs",
    "write_report",
]

_HOME = {
    "CMMC": "baselines.cmmc",
    "COPKMeans": "baselines.cop_kmeans",
    "ClusterMapDisplay": "plotting",
    "ConstraintGraphDisplay": "plotting",
    "ITML": "baselines.itml",
    "Items": "readers",
    "KISSME": "baselines.kissme",
    "KernelKMeans": "baselines.kernel_kmeans",
    "LabelingSession": "web",
    "LearningCurveDisplay": "plotting",
    "LinkedSpectralClustering": "baselines.spectral",
    "MPCKMeans": "baselines.mpck_means",
    "MaxMarginClustering": "estimator",
    "ObjectiveDisplay": "plotting",
    "PCKMeans": "baselines.pck_means",
    "PairClassifier": "model_selection",
    "PairRocDisplay": "plotting",
    "PairSplit": "model_selection",
    "Pairs": "pairs",
    "ParquetRows": "stored",
    "Recipe": "readers",
    "SimulatedPerson": "web",
    "XingMetric": "baselines.xing",
    "clustering_accuracy": "metrics",
    "list_datasets": "datasets",
    "load": "persist",
    "load_dataset": "datasets",
    "load_recipe": "persist",
    "pair_roc": "metrics",
    "read_items": "readers",
    "read_pairs": "readers",
    "run_experiment": "experiments.runner",
    "sample_pairs": "pairs",
    "save": "persist",
    "select_pairs": "query",
    "write_report": "fit_report",
} | {name: "exceptions" for name in __all__ if name.endswith(("Error", "Warning"))}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "run_experiment":  # the one name whose module needs an extra to be imported
        with import_module(".extras", __name__).coming_with("experiments", name):
            import_module(f".{_HOME[name]}", __name__)
    return getattr(import_module(f".{_HOME[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
