"""Products take in what follows them, where nothing else reads it."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.program import check
from stretto._engine.kernels import WITHOUT
from stretto._engine.ops.fused_product import FusedProduct
from stretto._engine.passes.fuse_products import fuse_products
from stretto._engine.passes.prepare import prepare
from stretto.nn import functional as F

X, W, V = (np.random.default_rng(i).standard_normal(s).astype("f") for i, s in
           enumerate([(6, 4), (4, 5), (5, 4)]))  # fmt: skip
B = np.arange(5, dtype=np.float32) - 2
R = np.ones((6, 5), np.float32)


def fused(function, *args):
    """The program, prepared and with fused products, and those."""
    program = fuse_products(prepare(st.make_graph(function)(*args)))
    check(program)
    return program, [e for e in program.equations if isinstance(e.primitive, FusedProduct)]


def narrow(x):
    return snp.asarray(x, "bfloat16")


ALL = {
    "bias": (lambda x, w: x @ w + B, (0, 1), False, 1, 0),
    "residual": (lambda x, w: R + x @ w, (0, 1), False, 1, 0),
    "turned": (lambda x, w: (x @ w).T, (1, 0), False, 0, 0),
    "turned, residual, relu": (lambda x, w: F.relu((x @ w).T + R.T), (1, 0), True, 1, 0),
    "relu": (lambda x, w: F.relu(x @ w), (0, 1), True, 0, 0),
    "of narrow floats": (lambda x, w: narrow(x) @ narrow(w) + narrow(B), (0, 1), False, 1, 0),
    "of narrow floats, in float32": (
        lambda x, w: snp.dot(narrow(x), narrow(w), preferred_element_type="float32") + B,
        *((0, 1), False, 1, 0),
    ),
    "of integers": (
        lambda x, w: snp.dot(*[v.astype("int8") for v in (x, w)]) + B.astype("int8"),
        *((0, 1), False, 1, 0),
    ),
    "sum of two": (lambda x, w: x @ w + x @ (2 * w), (0, 1), False, 1, 1),
}


@pytest.mark.parametrize("name", ALL)
def test_what_is_taken_in(name):
    function, order, relu, adds, products = ALL[name]
    with st.config(simplify=False):
        program, found = fused(function, X, W)
    (e,) = found
    assert (e.primitive.order, e.primitive.relu, len(e.inputs)) == (order, relu, 2 + adds)
    names = [e.primitive.name for e in program.equations]
    assert names.count("dot_general") == products
    assert not {"transpose", "select"} & {*names[-1:]}


def after(follows):
    """A function of a product, and what follows it."""
    return lambda x, w: follows(x @ w)


def momentum(m, x, w):
    return 0.9 * m + x @ w


M = np.ones((6, 5), np.float32)
SUMS = {
    "momentum": (momentum, (M, X, W), False),
    "momentum that is read on": (lambda m, x, w: 2 * momentum(m, x, w), (M, X, W), True),
    "a part that another reads": (lambda m, x, w: (0.9 * m + x @ w, 0.9 * m), (M, X, W), True),
    "a part of a row": (lambda m, x, w: (0.9 * m)[:, None] + x @ w, (M[:, 0], X, W), True),
    "what is computed": (lambda m, x, w: 0.9 * snp.cumsum(m) + x @ w, (M[0], X, W), True),
    "all of an input": (lambda m, x, w: m + x @ w, (M, X, W), True),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums_that_are_updates_are_left_to_those(name):
    """The part of an input would have to be stored for the product to add it."""
    function, args, taken = SUMS[name]
    assert bool(fused(function, *args)[1]) is taken


NOT = {
    "it is an output": after(lambda y: (y, y + B)),
    "it is read twice": after(lambda y: (y + B) * y),
    "it is added to itself": after(lambda y: y + y),
    "a number is added": after(lambda y: y + 1),
    "it is cut elsewhere": after(lambda y: snp.where(y <= 1, 0, y)),
    "it is cut to another number": after(lambda y: snp.where(y <= 0, 1, y)),
    "it is of integers that kernels do not multiply": lambda x, w: (
        snp.dot(x.astype("uint16"), w.astype("uint16"), preferred_element_type="int32")
        + snp.arange(5)
    ),
    "it has a precision": lambda x, w: snp.dot(x, w, precision="highest") + B,
    "it is of floats of 8 bits": lambda x, w: (
        snp.dot(*[v.astype("float8_e4m3fn") for v in (x, w)], preferred_element_type="float32") + B
    ),
}


@pytest.mark.parametrize("name", NOT)
def test_what_is_left(name):
    assert fused(NOT[name], X, W)[1] == []


def test_only_one_array_is_added():
    _, (e,) = fused(lambda x, w: x @ w + B + R, X, W)
    assert len(e.inputs) == 3


def test_slopes_compare_the_result_with_zero():
    def loss(x, w, v):
        return snp.sum(F.relu(F.relu(x @ w) @ v) ** 2)

    program, found = fused(st.grad(loss, (0, 1, 2)), X, W, V)
    assert [e.primitive.relu for e in found].count(True) == 2
    compared = [e.inputs[0] for e in program.equations if e.primitive.name == "le"]
    made = {v for e in found for v in e.outputs}
    assert len(compared) == 2 and made.issuperset(compared)


@pytest.mark.skipif(bool(WITHOUT), reason="there are no kernels here")
def test_programs_inside_others():
    def loop(x, w):
        return st.lax.fori_loop(0, 50, lambda i, x: F.relu(x @ w @ w.T + x)[::-1], x)

    def branch(x, w):
        return st.lax.cond(x[0, 0] > 0, lambda: F.relu(x @ w), lambda: x @ w + 1)

    x, w = np.ones((64, 40), np.float32), np.ones((40, 50), np.float32)
    for function, count in ((loop, 2), (branch, 2), (st.jit(branch), 2)):
        text = st.jit(lambda x, w, f=function: f(x, w)).lower(x, w).as_text()
        assert text.count("stretto_product") == count
        assert text.count('"stablehlo.compare"') <= 2  # of the loop, of the branch, of its thread


@pytest.mark.skipif(bool(WITHOUT), reason="there are no kernels here")
@pytest.mark.parametrize("plan", ["auto", "batched", "wide", "written out", "in turn"])
def test_members_of_an_ensemble_too(plan):
    x, w, b = (np.zeros(s, np.float32) for s in [(64, 100), (3, 100, 200), (3, 200)])
    members = st.vmap(lambda x, w, b: F.relu(x @ w + b), in_axes=(None, 0, 0))
    with st.config(plan=plan):
        text = st.jit(members).lower(x, w, b).as_text()
    assert text.count("stretto_product") == (3 if plan == "written out" else 1)
    assert "stablehlo.dot_general" not in text
    # One choice may be that of the program's thread, after some bits; the cut at zero is none.
    assert text.count('"stablehlo.select"') == text.count('"stablehlo.and"') <= 1


def test_values_with_kernels_and_without():
    function = st.vmap(lambda x, w: F.relu(x @ w + B), in_axes=(0, None))
    xs = np.stack([X, -X])
    with st.config(kernels=False):
        expected = st.jit(function)(xs, W)
    np.testing.assert_allclose(st.jit(function)(xs, W), expected, rtol=1e-6)
