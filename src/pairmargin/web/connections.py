"""Connections of strangers, before anything is known of them: not too many, and none that never ends a request."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 500
PATIENCE = 30.0  # seconds in which a request must begin


class Connection(H11Protocol):
    """One connection; h11 takes at most 16 kB of headers."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._known: object = None  # the last request that was seen
        if len(self.connections) > MOST_CONNECTIONS:
            transport.close()
        else:
            self._watch()

    def _watch(self) -> None:
        self._clock = self.loop.call_later(PATIENCE, self._look)

    def _look(self) -> None:
        """Let go if there is no request since the last look, and none is being answered."""
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if self.transport.is_closing():
            return
        if self.scope is self._known and not is_answering:
            self.transport.close()
            return
        self._known = self.scope
        self._watch()
