"""Play the rows of a dataframe, and give the frame back with forecasts."""

from __future__ import annotations

import secrets
from collections.abc import MutableMapping, Sequence
from typing import Any

import narwhals as nw

from calibrant.errors import InvalidInput, InvalidType
from calibrant.frames.player import Player
from calibrant.recalibrate import Recalibrator


def replay(
    frame: Any,
    *,
    raw: str,
    outcome: str,
    by: str | Sequence[str] | None = None,
    available: str | None = None,
    time: str | None = None,
    recalibrator: Recalibrator | MutableMapping[Any, Recalibrator] | None = None,
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
    available, time
        Columns that say when each outcome became known and when each forecast was made, as in
        :meth:`calibrant.Recalibrator.replay`: numbers or moments.
    recalibrator
        What to go on with; it learns.  With ``by``, a dictionary of recalibrators by group (a
        tuple if there are several columns), which gets an entry for each new group.
    forecast, mean
        What to call the new columns: the drawn forecasts, which carry the guarantee, and the
        expected ones, which are sharper.
    method, seed, **options
        ``"calibrant"`` or the name of a calibrator, and the settings of its recalibrator, if
        there is none yet.  A group's draws depend on the seed and the group.

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
    [0.95, 0.95, 0.95]
    """
    keys = (by,) if isinstance(by, str) else tuple(by or ())
    columns = raw, outcome, available, time
    player = Player(columns, keys, recalibrator, (forecast, mean), method, seed, options)
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
        told = "collect it first, or let each collection start anew"
        raise InvalidInput(f"recalibrator must be None for a lazy frame: {told}")
    # Drawn now: each collection must give the same, also without a seed.
    fixed = player.seeded(secrets.randbits(126))
    import polars

    added = dict.fromkeys(player.names, polars.Float64)
    # What is filtered or cut afterwards was played all the same.
    whole = dict.fromkeys(("predicate_pushdown", "projection_pushdown", "slice_pushdown"), False)
    return native.map_batches(
        lambda batch: fixed.play(nw.from_native(batch)).to_native(),
        schema=native.collect_schema() | added,
        **whole,
    )


def _as_relation(relation: Any, played: Any) -> Any:
    """Return a table as a relation of the same connection; the query names the argument."""
    return relation.query("unplayed", "SELECT * FROM played")
