"""Functions of arrays that only move elements, for typed keys."""

import inspect

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto.compat.jax.keys import LAX_MOVING_KEYS, MOVING_KEYS, drawing_keys

KEYS = st.random.split(st.random.key(0), 6).reshape(2, 3)
WORDS = np.asarray(st.random.key_data(KEYS))
PACKED = WORDS.view(np.uint64)[..., 0]  # one element for each key


def packed(keys):
    return np.asarray(st.random.key_data(keys)).copy().view(np.uint64)[..., 0]


CALLS = {
    "append": lambda f, x: f(x, x[:1], axis=0),
    "array_split": lambda f, x: f(x, 2, axis=-1),
    "atleast_1d": lambda f, x: f(x[0, 0]),
    "atleast_2d": lambda f, x: f(x[0]),
    "atleast_3d": lambda f, x: f(x),
    "block": lambda f, x: f([[x, x], [x, x]]),
    "broadcast_arrays": lambda f, x: f(x[0], x),
    "choose": lambda f, x: f(np.array([0, 1, 0]), [x[0], x[1]]),
    "column_stack": lambda f, x: f([x[0], x[1]]),
    "compress": lambda f, x: f(np.array([False, True]), x, axis=0),
    "concat": lambda f, x: f([x, x]),
    "delete": lambda f, x: f(x, 1, axis=1),
    "diagonal": lambda f, x: f(x, 1),
    "dstack": lambda f, x: f([x, x]),
    "extract": lambda f, x: f(np.arange(6).reshape(2, 3) > 3, x),
    "flip": lambda f, x: f(x),
    "fliplr": lambda f, x: f(x),
    "flipud": lambda f, x: f(x),
    "hsplit": lambda f, x: f(x, 3),
    "hstack": lambda f, x: f([x, x]),
    "insert": lambda f, x: f(x, 1, x[0, 0], axis=1),
    "matrix_transpose": lambda f, x: f(x),
    "moveaxis": lambda f, x: f(x, 0, -1),
    "permute_dims": lambda f, x: f(x, (1, 0)),
    "repeat": lambda f, x: f(x, 2),
    "resize": lambda f, x: f(x, (3, 4)),
    "roll": lambda f, x: f(x, 1),
    "rollaxis": lambda f, x: f(x, 1),
    "rot90": lambda f, x: f(x),
    "select": lambda f, x: f([np.array([True, False, True])], [x[0]], x[1]),
    "swapaxes": lambda f, x: f(x, 0, -1),
    "take_along_axis": lambda f, x: f(x, np.array([[1, 0], [2, 2]]), axis=-1),
    "tile": lambda f, x: f(x, 2),
    "tril": lambda f, x: f(x),
    "triu": lambda f, x: f(x),
    "unstack": lambda f, x: f(x, axis=-1),
    "vsplit": lambda f, x: f(x, 2),
    "vstack": lambda f, x: f([x[0], x[1]]),
}
IN_OTHER_TESTS = {"dsplit", "empty", "full", "full_like", "isin", "zeros"}


def test_all_have_tests():
    assert {*CALLS} | IN_OTHER_TESTS == {*MOVING_KEYS}


def own(name):
    """NumPy's function, or Stretto's of places."""
    if hasattr(np, name) and name != "unstack":
        return getattr(np, name)

    def moved(x, *args, **options):
        places = getattr(snp, name)(np.arange(x.size).reshape(x.shape), *args, **options)
        return st.tree.map(lambda n: x.ravel()[np.asarray(n)], places)

    return moved


@pytest.mark.parametrize("name", sorted(CALLS))
@pytest.mark.parametrize("jitted", [False, True])
def test_keys_are_moved_as_elements_are(name, jitted):
    call = CALLS[name]
    moved = lambda keys: call(MOVING_KEYS[name], keys)
    if jitted and name not in ("compress", "extract"):  # whose shapes depend on values
        moved = st.jit(moved)
    made, expected = moved(KEYS), call(own(name), PACKED)
    if not isinstance(made, (list, tuple)):
        made, expected = [made], [expected]
    assert len(made) == len(expected)
    for m, e in zip(made, expected, strict=True):
        assert m.dtype == KEYS.dtype
        np.testing.assert_array_equal(packed(m), e)


def test_arrays_go_by_as_ever():
    x = np.arange(6).reshape(2, 3)
    for name, call in CALLS.items():
        want = call(getattr(snp, name), x)
        assert st.tree.all(st.tree.map(snp.array_equal, call(MOVING_KEYS[name], x), want)), name
    assert [a.shape for a in MOVING_KEYS["dsplit"](np.ones((1, 1, 4)), 2)] == [(1, 1, 2)] * 2
    assert MOVING_KEYS["full"]((2,), 3).tolist() == [3, 3]
    assert MOVING_KEYS["full_like"](x, 3).shape == (2, 3)
    assert MOVING_KEYS["isin"](x, np.array([1])).sum() == 1
    assert MOVING_KEYS["zeros"](2, "int8").dtype == MOVING_KEYS["empty"](2, "int8").dtype == "int8"
    assert LAX_MOVING_KEYS["full_like"](x, 3).shape == (2, 3)
    here = st.sharding.NamedSharding(st.make_mesh((1,), ("i",)), st.sharding.PartitionSpec())
    assert LAX_MOVING_KEYS["full"]((2,), 3, sharding=here).tolist() == [3, 3]
    assert LAX_MOVING_KEYS["full_like"](x, 3, sharding=here).shape == (2, 3)


def test_filled_with_a_key_or_with_zeros():
    one = KEYS[1, 2]
    assert (MOVING_KEYS["full"]((2, 2), one) == one).all()
    for like in (MOVING_KEYS["full_like"], LAX_MOVING_KEYS["full_like"]):
        assert (like(KEYS, one) == one).all()
        assert like(KEYS, one).shape == (2, 3)
        assert not packed(like(KEYS, 0)).any()
        assert like(KEYS, 0, shape=(4,)).shape == (4,)
    for name in ("zeros", "empty"):
        made = MOVING_KEYS[name](2, KEYS.dtype)
        assert (made.dtype, made.shape) == (KEYS.dtype, (2,))


def test_which_are_in_others():
    found = MOVING_KEYS["isin"](KEYS, KEYS[0])
    assert found.tolist() == [[True] * 3, [False] * 3]


def test_of_lax():
    assert LAX_MOVING_KEYS["collapse"](KEYS, 0, 2).shape == (6,)
    assert [k.shape for k in LAX_MOVING_KEYS["split"](KEYS, (1, 2), 1)] == [(2, 1), (2, 2)]
    assert LAX_MOVING_KEYS["tile"](KEYS, (2, 1)).shape == (4, 3)
    numbers = lax.GatherDimensionNumbers((), (0, 1), (0, 1))
    got = LAX_MOVING_KEYS["gather"](KEYS, np.array([[1, 2]]), numbers, (1, 1))
    assert (got == KEYS[1, 2]).all()


@pytest.mark.parametrize("name", ["choice", "permutation"])
def test_drawn_from_keys(name):
    draw = getattr(st.random, name)
    key, keys = st.random.key(1), KEYS.ravel()
    of_keys = drawing_keys(draw)
    assert (of_keys(key, keys) == keys[draw(key, np.arange(6))]).all()
    named = {"choice": "a", "permutation": "x"}[name]
    assert (of_keys(key, **{named: keys}) == of_keys(key, keys)).all()
    assert of_keys(key, 6).dtype == draw(key, 6).dtype
    assert inspect.signature(of_keys) == inspect.signature(draw)


def test_what_is_refused():
    other = st.random.key(0, impl="rbg")
    with pytest.raises(TypeError, match="hstack: keys of types"):
        MOVING_KEYS["hstack"]([KEYS[0], other[None]])
    with pytest.raises(TypeError, match="not filled with a key"):
        MOVING_KEYS["full_like"](np.ones(2), KEYS[0, 0])
    with pytest.raises(TypeError, match="among keys alone"):
        MOVING_KEYS["isin"](KEYS, np.ones(2))
    with pytest.raises(ValueError, match="default must be a key"):
        MOVING_KEYS["select"]([np.array([True, False, True])], [KEYS[0]])
