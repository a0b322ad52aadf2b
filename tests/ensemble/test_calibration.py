"""Calibration by scaling against SciPy's optima, and figures from scikit-learn.

Newton's method on convex functions whose least value is known.
"""

import numpy as np
import pytest
from scipy import optimize, special

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.errors import MissingRuleError
from stretto.ensemble import calibration, combination, scores
from stretto.ensemble.calibration import minimize

MEMBERS, EXAMPLES, CLASSES = 3, 300, 4
RNG = np.random.default_rng(0)
TRUE = np.float64([0.4, 1, 2.5])
LOGITS = 2 * RNG.normal(size=(MEMBERS, EXAMPLES, CLASSES))
LABELS = np.stack(
    [[RNG.choice(CLASSES, p=special.softmax(z / t)) for z in member]
     for member, t in zip(LOGITS, TRUE)]
).astype(np.int32)  # fmt: skip
FLOATS = LOGITS.astype(np.float32)


def plain_nll(z, y):
    return np.mean(special.logsumexp(z, axis=-1) - z[np.arange(len(z)), y])


def best_temperature(z, y):
    f = lambda b: plain_nll(z * b, y)
    found = optimize.minimize_scalar(
        f, bounds=(1e-3, 20), method="bounded", options={"xatol": 1e-9}
    )
    return 1 / found.x


BEST = [best_temperature(z, y) for z, y in zip(LOGITS, LABELS)]


def test_the_temperatures_of_members_eagerly_jitted_and_vmapped():
    fit = calibration.fit_temperature
    for found in (fit(FLOATS, LABELS), st.jit(fit)(FLOATS, LABELS), st.vmap(fit)(FLOATS, LABELS)):
        np.testing.assert_allclose(found.temperature, BEST, rtol=1e-4)
    one = fit(FLOATS[0], LABELS[0])
    assert one.temperature.shape == ()
    np.testing.assert_allclose(one.temperature, BEST[0], rtol=1e-4)
    same = fit(FLOATS, LABELS[1])  # labels that all share
    np.testing.assert_allclose(same.temperature[1], BEST[1], rtol=1e-4)


def test_calibrated_probabilities():
    found = st.jit(calibration.fit_temperature)(FLOATS, LABELS)
    expected = special.softmax(LOGITS / np.array(BEST)[:, None, None], axis=-1)
    np.testing.assert_allclose(found(FLOATS), expected, rtol=1e-3)
    np.testing.assert_allclose(st.jit(lambda c, z: c(z))(found, FLOATS), expected, rtol=1e-3)
    before = np.asarray(scores.nll_from_logits(FLOATS, LABELS))
    assert (np.asarray(scores.nll(found(FLOATS), LABELS)) <= before + 1e-6).all()


def test_calibrated_logits_need_no_calibration():
    scaled = FLOATS / np.float32(BEST)[:, None, None]
    found = calibration.fit_temperature(scaled, LABELS)
    np.testing.assert_allclose(found.temperature, np.ones(MEMBERS), rtol=1e-4)


@pytest.mark.parametrize("factor", [1e-2, 30.0])
def test_temperatures_far_from_one(factor):
    found = calibration.fit_temperature(FLOATS * np.float32(factor), LABELS)
    np.testing.assert_allclose(found.temperature, np.array(BEST) * factor, rtol=1e-4)


def test_temperatures_without_an_optimum_are_at_an_end():
    sure = 3 * np.eye(3, dtype=np.float32)
    labels = np.arange(3)
    assert float(calibration.fit_temperature(sure, labels).temperature) == pytest.approx(1e-3)
    wrong = calibration.fit_temperature(sure, (labels + 1) % 3)
    assert float(wrong.temperature) == pytest.approx(1e3)
    constant = calibration.fit_temperature(np.zeros((3, 3), np.float32), labels)
    np.testing.assert_allclose(constant(sure * 0), np.full((3, 3), 1 / 3), rtol=1e-6)
    f = lambda z: calibration.fit_temperature(z, labels).temperature
    np.testing.assert_array_equal(st.grad(f)(sure), np.zeros((3, 3)))


def test_one_example():
    found = calibration.fit_temperature(np.float32([[1, 0]]), np.array([0]))
    assert float(found.temperature) == pytest.approx(1e-3)


def test_no_examples():
    none = np.zeros(0, np.int32)
    with pytest.raises(ValueError, match="fit_temperature: expected at least 1 example, got 0"):
        calibration.fit_temperature(FLOATS[0, :0], none)
    with pytest.raises(ValueError, match="fit_vector_scaling: expected at least 1 example"):
        calibration.fit_vector_scaling(FLOATS[0, :0], none)
    with pytest.raises(ValueError, match="fit_platt: expected at least 1 example, got 0"):
        calibration.fit_platt(none.astype(np.float32), none)


def test_classes_that_are_ruled_out():
    z = np.concatenate([FLOATS, np.full_like(FLOATS[..., :1], -np.inf)], axis=-1)
    found = calibration.fit_temperature(z, LABELS)
    np.testing.assert_allclose(found.temperature, BEST, rtol=1e-4)
    np.testing.assert_array_equal(found(z)[..., -1], np.zeros((MEMBERS, EXAMPLES)))


def test_nan_stays_nan():
    z = FLOATS.copy()
    z[1, 3, 0] = np.nan
    missing = [False, True, False]
    found = calibration.fit_temperature(z, LABELS).temperature
    assert np.isnan(np.asarray(found)).tolist() == missing
    found = calibration.fit_vector_scaling(z, LABELS).scale
    assert np.isnan(np.asarray(found)).all(-1).tolist() == missing
    found = calibration.fit_platt(z[..., 0], LABELS % 2).scale
    assert np.isnan(np.asarray(found)).tolist() == missing


def test_the_derivative_of_the_temperature_by_the_logits():
    with st.enable_x64():
        z = snp.asarray(LOGITS[:, :40])
        y = LABELS[:, :40]
        f = lambda z: snp.sum(calibration.fit_temperature(z, y).temperature)
        towards = RNG.normal(size=z.shape)
        slope = snp.sum(st.jit(st.grad(f))(z) * towards)
        step = 1e-5
        expected = (f(z + step * towards) - f(z - step * towards)) / (2 * step)
        np.testing.assert_allclose(slope, expected, rtol=1e-5)
        forward = st.jvp(f, (z,), (snp.asarray(towards),))[1]
        np.testing.assert_allclose(forward, expected, rtol=1e-5)


def test_pooled_then_calibrated():
    labels = LABELS[1]
    pooled = combination.log_mean(FLOATS)
    found = calibration.fit_temperature(pooled, labels)
    expected = best_temperature(np.log(special.softmax(LOGITS, -1).mean(0)), labels)
    np.testing.assert_allclose(found.temperature, expected, rtol=1e-4)


def best_vector_scaling(z, y):
    def f(x):
        return plain_nll(z * x[:CLASSES] + x[CLASSES:], y)

    start = np.concatenate([np.ones(CLASSES), np.zeros(CLASSES)])
    x = optimize.minimize(f, start, method="BFGS", tol=1e-8).x
    return x[:CLASSES], x[CLASSES:] - x[CLASSES:].mean()


def test_vector_scaling_eagerly_jitted_and_vmapped():
    fit = calibration.fit_vector_scaling
    expected = [best_vector_scaling(z, y) for z, y in zip(LOGITS, LABELS)]
    for found in (fit(FLOATS, LABELS), st.jit(fit)(FLOATS, LABELS), st.vmap(fit)(FLOATS, LABELS)):
        np.testing.assert_allclose(found.scale, [a for a, _ in expected], rtol=1e-3)
        np.testing.assert_allclose(found.shift, [b for _, b in expected], atol=1e-3)
    one = fit(FLOATS[0], LABELS[0])
    scale, shift = expected[0]
    probs = special.softmax(LOGITS[0] * scale + shift, axis=-1)
    np.testing.assert_allclose(one(FLOATS[0]), probs, rtol=5e-3)
    np.testing.assert_allclose(found(FLOATS)[0], probs, rtol=5e-3)
    np.testing.assert_allclose(one(FLOATS[0, 0]), probs[0], rtol=5e-3)  # one example


def test_vector_scaling_of_separable_examples_ends():
    found = calibration.fit_vector_scaling(np.eye(3, dtype=np.float32), np.arange(3))
    np.testing.assert_allclose(found(np.eye(3, dtype=np.float32)), np.eye(3), atol=1e-3)


def best_platt(z, y):
    ones = y.sum()
    high, low = (ones + 1) / (ones + 2), 1 / (len(y) - ones + 2)
    target = np.where(y == 1, high, low)

    def f(x):
        scaled = x[0] * z + x[1]
        return np.mean(np.logaddexp(0, scaled) - target * scaled)

    return optimize.minimize(f, np.zeros(2), method="BFGS", tol=1e-8).x


def test_platt_scaling_eagerly_jitted_and_vmapped():
    z, y = FLOATS[..., 0], (LABELS == 0).astype(np.int32)
    fit = calibration.fit_platt
    found, mapped, one = st.jit(fit)(z, y), st.vmap(fit)(z, y), fit(z[0], y[0])
    expected = np.array([best_platt(*pair) for pair in zip(LOGITS[..., 0], y)])
    for calibrated in (found, mapped):
        np.testing.assert_allclose(calibrated.scale, expected[:, 0], rtol=1e-3)
        np.testing.assert_allclose(calibrated.shift, expected[:, 1], rtol=1e-3)
    probs = special.expit(expected[0, 0] * LOGITS[0, :, 0] + expected[0, 1])
    np.testing.assert_allclose(one(z[0]), probs, rtol=1e-3)
    np.testing.assert_allclose(found(z)[0], probs, rtol=1e-3)


def test_platt_scaling_is_scikit_learn_s():
    z = np.float32([-2.5, -1.5, -0.5, 0.3, 0.1, 0.9, 1.8, -0.2, 2.2, 0.7])
    y = np.array([0, 0, 1, 0, 1, 1, 1, 0, 1, 0])
    found = calibration.fit_platt(z, y)
    # −a_ and −b_ of sklearn.calibration._SigmoidCalibration().fit(z, y), scikit-learn 1.9.1.
    np.testing.assert_allclose([found.scale, found.shift], [0.71694787, -0.1136924], rtol=1e-4)


def test_platt_scaling_of_what_is_told_apart_has_an_optimum():
    z, y = np.float32([-2, -1, 1, 2]), np.array([0, 0, 1, 1])
    miss = np.asarray(calibration.fit_platt(z, y)(z)) - [1 / 4, 1 / 4, 3 / 4, 3 / 4]
    np.testing.assert_allclose([miss.sum(), z @ miss], [0, 0], atol=1e-5)  # no slope is left
    only = calibration.fit_platt(z, np.ones(4, np.int32))(z)
    np.testing.assert_allclose(only, np.full(4, 5 / 6), atol=1e-4)


def test_a_fit_by_a_loop_has_no_reverse_derivative():
    with pytest.raises(MissingRuleError, match="number of steps is unknown"):
        st.grad(lambda z: calibration.fit_platt(z, LABELS[0] % 2).scale)(FLOATS[0, :, 0])


def test_calibrators_are_trees():
    found = calibration.fit_temperature(FLOATS, LABELS)
    assert len(st.tree.leaves(found)) == 1
    third = st.tree.map(lambda t: t[2], found)
    np.testing.assert_allclose(third(FLOATS[2]), found(FLOATS)[2], rtol=1e-6)


def test_a_temperature_of_each_fold_in_a_scan_and_its_gradients_mapped():
    with st.enable_x64():
        z, y = snp.asarray(LOGITS[:, :40]), snp.asarray(LABELS[:, :40])
        fit = lambda z, y: calibration.fit_temperature(z, y).temperature
        expected = np.asarray(fit(z, y))
        _, found = st.jit(lambda: st.lax.scan(lambda c, fold: (c, fit(*fold)), 0, (z, y)))()
        np.testing.assert_allclose(found, expected, rtol=1e-9)
        slopes = st.jit(st.vmap(st.grad(fit)))(z, y)
        np.testing.assert_allclose(slopes[1], st.grad(fit)(z[1], y[1]), rtol=1e-6, atol=1e-12)


A = RNG.normal(size=(20, 5))
B = RNG.normal(size=20)


def quadratic(x):
    return snp.sum(snp.square(A.astype(x.dtype) @ x - B.astype(x.dtype)))


def quartic(x):
    return snp.sum((x - 1) ** 4) + snp.sum(snp.square(x - 2))


def steep(x):
    return snp.sum(snp.exp(4 * x) - 3 * x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_least_squares(dtype):
    with st.enable_x64():
        find = lambda start: minimize(quadratic, start)
        start = np.zeros(5, dtype)
        expected = np.linalg.lstsq(A, B)[0]
        tolerance = {"float32": 1e-4, "float64": 1e-8}[dtype]
        for run in (find, st.jit(find)):
            np.testing.assert_allclose(run(snp.asarray(start)), expected, atol=tolerance)


@pytest.mark.parametrize("loss", [quartic, steep])
def test_functions_that_are_not_quadratic(loss):
    with st.enable_x64():
        start = snp.asarray(np.float64([-3, 0, 2]))
        host = lambda x: float(loss(snp.asarray(x)))
        alone = optimize.minimize_scalar(
            lambda v: host(np.float64([v])), bracket=(-1, 2), tol=1e-12
        )
        expected = [alone.x] * 3
        np.testing.assert_allclose(minimize(loss, start), expected, atol=1e-6)
        many = st.jit(st.vmap(lambda s: minimize(loss, s)))(snp.stack([start, start + 0.3]))
        np.testing.assert_allclose(many, [expected] * 2, atol=1e-6)


def test_a_flat_direction_is_left_alone():
    loss = lambda x: snp.square(x[0] + x[1] - 2)
    np.testing.assert_allclose(minimize(loss, snp.zeros(2)), [1, 1], rtol=1e-5)


def test_a_loss_that_falls_for_ever_ends():
    found = np.asarray(minimize(lambda x: snp.sum(snp.exp(-x)), snp.zeros(2)))
    assert (found > 10).all()
    assert np.isfinite(found).all()


def test_nan():
    loss = lambda x: snp.sum(x * x) * snp.nan
    assert np.isnan(np.asarray(minimize(loss, snp.zeros(2)))).all()
