"""The words of a command that makes the same numbers again."""

from __future__ import annotations

from calibrant.stream import Session

__all__ = ["recalibrator_words"]


def recalibrator_words(session: Session) -> list[str]:
    """Return the options that make a session's recalibrator again."""
    recalibrator = session.recalibrator
    rule = recalibrator.calibrator
    words = ["--method", rule.name, "--resolution", str(rule.resolution), "--grid", rule.grid]
    words += ["--buckets", str(recalibrator.buckets), "--prior", str(recalibrator.prior)]
    loss = recalibrator.certificate().loss_name
    words += [] if loss == "squared" else ["--loss", loss]
    return words + ([] if session.seed is None else ["--seed", str(session.seed)])
