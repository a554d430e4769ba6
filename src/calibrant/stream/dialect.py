"""How a text file is written: encoding, separator, quotes, decimals, and whether it has a header.

All of it is guessed from the first bytes, and each guess may be overruled.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from calibrant.errors import InvalidInput
from calibrant.stream.columns import OUTCOME_NAMES, RAW_NAMES
from calibrant.stream.values import number

SAMPLE: Final = 1 << 16
"""Bytes that guesses are made from."""
MOST_ROWS: Final = 200
"""Rows that guesses are made from."""
MOST_TITLES: Final = 5
"""Lines above the names of columns that are looked for."""
SEPARATORS: Final = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces"}
"""What may stand between fields, the commonest first."""
MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""How files of an encoding begin."""
HINT: Final = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
"""A first line for Excel."""
COMMA: Final = re.compile(r"[-+]?\d*,\d+(\s*%)?")
POINT: Final = re.compile(r"[-+]?\d*\.\d+(\s*%)?")
RUNS: Final = re.compile(rb" +")
EDGES: Final = re.compile(rb"^ +| +(?=\r?$)", re.MULTILINE)
"""Spaces between fields, and before the first and behind the last one."""
WRAPPED: Final = re.compile(rb'"((?:[^"]|"")*)"[ \t]*(?=\r?$)')
"""A line that has quotes around all of it."""
QUOTED: Final = re.compile(rb'"[^"]*"')
THOUSANDS: Final = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+")
"""Whole numbers, or decimals with a comma: they tell nothing."""


@dataclass(frozen=True)
class Asked:
    """What the user says of a dialect, None where nothing is said."""

    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    header: bool | None = None


@dataclass(frozen=True)
class Dialect:
    """How a text file is written.

    Attributes
    ----------
    sep, quote, decimal
        What stands between fields, around them, and before decimals.
    header
        Whether the first line names the columns; without one they are called 1, 2, 3, ...
    above, titles
        How many lines stand above the table, and how many of these are titles: another one may
        tell the separator.
    spare
        How many empty fields every row has behind those that have names.
    runs
        Whether several spaces stand between fields, so that each run of them counts as one.
    wrapped
        Whether quotes stood around each whole line.
    rows
        The first rows of data, for guesses about columns.
    """

    sep: str = ","
    quote: str = '"'
    decimal: str = "."
    header: bool = True
    above: int = 0
    titles: int = 0
    spare: int = 0
    runs: bool = False
    wrapped: bool = False
    rows: Sequence[Sequence[str]] = field(default=(), compare=False, repr=False)


def encoding_of(start: bytes) -> str:
    """Return the encoding of a file that begins so.

    Examples
    --------
    >>> encoding_of("p;größe".encode()), encoding_of("p;größe".encode("latin-1"))
    ('utf-8', 'latin-1')
    >>> encoding_of("p,y".encode("utf-16")), encoding_of("p,y".encode("utf-16-le"))
    ('utf-16', 'utf-16-le')
    """
    for mark, name in MARKS:
        if start.startswith(mark):
            return name
    even, odd = start[0::2].count(0), start[1::2].count(0)
    if max(even, odd) > len(start) // 4 > 4 * min(even, odd):
        return "utf-16-le" if odd > even else "utf-16-be"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


def check_encoding(name: str) -> str:
    """Return the name of an encoding; refuse one that nobody knows."""
    try:
        return codecs.lookup(name).name
    except LookupError:
        told = f"--encoding must be one that Python knows, such as latin-1, got {name!r}"
        raise InvalidInput(told) from None


class Rewritten(io.RawIOBase):
    """A stream of bytes, each piece of which is rewritten as it comes."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._rest = stream, b""

    @abstractmethod
    def _rewritten(self, found: bytes) -> bytes:
        """Return what a piece becomes; after the last one comes an empty one."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Give what has arrived, in pieces that are no larger than asked for."""
        while not self._rest:
            found = self._stream.read1(1 << 16)
            self._rest = self._rewritten(found)
            if not found:
                break
        given, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(given)] = given
        return len(given)

    def close(self) -> None:
        """Close the stream below, too."""
        self._stream.close()
        super().close()


class Transcoded(Rewritten):
    """A stream of bytes in any encoding, as UTF-8; lines that end in CR alone end in LF."""

    def __init__(self, stream: Any, encoding: str, *, returns: bool = False) -> None:
        super().__init__(stream)
        found: Any = codecs.getincrementaldecoder(encoding)()
        self._decoder = io.IncrementalNewlineDecoder(found, translate=True) if returns else found

    def _rewritten(self, found: bytes) -> bytes:
        return str(self._decoder.decode(found, final=not found)).encode()


class RewrittenLines(Rewritten):
    """A stream of bytes that is rewritten in whole lines."""

    _cut = b""

    @abstractmethod
    def _lines(self, found: bytes) -> bytes:
        """Return what whole lines become."""

    def _rewritten(self, found: bytes) -> bytes:
        lines, end, rest = (self._cut + found).rpartition(b"\n") if found else (self._cut, b"", b"")
        self._cut = rest
        return self._lines(lines + end)


class Squeezed(RewrittenLines):
    """A stream of lines in which each run of spaces is one, and none stand at the ends."""

    def _lines(self, found: bytes) -> bytes:
        return RUNS.sub(b" ", EDGES.sub(b"", found))


class Unwrapped(RewrittenLines):
    """A stream of lines without the quotes around each of them."""

    def _lines(self, found: bytes) -> bytes:
        return b"\n".join(map(_unwrapped, found.split(b"\n")))


def _unwrapped(line: bytes) -> bytes:
    return WRAPPED.sub(lambda found: found[1].replace(b'""', b'"'), line, 1)


def is_wrapped(start: bytes) -> bool:
    """Say whether quotes stand around each whole line, with separators inside of them.

    >>> is_wrapped(b'"prob,won"\\n"0.5,1"\\n'), is_wrapped(b'"prob","won"\\n"0.5","1"\\n')
    (True, False)
    """
    lines = [line for line in _lines(start) if line.strip()]
    if len(lines) < 2 or not all(WRAPPED.match(line.rstrip("\n").encode()) for line in lines):
        return False
    inner = [_unwrapped(line.encode()).decode() for line in lines]
    return len(_rows(inner[-1:], _separator(inner[-1:], '"'), '"')[0]) > 1


def ends_in_returns(start: bytes) -> bool:
    """Say whether lines end in CR alone, as in files of old spreadsheets on the Mac."""
    bare = QUOTED.sub(b"", start) if b"\n" in start else start
    return b"\r" in bare and b"\n" not in bare


def sniff(
    start: bytes, asked: Asked, columns: Sequence[str] = (), *, tabs: bool = False
) -> Dialect:
    """Return the dialect of a file in UTF-8 that begins so.

    The separator is the one that cuts most rows into as many fields as the first line has.

    Parameters
    ----------
    start
        The first bytes.
    asked
        What the user says.
    columns
        Names of columns that are there: whichever line has them is a header.
    tabs
        Whether the name of the file says that tabs stand between fields.

    Examples
    --------
    >>> found = sniff(b"prob;won\\n0,83;yes\\n0,4;no\\n", Asked())
    >>> found.sep, found.decimal, found.header
    (';', ',', True)
    >>> sniff(b"0.5\\t1\\n0.25\\t0\\n", Asked()).header
    False
    """
    lines = _lines(start)
    found = HINT.fullmatch(lines[0].strip()) if lines else None
    lines = lines[1:] if found else lines
    quote = _quote(lines)
    told = asked.sep or (found[1] if found else None) or ("\t" if tabs else None)
    above = _above(lines, told, quote, columns) if asked.header is None else 0
    lines = lines[above:]
    sep = told or _separator(lines, quote)
    rows = _rows(lines, sep, quote)
    runs = sep == " " and any("  " in line.strip() or line[:1] == " " for line in lines)
    header = _is_header(rows, columns) if asked.header is None else asked.header
    data = rows[1:] if header else rows
    decimal = asked.decimal or _decimal(data)
    spare = _spare(rows) if header else 0
    above, titles = above + (found is not None), above
    return Dialect(sep, quote, decimal, header, above, titles, spare, runs, rows=data)


def _spare(rows: list[list[str]]) -> int:
    """Return how many fields, all of them empty, every row has more than there are names."""
    more = {len(row) - len(rows[0]) for row in rows[1:]}
    spare = more.pop() if len(more) == 1 else 0
    return spare if spare > 0 and not any("".join(row[-spare:]).strip() for row in rows[1:]) else 0


def _lines(start: bytes) -> list[str]:
    """Return the lines that are whole; the last one may be cut."""
    lines = list(io.StringIO(start.decode("utf-8-sig", errors="replace"), newline=""))
    cut = len(lines) > 1 and len(start) >= SAMPLE
    return lines[: len(lines) - cut][:MOST_ROWS]


def _rows(lines: list[str], sep: str, quote: str) -> list[list[str]]:
    if sep == " ":
        lines = [line.strip() for line in lines]
    try:
        found = csv.reader(lines, delimiter=sep, quotechar=quote, skipinitialspace=sep == " ")
        return [row for row in found if row]
    except csv.Error:
        return []


def _separator(lines: list[str], quote: str) -> str:
    scores: dict[str, tuple[float, int]] = {}
    for sep in SEPARATORS:
        widths = [len(row) for row in _rows(lines, sep, quote)]
        if widths and widths[0] > 1:
            scores[sep] = widths.count(widths[0]) / len(widths), widths[0]
    if len(scores) > 1 or scores.get(" ", (1.0, 0))[0] < 1.0:
        # Words with spaces between them are everywhere.
        scores.pop(" ", None)
    return max(scores, key=lambda sep: scores[sep], default=",")


def _above(lines: list[str], sep: str | None, quote: str, columns: Sequence[str]) -> int:
    """Return how many lines stand above names and rows: comments, titles, or other words."""
    for above in range(min(MOST_TITLES + 1, len(lines) - 1)):
        rows = _rows(lines[above : above + 1], sep or _separator(lines[above:], quote), quote)
        if rows and are_names(rows[0], columns):
            return above
    marked = next((k for k, line in enumerate(lines) if not line.startswith("#")), 0)
    rest = lines[marked:]
    titles = _titles(rest, sep, quote)
    rows = _rows(rest[titles:], sep or _separator(rest[titles:], quote), quote)
    if not marked or _is_header(rows, columns):
        return marked + titles
    # Rows without names, unless the last comment has them.
    last = _rows(lines[marked - 1 : marked], sep or _separator(rest, quote), quote)
    return marked - (bool(rows) and len(last[0]) == len(rows[0]))


def are_names(cells: Sequence[str], columns: Sequence[str]) -> bool:
    """Say whether cells are surely names of columns: those asked for, or two that are known.

    >>> are_names(["Prob", "won"], ()), are_names(["is", "0"], ["0"]), are_names(["p", "1"], ())
    (True, True, False)
    """
    found = {cell.strip() for cell in cells}
    if columns and found.issuperset(columns):
        return True
    known = {cell.lower() for cell in found}
    pair = not known.isdisjoint(RAW_NAMES) and not known.isdisjoint(OUTCOME_NAMES)
    return pair and not any(map(_is_number, found))


def _titles(lines: list[str], sep: str | None, quote: str) -> int:
    """Return how many lines of one field stand above names and rows that all have more."""
    first = _rows(lines[:1], sep or _separator(lines, quote), quote)
    if first and _width(first[0]) > 1:
        return 0
    for above in range(1, min(MOST_TITLES, len(lines) - 2) + 1):
        told = sep or _separator(lines[above:], quote)
        rows, titles = (_rows(part, told, quote) for part in (lines[above:], lines[:above]))
        widths = {len(row) for row in rows}
        named = lines[above].strip() and len(rows) > 1 and _is_header(rows, ())
        if named and len(widths) == 1 and _width(rows[0]) > 1:
            # A name of several lines begins with a quote that does not end.
            cut = "".join(lines[:above]).count(quote) % 2
            return above if not cut and all(_width(row) <= 1 for row in titles) else 0
    return 0


def _width(row: list[str]) -> int:
    """Return how many cells are not empty."""
    return sum(bool(cell.strip()) for cell in row)


def _quote(lines: list[str]) -> str:
    """Return the mark around fields: a single one if lines have no double one and begin with it."""
    text = "".join(lines)
    begun = sum(line.startswith("'") and line.count("'") % 2 == 0 for line in lines)
    return "'" if '"' not in text and lines and begun > len(lines) // 2 else '"'


def _is_header(rows: list[list[str]], columns: Sequence[str]) -> bool:
    """Say whether the first row has names: no number is one, unless the user names it."""
    first = [] if not rows else [cell.strip() for cell in rows[0]]
    if not first or any(name in first for name in columns):
        return True
    if not any(map(_is_number, first)):
        return True
    wordy = [k for k, cell in enumerate(first) if cell and not _is_number(cell)]
    # A word above numbers is a name, and so are its neighbours.
    below = [[row[k] for row in rows[1:] if k < len(row)] for k in wordy]
    return any(cells and all(map(_is_number, cells)) for cells in below)


def _is_number(text: str) -> bool:
    plain = text.strip().removesuffix("%").rstrip().replace(",", ".")
    return number(plain) == number(plain) and not plain.isalpha()


def _decimal(rows: list[list[str]]) -> str:
    seen: Counter[str] = Counter()
    for text in (cell.strip() for row in rows for cell in row):
        seen[","] += COMMA.fullmatch(text) is not None and THOUSANDS.fullmatch(text) is None
        seen["."] += POINT.fullmatch(text) is not None
    return "," if seen[","] > seen["."] else "."
