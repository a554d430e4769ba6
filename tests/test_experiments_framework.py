"""What an experiment is made of, and what is written about it."""

from __future__ import annotations

import csv
import html
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason="needs the extra experiments")
pytest.importorskip("jinja2", reason="needs the extra experiments")
pytest.importorskip("matplotlib", reason="needs the extra experiments")
pytest.importorskip("scipy", reason="needs the extra experiments")

from calibrant.errors import InvalidInput, MissingExtra, UnknownName
from calibrant.experiments.claims import Claim, at_least, at_most, below, near, unmeasured
from calibrant.experiments.experiment import Experiment, Result, Setting, experiments
from calibrant.experiments.figures import Band, Curves, Panels, Slopes, band_of
from calibrant.experiments.reproduce import (
    Chapter,
    claims_columns,
    headline,
    in_order,
    render,
    reproduce,
    write,
)
from calibrant.report.tables import Table
from calibrant.stream.failure import Unreadable

ROUNDS = np.array([10, 20, 30])


def curves(**options: Any) -> Curves:
    return Curves("error", ROUNDS, {"raw": band_of([[0.3, 0.2, 0.1], [0.1, 0.2, 0.1]])}, **options)


def panels() -> Panels:
    slopes = Slopes(("size", "time"), np.array([1.0, 2.0]), {"a": np.array([1.0, np.nan])})
    return Panels("A picture", "Of <b>.", {"a": curves(), "b": slopes}, ["ab"])


def result() -> Result:
    return Result(
        (below("small", "It is < small", 0.1, 0.2), at_least("large", "It is large", 0.1, 0.2)),
        {"picture": panels()},
        (Table("Numbers", ("", "value"), (("one", "1"),), notes=("Note this.",)),),
        {"numbers": {"x": [1, 2], "y": [0.1, 0.2]}},
        ("A paragraph.",),
        ("a file",),
    )


@dataclass
class Lab:
    """Experiments of our own, and what they were told."""

    said: list[str]
    setting: Setting


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Lab:
    def fails(setting: Setting) -> Result:
        raise Unreadable("needed.csv: not there")

    entries = {
        "second": Experiment("second", "The second", 2, fails),
        "first": Experiment("first", "The first", 1, lambda setting: result()),
    }
    monkeypatch.setattr(experiments, "_entries", entries)
    said: list[str] = []
    return Lab(said, Setting(Path("data"), tell=said.append))


# ------------------------------------------------------------------------------------- claims


@pytest.mark.parametrize(
    ("claim", "bar", "verdict"),
    [
        (below("k", "s", 0.1, 0.2), "below 0.2", "holds"),
        (below("k", "s", 0.2, 0.2), "below 0.2", "does not hold"),
        (at_most("k", "s", 0.2, 0.2), "at most 0.2", "holds"),
        (at_most("k", "s", 0.3, 0.2), "at most 0.2", "does not hold"),
        (at_least("k", "s", 0.2, 0.2), "at least 0.2", "holds"),
        (at_least("k", "s", 0.1, 0.2), "at least 0.2", "does not hold"),
        (near("k", "s", 0.26, 0.25, 0.02), "0.25 ± 0.02", "holds"),
        (near("k", "s", 0.22, 0.25, 0.02), "0.25 ± 0.02", "does not hold"),
        (unmeasured("k", "s", "below 1"), "below 1", "not measured"),
    ],
)
def test_a_claim_is_judged_by_its_bar(claim: Claim, bar: str, verdict: str) -> None:
    assert (claim.bar, claim.verdict, claim.source) == (bar, verdict, "paper")


@pytest.mark.parametrize("judge", [below, at_most, at_least])
def test_what_is_not_a_number_holds_nothing(judge: Any) -> None:
    assert judge("k", "s", math.nan, 0.2, "ours").holds is False
    assert near("k", "s", math.nan, 0.2, 1.0, "ours").holds is False


def test_two_claims_cannot_share_a_key() -> None:
    claim = unmeasured("k", "s", "b")
    with pytest.raises(InvalidInput, match="keys of claims must differ"):
        Result((claim, claim))


def test_columns_must_be_there_and_of_one_length() -> None:
    with pytest.raises(InvalidInput, match="arrays must be of one length"):
        Result((), columns={"a": {"x": [1], "y": []}})
    with pytest.raises(InvalidInput, match="columns must be at least one, got none for 'a'"):
        Result((), columns={"a": {}})


def test_results_add_up() -> None:
    other = Result((unmeasured("more", "s", "b"),), notes=("Last.",))
    both = result() + other
    assert list(both.numbers()) == ["small", "large", "more"]
    assert both.notes == ("A paragraph.", "Last.")
    assert (list(both.figures), list(both.columns)) == (["picture"], ["numbers"])
    assert both.missing == ("a file",)


# ----------------------------------------------------------------------------------- pictures


def test_a_band_is_the_mean_between_two_percentiles() -> None:
    games = np.arange(11.0)[:, None] * np.ones(2)
    band = band_of(games)
    assert (band.low[0], band.mean[0], band.high[0]) == (1.0, 5.0, 9.0)


def test_one_row_is_a_band_without_width() -> None:
    band = band_of([0.1, 0.2])
    assert band.low.tolist() == band.mean.tolist() == band.high.tolist()


def test_panels_stand_in_the_paper_s_layout() -> None:
    figure = panels().draw()
    left, right = figure.axes
    assert (left.get_ylabel(), right.get_ylabel()) == ("error", "time")
    assert [ax.texts[-1].get_text() for ax in figure.axes] == ["a", "b"]
    assert left.get_legend().get_texts()[0].get_text() == "raw"
    assert left.get_lines()[0].get_ydata().tolist() == [0.2, 0.2, 0.1]


def test_an_axis_may_be_logarithmic() -> None:
    drawn = curves(logarithmic=True).draw()
    assert drawn.ax is not None
    assert drawn.ax.get_yscale() == "log"


class Bare(Curves):
    """Curves that put nothing into a legend."""

    def _ink(self, ax: Any) -> list[Any]:
        super()._ink(ax)
        return []


def test_a_panel_may_lack_a_legend() -> None:
    bare = Bare("error", ROUNDS, {"raw": Band(*[np.ones(3)] * 3)})
    figure = Panels("t", "c", {"a": bare}, ["a"]).draw()
    assert figure.axes[0].get_legend() is None


def test_every_panel_must_have_its_place() -> None:
    with pytest.raises(InvalidInput, match="layout must have each panel's letter"):
        Panels("t", "c", {"a": curves()}, ["ab"])


# -------------------------------------------------------------------------------------- running


def test_experiments_run_in_the_paper_s_order(lab: Lab) -> None:
    assert [each.name for each in in_order(["second", "first", "second"])] == ["first", "second"]
    done = reproduce(["first"], lab.setting)
    assert [each.experiment.name for each in done] == ["first"]
    assert done[0].seconds >= 0.0
    assert lab.said == ["first: The first"]


def test_all_names_every_experiment_and_missing_data_are_told(lab: Lab) -> None:
    first, second = reproduce(["all"], lab.setting)
    assert (first.experiment.name, second.experiment.name) == ("first", "second")
    assert second.result.missing == ("needed.csv: not there",)
    assert second.result.claims == ()


def test_missing_data_of_a_single_experiment_are_an_error(lab: Lab) -> None:
    with pytest.raises(Unreadable, match=r"needed\.csv: not there"):
        reproduce(["second"], lab.setting)


def test_names_that_are_unknown_or_absent_are_refused(lab: Lab) -> None:
    with pytest.raises(UnknownName, match="experiment must be one of 'first', 'second', got 'x'"):
        reproduce(["first", "x"], lab.setting)
    with pytest.raises(InvalidInput, match="experiments must be at least one"):
        reproduce([], lab.setting)
    assert lab.said == []


def test_a_setting_without_anybody_to_tell_is_silent(lab: Lab) -> None:
    assert reproduce(["first"], Setting(Path("data")))[0].result.claims


# -------------------------------------------------------------------------------------- writing


def test_page_figures_and_numbers_are_written(lab: Lab, tmp_path: Path) -> None:
    written = write(reproduce(["all"], lab.setting), tmp_path / "out", command="calibrant <again>")
    names = [path.name for path in written]
    assert names == ["claims.csv", "numbers.csv", "picture.png", "picture.svg", "index.html"]
    assert (tmp_path / "out" / "numbers.csv").read_text() == "x,y\n1,0.1\n2,0.2\n"
    with (tmp_path / "out" / "claims.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["verdict"] for row in rows] == ["holds", "does not hold"]
    assert rows[0]["claim"] == "It is < small"


def test_the_page_puts_claim_number_and_verdict_side_by_side(lab: Lab, tmp_path: Path) -> None:
    text = write(reproduce(["all"], lab.setting), tmp_path, command="calibrant <again>")[-1]
    told = html.unescape(text.read_text())
    assert "It is &lt; small" in text.read_text()
    row = '<th scope="row">It is < small</th><td>paper</td><td class="n">0.1000</td>'
    assert f'{row}<td>below 0.2</td><td class="verdict yes">holds</td>' in told
    assert '<td class="verdict no">does not hold</td>' in told
    assert "1 of the paper's 2 claims holds, 1 does not." in told
    assert "Not done here: needed.csv: not there." in told
    for words in ("A paragraph.", "Note this.", "A picture", "calibrant <again>", "<svg"):
        assert words in told
    assert "nothing could be measured here" in told


def test_a_page_without_a_command_does_not_say_how_to_make_it(lab: Lab, tmp_path: Path) -> None:
    text = write(reproduce(["first"], lab.setting), tmp_path)[-1].read_text()
    assert "How to reproduce it" not in text


def test_nothing_on_the_page_comes_from_elsewhere(lab: Lab, tmp_path: Path) -> None:
    text = write(reproduce(["all"], lab.setting), tmp_path)[-1].read_text()
    assert "<script" not in text
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org", "")


@pytest.mark.parametrize(
    ("holds", "words"),
    [
        ([True, True], "2 of the paper's 2 claims hold"),
        ([True, False, False], "1 of the paper's 3 claims holds, 2 do not"),
        ([True, True, None, None], "2 of the paper's 4 claims hold, 2 were not measured"),
        ([], "nothing could be measured here"),
    ],
)
def test_the_headline_counts(holds: list[bool | None], words: str) -> None:
    claims = tuple(Claim(str(k), "", 0.0, "", each) for k, each in enumerate(holds))
    chapter = Chapter(Experiment("x", "X", 1, lambda setting: result()), Result(claims), 1.0)
    assert headline([chapter]) == chapter.headline == words


def test_the_papers_claims_and_ours_are_counted_apart() -> None:
    claims = (
        Claim("a", "", 0.0, "", True),
        Claim("b", "", 0.0, "", False, "ours"),
        Claim("c", "", 0.0, "", True, "ours"),
    )
    chapter = Chapter(Experiment("x", "X", 1, lambda setting: result()), Result(claims), 1.0)
    told = "1 of the paper's 1 claims holds; 1 of our own 2 claims holds, 1 does not"
    assert headline([chapter]) == told


def test_claims_are_columns(lab: Lab) -> None:
    table = claims_columns(reproduce(["first"], lab.setting))
    assert table["key"] == ["small", "large"]
    assert table["experiment"] == ["first", "first"]


def test_the_page_needs_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtra, match=r'pip install "\.\[experiments\]"'):
        render([])


def test_every_experiment_has_its_own_place_and_page_of_documentation() -> None:
    places = [experiments.get(name).place for name in experiments.names()]
    assert len(set(places)) == len(places)
    docs = Path(__file__).resolve().parent.parent / "docs" / "experiments"
    for name in experiments.names():
        assert f"calibrant reproduce {name}" in (docs / f"{name}.md").read_text()
