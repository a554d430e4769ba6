"""Losses of a forecast, the constants that theorems need, and which are proper.

>>> from calibrant.losses import check_proper, get_loss
>>> get_loss("squared")(1, 0.25)
0.5625
>>> check_proper("hinge").proper
False
"""

from calibrant.losses.base import Loss, OrderedLoss
from calibrant.losses.custom import CustomLoss, ProperCheck
from calibrant.losses.named import (
    Absolute,
    Hinge,
    Log,
    LossLike,
    Misclassification,
    Spherical,
    Squared,
    get_loss,
    loss_names,
    registered_name,
)
from calibrant.losses.proper import CounterExample, check_proper, counter_example, require_proper

__all__ = [
    "Absolute", "CounterExample", "CustomLoss", "Hinge", "Log", "Loss", "LossLike",
    "Misclassification", "OrderedLoss", "ProperCheck", "Spherical", "Squared", "check_proper",
    "counter_example", "get_loss", "loss_names", "registered_name", "require_proper",
]  # fmt: skip
