"""Files of ensembles: what comes back, what other readers find, and what is refused."""

import json
import os

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn

KEY = st.random.PRNGKey(4)
X = st.random.normal(st.random.PRNGKey(1), (3, 4))


def model(key, width=5):
    first, second = st.random.split(key)
    return nn.Sequential(
        nn.Linear(4, width, key=first), nn.BatchNorm1d(width), nn.Linear(width, 2, key=second)
    ).eval()


def models(*widths):
    return [model(k, w) for k, w in zip(st.random.split(KEY, len(widths)), widths, strict=True)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ensemble.safetensors"


def equal(a, b):
    assert st.tree.structure(a) == st.tree.structure(b)
    for x, y in zip(st.tree.leaves(a), st.tree.leaves(b), strict=True):
        assert x.type == y.type
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("widths", [(5,), (5, 5, 5), (5, 3, 5, 4)], ids=str)
def test_what_was_saved_comes_back(path, widths):
    ensemble = st.Ensemble(models(*widths), frozen="0")
    ensemble.save(path)
    like = st.Ensemble([model(KEY, w) for w in dict.fromkeys(widths)], frozen="0")
    made = st.Ensemble.load(path, like)
    equal(made, ensemble)
    np.testing.assert_array_equal(made(X), ensemble(X))
    assert len(like) == len(set(widths))


@pytest.mark.parametrize("shared_here", [None, "0"])
def test_the_file_says_what_is_shared(path, shared_here):
    ensemble = st.Ensemble([model(KEY)] * 3, shared="0")
    ensemble.save(path)
    made = st.Ensemble.load(path, st.Ensemble([model(KEY)] * 2, shared=shared_here))
    equal(made, ensemble)
    st.Ensemble([model(KEY)] * 3).save(path)
    made = st.Ensemble.load(path, st.Ensemble([model(KEY)] * 2, shared=shared_here))
    assert made.state_dict()[0]["0.weight"].shape == (3, 5, 4)


def test_functions_dtypes_and_ties_come_back(path):
    members = [{"w": snp.full((2,), i, snp.bfloat16), "n": snp.int32(i)} for i in range(3)]
    apply = lambda p, x: p["w"] * x
    ensemble = st.Ensemble(apply, members, chunk_size=2)
    ensemble.save(path)
    equal(st.Ensemble.load(path, ensemble[:1]), ensemble)
    layer = nn.Linear(4, 4)
    tied = st.Ensemble([nn.Sequential(layer, layer)] * 2)
    tied.save(path)
    made = st.Ensemble.load(path, tied[:1])
    equal(made, tied)
    first = made[0]
    assert first[0] is first[1]
    loose = st.Ensemble([nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))])
    with pytest.raises(ValueError, match="its members tie 1 to 0, those of `like` nothing"):
        st.Ensemble.load(path, loose)


def test_names_and_metadata_are_readable(path):
    st.Ensemble(models(5, 5)).save(path, {"data": "digits"})
    assert "0.weight" in st.load(path)
    header = st.files.load_header(path)
    assert header.arrays["0.weight"].shape == (2, 5, 4)
    said = json.loads(header.metadata["stretto.ensemble"])
    assert header.metadata["data"] == "digits"
    assert said["members"] == 2
    assert said["stretto"] == st.__version__
    assert said["groups"] == [{"places": [0, 1], "shared": [], "ties": []}]
    st.Ensemble(models(5, 3)).save(path)
    assert "group1.2.weight" in st.files.load_header(path).arrays


def test_a_state_with_an_ensemble_in_it(path):
    state = {"ensemble": st.Ensemble(models(5, 5)), "step": snp.int32(3)}
    st.save(path, state)
    assert "ensemble.0.weight" in st.files.load_header(path).arrays
    equal(st.load(path, like=state)["ensemble"], state["ensemble"])


# What is refused


def test_files_that_do_not_fit(path):
    st.Ensemble(models(5, 5)).save(path)
    with pytest.raises(
        ValueError, match=r"0\.weight: expected float32\[2,3,4\], got float32\[2,5,4\]"
    ):
        st.Ensemble.load(path, st.Ensemble(models(3)))
    with pytest.raises(ValueError, match=r"(?s)missing: bias, weight.*unexpected: 0\.bias"):
        st.Ensemble.load(path, st.Ensemble([nn.Linear(4, 2)]))
    with pytest.raises(ValueError, match="it has members of 1 architectures, `like` has 2"):
        st.Ensemble.load(path, st.Ensemble(models(5, 3)))
    with pytest.raises(TypeError, match=r"like must be an Ensemble, .* got Sequential"):
        st.Ensemble.load(path, model(KEY))
    st.save(path, {"w": snp.ones(2)})
    with pytest.raises(ValueError, match=r"Ensemble.load: .* not an ensemble file"):
        st.Ensemble.load(path, st.Ensemble(models(5)))
    with pytest.raises(FileNotFoundError):
        st.Ensemble.load(path.with_name("other"), st.Ensemble(models(5)))


@pytest.mark.parametrize(
    "said",
    [
        "{",
        "[]",
        "{}",
        '{"version": 2}',
        '{"version": 1, "members": 2, "groups": [{"places": [0], "shared": [], "ties": []}]}',
        '{"version": 1, "members": 2, "groups": [{"places": [1, 0], "shared": [], "ties": []}]}',
        '{"version": 1, "members": 0, "groups": []}',
        '{"version": 1, "members": 1, "groups": [{"places": 0, "shared": [], "ties": []}]}',
    ],
)
def test_a_damaged_description(path, said):
    ensemble = st.Ensemble(models(5, 5))
    st.save(path, ensemble.state_dict()[0], {"stretto.ensemble": said})
    with pytest.raises(
        ValueError, match=r"Ensemble.load: .*its description of the ensemble is damaged"
    ):
        st.Ensemble.load(path, ensemble)


def test_a_file_cut_short(path):
    ensemble = st.Ensemble(models(5, 5))
    ensemble.save(path)
    whole = path.read_bytes()
    for size in (0, 7, 100, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=str(path)):
            st.Ensemble.load(path, ensemble)


def test_a_file_that_cannot_be_written_leaves_the_old(path):
    ensemble = st.Ensemble(models(5, 5))
    ensemble.save(path)
    with pytest.raises(TypeError, match="metadata must be text"):
        ensemble.save(path, {"epoch": 3})
    with pytest.raises(ValueError, match=r"metadata\['stretto.ensemble'\] is where"):
        ensemble.save(path, {"stretto.ensemble": "mine"})
    equal(st.Ensemble.load(path, ensemble), ensemble)
    assert os.listdir(path.parent) == [path.name]
