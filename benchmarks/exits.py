"""How commands end that must end with an error: every one with its own code, none aborted.

    python -m benchmarks.exits                   500 ends, a process each
    python -m benchmarks.exits 50                fewer
    python -m benchmarks.exits --keep ends.txt   note each end there; go on where a run stopped

A bad row in a tiny file ends a command while a thread of Arrow may still read ahead, and
beside such a thread Python aborts (code 134) at its end.  The exit status is 1 unless every
command ended with code 4 and one line that says why.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

FILES = {
    "outcome.csv": "p,y\n0.5,1\n0.5,7\n",
    "forecast.csv": "p,y\n83,1\n",
    "fields.csv": "p,y\n0.5,1\n0.5,1,2\n0.5,1\n",
    "quotes.csv": 'p,y\n0.5,1\n"0.5,1\n',
    "long.csv": "p,y\n" + "0.5,7\n" + "0.5,1\n" * 100_000,
}
COMMAND = (sys.executable, "-m", "calibrant.cli", "replay")
EXPECTED = "code 4"
EVERY = 25
"""After this many ends progress is printed."""


def end(place: Path, number: int) -> str:
    """Return how a command ended: files take turns, read by name and from a pipe."""
    name = place / list(FILES)[number % len(FILES)]
    piped = number // len(FILES) % 2
    content = name.read_bytes() if piped else None
    ran = subprocess.run([*COMMAND, "-" if piped else name], input=content, capture_output=True)
    code = ran.returncode if ran.returncode >= 0 else 128 - ran.returncode
    lines = [line for line in ran.stderr.decode().splitlines() if line.startswith("calibrant: ")]
    proper = b"Traceback" not in ran.stderr and lines
    return f"code {code}" if proper else f"code {code} and an improper message"


def ends(place: Path, count: int, keep: Path | None) -> list[str]:
    """Return how commands ended; those that ``keep`` holds already are not run again."""
    found = keep.read_text().splitlines()[:count] if keep and keep.exists() else []
    for number in range(len(found), count):
        found.append(end(place, number))
        if keep:
            with keep.open("a") as file:
                file.write(found[-1] + "\n")
        if len(found) % EVERY == 0:
            print(f"calibrant: {len(found)} of {count}", file=sys.stderr, flush=True)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Print how often commands ended in which way; return 1 unless all ended as they must."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.exits", description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=500, help="how many ends")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="where ends are noted")
    told = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as place:
        for name, content in FILES.items():
            Path(place, name).write_text(content)
        found = Counter(ends(Path(place), told.count, told.keep))
    for way, times in sorted(found.items()):
        print(f"{times} of {told.count} ended with {way}", flush=True)
    return int(set(found) != {EXPECTED})


if __name__ == "__main__":
    sys.exit(main())
