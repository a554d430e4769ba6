"""Mutants: every way in which one place of a source file is broken.

A mutant is named after its file, its function, what stood there and what stands there now, and
counts among those with the same name, so that a change elsewhere in the file leaves the name alone.
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PACKAGES", "SOURCES", "Mutant", "mutants_of", "sample", "sources"]

SOURCES = Path(__file__).parents[2] / "src" / "calibrant"
PACKAGES = ("kernels", "calibrators", "bounds", "monitor", "groups", "classes", "regression")

BINARY = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
}
COMPARED = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
JOINED = {ast.And: ast.Or, ast.Or: ast.And}
DROPPED = (ast.AugAssign, ast.Raise, ast.Break, ast.Continue)
Scopes = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Mutant:
    """One broken place.

    Attributes
    ----------
    file
        Where it is, below ``src/calibrant``.
    scope
        The function or class around it.
    span
        First line, first column, last line and last column of the place at present.
    was, became
        What stood there, and what stands there now.
    count
        Its place among mutants of the same file, scope and words.
    """

    file: str
    scope: str
    span: tuple[int, int, int, int]
    was: str
    became: str
    count: int

    @property
    def name(self) -> str:
        """What the mutant is called in results and explanations."""
        return f"{self.file}:{self.scope}: {self.was} -> {self.became} #{self.count}"

    def within(self, text: str) -> str:
        """Return the file, broken; lines before and after stay as they are."""
        first, left, last, right = self.span
        lines = text.encode().splitlines(keepends=True)
        before = b"".join([*lines[: first - 1], lines[first - 1][:left]])
        after = b"".join([lines[last - 1][right:], *lines[last:]])
        now = self.became if self.became == "pass" else f"({self.became})"
        return (before + now.encode() + after).decode()


def sources(only: tuple[str, ...] = ()) -> list[Path]:
    """Return the files that are mutated, or those below the given paths."""
    found = [path for package in PACKAGES for path in sorted((SOURCES / package).rglob("*.py"))]
    return [path for path in found if not only or name_of(path).startswith(only)]


def name_of(path: Path) -> str:
    """Return a source file's path below ``src/calibrant``."""
    return path.relative_to(SOURCES).as_posix()


def mutants_of(file: str, text: str) -> Iterator[Mutant]:
    """Yield every mutant of a file, from its first line to its last."""
    counts: Counter[tuple[str, ...]] = Counter()
    for scope, node in spots(ast.parse(text)):
        for other in broken(node):
            words = (scope, shown(node), shown(other))
            counts[words] += 1
            span = (node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)
            yield Mutant(file, scope, span, *words[1:], counts[words])


def spots(tree: ast.AST, scope: str = "module") -> Iterator[tuple[str, ast.expr | ast.stmt]]:
    """Yield each statement and expression that runs, with its scope."""
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if not isinstance(node, ast.AST) or is_told(node):
                continue
            if isinstance(node, ast.expr | ast.stmt):
                yield scope, node
            yield from spots(node, inside(scope, node))


def inside(scope: str, node: ast.AST) -> str:
    """Return the name of the scope below a node."""
    if not isinstance(node, Scopes):
        return scope
    return node.name if scope == "module" else f"{scope}.{node.name}"


def is_told(node: ast.AST) -> bool:
    """Say whether a node is for readers and tools: imports, lists of names, strings, types."""
    if isinstance(node, ast.Import | ast.ImportFrom | ast.JoinedStr):
        return True
    if isinstance(node, ast.Assign):
        return any(isinstance(name, ast.Name) and name.id == "__all__" for name in node.targets)
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def broken(node: ast.expr | ast.stmt) -> Iterator[ast.expr | ast.stmt]:
    """Yield what may stand in a node's place."""
    if isinstance(node, ast.BinOp) and type(node.op) in BINARY and not is_text(node):
        yield ast.BinOp(node.left, BINARY[type(node.op)](), node.right)
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARED:
        first = COMPARED[type(node.ops[0])]()
        yield ast.Compare(node.left, [first, *node.ops[1:]], node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(JOINED[type(node.op)](), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        yield node.operand
    elif isinstance(node, ast.Constant):
        yield from other_constants(node)
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, node.orelse, node.body)
    elif isinstance(node, DROPPED) or is_effect(node):
        yield ast.Pass()


def other_constants(node: ast.Constant) -> Iterator[ast.expr]:
    """Yield another constant of the same type; strings are for readers."""
    value = node.value
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int):
        yield ast.Constant(value + 1)
    elif isinstance(value, float):
        yield ast.Constant(value * 2 if value else 1.0)


def is_text(node: ast.BinOp) -> bool:
    """Say whether an operator joins strings or types, as far as that can be seen."""
    sides = (node.left, node.right)
    texts = [isinstance(side, ast.Constant) and isinstance(side.value, str) for side in sides]
    types = [isinstance(side, ast.Constant) and side.value is None for side in sides]
    return any(texts) or any(types) or any(isinstance(side, ast.JoinedStr) for side in sides)


def is_effect(node: ast.AST) -> bool:
    """Say whether a statement is there for what it changes: a call, or a word that is set."""
    if isinstance(node, ast.Assign):
        return any(isinstance(place, ast.Subscript | ast.Attribute) for place in node.targets)
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def shown(node: ast.AST) -> str:
    """Return a node as one line."""
    return " ".join(ast.unparse(node).split())


def sample(mutants: list[Mutant], size: int | None, seed: int) -> list[Mutant]:
    """Return some mutants, or all, in an order that the seed and their names fix.

    A smaller sample is the beginning of a larger one, and new code moves few others.
    """
    key = {m.name: hashlib.sha256(f"{seed} {m.name}".encode()).digest() for m in mutants}
    return sorted(mutants, key=lambda mutant: key[mutant.name])[:size]
