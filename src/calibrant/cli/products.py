"""``calibrant report``, and what several commands make of a summary."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer

from calibrant.cli import screen
from calibrant.cli.options import Ending, refuse, require, spread
from calibrant.errors import CalibrantError, CorruptState
from calibrant.stream import Drafts, open_output
from calibrant.stream.failure import naming, reading
from calibrant.stream.writers import check_output
from calibrant.summary import AnySummary, read_summary

NEEDED: Final = {"report": ("jinja2", "matplotlib"), "plots": ("matplotlib",)}
"""What each product is made with."""
OTHERS: Final = (".pdf", ".png", ".svg", ".json", ".csv", ".md", ".txt", ".docx")
"""Endings of files that a page is not."""


@dataclass(frozen=True)
class Products:
    """Where the products of a summary go, None for those that nobody asked for.

    summary FILE
        Write the summary as JSON.
    report FILE
        Write the report as one HTML file.
    plots DIR
        Write the pictures into this directory.
    details
        Show the guarantee link by link.
    """

    summary: str | None = None
    report: str | None = None
    plots: str | None = None
    details: bool = False

    def reserve(self, drafts: Drafts) -> dict[str, Path]:
        """Find out before the work whether everything can be written after it."""
        for product, needed in NEEDED.items():
            if getattr(self, product) is not None:
                require(f"--{product}", needed)
        check_page(self.report)
        files = {"summary": self.summary, "report": self.report}
        places = {name: drafts.reserve(path) for name, path in files.items() if path is not None}
        if self.plots is not None:
            places["plots"] = drafts.reserve_directory(self.plots)
        return places

    def write(
        self, summary: AnySummary, places: dict[str, Path], drafts: Drafts, *, keep: bool = False
    ) -> None:
        """Write the products to the places that were reserved for them.

        A page or picture that cannot be drawn costs a warning, not the rows and the state
        beside it; to ``keep`` those, so does one for which there is no room.
        """
        known = {"summary": _write_summary, "report": _write_report, "plots": _write_plots}
        for product, write in known.items():
            name = getattr(self, product)
            if name is None:
                continue
            try:
                with naming(name):
                    write(summary, places[product], name)
            except Exception as error:
                if isinstance(error, CalibrantError | OSError) and not keep:
                    raise
                drafts.forget(places[product])
                told = " ".join(str(error).split()) or type(error).__name__
                screen.say(f"--{product} was left out: {told}")


def _write_summary(summary: AnySummary, place: Path, name: str) -> None:
    text = json.dumps(summary.to_dict(), indent=1, allow_nan=False) + "\n"
    with open_output(place, name) as stream:
        stream.write(text.encode())


def _write_report(summary: AnySummary, place: Path, name: str) -> None:
    from calibrant.report import write

    write(summary, place)


def _write_plots(summary: AnySummary, place: Path, name: str) -> None:
    from calibrant.report import save_pictures

    save_pictures(summary, place)


def command(words: Iterable[str], options: Mapping[str, Any], *flags: str) -> str:
    """Return the command that makes the same again; options that are None are left out."""
    given = [(f"--{name}", str(value)) for name, value in options.items() if value is not None]
    return shlex.join(["calibrant", *words, *(word for pair in given for word in pair), *flags])


def reserve_rows(drafts: Drafts, out: str | None) -> Path | None:
    """Return where rows are to be written; None for standard output, and if nobody asked."""
    if out is None or out == "-":
        return None
    check_output(out)
    return drafts.reserve(out)


def check_page(name: str | None) -> None:
    """Refuse a name for a page that says that something else is in the file."""
    ending = Path(name or "").suffix
    told = f"--report must be an HTML file, such as report.html, got {name}"
    more = ": print that page to make one" if ending.lower() == ".pdf" else ""
    refuse(ending.lower() in OTHERS, told + more)


def refuse_two_voices(out: str | None, as_json: bool) -> None:
    """Refuse to put rows and JSON on one standard output."""
    refuse(as_json and out == "-", "--json and --out - cannot both use standard output")


def show_summary(summary: AnySummary, *, as_json: bool, details: bool, error: bool = False) -> None:
    """Tell a summary as JSON, without its detail, or as a table."""
    from calibrant.report import headline

    with screen.telling():
        if as_json:
            told = {key: v for key, v in summary.to_dict().items() if key != "detail"}
            screen.tell_json({"headline": headline(summary), **told})
        else:
            screen.before_after(summary, details=details, error=error)


Summaries: TypeAlias = Annotated[
    list[str], typer.Argument(help="Files that --summary wrote.", metavar="SUMMARY")
]


@dataclass(frozen=True)
class Page:
    """Where the report goes.

    report FILE
        The HTML file to write.

    ``--out`` is an earlier name of it.
    """

    report: str = "report.html"
    out: str | None = None


@spread
def report(summaries: Summaries, *, page: Page, ending: Ending) -> None:
    """Make one report from summaries that were written before.

    \b
    Example:
      calibrant report monday.json tuesday.json --report week.html
    """
    from calibrant.report import headline, write_many

    out = page.out or page.report
    check_page(out)
    found = [_summary(name) for name in summaries]
    with Drafts(force=ending.force, inputs=summaries) as drafts:
        place = drafts.reserve(out)
        with naming(out):
            write_many(found, place)
        drafts.commit()
    pairs = zip(summaries, found, strict=True)
    told = [{"summary": name, "headline": headline(summary)} for name, summary in pairs]
    with screen.telling():
        if ending.as_json:
            screen.tell_json({"report": out, "summaries": told})
            return
        for row in told:
            print(f"{row['summary']}: {row['headline']}")
        screen.say(f"wrote {out}")


def _summary(name: str) -> AnySummary:
    with reading(name):
        written = Path(name).read_bytes()
        try:
            data = json.loads(written)
        except (ValueError, RecursionError) as error:
            raise CorruptState("must be a file that --summary wrote, got something else") from error
        return read_summary(data)
