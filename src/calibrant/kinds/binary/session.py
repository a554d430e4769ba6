"""A stream of probabilities, one a row, and the recalibrator that options ask for."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.core import check
from calibrant.errors import ExpiredTicket, InvalidInput
from calibrant.kinds.binary import inner, method_of
from calibrant.losses import require_proper
from calibrant.recalibrate import Calibrant, Recalibrator
from calibrant.stream import session
from calibrant.stream.columns import Scale
from calibrant.stream.ids import Open
from calibrant.stream.rows import Rounds
from calibrant.summary import AnySummary, collector_for, kinds


class Probabilities(session.Session):
    """What sessions of probabilities share, be it one a row or one for each class."""

    def summary(self, settings: Mapping[str, Any], timing: Mapping[str, float]) -> AnySummary:
        return super().summary({**settings, "scale": self.scale.kind}, timing)

    def asked(self, options: session.Options) -> dict[str, Any]:
        drawing = inner(self.recalibrator)
        found: dict[str, Any] = {
            "method": method_of(drawing),
            "resolution": drawing.calibrator.resolution,
            "buckets": drawing.buckets,
            "grid": drawing.calibrator.grid,
            "prior": drawing.prior,
            "raw_safe": getattr(drawing, "raw_safe", None),
            "seed": self.seed,
            "scale": self.scale.kind,
            **dict.fromkeys(kinds.options, ()),
            **self.kept_columns,
        }
        if isinstance(drawing, Recalibrator):
            found["loss"] = drawing.certificate().loss_name
        if options.epsilon is not None:
            # Another epsilon that asks for the same sizes is as good.
            named = {name: found[name] for name in ("method", "grid", "loss")}
            made = replace(options, **named).recalibrator(0)
            sizes = made.calibrator.resolution, made.buckets
            same = sizes == (found["resolution"], found["buckets"])
            found["epsilon"] = options.epsilon if same else None
        return found

    def words(self) -> list[str]:
        told = self.asked(session.Options())
        names = ["resolution", "grid", "buckets"]
        names += [] if told["method"] == session.DEFAULT else ["prior"]
        names += [] if told["raw_safe"] is None else ["raw_safe"]
        if "loss" in told:
            names = ["method", *names, *([] if told["loss"] == "squared" else ["loss"])]
        names += [] if self.seed is None else ["seed"]
        return [word for name in names for word in (option(name), str(told[name]))]


def option(name: str) -> str:
    """Return what an option is called on the command line.

    >>> option("raw_safe")
    '--raw-safe'
    """
    return f"--{name.replace('_', '-')}"


@dataclass
class BinarySession(Probabilities):
    """A session of a :class:`~calibrant.Recalibrator`."""

    settles: ClassVar[bool] = True

    @classmethod
    def start(cls, made: Any, options: session.Options, seed: int | None) -> Self:
        """Return a session before its first row."""
        scale = Scale(options.scale or "probability")
        return cls(made, collector_for(made), scale, seed, columns=options.context)

    @classmethod
    def around(cls, made: Any) -> Self:
        """Return a session of a recalibrator that was stored alone."""
        return cls(made, collector_for(made), Scale(), None)

    @property
    def kept_columns(self) -> dict[str, tuple[str, ...]]:
        return {"context": self.columns} if self.columns else {}

    def kept(self) -> tuple[dict[str, Any], dict[str, Any]]:
        told, arrays = super().kept()
        names = self.kept_columns.get("context", ())
        return told | ({"context": list(names)} if names else {}), arrays

    @classmethod
    def restored(cls, settings: Mapping[str, Any], arrays: Mapping[str, Any]) -> dict[str, Any]:
        told = {"columns": session.names_of(settings["context"])} if "context" in settings else {}
        return super().restored(settings, arrays) | told

    def journaled(self, path: str, seed: int | None) -> Any:
        if not self.settles:
            return super().journaled(path, seed)
        from calibrant.kinds.binary.journaled import JournaledSession

        return JournaledSession.opened(path, self, seed)

    def settle(self, forecast: Open, outcome: int) -> None:
        with suppress(ExpiredTicket):
            self.recalibrator.observe(forecast.ticket, outcome)
        self.unresolved -= 1
        raw, drawn, mean = (np.array([value]) for value in forecast[1:])
        rounds = Rounds(raw, np.array([outcome], np.uint8), np.array([True]), None, None)
        self._follow(
            rounds, session.Answers(drawn, mean, np.zeros(1, np.int64), np.zeros(1, np.int64))
        )

    def _follow(self, rounds: Rounds, answers: Any) -> None:
        columns: list[NDArray[Any]] = [rounds.raw, *answers[:2], rounds.outcomes]
        if getattr(self.recalibrator, "raw_safe", None) is not None:
            columns[1] = self.collector.nearest(columns[1])
        if not rounds.known.all():
            columns = [column[rounds.known] for column in columns]
        self.collector.update(*columns, compile=self.long, checked=True)

    def _play_prompt(self, rounds: Rounds) -> session.Answers:
        return self._answers(rounds)

    def _play_late(self, rounds: Rounds) -> session.Answers:
        told = rounds.delivery(self.recalibrator.issued)
        return self._answers(rounds, **told, carry=self.pending)

    def _answers(self, rounds: Rounds, **delivery: Any) -> session.Answers:
        if rounds.context is not None:
            columns = rounds.context.T.tolist()
            delivery["context"] = dict(zip(self.columns, columns, strict=True))
        run = self.recalibrator.replay(rounds.raw, rounds.outcomes, **delivery)
        if "carry" in delivery:
            self.pending = session.expected(run.pending)
        # A mean is a sum of products and may round to just above 1.
        mean = np.minimum(run.mean, 1.0, out=run.mean)
        return session.Answers(run.forecast, mean, run.bucket, run.ticket)

    def _ask(self, rounds: Rounds, time: float, number: int, **groups: Any) -> session.Answers:
        if rounds.context is not None:
            groups["context"] = dict(zip(self.columns, rounds.context[0].tolist(), strict=True))
        ticket = self.recalibrator.forecast(float(rounds.raw[0]), time=time, **groups)
        found = (ticket.value, min(ticket.mean, 1.0)), (ticket.bucket, number)
        return session.Answers(*(np.array([value]) for pair in found for value in pair))


SIZES: Final = ("resolution", "buckets", "grid", "loss", "prior")
ELSE: Final = "for Algorithm 1 alone choose a method such as foster_hart"
EPSILON: Final = f"calibrant keeps its grid, and its certificate says what it costs; {ELSE}"
PRIOR: Final = f"calibrant learns how far to trust the raw forecast; {ELSE}"
LOSS: Final = f"under these calibrant compares its experts; {ELSE}"
SAFE: Final = "only the method calibrant keeps a budget"
READS: Final = "only the method calibrant has an expert that reads it"


def make(options: session.Options, seed: int | None) -> Recalibrator:
    """Return the default, or Algorithm 1 with the calibrator asked for."""
    method = method_asked(options)
    if method == session.DEFAULT:
        told = options.drawn(seed) | of_default(options)
        return Calibrant(raw_safe=options.raw_safe, context=bool(options.context), **told)
    options.refuse({"raw_safe": SAFE, "context": READS})
    told = options.drawn(seed) | options.given(SIZES)
    if options.epsilon is None:
        return Recalibrator(method, **told)
    return Recalibrator.from_epsilon(options.epsilon, method=method, **told)


def method_asked(options: session.Options) -> str:
    """Return the method that options name, or the default."""
    return check.choice(options.method or session.DEFAULT, "method", session.METHODS)


def of_default(options: session.Options) -> dict[str, Any]:
    """Return the default's options; refuse what only other methods know."""
    options.refuse({"epsilon": EPSILON, "prior": PRIOR})
    given = options.given(SIZES)
    loss = require_proper(given.get("loss", "squared"))
    if loss.name not in session.LOSSES:
        known = " or ".join(map(repr, session.LOSSES))
        raise InvalidInput(f"loss must be {known}: {LOSS}, got {loss.name!r}")
    return given
