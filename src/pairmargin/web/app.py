"""The routes of the page. Each one reads plain values, asks the session, and gives plain values back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from ..exceptions import InvalidParameterError, OutputError, PairMarginError
from . import shelves
from .exporting import EXPORTS
from .faces import SIDES, Faces
from .learning import Clustering
from .security import Guard
from .session import LabelingSession
from .store import Answer

STATIC = Path(__file__).parent / "static"
MOST_QUESTIONS = 20
ON_SHELF = 48  # items of a cluster that are shown at once
LISTED = 100  # answers that are listed at once
PATIENCE = 20.0  # seconds in which the body of a request must be here
Body = dict[str, Any]


def make_app(session: LabelingSession, faces: Faces, *, token: str, host: str, port: int) -> Guard:
    """The page of a session, behind its guard.

    Parameters
    ----------
    session : LabelingSession
    faces : Faces
    token, host, port
        As for `Guard`.
    """
    views = Views(session, faces)
    routes = [
        Route("/", lambda request: FileResponse(STATIC / "index.html")),
        Mount("/static", StaticFiles(directory=STATIC)),
        Route("/picture/{size}/{row}", views.picture),
        Route("/export/{name}", views.export),
        Route("/api/map", views.map),
        *(Route(f"/api/{name}", _get(view)) for name, view in views.gets().items()),
        *(Route(f"/api/{name}", _post(view), methods=["POST"]) for name, view in views.posts().items()),
    ]
    app = Starlette(routes=routes, exception_handlers={PairMarginError: _told})
    return Guard(app, token=token, host=host, port=port)


class Views:
    """What each address answers."""

    def __init__(self, session: LabelingSession, faces: Faces) -> None:
        self.session, self.faces = session, faces

    def gets(self) -> dict[str, Callable[[Body], Any]]:
        """What is only looked at, by the last part of the address; a query comes as a dict of texts."""
        return {
            "state": self.state,
            "questions": self.questions,
            "clusters": self.clusters,
            "shelf": self.shelf,
            "split-question": self.split_question,
            "answers": self.answers,
            "lines": self.lines,
            "legend": self.legend,
            "common": lambda body: self.faces.common_words,
            "face": lambda body: self.faces.face(self._row(body, "row")),
        }

    def posts(self) -> dict[str, Callable[[Body], Any]]:
        """What changes something; a body comes as JSON."""
        return {
            "answer": self.answer,
            "undo": self.undo,
            "change": self.change,
            "rename": self.rename,
            "move": self.move,
            "merge": self.merge,
            "split": self.split,
            "number": self.number,
            "refit": self.refit,
        }

    # Ask

    def state(self, body: Body) -> Body:
        session = self.session
        progress = asdict(session.progress)
        return {
            "kind": self.faces.items.kind,
            "items": len(session.ids),
            "data": session.mark,
            "clusters": session.n_clusters,
            "progress": progress,
            "people": session.people,
            "kappa": session.kappa,
            "disagreements": len(session.disagreements),
            "learning": session.is_learning,
            "error": session.error,
            "has_model": session.has_model,
            "version": session.version,
        }

    def questions(self, body: Body) -> list[Body]:
        n = min(_whole(body, "n", 4), MOST_QUESTIONS)
        pairs = self.session.next_pairs(n, who=_text(body, "who")).tolist()
        return [{"pair": pair, "faces": [self.faces.face(row) for row in pair]} for pair in pairs]

    def answer(self, body: Body) -> Body:
        row = self.session.answer(
            _text(body, "answer"), self._pair(body), who=_text(body, "who"), key=_text(body, "key") or None
        )
        return {"number": row.number, "questions": self.questions(body), "state": self.state(body)}

    def undo(self, body: Body) -> Body:
        row = self.session.undo(who=_text(body, "who"), key=_text(body, "key") or None)
        undone = None if row is None else row.answer
        return {"undone": undone, "questions": self.questions(body), "state": self.state(body)}

    # Clusters

    def clusters(self, body: Body) -> list[Body]:
        clustering = self.session.clustering  # one and the same for all of them, also if another is learned meanwhile
        return [self._shelf(clustering, k, 0) for k in np.unique(clustering.cluster).tolist()]

    def shelf(self, body: Body) -> Body:
        cluster, clustering = _whole(body, "cluster"), self.session.clustering
        if cluster >= clustering.chances.shape[1]:
            raise InvalidParameterError(f"cluster={cluster} is not there; perhaps it is gone")
        return self._shelf(clustering, cluster, _whole(body, "start", 0))

    def _shelf(self, clustering: Clustering, cluster: int, start: int) -> Body:
        rows = shelves.members(clustering, cluster)
        unsure = rows[clustering.chances[rows, cluster] < shelves.UNSURE_BELOW][::-1]
        return {
            "cluster": cluster,
            "name": self.session.names.get(cluster, ""),
            "size": len(rows),
            "sure": self._tiles(clustering, rows[start : start + ON_SHELF], cluster),
            "unsure": self._tiles(clustering, unsure[:ON_SHELF], cluster),
            "unsure_size": len(unsure),
        }

    def _tiles(self, clustering: Clustering, rows: Any, cluster: int) -> list[Body]:
        chances = clustering.chances[rows, cluster]
        return [
            self.faces.face(row, short=True) | {"chance": round(float(chance), 3)}
            for row, chance in zip(rows.tolist(), chances, strict=True)
        ]

    def split_question(self, body: Body) -> Body:
        pair = list(self.session.split_pair(_whole(body, "cluster")))
        return {"pair": pair, "faces": [self.faces.face(row) for row in pair]}

    # A cluster is told by an item of it: its number may be another's by the time a request arrives

    def rename(self, body: Body) -> Body:
        with self.session.lock:
            self.session.rename(self._cluster(body, "like"), _text(body, "name"))
        return {}

    def move(self, body: Body) -> Body:
        with self.session.lock:
            if not self._is_done(body):
                self.session.move(self._row(body, "row"), self._cluster(body, "like"), **_sender(body))
        return self.state(body)

    def merge(self, body: Body) -> Body:
        with self.session.lock:
            one, other = self._cluster(body, "one"), self._cluster(body, "other")
            if one != other and not self._is_done(body):
                self.session.merge(one, other, **_sender(body))
        return self.state(body)

    def split(self, body: Body) -> Body:
        pair = self._pair(body) if "pair" in body else None
        if not self._is_done(body):
            self.session.split(_whole(body, "cluster"), pair, **_sender(body))
        return self.state(body)

    def number(self, body: Body) -> Body:
        self.session.set_clusters(_whole(body, "clusters"))
        return self.state(body)

    def refit(self, body: Body) -> Body:
        if not self.session.is_learning:
            self.session.refit(wait=False, fresh=bool(body.get("fresh")) or None)
        return self.state(body)

    # Map

    def map(self, request: Request) -> Response:
        """Places as 32-bit floats, then clusters in 16 bits, then confidence in 8, of every item."""
        clustering = self.session.clustering
        parts = [
            clustering.places.astype("<f4"),
            clustering.cluster.astype("<u2"),
            np.rint(255 * shelves.confidence(clustering)).astype("u1"),
        ]
        return Response(b"".join(part.tobytes() for part in parts), media_type="application/octet-stream")

    def lines(self, body: Body) -> list[list[int]]:
        pairs = self.session.pairs
        return [[i, j, int(same)] for (i, j), same in zip(pairs.index.tolist(), pairs.same, strict=True)]

    def legend(self, body: Body) -> list[Body]:
        numbers, sizes = np.unique(self.session.labels, return_counts=True)
        names = self.session.names
        return [
            {"cluster": k, "name": names.get(k, ""), "size": n}
            for k, n in zip(numbers.tolist(), sizes.tolist(), strict=True)
        ]

    # Answers

    def answers(self, body: Body) -> Body:
        start = _whole(body, "start", 0)
        rows = self.session.answers()
        disagreed = set(self.session.disagreements)
        shown = []
        for row, doubt in rows[start : start + LISTED]:
            pair = self.session.pair_of(row)
            shown.append(self._listed(row, pair) | {"doubt": round(doubt, 3), "disagreed": pair in disagreed})
        return {"total": len(rows), "rows": shown}

    def _listed(self, row: Answer, pair: tuple[int, int]) -> Body:
        faces = [self.faces.face(each, short=True) for each in pair]
        return {"pair": pair, "faces": faces, "answer": row.answer, "who": row.who, "at": row.at, "number": row.number}

    def change(self, body: Body) -> Body:
        """Change or delete an answer, in the name of who gave it: all are of one team."""
        self.session.answer(_text(body, "answer"), self._pair(body), **_sender(body))
        return self.state(body)

    # Files

    def picture(self, request: Request) -> Response:
        size = request.path_params["size"]
        try:
            row = self._row(request.path_params, "row")
        except InvalidParameterError:
            row = -1
        if self.faces.items.kind != "image" or size not in SIDES or row < 0:
            return Response("There is no such picture.\n", 404, media_type="text/plain")
        content, kind = self.faces.picture(row, size)
        return Response(content, media_type=kind, headers={"Cache-Control": "private, max-age=3600"})

    def export(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in EXPORTS:
            return Response("There is no such file.\n", 404, media_type="text/plain")
        kind, make = EXPORTS[name]
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(make(self.session), media_type=kind, headers=headers)

    def _is_done(self, body: Body) -> bool:
        """Whether this was sent before, and only the reply was lost."""
        return self.session.store.is_done(_sender(body)["key"])

    def _row(self, body: Body, name: str) -> int:
        row = _whole(body, name)
        if row >= len(self.session.ids):
            raise InvalidParameterError(f"{name}={row} must be below {len(self.session.ids)}")
        return row

    def _cluster(self, body: Body, name: str) -> int:
        """The cluster of an item."""
        return int(self.session.labels[self._row(body, name)])

    def _pair(self, body: Body) -> list[int]:
        pair = body.get("pair")
        if not isinstance(pair, list) or len(pair) != 2 or not all(type(row) is int for row in pair):
            raise InvalidParameterError(f"pair={_shown(pair)} must be two row numbers")
        return pair


def _whole(body: Body, name: str, default: int | None = None) -> int:
    """A whole number, 0 or more, of a request."""
    value = body.get(name, default)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        value = int(value)
    if type(value) is not int or not 0 <= value < 10**9:
        raise InvalidParameterError(f"{name}={_shown(value)} must be a whole number, 0 or more")
    return value


def _text(body: Body, name: str) -> str:
    """A text of a request; empty if it is not there."""
    value = body.get(name, "")
    if not isinstance(value, str):
        raise InvalidParameterError(f"{name}={_shown(value)} must be a text")
    return value


def _sender(body: Body) -> dict[str, Any]:
    """Who sends something, and under which key."""
    return {"who": _text(body, "who"), "key": _text(body, "key") or None}


def _shown(value: object) -> str:
    """A value of a request as it can stand in an error: short, and of letters that can be sent back."""
    return repr(value)[:40].encode("ascii", "backslashreplace").decode()


def _get(view: Callable[[Body], Any]) -> Callable[[Request], Any]:
    def endpoint(request: Request) -> Response:  # Starlette calls it in a thread, since it is no coroutine
        return JSONResponse(view(dict(request.query_params)))

    return endpoint


def _post(view: Callable[[Body], Any]) -> Callable[[Request], Any]:
    async def endpoint(request: Request) -> Response:
        try:
            async with asyncio.timeout(PATIENCE):
                content = await request.body()
            body = json.loads(content)
        except TimeoutError:
            return JSONResponse({"error": "the request has not come to its end"}, 408)
        except (ValueError, RecursionError):  # no JSON, or one inside the other for ever
            body = None
        if not isinstance(body, dict):
            raise InvalidParameterError("the request must be a JSON object")
        return JSONResponse(await run_in_threadpool(view, body))

    return endpoint


def _told(request: Request, error: Exception) -> Response:
    """What we refuse, in words; a full disk is not the asker's fault."""
    return JSONResponse({"error": str(error)}, 507 if isinstance(error, OutputError) else 400)
