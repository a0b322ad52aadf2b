"""Networks of one input and one output are calls along rows, with the same values."""

from typing import Any

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto._engine.api.graph import make_graph
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.program import check
from stretto._engine.kernels import WITHOUT
from stretto._engine.ops.exponential import LogisticSlope, logistic
from stretto._engine.ops.trigonometric import sech_squared
from stretto._engine.passes.align_axes import align_axes
from stretto._engine.passes.fuse_products import fuse_products
from stretto._engine.passes.fuse_rows import fuse_rows
from stretto._engine.passes.prepare import prepare
from stretto._engine.passes.thin_products import as_rows, space_of

F = nn.functional
MEMBERS, EXAMPLES, HIDDEN = 3, 128, 50
ACTIVATIONS = {
    "tanh": snp.tanh, "relu": F.relu, "gelu": F.gelu, "sigmoid": F.sigmoid, "softplus": F.softplus,
}  # fmt: skip


def draw(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


X = draw(EXAMPLES, 1)
Y = np.sin(3 * X)
WEIGHTS = {
    "w": draw(MEMBERS, 1, HIDDEN), "b": draw(MEMBERS, HIDDEN), "v": draw(MEMBERS, HIDDEN, 1) / 7,
    "c": draw(MEMBERS, 1),
}  # fmt: skip


def gradient(activation):
    """The gradient of a network's squared error, mapped over members."""

    def loss(p):
        hidden = activation(snp.asarray(X, p["w"].dtype) @ p["w"] + p["b"])
        return snp.mean((snp.asarray(Y, p["w"].dtype) - hidden @ p["v"] - p["c"]) ** 2)

    return st.vmap(st.value_and_grad(loss))


def text(function, *args):
    """The text that is compiled."""
    compiled: Any = st.jit(function)
    return compiled.lower(*args).as_text()


def written(function, *args):
    """The program after the passes that it goes through as it is written."""
    program = prepare(make_graph(function)(*args))
    for change in (align_axes, fuse_products, fuse_rows):
        program = change(program)
    check(program)
    return program


def named(program):
    return [e.primitive.name for e in program.equations]


@pytest.mark.skipif(bool(WITHOUT), reason="there are no kernels here")
@pytest.mark.parametrize("name", ["tanh", "sigmoid"])
def test_a_network_is_one_call_up_to_the_gradient_by_its_hidden_layer(name):
    found = text(gradient(ACTIVATIONS[name]), WEIGHTS)
    assert found.count('"stretto_rows"') == 1
    assert found.count('"stretto_product"') == 2  # the gradients by both matrices
    assert not any([f"stablehlo.{op}" in found for op in ("tanh", "logistic", "exponential")])


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_values_and_gradients_are_those_without(name):
    function = gradient(ACTIVATIONS[name])
    with st.config(enable_x64=True):
        exact = function({k: snp.asarray(v, "float64") for k, v in WEIGHTS.items()})
    got = st.jit(function)(WEIGHTS)
    with st.config(kernels=False):
        without = st.jit(function)(WEIGHTS)
    for one, other, right in zip(*map(st.tree.leaves, (got, without, exact)), strict=True):
        size = np.abs(right).max()
        np.testing.assert_allclose(one, right, rtol=1e-5, atol=3e-6 * size)
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=3e-6 * size)


def test_members_are_computed_alike_alone_and_in_a_loop():
    function = gradient(snp.tanh)

    def steps(p):
        def step(p, _):
            loss, g = function(p)
            return st.tree.map(lambda p, g: p - 0.1 * g, p, g), loss

        return st.lax.scan(step, p, None, length=3)

    together = st.jit(steps)(WEIGHTS)
    for k in range(MEMBERS):
        alone = st.jit(steps)({name: v[k : k + 1] for name, v in WEIGHTS.items()})
        for one, all_ in zip(st.tree.leaves(alone[0]), st.tree.leaves(together[0]), strict=True):
            np.testing.assert_allclose(one[0], all_[k], rtol=2e-5, atol=1e-6)
        np.testing.assert_allclose(alone[1][:, 0], together[1][:, k], rtol=2e-5)


@pytest.mark.skipif(bool(WITHOUT), reason="there are no kernels here")
def test_nan_and_infinities_stay_in_their_rows():
    x = np.array(X)
    x[3], x[5], x[7] = np.nan, np.inf, -np.inf

    def outputs(p):
        hidden = snp.tanh(x @ p["w"] + p["b"])
        error = hidden @ p["v"] + p["c"]
        return error, error @ p["v"].T * hidden

    error, back = st.jit(st.vmap(outputs))(WEIGHTS)
    assert np.isnan(np.asarray(error)[:, 3]).all()
    assert np.isnan(np.asarray(back)[:, 3]).all()
    assert np.isfinite(np.asarray(back)[:, [0, 4, 5, 6, 7, 127]]).all()


def operand(kind, *shape):
    return snp.asarray(draw(*shape), kind)


def one_product(function, *args):
    (e,) = [e for e in make_graph(function)(*args).equations if e.primitive.name == "dot_general"]
    return e


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_a_product_in_rows_is_the_product(kind):
    with st.config(enable_x64=True):
        cases = [
            (lambda x, v: x @ v, operand(kind, 128, 50), operand(kind, 50)),
            (lambda v, x: snp.einsum("j,ij->i", v, x), operand(kind, 50), operand(kind, 128, 50)),
            (lambda x, v: snp.einsum("bij,bj->bi", x, v), operand(kind, 3, 90, 50),
             operand(kind, 3, 50)),
            (lambda x, y: x @ y, operand(kind, 128, 1), operand(kind, 1, 50)),
            (lambda x, y: x[:, :, None] @ y[:, None], operand(kind, 3, 128),
             operand(kind, 3, 50)),
        ]  # fmt: skip
        for function, *args in cases:
            e = one_product(function, *args)
            shapes = {a.type.shape for a in (*e.inputs, *e.outputs)}
            found = as_rows(e, shapes)
            assert found is not None
            program, place = found
            check(program)
            assert not isinstance(program.equations[place].primitive, type(e.primitive))
            known = {a.size: a for a in args}
            values = [np.asarray(known[v.type.size]).reshape(v.type.shape) for v in e.inputs]
            (got,) = evaluate(program, list(map(snp.asarray, values)))
            right = e.primitive.reference(*values)
            np.testing.assert_allclose(got, right, rtol=1e-5, atol=1e-5)


def test_what_is_no_thin_product():
    for function, *args in (
        (lambda x, w: x @ w, draw(128, 50), draw(50, 2)),  # two columns
        (lambda x, v: x @ v, draw(64, 50), draw(50)),  # few multiply-adds
        (lambda x, v: snp.einsum("ij,i->j", x, v), draw(128, 50), draw(128)),  # sums over rows
        (lambda x, v: x @ v, draw(128, 50).astype("int32"), draw(50).astype("int32")),
        (lambda x, v: snp.dot(x, v, precision="highest"), draw(128, 50), draw(50)),
    ):
        assert space_of(one_product(function, *args)) is None


def test_products_stay_that_nothing_along_rows_follows():
    assert named(written(lambda x, v: x @ v, draw(128, 50), draw(50))) == ["dot_general"]
    program = written(lambda x, v: snp.tanh(x @ v + 1), draw(128, 50), draw(50))
    assert "fused_rows" not in named(program)
    assert named(program)[0].endswith(("dot_general", "fused_product"))


def test_a_matrix_that_is_turned_around_is_multiplied_where_it_lies():
    def program(x, v):
        m = x.T
        return (m @ v)[:, None] * m

    assert "fused_rows" not in named(written(program, draw(50, 128), draw(50)))


@pytest.mark.skipif(bool(WITHOUT), reason="there are no kernels here")
@pytest.mark.parametrize(("kind", "most"), [("float32", 20), ("float64", 200)])
@pytest.mark.parametrize("name", ["tanh", "logistic"])
def test_a_function_and_its_derivative_are_one_operation(name, kind, most):
    function, slope, exact, exact_slope = {
        "tanh": (snp.tanh, sech_squared, np.tanh, lambda x, e: 4 * e * e / (1 + e * e) ** 2),
        "logistic": (
            logistic, LogisticSlope(), lambda x: 1 / (1 + np.exp(-x)),
            lambda x, e: e / (1 + e) ** 2,
        ),
    }[name]  # fmt: skip

    def both(x):
        value = function(x)
        return value, slope(x) * (1 + 0 * value.sum(1, keepdims=True))

    with st.config(enable_x64=True):
        x = np.concatenate([np.linspace(-most, most, 8_000), np.geomspace(1e-20, most, 184)])
        x = x.reshape(-1, 62).astype(kind)
        x[0, :2] = 0.0, -0.0
        assert "fused_rows" in named(written(both, x))
        got, bent = st.jit(both)(x)
    wide = x.astype("longdouble")
    right, steep = exact(wide), exact_slope(wide, np.exp(-abs(wide)))
    for one, other in ((got, right), (bent, steep)):
        off = abs(np.asarray(one).astype("longdouble") - other) / np.spacing(
            abs(other).astype(kind)
        )
        assert off.max() < 5
    np.testing.assert_array_equal(np.signbit(np.asarray(got)[0, :2]), [False, name == "tanh"])


@pytest.mark.skipif(bool(WITHOUT), reason="there are no kernels here")
def test_derivatives_at_nan_and_infinities():
    x = np.full((80, 64), 0.5, np.float32)
    x[0, :2] = np.inf, -np.inf
    x[1, 0] = np.nan

    def both(x):
        value = snp.tanh(x)
        return value, sech_squared(x) * snp.where(value.max(1, keepdims=True) > 2, 0.0, 1.0)

    value, bent = map(np.asarray, st.jit(both)(x))
    np.testing.assert_array_equal(value[0, :2], [1, -1])
    np.testing.assert_array_equal(bent[0, :2], [0, 0])
    assert np.isnan(value[1, 0])
    assert np.isnan(bent[1, 0])
    assert np.isfinite(np.delete(bent.ravel(), 64)).all()
