"""Dense layers of members are convolutions with a group for each, one after the other."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import export, nn
from stretto.nn import functional as F
from tests.onnx_graphs import agrees, operators, run

pytest.importorskip("onnxruntime")

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


X = normal(6, 8)


def ensemble(*layers, count=3):
    """Members of these layers, each with weights of its own."""
    return st.Ensemble([nn.Sequential(*[layer() for layer in layers]) for _ in range(count)])


def linear(a, b, bias=True):
    return lambda: nn.Linear(a, b, bias=bias)


IMAGE = ["Transpose", "Reshape", "Conv", "Relu", "Conv", "Reshape", "Transpose"]


@pytest.mark.parametrize("bias", [True, False])
def test_two_layers_are_two_convolutions(bias):
    net = ensemble(linear(8, 16, bias), nn.ReLU, linear(16, 3, bias))
    assert agrees(net, X) == IMAGE
    model = export.onnx(net, X)
    first, second = [n for n in model.graph.node if n.op_type == "Conv"]
    assert [a.i for a in second.attribute if a.name == "group"] == [3]
    assert len(first.input) == len(second.input) == 2 + bias


def test_more_layers_stay_images():
    net = ensemble(linear(8, 16), nn.Tanh, linear(16, 5), nn.ReLU, linear(5, 7), linear(7, 2))
    names = agrees(net, X)
    assert names.count("Conv") == 4 and names.count("Transpose") == names.count("Reshape") == 2


@pytest.mark.parametrize("layer", [nn.ReLU, nn.Tanh, nn.ReLU6, nn.LeakyReLU, nn.GELU])
def test_activations_go_along(layer):
    names = agrees(ensemble(linear(8, 16), layer, linear(16, 3)), X)
    assert names.count("Conv") == 2 and len(names) == len(IMAGE)


def test_rows_of_each_member_are_turned_once():
    w, b, v = [snp.array(normal(*shape)) for shape in ((3, 8, 16), (3, 1, 16), (3, 16, 2))]
    f = lambda x: F.relu(x @ w + b) @ v
    assert agrees(f, normal(3, 6, 8)) == IMAGE
    f = lambda x: F.relu(x @ w) @ v
    assert agrees(f, normal(3, 6, 8)) == IMAGE


@pytest.mark.parametrize("rows", [1, 2, 7, 16])
@pytest.mark.parametrize("width", [5, 16, 33])
def test_any_number_of_rows_by_one_file(rows, width):
    net = ensemble(linear(8, width), nn.ReLU, linear(width, width), nn.ReLU, linear(width, 3))
    model = export.onnx(net, X, dynamic_axes=({0: "batch"},))
    assert operators(model).count("Conv") == 3
    x = normal(rows, 8)
    np.testing.assert_allclose(run(model, x)[0], np.asarray(net(x)), rtol=2e-5, atol=2e-6)


def test_where_there_may_be_no_rows_it_is_as_it_was():
    net = ensemble(linear(8, 16), nn.ReLU, linear(16, 3))
    model = export.onnx(net, X, dynamic_axes=({0: st.dynamic_size("batch", least=0)},))
    assert "Conv" not in operators(model)
    assert run(model, normal(0, 8))[0].shape == (3, 0, 3)


@pytest.mark.parametrize("width", [16, 20])
def test_nan_and_infinities_stay_in_their_rows(width):
    x = X.copy()
    x[1, 3], x[3, 2], x[4, 5] = np.nan, np.inf, -np.inf
    net = ensemble(linear(8, width), nn.ReLU, linear(width, 16))
    agrees(net, x)


def test_what_is_made_of_the_members_is_kept():
    net = ensemble(linear(8, 16), nn.ReLU, linear(16, 3))
    outputs = {"mean": st.ensemble.mean, "members": lambda y: F.softmax(y, -1)}
    model = export.onnx(net, X, outputs=outputs)
    for got, made in zip(run(model, X), outputs.values(), strict=True):
        np.testing.assert_allclose(got, np.asarray(made(net(X))), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize(
    "net",
    [
        ensemble(linear(8, 3)),
        ensemble(linear(8, 16), lambda: nn.LayerNorm(16), linear(16, 3)),
        ensemble(linear(8, 16), nn.ReLU, linear(16, 3), count=1),
    ],
)
def test_one_layer_or_one_member_is_as_it_was(net):
    assert "Conv" not in agrees(net, X)


def test_what_is_read_twice_is_as_it_was():
    w, v = normal(3, 8, 8), normal(3, 8, 4)
    weights = snp.array(w)

    def hidden_twice(x):
        h = F.relu(x @ weights)
        return h @ snp.array(v), h

    assert "Conv" not in agrees(hidden_twice, normal(3, 6, 8))
    assert "Conv" not in agrees(lambda x: F.relu(x @ weights) @ weights, normal(3, 6, 8))


def test_weights_are_named_after_those_of_the_tree():
    model = export.onnx(ensemble(linear(8, 16), nn.ReLU, linear(16, 40)), X)
    stems = {t.name.rpartition("_")[0] for t in model.graph.initializer if t.data_type == 1}
    assert stems == {"0.weight", "0.bias", "2.weight", "2.bias"}
