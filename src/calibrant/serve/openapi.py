"""The document of the interface, made from the routes and their types."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from calibrant._version import __version__
from calibrant.serve.desk import Way
from calibrant.serve.findings import HTML
from calibrant.serve.problems import ERRORS, KNOWN, MEDIA, PREFIX, REFUSALS
from calibrant.serve.routes import ANY_FAILS
from calibrant.serve.structs import OneOrMany, Problem
from calibrant.serve.wire import JSON

PROBLEM: Final = {"$ref": "#/components/schemas/Problem"}


def document(ways: Sequence[Way]) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of some routes."""
    types = [_type(type) for way in ways for type in (way.takes, way.gives) if _is_type(type)]
    schemas, parts = msgspec.json.schema_components(
        [*types, Problem], ref_template="#/components/schemas/{name}"
    )
    made = iter(schemas)
    paths: dict[str, dict[str, Any]] = {}
    for way in ways:
        takes = next(made) if _is_type(way.takes) else None
        gives = next(made) if _is_type(way.gives) else None
        paths.setdefault(way.path, {})[way.method.lower()] = _operation(way, takes, gives)
    return {
        "openapi": "3.1.0",
        "info": {"title": "calibrant", "version": __version__, "description": _problems()},
        "paths": paths,
        "components": {
            "schemas": parts,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _is_type(type: Any) -> bool:
    return type is not None and not isinstance(type, str)


def _type(type: Any) -> Any:
    return type.type if isinstance(type, OneOrMany) else type


def _many(schema: Any) -> dict[str, Any]:
    """Return the schema of an answer, or of many answers and problems."""
    return {"anyOf": [schema, {"type": "array", "items": {"anyOf": [schema, PROBLEM]}}]}


def _operation(way: Way, takes: Any, gives: Any) -> dict[str, Any]:
    summary = (way.handler.__doc__ or "").strip().split("\n")[0]
    answer: dict[str, Any] = {"description": summary, "content": _content(way.gives, gives)}
    answers = {str(way.status): answer}
    if way.status == 201:
        answers["200"] = answers["201"]
    if way.path == "/readyz":
        answers["503"] = answers["200"]
    for status in (*ANY_FAILS, *way.fails):
        told = {"description": _titles(status), "content": {MEDIA: {"schema": PROBLEM}}}
        answers.setdefault(str(status), told)
    if "html" in way.query.get("format", {}).get("enum", ()):
        answers["200"]["content"][HTML] = {"schema": {}}
    made: dict[str, Any] = {
        "operationId": way.handler.__name__,
        "summary": summary,
        "parameters": _parameters(way),
        "responses": answers,
        "security": [] if way.scope is None else [{"token": [way.scope]}],
    }
    if way.takes is not None:
        made["requestBody"] = {"required": True, "content": _content(way.takes, takes)}
    return made


def _content(type: Any, schema: Any) -> dict[str, Any]:
    if isinstance(type, OneOrMany):
        schema = _many(schema)
    if not isinstance(type, str):
        return {JSON: {"schema": schema}}
    found: dict[str, Any] = {type: {"schema": {}}}
    if type == "application/x-ndjson":
        found["application/vnd.apache.parquet"] = {"schema": {}}
    return found


def _parameters(way: Way) -> list[dict[str, Any]]:
    text = {"type": "string", "minLength": 1}
    there = re.findall(r"\{(\w+)\}", way.path)
    path = [{"name": name, "in": "path", "required": True, "schema": text} for name in there]
    return path + [
        {"name": name, "in": "query", "required": name in way.needs, "schema": schema}
        for name, schema in way.query.items()
    ]


def _titles(status: int) -> str:
    told = [*REFUSALS.values(), *ERRORS.values()]
    return "; ".join(dict.fromkeys(one.title for one in told if one.status == status))


def _problems() -> str:
    """Return the documented types of problems."""
    return "\n".join(f"- `{PREFIX}{k}` ({v.status}): {v.title}." for k, v in KNOWN.items())
