"""The instruction that asks for a word before it is needed.

Only :mod:`calibrant.kernels.compile` loads this module: it needs Numba.
"""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

WRITE, NEAREST, DATA = 1, 3, 1
"""That the word will be written, should stay as near as can be, and is no instruction."""
PLACE: Final = ir.IntType(8).as_pointer()
NUMBER: Final = ir.IntType(32)
ASKED: Final = ir.FunctionType(ir.VoidType(), [PLACE, NUMBER, NUMBER, NUMBER])


@intrinsic  # type: ignore[untyped-decorator]
def prefetch(context: Any, words: Any, at: Any) -> tuple[Any, Any]:
    """Ask for a word of an array; there is nothing to wait for, and nothing that could go wrong."""

    def lowered(target: Any, builder: Any, signature: Any, told: Any) -> Any:
        array = target.make_array(signature.args[0])(target, builder, told[0])
        place = builder.bitcast(builder.gep(array.data, [told[1]]), PLACE)
        asked = builder.module.declare_intrinsic("llvm.prefetch", [PLACE], ASKED)
        builder.call(asked, [place, NUMBER(WRITE), NUMBER(NEAREST), NUMBER(DATA)])
        return target.get_dummy_value()

    return types.void(words, types.intp), lowered


def fetch_now(words: Any, at: Any) -> None:
    """Ask for a word of an array, as programs call it."""
    prefetch(words, at)
