"""Reports in a real browser: they show, in light and in dark, and ask nobody for anything."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import CHROMIUM, rgb, visit
from summaries import overconfident, replayed

from calibrant.compare import compare
from calibrant.compare import write as write_comparison
from calibrant.plot import canvas
from calibrant.report import write

pytest.importorskip("jinja2", reason='needs the extra "plot"')
pytest.importorskip("matplotlib", reason='needs the extra "plot"')

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM, reason="no Chromium here: nothing to open a page with"),
]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("report")
    return write(replayed(*overconfident(600)), place / "report.html")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_report_shows_in_its_colours_and_asks_for_nothing(
    page: Path, tmp_path: Path, dark: bool
) -> None:
    seen = visit(page, tmp_path, dark=dark)
    colours = canvas.DARK if dark else canvas.LIGHT
    assert seen.corner == rgb(colours["paper"])
    for role in ("ink", "raw", "forecast", "mean"):
        assert rgb(colours[role]) in seen.colours, role
    assert seen.console == []
    assert seen.asked == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_comparison_shows_its_pareto_plot_and_asks_for_nothing(
    tmp_path: Path, dark: bool
) -> None:
    names = ["identity", "foster_hart", "online_platt", "calibrant"]
    made = compare(*overconfident(600), methods=names, peers=False, adversarial_rounds=200)
    page = write_comparison(made, tmp_path / "compare.html")
    seen = visit(page, tmp_path, dark=dark)
    colours = canvas.DARK if dark else canvas.LIGHT
    assert seen.corner == rgb(colours["paper"])
    for role in ("ink", "forecast"):
        assert rgb(colours[role]) in seen.colours, role
    assert seen.console == []
    assert seen.asked == []


def test_a_page_that_does_ask_and_complain_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    page.write_text("<img src='http://127.0.0.1:9/x.png'><script>console.error('no')</script>")
    seen = visit(page, tmp_path)
    assert seen.asked == ["http://127.0.0.1:9/x.png"]
    assert len(seen.console) >= 1


# Phones and paper.

sync_api = pytest.importorskip("playwright.sync_api", reason="needs the extra test")
KINDS = ("report", "groups", "compare")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as play:
        made = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture(scope="module")
def pages(page: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("pages")
    names = ["identity", "foster_hart", "online_platt", "calibrant"]
    made = compare(*overconfident(600), methods=names, peers=False, adversarial_rounds=200)
    compared = write_comparison(made, place / "compare.html")
    return {"report": page, "groups": grouped(place), "compare": compared}


def grouped(place: Path, *more: str) -> Path:
    """Write the report of a run with groups, one of them with a long name."""
    from calibrant.cli.app import run

    raw, outcomes = overconfident(1200)
    names = ["north", "south", "west", "east", "a-region-with-a-name-that-does-not-end", *more]
    chosen = np.random.default_rng(3).choice(names, len(raw))
    rows = [f"{p},{y},{name}" for p, y, name in zip(raw, outcomes, chosen, strict=True)]
    (place / "regions.csv").write_text("\n".join(["prob,won,region", *rows]) + "\n")
    report = place / "groups.html"
    words = ["--group", "region", "--seed", "5", "--report", str(report)]
    assert run(["replay", str(place / "regions.csv"), *words]) == 0
    return report


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_page_is_no_wider_than_a_phone(
    browser: Any, pages: dict[str, Path], kind: str, dark: bool
) -> None:
    scheme = "dark" if dark else "light"
    context = browser.new_context(color_scheme=scheme, viewport={"width": 360, "height": 740})
    seen = context.new_page()
    seen.goto(pages[kind].as_uri())
    wide, room = seen.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    context.close()
    assert room == 360
    assert wide <= room


def sheets(seen: Any) -> int:
    """How many pages a page has in print."""
    return len(re.findall(rb"/Type\s*/Page\b", seen.pdf(format="A4")))


@pytest.mark.parametrize("kind", KINDS)
def test_no_printed_page_holds_the_footer_alone(
    browser: Any, pages: dict[str, Path], kind: str
) -> None:
    seen = browser.new_page()
    seen.goto(pages[kind].as_uri())
    whole = sheets(seen)
    seen.evaluate("document.querySelector('footer').remove()")
    without = sheets(seen)
    seen.close()
    assert whole == without >= 1


@pytest.mark.parametrize("medium", ["screen", "print"])
def test_a_label_without_end_leaves_room_for_its_numbers(
    browser: Any, tmp_path: Path, medium: str
) -> None:
    seen = browser.new_page(viewport={"width": 1200, "height": 800})
    seen.emulate_media(media=medium)
    seen.goto(grouped(tmp_path, "x" * 300).as_uri())
    wide = "document.querySelectorAll('.sheet')"
    found = seen.evaluate(f"Array.from({wide}, each => each.scrollWidth - each.clientWidth)")
    seen.close()
    assert len(found) > 4
    assert max(found) <= 0


def test_a_footer_alone_on_a_page_would_be_noticed(browser: Any) -> None:
    seen = browser.new_page()
    style = "<style>@page { margin: 0 } body { margin: 0 } div { height: 290mm }</style>"
    seen.set_content(f"{style}<div>all</div><footer style='height: 20mm'>end</footer>")
    whole = sheets(seen)
    seen.evaluate("document.querySelector('footer').remove()")
    assert (whole, sheets(seen)) == (2, 1)
    seen.close()
