"""Adapters that are extracted: the nearest of their rank, as recipes and PEFT read them."""

import json
import os
import signal
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import stretto as st
from tests.interruptions import interrupted, lines_of
from tests.merge import models

QUERIES = [f"model.layers.{i}.self_attn.q_proj" for i in range(models.LAYERS)]
UPS = [f"model.layers.{i}.mlp.up_proj" for i in range(models.LAYERS)]


def settings(folder):
    return json.loads((folder / "adapter_config.json").read_text())


def applied(folder, base, adapter):
    """The base with the adapter, by name."""
    recipe = {"method": "passthrough", "models": [{"path": base, "adapter": str(adapter)}]}
    st.merge.run(recipe, folder / "applied.safetensors")
    return models.read(folder / "applied.safetensors")


def test_the_nearest_of_a_rank(tmp_path):
    paths, weights = models.family(tmp_path, "a")
    found = st.merge.extract_lora(paths["a"], paths["base"], tmp_path / "lora", 5)
    assert sorted(found.errors) == sorted(QUERIES + UPS)
    assert found.path == str(tmp_path / "lora")
    norms = [f"model.layers.{i}.input_layernorm.weight" for i in range(models.LAYERS)]
    assert sorted(found.left) == sorted(
        [*norms, "lm_head.weight", "model.embed_tokens.weight", "model.norm.weight"]
    )
    for name, x in applied(tmp_path, paths["base"], tmp_path / "lora").items():
        base, tuned = (weights[n][name].astype(np.float64) for n in ("base", "a"))
        if name in found.left:
            np.testing.assert_array_equal(x, weights["base"][name])
            continue
        u, s, v = np.linalg.svd(tuned - base, full_matrices=False)
        np.testing.assert_allclose(x, base + u[:, :5] * s[:5] @ v[:5], 2e-6, 2e-6)
        lacking = np.linalg.norm(s[5:]) / np.linalg.norm(s)
        assert abs(found.errors[name.removesuffix(".weight")] - lacking) < 1e-6
    said = settings(tmp_path / "lora")
    assert said["target_modules"] == ["q_proj", "up_proj"]
    assert (said["r"], said["lora_alpha"], said["rank_pattern"]) == (5, 5, {})
    assert said["base_model_name_or_path"] == paths["base"]
    assert sorted(os.listdir(tmp_path / "lora")) == [
        "adapter_config.json", "adapter_model.safetensors"
    ]  # fmt: skip
    assert not list(tmp_path.glob(".*"))


def test_layers_that_are_chosen_or_changed(tmp_path):
    paths, weights = models.family(tmp_path, "a")
    changed = dict(weights["base"])
    for module in (QUERIES[1], UPS[0], UPS[2]):
        changed[f"{module}.weight"] = weights["a"][f"{module}.weight"]
    models.save_file(changed, tmp_path / "some.safetensors")
    some = tmp_path / "some.safetensors"
    found = st.merge.extract_lora(some, paths["base"], tmp_path / "1", 30)
    assert sorted(found.errors) == sorted([QUERIES[1], UPS[0], UPS[2]])
    said = settings(tmp_path / "1")
    assert said["target_modules"] == sorted([QUERIES[1], UPS[0], UPS[2]])
    ranks = dict.fromkeys([QUERIES[1], UPS[0], UPS[2]], 24)  # all that the matrices have
    assert said["rank_pattern"] == said["alpha_pattern"] == ranks
    for name, x in applied(tmp_path, paths["base"], tmp_path / "1").items():
        np.testing.assert_allclose(x, changed[name], 2e-6, 2e-6)
    chosen = st.merge.extract_lora(some, paths["base"], tmp_path / "2", 2, modules=["*.up_proj"])
    assert sorted(chosen.errors) == [UPS[0], UPS[2]]
    assert chosen.left == (f"{QUERIES[1]}.weight",)


def test_weights_with_the_inputs_first(tmp_path):
    base, tuned = (models.draw(seed) for seed in (0, 1))
    for kind, first in (("gpt2", None), ("llama", True), ("gpt2", False)):
        where = tmp_path / f"{kind}{first}"
        where.mkdir()
        paths = [
            models.as_folder(where / n, x, model_type=kind) for n, x in (("a", tuned), ("b", base))
        ]
        st.merge.extract_lora(*paths, where / "lora", 24, inputs_first=first)
        turned = first is not False
        assert settings(where / "lora")["fan_in_fan_out"] == turned
        factors = models.read(where / "lora" / "adapter_model.safetensors")
        up, down = (factors[f"base_model.model.{UPS[0]}.lora_{k}.weight"] for k in "BA")
        assert (up.shape, down.shape) == (((24, 24), (24, 48)) if turned else ((48, 24), (24, 24)))
        weight = tuned[f"{UPS[0]}.weight"] - base[f"{UPS[0]}.weight"]
        np.testing.assert_allclose((up @ down).T if turned else up @ down, weight, 1e-4, 1e-5)


def test_dtypes(tmp_path):
    paths, _ = models.family(tmp_path, "a", dtype=ml_dtypes.bfloat16)
    st.merge.extract_lora(paths["a"], paths["base"], tmp_path / "1", 24)
    exact = st.merge.extract_lora(paths["a"], paths["base"], tmp_path / "2", 24, dtype="float32")
    codes = [{s.code for s in st.merge.Checkpoint(tmp_path / n).stored.values()} for n in "12"]
    assert codes == [{"BF16"}, {"F32"}]
    assert max(exact.errors.values()) < 1e-6


def test_the_same_bytes_again(tmp_path):
    paths, _ = models.family(tmp_path, "a")
    (tmp_path / ".1.extracting").mkdir()  # what a killed run has left
    (tmp_path / ".1.extracting" / "adapter_model.safetensors").write_bytes(b"half")
    (tmp_path / "2").mkdir()  # an empty folder is as good as none
    for n in "12":
        st.merge.extract_lora(paths["a"], paths["base"], tmp_path / n, 3)
    first, second = (
        [(tmp_path / n / f).read_bytes() for f in sorted(os.listdir(tmp_path / n))] for n in "12"
    )
    assert first == second


def test_what_is_stopped_leaves_nothing(tmp_path):
    paths, _ = models.family(tmp_path, "a")
    whole = tmp_path / "whole"
    act = lambda out: st.merge.extract_lora(paths["a"], paths["base"], out, 1, modules=[QUERIES[0]])
    in_writing = lambda name: name.endswith(("extracting.py", "core/files.py"))
    count = lines_of(lambda: act(whole), in_writing)
    expected = {p.name: p.read_bytes() for p in whole.iterdir()}
    done = 0
    for number in range(count - 60, count):  # those of writing
        out = tmp_path / f"out{number}"
        assert interrupted(lambda out=out: act(out), in_writing, number)
        assert not (tmp_path / f".out{number}.extracting").exists()
        if out.exists():  # the last lines are after the rename
            assert {p.name: p.read_bytes() for p in out.iterdir()} == expected
            done += 1
    assert done < 10


KILLED = """
import os, signal, sys
import stretto as st

os.rename = lambda *names: os.kill(os.getpid(), signal.SIGKILL)
st.merge.extract_lora(*sys.argv[1:], 1)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_what_is_killed_leaves_nothing_in_its_place(tmp_path):
    paths, _ = models.family(tmp_path, "a")
    out = tmp_path / "out"
    said = [paths["a"], paths["base"], str(out)]
    killed = subprocess.run([sys.executable, "-c", KILLED, *said], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert not out.exists()
    assert (tmp_path / ".out.extracting").exists()
    st.merge.extract_lora(*said, 1)
    assert sorted(os.listdir(out)) == ["adapter_config.json", "adapter_model.safetensors"]
    assert not list(tmp_path.glob(".*"))


def test_faults(tmp_path):
    paths, weights = models.family(tmp_path, "a", extra={"steps": np.arange(3)})
    with pytest.raises(ValueError, match=r"2 faults(.|\n)*rank must be a positive integer, got 0"
                       r"(.|\n)*dtype must be one of float32"):  # fmt: skip
        st.merge.extract_lora(paths["a"], paths["base"], tmp_path / "out", 0, dtype="int8")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("")
    with pytest.raises(ValueError, match="full is there already"):
        st.merge.extract_lora(paths["a"], paths["base"], tmp_path / "full", 1)
    with pytest.raises(ValueError, match=r"no linear layer matches 'q_proj'"):
        st.merge.extract_lora(paths["a"], paths["base"], tmp_path / "out", 1, modules=["q_proj"])
    norm = dict(weights["base"]) | {"steps": np.arange(1, 4), "model.norm.weight": np.zeros(24)}
    models.save_file(norm, tmp_path / "norm.safetensors")
    with pytest.raises(ValueError, match=r"no linear layer of .*norm.safetensors differs from .*; "
                       r"what differs is steps, model.norm.weight"):  # fmt: skip
        st.merge.extract_lora(tmp_path / "norm.safetensors", paths["base"], tmp_path / "out", 1)
    other = {k: x for k, x in weights["base"].items() if k != "steps"}
    models.save_file(other | {"lm_head.weight": np.zeros((3, 3))}, tmp_path / "b.safetensors")
    with pytest.raises(ValueError, match=r"steps is missing in .*b.safetensors(.|\n)*"
                       r"lm_head.weight has shape \[3, 3\] in .*, and \[50, 24\] in "):  # fmt: skip
        st.merge.extract_lora(tmp_path / "b.safetensors", paths["base"], tmp_path / "out", 1)
    assert not (tmp_path / "out").exists()
