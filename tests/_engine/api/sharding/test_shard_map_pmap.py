"""``pmap``: an example on each device."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.api.sharding.shard_map import _examples, pmap

A = np.arange(24.0, dtype=np.float32).reshape(8, 3)


@pytest.mark.devices
def test_examples():
    f = pmap(lambda x, y: (x / lax.psum(x, "i"), y + lax.axis_index("i")), axis_name="i")
    shares, places = f(A, np.zeros(8, np.int32))
    np.testing.assert_allclose(shares, A / A.sum(0), rtol=1e-6)
    np.testing.assert_array_equal(places, range(8))
    assert shares.devices() == set(st.devices()) and shares.addressable_shards[2].data.shape == (
        1,
        3,
    )
    mapped = st.vmap(lambda x: x / lax.psum(x, "i"), axis_name="i")
    np.testing.assert_allclose(shares, mapped(A), rtol=1e-6)


@pytest.mark.devices
def test_axes_and_static_arguments():
    f = pmap(
        lambda tree, n, w: tree["a"] * n + w,
        in_axes=({"a": 1}, None, None),
        out_axes=1,
        static_broadcasted_argnums=1,
    )
    np.testing.assert_array_equal(f({"a": A.T}, 2, 1.0), A.T * 2 + 1)
    same = pmap(lambda x: lax.pmean(x, "i"), axis_name="i", out_axes=None)
    np.testing.assert_allclose(same(A), A.mean(0), rtol=1e-6)
    fewer = pmap(lambda x: x + 1, devices=st.devices()[2:5])
    assert fewer(A[:3]).devices() == set(st.devices()[2:5])


@pytest.mark.devices
def test_training():
    def step(w, x):
        value, slope = st.value_and_grad(lambda w: ((x @ w) ** 2).mean())(w)
        return w - 0.1 * lax.pmean(slope, "i"), lax.pmean(value, "i")

    train = pmap(step, axis_name="i", donate_argnums=0)
    x = np.random.default_rng(0).standard_normal((8, 5, 3)).astype(np.float32)
    w = st.device_put(np.ones((8, 3), np.float32), None)
    alone = snp.ones(3)
    for _ in range(5):
        w, value = train(w, x)
        alone = alone - 0.1 * st.grad(lambda w: ((x.reshape(40, 3) @ w) ** 2).mean())(alone)
    np.testing.assert_allclose(w, np.tile(alone, (8, 1)), rtol=1e-5)
    assert value.shape == (8,)
    gradient = st.grad(lambda x: (pmap(lambda r: lax.psum(r, "i"), axis_name="i")(x) ** 2).sum())
    np.testing.assert_allclose(gradient(snp.array(A)), np.tile(16 * A.sum(0), (8, 1)), rtol=1e-6)


def test_refusals():
    with pytest.raises(ValueError, match=r"one number of examples; got args\[0\]: 2, args\[1\]: 3"):
        pmap(lambda x, y: x)(snp.ones(2), snp.ones(3))
    with pytest.raises(ValueError, match=r"args\[0\] has shape \(\), and no axis 0"):
        pmap(lambda x: x)(1.0)
    with pytest.raises(ValueError, match="none is mapped"):
        pmap(lambda x: x, in_axes=None)(1.0)
    with pytest.raises(ValueError, match="needs 99 devices"):
        pmap(lambda x: x)(snp.ones(99))


def test_arguments_by_name():
    f = pmap(lambda n, x, y: n * x + y, static_broadcasted_argnums=0)
    assert f(2, A[:1], y=A[:1, 0]).tolist() == [[0, 2, 4]]
    assert f(2, x=A[:1], y=A[:1]).tolist() == [[0, 3, 6]]


def test_references_are_refused():
    with pytest.raises(st.errors.RefError, match=r"pass their values, ref\[\.\.\.\]"):
        pmap(lambda r: r[...])(st.new_ref(A[:1]))


def test_results_that_are_numbers():
    assert pmap(lambda x: (x, 3))(A[:1])[1].tolist() == [3]
    assert st.eval_shape(pmap(lambda x: 3.0), A[:1]).shape == (1,)


def test_lower():
    f = pmap(lambda x, y: x + 2 * y, static_broadcasted_argnums=1)
    lowered = f.lower(snp.ones((1, 3)), 4)
    assert "pmap_function" in lowered.as_text()
    assert lowered.compile()(snp.ones((1, 3))).tolist() == [[9, 9, 9]]
    by_name = pmap(lambda x, y: x - y).lower(snp.ones(1), y=snp.ones(1)).compile()
    assert by_name({"y": snp.ones(1)}, snp.ones(1)).tolist() == [0]


@pytest.mark.parametrize(
    ("axis", "shape"),
    [
        (0, (1, 3, 2)),
        (1, (3, 1, 2)),
        (2, (3, 2, 1)),
        (-1, (3, 2, 1)),
        (-2, (3, 1, 2)),
        (-3, (1, 3, 2)),
        (None, (3, 2)),
    ],
)
def test_results_are_put_together_along_any_axis(axis, shape):
    f = pmap(lambda x: x[:, None] * snp.arange(1.0, 3), out_axes=axis)
    x = f(A[:1])
    assert x.shape == shape
    np.testing.assert_array_equal(np.squeeze(x), A[0][:, None] * [1, 2])


def test_arguments_by_name_lie_along_axis_0_whatever_the_others_do():
    f = lambda n, x, y: n * x + y
    one = pmap(f, in_axes=(None, 1), static_broadcasted_argnums=0)
    assert one(2, A[:1].T, y=A[:1]).tolist() == [[0, 3, 6]]
    same = pmap(lambda x, y: x + y, in_axes=1)
    assert same(A[:1].T, y=A[:1]).tolist() == [[0, 2, 4]]
    assert same(x=A[:1], y=A[:1]).tolist() == [[0, 2, 4]]


@pytest.mark.devices
def test_arguments_by_name_on_several_devices():
    f = pmap(lambda n, x, y: n * x + lax.psum(y, "i"), "i", in_axes=(None, -1), out_axes=1,
             static_broadcasted_argnums=0, devices=st.devices()[3:7])  # fmt: skip
    found = f(2, A[:4].T, y=A[:4])
    np.testing.assert_array_equal(found, (2 * A[:4] + A[:4].sum(0)).T)
    assert found.devices() == set(st.devices()[3:7])


@pytest.mark.parametrize(
    ("axis", "size", "message"),
    [
        (0, 1, None),
        (-2, None, None),
        (0, 2, r"got axis_size: 2, args\[0\]: 1"),
        (2, None, r"args\[0\] has shape \(1, 3\), and no axis 2"),
        (-3, None, r"args\[0\] has shape \(1, 3\), and no axis -3"),
        (None, None, "got none is mapped"),
    ],
)
def test_the_number_of_examples(axis, size, message):
    f = pmap(lambda x: x, in_axes=axis, axis_size=size)
    if message is None:
        assert f(A[:1]).shape == (1, 3)
        return
    with pytest.raises(ValueError, match=message):
        f(A[:1])


def test_examples_are_counted_where_arguments_are_mapped():
    assert _examples((A, A[0]), (1,), 0, None) == 8
    assert _examples((A, A[0]), (), (0, None), None) == 8
    assert _examples((A.T, {"a": A}), (), (1, {"a": 0}), None) == 8
    assert _examples((3.0,), (0,), 0, 5) == 5
