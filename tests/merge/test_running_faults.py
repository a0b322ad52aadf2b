"""Runs under adverse conditions: limits of the system, odd places, and odd checkpoints."""

import errno
import json
import os
import shutil
import subprocess
import sys
from collections import namedtuple

import numpy as np
import pytest

import stretto as st
from stretto.merge import running
from stretto.merge.checkpoints import Checkpoint
from tests.merge import models


@pytest.fixture
def recipe(tmp_path):
    paths, _ = models.family(tmp_path, "a", "b")
    return {"method": "linear", "models": [paths["a"], paths["b"]]}


def stage(tmp_path):
    return tmp_path / ".out.merging"


# Limits of the system

LIMITED = """
import json, resource, sys
import stretto as st
from stretto.merge import running

running._BETWEEN = 1
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
try:
    st.merge.run(json.loads(sys.argv[1]), sys.argv[2])
except OSError as error:
    print(error)
    sys.exit(error.errno)
"""


@pytest.mark.skipif(os.name == "nt", reason="there are no such limits")
def test_a_limit_of_the_size_of_files(tmp_path, recipe):
    st.merge.run(recipe, tmp_path / "whole")
    arguments = [json.dumps(recipe), str(tmp_path / "out"), "20000"]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *arguments], check=False, capture_output=True, text=True
    )
    assert done.returncode == errno.EFBIG, done.stderr
    assert "File too large; what is done is kept in " in done.stdout
    assert not (tmp_path / "out").exists()
    assert st.merge.run(recipe, tmp_path / "out").resumed > 0
    assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes()


INTERRUPTED = """
import signal, sys
from stretto.merge import running
from stretto.__main__ import main

running._BETWEEN = 1
note = running._Stage.note
count = [0]

def noting(self, said):
    note(self, said)
    count[0] += 1
    if count[0] == 5:
        signal.raise_signal(signal.SIGINT)

running._Stage.note = noting
sys.exit(main(sys.argv[1:]))
"""


def test_an_interrupt_of_the_command(tmp_path, recipe):
    asked = ["merge", "--method", "linear", *recipe["models"], "--out", str(tmp_path / "out")]
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, *asked], check=False, capture_output=True, text=True
    )
    assert done.returncode == 130, done.stderr
    assert done.stderr == "stretto merge: stopped; the same call goes on where it was\n"
    assert stage(tmp_path).exists()
    assert st.merge.run(recipe, tmp_path / "out").resumed > 0
    assert not stage(tmp_path).exists()


def test_what_is_done_counts_as_room(tmp_path, recipe, monkeypatch):
    st.merge.run(recipe, tmp_path / "whole")
    size = (tmp_path / "whole").stat().st_size
    monkeypatch.setattr(running, "_BETWEEN", 1)

    def stop(done, total):
        if done > total * 0.9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        st.merge.run(recipe, tmp_path / "out", progress=stop)
    assert "what is done is kept in " in caught.value.__notes__[0]
    usage = namedtuple("usage", "free")(size // 2)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(ValueError, match=r"and .* has room for"):
        st.merge.run(recipe, tmp_path / "other")
    assert st.merge.run(recipe, tmp_path / "out").resumed > 0


@pytest.mark.parametrize("which", [0, 1])
def test_a_thread_that_cannot_read(tmp_path, monkeypatch, which):
    tensors = {"w": np.ones(3 << 12, np.float32)}
    models.save_file(tensors, tmp_path / "a.safetensors")
    read = Checkpoint.read_into

    def failing(self, name, begin, out):
        if begin == which << 14:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        read(self, name, begin, out)

    recipe = {"method": "linear", "models": [tmp_path / "a.safetensors"]}
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "read_into", failing)
        with pytest.raises(
            OSError, match="run: Input/output error; what is done is kept"
        ) as caught:
            st.merge.run(recipe, tmp_path / "out", memory=1)
    assert caught.value.errno == errno.EIO
    st.merge.run(recipe, tmp_path / "out", memory=1)
    np.testing.assert_array_equal(models.read(tmp_path / "out")["w"], tensors["w"])


# Places


def test_a_place_that_is_a_link(tmp_path, recipe):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "elsewhere" / "real")
    report = st.merge.run(recipe, tmp_path / "out")
    assert (tmp_path / "out").is_symlink()
    assert report.path == str(tmp_path / "elsewhere" / "real")
    assert models.read(tmp_path / "out").keys() == models.shapes().keys()
    with pytest.raises(ValueError, match="there is a file already"):
        st.merge.run(recipe, tmp_path / "out")


def test_a_folder_that_is_a_link(tmp_path):
    folder = models.as_folder(tmp_path / "model", models.draw(0))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "elsewhere")
    st.merge.run({"method": "linear", "models": [folder]}, f"{tmp_path}/out/")
    assert {p.name for p in (tmp_path / "elsewhere").iterdir()} >= {"model.safetensors"}
    assert not list(tmp_path.glob(".*"))


def test_another_folder_on_the_way(tmp_path):
    """Paths are those of the start, wherever the process goes."""
    models.as_folder(tmp_path / "model", models.draw(0))
    recipe = {"method": "linear", "models": ["model"]}
    before = os.getcwd()
    os.chdir(tmp_path)
    try:
        st.merge.run(recipe, "out", progress=lambda done, total: os.chdir("/"))
    finally:
        os.chdir(before)
    assert {p.name for p in (tmp_path / "out").iterdir()} == {
        "model.safetensors", "config.json", "tokenizer.json",
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["folder", "link", "journal"])
def test_what_is_no_stage_is_left_alone(tmp_path, recipe, kind):
    other = tmp_path / "precious"
    other.mkdir()
    (other / "thesis.txt").write_text("x")
    if kind == "folder":
        other.rename(stage(tmp_path))
        other = stage(tmp_path)
    elif kind == "link":
        (other / "thesis.txt").rename(other / "result")
        stage(tmp_path).symlink_to(other)
    else:
        stage(tmp_path).mkdir()
        (stage(tmp_path) / "journal.jsonl").symlink_to(other / "thesis.txt")
    with pytest.raises((ValueError, OSError), match="run: the result is made in"):
        st.merge.run(recipe, tmp_path / "out")
    assert [p.read_text() for p in other.iterdir() if p.name != "journal.jsonl"] == ["x"]
    assert not (tmp_path / "out").exists()


def test_a_name_that_is_too_long(tmp_path, recipe):
    with pytest.raises(OSError, match=r"run: the result is made in .*File name too long"):
        st.merge.run(recipe, tmp_path / ("n" * 250))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
def test_a_folder_that_cannot_be_written(tmp_path, recipe):
    (tmp_path / "fixed").mkdir(mode=0o500)
    with pytest.raises(OSError, match=r"run: the result is made in .*Permission denied"):
        st.merge.run(recipe, tmp_path / "fixed" / "out")


def test_a_file_that_appears_meanwhile(tmp_path, recipe):
    out = tmp_path / "out"
    with pytest.raises(FileExistsError, match=r"run: there is a file at .*; what is done is kept"):
        st.merge.run(recipe, out, progress=lambda *x: out.write_text("mine"))
    assert out.read_text() == "mine"
    out.unlink()
    assert st.merge.run(recipe, out).resumed > 0


def test_a_run_that_ends_while_another_begins(tmp_path, recipe, monkeypatch):
    """The other has opened the journal, which then is nobody's."""
    take_over = running.system.take_over

    def late(file):
        shutil.rmtree(stage(tmp_path))
        return take_over(file)

    monkeypatch.setattr(running.system, "take_over", late)
    with pytest.raises(ValueError, match="another process has just merged to"):
        st.merge.run(recipe, tmp_path / "out")


STORM = """
import json, sys
import stretto as st
try:
    st.merge.run(json.loads(sys.argv[1]), sys.argv[2])
except ValueError as error:
    print(error)
    sys.exit(3)
"""


def test_many_at_once(tmp_path, recipe):
    """One makes it, and the others are told."""
    st.merge.run(recipe, tmp_path / "whole")
    arguments = [sys.executable, "-c", STORM, json.dumps(recipe), str(tmp_path / "out")]
    runs = [subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    words = [run.communicate()[0] for run in runs]
    codes = sorted(run.returncode for run in runs)
    assert codes == [0, 3, 3, 3], words
    assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes()
    assert not stage(tmp_path).exists()


# Checkpoints


def both(tmp_path, first, second):
    paths = [tmp_path / f"{name}.safetensors" for name in "ab"]
    for path, tensors in zip(paths, (first, second), strict=True):
        models.save_file(tensors, path)
    return {"method": "linear", "models": paths}


def test_no_tensors(tmp_path):
    report = st.merge.run(both(tmp_path, {}, {}), tmp_path / "out")
    assert (report.tensors, report.nbytes) == (0, 0)
    assert models.read(tmp_path / "out") == {}


@pytest.mark.parametrize("method", ["linear", "ties", "della", "slerp", "model_stock"])
def test_tensors_of_no_elements_and_of_one(tmp_path, method):
    shapes = {"none": (0, 3), "nothing": (0,), "deep": (2, 0, 4), "one": (), "row": (1, 1)}
    first = {n: np.full(s, 2, np.float32) for n, s in shapes.items()}
    second = {n: np.full(s, 4, np.float32) for n, s in shapes.items()}
    recipe = both(tmp_path, first, second) | {"method": method}
    if method != "linear":
        recipe["base"] = recipe["models"].pop(0)
        recipe["parameters"] = {
            "ties": {"weight": 1.0}, "slerp": {"t": 1.0}, "model_stock": {},
            "della": {"weight": 1.0, "density": 1.0, "epsilon": 0.0},
        }[method]  # fmt: skip
        if method == "model_stock":
            recipe["models"] *= 2
    st.merge.run(recipe, tmp_path / "out")
    found = models.read(tmp_path / "out")
    assert {n: x.shape for n, x in found.items()} == shapes
    assert float(found["one"]) == (3 if method == "linear" else 4)


NAMES = ["a/b.weight", "../../escape", "größe.重み", "n" * 5000, "with space", "a\nb", '"', "."]


def test_names_of_all_kinds(tmp_path):
    first = {n: np.full(3, 1 + i, np.float32) for i, n in enumerate(NAMES)}
    second = {n: np.full(3, 3 + i, np.float32) for i, n in reversed([*enumerate(NAMES)])}
    st.merge.run(both(tmp_path, first, second), tmp_path / "out", shard_size=20)
    found = st.merge.Checkpoint(tmp_path / "out")
    assert {n: float(x[0]) for n, x in found.items()} == {n: 2 + i for i, n in enumerate(NAMES)}
    assert all(p.is_file() for p in (tmp_path / "out").iterdir())
    assert not (tmp_path.parent.parent / "escape").exists()


def test_many_small_tensors_and_a_large_one(tmp_path, monkeypatch):
    monkeypatch.setattr(running, "_SMALL", 1000)
    sizes = [*[3] * 200, 20_000, *[5] * 200]
    first, second = (
        {f"t{i}": np.full(n, v + i, np.float32) for i, n in enumerate(sizes)} for v in (0, 2)
    )
    st.merge.run(both(tmp_path, first, second), tmp_path / "out")
    for name, x in models.read(tmp_path / "out").items():
        np.testing.assert_array_equal(x, first[name] + 1)


# Processors


NARROW = """
import hashlib, json, sys
import stretto as st
st.config.disk_cache = False
for name, recipe in json.loads(sys.argv[1]).items():
    report = st.merge.run(recipe, sys.argv[2] + name)
    print(name, *report.files.values())
"""


def recipes(paths, weights, folder):
    """A recipe of each method, by its name, but of those that LAPACK takes matrices apart for."""
    found = {}
    settings = {
        "weight": [0.3, 0.5], "density": [0.4, 0.7], "t": 0.3, "gamma": 0.05, "epsilon": 0.1,
        "select_topk": 0.4,
    }  # fmt: skip
    for name, how in models.own_methods().items():
        most = None if how.most is None else how.most - (how.base == "first")
        if how.matrix is not None:
            continue
        names = ("a", "b")[:most]
        listed = models.with_beside(
            name, [paths[n] for n in names], [weights[n] for n in names], folder
        )
        known = {s.name: s for s in how.settings}
        shared = {}
        for key, value in settings.items():
            if key in known and known[key].each:
                for model, own in zip(listed, value if isinstance(value, list) else [value] * 2,
                                      strict=False):  # fmt: skip
                    model[key] = own
            elif key in known:
                shared[key] = value[0] if isinstance(value, list) else value
        found[name] = {"method": name, "models": listed, "parameters": shared}
        if how.base in ("needed", "first"):
            found[name]["base"] = paths["base"]
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="the flag is of other processors")
def test_the_same_bytes_without_the_widest_registers(tmp_path):
    paths, weights = models.family(tmp_path, "a", "b")
    asked = json.dumps(recipes(paths, weights, tmp_path))
    said = []
    for isa in ("AVX512", "AVX2", "SSE4_2"):
        environment = os.environ | {"XLA_FLAGS": f"--xla_cpu_max_isa={isa}"}
        (tmp_path / isa).mkdir()
        done = subprocess.run(
            [sys.executable, "-c", NARROW, asked, f"{tmp_path}/{isa}/"],
            check=False, capture_output=True, text=True, env=environment,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        said.append(dict(line.split() for line in done.stdout.splitlines()))
    assert len(said[0]) > 15
    assert said[1] == said[0]
    assert said[2] == said[0]
