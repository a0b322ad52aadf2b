"""``DataOrder``: a function of key, epoch and member, and of nothing else."""

import numpy as np
import pytest

import stretto as st
from stretto.ensemble import DataOrder

KEY = st.random.PRNGKey(3)


def test_each_member_has_a_shuffle_of_its_own_at_every_epoch():
    order = DataOrder(10, 3, members=4)
    first, second = (np.asarray(order.epoch(KEY, e)) for e in (0, 1))
    assert first.shape == (4, 10) and first.dtype == np.int32
    np.testing.assert_array_equal(np.sort(first, 1), np.tile(np.arange(10), (4, 1)))
    assert len({tuple(row) for row in [*first, *second]}) == 8


def test_a_member_sees_the_same_whoever_is_beside_it():
    order = DataOrder(10, 3, members=4)
    np.testing.assert_array_equal(
        order.epoch(KEY, 5, [2, 0]), np.asarray(order.epoch(KEY, 5))[[2, 0]]
    )


def test_batches_are_the_epoch_cut_up():
    order = DataOrder(10, 3, members=2)
    batches, epoch = np.asarray(order.indices(KEY, 0)), np.asarray(order.epoch(KEY, 0))
    assert batches.shape == (3, 2, 3) and order.steps == 3
    np.testing.assert_array_equal(np.concatenate(batches, 1), epoch[:, :9])
    whole = DataOrder(10, 3, members=2, drop_last=False)
    assert whole.steps == 4 and [whole.batch_size_of(i) for i in range(4)] == [3, 3, 3, 1]


def test_the_same_for_all_or_as_given():
    same = DataOrder(6, 2, "same", members=5)
    assert not same.each and same.indices(KEY, 0).shape == (3, 2)
    assert sorted(np.asarray(same.epoch(KEY, 0)).tolist()) == list(range(6))
    assert not np.array_equal(same.epoch(KEY, 0), same.epoch(KEY, 1))
    given = DataOrder(6, 2, "given", members=5)
    np.testing.assert_array_equal(given.epoch(KEY, 8), np.arange(6))


def test_a_bootstrap_sample_stays_while_its_order_changes():
    order = DataOrder(50, 5, "bootstrap", members=3, fraction=0.5)
    first, second = (np.asarray(order.epoch(KEY, e)) for e in (0, 1))
    assert first.shape == (3, 25) and order.steps == 5
    np.testing.assert_array_equal(np.sort(first, 1), np.sort(second, 1))
    assert not np.array_equal(first, second)
    assert not np.array_equal(np.sort(first[0]), np.sort(first[1]))
    assert first.min() >= 0 and first.max() < 50
    # Of n draws from n about 1 - 1/e are different ones.
    sample = np.asarray(DataOrder(5000, 5, "bootstrap").epoch(KEY, 0))[0]
    assert abs(len(set(sample.tolist())) / 5000 - (1 - 1 / np.e)) < 0.02


def test_many_orders_in_a_process_are_nothing_to_remark_on():
    for n in range(1, 20):  # more than pass without a RecompilationWarning, which is an error here
        assert DataOrder(n, 1, "given").epoch(KEY, 0).shape == (n,)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"order": "random"}, "order must be one of .*'bootstrap'.*, got 'random'"),
        ({"batch_size": 11}, "batch_size=11 is larger than an epoch of 10 examples"),
        ({"batch_size": 0}, "must be at least 1"),
        ({"fraction": 0.5}, "fraction=0.5 is for order='bootstrap', not 'own'"),
        ({"fraction": 0.2, "order": "bootstrap"}, "batch_size=5 is larger than an epoch of 2"),
    ],
    ids=["order", "large", "none", "fraction", "small sample"],
)
def test_what_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        DataOrder(**{"examples": 10, "batch_size": 5, **options})


@pytest.mark.parametrize("kind", ["own", "given", "bootstrap"])
def test_members_with_examples_of_their_own(kind):
    order = DataOrder((5, 12, 3), 4, kind, 3, drop_last=False)
    epoch = np.asarray(order.epoch(KEY, 2))
    assert order.uneven and order.steps == 3 and epoch.shape == (3, 12)
    assert order.counts == (5, 12, 3) and order.batch_size_of(2) == 4
    for member, n in enumerate(order.examples):
        lone = DataOrder(n, 1, kind, 3)
        row = lone.epoch(KEY, 2, [member] if lone.each else None)
        np.testing.assert_array_equal(epoch[member, :n], np.asarray(row).reshape(-1))
        assert not epoch[member, n:].any()
    np.testing.assert_array_equal(order.epoch(KEY, 2, [2, 0]), epoch[[2, 0]])


def test_as_many_examples_of_their_own():
    order = DataOrder((5, 5), 2, members=2)
    assert not order.uneven and order.steps == 2 and order.counts == (4, 4)
    np.testing.assert_array_equal(order.epoch(KEY, 0), DataOrder(5, 2, members=2).epoch(KEY, 0))
    given = DataOrder((5, 5), 2, "given", members=2).epoch(KEY, 0)
    np.testing.assert_array_equal(given, np.tile(np.arange(5), (2, 1)))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"order": "same"}, "each has its own"),
        ({"members": 3}, "a number for each of 3 members, got 2"),
        ({"batch_size": 5}, "larger than an epoch of 4"),
    ],
)
def test_numbers_that_do_not_fit(options, match):
    with pytest.raises(ValueError, match=match):
        DataOrder(**{"examples": (2, 4), "batch_size": 1, "members": 2} | options)


def test_members_that_do_not_share_batches():
    with pytest.raises(ValueError, match="gives the order of each"):
        DataOrder((2, 4), 1, members=2).indices(KEY, 0)
