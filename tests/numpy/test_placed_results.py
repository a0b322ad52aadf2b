"""Results of functions on devices: where ``device`` and ``out_sharding`` ask for them."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import P, lax, random
from stretto.compat.jax import initializers
from stretto.sharding import NamedSharding

pytestmark = pytest.mark.devices

KEY = random.key(0)
X = np.arange(64.0, dtype=np.float32).reshape(8, 8)


@pytest.fixture
def split():
    return NamedSharding(st.make_mesh((4, 2), ("x", "y")), P("x"))


MADE = {
    "zeros": lambda **k: snp.zeros((8, 2), **k),
    "ones": lambda **k: snp.ones((8, 2), int, **k),
    "empty": lambda **k: snp.empty(8, **k),
    "full": lambda **k: snp.full((8, 2), 3, **k),
    "full of an array": lambda **k: snp.full((8, 2), np.arange(2), **k),
    "zeros_like": lambda **k: snp.zeros_like(X, **k),
    "ones_like": lambda **k: snp.ones_like(X, **k),
    "full_like": lambda **k: snp.full_like(X, 2, **k),
    "array": lambda **k: snp.array(X, **k),
    "asarray": lambda **k: snp.asarray([1, 2, 3, 4], **k),
    "arange": lambda **k: snp.arange(8, **k),
}
ON_DEVICES = {
    **MADE,
    "empty_like": lambda **k: snp.empty_like(X, **k),
    "eye": lambda **k: snp.eye(8, **k),
    "linspace": lambda **k: snp.linspace(0, 1, 8, **k),
    "astype": lambda **k: snp.astype(X, int, **k),
    "from_dlpack": lambda **k: snp.from_dlpack(X, **k),
    "fftfreq": lambda **k: snp.fft.fftfreq(8, **k),
    "rfftfreq": lambda **k: snp.fft.rfftfreq(7, **k),
}
LAID_OUT = {
    **MADE,
    "dot": lambda **k: snp.dot(X, X, **k),
    "matmul": lambda **k: snp.matmul(X, X, **k),
    "tensordot": lambda **k: snp.tensordot(X, X, 1, **k),
    "einsum": lambda **k: snp.einsum("ij,jk->ki", X, X, **k),
    "repeat": lambda **k: snp.repeat(X, 2, 0, **k),
    "bincount": lambda **k: snp.bincount(np.arange(8), length=8, **k),
    "percentile": lambda **k: snp.percentile(X, 50, 0, **k),
    "reshape": lambda **k: snp.reshape(X, (16, 4), **k),
    "ravel": lambda **k: snp.ravel(X, **k),
    "broadcast_to": lambda **k: snp.broadcast_to(X, (4, 8, 8), **k),
    "x.flatten": lambda **k: snp.array(X).flatten(**k),
    "x.at.get": snp.array(X).at[:4].get,
    "x.at.set": lambda **k: snp.array(X).at[:4].set(1, **k),
    "lax.dot": lambda **k: lax.dot(X, X, **k),
    "lax.dot_general": lambda **k: lax.dot_general(X, X, (((1,), (1,)), ((), ())), **k),
    "lax.broadcast": lambda **k: lax.broadcast(X, (4,), **k),
    "lax.broadcasted_iota": lambda **k: lax.broadcasted_iota(int, (8, 2), 0, **k),
    "lax.empty": lambda **k: lax.empty((8,), "float32", **k),
    "lax.reduce": lambda **k: lax.reduce(X, 0.0, lax.add, (1,), **k),
    "lax.rng_bit_generator": lambda **k: lax.rng_bit_generator(
        np.arange(4, dtype=np.uint32), (8,), **k
    )[1],
    "segment_sum": lambda **k: st.lax.segment_sum(X, np.arange(8), 8, **k),
    "uniform": lambda **k: random.uniform(KEY, (8, 2), **k),
    "normal": lambda **k: random.normal(KEY, (8, 2), **k),
    "gamma": lambda **k: random.gamma(KEY, 2.0, (8,), **k),
    "poisson": lambda **k: random.poisson(KEY, 2.0, (8,), **k),
    "randint": lambda **k: random.randint(KEY, (8,), 0, 9, **k),
    "categorical": lambda **k: random.categorical(KEY, X, **k),
    "permutation": lambda **k: random.permutation(KEY, 8, **k),
    "bits": lambda **k: random.bits(KEY, (8,), **k),
    "dirichlet": lambda **k: random.dirichlet(KEY, X + 1, **k),
    "initializer": lambda **k: initializers.he_normal()(KEY, (8, 4), **k),
    "constant": lambda **k: initializers.constant(2.0)(KEY, (8, 4), **k),
}


@pytest.mark.parametrize("name", ON_DEVICES)
def test_devices(name, split):
    make = ON_DEVICES[name]
    expected, device = make(), st.devices()[3]
    for where in (device, "cpu:3", st.sharding.SingleDeviceSharding(device)):
        x = make(device=where)
        assert x.device == device and x.type == expected.type
        np.testing.assert_array_equal(x, expected)
    x = make(device=split) if expected.shape[0] % 4 == 0 else make(device=st.devices()[1])
    np.testing.assert_array_equal(x, expected)
    first = make(device=st.devices()[0])
    assert not first.committed and first.type == expected.type
    with pytest.raises(ValueError, match=r"device must be None or one of the 8 devices"):
        make(device="cpu:9")


@pytest.mark.parametrize("name", LAID_OUT)
def test_shardings(name, split):
    make = LAID_OUT[name]
    expected = make()
    with st.sharding.set_mesh(split.mesh):
        outs = [make(out_sharding=split), make(out_sharding=P("x"))]
        outs += [st.jit(lambda: make(out_sharding=P("x")))()]
    for out in outs:
        assert out.sharding.is_equivalent_to(split, out.ndim)
        np.testing.assert_allclose(out, expected, rtol=1e-6)
    with pytest.raises(ValueError, match=r"cannot be split evenly|has entries for"):
        make(out_sharding=NamedSharding(split.mesh, P(*[None] * expected.ndim, "x")))


def test_no_device_has_more_than_its_part(split):
    x = snp.ones((1 << 20, 4), device=split)
    assert {part.data.shape for part in x.addressable_shards} == {(1 << 18, 4)}
    key = KEY
    with st.config(threefry_partitionable=True):
        draw = st.jit(lambda key: random.normal(key, (64, 8), out_sharding=split))
        text = draw.lower(key).compile().as_text()
        np.testing.assert_allclose(draw(key), random.normal(key, (64, 8)), rtol=1e-5)
    assert "all-" not in text and "f32[64,8]" not in text


def test_one_place_alone(split):
    with pytest.raises(ValueError, match="zeros: device and out_sharding both say"):
        snp.zeros(8, device="cpu", out_sharding=split)
    with pytest.raises(ValueError, match=r"full: the result, .* cannot be split evenly: axis 0"):
        snp.full(3, 1.0, device=split)
    with pytest.raises(ValueError, match=r"arange: device is .* and no mesh is in use"):
        snp.arange(8, device=P("x"))
    x = st.device_put(X, split)
    other = NamedSharding(st.make_mesh((2,), ("x",)), P("x"))
    with pytest.raises(ValueError, match="all must be on the same devices"):
        snp.reshape(x, (64,), out_sharding=other)
    assert snp.asarray(x, device="cpu").committed is False
    assert snp.asarray(x, device=split) is x
    moved = snp.reshape(x, (64,), out_sharding=split)
    assert (
        moved.sharding == split
        and st.grad(lambda x: snp.dot(x, x, out_sharding=split).sum())(x).committed
    )


def test_where_traced_results_run(split):
    f = st.jit(lambda x, device: x + snp.ones(8, device=device), static_argnums=1)
    assert f(st.device_put(X, "cpu:3"), "cpu:3").device == st.devices()[3]
    with pytest.raises(ValueError, match=r"x is on .*cpu:3.*, and a captured array on .*cpu:5"):
        f(st.device_put(X, "cpu:3"), "cpu:5")
    g = st.jit(lambda x: snp.asarray(x * 2, device="cpu:5"))  # as device_put: where it runs
    assert g(st.device_put(X, "cpu:3")).device == st.devices()[3]
    constrained = st.jit(lambda: snp.zeros((8, 2), device=split))()
    assert constrained.sharding.is_equivalent_to(split, 2)


def test_methods_of_arrays(split):
    plain, there = snp.array(X), snp.array(X, device="cpu:3")
    shared = snp.array(X, device=split)
    for x in (plain, there, shared):
        for where in (*st.devices()[2:4], "cpu:7", split, plain.device):
            moved = x.to_device(where)
            np.testing.assert_array_equal(moved, X)
            assert where in (moved.device, str(moved.device), moved.sharding)
            assert moved.to_device(moved.device) is moved.to_device(None) is moved
        assert x.to_device(x.device) is x and x.to_device(x.sharding) is x
        np.testing.assert_array_equal(x.astype("int8", device="cpu:3"), X)
        for copied in (snp.array(x), snp.copy(x), snp.asarray(x, copy=True)):
            assert copied is not x and copied.sharding == x.sharding
    assert (plain.device, there.device, shared.device) == (*st.devices()[:4:3], split)
    with pytest.raises(ValueError, match=r"to_device: stream must be None; got 1"):
        plain.to_device("cpu", stream=1)
    info = snp.__array_namespace_info__()
    assert info.devices() == st.devices() and info.default_device() == plain.device
    with st.default_device(there.device):
        assert info.default_device() == there.device
