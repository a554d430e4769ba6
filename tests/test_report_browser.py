"""Reports in a real browser: they show, in light and in dark, and ask nobody for anything."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from stories import overconfident, replayed

from calibrant.plot import palette
from calibrant.report import write

pytest.importorskip("jinja2", reason='needs the extra "plot"')
pytest.importorskip("matplotlib", reason='needs the extra "plot"')
from matplotlib.image import imread

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), "")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM, reason="no Chromium here: nothing to open a page with"),
]

QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-default-apps", "--disable-extensions", "--disable-domain-reliability",
    "--enable-logging=stderr", "--host-resolver-rules=MAP * ~NOTFOUND",
)  # fmt: skip
NOBODY = "not an origin"


@dataclass(frozen=True)
class Visit:
    """What a browser saw, said and asked for."""

    corner: tuple[int, ...]
    colours: set[tuple[int, ...]]
    console: list[str]
    asked: list[str]


def visit(page: Path, place: Path, *, dark: bool = False) -> Visit:
    """Open ``page`` in a browser without a memory."""
    shot, log = place / "shot.png", place / "net.json"
    options = [
        f"--user-data-dir={place / 'profile'}",
        f"--log-net-log={log}",
        f"--blink-settings=preferredColorScheme={0 if dark else 1}",
        f"--screenshot={shot}",
        "--window-size=1000,1400",
    ]
    command = [CHROMIUM, *QUIET, *options, page.as_uri()]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    pixels = (imread(shot)[..., :3] * 255).round().astype(int)
    seen = {tuple(row) for row in pixels.reshape(-1, 3)[::7].tolist()}
    said = re.findall(r"CONSOLE.*", ran.stderr)
    return Visit(tuple(pixels[0, 0].tolist()), seen, said, addresses(log.read_text()))


def addresses(log: str) -> list[str]:
    """What pages asked for; the browser's own errands have no page that started them."""
    events = json.loads(log)["events"]
    asked = [event.get("params", {}) for event in events]
    return [p["url"] for p in asked if p.get("initiator", NOBODY) != NOBODY and "url" in p]


def rgb(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[k : k + 2], 16) for k in (1, 3, 5))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("report")
    return write(replayed(*overconfident(600)), place / "report.html")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_report_shows_in_its_colours_and_asks_for_nothing(
    page: Path, tmp_path: Path, dark: bool
) -> None:
    seen = visit(page, tmp_path, dark=dark)
    colours = palette.DARK if dark else palette.LIGHT
    assert seen.corner == rgb(colours["paper"])
    for role in ("ink", "raw", "forecast", "mean"):
        assert rgb(colours[role]) in seen.colours, role
    assert seen.console == []
    assert seen.asked == []


def test_a_page_that_does_ask_and_complain_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    page.write_text("<img src='http://127.0.0.1:9/x.png'><script>console.error('no')</script>")
    seen = visit(page, tmp_path)
    assert seen.asked == ["http://127.0.0.1:9/x.png"]
    assert len(seen.console) >= 1
