"""Work with the package below a directory, as one who installed it: ``at_work.py DIRECTORY``.

Says which of the data that stay apart are missing, or that none is.
"""

import importlib
import pathlib
import pkgutil
import sys


def main(place: pathlib.Path) -> None:
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
    try:
        datasets.load_icing()
    except errors.MissingData as told:
        print(told)
    else:
        print("all data")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
