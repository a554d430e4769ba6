"""Verbs of clients and batchers: each is written once, as what it asks, for callers of both kinds.

A verb of :mod:`calibrant.client.asking` takes the caller's arguments and returns a ``Call``.  Who
sends it has ``_done``, which carries a call out: a function that waits, or a coroutine.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, get_args, get_type_hints

from calibrant.client.asking import Call

P = ParamSpec("P")
Read = TypeVar("Read")


def waits(asked: Callable[P, Call[Read]]) -> Callable[Concatenate[Any, P], Read]:
    """Return a verb as a method that waits for its answer."""

    @wraps(asked)
    def verb(self: Any, /, *arguments: P.args, **named: P.kwargs) -> Read:
        made: Read = self._done(asked(*arguments, **named))
        return made

    verb.__signature__ = _signature(asked)  # type: ignore[attr-defined]
    return verb


def awaits(
    asked: Callable[P, Call[Read]],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, Read]]:
    """Return a verb as a method whose answer is awaited."""

    @wraps(asked)
    async def verb(self: Any, /, *arguments: P.args, **named: P.kwargs) -> Read:
        made: Read = await self._done(asked(*arguments, **named))
        return made

    verb.__signature__ = _signature(asked)  # type: ignore[attr-defined]
    return verb


def _signature(asked: Callable[..., Call[Any]]) -> inspect.Signature:
    """Return how a method is called that asks this: what it returns is what is read."""
    given = inspect.signature(asked)
    me = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    (read,) = get_args(get_type_hints(asked)["return"])
    return given.replace(parameters=[me, *given.parameters.values()], return_annotation=read)
