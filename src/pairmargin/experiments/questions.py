"""Who asks best: a simulated person answers what a strategy asks, and the default estimator is fitted now and then.

A *curve* is one strategy on one draw of a data set. Its answers are those that the strategy has asked for, one after
the other; each question follows from the last model and from all the answers so far. The model is fitted anew at every
number of answers that is reported, and, with one start, half-way between two of them, unless the strategy does not look
at it: a person who goes on answering while a model is fitted has about that. Seconds are those of the fit. The person
makes no mistakes.
"""

from __future__ import annotations

import time
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from numpy.random import RandomState

from ..exceptions import FewQuestionsWarning
from ..pairs import Pairs
from ..query import View, choose
from . import specs
from .specs import ASKED, Array, Cell, Result, Task

BLIND = {"random"}  # strategies that ask the same, whatever the model


def curves(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Cells that are computed together, by their numbers of answers; one whose answers are drawn stands alone."""
    found: defaultdict[object, list[Cell]] = defaultdict(list)
    for cell in cells:
        is_asked = cell.drawing in ASKED
        found[(cell.dataset, cell.method, cell.seed, cell.drawing) if is_asked else cell].append(cell)
    return [sorted(curve, key=lambda cell: cell.n_pairs) for curve in found.values()]


def follow(cells: Sequence[Cell]) -> Iterator[tuple[Cell, Task, Result, float]]:
    """Ask along one curve; at each of its cells the task, what came out, and the seconds of the fit."""
    from ..estimator import MaxMarginClustering

    first, strategy = specs.draw(cells[0]), ASKED[cells[0].drawing]
    rng = RandomState(first.seed)
    cell_of = {cell.n_pairs: cell for cell in cells}
    view = View.of(MaxMarginClustering(first.n_clusters), first.X, first.seed)
    pairs = Pairs.empty()
    reported = {n for n in specs.QUESTIONS.get(first.dataset, ()) if n < max(cell_of)} | cell_of.keys()
    # Whichever cells are wanted, so that each is the same with and without others.
    for n_answers in sorted(reported) if strategy in BLIND else stops(reported):
        pairs = answered(view, pairs, first.y, n_answers, strategy, rng)
        model = MaxMarginClustering(first.n_clusters, random_state=first.seed)
        if n_answers not in reported:
            model.set_params(n_init=1)
        began = time.process_time()
        model.fit(first.X, pairs=pairs)
        seconds = time.process_time() - began
        view = View.of(model, first.X)
        if n_answers in cell_of:
            task = specs.draw(cell_of[n_answers])
            yield cell_of[n_answers], task, (model.labels_, None), seconds


def stops(counts: Iterable[int]) -> list[int]:
    """The numbers of answers at which a model is fitted: those that are reported, and half-way before each."""
    counts = set(counts)
    between = [(low + high) // 2 for low, high in pairwise([0, *sorted(counts)])]
    return sorted({*counts, *(n for n in between if n)})


def answered(view: View, pairs: Pairs, y: Array, n_answers: int, strategy: str, rng: RandomState) -> Pairs:
    """As many answers, the new ones asked for one by one; fewer if nothing is left to ask."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewQuestionsWarning)
        while len(pairs) < n_answers:
            index = choose(view, pairs, 1, strategy, rng)
            if not len(index):
                break
            pairs = pairs + Pairs(index, y[index[:, 0]] == y[index[:, 1]])
    return pairs
