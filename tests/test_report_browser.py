"""Reports in a real browser: they show, in light and in dark, and ask nobody for anything."""

from __future__ import annotations

from pathlib import Path

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
