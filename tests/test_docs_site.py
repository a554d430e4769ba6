"""The site: every public name has an entry, and links stay inside; script/test also builds it."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

for extra in ("river", "sklearn", "typer", "matplotlib", "jinja2", "narwhals"):
    pytest.importorskip(extra, reason="needs the extra all")

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parent.parent


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_site", ROOT / "docs" / "site.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


site = load()


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    site.write(place)
    return place


def test_every_public_name_has_an_entry_or_a_way_to_it() -> None:
    pages = site.api_pages()
    names = site.public_names()
    assert sum(map(len, names.values())) > 450
    for package, exported in names.items():
        for name in exported:
            entry = re.search(rf"^## {name}\n\n```{{eval-rst}}\n\.\. ", pages[package], re.M)
            way = re.search(rf"^- `{name}`: (see \[|a module$)", pages[package], re.M)
            assert entry or way, f"{package}.{name}"


def test_names_of_an_extra_that_is_not_installed_have_entries_too() -> None:
    page = site.api_pages()["calibrant.integrations.spark"]
    assert ".. autoclass:: calibrant.integrations.spark.PostgresLog\n" in page
    names = site.public_names()["calibrant.integrations.spark"]
    assert page.count(".. autofunction:: calibrant.integrations.spark.") == len(names) - 1 >= 10


def test_every_package_that_exports_names_has_a_page() -> None:
    for init in (ROOT / "src" / "calibrant").rglob("__init__.py"):
        tree = ast.parse(init.read_text())
        exports = any(
            isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
            for node in tree.body
        )
        if exports:
            parts = init.parent.relative_to(ROOT / "src").parts
            assert ".".join(parts) in site.public_names()


def test_links_of_the_site_lead_to_its_pages(source: Path) -> None:
    for page in source.rglob("*.md"):
        for target in re.findall(r"\]\((?!\w+:|#)([^)#\s]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.relative_to(source)}: {target}"


def test_every_page_is_in_a_section(source: Path) -> None:
    listed = set()
    for section in site.SECTIONS:
        tree = (source / f"{section}.md").read_text().partition("```{toctree}")[2]
        listed |= {line for line in tree.splitlines() if re.fullmatch(r"[\w./-]+", line)}
    pages = {
        page.relative_to(source).with_suffix("").as_posix()
        for page in source.rglob("*.*")
        if page.suffix in (".md", ".ipynb")
    }
    assert pages - listed == {"index", *site.SECTIONS}


def test_no_page_is_about_a_module_whose_name_begins_with_an_underscore() -> None:
    assert not [name for name in site.public_names() if re.search(r"\._", name)]


def tree(source: Path, section: str) -> list[str]:
    told = (source / f"{section}.md").read_text().partition("```{toctree}")[2]
    return re.findall(r"^[\w./-]+$", told, re.MULTILINE)


def test_names_come_as_packages_are_ordered_and_overviews_before_their_theorems(
    source: Path,
) -> None:
    assert tree(source, "names") == [f"api/{name}" for name in site.public_names()]
    assert tree(source, "names")[0] == "api/calibrant"
    assert tree(source, "proofs")[:2] == ["theory/theorems", "theory/algorithm1"]
    for section in site.SECTIONS:
        assert len(set(tree(source, section))) == len(tree(source, section))


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("multiclass", "classes"),
        ("regression", "regression"),
        ("prediction intervals", "regression"),
        ("backtest", "replay"),
        ("drift", "drift"),
    ],
)
def test_the_search_finds_what_people_call_it_in_a_title(words: str, page: str) -> None:
    title = (ROOT / "docs" / "how-to" / f"{page}.md").read_text().partition("\n")[0]
    assert words in title.lower()


def test_what_scrolls_on_a_screen_is_printed_whole() -> None:
    style = (ROOT / "docs" / "static" / "site.css").read_text().partition("@media print")[2]
    for scrolls in (".bd-article-container", ".pst-scrollable-table-container", "pre"):
        assert re.search(rf"{re.escape(scrolls)}[^{{}}]*{{[^}}]*overflow: visible", style)


def test_the_security_policy_is_a_page_that_the_front_page_leads_to(source: Path) -> None:
    assert (source / "security.md").read_text().startswith("# Security policy")
    assert "](security.md)" in (source / "index.md").read_text()


def test_no_line_of_the_site_begins_with_a_percent_sign(source: Path) -> None:
    for page in source.rglob("*.md"):
        words = re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(), flags=re.M | re.S)
        assert page.parent.name == "api" or not re.search(r"\d %", words), page.name
    assert "80\u00a0%" in (source / "index.md").read_text()


def test_notebooks_are_stored_without_outputs() -> None:
    notebooks = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
    assert len(notebooks) >= 2
    for path in notebooks:
        cells = json.loads(path.read_text())["cells"]
        assert all(not cell.get("outputs") for cell in cells)


@pytest.mark.parametrize("name", ["drift", "language-model"])
def test_notebooks_run_and_show_their_pictures(name: str) -> None:
    path = ROOT / "docs" / "notebooks" / f"{name}.ipynb"
    names: dict[str, object] = {}
    shown = []
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] == "code":
            shown.append(played("".join(cell["source"]), names))
    assert "run" in names
    assert any(hasattr(value, "_repr_svg_") for value in shown)
    # A figure that pyplot does not know of is told in words there, not shown.
    assert not any(type(value).__name__ == "Figure" for value in shown)


def played(cell: str, names: dict[str, object]) -> object:
    """Run a cell, and return the value of its last line if that is an expression."""
    lines = ast.parse(cell).body
    last = lines.pop() if isinstance(lines[-1], ast.Expr) else None
    exec(compile(ast.Module(lines, []), "cell", "exec"), names)
    if not isinstance(last, ast.Expr):
        return None
    value: object = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    return value
