"""Work in forked processes."""

from __future__ import annotations

import os
from collections.abc import Callable


def at_once(works: list[Callable[[], None]]) -> None:
    """Do all works at the same time, in a forked process each; all must succeed."""
    children = list[int]()
    for work in works:
        child = os.fork()
        if not child:
            code = 1
            try:
                work()
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * len(works)
