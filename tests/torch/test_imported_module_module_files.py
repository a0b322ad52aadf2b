"""Imported modules in files: what comes back, and files that are no such thing."""

import json

import numpy as np
import pytest

import stretto as st
from tests.torch.sample_programs import linear, module

X = np.ones((2, 3), np.float32)


def test_what_comes_back(tmp_path):
    net = module(training=linear(0.5, scale=3.0), ties=(("head.weight", "layer.weight"),))
    path = tmp_path / "net.safetensors"
    st.torch.save(path, net)
    again = st.torch.load(path)
    np.testing.assert_array_equal(again(X)["y"], net(X)["y"])
    assert repr(again) == repr(net) and not again.training
    assert list(again.state_dict()) == list(net.state_dict())
    assert [name for name, _ in again.named_buffers()] == ["frozen", "hidden"]
    assert st.tree.structure(again) == st.tree.structure(net)
    with st.nn.keys(st.random.key(0)):
        drawn = again.train()(X)["y"]
    with st.nn.keys(st.random.key(0)):
        np.testing.assert_array_equal(net.train()(X)["y"], drawn)


def damaged(path, change):
    """The file with its description changed."""
    tree, header = st.load(path), st.files.load_header(path)
    about = json.loads(header.metadata["stretto.torch"])
    change(about)
    st.save(path, tree, {"stretto.torch": json.dumps(about)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(form=1), "it is of form 1, and this version reads 2"),
        (lambda d: d.pop("kinds"), "damaged"),
        (lambda d: d["arrays"].append(["what", "buffer", True]), "damaged"),
        (lambda d: d["arrays"][0].__setitem__(1, "code"), "there is no role 'code'"),
        (lambda d: d["programs"]["evaluation"]["graph"]["nodes"].pop(0), "damaged"),
        (lambda d: d["programs"].pop("training"), "damaged"),
    ],
)
def test_damaged_files(tmp_path, change, message):
    path = tmp_path / "net.safetensors"
    st.torch.save(path, module())
    damaged(path, change)
    with pytest.raises(ValueError, match=message):
        st.torch.load(path)


def test_operations_that_are_not_there(tmp_path):
    path = tmp_path / "net.safetensors"
    st.torch.save(path, module())
    damaged(
        path, lambda d: d["programs"]["evaluation"]["graph"]["nodes"][0].__setitem__(0, "os.system")
    )
    with pytest.raises(NotImplementedError, match=r"os\.system, in layer"):
        st.torch.load(path)
