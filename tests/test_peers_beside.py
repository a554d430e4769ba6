"""What others cost beside ours: fair turns, rows that name what was run, and a run that goes on."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from benchmarks import bench
from benchmarks.peers import __main__ as peers
from benchmarks.peers import beside, work
from benchmarks.peers.inside import FITS

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parent.parent
AT = "/v1/streams/s"


def kept(what: str) -> dict[str, Any]:
    """What is stored of a comparison."""
    return dict(json.loads((ROOT / "docs" / "results" / f"peers_{what}.json").read_text()))


@pytest.mark.parametrize("what", beside.COMPARED)
def test_the_stored_run_has_every_contender_in_the_version_that_is_pinned(what: str) -> None:
    (found,) = kept(what)["tables"]
    rows = [dict(zip(found["head"], row, strict=True)) for row in found["rows"]]
    assert [row["method"].strip("`") for row in rows] == [
        *beside.COMPARED[what].names * len({row[beside.COMPARED[what].label] for row in rows})
    ]
    pins = {pin for pins in peers.PINS.values() for pin in pins.split()} | {"Python", "calibrant"}
    for row in rows:
        words = row["version"].split()
        named = ["==".join(pair) for pair in zip(words[::2], words[1::2], strict=False)]
        assert set(named or words) <= pins, row


def test_every_subject_of_the_bench_has_its_comparison() -> None:
    asked = {part.words[1]: part for part in bench.PARTS if part.words[0].endswith("peers.beside")}
    assert set(asked) == set(beside.COMPARED)
    assert all(part.peers and part.subject == what for what, part in asked.items())


@pytest.mark.parametrize("again", [False, True])
def test_what_keeps_its_own_work_is_told_to_begin_anew(
    again: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "RESULTS", tmp_path)
    part = bench.Part("speed", "it", ("platform",), goes_on=True)
    assert ("--again" in bench.measured(part, quick=True, again=again)["command"]) == again
    other = bench.Part("speed", "it", ("platform",))
    assert "--again" not in bench.measured(other, quick=True, again=again)["command"]


def test_a_ratio_is_the_median_of_those_within_a_turn() -> None:
    compared = beside.Compared("rounds", ("ours", "its"), {"one": ("ns", beside.whole, "to ours")})
    ours = [{"one": cost, "version": "calibrant"} for cost in (1.0, 10.0, 100.0)]
    its = [{"one": cost, "version": "it 1"} for cost in (3.0, 20.0, 400.0)]
    assert beside.table(compared, {"9": {"ours": ours, "its": its}}).splitlines()[2:] == [
        "| 9 | `ours` | 10 | 1.00 | calibrant |",
        "| 9 | `its` | 20 | 3.00 | it 1 |",
    ]


def test_a_service_is_compared_with_ours_with_the_same_storage() -> None:
    compared = beside.COMPARED["service"]
    assert compared.base("afternoon, none") == "calibrant, none"
    assert compared.base("afternoon, SQLite") == "calibrant, SQLite"
    assert beside.COMPARED["speed"].base("river") == "calibrant"


def test_another_contender_comes_first_in_each_turn() -> None:
    assert [beside.turned(("a", "b", "c"), turn) for turn in range(4)] == [
        ("a", "b", "c"),
        ("b", "c", "a"),
        ("c", "a", "b"),
        ("a", "b", "c"),
    ]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(peers, "RESULTS", tmp_path)
    compared = beside.COMPARED["speed"]._replace(names=("calibrant", "river"))
    monkeypatch.setitem(beside.COMPARED, "speed", compared)
    return tmp_path


def test_a_run_goes_on_where_it_stopped(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    done, there = list[str](), {"calibrant"}

    def worked(what: str, name: str, stream: Path, path: Path) -> bool:
        done.append(name)
        if name in there:
            path.write_text(json.dumps({"one": 2.0, "version": name}))
        return name in there

    monkeypatch.setattr(beside, "worked", worked)
    assert beside.main(["speed", "--quick"]) == 1
    there.add("river")
    assert beside.main(["speed", "--quick"]) == 0
    assert done == ["calibrant", "river", "river"]
    assert "| 3,000 | `river` | 2 | 1.00 |  |  | river |" in capsys.readouterr().out
    assert beside.main(["speed", "--quick", "--again"]) == 0
    assert done[3:] == ["calibrant", "river"]


def test_what_was_done_with_other_pins_does_not_count(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = beside.parse(["speed"])
    before = beside.kept_in(told)
    assert beside.kept_in(told) == before
    monkeypatch.setitem(peers.PINS, "river", "river==0.0.1")
    assert beside.kept_in(told) != before


def test_a_quick_run_is_never_stored(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        beside.main(["speed", "--quick", "--store"])
    assert "--store must come without --quick" in capsys.readouterr().err


def test_a_contender_whose_environment_cannot_be_made_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "environment", {"river": None}.__getitem__)
    assert not beside.worked("speed", "river", tmp_path / "no.npz", tmp_path / "no.json")
    monkeypatch.setattr(peers, "environment", lambda package: sys.executable)
    assert not beside.worked("speed", "river", tmp_path / "no.npz", tmp_path / "no.json")


# ------------------------------------------------------------------------- what works inside


def test_what_is_fitted_one_by_one_is_fitted_on_all_outcomes_so_far(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = []

    def fit(raw: Any, outcomes: Any) -> Any:
        seen.append(len(raw))
        return lambda part: np.full(len(part), float(len(raw)))

    model, said = work.Refitted(fit), []
    for _ in range(2500):
        said.append(model.forecast(0.25))
        model.learn(0.25, 1)
    assert seen == [200, 1000, 2000]
    assert [said[k] for k in (0, 199, 200, 999, 1000, 2499)] == [0.25, 0.25, 200, 200, 1000, 2000]


@pytest.mark.slow
@pytest.mark.parametrize("who", ["sklearn_isotonic", "sklearn_platt", "sklearn_calibrated"])
def test_one_by_one_and_in_batches_the_same_is_forecast(who: str) -> None:
    pytest.importorskip("sklearn")
    given, places = beside.drawn(1010), [0, 199, 200, 999, 1000, 1009]
    model, said = work.maker(who)(), []
    for k, (p, y) in enumerate(zip(given["raw"].tolist(), given["outcomes"].tolist(), strict=True)):
        said += [model.forecast(p)] if k in places else []
        model.learn(p, y)
    batch = work.batches(who)(given["raw"], given["outcomes"].astype(int))
    np.testing.assert_allclose(said, batch[places], atol=1e-12)
    assert len(model.kept()) > 1010


def test_scaling_by_hand_finds_what_is_wrong() -> None:
    rng, model = np.random.default_rng(0), work.Platt()
    for p in rng.uniform(0.1, 0.9, 20_000).tolist():
        model.learn(model.feature(p), int(rng.random() < 0.3))
    assert model.slope == pytest.approx(0.0, abs=0.15)
    assert model.forecast(0.0) == pytest.approx(0.3, abs=0.05)


def events(rounds: int = 300) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    given = beside.drawn(rounds) | {"keys": rng.integers(0, 9, rounds), "behind": np.array(20)}
    return given | {"outcomes": given["outcomes"].astype(int)}


def test_an_outcome_comes_so_many_forecasts_after_its_own() -> None:
    rows = list(zip(*work.log(events()), strict=True))
    assert len(rows) == 600
    asked = [name for _, kind, name, _ in rows if kind == 0]
    told = [name for _, kind, name, _ in rows if kind == 1]
    assert asked == told == [f"order {k}" for k in range(300)]
    kinds = [kind for _, kind, _, _ in rows]
    seen = [kinds[:k].count(0) for k, kind in enumerate(kinds) if kind]
    assert seen[:280] == list(range(21, 301))
    whose = {name: key for key, kind, name, _ in rows if kind == 0}
    assert all(whose[name] == key for key, _, name, _ in rows)


def test_tables_come_to_the_same_by_batches_and_one_by_one() -> None:
    given = work.log(events())
    assert work.table_play("calibrant_play", *given, size=70).bodies() == (
        work.table_one("calibrant_one", *given).bodies()
    )


@pytest.mark.parametrize("who", ["river", "online_platt"])
def test_a_dictionary_has_a_model_for_each_key_that_learned_all(who: str) -> None:
    if who == "river":
        pytest.importorskip("river")
    given = events()
    models = work.dictionary(who, *work.log(given))
    assert set(models) == {f"key {k}" for k in given["keys"].tolist()}
    one, mine = work.maker(who)(), given["keys"] == 3
    for p, y in zip(given["raw"][mine].tolist(), given["outcomes"][mine].tolist(), strict=True):
        one.learn(one.feature(p), y)
    x = one.feature(0.3)
    assert models["key 3"].forecast(x) == one.forecast(x)


def test_every_contender_can_be_made_and_stored() -> None:
    names = {name for compared in beside.COMPARED.values() for name in compared.names}
    assert set(FITS) - {"netcal_bins", "netcal_bbq"} < names
    assert len(work.Ours().kept()) > 1000
    assert len(work.Platt().kept()) < 100


# ------------------------------------------------------------------ the service of an afternoon


def asked(app: Any, *requests: tuple[str, str, Any]) -> list[Any]:
    """What an application answers, one request after the other."""

    async def ask() -> list[Any]:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://a") as client:
            got = [await client.request(how, at, json=body) for how, at, body in requests]
        assert all(one.status_code == 200 for one in got)
        return [one.json() for one in got]

    return asyncio.run(ask())


@pytest.fixture
def afternoon(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    pytest.importorskip("river")
    pytest.importorskip("starlette")
    from benchmarks.peers import afternoon

    # Its own process closes a log as it ends.
    with contextlib.ExitStack() as logs:

        def opened(path: str) -> sqlite3.Connection:
            return logs.enter_context(contextlib.closing(opens(path)))

        opens = afternoon.opened
        monkeypatch.setattr(afternoon, "opened", opened)
        yield afternoon


def test_what_the_afternoon_answers_is_in_its_file_and_is_played_again(
    afternoon: Any, tmp_path: Path
) -> None:
    file, forecasts, outcomes = tmp_path / "log.db", f"{AT}/forecasts", f"{AT}/outcomes"
    rows = [{"id": f"order {k}", "raw": 0.6} for k in range(20)]
    told = [{"id": one["id"], "outcome": 1} for one in rows]
    made, answers, _, last = asked(
        afternoon.made(file),
        ("PUT", AT, {"seed": 7}),
        ("POST", forecasts, rows),
        ("POST", outcomes, told),
        ("POST", forecasts, {"id": "last", "raw": 0.6}),
    )
    assert made == {"stream": "s"}
    assert [one["id"] for one in answers] == [one["id"] for one in rows]
    with contextlib.closing(sqlite3.connect(file)) as log:
        assert log.execute("select count(*) from events").fetchone() == (41,)
    again = asked(afternoon.made(file), ("POST", forecasts, {"id": "other", "raw": 0.6}))
    assert again[0]["forecast"] == last["forecast"] > 0.5


def test_the_afternoon_learns_an_outcome_that_came_first(afternoon: Any) -> None:
    one, other = afternoon.Stream(), afternoon.Stream()
    one.outcomes("a", 1)
    one.forecasts("a", 0.7)
    other.forecasts("a", 0.7)
    other.outcomes("a", 1)
    assert one.forecasts("b", 0.4) == other.forecasts("b", 0.4)
    assert not one.early
