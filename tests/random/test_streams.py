"""Streams of keys: what is drawn in which order, by whom, and where a draw is refused."""

import threading

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.random import PRNGKey, fold_in, keys, manual_seed, next_key, streams

KEY = PRNGKey(7)


def number(key):
    """A number between 0 and 1, cheap to compile."""
    return key[0].astype(snp.float32) / 2**32


def noisy(x):
    """Something differentiable that draws."""
    return (x * number(next_key("Noise"))).sum()


def expected(x, n=0, key=KEY):
    return (x * number(fold_in(key, n))).sum()


@pytest.fixture(autouse=True)
def fresh():
    manual_seed(0)


def test_the_nth_draw_is_the_key_with_n_folded_in():
    with keys(KEY):
        drawn = [next_key() for _ in range(3)]
    for n, k in enumerate(drawn):
        np.testing.assert_array_equal(k, fold_in(KEY, n))


def test_blocks_nest_and_the_innermost_counts():
    with keys(KEY):
        next_key()
        with keys(PRNGKey(8)):
            np.testing.assert_array_equal(next_key(), fold_in(PRNGKey(8), 0))
        np.testing.assert_array_equal(next_key(), fold_in(KEY, 1))
    with pytest.raises(ZeroDivisionError), keys(KEY):
        raise ZeroDivisionError
    np.testing.assert_array_equal(next_key(), fold_in(PRNGKey(0), 0))  # the default one again


def test_the_default_stream():
    manual_seed(3)
    one = [next_key(), next_key()]
    manual_seed(np.int64(3))
    np.testing.assert_array_equal(one, [next_key(), next_key()])
    np.testing.assert_array_equal(one[0], fold_in(PRNGKey(3), 0))
    assert st.nn.keys is keys and st.random.manual_seed is manual_seed


def test_a_new_process_starts_with_seed_0(monkeypatch):
    monkeypatch.setattr(streams._Default, "stream", None)
    out = []
    # First used inside a gradient, it is nevertheless the stream of the process.
    st.grad(lambda x: out.append(next_key()) or x)(1.0)
    np.testing.assert_array_equal(out[0], fold_in(PRNGKey(0), 0))
    np.testing.assert_array_equal(next_key(), fold_in(PRNGKey(0), 1))


@pytest.mark.parametrize("bad", [3, np.zeros(2), np.zeros((3, 2), np.uint32)])
def test_no_key(bad):
    with pytest.raises(TypeError, match=r"random\.keys: expected a key, uint32\[2\]"), keys(bad):
        pass


def test_threads_have_blocks_of_their_own_and_share_the_default():
    drawn = []
    barrier = threading.Barrier(4)

    def work():
        barrier.wait()
        with keys(KEY):
            mine = np.asarray(next_key())
        drawn.append((mine, [bytes(np.asarray(next_key())) for _ in range(20)]))

    with keys(PRNGKey(99)):  # not seen by the threads
        threads = [threading.Thread(target=work) for _ in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
    assert len(drawn) == 4
    for mine, _ in drawn:
        np.testing.assert_array_equal(mine, fold_in(KEY, 0))
    default = {k for _, many in drawn for k in many}
    assert default == {bytes(np.asarray(fold_in(PRNGKey(0), n))) for n in range(80)}


# Under transformations

X = snp.arange(1.0, 4.0)


def test_derivatives_draw():
    with keys(KEY):
        np.testing.assert_allclose(st.grad(noisy)(X), st.grad(expected)(X))
        value, slope = st.jvp(noisy, (X,), (snp.ones(3),))
        np.testing.assert_allclose(value, expected(X, 1))
        np.testing.assert_allclose(slope, expected(snp.ones(3), 1))
        np.testing.assert_allclose(st.jacrev(noisy)(X), st.grad(expected)(X, 2))
        np.testing.assert_allclose(st.linearize(noisy, X)[0], expected(X, 3))
        assert not st.hessian(noisy)(X).any()


TRACED = {
    "jit": lambda f: st.jit(f)(X),
    "jit of grad": lambda f: st.jit(st.grad(f))(X),
    "grad of jit": lambda f: st.grad(st.jit(f))(X),
    "scan": lambda f: st.lax.scan(lambda c, x: (c, f(X)), 0, None, length=2),
    "fori_loop": lambda f: st.lax.fori_loop(0, 2, lambda i, c: c + f(X), 0.0),
    "while_loop": lambda f: st.lax.while_loop(lambda c: c < 9, lambda c: c + f(X), 0.0),
    "cond": lambda f: st.lax.cond(True, f, f, X),
    "checkpoint": lambda f: st.checkpoint(f)(X),
    "eval_shape": lambda f: st.eval_shape(f, X),
    "jit in vmap": lambda f: st.vmap(st.jit(lambda x: f(X)))(X),
}
MAPPED = {
    "vmap": lambda f: st.vmap(f)(X[None]),
    "grad of vmap": lambda f: st.grad(lambda x: st.vmap(f)(x).sum())(X[None]),
    "vmap of grad": lambda f: st.vmap(st.grad(f))(X[None]),
    "vmap of vmap": lambda f: st.vmap(st.vmap(f))(X[None, None]),
    "vmap in chunks": lambda f: st.vmap(f, chunk_size=2)(snp.stack([X, X, X])),
    "map": lambda f: st.lax.map(lambda x: f(X), X),
}


@pytest.mark.parametrize("name", [*TRACED, *MAPPED])
@pytest.mark.parametrize("own", [False, True], ids=["default", "block"])
def test_refused_where_the_stream_was_opened_outside(name, own):
    how = {**TRACED, **MAPPED}[name]
    words = "this vmap.*pass key=.*randomness=" if name in MAPPED else r"this trace \(jit.*nn\.keys"
    with pytest.raises(RuntimeError, match=f"^Noise draws random numbers, but .*{words}"):
        if own:
            with keys(KEY):
                how(noisy)
        else:
            how(noisy)
    np.testing.assert_array_equal(next_key(), fold_in(PRNGKey(0), 0))  # nothing was drawn


@pytest.mark.parametrize("name", [*TRACED, *MAPPED])
def test_opened_inside_it_draws(name):
    def opens(x):
        with keys(KEY):
            return noisy(x)

    how = {**TRACED, **MAPPED}[name]
    for a, b in zip(
        st.tree.leaves(how(opens)), st.tree.leaves(how(expected)), strict=True
    ):  # fmt: skip
        if hasattr(a, "type") and not isinstance(a, st.ShapeDtypeStruct):
            np.testing.assert_allclose(a, b, rtol=1e-6)
        else:
            assert a == b


def test_refused_in_a_vmap_inside_jit():
    @st.jit
    def f(key, x):
        with keys(key):
            return st.vmap(lambda x: noisy(x) + (x @ snp.ones((3, 3))).sum())(x)

    with pytest.raises(RuntimeError, match=r"Noise draws .*outside this vmap"):
        f(KEY, X[None])


def test_a_key_as_an_argument():
    @st.jit
    def f(key, x):
        with keys(key):
            return noisy(x) + noisy(x)

    for seed in (1, 2):
        key = PRNGKey(seed)
        np.testing.assert_allclose(
            f(key, X), expected(X, 0, key) + expected(X, 1, key), rtol=1e-6
        )  # fmt: skip
    many = st.random.split(KEY, 3)
    each = st.vmap(f, in_axes=(0, None))(many, X)
    np.testing.assert_allclose(each, [f(k, X) for k in many], rtol=1e-6)

    def body(carry, key):
        return carry, f(key, X)

    np.testing.assert_allclose(st.lax.scan(body, 0, many)[1], each, rtol=1e-6)


def test_jit_disabled_draws_as_python_does():
    with st.disable_jit(), keys(KEY):
        np.testing.assert_allclose(st.jit(noisy)(X), expected(X))


def test_manual_seed_inside_a_transformation():
    for how in (st.jit, st.grad, st.vmap):
        with pytest.raises(RuntimeError, match=r"manual_seed: .*cannot be started inside a transf"):
            how(lambda x: manual_seed(0) or x.sum())(X)
    with pytest.raises(RuntimeError, match="manual_seed"):
        st.jit(manual_seed)(3)


def test_refusing():
    assert streams.refusal() == ""
    with keys(KEY), streams.refusing("it may not"):
        assert streams.refusal() == "it may not"
        with pytest.raises(RuntimeError, match=r"^Noise draws random numbers, but it may not$"):
            noisy(X)
        with keys(KEY):
            np.testing.assert_allclose(noisy(X), expected(X))
    reasons = []
    st.jit(lambda x: reasons.append(streams.refusal()) or x)(X)
    assert "this trace" in reasons[0]
