"""How little of late outcomes experts over classes and numbers learn where these may be alike.

As :mod:`calibrant.kernels.crowd` for binary forecasts, with more doubt: a vector or a distribution
has more to be misled in by few results.
"""

from __future__ import annotations

import math
from typing import Final

PRIOR: Final = 2.0
"""As so many squares that show outcomes to be the same a stream begins."""
CROWDS: Final = 4.0
"""Errors are remembered over so many crowds, and some more."""
DOUBT: Final = 512.0
"""After so many results of crowds these are believed by half."""


def wary_part(crowd: float, same: float, learned: float) -> float:
    """Return which part experts learn of one of ``crowd`` outcomes.

    So many of these are the ``same``, and so many were ``learned`` before.
    """
    slow = same * (1.0 + DOUBT * (same - 1.0) / (1.0 + learned))
    return 1.0 / max(math.sqrt(crowd), slow)
