"""The live page of a service: what it shows, to whom, and that it ends."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from serving import PLAIN, TestClient, served, stream

from calibrant.journal.sqlite import SqliteStore
from calibrant.serve.page import COOKIE, MOST, Sessions
from calibrant.serve.tokens import create_token, revoke_token

pytestmark = pytest.mark.once


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "streams.db"


def rounds(client: TestClient, at: str, count: int, **more: Any) -> None:
    ids = [f"{more.get('key')} {k}" for k in range(count)]
    told = [{"id": id, "raw": k % 9 / 9, "time": 5.0 * k} | more for k, id in enumerate(ids)]
    client.post(f"{at}/forecasts", json=told)
    known = [{"id": id, "outcome": k % 2, "time": 5.0 * k + 3} for k, id in enumerate(ids)]
    client.post(f"{at}/outcomes", json=known)


def sections(page: str) -> dict[str, str]:
    """Return the words of each section of a page."""
    found = re.findall(r'<section id="(\w+)"[^>]*>(.*?)</section>', page, re.DOTALL)
    return {key: re.sub(r"<[^>]+>|\s+", " ", html) for key, html in found}


def test_all_streams_at_a_glance_and_one_in_detail(file: Path) -> None:
    with served(file) as client:
        assert "No streams yet." in client.get("/live/").text
        rounds(client, stream(client, "many"), 120)
        rounds(client, stream(client, "one"), 1)
        stream(client, "none")
        keyed = stream(client, "keyed", keyed=True)
        for key in ("north", "south"):
            rounds(client, keyed, 20, key=key)
        client.put("/v1/streams/gone", json=PLAIN)
        client.delete("/v1/streams/gone")
        page = client.get("/")
        assert page.url.path == "/live/"
        names = re.findall(r'href="/live/streams/(\w+)"', page.text)
        assert names == ["many", "one", "none", "keyed"]
        many = sections(client.get("/live/streams/many").text)
        assert set(many) == {
            "verdict", "facts", "reliability", "time", "windows", "alarms", "late", "spread",
            "parts", "trust", "settings",
        }  # fmt: skip
        assert "120 outcomes known, 0 open" in many["facts"]
        assert "Half of the outcomes were known within 4 s" in many["late"]
        assert "foster_hart" in many["settings"]
        assert "seed" not in many["settings"]
        assert "1 outcome known" in sections(client.get("/live/streams/one").text)["facts"]
        assert "No outcomes yet." in sections(client.get("/live/streams/none").text)["verdict"]
        parts = sections(client.get("/live/streams/keyed").text)
        assert "2 of 2 keys" in parts["parts"]
        assert "north" in parts["parts"]
        assert "2 keys; too early to promise anything to any." in parts["trust"]
        assert client.get("/live/streams/gone").status_code == 404


def test_the_policy_is_strict_and_names_are_quoted(file: Path) -> None:
    with served(file) as client:
        stream(client, "a.b-c_d")
        for path in ("/live/", "/live/streams/a.b-c_d", "/live/login", "/live/live.css"):
            policy = client.get(path).headers["content-security-policy"]
            assert policy.startswith("default-src 'none'; script-src 'self'")
            assert "unsafe" not in policy


def test_fragments_are_sent_until_the_service_ends_or_the_stream_is_gone(file: Path) -> None:
    with served(file) as client:
        at = stream(client)
        rounds(client, at, 3)
        asked = iter([False, True])
        client.app.state.ending = lambda: next(asked)  # type: ignore[attr-defined]
        told = client.get("/live/events/s")
        assert told.headers["content-type"].startswith("text/event-stream")
        assert told.text.count("event: fragment") == 11
        assert told.text.endswith(": nothing new\n\n") or told.text.endswith("}\n\n")
        assert client.get("/live/events/nobody").status_code == 404
        assert client.get(f"{at}/curve").json()["rounds"] == 3


@pytest.fixture
def tokens(file: Path) -> dict[str, str]:
    store = SqliteStore(file)
    made = {
        name: create_token(store, name, scope, streams)
        for name, scope, streams in (("all", "admin", "*"), ("one", "read", "a"))
    }
    store.close()
    return made


def log_in(client: TestClient, token: str, **headers: str) -> Any:
    return client.post(
        "/live/login", data={"token": token}, headers=headers, follow_redirects=False
    )


def test_a_browser_logs_in_with_a_token_and_sees_what_the_token_is_for(
    file: Path, tokens: dict[str, str]
) -> None:
    with served(file, open=False) as client:
        admin = {"Authorization": f"Bearer {tokens['all']}"}
        for name in "ab":
            client.put(f"/v1/streams/{name}", json=PLAIN, headers=admin)
        asked = client.get("/live/", follow_redirects=False)
        assert (asked.status_code, asked.headers["location"]) == (303, "/live/login")
        assert client.get("/live/events").status_code == 401
        wrong = log_in(client, "wrong")
        assert wrong.status_code == 401
        assert "known and not revoked" in wrong.text
        assert "set-cookie" not in wrong.headers
        made = log_in(client, tokens["one"])
        assert (made.status_code, made.headers["location"]) == (303, "/live/")
        cookie = made.headers["set-cookie"]
        for flag in ("HttpOnly", "SameSite=strict", "Path=/live"):
            assert flag in cookie
        assert tokens["one"] not in cookie
        page = client.get("/live/").text
        assert "/live/streams/a" in page
        assert "/live/streams/b" not in page
        assert client.get("/live/streams/a").status_code == 200
        here, nowhere = client.get("/live/streams/b"), client.get("/live/streams/c")
        assert (here.status_code, here.text.replace("'b'", "'c'")) == (404, nowhere.text)
        # The cookie is for the page alone.
        assert client.get("/v1/streams/a").status_code == 401


def test_a_token_that_is_revoked_or_logged_out_sees_nothing_more(
    file: Path, tokens: dict[str, str]
) -> None:
    with served(file, open=False) as client:
        log_in(client, tokens["one"])
        assert "<b>one</b>" in client.get("/live/login").text
        client.post("/live/logout")
        assert client.get("/live/", follow_redirects=False).status_code == 303
        log_in(client, tokens["all"])
        assert client.get("/live/").url.path == "/live/"
        store = SqliteStore(file, alone=None)
        revoke_token(store, "all")
        store.close()
        client.app.state.desk.guard._read = -10.0  # type: ignore[attr-defined]
        assert client.get("/live/").url.path == "/live/login"
        header = {"Authorization": f"Bearer {tokens['one']}"}
        assert client.get("/live/", headers=header).status_code == 200
        bad = client.get("/live/", headers={"Authorization": "Bearer wrong"})
        assert bad.status_code == 401


def test_a_connection_ends_once_its_token_is_revoked(file: Path, tokens: dict[str, str]) -> None:
    with served(file, open=False) as client:
        log_in(client, tokens["one"])
        guard = client.app.state.desk.guard  # type: ignore[attr-defined]
        known, asked = guard.known, []

        def once(given: bytes) -> Any:
            asked.append(given)
            return known(given if len(asked) < 3 else b"")

        guard.known = once
        assert client.get("/live/events").text.count("event: fragment") == 1
        assert len(asked) == 3


def test_no_other_site_logs_a_browser_in_or_out(file: Path, tokens: dict[str, str]) -> None:
    with served(file, open=False) as client:
        other = {"sec-fetch-site": "cross-site"}
        assert log_in(client, tokens["one"], **other).status_code == 403
        assert log_in(client, tokens["one"], **{"sec-fetch-site": "same-origin"}).status_code == 303
        assert client.post("/live/logout", headers=other).status_code == 403
        assert client.get("/live/").url.path == "/live/"
        assert client.post("/live/login", content=b"x" * 5000).status_code == 413


def test_a_cookie_forgets_after_twelve_hours_and_the_first_of_too_many() -> None:
    now = [0.0]
    sessions = Sessions(lambda: now[0])
    first = sessions.begin(b"token")
    now[0] = 12 * 3600.0 - 1
    assert sessions.token(first) == b"token"
    now[0] += 1
    assert sessions.token(first) is None
    last = [sessions.begin(b"other") for _ in range(MOST)]
    assert len(sessions._known) == MOST
    assert sessions.token(last[0]) == b"other"
    assert sessions.token(None) is None
    assert COOKIE == "calibrant"
