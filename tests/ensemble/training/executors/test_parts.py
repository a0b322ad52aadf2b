"""Parts as files: a pack without its arrays, keys as words, and names that lead elsewhere."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn, optim
from stretto.ensemble.training.executors import parts
from stretto.ensemble.training.executors.parts import Skeleton, key_of, rows_of_members, words_of


def pack(optimizer, **options):
    make = lambda key: nn.Sequential(nn.Linear(3, 4, key=key), nn.BatchNorm1d(4))
    ensemble = st.Ensemble.init(make, st.random.key(0), 5).train()
    loss = lambda member, x: (member(x) ** 2).mean()
    trainer = st.ensemble.Trainer(loss, optimizer, **options)
    return trainer.start(ensemble, st.random.key(1)).packs[0]


@pytest.mark.parametrize("optimizer", [optim.sgd(0.1), optim.adam(1e-3), optim.lion(1e-3)])
@pytest.mark.parametrize("early_stopping", [True, False])
def test_a_skeleton_has_the_leaves_of_its_pack_in_their_order(optimizer, early_stopping):
    whole = pack(optimizer, early_stopping=early_stopping)
    some = rows_of_members(whole, [3, 1])
    leaves = st.tree.leaves(some)
    made = Skeleton.of(some).pack(leaves)
    assert [id(x) for x in st.tree.leaves(made)] == [id(x) for x in leaves]
    assert made.rows.own.keys() == some.rows.own.keys()
    assert made.rows.kept.keys() == some.rows.kept.keys()
    for name, x in made.rows.own.items():
        np.testing.assert_array_equal(x, snp.take(whole.rows.own[name], np.array([3, 1]), 0))
    assert made.rows.number.tolist() == [3, 1] and made.group.places == (0, 1)


@pytest.mark.parametrize(
    "key", [st.random.PRNGKey(3), st.random.key(3), st.random.key(3, impl="rbg")]
)
def test_keys_come_back_as_they_were(key):
    words, scheme = words_of(key)
    again = key_of(snp.asarray(words), scheme)
    assert type(again) is type(key) and again.dtype == key.dtype
    np.testing.assert_array_equal(st.random.bits(again, (4,)), st.random.bits(key, (4,)))


@pytest.mark.parametrize("name", ["../outside", "/outside", "a/../../outside"])
def test_files_that_lead_elsewhere_are_refused(tmp_path, name):
    with pytest.raises(ValueError, match="leads elsewhere"):
        parts.put_bytes(tmp_path / "job", {name: b"x"})
    assert not (tmp_path / "outside").exists()


def test_words_and_arrays(tmp_path):
    assert parts.read_words(tmp_path / "none.json") is None
    parts.write_words(tmp_path / "some.json", {"step": 3})
    assert parts.read_words(tmp_path / "some.json") == {"step": 3}
    arrays = [snp.arange(3), snp.ones((2, 2), snp.bfloat16)]
    parts.write_once(tmp_path / "a" / "x.safetensors", lambda p: parts.write_arrays(p, arrays))
    parts.write_once(tmp_path / "a" / "x.safetensors", lambda p: parts.write_arrays(p, []))
    found = parts.read_arrays(tmp_path / "a" / "x.safetensors")
    for x, y in zip(found, arrays, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)
