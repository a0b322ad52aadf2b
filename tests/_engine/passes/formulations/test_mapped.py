"""Mapped calls: the laws, what every plan gives, and where a call is left."""

import functools

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax, nn
from stretto._engine.core import cost
from stretto._engine.core.cost import TABLES
from stretto._engine.core.machine import Kind
from stretto._engine.core.program import check
from stretto._engine.core.rewriting import live
from stretto._engine.passes.formulations import mapped as module
from stretto._engine.passes.formulations.mapped import Mapped
from stretto.laws import c64, f32, f64, law

pytestmark = pytest.mark.usefixtures("without_kernels")

PLANS = ("auto", "batched", "wide", "written out", "in turn")


def planned(plan):
    def products(w, x):
        with st.config(plan=plan):
            return st.vmap(lambda w, x: snp.tanh(x @ w), in_axes=(0, None))(w, x)

    return products


LAWS = [
    law(Mapped, planned("auto"), f32(4, 16, 16), f32(16, 16)),
    *[law(Mapped, planned(plan), f64(2, 3, 2), f64(2, 3)) for plan in PLANS[1:]],
    law(Mapped, planned("written out"), c64(2, 3, 2), c64(2, 3)),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


def random(seed, *shape):
    return snp.asarray(np.random.default_rng(seed).standard_normal(shape))


def convolution(strides=(1, 1), padding="SAME", layout="NHWC", **options):
    kernel = "HWIO" if layout == "NHWC" else "OIHW"

    def f(w, x):
        return lax.conv_general_dilated(
            x, w, strides, padding, dimension_numbers=(layout, kernel, layout), **options
        )

    return f


def network(w, x):
    """Convolutions, pooling, a mean over channels, a product, a loop and a branch."""
    h = nn.relu(convolution()(w["c"], x))
    h = lax.reduce_window(h, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    h = convolution(padding="VALID")(w["d"], h)
    h = h - h.mean(axis=(1, 2), keepdims=True)
    y = h.reshape(h.shape[0], -1) @ w["w"]
    y = lax.fori_loop(0, 3, lambda i, y: y + snp.sin(y) @ w["s"], y)
    return lax.cond(w["b"] > 0, lambda y: y * 2, lambda y: y + w["b"], y)


def attention(w, x):
    q, k, v = (x @ w[i] for i in range(3))
    return nn.softmax(q @ k.T / 2.0, -1) @ v


def nested(w, x):
    inner = st.jit(snp.dot)
    return st.vmap(lambda row: inner(w[0], row))(x)


NETWORK = {
    "c": random(0, 3, 3, 3, 2, 4),
    "d": random(1, 3, 2, 2, 4, 3),
    "w": random(2, 3, 12, 5),
    "s": random(3, 3, 5, 5),
    "b": random(4, 3),
}
IMAGES = random(5, 3, 2, 6, 6, 2)
CASES = {
    "product": (lambda w, x: x @ w, random(0, 4, 5, 3), random(1, 4, 2, 5)),
    "torch's layout": (lambda w, x: x @ w.T, random(0, 4, 3, 5), random(1, 4, 2, 5)),
    "weights first": (lambda w, x: w @ x, random(0, 4, 3, 5), random(1, 4, 5, 2)),
    "weights transposed first": (lambda w, x: w.T @ x, random(0, 4, 5, 3), random(1, 4, 5, 2)),
    "vectors": (snp.dot, random(0, 4, 5), random(1, 4, 5)),
    "shared pairs": (snp.matmul, random(0, 4, 2, 3, 5), random(1, 4, 2, 5, 3)),
    "tensordot": (
        lambda w, x: lax.dot_general(x, w, (((0, 2), (2, 0)), ((), ()))),
        random(0, 4, 3, 2, 5),
        random(1, 4, 5, 2, 3),
    ),
    "rows of two axes turned": (
        lambda w, x: snp.tensordot(snp.transpose(w, (1, 0, 2)), x, 1),
        random(0, 4, 3, 2, 5),
        random(1, 4, 5, 3),
    ),
    "turned rows of two axes": (
        lambda w, x: snp.tensordot(x, snp.transpose(w, (2, 1, 0)), 1),
        random(0, 4, 3, 2, 5),
        random(1, 4, 2, 5),
    ),
    "two axes summed in turn": (
        lambda w, x: snp.tensordot(snp.transpose(w, (2, 1, 0)), x, 2),
        random(0, 4, 3, 2, 5),
        random(1, 4, 2, 3, 4),
    ),
    "convolution": (convolution(), random(0, 3, 3, 3, 2, 4), IMAGES),
    "strided": (convolution((2, 1), "VALID"), random(0, 3, 3, 2, 2, 4), IMAGES),
    "padded": (convolution((2, 2), [(2, 1), (0, 3)]), random(0, 3, 3, 3, 2, 4), IMAGES),
    "dilated": (convolution(rhs_dilation=(2, 1)), random(0, 3, 2, 3, 2, 4), IMAGES),
    "transposed": (
        convolution(padding=[(1, 1), (2, 1)], lhs_dilation=(2, 2)),
        random(0, 3, 3, 3, 2, 4),
        IMAGES,
    ),
    "groups": (convolution(feature_group_count=2), random(0, 3, 3, 3, 1, 4), IMAGES),
    "channels first": (
        convolution(layout="NCHW"),
        random(0, 3, 4, 2, 3, 3),
        random(1, 3, 2, 2, 6, 6),
    ),
    "network": (network, NETWORK, IMAGES),
    "attention": (attention, random(0, 3, 3, 4, 4), random(1, 3, 6, 4)),
    "nested": (nested, random(0, 3, 1, 4), random(1, 3, 6, 4)),
    "checkpoint": (
        st.checkpoint(lambda w, x: snp.sin(x @ w)),
        random(0, 4, 5, 3),
        random(1, 4, 2, 5),
    ),
}


def close(a, b):
    st.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-11), a, b)


def loop(f, w, x, own):
    n = st.tree.leaves(w)[0].shape[0]
    outs = [f(st.take(w, i), x[i] if own else x[0]) for i in range(n)]
    return st.stack(outs)


@pytest.fixture(autouse=True)
def wide_floats():
    with st.enable_x64():
        yield


def in_float64(tree):
    return st.tree.map(lambda x: x.astype(snp.float64), tree)


def with_gradients(f):
    """The function, and the derivatives of the sum of its squares."""

    def both(w, x):
        return f(w, x), st.grad(lambda w, x: (f(w, x) ** 2).sum(), (0, 1))(w, x)

    return both


@functools.cache
def looped(name, own):
    f, w, x = CASES[name]
    return loop(with_gradients(f), in_float64(w), in_float64(x), own)


@pytest.mark.parametrize("own", [False, True], ids=["same", "own"])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("plan", PLANS)
def test_every_plan_gives_what_the_loop_over_members_gives(plan, name, own):
    f, w, x = CASES[name]
    axes = (0, 0 if own else None)
    with st.config(plan=plan):
        both = st.jit(st.vmap(with_gradients(f), axes))
        close(both(in_float64(w), in_float64(x if own else x[0])), looped(name, own))


@pytest.mark.parametrize("name", ["product", "convolution", "network"])
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("kind", Kind)
def test_every_plan_is_right_by_the_costs_of_every_processor(monkeypatch, kind, plan, name):
    monkeypatch.setattr(cost, "CPU", TABLES[kind])
    f, w, x = CASES[name]
    with st.config(plan=plan):
        both = st.jit(st.vmap(with_gradients(f), (0, None)))
        close(both(in_float64(w), in_float64(x[0])), looped(name, False))


@pytest.mark.parametrize("plan", PLANS)
def test_outer_transformations_take_it_for_a_call(plan):
    f, w, x = CASES["attention"]
    w, x = in_float64(w), in_float64(x)

    def total(w):
        with st.config(plan=plan):
            return (st.vmap(f)(w, x) ** 3).sum()

    def plain(w):
        return sum((f(w[i], x[i]) ** 3).sum() for i in range(len(w)))

    jitted = st.jit(total)
    close(st.grad(jitted)(w), st.grad(plain)(w))
    close(st.jit(st.grad(total))(w), st.grad(plain)(w))
    close(st.jvp(jitted, (w,), (w,)), st.jvp(plain, (w,), (w,)))
    several = snp.stack([w, 2 * w])
    close(st.vmap(jitted)(several), snp.stack([plain(v) for v in several]))
    close(st.jit(st.vmap(st.grad(total)))(several), snp.stack([st.grad(plain)(v) for v in several]))
    once = st.jit(lambda w: lax.scan(lambda c, _: (c + total(w), None), 0.0, None, length=3)[0])
    close(once(w), 3 * plain(w))
    with st.disable_jit():
        close(jitted(w), plain(w))


def mapped(f, *args):
    program = st.make_graph(f)(*args)
    check(program)
    return [e.primitive for e in program.equations if isinstance(e.primitive, Mapped)]


def test_a_call_is_left_for_what_is_worth_a_choice():
    w, x = snp.ones((4, 32, 32)), snp.ones((32, 32))
    product = st.vmap(lambda w: x @ w)
    assert len(mapped(product, w)) == 1
    assert not mapped(product, w[:, :, :2])  # few products
    assert not mapped(st.vmap(snp.sin), w)
    assert not mapped(st.vmap(lambda w: x @ w, axis_name="i"), w)
    assert not mapped(st.vmap(lambda w: x @ w, chunk_size=2), w)
    assert not mapped(st.vmap(product), snp.stack([w, w]))[0].member.effects


@pytest.mark.parametrize(("chunk", "count"), [(1, 0), (2, 1), (3, 1), (4, 1)])
def test_chunks_of_one_member_are_no_calls(chunk, count):
    """Wherever they are, and with a last chunk of one."""
    w, x = snp.ones((4, 32, 32)), snp.ones((32, 32))
    text = str(st.make_graph(st.vmap(lambda w: x @ w, chunk_size=chunk))(w))
    assert text.count(" = mapped ") == count


@pytest.mark.parametrize("plan", PLANS)
def test_members_of_any_number_are_one_product(plan):
    w = st.ShapeDtypeStruct((st.dynamic_size("n"), 32, 32), "float32")
    with st.config(plan=plan):
        assert not mapped(st.vmap(lambda w: w[0] @ w), w)


def test_the_program_of_one_member_is_that_of_the_examples_alone():
    w, x = snp.ones((4, 32, 32)), snp.ones((32, 32))
    program = st.make_graph(st.vmap(lambda w, x: snp.sin(x) @ w, (0, None)))(w, x)
    assert [e.primitive.name for e in program.equations] == ["sin", "mapped"]


def test_outputs_that_nobody_reads_are_not_computed():
    w, x = snp.ones((4, 32, 32)), snp.ones((32, 32))
    both = st.vmap(lambda w: (x @ w, snp.exp(w @ w)))
    text = st.jit(lambda w: both(w)[0]).lower(w).as_text()
    assert text.count("dot_general") == 1 and "exponential" not in text


def test_positions_are_those_of_the_user():
    w, x = snp.ones((4, 32, 32)), snp.ones((32, 32))
    (call,) = mapped(st.vmap(lambda w: x @ w), w)
    (decision,) = call.plan()[1]
    assert "test_mapped.py" in decision.position


def test_a_wrong_operand_is_named():
    w, x = snp.ones((4, 32, 32)), snp.ones((32, 32))
    (call,) = mapped(st.vmap(lambda w: x @ w), w)
    with pytest.raises(TypeError, match=r"input 0 is float64\[3,32,32\], expected"):
        call(w[:3], x)


def test_an_error_in_a_member_shows_the_types_of_one():
    with pytest.raises(ValueError, match=r"float64\[3,4\].*float64\[5\]"):
        st.jit(st.vmap(lambda w, x: w @ x))(snp.ones((2, 3, 4)), snp.ones((2, 5)))


def names(program):
    return [e.primitive.name for e in program.equations]


def test_derivatives_by_what_is_each_members_own_stay_mapped():
    w, x = snp.ones((4, 32, 32)), snp.ones((32, 32))

    def total(w):
        return snp.sin(st.vmap(lambda w, x: snp.tanh(x @ w), (0, None))(w, x)).sum()

    backward = st.make_graph(st.grad(total))(w)
    assert names(backward).count("mapped") == 2
    assert "dot_general" not in names(backward)
    (_, transposed) = [e.primitive for e in backward.equations if e.primitive.name == "mapped"]
    # The shared x, a residual, is not repeated for each member.
    assert (32, 32) in [t.shape for t in transposed.member.in_types]
    assert transposed.over.count(False) == 1


def test_derivatives_by_what_all_share_sum_inside_the_product():
    w, x = snp.ones((4, 32, 32)), snp.ones((32, 32))

    def total(x):
        return st.vmap(lambda w, x: x @ w, (0, None))(w, x).sum()

    text = st.jit(st.grad(total)).lower(x).as_text()
    assert text.count("stablehlo.dot_general") == 1
    assert "tensor<4x32x32xf64>) -> tensor<32x32xf64>" in text


def test_a_residual_that_no_member_changes_is_computed_once():
    w, x = random(0, 4, 32, 32), random(1, 32, 32)

    def total(w):
        def member(w):
            scale = st.custom_jvp(lambda w: w)
            scale.defjvp(lambda p, t: (p[0], t[0] * snp.cos(x)))
            return (x @ scale(w)).sum()

        return st.vmap(member)(w).sum()

    expected = np.broadcast_to(np.cos(x) * np.asarray(x).sum(0)[:, None], (4, 32, 32))
    np.testing.assert_allclose(st.jit(st.grad(total))(w), expected, rtol=1e-9)


@pytest.mark.parametrize("size", [2, 3], ids=["whole", "rest"])
def test_chunks_are_planned_too(size):
    f, w, x = CASES["convolution"]
    w, x = (in_float64(v) for v in (snp.concatenate([w, w], 0)[:5], snp.concatenate([x, x], 0)[:5]))

    def loss(w, x):
        return (f(w, x) ** 2).sum()

    with st.config(plan="written out"):
        chunked = st.jit(st.vmap(f, chunk_size=size))
        assert "feature_group_count = 2" not in chunked.lower(w, x).as_text()
        close(chunked(w, x), loop(f, w, x, True))
        close(
            st.jit(st.vmap(st.grad(loss), chunk_size=size))(w, x), loop(st.grad(loss), w, x, True)
        )
        total = st.grad(lambda w: st.vmap(loss, chunk_size=size)(w, x).sum())
        close(st.jit(total)(w), loop(st.grad(loss), w, x, True))
        close(total(w), loop(st.grad(loss), w, x, True))


@pytest.mark.parametrize(("columns", "is_worth_it"), [(16, True), (15, False)])
def test_from_how_many_multiply_adds_on_a_choice_is_worth_it(columns, is_worth_it):
    """16,384, of all members together."""
    w, x = snp.ones((4, 16, columns)), snp.ones((16, 16))
    assert bool(mapped(st.vmap(lambda w: x @ w), w)) is is_worth_it


@pytest.mark.parametrize("plan", PLANS)
def test_results_that_are_the_same_for_all_members(plan):
    """Where nothing that is needed depends on the member, there are as many all the same."""

    @st.jit
    def both(w, x):
        return snp.tanh(x @ w), snp.sin(x) @ x

    w, x = random(0, 4, 32, 32), random(1, 32, 32)

    def shared(w, x):
        with st.config(plan=plan):
            return st.vmap(both, in_axes=(0, None))(w, x)[1]

    program = live(st.make_graph(shared)(w, x))
    check(program)
    (mapped,) = [e for e in program.equations if isinstance(e.primitive, Mapped)]
    assert len(mapped.outputs) == 1 and any(mapped.primitive.over)
    for run in (shared, st.jit(shared)):
        np.testing.assert_allclose(
            run(w, x), [np.sin(np.asarray(x)) @ np.asarray(x)] * 4, rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize(("less", "is_tried"), [(0, True), (1, False)])
def test_members_are_written_out_if_that_is_not_too_long(monkeypatch, less, is_tried):
    tried = []
    monkeypatch.setattr(module, "fastest", lambda key, plans: tried.extend(plans) or "auto")
    f, w, x = CASES["product"]
    length = len(w) * len(st.make_graph(f)(w[0], x[0]).equations)
    monkeypatch.setattr(module, "_MOST_TRIED", length - less)
    with st.config(plan="measure"):
        np.testing.assert_allclose(st.jit(st.vmap(f))(w, x), np.asarray(x) @ np.asarray(w), 1e-5)
    assert tried == ["auto", "batched", "in turn", *["written out"] * is_tried]
