"""Strongly adaptive online conformal prediction."""

from __future__ import annotations

from calibrant.bounds import saocp
from calibrant.kernels import intervals as kernel
from calibrant.regression.interval_method import IntervalMethod, Record, scale_of
from calibrant.regression.registry import interval_methods


@interval_methods.add("saocp")
class StronglyAdaptive(IntervalMethod):
    """A new scale-free learner in each round, with a life of its own; bets decide whom to trust.

    Parameters
    ----------
    scale
        The largest score; None takes the largest so far, and leaves the regret unmeasured.

    Notes
    -----
    At most four learners live at a time for each power of two in the number of rounds, so that
    a round takes time proportional to its logarithm, and memory is fixed.  A corrected outcome
    is counted anew, and in the losses; what the learners made of it cannot be undone.
    """

    name = "saocp"
    guarantee = "pinball regret <= 15 D sqrt(k (ln T + 1)) on every interval of k rounds"
    assumption = "scores in [0, D], D = scale"
    reference = "Bhatnagar, Wang, Xiong and Bai (2023), Improved online conformal prediction"
    program = kernel.SAOCP

    def __init__(self, coverage: float, *, scale: float | None = None) -> None:
        self._options = {"scale": scale_of(scale)}
        self._start(coverage, 1.0, scale_of(scale), kernel.SAOCP_WORDS)
        kernel.hire(self._fresh, 0, 1, 0.0)

    def record(self, delay: int) -> Record:
        """Return the regret to the best of 33 fixed radii, and its bound if scores kept to it."""
        s = self._seat.part()
        rounds, scale = int(s[kernel.ROUNDS]), s[kernel.SCALE]
        if scale == 0.0:
            return Record("regret", None, None)
        rivals = s[kernel.RIVALS : kernel.RIVALS + kernel.RIVAL_COUNT]
        regret = (s[kernel.OWN_LOSS] - min(rivals)) / rounds
        kept = s[kernel.LOW] >= 0.0 and s[kernel.HIGH] <= scale and not delay
        return Record("regret", regret, saocp(rounds, scale) if kept else None)
