"""Numbers: a predictive distribution a row, and outcomes that are numbers."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from calibrant.core import check
from calibrant.kinds.numbers.collector import NumberCollector, Seen
from calibrant.kinds.numbers.columns import columns_of
from calibrant.kinds.numbers.summary import NumberSummary, options_of, summarised
from calibrant.regression import QuantileRecalibrator, quantile_methods
from calibrant.summary import Engine, Told, read_if

__all__ = ["NumberCollector", "NumberSummary", "Numbers", "Seen", "options_of"]

DEFAULT: Final = "pit"
SIZES: Final = ("resolution", "prior")
REFUSED: Final = dict.fromkeys(
    ("buckets", "grid", "epsilon", "loss", "scale", "group", "proba", "raw_safe"),
    "it is for probabilities, and these are numbers",
)
GRIDLESS: Final = dict.fromkeys(SIZES, "the tracker has no grid")


class Numbers:
    """Quantiles in a column each, or mean and standard deviation; outcomes are numbers."""

    name: ClassVar[str] = "numbers"
    words: ClassVar[tuple[str | None, ...]] = ("number", "numbers")
    summary_type: ClassVar[type[NumberSummary]] = NumberSummary

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

    def make(self, options: Any, seed: int) -> QuantileRecalibrator:
        """Return a new recalibrator that follows the levels of the columns."""
        self.refuse(options, options.method)
        method = check.choice(options.method or DEFAULT, "method", quantile_methods.names())
        *_, followed = columns_of(options.quantiles, options.normal, options.levels)
        wanted: dict[str, Any] = {"levels": followed} if followed else {}
        return QuantileRecalibrator(method, seed=seed, **wanted, **options.given(SIZES))

    def session(self, options: Any, seed: int) -> Any:
        """Return a new session."""
        made = self.make(options, seed)
        columns, given, _ = columns_of(options.quantiles, options.normal, options.levels)
        return self.session_type.start(made, seed, columns, given)

    def read(self, data: bytes) -> QuantileRecalibrator:
        """Return a recalibrator that was stored."""
        return QuantileRecalibrator.from_bytes(data)

    def around(self, data: bytes) -> Any | None:
        """Return a session of a recalibrator that was stored alone, whose columns are not known."""
        made = read_if(self.read, data)
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
        return summarised(collector, recalibrator, told)

    @property
    def view(self) -> Any:
        """Return how summaries are shown."""
        from calibrant.kinds.numbers import view

        return view
