"""A service for agents: the Model Context Protocol over the routes of a service.

An agent records how confident it is, gets the calibrated confidence back, reports what happened,
and asks how far its confidences can be trusted.
"""

from __future__ import annotations

from typing import Any, Final

from calibrant.client.asking import Forecast, ServiceError
from calibrant.client.clients import AsyncClient
from calibrant.errors import needed

TOLD: Final = """Calibrated confidence. Before something is settled, call record_confidence with
your own probability that it will turn out true; use the calibrated one that is returned. When it is
settled, call report_outcome under the same id. Ask how_far_to_trust how well confidences and
outcomes agreed so far."""


def make_server(client: AsyncClient, stream: str) -> Any:
    """Return a server of the Model Context Protocol over one stream of a service."""
    found = needed("mcp.server", "the server for agents needs mcp", '"calibrant[mcp]"')
    server = found.MCPServer("calibrant", instructions=TOLD)

    @server.tool()  # type: ignore[untyped-decorator]
    async def record_confidence(id: str, confidence: float) -> dict[str, Any]:
        """Record a probability in [0, 1] that something will turn out true, under an id of yours.

        Returns `calibrated`, the probability to use, and `announced`, a draw near it that is
        calibrated whatever happens; or in its place the `commitment` to a draw that is told with
        the outcome. The same id and confidence again return the same answer.
        """
        made = await _told(client.forecast(stream, confidence, id=id))
        assert isinstance(made, Forecast)
        told = {"id": made.id, "calibrated": made.mean}
        if made.commitment is not None:
            return told | {"commitment": made.commitment}
        return told | {"announced": made.forecast}

    @server.tool()  # type: ignore[untyped-decorator]
    async def report_outcome(id: str, happened: bool) -> dict[str, Any]:
        """Report whether what was recorded under an id turned out true, once that is settled."""
        told = await _told(client.outcomes(stream, {id: int(happened)}))
        if "type" in told[0]:
            raise _refused(f"{told[0]['detail']}")
        return {name: told[0][name] for name in ("id", "status", "revealed") if name in told[0]}

    @server.tool()  # type: ignore[untyped-decorator]
    async def how_far_to_trust() -> dict[str, Any]:
        """Tell how well calibrated confidences and outcomes agreed so far, and what is promised."""
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
    module = needed("mcp.server.mcpserver.exceptions", "the server for agents", '"calibrant[mcp]"')
    error: Exception = module.ToolError(told)
    return error


def run_stdio(address: str, stream: str, token: str | None) -> None:
    """Serve agents over standard input and output until the input ends."""
    make_server(AsyncClient(address, token), stream).run("stdio")
