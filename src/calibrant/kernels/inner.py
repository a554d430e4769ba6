"""How programs are compiled: every function is lowered once, and a program optimised once.

Numba makes each function that another one calls a library of its own: optimised, wrapped for
Python and turned into machine code, and all of it once more for every caller whose options differ.
None of that is of use to functions that only programs call.  Here they are typed and lowered, and
no more; a program takes in all that it calls and is optimised as a whole.  So first use takes less
than half the time.  Only :mod:`calibrant.kernels.compile` loads this module: it needs Numba.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from numba import _dynfunc, njit
from numba.core import typed_passes, types, untyped_passes
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import register_pass
from numba.core.datamodel.models import OpaqueModel
from numba.core.datamodel.registry import register_default
from numba.core.registry import cpu_target
from numba.core.typed_passes import NativeLowering
from numba.core.types.containers import BaseTuple
from numba.core.types.misc import unliteral
from numba.core.typing.context import Context
from numba.np import linalg

from calibrant.kernels.lean import Lean, is_dense, typed

IDLE: Final = (
    untyped_passes.WithLifting,
    untyped_passes.InlineClosureLikes,
    untyped_passes.MakeFunctionToJitFunction,
    untyped_passes.InlineInlinables,
    untyped_passes.FindLiterallyCalls,
    untyped_passes.LiteralUnroll,
    untyped_passes.LiteralPropagationSubPipelinePass,
    untyped_passes.RewriteDynamicRaises,
    typed_passes.InlineOverloads,
    typed_passes.NopythonRewrites,
    typed_passes.AnnotateTypes,
    typed_passes.DumpParforDiagnostics,
)
"""Passes to which kernels give nothing to do: they make no functions and add no arrays up."""
PLAIN: Final = types.Number, types.Boolean, types.Array, BaseTuple
ENTRY: Final = "_ZN7cpython"
"""How the name begins of what Python calls."""
_results: Final[dict[Any, Any]] = {}
_kept: Final[list[Any]] = []


class Inner(types.Dispatcher):
    """The type of a function that programs call: the same for all values of a whole number."""

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """Compile the function for these types of arguments, and return what it gives."""
        return super().get_call_type(context, tuple(map(unliteral, args)), kws)


register_default(Inner)(OpaqueModel)


class Remembering(Context):  # type: ignore[misc]
    """What Numba knows about types, with the results of operations on numbers and arrays.

    Numba tries every rule that it has for an operator, each time, for a third of its time.
    """

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        """Return the types of a call, looked up once."""
        if kws or not all(isinstance(each, PLAIN) for each in args):
            return super().resolve_function_type(func, args, kws)
        key = func, tuple(args)
        if key not in _results:
            quick = typed(self, func, tuple(map(unliteral, args)))
            _results[key] = quick or super().resolve_function_type(func, args, kws)
        return _results[key]

    def resolve_setitem(self, target: Any, index: Any, value: Any) -> Any:
        """Return the types of an assignment to a part of an array, looked up once."""
        key = target, index, value
        if key not in _results:
            _results[key] = super().resolve_setitem(*key)
        return _results[key]

    def resolve_static_getitem(self, value: Any, index: Any) -> Any:
        """Return nothing of arrays, for which no number has types of its own."""
        return None if is_dense(value) else super().resolve_static_getitem(value, index)

    def resolve_static_setitem(self, target: Any, index: Any, value: Any) -> Any:
        """Return nothing of arrays either."""
        return None if is_dense(target) else super().resolve_static_setitem(target, index, value)


def spare_blas() -> None:
    """Let Numba load SciPy's linear algebra when somebody compiles some, not with all it knows.

    All that it asks for beforehand is whether SciPy is there.
    """
    if "numba.np.arraymath" in sys.modules or find_spec("scipy") is None:
        return
    asked, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    try:
        import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = asked


_context: Final = object.__new__(Remembering)
_context.__dict__ = cpu_target.typing_context.__dict__


class Lowered(JITCodeLibrary):  # type: ignore[misc]
    """A function that was lowered, and the libraries of what it calls."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _get_module_for_linking(self) -> Any:
        return self._final_module

    def finalize(self) -> None:
        """Leave everything else to the programs that call the function."""
        self._finalized = True


class Whole(Lowered):
    """A program and all functions that it calls, however indirectly."""

    def finalize(self) -> None:
        """Link, optimise and make machine code."""
        found: dict[Any, None] = {}
        waiting: list[Any] = list(self._linking_libraries)
        while waiting:
            library = waiting.pop()
            if library not in found:
                found[library] = None
                waiting += library._linking_libraries if isinstance(library, Lowered) else ()
        self._linking_libraries[:] = found
        JITCodeLibrary.finalize(self)

    def _optimize_final_module(self) -> None:
        # Nobody else calls them: one that is called once may go where it is called.
        for function in self._final_module.functions:
            if not function.is_declaration and not function.name.startswith(ENTRY):
                function.linkage = "internal"
        # Once is enough: nothing is counted that could be pruned in between.
        made = self._codegen._module_pass_manager()
        manager, *builder = made if isinstance(made, tuple) else (made,)
        manager.run(self._final_module, *builder)


@register_pass(mutates_CFG=True, analysis_only=False)
class Lower(NativeLowering):  # type: ignore[misc]
    """Lowers a function and makes no machine code."""

    _name = "calibrant_lower"
    lowering_class = Lean

    def run_pass(self, state: Any) -> bool:
        """Lower the function, and let others find it under an entry that nobody can call."""
        state.library = Lowered(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        made = state["cr"]
        module, name = made.fndesc.lookup_module(), made.fndesc.qualname
        entry = _dynfunc.make_function(module, name, "", 0, made.env, (state.library,))
        state.targetctx.insert_user_function(entry, made.fndesc, [state.library])
        state["cr"] = made._replace(cfunc=entry)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class LowerWhole(NativeLowering):  # type: ignore[misc]
    """Lowers a program and makes its machine code."""

    _name = "calibrant_lower_whole"
    lowering_class = Lean

    def run_pass(self, state: Any) -> bool:
        """Lower the program into a library that takes in what it calls."""
        state.library = Whole(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return bool(super().run_pass(state))


class Functions(Compiler):  # type: ignore[misc]
    """Numba's passes for a function that programs call."""

    lowering: Any = Lower

    def __init__(self, typingctx: Any, *others: Any) -> None:
        spare_blas()
        super().__init__(_context, *others)

    def define_pipelines(self) -> list[Any]:
        """Return Numba's passes, none twice or idle, and with another one that lowers."""
        (made,) = super().define_pipelines()
        kept = dict.fromkeys((each, why) for each, why in made.passes if each not in IDLE)
        made.passes = [(self.lowering if each is NativeLowering else each, w) for each, w in kept]
        made._finalized = False
        made.finalize()
        return [made]


class Programs(Functions):
    """The same for a program."""

    lowering = LowerWhole

    def compile_extra(self, func: Any) -> Any:
        """Compile the program; garbage waits, which takes a fifth of the time otherwise."""
        collects = gc.isenabled()
        gc.disable()
        try:
            return super().compile_extra(func)
        finally:
            if collects:
                gc.enable()


def inner(function: Callable[..., Any], force: bool) -> Any:
    """Return ``function`` for programs to call; ``force`` writes it into all its callers."""
    wrapped = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    told = {"error_model": "numpy", "_nrt": False, "forceinline": force} | wrapped
    return njit(function, pipeline_class=Functions, **told)


def make_known(function: Callable[..., Any], instead: Callable[..., Any], force: bool) -> None:
    """Let programs call ``instead`` where their source says ``function``."""
    _kept.append(inner(instead, force))
    cpu_target.typing_context.insert_global(function, Inner(_kept[-1]))


def program(function: Callable[..., Any], nogil: bool) -> Callable[..., Any]:
    """Return a program, compiled when it is first called."""
    told = {"error_model": "numpy", "_nrt": False, "nogil": nogil, "no_cfunc_wrapper": True}
    made: Callable[..., Any] = njit(function, pipeline_class=Programs, **told)
    return made
