"""The pages about the command line say what it does."""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("typer", reason="needs the extra cli")
pytest.importorskip("pyarrow", reason="needs the extra cli")
pytest.importorskip("jinja2", reason="needs the extra plot")
pytest.importorskip("matplotlib", reason="needs the extra plot")

from calibrant import Calibrant
from calibrant.cli import ExitCode, reference
from calibrant.cli.app import app, run
from calibrant.cli.reference import page
from calibrant.kinds.numbers import NumberCollector
from calibrant.regression import QuantileRecalibrator
from calibrant.summary import Collector, summarise_collected

DOCS = Path(__file__).resolve().parent.parent / "docs"
FENCE = re.compile(r"^```(?P<language>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
UNLISTED = [
    "replay --batch-rows",
    "compare --skip",
    "compare --html",
    "compare --by",
    "report --out",
    "reproduce --out",
]
"""An option for tests, and names that options had before."""
KEY = re.compile(r"^\| `(?P<key>[\w.]+)` \|", re.MULTILINE)


def test_the_reference_is_what_the_commands_say() -> None:
    told = "make it anew with: python -m calibrant.cli.reference > docs/reference/cli.md"
    assert (DOCS / "reference" / "cli.md").read_text() == page(), told


def test_every_option_of_every_command_is_listed() -> None:
    from typer.main import get_command

    commands: Any = get_command(app).commands
    hidden = [
        f"{name} {option.opts[0]}"
        for name, command in commands.items()
        for option in command.params
        if getattr(option, "hidden", False) or not getattr(option, "help", None)
    ]
    assert hidden == UNLISTED


def test_the_reference_can_be_made_anew(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(reference.__file__), run_name="__main__")
    assert capsys.readouterr().out == page()


def test_the_reference_lists_every_exit_code() -> None:
    text = (DOCS / "reference" / "cli.md").read_text()
    for code in ExitCode:
        assert f"| {code.value} | {code.meaning} |" in text


def ran_blocks(page: Path) -> int:
    """Run the blocks of a page in the present directory; return how many commands there were."""
    commands = 0
    names: dict[str, Any] = {}
    for block in FENCE.finditer(page.read_text()):
        if block["language"] == "python":
            exec(compile(block["body"], page.name, "exec"), names)
        elif block["language"] == "console":
            for line in block["body"].splitlines():
                assert run(shlex.split(line.removeprefix("$ calibrant "))) == 0
                commands += 1
    return commands


def test_the_how_to_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert ran_blocks(DOCS / "how-to" / "replay.md") == 14
    assert {"games.parquet", "games.html", "all.json", "bad.csv"} <= set(os.listdir(tmp_path))
    assert json.loads(Path("all.json").read_text())["n_rounds"] == 4000


def keys(data: dict[str, Any], depth: int) -> Iterator[str]:
    for key, value in data.items():
        yield key
        if depth and isinstance(value, dict) and key not in ("detail", "raw", "forecast", "mean"):
            yield from (f"{key}.{below}" for below in keys(value, depth - 1))


def test_the_summary_page_describes_every_key() -> None:
    rec = Calibrant(seed=1)
    made = rec.replay(np.full(10, 0.5), np.ones(10))
    collector = Collector(rec.calibrator.lattice.values)
    collector.update(np.full(10, 0.5), made.forecast, made.mean, np.ones(10))
    timing = {"seconds": 1.0, "rounds_per_second": 10.0}
    told = summarise_collected(collector, rec, seed=1, timing=timing).to_dict()
    text = (DOCS / "reference" / "summary.md").read_text().partition("\n## Numbers\n")[0]
    described = [match["key"] for match in KEY.finditer(text)]
    assert set(described) == {*keys(told, 1), *told["raw"]}
    assert len(described) == len(set(described))


def test_the_summary_page_describes_every_key_of_numbers() -> None:
    rec = QuantileRecalibrator(levels=[0.1, 0.9], seed=1)
    told = summarise_collected(NumberCollector(rec.levels), rec, seed=1).to_dict()
    page = (DOCS / "reference" / "summary.md").read_text().partition("\n## Numbers\n")[2]
    shared, _, own = page.partition("| key |")
    described = {match["key"] for match in KEY.finditer(own)} | set(re.findall(r"`(\w+)`", shared))
    scores = {f"raw.{key}" for key in told["raw"]}
    expected = {*keys(told, 1), *scores} - {"certificate", "interval", "timing.run"}
    assert described - {"mixed", "pit", "tracker"} == expected
    for key in told["levels"][0]:
        assert f"`{key}`" in page
    assert told["forecast"].keys() == told["raw"].keys()


def test_the_page_about_files_does_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert ran_blocks(DOCS / "how-to" / "files.md") == 3
    assert "600 outcomes found their forecast" in capsys.readouterr().err
    assert {"churn.html", "customers.html"} <= set(os.listdir(tmp_path))
    assert run(["replay", "churn.csv"]) == ExitCode.INPUT
    told = " ".join(capsys.readouterr().err.split())
    assert told in " ".join((DOCS / "how-to" / "files.md").read_text().split())


def test_whoever_follows_the_readme_has_a_report_after_two_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(4)
    risk = generator.integers(0, 1000, 200)
    rows = [f"{k};{p // 10},{p % 10} %;{'yes' if p > 300 else 'no'}" for k, p in enumerate(risk)]
    Path("churn.csv").write_bytes("\r\n".join(["customer;risk;churned", *rows]).encode("utf-16"))
    readme = (DOCS.parent / "README.md").read_text()
    (block,) = (each for each in FENCE.finditer(readme) if each["language"] == "console")
    first, told, second = block["body"].splitlines()
    assert run(shlex.split(first)[2:]) == ExitCode.INPUT
    assert capsys.readouterr().err.splitlines()[-1] == told
    advice = told.partition(": try ")[2]
    assert second == f"{first} {advice} --report churn.html"
    assert run(shlex.split(second)[2:]) == 0
    assert Path("churn.html").read_text().startswith("<!DOCTYPE html>")
