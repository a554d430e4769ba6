"""What a run amounts to, followed in constant memory and told as plain data."""

from calibrant.summary.breakdown import Breakdown, Part
from calibrant.summary.collector import Collector, LogLoss
from calibrant.summary.interval import Interval, batch_means
from calibrant.summary.number_collector import NumberCollector, Seen
from calibrant.summary.number_story import (
    AnyStory,
    NumberStory,
    options_of,
    read_story,
    tell_numbers,
)
from calibrant.summary.promise import Engine, collector_for, inner, method_of
from calibrant.summary.story import (
    NAMES,
    VERSION,
    BucketRow,
    Headline,
    Histogram,
    Parts,
    Story,
    Trace,
    Windows,
)
from calibrant.summary.tell import summarise, tell

__all__ = [
    "NAMES",
    "VERSION",
    "AnyStory",
    "Breakdown",
    "BucketRow",
    "Collector",
    "Engine",
    "Headline",
    "Histogram",
    "Interval",
    "LogLoss",
    "NumberCollector",
    "NumberStory",
    "Part",
    "Parts",
    "Seen",
    "Story",
    "Trace",
    "Windows",
    "batch_means",
    "collector_for",
    "inner",
    "method_of",
    "options_of",
    "read_story",
    "summarise",
    "tell",
    "tell_numbers",
]
