"""``calibrant serve``, and what a service's data need: check, copy, tokens."""

from __future__ import annotations

import importlib
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from calibrant.cli.options import require, spread
from calibrant.core import check
from calibrant.errors import InvalidInput
from calibrant.journal.opening import open_store
from calibrant.journal.purge import purge as purged
from calibrant.journal.recover import verified
from calibrant.journal.sqlite import SqliteStore
from calibrant.stream import Unreadable, Unwritable

NEEDED: Final = ("starlette", "uvicorn", "httptools", "prometheus_client")
AGENTS: Final = ("httpx", "mcp")
Data: TypeAlias = Annotated[
    str, typer.Argument(metavar="DATA", help="A file, or postgresql://user@host/database.")
]
What: TypeAlias = Annotated[str, typer.Argument(metavar="WHAT", help="serve or live.")]
Port: TypeAlias = Annotated[int, typer.Option(metavar="N", help="The port.")]
Action: TypeAlias = Annotated[str, typer.Argument(metavar="ACTION", help="create, list or revoke.")]
Named: TypeAlias = Annotated[str, typer.Argument(metavar="NAME", help="Name of the token.")]
Address: TypeAlias = Annotated[
    str, typer.Argument(metavar="ADDRESS", help="Where the service is: http://host:port.")
]
Stream: TypeAlias = Annotated[str, typer.Argument(metavar="STREAM", help="Name of the stream.")]
TokenFile: TypeAlias = Annotated[
    str | None, typer.Option(metavar="FILE", help="A file that holds the token.")
]
SecretFile: TypeAlias = Annotated[
    str | None, typer.Option(metavar="FILE", help="Key of data whose secrets are sealed.")
]
Copy: TypeAlias = Annotated[str, typer.Argument(metavar="COPY", help="The copy of a file.")]


@dataclass(frozen=True)
class Listening:
    """Where a service listens, and what it allows.

    host NAME
        Address to listen on; tokens are required for any but this machine.
    port N
        The port; 0 picks a free one.
    certificate FILE
        Certificate for TLS, in PEM.
    key FILE
        Its private key.
    rate R
        Requests per second allowed for one token. [default: no limit]
    snapshot N
        Number of events between snapshots.
    secret_file FILE
        Key that seals the secrets in the data; created if the file does not exist.
    mcp
        Serve agents at /mcp/STREAM too, over the Model Context Protocol.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    certificate: str | None = None
    key: str | None = None
    rate: float | None = None
    snapshot: int = 100_000
    secret_file: str | None = None
    mcp: bool = False


@dataclass(frozen=True)
class Permit:
    """What a token allows.

    scope NAME
        read, write or admin.
    streams LIST
        Names of streams, separated by commas, or * for all.
    """

    scope: str = "write"
    streams: str = "*"


@spread
def serve(data: Data, *, listening: Listening) -> None:
    """Serve streams over HTTP: forecasts in, calibrated ones out.

    Every answer is on disk before it is given.

    \b
    Example:
      calibrant serve streams.db
    """
    require("the service", NEEDED, "serve")
    from calibrant.serve.options import Options
    from calibrant.serve.run import Place
    from calibrant.serve.run import serve as run

    check.whole(listening.port, "port", high=65535)
    check.whole(listening.snapshot, "snapshot", low=1)
    told = listening.host, listening.port, listening.certificate, listening.key
    place = Place(*told, listening.secret_file)
    options = Options(rate=listening.rate, every=listening.snapshot)
    run(data, place, options, _agents(listening.host) if listening.mcp else None)


def _agents(host: str) -> object:
    require("the server for agents", AGENTS, "mcp")
    from calibrant.client.mcp import Agents

    return Agents(host)


def mcp(address: Address, stream: Stream, token_file: TokenFile = None) -> None:
    """Serve agents over the Model Context Protocol (stdin, stdout).

    \b
    Example:
      calibrant mcp http://127.0.0.1:8000 agent
    """
    require("the server for agents", AGENTS, "mcp")
    from calibrant.client.mcp import run_stdio

    if token_file is not None:
        _check_there(token_file)
    token = None if token_file is None else Path(token_file).read_text().strip()
    run_stdio(address, stream, token)


def demo(what: What = "serve", *, port: Port = 8765) -> None:
    """Show three streams live in a browser, until Ctrl-C.

    They are a drifting model, rare events and an adversary.

    \b
    Example:
      calibrant demo serve
    """
    check.choice(what, "WHAT", ("serve", "live"))
    check.whole(port, "port", low=1, high=65535)
    require("the demo", (*NEEDED, *(("httpx",) if what == "serve" else ())), "all")
    # Above this layer, so it is looked up by name.
    importlib.import_module(f"calibrant.demo.{what}").serve(port)


def verify(data: Data, secret_file: SecretFile = None) -> None:
    """Replay a whole log; compare every answer and snapshot."""
    _check_there(data)
    with closing(open_store(data, alone=None, secret_file=secret_file)) as store:
        count = verified(store)
    print(f"{count:,} events, and every answer matches the log")


def backup(data: Data, copy: Copy) -> None:
    """Copy a file of streams, in use or not."""
    _check_there(data)
    if Path(copy).exists():
        raise Unwritable(f"{copy}: already exists")
    if "://" in data:
        raise InvalidInput(f"data must be a file; PostgreSQL has pg_dump, got {data!r}")
    with closing(SqliteStore(data, alone=None, old=True)) as store:
        store.backup(copy)


def restore(copy: Copy, data: Data, secret_file: SecretFile = None) -> None:
    """Verify a copy, and put it in place of a file of streams."""
    verify(copy, secret_file)
    if Path(data).exists():
        raise Unwritable(f"{data}: already exists; move it away first")
    backup(copy, data)


def migrate(data: Data) -> None:
    """Bring the tables of an earlier release up to date.

    Make a copy first, with calibrant backup.
    """
    _check_there(data)
    with closing(open_store(data, alone=True, old=True)) as store:
        passed = store.migrate()
        print(f"version {store.version()}, after {len(passed)} steps")


def purge(data: Data, secret_file: SecretFile = None) -> None:
    """Remove deleted streams, and ids past their time, for good.

    Ids are kept as long as their stream says (keep).
    """
    _check_there(data)
    with closing(open_store(data, alone=True, secret_file=secret_file)) as store:
        gone = purged(store, time.time())
    print(f"removed {gone.streams} streams, and {gone.events:,} events of other streams")


@spread
def token(action: Action, data: Data, name: Named = "", *, permit: Permit) -> None:
    """Make, list or revoke tokens.

    \b
    Example:
      calibrant token create streams.db scoring --scope write --streams churn,fraud
    """
    require("the service", NEEDED, "serve")
    from calibrant.serve.tokens import create_token, revoke_token

    check.choice(action, "ACTION", ("create", "list", "revoke"))
    if action != "list" and not name:
        raise InvalidInput(f"NAME must be given to {action} a token, got {name!r}")
    with closing(open_store(data, alone=None)) as store:
        if action == "create":
            print(create_token(store, name, permit.scope, permit.streams))
        elif action == "revoke":
            print(f"{revoke_token(store, name)} revoked")
        else:
            for one in store.tokens():
                state = "revoked" if one.revoked is not None else "valid"
                print(f"{one.name}\t{one.scope}\t{one.streams}\t{state}")


def _check_there(data: str) -> None:
    if "://" not in data and not Path(data).is_file():
        raise Unreadable(f"{data}: no such file")
