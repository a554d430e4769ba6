"""Dataframes in, dataframes out: the same numbers from every library."""

from __future__ import annotations

import datetime
import sys
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("narwhals", reason='needs the extra "frames"')
pytest.importorskip("pandas", reason="plays its frames")
pytest.importorskip("polars", reason="plays its frames")
pytest.importorskip("pyarrow", reason="plays its tables")
pytest.importorskip("duckdb", reason="plays its relations")

import duckdb
import narwhals
import pandas
import polars
import pyarrow

from calibrant import Calibrant, Recalibrator, Table
from calibrant.errors import InvalidInput, InvalidType
from calibrant.frames import replay
from calibrant.recalibrate.rows import Rows

ROWS = 240
START = datetime.datetime(2024, 2, 28, 22)


@pytest.fixture(scope="module")
def columns():
    rng = np.random.default_rng(4)
    made = [START + datetime.timedelta(minutes=30 * k) for k in range(ROWS)]
    waits = rng.integers(0, 400, ROWS).tolist()
    known = [t + datetime.timedelta(minutes=w) for t, w in zip(made, waits, strict=True)]
    return {
        "raw": rng.random(ROWS).tolist(),
        "happened": rng.integers(0, 2, ROWS).tolist(),
        "site": [["north", "south", None][k] for k in rng.integers(0, 3, ROWS)],
        "unit": rng.integers(0, 2, ROWS).tolist(),
        "made": made,
        "known": [None if k % 11 == 0 else t for k, t in enumerate(known)],
        "day": [t.date() for t in made],
        "hours": [0.5 * k for k in range(ROWS)],
    }


def as_pandas(columns):
    return pandas.DataFrame(columns, index=np.arange(len(columns["raw"]))[::-1] * 3)


def as_lazy(columns):
    return polars.DataFrame(columns).lazy()


def as_relation(columns):
    return duckdb.connect().from_arrow(pyarrow.table(columns))


LIBRARIES = {
    "pandas": as_pandas,
    "polars": polars.DataFrame,
    "polars, lazy": as_lazy,
    "pyarrow": pyarrow.table,
    "duckdb": as_relation,
}


def column(frame, name: str) -> list:
    """Return a column of any frame as a list."""
    found = narwhals.from_native(frame)
    if isinstance(found, narwhals.LazyFrame):
        found = found.collect("polars" if found.implementation.is_polars() else "pyarrow")
    return found[name].to_list()


def play(frame, **options):
    return replay(frame, raw="raw", outcome="happened", **({"seed": 5} | options))


@pytest.mark.parametrize("library", LIBRARIES)
def test_rows_are_rounds_in_their_order(columns, library) -> None:
    frame = LIBRARIES[library](columns)
    made = play(frame)
    run = Calibrant(seed=5).replay(columns["raw"], columns["happened"])
    assert type(made) is type(frame)
    assert column(made, "forecast") == run.forecast.tolist()
    assert column(made, "mean") == run.mean.tolist()
    for name in ("raw", "happened", "unit"):
        assert column(made, name) == columns[name]


@pytest.mark.parametrize("library", LIBRARIES)
def test_groups_are_streams_of_their_own(columns, library) -> None:
    made = play(LIBRARIES[library](columns), by=["site", "unit"], method="foster_hart")
    raw, happened = np.array(columns["raw"]), np.array(columns["happened"])
    keys = list(zip(columns["site"], columns["unit"], strict=True))
    expected = np.empty(ROWS)
    for key in set(keys):
        rows = [k for k in range(ROWS) if keys[k] == key]
        run = Recalibrator(seed=5, key=repr(key)).replay(raw[rows], happened[rows])
        expected[rows] = run.forecast
    assert column(made, "forecast") == expected.tolist()


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("by", ["site", "unit", "day"])
def test_a_group_has_the_same_draws_whatever_the_library(columns, library, by) -> None:
    options = {"by": by, "method": "foster_hart"}
    made = play(LIBRARIES[library](columns), **options)
    assert column(made, "forecast") == column(
        play(polars.DataFrame(columns), **options), "forecast"
    )


@pytest.mark.parametrize("library", LIBRARIES)
def test_outcomes_are_learned_when_they_became_known(columns, library) -> None:
    made = play(LIBRARIES[library](columns), available="known", time="made", method="foster_hart")
    zero = START.timestamp()
    when = [t.timestamp() - zero for t in columns["made"]]
    known = [np.nan if t is None else t.timestamp() - zero for t in columns["known"]]
    run = Recalibrator(seed=5).replay(
        columns["raw"], columns["happened"], available=known, time=when
    )
    assert column(made, "forecast") == run.forecast.tolist()


def test_a_rule_may_forget_in_the_time_of_the_frame(columns) -> None:
    rule = {"method": "fading", "half_life": 9.0, "unit": "time"}
    made = play(polars.DataFrame(columns), time="hours", **rule)
    run = Recalibrator(seed=5, **rule).replay(
        columns["raw"], columns["happened"], time=columns["hours"]
    )
    assert column(made, "forecast") == run.forecast.tolist()


def test_times_may_be_numbers_or_days(columns) -> None:
    frame = polars.DataFrame(columns)
    run = Recalibrator(seed=5).replay(
        columns["raw"], columns["happened"], available=np.array(columns["hours"]) + 3.0,
        time=columns["hours"],
    )  # fmt: skip
    later = frame.with_columns(late=polars.col("hours") + 3.0)
    made = play(later, available="late", time="hours", method="foster_hart")
    assert column(made, "forecast") == run.forecast.tolist()
    by_day = play(frame, time="day", method="foster_hart")
    assert column(by_day, "forecast") == column(play(frame, method="foster_hart"), "forecast")


def test_a_recalibrator_goes_on_where_it_was(columns) -> None:
    frame, rec = polars.DataFrame(columns), Recalibrator(seed=8)
    parts = [play(frame[:100], recalibrator=rec), play(frame[100:], recalibrator=rec)]
    whole = Recalibrator(seed=8)
    run = whole.replay(columns["raw"], columns["happened"])
    assert [p for part in parts for p in part["forecast"].to_list()] == run.forecast.tolist()
    assert rec == whole


def test_recalibrators_of_groups_are_kept_in_a_dictionary(columns) -> None:
    frame, kept = polars.DataFrame(columns), {}
    options = {"by": "site", "method": "foster_hart"}
    parts = [play(part, recalibrator=kept, **options) for part in (frame[:90], frame[90:])]
    assert set(kept) == {"north", "south", None}
    assert sum(rec.rounds for rec in kept.values()) == ROWS
    whole = play(frame, **options)
    assert polars.concat(parts)["mean"].to_list() == whole["mean"].to_list()


@pytest.mark.parametrize(
    "more", [{}, {"available": "known", "time": "made"}, {"available": "hours"}]
)
@pytest.mark.parametrize("by", ["site", ["unit", "site"]])
def test_groups_play_in_a_table_as_each_by_itself(columns, by, more) -> None:
    frame, options = polars.DataFrame(columns), {"by": by, "method": "growing"} | more
    told = {"known": [t or datetime.datetime(2030, 1, 1) for t in columns["known"]]}
    frame = frame.with_columns(polars.Series("known", told["known"]))
    one, other = play(frame, **options), play(frame, recalibrator={}, **options)
    assert one["forecast"].to_list() == other["forecast"].to_list()
    assert one["mean"].to_list() == other["mean"].to_list()


def test_groups_in_several_threads_are_the_same(columns) -> None:
    frame = polars.DataFrame(columns)
    table = Table(Recalibrator(resolution=20), seed=8)
    one = play(frame, by="site", recalibrator=table, jobs=3)
    other = play(frame, by="site", recalibrator=Table(Recalibrator(resolution=20), seed=8))
    assert table.jobs == 3
    assert one["forecast"].to_list() == other["forecast"].to_list()
    with pytest.raises(InvalidInput, match="jobs must be"):
        play(frame, by="site", jobs=0)


def test_a_table_goes_on_where_it_was(columns) -> None:
    frame, options = polars.DataFrame(columns), {"resolution": 20, "buckets": 10}
    table = Table(Recalibrator(**options), seed=8)
    parts = [play(part, by="site", recalibrator=table) for part in (frame[:90], frame[90:])]
    assert set(table) == {"north", "south", "None"}
    lone = Recalibrator(seed=8, key="north", **options)
    mine = [site == "north" for site in columns["site"]]
    run = lone.replay(np.array(columns["raw"])[mine], np.array(columns["happened"])[mine])
    assert polars.concat(parts)["mean"].to_numpy()[mine].tolist() == run.mean.tolist()
    assert table["north"] == lone
    pairs = Table(Recalibrator(**options), seed=8)
    play(frame, by=["unit", "site"], recalibrator=pairs)
    assert "(1, 'north')" in pairs
    assert not table.timed


@pytest.mark.parametrize("by", ["site", "unit"])
def test_groups_draw_as_the_keys_of_a_table_with_that_seed(columns, by) -> None:
    frame, kept = polars.DataFrame(columns), {}
    table = Table(Recalibrator(), seed=7)
    keys = ["None" if key is None else key for key in columns[by]]
    run = table.replay(keys, columns["raw"], columns["happened"])
    options = {"by": by, "method": "foster_hart", "seed": 7}
    for made in (play(frame, **options), play(frame, recalibrator=kept, **options)):
        assert column(made, "forecast") == run.forecast.tolist()
    assert kept[columns[by][0]] == table[keys[0]]


def test_a_file_by_column_has_the_draws_of_the_frame(columns, tmp_path) -> None:
    from calibrant.cli.app import run

    frame = polars.DataFrame(columns).select("raw", "happened", "site").drop_nulls()
    frame.write_csv(tmp_path / "in.csv")
    words = ["--raw", "raw", "--outcome", "happened", "--by", "site", "--seed", "7"]
    words += ["--out", str(tmp_path / "out.csv")]
    assert run(["replay", str(tmp_path / "in.csv"), *words]) == 0
    found = polars.read_csv(tmp_path / "out.csv")["forecast"].to_list()
    assert found == column(play(frame, by="site", seed=7), "forecast")


def test_groups_that_are_one_key_are_refused() -> None:
    frame = polars.DataFrame({"raw": [0.5] * 2, "happened": [1, 0], "site": ["None", None]})
    with pytest.raises(InvalidInput, match="strings nor whole numbers, got 'None' and None"):
        play(frame, by="site")


def test_a_lazy_frame_is_played_when_it_is_collected(columns) -> None:
    made = play(as_lazy(columns), seed=None)
    assert isinstance(made, polars.LazyFrame)
    assert made.collect_schema().names()[-2:] == ["forecast", "mean"]
    once = made.collect()
    assert once.equals(made.collect())
    # What is left out afterwards was played all the same.
    late = made.filter(polars.col("hours") > 50.0).select("mean").collect()
    assert late["mean"].to_list() == once.filter(polars.col("hours") > 50.0)["mean"].to_list()
    assert made.tail(3).collect()["mean"].to_list() == once["mean"].to_list()[-3:]


def test_a_relation_stays_with_its_connection(columns) -> None:
    connection = duckdb.connect()
    connection.register("rows", pyarrow.table(columns))
    made = play(connection.sql("SELECT * FROM rows WHERE unit = 1 ORDER BY hours DESC"))
    rows = [k for k in range(ROWS) if columns["unit"][k] == 1][::-1]
    run = Calibrant(seed=5).replay(
        np.array(columns["raw"])[rows], np.array(columns["happened"])[rows]
    )
    connection.register("calibrated", made.to_arrow_table())
    both = connection.sql("SELECT count(*) FROM calibrated JOIN rows USING (hours)")
    assert both.fetchall() == [(len(rows),)]
    assert made.filter("mean > 0.5").shape[0] == int((run.mean > 0.5).sum())


def test_frames_keep_their_index_and_are_left_alone(columns) -> None:
    frame = as_pandas(columns)
    before = frame.copy()
    made = play(frame)
    assert made.index.equals(frame.index)
    assert made["mean"].tolist() == play(polars.DataFrame(columns))["mean"].to_list()
    pandas.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize("library", LIBRARIES)
def test_columns_of_context_are_told_with_each_forecast(columns, library) -> None:
    made = play(LIBRARIES[library](columns), context=["site", "hours"], seed=5)
    told = {"site": columns["site"], "hours": columns["hours"]}
    run = Calibrant(seed=5, context=True).replay(columns["raw"], columns["happened"], context=told)
    assert column(made, "mean") == run.mean.tolist()
    blind = Calibrant(seed=5, context=True).replay(columns["raw"], columns["happened"])
    assert run.mean.tolist() != blind.mean.tolist()


def test_context_is_told_to_the_stream_of_each_group(columns) -> None:
    made = play(polars.DataFrame(columns), by="unit", context="site", seed=5)
    rows = [row for row in range(ROWS) if columns["unit"][row] == 1]
    raw, outcomes, site = ([columns[c][row] for row in rows] for c in ("raw", "happened", "site"))
    alone = Calibrant(seed=5, key=1, context=True).replay(raw, outcomes, context={"site": site})
    assert [column(made, "mean")[row] for row in rows] == alone.mean.tolist()
    kept = {}
    again = play(polars.DataFrame(columns), by="unit", context="site", recalibrator=kept, seed=5)
    assert column(again, "forecast") == column(made, "forecast")
    assert kept[1].spec.slots == 64


def test_context_is_refused_where_nobody_reads_it(columns) -> None:
    rule = r"^context must be given to a Calibrant\(context=True\), whose experts read it, got "
    with pytest.raises(InvalidInput, match=rule):
        play(polars.DataFrame(columns), context="site", recalibrator=Calibrant())
    with pytest.raises(InvalidInput, match=rule):
        play(polars.DataFrame(columns), context="site", recalibrator=Recalibrator())
    with pytest.raises(InvalidInput, match=rule):
        play(polars.DataFrame(columns), by="unit", context="site", recalibrator=Table(Calibrant()))
    with pytest.raises(InvalidInput, match=r"^context must be one of the columns .* got 'nowhere'"):
        play(polars.DataFrame(columns), context="nowhere")


def test_no_rows_give_no_forecasts() -> None:
    empty = polars.DataFrame({"raw": [], "happened": [], "site": []})
    assert play(empty).shape == (0, 5)
    assert play(empty, by="site").shape == (0, 5)


def test_new_columns_have_the_names_one_wishes(columns) -> None:
    made = play(polars.DataFrame(columns), forecast="drawn", mean="expected")
    assert made.columns[-2:] == ["drawn", "expected"]


def test_equal_groups_are_equal_however_they_are_written() -> None:
    rows = {"raw": [0.5] * 4, "happened": [1, 0, 1, 0]}
    missing = [np.nan, None, pandas.NaT, pandas.NA]
    frame = pandas.DataFrame(rows | {"site": pandas.Series(missing, dtype=object)})
    kept: dict = {}
    play(frame, by="site", recalibrator=kept, method="foster_hart")
    assert list(kept) == [None]
    numbers = pandas.DataFrame(
        rows | {"row": pandas.Series([np.int64(1), 2, 1, np.int64(2)], dtype=object)}
    )
    assert [type(key) for key in _kept(numbers, "row")] == [int, int]
    assert _kept(polars.DataFrame(rows | {"row": [1, 2, 1, 2]}), "row") == _kept(numbers, "row")


def _kept(frame, by):
    kept: dict = {}
    play(frame, by=by, recalibrator=kept, method="foster_hart")
    return kept


def test_compiled_code_is_asked_for_all_groups_together(columns, monkeypatch) -> None:
    asked = []
    monkeypatch.setattr(Rows, "batch", lambda self, rounds: asked.append(rounds))
    play(polars.DataFrame(columns), by="unit", method="foster_hart", recalibrator={})
    assert asked.count(ROWS) == 2


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"raw": "p"}, InvalidInput, r"raw must be one of the columns \['raw', .*\], got 'p'"),
        ({"by": ["site", "x"]}, InvalidInput, r"by must be one of the columns .* got 'x'"),
        ({"time": "x"}, InvalidInput, r"time must be one of the columns .* got 'x'"),
        ({"mean": "raw"}, InvalidInput, "mean must be the name of a new column, got 'raw'"),
        ({"recalibrator": {}}, InvalidType, r"recalibrator must be a recalibrator, got \{\}"),
        (
            {"by": "site", "recalibrator": Recalibrator(seed=1)},
            InvalidType,
            "recalibrator must be a table or a dictionary beside by, got Recalibrator",
        ),
        ({"outcome": "hours"}, InvalidInput, r"outcomes\[1\] must be 0 or 1, got 0.5"),
        ({"raw": "site"}, InvalidType, "raw forecasts must be a flat array of numbers"),
    ],
)
def test_what_cannot_be_played_is_refused(columns, options, error, told) -> None:
    frame = polars.DataFrame(columns)
    with pytest.raises(error, match=told):
        replay(frame, **({"raw": "raw", "outcome": "happened"} | options))


def test_missing_values_are_refused_with_their_row(columns) -> None:
    for library in LIBRARIES.values():
        rows = {"raw": [0.5, None, 0.2], "happened": [1, 0, 1]}
        with pytest.raises(InvalidInput, match=r"raw forecasts\[1\] must be a number .* got nan"):
            column(play(library(rows)), "mean")


def test_a_lazy_frame_cannot_teach_a_recalibrator(columns) -> None:
    with pytest.raises(InvalidInput, match="recalibrator must be None for a lazy frame"):
        play(as_lazy(columns), recalibrator=Recalibrator(seed=1))


def test_what_is_no_frame_is_refused(monkeypatch) -> None:
    told = "frame must be a dataframe of pandas, Polars, PyArrow or DuckDB, got dict"
    with pytest.raises(InvalidType, match=told):
        play({"raw": [0.5], "happened": [1]})
    other = SimpleNamespace(is_duckdb=lambda: False, is_polars=lambda: False)
    lazy = SimpleNamespace(
        implementation=other,
        to_native=lambda: "frame",
        collect_schema=lambda: SimpleNamespace(names=lambda: ["raw", "happened"]),
    )
    monkeypatch.setattr(sys.modules["calibrant.frames.replay"], "_known", lambda frame: lazy)
    with pytest.raises(InvalidType, match="frame must be collected first, got a lazy str"):
        play(None)
