"""Whether the memory is enough: what a fit needs at the least, what the system has left, and one error for both.

What is counted is what cannot be done without: a scaled copy of X, and the codes and their gradient. A fit needs more
than that, so what would fit is never refused; docs/design/memory.md has measured fits. Where the system does not say
how much is left, nothing is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .exceptions import NotEnoughMemoryError

WAY_OUT = "learn from some rows at a time with batch_size= (--batch-size of the command), or give X as float32"
SYSTEM, GROUPS, OWN_GROUPS = Path("/proc/meminfo"), Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
_USED_UP = re.compile("can't allocate memory|not enough memory|out of memory")  # as PyTorch says it


def check_memory(needed: int, what: str, way_out: str = WAY_OUT) -> None:
    """Refuse what needs more memory than the system has left."""
    left = available()
    if left is not None and needed > left:
        raise NotEnoughMemoryError(
            f"{what} needs at least {in_words(needed)} of memory, but {in_words(left)} are available; {way_out}"
        )


@contextmanager
def told_when_used_up() -> Iterator[None]:
    """Memory that runs out in the middle of a fit, in our words."""
    try:
        yield
    except NotEnoughMemoryError:
        raise
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and not _USED_UP.search(str(error)):
            raise
        left, why = available(), "".join(str(error).splitlines()[:1])
        known = f", {in_words(left)} are available" if left is not None else ""
        raise NotEnoughMemoryError(
            f"the memory was used up in the middle of the fit{known} ({why or type(error).__name__}); {WAY_OUT}"
        ) from error


def fit_bytes(data: Any, layer_sizes: Sequence[int]) -> int:
    """The least that a fit needs besides X, which is there: its scaled copy, codes of all layers, their gradient."""
    n_samples, n_features = data.shape
    copy = n_samples * n_features
    if hasattr(data, "nnz"):
        copy = data.nnz  # of a sparse X, the transposed
    return int((copy + 2 * n_samples * sum(layer_sizes)) * data.dtype.itemsize)


def available() -> int | None:
    """Bytes that the system can still give to this process; None where it does not say."""
    system = _numbers(SYSTEM)
    if "MemAvailable:" not in system:
        return None
    swap = system.get("SwapFree:", 0) * 1024
    return int(min([system["MemAvailable:"] * 1024, *_left_to_groups()]) + swap)


def _left_to_groups() -> Iterator[int]:
    """What is left of the limits that containers and batch systems set, files in memory counted as free."""
    lines = OWN_GROUPS.read_text().splitlines() if OWN_GROUPS.exists() else []
    for kinds, place in (line.split(":", 2)[1:] for line in lines if line.count(":") >= 2):
        if kinds not in ("", "memory"):
            continue
        top = GROUPS / kinds
        limit, used, files = (
            ("memory.max", "memory.current", "file")
            if not kinds
            else ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_cache")
        )
        group = top / place.lstrip("/")
        for folder in [group, *(each for each in group.parents if each.is_relative_to(top))]:
            most, now = _number(folder / limit), _number(folder / used)
            if most is not None and now is not None:
                yield max(most - now + _numbers(folder / "memory.stat").get(files, 0), 0)


def _number(path: Path) -> int | None:
    """The number in a file; None if there is no file or no number."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _numbers(path: Path) -> dict[str, int]:
    """The numbers in a file by the words that stand before them."""
    try:
        lines = [line.split() for line in path.read_text().splitlines()]
    except (OSError, ValueError):
        return {}
    return {line[0]: int(line[1]) for line in lines if len(line) > 1 and line[1].isdigit()}


def in_words(size: int) -> str:
    """Bytes as a person says them."""
    return f"{size / 1e9:,.1f} GB" if size >= 1e8 else f"{math.ceil(size / 1e6)} MB"
