"""What runs in an environment, a peer's or ours.

    python -m benchmarks.peers.work WHAT WHO FILE.npz

``beside.py`` asks for it.  ``speed`` times rounds, ``memory`` measures what a model takes, and
``scale`` plays events of many keys.  All measure CPU time of the process, or memory that Linux says
is resident, and print JSON.
"""

import array
import ctypes
import gc
import importlib.metadata
import json
import math
import pickle
import re
import statistics
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.peers.inside import EVERY, FEWEST, FITS, refitted, river_blocks

LEAST = 0.3
"""Seconds of measuring; the median of all passes counts."""
MOST = 20
"""Passes at most."""
REHEARSAL = 2000
"""Rounds that load, and compile, what is measured."""
WARM = 30_000
"""Events of a table that do the same."""


def odds(p):
    """Return log-odds."""
    return math.log(p / (1 - p))


class River:
    """Online logistic regression of River on the log-odds."""

    def __init__(self):
        from river.linear_model import LogisticRegression

        self.model = LogisticRegression()
        self.forecast, self.learn = self.model.predict_proba_one, self.model.learn_one

    @staticmethod
    def feature(p):
        """Return what the model wants to know of a raw forecast."""
        return {"odds": odds(p)}

    def kept(self):
        """Return what has to be stored."""
        return pickle.dumps(self.model, -1)


class Platt:
    """Platt scaling by online gradient steps, in a few lines of Python, with no library."""

    __slots__ = ("shift", "slope")
    feature = staticmethod(odds)

    def __init__(self):
        self.slope, self.shift = 1.0, 0.0

    def forecast(self, x):
        """Return the scaled probability."""
        return 1 / (1 + math.exp(-self.slope * x - self.shift))

    def learn(self, x, y):
        """Take a step down the log loss."""
        step = 0.01 * (y - self.forecast(x))
        self.slope += step * x
        self.shift += step

    def kept(self):
        """Return what has to be stored."""
        return pickle.dumps((self.slope, self.shift), -1)


class Refitted:
    """What is fitted again after every ``EVERY`` outcomes, on all of them."""

    def __init__(self, fit):
        self.fit, self.transform = fit, None
        self.raw, self.outcomes = array.array("d"), array.array("b")

    @staticmethod
    def feature(p):
        """Return the raw forecast."""
        return p

    def forecast(self, p):
        """Return the forecast of the last fit."""
        return p if self.transform is None else float(self.transform(np.array([p]))[0])

    def learn(self, p, y):
        """Keep the outcome; fit now and then."""
        self.raw.append(p)
        self.outcomes.append(y)
        if len(self.raw) == FEWEST or len(self.raw) % EVERY == 0:
            told = np.array(self.raw), np.array(self.outcomes, int)
            self.transform = self.fit(*told)

    def kept(self):
        """Return what has to be stored."""
        return pickle.dumps((self.transform, self.raw, self.outcomes), -1)


class Ours:
    """The default of calibrant."""

    def __init__(self):
        from calibrant import Calibrant

        self.model = Calibrant(seed=1).compile()
        self.forecast, self.learn = self.model.predict_one, self.model.learn_one

    @staticmethod
    def feature(p):
        """Return the raw forecast."""
        return p

    def kept(self):
        """Return what has to be stored."""
        return self.model.to_bytes()


def maker(who):
    """Return what makes a model of a contender."""
    if who in FITS:
        return lambda: Refitted(FITS[who][1])
    return {"river": River, "online_platt": Platt}.get(who, Ours)


# ------------------------------------------------------------------------------- speed


def speed(who, given):
    """Return nanoseconds of a round, one by one and, where that exists, in batches."""
    raw, outcomes = given["raw"], given["outcomes"]
    each = raw.tolist(), outcomes.tolist()
    found = {"one": timed(lambda part: play(who, *(told[:part] for told in each)), len(raw))}
    if batch := batches(who):
        found["batch"] = timed(lambda part: batch(raw[:part], outcomes[:part]), len(raw))
    return {what: 1e9 * seconds / len(raw) for what, seconds in found.items()}


def timed(job, rounds):
    """Return the CPU seconds of a pass, after a rehearsal."""
    job(REHEARSAL)
    took = []
    while sum(took) < LEAST and len(took) < MOST:
        gc.collect()
        begun = time.process_time()
        job(rounds)
        took.append(time.process_time() - begun)
    return statistics.median(took)


def play(who, raw, outcomes):
    """Play rounds one by one with a new model."""
    model = maker(who)()
    if isinstance(model, Ours):
        for p, y in zip(raw, outcomes, strict=True):
            model.forecast(p)
            model.learn(p, y)
        return
    feature, forecast, learn = model.feature, model.forecast, model.learn
    for p, y in zip(raw, outcomes, strict=True):
        x = feature(p)
        forecast(x)
        learn(x, y)


def batches(who):
    """Return what plays arrays with a new model; None if there is no such thing."""
    if who in FITS:
        return refitted(FITS[who][1])
    return {"river": river_blocks, "online_platt": None}.get(who, replayed)


def replayed(raw, outcomes):
    """Play a batch with the default of calibrant."""
    from calibrant import Calibrant

    return Calibrant(seed=1).replay(raw, outcomes)


# ------------------------------------------------------------------------------ memory


def memory(who, given):
    """Return bytes of a model by growth of resident memory, and of its stored state."""
    raw, outcomes, count = given["raw"], given["outcomes"], int(given["models"])
    job = rows if who == "calibrant_table" else lone
    # Models that fill what is free already would not be seen: some stay, the rest is given back.
    first = job(who, raw, outcomes, count // 2)[0]
    trim()
    before = resident()
    models, stored = job(who, raw, outcomes, count)
    gc.collect()
    live = (resident() - before) / count
    return {"live": live, "stored": stored(models), "first": len(first)}


def lone(who, raw, outcomes, count):
    """Return a dictionary of models that have played, and what tells how much is stored."""
    make, each = maker(who), list(zip(raw.tolist(), outcomes.tolist(), strict=True))
    models = {}
    for k in range(count):
        models[f"key {k}"] = model = make()
        for p, y in each:
            x = model.feature(p)
            if not isinstance(model, Refitted):
                # Theirs leaves nothing behind, and takes long.
                model.forecast(x)
            model.learn(x, y)
    return models, lambda models: statistics.mean(len(one.kept()) for one in models.values())


def rows(who, raw, outcomes, count):
    """Return a table of as many keys, and what tells how much is stored of each."""
    from calibrant import Calibrant, Keys, Table

    few = Keys.of(["key"] * WARM)
    Table(Calibrant(), seed=1).replay(few, np.full(WARM, 0.5), np.zeros(WARM, int))
    table, keys = Table(Calibrant(), seed=1), Keys.of([f"key {k}" for k in range(count)])
    for p, y in zip(raw, outcomes, strict=True):
        table.replay(keys, np.full(count, p), np.full(count, y))
    return table, lambda table: len(table.to_bytes()) / count


def trim():
    """Give free memory back to the system."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


def resident(what="VmRSS"):
    """Return bytes of memory that are resident, or were at most."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(rf"{what}:\s*(\d+)", status)[1])


# ------------------------------------------------------------------------------- scale


def scale(who, given):
    """Return CPU seconds of an event, and bytes a key at the peak beyond what there was before."""
    player = {"calibrant_play": table_play, "calibrant_one": table_one}.get(who, dictionary)
    few = [told[:WARM] for told in log(given)]
    player(who, *few)
    events = log(given)
    trim()
    Path("/proc/self/clear_refs").write_text("5")
    before, begun = resident(), time.process_time()
    player(who, *events)
    took = time.process_time() - begun
    peak = (resident("VmHWM") - before) / len(set(events[0]))
    return {"event": took / len(events[0]), "peak": peak}


def log(given):
    """Return keys, kinds, names and numbers of events, in order: a forecast, then an old outcome.

    An outcome comes ``behind`` forecasts later than its forecast.
    """
    behind, keys, kinds, names, told = int(given["behind"]), [], [], [], []
    raw, outcomes = given["raw"].tolist(), given["outcomes"].tolist()
    # No list of numbers in between: what is free afterwards would hide what models take.
    whose = [f"key {key}" for key in given["keys"]]
    for k in range(len(raw) + behind):
        if k < len(raw):
            keys.append(whose[k])
            kinds.append(0)
            names.append(f"order {k}")
            told.append(raw[k])
        if k >= behind:
            keys.append(whose[k - behind])
            kinds.append(1)
            names.append(f"order {k - behind}")
            told.append(outcomes[k - behind])
    return keys, kinds, names, told


def dictionary(who, *events):
    """Play events with a model for each key in a dictionary."""
    make, models, waiting = maker(who), {}, {}
    for key, kind, name, told in zip(*events, strict=True):
        if kind:
            model, x = waiting.pop(name)
            model.learn(x, told)
        else:
            model = models.get(key)
            if model is None:
                model = models[key] = make()
            x = model.feature(told)
            model.forecast(x)
            waiting[name] = model, x
    return models


def table_one(who, *events):
    """Play events one by one in a table."""
    from calibrant import Calibrant, Table

    table = Table(Calibrant(), seed=1).compile()
    for key, kind, name, told in zip(*events, strict=True):
        if kind:
            table.observe(name, told)
        else:
            table.forecast(key, told, id=name)
    return table


def table_play(who, *events, size=50_000):
    """Play events in a table, so many at a time."""
    from calibrant import Calibrant, Table

    table = Table(Calibrant(), seed=1)
    for k in range(0, len(events[0]), size):
        table.play(*(part[k : k + size] for part in events))
    return table


def versions(who):
    """Return what was run, with its version."""
    package = "river" if who == "river" else FITS[who][0] if who in FITS else None
    if package is None:
        return "Python" if who == "online_platt" else "calibrant"
    return f"{package} {importlib.metadata.version(package)}"


JOBS = {"speed": speed, "memory": memory, "scale": scale}


def main(what, who, path):
    """Print what a contender came to."""
    with np.load(path) as file:
        given = dict(file)
    if "raw" in given:
        given["raw"] = np.clip(given["raw"], 1e-6, 1 - 1e-6)
        given["outcomes"] = given["outcomes"].astype(int)
    print(json.dumps(JOBS[what](who, given) | {"version": versions(who)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
