import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto.curvature import ggn
from stretto.curvature.batches import Batch
from stretto.curvature.plan import Layout, Plan
from tests.curvature.posteriors import double


@pytest.fixture(autouse=True)
def _double():
    st.random.manual_seed(0)
    with st.enable_x64():
        yield


@pytest.mark.parametrize(
    "axes",
    [
        (("out", 4), ("in", 6)),
        (("in", 6), ("out", 4)),
        (("in", 2), ("out", 4), ("in", 3)),
        (("shared", 2), ("out", 4), ("in", 3)),
        (("in", 3), ("shared", 2), ("out", 4)),
    ],
)
def test_layouts_go_there_and_back(axes):
    layout = Layout((4, 6), axes)
    v = snp.arange(48.0).reshape(4, 6, 2)
    m = layout.matrix(v)
    assert m.shape == (layout.size("shared"), layout.size("out"), layout.size("in"), 2)
    np.testing.assert_array_equal(layout.weight(m), v)
    assert layout.grouped == (("shared", 2) in axes)


def test_gradients_are_sums_of_cotangents_and_activations():
    model = double(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)))
    x = snp.array(np.random.default_rng(0).normal(size=(5, 3)))
    curvature = ggn(model, x, "gaussian")
    plan = Plan(curvature)
    batch = Batch(x, None, snp.arange(5), snp.ones(5, bool))
    taps, exact, seen = plan.cotangents(curvature, batch)
    assert not exact
    apply, chosen, _ = curvature.parts
    jacobian = st.jacrev(lambda w: apply(w, x))(chosen)["0.weight"]
    (number,) = [n for n, u in enumerate(plan.listed) if u.weight == 0]
    g, a = plan.operands(number, taps, seen)
    assert g.shape == (1, 10, 4) and a.shape == (1, 5, 3)
    products = g.reshape(5, 2, 4, 1) * a.reshape(5, 1, 1, 3)
    np.testing.assert_allclose(products, jacobian, atol=1e-15)


def test_padding_counts_nothing():
    model, x = double(nn.Linear(3, 2)), snp.ones((2, 3))
    curvature = ggn(model, x, "gaussian")
    plan = Plan(curvature)
    batch = Batch(x, None, snp.arange(2), snp.array([True, False]))
    taps, _, seen = plan.cotangents(curvature, batch)
    for values in (*taps.values(), *seen.values()):
        assert np.asarray(values[0]).any() and not np.asarray(values[1]).any()


def test_weights_with_several_terms_are_left_to_their_gradients():
    model = double(nn.Sequential(nn.Conv1d(2, 3, 2), nn.Flatten(), nn.Linear(6, 2)))
    curvature = ggn(model, snp.ones((1, 2, 3)), "gaussian")
    assert set(Plan(curvature).uses.found) == {0, 1, 2, 3}
    plan = Plan(curvature, once=True)
    assert set(plan.uses.found) == {2, 3} and set(plan.uses.unknown) == {0, 1}
