"""Values from process to process."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import distributed
from tests.processes import together


def test_alone():
    tree = {"a": np.arange(3.0, dtype="f"), "b": 2}
    gathered = distributed.process_allgather(tree)
    assert gathered["a"].shape == (1, 3) and gathered["b"].tolist() == [2]
    assert type(gathered["a"]) is np.ndarray
    assert distributed.process_allgather(tree["a"], tiled=True).tolist() == [0, 1, 2]
    assert distributed.broadcast_one_to_all(tree)["a"].tolist() == [0, 1, 2]
    assert distributed.broadcast_one_to_all(snp.ones(2), is_source=True).tolist() == [1, 1]
    distributed.sync_global_devices("here")


def test_what_is_refused():
    with pytest.raises(ValueError, match=r"tiled joins along the first axis; got int32\[\]"):
        distributed.process_allgather(np.int32(1), tiled=True)
    with pytest.raises(ValueError, match="exactly one process must say is_source=True; none did"):
        distributed.broadcast_one_to_all(1.0, is_source=False)
    with pytest.raises(TypeError, match="x must be an array or a number"):
        distributed.process_allgather("text")


SCRIPT = """
st.distributed.initialize()
here = st.distributed.process_index()
m = st.distributed
x = np.float32([-0.0, here, np.nan])

gathered = m.process_allgather({"x": x, "flag": np.array(here == 1), "none": None})
assert gathered["x"].tobytes() == np.float32([[-0.0, 0, np.nan], [-0.0, 1, np.nan]]).tobytes()
assert gathered["flag"].tolist() == [False, True] and gathered["none"] is None
assert m.process_allgather(np.full((2, 1), here), tiled=True).tolist() == [[0], [0], [1], [1]]
assert m.process_allgather(np.zeros((0, 3))).shape == (2, 0, 3)
split = st.device_put(np.arange(8), NamedSharding(st.make_mesh((4,), ("d",)), P("d")))
assert m.process_allgather(split).tolist() == m.process_allgather(split * 1, True).tolist()
assert m.process_allgather(split).tolist() == [*range(8)]
assert m.process_allgather(split.sum()) == 28

for source in (None, 0, 1):
    said = None if source is None else here == source
    got = m.broadcast_one_to_all(x, is_source=said)
    assert got.tobytes() == np.float32([-0.0, source or 0, np.nan]).tobytes()
m.sync_global_devices("a point")

for call in (
    lambda: m.sync_global_devices(f"point {here}"),
    lambda: m.process_allgather(np.zeros(here + 1)),
    lambda: m.process_allgather(1) if here else m.broadcast_one_to_all(1),
    lambda: m.broadcast_one_to_all(1, is_source=True),
    lambda: m.broadcast_one_to_all(split),
):
    try:
        call()
        print("no error")
    except ValueError as error:
        print(error)
assert m.process_allgather(here).tolist() == [0, 1]
if here:
    time.sleep(0.7)
    written = time.time()
else:
    written = 0.0
m.sync_global_devices("one waits for the other")
assert time.time() >= m.process_allgather(np.float32(0)).sum() + written
"""


def test_two_processes():
    first, second = together(SCRIPT, 2, 2)
    names, shapes, calls, sources, split = first.splitlines()
    others = second.splitlines()  # which name the function that was called there
    assert others[:2] == [names, shapes] and others[3:] == [sources, split]
    assert others[2].partition(": ")[2] == calls.partition(": ")[2]
    assert names == (
        "distributed.sync_global_devices: processes are not at the same point: "
        "process 0: distributed.sync_global_devices of 'point 0'; "
        "process 1: distributed.sync_global_devices of 'point 1'"
    )
    assert "float32[1]" in shapes and "float32[2]" in shapes
    assert "process 0: distributed.broadcast_one_to_all of" in calls
    assert sources.endswith("exactly one process must say is_source=True; 0, 1 did")
    assert split.endswith("int32[8] is on devices of several processes")
    assert st.distributed.process_count() == 1
