"""Whether a file is still what a model was fitted on, by the record of the run that lies beside the model."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path

from ..exceptions import ChangedDataWarning
from ..readers.folders import fingerprint

RECORD = "run.json"


def warn_if_changed(model: str | os.PathLike[str], data: str | os.PathLike[str]) -> None:
    """Warn of a file that has the name of the one that the model was fitted on, but other contents.

    A file of another name is a new one, and a model without its record has nothing to compare with.
    """
    path = Path(data)
    try:
        then = json.loads((Path(model).parent / RECORD).read_text(encoding="utf-8"))["data"]
        is_other = Path(then["path"]).name != path.name
        sha256, size = str(then["sha256"]), int(then["bytes"])
    except (OSError, ValueError, KeyError, TypeError):
        return
    if is_other or not path.exists():
        return
    now = fingerprint(path)
    if now["sha256"] != sha256:
        warnings.warn(
            f"{path.name} has changed since the model was fitted on it ({size:,} bytes then, {now['bytes']:,} now, and "
            "other contents); row numbers and labels may be about other items: fit again, or take the file of then",
            ChangedDataWarning,
            stacklevel=3,
        )
