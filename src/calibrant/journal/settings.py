"""What a stream is, beside its model: what becomes of outcomes, and how many may be missing."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from calibrant.core import check
from calibrant.errors import InvalidInput

UNKNOWN: Final = ("refuse", "keep")


@dataclass(frozen=True)
class Settings:
    """How a stream is kept.

    Parameters
    ----------
    keyed
        Whether the stream is many, told apart by a key.
    unknown
        What becomes of an outcome whose forecast was not made: ``"refuse"``, or ``"keep"`` until
        the forecast is made.
    most_open
        How many outcomes may be missing before forecasts are refused; None for any number.
    alarm
        How probable a false alarm may be.
    made
        How the model was asked for, where a service made it.
    keep
        For how many seconds ids are known, at least: older ones may be purged; None for ever.
    """

    keyed: bool = False
    unknown: str = "refuse"
    most_open: int | None = None
    alarm: float = 0.05
    made: dict[str, Any] = field(default_factory=dict)
    keep: float | None = None

    def __post_init__(self) -> None:
        check.choice(self.unknown, "unknown", UNKNOWN)
        if self.most_open is not None:
            check.whole(self.most_open, "most_open", low=1)
        check.probability(self.alarm, "alarm")
        if self.keep is not None and not check.real(self.keep, "keep") > 0:
            raise InvalidInput(f"keep must be above 0, got {self.keep!r}")

    def to_json(self) -> str:
        """Return the settings as text."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Settings:
        """Return the settings that :meth:`to_json` gave."""
        told: dict[str, Any] = json.loads(text)
        return cls(**told)
