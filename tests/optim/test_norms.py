"""Scaling by norms: values of optax, zeros, derivatives."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import optim
from tests.optim.running import assert_figures


@pytest.mark.parametrize(
    ("name", "tx"),
    [
        (
            "scale_by_trust_ratio",
            optim.scale_by_trust_ratio(min_norm=0.5, trust_coefficient=0.2, eps=0.1),
        ),
        ("scale_by_param_block_rms", optim.scale_by_param_block_rms(0.5)),
    ],
)
def test_values_of_optax(name, tx):
    assert_figures(name, tx)


def test_global_norm():
    assert float(optim.global_norm({"a": snp.array([3.0]), "b": [snp.array([[4.0]])]})) == 5
    assert float(optim.global_norm({})) == 0
    np.testing.assert_allclose(optim.global_norm(snp.array([3.0 + 4.0j])), 5)


def test_trust_ratio_of_nothing_is_1():
    tx = optim.scale_by_trust_ratio()
    params = {"new": snp.zeros(2), "still": snp.ones(2)}
    grads = {"new": snp.ones(2), "still": snp.zeros(2)}
    updates, _ = tx.update(grads, tx.init(params), params)
    np.testing.assert_array_equal(updates["new"], [1, 1])
    np.testing.assert_array_equal(updates["still"], [0, 0])


def test_derivatives_at_zero_are_finite():
    def total(p, g):
        updates, _ = optim.lamb(0.1, eps_root=1e-8).update(g, state, p)
        return snp.sum(updates)

    p = snp.zeros(3)
    state = optim.lamb(0.1, eps_root=1e-8).init(p)
    for f in (total, st.jit(total)):
        for derivative in st.grad(f, (0, 1))(p, p):
            assert np.isfinite(np.asarray(derivative)).all()


def test_parameters_missing():
    for tx in (optim.scale_by_trust_ratio(), optim.scale_by_param_block_rms()):
        with pytest.raises(ValueError, match="its update needs the parameters"):
            tx.update(snp.ones(2), tx.init(None))
