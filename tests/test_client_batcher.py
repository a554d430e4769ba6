"""Batchers: many callers, one request, and each caller's own answer."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from serving import PLAIN, Child

from calibrant.client import AsyncBatcher, AsyncClient, Batcher, Client, ServiceError
from calibrant.client import clients as home
from calibrant.errors import InvalidInput

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


def counted(requests: list[int]) -> dict[str, Any]:
    """Return hooks that note how many rows each request has."""

    def note(request: Any) -> None:
        requests.append(len(json.loads(request.content)))

    async def note_too(request: Any) -> None:
        note(request)

    return {"note": note, "note_too": note_too}


def test_the_calls_of_many_threads_share_requests(address: str) -> None:
    requests: list[int] = []
    with Client(address) as client:
        client.put_stream("threads", **PLAIN)
        client._http.event_hooks["request"].append(counted(requests)["note"])
        with Batcher(client, size=16, seconds=5.0) as batcher, ThreadPoolExecutor(32) as pool:
            raws = [k / 160 for k in range(160)]
            made = list(pool.map(lambda raw: batcher.forecast("threads", raw, time=1.0), raws))
            assert sum(requests) == 160
            assert len(requests) <= 10
            told = list(pool.map(lambda one: batcher.outcome("threads", one.id, 1, time=2.0), made))
        client._http.event_hooks["request"].clear()
        assert {row["status"] for row in told} == {"learned"}
        for one, row, raw in zip(made, told, raws, strict=True):
            assert row["id"] == one.id
            assert client.get("threads", "forecasts", one.id)["raw"] == raw
        assert client.get("threads")["learned"] == 160


def test_the_calls_of_many_tasks_share_requests(address: str) -> None:
    requests: list[int] = []

    async def play() -> tuple[Any, Any, dict[str, Any]]:
        async with AsyncClient(address) as client:
            await client.put_stream("tasks", **PLAIN)
            client._http.event_hooks["request"].append(counted(requests)["note_too"])
            async with AsyncBatcher(client, size=50, seconds=0.02) as batcher:
                asked = [batcher.forecast("tasks", k / 120, id=f"t{k}") for k in range(120)]
                made = await asyncio.gather(*asked)
                told = await asyncio.gather(*(batcher.outcome("tasks", one.id, 0) for one in made))
            client._http.event_hooks["request"].clear()
            return made, told, await client.get("tasks")

    made, told, stream = asyncio.run(play())
    assert [one.id for one in made] == [f"t{k}" for k in range(120)]
    assert [row["id"] for row in told] == [one.id for one in made]
    assert stream["learned"] == 120
    assert sorted(requests, reverse=True) == [50, 50, 50, 50, 20, 20]


def test_a_lone_call_waits_no_longer_than_it_must(address: str) -> None:
    with Client(address) as client, Batcher(client, size=1000, seconds=0.001) as batcher:
        client.put_stream("lone", **PLAIN)
        assert batcher.forecast("lone", 0.5, id="a").id == "a"
        # The same again gets the same answer, and another under the same id its own error.
        assert batcher.forecast("lone", 0.5, id="a") == client.forecast("lone", 0.5, id="a")
        with pytest.raises(ServiceError) as found:
            batcher.forecast("lone", 0.75, id="a")
        assert found.value.status == 409


def test_each_caller_gets_its_own_answer_or_error(address: str) -> None:
    async def play() -> list[Any]:
        async with AsyncClient(address) as client, AsyncBatcher(client, seconds=0.02) as batcher:
            await client.put_stream("mixed", **PLAIN)
            await client.forecast("mixed", 0.25, id="taken")
            asked = [
                batcher.forecast("mixed", 0.5, id="good"),
                batcher.forecast("mixed", 7.0, id="far"),
                batcher.forecast("mixed", 0.5, id="taken"),
                batcher.forecast("mixed", 0.5, id="x" * 300),
                batcher.forecast("mixed", 0.5, id="good too"),
                batcher.outcome("mixed", "nobody", 1),
                batcher.forecast("nowhere", 0.5, id="good"),
            ]
            return await asyncio.gather(*asked, return_exceptions=True)

    good, far, taken, long, too, nobody, nowhere = asyncio.run(play())
    assert (good.id, too.id) == ("good", "good too")
    wrong = [far, taken, long, nobody, nowhere]
    assert [one.status for one in wrong] == [422, 409, 422, 404, 404]
    assert (far.more["id"], taken.more["id"], nowhere.more["id"]) == ("far", "taken", "good")


def test_a_refused_row_does_not_spoil_the_others_of_its_thread_mates(address: str) -> None:
    with Client(address) as client, Batcher(client, size=8, seconds=5.0) as batcher:
        client.put_stream("spoilt", **PLAIN)
        with ThreadPoolExecutor(8) as pool:
            asked = [
                pool.submit(batcher.forecast, "spoilt", 2.0 if k == 5 else 0.5, id=f"s{k}")
                for k in range(8)
            ]
        errors = [one.exception() for one in asked]
        assert [k for k, error in enumerate(errors) if error is not None] == [5]
        assert [one.result().id for k, one in enumerate(asked) if k != 5] == [
            f"s{k}" for k in range(8) if k != 5
        ]


class Away(httpx.MockTransport):
    """A service that does what it is asked, and whose answers are lost until it is back."""

    def __init__(self) -> None:
        self.back, self.asked = False, list[list[str]]()
        super().__init__(self.answer)

    def answer(self, request: httpx.Request) -> httpx.Response:
        rows = json.loads(request.content)
        self.asked.append([row["id"] for row in rows])
        if not self.back:
            raise httpx.ConnectError("away")
        told = [{"id": row["id"], "status": "learned", "sequence": 1} for row in rows]
        return httpx.Response(200, json=told)


def test_a_service_that_is_away_is_told_to_every_caller_with_its_id() -> None:
    there = Away()
    with Client("http://x", transport=there, tries=3) as client:
        with Batcher(client, size=4, seconds=5.0) as batcher, ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(batcher.outcome, "s", f"o{k}", 1) for k in range(4)]
            errors: list[Any] = [one.exception() for one in asked]
            assert [one.more["id"] for one in errors] == [f"o{k}" for k in range(4)]
            assert {one.status for one in errors} == {0}
            assert len({id(one) for one in errors}) == 4
            # Three tries under the same ids, and the same again once it is back.
            assert len(there.asked) == 3
            there.back = True
            again = [pool.submit(batcher.outcome, "s", one.more["id"], 1) for one in errors]
            assert {one.result()["status"] for one in again} == {"learned"}
        assert sorted(there.asked[-1]) == sorted(there.asked[0])


def test_an_id_is_at_most_once_in_a_request() -> None:
    there = Away()
    there.back = True

    async def play() -> list[Any]:
        client = AsyncClient("http://x", transport=there)
        async with client, AsyncBatcher(client, seconds=0.0) as batcher:
            asked = [batcher.outcome("s", id, 1) for id in ("a", "b", "a", "c")]
            return await asyncio.gather(*asked)

    assert [one["id"] for one in asyncio.run(play())] == ["a", "b", "a", "c"]
    assert there.asked == [["a", "b"], ["a", "c"]]


def test_whoever_is_cancelled_before_it_was_sent_takes_its_row_back() -> None:
    there = Away()
    there.back = True

    async def play() -> Any:
        client = AsyncClient("http://x", transport=there)
        async with client, AsyncBatcher(client, seconds=60.0) as batcher:
            tell = batcher.outcome
            gone, stays = (asyncio.create_task(tell("s", id, 1)) for id in ("gone", "stays"))
            await asyncio.sleep(0)
            gone.cancel()
            await asyncio.sleep(0)
            await batcher.close()
            return await stays

    assert asyncio.run(play())["id"] == "stays"
    assert there.asked == [["stays"]]


def test_no_more_rows_wait_than_may() -> None:
    there, held, entered = Away(), threading.Event(), threading.Event()
    there.back = True
    plain = there.handler

    def slow(request: httpx.Request) -> Any:
        entered.set()
        assert held.wait(20)
        return plain(request)

    there.handler = slow
    with Client("http://x", transport=there) as client, ThreadPoolExecutor(6) as pool:
        batcher = Batcher(client, size=2, seconds=0.0, most=3)
        asked = [pool.submit(batcher.outcome, "s", f"o{k}", 1) for k in range(6)]
        assert entered.wait(20)
        assert batcher._waiting <= 3
        held.set()
        assert [one.result()["status"] for one in asked] == ["learned"] * 6
        batcher.close()
    assert max(map(len, there.asked)) <= 2


def test_a_closed_batcher_takes_no_more() -> None:
    there = Away()
    with Client("http://x", transport=there) as client:
        batcher = Batcher(client)
        batcher.close()
        with pytest.raises(InvalidInput, match="batcher must be open to take more"):
            batcher.outcome("s", "a", 1)

    async def late() -> None:
        async with AsyncClient("http://x", transport=there) as client:
            made = AsyncBatcher(client)
            await made.close()
            await made.forecast("s", 0.5)

    with pytest.raises(InvalidInput, match="batcher must be open to take more"):
        asyncio.run(late())


@pytest.mark.parametrize("wrong", [{"size": 0}, {"size": 1001}, {"seconds": -1.0}, {"most": 0}])
def test_sizes_are_checked(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with Client("http://x") as client, pytest.raises(InvalidInput, match=f"{name} must be"):
        Batcher(client, **wrong)


@pytest.mark.parametrize("verb", ["forecast", "outcome"])
def test_a_batcher_is_called_as_a_client(verb: str) -> None:
    made = [getattr(kind, verb) for kind in (Client, AsyncClient, Batcher, AsyncBatcher)]
    assert len({str(inspect.signature(one)) for one in made}) == 1
    assert len({one.__doc__ for one in made}) == 1
    assert [inspect.iscoroutinefunction(one) for one in made] == [False, True, False, True]
