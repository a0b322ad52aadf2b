"""``functional_call`` and ``stack_module_state``: by name, without touching the module."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto.func import functional_call, stack_module_state, vmap


class Affine(nn.Module):
    def __init__(self, n_in, n_out, bias=True, *, key):
        super().__init__()
        self.weight = nn.Parameter(st.random.normal(key, (n_out, n_in)))
        self.bias = nn.Parameter(snp.ones(n_out)) if bias else None

    def forward(self, x):
        out = x @ self.weight.T
        return out if self.bias is None else out + self.bias


class Norm(nn.Module):
    """Subtracts the mean: that of the batch when trained, the running one else."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", snp.zeros(()))
        self.register_buffer("seen", snp.zeros((), int), persistent=False)

    def forward(self, x):
        if not self.training:
            return x - self.mean
        self.update_buffer("seen", self.seen + 1)
        self.update_buffer("mean", 0.5 * self.mean + 0.5 * x.mean())
        return x - x.mean()


class Model(nn.Module):
    def __init__(self, width=4, norm=True, *, key):
        super().__init__()
        one, two = st.random.split(key)
        self.first = Affine(3, width, key=one)
        self.norm = Norm() if norm else None
        self.second = Affine(width, 2, bias=False, key=two)

    def forward(self, x, scale=1.0):
        x = snp.tanh(self.first(x))
        x = x if self.norm is None else self.norm(x)
        return self.second(x) * scale


class Tied(nn.Module):
    """One array under two names, and one module under two."""

    def __init__(self, *, key):
        super().__init__()
        self.a = Affine(3, 3, key=key)
        self.b = Affine(3, 3, key=key)
        self.b.weight = self.a.weight
        self.c = self.a

    def forward(self, x):
        return self.a(x) - self.b(x) + 2 * self.c(x)


KEY = st.random.PRNGKey(0)
KEYS = st.random.split(KEY, 5)
X = st.random.normal(st.random.PRNGKey(1), (6, 3))


def leaves(module):
    return [np.array(x) for x in st.tree.leaves(module)]


def close(a, b, rtol=1e-5):
    np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-6)


def test_arrays_by_name():
    model = Model(key=KEY).eval()
    other = Model(key=KEYS[1]).eval()
    before = leaves(model)
    state = other.state_dict()
    close(functional_call(model, state, X), other(X))
    close(functional_call(model, (dict(other.named_parameters()), {}), (X,)), other(X))
    close(functional_call(model, {}, (X,), {"scale": 3.0}), 3 * model(X))
    close(functional_call(model, [state], (X, 3.0)), 3 * other(X))
    half = {k: v.astype(snp.bfloat16) for k, v in state.items()}
    assert functional_call(model, half, X.astype(snp.bfloat16)).dtype == snp.bfloat16
    one = functional_call(model, {"first.weight": other.first.weight}, X)
    expected = model.clone()
    expected.first = expected.first.clone()
    expected.first.weight = other.first.weight
    close(one, expected(X))
    close(functional_call(model, {"first.bias": np.ones(4, np.float32)}, X), model(X))
    for a, b in zip(before, leaves(model), strict=True):
        np.testing.assert_array_equal(a, b)


def test_no_arguments():
    class Constant(nn.Module):
        def __init__(self):
            super().__init__()
            self.x = nn.Parameter(2.0)

        def forward(self):
            return self.x

    assert float(functional_call(Constant(), {"x": 3.0})) == 3


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"first.wieght": 1}, ValueError, r"Model has no parameter or buffer first\.wieght; it has "
                                          r"first\.weight, first\.bias, norm\.mean"),
        ({"second.bias": 1}, ValueError, r"has no parameter or buffer second\.bias"),
        ({"first": 1}, ValueError, "has no parameter or buffer first;"),
        ({"first.bias": np.ones(5)}, ValueError, r"first\.bias must have shape \(4,\), got f"),
        ({"first.bias": np.ones((9, 4))}, ValueError, r"shape \(4,\), .*by func\.vmap"),
        ({"first.bias": "words"}, TypeError, r"first\.bias must be an array"),
        (({"first.bias": 1}, {"first.bias": 1}), ValueError, r"first\.bias is in two dictionaries"),
        (3, TypeError, "expected a dictionary of arrays by name, or a tuple of such; got int"),
        ((3,), TypeError, "expected a dictionary of arrays by name"),
    ],
)  # fmt: skip
def test_refused(given, error, words):
    with pytest.raises(error, match=f"functional_call: .*{words}"):
        functional_call(Model(key=KEY).eval(), given, X)


def test_no_module():
    with pytest.raises(TypeError, match="functional_call: expected a module, got function"):
        functional_call(lambda x: x, {}, X)


def test_strict():
    model = Model(key=KEY).eval()
    everything = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    close(functional_call(model, everything, X, strict=True), model(X))
    del everything["first.bias"], everything["norm.mean"]
    with pytest.raises(ValueError, match=r"strict=True, and these.*: first\.bias, norm\.mean$"):
        functional_call(model, everything, X, strict=True)


def test_tied_weights_follow():
    model = Tied(key=KEY)
    given = {"b.weight": 2 * snp.ones((3, 3))}
    a = functional_call(model, given, X)
    ones = X.sum(1, keepdims=True) * 2 * snp.ones(3)
    close(a, 2 * (ones + 1))
    close(functional_call(model, {"a.weight": given["b.weight"]}, X), a)
    alone = functional_call(model, given, X, tie_weights=False)
    close(alone, 3 * model.a(X) - (ones + 1))
    # A module under two names is one, whatever is asked.
    through = functional_call(model, {"c.weight": given["b.weight"]}, X, tie_weights=False)
    close(through, 3 * (ones + 1) - model.b(X))
    state = model.state_dict()
    close(functional_call(model, state, X, strict=True), model(X))
    names = {n for n, _ in model.named_parameters()}
    assert names == {"a.weight", "a.bias", "b.bias"}
    close(functional_call(model, dict(model.named_parameters()), X, strict=True), model(X))
    two = {"a.weight": snp.ones((3, 3)), "b.weight": snp.zeros((3, 3))}
    with pytest.raises(
        ValueError, match=r"a\.weight and b\.weight are one array.*tie_weights=False"
    ):
        functional_call(model, two, X)
    apart = functional_call(model, two, X, tie_weights=False)
    close(apart, 3 * (X.sum(1, keepdims=True) + snp.ones(3)) - 1)
    with pytest.raises(ValueError, match=r"a\.bias and c\.bias are one array .*one of them$"):
        functional_call(
            model, {"a.bias": snp.ones(3), "c.bias": snp.zeros(3)}, X, tie_weights=False
        )


def test_gradients_of_tied_weights_add_up():
    model = Tied(key=KEY)
    params = dict(model.named_parameters())

    def loss(params):
        return functional_call(model, params, X).sum()

    slopes = st.grad(loss)(params)
    # (a - b + 2 a) of one array: twice the gradient of one use.
    close(slopes["a.weight"], 2 * snp.ones((3, 1)) * X.sum(0))
    close(st.jit(st.grad(loss))(params)["a.weight"], slopes["a.weight"])


def test_buffers():
    model = Model(key=KEY)
    out, buffers = functional_call(model, {}, X, return_buffers=True)
    assert set(buffers) == {"norm.mean", "norm.seen"} and int(buffers["norm.seen"]) == 1
    hidden = snp.tanh(model.first(X))
    close(buffers["norm.mean"], 0.5 * hidden.mean())
    close(out, model.second(hidden - hidden.mean()))
    assert int(model.norm.seen) == 0

    def twice(params, buffers, x):
        for _ in range(2):
            out, buffers = functional_call(model, (params, buffers), x, return_buffers=True)
        return out, buffers

    params = dict(model.named_parameters())
    _, again = st.jit(twice)(params, dict(model.named_buffers()), X)
    close(again["norm.mean"], 0.75 * hidden.mean())
    assert int(again["norm.seen"]) == 2

    slopes, _ = st.grad(lambda p: (twice(p, {}, X)[0].sum(), None), has_aux=True)(params)
    assert slopes["first.weight"].shape == (4, 3)


def test_updates_that_would_be_lost_are_refused():
    model = Model(key=KEY)
    for how in (lambda f: f, st.jit, lambda f: st.vmap(f, in_axes=0)):
        with pytest.raises(RuntimeError, match=r"functional_call loses the update.*return_buffers"):
            how(lambda x: functional_call(model, {}, x))(X)
    assert int(model.norm.seen) == 0
    close(functional_call(model.eval(), {}, X), model(X))
    model.train()
    assert model(X).shape == (6, 2) and int(model.norm.seen) == 1  # the model's own calls go on


# Stacks


def test_stack_and_map():
    models = [Model(key=k).eval() for k in KEYS]
    params, buffers = stack_module_state(models)
    assert list(params) == [n for n, _ in models[0].named_parameters()]
    assert params["first.weight"].shape == (5, 4, 3)
    assert buffers["norm.seen"].shape == (5,)
    base = models[0]

    def call(params, buffers, x):
        return functional_call(base, (params, buffers), (x,))

    expected = np.stack([m(X) for m in models])
    close(vmap(call, in_dims=(0, 0, None))(params, buffers, X), expected)
    close(st.jit(vmap(call, in_dims=(0, 0, None)))(params, buffers, X), expected)
    close(vmap(call, in_dims=(0, 0, None), chunk_size=2)(params, buffers, X), expected)
    each = st.random.normal(KEY, (5, 6, 3))
    close(vmap(call)(params, buffers, each), np.stack([m(x) for m, x in zip(models, each)]))
    slopes = st.jit(st.vmap(st.grad(lambda p, b: call(p, b, X).sum())))(params, buffers)
    one = st.grad(lambda p: functional_call(models[3], p, X).sum())(
        dict(models[3].named_parameters())
    )
    for name, slope in one.items():
        close(slopes[name][3], slope, rtol=1e-4)
    from_list, _ = stack_module_state(nn.ModuleList(models))
    close(from_list["second.weight"], params["second.weight"])


def test_training_steps_of_all_members():
    models = [Model(key=k) for k in KEYS]
    params, buffers = stack_module_state(models)

    def loss(p, b, x):
        out, b = functional_call(models[0], (p, b), (x,), return_buffers=True)
        return (out**2).mean(), b

    @st.jit
    @st.vmap
    def step(p, b, x):
        slopes, b = st.grad(loss, has_aux=True)(p, b, x)
        return st.tree.map(lambda w, g: w - 0.1 * g, p, slopes), b

    each = st.random.normal(KEY, (5, 6, 3))
    new, state = step(params, buffers, each)
    for i, m in enumerate(models):
        slopes, after = st.grad(loss, has_aux=True)(
            dict(m.named_parameters()), dict(m.named_buffers()), each[i]
        )
        close(state["norm.mean"][i], after["norm.mean"])
        close(new["first.weight"][i], m.first.weight - 0.1 * slopes["first.weight"])
    np.testing.assert_array_equal(state["norm.seen"], [1] * 5)


def test_tied_members():
    models = [Tied(key=k) for k in KEYS]
    params, _ = stack_module_state(models)
    assert list(params) == ["a.weight", "a.bias", "b.bias"]
    close(
        vmap(lambda p: functional_call(models[0], p, X))(params), np.stack([m(X) for m in models])
    )
    models[2].b.weight = models[2].b.weight + 1
    with pytest.raises(ValueError, match="member 2 holds one array at two places where member 0"):
        stack_module_state(models)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (
            Model(5, key=KEY),
            r"member 1 differs from member 0 at member\.first\.weight: shape \(5, 3",
        ),
        (Model(norm=False, key=KEY), r"member 1 .*norm"),
        (Model(key=KEY).eval(), "member 1 .*training=True and one with training=False"),
        (Tied(key=KEY), "member 1 .*a Model and a Tied"),
    ],
    ids=["shape", "structure", "mode", "class"],
)
def test_members_that_differ(other, words):
    with pytest.raises(ValueError, match=words):
        stack_module_state([Model(key=KEY), other])


def test_no_members():
    with pytest.raises(ValueError, match="stack_module_state: expected at least one module"):
        stack_module_state([])
    with pytest.raises(TypeError, match="member 1 must be a module, got dict"):
        stack_module_state([Model(key=KEY), {}])
