"""Work with the package below a directory, as one who installed it: ``at_work.py DIRECTORY``.

With ``at_work.py DIRECTORY EXTRA`` whatever needs this extra must work. Says which of the data that
stay apart are missing, or that none is.
"""

import importlib
import json
import os
import pathlib
import pkgutil
import subprocess
import sys
import tempfile
from typing import Any

BRINGS = {
    "fast": ("numba", ("calibrant.kernels.lean",)),
    "cli": ("pyarrow", ("calibrant.cli.app", "calibrant.stream")),
    "plot": ("matplotlib", ("calibrant.plot", "calibrant.report")),
    "classes": ("scipy", ("calibrant.classes",)),
    "river": ("river", ("calibrant.integrations.river",)),
    "sklearn": ("sklearn", ("calibrant.integrations.sklearn",)),
    "frames": ("narwhals", ("calibrant.frames",)),
    "excel": ("openpyxl", ("calibrant.stream",)),
    "serve": ("starlette", ("calibrant.cli.service", "calibrant.serve")),
    "spark": ("pyspark", ("calibrant.integrations.spark",)),
    "postgres": ("psycopg", ("calibrant.journal.postgres",)),
    "client": ("httpx", ("calibrant.client",)),
    "sealed": ("cryptography", ()),
    "mcp": ("mcp", ("calibrant.client",)),
    "experiments": ("msprime", ("calibrant.experiments",)),
    "all": ("uvicorn", ("calibrant.serve", "calibrant.client", "calibrant.frames")),
}
"""The library that an extra brings, and modules that must work with this extra alone."""
COMMANDS = ("all", "cli", "excel", "experiments", "mcp", "serve")
"""Extras that bring the command."""
SHEETS = ("all", "excel")
"""Extras with which the command reads Excel."""


def main(place: pathlib.Path, extra: str = "base") -> None:
    """Play and store a stream, and import every module."""
    away = [path for path in sys.path if not pathlib.Path(path, "calibrant").is_dir()]
    sys.path[:] = [str(place), *away]
    import calibrant
    from calibrant import Calibrant, datasets, errors, load

    if not pathlib.Path(calibrant.__file__).resolve().is_relative_to(place):
        raise SystemExit(f"calibrant must lie below {place}, got {calibrant.__file__}")
    games = datasets.load_games("wnba")
    model = Calibrant(seed=1)
    run = model.replay(games.raw, games.outcomes)
    if not load(model.to_bytes()).rounds == len(games) == len(run.mean):
        raise SystemExit("a stored model must be the one that was stored")
    for found in pkgutil.walk_packages(calibrant.__path__, "calibrant."):
        if not found.name.endswith("__main__") and not found.name.startswith("calibrant.experts"):
            try:
                importlib.import_module(found.name)
            except (errors.MissingExtra, ModuleNotFoundError) as missing:
                if "calibrant" in str(getattr(missing, "name", None)):
                    raise
    check_extra(extra, place)
    try:
        datasets.load_icing()
    except errors.MissingData as told:
        print(told)
    else:
        print("all data")


def check_extra(extra: str, place: pathlib.Path) -> None:
    """Use what an extra brings: a failure to import it is not forgiven here."""
    library, modules = BRINGS.get(extra, ("numpy", ()))
    for name in (library, *modules):
        importlib.import_module(name)
    if extra in COMMANDS:
        replay_a_file(place, "d.xlsx" if extra in SHEETS else "d.csv")


def replay_a_file(place: pathlib.Path, name: str) -> None:
    """Replay a file of ten rows by the command."""
    rows = [(k / 10, "yes" if k > 4 else "no") for k in range(10)]
    with tempfile.TemporaryDirectory() as away:
        WRITERS[pathlib.Path(name).suffix](pathlib.Path(away, name), [("prob", "won"), *rows])
        words = [sys.executable, "-m", "calibrant", "replay", name, "--json"]
        made = subprocess.run(
            words, cwd=away, env={**os.environ, "PYTHONPATH": str(place)}, capture_output=True
        )
    if made.returncode or json.loads(made.stdout)["n_rounds"] != 10:
        raise SystemExit(f"calibrant replay must work, got {made.returncode}: {made.stderr!r}")


def write_text(path: pathlib.Path, rows: list[tuple[Any, ...]]) -> None:
    """Write a file with semicolons."""
    path.write_text("".join(";".join(map(str, row)) + "\n" for row in rows))


def write_sheet(path: pathlib.Path, rows: list[tuple[Any, ...]]) -> None:
    """Write a workbook of one sheet."""
    from openpyxl import Workbook

    book = Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)


WRITERS = {".csv": write_text, ".xlsx": write_sheet}


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve(), *sys.argv[2:])
