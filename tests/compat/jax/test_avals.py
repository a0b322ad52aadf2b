"""Abstract values of arrays, numbers and keys."""

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto.compat.jax.avals import ShapedArray, get_aval, pytype_aval_mappings
from stretto.dtypes import float0


def test_of_arrays_numbers_and_keys():
    assert get_aval(snp.ones((2, 3))) == ShapedArray((2, 3), np.float32)
    assert get_aval(np.ones(2, np.int8)).dtype == np.int8
    number = get_aval(1.0)
    assert number.weak_type and number.strip_weak_type() == ShapedArray((), "float32")
    key = get_aval(st.random.split(st.random.key(0), 3))
    assert key.shape == (3,) and key.dtype == st.random.key(0).dtype
    assert get_aval(key) is key


def test_of_tangents():
    assert ShapedArray((2,), np.float32).to_tangent_aval() == ShapedArray((2,), np.float32)
    assert ShapedArray((2,), np.int32).to_tangent_aval().dtype == float0
    assert ShapedArray((2,), np.int32).at_least_vspace().dtype == float0


def test_parts_and_text():
    aval = ShapedArray((2, 3), np.float32)
    assert (aval.ndim, aval.size, len(aval)) == (2, 6, 2)
    assert aval.update(shape=(4,)) == ShapedArray((4,), np.float32)
    assert str(aval) == "float32[2,3]" and aval.str_short(short_dtypes=True) == "f32[2,3]"
    assert hash(aval) == hash(ShapedArray([2, 3], "float32"))
    assert aval.sharding.is_fully_replicated


def test_classes_that_libraries_add(monkeypatch):
    class Variable:
        def __array__(self, dtype=None, copy=None):
            return np.ones(3, np.float32)

    by_array = pytype_aval_mappings[np.ndarray]
    monkeypatch.setitem(pytype_aval_mappings, Variable, lambda x: by_array(np.asarray(x)))
    assert get_aval(Variable()) == ShapedArray((3,), np.float32)
