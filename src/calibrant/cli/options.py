"""Options of commands in groups, whose docstrings are the help."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import inspect
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, TypeAlias, get_type_hints

import typer

from calibrant.core import check
from calibrant.core.grid import GRIDS
from calibrant.errors import MissingExtra, requirement
from calibrant.stream import FORMATS, Job
from calibrant.stream.columns import VECTORS, declared
from calibrant.stream.dialect import Asked, check_encoding
from calibrant.stream.session import METHODS
from calibrant.summary import kinds

ENTRY: Final = re.compile(r"(?P<name>\w+)(, (?P<flag>--\S+))?( (?P<metavar>[A-Z,]+))?")
"""How the help of an option begins: its name, its flag if that is another, what it takes."""

WORDS: Final = {
    "tab": "\t",
    "\\t": "\t",
    "\\x01": "\x01",
    "space": " ",
    "comma": ",",
    "semicolon": ";",
}
"""Separators that are easier to say than to type."""

Inputs: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT",
        help="CSV, TSV, JSON, JSON Lines, Parquet or Excel files, also compressed; - is stdin.",
    ),
]


def refuse(wrong: bool, told: str) -> None:
    """Refuse options that cannot be, in one line."""
    if wrong:
        raise typer.BadParameter(told)


def refuse_beside(option: str, others: Mapping[str, Any]) -> None:
    """Refuse options that are given beside one which they cannot be combined with."""
    for other, given in others.items():
        refuse(bool(given), f"{option} cannot be combined with {other}")


def require(what: str, needed: Iterable[str], extra: str = "plot") -> None:
    """Refuse what needs something that is not installed; ``extra`` installs it."""
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        told = f"{what} needs {', '.join(missing)}, not installed here"
        raise MissingExtra(f"{told}: pip install {requirement(extra)}")


def among(names: Callable[[], list[str]], default: Any = None) -> Any:
    """Return a field whose values have names; ``{}`` in its help lists them."""
    return field(default=default, metadata={"autocompletion": names})


# --------------------------------------------------------------- from groups to options


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take groups of options: each field of a dataclass is an option of its own.

    The docstring of the dataclass has an entry for each field: its name, what it takes, and below,
    indented, its help.  Fields without an entry have that of a kind, :class:`Making` or
    :class:`Ending`.
    """
    parameters: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    for each in inspect.signature(command, eval_str=True).parameters.values():
        if dataclasses.is_dataclass(each.annotation):
            groups[each.name] = each.annotation
            parameters += _parameters(each.annotation)
        else:
            parameters.append(each.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    def run(**given: Any) -> None:
        for name, group in groups.items():
            own = {each.name: given.pop(each.name) for each in dataclasses.fields(group)}
            given[name] = group(**own)
        command(**given)

    made: Any = functools.update_wrapper(run, command)
    del made.__wrapped__
    made.__signature__ = inspect.Signature(parameters)
    made.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def _parameters(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group)
    told = Ending, Making, *map(type, kinds), group
    known = functools.reduce(operator.or_, map(_entries, told))
    made = []
    for each in dataclasses.fields(group):
        kind: Any = Annotated[hints[each.name], _option(each, known.get(each.name, {}))]
        only = inspect.Parameter.KEYWORD_ONLY
        made.append(inspect.Parameter(each.name, only, default=each.default, annotation=kind))
    return made


def _entries(group: Any) -> dict[str, dict[str, str | None]]:
    """Return what a docstring says of each field."""
    found: dict[str, dict[str, Any]] = {}
    for line in (inspect.getdoc(group) or "").splitlines():
        if (entry := ENTRY.fullmatch(line)) is not None:
            found[entry["name"]] = {**entry.groupdict(), "help": ""}
        elif found and line.startswith(" "):
            last = found[next(reversed(found))]
            last["help"] = f"{last['help']} {line.strip()}".strip()
    return found


def _option(made: Any, told: dict[str, str | None]) -> Any:
    text, complete = told.get("help"), made.metadata.get("autocompletion")
    if text and "{}" in text:
        text = text.format(", ".join(complete()))
    return typer.Option(
        told.get("flag") or f"--{made.name.replace('_', '-')}",
        metavar=told.get("metavar"),
        help=text,
        show_default="[default" not in (text or ""),
        hidden=text is None,
        autocompletion=complete,
    )


# ------------------------------------------------------------------------------- groups


def _methods() -> list[str]:
    return list(METHODS)


@dataclass(frozen=True)
class Reading:
    """What rows are read as.

    raw COL
        Column of raw forecasts (guessed by default).
    outcome COL
        Column of outcomes, 0 or 1 or empty if unknown (guessed by default); true and false, and
        yes and no, are accepted too.
    positive VALUE
        The value that counts as 1, if the outcomes are two other values.
    time COL
        Column with the time of the forecast.
    available COL
        Column with the time at which the outcome became known, and is learned. Needs --time.
    time_format FORM
        Format of the times, such as %d.%m.%Y; numbers and ISO 8601 need none (guessed if
        unambiguous).
    logit
        Raw forecasts are log-odds.
    percent
        Raw forecasts are from 0 to 100.
    score
        Raw forecasts are unbounded scores s, read as (s + m)/2m with m the largest |s| so far.
    format NAME
        Format of the inputs: csv, tsv, jsonl, json, parquet or xlsx (by default from their names or
        contents).
    sep CHAR
        Field separator of text files, one character or the word tab (guessed by default).
    decimal CHAR
        Decimal separator, a point or a comma (guessed by default).
    encoding NAME
        Encoding of text files, such as utf-16 or latin-1 (guessed by default).
    header, --header/--no-header
        Whether the first line names the columns; if not, they are 1, 2, ... (guessed by default).
    """

    raw: str | None = None
    outcome: str | None = None
    positive: str | None = None
    time: str | None = None
    available: str | None = None
    time_format: str | None = None
    logit: bool = False
    percent: bool = False
    score: bool = False
    format: str | None = None
    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    header: bool | None = None

    def job(self, inputs: list[str], **more: Any) -> Job:
        """Return the job of reading some inputs."""
        check.choice(self.format or "csv", "--format", FORMATS)
        refuse(self.available is not None and self.time is None, "--available needs --time")
        refuse(self.time_format is not None and self.time is None, "--time-format needs --time")
        named = self.raw, self.outcome, self.time, self.available, self.format
        more |= {"positive": self.positive, "time_format": self.time_format}
        return Job(tuple(inputs), *named, dialect=self.dialect, **more)

    @property
    def dialect(self) -> Asked:
        """What the options say of how text is written."""
        sep = WORDS.get(self.sep or "", self.sep)
        refuse(sep is not None and len(sep) != 1, f"--sep must be one character, got {sep!r}")
        check.choice(self.decimal or ".", "--decimal", (".", ","))
        told = f"--sep and --decimal must be two characters, got {sep!r} for both"
        refuse(sep is not None and sep == self.decimal, told)
        encoding = None if self.encoding is None else check_encoding(self.encoding)
        return Asked(sep, self.decimal, encoding, self.header)

    @property
    def words(self) -> list[str]:
        """The options of how text is written, to be given again; columns say the rest."""
        told = {"--sep": self.sep, "--encoding": self.encoding}
        words = [word for name, text in told.items() if text is not None for word in (name, text)]
        return words + {None: [], True: ["--header"], False: ["--no-header"]}[self.header]

    @property
    def scale(self) -> str | None:
        """The scale that the flags ask for, None if none is set."""
        asked = [name for name in ("logit", "percent", "score") if getattr(self, name)]
        refuse(len(asked) > 1, f"--{' and --'.join(asked[:2])} exclude each other")
        return asked[0] if asked else None


@dataclass(frozen=True)
@declared(("raw", "columns", "numbers"), "str | None", None)
class KindOptions:
    """Options that only some kinds of outcomes have, as they are written."""

    def named(self, raw: str | None) -> dict[str, Any]:
        """Return columns and numbers by name; refuse raw forecasts from two kinds of columns."""
        given = {name: text for name, text in vars(self).items() if text is not None}
        ways = [] if raw is None else ["--raw"]
        ways += [f"--{name}" for name in given if name in VECTORS]
        refuse(len(ways) > 1, f"{' and '.join(ways)} exclude each other")
        return {
            name: READERS[kinds.options[name]](text, f"--{name}") for name, text in given.items()
        }


@dataclass(frozen=True)
class Making:
    """How a recalibrator is made.

    method NAME
        A name listed by calibrant methods; any but the default is Algorithm 1 with that calibrator
        alone. [default: calibrant]
    resolution N
        Steps of the grid of forecasts. [default: 15 with calibrant, else 20]
    buckets M
        Buckets of raw forecasts. [default: 1 with calibrant, else 20]
    grid NAME
        Kind of grid: {}. [default: graded with calibrant, else endpoints]
    epsilon E
        Instead of resolution and buckets: the extra loss to tolerate in the long run. Not with
        calibrant.
    loss NAME
        The proper loss of the certificate; with calibrant squared or log. [default: squared]
    prior K
        Strength of the identity prior. Not with calibrant, which learns it. [default: 1]
    seed S
        Seed of the draws: a run with a seed can be repeated, and its draws predicted.
    """

    method: str | None = among(_methods)
    resolution: int | None = None
    buckets: int | None = None
    grid: str | None = among(lambda: list(GRIDS))
    epsilon: float | None = None
    loss: str | None = None
    prior: int | None = None
    seed: int | None = None


@dataclass(frozen=True)
class Ending:
    """How a command ends.

    force
        Overwrite outputs that exist.
    as_json, --json
        Print the result as JSON instead of tables.
    """

    force: bool = False
    as_json: bool = False


def _listed(names: str, flag: str) -> tuple[str, ...]:
    """Return the columns that an option lists."""
    found = tuple(name.strip() for name in names.split(",") if name.strip())
    refuse(not found, f"{flag} needs the name of a column")
    refuse(len(set(found)) < len(found), f"{flag} must name each column once, got {names!r}")
    return found


def _numbers(text: str, flag: str) -> tuple[float, ...]:
    try:
        found = tuple(float(word) for word in text.split(",") if word.strip())
    except ValueError:
        raise typer.BadParameter(f"{flag} must be numbers, got {text!r}") from None
    refuse(not found, f"{flag} needs at least one number")
    return found


READERS: Final = {"raw": _listed, "columns": _listed, "numbers": _numbers}
"""How the text of an option is read, by what it holds."""
