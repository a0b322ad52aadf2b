"""The convolutions and products of programs, also inside calls, loops, members and gradients."""

import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax, nn
from stretto._engine.api.explain import explain
from stretto._engine.kernels import WITHOUT, kernels

X, W = snp.ones((2, 8, 9, 9)), snp.ones((8, 1, 3, 3))


def depthwise(x, w):
    return lax.conv_general_dilated(x, w, (2, 1), "SAME", feature_group_count=8)


def same(x, w):
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", feature_group_count=8)


def looped(x, w):
    return lax.fori_loop(0, 5, lambda i, x: same(x, w), x)


def scanned(x, w):
    return lax.scan(lambda x, _: (same(x, w), None), x, None, length=5)[0]


CALLERS = {
    "plain": (same, 1),
    "call": (lambda x, w: st.jit(same)(2 * x, w), 1),
    "loop": (looped, 5),
    "scan": (scanned, 5),
    "checkpoint": (st.checkpoint(same), 1),
    "branch": (lambda x, w: lax.cond(x.sum() > 0, same, lambda x, w: x, x, w), 1),
    "twice": (lambda x, w: same(same(x, w), w), 2),
}


@pytest.mark.parametrize("name", CALLERS)
def test_wherever_it_is(name):
    f, count = CALLERS[name]
    (found,) = st.explain(f, X, W).convolutions
    line = same.__code__.co_firstlineno + 1
    assert found.position.endswith(f"test_explain_formulations.py:{line} (same)")
    assert found.geometry == "kernel 3x3, 8 groups, image 9x9, batch 2, features 8 to 8"
    assert (found.formulation, found.count) == ("sum of shifted slices", count)
    assert "8 groups" in found.reason


def test_strides():
    (found,) = st.explain(depthwise, X, W).convolutions
    assert "stride 2x1" in found.geometry


def test_members():
    """As the planner leaves them: here one convolution for all."""
    ws = snp.ones((3, *W.shape))
    with st.config(kernels=False):
        (found,) = st.explain(st.vmap(same, in_axes=(None, 0)), X, ws).convolutions
    assert found.count == 1 and found.formulation == "sum of shifted slices"
    with st.config(plan="written out"):
        (found,) = st.explain(st.vmap(same, in_axes=(None, 0)), X, ws).convolutions
    assert found.count == 3


def test_gradients():
    slopes = st.grad(lambda w: (same(X, w) ** 2).sum())
    forward, back = st.explain(slopes, W).convolutions
    assert "8 groups of the batch" in back.geometry
    assert forward.position.endswith("(same)")


def test_the_reason_follows_the_lowering():
    wide = lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME")
    with st.config(kernels=False):
        report = st.explain(wide, X, snp.ones((4, 8, 3, 3)))
    assert report.convolutions[0].formulation == "XLA's convolution"
    assert "no groups" in str(report)


@pytest.mark.skipif(bool(WITHOUT), reason="there are no kernels here")
def test_products_in_kernels():
    x, w, b = snp.ones((8, 64)), snp.ones((64, 96)), snp.ones(96)
    report = st.explain(lambda x, w, b: nn.functional.relu(x @ w + b) @ w.T, x, w, b)
    assert (report.products.count, report.products.kernels, report.products.fused) == (2, 2, 1)
    assert "products: 2, of which kernels compute 2, 1 with what follows" in str(report)
    alone = st.explain(lambda x, w: x @ w, x, w)
    assert (alone.products.kernels, alone.products.fused) == (1, 0)
    assert str(alone).endswith("kernels compute 1") or "kernels compute 1\n" in str(alone)


@pytest.mark.skipif(bool(WITHOUT), reason="there are no kernels here")
def test_convolutions_as_products_in_kernels():
    kernel = snp.ones((64, 32, 1, 1))
    report = st.explain(
        lambda x: nn.functional.relu(nn.functional.conv2d(x, kernel)), snp.ones((2, 32, 28, 28))
    )
    assert "products: 0 and convolutions as products, of which kernels compute 1" in str(report)


@pytest.mark.skipif(bool(WITHOUT), reason="there are no kernels here")
def test_rows_in_kernels():
    report = st.explain(lambda x: nn.functional.softmax(x, dim=-1), snp.ones((64, 128)))
    assert report.products.rows == 1
    assert "along rows: 1 calls of kernels" in str(report)


@pytest.mark.skipif(bool(WITHOUT), reason="there are no kernels here")
def test_updates_in_kernels():
    arrays = [snp.ones((64, 64, 3, 3))] * 2
    report = st.explain(lambda xs: [x - 0.1 * x for x in xs], arrays)
    assert report.products.updates == 1
    assert "updates of many arrays: 1 calls of kernels" in str(report)


@pytest.mark.skipif(bool(WITHOUT), reason="there are no kernels here")
def test_attention_in_kernels():
    attend = nn.functional.scaled_dot_product_attention
    q = snp.ones((2, 64, 32))
    report = st.explain(attend, q, q, q)
    assert (report.products.attention, report.products.kernels) == (1, 0)
    assert "attention and its gradients: 1 calls of kernels" in str(report)
    assert "products: " not in str(report)


@pytest.mark.skipif(kernels is None, reason="there are no kernels")
def test_kernels_of_our_own():
    wide = lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME")
    report = st.explain(wide, X, snp.ones((4, 8, 3, 3)))
    assert report.convolutions[0].formulation == "a kernel of our own"
    assert "where they lie" in str(report)


@pytest.mark.usefixtures("without_kernels")
def test_products():
    x, w = snp.ones((8, 64)), snp.ones((96, 64))
    turned = st.explain(lambda x, w: x @ w.T, x, w).products
    straight = st.explain(lambda x, w: x @ w, x, w.T).products
    assert (turned.count, turned.library) == (1, "YNNPACK")
    assert (straight.count, straight.library) == (1, "Eigen")
    assert "60%" in turned.reason and "100%" in straight.reason
    options = {"xla_cpu_experimental_ynn_fusion_type": ""}
    own = st.explain(st.jit(lambda x, w: x @ w.T, compiler_options=options), x, w).products
    assert own.library == "Eigen" and "compiler_options" in own.reason


def test_long_lists_are_cut():
    def many(x):
        for n in range(1, 14):
            x = lax.conv_general_dilated(x, snp.ones((8, 8, n, 1)), (1, 1), "SAME")
        return x

    text = str(st.explain(many, X))
    assert "and 3 more" in text and len(text.splitlines()) <= 40


def of(count, kernels=0, fused=0, rows=0, updates=0, attention=0, gathers=0):
    calls = kernels, fused, rows, updates, attention, gathers
    return explain.Products(count, "Eigen", "it is small", *calls)


@pytest.mark.parametrize(
    ("products", "lines"),
    [
        (of(0), []),
        (of(2), ["products: 2, by Eigen: it is small"]),
        (of(3, 1), ["products: 3, of which kernels compute 1"]),
        (of(3, 2, 1), ["products: 3, of which kernels compute 2, 1 with what follows"]),
        (of(0, rows=2), ["softmax, norms and the like, along rows: 2 calls of kernels"]),
        (of(0, updates=1), ["updates of many arrays: 1 calls of kernels"]),
        (of(0, gathers=3), ["rows at indices, or their sums: 3 calls of kernels"]),
        (
            of(2, attention=1),
            ["attention and its gradients: 1 calls of kernels, of several products each"],
        ),
        (
            of(4, 1, attention=1, rows=1),
            [
                "products: 4, of which kernels compute 1",
                "attention and its gradients: 1 calls of kernels, of several products each",
                "softmax, norms and the like, along rows: 1 calls of kernels",
            ],
        ),
    ],
)
def test_products_in_lines(products, lines):
    assert explain.formulation_lines((), products) == lines


@pytest.mark.parametrize(("count", "times"), [(1, ""), (2, " ×2")])
def test_convolutions_in_lines(count, times):
    one = explain.Convolution("f.py:3 (f)", "3x3", "as windows", "they are few", count)
    assert explain.formulation_lines((one,), of(0)) == [
        "convolutions, as they are lowered:",
        f"  f.py:3 (f): 3x3{times}\n    as windows: they are few",
    ]
    many = explain.formulation_lines((one,) * 11, of(0))
    assert len(many) == 12 and many[-1] == "  and 1 more"
