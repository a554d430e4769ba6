"""What a run amounts to, followed in constant memory and given as plain data."""

from calibrant._renamed import renamed
from calibrant.summary.collected import Account, Interval, batch_means, measured, summarise
from calibrant.summary.collector import Breakdown, Collector, LogLoss, Part
from calibrant.summary.follower import Follower
from calibrant.summary.glance import Glance, glance
from calibrant.summary.kind import Kind, collector_for, kinds, read_summary, summarise_collected
from calibrant.summary.pieces import NAMES, BucketRow, Headline, Histogram, Parts, Trace, Windows
from calibrant.summary.summary import VERSION, AnySummary, Engine, Summary, Told, read_if

__all__ = [
    "NAMES", "VERSION", "Account", "AnySummary", "Breakdown", "BucketRow", "Collector", "Engine",
    "Follower", "Glance", "Headline", "Histogram", "Interval", "Kind", "LogLoss", "Part", "Parts",
    "Summary", "Told", "Trace", "Windows", "batch_means", "collector_for", "glance", "kinds",
    "measured", "read_if", "read_summary", "summarise", "summarise_collected",
]  # fmt: skip

__getattr__ = renamed(
    __name__,
    {
        "AnyStory": "calibrant.summary:AnySummary",
        "NumberCollector": "calibrant.kinds.numbers:NumberCollector",
        "NumberStory": "calibrant.kinds.numbers:NumberSummary",
        "Seen": "calibrant.kinds.numbers:Seen",
        "Story": "calibrant.summary:Summary",
        "inner": "calibrant.kinds.binary:inner",
        "method_of": "calibrant.kinds.binary:method_of",
        "options_of": "calibrant.kinds.numbers:options_of",
        "read_story": "calibrant.summary:read_summary",
        "tell": "calibrant.summary:summarise_collected",
        "tell_numbers": "calibrant.summary:summarise_collected",
    },
)
