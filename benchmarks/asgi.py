"""What a web framework costs: the same validated forecast over bare ASGI, Starlette and Litestar.

``python -m benchmarks.asgi`` prints the CPU of the server for a forecast, in microseconds: of the
application alone, called in this process, and behind uvicorn with httptools and uvloop, over
loopback.  Every application decodes and validates the same Struct, asks the same recalibrator,
and encodes the same answer; nothing is stored.  ``service`` is the whole of ``calibrant serve``
with storage off: tokens, limits, metrics, and the writer.  Litestar is measured where it is
installed; calibrant does not need it.  ``--lines`` counts what is written by hand instead.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import os
import signal
import socket
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import calibrant
from benchmarks.service import Nowhere, ask, cpu_of, request
from benchmarks.store import add_store, storing
from calibrant import Recalibrator
from calibrant.serve import Options, make_app, structs
from calibrant.serve.app import _internal, _no_route
from calibrant.serve.wire import body_of, decoded, encode, json_of

PATH = "/v1/streams/s/forecasts"
BODY = b'{"id": "order 1", "raw": 0.37}'
forecast_in = msgspec.json.Decoder(structs.ForecastIn)

BY_HAND = {
    "openapi.py": None,
    "problems.py": None,
    "app.py": ("route_of", "_guarded", "_no_route", "_internal"),
    "wire.py": ("body_of", "_read", "decoded", "batch_of", "json_of"),
    "desk.py": ("Way", "whole"),
    "routes.py": ("WAYS", "ANY_FAILS"),
}
"""Routes, validation, errors and the document: whole files, or some names of them."""


class Answering:
    """Answers forecasts without keeping anything but the state of a recalibrator."""

    def __init__(self) -> None:
        self.model, self.rounds = Recalibrator(seed=7), 0

    def __call__(self, asked: structs.ForecastIn) -> structs.ForecastOut:
        ticket = self.model.forecast(asked.raw)
        self.model.observe(ticket, 1)
        self.rounds += 1
        mixture = structs.Mixture(list(ticket.mixture.values), list(ticket.mixture.weights))
        told = {"forecast": ticket.value, "mean": ticket.mean, "mixture": mixture}
        return structs.ForecastOut(id=asked.id, sequence=self.rounds, **told)


def bare() -> Any:
    """Return an application of nothing but ASGI."""
    answer = Answering()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body, more = b"", True
        while more:
            told = await receive()
            body, more = body + told.get("body", b""), told.get("more_body", False)
        made = encode(answer(decoded(forecast_in, body)))
        length = (b"content-length", str(len(made)).encode())
        headers = [length, (b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": made})

    return app


def starlette() -> Any:
    """Return an application as the service has it: a route, limits, one shape of errors."""
    answer, options = Answering(), Options(open=True)

    async def post(request: Request) -> Response:
        return json_of(answer(decoded(forecast_in, await body_of(request, options))))

    routes = [Route("/v1/streams/{name}/forecasts", post, methods=["POST"])]
    handlers: Any = {HTTPException: _no_route, Exception: _internal}
    return Starlette(routes=routes, exception_handlers=handlers)


def litestar() -> Any:
    """Return an application that leaves decoding, validation and the document to Litestar."""
    from litestar import Litestar, post

    answer = Answering()

    @post("/v1/streams/{name:str}/forecasts", status_code=200)
    async def forecasts(name: str, data: structs.ForecastIn) -> structs.ForecastOut:
        return answer(data)

    # Names of types are read where the handler was written.
    forecasts.fn.__annotations__.update(
        name=str, data=structs.ForecastIn, **{"return": structs.ForecastOut}
    )
    return Litestar([forecasts])


def service() -> Any:
    """Return the whole service with storage off."""
    return make_app(Nowhere(), Options(open=True, every=1 << 40))  # type: ignore[arg-type]


APPS: dict[str, Callable[[], Any]] = {
    "bare ASGI": bare,
    "Starlette": starlette,
    "Litestar": litestar,
    "service": service,
}


# --------------------------------------------------------------------- in this process


async def called(app: Any, times: int) -> float:
    """Return the CPU seconds of a request, called here; all threads count."""
    headers = [(b"host", b"a"), (b"content-length", str(len(BODY)).encode())]
    sent = list[Any]()

    async def send(told: Any) -> None:
        sent.append(told)

    async def one(path: str, method: str, body: bytes) -> None:
        parts = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Any:
            return parts.pop() if parts else await asyncio.Event().wait()

        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method,
            "scheme": "http", "path": path, "raw_path": path.encode(), "query_string": b"",
            "root_path": "", "headers": headers, "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 2), "state": {},
        }  # fmt: skip
        await app(scope, receive, send)

    if isinstance(app, Starlette) and len(app.routes) > 1:
        await one("/v1/streams/s", "PUT", b'{"method": "foster_hart", "seed": 7}')
    begun = 0.0
    for k in range(-times // 10, times):
        if k == 0:
            sent.clear()
            begun = time.process_time()
        await one(PATH, "POST", BODY.replace(b"order 1", b"order %d" % k))
    used = time.process_time() - begun
    if {told["status"] for told in sent if "status" in told} != {200}:
        raise RuntimeError(f"application must answer, got {sent[-2:]!r}")
    return used / times


# ------------------------------------------------------------------------ over loopback


@contextmanager
def serving(made: Callable[[], Any]) -> Iterator[tuple[int, int]]:
    """Serve an application in a process of its own; yields its number and its port."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen(64)
        child = os.fork()
        if not child:
            how: dict[str, Any] = {"http": "httptools", "loop": "uvloop", "access_log": False}
            config = uvicorn.Config(made(), log_level="warning", **how)
            uvicorn.Server(config).run(sockets=[held])
            os._exit(0)
        port = held.getsockname()[1]
    try:
        yield child, port
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


async def loaded(process: int, port: int, times: int, whole: bool) -> float:
    """Return the CPU seconds of the server for a request, of 8 connections."""
    pairs = [await asyncio.open_connection("127.0.0.1", port) for _ in range(8)]
    if whole:
        body = b'{"method": "foster_hart", "seed": 7}'
        head = f"PUT /v1/streams/s HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n"
        await ask(*pairs[0], head.encode() + body)
    before, first = 0.0, time.time_ns()

    async def client(number: int, pair: Any, many: int, part: str) -> None:
        for k in range(many):
            row = {"id": f"{first} {part} {number} {k}", "raw": (k * 37 % 100) / 100}
            await ask(*pair, request("forecasts", row))

    for part, many in (("first", times // 80), ("then", times // 8)):
        before = cpu_of(process)
        await asyncio.gather(*(client(n, pair, many, part) for n, pair in enumerate(pairs)))
    used = cpu_of(process) - before
    for _, writer in pairs:
        writer.close()
    return used / (times // 8 * 8)


# ------------------------------------------------------------------------------- lines


def lines() -> dict[str, int]:
    """Return how many lines of the service are routes, validation, errors and the document."""
    place, found = Path(calibrant.__file__).parent / "serve", dict[str, int]()
    for file, names in BY_HAND.items():
        text = (place / file).read_text()
        if names is None:
            found[file] = len(text.splitlines())
            continue
        nodes: Any = ast.parse(text).body
        spans = [node.end_lineno - node.lineno + 1 for node in nodes if _name(node) in names]
        found[f"{file}: {', '.join(names)}"] = sum(spans)
    return found


def _name(node: Any) -> str:
    return str(getattr(node, "name", None) or getattr(getattr(node, "target", None), "id", ""))


def available() -> dict[str, Callable[[], Any]]:
    """Return the applications whose libraries are installed."""
    there = find_spec("litestar") is not None
    return {name: made for name, made in APPS.items() if there or name != "Litestar"}


def measured(job: Callable[[], Awaitable[float]], repeats: int) -> float:
    """Return the least of some measurements, in microseconds."""

    async def run() -> float:
        return await job()

    return 1e6 * min(asyncio.run(run()) for _ in range(repeats))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.asgi", description=__doc__)
    parser.add_argument("--requests", type=int, default=4000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--lines", action="store_true")
    add_store(parser)
    chosen = parser.parse_args()
    if chosen.lines:
        found = lines()
        for name, count in (found | {"together": sum(found.values())}).items():
            print(f"{count:5d} {name}")
        return
    times, repeats = chosen.requests, chosen.repeats
    apps, alone, over = available(), dict[str, float](), dict[str, float]()
    for name, made in apps.items():
        with serving(made) as (process, port):
            whole = name == "service"
            over[name] = measured(lambda: loaded(process, port, times, whole), repeats)  # noqa: B023
    for name, made in apps.items():
        alone[name] = measured(lambda: called(made(), times), repeats)  # noqa: B023
    own = 1e6 * statistics.median(work(times) for _ in range(repeats))
    with storing("asgi", wanted=chosen.store):
        print("| application | by itself, us | behind uvicorn, us |\n|---|---|---|")
        print(f"| decoding, forecast and encoding, called directly | {own:.0f} | |")
        for name in apps:
            print(f"| {name} | {alone[name]:.0f} | {over[name]:.0f} |")


def work(times: int) -> float:
    """Return the CPU seconds of an answer without any application."""
    answer, begun = Answering(), time.process_time()
    for _ in range(times):
        encode(answer(decoded(forecast_in, BODY)))
    return (time.process_time() - begun) / times


if __name__ == "__main__":
    main()
