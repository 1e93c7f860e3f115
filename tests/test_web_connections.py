"""Connections of strangers to the server itself: slow ones, too many, and requests that are none."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from pairmargin import LabelingSession, read_items
from pairmargin.web.faces import Faces
from pairmargin.web.serving import listening, serve

pytest.importorskip("uvicorn")
TOKEN = "a-token-that-nobody-knows"
WAIT = 60  # seconds, on a machine that does other things too


class Address:
    """A running server, as a stranger's socket sees it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.head = (
            f"Host: 127.0.0.1:{port}\r\nCookie: pairmargin-{port}={TOKEN}\r\nOrigin: http://127.0.0.1:{port}\r\n"
        )

    def connect(self, sent: str = "") -> socket.socket:
        opened = socket.create_connection(("127.0.0.1", self.port), WAIT)
        opened.sendall(sent.encode("latin-1"))
        return opened

    def reply(self, request: str) -> bytes:
        """All that comes back until the server lets go."""
        with self.connect(request) as opened:
            return everything(opened)

    def works(self) -> bool:
        reply = self.reply(f"GET /api/state HTTP/1.1\r\n{self.head}Connection: close\r\n\r\n")
        return reply.startswith(b"HTTP/1.1 200") and json.loads(reply.partition(b"\r\n\r\n")[2])["items"] == 20


def everything(opened: socket.socket) -> bytes:
    parts = []
    try:
        while part := opened.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


@pytest.fixture
def address(tmp_path, monkeypatch) -> Iterator[Address]:
    monkeypatch.setattr("pairmargin.web.connections.PATIENCE", 0.5)
    monkeypatch.setattr("pairmargin.web.connections.MOST_CONNECTIONS", 50)
    monkeypatch.setattr("pairmargin.web.app.PATIENCE", 0.5)
    np.save(tmp_path / "points.npy", np.random.RandomState(0).randn(20, 3))
    items = read_items(tmp_path / "points.npy")
    there, sock = threading.Event(), listening("127.0.0.1", 0)
    servers: list[object] = []
    monkeypatch.setattr("uvicorn.Server.run", lambda self, sockets: servers.append(self) or run(self, sockets))
    with LabelingSession(items, 2) as session:
        arguments = (session, Faces(items, tmp_path), sock, TOKEN, lambda link: there.set())
        thread = threading.Thread(target=serve, args=arguments)
        thread.start()
        there.wait(WAIT)
        yield Address(sock.getsockname()[1])
        servers[0].should_exit = True
        thread.join(WAIT)
        sock.close()


def run(server, sockets) -> None:
    """What ``uvicorn.Server.run`` does, with a loop of its own."""
    import asyncio

    asyncio.run(server.serve(sockets=sockets))


@pytest.mark.parametrize(
    "sent",
    [
        "",
        "GET /api/st",
        "GET /api/state HTTP/1.1\r\nHost: 127",
        "POST /api/undo HTTP/1.1\r\n{head}Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{{",
        "GET /api/state HTTP/1.1\r\n{head}\r\nGET /api/sta",
    ],
)
def test_whoever_does_not_end_a_request_is_let_go(address, sent):
    with address.connect(sent.format(head=address.head)) as slow:
        told = everything(slow)  # ends only because the server lets go
    if sent.startswith("POST"):
        assert told.startswith(b"HTTP/1.1 408")
    assert address.works()


def test_too_many_connections_are_closed_and_the_page_goes_on(address):
    opened = []
    try:
        for _ in range(300):
            opened.append(address.connect())
        for each in opened:
            assert everything(each) == b""
    finally:
        for each in opened:
            each.close()
    assert address.works()


@pytest.mark.parametrize(
    "request_",
    [
        "GET / HTTP/1.1\r\n{head}X: " + "x" * 200_000 + "\r\n\r\n",
        "GET / HTTP/1.1\r\n{head}" + "X: y\r\n" * 20_000 + "\r\n",
        "GET /" + "a" * 200_000 + " HTTP/1.1\r\n{head}\r\n",
        "\x16\x03\x01\x02\x00\x01\x00",
        "no request at all\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\n{head}{head}\r\n",
        "POST /api/undo HTTP/1.1\r\n{head}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{{}}",
        "POST /api/undo HTTP/1.1\r\n{head}Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n",
        "GET /api/state HTTP/1.1\r\n{head}Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    ],
)
def test_odd_requests_end_and_the_page_goes_on(address, request_):
    reply = address.reply(request_.format(head=address.head))
    assert b" 500 " not in reply.partition(b"\r\n")[0]
    assert b" 101 " not in reply.partition(b"\r\n")[0]
    assert address.works()
