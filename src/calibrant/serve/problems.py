"""Errors in one shape: a documented type, a status, and a sentence."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec
from starlette.responses import Response

from calibrant import errors
from calibrant.errors import CalibrantError, Contradiction
from calibrant.serve.structs import Problem

PREFIX: Final = "urn:calibrant:"
MEDIA: Final = "application/problem+json"


class Told(NamedTuple):
    """How a kind of error is told."""

    name: str
    status: int
    title: str


class Refused(CalibrantError):
    """A request that is refused before it reaches a stream."""

    def __init__(self, name: str, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.told, self.headers = REFUSALS[name], headers or {}


REFUSALS: Final = {
    told.name: told
    for told in (
        Told("malformed", 400, "The body is not JSON"),
        Told("unauthorized", 401, "A token is needed"),
        Told("forbidden", 403, "The token does not allow this"),
        Told("not-found", 404, "There is no such route"),
        Told("method-not-allowed", 405, "The route does not allow this method"),
        Told("timeout", 408, "The body took too long"),
        Told("deleted", 409, "The stream was deleted"),
        Told("too-large", 413, "The request is too large"),
        Told("invalid", 422, "The request breaks a rule"),
        Told("too-fast", 429, "The token makes too many requests"),
        Told("internal", 500, "An error of the service itself"),
        Told("not-ready", 503, "The service is not ready"),
    )
}
ERRORS: Final[dict[type[CalibrantError], Told]] = {
    errors.InvalidInput: Told("invalid-input", 422, "A value breaks a rule"),
    errors.InvalidType: Told("invalid-type", 422, "A value is of the wrong kind"),
    errors.UnknownTicket: Told("unknown-forecast", 404, "There is no such forecast"),
    errors.RepeatedTicket: Told("repeated", 409, "The outcome is known already"),
    errors.ExpiredTicket: Told("expired", 410, "The forecast expired"),
    errors.ForeignTicket: Told("foreign", 409, "The forecast was made elsewhere"),
    errors.Contradiction: Told("contradiction", 409, "The id was used before with other values"),
    errors.TicketError: Told("ticket", 409, "The outcome cannot be recorded"),
    errors.StaleForecast: Told("stale", 409, "The round was overtaken"),
    errors.DamagedLog: Told("damaged-log", 503, "The log is damaged"),
    errors.CorruptState: Told("corrupt-state", 422, "The state cannot be read"),
    errors.NotStored: Told("not-stored", 503, "The request was not stored"),
    errors.TooManyOpen: Told("too-many-open", 429, "Too many outcomes are missing"),
    errors.ImproperLoss: Told("improper-loss", 422, "No guarantee can exist under this loss"),
    errors.MissingExtra: Told("missing-extra", 501, "An optional part is not installed"),
    errors.MissingData: Told("missing-data", 501, "Data that is not installed was asked for"),
    errors.UnknownName: Told("unknown-name", 404, "There is no such name"),
    errors.CalibrantError: Told("error", 422, "The request cannot be met"),
}
"""How each error of the library is told; of a kind that is not here, that of its parent."""
KNOWN: Final = dict(sorted((one.name, one) for one in (*REFUSALS.values(), *ERRORS.values())))
"""Every kind of problem, by name."""


def told_of(error: CalibrantError) -> Told:
    """Return how an error is told."""
    if isinstance(error, Refused):
        return error.told
    return next(ERRORS[kind] for kind in type(error).__mro__ if kind in ERRORS)


def problem_of(error: CalibrantError, id: str | None = None) -> Problem:
    """Return an error as data."""
    told = told_of(error)
    made = Problem(PREFIX + told.name, told.title, told.status, str(error))
    if id is not None:
        made.id = id
    if isinstance(error, Contradiction) and error.stored is not None:
        made.stored, made.told = error.stored, error.told or {}
    return made


def response_of(error: CalibrantError, id: str | None = None) -> Response:
    """Return an error as a response."""
    problem = problem_of(error, id)
    headers = dict(error.headers) if isinstance(error, Refused) else {}
    if problem.status in (429, 503):
        headers.setdefault("Retry-After", "1")
    if problem.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(msgspec.json.encode(problem), problem.status, headers, MEDIA)
