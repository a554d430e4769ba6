"""A table as a file: written whole, and mapped into memory when it is opened again.

A snapshot is made of words of eight bytes, little-endian::

    magic (8) | length of the head (8) | head: JSON, padded | digest (8)
    keys: JSON, padded | where each parcel ends, in words | open tickets by age | digest (8)
    parcels

Open tickets are told by age where the oldest one goes when there are too many, and only there: the
place of the key and the number in a word each.  Parcels are those of
:mod:`calibrant.recalibrate.parcel`, each with a digest of its own: what is damaged concerns its
key alone.  A file takes its place in one step, when all of it is on the disk.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import warnings
from abc import abstractmethod
from pathlib import Path
from typing import IO, Any, Final, Self

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Words
from calibrant.core.desk import NUMBER, SHIFT
from calibrant.core.files import FilePath, replacing
from calibrant.core.stateful import DAMAGE
from calibrant.errors import CorruptState
from calibrant.recalibrate.keyed import Key, checked_key
from calibrant.recalibrate.keyed_bodies import KeyedBodies, Refused
from calibrant.recalibrate.parcel import Parcels

MAGIC: Final = b"caltable"
VERSION: Final = 1
RULES: Final = ("raise", "skip")


class KeyedFiles(KeyedBodies):
    """How a table is written to a file, and opened again."""

    __slots__ = ("missing",)

    missing: list[Key]
    """Keys of a snapshot that were left out, because what stood there of them was damaged."""

    @abstractmethod
    def _settings(self) -> dict[str, Any]:
        """Return all but the streams, as JSON-ready data."""

    @classmethod
    @abstractmethod
    def _empty(cls, settings: dict[str, Any], hot: int | None) -> Self:
        """Return a table without keys."""

    def save(self, path: FilePath, *, authenticate: bytes | None = None) -> None:
        """Write the whole table to a file, which replaces the old one once all is on disk.

        Treat the file as secret: it holds the keys of coins.  Nobody else may read it.
        :meth:`open` maps the file into memory, and :func:`calibrant.load` opens it too.  With a key
        the file is sealed as a whole: it is read by :func:`calibrant.load` alone, and not mapped.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> from calibrant import Recalibrator, Table
        >>> table = Table(Recalibrator(resolution=10, buckets=10), seed=7)
        >>> _ = table.replay(["a", "b", "a"], [0.2, 0.7, 0.3], [0, 1, 0])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     table.save(pathlib.Path(folder) / "table")
        ...     Table.open(pathlib.Path(folder) / "table") == table
        True
        """
        if authenticate is not None:
            super().save(path, authenticate=authenticate)
            return
        with replacing(path, private=True) as file, self._gate:
            keys = list(self._numbers)
            numbers = np.fromiter(self._numbers.values(), np.int64, len(keys))
            text, ages = _padded(json.dumps(keys).encode()), self._age_words(numbers)
            head = {"version": VERSION, "keys": len(text), "count": len(keys)}
            if self._ages is not None:
                head["ages"] = len(ages)
            told = _padded(json.dumps(head | {"settings": self._settings()}).encode())
            start = MAGIC + len(told).to_bytes(8, "little") + told
            file.write(start + _digest(start))
            place = file.tell()
            file.write(text + bytes(8 * (len(keys) + len(ages) + 1)))
            ends = self._write_parcels(file, numbers)
            file.seek(place)
            index = text + np.append(ends, ages).astype("<i8").tobytes()
            file.write(index + _digest(index))

    def _write_parcels(self, file: IO[bytes], numbers: Words) -> Words:
        """Write the parcels of rows; return where each ends."""
        made, end = [np.empty(0, np.int64)], 0
        for parcels in self._made_parcels(numbers):
            file.write(parcels.sealed_words(self._mark).astype("<i8", copy=False).data)
            made.append(parcels.ends + end)
            end += int(parcels.ends[-1])
        return np.concatenate(made)

    @classmethod
    def open(cls, path: FilePath, *, on_error: str = "raise", hot: int | None = None) -> Self:
        """Return the table that :meth:`save` wrote to a file.

        The file stays mapped: what is stored of a key is copied when the key is touched.

        Parameters
        ----------
        path
            The file, which nobody may write to while it is open; :meth:`save` never does.
        on_error
            What happens to a key of which something damaged stands in the file: "raise" refuses
            the file and names the key, "skip" leaves the key out, warns, and lists it in
            ``missing``.
        hot
            How many keys are kept ready to play.
        """
        check.choice(on_error, "on_error", RULES)
        words = _mapped(Path(path))
        made, keys, parcels, ages = cls._begun(Path(path), words, hot)
        over = Path(path).stat().st_size - 8 * int(parcels.ends[-1]) if keys else 0
        if over > 0 and on_error == "raise":
            raise CorruptState(f"{path} must end with its last key, got {over} bytes more")
        with made._gate:
            made._open_parcels(keys, parcels, on_error == "skip")
            made._take_ages(keys, ages)
        if made.missing:
            told = f"{path}: damaged, and so left out: {len(made.missing)} keys"
            warnings.warn(f"{told}, the first is {made.missing[0]!r}", stacklevel=2)
        return made

    @classmethod
    def _begun(
        cls, path: Path, words: Words, hot: int | None
    ) -> tuple[Self, list[Key], Parcels, Words]:
        """Read all but the parcels."""
        data = words.astype("<i8", copy=False).data.cast("B")
        try:
            size = int(words[1])
            end = 16 + size
            if bytes(data[:8]) != MAGIC or size < 0 or not _is_whole(data, 0, end):
                raise ValueError("another beginning")
            head = json.loads(bytes(data[16:end]))
            if head["version"] != VERSION:
                raise ValueError(f"version {head['version']!r}")
            first, count, waiting = end + 8, head["count"], head.get("ages", 0)
            text = first + head["keys"]
            place = text + 8 * (count + waiting)
            if not _is_whole(data, first, place):
                raise ValueError("another list of keys")
            keys = [checked_key(key) for key in json.loads(bytes(data[first:text]))]
            if len(keys) != count or len(set(keys)) < count:
                raise ValueError(f"{len(keys)} keys where {count} were written")
            ends, ages = np.split(words[text // 8 : place // 8], [count])
            ends = ends + place // 8 + 1
            made = cls._empty(head["settings"], hot)
        except DAMAGE as error:
            raise CorruptState(f"{path} must be what save() wrote, got {error}") from error
        starts = np.concatenate([[place // 8 + 1], ends[:-1]])[:count].astype(np.int64)
        return made, keys, Parcels(words, starts, ends, 2 + len(made._spec.fields)), ages

    def _take_ages(self, keys: list[Key], ages: Words) -> None:
        """Let open tickets be as old as a file says; those of keys that are missing are gone."""
        if self._ages is None:
            return
        try:
            names = [keys[rank] for rank in (ages >> SHIFT).tolist()]
            rows = np.array([self._numbers.get(name, -1) for name in names], np.int64)
            self._restore_ages((rows << SHIFT | ages & NUMBER)[rows >= 0])
        except DAMAGE as error:
            raise CorruptState(f"tickets must be those of the keys, got {error}") from error

    def _open_parcels(self, keys: list[Key], parcels: Parcels, skip: bool) -> None:
        """Take over parcels where they are, or those that are whole."""
        while True:
            try:
                kept, parcels = parcels.intact(keys, self._mark, skip)
                self.missing += [key for key, whole in zip(keys, kept, strict=True) if not whole]
                keys = [key for key, whole in zip(keys, kept, strict=True) if whole]
                made = self._of_today(keys, parcels)
                told = self._checked_parcels(keys, made)
                break
            except Refused as refused:
                if not skip:
                    raise CorruptState(str(refused.error)) from None
                self.missing.append(keys.pop(refused.number))
                parcels = parcels.without(refused.number)
        self._tiers.heap.mapped = made.words
        self._install(keys, made, *told, mapped=True)


def _padded(data: bytes) -> bytes:
    return data + b" " * (-len(data) % 8)


def _digest(data: Any) -> bytes:
    return hashlib.blake2b(data, digest_size=8, person=b"snapshot").digest()


def _is_whole(data: Any, start: int, end: int) -> bool:
    """Say whether the digest of a part stands behind it."""
    return end + 8 <= len(data) and _digest(data[start:end]) == bytes(data[end : end + 8])


def _mapped(path: Path) -> Words:
    """Return the words of a file, mapped: written ones stay in memory, and off the disk."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size // 8 * 8
        if size < 16:
            raise CorruptState(f"{path} must be what save() wrote, got {size} bytes")
        held = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY)
    return np.frombuffer(held, "<i8").view(np.int64)
