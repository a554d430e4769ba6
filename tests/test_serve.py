"""The service: what each route answers, and that no answer is given twice in two ways."""

from __future__ import annotations

import io
import json
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from serving import PLAIN, TestClient, served, stream

import calibrant
from calibrant import Journal, Recalibrator, Table
from calibrant import errors as all_errors
from calibrant.errors import CalibrantError, NotStored
from calibrant.journal import settings
from calibrant.journal.settings import MOST_EARLY
from calibrant.journal.sqlite import SqliteStore
from calibrant.serve import Options, make_app, reference
from calibrant.serve.openapi import document
from calibrant.serve.problems import ERRORS, PREFIX, REFUSALS, response_of, told_of
from calibrant.serve.routes import WAYS
from calibrant.serve.tokens import Guard, create_token, revoke_token

pytestmark = pytest.mark.once

DOCS = Path(__file__).resolve().parent.parent / "docs"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "streams.db"


@pytest.fixture
def client(file: Path) -> Iterator[TestClient]:
    with served(file) as made:
        yield made


def test_a_forecast_and_its_outcome(client: TestClient) -> None:
    at, lone = stream(client), Recalibrator(resolution=10, buckets=5, seed=7)
    for k in range(30):
        answer = client.post(f"{at}/forecasts", json={"id": f"a{k}", "raw": k / 30})
        ticket = lone.forecast(k / 30, id=f"a{k}")
        assert answer.status_code == 200
        assert answer.json() == {
            "id": f"a{k}",
            "forecast": ticket.value,
            "mean": ticket.mean,
            "mixture": {
                "values": list(ticket.mixture.values),
                "weights": list(ticket.mixture.weights),
            },
            "sequence": 2 * k + 1,
        }
        told = client.post(f"{at}/outcomes", json={"id": f"a{k}", "outcome": k % 2}).json()
        lone.observe(ticket, k % 2)
        assert told == {"id": f"a{k}", "status": "learned", "sequence": 2 * k + 2}
    assert calibrant.load(client.get(f"{at}/state").content) == lone
    assert client.get(f"{at}/certificate").json() == lone.certificate().to_dict()


def test_a_retry_gets_the_same_bytes_and_another_body_409_with_both_values(
    client: TestClient,
) -> None:
    at = stream(client)
    first = client.post(f"{at}/forecasts", json={"id": "x", "raw": 0.3})
    client.post(f"{at}/outcomes", json={"id": "x", "outcome": 1})
    again = client.post(f"{at}/forecasts", json={"id": "x", "raw": 0.3})
    assert again.content == first.content
    other = client.post(f"{at}/forecasts", json={"id": "x", "raw": 0.4})
    assert other.status_code == 409
    assert other.headers["content-type"] == "application/problem+json"
    told = other.json()
    assert told["type"] == "urn:calibrant:contradiction"
    assert (told["stored"], told["told"]) == ({"x": 0.3}, {"x": 0.4})


def test_outcomes_are_learned_early_repeated_unknown_or_expired(client: TestClient) -> None:
    at = stream(client, horizon=2)

    def tell(id: str, outcome: int) -> tuple[int, str]:
        answer = client.post(f"{at}/outcomes", json={"id": id, "outcome": outcome})
        body = answer.json()
        return answer.status_code, body.get("type", body.get("status"))

    for id in "abcd":
        client.post(f"{at}/forecasts", json={"id": id, "raw": 0.5})
    assert tell("d", 1) == (200, "learned")
    assert tell("d", 1) == (200, "repeated")
    assert tell("d", 0) == (409, "urn:calibrant:contradiction")
    assert tell("nobody", 0) == (404, "urn:calibrant:unknown-forecast")
    assert tell("a", 0) == (410, "urn:calibrant:expired")
    keeps = stream(client, "keeps", unknown="keep")
    early = client.post(f"{keeps}/outcomes", json={"id": "e", "outcome": 1})
    assert early.json()["status"] == "early"
    assert client.get(keeps).json()["early"] == 1
    client.post(f"{keeps}/forecasts", json={"id": "e", "raw": 0.5})
    known = client.get(f"{keeps}/forecasts/e").json()
    assert (known["status"], known["outcome"]) == ("learned", 1)
    assert client.get(keeps).json()["early"] == 0


def test_outcomes_without_forecasts_are_kept_up_to_a_bound(client: TestClient) -> None:
    at = stream(client, "bounded", unknown="keep", most_open=3)
    for k in range(3):
        told = client.post(f"{at}/outcomes", json={"id": f"early {k}", "outcome": 1})
        assert told.json()["status"] == "early"
    told = client.post(f"{at}/outcomes", json={"id": "one more", "outcome": 1})
    assert (told.status_code, told.headers["Retry-After"]) == (429, "1")
    assert told.json()["detail"] == "outcomes without a forecast must be at most 3, got one more"
    # A repetition is known, and a forecast makes room.
    again = client.post(f"{at}/outcomes", json={"id": "early 0", "outcome": 1})
    assert again.json()["status"] == "repeated"
    assert client.post(f"{at}/forecasts", json={"id": "early 0", "raw": 0.5}).status_code == 200
    told = client.post(f"{at}/outcomes", json={"id": "one more", "outcome": 1})
    assert told.json()["status"] == "early"


def test_without_a_setting_outcomes_without_forecasts_have_a_bound_too(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MOST_EARLY == 100_000
    monkeypatch.setattr(settings, "MOST_EARLY", 1)
    at = stream(client, "plain", unknown="keep")
    told = [{"id": id, "outcome": 1} for id in ("a", "b")]
    answers = client.post(f"{at}/outcomes", json=told).json()
    assert answers[0]["status"] == "early"
    assert answers[1]["detail"] == "outcomes without a forecast must be at most 1, got one more"


def test_outcomes_are_corrected_once_and_forecasts_dropped(client: TestClient) -> None:
    at = stream(client)
    client.post(f"{at}/forecasts", json=[{"id": id, "raw": 0.5} for id in "abc"])
    client.post(f"{at}/outcomes", json={"id": "a", "outcome": 1})
    told = client.put(f"{at}/outcomes/a", json={"outcome": 0})
    assert (told.status_code, told.json()["status"]) == (200, "corrected")
    assert client.put(f"{at}/outcomes/a", json={"outcome": 0}).json()["status"] == "repeated"
    assert client.put(f"{at}/outcomes/a", json={"outcome": 1}).status_code == 409
    assert client.put(f"{at}/outcomes/b", json={"outcome": 1}).status_code == 404
    assert client.get(f"{at}/forecasts/a").json()["status"] == "corrected"
    assert client.delete(f"{at}/forecasts/b").json()["status"] == "expired"
    assert client.delete(f"{at}/forecasts/b").json()["status"] == "repeated"
    assert client.post(f"{at}/outcomes", json={"id": "b", "outcome": 1}).status_code == 410
    assert client.delete(f"{at}/forecasts/a").status_code == 409
    assert client.delete(f"{at}/forecasts/z").status_code == 404
    assert client.get(f"{at}/forecasts/b").json()["status"] == "expired"
    assert client.get(f"{at}/forecasts/c").json()["status"] == "open"
    assert client.get(f"{at}/forecasts/z").status_code == 404


def test_in_a_batch_each_event_is_answered_by_itself(client: TestClient) -> None:
    at = stream(client)
    asked = [{"id": id, "raw": raw} for id, raw in [("a", 0.1), ("a", 0.1), ("a", 0.2), ("b", 1)]]
    told = client.post(f"{at}/forecasts", json=asked)
    assert told.status_code == 200
    first, again, other, last = told.json()
    assert first == again
    assert (other["status"], other["id"]) == (409, "a")
    assert last["sequence"] == first["sequence"] + 1
    outcomes = [{"id": id, "outcome": 1} for id in ("a", "q", "b")]
    statuses = [one["status"] for one in client.post(f"{at}/outcomes", json=outcomes).json()]
    assert statuses == ["learned", 404, "learned"]
    assert client.post(f"{at}/forecasts", json=[]).json() == []


def test_ids_may_be_any_text_and_keys_text_or_numbers(client: TestClient) -> None:
    at = stream(client, keyed=True)
    for id in ("a/b", "ü ö", "'; drop table event; --", "日本", "x" * 256):
        told = client.post(f"{at}/forecasts", json={"id": id, "raw": 0.5, "key": "k"})
        assert told.status_code == 200, told.text
        path = "".join(f"%{byte:02X}" for byte in id.encode())
        assert client.get(f"{at}/forecasts/{path}").json()["id"] == id
    assert client.post(f"{at}/forecasts", json={"id": "n", "raw": 0.5, "key": 7}).is_success
    assert client.post(f"{at}/forecasts", json={"id": "m", "raw": 0.5}).status_code == 422
    assert [row["key"] for row in client.get(f"{at}/keys").json()] == ["k", 7]
    assert len(client.get(f"{at}/keys?worst=1").json()) == 0
    assert client.get(f"{at}/certificate").status_code == 422


BAD: list[tuple[Any, int]] = [
    (b"{", 400),
    (b"\xff\xfe", 400),
    (b"[" * 100_000, 422),
    (b"7", 422),
    (b"null", 422),
    (b'{"id": "a", "raw": NaN}', 400),
    (b'{"id": "a", "raw": Infinity}', 400),
    (b'{"id": "a", "raw": 1e999}', 422),
    ({"id": "a", "raw": "0.5"}, 422),
    ({"id": "a", "raw": 1.5}, 422),
    ({"id": "a", "raw": -0.1}, 422),
    ({"id": "a", "raw": None}, 422),
    ({"id": "a"}, 422),
    ({"raw": 0.5}, 422),
    ({"id": "", "raw": 0.5}, 422),
    ({"id": "x" * 10_000, "raw": 0.5}, 422),
    ({"id": "é" * 200, "raw": 0.5}, 422),
    ({"id": "a\nb", "raw": 0.5}, 422),
    ({"id": "a\u0000b", "raw": 0.5}, 422),
    ({"id": 7, "raw": 0.5}, 422),
    ({"id": "a", "raw": 0.5, "key": 1.5}, 422),
    ({"id": "a", "raw": 0.5, "key": "not keyed"}, 422),
    ({"id": "a", "raw": 0.5, "more": 1}, 422),
    (b'{"id": "\\ud800", "raw": 0.5}', 400),
]


@pytest.mark.parametrize(("body", "status"), BAD, ids=range(len(BAD)))
def test_bad_input_is_refused_and_leaves_no_trace(
    client: TestClient, body: Any, status: int
) -> None:
    at = stream(client)
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    told = client.post(f"{at}/forecasts", content=content)
    assert (told.status_code, told.json()["status"]) == (status, status), told.text
    assert client.get(at).json()["issued"] == 0
    assert client.get(f"{at}/events").content == b""


def test_limits_have_their_statuses(file: Path) -> None:
    with served(file, largest_body=500, largest_batch=3) as client:
        at = stream(client, most_open=2)
        assert client.post(f"{at}/forecasts", content=b"x" * 501).status_code == 413
        four = [{"id": str(k), "raw": 0.5} for k in range(4)]
        assert client.post(f"{at}/forecasts", json=four).status_code == 413

        def parts() -> Iterator[bytes]:
            yield b"[" + b" " * 400
            yield b" " * 400 + b"]"

        assert client.post(f"{at}/forecasts", content=parts()).status_code == 413
        told = client.post(f"{at}/forecasts", json=four[:3]).json()
        assert told[2]["type"] == "urn:calibrant:too-many-open"
        refused = client.post(f"{at}/forecasts", json=four[3])
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")


def test_streams_are_made_once_deleted_and_restored(client: TestClient) -> None:
    first = client.put("/v1/streams/a", json=PLAIN)
    assert first.status_code == 201
    assert client.put("/v1/streams/a", json=PLAIN).status_code == 200
    other = client.put("/v1/streams/a", json=PLAIN | {"buckets": 7})
    assert other.status_code == 409
    assert (other.json()["stored"], other.json()["told"]) == ({"buckets": 5}, {"buckets": 7})
    assert [one["name"] for one in client.get("/v1/streams").json()] == ["a"]
    client.post("/v1/streams/a/forecasts", json={"id": "x", "raw": 0.2})
    assert client.delete("/v1/streams/a").json()["deleted"] is True
    assert client.get("/v1/streams/a").status_code == 404
    assert client.post("/v1/streams/a/forecasts", json={"id": "y", "raw": 0.2}).status_code == 404
    assert client.put("/v1/streams/a", json=PLAIN).status_code == 409
    assert client.post("/v1/streams/a/restore").json()["issued"] == 1
    assert client.get("/v1/streams/a").status_code == 200
    assert client.delete("/v1/streams/none").status_code == 404


@pytest.mark.parametrize(
    "settings",
    [
        {"method": "nobody"},
        {"loss": "absolute"},
        {"parameters": {"colour": 3}},
        {"method": "foster_hart", "raw_safe": 0.1},
        {"buckets": 0},
        {"unknown": "forget"},
        {"typo": 1},
    ],
)
def test_a_stream_that_cannot_be_is_refused(client: TestClient, settings: Any) -> None:
    assert client.put("/v1/streams/a", json=settings).status_code in (404, 422)
    assert client.put("/v1/streams/a b", json={}).status_code == 422
    assert client.get("/v1/streams").json() == []


def test_every_method_can_be_served(client: TestClient) -> None:
    for method in (*calibrant.registry.calibrators.names(), "calibrant"):
        more = {"time": 1.0} if method == "fading" else {}
        at = f"/v1/streams/{method}"
        made = client.put(at, json={"method": method, "seed": 1})
        assert made.status_code == 201, made.text
        told = client.post(f"{at}/forecasts", json={"id": "x", "raw": 0.3} | more)
        assert told.status_code == 200, told.text
        again = client.post(f"{at}/forecasts", json={"id": "x", "raw": 0.3} | more)
        assert again.content == told.content
        assert client.post(f"{at}/outcomes", json={"id": "x", "outcome": 1}).status_code == 200


def test_events_can_be_read_as_lines_and_as_parquet(client: TestClient) -> None:
    at = stream(client, keyed=True)
    client.post(f"{at}/forecasts", json=[{"id": str(k), "raw": 0.5, "key": k} for k in range(5)])
    client.post(f"{at}/outcomes", json={"id": "3", "outcome": 1})
    rows = [json.loads(line) for line in client.get(f"{at}/events").text.splitlines()]
    assert [(row["kind"], row["id"], row["key"], row["x"]) for row in rows[3:]] == [
        ("forecast", "3", 3, 0.5),
        ("forecast", "4", 4, 0.5),
        ("outcome", "3", None, 1.0),
    ]
    some = client.get(f"{at}/events?after=2&limit=2").text.splitlines()
    assert [json.loads(line)["sequence"] for line in some] == [3, 4]
    table = pq.read_table(io.BytesIO(client.get(f"{at}/events?format=parquet").content))
    assert table["forecast"].to_pylist() == [row["forecast"] for row in rows]
    for bad in ("limit=-1", "after=x", "limit=100001", "after=9" + "9" * 40):
        assert client.get(f"{at}/events?{bad}").status_code == 422


def test_a_state_is_handed_over(client: TestClient) -> None:
    model = Recalibrator(resolution=10, buckets=5, seed=3)
    model.forecast(0.3, id="waits")
    at = stream(client)
    told = client.put(f"{at}/state", content=model.to_bytes())
    assert told.json()["status"] == "taken", told.text
    assert client.put(f"{at}/state", content=model.to_bytes()).json()["status"] == "repeated"
    assert client.post(f"{at}/outcomes", json={"id": "waits", "outcome": 1}).is_success
    model.observe("waits", 1)
    assert calibrant.load(client.get(f"{at}/state").content) == model
    other = Recalibrator(resolution=20, buckets=5)
    assert client.put(f"{at}/state", content=other.to_bytes()).status_code == 422
    assert client.put(f"{at}/state", content=b"nothing").status_code == 422


def test_a_restart_changes_nothing(file: Path) -> None:
    with served(file) as client:
        at = stream(client, keyed=True, unknown="keep")
        asked = [{"id": str(k), "raw": k / 50, "key": "ab"[k % 2]} for k in range(50)]
        told = client.post(f"{at}/forecasts", json=asked).content
        client.post(f"{at}/outcomes", json=[{"id": str(k), "outcome": k % 2} for k in range(20)])
        client.post(f"{at}/outcomes", json={"id": "early", "outcome": 1})
        state, shown = client.get(f"{at}/state").content, client.get(at).json()
    with served(file) as client:
        assert client.get(f"{at}/state").content == state
        assert client.get(at).json() == shown
        assert client.post(f"{at}/forecasts", json=asked).content == told
    with Journal(file, stream="s") as journal:
        assert journal.verify() == 71
        found = journal.state()
        assert isinstance(found, Table)
        assert found.to_bytes() == state


def test_health_readiness_and_metrics(client: TestClient) -> None:
    at = stream(client)
    client.post(f"{at}/forecasts", json={"id": "a", "raw": 0.5})
    assert client.get("/healthz").json() == {"ready": True, "trouble": ""}
    assert client.get("/readyz").status_code == 200
    page = client.get("/metrics").text
    assert 'calibrant_open{stream="s"} 1.0' in page
    assert 'calibrant_events_total{status="made"} 1.0' in page
    assert "calibrant_ready 1.0" in page


def test_a_failed_commit_fails_its_batch_and_the_streams_are_made_again(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(file) as client:
        at, desk = stream(client), client.app.state.desk  # type: ignore[attr-defined]
        first = client.post(f"{at}/forecasts", json={"id": "a", "raw": 0.5}).content
        store, real = desk.writer.store, SqliteStore.add_events

        def full(self: SqliteStore, events: Any) -> None:
            monkeypatch.setattr(SqliteStore, "add_events", real)
            raise NotStored("no space left")

        monkeypatch.setattr(SqliteStore, "add_events", full)
        told = client.post(f"{at}/forecasts", json={"id": "b", "raw": 0.5})
        assert (told.status_code, told.json()["type"]) == (503, "urn:calibrant:not-stored")
        for _ in range(1000):
            told = client.post(f"{at}/forecasts", json={"id": "b", "raw": 0.5})
            if told.status_code == 200:
                break
            assert told.status_code == 503
        assert told.json()["sequence"] == 2
        assert client.get("/readyz").status_code == 200
        assert client.post(f"{at}/forecasts", json={"id": "a", "raw": 0.5}).content == first
        assert client.get(at).json()["issued"] == 2
        assert store.last() == 2


def test_snapshots_are_taken_beside_the_writer(file: Path) -> None:
    with served(file, every=10) as client:
        at = stream(client)
        for k in range(35):
            client.post(f"{at}/forecasts", json={"id": str(k), "raw": 0.5})
        state = client.get(f"{at}/state").content
    with Journal(file, stream="s") as journal:
        assert journal.verify() == 35
        assert journal.state().to_bytes() == state
    with served(file) as client:
        assert client.get(f"{at}/state").content == state


# ---------------------------------------------------------------------- the document


def test_the_document_names_every_route_and_every_error(client: TestClient) -> None:
    told = client.get("/openapi.json").json()
    assert told == json.loads(json.dumps(document(WAYS)))
    assert told["openapi"] == "3.1.0"
    listed = {(m.upper(), path) for path, ways in told["paths"].items() for m in ways}
    assert listed == {(way.method, way.path) for way in WAYS}
    for name in (*REFUSALS, *(one.name for one in ERRORS.values())):
        assert f"`{PREFIX}{name}`" in told["info"]["description"]


def test_the_reference_is_what_the_routes_say(capsys: pytest.CaptureFixture[str]) -> None:
    told = "make it anew with: python -m calibrant.serve.reference > docs/reference/service.md"
    text = (DOCS / "reference" / "service.md").read_text()
    assert text == reference.page(), told
    for way in WAYS:
        assert f"`{way.method} {way.path}`" in text
    for one in (*REFUSALS.values(), *ERRORS.values()):
        assert f"| `{PREFIX}{one.name}` | {one.status} |" in text
    runpy.run_path(str(reference.__file__), run_name="__main__")
    assert capsys.readouterr().out == text


def test_every_error_of_the_library_has_a_type_of_its_own() -> None:
    kinds = [getattr(all_errors, name) for name in all_errors.__all__]
    assert {*ERRORS} == {*kinds}
    names = [told_of(kind("why")).name for kind in kinds]
    assert len({*names}) == len(names)
    for kind in kinds:
        answer = response_of(kind("why"))
        assert 400 <= answer.status_code < 600
        assert answer.media_type == "application/problem+json"


class Unheard(CalibrantError):
    """An error that nobody listed."""


def test_an_error_that_is_not_listed_is_told_as_its_parent() -> None:
    assert told_of(Unheard("why")).name == "error"


def test_errors_have_one_shape_wherever_they_come_from(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shape(answer: Any, status: int) -> None:
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/problem+json"
        assert {"type", "title", "status", "detail"} <= {*answer.json()}

    shape(client.get("/nothing"), 404)
    shape(client.patch("/v1/streams"), 405)
    shape(client.get("/v1/streams/none"), 404)
    monkeypatch.setattr(Guard, "check", lambda *given: 1 / 0)
    broken = client.get("/v1/streams")
    shape(broken, 500)
    assert "division" not in broken.text


# ---------------------------------------------------------------------- tokens

SHOULD = [
    ("GET", "/v1/streams/{}", "read"),
    ("GET", "/v1/streams/{}/events", "read"),
    ("GET", "/v1/streams/{}/certificate", "read"),
    ("GET", "/v1/streams/{}/keys", "read"),
    ("GET", "/v1/streams/{}/report", "read"),
    ("GET", "/v1/streams/{}/curve", "read"),
    ("GET", "/v1/streams/{}/alarms", "read"),
    ("GET", "/v1/streams/{}/preview", "read"),
    ("GET", "/v1/streams/{}/forecasts/x", "read"),
    ("POST", "/v1/streams/{}/forecasts", "write"),
    ("POST", "/v1/streams/{}/outcomes", "write"),
    ("PUT", "/v1/streams/{}/outcomes/x", "write"),
    ("DELETE", "/v1/streams/{}/forecasts/x", "write"),
    ("PUT", "/v1/streams/{}", "admin"),
    ("DELETE", "/v1/streams/{}", "admin"),
    ("POST", "/v1/streams/{}/restore", "admin"),
    ("GET", "/v1/streams/{}/state", "admin"),
    ("PUT", "/v1/streams/{}/state", "admin"),
]


def test_every_route_by_every_token_by_every_stream(file: Path) -> None:
    walked = {(way.method, way.path) for way in WAYS if "{name}" in way.path}
    named = [(m, path.replace("/x", "/{id}").replace("{}", "{name}")) for m, path, _ in SHOULD]
    assert walked == set(named)
    scopes = ("read", "write", "admin")
    store = SqliteStore(file)
    tokens = {
        (scope, streams): create_token(store, f"{scope} {streams}", scope, streams)
        for scope in scopes
        for streams in ("*", "a", "b")
    }
    store.close()
    with served(file, open=False) as client:
        admin = {"Authorization": f"Bearer {tokens['admin', '*']}"}
        for name in "ab":
            client.put(f"/v1/streams/{name}", json=PLAIN, headers=admin)
        for method, path, needs in SHOULD:
            for name in "ab":
                at = path.format(name)
                assert client.request(method, at).status_code == 401
                wrong = {"Authorization": "Bearer wrong"}
                assert client.request(method, at, headers=wrong).status_code == 401
                for (scope, streams), token in tokens.items():
                    headers = {"Authorization": f"Bearer {token}"}
                    may = scopes.index(scope) >= scopes.index(needs) and streams in ("*", name)
                    answer = client.request(method, at, headers=headers, json={})
                    assert (answer.status_code != 403) == may, (method, at, scope, streams)
                    assert token not in answer.text
        assert client.get("/v1/streams").status_code == 401
        one = {"Authorization": f"Bearer {tokens['admin', 'a']}"}
        assert client.get("/v1/streams", headers=one).status_code == 403
        assert client.get("/healthz").status_code == 200


def test_a_revoked_token_is_refused_and_no_token_is_stored(file: Path) -> None:
    store = SqliteStore(file)
    token, now = create_token(store, "me"), [0.0]
    guard = Guard(store, open=False, clock=lambda: now[0])
    assert guard.check(f"Bearer {token}", "write", "s") == "me"
    assert revoke_token(store, "me") == 1
    now[0] = 2.5
    with pytest.raises(CalibrantError, match="known and not revoked"):
        guard.check(f"Bearer {token}", "write", "s")
    with pytest.raises(CalibrantError, match="token must be one that is there"):
        revoke_token(store, "me")
    store.close()
    assert token.encode() not in file.read_bytes()


def test_a_token_that_asks_too_often_waits(file: Path) -> None:
    store = SqliteStore(file)
    token, now = create_token(store, "me"), [0.0]
    guard = Guard(store, open=False, rate=2.0, clock=lambda: now[0])
    for _ in range(2):
        guard.check(f"Bearer {token}", "read", None)
    with pytest.raises(CalibrantError, match="at most 2 a second") as refused:
        guard.check(f"Bearer {token}", "read", None)
    assert response_of(refused.value).headers["retry-after"] == "1"
    now[0] = 0.5
    guard.check(f"Bearer {token}", "read", None)
    store.close()


def test_two_services_cannot_own_one_file(file: Path) -> None:
    with served(file), pytest.raises(NotStored):
        make_app(SqliteStore(file, alone=True), Options())


def test_a_stream_made_by_an_earlier_release_is_the_same_stream(file: Path) -> None:
    with served(file) as client:
        stream(client)
    store = SqliteStore(file)
    (line,) = store.streams()
    settings = json.loads(line.settings)
    del settings["made"]["patience"]
    with store.writing():
        store.put_stream(line._replace(settings=json.dumps(settings)))
    store.close()
    with served(file) as client:
        assert client.put("/v1/streams/s", json=PLAIN).status_code == 200
        other = client.put("/v1/streams/s", json=PLAIN | {"patience": 7})
        assert (other.status_code, other.json()["stored"]) == (409, {"patience": 1000})
