"""Products, convolutions, transforms and windows, at random shapes."""

import ml_dtypes
import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import enable_x64, export, lax, nn
from stretto._engine.core.sizes import is_size
from stretto._engine.core.types import array_type
from stretto._engine.lowering.onnx import products
from stretto._engine.lowering.onnx.graph import Operand
from stretto._engine.lowering.onnx.products import _accumulator
from stretto._engine.lowering.onnx.spelling import spell
from stretto.errors import ExportError
from tests.export.running import agrees, exported, operators, run
from tests.onnx_graphs import spelling, written

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


SAID = [
    (nn.Conv2d(3, 4, 3), {}),
    (nn.Conv2d(3, 4, (3, 2), padding=(0, 1)), {"pads": [0, 1, 0, 1]}),
    (nn.Conv2d(3, 4, 3, padding=(1, 0)), {"pads": [1, 0, 1, 0]}),
    (nn.Conv2d(3, 4, 3, stride=(1, 2)), {"strides": [1, 2]}),
    (nn.Conv2d(3, 4, 3, dilation=(2, 1)), {"dilations": [2, 1]}),
    (nn.Conv2d(3, 6, 3, groups=3), {"group": 3}),
    (nn.ConvTranspose2d(3, 4, 3, 2), {"strides": [2, 2]}),
    (nn.ConvTranspose2d(3, 4, 3, 2, padding=(1, 0)), {"strides": [2, 2], "pads": [1, 0, 1, 0]}),
    (nn.ConvTranspose2d(3, 4, 3, 2, output_padding=(0, 1)),
     {"strides": [2, 2], "output_padding": [0, 1]}),
    (nn.ConvTranspose2d(3, 4, 3, 2, padding=1, output_padding=1),
     {"strides": [2, 2], "pads": [1, 1, 0, 0]}),
    (nn.ConvTranspose2d(3, 4, 3, 2, dilation=(2, 1)), {"strides": [2, 2], "dilations": [2, 1]}),
    (nn.ConvTranspose2d(3, 6, 3, 2, groups=3), {"strides": [2, 2], "group": 3}),
    (nn.Conv1d(3, 4, 3), {}),
    (nn.Conv3d(3, 4, 3), {}),
    (nn.ConvTranspose1d(3, 4, 3, 2), {"strides": [2]}),
    (nn.ConvTranspose3d(3, 4, 2, 2), {"strides": [2, 2, 2]}),
    (nn.AvgPool1d(2, 1), {}),
    (nn.AvgPool3d(2, 1), {}),
    (nn.AvgPool2d(2, 1), {}),
    (nn.AvgPool2d(2), {"strides": [2, 2]}),
    (nn.AvgPool2d(3, 1, 1), {"pads": [1, 1, 1, 1], "count_include_pad": 1}),
    (nn.MaxPool2d(2, 1), {}),
    (nn.MaxPool2d((2, 3), (1, 2)), {"strides": [1, 2]}),
    (nn.MaxPool2d(3, 1, (0, 1)), {"pads": [0, 1, 0, 1]}),
    (nn.MaxPool2d(2, 1, dilation=(1, 2)), {"dilations": [1, 2]}),
]  # fmt: skip


@pytest.mark.parametrize(("layer", "said"), SAID)
def test_attributes_are_what_differs_from_how_it_is_without(layer, said):
    ndim = int(type(layer).__name__[-2])
    x = normal(2, 3, 7, 8, 4)[(slice(None),) * (2 + ndim) + (0,) * (3 - ndim)]
    model = agrees(layer, x, rtol=2e-5, exact=not isinstance(layer, nn.MaxPool2d))
    ops = ("Conv", "ConvTranspose", "AveragePool", "MaxPool")
    (node,) = [n for n in model.graph.node if n.op_type in ops]
    found = {a.name: list(a.ints) or a.i for a in node.attribute}
    assert len(found.pop("kernel_shape")) == ndim and found == said


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


# Products


F32 = np.dtype(np.float32)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("float16", "float32"), ("bfloat16", "float32"), ("float32", "float32"),
     ("float64", "float64"), ("complex64", "complex64"), ("int8", "int32"), ("uint16", "int32"),
     ("uint32", "int32"), ("int32", "int32"), ("int64", "int64"), ("uint64", "int64")],
)  # fmt: skip
def test_the_dtype_of_sums_of_products(dtype, expected):
    assert _accumulator(np.dtype(getattr(ml_dtypes, dtype, dtype))) == np.dtype(expected)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "uint32", "int64", "uint64", "float16"])
def test_products_of_each_dtype(dtype):
    x, y = (np.arange(12) % 5).astype(dtype), (np.arange(20) * 3 % 7).astype(dtype)
    with enable_x64():
        agrees(lambda x, y: x @ y, x.reshape(3, 4), y.reshape(4, 5))
        agrees(lambda x: x @ x, x)


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_products_of_wide_integers_keep_all_their_digits(dtype):
    x = np.array([[2**40 + 1, 3], [5, 2**33 + 7]], dtype)
    with enable_x64():
        agrees(lambda x: x @ x, x)
        agrees(lambda x, y: lax.dot(x, y, preferred_element_type=dtype), x < 9, x)


def test_integers_wrap_around_in_products():
    x = np.array([[2**30, 3], [-(2**31), 2**29]], "int32")
    agrees(lambda x: x @ x, x)
    agrees(lambda x: x.astype("int8") @ x.astype("int8"), x // 2**20 + 100)


@pytest.mark.parametrize(
    ("shapes", "how"),
    [
        (((4, 3), (3,)), (((1,), (0,)), ((), ()))),
        (((3,), (3, 5)), (((0,), (0,)), ((), ()))),
        (((3,), (3,)), (((0,), (0,)), ((), ()))),
        (((3, 4), (3, 5)), (((0,), (0,)), ((), ()))),
        (((2, 4, 3), (2, 3, 5)), (((2,), (1,)), ((0,), (0,)))),
        (((4, 2, 3), (3, 2, 5)), (((2,), (0,)), ((1,), (1,)))),
        (((2, 3), (2, 3)), (((1,), (1,)), ((0,), (0,)))),
        (((2, 3), (2, 3)), (((), ()), ((0,), (0,)))),
        (((2, 3), (4,)), (((), ()), ((), ()))),
        (((2, 3, 4), (4, 3, 5)), (((1, 2), (1, 0)), ((), ()))),
        (((2, 3, 4, 5), (3, 2, 5)), (((3,), (2,)), ((0, 1), (1, 0)))),
        (((2, 3, 4), (3,)), (((1,), (0,)), ((), ()))),
        (((0, 3), (3, 5)), (((1,), (0,)), ((), ()))),
        (((2, 0), (0, 5)), (((1,), (0,)), ((), ()))),
        (((3, 2, 4), (2, 4, 5, 6)), (((2,), (1,)), ((1,), (0,)))),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_products_over_any_axes(shapes, how, dtype):
    x, y = [(normal(*s) + 1j * normal(*s) if dtype == "complex64" else normal(*s)) for s in shapes]
    f = lambda x, y: lax.dot_general(x, y, how)
    model = agrees(f, x.astype(dtype), y.astype(dtype), rtol=2e-5)
    assert ("MatMul" in operators(model)) == (how[0] != ((), ()) and 0 not in (*x.shape, *y.shape))


@pytest.mark.parametrize("small", [(1, 4, 3), (2, 1, 3), (2, 4, 1), (4, 3), (3,), (1, 1, 1), ()])
@pytest.mark.parametrize("first", [True, False])
def test_products_of_tensors_that_stand_for_more(small, first):
    x, y = normal(*small), normal(2, 3, 5) if first else normal(2, 5, 4)
    shape = (2, 4, 3)
    whole = np.broadcast_to(x, shape)

    def write(b, x, y):
        x = Operand(x.name, array_type(shape, F32), x.shape)
        order, want = ((x, y), (2, 4, 5)) if first else ((y, x), (2, 5, 3))
        return b.dot(*order, ((2,), (1,)), ((0,), (0,)), array_type(want, F32))

    (got,) = run(written(write, x, y), [x, y])
    np.testing.assert_allclose(got, whole @ y if first else y @ whole, rtol=2e-5, atol=2e-5)


def test_a_batch_that_repeats_is_multiplied_once():
    x, y = normal(1, 4, 3), normal(1, 3, 5)

    def write(b, x, y):
        x = Operand(x.name, array_type((7, 4, 3), F32), x.shape)
        y = Operand(y.name, array_type((7, 3, 5), F32), y.shape)
        out = b.dot(x, y, ((2,), (1,)), ((0,), (0,)), array_type((7, 4, 5), F32))
        assert out.shape == (1, 4, 5)
        return out

    (got,) = run(written(write, x, y), [x, y])
    np.testing.assert_allclose(got, np.broadcast_to(x @ y, (7, 4, 5)), rtol=2e-5, atol=2e-5)


# Transforms


@pytest.mark.parametrize("lengths", [(1,), (2,), (3,), (7,), (8,), (2, 3), (3, 2), (3, 4, 5)])
@pytest.mark.parametrize("wide", [False, True])
def test_transforms_of_odd_and_even_lengths(lengths, wide):
    with enable_x64(wide):
        x = normal(2, *lengths).astype("float64" if wide else "float32")
        axes = tuple(range(1, 1 + len(lengths)))
        half = np.fft.rfftn(x, axes=axes).astype("complex128" if wide else "complex64")
        f = lambda x, z: (
            snp.fft.fftn(z, axes=axes),
            snp.fft.ifftn(z, axes=axes),
            snp.fft.rfftn(x, axes=axes),
            snp.fft.irfftn(z, s=lengths, axes=axes),
        )
        agrees(f, x, half, rtol=1e-11 if wide else 2e-5)


def test_what_is_longest_is_allowed(monkeypatch):
    monkeypatch.setattr(products, "_LONGEST", 8)
    with enable_x64():
        agrees(snp.fft.fft, np.arange(8.0))
        with pytest.raises(ExportError, match="a transform of 9 points"):
            exported(snp.fft.fft, np.arange(9.0))


def test_the_longest_transform_in_float64():
    with enable_x64(), pytest.raises(ExportError, match="a transform of 2049 points in float64"):
        exported(snp.fft.fft, np.ones(2049))


# Convolutions


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "complex64", "float16"])
@pytest.mark.parametrize(
    ("shapes", "how"),
    [
        (((2, 4, 7), (6, 2, 3)), {"feature_group_count": 2}),
        (((4, 2, 7), (6, 2, 3)), {"batch_group_count": 2}),
        (((2, 2, 7), (3, 2, 3)), {"window_strides": (2,), "padding": [(2, 1)]}),
        (((2, 2, 7), (3, 2, 3)), {"padding": [(-1, -2)]}),
        (((2, 2, 7), (3, 2, 3)), {"padding": [(-1, 2)], "rhs_dilation": (2,)}),
        (((2, 2, 4), (3, 2, 3)), {"lhs_dilation": (3,)}),
        (((2, 2, 4), (3, 2, 3)), {"lhs_dilation": (2,), "window_strides": (2,)}),
        (((2, 2, 4), (3, 2, 3)), {"lhs_dilation": (2,), "padding": [(4, 5)]}),
        (((2, 2, 4), (3, 2, 3)), {"lhs_dilation": (2,), "padding": [(2, 3)]}),
        (((2, 2, 4), (3, 2, 3)), {"lhs_dilation": (2,), "padding": [(2, 4)]}),
        (((2, 2, 4), (3, 2, 3)), {"lhs_dilation": (2,), "padding": [(3, 1)]}),
        (((2, 4, 4), (6, 2, 3)), {"lhs_dilation": (2,), "padding": [(1, 2)], "rhs_dilation": (2,),
                                  "feature_group_count": 2}),
        (((2, 2), (3, 2)), {}),
        (((2, 4), (6, 2)), {"feature_group_count": 2}),
        (((0, 2, 7), (3, 2, 3)), {}),
        (((2, 2, 2), (3, 2, 3)), {}),
        (((2, 0, 7), (3, 0, 3)), {}),
        (((2, 2, 0), (3, 2, 3)), {"padding": [(2, 2)]}),
    ],
)  # fmt: skip
def test_convolutions_of_each_dtype(shapes, how, dtype):
    x, w = [(3 * normal(*s)).astype(dtype) for s in shapes]
    n = len(shapes[0]) - 2
    how = {"window_strides": (1,) * n, "padding": [(0, 0)] * n, **how}
    with enable_x64(dtype == "float64"):
        agrees(lambda x, w: lax.conv_general_dilated(x, w, **how), x, w,
               rtol=2e-3 if dtype == "float16" else 5e-5)  # fmt: skip


@pytest.mark.parametrize(
    "dims", [("NWC", "WIO", "NWC"), ("CNW", "OIW", "WNC"), ("NCW", "IOW", "NWC")]
)
@pytest.mark.parametrize("dilation", [1, 2])
def test_layouts(dims, dilation):
    sizes = {"N": 2, "C": 3, "W": 6, "O": 4, "I": 3}
    x = normal(*[sizes[c] for c in dims[0]])
    w = normal(*[{**sizes, "W": 2}[c] for c in dims[1]])
    f = lambda x, w: lax.conv_general_dilated(x, w, (1,), [(1, 1)], (dilation,), None, dims)
    agrees(f, x, w, rtol=2e-5)


def test_four_spatial_axes_are_products():
    x, w = normal(1, 2, 3, 4, 3, 4), normal(3, 2, 2, 1, 2, 2)
    f = lambda x, w: lax.conv_general_dilated(x, w, (1, 2, 1, 1), [(0, 1)] * 4)
    assert not operators(agrees(f, x, w, rtol=2e-5))["Conv"]
    f = lambda x, w: lax.conv_general_dilated(x, w, (1,) * 4, [(1, 1)] * 4, (2, 1, 1, 1))
    assert not operators(agrees(f, x, w, rtol=2e-5))["ConvTranspose"]


def test_kernels_of_many_places_are_refused_without_an_operator():
    with enable_x64():
        f = lambda x, w: lax.conv_general_dilated(x, w, (1,), "VALID")
        with pytest.raises(ExportError, match="of float64 with 257 places in its kernel"):
            exported(f, np.ones((1, 1, 300)), np.ones((1, 1, 257)))
        exported(f, np.ones((1, 1, 256)), np.ones((1, 1, 256)))


def test_convolutions_of_images_of_any_size():
    w = normal(4, 3, 3, 2)
    f = lambda x: (
        lax.conv_general_dilated(x, w, (2, 1), "SAME"),
        lax.conv_general_dilated(x, w, (1, 1), [(1, 1), (0, 1)]),
        lax.conv_general_dilated(x, w, (1, 1), [(1, 1), (0, 1)], (2, 1)),
    )
    model = exported(
        f, normal(2, 3, 6, 5), dynamic_axes=({0: "n", 2: st.dynamic_size("h", least=4)},)
    )
    for shape in ((2, 3, 6, 5), (1, 3, 9, 5)):
        x = normal(*shape)
        for got, want in zip(run(model, [x]), f(snp.array(x)), strict=True):
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


def test_the_shape_of_an_image_that_is_padded_by_its_size():
    found = []

    def noted(b):
        pads = [n.outputs[0] for n in b.graph.nodes if n.op == "Pad"]
        found.extend(b.types[name][1] for name in pads)
        spell(b)

    f = lambda x: lax.conv_general_dilated(x, normal(4, 3, 3, 2), (2, 1), "SAME")
    with spelling(noted):
        export.onnx(f, normal(2, 3, 6, 5), dynamic_axes=({2: st.dynamic_size("h", least=4)},))
    ((batch, features, rows, columns),) = found
    assert (batch, features, columns) == (2, 3, 6) and is_size(rows)


# Windows

WINDOWS = [
    {"window_dimensions": (1, 1, 2, 3)},
    {"window_dimensions": (1, 1, 2, 3), "window_strides": (1, 1, 2, 1)},
    {"window_dimensions": (1, 1, 3, 2), "padding": [(0, 0), (0, 0), (1, 2), (0, 1)]},
    {"window_dimensions": (1, 1, 2, 2), "padding": [(0, 0), (0, 0), (2, 0), (0, 3)]},
    {"window_dimensions": (1, 1, 2, 2), "window_dilation": (1, 1, 2, 3)},
    {"window_dimensions": (1, 1, 2, 2), "base_dilation": (1, 1, 2, 1)},
    {"window_dimensions": (1, 1, 2, 2), "padding": [(0, 0), (0, 0), (-1, 0), (0, -1)]},
    {"window_dimensions": (2, 1, 2, 2)},
    {"window_dimensions": (1, 2, 1, 2), "window_strides": (2, 1, 2, 1)},
    {"window_dimensions": (1, 1, 1, 1), "window_strides": (1, 2, 1, 3)},
    {"window_dimensions": (1, 1, 1, 1), "padding": [(1, 0), (0, 0), (0, 1), (0, 0)]},
    {"window_dimensions": (1, 1, 1, 1), "base_dilation": (1, 1, 1, 2)},
    {"window_dimensions": (1, 1, 5, 6)},
    {"window_dimensions": (1, 1, 6, 2)},
]
REDUCERS = {"add": (lax.add, 0), "max": (lax.max, -np.inf), "min": (lax.min, np.inf),
            "mul": (lax.mul, 1)}  # fmt: skip


@pytest.mark.parametrize("how", WINDOWS)
@pytest.mark.parametrize("op", REDUCERS)
def test_windows(op, how):
    function, start = REDUCERS[op]
    how = {"window_strides": (1,) * 4, "padding": "VALID", **how}
    f = lambda x: lax.reduce_window(x, np.float32(start), function, **how)
    x = normal(2, 3, 5, 6)
    agrees(f, x, rtol=5e-5)
    agrees(f, x, rtol=5e-5, exact=False)
    if op == "max":
        x[0, 1, 2] = np.nan
        x[1, :, :2] = -np.inf
        agrees(f, x)


@pytest.mark.parametrize("dtype", ["float16", "int32", "uint8", "float64", "complex64"])
@pytest.mark.parametrize("op", ["add", "max", "mul"])
def test_windows_of_each_dtype(op, dtype):
    if dtype == "complex64" and op == "max":
        return
    function, start = REDUCERS[op]
    x = (np.arange(40).reshape(1, 2, 4, 5) * 7 % 11 / 4).astype(dtype)
    start = np.iinfo(dtype).min if op == "max" and np.dtype(dtype).kind in "iu" else start
    x = x * (1 + 1j) if dtype == "complex64" else x
    with enable_x64():
        f = lambda x: lax.reduce_window(x, np.array(start, dtype), function, (1, 1, 2, 2),
                                        (1, 1, 2, 1), [(0, 0), (0, 0), (1, 0), (0, 1)])  # fmt: skip
        agrees(f, x.astype(dtype), rtol=2e-3 if dtype == "float16" else 1e-5)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32"])
def test_sums_of_integers_in_windows_wrap_around(dtype):
    x = np.full((1, 1, 2, 5), np.iinfo(dtype).max, dtype)
    f = lambda x: lax.reduce_window(x, np.array(0, dtype), lax.add, (1, 1, 2, 2), (1,) * 4, "VALID")
    agrees(f, x)


@pytest.mark.parametrize("ndim", [1, 2, 3, 4, 5, 6])
def test_windows_of_as_many_axes(ndim):
    x = normal(*[2, 2, 3, 3, 2, 2][:ndim])
    window = (1, 1, 2, 2, 1, 2)[:ndim]
    for function, start in (REDUCERS["add"], REDUCERS["max"]):
        f = lambda x, function=function, start=start: lax.reduce_window(
            x, np.float32(start), function, window, (1,) * ndim, "VALID"
        )
        agrees(f, x)
        found = operators(agrees(f, x, exact=False))
        # The operators have one to three spatial axes.
        assert (found["AveragePool"] + found["MaxPool"] == 1) == (3 <= ndim <= 5)


@pytest.mark.parametrize(
    ("n", "window", "padding"), [(0, 2, (2, 2)), (3, 5, (0, 0)), (0, 1, (0, 0))]
)
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_windows_of_nothing_and_none(n, window, padding, dtype):
    f = lambda x: lax.reduce_window(x, np.array(0, dtype), lax.add, (window,), (1,), [padding])
    agrees(f, np.arange(n, dtype=dtype))
