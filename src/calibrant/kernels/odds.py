"""Log-odds as probabilities, many at a time."""

from __future__ import annotations

from typing import Any

from calibrant.kernels.portable import sigmoid


def sigmoids(values: Any, into: Any) -> None:
    """Write the probability of each of ``values`` to ``into``.

    >>> found = [0.0, 0.0]
    >>> sigmoids([0.0, -1.0], found)
    >>> found
    [0.5, 0.2689414213699951]
    """
    for t in range(len(values)):
        into[t] = sigmoid(values[t])
