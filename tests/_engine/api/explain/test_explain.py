"""``st.explain``: what it takes, that it runs nothing, and how it reads."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import P, lax, nn
from stretto._engine.api.explain.explain import Collective, collective_lines
from stretto._engine.core.interpreter import state
from stretto.sharding import NamedSharding
from tests.meshes import mesh

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


def test_nothing_is_said_of_one_device():
    assert collective_lines([], 1) == []
    explanation = st.explain(lambda x: x @ x, np.ones((4, 4), np.float32))
    assert (explanation.devices, explanation.collectives) == (1, ())


def test_lines_have_the_largest_first():
    few = Collective("all-reduce", "a.py:1", 2, 400)
    many = Collective("all-gather", "a.py:2", 1, 4_000_000, "w")
    lines = collective_lines([few, many], 4)
    assert lines == [
        "devices: 4, each of which gets 4.0 MB from others at a call, by line:",
        "  all-gather, 1: 4.0 MB, the whole of w  a.py:2",
        "  all-reduce, 2: 400 bytes  a.py:1",
        "warning: every device gets the whole of w, 4.0 MB: split it as a.py:2 uses it, or keep "
        "the result split, lax.with_sharding_constraint",
    ]
    assert collective_lines([], 8) == ["devices: 8, which send each other nothing"]


@pytest.mark.devices
def test_the_partitioners_collectives_have_lines():
    over = mesh(x=4)
    x = st.device_put(np.ones((16, 64), np.float32), NamedSharding(over, P("x")))
    w = st.device_put(np.ones((64, 8), np.float32), NamedSharding(over, P("x")))

    def f(x, w):
        y = x @ w  # w is gathered
        return y.sum()

    explanation = st.explain(st.jit(f), x, w)
    first = f.__code__.co_firstlineno
    assert explanation.devices == 4
    found = {(c.kind, int(c.line.rsplit(":", 1)[1]), c.argument) for c in explanation.collectives}
    assert found == {("all-gather", first + 1, "w"), ("all-reduce", first + 2, None)}
    sizes = {c.kind: (c.count, c.bytes) for c in explanation.collectives}
    assert sizes == {"all-gather": (1, 4 * 64 * 8), "all-reduce": (1, 4)}
    assert "all-gather, 1: 2.0 kB, the whole of w" in str(explanation)
    assert "warning" not in str(explanation)


@pytest.mark.devices
def test_a_large_argument_that_is_gathered_is_warned_of():
    over = mesh(x=4)
    x = st.device_put(np.ones((16, 1024), np.float32), NamedSharding(over, P("x")))
    w = st.device_put(np.ones((1024, 512), np.float32), NamedSharding(over, P("x")))
    text = str(st.explain(lambda x, w: x @ w, x, w))
    assert "warning: every device gets the whole of w, 2.1 MB" in text


@pytest.mark.devices
def test_collectives_of_maps_over_devices():
    over = mesh(x=4)
    f = st.shard_map(
        lambda a: (lax.psum(a, "x"), lax.ppermute(a, "x", [(0, 1)])),
        mesh=over,
        in_specs=P("x"),
        out_specs=(P(), P("x")),
    )
    explanation = st.explain(st.jit(f), np.ones((8, 2), np.float32))
    found = {(c.kind, c.count, c.bytes) for c in explanation.collectives}
    assert found == {("all-reduce", 1, 16), ("collective-permute", 1, 16)}
    assert all("test_explain.py" in c.line for c in explanation.collectives)


@pytest.mark.devices
def test_shardings_asked_for_count():
    over = mesh(x=4)
    f = st.jit(
        lambda x: x * 2,
        in_shardings=NamedSharding(over, P("x")),
        out_shardings=NamedSharding(over, P()),
    )
    explanation = st.explain(f, np.ones((8, 2), np.float32))
    assert [c.kind for c in explanation.collectives] == ["all-gather"]


@pytest.mark.devices
def test_ensembles_say_it_too():
    members = [nn.Linear(3, 2, key=key) for key in st.random.split(st.random.PRNGKey(0), 4)]
    split = st.Ensemble(members).shard(mesh(members=4))
    explanation = split.explain(np.ones((5, 3), np.float32))
    assert "devices: 4, which send each other nothing" in str(explanation)
