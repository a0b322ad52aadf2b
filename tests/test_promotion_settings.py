"""Models under strict promotion of dtypes, and where ranks may not differ: nothing of ours mixes.

The functions of arrays are in `functions/`, whose table has the same check.
"""

import inspect

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from benchmarks.parity import ours
from benchmarks.parity.families import FAMILIES, cases_of
from stretto import ensemble, nn, optim, random
from stretto.numpy import normalized
from tests.optim.figures import OPTIMISERS, name_of
from tests.optim.running import run

STRICT = {"numpy_dtype_promotion": "strict", "numpy_rank_promotion": "raise"}


@pytest.mark.parametrize("name", FAMILIES)
def test_layers_and_functions(name):
    with st.enable_x64():
        for case in cases_of(name, 3, seed=5):
            if ours.refusal(case) is None:
                with st.config(**STRICT):
                    assert len(ours.steps(case, "float64", compiled=False)) == len(case.steps)


@pytest.mark.parametrize("case", OPTIMISERS, ids=name_of)
def test_optimizers(case):
    name, arguments, _ = case
    with st.config(**STRICT):
        params, _ = run(getattr(optim, name)(**arguments), steps=2)
    assert all(np.isfinite(np.asarray(x)).all() for x in st.tree.leaves(params))


def scores():
    """What functions of predictions give, by name: probabilities, votes, scores, calibration."""
    rng = np.random.default_rng(0)
    logits = snp.array(rng.normal(size=(3, 8, 2)).astype(np.float32))
    probs, labels = nn.softmax(logits, -1), snp.arange(8) % 2
    weights, targets = snp.array([0.2, 0.3, 0.5]), snp.arange(8.0)
    given = {
        "probs": probs,
        "probabilities": probs,
        "predictions": logits[..., 0],
        "means": logits[..., 0],
        "variances": probs[..., 0],
        "targets": targets,
        "labels": labels,
        "logits": logits,
        "weights": weights,
    }
    others = {
        "pairwise_disagreement": {"predictions": probs},
        "q_statistic": {"predictions": probs},
        "cohen_kappa": {"predictions": probs},
        "top_k_accuracy": {"k": 1},
        "fit_histogram_binning": {"probs": probs[0]},
        "fit_isotonic": {"probs": probs[0]},
        "fit_platt": {"logits": logits[0, :, 0]},
        "fit_variance_scaling": {"means": logits[0, :, 0], "variances": probs[0, :, 0]},
        "fit_conformal_intervals": {"means": logits[0, :, 0], "deviations": probs[0, :, 0]},
        "interval_coverage": {"lower": targets - 1, "upper": targets + 1},
        "energy_score_ensemble": {"predictions": logits, "targets": logits[0]},
    }
    found = {}
    for name in ensemble.__all__:
        function = getattr(ensemble, name)
        if not inspect.isfunction(function):
            continue
        own = given | others.get(name, {})
        parameters = inspect.signature(function).parameters.values()
        needed = [p.name for p in parameters if p.default is p.empty]
        needed += [n for n in others.get(name, {}) if n not in needed]
        if all(n in own for n in needed):
            found[name] = st.tree.leaves(function(**{n: own[n] for n in needed}))
    return found


def test_scores_and_combinations_of_ensembles():
    usual = scores()
    assert len(usual) > 45
    for name, value in STRICT.items():
        with st.config(**{name: value}):
            strict = scores()
        assert strict.keys() == usual.keys()
        for key, leaves in usual.items():
            for a, b in zip(leaves, strict[key], strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6, err_msg=key)


@pytest.mark.parametrize("name", STRICT)
def test_an_ensemble_trains(name):
    def make(key):
        layers = [nn.Linear(3, 4, key=key), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(0.5)]
        return nn.Sequential(*layers, nn.Linear(4, 2, key=key))

    x, y = snp.ones((8, 3)), snp.arange(8) % 2
    with st.config(**{name: STRICT[name]}):
        members = st.Ensemble.init(make, random.key(0), 3)
        fitted = members.fit(
            lambda member, x, y: nn.functional.cross_entropy(member(x), y),
            (x, y),
            optim.adamw,
            hyperparams={"learning_rate": [1e-3, 1e-2, 1e-1]},
            steps=2,
            batch_size=4,
            validation=(x, y),
            early_stopping=2,
            key=random.key(1),
            progress=False,
        )
        members.eval()
        assert np.isfinite(fitted.history["loss"]).all() and members(x).shape == (3, 8, 2)


MIXED_INSIDE = {
    "complex softmax": lambda: st.nn.softmax(snp.array([1j, 2.0]), -1),
    "complex logsumexp": lambda: st.special.logsumexp(snp.array([1j, 2.0]), b=snp.array([1j, 0.0])),
    "masked complex softmax": lambda: normalized.log_softmax(
        snp.array([1j, 2.0]), where=snp.array([True, False])
    ),
    "dot": lambda: st.grad(
        lambda x: st.lax.dot(x, x, preferred_element_type=snp.float32).sum()
    )(snp.ones((2, 2), snp.bfloat16)),
    "convolution": lambda: st.grad(
        lambda x, k: st.lax.conv(x, k, (1,), "VALID", preferred_element_type=snp.float32).sum(),
        argnums=(0, 1),
    )(snp.ones((1, 1, 4), snp.bfloat16), snp.ones((1, 1, 2), snp.bfloat16)),
}  # fmt: skip


@pytest.mark.parametrize("name", MIXED_INSIDE)
def test_functions_whose_own_types_differ_inside(name):
    with st.config(numpy_dtype_promotion="strict"):
        strict = MIXED_INSIDE[name]()
    for one, other in zip(
        st.tree.leaves(strict), st.tree.leaves(MIXED_INSIDE[name]()), strict=True
    ):
        assert one.type == other.type
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


NUMBERS_OF_STEPS = {
    "MultiSteps": lambda: optim.MultiSteps(optim.sgd(0.1), 2),
    "noisy_sgd": lambda: optim.noisy_sgd(0.1, key=random.key(0)),
    "sgld": lambda: optim.sgld(
        0.1,
        data_size=2,
        temperature=optim.cyclical_temperature_schedule(1.0, 2, 0.5),
        key=random.key(0),
    ),
    "sghmc": lambda: optim.sghmc(0.1, data_size=2, friction=1.0, key=random.key(0)),
    "psgld": lambda: optim.psgld(0.1, data_size=2, key=random.key(0)),
    "ivon": lambda: optim.ivon(0.1, data_size=2, prior_precision=1.0),
}


@pytest.mark.parametrize("name", NUMBERS_OF_STEPS)
def test_what_counts_steps(name):
    params, gradients = {"w": snp.ones(2)}, {"w": snp.ones(2)}
    with st.config(**STRICT):
        tx = NUMBERS_OF_STEPS[name]()
        state = tx.init(params)
        for _ in range(2):
            updates, state = tx.update(gradients, state, params, at=gradients)
    assert np.isfinite(np.asarray(updates["w"])).all()


def test_variances_and_detection():
    with st.config(**STRICT):
        swag = ensemble.SWAG(rank=2)
        state = swag.init({"w": snp.ones(2)})
        state = swag.update(state, {"w": snp.zeros(2)})
        assert swag.variance(state)["w"].shape == (2,)
        assert swag.sample(state, random.PRNGKey(0))["w"].shape == (2,)
        rate = ensemble.fpr_at_tpr(snp.array([0.1, 0.9, 0.8]), snp.array([False, True, True]))
        assert float(rate) == 0.0
