"""`MaxMarginClustering`: validate, call, store. The only place where scikit-learn and PyTorch meet."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .exceptions import InvalidParameterError
from .inputs import GAUSSIAN, DenseInput, Input, Scaling
from .labelling import agreeing_labels
from .network import Layer, Network
from .objective import Problem, pair_margins
from .pairs import Pairs
from .rbm import Pretraining, pretrain
from .start import Start, code_spread, graph_start, nearest_mean_head, start_head
from .threads import threads_for
from .training import AdamSteps, History, PaperSteps, Steps, settle, train
from .validation import check_settings, layer_sizes, validated, warn_if_few_distinct

logger = logging.getLogger("pairmargin")
Array = NDArray[Any]
Callback = Callable[[dict[str, Any]], None]

RAMP = 100  # iterations in which Adam's steps rise to their full size
SETTLE_RATES = 0.03, 0.005  # Adam's steps for the head and for the layers, while they learn the clusters of the start


class MaxMarginClustering(ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Deep transductive maximum margin clustering from "same" and "different" answers.

    Stacked RBMs start a sigmoid network; a linear head with one score for each cluster is learned from must-link and
    cannot-link pairs by margins; points in no pair are pushed away from the borders between clusters.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters K.
    hidden_layer_sizes : int or sequence of int, default=(100,)
        Units of each sigmoid layer. ``()`` gives the linear method on standardised input.
    visible : {"auto", "binary", "gaussian"}, default="auto"
        Kind of the first RBM's visible units. Binary: X is divided by one number, so that its largest value is at
        most 1. Gaussian: every column is standardised. "auto" decides from the data, see ``visible_``.
    init : {"graph", "pairs", "k-means", "random"}, default="graph"
        Where training starts. "graph": clusters found where codes shaped by the must-links meet graphs of neighbours
        with the answers in them, learned by the whole network. The others start the head alone: k-means in the shaped
        codes, k-means on the codes as they are, or at random.
    n_init : int, default=1
        Number of starts to train from; the one with the lowest objective is kept.
    solver : {"adam", "subgradient"}, default="adam"
        "subgradient" takes the paper's steps, of size 1/(λ(i + 1 + step_offset)) for the head.
    weight_penalty : float, default=0.001
        Price λ of the squared norm of the head.
    free_weight : float, default=1.0
        Price β of points in no pair that lie close to the border of two clusters.
    learning_rate : float, optional
        Adam's step for the head, 0.02 if not given. The solver "subgradient" has its own rule.
    layer_learning_rate : float, optional
        Step for the layers, 0.01 if not given.
    step_offset : int, default=100
        How many iterations the start counts for in the step size of "subgradient". 0 is the paper's rule to the
        letter, whose first step throws most of the start away.
    max_iter : int, default=500
        Largest number of iterations. 0 stays at the start.
    tol : float, default=1e-5
        Training stops when the objective has not fallen by this share of itself for 20 iterations.
    pretrain_epochs, pretrain_batch_size : int, default=50, 100
        Passes over the data, and rows in a step, for each RBM.
    pretrain_learning_rate : float, optional
        Step of the RBMs: 0.1 for binary and 0.01 for Gaussian visible units if not given.
    cd_steps : int, default=1
        k of CD-k.
    momentum, weight_decay : float, default=0.9, 0.0002
        Of the RBMs.
    answer_price : float, default=3.0
        What an answer is worth, in margins, when ``labels_`` are decided; 0 leaves them to the scores alone.
    on_conflict : {"raise", "drop", "keep"}, default="raise"
        What to do with pairs that contradict each other.
    warm_start : bool, default=False
        Go on from the last fit instead of starting anew: the way to add pairs.
    callback : callable, optional
        Called with a dict after every epoch and iteration; ``row["phase"]`` is "pretrain" or "train".
    verbose : int, default=0
        1 logs the phases, 2 every tenth iteration, to the logger "pairmargin".
    device : str, default="cpu"
        A PyTorch device, or "auto" for the fastest there is.
    random_state : int, RandomState instance or None, default=None
        Same seed and number of threads, same bits.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every training point: that of `predict`, unless the answers about it weigh more than its scores.
    history_ : list of dict
        A row for the start and for every iteration: objective and its terms (``must_link``, ``cannot_link``,
        ``free``, ``norm``), ``violated_pairs``, ``occupied_clusters``, ``seconds``.
    pretraining_history_ : list of dict
        A row for every epoch of every RBM: ``layer``, ``epoch``, ``reconstruction_error``, ``seconds``.
    n_iter_, objective_ : int, float
        Iterations of the kept start, and its lowest objective, which is that of the model.
    visible_ : str
        Kind of visible units that was used.
    coefs_, intercepts_ : list of ndarray
        Weights (inputs, units) and biases of the layers.
    code_mean_, code_spread_ : ndarray of shape (d,), float
        Mean and spread of the codes where training started, both constant.
    head_coef_, head_intercept_ : ndarray of shape (n_clusters, d), (n_clusters,)
        The head: ``scores = (codes - code_mean_) / code_spread_ @ head_coef_.T + head_intercept_``.
    input_shift_, input_scale_ : ndarray of shape (n_features,)
        What is taken off X, and what it is divided by.

    References
    ----------
    Gang Chen (2015). Deep Transductive Semi-supervised Maximum Margin Clustering.

    Examples
    --------
    >>> from pairmargin import MaxMarginClustering, clustering_accuracy, sample_pairs
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> pairs = sample_pairs(y, 100, random_state=0)
    >>> model = MaxMarginClustering(n_clusters=3, random_state=0).fit(X, pairs=pairs)
    >>> clustering_accuracy(y, model.labels_) > 0.95
    True
    """

    def __init__(
        self,
        n_clusters: int = 8,
        hidden_layer_sizes: int | tuple[int, ...] = (100,),
        *,
        visible: str = "auto",
        init: str = "graph",
        n_init: int = 1,
        solver: str = "adam",
        weight_penalty: float = 0.001,
        free_weight: float = 1.0,
        learning_rate: float | None = None,
        layer_learning_rate: float | None = None,
        step_offset: int = 100,
        max_iter: int = 500,
        tol: float = 1e-5,
        pretrain_epochs: int = 50,
        pretrain_batch_size: int = 100,
        pretrain_learning_rate: float | None = None,
        cd_steps: int = 1,
        momentum: float = 0.9,
        weight_decay: float = 2e-4,
        answer_price: float = 3.0,
        on_conflict: str = "raise",
        warm_start: bool = False,
        callback: Callback | None = None,
        verbose: int = 0,
        device: str = "cpu",
        random_state: int | RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.hidden_layer_sizes = hidden_layer_sizes
        self.visible = visible
        self.init = init
        self.n_init = n_init
        self.solver = solver
        self.weight_penalty = weight_penalty
        self.free_weight = free_weight
        self.learning_rate = learning_rate
        self.layer_learning_rate = layer_learning_rate
        self.step_offset = step_offset
        self.max_iter = max_iter
        self.tol = tol
        self.pretrain_epochs = pretrain_epochs
        self.pretrain_batch_size = pretrain_batch_size
        self.pretrain_learning_rate = pretrain_learning_rate
        self.cd_steps = cd_steps
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.answer_price = answer_price
        self.on_conflict = on_conflict
        self.warm_start = warm_start
        self.callback = callback
        self.verbose = verbose
        self.device = device
        self.random_state = random_state

    @classmethod
    def paper(
        cls, n_clusters: int = 8, hidden_layer_sizes: int | tuple[int, ...] = (100,), **changes: Any
    ) -> MaxMarginClustering:
        """The paper's settings: λ = 0.02, β = 1, γ_W = 1/(λ(i + 1)), γ_θ = 0.01, CD-1.

        What the paper leaves open, the start of the head, is filled in with ``init="pairs"`` and counts for 100
        iterations. ``paper(K, init="random", step_offset=0)`` is the text to the letter, and falls into few clusters.
        """
        settings: dict[str, Any] = {
            "solver": "subgradient",
            "weight_penalty": 0.02,
            "free_weight": 1.0,
            "layer_learning_rate": 0.01,
            "cd_steps": 1,
            "init": "pairs",
            "step_offset": 100,
            "answer_price": 0.0,
        }
        return cls(n_clusters, hidden_layer_sizes, **(settings | changes))

    def fit(self, X: ArrayLike, y: Any = None, *, pairs: Pairs | None = None) -> MaxMarginClustering:
        """Cluster the rows of X so that the answers in ``pairs`` hold.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The points.
        y : ignored
            Here because scikit-learn expects it; labels are never looked at.
        pairs : Pairs, optional
            The answers. Without any, the clusters come from the start and the margins alone.

        Returns
        -------
        self : MaxMarginClustering
        """
        warm = self.warm_start and hasattr(self, "head_coef_")
        data = validated(self, X, reset=not warm, accept_sparse="csr")
        check_settings(self.get_params(deep=False), data.shape[0])
        sizes = layer_sizes(self.hidden_layer_sizes)
        pairs = Pairs.check(pairs, data.shape[0]).resolve(self.on_conflict)
        warn_if_few_distinct(data, self.n_clusters)
        rng = check_random_state(self.random_state)
        device = _device(self.device)
        with _shown(self.verbose):
            if warm:
                scaling, history = self._scaling(), self.pretraining_history_
                x = scaling.apply(data, device)
                starts: Iterator[Network] = iter([self._network(data.dtype, device, sizes)])
            else:
                scaling = Scaling.learn(data, self.visible if sizes or self.visible != "auto" else GAUSSIAN)
                x = scaling.apply(data, device)
                layers, history = self._pretrain(x, sizes, scaling.visible, rng, device)
                starts = (self._start(x, layers, pairs, rng) for _ in range(self.n_init))
            candidates = [(network, *self._train(network, x, pairs)) for network in starts]
        network, training_history, labels = min(candidates, key=lambda c: _lowest(c[1]))
        self._store(scaling, network, history, training_history, labels)
        return self

    def predict(self, X: ArrayLike) -> Array:
        """The best cluster of every row of X, eq. (2)."""
        return np.asarray(self.decision_function(X).argmax(1))

    def decision_function(self, X: ArrayLike) -> Array:
        """Scores of shape (n_samples, n_clusters)."""
        network, x = self._ready(X)
        with threads_for(x.shape[0], *_widths(network)):
            return np.asarray(network.scores(x).cpu().numpy())

    def transform(self, X: ArrayLike) -> Array:
        """Codes h of shape (n_samples, d): what the last hidden layer says of every row, eq. (3)."""
        network, x = self._ready(X)
        with threads_for(x.shape[0], *_widths(network)):
            return np.asarray(network.codes(x).cpu().numpy())

    def pair_score(self, X: ArrayLike, index: ArrayLike | Pairs) -> Array:
        """By how much "same" beats "different" for pairs of rows of X; positive means same.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The points.
        index : Pairs or array-like of shape (m, 2)
            Row numbers of the pairs; answers in `Pairs` are not looked at.

        Returns
        -------
        score : ndarray of shape (m,)
        """
        scores = torch.from_numpy(self.decision_function(X))
        asked = Pairs.check_rows(index, len(scores))
        with threads_for(len(asked), scores.shape[1], 1):
            return pair_margins(scores, torch.from_numpy(asked)).numpy()

    @property
    def _n_features_out(self) -> int:
        return int(self.head_coef_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _pretrain(
        self, x: Input, sizes: tuple[int, ...], visible: str, rng: RandomState, device: torch.device
    ) -> tuple[list[Layer], History]:
        """Layers from stacked RBMs."""
        settings = Pretraining(
            epochs=self.pretrain_epochs,
            batch_size=self.pretrain_batch_size,
            learning_rate=self.pretrain_learning_rate,
            cd_steps=self.cd_steps,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
        )
        logger.info("pretraining %d layers on %d x %d, %s visible units", len(sizes), *x.shape, visible)
        generator = torch.Generator(device).manual_seed(int(rng.randint(2**31 - 1)))
        with threads_for(min(self.pretrain_batch_size, x.shape[0]), x.shape[1], *sizes):
            like = x.rows(slice(0, 1))
            return pretrain(x, sizes, visible, settings, generator, like, self._reporter("pretrain"))

    def _start(self, x: Input, layers: list[Layer], pairs: Pairs, rng: RandomState) -> Network:
        """A network with its own copy of the layers and a head to start from."""
        layers = [Layer(layer.weight.clone(), layer.bias.clone()) for layer in layers]
        codes = Network(layers).codes(x)
        centre = codes.mean(0)
        centred = codes.sub(centre).cpu().numpy().astype(np.float64)
        spread = code_spread(centred)
        centred /= spread

        def with_head(head: Array, bias: Array) -> Network:
            return Network(layers, centre, spread, torch.from_numpy(head).to(codes), torch.from_numpy(bias).to(codes))

        if self.init != "graph":
            return with_head(*start_head(centred, self.n_clusters, pairs, self.init, rng))
        start = graph_start(centred, x, self.n_clusters, pairs, rng)
        network = with_head(*nearest_mean_head(centred[start.rows], start.labels, self.n_clusters))
        self._settle(network, x, start)
        return network

    def _settle(self, network: Network, x: Input, start: Start) -> None:
        """Let the network learn the clusters of a start."""
        seen = x if len(start.rows) == x.shape[0] else DenseInput(x.rows(torch.from_numpy(start.rows)))
        labels = torch.from_numpy(start.labels).to(network.head.device, torch.long)
        with threads_for(len(labels), *_widths(network)):
            n_steps = settle(network, seen, labels, AdamSteps(network, *SETTLE_RATES), self.weight_penalty)
        logger.info("the clusters of the start were learned in %d steps", n_steps)

    def _train(self, network: Network, x: Input, pairs: Pairs) -> tuple[History, Array]:
        """Algorithm 1 on one start; its history and the labels it ends with."""
        problem = Problem.build(
            pairs, x.shape[0], weight_penalty=self.weight_penalty, free_weight=self.free_weight, like=network.head
        )
        with threads_for(x.shape[0], *_widths(network)):
            history = train(
                network,
                x,
                problem,
                self._steps(network),
                max_iter=self.max_iter,
                tol=self.tol,
                on_iteration=self._reporter("train"),
            )
            labels = agreeing_labels(network.scores(x).cpu().numpy(), pairs, self.answer_price)
        logger.info("trained for %d iterations, objective %.6g", len(history) - 1, _lowest(history))
        return history, labels

    def _steps(self, network: Network) -> Steps:
        """The solver's way of moving the parameters."""
        if self.solver == "adam":
            return AdamSteps(network, self.learning_rate or 0.02, self.layer_learning_rate or 0.01, RAMP)
        return PaperSteps(network, self.weight_penalty, self.layer_learning_rate or 0.01, self.step_offset)

    def _reporter(self, phase: str) -> Callback:
        """What happens after every epoch and iteration."""

        def report(row: dict[str, Any]) -> None:
            if self.verbose > 1 and row.get("iteration", row.get("epoch", 0)) % 10 == 0:
                logger.info("%s %s", phase, row)
            if self.callback is not None:
                self.callback({"phase": phase, **row})

        return report

    def _store(
        self, scaling: Scaling, network: Network, pretraining: History, training: History, labels: Array
    ) -> None:
        """Keep what was learned, as numpy arrays."""
        self.visible_, self.input_shift_, self.input_scale_ = scaling.visible, scaling.shift, scaling.scale
        self.coefs_ = [layer.weight.cpu().numpy() for layer in network.layers]
        self.intercepts_ = [layer.bias.cpu().numpy() for layer in network.layers]
        self.code_mean_, self.code_spread_ = network.centre.cpu().numpy(), network.spread
        self.head_coef_, self.head_intercept_ = network.head.cpu().numpy(), network.head_bias.cpu().numpy()
        self.pretraining_history_, self.history_ = pretraining, training
        self.n_iter_, self.objective_ = training[-1]["iteration"], _lowest(training)
        self.labels_ = labels

    def _scaling(self) -> Scaling:
        return Scaling(self.visible_, self.input_shift_, self.input_scale_)

    def _network(self, dtype: Any, device: torch.device, sizes: tuple[int, ...] | None = None) -> Network:
        """The stored model as tensors; ``sizes`` are the ones asked for in a warm start."""
        known = tuple(len(b) for b in self.intercepts_)
        if sizes is not None and (sizes, self.n_clusters) != (known, len(self.head_coef_)):
            raise InvalidParameterError(
                f"warm_start goes on with hidden_layer_sizes={known} and n_clusters={len(self.head_coef_)}, but "
                f"{sizes} and {self.n_clusters} are asked for; set warm_start=False to start anew"
            )

        def tensor(a: Array) -> torch.Tensor:
            return torch.tensor(a.astype(dtype), device=device)

        layers = [Layer(tensor(w), tensor(b)) for w, b in zip(self.coefs_, self.intercepts_, strict=True)]
        head = tensor(self.head_coef_), tensor(self.head_intercept_)
        return Network(layers, tensor(self.code_mean_), self.code_spread_, *head)

    def _ready(self, X: ArrayLike) -> tuple[Network, Input]:
        """The model and the data it is asked about."""
        check_is_fitted(self)
        data = validated(self, X, reset=False, accept_sparse="csr")
        device = _device(self.device)
        return self._network(data.dtype, device), self._scaling().apply(data, device)


def _lowest(history: History) -> float:
    """The lowest objective, which is that of the network that was kept."""
    return float(min(row["objective"] for row in history))


def _widths(network: Network) -> list[int]:
    """Sizes of the layers from the input to the clusters."""
    return [layer.weight.shape[0] for layer in network.layers] + [network.head.shape[1], network.head.shape[0]]


def _device(name: str) -> torch.device:
    """The device by name; "auto" takes an accelerator if there is one."""
    if name == "auto":
        return torch.accelerator.current_accelerator() or torch.device("cpu")
    try:
        return torch.device(name)
    except (RuntimeError, TypeError) as error:
        raise InvalidParameterError(f'device={name!r} must be "auto" or a PyTorch device such as "cuda"') from error


@contextmanager
def _shown(verbose: int) -> Iterator[None]:
    """Let log lines reach a user who asked for them but has set up no logging."""
    if not verbose or logger.hasHandlers():
        yield
        return
    handler, level = logging.StreamHandler(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
