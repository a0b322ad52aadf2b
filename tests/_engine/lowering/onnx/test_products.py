"""Products, convolutions, transforms and windows, at random shapes."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import enable_x64, lax, nn
from stretto.errors import ExportError
from tests.export.running import agrees, exported, operators

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape).astype("float32")


def test_a_product_with_a_matrix_is_one_node():
    model = agrees(lambda x, w: x @ w, normal(2, 4, 3), normal(3, 5))
    assert operators(model) == {"MatMul": 1}


@pytest.mark.parametrize(
    "equation",
    ["ij,jk->ik", "ij,kj->ik", "bij,bjk->bik", "bij,jk->bik", "ijk,jk->i", "ij,ij->", "i,j->ij",
     "abij,ajbk->kiab", "bi,bi->b", "ij,k->ijk", "ijab,abk->kij"],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "int32", "complex64", "bfloat16"])
def test_contractions(equation, dtype):
    sizes = dict(zip("abijk", (2, 3, 4, 5, 6), strict=True))
    left, right = equation.partition("->")[0].split(",")
    x, y = [normal(*[sizes[c] for c in part]) * 4 for part in (left, right)]
    if dtype == "complex64":
        x, y = x + 1j * x[::-1], (y - 1j * y).astype(dtype)

    def f(x, y):
        x, y = x.astype(dtype), y.astype(dtype)
        out = snp.einsum(equation, x, y)
        return out.astype("float32") if dtype == "bfloat16" else out

    agrees(f, x, y, rtol=2e-5)


def convolutions():
    rng = np.random.default_rng(1)
    for _ in range(24):
        n = int(rng.integers(1, 4))
        groups = int(rng.choice([1, 1, 2, 3]))
        yield {
            "n": n,
            "groups": groups,
            "window": [int(v) for v in rng.integers(1, 4, n)],
            "window_strides": [int(v) for v in rng.integers(1, 3, n)],
            "padding": [tuple(int(v) for v in rng.integers(-1, 3, 2)) for _ in range(n)],
            "lhs_dilation": [int(v) for v in rng.choice([1, 1, 2], n)],
            "rhs_dilation": [int(v) for v in rng.choice([1, 1, 2], n)],
        }


@pytest.mark.parametrize("how", [*convolutions()], ids=map(str, range(24)))
def test_random_convolutions(how):
    how = dict(how)
    n, groups = how.pop("n"), how.pop("groups")
    x = normal(2, 2 * groups, *[9 - n] * n)
    w = normal(3 * groups, 2, *how.pop("window"))
    agrees(lambda x, w: lax.conv_general_dilated(x, w, feature_group_count=groups, **how), x, w,
           rtol=2e-5)  # fmt: skip


def test_both_gradients_of_a_convolution():
    def loss(x, w):
        return (lax.conv_general_dilated(x, w, (2, 1), "SAME") ** 2).sum()

    agrees(st.grad(loss, (0, 1)), normal(2, 3, 6, 7), normal(4, 3, 3, 2), rtol=5e-5)


def test_members_convolve_in_one_node():
    x, w = normal(2, 3, 6, 6), normal(5, 4, 3, 3, 3)
    model = agrees(st.vmap(lambda x, w: lax.conv(x, w, (1, 1), "SAME"), (None, 0)), x, w)
    assert operators(model)["Conv"] == 1


def test_convolutions_in_float64_are_products():
    with enable_x64():
        x, w = normal(2, 4, 6).astype("float64"), normal(6, 2, 3).astype("float64")
        f = lambda x, w: lax.conv_general_dilated(x, w, (1,), "SAME", feature_group_count=2)
        assert not operators(agrees(f, x, w, rtol=1e-12))["Conv"]


def test_layouts_of_channels_last():
    f = lambda x, w: lax.conv_general_dilated(
        x, w, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    agrees(f, normal(2, 6, 7, 3), normal(3, 2, 3, 4), rtol=2e-5)


@pytest.mark.parametrize("shape", [(8,), (3, 6), (2, 5, 4)])
@pytest.mark.parametrize("wide", [False, True])
def test_transforms(shape, wide):
    with enable_x64(wide):
        x = normal(*shape).astype("float64" if wide else "float32")
        axes = tuple(range(max(0, len(shape) - 2), len(shape)))
        f = lambda x: (
            snp.fft.fftn(x, axes=axes),
            snp.fft.ifftn(x, axes=axes),
            snp.fft.rfftn(x, axes=axes),
            snp.fft.irfftn(snp.fft.rfftn(x, axes=axes) * 1j, s=[shape[a] for a in axes], axes=axes),
        )
        agrees(f, x, rtol=1e-12 if wide else 2e-5)


def test_a_long_transform_in_float64_is_refused():
    with enable_x64(), pytest.raises(ExportError, match="use float32, or up to 2048 points"):
        exported(snp.fft.fft, np.ones(5000))


def test_pooling():
    x = normal(2, 3, 9, 8)
    agrees(nn.MaxPool2d(3, stride=2, padding=1), x)
    agrees(nn.AvgPool2d(2), x)
    fast = exported(nn.MaxPool2d(3, stride=2, padding=1), x, exact=False)
    assert operators(fast)["MaxPool"] == 1
    agrees(st.grad(lambda x: (nn.MaxPool2d(2)(x) ** 2).sum()), x)


def test_windows_of_any_size():
    f = lambda x: snp.stack([x[:-2], x[1:-1], x[2:]]).max(0)
    model = exported(f, normal(6), dynamic_axes=({0: "n"},))
    assert len(model.graph.input) == 1
