"""What the chain of the default promises after so many rounds, before any was played."""

from __future__ import annotations

import numpy as np

from calibrant import bounds
from calibrant.calibrators import Account, Calibrator
from calibrant.core.arrays import Words
from calibrant.losses import Loss, get_loss
from calibrant.recalibrate import Calibrant
from calibrant.transforms import ExpertMixture, Identity


def chained(made: Calibrant, rounds: int) -> dict[str, float]:
    """Return the bound of each link on the extra loss, and of all of them to the raw forecast.

    Parameters
    ----------
    made
        A default whose experts are the usual ones.
    rounds
        How many.

    Examples
    --------
    >>> found = chained(Calibrant(), 100_000)
    >>> {name: round(bound, 4) for name, bound in found.items()}
    {'to_mixture': 0.0013, 'mixture_to_raw': 0.0002, 'mixture_to_expert': 0.0002, 'to_raw': 0.0014}
    """
    mixture = made.transform
    assert isinstance(mixture, ExpertMixture)
    first, names = mixture.start or (), [isinstance(each, Identity) for each in mixture.experts]
    own = [
        bounds.mixture(rounds, len(first), mixture.share, mixture.eta or 1.0, start=weight).value
        for weight in first
    ]
    last = draw_to_front(made.calibrator, get_loss(mixture.loss), rounds, made.buckets)
    raw = min(bound for bound, is_raw in zip(own, names, strict=True) if is_raw)
    return {
        "to_mixture": last,
        "mixture_to_raw": raw,
        "mixture_to_expert": max(own),
        "to_raw": last + raw,
    }


def draw_to_front(rule: Calibrator, loss: Loss, rounds: int, buckets: int) -> float:
    """Return the smallest bound on how much more than what comes in the draws lose."""
    low, high = (float(rule.lattice.values[k]) for k in (0, -1))
    promised = rule.bound(rounds, buckets=buckets)
    found = [bounds.regret_bound(promised or 1.0, loss, buckets, low=low, high=high)]
    own = rule.regret(_evenly(rule, rounds, buckets)) if loss.name == "squared" else None
    return min(bound.value for bound in (*found, *([] if own is None else [own])))


def _evenly(rule: Calibrator, rounds: int, buckets: int) -> Account:
    """Return an account whose rounds are spread over all cells: the worst case, by concavity."""
    cells = buckets * rule.lattice.cells
    counts: Words = np.full(cells, rounds // cells)
    counts[: rounds % cells] += 1
    table = counts.reshape(buckets, -1)
    return Account(table, np.zeros_like(table), 0, np.zeros(buckets), np.zeros(0, np.int64))
