"""What is asked of a service and how its answers are read, whoever sends it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar
from urllib.parse import quote

import msgspec

from calibrant.core import check
from calibrant.errors import CalibrantError
from calibrant.journal.commitment import is_kept

AGAIN: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses after which the same may be asked again: ids make that safe."""
LONGEST: Final = 30.0
"""Seconds between two tries, at most."""
BATCH: Final = 1_000
"""Events that are sent in one request."""

Read = TypeVar("Read")

Id: TypeAlias = str | None
Ids: TypeAlias = Sequence[str] | None
Key: TypeAlias = str | int | None
Keys: TypeAlias = Sequence[str | int] | None
Time: TypeAlias = check.When
Times: TypeAlias = Sequence[check.Time] | None
Raw: TypeAlias = float | Sequence[float]
Names: TypeAlias = Sequence[str] | None
Outcome: TypeAlias = int | str


class ServiceError(CalibrantError):
    """What a service refused, or that it could not be reached.

    ``status`` is 0 if there was no answer; ``type`` is the documented one of the problem.
    """

    def __init__(self, message: str, status: int = 0, type: str = "", **more: Any) -> None:
        super().__init__(message)
        self.status, self.type, self.more = status, type, more


class Mixture(msgspec.Struct, frozen=True):
    """The points that could have been drawn, with their probabilities."""

    values: tuple[float, ...]
    weights: tuple[float, ...]


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """A calibrated forecast: the draw carries the promise, the mean is sharper and does not.

    Attributes
    ----------
    id, sequence
        The forecast's name, and its place in the log.
    forecast, mean
        The draw and the mean: a number, or a list with one for each class.  The draw is None where
        the stream tells it with the outcome.
    mixture
        What the draw was drawn from; with classes, the probability of ``top`` was.
    top, confidence, confidence_mean, classwise
        With classes: which comes first, how sure that is, as drawn and on average, and the draw of
        each class by itself.
    commitment
        To the draw, where the stream tells it with the outcome: see :func:`verify_commitment`.
    """

    id: str
    forecast: Any = None
    mean: Any
    mixture: Mixture
    sequence: int
    top: str | None = None
    confidence: float | None = None
    confidence_mean: float | None = None
    classwise: list[float] | None = None
    commitment: str | None = None


class Previewed(msgspec.Struct, frozen=True):
    """What the next forecast would be drawn from; ``fallback`` says that it is the raw one."""

    mean: float
    mixture: Mixture
    fallback: bool


class Question(NamedTuple):
    """A request: method, path, JSON or bytes, and which part of a batch it is."""

    method: str
    path: str
    body: Any = None


def path_of(stream: str, *rest: str) -> str:
    """Return the path of a stream, or of something of it."""
    parts = ["v1", "streams", stream, *rest]
    return "/" + "/".join(map(_quoted, parts))


def _quoted(part: str) -> str:
    """Return a part of a path; dots alone would lead somewhere else.

    >>> _quoted("a/b"), _quoted("..")
    ('a%2Fb', '%2E%2E')
    """
    return part.replace(".", "%2E") if part in (".", "..") else quote(part, safe="")


class Call(NamedTuple, Generic[Read]):
    """What is asked by one verb: requests one after the other, and how their answers are read.

    ``read_row`` is how the answer to a call's only row is read if the row goes with others.
    """

    questions: Sequence[Question]
    read: Callable[[list[bytes]], Read]
    read_row: Callable[[dict[str, Any]], Any] = dict


def put_stream(stream: str, **settings: Any) -> Call[dict[str, Any]]:
    """Make a stream, unless it exists with the same settings."""
    return Call([Question("PUT", path_of(stream), settings)], _told)


def forecast(
    stream: str,
    raw: Raw,
    *,
    id: Id = None,
    key: Key = None,
    time: Time = None,
    groups: Names = None,
) -> Call[Forecast]:
    """Return the calibrated forecast for a raw one, or for one of each class."""
    columns: Any = ([value] if value is not None else None for value in (id, key, time, groups))
    asked = forecasts(stream, [raw], *columns)
    return Call(asked.questions, lambda told: asked.read(told)[0], _read_forecast)


def forecasts(
    stream: str,
    raw: Sequence[Raw],
    ids: Ids = None,
    keys: Keys = None,
    times: Times = None,
    groups: Sequence[Sequence[str]] | None = None,
) -> Call[list[Forecast]]:
    """Return the calibrated forecasts for many raw ones; without ids they get random ones."""
    listed = check.listed(raw, "raw")
    # Random ids are made here, once, so that retries repeat them.
    names = [secrets.token_hex(16) for _ in listed] if ids is None else ids
    given = {"id": names, "raw": listed, "key": keys, "time": times, "groups": groups}
    told = {name: check.listed(told, name) for name, told in given.items() if told is not None}
    check.same_length(**told)
    columns = [[_plain(name, each) for each in column] for name, column in told.items()]
    rows = [dict(zip(told, row, strict=True)) for row in zip(*columns, strict=True)]
    return Call(_batches(path_of(stream, "forecasts"), rows), _read_forecasts)


def outcome(stream: str, id: str, outcome: Outcome, *, time: Time = None) -> Call[dict[str, Any]]:
    """Report an outcome, and in seconds when it became known; return what became of it."""
    row = _row(id, outcome, time)
    return Call([Question("POST", path_of(stream, "outcomes"), row)], _told)


def outcomes(
    stream: str, told: Mapping[str, Outcome], *, time: Time = None
) -> Call[list[dict[str, Any]]]:
    """Report many outcomes by id; return what became of each, problems too."""
    rows = [_row(id, outcome, time) for id, outcome in told.items()]
    return Call(_batches(path_of(stream, "outcomes"), rows), _read_rows)


def correct(stream: str, id: str, outcome: Outcome) -> Call[dict[str, Any]]:
    """Replace an outcome, once."""
    body = {"outcome": plain_outcome(outcome)}
    return Call([Question("PUT", path_of(stream, "outcomes", id), body)], _told)


def expire(stream: str, id: str) -> Call[dict[str, Any]]:
    """Say that a forecast's outcome will never come."""
    return Call([Question("DELETE", path_of(stream, "forecasts", id))], _told)


def get(stream: str, *rest: str) -> Call[Any]:
    """Return a stream, or what is asked of it: ``"certificate"``, ``"forecasts", id``."""
    return Call([Question("GET", path_of(stream, *rest))], lambda told: read(told[0], object))


def preview(stream: str, raw: float) -> Call[Previewed]:
    """Return what a forecast would be drawn from now; nothing changes."""
    path = f"{path_of(stream, 'preview')}?raw={float(raw)!r}"
    return Call([Question("GET", path)], lambda told: read(told[0], Previewed))


def state(stream: str) -> Call[bytes]:
    """Return the whole state, for :func:`calibrant.load`."""
    return Call([Question("GET", path_of(stream, "state"))], lambda told: told[0])


def _row(id: str, outcome: Outcome, time: Time) -> dict[str, Any]:
    row: dict[str, Any] = {"id": id, "outcome": plain_outcome(outcome)}
    return row if time is None else row | {"time": check.moment(time)}


def plain_outcome(outcome: Any) -> int | str:
    """Return an outcome as JSON has it: the name of a class, or a whole number."""
    return str(outcome) if isinstance(outcome, str) else int(outcome)


def _plain(name: str, value: Any) -> Any:
    """Return what a row tells as JSON has it."""
    if name == "raw":
        return [float(p) for p in value] if hasattr(value, "__len__") else float(value)
    if name == "time" and value is not None:
        return check.moment(value)
    return list(value) if name == "groups" else value


def verify_commitment(made: Forecast, told: Mapping[str, Any]) -> bool:
    """Say whether a draw that came with the outcome is the one that was fixed before.

    Parameters
    ----------
    made
        What was answered to the forecast: it has the commitment.
    told
        What was answered to the outcome, or what is known of the forecast since.
    """
    shown = told.get("revealed", told)
    if made.commitment is None or not isinstance(shown.get("salt"), str):
        return False
    drawn = [shown[name] for name in ("forecast", "confidence", "classwise") if name in shown]
    listed = [part for value in drawn for part in (value if isinstance(value, list) else [value])]
    return is_kept(made.commitment, shown["salt"], made.id, listed)


def _batches(path: str, rows: list[Any]) -> list[Question]:
    return [
        Question("POST", path, rows[start : start + BATCH]) for start in range(0, len(rows), BATCH)
    ]


def body_of(question: Question) -> bytes | None:
    """Return the body of a request."""
    body = question.body
    return body if body is None or isinstance(body, bytes) else msgspec.json.encode(body)


def refusal(status: int, content: bytes) -> ServiceError:
    """Return the error of an answer that is none."""
    try:
        told = msgspec.json.decode(content)
        known = {key: told[key] for key in ("id", "stored", "told") if key in told}
        return ServiceError(told["detail"], status, told["type"], **known)
    except (msgspec.DecodeError, KeyError, TypeError):
        return ServiceError(f"service must answer as documented, got status {status}", status)


def read(content: bytes, type: type[Read]) -> Read:
    """Return an answer of a type."""
    return msgspec.json.decode(content, type=type)


def _told(answers: list[bytes]) -> dict[str, Any]:
    return read(answers[0], dict[str, Any])


def _read_rows(answers: list[bytes]) -> list[dict[str, Any]]:
    return [row for answer in answers for row in read(answer, list[dict[str, Any]])]


def _read_forecast(row: dict[str, Any]) -> Forecast:
    return msgspec.convert(row, Forecast)


def _read_forecasts(answers: list[bytes]) -> list[Forecast]:
    return msgspec.convert(granted(_read_rows(answers)), list[Forecast])


def granted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the answers of a batch; raise the first problem among them."""
    for row in rows:
        if "type" in row:
            raise refusal(row["status"], msgspec.json.encode(row))
    return rows


def pause(tries: int, told: str | None, dice: float) -> float:
    """Return how long to wait before the next try: longer each time, and not all at once."""
    if told is not None and told.isdigit():
        return min(float(told), LONGEST)
    return float(min(0.05 * 2**tries, LONGEST) * (0.5 + dice))
