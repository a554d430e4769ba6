"""The demo of the service: three streams through real routes, and the commands that start it."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from serving import Child

from calibrant.cli import ExitCode
from calibrant.cli.app import run
from calibrant.client import Client
from calibrant.demo import live, main, serve
from calibrant.demo.live import RATE
from calibrant.serve import run as home

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


def test_the_three_streams_are_played_through_the_service(tmp_path: Path) -> None:
    child, stop = Child(str(tmp_path / "streams.db")), threading.Event()
    stop.set()
    serve.move(f"http://{child.at}", stop, before=40)
    with Client(f"http://{child.at}") as client:
        found = {name: client.get(name) for name in serve.STREAMS}
        assert [each["issued"] for each in found.values()] == [40 * RATE] * 3
        assert all(0 < each["learned"] <= 40 * RATE for each in found.values())
        assert [row["key"] for row in client.get("drifting-model", "keys")] != []
        seen = client.get("adversary", "curve")
        assert seen["rounds"] == found["adversary"]["learned"]
        # Outcomes are the opposite of what was expected on average.
        assert client.get("adversary", "report")["mean"]["brier"] > 0.25
    assert child.end(signal.SIGTERM) == 0


@pytest.mark.parametrize("what", ["serve", "live"])
def test_the_demo_starts_by_either_command(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    module = {"serve": serve, "live": live}[what]
    monkeypatch.setattr(module, "serve", lambda port=8765: asked.append(port) or 0)
    assert run(["demo", what, "--port", "1234"]) == ExitCode.OK
    monkeypatch.setattr(sys, "argv", ["demo", what, "4321"])
    assert main() == 0
    monkeypatch.setattr(sys, "argv", ["demo", what])
    assert main() == 0
    assert asked == [1234, 4321, 8765]


def test_another_demo_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "sing"]) == ExitCode.USAGE
    assert "WHAT must be" in capsys.readouterr().err


def test_the_demo_waits_for_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fast = list[bool]()

    def made(store: Any, options: Any, agents: Any) -> None:
        fast.append(options.fast)
        raise InterruptedError

    monkeypatch.setattr(home, "make_app", made)
    monkeypatch.setattr(home, "available", lambda: True)
    monkeypatch.setattr(serve, "move", lambda *given: None)
    with pytest.raises(InterruptedError):
        serve.serve(0)
    with pytest.raises(InterruptedError):
        home.serve(str(tmp_path / "streams.db"), home.Place(port=0), home.Options())
    assert fast == [False, True]
