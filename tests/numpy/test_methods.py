""""""

from __future__ import annotations

import inspect
import operator

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core import typing
from stretto._engine.core.interpreter import Value
from stretto._engine.core.migration import ARRAYS
from stretto.numpy import methods
from stretto.numpy.updating import _MEMORY, _METHODS, At, IndexUpdate

A, B = (
    np.array([[4.0, -3.0], [2.5, 7.0]], np.float32),
    np.array([[2.0, 2.0], [-1.0, 3.0]], np.float32),
)
K, J = np.array([6, -5, 12], np.int32), np.array([3, 2, 5], np.int32)

ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv,
              operator.mod, operator.matmul]  # fmt: skip
COMPARISON = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
BITS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]


@pytest.mark.parametrize("op", [*ARITHMETIC, *COMPARISON])
def test_operators_on_floats(op):
    want = op(A, B)
    for x, y in ((snp.array(A), snp.array(B)), (A, snp.array(B)), (snp.array(A), B)):
        for got in (op(x, y), st.jit(op)(x, y)):
            assert isinstance(got, st.Array)
            np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("op", [*ARITHMETIC[:-1], *COMPARISON])
@pytest.mark.parametrize("number", [2, -1.5, np.float32(2.5), np.int32(3)])
def test_operators_with_numbers(op, number):
    for got in (op(snp.array(A), number), st.jit(lambda x: op(x, number))(A)):
        np.testing.assert_allclose(got, op(A, number), rtol=1e-6)
    for got in (op(number, snp.array(A)), st.jit(lambda x: op(number, x))(A)):
        assert isinstance(got, st.Array)
        np.testing.assert_allclose(got, op(number, A), rtol=1e-6)


@pytest.mark.parametrize("op", BITS)
def test_operators_on_integers(op):
    for x, y in (
        (snp.array(K), snp.array(J)),
        (K, snp.array(J)),
        (snp.array(K), 2),
        (7, snp.array(J)),
    ):
        want = op(np.asarray(x), np.asarray(y))
        np.testing.assert_array_equal(op(x, y), want)
        np.testing.assert_array_equal(st.jit(op)(x, y), want)


def test_power_and_divmod():
    x = snp.array(A)
    np.testing.assert_allclose(x**2, A**2)
    np.testing.assert_allclose(2**x, 2**A)
    for got, want in zip(divmod(x, 2), divmod(A, 2), strict=True):
        np.testing.assert_array_equal(got, want)
    for got, want in zip(divmod(7, x), divmod(np.float32(7), A), strict=True):
        np.testing.assert_array_equal(got, want)


def test_unary_operators():
    x = snp.array(A)
    for op in (operator.neg, operator.pos, operator.abs):
        np.testing.assert_array_equal(op(x), op(A))
        np.testing.assert_array_equal(st.jit(op)(x), op(A))
    np.testing.assert_array_equal(~snp.array(K), ~K)
    np.testing.assert_array_equal(~(x > 0), ~(A > 0))
    np.testing.assert_array_equal(round(x, 1), A.round(1))


def test_round_without_digits_gives_integers_as_in_python():
    halves = snp.array([0.5, 1.5, -2.6])
    for f in (round, st.jit(round)):
        assert f(halves).tolist() == [0, 2, -3] and f(halves).dtype == np.int32
        assert f(snp.float16(1.6)).dtype == np.int32 and f(snp.arange(2)).tolist() == [0, 1]
    assert round(halves, 0).dtype == round(halves, -1).dtype == np.float32


class Other:
    def __radd__(self, other):
        return "radd"

    def __rmatmul__(self, other):
        return "rmatmul"

    def __eq__(self, other):
        return "eq"

    __hash__ = None


def test_other_classes_get_their_turn():
    x = snp.ones(2)
    assert x + Other() == "radd"
    assert x @ Other() == "rmatmul"
    assert (x == Other()) == "eq"
    with pytest.raises(TypeError, match="unsupported operand"):
        x + object()
    with pytest.raises(TypeError, match="unsupported operand"):
        x - None
    with pytest.raises(TypeError, match="not supported between"):
        x < "a"  # noqa: B015


def test_lists_are_refused_in_words():
    for op in (operator.add, operator.eq, operator.lt, operator.matmul):
        for other in ([1, 2], (1, 2)):
            with pytest.raises(TypeError, match=r"stretto\.numpy\.array"):
                op(snp.ones(2), other)
            with pytest.raises(TypeError, match=r"stretto\.numpy\.array"):
                op(other, snp.ones(2))


def test_in_place_operators_make_new_arrays():
    x = y = snp.array([1.0, 2.0])
    x += 1
    assert (x.tolist(), y.tolist()) == ([2, 3], [1, 2])


METHODS = [
    ("all", ()), ("any", ()), ("argmax", ()), ("argmin", (0,)), ("argsort", ()), ("clip", (-1, 3)),
    ("conj", ()), ("conjugate", ()), ("copy", ()), ("cumprod", (1,)), ("cumsum", ()),
    ("diagonal", ()), ("dot", (B,)), ("flatten", ()), ("max", (1,)), ("mean", ()), ("min", ()),
    ("prod", ()), ("ravel", ()), ("repeat", (2,)), ("reshape", (4,)), ("reshape", ((1, -1),)),
    ("reshape", (4, 1)), ("round", (1,)), ("squeeze", ()), ("std", ()), ("sum", (0,)),
    ("swapaxes", (0, 1)), ("take", (np.array([0, 1]),)), ("trace", ()), ("transpose", ()),
    ("transpose", (1, 0)), ("transpose", ((1, 0),)), ("var", (1,)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args"), METHODS)
def test_methods(name, args):
    want = getattr(A, name)(*args)
    for got in (getattr(snp.array(A), name)(*args), st.jit(lambda x: getattr(x, name)(*args))(A)):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_sort_is_a_copy():
    x = snp.array([3, 1, 2])
    assert x.sort().tolist() == [1, 2, 3]
    assert x.tolist() == [3, 1, 2]


def test_more_methods():
    x = snp.array(A)
    assert x.astype(int).dtype == snp.int32
    assert [i.tolist() for i in x.nonzero()] == [[0, 0, 1, 1], [0, 1, 0, 1]]
    assert snp.array([1, 3]).searchsorted(2).item() == 1
    assert x.ptp().item() == 10


def test_properties():
    x = snp.array(A)
    np.testing.assert_array_equal(x.T, A.T)
    np.testing.assert_array_equal(snp.ones((2, 3, 4)).mT, np.ones((2, 4, 3)))
    assert x.real is x
    assert x.imag.tolist() == [[0, 0], [0, 0]]
    assert (x.itemsize, x.nbytes) == (4, 16)
    assert [v.item() for v in x.flat] == [v.item() for v in A.flat]
    assert x.flat[2].item() == A.flat[2]
    assert st.jit(lambda x: x.flat[-1])(x).item() == A.flat[-1]
    assert x.sharding == st.sharding.SingleDeviceSharding(x.device)
    assert st.make_graph(lambda x: x * (2 if x.sharding is None else 3))(x) is not None
    assert (x.committed, x.is_fully_addressable, x.is_fully_replicated) == (False, True, True)
    assert [part.data is x for part in x.addressable_shards] == [True]
    assert x.at[0, 0].set(9)[0, 0].item() == 9
    assert x.__array_namespace__() is snp


def test_length_and_iteration():
    x = snp.array(A)
    assert len(x) == 2
    rows = list(x)
    assert all(isinstance(r, st.Array) for r in rows)
    assert [r.tolist() for r in rows] == A.tolist()
    a, b = snp.array([1, 2])
    assert (a.item(), b.item(), a.dtype, a.shape) == (1, 2, snp.int32, ())
    for f in (len, iter, list):
        with pytest.raises(TypeError, match="rank 0"):
            f(snp.array(1.0))


def test_traced_values_have_length_and_iterate():
    def f(x):
        first, second = x
        return sum(row.sum() for row in x) + len(x) * first[0] - second[0]

    want = A.sum() + 2 * 4 - 2.5
    assert float(st.jit(f)(A)) == want
    assert st.grad(f)(A).tolist() == [[3, 1], [0, 1]]
    np.testing.assert_allclose(st.vmap(f)(snp.stack([A, A])), [want, want])
    with pytest.raises(TypeError, match="rank 0"):
        st.jit(list)(1.0)
    with pytest.raises(TypeError, match="rank 0"):
        st.jit(len)(1.0)


def test_membership():
    assert 2.5 in snp.array(A)
    assert 3 not in snp.array(A)


def test_items_cannot_be_set():
    x = snp.array(A)
    with pytest.raises(TypeError, match=r"\.at\[.*\]\.set"):
        x[0] = 1
    with pytest.raises(TypeError, match="immutable"):
        st.jit(lambda x: x.__setitem__(0, 1))(A)


def test_numpy_scalars_give_way():
    got = np.float32(2) * snp.array(A)
    assert isinstance(got, st.Array)
    assert got.dtype == snp.float32
    traced = st.jit(lambda x: np.float32(2) * x + np.ones(2, np.float32))(A)
    np.testing.assert_array_equal(traced, 2 * A + 1)


def test_choosing_and_devices():
    x = snp.array([3, 1, 2])
    assert x.choose([snp.array(5), 6, 7, 8]).tolist() == [8, 6, 7]
    assert x.compress(x > 1).tolist() == [3, 2]
    assert st.jit(lambda x: x.compress(x > 1, size=3))(x).tolist() == [3, 2, 0]
    assert x.devices() == {x.device}
    x.copy_to_host_async()


def test_keywords_of_numpys_and_jaxs_methods():
    x = snp.array([1.5, 2.5])
    assert x.astype(dtype="int8", copy=True).dtype == snp.int8
    assert x.dot(b=x) == 8.5
    assert x.dot(x, preferred_element_type=snp.float32) == 8.5
    assert x.flatten(out_sharding=None).shape == x.reshape(2, out_sharding=None).shape == (2,)
    for f in (x.flatten, x.reshape):
        with pytest.raises(TypeError, match="out_sharding must be a sharding"):
            f(*[2] * (f == x.reshape), out_sharding=1)
    assert x.view("int32", type=None).dtype == snp.int32
    with pytest.raises(NotImplementedError, match=r"use numpy\.asarray"):
        x.view(type=np.ndarray)
    with pytest.raises(TypeError, match="unexpected keyword"):
        x.compress(x > 2, places=1)


def test_flatten_from_an_axis_on():
    x = snp.ones((2, 3, 4))
    with pytest.raises(ValueError, match=r"got 1; .*x\.flatten\(1\) is (.*)$") as error:
        x.flatten(1)
    assert eval(str(error.value).split(" is ")[1], {"x": x}).shape == (2, 12)


OF_PYTHON = {"__module__", "__doc__", "__dict__", "__weakref__", "__annotations__", "__slots__"}
OF_PYTHON |= {"__firstlineno__", "__static_attributes__"}  # from 3.13 on
OF_VALUE = {"type", "shape", "dtype", "ndim", "size", "weak_type"}
NOT_SHOWN = {"__array_priority__", "__setitem__", "__delitem__", "__dir__"}
NOT_SHOWN |= {*_MEMORY, *_METHODS, *ARRAYS}
"""What only says in words that arrays do not have it, or is for NumPy."""


def declared_methods():
    """The class as type checkers see it, with what is theirs alone."""
    source = inspect.getsource(methods.ArrayMethods).replace("if TYPE_CHECKING:", "if True:")
    exec(f"from __future__ import annotations\n{source}", vars(methods) | (found := {}), found)
    return found["ArrayMethods"]


DECLARED = declared_methods()


def names(cls):
    return {name for name in vars(cls) if name not in OF_PYTHON | {"__init__", "__repr__"}}


def shape(parameters):
    """Kinds and defaults, with the names of those that can be passed by name."""
    return [
        (p.name if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD) else "", p.kind, p.default)
        for p in list(parameters.values())[1:]
    ]


def test_each_member_is_declared():
    assert names(DECLARED) - {"__hash__"} == (names(Value) - OF_VALUE - NOT_SHOWN)


@pytest.mark.parametrize("name", sorted(names(DECLARED) - {"__hash__"}))
def test_declared_as_it_is(name):
    declared, real = vars(DECLARED)[name], vars(Value)[name]
    assert isinstance(declared, property) == isinstance(real, property)
    if not isinstance(real, property) and name != "__getitem__":  # which has more, for functions
        parameters = inspect.signature(declared).parameters
        assert shape(parameters) == shape(inspect.signature(real).parameters)


def test_updates():
    assert names(typing.At) == names(At) - {"_x"}
    assert names(typing.IndexUpdate) == names(IndexUpdate) - {"_x", "_index"}
    for name in names(typing.IndexUpdate):
        declared, real = getattr(typing.IndexUpdate, name), getattr(IndexUpdate, name)
        assert shape(inspect.signature(declared).parameters) == shape(
            inspect.signature(real).parameters
        )


def test_nothing_of_it_is_a_base_class_at_run_time():
    assert Value.__mro__ == (Value, object)
