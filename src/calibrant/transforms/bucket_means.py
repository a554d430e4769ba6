"""Running means of the outcomes in buckets of raw forecasts."""

from __future__ import annotations

import math
from dataclasses import dataclass

from calibrant.core import check
from calibrant.kernels.transforms import means
from calibrant.registry import transforms
from calibrant.transforms.base import State, Transform

MOST: int = 1 << 16


@transforms.add("bucket_means")
@dataclass(frozen=True)
class BucketMeans(Transform):
    """Announce the mean of the past outcomes in the raw forecast's bucket.

    Where a bucket has seen nothing, the raw forecast.

    Parameters
    ----------
    buckets
        Number of buckets, of equal length.
    memory
        How many visits a bucket remembers: at each visit the past loses one part in
        ``memory``.  Infinite (or None): nothing is forgotten.
    prior
        How many outcomes, worth the raw forecast each, are mixed into every mean.

    Notes
    -----
    Without forgetting and prior the Brier score is at most that of the best value for each bucket
    in hindsight plus (1/T) sum_j H(n_j) <= B (1 + ln(T/B)) / T, whatever the outcomes
    (*calibeating*).  No promise of calibration against an adversary: the forecast is not random.

    References
    ----------
    Foster and Hart (2023), "Calibeating: beating forecasters at their own game".

    Examples
    --------
    >>> online = BucketMeans(buckets=4, prior=1.0).online()
    >>> online.learn_one(0.9, 0)
    >>> online.predict_one(0.9)
    0.45
    """

    name = "bucket_means"
    kernel = means.KERNEL
    reference = "Foster and Hart 2023"
    guarantee = "Brier <= refinement of the buckets + B(1 + ln(T/B))/T"
    assumption = "no forgetting, no prior"
    cost = "O(1) a round"

    buckets: int = 20
    memory: float | None = math.inf
    prior: float = 0.0

    def __post_init__(self) -> None:
        self._set(
            buckets=check.whole(self.buckets, "buckets", low=1, high=MOST),
            memory=remembered(self.memory),
            prior=check.real(self.prior, "prior", low=0.0, rule="a finite number of at least 0"),
        )

    @property
    def kept(self) -> float:
        """Which part of the past is left after a visit."""
        return 1.0 - 1.0 / (self.memory or math.inf)

    def fresh(self) -> State:
        """Return empty buckets."""
        return fresh_bank((self,))

    def constants(self) -> list[int]:
        """Return where the parameters are."""
        return constants_of_bank((self,))


def remembered(memory: float | None) -> float:
    """Return a memory, infinite if it is None."""
    if memory is None or memory == math.inf:
        return math.inf
    return check.real(memory, "memory", low=1.0, rule="a number of at least 1, or None")


def fresh_bank(members: tuple[BucketMeans, ...]) -> State:
    """Return the empty buckets of several members that share them."""
    size = members[0].buckets
    words: State = [size]
    words += [member.kept for member in members] + [member.prior for member in members]
    words += [j / size for j in range(size)] + [2.0]
    return words + [0.0] * (2 * len(members) * size)


def constants_of_bank(members: tuple[BucketMeans, ...]) -> list[int]:
    """Return which words of a bank come before its cells."""
    return list(range(means.KEPT + 2 * len(members) + members[0].buckets + 1))
