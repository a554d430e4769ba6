"""The live page of a real service in a real browser: logged in, moving, by keyboard, on a phone."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from browser import CHROMIUM
from serving import PLAIN, Child

from calibrant.journal.sqlite import SqliteStore
from calibrant.serve.tokens import create_token

sync_api = pytest.importorskip("playwright.sync_api", reason='needs the extra "test"')

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM, reason="no Chromium here: nothing to open a page with"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]

LIVE = "#connection[data-state=live]"


class Service:
    """A service in a process of its own, with tokens."""

    def __init__(self, file: Path) -> None:
        store = SqliteStore(file)
        self.token = create_token(store, "all", "admin")
        self.reader = create_token(store, "reader", "read", "sales")
        store.close()
        self.file = file
        self.start()

    def start(self) -> None:
        self.child = Child(str(self.file), quick=0.1, slow=0.3)
        self.page = f"http://{self.child.at}/live"

    def ask(self, method: str, path: str, body: Any) -> Any:
        with closing(HTTPConnection(self.child.at, timeout=60)) as held:
            headers = {"Authorization": f"Bearer {self.token}"}
            held.request(method, f"/v1/streams/{path}", json.dumps(body), headers)
            answer = held.getresponse()
            told = answer.read()
            assert answer.status < 300, told
            return json.loads(told)

    def rounds(self, name: str, first: int, count: int) -> None:
        ids = [str(k) for k in range(first, first + count)]
        made = [{"id": id, "raw": 0.1 + 0.8 * (int(id) % 7) / 7, "time": float(id)} for id in ids]
        self.ask("POST", f"{name}/forecasts", made)
        known = [{"id": id, "outcome": int(id) % 2, "time": float(id) + 3} for id in ids]
        self.ask("POST", f"{name}/outcomes", known)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    # Before the browser: a forked process shares nothing with it.
    made = Service(tmp_path_factory.mktemp("served") / "streams.db")
    for name in ("sales", "other", "empty", "one"):
        made.ask("PUT", name, PLAIN)
    made.rounds("sales", 0, 700)
    made.rounds("one", 0, 1)
    yield made
    made.child.end(signal.SIGTERM)


@pytest.fixture(scope="module")
def browser(service: Service) -> Iterator[Any]:
    with sync_api.sync_playwright() as play:
        made = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


class Seen:
    """A page that notes what went wrong on it, and whom it asked."""

    def __init__(self, browser: Any, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.wrong: list[str] = []
        self.asked: list[str] = []
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", lambda said: self.wrong.append(said.text))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def log_in(self, service: Service, token: str) -> None:
        self.page.goto(service.page + "/")
        assert self.page.url == service.page + "/login"
        # By keyboard alone: the field has the focus, or gets it in a moment.
        self.page.wait_for_function("document.activeElement?.name === 'token'")
        self.page.keyboard.type(token)
        self.page.keyboard.press("Enter")
        self.page.wait_for_selector(LIVE)


def holds(page: Any, place: str, words: str) -> None:
    """Wait until an element holds some words."""
    page.wait_for_function(
        "([place, words]) => document.querySelector(place)?.textContent.includes(words)",
        arg=[place, words],
        timeout=20_000,
    )


def test_one_logs_in_by_keyboard_and_sees_counts_rise(browser: Any, service: Service) -> None:
    seen = Seen(browser)
    seen.log_in(service, service.token)
    assert seen.page.locator("table.streams tbody tr").count() == 4
    seen.page.get_by_role("link", name="sales").press("Enter")
    seen.page.wait_for_selector(LIVE)
    holds(seen.page, "#facts", "700 outcomes known")
    service.rounds("sales", 700, 30)
    holds(seen.page, "#facts", "730 outcomes known")
    holds(seen.page, "#time", "Errors of the first rounds")
    assert seen.page.locator("svg[role=img]").count() >= 5
    assert seen.wrong == []
    assert all(url.startswith((service.page, "data:")) for url in seen.asked)
    seen.page.get_by_role("link", name="Log out").press("Enter")
    seen.page.get_by_role("button", name="Log out").press("Enter")
    seen.page.wait_for_url(service.page + "/login")
    seen.page.goto(service.page + "/streams/sales")
    assert seen.page.url == service.page + "/login"


def test_scripts_cannot_read_the_cookie_and_a_wrong_token_is_told(
    browser: Any, service: Service
) -> None:
    seen = Seen(browser)
    seen.page.goto(service.page + "/login")
    seen.page.get_by_label("Token").fill("wrong")
    seen.page.get_by_role("button").click()
    holds(seen.page, "[role=alert]", "Token must be one that is known")
    seen.log_in(service, service.reader)
    assert seen.page.evaluate("document.cookie") == ""
    (cookie,) = seen.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/live")
    assert seen.page.locator("table.streams tbody tr").count() == 1


@pytest.mark.parametrize("name", ["empty", "one", "sales"])
def test_a_phone_shows_each_stream_without_scrolling_aside(
    browser: Any, service: Service, name: str
) -> None:
    seen = Seen(browser, viewport={"width": 360, "height": 740})
    seen.page.goto(service.page + "/login")
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= 360
    seen.log_in(service, service.token)
    for path in ("/", f"/streams/{name}?window=625"):
        seen.page.goto(service.page + path)
        seen.page.wait_for_selector(LIVE)
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= 360
    assert seen.wrong == []


def test_an_open_page_does_not_keep_the_service_alive_and_tells_that_it_is_gone(
    browser: Any, tmp_path: Path
) -> None:
    own = Service(tmp_path / "own.db")
    own.ask("PUT", "sales", PLAIN)
    seen = Seen(browser)
    seen.log_in(own, own.reader)
    assert own.child.end(signal.SIGTERM) == 0
    seen.page.wait_for_selector("#connection[data-state=lost]")
    holds(seen.page, "#connection", "Connection lost at")
