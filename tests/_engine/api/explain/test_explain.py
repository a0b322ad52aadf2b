"""``st.explain``: what it takes, that it runs nothing, and how it reads."""

import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.interpreter import state

X = snp.ones((64, 64))


def test_shapes_suffice():
    struct = st.ShapeDtypeStruct((64, 64), "float32")
    by_shape = st.explain(lambda x: x @ x, struct)
    assert by_shape == st.explain(lambda x: x @ x, X)


def test_nothing_is_run():
    seen = []

    def f(x):
        st.debug.callback(seen.append, x)
        return x @ x

    assert st.explain(f, X).products.count == 1
    assert seen == []


def test_a_traced_function_is_explained_alike():
    def loss(x: st.Array) -> st.Array:
        return snp.tanh(x @ x).sum()

    f = st.jit(st.grad(loss))
    f(X)
    assert st.explain(f, X).kept


def test_methods():
    class Model(st.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = st.nn.Parameter(X)

        @st.jit
        def apply(self, x):
            return x @ self.weight

    assert st.explain(Model().apply, X).products.count == 1


def test_what_is_refused():
    with pytest.raises(TypeError, match="explain: expected a function, got int"):
        st.explain(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        st.explain(lambda x: x, object())


def test_the_note_is_put_away_after_an_error():
    def fails(x):
        raise RuntimeError("here")

    with pytest.raises(RuntimeError, match="here"):
        st.explain(fails, X)
    assert state.residuals is None


def test_it_is_short():
    text = str(st.explain(lambda x: x @ x, X))
    assert text.startswith("function, compiled:\nmemory: ")
    assert len(text.splitlines()) <= 40
