"""The service: every event by HTTP, with kill -9 while a request is on its way."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import calibrant
from benchmarks.one_log.log import Event, batches
from benchmarks.one_log.ways import PAPER, SEED, Model, Result

__all__ = ["by_service"]


class Service:
    """A service in a process of its own, which is killed and started again.

    Parameters
    ----------
    address
        A file, or a database of PostgreSQL.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.start()

    def start(self) -> None:
        """Start the process, and wait until it is ready."""
        words = [sys.executable, "-m", "calibrant", "serve", self.address, "--port", "0"]
        self.process = subprocess.Popen(
            [*words, "--snapshot", "1000"], stderr=subprocess.PIPE, text=True
        )
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        while "not ready" in line:
            line = self.process.stderr.readline()
        if " at http://" not in line:
            raise RuntimeError(f"service must start, got {line}{self.process.stderr.read()}")
        self.held = HTTPConnection(line.split("http://")[1].strip(), timeout=600)

    def kill(self) -> None:
        """Kill the process as a power cut would."""
        self.held.close()
        self.process.kill()
        self.process.communicate()

    def send(self, method: str, path: str, body: Any = None) -> None:
        """Ask something."""
        self.held.request(method, path, None if body is None else json.dumps(body))

    def answer(self) -> bytes:
        """Return what is answered."""
        told = self.held.getresponse()
        data = told.read()
        if told.status not in (200, 201):
            raise RuntimeError(f"answer must be 200, got {told.status}: {data[:400]!r}")
        return data

    def ask(self, method: str, path: str, body: Any = None) -> bytes:
        """Ask something; return what is answered."""
        self.send(method, path, body)
        return self.answer()


ROUTE = "/v1/streams/log"


def requests_of(batch: list[Event]) -> Iterator[tuple[str, str, Any]]:
    """Yield what is asked of a service for events of one kind."""
    kind = batch[0].kind
    if kind == "forecast":
        yield "POST", f"{ROUTE}/forecasts", [{"id": e.id, "key": e.key, "raw": e.x} for e in batch]
    elif kind == "outcome":
        yield "POST", f"{ROUTE}/outcomes", [{"id": e.id, "outcome": int(e.x)} for e in batch]
    for event in batch:
        name = event.id.replace(" ", "%20")
        if kind == "correction":
            yield "PUT", f"{ROUTE}/outcomes/{name}", {"outcome": int(event.x)}
        elif kind == "expiry":
            yield "DELETE", f"{ROUTE}/forecasts/{name}", None


def by_service(log: list[Event], address: str, kills: int, model: Model = PAPER) -> Result:
    """Tell a service every event; kill it so many times while it works, and tell it again."""
    asked = [request for batch in batches(log) for request in requests_of(batch)]
    dying = {len(asked) * (k + 1) // (kills + 1) for k in range(kills)}
    service, answers = Service(address), dict[str, tuple[float, float]]()
    try:
        made = {"seed": SEED, "keyed": True, "unknown": "keep"}
        service.ask("PUT", ROUTE, model.settings | made)
        for number, request in enumerate(asked):
            if number in dying:
                service.send(*request)
                service.kill()
                service.start()
            told = json.loads(service.ask(*request))
            if request[1].endswith("forecasts"):
                answers |= {each["id"]: (each["forecast"], each["mean"]) for each in told}
            elif isinstance(told, list) and any("status" not in each for each in told):
                raise RuntimeError(f"outcomes must be taken, got {told}")
        table: Any = calibrant.load(service.ask("GET", f"{ROUTE}/state"))
    finally:
        service.kill()
    return Result(answers, {key: table.body(key) for key in table})
