"""Raw and calibrated forecasts under the same eyes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

from numpy.typing import ArrayLike

from calibrant.core import check
from calibrant.core.arrays import as_words
from calibrant.core.codec import Document
from calibrant.core.gate import Gate
from calibrant.core.stateful import Stateful
from calibrant.core.ticket import Ticket
from calibrant.errors import InvalidInput, InvalidType
from calibrant.monitor.monitor import Monitor

KIND: Final = "watch"


class Watch(Stateful):
    """Follow the raw and the calibrated forecasts of the same outcomes side by side.

    Parameters
    ----------
    alpha, **options
        Settings of both monitors; see :class:`Monitor`.  Each monitor has its own ``alpha``.
    learning
        Rounds at the beginning in which the calibrated forecasts are not judged: a
        recalibrator that has not learned yet is off, and the monitor would find that out.

    Notes
    -----
    The *mean* forecast is what to watch: the draw is off the chance of its outcome by
    up to a cell on purpose, and the monitor would find that out.  To watch draws, allow
    for it with a ``tolerance`` of 1/resolution.

    Safe to call from several threads: every call holds the watch's gate, so both monitors get the
    rounds in the same order.

    Examples
    --------
    >>> from calibrant import Recalibrator
    >>> rec, watch = Recalibrator(seed=1), Watch(alpha=0.01)
    >>> for k in range(60):
    ...     ticket = rec.observe(rec.forecast(0.9), k % 2)
    ...     watch.settle(ticket)
    >>> watch
    Watch(rounds=60, raw: alarm after 17 rounds, calibrated: no alarm)
    """

    kind: ClassVar = KIND

    __slots__ = ("_gate", "calibrated", "learning", "raw")

    def __init__(self, alpha: float = 0.01, *, learning: int = 0, **options: Any) -> None:
        self.learning = check.whole(learning, "learning")
        self.raw = Monitor(alpha, **options)
        self.calibrated = Monitor(alpha, **options)
        self.calibrated.skip(self.learning)
        self._gate = Gate()

    @property
    def rounds(self) -> int:
        """Rounds so far."""
        with self._gate:
            return self.raw.rounds

    def update(self, raw: float, forecast: float, outcome: int) -> None:
        """Add one round: the raw forecast, what was announced in its place, the outcome."""
        check.probability(raw)
        check.probability(forecast, "forecast")

        def add() -> None:
            self.raw.update(raw, outcome)
            if self.raw.rounds > self.learning:
                self.calibrated.update(forecast, outcome)

        self._change(add)

    def update_many(
        self,
        raw: ArrayLike,
        forecasts: ArrayLike,
        outcomes: ArrayLike,
        *,
        compile: bool | None = None,
    ) -> None:
        """Add many rounds in order; exactly the same as one :meth:`update` for each."""
        first, second = check.probabilities(raw), check.probabilities(forecasts, "forecasts")
        told = check.outcomes(outcomes)
        check.same_length(raw=first, forecasts=second, outcomes=told)

        def add() -> None:
            judged = max(self.learning - self.raw.rounds, 0)
            self.raw.update_many(first, told, compile=compile)
            self.calibrated.update_many(second[judged:], told[judged:], compile=compile)

        self._change(add)

    def settle(self, ticket: Ticket) -> None:
        """Add the round of a closed ticket, with its mean forecast."""
        self.update(*settled(ticket))

    def restart(self) -> None:
        """Forget all evidence about both and begin anew; what is learned stays learned."""

        def begin() -> None:
            self.raw.restart()
            self.calibrated.restart()

        self._change(begin)

    def _change(self, change: Callable[[], None]) -> None:
        """Change both monitors; if that is interrupted or refused, neither has changed."""
        with self._gate:
            kept = [(monitor, monitor._kept()) for monitor in (self.raw, self.calibrated)]
            try:
                change()
            except BaseException:
                for monitor, before in kept:
                    monitor._put_back(before)
                raise

    # ------------------------------------------------------------------- state

    def __repr__(self) -> str:
        with self._gate:
            both = {"raw": self.raw, "calibrated": self.calibrated}
            told = ", ".join(f"{name}: {_state(monitor)}" for name, monitor in both.items())
            return f"Watch(rounds={self.raw.rounds}, {told})"

    def _document(self) -> Document:
        with self._gate:
            both = {"raw": self.raw.to_bytes(), "calibrated": self.calibrated.to_bytes()}
        lengths = {"learning": self.learning} | {name: len(data) for name, data in both.items()}
        return Document(KIND, lengths, {name: as_words(data) for name, data in both.items()})

    def _restore(self, document: Document) -> None:
        self.learning = check.whole(document.settings["learning"], "learning")
        for name in ("raw", "calibrated"):
            stored = document.arrays[name].astype("<i8").tobytes()[: document.settings[name]]
            setattr(self, name, Monitor.from_bytes(stored))
        self._gate = Gate()


def settled(ticket: Ticket) -> tuple[float, float, int]:
    """Return the raw forecast, the mean forecast and the outcome of a closed ticket."""
    if not isinstance(ticket, Ticket):
        raise InvalidType(f"ticket must be a Ticket, got {ticket!r}")
    if ticket.outcome is None:
        raise InvalidInput(f"ticket must be closed, got {ticket!r}")
    return ticket.raw, min(max(ticket.mean, 0.0), 1.0), ticket.outcome


def _state(monitor: Monitor) -> str:
    after = monitor.alarm_after
    return "no alarm" if after is None else f"alarm after {after} rounds"
