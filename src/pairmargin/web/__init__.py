"""Questions and answers: a session in which people say "same" or "different", and the page that it is held on.

`session` has the logic and no HTTP; `store` keeps the answers on disk; `closure` knows what follows from them; `people`
compares who gave them; `learning` turns them into clusters, if wanted in a process of its own (`worker`); `simulated`
is a person for tests and experiments. `app` has the routes, `security` who may use them, `connections` how many and how
slow they may be, `static/` is the page.
"""

from .session import LabelingSession
from .simulated import SimulatedPerson

__all__ = ["LabelingSession", "SimulatedPerson"]
