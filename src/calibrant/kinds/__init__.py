"""Kinds of outcomes, a package each: all that depends on what outcomes are.

What a kind reads from columns, how its recalibrator is made, followed and summarised, and how its
summary is drawn and shown.  A package that is there is registered.  Everybody else asks
:data:`calibrant.summary.kinds`.
"""

from typing import Final

from calibrant.kinds.binary import Binary
from calibrant.kinds.classes import Classes
from calibrant.kinds.groups import Groups
from calibrant.kinds.numbers import Numbers
from calibrant.registry import import_modules
from calibrant.summary import Kind, kinds

__all__ = ["KINDS", "Binary", "Classes", "Groups", "Numbers"]

import_modules(__name__, __path__)

KINDS: Final[tuple[Kind, ...]] = tuple(kinds)
"""Every kind; the last one takes whatever no other wants."""
