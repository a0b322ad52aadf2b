"""The convolutions, products and formulas of a program as it is lowered, and the form of each.

The forms are asked of the functions that the lowering and the runtime ask.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from stretto._engine.api.explain.words import short, where
from stretto._engine.core.position import Position
from stretto._engine.core.program import Equation, Program
from stretto._engine.higher_order.scan import Scan
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.convolution.formulation import formulation
from stretto._engine.ops.convolution.general import ConvGeneralDilated
from stretto._engine.passes.formulations.mapped import Mapped
from stretto._engine.xla.options import Libraries

_MOST = 10
"""The most convolutions that are printed."""


@dataclasses.dataclass(frozen=True)
class Convolution:
    """A convolution of the program: where it is, what it is, and how it is computed."""

    position: str
    geometry: str
    formulation: str
    reason: str
    count: int
    """The number of them; one in a ``scan`` counts once for each step."""


@dataclasses.dataclass(frozen=True)
class Products:
    """The products of the program, and who computes them."""

    count: int
    library: str
    """``"YNNPACK"`` or ``"Eigen"``."""
    reason: str


@dataclasses.dataclass(frozen=True)
class StableForm:
    """A formula of the program that is computed in another way: where, and how in words."""

    position: str
    form: str


def stable_forms_of(program: Program) -> tuple[StableForm, ...]:
    """Return what was noted while it and those in it were traced, each once for a line."""
    found = {
        StableForm(where(None if place is None else Position(*place)), words): None
        for words, place in program.cache.get("noted", ())
    }
    for equation in program.equations:
        primitive: Any = equation.primitive
        for inner in primitive.programs() if primitive.holds_programs else ():
            found.update(dict.fromkeys(stable_forms_of(inner)))
    return tuple(found)


def stable_lines(forms: tuple[StableForm, ...]) -> list[str]:
    """These as lines of text."""
    if not forms:
        return []
    entries = [f"{form.form}  {form.position}" for form in forms]
    return ["computed so that digits stay (config.stable_forms):", *short(entries, _MOST)]


def convolutions_of(program: Program) -> tuple[Convolution, ...]:
    """Return the convolutions of a prepared program, equal ones of a line together."""
    found: dict[Convolution, int] = {}
    for equation, count in operations(program, 1):
        op: Any = equation.primitive
        if isinstance(op, ConvGeneralDilated):
            lhs, rhs = [a.type for a in equation.inputs]
            chosen = formulation(op, lhs, rhs, equation.outputs[0].type)
            one = Convolution(
                where(equation.position),
                _geometry(op, lhs.shape, rhs.shape),
                chosen.name,
                chosen.reason,
                0,
            )
            found[one] = found.get(one, 0) + count
    return tuple([dataclasses.replace(one, count=n) for one, n in found.items()])


def products_of(program: Program, chosen: Libraries) -> Products:
    """Return the products of a prepared program, for what the runtime chose for its text."""
    count = sum(n for e, n in operations(program, 1) if isinstance(e.primitive, DotGeneral))
    return Products(count, "YNNPACK" if chosen.products else "Eigen", chosen.reason)


def formulation_lines(convolutions: tuple[Convolution, ...], products: Products) -> list[str]:
    """Return both as lines of text."""
    lines = []
    if convolutions:
        lines.append("convolutions, as they are lowered:")
        entries = []
        for c in convolutions:
            times = f" ×{c.count}" if c.count > 1 else ""
            entries.append(f"{c.position}: {c.geometry}{times}\n    {c.formulation}: {c.reason}")
        lines += short(entries, _MOST)
    if products.count:
        lines.append(f"products: {products.count}, by {products.library}: {products.reason}")
    return lines


def operations(program: Program, count: int) -> Iterator[tuple[Equation, int]]:
    """Return the equations that are lowered, those inside others too, and how often each is run."""
    for equation in program.equations:
        primitive: Any = equation.primitive
        if not primitive.holds_programs:
            yield equation, count
        elif isinstance(primitive, Mapped):
            yield from operations(primitive.plan()[0], count)
        else:
            steps = primitive.length if isinstance(primitive, Scan) else 1
            inlined = primitive.inlined()
            for inner in primitive.programs() if inlined is None else [inlined]:
                yield from operations(inner, count * steps)


def _geometry(op: Any, image: tuple[int, ...], kernel: tuple[int, ...]) -> str:
    """Kernel, stride, groups, image and features in words."""
    batch, features, *places = op.dims.lhs_spec
    window = [kernel[a] for a in op.dims.rhs_spec[2:]]
    parts = [f"kernel {_sides(window)}"]
    for name, sides in (
        ("stride", op.strides),
        ("dilation", op.rhs_dilation),
        ("image dilated", op.lhs_dilation),
    ):
        if any(n != 1 for n in sides):
            parts.append(f"{name} {_sides(sides)}")
    if op.feature_groups > 1:
        parts.append(f"{op.feature_groups} groups")
    if op.batch_groups > 1:
        parts.append(f"{op.batch_groups} groups of the batch")
    parts.append(f"image {_sides([image[a] for a in places])}, batch {image[batch]}")
    parts.append(f"features {image[features]} to {kernel[op.dims.rhs_spec[0]]}")
    return ", ".join(parts)


def _sides(sizes: Any) -> str:
    return "x".join(map(str, sizes)) or "of one element"
