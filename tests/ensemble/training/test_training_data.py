"""Examples and batches as users give them."""

import numpy as np

from stretto.ensemble.training.training_data import batches_of, checksum, is_examples


def test_what_is_examples_and_what_batches():
    x = np.zeros(3)
    assert all(is_examples(d) for d in (x, (x, x), {"x": x}))
    assert not any(is_examples(d) for d in ([x], iter([x]), "text"))


def test_batches_from_a_place_on():
    batches = [np.full(1, i) for i in range(4)]
    seen = [(int(b[0]), last) for b, last in batches_of(batches, 1)]
    assert seen == [(1, False), (2, False), (3, True)]
    assert list(batches_of(batches, 4)) == []


def test_data_are_told_apart():
    x = np.arange(6.0).reshape(2, 3)
    assert checksum((x, x)) == checksum((x.copy(), x))
    assert len({checksum(d) for d in (x, x.T, (x, x), x + 1)}) == 4
