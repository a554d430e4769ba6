"""Inputs of JSON: an object a line, or one list of objects; or lists under a list of names."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, Final, NamedTuple

import msgspec

from calibrant.stream.dialect import SAMPLE
from calibrant.stream.failure import Unreadable
from calibrant.stream.pieces import LinePiece, Piece, nested, reached
from calibrant.stream.readers import LONGEST_LINE, LOOKED, Misfit, Reader, lines_of, told_apart

CHUNK: Final = 1 << 18
BETWEEN: Final = re.compile(r"[\s,]*")
"""What stands between the objects of a list."""


LISTED: Final = re.compile(rb'"([^"\\\\]+)"\s*:\s*\[\s*\{')
"""A list of objects in an object, and its name."""
NUMBERLESS: Final = re.compile(r":\s*-?(NaN|Infinity)\b")
ROWS: Final = "must be objects, one a line or in one list"


class Row(NamedTuple):
    """A row: its number, its text, and what that says."""

    number: int
    text: bytes
    content: dict[str, Any]


class JsonLinesReader(Reader):
    """JSON Lines: one object a line; empty lines are passed over.

    Lines may also be lists, of which the first one has the names.
    """

    def _open(self) -> None:
        self._numbers: list[int] = []
        self._titles: list[str] = []
        self._check_start()
        rows = self._objects()
        with self._unbroken():
            # More than one row of a pipe might have to be waited for.
            self._first = list(islice(rows, 1 if self.size is None else LOOKED))
        if not self._first:
            raise Unreadable(f"{self.source.name}: must have at least one line, got nothing")
        self._lines = chain(self._first, rows)
        self.names = list(dict.fromkeys(name for row in self._first for name in row.content))
        if len(self._first) == 1:
            self._check_lone(self._first[0].content)

    def _check_start(self) -> None:
        """Refuse objects that go over several lines."""
        start = self.source.stream.peek(1)[:SAMPLE].removeprefix(codecs.BOM_UTF8).lstrip()
        line, end, _ = start.partition(b"\n")
        listed = LISTED.search(start)
        if not end or not line.startswith(b"{") or _is_json(line):
            return
        if listed and b"}" not in start[: listed.end()]:
            self._refuse_list(listed[1].decode(errors="replace"))
        if line.strip() == b"{":
            way = "jq -c . writes one a line"
            raise Unreadable(f"{self.source.name}: {ROWS}, got objects of several lines; {way}")

    def _refuse_list(self, name: str) -> None:
        told = f"got one object with the list {name!r}; jq -c '.{name}[]' takes it out"
        raise Unreadable(f"{self.source.name}: {ROWS}, {told}")

    def _check_lone(self, content: dict[str, Any]) -> None:
        """Refuse one object around a list of them, or around columns: it is no table yet."""
        rows = [k for k, v in content.items() if isinstance(v, list)]
        for name in rows:
            if content[name] and isinstance(content[name][0], dict):
                self._refuse_list(name)
        told = (
            f"{self.source.name}: {ROWS}, got one object of columns; write an object for each row"
        )
        if len(rows) == len(content) > 1:
            raise Unreadable(told)
        if all(isinstance(v, dict) and "0" in v for v in content.values()) and len(content) > 1:
            raise Unreadable(f'{told}: to_json(orient="records", lines=True) in pandas')

    @property
    def known(self) -> list[str]:
        found: dict[str, None] = {}
        for row in self._first:
            flat = [name for name, value in row.content.items() if not isinstance(value, dict)]
            found |= dict.fromkeys(flat + nested(row.content))
        more = self.size is None or len(self._first) == LOOKED
        later = [self.source.later] if more and self.source.later else []
        return list(found | dict.fromkeys(later))

    def number(self, row: int) -> int:
        return self._numbers[row]

    def empty(self) -> Piece:
        return LinePiece([], [], self.names)

    def sample(self) -> dict[str, list[Any]]:
        return {name: [reached(row.content, name) for row in self._first] for name in self.known}

    def _objects(self) -> Iterator[Row]:
        """Yield number, text and content of each line."""
        decode = msgspec.json.Decoder(dict[str, Any] | list[Any]).decode
        for number, line in enumerate(lines_of(self.source), 1):
            if text := line.removeprefix(codecs.BOM_UTF8).strip():
                try:
                    content = decode(text)
                except (msgspec.MsgspecError, RecursionError):
                    self._refuse(number, text.decode(errors="replace"))
                    continue
                if isinstance(content, dict):
                    yield Row(number, text, content)
                else:
                    yield from self._of_list(number, text.decode(), content)

    def _of_list(self, number: int, shown: str, content: list[Any]) -> Iterator[Row]:
        """Yield a list as an object; the first one has the names, and is no row."""
        if not self._titles and number == 1:
            self._titles = self._names_in(content)
        elif not self._titles:
            self._refuse(number, shown)
        elif len(content) != len(self._titles):
            told = f"row must be {len(self._titles)} values, got {shown[:60]!r}"
            self._on_misfit(Misfit(number, told, shown))
        else:
            found = dict(zip(self._titles, content, strict=True))
            yield Row(number, msgspec.json.encode(found), found)

    def _names_in(self, content: list[Any]) -> list[str]:
        if content and all(isinstance(name, str) for name in content):
            return told_apart([name.strip() for name in content])
        way = 'begin with a list of names, such as ["prob", "won"]'
        raise Unreadable(f"{self.source.name}: {ROWS}, got lists without names; {way}")

    def _refuse(self, number: int, shown: str, what: str = "line") -> None:
        told = f"{what} must be a JSON object, got {shown[:60]!r}"
        if NUMBERLESS.search(shown):
            told = f"{told} (NaN is no JSON; write null)"
        self._on_misfit(Misfit(number, told, shown))

    def _pieces(self, wanted: list[str] | None) -> Iterator[Piece]:
        while found := list(islice(self._lines, self._batch_rows)):
            self._numbers = [row.number for row in found]
            texts, contents = [row.text for row in found], [row.content for row in found]
            yield LinePiece(texts, contents, self.names)


class JsonListReader(JsonLinesReader):
    """One list of objects, read a piece at a time."""

    def _objects(self) -> Iterator[Row]:
        """Yield number, text on one line and content of each object."""
        for number, (shown, content) in enumerate(self._elements(), 1):
            if isinstance(content, dict):
                text = shown if "\n" not in shown else json.dumps(content, ensure_ascii=False)
                yield Row(number, text.encode(), content)
            elif isinstance(content, list):
                yield from self._of_list(number, shown, content)
            else:
                self._refuse(number, shown, "row")

    def _elements(self) -> Iterator[tuple[str, Any]]:
        """Yield text and content of each element; only what is not complete is kept."""
        read, decoder = json.JSONDecoder().raw_decode, codecs.getincrementaldecoder("utf-8-sig")()
        text, place, ended, begun = "", 0, False, False
        while not ended:
            content = self.source.stream.read1(CHUNK)
            ended = not content
            text, place = text[place:] + decoder.decode(content, final=ended), 0
            if not begun:
                begun, text = "[" in text, text.lstrip().removeprefix("[")
            if len(text) > LONGEST_LINE:
                told = f"a row must be at most {LONGEST_LINE:,} bytes, got a longer one"
                raise Unreadable(f"{self.source.name}: {told}")
            for start, place, found in _complete(read, text, ended):
                yield text[start:place], found
        if text[place:].strip() != "]":
            raise EOFError(f"a list of JSON must end in ']', got {text[place:].strip()[:40]!r}")


def _is_json(text: bytes) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def _complete(read: Any, text: str, ended: bool) -> Iterator[tuple[int, int, Any]]:
    """Yield where each complete element begins and ends, and what it says."""
    place = 0
    while (gap := BETWEEN.match(text, place)) is not None:
        start = gap.end()
        try:
            found, end = read(text, start)
        except (json.JSONDecodeError, RecursionError):
            return
        if end == len(text) and not ended and not isinstance(found, dict):
            # A number may go on in the next piece.
            return
        yield start, end, found
        place = end
