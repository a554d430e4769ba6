"""How commands end that must end with an error: every one with its own code, none aborted.

    python -m benchmarks.exits          500 ends, a process each
    python -m benchmarks.exits 50       fewer

A bad row in a tiny file ends a command while a thread of Arrow may still read ahead, and
beside such a thread Python aborts (code 134) at its end.
"""

from __future__ import annotations

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


def ends(place: Path, count: int) -> Counter[int]:
    """Return how often each code ended a command, on files and on pipes in turn."""
    codes: Counter[int] = Counter()
    for k in range(count):
        name = place / list(FILES)[k % len(FILES)]
        if k // len(FILES) % 2:
            content = name.read_bytes()
            ran = subprocess.run([*COMMAND, "-"], input=content, capture_output=True)
        else:
            ran = subprocess.run([*COMMAND, name], capture_output=True)
        code = ran.returncode
        codes[code if code >= 0 else 128 - code] += 1
    return codes


def main(count: int) -> int:
    """Tell how often each code ended a command; return 1 if any other than 4 did."""
    with tempfile.TemporaryDirectory() as place:
        for name, content in FILES.items():
            Path(place, name).write_text(content)
        codes = ends(Path(place), count)
    for code, times in sorted(codes.items()):
        print(f"{times} of {count} ended with code {code}", flush=True)
    return int(set(codes) != {4})


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 500))
