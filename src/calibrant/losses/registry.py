"""Losses by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from calibrant.errors import InvalidType, UnknownName
from calibrant.losses.absolute import Absolute
from calibrant.losses.base import Loss
from calibrant.losses.custom import CustomLoss
from calibrant.losses.hinge import Hinge
from calibrant.losses.log import Log
from calibrant.losses.misclassification import Misclassification
from calibrant.losses.spherical import Spherical
from calibrant.losses.squared import Squared

LossLike: TypeAlias = str | Loss | Callable[[Any, Any], Any]

_LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (Squared(), Log(), Misclassification(), Spherical(), Absolute(), Hinge())
}


def loss_names() -> tuple[str, ...]:
    """Return the names that ``get_loss`` knows, proper losses first.

    Examples
    --------
    >>> loss_names()
    ('squared', 'log', 'misclassification', 'spherical', 'absolute', 'hinge')
    """
    return tuple(_LOSSES)


def get_loss(loss: LossLike) -> Loss:
    """Return the loss of that name, the loss itself, or one made from a function.

    Examples
    --------
    >>> get_loss("squared")
    Squared()
    >>> get_loss(lambda outcome, forecast: abs(outcome - forecast) ** 3).proper
    False
    >>> get_loss("quadratic")
    Traceback (most recent call last):
    calibrant.errors.UnknownName: loss must be one of 'squared', 'log', 'misclassification',
    'spherical', 'absolute', 'hinge', got 'quadratic'
    """
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str):
        return _named(loss)
    if callable(loss):
        return CustomLoss(loss)
    raise InvalidType(f"loss must be a name, a loss or a function, got {loss!r}")


def registered_name(loss: Loss) -> str | None:
    """Return the name of a registered loss; None for any other, whatever it calls itself.

    Examples
    --------
    >>> registered_name(get_loss("squared"))
    'squared'
    >>> def squared(outcome, forecast):
    ...     return 100 * (outcome - forecast) ** 2
    >>> print(registered_name(get_loss(squared)))
    None
    """
    return loss.name if _LOSSES.get(loss.name) == loss else None


def _named(name: str) -> Loss:
    if name not in _LOSSES:
        known = ", ".join(repr(known) for known in _LOSSES)
        raise UnknownName(f"loss must be one of {known}, got {name!r}")
    return _LOSSES[name]
