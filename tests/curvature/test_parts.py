import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto.curvature import ggn, parts_of


def model():
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).eval()


def test_weights_come_before_biases_and_the_function_takes_them():
    net, x = model(), snp.ones((5, 3))
    apply, chosen, names = parts_of(net)
    assert names == ("0.weight", "0.bias", "2.weight", "2.bias") == tuple(chosen)
    np.testing.assert_array_equal(apply(chosen, x), net(x))
    doubled = apply({"2.weight": 2 * chosen["2.weight"]}, x)
    expected = 2 * (net(x) - chosen["2.bias"]) + chosen["2.bias"]
    np.testing.assert_allclose(doubled, expected, rtol=1e-6, atol=1e-6)


def test_weights_are_chosen_as_parts_of_ensembles_are():
    net = model()
    assert parts_of(net, "last").names == ("2.weight", "2.bias")
    assert parts_of(net, "0").names == ("0.weight", "0.bias")
    assert parts_of(net, ["*.bias", "0.*"]).names == ("0.weight", "0.bias", "2.bias")
    assert parts_of(net, lambda n: "weight" in n).names == ("0.weight", "2.weight")


def test_functions_of_a_tree_and_members_of_their_ensembles():
    def apply(params, x):
        return params["scale"] * (x @ params["layer"]["w"]) + params["step"]

    params = {"layer": {"w": snp.ones((3, 2))}, "scale": snp.array(2.0), "step": snp.array(1)}
    parts = parts_of((apply, params))
    assert parts.names == ("layer.w", "scale")  # integers are constants
    x = snp.ones((4, 3))
    np.testing.assert_array_equal(parts.apply(parts.chosen, x), apply(params, x))
    member = st.Ensemble(apply, [params, params])[1]
    assert parts_of(member, "layer").names == ("layer.w",)


def test_a_tuple_is_several_arguments():
    def apply(params, x, y):
        return x * params["a"] + y

    parts = parts_of((apply, {"a": snp.array([2.0])}))
    got = parts.apply(parts.chosen, (snp.ones((1, 1)), snp.ones((1, 1))))
    np.testing.assert_array_equal(got, [[3.0]])


def test_tied_weights_are_one():
    net = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Tanh(), nn.Linear(3, 3, bias=False))
    net[2].weight = net[0].weight
    apply, chosen, names = parts_of(net)
    assert names == ("0.weight",)
    x = snp.ones((1, 3))
    twice = snp.tanh(x @ (2 * chosen["0.weight"]).T) @ (2 * chosen["0.weight"]).T
    np.testing.assert_allclose(apply({"0.weight": 2 * chosen["0.weight"]}, x), twice, rtol=1e-6)


def test_buffers_are_constants():
    assert parts_of(nn.BatchNorm1d(2).eval()).names == ("weight", "bias")


def test_what_mixes_examples_or_draws_is_refused_by_name():
    batch = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    with pytest.raises(ValueError, match=r"parts_of: 1, a BatchNorm1d, takes the statistics"):
        parts_of(batch.train())
    parts_of(batch.eval())
    untracked = nn.BatchNorm1d(4, track_running_stats=False).eval()
    with pytest.raises(ValueError, match="BatchNorm1d, takes the statistics of its batch"):
        parts_of(untracked)
    dropping = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5))
    with pytest.raises(ValueError, match=r"1, a Dropout, drops numbers at random.*model.eval"):
        ggn(dropping.train(), snp.ones((1, 3)))
    parts_of(nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.0)).train())
    with pytest.raises(ValueError, match=r"an? LSTM, drops"):
        parts_of(nn.LSTM(3, 4, num_layers=2, dropout=0.5).train())


def test_what_is_no_model_is_refused():
    with pytest.raises(TypeError, match=r"ggn: got an Ensemble; write ensemble.vmap"):
        ggn(st.Ensemble([model(), model()]), snp.ones((1, 3)))
    with pytest.raises(TypeError, match=r"expected a module, a pair \(apply, params\)"):
        parts_of(3)
    with pytest.raises(TypeError, match="holds no floating-point parameters"):
        parts_of(nn.ReLU())
    with pytest.raises(
        ValueError, match=r"the pattern 'head' covers no weight; the weights are 0.w"
    ):
        parts_of(model(), "head")
    with pytest.raises(ValueError, match=r"covers none of 0.weight"):
        parts_of(model(), lambda name: False)
    with pytest.raises(ValueError, match=r'weights="last" is the module .* b is in none'):
        parts_of((lambda p, x: x, {"a": snp.ones(1), "b": snp.ones(1)}), "last")
    two = (lambda p, x: (x, x)), {"a": snp.ones(1)}
    with pytest.raises(TypeError, match="the model must return one array"):
        ggn(two, snp.ones((2, 1))).dense()
