"""Rotations: SciPy, derivatives at the identity, transformations, errors."""

import itertools

import numpy as np
import pytest
from scipy.spatial.transform import Rotation as Theirs
from scipy.spatial.transform import Slerp as TheirSlerp

import stretto as st
import stretto.numpy as snp
from stretto.scipy.spatial.transform import Rotation, Slerp

RNG = np.random.default_rng(0)
QUATERNIONS = RNG.normal(size=(2, 6, 4))
VECTORS = RNG.normal(size=(6, 3))
SEQUENCES = [
    letters
    for name in map("".join, itertools.product("xyz", repeat=3))
    if name[0] != name[1] != name[2]
    for letters in (name, name.upper())
]


def same(ours, theirs):
    """A quaternion and its negative are one rotation."""
    q, p = np.asarray(ours.quat), theirs.as_quat()
    np.testing.assert_allclose(np.abs(np.sum(q * p, -1)), np.ones(q.shape[:-1]), rtol=1e-12)


def test_forms_and_products_are_scipys():
    with st.enable_x64():
        r, s = (Rotation.from_quat(q) for q in QUATERNIONS)
        a, b = (Theirs.from_quat(q) for q in QUATERNIONS)
        for got, want in [
            (r.as_matrix(), a.as_matrix()),
            (r.as_rotvec(True), a.as_rotvec(degrees=True)),
            (r.as_mrp(), a.as_mrp()),
            (r.as_quat(True, True), a.as_quat(canonical=True, scalar_first=True)),
            (r.magnitude(), a.magnitude()),
            (r.apply(VECTORS), a.apply(VECTORS)),
            (r[0].apply(VECTORS, inverse=True), a[0].apply(VECTORS, inverse=True)),
            (r.apply(VECTORS[0]), a.apply(VECTORS[0])),
        ]:
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
        same(Rotation.from_matrix(a.as_matrix()), a)
        same(Rotation.from_rotvec(a.as_rotvec(degrees=True), True), a)
        same(Rotation.from_mrp(a.as_mrp()), a)
        same(r * s, a * b)
        same(r[0] * s, a[0] * b)
        same(r.inv(), a.inv())
        same(r.mean(), a.mean())
        same(r.mean(np.arange(1.0, 7)), a.mean(np.arange(1.0, 7)))
        same(Rotation.concatenate([r[0], s[1:]]), Theirs.concatenate([a[0], b[1:]]))


def test_angles_about_axes_are_scipys():
    angles = RNG.uniform(-3, 3, (6, 3))
    with st.enable_x64():
        r, a = Rotation.from_quat(QUATERNIONS[0]), Theirs.from_quat(QUATERNIONS[0])
        for seq in SEQUENCES:
            same(Rotation.from_euler(seq, angles), Theirs.from_euler(seq, angles))
            np.testing.assert_allclose(r.as_euler(seq), a.as_euler(seq), rtol=1e-9)
        same(Rotation.from_euler("zx", snp.array([[1.0, 2.0]]), True),
             Theirs.from_euler("zx", [[1, 2]], True))  # fmt: skip
        same(Rotation.from_euler("Y", 0.5), Theirs.from_euler("Y", 0.5))


@pytest.mark.parametrize("middle", [0.0, np.pi / 2, np.pi])
def test_angles_that_are_not_unique_give_the_rotation_back(middle):
    with st.enable_x64():
        for seq in SEQUENCES:
            r = Rotation.from_euler(seq, np.array([0.3, middle, -0.8]))
            again = Rotation.from_euler(seq, r.as_euler(seq))
            np.testing.assert_allclose(again.as_matrix(), r.as_matrix(), atol=1e-6)


def test_derivatives_exist_at_the_identity():
    v = snp.array([1.0, 2.0, 3.0])
    slope = st.jit(st.jacrev(lambda w: Rotation.from_rotvec(w).apply(v)))(snp.zeros(3))
    np.testing.assert_allclose(slope, [[0, 3, -2], [-3, 0, 1], [2, -1, 0]], atol=1e-6)
    there_and_back = st.jacfwd(lambda w: Rotation.from_rotvec(w).as_rotvec())
    for w in (snp.zeros(3), snp.array([0.005, 0, 0]), snp.array([0.5, -1.0, 1.0])):
        np.testing.assert_allclose(there_and_back(w), np.eye(3), atol=1e-5)


def test_is_a_tree_under_jit_and_vmap():
    r, s = (Rotation.from_quat(q.astype(np.float32)) for q in QUATERNIONS)
    together = st.jit(st.vmap(lambda r, s: r * s))(r, s)
    assert isinstance(together, Rotation)
    np.testing.assert_allclose(together.quat, (r * s).quat, atol=1e-6)


def test_interpolates_as_scipy_does():
    times, at = np.array([0.0, 1.0, 3.0]), np.array([0.0, 0.5, 1.0, 2.5, 3.0])
    with st.enable_x64():
        ours = Slerp.init(times, Rotation.from_quat(QUATERNIONS[0, :3]))
        theirs = TheirSlerp(times, Theirs.from_quat(QUATERNIONS[0, :3]))
        same(ours(at), theirs(at))
        same(st.jit(lambda slerp, t: slerp(t))(ours, 0.5), theirs(0.5))


def test_random_ones_are_uniform():
    r = Rotation.random(st.random.key(0), 4000)
    np.testing.assert_allclose(np.mean(np.asarray(r.as_matrix()), 0), np.zeros((3, 3)), atol=0.05)
    assert Rotation.random(st.random.key(0)).single
    assert len(Rotation.identity(2)) == 2


def test_refuses():
    with pytest.raises(
        ValueError, match=r"Rotation.from_quat: quat must be real, of shape \[..., 4\]; got"
    ):
        Rotation.from_quat(np.ones(3))
    for seq in ("xxy", "xYz", "abc", "xyzx", ""):
        with pytest.raises(ValueError, match=r"Rotation.from_euler: seq must have 1 to 3 letters"):
            Rotation.from_euler(seq, np.ones(3))
    with pytest.raises(ValueError, match=r"angles must be real, of shape \[..., 2\]"):
        Rotation.from_euler("xy", np.ones(3))
    one = Rotation.identity()
    with pytest.raises(ValueError, match=r"Rotation.as_euler: seq must have 3 letters"):
        one.as_euler("xy")
    with pytest.raises(TypeError, match="a single Rotation has no len"):
        len(one)
    with pytest.raises(TypeError, match="a single Rotation has no elements"):
        one[0]
    with pytest.raises(ValueError, match=r"weights must have shape \(1,\), got"):
        one.mean(np.ones(2))
    with pytest.raises(
        ValueError, match=r"Slerp.init: rotations must be a Rotation of at least two"
    ):
        Slerp.init(np.ones(1), one)
    with pytest.raises(ValueError, match=r"times must have shape \(2,\), got"):
        Slerp.init(np.ones(1), Rotation.identity(2))
