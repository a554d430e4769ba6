"""Measure what the pages quote: subjects made of parts, each a command in a process of its own.

``script/bench [SUBJECT ...] [--peers] [--quick] [--again] [--store]`` runs it.  What a part
printed, how long it took and on which machine goes to ``results/bench/SUBJECT-PART.json`` when the
part is done, so that a run that was interrupted goes on where it stopped;
``results/bench/index.html`` shows all.  With ``--store`` parts whose tables are on pages write them
there.
"""

from __future__ import annotations

import argparse
import html
import json
import pathlib
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.__main__ import machine
from benchmarks.store import add_store, tables_in

__all__ = ["PARTS", "Part", "chosen", "main", "page", "ratios"]

ROOT = pathlib.Path(__file__).parents[1]
RESULTS = pathlib.Path(__file__).with_name("results") / "bench"
SUBJECTS = ("quality", "speed", "memory", "scale", "service")
RATIO = re.compile(r"(?P<ratio>\d+\.\d+) +(?P<bar>[<>]= ?\d[\d.]*)(?P<rest>.*)")
RATIO_HEADS = ("ratio", "to C", "to ours", "to storage off", "times")
SPARK = ".venv-spark/bin/python"


@dataclass(frozen=True)
class Part:
    """A command that measures something.

    Attributes
    ----------
    subject, name
        What it belongs to, and what its results are called.
    words
        The command, after ``python -m``.
    quick
        What is added to do less.
    peers
        Whether it is about other libraries, and left out unless they are asked for.
    python
        The Python that runs it, below the repository, if it is not the one of this process.
    stores
        Whether pages show its tables, which ``--store`` keeps.
    goes_on
        Whether it keeps what it did itself, and takes ``--again``.
    """

    subject: str
    name: str
    words: tuple[str, ...]
    quick: tuple[str, ...] = ()
    peers: bool = False
    python: str | None = None
    stores: bool = True
    goes_on: bool = False

    @property
    def place(self) -> pathlib.Path:
        """Where results go."""
        return RESULTS / f"{self.subject}-{self.name}.json"


CAPACITY = ("--events", "100000", "--keys", "5000", "--repeats", "1")
CSV = ("--rows", "10000000", "--repeats", "2", "--formats", "csv")
FEW = ("--rounds", "2000")
FEW_ONCE = ("--rounds", "1000", "--seeds", "1")
LATER = ("--half", "late", "--rounds", "3000", "--seeds", "5")
BRIEF = ("--rounds", "1000", "--seeds", "5")
ALARMS: dict[str, tuple[str, ...]] = {
    "start": (),
    "later": ("--seeds", "40"),
    "groups": ("--seeds", "50"),
    "learning": ("--seeds", "100"),
}
"""How many streams the pages show of each table of alarms."""
PANEL = {
    "short": ("--quick", "--seeds", "2", "--only", "free917,recidivism,truthfulqa"),
    "late": ("--quick", "--seeds", "2"),
    "games": ("--quick",),
    "long": ("--quick", "--seeds", "1", "--only", "arc"),
}
"""Sets of the panel, and what is added to play less of them."""
EVERY = ("batch", "stream", "crash", "million")
SMALL = ("--repeats", "1", "--events", "20000", "--files", "2", "--keys", "10000")
LITTLE = ("--events", "2000", "--keys", "50", "--kills", "1")
PEERS = ("benchmarks.peers", "--rounds", "5000")
BESIDE = {
    what: Part(what, "beside", (f"{PEERS[0]}.beside", what), ("--quick",), peers=True, goes_on=True)
    for what in ("speed", "memory", "scale", "service")
}
"""What others cost, subject by subject."""
PARTS = (
    Part("quality", "context", ("benchmarks.context",), ("--rounds", "2000")),
    Part("quality", "demo", ("benchmarks.demo",), ("--rounds", "20000", "--seeds", "2")),
    Part("quality", "images", ("benchmarks.images",)),
    Part("quality", "groups", ("benchmarks.groups",), ("--seeds", "2")),
    Part("quality", "rare", ("benchmarks.rare",), ("--rounds", "2000", "--seeds", "1")),
    Part("quality", "fast", ("benchmarks.fast",), ("--rounds", "2000")),
    *(
        Part("quality", f"swaps {mode}", ("benchmarks.fast", f"--{mode}", *panel), FEW)
        for mode, panel in {"told": [], "noticed": ["--panel"], "later": ["--panel"]}.items()
    ),
    Part("quality", "late", ("benchmarks.late", "--seeds", "10", "--before"), FEW_ONCE),
    Part("quality", "pooled", ("benchmarks.pooled",)),
    Part("quality", "distributions", ("benchmarks.distributions",), ("--rounds", "300")),
    Part("quality", "distributions late", ("benchmarks.distributions", *LATER), FEW_ONCE),
    Part("quality", "regression", ("benchmarks.regression",), ("--rounds", "2000")),
    Part("quality", "intervals", ("benchmarks.intervals", "--seeds", "4"), FEW_ONCE),
    *(
        Part("quality", f"alarms {which}", ("benchmarks.alarms", "--only", which, *seeds), BRIEF)
        for which, seeds in ALARMS.items()
    ),
    *(
        Part("quality", f"panel {part}", ("benchmarks.quality", "--set", part), quick)
        for part, quick in PANEL.items()
    ),
    Part("quality", "panel halves", ("benchmarks.fast", "--panel")),
    Part("quality", "parts", ("benchmarks.parts",), ("--seeds", "2", *FEW)),
    Part("quality", "parts own", ("benchmarks.parts", "--own", "240"), ("--seeds", "4")),
    Part("quality", "last stage", ("benchmarks.rare", "--panel", "--seeds", "4"), ("--seeds", "1")),
    Part("quality", "peers", PEERS, FEW, peers=True, goes_on=True),
    Part("quality", "vectors", ("benchmarks.vectors", "--rounds", "4000"), FEW, peers=True),
    Part("quality", "vectors late", ("benchmarks.vectors", "--late", "--seeds", "5"), FEW_ONCE),
    Part("quality", "river", ("benchmarks.river_streams",), peers=True),
    Part("quality", "scikit-learn", ("benchmarks.sklearn_drift",), peers=True),
    Part("speed", "kernels", ("benchmarks", "kernels", "one_step", "default"), ("--quick",)),
    Part("speed", "cost", ("benchmarks.cost",), ("--only", "first")),
    Part(
        "speed",
        "follower",
        ("benchmarks.follower",),
        ("--rounds", "5000", "--repeats", "1"),
    ),
    Part("speed", "coins", ("benchmarks", "coins"), ("--quick",)),
    Part("speed", "exponential", ("benchmarks", "exponential"), ("--quick",), stores=False),
    Part("speed", "start-up", ("benchmarks", "start_up"), ("--quick",), stores=False),
    Part("speed", "river", ("benchmarks", "river_overhead"), ("--quick",), peers=True),
    Part("speed", "frames", ("benchmarks", "frames"), ("--quick",), peers=True),
    BESIDE["speed"],
    Part("memory", "floor", ("benchmarks", "floor"), ("--quick",)),
    BESIDE["memory"],
    Part("scale", "tables", ("benchmarks.tables",), ("--events", "200000", "--keys", "2000")),
    Part("scale", "capacity", ("benchmarks.capacity",), CAPACITY, stores=False),
    Part(
        "scale",
        "files",
        ("benchmarks.replay_cli", *CSV),
        ("--rows", "200000", "--repeats", "1"),
    ),
    Part("scale", "spark", ("benchmarks.spark", *EVERY), SMALL, python=SPARK),
    BESIDE["scale"],
    Part("service", "requests", ("benchmarks.service",), ("--seconds", "2")),
    Part(
        "service",
        "kills",
        ("benchmarks.kills", "--cycles", "1000"),
        ("--cycles", "5"),
        stores=False,
    ),
    Part("service", "asgi", ("benchmarks.asgi",), ("--requests", "400", "--repeats", "1")),
    Part("service", "one log", ("benchmarks.one_log", "--postgres", "own"), LITTLE),
    BESIDE["service"],
)
"""Everything there is to measure, in the order in which it is run."""


def main(arguments: list[str] | None = None) -> int:
    """Run the parts that are asked for and not done yet; write the page; return how many failed."""
    told = parse(arguments)
    RESULTS.mkdir(parents=True, exist_ok=True)
    parts = chosen(told.subjects, peers=told.peers)
    failed = 0
    for number, part in enumerate(parts, 1):
        head = f"[{number}/{len(parts)}] {part.subject}: {part.name}"
        if not told.again and is_done(part, quick=told.quick):
            say(f"{head}: done before")
            continue
        say(head)
        found = measured(part, quick=told.quick, store=told.store, again=told.again)
        part.place.write_text(json.dumps(found, indent=1) + "\n")
        failed += found["code"] != 0
        say(f"{head}: {'done' if found['code'] == 0 else 'FAILED'}, {found['seconds']:.0f} s")
    (RESULTS / "index.html").write_text(page())
    say(f"open {RESULTS / 'index.html'}")
    if told.store:
        subprocess.run([sys.executable, str(ROOT / "docs" / "tables.py")], check=True)
    return failed


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(prog="script/bench", description=__doc__)
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=", ".join(SUBJECTS))
    parser.add_argument("--peers", action="store_true", help="other libraries too")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and repeats")
    parser.add_argument("--again", action="store_true", help="also what is done already")
    add_store(parser)
    told = parser.parse_args(arguments)
    if unknown := sorted(set(told.subjects) - set(SUBJECTS)):
        parser.error(f"SUBJECT must be among {', '.join(SUBJECTS)}, got {', '.join(unknown)}")
    if told.store and told.quick:
        parser.error("--store must come without --quick: pages show whole runs")
    return told


def chosen(subjects: list[str], *, peers: bool) -> list[Part]:
    """Return the parts of some subjects, or of all."""
    wanted = subjects or list(SUBJECTS)
    return [part for part in PARTS if part.subject in wanted and (peers or not part.peers)]


def is_done(part: Part, *, quick: bool) -> bool:
    """Say whether the part was measured whole; a quick run does not stand for a whole one."""
    if not part.place.exists():
        return False
    found = json.loads(part.place.read_text())
    return found["code"] == 0 and (quick or not found["quick"])


def measured(
    part: Part, *, quick: bool, store: bool = False, again: bool = False
) -> dict[str, Any]:
    """Run one part; return what it printed and where it was measured."""
    more = (["--store"] if store and part.stores else []) + ["--again"] * (again and part.goes_on)
    words = [*part.words, *(part.quick if quick else ()), *more]
    python = sys.executable if part.python is None else str(ROOT / part.python)
    start = time.perf_counter()
    if pathlib.Path(python).exists():
        command = [python, "-m", *words]
        ran = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    else:
        told = f"{part.python} must be there, got none: script/test makes it"
        ran = subprocess.CompletedProcess(words, 1, "", told)
    return {
        "subject": part.subject,
        "part": part.name,
        "command": f"python -m {' '.join(words)}",
        "quick": quick,
        "code": ran.returncode,
        "seconds": time.perf_counter() - start,
        "machine": machine(),
        "output": ran.stdout if ran.returncode == 0 else ran.stdout + ran.stderr,
        "ratios": ratios(ran.stdout),
    }


def ratios(text: str) -> list[dict[str, str]]:
    """Return what was compared in a table: what, its ratio, and the bar with its verdict.

    Rows are aligned, as ``benchmarks`` prints them, or in Markdown with a column of ratios.

    >>> ratios("replay  10 ns  20 ns  2.00  >= 1.5  met")
    [{'what': 'replay', 'ratio': '2.00', 'bar': '>= 1.5 met'}]
    >>> ratios("| what | ratio |\\n|---|---|\\n| all | 0.5 |")
    [{'what': 'all', 'ratio': '0.5', 'bar': ''}]
    """
    aligned = [
        {
            "what": re.split(r"\s{2,}", line.strip())[0],
            "ratio": found["ratio"],
            "bar": " ".join(f"{found['bar']}{found['rest']}".split()),
        }
        for line in text.splitlines()
        if not line.startswith("|") and (found := RATIO.search(line))
    ]
    return aligned + [row for table in tables_in(text)[0] for row in compared(table)]


def compared(table: dict[str, Any]) -> Iterator[dict[str, str]]:
    """Yield the ratios of a table in Markdown, each with its row and, of several, its column."""
    heads = table["head"]
    places = [k for k, head in enumerate(heads) if head.startswith(RATIO_HEADS)]
    words = [k for k in range(len(heads)) if k < min(places, default=0) and not k > 1]
    for row in table["rows"]:
        for place in places:
            what = ", ".join(row[k] for k in words)
            named = f"{what} ({heads[place]})" if len(places) > 1 else what
            bar = row[heads.index("bar")] if "bar" in heads else ""
            yield {"what": named, "ratio": row[place], "bar": bar}


def page() -> str:
    """Return a page with all results that are there: outputs, ratios, versions, machine."""
    return "\n".join([HEAD, *stored(), "</main></body></html>", ""])


def stored() -> Iterator[str]:
    """Yield a section for each part with results, in order."""
    for part in PARTS:
        if part.place.exists():
            found = json.loads(part.place.read_text())
            where = " · ".join(f"{what} {told}" for what, told in found["machine"].items())
            state = "" if found["code"] == 0 else " (failed)"
            title = f"{part.subject}: {part.name}{state}{' (quick)' if found['quick'] else ''}"
            yield f"<h2>{html.escape(title)}</h2>"
            yield f"<p><code>{html.escape(found['command'])}</code>, {found['seconds']:.0f} s</p>"
            yield from ratio_table(found["ratios"])
            yield f"<pre>{html.escape(found['output'])}</pre>"
            yield f"<p class='soft'>{html.escape(where)}</p>"


def ratio_table(rows: list[dict[str, str]]) -> Iterator[str]:
    """Yield a table of ratios, if there are any."""
    if rows:
        yield "<table><tr><th>compared</th><th>ratio</th><th>bar</th></tr>"
        for row in rows:
            cells = "".join(f"<td>{html.escape(row[name])}</td>" for name in row)
            yield f"<tr>{cells}</tr>"
        yield "</table>"


HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>Benchmarks of calibrant</title><style>
body { font: 1rem/1.5 system-ui, sans-serif; margin: 0; } main { max-width: 70rem; margin: auto; padding: 1rem; }
pre { overflow-x: auto; font-size: .8rem; border: 1px solid; border-radius: .3rem; padding: .6rem; }
table { border-collapse: collapse; font-size: .85rem; } td, th { text-align: left; padding: .1rem .8rem .1rem 0; }
.soft { opacity: .7; font-size: .85rem; }
</style></head><body><main><h1>Benchmarks of calibrant</h1>"""  # noqa: E501


def say(text: str) -> None:
    """Tell progress on the error stream."""
    print(f"calibrant: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
