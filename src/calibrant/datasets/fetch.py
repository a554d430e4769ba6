"""Getting files that do not travel: from their authors, at a fixed version, checked by digest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final
from urllib.request import urlopen

from calibrant.datasets.shelf import ADDRESSES, files
from calibrant.datasets.shelf import fetched as usual_place
from calibrant.errors import InvalidInput

PATIENCE: Final = 60.0
"""Seconds without an answer after which a source counts as silent."""


def fetch(
    folder: str, to: str | Path | None = None, *, read: Callable[[str], bytes] | None = None
) -> list[Path]:
    """Get the files of a folder that do not travel; those that are there already are kept.

    Parameters
    ----------
    folder
        ``"free917"`` (questions and schema) or ``"genotypes"`` (HapMap 3).
    to
        Directory to put the folder in; by default where :func:`calibrant.datasets.path` looks.
    read
        Returns the bytes of an address; by default over the network.

    Raises
    ------
    InvalidInput
        If no file of the folder is fetched, or if what came is not what it should be: nothing is
        written then.
    """
    names = [name for name in ADDRESSES if name.partition("/")[0] == folder]
    if not names:
        known = ", ".join(dict.fromkeys(name.partition("/")[0] for name in ADDRESSES))
        raise InvalidInput(f"folder must be one of {known}, got {folder!r}")
    place = usual_place() if to is None else Path(to)
    return list(_each(names, place, read or _download))


def _each(names: list[str], place: Path, read: Callable[[str], bytes]) -> Iterator[Path]:
    for name in names:
        target = place / name
        if not (target.is_file() and files()[name].fits(target.read_bytes())):
            _put(target, _checked(name, read(ADDRESSES[name])))
        yield target


def _checked(name: str, body: bytes) -> bytes:
    """Return the bytes of a file if their digest is the one on the list."""
    if not (wanted := files()[name]).fits(body):
        told = f"{wanted.size} bytes with SHA-256 {wanted.sha256}"
        raise InvalidInput(f"{name} must be {told}, got {len(body)} other bytes")
    return body


def _put(target: Path, body: bytes) -> None:
    """Write a file under its name only when it is whole."""
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f"{target.name}.part")
    draft.write_bytes(body)
    draft.replace(target)


def _download(address: str) -> bytes:
    with urlopen(address, timeout=PATIENCE) as answer:
        return bytes(answer.read())
