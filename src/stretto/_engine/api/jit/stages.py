"""The stages of a compiled function, one by one: traced, lowered, compiled.

``jit(f).trace(...).lower().compile()`` stops at each. All can be inspected, and the last can be
called.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from stretto._engine.api.graph import struct_of
from stretto._engine.api.jit.entry import Entry
from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary
from stretto._engine.core.interpreter import Tracer, as_value
from stretto._engine.core.program import Program
from stretto._engine.core.types import ArrayType, array_type, canonical_dtype
from stretto._engine.eager.interpreter import default_sharding
from stretto._engine.higher_order.family import parting
from stretto._engine.xla import pjrt
from stretto._engine.xla.array import Array
from stretto._engine.xla.options import Options
from stretto._engine.xla.pjrt import Executable

R_co = TypeVar("R_co", covariant=True)


def on_device(leaf: Any) -> Any:
    """Return a NumPy array as an array on the device, in one copy; anything else as it is.

    Under a default device it stays where it is, since that device may not be the one.
    """
    if (
        leaf.__class__ is np.ndarray
        and leaf.size
        and leaf.dtype == canonical_dtype(leaf.dtype)
        and default_sharding() is None
    ):
        type = array_type(leaf.shape, leaf.dtype)
        return Array(None, type, pjrt.to_device(leaf, type, own=False))
    return leaf


def as_options(options: Mapping[str, Any] | None, caller: str) -> Options:
    """Return options of the compiler, sorted and hashable; refuse what cannot be one."""
    if options is None:
        return ()
    if not isinstance(options, Mapping):
        raise TypeError(
            f"{caller}: compiler_options must be a dict of XLA's flags, got "
            f"{type(options).__name__}"
        )
    for name, value in options.items():
        if not isinstance(name, str) or not isinstance(value, (str, bool, int, float)):
            raise TypeError(
                f"{caller}: compiler_options must have names and, for each, a str, bool, int or "
                f"float; got {name!r}: {value!r}"
            )
    return tuple(sorted(options.items()))


@dataclasses.dataclass(frozen=True)
class ArgInfo:
    """The facts that a stage knows of one argument.

    Args:
        shape: the sizes of its axes.
        dtype: its dtype.
        donated: whether a call takes its memory.
    """

    shape: tuple[int, ...]
    dtype: Any
    donated: bool = False


class Stage(Generic[R_co]):
    """A stage of a function; the base of all."""

    def __init__(self, entry: Entry, structure: Any, types: Sequence[ArrayType]) -> None:
        self._entry = entry
        self._types = types
        self.in_tree = structure
        """The structure of (args, kwargs), without static arguments."""

    @property
    def fun_name(self) -> str:
        """The name of the function."""
        return self._entry.program.name

    @property
    def out_tree(self) -> Any:
        """The structure of the result."""
        return self._entry.out_structure

    @property
    def in_avals(self) -> Any:
        """(args, kwargs), without static arguments, as trees of types."""
        return tree.unflatten(self.in_tree, self._types)

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """The positions of the leaves of the arguments that are donated."""
        return tuple([i for i, donated in enumerate(self._entry.donated) if donated])

    @property
    def args_info(self) -> Any:
        """(args, kwargs), without static arguments, as trees of ``ArgInfo``."""
        donated = self._entry.donated or [False] * len(self._types)
        infos = [ArgInfo(t.shape, t.dtype, d) for t, d in zip(self._types, donated, strict=True)]
        return tree.unflatten(self.in_tree, infos)

    @property
    def out_info(self) -> Any:
        """The shapes and dtypes of the result: a tree of ``ShapeDtypeStruct``."""
        return tree.unflatten(self.out_tree, [struct_of(t) for t in self._entry.out_types])


class TracedCall(Stage[R_co]):
    """A function traced for one signature."""

    @property
    def program(self) -> Program:
        """The typed program."""
        return self._entry.program

    jaxpr = program

    @property
    def out_avals(self) -> Any:
        """The types of the result, as a tree."""
        return tree.unflatten(self.out_tree, self._entry.out_types)

    def lower(self) -> Lowered[R_co]:
        """Lower it to StableHLO.

        Returns:
            The lowered function.
        """
        with boundary:
            return Lowered(self._entry, self.in_tree, self._types)

    def __str__(self) -> str:
        return str(self.program)


class Lowered(Stage[R_co]):
    """A traced function as StableHLO text."""

    def __init__(self, entry: Entry, structure: Any, types: Sequence[ArrayType]) -> None:
        super().__init__(entry, structure, types)
        self._text = entry.text()

    def as_text(self, dialect: str | None = None) -> str:
        """Return the module, before XLA optimizes it.

        Args:
            dialect: ``"stablehlo"`` or None, or ``"hlo"`` for XLA's own.

        Returns:
            The text of the module.

        Raises:
            ValueError: another dialect is asked for.
        """
        if dialect == "hlo":
            return pjrt.hlo_of_text(self._text)
        if dialect not in (None, "stablehlo"):
            raise ValueError(
                f"as_text: dialect must be 'stablehlo', 'hlo' or None, got {dialect!r}; "
                f"compile().as_text() gives optimized HLO"
            )
        return self._text

    def cost_analysis(self) -> dict[str, float]:
        """Estimate its cost, before XLA optimizes it.

        Returns:
            XLA's estimates by name: ``flops``, ``bytes accessed`` and more.
        """
        return pjrt.cost_of_text(self._text)

    def compile(self, compiler_options: Mapping[str, Any] | None = None) -> Compiled[R_co]:
        """Compile it by XLA.

        Args:
            compiler_options: flags of XLA by name, in addition to those that ``jit`` was given.

        Returns:
            The compiled function, to be called with the arguments that are not static.

        Raises:
            TypeError: ``compiler_options`` is not a dict of names and plain values.
        """
        with boundary:
            entry = self._entry
            if compiler_options is None:
                executable = entry.optimized()
            else:
                options = {**dict(entry.options), **dict(as_options(compiler_options, "compile"))}
                executable = entry.compile(as_options(options, "compile"))
            return Compiled(entry, self.in_tree, self._types, executable)


class Compiled(Stage[R_co]):
    """A function compiled for one signature; called with the arguments that are not static."""

    def __init__(
        self, entry: Entry, structure: Any, types: Sequence[ArrayType], executable: Executable
    ) -> None:
        super().__init__(entry, structure, types)
        self._executable = executable

    def __call__(self, *args: Any, **kwargs: Any) -> R_co:
        """Compute the results for arguments of the types compiled for.

        Args:
            *args: the positional arguments that are not static.
            **kwargs: the keyword arguments that are not static.

        Returns:
            What the function returns, as arrays.

        Raises:
            TypeError: arguments have other types or another structure, or are traced.
        """
        with boundary:
            leaves, structure = tree.flatten((args, kwargs))
            if structure != self.in_tree:
                raise TypeError(
                    f"{self.fun_name} was compiled for arguments of another structure; expected "
                    f"and got part at {parting(self.in_tree, structure, '(args, kwargs)')}"
                )
            names = self._entry.names
            arrays = [
                as_value(on_device(x), self.fun_name, name)
                for x, name in zip(leaves, names, strict=True)
            ]
            self._check(arrays)
            return self._entry.run(arrays, self._executable)

    call = __call__

    def _check(self, arrays: Sequence[Any]) -> None:
        wrong = []
        shardings = self._entry.ins or (None,) * len(arrays)
        names = self._entry.names
        for array, expected, asked, name in zip(arrays, self._types, shardings, names, strict=True):
            if isinstance(array, Tracer):
                raise TypeError(
                    f"{self.fun_name}: a function compiled ahead of time takes arrays only, and "
                    f"{name} is traced ({array.origin()}): a transformation needs the function "
                    f"itself, or the jitted one"
                )
            got = array.type
            if (got.shape, got.dtype) != (expected.shape, expected.dtype):
                wrong.append(f"{name} as {expected}, called with {got}")
            has = getattr(array, "_sharding", None)
            if has is not None and has != asked:
                wrong.append(f"{name} with the sharding {asked}, called with {has}")
        if wrong:
            more = f", and {len(wrong) - 3} more that differ" if len(wrong) > 3 else ""
            raise TypeError(f"{self.fun_name}: compiled for {'; for '.join(wrong[:3])}{more}")

    def as_text(self) -> str:
        """Print the optimized program.

        Returns:
            The text, in HLO.
        """
        return self._executable.as_text()

    def cost_analysis(self) -> dict[str, float]:
        """Estimate its cost.

        Returns:
            XLA's estimates by name: ``flops``, ``bytes accessed`` and more.
        """
        return self._executable.cost_analysis()

    def memory_analysis(self) -> Any:
        """Measure the memory that a call takes.

        Returns:
            An object whose attributes are sizes in bytes: of arguments, outputs,
            temporaries and code, and of donated memory.
        """
        return self._executable.memory_analysis()
