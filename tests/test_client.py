"""Clients: what they ask, how often, and what waits while the service is away."""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
import os
import pickle
import signal
import threading
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from forking import at_once
from serving import PLAIN, Child

import calibrant
from calibrant import Journal, Recalibrator
from calibrant.classes import ClassCalibrant
from calibrant.client import (
    AsyncClient,
    Client,
    Served,
    ServiceError,
    Spool,
    verify_commitment,
)
from calibrant.client import clients as home
from calibrant.client.asking import LONGEST, Question, forecasts, path_of, pause
from calibrant.core import check
from calibrant.errors import InvalidInput, InvalidType, NotStored
from calibrant.groups import GroupRecalibrator

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Any:
    child = Child(str(tmp_path_factory.mktemp("served") / "streams.db"))
    yield f"http://{child.at}"
    child.end(signal.SIGTERM)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home.asking, "pause", lambda *given: 0.0)


class Flaky(httpx.MockTransport):
    """Answers as a service would, but only every other time, and after it did what was asked."""

    def __init__(self) -> None:
        self.asked, self.away = list[Any](), False
        super().__init__(self.answer)

    def answer(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        self.asked.append(body)
        if self.away or len(self.asked) % 2:
            raise httpx.ConnectError("away")
        rows = [{"id": one["id"], "status": "learned", "sequence": 1} for one in body]
        return httpx.Response(200, json=rows)


def test_rounds_through_a_client_are_those_of_the_library(address: str) -> None:
    lone = calibrant.Recalibrator(resolution=10, buckets=5, seed=7)
    with Client(address) as client:
        client.put_stream("lone", **PLAIN)
        for k in range(10):
            made = client.forecast("lone", k / 10, id=f"a/{k}")
            ticket = lone.forecast(k / 10, id=f"a/{k}")
            assert (made.forecast, made.mean) == (ticket.value, ticket.mean)
            assert client.outcome("lone", f"a/{k}", k % 2)["status"] == "learned"
            lone.observe(ticket, k % 2)
        assert calibrant.load(client.state("lone")) == lone
        assert client.correct("lone", "a/3", 0)["status"] == "corrected"
        client.forecast("lone", 0.5, id="gone")
        assert client.expire("lone", "gone")["status"] == "expired"
        assert client.get("lone", "forecasts", "a/3")["outcome"] == 0


def test_many_are_asked_in_batches(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home.asking, "BATCH", 7)
    with Client(address) as client:
        client.put_stream("many", **PLAIN, keyed=True)
        ids = [str(k) for k in range(20)]
        made = client.forecasts("many", [0.5] * 20, ids, ["a", 7] * 10)
        assert [one.id for one in made] == ids
        told = client.outcomes("many", dict.fromkeys([*ids, "nobody"], 1))
        assert [one["status"] for one in told] == ["learned"] * 20 + [404]
        with pytest.raises(ServiceError) as refused:
            client.forecasts("many", [0.4, 0.5], ["0", "new"], ["a", "a"])
        assert (refused.value.status, refused.value.type) == (409, "urn:calibrant:contradiction")
        with pytest.raises(ServiceError, match="there") as refused:
            client.forecast("nowhere", 0.5)
        assert refused.value.status == 404


def test_an_async_client_asks_the_same(address: str) -> None:
    async def run() -> None:
        async with AsyncClient(address) as client:
            await client.put_stream("async", **PLAIN)
            one = await client.forecast("async", 0.5, id="x")
            (again,) = await client.forecasts("async", [0.5], ["x"])
            assert one == again
            assert (await client.outcomes("async", {"x": 1}))[0]["status"] == "learned"
            assert (await client.get("async"))["learned"] == 1
            with pytest.raises(ServiceError):
                await client.get("nowhere")
            assert (await client.correct("async", "x", 0))["status"] == "corrected"
            for id in ("y", "z"):
                await client.forecast("async", 0.25, id=id, time=5.0)
            assert (await client.expire("async", "y"))["status"] == "expired"
            assert (await client.outcome("async", "z", 1, time=7.5))["status"] == "learned"
            assert calibrant.load(await client.state("async")).rounds == 2

    asyncio.run(run())


def test_groups_classes_and_hidden_draws_through_both_clients(address: str) -> None:
    grouped = GroupRecalibrator(seed=7)
    over = ClassCalibrant(3, seed=7)
    ticket, first = grouped.forecast(0.3, groups=["a", "b"]), over.forecast([0.5, 0.25, 0.25])
    with Client(address) as client:
        client.put_stream("groups", groups=[], seed=7)
        client.put_stream("classes", classes=["x", "y", "z"], seed=7, reveal="outcome")
        made = client.forecast("groups", 0.3, id="1", groups=["a", "b"])
        assert (made.forecast, made.commitment) == (ticket.value, None)
        (again,) = client.forecasts("groups", [0.3], ["1"], groups=[("a", "b")])
        assert again == made
        hidden = client.forecast("classes", np.array([0.5, 0.25, 0.25]), id="1")
        assert (hidden.forecast, hidden.classwise, hidden.top) == (None, None, "x")
        told = client.outcome("classes", "1", "y")
        assert told["revealed"]["forecast"] == first.value.tolist()
        assert verify_commitment(hidden, told)
        assert verify_commitment(hidden, client.get("classes", "forecasts", "1"))
        assert not verify_commitment(hidden, told | {"revealed": {"forecast": [1.0, 0.0, 0.0]}})
        assert client.correct("classes", "1", "z")["outcome"] == "z"

    async def run() -> None:
        async with AsyncClient(address) as client:
            assert await client.forecast("groups", 0.3, id="1", groups=["a", "b"]) == made
            raws = [[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]]
            first, _ = await client.forecasts("classes", raws, ["1", "2"])
            assert first == hidden
            told = await client.outcomes("classes", {"2": "y"})
            assert "revealed" in told[0]

    asyncio.run(run())


def test_a_spool_takes_names_of_classes(address: str, tmp_path: Path) -> None:
    with Client(address) as client:
        client.put_stream("named", classes=["0", "1"], seed=7)
        client.forecasts("named", [[0.5, 0.5]] * 2, ["a", "b"])
        spool = Spool(client, "named", tmp_path / "spool")
        spool.outcome("a", "1")
        spool._file.close()
        spool._lock.close()
        again = Spool(client, "named", tmp_path / "spool")
        again.outcome("b", "0")
        assert (again.flush(), again.problems) == (0, [])
        again.close()
        assert client.get("named", "forecasts", "a")["outcome"] == "1"
        assert client.get("named")["learned"] == 2


def test_a_wrapped_model_has_no_draws_of_a_stream_that_hides_them(address: str) -> None:
    class Model:
        def predict_proba(self, X: Any) -> Any:
            return np.array([[0.7, 0.3]] * len(X))

    with Client(address) as client:
        client.put_stream("wrapped-hidden", **PLAIN, reveal="outcome")
        served = Served(Model(), client, "wrapped-hidden")
        assert served.predict_proba([0, 1]).shape == (2, 2)
        with pytest.raises(InvalidInput, match="draws must be told with the forecast"):
            served.draw([0])


def test_both_clients_have_the_same_verbs() -> None:
    verbs = [name for name in vars(Client) if not name.startswith("_")]
    assert set(verbs) == {name for name in vars(AsyncClient) if not name.startswith("_")}
    for name in verbs:
        signatures = [inspect.signature(getattr(made, name)) for made in (Client, AsyncClient)]
        assert signatures[0] == signatures[1], name


def test_times_of_outcomes_tell_how_late_they_were(address: str) -> None:
    with Client(address) as client:
        client.put_stream("timed", **PLAIN)
        client.forecasts("timed", [0.5, 0.6], ["a", "b"], times=[100.0, 110.0])
        client.outcomes("timed", {"a": 1, "b": 0}, time=120.0)
        rows = client.ask(Question("GET", path_of("timed", "events"))).splitlines()
        told = [json.loads(row) for row in rows]
        assert [(one["id"], one["time"]) for one in told] == [
            ("a", 100.0), ("b", 110.0), ("a", 120.0), ("b", 120.0),
        ]  # fmt: skip


def test_times_may_be_dates_as_in_streams(address: str) -> None:
    dates = np.array(["2024-02-29T00:00:00.250", "2024-03-01"], "M8[ms]")
    with Client(address) as client:
        client.put_stream("dated", **PLAIN)
        client.forecast("dated", 0.4, id="a", time=dates[0])
        client.forecasts("dated", [0.4, 0.5], ["b", "c"], times=dates)
        client.outcome("dated", "a", 1, time=dates[1])
        client.outcomes("dated", {"b": 1}, time=dates[1])
        told = [client.get("dated", "forecasts", id)["time"] for id in "abc"]
        early, late = check.seconds(dates).tolist()
        assert told == [early, early, late]
        rule = r"^time must be a finite number or an np\.datetime64, got "
        noon = datetime(2024, 2, 29, 12)
        for call in (
            lambda: client.forecast("dated", 0.4, time=noon),
            lambda: client.forecasts("dated", [0.4], times=[noon]),
            lambda: client.outcome("dated", "c", 1, time="noon"),
            lambda: client.outcomes("dated", {"c": 1}, time=noon),
        ):
            with pytest.raises(InvalidType, match=rule):
                call()


def test_a_single_value_is_no_column_for_a_client() -> None:
    for column in ("ids", "keys", "times", "groups"):
        told = column if column == "groups" else column[:-1]
        for given in (5, "ab"):
            with pytest.raises(InvalidType, match=f"^{told} must have an entry for each event"):
                forecasts("main", [0.4, 0.5], **{column: given})
        with pytest.raises(InvalidInput, match=f"of one length, got: .*{told} has 3"):
            forecasts("main", [0.4, 0.5], **{column: [1, 2, 3]})
    for raw in (None, 0.4, "0.4"):
        with pytest.raises(InvalidType, match=r"^raw must have an entry for each event, got "):
            forecasts("main", raw)


def test_a_request_is_sent_again_under_the_same_ids() -> None:
    service = Flaky()
    with Client("http://service", transport=service) as client:
        assert client.outcomes("s", {"a": 1})[0]["status"] == "learned"
        assert service.asked == [[{"id": "a", "outcome": 1}]] * 2
        service.away = True
        with pytest.raises(ServiceError, match="service must answer") as lost:
            client.outcomes("s", {"b": 1})
        assert (lost.value.status, len(service.asked)) == (0, 2 + 8)


def test_a_client_waits_longer_each_time_and_as_long_as_it_is_told() -> None:
    # The fixture replaces what clients call, not what is defined.
    assert [pause(k, None, 0.5) for k in (0, 1, 20)] == [0.05, 0.1, LONGEST]
    assert pause(0, "7", 0.5) == 7.0
    assert pause(0, "Thu, 01 Jan", 0.0) == 0.025


def test_a_spool_keeps_order_and_loses_nothing(tmp_path: Path) -> None:
    service, path = Flaky(), tmp_path / "spool"
    client = Client("http://service", transport=service, tries=2)
    service.away = True
    spool = Spool(client, "s", path, size=3, most=5)
    for k in range(5):
        spool.outcome(f"id {k}", k % 2)
    with pytest.raises(NotStored, match="at most 5"):
        spool.outcome("id 5", 1)
    assert (spool.flush(), len(spool)) == (5, 5)
    spool.close()
    with path.open("ab") as torn:
        torn.write(b'["half')
    service.away, service.asked = False, []
    again = Spool(client, "s", path)
    assert len(again) == 5
    assert again.flush() == 0
    assert [row["id"] for row in service.asked[-1]] == [f"id {k}" for k in range(5)]
    assert path.read_bytes() == b""
    again.close()


def test_a_spool_keeps_what_the_service_refuses_apart(address: str, tmp_path: Path) -> None:
    with Client(address) as client:
        client.put_stream("spooled", **PLAIN)
        client.forecast("spooled", 0.5, id="a")
        spool = Spool(client, "spooled", tmp_path / "spool")
        for id, outcome in (("a", 1), ("a", 1), ("a", 0), ("nobody", 1)):
            spool.outcome(id, outcome)
        assert spool.flush() == 0
        assert [one["status"] for one in spool.problems] == [409, 404]
        spool.close()
        lost = Spool(client, "nowhere", tmp_path / "lost")
        lost.outcome("a", 1)
        with pytest.raises(ServiceError):
            lost.flush()
        assert len(lost) == 1
        lost._file.close()


class Model:
    """A model that says what it is given."""

    def predict_proba(self, X: Any) -> Any:
        return np.stack([1 - np.asarray(X), np.asarray(X)], axis=1)


def test_any_classifier_is_wrapped(address: str) -> None:
    with Client(address) as client:
        client.put_stream("wrapped", **PLAIN)
        served = Served(Model(), client, "wrapped")
        both = served.predict_proba([0.2, 0.9], ids=["a", "b"])
        assert both.shape == (2, 2)
        assert both.sum(axis=1).tolist() == [1.0, 1.0]
        assert set(served.draw([0.2, 0.9], ids=["a", "b"])) <= {k / 10 for k in range(11)}
        served.outcome("a", 1)
        assert client.get("wrapped")["learned"] == 1


def test_a_classifier_is_wrapped_by_a_journal_too(tmp_path: Path) -> None:
    pattern = Recalibrator(resolution=10, buckets=5, seed=7)
    lone = pattern.copy()
    with Journal(tmp_path / "streams.db", pattern, keyed=False) as journal:
        served = Served(Model(), journal)
        drawn = served.draw([0.2, 0.9], ids=["a", "b"])
        assert served.draw([0.2, 0.9], ids=["a", "b"]).tolist() == drawn.tolist()
        tickets = [lone.forecast(raw, id=id) for raw, id in ((0.2, "a"), (0.9, "b"))]
        assert drawn.tolist() == [ticket.value for ticket in tickets]
        mean = served.predict_proba([0.2, 0.9], ids=["a", "b"])[:, 1]
        assert mean.tolist() == [ticket.mean for ticket in tickets]
        served.outcome("a", 1)
        assert journal.certificate().rounds == 1
        assert len(served.draw([0.5])) == 1


class Waited(Flaky):
    """A service that tells when it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.heard, self.answered = threading.Semaphore(0), threading.Semaphore(0)

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.heard.release()
        made = super().answer(request)
        self.answered.release()
        return made


def test_a_spool_sends_in_time_though_few_wait(tmp_path: Path) -> None:
    service = Waited()
    client = Client("http://service", transport=service, tries=2)
    service.away = True
    spool = Spool(client, "s", tmp_path / "spool", size=100, seconds=0.01)
    spool.outcome("a", 1)
    # Sent in vain, and again: what waits is kept.
    for _ in range(5):
        assert service.heard.acquire(timeout=60)
    assert len(spool) == 1
    service.away = False
    spool.close()
    assert len(spool) == 0
    assert [row["id"] for row in service.asked[-1]] == ["a"]
    assert service.answered.acquire(timeout=60)
    (tmp_path / "left").write_bytes(b'["b", 0]\n')
    left = Spool(client, "s", tmp_path / "left", seconds=0.01)
    assert service.answered.acquire(timeout=60)
    count = len(service.asked)
    left.close()
    assert (len(left), len(service.asked)) == (0, count)
    assert [row["id"] for row in service.asked[-1]] == ["b"]


def test_a_refusal_in_time_is_noted(address: str, tmp_path: Path) -> None:
    with Client(address) as client:
        lost = Spool(client, "nowhere", tmp_path / "lost", seconds=0.001)
        lost.outcome("a", 1)
        while not lost.problems:
            with pytest.raises(ServiceError):
                lost.flush()
        assert "stream must be one that is there" in lost.problems[0]["detail"]
        with pytest.raises(ServiceError):
            lost.close()
        lost._file.close()


def test_a_preview_tells_the_mean_of_the_next_forecast(address: str) -> None:
    with Client(address) as client:
        client.put_stream("preview", **PLAIN)
        seen = client.preview("preview", 0.1 + 0.2)
        assert client.preview("preview", 0.1 + 0.2) == seen
        assert not seen.fallback
        made = client.forecast("preview", 0.1 + 0.2)
        assert (made.mean, made.mixture) == (seen.mean, seen.mixture)


def test_an_asynchronous_preview_is_the_same(address: str) -> None:
    async def asked() -> Any:
        client = AsyncClient(address)
        seen = await client.preview("previewed", 0.3)
        await client.close()
        return seen

    with Client(address) as client:
        client.put_stream("previewed", **PLAIN)
        assert asyncio.run(asked()) == client.preview("previewed", 0.3)


def test_a_client_is_pickled_without_its_connections(address: str) -> None:
    with Client(address, "a token", tries=3) as client:
        client.put_stream("pickled", **PLAIN)
        assert copy.deepcopy(client) is client
        with pickle.loads(pickle.dumps(client)) as loaded:
            assert repr(loaded) == repr(client) == f"Client({address!r})"
            assert loaded._given == client._given
            assert loaded._http is not client._http
            assert loaded.get("pickled")["name"] == "pickled"


def test_a_forked_process_has_connections_of_its_own(address: str) -> None:
    with Client(address) as client:
        client.put_stream("forked", **PLAIN)
        held = client._http

        def work() -> None:
            client.forecast("forked", 0.5, id="there")
            assert client._http is not held

        at_once([work])
        client.forecast("forked", 0.5, id="here")
        assert client._http is held
        assert client.get("forked")["issued"] == 2


def test_an_id_of_dots_alone_leads_nowhere_else(address: str) -> None:
    with Client(address) as client:
        client.put_stream("dots", **PLAIN)
        for id in (".", "..", "...", "a/..", "%2E%2E", "?", "#"):
            made = client.forecast("dots", 0.5, id=id)
            assert client.get("dots", "forecasts", id)["sequence"] == made.sequence
            client.outcome("dots", id, 1)
            assert client.correct("dots", id, 0)["status"] == "corrected"
        client.forecast("dots", 0.5, id="...?")
        assert client.expire("dots", "...?")["status"] == "expired"
        with pytest.raises(ServiceError, match="must be open, got one with an outcome"):
            client.expire("dots", "..")
        assert client.get("dots")["deleted"] is False


def test_a_spool_that_is_full_sends_before_it_refuses(tmp_path: Path) -> None:
    service = Flaky()
    client = Client("http://service", transport=service, tries=2)
    service.away = True
    spool = Spool(client, "s", tmp_path / "spool", size=10, most=3)
    for k in range(3):
        spool.outcome(f"id {k}", 1)
    with pytest.raises(NotStored, match="at most 3"):
        spool.outcome("id 3", 1)
    service.away = False
    spool.outcome("id 3", 1)
    assert [row["id"] for row in service.asked[-1]] == ["id 0", "id 1", "id 2"]
    assert len(spool) == 1
    spool.close()


def test_two_spools_do_not_share_a_file(tmp_path: Path) -> None:
    client = Client("http://service", transport=Flaky(), tries=2)
    first = Spool(client, "s", tmp_path / "spool")
    with pytest.raises(NotStored, match="nobody else must be at work on spool, got one that is"):
        Spool(client, "s", tmp_path / "spool")
    first.close()
    (tmp_path / "spool").write_bytes(b"no rows\n")
    for _ in range(2):
        with pytest.raises(ValueError, match="Expecting value"):
            Spool(client, "s", tmp_path / "spool")
