"""``python -m calibrant.datasets``: list what is there; ``fetch FOLDER``: get what is not."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from calibrant.datasets.fetch import fetch
from calibrant.datasets.shelf import SOURCES, files, there
from calibrant.errors import CalibrantError


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m calibrant.datasets", description=__doc__)
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    actions.add_parser("list", help="list the files, where they are, and their licences")
    getter = actions.add_parser("fetch", help="fetch files that are not bundled, checked by digest")
    getter.add_argument("folder", metavar="FOLDER", help="free917 or genotypes")
    getter.add_argument("--to", metavar="DIR", help="where to put the folder")
    told = parser.parse_args(words)
    try:
        made = map(str, fetch(told.folder, told.to)) if told.action == "fetch" else listed()
        print("\n".join(made))
    except (CalibrantError, OSError) as error:
        print(f"calibrant: {error}", file=sys.stderr)
        return 1
    return 0


def listed() -> Iterator[str]:
    """Yield a paragraph for each source: licence, origin, files and whether they are here."""
    for folder, source in SOURCES.items():
        yield f"{folder} ({source.licence})"
        yield f"  {source.origin}"
        yield f"  {source.note}"
        for name, each in files().items():
            if name.partition("/")[0] == folder:
                yield f"  {'  ' if there(name) else '! '}{name}  {each.size:,} bytes"
    yield "! not here; python -m calibrant.datasets fetch FOLDER, or a clone of the repository"


if __name__ == "__main__":
    sys.exit(main())
