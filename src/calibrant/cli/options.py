"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from calibrant.core.grid import GRIDS
from calibrant.stream.options import METHODS

__all__ = [
    "Available",
    "Buckets",
    "Epsilon",
    "Force",
    "Format",
    "GridName",
    "GroupColumns",
    "Inputs",
    "Json",
    "Levels",
    "Logit",
    "LossName",
    "Method",
    "NormalColumns",
    "OutcomeColumn",
    "Percent",
    "Plots",
    "Prior",
    "ProbaColumns",
    "QuantileColumns",
    "RawColumn",
    "ReportFile",
    "Resolution",
    "Score",
    "Seed",
    "SummaryFile",
    "TimeColumn",
    "scale_of",
]


def _methods() -> list[str]:
    return list(METHODS)


Inputs: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT",
        help="CSV, TSV, JSON Lines or Parquet files, also .gz or .zst; - is stdin.",
    ),
]
RawColumn: TypeAlias = Annotated[
    str | None,
    typer.Option("--raw", metavar="COL", help="Column of raw forecasts (guessed by default)."),
]
OutcomeColumn: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--outcome",
        metavar="COL",
        help="Column of outcomes, 0 or 1 or empty if unknown (guessed by default).",
    ),
]
TimeColumn: TypeAlias = Annotated[
    str | None,
    typer.Option("--time", metavar="COL", help="Column that says when a forecast was made."),
]
Available: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--available",
        metavar="COL",
        help="Column that says when the outcome became known; it is learned then. Needs --time.",
    ),
]
Logit: TypeAlias = Annotated[bool, typer.Option("--logit", help="Raw forecasts are log-odds.")]
Percent: TypeAlias = Annotated[
    bool, typer.Option("--percent", help="Raw forecasts are from 0 to 100.")
]
Score: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--score",
        help="Raw forecasts are unbounded scores s: (s + m)/2m, m the largest |s| so far.",
    ),
]
Format: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="Of the inputs: csv, tsv, jsonl or parquet (by default as names or contents say).",
    ),
]
GroupColumns: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--group",
        metavar="COL,COL",
        help="Columns of groups, each value one, to be calibrated in all of them at once.",
    ),
]
ProbaColumns: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--proba",
        metavar="COL,COL",
        help="Instead of --raw: columns of the probabilities of several classes, or one of "
        "lists; outcomes are classes.",
    ),
]
QuantileColumns: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--quantiles",
        metavar="COL,COL",
        help="Instead of --raw: columns of quantiles, whose names end in their levels (q05, p95, "
        "q0.5) unless --levels says them; outcomes are numbers, and --method is pit, the default, "
        "or tracker.",
    ),
]
NormalColumns: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--normal",
        metavar="MEAN,SD",
        help="Instead of --raw: columns of mean and standard deviation; the rest as with "
        "--quantiles.",
    ),
]
Levels: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--levels",
        metavar="P,P",
        help="Levels of --quantiles, or those to follow with --normal. "
        "[default with --normal: 0.05 to 0.95]",
        show_default=False,
    ),
]
Method: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--method",
        metavar="NAME",
        help="A name that calibrant methods lists; but for the default, Algorithm 1 with that "
        "calibrator alone. [default: calibrant]",
        autocompletion=_methods,
        show_default=False,
    ),
]
Resolution: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--resolution",
        metavar="N",
        help="Steps of the grid of forecasts. [default: 20]",
        show_default=False,
    ),
]
Buckets: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--buckets",
        metavar="M",
        help="Buckets of raw forecasts. [default: 1 with calibrant, else 20]",
        show_default=False,
    ),
]
GridName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--grid",
        metavar="NAME",
        help=f"Kind of grid: {', '.join(GRIDS)}. [default: endpoints; with calibrant under the "
        "log loss midpoints]",
        autocompletion=lambda: list(GRIDS),
        show_default=False,
    ),
]
Epsilon: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--epsilon",
        metavar="E",
        help="Instead of resolution and buckets: the extra loss to tolerate in the long run; "
        "calibrant keeps its own.",
    ),
]
LossName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--loss",
        metavar="NAME",
        help="The proper loss of the certificate; with calibrant squared or log. "
        "[default: squared]",
        show_default=False,
    ),
]
Prior: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--prior",
        metavar="K",
        help="Strength of the identity prior, which calibrant learns instead. [default: 1]",
        show_default=False,
    ),
]
Seed: TypeAlias = Annotated[
    int | None,
    typer.Option("--seed", metavar="S", help="What the draws depend on (chosen, and told)."),
]
SummaryFile: TypeAlias = Annotated[
    str | None, typer.Option("--summary", metavar="FILE", help="Write the summary as JSON.")
]
ReportFile: TypeAlias = Annotated[
    str | None, typer.Option("--report", metavar="FILE", help="Write the report as one HTML file.")
]
Plots: TypeAlias = Annotated[
    str | None,
    typer.Option("--plots", metavar="DIR", help="Write the pictures into this directory."),
]
Force: TypeAlias = Annotated[
    bool, typer.Option("--force", help="Replace outputs that are there already.")
]
Json: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Tell the result as JSON, not as tables.")
]


def scale_of(logit: bool, percent: bool, score: bool) -> str | None:
    """Return the scale that the flags ask for, None if none is set."""
    asked = [name for name, on in (("logit", logit), ("percent", percent), ("score", score)) if on]
    if len(asked) > 1:
        raise typer.BadParameter(f"--{asked[0]} and --{asked[1]} exclude each other")
    return asked[0] if asked else None
