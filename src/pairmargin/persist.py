"""Models on disk: one safetensors file with the arrays, every setting, the history, the versions and, if wanted, the
recipe that made the features.

Nothing is ever unpickled, so a file from a stranger can do no harm. The format's number goes up when a reader of the
old one could no longer make sense of the file; every number ever written stays readable.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import save as to_bytes
from sklearn.utils.validation import check_is_fitted

from ._version import __version__
from .estimator import MaxMarginClustering
from .exceptions import ModelFileError
from .readers import Recipe
from .trust import Trust
from .writing import new_file, refusals

T = TypeVar("T")
Arrays = dict[str, NDArray[Any]]

FORMAT = "pairmargin"
FORMAT_NUMBER = 2
RECIPE = "recipe."  # before the names of its arrays
_ARRAYS = ("labels_", "code_mean_", "head_coef_", "head_intercept_", "input_shift_", "input_scale_")
_FACTS = ("visible_", "code_spread_", "n_iter_", "objective_", "history_", "pretraining_history_", "n_features_in_")
_ARRAYS_OF_2 = ("suspicious_pairs_", "answer_trust_")  # since format 2
_FACTS_OF_2 = ("n_clusters_found_", "score_unit_", "sharpness_", "error_rate_")
OLD_STARTS = {"graph": "consensus"}  # what took their place
_LIBRARIES = ("numpy", "scikit-learn", "torch", "safetensors")


def save(model: MaxMarginClustering, path: str | os.PathLike[str], *, recipe: Recipe | None = None) -> None:
    """Write a fitted model to one safetensors file, all or nothing.

    Parameters
    ----------
    model : MaxMarginClustering
        Fitted. A callback, the folder of a checkpoint and a `RandomState` instance are not written: they come back as
        None.
    path : path-like
        The file, by custom with the ending ``.safetensors``.
    recipe : Recipe, default=None
        How the features were made of a file, ``items.recipe``: `load_recipe` gives it back.

    Examples
    --------
    >>> from pairmargin import MaxMarginClustering, load, save
    >>> from sklearn.datasets import load_iris
    >>> X = load_iris().data
    >>> model = MaxMarginClustering(3, random_state=0).fit(X)
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, pathlib.Path(folder) / "iris.safetensors")
    ...     again = load(pathlib.Path(folder) / "iris.safetensors")
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    content = model_bytes(model, recipe)
    with new_file(Path(path)) as beside, refusals(Path(path)):
        beside.write_bytes(content)


def model_bytes(model: MaxMarginClustering, recipe: Recipe | None = None) -> bytes:
    """What `save` writes."""
    check_is_fitted(model)
    arrays = {name: np.ascontiguousarray(getattr(model, name)) for name in _ARRAYS + _ARRAYS_OF_2}
    for depth, (weight, bias) in enumerate(zip(model.coefs_, model.intercepts_, strict=True)):
        arrays[f"coefs_.{depth}"], arrays[f"intercepts_.{depth}"] = map(np.ascontiguousarray, (weight, bias))
    steps, recipe_arrays = (None, {}) if recipe is None else recipe.state()
    arrays |= {f"{RECIPE}{name}": np.ascontiguousarray(array) for name, array in recipe_arrays.items()}
    names = getattr(model, "feature_names_in_", None)
    metadata = {
        "format": FORMAT,
        "format_number": FORMAT_NUMBER,
        "settings": {k: v for k, v in model.get_params(deep=False).items() if k != "checkpoint" and _is_plain(v)},
        "facts": {name: getattr(model, name) for name in _FACTS + _FACTS_OF_2},
        "feature_names": None if names is None else [str(name) for name in names],
        "recipe": steps,
        "versions": {"pairmargin": __version__, "python": platform.python_version()}
        | {name: version(name) for name in _LIBRARIES},
    }
    return to_bytes(arrays, {k: json.dumps(v, default=_to_plain) for k, v in metadata.items()})


def load(path: str | os.PathLike[str]) -> MaxMarginClustering:
    """Read a model that `save` has written.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    model : MaxMarginClustering
        Ready to predict, or to go on learning with ``warm_start=True``.
    """
    return _rebuilt(Path(path), _model)


def load_recipe(path: str | os.PathLike[str]) -> Recipe:
    """Read how the features of a model that `save` has written were made.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    recipe : Recipe
        Makes of new files exactly the features that the model was fitted on.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from pairmargin import MaxMarginClustering, load, load_recipe, read_items, save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data, file = pathlib.Path(folder) / "leaves.csv", pathlib.Path(folder) / "leaves.safetensors"
    ...     _ = data.write_text("length,colour\\n" + "1.5,red\\n4.5,blue\\n" * 10)
    ...     items = read_items(data)
    ...     save(MaxMarginClustering(2, random_state=0).fit(items.features), file, recipe=items.recipe)
    ...     labels = load(file).predict(load_recipe(file).read(data).features)
    >>> len(set(labels))
    2
    """
    return _rebuilt(Path(path), _recipe)


def _rebuilt(path: Path, rebuild: Callable[[Path, dict[str, Any], Arrays], T]) -> T:
    """What a function makes of a file's metadata and arrays."""
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = {k: json.loads(v) for k, v in _own_metadata(path, file.metadata()).items()}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except (FileNotFoundError, ModelFileError):
        raise
    except Exception as error:  # a damaged or hostile file can trip any of them
        raise ModelFileError(
            f"{path} is damaged, cut short or no model file ({error}); save the model again"
        ) from error
    try:
        return rebuild(path, metadata, arrays)
    except ModelFileError:
        raise
    except Exception as error:  # what a stranger wrote there may be of any kind
        raise ModelFileError(f"{path} lacks something that it needs ({error!r}); save the model again") from error


def _own_metadata(path: Path, metadata: dict[str, str] | None) -> dict[str, str]:
    """The header's metadata, if it is ours and not from the future."""
    if not metadata or metadata.get("format") != json.dumps(FORMAT):
        raise ModelFileError(f"{path} is a safetensors file, but not one that pairmargin.save has written")
    number = metadata.get("format_number", "")
    if not number.isdigit() or int(number) > FORMAT_NUMBER:
        raise ModelFileError(
            f"{path} has format number {number or 'none'}, this version reads up to {FORMAT_NUMBER}; upgrade pairmargin"
        )
    return metadata


def _recipe(path: Path, metadata: dict[str, Any], arrays: Arrays) -> Recipe:
    """A recipe from what the file says."""
    if metadata.get("recipe") is None:
        raise ModelFileError(f"{path} has no recipe; write one with save(model, path, recipe=items.recipe)")
    own = {name.removeprefix(RECIPE): array for name, array in arrays.items() if name.startswith(RECIPE)}
    return Recipe.from_state(metadata["recipe"], own)


def _model(path: Path, metadata: dict[str, Any], arrays: Arrays) -> MaxMarginClustering:
    """A model from what the file says."""
    settings = metadata["settings"]
    if settings.get("init") in OLD_STARTS:
        settings["init"] = OLD_STARTS[settings["init"]]
    if isinstance(settings["hidden_layer_sizes"], list):
        settings["hidden_layer_sizes"] = tuple(settings["hidden_layer_sizes"])
    model = MaxMarginClustering(**settings)
    depth = sum(name.startswith("coefs_.") for name in arrays)
    model.coefs_ = [arrays[f"coefs_.{i}"] for i in range(depth)]
    model.intercepts_ = [arrays[f"intercepts_.{i}"] for i in range(depth)]
    if metadata["format_number"] == 1:
        _tell_what_format_1_did_not_know(metadata["facts"], arrays)
    for name in _ARRAYS + _ARRAYS_OF_2:
        setattr(model, name, arrays[name])
    for name in _FACTS + _FACTS_OF_2:
        setattr(model, name, metadata["facts"][name])
    if metadata["feature_names"] is not None:
        model.feature_names_in_ = np.asarray(metadata["feature_names"], dtype=object)
    _check_shapes(model)
    if metadata["feature_names"] is not None and model.feature_names_in_.shape != (model.n_features_in_,):
        raise ValueError(f"feature_names are not {model.n_features_in_} names")
    return model


def _tell_what_format_1_did_not_know(facts: dict[str, Any], arrays: dict[str, np.ndarray[Any, Any]]) -> None:
    """Such a model has not judged its answers, and is as sure as one that has seen none."""
    unjudged = Trust.complete(0)
    arrays |= {"suspicious_pairs_": np.empty(0, dtype=np.intp), "answer_trust_": unjudged.trust}
    facts |= {"n_clusters_found_": len(np.unique(arrays["labels_"])), "score_unit_": 1.0}
    facts |= {"sharpness_": unjudged.sharpness, "error_rate_": unjudged.error_rate}


def _check_shapes(model: MaxMarginClustering) -> None:
    """Refuse arrays that do not fit together."""
    widths = [model.n_features_in_, *(len(b) for b in model.intercepts_)]
    wanted: dict[str, tuple[int, ...]] = {f"coefs_.{i}": (a, b) for i, (a, b) in enumerate(pairwise(widths))}
    wanted |= {"head_coef_": (len(model.head_intercept_), widths[-1])}
    wanted |= {"code_mean_": (widths[-1],), "input_shift_": (widths[0],), "input_scale_": (widths[0],)}
    for name, shape in wanted.items():
        base, _, depth = name.partition(".")
        found = getattr(model, base)[int(depth)] if depth else getattr(model, base)
        if found.shape != shape:
            raise ValueError(f"{name} has shape {found.shape}, not {shape}")


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str, tuple, list, np.integer, np.floating, np.ndarray))


def _to_plain(value: Any) -> Any:
    """Numpy numbers and arrays as JSON knows them."""
    return value.tolist()
