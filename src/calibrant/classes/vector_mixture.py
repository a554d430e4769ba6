"""What stands before the recalibrators of classes: a mixture of scaled vectors, and a blend."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from calibrant.core.arrays import Reals, Words
from calibrant.core.limits import refuse_large
from calibrant.kernels import mended as rounds
from calibrant.kernels import scaling as kernel
from calibrant.kernels.compile import SHORT, available, compiled
from calibrant.kernels.crowd import SQUARES

Kept = tuple[int, ...]
LARGEST: Final = 1e15
"""What no number of a state exceeds."""
WHOLE: Final = 1e-9
"""How far from 1 weights may sum up."""


class VectorMixture:
    """Mend whole vectors online.

    See :mod:`calibrant.kernels.scaling` and :mod:`calibrant.kernels.mended`.

    Plain Python works on lists.  After :meth:`compile`, or the first long batch, machine code works
    on arrays; both give the same bits.

    Parameters
    ----------
    classes
        Number of classes K.
    alike
        Whether late outcomes count as some of many, and it is followed how much these are alike.
        A mixture of earlier versions learns each as if it came at once.

    Examples
    --------
    >>> mixture = VectorMixture(3)
    >>> mixture.mended(np.array([0.5, 0.3, 0.2])).round(3).tolist()
    [0.5, 0.3, 0.2]
    >>> for _ in range(50):
    ...     mixture.learn(np.array([0.5, 0.3, 0.2]), 1)
    >>> bool(mixture.mended(np.array([0.5, 0.3, 0.2]))[1] > 0.8)
    True
    """

    __slots__ = ("_classes", "_kept", "_room", "_state", "_steps")

    def __init__(self, classes: int, alike: bool = True) -> None:
        size = kernel.state_words(classes) + (rounds.followed_words(classes) if alike else 0)
        refuse_large(size + kernel.room_words(classes))
        self._classes = classes
        self._kept = rounds.kept_words(classes) if alike else 0
        self._state: Any = [0.0] * size
        self._room: Any = [0.0] * kernel.room_words(classes)
        kernel.begin(self._state, classes)
        if alike:
            rounds.begin_following(self._state, classes)
        self._steps: tuple[Any, ...] = rounds.mend_all, rounds.blend_all, rounds.late

    # ----------------------------------------------------------------- a round

    def mended(self, raw: Reals) -> Reals:
        """Return the mixture for a raw forecast; nothing changes."""
        return np.asarray(self.mend_all(raw[None], None)[0])

    def announced(self, raw: Reals) -> tuple[Reals, Kept]:
        """Return the mixture for a raw forecast, and what experts say; nothing changes."""
        made, kept = self._mend(raw[None], *self._told(None, None, 1), 1)
        return made[0], tuple(map(int, kept))

    def learn(self, raw: Reals, outcome: int) -> None:
        """Learn the class that came after a raw forecast, at once."""
        self.mend_all(raw[None], np.array([outcome]))

    def learn_late(self, raw: Reals, said: tuple[Reals, Kept], outcome: int, crowd: int) -> None:
        """Learn a class that is one of ``crowd`` outcomes that wait at a time.

        ``said`` is what :meth:`announced` returned when the forecast was made.
        """
        lent = self._lent(raw), self._lent(said[0]), self._whole(np.array(said[1], np.int64))
        self._steps[2](self._state, self._room, self._classes, *lent, outcome, crowd)

    def blended(self, ours: Reals, theirs: Reals) -> Reals:
        """Return the blend of two vectors, the second of which need not sum to 1."""
        return np.asarray(self.blend_all(ours[None], theirs[None], None)[0])

    def learn_blend(self, ours: Reals, theirs: Reals, outcome: int, crowd: int = 1) -> None:
        """Learn the class that came after two vectors were blended, one of ``crowd`` outcomes."""
        self.blend_all(ours[None], theirs[None], np.array([outcome]), np.array([crowd]))

    # ----------------------------------------------------------------- batches

    def mend_all(self, rows: Reals, outcomes: Words | None, crowds: Words | None = None) -> Reals:
        """Return the mixtures of rows and learn the outcomes, each before the next row.

        Each outcome is one of as many as ``crowds`` says, by default of one.
        """
        told, many = self._told(outcomes, crowds, len(rows))
        return self._mend(rows, told, many, len(rows) if (many > 1).any() else 0)[0]

    def _mend(self, rows: Reals, told: Words, crowds: Words, keeps: int) -> tuple[Reals, Any]:
        """Return the mixtures, and what experts said in so many rounds."""
        self._ready(len(rows))
        out, kept = self._lent(rows), self._whole(np.zeros(keeps * self._kept, np.int64))
        lent = self._lent(rows), self._whole(told), self._whole(crowds)
        self._steps[0](self._state, self._room, self._classes, *lent, out, kept)
        return self._returned(out), kept

    def blend_all(
        self, ours: Reals, theirs: Reals, outcomes: Words | None, crowds: Words | None = None
    ) -> Reals:
        """Return the blends of rows and learn the outcomes, each before the next row."""
        self._ready(len(ours))
        told, many = self._told(outcomes, crowds, len(ours))
        lent = self._lent(ours), self._lent(theirs), self._whole(told), self._whole(many)
        out = self._lent(ours)
        self._steps[1](self._state, self._classes, *lent, out)
        return self._returned(out)

    def compile(self) -> None:
        """Go over to machine code, if there is a compiler."""
        if isinstance(self._state, list) and available():
            machine = tuple(compiled(step, "vectors", nogil=True) for step in self._steps)
            state, room = np.array(self._state), np.array(self._room)
            # No call from here on: these change together.
            self._state, self._room, self._steps = state, room, machine

    def _ready(self, rows: int) -> None:
        if rows > SHORT:
            self.compile()

    def _lent(self, rows: Reals) -> Any:
        """Return numbers one after the other, in the form in which the state is."""
        return self._whole(np.array(rows, np.float64).reshape(-1))

    def _told(self, outcomes: Words | None, crowds: Words | None, rows: int) -> tuple[Words, Words]:
        """Return outcomes, below 0 where there are none, and among how many each is one."""
        told = np.full(rows, -1) if outcomes is None else np.array(outcomes, np.int64)
        return told, np.ones(rows, np.int64) if crowds is None else np.array(crowds, np.int64)

    def _whole(self, words: Words | Reals) -> Any:
        """Return numbers in the form in which the state is."""
        return words.tolist() if isinstance(self._state, list) else words

    def _returned(self, flat: Any) -> Reals:
        return np.array(flat, np.float64).reshape(-1, self._classes)

    # ------------------------------------------------------------------- state

    def words(self) -> Words:
        """Return the state."""
        return np.array(self._state, np.float64).view(np.int64)

    def put_back(self, words: Words) -> None:
        """Be again as :meth:`words` said."""
        found = words.view(np.float64)
        self._state = self._whole(found)

    def load(self, words: Words, learned: int) -> None:
        """Take in what :meth:`words` gave after so many rounds, if it can be that."""
        found = words.astype(np.int64).view(np.float64)
        if len(found) != len(self._state) or not (np.abs(found) <= LARGEST).all():
            raise ValueError("numbers of the mixture that it never had")
        mixes = found[kernel.WEIGHTS : kernel.BLENDS], found[kernel.BLENDS : kernel.TEMPERATURES]
        whole = all(abs(each.sum() - 1.0) <= WHOLE and each.min() >= 0.0 for each in mixes)
        counts = np.concatenate([found[:0], *(found[part] for part in self._counts())])
        if not whole or (counts < 0.0).any() or found[kernel.ROUNDS] != learned:
            raise ValueError("weights or counts of the mixture that it never had")
        self.put_back(words)

    def _counts(self) -> list[slice]:
        """Return where numbers stand that are never negative.

        Variances, confusions, and squares of errors.
        """
        classes, matrices = self._classes, kernel.matrices_at(self._classes)
        confusions, end = kernel.confusions_at(classes), kernel.state_words(classes)
        size = kernel.matrix_words(classes)
        starts = range(matrices + 1, confusions, size)
        squares = slice(end + SQUARES, end + SQUARES + 1)
        return [*(slice(at, at + classes) for at in starts), slice(confusions, end), squares]
