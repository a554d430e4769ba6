"""A River regressor with intervals that hold as many outcomes as they should."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, Final

from river import base, conf

from calibrant.core import check
from calibrant.regression import ConformalInterval

METHOD: Final[str] = inspect.signature(ConformalInterval).parameters["method"].default


class RecalibratedRegressor(base.Wrapper, base.Regressor):
    """Give any River regressor intervals that cover what they promise, also under drift.

    The wrapped model's prediction is read before the model learns the outcome, and a
    conformal method learns how far around it the outcomes lie.  Predictions stay the model's.

    Parameters
    ----------
    regressor
        The model to wrap; a pipeline is fine.
    confidence_level
        Which part of outcomes should be inside.
    method
        The name of a method of :class:`calibrant.regression.ConformalInterval`, whose default is
        the default here.
    **options
        Options of the method.

    Notes
    -----
    The coverage tends to the level for any sequence of outcomes, in the long run and not given
    what is known in a round; ``interval.certificate()`` has the bound.  Where outcomes come late,
    `learn_one` reads the prediction anew.

    References
    ----------
    Gibbs and Candes (2021), "Adaptive conformal inference under distribution shift".

    Examples
    --------
    >>> from river import datasets, linear_model, preprocessing, stats
    >>> model = preprocessing.StandardScaler() | linear_model.LinearRegression(intercept_lr=0.1)
    >>> model = RecalibratedRegressor(model, confidence_level=0.9)
    >>> covered = stats.Mean()
    >>> for x, y in datasets.TrumpApproval():
    ...     covered.update(y in model.predict_one(x, with_interval=True))
    ...     model.learn_one(x, y)
    >>> round(covered.get(), 2)
    0.9
    """

    def __init__(
        self,
        regressor: base.Regressor,
        confidence_level: float = 0.9,
        method: str = METHOD,
        **options: Any,
    ) -> None:
        self.regressor = regressor
        self.confidence_level = confidence_level
        self.method = method
        self.options = options
        self._interval = ConformalInterval(method, coverage=confidence_level, seed=0, **options)

    @property
    def _wrapped_model(self) -> base.Regressor:
        return self.regressor

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        from river import linear_model, preprocessing

        yield {"regressor": preprocessing.StandardScaler() | linear_model.LinearRegression()}

    @property
    def interval(self) -> ConformalInterval:
        """What was learned about the model's errors."""
        return self._interval

    def predict_one(self, x: Any, with_interval: bool = False, **kwargs: Any) -> Any:
        """Return the wrapped model's prediction, or an interval around it.

        Parameters
        ----------
        x
            A dictionary of features.
        with_interval
            Whether to return a ``river.conf.Interval`` instead of a number.
        **kwargs
            For the wrapped model.
        """
        centre = self.regressor.predict_one(x, **kwargs)
        if not with_interval:
            return centre
        low, high = self._interval.predict_one(float(centre))
        # A radius below 0 means that even a point covers too much.
        return conf.Interval(lower=min(low, centre), upper=max(high, centre))

    def learn_one(self, x: Any, y: float, **kwargs: Any) -> None:
        """Learn an outcome: its distance to the prediction before, and the wrapped model."""
        told = check.real(y, "y")
        centre = check.real(self.regressor.predict_one(x), "prediction")
        self.regressor.learn_one(x, y, **kwargs)
        # Not learn_one: rounds of outcomes that come late may overlap.
        self._interval.observe(self._interval.forecast(centre), told)
