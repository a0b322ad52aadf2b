"""What the planner chooses, by its estimates."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.core import cost
from stretto._engine.core.cost import TABLES
from stretto._engine.core.machine import Kind, cores
from stretto._engine.passes.formulations import members
from stretto._engine.passes.formulations.forms import MOST_WRITTEN, Parts, Plan, Whole
from stretto._engine.passes.formulations.mapped import Mapped
from stretto._engine.passes.formulations.members import _Walk, plan_members

pytestmark = pytest.mark.usefixtures("without_kernels")


def decisions(f, axes, *args):
    program = st.make_graph(st.vmap(f, axes))(*args)
    (call,) = [e.primitive for e in program.equations if isinstance(e.primitive, Mapped)]
    return call.plan()[1]


def chosen(f, axes, *args):
    return [d.chosen for d in decisions(f, axes, *args)]


def product(w, x):
    return x @ w


def torch_product(w, x):
    return x @ w.T


def convolution(w, x):
    return lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


@pytest.mark.parametrize(
    ("f", "shapes", "expected"),
    [
        # The copy that joining members to the free axes needs costs more than repeating one row.
        (product, ((10, 784, 128), (1, 784)), "one batched product"),
        # PyTorch's layout needs no copy.
        (torch_product, ((10, 128, 784), (64, 784)), "one wide product, members first"),
        (torch_product, ((100, 128, 784), (64, 784)), "one wide product, members first"),
        (product, ((100, 784, 128), (64, 784)), "one batched product"),
        # What would be repeated is much, and does not stay in the cache.
        (product, ((100, 100, 100), (1000, 100)), "chunks of members"),
        (product, ((100, 784, 16), (1024, 784)), "one wide product"),
    ],
    ids=["one row", "torch", "torch, many", "many", "many rows", "narrow"],
)
def test_products_of_a_shared_operand(f, shapes, expected):
    w, x = map(snp.ones, shapes)
    assert chosen(f, (0, None), w, x) == [expected]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(Kind.AVX512, "one batched product"), (Kind.ARM, "one wide product")],
    ids=lambda x: getattr(x, "name", ""),
)
def test_where_multiplying_is_slower_copies_that_save_some_pay(monkeypatch, kind, expected):
    two_cores = TABLES[kind]._replace(products=2 * TABLES[kind].products / cores())
    monkeypatch.setattr(cost, "CPU", two_cores)
    assert chosen(product, (0, None), snp.ones((2, 64, 256)), snp.ones((64, 64))) == [expected]


def test_convolutions():
    w, x = snp.ones((8, 3, 3, 16, 32)), snp.ones((8, 16, 16, 16, 16))
    assert chosen(convolution, (0, 0), w, x) == ["members written out"]
    assert chosen(convolution, (0, None), w, x[0]) == ["matrix products of windows laid out once"]
    assert chosen(convolution, (None, 0), w[0], x) == ["one wide convolution"]
    few = snp.ones((8, 3, 3, 3, 16)), snp.ones((8, 16, 16, 16, 3))
    assert chosen(convolution, (0, 0), *few) == ["members written out"]
    many = snp.ones((100, 3, 3, 4, 4)), snp.ones((100, 2, 8, 8, 4))
    assert chosen(convolution, (0, 0), *many) == ["one convolution with groups"]
    many = snp.ones((100, 3, 3, 8, 16)), snp.ones((100, 2, 8, 8, 8))
    assert chosen(convolution, (0, 0), *many) == ["members in turn"]


def with_rule_jvp(x):
    function = st.custom_jvp(lambda x: snp.maximum(x, 0))
    function.defjvps(lambda t, out, x: t * (x > 0))
    return function(x)


def with_rule_vjp(x):
    function = st.custom_vjp(lambda x: snp.maximum(x, 0))
    function.defvjp(lambda x: (snp.maximum(x, 0), x), lambda x, ct: (ct * (x > 0),))
    return function(x)


@pytest.mark.parametrize(
    "between",
    [lambda x: snp.maximum(x, 0), with_rule_jvp, with_rule_vjp],
    ids=["plain", "custom_jvp", "custom_vjp"],
)
def test_what_follows_a_written_out_convolution_stays_in_parts(between):
    w, x = snp.ones((8, 3, 3, 16, 16)), snp.ones((8, 16, 16, 16, 16))

    def twice(w, x):
        return convolution(w, between(convolution(w, x)))

    (call,) = [
        e.primitive
        for e in st.make_graph(st.vmap(twice))(w, x).equations
        if isinstance(e.primitive, Mapped)
    ]
    names = [e.primitive.name for e in call.plan()[0].equations]
    assert names.count("max") == 8 and names.count("concatenate") == 1


@pytest.mark.parametrize(
    ("inputs", "output", "plan", "settings", "apart"),
    [
        ([4096], 1, Plan.AUTO, {}, True),  # of 16 KiB
        ([4095], 1, Plan.AUTO, {}, False),
        ([4095], 4096, Plan.AUTO, {}, True),
        ([4095, 4096], 1, Plan.AUTO, {}, True),
        ([], 4096, Plan.AUTO, {}, False),
        ([4096], 1, Plan.AUTO, {"holds_programs": True}, False),
        ([4096], 1, Plan.AUTO, {"effects": {"prints"}}, False),
        ([], 1, Plan.WRITTEN_OUT, {}, True),
        ([], 1, Plan.WRITTEN_OUT, {"holds_programs": True}, False),
    ],
)
def test_which_operations_are_done_member_by_member(inputs, output, plan, settings, apart):
    primitive = SimpleNamespace(**{"holds_programs": False, "effects": set(), **settings})
    parts = [Parts([snp.zeros(n)] * 2) for n in inputs]
    equation = SimpleNamespace(outputs=[SimpleNamespace(type=snp.zeros(output).type)])
    walk = _Walk(2, plan, cost.CPU)
    assert walk.in_parts(primitive, [Whole(snp.zeros((2, 9000)), 0), *parts], equation) == apart
    walk.written = 20_000
    assert walk.in_parts(primitive, parts, equation) == apart
    walk.written = 20_001
    assert walk.in_parts(primitive, parts, equation) == (apart and plan is Plan.WRITTEN_OUT)


def test_a_rule_for_vmap_is_what_runs():
    @st.custom_vmap
    def function(x):
        return snp.maximum(x, 0)

    @function.def_vmap
    def rule(axis_size, in_batched, x):
        return snp.full_like(x, 7), True

    w, x = snp.ones((8, 3, 3, 4, 4)), snp.ones((8, 2, 8, 8, 4))
    for plan in ("auto", "written out"):
        with st.config(plan=plan):
            out = st.jit(st.vmap(lambda w, x: function(convolution(w, x))))(w, x)
        np.testing.assert_array_equal(out, np.full(out.shape, 7))


def test_choices_are_listed_from_the_cheapest():
    w, x = snp.ones((10, 784, 128)), snp.ones((64, 784))
    (decision,) = decisions(product, (0, None), w, x)
    times = [t for _, t in decision.choices]
    assert times == sorted(times) and decision.choices[0][0] == decision.chosen
    assert "f32[64,784]" in decision.operation
    assert re.search(r"test_members\.py:\d+", decision.position)


@pytest.mark.parametrize("plan", ["written out", "in turn", "batched", "wide"])
def test_a_plan_can_be_forced(plan):
    w, x = snp.ones((4, 32, 16)), snp.ones((8, 32))
    with st.config(plan=plan):
        text = st.jit(st.vmap(product, (0, None))).lower(w, x).as_text()
    products = text.count("stablehlo.dot_general")
    assert products == (4 if plan == "written out" else 1)
    assert ("stablehlo.while" in text) == (plan == "in turn")
    assert ("lhs_batching_dimensions = [0]" in text) == (plan == "batched")


def test_an_unknown_plan_is_refused():
    with pytest.raises(ValueError, match=r"config.plan must be one of 'auto', 'measure'"):
        st.config.plan = "fast"


def test_groups_of_a_convolution_are_written_out():
    x, w = snp.ones((2, 8, 8, 16)), snp.ones((3, 3, 8, 6))

    def grouped(x, w):
        return lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=2
        )

    text = st.jit(grouped).lower(x, w).as_text()
    assert text.count("stablehlo.convolution") == 2
    np.testing.assert_allclose(
        st.jit(grouped)(x, w)[..., :3], convolution(w[..., :3], x[..., :8]), rtol=1e-6
    )


def test_gradients_that_make_much_on_their_way_take_members_in_turns():
    sizes = (256, 256)
    params = [snp.ones((32, *sizes)), snp.ones((32, *sizes))]
    x = snp.ones((32, 512, 256))

    def loss(params, x):
        for w in params:
            x = snp.tanh(x @ w)
        return snp.mean(x**2)

    whole, *_ = decisions(st.grad(loss), (0, 0), params, x)
    assert whole.all_in_all and whole.chosen.endswith("of 32 members a turn")
    assert dict(whole.choices)["all members at once"] > dict(whole.choices)[whole.chosen]
    few = [w[:2] for w in params]
    assert "a turn" not in decisions(st.grad(loss), (0, 0), few, x[:2])[0].chosen


def kernels(members):
    """The kernels of members that are written out, as XLA wrote them, but for names."""
    rng = np.random.default_rng(0)
    draw = lambda *shape: rng.normal(size=shape).astype(np.float32)

    def member(w, v, scale, x):
        y = snp.tanh(convolution(w, x) * scale)
        y = convolution(v, y / (1 + snp.sum(y * y, axis=(0, 1, 2))))
        return snp.sum(snp.exp(y) * scale, axis=(0, 1, 2))

    args = draw(members, 3, 3, 8, 16), draw(members, 3, 3, 16, 16), draw(members, 16)
    args = (*args, draw(members, 8, 16, 16, 8))
    f = st.jit(st.vmap(member))
    assert "members written out" in chosen(member, 0, *args)
    np.testing.assert_allclose(f(*args)[1], member(*[a[1] for a in args]), rtol=1e-4, atol=1e-4)
    text = f.lower(*args).compile().as_text()
    pattern = r"^%?\S*fused_computation[^\n]*\{\n(.*?)^\}"
    bodies = re.findall(pattern, text, re.DOTALL | re.MULTILINE)
    without = [re.sub(r", metadata=\{[^}]*\}", "", body) for body in bodies]
    return [re.sub(r"%[\w.\-]+", "%", body) for body in without]


def test_the_kernels_of_members_that_are_written_out_are_equal():
    few, many = kernels(2), kernels(5)
    assert len(many) > len(few) > len({*few}) >= 3
    assert len({*many}) == len({*few})  # so that the compiler makes no more of them


@pytest.mark.parametrize("size", [MOST_WRITTEN, MOST_WRITTEN + 1])
def test_a_plan_holds_for_any_number_of_members_unless_these_are_to_be_written_out(size):
    x = snp.ones((8, 4))
    program = st.make_graph(lambda w: x @ w)(snp.ones((4, 3)))
    over = [v.type.shape == (4, 3) for v in program.inputs]

    def operations(plan):
        planned, _ = plan_members(program, size, over, plan, cost.CPU)
        return [e.primitive.name for e in planned.equations]

    written = operations(Plan.WRITTEN_OUT)
    assert (written.count("dot_general") == size) is (size <= MOST_WRITTEN)
    assert operations(Plan.BATCHED).count("dot_general") == 1
    assert operations(Plan.IN_TURN).count("scan") == 1


@pytest.mark.parametrize("most", [0, 2, 3, 5, 6, 11])
def test_so_many_operations_are_written_member_by_member_and_no_more(most, monkeypatch):
    monkeypatch.setattr(members, "_MOST_EQUATIONS", most)
    monkeypatch.setattr(members, "_SMALL_PART", 0)

    def f(x):
        for _ in range(5):
            x = snp.tanh(x)
        return x

    row = np.ones(2, np.float32)
    program, walk, found = st.make_graph(f)(row), _Walk(3, Plan.AUTO, cost.CPU), []
    st.make_graph(lambda *rows: found.extend(walk.run(program, [Parts([*rows])])))(row, row, row)
    assert isinstance(found[0], Parts) is (most >= 12)
    assert walk.written == 3 * (most // 3 + 1)  # the last begins with no more than the most
