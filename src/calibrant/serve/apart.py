"""Snapshots of a service made in a process of their own, with what was seen of each stream."""

from __future__ import annotations

from functools import partial

from calibrant.journal.apart import run
from calibrant.kernels.compile import available
from calibrant.serve.chronicle import chronicle_of

if __name__ == "__main__":
    run(partial(chronicle_of, fast=available()))
