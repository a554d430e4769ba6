"""Two transforms one after the other."""

from __future__ import annotations

import abc
import dataclasses
import functools
from dataclasses import dataclass, field

from calibrant.errors import InvalidType
from calibrant.kernels.transforms import chain
from calibrant.kernels.transforms.kernel import Kernel
from calibrant.registry import transforms
from calibrant.transforms.base import State, Transform, shifted
from calibrant.transforms.bucket_means import BucketMeans
from calibrant.transforms.online_platt import OnlinePlatt


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

    notes = chain.NOTES

    def fresh(self) -> State:
        """Return both fresh states."""
        first, second = (part.fresh() for part in self.parts)
        start = chain.HEAD + len(first)
        return [chain.HEAD, start, start + len(second), *first, *second, 0.0]

    def constants(self) -> list[int]:
        """Return the chain's own constants and those of its parts."""
        first, second = self.parts
        middle = chain.HEAD + first.size
        inner = shifted(first, chain.HEAD)[0] + shifted(second, middle)[0]
        return [*range(chain.HEAD), *inner]

    def limits(self) -> dict[int, tuple[int, int]]:
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

    name = "chain"
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
