"""Adam's family against figures of optax: eager, compiled, in a loop, with narrow moments."""

import ml_dtypes
import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import optim
from tests.optim.figures import ADAMS, NARROW_MOMENTS, OPTIMISERS, name_of, numbers
from tests.optim.running import assert_stable, flat, run, run_scan, slowly

CASES = [case for case in OPTIMISERS if case[0] in ADAMS]
NARROW = [case for case in NARROW_MOMENTS if case[0] in ADAMS]


def test_every_optimizer_has_figures():
    assert {name for name, _, _ in CASES} == ADAMS


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_values_of_optax_in_double_precision(case):
    name, arguments, line = case
    with st.enable_x64():
        params, _ = run(getattr(optim, name)(**arguments), np.float64)
    np.testing.assert_allclose(flat(params), numbers(line), rtol=0, atol=1e-7)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_values_of_optax_in_a_compiled_loop(case):
    name, arguments, line = case
    tx = getattr(optim, name)(**arguments)
    params, state = run_scan(tx)
    # Six steps of float32. RAdam's ρ is a difference of numbers near 2,000, hence its 1e-4.
    atol = 1e-4 if name == "radam" else 3e-6
    np.testing.assert_allclose(flat(params), numbers(line), rtol=0, atol=atol)
    eager, eager_state = run(tx)
    np.testing.assert_allclose(flat(params), flat(eager), rtol=0, atol=atol)
    np.testing.assert_allclose(flat(state), flat(eager_state), rtol=1e-5, atol=1e-6)
    assert_stable(tx)


def test_every_digit_of_a_first_moment_in_bfloat16():
    # Computed in float32, kept in bfloat16, which has 8 bits.
    def step(t, g, p, m, v):
        m = np.float32(0.9) * m + np.float32(0.1) * g
        v = np.float32(0.999) * v + np.float32(0.001) * g * g
        m_hat, v_hat = m / (1 - 0.9 ** (t + 1)), v / (1 - 0.999 ** (t + 1))
        new = p - 0.1 * m_hat / (np.sqrt(v_hat) + 1e-8)
        return new, m.astype(ml_dtypes.bfloat16).astype(np.float32), v

    params, _ = run_scan(optim.adam(0.1, mu_dtype=ml_dtypes.bfloat16))
    np.testing.assert_allclose(flat(params), slowly(step, 2), rtol=0, atol=2e-6)


@pytest.mark.parametrize("case", NARROW, ids=name_of)
def test_first_moment_in_bfloat16(case):
    name, arguments, line = case
    tx = getattr(optim, name)(**{**arguments, "mu_dtype": ml_dtypes.bfloat16})
    params, state = run_scan(tx)
    # optax multiplies in bfloat16, so each of six steps of 0.1 is known to 2⁻⁸ of it.
    np.testing.assert_allclose(flat(params), numbers(line), rtol=0, atol=6 * 0.1 * 2**-8)
    assert {x.dtype.name for x in st.tree.leaves(state[0].mu)} == {"bfloat16"}
    assert {x.dtype.name for x in st.tree.leaves(state[0].nu)} == {"float32"}
    assert_stable(tx)


def test_first_step_is_exact_however_near_to_1_the_decay_is():
    # m̂ = g and v̂ = g² at the first step, whatever b1 and b2: 1 − b2ᵗ is had without cancellation.
    for b2 in (0.9, 0.999, 0.999999, 1 - 1e-9):
        tx = optim.scale_by_adam(b2=b2, eps=0.0)
        updates, _ = tx.update(snp.array([5.0, -0.3]), tx.init(snp.zeros(2)))
        np.testing.assert_allclose(updates, [1, -1], rtol=5e-7)


def test_parameters_in_bfloat16_are_computed_in_float32():
    tx = optim.adamw(0.1)
    params, state = run_scan(tx, ml_dtypes.bfloat16)
    assert {x.dtype.name for x in st.tree.leaves((params, state[0].mu, state[0].nu))} == {
        "bfloat16"
    }
    # The moments keep 8 bits: the run is that in float32 within a per cent of the steps' sum.
    np.testing.assert_allclose(flat(params), flat(run(tx)[0]), rtol=0, atol=2e-2)
    assert_stable(tx, ml_dtypes.bfloat16)


def test_complex_parameters():
    # |g| = 5: the first step of Adam is g / |g|.
    g = snp.array([3.0 + 4.0j])
    for tx in (optim.scale_by_adam(), optim.scale_by_amsgrad(), optim.scale_by_rms(0.0)):
        state = tx.init(snp.zeros(1, snp.complex64))
        updates, after = tx.update(g, state)
        np.testing.assert_allclose(updates, [0.6 + 0.8j], rtol=1e-5)
        assert [x.dtype for x in st.tree.leaves(state)] == [x.dtype for x in st.tree.leaves(after)]
        assert after.nu.dtype == np.float32


def test_derivative_through_an_update():
    # d/dg of m̂ / (√v̂ + eps) at the first step is that of g / (|g| + eps): eps / (|g| + eps)².
    tx = optim.scale_by_adam(eps=0.5)

    def first(g):
        return tx.update(g, tx.init(snp.zeros(())))[0]

    for f in (first, st.jit(first)):
        np.testing.assert_allclose(st.grad(f)(2.0), 0.5 / 2.5**2, rtol=1e-5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: optim.adam(-0.1), "learning_rate must be at least 0, got -0.1"),
        (lambda: optim.adam(float("nan")), "learning_rate must be at least 0, got nan"),
        (lambda: optim.adam(0.1, b1=1.0), "adam: b1 must be at least 0 and below 1"),
        (lambda: optim.adamw(0.1, weight_decay=-1.0), "weight_decay must be at least 0"),
        (lambda: optim.amsgrad(0.1, eps=-1.0), "amsgrad: eps must be at least 0"),
        (lambda: optim.radam(0.1, threshold=3.0), "threshold must be at least 4"),
        (lambda: optim.adam(snp.array([0.1, 0.2])), r"one number, got an array of shape \(2,\)"),
        (lambda: optim.adam(snp.array([0.1, 0.2])), r"per_member\(adam, learning_rate="),
    ],
)
def test_numbers_that_cannot_be_meant(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_what_is_no_number():
    with pytest.raises(TypeError, match=r"b1 must be a number or an array, got '0\.9'"):
        optim.adam(0.1, b1="0.9")
    with pytest.raises(TypeError, match="learning_rate must be a number, an array or a schedule"):
        optim.adam(None)


@pytest.mark.parametrize("name", ["adamw", "nadamw", "adamaxw"])
def test_weight_decay_needs_parameters(name):
    tx = getattr(optim, name)(0.1)
    grads = {"w": snp.ones(2)}
    with pytest.raises(ValueError, match=rf"^{name}: its update needs the parameters"):
        tx.update(grads, tx.init(grads))
    no_decay = getattr(optim, name)(0.1, weight_decay=0.0)
    assert no_decay.update(grads, no_decay.init(grads))[0]["w"].shape == (2,)
