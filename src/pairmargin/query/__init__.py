"""Which pair to ask about next: what is known of the points in, pairs of rows out.

`view` is how a model, or the data alone, sees the points; `known` is what the answers so far settle. A strategy is a
function of both that puts open questions in order; `choosing` names the strategies and is what a user calls.
`landmarks` is for a page about a fit, which is not answered one by one.
"""

from .choosing import STRATEGIES, choose, select_pairs
from .known import Known
from .view import View

__all__ = ["STRATEGIES", "Known", "View", "choose", "select_pairs"]
