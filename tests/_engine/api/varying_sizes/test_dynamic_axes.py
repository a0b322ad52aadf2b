"""Jitted functions of arrays of any size: values, derivatives, one trace, few programs."""

import pickle

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax, nn, random
from stretto._engine.api.varying_sizes import dynamic_axes
from stretto._engine.native import native
from tests import gpus

gpu = gpus.gpu
RNG = np.random.default_rng(0)
W = RNG.normal(size=(4, 4)).astype(np.float32)


def rows(n, columns=4):
    return RNG.normal(size=(n, columns)).astype(np.float32)


def attend(w, x):
    q = x @ w
    scores = nn.functional.softmax(q @ q.T / 2, -1)
    return (scores @ x).mean(0), scores


def total(w, x):
    return (attend(w, x)[0] ** 2).sum()


def close(one, other, error=3e-5):
    one, other = st.tree.leaves(one), st.tree.leaves(other)
    assert len(one) == len(other)
    for a, b in zip(one, other):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=error, atol=error)


def test_traced_once_and_compiled_once_a_bucket():
    traced = []

    def f(w, x):
        traced.append(str(x.shape[0]))
        return attend(w, x)

    g = st.jit(f, dynamic_axes=(None, {0: "n"}))
    for n in (1, 3, 16, 17, 40, 100, 5):
        x = rows(n)
        close(g(W, x), attend(snp.asarray(W), snp.asarray(x)))
    assert traced == ["n"] and len(g._programs) == 4


def test_sizes_by_name_and_by_expression():
    f = st.jit(lambda x, y, z: (x + y, z[::2] * x), dynamic_axes=({0: "n"}, {0: "n"}, {0: "m"}))
    n = st.dynamic_size("n")
    g = st.jit(lambda x, y: x + y[::2], dynamic_axes=({0: n}, {0: 2 * n}))
    close(g(np.ones(3), np.arange(6.0)), snp.ones(3) + snp.arange(6.0)[::2])
    with pytest.raises(ValueError, match=r"axis 0 of y has size 5, and 2\*n is 6"):
        g(np.ones(3), np.arange(5.0))
    with pytest.raises(ValueError, match="n is one size, and was 3 at axis 0 of x and 4 at axis 0"):
        f(np.ones(3), np.ones(4), np.ones(2))
    with pytest.raises(
        ValueError, match=r"axis 0 of y has size 4, and 2\*m needs m, which no axis"
    ):
        st.jit(lambda x, y: x, dynamic_axes=({0: n}, {0: 2 * st.dynamic_size("m")}))(
            np.ones(2), np.ones(4)
        )


def test_trees_static_arguments_and_decorators():
    @st.jit(dynamic_axes=({"x": {0: "n"}, "w": None},), static_argnames="power")
    def f(data, power):
        return {"sum": (data["x"] @ data["w"] ** power).sum(0)}

    for n in (2, 30):
        data = {"x": rows(n), "w": W}
        close(f(data, power=2), {"sum": snp.asarray((data["x"] @ W**2).sum(0))})
    batch = st.jit(lambda x: x.mean(-1), dynamic_axes=({0: "b", -1: "t"},))
    x = rows(5, 7)
    close(batch(x), snp.asarray(x.mean(-1)))


def test_what_is_captured():
    f = st.jit(lambda x: x @ snp.asarray(W), dynamic_axes=({0: "n"},))
    close(f(rows(3) * 0 + 1), snp.ones((3, 4)) @ W)
    with st.enable_x64():
        assert f(np.ones((2, 4))).dtype == np.float64


@pytest.mark.parametrize("n", [3, 20])
def test_derivatives_outside_and_inside(n):
    x = rows(n)
    f = st.jit(total, dynamic_axes=(None, {0: "n"}))
    wanted = st.grad(total, (0, 1))(W, x)
    close(st.grad(f, (0, 1))(W, x), wanted)
    inside = st.jit(st.grad(total, (0, 1)), dynamic_axes=(None, {0: "n"}))
    close(inside(W, x), wanted)
    close(st.hessian(f)(W, x), st.hessian(total)(W, x), 1e-3)
    t = (W * 0.1, x * 0.1)
    close(st.jvp(f, (W, x), t), st.jvp(total, (W, x), t))
    close(st.jit(st.grad(f, 1))(W, x), wanted[1])


def test_under_vmap_and_in_other_programs():
    f = st.jit(total, dynamic_axes=(None, {0: "n"}))
    x = rows(6)
    several = np.stack([W, 2 * W, -W])
    close(st.vmap(f, (0, None))(several, x), st.vmap(total, (0, None))(several, x))
    close(
        st.vmap(st.grad(f), (0, None))(several, x), st.vmap(st.grad(total), (0, None))(several, x)
    )
    close(st.jit(lambda w, x: f(w, x) + 1)(W, x), total(W, snp.asarray(x)) + 1)
    again = st.jit(lambda w, x: f(w, x[1:]), dynamic_axes=(None, {0: "m"}))
    close(again(W, x), total(W, snp.asarray(x[1:])))


def test_random_numbers_do_not_depend_on_the_bucket():
    draw = lambda x: random.normal(random.key(7), x.shape) + 0 * x
    f = st.jit(draw, dynamic_axes=({0: "n"},))
    for n in (3, 20, 100):
        close(f(rows(n)), draw(snp.asarray(rows(n))))


def test_recurrent_network_of_any_length():
    cell = nn.GRU(4, 8, key=random.key(0))
    f = st.jit(lambda cell, x: cell(x)[1], dynamic_axes=(None, {0: "n"}))
    for n in (1, 7, 33):
        x = rows(n)
        close(f(cell, x), cell(x)[1])


def test_refusals():
    f = st.jit(lambda x: x if x.shape[0] == 3 else x + 1, dynamic_axes=({0: "n"},))
    with pytest.raises(st.errors.SizeError, match="whether n == 3 depends on sizes"):
        f(np.ones(3))
    with pytest.raises(ValueError, match="axis 0 of x has size 0, and n must be at least 1"):
        st.jit(lambda x: x, dynamic_axes=({0: "n"},))(np.ones(0))
    with pytest.raises(ValueError, match="axis 0 of x has size 2, and n must be at least 3"):
        st.jit(lambda x: x[2], dynamic_axes=({0: st.dynamic_size("n", 3)},))(np.ones(2))
    for axis in (-3, 2):
        with pytest.raises(ValueError, match=rf"has axis {axis} of x, which is float32\[3,2\]"):
            st.jit(lambda x: x, dynamic_axes=({axis: "n"},))(np.ones((3, 2), np.float32))
    for axis in (-2, 1):
        assert st.jit(lambda x: x, dynamic_axes=({axis: "n"},))(np.ones((3, 2))).shape == (3, 2)
    for wrong in ({0: 3}, 1, ("n",)):
        with pytest.raises(TypeError, match="jit: dynamic_axes must"):
            st.jit(lambda x: x, dynamic_axes=wrong)
    with pytest.raises(ValueError, match="x has a size that varies, and cannot be donated"):
        st.jit(lambda x: x, dynamic_axes=({0: "n"},), donate_argnums=0)(snp.ones(3))


def doubled(x):
    return x * 2


def test_a_copy_by_pickle():
    f = pickle.loads(pickle.dumps(st.jit(doubled, dynamic_axes=({0: "n"},))))
    close(f(np.ones(3)), snp.ones(3) * 2)


def test_loops_of_as_many_steps():
    steps = st.jit(
        lambda x: lax.fori_loop(0, x.shape[0], lambda i, c: c * 0.5 + x[i], snp.zeros(4)),
        dynamic_axes=({0: "n"},),
    )
    for n in (2, 19):
        x, expected = rows(n), np.zeros(4)
        for row in x:
            expected = expected * 0.5 + row
        np.testing.assert_allclose(steps(x), expected, rtol=1e-5)


def test_arrays_that_were_put_somewhere(gpu):
    f = st.jit(total, dynamic_axes=(None, {0: "n"}))
    x = rows(5)
    there = f(st.device_put(W, gpu), st.device_put(x, gpu))
    assert there.device == gpu
    close(there, total(W, snp.asarray(x)))
    rowwise = st.jit(lambda x: x * 2, dynamic_axes=({0: "n"},))
    assert rowwise(st.device_put(x, gpu)).device == gpu


def test_what_our_own_code_asks_of_sizes_is_asked_of_those_of_the_call():
    def covariance(x):  # divides by n - 1, or by 1
        return snp.cov(x.T)

    f = st.jit(covariance, dynamic_axes=({0: "n"},))
    for n in (5, 30, 2, 7):
        x = np.random.default_rng(n).normal(size=(n, 3)).astype(np.float32)
        np.testing.assert_allclose(f(x), snp.cov(x.T), rtol=1e-4, atol=1e-5)
    assert len(f._entries) == 1
    x = np.ones(1, np.float32)
    picked = st.jit(lambda x, i: snp.take_along_axis(x, i, 0), dynamic_axes=({0: "n"}, {0: "n"}))
    for n in (4, 1, 3, 1):
        x = np.arange(2.0 * n, dtype=np.float32).reshape(n, 2)
        i = np.zeros((n, 2), np.int32) + (n - 1)
        np.testing.assert_array_equal(picked(x, i), np.take_along_axis(x, i, 0))


def test_sizes_are_asked_about_in_every_trace():
    """The second function, of the same operation, is refused what the first one is."""
    for _ in range(2):
        f = st.jit(lambda x: st.lax.slice(x, (2,), (5,)), dynamic_axes=({0: "n"},))
        np.testing.assert_array_equal(f(snp.arange(6.0)), [2, 3, 4])
        with pytest.raises(ValueError, match="slice: expected 0 <= start <= limit <= size"):
            f(snp.arange(4.0))


def test_examples_that_our_own_code_tells_apart():
    smooth = lambda x: snp.convolve(x, snp.ones(3), "same")
    parts = [np.arange(n, dtype=np.float32) for n in (4, 9, 2, 5)]  # the kernel may be longer
    for run in (st.vmap(smooth), st.jit(st.vmap(smooth))):
        for got, part in zip(run(st.ragged(parts)), parts, strict=True):
            np.testing.assert_allclose(got, np.convolve(part, np.ones(3), "same"), rtol=1e-6)
    several = st.ragged([np.ones(1), np.ones(5)])
    with pytest.raises(st.errors.SizeError, match=r"^gradient: .*not the same for all examples"):
        st.vmap(snp.gradient)(several)
    with pytest.raises(st.errors.SizeError, match=r"^gradient: .*depends on sizes that are known"):
        st.jit(st.vmap(snp.gradient))(several)
    with pytest.raises(st.errors.SizeError, match=r"^whether n > 2"):  # the user's own condition
        st.vmap(lambda x: x if x.shape[0] > 2 else -x)(several)


@pytest.mark.parametrize("edge_order", [1, 2])
def test_gradient(edge_order):
    f = lambda x: snp.gradient(x, edge_order=edge_order)
    g = lambda x, t: snp.gradient(x, t, edge_order=edge_order)
    loss = lambda x: (f(x) ** 2).sum()
    any_size = st.jit(f, dynamic_axes=({0: "n"},))
    with_places = st.jit(g, dynamic_axes=({0: "n"}, {0: "n"}))
    slope = st.jit(st.grad(loss), dynamic_axes=({0: "n"},))
    for n in (3, 4, 9):
        x = np.sin(np.arange(n, dtype=np.float32) ** 2)
        t = np.cumsum(np.abs(x) + 0.5, dtype=np.float32)
        np.testing.assert_allclose(any_size(x), np.gradient(x, edge_order=edge_order), 1e-5, 1e-6)
        np.testing.assert_allclose(
            with_places(x, t), np.gradient(x, t, edge_order=edge_order), 1e-4, 1e-5
        )
        np.testing.assert_allclose(slope(x), st.grad(loss)(x), 1e-4, 1e-5)
    with pytest.raises(ValueError, match=f"^gradient: expected at least {edge_order + 1} samples"):
        any_size(np.ones(edge_order, np.float32))


def test_interp_of_one_point_and_of_several():
    x = st.ragged([snp.arange(3.0), snp.arange(1.0), snp.arange(5.0)])
    np.testing.assert_allclose(st.vmap(lambda x: snp.interp(1.5, x, x * 2))(x), [3, 0, 3])
    np.testing.assert_allclose(st.jit(st.vmap(lambda x: snp.interp(1.5, x, x)))(x), [1.5, 0, 1.5])


def test_an_index_is_looked_at_for_each_size():
    """What was found out of a longer array, that the index is in bounds, was kept for a shorter."""
    third = st.jit(lambda x: x[3], dynamic_axes=({0: "n"},))
    assert [float(third(np.arange(n, dtype=np.float32))) for n in (5, 2)] == [3, 1]


def test_updates_beyond_some_of_the_examples():
    x = st.ragged([snp.ones(1), snp.ones(4)])
    out = st.vmap(lambda x: x.at[2].set(5.0))(x)
    np.testing.assert_array_equal(out.values, [1, 1, 1, 5, 1])


def test_the_product_has_a_slope_at_zeros():
    x = st.ragged([[2.0, 0.0, 3.0], [4.0], [0.0, 0.0]])
    slope = st.jit(st.grad(lambda x: st.vmap(snp.prod)(x).sum()))(x).like(x)
    np.testing.assert_array_equal(slope.values, [0, 6, 0, 1, 0, 0])


def test_a_training_step_for_batches_of_any_size():
    rng = np.random.default_rng(0)
    key = st.random.key(0)
    model = nn.Sequential(
        nn.Linear(4, 8, bias=False, key=key), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3, key=key)
    )
    tx = st.optim.adam(1e-2)

    def step(model, state, x, y):
        def loss(model):
            out, after = nn.stateful_call(model, x)
            return nn.functional.cross_entropy(out, y), after

        (value, after), slope = st.value_and_grad(loss, has_aux=True)(model)
        updates, state = tx.update(slope, state, model)
        return st.optim.apply_updates(after, updates), state, value

    axes = (None, None, {0: "b"}, {0: "b"})
    any_size = st.jit(step, dynamic_axes=axes, donate_argnums=(0, 1))
    fixed = st.jit(step)
    ours = theirs = (model, tx.init(model))
    ours = st.tree.map(snp.array, ours)
    for size in (16, 9, 16, 5):
        x, y = rng.normal(size=(size, 4)).astype(np.float32), rng.integers(0, 3, size)
        before = ours[0][0].weight
        *ours, mine = any_size(*ours, x, y)
        *theirs, value = fixed(*theirs, x, y)
        assert before.is_deleted()
        np.testing.assert_allclose(mine, value, rtol=1e-4)
    for a, b in zip(st.tree.leaves(ours), st.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


def test_images_of_any_size():
    key = st.random.key(0)
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3, stride=2, padding=1, key=key),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.AdaptiveAvgPool2d(1),
    )
    f = st.jit(net, dynamic_axes=({1: "h", 2: "w"},))
    for h, w in ((31, 20), (8, 8), (16, 33)):
        x = np.random.default_rng(h).normal(size=(3, h, w)).astype(np.float32)
        np.testing.assert_allclose(f(x), net(x), rtol=1e-4, atol=1e-5)


def test_sizes_as_values_of_arrays_and_counts():
    f = st.jit(
        lambda x: (snp.nonzero(x > 1, size=x.shape[0])[0], snp.full_like(x, x.shape[0])),
        dynamic_axes=({0: "n"},),
    )
    places, filled = f(np.array([1.0, 2.0, 0.0, 3.0], np.float32))
    assert places.tolist() == [1, 3, 0, 0] and filled.tolist() == [4.0] * 4


def test_calls_are_remembered_by_their_sizes():
    captured = snp.arange(6.0)

    def f(tree, y, *, scale):
        return {"out": tree["x"] * scale + y.sum(), "sum": captured[: y.shape[0]].sum()}

    g = st.jit(f, dynamic_axes=({"x": {0: "n"}}, {0: "m"}))
    general = []
    called = g._call
    g._call = lambda args, kwargs: (general.append(1), called(args, kwargs))[1]
    for _ in range(5):
        for n, m in ((3, 2), (5, 4), (3, 4)):
            args = {"x": snp.arange(float(n))}, snp.ones(m)
            got = g(*args, scale=snp.asarray(2.0))
            want = f(*args, scale=2.0)
            st.tree.map(np.testing.assert_array_equal, got, want)
    assert len(general) == (6 if native else 15)  # its twin remembers no trees
    g.clear_cache()
    np.testing.assert_array_equal(g(*args, scale=snp.asarray(1.0))["out"], args[0]["x"] + 4)
    assert len(general) == (7 if native else 16)


def test_remembered_calls_follow_settings_and_transformations():
    f = st.jit(lambda x: x.astype(float) / 3, dynamic_axes=({0: "n"},))
    x = np.arange(3, dtype=np.int32)
    for _ in range(4):
        assert f(snp.asarray(x)).dtype == np.float32
    with st.enable_x64():
        assert f(snp.asarray(x)).dtype == np.float64
    np.testing.assert_allclose(st.vmap(f)(snp.ones((2, 3))), np.full((2, 3), 1 / 3), rtol=1e-6)
    slope = st.grad(lambda x: f(x).sum())(snp.ones(3))
    np.testing.assert_allclose(slope, np.full(3, 1 / 3), rtol=1e-6)


def test_donated_arguments_of_remembered_calls():
    f = st.jit(lambda w, x: w + x.sum(), dynamic_axes=(None, {0: "n"}), donate_argnums=0)
    w = snp.zeros(1000)
    for _ in range(5):
        before, w = w, f(w, snp.ones(3))
        assert before.is_deleted()
    np.testing.assert_array_equal(w, np.full(1000, 15))
    with pytest.raises(st.errors.DonatedArrayError, match="donated to"):
        f(before, snp.ones(3))


@pytest.mark.skipif(native is None, reason="its twin remembers no trees")
def test_so_many_sizes_are_remembered_and_no_more(monkeypatch):
    monkeypatch.setattr(dynamic_axes, "_RECORDS", 2)
    f = st.jit(lambda x: x * 2, dynamic_axes=({0: "n"},))
    general, called = [], f._call
    f._call = lambda args, kwargs: (general.append(len(args[0])), called(args, kwargs))[1]
    for n in (3, 4, 5, 6):
        for _ in range(4):
            np.testing.assert_array_equal(f(snp.ones(n)), np.full(n, 2))
    assert general == [3] * 2 + [4] * 2 + [5] * 4 + [6] * 4


def test_programs_are_named_like_the_function(caplog):
    def my_total(x):
        return (x * 2).sum()

    with st.config(log_compiles=True, disk_cache=False, interpret_small=False):
        st.jit(my_total, dynamic_axes=({0: "n"},))(snp.ones((3, 2)))
    assert any("compiled my_total for" in record.getMessage() for record in caplog.records)
