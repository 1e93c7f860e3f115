"""How far a fit has come: bars on a terminal, lines of JSON for machines; and Ctrl-C, which keeps what is done."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from .estimator import MaxMarginClustering

OnRow = Callable[[dict[str, Any]], object]
PHASES = {  # of a fit, in their order, and what a person calls them
    "read": "Reading",
    "pretrain": "Learning features",
    "start": "Finding a start",
    "screen": "Comparing starts",
    "judge": "Judging answers",
    "train": "Training",
    "revise": "Training again",
    "label": "Labelling",
}
TRAINING = {"screen", "judge", "train", "revise"}  # a fit can be stopped there, and leaves a model
EVERY = 10  # iterations that one line of JSON is enough for


def counting_bars(console: Console) -> Progress:
    """Bars with a count and a word on how it goes; nothing where there is no terminal to draw on."""
    from rich import progress as rich

    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(bar_width=20),
        rich.MofNCompleteColumn(),
        rich.TextColumn("{task.fields[status]}"),
        rich.TimeElapsedColumn(),
    )
    return rich.Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


class Interrupts:
    """The first Ctrl-C in training asks it to stop; a second one, or one before there is a model, leaves at once."""

    def __init__(self, say: Callable[[str], object]) -> None:
        self.say, self.phase, self.asked = say, "", False

    def see(self, row: Mapping[str, Any]) -> bool:
        """Look at a row of the fit; whether to stop."""
        self.phase = row["phase"]
        return self.asked

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """What the signal does."""
        if self.asked or self.phase not in TRAINING:
            raise KeyboardInterrupt
        self.asked = True
        self.say("Stopping: the model as it is now will be kept. Ctrl-C again leaves without it.")


@contextmanager
def progress(model: MaxMarginClustering, console: Console, as_json: bool) -> Iterator[OnRow]:
    """A function for the rows of a fit, that shows them and says when to stop."""
    with _bars(model, console, shown=console.is_terminal and not as_json) as draw:
        show = _print_json if as_json else draw
        interrupts = Interrupts(lambda line: None if as_json else console.print(line, style="yellow"))

        def on_row(row: dict[str, Any]) -> bool:
            show(row)
            return interrupts.see(row)

        before = signal.signal(signal.SIGINT, interrupts)
        try:
            yield on_row
        finally:
            signal.signal(signal.SIGINT, before)


def _print_json(row: Mapping[str, Any]) -> None:
    """A line on stderr for every epoch, every tenth iteration and every other phase."""
    if row.get("iteration", 0) % EVERY == 0:
        sys.stderr.write(json.dumps(row) + "\n")
        sys.stderr.flush()


@contextmanager
def _bars(model: MaxMarginClustering, console: Console, shown: bool) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """A bar for the phase that a fit is in: steps, objective, time so far and time left."""
    from rich import progress as rich

    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(bar_width=20),
        rich.TextColumn("{task.fields[steps]}"),
        rich.TextColumn("{task.fields[status]}"),
        rich.TimeElapsedColumn(),
        rich.TimeRemainingColumn(),
    )
    with rich.Progress(*columns, console=console, transient=True, disable=not shown) as bars:
        yield _Drawer(bars, _steps(model))


def _steps(model: MaxMarginClustering) -> dict[str, int]:
    """The most rows of each phase; but of starts with unlike numbers of clusters, some are also trained to the end."""
    from .stages import FOLD_ITER, LESSONS, N_FOLDS, SCREEN
    from .validation import layer_sizes

    epochs = model.pretrain_epochs * len(layer_sizes(model.hidden_layer_sizes))
    return {
        "pretrain": epochs,
        "screen": model.n_init * (min(SCREEN, model.max_iter) + 1),
        "judge": N_FOLDS * (min(FOLD_ITER, model.max_iter) + 1),
        "train": model.max_iter + 1,
        "revise": (LESSONS + 1) * (model.max_iter + 1),  # and once more if clusters are parted
    }


class _Drawer:
    """Moves the bars as the rows of a fit say."""

    def __init__(self, bars: Progress, steps: Mapping[str, int]) -> None:
        self.bars, self.steps = bars, steps
        self.phase, self.total = "", 0
        self.task: TaskID | None = None

    def __call__(self, row: Mapping[str, Any]) -> None:
        if row["phase"] != self.phase:
            self._begin(row["phase"])
        if (task := self.task) is None or row["phase"] not in self.steps:
            return
        self.bars.advance(task)
        done = int(self.bars.tasks[-1].completed)
        if done > self.total:
            self.total += self.steps["train"]  # one more start is trained to the end
        name, value = ("objective", row["objective"]) if "objective" in row else ("error", row["reconstruction_error"])
        self.bars.update(task, total=self.total, steps=f"{done}/{self.total}", status=f"{name} {value:.4f}")
        if self.phase == "pretrain" and done >= self.total:
            self._begin("start")

    def _begin(self, phase: str) -> None:
        """A new bar in the place of the last one."""
        if self.task is not None:
            self.bars.remove_task(self.task)
        self.phase, self.total = phase, self.steps.get(phase, 0)
        self.task = self.bars.add_task(PHASES[phase], total=self.steps.get(phase), steps="", status="")
