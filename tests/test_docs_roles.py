"""Every name that a docstring refers to exists: the site would only leave out the link."""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import calibrant

pytestmark = pytest.mark.once

SOURCES = Path(calibrant.__file__).parent
ROLE = re.compile(r":(?:class|func|meth|mod|attr|data|exc):`(?:[^`<]*<)?~?([\w.]+)>?`")
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def told(tree: ast.Module) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield each docstring of a module, with the classes around it."""
    stack: list[tuple[tuple[str, ...], Any]] = [((), tree)]
    while stack:
        where, node = stack.pop()
        inside = (*where, node.name) if isinstance(node, ast.ClassDef) else where
        if isinstance(node, Documented) and (text := ast.get_docstring(node)):
            yield inside, text
        stack += [(inside, child) for child in ast.iter_child_nodes(node)]


def found(root: Any, names: list[str]) -> bool:
    """Say whether a name can be followed from an object; what instances alone have counts too."""
    for name in names:
        if isinstance(root, type) and name in getattr(root, "__annotations__", ()):
            return True
        if not hasattr(root, name):
            return False
        root = getattr(root, name)
    return True


def by_path(target: str) -> bool:
    parts = target.split(".")
    for size in range(len(parts), 0, -1):
        try:
            module = importlib.import_module(".".join(parts[:size]))
        except ImportError:
            continue
        return found(module, parts[size:])
    return False


@functools.cache
def modules() -> dict[str, ModuleType]:
    """All modules that can be imported here, by their names."""
    made = {}
    for path in sorted(SOURCES.rglob("*.py")):
        name = ".".join(("calibrant", *path.relative_to(SOURCES).with_suffix("").parts))
        name = name.removesuffix(".__init__")
        # The old name of a package warns; a main module runs.
        if not name.endswith("__main__") and name != "calibrant.experts":
            try:
                made[name] = importlib.import_module(name)
            except ImportError:
                continue
    return made


def resolves(module: str, classes: tuple[str, ...], target: str) -> bool:
    """Say whether the site can follow a name from where it stands."""
    if target.startswith("."):
        first, *rest = target.lstrip(".").split(".")
        whole = [name for name in modules() if f".{name}".endswith(target)]
        return bool(whole) or any(found(each, [first, *rest]) for each in modules().values())
    here, parts = modules()[module], target.split(".")
    around: Any = here
    for name in classes:
        around = getattr(around, name, None)
    return found(around, parts) or found(here, parts) or found(builtins, parts) or by_path(target)


def test_docstrings_refer_to_names_that_there_are() -> None:
    lost = []
    for module, made in modules().items():
        tree = ast.parse(Path(str(made.__file__)).read_text())
        for classes, text in told(tree):
            targets = ROLE.findall(text)
            lost += [(module, t) for t in targets if not resolves(module, classes, t)]
    assert lost == []


def test_a_name_that_is_not_there_is_noticed() -> None:
    assert resolves("calibrant.core.ticket", ("Ticket",), "to_bytes")
    assert resolves("calibrant.core.ticket", (), "calibrant.Recalibrator.observe")
    assert not resolves("calibrant.core.ticket", ("Ticket",), "correct")
    assert not resolves("calibrant.core.ticket", (), ".Nobody")
