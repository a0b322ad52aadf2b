"""Values and tracers: what becomes a value, and what a traced value refuses, in which words."""

import copy
import enum
import pickle
import threading
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

import stretto as st
from stretto import numpy as snp
from stretto._engine.core.config import enable_x64
from stretto._engine.core.errors import EscapedTracerError, TracedValueError
from stretto._engine.core.interpreter import (
    Interpreter,
    Linear,
    Tracer,
    as_value,
    constant,
    is_array_like,
    scalar_array,
    splat,
    state,
    type_of,
)
from stretto._engine.core.threads import holding
from stretto._engine.core.types import array_type


@pytest.mark.parametrize(
    "number, dtype", [(True, "bool"), (1, "int32"), (1.5, "float32"), (1j, "complex64")]
)
def test_python_numbers(number, dtype):
    x = as_value(number)
    assert (x.dtype, x.shape, x.weak_type) == (np.dtype(dtype), (), dtype != "bool")
    assert as_value(x) is x


class Made:
    def __array__(self, dtype=None, copy=None):
        return np.ones(2)


@pytest.mark.parametrize(
    ("x", "is_one"),
    [
        (1, True),
        (1.5, True),
        (1j, True),
        (True, True),
        (np.float32(1), True),
        (np.ones(2), True),
        (snp.ones(2), True),
        (Made(), True),
        (Made, False),
        (np.ndarray, False),
        ("1", False),
        (None, False),
        ([1.0], False),
    ],
)
def test_what_may_be_an_array(x, is_one):
    assert is_array_like(x) is is_one


def test_numpy_arrays_are_copied_and_canonical():
    host = np.arange(3.0)
    x = as_value(host)
    host[0] = 9
    assert x.dtype == np.float32
    assert not x.weak_type
    np.testing.assert_array_equal(x, [0, 1, 2])
    with enable_x64():
        assert as_value(host).dtype == np.float64
    assert as_value(np.float64(1)).dtype == np.float32
    assert as_value(np.asfortranarray(np.ones((2, 3)))).to_host().flags.c_contiguous


class Colour(enum.IntEnum):
    RED = 3


class Wrapped:
    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


class Ours:
    def __stretto_array__(self):
        return snp.ones(2)


def test_what_stands_for_an_array():
    assert int(as_value(Colour.RED)) == 3
    assert as_value(Colour.RED).weak_type
    assert as_value(Wrapped(np.ones(2))).dtype == np.float32
    assert as_value(Ours()).shape == (2,)


@pytest.mark.parametrize(
    "given",
    [
        {"shape": [2], "dtype": np.dtype("float32")},  # no tuple
        {"shape": (2,), "dtype": "float32"},  # no dtype
        {"shape": (2,)},
        {"dtype": np.dtype("float32")},
    ],
)
def test_what_has_no_shape_and_dtype_has_no_type(given):
    with pytest.raises(TypeError, match=r"f: y must be an array or a number"):
        type_of(SimpleNamespace(**given), "f", "y")


@pytest.mark.parametrize("weak", [True, False])
def test_what_has_a_shape_and_a_dtype_has_a_type(weak):
    given = SimpleNamespace(shape=(2, 3), dtype=np.dtype("float64"))
    if weak:
        given.weak_type = True
    assert type_of(given) is array_type((2, 3), np.dtype("float32"), weak)


@pytest.mark.parametrize(
    "x, error, message",
    [
        (
            [1, 2],
            TypeError,
            r"f: y must be an array or a number; got a list. Wrap it: stretto.numpy",
        ),
        ((1,), TypeError, "got a tuple. Wrap it"),
        ("a", TypeError, "f: y must be an array or a number; got builtins.str"),
        (None, TypeError, "got builtins.NoneType"),
        (np.array(["a"]), TypeError, "dtype <U1 is not one of the numeric types"),
        (np.array([None]), TypeError, "dtype object is not one of the numeric types"),
        (2**31, OverflowError, "f: the Python integer 2147483648 does not fit in int32"),
        (-(2**31) - 1, OverflowError, "the Python integer -2147483649 does not fit in int32"),
    ],
)
def test_what_does_not(x, error, message):
    with pytest.raises(error, match=message):
        as_value(x, "f", "y")


@pytest.mark.parametrize("wide", [False, True])
def test_the_least_and_the_greatest_integer_fit(wide):
    with enable_x64(wide):
        for n in (2 ** (63 if wide else 31) - 1, -(2 ** (63 if wide else 31))):
            assert int(as_value(n)) == n


def test_large_integers_fit_in_64_bits():
    with enable_x64():
        assert int(as_value(2**31)) == 2**31


def test_large_numbers_become_infinite_without_remark():
    assert np.isinf(as_value(1e300))
    assert np.isinf(as_value(np.array([1e300])))[0]
    assert np.isinf(as_value(1e300 + 0j))
    assert np.isnan(as_value(float("nan")))


USES = {
    bool: r"bool\(\) \(as in `if`, `while`, `and`, `not`\) needs a concrete value",
    int: r"int\(\) needs a concrete value.*use x.astype\(snp.int32\)",
    float: r"float\(\) needs a concrete value.*use x.astype\(snp.float32\)",
    complex: r"complex\(\) needs a concrete value.*use x.astype\(snp.complex64\)",
    range: r"a Python index, a length or a range needs a concrete value.*static_argnums",
    lambda x: [1, 2][x]: "a Python index, a length or a range needs a concrete value",
    lambda x: x.item(): r"item\(\) needs a concrete value",
    lambda x: x.tolist(): r"tolist\(\) needs a concrete value.*Return the array and convert",
    np.asarray: r"NumPy was given a traced value of type int32\[\] .*function of the same name in",
    np.sin: "NumPy was given a traced value of type",
}


@pytest.mark.parametrize("use, message", USES.items())
def test_traced_values_have_no_python_number(use, message):
    def scaled(number):
        return use(number)

    with pytest.raises(TracedValueError, match=message) as caught:
        st.jit(scaled)(1)
    assert "the argument number" in str(caught.value)


def test_hashing_is_refused():
    with pytest.raises(TypeError, match="arrays are not hashable; a value that must be hashed has"):
        st.jit(hash)(1)


def test_values_beneath_grad_are_concrete():
    def f(x):
        assert bool(x > 1)
        assert (int(x), float(x), complex(x)) == (2, 2.5, 2.5 + 0j)
        assert x.item() == 2.5
        assert x.tolist() == 2.5
        return x * [1.0, 3.0][int(x) - 1]

    assert float(st.grad(f)(2.5)) == 3.0
    with pytest.raises(TracedValueError, match="the argument x"):
        st.jit(st.grad(f))(2.5)


def test_values_beneath_vmap_are_not():
    with pytest.raises(TracedValueError, match="one of 3 examples that vmap maps over"):
        st.vmap(lambda x: x if x > 0 else -x)(np.ones(3))


def test_the_remedy_for_conditions():
    with pytest.raises(
        TracedValueError, match=r"lax.cond or snp.where .* static_argnums if it is a"
    ):
        st.jit(lambda x: 1 if x else 2)(1)


@pytest.mark.parametrize("transform", [st.jit, st.grad, st.vmap])
def test_tracers_do_not_outlive_their_transformation(transform):
    kept = []

    def f(x):
        kept.append(x * 2)
        return x * 1.0

    transform(f)(np.ones(3) if transform is st.vmap else 1.5)
    for use in (lambda x: x + 1, bool, snp.sin):
        with pytest.raises(EscapedTracerError, match="outlived the transformation that made it"):
            use(kept[0])


def test_tracers_say_their_type():
    seen = []
    st.jit(lambda x: seen.append(repr(x)) or x)(np.ones((2, 3)))
    assert seen == ["<traced float32[2,3]>"]


def test_interpreters_are_of_their_thread():
    inner = Interpreter()
    at_rest = state.interpreter
    seen = []

    def work():
        thread = threading.Thread(target=lambda: seen.append(state.interpreter))
        thread.start()
        thread.join()
        assert state.interpreter is inner
        with pytest.raises(NotImplementedError):
            inner.process(None, ())

    holding(state, "interpreter", inner, work)
    assert seen == [at_rest]
    assert state.interpreter is at_rest


def test_the_interpreter_is_restored_after_an_error():
    at_rest = state.interpreter
    for transform in (st.jit, st.grad, st.vmap):
        with pytest.raises(ZeroDivisionError):
            transform(lambda x: 1 / 0)(np.ones(()) if transform is st.grad else np.ones(2))
        assert state.interpreter is at_rest


def test_linear_has_a_type():
    x = Linear(array_type((2, 3), np.dtype(np.float32)))
    assert (x.so_far, x.masked) == (None, False)
    assert (x.shape, x.dtype, x.ndim) == ((2, 3), np.float32, 2)


def test_a_tracer_without_a_position():
    class Made(Tracer):
        __slots__ = ()

    made = Made()
    made.position = None
    assert (made.origin(), made.concrete()) == ("traced", None)


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex64", "bfloat16"])
@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (0, 2)])
def test_splats(dtype, shape):
    x = splat(1, array_type(shape, np.dtype(dtype), True))
    np.testing.assert_array_equal(x, np.ones(shape, dtype))
    assert (x.dtype, x.weak_type) == (np.dtype(dtype), True)


def test_splats_keep_the_signs_of_zeros():
    t = array_type((2,), np.dtype(np.float32))
    for element in (0.0, -0.0, 0, -0.0):
        signs = np.signbit(np.asarray(splat(element, t)))
        np.testing.assert_array_equal(signs, np.signbit(np.float32(element)))


def test_splats_share_memory_that_nobody_can_take():
    t = array_type((3,), np.dtype(np.float32))
    take = st.jit(lambda x: x + 1, donate_argnums=0)
    for _ in range(2):
        np.testing.assert_array_equal(take(splat(2, t)), np.full(3, 3))
        np.testing.assert_array_equal(splat(2, t), np.full(3, 2))


def test_integers_are_rounded_once_on_their_way_to_a_float():
    n = (1 << 54) + (1 << 30) + 1  # the nearest of 64 bits lies half-way between two of 32
    assert scalar_array(n, np.dtype(np.float32)) == np.int64(n).astype(np.float32)
    assert scalar_array(n, np.dtype(np.float32)) != np.float32(float(n))
    least = (1 << 53) + (1 << 29) + 1  # of those of which float64 lacks some, nearly the first
    assert scalar_array(least, np.dtype(np.float32)) == np.float32((1 << 53) + (1 << 30))


def test_constants_have_the_types_of_their_arrays():
    x = constant(np.ones(2, np.float32))
    assert not x.weak_type and constant(np.ones(2, np.float32), True).weak_type


def _tracers():
    """A traced value of each kind, handed to a function, and what it gives for one half."""
    return {
        "jit": lambda f: st.jit(f)(0.5),
        "grad": lambda f: st.value_and_grad(f)(0.5)[0],
        "jvp": lambda f: st.jvp(f, (0.5,), (1.0,))[0],
        "linearize": lambda f: st.linearize(f, 0.5)[0],
        "vmap": lambda f: st.vmap(f)(snp.full(1, 0.5))[0],
    }


@pytest.mark.parametrize("kind", _tracers())
def test_a_copy_of_a_tracer_is_the_tracer(kind):
    def f(x):
        assert copy.copy(x) is x and copy.deepcopy(x) is x
        tree = {"a": [x, x], "b": (x, 1.0)}
        copied = copy.deepcopy(tree)
        assert copied["a"] is not tree["a"] and copied["a"][1] is copied["b"][0] is x
        return copied["a"][0] * copied["b"][1]

    assert float(_tracers()[kind](f)) == 0.5


def test_copies_of_what_holds_tracers():
    layer = st.nn.Linear(3, 2)
    x = snp.ones((1, 3))
    out = st.jit(lambda layer, x: copy.deepcopy(layer)(x))(layer, x)
    np.testing.assert_allclose(out, layer(x), rtol=1e-6)
    key = st.random.key(0)
    bits = st.jit(lambda key: st.random.bits(copy.deepcopy(key)))(key)
    assert int(bits) == int(st.random.bits(key))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("kind", _tracers())
def test_tracers_are_not_pickled(kind, protocol):
    def f(x):
        with pytest.raises(TracedValueError, match=r"float32\[\].* cannot be pickled .*return it"):
            pickle.dumps({"a": x}, protocol)
        return x

    assert float(_tracers()[kind](f)) == 0.5


def test_traced_values_can_be_referred_to_weakly():
    def f(x):
        assert weakref.ref(x)() is x
        return x

    assert st.jit(st.grad(st.vmap(f, axis_size=1, in_axes=None, out_axes=None)))(1.0) == 1
