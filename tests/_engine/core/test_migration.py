"""What is said of PyTorch's names is true: each replacement runs, and gives what PyTorch gives."""

import copy
import pickle
import re
import sys
from types import ModuleType

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn, optim
from stretto._engine.core.migration import (
    ARRAYS,
    ENSEMBLES,
    FUNCTIONS,
    KEYWORDS,
    MODULES,
    OPTIMIZERS,
    ROOT,
)
from stretto.compat.jax import modules, root

X = np.array([[0.1, 0.7, 0.4], [0.9, 0.2, 0.6], [0.3, 0.8, 0.5]], np.float32)
ARGUMENTS = {
    "x": X,
    "other": X.T[::-1].copy(),
    "tensors": [X, X],
    "mat1": X,
    "mat2": X + 1,
    "vec": X[0],
    "end": X + 2,
    "weight": 0.25,
    "value": 2.0,
    "exponent": 2,
    "min": 0.3,
    "max": 0.6,
    "dim": 1,
    "dim0": 0,
    "dim1": 1,
    "dims": (1, 0),
    "shifts": (1, 2),
    "start_dim": 1,
    "source": X[:2],
    "src": X[:, :2] + 3,
    "data": [1.0, 2.0],
    "size": (3, 3),
    "sizes": (1, 3),
    "split_size": 2,
    "chunks": 2,
    "start": 1,
    "length": 2,
    "repeats": 2,
    "k": 2,
    "q": 0.5,
    "mask": X > 0.5,
    "condition": X > 0.5,
    "index": np.array([[0, 2], [1, 0], [2, 1]]),
    "indices": np.array([0, 2]),
    "samples": 4,
    "counts": np.array([1, 1, 3]),
}
"""PyTorch's arguments; the array is ``x``."""

CALLS = {
    "unsqueeze unsqueeze_ softmax log_softmax logsumexp amax amin unbind": "(dim)",
    "index_select": "(dim, indices)",
    "permute tile flip": "(dims)",
    "movedim swapdims transpose_": "(dim0, dim1)",
    "expand new_zeros new_ones": "(size)",
    "new_full": "(size, value)",
    "new_tensor": "(data)",
    "fill_": "(value)",
    "split": "(split_size, dim)",
    "chunk": "(chunks, dim)",
    "narrow": "(dim, start, length)",
    "roll": "(shifts, dims)",
    "unflatten": "(dim, sizes)",
    "masked_fill masked_fill_": "(mask, value)",
    "masked_select": "(mask)",
    "where": "(condition, other)",
    "gather": "(dim, index)",
    "take_along_dim": "(index, dim)",
    "scatter scatter_": "(dim, index, src)",
    "index_add index_add_": "(0, indices, source)",
    "index_fill index_fill_": "(0, indices, value)",
    "repeat_interleave": "(repeats, dim)",
    "topk": "(k)",
    "pow pow_": "(exponent)",
    "matmul mm": "(mat2)",
    "mv": "(vec)",
    "addmm": "(mat1, mat2)",
    "clamp clamp_ clip_": "(min, max)",
    "lerp": "(end, weight)",
    "quantile": "(q)",
    "copy_ expand_as reshape_as view_as type_as add add_ sub sub_ subtract mul mul_ multiply div "
    "div_ divide true_divide eq ne lt le gt ge equal allclose isclose maximum minimum fmod "
    "remainder": "(other)",
}
"""The arguments of PyTorch's methods; those that are not here take none."""

ALIKE = {
    "bmm": "of three axes",
    "outer ger": "of one axis",
    "append aval device_buffer": "not PyTorch's",
    "bincount": "of integers",
    "new_empty bernoulli multinomial normal_ uniform_": "random, or undefined",
    "H is_cuda grad grad_fn requires_grad is_leaf": "no method",
    "to cpu cuda numpy get_device backward requires_grad_ retain_grad register_hook data_ptr "
    "is_contiguous": "another kind of thing",
    "is_complex is_floating_point numel nelement dim ndimension element_size": "a Python value",
}
"""The methods whose results are not compared below, and why."""


def each(table):
    return {name: entry for names, entry in table.items() for name in names.split()}


class Loss:
    """Stands where the advice says ``loss``."""

    def __call__(self, x):
        return sum(snp.sum(leaf**2) for leaf in st.tree.leaves(x))


def namespace():
    """Where advice is run: the usual names of packages, and PyTorch's names of arguments."""
    array = lambda v: snp.array(v) if isinstance(v, np.ndarray) else v
    key = st.random.key(0)
    model = nn.Linear(3, 3, key=key)
    params = dict(model.named_parameters())
    optimizer = optim.sgd(0.1)
    return {
        "st": st,
        "snp": snp,
        "nn": nn,
        "optim": optim,
        "numpy": np,
        **{name: array(value) for name, value in ARGUMENTS.items()},
        "key": key,
        "seed": 0,
        "loss": Loss(),
        "model": model,
        "models": [model, model],
        "params": params,
        "ensemble": st.Ensemble([model, model]),
        "grads": params,
        "optimizer": optimizer,
        "state": optimizer.init(params),
        "frozen": {"weight": False, "bias": True},
        "device": st.devices()[0],
        "sharding": st.devices()[0],
        "dtype": snp.float16,
        "lr": 0.1,
        "steps": 10,
        "max_norm": 1.0,
        "batch_size": 2,
        "low": 0,
        "high": 5,
        "n": 5,
        "i": 0,
    }


def replaced(advice, name):
    """What the first code of the advice gives, once all its code has run."""
    results = []
    here = namespace()
    if name == "bincount":
        here["x"] = here["counts"]
    for code in re.findall(r"`([^`]+)`", advice):
        try:
            compiled = compile(code, name, "eval")
        except SyntaxError:
            exec(code, here)
            results.append(here["x"])
        else:
            results.append(eval(compiled, here))
    assert results, "the advice names nothing to write"
    return results[0]


@pytest.mark.filterwarnings("ignore:dtype .*64 was asked for")
@pytest.mark.parametrize("name", ARRAYS)
def test_arrays(name):
    x = snp.array(X)
    for value in (x, nn.Parameter(x).value):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}': ") as error:
            getattr(value, name)
        assert ARRAYS[name] in str(error.value) and not hasattr(value, name)
    with pytest.raises(AttributeError, match=f"has no attribute '{name}': "):
        setattr(x, name, 1)
    assert name not in dir(x)
    ours = replaced(ARRAYS[name], name)
    if name in each(ALIKE):
        return
    torch = pytest.importorskip("torch")
    tensor = lambda v: torch.tensor(v) if isinstance(v, np.ndarray) else v
    here = {key: tensor(value) for key, value in ARGUMENTS.items()}
    theirs = eval(f"x.{name}{each(CALLS).get(name, '()')}", here)
    several = isinstance(theirs, (tuple, list))
    pairs = zip(ours, theirs, strict=True) if several else [(ours, theirs)]
    for a, b in pairs:
        if isinstance(b, torch.Tensor):
            assert tuple(a.shape) == tuple(b.shape)
            b = b.detach().float().numpy()
        np.testing.assert_allclose(np.asarray(a).astype(np.float32), b, rtol=1e-5)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_packages(name):
    for package in (st, snp, nn, st.random, st.func, optim, nn.init):
        if name not in {*dir(package), *vars(package)}:
            with pytest.raises(AttributeError, match=f"has no attribute '{name}': ") as error:
                getattr(package, name)
            assert FUNCTIONS[name] in str(error.value)
    assert replaced(FUNCTIONS[name], name) is not None


@pytest.mark.parametrize("name", ROOT)
def test_names_of_jax_that_stand_elsewhere(name):
    assert name not in dir(st)
    with pytest.raises(AttributeError, match=f"has no attribute '{name}': ") as error:
        getattr(st, name)
    assert ROOT[name] in str(error.value)
    code, *under_jax = re.findall(r"`([^`]+)`", ROOT[name])
    assert eval(code.partition("(")[0], namespace()) is not None
    for path in [code.removeprefix("jax.") for code in under_jax if code.startswith("jax.")]:
        home, _, last = path.rpartition(".")
        assert modules._home(path) or hasattr(modules._home(home) if home else root, last)


def test_names_of_other_packages():
    for package, name, instead in [
        (st, "zeros", "snp.zeros"),
        (st, "float32", "snp.float32"),
        (st, "manual_seed", "st.random.manual_seed"),
        (snp, "softmax", "nn.functional.softmax"),
        (nn, "cross_entropy", "nn.functional.cross_entropy"),
        (snp, "vmap", "st.vmap"),
        (st, "stack_module_state", "st.func.stack_module_state"),
        (optim, "grad", "st.grad"),
        (st, "inv", "snp.linalg.inv"),
        (st, "scan", "st.lax.scan"),
        (st.lax, "zeros", "snp.zeros"),
        (st, "EMA", "st.ensemble.EMA"),
        (nn.functional, "Linear", "nn.Linear"),
    ]:
        with pytest.raises(AttributeError, match=rf"'{name}': use `{re.escape(instead)}`$"):
            getattr(package, name)
        assert eval(instead, namespace()) is not None
    for package in (st, snp, nn, optim, st.func, nn.init):
        with pytest.raises(AttributeError, match=r"has no attribute 'nowhere'$"):
            package.nowhere  # noqa: B018


@pytest.mark.filterwarnings("ignore:dtype .*64 was asked for")
@pytest.mark.parametrize("name", MODULES)
def test_modules(name):
    model = nn.Linear(2, 2, key=st.random.key(0))
    with pytest.raises(AttributeError, match=f"Linear has no attribute '{name}'; ") as error:
        getattr(model, name)
    assert MODULES[name] in str(error.value)
    assert replaced(MODULES[name], name) is not None


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name):
    with pytest.raises(AttributeError, match=f"has no attribute '{name}': ") as error:
        getattr(optim.adam(0.1), name)
    assert OPTIMIZERS[name] in str(error.value)
    assert replaced(OPTIMIZERS[name], name) is not None


@pytest.mark.parametrize("name", ENSEMBLES)
def test_ensembles(name):
    class Own(st.Ensemble):
        """With an attribute of its own of this name."""

    ensemble = st.Ensemble([nn.Linear(2, 2, key=st.random.key(0))])
    with pytest.raises(AttributeError, match=f"'Ensemble' object has no attribute '{name}': ") as e:
        getattr(ensemble, name)
    assert ENSEMBLES[name] in str(e.value) and not hasattr(ensemble, name)
    assert e.value.name == name and e.value.obj is ensemble and name not in dir(ensemble)
    assert replaced(ENSEMBLES[name], name) is not None
    own = Own(list(ensemble))
    setattr(own, name, 1)
    assert getattr(own, name) == 1


def test_ensembles_lack_other_names():
    ensemble = st.Ensemble([nn.Linear(2, 2, key=st.random.key(0))])
    with pytest.raises(AttributeError, match=r"'Ensemble' object has no attribute 'nowhere'$"):
        ensemble.nowhere  # noqa: B018
    assert len(copy.deepcopy(ensemble)) == len(pickle.loads(pickle.dumps(ensemble))) == 1


def test_what_is_looked_for_is_not_there():
    """So that ``hasattr`` tells libraries of one kind from those of another."""
    for x, table in (
        (nn.Linear(2, 2, key=st.random.key(0)), MODULES),
        (optim.adam(0.1), OPTIMIZERS),
    ):
        assert not any(hasattr(x, name) for name in table)


def test_keywords_of_flatten():
    with pytest.raises(TypeError, match=r"use `x\.reshape\(\*x\.shape\[:start_dim\], -1\)`"):
        st.jit(lambda x: x.flatten(start_dim=1))(snp.array(X))


def test_a_frozen_parameter_stays():
    here = namespace()
    optimizer = replaced(MODULES["requires_grad_"], "requires_grad_")
    params, grads = here["params"], here["grads"]
    updates, _ = optimizer.update(grads, optimizer.init(params), params)
    assert not updates["bias"].any() and updates["weight"].any()


@pytest.mark.parametrize(
    ("keyword", "call"),
    [
        ("dim", lambda x: x.sum(dim=0)),
        ("dim", lambda x: snp.concatenate([x, x], dim=0)),
        ("keepdim", lambda x: snp.mean(x, 0, keepdim=True)),
        ("unbiased", lambda x: x.std(unbiased=False)),
    ],
)
def test_keywords_inside_transformations_and_modules(keyword, call):
    class Model(nn.Module):
        def forward(self, x):
            return call(x)

    x = snp.array(X)
    expected = f"unexpected keyword argument '{keyword}'; it is {KEYWORDS[keyword]} here(\n|$)"
    for run in (st.jit(call), st.grad(call), st.vmap(call), Model(), st.jit(Model())):
        with pytest.raises(TypeError, match=expected):
            run(x)


def test_a_call_of_size():
    class Model(nn.Module):
        def forward(self, x):
            return x.reshape(x.size(0), -1)

    x = snp.array(X)
    for run in (Model(), st.jit(Model()), st.vmap(lambda x: x.size())):
        with pytest.raises(TypeError, match=r"number of elements: use `x\.shape\[0\]`"):
            run(x)
    with pytest.raises(TypeError, match="not callable") as error:
        st.jit(lambda x: x.ndim())(x)
    assert "shape" not in str(error.value)


def test_other_keywords_are_not_explained():
    for call in (lambda x: x.sum(nowhere=0), lambda x: snp.exp(x, dim=0)):
        with pytest.raises(TypeError) as error:
            st.jit(call)(snp.array(X))
        assert "; it is" not in str(error.value)


def test_keywords_of_vmap_and_of_modules():
    for keyword in ("in_dims", "out_dims"):
        with pytest.raises(TypeError, match=rf"it is {KEYWORDS[keyword]} here; `st\.func\.vmap` "):
            st.vmap(snp.exp, **{keyword: 0})
    with pytest.raises(TypeError, match=r"'randomness'; `st\.func\.vmap` has"):
        st.vmap(snp.exp, randomness="same")
    model = nn.Linear(2, 2, key=st.random.key(0))
    with pytest.raises(TypeError, match=r"'device'; for a device use `model = st\.device_put"):
        model.to(device="cpu")
    with pytest.raises(TypeError, match=r"are called by `st\.func\.functional_call`"):
        model.named_parameters(remove_duplicate=False)


def test_keywords_of_optimizers():
    for optimizer in (optim.sgd, optim.adam, optim.adamw, optim.rmsprop):
        with pytest.raises(TypeError, match="keyword argument 'lr'; it is learning_rate here"):
            optimizer(lr=0.1)
    with pytest.raises(TypeError, match=r"'weight_decay'; `optim\.adamw` has it"):
        optim.adam(0.1, weight_decay=0.1)
    with pytest.raises(TypeError, match="'betas'; its entries are b1 and b2 here"):
        optim.adamw(0.1, betas=(0.9, 0.99))


@pytest.mark.parametrize("imported", [False, True])
def test_what_is_of_pytorch_s_classes(imported, monkeypatch):
    """Those of its packages, and those derived from them, once it is imported."""
    if imported:
        monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    else:
        monkeypatch.delitem(sys.modules, "torch", raising=False)
    of_pytorch = type("Linear", (), {"__module__": "torch.nn.modules.linear"})
    derived = type("Derived", (of_pytorch,), {})
    other = type("Other", (), {"__module__": "torchlike.nn"})
    for kind in (of_pytorch, derived, other):
        whose = "PyTorch's " if imported and kind is not other else ""
        with pytest.raises(TypeError, match=f"got {whose}{kind.__name__}"):
            nn.Sequential(kind())


def test_pytorchs_modules_and_functions():
    torch = pytest.importorskip("torch")
    layer, x = torch.nn.Linear(3, 3), snp.array(X)

    class Derived(torch.nn.Linear):
        pass

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

    expected = r"got PyTorch's (Linear|Derived), of which `st\.from_torch\(model, example_args\)`"
    for make in (
        lambda: nn.Sequential(layer),
        lambda: nn.ModuleDict({"a": Derived(3, 3)}),
        lambda: nn.Identity().register_module("a", layer),
        lambda: st.func.stack_module_state([layer]),
        lambda: st.func.functional_call(layer, {}, x),
        Model,
    ):
        with pytest.raises(TypeError, match=expected):
            make()
    for transform in (st.jit, st.vmap, st.grad):
        with pytest.raises(TypeError, match=r"not \w+; PyTorch's functions take no arrays: use "):
            transform(torch.sum)(x)
    assert nn.Sequential(st.from_torch(layer, torch.ones(2, 3)))(x).shape == (3, 3)


def test_tensors_beside_arrays():
    torch = pytest.importorskip("torch")
    tensor, x = torch.tensor(X), snp.array(X)
    for mix in (lambda: x + tensor, lambda: tensor + x, lambda: x @ tensor, lambda: x < tensor):
        with pytest.raises(TypeError, match=r"one a PyTorch Tensor; use `snp\.asarray\(tensor\)`"):
            mix()
    assert (x + snp.asarray(tensor) == 2 * x).all()
    for dtype in (torch.float32, torch.int8, torch.bfloat16, torch.bool):
        with pytest.raises(TypeError, match=f"expected a dtype, got {dtype}; use snp.") as error:
            x.astype(dtype)
        named = eval(str(error.value).split("use ")[1], {"snp": snp})
        assert snp.zeros(1, named).dtype.name == str(dtype).split(".")[1]
