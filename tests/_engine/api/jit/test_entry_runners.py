"""The variants of a runner: the one that a signature gets, and what each gives."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.api.jit.entry import BufferRunner, DonatingRunner, PlacedRunner
from stretto._engine.eager.interpreted import Interpreted

X = np.arange(3, dtype=np.float32)


def runner_of(jitted):
    (entry,) = jitted._entries.values()
    return entry.runner


def on_mesh(x):
    return st.device_put(x, st.sharding.NamedSharding(st.make_mesh((1,), ("data",)), st.P("data")))


@pytest.mark.parametrize(
    "options, put, kind",
    [
        ({}, snp.asarray, BufferRunner),
        ({}, on_mesh, PlacedRunner),
        ({"donate_argnums": 0}, snp.asarray, DonatingRunner),
        ({"donate_argnums": 0}, on_mesh, DonatingRunner),
    ],
)
def test_each_signature_has_one(options, put, kind):
    with st.config(interpret_small=False, compile_in_background=False):
        f = st.jit(lambda x: 2 * x + 1, **options)
        for _ in range(3):
            y = f(put(X))
            np.testing.assert_array_equal(np.asarray(y), 2 * X + 1)
        assert type(runner_of(f)) is kind
        assert hasattr(y, "_sharding") == (put is on_mesh)


def test_arguments_by_name_that_lie_on_a_mesh():
    """The program reads the second alone, which the calls that are known give as it lies."""
    with st.config(interpret_small=False, compile_in_background=False):
        f = st.jit(lambda x, *, y: 2 * y + 1)
        for _ in range(3):
            y = f(snp.asarray(X), y=on_mesh(X))
            np.testing.assert_array_equal(np.asarray(y), 2 * X + 1)
    assert type(runner_of(f)) is PlacedRunner


def test_small_programs_are_interpreted():
    with st.config(interpret_small=True):
        f = st.jit(lambda x: 2 * x + 1)
        np.testing.assert_array_equal(f(X), 2 * X + 1)
    assert type(runner_of(f)) is Interpreted


def test_what_runs_on_arrays_is_the_runner_itself():
    f = st.jit(lambda x: st.pure_callback(lambda x: np.asarray(x) + 1, x, x))
    np.testing.assert_array_equal(f(snp.asarray(X)), X + 1)
    (entry,) = f._entries.values()
    assert entry.runner == entry.executable.on_arrays


def test_arrays_are_given_back_where_the_call_fails():
    f = st.jit(lambda x, y: (x + 1, y), donate_argnums=0)
    f(snp.asarray(X), snp.asarray(X))
    runner = runner_of(f)
    x, gone = snp.array(X), snp.array(X)
    gone.delete()
    with pytest.raises(RuntimeError):
        runner([x, gone])
    np.testing.assert_array_equal(x, X)
    with pytest.raises(ValueError, match="one array was passed as x, which is donated, and as y"):
        runner([x, x])
