"""``stretto run`` and ``stretto export``: results in files, and what is wrong in one line."""

import re
from pathlib import Path

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import cli
from stretto.export import commands
from tests.export.exchange import FILES


def two(d, k):
    return {"sum": d["a"] + d["b"], "k": (k,)}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with artifacts and arrays."""
    monkeypatch.chdir(tmp_path)
    net = st.nn.Linear(4, 2)

    def linear(x):
        return net(x)

    st.export.program(linear, snp.ones((3, 4)), dynamic_axes=({0: "n"},)).save("net")
    pair = {"a": snp.ones(3), "b": snp.ones(3)}
    st.export.program(two, pair, snp.ones(3, "int32")).save("two")
    np.save("x.npy", np.ones((5, 4)))
    np.save("k.npy", np.arange(3))
    np.savez("pair.npz", **{"d['a']": np.ones(3), "d['b']": np.full(3, 2.0)})
    return net


def wrong(capsys, *argv):
    """The line on standard error, of a command that fails."""
    assert cli.main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r"stretto (run|export): [^\n]+\n", err)
    return err


def test_one_array_in_and_out(here):
    assert cli.main(["run", "net", "--input", "x.npy", "--output", "y.npy"]) == 0
    np.testing.assert_allclose(np.load("y.npy"), here(snp.ones((5, 4))), rtol=1e-6)


def test_several_by_name(here):
    argv = ["--input", "k=k.npy", "--input", "pair.npz", "--output", "out.npz"]
    assert cli.main(["run", "two", *argv]) == 0
    made = dict(np.load("out.npz"))
    np.testing.assert_array_equal(made["sum"], np.full(3, 3, np.float32))
    assert made["k[0]"].dtype == np.int32


def test_results_are_printed(here, capsys):
    assert cli.main(["run", "net", "--input", "x.npy"]) == 0
    assert capsys.readouterr().out.startswith("out: float32[5, 2]\n[[")


def test_wide_types(here):
    with st.enable_x64():
        st.export.program(lambda x: x * 2, np.ones(2)).save("wide")
    np.save("w.npy", np.array([1.0, 1e-300]))
    assert cli.main(["run", "wide", "--input", "w.npy", "--output", "w.npz"]) == 0
    np.testing.assert_array_equal(np.load("w.npz")["out"], [2.0, 2e-300])


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["nothing", "--input", "x.npy"], "No such file or directory: 'nothing'"),
        (["net"], "the inputs x are missing: add --input NAME=FILE"),
        (["net", "--input", "k.npy"], r"x must be float32\[n,4\], got int64\[3\]"),
        (["net", "--input", "x.npy", "--input", "x.npy"], "there is no input left for it"),
        (["net", "--input", "y=x.npy"], "y=x.npy: there is no input y for it; the model has x"),
        (["net", "--input", "x=x.npy", "--input", "x=x.npy"], "the input x is there already"),
        (["net", "--input", "x=pair.npz"], "a .npz file has names of its own"),
        (["net", "--input", "pair.npz"], r"no input d\['a'\] for it; the model has x"),
        (["net", "--input", "x.npy", "--output", "y.txt"], r"ends in .npz or .npy"),
        (
            ["two", "--input", "k=k.npy", "--input", "pair.npz", "--output", "y.npy"],
            r"gives k\[0\], sum: name",
        ),
        (["x.npy", "--input", "x.npy"], r"export.load: x.npy: it is neither an artifact, as Art"),
        (["net", "--input", "net"], "load: net: expected numbers in NumPy's format"),
        (["net", "--input", "big.npy"], "k: it has integers that do not fit in int32"),
        (["net", "--input", "objects.npy"], "holds pickled objects, which are not read"),
    ],
)
def test_what_is_wrong(here, capsys, argv, words):
    np.save("big.npy", np.full(3, 2**40))
    np.save("objects.npy", np.array([{}]), allow_pickle=True)
    if "big.npy" in argv:
        argv = ["two", "--input", "pair.npz", "--input", "k=big.npy"]
    assert re.search(words, wrong(capsys, "run", *argv))


def test_a_header_that_asks_for_much_memory(here, capsys):
    """It says that there are 2^60 numbers, and there are three."""
    header = {"descr": "<f4", "fortran_order": False, "shape": (1 << 60,)}
    with open("huge.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        file.write(b"abc")
    assert "huge.npy" in wrong(capsys, "run", "net", "--input", "huge.npy")


def test_stablehlo(here, capsys):
    """Of ours, and of real JAX's, whose arguments have no names but by place or keyword."""
    st.export.stablehlo(here, snp.ones((3, 4)), dynamic_axes=({0: "n"},)).save("net.jax")
    assert cli.main(["run", "net.jax", "--input", "x.npy", "--output", "y.npy"]) == 0
    np.testing.assert_allclose(np.load("y.npy"), here(snp.ones((5, 4))), rtol=1e-6)
    np.save("two.npy", np.array([1, 2], np.float32))
    inputs = ["--input", "kwargs['y']=two.npy", "--input", "two.npy"]
    assert cli.main(["run", str(FILES / "by_name.jax"), *inputs]) == 0
    assert capsys.readouterr().out == "out: float32[2]\n[1. 4.]\n"
    argv = ["run", "net.jax", "--input", "two.npy"]
    assert "must have 2 axes, (n, 4), got (2,)" in wrong(capsys, *argv)
    assert "net.jax is a module of StableHLO" in wrong(capsys, "export", "net.jax", "a.onnx")


def test_an_onnx_model_needs_onnxruntime(here, capsys, monkeypatch):
    monkeypatch.setattr(commands.util, "find_spec", lambda name: None)
    line = wrong(capsys, "run", "net.onnx", "--input", "x.npy")
    assert "which onnxruntime runs: pip install onnxruntime; or run the artifact" in line


def test_export_to_onnx(here, capsys):
    pytest.importorskip("onnx")
    assert cli.main(["export", "net", "net.onnx"]) == 0
    if not commands.util.find_spec("onnxruntime"):
        return
    assert cli.main(["run", "net.onnx", "--input", "x.npy", "--output", "y.npy"]) == 0
    np.testing.assert_allclose(np.load("y.npy"), here(snp.ones((5, 4))), rtol=1e-6)
    for name, words in (
        ("k.npy", "x must be float32[n,4], got int64[3]"),
        ("narrow.npy", "x must be float32[n,4], got float32[5,3]"),
        ("complex.npy", "x must be float32[n,4], got complex64[5,4]"),
    ):
        np.save("narrow.npy", np.ones((5, 3)))
        np.save("complex.npy", np.ones((5, 4), "complex64"))
        assert words in wrong(capsys, "run", "net.onnx", "--input", name)
    Path("bad.onnx").write_bytes(b"bad")
    assert "bad.onnx: onnxruntime cannot" in wrong(capsys, "run", "bad.onnx", "--input", "x.npy")


def test_a_model_that_fails_as_it_runs_says_so_in_one_line(here, capsys):
    pytest.importorskip("onnxruntime")
    add = lambda a, b: a + b
    st.export.onnx(add, snp.ones(2), snp.ones(2), dynamic_axes=({0: "n"}, {0: "n"}), path="a.onnx")
    np.save("two.npy", np.ones(2))
    argv = ["run", "a.onnx", "--input", "two.npy", "--input", "three.npy"]
    np.save("three.npy", np.ones(3))
    assert "onnxruntime: " in wrong(capsys, *argv)


def test_an_input_that_numpy_has_no_arrays_for(here, capsys):
    pytest.importorskip("onnxruntime")
    st.export.onnx(lambda x: x * 2, snp.ones(3, "bfloat16"), path="narrow.onnx")
    line = wrong(capsys, "run", "narrow.onnx", "--input", "x.npy")
    assert "narrow.onnx: its input x is tensor(bfloat16), which onnxruntime takes no" in line
    st.export.program(lambda x: x * 2, snp.ones(3, "bfloat16")).save("narrow")
    snp.save("narrow.npy", snp.ones(3, "bfloat16"))
    assert cli.main(["run", "narrow", "--input", "narrow.npy"]) == 0


def test_what_cannot_be_exported(here, capsys):
    st.save("arrays", here)
    st.Ensemble([here, here]).save("ensemble")
    assert "it holds arrays, and no program" in wrong(capsys, "export", "arrays", "a.onnx")
    assert "by Ensemble.load" in wrong(capsys, "export", "ensemble", "a.onnx")
    assert "OUT must end in .onnx, got a.pb" in wrong(capsys, "export", "net", "a.pb")


def test_wrong_arguments(capsys):
    assert cli.main(["run"]) == 2
    assert "required: model" in capsys.readouterr().err
    assert cli.main(["export", "a", "b.onnx", "--opset", "x"]) == 2
    assert "expected a number" in capsys.readouterr().err
