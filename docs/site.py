"""Put the pages together for Sphinx: those that lie here, and one for each public package.

``script/docs`` runs this module and then Sphinx over what it wrote below ``build/site``.  Links
that leave the pages (to tests and sources) become plain text, and every name that a package exports
gets an entry from its docstring, in one package; others that export it point there.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import shutil
from functools import partial
from pathlib import Path
from types import ModuleType

import calibrant
from calibrant.errors import MissingExtra

__all__ = ["api_pages", "public_names", "write"]

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
SOURCE = ROOT / "build" / "site" / "source"
INNER = {"kernels", "core", "kinds", "cli", "demo", "experts", "loading", "registry", "learners"}
"""Packages that come last, or whose names are exported elsewhere."""
FIRST = ("calibrant", "calibrant.datasets", "calibrant.metrics")
LEFT_OUT = "calibrant.experts"
"""Names that were given up and still work with a warning."""
BESIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
"""Pages of the repository that the site has too."""
PAGES = Path("pages.md")
START = [
    "tutorial",
    "gallery",
    "notebooks",
    "quality",
    "benchmarks",
    "attacks",
    "changelog",
    "pages",
]
OVERVIEWS = ["theory/theorems", "theory/algorithm1", "theory/mixtures", "theory/bounds"]
"""What to read before single theorems."""
SECTIONS = {
    "start": ("Start", "The first hour, pictures, and how good and fast it is.", START),
    "guides": ("How to", "One page for each task.", ["how-to"]),
    "manual": ("Reference", "What everything is and does.", ["reference"]),
    "names": ("API", "Every public name, from its docstring.", ["api"]),
    "proofs": ("Theory", "A page for each theorem.", [*OVERVIEWS, "theory", "experiments"]),
    "inside": (
        "Design",
        "How it is made, and why.",
        ["design", "contributing", "security", "decisions"],
    ),
}
"""Title, introduction and pages of each section."""
LINK = re.compile(r"(?<!!)\[(?P<text>[^]]*)\]\((?P<target>[^)\s]+)\)")


# Public names.


def packages() -> list[ModuleType]:
    """Return every package, and every module beside them, that exports names."""
    found = pkgutil.walk_packages(calibrant.__path__, "calibrant.")
    names = [each.name for each in found if each.ispkg or each.name.count(".") == 1]
    made = [imported(name) for name in names if name != LEFT_OUT and "._" not in name]
    order = {name: place for place, name in enumerate(FIRST)}
    return sorted(
        (each for each in [calibrant, *made] if getattr(each, "__all__", None)),
        key=lambda each: (order.get(each.__name__, len(order)), inner(each), each.__name__),
    )


def imported(name: str) -> ModuleType:
    """Return a package; where its extra is missing, one with definitions as its files have them."""
    try:
        return importlib.import_module(name)
    except MissingExtra:
        tree = parsed(name)
        made = ModuleType(name, ast.get_docstring(tree))
        listed = (node for node in tree.body if isinstance(node, ast.Assign))
        named = [node.value for node in listed if ast.unparse(node.targets[0]) == "__all__"]
        made.__all__ = ast.literal_eval(named[0]) if named else []
        homes = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        vars(made).update(
            (found.name, found)
            for home in homes
            for found in parsed(home.module or "").body
            if isinstance(found, DEFINED) and found.name in {each.name for each in home.names}
        )
        return made


DEFINED = (ast.ClassDef, ast.FunctionDef)


def parsed(name: str) -> ast.Module:
    """Return the source of a module, which is not imported."""
    parts = name.split(".")
    place = ROOT.joinpath("src", *parts)
    return ast.parse(
        (place / "__init__.py" if place.is_dir() else place.with_suffix(".py")).read_text()
    )


def inner(package: ModuleType) -> bool:
    """Say whether a package is of use to those who look inside."""
    return package.__name__.split(".")[-1] in INNER


def public_names() -> dict[str, list[str]]:
    """Return what each package exports."""
    return {each.__name__: sorted(each.__all__) for each in packages()}


def api_pages() -> dict[str, str]:
    """Return the text of a page for each package: its names and their docstrings."""
    homes: dict[int, str] = {}
    return {each.__name__: page_of(each, homes) for each in packages()}


def page_of(package: ModuleType, homes: dict[int, str]) -> str:
    """Return the page of one package; ``homes`` says which page has an object already."""
    name = package.__name__
    lines = [f"# {name}\n", inspect.cleandoc(package.__doc__ or "").partition("\n\n")[0] + "\n"]
    rest: list[str] = []
    for each in sorted(package.__all__):
        value = getattr(package, each)
        home = homes.setdefault(id(value), name) if shared(value) else name
        if home != name:
            rest.append(f"- `{each}`: see [{home}]({home}.md)\n")
        elif inspect.ismodule(value):
            rest.append(f"- `{each}`: a module\n")
        else:
            lines.append(entry(name, each, value))
    return "\n".join([*lines, *(["## Also here\n", *rest] if rest else [])]) + "\n"


def shared(value: object) -> bool:
    """Say whether an object is one thing wherever it is exported."""
    return inspect.isclass(value) or inspect.isfunction(value) or inspect.ismodule(value)


CLASS = "   :members:\n"
HOST = "   :exclude-members: set_fit_request, set_partial_fit_request, set_score_request\n"
INHERITED = "   :inherited-members: object, tuple, dict, int, Exception\n"


def entry(package: str, name: str, value: object) -> str:
    """Return the directive that makes the entry of one name."""
    place = f"{package}.{name}"
    if inspect.isclass(value) or isinstance(value, ast.ClassDef):
        own = "integrations" in package  # what a host gives its classes is told by the host
        told = f".. autoclass:: {place}\n{CLASS}{HOST if own else INHERITED}"
    elif inspect.isroutine(value) or isinstance(value, ast.FunctionDef):
        told = f".. autofunction:: {place}\n"
    else:
        told = f".. py:data:: {place}\n\n   {described(value)}\n"
    return f"## {name}\n\n```{{eval-rst}}\n{told}```\n"


def described(value: object) -> str:
    """Return what a value is, and its names if it is a mapping."""
    if isinstance(value, dict):
        return "A mapping with " + ", ".join(f"``{key}``" for key in value) + "."
    if isinstance(value, (str, int, float, tuple)):
        return f"``{value!r}``"
    first = inspect.cleandoc(type(value).__doc__ or "").partition("\n\n")[0]
    return f"A {type(value).__name__}. " + " ".join(first.split())


# Pages.


def write(source: Path = SOURCE) -> None:
    """Write all pages, pictures and notebooks below ``source``."""
    shutil.rmtree(source, ignore_errors=True)
    for page in sorted(DOCS.rglob("*.md")):
        place = page.relative_to(DOCS)
        put(source / (PAGES if place.name == "index.md" else place), inside(page, place))
    for name, other in BESIDE.items():
        put(source / other, inside(ROOT / name, Path(other)))
    for name, text in api_pages().items():
        put(source / "api" / f"{name}.md", text)
    for folder, ending in (("images", "*.svg"), ("notebooks", "*.ipynb")):
        for found in sorted((DOCS / folder).glob(ending)):
            put(source / folder / found.name, found.read_text())
    front = source / "index.md"
    put(front, front.read_text() + sections(source))


def put(place: Path, text: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def inside(page: Path, place: Path) -> str:
    """Return a page whose links lead to pages of the site; others become plain text.

    A number and its sign stay on one line.
    """
    parts = re.split(r"(^```.*?^```$)", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    up = "../" * (len(place.parts) - 1)
    link = partial(linked, page=page, up=up)
    return "".join(
        part
        if part.startswith("```")
        else re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", LINK.sub(link, part))
        for part in parts
    ).replace("](docs/images/", "](images/")


def linked(found: re.Match[str], page: Path, up: str) -> str:
    """Return a link as the site has it."""
    target, _, anchor = found["target"].partition("#")
    if not target or re.match(r"\w+:", target):
        return found[0]
    place = (page.parent / target).resolve()
    end = f"#{anchor}" if anchor else ""
    if place.parent == ROOT and place.name in BESIDE:
        return f"[{found['text']}]({up}{BESIDE[place.name]}{end})"
    if place.is_relative_to(DOCS) and place.suffix == ".md":
        other = PAGES if place == DOCS / "index.md" else place.relative_to(DOCS)
        return f"[{found['text']}]({up}{other.as_posix()}{end})"
    return found["text"]


def sections(source: Path) -> str:
    """Write a page for each section, with its table of contents; return that of the sections."""
    for name, (title, told, names) in SECTIONS.items():
        entries = "\n".join(dict.fromkeys(page for each in names for page in listed(source, each)))
        tree = f"```{{toctree}}\n:maxdepth: 1\n\n{entries}\n```\n"
        put(source / f"{name}.md", f"# {title}\n\n{told}\n\n{tree}")
    return "\n```{toctree}\n:hidden:\n\n" + "\n".join(SECTIONS) + "\n```\n"


def listed(source: Path, name: str) -> list[str]:
    """Return the pages of a folder, or the one page of that name; packages in their order."""
    if name == "api":
        return [f"api/{each}" for each in public_names()]
    if (source / name).is_dir():
        return [f"{name}/{page.stem}" for page in sorted((source / name).iterdir())]
    return [name]


if __name__ == "__main__":
    write()
