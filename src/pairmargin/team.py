"""Processes that fit one model together, on one machine or on many: PyTorch's process group, and what is asked of it.

Without a process group there is a team of one, for whom all of this is nothing. Every member sees the same settings
and the same data, works on its own part of the rows, and takes the same steps; so all end with the same bits.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.random import RandomState
from torch import Tensor

from .exceptions import TeamError

GRACE = 10.0  # seconds in which all who are there say so, after someone noticed that others are not
LOOK = timedelta(seconds=1)  # from one time to the next that a member who waits looks whether someone did


@dataclass(frozen=True)
class Team:
    """Who takes part, and which of them this process is."""

    rank: int = 0
    size: int = 1

    @classmethod
    def current(cls) -> Team:
        """The team of the process group, if there is one."""
        if dist.is_available() and dist.is_initialized():
            return cls(dist.get_rank(), dist.get_world_size())
        return cls()

    def share(self, n: int) -> slice:
        """The part of n rows that is this member's own."""
        return slice(n * self.rank // self.size, n * (self.rank + 1) // self.size)

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Replace every tensor by the sum over all members, in one message."""
        if self.size == 1:
            return
        together = torch.cat([tensor.flatten() for tensor in tensors])
        self._together(dist.all_reduce, together)
        start = 0
        for tensor in tensors:
            tensor.copy_(together[start : start + tensor.numel()].view_as(tensor))
            start += tensor.numel()

    def put_together(self, own: Tensor, n: int) -> Tensor:
        """The rows of all members, each of which has its `share` of n."""
        if self.size == 1:
            return own
        whole = own.new_zeros(n, *own.shape[1:])
        whole[self.share(n)] = own
        self._together(dist.all_reduce, whole)
        return whole

    def hand_out(self, tensor: Tensor | None) -> Tensor:
        """What the first member has, for everyone, on the CPU; the others need not know its shape."""
        if self.size == 1:
            assert tensor is not None
            return tensor
        form = torch.zeros(10, dtype=torch.int64, device="cpu")
        if tensor is not None:
            known = [TYPES.index(tensor.dtype), tensor.ndim, *tensor.shape]
            form[: len(known)] = torch.tensor(known, device="cpu")
        self._together(dist.broadcast, form, 0)
        kind, n_dims, *shape = form.tolist()
        if tensor is None:
            tensor = torch.empty(shape[:n_dims], dtype=TYPES[kind], device="cpu")
        tensor = tensor.cpu().contiguous()
        self._together(dist.broadcast, tensor, 0)
        return tensor

    def anyone(self, says: bool) -> bool:
        """Whether some member says so."""
        flag = torch.tensor([float(says)], device="cpu")
        self.add_up([flag])
        return bool(flag > 0)

    def same_chance(self, rng: RandomState) -> None:
        """Let everyone draw the random numbers that the first member would draw next."""
        if self.size > 1:
            set_chance(rng, self.hand_out(chance_of(rng)))

    def meet(self) -> None:
        """Wait for everyone, as long as the process group waits; who does not come is named."""
        if self.size > 1:
            for sign in (TROUBLE, _sign_of(self.rank)):  # of a fit before this one
                _store().delete_key(sign)
            self.add_up([torch.zeros(1, device="cpu")])

    def check_same(self, what: str, content: bytes) -> None:
        """Refuse to go on if the members do not agree on something."""
        if self.size == 1:
            return
        own = torch.tensor(list(hashlib.sha256(content).digest()), dtype=torch.int64, device="cpu")
        found = [torch.empty_like(own) for _ in range(self.size)]
        self._together(dist.all_gather, found, own)
        others = [rank for rank, each in enumerate(found) if not torch.equal(each, found[0])]
        if others:
            raise TeamError(
                f"{what} of process {', '.join(map(str, others))} differs from that of process 0; "
                "give every process the same data, answers and settings"
            )

    def _together(self, what: Callable[..., Any], *args: Any) -> None:
        """Do something with all the others; those who do not come are named.

        Of those who wait for one that has died, only its neighbours get an error. They tell the others. With nccl,
        PyTorch's own watch ends a process that waits in vain.
        """
        began = time.monotonic()
        work = None
        while True:
            try:
                work = work or what(*args, async_op=True)
                work.wait(*([LOOK] if all(each.is_cpu for each in args if isinstance(each, Tensor)) else []))
                return
            except RuntimeError as error:
                try:
                    if work and not work.is_completed() and not _store().check([TROUBLE]):
                        continue
                    missing = self._missing()
                except RuntimeError:  # of the place where all leave their signs
                    missing = [0]
                raise TeamError(self._complaint(error, missing, time.monotonic() - began)) from error

    def _missing(self) -> list[int]:
        """Who does not notice that something has failed: all others leave a sign where everyone can see it."""
        store = _store()
        store.set(_sign_of(self.rank), "here")
        store.set(TROUBLE, "look")
        until = time.monotonic() + GRACE
        while True:
            missing = [rank for rank in range(self.size) if not store.check([_sign_of(rank)])]
            if not missing or time.monotonic() > until:
                return missing
            time.sleep(0.05)

    def _complaint(self, error: RuntimeError, missing: list[int], seconds: float) -> str:
        """What to say when something that needs everyone has failed."""
        if not missing:
            return f"the {self.size} processes cannot talk to each other: {error}"
        return (
            f"process {', '.join(map(str, missing))} of {self.size} did not answer process {self.rank} for "
            f"{seconds:.0f} s: it hangs or has ended; look at what it wrote last. If it only needs longer, give "
            "init_process_group a longer timeout=, or the command a longer --patience. With a checkpoint, the same "
            "call goes on from there"
        )


ALONE = Team()


def chance_of(rng: RandomState) -> Tensor:
    """What a random state will draw, as a tensor."""
    _, keys, *rest = rng.get_state(legacy=True)
    return torch.from_numpy(np.concatenate([keys, rest]))


def set_chance(rng: RandomState, chance: Tensor) -> None:
    """Let a random state draw what another one would."""
    *keys, place, has_gauss, gauss = chance.tolist()
    rng.set_state(("MT19937", np.array(keys, dtype=np.uint32), int(place), int(has_gauss), gauss))


def _store() -> Any:
    """Where the members of the process group write what all can read."""
    return dist.distributed_c10d._get_default_store()


def _sign_of(rank: int) -> str:
    return f"pairmargin/here/{rank}"


@contextmanager
def launched(patience: float) -> Iterator[Team]:
    """The team that ``torchrun`` has launched this process for, while it lasts; without it, a team of one.

    Its members wait for each other for ``patience`` seconds. They talk by gloo: what the command learns is on the CPU.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) < 2 or dist.is_initialized():
        yield Team.current()
        return
    dist.init_process_group("gloo", timeout=timedelta(seconds=patience))
    try:
        yield Team.current()
    finally:
        dist.destroy_process_group()


TROUBLE = "pairmargin/trouble"  # where one who notices that others are missing tells
TYPES = [torch.float32, torch.float64, torch.int64, torch.bool, torch.bfloat16]
