"""Element-wise results are made in the order of axes in which they are read."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.program import check
from stretto._engine.passes.align_axes import align_axes

MEMBERS, ROWS, DEPTH, COLUMNS = 3, 40, 8, 48


def draw(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


X, W, V = draw(ROWS, DEPTH), draw(MEMBERS, DEPTH, COLUMNS), draw(MEMBERS, ROWS, COLUMNS)
ALL = (X, W, V, draw(MEMBERS, COLUMNS), draw(MEMBERS, COLUMNS, 5))


def product(x, w):
    return snp.tensordot(x, w, axes=(1, 1))  # rows, members, columns


def turned(y):
    return snp.transpose(y, (1, 0, 2))


def times(y, b):
    """The rows of each member times a vector of its own."""
    return snp.einsum("rmc,mc->mr", y, b)


def with_bias(x, w, v, b, u):
    bias = snp.broadcast_to(b[:, None], v.shape)
    own = x[:, :MEMBERS, None]  # one for each row and member
    y = snp.tanh(product(x, w) + turned(bias)) * own
    return turned(y) * v, times(y, b)


def read_twice(x, w, v, b, u):
    y = snp.tanh(product(x, w))
    return turned(y) * v, turned(1 - y * y) + v, times(y, b)


def read_by_products(x, w, v, b, u):
    y = snp.exp(product(x, w))
    return turned(y) * v, snp.einsum("rmc,mck->mrk", y, u), times(y, b)


def read_by_sums(x, w, v, b, u):
    y = snp.exp(product(x, w))
    return turned(y) * v, y.max(0), y.sum((0, 1)), times(y, b)


def with_a_choice(x, w, v, b, u):
    y = product(x, w)
    return turned(snp.where(y > 0, y, snp.exp(y))) * v, times(y, b)


def chained(x, w, v, b, u):
    y = snp.tanh(product(x, w))
    z = snp.exp(turned(y) * v)
    return snp.transpose(z, (2, 0, 1)) + 1, z.sum(1), times(y, b)


PROGRAMS = {
    f.__name__: f
    for f in (with_bias, read_twice, read_by_products, read_by_sums, with_a_choice, chained)
}


def moved(program):
    """The transposes of arrays as large as the product that something but a product reads."""
    turned = [e.outputs[0] for e in program.equations if e.primitive.name == "transpose"]
    large = [v for v in turned if v.type.size == V.size]
    made = {v: e.primitive.name for e in program.equations for v in e.outputs}
    sources = {e.outputs[0]: e.inputs[0] for e in program.equations if e.inputs}
    return [v for v in large if made.get(sources[v]) not in ("dot_general", "broadcast_in_dim")]


@pytest.mark.parametrize("name", PROGRAMS)
def test_less_is_turned_around_with_the_same_values(name):
    before = st.make_graph(PROGRAMS[name])(*ALL)
    after = align_axes(before)
    check(after)
    assert after is not before
    assert len(moved(after)) < len(moved(before))
    values = [snp.asarray(x) for x in ALL]
    assert [v.type for v in after.outputs] == [v.type for v in before.outputs]
    for one, other in zip(*[evaluate(p, values) for p in (after, before)], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_programs_give_the_same_values(name):
    got = st.tree.leaves(st.jit(PROGRAMS[name])(*ALL))
    with st.config(kernels=False):
        expected = st.tree.leaves(st.jit(PROGRAMS[name])(*ALL))
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=3e-5, atol=3e-5)


def doubled(x, w, b):
    y = snp.tanh(product(x, w))
    return turned(y) * 2, times(y, b)


def unchanged(function, *args):
    program = st.make_graph(function)(*args)
    return align_axes(program) is program


def test_what_has_no_product_stays():
    assert unchanged(lambda v: snp.transpose(snp.exp(v), (1, 0, 2)) * 2, V)


def test_what_would_be_turned_elsewhere_stays():
    def returned(x, w, v, b, u):
        y = snp.tanh(product(x, w))
        return turned(y) * v, times(y, b), y

    assert unchanged(returned, *ALL)


def test_small_arrays_stay():
    assert unchanged(doubled, X[:5], W[:, :, :4], ALL[3][:, :4])


def test_products_that_no_kernel_computes_stay():
    wide = draw(400, 2), draw(40, 2, 2), draw(40, 2)  # few multiply-adds for each member
    assert unchanged(doubled, *wide)


def test_what_meets_no_vector_stays():
    assert unchanged(lambda x, w, v, b, u: turned(snp.tanh(product(x, w))) * v, *ALL)


def test_what_only_products_read_turned_stays():
    def layers(x, w, v, b, u):
        y = snp.tanh(product(x, w))
        return snp.einsum("mrc,mck->mrk", turned(y), u), times(y, b)

    assert unchanged(layers, *ALL)


def test_members_of_a_layer_whose_input_they_share():
    def loss(w):
        return snp.sum((snp.tanh(X @ w) * V[0]) ** 2)

    got = st.jit(st.vmap(st.grad(loss)))(W)
    for k in range(MEMBERS):
        alone = st.jit(st.grad(loss))(W[k])
        np.testing.assert_allclose(got[k], alone, rtol=2e-5, atol=2e-5)
