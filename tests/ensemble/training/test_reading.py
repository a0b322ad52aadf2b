"""Training by two processes, beside one: what is read of the state, and where it goes on."""

import json

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import optim
from stretto.ensemble.training.reading import read, same_everywhere
from tests.processes import together


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
