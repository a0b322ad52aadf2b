"""``func.vmap``: torch's arguments, and what random draws inside it do."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.func import vmap
from stretto.random import PRNGKey, fold_in, keys, manual_seed, next_key

KEY = PRNGKey(5)
X = snp.arange(12.0).reshape(4, 3)


@pytest.fixture(autouse=True)
def fresh():
    manual_seed(0)


def number(key):
    """A number between 0 and 1, cheap to compile."""
    return key[0].astype(snp.float32) / 2**32


def noise(x):
    return x * number(next_key("Noise")) + x * number(next_key("Noise"))


def noise_of(key, x):
    return x * number(fold_in(key, 0)) + x * number(fold_in(key, 1))


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-6)


# Axes


def test_axes_as_in_torch():
    close(vmap(lambda x: x.sum())(X), X.sum(1))
    close(vmap(lambda x: x.sum(), in_dims=1)(X), X.sum(0))
    close(vmap(lambda x: x.sum(), in_dims=-1)(X), X.sum(0))
    close(vmap(lambda x, y: x @ y, in_dims=(0, None))(X, snp.ones(3)), X.sum(1))
    close(vmap(lambda x: x, out_dims=-1)(X), X.T)
    close(vmap(lambda x: x, out_dims=(1,))(X), X.T)
    close(vmap(lambda x: (x,), out_dims=(1,))(X)[0], X.T)
    a, b = vmap(lambda x: (x, 2 * x), out_dims=(0, 1))(X)
    close(a, X)
    close(b, 2 * X.T)
    nested = vmap(lambda d, y: d["a"] * d["b"] + y, in_dims=({"a": 0, "b": None}, 1))
    close(nested({"a": X, "b": snp.ones(3)}, X.T), 2 * X)
    deep = vmap(lambda xs, y: xs[0] + xs[1] + y, in_dims=((0, None), 0))
    close(deep((X, 1.0), X), 2 * X + 1)
    constant = vmap(lambda x: (x, snp.ones(2)), out_dims=(0, None))(X)[1]
    assert constant.shape == (2,)
    assert vmap(lambda x: snp.ones(2))(X).shape == (4, 2)
    assert vmap(lambda x: 1.0)(X).shape == (4,)
    assert vmap(lambda x: x)(snp.ones((0, 2))).shape == (0, 2)


def test_what_is_shared_is_handed_on_as_it_is():
    seen = []

    def f(x, n, text, array, *, key=None, flag=False):
        seen.append((n, text, key is KEY, flag, type(array).__name__))
        return x * n + array

    out = vmap(f, in_dims=(0, None, None, None))(X, 3, "words", np.ones(3), key=KEY, flag=True)
    close(out, 3 * X + 1)
    assert seen == [(3, "words", True, True, "Array")]
    close(vmap(lambda x, y: x + y)(X, y=snp.ones(3)), X + 1)  # keywords are not mapped
    inner = vmap(lambda c, x: c["n"] * x, in_dims=({"n": None}, 0))
    close(inner({"n": 2}, X), 2 * X)


@pytest.mark.parametrize("chunk_size", [1, 3, 4, 9, "auto"])
def test_chunks(chunk_size):
    f = lambda x, y: (snp.sin(x) * y, y.sum())
    a, b = vmap(f, in_dims=(0, None), out_dims=(1, None), chunk_size=chunk_size)(X, X[0])
    close(a, (snp.sin(X) * X[0]).T)
    assert b.shape == ()


@pytest.mark.parametrize(
    ("arguments", "call", "error", "words"),
    [
        ({"in_dims": None}, (X,), TypeError, "in_dims must be an int, or a tuple.*got None"),
        ({"in_dims": [0]}, (X,), TypeError, r"in_dims must be an int, or a tuple.*got \[0\]"),
        ({"in_dims": True}, (X,), TypeError, "in_dims must be an int"),
        ({"in_dims": (None,)}, (X,), ValueError, "nothing is mapped: in_dims gives no array"),
        ({}, (), ValueError, "nothing is mapped"),
        ({"in_dims": (0, 0)}, (X,), ValueError, "in_dims has 2 entries, but f was called with 1"),
        ({"in_dims": 2}, (X,), ValueError, r"in_dims maps axis 2 of x, which has type float32"),
        ({"in_dims": (0, 0)}, (X, 3), ValueError, r"in_dims maps axis 0 of y.*the entry is None"),
        ({"in_dims": (0, 0)}, (X, "a"), TypeError, "y must be an array or a number"),
        ({"in_dims": ("a",)}, (X,), TypeError, "entry of in_dims must be an int or None, got 'a'"),
        ({"in_dims": ({"a": 0},)}, ({"b": X},), ValueError, "in_dims must be a prefix"),
        ({"out_dims": 3}, (X,), ValueError, "out_dims places axis 3 in a result of 2 axes"),
        ({"out_dims": None}, (X,), ValueError, r"out_dims is None for a result that differs"),
        ({"out_dims": "a"}, (X,), TypeError, "entry of out_dims must be an int or None, got 'a'"),
        ({"out_dims": (0, 0)}, (X,), ValueError, "out_dims must be a prefix"),
        ({"chunk_size": 0}, (X,), ValueError, "func.vmap: chunk_size must be a positive integer"),
        ({"randomness": "all"}, (X,), ValueError, r"one of \('error', 'different', 'same'\), got"),
        ({}, (X, X.T), ValueError, r"inconsistent sizes.*\n.*1 leaf has size 4.*x, .*\n.*1 leaf"),
        ({"randomness": "different"}, (X, X.T), ValueError, r"inconsistent.*\n.*1 leaf has"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("chunk_size", [None, 3])
def test_refused(arguments, call, error, words, chunk_size):
    def f(x, y=None):
        return x

    with pytest.raises(error, match=words):
        vmap(f, **{"chunk_size": chunk_size, **arguments})(*call)


# Randomness


@pytest.mark.parametrize("chunk_size", [None, 3])
def test_error_is_the_default(chunk_size):
    with pytest.raises(RuntimeError, match=r"Noise draws random numbers, but func\.vmap was not.*"
                       r"randomness='different'.*randomness='same'"):  # fmt: skip
        vmap(noise, chunk_size=chunk_size)(X)
    with pytest.raises(RuntimeError, match="randomness="), keys(KEY):
        vmap(noise, chunk_size=chunk_size)(X)
    np.testing.assert_array_equal(next_key(), fold_in(PRNGKey(0), 0))  # nothing was drawn

    def opens(x, key):
        with keys(key):
            return noise(x)

    close(vmap(opens, in_dims=(0, None))(X, KEY), noise_of_each([KEY] * 4))
    many = st.random.split(KEY, 4)
    close(vmap(opens)(X, many), noise_of_each(many))


def noise_of_each(keys):
    return np.stack([noise_of(k, x) for k, x in zip(keys, X, strict=True)])


@pytest.mark.parametrize("chunk_size", [None, 3])
@pytest.mark.parametrize("randomness", ["different", "same"])
def test_streams_of_examples(randomness, chunk_size):
    def run(x):
        return vmap(noise, randomness=randomness, chunk_size=chunk_size)(x)

    drawn = fold_in(KEY, 0)
    each = [fold_in(drawn, i) for i in range(4)] if randomness == "different" else [drawn] * 4
    expected = noise_of_each(each)
    with keys(KEY):
        close(run(X), expected)
        np.testing.assert_array_equal(next_key(), fold_in(KEY, 1))  # one key a call
        again = run(X)
    assert not np.allclose(again, expected)

    @st.jit
    def jitted(key, x):
        with keys(key):
            return run(x)

    close(jitted(KEY, X), expected)

    def slopes(key, x):
        with keys(key):
            return st.grad(lambda x: run(x).sum())(x)

    if chunk_size is None:
        close(slopes(KEY, X) * X, expected)  # linear in x
    close(st.jit(slopes)(KEY, X) * X, expected)


def test_refused_only_where_something_draws():
    # Under jit the default stream cannot be drawn from; that matters to those who draw.
    f = st.jit(vmap(lambda x: 2 * x, randomness="different"))
    close(f(X), 2 * X)
    with pytest.raises(RuntimeError, match=r"Noise draws random numbers, but .*outside this trace"):
        st.jit(vmap(noise, randomness="different"))(X)
    with pytest.raises(RuntimeError, match=r"Noise draws random numbers, but .*outside this vmap"):
        st.vmap(vmap(noise, randomness="same"))(X[None])


def test_nested():
    xs = snp.stack([X, X + 1])
    with keys(KEY):
        inner = vmap(noise, randomness="different")
        out = vmap(inner, randomness="different")(xs)
    for i in range(2):
        key = fold_in(fold_in(fold_in(KEY, 0), i), 0)
        for j in range(4):
            close(out[i, j], noise_of(fold_in(key, j), xs[i, j]))
    with keys(KEY):
        out = vmap(vmap(noise, randomness="different"), randomness="same")(xs)
    key = fold_in(fold_in(KEY, 0), 0)
    close(out[1, 2], noise_of(fold_in(key, 2), xs[1, 2]))
    close(out[0, 2] / xs[0, 2], out[1, 2] / xs[1, 2])
    with keys(KEY):
        out = vmap(vmap(noise, randomness="same", chunk_size=3), randomness="different")(xs)
    close(out[1, 2], noise_of(fold_in(fold_in(fold_in(KEY, 0), 1), 0), xs[1, 2]))
    with pytest.raises(RuntimeError, match="randomness='different'"), keys(KEY):
        vmap(vmap(noise), randomness="different")(xs)


def test_determinism():
    runs = []
    for _ in range(2):
        manual_seed(4)
        runs.append([np.asarray(vmap(noise, randomness="different")(X)) for _ in range(2)])
    np.testing.assert_array_equal(runs[0], runs[1])
    assert not np.allclose(runs[0][0], runs[0][1])


def test_name_and_tracebacks():
    def loss(x):
        """Loss."""
        return x

    made = vmap(loss)
    assert made.__name__ == "vmap_loss" and made.__doc__ == "Loss."
    assert "vmap_loss" in str(st.make_graph(vmap(loss))(X))
