"""Calls of an imported module: arguments by position and by name, results, and how both are nested.

An exported program knows the leaves of the arguments it was traced with. A ``Signature`` finds them
in a later call, and refuses one that does not fit: with another option, with sizes for which the
module would compute something else.

PyTorch nests tensors in tuples, lists, dictionaries, named tuples and classes such as the outputs
of transformers. A ``Structure`` says how, takes apart a value that is nested so, and puts one
together; what PyTorch keeps in a class of its own becomes a named tuple here. ``structure_of``
reads PyTorch's own description, which knows each container by its class and by what PyTorch keeps
beside it; where those have names, they are the fields.

PyTorch's modules may write into a tensor that they are given, such as a cache. Arrays never change
here, so ``with_written`` returns what is written as a result, or refuses the module. Activations in
place, such as ``ReLU(inplace=True)``, use an argument as scratch, and nobody wants what they leave
there: the module comes in, with a warning.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import keyword
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.position import user_stack_level
from stretto._engine.core.types import kind_of
from stretto._engine.ops.convert import convert
from stretto.torch.programs.torch_graph import (
    Condition,
    Graph,
    Input,
    Output,
    Ref,
    bind,
    dtype_of,
    names,
    value_of,
)


@dataclasses.dataclass(frozen=True, slots=True)
class Structure:
    """A leaf, or a container of structures.

    Args:
        kind: ``"leaf"``, ``"nothing"`` (a None that is never anything else), ``"tuple"``,
            ``"list"``, ``"dict"``, or ``"named"``.
        name: for a named one, that of its class.
        keys: of a dictionary; for a named one, its fields.
        children: what is in it.
    """

    kind: str
    name: str = ""
    keys: tuple[str | int, ...] = ()
    children: tuple[Structure, ...] = ()

    @property
    def size(self) -> int:
        """The number of leaves."""
        return 1 if self.kind == "leaf" else sum([child.size for child in self.children])

    def taken(self, value: Any, what: str) -> Iterator[tuple[str, Any]]:
        """Yield the leaves of a value that is nested so, each with what it is called.

        Raises:
            TypeError: the value is nested otherwise; the message calls it ``what``.
        """
        if self.kind == "leaf":
            yield what, value
            return
        if self.kind == "nothing":
            if value is not None:
                raise TypeError(
                    f"{what}: expected None, as in the example it was imported with; got a "
                    f"{type(value).__name__}"
                )
            return
        for label, child, part in zip(
            self._labels(), self.children, self._parts(value, what), strict=True
        ):
            yield from child.taken(part, what + label)

    def _labels(self) -> list[str]:
        match self.kind:
            case "dict":
                return [f"[{key!r}]" for key in self.keys]
            case "named":
                return [f".{field}" for field in self.keys]
        return [f"[{k}]" for k in range(len(self.children))]

    def _parts(self, value: Any, what: str) -> Sequence[Any]:
        expected = f"{what}: expected {self}, as in the example it was imported with"
        match self.kind:
            case "dict":
                if not isinstance(value, Mapping):
                    raise TypeError(f"{expected}; got a {type(value).__name__}")
                if set(value) != set(self.keys):
                    raise TypeError(f"{expected}; got the keys {sorted(map(str, value))}")
                return [value[key] for key in self.keys]
            case "named" if not isinstance(value, (tuple, list)):
                found = [getattr(value, str(field), value) for field in self.keys]
                if any([part is value for part in found]):
                    raise TypeError(f"{expected}; got a {type(value).__name__}")
                return found
        if not isinstance(value, (tuple, list, collections.deque)):
            raise TypeError(f"{expected}; got a {type(value).__name__}")
        if len(value) != len(self.children):
            raise TypeError(f"{expected}; got {len(value)} elements")
        return list(value)

    def filled(self, leaves: Iterator[Any]) -> Any:
        """Return the value that is nested so, of these leaves in order."""
        if self.kind == "leaf":
            return next(leaves)
        if self.kind == "nothing":
            return None
        parts = [child.filled(leaves) for child in self.children]
        match self.kind:
            case "tuple":
                return tuple(parts)
            case "list":
                return parts
            case "dict":
                return dict(zip(self.keys, parts, strict=True))
        return record(self.name, tuple(map(str, self.keys)))(*parts)

    def __str__(self) -> str:
        match self.kind:
            case "leaf":
                return "an array or a number"
            case "nothing":
                return "None"
            case "dict":
                return f"a dictionary with the keys {list(self.keys)}"
            case "named":
                return f"{self.name} with the fields {list(self.keys)}"
        return f"a {self.kind} of {len(self.children)}"

    def to_json(self) -> Any:
        """Return the structure in terms of JSON."""
        parts = [child.to_json() for child in self.children]
        return [self.kind, self.name, list(self.keys), parts]

    @classmethod
    def from_json(cls, data: Any) -> Structure:
        """Return the structure that ``to_json`` gave this for.

        Raises:
            ValueError: it is not of that form.
        """
        kind, name, keys, parts = data
        children = tuple([cls.from_json(part) for part in parts])
        if kind not in ("leaf", "nothing", "tuple", "list", "dict", "named") or (
            kind in ("dict", "named") and len(keys) != len(children)
        ):
            raise ValueError(f"this is no structure: {data!r}")
        return cls(kind, str(name), tuple(keys), children)


LEAF = Structure("leaf")
NOTHING = Structure("nothing")


@functools.cache
def record(name: str, fields: tuple[str, ...]) -> type:
    """Return the class of named tuples of this name and these fields, which are keys as well."""
    valid = [field.isidentifier() and not keyword.iskeyword(field) for field in fields]
    if not all(valid) or any([field.startswith("_") for field in fields]):
        raise ValueError(f"{name}: the fields {list(fields)} cannot be attributes")
    base: Any = collections.namedtuple(name, fields)

    def by_key(self: Any, key: Any) -> Any:
        return getattr(self, key) if isinstance(key, str) else tuple.__getitem__(self, key)

    return type(name, (base,), {"__slots__": (), "__getitem__": by_key})


def children_of(spec: Any) -> Sequence[Any]:
    """Return the descriptions of what is in a container, by PyTorch's description of it."""
    return [] if spec.is_leaf() else list(spec.children())


def structure_of(spec: Any) -> Structure:
    """Return a nesting of PyTorch's, by its description of trees (``TreeSpec``), as plain data.

    Raises ``NotImplementedError`` for a container whose parts have no names, or none that are
    attributes.
    """
    if spec.is_leaf():
        return LEAF
    children = tuple([structure_of(part) for part in children_of(spec)])
    context = spec.context
    # PyTorch's type of every named tuple is the function that makes their classes
    kind = context if spec.type is collections.namedtuple else spec.type
    name = kind.__name__
    if issubclass(kind, dict) and not hasattr(kind, "to_tuple"):
        keys = context[1] if issubclass(kind, collections.defaultdict) else context
        return Structure("dict", keys=tuple(keys), children=children)
    if kind in (tuple, list, collections.deque) or name == "Size":
        return Structure("tuple" if issubclass(kind, tuple) else "list", children=children)
    fields, empty = _fields(kind, context)
    if fields is None or len(fields) != len(children):
        raise NotImplementedError(
            f"from_torch: an argument or a result is a {name}, and it is not known what its parts "
            f"are called; wrap the module in one that takes and gives tuples and dictionaries"
        )
    named = tuple(map(str, (*fields, *empty)))
    try:
        record(name, named)
    except ValueError as error:
        raise NotImplementedError(f"from_torch: {error}") from error
    return Structure("named", name, named, (*children, *(NOTHING,) * len(empty)))


def _fields(kind: Any, context: Any) -> tuple[Sequence[Any] | None, Sequence[Any]]:
    """Return the names of the parts, if there are names; and those of what was None."""
    if issubclass(kind, tuple):  # named tuples, and what PyTorch's operations return
        return getattr(kind, "_fields", None) or getattr(kind, "__match_args__", None), ()
    if not isinstance(context, (tuple, list)):
        return None, ()
    if len(context) == 2 and all([isinstance(names, (tuple, list)) for names in context]):
        return context[0], context[1]  # a registered dataclass
    return context, ()


_RANKS = {"bool": 0, "uint": 1, "int": 1, "float": 2, "complex": 3}
"""Kinds of dtypes, each of which holds the values of those before."""


@dataclasses.dataclass(frozen=True, slots=True)
class Argument:
    """An argument of the example, or a default.

    Args:
        name: its name in ``forward``.
        structure: how it is nested.
        constants: for each leaf what it was, if that is part of the program (a flag, None, a
            number), in a tuple of one; an empty tuple for a leaf that is an input.
    """

    name: str
    structure: Structure
    constants: tuple[tuple[Any, ...], ...]

    @property
    def has_arrays(self) -> bool:
        """True where a leaf is an input."""
        return not all(self.constants)

    @property
    def value(self) -> Any:
        """The argument, where no leaf is an input."""
        return self.structure.filled(iter([constant for (constant,) in self.constants]))

    def is_like(self, value: Any) -> bool:
        """Say whether a value is this argument, nested so and with the same constants."""
        if self.has_arrays:
            return False
        try:
            parts = list(self.structure.taken(value, self.name))
        except TypeError:
            return False
        pairs = zip(parts, self.constants, strict=True)
        return all([_same(leaf, constant) for (_, leaf), (constant,) in pairs])

    def to_json(self) -> Any:
        """Return the argument in terms of JSON."""
        return [self.name, self.structure.to_json(), [list(c) for c in self.constants]]

    @classmethod
    def from_json(cls, data: Any) -> Argument:
        """Return the argument that ``to_json`` gave this for.

        Raises:
            ValueError: it is not of that form.
        """
        name, nested, constants = data
        structure = Structure.from_json(nested)
        if len(constants) != structure.size:
            raise ValueError(f"the argument {name} has not as many leaves as constants")
        return cls(str(name), structure, tuple(map(tuple, constants)))


@dataclasses.dataclass(frozen=True, slots=True)
class Signature:
    """Says how a program is called.

    Args:
        names: the names of positional parameters of ``forward``, in order.
        rest: the name of its ``*args``; empty if it has none.
        defaults: those of the parameters of ``forward`` that are plain data.
        arguments: those of the example.
        results: how the results are nested.
        conditions: what the program takes for granted about the named sizes of its inputs.
    """

    names: tuple[str, ...]
    rest: str
    defaults: tuple[Argument, ...]
    arguments: tuple[Argument, ...]
    results: Structure
    conditions: tuple[Condition, ...] = ()

    def leaves(
        self, caller: str, inputs: Sequence[Input], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> list[Any]:
        """Return the values of the inputs in a call with these arguments.

        Raises:
            TypeError: an argument is missing, unknown, given twice, nested otherwise, or no array.
            ValueError: one is not what it was in the example where that is part of the program, or
                has another shape.
        """
        given = self._by_name(caller, args, kwargs)
        known = {default.name: default for default in self.defaults}
        values: list[Any] = []
        labels: list[str] = []
        expected = iter(inputs)
        for argument in self.arguments:
            if argument.name not in given:
                _check_default(caller, argument, known.get(argument.name))
                continue
            value = given.pop(argument.name)
            parts = argument.structure.taken(value, f"{caller}: {argument.name}")
            for (what, leaf), constant in zip(parts, argument.constants, strict=True):
                if constant:
                    _check_constant(what, leaf, constant[0])
                else:
                    values.append(_as_input(what, leaf, next(expected)))
                    labels.append(what.partition(": ")[2])
        for name, value in given.items():
            if name not in known or not known[name].is_like(value):
                raise TypeError(
                    f"{caller}: the program was exported without the argument {name}: import the "
                    f"module anew with an example that has it"
                )
        _check_sizes(caller, _sizes_of(inputs, labels, values), self.conditions)
        return values

    def is_setting(self, place: int | str) -> bool:
        """Say whether the argument at this position or of this name has other parts than inputs."""
        if isinstance(place, int):
            past = place - len(self.names)
            place = self.names[place] if past < 0 else f"{self.rest}[{past}]"
        return any(
            [a.name == place and any(a.constants) for a in (*self.arguments, *self.defaults)]
        )

    def _by_name(
        self, caller: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> dict[str, Any]:
        names = list(self.names[: len(args)])
        if len(args) > len(self.names):
            if not self.rest:
                raise TypeError(
                    f"{caller} takes at most {len(self.names)} arguments by position, "
                    f"{', '.join(self.names)}; got {len(args)}"
                )
            names += [f"{self.rest}[{k}]" for k in range(len(args) - len(self.names))]
        twice = [name for name in names if name in kwargs]
        if twice:
            raise TypeError(f"{caller}: the argument {twice[0]} is given by position and by name")
        return {**dict(zip(names, args, strict=True)), **kwargs}

    def to_json(self, *, places: bool = True) -> dict[str, Any]:
        """Return the signature in terms of JSON; ``places`` in the user's code do not count."""
        return {
            "names": list(self.names),
            "rest": self.rest,
            "defaults": [default.to_json() for default in self.defaults],
            "arguments": [argument.to_json() for argument in self.arguments],
            "results": self.results.to_json(),
            "conditions": [[c.text, c.place if places else ""] for c in self.conditions],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Signature:
        """Return the signature that ``to_json`` gave this for.

        Raises:
            ValueError: it is not of that form.
        """
        try:
            return cls(
                tuple(map(str, data["names"])),
                str(data["rest"]),
                tuple([Argument.from_json(default) for default in data["defaults"]]),
                tuple([Argument.from_json(argument) for argument in data["arguments"]]),
                Structure.from_json(data["results"]),
                tuple([Condition(str(text), str(place)) for text, place in data["conditions"]]),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"this is not a signature that was written here: {error!r}") from error


def _same(x: Any, y: Any) -> bool:
    """Say whether a value is one that is part of a program; arrays are none. NaN is NaN."""
    if isinstance(x, np.generic):
        x = x.item()
    return type(x) is type(y) and repr(x) == repr(y)


def _check_constant(what: str, given: Any, constant: Any) -> None:
    if not _same(given, constant):
        way = "import the module anew with that"
        if isinstance(given, Value) and isinstance(constant, (bool, int, float)):
            way = "give it as a number of Python, outside of what a transformation maps or compiles"
        raise ValueError(
            f"{what} is part of the program: it was {constant!r} in the example that the module "
            f"was imported with, and is {given!r} now; {way}"
        )


def _check_default(caller: str, argument: Argument, default: Argument | None) -> None:
    """Raise if leaving an argument out is not what the example was."""
    if default is None or argument.has_arrays:
        raise TypeError(f"{caller}: the argument {argument.name} is missing")
    if not argument.is_like(default.value):
        raise ValueError(
            f"{caller}: {argument.name} is part of the program: it was {argument.value!r} in the "
            f"example that the module was imported with, and is left out now, which means "
            f"{default.value!r}; give it, or import the module anew without it"
        )


def _as_input(what: str, leaf: Any, wanted: Input) -> Any:
    if wanted.type is None:
        return leaf
    if leaf is None or isinstance(leaf, str):
        raise TypeError(f"{what}: expected an array, got {leaf!r}")
    value = as_value(leaf, what.partition(":")[0], what.partition(": ")[2])
    shape = wanted.type.shape
    fits = len(shape) == value.ndim and all(
        [not isinstance(n, int) or n == m for n, m in zip(shape, value.shape, strict=True)]
    )
    if not fits:
        sizes = ", ".join([str(n) if isinstance(n, int) else "any" for n in shape])
        raise ValueError(
            f"{what}: expected the shape ({sizes}), got {value.shape}. The program was exported "
            f"for these sizes, since the module asks for them or the example had one along an "
            f"axis: import the module anew with another example, of two or more along axes that "
            f"are to be of any size"
        )
    return _of_kind(what, value, dtype_of(wanted.type.dtype))


def _of_kind(what: str, value: Any, dtype: np.dtype) -> Any:
    """Return the argument in the program's dtype.

    The program's operations have the dtypes that the example led to, so what such a dtype cannot
    hold would be lost on the way: fractions among integers, imaginary parts among real numbers.
    """
    if _RANKS[kind_of(value.dtype)] > _RANKS[kind_of(dtype)]:
        raise TypeError(
            f"{what}: expected {dtype}, as in the example that the module was imported with, got "
            f"{value.dtype}: convert it, or import the module anew with such an example"
        )
    return value if value.dtype == dtype else convert(value, dtype)


def _sizes_of(
    inputs: Sequence[Input], labels: Sequence[str], values: Sequence[Any]
) -> list[tuple[str, str, int, Any]]:
    """Return each axis whose size is no number: that as text, the argument, the axis, its size."""
    found = []
    for wanted, label, value in zip(inputs, labels, values, strict=True):
        if wanted.type is not None:
            for axis, text in enumerate(wanted.type.shape):
                if isinstance(text, str):
                    found.append((text, label, axis, value.shape[axis]))
    return found


def _check_sizes(
    caller: str, axes: Sequence[tuple[str, str, int, Any]], conditions: Sequence[Condition]
) -> None:
    """Sizes of one name are equal, computed ones are what they should be, and conditions hold."""
    sizes = bind([((text,), (n,)) for text, _, _, n in axes])
    where: dict[str, str] = {}
    for text, label, axis, _ in axes:
        if text.isidentifier():
            where.setdefault(text, f"{label}.shape[{axis}]")
    for text, label, axis, n in axes:
        if text.isidentifier():
            if sizes[text] != n:
                raise ValueError(
                    f"{caller}: axis {axis} of {label} has size {n}, and {where[text]} is "
                    f"{sizes[text]}: they must be equal"
                )
        elif not names(text) <= sizes.keys() or value_of(text, sizes) != n:
            raise ValueError(
                f"{caller}: axis {axis} of {label} has size {n}, and must have "
                f"{_in_words(text, where)}"
            )
        if isinstance(n, int) and n == 0:
            raise ValueError(
                f"{caller}: axis {axis} of {label} has size 0, and the program holds for one or "
                f"more: import the module anew with an example that has nothing along it"
            )
    for condition in conditions:
        if not value_of(condition.text, sizes):
            found = [f"{where[x]} is {sizes[x]}" for x in sorted(names(condition.text) & {*where})]
            place = f" ({condition.place})" if condition.place else ""
            raise ValueError(
                f"{caller}: the program holds for {_in_words(condition.text, where)}{place}, and "
                f"{', '.join(found)}: import the module anew with an example of such sizes"
            )


def _in_words(text: str, where: Mapping[str, str]) -> str:
    """Return an expression of sizes with axes in place of names, or n where no axis is the size."""
    sizes = names(text)
    return re.sub(r"\w+", lambda x: where.get(x[0], "n") if x[0] in sizes else x[0], text)


WAYS = ("refuse", "return", "ignore")
"""The ways to treat an argument that is written to."""

_NAMES = "celu elu hardsigmoid hardswish hardtanh leaky_relu mish relu relu6 selu sigmoid silu tanh"
_ACTIVATIONS = {f"aten.{name}.default" for name in _NAMES.split()}
_LAYER = re.compile(
    r"\((\w*Dropout\w*|\w*ReLU6?|C?ELU|GELU|Hard\w+|Mish|SELU|SiLU|Sigmoid|Tanh|Threshold)\), "
)
"""A pattern for the place of an operation that finds PyTorch's layers that work in place."""


def with_written(
    graph: Graph, signature: Signature, way: str, caller: str
) -> tuple[Graph, Signature]:
    """Return the program whose outputs of the kind ``"written"`` are results, or are not there.

    With ``"return"`` the results are a pair: those of the module, and a dictionary of the arguments
    that it writes into, as it leaves them, nested as they are given.

    It warns of activations in place, the way being ``"refuse"``, and leaves out what they write.

    Raises:
        NotImplementedError: the way is ``"refuse"``, and what else is written is not among the
            results.
    """
    written = {out.name: out.value for out in graph.outputs if out.kind == "written"}
    rest = tuple([out for out in graph.outputs if out.kind != "written"])
    if not written:
        return graph, signature
    results = [out.value for out in rest if out.kind == "result"]
    lost = {name for name, value in written.items() if value not in results}
    leaves = list(_leaves(graph, signature))
    arguments = dict.fromkeys([argument for argument, name, _ in leaves if name in written])
    scratch = {name for name in lost if _is_scratch(graph, name, written[name])}
    named_by = lambda names: ", ".join(dict.fromkeys([a for a, name, _ in leaves if name in names]))
    if way == "refuse" and lost and lost == scratch:
        warnings.warn(
            f"{caller} writes an activation into its argument {named_by(scratch)} (inplace=True), "
            f"and arrays never change here: the result is the same, and the argument stays as it "
            f"is. writes='ignore' says that this is meant, writes='return' gives what is written",
            stacklevel=user_stack_level(),
        )
    elif way == "refuse" and lost:
        named = named_by(lost - scratch)
        raise NotImplementedError(
            f"{caller} writes into its argument {named}, and arrays never change here: return it "
            f"from forward, or give writes='return', and calls give the result and a dictionary "
            f"of the new arguments; writes='ignore' gives the result alone"
        )
    graph = dataclasses.replace(graph, outputs=rest)
    if way != "return":
        return graph, signature
    more = [
        Output("result", "", written.get(name, value))
        for argument, name, value in leaves
        if argument in arguments
    ]
    nested = tuple([a.structure for a in signature.arguments if a.name in arguments])
    results = Structure(
        "tuple",
        children=(signature.results, Structure("dict", keys=tuple(arguments), children=nested)),
    )
    return (
        dataclasses.replace(graph, outputs=(*rest, *more)),
        dataclasses.replace(signature, results=results),
    )


def _is_scratch(graph: Graph, name: str, value: object) -> bool:
    """Say whether what is written into an argument is an activation of it."""
    while isinstance(value, Ref) and value.index >= len(graph.inputs):
        node = graph.nodes[value.index - len(graph.inputs)]
        if _LAYER.search(node.place):
            return True
        if node.op not in _ACTIVATIONS:
            return False
        value = node.args[0]
    return isinstance(value, Ref) and graph.inputs[value.index].name == name


def _leaves(graph: Graph, signature: Signature) -> Iterator[tuple[str, str, object]]:
    """Yield each leaf of the arguments: whose it is, the name of its input, and its value."""
    inputs = iter([(k, x) for k, x in enumerate(graph.inputs) if x.kind == "argument"])
    for argument in signature.arguments:
        for constant in argument.constants:
            if constant:
                yield argument.name, "", constant[0]
            else:
                k, x = next(inputs)
                yield argument.name, x.name, Ref(k)
