"""Training: each member its own key, bootstrap and rate; one program equals a loop."""

import numpy as np
import pytest

import stretto as st
from stretto.demo import comparison, training
from stretto.demo.data import Dataset, Labeled, Recipe

RECIPE = Recipe(draws=64, epochs=4, batch=16, rates=(1e-3, 1e-2))


def labeled(examples, seed):
    """Ten classes of images, each bright in one block of pixels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 10, examples).astype(np.int32)
    bright = np.repeat(np.eye(10, dtype=np.uint8)[labels], 2, axis=1) * 150
    return Labeled(bright + rng.integers(0, 100, bright.shape).astype(np.uint8), labels)


DATA = Dataset(
    "blocks", (4, 5), tuple("0123456789"), labeled(200, 0), labeled(50, 1), labeled(100, 2), RECIPE
)


def trained(members=3, seed=0, epochs=4):
    plan = training.Plan(members, 64, epochs, 16, (1e-3, 1e-2), seed)
    losses = []
    end = training.train(DATA, plan, lambda done, values: losses.append(np.asarray(values)))
    return end, np.stack(losses)


@pytest.fixture(scope="module")
def three():
    return trained()


def test_all_members_learn(three):
    _, losses = three
    assert losses.shape == (16, 3)
    assert (losses[-1] < 0.8 * losses[0]).all()


def test_members_differ_in_start_data_and_rate(three):
    end, losses = three
    assert len(set(losses[0].tolist())) == 3
    assert len({tuple(rows) for rows in np.asarray(end.rows).tolist()}) == 3
    np.testing.assert_allclose(end.rates, [1e-3, 10**-2.5, 1e-2], rtol=1e-5)


def test_repeatable_and_seeded(three):
    np.testing.assert_array_equal(trained()[1], three[1])
    assert not np.array_equal(trained(seed=1)[1], three[1])


def test_bootstraps_repeat_some_examples_and_miss_others(three):
    seen = []
    plan = training.Plan(1, 200, 2, 200, (1e-3, 1e-3), 0)
    real = training.step_all

    def recording(members, rates, images, labels, rows):
        seen.append(np.sort(rows[0]))
        return real(members, rates, images, labels, rows)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "step_all", recording)
        training.train(DATA, plan, lambda done, losses: None)
    np.testing.assert_array_equal(seen[0], seen[1])  # one bootstrap for all epochs
    # Distinct examples among n draws of n: (1 − 1/e) n = 126 of 200, standard deviation 4.4.
    assert 105 < len(set(seen[0].tolist())) < 147


def test_one_member_has_the_middle_rate():
    plan = training.Plan(1, 64, 1, 16, (1e-4, 1e-2), 0)
    np.testing.assert_allclose(training.learning_rates(plan), [1e-3], rtol=1e-6)


def test_one_program_equals_the_loop(three):
    found = comparison.measure(three[0])
    assert found.members == 3
    assert found.difference < 1e-4
    assert found.together > 0 and found.looped > 0


def test_comparison(three):
    members = three[0].members
    found = comparison.compare(members, DATA)
    assert found.member_probs.shape == (3, 100, 10)
    assert found.members.nll.shape == (3,)
    np.testing.assert_allclose(found.mean_member.nll, found.members.nll.mean())
    assert found.ensemble.nll <= found.mean_member.nll  # Jensen
    alone = st.tree.leaves(comparison.soup(members.params))
    for mean, stacked in zip(alone, st.tree.leaves(members.params)):
        np.testing.assert_allclose(mean, np.asarray(stacked).mean(axis=0), rtol=1e-5, atol=1e-7)
