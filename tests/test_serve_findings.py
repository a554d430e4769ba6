"""What a service has seen: reports, curves, alarms, previews, and that a replay sees the same."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from serving import TestClient, served, stream

import calibrant
from calibrant import Calibrant, Journal, Recalibrator
from calibrant.errors import CorruptState
from calibrant.journal.fold import SHAPE, WITNESSED, Fold
from calibrant.journal.ledger import Ledger
from calibrant.journal.recover import IDS, verified
from calibrant.journal.sqlite import SqliteStore
from calibrant.recalibrate.preview import Preview
from calibrant.serve.chronicle import Chronicle, chronicle_of
from calibrant.summary import read_summary
from calibrant.summary.collected import windows_of

pytestmark = pytest.mark.once


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "streams.db"


@pytest.fixture
def client(file: Path) -> Iterator[TestClient]:
    with served(file) as made:
        yield made


def fold_in(client: TestClient, name: str = "s") -> Fold:
    ledger: Ledger = client.app.state.desk.ledger  # type: ignore[attr-defined]
    return ledger.folds[ledger.lines[name].number]


def chronicle(client: TestClient, name: str = "s") -> Chronicle:
    found = fold_in(client, name).witness
    assert isinstance(found, Chronicle)
    return found


def play(
    client: TestClient, at: str, rounds: int, *, seed: int = 1, first: int = 0, **more: Any
) -> None:
    """Make rounds whose outcomes come late and in any order, some corrected, some dropped."""
    dice = random.Random(seed)
    for start in range(first, first + rounds, 50):
        ids = [f"r{k}" for k in range(start, start + 50)]
        told = [{"id": id, "raw": dice.random(), "time": 10.0 * start} | more for id in ids]
        assert client.post(f"{at}/forecasts", json=told).status_code == 200
        dice.shuffle(ids)
        late = [
            {"id": id, "outcome": int(dice.random() < 0.4), "time": 10.0 * start + dice.random()}
            for id in ids[2:]
        ]
        assert client.post(f"{at}/outcomes", json=late).status_code == 200
        wrong = late[dice.randrange(len(late))]
        put = client.put(f"{at}/outcomes/{wrong['id']}", json={"outcome": 1 - wrong["outcome"]})
        assert put.json()["status"] == "corrected", put.text
        assert client.delete(f"{at}/forecasts/{ids[0]}").status_code == 200


def test_a_report_is_the_summary_of_the_outcomes_as_they_stand(client: TestClient) -> None:
    at = stream(client)
    play(client, at, 200)
    told = client.get(f"{at}/report")
    assert told.headers["content-type"] == "application/json"
    summary = read_summary(told.json())
    rows = [client.get(f"{at}/forecasts/r{k}").json() for k in range(200)]
    known = [row for row in rows if row["outcome"] is not None]
    outcomes = np.array([row["outcome"] for row in known])
    assert summary["n_rounds"] == len(known) == 192
    assert summary["base_rate"] == pytest.approx(outcomes.mean())
    for name in ("raw", "forecast", "mean"):
        errors = (np.array([row[name] for row in known]) - outcomes) ** 2
        assert summary[name]["brier"] == pytest.approx(errors.mean(), abs=1e-9)
    assert summary["certificate"]["rounds"] == 192


def test_a_report_can_be_read_as_a_page(client: TestClient) -> None:
    at = stream(client)
    play(client, at, 50)
    page = client.get(f"{at}/report", headers={"accept": "text/html,*/*"})
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert page.text.lstrip().startswith("<!DOCTYPE html>")
    assert "<script" not in page.text
    assert client.get(f"{at}/report?format=html").text.count("<h1") == 1
    json = client.get(f"{at}/report?format=json", headers={"accept": "text/html"})
    assert json.json()["n_rounds"] == 48
    assert client.get(f"{at}/report?format=pdf").status_code == 422


def test_a_curve_tells_counts_and_bands_of_each_bucket(client: TestClient) -> None:
    at = stream(client)
    assert client.get(f"{at}/curve").json()["raw"] == []
    for k, outcome in enumerate([1, 1, 0, 1]):
        client.post(f"{at}/forecasts", json={"id": str(k), "raw": 0.62})
        client.post(f"{at}/outcomes", json={"id": str(k), "outcome": outcome})
    told = client.get(f"{at}/curve").json()
    (bucket,) = told["raw"]
    assert (bucket["lower"], bucket["upper"], bucket["count"]) == (0.6, 0.65, 4)
    assert (bucket["mean_forecast"], bucket["mean_outcome"]) == (pytest.approx(0.62), 0.75)
    assert 0 < bucket["band_low"] < 0.75 < bucket["band_high"] < 1
    assert sum(row["count"] for row in told["forecast"]) == told["rounds"] == 4


def test_alarms_ring_with_their_times_and_assumptions(client: TestClient) -> None:
    at = stream(client, alarm=0.01, patience=40)
    quiet = client.get(f"{at}/alarms").json()
    assert quiet["alarms"] == []
    assert (quiet["alarm"], quiet["horizon"], quiet["judged"]) == (0.01, 40, 0)
    assert "40 later" in quiet["assumptions"][0]
    for k in range(100):
        told = {"id": str(k), "raw": 0.9, "time": 1000.0 + k}
        client.post(f"{at}/forecasts", json=told)
        if k % 10 and k >= 2:
            client.post(f"{at}/outcomes", json={"id": str(k), "outcome": k % 2})
    found = client.get(f"{at}/alarms").json()
    (alarm,) = found["alarms"]
    assert alarm["name"] == "raw"
    assert alarm["time"] == 1000.0 + alarm["number"]
    assert alarm["since"] < 20
    # Of the oldest forecasts, which the alarm waits for no more, six have no outcome.
    assert (found["missing"], found["judged"] + found["missing"]) == (7, 60)
    assert found["waiting"] == 40


def test_a_preview_is_what_the_next_forecast_is_drawn_from_without_the_draw(
    client: TestClient,
) -> None:
    at = stream(client)
    play(client, at, 50)
    seen = client.get(f"{at}/preview?raw=0.37").json()
    assert set(seen) == {"raw", "mean", "mixture", "fallback"}
    made = client.post(f"{at}/forecasts", json={"id": "next", "raw": 0.37}).json()
    assert (seen["mean"], seen["mixture"]) == (pytest.approx(made["mean"]), made["mixture"])
    assert client.get(f"{at}/preview").status_code == 422
    for raw in ("1.1", "nan", "x", "-0.1", "1e400"):
        assert client.get(f"{at}/preview?raw={raw}").status_code == 422
    assert client.get(f"{at}/preview?raw=0.1&key=a").status_code == 422


def test_a_keyed_stream_is_previewed_by_key_and_reported_as_one(client: TestClient) -> None:
    at = stream(client, keyed=True)
    asked = [{"id": str(k), "raw": k / 60, "key": ("a", 7, "7")[k % 3]} for k in range(60)]
    client.post(f"{at}/forecasts", json=asked)
    outcomes = [{"id": str(k), "outcome": int(k % 4 == 0)} for k in range(60)]
    client.post(f"{at}/outcomes", json=outcomes)
    table = fold_in(client).model
    for text, key in (("a", "a"), ("7", "7")):
        seen = client.get(f"{at}/preview?raw=0.5&key={text}").json()
        assert seen["mean"] == Preview(table[key]).whole(0.5).mean  # type: ignore[index]
    assert client.get(f"{at}/preview?raw=0.5").status_code == 422
    assert client.get(f"{at}/preview?raw=0.5&key=b").status_code == 404
    told = client.get(f"{at}/report").json()
    assert (told["n_rounds"], told["certificate"]["rounds"]) == (60, 60)
    assert told["bound"]["c2"] is None
    assert client.get(f"{at}/curve").json()["rounds"] == 60
    assert client.get(f"{at}/report?format=html").status_code == 200


def test_every_method_can_be_followed_and_previewed(client: TestClient) -> None:
    for method in (*calibrant.registry.calibrators.names(), "calibrant"):
        at = f"/v1/streams/{method}"
        client.put(at, json={"method": method, "seed": 1})
        client.post(f"{at}/forecasts", json={"id": "x", "raw": 0.3, "time": 1.0})
        client.post(f"{at}/outcomes", json={"id": "x", "outcome": 1, "time": 4.0})
        for what in ("report", "curve", "alarms", "preview?raw=0.3"):
            told = client.get(f"{at}/{what}")
            assert told.status_code == 200, (method, what, told.text)


def test_times_tell_how_late_outcomes_are_and_nothing_is_made_up(client: TestClient) -> None:
    at = stream(client)
    for id, made, known in (("a", 5.0, 8.5), ("b", None, 9.0), ("c", 5.0, None)):
        client.post(f"{at}/forecasts", json={"id": id, "raw": 0.5, "time": made})
        client.post(f"{at}/outcomes", json={"id": id, "outcome": 1, "time": known})
    seen = chronicle(client).glance()
    assert (seen.rounds, int(seen.waits.sum()), seen.waited(1.0)) == (3, 1, 4.0)


# ------------------------------------------------------------------------- the same again


def recorded(client: TestClient) -> bytes:
    return chronicle(client).to_bytes()


@pytest.mark.parametrize("keyed", [False, True])
def test_a_restart_and_a_replay_of_the_log_see_the_same_to_the_last_bit(
    file: Path, keyed: bool
) -> None:
    more = {"key": "k"} if keyed else {}
    settings = {"keyed": keyed, "unknown": "keep"}
    with served(file, every=300) as client:
        at = stream(client, **settings)
        client.post(f"{at}/outcomes", json={"id": "r3", "outcome": 1})
        client.post(f"{at}/forecasts", json={"id": "r3", "raw": 0.3} | more)
        client.put(f"{at}/outcomes/r3", json={"outcome": 0})
        play(client, at, 700, first=50, **more)
        first = recorded(client)
    with served(file, every=1 << 40) as client:
        assert recorded(client) == first
        play(client, at, 700, seed=2, first=1000, **more)
        last = recorded(client)
    store = SqliteStore(file)
    assert {snapshot.shape for snapshot in store.snapshots()} == {WITNESSED, IDS}
    verified(store)
    with store.writing():
        store._write.execute("delete from snapshot")
    (found,) = Ledger(store, chronicle_of).folds.values()
    store.close()
    assert isinstance(found.witness, Chronicle)
    assert found.witness.to_bytes() == last


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_replay_tells_of_tickets_that_were_open_before(file: Path, elsewhere: bool) -> None:
    ids = [str(k) for k in range(120)]
    other = Recalibrator(resolution=10, buckets=5, seed=9)
    with served(file, every=1 << 40) as client:
        at = stream(client)
        if elsewhere:
            for id in ids:
                other.forecast(0.4, id=id)
            client.put(f"{at}/state", content=other.to_bytes())
        else:
            client.post(f"{at}/forecasts", json=[{"id": id, "raw": 0.4} for id in ids])
            client.delete(f"{at}/forecasts/0")
        told = [{"id": id, "outcome": int(id) % 2} for id in ids[1:]]
        assert client.post(f"{at}/outcomes", json=told).status_code == 200
        seen = recorded(client)
    store = SqliteStore(file)
    with store.writing():
        store._write.execute("delete from snapshot")
    (found,) = Ledger(store, chronicle_of).folds.values()
    store.close()
    assert isinstance(found.witness, Chronicle)
    assert found.witness.glance().rounds == 119
    assert found.witness.to_bytes() == seen


def test_corrections_leave_no_trace_in_scores_nor_in_windows_under_way(tmp_path: Path) -> None:
    """The same outcomes, told right at once or after a correction."""
    wrong, found = (3, 640, 1299), []
    for mended in ((), wrong):
        with served(tmp_path / f"{len(mended)}.db") as client:
            at = stream(client, method="running_mean")
            for start in range(0, 1900, 100):
                told = [
                    {"id": str(k), "raw": 0.25 + 0.1 * (k % 6)} for k in range(start, start + 100)
                ]
                client.post(f"{at}/forecasts", json=told)
                right = {k: k % 7 % 2 for k in range(start, start + 100)}
                first = [
                    {"id": str(k), "outcome": 1 - y if k in mended else y} for k, y in right.items()
                ]
                client.post(f"{at}/outcomes", json=first)
                if start == 1300:
                    for k in mended:
                        client.put(f"{at}/outcomes/{k}", json={"outcome": k % 7 % 2})
            seen = chronicle(client).glance()
            last = windows_of(chronicle(client).collector(), 0).latest["raw"]
            found.append((seen.rounds, seen.ones, seen.brier["raw"], seen.c2["raw"], last))
    assert found[0] == found[1]


def test_a_stream_that_is_handed_over_is_followed_from_then_on(client: TestClient) -> None:
    at = stream(client)
    play(client, at, 50)
    other = Recalibrator(resolution=10, buckets=5, seed=9)
    waits = other.forecast(0.4, id="elsewhere")
    assert client.put(f"{at}/state", content=other.to_bytes()).status_code == 200
    client.put(f"{at}/outcomes/r3", json={"outcome": 1})
    assert chronicle(client).glance().rounds == 0
    client.post(f"{at}/outcomes", json={"id": waits.id, "outcome": 1})
    assert chronicle(client).glance().ones == 1


def test_a_log_that_nobody_followed_is_followed_from_its_beginning(file: Path) -> None:
    with Journal(file, Calibrant(seed=3), stream="s", keyed=False) as journal:
        for k in range(40):
            journal.observe(journal.forecast(None, k / 40, id=str(k)), k % 2)
    store = SqliteStore(file)
    assert {snapshot.shape for snapshot in store.snapshots()} == {SHAPE, IDS}
    store.close()
    with served(file) as client:
        assert client.get("/v1/streams/s/report").json()["n_rounds"] == 40
        client.post("/v1/streams/s/forecasts", json={"id": "x", "raw": 0.5})
    with Journal(file, stream="s") as journal:
        assert journal.verify() == 81
        journal.observe("x", 1)
    with served(file) as client:
        assert client.get("/v1/streams/s/curve").json()["rounds"] == 41


def test_a_damaged_chronicle_is_made_again(file: Path) -> None:
    with pytest.raises(CorruptState, match="chronicle must be as it was written"):
        Chronicle(Recalibrator(seed=1), 0.05, told=b"\xc1")


def test_memory_is_bounded_however_many_outcomes_are_missing(monkeypatch: Any) -> None:
    monkeypatch.setattr("calibrant.serve.chronicle.MOST", 100)
    model = Recalibrator(seed=1)
    made = Chronicle(model, 0.05, patience=30)
    for k in range(500):
        made.forecast(model.forecast(0.5, id=str(k)))
        assert len(made._queue) <= 100
    watch = made.watched()
    assert (watch.waiting, watch.missing, len(made._waiting)) == (30, 470, 30)
