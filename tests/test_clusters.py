"""Sweeps on a cluster: whatever goes through joblib runs on the workers of Dask, and gives the same numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV

from pairmargin import MaxMarginClustering, PairClassifier, PairSplit, run_experiment, sample_pairs
from pairmargin.experiments import runner
from pairmargin.experiments.specs import Cell
from pairmargin.experiments.store import Row

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings(  # joblib's table of values, when two threads forget the same one
    "ignore:Exception ignored in. <function _WeakKeyDictionary:pytest.PytestUnraisableExceptionWarning"
)
FIGURES = ["dataset", "method", "n_pairs", "seed", "accuracy", "ari", "nmi", "auc", "clusters", "tpr"]
X, Y = load_wine(return_X_y=True)


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """Two workers, in this process: what a test changes is changed for them too."""
    settings = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**settings) as workers, distributed.Client(workers):
        yield


def worker_name() -> str | None:
    """The worker of Dask that this runs on, if it is one."""
    try:
        return str(distributed.get_worker().name)
    except ValueError:
        return None


@pytest.mark.usefixtures("cluster")
def test_an_experiment_runs_on_the_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places: list[str | None] = []
    measure = runner.measure

    def noted(cell: Cell, limit: float) -> Row:
        places.append(worker_name())
        return measure(cell, limit)

    monkeypatch.setattr(runner, "measure", noted)
    asked: dict[str, Any] = {"datasets": ["digits"], "methods": ["k-means"], "quick": True, "seeds": 2}
    here = run_experiment("leaderboard", results=tmp_path / "here", n_jobs=1, **asked)
    assert set(places) == {None}
    places.clear()
    with joblib.parallel_config(backend="dask"):
        there = run_experiment("leaderboard", results=tmp_path / "there", **asked)
    assert len(places) == len(there) == len(here)
    assert len(set(places)) == 2
    assert None not in places
    key = FIGURES[:4]
    assert here.sort_values(key)[FIGURES].to_csv(index=False) == there.sort_values(key)[FIGURES].to_csv(index=False)


def noting_auc(model: PairClassifier, index: Any, same: Any) -> dict[str, float]:
    agreement = float((model.predict(index) == same).mean())
    return {"agreement": agreement, "on_worker": float(worker_name() is not None)}


@pytest.mark.usefixtures("cluster")
def test_a_search_over_settings_runs_on_the_workers() -> None:
    pairs = sample_pairs(Y, 60, random_state=0)
    model = MaxMarginClustering(3, (), n_init=1, max_iter=5, random_state=0)
    grid = {"estimator__weight_penalty": [0.01, 1.0]}
    search = GridSearchCV(
        PairClassifier(model, X), grid, cv=PairSplit(2, random_state=0), scoring=noting_auc, refit=False
    )
    search.fit(pairs.index, pairs.same)
    here = search.cv_results_
    with joblib.parallel_config(backend="dask"):
        search.fit(pairs.index, pairs.same)
    there = search.cv_results_
    np.testing.assert_array_equal(there["mean_test_agreement"], here["mean_test_agreement"])
    assert not here["mean_test_on_worker"].any()
    assert there["mean_test_on_worker"].all()


@pytest.mark.parametrize(("config", "jobs"), [({"n_jobs": 3}, 3), ({}, joblib.cpu_count())])
def test_the_number_of_jobs_is_the_users(config: dict[str, int], jobs: int) -> None:
    with joblib.parallel_config(**config):
        assert runner._all_jobs() == jobs
