"""A real browser: what it saw of a page, what it said, and what it asked for."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), "")
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
    from matplotlib.image import imread

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
