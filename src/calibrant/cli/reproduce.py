"""``calibrant reproduce``."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer

from calibrant.cli import screen
from calibrant.cli.options import Ending, require, spread
from calibrant.cli.products import command
from calibrant.stream import Drafts
from calibrant.stream.failure import naming

LAYER: Final = "calibrant.experiments"
"""A layer above this one, so looked up by name and only when somebody asks for that."""
NEEDED: Final = ("jinja2", "matplotlib", "scipy")
LINE: Final = 140
"""Columns of the table where there is no terminal."""


NAMES: Final = "all, or some of: bernoulli, adversary, qa, diabetes, theory."
Which: TypeAlias = Annotated[list[str], typer.Argument(metavar="EXPERIMENT", help=NAMES)]


@dataclass(frozen=True)
class Setup:
    """What experiments are run with.

    data DIR
        Directory of the data. [default: $CALIBRANT_DATA, or the bundled data]
    folder DIR
        Write page, figures and numbers there.
    seeds K
        Number of games to average.
    quick
        Run less of what takes minutes.
    bed FILE
        Genotypes of your own for diabetes, a PLINK .bed file.

    ``--out`` is an earlier name of ``--folder``.
    """

    data: str | None = None
    folder: str = "reproduction"
    seeds: int = 100
    quick: bool = False
    bed: str | None = None
    out: str | None = None

    @property
    def place(self) -> str:
        """The folder; elsewhere ``--out`` is a file."""
        if self.out is None:
            return self.folder
        screen.say_renamed("--out", "--folder")
        return self.out


@spread
def reproduce(which: Which, *, setup: Setup, ending: Ending) -> None:
    """Reproduce the paper's experiments: its claims, our numbers.

    Writes figures in the paper's layout, the numbers behind them as CSV, and one HTML page.

    \b
    Example:
      calibrant reproduce bernoulli adversary --folder reproduction
    """
    require("reproduce", NEEDED, "experiments")
    package: Any = importlib.import_module(LAYER)
    out = setup.place
    setting = package.Setting(
        None if setup.data is None else Path(setup.data),
        seeds=setup.seeds,
        quick=setup.quick,
        bed=None if setup.bed is None else Path(setup.bed),
        tell=screen.say,
    )
    package.in_order(which)
    given = {"data": setup.data, "folder": out, "seeds": setup.seeds, "bed": setup.bed}
    again = command(["reproduce", *which], given, *(["--quick"] * setup.quick))
    with Drafts(force=ending.force) as drafts:
        draft = drafts.reserve_directory(out)
        done = package.reproduce(which, setting)
        with naming(out):
            package.write(done, draft, command=again)
        drafts.commit()
    with screen.telling():
        headline, failing = package.headline(done), package.failures(done)
        if ending.as_json:
            told = {"headline": headline, "failures": failing}
            screen.tell_json({**told, "experiments": [_plain(each) for each in done]})
        else:
            _tell(done, out, [f"{headline[0].upper()}{headline[1:]}.", *failing])


def _tell(done: list[Any], out: str, lines: list[str]) -> None:
    """Tell every claim with its number and verdict, then how many hold and which do not."""
    headings = {"experiment": "left", "claim": "left", "ours": "right", "bar": "left"}
    rows = [
        [each.experiment.name, claim.key, claim.shown, claim.bar, claim.verdict]
        for each in done
        for claim in each.result.claims
    ]
    screen.show(headings | {"verdict": "left"}, rows, width=LINE)
    for each in done:
        for line in each.result.missing:
            screen.say(f"{each.experiment.name}: {line}")
    print(*lines, Path(out, "index.html"), sep="\n")


def _plain(each: Any) -> dict[str, Any]:
    claims = []
    for claim in each.result.claims:
        said = {"key": claim.key, "claim": claim.said, "source": claim.source}
        value = None if claim.holds is None else claim.value
        found = {"value": value, "bar": claim.bar, "holds": claim.holds}
        claims.append({**said, **found, "misses": list(claim.misses)})
    name, missing = each.experiment.name, list(each.result.missing)
    return {"experiment": name, "seconds": each.seconds, "claims": claims, "missing": missing}
