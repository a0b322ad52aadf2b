"""A graph with its signature and constants: what an imported module runs in one mode.

Programs are static: equal ones are equal, and hash alike, so that modules of one architecture can
be stacked. Next, read ``module``.
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
from stretto.torch.graph import Graph
from stretto.torch.run import check, dtype_of, run
from stretto.torch.signature import Signature

__all__ = ["Program"]


@dataclasses.dataclass(frozen=True, eq=False)
class Program:
    """What an imported module computes.

    Args:
        graph: the operations.
        signature: how it is called.
        constants: the arrays that are neither parameters nor buffers, by name.
    """

    graph: Graph
    signature: Signature
    constants: Mapping[str, np.ndarray]

    @functools.cached_property
    def digest(self) -> str:
        """A hash of all of it."""
        whole = hashlib.sha256(self.graph.digest.encode())
        whole.update(json.dumps(self.signature.to_json(), sort_keys=True).encode())
        for name, array in sorted(self.constants.items()):
            whole.update(f"{name} {array.dtype} {array.shape} ".encode())
            whole.update(array.tobytes())
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
        inputs = self.graph.inputs
        wanted = [x for x in inputs if x.kind == "argument"]
        given = iter(self.signature.leaves(caller, wanted, args, kwargs))
        values: list[Any] = []
        for x in inputs:
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
        return {"graph": self.graph.to_json(), "signature": self.signature.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], constants: Mapping[str, np.ndarray]) -> Program:
        """The program that ``to_json`` gave this for.

        Raises:
            ValueError: it is not of that form, or lacks constants.
        """
        if not isinstance(data, Mapping) or not {"graph", "signature"} <= data.keys():
            raise ValueError("this is not a program that was written here")
        graph, signature = Graph.from_json(data["graph"]), Signature.from_json(data["signature"])
        lacking = [x.name for x in graph.inputs if x.kind == "constant" and x.name not in constants]
        if lacking:
            raise ValueError(f"the program's constants are not there: {', '.join(lacking)}")
        return cls(graph, signature, constants)
