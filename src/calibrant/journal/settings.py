"""What a stream is, beside its model: what becomes of outcomes, and how many may be missing."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from calibrant.core import check
from calibrant.errors import InvalidInput

UNKNOWN: Final = ("refuse", "keep")
REVEAL: Final = ("forecast", "outcome")
MOST_EARLY: Final = 100_000
"""Outcomes that wait for their forecasts, at most, in a stream that says nothing else."""
NAMED: Final = 10
"""Classes that a message lists."""


@dataclass(frozen=True)
class Settings:
    """How a stream is kept.

    Parameters
    ----------
    keyed
        Whether the stream is many, distinguished by a key.
    unknown
        What becomes of an outcome whose forecast was not made: ``"refuse"``, or ``"keep"`` until
        the forecast is made.
    most_open
        How many outcomes may be missing before forecasts are refused, and how many may be kept
        before their forecasts; None for any number of the former, and 100,000 of the latter.
    alarm
        How probable a false alarm may be.
    made
        How the model was asked for, where a service made it.
    keep
        For how many seconds ids are known, at least: older ones may be purged; None for ever.
    labels
        Names of the classes, by which outcomes are told; None where there are none.
    reveal
        With what the draw is told: with the ``"forecast"``, or with the ``"outcome"``, until when
        there is a commitment to it.
    """

    keyed: bool = False
    unknown: str = "refuse"
    most_open: int | None = None
    alarm: float = 0.05
    made: dict[str, Any] = field(default_factory=dict)
    keep: float | None = None
    labels: list[str] | None = None
    reveal: str = "forecast"

    def __post_init__(self) -> None:
        check.choice(self.unknown, "unknown", UNKNOWN)
        if self.most_open is not None:
            check.whole(self.most_open, "most_open", low=1)
        check.choice(self.reveal, "reveal", REVEAL)
        check.probability(self.alarm, "alarm")
        if self.keep is not None and not check.real(self.keep, "keep") > 0:
            raise InvalidInput(f"keep must be above 0, got {self.keep!r}")

    @property
    def hides(self) -> bool:
        """Whether draws are told with their outcomes only."""
        return self.reveal == "outcome"

    @property
    def most_early(self) -> int:
        """How many outcomes may be kept before their forecasts."""
        return MOST_EARLY if self.most_open is None else self.most_open

    def number_of(self, label: Any) -> int:
        """Return the number of a class.

        >>> Settings(labels=["cat", "cow"]).number_of("cow")
        1
        """
        labels = self.labels or []
        if not isinstance(label, str) or label not in labels:
            rest = ", ..." if len(labels) > NAMED else ""
            known = ", ".join(repr(name) for name in labels[:NAMED]) + rest
            raise InvalidInput(f"outcome must be a class of the stream ({known}), got {label!r}")
        return labels.index(label)

    def told(self, outcome: Any) -> Any:
        """Return an outcome as it is told: the name of a class, where classes have names."""
        known = self.labels is not None and isinstance(outcome, (int, float))
        return self.labels[int(outcome)] if known and self.labels is not None else outcome

    def to_json(self) -> str:
        """Return the settings as text."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Settings:
        """Return the settings that :meth:`to_json` gave."""
        return cls(**json.loads(text))
