"""Where the rows of a replay go, and how its options are refused."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from calibrant.core import check
from calibrant.stream import format_of

__all__ = ["Outputs", "levels_of", "listed", "quarantine_of", "refuse", "refuse_two_ways"]


@dataclass(frozen=True)
class Outputs:
    """Where rows and state go, and how."""

    out: str | None
    state: str | None
    on_error: str
    prefix: str
    force: bool


def listed(names: str | None, option: str) -> tuple[str, ...]:
    """Return the columns that an option lists."""
    found = tuple(name.strip() for name in (names or "").split(",") if name.strip())
    refuse(names is not None and not found, f"{option} needs the name of a column")
    refuse(len(set(found)) < len(found), f"{option} must name each column once, got {names!r}")
    return found


def levels_of(text: str | None) -> tuple[float, ...]:
    """Return the levels that an option lists."""
    try:
        found = tuple(float(word) for word in (text or "").split(",") if word.strip())
    except ValueError:
        raise typer.BadParameter(f"--levels must be numbers, got {text!r}") from None
    refuse(text is not None and not found, "--levels needs a number at least")
    return found


def refuse_two_ways(given: list[str]) -> None:
    """Refuse to read raw forecasts from two kinds of columns."""
    refuse(len(given) > 1, f"{' and '.join(given)} exclude each other")


def refuse(wrong: bool, told: str) -> None:
    """Refuse options that cannot be, in one line."""
    if wrong:
        raise typer.BadParameter(told)


def quarantine_of(on_error: str) -> str | None:
    """Return the file for bad rows, None if they have none; refuse what is no such option."""
    kind, _, name = on_error.partition("=")
    if kind == "quarantine" and name:
        if format_of(name) == "parquet":
            raise typer.BadParameter("--on-error quarantine= must be a CSV, TSV or JSON Lines file")
        return name
    check.choice(on_error, "--on-error", ("stop", "skip", "quarantine=FILE"))
    return None
