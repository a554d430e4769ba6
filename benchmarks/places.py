"""Where a measurement ran: file system, commit, and a cluster of PostgreSQL with what it syncs."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

OWN = "own"
"""In place of an address: a cluster that is started for the measurement."""


def file_system(place: Path) -> str:
    """Return which kind of file system a folder is on."""
    found, path = "", str(place.resolve())
    kind = "unknown"
    mounts = Path("/proc/mounts")
    for line in mounts.read_text().splitlines() if mounts.exists() else ():
        _, at, name, *_ = line.split()
        inside = path == at or path.startswith(at.rstrip("/") + "/")
        if inside and len(at) >= len(found):
            found, kind = at, name
    return kind


def commit() -> str:
    """Return the commit that is measured, with a + behind it if something was changed since."""
    here = Path(__file__).parent

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=here, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", "../src", ".")
        return git("rev-parse", "--short", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


class Database:
    """A server of PostgreSQL at the address of one of its databases."""

    def __init__(self, address: str) -> None:
        self.address = address

    def _rows(self, text: Any, *values: Any) -> list[Any]:
        import psycopg

        with psycopg.connect(self.address, autocommit=True) as held:
            asked = held.execute(text, values)
            return asked.fetchall() if asked.description else []

    def named(self, name: str) -> str:
        """Return the address of a database beside this one, made if it is not there."""
        if not self._rows("select 1 from pg_database where datname = %s", name):
            self._rows(f'create database "{name}"')
        before, mark, options = self.address.partition("?")
        return before.rpartition("/")[0] + f"/{name}{mark}{options}"

    def settings(self) -> dict[str, str]:
        """Return what the server does before it says that something is written."""
        names = ("server_version", "fsync", "synchronous_commit", "full_page_writes")
        told = {name: str(self._rows(f"show {name}")[0][0]).split()[0] for name in names}
        place = Path(str(self._rows("show data_directory")[0][0]))
        return told | {"file_system": file_system(place)}


@contextmanager
def databases(address: str, place: Path) -> Iterator[Database]:
    """Yield the server at an address, or a cluster of one's own that stays in a folder."""
    if address != OWN:
        yield Database(address)
        return
    cluster = _Cluster(place)
    try:
        yield Database(f"postgresql://tester@/postgres?host={cluster.sockets}")
    finally:
        cluster.stop()


class _Cluster:
    """A server in a folder, reached by a socket alone, which syncs as it does by default."""

    def __init__(self, place: Path) -> None:
        self.user = None if os.getuid() else "nobody"
        # A short path, as sockets want, which whoever the server runs as may enter.
        self.sockets = Path(tempfile.mkdtemp(prefix="calibrant-pg-"))
        self.data = (place / "cluster").resolve()
        self._own(self.sockets)
        if self.user is not None:
            place.chmod(place.stat().st_mode | 0o011)
        if not (self.data / "PG_VERSION").exists():
            self.data.mkdir(parents=True, exist_ok=True)
            self._own(self.data)
            self._run("initdb", "-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C")
        told = f"-k {self.sockets} -c listen_addresses= -c fsync=on -c max_connections=50"
        self._run("pg_ctl", "-w", "-l", str(self.sockets / "log"), "-o", told, "start")

    def _own(self, folder: Path) -> None:
        if self.user is not None:
            os.chown(folder, pwd.getpwnam(self.user).pw_uid, -1)

    def _run(self, name: str, *options: str) -> None:
        places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
        program = str(places[-1]) if places else shutil.which(name)
        if program is None:
            raise SystemExit("PostgreSQL is not installed here: apt-get install postgresql")
        subprocess.run(
            [program, "-D", str(self.data), *options],
            check=True,
            user=self.user,
            cwd="/",
            stdout=subprocess.DEVNULL,
        )

    def stop(self) -> None:
        """Stop the server, and remove its sockets."""
        # Whoever is ended may be so again: the server is stopped first.
        was = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            self._run("pg_ctl", "-w", "-m", "fast", "stop")
        finally:
            signal.signal(signal.SIGINT, was)
        shutil.rmtree(self.sockets, ignore_errors=True)
