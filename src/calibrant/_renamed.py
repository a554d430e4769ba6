"""Names that were given up: they still work, and warn which name to use instead."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["former", "renamed"]


def renamed(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a module's ``__getattr__`` that finds old names at their new places.

    Parameters
    ----------
    module
        The module that had the names.
    names
        Where each old name is found now, as ``"package.module:name"``.

    Examples
    --------
    >>> find = renamed("old", {"root": "math:sqrt"})
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     find("root")(4.0), str(caught[0].message)
    (2.0, 'old.root is now math.sqrt')
    """

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        place, _, new = names[name].partition(":")
        warnings.warn(f"{module}.{name} is now {place}.{new}", DeprecationWarning, stacklevel=2)
        return getattr(importlib.import_module(place), new)

    return find


def former(old: str, new: str) -> Any:
    """Return a property that finds what ``old``, as ``"Class.name"``, is called now."""
    name = new.rpartition(".")[2]

    def read(owner: Any) -> Any:
        warnings.warn(f"{old} is now called {new}", DeprecationWarning, stacklevel=2)
        return getattr(owner, name)

    return property(read, doc=f"The old name of :attr:`{name}`.")
