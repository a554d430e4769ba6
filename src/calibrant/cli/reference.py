"""The reference page of the command line, made from the commands themselves.

``python -m calibrant.cli.reference > docs/reference/cli.md`` writes it; a test compares.
"""

from __future__ import annotations

from typing import Any, Final

import typer

from calibrant.cli import ExitCode
from calibrant.cli.app import app

WIDTH: Final = 88

INTRODUCTION: Final = """\
# The command line

Made by `python -m calibrant.cli.reference` from the commands themselves. How to use them:
[Replay a stream](../how-to/replay.md). What they report: [The summary](summary.md).

```sh
pip install ".[cli,plot,fast]"
```

`cli` is needed for the command, `plot` for `--report`, `--plots` and `calibrant report`, `fast`
for speed. `calibrant --install-completion` sets up completion in bash, zsh, fish and PowerShell.
"""

CODES: Final = """\
## Exit codes

Every error is one line on standard error. Whatever the code, no output file is left half
written; with any code but 0, none is left at all. There is one exception: however a run with
`--flush` ends, it keeps the outputs, which agree with the rows that it read. If only the table
could not be printed, finished files stay, with code 0 and a warning.
"""


def page() -> str:
    """Return the page as Markdown."""
    top: Any = typer.main.get_command(app)
    parts = [INTRODUCTION, _help(top, None)]
    parts += [f"## {name}\n\n{_help(top.commands[name], name)}" for name in top.commands]
    rows = "\n".join(f"| {code.value} | {code.meaning} |" for code in ExitCode)
    parts.append(f"{CODES}\n| code | meaning |\n|---|---|\n{rows}\n")
    return "\n".join(parts)


def _help(command: Any, name: str | None) -> str:
    title = "calibrant" if name is None else f"calibrant {name}"
    context = command.make_context(title, [], resilient_parsing=True, terminal_width=WIDTH)
    lines = [line.rstrip() for line in command.get_help(context).splitlines()]
    return "```text\n" + "\n".join(lines) + "\n```\n"


if __name__ == "__main__":
    print(page(), end="")
