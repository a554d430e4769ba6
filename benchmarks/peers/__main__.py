"""Other libraries on our streams, each in an environment of its own, beside the default.

    python -m benchmarks.peers                 all peers and streams; goes on where it stopped
    python -m benchmarks.peers --rounds 2000   the beginning of each stream
    python -m benchmarks.peers --store         keeps the table for the page

Environments are made below ``.venv-peers``, with ``uv`` or with ``venv`` and pip, from the pins
here.  A peer that cannot be installed is told as such and left out.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.inside import PEERS
from benchmarks.store import add_store, storing
from calibrant import Calibrant, datasets, metrics

__all__ = ["PINS", "STREAMS", "main", "table"]

ROOT = Path(__file__).parents[2]
PLACE = ROOT / ".venv-peers"
RESULTS = ROOT / "benchmarks" / "results" / "peers"
PINS = {
    "river": "river==0.26.1 pandas==3.1.1",
    "scikit-learn": "scikit-learn==1.9.1",
    "netcal": "netcal==1.4.0",
    "afternoon": "river==0.26.1 starlette==1.10.0 uvicorn==0.54.0 httptools==0.9.0 uvloop==0.23.0",
}
"""What is installed in each environment; pip adds what that depends on."""
STREAMS = {
    "language model": lambda: datasets.load_language_model("gpt-4.1-nano"),
    "solar flares": lambda: datasets.load_flares(),
    "basketball": lambda: datasets.load_games("nba"),
}
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Settings of libraries that would use all cores."""
OURS = "calibrant"
RAW = "raw"


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing; print the table; return how many peers could not be run."""
    told = parse(arguments)
    RESULTS.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in STREAMS:
        stream = written(name, told.rounds)
        for peer in (RAW, OURS, *PEERS):
            place = RESULTS / f"{stream.stem}-{peer}.json"
            if told.again or not place.exists():
                failed += not measured(peer, stream, place)
    with storing("peers", wanted=told.store):
        print(table(found(told.rounds)))
    return failed


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--rounds", type=int, help="only so many rounds of each stream")
    parser.add_argument("--again", action="store_true", help="also what is done already")
    add_store(parser)
    return parser.parse_args(arguments)


def stem(name: str, rounds: int | None) -> str:
    """Return what the files of a stream are called."""
    return name.replace(" ", "-") + (f"-{rounds}" if rounds else "")


def written(name: str, rounds: int | None) -> Path:
    """Write a stream where peers can read it."""
    path = RESULTS / f"{stem(name, rounds)}.npz"
    if not path.exists():
        stream = STREAMS[name]()
        np.savez(path, raw=stream.raw[:rounds], outcomes=stream.outcomes[:rounds])
    return path


def measured(peer: str, stream: Path, place: Path) -> bool:
    """Run a peer on a stream; store what it came to; say whether it could be run."""
    say(f"{peer} on {stream.stem}")
    if peer in (RAW, OURS):
        place.write_text(json.dumps(ours(peer, stream)))
        return True
    python = environment(PEERS[peer][0])
    if python is None:
        return False
    script = str(Path(__file__).with_name("inside.py"))
    return kept(peer, [python, script, peer, str(stream)], place)


def kept(peer: str, command: list[str], place: Path, **settings: str) -> bool:
    """Run what prints JSON at its end, in one thread; store that, and say whether it came."""
    alone = os.environ | dict.fromkeys(THREADS, "1") | settings
    ran = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=alone, check=False)
    if ran.returncode:
        say(f"{peer} failed: {ran.stderr.strip().splitlines()[-1]}")
        return False
    place.write_text(ran.stdout.splitlines()[-1])
    return True


def ours(peer: str, stream: Path) -> dict[str, Any]:
    """Return what the default, or the raw forecast, comes to."""
    with np.load(stream) as file:
        raw, outcomes = file["raw"], file["outcomes"]
    start = time.process_time()
    said = raw if peer == RAW else Calibrant(seed=1).replay(raw, outcomes).mean
    took = time.process_time() - start
    return {"brier": metrics.brier(said, outcomes), "seconds": took, "version": peer}


def environment(package: str) -> str | None:
    """Return the Python of a peer's environment, made if need be; None if it cannot be."""
    place = PLACE / package
    python, stamp = place / "bin" / "python", place / "pins.txt"
    if stamp.exists() and stamp.read_text() == PINS[package]:
        return str(python)
    say(f"making {place.relative_to(ROOT)} with {PINS[package]}")
    if shutil.which("uv"):
        make = ["uv", "venv", "--quiet", "--clear", "--python", sys.executable, str(place)]
        fill = ["uv", "pip", "install", "--quiet", "--python", str(python), *PINS[package].split()]
    else:
        make = [sys.executable, "-m", "venv", "--clear", str(place)]
        fill = [str(python), "-m", "pip", "install", "-qq", *PINS[package].split()]
    for command in (make, fill):
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode:
            say(f"{package} cannot be installed: {(ran.stderr.strip().splitlines() or ['?'])[-1]}")
            return None
    stamp.write_text(PINS[package])
    return str(python)


def found(rounds: int | None) -> list[dict[str, Any]]:
    """Return what is known of each peer and stream."""
    made = []
    for name in STREAMS:
        for peer in (RAW, OURS, *PEERS):
            place = RESULTS / f"{stem(name, rounds)}-{peer}.json"
            if place.exists():
                made.append({"stream": name, "peer": peer, **json.loads(place.read_text())})
    return made


def table(rows: list[dict[str, Any]]) -> str:
    """Return results as Markdown: Brier score, its ratio to ours, and the version that was run."""
    best = {row["stream"]: row["brier"] for row in rows if row["peer"] == OURS}
    lines = ["| stream | method | Brier | to ours | version |", "|---|---|---|---|---|"]
    for row in rows:
        ratio = row["brier"] / best[row["stream"]]
        told = f"{row['brier']:.4f} | {ratio:.3f} | {row['version']}"
        lines.append(f"| {row['stream']} | `{row['peer']}` | {told} |")
    return "\n".join(lines)


def say(text: str) -> None:
    """Tell progress on the error stream."""
    print(f"calibrant: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
