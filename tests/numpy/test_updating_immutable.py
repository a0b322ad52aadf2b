from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp


@pytest.mark.parametrize(
    "name", ["fill", "itemset", "partition", "put", "resize", "setfield", "setflags"]
)
def test_methods_that_would_change_the_array(name):
    x = snp.arange(3)
    with pytest.raises(TypeError, match=rf"immutable: instead of x\.{name}\(\.\.\.\) use "):
        getattr(x, name)(1)
    with pytest.raises(TypeError, match="immutable"):
        st.jit(lambda x: getattr(x, name)(1))(x)


@pytest.mark.parametrize(
    ("name", "value", "way"),
    [
        ("shape", (3, 1), r"x\.reshape\(shape\)"),
        ("dtype", "float32", r"x\.view\(dtype\), or x\.astype"),
        ("real", 1, r"x\.imag"),
        ("imag", 1, r"x\.real"),
        ("flat", 1, r"snp\.reshape"),
    ],
)
def test_attributes_that_cannot_be_set(name, value, way):
    x = snp.arange(3)
    with pytest.raises(AttributeError, match=rf"instead of x\.{name} = \.\.\. use .*{way}"):
        setattr(x, name, value)
    assert x.tolist() == [0, 1, 2]
    assert (x.shape, x.dtype, x.real.tolist()) == ((3,), snp.int32, [0, 1, 2])


def test_items_cannot_be_deleted():
    x = snp.arange(3)
    with pytest.raises(TypeError, match=r"instead of del x\[0\] write x = snp\.delete\(x, 0\)"):
        del x[0]


def test_the_ways_out_hold():
    x = snp.arange(6.0).reshape(2, 3)
    assert snp.full_like(x, 2).tolist() == [[2] * 3] * 2
    put = x.ravel().at[snp.array([0, 4])].set(9).reshape(x.shape)
    want = np.array(x)
    want.put([0, 4], 9)
    np.testing.assert_array_equal(put, want)
    z = snp.array([1 + 2j])
    assert (snp.asarray(5.0) + 1j * z.imag).tolist() == [5 + 2j]
    assert (z.real + 1j * snp.asarray(5.0)).tolist() == [1 + 5j]
    assert bytes(memoryview(np.asarray(x))) == x.tobytes()


@pytest.mark.parametrize(
    "name", ["base", "ctypes", "data", "dump", "dumps", "flags", "getfield", "strides"]
)
def test_what_shows_memory_is_numpys(name):
    for x in (snp.arange(3), st.random.bits(st.random.key(0), (2,))):
        assert not hasattr(x, name)
        with pytest.raises(AttributeError, match=rf"'Array' has no attribute '{name}': use "):
            getattr(x, name)
    assert hasattr(np.arange(3), name)
