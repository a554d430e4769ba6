"""Files that programs write by mistake, or that are no table at first sight."""

from __future__ import annotations

import json
import shlex
import signal
import tarfile
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("typer", reason="needs the extra cli")
pytest.importorskip("pyarrow", reason="needs the extra cli")

from test_ordinary_files import SEED, means, plain, ran, refused, rounds, text, written

from calibrant import Calibrant
from calibrant.cli import ExitCode
from calibrant.metrics import auc

__all__ = ["plain"]


def lists(*first: Any) -> list[Any]:
    return [*first, *([float(p), int(y)] for p, y in rounds())]


def lines(rows: list[Any]) -> str:
    return "\n".join(map(json.dumps, rows))


def quoted(table: str) -> str:
    """Return a table with quotes around each whole line, as Excel writes what it did not split."""
    doubled = (line.replace('"', '""') for line in table.splitlines())
    return "".join(f'"{line}"\n' for line in doubled)


NOTED = text(header="prob,won,note").replace("\n", ',"a, b"\n').replace(',"a, b"', "", 1)
ODD: dict[str, str] = {
    "lists.json": json.dumps(lists(["prob", "won"])),
    "pretty-lists.json": json.dumps(lists(["prob", "won"]), indent=1),
    "lists.jsonl": lines(lists(["prob", "won"])),
    "lists-without-a-suffix": lines(lists(["prob", "won"])),
    "one-list.jsonl": json.dumps([{"prob": float(p), "won": int(y)} for p, y in rounds()]) + "\n",
    "returns.csv": NOTED.replace("a, b", "a\nb").replace("\n0", "\r0").rstrip() + "\r",
    "returns-and-both.csv": NOTED.replace("a, b", "a\r\nb").replace("\n0", "\r0").rstrip() + "\r",
    "lines-in-quotes.csv": quoted(text()),
    "semicolons-in-quotes.csv": quoted(text(";", point=",")),
    "quotes-in-quotes.csv": quoted(NOTED),
    "titles-in-quotes.csv": quoted("Export of today\n" + text()),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_file_gives_what_a_plain_one_gives(
    name: str, plain: list[float], tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(ODD[name].encode())
    assert means(tmp_path / name) == plain


def test_lists_become_objects_with_the_names_of_the_first_one(tmp_path: Path) -> None:
    place = written(tmp_path / "d.json", json.dumps([["prob", "won", "prob"], [0.5, 1, None]]))
    means(place, "--raw", "prob_1")
    made = json.loads((tmp_path / "out.jsonl").read_text())
    assert {name: made[name] for name in ("prob_1", "won", "prob_2")} == {
        "prob_1": 0.5,
        "won": 1,
        "prob_2": None,
    }


@pytest.mark.parametrize("make", [json.dumps, lines])
def test_lists_without_names_say_what_is_missing(
    make: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = refused(capsys, "replay", written(tmp_path / "d.json", make(lists())))
    way = 'got lists without names; begin with a list of names, such as ["prob", "won"]'
    assert told.endswith(f"must be objects, one a line or in one list, {way}")


def test_a_list_of_another_length_is_a_bad_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], plain: list[float]
) -> None:
    place = written(tmp_path / "d.json", json.dumps([*lists(["prob", "won"]), [0.5]]))
    assert "d.json: row 42: row must be 2 values, got '[0.5]'" in refused(capsys, "replay", place)
    assert means(place, "--on-error", "skip") == plain


def test_quotes_around_whole_lines_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran("replay", written(tmp_path / "d.csv", quoted(text()))) == 0
    assert "calibrant: read without the quotes around each line\n" in capsys.readouterr().err


@pytest.mark.parametrize(("values", "left"), [("012", "2"), ("01012", "2"), ("0123", "2, 3")])
def test_more_outcomes_than_0_and_1_are_told(
    values: str, left: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"0.5,{y}\n" for y in values)
    place = written(tmp_path / "d.csv", "prob,won\n" + rows * 9)
    told = refused(capsys, "replay", place)
    count = {3: "three", 4: "four"}[len(set(values))]
    named = f"won has {count} values: {', '.join(dict.fromkeys(values))}"
    way = f"try --on-error skip, which leaves out {left}, or --proba if these are classes ({named})"
    assert told.endswith(f"got '2'; {way}")
    assert ran("replay", place, "--on-error", "skip") == 0
    assert "won must be 0 or 1, e.g. '2'\n" in capsys.readouterr().err


def test_one_stray_outcome_is_a_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = written(tmp_path / "d.csv", "prob,won\n" + "0.5,1\n0.4,0\n" * 9 + "0.5,2\n")
    assert refused(capsys, "replay", place).endswith("--on-error skip leaves such rows out")


def test_many_outcomes_are_another_column_or_classes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = written(tmp_path / "d.csv", "prob,won\n" + "".join(f"0.5,{y}\n" for y in range(12)))
    told = refused(capsys, "replay", place)
    way = "--outcome with the name of another column, or --proba if these are classes"
    assert told.endswith(f"got '2'; try {way} (won has 12 values)")


# ------------------------------------------------------------- classes, numbers and swapped columns


def classes(digits: int, names: str = "cat,cow,dog") -> str:
    """Return a table of classes whose probabilities are rounded to some digits."""
    rows = [(1.0, 1.0, 1.0), (4.0, 2.0, 0.5), (0.3, 5.0, 1.7)] * 40
    lines = [names + ",label"]
    for k, row in enumerate(rows):
        shares = ",".join(f"{x / sum(row):.{digits}f}" for x in row)
        lines.append(f"{shares},{names.split(',')[k % 3]}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("digits", [2, 3, 6])
def test_rounded_probabilities_of_classes_are_divided_by_their_sums(
    digits: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = written(tmp_path / "d.csv", classes(digits))
    assert ran("replay", place, "--proba", "cat,cow,dog", "--out", tmp_path / "o.jsonl") == 0
    told = capsys.readouterr().err
    assert "probabilities are rounded and divided by their sums, e.g. 0." in told
    made = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert len(made) == 120
    assert made[0]["cat"] == round(1 / 3, digits)


@pytest.mark.parametrize("row", ["0.50,0.30,0.10,cat", "0.333,0.333,0.331,cat", "0.9,0.1,0.1,cow"])
def test_sums_that_no_rounding_explains_are_refused(
    row: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = written(tmp_path / "d.csv", classes(3) + row + "\n")
    told = refused(capsys, "replay", place, "--proba", "cat,cow,dog")
    assert "row 121: cat,cow,dog must be 3 numbers in [0, 1] that sum to 1, got" in told


def test_columns_of_classes_are_proposed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = written(tmp_path / "d.csv", classes(3))
    told = refused(capsys, "replay", place)
    assert told.endswith("cat, cow and dog sum to 1: try --proba cat,cow,dog --outcome label")
    assert ran("replay", place, *shlex.split(told.partition("try ")[2])) == 0


def test_outcomes_that_are_numbers_are_not_called_percents(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"{k}.2,{k}.7\n" for k in range(20, 60))
    place = written(tmp_path / "d.csv", "forecast,actual\n" + rows)
    told = refused(capsys, "replay", place)
    way = "--quantiles or --normal, which are for outcomes that are numbers (actual, e.g. 20.7)"
    assert told.endswith(f"forecast must be a number in [0, 1], got '20.2'; try {way}")


def test_swapped_columns_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"{y},{p}\n" for p, y in rounds())
    place = written(tmp_path / "d.csv", "prob,won\n" + rows)
    told = refused(capsys, "replay", place)
    assert told.endswith("; try --raw won --outcome prob")
    assert ran("replay", place, "--raw", "won", "--outcome", "prob") == 0


def test_logarithms_of_probabilities_are_not_called_log_odds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"-{p},{y}\n" for p, y in rounds())
    way = "--logit if these are log-odds; if they are logarithms of probabilities, take exp first"
    place = written(tmp_path / "d.csv", "score,won\n" + rows)
    assert refused(capsys, "replay", place).endswith(f"; try {way}")
    place = written(tmp_path / "d.csv", "logprob,won\n" + rows)
    told = refused(capsys, "replay", place)
    assert told.endswith("; try --raw logprob --outcome won, and " + way)


def test_words_for_several_outcomes_name_a_way_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = written(
        tmp_path / "d.csv", "prob,won\n" + "0.5,correct\n0.2,skipped\n0.1,incorrect\n" * 9
    )
    told = refused(capsys, "replay", place)
    assert "try --positive correct --on-error skip, which leaves out skipped" in told
    place = written(tmp_path / "d.csv", "prob,won\n" + "0.5,red\n" + "0.2,blue\n0.1,grey\n" * 9)
    told = refused(capsys, "replay", place)
    way = "--positive with the value that counts as 1, or --proba if these are classes"
    assert told.endswith(f"got 'red'; try {way} (won has three values: red, blue, grey)")


def test_a_column_of_forecasts_is_proposed_where_no_outcomes_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"{p},{'abc'[k % 3]}\n" for k, (p, _) in enumerate(rounds()))
    told = refused(capsys, "replay", written(tmp_path / "d.csv", "risk,grade\n" + rows))
    assert told.endswith("one of: risk, grade; try --raw risk")


def test_times_out_of_order_are_to_be_sorted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    days = "".join(f"0.5,1,2024-01-{k:02d},2024-01-{k:02d}\n" for k in (3, 1, 2))
    place = written(tmp_path / "d.csv", "prob,won,day,known\n" + days)
    told = refused(capsys, "replay", place, "--time", "day")
    assert told.endswith("got '2024-01-01'; try sorting the rows by day")
    place = written(tmp_path / "d.csv", "prob,won,day,known\n0.5,1,2024-01-03,2024-01-01\n")
    told = refused(capsys, "replay", place, "--time", "day", "--available", "known")
    assert told.endswith("the row's own, got '2024-01-01'; --on-error skip leaves such rows out")


def test_a_positive_value_that_is_not_there_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = written(tmp_path / "d.csv", text())
    told = refused(capsys, "replay", place, "--positive", "yes")
    assert told.endswith("won must be 'yes' or 'no', got '0'; try leaving --positive out")
    place = written(tmp_path / "d.csv", text(yes="left", no="stayed"))
    told = refused(capsys, "replay", place, "--positive", "yes")
    assert told.endswith("; try --positive left")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("<!DOCTYPE html>\n<html><body>Sign in, please</body></html>\n", "an HTML page"),
        ("<?xml version='1.0'?>\n<rows></rows>\n", "XML"),
        ("%PDF-1.4\n1 0 obj\n", "a PDF file"),
    ],
)
def test_what_is_no_table_is_called_what_it_is(
    content: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = refused(capsys, "replay", written(tmp_path / "d.csv", content))
    assert found.endswith(f"must be a table, as text, JSON, Parquet or .xlsx, got {told}")


@pytest.mark.parametrize("name", ["d.tar", "d.tar.gz"])
def test_an_archive_is_no_text(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = written(tmp_path / "d.csv", text())
    with tarfile.open(tmp_path / name, "w:gz" if name.endswith("gz") else "w") as archive:
        archive.add(table, "d.csv")
    found = refused(capsys, "replay", tmp_path / name)
    assert found.endswith(".xlsx, got bytes that are no text")


def test_a_database_is_called_what_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "d.db").write_bytes(b"SQLite format 3\0\x10" + bytes(99))
    told = refused(capsys, "replay", tmp_path / "d.db")
    assert told.endswith("got an SQLite database; export the table as CSV")


def test_what_is_said_to_be_a_workbook_and_is_none_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("openpyxl", reason="needs the extra excel")
    told = refused(capsys, "replay", written(tmp_path / "d.csv", text()), "--format", "xlsx")
    assert told.endswith("d.csv: cannot be read: File is not a zip file")


def test_a_signal_that_a_callback_lost_is_no_damage_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(*arguments: Any) -> str:
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        return "error"

    monkeypatch.setattr("calibrant.stream.readers.TextReader._note", lose)
    assert ran("replay", written(tmp_path / "d.csv", text())) == ExitCode.INTERRUPTED
    assert capsys.readouterr().err.splitlines()[-1] == "calibrant: interrupted"


def test_an_empty_file_is_called_that(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = refused(capsys, "replay", written(tmp_path / "d.csv", ""))
    assert told.endswith("d.csv: must begin with the names of its columns, got an empty file")


# ---------------------------------------------------------- words for outcomes, and what is offered


@pytest.mark.parametrize(
    ("yes", "no"),
    [
        ("sí", "no"),
        ("да", "нет"),
        ("tak", "nie"),
        ("vrai", "faux"),
        ("はい", "いいえ"),
        ("✅", "❌"),
        ("converted", "not converted"),
        ("Paid", "unpaid"),
        ("Active", "Inactive"),
        ("[1]", "[0]"),
        ("'1'", "'0'"),
    ],
)
def test_the_value_that_is_meant_by_1_is_offered_also_where_it_is_the_commoner(
    yes: str, no: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], plain: list[float]
) -> None:
    place = written(tmp_path / "d.csv", text(yes=yes, no=no))
    told = refused(capsys, "replay", place)
    assert told.endswith(f"; try {shlex.join(['--positive', yes])}")
    assert means(place, "--positive", yes) == plain


@pytest.mark.parametrize("name", ["churned", "Churn", "has churned?"])
def test_the_name_of_the_column_says_which_value_is_meant_by_1(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "0.5,churned\n0.3,churned\n0.2,stayed\n"
    place = written(tmp_path / "d.csv", f"prob,{name}\n" + rows * 9)
    words = ("replay", place, "--outcome", name)
    assert refused(capsys, *words).endswith("; try --positive churned")
    assert "--positive churned" in refused(capsys, "replay", place)


def test_outcomes_with_a_decimal_comma_are_read(tmp_path: Path, plain: list[float]) -> None:
    table = text(";", point=",", yes="1,0", no="0,0")
    assert means(written(tmp_path / "d.csv", table)) == plain
    assert means(tmp_path / "d.csv", "--decimal", ",") == plain


def test_one_outcome_and_empty_cells_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = written(tmp_path / "d.csv", "prob,won\n" + "0.5,x\n0.2,\n" * 9)
    way = "try writing 0 where 'x' is not: empty cells are outcomes that are not known"
    assert refused(capsys, "replay", place).endswith(f"got 'x'; {way}")
    place = written(tmp_path / "d.csv", "prob,won\n" + "0.5,lost\n" * 9)
    way = "try --positive with the value that counts as 1 (won has one value: lost)"
    assert refused(capsys, "replay", place).endswith(f"got 'lost'; {way}")
    assert ran("replay", place, "--positive", "won") == 0


def test_a_stray_number_beyond_100_is_a_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for stray, kind in (("100.41", "--prefix=a"), ("101", "--percent")):
        rows = "0.5,1\n0.25,0\n" if kind != "--percent" else "50.5,1\n25,0\n"
        place = written(tmp_path / "d.csv", "prob,won\n" + rows * 9 + f"{stray},0\n")
        told = refused(capsys, "replay", place, kind)
        assert told.endswith(f"got '{stray}'; --on-error skip leaves such rows out")


@pytest.mark.parametrize("names", ["prob_0,prob_1", "p_no,p_yes", "prob_1,prob_0"])
def test_of_two_columns_that_are_opposites_the_one_of_1_is_offered(
    names: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"{1 - float(p):.2f},{p},{y}\n" for p, y in rounds())
    told = refused(capsys, "replay", written(tmp_path / "d.csv", f"{names},y\n" + rows))
    best = next(name for name in names.split(",") if name[-1] in "1s")
    assert told.endswith(f"; try --raw {best} --outcome y")


def test_quantiles_are_offered_where_outcomes_are_numbers_and_no_name_is_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"{k}.1,{k}.5,{k}.9,{k}.4\n" for k in range(20, 60))
    told = refused(capsys, "replay", written(tmp_path / "d.csv", "q10,q50,q90,actual\n" + rows))
    way = "try --quantiles or --normal, which are for outcomes that are numbers (actual, e.g. 20.4)"
    assert told.endswith(f"; {way}")


def test_classes_that_are_numbered_from_1_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = classes(6).replace(",cat\n", ",1\n").replace(",cow\n", ",2\n").replace(",dog\n", ",3\n")
    place = written(tmp_path / "d.csv", table)
    told = refused(capsys, "replay", place, "--proba", "cat,cow,dog", "--outcome", "label")
    assert told.endswith("got '3'; try numbering the classes from 0, not from 1")


def test_lists_in_a_column_of_raw_forecasts_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"proba": [1 - float(p), float(p)], "won": int(y)} for p, y in rounds()]
    place = written(tmp_path / "d.jsonl", "\n".join(map(json.dumps, rows)))
    assert refused(capsys, "replay", place).endswith("; try --proba proba")
    assert ran("replay", place, "--proba", "proba") == 0


def test_a_single_mark_before_each_row_is_no_quote(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = written(tmp_path / "d.csv", "prob,won\n" + "'0.5,1\n'0.25,0\n" * 9)
    assert """got "'0.5"; try writing these as numbers""" in refused(capsys, "replay", place)


@pytest.mark.parametrize(
    "form",
    [
        "%Y-%m",
        "%b %Y",
        "%d. %B %Y",
        "%a %b %d %H:%M:%S %Y",
        "%d/%b/%Y:%H:%M:%S +0000",
        "%m/%d/%Y %I:%M%p",
    ],
)  # fmt: skip
def test_more_forms_of_times_are_read(form: str, tmp_path: Path) -> None:
    days = [datetime(2024, 1, 31, 22, 5), datetime(2024, 2, 1, 9, 30)]
    rows = "".join(f"0.5,{k},{day.strftime(form)}\n" for k, day in enumerate(days))
    assert ran("replay", written(tmp_path / "d.csv", "prob,won,day\n" + rows), "--time", "day") == 0


def test_a_form_of_times_that_nobody_knows_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = written(
        tmp_path / "d.csv", "prob,won,day\n0.5,1,2024年02月25日\n0.5,0,2024年02月26日\n"
    )
    words = ("replay", place, "--time", "day")
    way = "try --time-format with their form, in the codes of Python's strptime"
    assert refused(capsys, *words).endswith(f"got '2024年02月25日'; {way}")
    assert ran(*words, "--time-format", "%Y年%m月%d日") == 0
    told = refused(capsys, *words, "--time-format", "%Y年%m月%m日")
    assert "must be a time in the form '%Y年%m月%m日', got '2024年02月25日'" in told


# -------------------------------------------------------------------------------- what is said


@pytest.mark.parametrize(("given", "times"), [("0.3", 8), ("0.2", 100)])
def test_one_forecast_for_all_has_no_ranking_to_lose(
    given: str, times: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"{given},{y}\n" for _, y in rounds() * times)
    assert ran("replay", written(tmp_path / "d.csv", "prob,won\n" + rows), "--seed", 1) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "Accuracy improved: Brier" in told
    assert "ranking" not in told


def test_a_change_that_no_digit_shows_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = written(tmp_path / "d.csv", "prob,won\n" + "0,0\n" * 200)
    assert ran("replay", place, *SEED) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "Accuracy unchanged: Brier 0.00000 → 0.00000." in told


def test_a_ranking_is_not_judged_where_raw_forecasts_are_too_close_to_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dice = np.random.default_rng(11)
    raw = dice.beta(0.5, 1000, 20_000)
    outcomes = dice.random(20_000) < 2 * raw
    rows = (f"{p:.8f},{y:d}\n" for p, y in zip(raw, outcomes, strict=True))
    place = written(tmp_path / "d.csv", "prob,won\n" + "".join(rows))
    assert ran("replay", place, *SEED, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    found = told["auc"]
    exact = auc(raw.round(8), outcomes)
    # The cells alone tell less of a ranking.
    assert found["raw"] + 0.03 < exact
    assert abs(found["raw"] - exact) <= found["unsure"]
    limits = f"{found['raw']:.3f} ± {found['unsure']:.3f}"
    assert f"ranking not known: AUC {limits} → {found['forecast']:.3f}." in told["headline"]


def test_names_of_groups_may_have_any_letters_and_several_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra plot")
    sides = "日本語", '"two\nlines"'
    rows = "".join(f"{p},{y},{sides[k % 2]}\n" for k, (p, y) in enumerate(rounds()))
    place = written(tmp_path / "d.csv", "prob,won,side\n" + rows)
    pictures = tmp_path / "pictures"
    words = ("--group", "side", "--report", tmp_path / "r.html", "--plots", pictures)
    assert ran("replay", place, *words) == 0
    told = capsys.readouterr()
    assert (
        told.err == "calibrant: raw forecasts from column 'prob' and outcomes from column 'won'\n"
    )
    assert "side=two lines " in told.out


@pytest.mark.parametrize("loss", ["squared", "log"])
def test_the_defaults_that_help_tells_are_those_that_are_used(
    loss: str, capsys: pytest.CaptureFixture[str]
) -> None:
    used = repr(Calibrant(loss=loss))
    assert "resolution=15, grid='graded'" in used
    assert "buckets=1," in used
    assert ran("replay", "-h") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Steps of the grid of forecasts. [default: 15 with calibrant, else 20]" in shown
    assert "[default: graded with calibrant, else endpoints]" in shown
    assert "[default: 1 with calibrant, else 20]" in shown


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["help"], "calibrant: No such command 'help'. See calibrant --help"),
        (["-v"], "calibrant: No such option: -v See calibrant --help"),
        (["replya"], "calibrant: No such command 'replya'. Did you mean 'replay', 'play'?"),
    ],
)
def test_a_mistyped_word_says_where_to_look(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(*words) == 2
    assert capsys.readouterr().err == f"{told}\n"


def test_a_table_is_no_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = written(tmp_path / "d.csv", text())
    told = refused(capsys, "report", place)
    assert told.endswith("d.csv: must be a file that --summary wrote, got something else")
