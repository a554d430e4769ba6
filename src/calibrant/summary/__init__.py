"""What a run amounts to, followed in constant memory and told as plain data."""

from calibrant.summary.collector import Collector, LogLoss
from calibrant.summary.interval import Interval, batch_means
from calibrant.summary.story import (
    NAMES,
    VERSION,
    BucketRow,
    Headline,
    Histogram,
    Story,
    Trace,
    Windows,
)
from calibrant.summary.tell import summarise, tell

__all__ = [
    "NAMES",
    "VERSION",
    "BucketRow",
    "Collector",
    "Headline",
    "Histogram",
    "Interval",
    "LogLoss",
    "Story",
    "Trace",
    "Windows",
    "batch_means",
    "summarise",
    "tell",
]
