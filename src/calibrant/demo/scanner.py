"""A stream to replay: a classifier that is too sure of itself and sees the world drift.

A machine reads handwritten digits and says how likely each is odd.  The images are
the 1,797 of 8 x 8 pixels that come with scikit-learn, and the classifier is a real
one: a logistic regression on 100 of them, which are too few for 64 pixels, so it is
surer than it is right.  What it reads afterwards is made up from the other images,
drawn again and again:

- its lens gets dirty, so that contrast falls and noise grows; at 60 % of the stream it
  is cleaned;
- the last fifth is of another mix: 4 in 10 digits are odd, no longer every second one.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.errors import MissingExtra

TRAINING: Final = 100
WEAK: Final = 0.1
"""Inverse strength of the regularisation."""
WHITE: Final = 16.0
"""The brightest that a pixel can be."""
CLEANED: Final = 0.6
"""Share of the stream after which the lens is clean again."""
MIX_CHANGES: Final = 0.8
BLOCK: Final = 10_000
"""Images made at a time, so that memory does not grow with the stream."""


@dataclass(frozen=True, eq=False)
class Stream:
    """What the machine said and what came true.

    Attributes
    ----------
    time
        Seconds since the start; one image a second.
    raw
        The classifier's probability that the digit is odd.
    outcome
        1 if it was, else 0.
    """

    time: Words
    raw: Reals
    outcome: Words

    def __len__(self) -> int:
        return len(self.raw)

    def write(self, path: Path) -> None:
        """Write the stream as a CSV file with a header."""
        columns = np.column_stack([self.time, self.raw, self.outcome])
        names = "time,raw,outcome"
        np.savetxt(path, columns, ("%d", "%.6f", "%d"), ",", header=names, comments="")


def scan(rounds: int = 100_000, seed: int = 7) -> Stream:
    """Return a stream of that many rounds.

    Parameters
    ----------
    rounds
        How many images to read.  However many: drift and cleaning take the same shares.
    seed
        Of the images drawn and of the noise; one seed, one stream.

    Examples
    --------
    >>> stream = scan(1000)
    >>> sure = stream.raw > 0.9
    >>> bool(stream.raw[sure].mean() > stream.outcome[sure].mean() + 0.05)
    True
    """
    total = check.whole(rounds, "rounds", low=1)
    rng = np.random.default_rng(seed)
    images, digits = _scikit_learn("datasets").load_digits(return_X_y=True)
    odd = digits % 2
    order = rng.permutation(len(odd))
    known, unseen = order[:TRAINING], order[TRAINING:]
    fresh = _scikit_learn("linear_model").LogisticRegression(C=WEAK, max_iter=1000)
    classifier = fresh.fit(images[known], odd[known])
    raw, outcome = np.empty(total), np.empty(total, np.int64)
    for block, share in _blocks(total):
        rows = _pick(share, unseen, odd, rng)
        seen = _through_the_lens(images[rows], share, rng)
        raw[block] = classifier.predict_proba(seen)[:, 1]
        outcome[block] = odd[rows]
    return Stream(np.arange(total), raw, outcome)


def _scikit_learn(part: str) -> Any:
    told = "the demo's stream needs scikit-learn, which is not installed: pip install scikit-learn"
    try:
        return importlib.import_module(f"sklearn.{part}")
    except ModuleNotFoundError as error:
        raise MissingExtra(told) from error


def _blocks(rounds: int) -> Iterator[tuple[slice, Reals]]:
    """Yield the parts of a stream, and for each round how much of the stream is over."""
    for start in range(0, rounds, BLOCK):
        end = min(start + BLOCK, rounds)
        yield slice(start, end), np.arange(start, end) / rounds


def _pick(share: Reals, unseen: Words, odd: Words, rng: np.random.Generator) -> Words:
    """Draw an image for each round, odd or even as the mix of its time has it."""
    wanted = rng.random(len(share)) < np.where(share < MIX_CHANGES, 0.5, 0.4)
    of_odd = rng.choice(unseen[odd[unseen] == 1], len(share))
    of_even = rng.choice(unseen[odd[unseen] == 0], len(share))
    return np.where(wanted, of_odd, of_even)


def _through_the_lens(images: Reals, share: Reals, rng: np.random.Generator) -> Reals:
    """Return what the machine sees of images through a lens that gets dirty."""
    dirt = np.where(share < CLEANED, share / CLEANED, 0.0)[:, np.newaxis]
    noise = rng.normal(0.0, 2.0 + 6.0 * dirt, images.shape)
    return np.clip(images * (1.0 - 0.4 * dirt) + noise, 0.0, WHITE)
