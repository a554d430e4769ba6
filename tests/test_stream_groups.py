"""Streams whose rows belong to groups: what files give is what the library gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason="needs the extra cli")
pytest.importorskip("msgspec", reason="needs the extra cli")

from tables import write

from calibrant.errors import InvalidInput
from calibrant.groups import GroupRecalibrator
from calibrant.kinds.groups.session import GroupSession
from calibrant.stream import Job, Options, StateMismatch, Stop, open_session, replay
from calibrant.stream.session import dump, load
from calibrant.summary import summarise_collected

ROWS = 240
COLUMNS = ("sex", "region")


@pytest.fixture(scope="module")
def table() -> dict[str, list[Any]]:
    generator = np.random.default_rng(4)
    raw = generator.random(ROWS).round(4)
    sex, region = generator.integers(0, 2, ROWS), generator.integers(0, 3, ROWS)
    outcomes = generator.random(ROWS) < np.clip(raw + 0.4 * (sex - 0.5), 0, 1)
    return {
        "p": raw.tolist(),
        "y": outcomes.astype(int).tolist(),
        "sex": ["f" if s else "m" for s in sex],
        "region": [["north", "south", None][r] for r in region],
        "t": list(range(ROWS)),
        "known": [t + int(k) for t, k in enumerate(generator.integers(0, 9, ROWS))],
    }


def names(table: dict[str, list[Any]]) -> list[tuple[str, ...]]:
    pairs = zip(table["sex"], table["region"], strict=True)
    return [(f"sex={s}", *([f"region={r}"] if r else [])) for s, r in pairs]


def fresh(**options: Any) -> GroupSession:
    session = Options(seed=11, group=COLUMNS, **options).session()
    assert isinstance(session, GroupSession)
    return session


def played(source: str, session: GroupSession | None = None, **job: Any) -> GroupSession:
    session = session or fresh()
    replay(Job((source,), group=COLUMNS, **job), session, Stop())
    return session


@pytest.mark.parametrize("name", ["d.csv", "d.parquet"])
@pytest.mark.parametrize("batch_rows", [1, 50, 5000])
def test_files_give_what_the_library_gives_however_they_are_cut(
    table: dict[str, list[Any]], tmp_path: Path, name: str, batch_rows: int
) -> None:
    session = played(write(tmp_path / name, table), batch_rows=batch_rows)
    rec = GroupRecalibrator(seed=11)
    made = rec.replay(table["p"], table["y"], groups=names(table))
    assert session.recalibrator.to_bytes() == rec.to_bytes()
    assert session.collector.rounds == ROWS
    summary = summarise_collected(
        session.collector, session.recalibrator, seed=11, breakdown=session.breakdown
    )
    told = {row["name"]: row for row in summary["breakdown"]["rows"]}
    assert set(told) == {"sex=f", "sex=m", "region=north", "region=south"}
    inside = np.array(["sex=f" in row for row in names(table)])
    assert told["sex=f"]["rounds"] == inside.sum()
    assert told["sex=f"]["mean_forecast"] == pytest.approx(made.forecast[inside].mean())
    assert told["sex=f"]["mean_raw"] == pytest.approx(np.array(table["p"])[inside].mean())


@pytest.mark.parametrize("batch_rows", [1, 50, 5000])
def test_late_outcomes_are_learned_late(
    table: dict[str, list[Any]], tmp_path: Path, batch_rows: int
) -> None:
    source = write(tmp_path / "d.parquet", table)
    times = {"time": "t", "available": "known"}
    session = played(source, batch_rows=batch_rows, **times)
    rec, waiting = GroupRecalibrator(seed=11), []
    rows = zip(table["p"], table["y"], table["t"], table["known"], names(table), strict=True)
    for row, (p, y, t, known, groups) in enumerate(rows):
        for entry in sorted(entry for entry in waiting if entry[0] <= t):
            rec.observe(*entry[1:])
            waiting.remove(entry)
        rec.forecast(p, groups=groups, time=float(t))
        waiting.append((known, row, y))
    for entry in sorted(entry for entry in waiting if entry[0] <= ROWS - 1):
        rec.observe(*entry[1:])
    assert session.recalibrator.certificate() == rec.certificate()
    assert session.recalibrator.to_bytes() == rec.to_bytes()
    assert len(session.pending) == rec.open > 0


@pytest.mark.parametrize("times", [{}, {"time": "t", "available": "known"}])
def test_two_halves_with_a_state_give_what_the_whole_gives(
    table: dict[str, list[Any]], tmp_path: Path, times: dict[str, str]
) -> None:
    whole = played(write(tmp_path / "d.csv", table), **times)
    half = played(write(tmp_path / "1.csv", table, slice(0, 90)), **times)
    stored = load(dump(half))
    assert isinstance(stored, GroupSession)
    rest = played(write(tmp_path / "2.csv", table, slice(90, None)), stored, **times)
    assert dump(rest) == dump(whole)


def test_rows_without_an_outcome_count_in_no_group(
    table: dict[str, list[Any]], tmp_path: Path
) -> None:
    some = table | {"y": [None if t % 3 == 0 else y for t, y in enumerate(table["y"])]}
    session = played(write(tmp_path / "d.csv", some))
    assert session.unresolved == ROWS // 3
    parts = {part.name: part.rounds for part in session.breakdown.parts()}
    assert parts["sex=f"] + parts["sex=m"] == ROWS - ROWS // 3


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"method": "foster_hart"}, "method must be left out: groups have a method of their own"),
        ({"epsilon": 0.1}, "epsilon must be left out: groups have a method of their own"),
        ({"loss": "log"}, "loss must be left out: groups have a method of their own"),
        ({"raw_safe": 0.1}, "raw_safe must be left out: groups have a method of their own"),
        ({"proba": ("a", "b")}, "group must be left out: several classes have no groups"),
    ],
)
def test_what_groups_do_not_know_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{told}, got "):
        fresh(**options)


def test_a_state_of_other_groups_is_refused() -> None:
    stored = load(dump(fresh(resolution=10)))
    assert open_session(Options(group=COLUMNS, resolution=10), stored) is stored
    assert open_session(Options(), stored) is stored
    assert stored.kept_columns == {"group": COLUMNS}
    with pytest.raises(StateMismatch) as caught:
        open_session(Options(group=("sex",)), stored)
    assert str(caught.value) == ("group must be as in the state, ('sex', 'region'), got ('sex',)")
    alone = load(dump(Options(seed=1).session()))
    with pytest.raises(StateMismatch, match=r"group must be as in the state, \(\), got"):
        open_session(Options(group=("sex",)), alone)
