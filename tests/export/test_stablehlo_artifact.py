"""Functions as StableHLO: written, read and called; and files that real JAX has written."""

import collections
import dataclasses
import functools

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto._engine.xla import artifacts
from stretto.export import child, stablehlo_artifact
from stretto.export.container import from_bytes
from stretto.export.stablehlo_artifact import StableHLO
from tests.export.exchange import FILES, NAMES, check

X = np.arange(12, dtype=np.float32).reshape(3, 4) / 12


def again(file):
    """The file as who reads it has it; in this process, since it is ours."""
    return StableHLO(from_bytes(file.serialize()), stablehlo_artifact.own_functions)


def close(got, expected, tolerance=1e-5):
    got, structure = st.tree.flatten(got)
    expected, other = st.tree.flatten(expected)
    assert structure == other
    for g, e in zip(got, expected, strict=True):
        assert g.dtype == e.dtype and g.shape == e.shape
        np.testing.assert_allclose(g, e, tolerance, tolerance)


# What real JAX has written


@functools.cache
def of_jax():
    """The functions of all modules of JAX's files, read by one child."""
    modules = []
    for name in NAMES:
        container = from_bytes((FILES / f"{name}.jax").read_bytes())
        while container is not None:
            modules.append(container.module)
            container = container.vjp
    return dict(zip(modules, child.functions_of(modules), strict=True))


@pytest.mark.parametrize("name", [n for n in NAMES if n != "for_tpu"])
def test_files_of_jax_give_what_jax_gave(name, monkeypatch):
    known = of_jax()
    monkeypatch.setattr(child, "functions_of", lambda modules: [known[m] for m in modules])
    monkeypatch.setattr(child, "functions_at", artifacts.functions_at)
    check(FILES / f"{name}.jax")


def test_a_file_for_another_platform_is_refused_by_name():
    fun = st.export.load(FILES / "for_tpu.jax")
    assert fun.platforms == ("tpu",)
    for call in (fun, st.jit(fun)):
        with pytest.raises(ValueError, match="for_tpu was exported for tpu, and runs on cpu here"):
            call(snp.ones(3))


# What is written here


def test_a_file_is_saved_and_read(tmp_path):
    fun = lambda x, p: {"y": snp.sin(x) @ p["w"], "rest": [snp.sum(x), None]}
    p = {"w": snp.ones((4, 2)), "unused": snp.ones(2)}
    file = st.export.stablehlo(fun, X, p, vjp_order=2)
    file.save(tmp_path / "fun.shlo")
    read = st.export.load(tmp_path / "fun.shlo")
    assert (read.__name__, read.platforms, read.vjp_order) == ("function", ("cpu",), 2)
    assert read.in_types == file.in_types and read.out_types == file.out_types
    close(read(X, p), fun(X, p))
    loss = lambda f: lambda x: snp.sum(f(x, p)["y"] ** 2)
    close(st.jit(st.grad(loss(read)))(X), st.grad(loss(fun))(X))
    second = lambda f: st.grad(lambda x: snp.sum(st.grad(loss(f))(x) ** 2))
    close(second(read)(X), second(fun)(X), 1e-4)
    each = np.stack([X, 2 * X])
    close(st.lax.map(st.grad(loss(read)), each), st.vmap(st.grad(loss(fun)))(each))
    for mapped in (st.vmap(lambda x: read(x, p)), st.vmap(st.grad(loss(read)))):
        with pytest.raises(st.errors.MissingRuleError, match=r"one example at a time.*lax\.map"):
            mapped(each)


def test_derivatives_beyond_those_of_the_file_are_refused():
    file = again(st.export.stablehlo(lambda x: snp.sum(x**3), X, vjp_order=1))
    close(st.grad(file)(X), 3 * X**2)
    with pytest.raises(st.errors.MissingRuleError, match="with a larger vjp_order"):
        st.grad(lambda x: snp.sum(st.grad(file)(x)))(X)
    with pytest.raises(st.errors.ForwardModeError):
        st.jvp(file, (X,), (X,))


def test_a_function_without_arguments():
    file = again(st.export.stablehlo(lambda: snp.arange(3)))
    for call in (file, st.jit(file), lambda: file.flat([])[0]):
        close(call(), snp.arange(3))
    assert file.inputs == {} and [*file.outputs] == ["out"]


def test_integers_have_no_derivative():
    def fun(n, x):
        return x * n, n + 1, n > 1

    n = np.arange(3, dtype=np.int32)
    x = np.ones(3, np.float32)
    file = again(st.export.stablehlo(fun, n, x, vjp_order=1))
    close(file(n, x), fun(snp.asarray(n), x))
    close(st.grad(lambda x: snp.sum(file(n, x)[0]))(x), n.astype(np.float32))


def test_modules_have_their_weights_in_the_file():
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    file = again(st.export.stablehlo(model, X))
    assert len(st.tree.leaves(file.in_types)) == 1
    close(file(X), model(X))


def test_large_and_odd_constants():
    table = np.arange(4000, dtype=np.float32).reshape(1000, 4)
    flags, small = np.arange(300) % 3 == 0, np.arange(20, dtype=np.int8)
    z = (np.arange(40) * (1 - 2j)).astype(np.complex64)
    half = snp.arange(50.0).astype("bfloat16")
    edges = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-40] * 5, np.float32)

    def fun(x):
        return table @ x[0], flags, small, z, half, edges, x + 1

    close(again(st.export.stablehlo(fun, X))(X), fun(snp.asarray(X)))


def test_typed_keys():
    def fun(key, x):
        return st.random.normal(key, (3,)) * x, {"next": st.random.split(key, 2)}

    key, x = st.random.key(3), snp.ones(3)
    file = again(st.export.stablehlo(fun, key, x, vjp_order=1))
    taken, _ = file.in_types[0]
    assert (taken.shape, taken.dtype) == ((), key.dtype) and "key_fry[2]" in repr(file)
    close(file(key, x), fun(key, x))
    close(st.grad(lambda x: snp.sum(file(key, x)[0]))(x), fun(key, x)[0])
    with pytest.raises(TypeError, match=r"args\[0\] must be keys of threefry2x32, got an array"):
        file(st.random.key_data(key), x)
    with pytest.raises(TypeError, match=r"args\[0\] must be keys of threefry2x32, got keys of rbg"):
        file(st.random.key(0, impl="rbg"), x)
    with pytest.raises(TypeError, match=r"args\[1\] must be an array, got keys of threefry2x32"):
        file(key, key)


def test_the_file_has_no_path_of_the_source():
    content = st.export.stablehlo(lambda x: snp.sin(x) + 1, X, vjp_order=1).serialize()
    assert __file__.encode() not in content and b"test_stablehlo" not in content


Point = collections.namedtuple("Point", ["y", "x"])


@st.tree.register_dataclass
@dataclasses.dataclass
class Pair:
    second: object
    first: object


def test_classes_of_nodes_are_tuples_and_dictionaries_in_the_file():
    def fun(point):
        return Point(point.x + 1, {"b": point.y, "a": point.x})

    point = Point(X, X[0])
    file = again(st.export.stablehlo(fun, point))
    expected = (X[0] + 1, {"a": X[0], "b": X})
    for given in (point, tuple(point)):
        close(file(given), tuple(map(snp.asarray, expected[:1])) + (expected[1],))
    file = again(st.export.stablehlo(lambda pair: pair.second - pair.first, Pair(X, X[0])))
    for given in (Pair(X, X[0]), {"second": X, "first": X[0]}):
        close(file(given), snp.asarray(X) - X[0])
    with pytest.raises(TypeError, match="keys of text, got 1"):
        st.export.stablehlo(lambda d: d[1], {1: X})


def test_other_arguments_are_refused():
    file = again(st.export.stablehlo(lambda x, y: x["a"] + y, {"a": X}, 1.0))
    close(file({"a": X}, 2), X + 2)
    with pytest.raises(TypeError, match="arguments of another structure"):
        file([X], 1.0)
    with pytest.raises(TypeError, match=r"args\[0\]\['a'\] must be of dtype float32, as exported"):
        file({"a": X.astype(np.int32)}, 1.0)
    with pytest.raises(ValueError, match="axis 1 of argument 0 must have size 4, got 3"):
        file({"a": X[:, :3]}, 1.0)


def test_what_a_file_cannot_have_is_refused():
    ones = snp.ones(2)
    called = lambda x: st.pure_callback(lambda x: x, st.ShapeDtypeStruct((2,), "float32"), x)
    with pytest.raises(st.errors.ExportError, match="called in Python"):
        st.export.stablehlo(called, ones)
    with pytest.raises(st.errors.ExportError, match="calls Python or prints"):
        st.export.stablehlo(lambda x: (st.debug.print("{}", x), x)[1], ones)
    with pytest.raises(st.errors.ExportError, match="calls lapack_sgetrf_ffi, which cpu has"):
        st.export.stablehlo(snp.linalg.inv, snp.eye(3), platforms="tpu")
    with pytest.raises(ValueError, match="platforms must be different ones of"):
        st.export.stablehlo(snp.sin, ones, platforms=("cpu", "cpu"))
    with pytest.raises(ValueError, match="vjp_order must be 0 or more, got -1"):
        st.export.stablehlo(snp.sin, ones, vjp_order=-1)
    with pytest.raises(TypeError, match="expected a function or a module, got int"):
        st.export.stablehlo(3, ones)


def test_several_platforms():
    file = again(st.export.stablehlo(snp.linalg.inv, snp.eye(3), platforms=("cuda", "cpu")))
    assert "lapack_sgetrf_ffi" in file.text and "cusolver_getrf_ffi" in file.text
    close(file(2 * snp.eye(3)), snp.eye(3) / 2)
    same = st.export.stablehlo(snp.sin, X, platforms=("tpu", "cpu"), vjp_order=1)
    assert "stablehlo.case" not in same.text
    close(st.grad(lambda x: snp.sum(again(same)(x)))(X), np.cos(X))


# Sizes that vary


def normalized(x):
    return (x - snp.mean(x, 0)) / (1 + snp.var(x, 0)), x.reshape(-1), x[: x.shape[0] // 2]


def attention(x):
    return nn.functional.softmax(snp.tril(x @ x.T), -1) @ x


def looped(x):
    return st.lax.scan(lambda c, row: (snp.tanh(c + row), snp.sum(c)), snp.zeros(4), x)


def ordered(x):
    return snp.sort(x, 0), snp.cumsum(x, 0), snp.cumprod(x, 0), x[::2], snp.flip(x, 0)


def indexed(x):
    return x[-1], x[snp.array([0, 1])], snp.take(x, 1, axis=0), snp.pad(x, ((1, 2), (0, 0)))


@pytest.mark.parametrize("fun", [normalized, attention, looped, ordered, indexed])
def test_one_file_for_any_size(fun):
    file = again(st.export.stablehlo(fun, X, dynamic_axes=({0: "b"},), vjp_order=1))
    total = lambda f: lambda x: sum([snp.sum(leaf) for leaf in st.tree.leaves(f(x))])
    for n in (2, 3, 5):
        x = snp.asarray(np.resize(X, (n, 4)))
        close(file(x), fun(x))
        close(st.grad(total(file))(x), st.grad(total(fun))(x), 1e-4)


@pytest.mark.parametrize(("axes", "order"), [({0: "b"}, 1), ({0: "b", 2: "h", 3: "w"}, 0)])
def test_convolutions_of_any_size(axes, order):
    """The derivative of one with a stride has padding that depends on the size of a plane."""
    first, second = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 4, 3, stride=2, groups=2)

    def fun(x):
        return second(nn.functional.max_pool2d(nn.functional.relu(first(x)), 2)).sum((2, 3))

    image = np.linspace(-1, 1, 2 * 2 * 8 * 9, dtype=np.float32).reshape(2, 2, 8, 9)
    file = again(st.export.stablehlo(fun, image, dynamic_axes=(axes,), vjp_order=order))
    total = lambda f: lambda x: snp.sum(f(x) ** 2)
    for sizes in ((1, 8, 9), (3, 11, 7)):
        h, w = sizes[1:] if 2 in axes else (8, 9)
        x = snp.asarray(np.resize(image, (sizes[0], 2, h, w)))
        close(file(x), fun(x), 1e-4)
        if order:
            close(st.grad(total(file))(x), st.grad(total(fun))(x), 1e-4)


def test_windows_of_a_size_that_varies_are_refused():
    axes = ({0: "n"},)
    fun = lambda x: st.lax.conv_general_dilated(
        x[None, None], snp.ones((1, 1, 3)), (1,), [(x.shape[0], 0)]
    )
    with pytest.raises(st.errors.ExportError, match="StableHLO has numbers alone, as windows"):
        st.export.stablehlo(fun, np.ones(4, np.float32), dynamic_axes=axes)


def test_ensembles_are_written_with_all_members_at_once():
    """In whatever form is fastest here: the file is for other machines, and sizes."""
    members = [nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 3)) for _ in range(5)]
    ensemble = st.Ensemble(members)
    file = again(st.export.stablehlo(ensemble, X, dynamic_axes=({0: "b"},), vjp_order=1))
    assert "tensor<5x64x4xf32>" in file.text and "while" not in file.text
    total = lambda f: lambda x: snp.sum(f(x) ** 2)
    for n in (1, 3, 50):
        x = snp.asarray(np.resize(X, (n, 4)))
        close(file(x), ensemble(x))
        close(st.grad(total(file))(x), st.grad(total(ensemble))(x), 1e-4)
    with st.config(plan="in turn"):
        assert "while" not in st.export.stablehlo(ensemble, X).text


def test_sizes_that_do_not_fit_are_refused():
    axes = ({0: "b"}, {0: "b"})
    file = again(st.export.stablehlo(lambda x, y: x + y, X, X, dynamic_axes=axes))
    with pytest.raises(ValueError, match="must have size b, which is 3 for b=3, got 2"):
        file(X, X[:2])


def test_what_was_taken_to_hold_of_sizes_is_asserted():
    axes = ({0: st.dynamic_size("b", least=2)},)
    file = again(st.export.stablehlo(lambda x: 2 * x, X, dynamic_axes=axes))
    assert "b must be 2 or more" in file.text
    close(file(X[:2]), 2 * X[:2])
    words = (
        "function cannot be called with arguments of these shapes: b must be 2 or more, got b = 1"
    )
    with pytest.raises(ValueError, match=words):
        file(X[:1])


def test_symbolic_functions_within_each_other():
    inner = again(st.export.stablehlo(normalized, X, dynamic_axes=({0: "b"},)))
    outer = lambda x: inner(x)[1] + 1
    file = again(st.export.stablehlo(outer, X, dynamic_axes=({0: "n"},)))
    for n in (2, 5):
        x = snp.asarray(np.resize(X, (n, 4)))
        close(file(x), x.reshape(-1) + 1)
