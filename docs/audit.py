"""Ask which vulnerabilities are known in pinned versions; ``script/audit`` runs it."""

from __future__ import annotations

import argparse
import json
import re
import sys
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path

__all__ = ["known", "main", "pins"]

ROOT = Path(__file__).resolve().parent.parent
SERVICE = "https://api.osv.dev/v1/querybatch"
PIN = re.compile(r"^([A-Za-z0-9][\w.-]*)(?:\[[^]]*\])?==([^\s;\\]+)", re.MULTILINE)
AT_ONCE = 500
SECONDS = 30
FOUND, NOT_ASKED = 1, 3


def pins(files: Iterable[Path]) -> list[tuple[str, str]]:
    """Return the names and versions that files pin, each once."""
    return sorted({found for file in files for found in PIN.findall(file.read_text())})


def known(pinned: list[tuple[str, str]], service: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield each version of which vulnerabilities are known, with their names."""
    for start in range(0, len(pinned), AT_ONCE):
        some = pinned[start : start + AT_ONCE]
        for (name, version), told in zip(some, ask(some, service), strict=True):
            if weak := [each["id"] for each in told.get("vulns", ())]:
                yield name, version, weak


def ask(pinned: list[tuple[str, str]], service: str) -> list[dict[str, list[dict[str, str]]]]:
    """Return what the service says about each version, in their order."""
    questions = [
        {"package": {"ecosystem": "PyPI", "name": name}, "version": version}
        for name, version in pinned
    ]
    body = json.dumps({"queries": questions}).encode()
    asked = urllib.request.Request(service, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(asked, timeout=SECONDS) as answer:
        return list(json.load(answer)["results"])


def main(arguments: list[str] | None = None) -> int:
    """Print what is known; return 0 if nothing is, 1 if something is, 3 if nobody answered."""
    parser = argparse.ArgumentParser(prog="script/audit", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="instead of requirements/*.txt")
    parser.add_argument("--service", default=SERVICE, help="address of an OSV batch query")
    told = parser.parse_args(arguments)
    pinned = pins(told.files or sorted(ROOT.glob("requirements/*.txt")))
    try:
        weak = list(known(pinned, told.service))
    except (OSError, ValueError, KeyError) as error:
        print(f"{len(pinned)} pins were not checked: no answer from {told.service}: {error}")
        return NOT_ASKED
    for name, version, names in weak:
        print(f"{name} {version}: {', '.join(names)}")
    print(f"{len(pinned)} pins checked, vulnerabilities are known in {len(weak)}")
    return FOUND if weak else 0


if __name__ == "__main__":
    sys.exit(main())
