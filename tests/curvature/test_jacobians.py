"""Jacobians as taps: beside the whole ones, for each way in which a weight enters."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto.curvature.jacobians import Outer, gram, jacobians, numbers_of


@pytest.fixture(autouse=True)
def _float64():
    with st.config(enable_x64=True):
        yield


def product(params, x):
    return snp.tanh(x @ params["w"] + params["b"]) @ params["v"]


def turned(params, x):
    return snp.swapaxes(params["w"] @ snp.swapaxes(x, 1, 2), 1, 2).sum(1) * 2.0


def twice(params, x):
    return snp.tanh(x @ params["w"]) @ params["w"] - params["w"][0]


def looked_up(params, x):
    return params["rows"][x].mean(1) @ params["v"] + params["rows"][x[:, 0]]


def convolved(params, x):
    out = st.lax.conv_general_dilated(x, params["k"], (2, 1), "SAME", feature_group_count=2)
    return (out * params["s"]).sum((2, 3)) + params["b"]


def in_a_loop(params, x):
    def step(h, x):
        return snp.tanh(x @ params["w"] + h @ params["u"]), None

    return st.lax.scan(step, snp.zeros((len(x), 3)), snp.swapaxes(x, 0, 1))[0]


def by_example(params, x):
    return snp.einsum("nti,oi->nto", x, params["w"]).reshape(len(x), -1) ** 2


RNG = np.random.default_rng(0)
CASES = {
    product: ({"w": (3, 4), "b": (4,), "v": (4, 2)}, (5, 3)),
    turned: ({"w": (2, 3)}, (5, 4, 3)),
    twice: ({"w": (3, 3)}, (5, 3)),
    looked_up: ({"rows": (6, 2), "v": (2, 2)}, None),
    convolved: ({"k": (4, 1, 2, 3), "s": (4, 1, 1), "b": (4,)}, (5, 2, 4, 3)),
    in_a_loop: ({"w": (2, 3), "u": (3, 3)}, (5, 4, 2)),
    by_example: ({"w": (2, 3)}, (5, 4, 3)),
}


def made(f):
    shapes, of_x = CASES[f]
    params = {n: snp.asarray(RNG.normal(size=shape)) for n, shape in shapes.items()}
    if of_x is None:
        return params, snp.asarray(RNG.integers(6, size=(5, 3)).astype(np.int32))
    return params, snp.asarray(RNG.normal(size=of_x))


def whole(f, params, x):
    out = f(params, x)
    by_name = st.jacrev(f)(params, x)
    return {
        n: np.reshape(j, (len(out), out.size // len(out), *params[n].shape))
        for n, j in by_name.items()
    }


@pytest.mark.parametrize("f", CASES)
def test_taps_are_the_whole_jacobians(f):
    params, x = made(f)
    expected = whole(f, params, x)
    found = jacobians((f, params), x, "*")
    assert set(found) == set(expected)
    for name, one in found.items():
        scale = RNG.uniform(0.5, 2, size=params[name].shape)
        flat = (expected[name] * scale).reshape(*expected[name].shape[:2], -1)
        plain = expected[name].reshape(flat.shape)
        by_layout = one.layout.matrix(snp.asarray(scale)) if isinstance(one, Outer) else scale
        own = gram(one, snp.asarray(by_layout), False)
        np.testing.assert_allclose(own, flat @ np.swapaxes(plain, 1, 2), rtol=1e-10, atol=1e-12)
        joint = flat.reshape(-1, scale.size) @ plain.reshape(-1, scale.size).T
        between = gram(one, snp.asarray(by_layout), True)
        np.testing.assert_allclose(between, joint, rtol=1e-10, atol=1e-12)


def test_a_weight_in_one_product_has_no_whole_jacobian():
    params, x = made(product)
    found = jacobians((product, params), x, "*")
    assert all(isinstance(one, Outer) for one in found.values())
    assert numbers_of(jacobians((product, params), x[:1], "w")) < 2 * params["w"].size * 2
    layer = nn.Linear(50, 40)
    types = st.eval_shape(lambda x: jacobians(layer, x, "weight"), snp.zeros((1, 50)))
    assert numbers_of(types) == 2 * 40 * 40 + 50  # and not 40 × 50 × 40


def test_positions_that_do_not_match_are_whole():
    params, x = made(looked_up)
    assert not isinstance(jacobians((looked_up, params), x, "rows")["rows"], Outer)


def test_of_an_ensembles_members():
    x = snp.asarray(RNG.normal(size=(3, 2)))
    models = [st.tree.map(lambda w: w.astype(np.float64), nn.Linear(2, 2)) for _ in range(2)]
    many = st.Ensemble(models)
    of = lambda model: jacobians(model, x, "*")["weight"].cotangents
    found = many.vmap(of)()
    for i, model in enumerate(models):
        np.testing.assert_array_equal(found[i], of(model))
