"""`MaxMarginClustering`: validate, call, store."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .checkpoint import Checkpoint
from .enough_memory import check_memory, fit_bytes, told_when_used_up
from .exceptions import InvalidParameterError
from .inputs import GAUSSIAN, Input, Rows, Scaling, check_stored, fingerprint, pieces
from .labelling import asked_labels
from .neighbours import KnownLinks
from .network import Layer, Network
from .objective import pair_margins
from .pairs import Pairs
from .stages import Callback, Known, Learned, Stages, lowest, widths
from .stored import is_stored, stored_rows
from .team import Team
from .threads import threads_for
from .trust import Trust, chances, margins, median_margin, same_chances
from .validation import (
    AUTO,
    check_both_kinds,
    check_settings,
    check_shape,
    layer_sizes,
    validated,
    warn_if_few_distinct,
)

logger = logging.getLogger("pairmargin")
Array = NDArray[Any]

LARGE = 2**25  # numbers in X, above which it is looked at piece by piece


class MaxMarginClustering(ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Deep transductive maximum margin clustering from "same" and "different" answers.

    Stacked RBMs start a sigmoid network; a linear head with one score for each cluster is learned from must-link and
    cannot-link pairs by margins; points in no pair are pushed away from the borders between clusters.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Largest number of clusters K. Fewer are used where the answers call for it, see ``n_clusters_found_``. "auto"
        takes the number that agrees best with the answers, of which there must be some of both kinds.
    hidden_layer_sizes : int or sequence of int, default=(100,)
        Units of each sigmoid layer. ``()`` gives the linear method on standardised input.
    visible : {"auto", "binary", "gaussian"}, default="auto"
        Kind of the first RBM's visible units. Binary: X is divided by one number, so that its largest value is at
        most 1, and turned round (1 − x) where most of it is on. Gaussian: every column is standardised, but for
        principal components, which are divided by one number. "auto" decides from the data, see ``visible_``.
    init : {"consensus", "pairs", "k-means", "random"}, default="consensus"
        Where training starts. "consensus": what many clusterings agree on, of codes shaped by the must-links and of
        graphs of neighbours with the answers in them; the whole network learns it. The others start the head alone:
        k-means in the shaped codes, k-means on the codes as they are, or at random.
    n_init : int, default=6
        Number of starts. Each is trained a little, and one with a low objective that agrees with the others to the end.
    solver : {"adam", "subgradient"}, default="adam"
        "subgradient" takes the paper's steps, of size 1/(λ(i + 1 + step_offset)) for the head.
    weight_penalty : float, optional
        Price λ of the squared norm of the head. If not given, 0.001, and with more than 20 clusters and few "same"
        answers less, down to 0.02 / K.
    free_weight : float, default=1.0
        Price β of points in no pair that lie close to the border of two clusters.
    neighbour_weight : float, default=0.3
        Price of neighbours in different clusters: the 10 nearest of every point, or n/(2K) if that is fewer, together
        as much as this part of all must-links.
    balance_weight : float, optional
        Price of clusters whose share of the points departs from the one they had at the start. If not given, 0, and
        with more than 20 clusters 0.3, unless there is a ``batch_size``.
    learning_rate : float, optional
        Adam's step for the head, 0.02 if not given. The solver "subgradient" has its own rule.
    layer_learning_rate : float, optional
        Step for the layers, 0.01 if not given.
    step_offset : int, default=100
        How many iterations the start counts for in the step size of "subgradient". 0 is the paper's rule to the
        letter, whose first step throws most of the start away.
    max_iter : int, default=500
        Largest number of iterations, each a pass over the data. 0 stays at the start.
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
    robust : bool, default=True
        Judge every answer by networks that have learned from others only, and let those count less that are likely to
        be wrong. It also tells how sure `cluster_proba` may be.
    even_out : bool, default=True
        Let answers to questions that somebody has picked weigh the more in training, the more points they stand for.
        Without it, what was asked about most weighs most. Answers that were drawn at random all weigh the same.
    on_conflict : {"raise", "drop", "keep"}, default="raise"
        What to do with pairs that contradict each other.
    batch_size : int, optional
        Take a step for every so many rows instead of one for all of them, and read X as it is needed: a memory map, an
        HDF5 dataset, a Zarr array or `ParquetRows` then stays on disk. Some ten thousand rows are a good size.
    checkpoint : path-like, optional
        A folder that keeps how far `fit` has come. Stopped at any time and called again with the same data, answers and
        settings, it goes on from there, and ends as if nothing had happened.
    checkpoint_every : int, default=10
        Passes over the data from one time to the next that training and pretraining are kept.
    warm_start : bool, default=False
        Go on from the last fit instead of starting anew: the way to add pairs. The neighbours of the same points are
        not looked for again.
    callback : callable, optional
        Called with a dict after every epoch and iteration; ``row["phase"]`` is "pretrain", "screen" for the little
        training that compares starts, "judge" for that which judges answers, "train", or "revise" where the network is
        trained again because it had not learned what the answers insist on, or lumped together what they do not. If it
        returns True in "train" or "revise", `fit` ends with the best network so far; in "screen" and "judge" that one
        training ends.
    verbose : int, default=0
        1 logs the phases, 2 every tenth iteration, to the logger "pairmargin".
    precision : {"full", "bfloat16"}, default="full"
        "bfloat16" keeps dense data and multiplies it with the first layer in half the bits: less memory, and up to
        twice as fast where the processor or the GPU knows such products. All the rest stays as X is.
    device : str, default="cpu"
        A PyTorch device, or "auto" for the fastest there is.
    random_state : int, RandomState instance or None, default=None
        Same seed and number of threads, same bits.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every training point: that of `predict`, unless the answers about it weigh more than its scores.
    n_clusters_found_ : int
        Number of clusters that have points.
    suspicious_pairs_ : ndarray of shape (n_pairs,)
        Positions of the answers, those first that contradict the others most: worth a second look.
    answer_trust_, error_rate_ : ndarray of shape (n_pairs,), float
        The chance that an answer is no mistake, and the share of mistakes that there seem to be.
    sharpness_, score_unit_ : float
        What makes chances of scores: ``softmax(sharpness_ * scores / score_unit_)``.
    history_ : list of dict
        A row for the start and for every iteration of the last training: objective and its terms (``must_link``,
        ``cannot_link``, ``free``, ``norm``, ``neighbours``, ``balance``), ``violated_pairs``, ``occupied_clusters``,
        ``seconds``.
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
    head_coef_, head_intercept_ : ndarray of shape (k, d), (k,)
        The head, one row for each of the k ≤ n_clusters clusters that are in use:
        ``scores = (codes - code_mean_) / code_spread_ @ head_coef_.T + head_intercept_``.
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
        n_clusters: int | str = 8,
        hidden_layer_sizes: int | tuple[int, ...] = (100,),
        *,
        visible: str = "auto",
        init: str = "consensus",
        n_init: int = 6,
        solver: str = "adam",
        weight_penalty: float | None = None,
        free_weight: float = 1.0,
        neighbour_weight: float = 0.3,
        balance_weight: float | None = None,
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
        robust: bool = True,
        even_out: bool = True,
        on_conflict: str = "raise",
        batch_size: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 10,
        warm_start: bool = False,
        callback: Callback | None = None,
        verbose: int = 0,
        precision: str = "full",
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
        self.neighbour_weight = neighbour_weight
        self.balance_weight = balance_weight
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
        self.robust = robust
        self.even_out = even_out
        self.on_conflict = on_conflict
        self.batch_size = batch_size
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.warm_start = warm_start
        self.callback = callback
        self.verbose = verbose
        self.precision = precision
        self.device = device
        self.random_state = random_state

    @classmethod
    def paper(
        cls, n_clusters: int | str = 8, hidden_layer_sizes: int | tuple[int, ...] = (100,), **changes: Any
    ) -> MaxMarginClustering:
        """The paper's settings: λ = 0.02, β = 1, γ_W = 1/(λ(i + 1)), γ_θ = 0.01, CD-1.

        What the paper leaves open, the start of the head, is filled in with ``init="pairs"`` and counts for 100
        iterations. ``paper(K, init="random", step_offset=0)`` is the text to the letter, and falls into few clusters.
        """
        settings: dict[str, Any] = {
            "solver": "subgradient",
            "weight_penalty": 0.02,
            "free_weight": 1.0,
            "neighbour_weight": 0.0,
            "balance_weight": 0.0,
            "robust": False,
            "even_out": False,
            "n_init": 1,
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
        data = self._data(X, reset=not warm, stays=self.batch_size is not None)
        check_settings(self.get_params(deep=False), data.shape[0])
        n_clusters = None if self.n_clusters == AUTO else int(self.n_clusters)
        sizes, device = layer_sizes(self.hidden_layer_sizes), _device(self.device)
        if self.batch_size is None:
            check_memory(fit_bytes(data, sizes if self.device == "cpu" else ()), "this fit")
        given = Pairs.check(pairs, data.shape[0])
        pairs = given.resolve(self.on_conflict)
        if n_clusters is None:
            check_both_kinds(pairs)
        else:
            warn_if_few_distinct(data, n_clusters)
        rng, team = check_random_state(self.random_state), Team.current()
        team.meet()
        team.same_chance(rng)
        known = self._known(data.dtype, device, sizes, n_clusters) if warm else None
        kept = self._checkpoint(data, pairs, known, team)
        stages = Stages(self, rng, team, kept, self._known_links())
        with _shown(self.verbose), told_when_used_up():
            visible = self.visible if sizes or self.visible != "auto" else GAUSSIAN
            scaling = self._scaling() if warm else Scaling.learn(data, visible)
            x = scaling.apply(data, device, self._narrow)
            if known is not None:
                check_stored(data)
                learned = stages.go_on(x, pairs, known)
            else:
                learned = stages.learn(x, pairs, sizes, scaling.visible, n_clusters)
            self._store_labels(learned, x, team)  # which may still fail; then all is as it was
            self._store(scaling, learned)
            self._store_trust(learned.trust, given.is_in(pairs))
        return self

    def predict(self, X: ArrayLike) -> Array:
        """The best cluster of every row of X, eq. (2)."""
        return self._in_pieces(X, lambda network, x: network.scores(x).argmax(1))

    def decision_function(self, X: ArrayLike) -> Array:
        """Scores of shape (n_samples, k), one column for each of the k ≤ n_clusters clusters that are in use."""
        return self._in_pieces(X, Network.scores)

    def transform(self, X: ArrayLike) -> Array:
        """Codes h of shape (n_samples, d): what the last hidden layer says of every row, eq. (3)."""
        return self._in_pieces(X, Network.codes)

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

    def cluster_proba(self, X: ArrayLike) -> Array:
        """The chance of every cluster for every row of X, of shape (n_samples, k).

        As sharp as the answers allow: networks that had not seen an answer were asked how sure they were of it.
        """
        return chances(self.decision_function(X) / self.score_unit_, self.sharpness_)

    def pair_proba(self, X: ArrayLike, index: ArrayLike | Pairs) -> Array:
        """The chance of "same" for pairs of rows of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The points.
        index : Pairs or array-like of shape (m, 2)
            Row numbers of the pairs; answers in `Pairs` are not looked at.

        Returns
        -------
        chance : ndarray of shape (m,)
        """
        scores = self.decision_function(X) / self.score_unit_
        return same_chances(scores[Pairs.check_rows(index, len(scores))], self.sharpness_)

    @property
    def _n_features_out(self) -> int:
        return int(self.head_coef_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _checkpoint(self, data: Any, pairs: Pairs, known: Known | None, team: Team) -> Checkpoint:
        """What keeps this fit; all members of a team have the same to learn from."""
        settings = self._kept_settings()
        if self.checkpoint is None and team.size == 1:
            return Checkpoint(None, self.checkpoint_every, settings, {}, team)
        begun = [] if known is None else [tensor.cpu().numpy().tobytes() for tensor in known.network.tensors]
        content = {
            "data": fingerprint(data),
            "answers": pairs.index.tobytes() + pairs.same.tobytes() + pairs.weight.tobytes(),
            "network to go on from": b"".join(begun),
        }
        for name in sorted(settings.keys() - {"device", "random_state"}):
            team.check_same(f"the setting {name}", repr(settings[name]).encode())
        team.check_same("X", content["data"])
        team.check_same("the list of answers", content["answers"])
        return Checkpoint(self.checkpoint, self.checkpoint_every, settings, content, team)

    def _kept_settings(self) -> dict[str, Any]:
        """The settings that decide what comes out."""
        told = {"callback", "verbose", "checkpoint", "checkpoint_every"}
        return {name: value for name, value in self.get_params(deep=False).items() if name not in told}

    def _store(self, scaling: Scaling, learned: Learned) -> None:
        """Keep what was learned, as numpy arrays."""
        network = learned.network
        self.visible_, self.input_shift_, self.input_scale_ = scaling.visible, scaling.shift, scaling.scale
        self.coefs_ = [layer.weight.cpu().numpy() for layer in network.layers]
        self.intercepts_ = [layer.bias.cpu().numpy() for layer in network.layers]
        self.code_mean_, self.code_spread_ = network.centre.cpu().numpy(), network.spread
        self.head_coef_, self.head_intercept_ = network.head.cpu().numpy(), network.head_bias.cpu().numpy()
        self.pretraining_history_, self.history_ = learned.pretraining, learned.history
        self.n_iter_, self.objective_ = learned.history[-1]["iteration"], lowest(learned.history)

    def _store_labels(self, learned: Learned, x: Rows, team: Team) -> None:
        """Keep the clusters of the points, and what a margin is worth."""
        network, pairs = learned.network, learned.trusted
        best, margin = [], []
        for piece in pieces(x, team):
            scores = network.scores(piece)
            best.append(scores.argmax(1))
            margin.append(margins(scores))
        asked = torch.cat([network.scores(piece) for piece in pieces(x.subset(torch.from_numpy(pairs.points)))])
        labels = team.put_together(torch.cat(best), x.shape[0]).cpu().numpy()
        labels[pairs.points] = asked_labels(asked.cpu().numpy(), pairs, self.answer_price, learned.trust.believed)
        unit = median_margin(team.put_together(torch.cat(margin), x.shape[0]))
        self.labels_, self.n_clusters_found_, self.score_unit_ = labels, len(np.unique(labels)), unit

    def _store_trust(self, trust: Trust, kept: Array) -> None:
        """Keep what there is to say about the answers that were given, of which some were not kept."""
        self.sharpness_, self.error_rate_ = trust.sharpness, trust.error_rate
        self.answer_trust_, right = np.zeros(len(kept)), np.zeros(len(kept))
        self.answer_trust_[kept], right[kept] = trust.trust, trust.right
        self.suspicious_pairs_ = np.argsort(right, kind="stable")

    @property
    def _narrow(self) -> torch.dtype | None:
        return torch.bfloat16 if self.precision == "bfloat16" else None

    def _scaling(self) -> Scaling:
        return Scaling(self.visible_, self.input_shift_, self.input_scale_)

    def _known(self, dtype: Any, device: torch.device, sizes: tuple[int, ...], n_clusters: int | None) -> Known:
        """The stored model, to go on from, if it is what is asked for."""
        known, n_used = tuple(len(b) for b in self.intercepts_), len(self.head_coef_)
        if sizes != known or (n_clusters is not None and n_clusters < n_used):
            raise InvalidParameterError(
                f"warm_start goes on with hidden_layer_sizes={known} and {n_used} clusters, but "
                f"hidden_layer_sizes={sizes} and n_clusters={self.n_clusters!r} are asked for; set "
                "warm_start=False to start anew"
            )
        return Known(self._network(dtype, device), self.pretraining_history_, self.sharpness_)

    def _known_links(self) -> KnownLinks:
        """What is remembered of neighbours, for fits that go on with the same points."""
        if not self.warm_start:
            return KnownLinks()
        self._links: KnownLinks = getattr(self, "_links", KnownLinks())
        return self._links

    def _network(self, dtype: Any, device: torch.device) -> Network:
        """The stored model as tensors."""

        def tensor(a: Array) -> torch.Tensor:
            return torch.tensor(a.astype(dtype), device=device)

        layers = [Layer(tensor(w), tensor(b)) for w, b in zip(self.coefs_, self.intercepts_, strict=True)]
        head = tensor(self.head_coef_), tensor(self.head_intercept_)
        return Network(layers, tensor(self.code_mean_), self.code_spread_, *head)

    def _data(self, X: ArrayLike, *, reset: bool, stays: bool) -> Any:
        """X as an array that all is known of, or as rows that stay where they are."""
        if not is_stored(X) and not (stays and isinstance(X, np.ndarray)):
            if isinstance(X, np.ndarray) and X.dtype.kind in "biu":
                check_memory(X.size * np.dtype(np.float64).itemsize, "X as float64")
            X = validated(self, X, reset=reset, accept_sparse="csr")
            return X if not stays or sp.issparse(X) else stored_rows(X)
        source = stored_rows(X)
        check_shape(self, source.shape, reset=reset)
        return source

    def _in_pieces(self, X: ArrayLike, of: Callable[[Network, Input], torch.Tensor]) -> Array:
        """What the network says of data, piece by piece where there is much of it."""
        check_is_fitted(self)
        data = self._data(X, reset=False, stays=getattr(X, "size", 0) > LARGE)
        device = _device(self.device)
        network, x = self._network(data.dtype, device), self._scaling().apply(data, device, self._narrow)
        found = []
        for piece in pieces(x):
            with threads_for(piece.shape[0], *widths(network)):
                found.append(of(network, piece).cpu().numpy())
        return np.concatenate(found)


def _device(name: str) -> torch.device:
    """The device by name; "auto" takes an accelerator if there is one."""
    if name == "auto":
        return torch.accelerator.current_accelerator() or torch.device("cpu")
    try:
        found = torch.device(name)
    except (RuntimeError, TypeError) as error:
        raise InvalidParameterError(f'device={name!r} must be "auto" or a PyTorch device such as "cuda"') from error
    try:
        torch.empty(0, device=found)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        why = str(error).partition("\n")[0]
        raise InvalidParameterError(f'device={name!r} is not there ({why}); use "auto" or "cpu"') from error
    return found


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
