"""The other optimizers against figures of optax: eager, compiled, in a loop."""

import ml_dtypes
import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import optim
from stretto.optim import optimizers
from tests.optim.figures import ADAMS, NARROW_MOMENTS, OPTIMISERS, name_of, numbers
from tests.optim.running import assert_stable, flat, run, run_scan, slowly

CASES = [case for case in OPTIMISERS if case[0] not in ADAMS]
NARROW = [case for case in NARROW_MOMENTS if case[0] not in ADAMS]


def test_every_optimizer_has_figures():
    assert {name for name, _, _ in CASES} | ADAMS | {"noisy_sgd"} == set(optimizers.__all__)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_values_of_optax_in_double_precision(case):
    name, arguments, line = case
    if name == "adafactor" and arguments.get("momentum"):
        arguments = arguments | {"dtype_momentum": np.float64}
    with st.enable_x64():
        params, _ = run(getattr(optim, name)(**arguments), np.float64)
    np.testing.assert_allclose(flat(params), numbers(line), rtol=0, atol=1e-7)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_values_of_optax_in_a_compiled_loop(case):
    name, arguments, line = case
    tx = getattr(optim, name)(**arguments)
    params, state = run_scan(tx)
    # Six steps of float32; a centred variance of one gradient is a difference of equal squares.
    atol = 2e-4 if arguments.get("centered") else 5e-6
    np.testing.assert_allclose(flat(params), numbers(line), rtol=0, atol=atol)
    eager, eager_state = run(tx)
    np.testing.assert_allclose(flat(params), flat(eager), rtol=0, atol=atol)
    np.testing.assert_allclose(flat(state), flat(eager_state), rtol=1e-5, atol=atol)
    assert_stable(tx)


def test_every_digit_of_a_sum_in_bfloat16():
    # Computed in float32, kept in bfloat16, which has 8 bits.
    def step(t, g, p, m):
        m = g + np.float32(0.9) * m
        return p - np.float32(0.1) * m, m.astype(ml_dtypes.bfloat16).astype(np.float32)

    params, _ = run_scan(optim.sgd(0.1, 0.9, accumulator_dtype=ml_dtypes.bfloat16))
    np.testing.assert_allclose(flat(params), slowly(step), rtol=0, atol=1e-6)


@pytest.mark.parametrize("case", NARROW, ids=name_of)
def test_moments_in_bfloat16(case):
    name, arguments, line = case
    narrow = {k: ml_dtypes.bfloat16 if v == "bfloat16" else v for k, v in arguments.items()}
    tx = getattr(optim, name)(**narrow)
    params, state = run_scan(tx)
    # optax multiplies in bfloat16, so each of six steps, of at most 0.3, is known to 2⁻⁸ of it.
    np.testing.assert_allclose(flat(params), numbers(line), rtol=0, atol=6 * 0.3 * 2**-8)
    assert "bfloat16" in {x.dtype.name for x in st.tree.leaves(state)}
    assert_stable(tx)


def test_noise_has_the_variance_of_its_step():
    tx = optim.noisy_sgd(0.1, eta=0.5, gamma=0.55, key=st.random.PRNGKey(3))
    grads = {"v": snp.full((1,), 2.0), "w": snp.full((100, 200), 2.0)}
    state, seen = tx.init(grads), []
    for t in range(1, 4):
        updates, state = tx.update(grads, state)
        noise = np.asarray(updates["w"]) / -0.1 - 2
        # 20,000 draws: the mean is known to σ/141, the deviation to σ/200; here within five times.
        deviation = (0.5 / t**0.55) ** 0.5
        assert abs(noise.mean()) < deviation * 5 / 141
        assert abs(noise.std() - deviation) < deviation * 5 / 200
        seen.append(noise)
    assert not (seen[0] == seen[1]).any()
    np.testing.assert_allclose(flat(run_scan(tx)[0]), flat(run(tx)[0]), rtol=0, atol=1e-6)
    assert_stable(tx)


def test_noise_from_a_seed_is_that_of_its_key():
    one, other = optim.add_noise(0.5, 0.5, key=3), optim.add_noise(0.5, 0.5, st.random.PRNGKey(3))
    g = snp.zeros(4)
    np.testing.assert_array_equal(*[tx.update(g, tx.init(g))[0] for tx in (one, other)])


def test_noisy_sgd_without_a_key_draws_from_the_ambient_stream():
    def first():
        tx = optim.noisy_sgd(0.1)
        return tx.update(snp.zeros(3), tx.init(snp.zeros(3)))[0]

    with st.nn.keys(st.random.PRNGKey(0)):
        one, other = first(), first()
    with st.nn.keys(st.random.PRNGKey(0)):
        again = first()
    assert (np.asarray(one) == again).all() and not (np.asarray(one) == other).any()
    with pytest.raises(RuntimeError, match=r"noisy_sgd draws random numbers, but .* trace"):
        st.jit(first)()


@pytest.mark.parametrize("make", [st.random.PRNGKey, st.random.key])
def test_noisy_sgd_in_fit_takes_keys_of_either_kind(make):
    loss, x = lambda member, x: (member(x) ** 2).mean() / 2, snp.ones(8)

    def weights(optimizer, **options):
        ensemble = st.Ensemble(lambda w, x: w * x, snp.ones(3))
        ensemble.fit(loss, x, optimizer, steps=3, batch_size=8, **options)
        return [float(member.params) for member in ensemble]

    keys = st.random.split(make(0), 3)
    own = weights(optim.noisy_sgd, hyperparams={"learning_rate": 0.1, "key": keys})
    assert len({round(w, 5) for w in own}) == 3
    for i, w in enumerate(own):  # as alone with that key, which member 0 folds 0 into
        tx = optim.noisy_sgd(0.1, key=keys[i])
        weight, state = snp.ones(()), tx.init(snp.ones(()))
        for _ in range(3):
            updates, state = tx.update(weight, state, weight)
            weight = optim.apply_updates(weight, updates)
        np.testing.assert_allclose(w, weight, 1e-5)
    shared = weights(optim.noisy_sgd(0.1, key=make(0)))
    assert len({round(w, 5) for w in shared}) == 3


def test_adadelta_without_a_learning_rate_descends():
    # optax leaves the sign as it is where the learning rate is None; the paper's rate is 1.
    tx = optim.adadelta()
    assert tx.update(snp.ones(1), tx.init(snp.ones(1)), snp.ones(1))[0][0] < 0


def test_adagrad_leaves_what_never_had_a_gradient():
    tx = optim.adagrad(0.1, initial_accumulator_value=0.0, eps=0.0)
    g = snp.array([0.0, 2.0])
    updates, _ = tx.update(g, tx.init(g))
    np.testing.assert_allclose(updates, [0, -0.1], rtol=1e-6)


def test_centred_rmsprop_of_equal_gradients_is_finite():
    # The variance of one gradient is 0, and rounding could make it negative.
    tx = optim.rmsprop(0.1, centered=True, eps_in_sqrt=False, bias_correction=True)
    params, _ = run(tx, steps=3)
    assert np.isfinite(flat(params)).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: optim.sgd(-0.1), "learning_rate must be at least 0, got -0.1"),
        (lambda: optim.sgd(0.1, nesterov=True), "sgd: nesterov=True needs a momentum"),
        (lambda: optim.rmsprop(0.1, nesterov=True), "rmsprop: nesterov=True needs a momentum"),
        (lambda: optim.sgd(0.1, momentum=-1), "sgd: momentum must be at least 0, got -1"),
        (lambda: optim.rmsprop(0.1, decay=1.5), "rmsprop: decay must be at least 0 and"),
        (lambda: optim.lion(0.1, b2=1.0), "lion: b2 must be"),
        (lambda: optim.noisy_sgd(0.1, eta=-1.0), "noisy_sgd: eta must be at least 0"),
        (lambda: optim.adagrad(0.1, eps=-1.0), "adagrad: eps must be at least 0"),
        (lambda: optim.adadelta(rho=1.0), "adadelta: rho must be"),
        (lambda: optim.lars(0.1, trust_coefficient=-1.0), "trust_coefficient must be at least 0"),
        (
            lambda: optim.adafactor(clipping_threshold=0.0),
            "adafactor: clipping_threshold must be above 0",
        ),
    ],
)
def test_numbers_that_cannot_be_meant(make, message):
    with pytest.raises(ValueError, match=message):
        make()
