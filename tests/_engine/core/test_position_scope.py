"""Named scopes: kept with equations, through every transformation, to the compiled text."""

import re
import threading

import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.position import join_scopes, named_call, scope

X = snp.array([1.0, 2.0])


def names(f, *args):
    """The names of operations, in the lowered text."""
    text = st.jit(f).lower(*args).as_text()
    return set(re.findall(r'^#n\d+ = loc\("([^"]*)"', text, re.MULTILINE))


def op_names(f, *args):
    """The names of operations, in the compiled text."""
    return set(re.findall(r'op_name="([^"]*)"', st.jit(f).lower(*args).compile().as_text()))


def layer(x):
    with st.named_scope("layer1"):
        y = snp.sin(x)
        with st.named_scope("attention"):
            return snp.cos(y)


def test_operations_are_named_by_their_scopes():
    assert names(layer, X) == {"layer1/sin", "layer1/attention/cos"}
    assert {"layer1/sin", "layer1/attention/cos"} <= op_names(layer, X)


def test_without_scopes_nothing_is_named():
    assert names(snp.sin, X) == set()
    assert scope.path == ""


def test_as_a_decorator():
    @st.named_scope("outer")
    def f(x, n):
        return f(snp.sin(x), n - 1) if n else x

    assert names(lambda x: f(x, 2), X) == {"outer/sin", "outer/outer/sin"}


def test_named_call():
    def dense(x):
        return snp.tanh(x)

    assert names(named_call(dense), X) == {"dense/tanh"}
    assert names(named_call(dense, name="first"), X) == {"first/tanh"}
    assert named_call(dense).__name__ == "dense"


def test_functions_that_are_called():
    inner = st.jit(layer)

    def f(x):
        with st.named_scope("model"):
            return inner(x) + inner(x + 1)

    assert {"model/layer", "model/add", "layer1/sin", "layer1/attention/cos"} <= names(f, X)
    assert "model/layer/layer1/attention/cos" in op_names(f, X)
    # Traced inside a scope, and called outside it.
    assert "model" not in "".join(names(inner, X))


def test_functions_without_scopes_have_the_name_of_their_call():
    double = st.jit(lambda x: 2 * x)
    assert "function/mul" in op_names(lambda x: double(x) + 1, X)


def test_bodies_of_loops_and_branches():
    def step(c, _):
        with st.named_scope("step"):
            return snp.sin(c), None

    def loop(x):
        with st.named_scope("loop"):
            c, _ = st.lax.scan(step, x, None, length=3)
            return st.lax.cond(c[0] > 0, layer, lambda x: x, c)

    assert {"loop/step/sin", "loop/layer1/attention/cos"} <= names(loop, X)
    assert any(name.endswith("loop/step/sin") for name in op_names(loop, X))


def test_operations_written_with_others():
    def f(x):
        with st.named_scope("here"):
            return st.nn.softmax(x, -1)

    found = names(f, X)
    assert found
    assert all(name.startswith("here/") for name in found)


def test_derivatives():
    found = names(st.grad(lambda x: layer(x).sum()), X)
    assert {"layer1/cos", "layer1/attention/sin"} <= found
    assert any(name.startswith("transpose(layer1/attention)/") for name in found)

    inner = st.jit(layer)
    found = names(st.grad(lambda x: inner(x).sum()), X)
    assert {"layer1/cos", "layer1/attention/sin"} <= found
    assert any(name.startswith("transpose(layer1)/") for name in found)


def test_derivatives_of_loops():
    def loop(x):
        with st.named_scope("loop"):
            return st.lax.scan(lambda c, _: (layer(c), None), x, None, length=3)[0].sum()

    found = names(st.grad(loop), X)
    assert "loop/layer1/sin" in found
    assert any(n.startswith("transpose(loop)/transpose(layer1)/") for n in found)


def test_examples():
    assert names(st.vmap(layer), X) == {"layer1/sin", "layer1/attention/cos"}
    assert {"layer1/sin", "layer1/attention/cos"} <= names(st.vmap(st.jit(layer)), X)


def test_examples_in_chunks():
    def f(x):
        with st.named_scope("chunks"):
            return st.lax.map(layer, x, batch_size=2)

    found = names(f, snp.ones((4, 3)))
    assert "chunks/layer1/attention/cos" in found
    assert not any("chunks/chunks" in name for name in found)


def test_the_program_in_print_is_the_same():
    assert "layer1" not in str(st.make_graph(layer)(X))


def test_scopes_nest_and_end():
    with pytest.raises(ZeroDivisionError), st.named_scope("a"), st.named_scope("b"):
        assert scope.path == "a/b"
        raise ZeroDivisionError
    assert scope.path == ""
    assert (join_scopes("a", "b"), join_scopes("", "b"), join_scopes("a", "")) == ("a/b", "b", "a")


def test_each_thread_has_its_own():
    seen = []
    with st.named_scope("here"):
        thread = threading.Thread(target=lambda: seen.append(scope.path))
        thread.start()
        thread.join()
    assert seen == [""]


def test_names_that_mlir_would_misread():
    def f(x):
        with st.named_scope('quo"te\\ and\nline'):
            return snp.sin(x)

    assert "line/sin" in st.jit(f).lower(X).compile().as_text()


def test_what_is_no_name():
    with pytest.raises(TypeError, match="named_scope: name must be a string, got int"):
        st.named_scope(3)
    with pytest.raises(TypeError, match="named_scope: name must be a string, got int"):
        named_call(layer, name=3)
