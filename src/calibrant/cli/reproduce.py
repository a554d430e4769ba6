"""``calibrant reproduce``."""

from __future__ import annotations

import importlib
import importlib.util
import os
import shlex
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console

from calibrant.cli import screen
from calibrant.cli.options import Force, Json
from calibrant.errors import MissingExtra
from calibrant.stream import Drafts
from calibrant.stream.failure import naming

__all__ = ["reproduce"]

LAYER: Final = "calibrant.experiments"
"""Above this one, so it is looked up by name and only when it is asked for."""
NEEDED: Final = ("jinja2", "matplotlib", "scipy")
ELSEWHERE: Final = Path("..", "shared", "data")
LINE: Final = 140
"""Columns of the table where there is no terminal."""


def reproduce(
    which: Annotated[
        list[str],
        typer.Argument(
            metavar="EXPERIMENT",
            help="all, or some of: bernoulli, adversary, qa, diabetes, theory.",
        ),
    ],
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            metavar="DIR",
            help="Where the data are. [default: $CALIBRANT_DATA, or ../shared/data]",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        str,
        typer.Option("--out", metavar="DIR", help="Write page, figures and numbers there."),
    ] = "reproduction",
    seeds: Annotated[
        int, typer.Option("--seeds", metavar="K", help="Games that are averaged.")
    ] = 100,
    quick: Annotated[
        bool, typer.Option("--quick", help="Do less where a full run takes minutes.")
    ] = False,
    bed: Annotated[
        str | None,
        typer.Option(
            "--bed", metavar="FILE", help="Genotypes of your own for diabetes, a PLINK .bed file."
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Run the paper's experiments again: its claims, our numbers, and the verdicts.

    Writes figures in the paper's layout, the numbers behind them as CSV, and one HTML page.

    \b
    Example:
      calibrant reproduce bernoulli adversary --out reproduction
    """
    package = _package()
    place = Path(data) if data is not None else _data()
    genotypes = None if bed is None else Path(bed)
    setting = package.Setting(place, seeds=seeds, quick=quick, bed=genotypes, tell=screen.say)
    package.in_order(which)
    given = {"--data": data, "--out": out, "--seeds": str(seeds), "--bed": bed}
    command = _command(which, given, quick)
    with Drafts(force=force) as drafts:
        draft = drafts.reserve_directory(out)
        done = package.reproduce(which, setting)
        with naming(out):
            package.write(done, draft, command=command)
        drafts.commit()
    _tell(done, out, as_json=as_json)


def _package() -> Any:
    """Return the experiments, or say what is not installed."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        told = f"reproduce needs {', '.join(missing)}, not installed here"
        raise MissingExtra(f'{told}: pip install "calibrant[experiments]"')
    return importlib.import_module(LAYER)


def _data() -> Path:
    given = os.environ.get("CALIBRANT_DATA")
    return Path(given) if given else ELSEWHERE


def _command(which: list[str], given: dict[str, str | None], quick: bool) -> str:
    """Return what makes the same again."""
    options = [word for name, value in given.items() if value is not None for word in (name, value)]
    return shlex.join(["calibrant", "reproduce", *which, *options, *(["--quick"] * quick)])


def _tell(done: list[Any], out: str, *, as_json: bool) -> None:
    """Tell every claim with its number and verdict."""
    if as_json:
        screen.tell_json([_plain(each) for each in done])
        return
    headings = {"experiment": "left", "claim": "left", "ours": "right", "bar": "left"}
    rows = [
        [each.experiment.name, claim.key, claim.shown, claim.bar, claim.verdict]
        for each in done
        for claim in each.result.claims
    ]
    console = Console(width=LINE)
    console.print(screen.table(None, headings | {"verdict": "left"}, rows))
    for each in done:
        for line in each.result.missing:
            screen.say(f"{each.experiment.name}: {line}")
    print(Path(out, "index.html"))


def _plain(each: Any) -> dict[str, Any]:
    claims = [
        {
            "key": claim.key,
            "claim": claim.said,
            "source": claim.source,
            "value": None if claim.holds is None else claim.value,
            "bar": claim.bar,
            "holds": claim.holds,
        }
        for claim in each.result.claims
    ]
    name, missing = each.experiment.name, list(each.result.missing)
    return {"experiment": name, "seconds": each.seconds, "claims": claims, "missing": missing}
