"""Play the rows of a dataframe, and give the frame back with forecasts."""

from __future__ import annotations

import datetime
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.errors import InvalidInput, InvalidType
from calibrant.integrations.live import make
from calibrant.recalibrate import Calibrant, Recalibrator
from calibrant.recalibrate.context import unread
from calibrant.recalibrate.keyed import Keys
from calibrant.recalibrate.secret import chosen_seed
from calibrant.recalibrate.table import Table
from calibrant.summary import kinds


def replay(
    frame: Any,
    *,
    raw: str,
    outcome: str,
    by: str | Sequence[str] | None = None,
    jobs: int = 1,
    available: str | None = None,
    time: str | None = None,
    context: str | Sequence[str] = (),
    recalibrator: Recalibrator | Table | MutableMapping[Any, Recalibrator] | None = None,
    forecast: str = "forecast",
    mean: str = "mean",
    method: str = "calibrant",
    seed: int | None = None,
    **options: Any,
) -> Any:
    """Return a dataframe with the calibrated forecasts of its rows, played in their order.

    Parameters
    ----------
    frame
        A pandas or Polars dataframe, a Polars lazy frame, a PyArrow table, a DuckDB relation,
        or whatever else narwhals takes for an eager dataframe.
    raw, outcome
        The columns of raw forecasts, in [0, 1], and of outcomes, 0 and 1.
    by
        One column or several: every group of rows is a stream of its own.
    jobs
        With ``by``, in how many threads the groups of a large frame are played, where there is a
        compiler; the forecasts are the same.  A table that is given keeps its own number if
        that is larger.
    available, time
        Columns that say when each outcome became known and when each forecast was made, as in
        :meth:`calibrant.Recalibrator.replay`: numbers or moments.
    context
        Columns of numbers or strings that are told with each forecast, as in
        :meth:`calibrant.Recalibrator.forecast`; what is missing there is not known.  A recalibrator
        that is made here reads them; one that is given must.  A table takes none.
    recalibrator
        What to go on with; it learns.  With ``by``, a :class:`calibrant.Table`, whose keys are the
        groups (strings and whole numbers as they are, others and several columns as their text),
        or a dictionary of recalibrators by group (a tuple if there are several columns), which
        gets an entry for each new group.
    forecast, mean
        What to call the new columns: the drawn forecasts, which carry the guarantee, and the
        expected ones, which are sharper.
    method, seed, **options
        ``"calibrant"`` or the name of a calibrator, and the settings of its recalibrator, if
        there is none yet.  A group's draws are those of its key in a :class:`calibrant.Table` with
        that seed; a file of the same rows has the same with ``calibrant replay --by`` if groups are
        strings.

    Returns
    -------
    The same kind of frame with two more columns.  A Polars lazy frame stays lazy: it is played
    when it is collected, each time from the start.  A DuckDB relation is read at once, in order.

    Examples
    --------
    >>> import pandas
    >>> frame = pandas.DataFrame({"p": [0.9, 0.9, 0.9], "y": [1, 0, 1], "site": ["a", "b", "a"]})
    >>> made = replay(frame, raw="p", outcome="y", by="site", method="foster_hart", seed=7)
    >>> made["forecast"].tolist()
    [0.9, 0.9, 0.95]
    """
    keys = (by,) if isinstance(by, str) else tuple(by or ())
    known = (context,) if isinstance(context, str) else tuple(context)
    options = {"context": True} | options if known else options
    columns = raw, outcome, available, time
    threads = check.whole(jobs, "jobs", low=1)
    player = Player(
        columns, keys, recalibrator, (forecast, mean), method, seed, options, threads, known
    )
    found = _known(frame)
    player.check(found.collect_schema().names())
    if isinstance(found, nw.DataFrame):
        return player.play(found).to_native()
    return _lazily(found, player)


def _known(frame: Any) -> Any:
    try:
        return nw.from_native(frame)
    except TypeError as error:
        told = f"a dataframe of pandas, Polars, PyArrow or DuckDB, got {type(frame).__name__}"
        raise InvalidType(f"frame must be {told}") from error


def _lazily(found: Any, player: Player) -> Any:
    native = found.to_native()
    if found.implementation.is_duckdb():
        return _as_relation(native, player.play(found.collect("pyarrow")).to_native())
    if not found.implementation.is_polars():
        raise InvalidType(f"frame must be collected first, got a lazy {type(native).__name__}")
    if player.recalibrator is not None:
        told = "collect it first, or let each collection start again"
        raise InvalidInput(f"recalibrator must be None for a lazy frame: {told}")
    # Drawn now: each collection must give the same, also without a seed.
    seed = chosen_seed() if player.seed is None else player.seed
    fixed = replace(player, seed=seed)
    import polars

    # What is filtered or cut afterwards was played all the same.
    whole = dict.fromkeys(("predicate_pushdown", "projection_pushdown", "slice_pushdown"), False)
    schema = native.collect_schema() | dict.fromkeys(player.names, polars.Float64)

    def play(batch: Any) -> Any:
        return fixed.play(nw.from_native(batch)).to_native()

    return native.map_batches(play, schema=schema, **whole)


def _as_relation(relation: Any, played: Any) -> Any:
    """Return a table as a relation of the same connection; the query names the argument."""
    return relation.query("unplayed", "SELECT * FROM played")


@dataclass(frozen=True)
class Player:
    """What :func:`calibrant.frames.replay` was asked for.

    Attributes
    ----------
    columns
        Raw forecasts, outcomes, when these became known, when forecasts were made.
    keys
        The columns whose values tell streams apart.
    recalibrator
        What to go on with, or several by group.
    names
        Of the new columns.
    method, seed, options
        How new recalibrators are made.
    jobs
        In how many threads groups are played.
    context
        The columns that are told with each forecast.
    """

    columns: tuple[str, str, str | None, str | None]
    keys: tuple[str, ...]
    recalibrator: Recalibrator | Table | MutableMapping[Any, Recalibrator] | None
    names: tuple[str, str]
    method: str
    seed: int | None
    options: dict[str, Any]
    jobs: int
    context: tuple[str, ...] = ()

    def check(self, there: list[str]) -> None:
        """Raise unless all columns are there, and the new ones are not."""
        asked = dict(zip(("raw", "outcome", "available", "time"), self.columns, strict=True))
        more = [*(("by", key) for key in self.keys), *(("context", name) for name in self.context)]
        for name, column in [*asked.items(), *more]:
            if column is not None and column not in there:
                raise InvalidInput(f"{name} must be one of the columns {there}, got {column!r}")
        for name, column in zip(("forecast", "mean"), self.names, strict=True):
            if column in there:
                raise InvalidInput(f"{name} must be the name of a new column, got {column!r}")
        made = self.recalibrator
        many = isinstance(made, (MutableMapping, Table))
        fits = many if self.keys else kinds.known_as(None).makes(made)
        if made is not None and not fits:
            rule = "a table or a dictionary beside by" if self.keys else "a recalibrator"
            raise InvalidType(f"recalibrator must be {rule}, got {self.recalibrator!r}")

    def play(self, frame: Any) -> Any:
        """Return a frame with the new columns."""
        drawn, mean = self._by_group(frame) if self.keys else self._at_once(frame)
        backend = frame.implementation
        added = zip(self.names, (drawn, mean), strict=True)
        return frame.with_columns(
            *(nw.new_series(name, made, nw.Float64, backend=backend) for name, made in added)
        )

    def _at_once(self, frame: Any) -> tuple[Reals, Reals]:
        engine: Any = self.recalibrator or make(self.method, self.seed, self.options)
        return _played(engine, self._arrays(frame), self._told(frame))

    def _by_group(self, frame: Any) -> tuple[Reals, Reals]:
        if isinstance(self.recalibrator, MutableMapping):
            return self._by_stream(frame, self.recalibrator)
        if self.context and self.recalibrator is None:
            return self._by_stream(frame, {})
        groups, codes = self._groups(frame)
        names, table = _names(groups), self.recalibrator
        if not isinstance(table, Table):
            table = Table(make(self.method, None, self.options), seed=self.seed)
        table.jobs = max(table.jobs, self.jobs)
        if self.context:
            raise unread(self.context)
        raw, outcomes, available, time = self._arrays(frame)
        if available is not None and time is None and not table.timed:
            time = _ranks(codes)
        told = Keys(names, codes), raw, outcomes
        run = table.replay(*told, available=available, time=time)
        return run.forecast, run.mean

    def _by_stream(self, frame: Any, kept: MutableMapping[Any, Any]) -> tuple[Reals, Reals]:
        """Play each group with a recalibrator of its own."""
        drawn, mean = np.empty(len(frame)), np.empty(len(frame))
        arrays, told = self._arrays(frame), self._told(frame)
        groups, codes = self._groups(frame)
        order = np.argsort(codes, kind="stable")
        cuts = np.searchsorted(codes[order], np.arange(1, len(groups)))
        for group, rows in zip(groups, np.split(order, cuts), strict=len(groups) > 0):
            if group not in kept:
                kept[group] = make(self.method, self.seed, self.options, key=_key(group))
            # Compiled code is shared by all streams: it may be worth it though each is short.
            kept[group]._rows.batch(len(frame))
            parts = [None if array is None else array[rows] for array in arrays]
            known = {name: [column[row] for row in rows] for name, column in told.items()}
            drawn[rows], mean[rows] = _played(kept[group], parts, known)
        return drawn, mean

    def _groups(self, frame: Any) -> tuple[list[Any], Words]:
        """Return every group in order, and the place of each row's group among them."""
        values = [frame[key].to_list() for key in self.keys]
        numbers: dict[Any, int] = {}
        known: dict[Any, int] = {}
        codes = np.empty(len(frame), np.int64)
        for row, group in enumerate(zip(*values, strict=True)):
            if (code := known.get(group)) is None:
                plain = tuple(_plain(value) for value in group)
                code = known[group] = numbers.setdefault(plain, len(numbers))
            codes[row] = code
        return [group if len(group) > 1 else group[0] for group in numbers], codes

    def _told(self, frame: Any) -> dict[str, list[Any]]:
        """Return the columns of context, with None for what is missing."""
        return {name: [_plain(value) for value in frame[name].to_list()] for name in self.context}

    def _arrays(self, frame: Any) -> list[NDArray[Any] | None]:
        raw, outcome, *moments = self.columns
        told = [None if name is None else _clock(frame[name]) for name in moments]
        return [frame[raw].to_numpy(), frame[outcome].to_numpy(), *told]


def _played(engine: Recalibrator, arrays: Any, told: dict[str, Any]) -> tuple[Reals, Reals]:
    raw, outcomes, available, time = arrays
    late: dict[str, Any] = {"available": available, "time": time}
    if told and not isinstance(engine, Calibrant):
        raise unread(told)
    run = engine.replay(raw, outcomes, **late | ({"context": told} if told else {}))
    return run.forecast, run.mean


def _key(group: Any) -> str | int:
    """Return the key of a group in a table: itself, or its text."""
    plain = isinstance(group, (str, int)) and not isinstance(group, bool)
    return group if plain else repr(group)


def _names(groups: list[Any]) -> list[str | int]:
    """Return the keys of groups in a table, if they tell these apart."""
    found: dict[str | int, Any] = {}
    for group in groups:
        other = found.setdefault(_key(group), group)
        if other is not group:
            rule = "by must have values that differ as text where they are neither"
            raise InvalidInput(f"{rule} strings nor whole numbers, got {other!r} and {group!r}")
    return list(found)


def _ranks(codes: Words) -> Reals:
    """Return for each row how many rows of its group came before."""
    order = np.argsort(codes, kind="stable")
    counts, ranks = np.bincount(codes), np.empty(len(codes))
    ranks[order] = np.arange(len(codes)) - np.repeat(np.cumsum(counts) - counts, counts)
    return ranks


def _clock(series: Any) -> NDArray[Any]:
    """Return moments as seconds; numbers as they are."""
    if series.dtype == nw.Date:
        series = series.cast(nw.Datetime("us"))
    if isinstance(series.dtype, nw.Datetime):
        micros = series.dt.timestamp("us").cast(nw.Float64).to_numpy()
        return np.asarray(micros, np.float64) / 1e6
    return np.asarray(series.to_numpy())


def _plain(value: Any) -> Any:
    """Return a group's value as every library would give it."""
    # What is missing in pandas cannot be compared, or not even to itself.
    if value is None or type(value).__name__ == "NAType" or value != value:
        return None
    if isinstance(value, np.generic):
        return value.item()
    return value.isoformat() if isinstance(value, datetime.date) else value
