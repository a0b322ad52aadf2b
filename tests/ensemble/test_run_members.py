"""Calls: what is traced and what is static, the same or each, results together, compiled once."""

import threading

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn

KEY = st.random.PRNGKey(8)
X = snp.arange(6.0).reshape(3, 2)


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-6)


class Counted:
    """A function of a member that counts how often it is traced."""

    def __init__(self, f):
        self.f, self.count = f, 0

    def __call__(self, *args, **kwargs):
        self.count += 1
        return self.f(*args, **kwargs)


def counted(f, members=(2.0, 3.0)):
    counter = Counted(f)
    return counter, st.Ensemble(counter, list(members))


def test_a_call_is_traced_once_for_its_types():
    counter, ensemble = counted(lambda p, x: p * x)
    for _ in range(3):
        close(ensemble(X), [2 * X, 3 * X])
        close(ensemble(np.asarray(X)), [2 * X, 3 * X])
    assert counter.count == 1
    ensemble(X[0])
    assert counter.count == 2
    close(ensemble(X), [2 * X, 3 * X])
    ensemble.each(X[:2])
    assert counter.count == 3
    close(ensemble.each(X[:2]), [2 * X[0], 3 * X[1]])
    close(ensemble(2.0), [4.0, 6.0])
    close(ensemble(3.0), [6.0, 9.0])
    assert counter.count == 4


def test_ensembles_that_come_of_one_another_keep_what_is_compiled():
    counter = Counted(lambda model, x: model(x))
    ensemble = st.Ensemble(counter, [nn.Sequential(nn.Dropout(0.5), nn.Linear(2, 2))] * 2)
    for _ in range(3):
        ensemble.eval()(X)
        ensemble.train()(X, key=KEY)
        ensemble[:1](X, key=KEY)
        st.tree.map(lambda x: x + 1, ensemble)(X, key=KEY)
        ensemble.replace([{"1.bias": snp.ones((2, 2))}])(X, key=KEY)
    assert counter.count == 3


def test_what_is_no_array_is_static():
    counter, ensemble = counted(lambda p, x, how, *, sign=1: sign * p * x if how == "mul" else x)
    close(ensemble(X, "mul"), [2 * X, 3 * X])
    close(ensemble(X, "same"), [X, X])
    close(ensemble(X, "mul", sign=-1), [-2 * X, -3 * X])
    close(ensemble(X, "mul", sign=2), [4 * X, 6 * X])  # a number: traced
    assert counter.count == 3
    close(ensemble.each(X[:2], "mul"), [2 * X[0], 3 * X[1]])
    with pytest.raises(TypeError, match=r"are static, and must be hashable; got \{1\}"):
        ensemble(X, {1})


def test_true_is_not_one():
    _, ensemble = counted(lambda p, x, flag: p * x if flag is True else x)
    close(ensemble(1.0, True), [2, 3])
    close(ensemble(1.0, 1), [1, 1])
    close(ensemble(1.0, False), [1, 1])


def test_trees_of_arguments_and_results():
    _, ensemble = counted(lambda p, batch, *, more: {"a": p * batch["x"], "b": (more, None)})
    out = ensemble({"x": X, "kind": "a"}, more=[X])
    close(out["a"], [2 * X, 3 * X])
    close(out["b"][0][0], [X, X])
    assert out["b"][1] is None
    out = ensemble.each({"x": X[:2], "y": X[:2]}, more=X)
    close(out["a"], [2 * X[0], 3 * X[1]])
    close(out["b"][0], [X, X])


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (X, r"must have 2 along axis 0, got float32\[3,2\]"),
        (1.0, r"must have 2 along axis 0, got float32"),
        ({"a": X[:2], "b": X}, r"must have 2 along axis 0, got float32\[3,2\]"),
    ],
    ids=str,
)
def test_arguments_of_each_need_an_entry_for_each(x, words):
    _, ensemble = counted(lambda p, x: p)
    with pytest.raises(ValueError, match=words):
        ensemble.each(x)


def test_results_of_several_groups_must_fit():
    one, other = nn.Linear(2, 2), nn.Linear(2, 3)
    with pytest.raises(ValueError, match=r"member 0 gives \(3, 2\), member 1 gives \(3, 3\)"):
        st.Ensemble([one, other])(X)
    pair = lambda p, x: (x, x)
    with pytest.raises(ValueError, match=r"results of different structure: member 0 gives .* 1 gi"):
        st.Ensemble([lambda p, x: x, pair], [1.0, 2.0])(X)


def test_keyword_arguments_and_keys_for_several_groups():
    def noisy(p, x, *, scale):
        return x + scale * st.random.normal(st.random.next_key("a test"), x.shape)

    members = [{"a": 1.0}, {"b": 1.0}, {"a": 2.0}]
    ensemble = st.Ensemble(noisy, members)
    out = ensemble(X, scale=2.0, key=KEY)
    for row, key in zip(out, st.random.split(KEY, 3), strict=True):
        with nn.keys(key):
            close(row, noisy(None, X, scale=2.0))
    close(ensemble(X, scale=2.0, key=st.random.wrap_key_data(KEY)), out)
    with nn.keys(KEY), pytest.raises(RuntimeError, match=r"a test draws .* called without a key"):
        ensemble(X, scale=1.0)


def test_vmap_runs_any_function_of_a_member():
    ensemble = st.Ensemble([nn.Linear(2, 2, key=k) for k in st.random.split(KEY, 3)])
    norm = ensemble.vmap(lambda member: (member.weight**2).sum())
    close(norm(), [(m.weight**2).sum() for m in ensemble])
    both = ensemble.vmap(lambda member, x, y: member(x) + y, in_axes=(0, None))
    close(both(X, 1.0), [m(x) + 1 for m, x in zip(ensemble, X, strict=True)])
    close(st.jit(both)(X, 1.0), both(X, 1.0))
    grads = ensemble.vmap(st.grad(lambda member, x: member(x).sum()))(X)
    close(grads.bias, np.full((3, 2), 3.0))
    with pytest.raises(ValueError, match=r"in_axes must be 0 or None for each of the 1 arguments"):
        both(X)
    with pytest.raises(ValueError, match="in_axes must be 0 or None"):
        ensemble.vmap(lambda m, x: x, in_axes=1)(X)


@pytest.mark.parametrize(
    "run",
    [
        st.vmap(lambda member, x: member(x)),
        lambda e, xs: st.tree.map(lambda x: x[:2], e)(xs),
        lambda e, xs: st.stack([e, e])(xs),
    ],
    ids=["vmap over members", "rows taken", "stacked"],
)
def test_rows_that_are_not_those_of_the_members(run):
    ensemble = st.Ensemble([nn.Linear(2, 2, key=k) for k in st.random.split(KEY, 3)])
    with pytest.raises(ValueError, match=r"weight has shape .* 3 along axis 0.* ensemble\.vmap"):
        run(ensemble, X)


def test_settings_hold_inside_vmap_and_calls():
    ensemble = st.Ensemble(lambda p, x: p * x + len(st.config.plan), [0.0, 0.0], plan="wide")
    close(ensemble(0.0), [4, 4])
    close(ensemble.vmap(lambda m, x: m(x))(0.0), [4, 4])
    assert st.config.plan == "auto"


def test_from_several_threads():
    _, ensemble = counted(lambda p, x: p * x)
    found = []

    def call():
        for _ in range(20):
            found.append(np.asarray(ensemble(X)).sum())

    threads = [threading.Thread(target=call) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [75.0] * 80


def test_each_on_as_many_examples_as_it_has():
    parts = [np.arange(3.0 * n).reshape(n, 3).astype(np.float32) for n in (2, 5, 1)]
    keys = st.random.split(st.random.PRNGKey(0), 3)
    same = [nn.Linear(3, 2, key=k) for k in keys]
    several = [same[0], nn.Sequential(nn.Linear(3, 2, key=keys[1]), nn.Tanh()), same[2]]
    data = st.ragged(parts)
    for members in (same, several):
        ensemble = st.Ensemble(members)
        out = ensemble.each(data)
        for i, part in enumerate(parts):
            np.testing.assert_allclose(out[i], members[i](part), rtol=1e-5, atol=1e-6)
        squares = ensemble.vmap(lambda m, x: (m(x) ** 2).mean(), in_axes=0)
        wanted = [(m(x) ** 2).mean() for m, x in zip(members, parts, strict=True)]
        np.testing.assert_allclose(squares(data), wanted, rtol=1e-5)
        slope = st.jit(st.grad(lambda x, f=squares: f(x).sum()))(data).like(data)
        by_hand = st.grad(lambda x, m=members[1]: (m(x) ** 2).mean())(parts[1])
        np.testing.assert_allclose(slope[1], by_hand, rtol=1e-4, atol=1e-6)


def test_ragged_data_that_all_members_share():
    ensemble = st.Ensemble([nn.Linear(3, 2, key=k) for k in st.random.split(st.random.key(0), 2)])
    data = st.ragged([snp.ones((2, 3)), snp.ones((1, 3))])
    summed = ensemble.vmap(lambda m, r: st.vmap(lambda x: m(x).sum())(r))
    wanted = [[member(x).sum() for x in data] for member in ensemble]
    np.testing.assert_allclose(summed(data), wanted, rtol=1e-5)


def test_ragged_arguments_that_do_not_fit():
    ensemble = st.Ensemble([nn.Linear(3, 2, key=k) for k in st.random.split(st.random.key(0), 2)])
    with pytest.raises(ValueError, match="an array for each of 2 members, got 1"):
        ensemble.each(st.ragged([snp.ones((2, 3))]))
    over = ensemble.shard(st.sharding.Mesh(np.array(st.devices()[:1]), ("members",)))
    with pytest.raises(NotImplementedError, match="put the arrays into a rectangle"):
        over.each(st.ragged([snp.ones((2, 3)), snp.ones((1, 3))]))


class Table:
    """Stand for a DataFrame: not an array, but it makes one."""

    def __array__(self, dtype=None, copy=None):
        return np.ones((4, 2), np.float32)


def test_tables_are_refused_in_words():
    ensemble = st.Ensemble(lambda p, x: p * x, [2.0, 3.0])
    for call in (ensemble, ensemble.each, ensemble.vmap(lambda member, x: member(x))):
        with pytest.raises(TypeError, match=r"Ensemble: an argument is a Table; .*np.asarray\(x\)"):
            call(Table())
    cast = st.Ensemble(lambda p, x, dtype: (p * x).astype(dtype), [2.0, 3.0])
    assert cast(1, np.float32).dtype == np.float32  # a dtype is a setting
