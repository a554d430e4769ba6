"""``calibrant compare``."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer
from rich.console import Console

from calibrant.cli import screen
from calibrant.cli.options import (
    Available,
    Buckets,
    Format,
    GridName,
    Inputs,
    Json,
    Logit,
    OutcomeColumn,
    Percent,
    Prior,
    RawColumn,
    Resolution,
    Score,
    Seed,
    TimeColumn,
    scale_of,
)
from calibrant.core import check
from calibrant.registry import calibrators
from calibrant.stream import Job, Options, Session, Skip, Stop, replay
from calibrant.summary import tell

__all__ = ["compare"]

KEYS: Final = ("brier", "calibration_l1", "calibration_l2", "smooth", "worst_window_l2", "log_loss")
HEADINGS: Final = {
    "brier": "Brier",
    "calibration_l1": "C1",
    "calibration_l2": "C2",
    "smooth": "smooth",
    "worst_window_l2": "worst window",
    "log_loss": "log loss",
}


def compare(
    inputs: Inputs,
    raw: RawColumn = None,
    outcome: OutcomeColumn = None,
    time: TimeColumn = None,
    available: Available = None,
    logit: Logit = False,
    percent: Percent = False,
    score: Score = False,
    format: Format = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--method", metavar="NAME", help="Only this one; may be given again. [default: all]"
        ),
    ] = None,
    resolution: Resolution = None,
    buckets: Buckets = None,
    grid: GridName = None,
    prior: Prior = None,
    seed: Seed = 0,
    by: Annotated[
        str, typer.Option("--by", metavar="KEY", help=f"Rank by one of: {', '.join(KEYS)}.")
    ] = "brier",
    skip: Annotated[bool, typer.Option("--skip", help="Pass bad rows over.")] = False,
    as_json: Json = False,
) -> None:
    """Run every calibrator on one stream and rank them.

    The raw forecasts themselves are among the ranked.

    \b
    Example:
      calibrant compare games.csv --raw prob --outcome won --by calibration_l2
    """
    check.choice(by, "--by", KEYS)
    if "-" in inputs:
        raise typer.BadParameter("compare reads its inputs once for each method: name files")
    scale = scale_of(logit, percent, score)
    job = Job(tuple(inputs), raw, outcome, time, available, format)
    names = methods or list(calibrators.names())
    rows: list[dict[str, Any]] = []
    for name in names:
        options = Options(name, resolution, buckets, grid, None, None, prior, seed, scale)
        session = options.session()
        replay(job, session, Skip() if skip else Stop())
        rows += _rows(name, session, first=not rows)
    rows.sort(key=lambda row: (row[by] is None, row[by], row["method"]))
    ranked = [{"rank": rank, **row} for rank, row in enumerate(rows, 1)]
    if as_json:
        screen.tell_json({"by": by, "seed": seed, "methods": ranked})
    else:
        _print(ranked, by)


def _rows(name: str, session: Session, *, first: bool) -> list[dict[str, Any]]:
    told = tell(session.collector, session.recalibrator, seed=session.seed).to_dict()
    row = {"method": name, "rounds": told["n_rounds"], **{k: told["forecast"][k] for k in KEYS}}
    own = {**row, "regret": told["regret_brier"]["value"], "holds": told["certificate_holds"]}
    if not first:
        return [own]
    raw = {"method": "(raw)", "rounds": told["n_rounds"], **{k: told["raw"][k] for k in KEYS}}
    return [{**raw, "regret": 0.0, "holds": None}, own]


def _print(rows: list[dict[str, Any]], by: str) -> None:
    headings = {"": "right", "method": "left"}
    headings |= {f"{HEADINGS[key]}{' *' if key == by else ''}": "right" for key in KEYS}
    headings |= {"regret": "right", "bound": "left"}
    verdicts = {True: "holds", False: "exceeded", None: "none"}
    cells = [
        [
            str(row["rank"]),
            row["method"],
            *(screen.number(row[key]) for key in KEYS),
            screen.number(row["regret"]),
            verdicts[row["holds"]],
        ]
        for row in rows
    ]
    title = f"{rows[0]['rounds']:,} rounds, drawn forecasts; * ranked by"
    Console(width=140).print(screen.table(title, headings, cells))
