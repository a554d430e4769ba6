"""Write the parts of the documentation that follow from the code.

A page holds such a part between two comments::

    <!-- begin calibrators -->
    <!-- end calibrators -->

``script/docs`` runs this module, which fills every part of every page anew; a test compares
the pages with what it would write.  ``result NAME 2`` is the second table of
``docs/results/NAME.json``, and ``source NAME`` says by which command, when and where its tables
were measured.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import calibrant.calibrators
import calibrant.transforms
from calibrant import Calibrant, Certificate, Recalibrator, Run, Table, Ticket, errors
from calibrant.datasets import SOURCES, files
from calibrant.kernels.layout import (
    GAP_AND_COUNT,
    HEAD,
    HEADER,
    MIXED_ROW,
    ROW,
    SAFE_ROW,
    Section,
)
from calibrant.recalibrate import Budget, Chain, Link
from calibrant.recalibrate.late import Played
from calibrant.registry import Registry, calibrators, transforms

__all__ = ["PARTS", "pages", "render"]

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
SOURCE = ROOT / "src" / "calibrant"
PART = re.compile(r"(<!-- begin (?P<name>[\w ]+) -->\n).*?(<!-- end (?P=name) -->\n)", re.DOTALL)
WORD_TITLES = ["name", "number", "life", "meaning"]
SECTIONS = {
    "": "Start here",
    "how-to": "How to",
    "reference": "Reference",
    "theory": "Theory",
    "experiments": "Experiments",
    "decisions": "Decisions",
}


def render(text: str) -> str:
    """Return a page's text with all its generated parts as they should be."""
    return PART.sub(lambda found: found[1] + part(found["name"]) + found[3], text)


def part(name: str) -> str:
    """Return a generated part."""
    kind, *words = name.split()
    return RESULTS[kind](*words) if kind in RESULTS else PARTS[name]()


def pages() -> list[Path]:
    """Return every page under docs."""
    return sorted(DOCS.rglob("*.md"))


def table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table."""
    titles = list(titles)
    lines = [titles, ["---"] * len(titles), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def first_sentence(text: str | None) -> str:
    """Return how a docstring or a page begins, on one line and without links."""
    paragraph = " ".join((text or "").strip().partition("\n\n")[0].split())
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", paragraph)
    return re.split(r"(?<=[.?])\s", unmarked(plain))[0]


def unmarked(text: str) -> str:
    """Return a docstring's text with plain names where it has roles."""
    return re.sub(r":\w+:`[~.]*([^`]*)`", r"`\1`", text).replace("``", "`")


def code(text: object) -> str:
    return f"`{text}`"


# Calibrators and transforms.


def fact_table(registry: Registry[type]) -> Callable[[], str]:
    """Return a function that lists what each entry of a registry says about itself."""

    def listed() -> str:
        titles = ["name", "class", "guarantee", "assumption", "cost", "reference"]
        return table(titles, map(facts, registered(registry)))

    return listed


def facts(entry: tuple[str, Any]) -> list[str]:
    name, made = entry
    promise = made.guarantee if made.guarantee == "none" else code(made.guarantee)
    return [code(name), code(made.__name__), promise, made.assumption, made.cost, made.reference]


def parameter_table() -> str:
    """Return the parameters that each calibrator has besides resolution and grid."""
    shared = {field.name for field in dataclasses.fields(calibrant.calibrators.Calibrator)}
    rows = [
        [code(name), code(field.name), code(repr(field.default))]
        for name, made in registered(calibrators)
        for field in dataclasses.fields(made)
        if field.name not in shared
    ]
    return table(["calibrator", "parameter", "default"], rows)


def setting_table() -> str:
    """Return the parameters of each transform."""
    rows = [
        [code(name), ", ".join(settings_of(made())) or "none"]
        for name, made in registered(transforms)
    ]
    return table(["transform", "parameters"], rows)


def settings_of(transform: calibrant.transforms.Transform) -> Iterator[str]:
    for field in dataclasses.fields(transform):
        value = getattr(transform, field.name)
        plain = not isinstance(value, (tuple, calibrant.transforms.Transform))
        yield code(f"{field.name}={value!r}" if plain else field.name)


def registered(registry: Registry[type]) -> list[tuple[str, Any]]:
    return [(name, registry.get(name)) for name in registry.names()]


# Exceptions.


def exception_table() -> str:
    """Return every exception with what else it is and what it means."""
    rows = ([code(made.__name__), parents(made), first_sentence(made.__doc__)] for made in raised())
    return table(["exception", "is also a", "meaning"], rows)


def raised() -> list[type[Exception]]:
    return [getattr(errors, name) for name in errors.__all__]


def parents(made: type[Exception]) -> str:
    bases = [base.__name__ for base in made.__bases__]
    return ", ".join(code(base) for base in bases if base != "Exception") or "`Exception`"


# Members of the public classes.


def member_table(made: type, inherited: bool = True) -> Callable[[], str]:
    """Return a function that lists what a class offers, of its own or all."""

    def listed() -> str:
        rows = ([code(call), first_sentence(text)] for call, text in members(made, inherited))
        return table(["member", "what it is or does"], rows)

    return listed


def members(made: type, inherited: bool) -> Iterator[tuple[str, str | None]]:
    """Yield how each public method and property is used, and its docstring."""
    found: dict[str, Any] = {}
    for owner in made.__mro__[: None if inherited else 1]:
        found = found | {name: value for name, value in vars(owner).items() if name not in found}
    for name, value in found.items():
        if name.startswith("_"):
            continue
        if isinstance(value, property):
            yield name, value.__doc__
        elif isinstance(value, classmethod):
            yield f"{made.__name__}.{name}{signature(value.__func__)}", value.__doc__
        elif inspect.isfunction(value):
            yield name + signature(value), value.__doc__


def signature(function: Callable[..., Any]) -> str:
    """Return the parameters of a method with their defaults, and without self and types."""
    found = inspect.signature(function)
    kept = [p.replace(annotation=p.empty) for p in list(found.parameters.values())[1:]]
    return str(found.replace(parameters=kept, return_annotation=found.empty))


def docstring_table(made: type, section: str) -> Callable[[], str]:
    """Return a function that lists what a section of a class's docstring describes."""

    def listed() -> str:
        text = inspect.cleandoc(made.__doc__ or "")
        part = re.split(rf"{section}\n-+\n|\n\n\w+\n-+\n", text)[1]
        return table([section.lower().removesuffix("s"), "what it is"], described(part))

    return listed


def described(text: str) -> Iterator[list[str]]:
    """Yield the entries of a docstring's section: unindented names, indented words."""
    for names, words in re.findall(r"^([\w*][\w*, ]*)\n((?: {4}.*\n?)+)", text, re.MULTILINE):
        yield [", ".join(map(code, names.split(", "))), unmarked(" ".join(words.split()))]


# The inside.


def layer_table() -> str:
    """Return the layers from top to bottom, each with the first sentence of its package."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    rows = []
    for layer in layers:
        found = [name for name in re.findall(r"\w+", layer) if source_of(name)]
        rows += [[" ".join(map(code, found)), " ".join(map(purpose, found))]] if found else []
    return table(["layer", "what it is"], rows)


def source_of(name: str) -> Path | None:
    places = (SOURCE / name / "__init__.py", SOURCE / f"{name}.py")
    return next((place for place in places if place.exists()), None)


def purpose(name: str) -> str:
    source = source_of(name)
    return first_sentence(ast.get_docstring(ast.parse(source.read_text()))) if source else ""


def word_table(section: Section) -> Callable[[], str]:
    """Return a function that lists the words of a section of the flat state."""

    def listed() -> str:
        return table(["word", *WORD_TITLES], ([where, *told] for where, told in words(section)))

    return listed


def words(section: Section, first: int = 0) -> Iterator[tuple[str, list[str]]]:
    """Yield where each field stands from ``first`` on, and what the section says about it."""
    place = first
    for field, run in itertools.groupby(section.fields[first:]):
        size = len(list(run))
        where = str(place) if size == 1 else f"{place} to {place + size - 1}"
        number = "real" if field.real else "whole"
        yield where, [code(field.name), number, field.life, field.meaning]
        place += size


def row_table() -> str:
    """Return a row's own words, with the rows that have them."""
    sections = {"all": ROW, "with a transform": MIXED_ROW, "with a budget": SAFE_ROW}
    rows, first = [], 0
    for which, section in sections.items():
        rows += [[where, *told, which] for where, told in words(section, first)]
        first = len(section)
    return table(["word", *WORD_TITLES, "rows"], rows)


def rule_table() -> str:
    """Return the words that calibrators have besides those of all: head, cell, parameters."""
    owners: dict[tuple[str, ...], list[str]] = {}
    for name, made in registered(calibrators):
        kernels = made().kernels
        own = {
            "head": words(kernels.head, len(HEAD)),
            "cell": words(kernels.cell, len(GAP_AND_COUNT)),
            "parameter": words(kernels.settings),
        }
        for part, found in own.items():
            for where, told in found:
                owners.setdefault((f"{part} {where}", *told), []).append(code(name))
    rows = ([", ".join(names), *told] for told, names in owners.items())
    return table(["calibrators", "word", *WORD_TITLES], rows)


# Real streams.


def dataset_table() -> str:
    """Return where each folder of real streams comes from, and under which licence."""
    rows = []
    for folder, source in SOURCES.items():
        size = sum(each.size for name, each in files().items() if name.startswith(f"{folder}/")
                   and each.shelf != "fetch")  # fmt: skip
        own = [source.shelf, f"{size / 1e6:.2f} MB", source.licence]
        rows.append([code(folder), *own, source.origin, source.note])
    return table(["folder", "where", "size", "licence", "from", "note"], rows)


# The list of pages.


def page_list() -> str:
    """Return all pages by kind, each with its title and how it begins."""
    lines = []
    for folder, title in SECTIONS.items():
        found = [page for page in pages() if page.parent == DOCS / folder and page.stem != "index"]
        found.sort(key=lambda page: page.stem != "tutorial")
        lines += [f"\n## {title}\n\n", *map(entry, found)] if found else []
    return "".join(lines) + "\n"


def entry(page: Path) -> str:
    title, _, rest = page.read_text().partition("\n")
    link = f"[{title.removeprefix('# ')}]({page.relative_to(DOCS).as_posix()})"
    return f"- {link}: {first_sentence(rest)}\n"


# Results of commands.


def result(name: str) -> dict[str, Any]:
    """Return what a command found; ``benchmarks/store.py`` says what is in it."""
    found: dict[str, Any] = json.loads((DOCS / "results" / f"{name}.json").read_text())
    return found


def result_table(name: str, number: str = "1") -> str:
    """Return a table of a result."""
    found = result(name)["tables"][int(number) - 1]
    return table(found["head"], found["rows"])


def result_source(name: str) -> str:
    """Return by which command, when and where a result was measured."""
    found = result(name)
    told = [f"{what} {value}" for what, value in found["machine"].items() if what not in SAID]
    where = ", ".join([str(found["machine"].get("processor", "")), *told]).removeprefix(", ")
    told_by = f"`{found['command']}` on {found['date']}, commit {found['commit']}"
    if "published" in found:
        told_by = f"`{found['command']}`, date and commit not recorded"
    return f"From {told_by}{'; ' + where if where else ''}.\n"


def claim_count() -> str:
    """Return how many claims of the paper, and of ours, the stored experiments bear out."""
    names = sorted(path.stem for path in DOCS.glob("results/reproduce_*.json"))
    # A quick run counts only where there is no whole one.
    found = [result(name) for name in names if name.removesuffix("_quick") not in {*names} - {name}]
    told = []
    for source, whose in (("paper", "the paper's"), ("ours", "our own")):
        holds = [one for each in found for one in each["holds"][source]]
        open_ = f", {holds.count(None)} were not measured" if None in holds else ""
        told.append(f"{holds.count(True)} of {whose} {len(holds)} claims hold{open_}")
    failing = "".join(f"- {line}\n" for each in found for line in each["failures"])
    runs = ", ".join(f"`{each['command']}` ({each['date']})" for each in found)
    return f"{'; '.join(told)} ({runs}). Those that do not:\n\n{failing}"


SAID = ("processor", "C", "river")
RESULTS: dict[str, Callable[..., str]] = {"result": result_table, "source": result_source}
"""Parts that take words: the name of a result, and the number of its table."""


# Addresses of the project.


def addresses() -> dict[str, str]:
    """Return where the project can be found, by name; ``pyproject.toml`` alone says it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return dict(project.get("urls", {}))


def security_contact() -> str:
    """Return where to report a vulnerability: the address, or what to do without."""
    known = addresses()
    if "Security" in known:
        return f"Report it in private at <{known['Security']}>.\n"
    return (
        "No address is set for this copy. Report it privately to the person who gave it to you,\n"
        "not in public.\n"
    )


def issue_tracker() -> str:
    """Return where to report anything else."""
    known = addresses()
    if "Issues" in known:
        return f"Anything else: <{known['Issues']}>.\n"
    return "Anything else: no issue tracker is set for this copy.\n"


PARTS: dict[str, Callable[[], str]] = {
    "claims": claim_count,
    "security contact": security_contact,
    "issue tracker": issue_tracker,
    "calibrators": fact_table(calibrators),
    "transforms": fact_table(transforms),
    "transform parameters": setting_table,
    "parameters": parameter_table,
    "exceptions": exception_table,
    "recalibrator": member_table(Recalibrator),
    "calibrant": member_table(Calibrant, inherited=False),
    "table": member_table(Table),
    "table settings": docstring_table(Table, "Parameters"),
    "played": docstring_table(Played, "Attributes"),
    "calibrant settings": docstring_table(Calibrant, "Parameters"),
    "budget": docstring_table(Budget, "Attributes"),
    "chain": docstring_table(Chain, "Attributes"),
    "link": docstring_table(Link, "Attributes"),
    "settings": docstring_table(Recalibrator, "Parameters"),
    "ticket": docstring_table(Ticket, "Attributes"),
    "run": docstring_table(Run, "Attributes"),
    "certificate": docstring_table(Certificate, "Attributes"),
    "layers": layer_table,
    "header words": word_table(HEADER),
    "row words": row_table,
    "head words": word_table(HEAD),
    "cell words": word_table(GAP_AND_COUNT),
    "rule words": rule_table,
    "datasets": dataset_table,
    "pages": page_list,
}


def main() -> None:
    """Write every page whose generated parts are not as they should be."""
    for page in [*pages(), *sorted(ROOT.glob("*.md"))]:
        text = page.read_text()
        if (made := render(text)) != text:
            page.write_text(made)
            print(f"wrote {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
