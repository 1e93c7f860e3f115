"""Pairs: the answers "same" or "different" about pairs of rows.

Whatever a user hands over is checked once, when a `Pairs` is made (`checks`); the rest of the library trusts what it
holds. What follows from answers is in `logic`, drawing them in `sampling`, the counting underneath in `arithmetic`.
"""

from .logic import Conflict
from .pairs import Pairs
from .sampling import sample_pairs

__all__ = ["Conflict", "Pairs", "sample_pairs"]
