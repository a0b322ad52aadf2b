"""Which operators functions and layers are spelled with, and that values stay, NaN included."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import export, nn
from stretto import special as special_functions
from stretto.nn import functional as F
from tests.onnx_graphs import agrees, operators, run

pytest.importorskip("onnxruntime")

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def special(*shape):
    """Numbers with NaN and infinities among them, at all places of a vector of the processor."""
    x = normal(*shape)
    flat = x.reshape(-1)
    for k, value in enumerate((np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, -1e30)):
        flat[k :: len(flat) // 3 + k] = value
    return x


X, IMAGES = normal(4, 8), normal(2, 3, 8, 8)


ELEMENTS = [
    (F.relu, ["Relu"], ["Relu"]),
    (lambda x: snp.maximum(x, 0.0), ["Relu"], ["Relu"]),
    (lambda x: snp.maximum(x, 0.5), ["Max"], ["Max"]),
    (F.relu6, ["Clip"], ["Clip"]),
    (lambda x: snp.clip(x, -1.0, 2.0), ["Clip"], ["Clip"]),
    (F.hardsigmoid, ["Add", "Clip", "Div"], ["HardSigmoid"]),
    (F.hardswish, ["Add", "Clip", "Div", "Mul"], ["HardSwish"]),
    (F.silu, ["Neg", "Exp", "Add", "Div"], ["Sigmoid", "Mul"]),
    (F.sigmoid, ["Neg", "Exp", "Add", "Reciprocal"], ["Sigmoid"]),
    (lambda x: F.softmax(x, -1), ["Softmax"], ["Softmax"]),
    (lambda x: F.softmax(x, 0), ["Softmax"], ["Softmax"]),
    (lambda x: F.log_softmax(x, -1), ["LogSoftmax"], ["LogSoftmax"]),
    (lambda x: snp.mean(x, -1), ["ReduceMean"], ["ReduceMean"]),
    (lambda x: snp.mean(x, -1, keepdims=True), ["ReduceMean"], ["ReduceMean"]),
    (lambda x: x.reshape(-1).reshape(1, -1, 1).reshape(x.shape) * 1.0, ["Identity"], ["Identity"]),
    (lambda x: x.T.T + 0.0, ["Identity"], ["Identity"]),
    (lambda x: x[:, None].swapaxes(0, 1), ["Reshape"], ["Reshape"]),
    (lambda x: x[:, 2], ["Gather"], ["Gather"]),
    (lambda x: snp.negative(-x), ["Identity"], ["Identity"]),
]


@pytest.mark.parametrize("given", [X, special(4, 8), special(3, 37)])
@pytest.mark.parametrize(("f", "names", "_"), ELEMENTS)
def test_functions_are_these_operators_and_keep_nan_and_infinities(f, names, _, given):
    assert agrees(f, given) == names


@pytest.mark.parametrize(("f", "_", "names"), ELEMENTS)
def test_functions_are_fewer_operators_where_tails_may_be_the_runtimes(f, _, names):
    assert agrees(f, X, exact=False) == names


TAIL = np.linspace(-12, 12, 4001).astype(np.float32)


def test_gelu_is_its_operator():
    for exact in (False, True):
        assert agrees(F.gelu, X, exact=exact) == ["Gelu"]
    got, expected = run(export.onnx(F.gelu, TAIL), TAIL)[0], np.asarray(F.gelu(TAIL))
    # It rounds 1 + erf, which is near zero below -3: an error of two digits of one, times x.
    assert np.all(np.abs(got - expected) <= 2e-7 * np.maximum(1, np.abs(TAIL)))


def test_gelu_by_tanh_keeps_its_digits():
    f = lambda x: F.gelu(x, approximate="tanh")
    assert agrees(f, X, exact=False) == ["Gelu"]
    assert agrees(f, X) == ["Clip", *["Mul"] * 2, "Add", "Mul", "Exp", "Add", "Div"]
    got, expected = run(export.onnx(f, TAIL), TAIL)[0], np.asarray(f(TAIL))
    # Below -12.9 the result is no float32 of full precision any more.
    np.testing.assert_allclose(got, expected, rtol=3e-5, atol=1e-37)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_keeps_nan_and_infinities(approximate):
    agrees(lambda x: F.gelu(x, approximate=approximate), special(40))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: 0.5 * x * special_functions.erfc(x * 0.5**0.5),
        lambda x: 0.5 * x * special_functions.erfc(x * -0.5),
        lambda x: 0.25 * x * special_functions.erfc(x * -(0.5**0.5)),
        lambda x: 0.5 * (x + 1) * special_functions.erfc(x * -(0.5**0.5)),
        lambda x: x / (1 + snp.exp(-((8 / np.pi) ** 0.5) * (x + 0.05 * x * x * x))),
    ],
)
def test_what_is_like_gelu_is_not(f):
    assert "Gelu" not in agrees(f, X)


def test_the_complement_of_erf_keeps_its_tail():
    x = np.linspace(-3, 9, 101).astype(np.float32)
    got, expected = run(export.onnx(special_functions.erfc, x), x)[0], special_functions.erfc(x)
    np.testing.assert_allclose(got, np.asarray(expected), rtol=3e-5, atol=1e-37)


LAYERS = [
    (nn.LayerNorm(8), X, ["LayerNormalization"]),
    (lambda x: F.layer_norm(x[None, :, None], (4, 1, 8)), X, ["Reshape", "LayerNormalization"]),
    (nn.Linear(8, 3), X, ["Gemm"]),
    (nn.Linear(8, 3, bias=False), X, ["MatMul"]),
    (nn.Linear(8, 3), normal(2, 4, 8), ["MatMul", "Add"]),
    (nn.Sequential(nn.Linear(8, 3), nn.BatchNorm1d(3)).eval(), X, ["Gemm"]),
    (nn.Conv2d(3, 4, 3, padding=1), IMAGES, ["Conv"]),
    (
        nn.Sequential(nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU()).eval(),
        IMAGES,
        ["Conv", "Relu"],
    ),
    (nn.ConvTranspose2d(3, 4, 2, 2), IMAGES, ["ConvTranspose"]),
    (nn.ConvTranspose2d(3, 4, 3, 2, 1, 1), IMAGES, ["ConvTranspose"]),
    (nn.ConvTranspose2d(3, 6, (3, 2), (1, 3), groups=3, dilation=2), IMAGES, ["ConvTranspose"]),
    (nn.ConvTranspose2d(3, 70, 4, 2, 1), normal(1, 3, 5, 5), ["ConvTranspose"]),
    (
        nn.Sequential(nn.ConvTranspose2d(3, 4, 2, 2), nn.BatchNorm2d(4)).eval(),
        IMAGES,
        ["ConvTranspose"],
    ),
    (nn.ConvTranspose1d(3, 4, 2, 2), IMAGES[:, :, 0], ["ConvTranspose"]),
    (nn.AvgPool2d(2), IMAGES, ["AveragePool"]),
    (nn.AvgPool2d(3, 2, 1), IMAGES, ["AveragePool"]),
    (nn.AdaptiveAvgPool2d(1), IMAGES, ["ReduceMean"]),
    (lambda x: snp.mean(x, axis=(2, 3)), IMAGES, ["ReduceMean"]),
    (nn.ZeroPad2d(1), IMAGES, ["Pad"]),
    (nn.Sequential(nn.ZeroPad2d(1), nn.Conv2d(3, 4, 3)), IMAGES, ["Conv"]),
]


@pytest.mark.parametrize(("layer", "given", "names"), LAYERS)
def test_layers_are_these_operators(layer, given, names):
    assert agrees(layer, given) == names


def test_a_norm_of_single_elements_is_zero():
    assert not agrees(nn.LayerNorm(1), normal(4, 1)).count("LayerNormalization")


def test_statistics_of_batch_norm_go_into_weights():
    layer = nn.Sequential(
        nn.Conv2d(3, 40, 3), nn.BatchNorm2d(40), nn.Conv2d(40, 40, 3), nn.BatchNorm2d(40)
    )
    layer = layer.eval()
    for norm in (layer[1], layer[3]):
        norm.running_mean = snp.array(normal(40))
        norm.running_var = snp.array(np.abs(normal(40)) + 0.5)
        norm.weight, norm.bias = (
            nn.Parameter(snp.array(normal(40))),
            nn.Parameter(snp.array(normal(40))),
        )
    assert agrees(layer, IMAGES) == ["Conv", "Conv"]


def test_batch_norm_alone_is_one_operator():
    layer = nn.BatchNorm2d(3).eval()
    layer.running_mean = snp.array(normal(3))
    layer.weight, layer.bias = (
        nn.Parameter(snp.array(normal(3))),
        nn.Parameter(snp.array(normal(3))),
    )
    assert agrees(layer, IMAGES) == ["BatchNormalization"]


@pytest.mark.parametrize("layer", [nn.LayerNorm(8), nn.Linear(8, 3), lambda x: F.softmax(x, -1)])
def test_rows_with_nan_and_infinities_stay_so(layer):
    x = special(12, 8)
    assert agrees(layer, x)


def with_odd_values(shape):
    """Images with NaN, infinities, large and small numbers; and one of -inf alone."""
    x = normal(*shape)
    for k, value in enumerate((np.nan, np.inf, -np.inf, 3.4e38, -0.0, 1e-45, -3e38)):
        x.reshape(-1)[3 + k :: 41] = value
    x[-1] = -np.inf
    return x


def test_max_pool_takes_the_operator_where_all_is_finite():
    layer = nn.MaxPool2d(3, 2, 1)
    assert agrees(layer, IMAGES, exact=False) == ["MaxPool"]
    assert agrees(layer, IMAGES) == ["ReduceSum", "Sub", "Equal", "If"]
    model = export.onnx(layer, IMAGES)
    for value in (np.nan, np.inf, -np.inf):
        x = IMAGES.copy()
        x[0, 1, 3:6, 2:7] = value
        x[1] = -np.inf
        np.testing.assert_array_equal(run(model, x)[0], np.asarray(layer(x)))


@pytest.mark.parametrize("window", [(2,), (2, 1), (3, 2, 1), (3, 1, 1, 2), ((2, 3), (1, 2))])
@pytest.mark.parametrize("first", [True, False])
def test_max_pool_of_what_is_not_negative_has_no_branch(window, first):
    pool = lambda x: F.max_pool2d(x, *window)
    f = (lambda x: pool(F.relu(x))) if first else (lambda x: F.relu(pool(x)))
    x = normal(3, 5, 9, 10)
    model = export.onnx(f, x)
    assert operators(model) == ["Relu", "Conv", "MaxPool", "Add"]
    # The sum that carries NaN leaves no trace in numbers.
    for given in (x, with_odd_values(x.shape)):
        for as_it_is in (False, True):
            got = run(model, given, as_it_is=as_it_is)[0]
            np.testing.assert_array_equal(got, np.asarray(f(given)))


@pytest.mark.parametrize(
    ("before", "shape"),
    [
        (F.relu6, (2, 3, 8, 8)),
        (lambda x: F.max_pool2d(F.relu(x), 2), (2, 3, 8, 8)),
        (lambda x: F.relu(x) + F.relu(-x), (2, 3, 8, 8)),
        (lambda x: snp.concatenate([F.relu(x), snp.abs(x)], 1), (2, 3, 8, 8)),
        (lambda x: F.relu(x.swapaxes(2, 3)), (2, 3, 8, 8)),
        (lambda x: F.relu(x.reshape(2, 4, 4, 4)), (2, 1, 8, 8)),
    ],
)
def test_what_is_not_negative_is_known(before, shape):
    f = lambda x: F.max_pool2d(before(x), 2)
    model = export.onnx(f, normal(*shape))
    assert "If" not in operators(model)
    x = with_odd_values(shape)
    np.testing.assert_array_equal(run(model, x)[0], np.asarray(f(x)))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: F.max_pool2d(F.relu(x) - 1.0, 2),
        lambda x: F.max_pool2d(snp.clip(x, -1, 1), 2),
        lambda x: F.max_pool2d(snp.concatenate([x, F.relu(x)], 1), 2),
        lambda x: F.relu(F.max_pool2d(x, 2)) + F.max_pool2d(x, 2),
        # The sum of so many would be more than half of the last digit of the largest.
        lambda x: F.max_pool2d(F.relu(x.reshape(1, 1, 256, -1)), 256, 1),
    ],
)
def test_what_may_be_negative_or_is_too_much_to_add_up_has_a_branch(f):
    x = normal(2, 2, 128, 128)
    assert "If" in agrees(f, x)


def test_a_max_pool_of_channels_that_vary_has_a_branch():
    f = lambda x: F.max_pool2d(F.relu(x), 2)
    x = normal(2, 3, 8, 8)
    model = export.onnx(f, x, dynamic_axes=({1: "channels"},))
    assert "If" in operators(model)
    wide = with_odd_values((2, 5, 8, 8))
    np.testing.assert_array_equal(run(model, wide)[0], np.asarray(f(wide)))


class TestAttention:
    shape = (2, 3, 5, 4)

    @staticmethod
    def causal(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    def test_is_softmax_between_products(self):
        parts = [normal(*self.shape) for _ in range(3)]
        names = agrees(self.causal, *parts, exact=False)
        assert names == ["Mul", "Transpose", "MatMul", "Where", "Softmax", "MatMul"]
        assert agrees(self.causal, *parts).count("Softmax") == 1

    def test_of_one_example_is_the_same(self):
        parts = [normal(1, *self.shape[1:]) for _ in range(3)]
        names = agrees(self.causal, *parts, exact=False)
        assert sorted(names) == sorted(["Mul", "Transpose", "MatMul", "Where", "Softmax", "MatMul"])

    def test_rows_that_are_masked_as_a_whole_are_zero(self):
        parts = [normal(*self.shape) for _ in range(3)]
        mask = RNG.integers(0, 2, (5, 5)).astype(bool)
        mask[2] = False
        f = lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m)
        assert "Softmax" in agrees(f, *parts, mask)

    def test_keeps_nan(self):
        q, k, v = [normal(*self.shape) for _ in range(3)]
        q[0, 0, 1, 2] = np.nan
        v[1, 1, 2] = np.inf
        agrees(self.causal, q, k, v)


class TestEmbedding:
    layer = nn.Embedding(10, 4)
    tokens = np.array([[1, 2, -1], [9, 0, -10]], np.int32)

    def test_is_a_gather(self):
        assert agrees(self.layer, self.tokens, exact=False) == ["Gather"]

    def test_of_members_is_a_gather_of_all(self):
        ensemble = st.Ensemble([nn.Embedding(10, 4) for _ in range(3)])
        assert agrees(ensemble, self.tokens, exact=False) == ["Gather", "Transpose"]
        agrees(ensemble, self.tokens)

    def test_keeps_nan_for_what_is_out_of_range(self):
        tokens = np.array([[1, 10, -11]], np.int32)
        assert np.isnan(run(export.onnx(self.layer, tokens), tokens)[0]).any(-1).tolist() == [
            [False, True, True]
        ]
        assert agrees(self.layer, tokens) == ["Clip", "Gather", "Equal", "Unsqueeze", "Where"]

    @pytest.mark.parametrize("mode", ["fill", "clip", "wrap"])
    @pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32])
    def test_rows_by_any_index(self, mode, dtype):
        places = np.array([[0, 9, 10, 127], [-1, -10, -11, -128]]).astype(dtype)
        x = normal(3, 10)
        for f in (
            lambda x, i: snp.take(x, i, axis=1, mode=mode),
            lambda x, i: snp.take(x.T, i, axis=0, mode=mode),
        ):
            agrees(f, x, places)

    def test_bounded_places_are_two_operators(self):
        assert agrees(lambda w, t: w[t], normal(10, 3), self.tokens) == ["Clip", "Gather"]


class TestEnsembles:
    def test_of_one_dense_layer_read_the_input_once(self):
        names = agrees(st.Ensemble([nn.Linear(8, 16) for _ in range(3)]), X)
        assert names == ["Gemm", "Reshape", "Transpose"]

    @pytest.mark.parametrize("axes", [None, {0: "batch"}])
    def test_of_images_are_convolutions_with_groups(self, axes):
        def member():
            return nn.Sequential(
                nn.Conv2d(3, 4, 3, padding=1),
                nn.BatchNorm2d(4),
                nn.ReLU(),
                nn.MaxPool2d(2),
                nn.Conv2d(4, 8, 3),
                nn.ReLU(),
                nn.Flatten(),
                nn.Linear(32, 2),
            ).eval()

        ensemble = st.Ensemble([member() for _ in range(3)])
        names = agrees(ensemble, IMAGES, exact=False, dynamic_axes=axes)
        assert names[:5] == ["Conv", "Relu", "MaxPool", "Conv", "Relu"]
        assert names[-2:] == ["MatMul", "Add"] and len(names) == 10
        model = export.onnx(ensemble, IMAGES, exact=False)
        groups = [a.i for n in model.graph.node for a in n.attribute if a.name == "group"]
        assert groups == [3]
        names = agrees(ensemble, IMAGES, dynamic_axes=axes)
        assert names[:6] == ["Conv", "Relu", "Conv", "MaxPool", "Add", "Conv"]
        images = IMAGES.copy()
        images[1, 2, 3, 4] = np.nan
        agrees(ensemble, images, dynamic_axes=axes)


def test_a_large_matrix_that_is_turned_is_kept_once():
    embedding = snp.array(normal(300, 300))
    f = lambda x: F.relu(x @ embedding) @ embedding.T
    x = normal(4, 300)
    model = export.onnx(f, x)
    assert operators(model) == ["MatMul", "Relu", "Gemm"]
    assert sum(t.ByteSize() for t in model.graph.initializer) < 300 * 300 * 4 * 1.1
    np.testing.assert_allclose(run(model, x)[0], np.asarray(f(x)), rtol=1e-4, atol=1e-2)


def test_sizes_that_vary():
    layer = nn.Sequential(
        nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 3), nn.Softmax(-1)
    )
    model = export.onnx(layer, X, dynamic_axes={0: "batch"}, exact=False)
    assert operators(model) == ["Gemm", "Gelu", "LayerNormalization", "Gemm", "Softmax"]
    for batch in (1, 5):
        x = normal(batch, 8)
        np.testing.assert_allclose(run(model, x)[0], np.asarray(layer(x)), rtol=1e-5, atol=1e-6)
