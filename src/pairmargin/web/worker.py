"""Learning in a process of its own, so that the page goes on at once: ``python -m pairmargin.web.worker FOLDER``.

The page's process writes the data into a folder that only the two know, and then a line of JSON for each request. This
one writes what it has learned into files and then a line of JSON that says so. It runs with a lower priority, and ends
when the other one does, however that ends.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..exceptions import PairMarginError, SessionError
from ..writing import refusals
from .learning import Clustering, Learner, Request

MODEL, CLUSTERING = "model.safetensors", "clustering.safetensors"
OnDone = Callable[[Clustering | None, str], object]  # what was learned, or why not


class BackgroundLearner:
    """The other process, as the session sees it.

    Parameters
    ----------
    X : array or sparse matrix
    out : Path
        The folder for the model and the clustering.
    random_state, settings, strategy
        As for `Learner`.
    on_done : callable
        Called from a thread when something was learned, or when that has failed.
    """

    def __init__(
        self, X: Any, out: Path, random_state: int, settings: dict[str, Any], strategy: str, on_done: OnDone
    ) -> None:
        self._out, self._on_done, self._n_items = out, on_done, int(X.shape[0])
        self.has_ended = False
        with refusals(Path(tempfile.gettempdir())):
            self._home = tempfile.TemporaryDirectory(prefix="pairmargin-", ignore_cleanup_errors=True)
        facts = {"out": str(out), "random_state": random_state, "settings": settings, "strategy": strategy}
        try:
            self._process = _begun(Path(self._home.name), X, facts)
        except BaseException:
            self._home.cleanup()
            raise
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()

    def start(self, request: Request) -> None:
        """Ask for a refit; `on_done` is called when it is there."""
        pairs = request.pairs
        line = {"index": pairs.index.tolist(), "same": pairs.same.tolist(), "weight": pairs.weight.tolist()}
        line |= {"exclude": request.exclude.tolist(), "n_clusters": request.n_clusters, "fresh": request.fresh}
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(line | {"n_questions": request.n_questions}) + "\n")
            self._process.stdin.flush()
        except OSError as error:
            raise SessionError("the process that learns has ended; open the session again") from error

    def close(self) -> None:
        """End the other process."""
        with suppress(OSError):
            self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()
        self._home.cleanup()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            told = json.loads(line)
            try:
                if "error" in told:
                    raise SessionError(told["error"])
                self._on_done(Clustering.load(self._out / CLUSTERING, self._n_items), "")
            except PairMarginError as error:
                self._on_done(None, str(error))
        self._on_done(None, "the process that learns has ended; open the session again")


def _begun(folder: Path, X: Any, facts: dict[str, Any]) -> subprocess.Popen[str]:
    """The other process, with all that it needs in a folder."""
    with refusals(folder):
        if hasattr(X, "tocsr"):
            sp.save_npz(folder / "features.npz", X.tocsr())
        else:
            np.save(folder / "features.npy", np.asarray(X), allow_pickle=False)
        (folder / "facts.json").write_text(json.dumps(facts), encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "pairmargin.web.worker", str(folder)],  # -P: nothing of the current folder
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


def main(folder: Path) -> None:
    """What the other process does."""
    from ..pairs import Pairs
    from ..persist import load, save

    if hasattr(os, "nice"):
        os.nice(10)
    facts = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
    out = Path(facts["out"])
    learner = Learner(_features(folder), facts["random_state"], facts["settings"], facts["strategy"])
    with suppress(Exception):  # a model of yesterday is welcome, but not needed
        learner.model = load(out / MODEL)
    for line in _requests(folder):
        asked = json.loads(line)
        pairs = Pairs(np.array(asked["index"]).reshape(-1, 2), asked["same"], asked["weight"])
        exclude = np.array(asked["exclude"], dtype=np.int64).reshape(-1, 2)
        request = Request(pairs, exclude, asked["n_clusters"], asked["fresh"], asked["n_questions"])
        try:
            clustering = learner.learn(request)
            assert learner.model is not None
            save(learner.model, out / MODEL)
            clustering.save(out / CLUSTERING)
            _tell({"done": clustering.n_answers})
        except Exception as error:  # the page is told, and the next request may go better
            learner.model = None
            _tell({"error": f"{type(error).__name__}: {error}"})


def _features(folder: Path) -> Any:
    path = folder / "features.npy"
    return np.load(path, allow_pickle=False) if path.exists() else sp.load_npz(folder / "features.npz")


def _requests(folder: Path) -> Iterator[str]:
    """The lines of the other process; if that ends, this one clears the folder and ends too, at once."""
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            waiting.put(line)
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        yield waiting.get()


def _tell(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
