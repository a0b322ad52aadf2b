"""Functions of trees on ensembles mean the members; arrays that are no members' are refused."""

import copy
import pickle

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn

KEY = st.random.key(0)
X = snp.ones((3, 3))


def linears(n=3):
    """Make as many members as a layer has inputs and outputs, so that shapes say nothing."""
    return st.Ensemble([nn.Linear(3, 3, key=k) for k in st.random.split(KEY, n)])


def same(a, b):
    assert st.tree.structure(a) == st.tree.structure(b)
    for x, y in zip(st.tree.leaves(a), st.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6)


def test_sums_and_means_are_of_the_members():
    ensemble = linears()
    members = list(ensemble)
    weights = [0.5, 0.3, 0.2]
    same(st.tree.weighted_sum(ensemble, weights), st.tree.weighted_sum(members, weights))
    same(st.jit(st.tree.weighted_sum)(ensemble, snp.array(weights)),
         st.tree.weighted_sum(members, weights))  # fmt: skip
    same(st.tree.mean(ensemble), st.ensemble.uniform_soup(ensemble))
    assert st.tree.mean(ensemble)(X).shape == (3, 3)
    slope = st.grad(lambda e: st.tree.mean(e)(X).sum())(ensemble)
    np.testing.assert_allclose(slope.state_dict()[0]["bias"], np.ones((3, 3)), rtol=1e-6)
    with pytest.raises(ValueError, match="expected 2 trees, one for each weight; got more"):
        st.tree.weighted_sum(ensemble, [0.5, 0.5])


def test_several_architectures_and_functions():
    mixed = st.Ensemble([nn.Linear(3, 3), nn.Linear(3, 3, bias=False), nn.Linear(3, 3)])
    with pytest.raises(ValueError, match="mean: member 1 differs in structure"):
        st.tree.mean(mixed)
    assert [m.bias is None for m in st.unstack(mixed)] == [False, True, False]
    assert st.take(mixed, 1).bias is None
    with pytest.raises(ValueError, match="a traced place among members of 2 architectures"):
        st.jit(st.take)(mixed, 1)
    functions = st.Ensemble(lambda p, x: p["w"] * x, [{"w": 2.0}, {"w": 4.0}])
    assert float(st.tree.mean(functions)(1.0)) == 3
    shared = st.Ensemble([linears()[0], linears()[0]], shared="weight")
    same(st.tree.mean(shared), shared[0])


def test_take_unstack_stack_and_concat():
    ensemble = linears()
    for i in (0, 2, -1, np.int64(1)):
        same(st.take(ensemble, i), ensemble[i])
    for i in range(3):
        same(st.jit(st.take)(ensemble, i), ensemble[i])
    for one, other in zip(st.unstack(ensemble), ensemble, strict=True):
        same(one, other)
    same(st.stack(ensemble), st.stack(list(ensemble)))
    both = st.concat([ensemble, ensemble[:1]])
    assert len(both) == 4
    same(both, ensemble + ensemble[:1])
    both[0] = ensemble[1]
    same(ensemble[0], linears()[0])  # what was joined is another ensemble
    with pytest.raises(IndexError, match="member 3 of 3"):
        st.take(ensemble, 3)
    with pytest.raises(ValueError, match="axis must be 0"):
        st.take(ensemble, 0, axis=1)
    with pytest.raises(TypeError, match="concat: got one Ensemble"):
        st.concat(ensemble)
    with pytest.raises(TypeError, match="concat: tree 1 is a Linear, and others are ensembles"):
        st.concat([ensemble, ensemble[0]])


def test_ensembles_are_no_members_of_ensembles():
    ensemble = linears()
    with pytest.raises(TypeError, match=r"got an Ensemble; list\(ensemble\) gives its members"):
        st.Ensemble(ensemble)
    with pytest.raises(TypeError, match=r"member 0 is a Ensemble.* one \+ other joins"):
        st.Ensemble([ensemble, ensemble])


def test_lists_of_ensembles_are_averaged_member_by_member():
    one, other = linears(), st.tree.map(lambda x: 3 * x, linears())
    for made in (
        st.tree.mean([one, other]),
        st.tree.lerp(one, other, 0.5),
        st.tree.weighted_sum([one, other], [0.5, 0.5]),
        st.ensemble.uniform_soup([one, other]),
    ):
        same(made, st.tree.map(lambda x: 2 * x, one))
        np.testing.assert_allclose(made(X), 2 * one(X), rtol=1e-5)


@pytest.mark.parametrize(
    "broken",
    [
        lambda e: st.stack([e, e, e]),
        lambda e: st.tree.map(lambda x: x.sum(0), e),
        lambda e: st.tree.map(lambda x: x[0], e),
        lambda e: st.tree.map(lambda x: x[:, 0], e),
    ],
    ids=["stacked", "summed", "one row", "of each member a row"],
)
@pytest.mark.parametrize(
    "use",
    [
        lambda e: e(X),
        lambda e: e.each(snp.ones((3, 3, 3))),
        lambda e: e.vmap(lambda m: m(X))(),
        lambda e: e[0],
        list,
        lambda e: e[:1],
        lambda e: e + linears(),
        lambda e: linears() + e,
        lambda e: linears().extend(e),
        lambda e: e.append(nn.Linear(3, 3)),
        lambda e: e.save("never written"),
    ],
    ids=["call", "each", "vmap", "member", "list", "some", "add", "radd", "extend", "append", "o"],
)  # fmt: skip
def test_arrays_that_are_no_members(broken, use):
    """The sizes agree, and only the ranks or what is behind the members tell."""
    with pytest.raises(ValueError, match=r"weight has shape .* 3 along axis 0.* ensemble\.vmap"):
        use(broken(linears()))


def test_a_vmap_over_an_ensemble_is_refused_where_sizes_agree():
    with pytest.raises(ValueError, match=r"weight has shape \(3, 3\).* ensemble\.vmap"):
        st.vmap(lambda member, x: member(x), (0, None))(linears(), X)


def test_ensembles_are_stacked_for_vmap():
    one, other = linears(), st.tree.map(lambda x: x + 1, linears())
    stacked = st.stack([one, other])
    out = st.vmap(lambda e: e(X))(stacked)
    np.testing.assert_allclose(out, snp.stack([one(X), other(X)]), rtol=1e-6)
    same(st.take(stacked, 1), other)
    same(st.unstack({"e": stacked})[0]["e"], one)
    same(st.tree.mean(stacked), st.tree.lerp(one, other, 0.5))
    many = st.vmap(lambda k: st.Ensemble.init(lambda k: nn.Linear(3, 3, key=k), k, 3))(
        st.random.split(KEY, 3)
    )
    assert st.take(many, 2)(X).shape == (3, 3, 3)
    with pytest.raises(ValueError, match="weight has shape"):
        many(X)
    with pytest.raises(ValueError, match=r"stack: tree\['e'\]|stack: tree\[?'?e"):
        st.stack([{"e": one}, {"e": other}], axis=1)


@pytest.mark.parametrize("f", [lambda t: st.take(t, 0), st.unstack, st.tree.mean,
                               lambda t: st.tree.weighted_sum(t, [0.3] * 3),
                               lambda t: st.concat([t, t])])  # fmt: skip
def test_an_ensemble_inside_a_stacked_tree(f):
    with pytest.raises(ValueError, match=r"tree\['e'\] is an Ensemble of 3 members"):
        f({"e": linears(), "w": snp.ones(3)})


def test_what_is_assigned_to_a_member_is_not_lost():
    ensemble = st.Ensemble([nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)) for _ in range(2)])
    for change in (
        lambda: setattr(ensemble[0][0], "weight", snp.ones((3, 3))),
        lambda: setattr(ensemble[0][0], "weight", np.ones((2, 2))),
        lambda: setattr(ensemble[0][0], "weight", None),
        lambda: setattr(ensemble[0][1], "running_mean", snp.ones(3)),
        lambda: setattr(ensemble[0][1], "momentum", 0.5),
        lambda: setattr(next(iter(ensemble))[0], "weight", nn.Parameter(snp.ones((3, 3)))),
        lambda: setattr(st.take(ensemble, 0)[0], "weight", snp.ones((3, 3))),
        lambda: delattr(ensemble[0][0], "bias"),
        lambda: ensemble[0].load_state_dict(ensemble[1].state_dict()),
        lambda: ensemble[0].apply(lambda m: setattr(m, "weight", m.weight)),
    ):
        with pytest.raises(AttributeError, match=r"taken from an Ensemble.*ensemble\[i\] = member"):
            change()
    functions = st.Ensemble(lambda p, x: p["w"] * x, [{"w": 2.0}, {"w": 4.0}])
    with pytest.raises(AttributeError, match=r"ensemble\[i\] = params"):
        functions[0].params = {"w": 1.0}
    for owner, name in ((linears(), "weight"), (ensemble, "0"), (functions, "w")):
        with pytest.raises(AttributeError, match=f"{name} is a part of each member.*replace"):
            setattr(owner, name, snp.ones((3, 3)))


def test_copies_of_members_change_freely():
    ensemble = linears()
    for member in (
        ensemble[0].clone(),
        copy.deepcopy(ensemble[0]),
        copy.copy(ensemble[0]),
        pickle.loads(pickle.dumps(ensemble[0])),
        st.tree.map(lambda x: x, ensemble[0]),
    ):
        member.weight = snp.zeros((3, 3))
        assert not member.weight.any()
    assert not ensemble[0].eval().training


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(snp.ones(()))
        self.register_buffer("count", snp.zeros((), int))

    def forward(self, x):
        self.count = self.count + 1
        return self.weight * x


def test_members_update_their_own_buffers_when_called():
    member = st.Ensemble([Counting(), Counting()])[0]
    assert float(member(2.0)) == 2 and int(member.count) == 1
    norm = st.Ensemble([nn.BatchNorm1d(3), nn.BatchNorm1d(3)])[0]
    norm(X)
    assert int(norm.num_batches_tracked) == 1


class Growing(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(snp.ones(()))
        self.register_buffer("seen", snp.zeros((1,)))

    def forward(self, x):
        self.seen = snp.concatenate([self.seen, self.weight * x])
        return self.seen.sum()


def test_buffers_may_grow():
    ensemble = st.Ensemble([Growing(), Growing()])
    for n in (1, 2, 3):
        out, ensemble = ensemble.stateful_call(snp.ones(1))
        assert out.tolist() == [n, n] and ensemble[0].seen.shape == (n + 1,)


def test_members_are_put_in_place_of_others():
    ensemble = linears()
    before = ensemble(X)
    member = ensemble[1].clone()
    member.weight = snp.zeros((3, 3))
    ensemble[1] = member
    assert len(ensemble) == 3 and len(ensemble.groups) == 1
    after = ensemble(X)
    np.testing.assert_array_equal(after[0], before[0])
    np.testing.assert_array_equal(after[2], before[2])
    np.testing.assert_allclose(after[1], np.tile(np.asarray(member.bias), (3, 1)))
    ensemble[-1] = nn.Linear(3, 3, bias=False, key=KEY)
    assert [m.bias is None for m in ensemble] == [False, False, True]
    functions = st.Ensemble(lambda p, x: p["w"] * x, [{"w": 2.0}, {"w": 4.0}])
    functions[0] = {"w": 5.0}
    assert functions(1.0).tolist() == [5, 4]
    del functions[0]
    assert functions(1.0).tolist() == [4]
    with pytest.raises(ValueError, match="no member is left"):
        del functions[0]
    with pytest.raises(IndexError, match="member 3 of 3"):
        ensemble[3] = member
    with pytest.raises(TypeError, match="one member is assigned at a time"):
        ensemble[:2] = [member, member]
    with pytest.raises(TypeError, match="expected a module"):
        ensemble[0] = {"w": 5.0}
    assert len(ensemble) == 3
