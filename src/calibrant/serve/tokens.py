"""Who may ask: tokens of 32 random bytes, of which only a hash is stored."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from typing import Final

from calibrant.core import check
from calibrant.errors import UnknownName
from calibrant.journal.store import Pass, Store
from calibrant.serve.problems import Refused

SCOPES: Final = ("read", "write", "admin")
"""Each may do what those before it may."""
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
        Whether everybody may do everything.
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

    def check(self, header: str | None, scope: str, stream: str | None) -> str:
        """Return who asks; raise unless they may do what is asked, in that stream."""
        if self._open:
            return "anybody"
        token = self._token(header)
        if SCOPES.index(token.scope) < SCOPES.index(scope):
            raise Refused("forbidden", f"token must have scope {scope!r}, got {token.scope!r}")
        allowed = token.streams.split(",")
        if ANY not in allowed and (stream is None or stream not in allowed):
            raise Refused("forbidden", "token must be for this stream")
        self._slow_down(token)
        return token.name

    def _token(self, header: str | None) -> Pass:
        if header is None or not header.startswith("Bearer "):
            raise Refused("unauthorized", "Authorization must be 'Bearer' and a token")
        now = self._clock()
        if now - self._read >= EVERY:
            self._tokens = {token.hash: token for token in self._store.tokens()}
            self._read = now
        given = hashed(header.removeprefix("Bearer "))
        found = self._tokens.get(given)
        if found is None or not hmac.compare_digest(found.hash, given) or found.revoked is not None:
            raise Refused("unauthorized", "token must be one that is known and not revoked")
        return found

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
