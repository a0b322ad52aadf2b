"""Adapters: low-rank matrices that are added to weights while these are read."""

import json

import numpy as np
import pytest

import stretto as st
from tests.merge import models

RNG = np.random.default_rng(5)
UP = "model.layers.1.mlp.up_proj"
QUERY = "model.layers.0.self_attn.q_proj"


def adapter(folder, pairs, **said):
    """Write an adapter as PEFT does."""
    folder.mkdir()
    tensors = {}
    for name, (a, b) in pairs.items():
        tensors[f"base_model.model.{name}.lora_A.weight"] = a
        tensors[f"base_model.model.{name}.lora_B.weight"] = b
    models.save_file(tensors, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA"} | said))
    return str(folder)


def matrices(shape, rank, dtype=np.float32):
    return [RNG.standard_normal(s).astype(dtype) for s in ((rank, shape[1]), (shape[0], rank))]


def applied(tmp_path, pairs, dtype=np.float32, **said):
    """A model with an adapter, through ``run``."""
    tensors = models.draw(0, dtype=dtype)
    path = tmp_path / "model.safetensors"
    models.save_file(tensors, path)
    recipe = {
        "method": "passthrough",
        "models": [{"path": str(path), "adapter": adapter(tmp_path / "lora", pairs, **said)}],
    }
    st.merge.run(recipe, tmp_path / "out.safetensors", memory=1)
    return tensors, models.read(tmp_path / "out.safetensors")


@pytest.mark.parametrize("dtype, rtol", [(np.float32, 1e-6), (np.float16, 2e-3)])
def test_what_is_added(tmp_path, dtype, rtol):
    shapes = models.shapes()
    pairs = {n: matrices(shapes[n + ".weight"], 3) for n in (UP, QUERY)}
    tensors, found = applied(tmp_path, pairs, dtype, r=3, lora_alpha=6)
    assert set(found) == set(tensors)
    for name, x in tensors.items():
        a, b = pairs.get(name.removesuffix(".weight"), (None, None))
        expected = x if a is None else x + 2.0 * (b.astype(float) @ a)
        assert found[name].dtype == dtype
        np.testing.assert_allclose(found[name], expected, rtol, 1e-5, err_msg=name)


def test_the_base_with_an_adapter_is_another_model(tmp_path):
    tensors = models.draw(0)
    path = str(tmp_path / "model.safetensors")
    models.save_file(tensors, path)
    pairs = {UP: matrices(tensors[UP + ".weight"].shape, 2)}
    tuned = {"path": path, "adapter": adapter(tmp_path / "lora", pairs, r=2, lora_alpha=2)}
    recipe = {
        "method": "task_arithmetic", "base": path, "models": [{**tuned, "weight": 0.5}],
    }  # fmt: skip
    st.merge.run(recipe, tmp_path / "out.safetensors")
    down, up = pairs[UP]
    expected = tensors[UP + ".weight"] + 0.5 * (up @ down)
    found = models.read(tmp_path / "out.safetensors")
    np.testing.assert_allclose(found[UP + ".weight"], expected, 1e-5, 1e-6)


def test_ranks_and_scales_by_pattern(tmp_path):
    shapes = models.shapes()
    pairs = {UP: matrices(shapes[UP + ".weight"], 2), QUERY: matrices(shapes[QUERY + ".weight"], 4)}
    said = {"r": 4, "lora_alpha": 8, "rank_pattern": {"up_proj": 2}, "alpha_pattern": {"q_proj": 1}}
    tensors, found = applied(tmp_path, pairs, use_rslora=True, **said)
    for name, scale in ((UP, 8 / np.sqrt(2)), (QUERY, 1 / np.sqrt(4))):
        a, b = pairs[name]
        expected = tensors[name + ".weight"] + scale * (b @ a)
        np.testing.assert_allclose(found[name + ".weight"], expected, 1e-5, 1e-5)


@pytest.mark.parametrize(
    "pattern, counts",
    [
        ("up_proj", True),
        ("mlp.up_proj", True),
        (r"model\.layers\.\d+\.mlp.*", True),
        ("proj", False),  # the whole of a part, not an end of it
        ("up_proj.weight", False),
        (r"layers\.0\..*", False),
    ],
)
def test_which_modules_a_pattern_is_for(tmp_path, pattern, counts):
    a, b = matrices(models.shapes()[UP + ".weight"], 2)
    said = {"r": 2, "lora_alpha": 2, "alpha_pattern": {pattern: 20}}
    tensors, found = applied(tmp_path, {UP: (a, b)}, **said)
    expected = tensors[UP + ".weight"] + (10 if counts else 1) * (b @ a)
    np.testing.assert_allclose(found[UP + ".weight"], expected, 1e-5, 1e-5)


def test_weights_with_the_inputs_first(tmp_path):
    rows, columns = models.shapes()[UP + ".weight"]
    a, b = matrices((columns, rows), 2)  # of inputs by outputs
    tensors, found = applied(tmp_path, {UP: (a, b)}, r=2, lora_alpha=2, fan_in_fan_out=True)
    np.testing.assert_allclose(
        found[UP + ".weight"], tensors[UP + ".weight"] + (b @ a).T, 1e-5, 1e-5
    )


@pytest.mark.parametrize(
    "said, words",
    [
        ({"peft_type": "IA3"}, "is no LoRA adapter"),
        ({"use_dora": True}, "has use_dora, which is not supported"),
        ({"bias": "all"}, "has biases, which is not supported"),
        ({"modules_to_save": ["lm_head"]}, "has modules_to_save, which is not supported"),
        ({"init_lora_weights": "pissa"}, "has init_lora_weights='pissa' .its model has other"),
        ({"r": 0}, "has r 0, and not a number"),
        ({"r": "4"}, "has r '4', and not a number"),
        ({"lora_alpha": None}, "has lora_alpha None, and not a number"),
        ({"rank_pattern": ["q"]}, r"has rank_pattern \['q'\], and not a table"),
        ({"rank_pattern": {"up_proj": -1}}, "has rank_pattern -1, and not a number"),
        ({"alpha_pattern": {"(": 1}}, "has in alpha_pattern .*is no regular expression"),
        ({"alpha_pattern": {"(a+)+": 1}}, "has in alpha_pattern .*may take for ever"),
    ],
)
def test_kinds_that_are_refused(tmp_path, said, words):
    with pytest.raises(ValueError, match=words):
        applied(tmp_path, {UP: matrices(models.shapes()[UP + ".weight"], 2)}, **said)


def test_an_adapter_for_another_model(tmp_path):
    with pytest.raises(ValueError, match=r"is for model.x.weight, which the model lacks"):
        applied(tmp_path, {"model.x": matrices((3, 4), 2)})
    (tmp_path / "2").mkdir()
    with pytest.raises(ValueError, match=r"has matrices of shapes \(2, 4\) and \(3, 2\) for model"):
        applied(tmp_path / "2", {UP: matrices((3, 4), 2)})


def test_an_adapter_that_is_not_there(tmp_path):
    path = tmp_path / "model.safetensors"
    models.save_file(models.draw(0), path)
    recipe = {"method": "passthrough", "models": [{"path": path, "adapter": tmp_path / "no"}]}
    with pytest.raises(ValueError, match=r"merge: .*/no: No such file"):
        st.merge.plan(recipe)


def test_an_adapter_for_integers(tmp_path):
    path = tmp_path / "model.safetensors"
    models.save_file({f"{UP}.weight": np.ones((4, 3), np.int8)}, path)
    folder = adapter(tmp_path / "lora", {UP: matrices((4, 3), 2)})
    recipe = {"method": "passthrough", "models": [{"path": str(path), "adapter": folder}]}
    with pytest.raises(ValueError, match=r"which is I8\[4,3\]: expected floats of 16 bits"):
        st.merge.plan(recipe)


def test_what_is_no_adapter(tmp_path):
    path = tmp_path / "model.safetensors"
    models.save_file(models.draw(0), path)
    folder = tmp_path / "lora"
    folder.mkdir()
    models.save_file({"x": np.ones(3, np.float32)}, folder / "adapter_model.safetensors")
    recipe = {"method": "passthrough", "models": [{"path": str(path), "adapter": str(folder)}]}
    for text, words in (
        ("{", "is no JSON"),
        ("[]", "must have a table"),
        ("{}", "no pair of low-rank"),
    ):
        (folder / "adapter_config.json").write_text(text)
        with pytest.raises(ValueError, match=words):
            st.merge.plan(recipe)
    (folder / "adapter_config.json").unlink()
    with pytest.raises(ValueError, match=r"it has no adapter_config.json"):
        st.merge.plan(recipe)
