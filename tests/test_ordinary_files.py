"""Files as people have them: each replays with one more option at most, or a line says which."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import os
import shlex
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("typer", reason="needs the extra cli")
pytest.importorskip("pyarrow", reason="needs the extra cli")

import pyarrow as pa
import pyarrow.parquet as pq

from calibrant.cli import ExitCode
from calibrant.cli.app import run
from calibrant.stream import Job, Options, Stop, Unreadable, replay
from calibrant.stream.dialect import Asked, sniff
from calibrant.stream.sheets import SheetReader
from calibrant.stream.source import open_source
from calibrant.stream.wording import Wording

ROWS = 40
SEED = ("--seed", 7)


def rounds() -> list[tuple[str, str]]:
    generator = np.random.default_rng(12)
    raw = generator.integers(1, 100, ROWS)
    happened = generator.integers(0, 100, ROWS) < raw
    return [(f"0.{p:02d}", str(int(y))) for p, y in zip(raw, happened, strict=True)]


def text(sep: str = ",", end: str = "\n", header: str = "prob,won", **words: str) -> str:
    """Return the rounds as a table; ``words`` says what a point, 1 and 0 become."""
    told = {"point": ".", "yes": "1", "no": "0", "quote": ""} | words
    lines = [sep.join(header.split(","))] if header else []
    for p, y in rounds():
        cells = p.replace(".", told["point"]), told["yes"] if y == "1" else told["no"]
        lines.append(sep.join(f"{told['quote']}{cell}{told['quote']}" for cell in cells))
    return end.join(lines) + end


def percent(form: str) -> str:
    rows = [f"{form.format(int(p[2:]))},{y}" for p, y in rounds()]
    return "\n".join(["prob,won", *rows]) + "\n"


def objects(**options: Any) -> bytes:
    return json.dumps([{"prob": float(p), "won": int(y)} for p, y in rounds()], **options).encode()


def nested() -> bytes:
    """Return the rounds as objects in objects."""
    rows = [{"model": {"prob": float(p)}, "result": {"won": int(y)}} for p, y in rounds()]
    return "\n".join(map(json.dumps, rows)).encode()


def zipped(name: str, *more: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for each in (name, *more):
            archive.writestr(each, text())
    return content.getvalue()


def parquet(**kinds: Any) -> bytes:
    columns = zip(*rounds(), strict=True)
    content = io.BytesIO()
    made = [pa.array(map(float, c), pa.float64()) for c in columns]
    pq.write_table(pa.table(made, names=["prob", "won"]), content)
    return content.getvalue()


def squeezed(compress: Callable[[bytes], bytes]) -> bytes:
    return compress(text().encode())


def zstd() -> bytes:
    content = pa.BufferOutputStream()
    with pa.CompressedOutputStream(content, "zstd") as stream:
        stream.write(text().encode())
    return bytes(content.getvalue())


COUNTED = ("--raw", "1", "--outcome", "2")
NAMED = ("--raw", "my prob", "--outcome", "won or lost")
MESSY: dict[str, tuple[bytes, tuple[str, ...]]] = {
    "semicolons.csv": (text(";").encode(), ()),
    "german.csv": (text(";", "\r\n", point=",").encode(), ()),
    "quoted.csv": (text(",", point=",", quote='"').encode(), ()),
    "bars.txt": (text("|").encode(), ()),
    "tabs.csv": (text("\t").encode(), ()),
    "spaces.txt": (text(" ").encode(), ()),
    "no-name": (text(";").encode(), ()),
    "mark.csv": (text().encode("utf-8-sig"), ()),
    "text.xlsx": (text(";").encode(), ()),
    "text.parquet": (text().encode(), ()),
    "lines-in-names.csv": (text(header='"my\nprob","won\r\nor lost"').encode(), NAMED),
    "excel.txt": (text("\t", "\r\n", point=",").encode("utf-16"), ()),
    "unmarked.csv": (text().encode("utf-16-le"), ()),
    "big-end.csv": (text().encode("utf-16-be"), ()),
    "latin.csv": (text(";").replace("\n", ";größe\n").encode("latin-1"), ()),
    "single.csv": (text(",", quote="'").encode(), ()),
    "hint.csv": (b"sep=;\r\n" + text(";", "\r\n").encode(), ()),
    "padded.csv": (text(header="prob, won").encode(), ()),
    "title.csv": (b"Churn export 2024-01-01\n" + text().encode(), ()),
    "titles.csv": (b"Churn export\r\n\r\n" + text(";", "\r\n").encode(), ()),
    "trailing.csv": (text(";").replace("\n", ";\n").replace("won;", "won", 1).encode(), ()),
    "aligned.txt": (text("   ").replace("\n", " \n ").encode(), ()),
    "returns.csv": (text(end="\r").encode(), ()),
    "returns-excel.txt": (text("\t", end="\r").encode("utf-16"), ()),
    "nested.jsonl": (nested(), ("--raw", "model.prob", "--outcome", "result.won")),
    "twice.csv": (
        text().replace("won", "prob", 1).encode(),
        ("--raw", "prob_1", "--outcome", "prob_2"),
    ),
    "hint-headless.csv": (b"sep=;\n" + text(";", header="").encode(), COUNTED),
    "headless.csv": (text(";", header="").encode(), COUNTED),
    "headless-mark.csv": (text(header="").encode("utf-8-sig"), COUNTED),
    "games.csv.gz": (squeezed(gzip.compress), ()),
    "games.csv.bz2": (squeezed(bz2.compress), ()),
    "games.csv.xz": (squeezed(lzma.compress), ()),
    "games.csv.zst": (zstd(), ()),
    "games.zip": (zipped("games.csv"), ()),
    "mac.zip": (zipped("games.csv", "__MACOSX/._games.csv"), ()),
    "list.json": (objects(), ()),
    "pretty.json": (objects(indent=2), ()),
    "list": (objects(), ()),
    "lines.json": (objects().strip(b"[]").replace(b"}, ", b"}\n"), ()),
    "list.json.gz": (gzip.compress(objects()), ()),
    "games.parquet": (parquet(), ()),
    "yes.csv": (text(yes="yes", no="no").encode(), ()),
    "Yes.csv": (text(yes="Yes", no="No").encode(), ()),
    "letters.csv": (text(yes="T", no="F").encode(), ()),
    "truth.csv": (text(yes="TRUE", no="FALSE").encode(), ()),
    "words.csv": (text(yes="won", no="lost").encode(), ("--positive", "won")),
    "anything.csv": (text(yes="blue", no="green").encode(), ("--positive", "blue")),
    "minus.csv": (text(yes="1", no="-1").encode(), ("--positive", "1")),
    "two.csv": (text(yes="2", no="1").encode(), ("--positive", "2")),
    "signs.csv": (percent("{}%").encode(), ("--percent",)),
    "spaced.csv": (percent("{} %").encode(), ("--percent",)),
    "hundred.csv": (percent("{}").encode(), ("--percent",)),
}


def ran(*words: Any) -> int:
    return run([str(word) for word in words])


def means(place: Path, *words: Any) -> list[float]:
    """Return what was made of a file, as a table that every format can become."""
    out = place.with_name("out.jsonl")
    assert ran("replay", place, *SEED, *words, "--out", out, "--force") == 0
    return [json.loads(line)["mean"] for line in out.read_text().splitlines()]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> list[float]:
    place = tmp_path_factory.mktemp("plain") / "games.csv"
    place.write_text(text())
    return means(place)


@pytest.mark.parametrize("name", MESSY)
def test_a_messy_file_gives_what_a_plain_one_gives(
    name: str, plain: list[float], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place, (content, words) = tmp_path / name, MESSY[name]
    place.write_bytes(content)
    assert means(place, *words) == plain
    if not words:
        return
    capsys.readouterr()
    assert ran("replay", place, *SEED) in (ExitCode.INPUT, ExitCode.ROW)
    assert shlex.join(words) in capsys.readouterr().err.splitlines()[-1]


def test_a_separator_that_nobody_can_type_is_written_out(
    tmp_path: Path, plain: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "hive.txt"
    place.write_text(text("\x01"))
    assert ran("replay", place) == ExitCode.INPUT
    told = capsys.readouterr().err
    assert r"got one column, prob\x01won; is another character between fields? say --sep" in told
    assert means(place, "--sep", r"\x01") == plain


def test_log_odds_are_proposed_and_never_assumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "odds.csv"
    place.write_text("score,won\n-2.3,0\n1.5,1\n")
    assert ran("replay", place) == ExitCode.ROW
    assert capsys.readouterr().err.endswith("got '-2.3'; try --logit\n")
    assert ran("replay", place, "--logit") == 0


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("german.csv", "semicolons between fields, a decimal comma (else: --sep, --decimal)"),
        ("latin.csv", "semicolons between fields, encoding latin-1 (else: --sep, --encoding)"),
        ("excel.txt", "read with a decimal comma, encoding utf-16 (else: --decimal, --encoding)"),
        ("headless.csv", "no names of columns, which are called 1, 2, ... (else: --sep, --header)"),
        ("title.csv", "read with 1 line above the names of columns left out (else: --header)"),
        ("yes.csv", "won: 'yes' is 1, 'no' is 0"),
    ],
)  # fmt: skip
def test_every_guess_is_told_in_a_line(
    name: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content, words = MESSY[name]
    (tmp_path / name).write_bytes(content)
    assert ran("replay", tmp_path / name, *words) == 0
    assert told in capsys.readouterr().err


def test_guesses_are_overruled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "d.csv"
    place.write_bytes("prob;won;€\n0,5;1;\n0,25;0;\n".encode("cp1252"))
    words = ("--sep", "semicolon", "--decimal", ",", "--encoding", "cp1252", "--header")
    out = tmp_path / "o.jsonl"
    assert ran("replay", place, *words, "--out", out) == 0
    assert "read with" not in capsys.readouterr().err
    assert "€" in json.loads(out.read_text().splitlines()[0])
    assert ran("replay", place, "--sep", ",") == ExitCode.INPUT
    assert ran("replay", place, "--decimal", ".") == ExitCode.ROW
    assert capsys.readouterr().err.endswith("got '0,5'; try --decimal ,\n")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--sep", "ab"], "--sep must be one character, got 'ab'"),
        (["--decimal", "x"], "--decimal must be one of '.', ',', got 'x'"),
        (["--sep", ",", "--decimal", ","], "--sep and --decimal must be two characters, got ','"),
        (["--time-format", "%d.%m.%Y"], "--time-format needs --time"),
        (["--encoding", "klingon"], "--encoding must be one that Python knows, such as latin-1"),
    ],
)
def test_what_cannot_be_said_of_a_file_is_told(
    words: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran("replay", tmp_path / "d.csv", *words) == ExitCode.USAGE
    assert told in capsys.readouterr().err


def test_the_command_of_a_summary_reads_a_messy_file_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "d.dat"
    place.write_text("a^b\n50,5%^x\n20%^z\n")
    words = ["--raw", "a", "--outcome", "b", "--percent", "--positive", "x", "--sep", "^"]
    assert ran("replay", place, *SEED, *words, "--header", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    again = shlex.split(told["timing"]["run"]["command"])
    assert run([*again[1:], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["raw"] == told["raw"]


def test_names_of_columns_are_stripped(tmp_path: Path, plain: list[float]) -> None:
    place = tmp_path / "padded.csv"
    place.write_text(text(header="prob, won"))
    assert means(place, "--raw", "prob", "--outcome", "won") == plain
    assert set(json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])) >= {"prob", "won"}


def test_a_zip_file_has_one_file_in_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "d.zip"
    place.write_bytes(zipped("a.csv", "b.csv"))
    assert ran("replay", place) == ExitCode.INPUT
    assert "must have one file in it, got 2: a.csv, b.csv; unpack it" in capsys.readouterr().err
    place.write_bytes(b"PK\x05\x06" + bytes(18))
    assert ran("replay", place) == ExitCode.INPUT
    assert "d.zip: must have one file in it, got 0\n" in capsys.readouterr().err
    place.write_bytes(zipped("a.csv")[:-30])
    assert ran("replay", place) == ExitCode.INPUT
    assert "d.zip: cannot be read: File is not a zip file" in capsys.readouterr().err


@pytest.mark.parametrize("content", [zipped("games.csv"), parquet(), text(";").encode("utf-16")])
def test_messy_files_come_through_pipes(
    content: bytes, tmp_path: Path, plain: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "o.jsonl"
    with piped(monkeypatch, content):
        assert ran("replay", "-", *SEED, "--out", out) == 0
    assert [json.loads(line)["mean"] for line in out.read_text().splitlines()] == plain
    with piped(monkeypatch, zipped("games.csv")[:-30]):
        assert ran("replay", "-") == ExitCode.INPUT


@contextmanager
def piped(monkeypatch: pytest.MonkeyPatch, content: bytes) -> Iterator[None]:
    """Let standard input be a pipe with some content, short enough to fit."""
    read, write = os.pipe()
    os.write(write, content)
    os.close(write)
    with open(read) as stream, monkeypatch.context() as patch:
        patch.setattr("sys.stdin", stream)
        yield


@pytest.mark.parametrize("name", ["o.zip", "o.xlsx"])
def test_what_is_read_and_not_written_is_told(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "d.csv"
    place.write_text(text())
    assert ran("replay", place, "--out", tmp_path / name) == ExitCode.OUTPUT
    assert "zip and Excel files are read, not written" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["o.csv.bz2", "o.csv.xz", "o.json", "o.json.gz"])
def test_rows_can_be_written_and_read_again(name: str, tmp_path: Path, plain: list[float]) -> None:
    place, out = tmp_path / "d.csv", tmp_path / name
    place.write_text(text())
    assert ran("replay", place, *SEED, "--out", out) == 0
    means(out, "--prefix", "new_")
    with closing(open_source(str(out))) as source:
        assert source.format in ("csv", "json")
    again = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [float(row["mean"]) for row in again] == plain


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'[{"prob": 0.5, "won": 1}, {"prob"', "a list of JSON must end in ']', got ', {\"pr"),
        (b"[]", "must have at least one line, got nothing"),
    ],
)
def test_a_broken_list_is_one_line(content: bytes, told: str, tmp_path: Path) -> None:
    place = tmp_path / "d.json"
    place.write_bytes(content)
    with pytest.raises(Unreadable) as caught:
        replay(Job((str(place),)), Options(seed=1).session(), Stop())
    assert told in str(caught.value)


def test_a_list_is_read_across_pieces_and_what_is_no_object_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain: list[float]
) -> None:
    monkeypatch.setattr("calibrant.stream.objects.CHUNK", 7)
    place = tmp_path / "d.json"
    place.write_bytes(objects().replace(b"[", b"[12345678901, ", 1))
    assert means(place, "--on-error", "skip") == plain
    monkeypatch.setattr("calibrant.stream.objects.LONGEST_LINE", 40)
    place.write_bytes(b'[{"prob": 0.5, "won": 1, "text": "' + b"x" * 99 + b'"}]')
    assert ran("replay", place) == ExitCode.INPUT


def test_an_excel_file_is_read(tmp_path: Path, plain: list[float]) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="needs the extra excel")
    book = openpyxl.Workbook()
    book.active.append(["prob", "won", None])
    for p, y in rounds():
        book.active.append([float(p), y == "1"])
    book.active.append([None, None])
    place = tmp_path / "games.xlsx"
    book.save(place)
    assert means(place) == plain
    place.rename(tmp_path / "games.bin")
    assert means(tmp_path / "games.bin") == plain
    assert ran("replay", tmp_path / "games.bin", "--flush", "--out", "-") == ExitCode.INPUT
    openpyxl.Workbook().save(place)
    assert ran("replay", place) == ExitCode.INPUT


def workbook(place: Path, *rows: list[Any]) -> Path:
    openpyxl = pytest.importorskip("openpyxl", reason="needs the extra excel")
    book = openpyxl.Workbook()
    for row in [*rows, *([float(p), int(y)] for p, y in rounds())]:
        book.active.append(row)
    book.save(place)
    return place


def test_titles_above_an_excel_table_are_left_out(
    tmp_path: Path, plain: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    titles: list[list[Any]] = [["Churn 2024"], [], ["by", None], ["prob", "won"]]
    place = workbook(tmp_path / "titled.xlsx", *titles)
    assert means(place) == plain
    told = "read with 2 lines above the names of columns left out (else: --header)"
    assert told in capsys.readouterr().err
    assert ran("replay", place, "--header") == ExitCode.INPUT
    assert "got one column, Churn 2024" in capsys.readouterr().err


def test_an_excel_table_may_have_no_names(tmp_path: Path, plain: list[float]) -> None:
    assert means(workbook(tmp_path / "bare.xlsx"), "--no-header", *COUNTED) == plain


def test_nested_fields_can_be_written_as_a_table(tmp_path: Path) -> None:
    place, out = tmp_path / "d.jsonl", tmp_path / "o.parquet"
    place.write_bytes(nested())
    words = ("--raw", "model.prob", "--outcome", "result.won", "--out", out)
    assert ran("replay", place, *words) == 0
    assert pq.read_table(out).column("model")[0].as_py() == json.dumps(
        {"prob": float(rounds()[0][0])}, separators=(",", ":")
    )


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        (
            "d.json",
            b'{"rows": [{"prob": 0.5, "won": 1}]}',
            "must be objects, one a line or in one list, got one object with the list 'rows'; "
            "jq -c '.rows[]' takes it out",
        ),
        (
            "d.json",
            b'{"prob": [0.5, 0.25], "won": [1, 0]}',
            "got one object of columns; write an object for each row",
        ),
        ("d.csv", bytes(range(256)) * 9, "or .xlsx, got bytes that are no text"),
        (
            "d.xls",
            b"\xd0\xcf\x11\xe0" + bytes(range(256)) * 9,
            "got an Excel file of before 2007, or with a password; save it as .xlsx",
        ),
        ("d.csv", b"prob\n0.5\n", "got one column, prob; is another character between fields?"),
        ("d.txt", b"prob ~ won\n0.5 ~ 1\n", "got one column, prob ~ won"),
    ],
)
def test_what_is_no_table_yet_is_told_with_a_way_out(
    name: str, content: bytes, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_bytes(content)
    assert ran("replay", tmp_path / name, "--sep", ",") == ExitCode.INPUT
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1


def test_percents_and_probabilities_in_one_column_are_not_guessed_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "d.csv"
    place.write_text("prob,won\n6.6%,0\n0.95,1\n")
    assert ran("replay", place) == ExitCode.ROW
    assert "percents or probabilities alone, not both in one column" in capsys.readouterr().err
    assert ran("replay", place, "--percent") == ExitCode.INPUT
    told = "prob must be all percents or all probabilities, got '6.6%' and '0.95'"
    assert told in capsys.readouterr().err
    place.write_text("prob,won\n6.6%,0\n95,1\n0%,0\n0,1\n")
    assert ran("replay", place, "--percent") == 0


@pytest.mark.parametrize("values", [("66", "957"), ("66‰", "957‰")])
def test_numbers_beyond_a_hundred_are_not_called_percents(
    values: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "d.csv"
    place.write_text("prob,won\n{},0\n{},1\n".format(*values))
    assert ran("replay", place) == ExitCode.ROW
    told = capsys.readouterr().err
    assert "try dividing them by the largest possible value, or --score for numbers of any" in told


def test_a_long_value_is_cut_in_messages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "d.csv"
    place.write_text("prob,won\n" + "x" * 5000 + ",0\n")
    assert ran("replay", place) == ExitCode.ROW
    assert len(capsys.readouterr().err) < 400


def test_an_excel_file_without_its_extra_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "d.xlsx"
    place.write_bytes(zipped("xl/workbook.xml"))
    monkeypatch.setattr("calibrant.stream.sheets.find_spec", lambda name: None)
    assert ran("replay", place) == ExitCode.MISSING_EXTRA
    told = "Excel files need openpyxl, not installed here"
    assert f'{told}: pip install ".[excel]" in a clone of calibrant' in capsys.readouterr().err
    assert SheetReader.text


def test_bytes_that_are_no_utf8_far_into_a_file_propose_an_encoding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "d.csv"
    place.write_bytes(b"p,y\n" + b"0.5,1\n" * 20_000 + b"0.5,\xff\n")
    assert ran("replay", place) == ExitCode.INPUT
    assert capsys.readouterr().err.endswith("another encoding? --encoding latin-1\n")
    place.write_bytes(b"\xff,y\n0.5,1\n")
    assert ran("replay", place, "--encoding", "utf-8") == ExitCode.INPUT
    assert "cannot be read: 'utf-8' codec can't decode" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "sep", "decimal", "header"),
    [
        ("p;y;note\n0.5;1;a, b, c\n0.5;0;d, e, f\n", ";", ".", True),
        ('p,y,"a;b"\n0.5,1,x;y\n', ",", ".", True),
        ("name text,p\nnot a word,0.5\n", ",", ".", True),
        ("n;y\n1,234;1\n2,345;0\n", ";", ".", True),
        ("p\n0.5\n", ",", ".", True),
        ("0,1,2,kind\n0.5,0.25,0.25,1\n", ",", ".", True),
        ("ann,0.5,1\nbob,0.25,0\n", ",", ".", False),
        (",who,how\n0,ann,well\n", ",", ".", True),
        ("two words\none\n", ",", ".", True),
        ("2024-01-31;0,5;yes\n2024-02-01;0,75;no\n", ";", ",", False),
        ("", ",", ".", True),
    ],
)
def test_a_dialect_is_what_most_rows_agree_with(
    content: str, sep: str, decimal: str, header: bool
) -> None:
    found = sniff(content.encode(), Asked())
    assert (found.sep, found.decimal, found.header) == (sep, decimal, header)


def test_a_name_that_is_asked_for_makes_a_header() -> None:
    content = b"0,1,kind\n0.5,0.5,cat\n"
    assert not sniff(content, Asked()).header
    assert sniff(content, Asked(), ["0", "1"]).header


# ----------------------------------------------------------------------------- times


def timed(tmp_path: Path, *when: str) -> Path:
    place = tmp_path / "timed.csv"
    rows = [f'"{time}",0.5,{k % 2}' for k, time in enumerate(when)]
    place.write_text("\n".join(["day,prob,won", *rows]) + "\n")
    return place


@pytest.mark.parametrize(
    "when",
    [
        ("31.12.2023", "1.1.2024"),
        ("12/31/2023", "01/01/2024"),
        ("31/12/2023 23:59", "01/01/2024 00:00"),
        ("Dec 31, 2023", "Jan 1, 2024"),
        ("31 December 2023", "1 January 2024"),
        ("Sun, 31 Dec 2023 10:00:00 +0000", "Sun, 31 Dec 2023 10:00:00 -0100"),
        ("12/31/2023 11:59 PM", "01/01/2024 12:00 AM"),
        ("1704067199", "1704067200"),
        ("2023-12-31", "2024-01-01"),
        ("2023-12-31T23:00:00+01:00", "2023-12-31T22:30:00Z"),
    ],
)
def test_times_are_read_in_any_common_form(when: tuple[str, str], tmp_path: Path) -> None:
    assert ran("replay", timed(tmp_path, *when), "--time", "day") == 0
    # Read rightly, the other way round goes back in time.
    assert ran("replay", timed(tmp_path, *when[::-1]), "--time", "day") == ExitCode.ROW


def test_day_and_month_that_may_be_either_are_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = timed(tmp_path, "03/04/2024", "02/05/2024")
    assert ran("replay", place, "--time", "day") == ExitCode.INPUT
    told = capsys.readouterr().err
    assert "day may have the day or the month first, e.g. '03/04/2024'; say " in told
    assert "--time-format %d/%m/%Y or --time-format %m/%d/%Y" in told
    assert ran("replay", timed(tmp_path, "03/03/2024", "02/05/2024"), "--time", "day") != 0
    assert "day or the month first, e.g. '02/05/2024'; say " in capsys.readouterr().err
    place = timed(tmp_path, "03/04/2024", "02/05/2024")
    assert ran("replay", place, "--time", "day", "--time-format", "%d/%m/%Y") == 0
    assert ran("replay", place, "--time", "day", "--time-format", "%m/%d/%Y") == ExitCode.ROW
    assert "not before the row above" in capsys.readouterr().err


def test_days_written_as_numbers_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = timed(tmp_path, "20231231", "20240101")
    assert ran("replay", place, "--time", "day") == 0
    told = "day read as plain numbers, e.g. 20231231; if they are days: --time-format %Y%m%d"
    assert told in capsys.readouterr().err
    assert ran("replay", place, "--time", "day", "--time-format", "%Y%m%d") == 0
    assert "plain numbers" not in capsys.readouterr().err
    assert ran("replay", timed(tmp_path, "17040671", "17040672"), "--time", "day") == 0
    assert "plain numbers" not in capsys.readouterr().err


@pytest.mark.parametrize("word", ["NA", "n/a", "NULL", "None", "?", "-"])
def test_a_word_for_an_unknown_outcome_comes_with_a_way_out(
    word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "d.csv"
    place.write_text(f"prob,won\n0.5,1\n0.5,{word}\n0.25,0\n")
    assert ran("replay", place) == ExitCode.ROW
    told = f"got {word!r}; try --on-error skip, or empty cells for what is unknown\n"
    assert capsys.readouterr().err.endswith(told)
    assert ran("replay", place, "--on-error", "skip") == 0


def test_a_wrong_form_of_times_is_called_that(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = timed(tmp_path, "2024-01-01", "soon")
    assert ran("replay", place, "--time", "day", "--time-format", "%d.%m.%Y") == ExitCode.ROW
    assert "day must be a time in the form '%d.%m.%Y', got '2024-01-01'" in capsys.readouterr().err
    assert ran("replay", place, "--time", "day") == ExitCode.ROW
    told = "day must be a time (a number, ISO 8601, or as --time-format says), got 'soon'"
    assert told in capsys.readouterr().err
    late = timed(tmp_path, *["2024-01-01"] * 300, "31.12.2024")
    assert ran("replay", late, "--time", "day") == ExitCode.ROW
    assert capsys.readouterr().err.endswith("got '31.12.2024'; try --time-format %d.%m.%Y\n")


# ------------------------------------------------------------------ rows that are refused


def test_skipped_rows_end_in_reasons_and_examples(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "d.csv"
    place.write_text("prob,won\n0.5,1\n7,0\n0.5,maybe\n0.5,perhaps\n0.25,0\n1,2,3\n")
    assert ran("replay", place, "--on-error", "skip") == 0
    assert capsys.readouterr().err.splitlines()[-4:] == [
        "calibrant: 4 of 6 rows refused:",
        "calibrant:   2 x won must be 0 or 1, e.g. 'maybe'",
        "calibrant:   1 x row must be 2 fields, got 3",
        "calibrant:   1 x prob must be a number in [0, 1], e.g. '7'",
    ]


def test_a_file_of_nothing_but_bad_rows_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "d.csv"
    place.write_text("prob,churned\n" + "0.5,left\n0.5,stayed\n0.5,stayed\n" * 400)
    words = ("--outcome", "churned", "--on-error", "skip")
    assert ran("replay", place, *words) == ExitCode.INPUT
    told = "1,200 of 1,200 rows refused: churned must be 0 or 1, e.g. 'left'; try --positive left"
    assert capsys.readouterr().err.endswith(f"{told}\n")


def test_a_third_value_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "d.csv"
    place.write_text("prob,won\n0.5,A\n0.5,B\n0.5,a\n0.5,C\n")
    assert ran("replay", place, "--positive", "A") == ExitCode.ROW
    told = "row 4: won must be 'A' or 'B', got 'C'; --on-error skip leaves such rows out\n"
    assert capsys.readouterr().err.endswith(told)


def test_reasons_beyond_many_are_counted_together(tmp_path: Path) -> None:
    from calibrant.stream.faults import MOST_REASONS, Fault, Skip

    skip = Skip()
    for k in range(MOST_REASONS + 5):
        skip.take(Fault("a", k, None, None, f"rule {k}", "", ""))
    assert len(skip.told(0)) == MOST_REASONS + 2
    assert skip.told(0)[1].startswith("  5 x other reasons")


def test_directories_stay_clean(tmp_path: Path, plain: list[float]) -> None:
    (tmp_path / "d.csv").write_text(text())
    assert means(tmp_path / "d.csv") == plain
    assert sorted(os.listdir(tmp_path)) == ["d.csv", "out.jsonl"]
    with (tmp_path / "out.jsonl").open() as file:
        assert len(list(csv.reader(file))) == ROWS


# ------------------------------------------------------------- options that would mislead


def refused(capsys: pytest.CaptureFixture[str], *words: Any) -> str:
    """Return what is told where a command ends with an error."""
    assert ran(*words) in (ExitCode.INPUT, ExitCode.ROW, ExitCode.STATE)
    return capsys.readouterr().err.splitlines()[-1]


def written(place: Path, content: str) -> Path:
    place.write_text(content)
    return place


@pytest.mark.parametrize("rows", [1, 100])
def test_a_stray_value_among_probabilities_is_not_called_a_percent(
    rows: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = "prob,won\n" + "0.2,0\n0.7,1\n0.4,0\n0.9,1\n" * rows
    for stray in ("83", "-3", "0,83"):
        told = refused(capsys, "replay", written(tmp_path / "d.csv", f'{head}"{stray}",1\n'))
        assert told.endswith(f"got {stray!r}; --on-error skip leaves such rows out")


def test_probabilities_are_not_read_as_percents(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = "prob,won\n0.2,0\n0.7,1\n0.4,0\n0.9,1\n"
    place = written(tmp_path / "d.csv", head)
    told = refused(capsys, "replay", place, "--percent")
    assert "prob must be percents, got numbers of at most 1, e.g. '0.2'; leave --percent" in told
    assert ran("replay", written(tmp_path / "e.csv", head + "83,1\n"), "--percent") == 0
    told = "prob: 4 of the first 5 values are at most 1 and read as less than 1 %, e.g. '0.2'"
    assert told in capsys.readouterr().err
    state = tmp_path / "d.state"
    assert ran("replay", tmp_path / "e.csv", "--percent", "--state", state) == 0
    assert ran("replay", place, "--percent", "--state", state) == 0


@pytest.mark.parametrize(
    ("words", "way"),
    [
        (("no", "yes"), "won has two values, yes and no: try --raw p --outcome won --positive yes"),
        (("0", "1"), "try --raw p --outcome won"),
        (("red", "green", "blue"), "--proba p,COL,... with a column for each class"),
    ],
)
def test_one_column_of_numbers_is_no_column_of_lists(
    words: tuple[str, ...], way: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"{p},{words[k % len(words)]}" for k, (p, _) in enumerate(rounds())]
    place = written(tmp_path / "d.csv", "\n".join(["p,won", *rows]) + "\n")
    told = refused(capsys, "replay", place, "--proba", "p", "--outcome", "won")
    assert (
        f"p must hold a list of probabilities in each row, got numbers, e.g. {rounds()[0][0]!r}"
        in told
    )
    assert told.endswith(f"; {way}")


@pytest.mark.parametrize("names", [",prob,won", '"",prob,won'])
def test_a_column_without_a_name_is_no_column_of_lists(
    names: str, tmp_path: Path, plain: list[float]
) -> None:
    rows = [f"{k},{p},{y}" for k, (p, y) in enumerate(rounds())]
    assert means(written(tmp_path / "d.csv", "\n".join([names, *rows]) + "\n")) == plain


@pytest.mark.parametrize("form", ["{}/20", "{}0-{}9%", "${}.00", "{} Prozent", "about {}"])
def test_where_no_value_is_a_number_nobody_is_told_to_leave_such_rows_out(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"{form.format(k % 9, k % 9)},{k % 2}" for k in range(ROWS)]
    place = written(tmp_path / "d.csv", "\n".join(["p,won", *rows]) + "\n")
    told = refused(capsys, "replay", place)
    way = "try writing these as numbers, or --raw with the name of another column"
    assert told.endswith(f"got {form.format(0, 0)!r}; {way}")


def test_decimal_odds_are_not_offered_as_percents(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"{1 / float(p):.2f},{y}" for p, y in rounds()]
    place = written(tmp_path / "d.csv", "\n".join(["odds,won", *rows]) + "\n")
    told = refused(capsys, "replay", place)
    assert "--percent" not in told
    assert told.endswith("odds looks like decimal odds, whose probabilities are 1 divided by them")


@pytest.mark.parametrize(
    ("decimal", "given", "read"),
    [
        (",", ["1.313", "1.250,5", "980", "-12.345.678"], [1313, 1250.5, 980, -12345678]),
        (",", ["0.25", "0.250", "1.25", "1.2345", "1,313.5"], [np.nan] * 5),
        (".", ["1,313", "1,313.5", "1.313"], [np.nan, np.nan, 1.313]),
    ],
)  # fmt: skip
def test_thousands_are_not_decimals(decimal: str, given: list[str], read: list[float]) -> None:
    words = Wording(decimal=decimal)
    for column in (given, pa.array(given)):
        np.testing.assert_array_equal(words.numbers(column).values, read)
    gap = words.numbers(pa.array(["0,5", "1.313", None]))
    np.testing.assert_array_equal(gap.missing, [False, False, True])


def test_a_point_where_commas_stand_before_decimals_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "1213;100,5;1.313\n1400;90,2;1.250\n1300;95,0;980\n"
    place = written(tmp_path / "d.csv", "mean;sd;y\n" + rows)
    words = ("replay", place, "--normal", "mean,sd", "--outcome", "y")
    assert ran(*words, "--out", tmp_path / "o.parquet") == 0
    assert pq.read_table(tmp_path / "o.parquet").column("y").to_pylist() == [1313, 1250, 980]
    written(place, "mean;sd;y\n" + rows.replace("1.250", "1.25"))
    assert "got '1.25'" in refused(capsys, *words)
    written(place, "prob;won;a;b\n0.25;1;2,5;3,5\n0.5;0;1,5;2,5\n")
    assert refused(capsys, "replay", place).endswith("got '0.25'; try --decimal .")
    assert ran("replay", place, "--decimal", ".") == 0


def test_a_decimal_comma_is_read_in_every_format(
    tmp_path: Path, plain: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"prob": p.replace(".", ","), "won": int(y)} for p, y in rounds()]
    places = [tmp_path / f"d.{end}" for end in ("jsonl", "json", "parquet", "xlsx")]
    places[0].write_text("\n".join(map(json.dumps, rows)))
    places[1].write_text(json.dumps(rows))
    pq.write_table(pa.Table.from_pylist(rows), places[2])
    openpyxl = pytest.importorskip("openpyxl", reason="needs the extra excel")
    book = openpyxl.Workbook()
    for row in (["prob", "won"], *([row["prob"], row["won"]] for row in rows)):
        book.active.append(row)
    book.active["A2"] = float(rounds()[0][0])
    book.save(places[3])
    for place in places:
        assert refused(capsys, "replay", place).endswith("; try --decimal ,")
        assert means(place, "--decimal", ",") == plain


# ----------------------------------------------------------------- objects and their names


def test_columns_are_those_of_all_first_objects(
    tmp_path: Path, plain: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"prob": float(p), "won": int(y)} for p, y in rounds()]
    first: list[dict[str, Any]] = [{"prob": 0.2}, {"id": 7, "prob": 0.2}]
    place = tmp_path / "d.jsonl"
    lines = "\n".join(map(json.dumps, [*first, *rows]))
    assert len(means(written(place, lines))) == ROWS + 2
    assert len(means(written(tmp_path / "d.json", json.dumps([*first, *rows])))) == ROWS + 2
    assert ran("replay", place, "--out", tmp_path / "o.csv") == 0
    assert (tmp_path / "o.csv").read_text().startswith("prob,id,won,")
    with piped(monkeypatch, lines.encode()):
        assert ran("replay", "-", "--outcome", "won") == 0
    late = "\n".join(map(json.dumps, [*first[:1] * 300, *rows]))
    assert ran("replay", written(place, late), "--outcome", "won") == 0


def test_separators_are_proposed_for_text_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = written(tmp_path / "d.jsonl", '{"prob": 0.5}\n')
    assert refused(capsys, "replay", place).endswith("got one column, prob")
    place = written(tmp_path / "d.csv", "prob\n0.5\n")
    assert "say --sep" in refused(capsys, "replay", place)


# ------------------------------------------------------------------ refusals and what helps


@pytest.mark.parametrize("by", [(), ("--by", "won")])
def test_a_file_is_not_learned_twice_in_one_run(
    by: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place, copy = written(tmp_path / "d.csv", text()), written(tmp_path / "e.csv", text())
    words = ("replay", place, copy, "--state", tmp_path / "z.state", *by)
    told = refused(capsys, *words)
    assert told.endswith(f"e.csv: has the same content as {place}; --again learns it again")
    assert not (tmp_path / "z.state").exists()
    assert ran(*words, "--again") == 0
    assert ran("replay", place, copy, *by) == 0


def test_reasons_are_told_apart_and_skip_is_not_proposed_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = written(tmp_path / "d.csv", "prob,won\n0.5,perhaps\n0.5,maybe\n,1\n")
    told = refused(capsys, "replay", place, "--on-error", "skip")
    assert ": 2 x won must be 0 or 1, e.g. 'perhaps'; 1 x prob must be" in told
    assert told.endswith("e.g. an empty cell")
    written(place, "prob,won\n0.5,1\n0.5,NA\n0.25,0\n")
    assert ran("replay", place, "--on-error", "skip") == 0
    told = "1 of 3 rows refused: won must be 0 or 1, e.g. 'NA'\n"
    assert told in capsys.readouterr().err


# -------------------------------------------------------------------- lines above a table


@pytest.mark.parametrize(
    ("above", "words"),
    [
        ("Report;\n;\n", ()),
        ("Report;\n;\n;\nby ann;\n", ()),
        ("# made by a model\n", ()),
        ("# made by a model; version 7\n#\n# 3.5\n", ()),
        ("Report;2024\nregion;north\n", ()),
        ("week;7\n", ("--raw", "prob", "--outcome", "won")),
    ],
)
def test_lines_above_the_names_are_left_out(
    above: str, words: tuple[str, ...], tmp_path: Path, plain: list[float]
) -> None:
    place = written(tmp_path / "d.csv", above + text(";", point=","))
    assert means(place, *words) == plain


def test_a_mark_of_comments_may_begin_the_names(tmp_path: Path, plain: list[float]) -> None:
    place = written(tmp_path / "d.csv", text(header="#prob,won"))
    assert means(place, "--raw", "#prob") == plain
    written(place, "# made by a model, version 7, in 2024\n" + text(header=""))
    assert means(place, *COUNTED) == plain


def test_words_in_rows_are_no_names(tmp_path: Path) -> None:
    found = sniff(b"said,is,note,end\n0.5,1,score,won\n0.25,0,score,won\n", Asked())
    assert (found.header, found.titles) == (True, 0)


def test_other_words_above_the_names_of_an_excel_table_are_left_out(
    tmp_path: Path, plain: list[float]
) -> None:
    place = workbook(tmp_path / "d.xlsx", ["from", "the model"], ["prob", "won"])
    assert means(place) == plain
    place = workbook(tmp_path / "e.xlsx", ["from", "the model"], ["said", "is"])
    assert means(place, "--raw", "said", "--outcome", "is") == plain


def test_another_sheet_is_named_where_the_first_one_has_no_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="needs the extra excel")
    for cells in ([], ["Cover"]):
        book = openpyxl.Workbook()
        book.active.title = "Start"
        book.active.append(cells)
        book.create_sheet("Data").append(["prob", "won"])
        book.save(tmp_path / "d.xlsx")
        told = refused(capsys, "replay", tmp_path / "d.xlsx")
        assert "the first sheet must be the table, got 'Start' without one" in told
        assert told.endswith("; move another one to the front: Data")


def test_formulas_without_values_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="needs the extra excel")
    book = openpyxl.Workbook()
    for row in (["prob", "won", "note"], ["=1/2", 1, None], ["=1/4", 0, None]):
        book.active.append(row)
    book.save(tmp_path / "d.xlsx")
    assert ran("replay", tmp_path / "d.xlsx") == ExitCode.ROW
    told = "prob has formulas without stored values; save the file in a spreadsheet program first"
    said = capsys.readouterr().err
    assert told in said
    assert "note has formulas" not in said


# ------------------------------------------------------------ outcomes, times and objects


def test_three_outcomes_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = written(tmp_path / "d.csv", "prob,won\n" + "0.5,draw\n0.2,loss\n0.7,win\n" * 9)
    told = refused(capsys, "replay", place)
    way = "--positive win --on-error skip, which leaves out draw (won has three values: "
    assert told.endswith(f"got 'draw'; try {way}draw, loss, win)")
    assert ran("replay", place, "--positive", "win", "--on-error", "skip") == 0
    assert "9 of 27 rows refused: won must be 'win' or 'loss', e.g. 'draw'" in (
        capsys.readouterr().err
    )
    told = refused(capsys, "replay", place, "--on-error", "skip")
    assert told.endswith("e.g. 'draw'; try --positive win")
    written(place, "prob,won\n" + "0.5,ja\n0.2,nein\n" * 9 + "0.3,Summe\n")
    assert "try --positive ja --on-error skip, which leaves out Summe" in refused(
        capsys, "replay", place
    )
    written(place, "prob,won\n" + "0.5,b\n0.2,a\n0.2,a\n" * 9 + "0.3,NA\n")
    assert "try --positive b --on-error skip, which leaves out NA" in refused(
        capsys, "replay", place
    )


def test_a_form_of_times_that_does_not_fit_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = timed(tmp_path, "31.12.2023", "1.1.2024")
    words = ("replay", place, "--time", "day", "--time-format", "%d/%m/%Y")
    told = "in the form '%d/%m/%Y', got '31.12.2023'; try --time-format %d.%m.%Y"
    assert refused(capsys, *words).endswith(told)
    timed(tmp_path, "2023-12-31", "2024-01-01")
    assert refused(capsys, *words).endswith("; try leaving --time-format out")
    timed(tmp_path, "03/04/2024", "04/04/2024")
    told = refused(capsys, *words[:-1], "%Y")
    assert told.endswith("; try --time-format %d/%m/%Y or --time-format %m/%d/%Y")
    timed(tmp_path, "31/12/2023", "soon")
    assert refused(capsys, *words).endswith("got 'soon'; --on-error skip leaves such rows out")


@pytest.mark.parametrize("zone", ["UTC", "GMT"])
def test_names_of_universal_time_are_read(zone: str, tmp_path: Path) -> None:
    when = f"2023-12-31 23:59:59 {zone}", f"2024-01-01 00:00:00 {zone}"
    assert ran("replay", timed(tmp_path, *when), "--time", "day") == 0
    assert ran("replay", timed(tmp_path, *when[::-1]), "--time", "day") == ExitCode.ROW


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (
            json.dumps({"n": 2, "data": [{"prob": 0.5, "won": 1}] * 2}, indent=1),
            "got one object with the list 'data'; jq -c '.data[]' takes it out",
        ),
        (
            '{"data": [\n{"prob": 0.5, "won": 1},\n{"prob": 0.5, "won": 0}\n]}\n',
            "got one object with the list 'data'; jq -c '.data[]' takes it out",
        ),
        (
            json.dumps({"prob": 0.5, "won": 1}, indent=1) * 3,
            "got objects of several lines; jq -c . writes one a line",
        ),
        (
            '{"prob": {"0": 0.5, "1": 0.25}, "won": {"0": 1, "1": 0}}',
            'got one object of columns; write an object for each row: to_json(orient="records", '
            "lines=True) in pandas",
        ),
        (
            '{"prob": [0.5, 0.25], "won": [1, 0]}',
            "got one object of columns; write an object for each row",
        ),
    ],
)
@pytest.mark.parametrize("words", [(), ("--on-error", "skip")])
def test_objects_that_are_no_rows_are_told(
    content: str,
    told: str,
    words: tuple[str, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert told in refused(capsys, "replay", written(tmp_path / "d.json", content), *words)


def test_what_is_not_a_number_is_no_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = written(tmp_path / "d.jsonl", '{"prob": 0.5, "won": 1}\n{"prob": 0.5, "won": NaN}\n')
    told = refused(capsys, "replay", place)
    assert 'line must be a JSON object, got \'{"prob": 0.5, "won": NaN}\'' in told
    assert "(NaN is no JSON; write null)" in told


def test_a_table_is_no_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = written(tmp_path / "d.csv", text())
    other = written(tmp_path / "e.csv", text())
    for words in ((), ("--by", "won")):
        told = refused(capsys, "replay", place, "--state", other, *words)
        assert told == f"calibrant: {other}: is not a state of calibrant"
    assert other.read_text() == text()


def test_the_guarantee_is_kept_where_there_are_rounds_enough(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    generator = np.random.default_rng(5)
    rows = [f"{p:.3f},{int(p > 0.5)},big" for p in generator.random(3000)]
    rows += ["0.5,1,small"] * 5
    place = written(tmp_path / "d.csv", "\n".join(["prob,won,size", *rows]) + "\n")
    assert ran("replay", place, "--group", "size", *SEED, "--report", tmp_path / "r.html") == 0
    page = " ".join((tmp_path / "r.html").read_text().split())
    assert "The guarantee was kept in each group that has enough rounds (1 of 2), which" in page
