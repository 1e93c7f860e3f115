"""From a path to a running page."""

from __future__ import annotations

import errno
import hashlib
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..exceptions import OutputError, SessionError
from ..extras import need
from ..readers import Items, read_items
from ..readers.folders import fingerprint
from .faces import Faces
from .session import LabelingSession


def open_session(
    data: Path, folder: Path, n_clusters: int | None, options: dict[str, Any], **more: Any
) -> tuple[LabelingSession, Faces]:
    """Read the data and open or go on with a session in a folder."""
    if data.is_dir() and folder.resolve().is_relative_to(data.resolve()):
        raise SessionError(f"the session's folder {folder} is inside the data; choose one outside, with --session")
    items = read_items(data, **options)
    mark = f"{fingerprint(data)['sha256']}-{_reading(items)}"
    session = LabelingSession(items, n_clusters, folder=folder, fingerprint=mark, background=True, **more)
    return session, Faces(items, data if data.is_dir() else data.parent)


def _reading(items: Items) -> str:
    """What tells one way to read a file from another; the same on every machine, which the bits of features are not."""
    facts = items.recipe.state()[0]
    how = [items.ids, items.kind, list(items.features.shape), items.recipe.feature_names, facts.get("text")]
    return hashlib.sha256(json.dumps(how).encode()).hexdigest()


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 takes one that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        is_port = error.errno in (errno.EADDRINUSE, errno.EACCES)
        way_out = "choose another --port" if is_port else "is that --host an address of this machine?"
        raise OutputError(f"{host}:{port} cannot be listened on: {error.strerror}; {way_out}") from error
    sock.listen(128)
    return sock


def serve(
    session: LabelingSession, faces: Faces, sock: socket.socket, token: str, on_start: Callable[[str], object]
) -> None:
    """Serve the page until Ctrl-C; ``on_start`` is called with the link when it can be opened."""
    uvicorn = need("uvicorn", "the page")
    need("starlette.applications", "the page")
    from .app import make_app
    from .connections import Connection

    host, port = sock.getsockname()[:2]
    app = make_app(session, faces, token=token, host=host, port=port)
    config = uvicorn.Config(
        app, http=Connection, ws="none", log_level="warning", server_header=False, lifespan="off", timeout_keep_alive=30
    )
    server = uvicorn.Server(config)
    on_start(link(host, port, token))
    server.run(sockets=[sock])


def link(host: str, port: int, token: str) -> str:
    """The link that opens the page; for all addresses of the machine, with its own in the network."""
    if host in ("0.0.0.0", "::"):
        host = _own_address()
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/?token={token}"


def _own_address() -> str:
    """The address by which others in the network reach this machine; nothing is sent to find out."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"
