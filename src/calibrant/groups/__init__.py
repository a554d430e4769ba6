"""Calibrated in every group at once: names, masks, checking rules and intervals of time.

>>> from calibrant.groups import GroupRecalibrator
>>> rec = GroupRecalibrator(seed=7)
>>> ticket = rec.forecast(0.83, groups=["north", "summer"])
>>> rec.observe(ticket, 1).groups
('north', 'summer')
"""

from calibrant.groups.certificate import GroupCertificate, GroupRow, group_errors
from calibrant.groups.names import History, Period, TimeIntervals
from calibrant.groups.recalibrator import GroupRecalibrator
from calibrant.groups.spec import GroupTicket

__all__ = [
    "GroupCertificate",
    "GroupRecalibrator",
    "GroupRow",
    "GroupTicket",
    "History",
    "Period",
    "TimeIntervals",
    "group_errors",
]
