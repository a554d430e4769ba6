"""How commands end that must end with an error: every one with its own code, none aborted.

    python -m benchmarks.exits                   500 ends, a process each
    python -m benchmarks.exits 50                fewer
    python -m benchmarks.exits --keep ends.txt   note each end there; go on where a run stopped
    python -m benchmarks.exits --forked          children of a process that has imported all

A bad row in a tiny file ends a command while a thread of Arrow may still read ahead, and
beside such a thread Python aborts (code 134) at its end.  The exit status is 1 unless every
command ended with code 4 and one line that says why.  Most of what an end costs is importing:
with ``--forked`` it is done once, and each child reads, fails and ends as a process of its own.
"""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

FILES = {
    "outcome.csv": "p,y\n0.5,1\n0.5,7\n",
    "forecast.csv": "p,y\n83,1\n",
    "fields.csv": "p,y\n0.5,1\n0.5,1,2\n0.5,1\n",
    "quotes.csv": 'p,y\n0.5,1\n"0.5,1\n',
    "long.csv": "p,y\n" + "0.5,7\n" + "0.5,1\n" * 100_000,
}
COMMAND = (sys.executable, "-m", "calibrant.cli", "replay")
IMPORTED = ("calibrant.cli.app", "calibrant.kinds.binary", "pandas", "pyarrow.csv", "pydantic")
EXPECTED = "code 4"
EVERY = 25
"""After so many ends progress is told."""
Run = Callable[[Path, bool], tuple[int, bytes]]


def end(name: Path, piped: bool) -> tuple[int, bytes]:
    """Run a command in a new process; return its code and what it said."""
    content = name.read_bytes() if piped else None
    ran = subprocess.run([*COMMAND, "-" if piped else name], input=content, capture_output=True)
    return ran.returncode, ran.stderr


def forked_end(name: Path, piped: bool) -> tuple[int, bytes]:
    """Run a command in a child of this process; return its code and what it said."""
    said = name.with_suffix(".said")
    with subprocess.Popen(["cat", name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as cat:
        assert cat.stdout is not None
        child = os.fork()
        if not child:
            given = cat.stdout.fileno() if piped else os.open(os.devnull, os.O_RDONLY)
            run_here(name, piped, given, os.open(said, os.O_CREAT | os.O_TRUNC | os.O_WRONLY))
        cat.stdout.close()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, said.read_bytes()


def run_here(name: Path, piped: bool, given: int, said: int) -> None:
    """Become the command: read ``given``, write to ``said``, and end as Python ends."""
    for number, stream in enumerate((given, said, said)):
        os.dup2(stream, number)
    sys.argv = ["calibrant", "replay", "-" if piped else str(name)]
    from calibrant.cli import main as command

    raise Ending(command())


class Ending(SystemExit):
    """How a child leaves everything that its parent had begun."""


def way(code: int, said: bytes) -> str:
    """Return in words how a command ended, and whether it said why in lines of its own."""
    proper = b"Traceback" not in said and b"calibrant: " in said
    told = f"code {code if code >= 0 else 128 - code}"
    return told if proper else f"{told} and an improper message"


def ends(place: Path, count: int, keep: Path | None, run: Run) -> list[str]:
    """Return how commands ended; those that ``keep`` holds already are not run again.

    Files take turns, read by name and from a pipe.
    """
    found = keep.read_text().splitlines()[:count] if keep and keep.exists() else []
    for number in range(len(found), count):
        name = place / list(FILES)[number % len(FILES)]
        found.append(way(*run(name, bool(number // len(FILES) % 2))))
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
    parser.add_argument("--forked", action="store_true", help="import once, fork for each end")
    told = parser.parse_args(arguments)
    if told.forked:
        for module in IMPORTED:
            importlib.import_module(module)
    # Not a context: a child would remove it when it ends.
    place = Path(tempfile.mkdtemp())
    for name, content in FILES.items():
        (place / name).write_text(content)
    found = Counter(ends(place, told.count, told.keep, forked_end if told.forked else end))
    shutil.rmtree(place)
    for ended, times in sorted(found.items()):
        print(f"{times} of {told.count} ended with {ended}", flush=True)
    return int(set(found) != {EXPECTED})


if __name__ == "__main__":
    sys.exit(main())
