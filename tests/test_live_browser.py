"""The live page in a real browser: it moves, says when it is cut off, and asks nobody else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from browser import CHROMIUM, rgb

from calibrant import Calibrant
from calibrant.live import Memory, Stream, app
from calibrant.plot import canvas

pytest.importorskip("jinja2", reason='needs the extra "serve"')
pytest.importorskip("starlette", reason='needs the extra "serve"')
sync_api = pytest.importorskip("playwright.sync_api", reason='needs the extra "test"')
uvicorn = pytest.importorskip("uvicorn", reason='needs the extra "serve"')

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM, reason="no Chromium here: nothing to open a page with"),
]

LIVE = "#connection[data-state=live]"
LOST = "#connection[data-state=lost]"


@contextmanager
def served(source: Memory, port: int = 0) -> Iterator[int]:
    """Serve the page of a source on this machine, on a free port unless told which."""
    made = app(source, quick=0.1, slow=0.5)
    quiet: dict[str, Any] = {"log_level": "error", "timeout_graceful_shutdown": 1}
    server = uvicorn.Server(uvicorn.Config(made, host="127.0.0.1", port=port, ws="none", **quiet))
    ready = threading.Event()
    startup = server.startup

    async def started(*given: Any, **named: Any) -> None:
        await startup(*given, **named)
        ready.set()

    server.startup = started
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert ready.wait(20)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(20)


def learn(stream: Stream, rounds: int) -> None:
    for k in range(rounds):
        ticket = stream.forecast(0.1 + 0.8 * (k % 7) / 7, time=float(k))
        stream.observe(ticket.id, k % 2, time=k + 3.0)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as play:
        made = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


class Seen:
    """A page that notes what went wrong on it, and whom it asked."""

    def __init__(self, browser: Any, **options: Any) -> None:
        self.page = browser.new_context(**options).new_page()
        self.wrong: list[str] = []
        self.asked: list[str] = []
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", lambda said: self.wrong.append(said.text))
        self.told: list[Any] = []
        self.page.on("response", lambda told: self.told.append(told))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def elsewhere(self, port: int) -> list[str]:
        known = (f"http://127.0.0.1:{port}/", "data:")
        return [url for url in self.asked if not url.startswith(known)]


def holds(page: Any, place: str, words: str) -> None:
    """Wait until an element holds some words."""
    page.wait_for_function(
        "([place, words]) => document.querySelector(place)?.textContent.includes(words)",
        arg=[place, words],
        timeout=20_000,
    )


def test_counts_rise_while_one_looks_and_nobody_else_is_asked(browser: Any) -> None:
    stream = Stream(Calibrant(seed=1))
    learn(stream, 40)
    with served(Memory(sales=stream)) as port:
        seen = Seen(browser)
        seen.page.goto(f"http://127.0.0.1:{port}/")
        seen.page.wait_for_selector(LIVE)
        seen.page.get_by_role("link", name="sales").click()
        seen.page.wait_for_selector(LIVE)
        holds(seen.page, "#facts", "40 outcomes known")
        learn(stream, 60)
        holds(seen.page, "#facts", "100 outcomes known")
        holds(seen.page, "#time", "Errors of the first rounds")
        packed = [told.headers.get("content-encoding") for told in seen.told]
        assert packed == ["gzip"] * len(packed)
        assert any("/events/" in told.url for told in seen.told)
        assert seen.page.locator("svg[role=img]").count() >= 5
        assert seen.wrong == []
        assert seen.elsewhere(port) == []


def test_focus_and_opened_tables_outlast_an_update(browser: Any) -> None:
    stream = Stream(Calibrant(seed=1))
    learn(stream, 40)
    with served(Memory(sales=stream)) as port:
        page = Seen(browser).page
        page.goto(f"http://127.0.0.1:{port}/streams/sales")
        page.wait_for_selector(LIVE)
        opened = page.locator("#reliability summary").first
        opened.focus()
        page.keyboard.press("Enter")
        learn(stream, 7)
        holds(page, "#facts", "47 outcomes known")
        assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
        assert page.evaluate("document.activeElement.parentElement.open")


def test_a_lost_connection_is_told_and_comes_back(browser: Any) -> None:
    stream = Stream(Calibrant(seed=1))
    learn(stream, 10)
    source = Memory(sales=stream)
    with served(source) as port:
        page = Seen(browser).page
        page.goto(f"http://127.0.0.1:{port}/streams/sales")
        page.wait_for_selector(LIVE)
        holds(page, "#connection", "Live.")
    page.wait_for_selector(LOST)
    holds(page, "#connection", "Connection lost at")
    learn(stream, 13)
    with served(source, port):
        page.wait_for_selector(LIVE, timeout=20_000)
        holds(page, "#connection", "Live again.")
        holds(page, "#facts", "23 outcomes known")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_the_page_in_its_colours_without_scrolling_aside(
    browser: Any, scheme: Any
) -> None:
    stream = Stream(Calibrant(seed=1))
    learn(stream, 700)
    with served(Memory({"a stream with quite a long name": stream})) as port:
        size = {"width": 360, "height": 740}
        seen = Seen(browser, viewport=size, color_scheme=scheme)
        for path in ("", "streams/a%20stream%20with%20quite%20a%20long%20name?window=625"):
            seen.page.goto(f"http://127.0.0.1:{port}/{path}")
            seen.page.wait_for_selector(LIVE)
            assert seen.page.evaluate("document.documentElement.scrollWidth") <= 360
        colours = canvas.DARK if scheme == "dark" else canvas.LIGHT
        found = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert found == f"rgb{rgb(colours['paper'])}"
        line = seen.page.locator("path.line.forecast").first
        stroke = line.evaluate("each => getComputedStyle(each).stroke")
        assert stroke == f"rgb{rgb(colours['forecast'])}"
        assert seen.wrong == []
