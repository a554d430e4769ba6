"""Streams with groups, with classes and with hidden draws: as the library's own, on disk."""

from __future__ import annotations

import io
import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest
from serving import TestClient, served, stream

import calibrant
from calibrant import Journal, Recalibrator, Table
from calibrant.classes import ClassCalibrant
from calibrant.client import Forecast, verify_commitment
from calibrant.client.asking import Mixture
from calibrant.groups import GroupRecalibrator
from calibrant.journal.commitment import commitment, is_kept, salt_of
from calibrant.kernels.compile import available

pytestmark = pytest.mark.once

LABELS = ["cat", "cow", "dog"]
GROUPED = {"groups": ["north"], "method": "calibrant", "resolution": 10, "buckets": 10}
CLASSED = {"classes": LABELS, "method": "calibrant", "resolution": None, "buckets": None}
VECTORS = [[0.2, 0.3, 0.5], [1, 0, 0], [0.6, 0.3, 0.1], [0.0, 0.75, 0.25]]
NAMES = [["north"], [], ["south", "late"], ["north", "late"]]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "streams.db"


@pytest.fixture
def client(file: Path) -> Iterator[TestClient]:
    with served(file) as made:
        yield made


def in_groups(client: TestClient, at: str, lone: Any, count: int = 24) -> list[bytes]:
    """Play rounds in groups, outcomes three late, in a service and in the library."""
    told = []
    for k in range(count):
        asked = {"id": f"a{k}", "raw": k / count, "groups": NAMES[k % 4]}
        made = client.post(f"{at}/forecasts", json=asked)
        ticket = lone.forecast(k / count, groups=NAMES[k % 4], id=f"a{k}")
        assert (made.json()["forecast"], made.json()["mean"]) == (ticket.value, ticket.mean)
        told.append(made.content)
        if k >= 3:
            assert learned(client, at, f"a{k - 3}", k % 2) == "learned"
            lone.observe(f"a{k - 3}", k % 2)
    return told


def in_classes(client: TestClient, at: str, lone: Any, count: int = 16) -> list[bytes]:
    """Play rounds over classes, outcomes three late, in a service and in the library."""
    told = []
    for k in range(count):
        made = client.post(f"{at}/forecasts", json={"id": f"a{k}", "raw": VECTORS[k % 4]})
        ticket = lone.forecast(VECTORS[k % 4], id=f"a{k}")
        found = made.json()
        assert found["forecast"] == ticket.value.tolist()
        assert found["mean"] == ticket.mean.tolist()
        assert found["classwise"] == ticket.classwise.tolist()
        assert found["top"] == LABELS[ticket.top]
        sure = ticket.confidence, ticket.confidence_mean
        assert (found["confidence"], found["confidence_mean"]) == sure
        assert found["mixture"]["values"] == list(ticket.parts[-1].mixture.values)
        told.append(made.content)
        if k >= 3:
            assert learned(client, at, f"a{k - 3}", LABELS[k % 3]) == "learned"
            lone.observe(f"a{k - 3}", k % 3)
    return told


def learned(client: TestClient, at: str, id: str, outcome: Any) -> Any:
    told = client.post(f"{at}/outcomes", json={"id": id, "outcome": outcome})
    return told.json().get("status")


def test_rounds_in_groups_are_those_of_the_library(client: TestClient) -> None:
    at = stream(client, **GROUPED)
    lone = GroupRecalibrator(["north"], resolution=10, buckets=10, seed=7)
    in_groups(client, at, lone)
    assert calibrant.load(client.get(f"{at}/state").content) == lone
    assert client.get(f"{at}/certificate").json() == json.loads(
        json.dumps(lone.certificate().to_dict())
    )
    known = client.get(f"{at}/forecasts/a2").json()
    assert (known["groups"], known["outcome"]) == (["south", "late"], 1)
    shown = client.get(f"{at}/report").json()
    assert {row["name"]: row["rounds"] for row in shown["breakdown"]["rows"]} == {
        "north": 11,
        "south": 5,
        "late": 10,
    }


def known_ticket(client: TestClient, at: str, k: int) -> tuple[str, float, str]:
    """Return which class came first, its raw probability, and which class came."""
    known = client.get(f"{at}/forecasts/a{k}").json()
    return known["top"], known["raw"][LABELS.index(known["top"])], known["outcome"]


@pytest.mark.parametrize("unit", ["rounds", "time"])
def test_a_stream_that_forgets_is_that_of_the_library(client: TestClient, unit: str) -> None:
    fading = {"half_life": 8.0, "unit": unit}
    at = stream(client, "fades", method="fading", parameters=fading)
    lone = Recalibrator("fading", resolution=10, buckets=5, seed=7, **fading)
    for k in range(60):
        asked = {"id": f"f{k}", "raw": 0.3, "time": 2.0 * k}
        told = client.post(f"{at}/forecasts", json=asked).json()
        ticket = lone.forecast(0.3, id=f"f{k}", time=2.0 * k)
        assert (told["forecast"], told["mean"]) == (ticket.value, ticket.mean)
        client.post(f"{at}/outcomes", json={"id": f"f{k}", "outcome": int(k > 30)})
        lone.observe(ticket, int(k > 30))
    assert client.get(at).json()["settings"]["parameters"] == fading
    assert calibrant.load(client.get(f"{at}/state").content) == lone
    late = client.post(f"{at}/forecasts", json={"id": "no time", "raw": 0.3})
    assert late.status_code == (422 if unit == "time" else 200)


def test_rounds_over_classes_are_those_of_the_library(client: TestClient) -> None:
    at, lone = stream(client, **CLASSED), ClassCalibrant(3, seed=7)
    in_classes(client, at, lone)
    assert calibrant.load(client.get(f"{at}/state").content) == lone
    found = client.get(f"{at}/certificate").json()
    assert found == json.loads(json.dumps(lone.certificate().to_dict()))
    assert client.get(f"{at}/forecasts/a1").json()["outcome"] == "cow"
    shown = client.get(f"{at}/report").json()
    assert [row["name"] for row in shown["breakdown"]["rows"]] == LABELS
    assert shown["n_rounds"] == 13
    closed = [known_ticket(client, at, k) for k in range(13)]
    right = [top == came for top, _, came in closed]
    assert shown["base_rate"] == sum(right) / 13
    errors = [(raw - hit) ** 2 for (_, raw, _), hit in zip(closed, right, strict=True)]
    assert shown["raw"]["brier"] == pytest.approx(sum(errors) / 13, abs=1e-12)
    rates = {row["name"]: row["rate"] for row in shown["breakdown"]["rows"]}
    came = [outcome for _, _, outcome in closed]
    assert rates == {name: came.count(name) / 13 for name in LABELS}
    assert client.get(f"{at}/curve").json()["rounds"] == 13
    assert client.get(f"{at}/alarms").json()["waiting"] == 3


def test_machine_code_takes_over_from_a_stream_that_is_slow_without(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("calibrant.serve.app.EVERY", 0.0)
    monkeypatch.setattr("calibrant.serve.app.SOON", 3)
    lone = ClassCalibrant(3, seed=7)

    def play(client: TestClient, at: str, rounds: range) -> None:
        for k in rounds:
            made = client.post(f"{at}/forecasts", json={"id": f"a{k}", "raw": VECTORS[k % 4]})
            assert (
                made.json()["classwise"]
                == lone.forecast(VECTORS[k % 4], id=f"a{k}").classwise.tolist()
            )
            assert learned(client, at, f"a{k}", LABELS[k % 3]) == "learned"
            lone.observe(f"a{k}", k % 3)

    with served(file, fast=True) as client:
        at, over = stream(client, **CLASSED), stream(client, "g", **GROUPED)
        folds = client.app.state.desk.ledger.folds  # type: ignore[attr-defined]
        play(client, at, range(2))
        assert folds[1]._quick is None
        play(client, at, range(2, 4))
        while folds[1]._quick is None:
            assert client.get(over).status_code == 200
        play(client, at, range(4, 12))
        assert folds[2]._quick is None
        state = client.get(f"{at}/state").content
    assert calibrant.load(state) == lone
    # So it does where many events are played again.
    monkeypatch.setattr("calibrant.journal.again.LONG", 10)
    with closing(sqlite3.connect(file)) as held, held:
        held.execute("delete from snapshot")
    held.close()
    with served(file) as client:
        folds = client.app.state.desk.ledger.folds  # type: ignore[attr-defined]
        assert folds[1]._quick is folds[1].model
        assert client.get(f"{at}/state").content == state


@pytest.mark.parametrize(
    ("settings", "slow"),
    [
        ({"method": "calibrant"}, True),
        ({"method": "calibrant", "keyed": True}, True),
        ({"method": "foster_hart"}, False),
    ],
    ids=["default", "keyed", "foster_hart"],
)
def test_machine_code_takes_over_from_streams_with_experts(
    settings: dict[str, Any], slow: bool, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("calibrant.serve.app.EVERY", 0.0)
    monkeypatch.setattr("calibrant.serve.app.SOON", 3)
    known = {"resolution": None, "buckets": None} | settings
    key = {"key": "a"} if "keyed" in settings else {}
    with served(file, fast=True) as client, served(file.with_name("plain.db")) as plain:
        at, before = stream(client, "s", **known), 0
        assert stream(plain, "s", **known) == at
        fold = client.app.state.desk.ledger.folds[1]  # type: ignore[attr-defined]
        for k in range(12):
            asked = {"id": f"a{k}", "raw": k / 11, **key}
            made = [each.post(f"{at}/forecasts", json=asked).content for each in (client, plain)]
            assert made[0] == made[1]
            assert [learned(each, at, f"a{k}", k % 2) for each in (client, plain)] == [
                "learned",
                "learned",
            ]
            for _ in range(2_000 * (slow and k == 4)):
                if fold._quick is not None:
                    break
                assert client.get(at).status_code == 200
            before += fold._quick is None
        assert (fold._quick is fold.model) == slow
        assert before >= 2
        if slow:
            assert (fold.model._rows.steps is not None) == available()


@pytest.mark.parametrize("settings", [GROUPED, CLASSED], ids=["groups", "classes"])
def test_a_restart_and_a_log_without_snapshots_change_nothing(
    settings: dict[str, Any], file: Path
) -> None:
    played = in_groups if "groups" in settings else in_classes
    with served(file) as client:
        at = stream(client, **settings, unknown="keep")
        if "groups" in settings:
            lone: Any = GroupRecalibrator(["north"], resolution=10, buckets=10, seed=7)
        else:
            lone = ClassCalibrant(3, seed=7)
        told = played(client, at, lone)
        other = LABELS[0] if "classes" in settings else 0
        client.post(f"{at}/outcomes", json={"id": "early", "outcome": other})
        client.put(f"{at}/outcomes/a4", json={"outcome": other})
        client.delete(f"{at}/forecasts/a{len(told) - 1}")
        before = seen(client, at)
    for drop in (False, True):
        if drop:
            with closing(sqlite3.connect(file)) as held, held:
                assert held.execute("delete from snapshot").rowcount
            held.close()
        with served(file) as client:
            assert seen(client, at) == before
            assert again(client, at, settings, len(told)) == told
    with Journal(file, stream="s") as journal:
        assert journal.verify() == before["stream"]["sequence"]


def seen(client: TestClient, at: str) -> dict[str, Any]:
    """Return all that a service tells of a stream."""
    parts = ("report", "curve", "alarms", "certificate")
    told = {name: client.get(f"{at}/{name}").json() for name in parts}
    told["events"] = client.get(f"{at}/events").content
    told["state"] = client.get(f"{at}/state").content
    return told | {"stream": client.get(at).json()}


def again(client: TestClient, at: str, settings: dict[str, Any], count: int) -> list[bytes]:
    """Ask for the same forecasts once more."""
    told = []
    for k in range(count):
        asked: dict[str, Any] = {"id": f"a{k}", "raw": VECTORS[k % 4]}
        if "groups" in settings:
            asked = {"id": f"a{k}", "raw": k / count, "groups": NAMES[k % 4]}
        told.append(client.post(f"{at}/forecasts", json=asked).content)
    return told


def test_the_same_id_with_other_groups_or_another_vector_is_409_with_both_values(
    client: TestClient,
) -> None:
    at, over = stream(client, "g", **GROUPED), stream(client, "c", **CLASSED)
    asked = {"id": "x", "raw": 0.5, "groups": ["a", "b", "a"]}
    first = client.post(f"{at}/forecasts", json=asked)
    assert client.post(f"{at}/forecasts", json=asked).content == first.content
    told = client.post(f"{at}/forecasts", json=asked | {"groups": ["a"]}).json()
    assert (told["status"], told["stored"]["groups"]) == (409, ["a", "b"])
    assert told["told"]["groups"] == ["a"]
    client.post(f"{over}/forecasts", json={"id": "x", "raw": [0.5, 0.25, 0.25]})
    told = client.post(f"{over}/forecasts", json={"id": "x", "raw": [0.25, 0.5, 0.25]}).json()
    assert (told["stored"]["x"], told["told"]["x"]) == ([0.5, 0.25, 0.25], [0.25, 0.5, 0.25])
    assert learned(client, over, "x", "cow") == "learned"
    assert learned(client, over, "x", "cow") == "repeated"
    told = client.post(f"{over}/outcomes", json={"id": "x", "outcome": "dog"}).json()
    assert (told["status"], told["stored"], told["told"]) == (409, {"x": "cow"}, {"x": "dog"})


def test_classes_come_early_are_corrected_and_expire(client: TestClient) -> None:
    at, lone = stream(client, **CLASSED, unknown="keep", horizon=4), ClassCalibrant(3, seed=7)
    assert learned(client, at, "e", "dog") == "early"
    for id in "eabcd":
        client.post(f"{at}/forecasts", json={"id": id, "raw": VECTORS[0]})
        lone.forecast(VECTORS[0], id=id)
        if id == "e":
            lone.observe("e", 2)
    assert client.get(f"{at}/forecasts/e").json()["outcome"] == "dog"
    assert learned(client, at, "a", "cat") == "learned"
    closed = lone.observe("a", 0)
    told = client.put(f"{at}/outcomes/a", json={"outcome": "cow"})
    assert told.json() | {"sequence": 0} == {
        "id": "a",
        "status": "corrected",
        "outcome": "cow",
        "sequence": 0,
    }
    lone.correct(closed, 1)
    assert client.put(f"{at}/outcomes/a", json={"outcome": "cow"}).json()["status"] == "repeated"
    assert client.put(f"{at}/outcomes/a", json={"outcome": "dog"}).status_code == 409
    assert client.delete(f"{at}/forecasts/b").json()["status"] == "expired"
    lone.expire("b")
    client.post(f"{at}/forecasts", json=[{"id": id, "raw": VECTORS[1]} for id in ("f", "g", "h")])
    assert learned(client, at, "c", "cat") == 410
    parts = client.get(f"{at}/report").json()["breakdown"]["rows"]
    rates = {row["name"]: row["rate"] for row in parts}
    assert rates == {"cat": 0.0, "cow": 0.5, "dog": 0.5}
    assert client.get(at).json()["learned"] == lone.rounds == 2


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"groups": [], "classes": LABELS}, "groups must be left out"),
        ({"groups": [], "keyed": True}, "keyed must be left out"),
        ({"classes": LABELS, "keyed": True}, "keyed must be left out"),
        ({"groups": [], "method": "gaps"}, "method must be left out"),
        ({"groups": [], "loss": "log"}, "loss must be left out"),
        ({"groups": [], "raw_safe": 0.1}, "raw_safe must be left out"),
        ({"classes": LABELS, "raw_safe": 0.1}, "raw_safe must be left out"),
        ({"classes": ["a", "a"]}, "classes must have a name each"),
        ({"classes": ["a"]}, "length >= 2"),
        ({"classes": LABELS, "parameters": {"groups": 3}}, "must be"),
        ({"groups": [], "parameters": {"windows": 3}}, "parameters must be those of the method"),
        ({"reveal": "never"}, "Invalid enum value"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(
    settings: dict[str, Any], rule: str, client: TestClient
) -> None:
    told = client.put("/v1/streams/s", json=settings)
    assert (told.status_code, rule in told.json()["detail"]) == (422, True), told.text
    assert client.get("/v1/streams").json() == []


@pytest.mark.parametrize(
    ("kind", "asked"),
    [
        (GROUPED, {"raw": [0.5, 0.5]}),
        (GROUPED, {"raw": 0.5, "key": "k"}),
        (GROUPED, {"raw": 0.5, "groups": [""]}),
        (CLASSED, {"raw": 0.5}),
        (CLASSED, {"raw": [0.5, 0.5]}),
        (CLASSED, {"raw": [0.5, 0.5, 0.5]}),
        (CLASSED, {"raw": [1.5, 0.0, -0.5]}),
        (CLASSED, {"raw": VECTORS[0], "groups": ["north"]}),
        (CLASSED, {"raw": VECTORS[0], "key": "k"}),
        ({}, {"raw": 0.5, "groups": ["north"]}),
        ({}, {"raw": [0.5, 0.5]}),
        ({"keyed": True}, {"raw": 0.5, "key": "k", "groups": ["north"]}),
        ({"keyed": True}, {"raw": [0.5, 0.5], "key": "k"}),
    ],
)
def test_a_forecast_of_another_kind_is_refused_and_leaves_no_trace(
    kind: dict[str, Any], asked: dict[str, Any], client: TestClient
) -> None:
    at = stream(client, **kind)
    before = client.get(f"{at}/state").content
    assert client.post(f"{at}/forecasts", json={"id": "x"} | asked).status_code == 422
    assert client.get(f"{at}/state").content == before
    assert client.get(f"{at}/events").content == b""


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [(CLASSED, 1), (CLASSED, "ox"), (CLASSED, True), (GROUPED, "cat"), (GROUPED, 2), ({}, "1")],
)
def test_an_outcome_of_another_kind_is_refused(
    kind: dict[str, Any], outcome: Any, client: TestClient
) -> None:
    at = stream(client, **kind)
    raw = VECTORS[0] if "classes" in kind else 0.5
    client.post(f"{at}/forecasts", json={"id": "x", "raw": raw})
    told = client.post(f"{at}/outcomes", json={"id": "x", "outcome": outcome})
    assert told.status_code == 422
    assert client.get(at).json()["open"] == 1


@pytest.mark.parametrize("settings", [GROUPED, CLASSED], ids=["groups", "classes"])
def test_what_a_kind_does_not_have_is_told(settings: dict[str, Any], client: TestClient) -> None:
    at = stream(client, **settings)
    for route in ("preview?raw=0.5", "keys"):
        told = client.get(f"{at}/{route}")
        assert (told.status_code, told.json()["type"]) == (422, "urn:calibrant:invalid")


def test_a_state_is_handed_over_to_a_stream_of_the_same_kind_alone(client: TestClient) -> None:
    streams = {
        "g": stream(client, "g", **GROUPED),
        "g2": stream(client, "g2", **(GROUPED | {"groups": ["south"]})),
        "c": stream(client, "c", **CLASSED),
        "c2": stream(client, "c2", **(CLASSED | {"classes": ["a", "b"]})),
        "b": stream(client, "b"),
    }
    lone = ClassCalibrant(3, seed=9)
    for k in range(5):
        lone.observe(lone.forecast(VECTORS[k % 4]), k % 3)
    waits = lone.forecast(VECTORS[2], id="waits")
    for name, at in streams.items():
        told = client.put(f"{at}/state", content=lone.to_bytes())
        assert (name, told.status_code) == (name, 200 if name == "c" else 422)
    grouped = GroupRecalibrator(["north"], resolution=10, buckets=10).to_bytes()
    assert client.put(f"{streams['g2']}/state", content=grouped).status_code == 422
    assert client.put(f"{streams['g']}/state", content=grouped).status_code == 200
    assert learned(client, streams["c"], "waits", LABELS[waits.top]) == "learned"
    lone.observe("waits", waits.top)
    assert calibrant.load(client.get(f"{streams['c']}/state").content) == lone


def test_the_live_page_shows_groups_and_classes_by_name(client: TestClient) -> None:
    at, over = stream(client, "g", **GROUPED), stream(client, "c", **CLASSED)
    assert client.get("/live/streams/c").status_code == 200
    in_groups(client, at, GroupRecalibrator(["north"], resolution=10, buckets=10, seed=7))
    in_classes(client, over, ClassCalibrant(3, seed=7))
    assert client.get("/live/").text.count("Too early to say") == 2
    shown = client.get("/live/streams/g").text
    assert all(name in shown for name in ("north", "south", "late"))
    shown = client.get("/live/streams/c").text
    assert all(name in shown for name in LABELS)


def test_events_tell_groups_vectors_and_names(client: TestClient) -> None:
    at, over = stream(client, "g", **GROUPED), stream(client, "c", **CLASSED)
    in_groups(client, at, GroupRecalibrator(["north"], resolution=10, buckets=10, seed=7), 5)
    in_classes(client, over, lone := ClassCalibrant(3, seed=7), 5)
    rows = [json.loads(line) for line in client.get(f"{at}/events").text.splitlines()]
    assert [row["groups"] for row in rows if row["kind"] == "forecast"] == [*NAMES, NAMES[0]]
    rows = [json.loads(line) for line in client.get(f"{over}/events").text.splitlines()]
    first, outcomes = rows[0], [row for row in rows if row["kind"] == "outcome"]
    assert (first["raw"], len(first["vector"])) == (VECTORS[0], 3)
    assert [row["label"] for row in outcomes] == ["cat", "cow"]
    assert [row["x"] for row in outcomes] == [0.0, 1.0]
    for route in (at, over):
        lines = [json.loads(line) for line in client.get(f"{route}/events").text.splitlines()]
        table = pq.read_table(io.BytesIO(client.get(f"{route}/events?format=parquet").content))
        assert table.to_pylist() == lines
    assert lone.rounds == 2


# --------------------------------------------------------------------------- hidden draws


def drawn_in(told: dict[str, Any]) -> set[str]:
    """Return which names of an answer tell the draw."""
    return {"forecast", "confidence", "classwise", "salt", "revealed", "vector"} & {
        name for name, value in told.items() if value is not None
    }


HIDDEN = [
    ({"buckets": 10}, 0.3, 1),
    ({"method": "calibrant", "buckets": None, "resolution": None}, 0.3, 1),
    ({"method": "polynomial_regret"}, 0.3, 1),
    ({"keyed": True, "buckets": 10}, 0.3, 1),
    (GROUPED, 0.3, 1),
    (CLASSED, [0.2, 0.3, 0.5], "cow"),
]


@pytest.mark.parametrize(("settings", "raw", "outcome"), HIDDEN)
def test_a_hidden_draw_is_told_with_its_outcome_and_is_the_one_that_was_fixed(
    settings: dict[str, Any], raw: Any, outcome: Any, file: Path
) -> None:
    with served(file) as client:
        at = stream(client, **settings, reveal="outcome")
        plain = stream(client, "plain", **settings)
        asked = {"id": "x", "raw": raw} | ({"key": "k"} if "keyed" in settings else {})
        first = client.post(f"{at}/forecasts", json=asked)
        open_one = client.post(f"{plain}/forecasts", json=asked).json()
        made = first.json()
        assert drawn_in(made) == set()
        assert (made["mean"], made["mixture"]) == (open_one["mean"], open_one["mixture"])
        known = client.get(f"{at}/forecasts/x").json()
        assert drawn_in(known) == set()
        assert known["commitment"] == made["commitment"]
        (row,) = (json.loads(line) for line in client.get(f"{at}/events").text.splitlines())
        assert drawn_in(row) == set()
        told = client.post(f"{at}/outcomes", json={"id": "x", "outcome": outcome})
        revealed = told.json()["revealed"]
        names = {*revealed} - {"salt"}
        assert {name: revealed[name] for name in names} == {n: open_one[n] for n in names}
        assert "forecast" in names
        assert verify_commitment(msgspec.convert(made, Forecast), told.json())
        after = client.get(f"{at}/forecasts/x").json()
        assert verify_commitment(msgspec.convert(made, Forecast), after)
        (row, _) = (json.loads(line) for line in client.get(f"{at}/events").text.splitlines())
        assert "forecast" in drawn_in(row)
        assert client.post(f"{at}/forecasts", json=asked).content == first.content
    with served(file) as client:
        assert client.post(f"{at}/forecasts", json=asked).content == first.content
        again = client.post(f"{at}/outcomes", json={"id": "x", "outcome": outcome}).json()
        assert (again["status"], again["revealed"]) == ("repeated", revealed)
    with Journal(file, stream="s") as journal:
        assert journal.verify() == 3


def test_no_other_draw_salt_or_id_verifies() -> None:
    salt = salt_of(bytes(16), 3, "x")
    told = commitment(salt, "x", [0.5, 0.25])
    assert is_kept(told, salt.hex(), "x", [0.5, 0.25])
    for wrong in (
        (salt.hex(), "x", [0.25, 0.5]),
        (salt.hex(), "x", [0.5]),
        (salt.hex(), "y", [0.5, 0.25]),
        (salt_of(bytes(16), 4, "x").hex(), "x", [0.5, 0.25]),
        (salt_of(b"1" * 16, 3, "x").hex(), "x", [0.5, 0.25]),
        (salt.hex()[2:], "x", [0.5, 0.25]),
        ("no digits", "x", [0.5, 0.25]),
    ):
        assert not is_kept(told, *wrong)
    made = Forecast(id="x", mean=0.5, mixture=Mixture((0.5,), (1.0,)), sequence=1)
    assert not verify_commitment(made, {"forecast": 0.5, "salt": salt.hex()})
    made = msgspec.structs.replace(made, commitment=commitment(salt, "x", [0.5]))
    assert verify_commitment(made, {"forecast": 0.5, "salt": salt.hex()})
    assert not verify_commitment(made, {"forecast": 0.55, "salt": salt.hex()})
    assert not verify_commitment(made, {"forecast": 0.5})


def test_hidden_draws_that_expire_come_early_or_are_corrected(client: TestClient) -> None:
    at = stream(client, reveal="outcome", unknown="keep", horizon=3)
    assert "revealed" not in client.post(f"{at}/outcomes", json={"id": "e", "outcome": 1}).json()
    made = client.post(f"{at}/forecasts", json={"id": "e", "raw": 0.5}).json()
    assert drawn_in(made) == set()
    assert "forecast" in client.get(f"{at}/forecasts/e").json()
    told = client.post(f"{at}/outcomes", json={"id": "e", "outcome": 1}).json()
    assert verify_commitment(msgspec.convert(made, Forecast), told)
    for id in "abcdfg":
        client.post(f"{at}/forecasts", json={"id": id, "raw": 0.5})
    assert [drawn_in(client.get(f"{at}/forecasts/{id}").json()) for id in "cdfg"] == [
        {"forecast", "salt"},
        *[set()] * 3,
    ]
    client.delete(f"{at}/forecasts/d")
    assert drawn_in(client.get(f"{at}/forecasts/d").json()) == {"forecast", "salt"}
    wrong = client.post(f"{at}/outcomes", json=[{"id": "f", "outcome": 1}] * 2)
    assert [one["status"] for one in wrong.json()] == ["learned", "repeated"]
    assert client.put(f"{at}/outcomes/f", json={"outcome": 0}).json()["status"] == "corrected"
    other = client.post(f"{at}/outcomes", json={"id": "f", "outcome": 1})
    assert other.json()["status"] == "repeated"
    open_ids = [
        row["id"]
        for row in map(json.loads, client.get(f"{at}/events").text.splitlines())
        if row["kind"] == "forecast" and row["forecast"] is None
    ]
    assert open_ids == ["g"]


@pytest.mark.parametrize(
    ("more", "asked"),
    [
        ({"buckets": 10}, {"raw": 0.53}),
        ({"buckets": 10, "method": "calibrant"}, {"raw": 0.53}),
        ({"buckets": 10, "keyed": True}, {"raw": 0.53, "key": "k"}),
        (GROUPED, {"raw": 0.53, "groups": ["north", "late"]}),
        (CLASSED, {"raw": [0.31, 0.32, 0.37]}),
    ],
    ids=["plain", "calibrant", "keyed", "groups", "classes"],
)
def test_all_that_is_shown_is_the_same_whatever_open_draws_are(
    more: dict[str, Any], asked: dict[str, Any], tmp_path: Path
) -> None:
    pages, draws = set(), set()
    for seed in range(4):
        with served(tmp_path / f"{seed}.db") as client:
            at = stream(client, **(more | {"reveal": "outcome", "seed": seed}))
            made = client.post(f"{at}/forecasts", json=[{"id": id} | asked for id in "xyz"]).json()
            for one in made:
                del one["commitment"]
            shown = [client.get(path).text for path in ("/live/", "/live/streams/s", at)]
            looked = [client.get(f"{at}/{name}").text for name in LOOKS]
            pages.add(json.dumps([made, *shown, *looked]))
            outcomes = [{"id": id, "outcome": "cow" if "classes" in more else 1} for id in "xyz"]
            found = client.post(f"{at}/outcomes", json=outcomes).json()
            draws.add(str([one["revealed"]["forecast"] for one in found]))
    assert len(draws) > 1
    assert len(pages) == 1


LOOKS = ("certificate", "report", "curve", "alarms", "preview?raw=0.53", "events", "keys?worst=3")


def test_a_journal_of_a_service_with_hidden_draws_is_played_as_it_was(file: Path) -> None:
    lone = Recalibrator(resolution=10, buckets=5, seed=7)
    with served(file) as client:
        at = stream(client, reveal="outcome")
        for k in range(80):
            client.post(f"{at}/forecasts", json={"id": str(k), "raw": k / 80})
            lone.forecast(k / 80, id=str(k))
        told = [{"id": str(k), "outcome": k % 2} for k in range(80)]
        shown = client.post(f"{at}/outcomes", json=told).json()
        for k in range(80):
            assert shown[k]["revealed"]["forecast"] == lone.observe(str(k), k % 2).value
        assert client.put(f"{at}/outcomes/3", json={"outcome": 0}).status_code == 200
        state = client.get(f"{at}/state").content
    salts = {one["revealed"]["salt"] for one in shown}
    assert len(salts) == 80
    copied = shutil.copy(file, file.with_name("copy.db"))
    with closing(sqlite3.connect(copied)) as held, held:
        held.execute("delete from snapshot")
    held.close()
    with served(Path(copied)) as client:
        assert client.get(f"{at}/state").content == state
    assert not isinstance(calibrant.load(state), Table)
