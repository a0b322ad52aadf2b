"""The costs of a machine: units, limits of the caches, and what must grow with what."""

import os

import pytest

from stretto._engine.core.cost import CPU, TABLES
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
