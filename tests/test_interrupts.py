"""After an interrupt anywhere, a thread is at rest, and the same call gives the right value."""

import threading

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.config import config, settings
from stretto._engine.core.interpreter import state
from stretto._engine.core.position import scope
from stretto._engine.core.program import Program
from stretto._engine.eager.interpreter import EAGER
from stretto._engine.xla import callbacks
from stretto.nn import updating
from stretto.random import streams
from tests.interrupts import interrupted, sites

X = np.array([0.5, -1.0, 2.0], np.float32)


def at_rest():
    """What a thread goes by, as it is between calls."""
    assert state.interpreter is EAGER
    assert not state.stand_ins
    assert (settings.values, settings.axes) == ({}, {})
    assert "key" not in settings.__dict__
    assert scope.path == ""
    assert streams._ambient.streams == ()
    assert (updating._open.kept, updating._open.dropped) == (frozenset(), frozenset())
    assert callbacks._thread.depth == 0
    assert np.geterr()["over"] == "warn"
    return settings.key


def small(x):
    return snp.sin(x) * x + 1


@st.custom_vjp
def cubed(x):
    return x**3


cubed.defvjp(lambda x: (x**3, x), lambda x, ct: (3 * x**2 * ct,))


def in_a_scope(x):
    with st.named_scope("layer"):
        return small(x)


def eager(x):
    return small(x) + snp.clip(x, 0, 1) - x.at[0].set(2.0) + snp.sum(x, 0)


def scanned(x):
    def step(carry, a):
        return carry + st.pure_callback(lambda a: 2 * a, a, a), carry

    return st.lax.scan(step, snp.float32(0), x)[1]


def captured_rule(y):
    @st.custom_jvp
    def f(x):
        return x * y

    f.defjvp(lambda primals, tangents: (primals[0] * y, tangents[0] * y))
    return st.grad(f)(y)


def nested_jit():
    return st.jit(lambda x: in_a_scope(x) * 1)


def set_and_run(x):
    with st.config(plan="batched"), st.enable_x64():
        return small(x)


def dropped(x):
    with st.nn.keys(st.random.PRNGKey(0)):
        return st.nn.Dropout(0.5)(x)


def normalized(x):
    return st.nn.stateful_call(st.nn.BatchNorm1d(1), x.reshape(3, 1))[0]


# What is called, made anew, with what it is called with; and the files in which it is interrupted.
STATE = (
    "core/config", "core/threads", "core/interpreter", "core/recorder", "core/position",
    "core/boundary", "autodiff/", "higher_order/", "eager/interpreter", "xla/callbacks",
    "eager/interpreted", "api/", "random/streams", "nn/updating",
)  # fmt: skip
WORKS = {
    "eager operators": (lambda: eager, X, ("core/", "eager/")),
    "tracing": (lambda: st.make_graph(small), X, ("core/", "api/")),
    "first call of jit": (lambda: st.jit(lambda x: small(x) * 1), X, STATE),
    "compiling": (
        lambda: st.jit(lambda x: snp.sort(small(x))),
        X,
        ("api/jit/entry", "api/jit/jit", "xla/cache", "xla/pjrt"),
    ),
    "a donation": (
        lambda: lambda x: st.jit(lambda x: snp.sort(x) + 1, donate_argnums=0)(snp.array(x) * 1),
        X,
        ("api/jit/entry", "xla/array"),
    ),
    "grad": (lambda: st.grad(lambda x: small(x).sum()), X, STATE),
    "jvp": (lambda: lambda x: st.jvp(small, (x,), (x,))[1], X, STATE),
    "linearize": (lambda: lambda x: st.linearize(small, x)[1](x), X, STATE),
    "vmap": (lambda: st.vmap(small), X, STATE),
    "vmap of a named axis": (
        lambda: st.vmap(lambda x: x / st.lax.psum(x, "i"), axis_name="i"),
        X,
        STATE,
    ),
    "scan with callbacks": (lambda: scanned, X, ("core/", "higher_order/", "eager/")),
    "custom rules": (lambda: st.grad(cubed), np.float32(2), STATE),
    "a rule that captures": (lambda: captured_rule, np.float32(2), STATE),
}
BLOCKS = {
    "a scope": (lambda: in_a_scope, X, ("core/position", "core/threads")),
    "settings": (lambda: set_and_run, X, ("core/config", "core/threads")),
    "a stream of keys": (lambda: dropped, X, ("random/streams",)),
    "buffers": (lambda: normalized, X, ("nn/updating",)),
    "grad of vmap of jit": (
        lambda: st.grad(lambda x: st.vmap(nested_jit())(x).sum()),
        X,
        ("autodiff/", "higher_order/family"),
    ),
    "jit with a callback": (
        lambda: st.jit(lambda x: st.pure_callback(lambda x: 2 * x, x, x)),
        X,
        ("higher_order/host", "higher_order/callback", "xla/callbacks", "core/threads"),
    ),
}
"""``with`` blocks of the user's, and what takes long."""


def values_of(make, x):
    """A call of what is made anew, as NumPy's arrays."""
    function = make()

    def call():
        out = function(snp.array(x))
        return str(out) if isinstance(out, Program) else np.asarray(out)

    return call


def check(works, name, event):
    make, x, files = works[name]
    want, key = values_of(make, x)(), at_rest()
    at = sites(values_of(make, x), files, event)
    assert len(at) > 3
    for site in at:
        if site[0].co_name == "__exit__" and site[2:] == ("call",):
            continue  # nothing written in Python can give back what is left here
        call = values_of(make, x)
        interrupted(call, site, files, event)
        assert at_rest() is key, site
        got = call()
        assert np.array_equal(got, want) if isinstance(want, np.ndarray) else got == want, site


@pytest.mark.parametrize("name", WORKS)
def test_an_interrupt_at_each_line(name):
    check(WORKS, name, "line")


@pytest.mark.parametrize("name", [*BLOCKS, "compiling", "a donation"])
def test_an_interrupt_wherever_python_looks_for_one(name):
    check(BLOCKS if name in BLOCKS else WORKS, name, "signal")


def test_other_threads_go_on_after_an_interrupt():
    """No lock stays behind."""
    make, x, files = WORKS["compiling"]
    for site in sites(values_of(make, x), files, "signal"):
        call, got = values_of(make, x), []
        interrupted(call, site, files, "signal")
        thread = threading.Thread(target=lambda: got.append(call()), daemon=True)  # noqa: B023
        thread.start()
        thread.join(30)
        assert got, site


def test_a_setting_of_all_threads_is_set_whole_or_not_at_all():
    def work():
        config.enable_x64 = True

    files, old = ("core/config",), settings.key
    try:
        for site in sites(work, files, "signal"):
            config.enable_x64 = False
            interrupted(work, site, files, "signal")
            assert (settings.key is old) == (not config.enable_x64)
    finally:
        config.enable_x64 = False
    assert at_rest() is old
