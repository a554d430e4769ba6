"""Many mutants in one copy of the package, each behind a switch: tests import it once.

An expression becomes ``(mutant if is_mutant(7) else or_mutant(7, code, lambda: mutant))`` and a
statement ``if not is_mutant(7): statement``.  The second value of an expression is only asked for
where that has no effects, and tells which tests cannot notice the mutant at all.
"""

from __future__ import annotations

import ast

from benchmarks.mutate.mutants import Mutant

__all__ = ["is_pure", "woven"]

FUTURE = "from __future__ import annotations\n"
NAMES = "from mutant_switch import is_mutant, or_mutant"
PURE = {"len", "min", "max", "abs", "float", "int", "bool", "isinstance"}
EFFECTS = (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await, ast.GeneratorExp, ast.Lambda)


def woven(text: str, numbered: dict[int, Mutant]) -> tuple[str, list[int]]:
    """Return a file with mutants behind switches, and the numbers of those that are in it.

    A mutant inside another is left out, and one in a place where no switch may stand.
    """
    taken: list[int] = []
    for number, mutant in sorted(numbered.items(), key=lambda pair: pair[1].span, reverse=True):
        after = numbered[taken[-1]].span[:2] if taken else (1 << 30, 0)
        changed = switched(text, number, mutant)
        if mutant.span[2:] <= after and is_python(changed):
            text = changed
            taken.append(number)
    assert text.count(FUTURE) == 1
    return text.replace(FUTURE, f"{FUTURE[:-1]}; {NAMES}\n"), taken


def switched(text: str, number: int, mutant: Mutant) -> str:
    """Return a file with one more mutant behind a switch."""
    first, left, last, right = mutant.span
    lines = text.encode().splitlines(keepends=True)
    before = b"".join([*lines[: first - 1], lines[first - 1][:left]]).decode()
    after = b"".join([lines[last - 1][right:], *lines[last:]]).decode()
    was = text[len(before) : len(text) - len(after)]
    if mutant.became == "pass":
        return f"{before}if not is_mutant({number}): {was}{after}"
    code = f"({was})"
    if is_pure(mutant.became):
        code = f"or_mutant({number}, ({was}), lambda: ({mutant.became}))"
    return f"{before}(({mutant.became}) if is_mutant({number}) else {code}){after}"


def is_python(text: str) -> bool:
    """Say whether a file can be compiled."""
    try:
        compile(text, "woven", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


def is_pure(expression: str) -> bool:
    """Say whether an expression may be asked for twice, as far as that can be seen."""
    nodes = list(ast.walk(ast.parse(expression, mode="eval")))
    calls = [node.func for node in nodes if isinstance(node, ast.Call)]
    return all(is_known(call) for call in calls) and not any(
        isinstance(node, EFFECTS) for node in nodes
    )


def is_known(called: ast.expr) -> bool:
    """Say whether a function is one that has no effects."""
    if isinstance(called, ast.Attribute):
        return isinstance(called.value, ast.Name) and called.value.id == "math"
    return isinstance(called, ast.Name) and called.id in PURE
