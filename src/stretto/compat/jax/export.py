"""``jax.export``: functions in files, by JAX's names and in JAX's words.

An ``Exported`` is a file of ``stretto.export`` with flat arguments and results, and beside it the
trees of JAX's registry. Symbolic shapes are Stretto's sizes that vary.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import stretto
from stretto._engine.api.graph import ShapeDtypeStruct
from stretto._engine.api.jit.jit import Jitted
from stretto._engine.core import tree as own_trees
from stretto._engine.core.config import config as ours
from stretto._engine.core.errors import ExportError
from stretto._engine.core.interpreter import Tracer, Value, type_of
from stretto._engine.core.rewriting import live
from stretto._engine.core.shardings import NamedSharding
from stretto._engine.core.size_guards import known_sizes, varying_sizes
from stretto._engine.core.sizes import Size, SizeVariable, is_size, size_variable
from stretto._engine.core.types import ArrayType, float0
from stretto._engine.lowering.portable import ALLOWED, PLATFORMS
from stretto._engine.ops.sharding_constraint import with_sharding_constraint
from stretto._engine.passes.simplify import simplify
from stretto._engine.xla.device import default_backend
from stretto._engine.xla.sharded import sharding_if_any
from stretto.compat.jax import tree_util
from stretto.compat.jax.avals import ShapedArray
from stretto.compat.jax.calls import jit
from stretto.compat.jax.export_shapes import check_shapes, check_solvable
from stretto.compat.jax.settings import config as jax_config
from stretto.export.container import KEYS, NODES, Container, Node, NodeClass, dtype_of, tree_of
from stretto.export.size_text import parsed
from stretto.export.splits import Split, devices_of, sharding_of, split_of, without_constraints
from stretto.export.stablehlo_artifact import (
    FlatProgram,
    StableHLO,
    container_of,
    of_bytes,
    own_functions,
)
from stretto.files.names import Damaged
from stretto.random.key_arrays import KeyArray, KeyDtype

__all__ = ["DisabledSafetyCheck", "Exported", "SymbolicScope", "default_export_platform",
           "deserialize", "export", "is_symbolic_dim", "register_namedtuple_serialization",
           "register_pytree_node_serialization", "shape_and_dtype_jax_array",
           "symbolic_args_specs", "symbolic_shape"]  # fmt: skip

minimum_supported_calling_convention_version = 9
maximum_supported_calling_convention_version = 10
_CONVENTION = "jax_export_calling_convention_version"


@dataclasses.dataclass(frozen=True)
class DisabledSafetyCheck:
    """A check that is left out.

    Args:
        _impl: what it is called in files.
    """

    _impl: str

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """Make that which lets a function run on another platform.

        Returns:
            The check.
        """
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """Make that which lets a function have a custom call.

        Args:
            target_name: the name of the call.

        Returns:
            The check.
        """
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """Give the custom call that it lets pass.

        Returns:
            Its name; None for another check.
        """
        kind, _, name = self._impl.partition(":")
        return name if kind == "custom_call" else None

    def __str__(self) -> str:
        return self._impl

    __repr__ = __str__


def default_export_platform() -> str:
    """Name the platform that functions are exported for.

    Returns:
        The name, as files have it.
    """
    here = default_backend()
    return "cuda" if here == "gpu" else here


def shape_and_dtype_jax_array(a: Any) -> tuple[Sequence[Any], Any]:
    """Give shape and dtype of an array.

    Args:
        a: the array, or its description.

    Returns:
        Both.
    """
    return a.shape, a.dtype


# Trees in files


def register_pytree_node_serialization(
    nodetype: type,
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[[Any, Sequence[Any]], Any] | None = None,
) -> type:
    """Say how nodes of a class are written into files.

    Args:
        nodetype: the class, which is a node of trees.
        serialized_name: what it is called in files.
        serialize_auxdata: a function from what a node has beside children to bytes.
        deserialize_auxdata: the function back.
        from_children: makes a node of both; by default as the class was registered to.

    Returns:
        The class.

    Raises:
        ValueError: the class or the name was registered already, or the class is no node.
    """
    if nodetype in NODES:
        raise ValueError(
            f"Duplicate serialization registration for type `{nodetype}`. Previous registration "
            f"was with serialized_name `{NODES[nodetype].name}`."
        )
    for known, entry in NODES.items():
        if entry.name == serialized_name:
            raise ValueError(
                f"Duplicate serialization registration for serialized_name `{serialized_name}`. "
                f"Previous registration was for type `{known}`."
            )
    if from_children is None:
        if nodetype not in tree_util.ENTRIES:
            raise ValueError(
                f"If `from_children` is not present, you must call first "
                f"`jax.tree_util.register_pytree_node` for `{nodetype}`"
            )
        from_children = tree_util.ENTRIES[nodetype].from_iter
    NODES[nodetype] = NodeClass(
        serialized_name, serialize_auxdata, deserialize_auxdata, from_children
    )
    return nodetype


def register_namedtuple_serialization(nodetype: type, *, serialized_name: str) -> type:
    """Say how named tuples of a class are written into files.

    Args:
        nodetype: the class.
        serialized_name: what it is called in files.

    Returns:
        The class.

    Raises:
        ValueError: it is no class of named tuples.
    """
    fields = getattr(nodetype, "_fields", None)
    if not issubclass(nodetype, tuple) or fields is None:
        raise ValueError(
            "Use `jax.export.register_pytree_node_serialization` for types other than "
            "`collections.namedtuple`."
        )
    return register_pytree_node_serialization(
        nodetype,
        serialized_name=serialized_name,
        serialize_auxdata=lambda _: json.dumps(fields).encode(),
        deserialize_auxdata=json.loads,
        from_children=lambda names, xs: nodetype(**dict(zip(names, xs, strict=True))),
    )


def _node(definition: Any) -> Node:
    """Return a structure of JAX's registry as files have it."""
    data, children = definition.node_data(), tuple(map(_node, definition.children()))
    if data is None:
        return Node("leaf")
    kind, about = data
    if kind is type(None):
        return Node("none")
    if kind in (tuple, list):
        return Node(kind.__name__, children)
    if kind is dict:
        for name in about:
            if not isinstance(name, str):
                raise TypeError(
                    f"Serialization is supported only for dictionaries with string keys. Found "
                    f"key {name} of type {type(name)}."
                )
        return Node("dict", children, tuple(about))
    known = NODES.get(kind)
    if known is None:
        raise ValueError(
            f"Cannot serialize PyTreeDef containing an unregistered type `{kind}`. Use "
            f"`export.register_pytree_node_serialization` or "
            f"`export.register_namedtuple_serialization`."
        )
    written = known.to_bytes(about)
    if not isinstance(written, (bytes, bytearray)):
        raise ValueError(
            f"The custom serialization function for `node_type` must return a `bytes` object. It "
            f"returned a {type(written)}."
        )
    return Node("custom", children, (), known.name, bytes(written))


# Exported functions


class Exported:
    """A function in StableHLO.

    Args:
        file: the function of flat arguments, as a file.
        in_tree: the structure of (args, kwargs).
        out_tree: that of the result.
    """

    def __init__(self, file: StableHLO, in_tree: Any, out_tree: Any) -> None:
        self._file, self.in_tree, self.out_tree = file, in_tree, out_tree
        self._own = file._container
        self._derivative: Exported | None = None

    ordered_effects: tuple[Any, ...] = ()
    unordered_effects: tuple[Any, ...] = ()

    @property
    def nr_devices(self) -> int:
        """The number of devices that it is for."""
        return self._own.devices

    @property
    def fun_name(self) -> str:
        """The name of the function."""
        return self._own.name

    @property
    def in_avals(self) -> tuple[ShapedArray, ...]:
        """The types of the arguments."""
        return tuple([_aval(a) for a in self._own.in_avals])

    @property
    def out_avals(self) -> tuple[ShapedArray, ...]:
        """The types of the results."""
        return tuple([_aval(a) for a in self._own.out_avals])

    @property
    def platforms(self) -> tuple[str, ...]:
        """The platforms that it was exported for."""
        return self._own.platforms

    @property
    def disabled_safety_checks(self) -> tuple[DisabledSafetyCheck, ...]:
        """The checks that were left out."""
        return tuple(map(DisabledSafetyCheck, self._own.unchecked))

    @property
    def mlir_module_serialized(self) -> bytes:
        """The portable artifact."""
        return self._own.module

    @property
    def calling_convention_version(self) -> int:
        """The version of how ``main`` is called."""
        return self._own.convention

    @property
    def module_kept_var_idx(self) -> tuple[int, ...]:
        """The numbers of the arguments that ``main`` takes."""
        return self._own.kept

    @property
    def uses_global_constants(self) -> bool:
        """Whether shapes are symbolic, or the platform is an argument."""
        return self._own.symbolic

    @property
    def in_shardings_hlo(self) -> tuple[None, ...]:
        """The shardings of the arguments as XLA has them: none, where none is specified.

        Raises ``NotImplementedError`` where one is.
        """
        return _unspecified("in_shardings", self._own.in_splits, self._own.in_avals)

    @property
    def out_shardings_hlo(self) -> tuple[None, ...]:
        """The shardings of the results as XLA has them: none, where none is specified.

        Raises ``NotImplementedError`` where one is.
        """
        return _unspecified("out_shardings", self._own.out_splits, self._own.out_avals)

    def in_shardings_jax(self, mesh: Any) -> tuple[NamedSharding | None, ...]:
        """Give the shardings of the arguments.

        Args:
            mesh: the devices.

        Returns:
            One for each; None where none is specified.
        """
        return _on(self._own.in_splits or (None,) * len(self._own.in_avals), mesh.device_list)

    def out_shardings_jax(self, mesh: Any) -> tuple[NamedSharding | None, ...]:
        """Give the shardings of the results.

        Args:
            mesh: the devices.

        Returns:
            One for each; None where none is specified.
        """
        return _on(self._own.out_splits or (None,) * len(self._own.out_avals), mesh.device_list)

    def mlir_module(self) -> str:
        """Write the module as text.

        Returns:
            The text, in StableHLO.
        """
        return self._file.text

    def has_vjp(self) -> bool:
        """Say whether there is a reverse derivative.

        Returns:
            Whether there is one.
        """
        return self._file.has_derivative

    def vjp(self) -> Exported:
        """Give the reverse derivative: from arguments and cotangents to cotangents.

        Returns:
            The function.

        Raises:
            ValueError: there is none.
        """
        if not self.has_vjp():
            raise ValueError("No VJP is available")
        if self._derivative is None:
            self._derivative = _of_flat(self._file._derivative())
        return self._derivative

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """Write it as a file.

        Args:
            vjp_order: how many orders of derivatives to have in it.

        Returns:
            The bytes.

        Raises:
            ValueError: there are not as many, or a tree has nodes that are not registered.
        """
        return bytearray(StableHLO(self._written(vjp_order), own_functions).serialize())

    def _written(self, order: int) -> Container:
        if order and not self.has_vjp():
            raise ValueError(
                "serialization of an Exported that does not have vjps of high-enough order"
            )
        further = self.vjp()._written(order - 1) if order else None
        trees = {"in_tree": _node(self.in_tree), "out_tree": _node(self.out_tree)}
        return self._own._replace(vjp=further, **trees)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function.

        Args:
            *args: trees like those that it was exported for.
            **kwargs: the same, by name.

        Returns:
            Its result.

        Raises:
            ValueError: trees, shapes or dtypes are others.
        """
        leaves, structure = tree_util.flatten((args, kwargs))
        if structure != self.in_tree:
            raise ValueError(
                f"The invocation args and kwargs must have the same pytree structure as when the "
                f"function '{self.fun_name}' was exported, but they have the following structural "
                f"differences:\n{structure} in the invocation and {self.in_tree} when exported"
            )
        here = default_export_platform()
        if here not in self.platforms and "platform" not in self._own.unchecked:
            raise ValueError(
                f"Function '{self.fun_name}' was exported for platforms '{self.platforms}' but it "
                f"is used on '{(here,)}'."
            )
        self._check(leaves)
        return self.out_tree.unflatten(self._called(leaves))

    def _called(self, leaves: Sequence[Any]) -> Sequence[Any]:
        """Return the results of a call: on the devices of the arguments, as the file splits them.

        Inside of another function they are what that says, or the mesh in use, and the compiler
        decides how arrays lie where there is none.
        """
        count = self.nr_devices
        if count == 1:
            return self._file(*leaves)
        devices: Sequence[Any] = ()
        if ours.mesh is not None:
            devices = ours.mesh.device_list
        elif not any([isinstance(x, Tracer) for x in leaves]):
            over = [sharding_if_any(x) for x in leaves if isinstance(x, Value)]
            devices = max([s.device_list for s in over if s is not None], key=len, default=(None,))
        if devices and len(devices) != count:
            raise ValueError(
                f"Function '{self.fun_name}' was exported for {count} devices and is called in a "
                f"context with {len(devices)} devices, which is not allowed: put an argument on "
                f"{count}, jax.device_put(x, NamedSharding(mesh, P()))"
            )
        if not devices:
            return self._file(*leaves)
        ins = _on(self._own.in_splits or (None,) * len(leaves), devices)
        outs = _on(self._own.out_splits or (None,) * len(self._own.out_avals), devices)
        lie = lambda x, s: x if s is None else with_sharding_constraint(x, s)

        def on_devices(*xs: Any) -> list[Any]:
            results = self._file(*map(lie, xs, ins))
            return [lie(x, s) for x, s in zip(results, outs, strict=True)]

        if any([isinstance(x, Tracer) for x in leaves]):
            return on_devices(*leaves)
        whole = sharding_of(Split((("devices", count),), ()), devices)
        return stretto.jit(on_devices)(*[_over(x, whole) for x in leaves])

    def _check(self, leaves: Sequence[Any]) -> None:
        """Refuse arguments of other types, in JAX's words."""
        paths = _paths(self.in_tree, self.in_avals)
        shapes: list[Any] = []
        for path, expected, x in zip(paths, self.in_avals, leaves, strict=True):
            if expected.dtype == float0:
                shapes.append(np.shape(x))
                continue
            got = x if isinstance(x, KeyArray) else type_of(x)
            if len(got.shape) != len(expected.shape):
                raise ValueError(
                    f"Rank mismatch for {path}: expected {expected.shape} and called with "
                    f"{got.shape}"
                )
            if got.dtype != expected.dtype:
                raise ValueError(
                    f"Dtype mismatch for {path}: expected {expected.dtype} and called with "
                    f"{got.dtype}"
                )
            for axis, (wanted, n) in enumerate(zip(expected.shape, got.shape, strict=True)):
                if not is_size(wanted) and wanted != n:
                    raise ValueError(
                        f"Shape mismatch for {path}.shape[{axis}] (expected same constant): "
                        f"expected {expected.shape} and called with {got.shape}"
                    )
            shapes.append(got.shape)
        check_shapes(paths, [a.shape for a in self.in_avals], shapes)

    def __str__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, ...)"

    __repr__ = __str__


def _paths(definition: Any, avals: Sequence[ShapedArray]) -> list[str]:
    """Return what the leaves of (args, kwargs), of these types, are called."""
    described = definition.unflatten([ShapeDtypeStruct(a.shape, a.dtype) for a in avals])
    named = []
    for path, _ in tree_util.flatten_with_path(described)[0]:
        root = "args" if getattr(path[0], "idx", 0) == 0 else "kwargs"
        named.append(root + tree_util.keystr(path[1:]))
    return named


def _unspecified(name: str, splits: Sequence[Any], avals: Sequence[Any]) -> tuple[None, ...]:
    if any(splits):
        raise NotImplementedError(
            f"jax.export.Exported.{name}_hlo: XLA's objects for shardings are not in Stretto: "
            f"{name}_jax(mesh) has the shardings over a mesh"
        )
    return (None,) * len(avals)


def _on(splits: Sequence[Split | None], devices: Any) -> tuple[NamedSharding | None, ...]:
    """Return shardings over devices."""
    return tuple([None if s is None else sharding_of(s, devices) for s in splits])


def _over(x: Any, whole: NamedSharding) -> Any:
    """Return an array that is on the devices: the whole on each if it is on others."""
    there = sharding_if_any(x) if isinstance(x, Value) else None
    if there is not None and {*there.device_list} == whole.device_set:
        return x
    return stretto.device_put(x, whole)


def _aval(aval: Any) -> ShapedArray:
    return ShapedArray(tuple(map(parsed, aval.shape)), _dtype(aval))


def _dtype(aval: Any) -> Any:
    key = KEYS.get(aval.dtype)
    return dtype_of(aval) if key is None else KeyDtype(key)


def _of_flat(file: StableHLO) -> Exported:
    """Return a function whose arguments and results are flat."""
    count = len(file._container.in_avals)
    in_tree = tree_util.structure(((0,) * count, {}))
    return Exported(file, in_tree, tree_util.structure((0,) * len(file._container.out_avals)))


def export(
    fun_jit: Callable[..., Any],
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
    _override_lowering_rules: Any = None,
) -> Callable[..., Exported]:
    """Make a function of arguments, or of their types, that exports the function for them.

    Args:
        fun_jit: the function, which ``jax.jit`` gave.
        platforms: the platforms that it is for; that of this process by default.
        disabled_checks: the checks to leave out.

    Returns:
        The function that exports.

    Raises:
        ValueError: the function is not jitted, or a platform is not known.
        NotImplementedError: rules of lowering are given.
    """
    if _override_lowering_rules:
        raise NotImplementedError("jax.export.export: rules that write MLIR are not in Stretto")
    names = (default_export_platform(),) if platforms is None else tuple(platforms)
    unknown = {*names} - PLATFORMS.keys()
    if unknown or not names:
        raise ValueError(f"platforms must be some of {[*PLATFORMS]}, got {platforms!r}")
    fun: Any = fun_jit
    if not isinstance(fun, Jitted) and not hasattr(fun, "trace"):
        if not str(getattr(fun, "__module__", "")).startswith(("stretto", "numpy")):
            raise ValueError(
                f"Function to be exported must be the result of `jit` but is: {fun_jit}"
            )
        fun = jit(fun)  # JAX's own functions are jitted
    checks = tuple([check._impl for check in disabled_checks])

    def do_export(*args: Any, **kwargs: Any) -> Exported:
        convention = _convention()
        with varying_sizes(), known_sizes(None):
            traced = fun.trace(*args, **kwargs)
        entry = traced._entry
        if entry.captured and entry.has_tracers:
            raise ValueError("jax.export.export: the function uses a value that is being traced")
        found: set[int] = set()
        program = without_constraints(live(entry.program), found)
        if not any([is_size(n) for t in program.in_types for n in t.shape]):
            program = simplify(program)
        in_types = program.in_types[: len(program.inputs) - len(entry.captured)]
        ins, in_keys, in_tree = _places(traced.in_tree, in_types)
        outs, out_keys, out_tree = _places(traced.out_tree, program.out_types)
        arrays = [x.to_host() for x in entry.captured]
        flat = FlatProgram(traced.fun_name, program, arrays)
        flat = flat.reordered(ins, outs, in_keys, out_keys)
        in_splits, out_splits = [
            tuple([split_of(there[k]) if there else None for k in order])
            for there, order in ((entry.ins, ins), (entry.outs, outs))
        ]
        count = devices_of((*in_splits, *out_splits), found)
        if count > 1 or any(in_splits) or any(out_splits):
            flat = flat.over(count, in_splits, out_splits)
        avals = [*map(_aval, flat.in_avals)]
        check_solvable(_paths(in_tree, avals), [aval.shape for aval in avals])
        return Exported(_lazy(flat, names, checks, convention), in_tree, out_tree)

    return do_export


def _convention() -> int:
    """Return the version of how ``main`` is called that is set."""
    version = jax_config.read(_CONVENTION)
    least, most = (
        minimum_supported_calling_convention_version,
        maximum_supported_calling_convention_version,
    )
    if not least <= version <= most:
        raise ValueError(
            f"The requested export calling convention version {version} is outside the range of "
            f"supported versions [{least}..{most}]"
        )
    return version


def _places(structure: Any, types: Sequence[ArrayType]) -> tuple[list[int], dict[int, Any], Any]:
    """Return the order of leaves in JAX's tree, which are the words of keys, and that tree."""
    own = [ShapeDtypeStruct(t.shape, t.dtype) for t in types]
    numbers = {id(x): k for k, x in enumerate(own)}
    leaves, definition = tree_util.flatten(own_trees.unflatten(structure, own))
    order, keys = [], {}
    for leaf in leaves:
        words: Any = leaf._words if isinstance(leaf, KeyArray) else leaf
        order.append(numbers[id(words)])
        if isinstance(leaf, KeyArray):
            keys[order[-1]] = leaf._implementation
    return order, keys, definition


def _lazy(
    flat: FlatProgram, platforms: tuple[str, ...], checks: tuple[str, ...], convention: int
) -> StableHLO:
    """Return the file of a program, whose derivatives are made when they are asked for."""
    allowed = {c.partition(":")[2] for c in checks} | ALLOWED
    try:
        container = container_of(flat, *flat.trees(), platforms, 0, allowed)
    except ExportError as error:
        raise ValueError(f"Cannot serialize {flat.name}: {error}") from error
    container = container._replace(unchecked=checks, convention=convention)
    derive = lambda: _lazy(flat.vjp(), platforms, checks, convention)
    return StableHLO(container, own_functions, derive)


def deserialize(blob: bytes | bytearray) -> Exported:
    """Read an exported function.

    Args:
        blob: what ``serialize`` gave.

    Returns:
        The function.

    Raises:
        ValueError: it is damaged, or has in it what is refused.
    """
    file = of_bytes(bytes(blob), "jax.export.deserialize")
    own = file._container
    avals = [ShapeDtypeStruct(aval.shape, aval.dtype) for aval in map(_aval, own.in_avals)]
    in_tree = tree_util.structure(tree_of(own.in_tree, iter(avals)))
    outs = [ShapeDtypeStruct(aval.shape, aval.dtype) for aval in map(_aval, own.out_avals)]
    out_tree = tree_util.structure(tree_of(own.out_tree, iter(outs)))
    return Exported(file.flattened(), in_tree, out_tree)


# Symbolic shapes


class SymbolicScope:
    """The constraints that the variables of symbolic shapes keep.

    Args:
        constraints_str: comparisons of a variable with an integer, such as ``"b >= 2"``.

    Raises:
        NotImplementedError: a constraint is another one.
    """

    def __init__(self, constraints_str: Sequence[str] = ()) -> None:
        self._bounds = _bounds(constraints_str)


_CONSTRAINT = re.compile(r"\s*([A-Za-z_]\w*)\s*(>=|<=|==)\s*(\d+)\s*")


def _bounds(constraints: Sequence[str]) -> dict[str, tuple[int, float]]:
    bounds: dict[str, tuple[int, float]] = {}
    for text in constraints:
        found = _CONSTRAINT.fullmatch(text)
        if found is None or found[2] == "==":
            raise NotImplementedError(
                f"jax.export.symbolic_shape: the constraint {text!r} is not in Stretto, where a "
                f"variable has bounds: 'b >= 2', 'b <= 100'"
            )
        least, most = bounds.get(found[1], (1, float("inf")))
        n = int(found[3])
        bounds[found[1]] = (max(least, n), most) if found[2] == ">=" else (least, min(most, n))
    return bounds


def is_symbolic_dim(p: Any) -> bool:
    """Say whether a size is symbolic.

    Args:
        p: the size.

    Returns:
        Whether it is.
    """
    return is_size(p)


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[Any] | None = None,
) -> tuple[Any, ...]:
    """Make a shape with symbolic sizes.

    Args:
        shape_spec: the sizes: ``"b, 2*b, 4"``; ``_`` and ``...`` stand for what ``like`` has.
        constraints: bounds of variables, ``"b >= 2"``.
        scope: the scope whose bounds hold.
        like: a shape to take sizes from.

    Returns:
        The shape.

    Raises:
        ValueError: the text is no shape.
        NotImplementedError: a constraint is no bound.
    """
    bounds = {**(scope._bounds if scope else {}), **_bounds(constraints)}
    text = "..." if shape_spec is None else shape_spec.strip()
    if text.startswith("(") and text.endswith(")") and _closes(text):
        text = text[1:-1]
    parts = _parts(text)
    if "..." in parts:
        if parts[-1] != "..." or parts.count("...") > 1:
            raise ValueError(
                f"Error in syntax of symbolic shape {shape_spec!r}: '...' must be at the end"
            )
        if like is None:
            raise ValueError(f"Error in {shape_spec!r}: '...' is allowed only when `like` is given")
        parts = [*parts[:-1], *["_"] * (len(like) - len(parts) + 1)]
    if like is not None and len(like) != len(parts):
        raise ValueError(
            f"polymorphic shape {shape_spec!r} has {len(parts)} sizes, and {tuple(like)} has others"
        )
    shape = []
    for k, part in enumerate(parts):
        if part == "_":
            if like is None:
                raise ValueError(f"Error in {shape_spec!r}: '_' is allowed only with `like`")
            shape.append(like[k])
            continue
        try:
            size = parsed(part)
        except Damaged as error:
            raise ValueError(f"Error in syntax of symbolic shape {shape_spec!r}: {error}") from None
        shape.append(_bounded(size, bounds))
    return tuple(shape)


def _closes(text: str) -> bool:
    """Say whether the first parenthesis is closed at the end."""
    depth = 0
    for k, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return k == len(text) - 1
    return False


def _parts(text: str) -> list[str]:
    """Return what is between the outer commas."""
    parts, depth, last = [], 0, 0
    for k, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append(text[last:k].strip())
            last = k + 1
    parts.append(text[last:].strip())
    return parts[:-1] if parts[-1] == "" else parts


def _bounded(size: Any, bounds: dict[str, tuple[int, float]]) -> Any:
    """Return the size with variables that keep these bounds."""
    if not isinstance(size, Size) or not bounds:
        return size

    def bounded(variable: SizeVariable) -> Any:
        return size_variable(variable.name, *bounds.get(variable.name, (1, float("inf"))))

    from_zero = lambda n: (n + abs(n)) // 2
    return size.at(bounded, lambda n, by: n // by, from_zero)


def symbolic_args_specs(
    args: Any,
    shapes_specs: Any,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
) -> Any:
    """Describe arguments, with symbolic shapes.

    Args:
        args: a tree of arrays.
        shapes_specs: a text for all of them, or a tree of texts that begins like ``args``.
        constraints: bounds of variables.
        scope: the scope whose bounds hold.

    Returns:
        The tree of ``ShapeDtypeStruct``.
    """
    leaves, structure = tree_util.flatten(args)
    if isinstance(shapes_specs, str) or shapes_specs is None:
        texts = [shapes_specs] * len(leaves)
    else:
        if isinstance(shapes_specs, list) and isinstance(args, tuple):
            shapes_specs = tuple(shapes_specs)
        is_text = lambda x: x is None or isinstance(x, str)
        found, outer = tree_util.flatten(shapes_specs, is_text)
        texts = []
        for text, below in zip(found, outer.flatten_up_to(args), strict=True):
            texts += [text] * len(tree_util.leaves(below))
    made = [
        ShapeDtypeStruct(
            symbolic_shape(text, constraints=constraints, scope=scope, like=x.shape),
            x.dtype,
            sharding=x.sharding,
        )
        for text, x in zip(texts, map(ShapeDtypeStruct.like, leaves), strict=True)
    ]
    return structure.unflatten(made)
