"""What `fit` refuses, and why: settings that cannot work and values that are not numbers."""

from __future__ import annotations

import math
import numbers
import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_array, validate_data

from .exceptions import FewDistinctPointsWarning, InvalidDataError, InvalidParameterError
from .inputs import check_finite, first_rows
from .pairs import Pairs

Rule = tuple[str, Callable[[Any], bool]]  # what the value must be, in words and as a test


def _is_integer(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)


def integer(least: int) -> Rule:
    return f"an integer, {least} or more", lambda v: _is_integer(v) and v >= least


def one_of(*choices: str) -> Rule:
    return " or ".join(map(repr, choices)), lambda v: isinstance(v, str) and v in choices


POSITIVE: Rule = ("a number above 0", lambda v: _is_number(v) and v > 0)
NOT_NEGATIVE: Rule = ("a number, 0 or more", lambda v: _is_number(v) and v >= 0)
_RATE: Rule = ("a number above 0, or None for the default", lambda v: v is None or POSITIVE[1](v))
_PRICE: Rule = ("a number, 0 or more, or None for the default", lambda v: v is None or NOT_NEGATIVE[1](v))

Rules = dict[str, Rule]

SQUARED = 1e-15, 1e15  # numbers so small or large have no squares in float32
LARGEST = 1e100  # number to calculate with, also in products of several
AUTO = "auto"  # as many clusters as agree best with the answers

SETTINGS: Rules = {
    "n_clusters": (
        f'an integer, 1 or more, or "{AUTO}"',
        lambda v: v == AUTO if isinstance(v, str) else integer(1)[1](v),
    ),
    "hidden_layer_sizes": (
        "positive integers such as (100,), or () for the linear method",
        lambda v: all(_is_integer(s) and s > 0 for s in layer_sizes(v)),
    ),
    "visible": one_of("auto", "binary", "gaussian"),
    "init": one_of("consensus", "pairs", "k-means", "random"),
    "n_init": integer(1),
    "solver": one_of("adam", "subgradient"),
    "weight_penalty": _PRICE,
    "free_weight": NOT_NEGATIVE,
    "neighbour_weight": NOT_NEGATIVE,
    "balance_weight": _PRICE,
    "learning_rate": _RATE,
    "layer_learning_rate": _RATE,
    "step_offset": integer(0),
    "max_iter": integer(0),
    "tol": NOT_NEGATIVE,
    "pretrain_epochs": integer(0),
    "pretrain_batch_size": integer(1),
    "pretrain_learning_rate": _RATE,
    "cd_steps": integer(1),
    "momentum": ("a number from 0 to below 1", lambda v: _is_number(v) and 0 <= v < 1),
    "weight_decay": NOT_NEGATIVE,
    "answer_price": NOT_NEGATIVE,
    **dict.fromkeys(("robust", "even_out", "warm_start"), ("True or False", lambda v: isinstance(v, (bool, np.bool_)))),
    "random_state": (
        "an integer from 0 to 2**32 - 1, a RandomState, or None",
        lambda v: v is None or isinstance(v, np.random.RandomState) or (_is_integer(v) and 0 <= v < 2**32),
    ),
    "batch_size": ("an integer, 1 or more, or None", lambda v: v is None or integer(1)[1](v)),
    "checkpoint": ("a path or None", lambda v: v is None or isinstance(v, (str, os.PathLike))),
    "checkpoint_every": integer(1),
    "precision": one_of("full", "bfloat16"),
    "on_conflict": one_of("raise", "drop", "keep"),
    "verbose": ("True, False or an integer, 0 or more", lambda v: v in (True, False) or (_is_integer(v) and v >= 0)),
    "callback": ("callable or None", lambda v: v is None or callable(v)),
}


def layer_sizes(value: Any) -> tuple[Any, ...]:
    """``hidden_layer_sizes`` as a tuple; one number is one layer."""
    return tuple(value) if isinstance(value, (tuple, list, np.ndarray)) else (value,)


def check_rules(rules: Rules, settings: dict[str, Any]) -> None:
    """Refuse a setting that breaks its rule, naming the value and what it must be."""
    for name, (wanted, holds) in rules.items():
        if not holds(settings[name]):
            raise InvalidParameterError(f"{name}={settings[name]!r} must be {wanted}")


def check_n_clusters(n_clusters: int, n_samples: int) -> None:
    """Refuse more clusters than points."""
    if n_clusters > n_samples:
        raise InvalidParameterError(
            f"n_clusters={n_clusters} is more than n_samples={n_samples}; ask for fewer clusters"
        )


def check_settings(settings: dict[str, Any], n_samples: int) -> None:
    """Refuse settings of `MaxMarginClustering` that cannot work, alone or together."""
    check_rules(SETTINGS, settings)
    if settings["solver"] == "subgradient" and settings["weight_penalty"] == 0:
        raise InvalidParameterError(
            'weight_penalty=0 leaves the step 1/(λ(i + 1)) undefined; use solver="adam" or a positive weight_penalty'
        )
    if settings["batch_size"] is not None and settings["balance_weight"]:
        raise InvalidParameterError(
            f"balance_weight={settings['balance_weight']} needs all points at once, not batch_size="
            f"{settings['batch_size']}; leave one of them out"
        )
    if settings["n_clusters"] != AUTO:
        check_n_clusters(settings["n_clusters"], n_samples)
    elif settings["init"] != "consensus":
        raise InvalidParameterError(
            f'n_clusters="{AUTO}" goes with init="consensus", not {settings["init"]!r}; give the number of clusters'
        )


def validated(estimator: Any, X: Any, *, reset: bool, accept_sparse: str | bool = False) -> Any:
    """X as float32 or float64 with all values finite; scikit-learn's own complaints in our error tree."""
    if sp.issparse(X) and not accept_sparse:
        raise InvalidDataError(f"X is a sparse {type(X).__name__}, but dense data is required; pass X.toarray()")
    try:
        data = validate_data(
            estimator,
            _native(X),
            reset=reset,
            accept_sparse=accept_sparse,
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
        )
    except ValueError as error:
        raise InvalidDataError(str(error)) from error
    check_finite(data)
    return _wide_enough(data)


def checked_points(X: Any) -> Any:
    """The same for points that no estimator is fitted to; sparse ones as CSR."""
    try:
        data = check_array(_native(X), accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=False)
    except ValueError as error:
        raise InvalidDataError(str(error)) from error
    check_finite(data)
    return _wide_enough(data)


def _native(X: Any) -> Any:
    """X in the byte order of this machine; scikit-learn would make double precision of any other."""
    foreign = isinstance(X, np.ndarray) and not X.dtype.isnative
    return X.astype(X.dtype.newbyteorder("=")) if foreign else X


def _wide_enough(data: Any) -> Any:
    """The data, as float64 if float32 could not hold the squares of its numbers."""
    values = data.data if hasattr(data, "indptr") else data
    largest = max(float(values.max(initial=0)), -float(values.min(initial=0)))
    if largest > LARGEST:
        raise InvalidDataError(f"X has numbers up to {largest:g}, too large to calculate with; divide X by one of them")
    lost = largest > 0 and not SQUARED[0] < largest < SQUARED[1]
    return data.astype(np.float64) if lost and data.dtype == np.float32 else data


def validated_fit(
    estimator: Any, X: Any, pairs: Any, rules: Rules, *, accept_sparse: str | bool = False
) -> tuple[Any, Pairs]:
    """X and the answers that a clusterer is to learn from, all of it checked, contradictions resolved as it says."""
    data = validated(estimator, X, reset=True, accept_sparse=accept_sparse)
    check_rules(rules, estimator.get_params(deep=False))
    check_n_clusters(estimator.n_clusters, data.shape[0])
    answers = Pairs.check(pairs, data.shape[0]).resolve(estimator.on_conflict)
    warn_if_few_distinct(data, estimator.n_clusters, stacklevel=4)
    return data, answers


def check_shape(estimator: Any, shape: tuple[int, int], *, reset: bool) -> None:
    """Refuse data without rows or columns, or with other columns than before; what scikit-learn does to arrays."""
    name, (n_samples, n_features) = type(estimator).__name__, shape
    if not n_samples or not n_features:
        raise InvalidDataError(f"X has the shape {shape}; at least one row and one column are needed")
    if reset:
        estimator.n_features_in_ = n_features
        estimator.__dict__.pop("feature_names_in_", None)
    elif n_features != estimator.n_features_in_:
        raise InvalidDataError(
            f"X has {n_features} features, but {name} is expecting {estimator.n_features_in_} features as input"
        )


def warn_if_few_distinct(X: Any, n_clusters: int, stacklevel: int = 3) -> None:
    """Warn the caller of `fit` if there are fewer distinct points than clusters; looks no further than it must."""
    size, distinct = 2 * n_clusters, 0
    while True:
        top = first_rows(X, size)
        distinct = len(np.unique(top, axis=0))
        if distinct >= n_clusters:
            return
        if size >= X.shape[0]:
            break
        size *= 4
    warnings.warn(
        f"X has only {distinct} distinct points but n_clusters={n_clusters}; some clusters will be empty",
        FewDistinctPointsWarning,
        stacklevel=stacklevel,
    )


def check_both_kinds(pairs: Pairs) -> None:
    """Refuse to count clusters from answers that are all the same."""
    n_same = int(pairs.same.sum())
    if not 0 < n_same < len(pairs):
        raise InvalidParameterError(
            f'n_clusters="{AUTO}" needs answers of both kinds, but {n_same} are "same" and {len(pairs) - n_same} '
            '"different"; give some of the other kind, or the number of clusters'
        )
