"""The golden states: ``python tests/golden/make_states.py v1`` writes them into ``states/v1``.

Run by hand, once for a format, with the code that writes that format; a directory that exists
stays as it is unless it is empty.  Whatever comes later must load these files for ever, and play
on as they say.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from golden import state_cases, state_cases_more
from golden.state_cases import Case
from golden.state_steps import STATES, Night, Playing, from_bytes, from_dictionary, packed, told

from calibrant.core.stateful import Stateful, registered
from calibrant.groups import GroupRecalibrator

PUBLIC = (
    "calibrant",
    "calibrant.groups",
    "calibrant.classes",
    "calibrant.regression",
    "calibrant.monitor",
    "calibrant.outcomes",
    "calibrant.learners",
    "calibrant.transforms",
    "calibrant.summary",
    "calibrant.metrics",
)
"""Where a class is looked for by name before its own module is asked."""
MUCH = 2000
"""Characters of a dictionary above which it is not worth reading."""


def cases() -> Iterator[Case]:
    """Yield everything that is stored."""
    for module in (state_cases, state_cases_more):
        for family in module.FAMILIES:
            yield from family()


def place_of(made: Any) -> str:
    """Return the public name of an object's class."""
    kind = type(made)
    for module in PUBLIC:
        names = vars(sys.modules[module]) if module in sys.modules else {}
        if names.get(kind.__name__) is kind:
            return f"{module}:{kind.__name__}"
    return f"{kind.__module__}:{kind.__name__}"


def stored(made: Any) -> dict[str, Any]:
    """Return an object's class, and its state in every form that the class writes."""
    file: dict[str, Any] = {"class": place_of(made)}
    if hasattr(made, "document"):
        document = made.document()
        return file | {"document": document.kind, "bytes": packed(document.to_bytes())}
    if hasattr(made, "to_bytes"):
        file["bytes"] = packed(made.to_bytes())
    if hasattr(made, "to_dict"):
        file["dictionary"] = shortened(made.to_dict())
    return file


def shortened(state: dict[str, Any]) -> Any:
    """Return a dictionary as it is, or packed if there is much of it."""
    text = json.dumps(state)
    return packed(text.encode()) if len(text) > MUCH else state


def ways_of(case: Case, file: dict[str, Any]) -> list[str]:
    """Return the ways in which the state comes back today."""
    ways = [form for form in ("bytes", "dictionary") if form in file]
    if "document" not in file and isinstance(case.made, Stateful | GroupRecalibrator | Night):
        ways += [f"{form} again" for form in ways]
    if isinstance(case.made, Stateful | GroupRecalibrator):
        ways += ["copy", "pickle"]
    if type(case.made) in registered().values():
        ways += ["load bytes", "load dictionary"]
    return [*ways, *case.ways]


def golden(case: Case) -> dict[str, Any]:
    """Return the file of a case; its answers are those of the object itself."""
    file = stored(case.made) | case.more
    if case.beside is not None:
        file["beside"] = stored(case.beside)
    file["ways"] = ways_of(case, file)
    file["tickets"] = [
        {"class": place_of(t), "dictionary": t.to_dict(), "answer": told(t)} for t in case.tickets
    ]
    # As a file says it, so that nothing is played that JSON would change.
    file = json.loads(json.dumps(file))
    steps = json.loads(json.dumps(case.steps))
    played = list(Playing(case.made, file["tickets"]).play(steps))
    file["steps"] = [step | {"answer": answer} for step, answer in played]
    for load in (from_bytes, from_dictionary):
        form = load.__name__.removeprefix("from_")
        if form in file and list(Playing(load(file), file["tickets"]).play(steps)) != played:
            raise AssertionError(f"{case.name} does not go on from its {form} as it was")
    return file


def written(file: dict[str, Any]) -> str:
    """Return a file as text: an entry a line, a step a line."""
    parts = [f"{json.dumps(name)}: {_entry(value)}" for name, value in file.items()]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _entry(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(" " + _short(part) for part in value) + "\n]"
    return _short(value)


def _short(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def main(version: str, *names: str) -> None:
    """Write all files of a format, or some of them."""
    place = STATES / version
    place.mkdir(parents=True, exist_ok=True)
    if any(place.iterdir()):
        raise SystemExit(f"{place} must be empty: what is golden stays as it is")
    for case in (case for case in cases() if not names or case.name in names):
        (place / f"{case.name}.json").write_text(written(golden(case)))


if __name__ == "__main__":
    main(*sys.argv[1:])
