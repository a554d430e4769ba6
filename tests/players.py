"""The loops that a batch must equal, and a switch for how batches are run."""

from __future__ import annotations

import dataclasses
import heapq
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np

from calibrant.errors import ExpiredTicket
from calibrant.kernels import bodies
from calibrant.kernels.compile import available
from calibrant.kernels.layout import BLOCKS, ROWS
from calibrant.recalibrate import rows

WAYS = ("plain", "compiled") if available() else ("plain",)
"""How batches can be run here."""


@contextmanager
def batches(rec, way):
    """Run the batches of this rule plain or compiled, however short they are."""
    made, short = vars(rec.spec.program), rows.SHORT
    kept = made.pop("machine", None)
    rows.SHORT = -1 if way == "compiled" else 1 << 60
    try:
        yield
    finally:
        rows.SHORT = short
        made.pop("machine", None)
        if kept is not None:
            made["machine"] = kept


def by_tickets(rec, raw, outcomes):
    """Forecast and observe, round by round."""
    tickets = []
    for p, y in zip(raw, outcomes, strict=True):
        tickets.append(rec.forecast(p))
        rec.observe(tickets[-1], y)
    return [t.value for t in tickets], [t.mean for t in tickets]


def one_by_one(rec, raw, outcomes):
    """Predict and learn, round by round."""
    values = []
    for p, y in zip(raw, outcomes, strict=True):
        values.append(rec.predict_one(p))
        rec.learn_one(p, y)
    return values


def by_late_tickets(rec, raw, outcomes, available, time=None):
    """Observe each outcome before the first later forecast that is not before it was known.

    What has expired by then is left alone; what never becomes known stays open.
    """
    times = [float(i) for i in range(len(raw))] if time is None else time
    waiting, tickets = [], []
    for row, (p, now) in enumerate(zip(raw, times, strict=True)):
        _deliver(rec, waiting, now)
        tickets.append(rec.forecast(p) if time is None else rec.forecast(p, time=now))
        if available[row] < np.inf:
            heapq.heappush(waiting, (available[row], row, tickets[-1], outcomes[row]))
    _deliver(rec, waiting, times[-1])
    return [t.value for t in tickets], [t.mean for t in tickets]


def _deliver(rec, waiting, now):
    while waiting and waiting[0][0] <= now:
        _, _, ticket, outcome = heapq.heappop(waiting)
        try:
            rec.observe(ticket, outcome)
        except ExpiredTicket:
            continue


def block_of(flat):
    """Return where the first block of the first row starts."""
    return int(flat[ROWS] + flat[BLOCKS])


def cells_of(rule, flat):
    """Return the cells of the first block, a view with a row for each."""
    first, size = block_of(flat) + len(rule.kernels.head), len(rule.kernels.cell)
    return flat[first : first + size * rule.lattice.cells].reshape(-1, size)


def stream(rounds, seed=0, *, edges=0):
    """Return raw forecasts, a few of them on bucket edges, and outcomes that half believe them."""
    rng = np.random.default_rng(seed)
    raw = rng.random(rounds)
    if edges:
        raw[::5] = rng.integers(0, edges + 1, len(raw[::5])) / edges
    outcomes = (rng.random(rounds) < 0.5 * raw + 0.25).astype(int)
    return raw.tolist(), outcomes.tolist()


class Buffer:
    """An array as compiled code sees it: plain numbers, read as integers or as doubles."""

    def __init__(self, array):
        self.array, self.data = array, array.data

    def __len__(self):
        return len(self.data)

    def __getitem__(self, k):
        return self.data[k]

    def __setitem__(self, k, value):
        self.data[k] = value

    def view(self, kind):
        return Buffer(self.array.view(kind))


COMPILED = (
    "peek_flat",
    "issue_flat",
    "learn_flat",
    "replay",
    "events",
    "preview",
)
"""The parts of a program that are machine code in the compiled one."""


def disguised(program):
    """The plain program behind the face of the compiled one."""

    def on_buffers(function):
        def call(*given):
            return function(*(Buffer(x) if isinstance(x, np.ndarray) else x for x in given))

        call.overloads = {"the only one": SimpleNamespace(entry_point=call)}
        return call

    return dataclasses.replace(
        program, **{name: on_buffers(getattr(program, name)) for name in COMPILED}
    )


def begin_plain(*models):
    """Let new streams like these begin with plain steps: forget what other tests have loaded."""
    for model in models:
        machine = vars(model.spec.program).get("machine")
        if machine is not None:
            vars(machine).pop("ready", None)


@contextmanager
def machine(program):
    """Let there be a compiled program: a real one, or without a compiler a disguised one."""
    made = vars(program)
    kept = made.pop("machine", None)
    if not available():
        made["machine"] = disguised(program)
        bodies.made.append(bodies.Tools(bodies.unpack, bodies.pack))
    try:
        yield
    finally:
        if not available():
            bodies.made.pop()
        made.pop("machine", None)
        if kept is not None:
            made["machine"] = kept


def beyond(limits, real):
    """Words just outside of limits, reals by their bits, and what is no number."""
    low, high = limits
    if real:
        values = [np.nextafter(low, -np.inf), np.nextafter(high, np.inf), np.nan]
        outside = [value for value in values if not low <= value <= high]
        return [int(np.float64(value).view(np.int64)) for value in outside]
    return [word for word in (low - 1, high + 1) if abs(word) < 1 << 63]
