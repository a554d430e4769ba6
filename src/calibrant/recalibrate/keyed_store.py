"""Keys that leave a table for a store, and come back when they are touched."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, MutableMapping
from typing import Any

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Words
from calibrant.core.desk import SHIFT, name_key
from calibrant.errors import InvalidInput
from calibrant.recalibrate.keyed import Key, checked_key
from calibrant.recalibrate.keyed_files import KeyedFiles
from calibrant.recalibrate.keyed_state import NAMED


class KeyedStore(KeyedFiles):
    """How keys leave a table, and come back."""

    __slots__ = ("_away", "store")

    store: MutableMapping[Any, bytes] | None
    """Where keys go that are evicted, and from where they come back: any mapping to bytes."""
    _away: dict[int, Key]
    """Names of open tickets whose keys went to the store."""

    def evict(self, *, idle: int | None = None, keep: int | None = None) -> list[tuple[Key, bytes]]:
        """Drop keys that have not been touched recently; return each with its body.

        With a ``store``, the bodies are there before a key is dropped, and a key comes back at its
        next touch, open tickets and all.  Ask for :meth:`changes` first if you follow them: keys
        that were dropped are not among these.

        Parameters
        ----------
        idle
            Drop what was not touched in this many of the last calls; a batch is one call.
        keep
            Drop those that were not touched for longest, until that many keys are left.

        Examples
        --------
        >>> from calibrant import Recalibrator, Table
        >>> table = Table(Recalibrator(resolution=10, buckets=10), seed=7, store={})
        >>> _ = table.replay(["a", "b", "a"], [0.2, 0.7, 0.3], [0, 1, 0])
        >>> _ = table.forecast("b", 0.5)
        >>> [key for key, body in table.evict(keep=1)], list(table)
        (['a'], ['b'])
        >>> table["a"].rounds, list(table)
        (2, ['b', 'a'])
        """
        if idle is None and keep is None:
            raise InvalidInput("idle or keep must be given, got neither")
        calls = None if idle is None else check.whole(idle, "idle")
        most = None if keep is None else check.whole(keep, "keep")
        with self._gate:
            numbers = self._resting(calls, most)
            keys, bodies = [self._keys[k] for k in numbers.tolist()], self._parcels(numbers)
            names = {} if self.store is None else self._named_tickets(numbers)
            if self.store is not None:
                for key, body in zip(keys, bodies, strict=True):
                    self.store[key] = body
            order, stamps = list(self._numbers), self._stamps[numbers].copy()
            try:
                self._drop_keys(keys, names)
            except BaseException:
                # Nobody else has what was dropped: all of it comes back, as it was.
                self._take(keys, self._opened(keys, bodies))
                self._stamps[[self._numbers[key] for key in keys]] = stamps
                self._numbers = {key: self._numbers[key] for key in order}
                raise
        return list(zip(keys, bodies, strict=True))

    def _resting(self, idle: int | None, keep: int | None) -> Words:
        """Return the rows that are to go, those that rested longest first."""
        numbers = np.fromiter(self._numbers.values(), np.int64, len(self._numbers))
        numbers = numbers[np.argsort(self._stamps[numbers], kind="stable")]
        many = 0 if keep is None else max(len(numbers) - keep, 0)
        if idle is not None:
            # What only came back is as of the next call, and not younger than the last.
            last = np.minimum(self._stamps[numbers], self._clock) <= self._clock - idle
            many = max(many, int(np.count_nonzero(last)))
        return numbers[:many]

    def _named_tickets(self, numbers: Words) -> dict[int, Key]:
        """Return the names of the open tickets of rows, and whose they are."""
        gone = np.zeros(len(self._keys), bool)
        gone[numbers] = True
        lines = self._desk.words()
        lines = lines[(lines[:, 0] >= NAMED) & gone[lines[:, 1] >> SHIFT]]
        names, rows = lines[:, 0].tolist(), (lines[:, 1] >> SHIFT).tolist()
        return {name: self._keys[row] for name, row in zip(names, rows, strict=True)}

    def _drop_keys(self, keys: list[Key], names: dict[int, Key]) -> None:
        self._away |= names
        for key in keys:
            self._gone.pop(key, None)
        self._drop_tickets(np.array([self._numbers[key] for key in keys], np.int64))
        for key in keys:
            self._drop_key(key)

    # -------------------------------------------------------------------- coming back

    def _recall(self, keys: Iterable[Key], names: Iterable[Any] = ()) -> None:
        """Take back those keys, and the keys of those tickets, that went to the store."""
        if self.store is None:
            return
        if not self._numbers:
            self._follow_store()
        wanted = dict.fromkeys(key for key in keys if key not in self._numbers)
        if self._away:
            told = (name for name in names if isinstance(name, (str, int)))
            words = (name_key(name) if isinstance(name, str) else name for name in told)
            away = (self._away[word] for word in words if word in self._away)
            wanted |= dict.fromkeys(key for key in away if key not in self._numbers)
        found = dict[Key, bytes]()
        for key in wanted:
            with contextlib.suppress(KeyError):
                found[key] = self.store[key]
        if found:
            keys = list(found)
            self._take(keys, self._opened(keys, list(found.values())))
            # What comes back is touched by the call that asks for it, which counts once.
            self._clock -= 1
            self._away = {name: key for name, key in self._away.items() if key not in found}

    def _follow_store(self) -> None:
        """Let a table without keys be what the streams in its store are, if the pattern was it."""
        if isinstance(self.store, Iterable):
            for key in self.store:
                with contextlib.suppress(KeyError):
                    self._look_back(key, self.store[key])
                return

    def __delitem__(self, key: Key) -> None:
        """Forget a key, its stream and its open tickets; the store forgets it too."""
        with self._gate:
            self._number_of(key)
            # First the store: if it fails, the key is still here.
            if self.store is not None:
                self.store.pop(key, None)
            self._clock += 1
            self._gone[checked_key(key)] = self._clock
            self._drop_key(key)
