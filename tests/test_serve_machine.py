"""A service against the library's own objects: any order of requests, with kills in between."""

from __future__ import annotations

import json
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from serving import served

import calibrant
from calibrant import Recalibrator, Table
from calibrant.classes import ClassCalibrant
from calibrant.client import Forecast, verify_commitment
from calibrant.groups import GroupRecalibrator

pytestmark = pytest.mark.once

AT = "/v1/streams/s"
LABELS = ["cat", "cow", "dog"]
HORIZON = 6
MODELS: dict[str, Any] = {
    "groups": lambda: GroupRecalibrator(["a"], resolution=10, seed=7, max_open=HORIZON),
    "classes": lambda: ClassCalibrant(3, seed=7, max_open=HORIZON),
    "binary": lambda: Recalibrator(resolution=10, buckets=10, seed=7, max_open=HORIZON),
    "keyed": lambda: Table(Recalibrator(resolution=10, buckets=10, max_open=HORIZON), seed=7),
}
SETTINGS: dict[str, Any] = {
    "groups": {"groups": ["a"], "resolution": 10},
    "classes": {"classes": LABELS},
    "binary": {"method": "foster_hart", "resolution": 10, "buckets": 10},
    "keyed": {"method": "foster_hart", "resolution": 10, "buckets": 10, "keyed": True},
}
ids = st.sampled_from([f"id {k}" for k in range(12)])
numbers = st.integers(0, 2)
kinds = st.sampled_from(sorted(MODELS))
raws = st.sampled_from([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [0, 0, 1]])
groups = st.lists(st.sampled_from("abc"), max_size=3, unique=True)


class Streams(RuleBasedStateMachine):
    """Requests to a service; ``lone`` is what the library makes of those that it took."""

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp())
        self.file, self.count = self.place / "0.db", 0
        self.held = ExitStack()

    @initialize(kind=kinds, hides=st.booleans(), keeps=st.booleans())
    def begin(self, kind: str, hides: bool, keeps: bool) -> None:
        self.kind, self.hides, self.keeps = kind, hides, keeps
        self.lone = MODELS[kind]()
        # Of each id: what was asked and told, the ticket, and the outcomes in their order.
        self.asked: dict[str, tuple[Any, bytes]] = {}
        self.tickets: dict[str, Any] = {}
        self.outcomes: dict[str, list[int]] = {}
        self.client = self.held.enter_context(served(self.file))
        wanted = {"seed": 7, "horizon": HORIZON} | SETTINGS[kind]
        wanted |= {"unknown": "keep" if keeps else "refuse"}
        wanted |= {"reveal": "outcome" if hides else "forecast"}
        assert self.client.put(AT, json=wanted).status_code == 201

    # ------------------------------------------------------------------ words of the kinds

    def said(self, id: str, raw: list[float], names: list[str]) -> dict[str, Any]:
        """Return a forecast as it is asked for."""
        if self.kind == "classes":
            return {"id": id, "raw": raw}
        told: dict[str, Any] = {"id": id, "raw": raw[0]}
        if self.kind == "groups":
            return told | {"groups": names}
        return told | ({"key": names[0] if names else 5} if self.kind == "keyed" else {})

    def made(self, asked: dict[str, Any]) -> Any:
        """Return the library's ticket of a forecast."""
        told = [asked[name] for name in ("key", "raw") if name in asked]
        groups = {"groups": asked["groups"]} if "groups" in asked else {}
        return self.lone.forecast(*told, id=asked["id"], **groups)

    def outcome_of(self, number: int) -> tuple[int, Any]:
        """Return an outcome as the library takes it, and as the service does."""
        if self.kind == "classes":
            return number, LABELS[number]
        return min(number, 1), min(number, 1)

    def is_open(self, id: str) -> bool:
        try:
            self.lone.copy().expire(id)
        except LookupError:
            return False
        return True

    def drawn(self, id: str) -> Any:
        value = self.tickets[id].value
        return value.tolist() if self.kind == "classes" else value

    # ------------------------------------------------------------------ requests

    @rule(id=ids, raw=raws, names=groups)
    def forecast(self, id: str, raw: list[float], names: list[str]) -> None:
        asked = self.said(id, raw, names)
        answer = self.client.post(f"{AT}/forecasts", json=asked)
        if id in self.asked:
            before, told = self.asked[id]
            assert answer.status_code == (200 if asked == before else 409)
            assert asked != before or answer.content == told
            return
        assert answer.status_code == 200, answer.text
        self.asked[id], self.tickets[id] = (asked, answer.content), self.made(asked)
        if id in self.outcomes:
            self.tickets[id] = self.lone.observe(id, self.outcomes[id][0])
        told = answer.json()
        assert ("forecast" in told, "commitment" in told) == (not self.hides, self.hides)
        if not self.hides:
            assert told["forecast"] == self.drawn(id)

    @rule(id=ids, number=numbers)
    def outcome(self, id: str, number: int) -> None:
        told, said = self.outcome_of(number)
        answer = self.client.post(f"{AT}/outcomes", json={"id": id, "outcome": said})
        found, known = answer.json()["status"], self.outcomes.get(id)
        if known is not None:
            assert found == ("repeated" if known[0] == told else 409)
        elif id not in self.tickets:
            assert found == ("early" if self.keeps else 404)
            if self.keeps:
                self.outcomes[id] = [told]
        elif self.is_open(id):
            assert found == "learned"
            self.tickets[id], self.outcomes[id] = self.lone.observe(id, told), [told]
        else:
            assert found == 410
        shown = answer.status_code == 200 and id in self.tickets and self.hides
        assert ("revealed" in answer.json()) == shown
        if shown:
            assert answer.json()["revealed"]["forecast"] == self.drawn(id)
            made = msgspec.json.decode(self.asked[id][1], type=Forecast)
            assert verify_commitment(made, answer.json())

    @rule(id=ids, number=numbers)
    def correct(self, id: str, number: int) -> None:
        told, said = self.outcome_of(number)
        answer = self.client.put(f"{AT}/outcomes/{id}", json={"outcome": said})
        known = self.outcomes.get(id)
        if id not in self.tickets or known is None:
            assert answer.status_code == 404
        elif len(known) == 2:
            assert answer.status_code == (200 if known[1] == told else 409)
        elif known[0] == told:
            assert answer.json()["status"] == "repeated"
        else:
            assert answer.json() | {"sequence": 0} == {
                "id": id,
                "status": "corrected",
                "outcome": said,
                "sequence": 0,
            }
            known.append(told)
            self.lone.correct(self.tickets[id], told)

    @rule(id=ids)
    def expire(self, id: str) -> None:
        answer = self.client.delete(f"{AT}/forecasts/{id}")
        if id not in self.tickets:
            assert answer.status_code == 404
        elif self.is_open(id):
            assert answer.json()["status"] == "expired"
            self.lone.expire(id)
        elif id in self.outcomes:
            assert answer.status_code == 409
        else:
            assert answer.status_code in (200, 410)

    @rule()
    def hand_over(self) -> None:
        if set(self.outcomes) <= set(self.tickets):
            state = self.client.get(f"{AT}/state").content
            assert self.client.put(f"{AT}/state", content=state).status_code == 200

    # ------------------------------------------------------------------ faults

    @rule(how=st.sampled_from(["kill", "kill and lose snapshots", "stop"]))
    def go_on(self, how: str) -> None:
        self.count += 1
        after = self.place / f"{self.count}.db"
        if how == "stop":
            self.held.close()
        # Whoever is killed leaves the file and its log of writes as they are.
        for ending in ("", "-wal"):
            file = Path(f"{self.file}{ending}")
            if file.exists():
                shutil.copy(file, f"{after}{ending}")
        self.held.close()
        self.held, self.file = ExitStack(), after
        if how == "kill and lose snapshots":
            self._lose_snapshots()
        self.client = self.held.enter_context(served(self.file))

    def _lose_snapshots(self) -> None:
        import sqlite3

        held = sqlite3.connect(self.file)
        with held:
            held.execute("delete from snapshot")
        held.close()

    # ------------------------------------------------------------------ what always holds

    @invariant()
    def the_state_is_the_library_s(self) -> None:
        if hasattr(self, "lone"):
            found = calibrant.load(self.client.get(f"{AT}/state").content)
            assert found.to_bytes() == self.lone.to_bytes()

    @invariant()
    def a_draw_is_shown_once_its_outcome_is_in(self) -> None:
        if not hasattr(self, "lone"):
            return
        rows = map(json.loads, self.client.get(f"{AT}/events").text.splitlines())
        shown = {
            row["id"] for row in rows if row["kind"] == "forecast" and row["forecast"] is not None
        }
        hidden = {id for id in self.tickets if self.hides and self.is_open(id)}
        assert shown == set(self.tickets) - hidden

    def teardown(self) -> None:
        self.held.close()
        shutil.rmtree(self.place)


TestStreams = Streams.TestCase
TestStreams.settings = settings(
    max_examples=6,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
