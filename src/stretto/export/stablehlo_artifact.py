"""``stablehlo``: a function as StableHLO, in the file of ``jax.export``; and such files read.

A function is traced and written for platforms by name; what varies in size stays a variable. The
module goes into the file as a portable artifact, a form of StableHLO that newer runtimes read for
five years, with the reverse derivatives that are asked for. A file that is read gives a function,
which can be called, jitted, and differentiated to the order that it has in it; ``vmap`` refuses it,
since a module is what it is. What is not ours is read in a child first (``child``).
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from types import MappingProxyType
from typing import Any

import numpy as np

from stretto._engine.api.autodiff.derivatives import vjp
from stretto._engine.api.exported import names_of, trace
from stretto._engine.api.graph import ShapeDtypeStruct
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary
from stretto._engine.core.errors import ExportError
from stretto._engine.core.files import write_whole
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.program import Program
from stretto._engine.core.size_guards import Guard
from stretto._engine.core.sizes import Dimension, SizeVariable, is_size
from stretto._engine.core.types import ArrayType, array_type, float0, is_inexact
from stretto._engine.core.typing import ArrayLike, Tree
from stretto._engine.higher_order.custom_derivatives import custom_vjp
from stretto._engine.higher_order.custom_function import zero_tangent
from stretto._engine.higher_order.family import parting
from stretto._engine.higher_order.module_call import ModuleCall
from stretto._engine.lowering.polymorphic import lower_for_file
from stretto._engine.lowering.portable import ALLOWED, PLATFORMS
from stretto._engine.lowering.text import element_type, tensor_type
from stretto._engine.ops.comparison import full
from stretto._engine.ops.convert import convert
from stretto._engine.xla import artifacts, pjrt
from stretto._engine.xla.artifacts import Functions
from stretto.export import child, size_text
from stretto.export.container import (
    KEYS,
    NODES,
    Aval,
    Container,
    Node,
    dtype_of,
    from_bytes,
    to_bytes,
    tree_of,
)
from stretto.export.splits import Split
from stretto.files.names import Damaged
from stretto.random.key_arrays import Implementation, KeyArray, KeyDtype

VERSION = "1.13.7"
"""The version of StableHLO that is written: twelve weeks older than jaxlib 0.10.2's."""

_BOOL = np.dtype(bool)
_INDICES = {"tensor<i32>": np.dtype(np.int32), "tensor<i64>": np.dtype(np.int64)}
"""The types that the number of the platform may have, in a module."""


def stablehlo(
    fun: Callable[..., Any],
    *examples: Any,
    dynamic_axes: Tree = None,
    outputs: Mapping[str, Callable[[Any], Any]] | None = None,
    platforms: Sequence[str] = ("cpu",),
    vjp_order: int = 0,
) -> StableHLO:
    """Write a function, a module or an ensemble as StableHLO, in the form of ``jax.export``.

    Args:
        fun: what to export; arrays that it has or captures become constants.
        *examples: arguments like those of a call; what has a shape and a dtype is enough. Trees
            with named tuples and classes are those of tuples and dictionaries in the file.
        dynamic_axes: a tree like ``examples`` that names the axes whose size varies, as for
            ``jit``: ``{0: "batch"}``.
        outputs: functions of the result by name, in place of the result, as for ``onnx``.
        platforms: where the file is to run, by name: ``"cpu"``, ``"cuda"``.
        vjp_order: how often the function can be differentiated in reverse after it was read.

    Returns:
        The file, which can be saved and called.

    Raises:
        ExportError: a file cannot have an operation; with its name and the way out.
        TypeError: ``fun`` is not callable, or an example is not an array.
        ValueError: a platform is not known, or ``vjp_order`` is negative.

    >>> import stretto as st, stretto.numpy as snp
    >>> file = st.export.stablehlo(lambda x: {"sine": snp.sin(x)}, snp.ones(3), vjp_order=1)
    >>> file.in_types, file.out_types
    (((ShapeDtypeStruct(shape=(3,), dtype=float32),), {}), {'sine': ShapeDtypeStruct(...)})
    >>> st.export.load(file.serialize())(snp.zeros(3))
    {'sine': Array([0., 0., 0.], dtype=float32)}
    """
    caller = "export.stablehlo"
    platforms = (platforms,) if isinstance(platforms, str) else tuple(platforms)
    if not platforms or len({*platforms}) < len(platforms) or {*platforms} - PLATFORMS.keys():
        raise ValueError(
            f"{caller}: platforms must be different ones of {[*PLATFORMS]}, got {platforms!r}"
        )
    if vjp_order < 0:
        raise ValueError(f"{caller}: vjp_order must be 0 or more, got {vjp_order}")
    traced = trace(fun, examples, dynamic_axes, outputs, caller)
    with boundary:
        ins = tree.unflatten(traced.in_structure, range(len(traced.inputs)))
        outs = tree.unflatten(traced.out_structure, range(len(traced.outputs)))
        in_tree, in_order, in_keys = node_of((ins, {}), caller)
        out_tree, out_order, out_keys = node_of(outs, caller)
        flat = FlatProgram(
            traced.name,
            traced.program,
            [w for _, w in traced.weights],
            sizes=traced.sizes,
            guards=traced.guards,
        )
        return StableHLO(
            container_of(
                flat.reordered(in_order, out_order, in_keys, out_keys),
                in_tree,
                out_tree,
                platforms,
                vjp_order,
            ),
            own_functions,
        )


class FlatProgram:
    """A program with what it captured, and which of its arguments and results have no values.

    Args:
        name: its name.
        program: the program; its last inputs are for ``arrays``.
        arrays: what it captured.
        in_avals: the types of its arguments; those of float0 are none of the program.
        out_avals: the types of its results, where they are others than those of the program.
        sizes: sizes that vary, with those that it was traced for.
        guards: what was taken to hold of them.
    """

    def __init__(
        self,
        name: str,
        program: Program,
        arrays: Sequence[np.ndarray],
        in_avals: Sequence[Aval] | None = None,
        out_avals: Sequence[Aval] | None = None,
        sizes: Mapping[SizeVariable, int] = MappingProxyType({}),
        guards: Sequence[Guard] = (),
    ) -> None:
        self.sizes, self.guards = sizes, guards
        self.name, self.program, self.arrays = name, program, arrays
        count = len(program.inputs) - len(arrays)
        self.in_avals = in_avals or [*map(aval_of, program.in_types[:count])]
        self.out_avals = out_avals or [*map(aval_of, program.out_types)]
        self.kept = [k for k, a in enumerate(self.in_avals) if a.dtype != "float0"]
        self.devices = 1
        self.splits: tuple[tuple[Split | None, ...], ...] = ((), ())

    def over(
        self, devices: int, ins: Sequence[Split | None], outs: Sequence[Split | None]
    ) -> FlatProgram:
        """Return it over so many devices, with arguments and results that lie so."""
        again = FlatProgram(
            self.name,
            self.program,
            self.arrays,
            self.in_avals,
            self.out_avals,
            self.sizes,
            self.guards,
        )
        again.devices, again.splits = devices, (tuple(ins), tuple(outs))
        return again

    def trees(self) -> tuple[Node, Node]:
        """Return the trees of flat arguments, (args, kwargs), and of flat results."""
        leaves = lambda avals: Node("tuple", (Node("leaf"),) * len(avals))
        return Node("tuple", (leaves(self.in_avals), Node("dict"))), leaves(self.out_avals)

    def reordered(
        self,
        ins: Sequence[int],
        outs: Sequence[int],
        in_keys: Mapping[int, Implementation],
        out_keys: Mapping[int, Implementation],
    ) -> FlatProgram:
        """Return it with arguments and results in another order; some are the words of keys."""
        p = self.program
        inputs = [*[p.inputs[i] for i in ins], *p.inputs[len(ins) :]]
        outputs = [p.outputs[i] for i in outs]
        program = Program(inputs, p.equations, outputs, p.name)
        in_avals = [aval_of(p.in_types[i], in_keys.get(i)) for i in ins]
        out_avals = [aval_of(p.out_types[i], out_keys.get(i)) for i in outs]
        return FlatProgram(
            self.name, program, self.arrays, in_avals, out_avals, self.sizes, self.guards
        )

    def __call__(self, *args: Any) -> list[Any]:
        """Compute the results of the arguments that there are."""
        return evaluate(self.program, [*args, *[as_value(a) for a in self.arrays]])

    def vjp(self) -> FlatProgram:
        """Return the function from arguments and cotangents to the arguments' cotangents."""
        kept = self.kept
        cotangents = [_tangent(a) for a in self.out_avals]
        own = [k for k, a in enumerate(cotangents) if a.dtype != "float0"]

        def backward(*values: Any) -> list[Any]:
            primals, cts = values[: len(kept)], iter(values[len(kept) :])
            outs, pull = vjp(self, *primals)
            filled = [next(cts) if k in own else zero_tangent(out) for k, out in enumerate(outs)]
            grads = dict(zip(kept, pull(filled), strict=True))
            results = []
            for k, aval in enumerate(self.in_avals):
                moves = k in grads and is_inexact(dtype_of(aval))
                shape: Any = tuple(map(size_text.parsed, aval.shape))
                results.append(grads[k] if moves else full(shape, False, _BOOL))
            return results

        types = [t.with_shape(t.shape) for t in self.program.in_types[: len(kept)]]
        types += [array_type(shape_of(a), dtype_of(a)) for a in cotangents if a.dtype != "float0"]
        structs = [ShapeDtypeStruct(t.shape, t.dtype) for t in types]
        traced = trace(backward, structs, None, None, "export.stablehlo", self.sizes)
        derivative = FlatProgram(
            f"vjp_{self.name}",
            traced.program,
            [w for _, w in traced.weights],
            [*self.in_avals, *cotangents],
            [_tangent(a) for a in self.in_avals],
            self.sizes,
            (*self.guards, *traced.guards),
        )
        ins, outs = self.splits
        return derivative.over(self.devices, (*ins, *outs), ins) if ins else derivative


def aval_of(type: ArrayType, key: Implementation | None = None) -> Aval:
    """Describe a type as files do; it may be that of the words of keys."""
    if key is None:
        return Aval(tuple(map(size_text.text_of, type.shape)), type.dtype.name)
    (name,) = [name for name, made in KEYS.items() if made is key]
    return Aval(tuple(map(size_text.text_of, type.shape[:-1])), name)


def shape_of(aval: Aval) -> tuple[Any, ...]:
    """Return the sizes of a type of a file; those of their words, for keys."""
    words = (KEYS[aval.dtype].size,) if aval.dtype in KEYS else ()
    return (*map(size_text.parsed, aval.shape), *words)


def _tangent(aval: Aval) -> Aval:
    """Return the type of tangents."""
    return aval if is_inexact(dtype_of(aval)) else Aval(aval.shape, "float0")


def container_of(
    flat: FlatProgram,
    in_tree: Node,
    out_tree: Node,
    platforms: tuple[str, ...],
    order: int,
    allowed: Set[str] = ALLOWED,
) -> Container:
    """Return the file of a program, for these platforms."""
    text = lower_for_file(flat.program, flat.arrays, platforms, allowed, flat.guards)
    try:
        module = pjrt.portable_artifact(text, VERSION)
    except ValueError as error:
        raise ExportError(
            f"export.stablehlo: {flat.name} has what version {VERSION} of StableHLO cannot say: "
            f"{str(error).partition(chr(10))[0]}"
        ) from None
    _WRITTEN.add(_digest(module))
    further = None
    if order:
        of_vjp = flat.vjp()
        further = container_of(of_vjp, *of_vjp.trees(), platforms, order - 1)
    sizes = any([is_size(n) for t in flat.program.in_types for n in t.shape])
    return Container(
        flat.name,
        in_tree,
        tuple(flat.in_avals),
        out_tree,
        tuple(flat.out_avals),
        platforms,
        module,
        tuple(flat.kept),
        sizes or len(platforms) > 1,
        further,
        flat.devices,
        in_splits=flat.splits[0],
        out_splits=flat.splits[1],
    )


def node_of(x: Tree, caller: str) -> tuple[Node, list[int], dict[int, Implementation]]:
    """Return a tree as files have it, and its leaves, which are numbers, in that order.

    The third says which are the words of keys, and of which implementation.
    """
    order: list[int] = []
    keys: dict[int, Implementation] = {}

    def walk(x: Tree) -> Node:
        if x is None:
            return Node("none")
        kind = x.__class__
        if kind in (tuple, list):
            return Node(kind.__name__, tuple(map(walk, x)))
        if kind is dict:
            names = sorted(x, key=str)
            _check_names(names, caller)
            return Node("dict", tuple([walk(x[n]) for n in names]), tuple(names))
        if isinstance(x, KeyArray):
            number: Any = x._words
            keys[number] = x._implementation
            x = number
        if isinstance(x, int):
            order.append(x)
            return Node("leaf")
        keyed, data = tree.flatten_one_level(x)
        children = tuple([child for _, child in keyed])
        if kind in NODES:
            known = NODES[kind]
            written = known.to_bytes(data)
            return Node("custom", tuple(map(walk, children)), (), known.name, written)
        if isinstance(x, tuple):
            return Node("tuple", tuple(map(walk, children)))
        return walk(
            {str(getattr(k, "name", getattr(k, "key", getattr(k, "idx", k)))): c for k, c in keyed}
        )

    return walk(x), order, keys


def _check_names(names: Sequence[Any], caller: str) -> None:
    for name in names:
        if not isinstance(name, str):
            raise TypeError(
                f"{caller}: dictionaries in a file have keys of text, got {name!r}: rename it"
            )


# Calling


class StableHLO:
    """A function as StableHLO, with the types and trees that it takes and gives.

    ``stablehlo`` makes one of a function, ``load`` one of a file. It is called with trees like
    those that it was made for.

    Args:
        container: what is in the file.
        read: a function from modules to their functions.
        derive: makes the reverse derivative, where the container does not have it.

    >>> import stretto as st, stretto.numpy as snp
    >>> sine = st.export.stablehlo(snp.sin, snp.ones(3))
    >>> sine(snp.zeros(3))
    Array([0., 0., 0.], dtype=float32)
    """

    def __init__(
        self,
        container: Container,
        read: Callable[[Sequence[bytes]], Sequence[Functions]],
        derive: Callable[[], StableHLO] | None = None,
    ) -> None:
        self._container, self._read, self._derive = container, read, derive
        self._functions: Functions | None = None
        self._at: dict[Any, Functions] = {}
        self._calls: dict[Any, ModuleCall] = {}
        self._vjp: StableHLO | None = None
        self._in_shapes = [*map(shape_of, container.in_avals)]
        self._out_shapes = [*map(shape_of, container.out_avals)]
        self._in_keys = [KEYS.get(a.dtype) for a in container.in_avals]
        self._out_keys = [KEYS.get(a.dtype) for a in container.out_avals]
        self._in_dtypes = [*map(dtype_of, container.in_avals)]
        self._out_dtypes = [*map(dtype_of, container.out_avals)]
        ins = [*map(_struct, self._in_shapes, self._in_dtypes, self._in_keys)]
        outs = [*map(_struct, self._out_shapes, self._out_dtypes, self._out_keys)]
        self._in_types = tree_of(container.in_tree, iter(ins))
        self._out_types = tree_of(container.out_tree, iter(outs))
        self._in_structure = tree.structure(self._in_types)
        self._order = _positions(tree.leaves(self._in_types), ins)
        self._out_order = _positions(tree.leaves(self._out_types), outs)
        self._flat = self._differentiable()

    @property
    def __name__(self) -> str:
        return self._container.name

    @property
    def platforms(self) -> tuple[str, ...]:
        """The platforms that it was made for, by name."""
        return self._container.platforms

    @property
    def vjp_order(self) -> int:
        """The number of times that it can be differentiated."""
        further = self._container.vjp
        order = 0
        while further is not None:
            order, further = order + 1, further.vjp
        return order

    @property
    def in_types(self) -> Tree:
        """The tree (args, kwargs) of the shapes and dtypes that it takes."""
        return self._in_types

    @property
    def out_types(self) -> Tree:
        """The tree of the shapes and dtypes that it gives."""
        return self._out_types

    @property
    def inputs(self) -> dict[str, ShapeDtypeStruct]:
        """Types of the arguments' arrays, by name, as ``args[0]['w']``; of keys that of words."""
        paths = zip(self._order, tree.paths_of(self._in_structure, ""), strict=True)
        names = [_of_words(_called(path), self._in_keys[k]) for k, path in paths]
        types = [ShapeDtypeStruct(self._in_shapes[k], self._in_dtypes[k]) for k in self._order]
        return dict(zip(names, types, strict=True))

    @property
    def outputs(self) -> dict[str, ShapeDtypeStruct]:
        """Types of the result's arrays, by name; of keys that of their words."""
        args, _ = self.in_types
        paths = names_of(self.out_types, args, [f"args[{n}]" for n in range(len(args))])
        order = self._out_order
        names = [_of_words(path, self._out_keys[k]) for k, path in zip(order, paths, strict=True)]
        types = [ShapeDtypeStruct(self._out_shapes[k], self._out_dtypes[k]) for k in order]
        return dict(zip(names, types, strict=True))

    @property
    def module(self) -> bytes:
        """Its module as a portable artifact, which compilers of StableHLO such as IREE's take."""
        return self._container.module

    @property
    def text(self) -> str:
        """Its module in StableHLO."""
        read = artifacts.text_of_artifact if self._read is own_functions else child.text_of
        return read(self._container.module)

    def serialize(self) -> bytes:
        """Write it as bytes.

        Returns:
            What ``jax.export.deserialize`` and ``load`` read.
        """
        return to_bytes(self._container)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it into a file.

        Args:
            path: where.

        Raises:
            OSError: the file cannot be written.
        """
        content = self.serialize()
        write_whole(path, lambda file: file.write(content), "save")

    def __repr__(self) -> str:
        taken, given = [
            ", ".join([f"{a.dtype}[{','.join(a.shape)}]" for a in avals])
            for avals in (self._container.in_avals, self._container.out_avals)
        ]
        where = ", ".join(self.platforms)
        return f"StableHLO({self.__name__}: ({taken}) -> ({given}), for {where})"

    def __call__(self, *args: Any, **kwargs: Any) -> Tree:
        """Call the function.

        Args:
            *args: trees of arrays as it was made for; the sizes of axes that vary may be others.
            **kwargs: the same, by name.

        Returns:
            Its result.

        Raises:
            TypeError: the trees or dtypes are others than those that it was made for.
            ValueError: a shape is; or it was made for another platform than that of the arrays.
        """
        with boundary:
            plain = _plain((args, kwargs))
            leaves, structure = tree.flatten(plain)
            if structure != self._in_structure:
                raise TypeError(
                    f"{self.__name__} was exported for arguments of another structure; expected "
                    f"and got part at {parting(self._in_structure, structure, '(args, kwargs)')}"
                )
            paths = tree.paths_of(structure, "")
            named = dict(zip(self._order, zip(leaves, paths, strict=True), strict=True))
            outs = self._results(named)
            results = [
                out if key is None else KeyArray(out, key)
                for out, key in zip(outs, self._out_keys, strict=True)
            ]
            ordered = [results[k] for k in self._out_order]
            return tree.unflatten(tree.structure(self._out_types), ordered)

    def flat(self, leaves: Sequence[Any]) -> list[Any]:
        """Return the result's arrays for the arguments' arrays, as ``outputs`` and ``inputs`` list.

        Args:
            leaves: an array for each of ``inputs``.

        Returns:
            An array for each of ``outputs``.

        Raises:
            TypeError: an array has another dtype.
            ValueError: a shape is another; or it was made for another platform.
        """
        with boundary:
            paths = tree.paths_of(self._in_structure, "")
            named: dict[int, Any] = {}
            for k, x, path in zip(self._order, leaves, paths, strict=True):
                key = self._in_keys[k]
                named[k] = (x if key is None else _Leaf(KeyArray(x, key))), path
            outs = self._results(named)
            return [outs[k] for k in self._out_order]

    def _results(self, named: Mapping[int, tuple[Any, str]]) -> list[Any]:
        """Return the results for the arguments, by number, each with its path; words for keys."""
        values = [self._argument(k, *named[k]) for k in range(len(named))]
        outs = self._flat(*[v for v in values if v is not None])
        return [
            np.zeros(out.shape, float0) if dtype == float0 else out
            for out, dtype in zip(outs, self._out_dtypes, strict=True)
        ]

    def flattened(self) -> StableHLO:
        """Give the function with flat arguments and results.

        Returns:
            The function, without trees.
        """
        leaves = lambda avals: Node("tuple", (Node("leaf"),) * len(avals))
        c = self._container
        trees = Node("tuple", (leaves(c.in_avals), Node("dict"))), leaves(c.out_avals)
        flat = c._replace(in_tree=trees[0], out_tree=trees[1])
        return StableHLO(flat, self._read, self._derive)

    def _argument(self, k: int, x: ArrayLike | _Leaf, path: str) -> Value | None:
        """Return an argument as a value of its dtype; None where there is none to pass."""
        dtype = self._in_dtypes[k]
        if dtype == float0:
            return None
        key = self._in_keys[k]
        has = x.keys._implementation if isinstance(x, _Leaf) else None
        if has is not key:
            names = [f"keys of {made.name}" if made else "an array" for made in (key, has)]
            raise TypeError(f"{self.__name__}: {_called(path)} must be {names[0]}, got {names[1]}")
        value = as_value(x.keys._words if isinstance(x, _Leaf) else x, self.__name__, _called(path))
        gives_way = value.type.weak_type and np.can_cast(value.dtype, dtype, "same_kind")
        if value.type.dtype != dtype and not gives_way:
            raise TypeError(
                f"{self.__name__}: {_called(path)} must be of dtype {dtype.name}, as exported, got "
                f"{value.type}: convert it, x.astype({dtype.name!r})"
            )
        return convert(value, dtype, False)

    def _differentiable(self) -> Callable[..., Any]:
        """Return the function of values; with its reverse derivative if the file has one."""
        if not self.has_derivative:
            return self._bound

        def fun(*values: Any) -> tuple[Any, ...]:
            return self._bound(*values)

        fun.__name__ = self.__name__
        flat: Any = custom_vjp(fun)

        def forward(*values: Any) -> tuple[Any, Any]:
            return flat(*values), values

        def backward(values: Sequence[Any], cts: Sequence[Any]) -> tuple[Any, ...]:
            further = self._derivative()
            moving = [c for c, d in zip(cts, self._out_dtypes, strict=True) if is_inexact(d)]
            grads = further._flat(*values, *moving)
            present = [g for g, d in zip(grads, self._in_dtypes, strict=True) if d != float0]
            return tuple(
                [
                    g if is_inexact(v.dtype) else zero_tangent(v)
                    for g, v in zip(present, values, strict=True)
                ]
            )

        flat.defvjp(forward, backward)
        return flat

    @property
    def has_derivative(self) -> bool:
        """Whether it can be differentiated, in reverse."""
        return self._derive is not None or self._container.vjp is not None

    def _derivative(self) -> StableHLO:
        if self._vjp is None:
            if self._derive is not None:
                self._vjp = self._derive()
            else:
                assert self._container.vjp is not None
                self._vjp = StableHLO(self._container.vjp, self._read)
        return self._vjp

    def _module(self) -> Functions:
        if self._functions is None:
            (self._functions,) = self._read([self._container.module])
        return self._functions

    def _index(self) -> Sequence[str]:
        """Return the type of the platform's number, in the module, if it is told which it is."""
        first = self._module().inputs[:1]
        return first if len(self.platforms) > 1 and {*first} & _INDICES.keys() else ()

    def _check_module(self) -> None:
        """Hold the module to the types that the file says."""
        c, functions = self._container, self._module()
        index = self._index()
        ins = [_general(self._in_shapes[k], self._in_dtypes[k]) for k in c.kept]
        outs = [*map(_general, self._out_shapes, self._out_dtypes)]
        if [*functions.inputs] != [*index, *ins] or [*functions.outputs] != outs:
            raise Damaged(
                f"its module {self.__name__} takes ({', '.join(functions.inputs)}) and gives "
                f"({', '.join(functions.outputs)}), and the file says otherwise"
            )

    def _bound(self, *values: Any) -> tuple[Any, ...]:
        """Call the module."""
        c = self._container
        own = [k for k, d in enumerate(self._in_dtypes) if d != float0]
        given = dict(zip(own, values, strict=True))
        shapes = [given[k].type.shape for k in own]
        names = [f"argument {k}" for k in own]
        known = size_text.solved([self._in_shapes[k] for k in own], shapes, names)
        types = []
        operands = []
        for k in c.kept:
            dtype = self._in_dtypes[k]
            type = array_type(size_text.at(self._in_shapes[k], known), _held(dtype))
            types.append(type)
            operands.append(given[k] if k in given else full(type.shape, False, _BOOL))
        outs = [
            array_type(size_text.at(shape, known), _held(dtype))
            for shape, dtype in zip(self._out_shapes, self._out_dtypes, strict=True)
        ]
        varies = any([is_size(n) for t in (*types, *outs) for n in t.shape])
        key = (*types, *outs)
        call = self._calls.get(key)
        if call is not None:
            return call(*operands)
        functions = self._module() if varies else self._for(types, outs)
        call = self._calls[key] = ModuleCall(
            self.__name__,
            functions.text,
            functions.main,
            functions.targets,
            functions.inputs,
            functions.outputs,
            tuple(types),
            tuple(outs),
            c.platforms,
            _INDICES.get("".join(self._index())),
            "platform" in c.unchecked,
            "stablehlo.while" in functions.text,
        )
        return call(*operands)

    def _for(self, types: Sequence[ArrayType], outs: Sequence[ArrayType]) -> Functions:
        """Return the module for arguments and results of these types."""
        functions = self._module()
        inputs = [*self._index(), *map(tensor_type, types)]
        outputs = [*map(tensor_type, outs)]
        if [*functions.inputs] == inputs and [*functions.outputs] == outputs:
            return functions
        key = tuple(inputs), tuple(outputs)
        if key not in self._at:
            fits = len(functions.inputs) == len(inputs) and len(functions.outputs) == len(outputs)
            if not fits or not self._container.symbolic:
                raise Damaged(
                    f"{self.__name__}: its module has other arguments or results than the file says"
                )
            at = artifacts.functions_at if self._read is own_functions else child.functions_at
            try:
                self._at[key] = at(functions, inputs, outputs)
            except ValueError as error:
                raise ValueError(
                    f"{self.__name__} cannot be called with arguments of these shapes: "
                    f"{_problem(str(error))}"
                ) from None
        return self._at[key]


def _problem(words: str) -> str:
    """Return what the compiler found wrong, without where it did."""
    found = re.search(r"error: (.*)", words)
    return found[1] if found else words


def _held(dtype: np.dtype) -> np.dtype:
    """Return the dtype that stands for one in modules."""
    return _BOOL if dtype == float0 else dtype


def _general(shape: Sequence[Dimension], dtype: np.dtype) -> str:
    """Return the type in a module, where sizes that vary have no name."""
    sizes = "".join(["?x" if is_size(n) else f"{n}x" for n in shape])
    return f"tensor<{sizes}{element_type(_held(dtype))}>"


def _called(path: str) -> str:
    """Return what an argument at a path of (args, kwargs) is called."""
    kind, rest = path[:3], path[3:]
    return f"args{rest}" if kind == "[0]" else f"kwargs{rest}"


def _of_words(name: str, key: Implementation | None) -> str:
    """Return what an array is called; that of the words of keys, for keys."""
    return name if key is None else f"{name}.words"


def _struct(shape: Sequence[Any], dtype: np.dtype, key: Implementation | None) -> ShapeDtypeStruct:
    """Return the description of an argument or a result."""
    if key is None:
        return ShapeDtypeStruct(tuple(shape), dtype)
    return ShapeDtypeStruct(tuple(shape[:-1]), KeyDtype(key))


def _positions(leaves: Sequence[Any], among: Sequence[Any]) -> list[int]:
    """Return where each leaf is among others, by identity."""
    numbers = {id(x): k for k, x in enumerate(among)}
    return [numbers[id(leaf)] for leaf in leaves]


class _Leaf:
    """Holds keys in a tree, in which they are a leaf then."""

    def __init__(self, keys: KeyArray) -> None:
        self.keys = keys


def _plain(x: Tree) -> Tree:
    """Return a tree with tuples for named tuples and dictionaries for other classes of nodes."""
    kind = x.__class__
    if x is None:
        return None
    if kind is KeyArray:
        return _Leaf(x)
    if kind in (tuple, list):
        return kind(map(_plain, x))
    if kind is dict:
        return {k: _plain(v) for k, v in x.items()}
    leaves = tree.leaves(x)
    if len(leaves) == 1 and leaves[0] is x:
        return x
    keyed, data = tree.flatten_one_level(x)
    children = [_plain(child) for _, child in keyed]
    if kind in NODES:
        return NODES[kind].build(data, children)
    if isinstance(x, tuple):
        return tuple(children)
    return {
        str(getattr(k, "name", getattr(k, "key", getattr(k, "idx", k)))): c
        for (k, _), c in zip(keyed, children, strict=True)
    }


# Reading


_WRITTEN: set[bytes] = set()
"""The digests of the modules that this process has written, which need no child to be read."""


def _digest(module: bytes) -> bytes:
    return hashlib.blake2b(module).digest()


def own_functions(modules: Sequence[bytes]) -> list[Functions]:
    """Read modules that this process has written."""
    return [*map(artifacts.functions_of_artifact, modules)]


def of_bytes(content: bytes, where: str) -> StableHLO:
    """Read a function from the bytes of a file.

    Args:
        content: the bytes.
        where: what they are called in messages.

    Returns:
        The function.

    Raises:
        ValueError: they are damaged, of another version, or have in them what is refused, by name.
    """
    try:
        container = from_bytes(content)
        orders = [*_orders(container)]
        for one in orders:
            _check(one)
        modules = [one.module for one in orders]
        if _WRITTEN.issuperset(map(_digest, modules)):
            read = own_functions
        else:
            known = dict(zip(modules, child.functions_of(modules), strict=True))
            read = lambda modules: [known[m] for m in modules]
        loaded = StableHLO(container, read)
        further: StableHLO | None = loaded
        while further is not None:
            further._check_module()
            further = further._derivative() if further._container.vjp else None
        return loaded
    except (Damaged, RecursionError) as error:
        raise Damaged(f"{where}: {error}") from None


def _orders(container: Container | None) -> Iterator[Container]:
    while container is not None:
        yield container
        container = container.vjp


def _check(container: Container) -> None:
    """Refuse what cannot be called here."""
    for split in (*container.in_splits, *container.out_splits):
        if split is not None and split.devices != container.devices:
            raise Damaged(
                f"{container.name} has arrays over {split.devices} devices, and is for "
                f"{container.devices}"
            )
    if container.ordered:
        raise Damaged(
            f"{container.name} has effects in an order, {', '.join(container.ordered)}: export "
            f"what comes before and after them"
        )
    if not container.platforms:
        raise Damaged(f"{container.name} names no platform that it was exported for")
