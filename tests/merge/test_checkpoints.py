"""Checkpoints: every layout that is read, and all that is wrong with one, told at once."""

import json

import numpy as np
import pytest

import stretto as st
from tests.merge import models

TENSORS = models.draw(0)


def test_a_file(tmp_path):
    path = tmp_path / "model.safetensors"
    models.save_file(TENSORS, path, metadata={"note": "x"})
    with st.merge.Checkpoint(path) as found:
        assert set(found) == set(TENSORS)
        assert len(found) == len(TENSORS)
        assert found.metadata == {"note": "x"}
        for name, x in TENSORS.items():
            np.testing.assert_array_equal(found[name], x)
        assert "lm_head.weight" in found
        assert "lm_head" not in found
        assert repr(found).endswith(f"tensors={len(TENSORS)}, nbytes={nbytes():,})")
        with pytest.raises(KeyError):
            found["lm_head"]


def nbytes():
    return sum(x.nbytes for x in TENSORS.values())


@pytest.mark.parametrize("name", ["", "model.safetensors.index.json"])
def test_shards_with_an_index(tmp_path, name):
    folder = models.as_folder(tmp_path / "model", TENSORS, shards=3)
    found = st.merge.Checkpoint(f"{folder}/{name}" if name else folder)
    assert set(found) == set(TENSORS)
    assert found.stored["lm_head.weight"].file.startswith("model-0000")
    np.testing.assert_array_equal(found["lm_head.weight"], TENSORS["lm_head.weight"])
    assert found.configuration("")["model_type"] == "llama"


def test_shards_without_an_index(tmp_path):
    folder = models.as_folder(tmp_path / "model", TENSORS, shards=3)
    (tmp_path / "model" / "model.safetensors.index.json").unlink()
    assert set(st.merge.Checkpoint(folder)) == set(TENSORS)
    (tmp_path / "model" / "model-00002-of-00003.safetensors").unlink()
    with pytest.raises(ValueError, match=r"these are missing: model-00002-of-00003.safetensors"):
        st.merge.Checkpoint(folder)


def test_components(tmp_path):
    models.as_folder(tmp_path / "pipe" / "unet", {"a": np.ones(3, np.float32)})
    models.as_folder(tmp_path / "pipe" / "vae", {"a": np.zeros(2, np.float32)}, shards=1)
    (tmp_path / "pipe" / "model_index.json").write_text("{}")
    found = st.merge.Checkpoint(tmp_path / "pipe")
    assert set(found) == {"unet/a", "vae/a"}
    np.testing.assert_array_equal(found["vae/a"], [0, 0])


def test_part_of_a_tensor(tmp_path):
    path = tmp_path / "model.safetensors"
    models.save_file({"w": np.arange(10, dtype=np.int16)}, path)
    with st.merge.Checkpoint(path) as found:
        out = bytearray(6)
        found.read_into("w", 4, memoryview(out))
        assert np.frombuffer(out, np.int16).tolist() == [2, 3, 4]
        path.write_bytes(path.read_bytes()[:-3])
        with pytest.raises(ValueError, match=r"ended while w was read.*it was cut short"):
            found.read_into("w", 14, memoryview(out))


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "x.ckpt"])
def test_pickles_are_not_opened(tmp_path, name):
    (tmp_path / name).write_bytes(b"\x80\x04.")
    for path in (tmp_path / name, tmp_path):
        with pytest.raises(ValueError, match="is a pickle, which can run any code"):
            st.merge.Checkpoint(path)


def indexed(tmp_path, change):
    """The words for a folder with an index that was changed."""
    folder = tmp_path / "model"
    models.as_folder(folder, TENSORS, shards=2)
    path = folder / "model.safetensors.index.json"
    said = json.loads(path.read_text())
    said = change(said, folder) or said
    path.write_text(said if isinstance(said, str) else json.dumps(said))
    with pytest.raises(ValueError, match=r"cannot be read|Checkpoint: ") as caught:
        st.merge.Checkpoint(folder)
    return str(caught.value)


def test_an_index_that_disagrees_with_the_files(tmp_path):
    first, second = (f"model-0000{i}-of-00002.safetensors" for i in (1, 2))

    def change(said, folder):
        places = said["weight_map"]
        assert places["lm_head.weight"] == first
        places["lm_head.weight"] = second
        places["ghost"] = second
        del places["model.norm.weight"]

    words = indexed(tmp_path, change)
    assert f"lm_head.weight is in {first}, and the index says {second}" in words
    assert f"ghost is not in {second}, where the index has it" in words
    assert f"model.norm.weight is in {second}, and the index does not list it" in words


def test_an_index_whose_file_is_missing(tmp_path):
    words = indexed(
        tmp_path, lambda said, folder: (folder / "model-00002-of-00002.safetensors").unlink()
    )
    assert "model-00002-of-00002.safetensors is missing, which the index names" in words


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"weight_map": []}', '{"weight_map": {"a": 3}}',
     '{"weight_map": {"a": "../../secret.safetensors"}}', '{"weight_map": {"a": "/etc/passwd"}}',
     '{"weight_map": {"a": "model.bin"}}',
     '{"weight_map": {"a": "b.safetensors"}, "weight_map": 1}',
     "[" * 100_000],
)  # fmt: skip
def test_what_is_no_index(tmp_path, text):
    words = indexed(tmp_path, lambda said, folder: text or " ")
    assert "is no index of safetensors files" in words


def test_a_tensor_in_two_files(tmp_path):
    folder = models.as_folder(tmp_path / "model", TENSORS, shards=2)
    (tmp_path / "model" / "model.safetensors.index.json").unlink()
    both = TENSORS | {"more": np.ones(1, np.float32)}
    models.save_file(both, tmp_path / "model" / "model-00002-of-00002.safetensors")
    with pytest.raises(ValueError, match=r"lm_head.weight is in model-|model.norm.weight is in"):
        st.merge.Checkpoint(folder)


def test_a_damaged_file(tmp_path):
    path = tmp_path / "model.safetensors"
    models.save_file(TENSORS, path)
    data = path.read_bytes()
    for cut in (data[:4], data[:100], data[:-1], data + b"x", b"PK\x03\x04" + data):
        path.write_bytes(cut)
        with pytest.raises(ValueError, match=r"model\.safetensors: it"):
            st.merge.Checkpoint(path)


def test_what_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        st.merge.Checkpoint(tmp_path / "nothing.safetensors")
    with pytest.raises(ValueError, match=r"has no .safetensors file; it has nothing"):
        st.merge.Checkpoint(tmp_path)
    with pytest.raises(TypeError, match="the path must be a string"):
        st.merge.Checkpoint(3)


def test_several_models_in_a_folder(tmp_path):
    for name in ("a", "b"):
        models.save_file(TENSORS, tmp_path / f"{name}.safetensors")
    with pytest.raises(
        ValueError, match=r"has several models, a.safetensors, b.safetensors: name one"
    ):
        st.merge.Checkpoint(tmp_path)


@pytest.mark.parametrize("other", ["consolidated.safetensors", "model.fp16.safetensors"])
@pytest.mark.parametrize("shards", [1, 3])
def test_what_loaders_take_is_taken(tmp_path, other, shards):
    folder = models.as_folder(tmp_path / "model", TENSORS, shards=shards)
    models.save_file({"x": np.ones(3)}, tmp_path / "model" / other)
    assert set(st.merge.Checkpoint(folder)) == set(TENSORS)


def test_a_file_and_an_index_of_one_name_are_two_models(tmp_path):
    folder = models.as_folder(tmp_path / "model", TENSORS, shards=2)
    models.save_file(TENSORS, tmp_path / "model" / "model.safetensors")
    with pytest.raises(ValueError, match=r"has several models, model.safetensors.index.json, "):
        st.merge.Checkpoint(folder)


def test_a_folder_of_links(tmp_path):
    """As the cache of a hub keeps models."""
    folder = tmp_path / "blobs"
    models.as_folder(folder, TENSORS, shards=2)
    links = tmp_path / "snapshot"
    links.mkdir()
    for number, path in enumerate(sorted(folder.iterdir())):
        path = path.rename(folder / str(number)) and (links / path.name)
        path.symlink_to(folder / str(number))
    with st.merge.Checkpoint(links) as found:
        assert set(found) == set(TENSORS)
        assert found.configuration("")["model_type"] == "llama"


@pytest.mark.parametrize("text, words", [
    ("{", "is no JSON"), ("[1]", "must have a table"), ('{"a": 1, "a": 2}', "two entries 'a'"),
    ("[" * 100_000, "is no JSON"),
])  # fmt: skip
def test_a_configuration_that_is_none(tmp_path, text, words):
    folder = models.as_folder(tmp_path / "model", TENSORS)
    (tmp_path / "model" / "config.json").write_text(text)
    with (
        st.merge.Checkpoint(folder) as found,
        pytest.raises(ValueError, match=f"config.json .*{words}"),
    ):
        found.configuration("")


def test_a_last_shard_of_a_name_without_end(tmp_path):
    models.save_file(TENSORS, tmp_path / f"model-00001-of-{'9' * 20}.safetensors")
    with pytest.raises(ValueError, match="the shards do not belong together"):
        st.merge.Checkpoint(tmp_path)


def test_arrays_in_data_files(tmp_path):
    path = tmp_path / "model.safetensors"
    models.save_file(TENSORS, path, metadata={"stretto.parts": "{}"})
    with pytest.raises(ValueError, match="has arrays in data files: load it, and save it in one"):
        st.merge.Checkpoint(path)


def test_a_file_is_closed_when_nobody_has_it(tmp_path):
    path = tmp_path / "model.safetensors"
    models.save_file(TENSORS, path)
    found = st.merge.Checkpoint(path)
    file = next(iter(found._files.values()))
    del found
    assert file.raw.closed


def test_64_bits_are_read_as_they_are_where_they_are_on(tmp_path):
    path = tmp_path / "model.safetensors"
    models.save_file({"w": np.array([1 / 3])}, path)
    with st.merge.Checkpoint(path) as found:
        with st.enable_x64():
            assert float(found["w"][0]) == 1 / 3
        with pytest.warns(
            UserWarning, match="Checkpoint: loses digits of w, of 64 bits in the file"
        ):
            assert found["w"].dtype == np.float32
