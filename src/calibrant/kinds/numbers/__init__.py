"""Numbers: a predictive distribution a row, and outcomes that are numbers."""

from __future__ import annotations

import re
from decimal import Decimal
from itertools import pairwise
from typing import Any, ClassVar, Final

from calibrant.core import check
from calibrant.errors import InvalidInput
from calibrant.kinds.numbers.summary import NumberCollector, NumberSummary, Seen, options_of
from calibrant.regression import QuantileRecalibrator, quantile_methods
from calibrant.summary import Engine, Told, kinds, read_if

__all__ = ["NumberCollector", "NumberSummary", "Numbers", "Seen", "options_of"]

DEFAULT: Final = "mixed"
SIZES: Final = ("resolution", "prior")
REFUSED: Final = dict.fromkeys(
    ("buckets", "grid", "epsilon", "loss", "scale", "group", "proba", "raw_safe", "context"),
    "it is for probabilities, and these are numbers",
)
GRIDLESS: Final = dict.fromkeys(SIZES, "the tracker has no grid")

NUMBER: Final = re.compile(r"(?P<whole>\d+)(?P<rest>\.\d+)?$")
PAIR: Final = 2
PERCENTS: Final = 2
"""Digits up to which a whole number at the end of a name is in percent."""


@kinds.add
class Numbers:
    """Quantiles in a column each, or mean and standard deviation; outcomes are numbers.

    quantiles COL,COL
        Instead of --raw: columns of quantiles, whose names end in their levels (q05, p95, q0.5)
        unless --levels gives them; outcomes are numbers, and --method is mixed, the default, pit or
        tracker.
    normal MEAN,SD
        Instead of --raw: columns of mean and standard deviation; the rest as with --quantiles.
    levels P,P
        Levels of --quantiles, or those to follow with --normal. [default with --normal: 0.05 to
        0.95]
    """

    name: ClassVar[str] = "numbers"
    precedence: ClassVar[int] = 30
    options: ClassVar[dict[str, str]] = {"quantiles": "raw", "normal": "raw", "levels": "numbers"}
    words: ClassVar[tuple[str | None, ...]] = ("number", "numbers")
    summary_type: ClassVar[type[NumberSummary]] = NumberSummary
    service: ClassVar[None] = None

    # -------------------------------------------------------------------- streams

    @property
    def session_type(self) -> type[Any]:
        """Return the class of its sessions; needs the extra ``cli``."""
        from calibrant.kinds.numbers.session import NumberSession

        return NumberSession

    def wants(self, asked: Any) -> bool:
        """Say whether quantiles or normal distributions are named."""
        return bool(asked.quantiles or asked.normal)

    def types(self, columns: Any) -> dict[str, str]:
        """Return which columns hold numbers: all that are read."""
        return dict.fromkeys((*columns.vector, columns.outcome), "double")

    def refuse(self, options: Any, method: str | None) -> None:
        """Refuse the options that make no sense for numbers."""
        options.refuse(REFUSED | (GRIDLESS if method == "tracker" else {}))

    def make(self, options: Any, seed: int | None) -> QuantileRecalibrator:
        """Return a new recalibrator that follows the levels of the columns."""
        self.refuse(options, options.method)
        method = check.choice(options.method or DEFAULT, "method", quantile_methods.names())
        *_, followed = columns_of(options.quantiles, options.normal, options.levels)
        wanted: dict[str, Any] = {"levels": followed} if followed else {}
        told = options.drawn(seed) | wanted | options.given(SIZES)
        return QuantileRecalibrator(method, **told)

    def session(self, options: Any, seed: int | None) -> Any:
        """Return a new session."""
        made = self.make(options, seed)
        named = columns_of(options.quantiles, options.normal, options.levels)
        return self.session_type.start(made, seed, *named[:2])

    def read(self, data: bytes, secret: bytes | None = None) -> QuantileRecalibrator:
        """Return a recalibrator that was stored."""
        return QuantileRecalibrator.from_bytes(data, secret=secret)

    def around(self, data: bytes, secret: bytes | None = None) -> Any | None:
        """Return a session of a recalibrator that was stored alone, whose columns are not known."""
        made = read_if(lambda data: self.read(data, secret), data)
        return None if made is None else self.session_type.start(made, None)

    # ------------------------------------------------------------------ summaries

    def makes(self, recalibrator: Engine) -> bool:
        """Say whether a recalibrator is of this kind."""
        return isinstance(recalibrator, QuantileRecalibrator)

    def collector(self, recalibrator: Engine) -> NumberCollector:
        """Return who can follow the forecasts."""
        return NumberCollector(recalibrator.levels)

    def summarise(self, collector: Any, recalibrator: Engine, told: Told) -> NumberSummary:
        """Return what was collected as a summary."""
        return NumberSummary.of(collector, recalibrator, told)

    @property
    def view(self) -> Any:
        """Return how summaries are shown."""
        from calibrant.kinds.numbers import view

        return view


def level_of_name(name: str) -> float | None:
    """Return the level that the name of a column ends in; None if it ends in no number.

    With a point it is the level itself up to 1, and in percent above.  Without one, up to two
    digits and 100 are percents, and more digits are those behind the point.

    >>> [level_of_name(name) for name in ("q05", "p95", "q_0.5", "q97.5", "q025", "q100", "low")]
    [0.05, 0.95, 0.5, 0.975, 0.025, 1.0, None]
    """
    found = NUMBER.search(name)
    if found is None:
        return None
    text = found[0]
    if found["rest"] is None and text != "100" and len(text) > PERCENTS:
        return float(f"0.{text}")
    value = Decimal(text)
    return float(value / 100 if found["rest"] is None or value > 1 else value)


def levels_of_names(columns: tuple[str, ...]) -> tuple[float, ...]:
    """Return the levels of columns of quantiles, by their names."""
    found: list[float] = []
    for name in columns:
        level = level_of_name(name)
        if level is None:
            told = (
                "end in its level, such as q05, or --levels must give all levels, such as 0.05,0.95"
            )
            raise InvalidInput(f"the name of each column of quantiles must {told}, got {name!r}")
        found.append(level)
    return tuple(found)


def columns_of(
    quantiles: tuple[str, ...], normal: tuple[str, ...], levels: tuple[float, ...]
) -> tuple[tuple[str, ...], tuple[float, ...], tuple[float, ...]]:
    """Return the columns to read, their levels if they are quantiles, and those to follow.

    Without levels for normal distributions the last is empty: whoever follows may choose.

    >>> columns_of(("q0", "q50", "q100"), (), ())
    (('q0', 'q50', 'q100'), (0.0, 0.5, 1.0), (0.5,))
    """
    if bool(quantiles) == bool(normal):
        told = "both" if quantiles else "neither"
        raise InvalidInput(f"quantiles or normal must be given, one of them, got {told}")
    if normal:
        _require(
            len(normal) == PAIR,
            "--normal must name two columns, of means and of standard deviations",
            normal,
        )
        return normal, (), levels
    _require(len(quantiles) >= PAIR, "quantiles must name two columns at least", quantiles)
    given = levels or levels_of_names(quantiles)
    told = f"levels must be {len(quantiles)}, as many as columns of quantiles"
    _require(len(given) == len(quantiles), told, given)
    rising = all(low < high for low, high in pairwise((-1.0, *given)))
    inside = all(0.0 <= level <= 1.0 for level in given)
    _require(rising and inside, "levels must be in [0, 1], each above the one before", given)
    followed = tuple(level for level in given if 0.0 < level < 1.0)
    _require(bool(followed), "levels must hold one between 0 and 1", given)
    return quantiles, given, followed


def _require(right: bool, rule: str, got: tuple[Any, ...]) -> None:
    if not right:
        raise InvalidInput(f"{rule}, got {','.join(map(str, got))!r}")
