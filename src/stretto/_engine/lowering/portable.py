"""Programs as StableHLO for files: no positions, arrays in the text, and no calls of Python.

What the runtime of this process is told otherwise, a file has to say itself: large constants, and
which of several platforms it runs on, which is then the first argument of ``main``.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

import numpy as np

from stretto._engine.core.errors import ExportError
from stretto._engine.core.position import Place
from stretto._engine.core.program import Program
from stretto._engine.core.types import array_type
from stretto._engine.lowering.stablehlo import Builder
from stretto._engine.lowering.text import Operand, tensor_type

PLATFORMS = {"cpu": "cpu", "cuda": "gpu", "rocm": "rocm", "tpu": "tpu"}
"""The platforms that programs are written for, as files name them, and as they are named here."""

_NATIVE = {"lapack_": "cpu", "cusolver_": "cuda", "cusparse_": "cuda", "cu_": "cuda"}
"""The beginnings of the names of custom calls that one platform has."""

_ROUTINES = (
    *("potrf", "geqrf", "orgqr", "ungqr", "ormqr", "unmqr", "syevd", "heevd", "geev", "gesdd"),
    *("getrf", "sytrd", "hetrd", "gehrd", "gees", "trsm", "gtsv"),
)
_CUSOLVER = ("getrf", "geqrf", "orgqr", "ormqr", "potrf", "syevd", "gesvd", "gesvdj", "sytrd")

ALLOWED = frozenset(
    [f"lapack_{kind}{routine}_ffi" for kind in "sdcz" for routine in _ROUTINES]
    + [
        f"cusolver_{routine}_ffi"
        for routine in ["getrf", "geqrf", "orgqr", "ormqr", "potrf", "syevd"]
    ]
    + ["cusparse_gtsv2_ffi"]
    + ["cu_lu_pivots_to_permutation", "cu_threefry2x32_ffi"]
    + ["shape_assertion", "stablehlo.dynamic_top_k", "stablehlo.dynamic_reduce_window"]
    + ["stablehlo.dynamic_rng_bit_generator", "AllocateBuffer"]
)
"""The custom calls that a file may have: of LAPACK and its like, and about shapes."""


_PACKED = {"bool", "int2", "int4", "uint2", "uint4", "float4_e2m1fn"}
"""The dtypes whose elements MLIR does not read from bytes as they lie in memory here."""


class Portable(Builder):
    """A builder of modules for files, for one platform."""

    plans = False  # the file is for other machines, and its sizes may vary

    def __init__(self, platform: str, mark: str = "", allowed: Set[str] = ALLOWED) -> None:
        super().__init__()
        self._allowed = allowed
        self._platform = PLATFORMS[platform]
        self.mark = mark

    @property
    def platform(self) -> str:
        """The platform that the text is for."""
        return self._platform

    def _alias_of(self, place: Place | None) -> str:
        """Return no position: it would have the user's paths."""
        return ""

    def _located(self, name: str) -> str:
        return ""

    def array(self, values: np.ndarray) -> Operand:
        """Write a constant, its elements in hexadecimal digits if they are many."""
        self._has_scalars_alone &= not (self._scalars and values.shape)
        if values.size <= 16 or values.dtype.name in _PACKED:
            return self._written(values)
        self._count += 1
        type = array_type(values.shape, values.dtype)
        digits = np.ascontiguousarray(values).tobytes().hex().upper()
        name = f"%{self._count}"
        self._lines.append(f'{name} = stablehlo.constant dense<"0x{digits}"> : {tensor_type(type)}')
        return Operand(name, type)

    def host_call(self, function: Any, operands: Any, observable: bool, ordered: bool) -> Any:
        """Refuse a call of Python, which no file can have."""
        name = getattr(getattr(function, "__self__", None), "host", None)
        raise ExportError(
            f"export.stablehlo: {getattr(name, 'name', 'a function')} is called in Python while "
            f"the program runs, which a file cannot do: export what comes before and after it"
        )

    def custom_call(self, target: str, *args: Any, **kwargs: Any) -> list[Operand]:
        """Write a call of native code, of what others are known to have."""
        for begin, platform in _NATIVE.items():
            if target.startswith(begin) and PLATFORMS[platform] != self._platform:
                raise ExportError(
                    f"export.stablehlo: the program calls {target}, which {platform} has, and "
                    f"{self._platform} has not: export it for {platform} alone"
                )
        if target not in self._allowed:
            raise ExportError(
                f"export.stablehlo: the program calls {target}, which is known to this runtime "
                f"alone: leave what needs it out of the exported function"
            )
        return super().custom_call(target, *args, **kwargs)

    def begin(self, arguments: Sequence[Operand]) -> None:
        """Write what comes first in the function of a program."""

    def functions(self, program: Program, arrays: Sequence[np.ndarray], name: str) -> list[str]:
        """Return the functions of a program, the first of this name.

        Its arguments are the inputs before those that the arrays are for.
        """
        count = len(program.inputs) - len(arrays)
        arguments = [Operand(f"%arg{i}", t) for i, t in enumerate(program.in_types[:count])]
        self.begin(arguments)
        results = self.program(program, [*arguments, *map(self.array, arrays)])
        head = ", ".join([f"{a.name}: {tensor_type(a.type)}" for a in arguments])
        kinds = ", ".join([tensor_type(r.type) for r in results])
        names = ", ".join([r.name for r in results])
        end = f"return {names} : {kinds}" if results else "return"
        body = "\n".join([*self._lines, end])
        visibility = "public" if name == "main" else "private"
        return [
            f"func.func {visibility} @{name}({head}) -> ({kinds}) {{\n{body}\n}}",
            *self._bodies,
        ]
