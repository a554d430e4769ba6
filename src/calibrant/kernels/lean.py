"""How functions are lowered to LLVM: as Numba does, without what kernels have no use for.

Numba asks for the rule of every operator anew, announces every instruction, and takes arrays apart
and together again for each word that is read.  Half of its time goes there, and LLVM has to clear
it away.  Only :mod:`calibrant.kernels.inner` loads this module: it needs Numba.
"""

from __future__ import annotations

import operator
from typing import Any, Final

from llvmlite.ir import Constant, Undefined
from numba.core import cgutils, ir, types
from numba.core.lowering import Lower
from numba.core.types.containers import BaseTuple
from numba.core.typing.templates import ConcreteTemplate, signature
from numba.cpython.builtins import do_minmax

NUMBERS: Final = types.Integer, types.Float, types.Boolean
COMPARED: Final[dict[Any, Any]] = {min: operator.lt, max: operator.gt}
"""By which operator the last one wins."""
INSTRUCTIONS: Final = {int, *COMPARED}
_rules: Final[dict[Any, tuple[Any, Any]]] = {}
"""Of operators and the types of what they work on, who does it and how it is called."""


def is_dense(kind: Any) -> bool:
    """Say whether something is an array of numbers without gaps."""
    if not isinstance(kind, types.Array) or not isinstance(kind.dtype, types.Integer | types.Float):
        return False
    return bool(kind.layout == "C" and kind.aligned)


def typed(context: Any, called: Any, args: tuple[Any, ...]) -> Any:
    """Return the types of a call on numbers, or None where only Numba knows.

    Numba asks all that somebody declared for other types first, and compiles functions of its own
    for what is an instruction here.
    """
    known: Any = called if isinstance(called, types.Function) else None
    if known is None or not args or not all(isinstance(each, NUMBERS) for each in args):
        return None
    if known.typing_key is int:
        return signature(args[0] if isinstance(args[0], types.Integer) else types.intp, *args)
    if known.typing_key in COMPARED:
        return signature(context.unify_types(*args), *args)
    listed = [each for each in known.templates if issubclass(each, ConcreteTemplate)]
    for template in [each(context) for each in listed]:
        if (found := template.apply(args, {})) is not None:
            known._impl_keys[found.args] = template.get_impl_key(found)
            return found
    return None


class Lean(Lower):  # type: ignore[misc]
    """Numba's lowering, quicker for operators, and for words of arrays without gaps."""

    def pre_block(self, block: Any) -> None:
        """Begin a block; kernels have nothing to try."""
        self._cur_ir_block = block

    def lower_block(self, block: Any) -> None:
        """Lower the instructions of a block; the end of a variable's life is none."""
        self.pre_block(block)
        for instruction in block.body:
            self.loc = instruction.loc
            if isinstance(instruction, ir.Assign):
                name = instruction.target.name
                self.storevar(self.lower_assign(self.typeof(name), instruction), name)
            elif not isinstance(instruction, ir.Del):
                self.lower_inst(instruction)
        self.post_block(block)

    def storevar(self, value: Any, name: str, argidx: int | None = None) -> None:
        """Store a value without a look at what was there: nothing is counted."""
        self._alloca_var(name, self.typeof(name))
        if name in self.varmap:
            self.builder.store(value, self.varmap[name])
        else:
            self._blk_local_varmap[name] = value

    def lower_binop(self, resty: Any, expr: Any, op: Any) -> Any:
        """Lower an operator by the rule that is known from last time."""
        typed = self.fndesc.calltypes[expr]
        both = zip((expr.lhs, expr.rhs), typed.args, strict=True)
        sides = [self._cast_var(side, kind) for side, kind in both]
        if (op, typed.args) not in _rules:
            context = self.context.typing_context
            rule = context.resolve_value_type(op)
            _rules[op, typed.args] = rule, rule.get_call_type(context, typed.args, {})
        result = self.context.get_function(*_rules[op, typed.args])(self.builder, sides)
        return self.context.cast(self.builder, result, typed.return_type, resty)

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        """Lower what reads a word of an array, and anything else as Numba does."""
        if expr.op == "getitem" and self._is_word(expr.value, expr.index):
            return self._load(resty, expr.value, expr.index)
        if expr.op == "static_getitem" and self._is_word(expr.value, expr.index_var):
            return self._load(resty, expr.value, expr.index_var)
        return super().lower_expr(resty, expr)

    def lower_call(self, resty: Any, expr: Any) -> Any:
        """Lower what is an instruction or none, and anything else as Numba does."""
        called, typed = self.typeof(expr.func.name), self.fndesc.calltypes[expr]
        key = getattr(called, "typing_key", None)
        if key in INSTRUCTIONS and all(isinstance(each, NUMBERS) for each in typed.args):
            sides = [self._cast_var(*each) for each in zip(expr.args, typed.args, strict=True)]
            if key is not int:
                sides = [do_minmax(self.context, self.builder, typed.args, sides, COMPARED[key])]
            kind = typed.args[0] if key is int else typed.return_type
            return self.context.cast(self.builder, sides[0], kind, resty)
        dense = key == "array.view" and is_dense(called.this) and is_dense(resty)
        if dense and called.this.dtype.bitwidth == resty.dtype.bitwidth:
            return self._seen_as(resty, self.loadvar(expr.func.name))
        return super().lower_call(resty, expr)

    def lower_inst(self, inst: Any) -> None:
        """Lower what writes a word of an array, and anything else as Numba does."""
        if isinstance(inst, ir.SetItem) and self._is_word(inst.target, inst.index):
            self._store(inst.target, inst.index, inst.value)
        elif isinstance(inst, ir.StaticSetItem) and self._is_word(inst.target, inst.index_var):
            self._store(inst.target, inst.index_var, inst.value)
        else:
            super().lower_inst(inst)

    def _is_word(self, array: Any, index: Any) -> bool:
        """Say whether ``array[index]`` is a number in an array without gaps."""
        if index is None or self.context.enable_boundscheck:
            return False
        kinds, kind = self._kinds(index), self.typeof(array.name)
        whole = all(isinstance(each, types.Integer) for each in kinds)
        return whole and is_dense(kind) and kind.ndim == len(kinds)

    def _kinds(self, index: Any) -> tuple[Any, ...]:
        kind = self.typeof(index.name)
        return tuple(kind) if isinstance(kind, BaseTuple) else (kind,)

    def _load(self, resty: Any, array: Any, index: Any) -> Any:
        value = self.builder.load(self._place(array, index))
        return self.context.cast(self.builder, value, self.typeof(array.name).dtype, resty)

    def _store(self, array: Any, index: Any, value: Any) -> None:
        place = self._place(array, index)
        self.builder.store(self._cast_var(value, self.typeof(array.name).dtype), place)

    def _place(self, array: Any, index: Any) -> Any:
        """Return where a word of an array lies; numbers below 0 count from the end."""
        kinds, told, place = self._kinds(index), self.loadvar(index.name), None
        for axis, kind in enumerate(kinds):
            at = told if len(kinds) == 1 else self.builder.extract_value(told, axis)
            at = self.context.cast(self.builder, at, kind, types.intp)
            size = self.builder.extract_value(self._part(array, "shape"), axis)
            if kind.signed and not (isinstance(at, Constant) and at.constant >= 0):
                below = self.builder.icmp_signed("<", at, at.type(0))
                at = self.builder.select(below, self.builder.add(at, size), at)
            if place is not None:
                at = self.builder.add(self.builder.mul(place, size), at)
            place = at
        return self.builder.gep(self._part(array, "data"), [place])

    def _part(self, array: Any, part: str) -> Any:
        """Return one of the words that describe an array."""
        place = self.context.data_model_manager[self.typeof(array.name)].get_field_position(part)
        if (whole := self.varmap.get(array.name)) is None:
            return self.builder.extract_value(self.loadvar(array.name), place)
        return self.builder.load(cgutils.gep_inbounds(self.builder, whole, 0, place))

    def _seen_as(self, kind: Any, array: Any) -> Any:
        """Return the same array with numbers of another kind."""
        seen = Constant(self.context.get_value_type(kind), Undefined)
        for place, form in enumerate(seen.type.elements):
            value = self.builder.extract_value(array, place)
            if value.type != form:
                value = self.builder.bitcast(value, form)
            seen = self.builder.insert_value(seen, value, place)
        return seen
