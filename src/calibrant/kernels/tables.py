"""Whole batches of many rows: each row plays its own part, one row after the other.

Rows know nothing of each other, so the order among them does not matter: a batch may be played
row by row, or in the order of arrival, with a part for every event.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from calibrant.kernels.coin import name_of
from calibrant.kernels.compile import compiled
from calibrant.kernels.fetch import AHEAD, fetch_row


class RowsMachine(NamedTuple):
    """Compiled loops over many rows that leave other threads alone."""

    replay: Callable[..., None]
    events: Callable[..., None]


def machine_of_rows(
    replay: Callable[..., None], events: Callable[..., None], name: str
) -> RowsMachine:
    """Return loops over rows of a program's batches, compiled."""
    by_row = make_replay_rows(replay), make_events_rows(events)
    return RowsMachine(*(compiled(made, name, nogil=True) for made in by_row))


def make_replay_rows(replay: Callable[..., None]) -> Callable[..., None]:
    """Return what plays rounds whose outcomes come at once, those of each row together.

    ``places`` says where each row starts, and ``issued`` how many forecasts the row has made.  Its
    rounds are those at the positions ``order[bounds[k]:bounds[k + 1]]`` of the columns ``raw`` and
    ``ys``, which are ``given``; what is forecast in them, and their numbers, is written to the same
    positions of the columns ``made``.  Rounds are played some at a time, as many as fit into the
    columns of ``held``, so that these stay in the cache of the processor.  While a row is played,
    the words of one that comes soon are fetched.
    """

    def replay_rows(
        words: Any,
        reals: Any,
        places: Any,
        bounds: Any,
        order: Any,
        issued: Any,
        given: Any,
        made: Any,
        held: Any,
    ) -> None:
        raw, ys = given
        draws, means, mixed, numbers = made
        own_raw, own_ys, own_draws, own_means, own_mixed = held
        k, a, last = 0, bounds[0], bounds[len(places)]
        while a < last:
            b = min(a + len(own_raw), last)
            for t in range(a, b):
                own_raw[t - a], own_ys[t - a] = raw[order[t]], ys[order[t]]
            t = a
            while t < b:
                stop, first = min(bounds[k + 1], b), t - a
                part = stop - a
                if k + AHEAD < len(places) and bounds[k + AHEAD] < b:
                    soon = own_raw[bounds[k + AHEAD] - a : min(bounds[k + AHEAD + 1], b) - a]
                    fetch_row(words, reals, places[k + AHEAD], soon)
                columns = own_raw[first:part], own_ys[first:part], own_draws[first:part]
                replay(
                    words, reals, places[k], *columns, own_means[first:part], own_mixed[first:part]
                )
                for n in range(t, stop):
                    numbers[order[n]] = issued[k] + n - bounds[k]
                t = stop
                k += stop == bounds[k + 1]
            for t in range(a, b):
                draws[order[t]], means[order[t]] = own_draws[t - a], own_means[t - a]
            for t in range(a, a + min(len(own_mixed), b - a)):
                mixed[order[t]] = own_mixed[t - a]
            a = b

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
