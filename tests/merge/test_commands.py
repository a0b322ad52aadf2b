"""``stretto merge``: recipes, methods and models from a shell."""

import json
from pathlib import Path

import numpy as np
import pytest

from stretto import cli
from tests.merge import models


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a base, two models, and a recipe."""
    monkeypatch.chdir(tmp_path)
    _, weights = models.family(tmp_path, "a", "b")
    (tmp_path / "r.toml").write_text(
        'method = "linear"\n'
        '[[models]]\npath = "a.safetensors"\n[[models]]\npath = "b.safetensors"\n'
    )
    return weights


def run(capsys, *argv):
    """The output of a command that succeeds."""
    assert cli.main(["merge", *argv]) == 0
    return capsys.readouterr().out


def wrong(capsys, *argv):
    """What is on standard error, of a command that fails."""
    assert cli.main(["merge", *argv]) == 2
    out, err = capsys.readouterr()
    assert not out
    return err


MODELS = ("a.safetensors", "b.safetensors")


def test_a_recipe(here, tmp_path, capsys):
    assert "15 tensors, " in run(capsys, "r.toml", "out.safetensors", "--verify")
    found = models.read("out.safetensors")
    for name, x in found.items():
        mean = (here["a"][name].astype(float) + here["b"][name]) / 2
        np.testing.assert_allclose(x, mean, 1e-6)


def test_a_method(here, capsys):
    argv = ["--method", "linear", *MODELS, "--set", "weight=[3, 1]", "--out", "out"]
    said = json.loads(run(capsys, *argv, "--out-dtype", "float16", "--json"))
    assert said["tensors"] == 15
    for name, x in models.read("out").items():
        assert x.dtype == np.float16
        mean = 0.75 * here["a"][name].astype(float) + 0.25 * here["b"][name]
        np.testing.assert_allclose(x, mean, 1e-3, 1e-6)


def test_a_method_with_a_base_and_settings(here, capsys):
    argv = ["--method", "ties", "--base", "base.safetensors", *MODELS, "--set", "weight=0.5"]
    argv += ["--set", "density=0.5", "--set", "lambda=0"]
    run(capsys, *argv, "--out", "out")
    for name, x in models.read("out").items():
        np.testing.assert_array_equal(x, here["base"][name])


def test_a_place_and_numbers_may_be_written_in_other_ways(here, capsys):
    run(capsys, "r.toml", "--out", "first")
    argv = ["--method", "linear", *MODELS]
    run(capsys, *argv, "--set", "weight=1,1", "--out", "second")
    assert Path("first").read_bytes() == Path("second").read_bytes()
    run(capsys, *argv, "--set", "weight=[1,3]", "--out", "third")
    run(capsys, *argv, "--set", "weight=1,3", "--out", "fourth")
    assert Path("third").read_bytes() == Path("fourth").read_bytes()
    assert Path("first").read_bytes() != Path("fourth").read_bytes()


def test_the_help_names_all_methods():
    assert set(cli.MERGING.split(", ")) == set(models.own_methods())


def test_what_would_be_done(here, tmp_path, capsys):
    assert "linear: 15 tensors merged" in run(capsys, "r.toml", "--dry-run")
    assert "linear: 15 tensors merged" in run(capsys, "r.toml", "out", "--dry-run")
    argv = ("--method", "linear", *MODELS, "--dry-run", "--json", "--shard-size", "9KB")
    said = json.loads(run(capsys, *argv))
    assert said["tensors"]["lm_head.weight"]["settings"] == {
        "weight": [1.0, 1.0],
        "normalize": True,
    }
    assert said["tensors"]["lm_head.weight"]["from"][1] == "lm_head.weight of b.safetensors"
    assert len(said["files"]) > 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "argv, words",
    [
        (["r.toml"], "expected RECIPE OUT"),
        (["r.toml", "x", "y"], "expected RECIPE OUT"),
        (["r.toml", "x", "--out", "x"], "expected RECIPE OUT"),
        (["r.toml", "x", "--set", "weight=1"], "--set goes with --method: write it into the rec"),
        (["no.toml", "out"], "No such file"),
        (["--method", "linear", *MODELS], "expected --out OUT"),
        (["--method", "lin", *MODELS, "--out", "x"], "method 'lin' is unknown"),
        (["--method", "linear", *MODELS, "--set", "weight", "--out", "x"], "expected NAME=NUMBER"),
        (["--method", "linear", *MODELS, "--set", "weight=[1]", "--out", "x"],
         "expected one weight, or one for each of 2 models, got 1"),
        (["r.toml", "out", "--memory", "much"], "memory must be bytes"),
    ],
)  # fmt: skip
def test_what_is_wrong(here, capsys, argv, words):
    assert words in wrong(capsys, *argv)


def test_what_is_not_finite(here, capsys):
    strange = models.read("a.safetensors")
    strange["model.norm.weight"][0] = np.nan
    models.save_file(strange, "a.safetensors")
    assert "1 of 24 elements of model.norm.weight are NaN" in wrong(capsys, "r.toml", "out")
    run(capsys, "r.toml", "out", "--keep-nonfinite", "--restart")


def test_an_adapter(here, tmp_path, capsys):
    argv = ["--extract-lora", "2", "--base", "base.safetensors", "a.safetensors"]
    text = run(capsys, *argv, "--out", "lora")
    assert "lora: 8 layers; at most 89.6% of a difference is lacking, in model.layers." in text
    assert "not in it, though they differ: " in text
    said = json.loads(run(capsys, *argv, "--out", "lora2", "--out-dtype", "float16", "--json"))
    assert len(said["errors"]) == 8
    assert {x.dtype for x in models.read("lora2/adapter_model.safetensors").values()} == {
        np.dtype(np.float16)
    }
    assert "expected --extract-lora RANK --base BASE MODEL --out OUT" in wrong(capsys, *argv)


def test_files_beside_the_models(here, tmp_path, capsys):
    listed = models.with_beside("fisher", MODELS, [here["a"], here["b"]], tmp_path)
    fishers = [m["fisher"] for m in listed]
    argv = ["--method", "fisher", *MODELS, "--set", f"fisher={json.dumps(fishers)}"]
    run(capsys, *argv, "--out", "out")
    f, g = (models.read(path) for path in fishers)
    for name, x in models.read("out").items():
        mean = (f[name] * here["a"][name] + g[name] * here["b"][name]) / (f[name] + g[name])
        np.testing.assert_allclose(x, mean, 1e-4, 1e-5)
    assert "expected one fisher, or one for each of 2 models, got 1" in wrong(
        capsys, *argv[:-1], 'fisher=["x"]', "--out", "out2"
    )
