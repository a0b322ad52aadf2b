"""The class: calls, modes, arrays by name, and its way as a tree."""

import copy
import pickle

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from tests.ensemble.models import KEY, X, close, mlp, mlps, product, trees

MADE = {
    "a list of trees": lambda: st.Ensemble(product, trees(3)),
    "a tuple of trees": lambda: st.Ensemble(product, tuple(trees(3))),
    "an iterator of trees": lambda: st.Ensemble(product, iter(trees(3))),
    "a stacked tree": lambda: st.Ensemble(product, st.stack(trees(3))),
}


@pytest.mark.parametrize("how", MADE)
def test_an_ensemble_of_a_function(how):
    ensemble = MADE[how]()
    assert len(ensemble) == 3
    close(ensemble(X), [product(p, X) for p in trees(3)])


def test_a_stacked_list_is_said_to_be_one():
    weights, offsets = snp.ones((3, 4, 2)), snp.arange(6.0).reshape(3, 2)
    ensemble = st.Ensemble(lambda p, x: x @ p[0] + p[1], [weights, offsets], stacked=True)
    assert ensemble(X).shape == (3, 7, 2)


@pytest.mark.parametrize("stacked", [False, True])
def test_an_ensemble_of_modules(stacked):
    models = mlps(5, 5, 5)
    ensemble = st.Ensemble(st.stack(models) if stacked else models)
    close(ensemble(X), [m(X) for m in models])
    assert isinstance(ensemble[1], nn.Sequential)


def test_several_architectures_keep_their_order():
    models = mlps(5, 3, 5, 4, 3)
    ensemble = st.Ensemble(models)
    assert [len(g) for g in ensemble.groups] == [2, 2, 1]
    close(ensemble(X), [m(X) for m in models])
    xs = st.random.normal(KEY, (5, 7, 4))
    close(ensemble.each(xs), [m(x) for m, x in zip(models, xs, strict=True)])


def test_a_function_for_each_member():
    double = lambda p, x: 2 * product(p, x)
    members = trees(3)
    ensemble = st.Ensemble([product, double, product], members)
    assert [len(g) for g in ensemble.groups] == [2, 1]
    close(ensemble(X), [product(members[0], X), double(members[1], X), product(members[2], X)])
    assert ensemble[1].function is double


def test_init_gives_each_member_its_key():
    ensemble = st.Ensemble.init(mlp, KEY, 3)
    close(ensemble(X), [mlp(k)(X) for k in st.random.split(KEY, 3)])
    of_trees = st.Ensemble.init(
        lambda key: {"w": st.random.normal(key, (4, 2)), "b": snp.zeros(2)},
        KEY,
        2,
        apply=product,
        frozen="b",
    )
    assert [list(d) for d in of_trees.trainable()] == [["w"]]
    with pytest.raises(
        TypeError, match=r"Ensemble.init: init gave dict; expected a module, or apply="
    ):
        st.Ensemble.init(lambda key: {"w": snp.zeros(2)}, KEY, 2)


# Modes and statistics


def normed(key):
    first, second = st.random.split(key)
    return nn.Sequential(nn.Linear(4, 3, key=first), nn.BatchNorm1d(3), nn.Linear(3, 2, key=second))


def test_running_statistics_are_each_members_own():
    models = [normed(k) for k in st.random.split(KEY, 3)]
    ensemble = st.Ensemble([m.clone() for m in models])
    out, after = ensemble.stateful_call(X)
    pairs = [nn.stateful_call(m, X) for m in models]
    close(out, [o for o, _ in pairs])
    for name in ("running_mean", "running_var", "num_batches_tracked"):
        close(after.state_dict()[0][f"1.{name}"], [getattr(m[1], name) for _, m in pairs])
    assert not np.asarray(ensemble.state_dict()[0]["1.running_mean"]).any()
    close(after.eval()(X), [m.eval()(X) for _, m in pairs])
    xs = st.random.normal(KEY, (3, 7, 4))
    each, after = ensemble.stateful_each(xs)
    close(each, [nn.stateful_call(m, x)[0] for m, x in zip(models, xs, strict=True)])
    close(after[2][1].running_mean, nn.stateful_call(models[2], xs[2])[1][1].running_mean)


def test_train_and_eval():
    ensemble = st.Ensemble([normed(KEY)] * 2)
    assert ensemble.eval() is ensemble
    assert not any(m.training for m in ensemble[0].modules())
    assert all(m.training for m in ensemble.train()[0].modules())


def test_members_that_differ_in_mode_become_one_group():
    models = [mlp(k) for k in st.random.split(KEY, 3)]
    models[1].eval()
    ensemble = st.Ensemble(models)
    assert len(ensemble.groups) == 2
    full = ensemble(X)
    assert len(ensemble.eval().groups) == 1
    close(ensemble(X), full)


def test_batch_normalization_in_train_mode_needs_a_place_for_its_state():
    ensemble = st.Ensemble([normed(KEY)] * 2)
    with pytest.raises(RuntimeError, match=r"BatchNorm1d: .* Ensemble a stateful_call of its own"):
        ensemble(X)
    with pytest.raises(TypeError, match="expected members that are modules"):
        st.Ensemble(product, trees(2)).stateful_call(X)
    with pytest.raises(
        TypeError, match=r"Ensemble.stateful_each: expected members that are modules"
    ):
        st.Ensemble(product, trees(2)).stateful_each(X)
    shared = st.Ensemble([normed(KEY)] * 2, shared="1")
    with pytest.raises(ValueError, match=r"updates 1\.running_mean, which the members share"):
        shared.stateful_call(X)
    close(shared.eval()(X)[0], shared[0](X))


def test_dropout_draws_for_each_member():
    ensemble = st.Ensemble([nn.Sequential(nn.Dropout(0.5), nn.Linear(4, 4))] * 3)
    ones = snp.ones((50, 4))
    with pytest.raises(RuntimeError, match=r"Dropout draws .* pass key= to the call"):
        ensemble(ones)
    out = np.asarray(ensemble(ones, key=KEY))
    assert not (out[0] == out[1]).all()
    close(out, ensemble(ones, key=KEY))
    for k, (key, member) in enumerate(zip(st.random.split(KEY, 3), ensemble, strict=True)):
        with nn.keys(key):
            close(member(ones), out[k])
    close(ensemble.eval()(ones)[0], ensemble(ones, key=KEY)[0])


@pytest.mark.parametrize("key", [snp.ones(3), 1.5, "no"], ids=str)
def test_what_is_no_key(key):
    ensemble = st.Ensemble([nn.Linear(4, 2)])
    with pytest.raises(TypeError, match=r"random.Ensemble: .*key"):
        ensemble(X, key=key)


# Arrays by name


def test_shared_parts_are_there_once():
    trunk = nn.Linear(4, 5, key=KEY)
    models = [
        nn.Sequential(trunk, nn.Tanh(), nn.Linear(5, 2, key=k)) for k in st.random.split(KEY, 3)
    ]
    ensemble = st.Ensemble(models, shared="0")
    shapes = {n: x.shape for n, x in ensemble.state_dict()[0].items()}
    assert shapes == {"0.weight": (5, 4), "0.bias": (5,), "2.weight": (3, 2, 5), "2.bias": (3, 2)}
    close(ensemble(X), [m(X) for m in models])
    close(ensemble[1:](X), [m(X) for m in models[1:]])
    assert "2 of 4 arrays shared" in repr(ensemble)
    grads = st.grad(lambda e: (e(X) ** 2).sum())(ensemble)
    by_hand = sum(st.grad(lambda m: (m(X) ** 2).sum())(m)[0].weight for m in models)
    close(grads.state_dict()[0]["0.weight"], by_hand)


def test_trainable_leaves_out_frozen_parts_buffers_and_integers():
    ensemble = st.Ensemble([normed(KEY)] * 2, frozen=["0", "*.bias"])
    assert list(ensemble.trainable()[0]) == ["1.weight", "2.weight"]
    chosen = st.Ensemble([normed(KEY)] * 2, frozen=lambda name: name.startswith("2"))
    assert list(chosen.trainable()[0]) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    counted = st.Ensemble(lambda p, x: x * p["w"], [{"w": snp.ones(2), "n": snp.int32(3)}])
    assert list(counted.trainable()[0]) == ["w"]


def test_a_pattern_need_not_cover_every_architecture():
    models = [nn.Sequential(nn.Linear(4, 2)), nn.Linear(4, 2)]
    ensemble = st.Ensemble(models, frozen="0.bias")
    assert [list(d) for d in ensemble.trainable()] == [["0.weight"], ["weight", "bias"]]


def test_replace():
    ensemble = st.Ensemble(mlps(5, 3, 5))
    zeros = [st.tree.map(snp.zeros_like, d) for d in ensemble.trainable()]
    assert not np.asarray(ensemble.replace(zeros)(X)).any()
    one = ensemble.replace([{"0.bias": snp.ones((2, 5))}, {}])
    close(one.state_dict()[0]["0.bias"], np.ones((2, 5)))
    close(one[1](X), ensemble[1](X))
    with pytest.raises(ValueError, match="expected a dictionary for each of 2 groups, got 1"):
        ensemble.replace(zeros[:1])
    with pytest.raises(ValueError, match=r"there is no 0\.wait; the parts are 0\.weight, 0\.bias"):
        ensemble.replace([{"0.wait": 0}, {}])
    with pytest.raises(ValueError, match=r"0\.bias: expected shape \(2, 5\), got \(2, 3\)"):
        ensemble.replace([{"0.bias": snp.ones((2, 3))}, {}])


def test_repr():
    ensemble = st.Ensemble(mlps(5, 3, 5))
    assert repr(ensemble) == (
        "Ensemble of 3 members\n"
        "  2 × Sequential: 4 arrays each, 37 numbers\n"
        "  1 × Sequential: 4 arrays each, 23 numbers"
    )
    assert "2 × product: 2 arrays each" in repr(st.Ensemble(product, trees(2)))


# As a tree


@pytest.fixture(scope="module")
def several():
    return st.Ensemble(mlps(5, 3, 5))


def test_through_jit(several):
    close(st.jit(lambda e, x: e(x))(several, X), several(X))
    halved = st.jit(lambda e: st.tree.map(lambda x: x / 2, e))(several)
    assert isinstance(halved, st.Ensemble)
    close(halved.state_dict()[1]["0.bias"], several.state_dict()[1]["0.bias"] / 2)


@pytest.mark.parametrize("jit", [False, True])
def test_through_grad(several, jit):
    grad = st.grad(lambda e: (e(X) ** 2).sum())
    grads = (st.jit(grad) if jit else grad)(several)
    for member, of_member in zip(several, grads, strict=True):
        alone = st.grad(lambda m: (m(X) ** 2).sum())(member)
        st.tree.map(close, of_member, alone)
    second = st.jit(st.grad(lambda t: (several.replace([{"0.bias": t}, {}])(X) ** 2).sum()))
    bias = several.state_dict()[0]["0.bias"]
    hessian = st.jacfwd(second)(bias)
    assert hessian.shape == (2, 5, 2, 5)
    assert not np.asarray(hessian[0, :, 1]).any()  # members have nothing to do with each other


def test_through_vmap(several):
    rates = snp.array([0.0, 1.0])
    moved = st.vmap(lambda r: st.tree.map(lambda x: r * x, several))(rates)
    out = st.vmap(lambda e: e(X))(moved)
    close(out[1], several(X))
    assert not np.asarray(out[0]).any()
    close(st.vmap(several)(X[:, None])[:, :, 0], several(X).transpose(1, 0, 2))


def test_through_scan(several):
    def step(ensemble, x):
        grads = st.grad(lambda e: (e(x) ** 2).mean())(ensemble)
        return st.tree.map(lambda p, g: p - 0.1 * g, ensemble, grads), ensemble(x).sum()

    last, sums = st.lax.scan(step, several, snp.stack([X, X]))
    by_hand, first = step(several, X)
    close(sums[0], first)
    close(last(X), step(by_hand, X)[0](X))


def test_copies_and_pickles(several):
    for made in (copy.copy(several), copy.deepcopy(several), pickle.loads(pickle.dumps(several))):
        close(made(X), several(X))
        assert st.tree.structure(made) == st.tree.structure(several)
        made.drop(0)
        assert len(several) == 3


def test_its_leaves_have_readable_names(several):
    one = st.Ensemble(mlps(5))
    paths = lambda tree: [st.tree.keystr(p) for p, _ in st.tree.flatten_with_path(tree)[0]]
    assert paths(one)[:2] == [".0.weight", ".0.bias"]
    assert paths(several)[4] == ".group1.0.weight"
    with pytest.raises(ValueError, match=r"an Ensemble of 2 members with 0.weight.*of 1 members"):
        st.tree.map(lambda x, y: x, st.Ensemble(mlps(5, 5)), one)
    with pytest.raises(ValueError, match="ensembles of other functions, modes"):
        st.tree.map(lambda x, y: x, st.Ensemble(mlps(5)).eval(), one)


def test_a_subclass_is_a_tree_of_its_own():
    class Committee(st.Ensemble):
        pass

    made = st.tree.map(lambda x: x, Committee(mlps(5, 5))[1:])
    assert isinstance(made, Committee)
    assert len(made) == 1


# Settings


@pytest.mark.parametrize("chunk_size", [1, 2, 5, "auto"])
def test_chunks_give_the_same(chunk_size):
    models = mlps(5, 5, 5, 3)
    ensemble = st.Ensemble(models, chunk_size=chunk_size, memory_budget=10_000)
    close(ensemble(X), [m(X) for m in models])
    grad = st.grad(lambda e: (e(X) ** 2).sum())
    st.tree.map(close, grad(ensemble)[3], st.grad(lambda m: (m(X) ** 2).sum())(models[3]))


@pytest.mark.parametrize("plan", ["auto", "batched", "wide", "written out", "in turn"])
def test_plans_give_the_same(plan):
    models = mlps(64, 64)
    x = st.random.normal(KEY, (64, 4))
    close(st.Ensemble(models, plan=plan)(x), [m(x) for m in models])


def test_settings_that_are_none():
    with pytest.raises(ValueError, match="Ensemble: chunk_size must be a positive integer, got 0"):
        st.Ensemble(mlps(5), chunk_size=0)
    with pytest.raises(ValueError, match=r"config.plan must be one of .* got 'best'"):
        st.Ensemble(mlps(5), plan="best")


def test_without_jit(several):
    with st.disable_jit():
        close(several(X), [m(X) for m in several])


@pytest.mark.parametrize("dtype", [np.float16, st.numpy.bfloat16, np.float64], ids=str)
def test_members_of_other_dtypes(dtype):
    with st.enable_x64():
        models = [m.to(dtype) for m in mlps(5, 5)]
        x = X.astype(dtype)
        out = st.Ensemble(models)(x)
        assert out.dtype == dtype
        tolerance = float(snp.finfo(dtype).eps) * 8
        alone = [np.asarray(m(x), np.float64) for m in models]
        np.testing.assert_allclose(
            np.asarray(out, np.float64), alone, rtol=tolerance, atol=tolerance
        )


def test_members_of_several_dtypes_give_the_wider():
    models = mlps(5, 3)
    models[1].to(np.float16)
    out = st.Ensemble(lambda m, x: m(x.astype(m[0].weight.dtype)), models)(X)
    assert out.dtype == np.float32
    close(out[0], models[0](X))
