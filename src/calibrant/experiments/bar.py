"""A bar on the terminal for what takes minutes."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager

from calibrant.simulate.play import Progress


@contextmanager
def bar(title: str) -> Iterator[Progress | None]:
    """Show how far something is: on a terminal, if rich is installed; elsewhere nothing.

    Examples
    --------
    >>> with bar("patients") as progress:
    ...     progress(1, 2)
    """
    if importlib.util.find_spec("rich") is None:
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Live

    console = Console(stderr=True)
    with Live(console=console, disable=not console.is_terminal, transient=True) as live:
        task = live.add_task(title, total=None)

        def show(done: int, total: int) -> None:
            live.update(task, completed=done, total=total)

        yield show
