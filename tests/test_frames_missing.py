"""Without its library a package says which extra brings it."""

from __future__ import annotations

import importlib
import sys

import pytest

from calibrant.errors import MissingExtra


@pytest.mark.parametrize(
    ("package", "library", "extra"),
    [
        ("calibrant.client", "httpx", "client"),
        ("calibrant.client", "msgspec", "client"),
        ("calibrant.frames", "narwhals", "frames"),
        ("calibrant.integrations.river", "river", "river"),
        ("calibrant.integrations.sklearn", "sklearn", "sklearn"),
        ("calibrant.integrations.spark", "pyspark", "spark"),
        ("calibrant.serve", "starlette", "serve"),
        ("calibrant.stream", "pyarrow", "cli"),
    ],
)
def test_a_missing_library_is_told_with_its_extra(monkeypatch, package, library, extra) -> None:
    for name in [name for name in sys.modules if f"{name}.".startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if f"{name}.".startswith(f"{library}.")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtra, match=rf'pip install "\.\[{extra}\]"'):
        importlib.import_module(package)
