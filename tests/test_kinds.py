"""Kinds of outcomes: each answers everything, and nobody else knows them by name.

What a kind is asked for with, and rows to play, are in a module of its own, ``kind_<name>.py``.
"""

from __future__ import annotations

import gzip
import importlib
import re
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason="needs the extra cli")
pytest.importorskip("msgspec", reason="needs the extra cli")

import calibrant.kinds
from calibrant.errors import CorruptState, InvalidType
from calibrant.kinds import KINDS
from calibrant.stream import Columns, Job, Options, Stop, replay
from calibrant.stream.columns import COLUMNS
from calibrant.stream.session import dump, load
from calibrant.summary import (
    Kind,
    kinds,
    read_summary,
)

SESSIONS = Path(__file__).parent / "golden" / "sessions"
SUMMARIES = Path(__file__).parent.parent / "docs" / "reference" / "summary.md"

each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def of(kind: Kind) -> Any:
    """The module with what a kind is asked for with, and with rows to play."""
    found: ModuleType = importlib.import_module(f"kind_{kind.name}")
    return found


def played(kind: Kind, tmp_path: Path, rows: int = 30) -> Any:
    """A session of that kind after some rows."""
    lines = [of(kind).row(t, p) for t, p in enumerate(np.random.default_rng(2).random(rows))]
    source = tmp_path / "rows.csv"
    told = [",".join(lines[0]), *(",".join(map(str, line.values())) for line in lines)]
    source.write_text("\n".join(told) + "\n")
    session = Options(seed=3, **of(kind).ASKED).session()
    replay(Job((str(source),), outcome=of(kind).OUTCOME, **session.kept_columns), session, Stop())
    return session


def test_every_package_of_kinds_is_registered_under_its_name() -> None:
    place = Path(str(calibrant.kinds.__file__)).parent
    packages = {path.parent.name for path in place.glob("*/__init__.py")}
    assert {kind.name for kind in kinds} == packages
    assert len({kind.precedence for kind in kinds}) == len(KINDS)


def test_no_two_kinds_have_an_option_of_one_name() -> None:
    assert len(kinds.options) == sum(len(kind.options) for kind in KINDS)
    assert {*kinds.options.values()} == {"raw", "columns", "numbers"}


def test_no_two_kinds_are_stored_under_one_word() -> None:
    words = [word for kind in kinds for word in kind.words]
    assert len(words) == len(set(words))
    with pytest.raises(CorruptState, match=r"^kind must be a known one, got 'sound'$"):
        kinds.known_as("sound")


@each_kind
def test_a_recalibrator_is_of_one_kind(kind: Kind) -> None:
    assert of(kind).MADE
    for made in of(kind).MADE:
        assert [each for each in kinds if each.makes(made)] == [kind]
        assert kinds.of(made) is kind


def test_what_is_no_recalibrator_is_of_no_kind() -> None:
    with pytest.raises(InvalidType, match=r"^recalibrator must be one of calibrant's, got 3$"):
        kinds.of(3)


@each_kind
def test_options_and_columns_name_the_kind(kind: Kind) -> None:
    asked = of(kind).ASKED
    assert kinds.wanted(Options(**asked)) is kind
    columns = {name: asked[name] for name in asked if name in COLUMNS}
    assert kinds.wanted(Columns("p", "y", **columns)) is kind
    assert asked.keys() <= kind.options.keys()


@each_kind
def test_a_session_summarises_itself_and_comes_back_from_bytes(kind: Kind, tmp_path: Path) -> None:
    session = played(kind, tmp_path)
    assert type(session) is kind.session_type
    summary = session.summary({"inputs": ["rows.csv"]}, {"seconds": 1.0})
    assert isinstance(summary, kind.summary_type)
    assert kinds.summarised(summary.summary) is kind
    assert read_summary(summary.to_dict()).to_dict() == summary.to_dict()
    again = load(dump(session))
    assert type(again) is kind.session_type
    assert dump(again) == dump(session)
    assert all(value not in (None, ()) for value in again.kept_columns.values())


@each_kind
def test_all_that_a_view_names_is_there(kind: Kind, tmp_path: Path) -> None:
    view, summary = kind.view, played(kind, tmp_path).summary({}, {})
    drawings, tables = view.drawings(summary), view.tables(summary)
    assert set(view.chosen(summary)) <= set(drawings) <= set(view.WORDS)
    pictures = {name for section in view.SECTIONS for name in section.pictures}
    assert pictures == set(view.WORDS)
    assert {name for section in view.SECTIONS for name in section.tables} <= set(tables)
    shown, lines = view.screen(summary)
    assert shown[0].caption.startswith("30 rounds, ")
    assert all(len(row) == len(table.header) for table in shown for row in table.rows)
    assert all(lines)
    for _, key in view.COMPARED:
        assert key in summary["raw"]


def test_what_services_declare_is_in_requests_and_answers() -> None:
    pytest.importorskip("starlette", reason="needs the extra serve")
    from calibrant.serve import structs

    services = [kind.service for kind in kinds if kind.service is not None]
    assert any(service.settings and service.draws for service in services)
    for service in services:
        assert {*service.settings} <= {*structs.StreamIn.__struct_fields__}
        for answer in (structs.ForecastOut, structs.Known):
            assert {*service.answers} <= {*answer.__struct_fields__}
        assert {*service.draws} <= {*service.answers} & {*structs.Revealed.__struct_fields__}
        for name in service.settings:
            asked = structs.StreamIn(**{name: ["u", "v"]})
            assert [each for each in services if each.wants(asked)] == [service, services[-1]]


@each_kind
def test_the_page_about_summaries_names_every_key(kind: Kind, tmp_path: Path) -> None:
    summary, page = played(kind, tmp_path).summary({}, {}).summary, SUMMARIES.read_text()
    told = {word for name in re.findall(r"`([\w.]+)`", page) for word in name.split(".")}
    assert {*summary, *summary["raw"]} <= told


@pytest.mark.parametrize("name", ["binary", "groups", "classes", "numbers"])
def test_sessions_that_were_stored_before_kinds_go_on(name: str) -> None:
    data = gzip.decompress((SESSIONS / f"{name}.state.gz").read_bytes())
    session = load(data)
    assert type(session) is kinds.known_as(KINDS_WORDS[name]).session_type
    assert session.seed == 5
    assert session.recalibrator.issued == 40
    assert 0 < session.collector.rounds <= 40
    assert len(session.pending) > 0
    assert session.kept_columns == KEPT[name]
    assert load(dump(session)).summary({}, {}).to_dict() == session.summary({}, {}).to_dict()


KINDS_WORDS = {"binary": None, "groups": "group", "classes": "class", "numbers": "number"}
KEPT: dict[str, dict[str, tuple[str, ...]]] = {
    "binary": {},
    "groups": {"group": ("sex",)},
    "classes": {"proba": ("p_cat", "p_cow", "p_dog")},
    "numbers": {"quantiles": ("q10", "q50", "q90")},
}


OLD = [
    ("calibrant.summary", "Story", "calibrant.summary", "Summary"),
    ("calibrant.summary", "AnyStory", "calibrant.summary", "AnySummary"),
    ("calibrant.summary", "NumberStory", "calibrant.kinds.numbers", "NumberSummary"),
    ("calibrant.summary", "NumberCollector", "calibrant.kinds.numbers", "NumberCollector"),
    ("calibrant.summary", "Seen", "calibrant.kinds.numbers", "Seen"),
    ("calibrant.summary", "inner", "calibrant.kinds.binary", "inner"),
    ("calibrant.summary", "method_of", "calibrant.kinds.binary", "method_of"),
    ("calibrant.summary", "options_of", "calibrant.kinds.numbers", "options_of"),
    ("calibrant.summary", "read_story", "calibrant.summary", "read_summary"),
    ("calibrant.summary", "tell", "calibrant.summary", "summarise_collected"),
    ("calibrant.summary", "tell_numbers", "calibrant.summary", "summarise_collected"),
    ("calibrant.report", "number_headline", "calibrant.report", "headline"),
    ("calibrant.stream", "GroupSession", "calibrant.kinds.groups.session", "GroupSession"),
    ("calibrant.stream", "ClassSession", "calibrant.kinds.classes.session", "ClassSession"),
    ("calibrant.stream", "NumberSession", "calibrant.kinds.numbers.session", "NumberSession"),
]


@pytest.mark.parametrize(("module", "old", "place", "new"), OLD)
def test_old_names_work_and_warn(module: str, old: str, place: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=rf"^{module}\.{old} is now {place}\.{new}$"):
        found = getattr(importlib.import_module(module), old)
    assert found is getattr(importlib.import_module(place), new)


@pytest.mark.parametrize("module", ["calibrant.summary", "calibrant.report", "calibrant.stream"])
def test_names_that_never_were_are_not_there(module: str) -> None:
    with pytest.raises(AttributeError, match=rf"^module '{module}' has no attribute 'Tale'$"):
        _ = importlib.import_module(module).Tale


def test_a_session_still_tells_its_story(tmp_path: Path) -> None:
    session = played(kinds.known_as(None), tmp_path)
    with pytest.warns(DeprecationWarning, match=r"^Session\.story is now Session\.summary$"):
        told = session.story({}, {})
    assert told.to_dict() == session.summary({}, {}).to_dict()


def test_the_default_takes_what_nobody_wants() -> None:
    nothing = SimpleNamespace(**dict.fromkeys(kinds.options, ()))
    assert [kind.name for kind in kinds if kind.wants(nothing)] == ["binary"]
    assert kinds.wanted(nothing) is list(kinds)[-1]
