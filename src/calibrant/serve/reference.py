"""The reference page of the service, made from its routes, types and errors.

``python -m calibrant.serve.reference > docs/reference/service.md`` writes it; a test compares.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from calibrant.journal.settings import MOST_EARLY
from calibrant.serve.options import Options
from calibrant.serve.problems import KNOWN, PREFIX
from calibrant.serve.routes import ANY_FAILS, WAYS
from calibrant.summary import kinds

LIMITS: Final = Options()
INTRODUCTION: Final = """\
# The service

Routes, statuses and errors of `calibrant serve`, made by `python -m calibrant.serve.reference`. How
to run it: [Serve streams](../how-to/service.md), and what it protects: [threats](threats.md). The
same as OpenAPI 3.1 is served at `/openapi.json`.
"""
ROUTES: Final = """\
## Routes

A route asks for a scope: `write` includes `read`, and `admin` includes both. In addition to the
statuses below, every route may answer {}.
"""
EVENTS: Final = """\
## Events

`POST .../forecasts` and `POST .../outcomes` take one object or a list of them, and answer with one
or a list. A list is answered with 200, and each part separately: the result, or a problem with the
`id` it is about. A body that is not as documented is refused as a whole.

| outcome | status | what it means |
|---|---|---|
| `learned` | 200 | The forecast was open and has learned it. |
| `early` | 200 | There is no such forecast yet; kept until there is, with `unknown: keep`. |
| `repeated` | 200 | The same was reported before. |
| | 409 | Something else was reported before; `PUT .../outcomes/{id}` corrects it, once. |
| | 404 | There is no such forecast, with `unknown: refuse`. |
| | 410 | The forecast expired, or was dropped. |
"""
KINDS: Final = """\
## Kinds of streams

"""
HIDDEN: Final = """\
All but `groups` forget with `method: fading`: `parameters` has the `half_life`, and the `unit`,
`rounds` or `time`, in which it is counted. Other methods take theirs in the same way.

With `reveal: outcome` the answer to a forecast has `commitment` in place of what was drawn
(`forecast`, `confidence`, `classwise`), which is in `revealed` of the answer to its outcome, with
the `salt`.
"""
BOUNDS: Final = """\
## Limits

| what | most | status |
|---|---|---|
"""
PROBLEMS: Final = """\
## Errors

Every error is a problem as in RFC 9457: `type`, `title`, `status`, `detail`, and where they are
known the `id` it is about and what is `stored` and was `told`. 429 and 503 say in `Retry-After`
when to ask again; the same ids make that safe.

"""


def page() -> str:
    """Return the page as Markdown."""
    fails = ", ".join(str(status) for status in ANY_FAILS)
    rows = [
        (
            f"`{way.method} {way.path}`",
            way.scope or "none",
            (way.handler.__doc__ or "").split("\n")[0],
            ", ".join(str(status) for status in (way.status, *way.fails)),
        )
        for way in WAYS
    ]
    problems = [(f"`{PREFIX}{k}`", str(v.status), f"{v.title}.") for k, v in KNOWN.items()]
    services = [kind.service for kind in reversed([*kinds]) if kind.service is not None]
    streams = [row for service in services for row in service.described]
    parts = [
        INTRODUCTION,
        ROUTES.format(fails),
        table(("route", "scope", "what it does", "statuses"), rows),
        EVENTS,
        KINDS + table(("stream", "`raw`", "`outcome`", "answer", "not available (422)"), streams),
        HIDDEN,
        BOUNDS + "".join(f"| {' | '.join(row)} |\n" for row in limits()),
        PROBLEMS + table(("type", "status", "meaning"), problems),
    ]
    return "\n".join(parts)


def limits() -> Iterable[tuple[str, str, str]]:
    """Return every limit, with the status that tells it."""
    yield "body of a request", f"{LIMITS.largest_body:,} bytes", "413"
    yield "state that is handed over", f"{LIMITS.largest_state:,} bytes", "413"
    yield "events of a request", f"{LIMITS.largest_batch:,}", "413"
    yield "id", "256 bytes of UTF-8 without control characters", "422"
    yield "raw forecast", "a finite number in [0, 1], or one for each class with sum 1", "422"
    yield "classes of a stream", "1,000", "422"
    yield "groups of a stream, named beforehand and in all", "1,023 and 10,000", "422"
    yield "groups of a forecast", "1,000", "422"
    yield "open forecasts of a stream", "`most_open` of the stream", "429"
    kept = f"`most_open` of the stream, or {MOST_EARLY:,}"
    yield "outcomes of a stream that are kept before their forecasts", kept, "429"
    yield "requests of a token", "`--rate` a second", "429"
    yield "time for a body", f"{LIMITS.body_seconds:g} seconds", "408"


def table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown."""
    lines = [" | ".join(titles), *(" | ".join(row) for row in rows)]
    lines.insert(1, "|".join("---" for _ in lines[0].split(" | ")))
    return "".join(f"| {line} |\n" if k != 1 else f"|{line}|\n" for k, line in enumerate(lines))


if __name__ == "__main__":
    print(page(), end="")
