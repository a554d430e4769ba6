"""The service over TLS, beside idle connections, on a full disk, and while PostgreSQL is away."""

from __future__ import annotations

import datetime
import ipaddress
import os
import resource
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any

import pytest
from cluster import BIN, MISSING, Cluster
from disks import Mounted, mounted
from serving import PLAIN, Child
from test_serve_process import CLIENTS, Load, ask, once

from calibrant.journal.opening import open_store
from calibrant.journal.recover import verified
from calibrant.serve.run import Place

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]

IDLE = 10_000
SPARE = 300
"""Files that a process needs besides its connections."""


def certificate(folder: Path) -> tuple[str, str]:
    """Make a certificate for this machine; return its file and that of its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(now - day).not_valid_after(now + day)
    made = made.add_extension(here, critical=True)
    made = made.add_extension(x509.BasicConstraints(True, None), critical=True)
    files = folder / "certificate.pem", folder / "key.pem"
    pem = serialization.Encoding.PEM
    files[0].write_bytes(made.sign(key, hashes.SHA256()).public_bytes(pem))
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    files[1].write_bytes(key.private_bytes(pem, *form))
    return str(files[0]), str(files[1])


def test_a_service_with_a_certificate_answers_by_tls_alone(tmp_path: Path) -> None:
    shown, key = certificate(tmp_path)
    child = Child(str(tmp_path / "streams.db"), place=Place(port=0, certificate=shown, key=key))
    knowing = ssl.create_default_context(cafile=shown)
    with closing(HTTPSConnection(child.at, context=knowing, timeout=60)) as held:
        assert ask(held, "PUT", "/v1/streams/s", PLAIN)[0] == 201
        assert ask(held, "POST", "/v1/streams/s/forecasts", {"id": "a", "raw": 0.5})[0] == 200
        assert ask(held, "GET", "/readyz") == (200, b'{"ready":true,"trouble":""}')
        assert isinstance(held.sock, ssl.SSLSocket)
        assert held.sock.version() in ("TLSv1.2", "TLSv1.3")
    stranger = HTTPSConnection(child.at, context=ssl.create_default_context(), timeout=60)
    with closing(stranger), pytest.raises(ssl.SSLCertVerificationError):
        ask(stranger, "GET", "/readyz")
    with pytest.raises((OSError, HTTPException)):
        once(child.at, "GET", "/readyz")
    assert child.end(signal.SIGTERM) == 0


@contextmanager
def many_files() -> Iterator[int]:
    """Let this process and its children have as many files as they may; yields how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = hard if hard != resource.RLIM_INFINITY else IDLE + SPARE
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    yield wanted
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.slow
def test_idle_connections_do_no_harm(tmp_path: Path, record_property: Any) -> None:
    with many_files() as most:
        count = min(IDLE, most - SPARE)
        record_property("connections", count)
        # Fewer where a process may not have so many files, which only an administrator changes.
        print(f"{count} connections: a process may have {most} files")
        child = Child(str(tmp_path / "streams.db"))
        host, port = child.at.split(":")
        idle = [socket.create_connection((host, int(port))) for _ in range(count)]
        assert once(child.at, "PUT", "/v1/streams/s", PLAIN)[0] == 201
        assert once(child.at, "POST", "/v1/streams/s/forecasts", {"id": "a", "raw": 0.5})[0] == 200
        # Each of them was taken, and is held.
        files = len(list(Path(f"/proc/{child.number}/fd").iterdir()))
        assert files > count or not Path("/proc").exists()
        idle[-1].sendall(b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n")
        assert idle[-1].recv(100).startswith(b"HTTP/1.1 200 ")
        assert child.end(signal.SIGTERM) == 0
        for held in idle:
            held.close()


class Hardy(Load):
    """Clients that ask again what was not stored, until they are told to stop."""

    def __init__(self, child: Child) -> None:
        super().__init__(child, 0, 1 << 60)
        self.refused, self.stopped, self._news = 0, threading.Event(), threading.Condition()
        self.errors = list[str]()

    def _ask(self, held: HTTPConnection, what: str, body: dict[str, Any]) -> None:
        status = 503
        while status == 503:
            if self.stopped.is_set():
                raise OSError("stopped")
            status, told = ask(held, "POST", f"/v1/streams/s/{what}", body)
            with self._news:
                if status == 200:
                    self.told[what, body["id"]] = body, told
                elif status == 503:
                    self.refused += 1
                else:
                    self.errors.append(f"{status} {told!r}")
                    raise OSError("an answer that nobody expects")
                self._news.notify_all()
            if status == 503:
                self.stopped.wait(0.05)

    def wait(self, answered: int, refused: int = 0) -> None:
        """Wait until so many more were answered and refused."""
        with self._news:
            goal = len(self.told) + answered, self.refused + refused
            done = self._news.wait_for(
                lambda: len(self.told) >= goal[0] and self.refused >= goal[1], timeout=90
            )
        assert done, (len(self.told), self.refused, goal, self.errors)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Let clients work for a while."""
        threads = [threading.Thread(target=self.run, args=(n,)) for n in range(CLIENTS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.stopped.set()
            for thread in threads:
                thread.join()
        assert self.errors == []


def check_all(load: Hardy, child: Child, address: str) -> None:
    """Ask for all that was answered once more, and play the whole log again."""
    load.check(child.at)
    assert child.end(signal.SIGTERM) == 0
    store = open_store(address, alone=None)
    # What was written and not told: at most what each client had asked last.
    assert len(load.told) <= verified(store) <= len(load.told) + CLIENTS
    store.close()


def until_not_ready(child: Child) -> None:
    """Ask until the service says that it is not ready.

    It makes its streams again after each failure, and is ready until the next request fails.
    """
    end = time.monotonic() + 60
    while once(child.at, "GET", "/readyz")[0] == 200:
        assert time.monotonic() < end, "the service must not be ready on a full disk"


class Limited:
    """In place of a disk: a process whose files may grow no more."""

    def __init__(self, child: Child, place: Path) -> None:
        self._number, self._place = child.number, place

    def fill(self, store: Any) -> None:
        """Let files grow no more."""
        size = max(file.stat().st_size for file in self._place.iterdir())
        resource.prlimit(self._number, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def make_room(self, store: Any) -> None:
        """Let files grow again."""
        most = resource.RLIM_INFINITY
        resource.prlimit(self._number, resource.RLIMIT_FSIZE, (most, most))


@pytest.mark.parametrize("kind", ["mounted", "limited"])
def test_a_full_disk_under_load_loses_nothing_that_was_answered(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "disk"
    place.mkdir()
    real = kind == "mounted" and mounted(place)
    print(f"disk: {'tmpfs' if real else 'a limit of the process'}")
    address = str(place / "streams.db")
    child = Child(address)
    disk = Mounted(place) if real else Limited(child, place)
    assert once(child.at, "PUT", "/v1/streams/s", PLAIN)[0] == 201
    load = Hardy(child)
    with load.at_work():
        load.wait(100)
        disk.fill(None)
        load.wait(0, refused=CLIENTS)
        until_not_ready(child)
        assert once(child.at, "GET", "/healthz")[0] == 200
        disk.make_room(None)
        load.wait(100)
    assert once(child.at, "GET", "/readyz")[0] == 200
    check_all(load, child, address)
    if real:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.slow
@pytest.mark.skipif(BIN is None, reason=MISSING)
def test_postgres_killed_and_back_under_load_loses_nothing_that_was_answered() -> None:
    cluster = Cluster()
    try:
        address = cluster.database("served")
        child = Child(address)
        assert once(child.at, "PUT", "/v1/streams/s", PLAIN)[0] == 201
        load = Hardy(child)
        with load.at_work():
            for _ in range(2):
                load.wait(100)
                cluster.kill()
                load.wait(0, refused=CLIENTS)
                until_not_ready(child)
                cluster.start()
                load.wait(100)
        assert once(child.at, "GET", "/readyz")[0] == 200
        check_all(load, child, address)
    finally:
        cluster.close()
