"""Processes that fit one model together, on one machine or on many: PyTorch's process group, and what is asked of it.

Without a process group there is a team of one, for whom all of this is nothing. Every member sees the same settings
and the same data, works on its own part of the rows, and takes the same steps; so all end with the same bits.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Sequence
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

GRACE = 10.0  # seconds in which all who noticed that someone is missing say so


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
        with self._together():
            dist.all_reduce(together)
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
        with self._together():
            dist.all_reduce(whole)
        return whole

    def hand_out(self, tensor: Tensor | None) -> Tensor:
        """What the first member has, for everyone, on the CPU; the others need not know its shape."""
        if self.size == 1:
            assert tensor is not None
            return tensor
        form = torch.zeros(10, dtype=torch.int64, device="cpu")
        if tensor is not None:
            form[: 2 + tensor.ndim] = torch.tensor([TYPES.index(tensor.dtype), tensor.ndim, *tensor.shape])
        with self._together():
            dist.broadcast(form, 0)
        kind, n_dims, *shape = form.tolist()
        if tensor is None:
            tensor = torch.empty(shape[:n_dims], dtype=TYPES[kind], device="cpu")
        tensor = tensor.cpu().contiguous()
        with self._together():
            dist.broadcast(tensor, 0)
        return tensor

    def anyone(self, says: bool) -> bool:
        """Whether some member says so."""
        flag = torch.tensor([float(says)], device="cpu")
        self.add_up([flag])
        return bool(flag > 0)

    def same_chance(self, rng: RandomState) -> None:
        """Let everyone draw the random numbers that the first member would draw next."""
        if self.size > 1:
            name, keys, *rest = rng.get_state(legacy=True)
            *first, place, has_gauss, gauss = self.hand_out(torch.tensor(np.concatenate([keys, rest]))).tolist()
            rng.set_state((name, np.array(first, dtype=np.uint32), int(place), int(has_gauss), gauss))

    def meet(self) -> None:
        """Wait for everyone, as long as the process group waits; who does not come is named."""
        if self.size > 1:
            _store().delete_key(_sign_of(self.rank))  # of a fit before this one
            self.add_up([torch.zeros(1, device="cpu")])

    def check_same(self, what: str, content: bytes) -> None:
        """Refuse to go on if the members do not agree on something."""
        if self.size == 1:
            return
        own = torch.tensor(list(hashlib.sha256(content).digest()), dtype=torch.int64, device="cpu")
        found = [torch.empty_like(own) for _ in range(self.size)]
        with self._together():
            dist.all_gather(found, own)
        others = [rank for rank, each in enumerate(found) if not torch.equal(each, found[0])]
        if others:
            raise TeamError(
                f"{what} of process {', '.join(map(str, others))} differs from that of process 0; "
                "give every process the same data, answers and settings"
            )

    @contextmanager
    def _together(self) -> Iterator[None]:
        """Something that all members do at the same time; those who do not come are named."""
        began = time.monotonic()
        try:
            yield
        except RuntimeError as error:
            raise TeamError(self._complaint(error, time.monotonic() - began)) from error

    def _complaint(self, error: RuntimeError, seconds: float) -> str:
        """What to say when something that needs everyone has failed."""
        try:
            missing = self._missing()
        except RuntimeError:  # what the members write to has ended, too
            missing = [0]
        if not missing:
            return f"the {self.size} processes cannot talk to each other: {error}"
        return (
            f"process {', '.join(map(str, missing))} of {self.size} did not answer process {self.rank} within "
            f"{seconds:.0f} s: it hangs or has ended; look at what it wrote last. If it only needs longer, give "
            "init_process_group a longer timeout=, or the command a longer --patience. With a checkpoint, the same "
            "call goes on from there"
        )

    def _missing(self) -> list[int]:
        """Who does not notice that something has failed: all others leave a sign where everyone can see it."""
        store = _store()
        store.set(_sign_of(self.rank), "noticed")
        until = time.monotonic() + GRACE
        while True:
            missing = [rank for rank in range(self.size) if not store.check([_sign_of(rank)])]
            if not missing or time.monotonic() > until:
                return missing
            time.sleep(0.05)


ALONE = Team()


def _store() -> Any:
    """Where the members of the process group write what all can read."""
    return dist.distributed_c10d._get_default_store()


def _sign_of(rank: int) -> str:
    return f"pairmargin/noticed/{rank}"


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


TYPES = [torch.float32, torch.float64, torch.int64, torch.bool, torch.bfloat16]
