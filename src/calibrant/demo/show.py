"""The demo from its first line to its last."""

from __future__ import annotations

import importlib.util
import shlex
import time as clock
from pathlib import Path
from typing import Final

from calibrant.cli import ExitCode
from calibrant.demo import screen
from calibrant.demo.games import GAMES, Game, results
from calibrant.demo.scanner import scan
from calibrant.errors import requirement

ROUNDS: Final = 100_000
SEED: Final = 7
NEEDED: Final = ("jinja2", "matplotlib", "msgspec", "pyarrow", "rich", "sklearn", "typer")
"""What the replay imports; the games need NumPy only."""
OUTPUTS: Final = {"--out": "forecasts.csv", "--summary": "summary.json", "--report": "report.html"}
NUMBERS: Final = dict.fromkeys(("rounds", "loss", "C1", "C2"), "right")
COLUMNS: Final = {"": "left", **NUMBERS, "the paper says": "left"}

STREAM: Final = """\
A machine reads handwritten digits and says how likely each is odd. The images
come with scikit-learn; a logistic regression learned from 100 of them and is
surer than it is right. Then it reads {rounds:,}, made from the other images by
adding noise. Its lens gets dirty and is cleaned after 60 %; in the last fifth
fewer digits are odd. What it said and what was true is in {source}.

Below, raw is what the classifier said, forecast what calibrant would have drawn
at that moment, which carries the guarantee, and mean what it drew on average.
The chain has a theorem for each of its links, with what was measured beside it.
"""
MISSING: Final = """\
Left out: it needs {names}, not installed here. script/demo
installs all that it needs (requirements/demo.txt); so does

  pip install {install}"""
RULES: Final = """\
Averages of five games, with ten buckets, a grid of tenths and no prior. Loss is
the squared loss, C1 and C2 are calibration errors. The adversary sees all but
the draw.
"""
NEXT: Final = """\
Your own file: any table with a column of probabilities and one of outcomes.
If a column or an option is missing, the command says which one to add:

  ./script/demo replay my.csv --report my.html

With calibrant installed, its command is `calibrant`. A game, and all commands:

  calibrant play --adversary threshold --report game.html
  calibrant --help

From Python, one forecast at a time:

  from calibrant import Calibrant
  model = Calibrant(seed=7)
  ticket = model.forecast(0.83)  # announce ticket.value
  model.observe(ticket, 1)       # once the outcome is known
"""


def show(directory: Path, rounds: int = ROUNDS) -> int:
    """Replay a stream, play the paper's games, and say what to do next.

    Parameters
    ----------
    directory
        Where the stream, its forecasts, their summary and the report go.
    rounds
        Length of the stream.

    Returns
    -------
    int
        The exit code of the replay.
    """
    began = clock.perf_counter()
    code = replay(directory, rounds)
    if code in (ExitCode.OK, ExitCode.MISSING_EXTRA):
        play()
        advise(directory, written=code == ExitCode.OK)
        screen.say(f"That took {clock.perf_counter() - began:.0f} seconds.")
    return code


def replay(directory: Path, rounds: int) -> int:
    """Make a stream and recalibrate it; return the exit code."""
    screen.heading("1. A classifier that is too sure of itself")
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        screen.say(MISSING.format(names=", ".join(missing), install=requirement("all")))
        return ExitCode.MISSING_EXTRA
    directory.mkdir(parents=True, exist_ok=True)
    source = directory / "stream.csv"
    scan(rounds, SEED).write(source)
    screen.say(STREAM.format(rounds=rounds, source=source))
    return run(source, directory)


def run(source: Path, directory: Path) -> int:
    """Replay a stream by the command that users have, and say which."""
    from calibrant.cli.app import run as command

    parts = [["replay", str(source)], ["--raw", "raw", "--outcome", "outcome"]]
    parts += [[option, str(directory / name)] for option, name in OUTPUTS.items()]
    parts += [["--seed", str(SEED), "--force"]]
    screen.say("$ calibrant " + " \\\n    ".join(map(shlex.join, parts)) + "\n")
    return command([word for part in parts for word in part])


def play() -> None:
    """Play the paper's games and print how everybody did."""
    screen.heading("2. The two games of the paper")
    screen.say(RULES)
    for game in GAMES:
        screen.table(game.title, COLUMNS, _cells(game))


def _cells(game: Game) -> list[list[str]]:
    rows = ((row, (row.loss, row.c1, row.c2)) for row in results(game))
    return [[r.player, f"{r.rounds:,}", *(f"{v:.4f}" for v in told), r.claim] for r, told in rows]


def advise(directory: Path, *, written: bool) -> None:
    """Say what to do next."""
    screen.heading("3. What to do next")
    if written:
        screen.say(f"Open {(directory / OUTPUTS['--report']).resolve().as_uri()}\n")
    screen.say(NEXT)
