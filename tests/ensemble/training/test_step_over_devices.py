"""Training over the devices of a mesh, beside training on one: bits, collectives, refusals."""

import re

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn, optim
from stretto.ensemble.training import step
from stretto.nn import functional as F
from tests.meshes import mesh

pytestmark = pytest.mark.devices

MEMBERS, DATA = {"members": 4}, {"data": 4}
BOTH = {"members": 4, "data": 2}
RNG = np.random.default_rng(0)
X = RNG.standard_normal((48, 8)).astype(np.float32)
Y = RNG.integers(0, 3, 48).astype(np.int32)
KEY = st.random.PRNGKey(1)


def network(key):
    first, second = st.random.split(key)
    return nn.Sequential(nn.Linear(8, 16, key=first), nn.ReLU(), nn.Linear(16, 3, key=second))


def ensemble(n=8, make=network, **options):
    return st.Ensemble.init(make, st.random.PRNGKey(0), n, **options)


def loss(member, x, y):
    return F.cross_entropy(member(x), y)


def fitted(members, **options):
    options = {"steps": 5, "batch_size": 16, "key": KEY, "progress": False, **options}
    return members.fit(loss, (X, Y), options.pop("optimizer", optim.adam(1e-2)), **options)


def same(one, other, **bounds):
    for x, y in zip(st.tree.leaves(one), st.tree.leaves(other), strict=True):
        if bounds:
            np.testing.assert_allclose(x, y, **bounds)
        else:
            np.testing.assert_array_equal(x, y)


def collectives(members, each=False, batch=16):
    """Return the collectives in the compiled step of one training."""
    trainer = st.ensemble.Trainer(loss, optim.adam(1e-2))
    state = trainer.start(members, KEY)
    (pack,) = state.packs
    front = (len(members),) if each else ()
    one = snp.zeros((*front, batch, 8)), snp.zeros((*front, batch), snp.int32)
    one = trainer.put_batch(one, each, "test")
    over = members._layout.over
    sums = over.put(trainer.no_sums(pack, one, each), over.rows)
    lowered = trainer._steps(pack).batch_sums.lower(pack, sums, one, each, state.key)
    text = lowered.compile().as_text()
    return re.findall(r"\b(all-\w+|reduce-scatter|collective-\w+)(?:-start)?\(", text)


@pytest.mark.parametrize("order", ["own", "bootstrap"])
def test_members_get_the_bits_of_one_device(order):
    one, other = ensemble(), ensemble()
    first, second = fitted(one, order=order), fitted(other, order=order, mesh=mesh(**MEMBERS))
    same(other, one)
    np.testing.assert_array_equal(first.history["loss"], second.history["loss"])


@pytest.mark.parametrize("order", ["same", "given"])
def test_members_with_one_batch_for_all_get_the_values_of_one_device(order):
    """Their first layers are one product, whose width says how some processors round."""
    one, other = ensemble(), ensemble()
    first, second = fitted(one, order=order), fitted(other, order=order, mesh=mesh(**MEMBERS))
    same(other, one, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(first.history["loss"], second.history["loss"], rtol=1e-5)


@pytest.mark.parametrize("plan", ["at once", "batched", "wide", "written out", "in turn"])
def test_the_same_under_each_plan(plan):
    one = ensemble(plan=plan)
    fitted(one)
    for parts in (2, 4):
        other = ensemble(plan=plan)
        fitted(other, mesh=mesh(members=parts))
        same(other, one)


def test_one_member_on_each_device():
    one, other = ensemble(), ensemble()  # XLA fuses the work of one member in other ways
    fitted(one)
    fitted(other, mesh=mesh(members=8))
    same(other, one, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("sizes", [BOTH, DATA], ids=str)
@pytest.mark.parametrize("order", ["own", "same"])
def test_data_in_parts_gives_the_values_of_the_whole(sizes, order):
    one, other = ensemble(), ensemble()
    first, second = fitted(one, order=order), fitted(other, order=order, mesh=mesh(**sizes))
    same(other, one, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(first.history["loss"], second.history["loss"], rtol=1e-5)


@pytest.mark.parametrize("chunk_size", [None, 1, "auto"])
@pytest.mark.parametrize("each", [False, True])
def test_a_step_of_members_moves_nothing(chunk_size, each):
    assert collectives(ensemble(chunk_size=chunk_size).shard(mesh(**MEMBERS)), each) == []


@pytest.mark.parametrize("sizes", [BOTH, DATA], ids=str)
@pytest.mark.parametrize("each", [False, True])
def test_a_step_of_data_is_one_sum(sizes, each):
    assert collectives(ensemble().shard(mesh(**sizes)), each) == ["all-reduce"]


def test_what_members_share():
    def sharing():
        first = nn.Linear(8, 16, key=st.random.PRNGKey(3))
        rest = [nn.Linear(16, 3, key=key) for key in st.random.split(st.random.PRNGKey(4), 8)]
        return st.Ensemble([nn.Sequential(first, nn.ReLU(), last) for last in rest], shared="0.*")

    one, other = sharing(), sharing()
    fitted(one, optimizer=optim.sgd(0.1))
    fitted(other, optimizer=optim.sgd(0.1), mesh=mesh(**BOTH))
    same(other, one, rtol=1e-4, atol=1e-5)


def test_hyperparameters_of_each_member():
    rates = np.linspace(0.001, 0.1, 8)
    one, other = ensemble(), ensemble()
    options = {"optimizer": optim.adamw, "hyperparams": {"learning_rate": rates}}
    fitted(one, **options)
    fitted(other, mesh=mesh(**BOTH), **options)
    same(other, one, rtol=1e-4, atol=1e-5)


def test_evaluation_and_early_stopping():
    options = {
        "validation": (X[:20], Y[:20]),
        "early_stopping": 1,
        "evaluate_every": 1,
        "steps": 12,
        "optimizer": optim.adam(0.3),
    }
    one, other = ensemble(), ensemble()
    first = fitted(one, **options)
    second = fitted(other, mesh=mesh(**MEMBERS), **options)
    assert first.stopped == second.stopped
    assert first.stopped
    same(other, one, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        first.history["validation_loss"], second.history["validation_loss"], rtol=1e-5
    )


def test_a_member_that_diverges():
    rates = np.array([0.1, 0.1, 1e30, 0.1, 0.1, 1e30, 0.1, 0.1])
    one, other = ensemble(), ensemble()
    options = {
        "optimizer": optim.sgd,
        "hyperparams": {"learning_rate": rates},
        "on_divergence": "freeze",
        "evaluate_every": 2,
        "steps": 6,
    }
    with pytest.warns(UserWarning, match="diverged"):
        first = fitted(one, **options)
    with pytest.warns(UserWarning, match="diverged"):
        second = fitted(other, mesh=mesh(**MEMBERS), **options)
    assert first.diverged == second.diverged
    assert sorted(first.diverged) == [2, 5]
    same(other, one, rtol=1e-5, atol=1e-6)


def test_buffers_are_those_of_the_parts_on_average():
    def make(key):
        return nn.Sequential(nn.Linear(8, 4, key=key), nn.BatchNorm1d(4), nn.Linear(4, 3, key=key))

    one, other = ensemble(4, make), ensemble(4, make)
    fitted(one, steps=1, order="same")
    fitted(other, steps=1, order="same", mesh=mesh(**DATA))
    (arrays,), (wanted,) = other.state_dict(), one.state_dict()
    mean = "1.running_mean"
    np.testing.assert_allclose(arrays[mean], wanted[mean], rtol=1e-4, atol=1e-5)
    assert not np.array_equal(arrays["1.running_var"], np.ones_like(arrays["1.running_var"]))
    np.testing.assert_array_equal(arrays["1.num_batches_tracked"], 1)


def test_random_layers_draw_others_for_each_part():
    make = lambda key: nn.Sequential(nn.Linear(8, 3, key=key), nn.Dropout(0.5))
    one, other, members = ensemble(4, make), ensemble(4, make), ensemble(4, make)
    fitted(one, steps=1)
    fitted(members, steps=1, mesh=mesh(**MEMBERS))
    same(members, one, rtol=1e-5, atol=1e-6)
    fitted(other, steps=1, mesh=mesh(**DATA))
    with pytest.raises(AssertionError):
        same(other, one, rtol=1e-3)


def test_iterables_of_batches():
    batches = [(X[i : i + 16], Y[i : i + 16]) for i in (0, 16, 32)]
    options = {"epochs": 1, "key": KEY, "progress": False}
    one, other = ensemble(), ensemble()
    one.fit(loss, batches, optim.sgd(0.1), **options)
    other.fit(loss, batches, optim.sgd(0.1), mesh=mesh(**BOTH), **options)
    same(other, one, rtol=1e-4, atol=1e-5)
    own = [(np.stack([x] * 8), np.stack([y] * 8)) for x, y in batches]
    other = ensemble()
    other.fit(loss, own, optim.sgd(0.1), order="own", mesh=mesh(**BOTH), **options)
    same(other, one, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("sizes", [{}, {"members": 2}, BOTH], ids=str)
def test_training_goes_on_over_other_devices(tmp_path, sizes):
    straight = ensemble()
    fitted(straight, steps=6)
    fitted(ensemble(), steps=3, mesh=mesh(**MEMBERS), checkpoint=tmp_path)
    other = ensemble()
    fitted(other, steps=6, mesh=mesh(**sizes) if sizes else None, checkpoint=tmp_path, resume=True)
    bounds = {"rtol": 1e-4, "atol": 1e-6} if sizes is BOTH else {}  # sums of two parts are rounded
    same(other, straight, **bounds)


def test_a_second_training_goes_on_where_the_ensemble_is():
    members = ensemble().shard(mesh(**MEMBERS))
    state = fitted(members).state
    assert state.layout.over == members._layout.over
    for x in st.tree.leaves(members):
        assert x.sharding.is_equivalent_to(
            st.sharding.NamedSharding(mesh(**MEMBERS), st.P("members")), x.ndim
        )
    again = fitted(members)
    assert np.isfinite(again.history["loss"]).all()


def test_steps_of_ones_own():
    trainer = st.ensemble.Trainer(loss, optim.sgd(0.1))
    one, other = (trainer.start(ensemble(), KEY), None)
    plain, _ = trainer.step(one, (X[:16], Y[:16]))
    trainer = st.ensemble.Trainer(loss, optim.sgd(0.1))
    other = trainer.start(ensemble().shard(mesh(**BOTH)), KEY)
    other, metrics = trainer.step(other, (X[:16], Y[:16]))
    assert metrics["loss"].shape == (8,)
    same(other.ensemble, plain.ensemble, rtol=1e-5, atol=1e-6)


def test_refusals():
    with pytest.raises(ValueError, match=r"fit: a batch has 15 examples.*batch_size that 2"):
        fitted(ensemble(), batch_size=15, mesh=mesh(**BOTH))
    with pytest.raises(ValueError, match="evenly"):
        fitted(ensemble(10), mesh=mesh(**MEMBERS))
    with pytest.raises(ValueError, match=r"a batch has 14 examples"):
        fitted(
            ensemble(), batch_size=17 - 3, steps=None, epochs=1, drop_last=False, mesh=mesh(**DATA)
        )
    trainer = st.ensemble.Trainer(loss, optim.sgd(0.1))
    state = trainer.start(ensemble().shard(mesh(**DATA)), KEY)
    with pytest.raises(ValueError, match=r"Trainer.step: a batch has 3 examples"):
        trainer.step(state, (X[:3], Y[:3]))


def test_company_fills_the_devices():
    over = ensemble().shard(mesh(**MEMBERS))._layout.over
    (pack,) = st.ensemble.Trainer(loss, optim.sgd(0.1)).start(ensemble(), KEY).packs
    running = [True, False, False, True, False, True, False, False]
    chosen = step.with_company(over, pack, running)
    assert chosen == [True, True, False, True, False, True, False, False]
    assert step.with_company(None, pack, running) == running


# What the axis of data splits besides


@pytest.mark.parametrize("split", ["optimizer", "parameters"])
@pytest.mark.parametrize("sizes", [BOTH, DATA], ids=str)
def test_split_states_give_the_values_of_whole_ones(sizes, split):
    options = {"optimizer": optim.adamw, "hyperparams": {"learning_rate": np.full(8, 0.01)}}
    one, other = ensemble(), ensemble().shard(mesh(**sizes), split=split)
    fitted(one, **options)
    state = fitted(other, **options).state
    same(other, one, rtol=1e-4, atol=1e-5)
    (pack,) = state.packs
    moments = [x for x in st.tree.leaves(pack.rows.optimizer) if x.ndim > 1]
    assert len(moments) == 8
    parts = int(np.prod(list(sizes.values())))
    for x in moments:
        whole = x.shape[-1] == 3 and sizes is DATA  # 3 cannot be split into 4
        share = x.size // parts * (parts if whole else 1)
        if x.shape[1:] not in ((3,), (3, 16)):
            assert all(part.data.size == share for part in x.addressable_shards)
    own = pack.rows.own["0.weight"]
    count = parts if split == "parameters" else parts // sizes["data"]
    assert own.addressable_shards[0].data.size == own.size // count


@pytest.mark.parametrize("split", ["optimizer", "parameters"])
def test_a_step_with_split_states_is_a_sum_and_a_gathering(split):
    found = collectives(ensemble().shard(mesh(**BOTH), split=split))
    more = ["all-reduce"] if split == "parameters" else []  # whether all parts are finite
    assert sorted(found) == sorted(["all-reduce", "all-gather", *more])


def test_optimizers_that_need_whole_arrays():
    with pytest.raises(ValueError, match=r"element by element.*reduce_sum"):
        fitted(ensemble().shard(mesh(**BOTH), split="optimizer"), optimizer=optim.lamb(0.1))
    clipped = optim.chain(optim.clip_by_global_norm(1.0), optim.sgd(0.1))
    with pytest.raises(ValueError, match="leave out split="):
        fitted(ensemble().shard(mesh(**BOTH), split="parameters"), optimizer=clipped)
    fitted(ensemble().shard(mesh(**BOTH)), optimizer=clipped)


def test_split_states_go_on_over_other_devices(tmp_path):
    straight = ensemble()
    fitted(straight, steps=6)
    split = ensemble().shard(mesh(**BOTH), split="optimizer")
    fitted(split, steps=3, checkpoint=tmp_path)
    other = ensemble()
    fitted(other, steps=6, checkpoint=tmp_path, resume=True)
    same(other, straight, rtol=1e-4, atol=1e-6)


def test_a_member_that_diverges_in_one_part(tmp_path):
    rates = np.array([0.1, 0.1, 1e30, 0.1, 0.1, 0.1, 0.1, 0.1])
    options = {
        "optimizer": optim.sgd,
        "hyperparams": {"learning_rate": rates},
        "on_divergence": "freeze",
    }
    one, other = ensemble(), ensemble().shard(mesh(**BOTH), split="parameters")
    with pytest.warns(UserWarning, match="diverged"):
        first = fitted(one, **options)
    with pytest.warns(UserWarning, match="diverged"):
        second = fitted(other, **options)
    assert first.diverged == second.diverged
    same(other, one, rtol=1e-4, atol=1e-6)


def test_split_is_checked():
    with pytest.raises(ValueError, match="split must be None, or one of"):
        ensemble().shard(mesh(**BOTH), split="gradients")
    with pytest.raises(ValueError, match="needs an axis for data"):
        ensemble().shard(mesh(**MEMBERS), split="optimizer")
