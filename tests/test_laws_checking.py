"""Each law can fail: primitives broken on purpose, one for each law, are found out."""

from typing import ClassVar

import numpy as np
import pytest

import stretto.numpy as snp
from stretto._engine.core.errors import ProgramError
from stretto._engine.core.interpreter import Linear
from stretto._engine.core.primitive import CARRIED, NOT_LINEAR, Primitive
from stretto._engine.core.types import array_type
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.collective.primitives import PSum
from stretto._engine.ops.convert import convert
from stretto.laws import bf16, c64, check, f32, f64, i32, law


class Doubled(Primitive):
    """2 x, with every rule right."""

    padded = CARRIED

    def infer(self, x):
        return x

    def reference(self, x):
        return x + x

    def lower(self, b, x):
        return b.emit("add", x, x)

    def jvp(self, primals, tangents):
        return self(*primals), self(*tangents)

    def transpose(self, ct, x):
        return (self(ct),)

    def vmap(self, size, args, axes):
        return self(*args), axes[0]


class Cubed(Doubled):
    """x³, with every rule right; ``square`` is what its derivative is made of."""

    transpose = NOT_LINEAR
    square = staticmethod(lambda x: x * x)

    def reference(self, x):
        return x * x * x

    def lower(self, b, x):
        return b.emit("multiply", x, b.emit("multiply", x, x))

    def jvp(self, primals, tangents):
        (x,), (dx,) = primals, tangents
        return self(x), dx * self.square(x) * 3


class Product(Primitive):
    """x y, with every rule right."""

    padded = CARRIED

    def infer(self, x, y):
        return x

    def reference(self, x, y):
        return x * y

    def lower(self, b, x, y):
        return b.emit("multiply", x, y)

    def jvp(self, primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        parts = [self(dx, y)] if dx is not None else []
        parts += [self(x, dy)] if dy is not None else []
        return self(x, y), sum(parts[1:], parts[0])

    def transpose(self, ct, x, y):
        return (self(ct, y), None) if isinstance(x, Linear) else (None, self(x, ct))

    def vmap(self, size, args, axes):
        first = [
            snp.moveaxis(v, a, 0) if a is not None else broadcast_to(v, (size, *v.shape))
            for v, a in zip(args, axes, strict=True)
        ]
        return self(*first), 0


class WrongShape(Doubled):
    def infer(self, x):
        return x.with_shape((1, *x.shape))


class WrongCompiled(Doubled):
    def lower(self, b, x):
        return b.emit("multiply", x, x)


class WrongTangent(Cubed):
    def jvp(self, primals, tangents):
        (x,), (dx,) = primals, tangents
        return self(x), dx * x * x * 2


class TangentOfAnotherType(Cubed):
    def jvp(self, primals, tangents):
        (x,), (dx,) = primals, tangents
        return self(x), convert(dx * x * x * 3, np.dtype(np.float16))


class WrongCotangent(Doubled):
    def transpose(self, ct, x):
        return (ct * 3,)


class CotangentOfAnotherType(Doubled):
    def transpose(self, ct, x):
        return (convert(ct * 2, np.dtype(np.float16)),)


class WrongAxis(Doubled):
    def vmap(self, size, args, axes):
        return self(*args), 0


class WrongMapped(Doubled):
    def vmap(self, size, args, axes):
        return self(*args) * (1 + 1 / size), axes[0]


class WrongMappedDoubled(Doubled):
    """Right but for vmap, and used by a derivative alone."""

    def vmap(self, size, args, axes):
        return args[0] * size, axes[0]


class WrongDerivativeOfSquare(Doubled):
    """x², whose derivative is wrong; used by a derivative alone."""

    transpose = NOT_LINEAR

    def reference(self, x):
        return x * x

    def lower(self, b, x):
        return b.emit("multiply", x, x)

    def jvp(self, primals, tangents):
        (x,), (dx,) = primals, tangents
        return self(x), dx * x * 5


class OneWayProduct(Product):
    """A product whose transpose in the second factor is wrong: that shows at second order."""

    def transpose(self, ct, x, y):
        return (self(ct, y), None) if isinstance(x, Linear) else (None, self(x, ct) * 2)


class WrongCompiledJvp(Cubed):
    def jvp(self, primals, tangents):
        (x,), (dx,) = primals, tangents
        return self(x), WrongCompiled()(dx) * x * x * 1.5


class WrongCompiledVjp(Doubled):
    def transpose(self, ct, x):
        return (WrongCompiled()(ct),)


class WrongCompiledVmap(Doubled):
    def vmap(self, size, args, axes):
        return WrongCompiled()(*args), axes[0]


class WrongOutputs(Doubled):
    """Infers another type each time it is asked, which the checker of programs sees."""

    asked: ClassVar[list[int]] = []

    def out_types(self, types):
        self.asked.append(1)
        return (array_type(types[0].shape, types[0].dtype, len(self.asked) % 2 == 0),)


class SquareWithSlope(Cubed):
    square = WrongDerivativeOfSquare()


class ThroughMapped(Cubed):
    def jvp(self, primals, tangents):
        (x,), (dx,) = primals, tangents
        return self(x), WrongMappedDoubled()(dx) * x * x * 1.5


class ThroughProduct(Cubed):
    def jvp(self, primals, tangents):
        (x,), (dx,) = primals, tangents
        return self(x), OneWayProduct()(OneWayProduct()(dx, x), x) * 3


BROKEN = [
    (WrongShape, "inferred float32.* real float32"),
    (WrongCompiled, ": compiled$"),
    (WrongTangent, "jvp and difference quotient"),
    (TangentOfAnotherType, "the tangent's type differs"),
    (WrongCotangent, "not the adjoint"),
    (CotangentOfAnotherType, "the gradient's type differs"),
    (WrongAxis, r"vmap, in_axes="),
    (WrongMapped, r"vmap, in_axes="),
    (ThroughMapped, r"vmap, in_axes=.* of a derivative"),
    (SquareWithSlope, "second derivative and difference quotient"),
    (ThroughProduct, "reverse over forward"),
    (WrongCompiledJvp, "compiled jvp"),
    (WrongCompiledVjp, "compiled vjp"),
    (WrongCompiledVmap, r"vmap, in_axes=.*, compiled"),
]


@pytest.mark.parametrize("primitive, message", BROKEN, ids=lambda x: getattr(x, "__name__", ""))
def test_each_law_can_fail(primitive, message):
    with pytest.raises(AssertionError, match=f"(?sm){message}"):
        law(primitive, primitive(), f32(2, 3).within(0.5, 2)).check()


COMPILED = [row for row in BROKEN if "compiled" in row[1]]


@pytest.mark.parametrize("primitive, message", COMPILED, ids=lambda x: getattr(x, "__name__", ""))
def test_wrong_code_is_found_in_other_types_too(primitive, message):
    """There, the function's own program and those derived from it are compiled apart."""
    with pytest.raises(AssertionError, match=f"(?sm){message}"):
        law(primitive, primitive(), f64(2, 3).within(0.5, 2)).check()


@pytest.mark.parametrize("primitive, count", [(Doubled, 1), (Cubed, 1), (Product, 2)])
@pytest.mark.parametrize("kind", [f32, f64, bf16, c64, i32])
def test_right_primitives_pass(primitive, count, kind):
    law(primitive, primitive(), *[kind(2, 3)] * count).check()


def test_ill_formed_programs_are_found():
    with pytest.raises(ProgramError, match=r"outputs .* inferred"):
        law(WrongOutputs, WrongOutputs(), f32(2)).check()


def test_the_primitive_must_be_used():
    with pytest.raises(AssertionError, match="the function does not use it"):
        law(Cubed, Doubled(), f32(2)).check()


def test_options_leave_laws_out():
    narrow = f32(2, 3).within(0.5, 2)
    law(WrongTangent, WrongTangent(), narrow, derivative=False).check()
    law(WrongTangent, WrongTangent(), narrow, difference=False).check()
    law(WrongCotangent, WrongCotangent(), narrow, reverse=False).check()
    law(WrongMapped, WrongMapped(), narrow, mapped=False).check()
    law(SquareWithSlope, SquareWithSlope(), narrow, second=False).check()
    law(WrongMapped, WrongMapped(), narrow, factor=1e6, difference=False).check()


def test_laws_along_an_axis():
    """The function is of one example, and the primitive is looked for in its program."""
    law(PSum, PSum("i", 4), f32(4, 2), along="i").check()
    with pytest.raises(AssertionError, match="the function does not use it"):
        law(PSum, lambda x: x * 2, f32(4, 2), along="i").check()


def test_check_takes_many_cases():
    check(lambda x, y: x * y, [(f32(2), f32(2)), (i32(), np.array(3))])
    check(lambda x: x + 1, [f32(2), np.arange(3.0)])
    with pytest.raises(AssertionError):
        check(WrongCompiled(), [f32(3)])


def test_a_law_says_what_it_checks():
    assert str(law(Cubed, Cubed(), f32(2, 3), np.arange(3))) == "cubed(float32[2, 3], int64[3])"
    assert str(law(None, np.sin, bf16())) == "sin(bfloat16[])"
