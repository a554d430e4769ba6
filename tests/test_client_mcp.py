"""A service for agents, asked by the protocol's own client."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import Child

from calibrant.cli import ExitCode
from calibrant.cli.app import run as run_command
from calibrant.client import AsyncClient, Client, verify_commitment

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]
mcp = pytest.importorskip("mcp", reason='pip install "calibrant[mcp]"')

ENVIRONMENT = ("PATH", "PYTHONPATH", "CALIBRANT_COMPILE", "HOME")


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    child = Child(str(tmp_path / "streams.db"))
    yield f"http://{child.at}"
    child.end(signal.SIGTERM)


def asked(address: str, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """Start the command, call tools over its input and output, and return what they gave."""
    command = ["-m", "calibrant", "mcp", address, "agent"]
    env = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    server = mcp.StdioServerParameters(command=sys.executable, args=command, env=env)

    async def run() -> list[Any]:
        async with mcp.Client(server) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert names == {"record_confidence", "report_outcome", "how_far_to_trust"}
            return [await client.call_tool(name, given) for name, given in calls]

    return asyncio.run(run())


def test_an_agent_gets_a_commitment_and_later_the_draw(address: str) -> None:
    with Client(address) as client:
        client.put_stream("agent", seed=7, reveal="outcome")
        made, told = asked(
            address,
            ("record_confidence", {"id": "claim 1", "confidence": 0.9}),
            ("report_outcome", {"id": "claim 1", "happened": True}),
        )
        known = client.forecast("agent", 0.9, id="claim 1")
        assert made.structured_content == {
            "id": "claim 1",
            "calibrated": known.mean,
            "commitment": known.commitment,
        }
        assert verify_commitment(known, told.structured_content)


def test_an_agent_records_reports_and_asks(address: str) -> None:
    with Client(address) as client:
        client.put_stream("agent", seed=7)
        made, again, told, unknown, contradicted, trust = asked(
            address,
            ("record_confidence", {"id": "claim 1", "confidence": 0.9}),
            ("record_confidence", {"id": "claim 1", "confidence": 0.9}),
            ("report_outcome", {"id": "claim 1", "happened": True}),
            ("report_outcome", {"id": "claim 2", "happened": True}),
            ("record_confidence", {"id": "claim 1", "confidence": 0.2}),
            ("how_far_to_trust", {}),
        )
        shown = client.get("agent", "forecasts", "claim 1")
    assert made.structured_content == again.structured_content
    assert made.structured_content["announced"] == shown["forecast"]
    assert made.structured_content["calibrated"] == shown["mean"]
    assert told.structured_content == {"id": "claim 1", "status": "learned"}
    assert unknown.is_error
    assert "must be one that was made here, got 'claim 2'" in unknown.content[0].text
    assert contradicted.is_error
    assert "must be told as before" in contradicted.content[0].text
    assert (trust.structured_content["issued"], trust.structured_content["learned"]) == (1, 1)
    assert trust.structured_content["certificate"]["rounds"] == 1


def test_a_token_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    given = ["mcp", "http://127.0.0.1:9", "agent", "--token-file", str(tmp_path / "none")]
    assert run_command(given) == ExitCode.INPUT


def test_a_service_that_is_not_there_is_told() -> None:
    from calibrant.client.mcp import make_server

    async def run() -> Any:
        async with AsyncClient("http://127.0.0.1:9", tries=1) as client:
            server = make_server(client, "agent")
            async with mcp.Client(server) as caller:
                return await caller.call_tool("how_far_to_trust", {})

    found = asyncio.run(run())
    assert found.is_error
    assert "service must answer" in found.content[0].text
