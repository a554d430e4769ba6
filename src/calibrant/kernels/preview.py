"""Looking at the next draw and its mean: the rule's own functions, and nothing written down."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.kernels.coin import coin
from calibrant.kernels.compile import compiled, entry_point
from calibrant.kernels.front import Fronted
from calibrant.kernels.layout import (
    BLOCKS,
    BUCKETS,
    CELL,
    CELLS,
    CLOCK,
    EDGES,
    INDEX,
    KEY,
    MIDDLE,
    NARROW,
    STRIDE,
    TABLE,
    VALUES,
    Reals,
    Words,
)
from calibrant.kernels.place import bucket_of
from calibrant.kernels.rounds import Program
from calibrant.kernels.safe import decide

__all__ = ["Looks", "look_ahead"]


@dataclass(frozen=True, eq=False)
class Looks:
    """Draw and mean of a raw forecast (``one``), either on the array alone, and both of many.

    Of ``many`` each is looked at as the very next round, with a coin of its own.
    """

    name: str
    one: Callable[[Words, Reals, float, int], tuple[float, float]]
    one_flat: Callable[[Any, float, bool], float]
    many: Callable[[Words, Reals, Any, Any, Any], None]

    @functools.cached_property
    def machine(self) -> Callable[[Words, Reals, Any, Any, Any], None]:
        """Compiled ``many``; only where there is a compiler."""
        return compiled(self.many, self.name, nogil=True)

    def step(self, flat: Any) -> Callable[[Any, float, bool], float]:
        """Return ``one_flat`` compiled; ``flat`` is a state to try it on."""
        made = compiled(self.one_flat, self.name)
        made(flat, 0.5, True)
        return entry_point(made)


@functools.cache
def look_ahead(functions: Program | Fronted, program: Program, safe: bool = False) -> Looks:
    """Return the looks of a rule, behind a transform or not.

    ``safe`` says that there is a budget; where it does not suffice the raw forecast is announced.

    A round that follows at once announces what was seen: a coin is a function of its bucket's
    clock.  `MIDDLE` and the notes of a transform are overwritten, which are no part of a state.
    """
    draw, mean = program.draw, program.mean
    through = functions.pass_through if isinstance(functions, Fronted) else None

    def one(words: Words, reals: Reals, raw: float, ahead: int) -> tuple[float, float]:
        cells, table = words[CELLS] & INDEX, words[TABLE] & INDEX
        edges, buckets = words[EDGES] & INDEX, words[BUCKETS] & INDEX
        middle = raw
        if through is not None:
            middle = through(words, reals, raw)
        reals[MIDDLE] = middle
        bucket = bucket_of(reals, edges, buckets, middle) & NARROW
        at = (words[BLOCKS] & INDEX) + bucket * (words[STRIDE] & NARROW)
        u = coin(words[at + KEY], words[at + CLOCK] + ahead)
        cell, side, weight = draw(words, reals, at, cells, table, u)
        drawn = reals[table + cells + VALUES + (cell & CELL)]
        expected = mean(words, reals, cells, table, cell, side, weight)
        if safe and decide(words, reals, cells, table, raw, cell, side, weight) != 0:
            drawn, expected = raw, raw
        return drawn, min(max(expected, 0.0), 1.0)

    def one_flat(flat: Any, raw: float, mean: bool) -> float:
        drawn, expected = one(flat, flat.view(np.float64), raw, 0)
        return expected if mean else drawn

    def many(words: Words, reals: Reals, raws: Any, draws: Any, means: Any) -> None:
        for t in range(len(raws)):
            drawn, expected = one(words, reals, raws[t], t)
            draws[t] = drawn
            means[t] = expected

    return Looks(f"preview_{functions.name}{'_safe' if safe else ''}", one, one_flat, many)
