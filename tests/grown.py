"""A copy of the repository, over which files are laid that it does not have."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("src", "tests", "docs", "benchmarks", "script", "pyproject.toml", "README.md")


def files_in(folder: Path, ending: str = "") -> list[Path]:
    """Return where the files of a folder lie in it."""
    found = (path for path in folder.rglob(f"*{ending}") if path.is_file())
    return sorted(p.relative_to(folder) for p in found if "__pycache__" not in p.parts)


def grow(place: Path, source: Path) -> None:
    """Copy the repository to a place, and lay the modules of a folder over it."""
    for name in COPIED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, place / name)
    for path in files_in(source, ".py"):
        assert not (place / path).exists()
        (place / path).parent.mkdir(exist_ok=True)
        shutil.copy2(source / path, place / path)


def touched(place: Path) -> Iterator[str]:
    """Yield the files of a copy that are new or are not as they were."""
    for name in COPIED:
        paths = files_in(place / name) if (place / name).is_dir() else [Path()]
        for path in (Path(name) / path for path in paths):
            before, now = ROOT / path, place / path
            if not before.exists() or before.read_bytes() != now.read_bytes():
                yield path.as_posix()


def ran(place: Path, *command: str, status: int = 0) -> str:
    """Run Python in the copy; return what it printed, once it ended as it should."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "COV", "CALIBRANT"))}
    settings = {"PYTHONPATH": str(place / "src"), "CALIBRANT_COMPILE": "off"}
    made = subprocess.run(
        [sys.executable, *command], cwd=place, env=kept | settings, capture_output=True, text=True
    )
    assert made.returncode == status, made.stdout + made.stderr
    return made.stdout


def pytest_on(place: Path, *arguments: str, status: int = 0) -> str:
    """Run tests in the copy, but for slow ones; return what was printed."""
    return ran(
        place, "-m", "pytest", "-p", "no:cacheprovider", "-m", "not slow", *arguments, status=status
    )
