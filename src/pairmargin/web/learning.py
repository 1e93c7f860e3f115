"""From answers to clusters: what a session learns, here or in a process of its own, and how it is kept in files."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file
from safetensors.numpy import save as to_bytes

from ..exceptions import PairMarginWarning, SessionError
from ..writing import new_file, refusals

if TYPE_CHECKING:
    from ..estimator import MaxMarginClustering
    from ..pairs import Pairs

Array = NDArray[Any]
N_QUESTIONS = 200  # that are thought out in advance
LEAST_TRUST = 1e-3  # a weight is more than 0
WARM_ITERATIONS = 30  # that new answers are worth when there is a model already


class Request(NamedTuple):
    """What is to be learned from.

    ``exclude`` are pairs that nobody wants to be asked again; ``fresh`` starts anew instead of from the last model.
    """

    pairs: Pairs
    exclude: Array  # (·, 2)
    n_clusters: int
    fresh: bool
    n_questions: int = N_QUESTIONS


@dataclass(frozen=True, eq=False)
class Clustering:
    """What was learned, as arrays that a page can be made of.

    Attributes
    ----------
    cluster : ndarray of shape (n,)
    chances : ndarray of shape (n, K)
        The chance of every cluster.
    places : ndarray of shape (n, 2)
        Where the items are on the map.
    questions : ndarray of shape (m, 2)
        What to ask next, the most valuable first.
    answered : ndarray of shape (·, 2)
        The answers it was learned from, as rows.
    doubt : ndarray of shape (·,)
        The chance that each of them is a mistake.
    same : ndarray of shape (·,)
        What each of them says.
    n_answers : int
    is_fresh : bool
    seconds : float
    """

    cluster: Array
    chances: Array
    places: Array
    questions: Array
    answered: Array
    doubt: Array
    same: Array
    n_answers: int = 0
    is_fresh: bool = True
    seconds: float = 0.0

    def save(self, path: Path) -> None:
        """Write it to one file, all or nothing."""
        arrays = {each.name: np.ascontiguousarray(getattr(self, each.name)) for each in fields(self)}
        with new_file(path) as beside, refusals(path):
            beside.write_bytes(to_bytes(arrays))

    @classmethod
    def load(cls, path: Path, n_items: int) -> Clustering:
        """Read what `save` wrote."""
        try:
            found = load_file(path)
            values: dict[str, Any] = {each.name: found[each.name] for each in fields(cls)}
        except (OSError, SafetensorError, KeyError) as error:
            raise SessionError(f"{path} is damaged ({error}); remove it, and it is made again") from error
        if len(values["cluster"]) != n_items:
            raise SessionError(f"{path} is about {len(values['cluster'])} items, not {n_items}; remove it")
        plain: dict[str, Any] = {name: values[name].item() for name in ("n_answers", "is_fresh", "seconds")}
        return cls(**(values | plain))


class Learner:
    """Keeps the data and the last model, and learns from all answers when asked to.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, D)
    random_state : int
    settings : dict
        Of `MaxMarginClustering`.
    strategy : str
        Of `select_pairs`.
    """

    def __init__(self, X: Any, random_state: int, settings: dict[str, Any], strategy: str = "default") -> None:
        self.X, self.random_state, self.settings, self.strategy = X, random_state, settings, strategy
        self.model: MaxMarginClustering | None = None
        self._last: Clustering | None = None
        self._trust: dict[tuple[int, int, bool], float] = {}  # in answers, when they were judged last

    def go_on_with(self, clustering: Clustering) -> None:
        """Keep the numbers, the map and the doubts of a clustering of yesterday."""
        self._last = clustering
        rows = zip(clustering.answered.tolist(), clustering.same.tolist(), clustering.doubt.tolist(), strict=True)
        self._trust = {(i, j, same): 1 - doubt for (i, j), same, doubt in rows}

    def first_look(self, request: Request) -> Clustering:
        """Clusters by k-means and first questions, at once, before anything is learned."""
        from ..query import View

        with threads():
            view = View.of_data(self.X, request.n_clusters, self.random_state)
        return self._clustering(view.chances.argmax(1), view, request, np.zeros(len(request.pairs)), 0.0)

    def learn(self, request: Request) -> Clustering:
        """Fit the model, warm if there is one and it is not to be fresh; what comes out."""
        from ..files.fitting import SAMPLE, learned_rows
        from ..files.labels import label, with_known
        from ..query import View
        from ..sample import among

        began = time.perf_counter()
        warm = self.model is not None and not request.fresh
        pairs = self._weighed(request.pairs) if warm else request.pairs
        model = self._ready(request.n_clusters, warm)
        rows = learned_rows(self.X.shape[0], pairs, SAMPLE, self.random_state)
        whole = len(rows) == self.X.shape[0]
        own = pairs if whole else among(pairs, rows, self.X.shape[0])
        with warnings.catch_warnings(), threads():
            warnings.simplefilter("ignore", PairMarginWarning)
            model.fit(self.X if whole else self.X[rows], pairs=own)
            if not warm and self._last is not None:
                keep_numbers(model, self._last.cluster[rows])
            labels = with_known(label(model, self.X), model, self.X, rows)
            view = View.of(model, self.X)
        self.model = model
        if not warm:
            self._trust = dict(zip(_answers(pairs), model.answer_trust_.tolist(), strict=True))
        doubt = 1 - self._trust_in(request.pairs)
        return self._clustering(labels.cluster, view, request, doubt, time.perf_counter() - began, is_fresh=not warm)

    def _trust_in(self, pairs: Pairs) -> Array:
        """The trust in every answer; new ones have not been judged yet."""
        return np.array([self._trust.get(answer, 1.0) for answer in _answers(pairs)])

    def _weighed(self, pairs: Pairs) -> Pairs:
        """Answers that count less where they were found doubtful; a warm fit does not judge them again."""
        from ..pairs import Pairs

        trust = np.maximum(self._trust_in(pairs), LEAST_TRUST)
        return Pairs(pairs.index, pairs.same, pairs.weight * trust)

    def _ready(self, n_clusters: int, warm: bool) -> MaxMarginClustering:
        from ..estimator import MaxMarginClustering

        settings = {"random_state": self.random_state, "on_conflict": "drop", "warm_start": True, **self.settings}
        if not warm or self.model is None:
            return MaxMarginClustering(n_clusters, **settings)
        quick = {"max_iter": WARM_ITERATIONS, "robust": False}
        model: MaxMarginClustering = self.model.set_params(n_clusters=n_clusters, **(settings | quick))
        return model

    def _clustering(
        self, cluster: Array, view: Any, request: Request, doubt: Array, seconds: float, is_fresh: bool = True
    ) -> Clustering:
        from ..query import choose

        with warnings.catch_warnings(), threads():
            warnings.simplefilter("ignore", PairMarginWarning)
            questions = choose(
                view, request.pairs, request.n_questions, self.strategy, self.random_state, exclude=request.exclude
            )
        before = None if self._last is None else self._last.places
        places = map_of(view.codes, before)
        even = 1 / view.chances.shape[1]  # what to say where scores have run away
        chances = np.where(np.isfinite(view.chances), view.chances, even).astype(np.float32)
        self._last = Clustering(
            cluster.astype(np.int32), chances, places, questions, request.pairs.index, doubt, request.pairs.same,
            len(request.pairs), is_fresh, round(seconds, 3),
        )  # fmt: skip
        return self._last


def _answers(pairs: Pairs) -> list[tuple[int, int, bool]]:
    return [(i, j, same) for (i, j), same in zip(pairs.index.tolist(), pairs.same.tolist(), strict=True)]


def threads() -> Any:
    """One thread for everything: the same bits everywhere, and the other processors stay with the page."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)


def keep_numbers(model: MaxMarginClustering, before: Array) -> None:
    """Number the clusters of a new model so that as many items as can be keep the number that they had."""
    from scipy.optimize import linear_sum_assignment

    k = max(len(model.head_coef_), int(before.max(initial=-1)) + 1)
    shared = np.zeros((k, k))
    np.add.at(shared, (model.labels_, before), 1)
    number = linear_sum_assignment(-shared)[1][: len(model.head_coef_)]  # of each cluster now, with gaps
    order = np.argsort(number)  # without gaps
    model.head_coef_, model.head_intercept_ = model.head_coef_[order], model.head_intercept_[order]
    model.labels_ = np.argsort(order)[model.labels_]


def map_of(codes: Array, before: Array | None) -> Array:
    """Two main components of the codes, turned so that the map moves as little as can be from what it was."""
    centred = np.asarray(codes - codes.mean(0), dtype=np.float64)
    if centred.shape[1] > 2:
        _, directions = np.linalg.eigh(centred.T @ centred)
        centred = centred @ directions[:, :-3:-1]
    places = np.zeros((len(centred), 2))
    places[:, : centred.shape[1]] = centred
    places /= max(float(np.sqrt((places**2).mean())), 1e-12)
    if before is not None and len(before) == len(places):
        u, _, vt = np.linalg.svd(places.T @ before)
        places = places @ (u @ vt)
    return places.astype(np.float32)
