"""Kinds of outcomes: each answers everything, and nobody else knows them by name."""

from __future__ import annotations

import gzip
import importlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason="needs the extra cli")
pytest.importorskip("msgspec", reason="needs the extra cli")

import calibrant.kinds
from calibrant import Calibrant, Recalibrator
from calibrant.classes import ClassCalibrant, OneVsRest, TopLabel
from calibrant.errors import CorruptState, InvalidType
from calibrant.groups import GroupRecalibrator
from calibrant.kinds import KINDS
from calibrant.regression import QuantileRecalibrator
from calibrant.stream import Columns, Job, Options, Stop, replay
from calibrant.stream.session import dump, load
from calibrant.summary import (
    Kind,
    kinds,
    read_summary,
)

SESSIONS = Path(__file__).parent / "golden" / "sessions"
ASKED: dict[str, dict[str, Any]] = {
    "binary": {},
    "groups": {"group": ("g",)},
    "classes": {"proba": ("p_a", "p_b", "p_c")},
    "numbers": {"quantiles": ("q10", "q50", "q90")},
}
ROWS = "p,y,g,p_a,p_b,p_c,c,q10,q50,q90,z"

each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def played(kind: Kind, tmp_path: Path, rows: int = 30) -> Any:
    """A session of that kind after some rows."""
    generator = np.random.default_rng(2)
    lines = [
        f"{p:.3f},{int(p > 0.4)},{'uv'[t % 2]},0.5,0.25,0.25,{t % 3},"
        f"{p - 1:.3f},{p:.3f},{p + 1:.3f},{p:.2f}"
        for t, p in enumerate(generator.random(rows))
    ]
    source = tmp_path / "rows.csv"
    source.write_text("\n".join([ROWS, *lines]) + "\n")
    session = Options(seed=3, **ASKED[kind.name]).session()
    outcome = {"classes": "c", "numbers": "z"}.get(kind.name, "y")
    replay(Job((str(source),), outcome=outcome, **session.kept_columns), session, Stop())
    return session


def test_every_package_of_kinds_is_registered_under_its_name() -> None:
    place = Path(str(calibrant.kinds.__file__)).parent
    packages = {path.parent.name for path in place.glob("*/__init__.py")}
    assert {kind.name for kind in kinds} == packages == set(ASKED)


def test_no_two_kinds_are_stored_under_one_word() -> None:
    words = [word for kind in kinds for word in kind.words]
    assert len(words) == len(set(words))
    with pytest.raises(CorruptState, match=r"^kind must be a known one, got 'sound'$"):
        kinds.known_as("sound")


@pytest.mark.parametrize(
    ("made", "name"),
    [
        (Recalibrator(), "binary"),
        (Calibrant(), "binary"),
        (GroupRecalibrator(), "groups"),
        (ClassCalibrant(3), "classes"),
        (OneVsRest(3), "classes"),
        (TopLabel(9), "classes"),
        (QuantileRecalibrator(), "numbers"),
    ],
)
def test_a_recalibrator_is_of_one_kind(made: Any, name: str) -> None:
    assert [kind.name for kind in kinds if kind.makes(made)] == [name]
    assert kinds.of(made).name == name


def test_what_is_no_recalibrator_is_of_no_kind() -> None:
    with pytest.raises(InvalidType, match=r"^recalibrator must be one of calibrant's, got 3$"):
        kinds.of(3)


@each_kind
def test_options_and_columns_name_the_kind(kind: Kind) -> None:
    assert kinds.wanted(Options(**ASKED[kind.name])) is kind
    assert kinds.wanted(Columns("p", "y", **ASKED[kind.name])) is kind


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


@pytest.mark.parametrize("name", ASKED)
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
    nothing = SimpleNamespace(group=(), proba=(), quantiles=(), normal=())
    assert [kind.name for kind in kinds if kind.wants(nothing)] == ["binary"]
    assert kinds.wanted(nothing) is list(kinds)[-1]
