"""What a monitor has to say."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Evidence:
    """Evidence against the forecasts so far.

    Attributes
    ----------
    now
        The money that a gambler has who started with 1 and bet against the forecasts at
        the forecasts' own odds; stays near or below 1 as long as the forecasts are right.
    highest
        The most money that the gambler ever had, at least 1.
    at
        After how many rounds the gambler had most.
    """

    now: float
    highest: float
    at: int

    @property
    def p_value(self) -> float:
        """An anytime-valid p-value: 1 over the highest evidence.

        >>> Evidence(3.0, 50.0, 812).p_value
        0.02
        """
        return 1.0 / self.highest


@dataclass(frozen=True)
class Change:
    """A change for the worse that the change alarm has found.

    Attributes
    ----------
    since
        How many rounds there were before the change: an estimate.
    after
        After how many rounds the alarm rang.
    bucket
        The bucket that gave the change away, or None if the stream as a whole did.
    remedy
        What would have made the forecasts better: ``"odds x 2"`` or ``"odds ^ 1/2"`` (they
        were over-confident), or ``"odds"`` of one bucket.
    """

    since: int
    after: int
    bucket: int | None
    remedy: str


@dataclass(frozen=True)
class BucketEvidence:
    """What happened in one bucket.

    Attributes
    ----------
    low, high
        The ends of the bucket.
    rounds
        Rounds whose forecast was in the bucket.
    forecast, frequency
        Mean forecast and mean outcome; not a number if the bucket is empty.
    evidence
        Evidence against the bucket's forecasts, now.
    flagged
        Whether the bucket's evidence ever reached the number of buckets over alpha.
    """

    low: float
    high: float
    rounds: int
    forecast: float
    frequency: float
    evidence: float
    flagged: bool
