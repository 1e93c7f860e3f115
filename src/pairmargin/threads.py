"""How many threads a piece of work is worth."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import torch

WORTH_SHARING = 5e8  # floating point operations in one matrix product; below it, handing out the work costs more


@contextmanager
def threads_for(rows: int, *widths: int) -> Iterator[None]:
    """Use one thread inside the block if its largest product, rows × two neighbouring widths, is small."""
    largest = max((2 * rows * a * b for a, b in pairwise(widths)), default=0)
    before = torch.get_num_threads()
    if largest < WORTH_SHARING:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
