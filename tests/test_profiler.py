"""Profiles: files that Perfetto opens, with operations, their names, and annotations."""

import gzip
import json
import os
import time

import pytest

import stretto as st
import stretto.numpy as snp

X = snp.full((300, 300), 1e-3)


@st.jit
def model(x):
    with st.named_scope("layer1"):
        return snp.sin(x @ x).sum()


def events(folder):
    """The events of the one profile below a folder, checked as the Chrome trace format has them."""
    (file,) = folder.rglob("perfetto_trace.json.gz")
    with gzip.open(file, "rt", encoding="utf-8") as f:
        found = json.load(f)["traceEvents"]
    for event in found:
        assert event["ph"] in ("X", "M")
        assert isinstance(event["name"], str)
        if event["ph"] == "X":
            assert event["ts"] >= 0
            assert event["dur"] >= 0
            assert isinstance(event["tid"], int)
    return [e for e in found if e["ph"] == "X"]


def test_operations_and_annotations(tmp_path):
    model(X).block_until_ready()
    with st.profiler.trace(tmp_path), st.profiler.TraceAnnotation("mine", step=3):
        model(X).block_until_ready()
        time.sleep(0.02)
    found = events(tmp_path)
    (mine,) = [e for e in found if e["name"] == "mine"]
    assert mine["args"]["step"] == "3"
    assert mine["dur"] >= 20_000
    ran = [e for e in found if e.get("args", {}).get("hlo_module") == "model"]
    assert ran
    for event in ran:
        assert mine["ts"] <= event["ts"] <= mine["ts"] + mine["dur"]
    assert any(e["args"].get("op_name", "").startswith("layer1/") for e in ran)
    assert list(tmp_path.rglob("*.xplane.pb"))


@pytest.mark.parametrize("kind", ["file", "pipe"])
def test_what_is_no_folder_is_refused_before_anything_runs(tmp_path, kind):
    path = tmp_path / kind
    path.touch() if kind == "file" else os.mkfifo(path)
    with pytest.raises(NotADirectoryError, match=f"start_trace: {path} is not a folder"):
        st.profiler.start_trace(path)
    for given in (None, b"x", "", "\0"):
        with pytest.raises((TypeError, ValueError), match="start_trace: the path "):
            st.profiler.start_trace(given)
    with pytest.raises(RuntimeError, match="no profile was begun"):
        st.profiler.stop_trace()


def test_several_profiles_in_one_folder(tmp_path):
    for _ in range(2):
        with st.profiler.trace(tmp_path):
            model(X).block_until_ready()
    assert len(list(tmp_path.rglob("perfetto_trace.json.gz"))) == 2


def test_begun_and_ended_apart(tmp_path):
    st.profiler.start_trace(str(tmp_path / "new"), create_perfetto_trace=False)
    with pytest.raises(RuntimeError, match=r"a profile is being taken, for .*new; end it with"):
        st.profiler.start_trace(tmp_path)
    st.profiler.stop_trace()
    assert list(tmp_path.rglob("*.trace.json.gz"))
    assert not list(tmp_path.rglob("perfetto*"))
    with pytest.raises(RuntimeError, match="no profile was begun"):
        st.profiler.stop_trace()


def test_an_error_ends_the_profile(tmp_path):
    with pytest.raises(ZeroDivisionError), st.profiler.trace(tmp_path):
        raise ZeroDivisionError
    assert events(tmp_path) is not None
    with st.profiler.trace(tmp_path / "again"):
        pass


def test_annotated_functions(tmp_path):
    @st.profiler.annotate_function
    def load(n):
        return load(n - 1) if n else 0

    named = st.profiler.annotate_function(lambda: 7, name="named", batch=1)
    with st.profiler.trace(tmp_path):
        assert (load(2), named()) == (0, 7)
    found = [e["name"] for e in events(tmp_path)]
    assert sum(name.endswith("load") for name in found) == 3
    assert found.count("named") == 1
    assert load.__name__ == "load"


def test_callbacks_are_in_it(tmp_path):
    f = st.jit(lambda x: st.debug.callback(lambda x: time.sleep(0.001), x))
    f(X)
    with st.profiler.trace(tmp_path):
        f(X)
    assert any("hlo_op" in e.get("args", {}) for e in events(tmp_path))


def test_what_is_no_name():
    with pytest.raises(TypeError, match="TraceAnnotation: name must be a string, got int"):
        st.profiler.TraceAnnotation(3)
