"""Make one operation of a product and what follows it, for kernels that do it all at once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from stretto._engine.core.program import Atom, Equation, Literal, Program
from stretto._engine.core.rewriting import drop_dead, remember, with_equations
from stretto._engine.kernels import multiplies
from stretto._engine.ops.arithmetic import Add
from stretto._engine.ops.comparison import Le, Select
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.fused_product import FusedProduct
from stretto._engine.ops.layout import Transpose


def fuse_products(program: Program) -> Program:
    """Return the program with products that have the next operations in them.

    These are a transpose, a sum with another array, such as a bias or a residual, and a cut at
    zero, each where nothing else reads what comes before it. What compares that with zero, as a
    derivative does, compares the result.

    >>> from stretto._engine.api.graph import make_graph
    >>> import stretto.numpy as snp
    >>> from stretto import nn
    >>> layer = lambda w, b, x: nn.functional.relu(x @ w + b)
    >>> graph = make_graph(layer)(snp.ones((3, 2)), snp.ones(2), snp.ones((4, 3)))
    >>> print(fuse_products(graph))
    { function(a:f32[3,2], b:f32[2], c:f32[4,3])
      d:f32[4,2] = broadcast_in_dim b [shape=(4, 2), dims=(1,)]
      e:f32[4,2] = fused_product c a d [product=..., order=(0, 1), relu=True]
      return e }
    """
    return remember(program, "fused products", _fused)


def _fused(program: Program) -> Program:
    if not any([e.primitive.__class__ is DotGeneral for e in program.equations]):
        return program
    uses = Counter([a for e in program.equations for a in {*e.inputs}])
    uses.update(set(program.outputs))
    readers: dict[Atom, list[Equation]] = {}
    for e in program.equations:
        for a in {*e.inputs}:
            readers.setdefault(a, []).append(e)
    place = {v: n for n, e in enumerate(program.equations) for v in e.outputs}
    updates = _updates(program, uses, place)
    replaced: dict[int, list[Equation]] = {}
    gone: set[int] = set()
    for e in program.equations:
        if not _is_product(e):
            continue
        chain = _Chain(e)
        while chain.extended(uses, readers, place, gone | updates):
            pass
        if len(chain.equations) > 1:
            last = place[chain.value]
            gone.update([place[one.outputs[0]] for one in chain.equations])
            replaced[last] = [chain.fused(), *chain.compared]
    if not replaced:
        return program
    equations = []
    for n, e in enumerate(program.equations):
        equations += replaced.get(n, () if n in gone else (e,))
    return drop_dead(with_equations(program, equations))


def _updates(program: Program, uses: Counter[Atom], place: dict[Any, int]) -> set[int]:
    """Return the places of sums that leave the program, of a part of an input and something else.

    What an optimizer keeps is such a sum. To add the part in a product it would have to be stored,
    and the sum would not be computed with what updates the weights (``fuse_updates``).
    """
    outputs, inputs = {*program.outputs}, {*program.inputs}
    found = set()
    for n, e in enumerate(program.equations):
        if isinstance(e.primitive, Add) and e.outputs[0] in outputs:
            same = {v for v in inputs if v.type.shape == e.outputs[0].type.shape}
            parts = [program.equations[place[a]] for a in e.inputs if a in place and uses[a] == 1]
            if any([p.primitive.splat and not same.isdisjoint(p.inputs) for p in parts]):
                found.add(n)
    return found


def _is_product(e: Equation) -> bool:
    primitive = e.primitive
    return (
        isinstance(primitive, DotGeneral)
        and primitive.precision is None
        and multiplies(*[a.type.dtype for a in (*e.inputs, *e.outputs)])
    )


class _Chain:
    """A product, and the operations after it that it takes in."""

    def __init__(self, product: Equation) -> None:
        self.product = product
        self.equations = [product]
        self.value: Any = product.outputs[0]
        self.order = tuple(range(self.value.type.ndim))
        self.added: list[Atom] = []
        self.relu = False
        self.compared: list[Equation] = []

    def extended(
        self,
        uses: Counter[Atom],
        readers: dict[Atom, list[Equation]],
        place: dict[Any, int],
        gone: set[int],
    ) -> bool:
        """Take in the next operation, if it is one of those; say whether it was.

        A sum of two products is taken in by the first: it is ``gone`` then.
        """
        following = readers.get(self.value, [])
        if self.relu or any([place[v] in gone for e in following for v in e.outputs]):
            return False
        if uses[self.value] == len(following) == 2:
            return self._cut(following, readers, uses, place)
        if not uses[self.value] == len(following) == 1:
            return False
        (e,) = following
        primitive = e.primitive
        if isinstance(primitive, Transpose) and not self.added:
            self.order = tuple([self.order[axis] for axis in primitive.permutation])
        elif isinstance(primitive, Add) and not self.added and len({*e.inputs}) == 2:
            (other,) = [a for a in e.inputs if a is not self.value]
            if isinstance(other, Literal) or other.type != self.value.type:
                return False
            self.added.append(other)
        else:
            return False
        self.equations.append(e)
        self.value = e.outputs[0]
        return True

    def _cut(
        self,
        following: list[Equation],
        readers: dict[Atom, list[Equation]],
        uses: Counter[Atom],
        place: dict[Any, int],
    ) -> bool:
        """Take in ``select(value <= 0, 0, value)``, and have others that compare do so later."""
        comparison, choice = sorted(following, key=lambda e: place[e.outputs[0]])
        if not (isinstance(comparison.primitive, Le) and isinstance(choice.primitive, Select)):
            return False
        x, zero = comparison.inputs
        mask = comparison.outputs[0]
        if x is not self.value or not _is_zero(zero) or choice.inputs[0] is not mask:
            return False
        if not (_is_zero(choice.inputs[1]) and choice.inputs[2] is self.value):
            return False
        if any([place[e.outputs[0]] < place[choice.outputs[0]] for e in readers[mask]]):
            return False
        self.relu = True
        self.equations += [comparison, choice]
        self.value = choice.outputs[0]
        if uses[mask] > 1:  # the result is above zero where the value is
            again = Equation(comparison.primitive, (self.value, zero), (mask,), comparison.place)
            self.compared.append(again)
        return True

    def fused(self) -> Equation:
        """Return the operation that does it all."""
        primitive = FusedProduct(self.product.primitive, self.order, self.relu)  # type: ignore
        inputs = (*self.product.inputs, *self.added)
        return Equation(primitive, inputs, (self.value,), self.product.place)


def _is_zero(a: Any) -> bool:
    return isinstance(a, Literal) and not a.value and not np.signbit(a.value)
