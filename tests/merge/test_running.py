"""Runs: whole or not at all, resumed to the same bytes, and faults that are found on the way."""

import errno
import json
import os
import signal
import subprocess
import sys
import zlib
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import stretto as st
from stretto.merge import running
from tests.merge import models


@pytest.fixture
def recipe(tmp_path):
    paths, _ = models.family(tmp_path, "a", "b")
    return {"method": "linear", "models": [paths["a"], paths["b"]]}


def left(tmp_path):
    return sorted(p.name for p in tmp_path.iterdir() if p.name.startswith("."))


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16, np.float32, np.float64])
def test_numbers_that_are_not_finite(dtype):
    dtype = np.dtype(dtype)
    bits = np.arange(1 << 16, dtype=np.uint16)
    numbers = bits.view(dtype) if dtype.itemsize == 2 else bits.view(np.float16).astype(dtype)
    with np.errstate(invalid="ignore"):
        finite = np.isfinite(numbers.astype(np.float64))
    assert running.strange_in(numbers) == (~finite).sum() > 0
    assert running.strange_in(numbers[finite]) == 0
    for number in (np.inf, -np.inf, np.nan, -np.nan):
        assert running.strange_in(np.array([-1, 0, number, 1], dtype)) == 1
    assert running.strange_in(numbers[:0]) == 0


def test_what_is_reported(tmp_path, recipe):
    seen = []
    report = st.merge.run(recipe, tmp_path / "out.safetensors", progress=lambda *x: seen.append(x))
    data = (tmp_path / "out.safetensors").read_bytes()
    assert report.files == {"a.safetensors": f"{zlib.crc32(data):08x}"}
    assert (report.tensors, report.resumed) == (15, 0)
    assert report.nbytes == sum(
        x.nbytes for x in models.read(tmp_path / "out.safetensors").values()
    )
    assert seen[-1] == (report.nbytes, report.nbytes)
    assert seen == sorted(seen)
    assert not left(tmp_path)
    with st.merge.Checkpoint(tmp_path / "out.safetensors") as found:
        places = [s.offset for s in found.stored.values()]
        assert places == sorted(places)


@pytest.mark.parametrize("dtype, code", [
    (np.float16, "F16"), (ml_dtypes.bfloat16, "BF16"), (np.float64, "F64"),
])  # fmt: skip
def test_arithmetic_and_rounding(tmp_path, dtype, code):
    paths, weights = models.family(tmp_path, "a", "b", dtype=dtype)
    each = [{"path": paths[n], "weight": w} for n, w in (("a", 0.3), ("b", 0.5))]
    st.merge.run({"method": "linear", "models": each}, tmp_path / "out")
    found = st.merge.Checkpoint(tmp_path / "out")
    with st.enable_x64():
        merged = {name: np.asarray(x) for name, x in found.items()}
    for name, x in weights["a"].items():
        assert found.stored[name].code == code
        wide = np.float64 if dtype == np.float64 else np.float32
        share = np.asarray([0.3, 0.5], wide)
        y = weights["b"][name]
        exact = (x.astype(np.float64) * share[0] + y.astype(np.float64) * share[1]) / share.sum()
        own = merged[name].astype(np.float64)
        unit = float(ml_dtypes.finfo(dtype).eps)
        units = 3 if dtype == np.float64 else 0.5 + 1e-3  # three operations; or one in the end
        assert np.all(abs(own - exact) <= units * unit * abs(exact) + 1e-7 * (wide != dtype)), name


def test_integers_must_agree(tmp_path):
    extra = {"steps": np.arange(5), "flag": np.array([True, False])}
    paths, _ = models.family(tmp_path, "a", "b", extra=extra)
    recipe = {"method": "linear", "models": [paths["a"], paths["b"]]}
    st.merge.run(recipe, tmp_path / "out")
    found = models.read(tmp_path / "out")
    np.testing.assert_array_equal(found["steps"], extra["steps"])
    assert found["steps"].dtype == np.int64
    np.testing.assert_array_equal(found["flag"], extra["flag"])
    changed = models.read(paths["b"])
    changed["steps"][4] = 1 << 40
    models.save_file(changed, paths["b"])
    with pytest.raises(
        ValueError, match=r"steps has integers, which are copied, and steps of .*b.safe"
    ):
        st.merge.run(recipe, tmp_path / "out2")
    assert not (tmp_path / "out2").exists()
    assert not left(tmp_path)  # as before anything is written
    st.merge.run(recipe | {"integers": "first"}, tmp_path / "out2")
    np.testing.assert_array_equal(models.read(tmp_path / "out2")["steps"], extra["steps"])
    changed["flag"][0] = False
    models.save_file(changed, paths["b"])
    with pytest.raises(
        ValueError, match=r"what is in the files has 2 faults:\n.*(flag|steps).*\n.*(flag|steps)"
    ):
        st.merge.run(recipe, tmp_path / "out3")


@pytest.mark.parametrize("method", ["linear", "task_arithmetic"])
def test_counters_need_not_agree(tmp_path, method):
    """Networks with batch normalization have been trained for so many steps each."""
    name = "bn.num_batches_tracked" if method == "linear" else "n_averaged"
    for i, model in enumerate(("base", "a", "b")):
        tensors = {name: np.array(10 * i), "bn.weight": np.full(3, i, np.float32)}
        models.save_file(tensors, tmp_path / f"{model}.safetensors")
    recipe = {"method": method, "models": [tmp_path / f"{n}.safetensors" for n in "ab"]}
    if method != "linear":
        recipe |= {"base": tmp_path / "base.safetensors", "parameters": {"weight": 1}}
    st.merge.run(recipe, tmp_path / "out")
    found = models.read(tmp_path / "out")
    assert int(found[name]) == (10 if method == "linear" else 0)
    assert found["bn.weight"].tolist() == [1.5 if method == "linear" else 3] * 3


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite(tmp_path, recipe, value):
    strange = models.read(recipe["models"][0])
    strange["model.norm.weight"][[2, 5]] = value
    models.save_file(strange, recipe["models"][0])
    out = tmp_path / "out"
    with pytest.raises(
        ValueError, match=r"2 of 24 elements of model.norm.weight are NaN or infinite"
    ):
        st.merge.run(recipe, out)
    assert not out.exists()
    st.merge.run(recipe, out, nonfinite="keep")
    assert (~np.isfinite(models.read(out)["model.norm.weight"])).sum() == 2
    with pytest.raises(ValueError, match='nonfinite must be "error" or "keep", got \'drop\''):
        st.merge.run(recipe, out, nonfinite="drop")


def test_whole_matrices_that_are_not_finite(tmp_path, recipe):
    base, tuned = recipe["models"]
    recipe = {"method": "iso", "base": base, "models": [tuned]}
    name = "model.layers.1.mlp.up_proj.weight"
    st.merge.run(recipe | {"parameters": {"lambda": 1e6}, "out_dtype": "float16"},
                 tmp_path / "large", nonfinite="keep")  # fmt: skip
    count = (~np.isfinite(models.read(tmp_path / "large")[name])).sum()
    assert count > 0
    with pytest.raises(ValueError, match=r"of 1200 elements of lm_head.weight are NaN or infinite"):
        st.merge.run(recipe | {"parameters": {"lambda": 1e6}, "out_dtype": "float16"},
                     tmp_path / "out")  # fmt: skip
    strange = models.read(tuned)
    strange[name][3, :2] = np.nan
    models.save_file(strange, tuned)
    for nonfinite in ("error", "keep"):
        with pytest.raises(ValueError, match=f"2 of 1152 elements of {name} of .*b.safetensors are "
                           "NaN or infinite, and its whole matrix is needed"):  # fmt: skip
            st.merge.run(recipe, tmp_path / "out", nonfinite=nonfinite)


@pytest.mark.parametrize("text, size", [
    (5, 5), ("5", 5), ("500MB", 500_000_000), ("1.5 GiB", 3 << 29), ("2 kb", 2000),
])  # fmt: skip
def test_bytes(text, size):
    assert running.in_bytes(text, "memory") == size


@pytest.mark.parametrize("text", [
    0, -1, True, "", "MB", "5 XB", "five", "-1MB", None, [1], float("nan"), float("inf"),
])  # fmt: skip
def test_what_is_no_number_of_bytes(text):
    with pytest.raises(ValueError, match="run: memory must be bytes"):
        running.in_bytes(text, "memory")


@pytest.mark.parametrize("seed", [-1, 1 << 32, 1.5, "1", True])
def test_what_is_no_seed(tmp_path, recipe, seed):
    with pytest.raises(ValueError, match="run: seed must be a whole number from 0 to 2"):
        st.merge.run(recipe, tmp_path / "out", seed=seed)


def test_where_the_result_cannot_be(tmp_path, recipe):
    def refused(out, given=recipe):
        with pytest.raises(ValueError, match="run: the result cannot be at") as caught:
            st.merge.run(given, out)
        return str(caught.value)

    assert "it is the input" in refused(recipe["models"][0])
    (tmp_path / "link").symlink_to(recipe["models"][0])
    assert "it is the input" in refused(tmp_path / "link")
    (tmp_path / "full").write_text("x")
    assert "there is a file already" in refused(tmp_path / "full")
    assert "the result is one file, and this is a folder" in refused(tmp_path)
    assert "there is no folder" in refused(tmp_path / "no" / "out")
    folder = models.as_folder(tmp_path / "model", models.draw(0))
    of_folder = {"method": "passthrough", "models": [folder]}
    assert "it is inside the input" in refused(os.path.join(folder, "out"), of_folder)
    assert "the folder has" in refused(tmp_path, of_folder)
    assert "the result is a folder, and this is a file" in refused(tmp_path / "full", of_folder)
    (tmp_path / "empty").mkdir()
    st.merge.run(of_folder, tmp_path / "empty")
    assert {p.name for p in (tmp_path / "empty").iterdir()} == {
        "model.safetensors", "config.json", "tokenizer.json",
    }  # fmt: skip
    assert not left(tmp_path)


def stopped(monkeypatch, after):
    """Have the run stop after so many tensors."""
    merge = running._Running.merge
    count = [0]

    def stopping(self, step, out):
        if count[0] == after:
            raise KeyboardInterrupt
        count[0] += 1
        merge(self, step, out)

    monkeypatch.setattr(running._Running, "merge", stopping)


@pytest.mark.parametrize("shard_size", [None, 9000])
def test_a_run_goes_on_where_it_was(tmp_path, recipe, monkeypatch, shard_size):
    st.merge.run(recipe, tmp_path / "whole", shard_size=shard_size)
    monkeypatch.setattr(running, "_BETWEEN", 1)
    out = tmp_path / "out"
    for after in (0, 4, 1):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            stopped(patch, after)
            st.merge.run(recipe, out, shard_size=shard_size)
        assert not out.exists()
        assert left(tmp_path) == [".out.merging"]
    with monkeypatch.context() as patch:
        done = []
        merge = running._Running.merge
        patch.setattr(
            running._Running,
            "merge",
            lambda self, step, to: (done.append(step), merge(self, step, to)),
        )
        report = st.merge.run(recipe, out, shard_size=shard_size)
    assert len(done) == 10
    assert report.resumed > 0
    assert same(out, tmp_path / "whole")
    assert not left(tmp_path)


def same(first, second):
    if first.is_file():
        return first.read_bytes() == second.read_bytes()
    names = {p.name for p in first.iterdir()}
    return names == {p.name for p in second.iterdir()} and all(
        (first / n).read_bytes() == (second / n).read_bytes() for n in names
    )


@pytest.mark.parametrize("damage", ["file", "cut", "journal", "line", "recipe", "resume"])
def test_what_a_run_before_left_is_used_only_if_it_is_right(tmp_path, recipe, monkeypatch, damage):
    st.merge.run(recipe, tmp_path / "whole")
    monkeypatch.setattr(running, "_BETWEEN", 1)
    out = tmp_path / "out"
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        stopped(patch, 5)
        st.merge.run(recipe, out)
    stage = tmp_path / ".out.merging"
    data, journal = stage / "result" / "a.safetensors", stage / "journal.jsonl"
    if damage == "file":
        raw = bytearray(data.read_bytes())
        raw[-1] ^= 1
        data.write_bytes(raw)
    elif damage == "cut":
        data.write_bytes(data.read_bytes()[:-1])
    elif damage == "journal":
        journal.write_text("{")
    elif damage == "line":  # as a kill leaves it
        journal.write_text(journal.read_text()[:-20])
    elif damage == "recipe":
        st.merge.run(recipe, out, seed=1)
        assert models.read(out).keys() == models.read(tmp_path / "whole").keys()
        out.unlink()
    report = st.merge.run(recipe, out, resume=damage != "resume")
    assert (report.resumed > 0) == (damage == "line")
    assert same(out, tmp_path / "whole")


def test_a_full_disk_keeps_what_is_done(tmp_path, recipe, monkeypatch):
    st.merge.run(recipe, tmp_path / "whole")
    monkeypatch.setattr(running, "_BETWEEN", 1)
    write = running._Out._write
    room = [16_000]

    def full(self, data):
        room[0] -= len(data)
        if room[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(self, data)

    with monkeypatch.context() as patch:
        patch.setattr(running._Out, "_write", full)
        with pytest.raises(
            OSError, match="No space left on device; what is done is kept in "
        ) as caught:
            st.merge.run(recipe, tmp_path / "out")
        assert caught.value.errno == errno.ENOSPC
    assert st.merge.run(recipe, tmp_path / "out").resumed > 0
    assert same(tmp_path / "out", tmp_path / "whole")


def test_an_input_that_changes_meanwhile(tmp_path, recipe):
    def change(done, total):
        path = Path(recipe["models"][1])
        os.utime(path, ns=(1, 1))

    with pytest.raises(ValueError, match=r"b\.safetensors was changed while it was merged"):
        st.merge.run(recipe, tmp_path / "out", progress=change)
    assert not (tmp_path / "out").exists()


def test_an_input_that_is_cut_short(tmp_path, recipe):
    def cut(done, total):
        path = recipe["models"][1]
        with open(path, "r+b") as file:
            file.truncate(5000)

    with pytest.raises(ValueError, match="it was cut short"):
        st.merge.run(recipe, tmp_path / "out", progress=cut)
    assert not (tmp_path / "out").exists()


def test_the_result_is_read_again(tmp_path, recipe, monkeypatch):
    st.merge.run(recipe, tmp_path / "out", verify=True)
    sha = running._Out.close

    def spoil(self):
        sha(self)
        path = Path(self.stage.result) / self.name
        path.write_bytes(path.read_bytes()[:-1] + b"?")

    monkeypatch.setattr(running._Out, "close", spoil)
    with pytest.raises(OSError, match="was written, and is another file on the disk"):
        st.merge.run(recipe, tmp_path / "out2", verify=True)
    assert not (tmp_path / "out2").exists()


@pytest.mark.parametrize("gigabytes", [0, 1, None])
def test_what_memory_cannot_keep_is_forgotten(tmp_path, recipe, monkeypatch, gigabytes):
    forgotten = []
    total = None if gigabytes is None else gigabytes << 30
    monkeypatch.setattr(running.machine, "memory", lambda: running.machine.Memory(total, None))
    monkeypatch.setattr(running.system, "forget", forgotten.append)
    st.merge.run(recipe, tmp_path / "out.safetensors")
    assert len(forgotten) == (gigabytes == 0)


def test_two_runs_to_one_place(tmp_path, recipe):
    def second(done, total):
        with pytest.raises(ValueError, match="another process is merging to"):
            st.merge.run(recipe, tmp_path / "out")

    st.merge.run(recipe, tmp_path / "out", progress=second)
    assert (tmp_path / "out").exists()


def test_random_choices_are_the_same_after_a_stop(tmp_path, monkeypatch):
    paths, _ = models.family(tmp_path, "a")
    recipe = {"method": "dare_ties", "base": paths["base"], "models": [paths["a"]],
              "parameters": {"weight": 1, "density": 0.5}}  # fmt: skip
    st.merge.run(recipe, tmp_path / "whole", seed=4)
    monkeypatch.setattr(running, "_BETWEEN", 1)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        stopped(patch, 7)
        st.merge.run(recipe, tmp_path / "out", seed=4)
    assert st.merge.run(recipe, tmp_path / "out", seed=4, memory=1).resumed > 0
    assert same(tmp_path / "out", tmp_path / "whole")


KILLED = """
import json, os, signal, sys, threading
import stretto as st
from stretto.merge import running

running._BETWEEN = 1
recipe, out, left = json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3])
note = running._Stage.note

def noting(self, said):
    global left
    note(self, said)
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

running._Stage.note = noting
st.merge.run(recipe, out)
"""


@pytest.mark.parametrize("method", ["linear", "tsv"])
def test_a_kill(tmp_path, recipe, method):
    if method == "tsv":
        recipe = {"method": method, "base": recipe["models"][0], "models": recipe["models"][1:]}
    st.merge.run(recipe, tmp_path / "whole")
    arguments = [json.dumps(recipe), str(tmp_path / "out"), "6"]
    done = subprocess.run([sys.executable, "-c", KILLED, *arguments], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not (tmp_path / "out").exists()
    assert st.merge.run(recipe, tmp_path / "out").resumed > 0
    assert same(tmp_path / "out", tmp_path / "whole")
