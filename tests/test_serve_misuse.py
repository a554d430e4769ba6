"""A service that is used wrongly, or at the wrong moment: nothing is lost, and nobody peeks."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from serving import PLAIN, TestClient, served, stream

import calibrant
from calibrant import Journal, Recalibrator
from calibrant.errors import DamagedLog, NotStored, UnknownName, UnknownTicket
from calibrant.journal.events import FORECAST, OUTCOME, STATE, Asked
from calibrant.journal.fold import Fold
from calibrant.journal.ledger import Ledger
from calibrant.journal.settings import Settings
from calibrant.journal.sqlite import SqliteStore
from calibrant.journal.store import Line
from calibrant.serve.tokens import create_token, revoke_token


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "streams.db"


@pytest.fixture
def client(file: Path) -> Iterator[TestClient]:
    with served(file) as made:
        yield made


@pytest.fixture
def ledger(file: Path) -> Iterator[Ledger]:
    """Streams that nobody writes but the test; one of them is there."""
    store = SqliteStore(file, alone=True)
    made = Ledger(store)
    put(made)
    yield made
    store.close()


def put(ledger: Ledger, gone: float | None = None) -> None:
    body = Recalibrator(resolution=10, buckets=5, seed=7).to_bytes()
    with ledger.store.writing():
        ledger.put_stream(Line(1, "s", Settings(unknown="keep").to_json(), body, gone))


def told(client: TestClient, at: str, what: str, **asked: Any) -> dict[str, Any]:
    found: dict[str, Any] = client.post(f"{at}/{what}", json=asked).json()
    return found


# ------------------------------------------------------------------------- states handed over


def test_outcomes_that_came_early_outlive_a_state_that_is_handed_over(file: Path) -> None:
    other = Recalibrator(resolution=10, buckets=5, seed=9)
    other.forecast(0.4, id="there")
    with served(file) as client:
        at = stream(client, unknown="keep")
        for id in ("there", "later"):
            assert told(client, at, "outcomes", id=id, outcome=1)["status"] == "early"
        assert client.put(f"{at}/state", content=other.to_bytes()).json()["status"] == "taken"
        # Its forecast came with the state.
        other.observe("there", 1)
        assert (client.get(at).json()["learned"], client.get(at).json()["early"]) == (1, 1)
        told(client, at, "forecasts", id="later", raw=0.7)
        other.forecast(0.7, id="later")
        other.observe("later", 1)
        assert calibrant.load(client.get(f"{at}/state").content) == other
        assert client.get(f"{at}/curve").json()["rounds"] == 2
    with closing(sqlite3.connect(file)) as held, held:
        held.execute("delete from snapshot")
    held.close()
    with served(file) as client:
        assert calibrant.load(client.get(f"{at}/state").content) == other
        assert client.get(f"{at}/curve").json()["rounds"] == 2
    with Journal(file, stream="s") as journal:
        assert journal.verify() == 4


def test_a_state_in_a_log_of_an_earlier_release_drops_them_as_it_did() -> None:
    fold = Fold(Recalibrator(resolution=10, buckets=5, seed=7))
    fold.apply(Asked(1, OUTCOME, "x", None, 1), 1)
    body = Recalibrator(resolution=10, buckets=5, seed=9).to_bytes()
    fold.apply(Asked(1, STATE, "id", None, 0, None, body), 2)
    assert fold.early == {}


def test_an_id_whose_outcome_was_learned_elsewhere_is_not_forecast_again(
    client: TestClient,
) -> None:
    other = Recalibrator(resolution=10, buckets=5, seed=9)
    other.forecast(0.4, id="x")
    at = stream(client)
    client.put(f"{at}/state", content=other.to_bytes())
    assert told(client, at, "outcomes", id="x", outcome=1)["status"] == "learned"
    again = told(client, at, "forecasts", id="x", raw=0.4)
    assert again["type"] == "urn:calibrant:contradiction"
    assert again["detail"] == "id 'x' must be new, got one whose outcome is known"
    assert client.get(at).json()["open"] == 0


# ------------------------------------------------------------------------- what is on disk


def test_nobody_is_shown_what_is_not_on_disk(ledger: Ledger) -> None:
    _, rows = ledger.enter([Asked(1, FORECAST, "x", None, 0.3)])
    with pytest.raises(UnknownTicket):
        ledger.standing(1, "x")
    ledger.write(rows)
    assert ledger.standing(1, "x")[1:] == ("open", None)
    _, rows = ledger.enter([Asked(1, OUTCOME, "x", None, 1)])
    assert ledger.standing(1, "x")[1:] == ("open", None)
    ledger.write(rows)
    assert ledger.standing(1, "x")[1:] == ("learned", 1)


def test_a_stream_that_is_deleted_while_a_request_is_under_way_takes_nothing(
    ledger: Ledger,
) -> None:
    asked = [Asked(1, FORECAST, "x", None, 0.3)]
    put(ledger, gone=1.0)
    (refused,), rows = ledger.enter(asked)
    assert (type(refused.error), rows) == (UnknownName, [])
    put(ledger)
    assert ledger.enter(asked)[0][0].status == "made"
    put(ledger, gone=1.0)
    assert Ledger(ledger.store).enter(asked)[0][0].status == "refused"


@pytest.mark.parametrize("name", ["put_stream", "find"])
def test_a_store_that_was_away_for_a_moment_is_used_again(
    name: str, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, store = stream(client, reveal="outcome"), client.app.state.desk.writer.store  # type: ignore[attr-defined]
    told(client, at, "forecasts", id="x", raw=0.3)
    with monkeypatch.context() as patched:

        def away(*_: Any) -> None:
            raise NotStored("away")

        patched.setattr(store, name, away)
        if name == "find":
            assert client.get(f"{at}/forecasts/x").status_code == 503
        else:
            assert client.put("/v1/streams/other", json=PLAIN).status_code == 503
    for _ in range(1000):
        found = client.post(f"{at}/outcomes", json={"id": "x", "outcome": 1})
        if found.status_code == 200:
            break
    assert found.json()["status"] == "learned"


# ------------------------------------------------------------------------- names and times


@pytest.mark.parametrize("name", ["%2E", "%2E%2E", "a%2Fb", "a" * 65, "%C3%A9"])
def test_a_name_that_is_no_part_of_an_address_is_refused(name: str, client: TestClient) -> None:
    assert client.put(f"/v1/streams/{name}", json=PLAIN).status_code in (404, 422)
    assert client.get("/v1/streams").json() == []


def test_ids_that_look_alike_are_different_ids(client: TestClient) -> None:
    at = stream(client)
    ids = ["é", "e\u0301", "ﬁ", "fi", "a b", "a\u00a0b", "👩\u200d🚀", "👩🚀", ".", ".."]
    for k, id in enumerate(ids):
        assert told(client, at, "forecasts", id=id, raw=0.5)["sequence"] == k + 1
    for id in ("a\u0085b", "a\u2028b", "\x7f"):
        assert told(client, at, "forecasts", id=id, raw=0.5)["status"] == 422


def test_times_beyond_all_ages_spoil_nothing(file: Path) -> None:
    with served(file, every=1) as client:
        at = stream(client)
        for id, time in (("a", -1.7e308), ("b", 0.0)):
            told(client, at, "forecasts", id=id, raw=0.5, time=time)
            told(client, at, "outcomes", id=id, outcome=1, time=1.7e308)
        assert client.get(f"{at}/report").json()["n_rounds"] == 2
        seen = client.get(f"{at}/report").content
        assert client.get("/live/streams/s").status_code == 200
    with closing(sqlite3.connect(file)) as held, held:
        # The last place is that of a snapshot, which could be made.
        assert held.execute("select max(seq) from snapshot where stream = 1").fetchone() == (4,)
    held.close()
    with served(file) as client:
        assert client.get(f"{at}/report").content == seen


# ------------------------------------------------------------------------- who may ask


def test_a_service_without_tokens_is_closed_by_the_first_one(file: Path) -> None:
    now = [1e12]
    with served(file) as client:
        client.app.state.desk.guard._clock = lambda: now[0]  # type: ignore[attr-defined]
        at = stream(client)
        store = SqliteStore(file, alone=None)
        token = create_token(store, "all", "read")
        now[0] += 3.0
        assert client.get(at).status_code == 401
        assert client.get("/live/", follow_redirects=False).status_code == 303
        assert client.get(at, headers={"Authorization": f"Bearer {token}"}).status_code == 200
        # It is not opened again by what closes.
        revoke_token(store, "all")
        now[0] += 3.0
        assert client.get(at).status_code == 401
        store.close()


def test_a_store_that_is_away_opens_and_closes_nothing(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, guard = stream(client), client.app.state.desk.guard  # type: ignore[attr-defined]
    monkeypatch.setattr(guard, "_clock", lambda: 1e12)

    def away() -> None:
        raise NotStored("away")

    monkeypatch.setattr(guard._store, "tokens", away)
    assert client.get(at).status_code == 200


def test_nobody_is_told_a_seed(client: TestClient) -> None:
    at = stream(client)
    for path in ("/v1/streams", at, "/live/", "/live/streams/s"):
        assert "seed" not in client.get(path).text.replace("seeded", "")
    assert client.put(at, json=PLAIN).status_code == 200


def test_what_is_wrong_with_the_store_is_told_to_who_runs_the_service(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for open in (True, False):
        with served(file, open=open) as client:
            writer = client.app.state.desk.writer  # type: ignore[attr-defined]
            writer._fail(NotStored(f"{file}: no space left"))
            for path in ("/healthz", "/readyz"):
                assert (file.name in client.get(path).text) is open
            assert caplog.messages == [f"not ready: {file}: no space left"]
            caplog.clear()


def test_a_log_that_is_damaged_is_told_without_the_event(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(file) as client:
        writer = client.app.state.desk.writer  # type: ignore[attr-defined]

        def damaged(*_: Any) -> None:
            writer._stopped.set()
            raise DamagedLog("event 7 (forecast 'somebody else')")

        with monkeypatch.context() as patched:
            patched.setattr("calibrant.journal.writer.Ledger", damaged)
            writer._fail(NotStored("away"))
            writer._recover()
        assert client.get("/readyz").json() == {"ready": False, "trouble": "a damaged log"}
        writer._stopped.clear()
        writer._recover()
        assert client.get("/readyz").json() == {"ready": True, "trouble": ""}


def test_a_round_that_cannot_be_followed_is_named_and_the_next_one_is_followed(
    file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    called, again = list[int](), threading.Event()

    def followed(folds: Any) -> None:
        called.append(1)
        if len(called) == 1:
            raise ValueError("one round")
        again.set()

    monkeypatch.setattr("calibrant.serve.app.EVERY", 0.0)
    monkeypatch.setattr("calibrant.serve.app.catch_up", followed)
    with served(file):
        assert again.wait(60)
    assert "error in what is seen of a stream" in caplog.messages
