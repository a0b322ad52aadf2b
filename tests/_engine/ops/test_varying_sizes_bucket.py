"""What rules for sizes that vary work with."""

import numpy as np

import stretto.numpy as snp
from stretto._engine.core.sizes import greater, size_variable
from stretto._engine.core.types import array_type
from stretto._engine.ops.convolution.general import ConvDimensionNumbers
from stretto._engine.ops.shape import Slice
from stretto._engine.ops.varying_sizes import Bucket, varying

N = size_variable("n")
(V,) = N.variables()
F32 = np.dtype(np.float32)


def bucket(n=3, most=5):
    return Bucket({V: most}, {V: snp.asarray(n, "int32")})


def test_bounds_and_sizes():
    at = bucket()
    size = greater(2 * N - 7, 0) + N // 2 - 1
    assert at.bound(size) == 3 + 2 - 1 and int(at.size(size)) == 0 + 1 - 1
    assert at.bound(7) == int(at.size(7)) == 7 and at.size(N) is at.size(N)
    assert at.shape((N, 4, N - 1)) == (5, 4, 4)
    assert varying(array_type((N, 4, N - 1), F32)) == [0, 2]
    assert at.carrier(array_type((N,), F32)) == array_type((5,), F32)


def test_parameters_of_fixed_sizes():
    at = bucket()
    assert at.static(Slice((0,), (N - 1,), (1,))) == Slice((0,), (4,), (1,))
    plain = Slice((0,), (4,), (1,))
    assert at.static(plain) is plain
    numbers = ConvDimensionNumbers((0, 1), (1, 0), (0, 1))
    assert at.static(numbers) is numbers and at.static([N, (N, "x")]) == [5, (5, "x")]


def test_padding_is_found_and_replaced():
    at, x = bucket(), snp.arange(20.0).reshape(5, 4)
    type = array_type((N, 4), F32)
    np.testing.assert_array_equal(at.inside(type.shape)[:, 0], [1, 1, 1, 0, 0])
    np.testing.assert_array_equal(at.filled(x, type, -1)[3:], np.full((2, 4), -1))
    np.testing.assert_array_equal(at.filled(x, type, -1)[:3], x[:3])
    assert at.filled(x, type, -1, (1,)) is x and at.inside((3, 4)) is None


def test_windows_at_starts_that_are_values():
    at, x = bucket(), snp.arange(5.0)
    np.testing.assert_array_equal(at.cut(x, [snp.asarray(3)], (2,)), [3, 4])
    assert at.cut(x, [snp.asarray(4)], (3,))[0] == 4
    np.testing.assert_array_equal(at.put(x, snp.ones(2), [snp.asarray(4)]), [0, 1, 2, 3, 1])
    np.testing.assert_array_equal(at.put(x, snp.ones(2), [1]), [0, 1, 1, 3, 4])
    type = array_type((N + 2,), F32)
    assert at.fit(x, type).shape == (7,) and at.fit(snp.arange(9.0), type).shape == (7,)


def test_places_in_arrays_of_the_true_size():
    at = bucket()
    np.testing.assert_array_equal(at.rank((2, N))[:, :3], [[0, 1, 2], [3, 4, 5]])
    x = snp.arange(10.0).reshape(2, 5)
    np.testing.assert_array_equal(at.taken(x, (2, N), (2 * N,))[:6], [0, 1, 2, 5, 6, 7])
