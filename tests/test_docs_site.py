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


def test_notebooks_are_stored_without_outputs() -> None:
    notebooks = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
    assert len(notebooks) >= 2
    for path in notebooks:
        cells = json.loads(path.read_text())["cells"]
        assert all(not cell.get("outputs") for cell in cells)


@pytest.mark.parametrize("name", ["drift", "language-model"])
def test_notebooks_run(name: str) -> None:
    path = ROOT / "docs" / "notebooks" / f"{name}.ipynb"
    names: dict[str, object] = {}
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), str(path), "exec"), names)
    assert "run" in names
