"""Typed keys in jaxprs."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import random
from stretto.compat.jax.avals import ShapedArray
from stretto.compat.jax.jaxprs.keys import as_aval, type_of_aval, unwrapped, wrapped
from stretto.compat.jax.jaxprs.making import jaxpr_as_fun, make_jaxpr
from stretto.compat.jax.jaxprs.partial import (
    PartialVal,
    trace_to_jaxpr_dynamic,
    trace_to_jaxpr_nounits,
)
from stretto.compat.jax.jaxprs.views import program_of
from stretto.compat.jax.types import is_key

KEY = random.key(0)
AVAL = ShapedArray((), KEY.dtype)


def drawn(key, x):
    first, second = random.split(key)
    return {"key": first, "x": x + random.normal(second, x.shape)}


def test_variables_say_that_they_are_keys():
    closed, shapes = make_jaxpr(drawn, return_shape=True)(KEY, snp.ones(2))
    assert closed.in_avals == [AVAL, ShapedArray((2,), "float32")]
    assert closed.out_avals[0] == AVAL
    assert shapes["key"] == st.ShapeDtypeStruct((), KEY.dtype)
    key, x = jaxpr_as_fun(closed)(KEY, snp.ones(2))
    want = drawn(KEY, snp.ones(2))
    assert is_key(key)
    np.testing.assert_array_equal(random.key_data(key), random.key_data(want["key"]))
    np.testing.assert_allclose(x, want["x"], rtol=1e-6)
    again = closed.jaxpr.replace(eqns=list(closed.eqns))
    assert is_key(jaxpr_as_fun(closed.replace(jaxpr=again))(KEY, snp.ones(2))[0])
    assert program_of(closed.replace(jaxpr=again)).in_types[0].shape == (2,)


def test_keys_may_be_described():
    described = st.ShapeDtypeStruct((3,), KEY.dtype)
    assert make_jaxpr(lambda keys: keys[0])(described).in_avals[0].shape == (3,)


def test_unknown_keys():
    def f(key, x):
        assert is_key(key)
        return [random.split(key)[0], x * 2]

    jaxpr, outs, _ = trace_to_jaxpr_nounits(f, [PartialVal.unknown(AVAL), PartialVal.known(3.0)])
    assert outs[0].get_aval() == AVAL and outs[1].get_known() == 6.0
    assert len(jaxpr.invars) == 1
    assert trace_to_jaxpr_dynamic(lambda key: [random.key_data(key)], [AVAL])[0].eqns == []


def test_words():
    assert as_aval(KEY) == AVAL
    assert type_of_aval(AVAL).shape == (2,) and type_of_aval(AVAL).dtype == np.uint32
    assert unwrapped(KEY).shape == (2,) and unwrapped(3) == 3
    assert wrapped(unwrapped(KEY), AVAL).dtype == KEY.dtype and wrapped(KEY, AVAL) is KEY
    with pytest.raises(AttributeError):
        unwrapped(KEY).implementation  # noqa: B018 (words are numbers)
