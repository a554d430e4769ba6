"""Threads, processes and kills."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.attack.registry import attack
from calibrant import Calibrant, Recalibrator
from calibrant.errors import CalibrantError

COMMAND = [sys.executable, "-c", "import sys\nfrom calibrant.cli import main\nsys.exit(main())"]
FILTER = ["replay", "-", "--out", "-", "--flush", "--checkpoint", "0", "--state"]


@attack(
    "arrays changed by a thread",
    "an invalid forecast, or a row with the wrong round count",
    tries=100,
    quick=5,
)
def arrays(tries: int, rng: random.Random) -> int:
    """Change the arrays of a batch while it plays."""
    damage = 0
    for _ in range(tries):
        raw, outcomes, over = np.full(3000, 0.5), np.ones(3000, np.uint8), threading.Event()
        thread = threading.Thread(target=_change, args=(raw, outcomes, over))
        model: Any = rng.choice((Recalibrator, Calibrant))(seed=1)
        thread.start()
        try:
            drawn = model.replay(raw, outcomes).forecast
            damage += not ((drawn >= 0) & (drawn <= 1)).all() or model.rounds != len(raw)
        except CalibrantError:
            damage += model.rounds != 0
        finally:
            over.set()
            thread.join()
    return damage


def _change(raw: Any, outcomes: Any, over: threading.Event) -> None:
    while not over.is_set():
        raw[:], outcomes[:] = 1e18, 200
        raw[:], outcomes[:] = 0.5, 1


@attack("forks", "a child throws a coin of its parent's or of a sibling's", tries=200, quick=5)
def forks(tries: int, rng: random.Random) -> int:
    """Fork, and compare the coins of both processes."""
    model, seen, damage = Recalibrator(), set[float](), 0
    for _ in range(tries):
        told = _in_child(model)
        damage += bool(seen & set(told)) or len(set(told)) < len(told)
        seen |= set(told)
    return damage + bool(seen & set(_coins(model)))


def _coins(model: Recalibrator) -> list[float]:
    return [model.coin_of(model.forecast(0.4)) for _ in range(50)]


def _in_child(model: Recalibrator) -> list[float]:
    inside, outside = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(outside, json.dumps(_coins(model)).encode())
        finally:
            os._exit(0)
    os.close(outside)
    with os.fdopen(inside) as stream:
        told: list[float] = json.loads(stream.read())
    os.waitpid(child, 0)
    return told


@attack(
    "kills of a filter",
    "a row that was answered before the last checkpoint is not in the state",
    tries=12,
    quick=2,
)
def kills(tries: int, rng: random.Random) -> int:
    """Kill ``calibrant replay --flush`` at any row, again and again on one state."""
    from calibrant.stream import session

    damage = known = 0
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state"
        for _ in range(tries):
            rows = rng.randrange(2, 40)
            _kill_after(rows, state)
            found = session.read(str(state))
            issued = 0 if found is None else found.recalibrator.issued
            damage += not known + rows - 1 <= issued <= known + rows
            known = issued
    return damage


def _kill_after(rows: int, state: Path) -> None:
    """Give a filter some rows, take their answers, and kill it."""
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    settings = os.environ | {"CALIBRANT_COMPILE": "off"}
    command = [*COMMAND, *FILTER, str(state)]
    with subprocess.Popen(command, env=settings, stderr=subprocess.DEVNULL, **pipes) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"p,y\n" + b"0.5,1\n" * rows)
        process.stdin.flush()
        for _ in range(rows + 1):
            process.stdout.readline()
        process.kill()
