"""Where the time of a function goes, by line."""

import importlib.util
import types

import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.api.explain import profile
from stretto._engine.api.explain.explain import Memory
from stretto._engine.api.explain.profile import LineProfile, Profile

N = 192


def layer(w, x):
    y = x @ w
    y = snp.sort(y)
    return snp.tanh(y).sum(0)


FIRST = layer.__code__.co_firstlineno


@pytest.fixture(scope="module")
def report():
    return st.profiler.profile(layer, snp.ones((N, N)), snp.ones((N, N)))


def test_a_table_by_line(report):
    by_line = {int(one.line.rsplit(":", 1)[1]): one for one in report.lines if ":" in one.line}
    product = by_line[FIRST + 1]
    assert product.flops == 2 * N**3
    assert product.seconds > 0
    assert product.kernels == 1
    assert product.bytes == 3 * 4 * N * N
    assert product.share > 0
    assert by_line[FIRST + 3].flops == 2 * N * N  # each hyperbolic tangent, and each sum
    seconds = [one.seconds for one in report.lines]
    assert seconds == sorted(seconds, reverse=True)


def test_the_whole(report):
    assert report.function == "layer"
    assert report.seconds > 0
    assert min(report.trace_seconds, report.lower_seconds, report.compile_seconds) > 0
    assert report.memory.arguments == 2 * 4 * N * N
    times = [t for t, _, _ in report.timeline]
    assert times == sorted(times)
    assert all(n >= report.memory.arguments for _, n, _ in report.timeline)
    text = str(report)
    assert "of limit" in text.splitlines()[1]
    assert f"test_profile.py:{FIRST + 1}" in text


def test_each_of_its_parts_ends_where_the_next_begins(monkeypatch):
    """Tracing, lowering and compiling end at these seconds."""
    ticks = iter([10.0, 11.0, 13.0, 17.0])
    clock = types.SimpleNamespace(perf_counter=lambda: next(ticks))
    monkeypatch.setattr(profile, "time", clock)
    monkeypatch.setattr(profile, "_seconds", lambda run: 0.5)
    report = st.profiler.profile(snp.sin, snp.ones(N))
    seconds = report.trace_seconds, report.lower_seconds, report.compile_seconds
    assert (*seconds, report.seconds) == (1.0, 2.0, 4.0, 0.5)


def test_donated_arguments_are_kept():
    x = snp.ones(N)
    f = st.jit(lambda x: x + 1, donate_argnums=0)
    assert st.profiler.profile(f, x).seconds > 0
    assert float(x[0]) == 1


def test_mistakes():
    with pytest.raises(TypeError, match="profile: expected a function, got int"):
        st.profiler.profile(3)


@pytest.mark.parametrize(
    "seconds, words",
    [(2.5, "2.5 s"), (1e-3, "1 ms"), (0.999e-3, "999 us"), (1e-6, "1 us"), (5e-9, "5 ns")],
)
def test_times_in_words(seconds, words):
    assert profile._time(seconds) == words


def test_a_picture(report, tmp_path):
    if importlib.util.find_spec("matplotlib") is None:
        with pytest.raises(ImportError, match="pip install matplotlib"):
            report.plot()
        return
    figure = report.plot(str(tmp_path / "profile.png"))
    assert [axes.get_xlabel() for axes in figure.axes] == ["ms in kernels", "ms"]
    seconds = profile._time(report.seconds)
    assert figure.axes[0].get_title() == f"{report.function}: {seconds} a call"
    assert (tmp_path / "profile.png").stat().st_size > 1000


# What is printed and drawn of a profile with known figures.

MEMORY = Memory(3_000_000, 2_000_000, 5_000_000, 1_000_000, (), 0)


def made(count):
    """A profile of so many lines, each of which takes a millisecond less than the one before."""
    lines = [
        LineProfile(f"f.py:{k}", 0.001 * (count - k), 2, 4e6, 1500, 0.25) for k in range(count - 1)
    ]
    lines.append(LineProfile("f.py:99", 0.0, 0, 10.0, 0, None))
    timeline = ((0.002, 7_000_000, "f.py:0"), (0.004, 4_000_000, "f.py:1"))
    return Profile("f", 0.25, 0.001, 0.002, 1.5, tuple(lines), MEMORY, timeline)


def test_a_table_in_words():
    assert str(made(3)).splitlines() == [
        "f: 250 ms a call, 5 ms of it in kernels; compiled in 1.5 s, traced in 1 ms, lowered in "
        "2 ms",
        " time  share  kernels  operations  read, written  of limit  line",
        " 3 ms    60%        2         4 M         1.5 kB       25%  f.py:0",
        " 2 ms    40%        2         4 M         1.5 kB       25%  f.py:1",
        "fused     0%        0          10        0 bytes            f.py:99",
        "memory: 9.0 MB at most, 5.0 MB of temporaries",
    ]


def test_twenty_lines_are_printed():
    assert "more lines" not in str(made(20))
    cut = str(made(23)).splitlines()
    assert len(cut) == 24 and cut[-2] == "and 3 more lines" and cut[-3].endswith("f.py:19")


@pytest.mark.skipif(not importlib.util.find_spec("matplotlib"), reason="it is not installed")
def test_what_is_drawn():
    """The ten lines that take longest, that first from the top, and the memory over time."""
    figure = made(12).plot()
    upper, lower = figure.axes
    bars = [(bar.get_width(), bar.get_y()) for bar in upper.patches]
    assert [width for width, _ in bars] == pytest.approx([*range(3, 13)])
    assert bars == sorted(bars, key=lambda bar: bar[1])
    assert [label.get_text() for label in upper.get_yticklabels()][-1] == "f.py:0"
    (steps,) = lower.get_lines()
    assert steps.get_xdata() == pytest.approx([0, 2, 4])
    assert steps.get_ydata() == pytest.approx([3, 7, 4])
    assert steps.get_drawstyle() == "steps-post"
    assert (lower.get_xlabel(), lower.get_ylabel()) == ("ms", "MB in use")
    assert tuple(figure.get_size_inches()) == (9, 6)
    assert figure.get_layout_engine() is not None


def test_a_function_is_run_about_a_dozen_times():
    """Once, five times without the profiler, and five times with it, after one that warms up."""
    runs = []

    def f(x):
        st.debug.callback(lambda: runs.append(1))
        return x + 1

    st.profiler.profile(f, snp.ones(3))
    assert 11 <= len(runs) <= 12


@pytest.mark.parametrize("setting", ["interpret_small", "tiers", "disk_cache"])
def test_it_is_compiled_anew_and_in_full_whatever_the_settings(setting):
    settings = []

    def f(x):
        settings.append(getattr(st.config, setting))
        return x + 1

    with st.config(**{setting: True}):
        (line,) = st.profiler.profile(f, snp.ones(3)).lines
    assert line.kernels >= 1, "what is interpreted has none"
    assert settings == [False]


def test_the_call_of_middling_length_is_shown(monkeypatch, report):
    """By what its kernels took, but for those that hold others."""
    took = {(2,): (0.003, 0.1), (3,): (0.001, 0.9), (4,): (0.002, 0.5)}
    calls = [
        [
            kernel(number, own, 8),
            kernel(number, holding, 8, contains=True),
        ]
        for (number,), (own, holding) in took.items()
    ]
    monkeypatch.setattr(profile, "kernels_of", lambda executable, run, rounds: calls)
    monkeypatch.setattr(profile, "memory_over_time", lambda executable, middle: ())
    found = st.profiler.profile(lambda x: x * 2, snp.ones(3))
    assert [(one.line, one.seconds) for one in found.lines if one.seconds] == [("f.py:4", 0.002)]


# What is made of kernels with known figures, on a computer with known limits.


def kernel(line, seconds, bytes, contains=False, file="f.py"):
    return types.SimpleNamespace(
        file=file, line=line, seconds=seconds, bytes=bytes, contains=contains
    )


@pytest.fixture
def limits(monkeypatch):
    found = types.SimpleNamespace(flops=1e9, bytes=1e8)
    monkeypatch.setattr(profile, "limits_of", lambda: found)


def test_the_share_of_a_limit_is_that_of_the_nearer_one(limits):
    """Of 1e9 operations, or of 1e8 bytes, in a second."""
    program = st.make_graph(lambda x: x @ x)(snp.ones((100, 100)))
    position = program.equations[0].position
    for bytes, share in ((10, 0.2), (5 * 10**5, 0.5)):
        own = [
            kernel(position.line, 0.004, bytes, file=position.file),
            kernel(position.line, 0.006, 0, file=position.file),
        ]
        (found,) = profile._lines(program, own)
        assert (found.flops, found.kernels, found.bytes) == (2e6, 2, bytes)
        assert found.seconds == pytest.approx(0.01) and found.share == pytest.approx(share)


def test_kernels_that_hold_others_are_not_counted_and_lines_without_one_are(limits):
    program = st.make_graph(lambda x: snp.sin(x.sum()))(snp.ones(5))
    position = program.equations[0].position
    total = profile._line(position.file, position.line)
    kernels = [
        kernel(1, 0.5, 8, True),
        kernel(1, 0.25, 8),
        kernel(2, 0.5, 8),
        kernel(3, 1, 2, file=""),
    ]
    found = profile._lines(program, kernels)
    assert [(one.line, one.seconds) for one in found] == [
        (profile._UNKNOWN, 1),
        ("f.py:2", 0.5),
        ("f.py:1", 0.25),
        (total, 0),
    ]
    assert [one.flops for one in found] == [0, 0, 0, 5 + 1]
    assert found[-1].share is None


@pytest.mark.parametrize(
    ("f", "shapes", "flops"),
    [
        (snp.sin, [(3, 4)], 12),
        (lambda x, y: x * y, [(3, 4), (3, 4)], 12),
        (lambda x, y: x @ y, [(3, 4), (4, 5)], 2 * 3 * 4 * 5),
        (lambda x: x.sum(0), [(3, 4)], 12),
        (lambda x: x.max(), [(3, 4)], 12),
        (lambda x: x.T, [(3, 4)], 0),
        (lambda x: x[1:], [(3, 4)], 0),
    ],
)
def test_operations_on_numbers(f, shapes, flops):
    equation = st.make_graph(f)(*map(snp.ones, shapes)).equations[-1]
    assert profile._flops(equation) == flops


@pytest.mark.parametrize(
    ("number", "words"),
    [(999, "999"), (1e3, "1 k"), (2.5e6, "2.5 M"), (1e9, "1 G"), (999e9, "999 G"), (3e12, "3 T")],
)
def test_numbers_in_words(number, words):
    assert profile._count(number) == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(1.0, "1 s"), (0.999, "999 ms"), (0.999e-6, "999 ns"), (0, "0 ns")]
)
def test_a_unit_begins_at_one(seconds, words):
    assert profile._time(seconds) == words


def test_a_run_takes_the_seconds_between_its_two_ends(monkeypatch):
    ticks = iter([10.0, 12.5])
    monkeypatch.setattr(profile, "time", types.SimpleNamespace(perf_counter=lambda: next(ticks)))
    assert profile._seconds(lambda: None) == 2.5
