"""The service that one writes in an afternoon: River behind Starlette, with SQLite or nothing.

``python -m benchmarks.peers.afternoon SOCKET [FILE]`` serves the two routes of ours that the load
of ``benchmarks/service.py`` asks, on a socket that is open already.  With a file each request is
committed, and synced, before it is answered; at the start the file is played again.
"""

import math
import socket
import sqlite3
import sys
from collections import defaultdict

import uvicorn
from river.linear_model import LogisticRegression
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

VALUE = {"forecasts": "raw", "outcomes": "outcome"}


class Stream:
    """One model, the forecasts whose outcomes are still to come, and outcomes that came first."""

    def __init__(self):
        self.model, self.waiting, self.early = LogisticRegression(), {}, {}

    def forecasts(self, name, raw):
        """Announce a forecast, and remember it."""
        raw = min(max(raw, 1e-6), 1 - 1e-6)
        x = self.waiting[name] = {"odds": math.log(raw / (1 - raw))}
        said = self.model.predict_proba_one(x).get(True, 0.5)
        if name in self.early:
            self.outcomes(name, self.early.pop(name))
        return {"id": name, "forecast": said}

    def outcomes(self, name, outcome):
        """Learn an outcome."""
        if name in self.waiting:
            self.model.learn_one(self.waiting.pop(name), bool(outcome))
        else:
            self.early[name] = outcome
        return {"id": name, "outcome": outcome}


def opened(path):
    """Return a log in a file: every commit is synced, as in ours."""
    log = sqlite3.connect(path)
    log.execute("pragma journal_mode = wal")
    log.execute("pragma synchronous = full")
    log.execute(
        "create table if not exists events"
        " (stream text, kind text, id text, x real, unique (stream, kind, id))"
    )
    return log


def made(path):
    """Return the application."""
    streams, log = defaultdict(Stream), None if path is None else opened(path)
    if log is not None:
        for stream, kind, name, x in log.execute("select * from events order by rowid"):
            getattr(streams[stream], kind)(name, x)

    async def events(request):
        stream, kind = request.path_params["stream"], request.path_params["kind"]
        body = await request.json()
        rows = [(row["id"], row[VALUE[kind]]) for row in (body if type(body) is list else [body])]
        if log is not None:
            with log:
                told = [(stream, kind, *row) for row in rows]
                log.executemany("insert into events values (?, ?, ?, ?)", told)
        take = getattr(streams[stream], kind)
        answers = [take(*row) for row in rows]
        return JSONResponse(answers if type(body) is list else answers[0])

    async def put(request):
        return JSONResponse({"stream": request.path_params["stream"]})

    return Starlette(
        routes=[
            Route("/v1/streams/{stream}", put, methods=["PUT"]),
            Route("/v1/streams/{stream}/{kind}", events, methods=["POST"]),
        ]
    )


def main(number, path=None):
    """Serve until the end."""
    how = {"http": "httptools", "loop": "uvloop", "access_log": False, "log_level": "warning"}
    with socket.socket(fileno=int(number)) as held:
        uvicorn.Server(uvicorn.Config(made(path), **how)).run(sockets=[held])


if __name__ == "__main__":
    main(*sys.argv[1:])
