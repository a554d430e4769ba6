"""``calibrant replay --by``: every value of a column is a stream of its own."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from calibrant.cli import screen
from calibrant.cli.options import refuse, refuse_beside
from calibrant.cli.products import command
from calibrant.cli.replay import Run
from calibrant.core.seal import opened
from calibrant.stream.columns import COLUMNS
from calibrant.stream.drafts import locked
from calibrant.stream.failure import reading
from calibrant.stream.keyed import SAID, KeyedSession, KeyedSummary
from calibrant.stream.session import state_in
from calibrant.summary import kinds

HEADINGS: Final = {
    "key": "left",
    "rounds": "right",
    "C1": "right",
    "C2": "right",
    "by chance": "right",
    "loss": "right",
    "raw": "right",
}


@dataclass
class KeyedRun(Run):
    """One replay by key, from its options to its last file."""

    by: str = ""

    def go(self, as_json: bool) -> None:
        self._refuse_others()
        keys: Any = {"group": (self.by,)}
        self.job = replace(self.job, **keys)
        name, self.key = self.outputs.state, self.outputs.key
        with nullcontext() if name is None else locked(name):
            session: Any = self._session(name)
            session.table.jobs = self.outputs.jobs
            self.learned = () if name is None else self._digests(session, name)
            summary: Any = self._made(session)
        with screen.telling():
            self._show(summary, as_json)
        if self.ended is not None:
            raise self.ended

    def _refuse_others(self) -> None:
        *_, default = kinds
        *flags, last = (_option(name) for name in COLUMNS if name not in default.options)
        others = {
            f"{', '.join(flags)} and {last}": kinds.wanted(self.options) is not default,
            **{_option(name): getattr(self.options, name) for name in default.options},
            "--report": self.products.report,
            "--plots": self.products.plots,
            "--id": self.job.id,
            "--alarm and --available together": self.outputs.alarm and self.job.available,
            "--flush": self.job.one_by_one,
            "--secret-file": self.options.secret,
        }
        refuse(not self.by, "--by must be the name of a column, got none")
        refuse_beside("--by", others)

    def _session(self, name: str | None) -> KeyedSession:
        if name is None or not Path(name).exists():
            return KeyedSession.start(self.options, self.outputs.alarm)
        with reading(name):
            session = KeyedSession.loaded(opened(state_in(name), self.key), self.by)
        session.check(self.options, self.outputs.alarm)
        return session

    def _dumped(self, session: Any) -> bytes:
        return bytes(session.dumped(self.by))

    def _summary(self, session: Any, timing: dict[str, float]) -> Any:
        columns = {} if self.columns is None else dict(self.columns.options)
        columns.pop("group", None)
        given = self.options.given((*SAID, "seed"))
        words = [*self.written, "--by", self.by]
        words += [] if self.outputs.alarm is None else ["--alarm", str(self.outputs.alarm)]
        words += [word for each in given.items() for word in (_option(each[0]), str(each[1]))]
        again = command(["replay", *self.job.inputs], columns, *words)
        told = {"command": again, "inputs": list(self.job.inputs), "columns": columns}
        return session.told(told | {"by": self.by}, timing)

    def _show(self, summary: KeyedSummary, as_json: bool) -> None:
        if as_json:
            screen.tell_json(summary.to_dict())
            return
        total = summary.total
        rows = [_row("all", total | {"rounds": total["n_rounds"]})]
        rows += [_row(str(each["key"]), each) for each in summary.worst]
        title = f"{total['keys']} keys, {total['open']} open; those with the largest errors"
        error = self.outputs.out == "-"
        screen.show(HEADINGS, rows, title, width=110, error=error)
        screen.tell_lines(summary.notes, error=error)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _row(name: str, told: dict[str, Any]) -> list[str]:
    names = ("c1", "c2", "chance", "loss", "raw_loss")
    numbers = [f"{told[each]:.5f}" if each in told else "" for each in names]
    return [name, str(told["rounds"]), *numbers]
