"""Every function of the table, and those of networks: narrow floats are rounded once, last.

`narrow.py` says how. What is not so is listed here with its reason, and is found to be so.
"""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.compat.jax import nn as jax_nn
from tests.functions import narrow, test_functions  # noqa: F401 (fills the table)

_DEFINED = "is of the dtype by its definition"
_PRODUCTS = "products of which each is rounded: pass preferred_element_type, or convert"
_KEPT = "an operation of networks, which keeps narrow numbers for the way back"
OTHERWISE = {
    "numpy.apply_over_axes": "calls one function after another",
    "numpy.einsum": _PRODUCTS,
    "numpy.histogram": "has counts of float32 and edges of the dtype",
    "numpy.linalg.multi_dot": _PRODUCTS,
    "numpy.spacing": _DEFINED,
    "special.log_softmax": _KEPT,
    "special.softmax": _KEPT,
    "functional.bilinear": _PRODUCTS,
    "functional.gelu": _KEPT,
    "functional.linear": _PRODUCTS,
    "functional.log_softmax": _KEPT,
    "functional.scaled_dot_product_attention": _PRODUCTS,
    "functional.silu": _KEPT,
    "functional.softmax": _KEPT,
    "functional.softsign": _KEPT,
}
"""The functions that round more often, and why."""


@pytest.mark.parametrize("name", [n for n in narrow.names() if n not in OTHERWISE])
def test_rounds_once(name):
    faults = narrow.check_named(name)
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("name", OTHERWISE)
def test_what_rounds_more_often_does(name):
    assert narrow.check_named(name)


def test_what_is_wrong_is_found():
    right = np.asarray([1.0, 300.0, 1e-4])
    say = lambda got: narrow.wrong(np.asarray(got).astype("float16"), right, "float16")
    assert not say(right)
    assert say([1.0, np.inf, 1e-4]) == "inf for 300"
    assert say([1.0, 300, np.nan]) == "nan for 0.0001"
    assert say([0.0, 300, 1e-4]) == "0 for 1"
    assert "units" in say([1.01, 300, 1e-4])


X = np.full(64, 300, np.float16)
Y = np.linspace(-300, 300, 64).astype(np.float16)
Z = (200 * np.cos(np.arange(64))).astype(np.float16)
GRADED = {
    "norm": st.linalg.norm,
    "norm_of_matrix": lambda x: st.linalg.norm(x.reshape(8, 8) + np.diag(Y[::8]), "nuc"),
    "vector_norm": lambda x: st.linalg.vector_norm(x, ord=3),
    "cosine_similarity": lambda x: st.nn.functional.cosine_similarity(x, Y, dim=0),
    "pairwise_distance": lambda x: st.nn.functional.pairwise_distance(x, Y),
    "mse_loss": lambda x: st.nn.functional.mse_loss(x, X / 2 + Y / 4),
    "triplet": lambda x: st.nn.functional.triplet_margin_loss(x, Y, -Y, margin=9.0),
    "cov": lambda x: snp.cov(x + Y / 2)[None].sum(),
    "corrcoef": lambda x: snp.corrcoef(x / 2 + Z + Y / 2, Y)[0, 1],
    "average": lambda x: snp.average(x, weights=X),
    "interp": lambda x: snp.interp(snp.float16(150), Y, x + Y / 2),
    "standardize": lambda x: jax_nn.standardize(x + Y / 2).max(),
    "var": lambda x: snp.var(x / 2 + Y / 16),
    "global_norm": lambda x: st.optim.global_norm({"w": x}),
}


@pytest.mark.parametrize("name", GRADED)
def test_values_and_gradients_also_compiled(name):
    fun = GRADED[name]
    with st.enable_x64():
        exact = lambda x: fun(x.astype("float64"))
        want = np.asarray(exact(X))
        slope = np.asarray(st.grad(exact)(X.astype("float64")))
    for make in (lambda f: f, st.jit):
        got, back = make(fun)(X), make(st.grad(lambda x: fun(x).astype("float32")))(X)
        assert back.dtype == np.float16
        np.testing.assert_allclose(got, want, rtol=4e-3, err_msg=name)
        np.testing.assert_allclose(back, slope, rtol=8e-3, atol=8e-3 * np.abs(slope).max())


def test_gradients_are_clipped_in_float32():
    grads = {"w": snp.full(64, 300, dtype="float16")}
    tx = st.optim.clip_by_global_norm(8.0)
    clipped, _ = tx.update(grads, tx.init(grads))
    np.testing.assert_allclose(clipped["w"], np.full(64, 1.0), rtol=1e-3)
    assert clipped["w"].dtype == np.float16
    assert float(st.tree.norm(grads)) == 2400
