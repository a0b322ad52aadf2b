"""Modules: attributes and roles, parameters, buffers, names, stateful calls, messages."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from tests.nn.models import Affine, Pair, Tied

X = snp.arange(6.0).reshape(2, 3) / 10


def same(a, b):
    assert st.tree.structure(a) == st.tree.structure(b)
    for x, y in zip(st.tree.leaves(a), st.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


# Attributes


def test_a_parameter_is_the_array_itself():
    array = snp.ones(3)
    layer = nn.Module()
    layer.w = nn.Parameter(array)
    assert layer.w is array
    layer.w = nn.Parameter(nn.Parameter(array))
    assert layer.w is array
    layer.w = np.zeros(3, np.float32)  # assigned anew, it stays a parameter
    assert [n for n, _ in layer.named_parameters()] == ["w"]
    layer.v = nn.Parameter(0.5)
    assert layer.v.dtype == np.float32 and not layer.v.weak_type
    layer.w = None
    assert [n for n, _ in layer.named_parameters()] == ["v"]


def test_an_attribute_before_init():
    class Early(nn.Module):
        def __init__(self):
            self.n = 3

    class EarlyBuffer(nn.Module):
        def __init__(self):
            self.register_buffer("x", snp.ones(2))

    class EarlyRead(nn.Module):
        def __init__(self):
            print(self.x)

    with pytest.raises(AttributeError, match=r"Early\.n was used before super\(\).__init__\(\)"):
        Early()
    with pytest.raises(AttributeError, match=r"^EarlyBuffer was used before super\(\).__init__\("):
        EarlyBuffer()
    with pytest.raises(AttributeError, match=r"EarlyRead\.x was used before super\(\)"):
        EarlyRead()


@pytest.mark.parametrize(
    ("name", "value", "error", "words"),
    [
        ("x", snp.ones(3), TypeError, r"Affine\.x: a bare array .*Parameter\(array\).*register_bu"),
        ("x", np.ones(3), TypeError, "a bare array does not say whether it is trained"),
        ("one", snp.ones(3), TypeError, "a bare array"),
        (
            "x",
            [snp.ones(3)],
            TypeError,
            r"a list of arrays or modules would not be trained.*Module",
        ),
        ("x", {"a": snp.ones(3)}, TypeError, r"a dict of arrays or modules.*nn\.ModuleDict"),
        ("x", (nn.Module(),), TypeError, "a tuple of arrays or modules"),
        ("x", {"a": nn.Module()}, TypeError, "a dict of arrays or modules"),
        ("x", [nn.Parameter(1.0)], TypeError, "a list of arrays or modules"),
        ("x", [1, 2], TypeError, r"must be hashable.*make it a tuple, got \[1, 2\]"),
        ("x", {"a": 1}, TypeError, r"must be hashable.*make it hashable"),
        (
            "weight",
            3.0,
            TypeError,
            r"Affine\.weight is a parameter: expected one, or None; got flo",
        ),
        ("one", abs, TypeError, r"Affine\.one is a module: expected one, or None; got builtin"),
        ("count", "x", TypeError, "count must be an array or a number"),
        ("forward", 3, AttributeError, "has a method or property called forward; give the attri"),
        ("_layout", 3, AttributeError, "called _layout"),
    ],
)
def test_attributes_refused(name, value, error, words):
    layer = Affine()
    layer.one = nn.Module()
    before = layer.state_dict()
    with pytest.raises(error, match=words):
        setattr(layer, name, value)
    same(layer.state_dict(), before)


def test_settings_are_static():
    layer = Affine(scale=2.0)
    layer.act = snp.tanh
    layer.sizes = (1, 2)
    layer.scale = 3.0
    assert len(st.tree.leaves(layer)) == 4  # weight, bias, count, cache
    structure = st.tree.structure(layer)
    layer.scale = 4.0
    assert st.tree.structure(layer) != structure
    layer.scale = 3
    assert st.tree.structure(layer) != structure  # 3 is not 3.0
    layer.scale = 3.0
    assert st.tree.structure(layer) == structure
    assert hash(st.tree.structure(layer)) == hash(structure)


def test_deleting_and_missing_attributes():
    layer = Affine()
    del layer.bias, layer.cache
    assert list(layer.state_dict()) == ["weight", "count"]
    layer.register_buffer("cache", snp.ones(1))
    assert list(layer.state_dict()) == ["weight", "count", "cache"]
    with pytest.raises(AttributeError, match="Affine has no attribute 'bias'"):
        del layer.bias
    with pytest.raises(
        AttributeError, match="no attribute 'bias'; it has: training, weight, count"
    ):
        _ = layer.bias
    assert not hasattr(layer, "bias") and not hasattr(layer, "__array__")


def test_registering():
    layer = nn.Module()
    layer.register_parameter("w", snp.ones(2))
    layer.register_parameter("none", None)
    layer.register_buffer("b", 0.0)
    layer.register_buffer("no", None)
    layer.register_module("m", nn.Module())
    layer.add_module("nom", None)
    assert [n for n, _ in layer.named_parameters()] == ["w"]
    assert [n for n, _ in layer.named_buffers()] == ["b"] and not layer.b.weak_type
    assert [n for n, _ in layer.named_children()] == ["m"]
    layer.none = snp.ones(1)  # its role is known
    layer.no = snp.ones(1)
    assert list(layer.state_dict()) == ["w", "none", "b", "no"]
    with pytest.raises(KeyError, match="has an attribute 'w' already"):
        layer.register_buffer("w", snp.ones(1))
    for name in ("", "a.b", 3):
        with pytest.raises(ValueError, match=r"^Module: a name must be a string without dots"):
            layer.register_parameter(name, snp.ones(1))
    with pytest.raises(TypeError, match="x must be a module, got int"):
        layer.register_module("x", 3)
    with pytest.raises(TypeError, match="must be an array"):
        layer.register_buffer("x", "words")
    with pytest.raises(AttributeError, match="method or property called train"):
        layer.register_buffer("train", snp.ones(1))


def test_a_module_without_forward():
    with pytest.raises(NotImplementedError, match=r"Module has no forward: define forward\(self"):
        nn.Module()(1)


# Buffers in time


def test_buffers_change_at_rest_and_not_in_transformations():
    layer = Affine()
    layer(X)
    layer(X)
    assert int(layer.count) == 2
    layer.count = 5
    assert int(layer.count) == 5 and not layer.count.weak_type
    for transformed in (st.jit(layer), st.vmap(st.jit(layer))):
        with pytest.raises(RuntimeError, match=r"Affine: the buffer count .*stateful_call"):
            transformed(X)
    assert int(layer.count) == 5
    st.jit(layer.eval())(X)
    with pytest.raises(KeyError, match="Affine has no buffer 'weight'"):
        layer.update_buffer("weight", snp.ones(1))


# Walking


def test_apply():
    seen, model = [], Pair()
    assert model.apply(lambda m: seen.append(type(m).__name__)) is model
    assert seen == ["Affine", "Affine", "Pair"]


def test_what_is_shared_stays_shared():
    model = Tied()
    again = copy.deepcopy(model)
    assert again.a is again.b and again.a is not model.a and again.c is not model.c
    assert again.c.weight is again.a.weight
    model.to(snp.bfloat16)
    assert model.c.weight is model.a.weight and model.a.weight.dtype == snp.bfloat16


# Modes and types


def test_modes():
    model = Pair()
    assert model.training and model.two.training
    assert model.eval() is model
    assert not model.training and not model.two.training
    model.one.train()
    assert model.one.training and not model.two.training
    assert model.train(False) is model and not model.one.training


def test_to_dtype():
    model = Pair()
    model.register_buffer("z", snp.ones(2, complex))
    assert model.to(snp.bfloat16) is model
    assert model.one.weight.dtype == model.one.cache.dtype == snp.bfloat16
    assert model.one.count.dtype == np.int32 and model.z.dtype == np.complex64
    with pytest.raises(TypeError, match=r"Pair\.to: expected a floating dtype, got int32"):
        model.to(int)


def test_devices_are_not_arguments():
    layer = nn.Linear(2, 3)
    with pytest.raises(TypeError, match=r"Linear\.to: .*'cuda'.*`model = st\.device_put\(model, "):
        layer.to("cuda")
    with pytest.raises(TypeError, match=r"^Linear: there is no argument device; .*st\.device_put"):
        nn.Linear(2, 3, device="cuda")
    moved = st.device_put(layer, st.devices()[0])
    assert isinstance(moved, nn.Linear) and moved.weight.device == st.devices()[0]

    class Own(nn.Module):
        def __init__(self, device):
            super().__init__()
            self.device = device

    assert Own(device="here").device == "here"


# Copies


def test_copies_do_not_see_each_other():
    model = Pair()
    for made in (copy.deepcopy(model), model.clone(), pickle.loads(pickle.dumps(model))):
        same(made, model)
        assert made.one is not model.one
        made.one.scale = 5.0
        made.one.weight = snp.zeros((4, 3))
        made.extra = 1
    assert model.one.scale == 1.0 and model.one.weight.any() and not hasattr(model, "extra")
    shallow = copy.copy(model)
    assert shallow.one is model.one
    shallow.extra = 1
    assert not hasattr(model, "extra")
    both = copy.deepcopy([model, model])
    assert both[0] is both[1] is not model


def test_pickled_in_another_process():
    # Hashes of strings differ there; the structure must be equal nevertheless.
    code = (
        "import pickle, sys, stretto as st; from stretto import nn;"
        "m = nn.Sequential(nn.Module(), nn.ModuleList([nn.ParameterList([1.0])]));"
        "hash(st.tree.structure(m)); sys.stdout.buffer.write(pickle.dumps(m))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    here = nn.Sequential(nn.Module(), nn.ModuleList([nn.ParameterList([1.0])]))
    there = pickle.loads(out)
    assert st.tree.structure(there) == st.tree.structure(here)
    assert hash(st.tree.structure(there)) == hash(st.tree.structure(here))


def test_printed():
    class Named(Affine):
        def extra_repr(self):
            return "3, 2"

    model = Pair()
    model.two = Named()
    model.three = nn.Sequential(Named())
    assert repr(model) == (
        "Pair(\n  (one): Affine()\n  (two): Named(3, 2)\n  (three): Sequential(\n"
        "    (0): Named(3, 2)\n  )\n)"
    )


# As a tree


def test_flatten_and_back():
    model = Pair()
    leaves, structure = st.tree.flatten(model)
    assert len(leaves) == 7
    back = st.tree.unflatten(structure, leaves)
    same(back, model)
    assert back is not model and back.one.weight is model.one.weight
    np.testing.assert_array_equal(back.eval()(X), model.eval()(X))
    paths = [st.tree.keystr(p) for p, _ in st.tree.flatten_with_path(model)[0]]
    assert paths[0] == ".one.weight"
    doubled = st.tree.map(lambda x: 2 * x, model)
    np.testing.assert_allclose(doubled.one.weight, 2 * model.one.weight)


def test_through_transformations():
    model = Pair().eval()
    expected = model(X)
    np.testing.assert_allclose(st.jit(lambda m, x: m(x))(model, X), expected, rtol=1e-5)
    np.testing.assert_allclose(st.vmap(model)(X), expected, rtol=1e-5)

    def loss(weights, m, x):
        m = m.clone()
        m.one.weight = weights
        return (m(x) ** 2).sum()

    by_array = st.grad(loss)(model.one.weight, model, X)
    by_module = st.grad(lambda m, x: (m(x) ** 2).sum())(model, X)
    assert isinstance(by_module, Pair) and not by_module.training
    np.testing.assert_allclose(by_module.one.weight, by_array, rtol=1e-5)
    jitted = st.jit(st.grad(lambda m, x: (m(x) ** 2).sum()))(model, X)
    np.testing.assert_allclose(jitted.one.weight, by_array, rtol=1e-5)

    def step(m, _):
        return st.tree.map(lambda p: p + 1, m), m.one.bias.sum()

    last, sums = st.lax.scan(step, model, None, length=3)
    assert isinstance(last, Pair)
    np.testing.assert_allclose(sums, [4, 8, 12])
    np.testing.assert_allclose(last.one.weight, model.one.weight + 3, rtol=1e-5)
    chosen = st.lax.cond(True, lambda m: m, lambda m: st.tree.map(lambda x: -x, m), model)
    same(chosen, model)


def test_mode_is_part_of_the_signature():
    traces = []

    @st.jit
    def f(m, x):
        traces.append(m.training)
        return m.one.weight.sum() * x

    model = Pair()
    f(model, 1.0)
    f(model.eval(), 1.0)
    f(model.train(), 1.0)
    f(Pair(key=st.random.PRNGKey(5)), 1.0)
    assert traces == [True, False]


def test_stack_call_and_unstack():
    keys = st.random.split(st.random.PRNGKey(3), 4)
    members = [Pair(key=k).eval() for k in keys]
    stacked = st.stack(members)
    assert isinstance(stacked, Pair) and stacked.one.weight.shape == (4, 4, 3)
    expected = np.stack([m(X) for m in members])
    each = st.vmap(lambda m: m(X))
    np.testing.assert_allclose(each(stacked), expected, rtol=1e-5)
    np.testing.assert_allclose(st.jit(each)(stacked), expected, rtol=1e-5)
    for m, back in zip(members, st.unstack(stacked), strict=True):
        same(back, m)
    same(st.take(stacked, -1), members[-1])
    gradient = st.jit(
        st.vmap(st.grad(lambda m: (m(X) ** 2).sum()))
    )(stacked)  # fmt: skip
    one = st.grad(lambda m: (m(X) ** 2).sum())(members[2])
    np.testing.assert_allclose(gradient.one.weight[2], one.one.weight, rtol=1e-4)
    mean = st.tree.mean([m.one for m in members])
    np.testing.assert_allclose(mean.weight, np.mean([m.one.weight for m in members], 0), rtol=1e-5)


def test_integers_among_buffers_do_not_stop_derivatives():
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    x = np.arange(12, dtype=np.float32).reshape(4, 3) ** 2

    def loss(model):
        return (nn.stateful_call(model, x)[0] ** 3).sum()

    slopes = st.grad(loss)(model)
    assert slopes[1].num_batches_tracked.dtype == st.dtypes.float0
    expected = st.grad(loss, allow_int=True)(model)
    np.testing.assert_array_equal(slopes[0].weight, expected[0].weight)
    assert st.jacrev(loss)(model)[1].num_batches_tracked.dtype == st.dtypes.float0
    both = st.Ensemble([model, model.clone()])
    slopes = st.grad(lambda both: (both.stateful_call(x)[0] ** 3).sum())(both)
    assert slopes.state_dict()[0]["1.num_batches_tracked"].dtype == st.dtypes.float0
    with pytest.raises(TypeError, match=r"steps must be of a floating dtype, got int32\[\]"):
        st.grad(lambda model, steps: loss(model), (0, 1))(model, 3)


def test_construction_inside_vmap_and_jit():
    keys = st.random.split(st.random.PRNGKey(3), 4)
    expected = st.stack([Pair(key=k) for k in keys])
    same(st.vmap(lambda k: Pair(key=k))(keys), expected)
    same(st.jit(st.vmap(lambda k: Pair(key=k)))(keys), expected)
    same(st.vmap(lambda k: Pair(key=k), chunk_size=3)(keys), expected)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (
            Affine(scale=2.0),
            r"member 1 .*part at member: a Affine with scale=1.0 and one with scal",
        ),
        (Affine().eval(), r"a Affine with training=True and one with training=False"),
        (
            Affine(bias=False),
            r"a Affine in which bias is a parameter, and one in which it is a sta",
        ),
        (Affine(4), r"member 1 differs from member 0 at member\.weight: shape \(2, 4\), expected"),
        (Pair(), "a Affine and a Pair"),
    ],
    ids=["setting", "mode", "attribute", "shape", "class"],
)
def test_members_that_differ(other, words):
    with pytest.raises(ValueError, match=words):
        st.stack([Affine(), other])


def test_deep_copies_beside_the_original_are_not_tied_to_it():
    layer = nn.Linear(2, 3)
    several = nn.ModuleList([layer, copy.deepcopy(layer), layer.clone()])
    assert len(list(several.named_parameters())) == 6
    tied = nn.ModuleList([layer, layer])
    assert len(list(copy.deepcopy(tied).named_parameters())) == 2


def test_the_array_is_kept_whole():
    array = snp.ones(3)
    assert nn.Parameter(nn.Parameter(array)).value is array
    assert not nn.Parameter(0.5).value.weak_type


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        ([1.0], TypeError, r"Parameter: value must be an array or a number; got a list"),
        (np.arange(3), TypeError, r"Parameter: int32\[3\] has no gradient.*register_buffer"),
        (np.array([True]), TypeError, r"Parameter: bool\[1\] has no gradient"),
        ("w", TypeError, "must be an array or a number"),
    ],
    ids=["list", "int", "bool", "str"],
)
def test_parameters_refused(value, error, words):
    with pytest.raises(error, match=words):
        nn.Parameter(value)


class Mean(nn.Module):
    """Subtracts the running mean of what it has seen."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(snp.ones(()))
        self.register_buffer("mean", snp.zeros(()))
        self.register_buffer("seen", snp.zeros((), int))

    def forward(self, x):
        if self.training:
            self.update_buffer("seen", self.seen + 1)
            self.update_buffer("mean", self.mean + (x.mean() - self.mean) / self.seen)
        return self.scale * (x - self.mean)


class Twice(nn.Module):
    """One layer called twice, under two names."""

    def __init__(self):
        super().__init__()
        self.first = Mean()
        self.second = self.first

    def forward(self, x):
        return self.second(self.first(x) + 10)


def test_at_rest():
    module = Mean()
    out, after = nn.stateful_call(module, snp.array([1.0, 3.0]))
    np.testing.assert_allclose(out, [-1, 1])
    assert float(after.mean) == 2 and int(after.seen) == 1
    assert float(module.mean) == 0 and int(module.seen) == 0
    assert np.shares_memory(np.asarray(after.scale), np.asarray(module.scale))
    with pytest.raises(TypeError, match="stateful_call: expected a module, got function"):
        nn.stateful_call(lambda x: x, 1)


def test_what_is_shared_is_updated_once_and_for_all():
    out, after = nn.stateful_call(Twice(), snp.array([1.0, 3.0]))
    assert after.first is after.second and int(after.first.seen) == 2
    np.testing.assert_allclose(after.first.mean, 6)
    np.testing.assert_allclose(out, [3, 5])


def test_what_is_shared_comes_apart_in_trees():
    # A tree has no two places for one thing; the call itself still sees one module.
    model = Twice()
    after = st.jit(lambda x: nn.stateful_call(model, x)[1])(snp.array([1.0, 3.0]))
    np.testing.assert_allclose([after.first.mean, after.second.mean], 6)
    assert after.first is not after.second
    apart = st.jit(nn.stateful_call)(model, snp.array([1.0, 3.0]))[1]
    np.testing.assert_allclose([apart.first.mean, apart.second.mean], [2, 10])


def test_in_every_transformation():
    x = snp.array([[1.0, 3.0], [5.0, 7.0]])
    out, after = st.jit(nn.stateful_call)(Mean(), x)
    np.testing.assert_allclose(out, x - 4)
    assert float(after.mean) == 4

    def loss(module, x):
        out, after = nn.stateful_call(module, x)
        return (out**2).sum(), after

    slopes, after = st.grad(loss, has_aux=True)(Mean(), x)
    assert float(after.mean) == 4 and float(slopes.scale) == 40

    members = st.stack([Mean() for _ in range(2)])
    _, each = st.vmap(nn.stateful_call)(members, x)
    np.testing.assert_allclose(each.mean, [2, 6])
    _, each = st.jit(st.vmap(nn.stateful_call, in_axes=(0, None)))(members, x)
    np.testing.assert_allclose(each.mean, [4, 4])

    def step(module, x):
        out, module = nn.stateful_call(module, x)
        return module, out

    last, _ = st.lax.scan(step, Mean(), x)
    assert float(last.mean) == 4 and int(last.seen) == 2


class Through(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.inner = Mean()
        self.how = how

    def forward(self, x):
        return self.how(self.inner)(x)


@pytest.mark.parametrize("how", [st.jit, st.vmap, st.checkpoint], ids=["jit", "vmap", "checkpoint"])
def test_a_transformation_inside_needs_a_call_of_its_own(how):
    model, x = Through(how), snp.array([1.0, 3.0])
    with pytest.raises(RuntimeError, match="began within the call which keeps buffers"):
        nn.stateful_call(model, x)
    with pytest.raises(RuntimeError, match=r"lost\. Call the model with"):
        st.jit(lambda m, x: m(x))(model, x)
    assert float(model.inner.mean) == 0


def test_the_way_out_for_checkpoint():
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Mean()

        def forward(self, x):
            out, self.inner = st.checkpoint(nn.stateful_call)(self.inner, x)
            return out

    _, after = nn.stateful_call(Layer(), snp.array([1.0, 3.0]))
    assert float(after.inner.mean) == 2


def test_other_modules_are_not_open():
    outside = Mean()

    class Reaches(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(1.0)

        def forward(self, x):
            return outside(x)

    with pytest.raises(RuntimeError, match=r"nn.stateful_call"):
        st.jit(nn.stateful_call)(Reaches(), snp.ones(2))
    assert int(outside.seen) == 0


def test_gradients_are_transformations_too():
    # What a derivative hands on may be concrete; the module that it is assigned to is lost.
    class Fixed(Mean):
        def forward(self, x):
            self.update_buffer("seen", st.lax.stop_gradient(self.seen + 1))
            return self.scale * x.sum()

    module = Fixed()
    for loss in (lambda m, x: m(x), lambda m, x: module(x)):
        with pytest.raises(RuntimeError, match=r"lost\. Call the model with"):
            st.grad(loss, 1)(module, snp.ones(2))
    assert int(module.seen) == 0
