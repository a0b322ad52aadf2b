"""What YNNPACK computes wrongly is not left to it, and NaN stays there."""

import re

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax, nn
from stretto._engine.lowering.writer import Writer
from stretto._engine.xla.pjrt import misreads

SUMS, PRODUCTS = "LIBRARY_FUSION_TYPE_REDUCE", "LIBRARY_FUSION_TYPE_DOT"
X, W = snp.ones((8, 64)), snp.ones((96, 64))


EXTREMA = {
    "maximum": snp.maximum,
    "minimum": snp.minimum,
    "relu": lambda x, y: nn.relu(x),
    "relu6": lambda x, y: nn.relu6(x),
    "clip": lambda x, y: snp.clip(x, 0, y),
    "max": lambda x, y: x.max(1),
    "slopes": lambda x, y: st.grad(lambda x: (snp.maximum(x, y) ** 2).sum())(x),
    "max pooling": lambda x, y: nn.functional.max_pool2d(x[None, None], 2),
    "cummax": lambda x, y: lax.cummax(x),
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", EXTREMA)
def test_no_extrema_of_floats_that_the_library_takes(name, dtype):
    x = snp.ones((8, 8), dtype)
    text = st.jit(EXTREMA[name]).lower(x, x).as_text()
    assert not re.search(r'"stablehlo\.(maximum|minimum)"\([^)]*\) : \(tensor<(\d+x)*b?f', text)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("batch", [1, 4, 64])
def test_nan_and_infinities_pass(batch, value):
    x, w = np.ones((batch, 512), np.float32), np.zeros((256, 512), np.float32)
    x[0, 7] = value
    layer = st.jit(lambda x, w: nn.relu(x @ w.T + 1))
    assert np.isnan(layer(x, w)[0]).all()
    np.testing.assert_array_equal(layer(x, w)[1:], 1)
    assert np.isnan(st.jit(lambda x, w: nn.relu(x @ w.T + 1).sum())(x, w))
    assert np.isnan(st.jit(lambda x, w: nn.relu(x @ w.T + 1).mean(0))(x, w)).all()


BOTH = {"xla_cpu_experimental_ynn_fusion_type": f"{PRODUCTS},{SUMS}"}


def _products_by_broadcasts():
    """Products by what is a broadcast, in a text or once XLA has simplified it."""
    yield "constant", lambda x, w: x @ snp.full((96, 64), 1.5, np.float32).T
    yield (
        "repeated",
        lambda x, w: snp.matmul(
            snp.stack([x, 2 * x]), snp.swapaxes(snp.broadcast_to(w, (2, 96, 64)), 1, 2)
        ),
    )
    yield "made of two", lambda x, w: x @ (w[:1, :1] * snp.ones((96, 64)) + w[:, :1]).T
    yield (
        "summed",
        lambda x, w: snp.matmul(
            snp.broadcast_to(x, (5, 3, 8, 64)),
            snp.swapaxes(snp.broadcast_to(w, (5, 3, 96, 64)), 2, 3),
        ).sum(-1),
    )
    yield (
        "in a loop",
        lambda x, w: lax.fori_loop(
            0, 3, lambda i, c: snp.tanh(c @ snp.full((64, 64), 0.1, np.float32).T), x
        ),
    )
    yield (
        "found by XLA",
        lambda x, w: x @ lax.select(x[0, 0] < snp.inf, w[:, :1], w[:, 1:2]).repeat(64, axis=1).T,
    )


@pytest.mark.parametrize(
    ("name", "f"), [pytest.param(*row, id=row[0]) for row in _products_by_broadcasts()]
)
def test_products_by_broadcasts(name, f):
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(a.shape).astype(np.float32) for a in (X, W))
    got = st.jit(f, compiler_options=BOTH)(x, w)
    with st.enable_x64():
        want = np.asarray(f(x.astype(np.float64), w.astype(np.float64)))
    assert np.abs(got - want).max() <= 1e-5 * np.abs(want).max()


HLO = """
%fused_computation (param_0.4: f32[8,64], param_1.4: f32[64]) -> f32[8,96] {
  %param_0.4 = f32[8,64]{1,0} parameter(0)
  %param_1.4 = f32[64]{0} parameter(1)
  %broadcast.1 = f32[96,64]{1,0} broadcast(%param_1.4), dimensions={1}
  %exponential.1 = f32[96,64]{1,0} exponential(%broadcast.1)
  ROOT %dot.0 = f32[8,96]{1,0} dot(LEFT, RIGHT), lhs_contracting_dims={1}, rhs_contracting_dims={1}
}

ENTRY %main.2 (Arg_0.3: f32[8,64], Arg_1.3: f32[64]) -> f32[8,96] {
  ROOT %f = f32[8,96] fusion(%a, %b), kind=kCustom, calls=%fused_computation, \
backend_config={"fusion_config":{"kind":"__ynn_fusion"}}
}
"""


def test_a_broadcast_is_found_in_the_optimized_program():
    right = HLO.replace("LEFT", "%param_0.4").replace("RIGHT", "%exponential.1")
    assert misreads(right)
    assert not misreads(right.replace("__ynn_fusion", "__other"))
    left = HLO.replace("LEFT", "%exponential.1").replace("RIGHT", "%param_0.4")
    assert not misreads(left)


SUM = """%fused_computation (a: f32[3,8,64], b: f32[8,64]) -> f32[3,8,64] {
  %b = f32[8,64]{1,0} parameter(1)
  %broadcast.1 = f32[3,8,64]{2,1,0} broadcast(%b), dimensions={1,2}
  %a = f32[3,8,64]{2,1,0} parameter(0)
  %multiply.0 = f32[3,8,64]{2,1,0} multiply(OPERANDS)
  %constant.0 = f32[] constant(0)
  %reduce.0 = f32[3,8]{1,0} reduce(%multiply.0, %constant.0), dimensions={2}, to_apply=%region_0
  %broadcast.0 = f32[3,8,64]{2,1,0} broadcast(%reduce.0), dimensions={0,1}
  ROOT %multiply.1 = f32[3,8,64]{2,1,0} multiply(%broadcast.0, %broadcast.1)
}

ENTRY %main.2 (Arg_0.3: f32[3,8,64], Arg_1.3: f32[8,64]) -> f32[3,8,64] {
  ROOT %f = f32[3,8,64] fusion(%a, %b), kind=kCustom, calls=%fused_computation, \
backend_config={"fusion_config":{"kind":"__ynn_fusion"}}
}
"""


def test_a_broadcast_beside_a_repeated_sum_is_found():
    wrong = SUM.replace("OPERANDS", "%broadcast.1, %a")
    assert misreads(wrong)
    assert not misreads(wrong.replace("__ynn_fusion", "__other"))
    assert not misreads(SUM.replace("OPERANDS", "%a, %broadcast.1"))
    assert not misreads(wrong.replace("broadcast(%reduce.0)", "broadcast(%a)"))


@pytest.mark.parametrize(
    ("moved", "is_found"),
    [
        ("bitcast(%broadcast.1)", True),
        ("transpose(%broadcast.1), dimensions={0,1,2}", True),
        ("bitcast(%a)", False),
        ("exponential(%a)", False),
        ("broadcast(%a), dimensions={}", False),
        ("broadcast(%b), dimensions={1,2}", True),
    ],
)
def test_a_broadcast_that_is_only_moved_is_one(moved, is_found):
    line = "%multiply.0 = f32[3,8,64]{2,1,0} multiply(OPERANDS)"
    text = SUM.replace(line, f"  %moved.0 = f32[3,8,64]{{2,1,0}} {moved}\n  {line}")
    assert misreads(text.replace("OPERANDS", "%moved.0, %a")) is is_found


def test_a_sum_that_is_repeated_through_work_on_it_is_one():
    """Work on a broadcast beside it alone is not enough, nor is the sum of another kernel."""
    text = SUM.replace("OPERANDS", "%broadcast.1, %a")
    worked = "  %log.0 = f32[3,8]{1,0} log(%reduce.0)\n  %broadcast.0"
    assert not misreads(
        text.replace("  %broadcast.0", worked).replace("(%reduce.0), dimensions={0,1}", "(%b)")
    )
    head, tail = text.split("  ROOT %multiply.1", 1)
    two = f"{head}}}\n\n%other (a: f32[3]) -> f32[3] {{\n  ROOT %multiply.1{tail}"
    assert misreads(two)
    assert not misreads(two.replace("calls=%fused_computation", "calls=%other"))


@pytest.mark.parametrize(
    ("made", "is_found"),
    [
        ("constant({...})", True),
        ("constant(2)", False),
        ("broadcast(%p), dimensions={1}", True),
        ("parameter(2)", False),
        ("multiply(%broadcast.1, %exponential.1)", True),
        ("multiply(%broadcast.1, %param_0.4)", False),
        ("dot(%broadcast.1, %param_0.4)", False),
    ],
)
def test_what_counts_as_a_broadcast_on_the_right(made, is_found):
    shape = "f32[]" if made == "constant(2)" else "f32[96,64]{1,0}"
    text = HLO.replace("  ROOT %dot.0", f"  %made.0 = {shape} {made}\n  ROOT %dot.0")
    assert misreads(text.replace("LEFT", "%param_0.4").replace("RIGHT", "%made.0")) is is_found


@pytest.mark.parametrize("lead", [(), (8,)])
def test_a_sum_of_what_members_share_is_right(lead):
    """98 % of the second and later members' elements were wrong, with sums alone in the library."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((*lead, 256, 32)).astype(np.float32)
    p = rng.standard_normal((3, *x.shape)).astype(np.float32)
    for f in (
        lambda p, x: x * snp.sum(x * p, -1, keepdims=True),
        lambda p, x: x + 0.5 * snp.sum(x * p, -1, keepdims=True),
        lambda p, x: x / (1 + snp.sum((x - p) ** 2, -1, keepdims=True)),
    ):
        with st.config(disk_cache=False):
            got = np.asarray(st.jit(st.vmap(f, in_axes=(0, None)))(p, x))
        want = np.stack([np.asarray(f(snp.array(each), x)) for each in p])
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


def test_a_program_with_such_a_product_is_compiled_without_the_library(monkeypatch):
    monkeypatch.setattr(Writer, "in_memory", lambda self, operand: operand)  # no barrier
    f = st.jit(lambda x: x @ snp.full((96, 64), 1.5, np.float32).T, compiler_options=BOTH)
    with st.config(disk_cache=False):
        compiled = f.lower(X).compile()
    assert "__ynn_fusion" not in compiled.as_text()
    assert np.asarray(compiled(X)).max() == 96
