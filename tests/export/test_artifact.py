"""Artifacts: what they compute, loaded and not, and where the user's code is not there."""

import collections
import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.core.errors import ExportError, SizeError
from stretto.export import written_programs
from stretto.export.artifact import ENTRY, FORMAT
from stretto.files.load_files import load_header
from stretto.files.names import Damaged
from stretto.files.save_files import write
from tests.export.artifacts import again

State = collections.namedtuple("State", "mean count")
HERE = Path(__file__).parent


@st.tree.register_dataclass
@dataclasses.dataclass
class Point:
    x: object
    y: object


def network():
    with st.nn.keys(st.random.key(0)):
        return st.nn.Sequential(st.nn.Linear(8, 16), st.nn.GELU(), st.nn.LayerNorm(16))


def numbers(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def close(got, want):
    """Equal up to the order in which compiled sums are taken."""
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


def test_a_network(tmp_path):
    """Values, derivatives by the input and by the weights, and vmap are those of the module."""
    model, x = network(), numbers(3, 8)
    loaded = again(st.export.program(model, x), tmp_path)
    close(loaded(x), model(x))
    total = lambda m, x: snp.mean(m(x) * snp.arange(16.0))
    close(st.grad(total, 1)(loaded, x), st.grad(total, 1)(model, x))
    slopes, own = st.grad(total)(loaded, x), st.grad(total)(model, x)
    assert list(slopes.weights) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    for got, want in zip(slopes.weights.values(), st.tree.leaves(own), strict=True):
        close(got, want)
    close(st.vmap(loaded)(np.stack([x, x + 1])), st.vmap(model)(np.stack([x, x + 1])))
    close(st.jit(loaded)(x), model(x))


def test_weights_have_their_names_for_other_readers(tmp_path):
    st.export.program(network(), numbers(3, 8)).save(tmp_path / "a")
    assert {"0.weight", "0.bias", "2.weight", "2.bias"} <= st.load(tmp_path / "a").keys()


@pytest.mark.parametrize("n", [1, 2, 5, 16, 100])
def test_any_size(tmp_path, n):
    model = network()
    loaded = again(st.export.program(model, numbers(3, 8), dynamic_axes=({0: "n"},)), tmp_path)
    x = numbers(n, 8)
    close(loaded(x), model(x))
    total = lambda m, x: snp.mean(m(x) * snp.arange(16.0))
    close(st.grad(total, 1)(loaded, x), st.grad(total, 1)(model, x))
    close(st.jit(loaded, dynamic_axes=({0: "k"},))(x), model(x))
    close(st.vmap(loaded)(x[None]), model(x)[None])


def test_sizes_of_several_arguments(tmp_path):
    def f(x, w, y):
        return x @ w + y.sum(), x.shape[0] * 2

    axes = ({0: "n", 1: "m"}, {0: "m"}, {0: st.dynamic_size("n") + 1})
    artifact = st.export.program(f, numbers(3, 4), numbers(4, 2), numbers(4), dynamic_axes=axes)
    loaded = again(artifact, tmp_path)
    for n, m in ((1, 1), (7, 5)):
        args = numbers(n, m), numbers(m, 2), numbers(n + 1)
        close(loaded(*args)[0], f(*args)[0])
        assert int(loaded(*args)[1]) == 2 * n
    with pytest.raises(TypeError, match=r"axis 0 of w has size 4, and must have m = 5"):
        loaded(numbers(2, 5), numbers(4, 2), numbers(3))
    with pytest.raises(TypeError, match=r"axis 0 of y has size 2, and must have n\+1 = 3"):
        loaded(numbers(2, 5), numbers(5, 2), numbers(2))


def test_sizes_that_a_trace_asked_for_are_checked(tmp_path):
    """The function takes another way for arrays of eight elements and more."""
    n = st.dynamic_size("n", least=2, most=20)
    artifact = st.export.program(lambda x: snp.sum(x[:8]), numbers(10), dynamic_axes=({0: n},))
    loaded = again(artifact, tmp_path)
    for size in (2, 10, 20):
        close(loaded(numbers(size)), numbers(size)[:8].sum())
    with pytest.raises(SizeError, match=r"n is 21, and must be at least 2 and at most 20"):
        loaded(numbers(21))
    with pytest.raises(SizeError, match="n is 1, and must be at least 2"):
        loaded(numbers(1))


def test_examples_of_different_sizes(tmp_path):
    """Inside of a function of ragged arrays, the program has their sizes in place of its own."""
    f = lambda x: snp.cumsum(x)[::2].sum() / x.shape[0]
    loaded = again(st.export.program(f, numbers(5), dynamic_axes=({0: "n"},)), tmp_path)
    ragged = st.ragged([numbers(2), numbers(3), numbers(7)])
    close(st.vmap(loaded)(ragged), st.vmap(f)(ragged))
    got, want = st.vmap(st.grad(loaded))(ragged), st.vmap(st.grad(f))(ragged)
    for x, y in zip(st.tree.leaves(got), st.tree.leaves(want), strict=True):
        close(x, y)


def test_guards_are_in_the_file(tmp_path):
    artifact = st.export.program(
        lambda x: lax.slice(x, (2,), (5,)), numbers(10), dynamic_axes=({0: "n"},)
    )
    loaded = again(artifact, tmp_path)
    assert loaded._contents.guards == artifact._contents.guards != ()
    close(loaded(numbers(5)), numbers(5)[2:])
    with pytest.raises(SizeError, match=r"was traced for sizes of which .* export it with an ex"):
        loaded(numbers(4))


def test_an_lstm(tmp_path):
    model, x = st.nn.LSTM(5, 7, batch_first=True), numbers(2, 6, 5)
    loaded = again(st.export.program(model, x), tmp_path)
    for got, want in zip(st.tree.leaves(loaded(x)), st.tree.leaves(model(x)), strict=True):
        close(got, want)
    total = lambda m: lambda x: snp.sum(m(x)[0] ** 2)
    close(st.grad(total(loaded))(x), st.grad(total(model))(x))


def test_a_training_step_with_adam(tmp_path):
    """The new state comes as dictionaries by name, which the next step takes."""
    model, optimizer = network(), st.optim.adam(1e-2)
    x, y = numbers(3, 8), np.array([0, 1, 2])

    def step(model, state, x, y):
        loss, slopes = st.value_and_grad(lambda m: st.nn.functional.cross_entropy(m(x), y))(model)
        updates, state = optimizer.update(slopes, state, model)
        return st.optim.apply_updates(model, updates), state, loss

    state = optimizer.init(model)
    loaded = again(st.export.program(step, model, state, x, y), tmp_path)
    own, theirs = (model, state), (model, state)
    for _ in range(3):
        *own, loss = st.jit(step)(*own, x, y)
        *theirs, same = loaded(*theirs, x, y)
        close(same, loss)
    assert theirs[1][0].keys() == {"count", "mu", "nu"}
    close(theirs[0]["0"]["weight"], own[0][0].weight)


def test_an_ensemble(tmp_path):
    ensemble, x = st.Ensemble([st.nn.Linear(8, 4) for _ in range(3)]), numbers(5, 8)
    loaded = again(st.export.program(ensemble, x), tmp_path)
    close(loaded(x), ensemble(x))


def test_branches_loops_and_constants(tmp_path):
    table = snp.array(np.arange(6.0).reshape(3, 2))

    def f(x, n):
        y = lax.cond(n > 0, snp.sin, snp.cos, x)
        y = lax.while_loop(lambda c: c.sum() < 10, lambda c: c * 2 + 1, y)
        return lax.fori_loop(0, 3, lambda i, c: c + table[i], y)

    loaded = again(st.export.program(f, numbers(2), 1), tmp_path)
    for n in (-1, 1):
        close(loaded(numbers(2), n), f(numbers(2), n))


def test_random_numbers(tmp_path):
    f = lambda key: st.random.normal(key, (3,))
    key = st.random.key(7)
    np.testing.assert_array_equal(again(st.export.program(f, key), tmp_path)(key), f(key))


@pytest.mark.parametrize("name", ["bfloat16", "float16", "int8", "bool", "complex64", "int4"])
def test_dtypes_of_arguments_weights_and_results(tmp_path, name):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    table = np.array([0, 1, 1]).astype(dtype)
    held = snp.array(table)
    loaded = again(st.export.program(lambda x: (x[::-1], held[1:]), table), tmp_path)
    back, part = loaded(table)
    assert back.dtype == part.dtype == dtype
    np.testing.assert_array_equal(back, table[::-1])
    np.testing.assert_array_equal(part, table[1:])


def test_wide_types_need_their_setting(tmp_path):
    with st.enable_x64():
        artifact = st.export.program(lambda x: x * 2, np.ones(2))
        loaded = again(artifact, tmp_path)
        assert loaded(np.ones(2)).dtype == np.float64
    with pytest.raises(TypeError, match=r"float64\[2\], got float32\[2\]: 64-bit types are off"):
        loaded(np.ones(2))
    with pytest.raises(TypeError, match=r"^export.load: .*: it has 64-bit types, and these are"):
        st.export.load(tmp_path / "artifact.stretto")


def test_weak_types(tmp_path):
    """A Python number is one, in the file as before; another may be given for it."""
    loaded = again(st.export.program(lambda x, y: x * y, 2.0, snp.ones(2, "bfloat16")), tmp_path)
    assert loaded(3, snp.ones(2, "bfloat16")).dtype == "bfloat16"
    assert loaded.inputs["x"].weak_type
    with pytest.raises(TypeError, match=r"x must be float32\[\], got complex64\[\]"):
        loaded(1j, snp.ones(2, "bfloat16"))


def test_trees_of_arguments_and_results(tmp_path):
    def f(state, points, options):
        return {"state": state, "p": [points[0], points[1].y], "n": None, 3: options["a"]}

    args = State(1.0, 2), (Point(3.0, 4.0), Point(5.0, 6.0)), {"a": 7, "b": None}
    loaded = again(st.export.program(f, *args), tmp_path)
    made = loaded(*args)
    assert made.keys() == {"state", "p", "n", 3}
    assert type(made["state"]) is dict
    assert {name: float(x) for name, x in made["state"].items()} == {"mean": 1, "count": 2}
    assert [float(x) for x in made["p"][0].values()] == [3, 4]
    plain = {"count": 2, "mean": 1.0}, ({"x": 3.0, "y": 4.0}, {"x": 5.0, "y": 6.0}), args[2]
    assert float(loaded(*plain)["state"]["mean"]) == 1
    with pytest.raises(TypeError, match=r"f: the arguments\[1\] must be a tuple of 2, got an arr"):
        loaded(args[0], 1.0, args[2])
    with pytest.raises(TypeError, match=r"f: the arguments must be \(state, .*\), by place; got 2"):
        loaded(*args[:2])


def test_arguments_are_checked():
    artifact = st.export.program(lambda x: x + 1, numbers(3))
    for wrong in (numbers(4), np.ones(3, np.int32), 1j):
        with pytest.raises(TypeError, match=r"x must be float32\[3\], got "):
            artifact(wrong)


def test_what_is_shown():
    artifact = st.export.program(network(), numbers(3, 8), dynamic_axes=({0: "n"},))
    text = repr(artifact)
    assert "float32[n,8]" in text
    assert "any size n" in text
    assert "weights of 704 bytes" in text
    assert artifact.outputs["out"].shape[1] == 16
    assert artifact.examples[0].shape == (3, 8)
    assert str(artifact.dynamic_axes) == "({0: n},)"
    assert st.export.program(snp.sin, 1.0).dynamic_axes is None


def test_an_artifact_exports_as_any_function():
    pytest.importorskip("onnx")
    artifact = st.export.program(network(), numbers(3, 8), dynamic_axes=({0: "n"},))
    model = st.export.onnx(artifact, *artifact.examples, dynamic_axes=artifact.dynamic_axes)
    assert [d.dim_param for d in model.graph.input[0].type.tensor_type.shape.dim] == ["n", ""]
    fixed = st.export.program(artifact, numbers(3, 8))
    close(fixed(numbers(3, 8)), artifact(numbers(3, 8)))


def test_an_artifact_needs_no_examples_to_be_exported():
    """Inputs have the names that they had, though the arguments would be dictionaries by now."""
    pytest.importorskip("onnx")
    axes = (None, {0: "n"})
    artifact = st.export.program(
        lambda p, x: {"y": p.x * x}, Point(snp.ones(3), 1.0), numbers(4, 3), dynamic_axes=axes
    )
    model = st.export.onnx(artifact)
    assert [i.name for i in model.graph.input] == ["p.x", "p.y", "x"]
    assert [o.name for o in model.graph.output] == ["y"]
    assert model.graph.input[2].type.tensor_type.shape.dim[0].dim_param == "n"


def test_a_program_that_no_reader_would_take_is_refused(monkeypatch):
    """Programs inside of each other, more than a file may have."""
    monkeypatch.setattr(written_programs, "_DEEPEST", 3)

    def nested(x, depth=4):
        return snp.sin(x) if not depth else st.jit(lambda x: nested(x, depth - 1))(x) + 1

    with pytest.raises(ExportError, match=r"no file can have this program: .*too deeply"):
        st.export.program(nested, 1.0)


def test_what_no_file_has_is_refused_at_once():
    with pytest.raises(ExportError, match=r"^export.program: pure_callback at .*test_artifact.py"):
        st.export.program(lambda x: st.pure_callback(np.sin, x, x), numbers(3))
    with pytest.raises(TypeError, match="expected a function or a module, got int"):
        st.export.program(1)
    with pytest.raises(ValueError, match="derivatives"):
        st.export.program(snp.sin, 1.0, derivatives=-1)


def test_a_result_that_is_an_argument(tmp_path):
    loaded = again(st.export.program(lambda x, y: (y, x, 1.0), numbers(2), 3), tmp_path)
    y, x, one = loaded(numbers(2), 3)
    assert (int(y), float(one)) == (3, 1.0)
    close(x, numbers(2))


# Another process


SAVE = """
import sys, numpy as np, stretto as st, stretto.numpy as snp
import users_model
artifact = st.export.program(users_model.Model(), snp.ones((4, 300)))
artifact.save(sys.argv[1])
print(np.asarray(artifact(snp.ones((4, 300)))).tobytes().hex())
"""

LOAD = """
import sys, numpy as np, stretto as st, stretto.numpy as snp
from stretto._engine.xla import cache, pjrt
compiled, compile_text = [], pjrt.compile_text
cache.compile_text = pjrt.compile_text = lambda text, *rest: (
    compiled.append(text), compile_text(text, *rest))[1]
loaded = st.export.load(sys.argv[1])
print(np.asarray(loaded(snp.ones((4, 300)))).tobytes().hex())
print(len(compiled))
try:
    import users_model
except ModuleNotFoundError:
    print("no module of the user's")
"""

MODEL = """
import stretto as st, stretto.numpy as snp
class Model(st.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = st.nn.Linear(300, 300)
    def forward(self, x):
        return snp.tanh(self.first(x)) @ snp.ones((300, 2))
"""


def in_process(code, *arguments, **environment):
    command = [sys.executable, "-c", code, *arguments]
    inherited = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    inherited["PYTHONPATH"] = str(Path(st.__file__).parents[1])
    done = subprocess.run(
        command, env={**inherited, **environment}, capture_output=True, text=True, check=True
    )
    return done.stdout.split("\n")[:-1]


def test_another_process_has_neither_the_code_nor_to_compile(tmp_path):
    """It finds in the disk cache what the process that saved the artifact has compiled."""
    path = str(tmp_path / "model.stretto")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "users_model.py").write_text(MODEL)
    own = {"STRETTO_CACHE_DIR": str(tmp_path / "cache"), "STRETTO_INTERPRET_SMALL": "0"}
    with_model = os.pathsep.join([str(Path(st.__file__).parents[1]), str(tmp_path / "code")])
    (saved,) = in_process(SAVE, path, PYTHONPATH=with_model, **own)
    bits, compiled, missing = in_process(LOAD, path, **own)
    assert (bits, compiled, missing) == (saved, "0", "no module of the user's")
    bits, compiled, _ = in_process(LOAD, path, **{**own, "STRETTO_DISK_CACHE": "0"})
    assert bits == saved
    assert int(compiled) > 0


# Files of other versions, and damaged ones


def test_files_of_the_first_format():
    """What the first version wrote; see ``first_format.py``."""
    loaded = st.export.load(HERE / "format_1.stretto")
    expected = json.loads((HERE / "format_1.json").read_text())
    x = snp.array(expected["x"], "float32")
    made = loaded({"x": x, "n": 1}, snp.ones((2, 5, 5, 1)))
    assert list(loaded.outputs) == expected["outputs"]
    for got, want in zip(st.tree.leaves(made), expected["values"], strict=True):
        np.testing.assert_allclose(np.asarray(got, np.float64), want, rtol=1e-5, atol=1e-6)
    slopes = st.grad(lambda x: made_sum(loaded, x))(x)
    np.testing.assert_allclose(slopes, expected["slopes"], rtol=1e-5, atol=1e-6)


def made_sum(loaded, x):
    return snp.sum(loaded({"x": x, "n": 1}, snp.ones((2, 5, 5, 1)))["y"])


def changed(tmp_path, **entries):
    """The path of a file with other entries."""
    path = tmp_path / "changed.stretto"
    model = st.nn.Linear(2, 3)
    st.export.program(model, numbers(4, 2), dynamic_axes=({0: "n"},)).save(path)
    record = json.loads(load_header(path).metadata[ENTRY])
    write(path, st.load(path), {ENTRY: json.dumps({**record, **entries})}, with_checksum=True)
    return path


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"reader": FORMAT + 1}, "in a format that this one, .*, does not know: install a later"),
        ({"reader": None}, "expected an integer"),
        ({"main": 7}, "expected an integer from 0 to"),
        ({"weights": ["weight"]}, "its array constant.0 is not in the file"),
        ({"weights": ["weight", "other"]}, "its weight other is not in the file"),
        ({"weights": ["weight", "weight"]}, "two weights have one name"),
        ({"weights": ["bias", "weight"]}, r"its weight bias is not float32\[3,2\]"),
        ({"inputs": []}, "not as many as their structures say"),
        ({"inputs": 3}, "it has no list of inputs"),
        ({"results": {"tuple": ["leaf", "leaf"]}}, "not as many as their structures say"),
        ({"arguments": {"tuple": ["leaf"] * 3}}, "not as many as their structures say"),
        ({"arguments": "leaf"}, "the arguments are no tuple"),
        ({"name": 3}, "expected text"),
        ({"sizes": []}, "a size of an argument is one that no axis has"),
        ({"sizes": [[0, 0]]}, "the example of the size n is 0"),
        ({"guards": [[[[1, [[0, 1]]]], 2, True]]}, "does not hold of its examples"),
        ({"variables": [["n", 5, 4]]}, "size 0 is damaged: expected an integer from 5"),
    ],
)  # fmt: skip
def test_damaged_files(tmp_path, entries, words):
    path = changed(tmp_path, **entries)
    with pytest.raises(Damaged, match=words) as caught:
        st.export.load(path)
    assert str(caught.value).startswith(f"export.load: {path}: ")


def test_an_operation_of_a_later_version(tmp_path):
    """The message says which version wrote the file."""
    path = changed(tmp_path, operations=[["later", {}]], stretto="99.1")
    with pytest.raises(
        Damaged, match=r"no operation 'later' .* \(Stretto '99.1' wrote it; this is"
    ):
        st.export.load(path)


def test_other_files(tmp_path):
    path = tmp_path / "file"
    st.save(path, {"w": snp.ones(2)})
    with pytest.raises(Damaged, match=r"it holds arrays, and no program: .*stretto.export.program"):
        st.export.load(path)
    st.Ensemble([st.nn.Linear(2, 2)] * 2).save(path)
    with pytest.raises(Damaged, match=r"load them into an ensemble, by Ensemble.load"):
        st.export.load(path)
    with pytest.raises(FileNotFoundError):
        st.export.load(tmp_path / "nothing")
    for text in ("{", "[]", "[" * 100_000, "7"):
        write(path, {}, {ENTRY: text}, with_checksum=True)
        with pytest.raises(Damaged, match="its program is no JSON"):
            st.export.load(path)


def test_changed_and_truncated_bytes(tmp_path):
    """Whatever byte is another one, the checksum is, too."""
    path = tmp_path / "file"
    st.export.program(network(), numbers(3, 8)).save(path)
    whole = path.read_bytes()
    for place in range(0, len(whole), len(whole) // 40):
        path.write_bytes(whole[:place])
        with pytest.raises(Damaged, match=f"^export.load: {path}: "):
            st.export.load(path)
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(Damaged, match=f"^export.load: {path}: "):
            st.export.load(path)
