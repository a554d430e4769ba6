"""Files that programs write by mistake, or that are no table at first sight."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer", reason="needs the extra cli")
pytest.importorskip("pyarrow", reason="needs the extra cli")

from test_ordinary_files import means, plain, ran, refused, rounds, text, written

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
    place = written(tmp_path / "d.csv", "prob,won\n" + "".join(f"0.5,{y}\n" for y in range(40)))
    told = refused(capsys, "replay", place)
    way = "--outcome with the name of another column, or --proba if these are classes"
    assert told.endswith(f"got '2'; try {way} (won has 40 values)")
