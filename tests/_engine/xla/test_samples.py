"""Samples of arrays: evenly spread, and of any dtype."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.xla.samples import sample_of


@pytest.mark.parametrize("shape", [(), (7,), (64, 64), (3, 4, 5), (0,), (3, 0, 2), (4096,)])
def test_small_arrays_are_taken_whole(shape):
    host = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    sample = sample_of(snp.array(host))
    assert sample.whole and sample.known.all()
    np.testing.assert_array_equal(sample.values, host)


@pytest.mark.parametrize(
    "shape", [(10**6,), (1000, 1000), (2, 10**6), (10**6, 2), (1, 1, 10**5), (50,) * 3, (9,) * 6]
)
def test_large_ones_by_elements_evenly_spread(shape):
    host = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    sample = sample_of(snp.array(host))
    assert not sample.whole and 500 < sample.values.size <= 4096
    assert (np.diff(sample.values.ravel()) > 0).all()
    middle, spread = sample.values.mean(), sample.values.std()
    # The middles of three stretches have a sixth less spread than what they stand for.
    assert abs(middle / host.mean() - 1) < 0.02 and abs(spread / host.std() - 1) < 0.17


@pytest.mark.filterwarnings("ignore:dtype .*64 was asked for")
@pytest.mark.parametrize(
    "dtype", ["bool", "int4", "uint4", "int8", "int64", "bfloat16", "float8_e5m2", "float16"]
)
def test_dtypes(dtype):
    x = snp.array([0, 1, 1]).astype(getattr(snp, dtype, dtype))
    assert sample_of(x).values.tolist() == [0, 1, 1]


def test_complex_numbers_by_modulus():
    assert sample_of(snp.array([3 + 4j, -1])).values.tolist() == [5, 1]


def test_a_broadcast_takes_no_memory():
    x = snp.zeros((10**5, 10**5), "int8")  # 10 GB, if it were made
    assert sample_of(x).values.size == 4096


@pytest.mark.devices
@pytest.mark.parametrize("spec", [("x",), (None, "x"), (), (("x", "y"),), ("y", "x")])
def test_parts_on_devices(spec):
    mesh = st.make_mesh((2, 4), ("x", "y"))
    host = np.arange(800 * 640, dtype=np.float32).reshape(800, 640)
    x = st.device_put(host, st.NamedSharding(mesh, st.P(*spec)))
    sample = sample_of(x)
    assert x._host is None, "it was put together"
    np.testing.assert_array_equal(sample.values, sample_of(snp.array(host)).values)
    assert sample.known.all()
