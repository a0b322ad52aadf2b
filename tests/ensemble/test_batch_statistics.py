"""Running statistics computed anew."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto.ensemble import update_batch_norm

X = (np.arange(16.0).reshape(8, 2) ** 1.5).astype(np.float32)
DATA = [(X[:3], 0), (X[3:6], 0), (X[6:], 0)]


def model(scale=1.0):
    made = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 2), nn.BatchNorm1d(2))
    made[0].weight = snp.array([2.0, 1.0])
    made[0].running_mean = snp.full(2, 9.0)
    made[1].weight = snp.array([[1.0, 2.0], [-1.0, 0.5]]) * scale
    made[1].bias = snp.array([0.5, -0.5])
    return made.eval()


def check(made):
    """Compare with torch.optim.swa_utils.update_bn (PyTorch 2.13) for this model and data."""
    np.testing.assert_allclose(made[0].running_mean, [24.522688, 28.536667], rtol=1e-6)
    np.testing.assert_allclose(made[0].running_var, [48.881378, 56.632385], rtol=1e-5)
    np.testing.assert_allclose(made[2].running_mean, [0.5, -0.5], atol=2e-6)
    np.testing.assert_allclose(made[2].running_var, [26.657791, 3.7522137], rtol=1e-5)
    assert int(made[0].num_batches_tracked) == int(made[2].num_batches_tracked) == 3


def test_as_pytorch_computes_them():
    before = model()
    after = update_batch_norm(before, DATA)
    check(after)
    check(update_batch_norm(after, (x for x, _ in DATA)))  # again, from a generator of inputs
    assert before[0].running_mean.tolist() == [9, 9] and not before.training
    assert not after.training and after[0].momentum == 0.1
    assert st.tree.structure(after) == st.tree.structure(before)
    np.testing.assert_array_equal(after[1].weight, before[1].weight)
    check(update_batch_norm(model().train(), DATA))


def test_all_members_of_an_ensemble_at_once():
    narrow = nn.Sequential(nn.Linear(2, 3, key=st.random.PRNGKey(0)), nn.BatchNorm1d(3))
    members = [model(), narrow, model(2.0)]
    made = update_batch_norm(st.Ensemble(members), DATA)
    assert len(made) == 3
    check(made[0])
    for i in (1, 2):
        alone = update_batch_norm(members[i], DATA)
        for one, other in zip(st.tree.leaves(made[i]), st.tree.leaves(alone), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_layers_that_draw_take_a_key():
    drops = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(2))
    with pytest.raises(
        RuntimeError, match=r"update_batch_norm was called without a key.*pass key="
    ):
        update_batch_norm(drops, DATA)
    key = st.random.PRNGKey(0)
    one, again = (update_batch_norm(drops, DATA, key=key) for _ in range(2))
    np.testing.assert_array_equal(one[1].running_mean, again[1].running_mean)
    pair = update_batch_norm(st.Ensemble([drops, drops]), DATA, key=key)
    means = [np.asarray(m[1].running_mean) for m in pair]
    assert (means[0] != means[1]).all()


def test_models_without_statistics_are_as_they_were():
    plain = nn.Linear(2, 1, key=st.random.PRNGKey(0))
    made = update_batch_norm(plain, DATA)
    np.testing.assert_array_equal(made.weight, plain.weight)
    untracked = nn.Sequential(nn.BatchNorm1d(2, track_running_stats=False))
    assert update_batch_norm(untracked, DATA)[0].running_mean is None


def test_after_a_soup():
    swa = st.ensemble.SWA()
    state = swa.init(model())
    for scale in (1.0, 2.0):
        state = swa.update(state, model(scale))
    soup = update_batch_norm(swa.value(state), DATA)
    np.testing.assert_allclose(soup[1].weight, model(1.5)[1].weight, rtol=1e-6)
    np.testing.assert_allclose(
        soup[2].running_var, update_batch_norm(model(1.5), DATA)[2].running_var, rtol=1e-5
    )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: update_batch_norm(model(), []), ValueError, "at least one batch of data"),
        (
            lambda: update_batch_norm(model(), [snp.ones((0, 3))]),
            ValueError,
            r"batch 0 has no examples, of shape \(0, 3\)",
        ),
        (lambda: update_batch_norm({"w": 1.0}, DATA), TypeError, "a module or an Ensemble"),
        (
            lambda: update_batch_norm(st.Ensemble(lambda p, x: p * x, [1.0, 2.0]), DATA),
            TypeError,
            "expected an Ensemble of modules",
        ),
    ],
    ids=["data", "empty batch", "tree", "functions"],
)
def test_mistakes_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
