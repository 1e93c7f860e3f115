"""A fit that can be stopped at any time and goes on from there: its finished stages, and where the present one stands.

Each stage has a file of its own in the folder. It is replaced as a whole, so that there is always one that is complete,
and the last state of a random generator is in it: a fit that was stopped ends with the same bits as one that was not.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.random import RandomState
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from .exceptions import CheckpointError
from .team import ALONE, Team, chance_of, set_chance
from .writing import new_file, refusals

FORMAT = "pairmargin checkpoint 2"
T = TypeVar("T")


class State(NamedTuple):
    """Where something stands: lists of tensors, and what JSON can hold."""

    tensors: dict[str, list[Tensor]]
    facts: dict[str, Any]


class Keeper:
    """Keeps nothing: for work that starts anew if it is stopped."""

    def load(self) -> State | None:
        """Where the work stands, if it was begun."""
        return None

    def is_due(self, iteration: int) -> bool:
        """Whether to keep where the work stands after an iteration."""
        return False

    def save(self, tensors: Mapping[str, Sequence[Tensor]], facts: dict[str, Any]) -> None:
        """Keep where the work stands."""


NOTHING_KEPT = Keeper()


@dataclass(frozen=True)
class FileKeeper(Keeper):
    """Keeps where one stage stands, in a file."""

    path: Path
    every: int
    team: Team

    def load(self) -> State | None:
        if not self.path.exists():
            return None
        tensors: dict[str, list[Tensor]] = {}
        try:
            with safe_open(self.path, framework="pt") as file:
                facts = json.loads((file.metadata() or {})["facts"])
                for name, count in facts.pop("counts").items():
                    tensors[name] = [file.get_tensor(f"{name}.{k}").clone() for k in range(count)]
        except (SafetensorError, KeyError, json.JSONDecodeError, OSError) as error:
            raise CheckpointError(
                f"{self.path} is damaged ({error}); delete it to do this stage of the fit again"
            ) from error
        return State(tensors, facts)

    def is_due(self, iteration: int) -> bool:
        return iteration % self.every == 0

    def save(self, tensors: Mapping[str, Sequence[Tensor]], facts: dict[str, Any]) -> None:
        if self.team.rank > 0:  # all have the same
            return
        flat = {f"{name}.{k}": t.detach().cpu().clone() for name, each in tensors.items() for k, t in enumerate(each)}
        counts = {name: len(each) for name, each in tensors.items()}
        written = to_bytes(flat, {"facts": json.dumps(facts | {"counts": counts})})
        with new_file(self.path) as beside, refusals(self.path):
            beside.write_bytes(written)


class Checkpoint:
    """The stages of a fit in a folder; without one, nothing is kept.

    Parameters
    ----------
    folder : path-like or None
    every : int
        Iterations from one time to the next that a long stage is kept.
    settings : dict
        Of the model. A folder of other settings is refused.
    content : dict of bytes
        The data, the answers and what else a fit begins with, by name. A folder of others is refused.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None,
        every: int,
        settings: dict[str, Any],
        content: Mapping[str, bytes],
        team: Team = ALONE,
    ) -> None:
        self.folder, self.every, self.team = None if folder is None else Path(folder), every, team
        if self.folder is not None:
            self._begin(self.folder, {name: _told(value) for name, value in settings.items()}, content)

    def stage(self, name: str) -> Keeper:
        """What keeps a stage."""
        return NOTHING_KEPT if self.folder is None else FileKeeper(self._file(name), self.every, self.team)

    def once(
        self,
        name: str,
        rng: RandomState,
        work: Callable[[], T],
        pack: Callable[[T], State],
        unpack: Callable[[State], T],
    ) -> T:
        """The result of a stage that is short: from the folder, or else of ``work``, which uses ``rng``."""
        keeper = self.stage(name)
        state = keeper.load()
        if state is not None:
            set_chance(rng, state.tensors["rng"][0])
            return unpack(state)
        result = work()
        tensors, facts = pack(result)
        keeper.save(tensors | {"rng": [chance_of(rng)]}, facts)
        return result

    def _file(self, name: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{name}.safetensors"

    def _begin(self, folder: Path, settings: dict[str, str], content: Mapping[str, bytes]) -> None:
        """Write down whose folder it is, or refuse one that is another fit's."""
        path = folder / "fit.json"
        now = {
            "format": FORMAT,
            "processes": self.team.size,
            "settings": settings,
            "content": {name: hashlib.sha256(each).hexdigest() for name, each in content.items()},
        }
        if not path.exists():
            self.team.meet()  # nobody looks after the first member has written
            if self.team.rank == 0:
                with refusals(folder):
                    folder.mkdir(parents=True, exist_ok=True)
                with new_file(path) as beside, refusals(path):
                    beside.write_text(json.dumps(now, indent=2), encoding="utf-8")
            return
        try:
            then = json.loads(path.read_text(encoding="utf-8"))
            differences = _differences(then, now)
        except (json.JSONDecodeError, KeyError, TypeError, UnicodeDecodeError) as error:
            raise CheckpointError(f"{path} is damaged ({error!r}); delete the folder to start over") from error
        if differences:
            raise CheckpointError(
                f"{folder} is the checkpoint of another fit: {differences[0]}; choose another folder, or delete it"
            )


def _differences(then: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """In what a fit differs from the one that began a folder."""
    found = [] if then["format"] == now["format"] else [f"its format is {then['format']!r}"]
    for name, value in now["settings"].items():
        if then["settings"].get(name) != value:
            found.append(f"it has {name}={then['settings'].get(name)}, now it is {value}")
    if then["processes"] != now["processes"]:
        found.append(f"it has {then['processes']} processes, now there are {now['processes']}")
    for name, content in now["content"].items():
        if then.get("content", {}).get(name) != content:
            found.append(f"it does not have the same {name}")
    return found


def _told(value: object) -> str:
    """A setting in words that another process uses too."""
    if isinstance(value, RandomState):
        return f"RandomState with {hashlib.sha256(chance_of(value).numpy().tobytes()).hexdigest()[:16]}"
    return repr(value.item() if isinstance(value, np.generic) else value)
