"""Streams of forecasts of numbers: what files give is what the library gives."""

from __future__ import annotations

import io
import math
from base64 import b64decode, b64encode
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

pytest.importorskip("pyarrow", reason="needs the extra cli")
pytest.importorskip("msgspec", reason="needs the extra cli")

import pyarrow.parquet as pq
from naive_numbers import scores, stretches
from tables import write

from calibrant.core.codec import Document
from calibrant.errors import CorruptState, InvalidInput
from calibrant.kinds.numbers import NumberCollector, NumberSummary, Seen, level_of_name
from calibrant.kinds.numbers.session import NumberSession
from calibrant.regression import Distribution, Distributions, QuantileRecalibrator, metrics
from calibrant.stream import (
    BadRow,
    Columns,
    Job,
    Options,
    Skip,
    StateMismatch,
    Stop,
    Unreadable,
    Writer,
    open_output,
    open_session,
    open_writer,
    replay,
)
from calibrant.stream.session import dump, load
from calibrant.summary import read_summary, summarise_collected

ROWS = 240
QUANTILES = ("q10", "q50", "q90")
NORMAL = ("mu", "sd")
LEVELS = (0.1, 0.5, 0.9)
FORMS: tuple[dict[str, Any], ...] = ({"quantiles": QUANTILES}, {"normal": NORMAL})
TIMES = {"time": "t", "available": "known"}


@pytest.fixture(scope="module")
def table() -> dict[str, list[Any]]:
    generator = np.random.default_rng(4)
    mean = generator.normal(size=ROWS).round(3)
    outcomes = (mean + 0.3 + generator.normal(size=ROWS)).round(3)
    spread = np.round(generator.random(ROWS) + 0.1, 3)
    return {
        "q10": (mean - spread).tolist(),
        "q50": mean.tolist(),
        "q90": (mean + spread).tolist(),
        "mu": mean.tolist(),
        "sd": spread.tolist(),
        "y": outcomes.tolist(),
        "t": list(range(ROWS)),
        "known": [t + int(k) for t, k in enumerate(generator.integers(0, 9, ROWS))],
    }


def fresh(**options: Any) -> NumberSession:
    session = Options(seed=11, **options).session()
    assert isinstance(session, NumberSession)
    return session


def played(source: str, session: NumberSession, on_fault: Any = None, **job: Any) -> NumberSession:
    columns: Any = session.kept_columns
    replay(Job((source,), **columns, **job), session, on_fault or Stop())
    return session


def said(table: dict[str, list[Any]], form: dict[str, Any]) -> Distributions:
    if "normal" in form:
        return Distributions.normal(table["mu"], table["sd"])
    return Distributions.from_quantiles(LEVELS, np.column_stack([table[n] for n in QUANTILES]))


def maker(form: dict[str, Any], method: str = "mixed") -> QuantileRecalibrator:
    return QuantileRecalibrator(method, 19 if "normal" in form else LEVELS, seed=11)


@pytest.mark.parametrize("form", FORMS, ids=["quantiles", "normal"])
@pytest.mark.parametrize("method", ["mixed", "pit", "tracker"])
@pytest.mark.parametrize(("name", "batch_rows"), [("d.csv", 1), ("d.csv", 50), ("d.parquet", 5000)])
def test_files_give_what_the_library_gives_however_they_are_cut(
    table: dict[str, list[Any]],
    tmp_path: Path,
    form: dict[str, Any],
    method: str,
    name: str,
    batch_rows: int,
) -> None:
    session = fresh(**form, method=method)
    played(write(tmp_path / name, table), session, batch_rows=batch_rows)
    rec, raw, y = maker(form, method), said(table, form), np.array(table["y"])
    run = rec.replay(raw, y)
    assert session.recalibrator == rec
    collector, levels = session.collector, rec.levels
    pairs = ((raw.quantile(levels), raw), (run.quantiles, run.forecast))
    for series, (quantiles, rows) in enumerate(pairs):
        told = scores(quantiles.tolist(), y.tolist(), levels.tolist())
        assert collector.coverage(series).tolist() == told["coverage"]
        assert collector.infinite(series).tolist() == told["infinite"]
        assert collector.pinball(series) == pytest.approx(told["pinball"], nan_ok=True)
        assert collector.crps(series) == pytest.approx(metrics.crps(rows, y))
        assert (collector.pit(series).counts == metrics.pit_histogram(rows, y).counts).all()
    covered = [row.coverage for row in rec.certificate().levels]
    assert collector.coverage(1).tolist() == covered


@pytest.mark.parametrize("form", FORMS, ids=["quantiles", "normal"])
@pytest.mark.parametrize("batch_rows", [1, 50])
def test_late_outcomes_are_learned_late(
    table: dict[str, list[Any]], tmp_path: Path, form: dict[str, Any], batch_rows: int
) -> None:
    session = fresh(**form)
    played(write(tmp_path / "d.parquet", table), session, batch_rows=batch_rows, **TIMES)
    rec, raw, waiting = maker(form), said(table, form), []
    for t in range(ROWS):
        for entry in sorted(entry for entry in waiting if entry[0] <= t):
            rec.observe(*entry[1:])
            waiting.remove(entry)
        rec.forecast(raw[t], time=float(t))
        waiting.append((table["known"][t], t, table["y"][t]))
    for entry in sorted(entry for entry in waiting if entry[0] <= ROWS - 1):
        rec.observe(*entry[1:])
    assert session.recalibrator == rec
    assert len(session.pending) == rec.open > 0
    assert session.collector.rounds == ROWS


@pytest.mark.parametrize("times", [{}, TIMES], ids=["prompt", "late"])
@pytest.mark.parametrize("method", ["mixed", "pit", "tracker"])
def test_two_halves_with_a_state_give_what_the_whole_gives(
    table: dict[str, list[Any]], tmp_path: Path, method: str, times: dict[str, str]
) -> None:
    options = {"quantiles": QUANTILES, "method": method}
    whole = played(write(tmp_path / "d.csv", table), fresh(**options), **times)
    half = played(write(tmp_path / "1.csv", table, slice(0, 97)), fresh(**options), **times)
    stored = load(dump(half))
    assert isinstance(stored, NumberSession)
    assert open_session(Options(), stored) is stored
    rest = played(write(tmp_path / "2.csv", table, slice(97, None)), stored, **times)
    assert dump(rest) == dump(whole)


def test_a_recalibrator_that_was_stored_alone_goes_on(
    table: dict[str, list[Any]], tmp_path: Path
) -> None:
    rec, raw, y = QuantileRecalibrator("pit", LEVELS, seed=3), said(table, FORMS[0]), table["y"]
    rec.replay(raw[:100], y[:100])
    stored = open_session(Options(quantiles=QUANTILES), load(rec.to_bytes()))
    assert isinstance(stored, NumberSession)
    played(write(tmp_path / "d.csv", table, slice(100, None)), stored)
    rec.replay(raw[100:], y[100:])
    assert stored.recalibrator == rec
    with pytest.raises(InvalidInput, match=r"^quantiles or normal must be given, one of them, got "
                       "neither$"):  # fmt: skip
        open_session(Options(), load(rec.to_bytes()))
    with pytest.raises(CorruptState, match="state must be whole and unaltered"):
        load(rec.to_bytes()[:-1])


def test_rows_without_an_outcome_are_forecast_and_counted(
    table: dict[str, list[Any]], tmp_path: Path
) -> None:
    some = table | {"y": [None if t % 3 == 0 else y for t, y in enumerate(table["y"])]}
    session = played(write(tmp_path / "d.csv", some), fresh(quantiles=QUANTILES))
    assert (session.unresolved, session.collector.rounds) == (ROWS // 3, ROWS - ROWS // 3)
    assert (session.recalibrator.issued, session.recalibrator.rounds) == (ROWS, ROWS * 2 // 3)
    none = table | {"y": [None] * ROWS}
    empty = played(write(tmp_path / "n.csv", none), fresh(quantiles=QUANTILES))
    summary = empty.summary({}, {})
    assert isinstance(summary, NumberSummary)
    assert (summary["n_rounds"], summary["raw"]["crps"]) == (0, None)
    assert summary["levels"][0]["coverage_forecast"] is None


@pytest.mark.parametrize(
    ("form", "line", "told"),
    [
        ("quantiles", "1,0.5,2,0,1,0", "q10,q50,q90 must be 3 finite numbers that never fall, got "
         "['1', '0.5', '2']"),
        ("quantiles", "1,x,2,0,1,0", "q10,q50,q90 must be 3 finite numbers"),
        ("quantiles", "1,2,inf,0,1,0", "q10,q50,q90 must be 3 finite numbers"),
        ("quantiles", "1,2,3,0,1,nan", "y must be a finite number, got 'nan'"),
        ("quantiles", "1,2,3,0,1,dry", "y must be a finite number, got 'dry'"),
        ("normal", "1,2,3,0,0,1", "mu,sd must be a finite mean and a standard deviation above 0, "
         "got ['0', '0']"),
        ("normal", "1,2,3,,1,1", "mu,sd must be a finite mean"),
        ("normal", "1,2,3,0,-1,1", "mu,sd must be a finite mean"),
    ],
)  # fmt: skip
def test_a_bad_row_is_told_and_changes_nothing(
    tmp_path: Path, form: str, line: str, told: str
) -> None:
    source = tmp_path / "d.csv"
    good = "1,1,3,0,1,0"
    source.write_text(f"{','.join((*QUANTILES, *NORMAL))},y\n{good}\n{line}\n")
    options = {"quantiles": QUANTILES} if form == "quantiles" else {"normal": NORMAL}
    with pytest.raises(BadRow) as caught:
        played(str(source), fresh(**options))
    assert f"row 2: {told}" in str(caught.value)
    skip = Skip()
    session = played(str(source), fresh(**options), skip)
    source.write_text(f"{','.join((*QUANTILES, *NORMAL))},y\n{good}\n")
    alone = played(str(source), fresh(**options))
    assert (skip.skipped, session.recalibrator) == (1, alone.recalibrator)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        *(
            ({name: value}, f"{name} must be left out: it is for probabilities, and these are "
             f"numbers, got {value!r}")
            for name, value in {
                "buckets": 3, "grid": "midpoints", "epsilon": 0.1, "loss": "log", "scale": "logit",
                "group": ("a",), "proba": ("a", "b"), "raw_safe": 0.1,
            }.items()
        ),
        ({"method": "tracker", "resolution": 9}, "resolution must be left out: the tracker has no "
         "grid, got 9"),
        ({"method": "tracker", "prior": 2}, "prior must be left out: the tracker has no grid"),
        ({"method": "foster_hart"}, "method must be one of 'mixed', 'pit', 'tracker', got 'foster"),
        ({"normal": NORMAL}, "quantiles or normal must be given, one of them, got both"),
        ({"quantiles": ("q5",)}, "quantiles must name two columns at least, got 'q5'"),
        ({"quantiles": ("low", "q5")}, "the name of each column of quantiles must end in its "
         "level, such as q05, or --levels must give all levels, such as 0.05,0.95, got 'low'"),
        ({"quantiles": ("q9", "q5")}, "levels must be in [0, 1], each above the one before, got "
         "'0.09,0.05'"),
        ({"quantiles": ("q0", "q100")}, "levels must hold one between 0 and 1, got '0.0,1.0'"),
        ({"levels": (0.1, 0.5)}, "levels must be 3, as many as columns of quantiles, got '0.1,"),
        ({"levels": (0.1, 0.5, 1.5)}, "levels must be in [0, 1]"),
        ({"levels": (-0.1, 0.5, 0.9)}, "levels must be in [0, 1]"),
        ({"levels": (0.1, math.nan, 0.9)}, "levels must be in [0, 1]"),
        ({"quantiles": (), "normal": ("mu",)}, "--normal must name two columns, of means and "
         "of standard deviations, got 'mu'"),
        ({"quantiles": (), "levels": (0.5,)}, "levels must be left out: levels are of quantiles or "
         "normal distributions, got (0.5,)"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_for_numbers_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Options(**{"seed": 11, "quantiles": QUANTILES, **options}).session()
    assert str(caught.value).startswith(told)


def test_a_state_of_other_numbers_is_refused() -> None:
    stored = load(dump(fresh(quantiles=QUANTILES, resolution=10)))
    assert stored.kept_columns == {"quantiles": QUANTILES}
    same = Options(quantiles=QUANTILES, levels=LEVELS, resolution=10, method="mixed", seed=11)
    assert open_session(same, stored) is stored
    for name, asked, told in (
        ("quantiles", ("q1", "q2"), "quantiles must be as in the state, ('q10', 'q50', 'q90')"),
        ("normal", NORMAL, "normal must be as in the state, (), got ('mu', 'sd')"),
        ("levels", (0.2,), "levels must be as in the state, (0.1, 0.5, 0.9), got (0.2,)"),
        ("resolution", 20, "resolution must be as in the state, 10, got 20"),
        ("method", "tracker", "method must be as in the state, 'mixed', got 'tracker'"),
        ("seed", 12, "seed must be as in the state, 11, got 12"),
    ):
        asked_for: dict[str, Any] = {name: asked}
        with pytest.raises(StateMismatch) as caught:
            open_session(Options(**asked_for), stored)
        assert str(caught.value).startswith(told)
    with pytest.raises(InvalidInput, match="buckets must be left out: it is for probabilities"):
        open_session(Options(buckets=3), stored)
    binary = load(dump(Options(seed=1).session()))
    with pytest.raises(StateMismatch, match=r"quantiles must be as in the state, \(\), got"):
        open_session(Options(quantiles=QUANTILES), binary)


@pytest.mark.parametrize("name", ["o.csv", "o.jsonl", "o.parquet"])
@pytest.mark.parametrize("one_by_one", [False, True])
def test_rows_are_written_with_a_column_for_each_level(
    table: dict[str, list[Any]], tmp_path: Path, name: str, one_by_one: bool
) -> None:
    source, out = write(tmp_path / "d.csv", table, slice(0, 9)), tmp_path / name
    session = fresh(normal=NORMAL, levels=(0.5, 0.99), method="tracker")
    job = Job((source,), normal=NORMAL, one_by_one=one_by_one)
    with open_output(out, str(out)) as stream:
        replay(job, session, Stop(), start=lambda source, columns: open_writer(
            stream, out.suffix[1:], columns, session.added(columns)))  # fmt: skip
    rec = QuantileRecalibrator("tracker", (0.5, 0.99), seed=11)
    cut = {key: column[:9] for key, column in table.items()}
    run = rec.replay(said(cut, FORMS[1]), cut["y"])
    rows = _read(out)
    assert list(rows[0])[-3:] == ["forecast_0.5", "forecast_0.99", "ticket"]
    assert [int(row["ticket"]) for row in rows] == list(range(9))
    assert [float(row["forecast_0.5"]) for row in rows] == run.quantiles[:, 0].tolist()
    highest = run.quantiles[:, 1]
    # JSON has no word for infinity.
    gone: Any = None if out.suffix == ".jsonl" else math.inf
    told = [row["forecast_0.99"] for row in rows]
    found = [None if value is None else float(value) for value in told]
    assert np.isinf(highest).any()
    assert found == [gone if math.isinf(q) else q for q in highest.tolist()]
    if out.suffix == ".parquet":
        assert {type(row["mu"]) for row in rows} == {type(row["y"]) for row in rows} == {float}


def _writer(stream: Any, session: NumberSession, source: Any, columns: Columns) -> Writer:
    return open_writer(stream, "csv", columns, session.added(columns))


def _read(out: Path) -> list[dict[str, Any]]:
    import csv
    import json

    if out.suffix == ".parquet":
        return pq.read_table(out).to_pylist()  # type: ignore[no-any-return]
    with out.open() as file:
        if out.suffix == ".jsonl":
            return [json.loads(line) for line in file]
        return list(csv.DictReader(file))


def test_lines_of_json_are_kept_and_infinity_becomes_null(tmp_path: Path) -> None:
    source, out = tmp_path / "d.jsonl", tmp_path / "o.jsonl"
    source.write_text('{"mu": 0, "sd": 1, "y": -9}\n' * 3 + '{"mu": 0, "sd": 1, "y": 9}\n' * 3)
    session = fresh(normal=NORMAL, levels=(0.01,), method="tracker")
    with open_output(out, str(out)) as stream:
        replay(Job((str(source),), normal=NORMAL), session, Stop(),
               start=lambda s, columns: open_writer(stream, "jsonl", columns,
                                                    session.added(columns)))  # fmt: skip
    rows = _read(out)
    assert rows[1]["forecast_0.01"] is None
    assert rows[0]["forecast_0.01"] == pytest.approx(-2.326, abs=1e-3)


def test_quantiles_and_outcomes_are_different_columns(tmp_path: Path) -> None:
    source = tmp_path / "d.csv"
    source.write_text("q10,q50,y\n1,2,3\n")
    with pytest.raises(Unreadable, match="must be two columns, got 'q50' for both"):
        replay(Job((str(source),), quantiles=("q10", "q50"), outcome="q50"),
               fresh(quantiles=("q10", "q50")), Stop())  # fmt: skip
    with pytest.raises(Unreadable, match="no column 'q90'"):
        played(str(source), fresh(quantiles=QUANTILES))


@pytest.mark.parametrize(
    ("name", "level"),
    [("q05", 0.05), ("q5", 0.05), ("p95", 0.95), ("q0.5", 0.5), ("q_97.5", 0.975), ("q025", 0.025),
     ("q975", 0.975), ("q0", 0.0), ("q100", 1.0), ("q1.0", 1.0), ("q2.3", 0.023), ("q0.001", 0.001),
     ("median", None), ("2nd", None), ("50", 0.5)],
)  # fmt: skip
def test_names_end_in_levels(name: str, level: float | None) -> None:
    assert level_of_name(name) == level


def test_the_range_may_be_given_as_levels_0_and_1(tmp_path: Path) -> None:
    source = tmp_path / "d.csv"
    source.write_text("q0,q50,q100,y\n0,1,4,0.5\n0,1,4,3\n")
    session = played(str(source), fresh(quantiles=("q0", "q50", "q100")))
    rec = QuantileRecalibrator("mixed", (0.5,), seed=11)
    rec.replay([Distribution.from_quantiles([0.0, 0.5, 1.0], [0.0, 1.0, 4.0])] * 2, [0.5, 3.0])
    assert session.recalibrator == rec
    assert session.summary({}, {}).summary["interval"]["high"] == 0.5


@pytest.mark.parametrize("times", [{}, TIMES], ids=["prompt", "late"])
def test_playing_in_short_stretches_changes_nothing(
    table: dict[str, list[Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    times: dict[str, str],
) -> None:
    source = write(tmp_path / "d.csv", table)
    found = []
    for stretch in (ROWS, 7):
        monkeypatch.setattr("calibrant.kinds.numbers.session.STRETCH", stretch)
        session, stream = fresh(quantiles=QUANTILES), io.BytesIO()
        replay(Job((source,), quantiles=QUANTILES, **times), session, Stop(),
               start=partial(_writer, stream, session))  # fmt: skip
        found.append((dump(session), stream.getvalue()))
    assert found[0] == found[1]


def test_what_is_kept_does_not_grow_with_the_rounds(
    table: dict[str, list[Any]], tmp_path: Path
) -> None:
    few = played(write(tmp_path / "1.csv", table, slice(0, 9)), fresh(quantiles=QUANTILES))
    many = played(write(tmp_path / "2.csv", table), fresh(quantiles=QUANTILES))
    words = [each.collector.document().arrays["words"] for each in (few, many)]
    assert len(words[0]) == len(words[1])


# ----------------------------------------------------------------------- the collector


def test_outcomes_on_an_atom_are_shared_out() -> None:
    rows, generator = 4000, np.random.default_rng(5)
    rain = np.maximum(generator.normal(size=rows), 0.0)
    ladder = np.array([0.25, 0.45, 0.7, 0.9])
    values = np.array([0.0, 0.0, 0.5244, 1.2816])
    session = Options(seed=1, quantiles=("a", "b", "c", "d"), levels=tuple(ladder)).session()
    from calibrant.stream.rows import Rounds

    known = np.ones(rows, bool)
    session.play(Rounds(np.tile(values, (rows, 1)), rain, known, None, None))
    # Compared plainly, half of the outcomes are below either of the two quantiles at 0.
    assert (rain <= 0.0).mean() > 0.48
    found = session.collector.coverage(1)
    certified = [row.coverage for row in session.recalibrator.certificate().levels]
    assert found == pytest.approx(certified, abs=0.03)
    assert abs(found[0] - 0.25) < 0.05


finite = st.floats(-5, 5)


@given(
    arrays(np.float64, (40, 3), elements=finite | st.sampled_from([-math.inf, math.inf])),
    arrays(np.float64, 40, elements=finite),
    st.lists(st.integers(0, 40), max_size=4),
)
def test_cutting_a_run_elsewhere_changes_no_bit(
    quantiles: np.ndarray[Any, Any], outcomes: np.ndarray[Any, Any], cuts: list[int]
) -> None:
    ordered = np.sort(quantiles, axis=1)
    pit, crps = np.abs(outcomes) / 5.0, outcomes**2 / 3.0
    whole, parts = NumberCollector(LEVELS), NumberCollector(LEVELS)
    seen = Seen(ordered, pit, crps)
    whole.update(seen, seen, outcomes)
    for part in np.split(np.arange(40), sorted(cuts)):
        some = Seen(ordered[part], pit[part], crps[part])
        parts.update(some, some, outcomes[part])
        parts = NumberCollector.from_document(parts.document())
    assert (whole.document().arrays["words"] == parts.document().arrays["words"]).all()


@pytest.mark.parametrize("rounds", [0, 7, 24, 25, 256, 257, 1100])
@pytest.mark.parametrize("levels", [(0.2, 0.5, 0.8), (0.5,)])
def test_coverage_over_time_is_that_of_stretches(rounds: int, levels: Sequence[float]) -> None:
    y = np.random.default_rng(rounds).random(rounds)
    table = np.tile(np.array(levels), (rounds, 1))
    seen = Seen(table, y, y)
    collector = NumberCollector(levels)
    collector.update(seen, seen, y)
    ends, window, coverage = collector.over_time()
    low = levels[0] if len(levels) > 1 else -1.0
    inside = [low < value <= levels[-1] for value in y.tolist()]
    assert coverage[1].tolist() == stretches(inside, window)
    assert ends.tolist() == [window * (k + 1) for k in range(rounds // window)]
    assert rounds // window <= 24
    assert rounds <= 24 or rounds // window >= 12


def test_a_summary_is_read_back_as_it_was_told(table: dict[str, list[Any]], tmp_path: Path) -> None:
    session = played(write(tmp_path / "d.csv", table), fresh(quantiles=QUANTILES))
    summary = session.summary({"command": "calibrant", "inputs": ["d.csv"]}, {"seconds": 1.0})
    told = summary.to_dict()
    again = read_summary(told)
    assert isinstance(again, NumberSummary)
    assert again.to_dict() == told
    assert again.settings["calibrator"] == "anchored"
    rows = told["levels"]
    record = session.recalibrator.certificate()
    assert [row["bound"] for row in rows] == [
        each.bound.value for each in record.levels if each.bound
    ]
    off = [row["coverage_raw"] - row["level"] for row in rows]
    assert told["raw"]["quantile_calibration_error"] == pytest.approx(sum(x * x for x in off))
    raw = said(table, FORMS[0])
    error = metrics.quantile_calibration_error(raw, table["y"], LEVELS)
    assert told["raw"]["quantile_calibration_error"] == pytest.approx(error)
    inside = told["interval"]
    assert inside["target"] == pytest.approx(0.8)
    assert inside["raw"] == pytest.approx(rows[2]["coverage_raw"] - rows[0]["coverage_raw"])
    del told["detail"]["pit"]
    with pytest.raises(CorruptState, match="summary must be what calibrant wrote, got KeyError"):
        read_summary(told)
    below = summarise_collected(
        NumberCollector([0.5]), QuantileRecalibrator(ties="below", levels=[0.5])
    )
    assert below.settings["ties"] == "below"


def test_a_damaged_state_of_numbers_is_refused() -> None:
    whole = Document.from_bytes(dump(fresh(quantiles=QUANTILES)), "session")
    data = b64decode(whole.settings["recalibrator"])
    broken = {"recalibrator": b64encode(data[:-1]).decode()}
    with pytest.raises(CorruptState, match="state must be whole and unaltered"):
        load(Document("session", whole.settings | broken, whole.arrays).to_bytes())
    short = whole.arrays | {"collector": whole.arrays["collector"][:-1]}
    with pytest.raises(CorruptState, match="state must be of 3 levels, got"):
        load(Document("session", whole.settings, short).to_bytes())
