"""Activations, softmax, one-hot coding: PyTorch's values and slopes, at corners too; messages."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

import stretto as st
import stretto.numpy as snp
from stretto import laws, nn
from stretto.laws import f32
from stretto.nn import functional as F

X = [-6.0, -3.0, -1.0, -0.5, 0.0, 0.5, 3.0, 6.0]


def same_as_pytorch(case):
    name, settings, values, slopes = case

    def f(x):
        return getattr(F, name)(x, **settings)

    x, both = snp.array(X), st.vmap(st.value_and_grad(f))
    np.testing.assert_allclose(f(x), values, rtol=1e-5, atol=1e-5)
    for wrap in (lambda f: f, st.jit):
        got = wrap(both)(x)
        np.testing.assert_allclose(got[0], values, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(got[1], slopes, rtol=1e-5, atol=1e-5)


def finite_at_extremes(case):
    name, settings, *_ = case

    def f(x):
        return getattr(F, name)(x, **settings)

    x = snp.array([-1e10, -1e4, 1e4, 1e10])
    assert np.isfinite(st.vmap(st.grad(f))(x)).all()
    for kind in (snp.bfloat16, snp.float16):
        assert f(snp.array([-0.5, 2.0], kind)).dtype == kind


def nan_stays(case):
    name, settings, *_ = case
    assert np.isnan(getattr(F, name)(snp.array(np.nan), **settings).item()), name


# From PyTorch 2.13.0 in float64: for x = torch.tensor(X) of ``activations``, and f of this name in
# torch.nn.functional, y = f(x, **settings); y.sum().backward(); (y, x.grad) to five digits.
PIECEWISE_FIGURES = [
    (
        "relu",
        {},
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 3.0, 6.0],
        [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0],
    ),
    (
        "relu6",
        {},
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 3.0, 6.0],
        [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0],
    ),
    (
        "leaky_relu",
        {},
        [-0.06, -0.03, -0.01, -0.005, 0.0, 0.5, 3.0, 6.0],
        [0.01, 0.01, 0.01, 0.01, 0.01, 1.0, 1.0, 1.0],
    ),
    (
        "elu",
        {},
        [-0.99752, -0.95021, -0.63212, -0.39347, 0.0, 0.5, 3.0, 6.0],
        [0.00248, 0.04979, 0.36788, 0.60653, 1.0, 1.0, 1.0, 1.0],
    ),
    (
        "selu",
        {},
        [-1.75374, -1.67057, -1.11133, -0.69176, 0.0, 0.52535, 3.1521, 6.30421],
        [0.00436, 0.08753, 0.64677, 1.06634, 1.7581, 1.0507, 1.0507, 1.0507],
    ),
    (
        "celu",
        {},
        [-0.99752, -0.95021, -0.63212, -0.39347, 0.0, 0.5, 3.0, 6.0],
        [0.00248, 0.04979, 0.36788, 0.60653, 1.0, 1.0, 1.0, 1.0],
    ),
    (
        "hardtanh",
        {},
        [-1.0, -1.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.0],
        [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0],
    ),
    (
        "hardswish",
        {},
        [0.0, 0.0, -0.33333, -0.20833, 0.0, 0.29167, 3.0, 6.0],
        [0.0, 0.0, 0.16667, 0.33333, 0.5, 0.66667, 1.0, 1.0],
    ),
    (
        "hardsigmoid",
        {},
        [0.0, 0.0, 0.33333, 0.41667, 0.5, 0.58333, 1.0, 1.0],
        [0.0, 0.0, 0.16667, 0.16667, 0.16667, 0.16667, 0.0, 0.0],
    ),
    (
        "softshrink",
        {},
        [-5.5, -2.5, -0.5, 0.0, 0.0, 0.0, 2.5, 5.5],
        [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0],
    ),
    (
        "hardshrink",
        {},
        [-6.0, -3.0, -1.0, 0.0, 0.0, 0.0, 3.0, 6.0],
        [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0],
    ),
    (
        "rrelu",
        {},
        [-1.375, -0.6875, -0.22917, -0.11458, 0.0, 0.5, 3.0, 6.0],
        [0.22917, 0.22917, 0.22917, 0.22917, 0.22917, 1.0, 1.0, 1.0],
    ),
    (
        "leaky_relu",
        {"negative_slope": 0.3},
        [-1.8, -0.9, -0.3, -0.15, 0.0, 0.5, 3.0, 6.0],
        [0.3, 0.3, 0.3, 0.3, 0.3, 1.0, 1.0, 1.0],
    ),
    (
        "elu",
        {"alpha": 1.7},
        [-1.69579, -1.61536, -1.0746, -0.6689, 0.0, 0.5, 3.0, 6.0],
        [0.00421, 0.08464, 0.6254, 1.0311, 1.7, 1.0, 1.0, 1.0],
    ),
    (
        "celu",
        {"alpha": 0.6},
        [-0.59997, -0.59596, -0.48667, -0.33924, 0.0, 0.5, 3.0, 6.0],
        [5e-05, 0.00674, 0.18888, 0.4346, 1.0, 1.0, 1.0, 1.0],
    ),
    (
        "hardtanh",
        {"min_val": -0.5, "max_val": 3.0},
        [-0.5, -0.5, -0.5, -0.5, 0.0, 0.5, 3.0, 3.0],
        [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0],
    ),
    (
        "threshold",
        {"threshold": 0.5, "value": 7.0},
        [7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 3.0, 6.0],
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0],
    ),
    (
        "softshrink",
        {"lambd": 1.0},
        [-5.0, -2.0, 0.0, 0.0, 0.0, 0.0, 2.0, 5.0],
        [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0],
    ),
    (
        "hardshrink",
        {"lambd": 1.0},
        [-6.0, -3.0, 0.0, 0.0, 0.0, 0.0, 3.0, 6.0],
        [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0],
    ),
    (
        "rrelu",
        {"lower": 0.1, "upper": 0.2},
        [-0.9, -0.45, -0.15, -0.075, 0.0, 0.5, 3.0, 6.0],
        [0.15, 0.15, 0.15, 0.15, 0.15, 1.0, 1.0, 1.0],
    ),
]
PIECEWISE_IDS = [f"{case[0]}-{i}" for i, case in enumerate(PIECEWISE_FIGURES)]


@pytest.mark.parametrize("case", PIECEWISE_FIGURES, ids=PIECEWISE_IDS)
def test_equals_pytorch_piecewise(case):
    same_as_pytorch(case)


@pytest.mark.parametrize("case", PIECEWISE_FIGURES, ids=PIECEWISE_IDS)
def test_finite_at_extremes_piecewise(case):
    finite_at_extremes(case)


def test_not_a_number_stays_piecewise():
    for case in PIECEWISE_FIGURES:
        nan_stays(case)


def test_integers_piecewise():
    assert F.relu(snp.array([-1, 2])).dtype == snp.int32
    assert F.threshold(snp.array([0, 5]), 1, 9).tolist() == [9, 5]
    assert F.threshold(snp.array([0, 5]), 1, 9).dtype == snp.int32


def test_prelu():
    x = snp.array([[[-2.0, 2.0], [-4.0, 4.0]]])
    np.testing.assert_array_equal(F.prelu(x, snp.array([0.5, 0.25])), [[[-1.0, 2.0], [-1.0, 4.0]]])
    assert F.prelu(x, snp.array(0.5)).tolist() == [[[-1, 2], [-2, 4]]]
    assert F.prelu(snp.array([-2.0, -2.0]), snp.array([0.5, 1.0])).tolist() == [-1, -2]
    slope = st.grad(lambda w: F.prelu(x, w).sum())(snp.array([0.5, 0.25]))
    assert slope.tolist() == [-2, -4]
    with pytest.raises(ValueError, match=r"prelu: weight must have one .* float32\[3\] for input"):
        F.prelu(x, snp.ones(3))


def test_random_slopes():
    x, key = -snp.ones((1000,)), st.random.PRNGKey(0)
    out = -np.asarray(F.rrelu(x, 0.25, 0.75, training=True, key=key))
    assert 0.25 <= out.min() < 0.26 and 0.74 < out.max() <= 0.75 and abs(out.mean() - 0.5) < 0.02
    assert (F.rrelu(x, 0.25, 0.75, True, key=key) == -out).all()
    with st.nn.keys(key):
        first, second = (F.rrelu(x, training=True) for _ in range(2))
    assert (first != second).any()
    with pytest.raises(ValueError, match=r"rrelu: lower must not exceed upper, got 0.5 and 0.1"):
        F.rrelu(x, 0.5, 0.1)


def test_inplace_changes_nothing():
    x = snp.array([-1.0, 1.0])
    assert F.relu(x, inplace=True).tolist() == [0, 1] and x.tolist() == [-1, 1]


def test_messages_piecewise():
    x = snp.ones(2)
    with pytest.raises(ValueError, match="hardtanh: min_val must not exceed max_val, got 2 and 1"):
        F.hardtanh(x, 2, 1)
    with pytest.raises(ValueError, match="softshrink: lambd must not be negative, got -1"):
        F.softshrink(x, -1)
    with pytest.raises(TypeError, match="leaky_relu"):
        F.leaky_relu([1.0])


@pytest.mark.parametrize(
    "name", ["relu", "relu6", "elu", "selu", "celu", "hardsigmoid", "hardswish", "hardtanh"]
)
def test_a_message_names_the_function_that_was_called_piecewise(name):
    with pytest.raises(TypeError, match=f"^{name}: input must be an array"):
        getattr(F, name)([1.0])


# From PyTorch 2.13.0 in float64: for x = torch.tensor(X) of ``activations``, and f of this name in
# torch.nn.functional, y = f(x, **settings); y.sum().backward(); (y, x.grad) to five digits.
SMOOTH_FIGURES = [
    (
        "gelu",
        {},
        [0.0, -0.00405, -0.15866, -0.15427, 0.0, 0.34573, 2.99595, 6.0],
        [0.0, -0.01195, -0.08332, 0.1325, 0.5, 0.8675, 1.01195, 1.0],
    ),
    (
        "silu",
        {},
        [-0.01484, -0.14228, -0.26894, -0.18877, 0.0, 0.31123, 2.85772, 5.98516],
        [-0.01233, -0.0881, 0.07233, 0.26004, 0.5, 0.73996, 1.0881, 1.01233],
    ),
    (
        "mish",
        {},
        [-0.01485, -0.14565, -0.3034, -0.22074, 0.0, 0.37525, 2.98654, 5.99993],
        [-0.01236, -0.09339, 0.05922, 0.28951, 0.6, 0.88642, 1.02111, 1.00013],
    ),
    (
        "sigmoid",
        {},
        [0.00247, 0.04743, 0.26894, 0.37754, 0.5, 0.62246, 0.95257, 0.99753],
        [0.00247, 0.04518, 0.19661, 0.235, 0.25, 0.235, 0.04518, 0.00247],
    ),
    (
        "tanh",
        {},
        [-0.99999, -0.99505, -0.76159, -0.46212, 0.0, 0.46212, 0.99505, 0.99999],
        [2e-05, 0.00987, 0.41997, 0.78645, 1.0, 0.78645, 0.00987, 2e-05],
    ),
    (
        "softplus",
        {},
        [0.00248, 0.04859, 0.31326, 0.47408, 0.69315, 0.97408, 3.04859, 6.00248],
        [0.00247, 0.04743, 0.26894, 0.37754, 0.5, 0.62246, 0.95257, 0.99753],
    ),
    (
        "softsign",
        {},
        [-0.85714, -0.75, -0.5, -0.33333, 0.0, 0.33333, 0.75, 0.85714],
        [0.02041, 0.0625, 0.25, 0.44444, 1.0, 0.44444, 0.0625, 0.02041],
    ),
    (
        "logsigmoid",
        {},
        [-6.00248, -3.04859, -1.31326, -0.97408, -0.69315, -0.47408, -0.04859, -0.00248],
        [0.99753, 0.95257, 0.73106, 0.62246, 0.5, 0.37754, 0.04743, 0.00247],
    ),
    (
        "tanhshrink",
        {},
        [-5.00001, -2.00495, -0.23841, -0.03788, 0.0, 0.03788, 2.00495, 5.00001],
        [0.99998, 0.99013, 0.58003, 0.21355, 0.0, 0.21355, 0.99013, 0.99998],
    ),
    (
        "gelu",
        {"approximate": "tanh"},
        [0.0, -0.00364, -0.15881, -0.15429, 0.0, 0.34571, 2.99636, 6.0],
        [0.0, -0.01158, -0.08296, 0.13263, 0.5, 0.86737, 1.01158, 1.0],
    ),
    (
        "softplus",
        {"beta": 2.0, "threshold": 2.0},
        [0.0, 0.00124, 0.06346, 0.15663, 0.34657, 0.65663, 3.0, 6.0],
        [1e-05, 0.00247, 0.1192, 0.26894, 0.5, 0.73106, 1.0, 1.0],
    ),
]
SMOOTH_IDS = [f"{case[0]}-{i}" for i, case in enumerate(SMOOTH_FIGURES)]


@pytest.mark.parametrize("case", SMOOTH_FIGURES, ids=SMOOTH_IDS)
def test_equals_pytorch_smooth(case):
    same_as_pytorch(case)


@pytest.mark.parametrize("case", SMOOTH_FIGURES, ids=SMOOTH_IDS)
def test_finite_at_extremes_smooth(case):
    finite_at_extremes(case)


def test_not_a_number_stays_smooth():
    for case in SMOOTH_FIGURES:
        nan_stays(case)


def test_second_derivatives():
    for f in (F.gelu, F.softplus):
        laws.check(f, [(f32(2, 3).within(0.1, 2),)])


def test_integers_smooth():
    assert F.gelu(snp.array([1])).dtype == snp.float32


def test_glu():
    x = snp.array([[1.0, 2.0, 0.0, 0.0]])
    assert F.glu(x).tolist() == [[0.5, 1.0]]
    assert F.glu(snp.ones((4, 3)), dim=0).shape == (2, 3)
    with pytest.raises(ValueError, match="odd size"):
        F.glu(snp.ones(3))


def test_messages_smooth():
    with pytest.raises(ValueError, match="gelu: approximate must be 'none' or 'tanh', got True"):
        F.gelu(snp.ones(2), True)


@pytest.mark.parametrize(
    "name", ["gelu", "silu", "mish", "sigmoid", "logsigmoid", "tanh", "softsign", "glu"]
)
def test_a_message_names_the_function_that_was_called_smooth(name):
    with pytest.raises(TypeError, match=f"^{name}: input must be an array"):
        getattr(F, name)([1.0])


LOGITS = np.array([[1.0, -2.0, 0.5], [1000.0, 999.0, -1000.0]], np.float32)


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("wrap", [lambda f: f, st.jit], ids=["eager", "jit"])
def test_softmaxes(dim, wrap):
    for f, want in (
        (F.softmax, special.softmax(LOGITS, dim)),
        (F.softmin, special.softmax(-LOGITS, dim)),
        (F.log_softmax, special.log_softmax(LOGITS, dim)),
    ):
        np.testing.assert_allclose(wrap(lambda x, f=f: f(x, dim))(LOGITS), want, rtol=1e-5)
        slopes = st.grad(lambda x, f=f: f(x, dim)[0].sum())(snp.array(LOGITS))
        assert np.isfinite(slopes).all()


def test_dtype_of_softmaxes():
    x = snp.ones(3, snp.bfloat16)
    for f in (F.softmax, F.softmin, F.log_softmax):
        assert f(x, 0).dtype == snp.bfloat16
        assert f(x, 0, dtype=snp.float32).dtype == snp.float32


def test_gumbel_softmax():
    logits, keys = snp.log(snp.array([0.2, 0.5, 0.3])), st.random.split(st.random.PRNGKey(0), 4000)
    hard = st.vmap(lambda k: F.gumbel_softmax(logits, hard=True, key=k))(keys)
    np.testing.assert_allclose(hard.sum(1), 1, atol=1e-6)
    np.testing.assert_allclose(np.asarray(hard).max(1), 1, atol=1e-6)
    # Four standard deviations of a share of 4000 draws.
    np.testing.assert_allclose(hard.mean(0), [0.2, 0.5, 0.3], atol=0.032)

    def part(logits, hard):
        return F.gumbel_softmax(logits, 0.5, hard, key=keys[0])[0]

    soft, also = (st.grad(part)(logits, hard) for hard in (False, True))
    np.testing.assert_allclose(soft, also, rtol=1e-6)
    assert abs(float(soft[0])) > 0
    sharp = F.gumbel_softmax(logits, 1e-4, key=keys[1])
    assert float(sharp.max()) > 0.99
    by_column = F.gumbel_softmax(snp.zeros((3, 2)), dim=0, hard=True, key=keys[0])
    assert by_column.sum(0).tolist() == [1, 1]


def test_axis_has_to_be_given():
    with pytest.raises(TypeError, match="dim"):
        F.softmax(snp.ones(3))


def test_a_message_names_the_softmax_that_was_called():
    with pytest.raises(ValueError, match=r"^softmin: axis 5 is out of bounds"):
        F.softmin(snp.ones(2), 5)
    with pytest.raises(ValueError, match=r"^gumbel_softmax: axis 5 is out of bounds"):
        F.gumbel_softmax(snp.ones(2), dim=5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_gumbel_softmax_draws_each_category_as_often_as_softmax_says(dtype):
    logits = np.asarray([0, -1, -3, -7]).astype(dtype)
    n = 100_000
    x = F.gumbel_softmax(snp.broadcast_to(logits, (n, 4)), tau=0.5, hard=True, key=st.random.key(2))
    assert x.dtype == dtype
    chance = np.exp(logits.astype(np.float64))
    chance /= chance.sum()
    error = np.sqrt(n * chance * (1 - chance))
    assert (np.abs(np.asarray(x).astype(np.float64).sum(0) - n * chance) < 5 * error).all()


# Those that ``jax.nn`` has under the same name, and what PyTorch's gives of 0.5 or of ROW.
ROW = snp.array([[1.0, 2.0]])
SHARED = {
    "celu": (lambda f: f(-0.5), -0.39346934),
    "elu": (lambda f: f(-0.5), -0.39346934),
    "gelu": (lambda f: f(0.5), 0.34573123),  # by tanh, as JAX's, 0.34571400
    "glu": (lambda f: f(ROW, dim=1), 0.88079708),
    "leaky_relu": (lambda f: st.grad(f)(0.0), 0.01),  # JAX's slope at 0 is 1
    "log_softmax": (lambda f: f(ROW, dim=0)[0, 0], 0.0),
    "mish": (lambda f: f(0.5), 0.37524524),
    "relu": (lambda f: f(input=0.5, inplace=True), 0.5),
    "relu6": (lambda f: f(input=7.0, inplace=True), 6.0),
    "selu": (lambda f: f(0.5), 0.52535049),
    "sigmoid": (lambda f: f(0.5), 0.62245933),
    "silu": (lambda f: f(0.5), 0.31122967),
    "softmax": (lambda f: f(ROW, dim=0)[0, 1], 1.0),
    "softplus": (lambda f: f(0.5, beta=2.0), 0.65663084),
    "softsign": (lambda f: f(0.5), 0.33333333),
    "tanh": (lambda f: f(0.5), 0.46211716),
    "logsumexp": (lambda f: f(ROW, dim=1, keepdim=True)[0, 0], 2.31326169),
    "one_hot": (lambda f: f(snp.array([1]), 2).tolist() == [[0, 1]], 1),
}


@pytest.mark.parametrize("name", SHARED)
def test_a_name_is_one_function_with_the_meaning_of_pytorch(name):
    assert getattr(nn, name) is getattr(F, name)
    of, value = SHARED[name]
    np.testing.assert_allclose(of(getattr(nn, name)), value, rtol=1e-6)


def test_names_in_both_packages_are_all_here():
    both = {*nn.__all__} & {*F.__all__}
    assert both == SHARED.keys()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: nn.softmax(ROW, axis=-1), r"softmax\(\) .* 'axis'; it is dim here"),
        (lambda: F.log_softmax(ROW, axis=-1), r"log_softmax\(\) .* 'axis'; it is dim here"),
        (lambda: F.glu(ROW, axis=-1), r"glu\(\) .* 'axis'; it is dim here"),
        (lambda: F.normalize(ROW, axis=-1), r"normalize\(\) .* 'axis'; it is dim here"),
        (lambda: F.cosine_similarity(ROW, ROW, axis=0), r"'axis'; it is dim here"),
        (lambda: nn.logsumexp(ROW, 0, keepdims=True), r"'keepdims'; it is keepdim here"),
        (lambda: F.layer_norm(ROW, 2, epsilon=1e-3), r"'epsilon'; it is eps here"),
        (lambda: F.softmax(x=ROW, dim=0), r"softmax\(\) .* 'x'; it is input here"),
        (lambda: nn.one_hot([1], 2, dtype=float), r"integers, use `\.astype\(dtype\)`"),
        (lambda: nn.Softmax(axis=1), "Softmax has no argument 'axis'; it is dim here"),
        (lambda: nn.LayerNorm(2, epsilon=1e-3), "LayerNorm has no argument 'epsilon'; it is eps"),
    ],
)
def test_another_spelling_is_answered_with_the_one_here(call, words):
    with pytest.raises(TypeError, match=words):
        call()
    with pytest.raises(TypeError, match=words):
        st.jit(call)()


def test_functions_of_jax_alone_name_those_here():
    for name, instead in (("swish", "nn.silu"), ("hard_tanh", "nn.functional.hardtanh")):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}': use `{instead}`"):
            getattr(nn, name)


def test_one_hot():
    at = snp.array([[0, 2], [1, 1]])
    want = np.eye(3, dtype=np.int32)[np.asarray(at)]
    compiled = st.jit(nn.one_hot, static_argnums=1)
    mapped = st.vmap(lambda x: nn.one_hot(x, 3))
    for out in (nn.one_hot(at, 3), compiled(at, 3), mapped(at)):
        assert out.dtype == snp.int32
        np.testing.assert_array_equal(out, want)
    assert nn.one_hot(at).shape == (2, 2, 3) and nn.one_hot([], 3).shape == (0, 3)
    assert nn.one_hot([[0], [2]], 3).tolist() == [[[1, 0, 0]], [[0, 0, 1]]]
    for wrong in ([3], [-1]):
        with pytest.raises(ValueError, match=r"one_hot: .* must be from 0 to 2"):
            nn.one_hot(wrong, 3)
    with pytest.raises(TypeError, match=r"one_hot: input must be integers, .* got float32\[1\]"):
        nn.one_hot([0.5], 3)


def test_logsumexp():
    for dim in (0, 1, -1, (0, 1), None):
        for keep in (False, True):
            got = nn.logsumexp(LOGITS, dim, keep)
            want = special.logsumexp(LOGITS, dim, keepdims=keep)
            np.testing.assert_allclose(got, want, rtol=1e-6)
