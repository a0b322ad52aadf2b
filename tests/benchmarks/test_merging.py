"""The benchmark of merging: its models, its recipes, its comparison, and what its table says."""

import io
import json
import sys

import numpy as np
import pytest
from rich.console import Console

pytest.importorskip("yaml")

import stretto as st
from benchmarks.merging import __main__ as command
from benchmarks.merging import adapters, measured, models, values
from benchmarks.merging.cases import CASES

TINY = models.SIZES["tiny"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A base and three tuned models in bfloat16."""
    found = tmp_path_factory.mktemp("merging")
    for k in range(4):
        models.write(found / (f"tuned-{k}" if k else "base"), TINY, "bfloat16", k)
    return found


def test_models_are_near_their_base(folder, monkeypatch):
    base, tuned, other = (st.merge.Checkpoint(folder / n) for n in ("base", "tuned-1", "tuned-2"))
    assert {n: s.shape for n, s in base.stored.items()} == dict(models.tensors(TINY))
    assert sum(s.nbytes for s in base.stored.values()) == 2 * TINY.elements
    a, b, c = (np.asarray(m["lm_head.weight"]).astype(np.float64) for m in (base, tuned, other))
    assert a.std() == pytest.approx(0.02, rel=0.05)
    assert (b - a).std() == pytest.approx(0.002, rel=0.05)
    assert np.corrcoef((b - a).ravel(), (c - a).ravel())[0, 1] < 0.1
    monkeypatch.setattr(models, "numbers", None)  # what is there is not made again
    models.write(folder / "base", TINY, "bfloat16")


def test_models_have_shards(tmp_path, monkeypatch):
    monkeypatch.setattr(models, "SHARD", 100_000)
    models.write(tmp_path / "m", TINY, "float32")
    files = sorted(p.name for p in (tmp_path / "m").glob("*.safetensors"))
    assert files[0] == f"model-00001-of-{len(files):05d}.safetensors"
    assert len(files) > 3
    assert len(st.merge.Checkpoint(tmp_path / "m")) == len(dict(models.tensors(TINY)))


@pytest.mark.parametrize("name", CASES)
def test_recipes_can_be_planned(folder, name):
    path = folder / "recipe.yaml"
    path.write_text(json.dumps(CASES[name].recipe(folder, "bfloat16")))
    plan = st.merge.plan(path)
    try:
        assert len(plan.steps) == len(dict(models.tensors(TINY)))
        (count,) = {len(step.models) + (step.base is not None) for step in plan.steps}
        assert count == CASES[name].models + CASES[name].base
    finally:
        plan.close()


def test_units():
    one = np.float32([1, -1, 0, 1e-45, np.inf])
    assert values.units(one, one).tolist() == [0] * 5
    next_to = np.nextafter(one, np.float32(-np.inf))
    assert values.units(one, next_to).tolist() == [1] * 5
    assert values.units(np.float32([0.0]), np.float32([-0.0])).tolist() == [0]
    tenths = np.full(3, 0.1).astype(models.DTYPES["bfloat16"][1])
    assert values.units(tenths, -tenths).tolist() == [2 * 0x3DCD] * 3


def test_models_are_compared(tmp_path):
    x = np.linspace(-1, 1, 10, dtype=np.float32)
    st.save(tmp_path / "a.safetensors", {"x": x, "y": x})
    st.save(tmp_path / "b.safetensors", {"x": x, "y": np.nextafter(x, np.float32(2))})
    st.save(tmp_path / "c.safetensors", {"x": x})
    st.save(tmp_path / "d.safetensors", {"x": x, "y": x[:5]})
    paths = {name: str(tmp_path / f"{name}.safetensors") for name in "abcd"}
    assert values.apart(paths["a"], paths["a"]) == (0, 0, 0)
    assert values.apart(paths["a"], paths["b"]) == (1, 0.5, pytest.approx(2**-23))
    for other in "cd":
        with pytest.raises(ValueError, match=r"other tensors|y: "):
            values.apart(paths["a"], paths[other])


def test_a_process_is_measured(capfd):
    work = "x = bytearray(1 << 26); x[::4096] = b'1' * (1 << 14); sum(range(3_000_000))"
    assert measured.main([sys.executable, "-c", work]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["memory"] > 1 << 26
    assert 0 < found["cpu"] < found["wall"] + 1
    assert measured.main([sys.executable, "-c", "raise SystemExit(3)"]) == 3


def test_a_case_is_measured_beside_256_bit_vectors(folder):
    row = command.measured("ties", folder, "bfloat16", ["AVX2"], None, 1)
    assert row["apart"] == {"AVX2": {"most": 0, "share": 0.0, "largest": 0.0}}
    assert row["figures"]["stretto"]["memory"] > 1 << 20
    assert not list(folder.glob("out-*"))
    with pytest.raises(command.Failed, match="No module named"):
        command.taken([sys.executable, "-m", "benchmarks.merging.none"], {})


def row(**change):
    """A row of the table."""
    figure = {"cpu": 1.0, "wall": 2.0, "memory": 200 << 20}
    return {
        "name": "linear", "dtype": "bfloat16",
        "figures": {"stretto": figure, "mergekit": figure | {"cpu": 10.0}},
        "apart": {"mergekit": {"most": 1, "share": 0.25, "largest": 1e-3}},
    } | change  # fmt: skip


def test_the_peers_of_a_case(folder):
    recipe = folder / "recipe.yaml"
    recipe.write_text(json.dumps(CASES["ties"].recipe(folder, "bfloat16")))
    every = command.commands(CASES["ties"], recipe, [*command.PEERS], "python")
    assert list(every) == ["stretto", "AVX2", "mergekit", "loop"]
    assert "50000000" in every["mergekit"][0]  # parameters of two bytes
    assert "loop" not in command.commands(CASES["sce"], recipe, [*command.PEERS], "python")
    assert list(command.commands(CASES["ties"], recipe, [*command.PEERS], None)) == [
        "stretto", "AVX2",
    ]  # fmt: skip


def test_values_that_are_too_far_apart():
    assert command.wrong(row()) == []
    far = {"most": 2, "share": 0.1, "largest": 0.01}
    assert command.wrong(row(apart={"mergekit": far})) == [
        "linear: mergekit is 2 units away, at most 1"
    ]
    assert command.wrong(row(apart={"loop": far})) == []
    assert command.wrong(row(name="dare_ties", apart={"mergekit": far})) == []
    assert command.wrong(row(name="slerp", apart={"mergekit": far})) == [
        "slerp: mergekit is 1.0e-02 away, at most 7.8e-03"
    ]
    assert command.wrong(row(name="dare_ties", apart={"AVX2": far})) == [
        "dare_ties: AVX2 is 2 units away, at most 0"
    ]


def test_the_table_says_what_was_measured():
    assert command.met(row()) == "met: 0.25, 256 MiB"
    figures = row()["figures"]
    large = figures | {"stretto": figures["stretto"] | {"memory": 257 << 20}}
    assert command.met(row(figures=large)) == "missed: 0.25, 256 MiB"
    assert command.met(row(name="sce")) == ""
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(command.table([row(), row(name="sce", apart={})]))
    text = console.export_text()
    assert "1.0 s, 2.0 s, 200" in text
    assert "0.100" in text
    assert "1 (25.0%)" in text


def test_the_command(folder, tmp_path, capsys):
    words = ["--size", "tiny", "--only", "linear", "--peers", "AVX2", "--rounds", "1"]
    out = tmp_path / "rows.json"
    assert command.main([*words, "--folder", str(tmp_path), "--json", str(out)]) == 0
    assert json.loads(out.read_text())["rows"][0]["name"] == "linear"
    assert "linear bfloat16" in capsys.readouterr().out


def test_recipes_for_adapters_name_what_the_worker_writes(tmp_path):
    found = adapters.recipes(tmp_path)
    assert set(adapters.TRIMMED) < set(found)
    assert [m["adapter"] for m in found["cat"]["models"]] == [
        str(tmp_path / name) for name in ("first", "second")
    ]
