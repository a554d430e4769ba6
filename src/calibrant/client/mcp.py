"""A service for agents: the Model Context Protocol over the routes of a service.

An agent records how confident it is, gets the calibrated confidence back, reports what happened,
and asks how far its confidences can be trusted.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from typing import Any, Final

import httpx

from calibrant.client.asking import Forecast, ServiceError
from calibrant.client.clients import AsyncClient
from calibrant.errors import needed

TOLD: Final = """Calibrated confidence. Before something is settled, call record_confidence with
your own probability that it will turn out true; use the calibrated one that is returned. When it is
settled, call report_outcome under the same id. Ask how_far_to_trust how well confidences and
outcomes agreed so far."""


HERE: Final = "http://service"
"""The service itself, by no network."""

Reached = tuple[AsyncClient, str]
"""A service, and which stream of it."""


def make_server(client: AsyncClient, stream: str) -> Any:
    """Return a server of the Model Context Protocol over one stream of a service."""
    return _server(lambda: (client, stream))


def _server(reach: Callable[[], Reached]) -> Any:
    """Return a server whose tools ask a stream that is looked up for each call."""
    found = needed("mcp.server", "the server for agents needs mcp", "mcp")
    server = found.MCPServer("calibrant", instructions=TOLD)

    @server.tool()  # type: ignore[untyped-decorator]
    async def record_confidence(id: str, confidence: float) -> dict[str, Any]:
        """Record a probability in [0, 1] that something will turn out true, under an id of yours.

        Returns `calibrated`, the probability to use, and `announced`, a draw near it that is
        calibrated whatever happens; or in its place the `commitment` to a draw that is told with
        the outcome. The same id and confidence again return the same answer.
        """
        client, stream = reach()
        made = await _told(client.forecast(stream, confidence, id=id))
        assert isinstance(made, Forecast)
        told = {"id": made.id, "calibrated": made.mean}
        if made.commitment is not None:
            return told | {"commitment": made.commitment}
        return told | {"announced": made.forecast}

    @server.tool()  # type: ignore[untyped-decorator]
    async def report_outcome(id: str, happened: bool) -> dict[str, Any]:
        """Report whether what was recorded under an id turned out true, once that is settled."""
        client, stream = reach()
        told = await _told(client.outcomes(stream, {id: int(happened)}))
        if "type" in told[0]:
            raise _refused(f"{told[0]['detail']}")
        return {name: told[0][name] for name in ("id", "status", "revealed") if name in told[0]}

    @server.tool()  # type: ignore[untyped-decorator]
    async def how_far_to_trust() -> dict[str, Any]:
        """Tell how well calibrated confidences and outcomes agreed so far, and what is promised."""
        client, stream = reach()
        shown = await _told(client.get(stream))
        counts = {name: shown[name] for name in ("issued", "learned", "open")}
        return counts | {"certificate": await _told(client.get(stream, "certificate"))}

    return server


async def _told(asked: Any) -> Any:
    """Return an answer, or raise what an agent can read."""
    try:
        return await asked
    except ServiceError as error:
        raise _refused(str(error)) from None


def _refused(told: str) -> Exception:
    module = needed("mcp.server.mcpserver.exceptions", "the server for agents", "mcp")
    error: Exception = module.ToolError(told)
    return error


class Agents:
    """Agents that reach a service over HTTP: the protocol as a part of the service itself.

    The application that routes requests here, with the name of a stream as ``name``, has seen that
    the token may look at it, and is asked by its own routes under that token: agents may do what
    the token allows.

    Parameters
    ----------
    host
        Where the service listens.  On this machine alone, pages from elsewhere are refused.
    """

    def __init__(self, host: str) -> None:
        self._now: ContextVar[Reached] = ContextVar("reached")
        server = _server(self._now.get)
        server.streamable_http_app(stateless_http=True, json_response=True, host=host)
        self._manager = server.session_manager

    def run(self) -> AbstractAsyncContextManager[None]:
        """Return what must be entered as long as agents are served."""
        running: AbstractAsyncContextManager[None] = self._manager.run()
        return running

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a message of an agent."""
        name, told = scope["path_params"]["name"], dict(scope["headers"]).get(b"authorization")
        token = None if told is None else told.decode("latin-1").removeprefix("Bearer ")
        transport = httpx.ASGITransport(scope["app"], raise_app_exceptions=False)
        async with AsyncClient(HERE, token, transport=transport, tries=1) as client:
            self._now.set((client, name))
            await self._manager.handle_request(scope, receive, send)


def run_stdio(address: str, stream: str, token: str | None) -> None:
    """Serve agents over standard input and output until the input ends."""
    make_server(AsyncClient(address, token), stream).run("stdio")
