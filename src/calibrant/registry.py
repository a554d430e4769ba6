"""Where calibrators and transforms are found by name.

The command line, the documentation's tables, the contract tests and the benchmarks
all read these registries; a module in :mod:`calibrant.calibrators` or
:mod:`calibrant.transforms` that registers nothing fails a test.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from calibrant.errors import UnknownName

__all__ = ["Registry", "calibrators", "import_modules", "transforms"]

T = TypeVar("T")


class Registry(Generic[T]):
    """Names, in alphabetical order, and what they stand for.

    >>> colours: Registry[int] = Registry("colour")
    >>> _ = colours.add("red")(0xFF0000)
    >>> colours.get("blue")
    Traceback (most recent call last):
    calibrant.errors.UnknownName: colour must be one of 'red', got 'blue'
    """

    def __init__(self, noun: str) -> None:
        self.noun = noun
        self._entries: dict[str, T] = {}

    def add(self, name: str) -> Callable[[T], T]:
        """Return a decorator that enters what it decorates under ``name``, and names a class so."""

        def enter(entry: T) -> T:
            self._entries[name] = entry
            if isinstance(entry, type):
                entry.name = name  # type: ignore[attr-defined]
            return entry

        return enter

    def get(self, name: str) -> T:
        """Return the entry of that name, or say which names there are."""
        if not isinstance(name, str) or name not in self._entries:
            listed = ", ".join(repr(known) for known in self.names())
            raise UnknownName(f"{self.noun} must be one of {listed}, got {name!r}")
        return self._entries[name]

    def names(self) -> tuple[str, ...]:
        """Return all names in alphabetical order."""
        return tuple(sorted(self._entries))


def import_modules(package: str, path: Iterable[str]) -> None:
    """Import every module of ``package``, which lies at ``path``: each registers its own."""
    for found in pkgutil.iter_modules(path):
        importlib.import_module(f"{package}.{found.name}")


calibrators: Registry[type] = Registry("method")
"""Every calibrator by name; :mod:`calibrant.calibrators` fills it."""

transforms: Registry[type] = Registry("transform")
"""Every transform of the raw forecast by name; :mod:`calibrant.transforms` fills it."""
