"""What the pages say about the paper's experiments: ``calibrant reproduce``, stored.

    python -m benchmarks.reproduction diabetes --store     one experiment, or several, or all
    python -m benchmarks.reproduction --store --quick      all, with less of what takes minutes

Prints every claim with its number and verdict, then how many hold and which do not.  With
``--store`` the claims and the tables of each experiment go to ``docs/results/reproduce_NAME.json``,
from where the pages take them; those of a quick run to ``reproduce_NAME_quick.json``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.store import put
from calibrant.experiments import Chapter, Setting, failures, headline, reproduce

__all__ = ["kept", "main"]

HEAD = ("claim", "whose", "measured", "must be", "verdict")


def main(arguments: list[str] | None = None) -> int:
    """Run experiments; print and store what came of them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reproduction", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="EXPERIMENT")
    parser.add_argument("--data", type=Path, help="directory of the data")
    parser.add_argument("--quick", action="store_true", help="less of what takes minutes")
    parser.add_argument("--store", action="store_true", help="keep it for the pages")
    told = parser.parse_args(arguments)
    setting = Setting(told.data, quick=told.quick, tell=say)
    done = reproduce(told.names or ["all"], setting)
    for each in done:
        for row in claims(each):
            print("| " + " | ".join(row) + " |")
        if told.store:
            kept(each, quick=told.quick)
    print(*[headline(done), *failures(done)], sep="\n", flush=True)
    return 0


def claims(each: Chapter) -> list[list[str]]:
    """Return a row for each claim of an experiment."""
    return [
        [claim.said, claim.source, claim.shown, claim.bar, claim.verdict]
        for claim in each.result.claims
    ]


def kept(each: Chapter, *, quick: bool) -> Path:
    """Store the claims and the tables of an experiment."""
    name, result = each.experiment.name, each.result
    listed: list[dict[str, Any]] = [{"head": list(HEAD), "rows": claims(each)}]
    listed += [shown(table.header, table.rows, table.caption) for table in result.tables]
    counted = {
        source: [claim.holds for claim in result.claims if claim.source == source]
        for source in ("paper", "ours")
    }
    command = f"calibrant reproduce {name}{' --quick' if quick else ''}"
    more = {"seconds": round(each.seconds), "holds": counted, "failures": failures([each])}
    return put(f"reproduce_{name}{'_quick' if quick else ''}", command, listed, **more)


def shown(head: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> dict[str, Any]:
    """Return a table as it is stored."""
    return {"title": title, "head": list(head), "rows": [list(row) for row in rows]}


def say(text: str) -> None:
    """Tell progress on the error stream."""
    print(f"calibrant: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
