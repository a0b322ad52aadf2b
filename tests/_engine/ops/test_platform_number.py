"""The number of the platform that a program is compiled for: not known before that."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.api.graph import make_graph
from stretto._engine.lowering.polymorphic import lower_for_file
from stretto._engine.ops.platform_number import PlatformNumber, number_of
from stretto._engine.passes.simplify import simplify
from stretto.laws import f32, law

LAWS = [law(PlatformNumber, lambda x: x * PlatformNumber(("tpu", "cpu"), False)(), f32(2, 3))]


def by_platform(x):
    return lax.platform_dependent(
        x, cuda=lambda x: x * 5, cpu=lambda x: x * x, default=lambda x: x - 7
    )


def test_names_of_platforms():
    assert number_of("cpu", ("cuda", "cpu"), False) == 1
    assert number_of("gpu", ("tpu", "cuda"), False) == 1
    assert number_of("rocm", ("cuda", "gpu"), False) == 1
    assert number_of("tpu", ("cuda", "gpu"), True) == 2
    with pytest.raises(NotImplementedError, match=r"a function for cuda or a default, got .* cpu"):
        number_of("gpu", ("cpu",), False)


def test_it_is_not_folded_before_the_platform_is_known():
    program = simplify(make_graph(by_platform)(np.ones(3, "f")))
    text = lower_for_file(program, [], ("cpu", "cuda", "tpu"))
    each = text.split("func.func private @main_")
    assert "5.0" not in each[1] and "7.0" not in each[1]
    assert "5.0" in each[2] and "7.0" not in each[2]
    assert "5.0" not in each[3] and "7.0" in each[3]
    assert text.count("stablehlo.case") == 1  # that which chooses among the three


def test_a_program_has_the_function_of_its_platform_alone():
    words = st.jit(by_platform).lower(snp.ones(3)).as_text()
    assert "multiply" in words and "5.0" not in words and "case" not in words


@pytest.mark.parametrize("of", [lambda f: f, st.jit, st.vmap, lambda f: st.jit(st.vmap(f))])
def test_transformed(of):
    np.testing.assert_array_equal(of(by_platform)(snp.arange(3.0)), [0, 1, 4])


@pytest.mark.parametrize("of", [lambda f: f, st.jit])
def test_derivatives(of):
    slope = st.grad(lambda x: by_platform(x).sum())
    np.testing.assert_array_equal(of(slope)(snp.arange(3.0)), [0, 2, 4])
    np.testing.assert_array_equal(of(lambda x: st.jvp(by_platform, (x,), (x,))[1])(3.0), 18)


def test_no_operand_is_needed():
    f = lambda: lax.platform_dependent(cuda=lambda: 1.0, default=lambda: 2.0)
    assert float(f()) == float(st.jit(f)()) == 2


def test_types_must_be_equal_while_it_is_traced():
    f = lambda x: lax.platform_dependent(x, cuda=lambda x: x > 0, default=lambda x: x)
    with pytest.raises(TypeError, match="platform_dependent: branches must return equal types"):
        st.jit(f)(snp.ones(2))
