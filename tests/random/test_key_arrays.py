"""Key arrays: what arrays of numbers do, as far as keys do it; keys under transformations."""

import copy
import operator
import pickle

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto import random as R

KEY = R.key(42)
KEYS = R.split(KEY, 6)
WORDS = np.asarray(R.key_data(KEYS))


def words(keys):
    return np.asarray(R.key_data(keys))


def test_looks_like_an_array():
    table = KEYS.reshape(2, 3)
    assert (table.shape, table.ndim, table.size, len(table)) == ((2, 3), 2, 6, 2)
    assert (KEY.shape, KEY.itemsize, table.nbytes) == ((), 8, 48)
    assert repr(KEY.dtype) == "key<fry>"
    assert repr(KEY) == "Array((), dtype=key<fry>) overlaying:\n[ 0 42]"
    assert snp.issubdtype(KEY.dtype, st.dtypes.prng_key)
    assert snp.issubdtype(KEY.dtype, st.dtypes.extended)
    assert not snp.issubdtype(KEY.dtype, snp.integer)
    first, second = R.split(KEY)
    assert first.shape == second.shape == ()


@pytest.mark.parametrize(
    "index",
    [
        0,
        -1,
        slice(1, None),
        ...,
        None,
        (0, 1),
        (slice(None), 2),
        (..., 0),
        (np.array([1, 0]), slice(0, 2)),
        (np.array([1, 0]), ..., np.array([2, 2])),
        np.arange(6).reshape(2, 3) % 2 == 0,
        (None, 1, ..., None),
    ],
    ids=str,
)
def test_indexes_as_an_array_does(index):
    numbers = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(words(KEYS.reshape(2, 3)[index]), WORDS[numbers[index]])


def test_reshapes_as_an_array_does():
    table, numbers = KEYS.reshape(1, 2, 3), np.arange(6).reshape(1, 2, 3)
    for change in (
        lambda x: x.T,
        lambda x: x.mT,
        lambda x: x.transpose(2, 0, 1),
        lambda x: x.transpose((1, -1, 0)),
        lambda x: x.swapaxes(0, -1),
        lambda x: x.squeeze(),
        lambda x: x.squeeze(0),
        lambda x: x.ravel(),
        lambda x: x.flatten(),
        lambda x: x.reshape(3, -1),
        lambda x: x.reshape((6,)),
        lambda x: x.take(np.array([2, 0]), axis=-1),
        lambda x: x.take(np.array([5, 0])),
        lambda x: x.copy(),
    ):
        np.testing.assert_array_equal(words(change(table)), WORDS[change(numbers)])


def test_updates_give_new_arrays():
    changed = KEYS.at[1].set(KEY)
    assert (changed == KEYS).tolist() == [True, False, True, True, True, True]
    assert bool(changed[1] == KEY)
    assert bool(KEYS.at[2].get() == KEYS[2])
    assert bool((KEYS.at[...].set(KEY) == KEY).all())
    with pytest.raises(TypeError, match="expected keys of type key<fry>, got int"):
        KEYS.at[0].set(3)
    with pytest.raises(AttributeError, match="immutable"):
        KEYS._words = None


def test_compares():
    assert (KEYS[::-1] == KEYS).tolist() == [False] * 6
    assert (KEYS[2] != KEYS).tolist() == [True, True, False, True, True, True]
    assert KEY != 3
    with pytest.raises(TypeError, match="== of keys of different types"):
        operator.eq(R.key(42, impl="rbg"), KEY)
    for other in (1, None, "key", [1], snp.ones(2), R.key_data(KEY)):
        assert (other == KEY) is False and (other != KEY) is True
    with pytest.raises(ValueError, match="do not broadcast"):
        operator.eq(KEYS, KEYS[:2])
    assert (st.jit(operator.eq)(KEYS, KEY) == (KEYS == KEY)).all()
    assert st.vmap(lambda k: k != KEYS[2])(KEYS).tolist() == (KEYS[2] != KEYS).tolist()


def test_trees_of_this_structure_with_other_leaves_compare_plainly():
    one, same, other = (st.tree.map(lambda _, n=n: n, KEY) for n in (0, 0, 1))  # such as axes
    assert (one == same) is True and (one != same) is False
    assert (one == other) is False and (one != other) is True
    assert (one == st.tree.map(lambda _: None, KEY)) is False


def test_copies():
    assert bool(pickle.loads(pickle.dumps(KEY)) == KEY)
    assert bool((copy.deepcopy(KEYS) == KEYS).all())
    assert pickle.loads(pickle.dumps(KEY.dtype)) == KEY.dtype


@pytest.mark.parametrize(
    ("use", "error", "words"),
    [
        (lambda: KEY[0], IndexError, "too many indices: 1 for a key array of 0 axes"),
        (lambda: KEYS[0, 0], IndexError, "too many indices: 2 for a key array of 1 axes"),
        (lambda: len(KEY), TypeError, "it is one key"),
        (lambda: list(KEY), TypeError, "cannot be iterated over"),
        (lambda: bool(KEY), TypeError, "has no truth value"),
        (lambda: hash(KEY), TypeError, "unhashable"),
        (lambda: np.asarray(KEY), TypeError, "key_data"),
        (lambda: snp.stack([KEY, KEY]), TypeError, "st.stack"),
        (lambda: KEY + 1, TypeError, "unsupported operand"),
        (lambda: KEYS.squeeze(0), ValueError, "size"),
        (lambda: KEYS.swapaxes(0, 1), ValueError, "axis 1 is out of bounds"),
    ],
    ids=range(11),
)
def test_refuses(use, error, words):
    with pytest.raises(error, match=words):
        use()


def test_trees_of_keys():
    assert bool((st.stack(list(KEYS)) == KEYS).all())
    assert bool(st.take(KEYS, 2) == KEYS[2])
    assert bool(st.unstack(KEYS)[5] == KEYS[5])
    assert st.concat([KEYS, KEYS]).shape == (12,)
    assert st.tree.leaves({"key": KEY})[0].tolist() == [0, 42]
    shapes = st.eval_shape(R.split, KEY)
    assert (shapes.shape, shapes.dtype) == ((2,), KEY.dtype)


def test_through_transformations():
    want = np.stack([R.normal(key) for key in KEYS])
    same = lambda got: np.testing.assert_array_equal(got, want)
    same(st.vmap(R.normal)(KEYS))
    same(st.jit(st.vmap(R.normal))(KEYS))
    same(lax.map(R.normal, KEYS))
    same(lax.scan(lambda c, key: (c, R.normal(key)), 0, KEYS)[1])
    same(st.vmap(R.normal, chunk_size=4)(KEYS))
    folded = lax.fori_loop(0, 3, lambda i, key: R.fold_in(key, i), KEY)
    assert bool(folded == R.fold_in(R.fold_in(R.fold_in(KEY, 0), 1), 2))
    assert bool(lax.cond(True, R.clone, lambda k: R.split(k)[0], KEY) == KEY)
    slope = st.grad(lambda x, key: (x * R.normal(key)).sum())
    assert float(st.jit(slope)(2.0, KEY)) == float(R.normal(KEY))
    kept = st.checkpoint(lambda x, key: (x * R.normal(key)).sum())
    assert float(st.grad(kept)(2.0, KEY)) == float(R.normal(KEY))


def test_axes_count_the_keys_own():
    table = KEYS.reshape(2, 3)
    columns = st.vmap(st.vmap(R.normal))(table.T)
    np.testing.assert_array_equal(st.vmap(st.vmap(R.normal), in_axes=-1)(table), columns)
    np.testing.assert_array_equal(st.vmap(st.vmap(R.normal), in_axes=1)(table), columns)
    np.testing.assert_array_equal(lax.map(st.vmap(R.normal), table, in_axes=-1), columns)
    several = lambda keys: R.split(keys, 2)
    want = st.vmap(several)(KEYS).T
    for place in (1, -1):
        assert bool((st.vmap(several, out_axes=place)(KEYS) == want).all())
        assert bool((lax.map(several, KEYS, out_axes=place) == want).all())
        assert bool((st.func.vmap(several, out_dims=place)(KEYS) == want).all())
    mapped = st.func.vmap(st.vmap(R.normal), in_dims=-1)(table)
    np.testing.assert_array_equal(mapped, columns)


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda: st.vmap(R.normal)(KEY), r"it has 0 axes, not counting that of a key's words"),
        (lambda: st.vmap(R.normal, in_axes=1)(KEYS), "in_axes maps axis 1 of key.words"),
        (lambda: st.vmap(R.split, out_axes=2)(KEYS), "out_axes places axis 2 in a result of 2"),
        (lambda: lax.map(R.normal, KEY), "in_axes maps axis 0 of xs.words"),
        (lambda: st.func.vmap(R.normal, in_dims=1)(KEYS), "in_dims maps axis 1 of key.words"),
        (lambda: st.func.vmap(R.split, out_dims=2)(KEYS), "out_dims places axis 2"),
        (lambda: lax.scan(lambda c, k: (c, k.shape), 0, KEY), "these words are not keys"),
    ],
    ids=range(7),
)
def test_an_axis_of_the_words_is_none_of_the_keys(use, words):
    with pytest.raises(ValueError, match=words):
        use()


def test_the_ambient_stream_takes_typed_keys():
    with st.nn.keys(KEY):
        typed = st.random.next_key()
    assert bool(typed == R.fold_in(KEY, 0))
    with st.nn.keys(KEY):
        dropped = st.nn.Dropout(0.5)(snp.ones(20))
    with st.nn.keys(R.PRNGKey(42)):
        np.testing.assert_array_equal(st.nn.Dropout(0.5)(snp.ones(20)), dropped)
