"""Predictive distributions: one at a time, or a table of them, a round a row.

Here are also the rules for numbers that come in: tables of finite ones, and levels in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Self, overload

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core import check
from calibrant.core.arrays import Mask, Reals
from calibrant.errors import InvalidInput, InvalidType
from calibrant.regression import curves
from calibrant.regression.curves import with_ends

MOST_LEVELS: Final = 1000
"""Levels that one recalibrator follows, at most."""


@dataclass(frozen=True, eq=False)
class Distributions:
    """A table of predictive distributions, a round a row.

    Made by :meth:`from_quantiles`, :meth:`from_cdf`, :meth:`from_samples` or :meth:`normal`.

    Attributes
    ----------
    values, levels
        The knots of each row's CDF, which goes straight between them: a vertical piece is an
        atom.  Rows that have the same levels share one row of them.  For normal distributions
        ``values`` holds mean and standard deviation, and there are no levels.
    inner, outer
        Where a recalibrator moved the levels of normal distributions: ``inner`` became ``outer``.

    Examples
    --------
    >>> two = Distributions.normal([0.0, 10.0], [1.0, 2.0])
    >>> two.quantile([0.5, 0.975]).round(2).tolist()
    [[0.0, 1.96], [10.0, 13.92]]
    >>> two.crps([0.0, 10.0]).round(3).tolist()
    [0.234, 0.467]
    """

    values: Reals
    levels: Reals
    inner: Reals
    outer: Reals

    # ------------------------------------------------------------------- made of

    @classmethod
    def from_quantiles(cls, levels: ArrayLike, values: ArrayLike) -> Distributions:
        """Return distributions with these quantiles, straight between them and beyond.

        Parameters
        ----------
        levels
            At least two numbers in [0, 1], in order, the same for all rows.
        values
            A table: the quantiles of a round in a row.  They never fall.
        """
        given = check.probabilities(levels, "levels")
        told = rising(table(values, "values"), "values")
        _fit(told, _climbing(given), "values", "levels")
        return knots(*curves.extended(told, given[None]))

    @classmethod
    def from_cdf(cls, points: ArrayLike, chances: ArrayLike) -> Distributions:
        """Return distributions with these CDF values, straight between them and beyond.

        Parameters
        ----------
        points
            At least two numbers in order, the same for all rows.  One given twice is an atom.
        chances
            A table: the chances of at most each point, in [0, 1]; they never fall in a row.
        """
        given, told = finite(points, "points"), rising(table(chances, "chances"), "chances")
        rising(given[None], "points")
        _fit(told, given, "chances", "points")
        check.probabilities(told.ravel(), "chances")
        values = np.broadcast_to(given, told.shape)
        return knots(*curves.extended(values, told))

    @classmethod
    def from_samples(cls, members: ArrayLike) -> Distributions:
        """Return the empirical distributions of samples: a table, the members of a round a row."""
        return knots(*curves.steps(table(members, "samples")))

    @classmethod
    def normal(cls, mean: ArrayLike, sd: ArrayLike) -> Distributions:
        """Return normal distributions, given means and standard deviations above 0."""
        middle, width = finite(mean, "mean"), finite(sd, "sd")
        check.same_length(mean=middle, sd=width)
        check.refuse_first(width <= 0.0, width, "sd", "above 0")
        return knots(np.column_stack([middle, width]), np.empty((1, 0)))

    @classmethod
    def _joined(cls, given: list[Distributions]) -> Distributions:
        """Return one table of several, whose levels nobody moved."""
        if not given:
            return cls.normal([], [])
        if len({(each.values.shape, each.levels.shape) for each in given}) > 1:
            raise InvalidInput("raw forecasts must be of one form and size to be replayed together")
        values = np.concatenate([each.values for each in given])
        levels = np.concatenate([each.levels for each in given])
        return knots(values, levels[:1] if (levels == levels[0]).all() else levels)

    # --------------------------------------------------------------------- facts

    def __len__(self) -> int:
        return len(self.values)

    @property
    def is_normal(self) -> bool:
        """Whether the distributions are normal ones, moved or not."""
        return not self.levels.shape[1]

    @overload
    def __getitem__(self, row: int) -> Distribution: ...

    @overload
    def __getitem__(self, row: slice) -> Distributions: ...

    def __getitem__(self, row: int | slice) -> Distribution | Distributions:
        if not isinstance(row, slice):
            return Distribution(self[range(len(self))[row] : range(len(self))[row] + 1])
        levels = self.levels if len(self.levels) == 1 else self.levels[row]
        return Distributions(self.values[row], levels, self.inner[row], self.outer[row])

    def quantile(self, levels: ArrayLike) -> Reals:
        """Return the quantiles at these levels, a row each: the first value that reaches them."""
        asked = check.probabilities(np.atleast_1d(np.asarray(levels)), "levels")[None]
        if self.is_normal and self.inner.shape[1]:
            asked = curves.ask(with_ends(self.inner), with_ends(self.outer), asked)[0]
        return curves.ask(self.values, self.levels, asked)[0]

    def cdf(self, points: ArrayLike) -> Reals:
        """Return each row's chance of at most its point."""
        return self._chance(points, below=False)

    def below(self, points: ArrayLike) -> Reals:
        """Return each row's chance of less than its point: an atom there is left out."""
        return self._chance(points, below=True)

    def _chance(self, points: ArrayLike, below: bool) -> Reals:
        given = finite(points, "points")
        check.same_length(distributions=self, points=given)
        if not self.is_normal:
            return curves.curve_cdf(self.values, self.levels, given, below=below)
        level = curves.normal_cdf((given - self.values[:, 0]) / self.values[:, 1])
        return curves.level_map(self.inner, self.outer, level)

    def pit(self, outcomes: ArrayLike, coins: ArrayLike | float = 0.5) -> Reals:
        """Return the probability integral transform of each outcome.

        It is the chance of less plus, on an atom, ``coins`` times the atom: with coins drawn
        evenly from [0, 1) it is uniform where the distributions are right (randomised PIT).
        """
        low, high = self.below(outcomes), self.cdf(outcomes)
        return np.asarray(low + np.asarray(coins) * (high - low))

    def crps(self, outcomes: ArrayLike) -> Reals:
        """Return the continuous ranked probability score of each row, in closed form."""
        given = finite(outcomes, "outcomes")
        check.same_length(distributions=self, outcomes=given)
        if not self.is_normal:
            return curves.crps(self.values, np.broadcast_to(self.levels, self.values.shape), given)
        mean, sd = self.values.T
        return curves.normal_crps(mean, sd, self.inner, self.outer, given)

    def moved(self, inner: Reals, outer: Reals) -> Distributions:
        """Return the same with new levels: ``inner[t, k]`` becomes ``outer[t, k]``.

        Straight in between; both never fall along a row.  Quantiles stay where they are, and
        what they are called changes.

        >>> fair = Distributions.from_quantiles([0.0, 1.0], [[0.0, 10.0]])
        >>> fair.moved(np.array([[0.5]]), np.array([[0.8]])).quantile([0.8, 0.9]).tolist()
        [[5.0, 7.5]]
        """
        if self.is_normal:
            if self.inner.shape[1]:
                raise InvalidInput("distributions must not have been moved before, got moved ones")
            return Distributions(self.values, self.levels, inner, outer)
        at = curves.ask(self.values, self.levels, inner)[0]
        table = np.broadcast_to(self.levels, self.values.shape)
        levels = curves.composed(table, inner, outer)
        return knots(np.sort(np.hstack([self.values, at]), axis=1), levels)


def knots(values: Reals, levels: Reals) -> Distributions:
    """Return distributions with these knots, whose levels nobody moved."""
    made, nothing = np.ascontiguousarray(values), np.empty((len(values), 0))
    return Distributions(made, np.ascontiguousarray(levels), nothing, nothing)


def _fit(told: Reals, given: Reals, name: str, other: str) -> None:
    if len(given) < 2:
        raise InvalidInput(f"{other} must be at least two, got {len(given)}")
    if told.shape[1] != len(given):
        rule = f"{len(given)} columns, as many as {other}"
        raise InvalidInput(f"{name} must have {rule}, got {told.shape[1]}")


@dataclass(frozen=True, eq=False)
class Distribution:
    """One predictive distribution, exact: a CDF of straight pieces and jumps, or a normal one.

    Attributes
    ----------
    rows
        The same as a table of one row.

    Notes
    -----
    What is given says nothing about the tails.  Quantiles and CDF values go on straight beyond
    both ends, with the slope of the last piece, until the levels 0 and 1; give these levels
    yourself where the range is known.  Samples end at their smallest and largest member.

    Examples
    --------
    >>> rain = Distribution.from_samples([0.0, 0.0, 0.0, 1.2])
    >>> rain.cdf(0.0), rain.below(0.0), rain.quantile(0.8)
    (0.75, 0.0, 1.2)
    >>> rain.pit(0.0, coin=0.5), round(rain.crps(0.0), 3)
    (0.375, 0.075)
    >>> Distribution.from_quantiles([0.1, 0.5, 0.9], [2.0, 4.0, 8.0]).quantile([0.0, 0.5])
    array([1.5, 4. ])
    """

    rows: Distributions

    @classmethod
    def from_quantiles(cls, levels: ArrayLike, values: ArrayLike) -> Self:
        """Return the distribution with these quantiles; see :class:`Distributions`."""
        return cls(Distributions.from_quantiles(levels, _row(values, "values")))

    @classmethod
    def from_cdf(cls, points: ArrayLike, chances: ArrayLike) -> Self:
        """Return the distribution with these CDF values; a point given twice is an atom."""
        return cls(Distributions.from_cdf(points, _row(chances, "chances")))

    @classmethod
    def from_samples(cls, members: ArrayLike) -> Self:
        """Return the empirical distribution of a sample, such as a weather ensemble."""
        return cls(Distributions.from_samples(_row(members, "samples")))

    @classmethod
    def normal(cls, mean: float, sd: float) -> Self:
        """Return a normal distribution with that mean and standard deviation."""
        return cls(Distributions.normal([check.real(mean, "mean")], [check.above(sd, "sd")]))

    @overload
    def quantile(self, level: float) -> float: ...

    @overload
    def quantile(self, level: list[float] | Reals) -> Reals: ...

    def quantile(self, level: Any) -> float | Reals:
        """Return the first value that reaches ``level``, or an array of such values."""
        found = self.rows.quantile(level)[0]
        return found if np.ndim(level) else float(found[0])

    def cdf(self, point: float) -> float:
        """Return the chance of at most ``point``."""
        return float(self.rows.cdf([point])[0])

    def below(self, point: float) -> float:
        """Return the chance of less than ``point``."""
        return float(self.rows.below([point])[0])

    def pit(self, outcome: float, coin: float = 0.5) -> float:
        """Return the chance of less, and ``coin`` times the chance of the outcome itself."""
        return float(self.rows.pit([outcome], coin)[0])

    def crps(self, outcome: float) -> float:
        """Return the continuous ranked probability score, in closed form."""
        return float(self.rows.crps([outcome])[0])

    def __repr__(self) -> str:
        if self.rows.is_normal and not self.rows.inner.shape[1]:
            mean, sd = self.rows.values[0].tolist()
            return f"Distribution.normal({mean!r}, {sd!r})"
        low, middle, high = self.rows.quantile([0.1, 0.5, 0.9])[0].tolist()
        return f"Distribution(10 % {low:.4g}, 50 % {middle:.4g}, 90 % {high:.4g})"


def _row(values: ArrayLike, name: str) -> Reals:
    return check.numbers(values, name, "numbers")[None]


def finite(values: Any, name: str) -> Reals:
    """Return ``values`` as a flat array of finite numbers.

    >>> finite([1, float("nan")], "outcomes")
    Traceback (most recent call last):
    calibrant.errors.InvalidInput: outcomes[1] must be a finite number, got nan
    """
    array = check.numbers(values, name, "finite numbers").astype(np.float64)
    check.refuse_first(~np.isfinite(array), array, name, "a finite number")
    return array


def table(values: Any, name: str) -> Reals:
    """Return ``values`` as a table of finite numbers, a round a row.

    >>> table([[1.0, 2.0], [3.0, float("inf")]], "samples")
    Traceback (most recent call last):
    calibrant.errors.InvalidInput: samples[1, 1] must be a finite number, got inf
    """
    array = check.rows(values, name, "a table of numbers")
    if array.ndim != 2 or array.shape[1] == 0:
        raise InvalidInput(f"{name} must be a table, a round a row, got shape {array.shape}")
    if array.dtype.kind not in "biuf":
        raise InvalidType(f"{name} must be a table of numbers, got dtype {array.dtype}")
    made = array.astype(np.float64)
    _refuse(~np.isfinite(made), made, name, "a finite number")
    return made


def rising(rows: Reals, name: str) -> Reals:
    """Return a table whose rows never fall, or say which number does.

    >>> rising(np.array([[0.1, 0.3, 0.2]]), "values")
    Traceback (most recent call last):
    calibrant.errors.InvalidInput: values[0, 2] must be at least the number before it, got 0.2
    """
    bad = np.zeros(rows.shape, bool)
    bad[:, 1:] = rows[:, 1:] < rows[:, :-1]
    _refuse(bad, rows, name, "at least the number before it")
    return rows


def target_levels(levels: Any) -> Reals:
    """Return the levels to follow: those given, or so many at equal distances.

    >>> target_levels(4).tolist(), target_levels([0.05, 0.5]).tolist()
    ([0.2, 0.4, 0.6, 0.8], [0.05, 0.5])
    """
    if check.is_integer(levels) and not isinstance(levels, bool):
        count = check.whole(levels, "levels", low=1, high=MOST_LEVELS)
        return np.arange(1, count + 1) / (count + 1)
    given = check.numbers(levels, "levels", "numbers between 0 and 1").astype(np.float64)
    check.whole(len(given), "number of levels", low=1, high=MOST_LEVELS)
    inside = (given > 0.0) & (given < 1.0)
    check.refuse_first(~inside, given, "levels", "between 0 and 1")
    return _climbing(given)


def _climbing(levels: Reals) -> Reals:
    falls = np.append(False, levels[1:] <= levels[:-1])
    check.refuse_first(falls, levels, "levels", "above the one before it")
    return levels


def _refuse(bad: Mask, rows: Reals, name: str, rule: str) -> None:
    if bad.any():
        row, column = np.argwhere(bad)[0].tolist()
        told = f"{rule}, got {rows[row, column].item()!r}"
        raise InvalidInput(f"{name}[{row}, {column}] must be {told}")
