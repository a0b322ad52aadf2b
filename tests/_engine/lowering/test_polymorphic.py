"""Modules whose sizes vary: how sizes are found, and what is refused."""

import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.errors import ExportError
from stretto._engine.core.size_guards import Guard, varying_sizes
from stretto._engine.core.sizes import size_variable
from stretto._engine.lowering.polymorphic import lower_for_file
from stretto._engine.xla import artifacts, pjrt

B, C = size_variable("b"), size_variable("c")


def functions_of(fun, *shapes, guards=()):
    with varying_sizes():
        program = st.make_graph(fun)(*[st.ShapeDtypeStruct(s, "float32") for s in shapes])
    text = lower_for_file(program, (), ("cpu",), guards=guards)
    return artifacts.functions_of_artifact(pjrt.portable_artifact(text, "1.13.7"))


def at(functions, inputs, outputs):
    type = lambda shape: "tensor<" + "".join([f"{n}x" for n in shape]) + "f32>"
    return artifacts.functions_at(functions, [*map(type, inputs)], [*map(type, outputs)])


def test_variables_are_read_off_sums_and_products():
    functions = functions_of(lambda x, y: snp.ones((B, C)), (2 * B + C,), (C,))
    assert at(functions, [(11,), (5,)], [(3, 5)])
    with pytest.raises(ValueError, match=r"must be 2\*b\+c"):
        at(functions, [(12,), (5,)], [(3, 5)])


def test_a_quotient_is_rounded_down_also_below_zero():
    size = (B - 5) // 2 + 10
    functions = functions_of(lambda x: snp.ones((size,)), (B,))
    for n in (1, 2, 4, 5, 6, 7):
        assert at(functions, [(n,)], [((n - 5) // 2 + 10,)])


def test_guards_are_asserted():
    functions = functions_of(snp.sin, (B,), guards=[Guard(B, 4, True)])
    assert at(functions, [(3,)], [(3,)])
    with pytest.raises(ValueError, match=r"exported for b < 4"):
        at(functions, [(4,)], [(4,)])


def test_sizes_that_no_shape_gives_are_refused():
    with pytest.raises(ExportError, match="what the size b is does not follow"):
        functions_of(snp.sin, (B * B,))


def test_what_numbers_alone_can_say_is_refused():
    with pytest.raises(ExportError, match="where StableHLO has numbers alone"):
        functions_of(snp.fft.fft, (B,))
    with pytest.raises(
        ExportError, match="lapack_sgetrf_ffi is called for arrays whose sizes vary"
    ):
        functions_of(snp.linalg.inv, (B, 3, 3))
