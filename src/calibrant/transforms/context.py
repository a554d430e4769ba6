"""What is known of a round besides its raw forecast, read by one of the experts."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from functools import partial
from typing import Any

from calibrant.core import check
from calibrant.errors import InvalidInput
from calibrant.kernels.portable import logit
from calibrant.kernels.transforms import context
from calibrant.kernels.transforms.kernel import Kernel
from calibrant.registry import transforms
from calibrant.transforms.base import State, Transform, rules
from calibrant.transforms.online_platt import clipping, positive


def power(value: Any, name: str) -> int:
    """Return a number of places."""
    places = check.whole(value, name, low=16, high=1 << 16)
    if places & (places - 1):
        raise InvalidInput(f"{name} must be a power of two, got {value!r}")
    return places


@transforms.add("context")
@dataclass(frozen=True)
class Context(Transform):
    """Learn what features by name tell of the outcome beyond the raw forecast.

    A logistic regression on the log-odds of the raw forecast and on the features that a forecast
    was given as its ``context``.  A number counts less its mean so far, over its spread so far, and
    by the third of its values in which it lies; a string counts by name and value.  Names are
    hashed, so that a state has a fixed size whatever comes.  Features are read by an expert
    of an :class:`~calibrant.transforms.ExpertMixture` alone, and by one of its experts at most.

    Parameters
    ----------
    places
        How many places there are for the weights of hashed names, a power of two: two names at
        one place share their weight.
    features
        How many features a round may have; each takes eight bytes of an open ticket.
    step
        The length of the steps.
    clip
        Raw forecasts are moved into [clip, 1 - clip] first.

    Notes
    -----
    Pseudo-code of a round with features f, where z is a number less its mean over its spread and
    [name third] is the place of that name and of the third in which z lies::

        x = {raw: logit(raw), 1: 1}
        for name, value in f:
            number:  x += {name: z, [name third]: 1}
            string:  x += {name=value: 1}
        p = sigmoid(w . x)
        for each place i of x:  g = (p - y) x_i;  G_i += g^2;  w_i -= step g / sqrt(G_i)
        take each number into the mean and the spread of its name

    No promise of its own: as an expert of a mixture it costs ln(1/w) / (eta T) at most,
    with w its first weight.

    References
    ----------
    Duchi, Hazan and Singer (2011), "Adaptive subgradient methods"; Weinberger et al. (2009),
    "Feature hashing for large scale multitask learning".

    Examples
    --------
    >>> Context().online().predict_one(0.3)
    0.3
    """

    checks = rules(
        places=power, features=partial(check.whole, low=1, high=256), step=positive, clip=clipping
    )
    fixed = tuple(range(context.FEATURE))
    reference = "Duchi, Hazan and Singer 2011; Weinberger et al. 2009"
    cost = "O(features) a round"

    places: int = 1024
    features: int = 64
    step: float = 0.1
    clip: float = 1e-3

    @functools.cached_property
    def kernel(self) -> Kernel:
        """The functions for that many features."""
        return context.make_context(self.features)

    @property
    def notes(self) -> int:
        """The slots, and the numbers in them as they count."""
        return 2 * self.features

    def note_positions(self) -> list[int]:
        """Return the slots, and where the log-odds of the last prediction are noted."""
        return [context.FEATURE, *super().note_positions()]

    def limits(self) -> dict[int, tuple[float, float]]:
        """Return the limits of what is divided by, and of roots."""
        first, moments = context.HEAD, context.HEAD + 2 * self.places
        squares = [context.LINE + 1, context.LINE + 3, *range(first + 1, moments, 2)]
        sums = range(moments, moments + 3 * (self.places // 4))
        above = [place for place in sums if (place - moments) % 3 != 1]
        return dict.fromkeys(squares, (context.FIRST, math.inf)) | dict.fromkeys(
            above, (0.0, math.inf)
        )

    def fresh(self) -> State:
        """Return the line of the raw forecast, and nothing known of any name."""
        first, few = context.FIRST, self.places // 4
        moments = context.HEAD + 2 * self.places
        shift = 32 - self.places.bit_length() + 1
        where = [shift, context.HEAD, moments, moments + 3 * few]
        head = [self.step, -logit(self.clip), *where, 0.0, 1.0, first, 0.0, first]
        weights = [0.0, first] * self.places
        return [*head, *weights, *[0.0] * (3 * few), *[0] * self.features, *[0.0] * self.features]
