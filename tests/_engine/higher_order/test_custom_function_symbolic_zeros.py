"""Symbolic zeros: what rules are told of tangents, cotangents and arguments."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.types import float0
from stretto._engine.higher_order.custom_function import (
    CustomVJPPrimal,
    SymbolicZero,
    custom_vjp_primal_tree_values,
    zero_from_primal,
)

F32 = np.dtype(np.float32)


def is_zero(x):
    return type(x) is SymbolicZero


def test_a_symbolic_zero_has_a_type():
    zero = SymbolicZero((2, 3), F32)
    assert (zero.shape, zero.ndim, zero.size, zero.dtype) == ((2, 3), 2, 6, F32)
    assert zero == SymbolicZero((2, 3), F32) != SymbolicZero((3, 2), F32)
    assert st.tree.leaves({"a": zero}) == [zero]
    assert repr(zero) == "SymbolicZero(shape=(2, 3), dtype=float32)"
    assert repr(SymbolicZero((), float0)) == "SymbolicZero(shape=(), dtype=float0)"


def test_zeros_of_values():
    values = {"x": snp.ones((2, 3)), "n": [1, True], "z": 1j}
    zeros = zero_from_primal(values)
    np.testing.assert_array_equal(zeros["x"], np.zeros((2, 3)))
    assert (zeros["x"].dtype, zeros["z"].dtype) == (F32, np.complex64)
    assert [n.dtype for n in zeros["n"]] == [float0, float0] and zeros["n"][0].shape == ()
    symbolic = zero_from_primal(values, symbolic_zeros=True)
    assert symbolic["x"] == SymbolicZero((2, 3), F32) and symbolic["n"][1].dtype == float0
    assert st.jit(zero_from_primal)(2.0).dtype == F32
    with pytest.raises(TypeError, match="zero_from_primal: a leaf must be an array or a number"):
        zero_from_primal({"x": "word"})


def test_values_of_primals():
    tree = {"x": CustomVJPPrimal(1.0, True), "n": [CustomVJPPrimal(2, False), 3]}
    assert custom_vjp_primal_tree_values(tree) == {"x": 1.0, "n": [2, 3]}


SEEN = []


def outputs(x, y):
    return x * y, {"y": y * 3.0, "n": snp.array(1)}


@st.custom_vjp
def reverse(x, y):
    return outputs(x, y["y"])


def reverse_fwd(x, y):
    SEEN.append((x.perturbed, y["y"].perturbed))
    values = x.value, custom_vjp_primal_tree_values(y)["y"]
    return outputs(*values), values


def reverse_bwd(res, ct):
    x, y = res
    out, more = ct
    SEEN.append([is_zero(c) for c in (out, more["y"], more["n"])])
    assert more["n"].dtype == float0 and more["y"].shape == y.shape
    return (out, {"y": more["y"] * 3.0}) if is_zero(out) else (out * y, {"y": out * x})


reverse.defvjp(reverse_fwd, reverse_bwd, symbolic_zeros=True)


@st.custom_jvp
def forward(x, y):
    return outputs(x, y["y"])


def forward_rule(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    SEEN.append([is_zero(dx), is_zero(dy["y"])])
    none = SymbolicZero(x.shape, float0)
    if is_zero(dy["y"]):
        return outputs(x, y["y"]), (dx * y["y"], {"y": dy["y"], "n": none})
    return outputs(x, y["y"]), (x * dy["y"], {"y": 3.0 * dy["y"], "n": none})


forward.defjvp(forward_rule, symbolic_zeros=True)
WRAPS = {"eager": lambda f: f, "jit": st.jit}


@pytest.mark.parametrize("wrap", WRAPS)
def test_in_reverse(wrap):
    first = lambda x, y: reverse(x, {"y": y})[0]
    second = lambda x, y: reverse(x, {"y": y})[1]["y"]
    SEEN.clear()
    assert float(WRAPS[wrap](st.grad(first))(2.0, 5.0)) == 5
    assert SEEN == [(True, False), [False, True, True]]
    SEEN.clear()
    assert float(WRAPS[wrap](st.grad(second, 1))(2.0, 5.0)) == 3
    assert SEEN == [(False, True), [True, False, True]]
    SEEN.clear()
    np.testing.assert_array_equal(WRAPS[wrap](st.vmap(st.grad(first)))(snp.ones(3), S), S)
    assert SEEN == [(True, False), [False, True, True]]
    SEEN.clear()
    mapped = lambda x, y: st.vmap(first, (None, 0))(x, y).sum()
    assert float(WRAPS[wrap](st.grad(mapped))(2.0, S)) == 6
    assert SEEN == [(True, False), [False, True, True]]
    assert [float(g) for g in st.grad(WRAPS[wrap](first), (0, 1))(2.0, 5.0)] == [5, 2]


S = snp.array([1.0, 2.0, 3.0])


@pytest.mark.parametrize("wrap", WRAPS)
def test_forwards(wrap):
    first = lambda x, y: forward(x, {"y": y})
    along = lambda i, wrap: WRAPS[wrap](
        lambda x, y: st.jvp(
            (lambda x: first(x, y)) if i == 0 else (lambda y: first(x, y)), ((x, y)[i],), (1.0,)
        )[1]
    )
    SEEN.clear()
    out, more = along(0, wrap)(2.0, 5.0)
    assert (float(out), float(more["y"]), more["n"].dtype) == (5, 0, float0)
    assert SEEN == [[False, True]]
    SEEN.clear()
    out, more = along(1, wrap)(2.0, 5.0)
    assert (float(out), float(more["y"]), more["n"].dtype) == (2, 3, float0)
    assert SEEN == [[True, False]]
    SEEN.clear()
    np.testing.assert_array_equal(st.vmap(along(0, wrap))(snp.ones(3), S)[0], S)
    mapped = lambda x, y: st.vmap(first, (None, 0))(x, y)[0].sum()
    assert float(WRAPS[wrap](st.grad(mapped))(2.0, S)) == 6
    assert SEEN == [[False, True]] * 2


def test_without_them_rules_get_arrays():
    seen = []

    def bwd(_, ct):
        seen.append([np.asarray(c).tolist() for c in ct])
        return (ct[0] + ct[1],)

    f = st.custom_vjp(lambda x: (x, x))
    f.defvjp(lambda x: ((x, x), None), bwd)
    assert float(st.grad(lambda x: f(x)[1])(2.0)) == 1
    assert seen == [[0.0, 1.0]]

    def rule(primals, tangents):
        seen.append([np.asarray(t).tolist() for t in tangents])
        return primals[0] * primals[1], tangents[0] * primals[1]

    f = st.custom_jvp(lambda x, y: x * y)
    f.defjvp(rule)
    assert float(st.jvp(lambda x: f(x, 3.0), (2.0,), (1.0,))[1]) == 3
    assert seen[1:] == [[1.0, 0.0]]


def test_zeros_of_integers_of_any_size():
    """NumPy has no array of a size that varies, and the rule is told so by a symbolic zero."""
    seen = []

    def rule(primals, tangents):
        x, n = primals
        seen.append(tangents[1])
        return x * n, tangents[0] * n

    f = st.custom_jvp(lambda x, n: x * n)
    f.defjvp(rule)
    slope = st.jit(st.grad(lambda x, n: f(x, n).sum()), dynamic_axes=({0: "n"}, {0: "n"}))
    assert slope(snp.ones(3), snp.arange(3)).tolist() == [0, 1, 2]
    assert is_zero(seen[0]) and seen[0].dtype == float0 and str(seen[0].shape) == "(n,)"
