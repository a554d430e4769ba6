"""Answers in fewer bytes: gzip for pages, and for events as they come, where it is accepted."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

LEVEL: Final = 6
FEWEST: Final = 500
"""Bytes below which packing is not worth it."""
VARY: Final = {"Vary": "Accept-Encoding"}
PACKED: Final = VARY | {"Content-Encoding": "gzip"}


def accepts(headers: Mapping[str, str]) -> bool:
    """Say whether whoever asks takes gzip.

    >>> accepts({"accept-encoding": "br, gzip;q=0.5"}), accepts({"accept-encoding": "gzip;q=0"})
    (True, False)
    >>> accepts({"accept-encoding": "*"}), accepts({})
    (False, False)
    """
    for told in headers.get("accept-encoding", "").lower().split(","):
        name, _, weight = (part.strip() for part in told.partition(";"))
        if name == "gzip":
            return weight.replace(" ", "").removeprefix("q=").rstrip("0.") != "" or not weight
    return False


def packed(text: str, headers: Mapping[str, str]) -> tuple[bytes, dict[str, str]]:
    """Return a text as bytes, packed if that is accepted, and the headers that say so.

    >>> body, told = packed("a" * 1000, {"accept-encoding": "gzip"})
    >>> len(body) < 100, told["Content-Encoding"], packed("a", {})
    (True, 'gzip', (b'a', {'Vary': 'Accept-Encoding'}))
    """
    body = text.encode()
    if len(body) < FEWEST or not accepts(headers):
        return body, dict(VARY)
    return gzip.compress(body, LEVEL, mtime=0), dict(PACKED)


async def packed_events(events: AsyncIterator[str]) -> AsyncIterator[bytes]:
    """Yield events packed, each so that it can be read as soon as it is there.

    What was sent before is remembered for a while, and what resembles it takes few bytes.
    """
    packer = gzip_packer()
    try:
        async for text in events:
            yield packer.compress(text.encode()) + packer.flush(zlib.Z_SYNC_FLUSH)
        yield packer.flush()
    finally:
        close: Any = getattr(events, "aclose", None)
        if close is not None:
            await close()


def gzip_packer() -> Any:
    """Return what packs the parts of one answer."""
    return zlib.compressobj(LEVEL, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
