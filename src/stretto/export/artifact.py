"""Artifacts: programs of our own with their weights, which are called, transformed and saved.

``program`` traces a function to one, ``Artifact.save`` writes it to a safetensors file, ``read``
reads it in another process, which needs none of the user's code. Nothing in a file is run while it
is read: see ``written_programs``.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stretto import export
from stretto._engine import VERSION, api, higher_order
from stretto._engine.api.graph import ShapeDtypeStruct
from stretto._engine.api.jit.jit import jit
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary
from stretto._engine.core.config import config
from stretto._engine.core.errors import ExportError, SizeError
from stretto._engine.core.files import checked_path
from stretto._engine.core.integers import count
from stretto._engine.core.interpreter import as_value, constant
from stretto._engine.core.lazy import shown
from stretto._engine.core.nodes import GetAttrKey
from stretto._engine.core.primitive import NamedAxis
from stretto._engine.core.program import Program
from stretto._engine.core.size_guards import Guard
from stretto._engine.core.sizes import Size, SizeVariable, greater, is_size, size_of
from stretto._engine.core.types import ArrayType, canonical_dtype
from stretto._engine.ops.convert import convert
from stretto._engine.passes.simplify import simplify
from stretto._engine.xla.array import Array
from stretto.export import parameters, structures
from stretto.export.written_programs import Reader, Writer
from stretto.files.load_files import Header, load_checked, load_header
from stretto.files.names import Damaged
from stretto.files.save_files import write

if TYPE_CHECKING:
    from stretto._engine.api.exported import Exported

FORMAT = 1
"""The version of the format that is written, and the newest that is read."""

ENTRY = "stretto.program"
"""The entry of a file's metadata that holds the program."""

_WIDE = ("int64", "uint64", "float64", "complex128")

_LONGEST = 1 << 24
"""The most bytes of a program's text, which is some hundred thousand operations."""


@dataclasses.dataclass(frozen=True, eq=False)
class Contents:
    """What an artifact is besides its weights; compared as an object."""

    name: str
    program: Program
    """Its inputs are the arguments' leaves, then the weights."""
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    weights: tuple[str, ...]
    sizes: Mapping[SizeVariable, int]
    """The sizes that vary, with those of the examples."""
    guards: tuple[Guard, ...]
    arguments: Any
    results: Any
    """The structures of the arguments and of the result, as data: see ``structures``."""

    @functools.cached_property
    def in_types(self) -> tuple[ArrayType, ...]:
        """The types of the arguments' leaves."""
        return self.program.in_types[: len(self.inputs)]


@shown("stretto.export.cards", "card_of", "text_of")
@tree.register_pytree_with_keys_class
class Artifact:
    """A program with its weights, made by ``program`` or ``load``: a function that can be saved.

    Called at rest it runs compiled, and inside of ``jit``, ``grad`` and ``vmap`` it is a function
    like others. It is a tree of its weights, so derivatives may be taken by the artifact itself.
    Named tuples, dataclasses and modules in its result come back as dictionaries by name; in
    arguments they may be given as they are, or as such dictionaries.

    Args:
        contents: the program, with all that a file says.
        weights: the arrays that it takes after its arguments.

    >>> import stretto as st, stretto.numpy as snp
    >>> model = st.export.program(lambda x: {"y": snp.sin(x) * 2}, snp.ones(3))
    >>> model(snp.zeros(3))
    {'y': Array([0., 0., 0.], dtype=float32)}
    >>> model
    Artifact function
      x: float32[3]
      -> y: float32[3]
      2 operations, no weights
    """

    def __init__(self, contents: Contents, weights: Sequence[Any]) -> None:
        self._contents = contents
        self._weights = tuple(weights)
        self._orders: dict[Any, list[int]] = {}
        self._jitted: Any = None
        self._sized: dict[Any, Program] = {}

    def tree_flatten_with_keys(self) -> Any:
        """Return the weights by name, and what is static.

        Returns:
            A pair: the weights, each with its name, and the program with all that a file says.
        """
        names = self._contents.weights
        pairs = zip(names, self._weights, strict=True)
        return tuple([(GetAttrKey(name), x) for name, x in pairs]), self._contents

    @classmethod
    def tree_unflatten(cls, static: Contents, children: Sequence[Any]) -> Artifact:
        """Return the artifact with these weights.

        Args:
            static: the program, with all that a file says.
            children: the weights.

        Returns:
            The artifact.
        """
        return cls(static, children)

    @property
    def __name__(self) -> str:
        return self._contents.name

    @property
    def __signature__(self) -> inspect.Signature:
        kind = inspect.Parameter.POSITIONAL_ONLY
        return inspect.Signature([inspect.Parameter(n, kind) for n in _names_of_arguments(self)])

    @property
    def inputs(self) -> dict[str, ShapeDtypeStruct]:
        """Types of the arguments' arrays, by name; sizes that vary are in the shapes."""
        c = self._contents
        return {n: _struct(t) for n, t in zip(c.inputs, c.in_types, strict=True)}

    @property
    def outputs(self) -> dict[str, ShapeDtypeStruct]:
        """Types of the result's arrays, by name."""
        c = self._contents
        return {n: _struct(t) for n, t in zip(c.outputs, c.program.out_types, strict=True)}

    @property
    def weights(self) -> dict[str, Any]:
        """The weights by name."""
        return dict(zip(self._contents.weights, self._weights, strict=True))

    @property
    def examples(self) -> tuple[Any, ...]:
        """Arguments as the program was traced for, without elements, for other exports."""
        c = self._contents
        known = lambda n: n.known(c.sizes) if is_size(n) else n
        each = [t.with_shape(tuple(map(known, t.shape))) for t in c.in_types]
        return structures.build(c.arguments, iter([_struct(t) for t in each]))

    @property
    def dynamic_axes(self) -> Any:
        """The sizes that vary, as ``dynamic_axes`` names them; None if all are fixed."""
        c = self._contents
        return structures.build(c.arguments, iter(_axes(c))) if c.sizes else None

    def __call__(self, *args: Any) -> Any:
        """Compute the result for arguments of the types that the program was traced for.

        Args:
            *args: trees like the examples; axes that were named have any size.

        Returns:
            The result.

        Raises:
            TypeError: an argument has another structure, shape or dtype.
            SizeError: a size is not one of those that the program is for.
        """
        with boundary:
            leaves = self._leaves(args)
            return structures.build(self._contents.results, iter(self.flat(leaves)))

    def _leaves(self, args: tuple[Any, ...]) -> list[Any]:
        """Return the arguments' leaves in the order of the program's inputs."""
        c = self._contents
        leaves, spec = tree.flatten(args)
        order = self._orders.get(spec)
        if order is None:
            given = structures.describe(spec, c.name)
            names = _names_of_arguments(self)
            if len(args) != len(names):
                raise TypeError(
                    f"{c.name}: the arguments must be ({', '.join(names)}), by place; got "
                    f"{len(args)}"
                )
            try:
                order = structures.order(c.arguments, given, "the arguments")
            except structures.Mismatch as error:
                raise TypeError(f"{c.name}: {error}") from None
            self._orders[spec] = order
        return [leaves[i] for i in order]

    def flat(self, leaves: Sequence[Any]) -> list[Any]:
        """Return the result's arrays for the arguments' arrays, as ``outputs`` and ``inputs`` list.

        Args:
            leaves: an array for each of ``inputs``.

        Returns:
            An array for each of ``outputs``.

        Raises:
            TypeError: an array has another shape or dtype.
            SizeError: a size is not one of those that the program is for.
        """
        c = self._contents
        values = [
            x if x.__class__ is Array and x.type is type else _fitting(x, type, c.name, name)
            for x, type, name in zip(leaves, c.in_types, c.inputs, strict=True)
        ]
        if not c.sizes:
            return list(self._run()(*values))
        sizes = _bound(c, [x.type for x in values])
        _check_sizes(c, sizes)
        if any([is_size(n) for n in sizes.values()]):  # inside of a function of any size
            return evaluate(self._at(sizes), [*values, *self._weights])
        return list(self._run()(*values))

    def _run(self) -> Any:
        if self._jitted is None:
            c, weights = self._contents, self._weights

            def program(*leaves: Any) -> Any:
                return evaluate(c.program, [*leaves, *weights])

            program.__name__ = program.__qualname__ = c.name
            self._jitted = jit(program, dynamic_axes=tuple(_axes(c)) if c.sizes else None)
        return self._jitted

    def exported(self) -> Exported:
        """Return what formats are written from, as if the function had just been traced for them.

        Returns:
            The program, simplified where its sizes are fixed, with its names and weights.
        """
        c = self._contents
        return api.exported.Exported(
            c.name,
            c.program if c.sizes else simplify(c.program),
            c.inputs,
            c.outputs,
            tuple([(name, np.asarray(x)) for name, x in self.weights.items()]),
            c.sizes,
            c.guards,
            tree.structure(self.examples),
            None,
        )

    def _at(self, sizes: Mapping[SizeVariable, Any]) -> Program:
        """Return the program with other sizes in the place of its own."""
        if all([is_size(n) and n.terms == size_of(v).terms for v, n in sizes.items()]):
            return self._contents.program
        key = tuple(sizes.items())
        if key not in self._sized:
            w = Writer(self._contents.name)
            main = w.program(self._contents.program)
            reader = Reader({**w.tables(), "sizes": []}, w.arrays, sizes)
            self._sized[key] = reader.program(main)
        return self._sized[key]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the program and its weights to one safetensors file, whole or not at all.

        The weights have their names in it, so that other readers of the format find them; the
        program is text among the metadata. Places in the user's source are not written.

        Args:
            path: the file.

        Raises:
            ExportError: the program has an operation that no file has; with the way out.
            TypeError: ``path`` is not a path.
            OSError: the file cannot be written.

        >>> import os, tempfile, stretto as st, stretto.numpy as snp
        >>> path = os.path.join(tempfile.mkdtemp(), "model.stretto")
        >>> st.export.program(snp.sin, snp.ones(2)).save(path)
        >>> st.export.load(path)(snp.zeros(2))
        Array([0., 0.], dtype=float32)
        """
        checked_path(path, "Artifact.save")
        c, w = self._contents, Writer("Artifact.save")
        main = w.program(c.program)
        record = {
            "format": FORMAT,
            "reader": 1,
            "stretto": VERSION,
            "name": c.name,
            "main": main,
            "inputs": c.inputs,
            "outputs": c.outputs,
            "weights": c.weights,
            "sizes": [[w.variable(v), n] for v, n in c.sizes.items()],
            "guards": [w.guard(g) for g in c.guards],
            "arguments": c.arguments,
            "results": c.results,
        }
        names = _constant_names(len(w.arrays), c.weights)
        arrays = dict(zip(c.weights, self._weights, strict=True))
        types = c.program.in_types[len(c.inputs) :]
        arrays = {n: _saved(x, t) for (n, x), t in zip(arrays.items(), types, strict=True)}
        arrays |= dict(zip(names, w.arrays, strict=True))
        text = json.dumps({**record, **w.tables()}, separators=(",", ":"))
        if len(text) > _LONGEST:
            raise ExportError(
                f"Artifact.save: the program takes {len(text)} bytes of text, and a file has room "
                f"for {_LONGEST}: make a loop of what is repeated, with stretto.lax.scan"
            )
        write(path, arrays, {ENTRY: text}, with_checksum=True)


def _names_of_arguments(artifact: Artifact) -> list[str]:
    """Return the names of the arguments: those with arrays have that of their first one."""
    (children,) = artifact._contents.arguments.values()
    left = iter(artifact._contents.inputs)
    names = []
    for k, child in enumerate(children):
        own = [next(left) for _ in range(structures.count(child))]
        word = re.match(r"\w*", own[0] if own else "")
        name = word[0] if word and word[0].isidentifier() else ""
        names.append(name if name and name not in names else f"argument_{k}")
    return names


def _check_written(c: Contents, caller: str) -> None:
    """Raise ``ExportError`` for what no file has, and for what no reader would take."""
    w = Writer(caller)
    main = w.program(c.program)
    record = {**w.tables(), "sizes": [[w.variable(v), n] for v, n in c.sizes.items()]}
    try:
        Reader(record, w.arrays).program(main)
    except Damaged as error:
        raise ExportError(f"{caller}: no file can have this program: {error}") from None


def _struct(type: ArrayType) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(type.shape, type.dtype, weak_type=type.weak_type)


def _saved(x: Any, type: ArrayType) -> np.ndarray:
    return np.asarray(as_value(x, "Artifact.save").to_host()).astype(type.dtype, copy=False)


def _kept(x: np.ndarray) -> np.ndarray:
    """Return an array with an element in memory for each, that nobody writes to."""
    return x if x.flags.c_contiguous and not x.flags.writeable else np.array(x, order="C")


def _constant_names(number: int, taken: Sequence[str]) -> list[str]:
    prefix = "constant"
    while any([name.startswith(f"{prefix}.") for name in taken]):
        prefix += "_"
    return [f"{prefix}.{k}" for k in range(number)]


def _fitting(x: Any, type: ArrayType, caller: str, name: str) -> Any:
    """Return an argument as a value of this type; sizes that vary are looked at elsewhere."""
    value = as_value(x, caller, name)
    shape = value.shape
    same = len(shape) == type.ndim and all(
        [is_size(m) or (not is_size(n) and n == m) for n, m in zip(shape, type.shape, strict=True)]
    )
    if not same or not higher_order.custom_function.fits(value, type.with_shape(shape)):
        off = ": 64-bit types are off" if canonical_dtype(type.dtype) != type.dtype else ""
        raise TypeError(f"{caller}: {name} must be {type}, got {value.type}{off}")
    if value.type.dtype != type.dtype or value.type.weak_type != type.weak_type:
        value = convert(value, type.dtype, type.weak_type)
    return value


def _axes(c: Contents) -> list[Any]:
    return [{axis: n for axis, n in enumerate(t.shape) if is_size(n)} or None for t in c.in_types]


def _bound(c: Contents, types: Sequence[ArrayType]) -> dict[SizeVariable, Any]:
    """Return what the sizes that vary are for arguments of these types."""
    sizes: dict[SizeVariable, Any] = {}
    places = [
        (name, axis, n, m)
        for name, own, given in zip(c.inputs, c.in_types, types, strict=True)
        for axis, (n, m) in enumerate(zip(own.shape, given.shape, strict=True))
        if is_size(n)
    ]
    for _, _, n, m in places:
        variable = _alone(n)
        if variable is not None:
            sizes.setdefault(variable, m)
    for name, axis, n, m in places:
        expected = _with(n, sizes)
        if is_size(expected) != is_size(m) or not _same(expected, m):
            raise TypeError(
                f"{c.name}: axis {axis} of {name} has size {m}, and must have {n}"
                + (f" = {expected}" if str(expected) != str(n) else "")
            )
    return {v: sizes[v] for v in c.sizes}


def _same(one: Any, other: Any) -> bool:
    return one.terms == other.terms if is_size(one) else one == other


def _alone(n: Any) -> SizeVariable | None:
    """Return the variable that a size is, if it is one."""
    variable = next(n.variables())
    return variable if n.terms == size_of(variable).terms else None


def _with(n: Any, sizes: Mapping[SizeVariable, Any]) -> Any:
    return n.at(sizes.__getitem__, lambda m, by: m // by, lambda m: greater(m, 0))


def _check_sizes(c: Contents, sizes: Mapping[SizeVariable, Any]) -> None:
    """Raise ``SizeError`` unless the program is for these sizes."""
    for v, n in sizes.items():
        least, most = n.bounds() if isinstance(n, Size) else (n, n)
        if least < v.least or most > v.most:
            raise SizeError(
                f"{c.name}: {v} is {n}, and must be at least {v.least} and at most {v.most}"
            )
    for guard in c.guards:
        size = _with(guard.size, sizes)
        if (size < guard.less_than) != guard.holds:
            relation = "<" if guard.holds else ">="
            raise SizeError(
                f"{c.name}: was traced for sizes of which {guard.size} {relation} "
                f"{guard.less_than}, and it is {size}: export it with an example of these sizes"
            )


def program(
    fun: Callable[..., Any], *examples: Any, dynamic_axes: Any = None, derivatives: int = 1
) -> Artifact:
    """Trace a function, a module or an ensemble to a program that can be saved, and called.

    Args:
        fun: what to trace; arrays that it has or captures become the program's weights.
        *examples: arguments like those of a call; what has a shape and a dtype is enough.
        dynamic_axes: a tree like ``examples`` that names the axes whose size varies, as for
            ``jit``: ``{0: "batch"}``.
        derivatives: how many derivatives may be taken where functions have derivative rules of
            their own (``custom_jvp``, ``custom_vjp``): the rules are traced as often. Where
            functions have none, there may be any number.

    Returns:
        The program with its weights.

    Raises:
        ExportError: the function has an operation that no file has.
        TypeError: ``fun`` is not callable, or an example is not an array.
        ValueError: ``derivatives`` is negative.

    A process that calls the artifact leaves the compiled program in the disk cache, so that another
    one of the same machine, which loads the file, neither traces the function nor compiles.

    >>> import stretto as st, stretto.numpy as snp
    >>> mean = st.export.program(snp.mean, snp.ones(3), dynamic_axes=({0: "n"},))
    >>> mean(snp.arange(5.0)), st.grad(mean)(snp.ones(2))
    (Array(2., dtype=float32), Array([0.5, 0.5], dtype=float32))
    """
    order = count(derivatives, "export.program", "derivatives", 0)
    traced = api.exported.trace(
        fun, examples, dynamic_axes, None, "export.program", derivatives=True
    )
    with boundary:
        whole = export.rules.with_rules(traced.program, order, "export.program")
        contents = Contents(
            traced.name,
            whole,
            traced.inputs,
            traced.outputs,
            tuple([name for name, _ in traced.weights]),
            dict(traced.sizes),
            traced.guards,
            structures.describe(traced.in_structure, "export.program"),
            structures.describe(traced.out_structure, "export.program"),
        )
        _check_written(contents, "export.program")
        types = whole.in_types[len(traced.inputs) :]
        # Written out, as those of a file are: what is compiled is then the same in every process.
        weights = [
            constant(_kept(x), t.weak_type) for (_, x), t in zip(traced.weights, types, strict=True)
        ]
    return Artifact(contents, weights)


def read(path: str | os.PathLike[str], caller: str) -> Artifact:
    """Read the program that ``Artifact.save`` wrote, without the code that it was traced from.

    Nothing in the file is run: it is checked from its first byte to the type of each result.

    Args:
        path: the file.
        caller: what errors begin with.

    Returns:
        The program with its weights.

    Raises:
        ValueError: the file is damaged, holds no program, or was written by a later version.
        TypeError: it has 64-bit types, and these are off.
    """
    record: dict[str, Any] = {}

    def like(header: Header) -> dict[str, ShapeDtypeStruct]:
        record.update(_record(header.metadata))
        return header.arrays

    with boundary:
        try:
            _check_holds_program(load_header(path).metadata)
            arrays = load_checked(path, like)
            return _read(record, arrays)
        except Damaged as error:
            text = str(error).partition(f"{os.fspath(path)}: ")
            by = record.get("stretto", VERSION)
            also = f" (Stretto {str(by)[:20]!r} wrote it; this is {VERSION})"
            other = "" if by == VERSION else also
            raise Damaged(f"{caller}: {text[2] or text[0]}{other}") from None
        except TypeError as error:
            raise TypeError(f"{caller}: {error}") from None


def _check_holds_program(metadata: Mapping[str, str]) -> None:
    """Raise ``Damaged`` for a file that has arrays alone."""
    if ENTRY not in metadata:
        of = "an ensemble" if "stretto.ensemble" in metadata else "a model"
        by = "Ensemble.load" if "stretto.ensemble" in metadata else "stretto.load"
        raise Damaged(
            f"it holds arrays, and no program: load them into {of}, by {by}(..., like=...), and "
            f"export that by stretto.export.program"
        )


def _record(metadata: Mapping[str, str]) -> dict[str, Any]:
    """Return what the metadata say of a program, if this reader knows their format."""
    text = metadata.get(ENTRY, "")
    if len(text) > _LONGEST:
        raise Damaged(f"its program is longer than {_LONGEST} bytes")
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Damaged(f"its program is no JSON: {error}") from None
    if not isinstance(record, dict):
        raise Damaged("its program is no JSON object")
    types = record.get("types")
    wide = [t[0] for t in types if isinstance(t, list) and t] if isinstance(types, list) else []
    if not config.enable_x64 and any([name in _WIDE for name in wide if isinstance(name, str)]):
        raise TypeError("it has 64-bit types, and these are off: set st.config.enable_x64 = True")
    needed = parameters.whole(record.get("reader"), 1)
    if needed > FORMAT:
        raise Damaged(
            f"it was written by Stretto {str(record.get('stretto'))[:20]} in a format that this "
            f"one, {VERSION}, does not know: install a later one"
        )
    return record


def _read(record: dict[str, Any], arrays: Mapping[str, Any]) -> Artifact:
    """Return the artifact that a file describes, with these arrays. Raises ``Damaged``."""
    inputs, outputs, weights = [_names(record, key) for key in ("inputs", "outputs", "weights")]
    if missing := [name for name in weights if name not in arrays]:
        raise Damaged(f"its weight {missing[0]} is not in the file")
    if len(set(weights)) < len(weights):
        raise Damaged("two weights have one name")
    constants = _constant_names(len(arrays) - len(weights), weights)
    if missing := [name for name in constants if name not in arrays]:
        raise Damaged(f"its array {missing[0]} is not in the file")
    reader = Reader(record, [np.asarray(arrays[name]) for name in constants])
    main = reader.program(record.get("main"))
    guards = [reader.guard(g) for g in _list(record, "guards")]
    arguments, results = record.get("arguments"), record.get("results")
    if not (isinstance(arguments, dict) and arguments.keys() == {"tuple"}):
        raise Damaged("the arguments are no tuple")
    counts = len(inputs), len(outputs)
    if (structures.count(arguments), structures.count(results)) != counts:
        raise Damaged("its arguments or results are not as many as their structures say")
    if (len(main.inputs), len(main.outputs)) != (len(inputs) + len(weights), len(outputs)):
        raise Damaged("its program has other inputs or outputs than it describes")
    if any([isinstance(e, NamedAxis) for e in main.effects]):
        raise Damaged("its program works across an axis that nobody names")
    types = main.in_types[len(inputs) :]
    for name, type in zip(weights, types, strict=True):
        if type.varies or (arrays[name].shape, arrays[name].dtype) != (type.shape, type.dtype):
            raise Damaged(f"its weight {name} is not {type}")
    contents = Contents(
        parameters.text(record.get("name")),
        main,
        inputs,
        outputs,
        weights,
        reader.examples,
        tuple(dict.fromkeys([*guards, *reader.found])),
        arguments,
        results,
    )
    _check_variables(contents)
    made = [
        constant(np.asarray(arrays[n]), t.weak_type) for n, t in zip(weights, types, strict=True)
    ]
    return Artifact(contents, made)


def _list(record: Mapping[str, Any], key: str) -> list[Any]:
    data = record.get(key)
    if not isinstance(data, list):
        raise Damaged(f"it has no list of {key}")
    return data


def _names(record: Mapping[str, Any], key: str) -> tuple[str, ...]:
    return tuple([parameters.text(name) for name in _list(record, key)])


def _check_variables(c: Contents) -> None:
    """Raise ``Damaged`` unless every size of an argument is one of those that are read off them."""
    varying: list[Any] = [n for t in c.in_types for n in t.shape if is_size(n)]
    alone = {_alone(n) for n in varying}
    used = {v for n in varying for v in n.variables()}
    if not used <= alone or set(c.sizes) != alone - {None}:
        raise Damaged("a size of an argument is one that no axis has")
    for variable, n in c.sizes.items():
        if not variable.least <= n <= variable.most:
            raise Damaged(f"the example of the size {variable} is {n}")
    sizes: list[Any] = [guard.size for guard in c.guards]
    if not all(map(is_size, sizes)):
        raise Damaged("it takes something to hold of a size that is fixed")
    of_guards = {v for n in sizes for v in n.variables()}
    if not of_guards <= set(c.sizes) or not all([guard.of(c.sizes) for guard in c.guards]):
        raise Damaged("what it takes to hold of its sizes does not hold of its examples")
