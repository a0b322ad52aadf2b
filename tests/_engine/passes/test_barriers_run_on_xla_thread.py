"""Programs that may take long count enough operations for XLA to run them on its threads."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.higher_order.family import has_long_loop
from stretto._engine.kernels import kernels
from stretto._engine.passes.barriers import run_on_xla_thread

COUNTED = 1000
"""XLA's ``CommonPjRtLoadedExecutable`` runs what has fewer operations in the calling thread."""


def doubled(x):
    return st.lax.while_loop(lambda c: snp.max(snp.abs(c)) < 9, lambda c: c + c, x)


@pytest.mark.parametrize(
    "x",
    [
        snp.asarray(1.0),
        snp.asarray([-1, 2, -3]),
        snp.asarray([1.5, -0.0, 2]),
        snp.asarray([[1, 1j]]),
        snp.asarray([1, 2], "bfloat16"),
        snp.asarray([1, 2], "uint8"),
        snp.asarray([1, -2], "float16"),
        snp.ones((70, 1000)),
    ],
    ids=lambda x: f"{x.dtype}{list(x.shape)}",
)
def test_same_values_and_enough_operations(x):
    graph = st.make_graph(doubled)(x)
    changed = run_on_xla_thread(graph)
    for got, wanted in zip(evaluate(changed, [x]), evaluate(graph, [x]), strict=True):
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(np.asarray(got), np.asarray(wanted))
        np.testing.assert_array_equal(np.signbit(got.real), np.signbit(wanted.real))
    compiled = st.jit(doubled).lower(x).compile()
    assert compiled.cost_analysis()["flops"] >= COUNTED
    np.testing.assert_array_equal(compiled(x), st.jit(doubled)(x))


@pytest.mark.parametrize("x", [np.nan, np.inf, -np.inf, -1.0, 3e38])
def test_no_number_is_changed(x):
    graph = st.make_graph(lambda x: st.lax.while_loop(lambda c: c == 7, lambda c: c + 1, x))(1.0)
    np.testing.assert_array_equal(
        evaluate(run_on_xla_thread(graph), [snp.asarray(x)])[0], np.float32(x)
    )


def test_what_is_short_stays_as_it_is():
    def newton(x):
        return st.lax.while_loop(
            lambda s: (snp.abs(s[0] * s[0] - x) > 1e-6) & (s[1] < 100),
            lambda s: ((s[0] + x / s[0]) / 2, s[1] + 1),
            (x, 0),
        )[0]

    for f in (newton, snp.sin, lambda x: st.lax.fori_loop(0, 10, lambda i, c: c * x, x)):
        graph = st.make_graph(f)(2.0)
        assert run_on_xla_thread(graph) is graph
    assert not has_long_loop(st.make_graph(newton)(2.0))
    compiled = st.jit(newton).lower(2.0).compile()
    assert compiled.cost_analysis()["flops"] < COUNTED


def test_programs_that_call_python_stay_in_their_thread():
    def f(x):
        st.debug.print("{}", x)
        return doubled(x)

    graph = st.make_graph(f)(1.0)
    assert run_on_xla_thread(graph) is graph


def test_the_result_is_the_input():
    """An output that is an input, or a constant, is left alone."""
    graph = st.make_graph(lambda x: (x, 1.0, doubled(x)))(1.0)
    assert run_on_xla_thread(graph).outputs[:2] == graph.outputs[:2]


@pytest.mark.parametrize(
    ("shape", "is_added"), [((0,), False), ((257, 255), True), ((1 << 16,), False)]
)
def test_outputs_that_are_copied_for_it(shape, is_added):
    """Small ones that there are, since a large one is computed by as many operations itself."""
    x = st.ShapeDtypeStruct(shape, np.float32)
    loop = lambda c: st.lax.while_loop(lambda c: (c == 7).any(), lambda c: c + 1, c)
    graph = st.make_graph(loop)(x)
    assert (run_on_xla_thread(graph) is not graph) is is_added


def product(x, y):
    return x @ y


def product_in_a_branch(x, y):
    return st.lax.cond(x[0, 0] > 0, product, lambda x, y: y, x, y)


@pytest.mark.skipif(kernels is None, reason="needs the kernels in C")
@pytest.mark.parametrize(
    ("f", "shapes", "is_added"),
    [
        (product, [(512, 256), (256, 128)], True),
        (product, [(511, 256), (256, 128)], False),  # just too little work to wait for
        (st.jit(product), [(512, 256), (256, 128)], True),
        (product_in_a_branch, [(512, 512), (512, 64)], True),
        (lambda x, y: st.lax.conv(x, y, (1, 1), "SAME"), [(16, 16, 32, 32), (16, 16, 3, 3)], True),
        (snp.cumsum, [(1 << 22,)], True),
        (snp.cumsum, [((1 << 22) - 1,)], False),
        # No kernel of ours is called, so XLA sees all there is.
        (st.jit(snp.sort), [(1 << 20,)], False),
        # It sees enough beside the call: what is in other calls as well, a loop once.
        (lambda x, y, z: (x @ y, -z), [(512, 256), (256, 128), (1023,)], True),
        (lambda x, y, z: (x @ y, -z), [(512, 256), (256, 128), (1024,)], False),
        (
            lambda x, y, z: (x @ y, st.jit(snp.sin)(z), 2 * z),
            [(512, 256), (256, 128), (512,)],
            False,
        ),
    ],
)
def test_calls_of_kernels_count_as_nothing(f, shapes, is_added):
    make = st.make_graph(f)
    arguments = [st.ShapeDtypeStruct(shape, np.float32) for shape in shapes]
    graph = make(*arguments)
    assert (run_on_xla_thread(graph) is not graph) is is_added
    with st.config(kernels=False):
        graph = make(*arguments)
        assert run_on_xla_thread(graph) is graph
