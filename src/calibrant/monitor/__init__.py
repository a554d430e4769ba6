"""Are these forecasts calibrated, and since when not: alarms that may be looked at any time.

>>> from calibrant.monitor import Monitor
>>> monitor = Monitor(alpha=0.01)
>>> monitor.update_many([0.9] * 40, [0, 1] * 20)
>>> monitor.alarm, monitor.since
(True, 0)
"""

from calibrant.monitor.group_watch import Alarm, GroupWatch
from calibrant.monitor.late import LateAlarm, LateWatch
from calibrant.monitor.monitor import BucketEvidence, Change, Evidence, Monitor
from calibrant.monitor.watch import Watch

__all__ = [
    "Alarm", "BucketEvidence", "Change", "Evidence", "GroupWatch", "LateAlarm", "LateWatch",
    "Monitor", "Watch",
]  # fmt: skip
