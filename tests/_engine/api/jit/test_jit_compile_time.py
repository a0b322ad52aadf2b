"""Operations on concrete values, computed at once while a function is traced."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.interpreter import Tracer
from stretto._engine.xla.array import Array

TABLE = snp.array([3.0, 1.0, 2.0])


def primitives(program):
    return [e.primitive.name for e in program.equations]


def test_without_it_operations_on_concrete_arrays_are_recorded():
    with pytest.raises(TypeError, match=r"int\(\) needs a concrete value"):
        st.jit(lambda x: x * int(snp.max(TABLE)))(1.0)


def test_results_are_values_that_python_can_use():
    def f(x):
        with st.ensure_compile_time_eval():
            size = int(snp.max(TABLE))
            large = TABLE[TABLE > 1]
            assert isinstance(snp.arange(size) + 1, Array)
            if snp.all(large > 1):
                x = x + large.shape[0]
        return snp.broadcast_to(x, (size,))

    assert st.jit(f)(1.0).tolist() == [3.0, 3.0, 3.0]
    assert st.vmap(f)(snp.zeros(2)).tolist() == [[2.0, 2.0, 2.0]] * 2
    assert st.grad(lambda x: f(x).sum())(1.0) == 3.0
    assert f(1.0).tolist() == [3.0, 3.0, 3.0]


def test_operations_on_traced_values_are_recorded():
    def f(x):
        with st.ensure_compile_time_eval():
            y = snp.sin(TABLE)
            z = x * y
            assert isinstance(z, Tracer) and isinstance(y, Array)
        return snp.sum(z)

    program = st.make_graph(f)(snp.ones(3))
    assert primitives(program) == ["mul", "reduce_sum"]
    expected = np.sin(TABLE.tolist())
    np.testing.assert_allclose(st.jit(st.grad(f))(snp.ones(3)), expected, rtol=1e-6)


def test_transformations_and_control_flow_inside_it():
    found = []

    def f(x):
        with st.ensure_compile_time_eval():
            square = st.jit(lambda a: a @ a)(TABLE)
            slope = st.grad(lambda a: snp.sum(a**3))(TABLE)
            twice = st.vmap(lambda a: 2 * a)(TABLE)
            total, sums = st.lax.scan(lambda c, a: (c + a, c + a), 0.0, TABLE)
            branch = st.lax.cond(TABLE[0] > 2, lambda: 5.0, lambda: 6.0)
            found.extend([float(square), slope.tolist(), twice.tolist(), float(total)])
            found.extend([sums.tolist(), float(branch)])
        return x

    assert primitives(st.make_graph(f)(1.0)) == []
    assert found == [14.0, [27.0, 3.0, 12.0], [6.0, 2.0, 4.0], 6.0, [3.0, 4.0, 6.0], 5.0]


def test_collectives_are_those_of_the_vmap_around_it():
    def f(x):
        with st.ensure_compile_time_eval():
            return x + st.lax.psum(1, "i") + st.lax.axis_index("i")

    assert st.vmap(f, axis_name="i")(snp.zeros(3)).tolist() == [3.0, 4.0, 5.0]


def test_it_nests_ends_with_an_error_and_decorates():
    @st.ensure_compile_time_eval()
    def size():
        with st.ensure_compile_time_eval():
            return int(snp.sum(TABLE))

    def f(x):
        with pytest.raises(ZeroDivisionError), st.ensure_compile_time_eval():
            raise ZeroDivisionError
        assert isinstance(TABLE + 1, Tracer)
        return x * size()

    assert st.jit(f)(2.0) == 12.0 and size() == 6


def test_functions_traced_inside_it_are_traced():
    def f(x):
        with st.ensure_compile_time_eval():
            return st.make_graph(lambda y: y + snp.sin(TABLE))(1.0)

    assert primitives(f(1.0))[0] == "sin"
