"""From columns of any kind to numbers, times, probabilities, and rows that obey the rules."""

from __future__ import annotations

import math
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyarrow", reason="needs the extra cli")

import pyarrow as pa

from calibrant.errors import InvalidInput
from calibrant.kernels.portable import sigmoid
from calibrant.stream import Columns, Scale, Unreadable
from calibrant.stream.columns import OUTCOME_NAMES, RAW_NAMES, choose
from calibrant.stream.pieces import ArrowPiece, FieldsPiece, LinePiece, Piece
from calibrant.stream.rows import Rules
from calibrant.stream.values import numbers, times

NAN = math.nan


def same(found: Any, expected: list[float]) -> bool:
    return bool(np.array_equal(np.asarray(found), np.array(expected), equal_nan=True))


@pytest.mark.parametrize(
    ("column", "values", "missing"),
    [
        (pa.array(["0.5", "1"]), [0.5, 1.0], [False, False]),
        (pa.array(["0.5", ""]), [0.5, NAN], [False, True]),
        (pa.array(["0.5", None]), [0.5, NAN], [False, True]),
        (pa.array([" 0.5 ", "x", "", "True", "1_0"]), [0.5, NAN, NAN, 1.0, NAN],
         [False, False, True, False, False]),
        (pa.array(["nan", "inf"]), [NAN, math.inf], [False, False]),
        (pa.array(["a", "a"]).dictionary_encode(), [NAN, NAN], [False, False]),
        (pa.array(["0.5"], pa.large_string()), [0.5], [False]),
        (pa.array([1, 0, None], pa.int8()), [1.0, 0.0, NAN], [False, False, True]),
        (pa.array([True, False]), [1.0, 0.0], [False, False]),
        (pa.array([Decimal("0.25")]), [0.25], [False]),
        (pa.array([0.5, NAN]), [0.5, NAN], [False, False]),
        (pa.array([None, None]), [NAN, NAN], [True, True]),
        (pa.array([[1.0]]), [NAN], [False]),
        ([0.5, None, "", "0.25", {"a": 1}, True, 10**400], [0.5, NAN, NAN, 0.25, NAN, 1.0, NAN],
         [False, True, True, False, False, False, False]),
    ],
)  # fmt: skip
def test_numbers_are_read_from_columns_of_any_kind(
    column: Any, values: list[float], missing: list[bool]
) -> None:
    found = numbers(column)
    assert same(found.values, values)
    assert found.missing.tolist() == missing


@given(st.lists(st.floats(allow_nan=False), min_size=1))
def test_a_number_written_as_text_comes_back_exactly(values: list[float]) -> None:
    text = [repr(value) for value in values]
    assert numbers(pa.array(text)).values.tolist() == values
    assert numbers(text).values.tolist() == values


NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (pa.array([1.5, None]), [1.5, NAN]),
        (pa.array(["1.5", ""]), [1.5, NAN]),
        (pa.array(["2020-01-01T12:00:00", ""]), [NOON.timestamp(), NAN]),
        (pa.array(["2020-01-01 12:00:00.25"]), [NOON.timestamp() + 0.25]),
        (pa.array(["2020-01-01T12:00:00Z", "2020-01-01T13:00:00+01:00", "x", "3"]),
         [NOON.timestamp(), NOON.timestamp(), NAN, 3.0]),
        (pa.array([NOON]), [NOON.timestamp()]),
        (pa.array([NOON.replace(tzinfo=None), None]), [NOON.timestamp(), NAN]),
        (pa.array([NOON.date()]), [NOON.timestamp() - 43200.0]),
        (["2020-01-01T12:00", 7, None], [NOON.timestamp(), 7.0, NAN]),
    ],
)  # fmt: skip
def test_times_are_numbers_stamps_dates_or_text(column: Any, values: list[float]) -> None:
    assert same(times(column).values, values)


# --------------------------------------------------------------------------- scales


@given(st.lists(st.floats(-1e308, 1e308), min_size=1), st.data())
def test_a_score_is_scaled_by_the_largest_so_far(values: list[float], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(values)))
    scale = Scale("score")
    found = np.concatenate([scale.apply(np.array(part)) for part in (values[:cut], values[cut:])])
    for t, s in enumerate(values):
        m = max(abs(v) for v in values[: t + 1])
        assert found[t] == (0.5 + 0.5 * (s / m) if m else 0.5)
    assert ((found >= 0.0) & (found <= 1.0)).all()
    assert scale.largest == max(map(abs, values))


def test_percent_and_log_odds_become_probabilities() -> None:
    assert Scale("percent").apply(np.array([0.0, 12.5, 100.0])).tolist() == [0.0, 0.125, 1.0]
    odds = np.array([-math.inf, -2.0, 0.0, 3.0, math.inf])
    assert Scale("logit").apply(odds).tolist() == [sigmoid(x) for x in odds.tolist()]


@pytest.mark.slow
def test_compiled_log_odds_are_the_same() -> None:
    odds = np.linspace(-40, 40, 20_001)
    found = Scale("logit").apply(odds)
    assert found.tolist() == [sigmoid(x) for x in odds.tolist()]


@pytest.mark.parametrize(
    ("kind", "allowed", "refused"),
    [
        ("probability", [0.0, 1.0], [-0.1, 1.2, NAN, math.inf]),
        ("percent", [0.0, 100.0], [-1.0, 100.5, NAN]),
        ("logit", [-1e300, math.inf], [NAN]),
        ("score", [-1e300, 1e300], [NAN, math.inf]),
    ],
)
def test_each_scale_has_its_rule(kind: str, allowed: list[float], refused: list[float]) -> None:
    assert Scale(kind).allows(np.array(allowed)).all()
    assert not Scale(kind).allows(np.array(refused)).any()


def test_an_unknown_scale_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"^scale must be one of 'probability', .* got 'odds'$"):
        Scale("odds")


# -------------------------------------------------------------------------- columns


@pytest.mark.parametrize("name", RAW_NAMES)
def test_raw_forecasts_are_found_by_common_names(name: str) -> None:
    assert choose("f", ["a", name.upper(), "y"]).raw == name.upper()


@pytest.mark.parametrize("name", OUTCOME_NAMES)
def test_outcomes_are_found_by_common_names(name: str) -> None:
    assert choose("f", ["a", f" {name}", "p"]).outcome == f" {name}"


def test_the_surest_name_wins() -> None:
    assert choose("f", ["score", "p", "label", "y"]) == Columns("p", "y")


@pytest.mark.parametrize(
    ("names", "options", "told"),
    [
        (["a", "y"], {}, "f: no column looks like raw forecasts; name it with --raw, one of: a, y"),
        (["p", ""], {}, "f: no column looks like outcomes; name it with --outcome, one of: p, ''"),
        (["p", "y"], {"raw": "q"}, "f: no column 'q'; there are: p, y"),
        (["p", "y"], {"time": "t"}, "f: no column 't'; there are: p, y"),
        (["p", "y", "p"], {}, "f: column 'p' must be there once, got it twice"),
        ([f"c{i}" for i in range(30)], {"raw": "x"},
         "f: no column 'x'; there are: " + ", ".join(f"c{i}" for i in range(20)) + ", ..."),
    ],
)  # fmt: skip
def test_a_column_that_is_not_there_is_named(
    names: list[str], options: dict[str, str], told: str
) -> None:
    with pytest.raises(Unreadable) as caught:
        choose("f", names, **options)
    assert str(caught.value) == told


# ----------------------------------------------------------------------------- rows

TIMED = Columns("p", "y", "t", "a")


def table(**columns: list[Any]) -> ArrowPiece:
    return ArrowPiece(pa.record_batch(columns), text=False)


def test_rows_that_obey_become_rounds() -> None:
    piece = table(p=[0.25, 0.5], y=[1, None])
    rounds, good, problems = Rules(Columns("p", "y"), Scale()).read(piece)
    assert good.all()
    assert problems == []
    assert rounds.raw.tolist() == [0.25, 0.5]
    assert rounds.outcomes.tolist() == [1, 0]
    assert rounds.known.tolist() == [True, False]
    assert rounds.time is None


TIME = "a time (a number, ISO 8601, or as --time-format says)"


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"p": 1.2}, "p must be a number in [0, 1], got 1.2"),
        ({"p": None}, "p must be a number in [0, 1], got nothing"),
        ({"p": NAN, "y": 7}, "p must be a number in [0, 1], got nan"),
        ({"y": 0.5}, "y must be 0 or 1, got 0.5"),
        ({"t": 0.5}, "t must be a time that is not before the row above, got 0.5"),
        ({"t": None, "a": 5.0}, f"t must be {TIME}, got nothing"),
        ({"t": math.inf, "a": math.inf}, f"t must be {TIME}, got inf"),
        ({"a": 1.5}, "a must be a time that is not before the row's own, got 1.5"),
        ({"a": NAN}, f"a must be {TIME}, got nan"),
    ],
)  # fmt: skip
def test_the_first_rule_that_a_row_breaks_is_told(values: dict[str, Any], told: str) -> None:
    row = {"p": 0.5, "y": 1.0, "t": 2.0, "a": 3.0, **values}
    columns = {name: [first, row[name]] for name, first in
               {"p": 0.5, "y": 1.0, "t": 1.0, "a": 1.0}.items()}  # fmt: skip
    rounds, good, problems = Rules(TIMED, Scale()).read(table(**columns))
    assert good.tolist() == [True, False]
    assert [str(problem) for problem in problems] == [told]
    assert len(rounds) == 1


def test_an_outcome_without_a_time_of_arrival_never_arrives() -> None:
    rounds, _, problems = Rules(TIMED, Scale()).read(table(p=[0.5], y=[1], t=[1.0], a=[None]))
    assert problems == []
    assert rounds.available is not None
    assert rounds.available.tolist() == [math.inf]


rows = st.lists(
    st.tuples(
        st.sampled_from([0.5, 3.0, -7.0, NAN]),
        st.sampled_from([0.0, 1.0, 2.0]),
        st.integers(0, 4).map(float),
        st.integers(0, 6).map(float),
    ),
    min_size=1,
    max_size=12,
)


@given(rows, st.data())
def test_what_is_wrong_with_a_row_does_not_depend_on_where_the_stream_is_cut(
    rows: list[tuple[float, float, float, float]], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(rows)))

    def read(parts: list[list[tuple[float, float, float, float]]]) -> tuple[list[Any], ...]:
        rules = Rules(TIMED, Scale("score"))
        raws, goods = [], []
        for part in parts:
            names = zip(("p", "y", "t", "a"), zip(*part, strict=True), strict=True)
            piece: Piece = table(**{name: list(column) for name, column in names})
            rounds, good, _ = rules.read(piece)
            raws += rounds.raw.tolist()
            goods += good.tolist()
        return raws, goods

    assert read([rows]) == read([part for part in (rows[:cut], rows[cut:]) if part])


def test_a_single_row_of_text_is_a_piece_like_others() -> None:
    piece = FieldsPiece(["p", "y"], ["0.5", "1"])
    assert piece.take(np.array([True])) is piece
    assert piece.batch(Columns("p", "y")).to_pylist() == [{"p": 0.5, "y": 1}]
    assert piece.content(0) == '{"p":"0.5","y":"1"}'
    rounds, _, _ = Rules(Columns("p", "y"), Scale()).read(piece)
    assert len(piece) == len(rounds) == 1


def test_json_lines_obey_the_same_rules() -> None:
    piece = LinePiece([b"{}", b"{}"], [{"p": "x", "y": 1}, {"y": 1}], ["p", "y"])
    _, good, problems = Rules(Columns("p", "y"), Scale()).read(piece)
    assert not good.any()
    told = ["p must be a number in [0, 1], got 'x'", "p must be a number in [0, 1], got nothing"]
    assert [str(problem) for problem in problems] == told


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1.0, None, 3.0]),
        pa.array([None, 0.5, 0.25, None])[1:],
        pa.array([0.5, 0.25, 0.125])[1:2],
        pa.chunked_array([[1.0], [None, 2.0]]),
        pa.array([], pa.float64()),
        pa.array([None], pa.float64()),
    ],
)
def test_columns_of_numbers_are_read_with_their_gaps(column: Any) -> None:
    told = column.to_pylist()
    found = numbers(column)
    assert found.missing.tolist() == [value is None for value in told]
    assert found.values[~found.missing].tolist() == [value for value in told if value is not None]
    assert np.isnan(found.values[found.missing]).all()


def test_reading_a_file_does_not_load_pandas(tmp_path: Path) -> None:
    source = tmp_path / "rows.csv"
    source.write_text("p,y\n0.5,1\n0.5,\n")
    told = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "calibrant.cli", "replay", source],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {line.split("|")[-1].strip() for line in told.stderr.splitlines()}
    assert "pyarrow" in loaded
    assert "pandas" not in loaded
