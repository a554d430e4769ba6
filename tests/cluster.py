"""A cluster of PostgreSQL of one's own: in a temporary folder, reached by a socket alone."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

PLACES = [Path(place) for place in sorted(Path("/usr/lib/postgresql").glob("*/bin"))]
BIN = next((place for place in reversed(PLACES) if (place / "initdb").exists()), None)
if BIN is None and shutil.which("initdb"):
    BIN = Path(str(shutil.which("initdb"))).parent
MISSING = "PostgreSQL is not installed here: apt-get install postgresql"


class Cluster:
    """A server that is started, stopped and killed at will."""

    def __init__(self) -> None:
        # Not below a folder of pytest's, which nobody else may enter, and short as sockets want.
        self.place = Path(tempfile.mkdtemp(prefix="calibrant-pg-"))
        self.user = None if os.getuid() else "nobody"
        if self.user is not None:
            os.chown(self.place, pwd.getpwnam(self.user).pw_uid, -1)
        self._run("initdb", "--no-sync", "-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C")
        self.start()

    def _run(self, name: str, *options: str, check: bool = True) -> None:
        subprocess.run(
            [str(BIN / name), "-D", str(self.place / "data"), *options],  # type: ignore[operator]
            check=check,
            user=self.user,
            cwd="/",
            stdout=subprocess.DEVNULL,
        )

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        told = f"-k {self.place} -c listen_addresses= -c fsync=off -c max_connections=50"
        self._run("pg_ctl", "-w", "-l", str(self.place / "log"), "-o", told, "start")

    def kill(self) -> None:
        """Kill the server and all its processes at once, with SIGKILL."""
        file = self.place / "data" / "postmaster.pid"
        first = int(file.read_text().split("\n")[0])
        # The first one begins no other from here on.
        os.kill(first, signal.SIGSTOP)
        numbers = [first, *(number for number, parent, _ in _processes() if parent == first)]
        for number in numbers:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        end = time.monotonic() + 30
        while any(number in numbers and state != "Z" for number, _, state in _processes()):
            assert time.monotonic() < end, "a process of the server must be gone"
        # Nobody may have taken note of their end, so that their numbers are still in use.
        for left in (file, *self.place.glob(".s.PGSQL.*.lock")):
            left.unlink()

    def database(self, name: str) -> str:
        """Make an empty database; return its address."""
        import psycopg

        with psycopg.connect(self.address("postgres"), autocommit=True) as held:
            held.execute(f'create database "{name}"')  # type: ignore[arg-type]
        return self.address(name)

    def address(self, name: str) -> str:
        """Return the address of a database."""
        return f"postgresql://tester@/{name}?host={self.place}"

    def close(self) -> None:
        """Stop the server and remove its folder."""
        self._run("pg_ctl", "-w", "-m", "immediate", "stop", check=False)
        shutil.rmtree(self.place, ignore_errors=True)


def _processes() -> Iterator[tuple[int, int, str]]:
    """Yield number, parent and state of every process."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent, *_ = file.read_text().rpartition(")")[2].split()
            yield int(file.parent.name), int(parent), state
