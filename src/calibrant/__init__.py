"""Probabilities you can trust on a live stream.

>>> from calibrant import Calibrant
>>> model = Calibrant(seed=7)
>>> ticket = model.forecast(0.83)
>>> _ = model.observe(ticket, 1)

The packages are attributes, loaded when first used.

>>> import calibrant
>>> calibrant.metrics.brier([0.8, 0.4], [1, 0])
0.1
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from calibrant._version import __version__

if TYPE_CHECKING:
    from calibrant import advice as advice
    from calibrant import bounds as bounds
    from calibrant import calibrators as calibrators
    from calibrant import capacity as capacity
    from calibrant import classes as classes
    from calibrant import client as client
    from calibrant import compare as compare
    from calibrant import datasets as datasets
    from calibrant import errors as errors
    from calibrant import experiments as experiments
    from calibrant import frames as frames
    from calibrant import groups as groups
    from calibrant import integrations as integrations
    from calibrant import journal as journal
    from calibrant import learners as learners
    from calibrant import live as live
    from calibrant import losses as losses
    from calibrant import metrics as metrics
    from calibrant import monitor as monitor
    from calibrant import outcomes as outcomes
    from calibrant import plot as plot
    from calibrant import recalibrate as recalibrate
    from calibrant import registry as registry
    from calibrant import regression as regression
    from calibrant import report as report
    from calibrant import serve as serve
    from calibrant import simulate as simulate
    from calibrant import stream as stream
    from calibrant import summary as summary
    from calibrant import transforms as transforms
    from calibrant.core.ticket import Ticket
    from calibrant.journal import Journal
    from calibrant.loading import load
    from calibrant.recalibrate import (
        Calibrant,
        Certificate,
        Keys,
        Pending,
        Recalibrator,
        Run,
        Table,
    )

__all__ = [
    "Calibrant",
    "Certificate",
    "Journal",
    "Keys",
    "Pending",
    "Recalibrator",
    "Run",
    "Table",
    "Ticket",
    "__version__",
    "load",
]

HOMES = {
    "Journal": "calibrant.journal",
    "Ticket": "calibrant.core.ticket",
    "load": "calibrant.loading",
}
"""Where names live that are not the recalibrators'."""
_INSIDE = {"cli", "core", "demo", "experts", "kernels", "kinds", "loading"}
"""Not for users: the command, the demo, an old name, and what the packages are made of."""


def _packages() -> set[str]:
    """Return the packages for users; some need an extra, so that ``import *`` leaves them out."""
    from pkgutil import iter_modules

    return {name for _, name, _ in iter_modules(__path__) if name[0] != "_"} - _INSIDE


def __getattr__(name: str) -> Any:
    """Import a package or class when somebody asks for that: NumPy and the kernels take a while."""
    if name in __all__:
        home = HOMES.get(name, "calibrant.recalibrate")
        return globals().setdefault(name, getattr(import_module(home), name))
    if name not in _packages():
        raise AttributeError(f"module 'calibrant' has no attribute {name!r}")
    return import_module(f"calibrant.{name}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_packages()})
