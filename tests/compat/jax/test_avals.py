"""Abstract values, classes for ``isinstance``, and typed keys in jaxprs."""

import functools

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import random
from stretto.compat.jax.avals import (
    Array,
    ShapedArray,
    Tracer,
    as_aval,
    get_aval,
    is_key,
    pytype_aval_mappings,
    type_of_aval,
    unwrap_keys,
    wrap_keys,
)
from stretto.compat.jax.jaxprs.jaxpr import program_of
from stretto.compat.jax.jaxprs.making import (
    PartialVal,
    jaxpr_as_fun,
    make_jaxpr,
    trace_to_jaxpr_dynamic,
    trace_to_jaxpr_nounits,
)
from stretto.dtypes import float0
from tests.compat.jax.running import prints


def test_of_arrays_numbers_and_keys():
    assert get_aval(snp.ones((2, 3))) == ShapedArray((2, 3), np.float32)
    assert get_aval(np.ones(2, np.int8)).dtype == np.int8
    number = get_aval(1.0)
    assert number.weak_type and number.strip_weak_type() == ShapedArray((), "float32")
    key = get_aval(st.random.split(st.random.key(0), 3))
    assert key.shape == (3,) and key.dtype == st.random.key(0).dtype
    assert get_aval(key) is key


def test_of_tangents():
    assert ShapedArray((2,), np.float32).to_tangent_aval() == ShapedArray((2,), np.float32)
    assert ShapedArray((2,), np.int32).to_tangent_aval().dtype == float0
    assert ShapedArray((2,), np.int32).at_least_vspace().dtype == float0


def test_parts_and_text():
    aval = ShapedArray((2, 3), np.float32)
    assert (aval.ndim, aval.size, len(aval)) == (2, 6, 2)
    assert aval.update(shape=(4,)) == ShapedArray((4,), np.float32)
    assert str(aval) == "float32[2,3]" and aval.str_short(short_dtypes=True) == "f32[2,3]"
    assert hash(aval) == hash(ShapedArray([2, 3], "float32"))
    assert aval.sharding.is_fully_replicated


def test_classes_that_libraries_add(monkeypatch):
    class Variable:
        def __array__(self, dtype=None, copy=None):
            return np.ones(3, np.float32)

    by_array = pytype_aval_mappings[np.ndarray]
    monkeypatch.setitem(pytype_aval_mappings, Variable, lambda x: by_array(np.asarray(x)))
    assert get_aval(Variable()) == ShapedArray((3,), np.float32)


def test_arrays_tracers_and_keys_are_arrays():
    seen = []

    def f(x, key):
        seen.append([isinstance(v, cls) for v in (x, key) for cls in (Array, Tracer)])
        return x

    key = st.random.key(0)
    st.jit(f)(1.0, key)
    f(snp.ones(2), key)
    f(1.0, None)
    assert seen == [[True] * 4, [True, False, True, False], [False] * 4]
    assert is_key(key) and not is_key(snp.ones(2))


def test_functions_can_be_chosen_by_the_class():
    @functools.singledispatch
    def kind(x):
        return "other"

    kind.register(Array)(lambda x: "array")
    assert [kind(x) for x in (snp.ones(2), st.random.key(0), 1.0)] == ["array", "array", "other"]
    assert issubclass(type(snp.ones(2)), Array) and not issubclass(float, Array)
    assert not issubclass(type(snp.ones(2)), Tracer) and issubclass(Tracer, Tracer)


def test_methods_can_be_read_off_the_class():
    assert Array.sum(snp.ones(3)) == 3 and Array.item.__name__ == "item"
    assert not hasattr(Array, "nonsense")


def test_tracers_of_a_librarys_own_that_set_their_trace():
    assert prints(
        """
        from jax._src import core

        class Boxed(core.Tracer):
            __slots__ = ("value",)

            def __init__(self, trace, value):
                self._trace = trace
                self.value = value

            @property
            def aval(self):
                return core.get_aval(self.value)

        class Doubles(core.Trace):
            def process_primitive(self, primitive, tracers, params):
                values = [t.value if isinstance(t, Boxed) else t for t in tracers]
                with core.set_current_trace(self.outer):
                    out = 2 * primitive.bind(*values, **params)
                return Boxed(self, out)

        with core.take_current_trace() as outer:
            trace = Doubles()
            trace.outer = outer
            box = Boxed(trace, jnp.ones(3))
            with core.set_current_trace(trace):
                out = jnp.sin(box)
        print(box.shape, box._trace is trace, trace.full_raise(box) is box)
        print(out.value / jnp.sin(1.0))
        try:
            box.nonsense
        except AttributeError as error:
            print(error)
        """
    ) == ["(3,) True True", "[2. 2. 2.]", "'Boxed' object has no attribute 'nonsense'"]


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
    assert unwrap_keys(KEY).shape == (2,) and unwrap_keys(3) == 3
    assert wrap_keys(unwrap_keys(KEY), AVAL).dtype == KEY.dtype and wrap_keys(KEY, AVAL) is KEY
    with pytest.raises(AttributeError):
        unwrap_keys(KEY).implementation  # noqa: B018 (words are numbers)
