"""The stages of a fit, from rows and answers to a network that has learned them.

==========  =========================================================================================
stage       what it gives
==========  =========================================================================================
pretrain    layers, from stacked RBMs
starts      networks that have learned one clustering each
screen      the start with a low objective that agrees with the others, after a little training
judge       how far every answer can be trusted
train       Algorithm 1, to the end
revise      the same again, where the network has not learned what the answers insist on, or lumps together
            what they do not
==========  =========================================================================================
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
import torch
from numpy.random import RandomState
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from .batches import Batches
from .checkpoint import NOTHING_KEPT, Checkpoint, Keeper, State
from .consensus import consensus_starts, disagreement
from .inputs import Input, Rows, ScaledRows, pieces
from .labelling import asked_labels, lesson
from .neighbours import KnownLinks, side_by_side
from .network import Layer, Network
from .objective import USUAL_PENALTY, Prices, Problem, usual_balance, usual_penalty
from .pairs import Pairs
from .parting import parted_again
from .picked import evened_out, were_picked
from .rbm import Pretraining, pretrain
from .sample import LOOKED_AT, Sample
from .start import N_TRIALS, code_spread, nearest_mean_head, start_head
from .team import Team
from .threads import threads_for
from .training import SETTLED, AdamSteps, History, PaperSteps, Steps, Watch, settle, train, train_in_batches
from .trust import PROOF, Trust, judged, margins, median_margin

logger = logging.getLogger("pairmargin")
CPU = torch.device("cpu")
Array = NDArray[Any]
Callback = Callable[[dict[str, Any]], object]

RAMP = 100  # iterations in which Adam's steps rise to their full size
SETTLE_RATES = 0.03, 0.005  # Adam's steps for the head and for the layers, while they learn given clusters
SCREEN = 25  # iterations after which the best of several starts is known
NEARLY_AS_MANY = 0.95  # of the clusters that another start has: they are learned as soon
N_FOLDS, FOLD_ITER = 3, 50  # parts of the answers, each judged by what so many iterations learn from the others
FEWEST = 20  # answers that can be judged by each other
LESSONS = 3  # times that a network is taught the clusters which the answers insist on
REMINDED = 2500  # points, at most, that take part in a lesson without having been asked about
N_NEIGHBORS = 10
LINKED = 50_000  # rows of a large sample among which neighbours are looked for


class Settings(Protocol):
    """What the stages ask of an estimator: its parameters, by their public names."""

    n_clusters: int | str
    init: str
    n_init: int
    solver: str
    weight_penalty: float | None
    free_weight: float
    neighbour_weight: float
    balance_weight: float | None
    learning_rate: float | None
    layer_learning_rate: float | None
    step_offset: int
    max_iter: int
    tol: float
    pretrain_epochs: int
    pretrain_batch_size: int
    pretrain_learning_rate: float | None
    cd_steps: int
    momentum: float
    weight_decay: float
    answer_price: float
    robust: bool
    even_out: bool
    batch_size: int | None
    callback: Callback | None
    verbose: int


class Known(NamedTuple):
    """What an earlier fit has learned, to go on from."""

    network: Network
    pretraining: History
    sharpness: float


class Learned(NamedTuple):
    """What a fit comes to."""

    network: Network
    pretraining: History
    history: History  # of the network's last training
    trust: Trust
    trusted: Pairs  # the answers, each as heavy as it is trusted


@dataclass(frozen=True)
class Stages:
    """One fit: its settings, its source of chance, who takes part, what keeps it, and neighbours found before."""

    settings: Settings
    rng: RandomState
    team: Team
    kept: Checkpoint
    known_links: KnownLinks

    def learn(self, x: Rows, pairs: Pairs, sizes: tuple[int, ...], visible: str, n_clusters: int | None) -> Learned:
        """All stages in turn; where answers seem wrong, the start is looked for again without them."""
        layers, pretraining = self.pretrain(x, sizes, visible)
        sample = self.sample(x, pairs)
        links = self.links(sample)
        network, trust = self._first_network(sample, sample, layers, n_clusters, links)
        believed = sample.only(trust.believed)
        if trust.error_rate and len(np.unique(believed.pairs.same)) == len(np.unique(pairs.same)):
            proof = (
                0.0 if sample.pairs.conflicts() else PROOF
            )  # what contradicts itself has mistakes, and they were found
            network, trust = self._first_network(believed, sample, layers, n_clusters, links, "again-", proof)
        return self._learn_all(network, x, pairs, sample, trust, sample.in_all(links), pretraining)

    def go_on(self, x: Rows, pairs: Pairs, known: Known) -> Learned:
        """The stages after the start, from a network that has learned before."""
        sample = self.sample(x, pairs)
        links = self.links(sample)
        trust = self._judged(known.network, sample, links)
        trust = trust._replace(sharpness=known.sharpness)  # the network has learned from answers that it now judges
        return self._learn_all(known.network, x, pairs, sample, trust, sample.in_all(links), known.pretraining)

    def _first_network(
        self,
        sample: Sample,
        judged: Sample,
        layers: list[Layer],
        n_clusters: int | None,
        links: torch.Tensor | None,
        name: str = "",
        proof: float = PROOF,
    ) -> tuple[Network, Trust]:
        """The best start that the answers of a sample lead to, and what it makes of all answers."""
        device = sample.x.rows(slice(0)).device
        starts = self.kept.once(
            f"{name}starts",
            self.rng,
            lambda: self._shared_starts(sample, layers, n_clusters),
            lambda found: State({f"start-{k}": each.tensors for k, each in enumerate(found)}, {"n": len(found)}),
            lambda state: [Network.of(state.tensors[f"start-{k}"], device) for k in range(state.facts["n"])],
        )
        network = self.kept.once(
            f"{name}chosen",
            self.rng,
            lambda: self.most_promising(starts, sample, links),
            lambda found: State({"network": found.tensors}, {}),
            lambda state: Network.of(state.tensors["network"], device),
        )
        return network, self._judged(network, judged, links, name, proof)

    def _judged(
        self, network: Network, sample: Sample, links: torch.Tensor | None, name: str = "", proof: float = PROOF
    ) -> Trust:
        work = partial(self.judge, network, sample, links, proof)
        return self.kept.once(f"{name}trust", self.rng, work, Trust.packed, Trust.unpacked)

    def _learn_all(
        self,
        network: Network,
        x: Rows,
        pairs: Pairs,
        sample: Sample,
        trust: Trust,
        links: torch.Tensor | None,
        pretraining: History,
    ) -> Learned:
        """Train from a start to the end; every answer weighs in training what it weighs in the sample."""
        trusted = Pairs(pairs.index, pairs.same, pairs.weight * trust.trust)
        weighed = Pairs(pairs.index, pairs.same, sample.pairs.weight * trust.trust)
        tell = Remembering(self.reporter("train"))
        history = self.train(network, x, weighed, links, on_iteration=tell, keeper=self.kept.stage("training"))
        if not self.team.anyone(tell.stopped):
            network, history = self.revise(network, x, trusted, weighed, trust.believed, links, history)
        return Learned(network, pretraining, history, trust, trusted)

    def pretrain(self, x: Rows, sizes: tuple[int, ...], visible: str) -> tuple[list[Layer], History]:
        """Layers from stacked RBMs."""
        settings = Pretraining(
            epochs=self.settings.pretrain_epochs,
            batch_size=self.settings.pretrain_batch_size,
            learning_rate=self.settings.pretrain_learning_rate,
            cd_steps=self.settings.cd_steps,
            momentum=self.settings.momentum,
            weight_decay=self.settings.weight_decay,
        )
        logger.info("pretraining %d layers on %d x %d, %s visible units", len(sizes), *x.shape, visible)
        like = x.rows(slice(0, 1))
        generator, tell = _generator(self.rng, like.device), self.reporter("pretrain")
        with threads_for(min(settings.batch_size, x.shape[0]), x.shape[1], *sizes):
            return pretrain(x, sizes, visible, settings, generator, like, tell, self.team, self.kept.stage)

    def sample(self, x: Rows, pairs: Pairs) -> Sample:
        """What is looked at as a whole: all of the data, or some of it where it is large.

        Answers to questions that were picked weigh there by the points that they stand for.
        """
        is_drawn = isinstance(x, ScaledRows) or self._is_large(x)
        sample = Sample.draw(x, pairs, self.rng) if is_drawn else Sample.whole(cast(Input, x), pairs)
        if not self.settings.even_out or not were_picked(pairs, x.shape[0]):
            return sample
        weight = None
        if self.team.rank == 0:
            weight = torch.from_numpy(evened_out(sample.x.points(), sample.pairs))
        return sample.weighed(self.team.hand_out(weight).numpy())

    def links(self, sample: Sample) -> torch.Tensor | None:
        """Points of a sample and their nearest neighbours, (l, 2), if they have a price; of a large one, among some."""
        if not self.settings.neighbour_weight:
            return None
        n = sample.x.shape[0]
        is_large = sample.rows is not None and n > LINKED
        rows = np.sort(self.rng.choice(n, LINKED, replace=False)) if is_large else np.arange(n)
        if self.team.rank > 0:
            return self.team.hand_out(None)
        points = sample.x.points(rows if is_large else slice(None))
        found = self.known_links.among(points, self._n_neighbours(n))
        if sample.rows is not None:  # there will be batches
            found = side_by_side(found, len(rows))
        return self.team.hand_out(torch.from_numpy(rows[found]))

    def _n_neighbours(self, n: int) -> int:
        """How many of a point's neighbours there are to be: those of half a class, where classes are small."""
        n_clusters = self.settings.n_clusters
        return N_NEIGHBORS if isinstance(n_clusters, str) else min(max(n // (2 * n_clusters), 1), N_NEIGHBORS)

    def _shared_starts(self, sample: Sample, layers: list[Layer], n_clusters: int | None) -> list[Network]:
        """The starts that the first member of a team finds, for everyone."""
        found = self.starts(sample, layers, n_clusters) if self.team.rank == 0 else []
        self.team.same_chance(self.rng)
        if self.team.size == 1:
            return found
        device, networks = sample.x.rows(slice(0)).device, []
        for k in range(int(self.team.hand_out(torch.tensor([len(found)], device="cpu") if found else None))):
            tensors = found[k].tensors if found else [None] * (2 * len(layers) + 4)
            networks.append(Network.of([self.team.hand_out(tensor) for tensor in tensors], device))
        return networks

    def starts(self, sample: Sample, layers: list[Layer], n_clusters: int | None) -> list[Network]:
        """Networks to train from, each with its own copy of the layers."""
        x, pairs = sample.x, sample.pairs
        codes = Network(layers).codes(x)
        centre = codes.mean(0)
        centred = codes.sub(centre).cpu().numpy().astype(np.float64)
        spread = code_spread(centred)
        centred /= spread

        def with_head(head: Array, bias: Array) -> Network:
            own = [Layer(layer.weight.clone(), layer.bias.clone()) for layer in layers]
            head = np.ascontiguousarray(head)  # another order in memory is another order of sums
            return Network(own, centre, spread, torch.from_numpy(head).to(codes), torch.from_numpy(bias).to(codes))

        if self.settings.init != "consensus":
            assert n_clusters is not None  # `check_settings` has seen to it
            heads = [
                start_head(centred, n_clusters, pairs, self.settings.init, self.rng)
                for _ in range(self.settings.n_init)
            ]
            return [with_head(*head) for head in heads]
        networks = []
        for start in consensus_starts(centred, x, n_clusters, pairs, self.rng, self.settings.n_init):
            networks.append(with_head(*nearest_mean_head(centred[start.rows], start.labels)))
            seen = x if len(start.rows) == x.shape[0] else x.subset(torch.from_numpy(start.rows))
            self.settle(networks[-1], seen, start.labels)
        return networks

    def settle(self, network: Network, x: Input, labels: Array, weight: Array | None = None) -> None:
        """Let the network learn given clusters; every point counts by its weight, which is 1 on average."""
        weight = np.ones(len(labels)) if weight is None else weight
        wanted = torch.from_numpy(labels).to(network.head.device, torch.long), torch.from_numpy(weight).to(network.head)
        with threads_for(len(labels), *widths(network)):
            penalty = _given_or(self.settings.weight_penalty, USUAL_PENALTY)
            n_steps = settle(network, x, *wanted, AdamSteps(network, *SETTLE_RATES), penalty)
        logger.info("%d points learned their clusters in %d steps", len(labels), n_steps)

    def most_promising(self, starts: list[Network], sample: Sample, links: torch.Tensor | None) -> Network:
        """The start that has a low objective, and agrees with the others, when each has been trained a little.

        Few answers leave the objective little to judge by. Fewer clusters are learned sooner: among starts with other
        numbers of clusters, the objective at the end decides.
        """
        if len(starts) == 1:
            return starts[0]
        tell = self.reporter("screen")

        def trained(start: Network, n_steps: int | None) -> tuple[Network, float, int]:
            pupil = start.copy()
            history = self.train(pupil, sample.x, sample.pairs, links, n_steps, tell)
            return pupil, lowest(history), history[-1]["occupied_clusters"]

        pupils, objectives, n_clusters = zip(*(trained(start, SCREEN) for start in starts), strict=True)
        doubt = disagreement([_scores(pupil, sample.x).argmax(1).cpu().numpy() for pupil in pupils]) ** 2
        logger.info("%d starts, objectives %s, doubts %s", len(starts), np.round(objectives, 4), np.round(doubt, 4))
        best: list[int] = []  # one of every number of clusters
        for place in np.argsort(objectives * doubt, kind="stable"):
            if not any(_nearly_as_many(n_clusters[place], n_clusters[other]) for other in best):
                best.append(int(place))
        if len(best) == 1:
            return starts[best[0]]
        ends = {place: trained(starts[place], None)[1] * doubt[place] for place in best}
        logger.info("at the end, objectives and doubts together: %s", ends)
        return starts[min(ends, key=ends.__getitem__)]

    def judge(self, network: Network, sample: Sample, links: torch.Tensor | None, proof: float = PROOF) -> Trust:
        """What networks that learn from some of the answers think of the others."""
        x, pairs = sample.x, sample.pairs
        if not self.settings.robust or len(pairs) < FEWEST or len(network.head) < 2:
            return Trust.complete(len(pairs))
        fold = self.rng.permutation(len(pairs)) % N_FOLDS
        ends = np.empty((len(pairs), 2, len(network.head)), dtype=network.head.cpu().numpy().dtype)
        tell = self.reporter("judge")
        for part in range(N_FOLDS):
            pupil, unseen = network.copy(), fold == part
            self.train(pupil, x, pairs[~unseen], links, FOLD_ITER, tell)
            scores = _scores(pupil, x)
            ends[unseen] = scores[torch.from_numpy(pairs.index[unseen])].cpu().numpy() / median_margin(margins(scores))
        trust = judged(ends, pairs.same, pairs.confirmed(), not were_picked(pairs, x.shape[0]), proof)
        logger.info("%.0f %% of the answers seem wrong", 100 * trust.error_rate)
        return trust

    def revise(
        self,
        network: Network,
        x: Rows,
        pairs: Pairs,
        weighed: Pairs,
        believed: Array,
        links: torch.Tensor | None,
        history: History,
    ) -> tuple[Network, History]:
        """Teach the network what it has not learned, and train it again; the best network, and its last training.

        Large data are left as they are: few of their points are asked about, and all would be trained on again.
        """
        if self._is_large(x):
            return network, history
        tell = Remembering(self.reporter("revise"))
        seen = x.subset(torch.arange(x.shape[0], device="cpu")) if isinstance(x, ScaledRows) else cast(Input, x)
        again = partial(self.train, x=seen, pairs=weighed, links=links, on_iteration=tell)
        network, history = self.teach(network, seen, pairs, believed, history, again, tell)
        if self.team.anyone(tell.stopped):
            return network, history
        return self.part(network, seen, pairs, history, again)

    def teach(
        self,
        network: Network,
        x: Input,
        pairs: Pairs,
        believed: Array,
        history: History,
        again: Callable[[Network], History],
        tell: Remembering,
    ) -> tuple[Network, History]:
        """Teach the network the clusters that the answers insist on, as long as that lowers the objective.

        A margin only pulls at the ends of an answer that is not kept; a lesson says where to, and leads out of a local
        minimum. Other points go with those that were asked about: without them, clusters that no answer is about would
        be forgotten, and of a class that got into the wrong cluster only the asked points would leave it.
        """
        asked = pairs.points
        if not len(asked):
            return network, history
        rows, is_asked = _lesson_rows(asked, x.shape[0])
        seen, weight = x.subset(torch.from_numpy(rows)), _half_for(is_asked)
        for _ in range(LESSONS):
            scores = network.scores(seen).cpu().numpy()
            labels = scores.argmax(1)
            insisted = asked_labels(scores[is_asked], pairs, self.settings.answer_price, believed)
            if (labels[is_asked] == insisted).mean() >= SETTLED or self.team.anyone(tell.stopped):
                break
            pupil = network.copy()
            codes = network.codes(seen).cpu().numpy()
            self.settle(pupil, seen, lesson(labels, is_asked, insisted, codes), weight)
            course = again(pupil)
            if lowest(course) >= lowest(history):
                break
            network, history = pupil, course
        return network, history

    def part(
        self, network: Network, x: Input, pairs: Pairs, history: History, again: Callable[[Network], History]
    ) -> tuple[Network, History]:
        """Part clusters that are surely more than one class, if there may be more of them, and train again.

        What a network has learned is cleaner than its start, and shows what is still lumped together.
        """
        n_clusters = self.settings.n_clusters
        if self.settings.init != "consensus" or isinstance(n_clusters, str) or x.shape[0] > LOOKED_AT:
            return network, history
        used, labels = np.unique(_scores(network, x).argmax(1).cpu().numpy(), return_inverse=True)
        seeds = self.rng.randint(np.iinfo(np.int32).max, size=N_TRIALS)
        with threadpool_limits(1):  # as for starts: several threads add up in an order that changes from run to run
            halves = parted_again(labels, x, pairs, n_clusters, seeds)
        if halves.max() == labels.max():
            return network, history
        logger.info("%d clusters parted into %d", labels.max() + 1, halves.max() + 1)
        members = np.unique(halves, return_index=True)[1]  # one of every cluster
        rows = torch.from_numpy(used[labels[members]]).to(network.head.device)
        pupil = network.copy()
        pupil.head, pupil.head_bias = network.head[rows], network.head_bias[rows]  # both halves begin as the whole
        self.settle(pupil, x, halves)
        return pupil, again(pupil)

    def train(
        self,
        network: Network,
        x: Rows,
        pairs: Pairs,
        links: torch.Tensor | None,
        n_steps: int | None = None,
        on_iteration: Callback | None = None,
        keeper: Keeper = NOTHING_KEPT,
    ) -> History:
        """Algorithm 1 in place, for so many steps if not to the end; its history."""
        settings, is_large = self.settings, self._is_large(x)
        penalty = _given_or(settings.weight_penalty, usual_penalty(len(network.head), int(pairs.same.sum())))
        balance = _given_or(settings.balance_weight, 0.0 if is_large else usual_balance(len(network.head)))
        steps = self._steps(network, penalty)
        n_iter = settings.max_iter if n_steps is None else min(n_steps, settings.max_iter)
        prices = Prices(penalty, settings.free_weight, settings.neighbour_weight, balance)
        watch = Watch(n_iter, settings.tol, on_iteration, self.team, keeper)
        if is_large:
            assert settings.batch_size is not None
            with threads_for(settings.batch_size, *widths(network)):
                problem = Problem.build(pairs, x.shape[0], prices, like=network.head, links=links)
                batches = Batches(x, problem, settings.batch_size, _generator(self.rng), self.team)
                if n_steps is not None:
                    watch = replace(watch, max_iter=-(-n_iter // len(batches)))
                history = train_in_batches(network, batches, steps, watch)
        else:
            with threads_for(x.shape[0], *widths(network)):
                every = torch.arange(x.shape[0], device="cpu")
                all_rows = x.subset(every) if isinstance(x, ScaledRows) else cast(Input, x)
                shares = _shares(network, all_rows) if balance else None
                problem = Problem.build(pairs, x.shape[0], prices, like=network.head, links=links, shares=shares)
                history = train(network, all_rows, problem, steps, watch)
        logger.info("trained for %d iterations, objective %.6g", history[-1]["iteration"], lowest(history))
        return history

    def _is_large(self, x: Rows) -> bool:
        """Whether there is more than one batch."""
        return self.settings.batch_size is not None and x.shape[0] > self.settings.batch_size

    def _steps(self, network: Network, penalty: float) -> Steps:
        """The solver's way of moving the parameters."""
        layer_rate = self.settings.layer_learning_rate or 0.01
        if self.settings.solver == "adam":
            return AdamSteps(network, self.settings.learning_rate or 0.02, layer_rate, RAMP)
        return PaperSteps(network, penalty, layer_rate, self.settings.step_offset)

    def reporter(self, phase: str) -> Callback:
        """What happens after every epoch and iteration."""

        def report(row: dict[str, Any]) -> object:
            if self.settings.verbose > 1 and row.get("iteration", row.get("epoch", 0)) % 10 == 0:
                logger.info("%s %s", phase, row)
            return None if self.settings.callback is None else self.settings.callback({"phase": phase, **row})

        return report


class Remembering:
    """A callback that remembers whether it has asked to stop."""

    def __init__(self, callback: Callback) -> None:
        self.callback, self.stopped = callback, False

    def __call__(self, row: dict[str, Any]) -> bool:
        self.stopped = self.callback(row) is True
        return self.stopped


def lowest(history: History) -> float:
    """The lowest objective, which is that of the network that was kept."""
    return float(min(row["objective"] for row in history))


def _nearly_as_many(one: int, other: int) -> bool:
    return min(one, other) > NEARLY_AS_MANY * max(one, other)


def widths(network: Network) -> list[int]:
    """Sizes of the layers from the input to the clusters."""
    return [layer.weight.shape[0] for layer in network.layers] + [network.head.shape[1], network.head.shape[0]]


def _given_or(given: float | None, usual: float) -> float:
    return usual if given is None else given


def _shares(network: Network, x: Input) -> torch.Tensor:
    """What part of the points every cluster has, (K,); one point more each, so that none has nothing."""
    counts = torch.bincount(network.scores(x).argmax(1), minlength=len(network.head)) + 1
    return counts / counts.sum()


def _scores(network: Network, x: Input) -> torch.Tensor:
    """Of all rows, (n, K), a piece of them at a time."""
    scores = torch.cat([network.scores(piece) for piece in pieces(x)])
    network.activations.clear()
    return scores


def _lesson_rows(asked: Array, n: int) -> tuple[Array, Array]:
    """Rows that take a lesson, those that were asked about and some others, and which are which."""
    others = np.setdiff1d(np.arange(n), asked)
    others = others[:: max(-(-len(others) // REMINDED), 1)]
    rows = np.sort(np.concatenate([asked, others]))
    return rows, np.isin(rows, asked)


def _half_for(chosen: Array) -> Array:
    """Weights (n,), 1 on average, of which the chosen ones have one half and all others the other half."""
    n, n_chosen = len(chosen), chosen.sum()
    return np.ones(n) if n_chosen == n else np.asarray(np.where(chosen, n / 2 / n_chosen, n / 2 / (n - n_chosen)))


def _generator(rng: RandomState, device: torch.device = CPU) -> torch.Generator:
    return torch.Generator(device).manual_seed(int(rng.randint(2**31 - 1)))
