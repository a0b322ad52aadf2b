"""Dense layers of members are convolutions with a group for each, one after the other."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import export, nn
from stretto.nn import functional as F
from tests.onnx_graphs import agrees, by_hand, operators, run, spelled, spelled_without_a_type

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


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("bias", [True, False])
def test_two_layers_are_two_convolutions(bias, count):
    net = ensemble(linear(8, 16, bias), nn.ReLU, linear(16, 3, bias), count=count)
    assert agrees(net, X) == IMAGE
    model = export.onnx(net, X)
    first, second = [n for n in model.graph.node if n.op_type == "Conv"]
    assert [a.i for a in second.attribute if a.name == "group"] == [count]
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


@pytest.mark.parametrize("shape", [(3, 6, 2), (6, 1), (3, 6, 1), (3, 1, 2), (2,), (1,), (1, 1)])
def test_which_biases_a_last_layer_takes(shape):
    w, v, b = [snp.array(normal(*s)) for s in ((3, 8, 16), (3, 16, 2), shape)]
    names = agrees(lambda x: F.relu(x @ w) @ v + b, normal(3, 6, 8))
    takes = len(shape) < 2 or shape[-2] == 1
    assert names == (IMAGE if takes else [*IMAGE, "Add"])


def test_a_product_that_members_share_and_something_else_makes_is_as_it_was():
    f = lambda x: snp.sin(x).reshape(6, 4, 2).transpose(1, 2, 0)
    assert agrees(f, X) == ["Sin", "Reshape", "Transpose"]


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


# Graphs by hand: which are images, and which stay products of stacks

W, B, V, C = [normal(*shape) for shape in ((3, 8, 16), (3, 1, 16), (3, 16, 2), (3, 1, 2))]
ROWS, WIDE = normal(3, 6, 8), normal(3, 6, 16)
F64 = np.dtype(np.float64)


def layers(between="Relu", last=V, add="Add", bias=B, weights=W, first=False, again=None, **how):
    """Write two dense layers of members, with an activation between them."""

    def build(n, x, *more):
        product = n("MatMul", x, weights)
        if bias is None:
            total = product
        else:
            other = bias(n, *more) if callable(bias) else bias
            total = n(add, *((other, product) if first else (product, other)))
        hidden = between(n, total, *more) if callable(between) else n(between, total, **how)
        out = n("MatMul", hidden, last(n, *more) if callable(last) else last)
        made = {"product": product, "total": total, "hidden": hidden}
        return out if again is None else (out, made[again])

    return build


DENSE = [
    (layers(), [ROWS], True),
    (layers(first=True), [ROWS], True),
    (layers(bias=None), [ROWS], True),
    (layers(bias=B[0]), [ROWS], True),
    (layers(bias=B[0, 0]), [ROWS], True),
    (layers(bias=B[:1]), [ROWS], True),
    (layers("LeakyRelu", alpha=0.3), [ROWS], True),
    (layers(lambda n, x: n("Clip", x, np.float32(-0.5), np.float32(0.5))), [ROWS], True),
    (layers(lambda n, x: n("Exp", n("Neg", x))), [ROWS], True),
    (layers(bias=WIDE), [ROWS], False),
    (layers(bias=B[None]), [ROWS], False),
    (layers(add="Sub"), [ROWS], False),
    (layers(add="Mul"), [ROWS], False),
    (layers(bias=lambda n, y: n("Sin", y)), [ROWS, WIDE], False),
    (layers(bias=lambda n, y: n("Sin", y), first=True), [ROWS, WIDE], False),
    (layers(lambda n, x, y: n("Clip", x, n("Neg", y), np.float32(2))), [ROWS, np.float32(1)],
     False),
    (layers("Softmax", axis=-1), [ROWS], False),
    (layers(lambda n, x: n("Transpose", x, perm=[0, 2, 1]), last=normal(3, 6, 2)), [ROWS], False),
    (layers(lambda n, x: n("Transpose", x, perm=[1, 0, 2]), last=normal(6, 16, 2)), [ROWS], False),
    (layers(again="product"), [ROWS], False),
    (layers(again="total"), [ROWS], False),
    (layers(again="hidden"), [ROWS], False),
    (layers(weights=W[:2], bias=None, last=V[:2]), [ROWS[:2]], True),
    (layers(weights=W[0], bias=None), [ROWS], False),
    (layers(weights=W[:1], bias=None), [ROWS[:1]], False),
    (layers(last=V[0]), [ROWS], False),
    (layers(weights=W[..., :3].copy(), bias=None, last=normal(3, 2)), [ROWS], False),
    (layers(), [ROWS[:1]], False),
    (layers(), [ROWS[0]], False),
    (layers(last=lambda n, y: n("Sin", y)), [ROWS, V], False),
    (layers(weights=W.astype(F64), bias=None, last=V.astype(F64)), [ROWS.astype(F64)], False),
    (lambda n, x: n("MatMul", x, W), [ROWS], False),
    (lambda n, x: n("Add", n("Add", layers()(n, x), C), C), [ROWS], True),
    (lambda n, x: n("Add", C, n("Transpose", n("Sin", x), perm=[0, 2, 1])), [normal(3, 2, 6)],
     False),
    (lambda n, x: n("Add", n("Transpose", n("Reshape", n("Sin", x), [3, 2, 6]), perm=[0, 2, 1]), C),
     [normal(3, 12)], False),
]  # fmt: skip


@pytest.mark.parametrize(("build", "given", "found"), DENSE)
def test_layers_by_hand(build, given, found):
    names = spelled(build, *given, rtol=1e-4)
    assert names.count("Conv") == (2 if found else 0)


def shared(x_to=None, op="MatMul", bias=None, after=None, perm=(1, 0, 2), again=None, turned=False,
           view=(6, 3, 16), last=V, **how):  # fmt: skip
    """Write a layer of an input that the members share as one product, and a second layer."""
    w = normal(8, 48)
    weights = np.ascontiguousarray(w.T) if how.get("transB") else w

    def build(n, x, *more):
        x = x if x_to is None else x_to(n, x)
        rest = [] if bias is None else [bias(n, *more) if callable(bias) else bias]
        product = n(op, x, weights, *rest, **how)
        active = product if after is None else n(after, product)
        split = n("Reshape", active, view)
        hidden = n("Transpose", split, perm=[*perm])
        out = n("MatMul", hidden, last)
        made = {"product": product, "split": split, "hidden": hidden, "active": active}
        if again == "weights":
            return out, n("MatMul", n("Sin", x), weights)
        return out if again is None else (out, made[again])

    return build


LINE = normal(48)

SHARED = [
    (shared(), [X], True),
    (shared(op="Gemm", bias=LINE), [X], True),
    (shared(op="Gemm", bias=LINE, transB=1), [X], True),
    (shared(after="Tanh"), [X], True),
    (shared(x_to=lambda n, x: n("Reshape", x, [2, 3, 8]), last=normal(3, 16, 2)), [X], False),
    (shared(op="Gemm", bias=LINE, alpha=0.5), [X], False),
    (shared(op="Gemm", bias=LINE, transA=1), [X.T.copy()], False),
    (shared(op="Gemm", bias=lambda n, y: n("Sin", y)), [X, LINE], False),
    (shared(op="Gemm", bias=normal(6, 48)), [X], False),
    (shared(op="Gemm", bias=normal(1)), [X], False),
    (shared(after="ReduceSum", view=(1, 1, 1), last=normal(3, 1, 2)), [X], False),
    (shared(view=(3, 6, 16), last=normal(6, 16, 2)), [X], False),
    (shared(perm=(0, 1, 2), view=(3, 6, 16)), [X], False),
    (shared(perm=(2, 0, 1), view=(6, 16, 3)), [X], False),
    (shared(again="product"), [X], False),
    (shared(again="split"), [X], False),
    (shared(again="hidden"), [X], False),
    (shared(again="weights"), [X], False),
    (shared(after="Tanh", again="active"), [X], False),
]


@pytest.mark.parametrize(("build", "given", "found"), SHARED)
def test_layers_of_an_input_that_members_share(build, given, found):
    names = spelled(build, *given, rtol=1e-4)
    assert names.count("Conv") == (2 if found else 0)
    model, _ = by_hand(build, *given)
    convolutions = [n for n in model.graph.node if n.op_type == "Conv"]
    groups = [{a.name: a.i for a in n.attribute}.get("group") for n in convolutions]
    assert groups == ([None, 3] if found else [])


@pytest.mark.parametrize(
    ("build", "given"), [(b, x) for b, x, found in (*DENSE, *SHARED) if found][::2]
)
def test_a_tensor_may_be_of_unknown_type(build, given):
    spelled_without_a_type(build, *given, rtol=1e-4)
