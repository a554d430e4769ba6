"""Whole batches of many rows: each row plays its own part, one row after the other.

Rows know nothing of each other, so the order among them does not matter: a batch may be played
row by row, or in the order of arrival, with a part for every event.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from calibrant.kernels.coin import name_of
from calibrant.kernels.compile import compiled


class Moves(NamedTuple):
    """How columns are brought into the order of rows and back, and rounds numbered."""

    gather: Callable[..., None]
    scatter: Callable[..., None]
    number: Callable[..., None]


class RowsMachine(NamedTuple):
    """Compiled loops over many rows, and moves that leave other threads alone."""

    replay: Callable[..., None]
    events: Callable[..., None]
    moves: Moves


def machine_of_rows(
    replay: Callable[..., None], events: Callable[..., None], name: str
) -> RowsMachine:
    """Return loops over rows of a program's batches, compiled."""
    by_row = make_replay_rows(replay), make_events_rows(events)
    moves = (compiled(made, "rows", nogil=True) for made in (gather, scatter, number_rounds))
    played, told = (compiled(made, name, nogil=True) for made in by_row)
    return RowsMachine(played, told, Moves(*moves))


def make_replay_rows(replay: Callable[..., None]) -> Callable[..., None]:
    """Return what plays rounds whose outcomes come at once, those of each row together.

    ``places`` says where each row starts; its rounds are those from ``bounds[k]`` up to
    ``bounds[k + 1]`` of the columns.
    """

    def replay_rows(
        words: Any,
        reals: Any,
        places: Any,
        bounds: Any,
        raw: Any,
        ys: Any,
        draws: Any,
        means: Any,
        mixed: Any,
    ) -> None:
        for k in range(len(places)):
            a, b = bounds[k], bounds[k + 1]
            columns = raw[a:b], ys[a:b], draws[a:b], means[a:b], mixed[a:b]
            replay(words, reals, places[k], *columns)

    return replay_rows


def make_events_rows(events: Callable[..., None]) -> Callable[..., None]:
    """Return what plays the log of each row: from ``bounds[k]`` up to ``bounds[k + 1]`` of it.

    The columns belong to the tickets of all rows.
    """

    def events_rows(
        words: Any, reals: Any, places: Any, bounds: Any, log: Any, *columns: Any
    ) -> None:
        for k in range(len(places)):
            events(words, reals, places[k], log[bounds[k] : bounds[k + 1]], *columns)

    return events_rows


def count_rows(rows: Any, counts: Any) -> None:
    """Add to the count of each row how often the row is in a column."""
    for t in range(len(rows)):
        counts[rows[t]] += 1


def lay_out_rows(counts: Any) -> None:
    """Turn the counts of rows in parts of a column into where each part writes its positions.

    Positions of one row stand before those of the next, and within a row those of the first part
    stand first.
    """
    place = 0
    for row in range(counts.shape[1]):
        for part in range(len(counts)):
            count = counts[part, row]
            counts[part, row] = place
            place += count


def place_rows(rows: Any, first: int, places: Any, order: Any) -> None:
    """Write the positions of a part of a column, which begins at ``first``, by row."""
    for t in range(len(rows)):
        row = rows[t]
        order[places[row]] = first + t
        places[row] += 1


def gather(source: Any, order: Any, target: Any) -> None:
    """Write the values at some positions one after the other."""
    for t in range(len(order)):
        target[t] = source[order[t]]


def scatter(source: Any, order: Any, target: Any) -> None:
    """Write values to some positions."""
    for t in range(len(order)):
        target[order[t]] = source[t]


def number_rounds(bounds: Any, issued: Any, order: Any, numbers: Any) -> None:
    """Write the number of each round in its row: one more than that before, from ``issued`` on."""
    for k in range(len(issued)):
        for t in range(bounds[k], bounds[k + 1]):
            numbers[order[t]] = issued[k] + t - bounds[k]


def copy_parts(source: Any, starts: Any, sizes: Any, target: Any, places: Any) -> None:
    """Copy many parts of an array to places in another one."""
    for k in range(len(starts)):
        start, place = starts[k], places[k]
        for n in range(sizes[k]):
            target[place + n] = source[start + n]


def seat_rows(words: Any, places: Any, secrets: Any, blocks: Any, first: int, stride: int) -> None:
    """Write the keys that follow from the secrets of rows, unsigned words, into their blocks.

    ``blocks`` are the numbers of the blocks; ``first`` is where in a row the key of the first one
    stands.
    """
    for k in range(len(places)):
        low, high, place = secrets[k, 0], secrets[k, 1], places[k] + first
        for j in range(len(blocks)):
            words[place + j * stride] = name_of(low, high, blocks[j])
