"""From a seed and a key to all coins of a stream."""

from __future__ import annotations

import functools
import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.core.codec import Document
from calibrant.errors import InvalidInput, InvalidType
from calibrant.kernels import blake
from calibrant.kernels.coin import SIPHASH, SPLITMIX, coin, coins, name_of, secret_coin

COIN_CODES: Final = {"siphash-2-4": SIPHASH, "splitmix64": SPLITMIX}
"""How coins are thrown, by name."""
SAFE: Final = "siphash-2-4"
"""How new streams throw coins."""
OLD: Final = "splitmix64"
"""How states of earlier versions go on."""

SEED: Final = "seed"
SYSTEM: Final = "system"
GIVEN: Final = "given"
ORIGINS: Final = (SYSTEM, SEED, GIVEN, None)
LEAST: Final = 16
"""Bytes of a secret that is given, at least."""
LATEST: Final = 256
"""What follows from the latest secrets is remembered: a service reads a stream again and again."""
MANY: Final = 256
"""More secrets than these are made by machine code if there is a compiler."""
END: Final = ord("\n")
LONGEST: Final = 14_284
"""Bits of a key that is a number, at most: Python writes no more than 4,300 digits."""


APART: Final = "apart"
"""The setting by which a state that was stored without its secret knows it again."""
ORIGIN_TOLD: Final = {SYSTEM: "the system", SEED: "a seed", None: "an earlier version"}


class Secret(bytes):
    """Sixteen bytes that fix every draw, and where they come from.

    ``origin`` is "system" for entropy of the system, "given" for a secret of the caller's, "seed"
    for a seed, which others may know or guess, and None where that was not recorded.  A class each:
    what all secrets of one origin have in common takes no room in every stream.
    """

    __slots__ = ()

    origin: ClassVar[str | None] = None

    @property
    def seeded(self) -> bool | None:
        """Whether others may know or guess the secret; None where that is not known."""
        return None if self.origin is None else self.origin == SEED

    @classmethod
    def of(cls, data: bytes, origin: str | None) -> Secret:
        """Return these bytes with their origin."""
        return BY_ORIGIN[origin](data)


class FromSystem(Secret):
    """Entropy of the system."""

    __slots__ = ()
    origin = SYSTEM


class FromCaller(Secret):
    """A secret that the caller gave."""

    __slots__ = ()
    origin = GIVEN


class FromSeed(Secret):
    """What follows from a seed."""

    __slots__ = ()
    origin = SEED


BY_ORIGIN: Final[dict[str | None, type[Secret]]] = {
    made.origin: made for made in (Secret, FromSystem, FromCaller, FromSeed)
}


def secret_of(seed: Any, key: Any, given: Any = None) -> Secret:
    """Return the secret of a stream: from a secret that is given, a seed, or the system.

    >>> secret_of(7, None) == secret_of(7, None), secret_of(7, "a") == secret_of(7, "b")
    (True, False)
    """
    origin = SYSTEM if seed is None else SEED
    if given is not None:
        if seed is not None:
            raise InvalidInput(f"seed must be left out where a secret is given, got {seed!r}")
        seeded, origin = b"secret " + _checked(given), GIVEN
    elif seed is None:
        seeded = secrets.token_bytes(32)
    else:
        seeded = b"seed %d" % check.whole(seed, "seed", low=-(1 << 127), high=1 << 127)
    named = b"" if key is None else repr(plain_key(key)).encode()
    salt = hashlib.blake2b(named, digest_size=16).digest()
    made = hashlib.blake2b(seeded, key=salt, digest_size=16).digest()
    return Secret.of(made, origin)


def plain_key(key: Any) -> str | int:
    """Return a key as a plain string or number.

    >>> import numpy as np
    >>> plain_key(np.str_("a")), plain_key(7)
    ('a', 7)
    """
    if isinstance(key, str):
        return str.__str__(key)
    if not isinstance(key, int) or isinstance(key, bool):
        raise InvalidType(f"key must be a string or a whole number, got {key!r}")
    if key.bit_length() > LONGEST:
        told = f"a whole number of at most {LONGEST} bits, got one of {key.bit_length()}"
        raise InvalidInput(f"key must be {told}")
    return int(key)


def secrets_of(seed: int, keys: Sequence[str | int]) -> Words:
    """Return :func:`secret_of` a seed and each of many keys, which were checked, as two words.

    >>> secrets_of(7, ["a", 3]).tobytes() == secret_of(7, "a") + secret_of(7, 3)
    True
    """
    seeded = b"seed %d" % seed
    machine = blake.machine() if len(keys) > MANY and len(seeded) <= 128 else None
    if machine is None:
        hashed = hashlib.blake2b
        salts = [hashed(repr(key).encode(), digest_size=16).digest() for key in keys]
        made = [hashed(seeded, key=salt, digest_size=16).digest() for salt in salts]
        return np.frombuffer(b"".join(made), "<i8").astype(np.int64).reshape(-1, 2)
    # Under a key, a block of it stands before the message.
    told, size = np.zeros((len(keys), 2 * blake.BLOCK), np.int64), 8 * blake.BLOCK
    told[:, :2] = blake.hashed(machine, *_texts(keys), blake.beginning(16))
    told[:, blake.BLOCK :] = np.frombuffer(seeded + bytes(size - len(seeded)), "<i8")
    starts, sizes = np.arange(len(keys)) * told.shape[1], np.full(len(keys), size + len(seeded))
    messages = told.reshape(-1), starts, starts + told.shape[1], sizes
    return blake.hashed(machine, *messages, blake.beginning(16, 16))


def _texts(keys: Sequence[str | int]) -> tuple[Words, Words, Words, Words]:
    """Return the texts of keys in words of their own, where they start and end, and their bytes."""
    # No text of a key has an end of line in it.
    lines = np.frombuffer("\n".join([*map(repr, keys), ""]).encode(), np.uint8)
    over = np.flatnonzero(lines == END)
    sizes = np.diff(over, prepend=-1)
    ends = np.cumsum((sizes + 7) >> 3)
    starts = ends - ((sizes + 7) >> 3)
    room = np.zeros(8 * int(ends[-1]), np.uint8)
    places = np.arange(len(lines)) + np.repeat(8 * starts - over + sizes - 1, sizes)
    room[places] = lines
    room[places[over]] = 0
    return room.view(np.int64), starts, starts + ((sizes + 6) >> 3), sizes - 1


def _checked(given: Any) -> bytes:
    """Return a secret, if it is one; no error shows it."""
    if not isinstance(given, (bytes, bytearray)):
        raise InvalidType(f"secret must be bytes, got {type(given).__name__}")
    if len(given) < LEAST:
        raise InvalidInput(f"secret must be at least {LEAST} bytes long, got {len(given)}")
    return bytes(given)


def chosen_seed() -> int:
    """Return a seed of 128 bits of entropy of the system."""
    return secrets.randbits(128) - (1 << 127)


def secret_read(document: Document, data: bytes) -> Secret:
    """Return the secret that a document holds, or the one that was given to it."""
    origin = document.settings["secret_from"]
    if origin not in ORIGINS:
        raise ValueError(f"a secret from {origin!r}")
    given = document.arrays.get(APART)
    return Secret.of(data if given is None else given.astype("<i8").tobytes(), origin)


def without_secret(document: Document, secret: Secret) -> Document:
    """Return a document, whose words of the secret are zero, with what tells the secret again."""
    if secret.origin != GIVEN:
        raise InvalidInput(
            "secret must have been given, as secret=, for a state to be stored without it; "
            f"this one is from {ORIGIN_TOLD[secret.origin]}"
        )
    return replace(document, settings=document.settings | {APART: _mark(secret)})


def with_secret(document: Document, given: Any, key: Any) -> Document:
    """Return a document that was stored without its secret with the secret, if that is the one."""
    mark = document.settings.get(APART)
    if mark is None:
        if given is None and key is None:
            return document
        raise InvalidInput("secret must be left out for a state that holds its own, got one")
    if given is None:
        raise InvalidInput("secret must be given, for this state was stored without it, got None")
    secret = secret_of(None, key, given)
    if _mark(secret) != mark:
        raise InvalidInput("secret and key must be those that the state was made with, got others")
    words = np.frombuffer(secret, "<i8").astype(np.int64)
    return replace(document, arrays=document.arrays | {APART: words})


def _mark(secret: bytes) -> str:
    """Return what tells a secret from others, and nothing else of it."""
    return hashlib.blake2b(secret, digest_size=16, person=b"apart").hexdigest()


def part_of(secret: bytes, number: int) -> Secret:
    """Return the secret of a part of a stream, which follows from the secret of the whole."""
    return secret_of(int.from_bytes(secret, "little", signed=True), number)


@functools.lru_cache(LATEST)
def block_key(secret: bytes, block: int, how: str = SAFE) -> int:
    """Return 63 bits that tell a block's coins from all others.

    Coins of earlier versions had this as their key, so one tells nothing about another.
    """
    if how != OLD:
        name: int = name_of(*words_of(secret), block)
        return name
    data = block.to_bytes(8, "little")
    hashed = hashlib.blake2b(data, key=secret, digest_size=8).digest()
    return int.from_bytes(hashed, "little") >> 1


def words_of(secret: bytes) -> tuple[int, int]:
    """Return a secret as two words."""
    return int.from_bytes(secret[:8], "little"), int.from_bytes(secret[8:], "little")


def coin_at(secret: bytes, how: str, block: int, clock: int) -> float:
    """Return the coin of a block at a clock."""
    if how == OLD:
        return coin(block_key(secret, block, OLD), clock)
    return secret_coin(*words_of(secret), block, clock)


def coins_from(secret: bytes, how: str, block: int, first: int, count: int) -> Reals:
    """Return that many coins of a block, from one clock on.

    >>> coins_from(bytes(16), SAFE, 3, 5, 2).tolist()[1] == coin_at(bytes(16), SAFE, 3, 6)
    True
    """
    clocks: Any = np.arange(first, first + count, dtype=np.uint64)
    made: Any
    if how == OLD:
        made = coin(np.uint64(block_key(secret, block, OLD)), clocks)  # type: ignore[arg-type]
    else:
        made = coins(*words_of(secret), block, clocks)
    found: Reals = made
    return found


class Coins:
    """The coins of one block, for those who ask for one after the other."""

    __slots__ = ("_block", "_first", "_made", "how", "secret")

    AHEAD: Final = 512

    def __init__(self, secret: bytes, how: str, block: int = 0) -> None:
        self.secret, self.how, self._block = secret, how, block
        self._first, self._made = 0, list[float]()

    def at(self, clock: int) -> float:
        """Return the coin at a clock.

        >>> Coins(bytes(16), SAFE).at(700) == coin_at(bytes(16), SAFE, 0, 700)
        True
        """
        place = clock - self._first
        if not 0 <= place < len(self._made):
            self._first = clock - clock % self.AHEAD
            self._made = self.from_(self._first, self.AHEAD).tolist()
            place = clock - self._first
        return self._made[place]

    def from_(self, first: int, count: int) -> Reals:
        """Return that many coins from a clock on."""
        return coins_from(self.secret, self.how, self._block, first, count)


def fingerprint(secret: bytes, *shape: object) -> str:
    """Return what may be shown of a secret, to tell whose ticket it is.

    ``shape`` is whatever else a ticket depends on: the calibrator, the buckets, the prior.
    """
    return told_fingerprint(secret, repr(shape).encode())


@functools.lru_cache(LATEST)
def told_fingerprint(secret: bytes, shape: bytes) -> str:
    """Return the same for a shape whose text is known."""
    hashed = hashlib.blake2b(secret, digest_size=8, person=b"ticket")
    hashed.update(shape)
    return hashed.hexdigest()
