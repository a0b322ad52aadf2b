"""Split, pad, slice and reverse: the laws, and NumPy."""

import itertools

import ml_dtypes
import numpy as np
import pytest

import stretto.numpy as snp
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import array_type
from stretto._engine.ops.shape import Pad, Rev, Slice, pad, rev, slice_, slice_in_dim, split
from stretto.laws import b1, bf16, c64, f32, f64, i8, i32, law
from tests.any_size import holds

CONFIG = [(1, 2, 1), (-1, 1, 2), (0, -2, 0)]


def padded(x, value):
    return pad(x, value, CONFIG)


def cropped(x, value):
    return pad(x, value, [(-3, 0, 1)])


def part(x):
    return slice_(x, (1, 0), (4, 3), (2, 1))


def flipped(x):
    return rev(x, (0, -1))


LAWS = [
    law(Pad, padded, f32(2, 3, 4), f32()),
    law(Pad, padded, c64(2, 2, 2), c64()),
    law(Pad, padded, i32(0, 3, 4), i32()),
    law(Pad, padded, bf16(1, 1, 3), bf16()),
    law(Pad, cropped, f32(4), f32()),
    law(Pad, cropped, f64(2), f64()),
    law(Pad, lambda x, v: pad(x, v, [(5, -7, 1)]), f32(4), f32()),
    law(Slice, part, f32(5, 3)),
    law(Slice, part, c64(5, 4)),
    law(Slice, part, i8(4, 3)),
    law(Slice, lambda x: slice_(x, (4,), (4,), (3,)), f32(5)),
    law(Slice, Slice((1, 0), (2, 3), (1, 1), hidden=True), f32(5, 3)),
    law(Slice, Slice((1, 0), (4, 3), (2, 1), hidden=True), c64(5, 3)),
    law(Rev, flipped, f32(2, 3)),
    law(Rev, flipped, b1(2, 1)),
    law(Rev, flipped, c64(0, 2)),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


def pad_by_loop(n, value, low, high, interior):
    """The definition: elements at low + i (interior + 1), where that is inside."""
    size = low + high + n + max(n - 1, 0) * interior
    out = [value] * size
    for i in range(n):
        place = low + i * (interior + 1)
        if 0 <= place < size:
            out[place] = i
    return out


def test_pad_is_its_definition():
    for n, low, high, interior in itertools.product(range(4), range(-4, 4), range(-4, 4), range(3)):
        config = [(low, high, interior)]
        x = np.arange(n, dtype=np.int32)
        if low + high + n + max(n - 1, 0) * interior < 0:
            with pytest.raises(ValueError, match="crops more"):
                pad(x, -1, config)
        else:
            np.testing.assert_array_equal(pad(x, -1, config), pad_by_loop(n, -1, *config[0]))


def test_pad_converts_its_value():
    assert pad(np.ones(2, ml_dtypes.bfloat16), 0, [(1, 0, 0)]).dtype == ml_dtypes.bfloat16
    assert pad(np.ones(2, np.float32), np.int32(3), [(1, 0, 0)]).tolist() == [3, 1, 1]


def test_pad_refuses():
    with pytest.raises(ValueError, match=r"interior >= 0 for each axis of float32\[2\]"):
        pad(np.ones(2, np.float32), 0, [(0, 0, -1)])
    with pytest.raises(TypeError, match=r"expected a padding value float32\[\], got float32\[1\]"):
        pad(np.ones(2, np.float32), np.ones(1, np.float32), [(0, 0, 0)])


@pytest.mark.parametrize(
    ("start", "limit", "stride"), [(1, 5, 2), (-3, None, 1), (None, -1, 3), (4, 2, 1), (0, 99, 1)]
)
def test_slice_in_dim_is_pythons(start, limit, stride):
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    np.testing.assert_array_equal(
        slice_in_dim(x, start, limit, stride, axis=-1), x[:, start:limit:stride]
    )


def test_slice_refuses():
    x = np.ones((2, 3), np.float32)
    with pytest.raises(ValueError, match=r"each axis of float32\[2,3\]; got starts \(0, 0\)"):
        slice_(x, (0, 0), (2, 4))
    with pytest.raises(ValueError, match="use rev to go backwards"):
        slice_in_dim(x, 0, 2, -1)


def test_split():
    x = np.arange(12).reshape(2, 6)
    for part_, want in zip(split(x, (1, 0, 5), -1), (x[:, :1], x[:, 1:1], x[:, 1:]), strict=True):
        np.testing.assert_array_equal(part_, want)
    with pytest.raises(ValueError, match=r"must add up to 6, axis 1 of int32\[2,6\]"):
        split(x, (1, 2), 1)


def test_what_changes_nothing_is_the_same_object():
    x = as_value(np.ones((2, 3), np.float32))
    assert rev(x, ()) is x
    assert slice_(x, (0, 0), (2, 3)) is x
    assert pad(x, 0, [(0, 0, 0)] * 2) is x


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: pad(x, 0, 3), r"^pad: padding_config must be \(low, high, interior\) triples"),
        (lambda x: pad(x, 0, [1]), r"^pad: padding_config must be .* triples, got"),
        (lambda x: pad(x, 0, [(1, 0)]), r"^pad: padding_config must be .* triples, got"),
        (lambda x: pad(x, 0, [(1.5, 0, 0)]), "^pad: padding_config must be an integer, got the"),
        (lambda x: slice_in_dim(x, "a", 2), "^slice_in_dim: start_index must be an integer"),
        (lambda x: slice_in_dim(x, 0, 1.5), "^slice_in_dim: limit_index must be an integer"),
    ],
)
def test_arguments_of_the_wrong_kind_are_named(call, message):
    with pytest.raises(TypeError, match=message):
        call(np.ones(3, np.float32))


def test_padding_by_any_size():
    x = np.arange(5.0, dtype=np.float32)
    n = {(0, 0): 0}
    for config in (lambda n: (n - 3, 1, 1), lambda n: (2 - n, 1, 0), lambda n: (-1, -1, 1)):
        holds(lambda x, config=config: pad(x, 2.0, [config(x.shape[0])]), [x], n)
    # elements as far apart as there are elements
    holds(snp.diag, [x], n)
    holds(lambda x: pad(x, 2.0, [(1, x.shape[0], x.shape[0])]), [x], n)


def test_axes_that_keep_their_places():
    """Those that are not padded, cut or reversed; a padding value is added up along all."""
    x, value = (array_type(shape, np.dtype(np.float32)) for shape in ((2, 3, 4), ()))
    padding = Pad(((0, 0, 0), (1, 0, 0), (0, 0, 1)))
    assert padding.kept_axes(0, x, padding.infer(x, value)) == [0, None, None]
    assert padding.kept_axes(1, value, padding.infer(x, value)) == [None] * 3
    part_ = Slice((0, 1, 0), (2, 3, 4), (1, 1, 2))
    assert part_.kept_axes(0, x, part_.infer(x)) == [0, None, None]
    assert Rev((0, 2)).kept_axes(0, x, x) == [None, 1, None]


@pytest.mark.parametrize("weak_x", [False, True])
@pytest.mark.parametrize("weak_value", [False, True])
def test_what_is_padded_is_weak_where_both_are(weak_x, weak_value):
    f32 = np.dtype(np.float32)
    got = Pad(((1, 0, 0),)).infer(array_type((2,), f32, weak_x), array_type((), f32, weak_value))
    assert got.weak_type is (weak_x and weak_value)


def test_a_padding_value_gives_way_to_a_strong_array_alone():
    strong, weak = np.ones(2, np.float32), as_value(1.0)
    assert not pad(strong, weak, [(1, 0, 0)]).weak_type
    assert not pad(snp.full(2, 1.0), np.float32(1), [(1, 0, 0)]).weak_type
    assert pad(weak, 0.0, []) is weak


@pytest.mark.parametrize(
    ("starts", "limits", "strides"),
    [
        ((-1, 0), (2, 3), (1, 1)),
        ((0, 0), (2, 4), (1, 1)),
        ((2, 0), (1, 3), (1, 1)),
        ((0, 0), (2, 3), (0, 1)),
        ((0, 0), (2, 3), (1, -1)),
        ((0,), (2, 3), (1, 1)),
        ((0, 0), (2,), (1, 1)),
        ((0, 0), (2, 3), (1,)),
    ],
)
def test_slices_that_do_not_fit(starts, limits, strides):
    with pytest.raises(ValueError, match="slice: expected 0 <= start <= limit <= size and"):
        Slice(starts, limits, strides).infer(array_type((2, 3), np.dtype(np.float32)))


def test_a_slice_may_be_empty_at_either_end():
    type = array_type((2, 3), np.dtype(np.float32))
    for at in (0, 2):
        assert Slice((at, 0), (at, 3), (1, 4)).infer(type).shape == (0, 1)


def test_steps_and_parts_that_are_refused():
    x = np.ones((2, 3), np.float32)
    for stride in (0, -1):
        with pytest.raises(ValueError, match="slice_in_dim: expected stride > 0"):
            slice_in_dim(x, 0, 1, stride)
    with pytest.raises(ValueError, match=r"sizes \(4, -1\) must add up to 3, axis 1"):
        split(x, (4, -1), 1)
    with pytest.raises(ValueError, match=r"for each axis of float32\[2,3\]; got \(\(0, 0, 0\),\)"):
        pad(x, 0, [(0, 0, 0)])
    with pytest.raises(TypeError, match="pad: padding_value 1j is complex"):
        pad(x, 1j, [(1, 0, 0)] * 2)
    assert pad(np.ones(1, np.complex64), 1j, [(1, 0, 0)]).tolist() == [1j, 1]


def test_a_part_of_all_is_the_value_itself_and_no_less_is():
    x = as_value(np.ones((2, 3), np.float32))
    assert slice_(x, (0, 0), (2, 3), (1, 1)) is x
    assert slice_(x, (0, 0), (2, 3), (1, 2)).shape == (2, 2)
    assert slice_(x, (1, 0), (2, 3)).shape == (1, 3)
    with pytest.raises(ValueError, match="got starts"):
        slice_(x, (0,), (2, 3))
    assert pad(x, 0, [(0, 0, 0), (0, 1, 0)]).shape == (2, 4)
