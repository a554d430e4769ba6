"""Disks that fill up and become read-only: a small one in memory, where mounting is allowed."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

SIZE = 2 << 20
"""Bytes of the disk."""
PAGES = 2
"""Pages by which a file of SQLite may still grow, where there is no disk of its own."""


class Mounted:
    """A file system of its own, in memory."""

    kind = "tmpfs"

    def __init__(self, place: Path) -> None:
        self.place, self._filler = place, place / "filler"

    def fill(self, store: Any) -> None:
        """Leave no room."""
        with self._filler.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass

    def make_room(self, store: Any) -> None:
        """Make room again."""
        self._filler.unlink()

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """Let nobody write for a while; no file may be open."""
        self._again("ro")
        yield
        self._again("rw")

    def _again(self, how: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{how}", str(self.place)], check=True)


class Feigned:
    """A folder, and limits of SQLite that give the same errors as a disk would."""

    kind = "limits of SQLite"

    def __init__(self, place: Path) -> None:
        self.place = place

    def fill(self, store: Any) -> None:
        """Let the file grow no more."""
        (pages,) = store._write.execute("pragma page_count").fetchone()
        store._write.execute(f"pragma max_page_count = {pages + PAGES}")

    def make_room(self, store: Any) -> None:
        """Let the file grow again."""
        store._write.execute("pragma max_page_count = 1000000")

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """Let nobody write for a while."""
        connect = sqlite3.connect

        def reading(path: Any, **how: Any) -> sqlite3.Connection:
            return connect(f"file:{path}?mode=ro", uri=True, **how)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(sqlite3, "connect", reading)
            yield


def mounted(place: Path) -> bool:
    """Say whether a small disk could be mounted."""
    if shutil.which("mount") is None:
        return False
    words = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(place)]
    return subprocess.run(words, check=False, capture_output=True).returncode == 0


@pytest.fixture(params=["mounted", "feigned"])
def disk(
    request: pytest.FixtureRequest, tmp_path: Path, record_property: Any
) -> Iterator[Mounted | Feigned]:
    """Yields a disk of its own, or what comes near where mounting is not allowed; tells which."""
    place = tmp_path / "disk"
    place.mkdir()
    real = request.param == "mounted" and mounted(place)
    made = Mounted(place) if real else Feigned(place)
    record_property("disk", made.kind)
    print(f"disk: {made.kind}")
    yield made
    if real:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
