"""Figures on the README and the gallery: quoted is what is stored, and nothing is missing."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
STORED = json.loads((ROOT / "docs" / "images" / "accuracy-and-safety.json").read_text())
ROW = re.compile(r"^\| (?P<name>[^|]+) \| (?P<brier>0\.\d{4}) \| (?P<safety>[01]\.\d{4}) \|", re.M)


def quoted() -> dict[str, tuple[str, str]]:
    """Brier score and C2 against the adversary by the name in backquotes."""
    found = {}
    for row in ROW.finditer(README):
        named = re.search(r"`(\w+)`", row["name"])
        found[named[1] if named else "raw"] = row["brier"], row["safety"]
    return found


def test_the_table_of_the_readme_is_that_of_the_stored_comparison() -> None:
    stored = {row["name"]: row for row in STORED["rows"]}
    assert len(quoted()) == 7
    for name, figures in quoted().items():
        row = stored[name]
        assert figures == (f"{row['brier']:.4f}", f"{row['adversarial_l2']:.4f}"), name
    assert f"{STORED['rounds']:,} confidences" in README


def test_no_other_accurate_method_withstands_the_adversary_as_the_picture_says() -> None:
    rows = {row["name"]: row for row in STORED["rows"]}
    best = rows["calibrant"]
    others = [row for row in rows.values() if row["kind"] not in ("default", "calibrator")]
    assert min(row["adversarial_l2"] for row in others) >= 0.25
    # What the README says of the picture.
    near = sorted(rows.values(), key=lambda row: row["brier"])[:8]
    assert best in near
    assert sum(row["adversarial_l2"] >= 0.25 for row in near) == 7
    assert "seven others with the lowest Brier scores stand at 0.25 or more" in README
    # In the digits that the README quotes: the mixture alone differs behind them.
    assert round(best["brier"], 4) == min(round(row["brier"], 4) for row in rows.values())
    assert best["adversarial_l2"] == min(row["adversarial_l2"] for row in rows.values())


def test_every_picture_that_a_page_shows_is_stored_and_has_words() -> None:
    pages = [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
    shown = [(page, *each) for page in pages for each in IMAGE.findall(page.read_text())]
    assert len(shown) >= 8
    for page, words, target in shown:
        assert (page.parent / target).is_file()
        assert len(words) > 10


IMAGE = re.compile(r"!\[([^]]*)\]\(([^)]+)\)")


def test_pages_name_an_install_command_that_works() -> None:
    from calibrant.errors import RELEASED, requirement

    pages = [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
    named = [
        page.name for page in pages if re.search(r"pip install .calibrant\[", page.read_text())
    ]
    assert RELEASED or named == []
    assert requirement("plot").startswith('"calibrant[' if RELEASED else '".[')


def test_one_constant_decides_how_messages_say_what_to_install() -> None:
    places = (ROOT / "src" / "calibrant").rglob("*.py")
    assert [p.name for p in places if '"calibrant[' in p.read_text()] == ["errors.py"]


def test_the_readme_quotes_the_certificate_that_its_first_lines_print(
    capsys: pytest.CaptureFixture[str],
) -> None:
    first, told = re.findall(r"^```(?:python|text)\n(.*?)^```", README, re.M | re.S)[:2]
    exec(first, {})
    assert capsys.readouterr().out == told


GALLERY = ["language-model", "rain", "games", "flares", "recessions", "icing"]


@pytest.mark.slow
@pytest.mark.parametrize("name", GALLERY)
def test_the_stored_picture_is_what_the_stream_gives_today(name: str) -> None:
    from calibrant.plot.save import settled

    made = settled(pictures().PICTURES[name]())
    assert made.encode() == (ROOT / "docs" / "images" / f"{name}.svg").read_bytes()


def test_every_picture_of_the_gallery_is_compared() -> None:
    assert list(pictures().GALLERY) == GALLERY


@pytest.mark.slow
def test_the_stored_comparison_is_what_the_stream_gives_today() -> None:
    from calibrant import compare, datasets
    from calibrant.summary.summary import bare

    told = json.loads((ROOT / "docs" / "images" / "accuracy-and-safety.json").read_text())
    kept = {row["name"]: row for row in told["rows"]}
    stream = datasets.load_language_model("gpt-4.1-nano", "verbal")
    methods = ["calibrant", "mixture", "foster_hart", "anchored"]
    made = compare.compare(stream.raw, stream.outcomes, methods=methods, seed=told["seed"])
    found = [bare(vars(row)) for row in made.ranked()]
    assert {row["name"] for row in found} >= set(methods)
    assert [row for row in found if row != kept[row["name"]]] == []


def pictures() -> ModuleType:
    """``docs/pictures.py``, which is no part of the package."""
    pytest.importorskip("matplotlib", reason="needs the extra plot")
    spec = importlib.util.spec_from_file_location("docs_pictures", ROOT / "docs" / "pictures.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made
