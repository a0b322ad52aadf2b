from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import stretto as st
import stretto.numpy as snp
from stretto.numpy.quick import at_rest, element_of, splat
from stretto.ops import arithmetic

FUNCTIONS = {
    "add": arithmetic.add,
    "subtract": arithmetic.subtract,
    "multiply": arithmetic.multiply,
    "maximum": arithmetic.maximum,
    "minimum": arithmetic.minimum,
}
NUMBERS = [2, -1, 1.5, True, snp.asarray(1), snp.asarray(1.5), snp.int8(3), snp.uint8(3),
           snp.float16(1.5), snp.bfloat16(2), snp.float32(2.5), snp.ones((2, 1)),
           snp.ones((2, 3), snp.int8), snp.arange(3), snp.array([True, False, True])]  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=60, deadline=None)
@given(x=some.sampled_from(NUMBERS), y=some.sampled_from(NUMBERS))
def test_the_short_way_gives_what_the_general_one_gives(name, x, y):
    def attempt(f):
        try:
            return f(x, y)
        except (TypeError, OverflowError) as error:
            return type(error)

    short, general = attempt(getattr(snp, name)), attempt(FUNCTIONS[name])
    if isinstance(general, type):
        assert short is general
        return
    jitted = st.jit(getattr(snp, name))(x, y)
    assert short.type is general.type is jitted.type
    np.testing.assert_array_equal(np.asarray(short, float), np.asarray(general, float))
    np.testing.assert_array_equal(np.asarray(short, float), np.asarray(jitted, float))


def test_elements():
    assert element_of(1, snp.ones(2).type) == 1.0
    assert element_of(1.5, snp.arange(2).type) is None
    assert element_of(True, snp.arange(2).type) is None
    assert element_of(300, snp.ones(2, snp.int8).type) is None
    assert element_of(10**400, snp.ones(2).type) is None
    assert np.isinf(element_of(1e300, snp.ones(2).type))


def test_splats_take_no_memory():
    x = splat(np.float32(2), snp.ones((1000, 1000)).type)
    assert not any(x.to_host().strides)
    assert x[0, 0].item() == 2
    assert splat(np.float32(2), snp.ones((0, 3)).type).shape == (0, 3)


def test_at_rest():
    x = snp.ones(2)
    assert at_rest(x)
    assert not at_rest(x, 1.0)
    seen = []
    st.jit(lambda y: seen.append((at_rest(x), at_rest(y))) or y)(x)
    assert seen == [(False, False)]
