"""Two transforms one after the other."""

from __future__ import annotations

import functools

from calibrant.kernels.layout import INDEX, Reals, Words
from calibrant.kernels.transforms.kernel import Kernel

FIRST, SECOND, BETWEEN, HEAD = range(4)
"""Which word is which.

- ``FIRST``: Where the first one's words start, relative to the chain's.
- ``SECOND``: Where the second one's do.
- ``BETWEEN``: Where the note of what the first one said is.
"""


@functools.cache
def make_chain(first: Kernel, second: Kernel) -> Kernel:
    """Return the kernel of ``second`` at work on what ``first`` says."""
    predict_first, learn_first = first.predict, first.learn
    predict_second, learn_second = second.predict, second.learn

    def predict(words: Words, reals: Reals, at: int, raw: float) -> float:
        middle = predict_first(words, reals, at + (words[at + FIRST] & INDEX), raw)
        middle = middle if 0.0 <= middle <= 1.0 else raw
        reals[at + (words[at + BETWEEN] & INDEX)] = middle
        return predict_second(words, reals, at + (words[at + SECOND] & INDEX), middle)

    def learn(words: Words, reals: Reals, at: int, raw: float, told: float, outcome: int) -> None:
        middle = reals[at + (words[at + BETWEEN] & INDEX)]
        learn_second(words, reals, at + (words[at + SECOND] & INDEX), middle, told, outcome)
        learn_first(words, reals, at + (words[at + FIRST] & INDEX), raw, middle, outcome)

    return Kernel(predict, learn)
