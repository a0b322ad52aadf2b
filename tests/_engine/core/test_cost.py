"""The costs of a machine: units, limits of the caches, and what must grow with what."""

import json
import os

import pytest

import stretto as st
from stretto._engine.core import cost
from stretto._engine.core.cost import CPU, SCALED, TABLES, scaled
from stretto._engine.core.machine import Kind, cores, kind

SIZES = [1.0, 1e3, CPU.near_bytes, CPU.near_bytes + 1, CPU.shared_bytes, CPU.shared_bytes + 1,
         CPU.fresh_bytes, CPU.fresh_bytes + 1, 1e9]  # fmt: skip


@pytest.mark.parametrize("name", ["copying", "moving", "passing", "fresh_memory"])
def test_more_bytes_never_take_less_time(name):
    times = [getattr(CPU, name)(size) for size in SIZES]
    assert times == sorted(times)
    assert getattr(CPU, name)(0) == 0


def test_a_copy_reads_and_writes():
    assert CPU.copying(300) == 2 * 300 / CPU.near
    assert CPU.copying(CPU.near_bytes) == 2 * CPU.near_bytes / CPU.near
    beyond = CPU.near_bytes + 1
    assert CPU.copying(beyond) == 2 * beyond / CPU.shared
    large = CPU.fresh_bytes + 1  # more than the last cache
    assert CPU.copying(large) == 2 * large / CPU.far + large * CPU.fresh


def test_what_is_made_on_the_way_passes_faster_than_a_copy():
    for size in SIZES:
        assert CPU.passing(size) < CPU.copying(size)


def test_limits_of_the_caches_are_within_them():
    for limit, within, beyond in [
        (CPU.near_bytes, CPU.near, CPU.passing_shared),
        (CPU.shared_bytes, CPU.passing_shared, CPU.passing_far),
    ]:
        assert CPU.passing(limit) == limit / within
        assert CPU.passing(limit + 1) == (limit + 1) / beyond
    assert CPU.moving(CPU.shared_bytes) == CPU.shared_bytes / CPU.shared
    assert CPU.moving(CPU.shared_bytes + 1) == (CPU.shared_bytes + 1) / CPU.far
    large = (CPU.batched + CPU.wide) / 2
    assert [CPU.fraction(n) for n in (8e6 - 1, 8e6)] == [CPU.batched, large]


def test_memory_is_fresh_only_beyond_a_limit():
    assert CPU.fresh_memory(CPU.fresh_bytes) == 0
    assert CPU.fresh_memory(2 * CPU.fresh_bytes) == 2 * CPU.fresh_bytes * CPU.fresh


def test_products():
    assert CPU.product(1e6, 0.5) == 1e6 / (CPU.products * 0.5)
    fractions = [CPU.fraction(n) for n in (1, 1e6, 1e7, 1e9)]
    assert fractions == sorted(fractions)
    assert 0 < fractions[0] == CPU.batched < fractions[-1] <= CPU.wide < 1


def test_all_cores_that_this_process_may_use_multiply():
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    rates = {Kind.AVX512: 50e3, Kind.AVX2: 50e3, Kind.ARM: 20e3}
    assert {kind: table.products / cores for kind, table in TABLES.items()} == rates


@pytest.mark.parametrize(
    ("work", "microseconds"),
    [
        (lambda m: m.product(50e6 * cores(), m.wide), 1333.3),
        (lambda m: m.product(50e6 * cores(), m.batched), 1818.2),
        (lambda m: 1000 * m.item, 400),
        (lambda m: 1000 * m.turn, 1500),
        (lambda m: 1000 * m.kernel, 500),
        (lambda m: 1000 * m.vectors, 1000),
        (lambda m: m.copying(300e3), 20),
        (lambda m: m.copying(524_288), 34.95),
        (lambda m: m.copying(524_289), 65.54),
        (lambda m: m.copying(16_777_216), 2097.2),
        (lambda m: m.copying(16_777_217), 5592.4),
        (lambda m: m.moving(16_777_216), 1048.6),
        (lambda m: m.moving(16_777_217), 2796.2),
        (lambda m: m.passing(1e6), 40),
        (lambda m: m.passing(3e7), 2000),
        (lambda m: m.fresh_memory(28_000_000), 0),
        (lambda m: m.fresh_memory(28_000_001), 5600),
        (lambda m: 1000 * m.joint, 18_000),
    ],
)
def test_the_machine_that_was_measured(work, microseconds):
    """The estimates from which plans are chosen are those of its measurements."""
    assert work(TABLES[Kind.AVX512]) == pytest.approx(microseconds, rel=1e-4)


def test_the_table_is_that_of_this_kind_of_processor():
    assert CPU is TABLES[kind()]


def test_each_kind_has_a_table_that_says_whether_it_was_measured():
    assert TABLES.keys() == {*Kind}
    assert all(table.name.startswith(kind.value) for kind, table in TABLES.items())
    assert [kind for kind, table in TABLES.items() if table.name.endswith(", measured")] == [
        Kind.AVX512
    ]


def test_both_kinds_of_x86_have_the_same_figures():
    measured, other = TABLES[Kind.AVX512], TABLES[Kind.AVX2]
    assert other._replace(name=measured.name) == measured


def test_what_is_not_vectorized_takes_as_long_on_arm():
    arm, measured = TABLES[Kind.ARM], TABLES[Kind.AVX512]
    different = {f for f in arm._fields if getattr(arm, f) != getattr(measured, f)}
    assert different == {"name", "products", "vectors"}
    assert arm.products < measured.products
    assert arm.vectors > measured.vectors


# What was measured on this machine

TIMES = {"products": 2.0, "copies": 0.5, "fresh": 4.0, "overheads": 3.0}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache directory, of which nothing was read."""
    monkeypatch.setenv("STRETTO_CACHE_DIR", str(tmp_path))
    cost.kept.cache_clear()
    yield tmp_path / "costs"
    cost.kept.cache_clear()


def test_what_is_measured_scales_what_it_says_and_nothing_else():
    machine = scaled(CPU, TIMES)
    assert machine.product(1e6, 0.5) == pytest.approx(2 * CPU.product(1e6, 0.5))
    assert machine.moving(1e6) == pytest.approx(CPU.moving(1e6) / 2)
    assert machine.passing(1e8) == pytest.approx(CPU.passing(1e8) / 2)
    assert machine.fresh == 4 * CPU.fresh
    assert (machine.turn, machine.joint) == (3 * CPU.turn, 3 * CPU.joint)
    changed = {name for names in SCALED.values() for name in names} | {"name"}
    for name in CPU._fields:
        assert (getattr(machine, name) != getattr(CPU, name)) is (name in changed)
    assert machine.name.endswith("tuned on this machine")
    same = scaled(CPU, dict.fromkeys(SCALED, 1.0))
    assert same._replace(name=CPU.name) == pytest.approx(CPU)


def test_what_is_kept_is_what_is_read(folder):
    assert cost.kept() is None
    path = cost.keep(TIMES)
    assert [str(file) for file in folder.iterdir()] == [path]
    assert cost.kept() == scaled(CPU, TIMES)
    assert cost.current() is CPU  # unless it is asked for
    with st.config(tuned=True):
        assert cost.current() == scaled(CPU, TIMES)


def test_each_processor_has_a_file_of_its_own(folder, monkeypatch):
    path = cost.tuned_path()
    for name, value in (("processor", "another"), ("cores", 99), ("LEVEL", "another")):
        with monkeypatch.context() as changed:
            changed.setattr(cost, name, value if name == "LEVEL" else lambda value=value: value)
            assert cost.tuned_path() != path
    assert cost.tuned_path() == path


DAMAGED = {
    "empty": "",
    "not JSON": "{",
    "another value": "[1, 2]",
    "code": "__import__('os').system('false')",
    "one is missing": json.dumps({"products": 1.0, "copies": 1.0, "fresh": 1.0}),
    "no number": json.dumps(TIMES | {"fresh": "much"}),
    "nothing": json.dumps(TIMES | {"fresh": None}),
    "not a number": json.dumps(TIMES | {"fresh": float("nan")}),
    "infinite": json.dumps(TIMES | {"fresh": float("inf")}),
    "negative": json.dumps(TIMES | {"fresh": -1.0}),
    "zero": json.dumps(TIMES | {"fresh": 0.0}),
    "too far from the table": json.dumps(TIMES | {"fresh": 31.0}),
    "too near nothing": json.dumps(TIMES | {"fresh": 0.03}),
    "no float": json.dumps(TIMES)[:-4] + "1" + "0" * 400 + "}",
    "deep": "[" * 4000,
    "large": json.dumps(TIMES) + " " * 5000,
}


@pytest.mark.parametrize("what", DAMAGED)
def test_damaged_files_count_for_nothing(folder, what):
    path = cost.keep(TIMES)
    assert cost.kept() is not None
    with open(path, "w") as file:
        file.write(DAMAGED[what])
    cost.kept.cache_clear()
    with st.config(tuned=True):
        assert cost.current() is CPU


def test_what_is_no_file_counts_for_nothing(folder):
    path = cost.keep(TIMES)
    os.rename(path, f"{path}.elsewhere")
    for make in (os.mkdir, lambda path: os.symlink(f"{path}.elsewhere", path)):
        cost.kept.cache_clear()
        make(path)
        with st.config(tuned=True):
            assert cost.current() is CPU
        (os.rmdir if os.path.isdir(path) else os.remove)(path)


def test_nothing_is_kept_where_there_is_no_folder(monkeypatch):
    monkeypatch.setattr(cost, "cache_directory", lambda: None)
    cost.kept.cache_clear()
    assert cost.keep(TIMES) is None and cost.kept() is None
    cost.kept.cache_clear()
