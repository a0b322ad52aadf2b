"""A graph with its signature and constants: what an imported module runs in one mode.

Programs are static: equal ones are equal, and hash alike, so that modules of one architecture can
be stacked.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import stretto.numpy as snp
from stretto.torch.programs.run_graph import SQUEEZES, check, dtype_of, run
from stretto.torch.programs.signature import Signature
from stretto.torch.programs.symbolic_sizes import names, value_of
from stretto.torch.programs.torch_graph import Graph, Node

_SINGLE = "single."
"""What names of constants begin with that the program for one example has."""


@dataclasses.dataclass(frozen=True, eq=False)
class Program:
    """What an imported module computes.

    Args:
        graph: the operations.
        signature: how it is called.
        constants: the arrays that are neither parameters nor buffers, by name.
        single: the program for one example, where it differs; its constants are among these.
    """

    graph: Graph
    signature: Signature
    constants: Mapping[str, np.ndarray]
    single: Program | None = None

    @functools.cached_property
    def digest(self) -> str:
        """A hash of all of it."""
        whole = hashlib.sha256(self.graph.digest.encode())
        whole.update(json.dumps(self.signature.to_json(places=False), sort_keys=True).encode())
        for name, array in sorted(self.constants.items()):
            whole.update(f"{name} {array.dtype} {array.shape} ".encode())
            whole.update(array.tobytes())
        if self.single is not None:
            whole.update(self.single.digest.encode())
        return whole.hexdigest()

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Program) and self.digest == other.digest)

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"<Program of {len(self.graph.nodes)} operations, {self.digest[:8]}>"

    def check(self, caller: str) -> None:
        """Raise ``NotImplementedError`` if an operation has no function here; it names all."""
        check(self.graph, caller)
        if self.single is not None:
            self.single.check(caller)

    def with_single(self, other: Program) -> Program:
        """The program that runs another for calls with one example."""
        inputs = [
            dataclasses.replace(x, name=f"{_SINGLE}{x.name}") if x.kind == "constant" else x
            for x in other.graph.inputs
        ]
        named = {f"{_SINGLE}{name}": array for name, array in other.constants.items()}
        constants = {**self.constants, **named}
        graph = dataclasses.replace(other.graph, inputs=tuple(inputs))
        single = Program(graph, other.signature, constants)
        return Program(self.graph, self.signature, constants, single)

    def __call__(
        self,
        caller: str,
        array_of: Callable[[str], Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> tuple[Any, dict[str, Any]]:
        """The results of a call, and the buffers that it updates, by name.

        ``array_of`` gives parameters and buffers by name. Raises what ``Signature.leaves`` does.
        """
        if self.single is not None:
            try:
                leaves = self.single._leaves(caller, args, kwargs)
            except (TypeError, ValueError):  # which this program words better
                pass
            else:
                return self.single._run(leaves, array_of)
        return self._run(self._leaves(caller, args, kwargs), array_of)

    def _leaves(self, caller: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        wanted = [x for x in self.graph.inputs if x.kind == "argument"]
        return self.signature.leaves(caller, wanted, args, kwargs)

    def _run(
        self, leaves: Sequence[Any], array_of: Callable[[str], Any]
    ) -> tuple[Any, dict[str, Any]]:
        given = iter(leaves)
        values: list[Any] = []
        for x in self.graph.inputs:
            if x.kind == "argument":
                value = next(given)
            elif x.kind == "constant":
                array = self.constants[x.name]
                value = snp.asarray(array, dtype_of(array.dtype.name))
            else:
                value = array_of(x.name)
            values.append(value)
        outputs = run(self.graph, values)
        kinds = self.graph.outputs
        results = [v for v, about in zip(outputs, kinds, strict=True) if about.kind == "result"]
        updates = {
            about.name: value
            for value, about in zip(outputs, kinds, strict=True)
            if about.kind == "buffer"
        }
        return self.signature.results.filled(iter(results)), updates

    def to_json(self) -> dict[str, Any]:
        """Graph and signature in terms of JSON; the constants are saved beside them."""
        return {
            "graph": self.graph.to_json(),
            "signature": self.signature.to_json(),
            "single": self.single and self.single.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], constants: Mapping[str, np.ndarray]) -> Program:
        """The program that ``to_json`` gave this for.

        Raises:
            ValueError: it is not of that form, or lacks constants.
        """
        if not isinstance(data, Mapping) or not {"graph", "signature", "single"} <= data.keys():
            raise ValueError("this is not a program that was written here")
        graph, signature = Graph.from_json(data["graph"]), Signature.from_json(data["signature"])
        lacking = [x.name for x in graph.inputs if x.kind == "constant" and x.name not in constants]
        if lacking:
            raise ValueError(f"the program's constants are not there: {', '.join(lacking)}")
        single = data["single"] and cls.from_json(data["single"], constants)
        return cls(graph, signature, constants, single)


def differs_for_one(graph: Graph, signature: Signature) -> bool:
    """Whether a program for two or more examples may not be that for one.

    Its conditions exclude one, or it squeezes an axis away that has one then.
    """
    texts = [n for x in graph.inputs if x.type for n in x.type.shape if isinstance(n, str)]
    ones = {name: 1 for text in texts for name in names(text)}
    try:
        excluded = [not value_of(condition.text, ones) for condition in signature.conditions]
    except ArithmeticError:
        return True
    return any(excluded) or any([_squeezes_one(graph, node, ones) for node in graph.nodes])


def _squeezes_one(graph: Graph, node: Node, ones: Mapping[str, int]) -> bool:
    if node.op not in SQUEEZES:
        return False
    type = graph.type_at(node.args[0].index)
    if type is None or not type.shape:  # a number has axis 0 for PyTorch
        return False
    axes = node.args[1] if len(node.args) > 1 else range(len(type.shape))
    sizes = [type.shape[axis] for axis in ([axes] if isinstance(axes, int) else axes)]
    written = [n for n in sizes if isinstance(n, str) and names(n) <= ones.keys()]
    return any([value_of(text, ones) == 1 for text in written])
