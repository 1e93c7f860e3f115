"""Which pair to ask about next: what is known of the points in, pairs of rows out.

`view` is how a model, or the data alone, sees the points; `known` is what the answers so far settle. A strategy is a
function of both that puts open questions in order; `select` names the strategies and is what a user calls.
"""

from .known import Known
from .select import STRATEGIES, choose, select_pairs
from .view import View

__all__ = ["STRATEGIES", "Known", "View", "choose", "select_pairs"]
