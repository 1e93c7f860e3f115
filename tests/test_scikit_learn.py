"""Our estimators among scikit-learn's: pipelines, metadata routing, frames in and out, copies, notebooks."""

from __future__ import annotations

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr

from pairmargin import (
    CMMC,
    ITML,
    KISSME,
    COPKMeans,
    KernelKMeans,
    LinkedSpectralClustering,
    MaxMarginClustering,
    MPCKMeans,
    PairClassifier,
    PCKMeans,
    XingMetric,
    clustering_accuracy,
    sample_pairs,
)
from pairmargin.exceptions import FewDistinctPointsWarning

OURS = MaxMarginClustering(3, 5, pretrain_epochs=2, max_iter=5, random_state=0)
METRICS = [KISSME(), ITML(), XingMetric()]
CLUSTERERS = [
    cls(3, random_state=0) for cls in (PCKMeans, MPCKMeans, COPKMeans, CMMC, KernelKMeans, LinkedSpectralClustering)
]
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame}
NAMES = [f"f{k}" for k in range(13)]

each = pytest.mark.parametrize("estimator", [OURS, *METRICS, *CLUSTERERS], ids=lambda e: type(e).__name__)
each_transformer = pytest.mark.parametrize("estimator", [OURS, *METRICS], ids=lambda e: type(e).__name__)
each_frame = pytest.mark.parametrize("library", FRAMES)


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return X, sample_pairs(y, 60, random_state=0)


@pytest.fixture(scope="module")
def scaled(wine):
    return StandardScaler().fit_transform(wine[0])


def result(estimator, X):
    """What a fitted estimator makes of X."""
    return np.asarray(estimator.transform(X) if hasattr(estimator, "transform") else estimator.labels_)


@each
def test_pairs_reach_a_step_of_a_pipeline_by_its_name(estimator, wine, scaled):
    X, pairs = wine
    pipeline = make_pipeline(StandardScaler(), clone(estimator))
    pipeline.fit(X, **{f"{type(estimator).__name__.lower()}__pairs": pairs})
    np.testing.assert_allclose(result(pipeline[-1], scaled), result(clone(estimator).fit(scaled, pairs=pairs), scaled))


@each
def test_pairs_reach_a_step_of_a_pipeline_by_its_request(estimator, wine, scaled):
    X, pairs = wine
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), clone(estimator).set_fit_request(pairs=True))
        pipeline.fit(X, pairs=pairs)
        if hasattr(estimator, "fit_predict"):
            np.testing.assert_array_equal(pipeline.fit_predict(X, pairs=pairs), pipeline[-1].labels_)
        else:
            np.testing.assert_allclose(pipeline.fit_transform(X, pairs=pairs), pipeline.transform(X))
    np.testing.assert_allclose(result(pipeline[-1], scaled), result(clone(estimator).fit(scaled, pairs=pairs), scaled))


@pytest.mark.parametrize("estimator", [OURS, *CLUSTERERS], ids=lambda e: type(e).__name__)
def test_a_warning_points_at_the_line_that_called_fit(estimator):
    X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 3, axis=0)
    with pytest.warns(FewDistinctPointsWarning) as caught:
        clone(estimator).fit(X)
    assert caught[0].filename == __file__


@each
@each_frame
def test_frames_are_taken_and_their_columns_remembered(estimator, library, wine, scaled):
    frame = FRAMES[library](dict(zip(NAMES, scaled.T, strict=True)))
    fitted = clone(estimator).fit(frame, pairs=wine[1])
    assert fitted.feature_names_in_.tolist() == NAMES
    plain = clone(estimator).fit(scaled, pairs=wine[1])
    if hasattr(estimator, "transform"):
        np.testing.assert_allclose(fitted.transform(frame), plain.transform(scaled))
    else:  # frames lie in memory column by column: another rounding may number the clusters otherwise
        assert clustering_accuracy(plain.labels_, fitted.labels_) > 0.99


@each_transformer
@each_frame
def test_frames_come_out_where_asked_for(estimator, library, wine, scaled):
    frame = FRAMES[library](dict(zip(NAMES, scaled.T, strict=True)))
    fitted = clone(estimator).set_output(transform=library).fit(frame, pairs=wine[1])
    codes = fitted.transform(frame)
    assert isinstance(codes, FRAMES[library])
    assert list(codes.columns) == fitted.get_feature_names_out().tolist()
    assert codes.columns[0] == f"{type(estimator).__name__.lower()}0"
    plain = clone(estimator).fit(scaled, pairs=wine[1]).transform(scaled)
    np.testing.assert_allclose(codes.to_numpy(), plain)


@each
def test_a_clone_has_the_settings_and_nothing_learned(estimator, wine, scaled):
    twin = clone(clone(estimator).fit(scaled, pairs=wine[1]))
    assert twin.get_params() == estimator.get_params()
    assert [name for name in vars(twin) if name.endswith("_")] == []


@each
def test_a_joblib_file_gives_back_the_same_model(estimator, wine, scaled, tmp_path):
    fitted = clone(estimator).fit(scaled, pairs=wine[1])
    joblib.dump(fitted, tmp_path / "model.joblib")
    again = joblib.load(tmp_path / "model.joblib")
    assert again.get_params() == fitted.get_params()
    np.testing.assert_array_equal(result(again, scaled), result(fitted, scaled))


@each
def test_notebooks_show_the_estimator_fitted_or_not(estimator, wine, scaled):
    name = type(estimator).__name__
    assert name in estimator_html_repr(estimator)
    fitted = clone(estimator).fit(scaled, pairs=wine[1])
    page = estimator_html_repr(make_pipeline(StandardScaler(), fitted))
    assert name in page
    assert "StandardScaler" in page


def test_notebooks_show_a_pair_classifier_with_its_model(wine):
    page = estimator_html_repr(PairClassifier(OURS, wine[0]))
    assert "PairClassifier" in page
    assert "MaxMarginClustering" in page
