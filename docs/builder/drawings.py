"""The pictures of how-it-works.md: toy data in the plane, where everything can be seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from pairmargin import MaxMarginClustering, Pairs, sample_pairs
from pairmargin.looks import ALARM, INKS, cluster_look
from pairmargin.objective import best_two, pair_margins

Array = NDArray[Any]
PLAIN: dict[str, Any] = {
    "neighbour_weight": 0.0,
    "robust": False,
    "even_out": False,
    "n_init": 1,
    "answer_price": 0.0,
    "random_state": 0,
}  # (8) alone


def bars(n: int = 240) -> tuple[Array, Array]:
    """Three long bars side by side: k-means cuts them across."""
    rng = np.random.RandomState(0)
    kind = np.arange(n) % 3
    along, across = rng.uniform(-3, 3, n), rng.normal(0, 0.18, n)
    return np.column_stack([along, across + 1.3 * (kind - 1)]), kind


def hinge() -> None:
    """The price of an answer against the lead of what it says."""
    _, ax = plt.subplots(figsize=(5.6, 2.7))
    lead = np.linspace(-1.5, 2.5, 200)
    ax.plot(lead, np.maximum(1 - lead, 0), color=INKS["f0"], linewidth=2.4)
    ax.axvline(0, color=INKS["f6"], linewidth=1, linestyle=":")
    ax.axvline(1, color=INKS["f6"], linewidth=1, linestyle=":")
    for x, words in ((-0.75, "broken"), (0.5, "kept, but\nonly just"), (1.75, "kept: free")):
        ax.text(x, 2.35, words, ha="center", va="top")
    ax.set(xlabel="lead of the explanation that the answer wants", ylabel="price", ylim=(-0.1, 2.5), xlim=(-1.5, 2.5))
    ax.spines[["top", "right"]].set_visible(False)


def prices() -> None:
    """What each of the three hinges makes of the plane, for one head with three clusters."""
    head = np.array([[0.0, 1.0], [-0.9, -0.55], [0.9, -0.55]])
    x, y = np.meshgrid(np.linspace(-3, 3, 181), np.linspace(-2.4, 2.4, 145))
    plane = torch.from_numpy(np.column_stack([x.ravel(), y.ravel()]) @ head.T)
    fixed = np.array([-0.3, 1.2])
    scores = torch.cat([plane, torch.from_numpy(fixed @ head.T)[None]])
    index = torch.stack([torch.arange(len(plane)), torch.full((len(plane),), len(plane))], 1)
    lead = pair_margins(scores, index)
    value = best_two(plane)[0]
    shown = {
        "(8a) “same as the dot”": 1 - lead,
        "(8b) “not the same”": 1 + lead,
        "(8c) in no answer": 1 - (value[:, 0] - value[:, 1]),
    }
    figure, axes = plt.subplots(1, 3, figsize=(7.6, 2.5), sharex=True, sharey=True)
    best = plane.argmax(1).reshape(x.shape)
    for ax, (title, price) in zip(axes, shown.items(), strict=True):
        drawn = ax.contourf(
            x, y, price.clamp_min(0).reshape(x.shape), levels=np.linspace(0, 4, 17), cmap=_heat(), extend="max"
        )
        for k in range(3):
            ax.contour(x, y, best == k, levels=[0.5], colors=INKS["f6"], linewidths=0.8)
        if "8c" not in title:
            ax.plot(*fixed, "o", color=INKS["f0"], markersize=7)
        ax.set(title=title, xticks=[], yticks=[], aspect="equal")
    figure.colorbar(drawn, ax=axes, label="price", ticks=[0, 1, 2, 3, 4], shrink=0.85)


def before_and_after() -> None:
    """Three bars: where k-means starts, and where 40 answers lead."""
    X, kind = bars()
    pairs = sample_pairs(kind, 40, random_state=4)
    _, axes = plt.subplots(1, 2, figsize=(7.6, 2.7), sharex=True, sharey=True)
    for ax, max_iter, title in zip(axes, (0, 800), ("start", "after training"), strict=True):
        model = _fit_bars(X, pairs, max_iter)
        _regions(ax, model, X)
        broken = _links(ax, X, pairs, model.predict(X))
        ax.set_title(f"{title}: {broken} of {len(pairs)} answers broken")


def _fit_bars(X: Array, pairs: Pairs, max_iter: int) -> MaxMarginClustering:
    settings: dict[str, Any] = {"init": "k-means", "layer_learning_rate": 0.05, "max_iter": max_iter, **PLAIN}
    return MaxMarginClustering(3, 20, **settings).fit(X, pairs=pairs)


def start() -> None:
    """The same bars: k-means as it is, and in the space that the must-links shape."""
    X, kind = bars()
    pairs = sample_pairs(kind, 40, random_state=4)
    _, axes = plt.subplots(1, 2, figsize=(7.6, 2.7), sharex=True, sharey=True)
    for ax, init in zip(axes, ("k-means", "pairs"), strict=True):
        model = MaxMarginClustering(3, 20, init=init, max_iter=0, **PLAIN).fit(X, pairs=pairs)
        _regions(ax, model, X)
        _links(ax, X, pairs[pairs.same], model.predict(X))
        ax.set_title(f'init="{init}"')


def transductive() -> None:
    """Answers about the left half only: the border without and with the price of free points."""
    rng = np.random.RandomState(3)
    kind = np.arange(300) % 2
    X = np.column_stack([rng.uniform(-3, 3, 300), rng.normal(0, 0.28, 300) + 1.6 * (kind - 0.5)])
    known = np.where(np.abs(X[:, 0] + 1) < 1, kind, -1)
    pairs = sample_pairs(known, 12, random_state=3)
    _, axes = plt.subplots(1, 2, figsize=(7.6, 2.7), sharex=True, sharey=True)
    for ax, beta in zip(axes, (0.0, 1.0), strict=True):
        model = MaxMarginClustering(2, (), init="pairs", free_weight=beta, max_iter=1500, **PLAIN).fit(X, pairs=pairs)
        _regions(ax, model, X)
        _links(ax, X, pairs, model.predict(X))
        scores = np.sort(model.decision_function(X), 1)
        near = int(np.sum(scores[:, -1] - scores[:, -2] < 1))
        ax.set_title(f"β = {beta:g}: {near} points near the border")


def filters() -> None:
    """What sixteen units of a pretrained layer look for in a digit."""
    X, _ = load_digits(return_X_y=True)
    model = MaxMarginClustering(10, 16, init="k-means", max_iter=0, **PLAIN).fit(X)
    _, axes = plt.subplots(2, 8, figsize=(6.4, 1.7))
    for ax, weights in zip(axes.flat, model.coefs_[0].T, strict=True):
        far = np.abs(weights).max()
        ax.imshow(weights.reshape(8, 8), cmap="PuOr", vmin=-far, vmax=far)
        ax.set_axis_off()


def objective() -> None:
    """The parts of the objective, iteration by iteration."""
    from pairmargin import ObjectiveDisplay

    X, kind = bars()
    model = _fit_bars(X, sample_pairs(kind, 40, random_state=4), 800)
    _, ax = plt.subplots(figsize=(6.4, 3.0))
    ObjectiveDisplay.from_estimator(model, ax=ax)
    ax.set_ylim(0, 1.15)  # room for the legend


def _heat() -> LinearSegmentedColormap:
    """From nothing to the colour of alarm, on any background."""
    colour = to_rgb(ALARM)
    return LinearSegmentedColormap.from_list("price", [(*colour, 0.0), (*colour, 0.85)])


def _regions(ax: Axes, model: MaxMarginClustering, X: Array) -> None:
    """The points, and behind them whose the plane is."""
    low, high = X.min(0) - 0.5, X.max(0) + 0.5
    x, y = np.meshgrid(np.linspace(low[0], high[0], 240), np.linspace(low[1], high[1], 160))
    best = model.predict(np.column_stack([x.ravel(), y.ravel()])).reshape(x.shape)
    labels = model.predict(X)
    for k in range(model.head_coef_.shape[0]):
        look: dict[str, Any] = {**cluster_look(k)}
        ax.contourf(x, y, best == k, levels=[0.5, 1.5], colors=[look["color"]], alpha=0.16)
        mine = X[labels == k]
        ax.scatter(mine[:, 0], mine[:, 1], s=9, linewidth=0, alpha=0.75, **look)
    ax.set(xticks=[], yticks=[], xlim=(low[0], high[0]), ylim=(low[1], high[1]))


def _links(ax: Axes, X: Array, pairs: Pairs, labels: Array) -> int:
    """The answers: solid for same, dashed for different, red if broken; how many are."""
    kept = (labels[pairs.index[:, 0]] == labels[pairs.index[:, 1]]) == pairs.same
    for (i, j), same, fine in zip(pairs.index, pairs.same, kept, strict=True):
        colour = plt.rcParams["text.color"] if fine else ALARM
        ax.plot(*X[[i, j]].T, color=colour, linestyle="-" if same else (0, (3, 2)), linewidth=1.1, alpha=0.8)
    return int((~kept).sum())


PICTURES: tuple[Callable[[], None], ...] = (hinge, prices, before_and_after, start, transductive, filters, objective)
