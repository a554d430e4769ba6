"""The recalibrator to begin with."""

from __future__ import annotations

from typing import Any, Final

from calibrant.classes.one_vs_rest import OneVsRest
from calibrant.classes.top_label import TopLabel
from calibrant.classes.vectors import class_count

FEW: Final = 4
"""Up to so many classes each is worth a recalibrator of its own in every round."""


def recalibrator(classes: int, **options: Any) -> OneVsRest | TopLabel:
    """Return :class:`TopLabel` for more than four classes, and :class:`OneVsRest` otherwise.

    The latter is made with ``renormalise="project"`` unless ``options`` say otherwise, so that
    both announce distributions.

    >>> recalibrator(3, seed=1)
    OneVsRest(classes=3, engine='calibrant', renormalise='project', rounds=0)
    >>> recalibrator(10, seed=1)
    TopLabel(classes=10, engine='calibrant', conditional=True, rounds=0)
    """
    if class_count(classes) > FEW:
        return TopLabel(classes, **options)
    return OneVsRest(classes, **({"renormalise": "project"} | options))
