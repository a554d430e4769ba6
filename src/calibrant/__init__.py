"""Probabilities you can trust on a live stream.

>>> from calibrant import Calibrant
>>> model = Calibrant(seed=7)
>>> ticket = model.forecast(0.83)
>>> _ = model.observe(ticket, 1)
"""

from typing import TYPE_CHECKING, Any

from calibrant._version import __version__

if TYPE_CHECKING:
    from calibrant.recalibrate import Calibrant, Certificate, Pending, Recalibrator, Run
    from calibrant.recalibrate.load import load

__all__ = ["Calibrant", "Certificate", "Pending", "Recalibrator", "Run", "__version__", "load"]


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for: NumPy and the kernels take a while."""
    if name not in __all__:
        raise AttributeError(f"module 'calibrant' has no attribute {name!r}")
    from calibrant import recalibrate

    return globals().setdefault(name, getattr(recalibrate, name))


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
