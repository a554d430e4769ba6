"""Plain functions with the functions that they call written into them.

A call costs plain Python as much as ten operations, and a round is made of nine small
functions.  :func:`inlined` does for plain Python what the compiler does for machine code: it
returns one function that performs the same operations in the same order, so that results
are the same to the bit (measured: a round in two thirds of the time).

Only what kernel functions need is handled.  A call is written out where it is a whole
statement (``f(x)``, ``a = f(x)``, ``a, b = f(x)``, ``return f(x)``) and ``f`` is a kernel
function without a loop; others stay calls.  Arguments have no effects, so that one which is
not used need not be evaluated.  Constants are put in for their names, and
branches that they decide are left out.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import linecache
import textwrap
from collections.abc import Callable
from types import FunctionType
from typing import Any, Final, TypeAlias, TypeVar

from calibrant.kernels.layout import INDEX

__all__ = ["inlined"]

Function = TypeVar("Function", bound=Callable[..., Any])
Names: TypeAlias = dict[str, ast.expr]
"""What each local name of a function stands for in the function that it is written into."""

PACKAGE: Final = "calibrant.kernels."
RESULT: Final = "result"


def inlined(function: Function, name: str) -> Function:
    """Return ``function`` with its calls written out; ``name`` says whose it is.

    Where the source is not at hand (a frozen program), the function itself.

    >>> from calibrant.kernels.scores import charge
    >>> swift = inlined(charge, "example")
    >>> swift(0, 0.5, 1)
    0.25
    >>> "charge_other" in charge.__code__.co_names, "charge_other" in swift.__code__.co_names
    (True, False)
    """
    try:
        made: Function = _Writer().write(function, name)
    except OSError:
        return function
    return made


class _Writer:
    """Writes one function; collects the objects that it refers to."""

    def __init__(self) -> None:
        self._space: dict[str, Any] = {}
        self._calls = 0

    def write(self, function: Any, name: str) -> Any:
        tree = _tree(function)
        tree.body = self._statements(tree.body, _Scope(function, {}, self._space))
        text = ast.unparse(ast.fix_missing_locations(ast.Module([tree], [])))
        file = f"<{function.__name__} of {name}, written out>"
        linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
        exec(compile(text, file, "exec"), self._space)
        return self._space[function.__name__]

    def _statements(self, body: list[ast.stmt], scope: _Scope) -> list[ast.stmt]:
        made = []
        for statement in body:
            made += self._statement(copy.deepcopy(statement), scope)
        return made

    def _statement(self, statement: ast.stmt, scope: _Scope) -> list[ast.stmt]:
        if isinstance(statement, ast.If):
            return self._branch(statement, scope)
        if isinstance(statement, ast.AnnAssign) and statement.value is not None:
            statement = ast.Assign([statement.target], statement.value)
        call: Any = getattr(statement, "value", None)
        callee = scope.kernel(call)
        if callee is None:
            return [scope.visit(statement)]
        if isinstance(statement, ast.Return):
            kept = scope.own(RESULT)
            return [*self._call(call, callee, scope, [kept]), ast.Return(_read(kept))]
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        return self._call(call, callee, scope, [scope.visit(target) for target in targets])

    def _branch(self, branch: ast.If, scope: _Scope) -> list[ast.stmt]:
        branch.test = scope.visit(branch.test)
        if isinstance(branch.test, ast.Constant):
            return self._statements(branch.body if branch.test.value else branch.orelse, scope)
        branch.body = self._statements(branch.body, scope) or [ast.Pass()]
        branch.orelse = self._statements(branch.orelse, scope)
        return [branch]

    def _call(
        self, call: ast.Call, callee: FunctionType, scope: _Scope, targets: list[ast.expr]
    ) -> list[ast.stmt]:
        """Return what ``targets = callee(...)`` does."""
        self._calls += 1
        tree, inner = _tree(callee), {}
        stored, used = _stored(tree), set().union(*map(_used, tree.body))
        for name in stored:
            inner[name] = _name(f"{name}_{self._calls}")
        made: list[ast.stmt] = []
        for parameter, value in zip(tree.args.args, call.args, strict=True):
            given = scope.visit(value)
            if parameter.arg not in used:
                continue
            if parameter.arg in stored or not isinstance(given, (ast.Name, ast.Constant)):
                inner[parameter.arg] = _name(f"{parameter.arg}_{self._calls}")
                made.append(ast.Assign([_store(inner[parameter.arg])], given))
            else:
                inner[parameter.arg] = given
        body = self._statements(tree.body, _Scope(callee, inner, self._space, self._calls))
        return made + _delivered(body, targets)


class _Scope(ast.NodeTransformer):
    """The names of one function, and what they become where it is written out."""

    def __init__(
        self, function: Any, inner: Names, space: dict[str, Any], call: int | None = None
    ) -> None:
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        closed = dict(zip(function.__code__.co_freevars, cells, strict=True))
        self._outer = {**function.__globals__, **closed}
        self._local = set(function.__code__.co_varnames)
        self._inner, self._space, self._call = inner, space, call

    def own(self, name: str) -> ast.expr:
        """Return a name of this function's own that nothing else has."""
        return _name(name if self._call is None else f"{name}_{self._call}")

    def kernel(self, call: Any) -> FunctionType | None:
        """Return the kernel function that is called, if it can be written out."""
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            return None
        called = self._outer.get(call.func.id)
        fits = isinstance(called, FunctionType) and called.__module__.startswith(PACKAGE)
        return called if fits and not _loops(called) else None

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self._inner:
            found = copy.deepcopy(self._inner[node.id])
            return _store(found) if isinstance(node.ctx, ast.Store) else found
        if node.id in self._local or node.id not in self._outer:
            return node
        value = self._outer[node.id]
        if value is None or isinstance(value, (bool, int, float)):
            return ast.Constant(value)
        known = f"{node.id}_{id(value)}"
        self._space[known] = value
        return _name(known)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """Leave out what adds nothing: the first word of a block, masks for the compiler."""
        made = ast.BinOp(self.visit(node.left), node.op, self.visit(node.right))
        if not isinstance(made.right, ast.Constant):
            return made
        masks = isinstance(node.op, ast.BitAnd) and made.right.value == INDEX
        idle = isinstance(node.op, ast.Add) and made.right.value == 0
        return made.left if masks or idle else made

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        test = self.visit(node.test)
        if isinstance(test, ast.Constant):
            decided: ast.expr = self.visit(node.body if test.value else node.orelse)
            return decided
        return ast.IfExp(test, self.visit(node.body), self.visit(node.orelse))

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """Decide ``constant and rest``, as flags of a rule are used."""
        first, *rest = [self.visit(value) for value in node.values]
        if not isinstance(node.op, ast.And) or not isinstance(first, ast.Constant):
            return ast.BoolOp(node.op, [first, *rest])
        if not first.value:
            return first
        return rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Decide ``function is None``, as optional functions of a rule are used."""
        made = ast.Compare(
            self.visit(node.left), node.ops, [self.visit(other) for other in node.comparators]
        )
        if not isinstance(made.ops[0], ast.Is):
            return made
        missing = isinstance(made.left, ast.Constant) and made.left.value is None
        known = isinstance(made.left, ast.Name) and callable(self._space.get(made.left.id))
        return ast.Constant(missing) if missing or known else made


def _delivered(body: list[ast.stmt], targets: list[ast.expr]) -> list[ast.stmt]:
    """Return ``body`` with assignments to ``targets`` for its returns."""
    returns = [node for part in body for node in ast.walk(part) if isinstance(node, ast.Return)]
    if not returns:
        return body
    if returns == [body[-1]]:
        return body[:-1] + _assigned(returns[0].value, targets)
    # A loop that runs once: leaving it is returning from what was a function.
    return [ast.While(ast.Constant(True), [*_left(body, targets), ast.Break()], [])]


def _left(body: list[ast.stmt], targets: list[ast.expr]) -> list[ast.stmt]:
    made: list[ast.stmt] = []
    for part in body:
        if isinstance(part, ast.Return):
            return [*made, *_assigned(part.value, targets), ast.Break()]
        if isinstance(part, ast.If):
            part.body, part.orelse = _left(part.body, targets), _left(part.orelse, targets)
        made.append(part)
    return made


def _assigned(value: ast.expr | None, targets: list[ast.expr]) -> list[ast.stmt]:
    if value is None or not targets:
        return []
    (target,) = copy.deepcopy(targets)
    pairs = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
    if not pairs or _used(target) & _used(value):
        return [ast.Assign([_store(target)], value)]
    both = zip(target.elts, value.elts, strict=True)  # type: ignore[attr-defined]
    return [ast.Assign([_store(one)], other) for one, other in both]


def _used(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _stored(tree: ast.FunctionDef) -> set[str]:
    names = [part for part in ast.walk(tree) if isinstance(part, ast.Name)]
    return {part.id for part in names if isinstance(part.ctx, ast.Store)}


@functools.cache
def _parsed(function: Any) -> ast.FunctionDef:
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    if not isinstance(tree, ast.FunctionDef):
        raise OSError(f"source must be of a function, got {ast.dump(tree)}")
    tree.returns, tree.decorator_list = None, []
    for argument in tree.args.args:
        argument.annotation = None
    if ast.get_docstring(tree) is not None:
        del tree.body[0]
    return tree


def _tree(function: Any) -> ast.FunctionDef:
    return copy.deepcopy(_parsed(function))


@functools.cache
def _loops(function: Any) -> bool:
    return any(isinstance(part, (ast.For, ast.While)) for part in ast.walk(_parsed(function)))


def _name(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def _read(node: ast.expr) -> ast.expr:
    return copy.deepcopy(node)


def _store(node: ast.expr) -> ast.expr:
    node = copy.deepcopy(node)
    for part in ast.walk(node):
        if isinstance(part, (ast.Name, ast.Tuple)):
            part.ctx = ast.Store()
    return node
