"""Where the time of a function goes, by line."""

import importlib.util

import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.api.explain import profile

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
