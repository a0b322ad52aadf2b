"""Memory at the peak, and which arguments could be donated."""

import types

import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.api.explain import explain
from stretto._engine.core.config import config
from stretto._engine.xla import memory

PARAMS = {"w": snp.ones((64, 64)), "b": snp.ones((4096,))}
X = snp.ones((32, 64))


def step(params, x):
    y = snp.tanh(x @ params["w"])
    return {"w": params["w"] - 0.1 * (x.T @ y), "b": params["b"] * 2}


def test_the_peak_is_the_sum():
    memory = st.explain(step, PARAMS, X).memory
    assert memory.arguments == 4 * (2 * 4096 + 32 * 64)
    assert memory.results >= 4 * 2 * 4096
    stats = st.jit(step).lower(PARAMS, X).compile().memory_analysis()
    assert memory.temporaries == stats.temp_size_in_bytes
    assert memory.peak == memory.arguments + memory.results + memory.temporaries


def test_the_largest_temporaries_have_lines():
    def f(x, y):
        return snp.tanh(snp.tanh(x @ y) @ y) @ y

    memory = st.explain(f, PARAMS["w"], PARAMS["w"]).memory
    assert memory.largest[0][0].endswith(f"test_explain_memory.py:{f.__code__.co_firstlineno + 1}")
    assert sum(total for _, total, _ in memory.largest) == memory.temporaries


def test_donation_is_advised_and_then_saves_memory():
    before = st.explain(step, PARAMS, X)
    (advice,) = before.donations
    assert (advice.argument, advice.which, advice.bytes) == ("params", 0, 4 * 2 * 4096)
    assert "st.jit(step, donate_argnums=(0,))" in str(before)
    after = st.explain(st.jit(step, donate_argnums=(0,)), PARAMS, X)
    assert after.donations == ()
    assert after.memory.donated == advice.bytes
    assert 0 < before.memory.peak - after.memory.peak <= advice.bytes


@pytest.mark.parametrize(("size", "count"), [(1023, 0), (1024, 1)])
def test_donation_is_advised_from_four_kibibytes_on(size, count):
    assert len(st.explain(lambda x: x * 2, snp.ones(size)).donations) == count


def test_donated_arguments_stay_usable():
    st.explain(st.jit(step, donate_argnums=(0,)), PARAMS, X)
    assert float(PARAMS["b"][0]) == 1.0


def test_no_advice_where_no_result_fits():
    assert st.explain(lambda p, x: x @ p["w"], PARAMS, snp.ones((7, 64))).donations == ()
    partly = lambda p: p["w"].sum() + p["b"]
    assert st.explain(partly, PARAMS).donations == ()


def test_static_and_named_arguments():
    run = st.jit(lambda n, params, x: step(params, x), static_argnums=0)
    assert [d.which for d in st.explain(run, 3, PARAMS, X).donations] == [1]
    report = st.explain(step, params=PARAMS, x=X)
    assert [d.which for d in report.donations] == ["params"]
    assert "donate_argnames=('params',)" in str(report)


def wide(rows):
    """A report on a program whose temporaries are of so many rows of 32 KiB."""
    shapes = [st.ShapeDtypeStruct(shape, "float32") for shape in ((rows, 2), (2, 8192))]
    return st.explain(lambda x, y: abs(x @ y) @ snp.sin(y.T), *shapes)


@pytest.mark.skipif(not memory.is_glibc(), reason="the C library is not glibc")
def test_large_temporaries_are_mapped_anew_unless_memory_is_kept(monkeypatch):
    report = wide(2048)
    assert report.memory.mapped == report.memory.temporaries >= 64 << 20
    assert [line for line in report.lines() if "config.keep_memory" in line] == [
        "pages: 67.2 MB may be mapped anew at each call; config.keep_memory, set first, keeps them"
    ]
    small = wide(512)
    assert small.memory.mapped == 0 < small.memory.temporaries
    assert "keep_memory" not in str(small)
    monkeypatch.setitem(config._values, "keep_memory", True)  # which this process cannot set
    kept = wide(2048)
    assert kept.memory.mapped == 0 and "keep_memory" not in str(kept)


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_the_size_from_which_on_memory_is_mapped_anew(monkeypatch, more):
    size = memory.ALWAYS_MAPPED + more
    stats = types.SimpleNamespace(
        argument_size_in_bytes=1, output_size_in_bytes=2, temp_size_in_bytes=size,
        alias_size_in_bytes=0,
    )  # fmt: skip
    monkeypatch.setattr(explain, "is_glibc", lambda: True)
    monkeypatch.setattr(explain, "temporaries_at_peak", lambda executable: ())
    found = explain.memory_of(types.SimpleNamespace(memory_analysis=lambda: stats))
    assert found.mapped == (size if more >= 0 else 0) and found.peak == size + 3


def test_the_lines_with_most_bytes_come_first(monkeypatch):
    """However many arrays that is."""
    stats = types.SimpleNamespace(
        argument_size_in_bytes=0, output_size_in_bytes=0, temp_size_in_bytes=0,
        alias_size_in_bytes=0,
    )  # fmt: skip
    arrays = [("b.py", 7, 10), ("a.py", 3, 100), ("b.py", 7, 20), ("b.py", 7, 5), ("", 0, 50)]
    made = [types.SimpleNamespace(file=f, line=n, bytes=size) for f, n, size in arrays]
    monkeypatch.setattr(explain, "temporaries_at_peak", lambda executable: made)
    found = explain.memory_of(types.SimpleNamespace(memory_analysis=lambda: stats))
    assert [one[1:] for one in found.largest] == [(100, 1), (50, 1), (35, 3)]


def test_nothing_is_advised_that_the_c_library_cannot_do(monkeypatch):
    monkeypatch.setattr(memory.platform, "libc_ver", lambda: ("", ""))
    assert wide(2048).memory.mapped == 0
