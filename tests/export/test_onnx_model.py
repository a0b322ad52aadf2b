"""Models in ONNX's format: names, sizes, weights, what is chosen of an ensemble, and errors."""

import importlib.util

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import export, lax, nn, optim
from stretto.errors import ExportError
from stretto.export import onnx_model
from tests.export.running import agrees, exported, onnx, operators, run, session

X = np.random.default_rng(0).normal(size=(4, 3)).astype("float32")
KEY = st.random.key(0)


def names(values):
    return [v.name for v in values]


def shape_of(value):
    return [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]


def test_inputs_and_outputs_have_the_names_of_arguments_and_paths():
    def step(params, x):
        return {"loss": (params["w"] * x).sum(), "w": [params["w"] - 1, x]}

    model = agrees(step, {"w": snp.ones(3)}, X)
    assert names(model.graph.input) == ["params['w']", "x"]
    assert names(model.graph.output) == ["loss", "w[0]", "w[1]"]
    assert names(agrees(lambda x: (x, x + 1), X).graph.output) == ["out[0]", "out[1]"]


def test_outputs_have_their_names_also_where_nodes_would_have_them():
    def f(x):
        return {"add": (x + 1) * 2, "constant": x - 1, "mul_1": x * 3 + (x * 2) * (x + 4)}

    assert names(agrees(f, X).graph.output) == ["add", "constant", "mul_1"]
    # Only an input of the same name comes first.
    assert names(agrees(lambda x: {"x": x + 1}, X).graph.output) == ["x_1"]


def test_a_modules_arrays_are_weights_by_their_path():
    model = agrees(nn.Linear(3, 2, key=KEY), X)
    assert names(model.graph.input) == ["input"]
    assert sum(int(np.prod(t.dims)) for t in model.graph.initializer) == 8
    # What is stored in another form has a number after it.
    assert {n.rpartition("_")[0] or n for n in names(model.graph.initializer)} == {"weight", "bias"}
    net = nn.Sequential(nn.Linear(3, 90, key=KEY), nn.GELU(), nn.Linear(90, 2, key=KEY))
    found = {n.rpartition("_")[0] or n for n in names(agrees(net, X).graph.initializer)}
    assert found == {"0.weight", "0.bias", "2.weight", "2.bias"}


@pytest.mark.parametrize("n", [1, 2, 4, 7, 33])
def test_axes_of_any_size(n):
    def attention(q, k, v):
        scores = q @ k.T / snp.sqrt(q.shape[1] * 1.0)
        mask = snp.tril(snp.ones((q.shape[0], q.shape[0]), bool))
        return nn.functional.softmax(snp.where(mask, scores, -snp.inf), -1) @ v

    model = exported(attention, X, X, X, dynamic_axes=({0: "n"}, {0: "n"}, {0: "n"}))
    assert shape_of(model.graph.input[0]) == ["n", 3]
    x = np.random.default_rng(n).normal(size=(n, 3)).astype("float32")
    (got,) = run(model, [x, x, x])
    np.testing.assert_allclose(got, attention(*[snp.array(x)] * 3), rtol=2e-5, atol=1e-6)


def test_sizes_that_a_trace_took_to_hold_are_listed():
    def f(x):
        return x[:2]

    model = exported(f, X, dynamic_axes=({0: "n"},))
    assert any("n" in p.value for p in model.metadata_props) or not model.metadata_props


def test_one_file_for_an_ensemble_and_what_its_members_say():
    ensemble = st.Ensemble.init(lambda key: nn.Linear(3, 5, key=key), KEY, 4)
    outputs = {
        "members": lambda z: z,
        "probabilities": lambda z: st.ensemble.mean(nn.functional.softmax(z, -1)),
        "information": lambda z: st.ensemble.mutual_information(nn.functional.softmax(z, -1)),
        "upper": lambda z: snp.quantile(z, 0.9, axis=0),
    }
    model = exported(ensemble, X, dynamic_axes=({0: "n"},), outputs=outputs)
    assert sorted(names(model.graph.output)) == sorted(outputs)
    got = dict(zip(names(model.graph.output), run(model, [X]), strict=True))
    for name, made in outputs.items():
        np.testing.assert_allclose(got[name], made(ensemble(X)), rtol=1e-4, atol=1e-6)
    count = operators(model)
    assert count["MatMul"] + count["Gemm"] == 1  # of all members


def test_a_training_step_is_a_program_as_any_other():
    model = nn.Sequential(nn.Linear(3, 4, key=KEY), nn.Tanh(), nn.Linear(4, 1, key=KEY))
    optimizer = optim.adam(1e-2)

    def step(model, state, x):
        loss, grads = st.value_and_grad(lambda m: (m(x) ** 2).mean())(model)
        updates, state = optimizer.update(grads, state, model)
        return loss, optim.apply_updates(model, updates), state

    file = agrees(step, model, optimizer.init(model), X)
    outs = names(file.graph.output)
    assert outs[:2] == ["out[0]", "new_model.0.weight"]
    assert any(name.startswith("new_state") for name in outs)


def test_a_scan_in_both_directions_and_its_gradient():
    def total(w, xs):
        def step(c, x):
            c = snp.tanh(w * c + x)
            return c, c

        last, ys = st.lax.scan(step, snp.zeros(3), xs, reverse=True)
        return (ys * last).sum()

    model = agrees(st.grad(total), snp.ones(3), X)
    assert operators(model)["Scan"] == 2


def test_loops_and_branches():
    def collatz(n):
        going = lambda state: state[0] != 1
        step = lambda state: (
            st.lax.cond(state[0] % 2 == 0, lambda m: m // 2, lambda m: 3 * m + 1, state[0]),
            state[1] + 1,
        )
        return st.lax.while_loop(going, step, (n, 0))[1]

    model = agrees(collatz, np.int32(27))
    assert operators(model)["Loop"] == 1


def test_a_switch_takes_the_nearest_branch():
    branches = [lambda x: x, lambda x: x + 1, lambda x: x * 5]
    model = exported(lambda i, x: st.lax.switch(i, branches, x), np.int32(0), np.float32(2))
    got = [float(run(model, [np.int32(i), np.float32(2)])[0]) for i in (-3, 0, 1, 2, 9)]
    assert got == [2, 2, 3, 10, 10]


def test_random_keys_are_inputs():
    agrees(lambda key: st.random.normal(key, (5,)), np.array([1, 2], np.uint32))


def test_complex_numbers_are_pairs():
    z = (X + 1j * X[::-1]).astype("complex64")
    model = agrees(lambda z: (z * z).conj(), z)
    assert shape_of(model.graph.input[0]) == [4, 3, 2]


def test_what_looks_at_values_is_left_out_and_python_is_refused():
    def looks(x):
        st.debug.callback(print, x)
        return x + 1

    agrees(looks, X)

    def calls(x):
        return st.pure_callback(np.sin, st.ShapeDtypeStruct((4, 3), "float32"), x)

    with pytest.raises(ExportError, match=r"pure_callback \(.*test_onnx_model.*Python function"):
        export.onnx(calls, X)


def test_large_weights_lie_beside_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_model, "_LARGE", 1 << 12)
    w = np.random.default_rng(0).normal(size=(3, 2048)).astype("float32")
    path = tmp_path / "model.onnx"
    export.onnx(lambda x: x @ w, X, path=path)
    assert path.stat().st_size < w.nbytes < (tmp_path / "model.onnx.data").stat().st_size + 1
    (got,) = session(path).run(None, {"x": X})
    np.testing.assert_allclose(got, X @ w, rtol=1e-5, atol=1e-5)
    onnx.checker.check_model(str(path), full_check=True)
    with pytest.raises(ValueError, match=r"a model in memory has less than 2: give path="):
        export.onnx(lambda x: x @ w, X)


def test_arrays_beside_the_file_begin_at_pages_and_small_ones_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_model, "_LARGE", 1 << 12)
    params = {"a": X, "b": np.ones((3, 1001), "float32"), "c": np.full((3, 1001), 2, "float32")}
    path = tmp_path / "model.onnx"
    ensemble = st.Ensemble(lambda p, x: (x + p["a"]) @ p["b"] * (x @ p["c"]), [params])
    written = export.onnx(ensemble, X, path=path)
    held = {t.name: t for t in written.graph.initializer}
    places = [
        {entry.key: entry.value for entry in t.external_data}
        for t in held.values()
        if t.data_location == onnx.TensorProto.EXTERNAL
    ]
    assert [(p["location"], p["offset"], p["length"]) for p in places] == [
        ("model.onnx.data", "0", "12012"),
        ("model.onnx.data", "12288", "12012"),
    ]
    (got,) = session(path).run(None, {"x": X})
    np.testing.assert_allclose(got, ensemble(X), rtol=1e-5)


def test_inputs_are_named_after_what_a_member_takes():
    named = st.Ensemble(lambda params, images: params * images, [1.0, 2.0])
    of_modules = st.Ensemble.init(lambda key: nn.Linear(3, 2, key=key), KEY, 2)
    assert names(exported(named, X).graph.input) == ["images"]
    assert names(exported(named[0], X).graph.input) == ["images"]
    assert names(exported(of_modules, X).graph.input) == ["input"]


def many(x, key, n):
    """Operators of every kind: some are newer than the oldest opset, some changed since."""
    attention = nn.functional.scaled_dot_product_attention(x[None], x[None], x[None])
    images = snp.tile(x.reshape(1, 1, 4, 3), (1, 2, 2, 2))
    weights = snp.arange(36.0).reshape(2, 2, 3, 3) / 36
    return {
        "attention": attention,
        "bits": lax.bitcast_convert_type(x, "int32"),
        "convolution": nn.functional.conv2d(images, weights, padding=1),
        "cumulative": (snp.cumprod(nn.functional.gelu(x), 0), snp.cumsum(x, 1)),
        "factors": snp.linalg.cholesky(x.T @ x + snp.eye(3)),
        "fourier": snp.abs(snp.fft.rfft(x)),
        "indices": x.at[snp.array([0, 2])].add(1.0)[snp.array([2, 0, -1])],
        "integers": (n // 3, n % 3, n << 2, lax.population_count(n)),
        "loop": lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 1.5 + 1, x),
        "narrow": (x.astype("bfloat16") @ x.T.astype("bfloat16")).astype("float32"),
        "normal": st.random.normal(key, (3,)),
        "normalized": nn.functional.layer_norm(nn.functional.silu(x), (3,)),
        "pooled": nn.functional.max_pool2d(images, 2),
        "rounded": (snp.round(x), snp.sign(x), snp.arctan2(x, 1.0), lax.erf(x)),
        "scanned": lax.scan(lambda c, row: (snp.tanh(c + row), c), x[0], x)[1],
        "sorted": (snp.sort(x, 0), lax.top_k(x, 2)[1]),
    }


def test_nodes_have_names_of_their_own():
    """onnxruntime 1.20 refuses a model in which it fuses two nodes without one."""

    def called(graph):
        inner = [
            a.g for n in graph.node for a in n.attribute if a.type == onnx.AttributeProto.GRAPH
        ]
        return [n.name for n in graph.node] + [name for g in inner for name in called(g)]

    model = exported(many, X, np.array([1, 2], np.uint32), np.arange(4, dtype=np.int32))
    found = called(model.graph)
    assert all(found) and len(set(found)) == len(found)


@pytest.mark.parametrize("opset", range(21, onnx.defs.onnx_opset_version() + 1))
def test_other_opsets(opset):
    n = np.array([-7, 0, 5, 1 << 20], np.int32)
    model = agrees(many, X, np.array([1, 2], np.uint32), n, opset=opset)
    assert model.opset_import[0].version == opset
    assert ("BitCast" in operators(model)) == (opset >= 26)


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match="opset must be 21 or later, got 20"):
        export.onnx(snp.sin, X, opset=20)
    with pytest.raises(TypeError, match=r"export.onnx: opset must be an integer, got '26'"):
        export.onnx(snp.sin, X, opset="26")
    with pytest.raises(ValueError, match=r"knows opsets up to \d+, got 99"):
        export.onnx(snp.sin, X, opset=99)
    with pytest.raises(TypeError, match=r"export.onnx: dynamic_axes must be a tree.*got 'n'"):
        export.onnx(snp.sin, X, dynamic_axes="n")
    with pytest.raises(ValueError, match="nothing has no array in its result"):
        export.onnx(nothing, X)
    with pytest.raises(TypeError, match=r"outputs must be a dictionary .* got \['mean'\]"):
        export.onnx(snp.sin, X, outputs=["mean"])
    with pytest.raises(TypeError, match="got 'mean' for 'm'"):
        export.onnx(snp.sin, X, outputs={"m": "mean"})
    with pytest.raises(OSError, match=r"export.onnx: .* there is no directory /no/such/folder"):
        export.onnx(snp.sin, X, path="/no/such/folder/model.onnx")
    with pytest.raises(TypeError, match="expected a function or a module, got int"):
        export.onnx(3, X)
    with pytest.raises(ValueError, match="dynamic_axes has axis 5"):
        export.onnx(snp.sin, X, dynamic_axes=({5: "n"},))


def nothing(x):
    """Give no array."""


def test_without_the_package_the_way_out_is_said(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'stretto\[onnx\]'"):
        export.onnx(snp.sin, X)


def test_fewer_nodes_where_nan_need_not_be_kept():
    x = X.copy()
    x[0, 1] = np.nan
    exact = agrees(lambda x: x.max(1), x)
    fast = exported(lambda x: x.max(1), x, exact=False)
    assert len(fast.graph.node) < len(exact.graph.node)


def test_the_checker_of_the_format_takes_subgraphs():
    onnx.checker.check_model(
        export.onnx(lambda x: st.lax.fori_loop(0, 5, lambda i, c: c * 1.5 + i, x), X)
    )
