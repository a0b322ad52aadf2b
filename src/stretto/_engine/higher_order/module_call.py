"""``module_call``: an operation that is a module of StableHLO, read from a file.

Nothing is known of it but the types of its operands and results. It is compiled with the program
around it, or alone where it is called eagerly; its derivatives are further modules of the file,
which whoever reads that attaches by a ``custom_vjp``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto._engine.core.primitive import NOT_LINEAR, Primitive, Refused
from stretto._engine.core.types import ArrayType

_PLATFORMS = {"gpu": "cuda"}
"""The platforms that files have other names for."""
_UNKNOWN = "it is a module of StableHLO from a file, of which only the types are known"


class ModuleCall(Primitive):
    """Calls a function of a module; the text has all of its functions.

    ``takes`` and ``gives`` are its types in MLIR. It was made for ``platforms``; if it is ``told``
    which, it takes the number first, of that dtype. With ``anywhere`` it is taken for others as
    well, as the first of them. It says whether it has ``loops``.
    """

    of: str
    text: str
    main: str
    targets: tuple[str, ...]
    takes: tuple[str, ...]
    gives: tuple[str, ...]
    ins: tuple[ArrayType, ...]
    outs: tuple[ArrayType, ...]
    platforms: tuple[str, ...]
    told: np.dtype | None
    anywhere: bool
    loops: bool

    multiple = True
    only_compiled = True
    interned = False  # the table would keep the text alive
    rollable = False

    reference = Refused(f"{_UNKNOWN}: it runs compiled")
    onnx = Refused(f"{_UNKNOWN}: export the function that it was made of")
    jvp = Refused(
        "the file has no derivative of this order: write it with a larger vjp_order; and it has "
        "reverse derivatives alone (grad, vjp)"
    )
    transpose = NOT_LINEAR
    vmap = Refused(
        f"{_UNKNOWN}, so it takes one example at a time: call it in a loop, "
        f"stretto.lax.map(f, xs); or export it with an axis of any size for the examples "
        f"(dynamic_axes; in JAX a symbolic shape), and call it with all of them at once"
    )
    padded = Refused(f"{_UNKNOWN}: call it with arrays of fixed sizes")

    @property
    def endless(self) -> bool:  # type: ignore[override]
        """True if it has a loop."""
        return self.loops

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        for k, (type, expected) in enumerate(zip(types, self.ins, strict=True)):
            if (type.shape, type.dtype) != (expected.shape, expected.dtype):
                raise TypeError(f"{self.of}: operand {k} must be {expected}, got {type}")
        return self.outs

    def out_types(self, types: tuple[ArrayType, ...]) -> tuple[ArrayType, ...]:
        """Return the types of the results; not remembered, since they are at hand."""
        return self.infer(*types)

    def compiled(self, types: tuple[ArrayType, ...]) -> bool:
        """Say that it is compiled: there is no other way to run it."""
        return True

    def lower(self, b: Any, *operands: Any) -> Any:
        here = _PLATFORMS.get(b.platform, b.platform)
        if here not in self.platforms and not self.anywhere:
            raise ValueError(
                f"{self.of} was exported for {', '.join(self.platforms)}, and runs on {here} here: "
                f"export it for that platform, too"
            )
        if self.told is not None:
            number = self.platforms.index(here) if here in self.platforms else 0
            operands = (b.scalar(number, self.told), *operands)
        return b.call_module(self.text, self.main, self.targets, operands, self.takes, self.gives)

    def parameters(self) -> list[tuple[str, Any]]:
        """Return the name alone: the text tells too much in print."""
        return [("of", self.of), ("main", self.main)]
