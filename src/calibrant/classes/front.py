"""What stands before the recalibrators of classes: a mixture of scaled vectors, and a blend."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from calibrant.core.arrays import Reals, Words
from calibrant.core.limits import refuse_large
from calibrant.kernels import scaling as kernel
from calibrant.kernels.compile import SHORT, available, compiled

LARGEST: Final = 1e15
"""What no number of a state exceeds."""
WHOLE: Final = 1e-9
"""How far from 1 weights may sum up."""


class Front:
    """Mend whole vectors online; see :mod:`calibrant.kernels.scaling`.

    Plain Python works on lists.  After :meth:`compile`, or the first long batch, machine code works
    on arrays; both give the same bits.

    Parameters
    ----------
    classes
        Number of classes K.

    Examples
    --------
    >>> front = Front(3)
    >>> front.mended(np.array([0.5, 0.3, 0.2])).round(3).tolist()
    [0.5, 0.3, 0.2]
    >>> for _ in range(50):
    ...     front.learn(np.array([0.5, 0.3, 0.2]), 1)
    >>> bool(front.mended(np.array([0.5, 0.3, 0.2]))[1] > 0.8)
    True
    """

    __slots__ = ("_classes", "_machine", "_room", "_state")

    def __init__(self, classes: int) -> None:
        size = kernel.state_words(classes)
        refuse_large(size + kernel.room_words(classes))
        self._classes = classes
        self._state: Any = [0.0] * size
        self._room: Any = [0.0] * kernel.room_words(classes)
        kernel.begin(self._state, classes)
        self._machine: tuple[Any, Any] | None = None

    # ----------------------------------------------------------------- a round

    def mended(self, raw: Reals) -> Reals:
        """Return the mixture for a raw forecast; nothing changes."""
        made: Reals = self.mend_all(raw[None], None)[0]
        return made

    def learn(self, raw: Reals, outcome: int) -> None:
        """Learn the class that came after a raw forecast."""
        self.mend_all(raw[None], np.array([outcome]))

    def blended(self, ours: Reals, theirs: Reals) -> Reals:
        """Return the blend of two vectors, the second of which need not sum to 1."""
        made: Reals = self.blend_all(ours[None], theirs[None], None)[0]
        return made

    def learn_blend(self, ours: Reals, theirs: Reals, outcome: int) -> None:
        """Learn the class that came after two vectors were blended."""
        self.blend_all(ours[None], theirs[None], np.array([outcome]))

    # ----------------------------------------------------------------- batches

    def mend_all(self, rows: Reals, outcomes: Words | None) -> Reals:
        """Return the mixtures of rows and learn the outcomes, each before the next row."""
        self._ready(len(rows))
        lent = self._lent(rows), self._told(outcomes, len(rows)), len(rows), self._lent(rows)
        mend = kernel.mend_all if self._machine is None else self._machine[0]
        mend(self._state, self._room, self._classes, *lent)
        return self._returned(lent[-1])

    def blend_all(self, ours: Reals, theirs: Reals, outcomes: Words | None) -> Reals:
        """Return the blends of rows and learn the outcomes, each before the next row."""
        self._ready(len(ours))
        lent = self._lent(ours), self._lent(theirs), self._told(outcomes, len(ours))
        out = self._lent(ours)
        blend = kernel.blend_all if self._machine is None else self._machine[1]
        blend(self._state, self._classes, *lent, len(ours), out)
        return self._returned(out)

    def compile(self) -> None:
        """Go over to machine code, if there is a compiler."""
        if self._machine is None and available():
            mend = compiled(kernel.mend_all, "front", nogil=True)
            blend = compiled(kernel.blend_all, "front", nogil=True)
            state, room = np.array(self._state), np.array(self._room)
            # No call from here on: these change together.
            self._state, self._room, self._machine = state, room, (mend, blend)

    def _ready(self, rounds: int) -> None:
        if rounds > SHORT:
            self.compile()

    def _lent(self, rows: Reals) -> Any:
        """Return numbers one after the other, in the form in which the state is."""
        flat = np.array(rows, np.float64).reshape(-1)
        return flat if self._machine is not None else flat.tolist()

    def _told(self, outcomes: Words | None, rounds: int) -> Any:
        told = np.full(rounds, -1) if outcomes is None else np.array(outcomes, np.int64)
        return told if self._machine is not None else told.tolist()

    def _returned(self, flat: Any) -> Reals:
        made: Reals = np.array(flat, np.float64).reshape(-1, self._classes)
        return made

    # ------------------------------------------------------------------- state

    def words(self) -> Words:
        """Return the state."""
        found: Words = np.array(self._state, np.float64).view(np.int64)
        return found

    def put_back(self, words: Words) -> None:
        """Be again as :meth:`words` said."""
        found = words.view(np.float64)
        self._state = found.tolist() if self._machine is None else found

    def load(self, words: Words, rounds: int) -> None:
        """Take in what :meth:`words` gave after so many rounds, if it can be that."""
        found = words.astype(np.int64).view(np.float64)
        if len(found) != len(self._state) or not (np.abs(found) <= LARGEST).all():
            raise ValueError("numbers of the front that it never had")
        mixes = found[kernel.WEIGHTS : kernel.BLENDS], found[kernel.BLENDS : kernel.TEMPERATURES]
        whole = all(abs(each.sum() - 1.0) <= WHOLE and each.min() >= 0.0 for each in mixes)
        counts = np.concatenate([found[:0], *(found[part] for part in self._counts())])
        if not whole or (counts < 0.0).any() or found[kernel.ROUNDS] != rounds:
            raise ValueError("weights or counts of the front that it never had")
        self.put_back(words)

    def _counts(self) -> list[slice]:
        """Return where numbers stand that are never negative: variances, and confusions."""
        classes, matrices = self._classes, kernel.matrices_at(self._classes)
        confusions = kernel.confusions_at(classes)
        size = kernel.matrix_words(classes)
        starts = range(matrices + 1, confusions, size)
        return [*(slice(at, at + classes) for at in starts), slice(confusions, len(self._state))]
