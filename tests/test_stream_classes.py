"""Streams of forecasts over several classes: what files give is what the library gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason="needs the extra cli")
pytest.importorskip("msgspec", reason="needs the extra cli")

import pyarrow as pa
import pyarrow.parquet as pq

from calibrant import classes
from calibrant.core.codec import Document
from calibrant.errors import CorruptState, InvalidInput
from calibrant.kinds.classes.session import CURVES, ClassSession
from calibrant.stream import (
    BadRow,
    Columns,
    Job,
    Options,
    Skip,
    StateMismatch,
    Stop,
    Unreadable,
    format_of,
    open_output,
    open_session,
    open_writer,
    replay,
)
from calibrant.stream.session import dump, load
from calibrant.stream.source import Source
from calibrant.stream.writers import Writer
from calibrant.summary import summarise_collected

ROWS = 200


def vectors(classes: int, rows: int = ROWS, seed: int = 5) -> tuple[Any, Any]:
    """Over-confident forecasts that sum to 1, and classes."""
    generator = np.random.default_rng(seed)
    odds = np.exp(2.0 * generator.normal(size=(rows, classes)))
    raw = (odds / odds.sum(1, keepdims=True)).round(6)
    raw[:, 0] = 1.0 - raw[:, 1:].sum(1)
    raw = np.abs(raw.round(6))
    truth = np.sqrt(odds)
    truth /= truth.sum(1, keepdims=True)
    return raw, np.array([generator.choice(classes, p=p) for p in truth])


def write(path: Path, raw: Any, outcomes: list[Any], columns: tuple[str, ...]) -> str:
    rows = range(len(raw))
    table: dict[str, list[Any]] = (
        {name: raw[:, k].tolist() for k, name in enumerate(columns)}
        if len(columns) > 1
        else {columns[0]: raw.tolist()}
    )
    table |= {"y": outcomes, "t": list(rows), "known": [t + 5 for t in rows]}
    if path.suffix == ".parquet":
        pq.write_table(pa.table(table), path)
        return str(path)
    lines = [dict(zip(table, line, strict=True)) for line in zip(*table.values(), strict=True)]
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return str(path)
    text = [
        ",".join('"' + json.dumps(v) + '"' if isinstance(v, list) else f"{v}" for v in row.values())
        for row in lines
    ]
    path.write_text("\n".join([",".join(table), *text]) + "\n")
    return str(path)


def fresh(columns: tuple[str, ...], **options: Any) -> ClassSession:
    session = Options(seed=11, proba=columns, **options).session()
    assert isinstance(session, ClassSession)
    return session


def played(
    source: str, columns: tuple[str, ...], session: ClassSession | None = None,
    out: Path | None = None, on_fault: Any = None, **job: Any,
) -> ClassSession:  # fmt: skip
    session = session or fresh(columns)
    opened: list[Any] = []

    def start(source: Source, found: Columns) -> Writer | None:
        if out is None:
            return None
        opened.append(open_output(out, str(out)))
        kind = format_of(str(out)) or "csv"
        return open_writer(opened[0].__enter__(), kind, found, session.added(found))

    try:
        given = Job((source,), outcome="y", proba=columns, **job)
        replay(given, session, on_fault or Stop(), start=start)
    finally:
        for output in opened:
            output.__exit__(None, None, None)
    return session


def read(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    import csv

    return list(csv.DictReader(path.read_text().splitlines()))


NAMED = ("p_cat", "p_cow", "p_dog")


@pytest.mark.parametrize("name", ["d.csv", "d.jsonl", "d.parquet"])
@pytest.mark.parametrize("to", ["o.csv", "o.jsonl", "o.parquet"])
def test_a_column_for_each_class_gives_what_the_library_gives(
    tmp_path: Path, name: str, to: str
) -> None:
    raw, outcomes = vectors(3)
    named = [("cat", "p_cow", 2)[k] if name != "d.parquet" else ("cat", "cow", "dog")[k]
             for k in outcomes]  # fmt: skip
    source, out = write(tmp_path / name, raw, named, NAMED), tmp_path / to
    session = played(source, NAMED, out=out)
    rec = classes.recalibrator(3, seed=11)
    made = rec.replay(raw, outcomes)
    assert session.recalibrator == rec
    rows = read(out)
    assert [row["top"] for row in rows] == [("cat", "cow", "dog")[k] for k in made.top]
    assert [float(row["confidence"]) for row in rows] == made.confidence.tolist()
    for k, short in enumerate(("cat", "cow", "dog")):
        assert [float(row[f"forecast_{short}"]) for row in rows] == made.forecast[:, k].tolist()
    assert [int(row["ticket"]) for row in rows] == list(range(ROWS))


@pytest.mark.parametrize("name", ["d.csv", "d.jsonl", "d.parquet"])
@pytest.mark.parametrize("batch_rows", [1, 60, 5000])
def test_a_column_of_lists_gives_what_the_library_gives(
    tmp_path: Path, name: str, batch_rows: int
) -> None:
    raw, outcomes = vectors(6)
    source, out = write(tmp_path / name, raw, outcomes.tolist(), ("probs",)), tmp_path / "o.jsonl"
    session = played(source, ("probs",), out=out, batch_rows=batch_rows)
    rec = classes.recalibrator(6, seed=11)
    made = rec.replay(raw, outcomes)
    assert session.recalibrator == rec
    rows = read(out)
    assert [row["top"] for row in rows] == made.top.tolist()
    assert [row["confidence"] for row in rows] == made.confidence.tolist()
    assert [row["forecast"] for row in rows] == made.forecast.tolist()
    assert session.collector.rounds == ROWS


@pytest.mark.parametrize("to", ["o.csv", "o.parquet"])
def test_lists_are_written_as_lists(tmp_path: Path, to: str) -> None:
    raw, outcomes = vectors(5, 30)
    source = write(tmp_path / "d.parquet", raw, outcomes.tolist(), ("probs",))
    played(source, ("probs",), out=tmp_path / to)
    first = read(tmp_path / to)[0]["forecast"]
    found = json.loads(first) if isinstance(first, str) else first
    assert sum(found) == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["d.csv", "d.jsonl"])
def test_a_filter_answers_line_by_line(tmp_path: Path, name: str) -> None:
    raw, outcomes = vectors(3, 40)
    source = write(tmp_path / name, raw, outcomes.tolist(), NAMED)
    whole, lines = tmp_path / f"w{name}", tmp_path / f"l{name}"
    played(source, NAMED, out=whole)
    played(source, NAMED, out=lines, one_by_one=True)
    assert lines.read_text() == whole.read_text()


@pytest.mark.parametrize("count", [3, 6])
@pytest.mark.parametrize("times", [{}, {"time": "t", "available": "known"}])
def test_two_halves_with_a_state_give_what_the_whole_gives(
    tmp_path: Path, count: int, times: dict[str, str]
) -> None:
    raw, outcomes = vectors(count)
    columns = tuple(f"p{k}" for k in range(count))
    whole = played(write(tmp_path / "d.csv", raw, outcomes.tolist(), columns), columns, **times)
    header, *lines = (tmp_path / "d.csv").read_text().splitlines(keepends=True)
    halves = [tmp_path / "1.csv", tmp_path / "2.csv"]
    halves[0].write_text("".join([header, *lines[:70]]))
    halves[1].write_text("".join([header, *lines[70:]]))
    stored = load(dump(played(str(halves[0]), columns, **times)))
    assert isinstance(stored, ClassSession)
    rest = played(str(halves[1]), columns, stored, **times)
    assert dump(rest) == dump(whole)
    one_by_one = played(str(tmp_path / "d.csv"), columns, batch_rows=1, **times)
    assert one_by_one.recalibrator == whole.recalibrator
    assert one_by_one.breakdown.words().tolist() == whole.breakdown.words().tolist()


def test_late_outcomes_are_learned_late(tmp_path: Path) -> None:
    raw, outcomes = vectors(3)
    source = write(tmp_path / "d.parquet", raw, outcomes.tolist(), NAMED)
    session = played(source, NAMED, time="t", available="known")
    rec = classes.recalibrator(3, seed=11)
    for t in range(ROWS):
        if t >= 5:
            rec.observe(t - 5, int(outcomes[t - 5]))
        rec.forecast(raw[t], time=float(t))
    assert session.recalibrator.certificate() == rec.certificate()
    assert len(session.pending) == 5


def test_few_classes_have_a_curve_each_and_many_where_they_come_first(tmp_path: Path) -> None:
    for count in (4, CURVES + 1):
        raw, outcomes = vectors(count, 60)
        source = write(tmp_path / f"{count}.parquet", raw, outcomes.tolist(), ("probs",))
        session = played(source, ("probs",))
        parts = {part.name: part for part in session.breakdown.parts()}
        if count == 4:
            assert list(parts) == ["0", "1", "2", "3"]
            assert {part.rounds for part in parts.values()} == {60}
            assert parts["1"].mean_raw == pytest.approx(raw[:, 1].mean())
            assert parts["1"].rate == pytest.approx((outcomes == 1).mean())
        else:
            tops = classes.recalibrator(count, seed=11).replay(raw, outcomes).top
            first = tops == tops[0]
            own = parts[str(tops[0])]
            assert sum(part.rounds for part in parts.values()) == 60
            assert own.rate == pytest.approx((outcomes[first] == tops[0]).mean())


def test_the_summary_is_about_the_class_that_comes_first(tmp_path: Path) -> None:
    raw, outcomes = vectors(3)
    session = played(write(tmp_path / "d.parquet", raw, outcomes.tolist(), NAMED), NAMED)
    summary = summarise_collected(
        session.collector, session.recalibrator, breakdown=session.breakdown
    )
    tops = classes.recalibrator(3, seed=11).replay(raw, outcomes).top
    right, sure = tops == outcomes, raw[np.arange(ROWS), tops]
    assert summary["base_rate"] == pytest.approx(right.mean())
    assert summary["raw"]["brier"] == pytest.approx(((sure - right) ** 2).mean())
    assert (summary["method"], summary["calibrator"]) == ("class-calibrant", "refining")
    own = session.recalibrator.certificate()
    rows = summary["breakdown"]["rows"]
    assert [row["c2_forecast"] for row in rows] == [own.parts[k].c2 for k in range(3)]
    assert [row["bound"] for row in rows] == [own.parts[k].promised("C2") for k in range(3)]
    assert summary["bound"]["c2"] == own.promised("C2")


def test_the_classes_of_many_have_no_bound_of_their_own(tmp_path: Path) -> None:
    raw, outcomes = vectors(CURVES + 1, 90)
    session = played(write(tmp_path / "d.parquet", raw, outcomes.tolist(), ("p",)), ("p",))
    summary = summarise_collected(
        session.collector, session.recalibrator, breakdown=session.breakdown
    )
    assert summary["method"] == "class-calibrant"
    assert summary.settings["classes"] == CURVES + 1
    assert {row["bound"] for row in summary["breakdown"]["rows"]} == {None}
    made = session.recalibrator.certificate()
    assert summary["bound"]["c2"] == made.promised("C2") < 1.0
    assert made.early is None


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("0.5,0.6,0,cat", "p_cat,p_cow,p_dog must be 3 numbers in [0, 1] that sum to 1, "
         "got ['0.5', '0.6', '0']"),
        ("-0.5,1.5,0,cat", "p_cat,p_cow,p_dog must be 3 numbers in [0, 1]"),
        ("x,0.5,0.5,cat", "p_cat,p_cow,p_dog must be 3 numbers in [0, 1]"),
        ("0.2,0.3,0.5,pig", "y must be a class (p_cat, cat, p_cow, cow, p_dog, dog) or its number "
         "from 0 to 2, got 'pig'"),
        ("0.2,0.3,0.5,3", "y must be a class"),
        ("0.2,0.3,0.5,1.5", "y must be a class"),
    ],
)  # fmt: skip
def test_a_bad_row_is_told(tmp_path: Path, line: str, told: str) -> None:
    source = tmp_path / "d.csv"
    source.write_text(f"{','.join(NAMED)},y\n0.2,0.3,0.5,cat\n{line}\n")
    with pytest.raises(BadRow) as caught:
        played(str(source), NAMED)
    assert f"row 2: {told}" in str(caught.value)
    skip = Skip()
    session = played(str(source), NAMED, on_fault=skip)
    assert (skip.skipped, session.recalibrator.rounds) == (1, 1)


@pytest.mark.parametrize("value", ["[0.5, 0.5]", '"x"', "null", "[0.9]", '"[0.5"', "[]", "7"])
def test_lists_of_another_length_or_of_something_else_are_bad_rows(
    tmp_path: Path, value: str
) -> None:
    source = tmp_path / "d.jsonl"
    good = '{"probs": [0.2, 0.3, 0.5], "y": 0}\n'
    source.write_text(f'{good}{good}{{"probs": {value}, "y": 0}}\n')
    skip = Skip()
    session = played(str(source), ("probs",), on_fault=skip)
    assert (skip.skipped, session.recalibrator.rounds) == (1, 2)
    with pytest.raises(BadRow, match=r"row 3: probs must be 3 numbers in \[0, 1\]"):
        played(str(source), ("probs",))


def test_lists_of_one_length_may_hold_something_else(tmp_path: Path) -> None:
    source = tmp_path / "d.parquet"
    lists = pa.array([[0.4, 0.6], None, [0.5, 0.5], [1.0]], pa.list_(pa.float64()))
    pq.write_table(pa.table({"probs": lists, "y": [0, 1, 1, 0]}), source)
    skip = Skip()
    session = played(str(source), ("probs",), on_fault=skip)
    assert (skip.skipped, session.recalibrator.rounds) == (2, 2)
    ragged = tmp_path / "r.parquet"
    pq.write_table(pa.table({"probs": [[1.0], [1.0]], "y": [0, 0]}), ragged)
    with pytest.raises(BadRow, match="row 1: probs must be 2 numbers"):
        played(str(ragged), ("probs",))


def test_rows_without_an_outcome_are_forecast_and_counted(tmp_path: Path) -> None:
    raw, outcomes = vectors(3, 30)
    told = [None if t % 3 == 0 else int(k) for t, k in enumerate(outcomes)]
    session = played(write(tmp_path / "d.parquet", raw, told, NAMED), NAMED)
    assert (session.unresolved, session.collector.rounds) == (10, 20)
    assert (session.recalibrator.issued, session.recalibrator.rounds) == (30, 20)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"scale": "logit"}, "scale must be left out: the numbers of several classes must be"),
        ({"epsilon": 0.1}, "epsilon must be left out: it is for one stream of probabilities"),
        ({"raw_safe": 0.1}, "raw_safe must be left out: it is for one stream of probabilities"),
        ({"prior": 1}, "prior must be left out: calibrant learns how far"),
        ({"method": "best"}, "method must be one of 'calibrant'"),
    ],
)
def test_what_classes_do_not_know_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{told}"):
        fresh(NAMED, **options)


def test_a_method_of_choice_works_inside(tmp_path: Path) -> None:
    raw, outcomes = vectors(3, 30)
    source = write(tmp_path / "d.parquet", raw, outcomes.tolist(), NAMED)
    chosen = {"method": "foster_hart", "resolution": 10, "prior": 2}
    session = played(source, NAMED, fresh(NAMED, **chosen))
    rec = classes.recalibrator(3, seed=11, engine="recalibrator", **chosen)
    rec.replay(raw, outcomes)
    assert session.recalibrator == rec
    stored = load(dump(session))
    assert open_session(Options(proba=NAMED, **chosen), stored) is stored
    assert stored.kept_columns == {"proba": NAMED}
    with pytest.raises(StateMismatch, match="method must be as in the state, 'foster_hart'"):
        open_session(Options(method="blackwell"), stored)
    with pytest.raises(StateMismatch, match="proba must be as in the state"):
        open_session(Options(proba=("a", "b")), stored)


def test_a_damaged_state_of_classes_is_refused(tmp_path: Path) -> None:
    raw, outcomes = vectors(6, 20)
    session = played(write(tmp_path / "d.parquet", raw, outcomes.tolist(), ("p",)), ("p",))
    whole = Document.from_bytes(dump(session), "session")
    from base64 import b64decode, b64encode

    broken = b64encode(b64decode(whole.settings["recalibrator"])[:-1]).decode()
    data = Document("session", whole.settings | {"recalibrator": broken}, whole.arrays)
    with pytest.raises(CorruptState, match="state must be whole and unaltered"):
        load(data.to_bytes())


def test_an_outcome_among_the_probabilities_and_no_rows_are_refused(tmp_path: Path) -> None:
    source = tmp_path / "d.csv"
    source.write_text("a,b,y\n")
    with pytest.raises(Unreadable, match="must have at least one row, got none"):
        played(str(source), ("a", "b"))
    with pytest.raises(Unreadable, match="must be two columns, got 'y' for both"):
        played(str(source), ("a", "y"))
