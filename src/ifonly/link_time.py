"""Link-time optimisation of numba kernels: LLVM optimises once per function that Python calls, with all that it calls.

numba links, optimises and turns into machine code every function with all below it, again at each level of calls. Only
what Python calls is ever run. So a function that only kernels call stays as it was lowered, and waits for its caller.
This uses parts of numba that are not documented; where they are missing, numba compiles in its own way.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from llvmlite import binding
from numba.core.codegen import JITCodeLibrary
from numba.core.registry import cpu_target

WRAPPER = "_ZN7cpython"
"""How the name of a function begins through which Python calls another one."""
COMPILED = "_Z"
"""How the name of a compiled function begins; those of numba's runtime, which is a library too, do not."""
ENVIRONMENT = "_ZN08NumbaEnv"
"""How the name of a variable begins that numba sets for each function, run or not."""
NEEDED = ("add_llvm_module", "finalize", "get_pointer_to_function", "_get_module_for_linking", "_optimize_final_module")
"""Methods of numba's libraries that are replaced here."""


@contextlib.contextmanager
def link_time_optimisation() -> Iterator[None]:
    """What is compiled inside is optimised once per function that Python calls."""
    codegen = cpu_target.target_context.codegen()
    before = getattr(codegen, "_library_class", None)
    if before is None or not all(hasattr(JITCodeLibrary, name) for name in NEEDED):  # another numba
        yield
        return
    codegen._library_class = LinkedLibrary
    try:
        yield
    finally:
        codegen._library_class = before


class LinkedLibrary(JITCodeLibrary):  # type: ignore[misc]
    """A function in LLVM's language, and the libraries of those that it calls."""

    waits = False
    """Only kernels call it, so that it was neither linked nor optimised."""

    def add_llvm_module(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout
        self._final_module.link_in(module)

    def finalize(self) -> None:
        names = [function.name for function in self._final_module.functions if not function.is_declaration]
        if any(name.startswith(COMPILED) for name in names) and not any(name.startswith(WRAPPER) for name in names):
            self._raise_if_finalized()
            self._define_environment()
            self.waits = self._finalized = True
            return
        self._called_from_outside = {*names}
        below = _below(self)
        for library in below:
            if _waits(library):
                self._reload_init.update(library._reload_init)
                self._final_module.link_in(library.alone(), preserve=True)
        self._linking_libraries = [library for library in below if not _waits(library)]
        super().finalize()

    def _optimize_final_module(self) -> None:
        """Callees have no other caller, so that those with one place are inlined there."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.name not in self._called_from_outside:
                function.linkage = "internal"
        super()._optimize_final_module()

    def get_pointer_to_function(self, name: str) -> Any:
        self._ensure_finalized()
        return 0 if self.waits else super().get_pointer_to_function(name)

    def alone(self) -> Any:
        """This function, for linking, without those that it calls."""
        return super()._get_module_for_linking()

    def _get_module_for_linking(self) -> Any:
        """For a function that is compiled in numba's own way: with all that it calls."""
        module = self.alone()
        if self.waits:
            module = module.clone()
            for library in _below(self):
                other = library.alone() if _waits(library) else library._get_module_for_linking()
                module.link_in(other, preserve=True)
        return module

    def _define_environment(self) -> None:
        """numba sets these variables as soon as a function is compiled."""
        names = [variable.name for variable in self._final_module.global_variables]
        lines = [f'@"{name}" = common global i8* null' for name in names if name.startswith(ENVIRONMENT)]
        self._codegen._add_module(binding.parse_assembly("\n".join(lines)))
        self._codegen._engine.finalize_object()


def _waits(library: Any) -> bool:
    return getattr(library, "waits", False)


def _below(library: Any) -> list[Any]:
    """The libraries that this one calls, and those that they call, if they have not been linked."""
    found: dict[Any, None] = {}
    to_do = [*library._linking_libraries]
    while to_do:
        other = to_do.pop()
        if other not in found:
            found[other] = None
            to_do += other._linking_libraries if _waits(other) else []
    return [*found]


__all__ = ["link_time_optimisation"]
