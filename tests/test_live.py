"""The live page: what it says, how it is drawn, and that it needs nothing but itself."""

from __future__ import annotations

import json
import math
import re
import sys
import zlib
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from importlib import resources
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from calibrant import Calibrant, Recalibrator
from calibrant.demo.live import Show
from calibrant.errors import InvalidInput, UnknownName
from calibrant.kinds.binary.headline import calibration
from calibrant.live import Memory, Pages, Stream, app, fragments, routes, svg
from calibrant.live.app import Door, _Page
from calibrant.live.packed import packed_events
from calibrant.monitor import LateAlarm
from calibrant.plot import Pareto, prepare_over_time, prepare_reliability, prepare_windows
from calibrant.summary import Follower, Glance, glance, summarise_collected

anyio = pytest.importorskip("anyio", reason='needs the extra "serve"')
httpx = pytest.importorskip("httpx", reason='needs the extra "client"')
pytest.importorskip("jinja2", reason='needs the extra "serve"')
applications = pytest.importorskip("starlette.applications", reason='needs the extra "serve"')
routing = pytest.importorskip("starlette.routing", reason='needs the extra "serve"')

pytestmark = pytest.mark.once

HARD = 'a/b "quoted" <script>alert(1)</script>'


def played(rounds: int) -> Stream:
    """Return a stream whose outcomes have the chance that is said, each a while later."""
    rng, made = np.random.default_rng(1), Stream(Calibrant(seed=1))
    for k, raw in enumerate(rng.uniform(0.02, 0.98, rounds).tolist()):
        ticket = made.forecast(raw, time=1000.0 + k, key="north" if k % 3 else "south")
        made.observe(ticket.id, int(rng.random() < raw), time=1001.5 + k)
    return made


def opposed(rounds: int) -> Stream:
    """Return a stream whose outcomes are the opposite of what is expected on average."""
    made = Stream(Calibrant(seed=1), learning=0)
    for k in range(rounds):
        ticket = made.forecast(
            (k % 9 + 0.5) / 9, time=1000.0 + k, key="north" if k % 3 else "south"
        )
        made.observe(ticket.id, int(ticket.mean < 0.5), time=1001.5 + k)
    return made


class Many(Stream):
    """A stream of ten million outcomes, merged from itself."""

    def __init__(self) -> None:
        super().__init__(Calibrant(seed=1))
        made = played(700)
        part, self.watch = made.follower, made.watch
        for _ in range(14):
            part.merge(part.copy())
        self.follower = part


@pytest.fixture(scope="module")
def source() -> Memory:
    one = Stream(Calibrant(seed=1))
    one.observe(one.forecast(0.7, time=0.0).id, 1, time=40.0)
    off = opposed(1000)
    streams = {"empty": Stream(Calibrant(seed=1)), "one": one, "off": off}
    return Memory(streams | {"many": Many(), "well": played(1500), HARD: played(30)})


class Read(HTMLParser):
    """What stands in a page: elements with their attributes, and words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data

    def named(self, attribute: str) -> list[str]:
        return [given[attribute] or "" for _, given in self.found if attribute in given]


@pytest.fixture(scope="module")
def shown(source: Memory) -> dict[str, str]:
    """Return the page of each stream."""
    pages = Pages(source)
    return {name: pages.stream(name) for name in source.streams()}


NAMES = ("empty", "one", "off", "many", "well", HARD)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_holds_no_script_and_no_style_of_its_own(shown: dict[str, str], name: str) -> None:
    page = Read(shown[name])
    assert [given for tag, given in page.found if tag == "script"] == [
        {"src": "/live.js", "defer": None}
    ]
    assert not [tag for tag, _ in page.found if tag == "style"]
    attributes = {attribute for _, given in page.found for attribute in given}
    assert not {each for each in attributes if each == "style" or each.startswith("on")}


@pytest.mark.parametrize("name", NAMES)
def test_a_screen_reader_finds_a_name_for_everything(shown: dict[str, str], name: str) -> None:
    page = Read(shown[name])
    ids = page.named("id")
    assert max(Counter(ids).values()) == 1
    for label in page.named("aria-labelledby"):
        assert set(label.split()) <= set(ids), label
    pictures = [given for tag, given in page.found if tag == "svg"]
    assert all(given["role"] == "img" and given["aria-labelledby"] for given in pictures)
    tables = [tag for tag, _ in page.found if tag in ("table", "caption")]
    assert tables == ["table", "caption"] * (len(tables) // 2)
    assert {"lang": "en"} in [given for tag, given in page.found if tag == "html"]
    assert [tag for tag, _ in page.found if tag == "h1"] == ["h1"]


@pytest.mark.parametrize("name", NAMES)
def test_every_picture_is_well_formed_and_within_its_frame(
    shown: dict[str, str], name: str
) -> None:
    drawn = re.findall(r"<svg.*?</svg>", shown[name], re.DOTALL)
    assert bool(drawn) == (name != "empty")
    for text in drawn:
        root = ElementTree.fromstring(text)
        width, height = map(float, root.attrib["viewBox"].split()[2:])
        assert "nan" not in text
        assert "inf" not in text
        for each in root.iter():
            for word, limit in (("x", width), ("y", height), ("cx", width), ("cy", height)):
                if word in each.attrib:
                    assert -1.0 <= float(each.attrib[word]) <= limit + 1.0
        title, told = root[0], root[1]
        assert (title.tag, told.tag) == ("title", "desc")
        assert title.text
        assert told.text


# -------------------------------------------------------------------------------- words


def test_a_page_tells_the_numbers_of_the_glance(source: Memory, shown: dict[str, str]) -> None:
    seen, words = source.glance("well"), Read(shown["well"]).words
    assert "1,500 outcomes known, 0 open." in words
    for scores in (seen.brier, seen.c1, seen.c2):
        for score in scores.values():
            assert fragments.shown(score) in words


def test_ten_million_outcomes_are_told_in_short(shown: dict[str, str]) -> None:
    words = Read(shown["many"]).words
    assert "11,468,800 outcomes known" in words
    assert "1.19M" in words or re.search(r"\d(\.\d+)?M", words)
    assert "outcomes yet" not in words
    assert "There are no windows of this stream" in words


def test_nothing_is_said_of_an_empty_stream_that_is_not_known(shown: dict[str, str]) -> None:
    words = Read(shown["empty"]).words
    assert "No outcomes yet." in words
    assert "n/a" not in words
    assert "Nothing is promised" not in words


def test_the_overview_says_who_is_off_and_since_when(source: Memory) -> None:
    page = Read(Pages(source).overview())
    alarm = source.board("off").alarms
    calibrated = next(each for each in alarm if each.name == "calibrated")
    when = fragments.clock(calibrated.since_time)
    told = f"Means are off since about {when} (forecast {calibrated.since:,})."
    assert f"Draws are calibrated, as far as can be told. {told}" in page.words
    assert when.startswith("1970-01-01 00:")
    # Ten million copies of the same noise are off, as far as anybody can tell.
    assert "6 streams, 1 off; in 1 only means are off." in page.words
    assert "Too early to say after 1 outcome." in page.words
    assert page.words.count("Calibrated, as far as can be told.") == 1


def test_names_are_quoted_in_links_and_shown_as_they_are(source: Memory) -> None:
    page = Read(Pages(source).overview("/live"))
    assert HARD in page.words
    links = page.named("href")
    expected = "a%2Fb%20%22quoted%22%20%3Cscript%3Ealert%281%29%3C%2Fscript%3E"
    assert f"/live/streams/{expected}" in links
    assert len([tag for tag, _ in page.found if tag == "script"]) == 1


def test_no_streams_are_no_streams() -> None:
    assert "No streams yet." in Read(Pages(Memory()).overview()).words


def test_alarms_tell_their_times_and_their_assumptions(
    source: Memory, shown: dict[str, str]
) -> None:
    words = Read(shown["off"]).words
    rung = source.board("off").alarms[0]
    assert fragments.clock(rung.time) in words
    assert "whether an outcome is known before the forecast 1,000 later is made" in words
    assert "Drawn forecasts may be calibrated all the same" in words
    assert "None has rung." in Read(shown["well"]).words


def test_an_alarm_without_times_tells_its_forecast() -> None:
    alarm = LateAlarm("calibrated", 1300, None, 1400, 1200, None)
    board = fragments.Board((alarm,), 0.01)
    found = fragments.judge(glance(followed(200)), board)
    told = "Draws are calibrated, as far as can be told. Means are off since about forecast 1,200."
    assert found == fragments.Verdict("mean", told)
    assert "n/a" in fragments.alarms(board).html
    early = fragments.judge(glance(followed(99)), board)
    assert early.state == "mean"
    assert early.words.startswith("Too early to say after 99 outcomes. Means are off since")


@pytest.mark.parametrize("rung", [True, False])
def test_draws_that_are_off_are_told_first(rung: bool) -> None:
    made = drawn(0.5, 0.8)
    alarm = LateAlarm("calibrated", 1300, None, 1400, 1200, None)
    board = fragments.Board((alarm,) if rung else (), 0.01, 200)
    means = " Means are off since about forecast 1,200." if rung else ""
    told = f"Draws are off by 30.0 points on average, raw forecasts by 0.0 points.{means}"
    assert fragments.judge(made, board) == fragments.Verdict("alarm", told)
    assert "1 stream, 1 off." in fragments.overview([("a", "b", made, board)]).html


def test_draws_that_come_closer_are_no_alarm() -> None:
    made, board = drawn(0.9, 0.7), fragments.Board((), 0.01, 200)
    told = "Draws are not there yet: off by 20.0 points on average, raw forecasts by 40.0 points."
    assert fragments.judge(made, board) == fragments.Verdict("early", told)
    # From so coarse a grid draws cannot come closer.
    assert fragments.judge(made, replace(board, step=0.41)).state == "fine"


def test_draws_that_break_are_told_with_since_when_and_how_far(source: Memory) -> None:
    made = Stream(Calibrant(seed=1))
    made.follower = Follower([0.0, 0.2, 0.8, 1.0])
    values = [0.2, 0.8] * 5000
    for k, value in enumerate(values):
        happened = int(k % 10 < 2 if value == 0.2 else k % 10 != 9)
        made.follower.take(value, value, value, happened)
        made.follower.stamp(float(k))
    board = fragments.Board((), 0.01, 10_000)
    assert fragments.judge(made.glance(), board).state == "fine"
    for k, value in enumerate(values[:625]):
        made.follower.take(value, value, value, int(value < 0.5))
        made.follower.stamp(10_000.0 + k)
    found = fragments.judge(made.glance(), board)
    assert found.state == "alarm"
    told = "Draws are off since about 1970-01-01 02:46:39 UTC (outcome 10,001), by "
    assert found.words.startswith(told)
    assert "points on average in the latest 2,500 outcomes, raw forecasts by " in found.words


def test_a_verdict_reckons_no_exact_bands(source: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*told: Any, **more: Any) -> None:
        raise AssertionError("too slow for every second")

    for name, module in list(sys.modules.items()):
        if name.startswith("calibrant") and hasattr(module, "binomial_band"):
            monkeypatch.setattr(module, "binomial_band", never)
    for name in source.streams():
        fragments.judge(source.glance(name), source.board(name))
    fragments.overview([("a", "b", source.glance("off"), source.board("off"))])
    with pytest.raises(AssertionError):
        source.story("off")


def drawn(raw: float, value: float) -> Glance:
    made = Follower([0.0, value, 1.0])
    for k in range(200):
        made.take(raw, value, 0.5, k % 2)
    return glance(made)


def test_verdict_and_report_judge_the_same_draws(source: Memory) -> None:
    for name, state, ending in (("off", "mean", "fixed"), ("well", "fine", "fine")):
        board, story = source.board(name), source.story(name)
        assert board.step == 1.0 / story["resolution"]
        assert fragments.judge(source.glance(name), board).state == state
        assert calibration(story).ending == ending


def test_who_is_not_watched_is_told() -> None:
    board = fragments.Board()
    assert fragments.judge(glance(followed(200)), board).words == "Nobody watches for alarms."
    assert "Nobody watches this stream." in fragments.alarms(board).html


def followed(rounds: int) -> Follower:
    made = Follower(Calibrant(seed=1))
    for k in range(rounds):
        made.take(0.5, 0.5, 0.5, k % 2)
    return made


def test_nothing_is_called_calibrated_that_was_not_judged() -> None:
    board = fragments.Board((), 0.01, judged=2, learning=150)
    found = fragments.judge(glance(followed(200)), board)
    assert found.state == "early"
    assert "2 forecasts judged so far" in found.words


def test_raw_forecasts_that_are_off_are_told_beside_calibrated_ones_that_are_not() -> None:
    alarm = LateAlarm("raw", 13, 5.0, 14, 12, 4.0)
    found = fragments.judge(glance(followed(200)), fragments.Board((alarm,), 0.01, 200))
    assert found.state == "fine"
    expected = "Raw forecasts are off since about 1970-01-01 00:00:04 UTC (forecast 12)."
    assert found.words == f"Calibrated, as far as can be told. {expected}"


def test_how_late_outcomes_are_is_told(shown: dict[str, str]) -> None:
    words = Read(shown["one"]).words
    assert "Half of the outcomes were known within 1.1 min" in words
    assert "Without an outcome so far: 0 forecasts." in words


def test_worst_keys_come_first(source: Memory) -> None:
    found = fragments.parts(source.story("off"), source.keys("off"))
    keys = {part.name: part.c2_forecast for part in source.keys("off")}
    worst, best = sorted(keys, key=lambda name: -keys[name])
    assert found.html.index(worst) < found.html.index(best)
    assert "2 of 2 keys" in found.html
    assert "no groups, classes or keys" in fragments.parts(source.story("one"), []).html


@pytest.mark.parametrize(("window", "shown"), [("625", 2), ("1250", 1), (None, 2), ("7", 2)])
def test_windows_are_of_the_length_that_was_picked(
    source: Memory, window: str | None, shown: int
) -> None:
    page = Read(Pages(source).stream("well", window=window))
    now = [given["href"] for tag, given in page.found if "aria-current" in given]
    length = "1250" if window == "1250" else "625"
    assert now == [f"/streams/well?window={length}#windows"]
    found = source.windows("well", 1 if window == "1250" else None)
    assert found is not None
    assert len(found.first) == shown


def test_a_source_without_windows_says_so() -> None:
    assert (
        "There are no windows of this stream: its rounds have no order."
        in fragments.windows(None, None, "").html
    )


# ----------------------------------------------------------------------------- pictures


def test_marks_lie_where_the_numbers_say() -> None:
    raw, outcomes = [0.1, 0.1, 0.9, 0.9], [0, 1, 1, 1]
    drawn = svg.picture(prepare_reliability(raw, outcomes, buckets=20), "p", "a title", "told")
    marks = re.findall(r'<circle class="mark forecast" cx="([\d.]+)" cy="([\d.]+)"', drawn)
    x, y, _, _ = svg._unit(svg.WIDTH - svg.LEFT - svg.RIGHT - 80.0)
    expected = [(float(x(p)), float(y(q))) for p, q in ((0.1, 0.5), (0.9, 1.0))]
    np.testing.assert_allclose(np.array(marks, float), expected, atol=0.06)
    assert ">a title</title>" in drawn


def test_a_picture_of_rare_events_shows_no_more_than_it_must() -> None:
    x, _, labels, names = svg._unit(100.0, np.array([0.01, 0.02]), np.array([np.nan]))
    assert x.high == pytest.approx(0.03)
    assert (labels[0], labels[-1], names[0]) == (0.0, x.high, "0")


@pytest.mark.parametrize("quantity", ["c2", "brier"])
def test_lines_over_time_go_through_all_points_within_the_axis(quantity: str) -> None:
    rng = np.random.default_rng(2)
    raw = rng.random(300)
    drawing = prepare_over_time(raw, rng.random(300) < raw, quantity=quantity)
    text = svg.picture(drawing, "t", "title", "told")
    points = re.search(r'<path class="line forecast" d="([^"]*)"', text)
    assert points is not None
    inside = drawing.series["forecast"] <= svg._scale(drawing, 230.0)[0].high
    assert len(re.findall("[ML]", points[1])) == int(inside.sum()) > 250


def test_too_few_rounds_for_a_window_are_told_in_the_picture() -> None:
    drawing = prepare_windows([0.5] * 3, [1, 0, 1], window=10)
    assert "too few rounds for one window" in svg.picture(drawing, "w", "title", "told")


def test_a_line_is_broken_where_a_number_is_missing() -> None:
    text = svg.path(np.arange(4.0), np.array([1.0, math.nan, 2.0, 3.0]), "raw")
    assert text == '<path class="line raw" d="M0 1M2 2L3 3"/>'
    assert svg.path(np.arange(1.0), np.array([math.nan]), "raw") == ""


def test_a_drawing_of_another_kind_is_refused() -> None:
    drawing = Pareto({}, {}, ("Brier", "C2"), ())
    assert svg.picture(prepare_reliability([0.5], [1]), "p", "title", "told")
    with pytest.raises(TypeError, match="drawing must be of a kind that can be drawn here"):
        svg.picture(drawing, "p", "title", "told")


# ------------------------------------------------------------------------- the protocol


class Client:
    """Somebody who asks an application without a network."""

    def __init__(self, made: Any) -> None:
        self.transport = httpx.ASGITransport(app=made)

    def get(self, path: str) -> Any:
        async def ask() -> Any:
            async with httpx.AsyncClient(transport=self.transport, base_url="http://it") as client:
                return await client.get(path)

        return anyio.run(ask)


@pytest.fixture(scope="module")
def client(source: Memory) -> Client:
    mounted = routing.Mount("/live", routes=routes(source))
    return Client(applications.Starlette(routes=[mounted]))


PATHS = ("/live/", "/live/streams/well", "/live/live.css", "/live/live.js", "/live/streams/x")


def test_every_answer_is_under_a_strict_policy(client: Client) -> None:
    for path in PATHS:
        found = client.get(path)
        policy = found.headers["content-security-policy"]
        assert "unsafe" not in policy
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert found.headers["x-content-type-options"] == "nosniff"


def test_a_mounted_page_finds_its_style_its_script_and_its_events(client: Client) -> None:
    page = Read(client.get("/live/streams/well?window=625").text)
    assert "/live/live.css" in page.named("href")
    assert page.named("data-events") == ["/live/events/well?window=625"]
    assert client.get("/live/live.js").headers["content-type"].startswith("text/javascript")
    assert "--forecast:" in client.get("/live/live.css").text


def test_a_name_with_a_slash_has_a_page(client: Client) -> None:
    link = next(each for each in Read(client.get("/live/").text).named("href") if "quoted" in each)
    found = client.get(link)
    assert found.status_code == 200
    assert HARD in Read(found.text).words


@pytest.mark.parametrize("path", ["/live/streams/nobody", "/live/events/nobody"])
def test_an_unknown_stream_is_not_found(client: Client, path: str) -> None:
    found = client.get(path)
    assert found.status_code == 404
    assert found.text.startswith("stream must be one of 'empty', 'one'")


def sent(pages: Pages, name: str, between: list[Any]) -> list[list[str]]:
    """Return which fragments are sent at first, and after each of some calls."""

    async def listen() -> list[list[str]]:
        page, told = _Page(pages, Door()), []
        changes = page._changes(lambda: pages.one_stream(name), lambda: True)
        assert await anext(changes) == "retry: 2000\n\n"
        for call in between:
            call()
            text = await anext(changes)
            data = re.findall(r"^data: (.*)$", text, re.MULTILINE)
            told.append([json.loads(each)["id"] for each in data])
        await changes.aclose()  # type: ignore[attr-defined]
        return told

    return anyio.run(listen)


def test_pages_are_packed_for_those_who_accept_it(source: Memory) -> None:
    async def ask(path: str, how: str) -> Any:
        transport = httpx.ASGITransport(app=app(source))
        async with httpx.AsyncClient(transport=transport, base_url="http://it") as client:
            return await client.get(path, headers={"Accept-Encoding": how})

    for path in ("/", "/streams/well", "/live.css", "/live.js"):
        small, whole = (anyio.run(ask, path, how) for how in ("gzip", "identity"))
        assert (small.headers["content-encoding"], small.text) == ("gzip", whole.text)
        assert "content-encoding" not in whole.headers
        assert int(small.headers["content-length"]) < 0.6 * len(whole.content)
        assert small.headers["vary"] == whole.headers["vary"] == "Accept-Encoding"


def test_packed_events_are_read_one_by_one_and_repetitions_are_small() -> None:
    made = played(700)
    pages = Pages(Memory(one=made), quick=0.0, slow=1e9)

    async def listen() -> list[tuple[int, str]]:
        changes = _Page(pages, Door())._changes(lambda: pages.one_stream("one"), lambda: True)
        packed, reader, told = packed_events(changes), zlib.decompressobj(31), []
        for k in range(4):
            if k > 1:
                made.observe(made.forecast(0.4, time=2000.0).id, 1, time=2001.0)
            part = await anext(packed)
            told.append((len(part), reader.decompress(part).decode()))
        await packed.aclose()  # type: ignore[attr-defined]
        return told

    (_, retry), (first, _), (second, text), (third, more) = anyio.run(listen)
    assert retry == "retry: 2000\n\n"
    assert text.startswith("event: fragment\ndata: ")
    assert text.endswith("\n\n")
    assert "702 outcomes known" in more
    assert max(second, third) < first / 3


def test_only_fragments_that_changed_are_sent() -> None:
    made = played(120)
    pages = Pages(Memory(one=made), quick=0.0, slow=0.0)

    def again() -> None:
        made.observe(made.forecast(0.4, time=2000.0).id, 1, time=2001.0)

    def wait() -> None:
        made.forecast(0.4, time=2000.0)

    first, same, more, asked = sent(pages, "one", [lambda: None, lambda: None, again, wait])
    assert first[:4] == ["verdict", "facts", "reliability", "time"]
    assert len(first) == 11
    assert same == []
    assert {"facts", "reliability", "time", "trust"} <= set(more)
    assert "settings" not in more
    assert "facts" in asked
    assert "reliability" not in asked


def test_all_who_look_share_one_answer_for_a_while() -> None:
    asked: Counter[str] = Counter()

    class Counting(Memory):
        def glance(self, name: str) -> Any:
            asked["glance"] += 1
            return super().glance(name)

        def story(self, name: str) -> Any:
            asked["story"] += 1
            return super().story(name)

    now = [0.0]
    pages = Pages(Counting(one=played(30)), quick=1.0, slow=10.0, clock=lambda: now[0])
    for moment in (0.0, 0.5, 1.0, 1.5, 5.0, 10.0):
        now[0] = moment
        pages.one_stream("one")
    assert asked == {"glance": 4, "story": 2}


def test_the_script_is_short_and_asks_nobody_else() -> None:
    text = resources.files("calibrant.live").joinpath("static/live.js").read_text()
    assert len(text.splitlines()) <= 40
    assert "http" not in text
    assert "eval" not in text


def test_an_application_of_its_own_shows_all_streams(source: Memory) -> None:
    assert "6 streams" in Read(Client(app(source)).get("/").text).words


# ------------------------------------------------------------------- streams in memory


def test_a_stream_is_followed_watched_and_timed() -> None:
    rec = Recalibrator(seed=3)
    made, again = Stream(rec, horizon=9), Recalibrator(seed=3)
    tickets = [made.forecast(raw, time=float(k)) for k, raw in enumerate((0.2, 0.9, 0.4))]
    for place in (2, 0):
        made.observe(tickets[place].id, 1, time=10.0)
    seen = made.glance()
    assert (seen.rounds, seen.open) == (2, 1)
    assert seen.waited(1.0) == 16.0
    assert (made.board().judged, made.watch.waiting) == (1, 2)
    told = [again.forecast(raw) for raw in (0.2, 0.9, 0.4)]
    for place in (2, 0):
        again.observe(told[place], 1)
    assert rec == again
    expected = summarise_collected(made.follower.collector(), again)
    assert made.story().to_dict() == expected.to_dict()
    with pytest.raises(InvalidInput, match="id must be of a forecast that is open, got 0"):
        made.observe(0, 1, time=10.0)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="stream must be one of none, got 'x'"):
        Memory().glance("x")


def test_the_demonstration_moves_and_its_adversary_meets_its_match() -> None:
    show = Show(now=1000.0, before=60)
    before = {name: show.source.glance(name).rounds for name in show.source.streams()}
    # Outcomes are late, so the draws take some 1,200 rounds to keep up with the adversary.
    for k in range(60):
        show.step(1000.0 + 0.2 * k)
    for name in show.source.streams():
        assert show.source.glance(name).rounds > before[name] + 200
    seen = show.source.glance("adversary")
    assert seen.c2["mean"] > 0.2 > 0.1 > seen.c2["forecast"]
    rare = show.source.glance("rare events")
    assert rare.base_rate < 0.03
    assert {part.name for part in show.source.keys("drifting model")} == {
        "north", "south", "east", "west",
    }  # fmt: skip


def test_times_may_be_dates() -> None:
    made = Stream(Calibrant(seed=1))
    first, then = np.arange("2024-02-28", "2024-03-01", dtype="M8[D]")
    assert made.observe(made.forecast(0.7, time=first).id, 1, time=then).outcome == 1
