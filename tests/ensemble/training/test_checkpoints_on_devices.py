"""Checkpoints of states that are split over devices: the same bits on any number of them."""

import dataclasses
import json
import os
import threading

import numpy as np
import pytest

import stretto as st
from stretto import P
from stretto.ensemble import Checkpoints
from stretto.ensemble.training import checkpoints
from stretto.files import save_files
from stretto.files.file_parts import data_name
from stretto.files.many_writers import Group, write_together
from stretto.sharding import NamedSharding
from tests.ensemble.training.test_checkpoints import ensemble, fit, same_bits

pytestmark = pytest.mark.devices

RATES = {"learning_rate": [0.1, 0.01, 0.05, 0.02] * 2}


def train(directory, **options):
    return fit(directory, ensemble(8), hyperparams=RATES, **options)


def split(state, count):
    """The state with its members over so many devices, and what they share on all of these."""
    mesh = st.make_mesh((count,), ("members",), devices=st.devices()[:count])
    members, everywhere = NamedSharding(mesh, P("members")), NamedSharding(mesh, P())
    packs = tuple(
        dataclasses.replace(
            pack,
            rows=st.device_put(pack.rows, members),
            **{
                name: st.device_put(getattr(pack, name), everywhere)
                for name in ("shared", "fixed", "shared_optimizer", "step")
            },
        )
        for pack in state.packs
    )
    return state.replace(packs=packs, key=st.device_put(state.key, everywhere))


def configuration(directory):
    store = Checkpoints(directory)
    metadata = st.files.load_header(store.path(store.steps()[-1])).metadata
    return json.loads(metadata["stretto.fit"])["configuration"]


@pytest.fixture
def trained(tmp_path):
    """A training that has done half, its configuration, and the whole one."""
    first = train(tmp_path / "half", epochs=1)
    return first.state, configuration(tmp_path / "half"), train(tmp_path / "whole", epochs=2)


@pytest.mark.parametrize("count", [8, 2])
def test_a_training_goes_on_with_the_same_bits(tmp_path, trained, count):
    state, words, whole = trained
    Checkpoints(tmp_path / "split").save(split(state, count), words)
    same_bits(train(tmp_path / "split", epochs=2), whole)


@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_onto_another_number_of_devices(tmp_path, trained, count):
    state, words, _ = trained
    store = Checkpoints(tmp_path / "split")
    store.save(split(state, 8), words)
    fresh = split(state.replace(step=0, history={}), count)
    made = store.resume(fresh, words, True)
    assert made.step == state.step
    for ours, theirs, place in zip(
        st.tree.leaves(made.packs),
        st.tree.leaves(state.packs),
        st.tree.leaves(fresh.packs),
        strict=True,
    ):
        assert ours.sharding == place.sharding
        np.testing.assert_array_equal(ours, theirs)


def by_threads(count):
    """A function that writes as so many processes do."""

    def write(path, root, metadata, *, with_checksum):
        barrier, raised = threading.Barrier(count, timeout=60), []

        def process(index):
            group = Group(index, count, lambda name: barrier.wait(), lambda d: d.id * count // 8)
            try:
                write_together(str(path), *save_files._parts(root, metadata), group)
            except Exception as error:
                raised.append(error)

        threads = [threading.Thread(target=process, args=(i,)) for i in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not raised

    return write


def test_of_several_processes(tmp_path, trained, monkeypatch):
    state, words, whole = trained
    directory = tmp_path / "split"
    store = Checkpoints(directory, keep=2)
    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "write", by_threads(2))
        for earlier in (2, 1, 0):
            store.save(split(state.replace(step=state.step - earlier), 8), words)
    names = [store.path(step).name for step in (state.step - 1, state.step)]
    assert sorted(os.listdir(directory)) == sorted([*names, *[f"{n}.parts" for n in names]])
    same_bits(train(directory, epochs=2), whole)


def test_damaged_parts_are_passed_over(tmp_path, trained, monkeypatch):
    state, words, whole = trained
    directory = tmp_path / "split"
    store = Checkpoints(directory)
    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "write", by_threads(2))
        store.save(split(state, 8), words)
        store.save(split(state.replace(step=state.step + 1), 8), words)
    folder = f"{store.path(state.step + 1)}.parts"
    name = os.path.join(folder, sorted(os.listdir(folder))[1])
    with open(name, "r+b") as file:
        file.seek(-1, os.SEEK_END)
        byte = file.read(1)
        file.seek(-1, os.SEEK_END)
        file.write(bytes([byte[0] ^ 1]))
    with pytest.warns(UserWarning, match=r"later checkpoints are damaged:\n.*has other checksums"):
        made = train(directory, epochs=2)
    same_bits(made, whole)


def test_what_pruning_left_is_removed(tmp_path, trained):
    """A process may be killed between a file and its parts."""
    state, words, _ = trained
    store = Checkpoints(tmp_path, keep=1)
    left = tmp_path / f"{store.path(0).name}.parts"
    left.mkdir()
    (left / data_name("0" * 16, 0)).write_bytes(b"")
    for step in (state.step - 1, state.step):
        store.save(split(state.replace(step=step), 8), words)
    assert not left.exists() and store.steps() == [state.step]
