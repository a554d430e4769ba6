"""One transform after another."""

from __future__ import annotations

import abc
import dataclasses
import functools
from dataclasses import dataclass, field

from calibrant.core.limits import refuse_large
from calibrant.errors import InvalidType
from calibrant.kernels.transforms import chain
from calibrant.kernels.transforms.kernel import Kernel
from calibrant.registry import transforms
from calibrant.transforms.base import State, Transform, shifted
from calibrant.transforms.buckets import BucketHedge, BucketMeans
from calibrant.transforms.grids import RecalibrateRegret
from calibrant.transforms.online_platt import OnlinePlatt, platt_of


@dataclass(frozen=True)
class Chained(Transform):
    """What all chains of two transforms share."""

    @property
    @abc.abstractmethod
    def parts(self) -> tuple[Transform, Transform]:
        """The transform of the raw forecast, and that of its result."""

    @functools.cached_property
    def kernel(self) -> Kernel:
        """The functions of this very chain."""
        first, second = self.parts
        return chain.make_chain(first.kernel, second.kernel)

    notes = 1

    def fresh(self) -> State:
        """Return both fresh states."""
        first, second = (part.fresh() for part in self.parts)
        refuse_large(len(first) + len(second))
        start = chain.HEAD + len(first)
        return [chain.HEAD, start, start + len(second), *first, *second, 0.0]

    def constants(self) -> list[int]:
        """Return the chain's own constants and those of its parts."""
        first, second = self.parts
        middle = chain.HEAD + first.size
        inner = shifted(first, chain.HEAD)[0] + shifted(second, middle)[0]
        return [*range(chain.HEAD), *inner]

    def limits(self) -> dict[int, tuple[float, float]]:
        """Return the limits of the chain's parts."""
        first, second = self.parts
        middle = chain.HEAD + first.size
        return shifted(first, chain.HEAD)[1] | shifted(second, middle)[1]

    def note_positions(self) -> list[int]:
        """Return the chain's own note and those of its parts."""
        found, start = super().note_positions(), chain.HEAD
        for part in self.parts:
            found += [start + position for position in part.note_positions()]
            start += part.size
        return found


@dataclass(frozen=True)
class Composed(Chained):
    """A chain whose parts are made from its own parameters, and check them."""

    def __post_init__(self) -> None:
        for part in self.parts:
            self._take(part)

    def _take(self, part: Transform) -> None:
        """Take over the parameters that a part has checked."""
        own = {f.name for f in dataclasses.fields(self)}
        self._set(**{n: getattr(part, n) for n in own & {f.name for f in dataclasses.fields(part)}})


@transforms.add("chain")
@dataclass(frozen=True)
class Chain(Chained):
    """Let a second transform work on what a first one says.

    Both learn every outcome.

    Parameters
    ----------
    first, second
        The transforms.

    Notes
    -----
    The promise is the second one's, with the first one's forecasts as raw forecasts.

    Examples
    --------
    >>> online = Chain(OnlinePlatt(), BucketMeans(buckets=10)).online()
    >>> online.learn_one(0.7, 1)
    >>> online.predict_one(0.7)
    1.0
    """

    reference = "none"
    guarantee = "the second transform's, on the first one's forecasts"
    assumption = "the second transform's"
    cost = "that of both"

    first: Transform = field(default_factory=OnlinePlatt)
    second: Transform = field(default_factory=BucketMeans)

    def __post_init__(self) -> None:
        for name in ("first", "second"):
            if not isinstance(getattr(self, name), Transform):
                raise InvalidType(f"{name} must be a transform, got {getattr(self, name)!r}")

    @property
    def parts(self) -> tuple[Transform, Transform]:
        """The two transforms."""
        return self.first, self.second


@transforms.add("tracking")
@dataclass(frozen=True)
class Tracking(Composed):
    """Announce the mean outcome of past rounds whose online Platt forecast was alike (TOPS).

    Parameters
    ----------
    buckets
        Number of buckets of Platt's forecasts, of equal length.
    gamma, rho, clip
        As in :class:`~calibrant.transforms.OnlinePlatt`.

    Notes
    -----
    The Brier score is at most the refinement of Platt's bucketed forecasts plus
    B (1 + ln(T/B)) / T, whatever the outcomes.  No promise of calibration.

    References
    ----------
    Gupta and Ramdas (2023), "Online Platt Scaling with Calibeating".

    Examples
    --------
    >>> online = Tracking().online()
    >>> _ = online.replay([0.9] * 20, [0, 1] * 10)
    >>> 0.0 < online.predict_one(0.9) < 1.0
    True
    """

    reference = "Gupta and Ramdas 2023"
    guarantee = "Brier <= refinement of Platt's buckets + B(1 + ln(T/B))/T"

    buckets: int = 10
    gamma: float = 0.1
    rho: float = 100.0
    clip: float = 0.01

    @property
    def parts(self) -> tuple[Transform, Transform]:
        """Platt scaling and bucket means."""
        return platt_of(self), BucketMeans(buckets=self.buckets)


@transforms.add("hedging")
@dataclass(frozen=True)
class Hedging(Composed):
    """Draw calibrated forecasts in each bucket of online Platt forecasts (HOPS).

    Parameters
    ----------
    buckets
        Number of buckets of Platt's forecasts, of equal length.
    resolution, seed
        As in :class:`~calibrant.transforms.BucketHedge`.
    gamma, rho, clip
        As in :class:`~calibrant.transforms.OnlinePlatt`.

    Notes
    -----
    In expectation over the draws C2 <= 1/(4 N^2) + cells (1 + ln(T / cells)) / T with
    cells = buckets (N + 1), against every adversary that does not foresee the draw.  The paper has
    Foster's rule with slack in each bucket; the average gap used here has no slack.

    References
    ----------
    Gupta and Ramdas (2023), "Online Platt Scaling with Calibeating".

    Examples
    --------
    >>> online = Hedging(seed=7).online()
    >>> told = online.replay([0.9] * 1000, [0, 1] * 500)
    >>> abs(float(told.mean()) - 0.5) < 0.1
    True
    """

    reference = "Gupta and Ramdas 2023"
    guarantee = "E C2 <= 1/(4N^2) + B(N+1)(1 + ln(T/(B(N+1))))/T"
    assumption = "the outcome is chosen without sight of the round's coin"
    cost = "O(N) a round at worst, O(1) as a rule"

    buckets: int = 10
    resolution: int = 10
    seed: int = 0
    gamma: float = 0.1
    rho: float = 100.0
    clip: float = 0.01

    @property
    def parts(self) -> tuple[Transform, Transform]:
        """Platt scaling and the calibrators."""
        return platt_of(self), BucketHedge(self.buckets, self.resolution, self.seed)


@transforms.add("cascade")
@dataclass(frozen=True)
class Cascade(Composed):
    """Calibeat first, then calibrate: refinement and calibration with few cells.

    Parameters
    ----------
    buckets
        Number of buckets of raw forecasts, as in :class:`~calibrant.transforms.BucketMeans`.
    resolution, seed
        As in :class:`~calibrant.transforms.RecalibrateRegret`.

    Notes
    -----
    In expectation over the draws the Brier score is at most the refinement of the buckets plus
    B (1 + ln(T/B)) / T plus O(1/m + sqrt(m/T)), and C1 is O(1/m + sqrt(m/T)).

    References
    ----------
    Foster and Hart (2023), "Calibeating"; Okoroafor, Kleinberg and Sun (2024), "Faster
    recalibration of an online predictor via approachability".

    Examples
    --------
    >>> online = Cascade().online()
    >>> _ = online.replay([0.9] * 100, [0] * 100)
    >>> online.predict_one(0.9)
    0.0
    """

    reference = "Foster and Hart 2023; Okoroafor, Kleinberg and Sun 2024"
    guarantee = "E Brier <= refinement of the buckets + O(1/m + sqrt(m/T)); E C1 likewise"
    assumption = "the outcome is chosen without sight of the round's coin"
    cost = "O(log m) a round"

    buckets: int = 20
    resolution: int = 20
    seed: int = 0

    @property
    def parts(self) -> tuple[Transform, Transform]:
        """Bucket means and what calibrates them."""
        return BucketMeans(self.buckets), RecalibrateRegret(self.resolution, self.seed)
