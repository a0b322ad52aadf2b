"""Donated arguments: memory really reused, views never touched, and every later use refused."""

import copy
import pickle
import threading
import warnings

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp


def computed(shape=1024, value=1.0, dtype=snp.float32):
    """An array whose memory is the runtime's own."""
    return st.block_until_ready(st.jit(lambda: snp.full(shape, value, dtype), inline=True)())


def address(x):
    return x.to_buffer().unsafe_buffer_pointer()


@st.jit
def double(x):
    return x * 2


step = st.jit(lambda state, batch: state + batch, donate_argnums=0)


# Memory


def test_the_result_has_the_memory_of_the_argument():
    x = computed()
    place = address(x)
    y = step(x, snp.ones(1024))
    assert address(y) == place
    for _ in range(3):
        y = step(y, snp.ones(1024))
    assert address(y) == place
    np.testing.assert_array_equal(y, 5)


def test_without_donation_it_has_its_own():
    x = computed()
    assert address(double(x)) != address(x)
    np.testing.assert_array_equal(x, 1)


def test_trees_keep_their_memory_leaf_by_leaf():
    update = st.jit(
        lambda params, grads: st.tree.map(lambda p, g: p - 0.5 * g, params, grads),
        donate_argnames="params",
    )
    params = {"w": computed((64, 8)), "b": computed(8), "more": [computed((64, 8), 3.0)]}
    places = [address(x) for x in st.tree.leaves(params)]
    grads = st.tree.map(snp.ones_like, params)
    assert memory(update, params, grads) == 4 * (64 * 8 * 2 + 8)
    params = update(params, grads)
    params = update(params=params, grads=grads)
    assert [address(x) for x in st.tree.leaves(params)] == places
    np.testing.assert_array_equal(params["b"], 0)
    np.testing.assert_array_equal(params["more"][0], 2)


def memory(f, *args):
    return f.lower(*args).compile().memory_analysis().alias_size_in_bytes


def test_what_is_donated_can_be_read_from_the_stages():
    x = snp.ones((4, 4))
    f = st.jit(lambda x, y: (x @ y, y.sum()), donate_argnums=(0, 1))
    with pytest.warns(UserWarning, match="no result can have the memory of the donated y"):
        lowered = f.lower(x, x)
    assert lowered.as_text().count("tf.aliasing_output = 0 : i32") == 1
    assert lowered.compile().memory_analysis().alias_size_in_bytes == 64
    assert [info.donated for info in lowered.args_info[0]] == [True, True]
    assert memory(st.jit(lambda x, y: x @ y), x, x) == 0


def test_matched_by_type_to_itself_first():
    def f(a, b, c):
        return c.astype(snp.int32), b, a + 1  # c has no taker; b is given back, a is changed

    g = st.jit(f, donate_argnums=(0, 1, 2))
    x, y, z = computed(16), computed(16, 2.0), computed(16, 3.0)
    places = address(x), address(y)
    with pytest.warns(UserWarning, match=r"f: no result can have the memory of the donated c"):
        whole, same, more = g(x, y, z)
    assert (address(more), address(same)) == places
    np.testing.assert_array_equal(whole, 3)
    np.testing.assert_array_equal(same, 2)
    np.testing.assert_array_equal(more, 2)
    assert (x.is_deleted(), y.is_deleted(), z.is_deleted()) == (True, True, False)
    np.testing.assert_array_equal(z, 3)


def test_given_back_twice_and_exchanged():
    twice = st.jit(lambda x: (x, x + 1, x), donate_argnums=0)
    swap = st.jit(lambda x, y: (y, x), donate_argnums=(0, 1))
    for a, b in ((1.0, 2.0), (3.0, 4.0)):
        one, more, other = twice(computed(64, a))
        assert [float(v[5]) for v in (one, more, other)] == [a, a + 1, a]
        assert len({address(one), address(more), address(other)}) == 3
        x, y = computed(64, a), computed(64, b)
        places = address(x), address(y)
        left, right = swap(x, y)
        assert [float(v[5]) for v in (left, right)] == [b, a]
        assert (address(right), address(left)) == places


@pytest.mark.parametrize(
    "dtype", ["bool", "int4", "uint8", "int32", "bfloat16", "float8_e5m2", "float32", "complex64"]
)
@pytest.mark.parametrize("shape", [(), (5,), (3, 2), (0,), (2, 0)])
def test_every_type(dtype, shape):
    f = st.jit(lambda x: (snp.where(x == x, x, x), x.sum()), donate_argnums=0)
    x = computed(shape, 1, getattr(snp, dtype))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y, _ = f(x)
    np.testing.assert_array_equal(np.asarray(y).astype(np.complex64), 1)
    assert x.is_deleted() == (x.size > 0)


# Views and copies: never changed


def test_a_view_keeps_its_elements():
    x = computed()
    view = np.asarray(x)
    part = view[10:20]
    del view
    y = step(x, snp.ones(1024))
    st.block_until_ready(y)
    np.testing.assert_array_equal(part, 1)
    np.testing.assert_array_equal(y, 2)
    np.testing.assert_array_equal(step(y, snp.ones(1024)), 3)
    np.testing.assert_array_equal(part, 1)


def test_a_view_that_is_gone_does_not_keep_the_memory():
    x = computed()
    place = address(x)
    assert float(x[0]) == 1 and "1." in repr(x)
    del_me = np.asarray(x)
    del del_me
    assert address(step(x, snp.ones(1024))) == place


def aligned(n, value):
    """NumPy memory that the runtime would use where it lies."""
    raw = np.full(n + 64, value, np.float32)
    start = -(raw.ctypes.data // 4) % 16
    return raw[start : start + n]


@pytest.mark.parametrize(
    "make",
    [
        lambda: snp.array(aligned(256, 1.0)),
        lambda: snp.ones(256),
        lambda: snp.arange(256.0) * 0 + 1,
        lambda: snp.array(np.ones(256, np.float32)).reshape(16, 16).ravel(),
        lambda: computed(256)[:],
        lambda: double(snp.full(256, 0.5)),
    ],
)
@pytest.mark.parametrize("on_device", [False, True])
def test_arrays_that_began_in_numpy(make, on_device):
    x = make()
    if on_device:
        double(x)
    view, reversed = np.asarray(x), x[::-1]
    y = step(x, snp.ones(256))
    np.testing.assert_array_equal(st.block_until_ready(y), 2)
    np.testing.assert_array_equal(view, 1)
    np.testing.assert_array_equal(reversed, 1)
    assert x.is_deleted()


def test_the_users_numpy_array_is_not_touched():
    x = aligned(256, 1.0)
    np.testing.assert_array_equal(step(x, x), 2)
    np.testing.assert_array_equal(step(x, 1.0), 2)
    np.testing.assert_array_equal(x, 1)


@pytest.mark.parametrize(
    "copied",
    [
        copy.copy,
        copy.deepcopy,
        snp.copy,
        snp.array,
        lambda x: x.copy(),
        lambda x: copy.deepcopy({"x": [x]})["x"][0],
        lambda x: pickle.loads(pickle.dumps(x)),
        lambda x: x[:100],
        lambda x: x.reshape(2, -1),
    ],
)
def test_copies_outlive_the_donation(copied):
    x = computed()
    y = copied(x)
    step(x, 1.0)
    np.testing.assert_array_equal(y, 1)
    np.testing.assert_array_equal(double(y), 2)
    z = computed()
    y = copied(z)
    st.jit(lambda y: y + 1, donate_argnums=0)(y)
    np.testing.assert_array_equal(z, 1)
    np.testing.assert_array_equal(double(z), 2)


def test_what_gives_back_the_array_itself_goes_with_it():
    x = computed(16)
    same = snp.asarray(x)
    assert same is x
    step(x, 1.0)
    with pytest.raises(st.errors.DonatedArrayError):
        same + 1


# Later uses


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x + 1,
        lambda x: 1 + x,
        lambda x: -x,
        lambda x: x @ x,
        snp.sin,
        lambda x: x.sum(),
        lambda x: x[0],
        lambda x: x.at[0].set(1.0),
        list,
        np.asarray,
        np.sin,
        str,
        lambda x: f"{x}",
        lambda x: x.tolist(),
        lambda x: x.item(0),
        double,
        lambda x: double(x=x),
        lambda x: step(x, 1.0),
        lambda x: step(snp.ones(16), x),
        lambda x: double.lower(x).compile()(x),
        lambda x: st.jit(lambda y: y + x)(1.0),
        lambda x: st.jit(lambda: x)(),
        st.vmap(snp.sin),
        st.grad(lambda x: (x * x).sum()),
        lambda x: st.jvp(snp.sin, (x,), (x,)),
        lambda x: st.lax.scan(lambda c, y: (c + y, c), 0.0, x),
        lambda x: st.lax.cond(True, snp.sin, snp.cos, x),
        st.block_until_ready,
        copy.copy,
        lambda x: copy.deepcopy([x]),
        pickle.dumps,
        snp.array,
        lambda x: snp.stack([x, x]),
        np.from_dlpack,
    ],
)
def test_every_use_is_refused(use):
    x = computed(16)
    step(x, 1.0)
    with pytest.raises(
        st.errors.DonatedArrayError,
        match=r"this float32\[16\] was donated to function as its argument state at "
        r".*test_donation.py:\d+ \(test_every_use_is_refused\).*snp.copy",
    ):
        use(x)


def test_what_needs_no_elements_stays():
    x = computed(16)
    step(x, 1.0)
    assert (x.shape, x.dtype, x.ndim, x.size, x.is_deleted()) == ((16,), np.float32, 1, 16, True)
    assert st.eval_shape(snp.sin, x).shape == (16,)
    assert issubclass(st.errors.DonatedArrayError, RuntimeError)


def test_the_short_way_refuses_too():
    x, y = computed(16), computed(16)
    double(y), double(x)
    step(x, 1.0)
    for _ in range(3):
        with pytest.raises(st.errors.DonatedArrayError, match="argument state"):
            double(x)
    np.testing.assert_array_equal(double(y), 2)


def test_captured_arrays():
    table = computed(16)
    f = st.jit(lambda x: x * table)
    np.testing.assert_array_equal(f(2.0), 2)
    step(table, 1.0)
    with pytest.raises(st.errors.DonatedArrayError, match="argument state"):
        f(2.0)
    _, pull = st.vjp(lambda x: x * f2(x), held := computed(16))
    step(held, 1.0)
    with pytest.raises(st.errors.DonatedArrayError, match="argument state"):
        pull(snp.ones(16))


def f2(x):
    return x * x


def test_passed_twice():
    x = computed(16)
    for use in (lambda: step(x, x), lambda: step(batch=x, state=x)):
        with pytest.raises(
            ValueError,
            match=r"function: one array was passed as state, which is donated, and as batch;.*copy",
        ):
            use()
    with pytest.raises(ValueError, match=r"as tree\['a'\], which is donated, and as tree\['b'\]"):
        st.jit(lambda tree: st.tree.map(lambda v: v + 1, tree), donate_argnums=0)({"a": x, "b": x})
    with pytest.raises(ValueError, match="as y, which is donated, and as a captured array"):
        st.jit(lambda y: y + x, donate_argnums=0)(x)
    assert not x.is_deleted()
    np.testing.assert_array_equal(step(x, snp.copy(x)), 2)
    y = computed(16)
    three = st.jit(lambda a, b, c: a + b + c, donate_argnums=0)
    np.testing.assert_array_equal(three(computed(16), y, y), 3)  # what is only read may be shared


def test_an_argument_that_nothing_reads_is_not_taken():
    f = st.jit(lambda x, y: y + 1, donate_argnums=0)
    x = computed(16)
    np.testing.assert_array_equal(f(x, 1.0), 2)
    assert not x.is_deleted()
    kept = st.jit(lambda x, y: y + snp.ones(16), donate_argnums=0, keep_unused=True)
    np.testing.assert_array_equal(kept(x, 1.0), 2)
    assert x.is_deleted()


def test_an_unusable_donation_warns_once_a_signature():
    f = st.jit(lambda x: x.sum(), donate_argnums=0)
    x = computed((2, 8))
    with pytest.warns(
        UserWarning, match=r"donated x \(float32\[2,8\]\).*results have.*float32\[\]"
    ) as caught:
        f(x)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert float(f(x)) == 16
    assert not x.is_deleted()


def test_a_call_that_fails_takes_nothing():
    fail = [True]

    def f(x):
        if fail[0]:
            raise KeyError("while tracing")
        return x + 1

    g = st.jit(f, donate_argnums=0)
    x = computed(16)
    with pytest.raises(KeyError):
        g(x)
    fail[0] = False
    with pytest.raises(TypeError):
        step(x, object())
    y = computed(16)
    step(y, 1.0)
    with pytest.raises(st.errors.DonatedArrayError):
        step(x, y)  # the second argument is refused when the first is already on its way
    assert not x.is_deleted()
    np.testing.assert_array_equal(g(x), 2)


# Where nothing is donated


def test_inside_transformations_nothing_is_donated():
    x = computed(16)
    y = snp.ones(16)
    st.jit(lambda x: step(x, y) + x)(x)
    st.vmap(step)(x, y)
    st.grad(lambda x: step(x, y).sum())(x)
    st.jvp(step, (x, y), (y, y))
    st.lax.fori_loop(0, 3, lambda i, c: step(c, y), x)
    with st.disable_jit():
        step(x, y)
    assert "aliasing" not in st.jit(lambda x: step(x, y)).lower(x).as_text()
    np.testing.assert_array_equal(x, 1)


def test_ahead_of_time():
    compiled = step.lower(snp.ones(1024), snp.ones(1024)).compile()
    x = computed()
    place = address(x)
    assert address(compiled(x, snp.ones(1024))) == place
    with pytest.raises(st.errors.DonatedArrayError, match="argument state"):
        compiled(x, snp.ones(1024))


def test_static_and_donated():
    for options in (
        {"static_argnums": 0, "donate_argnums": 0},
        {"static_argnums": 0, "donate_argnames": "x"},
        {"static_argnames": "x", "donate_argnames": ("y", "x")},
        {"static_argnums": -2, "donate_argnums": 0},
    ):
        with pytest.raises(ValueError, match="jit: the argument 'x' is both static and donated"):
            st.jit(lambda x, y: y, **options)
    f = st.jit(lambda n, x, *, y: x * n + y, static_argnums=0, donate_argnames=("x", "y"))
    x, y = computed(16), computed(16)
    with pytest.warns(UserWarning, match="the donated y"):
        np.testing.assert_array_equal(f(3, x, y=y), 4)
    assert (x.is_deleted(), y.is_deleted()) == (True, False)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"donate_argnums": 2}, "donate_argnums names argument 2, but f takes 2 positional"),
        ({"donate_argnames": "k"}, "donate_argnames names 'k', but f takes x, y"),
        ({"donate_argnums": "x"}, "donate_argnums must be an int or a sequence of ints; got 'x'"),
        ({"donate_argnames": 1}, "donate_argnames must be a name or a sequence of names; got 1"),
    ],
)
def test_arguments_that_are_not_there(options, message):
    def f(x, y):
        return x

    with pytest.raises((ValueError, TypeError), match=message):
        st.jit(f, **options)


def test_positions_from_the_end_and_extra_arguments():
    f = st.jit(lambda x, y: (x + 1, y + 1), donate_argnums=-1)
    x, y = computed(16), computed(16)
    f(x, y)
    assert (x.is_deleted(), y.is_deleted()) == (False, True)
    g = st.jit(lambda *xs, **named: (xs, named), donate_argnums=1, donate_argnames="b")
    arrays = [computed(16, float(i)) for i in range(4)]
    g(arrays[0], arrays[1], a=arrays[2], b=arrays[3])
    assert [a.is_deleted() for a in arrays] == [False, True, False, True]


def test_threads_that_donate_one_array():
    for _ in range(10):
        x = computed(16)
        start, won, lost = threading.Barrier(4), [], []

        def work(x=x, start=start, won=won, lost=lost):
            start.wait()
            try:
                won.append(float(step(x, 1.0)[0]))
            except RuntimeError as error:
                lost.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert won == [2.0] and len(lost) == 3


def test_its_repr_says_what_became_of_it():
    x = computed(16)
    step(x, 1.0)
    assert repr(x) == "<Array float32[16], donated to function>"
