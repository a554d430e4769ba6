"""The pages that follow from the code do, and what pages name exists."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import inspect
import json
import os
import pkgutil
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import calibrant
from calibrant import Calibrant, Recalibrator
from calibrant.calibrators import Calibrator, FosterHart
from calibrant.calibrators.base import MAX_BUCKETS, MAX_PRIOR
from calibrant.core.grid import MAX_RESOLUTION, MAX_SPACED, Grid
from calibrant.errors import InvalidInput
from calibrant.kernels.layout import FIXED, HEAD, STATE, Section
from calibrant.recalibrate.spec import LOSS_CODES, MAX_OPEN
from calibrant.registry import calibrators

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "calibrant"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def load_tables() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_tables", ROOT / "docs" / "tables.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


tables = load_tables()


# Generated parts.


@every_page
def test_generated_parts_are_what_script_docs_would_write(page: Path) -> None:
    text = page.read_text()
    assert tables.render(text) == text, "run script/docs"


def test_the_table_of_calibrant_has_every_verb_that_a_recalibrator_has_not_like_this() -> None:
    told = tables.part("calibrant")
    for name, verb in inspect.getmembers(Calibrant, inspect.isfunction):
        if name[0] == "_" or verb is getattr(Recalibrator, name, None):
            continue
        assert f"`{name}{tables.signature(verb)}`" in told


def test_every_part_stands_on_a_page() -> None:
    used = {found["name"] for page in PAGES for found in tables.PART.finditer(page.read_text())}
    assert {name for name in used if name.split()[0] not in tables.RESULTS} == set(tables.PARTS)


def test_every_stored_result_stands_on_a_page_that_says_where_it_comes_from() -> None:
    used = [found["name"] for page in PAGES for found in tables.PART.finditer(page.read_text())]
    words = [name.split() for name in used if name.split()[0] in tables.RESULTS]
    stored = {path.stem for path in (ROOT / "docs" / "results").glob("*.json")}
    told = {name for kind, name, *_ in words if kind == "source"}
    assert stored
    assert {name for kind, name, *_ in words if kind == "result"} <= told
    assert {name for name in stored if not name.startswith("reproduce_")} <= told
    for name in stored:
        found = tables.result(name)
        assert {"command", "commit", "date", "machine", "tables"} <= set(found), name


def test_claims_are_counted_once_and_by_whole_runs_where_there_are_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "results").mkdir()
    runs = {"a": (True, False), "a_quick": (True, True), "b_quick": (True, True)}
    for name, (paper, ours) in runs.items():
        told = {"command": name, "date": "today", "failures": [name]}
        told |= {"holds": {"paper": [paper], "ours": [ours]}}
        (tmp_path / "results" / f"reproduce_{name}.json").write_text(json.dumps(told))
    monkeypatch.setattr(tables, "DOCS", tmp_path)
    counted = "2 of the paper's 2 claims hold; 1 of our own 2 claims hold"
    runs_told = "(`a` (today), `b_quick` (today)). Those that do not:\n\n- a\n- b_quick\n"
    assert tables.part("claims") == f"{counted} {runs_told}"


def test_a_result_is_shown_as_it_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "results").mkdir()
    stored = {
        "command": "python -m it",
        "commit": "abc",
        "date": "2026-01-02",
        "machine": {"processor": "a chip", "cores": 2, "C": "cc"},
        "tables": [{"head": ["a"], "rows": [["1"]]}, {"head": ["b"], "rows": [["2"]]}],
    }
    (tmp_path / "results" / "it.json").write_text(json.dumps(stored))
    monkeypatch.setattr(tables, "DOCS", tmp_path)
    assert tables.part("result it 2") == "| b |\n| --- |\n| 2 |\n"
    told = "`python -m it` on 2026-01-02, commit abc; a chip, cores 2.\n"
    assert tables.part("source it") == f"From {told}"
    (tmp_path / "results" / "it.json").write_text(json.dumps(stored | {"published": "a page"}))
    assert tables.part("source it") == (
        "From `python -m it`, date and commit not recorded; a chip, cores 2.\n"
    )


def test_every_marker_belongs_to_a_part() -> None:
    for page in PAGES:
        text = page.read_text()
        assert len(re.findall("<!-- (?:begin|end) ", text)) == 2 * len(tables.PART.findall(text))


def test_what_stands_between_two_markers_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tables.PARTS, "greeting", lambda: "hello\n")
    before = "a\n<!-- begin greeting -->\nold\n\nolder\n<!-- end greeting -->\nb\n"
    after = "a\n<!-- begin greeting -->\nhello\n<!-- end greeting -->\nb\n"
    assert tables.render(before) == after
    assert tables.render(after) == after


def test_a_part_that_nobody_makes_is_an_error() -> None:
    with pytest.raises(KeyError, match="nobody"):
        tables.render("<!-- begin nobody -->\n<!-- end nobody -->\n")


def test_only_pages_that_changed_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "old.md").write_text("<!-- begin exceptions -->\n<!-- end exceptions -->\n")
    (tmp_path / "plain.md").write_text("nothing to do\n")
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    monkeypatch.setattr(tables, "DOCS", tmp_path)
    tables.main()
    assert "`UnknownTicket`" in (tmp_path / "old.md").read_text()
    tables.main()
    assert capsys.readouterr().out == "wrote old.md\n"


def test_the_script_that_writes_them_can_be_run_and_parsed() -> None:
    script = ROOT / "script" / "docs"
    assert os.access(script, os.X_OK)
    subprocess.run(["sh", "-n", str(script)], check=True)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Newcomer(FosterHart):
    name = "newcomer"
    guarantee = "E C2 <= 0"
    charm: float = 0.5


def test_a_new_calibrator_comes_into_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(calibrators._entries, "newcomer", Newcomer)
    assert "| `newcomer` | `Newcomer` | `E C2 <= 0` |" in tables.PARTS["calibrators"]()
    assert "| `newcomer` | `charm` | `0.5` |" in tables.PARTS["parameters"]()


def test_words_are_listed_as_their_section_declares_them() -> None:
    section = Section()
    section.whole("CLOCK", STATE, "Forecasts made.")
    section.real("PAIR", FIXED, "Two numbers.", words=2)
    assert tables.word_table(section)().splitlines()[2:] == [
        "| 0 | `CLOCK` | whole | state | Forecasts made. |",
        "| 1 to 2 | `PAIR` | real | fixed | Two numbers. |",
    ]


def test_words_of_a_rule_come_into_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    head = Section(HEAD)
    head.real("CHARM", STATE, "How charming.")
    kernels = dataclasses.replace(FosterHart.kernels, head=head)
    monkeypatch.setattr(Newcomer, "kernels", kernels)
    monkeypatch.setitem(calibrators._entries, "newcomer", Newcomer)
    row = f"| `newcomer` | head {len(HEAD)} | `CHARM` | real | state | How charming. |"
    assert row in tables.PARTS["rule words"]().splitlines()


def test_what_a_class_inherits_is_listed_once() -> None:
    rows = tables.PARTS["recalibrator"]().splitlines()
    names = [re.split(r"[(`]", row)[1] for row in rows[2:]]
    assert len(names) == len(set(names))
    assert {"forecast", "expire", "to_bytes", "Recalibrator.from_bytes", "issued"} <= set(names)


def test_every_registered_calibrator_is_on_its_page() -> None:
    text = (ROOT / "docs" / "reference" / "calibrators.md").read_text()
    rows = {row.split("|")[1].strip(" `") for row in text.splitlines() if row.startswith("| `")}
    assert set(calibrators.names()) <= rows


def test_sentences_end_where_they_should() -> None:
    assert tables.first_sentence("One thing.  Another.\n\nMore.") == "One thing."
    assert tables.first_sentence("See [the\nrest](x.md) at ``0.5``, and\n:meth:`~a.b` too.") == (
        "See the rest at `0.5`, and `a.b` too."
    )
    assert tables.first_sentence(None) == ""


# Settings and limits.


def told() -> str:
    return (ROOT / "docs" / "reference" / "recalibrator.md").read_text()


def test_every_setting_of_the_recalibrator_is_documented() -> None:
    named = set(inspect.signature(Recalibrator).parameters) - {"parameters"}
    named |= {field.name for field in dataclasses.fields(Calibrator)}
    assert [name for name in sorted(named) if f"`{name}`" not in told()] == []


def test_limits_are_those_of_the_code() -> None:
    table = told().partition("| setting | range |\n")[2].partition("\n\n")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", table, re.MULTILINE))
    spaced = (
        f"2 to {MAX_SPACED:,} on the grids `logit` and `arcsine`, 1 to {MAX_SPACED:,} on `graded`"
    )
    assert rows["resolution"] == f"1 to {MAX_RESOLUTION:,}; {spaced}"
    assert Grid("graded", 1).cells == 2
    for kind in ("logit", "arcsine"):
        with pytest.raises(InvalidInput):
            Grid(kind, 1)
    assert rows["buckets"] == f"1 to {MAX_BUCKETS:,}"
    assert rows["prior"] == f"0 to {MAX_PRIOR:,}"
    assert rows["max_open"] == f"1 to {MAX_OPEN:,}"
    assert rows["loss"] == ", ".join(f'`"{name}"`' for name in LOSS_CODES)


def test_every_environment_variable_is_in_the_contributing_page() -> None:
    files = [*SOURCE.rglob("*.py"), *ROOT.glob("script/*"), ROOT / "tests" / "conftest.py"]
    used = {name for file in files for name in re.findall(r"CALIBRANT_[A-Z_]+", file.read_text())}
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert "CALIBRANT_COMPILE" in used
    assert [name for name in sorted(used) if f"`{name}`" not in text] == []


def dependencies() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    rows = [*project["dependencies"]]
    rows += [row for extra in project["optional-dependencies"].values() for row in extra]
    return {re.split(r"[<>=\[]", row)[0] for row in rows} - {"calibrant"}


def test_every_dependency_has_a_reason_on_the_design_page() -> None:
    section = (ROOT / "docs" / "design.md").read_text().partition("## Dependencies\n")[2]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = set(project["optional-dependencies"]) - dependencies()
    named = set(re.findall(r"`([\w-]+)`", section)) - extras
    assert named == dependencies()


# What pages name.


def known_tests() -> set[str]:
    text = "".join(file.read_text() for file in sorted(ROOT.glob("tests/test_*.py")))
    return set(re.findall(r"def (test_\w+)", text))


@every_page
def test_every_test_that_a_page_names_exists(page: Path) -> None:
    named = re.findall(r"`(test_\w+)`", page.read_text())
    assert [name for name in named if name not in known_tests()] == []


@every_page
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    named = re.findall(r"`((?:[\w-]+/)+[\w-]+\.(?:py|md|c))`", page.read_text())
    places = (ROOT, SOURCE, page.parent)
    assert [name for name in named if not any((place / name).exists() for place in places)] == []


PACKAGES = "advice|bounds|calibrators|core|errors|kernels|losses|metrics|recalibrate|registry"
DOTTED = re.compile(rf"`(?:calibrant\.|(?=(?:{PACKAGES})\.))([a-z]\w*(?:\.\w+)*)`")


def resolve(path: str) -> Any:
    """Return what a dotted name below calibrant stands for, importing what must be."""
    found: Any = calibrant
    name = "calibrant"
    for part in path.split("."):
        name = f"{name}.{part}"
        if not hasattr(found, part):
            importlib.import_module(name)
        found = getattr(found, part)
    return found


@every_page
def test_every_dotted_name_on_a_page_leads_somewhere(page: Path) -> None:
    for path in DOTTED.findall(page.read_text()):
        if not path.endswith((".py", ".md")) and not path.startswith("integrations.spark"):
            resolve(path)


def test_a_dotted_name_that_leads_nowhere_is_found() -> None:
    assert resolve("bounds.foster_hart") is calibrant.bounds.foster_hart
    with pytest.raises(ModuleNotFoundError):
        resolve("bounds.nobody")


def test_the_readme_begins_with_ten_lines_that_forecast_observe_and_certify() -> None:
    first = re.search(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
    assert first is not None
    assert len(first[1].splitlines()) <= 10
    assert all(call in first[1] for call in (".forecast(", ".observe(", ".certificate("))


def test_every_promise_of_the_mean_is_denied_wherever_the_two_outputs_are_told_apart() -> None:
    for name in ("README.md", "docs/tutorial.md", "docs/decisions/draw-and-mean.md"):
        text = " ".join((ROOT / name).read_text().split())
        assert "no such promise" in text
        assert "any adversary that does not see it" in text.replace("*", "")


# The glossary.

GLOSSARY = ROOT / "docs" / "reference" / "glossary.md"
ROW = re.compile(r"^\| ([\w, ]+) \| ([^|]+) \|(.*)\|$", re.MULTILINE)
DRAWING = ("cli", "demo", "plot", "report", "stream", "summary")
HOSTS = ("datasets", "experiments", "frames", "integrations")
"""Layers that speak the words of others: of the paper's data, of River and of scikit-learn."""
OLD = ("experts",)
"""Names that still work, with a warning."""
VERBS = {"sample_one"}
"""What every kind of stream calls a look at its next draw."""
EXCEPTIONS = {
    "calibrant.classes.reductions.TopLabel": "what the literature calls it",
    "calibrant.client.wrapped.Served.predict_proba": "the verb of the models it wraps",
    "calibrant.journal.settings.Settings.labels": "the names of classes",
    "calibrant.journal.settings.Settings.number_of.label": "the name of a class",
    "calibrant.losses.custom.CustomLoss.label": "the name of a loss",
    "calibrant.regression.distribution.Distribution.from_samples": "what the literature calls it",
    "calibrant.regression.distribution.Distributions.from_samples": "what the literature calls it",
}


def synonyms() -> set[str]:
    rows = ROW.findall(GLOSSARY.read_text())
    return {word for *_, others in rows for word in re.findall(r"`(\w+)`", others)}


def parts_of(name: str) -> set[str]:
    """Return the words of a name, and the name itself."""
    words = {word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", name)}
    return words | {word.removesuffix("s") for word in words} | {name}


def public_modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(calibrant.__path__, "calibrant."):
        if found.name.split(".")[1] not in DRAWING + HOSTS + OLD:
            yield importlib.import_module(found.name)


def names_in(module: ModuleType) -> Iterator[str]:
    """Yield what a module exports, the members of its classes and their parameters."""
    for name in getattr(module, "__all__", ()):
        value = getattr(module, name)
        place = f"{getattr(value, '__module__', None) or module.__name__}.{name}"
        if place.startswith("calibrant."):
            yield place
            yield from names_under(value, place)


def names_under(value: Any, place: str) -> Iterator[str]:
    if inspect.isfunction(value):
        yield from (f"{place}.{name}" for name in inspect.signature(value).parameters)
    elif inspect.isclass(value):
        for name in {**value.__dict__, **inspect.get_annotations(value)}:
            if not name.startswith("_"):
                yield f"{place}.{name}"
                yield from names_under(inspect.getattr_static(value, name, None), f"{place}.{name}")


def offenders(names: Iterator[str]) -> list[str]:
    forbidden = synonyms()
    return sorted({name for name in names if parts_of(told_of(name)) & forbidden})


def told_of(name: str) -> str:
    """Return the last part of a dotted name, or nothing if that is one of the verbs."""
    last = name.rpartition(".")[2]
    return "" if last in VERBS else last


def test_public_names_avoid_the_synonyms_of_the_glossary() -> None:
    found = offenders(name for module in public_modules() for name in names_in(module))
    assert found == sorted(EXCEPTIONS)


def test_a_synonym_would_be_found() -> None:
    made = ModuleType("calibrant.planted")
    exec(
        "__all__ = ['PredictionLog', 'go', 'fine']\n"
        "class PredictionLog:\n    n_bins: int = 3\n    def keep(self, labels): ...\n"
        "def go(targets): ...\n"
        "def fine(outcome): ...\n",
        made.__dict__,
    )
    planted = "calibrant.planted."
    assert offenders(names_in(made)) == [
        planted + "PredictionLog",
        planted + "PredictionLog.keep.labels",
        planted + "PredictionLog.n_bins",
        planted + "go.targets",
    ]


def words_explained() -> set[str]:
    """Return the words of the glossary, and their plurals."""
    words = {word for row in ROW.findall(GLOSSARY.read_text()) for word in row[0].split(", ")}
    return words | {f"{word}s" for word in words} | {f"{word}es" for word in words}


TERM = re.compile(r"\*\*([^*]+)\*\*|(?<!!)\[([^]]+)\]\(")
NOT_TERMS = {
    "any ordinary file",
    "river",
    "scikit-learn",
    "gallery",
    "icing",
    "benchmarks",
    "theory",
}
"""Other projects, and pages that are named by what they hold."""


def terms_of(text: str) -> set[str]:
    """Return what is bold or linked, if it is a term: up to three words and no sentence."""
    before = text.partition("\n## Read on")[0]
    told = re.sub(r"^```.*?^```$", "", before, flags=re.MULTILINE | re.DOTALL)
    found = {" ".join((bold or link).lower().split()) for bold, link in TERM.findall(told)}
    return {each for each in found if re.fullmatch(r"[\w-]+( [\w-]+){,2}", each)} - NOT_TERMS


def test_the_glossary_explains_every_term_of_the_readme() -> None:
    terms = terms_of((ROOT / "README.md").read_text())
    assert len(terms) >= 18
    assert terms - {word.lower() for word in words_explained()} == set()


def test_the_glossary_explains_the_words_of_the_public_face() -> None:
    words = words_explained()
    assert {"round", "outcome", "forecast", "raw forecast", "draw", "mixture", "bucket"} <= words
    assert {"ticket", "grid", "index", "rule", "state", "adversary", "certificate"} <= words
    assert {"accuracy", "safety", "batch", "seed", "secret", "journal", "service"} <= words
    assert {"live page", "late outcome", "correction", "overconfident", "extra"} <= words


def test_a_term_that_is_not_explained_would_be_found() -> None:
    planted = "**Few rounds.** A **frobnication**, see [odd thing](x.md) and [a b c d](y.md).\n"
    assert terms_of(planted) == {"frobnication", "odd thing"}


def test_no_word_of_the_glossary_is_a_synonym_of_another() -> None:
    words = {word for row in ROW.findall(GLOSSARY.read_text()) for word in row[0].split(", ")}
    assert words & synonyms() == set()
    assert len(synonyms()) > 20
