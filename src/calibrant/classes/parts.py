"""Parts of a forecast over classes: the binary forecasts it was made of, as words and again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from calibrant.core.ticket import Issuer, Ticket

CLOCK: Final = 4
"""Which word of a part is its clock."""


def letters(kept: int) -> str:
    """Return what the desk keeps of a part: number, place, weight, raw, clock, mixed, advice."""
    return "qqddqd" + "q" * kept


def flattened(parts: Sequence[Ticket]) -> tuple[Any, ...]:
    """Return what the desk keeps of all parts, one after the other."""
    return tuple(word for part in parts for word in _words(part))


def revived(issuer: Issuer, words: Sequence[Any]) -> tuple[Ticket, ...]:
    """Return parts again from what :func:`flattened` gave."""
    width = len(letters(issuer.kept))
    starts = range(0, len(words), width)
    return tuple(_part(issuer, *words[start : start + width]) for start in starts)


def agree(parts: Sequence[Ticket], words: Sequence[Any]) -> bool:
    """Say whether the desk kept the same of these parts; a stored one may lack its clock."""
    own = flattened(parts)
    width = len(own) // max(len(parts), 1)
    pairs = enumerate(zip(own, words, strict=False))
    same = all(one == other for k, (one, other) in pairs if k % width != CLOCK)
    return same and len(own) == len(words)


def _words(part: Ticket) -> Iterator[Any]:
    place, weight, raw, _, clock, *rest = part.fields
    yield from (part.number, place, weight, raw, clock, *rest)


def _part(
    issuer: Issuer,
    number: int,
    place: int,
    weight: float,
    raw: float,
    clock: int,
    mixed: float,
    *kept: int,
) -> Ticket:
    fields = place, weight, raw, float("nan"), clock, mixed, *kept
    return Ticket.revived(issuer, number, number, fields)
