"""Who may ask: tokens of 32 random bytes, of which only a hash is stored."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from calibrant.core import check
from calibrant.errors import NotStored, UnknownName
from calibrant.journal.sql import Store
from calibrant.journal.store import Pass
from calibrant.serve.problems import Refused

SCOPES: Final = ("read", "write", "admin")
"""Each scope allows what the scopes before allow."""
EVERY: Final = 2.0
"""Seconds after which tokens are read again."""
ANY: Final = "*"


def hashed(token: str) -> bytes:
    """Return what is stored of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def create_token(store: Store, name: str, scope: str = "write", streams: str = ANY) -> str:
    """Store a new token, and return it: it is not shown again."""
    check.choice(scope, "scope", SCOPES)
    token = secrets.token_urlsafe(32)
    with store.writing():
        store.put_token(Pass(hashed(token), name, scope, streams, time.time()))
    return token


def revoke_token(store: Store, name: str) -> int:
    """Revoke every token of a name; return how many there were."""
    found = [token for token in store.tokens() if token.name == name and token.revoked is None]
    if not found:
        raise UnknownName(f"token must be one that is there, got {name!r}")
    with store.writing():
        for token in found:
            store.put_token(token._replace(revoked=time.time()))
    return len(found)


class Guard:
    """Decides whether a request may be met.

    Parameters
    ----------
    store
        Where tokens are; they are read again every two seconds.
    open
        Whether everybody may do everything, as long as there is no token.
    rate
        Requests a second of one token.
    clock
        Tells the time in seconds.
    """

    def __init__(
        self,
        store: Store,
        *,
        open: bool,
        rate: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._open, self._rate, self._clock = store, open, rate, clock
        self._tokens: dict[bytes, Pass] = {}
        self._read = -EVERY
        self._left: dict[bytes, tuple[float, float]] = {}

    @property
    def open(self) -> bool:
        """Whether everybody may do everything: until there is a token."""
        # A store that is away says nothing of new tokens.
        with suppress(NotStored):
            if self._open and self._is_due():
                self._open = all(token.revoked is not None for token in self._tokens.values())
        return self._open

    def check(self, header: str | None, scope: str, stream: str | None) -> str:
        """Return who asks; raise unless they may do what is asked, in that stream."""
        if self.open:
            return "anybody"
        token = self.known(hash_in(header))
        if SCOPES.index(token.scope) < SCOPES.index(scope):
            raise Refused("forbidden", f"token must have scope {scope!r}, got {token.scope!r}")
        allowed = streams_of(token)
        if allowed is not None and (stream is None or stream not in allowed):
            raise Refused("forbidden", "token must be for this stream")
        self._slow_down(token)
        return token.name

    def known(self, given: bytes) -> Pass:
        """Return the token with a hash, if there is one that was not revoked."""
        self._is_due()
        found = self._tokens.get(given)
        if found is None or not hmac.compare_digest(found.hash, given) or found.revoked is not None:
            raise Refused("unauthorized", "token must be one that is known and not revoked")
        return found

    def _is_due(self) -> bool:
        """Read the tokens if it is time to; say whether it was."""
        due = self._clock() - self._read >= EVERY
        if due:
            self._tokens = {token.hash: token for token in self._store.tokens()}
            self._read = self._clock()
        return due

    def _slow_down(self, token: Pass) -> None:
        """Refuse a request of a token that asks too often: a bucket that fills at its rate."""
        if self._rate is None:
            return
        now = self._clock()
        left, last = self._left.get(token.hash, (self._rate, now))
        left = min(max(self._rate, 1.0), left + (now - last) * self._rate)
        if left < 1.0:
            wait = max(1, round((1.0 - left) / self._rate + 0.5))
            rule = f"requests of a token must be at most {self._rate:g} a second"
            raise Refused("too-fast", f"{rule}, got more", {"Retry-After": str(wait)})
        self._left[token.hash] = left - 1.0, now


def hash_in(header: str | None) -> bytes:
    """Return the hash of the token in a header."""
    if header is None or not header.startswith("Bearer "):
        raise Refused("unauthorized", "Authorization must be 'Bearer' and a token")
    return hashed(header.removeprefix("Bearer "))


def streams_of(token: Pass) -> frozenset[str] | None:
    """Return the streams that a token is for; None for all."""
    names = frozenset(token.streams.split(","))
    return None if ANY in names else names
