"""The words of a command that makes the same numbers again."""

from __future__ import annotations

from calibrant.recalibrate import Recalibrator
from calibrant.stream import NumberSession, Session
from calibrant.stream.options import DEFAULT
from calibrant.summary import inner, method_of, options_of

__all__ = ["recalibrator_words"]


def recalibrator_words(session: Session) -> list[str]:
    """Return the options that make a session's recalibrator again."""
    if isinstance(session, NumberSession):
        return _of_numbers(session)
    recalibrator = inner(session.recalibrator)
    rule, method = recalibrator.calibrator, method_of(recalibrator)
    words = ["--resolution", str(rule.resolution), "--grid", rule.grid]
    words += ["--buckets", str(recalibrator.buckets)]
    words += [] if method == DEFAULT else ["--prior", str(recalibrator.prior)]
    safe = getattr(recalibrator, "raw_safe", None)
    words += [] if safe is None else ["--raw-safe", str(safe)]
    if isinstance(recalibrator, Recalibrator):
        loss = recalibrator.certificate().loss_name
        words = ["--method", method, *words, *([] if loss == "squared" else ["--loss", loss])]
    return words + ([] if session.seed is None else ["--seed", str(session.seed)])


def _of_numbers(session: NumberSession) -> list[str]:
    made = session.recalibrator
    levels = session.given or tuple(made.levels.tolist())
    words = ["--levels", ",".join(map(repr, levels)), "--method", made.method]
    found = options_of(made)
    sizes = [name for name in ("resolution", "prior") if name in found]
    words += [word for name in sizes for word in (f"--{name}", str(found[name]))]
    return words + ([] if session.seed is None else ["--seed", str(session.seed)])
