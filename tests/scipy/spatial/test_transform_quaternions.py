"""Unit quaternions to and from other forms: round trips, half turns, small angles, slopes."""

import itertools

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import stretto as st
from stretto.scipy.spatial import transform as q

ANGLES = [0.0, 1e-9, 9.9e-3, 1.01e-2, 0.7, 3.0, np.pi - 1e-9]


def turns(count=20):
    return Rotation.random(count, random_state=np.random.default_rng(0))


def same_turn(got, want, atol=1e-13):
    """Up to the sign of the quaternion."""
    got, want = np.asarray(got), np.asarray(want)
    sign = np.sign(np.sum(got * want, -1, keepdims=True))
    np.testing.assert_allclose(got * sign, want, atol=atol)


def test_products_normalized_and_matrices():
    a, b = turns(), turns()[::-1]
    with st.enable_x64():
        same_turn(q.product(a.as_quat(), b.as_quat()), (a * b).as_quat())
        matrices = q.matrix_of(np.array(a.as_quat()))
        np.testing.assert_allclose(matrices, a.as_matrix(), atol=1e-14)
        same_turn(q.quaternion_of_matrix(matrices), a.as_quat())
        np.testing.assert_allclose(q.normalize(np.array([0.0, 3.0, 0, 4.0])), [0, 0.6, 0, 0.8])
        assert np.isnan(np.asarray(q.normalize(np.zeros(4)))).all()


@pytest.mark.parametrize("axis", range(3))
def test_half_turns_from_matrices(axis):
    """The real part is 0: another element is the longest."""
    matrix = np.diag(np.where(np.arange(3) == axis, 1.0, -1.0))
    with st.enable_x64():
        same_turn(q.quaternion_of_matrix(st.numpy.array(matrix)), np.eye(4)[axis])


@pytest.mark.parametrize("angle", ANGLES)
def test_vectors_of_small_and_great_angles(angle):
    axis = np.array([0.36, -0.48, 0.8])
    with st.enable_x64():
        unit = q.quaternion_of_rotvec(st.numpy.array(angle * axis))
        want = [*np.sin(angle / 2) * axis, np.cos(angle / 2)]
        np.testing.assert_allclose(unit, want, rtol=1e-13, atol=1e-18)
        np.testing.assert_allclose(q.rotvec_of(unit), angle * axis, rtol=1e-12)
        np.testing.assert_allclose(q.rotvec_of(-unit), angle * axis, rtol=1e-12)
        np.testing.assert_allclose(q.magnitude_of(unit), angle, rtol=1e-12)
        parameters = q.mrp_of(unit)
        np.testing.assert_allclose(parameters, np.tan(angle / 4) * axis, rtol=1e-12)
        same_turn(q.quaternion_of_mrp(parameters), unit)


def test_slopes_at_no_turn():
    with st.enable_x64():
        zero = np.zeros(3)
        half = np.concatenate([np.eye(3) / 2, np.zeros((1, 3))])
        np.testing.assert_allclose(st.jacrev(q.quaternion_of_rotvec)(zero), half, atol=1e-15)
        around = lambda v: q.rotvec_of(q.quaternion_of_rotvec(v))
        np.testing.assert_allclose(st.jacrev(around)(zero), np.eye(3), atol=1e-14)
        slope = st.grad(lambda v: q.magnitude_of(q.quaternion_of_rotvec(v)))(zero)
        assert np.isfinite(np.asarray(slope)).all()


ORDERS = [p for p in itertools.product(range(3), repeat=3) if p[0] != p[1] != p[2]]


@pytest.mark.parametrize("intrinsic", [False, True])
def test_angles_about_every_triple_of_axes(intrinsic):
    rotations = turns(8)
    with st.enable_x64():
        for order in ORDERS:
            letters = "".join("xyz"[i] for i in order)
            letters = letters.upper() if intrinsic else letters
            angles = q.euler_of(np.array(rotations.as_quat()), list(order), intrinsic)
            np.testing.assert_allclose(angles, rotations.as_euler(letters), atol=1e-12)
            same_turn(
                q.quaternion_of_euler(list(order), intrinsic, angles), rotations.as_quat(), 1e-12
            )


@pytest.mark.parametrize("intrinsic", [False, True])
def test_where_only_a_sum_of_angles_is_known(intrinsic):
    with st.enable_x64():
        for order in ORDERS:
            ends = (0.0, np.pi) if order[0] == order[2] else (np.pi / 2, -np.pi / 2)
            for middle in ends:
                angles = st.numpy.array([0.4, middle, 0.3])
                unit = q.quaternion_of_euler(list(order), intrinsic, angles)
                angles = q.euler_of(unit, list(order), intrinsic)
                assert float(angles[2]) == 0
                same_turn(q.quaternion_of_euler(list(order), intrinsic, angles), unit, 1e-7)
