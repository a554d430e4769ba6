"""A cluster of PostgreSQL of one's own: in a temporary folder, reached by a socket alone."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
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
        """Kill the server as a power cut would."""
        held = (self.place / "data" / "postmaster.pid").read_text().split("\n")[0]
        os.kill(int(held), signal.SIGQUIT)
        # Waits until the server is gone; one that is gone already is as good.
        self._run("pg_ctl", "-w", "-m", "immediate", "stop", check=False)

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
