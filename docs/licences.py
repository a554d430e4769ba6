"""Print the licence of every package that extras bring along; ``script/licences`` runs it."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

__all__ = ["brought_by", "licence_of"]

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
UNKNOWN = "not told"


def asked_by(name: str) -> Iterator[str]:
    """Yield what an extra of ours, or an installed package, asks for."""
    try:
        known = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        known = []
    for row in PROJECT["optional-dependencies"].get(name, known):
        if found := re.match(r"calibrant\[(.*)\]", row):
            yield from found[1].split(",")
        elif "extra ==" not in row:
            yield re.split(r"[^\w.-]", row)[0]


def brought_by(extra: str) -> list[str]:
    """Return every installed package that an extra brings along, numpy included."""
    found, waiting = {"numpy"}, [extra]
    while waiting:
        more = set(asked_by(waiting.pop())) - found
        found |= more
        waiting += more
    return sorted((name for name in found if is_installed(name)), key=str.lower)


def is_installed(name: str) -> bool:
    """Say whether there is a package of that name."""
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def licence_of(name: str) -> str:
    """Return what a package says about its licence, in a few words."""
    told = metadata.metadata(name)
    classifiers = told.get_all("Classifier") or []
    named = [each.rpartition(" :: ")[2] for each in classifiers if each.startswith("License")]
    plain = (told.get("License") or "").strip().splitlines()
    first = plain[0] if plain and len(plain[0]) < 60 else ""
    return told.get("License-Expression") or " and ".join(named) or first or UNKNOWN


def main(extras: list[str]) -> None:
    """Print the table."""
    print("| package | version | licence |\n| --- | --- | --- |")
    for name in dict.fromkeys(name for extra in extras for name in brought_by(extra)):
        print(f"| {name} | {metadata.version(name)} | {licence_of(name)} |")


if __name__ == "__main__":
    main(sys.argv[1:] or ["all"])
