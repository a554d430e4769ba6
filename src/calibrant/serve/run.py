"""A service as a process."""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, NamedTuple

import uvicorn
from starlette.applications import Starlette

from calibrant.errors import InvalidInput
from calibrant.journal.opening import open_store
from calibrant.journal.sql import Store
from calibrant.kernels.compile import available
from calibrant.serve.app import make_app
from calibrant.serve.options import Options
from calibrant.serve.shell import Shell

LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
APART: Final = 10_000
"""From this many events between snapshots on, another process is worth its start."""
GRACE: Final = 10
"""Seconds that requests may take to end once the service is told to stop."""
SELDOM: Final = (10_000, 20, 100)
"""After how many objects, and how many earlier looks, Python looks for garbage in circles.

A service makes many objects and hardly any such garbage.  As often as Python does by itself, a look
at all there is would stop everybody for a tenth of a second in each second under load.
"""


@dataclass(frozen=True)
class Place:
    """Where a service listens, with which certificate, and what opens its store."""

    host: str = "127.0.0.1"
    port: int = 8000
    certificate: str | None = None
    key: str | None = None
    secret_file: str | None = None


def serve(
    address: str, place: Place, options: Options, agents: Any = None, *, compile: bool = True
) -> None:
    """Serve the streams of a store until the process is told to stop.

    It listens at once, and is ready when all streams are made from their log.
    ``agents`` answers the Model Context Protocol at ``/mcp/{stream}``, if it shall be answered.
    ``compile`` says whether machine code may be made, which takes some seconds the first time.
    """
    store = open_store(address, alone=True, secret_file=place.secret_file)
    try:
        apart = address if options.every >= APART else None
        fast = compile and available()
        options = replace(options, open=is_open(store, place.host), fast=fast)
        options = replace(options, apart=apart, secret_file=place.secret_file)
        make = partial(make_app, store, options, agents)
        making = Making(make, store.leave, options.open, agents is not None)
        with _heard():
            shell = _run(address, place, making)
    except BaseException:
        store.close()
        raise
    if not shell.stuck:
        store.close()
    if shell.error is not None:
        raise shell.error
    _say("stopped")


class Making(NamedTuple):
    """What makes the application and what ends that early, and what is said of it."""

    make: Callable[[], Starlette]
    leave: Callable[[], None]
    open: bool
    agents: bool


def _run(address: str, place: Place, making: Making) -> Shell:
    """Listen at once, make the application meanwhile, and answer until told to stop."""
    shell = Shell(
        making.make,
        making.leave,
        ready=lambda app: ready(app),
        slow=lambda: _say(
            f"listening at {where} but not ready: streams are rebuilt from their log"
        ),
        failed=lambda: setattr(server, "should_exit", True),
        grace=GRACE,
    )
    config = _config(shell, place)
    held: Any = config.bind_socket()
    # From now on whoever asks waits, and is not refused.
    held.listen(config.backlog)
    how = "https" if place.certificate else "http"
    where = f"{how}://{place.host}:{held.getsockname()[1]}"
    server = uvicorn.Server(config)

    def ready(app: Starlette) -> None:
        # Pages that are open end by themselves.
        app.state.ending = lambda: server.should_exit
        _announce(_shown(address), where, making)

    # The server ends in order and then hands on the signal that ended it.
    with seldom(), suppress(KeyboardInterrupt, SystemExit):
        server.run(sockets=[held])
    return shell


@contextmanager
def seldom() -> Iterator[None]:
    """Look for garbage in circles as seldom as a service needs it."""
    before = gc.get_threshold()
    gc.set_threshold(*SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _announce(address: str, where: str, making: Making) -> None:
    _say(f"serving {address} at {where}")
    if making.open:
        _say("warning: there are no tokens, so everybody on this machine may do everything")
    if making.agents:
        _say(f"agents: {where}/mcp/STREAM")
    _say(f"live page: {where}/live/")


def _config(app: Any, place: Place) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        host=place.host,
        port=place.port,
        http="httptools",
        loop="uvloop" if sys.platform != "win32" else "asyncio",
        lifespan="on",
        access_log=False,
        log_level="warning",
        ssl_certfile=place.certificate,
        ssl_keyfile=place.key,
        timeout_graceful_shutdown=GRACE,
        server_header=False,
    )


def is_open(store: Store, host: str) -> bool:
    """Say whether requests need no token: where there is none, and only this machine asks."""
    if any(token.revoked is None for token in store.tokens()):
        return False
    if host not in LOOPBACK:
        raise InvalidInput(
            f"host must be of this machine alone while there are no tokens, got {host!r}; "
            "make one with: calibrant token create"
        )
    return True


def _shown(address: str) -> str:
    """Return an address without a password."""
    before, at, rest = address.rpartition("@")
    return f"{before.partition('://')[0]}://...@{rest}" if at else address


@contextmanager
def _heard() -> Iterator[None]:
    """Let what the service notes, and the audit lines, go where it says the rest."""
    heard = logging.StreamHandler(sys.stderr)
    heard.setFormatter(logging.Formatter("%(asctime)s %(name)s: %(message)s"))
    log = logging.getLogger("calibrant")
    log.setLevel(logging.INFO)
    if not log.handlers:
        log.addHandler(heard)
    try:
        yield
    finally:
        log.removeHandler(heard)


def _say(text: str) -> None:
    print(f"calibrant: {text}", file=sys.stderr, flush=True)
