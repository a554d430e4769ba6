"""A service for agents, asked by the protocol's own client."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import Child

from calibrant.cli import ExitCode
from calibrant.cli.app import run as run_command
from calibrant.client import AsyncClient, Client, verify_commitment
from calibrant.client.mcp import Agents
from calibrant.journal.sqlite import SqliteStore
from calibrant.serve.tokens import create_token

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]
mcp = pytest.importorskip("mcp", reason="needs the extra mcp")

httpx2 = pytest.importorskip("httpx2", reason="comes with mcp")

Calls = list[tuple[str, dict[str, Any]]]
LIST = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'
TRUST: tuple[str, dict[str, Any]] = ("how_far_to_trust", {})
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


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """A service that lets agents in, with a token for everything, one to look and one for less."""
    file = tmp_path / "streams.db"
    store = SqliteStore(file)
    told = {"all": ("admin", "*"), "look": ("read", "agent"), "other": ("admin", "other")}
    tokens = {name: create_token(store, name, *given) for name, given in told.items()}
    store.close()
    child = Child(str(file), Agents("127.0.0.1"))
    yield f"http://{child.at}", tokens
    child.end(signal.SIGTERM)


async def over_http(address: str, token: str | None, calls: Calls) -> list[Any]:
    """Call tools of a service over HTTP, under a token."""
    from mcp.client.streamable_http import streamable_http_client

    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers) as http:
        transport = streamable_http_client(f"{address}/mcp/agent", http_client=http)
        async with mcp.Client(transport) as client:
            return [await client.call_tool(name, given) for name, given in calls]


def test_a_service_lets_agents_in_under_their_tokens(
    guarded: tuple[str, dict[str, str]],
) -> None:
    address, tokens = guarded
    with Client(address, tokens["all"]) as client:
        client.put_stream("agent", seed=7)
        recorded = ("record_confidence", {"id": "claim 1", "confidence": 0.9})
        calls = [recorded, ("report_outcome", {"id": "claim 1", "happened": True}), TRUST]
        made, told, trust = asyncio.run(over_http(address, tokens["all"], calls))
        shown = client.get("agent", "forecasts", "claim 1")
    assert made.structured_content["announced"] == shown["forecast"]
    assert told.structured_content == {"id": "claim 1", "status": "learned"}
    assert trust.structured_content["learned"] == 1
    # Whoever may look may not record.
    refused, trust = asyncio.run(over_http(address, tokens["look"], [recorded, TRUST]))
    assert refused.is_error
    assert "token must have scope 'write', got 'read'" in refused.content[0].text
    assert trust.structured_content["issued"] == 1


@pytest.mark.parametrize(
    ("who", "stream", "status", "detail"),
    [
        (None, "agent", 401, "Authorization must be 'Bearer' and a token"),
        ("other", "agent", 403, "token must be for this stream"),
        ("all", "none", 404, "stream must be one that is there, got 'none'"),
    ],
)
def test_whoever_may_not_see_the_stream_learns_nothing(
    guarded: tuple[str, dict[str, str]], who: str | None, stream: str, status: int, detail: str
) -> None:
    address, tokens = guarded
    with Client(address, tokens["all"]) as client:
        client.put_stream("agent")
    headers = {} if who is None else {"Authorization": f"Bearer {tokens[who]}"}
    found = httpx.post(f"{address}/mcp/{stream}", headers=headers, json={"method": "tools/list"})
    assert (found.status_code, found.json()["detail"]) == (status, detail)


def test_a_page_from_elsewhere_does_not_reach_a_service_of_this_machine(tmp_path: Path) -> None:
    child = Child(str(tmp_path / "streams.db"), Agents("127.0.0.1"))
    try:
        with Client(f"http://{child.at}") as client:
            client.put_stream("agent")
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        headers = {"Accept": "application/json, text/event-stream"}
        at = f"http://{child.at}/mcp/agent"
        assert httpx.post(at, json=asked, headers=headers).status_code == 200
        far = headers | {"Origin": "http://elsewhere.example"}
        assert httpx.post(at, json=asked, headers=far).status_code == 403
    finally:
        child.end(signal.SIGTERM)


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


def said(address: str, token: str, content: Any, method: str = "POST", **more: str) -> Any:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    headers |= {"Accept": "application/json, text/event-stream"} | more
    return httpx.request(method, f"{address}/mcp/agent", headers=headers, content=content)


def test_messages_of_agents_have_the_limits_of_any_request(
    guarded: tuple[str, dict[str, str]],
) -> None:
    address, tokens = guarded
    with Client(address, tokens["all"]) as client:
        client.put_stream("agent", seed=7)
    large = said(address, tokens["look"], b" " * ((1 << 20) + 1))
    assert (large.status_code, large.json()["type"]) == (413, "urn:calibrant:too-large")
    # Nobody keeps a connection open for messages that never come.
    for method in ("GET", "DELETE", "PUT"):
        found = said(address, tokens["look"], b"", method)
        assert (found.status_code, found.json()["type"]) == (
            405,
            "urn:calibrant:method-not-allowed",
        )


def test_half_a_message_of_an_agent_times_out(tmp_path: Path) -> None:
    child = Child(str(tmp_path / "streams.db"), Agents("127.0.0.1"), body_seconds=0.2)
    with Client(f"http://{child.at}") as client:
        client.put_stream("agent")
    host, port = child.at.split(":")
    with socket.create_connection((host, int(port))) as held:
        head = f"POST /mcp/agent HTTP/1.1\r\nHost: {child.at}\r\nContent-Length: 50\r\n\r\n"
        held.sendall(head.encode() + b'{"jsonrpc": ')
        held.settimeout(60)
        assert held.recv(100).startswith(b"HTTP/1.1 408 ")
    child.end(signal.SIGTERM)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b"7",
        b"[" * 50_000,
        b'{"jsonrpc": "1.0", "id": 1, "method": "tools/list"}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "nothing/there"}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "none"}}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": 7}',
        b'{"jsonrpc": "2.0", "id": null, "result": {}}',
    ],
)
def test_a_message_that_is_none_is_refused_and_the_next_one_is_not(
    content: bytes, guarded: tuple[str, dict[str, str]]
) -> None:
    address, tokens = guarded
    with Client(address, tokens["all"]) as client:
        client.put_stream("agent", seed=7)
        found = said(address, tokens["all"], content)
        assert found.status_code in (200, 202, 400), found.text
        assert "Traceback" not in found.text
        listed = said(address, tokens["look"], LIST)
        assert len(listed.json()["result"]["tools"]) == 3
        assert client.get("agent")["issued"] == 0
