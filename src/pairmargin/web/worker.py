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
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import scipy.sparse as sp

from ..exceptions import PairMarginError, SessionError
from ..writing import refusals
from .learning import Clustering, Learner, Request

MODEL, CLUSTERING = "model.safetensors", "clustering.safetensors"
ENDED = "the process that learns has ended; it begins anew when there is more to learn"
OnDone = Callable[[Request, Clustering | None, str], object]  # what was asked, and what was learned, or why not


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
        self._X = X
        self._unanswered: deque[Request] = deque()
        with refusals(Path(tempfile.gettempdir())):
            self._home = tempfile.TemporaryDirectory(prefix="pairmargin-", ignore_cleanup_errors=True)
        self._facts = {"out": str(out), "random_state": random_state, "settings": settings, "strategy": strategy}
        try:
            self._begin()
        except BaseException:
            self._home.cleanup()
            raise

    def _begin(self) -> None:
        self._process = _begun(Path(self._home.name), self._X, self._facts)
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()

    def start(self, request: Request) -> None:
        """Ask for a refit; `on_done` is called when it is there. A process that has ended begins anew."""
        if not self._reader.is_alive():
            self._let_go()
            self._begin()
        pairs = request.pairs
        line = {"index": pairs.index.tolist(), "same": pairs.same.tolist(), "weight": pairs.weight.tolist()}
        line |= {"exclude": request.exclude.tolist(), "n_clusters": request.n_clusters, "fresh": request.fresh}
        assert self._process.stdin is not None
        self._unanswered.append(request)
        try:
            self._process.stdin.write(json.dumps(line | {"n_questions": request.n_questions}) + "\n")
            self._process.stdin.flush()
        except OSError as error:
            with suppress(IndexError):  # the reader may have told of it already
                self._unanswered.pop()
            raise SessionError(ENDED) from error

    def close(self) -> None:
        """End the other process."""
        with suppress(OSError):
            self._process.kill()
        self._reader.join()
        self._let_go()
        self._home.cleanup()

    def _let_go(self) -> None:
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            clustering, why = None, ""
            try:
                told = json.loads(line)
                if "error" in told:
                    raise SessionError(told["error"])
                clustering = Clustering.load(self._out / CLUSTERING, self._n_items)
            except (PairMarginError, ValueError) as error:
                why = str(error)
            self._on_done(self._unanswered.popleft(), clustering, why)
        while self._unanswered:
            self._on_done(self._unanswered.popleft(), None, ENDED)


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

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the other process, and this one ends with it
    if hasattr(os, "nice"):
        os.nice(10)
    told = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever else is printed is no reply
    facts = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
    out = Path(facts["out"])
    learner = Learner(_features(folder), facts["random_state"], facts["settings"], facts["strategy"])
    with suppress(Exception):  # a model of yesterday is welcome, but not needed
        learner.model = load(out / MODEL)
    with suppress(Exception):
        learner.go_on_with(Clustering.load(out / CLUSTERING, learner.X.shape[0]))
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
            _tell(told, {"done": clustering.n_answers})
        except Exception as error:  # the page is told, and the next request may go better
            learner.model = None
            _tell(told, {"error": f"{type(error).__name__}: {error}"})


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


def _tell(out: TextIO, line: dict[str, Any]) -> None:
    out.write(json.dumps(line) + "\n")
    out.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
