"""A simulation, event by event: forecasts in bursts, late outcomes, and one queue a shard."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from calibrant.capacity.plans import Plan
from calibrant.core import check
from calibrant.core.arrays import Reals

SHARE: Final = 0.1
"""Which part of the time is burst."""
LENGTH: Final = 10.0
"""Seconds that a burst takes on average."""
TAIL: Final = 1.5
"""Spread of the logarithm of delays: one outcome in a hundred takes 11 times the mean."""
MOST_PHASES: Final = 4_000_000
"""Quiet times and bursts that are thrown, at most."""
SPANS: Final = 20.0
"""Delays that are simulated, and bursts; half of the delays warm up the counts of open tickets."""


@dataclass(frozen=True)
class Rush:
    """What was seen in a simulation.

    Attributes
    ----------
    forecasts
        How many were made.
    burst
        How many times its usual rate a burst has.
    busy
        Which part of a core was busy.
    wait, wait_99, longest
        Seconds that a forecast waited for its turn: on average, at most in 99 of 100, at most.
    mean_open, most_open
        Tickets that were open on average and at most, after the first ones were answered.
    """

    forecasts: int
    burst: float
    busy: float
    wait: float
    wait_99: float
    longest: float
    mean_open: float
    most_open: float


def rush(made: Plan, *, burst: float = 5.0, forecasts: int = 100_000, seed: int = 0) -> Rush:
    """Play a plan's arrivals on its cores, and count what waits.

    Waiting is played over twenty bursts at least, open tickets over twenty delays: where that is
    more forecasts than asked for, each stands for several, so that chance is overstated.

    Parameters
    ----------
    made
        What :func:`calibrant.capacity.plan` returned; keys are dealt evenly to its cores.
    burst
        How many times its usual rate forecasts have during bursts, which take a tenth of the time.
    forecasts
        How many are simulated.
    seed
        Which arrivals.

    Examples
    --------
    >>> from calibrant.capacity import plan
    >>> seen = rush(plan(1_000, 100, delay=60.0), burst=3.0, forecasts=20_000)
    >>> seen.most_open < 3 * seen.mean_open
    True
    """
    burst = check.real(burst, "burst", low=1.0, rule="a number of at least 1")
    count, rng = check.whole(forecasts, "forecasts", low=100), np.random.default_rng(seed)
    rate, service = made.events_per_second, made.figures.table_ns * 1e-9 / 2.0
    weight = max(1.0, rate * SPANS * LENGTH / SHARE / count)
    times = arrivals(rng, count, rate / weight, burst)
    waits, busy = _waits(rng, times, made.delay, made.cores, service * weight)
    mean, most = _open(rng, made, burst, count)
    return Rush(
        count,
        burst,
        busy,
        float(waits.mean()),
        float(np.quantile(waits, 0.99)),
        float(waits.max()),
        mean,
        most,
    )


def arrivals(rng: np.random.Generator, count: int, rate: float, burst: float) -> Reals:
    """Return the times of that many forecasts: quiet times and bursts in turns."""
    quiet = rate / (1.0 - SHARE + SHARE * burst)
    lengths = np.array([LENGTH * (1.0 - SHARE) / SHARE, LENGTH])
    rates = np.array([quiet, quiet * burst])
    # Phases until more forecasts are expected than are asked for.
    phases = 2 + 2 * math.ceil(2.0 * count / float(lengths @ rates))
    if phases > MOST_PHASES:
        # Forecasts are so few that hardly a burst has more than one.
        return np.cumsum(rng.exponential(1.0 / rate, count))
    spent = rng.exponential(np.tile(lengths, phases))
    # Forecasts come at rate 1 in a time of their own, which runs faster in bursts.
    own = np.concatenate([[0.0], np.cumsum(spent * np.tile(rates, phases))])
    when = np.concatenate([[0.0], np.cumsum(spent)])
    met = np.cumsum(rng.exponential(size=count))
    return np.asarray(np.interp(met[met < own[-1]], own, when))


def _delays(rng: np.random.Generator, count: int, mean: float) -> Reals:
    return mean * np.exp(TAIL * rng.standard_normal(count) - TAIL * TAIL / 2.0)


def _waits(
    rng: np.random.Generator, times: Reals, delay: float, cores: int, service: float
) -> tuple[Reals, float]:
    """Return how long each forecast waits while shards work off forecasts and outcomes."""
    late = times + _delays(rng, len(times), delay)
    moments, shards = np.concatenate([times, late]), rng.integers(cores, size=len(times))
    order = np.argsort(moments, kind="stable")
    free, waits = dict[int, float](), np.zeros(len(times))
    shard_of = np.concatenate([shards, shards])[order].tolist()
    for event, moment, shard in zip(order.tolist(), moments[order].tolist(), shard_of, strict=True):
        begins = max(free.get(shard, 0.0), moment)
        free[shard] = begins + service
        if event < len(times):
            waits[event] = begins - moment
    return waits, len(times) * 2.0 * service / (float(times[-1]) * cores)


def _open(rng: np.random.Generator, made: Plan, burst: float, count: int) -> tuple[float, float]:
    """Return how many tickets are open on average and at most, once the first are answered."""
    wanted = made.events_per_second * made.delay * SPANS
    if not wanted:
        return 0.0, 0.0
    weight = max(1.0, wanted / count)
    times = arrivals(rng, max(1, int(wanted / weight)), made.events_per_second / weight, burst)
    known = times + _delays(rng, len(times), made.delay)
    # A forecast opens one ticket, an outcome closes one: half of the forecasts warm up.
    moments = np.concatenate([times, known])
    steps = np.concatenate([np.ones(len(times)), -np.ones(len(times))])
    order = np.argsort(moments, kind="stable")
    level, when = np.cumsum(steps[order]) * weight, moments[order]
    seen = (when >= times[len(times) // 2]) & (when <= times[-1])
    spans = np.diff(when, append=when[-1])[seen]
    mean = float((level[seen] * spans).sum() / spans.sum()) if spans.sum() else float(level[-1])
    return mean, float(level[seen].max())
