"""Functions of arrays that take typed keys."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.compat.jax import keys
from stretto.compat.jax.keys import LAX_TAKING_KEYS, TAKING_KEYS

KEYS = st.random.split(st.random.key(0), 6)
WORDS = np.asarray(st.random.key_data(KEYS))


def words(keys):
    return np.asarray(st.random.key_data(keys))


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("reshape", ((2, 3),), WORDS.reshape(2, 3, 2)),
        ("expand_dims", (-1,), WORDS[:, None]),
        ("flip", (), WORDS[::-1]),
        ("flip", (0,), WORDS[::-1]),
        ("roll", (1,), np.roll(WORDS, 1, 0)),
        ("roll", (1, 0), np.roll(WORDS, 1, 0)),
        ("repeat", (2,), WORDS.repeat(2, 0)),
        ("repeat", (2, 0), WORDS.repeat(2, 0)),
        ("tile", (2,), np.tile(WORDS, (2, 1))),
        ("broadcast_to", ((2, 6),), np.broadcast_to(WORDS, (2, 6, 2))),
        ("take", (np.array([1, 0]), 0), WORDS[[1, 0]]),
        ("copy", (), WORDS),
        ("ravel", (), WORDS),
        ("zeros_like", (), np.zeros_like(WORDS)),
    ],
)
def test_elements_are_moved(name, args, expected):
    made = TAKING_KEYS[name](KEYS, *args)
    assert made.dtype == KEYS.dtype
    np.testing.assert_array_equal(words(made), expected)


def test_several_keys():
    one, two = KEYS[0], KEYS[1]
    np.testing.assert_array_equal(words(TAKING_KEYS["stack"]([one, two])), WORDS[:2])
    np.testing.assert_array_equal(words(TAKING_KEYS["asarray"]([one, two])), WORDS[:2])
    both = TAKING_KEYS["stack"]([KEYS, KEYS], axis=-1)
    assert both.shape == (6, 2)
    np.testing.assert_array_equal(words(TAKING_KEYS["concatenate"]([KEYS, KEYS])[6:]), WORDS)
    chosen = TAKING_KEYS["where"](np.arange(6) < 3, KEYS, KEYS[::-1])
    expected = np.where(np.arange(6)[:, None] < 3, WORDS, WORDS[::-1])
    np.testing.assert_array_equal(words(chosen), expected)
    other = st.random.key(0, impl="rbg")
    with pytest.raises(TypeError, match="keys of types key<fry> and key<rbg>"):
        TAKING_KEYS["stack"]([one, other])
    with pytest.raises(TypeError, match="only from keys of the same type"):
        TAKING_KEYS["where"](True, one, 1.0)


def test_without_an_axis_keys_of_several_axes_are_one_row_or_all_turned():
    square, grid = KEYS.reshape((2, 3)), WORDS.reshape(2, 3, 2)
    np.testing.assert_array_equal(words(TAKING_KEYS["flip"](square)), grid[::-1, ::-1])
    rolled = np.roll(WORDS, 2, 0).reshape(2, 3, 2)
    np.testing.assert_array_equal(words(TAKING_KEYS["roll"](square, 2)), rolled)
    np.testing.assert_array_equal(words(TAKING_KEYS["repeat"](square, 2)), WORDS.repeat(2, 0))


def test_no_key_is_nan_or_infinite():
    found = {name: TAKING_KEYS[name](KEYS).tolist() for name in ("isnan", "isinf", "isfinite")}
    assert found == {"isnan": [False] * 6, "isinf": [False] * 6, "isfinite": [True] * 6}
    assert TAKING_KEYS["isnan"](snp.array([1, np.nan])).tolist() == [False, True]


def test_axes_and_measures():
    square = KEYS.reshape((2, 3))
    assert TAKING_KEYS["moveaxis"](square, 0, -1).shape == (3, 2)
    assert TAKING_KEYS["swapaxes"](square, -1, -2).shape == (3, 2)
    assert TAKING_KEYS["transpose"](square).shape == (3, 2)
    assert TAKING_KEYS["squeeze"](KEYS.reshape((6, 1)), -1).shape == (6,)
    assert [part.shape for part in TAKING_KEYS["split"](KEYS, 3)] == [(2,)] * 3
    measures = [TAKING_KEYS[name](square) for name in ("shape", "ndim", "size")]
    assert measures == [(2, 3), 2, 6]
    assert TAKING_KEYS["astype"](KEYS, KEYS.dtype) is KEYS
    assert TAKING_KEYS["allclose"](KEYS, KEYS) and TAKING_KEYS["isclose"](KEYS, KEYS).shape == (6,)
    other = KEYS[::-1]
    assert TAKING_KEYS["equal"](KEYS, other).tolist() == (other == KEYS).tolist() == [False] * 6
    assert TAKING_KEYS["not_equal"](KEYS, other).all() and TAKING_KEYS["equal"](1, 1)
    with pytest.raises(TypeError, match="not an array of numbers"):
        TAKING_KEYS["equal"](KEYS, 1)
    assert TAKING_KEYS["array_equal"](KEYS, KEYS) and not TAKING_KEYS["array_equal"](KEYS, square)


def test_arrays_go_by_as_ever():
    x = snp.arange(6)
    assert TAKING_KEYS["reshape"](x, (2, 3)).shape == (2, 3)
    assert TAKING_KEYS["where"](x > 2, x, 0).tolist() == [0, 0, 0, 3, 4, 5]
    assert TAKING_KEYS["where"](x > 2)[0].tolist() == [3, 4, 5]
    assert TAKING_KEYS["tile"](x[:2], 2).tolist() == [0, 1, 0, 1]


def test_dtypes_of_keys():
    result_type = TAKING_KEYS["result_type"]
    key = st.random.key(0)
    assert result_type(key) == result_type(key.dtype, key) == key.dtype
    assert result_type(snp.ones(2), 1) == np.float32


def test_numpys_arrays_are_reshaped_by_numpy():
    made = st.jit(lambda: type(TAKING_KEYS["reshape"](np.arange(6), (2, 3))) is np.ndarray)
    assert made() and TAKING_KEYS["reshape"](np.arange(6), 6, copy=True).shape == (6,)


def test_vectorized_functions_of_keys():
    vectorize = TAKING_KEYS["vectorize"]
    draw = vectorize(lambda key, x: st.random.normal(key) + x, signature="(),()->()")
    expected = np.stack([st.random.normal(key) for key in KEYS])
    np.testing.assert_allclose(draw(KEYS, snp.zeros(6)), expected, rtol=1e-6)
    table = draw(KEYS[:, None], snp.arange(2.0))
    np.testing.assert_allclose(table, expected[:, None] + [0, 1], rtol=1e-6)
    assert draw(KEYS[0], 1.0).shape == ()
    rows = vectorize(lambda x, key: st.random.normal(key, (2,)) + x, signature="(n),()->(n)")
    assert rows(snp.zeros((6, 2)), KEYS).shape == (6, 2)
    some = vectorize(lambda x, how, key: st.random.normal(key) * x + how, excluded={1})
    np.testing.assert_allclose(some(2.0, 1, KEYS), 2 * expected + 1, rtol=1e-6)
    plain = vectorize(lambda x: x + 1)
    np.testing.assert_array_equal(plain(snp.ones(2)), 2)


SQUARE = WORDS.reshape(2, 3, 2)


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("broadcast", ((2,),), np.broadcast_to(SQUARE, (2, 2, 3, 2))),
        ("broadcast_in_dim", ((2, 4, 3), (0, 2)), np.repeat(SQUARE[:, None], 4, 1)),
        ("dynamic_index_in_dim", (1, -1, False), SQUARE[:, 1]),
        ("dynamic_slice", ((0, 1), (2, 2)), SQUARE[:, 1:]),
        ("dynamic_slice", (snp.array([0, 1]), (2, 2)), SQUARE[:, 1:]),
        ("dynamic_slice_in_dim", (1, 2, -1), SQUARE[:, 1:]),
        ("expand_dims", ((-1,),), SQUARE[:, :, None]),
        ("index_in_dim", (-1, 1), SQUARE[:, 2:]),
        ("reshape", ((3, 2),), SQUARE.reshape(3, 2, 2)),
        ("rev", ((1,),), SQUARE[:, ::-1]),
        ("slice", ((0, 0), (2, 3), (1, 2)), SQUARE[:, ::2]),
        ("slice", ((0, 1), (2, 3)), SQUARE[:, 1:]),
        ("slice_in_dim", (0, 3, 2, -1), SQUARE[:, ::2]),
        ("transpose", ((1, 0),), SQUARE.transpose(1, 0, 2)),
        ("transpose", (), SQUARE.transpose(1, 0, 2)),
    ],
)
@pytest.mark.parametrize("transform", [lambda f: f, st.jit])
def test_elements_are_moved_by_lax(name, args, expected, transform):
    made = transform(lambda keys: LAX_TAKING_KEYS[name](keys, *args))(KEYS.reshape((2, 3)))
    assert made.dtype == KEYS.dtype
    np.testing.assert_array_equal(words(made), expected)


@pytest.mark.parametrize("transform", [lambda f: f, st.jit])
def test_keys_are_chosen_and_replaced_by_lax(transform):
    def both(name, *args):
        made = transform(lambda: LAX_TAKING_KEYS[name](*args))()
        return words(made)

    other, rows = KEYS[::-1], WORDS[::-1]
    first = snp.arange(6) < 2
    chosen = np.where(np.arange(6)[:, None] < 2, WORDS, rows)
    np.testing.assert_array_equal(both("select", first, KEYS, other), chosen)
    np.testing.assert_array_equal(both("select", snp.bool_(False), KEYS, other), rows)
    np.testing.assert_array_equal(both("select_n", first, other, KEYS), chosen)
    which = snp.where(first, 2, 0)
    np.testing.assert_array_equal(both("select_n", which, other, other, KEYS), chosen)
    np.testing.assert_array_equal(both("concatenate", [KEYS, other], 0)[6:], rows)
    changed = np.concatenate([WORDS[:1], rows[:2], WORDS[3:]])
    np.testing.assert_array_equal(both("dynamic_update_slice", KEYS, other[:2], (1,)), changed)
    by_axis = both("dynamic_update_slice_in_dim", KEYS, other[:2], 1, -1)
    np.testing.assert_array_equal(by_axis, changed)
    one = both("dynamic_update_index_in_dim", KEYS, other[1], 2, 0)
    np.testing.assert_array_equal(one, np.concatenate([WORDS[:2], rows[1:2], WORDS[3:]]))
    assert LAX_TAKING_KEYS["squeeze"](KEYS.reshape((6, 1)), dimensions=(1,)).shape == (6,)
    assert LAX_TAKING_KEYS["squeeze"](array=snp.ones((6, 1))).shape == (6,)
    assert LAX_TAKING_KEYS["eq"](KEYS, KEYS).all() and not LAX_TAKING_KEYS["ne"](KEYS, KEYS).any()
    assert LAX_TAKING_KEYS["select"](True, snp.ones(2), snp.zeros(2)).tolist() == [1, 1]


def test_the_largest_come_as_a_list():
    assert type(keys.top_k(snp.arange(3.0), 2)) is list
