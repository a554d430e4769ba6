"""Three streams that move, through a real service: ``python -m calibrant.demo serve``."""

from __future__ import annotations

import tempfile
import threading
import time as clock
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from calibrant.client import Client
from calibrant.client.asking import Question, path_of
from calibrant.demo.live import PORT, RATE, STEP, players
from calibrant.serve import Options
from calibrant.serve.run import Place
from calibrant.serve.run import serve as run

BEFORE: Final = 60
"""Steps that were made before anybody looks."""
STREAMS: Final = {
    "drifting-model": {"keyed": True, "patience": 200},
    "rare-events": {"patience": 400},
    "adversary": {"patience": 200},
}


class There:
    """A stream behind a service."""

    def __init__(self, client: Client, name: str) -> None:
        self._client, self._name = client, name

    def forecasts(
        self, raws: Sequence[float], time: float, keys: Sequence[str] | None
    ) -> list[tuple[Any, float]]:
        """Make forecasts; return name and mean of each."""
        times = [time] * len(raws)
        made = self._client.forecasts(self._name, raws, None, keys, times)
        return [(one.id, one.mean) for one in made]

    def outcomes(self, told: Sequence[tuple[Any, int]], time: float) -> None:
        """Report outcomes by name."""
        rows = [{"id": id, "outcome": outcome, "time": time} for id, outcome in told]
        self._client.ask(Question("POST", path_of(self._name, "outcomes"), rows))


def move(address: str, stop: threading.Event, before: int = BEFORE) -> None:
    """Make three streams, play what was before, and then a step now and then until told to stop."""
    with Client(address, tries=20) as client:
        for name, settings in STREAMS.items():
            client.put_stream(name, **settings)
        now = clock.time()
        kept = [There(client, name) for name in STREAMS]
        played = players(kept, now - before * STEP)
        for k in range(before, 0, -1):
            for each in played:
                each.step(now - k * STEP, RATE)
        while not stop.wait(STEP):
            for each in played:
                each.step(clock.time(), RATE)


def serve(port: int = PORT) -> int:
    """Serve the three streams on this machine until interrupted, in a file that goes away."""
    stop = threading.Event()
    address = f"http://127.0.0.1:{port}"
    mover = threading.Thread(target=_quietly, args=(address, stop), daemon=True)
    print(f"Three streams, live, on {address}/live/ until Ctrl-C.", flush=True)
    with tempfile.TemporaryDirectory() as place:
        mover.start()
        try:
            # Whoever looks at a demo does not wait for a compiler, nor do three streams need one.
            run(str(Path(place) / "streams.db"), Place(port=port), Options(), compile=False)
        finally:
            stop.set()
    return 0


def _quietly(address: str, stop: threading.Event) -> None:
    """Move until the service is gone."""
    try:
        move(address, stop)
    except Exception:
        if not stop.is_set():
            raise
