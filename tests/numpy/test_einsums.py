from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.numpy.einsums import einsum_by

X, Y, Z = snp.ones((2, 3)), snp.ones((3, 4)), snp.ones((4, 2))


def operations(fun, *args):
    return [e.primitive for e in st.make_graph(fun)(*args).equations]


def test_attention_is_one_product_with_shared_axes():
    q, k = snp.ones((2, 5, 3, 4)), snp.ones((2, 6, 3, 4))
    (op,) = operations(lambda q, k: snp.einsum("bqhd,bkhd->bhqk", q, k), q, k)
    assert (op.name, op.summed, op.shared) == ("dot_general", ((3,), (3,)), ((0, 2), (0, 2)))


def test_operands_change_places_where_that_saves_a_transposition():
    names = [op.name for op in operations(lambda x, y: snp.einsum("ij,jk->ki", x, y), X, Y)]
    assert names == ["dot_general"]


def test_lone_axes_are_summed_before_the_product():
    first, second = operations(lambda x, y: snp.einsum("aij,jk->ik", x, y), snp.ones((5, 2, 3)), Y)
    assert (first.name, first.axes) == ("reduce_sum", (0,))
    assert second.name == "dot_general"


def test_vmap_and_grad_leave_products():
    def loss(x, y):
        return snp.einsum("ij,jk,ki->", x, y, Z) ** 2

    graph = st.make_graph(st.vmap(st.grad(loss), in_axes=(0, None)))(snp.ones((5, 2, 3)), Y)
    largest = max(v.type.size for e in graph.equations for v in e.outputs)
    assert largest <= 5 * 2 * 4  # never a product of all axes


def test_the_order_is_found_and_may_be_given():
    long = snp.ones((9, 9))
    assert snp.einsum_path("ij,jk,k->i", long, long, snp.ones(9))[0] == [(1, 2), (0, 1)]
    assert snp.einsum_path("ij,jk,k->i", long, long, snp.ones(9), optimize=False)[0] == [
        (0, 1),
        (0, 1),
    ]
    want = np.full((2, 2), 12.0)
    for optimize in (
        True,
        False,
        "optimal",
        ("greedy", 1000),
        [(0, 2), (0, 1)],
        [(0, 1, 2)],
        ["einsum_path", (0, 1), (0, 1)],
    ):
        got = snp.einsum("ij,jk,kl->il", X, Y, Z, optimize=optimize)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("optimize", "words"),
    [
        ("quickest", "a strategy of opt_einsum"),
        ([(0, 1)], "leaves 2 of 3 operands"),
        ([(0, 3), (0, 1)], "takes operands"),
    ],
    ids=["name", "short", "bounds"],
)
def test_orders_that_are_refused(optimize, words):
    with pytest.raises(ValueError, match=words):
        snp.einsum("ij,jk,kl->il", X, Y, Z, optimize=optimize)


def test_narrow_floats_add_up_in_float32():
    ones = snp.ones(300, "bfloat16")
    assert float(snp.einsum("i,i->", ones, ones)) == 300
    assert float(snp.einsum("i->", ones)) == 300
    for subscripts in ("i,i->", "i,i,i->"):
        out = snp.einsum(subscripts, *[ones] * (subscripts.count(",") + 1),
                         preferred_element_type=snp.float32)  # fmt: skip
        assert (out.dtype, float(out)) == (snp.float32, 300)
    assert snp.einsum("i,i->", ones, ones).dtype == snp.bfloat16


def test_preferred_element_types():
    x = snp.full(3, 100, "int8")
    assert int(snp.einsum("i,i->", x, x, preferred_element_type="int32")) == 30000
    assert snp.einsum("i,i->", x, x, preferred_element_type="float32").dtype == snp.float32
    assert snp.einsum("i->", snp.ones(2), preferred_element_type="bfloat16").dtype == snp.bfloat16
    assert snp.einsum("i,i->", snp.ones(2), 2 * snp.ones(2), precision="highest") == 4


def test_every_product_may_be_a_function_of_ones_own():
    seen = []

    def product(x, y, numbers, precision, preferred_element_type):
        seen.append((x.shape, y.shape, numbers))
        return st.lax.dot_general(x, y, numbers, precision, preferred_element_type)

    x, y, z = (np.random.default_rng(i).standard_normal((3, 3)) for i in range(3))
    for text in ("ij,jk,kl->il", "ij,ij->ji", "i,j->ij", "ii,ij->j"):
        operands = [x, y, z][: text.count(",") + 1]
        operands = [x[0], y[0]] if text == "i,j->ij" else operands
        expected = np.einsum(text, *operands)
        np.testing.assert_allclose(einsum_by(product, (text, *operands)), expected, rtol=1e-5)
    assert len(seen) == 5 and seen[2][2] == (((), ()), ((0, 1), (0, 1)))


def test_refusals():
    with pytest.raises(TypeError, match="Wrap it"):
        snp.einsum("i->", [1, 2])
    with pytest.raises(NotImplementedError, match="no out="):
        snp.einsum("ij->", X, out=X)
