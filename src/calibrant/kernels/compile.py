"""Machine code for the kernels, made when it is first needed, and only with Numba.

``compiled(function, name)`` hands the plain function to Numba; the functions it
calls are registered first, so the compiled program consists of the same function
objects that run without a compiler.  The cache on disk is keyed by a digest of
all kernel sources: an upgrade never runs yesterday's code.  A cache that cannot be
read or written costs a warning and the time to compile.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import importlib.util
import os
import pathlib
import threading
import warnings
from bisect import bisect_right
from collections.abc import Callable
from typing import Any, Final

from calibrant.kernels import ahead, bits, gaps, portable
from calibrant.kernels.coin import SPLITMIX, UNIT, coin, mixed, secret_word, siphash, splitmix, toss
from calibrant.kernels.fetch import fetch
from calibrant.kernels.layout import COINS, KEY, SECRET
from calibrant.kernels.place import place_after, point_before, point_by_halves, run_at, run_here

SHORT: Final = 20_000
"""Batches up to this long do not start the compiler: it would take longer than they do."""

_door: Final = threading.RLock()
_known: Final[set[Any]] = set()
TRIED: Final = (0, 68), (0, 68)
"""First and last version of Numba with whose inner works programs are compiled in less time."""

HOT: Final = frozenset({"bucket_of", "draw", "exp_short", "mean", "update"})
"""Functions that are written into their callers, whatever their size."""

TRANSFORMS: Final = "calibrant.kernels.transforms."
"""So are the functions of these modules: a call would pass two arrays in twenty words."""
MERGED: Final = frozenset({"eight", "fill_lane", "quarter", "stir"})
"""Inlined as well: a call would keep a loop from doing several of its turns together."""
COLD: Final = frozenset({"late", "predict"})
"""Functions that are called: only where an outcome was late, or where notes were lost."""
INSTEAD: Final[dict[Any, Callable[..., Any]]] = {
    portable.split: bits.split,
    portable.scaled: bits.scaled,
    portable.lanes: bits.lanes,
    bisect_right: place_after,
    point_before: point_by_halves,
    run_at: run_here,
    gaps.draw: gaps.draw_in_doubles,
    ahead.columns: ahead.columns_ahead,
    ahead.begin: ahead.begin_ahead,
    ahead.turn: ahead.turn_ahead,
    ahead.turn_alone: ahead.turn_alone_ahead,
    ahead.prepare: ahead.prepare_ahead,
    ahead.prepare_alone: ahead.prepare_alone_ahead,
}
"""What compiled code calls instead: the same results from the bits, without a search, or ahead."""
UNSIGNED: Final = (coin, mixed, secret_word, toss)
"""What compiled code calls with unsigned words."""


@functools.cache
def available() -> bool:
    """Say whether kernels can be compiled here: Numba is there and not switched off.

    Set ``CALIBRANT_COMPILE=off`` in the environment to do without it.
    """
    if os.environ.get("CALIBRANT_COMPILE", "auto") == "off":
        return False
    return importlib.util.find_spec("numba") is not None


@functools.cache
def digest() -> str:
    """Return a fingerprint of every kernel's source."""
    seen = hashlib.blake2b(digest_size=8)
    for source in sorted(pathlib.Path(__file__).parent.rglob("*.py")):
        seen.update(source.read_bytes())
    return seen.hexdigest()


def numba() -> Any:
    """Return how this version of Numba compiles programs."""
    version = getattr(importlib.import_module("numba"), "__version__", "0.68")
    first, second, *_ = version.split(".")
    tried = TRIED[0] <= (int(first), int(second)) <= TRIED[1]
    return importlib.import_module(f"calibrant.kernels.{'inner' if tried else 'usual'}")


@functools.cache
def register(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make ``function``, and each kernel function that it calls, known to the compiler."""
    if function is fetch:
        asked = importlib.import_module("calibrant.kernels.prefetch").fetch_now
        _make_known(function, asked, True)
        return function
    if function in UNSIGNED:
        _register_unsigned(function)
        return function
    if function in INSTEAD:
        _register_instead(function, INSTEAD[function])
        return function
    for called in _called(function):
        register(called)
    if function.__closure__:
        function.__qualname__ = f"{function.__name__}_{mark(function)}"
    hot = {function.__name__, function.__name__.partition("_")[0]} & HOT
    forced = hot or function.__module__.startswith(TRANSFORMS) or function.__name__ in MERGED
    _make_known(function, function, bool(forced) and function.__name__ not in COLD)
    return function


def _make_known(function: Callable[..., Any], instead: Callable[..., Any], force: bool) -> None:
    """Let programs call ``instead`` where their source says ``function``, once for all threads."""
    with _door:
        how = numba()
        if (how, function) not in _known:
            how.make_known(function, instead, force)
            _known.add((how, function))


@functools.cache
def compiled(function: Callable[..., Any], name: str, nogil: bool = False) -> Callable[..., Any]:
    """Return ``function`` compiled; ``name`` tells it from its siblings in the cache.

    Batches let other threads run (``nogil``); single steps are over too soon for that.
    """
    for called in _called(function):
        register(called)
    function.__qualname__ = f"{function.__name__}_{name}_{digest()}"
    made: Callable[..., Any] = numba().program(function, nogil)
    _cached(made, function)
    return made


def _cached(made: Any, function: Callable[..., Any]) -> None:
    """Let a function keep its machine code on disk, as far as the disk lets it."""
    from numba.core.caching import FunctionCache

    class Spare(FunctionCache):  # type: ignore[misc]
        """A cache that is done without where it fails."""

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            try:
                # Numba would load all that it may need to compile first, for a third of a second.
                with self._guard_against_spurious_io_errors():
                    found = self._load_overload(sig, target_context)
                if found is None:
                    begins()
                return found
            except Exception as error:
                _without_cache(error)
            begins()
            with contextlib.suppress(Exception):
                # What is damaged is forgotten, and written anew once it is compiled.
                self.flush()
            return None

        def save_overload(self, sig: Any, data: Any) -> None:
            try:
                super().save_overload(sig, data)
            except Exception as error:
                _without_cache(error)

    try:
        made._cache = Spare(function)
    except Exception as error:
        _without_cache(error)


tellers: Final[list[Callable[[], None]]] = []
"""Who wants to hear once that the compiler begins: machine code was not on disk."""


def begins() -> None:
    """Tell whoever wants to hear that the compiler begins."""
    while tellers:
        tellers.pop()()


def are_made(*functions: Any) -> bool:
    """Say whether compiled functions have their machine code, in this process or on disk."""
    try:
        return all(map(_is_made, functions))
    except Exception:
        # What cannot be read now cannot be loaded either.
        return False


def _is_made(made: Any) -> bool:
    machine = made.targetctx.codegen().magic_tuple()
    found = made._cache._cache_file._load_index()
    return bool(made.overloads) or any(key[1] == machine for key in found)


_told: Final[list[bool]] = []


def _without_cache(error: Exception) -> None:
    """Tell once that the cache is of no use."""
    if not _told:
        _told.append(True)
        told = f"machine code is compiled anew, for its cache cannot be used: {error!r}"
        warnings.warn(told, RuntimeWarning, stacklevel=2)


def entry_point(dispatcher: Any) -> Callable[..., Any]:
    """Return the machine code of a function that was compiled for one kind of arguments.

    It skips the dispatcher's look at the arguments (measured: 70 instead of 165 ns a
    call), so they must be exactly of that kind; the dispatcher must be kept alive.
    """
    (made,) = dispatcher.overloads.values()
    entry: Callable[..., Any] = made.entry_point
    return entry


def _called(function: Callable[..., Any]) -> list[Callable[..., Any]]:
    code = function.__code__
    inner = [cell.cell_contents for cell in function.__closure__ or ()]
    outer = [function.__globals__.get(name) for name in code.co_names]
    return [f for f in inner + outer if _is_kernel(f)]


def mark(function: Any) -> str:
    """Return a name that tells a function made for one rule from its siblings for others.

    Machine code is linked by name, and a cached program brings the names of the process
    that compiled it: two functions of one name in two programs would be taken for one.
    """
    seen = hashlib.blake2b(digest().encode(), digest_size=8)
    for cell in function.__closure__ or ():
        inner = cell.cell_contents
        known = _is_kernel(inner)
        seen.update(
            f"{inner.__module__}.{inner.__name__} ".encode() if known else repr(inner).encode()
        )
        seen.update(mark(inner).encode() if known else b" ")
    return seen.hexdigest()


def _is_kernel(value: Any) -> bool:
    module = getattr(value, "__module__", None) or ""
    return callable(value) and (value is bisect_right or module.startswith("calibrant.kernels."))


def _register_unsigned(function: Callable[..., Any]) -> None:
    """Let compiled code throw coins with unsigned words, and none made ahead by ``toss``."""
    _make_known(function, _unsigned()[function], True)


@functools.cache
def _unsigned() -> dict[Any, Callable[..., Any]]:
    """Return what compiled code does where the source throws a coin."""
    import numpy

    for each in (mixed, siphash, splitmix):
        _make_known(each, each, True)
    old = numba().inner(coin, True)
    new = numba().inner(secret_word, True)
    word, signed = numpy.uint64, numpy.int64

    def by_key(key: Any, clock: Any) -> Any:
        return old(word(key), word(clock))

    def by_secret(low: Any, high: Any, block: Any, clock: Any) -> Any:
        return signed(new(word(low), word(high), word(block), word(clock)))

    def by_row(words: Any, row: Any, at: Any, block: Any, clock: Any) -> Any:
        if words[COINS] == SPLITMIX:
            return old(word(words[at + KEY]), word(clock))
        low, high = word(words[row + SECRET]), word(words[row + SECRET + 1])
        return signed(new(low, high, word(block), word(clock))) * UNIT

    return {coin: by_key, secret_word: by_secret, toss: by_row}


def _register_instead(function: Callable[..., Any], other: Callable[..., Any]) -> None:
    """Let compiled code call ``other`` where the source says ``function``."""
    for called in _called(other):
        register(called)
    _make_known(function, other, True)
