"""Where the ways to recalibrate quantiles and to find intervals are found by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibrant.registry import Registry

if TYPE_CHECKING:
    from calibrant.regression.interval_method import IntervalMethod
    from calibrant.regression.level_method import LevelMethod

quantile_methods: Registry[type[LevelMethod]] = Registry("method")
"""What :class:`calibrant.regression.QuantileRecalibrator` can do."""

interval_methods: Registry[type[IntervalMethod]] = Registry("method")
"""What :class:`calibrant.regression.ConformalInterval` can do."""
