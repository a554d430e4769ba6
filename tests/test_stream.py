"""Streams from file to file: formats, cuts, late outcomes, states, bad rows."""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from contextlib import closing
from functools import partial
from io import BytesIO, RawIOBase, TextIOWrapper
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason="needs the extra cli")

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from calibrant import Calibrant, Recalibrator
from calibrant.errors import CorruptState, InvalidInput
from calibrant.stream import (
    ADDED,
    BadRow,
    Columns,
    Job,
    OnFault,
    Options,
    Quarantine,
    Scale,
    Session,
    Skip,
    StateMismatch,
    Stop,
    Unreadable,
    Unwritable,
    Writer,
    format_of,
    open_output,
    open_session,
    open_writer,
    replay,
)
from calibrant.stream.inputs import open_reader
from calibrant.stream.readers import Misfit, TextReader
from calibrant.stream.session import WARM_UP, dump, load, read
from calibrant.stream.source import Source, open_source
from calibrant.summary import summarise, summarise_collected

ROWS = 700


def squeezed(data: bytes) -> bytes:
    """Compress without a time stamp: names of tests are made of it."""
    return gzip.compress(data, mtime=0)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let text be read in small blocks, so that it is cut in many places."""
    monkeypatch.setattr("calibrant.stream.readers.LEAST_BLOCK", 256)


def data(rows: int = ROWS, seed: int = 3) -> dict[str, list[Any]]:
    generator = np.random.default_rng(seed)
    raw = generator.random(rows).round(6)
    outcomes = (generator.random(rows) < 0.2 + 0.5 * raw).astype(int)
    time = np.sort(generator.integers(0, rows // 2, rows))
    late = time + generator.integers(0, 40, rows)
    names = [f'team "{t % 7}", {t}' for t in range(rows)]
    return {
        "name": names,
        "p": raw.tolist(),
        "y": outcomes.tolist(),
        "t": time.tolist(),
        "known": late.tolist(),
    }


def write(path: Path, columns: dict[str, list[Any]]) -> Path:
    """Write columns to a file as its name says."""
    table = pa.table(columns)
    kind = format_of(str(path))
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=200)
        return path
    if kind == "jsonl":
        text = "".join(json.dumps(row) + "\n" for row in table.to_pylist()).encode()
    else:
        into = BytesIO()
        options = pyarrow.csv.WriteOptions(delimiter="\t" if kind == "tsv" else ",")
        pyarrow.csv.write_csv(table, into, options)
        text = into.getvalue()
    if path.suffix == ".gz":
        text = gzip.compress(text)
    elif path.suffix == ".zst":
        into = pa.BufferOutputStream()
        with pa.CompressedOutputStream(into, "zstd") as stream:
            stream.write(text)
        text = into.getvalue().to_pybytes()
    path.write_bytes(text)
    return path


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Read a file of ours back, with numbers where there are numbers."""
    kind = format_of(str(path))
    if kind == "parquet":
        return list(pq.read_table(path).to_pylist())
    with closing(open_source(str(path))) as source:
        if kind == "jsonl":
            return [json.loads(line) for line in source.stream]
        options = pyarrow.csv.ParseOptions(delimiter="\t" if kind == "tsv" else ",")
        return list(pyarrow.csv.read_csv(source.stream, parse_options=options).to_pylist())


def run(
    *inputs: Path | str,
    out: Path | None = None,
    session: Session | None = None,
    on_fault: OnFault | None = None,
    prefix: str = "",
    **job: Any,
) -> Session:
    session = session or Options(seed=11).session()
    opened: list[Any] = []

    def start(source: Source, columns: Columns) -> Writer | None:
        if out is None:
            return None
        output = open_output(out, str(out))
        opened.append(output)
        names = [prefix + name for name in ADDED]
        kind = format_of(str(out))
        assert kind is not None
        return open_writer(output.__enter__(), kind, columns, names)

    try:
        replay(Job(tuple(map(str, inputs)), **job), session, on_fault or Stop(), start=start)
    finally:
        for output in opened:
            output.__exit__(None, None, None)
    return session


def told(session: Session) -> dict[str, Any]:
    summary = summarise_collected(session.collector, session.recalibrator, seed=session.seed)
    return summary.to_dict()


@pytest.fixture(scope="module")
def expected() -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """What plain lists give: the rows and the summary that every file must give."""
    columns = data()
    rec = Calibrant(seed=11)
    made = rec.replay(columns["p"], columns["y"])
    columns |= {name: getattr(made, name).tolist() for name in ADDED}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    summary = summarise(rec, columns["p"], made.forecast, made.mean, columns["y"], seed=11)
    return rows, summary.to_dict()


NAMES = ["d.csv", "d.tsv", "d.jsonl", "d.parquet", "d.csv.gz", "d.jsonl.zst", "d.tsv.zst"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("batch_rows", [1, 97, 5000])
def test_files_give_what_lists_give_in_every_format_and_however_they_are_cut(
    tmp_path: Path, expected: tuple[Any, Any], name: str, batch_rows: int
) -> None:
    source, out = write(tmp_path / name, data()), tmp_path / f"out.{name.partition('.')[2]}"
    session = run(source, out=out, batch_rows=batch_rows)
    assert rows_of(out) == expected[0]
    assert told(session) == expected[1]


@pytest.mark.parametrize("into", ["o.csv", "o.tsv", "o.jsonl", "o.parquet", "o.csv.gz"])
@pytest.mark.parametrize("name", ["d.csv", "d.jsonl", "d.parquet"])
def test_any_format_can_become_any_other(
    tmp_path: Path, expected: tuple[Any, Any], name: str, into: str
) -> None:
    out = tmp_path / into
    run(write(tmp_path / name, data()), out=out)
    found = rows_of(out)
    for key in ("name", "p", "y", *ADDED):
        assert [row[key] for row in found] == [row[key] for row in expected[0]]
    assert [float(row["t"]) for row in found] == [row["t"] for row in expected[0]]


def test_text_stays_as_it_was_written(tmp_path: Path) -> None:
    source = tmp_path / "d.csv"
    source.write_bytes(b'id,p,y\n007,0.50,1\n"a ""b"", c",.25,0.0\n"x\ny",1e-1,TRUE\n')
    out = tmp_path / "o.csv"
    run(source, out=out)
    lines = out.read_text()
    assert lines.startswith(
        "id,p,y,forecast,mean,bucket,ticket\n007,0.50,1,0.5871586799621582,0.5,0,0\n"
    )
    assert '\n"a ""b"", c",.25,0.0,' in lines
    assert '\n"x\ny",1e-1,TRUE,' in lines


def test_lines_of_json_stay_as_they_were_written(tmp_path: Path) -> None:
    source = tmp_path / "d.jsonl"
    source.write_text('{"p": 0.50, "y": 1, "x": {"a": [1, 2.0]} }\n\n{"p":0.25,"y":null}\n')
    out = tmp_path / "o.jsonl"
    session = run(source, out=out)
    first, second = out.read_text().splitlines()
    assert first.startswith(
        '{"p": 0.50, "y": 1, "x": {"a": [1, 2.0]},"forecast":0.5871586799621582,"mean":'
    )
    assert second.startswith('{"p":0.25,"y":null,"forecast":0.')
    assert second.endswith(',"bucket":0,"ticket":1}')
    assert session.unresolved == 1


def test_the_kinds_of_a_parquet_file_are_kept(tmp_path: Path) -> None:
    kinds = pa.schema([("p", pa.float32()), ("y", pa.bool_()), ("tags", pa.list_(pa.int8()))])
    rows = {"p": [0.5, 0.25], "y": [True, None], "tags": [[1], None]}
    source, out = tmp_path / "d.parquet", tmp_path / "o.parquet"
    pq.write_table(pa.table(rows, schema=kinds), source)
    run(source, out=out)
    found = pq.read_table(out)
    assert found.schema.types[:3] == kinds.types
    assert found.schema.types[3:] == [pa.float64(), pa.float64(), pa.int32(), pa.int64()]
    run(source, out=tmp_path / "o.csv")
    assert rows_of(tmp_path / "o.csv")[0]["tags"] == "[1]"
    run(source, out=tmp_path / "o.jsonl")
    assert rows_of(tmp_path / "o.jsonl")[1]["y"] is None


def test_a_parquet_file_has_no_dictionary_of_doubles(tmp_path: Path) -> None:
    out = tmp_path / "o.parquet"
    run(write(tmp_path / "d.csv", data()), out=out)
    group = pq.ParquetFile(out).metadata.row_group(0)
    encodings = {group.column(i).path_in_schema: group.column(i).encodings for i in range(9)}
    assert not any("DICTIONARY" in kind for kind in encodings["forecast"])
    assert any("DICTIONARY" in kind for kind in encodings["name"])


def test_many_rows_make_several_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("calibrant.stream.writers.GROUP_ROWS", 300)
    out = tmp_path / "o.parquet"
    run(write(tmp_path / "d.parquet", data()), out=out, batch_rows=150)
    assert pq.ParquetFile(out).metadata.num_row_groups == 3
    assert len(rows_of(out)) == ROWS


def test_several_inputs_are_one_stream(tmp_path: Path, expected: tuple[Any, Any]) -> None:
    columns = data()
    parts = [
        write(tmp_path / name, {key: column[cut] for key, column in columns.items()})
        for name, cut in (("a.csv", slice(0, 300)), ("b.csv", slice(300, None)))
    ]
    out = tmp_path / "o.csv"
    session = run(*parts, out=out)
    assert rows_of(out) == expected[0]
    assert told(session) == expected[1]


@pytest.mark.parametrize("out", ["o.csv", "o.parquet"])
def test_inputs_with_other_columns_cannot_join_a_table(tmp_path: Path, out: str) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("p,y\n0.5,1\n")
    second.write_text("y,p\n1,0.5\n")
    with pytest.raises(Unreadable) as caught:
        run(first, second, out=tmp_path / out)
    assert str(caught.value) == f"{second}: must have the columns of the first input to join it"
    run(first, second, out=tmp_path / "o.jsonl")


def test_inputs_of_other_kinds_cannot_join_a_parquet_file(tmp_path: Path) -> None:
    first, second = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pq.write_table(pa.table({"p": [0.5], "y": [1], "x": [1]}), first)
    pq.write_table(pa.table({"p": [0.5], "y": [1], "x": ["a"]}), second)
    with pytest.raises(BadRow, match="every input must have columns of the same kinds"):
        run(first, second, out=tmp_path / "o.parquet")


def test_a_later_input_must_have_the_columns_that_are_read(tmp_path: Path) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("p,y\n0.5,1\n")
    second.write_text("q,y\n0.5,1\n")
    with pytest.raises(Unreadable) as caught:
        run(first, second)
    assert str(caught.value) == f"{second}: no column 'p' as in the first input"


def test_new_keys_in_later_lines_cannot_become_columns(tmp_path: Path) -> None:
    source = tmp_path / "d.jsonl"
    source.write_text('{"p":0.5,"y":1}\n' * 200 + '{"p":0.5,"y":1,"z":2}\n')
    with pytest.raises(BadRow, match="got also z; write JSON Lines instead"):
        run(source, out=tmp_path / "o.csv")
    run(source, out=tmp_path / "o.jsonl")


def test_new_columns_may_not_hide_old_ones(tmp_path: Path) -> None:
    source = tmp_path / "d.csv"
    source.write_text("forecast,y\n0.5,1\n")
    with pytest.raises(Unreadable) as caught:
        run(source, out=tmp_path / "o.csv")
    assert str(caught.value) == (
        f"{source}: column 'forecast' already exists; rename it, or name the new columns "
        "with --prefix"
    )
    run(source, out=tmp_path / "o.csv", prefix="new_")
    assert list(rows_of(tmp_path / "o.csv")[0])[2:] == [f"new_{name}" for name in ADDED]


# ---------------------------------------------------------------------- standard input


class Stdin:
    def __init__(self, content: bytes) -> None:
        self.buffer = BytesIO(content)


@pytest.mark.parametrize("name", ["d.csv", "d.tsv", "d.jsonl", "d.csv.gz", "d.jsonl.zst"])
def test_standard_input_is_recognised_by_its_first_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected: tuple[Any, Any], name: str
) -> None:
    content = write(tmp_path / name, data()).read_bytes()
    monkeypatch.setattr(sys, "stdin", Stdin(content))
    assert told(run("-")) == expected[1]


def test_a_file_without_a_telling_name_is_recognised_too(
    tmp_path: Path, expected: tuple[Any, Any]
) -> None:
    plain = write(tmp_path / "d.parquet", data()).rename(tmp_path / "data")
    assert told(run(plain)) == expected[1]


def test_a_format_may_be_told(tmp_path: Path) -> None:
    source = tmp_path / "d.txt"
    source.write_text("p\ty,z\n0.5\t1\n")
    assert run(source, format="tsv", outcome="y,z").recalibrator.rounds == 1


def test_parquet_may_come_through_a_pipe_and_compressed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected: tuple[Any, Any]
) -> None:
    plain = write(tmp_path / "d.parquet", data())
    packed = tmp_path / "d.parquet.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert told(run(packed)) == expected[1]
    for source in (plain, packed):
        stdin = Stdin(source.read_bytes())
        monkeypatch.setattr(sys, "stdin", stdin)
        assert told(run("-")) == expected[1]
        assert not stdin.buffer.closed


def test_no_room_for_parquet_from_a_pipe_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = write(tmp_path / "d.parquet", data()).read_bytes()
    monkeypatch.setattr(sys, "stdin", Stdin(content))
    monkeypatch.setattr(tempfile, "TemporaryFile", partial(open, "/dev/full", "r+b", 0))
    with pytest.raises(Unwritable) as caught:
        run("-")
    assert str(caught.value) == (
        f"{tempfile.gettempdir()}: cannot be written: No space left on device"
    )


def test_closed_standard_streams_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(Unreadable, match=r"^-: cannot be read: standard input is closed$"):
        run("-")
    monkeypatch.setattr(sys, "stdout", None)
    with (
        pytest.raises(Unwritable, match=r"^standard output: cannot be written: Bad file desc"),
        open_output(None, "-"),
    ):
        pass


def test_rows_can_go_to_standard_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    into = TextIOWrapper(BytesIO())
    monkeypatch.setattr(sys, "stdout", into)
    with open_output(None, "-") as stream:
        stream.write(b"row\n")
    assert into.buffer.getvalue() == b"row\n"  # type: ignore[attr-defined]


# ------------------------------------------------------------------------ one by one


@pytest.mark.parametrize("name", ["d.csv", "d.tsv", "d.jsonl"])
def test_one_by_one_gives_the_same_bytes(
    tmp_path: Path, expected: tuple[Any, Any], name: str
) -> None:
    columns = {key: column[:60] for key, column in data().items()}
    source = write(tmp_path / name, columns)
    whole, single = tmp_path / f"a{source.suffix}", tmp_path / f"b{source.suffix}"
    first, second = run(source, out=whole), run(source, out=single, one_by_one=True)
    assert whole.read_bytes() == single.read_bytes()
    assert told(first) == told(second)


class Watched(BytesIO):
    """A stream that notes when a row is written to it."""

    def __init__(self, log: list[str]) -> None:
        super().__init__()
        self.log = log

    def write(self, text: Any) -> int:
        self.log += ["wrote"] if b"0.5" in bytes(text) else []
        return super().write(text)


@pytest.mark.parametrize(
    ("lines", "format"),
    [
        (["p,y\n", "0.5,1\n", "0.5,0\n"], "csv"),
        (['{"p":0.5,"y":1}\n', '{"p":0.5,"y":0}\n'], "jsonl"),
    ],
)
def test_each_line_is_answered_before_the_next_one_is_read(
    monkeypatch: pytest.MonkeyPatch, lines: list[str], format: str
) -> None:
    log: list[str] = []

    class Slow(RawIOBase):
        """Gives one line at a time, and says so."""

        def __init__(self) -> None:
            self.waiting = [line.encode() for line in lines]

        def readable(self) -> bool:
            return True

        def readinto(self, into: Any) -> int:
            if not self.waiting:
                return 0
            line = self.waiting.pop(0)
            log.append("read")
            into[: len(line)] = line
            return len(line)

    class Pipe:
        buffer = Slow()

    monkeypatch.setattr(sys, "stdin", Pipe())
    stream = Watched(log)

    def start(source: Source, columns: Columns) -> Writer:
        return open_writer(stream, format, columns, ADDED)

    job = Job(("-",), format=format, one_by_one=True)
    replay(job, Options(seed=1).session(), Stop(), start=start)
    assert log[-4:] == ["read", "wrote", "read", "wrote"]


def test_one_by_one_may_be_late_and_without_outcomes(tmp_path: Path) -> None:
    columns = {key: column[:120] for key, column in data().items()}
    columns["y"][5:90:7] = [None] * 13
    columns["known"][3:80:11] = [None] * 7
    source = write(tmp_path / "d.csv", columns)
    late = {"time": "t", "available": "known"}
    found = []
    for one_by_one in (False, True):
        out = tmp_path / f"{one_by_one}.jsonl"
        session = run(source, out=out, one_by_one=one_by_one, **late)
        found.append((out.read_text(), dump(session)))
    assert found[0] == found[1]


def test_parquet_has_no_lines(tmp_path: Path) -> None:
    source = write(tmp_path / "d.parquet", data())
    with pytest.raises(Unreadable, match="Parquet has no lines to answer one by one"):
        run(source, one_by_one=True)


# --------------------------------------------------------------------- late outcomes


def late(rec: Recalibrator, columns: dict[str, list[Any]]) -> list[tuple[float, float]]:
    """Play late outcomes one call at a time: the order of events, spelled out."""
    waiting: list[tuple[float, int, int, Any]] = []
    answers = []
    rows = zip(columns["p"], columns["y"], columns["t"], columns["known"], strict=True)
    for row, (p, y, t, known) in enumerate(rows):
        for entry in sorted(entry for entry in waiting if entry[0] <= t):
            rec.observe(entry[1], entry[2])
            waiting.remove(entry)
        ticket = rec.forecast(p)
        answers.append((ticket.value, ticket.mean))
        waiting.append((known, row, y, None))
    for entry in sorted(entry for entry in waiting if entry[0] <= columns["t"][-1]):
        rec.observe(entry[1], entry[2])
    return answers


@pytest.mark.parametrize("batch_rows", [1, 50, 5000])
def test_late_outcomes_are_learned_late_and_in_order(tmp_path: Path, batch_rows: int) -> None:
    columns = data()
    out = tmp_path / "o.parquet"
    source = write(tmp_path / "d.parquet", columns)
    session = run(source, out=out, time="t", available="known", batch_rows=batch_rows)
    rec = Calibrant(seed=11)
    answers = late(rec, columns)
    found = rows_of(out)
    assert [row["forecast"] for row in found] == [value for value, _ in answers]
    assert [row["mean"] for row in found] == pytest.approx([mean for _, mean in answers])
    assert session.recalibrator.rounds == rec.rounds
    assert session.recalibrator.certificate().c2 == rec.certificate().c2
    assert len(session.pending) == rec.open > 0


def test_rows_without_an_outcome_are_forecast_and_counted(tmp_path: Path) -> None:
    columns = data()
    columns["y"] = [None if t % 3 == 0 else y for t, y in enumerate(columns["y"])]
    session = run(write(tmp_path / "d.csv", columns), batch_rows=64)
    gone = len(range(0, ROWS, 3))
    assert session.recalibrator.issued == ROWS
    assert session.recalibrator.rounds == ROWS - gone
    assert session.unresolved == gone
    assert session.collector.rounds == ROWS - gone
    assert len(session.pending) == 0


@pytest.mark.parametrize("cut", [1, 256, 699])
@pytest.mark.parametrize("times", [{}, {"time": "t", "available": "known"}])
def test_two_halves_with_a_state_give_what_the_whole_gives(
    tmp_path: Path, cut: int, times: dict[str, str]
) -> None:
    columns = data()
    columns["p"] = [8.0 * p - 3.0 for p in columns["p"]]
    columns["y"][10:20] = [None] * 10
    parts = [
        write(tmp_path / name, {key: column[part] for key, column in columns.items()})
        for name, part in (("a.csv", slice(0, cut)), ("b.csv", slice(cut, None)))
    ]
    whole = run(
        write(tmp_path / "d.csv", columns), out=tmp_path / "o.jsonl", **times,
        session=Options(seed=11, scale="score").session(),
    )  # fmt: skip
    half = run(
        parts[0], out=tmp_path / "o1.jsonl", session=Options(seed=11, scale="score").session(),
        **times,
    )  # fmt: skip
    stored = load(dump(half))
    rest = run(parts[1], out=tmp_path / "o2.jsonl", session=stored, **times)
    both = (tmp_path / "o1.jsonl").read_text() + (tmp_path / "o2.jsonl").read_text()
    assert both == (tmp_path / "o.jsonl").read_text()
    assert told(rest) == told(whole)
    assert dump(rest) == dump(whole)


@pytest.mark.parametrize("method", ["polynomial_regret", "blackwell", "running_mean"])
def test_every_kind_of_method_can_be_cut(tmp_path: Path, method: str) -> None:
    source = write(tmp_path / "d.csv", {key: column[:80] for key, column in data().items()})
    times = {"time": "t", "available": "known"}
    found = [
        dump(
            run(source, session=Options(method=method, resolution=4, seed=2).session(),
                batch_rows=rows, **times)
        )
        for rows in (1, 1000)
    ]  # fmt: skip
    assert len(set(found)) == 1


@pytest.mark.parametrize("times", [{}, {"time": "t", "available": "known"}])
def test_a_budget_is_the_same_however_rows_are_cut(tmp_path: Path, times: dict[str, str]) -> None:
    source = write(tmp_path / "d.csv", data(150))
    found = [
        dump(
            run(source, session=Options(seed=2, raw_safe=0.001).session(), batch_rows=rows, **times)
        )
        for rows in (1, 40, 1000)
    ]
    assert len(set(found)) == 1
    again = load(found[0])
    assert again.recalibrator.raw_safe == 0.001
    assert 0 < again.recalibrator.certificate().budget.fallbacks < 150


# --------------------------------------------------------------------------- states


def test_a_state_that_is_not_there_yet_is_none(tmp_path: Path) -> None:
    assert read(str(tmp_path / "state")) is None


@pytest.mark.parametrize("kind", [Recalibrator, Calibrant])
def test_the_state_of_a_bare_recalibrator_will_do(kind: type[Recalibrator], tmp_path: Path) -> None:
    rec = kind(seed=4, resolution=7)
    rec.replay([0.3, 0.4], [0, 1])
    path = tmp_path / "state"
    path.write_bytes(rec.to_bytes())
    found = read(str(path))
    assert found is not None
    assert found.recalibrator == rec
    assert found.collector.rounds == 0
    assert found.seed is None


def test_a_damaged_state_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state"
    content = dump(Options(seed=1).session())
    path.write_bytes(content[:-1])
    with pytest.raises(CorruptState) as caught:
        read(str(path))
    assert str(caught.value).startswith(f"{path}: state must be whole and unaltered")
    with pytest.raises(Unreadable, match="cannot be read: Is a directory"):
        read(str(tmp_path))


def test_a_state_with_parts_missing_is_refused() -> None:
    from calibrant.core.codec import Document

    with pytest.raises(CorruptState, match="state must be of a replay, got KeyError"):
        load(Document("session", {}, {"collector": np.zeros(3, np.int64)}).to_bytes())
    session = Options(seed=1).session()
    whole = Document.from_bytes(dump(session), "session")
    short = {**whole.arrays, "collector": whole.arrays["collector"][:-1]}
    with pytest.raises(CorruptState, match="state must be of a collector"):
        load(Document("session", whole.settings, short).to_bytes())


@pytest.mark.parametrize(
    ("options", "told_by"),
    [
        ({"method": "blackwell"}, "method must be as in the state, 'foster_hart', got 'blackwell'"),
        ({"resolution": 10}, "resolution must be as in the state, 20, got 10"),
        ({"buckets": 10}, "buckets must be as in the state, 20, got 10"),
        ({"grid": "midpoints"}, "grid must be as in the state, 'endpoints', got 'midpoints'"),
        ({"loss": "log"}, "loss must be as in the state, 'squared', got 'log'"),
        ({"prior": 0}, "prior must be as in the state, 1, got 0"),
        ({"seed": 2}, "seed must be as in the state, 1, got 2"),
        ({"scale": "logit"}, "scale must be as in the state, 'probability', got 'logit'"),
        ({"epsilon": 0.1}, "epsilon must be as in the state, None, got 0.1"),
    ],
)
def test_a_state_must_be_what_was_asked_for(options: dict[str, Any], told_by: str) -> None:
    stored = Options(method="foster_hart", seed=1).session()
    with pytest.raises(StateMismatch) as caught:
        open_session(Options(**options), stored)
    assert str(caught.value) == told_by


@pytest.mark.parametrize(
    ("options", "told_by"),
    [
        ({"method": "anchored"}, "method must be as in the state, 'calibrant', got 'anchored'"),
        ({"buckets": 20}, "buckets must be as in the state, 1, got 20"),
    ],
)
def test_the_default_has_a_name_and_sizes_of_its_own(options: dict[str, Any], told_by: str) -> None:
    stored = Options(method="calibrant", seed=1).session()
    assert open_session(Options(method="calibrant", buckets=1), stored) is stored
    with pytest.raises(StateMismatch) as caught:
        open_session(Options(**options), stored)
    assert str(caught.value) == told_by


def test_a_state_of_algorithm_1_goes_on_where_the_default_is_not_asked_for() -> None:
    stored = load(dump(Options(method="foster_hart", seed=1).session()))
    assert open_session(Options(), stored) is stored
    with pytest.raises(StateMismatch, match="method must be as in the state, 'foster_hart'"):
        open_session(Options(method="calibrant"), stored)


ELSE = "for Algorithm 1 alone choose a method such as foster_hart"


@pytest.mark.parametrize(
    ("options", "told_by"),
    [
        (
            {"epsilon": 0.1},
            "epsilon must be left out: calibrant keeps its grid, and its certificate says what it "
            f"costs; {ELSE}, got 0.1",
        ),
        (
            {"prior": 2},
            "prior must be left out: calibrant learns how far to trust the raw forecast; "
            f"{ELSE}, got 2",
        ),
        (
            {"loss": "spherical"},
            "loss must be 'squared' or 'log': under these calibrant compares its experts; "
            f"{ELSE}, got 'spherical'",
        ),
    ],
)
def test_what_only_algorithm_1_knows_is_refused_by_the_default(
    options: dict[str, Any], told_by: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        Options(**options).recalibrator(1)
    assert str(caught.value) == told_by
    Options(method="foster_hart", **options).recalibrator(1)


def test_the_default_under_the_log_loss_never_announces_0_or_1() -> None:
    assert Options(loss="log").recalibrator(1).calibrator.grid == "graded"
    assert Options(loss="log", grid="logit").recalibrator(1).calibrator.grid == "logit"
    assert Options().recalibrator(1) == Calibrant(seed=1)


def test_what_was_not_asked_for_comes_from_the_state() -> None:
    stored = Options(epsilon=0.1, method="blackwell", seed=9).session()
    assert open_session(Options(), stored) is stored
    assert open_session(Options(epsilon=0.1, method="blackwell"), stored) is stored
    assert open_session(Options(seed=9, resolution=15), stored) is stored


def test_without_a_seed_the_draws_are_a_secret_that_is_told_nowhere() -> None:
    first, second = (open_session(Options(), None) for _ in range(2))
    assert first.seed is second.seed is None
    assert first.recalibrator != second.recalibrator
    assert first.recalibrator._secret.origin == "system"
    assert len(first.recalibrator._secret) == 16


def test_pending_outcomes_cannot_change_their_clock(tmp_path: Path) -> None:
    source = write(tmp_path / "d.csv", data())
    session = run(source, time="t", available="known")
    with pytest.raises(StateMismatch) as caught:
        run(source, session=session)
    assert str(caught.value) == (
        f"{source}: outcomes that the state still expects were read with --time; continue in "
        "the same way"
    )


def test_the_next_night_may_not_begin_before_the_last_one_ended(tmp_path: Path) -> None:
    source = write(tmp_path / "d.csv", data())
    session = run(source, time="t")
    with pytest.raises(BadRow, match="row 1: t must be a time that is not before the row above"):
        run(source, time="t", session=load(dump(session)))


def test_a_night_without_rows_changes_nothing(tmp_path: Path) -> None:
    session = run(write(tmp_path / "d.csv", data()))
    before = dump(session)
    empty = tmp_path / "e.csv"
    empty.write_text("name,p,y,t,known\n")
    out = tmp_path / "o.parquet"
    assert dump(run(empty, session=session, out=out)) == before
    assert pq.read_table(out).num_rows == 0
    assert pq.read_schema(out).names[-4:] == list(ADDED)


# -------------------------------------------------------------------------- bad rows

BAD = 'p,y\n0.5,1\n1.2,1\n0.5,0,3\n"abc",0\n0.25,2\n,1\n0.75,1\n0.5\n'


def test_the_first_bad_row_stops_the_run(tmp_path: Path) -> None:
    source = tmp_path / "d.csv"
    source.write_text("p,y\n0.5,1\n1.2,1\n")
    with pytest.raises(BadRow) as caught:
        run(source)
    told = f"{source}: row 2: p must be a number in [0, 1], got '1.2'"
    assert str(caught.value) == f"{told}; --on-error skip leaves such rows out"


def test_a_row_with_too_many_fields_stops_the_run(tmp_path: Path) -> None:
    source = tmp_path / "d.csv"
    source.write_text("p,y\n0.5,1\n0.5,1,7\n0.5,1\n")
    with pytest.raises(BadRow) as caught:
        run(source)
    told = f"{source}: row 2: row must be 2 fields, got 3; --on-error skip leaves such rows out"
    assert str(caught.value) == told


@pytest.mark.parametrize("one_by_one", [False, True])
def test_bad_rows_can_be_passed_over(tmp_path: Path, one_by_one: bool) -> None:
    source = tmp_path / "d.csv"
    source.write_text(BAD)
    session = run(source, on_fault=Skip(), one_by_one=one_by_one)
    assert session.recalibrator.rounds == 2
    assert session.skipped == 6


@pytest.mark.parametrize("one_by_one", [False, True])
def test_bad_rows_can_be_set_aside_with_what_is_wrong(tmp_path: Path, one_by_one: bool) -> None:
    source = tmp_path / "d.csv"
    source.write_text(BAD)
    into = BytesIO()
    session = run(source, on_fault=Quarantine(into, "jsonl"), one_by_one=one_by_one)
    rows = sorted(map(json.loads, into.getvalue().splitlines()), key=lambda row: int(row["row"]))
    told_by = [(row["row"], row["column"], row["value"], row["rule"]) for row in rows]
    assert told_by == [
        (2, "p", "1.2", "a number in [0, 1]"),
        (3, None, None, "row must be 2 fields, got 3"),
        (4, "p", "abc", "a number in [0, 1]"),
        (5, "y", "2", "0 or 1"),
        (6, "p", "", "a number in [0, 1]"),
        (8, None, None, "row must be 2 fields, got 1"),
    ]
    assert {row["source"] for row in rows} == {str(source)}
    assert rows[0]["content"] == '{"p":"1.2","y":"1"}'
    assert rows[1]["content"] == "0.5,0,3"
    assert session.skipped == 6


@pytest.mark.parametrize(("format", "mark"), [("csv", ","), ("tsv", "\t")])
def test_a_quarantine_may_be_a_table(tmp_path: Path, format: str, mark: str) -> None:
    source = tmp_path / "d.jsonl"
    source.write_text('{"p":0.5,"y":1}\n[1]\n{"p":true,"y":1}\nnonsense\n{"p":"a,b","y":1}\n')
    into = BytesIO()
    run(source, on_fault=Quarantine(into, format))
    lines = into.getvalue().decode().splitlines()
    assert lines[0] == mark.join(["source", "row", "column", "value", "rule", "content"])
    assert lines[1].startswith(mark.join([str(source), "2", "", "", ""])[:-1])
    assert "'nonsense'" in lines[2]
    assert lines[3].startswith(f"{source}{mark}5{mark}p{mark}")
    assert len(lines) == 4


def test_a_broken_line_of_json_stops_the_run(tmp_path: Path) -> None:
    source = tmp_path / "d.jsonl"
    for content, row in (("{oops\n", 1), ('{"p":0.5,"y":1}\n{"p":NaN,"y":1}\n', 2)):
        source.write_text(content)
        with pytest.raises(BadRow, match=f"row {row}: line must be a JSON object, got '{{"):
            run(source)


def test_numbers_of_rows_are_right_across_batches(tmp_path: Path) -> None:
    for name in ("d.jsonl", "d.parquet", "d.csv"):
        columns = data()
        columns["p"][650] = 7.0
        source = write(tmp_path / name, columns)
        with pytest.raises(BadRow, match=r"row 651: p must be"):
            run(source, batch_rows=100)


# ---------------------------------------------------------------------- broken inputs


@pytest.mark.parametrize(
    ("name", "content", "told_by"),
    [
        ("d.csv", b"", "must begin with the names of its columns, got an empty file"),
        ("d.csv.gz", squeezed(b""), "must begin with the names of its columns, got an empty file"),
        ("d.jsonl", b"\n \n", "must have at least one line, got nothing"),
        ("d.csv", b"p,y\n", "must have at least one row, got none"),
        ("d.csv", b"p,y\n" + b"0.5,1\n" * 11_000 + b"0.5,\xff\n", "broken after row "),
        ("d.parquet", b"PAR1 but not really", "cannot be read: Parquet magic bytes"),
        ("d.csv.gz", squeezed(b"p,y\n" + bytes(range(48, 58)) * 9999)[:-20],
         "Compressed file ended before the end-of-stream marker was reached"),
        ("d.jsonl.gz", squeezed(b'{"p":0.5,"y":1}\n' * 99)[:-9],
         "Compressed file ended before the end-of-stream marker was reached"),
        ("d.csv.gz", b"\x1f\x8b but not really", "cannot be read: "),
        ("d.parquet.gz", squeezed(b"PAR1"), "cannot be read: Parquet file size is 4 bytes"),
        ("d.parquet.gz", squeezed(b"PAR1" * 99)[:-9],
         "cannot be read: Compressed file ended before the end-of-stream marker was reached"),
    ],
)  # fmt: skip
def test_a_broken_input_is_one_line_that_says_where(
    tmp_path: Path, name: str, content: bytes, told_by: str
) -> None:
    source = tmp_path / name
    source.write_bytes(content)
    with pytest.raises(Unreadable) as caught:
        run(source)
    assert str(caught.value).startswith(f"{source}: ")
    assert told_by in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_truncated_zst_is_found(tmp_path: Path) -> None:
    source = write(tmp_path / "d.csv.zst", data())
    source.write_bytes(source.read_bytes()[:-30])
    with pytest.raises(Unreadable, match="Truncated compressed stream"):
        run(source)


def test_a_missing_file_and_a_directory_are_told(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="cannot be read: No such file or directory"):
        run(tmp_path / "nowhere.csv")
    with pytest.raises(Unreadable, match="cannot be read: Is a directory"):
        run(tmp_path)


def test_a_device_that_is_full_is_told() -> None:
    with pytest.raises(Unwritable) as caught, open_output(Path("/dev/full"), "o.csv") as stream:
        stream.write(b"x" * (1 << 21))
    assert str(caught.value) == "o.csv: cannot be written: No space left on device"


# -------------------------------------------------------------------------- the warm-up


def test_a_short_stream_does_not_start_the_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    play = Calibrant.replay

    def note(self: Calibrant, raw: Any, outcomes: Any, **options: Any) -> Any:
        asked.append(len(raw))
        return play(self, raw, outcomes, **options)

    monkeypatch.setattr(Calibrant, "replay", note)
    monkeypatch.setattr("calibrant.stream.session.SHORT", 100)
    session = run(write(tmp_path / "d.csv", data()))
    assert asked == [100] * 7
    assert not session.long
    assert WARM_UP > ROWS


def test_a_long_stream_is_played_in_whole_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALIBRANT_COMPILE", "off")
    monkeypatch.setattr("calibrant.stream.session.SHORT", 100)
    monkeypatch.setattr("calibrant.stream.readers.LONG", 100)
    for name in ("d.csv", "d.parquet"):
        session = run(write(tmp_path / name, data()))
        assert session.long


# ------------------------------------------------------------------------- odds and ends


def test_small_row_groups_make_long_batches(tmp_path: Path) -> None:
    source = tmp_path / "d.parquet"
    pq.write_table(pa.table({"p": [0.5] * 1000, "y": [1] * 1000}), source, row_group_size=10)
    assert lengths(source, batch_rows=400) == [400, 400, 200]


def test_wide_rows_make_long_batches_unless_they_are_very_wide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "d.csv"
    source.write_text("p,y,text\n" + f"0.5,1,{'x' * 2000}\n" * 1000)
    found = lengths(source, batch_rows=400)
    assert min(found[:-1]) >= 400
    assert sum(found) == 1000
    monkeypatch.setattr("calibrant.stream.readers.ENOUGH_BYTES", 200_000)
    narrower = lengths(source, batch_rows=400)
    assert max(narrower) < 200
    assert sum(narrower) == 1000


def lengths(source: Path, batch_rows: int) -> list[int]:
    with closing(open_source(str(source))) as opened:
        reader = open_reader(opened, lambda misfit: None, batch_rows=batch_rows)
        return [len(piece) for piece in reader.pieces(None)]


def test_names_of_columns_are_quoted_where_they_have_to_be(tmp_path: Path) -> None:
    source = tmp_path / "d.csv"
    source.write_text('"a, b",p,y\n1,0.5,1\n')
    run(source, out=tmp_path / "o.csv")
    assert (tmp_path / "o.csv").read_text().startswith('"a, b",p,y,forecast,')


def test_empty_lines_are_no_rows(tmp_path: Path) -> None:
    source = tmp_path / "d.csv"
    source.write_text("p,y\n\n0.5,1\n\n")
    for one_by_one in (False, True):
        assert run(source, one_by_one=one_by_one).recalibrator.rounds == 1


def test_a_last_row_group_may_be_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("calibrant.stream.writers.GROUP_ROWS", 350)
    out = tmp_path / "o.parquet"
    run(write(tmp_path / "d.parquet", data()), out=out, batch_rows=350)
    assert pq.ParquetFile(out).metadata.num_row_groups == 2


def test_what_is_broken_before_its_format_is_known_is_told(tmp_path: Path) -> None:
    source = tmp_path / "data"
    source.write_bytes(b"\x1f\x8b but not really")
    with pytest.raises(Unreadable, match="data: cannot be read: "):
        run(source)


@pytest.mark.parametrize(
    ("name", "content"),
    [("d.csv", "p,y\n0.5,1,2\n"), ("d.jsonl", "x\n"), ("d.jsonl", '{"p":0.5,"y":1}\nx\n')],
)
def test_a_quarantine_that_cannot_be_written_is_no_broken_input(
    tmp_path: Path, name: str, content: str
) -> None:
    source = tmp_path / name
    source.write_text(content)
    with open("/dev/full", "wb", buffering=0) as stream:
        aside = Quarantine(stream, "jsonl", "bad.jsonl")
        with pytest.raises(Unwritable) as caught:
            run(source, on_fault=aside)
    assert str(caught.value) == "bad.jsonl: cannot be written: No space left on device"


def test_a_row_that_fits_no_column_is_noted_and_nothing_is_raised(tmp_path: Path) -> None:
    source = tmp_path / "d.csv"
    source.write_text("p,y\n0.5,1,2\n")
    stop = ValueError("stop")

    def refuse(misfit: Misfit) -> None:
        raise stop

    with closing(open_source(str(source))) as opened:
        reader = open_reader(opened, refuse)
        assert isinstance(reader, TextReader)
        row = pyarrow.csv.InvalidRow(2, 3, 1, "0.5,1,2")
        assert reader._note(row) == "skip"
        assert reader._failed == [stop]
        assert reader.number(0) == 2


def test_errors_of_others_pass_through_an_open_output(tmp_path: Path) -> None:
    for error in (BrokenPipeError(), Unreadable("d.csv: broken")):
        with pytest.raises(type(error)), open_output(tmp_path / "o", "o"):
            raise error


def test_log_odds_of_long_batches_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr("calibrant.stream.columns.available", lambda: True)
    monkeypatch.setattr(
        "calibrant.stream.columns.compiled", lambda kernel, name: asked.append(name) or kernel
    )
    values = np.zeros(20_001)
    assert (Scale("logit").apply(values) == 0.5).all()
    assert asked == ["odds"]


def test_an_outcome_that_comes_too_late_is_dropped_one_by_one_and_in_batches(
    tmp_path: Path,
) -> None:
    columns = data(60)
    columns["t"], columns["known"] = list(range(60)), [t + 20 for t in range(60)]
    source = write(tmp_path / "d.csv", columns)
    found = []
    for rows in (1, 60):
        session = Options(seed=11).session()
        session.recalibrator = Calibrant(seed=11, max_open=10)
        late = {"time": "t", "available": "known", "one_by_one": rows == 1}
        run(source, session=session, **late)
        found.append(session.recalibrator.to_bytes())
        assert session.recalibrator.rounds == 0
        assert session.recalibrator.certificate().expired == 50
    assert found[0] == found[1]


def test_a_kind_that_forgets_how_to_ask_makes_no_session() -> None:
    with pytest.raises(TypeError, match="abstract method"):
        Session(Recalibrator(seed=1), None, Scale("probability"), 1)
