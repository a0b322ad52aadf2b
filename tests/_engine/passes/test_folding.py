"""Work on small constants is done beforehand, where NumPy gives the compiler's bits."""

import numpy as np
import pytest

import stretto as st
from stretto import numpy as snp
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.config import over_axis
from stretto._engine.core.program import Literal, check
from stretto._engine.passes.simplify import simplify

X = np.arange(4.0, dtype=np.float32)


def names(program):
    return [e.primitive.name for e in program.equations]


def left(fun):
    program = st.make_graph(fun)(X)
    made = simplify(program)
    check(made)
    for got, want in zip(
        evaluate(made, [snp.array(X)]), evaluate(program, [snp.array(X)]), strict=True
    ):
        assert np.asarray(got).tobytes() == np.asarray(want).tobytes()
        np.testing.assert_array_equal(got.dtype, want.dtype)
    return made


@pytest.mark.parametrize(
    "table",
    [
        lambda: st.lax.iota(int, 4) * 3 - 1,
        lambda: (st.lax.iota(int, 4) % 2) == 0,
        lambda: st.lax.iota(int, 16).reshape(4, 4).T[:, None] + 0,
        lambda: st.lax.iota(np.int8, 4).astype(np.float32),
        lambda: snp.where(st.lax.iota(int, 4) > 1, 5, st.lax.iota(int, 4)),
        lambda: st.lax.broadcasted_iota(int, (4, 4), 0) >= st.lax.broadcasted_iota(int, (4, 4), 1),
        lambda: ~(st.lax.iota(int, 4) == 1),
        lambda: st.lax.iota(st.numpy.bfloat16, 4).astype(np.complex64),
    ],
)
def test_exact_work_is_done(table):
    made = names(left(lambda x: (x[0], table())))
    assert [n for n in made if n not in ("slice", "reshape")] == ["constant"]


def test_equal_elements_make_a_literal():
    made = left(lambda x: x.astype(int) + (st.lax.iota(int, 4) * 0 + 7))
    assert names(made) == ["convert_element_type", "add"]
    (constant,) = left(lambda x: st.lax.iota(int, 4) < 9).outputs
    assert type(constant) is Literal and constant.value


def test_equal_constants_are_one():
    made = left(lambda x: (x + (st.lax.iota(int, 4) + 1), x * (2 + st.lax.iota(int, 4) - 1)))
    assert names(made).count("constant") == 1


def test_what_nobody_computes_with_stays():
    program = st.make_graph(lambda x: x + st.lax.iota(np.float32, 4))(X)
    assert simplify(program) is program


def test_functions_of_floats_are_left_to_the_compiler():
    made = left(lambda x: x + snp.sin(st.lax.iota(np.float32, 4)) * 0.1)
    assert names(made) == ["iota", "sin", "mul", "add"]


def test_large_results_are_left_to_the_compiler():
    made = left(lambda x: x[0] + st.lax.iota(int, 300) * 2)
    assert "iota" in names(made) and "constant" not in names(made)
    made = left(lambda x: x[0] + snp.broadcast_to(st.lax.iota(int, 100) * 2, (10, 100)))
    assert [n for n in names(made) if n in ("iota", "constant")] == ["constant"]


def test_what_is_seen_or_drawn_is_not_done_beforehand():
    def f(x):
        st.debug.callback(lambda i: None, st.lax.iota(int, 4) * 2)
        return x + st.pure_callback(lambda i: i, snp.array(X), st.lax.iota(np.float32, 4))

    made = simplify(st.make_graph(f)(X))
    assert names(made) == ["constant", "debug_callback", "iota", "pure_callback", "add"]


def test_members_of_a_named_axis_are_no_constants():
    def check():
        program = st.make_graph(lambda x: x * (st.lax.axis_index("i") * 2))(X)
        assert names(simplify(program)) == names(program)

    over_axis("i", 4, check)


def test_compiled_it_is_the_same():
    def f(x):
        mask = snp.tril(snp.ones((4, 4), bool))
        return snp.where(mask, x, -snp.inf).max(1) + snp.eye(4) @ x + snp.arange(8)[::2] // 3

    with st.config(interpret_small=False):
        got = st.jit(f)(X)
    np.testing.assert_allclose(got, f(snp.array(X)), rtol=1e-6)
