"""The errors and warnings of pairmargin.

PairMarginError
├── CheckpointError (also ValueError)         a checkpoint that is damaged or of another fit
├── InvalidParameterError (also ValueError)   a setting that cannot work
├── InvalidDataError (also ValueError)        X that cannot be clustered
├── InvalidPairsError (also ValueError)       answers that are not well formed
│   └── ConflictingPairsError                 answers that contradict each other
├── DatasetError (also RuntimeError)          a data set that is not where it should be
├── ExperimentError (also RuntimeError)       an experiment that cannot run or be told
├── MissingPackageError (also ImportError)    a package of an extra that is not installed
├── ModelFileError (also ValueError)          a model file that is damaged or not ours
├── NotEnoughMemoryError (also MemoryError)   data that need more memory than there is
├── SessionError (also RuntimeError)          a labelling session that cannot be opened or gone on with
├── OutputError (also OSError)                a file that cannot be written
└── TeamError (also RuntimeError)             processes that cannot work together

PairMarginWarning (UserWarning)
├── ChangedDataWarning                        a file that is not what the model was fitted on
├── FewDistinctPointsWarning                  fewer distinct points than clusters
└── FewQuestionsWarning                       fewer questions left than asked for
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = [
    "ChangedDataWarning",
    "CheckpointError",
    "ConflictingPairsError",
    "DatasetError",
    "ExperimentError",
    "FewDistinctPointsWarning",
    "FewQuestionsWarning",
    "InvalidDataError",
    "InvalidPairsError",
    "InvalidParameterError",
    "MissingPackageError",
    "ModelFileError",
    "NotEnoughMemoryError",
    "OutputError",
    "PairMarginError",
    "PairMarginWarning",
    "SessionError",
    "TeamError",
]


class PairMarginError(Exception):
    """Anything that pairmargin itself refuses."""


class InvalidParameterError(PairMarginError, ValueError):
    """A setting that cannot work."""


class InvalidDataError(PairMarginError, ValueError):
    """Data that cannot be clustered."""


class InvalidPairsError(PairMarginError, ValueError):
    """Pairs that are not well formed, or do not fit the data."""


class ConflictingPairsError(InvalidPairsError):
    """Pairs that contradict each other, directly or through a chain of answers."""


class DatasetError(PairMarginError, RuntimeError):
    """A data set that is not where it should be, or not what it should be."""


class ExperimentError(PairMarginError, RuntimeError):
    """An experiment that is not known, cannot run here, or has failed cells."""


class MissingPackageError(PairMarginError, ImportError):
    """A package that an extra brings and that is not installed."""


class ModelFileError(PairMarginError, ValueError):
    """A model file that is damaged, truncated, too new or not ours."""


class NotEnoughMemoryError(PairMarginError, MemoryError):
    """Data that need more memory than the system has left."""


class SessionError(PairMarginError, RuntimeError):
    """A labelling session that cannot be opened, or whose learning has failed."""


class OutputError(PairMarginError, OSError):
    """A file that cannot be written: no permission, a full disk, something in the way."""


class CheckpointError(PairMarginError, ValueError):
    """A checkpoint that is damaged, or of another fit."""


class TeamError(PairMarginError, RuntimeError):
    """Processes that cannot fit a model together: one does not answer, or has other data."""


class PairMarginWarning(UserWarning):
    """Something worth knowing that does not stop the work."""


class ChangedDataWarning(PairMarginWarning):
    """A file has the name of the one that the model was fitted on, but other contents."""


class FewDistinctPointsWarning(PairMarginWarning):
    """There are fewer distinct points than clusters asked for."""


class FewQuestionsWarning(PairMarginWarning):
    """There are fewer questions left to ask than were asked for."""


def unknown_name(what: str, name: object, known: Iterable[str]) -> str:
    """The message for a name that is not known, with the nearest one that is."""
    known = list(known)
    shown = ", ".join(known[:50]) + (f" and {len(known) - 50} more" if len(known) > 50 else "")
    return f"there is no {what} {name!r}{did_you_mean(name, known)}; there are {shown}"


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """The known name that is nearest, as a question in brackets, or nothing."""
    in_any_case = {each.lower(): each for each in known}
    near = difflib.get_close_matches(str(name).lower(), in_any_case, n=1)
    return f" (did you mean {in_any_case[near[0]]!r}?)" if near else ""
