"""One step of each kind against the matrix products that it cannot do without, and against scikit-learn's RBM.

A step reads its rows, draws, and moves the weights; the bare products do none of that. All have the same data.
"""

from __future__ import annotations

import time
from itertools import pairwise

import torch
from sklearn.neural_network import BernoulliRBM
from torch import Tensor

from pairmargin.inputs import BINARY, DenseInput
from pairmargin.network import Layer, Network
from pairmargin.objective import Prices, Problem, objective_and_subgradient
from pairmargin.rbm import Pretraining, pretrain
from pairmargin.threads import threads_for
from pairmargin.training import AdamSteps

from .measuring import Cost, Options, Work, apart, medians, random_pairs
from .rows import Row

N_COLUMNS, LAYERS, N_CLUSTERS, N_PAIRS = 784, (400, 200, 100), 10, 5000
BATCH = 100
N_LINKS = 7  # a point: about what remains of ten neighbours, when each link counts once
WIDTHS = N_COLUMNS, *LAYERS


def measure(options: Options) -> list[Row]:
    n = options.scaled(60_000)
    size = f"n={n} D={N_COLUMNS} K={N_CLUSTERS} pairs={N_PAIRS}"
    cd = apart(cd_times, n=n, rounds=options.rounds)
    step = apart(training_times, n=n, rounds=options.rounds)
    name = "CD-1, one epoch of 784-400-200-100 in batches of 100"
    rows = [
        Row("steps", f"{name}, over its bare matrix products", cd["ours"] / cd["bare"], "ratio", "<= 1.3", size),
        Row("steps", f"{name}", cd["ours"], "s", "", size),
        Row("steps", f"{name}, scikit-learn's BernoulliRBM over ours", cd["rival"] / cd["ours"], "ratio", ">= 5", size),
        Row(
            "steps",
            f"{name}, BernoulliRBM over the bare matrix products: as fast as one could be",
            cd["rival"] / cd["bare"],
            "ratio",
            "",
            size,
        ),
        *(
            Row("steps", f"{name}, memory of {who}", apart(cd_memory, who=key, n=n)["megabytes"], "MB", "", size)
            for who, key in {"ours": "ours", "BernoulliRBM": "rival"}.items()
        ),
    ]
    name = "training step, 784-400-200-100"
    for what, key in {"answers alone": "ours", "with the neighbours of the default": "neighbours"}.items():
        ratio = step[key] / step["bare"]
        rows.append(Row("steps", f"{name}, {what}, over its bare matrix products", ratio, "ratio", "<= 1.3", size))
    rows.append(Row("steps", f"{name}, with the neighbours of the default", step["neighbours"], "s", "", size))
    compiled = apart(compiled_times, n=n, rounds=options.rounds)
    tried = {
        'with precision="bfloat16", over full precision': step["narrow"] / step["neighbours"],
        "by torch.compile, over as it is": compiled["compiled"] / compiled["plain"],
        "warm-up of torch.compile, in steps": compiled["warm_up"] / compiled["plain"],
    }
    return rows + [Row("steps", f"{name}, {what}", ratio, "ratio", "", size) for what, ratio in tried.items()]


def cd_times(n: int, rounds: int) -> dict[str, float]:
    """An epoch of CD-1 for every layer, in the three ways, in turns."""
    names = ("ours", "bare", "rival")
    return dict(zip(names, medians(*(cd_work(name, n) for name in names), rounds=rounds), strict=True))


def cd_memory(who: str, n: int) -> dict[str, float]:
    """What an epoch takes beside the data."""
    cd_work(who, 1000)()
    work = cd_work(who, n)
    with Cost() as cost:
        work()
    return cost.figures


def cd_work(who: str, n: int) -> Work:
    x = torch.rand(n, N_COLUMNS, generator=torch.Generator().manual_seed(0)).lt(0.2).float()
    return {"ours": _our_cd, "bare": _bare_cd, "rival": _rival_cd}[who](x)


def _our_cd(x: Tensor) -> Work:
    generator = torch.Generator().manual_seed(0)

    def work() -> None:
        with threads_for(BATCH, *WIDTHS):
            pretrain(DenseInput(x), LAYERS, BINARY, Pretraining(epochs=1, batch_size=BATCH), generator, x[:1])

    return work


def _bare_cd(x: Tensor) -> Work:
    levels = [x, *(torch.rand(len(x), width) for width in LAYERS)]
    weights = [torch.rand(a, b) for a, b in pairwise(WIDTHS)]

    def work() -> None:
        with threads_for(BATCH, *WIDTHS):
            for below, weight, level in zip(levels, weights, levels[1:], strict=False):
                coupling, down = torch.empty_like(weight), below[:BATCH].clone()
                for v, h in zip(torch.split(below, BATCH), torch.split(level, BATCH), strict=True):
                    torch.mm(v, weight, out=h)  # p(h | data)
                    torch.mm(h, weight.T, out=down[: len(v)])  # reconstruction
                    torch.mm(down[: len(v)], weight, out=h)  # p(h | reconstruction)
                    torch.mm(v.T, h, out=coupling)  # ⟨v h⟩ of the data
                    torch.mm(down[: len(v)].T, h, out=coupling)  # ⟨v h⟩ of the reconstruction
                torch.mm(below, weight, out=level)  # what the next layer sees

    return work


def _rival_cd(x: Tensor) -> Work:
    def work() -> None:
        below = x.numpy()
        for width in LAYERS:
            below = BernoulliRBM(width, batch_size=BATCH, n_iter=1, random_state=0).fit_transform(below)

    return work


def training_times(n: int, rounds: int) -> dict[str, float]:
    """A full-batch step with and without neighbours, in half the bits, and its products, in turns."""
    x, weights = _task(n)
    works = {
        "ours": our_step(x, weights, 0),
        "neighbours": our_step(x, weights, N_LINKS),
        "narrow": our_step(x, weights, N_LINKS, narrow=torch.bfloat16),
        "bare": bare_step(x, weights),
    }
    return dict(zip(works, medians(*works.values(), rounds=rounds), strict=True))


def compiled_times(n: int, rounds: int) -> dict[str, float]:
    """A step as it is and by PyTorch's compiler, in turns; and the compiler's first step."""
    plain = our_step(*_task(n), N_LINKS)
    compiled = torch.compile(our_step(*_task(n), N_LINKS))
    began = time.perf_counter()
    compiled()
    warm_up = time.perf_counter() - began
    seconds = dict(zip(("plain", "compiled"), medians(plain, compiled, rounds=rounds), strict=True))
    return seconds | {"warm_up": warm_up}


def _task(n: int) -> tuple[Tensor, list[Tensor]]:
    """Random rows, and weights from them to the clusters."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(n, N_COLUMNS, generator=generator)
    return x, [torch.randn(a, b, generator=generator) * 0.05 for a, b in pairwise([*WIDTHS, N_CLUSTERS])]


def our_step(
    x: Tensor,
    weights: list[Tensor],
    n_links: int = 0,
    n_pairs: int = N_PAIRS,
    narrow: torch.dtype | None = None,
) -> Work:
    """A step of training; every point is linked to the next ones on a ring through all points in a random order."""
    layers = [Layer(w.clone(), torch.zeros(w.shape[1])) for w in weights[:-1]]
    d, n_clusters = weights[-1].shape
    network = Network(layers, torch.full((d,), 0.5), 1.0, weights[-1].T.contiguous(), torch.zeros(n_clusters))
    ring = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    links = torch.cat([torch.stack([ring, ring.roll(k)], 1) for k in range(1, n_links + 1)]) if n_links else None
    prices = Prices(0.001, 1.0, 0.3 if n_links else 0.0)
    problem = Problem.build(random_pairs(len(x), n_pairs), len(x), prices, like=x, links=links)
    steps, data = AdamSteps(network, 1e-4, 1e-4), DenseInput(x, narrow)

    def work() -> None:
        scores = network.scores(data)
        _, _, step = objective_and_subgradient(scores, problem, network.squared_norm)
        steps(network.gradients(data, step, problem.prices.weight_penalty), 1)

    return work


def bare_step(x: Tensor, weights: list[Tensor]) -> Work:
    """The products of a step, forward and back, and nothing between them."""
    units = [torch.rand(len(x), w.shape[1]) for w in weights]

    def work() -> None:
        below = [x, *units[:-1]]
        for a, w in zip(below, weights, strict=True):
            torch.mm(a, w)
        for depth in range(len(weights) - 1, -1, -1):
            torch.mm(below[depth].T, units[depth])
            if depth:
                torch.mm(units[depth], weights[depth].T)

    return work
