"""Portable artifacts of StableHLO as text that another module can take in.

An artifact is a module as bytes. To be called from a program of ours it becomes text of functions
whose names nobody else has, since they begin with a digest of the bytes. What it may not have in it
is refused by name: operations of other dialects than those of programs, and custom calls but for
those on a list, since such a call runs native code under the name that the file gives.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from stretto._engine.lowering.portable import ALLOWED
from stretto._engine.xla import pjrt

_DIALECTS = ("builtin", "func", "stablehlo", "chlo")
"""The dialects whose operations a module may have."""

_SHAPE = "shape_assertion"


class Functions(NamedTuple):
    """A module as functions to be called from another one."""

    text: str
    """The functions, each private."""
    main: str
    """The name of the one to call."""
    inputs: tuple[str, ...]
    """The types of its arguments, in MLIR."""
    outputs: tuple[str, ...]
    """The types of its results."""
    targets: tuple[str, ...]
    """The custom calls that they make."""


def functions_of_artifact(content: bytes) -> Functions:
    """Return the functions of an artifact; see ``pjrt.module_of_artifact`` for its dangers.

    Raises ``ValueError`` if it is none, or has in it what is refused.
    """
    ir, module = pjrt.module_of_artifact(content)
    return _functions(ir, module, _prefix(content))


def text_of_artifact(content: bytes) -> str:
    """Return the text of an artifact, without positions; see ``functions_of_artifact``."""
    _, module = pjrt.module_of_artifact(content)
    return module.operation.get_asm(enable_debug_info=False)


def functions_at(functions: Functions, inputs: Iterable[str], outputs: Iterable[str]) -> Functions:
    """Return the same module for arguments of these types, where those that it has are not fixed.

    Raises ``ValueError`` if it does not take them, or does not give these results.
    """
    inputs, outputs = tuple(inputs), tuple(outputs)
    text = _calling(functions, inputs, outputs)
    ir, module = pjrt.with_fixed_shapes(text)
    return _functions(ir, module, _prefix(text.encode()))


def _calling(functions: Functions, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> str:
    """Return the module of the functions, with a ``main`` of these types, which calls theirs."""
    lines, names = [], []
    for k, (given, taken) in enumerate(zip(inputs, functions.inputs, strict=True)):
        names.append(f"%arg{k}" if given == taken else f"%in{k}")
        if given != taken:
            lines.append(f"%in{k} = stablehlo.convert %arg{k} : ({given}) -> {taken}")
    results = [f"%r#{k}" for k in range(len(outputs))]
    signature = f"({', '.join(functions.inputs)}) -> ({', '.join(functions.outputs)})"
    bind = f"%r:{len(outputs)} = " if outputs else ""
    lines.append(f"{bind}func.call @{functions.main}({', '.join(names)}) : {signature}")
    for k, (given, taken) in enumerate(zip(functions.outputs, outputs, strict=True)):
        if given != taken:
            lines.append(f"%out{k} = stablehlo.convert {results[k]} : ({given}) -> {taken}")
            results[k] = f"%out{k}"
    end = f"return {', '.join(results)} : {', '.join(outputs)}" if outputs else "return"
    head = ", ".join([f"%arg{k}: {type}" for k, type in enumerate(inputs)])
    body = "\n".join([*lines, end])
    return (
        f"module {{\nfunc.func public @main({head}) -> ({', '.join(outputs)}) {{\n{body}\n}}\n"
        f"{functions.text}\n}}\n"
    )


def as_module(functions: Functions) -> str:
    """Return the text of a module whose ``main`` calls that of the functions."""
    return _calling(functions, functions.inputs, functions.outputs)


def _prefix(content: bytes) -> str:
    return f"m{hashlib.blake2b(content, digest_size=8).hexdigest()}_"


def _functions(ir: Any, module: Any, prefix: str) -> Functions:
    """Rename the functions of a module, and write them down."""
    targets = {}
    found: dict[str, Any] = {}
    _drop_shardings(ir, module)
    for operation in _operations(module.operation):
        name = str(operation.name)
        if name.partition(".")[0] not in _DIALECTS:
            raise ValueError(f"the module has the operation {name}")
        if name == "stablehlo.custom_call":
            target = ir.StringAttr(operation.attributes["call_target_name"]).value
            if target not in ALLOWED:
                raise ValueError(f"the module has the custom call {target!r}")
            targets[target] = None
    for operation in module.body.operations:
        if str(operation.operation.name) != "func.func":
            raise ValueError(f"the module has {operation.operation.name} beside its functions")
        found[ir.StringAttr(operation.attributes["sym_name"]).value] = operation
    if "main" not in found:
        raise ValueError("the module has no function main")
    with module.context, ir.Location.unknown():
        for k, (name, function) in enumerate(found.items()):
            new = prefix + ("main" if name == "main" else f"{k}")
            ir.SymbolTable.replace_all_symbol_uses(name, new, module.operation)
            ir.SymbolTable.set_symbol_name(function, new)
            function.attributes["sym_visibility"] = ir.StringAttr.get("private")
            for key in ("arg_attrs", "res_attrs"):
                if key in function.attributes:
                    del function.attributes[key]
    type = ir.FunctionType(
        ir.TypeAttr(found["main"].attributes["function_type"]).value  # type: ignore[attr-defined]
    )
    text = "\n".join(
        [
            function.operation.get_asm(enable_debug_info=False, use_local_scope=True)
            for function in found.values()
        ]
    )
    return Functions(
        text,
        prefix + "main",
        tuple([str(t) for t in type.inputs]),
        tuple([str(t) for t in type.results]),
        tuple([t for t in targets if t != _SHAPE]),
    )


def _drop_shardings(ir: Any, module: Any) -> None:
    """Drop what says where arrays are: of one device there is nothing to say."""
    for operation in [*_operations(module.operation)]:
        name = str(operation.name)
        target = None
        if name == "stablehlo.custom_call":
            target = ir.StringAttr(operation.attributes["call_target_name"]).value
        if name == "sdy.sharding_constraint" or (target == "Sharding" and len(operation.operands)):
            operation.results[0].replace_all_uses_with(operation.operands[0])
            operation.erase()
        elif name == "sdy.mesh":
            operation.erase()


def _operations(operation: Any) -> Iterator[Any]:
    """Yield an operation, and all that are in its regions."""
    waiting = [operation]
    while waiting:
        one = waiting.pop()
        yield one
        for region in one.regions:
            for block in region.blocks:
                waiting.extend([inner.operation for inner in block.operations])


def is_fixed(types: Iterable[str]) -> bool:
    """Say whether no type has an axis whose size is not known."""
    return not any(["?" in type for type in types])
