"""Rows of members in arguments, and results of packs in the places of their members.

Training by two processes, beside one: what is read of the state, and where it goes on.

States divided and united again.
"""

import dataclasses
import json

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import optim
from stretto.ensemble import Trainer
from stretto.ensemble.training.train_state import (
    divide_pack,
    in_places,
    is_row,
    of_each,
    read,
    same_everywhere,
    unite_packs,
)
from tests.processes import together


def test_what_has_a_row_for_each_member():
    assert is_row([0.1, 0.2]) and is_row(np.ones(2)) and is_row(snp.ones((2, 3)))
    assert not (is_row(0.1) or is_row(np.float32(1)) or is_row(snp.ones(())) or is_row("adam"))


def test_rows_are_checked():
    columns = of_each({"rate": [0.1, 0.2], "decay": 0.5}, 2, "hyperparams")
    assert list(columns) == ["rate"]
    np.testing.assert_array_equal(columns["rate"], np.float32([0.1, 0.2]))
    with pytest.raises(ValueError, match=r"hyperparams\['rate'\] .* each of 3 members"):
        of_each({"rate": [0.1, 0.2]}, 3, "hyperparams")
    with pytest.raises(ValueError, match=r"per_member\['x'\]"):
        of_each({"x": 0.5}, 2, "per_member", every=True)


def test_results_are_put_in_places():
    ensemble = st.Ensemble(lambda p, x: p * x, [1.0, 2.0, 3.0])
    loss = lambda member, x: member(x).mean()
    (pack,) = st.ensemble.Trainer(loss, optim.sgd(0.1)).start(ensemble, st.random.key(0)).packs
    assert in_places([pack], [{"loss": snp.arange(3.0)}], 3)["loss"].shape == (3,)
    some = dataclasses.replace(pack, group=dataclasses.replace(pack.group, places=(2, 0)))
    placed = in_places([some], [{"loss": snp.array([5.0, 7.0])}], 3)["loss"]
    np.testing.assert_array_equal(placed, [7, np.nan, 5])


def test_alone():
    x = snp.arange(3)
    assert read(x) is np.asarray(x) or read(x).tolist() == [0, 1, 2]
    assert read(np.float32(2)).tolist() == 2
    same_everywhere(None, 3, "the step")
    same_everywhere(st.make_mesh((1,), ("members",)), 3, "the step")


TRAINING = """
import json, os, sys
from stretto import optim

def trained(mesh, directory=None, steps=6, **options):
    ensemble = st.Ensemble(
        lambda p, x: snp.tanh(x @ p["w"]) @ p["v"],
        {"w": st.random.normal(st.random.key(0), (4, 3, 5)), "v": snp.ones((4, 5)) / 5},
        stacked=True,
    )
    x = np.asarray(st.random.normal(st.random.key(1), (48, 3)))
    loss = lambda member, x, y: ((member(x) - y) ** 2).mean()
    return ensemble.fit(
        loss, (x, x.sum(1)), optim.adam(0.05), steps=steps, batch_size=16, key=st.random.key(2),
        evaluate_every=2, validation=(x, x.sum(1)), checkpoint=directory, mesh=mesh,
        progress=True, **options,
    )
"""

SCRIPT = (
    TRAINING
    + """
st.distributed.initialize()
mesh = st.make_mesh((2, 2), ("members", "data"))
fitted = trained(mesh, early_stopping=2)
first = {n: fitted.history[n].tolist() for n in ("loss", "validation_loss")}
directory = os.environ["DIRECTORY"]
trained(mesh, st.ensemble.Checkpoints(directory, every_steps=3), steps=3)
again = trained(mesh, st.ensemble.Checkpoints(directory, every_steps=3), resume=True)
try:
    trained(mesh, st.ensemble.Checkpoints(directory, every_seconds=1.0))
except ValueError as error:
    refused = str(error)
alone = f"{directory}-{st.distributed.process_index()}"
if st.distributed.process_index():
    trained(None, st.ensemble.Checkpoints(alone, every_steps=3), steps=3)
try:
    trained(mesh, st.ensemble.Checkpoints(alone, every_steps=3))
except ValueError as error:
    apart = str(error)
print("RESULT", json.dumps([first, again.history["loss"].tolist(), refused, apart]))
"""
)


def test_two_processes_train_as_one(tmp_path):
    outputs = together(SCRIPT, devices=2, DIRECTORY=str(tmp_path / "checkpoints"))
    results = [
        json.loads(line.removeprefix("RESULT "))
        for output in outputs
        for line in output.splitlines()
        if line.startswith("RESULT ")
    ]
    assert len(results) == 2 and results[0] == results[1]
    first, again, refused, apart = results[0]
    scope = {"st": st, "snp": snp, "np": np, "optim": optim}
    exec(TRAINING, scope)
    wanted = scope["trained"](None).history
    np.testing.assert_allclose(first["loss"], wanted["loss"], rtol=1e-4)
    np.testing.assert_allclose(first["validation_loss"], wanted["validation_loss"], rtol=1e-4)
    np.testing.assert_allclose(again, wanted["loss"], rtol=1e-4)
    assert "every_seconds goes by the clock" in refused
    assert "from the same place" in apart and "[0, 3]" in apart
    # One of them says how it goes, and not both.
    assert ["step 4, epoch" in output for output in outputs] == [True, False]


@pytest.mark.devices
def test_arrays_over_devices():
    mesh = st.make_mesh((8,), ("x",))
    x = st.device_put(np.arange(8), st.sharding.NamedSharding(mesh, st.P("x")))
    assert read(x).tolist() == [*range(8)]


KEY = st.random.PRNGKey(0)


def begun(count=4, **options):
    members = [{"w": np.full(2, i, np.float32), "b": np.float32(9)} for i in range(count)]
    e = st.Ensemble(lambda p, x: p["w"] * x + p["b"], members, **options)
    return Trainer(lambda m, x: m(x).sum(), optim.adam(0.1)).start(e, KEY)


def test_divided_and_united():
    state = begun(shared="b")
    (pack,) = state.packs
    on, off = divide_pack(pack, [False, True, False, True])
    assert on.group.places == (1, 3) and off.group.places == (0, 2)
    assert on.shared["b"] == 9 and off.shared == {}
    np.testing.assert_array_equal(on.rows.own["w"], [[1, 1], [3, 3]])
    whole = unite_packs((on, off))
    assert whole.group == pack.group
    for x, y in zip(st.tree.leaves(whole), st.tree.leaves(pack), strict=True):
        np.testing.assert_array_equal(x, y)
    halves = state.replace(packs=(on,), finished=((off,),))
    assert halves.size == 4 and halves.each("number").tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(halves.ensemble(1.0), state.ensemble(1.0))
