"""The device of what was not put anywhere."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import P, lax, random
from stretto.sharding import NamedSharding

pytestmark = pytest.mark.devices

X = np.arange(6.0, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def device():
    return st.devices()[3]


MADE = {
    "zeros": lambda: snp.zeros((2, 3)),
    "ones": lambda: snp.ones((2, 3), int),
    "full": lambda: snp.full((2, 3), 2.5),
    "full of an array": lambda: snp.full((2, 3), np.arange(3)),
    "zeros_like": lambda: snp.zeros_like(X),
    "array": lambda: snp.array([[1, 2], [3, 4]]),
    "array of NumPy": lambda: snp.array(X),
    "asarray": lambda: snp.asarray(X, "int8"),
    "arange": lambda: snp.arange(5),
    "arange from": lambda: snp.arange(1, 5, 2),
    "arange of floats": lambda: snp.arange(0.0, 1.0, 0.25),
    "linspace": lambda: snp.linspace(0, 1, 5),
    "eye": lambda: snp.eye(3),
    "device_put": lambda: st.device_put(X),
    "number": lambda: st.device_put(2.0),
    "sum": lambda: snp.sum(X),
    "sin": lambda: snp.sin(X) + 1,
    "product": lambda: snp.array(X) @ X.T,
    "sort": lambda: snp.sort(X),
    "index": lambda: snp.array(X)[1],
    "update": lambda: snp.array(X).at[0].set(7),
    "normal": lambda: random.normal(random.key(1), (3,)),
    "large": lambda: random.uniform(random.key(1), (300, 300)).sum(),
    "grad": lambda: st.grad(lambda x: snp.sum(snp.sin(x)))(snp.array(X)),
    "vmap": lambda: st.vmap(lambda x: snp.dot(x, x))(X),
    "scan": lambda: lax.scan(lambda c, x: (c + x, c * x), 0.0, snp.arange(3.0))[1],
    "while_loop": lambda: lax.while_loop(lambda x: x.sum() < 9, lambda x: x + 1, snp.ones(2)),
    "jit": lambda: st.jit(lambda x: snp.sin(x) * 2)(X),
    "jit of nothing": st.jit(lambda: snp.ones(3)),
    "jit of what is not used": lambda: st.jit(lambda x: snp.ones(3))(2.0),
    "grad of jit": lambda: st.grad(st.jit(lambda x: (x**2).sum()))(snp.array(X)),
}


@pytest.mark.parametrize("name", MADE)
def test_what_is_made_is_there(name, device):
    expected = MADE[name]()
    with st.default_device(device):
        x = MADE[name]()
    assert not expected.committed
    assert x.device == device and x.type == expected.type
    np.testing.assert_allclose(x, expected, rtol=1e-6)
    assert (x + 1).device == device


def test_blocks_nest_and_are_of_their_thread(device):
    seen = []
    with st.default_device("cpu:2"):
        with st.default_device(device):
            assert snp.ones(1).device == device
            thread = threading.Thread(target=lambda: seen.append(snp.ones(1).device))
            thread.start()
            thread.join()
        assert snp.ones(1).device == st.devices()[2]
        with st.default_device(None):
            assert not snp.ones(1).committed
        with pytest.raises(RuntimeError), st.default_device(device):
            raise RuntimeError
        assert snp.ones(1).device == st.devices()[2]
    assert seen == [st.devices()[0]] and not snp.ones(1).committed
    with pytest.raises(ValueError, match=r"default_device: device must be .* got 'cpu:9'"):
        st.default_device("cpu:9").__enter__()


def test_a_decorated_function(device):
    @st.default_device(device)
    def f(x):
        return snp.sin(x)

    assert f(X).device == f(X).device == device


def test_what_has_a_place_keeps_it(device):
    split = NamedSharding(st.make_mesh((2,), ("x",)), P("x"))
    there = st.device_put(X, "cpu:5")
    f = st.jit(lambda x, y: x + y)
    constrained = st.jit(lambda x: lax.with_sharding_constraint(x * 2, split))
    asked = st.jit(lambda x: x * 2, out_shardings=split)
    before = f(X, X), constrained(X)
    with st.default_device(device):
        for _ in range(3):
            assert (there + 1).device == f(there, X).device == st.devices()[5]
            assert f(X, X).device == device
            for g in (constrained, asked):
                assert g(X).sharding.is_equivalent_to(split, 2)
        assert snp.zeros(2, device=split).sharding == split
        assert snp.zeros(2, device="cpu").committed is False
    assert f(X, X).committed is before[0].committed is False


def test_inside_a_trace_it_has_no_effect(device):
    @st.jit
    def f(x):
        with st.default_device(device):
            return snp.sin(x) + snp.ones(3)

    assert not f(X).committed
    np.testing.assert_allclose(f(X), np.sin(X) + 1, rtol=1e-6)


def test_traced_once_for_all_devices(device):
    traced = []

    @st.jit
    def f(x):
        traced.append(1)
        return snp.sin(x) * 2

    for _ in range(3):
        with st.default_device(device):
            assert f(X).device == device
        assert not f(X).committed
    assert len(traced) == 1


def test_what_is_wrong_there_is_found(device):
    """By the settings for it alone, of operations and of jitted functions."""
    wrong = (lambda: snp.log(-snp.ones(2)), lambda: st.jit(lambda x: snp.log(-x))(snp.ones(2)))
    with st.default_device(device):
        for make in wrong:
            assert make().device == device
            with st.config(debug_nans=True), pytest.raises(st.errors.NonFiniteError, match="log"):
                make()
        with st.config(debug_nans=True):
            assert st.jit(lambda x: (x + 1, {"y": x}))(snp.ones(2))[1]["y"].device == device


def test_donation_and_captured_arrays(device):
    captured = snp.ones(3)
    there = st.device_put(np.ones(3), "cpu:5")
    f = st.jit(lambda x: x + captured, donate_argnums=0)
    with st.default_device(device):
        x = snp.zeros(3)
        assert f(x).device == device and x.is_deleted()
        assert st.jit(lambda: captured * 2)().device == device
        assert st.jit(lambda: there * 2)().device == st.devices()[5]
        with pytest.raises(ValueError, match=r"cpu:3.*a captured array on .*cpu:5"):
            st.jit(lambda x: x + there)(X)


SETTING = """
import threading, numpy as np, stretto as st, stretto.numpy as snp
from stretto import random
def there(f):
    seen = []
    thread = threading.Thread(target=lambda: seen.append(f()))
    thread.start()
    thread.join()
    return f(), *seen
assert {x.device.id for x in there(lambda: snp.ones(2))} == {first}
st.config.default_device = "cpu:2"
f = st.jit(lambda x: snp.sin(x) * 2)
for make in (
    lambda: snp.ones(2), lambda: snp.ones(2) + 1, lambda: f(np.ones(3, np.float32)),
    lambda: random.normal(random.key(0), (3,)), lambda: random.normal(random.key(0), (600, 600)),
):
    assert {x.device.id for x in there(make)} == {2}
with st.config(debug_nans=True):
    assert snp.ones(2).device.id == 2
    try:
        snp.zeros(2) / 0
    except FloatingPointError as error:
        print("raised")
with st.default_device("cpu"):
    assert not snp.ones(2).committed
    with st.default_device(None):
        assert snp.ones(2).device.id == 2
    st.config.default_device = "cpu:1"
assert snp.ones(2).device.id == 1
st.config.debug_nans = True
st.config.debug_nans = False
assert there(lambda: snp.ones(2).device.id) == (1, 1)
st.config.default_device = None
assert not any(x.committed for x in there(lambda: snp.ones(2)))
print(st.devices()[0].platform, len(st.devices()))
"""


@pytest.mark.parametrize("first", [None, 3])
def test_the_setting_is_of_all_threads(first):
    env = {**os.environ, "STRETTO_NUM_CPU_DEVICES": "4"}
    env |= {"STRETTO_DEFAULT_DEVICE": f"cpu:{first}"} if first else {}
    done = subprocess.run(
        [sys.executable, "-c", SETTING.replace("{first}", str({first or 0}))],
        env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "raised\ncpu 4\n"), done.stderr


def test_the_setting_is_checked():
    for wrong in ("cpu:99", "gpu:99", "tpu"):
        with pytest.raises(st.errors.ConfigError, match=f"config: default_device.* '?{wrong}"):
            st.config.default_device = wrong
    with pytest.raises(st.errors.ConfigError, match="must be None or a str; got 3"):
        st.config.default_device = 3
    with pytest.raises(st.errors.ConfigError, match="is of the whole process"):
        st.config(default_device="cpu:1")

    @st.jit
    def f(x):
        st.config.default_device = "cpu:1"
        return x

    with pytest.raises(st.errors.ConfigError, match="was set while a function was traced"):
        f(X)
    assert st.config.default_device is None and not snp.ones(2).committed
