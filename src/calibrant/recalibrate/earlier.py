"""What the same words have meant before: settings of a pattern that an earlier release gave it.

The default may change; what was stored goes on with the settings it has.  Where only the code says
what a state is made of, as where bodies are taken into a new table, it may say less than it seems:
``Calibrant()`` was something else when the state was written.  So every change of what a pattern
means is listed here with the way back, and a state is looked for under each of them in turn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from calibrant.core.codec import Document
from calibrant.recalibrate.parcel import Parcels, mark_of_model
from calibrant.recalibrate.recalibrator import Recalibrator
from calibrant.recalibrate.spec import Spec

Form = dict[str, Any]
"""Settings of a spec."""
WEIGHTS: Final = (5.5, 1.0, 1.0, 1.0, 1.2, 1.5, 1.0, 1.0)
"""First weights of the default's experts; one that reads context has 1 besides."""


def _before_slower_weights(told: Form) -> Form | None:
    """Undo: weights of experts follow more slowly, and these pull the last stage more strongly."""
    now, rule, found = _parameters(told), told["parameters"], told
    several = len(now.get("start", ()))
    usual = several - len(WEIGHTS) in (0, 1)
    if usual and [*now["start"]] == _first_weights((*WEIGHTS, 1.0)[:several]):
        rate = {"eta": 2.0} if now["eta"] == 1.7 else {}
        found = _with(found, start=_first_weights((7.0, *[1.0] * (several - 1))), **rate)
    if told["loss"] != "log" and now.get("share") == 6e-4:
        found = _with(found, share=3e-4)
    if told["method"] == "refining" and rule["strength"] == 5.3:
        found = found | {"parameters": rule | {"strength": 4.0}}
    return None if found is told else found


def _before_swaps(told: Form) -> Form | None:
    """Undo: mixtures watch for swaps of models."""
    return _with(told, swaps=False) if _parameters(told).get("swaps") else None


def _before_alike(told: Form) -> Form | None:
    """Undo: mixtures follow how much outcomes that wait together are alike."""
    return _with(told, alike=False) if _parameters(told).get("alike") else None


def _before_smaller_share(told: Form) -> Form | None:
    """Undo: under the log loss a tenth of the share returns to the first weights."""
    smaller = told["loss"] == "log" and _parameters(told).get("share") == 3e-5
    return _with(told, share=3e-4) if smaller else None


UNDO: Final[tuple[Callable[[Form], Form | None], ...]] = (
    _before_slower_weights,
    _before_swaps,
    _before_alike,
    _before_smaller_share,
)
"""The ways back, the latest change first; each is None where nothing had changed."""


def _parameters(told: Form) -> dict[str, Any]:
    """Return the parameters of the mixture that comes first; none where there is no mixture."""
    transform = told.get("transform") or {}
    return transform.get("parameters", {}) if transform.get("name") == "mixture" else {}


def _first_weights(told: Sequence[float]) -> list[float]:
    """Return weights as a mixture keeps them."""
    total = math.fsum(told)
    return [weight / total for weight in told]


def _with(told: Form, **changes: Any) -> Form:
    """Return settings whose mixture has other parameters."""
    parameters = _parameters(told) | changes
    for name in ("alike", "swaps"):
        if not parameters.get(name):
            parameters.pop(name, None)
    return told | {"transform": told["transform"] | {"parameters": parameters}}


def earlier_forms(told: Form) -> Iterator[Form]:
    """Yield the settings that a pattern with these settings of today has had, the latest first.

    >>> from calibrant import Calibrant
    >>> today = Calibrant(seed=1).spec.settings
    >>> before = next(earlier_forms(today))
    >>> today["parameters"]["strength"], before["parameters"]["strength"]
    (5.3, 4.0)
    """
    for undo in UNDO:
        found = undo(told)
        if found is not None:
            yield found
            told = found


def possible_forms(told: Form) -> Iterator[Form]:
    """Yield the same, and forms of code that named a share or a strength that is usual today."""
    slower, share = _before_slower_weights(told), _parameters(told).get("share")
    if slower is not None:
        named = slower if share is None else _with(slower, share=share)
        yield named
        for form in (slower, named):
            yield form | {"parameters": told["parameters"]}
    yield from earlier_forms(told)


def earlier_patterns(pattern: Recalibrator) -> Iterator[Recalibrator]:
    """Yield what a pattern has been before, or may have been."""
    made, most = type(pattern), {"max_open": pattern.max_open}
    for form in possible_forms(pattern.spec.settings):
        yield made._unborn(Document(made.kind, form | most, {}, made.version))


def patterns_of(parcels: Sequence[Any], pattern: Recalibrator) -> list[Recalibrator | None]:
    """Return whose body each parcel is: a pattern's of today, or what it was; None if neither's."""
    whole = [p if isinstance(p, bytes) and len(p) % 8 == 0 else b"" for p in parcels]
    found: list[Recalibrator | None] = [None] * len(whole)
    for made in (pattern, *earlier_patterns(pattern)):
        left = [k for k, known in enumerate(found) if known is None and whole[k]]
        if not left:
            break
        spec = made.spec
        mark = mark_of_model(made.kind, made.max_open, spec.settings)
        some = Parcels.joined([whole[k] for k in left], 2 + len(spec.fields))
        for k in np.flatnonzero(some.intact((), mark, skip=True)[0]).tolist():
            found[left[k]] = made
    return found


def was(spec: Spec, pattern: Any) -> bool:
    """Say whether a spec is that of a pattern, today or at an earlier time."""
    told = spec.settings
    forms = possible_forms(pattern.spec.settings)
    return spec == pattern.spec or any(told == form for form in forms)
