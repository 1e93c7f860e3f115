"""`LabelingSession`: questions out, answers in, clusters out. No HTTP in it."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..exceptions import InvalidPairsError, InvalidParameterError, PairMarginError, SessionError
from ..writing import refusals
from . import people, shelves
from .asking import Desk
from .learning import Clustering, Learner, Request
from .memory import Memory
from .people import Pair
from .store import DIFFERENT, FILE, SAME, Answer, AnswerStore, is_plain

if TYPE_CHECKING:
    from ..pairs import Pairs
    from ..readers import Items
    from .worker import BackgroundLearner

Array = NDArray[Any]
REFIT_EVERY = 10  # new answers, after which the page's session learns
LATEST = 20  # answers that the agreement is about
MOST_CLUSTERS = 200
LONGEST_NAME = 100


@dataclass(frozen=True)
class Progress:
    """How far a session has come.

    Attributes
    ----------
    answers, unsure : int
        Pairs with an answer, and pairs about which people are unsure.
    inferred : int
        Pairs whose answer follows from the others.
    agreement : float or None
        The share of the latest answers that the model expected before it saw them. Questions are chosen to be hard, so
        this is lower than for any two items.
    sureness : float
        The mean chance of the items' clusters.
    expected_gain : float
        How many of the next ten answers are expected to be a surprise to the model.
    curve : list of (int, float)
        Answers and sureness after every refit.
    fitted : int
        Answers that the clusters have learned from.
    """

    answers: int
    unsure: int
    inferred: int
    agreement: float | None
    sureness: float
    expected_gain: float
    curve: list[tuple[int, float]]
    fitted: int


class LabelingSession:
    """A session in which people say of pairs of items whether they are the same.

    Parameters
    ----------
    X : Items, array-like or sparse matrix of shape (n_samples, n_features)
        The items, or their features.
    n_clusters : int, optional
        The most clusters. None takes that of the folder, or 8.
    random_state : int, default=0
        Same seed and answers, same questions.
    folder : path-like, optional
        Where everything is kept. A session that is there goes on. None keeps it in memory.
    overlap : float, default=0
        The share of questions that somebody else has answered already: what shows how far people agree.
    strategy : str, default="default"
        Which question comes next, as in `select_pairs`.
    background : bool, default=False
        Learn in a process of its own after every ten answers, as the page does; needs a folder.
    fingerprint : str, optional
        What tells these data from others; None makes one of the features.
    **settings
        Of `MaxMarginClustering`.

    Examples
    --------
    >>> from pairmargin import LabelingSession
    >>> session = LabelingSession([[0.0], [0.1], [5.0], [5.1]], n_clusters=2)
    >>> pairs = session.next_pairs(2)
    >>> for i, j in pairs:
    ...     row = session.answer("same" if abs(i - j) == 1 and min(i, j) != 1 else "different", (i, j))
    >>> session.refit()
    >>> session.progress.answers
    2
    """

    def __init__(
        self,
        X: Items | ArrayLike,
        n_clusters: int | None = None,
        *,
        random_state: int = 0,
        folder: str | Path | None = None,
        overlap: float = 0.0,
        strategy: str = "default",
        background: bool = False,
        fingerprint: str | None = None,
        **settings: Any,
    ) -> None:
        if not 0 <= overlap <= 1:
            raise InvalidParameterError(f"overlap={overlap!r} must be between 0 and 1")
        if background and folder is None:
            raise InvalidParameterError("background=True needs a folder= for the model")
        self.items, self.X, self.ids = _items_of(X)
        self.overlap, self.folder = overlap, None if folder is None else Path(folder)
        self.error = ""  # why the last refit failed
        self.version = 0  # goes up with every refit
        self.lock = threading.RLock()  # held, the clusters stay as they are
        self._changed = threading.Condition(self.lock)
        self._memory = Memory({name: row for row, name in enumerate(self.ids)})
        self._desk = Desk(self._memory, len(self.ids), overlap, random_state)
        self._learner = Learner(self.X, random_state, settings, strategy)
        self._asked = self._done = 0  # refits of the other process
        self._changes = 0  # of answers since the last refit began
        self.store = AnswerStore(self._own_folder())
        try:
            own = fingerprint or _fingerprint(self.X, self.ids)
            self.mark = hashlib.sha256(own.encode()).hexdigest()[:16]  # of the data, for what a browser keeps
            self._check_data(own)
            self.n_clusters = self._checked_clusters(n_clusters or self.store.fact("n_clusters", min(8, len(self.ids))))
            self.store.set_fact("n_clusters", self.n_clusters)
            self.names = {int(k): name for k, name in self.store.fact("names", {}).items()}
            self._curve = [(int(n), float(sure)) for n, sure in self.store.fact("curve", [])]
            self._fresh: dict[str, int] | None = self.store.fact("fresh")  # what the last fresh start learned from
            self._recount()
            self._go_on_with(self._first_clustering())
            self._background = self._other_process(background)
        except BaseException:
            self.store.close()
            raise

    # Questions and answers

    def next_pairs(self, n: int = 1, *, who: str = "") -> Array:
        """The next questions for a person: those that were asked and not answered yet, and new ones.

        Parameters
        ----------
        n : int, default=1
        who : str, default=""
            The person's name.

        Returns
        -------
        pairs : ndarray of shape (≤ n, 2)
            Row numbers; fewer if no more questions are open.
        """
        with self.lock:
            pairs = self._desk.next(who, n, self._questions)
        return np.array(pairs, dtype=np.int64).reshape(-1, 2)

    def answer(
        self, answer: str, pair: Sequence[int] | None = None, *, who: str = "", key: str | None = None
    ) -> Answer:
        """Take an answer; when this returns, it is on the disk.

        Parameters
        ----------
        answer : {"same", "different", "unsure", "deleted"}
        pair : two row numbers, optional
            None is the first question that this person has not answered. Any pair may be given, also one that was
            answered before: the later answer counts.
        who : str, default=""
        key : str, optional
            Of two answers with the same key, the first counts.

        Returns
        -------
        row : Answer
            As it was written.
        """
        with self.lock:
            self._desk.admit(who)  # or else refuse it, before anything is written
            i, j = self._checked(pair) if pair is not None else self._first_question(who)
            row, is_new = self.store.add(who, self.ids[i], self.ids[j], answer, chance=self.chance(i, j), key=key)
            if is_new:
                self._desk.answered(who, (i, j))
                self._changes += 1
                if self._memory.is_simple(row):
                    self._memory.take(row)
                else:
                    self._recount()
                self._refit_if_due()
            return row

    def _say(self, said: Sequence[tuple[str, Pair]], who: str, key: str | None, n_clusters: int | None = None) -> None:
        """Take several answers and a number of clusters, all or nothing; with a key that was there, nothing."""
        self._desk.admit(who)
        with self.store.writing():
            if self.store.is_done(key):
                return
            for n, (answer, (i, j)) in enumerate(said):
                own = None if key is None else f"{key}-{n}"
                self.store.add(who, self.ids[i], self.ids[j], answer, chance=self.chance(i, j), key=own)
            if n_clusters is not None:
                self.store.set_fact("n_clusters", n_clusters)
        for _, pair in said:
            self._desk.answered(who, pair)
        self.n_clusters = n_clusters or self.n_clusters
        self._changes += len(said)
        self._recount()
        self._refit_if_due()

    def undo(self, *, who: str = "", key: str | None = None) -> Answer | None:
        """Take back the last thing that a person did; the question is asked again.

        Returns
        -------
        row : Answer or None
            What was undone; None if there was nothing.
        """
        with self.lock:
            row = self.store.undo(who, key=key)
            if row is not None:
                self._recount()
                self._desk.ask_again(who, self.pair_of(row))
                self._changes += 1
                self._refit_if_due()
            return row

    def answers(self) -> list[tuple[Answer, float]]:
        """Every answer that counts, with the chance that it is a mistake; the most doubtful first, then the latest."""
        with self.lock:
            pairs = map(tuple, self.clustering.answered.tolist())
            doubt = dict(zip(pairs, self.clustering.doubt.tolist(), strict=True))
            rows = [(row, float(doubt.get(pair, 0.0))) for (_, pair), row in self._memory.current.items()]
        return sorted(rows, key=lambda row: (-round(row[1], 2), -row[0].number))

    @property
    def pairs(self) -> Pairs:
        """What people say together; where as many say one as the other, nothing."""
        from ..pairs import Pairs

        with self.lock:
            sure = self._memory.settled()
        return Pairs(np.array(list(sure), dtype=np.int64).reshape(-1, 2), np.array(list(sure.values()), dtype=bool))

    def pair_of(self, row: Answer) -> Pair:
        """The rows that an answer is about."""
        return self._memory.pair_of(row)

    # Learning

    def refit(self, *, wait: bool = True, fresh: bool | None = None) -> None:
        """Learn from all answers.

        Parameters
        ----------
        wait : bool, default=True
            False goes on at once, if the session has a process of its own for this.
        fresh : bool, optional
            Start anew, instead of from the last model. None does so whenever the answers have doubled since.
        """
        with self.lock:
            request = Request(self.pairs, self._memory.unsettled(), self.n_clusters, self._is_fresh_due(fresh))
            if self._background is not None:
                self._background.start(request)
                self._changes = 0
                self._asked = own = self._asked + 1
                while wait and self._done < own:
                    self._changed.wait()
                if wait and self.error:
                    raise SessionError(f"learning has failed: {self.error}")
                return
            self._changes = 0
        clustering = self._learner.learn(request)
        self._take(request, clustering, "")
        if self.error:
            raise SessionError(self.error)
        if self.folder is not None:
            from ..persist import save
            from .worker import CLUSTERING, MODEL

            assert self._learner.model is not None
            save(self._learner.model, self.folder / MODEL)
            clustering.save(self.folder / CLUSTERING)

    @property
    def is_learning(self) -> bool:
        """Whether a refit is under way."""
        return self._done < self._asked

    @property
    def has_model(self) -> bool:
        """Whether something was learned that can be exported."""
        from .worker import MODEL

        return self._learner.model is not None or (self.folder is not None and (self.folder / MODEL).exists())

    @property
    def labels(self) -> Array:
        """The cluster of every item, (n,)."""
        return self.clustering.cluster

    def chance(self, i: int, j: int) -> float:
        """The chance that two items are the same, in the eyes of the model."""
        return round(float(self.clustering.chances[i] @ self.clustering.chances[j]), 4)

    @property
    def progress(self) -> Progress:
        """How far it has come."""
        with self.lock:
            n_unsure = self._memory.n_unsettled
            n_sure = len(self._memory.votes) - n_unsure
            latest = self._memory.expected[-LATEST:]
            ahead = [self.chance(i, j) for i, j in self._questions[:10]]
            return Progress(
                answers=n_sure,
                unsure=n_unsure,
                inferred=max(self._memory.closure.n_known - n_sure, 0),
                agreement=sum(latest) / len(latest) if latest else None,
                sureness=self._sureness,
                expected_gain=float(sum(min(chance, 1 - chance) for chance in ahead)),
                curve=self._curve,
                fitted=self.clustering.n_answers,
            )

    # Clusters

    def rename(self, cluster: int, name: str) -> None:
        """Give a cluster a name; an empty one takes it away."""
        with self.lock:
            self._checked_cluster(cluster)
            if len(name) > LONGEST_NAME:
                raise InvalidParameterError(f"name={name[:40]!r} must have at most {LONGEST_NAME} letters")
            if not is_plain(name):
                raise InvalidParameterError(f"name={name[:40]!r} must have no line ends and no control characters")
            names = {k: each for k, each in {**self.names, cluster: name.strip()}.items() if each}
            self.store.set_fact("names", names)
            self.names = names

    def move(self, item: int, cluster: int, *, who: str = "", key: str | None = None) -> None:
        """Say that an item belongs elsewhere: the same as the surest of one cluster, different from that of its own."""
        with self.lock:
            self._checked_cluster(cluster)
            own = int(self.labels[item])
            if own == cluster:
                return
            target = shelves.surest(self.clustering, cluster, but=item)
            source = shelves.surest(self.clustering, own, but=item)
            said = [
                (answer, self._checked((item, other)))
                for answer, other in ((SAME, target), (DIFFERENT, source))
                if other is not None
            ]
            self._say(said, who, key)

    def merge(self, one: int, other: int, *, who: str = "", key: str | None = None) -> None:
        """Say that two clusters are one: their surest items are the same, and there is one cluster fewer.

        If that follows already, nothing is done.
        """
        with self.lock:
            a, b = (shelves.surest(self.clustering, self._checked_cluster(each)) for each in (one, other))
            if a is None or b is None or one == other:
                raise InvalidParameterError(f"clusters {one} and {other} must be two that have items")
            if not self._memory.closure.follows(a, b):
                self._say([(SAME, self._checked((a, b)))], who, key, max(self.n_clusters - 1, 1))

    def split_pair(self, cluster: int) -> Pair:
        """The question that would split a cluster: the surest items of its two halves."""
        with self.lock:
            return shelves.halves(self.clustering, self._checked_cluster(cluster))

    def split(self, cluster: int, pair: Sequence[int] | None = None, *, who: str = "", key: str | None = None) -> None:
        """Say that a cluster is two: two items of it are different, and there is one cluster more.

        ``pair`` are their row numbers; None takes those of `split_pair`.
        """
        with self.lock:
            most = self._checked_clusters(self.n_clusters + 1)
            own = self.split_pair(cluster) if pair is None else self._checked(pair)
            self._say([(DIFFERENT, own)], who, key, most)

    def set_clusters(self, n_clusters: int) -> None:
        """Ask for another number of clusters; the next refit starts anew."""
        with self.lock:
            wanted = self._checked_clusters(n_clusters)
            self.store.set_fact("n_clusters", wanted)
            self.n_clusters = wanted
            self._refit_if_due()

    # People

    @property
    def people(self) -> dict[str, int]:
        """Who has answered, and how many pairs."""
        with self.lock:
            return dict(self._memory.people)

    @property
    def kappa(self) -> float | None:
        """Cohen's κ over the pairs that several people have answered; None if there is nothing to compare."""
        with self.lock:
            return people.kappa(self._memory.shared)

    @property
    def disagreements(self) -> list[Pair]:
        """The pairs that some call the same and others different."""
        with self.lock:
            return people.disagreements(self._memory.shared)

    # Files

    def export(self, folder: str | Path) -> list[Path]:
        """Write labels, pairs, the model and a report into a folder; what was written."""
        from .exporting import export_all

        return export_all(self, Path(folder))

    def import_pairs(self, path: str | Path, *, who: str | None = None) -> int:
        """Take over answers from a table with the columns a, b and same; how many there were.

        The column who, if there is one, says whose they are; or else ``who``, or the name of the file. A file that was
        taken over before is left alone: what was changed since stays.
        """
        from ..readers.answers import read_people

        key = f"import-{hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]}"
        rows = [
            (name if who is None else who, self.ids[i], self.ids[j], SAME if same else DIFFERENT)
            for name, pairs in read_people(path, self.ids).items()
            for (i, j), same in zip(pairs.index.tolist(), pairs.same.tolist(), strict=True)
        ]
        with self.lock:
            count = self.store.add_all(rows, key)
            self._recount()
            self._changes += count
            self._refit_if_due()
        return count

    def close(self) -> None:
        """End the process that learns, and let go of the files."""
        if self._background is not None:
            self._background.close()
        self.store.close()

    def __enter__(self) -> LabelingSession:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # Inside

    def _own_folder(self) -> Path | None:
        if self.folder is None:
            return None
        with refusals(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder / FILE

    def _check_data(self, fingerprint: str) -> None:
        """Refuse other data than those that the session was begun with."""
        known = self.store.fact("data")
        if known is None:
            self.store.set_fact("data", {"fingerprint": fingerprint, "items": len(self.ids)})
            return
        then, now = known["fingerprint"], fingerprint  # of the contents, "-", of the way they were read
        if then.partition("-")[0] != now.partition("-")[0]:
            raise SessionError(
                f"the data are not those that the session in {self.folder} was begun with ({known['items']:,} items "
                f"then, {len(self.ids):,} now, or other contents); pass those, or choose another folder"
            )
        if then != now:
            raise SessionError(
                f"the session in {self.folder} was begun with these data, but they were read with other options; "
                "pass the same ones (such as --id, --text, --columns), or choose another folder"
            )

    def _first_clustering(self) -> Clustering:
        """That of yesterday, or what the data look like before anything is learned."""
        from .worker import CLUSTERING

        if self.folder is not None and (self.folder / CLUSTERING).exists():
            try:
                clustering = Clustering.load(self.folder / CLUSTERING, len(self.ids))
            except SessionError:
                (self.folder / CLUSTERING).unlink()
            else:
                self._learner.go_on_with(clustering)
                return clustering
        request = Request(self.pairs, self._memory.unsettled(), self.n_clusters, fresh=True)
        clustering = self._learner.first_look(request)
        if self.folder is not None:
            clustering.save(self.folder / CLUSTERING)
        return clustering

    def _go_on_with(self, clustering: Clustering) -> None:
        self.clustering, self._questions = clustering, clustering.questions.tolist()
        self._sureness = shelves.sureness(clustering)

    def _other_process(self, wanted: bool) -> BackgroundLearner | None:
        if not wanted or self.folder is None:
            return None
        from .worker import MODEL, BackgroundLearner

        learner = self._learner
        other = BackgroundLearner(
            self.X, self.folder, learner.random_state, learner.settings, learner.strategy, self._take
        )
        self._background = other
        if not (self.folder / MODEL).exists() or self._is_number_new() or not self._is_learned():
            self.refit(wait=False)
        return other

    def _take(self, request: Request, clustering: Clustering | None, error: str) -> None:
        """Go on with what was learned."""
        with self.lock:
            self._done, self.error = min(self._done + 1, self._asked), error
            if clustering is not None:
                names = shelves.carried(self.names, self.clustering.cluster, clustering.cluster)
                self._go_on_with(clustering)
                self.version += 1
                self.names = names
                self._curve = [*self._curve, (clustering.n_answers, round(self._sureness, 4))][-500:]
                if clustering.is_fresh:
                    self._fresh = {"answers": clustering.n_answers, "clusters": request.n_clusters}
                try:
                    for name, value in (("names", names), ("curve", self._curve), ("fresh", self._fresh)):
                        self.store.set_fact(name, value)
                except PairMarginError as refused:  # a full disk: told on the page, and written the next time
                    self.error = str(refused)
                self._refit_if_due()
            self._changed.notify_all()

    def _refit_if_due(self) -> None:
        """Begin to learn in the background, if there is enough to learn from; an answer is kept in any case."""
        if getattr(self, "_background", None) is None or self.is_learning:
            return
        if self._changes >= REFIT_EVERY or self._is_number_new():
            try:
                self.refit(wait=False)
            except PairMarginError as error:
                self.error = str(error)

    def _is_number_new(self) -> bool:
        return self._fresh is not None and self._fresh["clusters"] != self.n_clusters

    def _is_learned(self) -> bool:
        """Whether the clusters were learned from the answers as they are now."""
        pairs, last = self.pairs, self.clustering
        now, then = (
            {(i, j, same) for (i, j), same in zip(index.tolist(), said.tolist(), strict=True)}
            for index, said in ((pairs.index, pairs.same), (last.answered, last.same))
        )
        return now == then

    def _is_fresh_due(self, fresh: bool | None) -> bool:
        if fresh is not None:
            return fresh
        last = self._fresh
        if last is None or last["clusters"] != self.n_clusters:
            return True
        return len(self._memory.votes) >= 2 * max(int(last["answers"]), REFIT_EVERY)

    def _recount(self) -> None:
        """Make all that is kept in memory from what is on the disk."""
        self._memory.renew(self.store.current())

    def _first_question(self, who: str) -> Pair:
        found = self.next_pairs(1, who=who)
        if not len(found):
            raise SessionError("there is no open question; pass the pair that the answer is about")
        i, j = found[0].tolist()
        return i, j

    def _checked(self, pair: Sequence[int]) -> Pair:
        """Two different rows, the smaller first."""
        n = len(self.ids)
        rows = [int(each) for each in pair]
        if len(rows) != 2 or rows[0] == rows[1] or not all(0 <= row < n for row in rows):
            raise InvalidPairsError(f"pair={rows} must be two different row numbers from 0 to {n - 1}")
        return min(rows), max(rows)

    def _checked_cluster(self, cluster: int) -> int:
        if not 0 <= cluster < self.clustering.chances.shape[1]:
            raise InvalidParameterError(
                f"cluster={cluster!r} must be from 0 to {self.clustering.chances.shape[1] - 1}; perhaps it is gone"
            )
        return int(cluster)

    def _checked_clusters(self, n_clusters: int) -> int:
        most = min(MOST_CLUSTERS, len(self.ids))
        if not 1 <= n_clusters <= most:
            raise InvalidParameterError(f"n_clusters={n_clusters!r} must be from 1 to {most}")
        return int(n_clusters)


def _items_of(X: Any) -> tuple[Items | None, Any, list[str]]:
    """Items if there are any, features and ids."""
    from ..readers import Items

    if isinstance(X, Items):
        return X, X.features, X.ids
    features = X if hasattr(X, "shape") else np.asarray(X, dtype=float)
    if len(features.shape) != 2 or features.shape[0] < 2:
        raise InvalidParameterError(f"X has shape {features.shape}; a session needs two items or more, a row for each")
    return None, features, list(map(str, range(features.shape[0])))


def _fingerprint(X: Any, ids: list[str]) -> str:
    """What tells data from others."""
    digest = hashlib.sha256("\0".join(ids).encode())
    for part in (X.data, X.indices, X.indptr) if hasattr(X, "indptr") else (X,):
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()
