"""Which operators functions and layers are spelled with, and that values stay, NaN included."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import export, nn
from stretto import special as special_functions
from stretto._engine.lowering.onnx.views import LARGEST
from stretto.nn import functional as F
from tests.onnx_graphs import (
    agrees,
    by_hand,
    operators,
    run,
    spelled,
    spelled_without_a_type,
)

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


@pytest.mark.parametrize(("count", "known"), [(1, True), (7, True), (8, False)])
def test_how_far_back_it_is_looked_for_negative_numbers(count, known):
    def f(x):
        y = F.relu(x)
        for k in range(count):
            y = y + F.relu(x - k)
        return F.max_pool2d(y, 2)

    assert ("If" not in agrees(f, IMAGES)) == known


@pytest.mark.parametrize(("count", "known"), [(1, True), (7, True), (8, False)])
def test_how_far_back_it_is_looked_through_means(count, known):
    def f(x):
        y = F.relu(x)
        for _ in range(count):
            y = F.avg_pool2d(y, 2, 1)
        return F.max_pool2d(y, 2)

    assert ("If" not in agrees(f, normal(1, 2, 12, 12))) == known


@pytest.mark.parametrize(
    ("channels", "window", "known"),
    [(4, (128, 128), True), (5, (128, 128), False), (3, (128, 129), False)],
)
def test_how_large_windows_do_without_a_branch(channels, window, known):
    f = lambda x: F.max_pool2d(F.max_pool2d(F.relu(x), window, 1), 2)
    assert ("If" not in agrees(f, normal(1, channels, 129, 130))) == known


@pytest.mark.parametrize("known", [True, False])
def test_a_convolution_with_the_weights_of_a_pool_is_as_its_operand_is(known):
    weights = np.full((3, 1, 2, 2), 2.0**-40, np.float32)

    def f(x):
        return F.max_pool2d(F.conv2d(F.relu(x) if known else x, weights, groups=3), 2)

    assert ("If" not in agrees(f, IMAGES)) == known


@pytest.mark.parametrize(("rows", "least", "known"), [(256, 0, True), (257, 0, False),
                                                      (256, -1e-9, False)])  # fmt: skip
def test_constants_that_are_not_negative(rows, least, known):
    line = np.abs(normal(1, 1, rows, 256))
    line[..., 3, 5] = least
    f = lambda x: F.max_pool2d(F.relu(x) + line, 2)
    assert ("If" not in agrees(f, normal(1, 1, rows, 256))) == known


@pytest.mark.parametrize("after", [F.relu, lambda y: y])
def test_a_branch_of_the_user_stays(after):
    pool = lambda y: F.max_pool2d(y, 2)
    choice = lambda test, y: st.lax.cond(test, lambda y: -pool(y), pool, y)
    f = lambda x: after(choice(x[0, 0, 0, 0] > 0, F.relu(x)))
    for x in (np.abs(IMAGES), -np.abs(IMAGES)):
        assert "If" in agrees(f, x, exact=False)


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


# Graphs by hand: what each rule makes of them, and what it leaves

SQUARE, WIDE = normal(4, 4), normal(1, 4, 8)
SCALE, SHIFT = normal(8), normal(8)
INTS = np.arange(-16, 16, dtype=np.int32).reshape(4, 8)
W86, KERNEL = normal(8, 6), normal(4, 3, 3, 3)
F32, I32, I64 = np.dtype(np.float32), np.dtype(np.int32), np.dtype(np.int64)


def f32(value):
    return np.asarray(value, np.float32)


def bounded(test, bound, by=None, of=lambda n, x: x):
    """Give one number where a comparison holds, and else the other one."""
    compared = bound if by is None else by
    return lambda n, x: n("Where", n(test, x, f32(compared)), f32(bound), of(n, x))


relu = lambda n, x: n("Relu", x)
from_two = lambda n, x: n("Max", x, f32(2))

ELEMENTS_BY_HAND = [
    (bounded("LessOrEqual", 0.5), ["Max"]),
    (bounded("Less", 0.5), ["Max"]),
    (bounded("GreaterOrEqual", 0.5), ["Min"]),
    (bounded("Greater", 0.5), ["Min"]),
    (bounded("Equal", 0.5), ["Equal", "Where"]),
    (bounded("LessOrEqual", 0.5, by=0.25), ["LessOrEqual", "Where"]),
    (bounded("LessOrEqual", np.nan), ["LessOrEqual", "Where"]),
    (bounded("LessOrEqual", np.full((1, 1, 1), 0.5)), ["LessOrEqual", "Where"]),
    (bounded("GreaterOrEqual", 6, of=relu), ["Clip"]),
    (bounded("GreaterOrEqual", 0, of=relu), ["Clip"]),
    (bounded("GreaterOrEqual", -1, of=relu), ["GreaterOrEqual", "Relu", "Where"]),
    (bounded("LessOrEqual", 1, of=relu), ["LessOrEqual", "Relu", "Where"]),
    (bounded("GreaterOrEqual", 3, of=from_two), ["Clip"]),
    (bounded("GreaterOrEqual", 1, of=from_two), ["GreaterOrEqual", "Max", "Where"]),
    (bounded("GreaterOrEqual", 3, of=lambda n, x: n("Relu", n("Neg", x))),
     ["GreaterOrEqual", "Neg", "Relu", "Where"]),
    (bounded("GreaterOrEqual", 3, of=lambda n, x: n("Neg", x)), ["GreaterOrEqual", "Neg", "Where"]),
    (lambda n, x: n("Max", f32(0), x), ["Relu"]),
    (lambda n, x: n("Max", x, f32(np.zeros((1, 1, 1)))), ["Max"]),
    (lambda n, x: n("Max", x, f32(0.5)), ["Max"]),
    (lambda n, x: n("Min", n("Max", f32(-1), x), f32(2)), ["Clip"]),
    (lambda n, x: n("Min", f32(2), n("Max", x, f32(2))), ["Clip"]),
    (lambda n, x: n("Min", n("Relu", x), f32(2)), ["Clip"]),
    (lambda n, x: n("Min", n("Relu", x), f32(0)), ["Clip"]),
    (lambda n, x: n("Min", n("Relu", x), f32(-1)), ["Relu", "Min"]),
    (lambda n, x: n("Min", n("Max", x, f32(3)), f32(2)), ["Max", "Min"]),
    (lambda n, x: n("Min", n("Max", x, f32(np.full((1, 1, 1), -1))), f32(2)), ["Max", "Min"]),
    (lambda n, x: n("Min", n("Max", x, f32(-1)), f32(np.full((1, 1, 1), 2))), ["Max", "Min"]),
    (lambda n, x: n("Min", n("Max", x, SCALE), f32(2)), ["Max", "Min"]),
    (lambda n, x: n("Min", n("Max", x, f32(-1)), SCALE), ["Max", "Min"]),
    (lambda n, x: n("Max", n("Min", x, f32(2)), f32(-1)), ["Min", "Max"]),
    (lambda n, x: n("Add", f32(0), x), ["Identity"]),
    (lambda n, x: n("Add", x, f32(np.zeros(8))), ["Identity"]),
    (lambda n, x: n("Add", x, f32(np.zeros((3, 1, 1)))), ["Add"]),
    (lambda n, x: n("Add", x, f32([0] * 7 + [1])), ["Add"]),
    (lambda n, x: n("Sub", x, f32(0)), ["Identity"]),
    (lambda n, x: n("Sub", f32(0), x), ["Sub"]),
    (lambda n, x: n("Mul", f32(1), x), ["Identity"]),
    (lambda n, x: n("Div", x, f32(1)), ["Identity"]),
    (lambda n, x: n("Div", f32(1), x), ["Div"]),
    (lambda n, x: n("Max", x, f32(-np.inf)), ["Identity"]),
    (lambda n, x: n("Max", x, f32(np.inf)), ["Max"]),
    (lambda n, x: n("Min", f32(np.inf), x), ["Identity"]),
    (lambda n, x: n("Neg", n("Neg", x)), ["Identity"]),
    (lambda n, x: n("Neg", n("Abs", x)), ["Abs", "Neg"]),
    (lambda n, x: n("Not", n("Not", n("Greater", x, f32(0)))), ["Greater"]),
    (lambda n, x: n("Mul", x, n("Reciprocal", n("Exp", x))), ["Exp", "Div"]),
    (lambda n, x: n("Mul", n("Reciprocal", n("Exp", x)), x), ["Exp", "Div"]),
    (lambda n, x: (r := n("Reciprocal", x), n("Mul", x, r)), ["Reciprocal", "Mul"]),
    (lambda n, x: n("Cast", x, to=F32), ["Identity"]),
    (lambda n, x: n("Cast", n("Cast", x, to=np.dtype(np.float64)), to=F32), ["Identity"]),
    (lambda n, x: n("Cast", n("Cast", x, to=np.dtype(np.float16)), to=F32), ["Cast", "Cast"]),
    (lambda n, x: n("Cast", n("Cast", x, to=np.dtype(np.float64)), to=np.dtype(np.float16)),
     ["Cast", "Cast"]),
]  # fmt: skip


@pytest.mark.parametrize(("build", "names"), ELEMENTS_BY_HAND)
def test_elements_by_hand(build, names):
    rows = special(4, 8)
    with np.errstate(all="ignore"):
        assert spelled(build, X, feeds=[(rows,)]) == names


def test_integers_have_the_operators_that_they_have_kernels_of():
    at = lambda test: lambda n, x: n("Where", n(test, x, np.int32(2)), np.int32(2), x)
    assert spelled(at("LessOrEqual"), INTS) == ["Max"]
    for dtype in (np.int32, np.int64):  # a Relu of integers is refused in front of a Clip
        assert spelled(lambda n, x, of=dtype: n("Max", x, of(0)), INTS.astype(dtype)) == ["Max"]
    there_and_back = lambda wide: lambda n, x: n("Cast", n("Cast", x, to=wide), to=I32)
    assert spelled(there_and_back(I64), INTS) == ["Identity"]
    assert spelled(there_and_back(np.dtype(np.float64)), INTS) == ["Identity"]
    assert spelled(there_and_back(F32), INTS) == ["Cast", "Cast"]
    least = lambda n, x: n("Where", n("LessOrEqual", x, np.int16(2)), np.int16(2), x)
    model, _ = by_hand(least, INTS.astype(np.int16))
    assert operators(model) == ["LessOrEqual", "Where"]
    count = lambda n, x: n("Div", n("ReduceSum", x, [1]), np.int32(8))
    assert spelled(count, INTS) == ["ReduceSum", "Div"]


def mean(axes=(1,), count=8.0, keepdims=1):
    return lambda n, x: n("Div", n("ReduceSum", x, axes, keepdims=keepdims), f32(count))


def pooled(count, by, scale="Mul"):
    def build(n, x):
        y = n("AveragePool", x, kernel_shape=[2, 2])
        return n("Div", n(scale, y, f32(count)), f32(by))

    return build


def split_mean(shape, axes, keepdims=0):
    return lambda n, x: n("ReduceMean", n("Reshape", x, shape), axes, keepdims=keepdims)


MEANS = [
    (mean(), X, ["ReduceMean"]),
    (mean((0, 1), 32.0, 0), X, ["ReduceMean"]),
    (mean(count=4.0), X, ["ReduceSum", "Div"]),
    (mean((0, 1), 12.0), X, ["ReduceSum", "Div"]),
    (mean(count=np.full((1, 1, 1), 8.0)), X, ["ReduceSum", "Div"]),
    (lambda n, x: (t := n("ReduceSum", x, [1]), n("Div", t, f32(8))), X, ["ReduceSum", "Div"]),
    (lambda n, x: n("Div", n("ReduceProd", x, [1]), f32(8)), X, ["ReduceProd", "Div"]),
    (pooled(4, 4), IMAGES, ["AveragePool"]),
    (pooled(4, 3), IMAGES, ["AveragePool", "Mul", "Div"]),
    (pooled(0, 0), IMAGES, ["AveragePool", "Mul", "Div"]),
    (pooled(4, np.full((1, 1, 1, 1, 1), 4.0)), IMAGES, ["AveragePool", "Mul", "Div"]),
    (pooled(4, 4, "Add"), IMAGES, ["AveragePool", "Add", "Div"]),
    (lambda n, x: n("Div", n("Mul", f32(4), n("Relu", x)), f32(4)), X, ["Relu", "Mul", "Div"]),
    (lambda n, x: (y := n("Mul", n("AveragePool", x, kernel_shape=[2, 2]), f32(4)),
                   n("Div", y, f32(4))), IMAGES, ["AveragePool", "Mul", "Div"]),
    (split_mean([2, 3, 1, 8, 1, 8], [3, 5]), IMAGES, ["ReduceMean"]),
    (split_mean([2, 3, 64], [2]), IMAGES, ["ReduceMean"]),
    (split_mean([2, 3, 64], [2], 1), IMAGES, ["Reshape", "ReduceMean"]),
    (split_mean([2, 3, 1, 64], [2, 3], 1), IMAGES, ["ReduceMean"]),
    (split_mean([2, 3, 2, 4, 8], [3]), IMAGES, ["Reshape", "ReduceMean"]),
    (split_mean([2, 3, 2, 32], [3]), IMAGES, ["Reshape", "ReduceMean"]),
    (split_mean([6, 64], [1]), IMAGES, ["Reshape", "ReduceMean"]),
    (split_mean([2, 1, 3, 64], [3]), IMAGES, ["Reshape", "ReduceMean"]),
    (split_mean([384], [0]), IMAGES, ["ReduceMean"]),
    (split_mean([2, 3, 8, 1, 8], [3, 4]), IMAGES, ["ReduceMean"]),
    (split_mean([2, 3, 8, 8, 1], [4]), IMAGES, ["Reshape", "ReduceMean"]),
]  # fmt: skip


@pytest.mark.parametrize(("build", "given", "names"), MEANS)
def test_means_by_hand(build, given, names):
    assert spelled(build, given) == names


@pytest.mark.parametrize(
    ("build", "given", "names"),
    [
        (split_mean([2, 3, 64], [2]), IMAGES, ["Reshape", "ReduceMean"]),
        (mean(), X, ["ReduceSum", "Div"]),
        (lambda n, x: n("Add", x, f32(0)), X, ["Add"]),
        (lambda n, x: n("Max", x, f32(0)), X, ["Max"]),
        (lambda n, x: n("Cast", n("Cast", x, to=np.dtype(np.float64)), to=np.dtype(np.float32)), X,
         ["Cast", "Cast"]),
        (lambda n, x: n("MatMul", x, n("Transpose", n("Neg", x), perm=[1, 0])), X,
         ["Neg", "Transpose", "MatMul"]),
    ],
)  # fmt: skip
def test_what_is_of_unknown_type_stays_as_it_is(build, given, names):
    # The types of inputs and outputs are declared.
    f = lambda n, x: n("Sin", build(n, n("Sin", x)))
    assert [op for op in spelled(f, given, known=False) if op != "Sin"] == names


def softmax(axis=1, summed=None, keepdims=1, of=None, last=1, nan=None, log=False):
    """Write softmax along an axis; the other settings are where it is something else."""

    def build(n, x):
        axes = [axis] if summed is None else summed
        most = n("ReduceMax", x if of is None else of, axes, keepdims=keepdims)
        if nan is not None:
            tested, value = nan
            test = n("ReduceMax" if tested else "ReduceMin", n("IsNaN", x), axes, keepdims=keepdims)
            most = n("Where", test, f32(value), most)
        shifted = n("Sub", x, most)
        e = n("Exp", shifted)
        total = n("ReduceSum", e, [last], keepdims=keepdims)
        return n("Sub", shifted, n("Log", total)) if log else n("Div", e, total)

    return build


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(
    ("settings", "given", "found"),
    [
        ({}, X, True),
        ({"axis": 0, "last": 0, "keepdims": 0}, X, True),
        ({"axis": 0, "last": 0}, X, True),
        ({"nan": (True, np.nan)}, X, True),
        ({"keepdims": 0}, SQUARE, False),
        ({"axis": 0, "last": 1}, SQUARE, False),
        ({"axis": 0, "last": 1}, X, False),
        ({"of": np.abs(X)}, X, False),
        ({"summed": [0, 1]}, X, False),
        ({"nan": (True, 0.0)}, X, False),
        ({"nan": (False, np.nan)}, X, False),
        ({"axis": 1, "last": 1, "keepdims": 0}, normal(3, 3, 3), False),
    ],
)
def test_softmax_by_hand(settings, given, found, log):
    names = spelled(softmax(**settings, log=log), given)
    assert names == ["LogSoftmax" if log else "Softmax"] if found else "Exp" in names


def test_reductions_along_axes_that_are_given_stay():
    rows = {"shape": (4, 1), "keepdims": 1}
    div = lambda n, x, y, whole=True: n("Div", x, y, shape=(4, 8) if whole else (4, 1))
    sub = lambda n, x, y: n("Sub", x, y, shape=(4, 8))
    exp = lambda n, x, y: n("Exp", sub(n, x, y), shape=(4, 8))

    def mean(n, x, axes):
        return div(n, n("ReduceSum", x, axes, **rows), f32(8), whole=False)

    def softmax(n, x, axes):
        e = exp(n, x, n("ReduceMax", x, axes, **rows))
        return div(n, e, n("ReduceSum", e, axes, **rows))

    def of_sums(n, x, axes):
        e = exp(n, x, n("ReduceMax", x, [1], **rows))
        return div(n, e, n("ReduceSum", e, axes, **rows))

    def norm(n, x, axes):
        d = sub(n, x, n("ReduceMean", x, axes, **rows))
        variance = n("ReduceMean", n("Mul", d, d, shape=(4, 8)), axes, **rows)
        return div(n, d, n("Sqrt", n("Add", variance, f32(1e-5), shape=(4, 1)), shape=(4, 1)))

    def of_split(n, x, axes):
        split = n("Reshape", x, [4, 1, 8], shape=(4, 1, 8))
        return n("ReduceMean", split, axes, keepdims=0, shape=(4, 8))

    for build in (mean, softmax, of_sums, norm):
        names = spelled(build, X, np.array([1]))
        assert names[-1] == "Div" and not {"Softmax", *NORM} & {*names}
    assert spelled(of_split, X, np.array([1])) == ["Reshape", "ReduceMean"]


def test_softmax_of_something_else():
    def quotient(top, bottom):
        def build(n, x):
            e = n("Exp", n("Sub", x, n("ReduceMax", x, [1])))
            parts = {"e": e, "x": x, "2e": n("Mul", e, f32(2)), "exp x": n("Exp", x)}
            return n("Div", parts[top], n("ReduceSum", parts[bottom], [1]))

        return build

    assert spelled(quotient("e", "e"), X) == ["Softmax"]
    for top, bottom in (("e", "2e"), ("2e", "e"), ("x", "e"), ("exp x", "exp x")):
        assert "Softmax" not in spelled(quotient(top, bottom), X)
    log = lambda n, x: n("Sub", n("Sub", x, n("ReduceMax", x, [1])),
                         n("Log", n("ReduceSum", n("Exp", x), [1])))  # fmt: skip
    assert "LogSoftmax" not in spelled(log, X)
    log = lambda n, x: n("Sub", n("Sub", x, n("ReduceMax", x, [1])),
                         n("Log", n("ReduceSum", n("Abs", x), [1])))  # fmt: skip
    assert "LogSoftmax" not in spelled(log, X)
    log = lambda n, x: n("Sub", n("Sub", x, n("ReduceMax", x, [1])), n("ReduceSum", x, [1]))
    assert "LogSoftmax" not in spelled(log, X)


MASKED = normal(3, 5, 5)
MASKED[0, 2] = MASKED[1, :, 3] = -np.inf


def attention(fill=0.0, empty=-np.inf, tested=None, cast=None, axis=2, summed=None, mask=None,
              test="Equal", of=None, chosen=True, added=True, reduced="ReduceMax"):  # fmt: skip
    """Write attention whose rows that are masked as a whole are zero."""

    def build(n, x, v):
        if mask is not None:
            x = mask(n, x)
        most = n(reduced, x if of is None else of(n, x), [axis])
        none = n(test, most if tested is None else tested(n, most), f32(empty))
        e = n("Exp", n("Sub", x, n("Where", none, f32(fill), most) if chosen else most))
        total = n("ReduceSum", e, [axis if summed is None else summed])
        one = n("Cast", none if cast is None else n("Not", none), to=F32)
        return n("Div", n("MatMul", e, v), n("Add", total, one) if added else total)

    return build


VALUES = normal(3, 5, 5)


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({}, True),
        ({"fill": 1.0}, False),
        ({"empty": -1e30}, False),
        ({"tested": lambda n, most: n("Neg", most)}, False),
        ({"cast": "not"}, False),
        ({"test": "Less"}, False),
        ({"chosen": False}, False),
        ({"added": False}, False),
        ({"reduced": "ReduceMin"}, False),
        ({"of": lambda n, x: n("Abs", x)}, False),
        ({"summed": 1}, False),
        ({"axis": 1}, False),
    ],
)
@pytest.mark.parametrize("exact", [True, False])
def test_attention_by_hand(settings, found, exact):
    finite = normal(3, 5, 5)
    names = spelled(attention(**settings), MASKED, VALUES, feeds=[(finite, VALUES)], exact=exact)
    whole = ["Softmax", "MatMul", "Equal", "ReduceMin", "Where"]
    assert names == whole if found else "Softmax" not in names


def test_the_sum_may_come_after_the_one():
    def build(n, x, v):
        most = n("ReduceMax", x, [2])
        none = n("Equal", most, f32(-np.inf))
        e = n("Exp", n("Sub", x, n("Where", none, f32(0), most)))
        total = n("Add", n("Cast", none, to=F32), n("ReduceSum", e, [2]))
        return n("Div", n("MatMul", e, v), total)

    assert spelled(build, MASKED, VALUES)[0] == "Softmax"


TRIANGLE = np.tri(5, dtype=bool)


@pytest.mark.parametrize(
    ("mask", "left"),
    [
        (lambda n, x: n("Where", TRIANGLE, x, f32(-np.inf)), True),
        (lambda n, x: n("Where", TRIANGLE[::-1].copy(), x, f32(-np.inf)), True),
        (lambda n, x: n("Where", np.tri(5, k=-1, dtype=bool), x, f32(-np.inf)), False),
        (lambda n, x: n("Where", TRIANGLE, x, f32(-1e9)), False),
        (lambda n, x: n("Add", x, f32(np.where(TRIANGLE, 0, -np.inf))), False),
        (lambda n, x: n("Where", n("Greater", x, f32(0)), x, f32(-np.inf)), False),
    ],
)
def test_where_each_row_has_something_left_it_is_softmax_alone(mask, left):
    names = spelled(attention(mask=mask), normal(3, 5, 5), VALUES, exact=False)
    assert ("ReduceMin" not in names) == left


def test_the_diagonal_is_left_by_a_causal_mask():
    def causal(test, turned):
        def mask(n, x):
            row = n("Range", np.int64(0), n("Squeeze", n("Shape", x, start=2)), np.int64(1))
            column = n("Unsqueeze", row, [1])
            pair = (row, column) if turned else (column, row)
            return n("Where", n(test, *pair, shape=(5, 5)), x, f32(-np.inf))

        return mask

    def names(*how):
        found = spelled(attention(mask=causal(*how)), normal(3, 5, 5), VALUES, exact=False)
        return "ReduceMin" in found

    assert not names("GreaterOrEqual", False)
    assert names("GreaterOrEqual", True) and names("Greater", False)


def norm(axes=(-1,), eps=1e-5, square="Mul", of=None, pilot=0, kept=(1, 1), squeezed=False,
         turned=False, power=2.0, mean_axes=None):  # fmt: skip
    """Write a layer norm; the settings are where it is something else, or written otherwise."""

    def build(n, x):
        along = axes if mean_axes is None else mean_axes
        if pilot:
            first = n("Slice", x, [0], [pilot], [1])
            centre = n("ReduceMean", n("Sub", x, first), along, keepdims=kept[0])
            mean = n("Add", first, centre)
        else:
            mean = n("ReduceMean", x if of is None else n("Neg", x), along, keepdims=kept[0])
        d = n("Sub", x, mean)
        other = {"Pow": lambda: f32(power), "Mul": lambda: d}.get(square, lambda: n(square, d))()
        squares = n("Pow" if square == "Pow" else "Mul", d, other)
        variance = n("ReduceMean", squares, axes, keepdims=kept[1])
        if squeezed:
            variance = n("Squeeze", variance, [0])
        total = n("Add", f32(eps), variance) if turned else n("Add", variance, f32(eps))
        return n("Div", d, n("Sqrt", total))

    return build


NORM = ["LayerNormalization"]

NORMS = [
    (norm(), X, True),
    (norm(turned=True), X, True),
    (norm(square="Pow"), X, True),
    (norm(axes=(-1, -2)), X, True),
    (norm(axes=(1, 2)), WIDE, True),
    (norm(axes=(1, 2)), X[:, None], True),
    (norm(axes=(1,), squeezed=True), X[:1], True),
    (norm(pilot=1), X, True),
    (norm(pilot=1, axes=(1, 2)), X[:, :, None], True),
    (norm(square="Pow", power=3.0), np.sort(X), False),
    (norm(square="Abs"), X, False),
    (norm(of="other"), X, False),
    (norm(axes=(0,)), X, False),
    (norm(axes=(0,)), X[:, :1], True),
    (norm(axes=(0, 2)), normal(2, 3, 4), False),
    (norm(mean_axes=(0,)), X, False),
    (norm(kept=(0, 1)), SQUARE, False),
    (norm(kept=(1, 0)), SQUARE, False),
    (norm(eps=np.abs(normal(4, 1))), X, False),
    (norm(eps=np.full((1, 1, 1), 1e-5)), X, False),
    (norm(pilot=2), normal(4, 2), False),
    (norm(pilot=1, axes=(0,)), SQUARE, False),
    (norm(axes=(1,)), X[:, :1], False),
    (lambda n, x: n("Div", n("Neg", x), n("Sqrt", n("Add", n("Abs", x), f32(1)))), X, False),
]  # fmt: skip


@pytest.mark.parametrize(("build", "given", "found"), NORMS)
def test_norms_by_hand(build, given, found):
    names = spelled(build, given, rtol=1e-4)
    names = [op for op in names if op not in ("Reshape", "Squeeze")]
    assert names == NORM if found else NORM[0] not in names


def test_a_pilot_of_other_rows_and_rows_of_none_stay():
    def piloted(apart=lambda n, x, y: n("Sub", x, y), keepdims=1):
        def f(n, x, y):
            mean = n("Add", y, n("ReduceMean", apart(n, x, y), [1], keepdims=keepdims))
            d = n("Sub", x, mean)
            under = n("Add", n("ReduceMean", n("Mul", d, d), [1]), f32(1e-5))
            return n("Div", d, n("Sqrt", under))

        return f

    y = normal(4, 1)
    assert NORM[0] in spelled(piloted(), X, y, rtol=1e-4)
    assert NORM[0] not in spelled(piloted(), X[:1], y, rtol=1e-4)
    assert NORM[0] not in spelled(piloted(lambda n, x, y: n("Sub", y, x)), X, y, rtol=1e-4)
    assert NORM[0] not in spelled(
        piloted(lambda n, x, y: n("Sub", x, n("Neg", y))), X, y, rtol=1e-4
    )
    assert NORM[0] not in spelled(piloted(lambda n, x, y: n("Add", x, y)), X, y, rtol=1e-4)
    assert NORM[0] not in spelled(piloted(keepdims=0), SQUARE, y, rtol=1e-4)
    assert NORM[0] not in spelled(norm(), X[:0])


@pytest.mark.parametrize(("size", "found"), [(LARGEST, True), (LARGEST + 1, False)])
def test_a_norm_over_many_elements_would_need_as_many_ones(size, found):
    names = spelled(norm(), normal(1, size), rtol=1e-3)
    assert (names == NORM) == found


def scaled(norm_of=None, scale=SCALE, bias=None, first=False, again=False):
    def build(n, x):
        y = (norm_of or norm())(n, x)
        out = n("Mul", *((scale, y) if first else (y, scale)))
        if bias is not None:
            out = n("Add", *((bias, out) if first else (out, bias)))
        return (out, y) if again else out

    return build


@pytest.mark.parametrize(
    ("build", "names"),
    [
        (scaled(), NORM),
        (scaled(first=True), NORM),
        (scaled(bias=SHIFT), NORM),
        (scaled(bias=SHIFT, first=True), NORM),
        (scaled(again=True), [*NORM, "Mul"]),
        (scaled(scale=f32(2.5)), [*NORM, "Mul"]),
        (scaled(scale=normal(4, 1)), [*NORM, "Mul"]),
        (scaled(bias=f32(2.5)), [*NORM, "Add"]),
        (scaled(scaled(), SHIFT), [*NORM, "Mul"]),
        (scaled(scaled(bias=SHIFT), SHIFT), [*NORM, "Mul"]),
        (scaled(scaled(bias=SHIFT), SHIFT, SCALE), [*NORM, "Mul", "Add"]),
        (lambda n, x: n("Add", norm()(n, x), SHIFT), NORM),
        (lambda n, x: (y := norm()(n, x), n("Add", y, SHIFT)), [*NORM, "Add"]),
    ],
)
def test_what_a_norm_takes_in(build, names):
    assert spelled(build, X, rtol=1e-4) == names


@pytest.mark.parametrize(
    ("scale", "root", "names"),
    [(SCALE, "Sqrt", NORM), (f32(2), "Sqrt", [*NORM, "Mul"]), (SCALE, "Exp", None)],
)
@pytest.mark.parametrize("first", [False, True])
def test_a_scale_over_the_root(scale, root, names, first):
    def build(n, x):
        d = n("Sub", x, n("ReduceMean", x, [1]))
        under = n("Add", n("ReduceMean", n("Mul", d, d), [1]), f32(1e-5))
        factor = n("Div", scale, n(root, under))
        return n("Mul", *((factor, d) if first else (d, factor)))

    found = spelled(build, X, rtol=1e-4)
    assert found == names if names else NORM[0] not in found


CHANNELS = [normal(3, 1, 1) for _ in range(3)]


def batch_norm(mean=CHANNELS[0], scale=CHANNELS[1], bias=CHANNELS[2], turned=False, again=None):
    def build(n, x):
        d = n("Sub", x, mean)
        y = n("Mul", *((scale, d) if turned else (d, scale)))
        z = n("Add", *((bias, y) if turned else (y, bias)))
        return {None: z, "d": (d, z), "y": (y, z)}[again]

    return build


@pytest.mark.parametrize(
    ("build", "given", "found"),
    [
        (batch_norm(), IMAGES, True),
        (batch_norm(turned=True), IMAGES, True),
        (batch_norm(mean=CHANNELS[0][None]), IMAGES, True),
        (batch_norm(*[c.reshape(3) for c in CHANNELS]), normal(5, 3), True),
        (batch_norm(*[c.reshape(1, 3) for c in CHANNELS]), normal(5, 3), True),
        (batch_norm(again="d"), IMAGES, False),
        (batch_norm(again="y"), IMAGES, False),
        (batch_norm(scale=f32(2.0)), IMAGES, False),
        (batch_norm(bias=normal(8)), IMAGES, False),
        (batch_norm(mean=normal(8, 1)), IMAGES, False),
        (batch_norm(mean=normal(3, 8, 1)), IMAGES, False),
        (batch_norm(mean=normal(2, 3, 1, 1)), IMAGES, False),
        (batch_norm(mean=normal(1, 1, 3, 1, 1)), IMAGES, False),
        (batch_norm(*[c.reshape(3) for c in CHANNELS]), normal(3), False),
    ],
)
def test_statistics_by_channel(build, given, found):
    names = spelled(build, given)
    assert names == ["BatchNormalization"] if found else "BatchNormalization" not in names


def product(op, other, by="MatMul", first=False, weights=W86, bias=None, again=False, **attributes):
    """Write a product with constant weights, and an operator with another constant."""

    def build(n, x):
        rest = [] if bias is None else [bias]
        y = n(by, x, weights, *rest, **attributes)
        z = n(op, *((other, y) if first else (y, other)))
        return (y, z) if again else z

    return build


B6, LINE = normal(6), normal(6)
C4 = normal(4, 1, 1)
TURNED = normal(3, 4, 2, 2)

AFFINE = [
    (product("Add", B6), X, ["Gemm"]),
    (product("Add", B6, first=True), X, ["Gemm"]),
    (product("Add", B6[None]), X, ["Gemm"]),
    (product("Add", f32(1.5)), X, ["Gemm"]),
    (product("Sub", B6), X, ["Gemm"]),
    (product("Sub", B6, first=True), X, ["MatMul", "Sub"]),
    (product("Mul", B6), X, ["MatMul"]),
    (product("Mul", f32(1.5), first=True), X, ["MatMul"]),
    (product("Div", B6), X, ["MatMul"]),
    (product("Div", B6, first=True), X, ["MatMul", "Div"]),
    (product("Div", f32([1, 2, 0, 3, 4, 5])), X, ["MatMul", "Div"]),
    (product("Mul", f32([1, 2, 0, 3, 4, 5])), X, ["MatMul"]),
    (product("Mul", f32([1, 2, np.inf, 3, 4, 5])), X, ["MatMul", "Mul"]),
    (product("Add", normal(4, 1)), X, ["MatMul", "Add"]),
    (product("Mul", normal(4, 1)), X, ["MatMul", "Mul"]),
    (product("Add", normal(6, 1), weights=normal(8, 6)), normal(6, 8), ["MatMul", "Add"]),
    (product("Add", f32(np.ones((1, 1, 6)))), X, ["MatMul", "Add"]),
    (product("Add", B6, again=True), X, ["MatMul", "Add"]),
    (product("Add", B6), normal(2, 4, 8), ["MatMul", "Add"]),
    (product("Mul", B6), normal(2, 4, 8), ["MatMul"]),
    (product("Mul", B6), normal(8), ["MatMul", "Mul"]),
    (product("Mul", B6, weights=normal(2, 8, 6)), normal(2, 4, 8), ["MatMul", "Mul"]),
    (product("Add", B6, "Gemm", bias=LINE), X, ["Gemm"]),
    (product("Sub", B6, "Gemm", bias=LINE), X, ["Gemm"]),
    (product("Mul", B6, "Gemm", bias=LINE), X, ["Gemm"]),
    (product("Div", B6, "Gemm", bias=LINE), X, ["Gemm"]),
    (product("Add", B6, "Gemm", weights=W86.T.copy(), transB=1), X, ["Gemm"]),
    (product("Mul", B6, "Gemm", weights=W86.T.copy(), transB=1, bias=LINE), X, ["Gemm"]),
    (product("Add", C4, "Conv", weights=KERNEL), IMAGES, ["Conv"]),
    (product("Add", C4[None], "Conv", weights=KERNEL, bias=normal(4)), IMAGES, ["Conv"]),
    (product("Sub", C4, "Conv", weights=KERNEL, strides=[2, 2]), IMAGES, ["Conv"]),
    (product("Mul", C4, "Conv", weights=KERNEL, bias=normal(4)), IMAGES, ["Conv"]),
    (product("Div", C4, "Conv", weights=KERNEL), IMAGES, ["Conv"]),
    (product("Mul", f32(2.5), "Conv", weights=KERNEL, pads=[1] * 4), IMAGES, ["Conv"]),
    (product("Mul", normal(6), "Conv", weights=KERNEL), IMAGES, ["Conv", "Mul"]),
    (product("Add", normal(4), "Conv", weights=normal(4, 3, 5, 5)), IMAGES, ["Conv", "Add"]),
    (product("Add", normal(4, 1), "Conv", weights=normal(4, 3, 5, 5)), IMAGES, ["Conv", "Add"]),
    (product("Add", normal(1, 4), "Conv", weights=normal(4, 3, 5, 5)), IMAGES, ["Conv", "Add"]),
    (product("Mul", normal(1, 4), "Conv", weights=normal(4, 3, 5, 5)), IMAGES, ["Conv", "Mul"]),
    (product("Add", C4, "ConvTranspose", weights=TURNED), IMAGES, ["ConvTranspose"]),
    (product("Mul", C4, "ConvTranspose", weights=TURNED, bias=normal(4)), IMAGES,
     ["ConvTranspose"]),
    (product("Add", normal(12, 1, 1), "ConvTranspose", weights=TURNED, group=3), IMAGES,
     ["ConvTranspose"]),
    (product("Mul", normal(12, 1, 1), "ConvTranspose", weights=TURNED, group=3), IMAGES,
     ["ConvTranspose", "Mul"]),
    (lambda n, x: n("Add", n("MatMul", x, n("Transpose", n("Neg", x), perm=[1, 0])), f32(2)), X,
     ["Neg", "Transpose", "MatMul", "Add"]),
    (lambda n, x: n("Mul", n("MatMul", x, W86), B6), X[0], ["MatMul", "Mul"]),
    (lambda n, x: n("Add", n("MatMul", x, W86), B6), X[0], ["MatMul", "Add"]),
    (lambda n, x: (n("MatMul", x, W86), n("Mul", n("MatMul", n("Neg", x), W86), B6)), X,
     ["MatMul", "Neg", "MatMul", "Mul"]),
]  # fmt: skip


def test_a_bias_that_is_computed_takes_nothing():
    f = lambda n, x, y: n("Add", n("Gemm", x, W86, n("Neg", y)), B6)
    assert spelled(f, X, LINE) == ["Neg", "Gemm", "Add"]


@pytest.mark.parametrize(("build", "given", "names"), AFFINE)
def test_constants_go_into_weights(build, given, names):
    assert spelled(build, given, rtol=1e-4) == names


def padded(amounts, by="Conv", value=0.0, window=(3, 3), mode=None, **attributes):
    def build(n, x):
        y = n("Pad", x, amounts, f32(value), **({} if mode is None else {"mode": mode}))
        weights = [KERNEL] if by == "Conv" else []
        return n(by, y, *weights, kernel_shape=[*window], **attributes)

    return build


@pytest.mark.parametrize(
    ("build", "names"),
    [
        (padded([0, 0, 1, 2, 0, 0, 0, 1]), ["Conv"]),
        (padded([0, 0, 1, 2, 0, 0, 0, 1], pads=[1, 0, 0, 2]), ["Conv"]),
        (padded([0, 0, 1, 2, 0, 0, 0, 1], strides=[2, 1]), ["Conv"]),
        (padded([0, 0, 1, 2, 0, 0, 0, 1], value=1.0), ["Pad", "Conv"]),
        (padded([0, 0, 1, 2, 0, 0, 0, 1], mode="reflect"), ["Pad", "Conv"]),
        (padded([1, 0, 1, 2, 0, 0, 0, 1]), ["Pad", "Conv"]),
        (padded([0, 0, 1, 2, 1, 0, 0, 1]), ["Pad", "Conv"]),
        (padded([0, 0, -1, 2, 0, 0, 0, 1]), ["Pad", "Conv"]),
        (padded([0, 0, 1, 2, 0, 0, 2, 1], "AveragePool", count_include_pad=1), ["AveragePool"]),
        (padded([0, 0, 3, 0, 0, 0, 0, 0], "AveragePool", count_include_pad=1),
         ["Pad", "AveragePool"]),
        (padded([0, 0, 0, 0, 0, 0, 0, 3], "AveragePool", count_include_pad=1),
         ["Pad", "AveragePool"]),
        (lambda n, x: n("Conv", n("Pad", x, [0, 0, 1, 1, 0, 0, 1, 1]), KERNEL, kernel_shape=[3, 3]),
         ["Pad", "Conv"]),
    ],
)  # fmt: skip
def test_zeros_around_an_image_are_padding(build, names):
    assert spelled(build, IMAGES, rtol=1e-4) == names


def test_amounts_of_padding_that_are_given_stay():
    def f(n, x, amounts):
        wide = n("Pad", x, amounts, f32(0), shape=(2, 3, 9, 10))
        return n("Conv", wide, KERNEL, kernel_shape=[3, 3], shape=(2, 4, 7, 8))

    amounts = np.array([0, 0, 0, 1, 0, 0, 1, 1])
    assert spelled(f, IMAGES, amounts, rtol=1e-4) == ["Pad", "Conv"]


def test_a_stack_of_matrices_is_not_turned_by_the_product():
    stack = normal(2, 200, 200)
    f = lambda n, x: (n("MatMul", x, n("Transpose", stack, perm=[0, 2, 1])), n("MatMul", x, stack))
    assert spelled(f, normal(4, 200), rtol=1e-2) == ["Transpose", "MatMul", "MatMul"]


LARGE = normal(300, 300)


def turned(by="MatMul", perm=(1, 0), bias=None, weights=LARGE, **attributes):
    rest = [] if bias is None else [bias]
    return lambda n, x: n(by, x, n("Transpose", weights, perm=[*perm]), *rest, **attributes)


@pytest.mark.parametrize(
    ("build", "given", "names"),
    [
        # A large constant that is read elsewhere, too, is not turned while it is written.
        (turned(), normal(4, 300), ["Gemm"]),
        (turned("Gemm", bias=normal(300)), normal(4, 300), ["Gemm"]),
        (turned("Gemm", bias=normal(300), alpha=0.5), normal(4, 300), ["Transpose", "Gemm"]),
        (turned(), normal(2, 4, 300), ["Transpose", "MatMul"]),
        (turned(), normal(300), ["Transpose", "MatMul"]),
    ],
)
def test_a_product_with_a_matrix_that_is_turned(build, given, names):
    f = lambda n, x: (build(n, x), n("MatMul", x, LARGE))
    found = spelled(f, given, rtol=1e-2)
    assert found[: len(names)] == names


def test_a_matrix_that_is_computed_is_turned_as_it_is():
    f = lambda n, x, y: n("MatMul", x, n("Transpose", n("Neg", y), perm=[1, 0]))
    assert spelled(f, X, normal(5, 8)) == ["Neg", "Transpose", "MatMul"]


TABLE = normal(10, 4)
TOKENS = np.array([[1, 2, -1], [9, 0, -10]], np.int32)


def embedding(nan=np.nan, top=9, low=0, tests=("GreaterOrEqual", "LessOrEqual"), wrapped=10,
              below=0, of=None, more="Add"):  # fmt: skip
    """Write rows by indices, from the end where they are negative, and NaN where out of range."""

    def build(n, i):
        turned = n("Where", n("Less", i, np.int32(below)), n(more, i, np.int32(wrapped)), i)
        place = n("Cast", turned, to=I64)
        inside = n("And", n(tests[0], place, np.int64(0)), n(tests[1], place, np.int64(9)))
        start = place if of is None else n("Neg", place)
        rows = n("Gather", TABLE, n("Clip", start, np.int64(low), np.int64(top)), axis=0)
        return n("Where", n("Unsqueeze", inside, [2]), rows, f32(nan))

    return build


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({}, ["Gather"]),
        ({"nan": 0.0}, ["Gather"]),
        ({"wrapped": 9}, ["Less", "Add", "Where", "Cast", "Gather"]),
        ({"below": 1}, ["Less", "Add", "Where", "Cast", "Gather"]),
        ({"more": "Mul"}, ["Less", "Mul", "Where", "Cast", "Gather"]),
        ({"nan": 1.0}, None),
        ({"top": 8}, None),
        ({"low": 1}, None),
        ({"tests": ("Greater", "LessOrEqual")}, None),
        ({"of": "other"}, None),
    ],
)
def test_rows_by_indices(settings, found):
    # Of indices in range: the operator ends in an error for others.
    tokens = np.abs(TOKENS) % 9 + 1 if {"wrapped", "below", "more"} & {*settings} else TOKENS
    names = spelled(embedding(**settings), tokens, exact=False)
    assert names == found if found else "Clip" in names
    assert "Clip" in spelled(embedding(**settings), tokens)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(
    ("op", "how", "shape"),
    [("Reshape", {}, [6, 1]), ("Transpose", {"perm": [0, 2, 1]}, [2, 1, 3])],
)
def test_rows_by_indices_that_are_viewed(op, how, shape, exact):
    def build(n, i):
        inside = n("And", n("GreaterOrEqual", i, np.int32(0)), n("LessOrEqual", i, np.int32(9)))
        rows = n("Gather", TABLE, n("Clip", i, np.int32(0), np.int32(9)), axis=0)
        rows = n(op, rows, *([[6, 4]] if op == "Reshape" else []), **how)
        return n("Where", n("Reshape", inside, shape), rows, f32(np.nan))

    names = spelled(build, np.abs(TOKENS) % 10, exact=exact)
    assert names == (
        ["Clip", "Gather", op, "Equal", "Reshape", "Where"] if exact else ["Gather", op]
    )


@pytest.mark.parametrize(
    ("index", "attributes", "names"),
    [
        (TOKENS[:, :1], {}, ["Squeeze", "Gather"]),
        (TOKENS[:, :, None], {}, ["Squeeze", "Gather"]),
        (np.array([[0, 1], [3, 2]]), {}, ["GatherND"]),
        (np.array([[1], [2], [3], [0]]), {"batch_dims": 1}, ["GatherND"]),
    ],
)
def test_rows_by_one_index_each(index, attributes, names):
    data = normal(10, 4) if not attributes else normal(4, 5)
    f = lambda n, x, i: n("GatherND", x, i, **attributes)
    assert spelled(f, data, index.astype(np.int64)) == names


@pytest.mark.parametrize("index", [2, -1, 9])
def test_a_column_of_any_number_of_rows(index):
    f = lambda x, i: snp.take(x, i, axis=1, mode="fill")
    places = np.int32(index)
    names = agrees(f, X, places, dynamic_axes=({0: "n"}, None))
    assert names == ["Less", "Add", "Where", "Cast", "Clip", "Gather", "Equal", "Where"]
    if index < 8:  # the operator ends in an error for others
        names = agrees(f, X, places, dynamic_axes=({0: "n"}, None), exact=False)
        assert names == ["Less", "Add", "Where", "Cast", "Gather"]


ONE_INDEX = np.array([[1], [2], [0]])


@pytest.mark.parametrize(
    ("build", "given"),
    [
        *[(build, [given]) for build, given, _ in MEANS[-8:]],
        (softmax(), [X]),
        (softmax(log=True, nan=(True, np.nan)), [X]),
        (attention(), [MASKED, VALUES]),
        (attention(mask=lambda n, x: n("Where", TRIANGLE, x, f32(-np.inf))),
         [normal(3, 5, 5), VALUES]),
        (norm(), [X]),
        (norm(pilot=1), [X]),
        (norm(axes=(1,), squeezed=True), [X[:1]]),
        (scaled(bias=SHIFT), [X]),
        (batch_norm(), [IMAGES]),
        (product("Add", B6), [X]),
        (lambda n, x: product("Add", B6)(n, n("Relu", x)), [X]),
        (lambda n, x: product("Mul", B6)(n, n("Relu", x)), [X]),
        (lambda n, x: product("Add", C4, "Conv", weights=KERNEL)(n, n("Relu", x)), [IMAGES]),
        (lambda n, x: padded([0, 0, 1, 2, 0, 0, 0, 1])(n, n("Relu", x)), [IMAGES]),
        (lambda n, x: (y := n("Relu", x), turned()(n, y), n("MatMul", y, LARGE))[1:],
         [normal(4, 300)]),
        (embedding(), [np.abs(TOKENS) % 10]),
        (lambda n, x, i: n("GatherND", x, n("Abs", i)), [TABLE, ONE_INDEX]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("exact", [True, False])
def test_a_tensor_may_be_of_unknown_type(build, given, exact):
    spelled_without_a_type(build, *given, exact=exact, rtol=1e-3)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize(
    ("op", "element", "either"),
    [
        ("Add", 0, True),
        ("Mul", 1, True),
        ("Max", -np.inf, True),
        ("Min", np.inf, True),
        ("Sub", 0, False),
        ("Div", 1, False),
    ],
)
def test_elements_that_change_nothing(op, element, either, first):
    """On either side, of operators for which the sides are alike; else as the second alone."""
    for value in (element, 2):
        y = f32(value)
        build = lambda n, x, y=y: n(op, *((y, x) if first else (x, y)))
        nothing = value == element and (either or not first)
        assert (spelled(build, X) == ["Identity"]) is nothing


@pytest.mark.parametrize(
    ("op", "element", "last"),
    [
        ("Add", 0.0, False),
        ("Sub", 0.0, True),
        ("Mul", 1.0, False),
        ("Div", 1.0, True),
        ("Max", -np.inf, False),
        ("Min", np.inf, False),
    ],
)
def test_what_leaves_an_operand_as_it_is_goes(op, element, last):
    """On either side, but of those whose operands have an order; and no other number does."""
    x = normal(4, 8) + 3
    other = 0.5 if np.isinf(element) else element + 1
    assert spelled(lambda n, x: n(op, x, f32(element)), x) == ["Identity"]
    turned = spelled(lambda n, x: n(op, f32(element), x), x)
    assert (turned == ["Identity"]) == (not last)
    assert "Identity" not in spelled(lambda n, x: n(op, x, f32(other)), x)
