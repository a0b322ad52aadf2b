"""The text of arrays: NumPy's, in few lines."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.xla.printing import MOST_LINES, brief_text, sample_of, text_of


@pytest.mark.parametrize(
    "shape",
    [(), (0,), (0, 3), (5,), (1000,), (10**6,), (500, 2), (39, 2), (41, 1), (10, 10, 10)]
    + [(8,) * n for n in range(2, 8)]
    + [(32, 3, 224, 224), (1, 999, 1), (2,) * 12],
)
@pytest.mark.parametrize("dtype", ["float32", "complex64", "bool"])
def test_at_most_forty_lines(shape, dtype):
    x = snp.zeros(shape, dtype)
    text = repr(x)
    assert text.count("\n") < 40 and len(text) < 4000
    assert text.startswith("Array(") and text.endswith(f"dtype={dtype})")
    if "..." in text:
        assert f"shape={shape}" in text


def test_small_arrays_are_numpys():
    for shape in [(20, 3), (60,)]:
        host = np.arange(60.0, dtype=np.float32).reshape(shape)
        expected = repr(host.astype(np.float64))[len("array(") : -1].split()
        assert repr(snp.array(host))[len("Array(") :].split() == [
            *expected[:-1],
            f"{expected[-1]},",
            "dtype=float32)",
        ]


def test_both_ends_are_shown():
    text = repr(snp.arange(100).reshape(50, 2))
    assert "[ 0,  1]" in text and "[98, 99]" in text and "...," in text
    deep = snp.arange(8**5).reshape((8,) * 5)
    expected = "Array(0, 1, 2, ..., 32765, 32766, 32767, shape=(8, 8, 8, 8, 8), dtype=int32)"
    assert repr(deep) == expected


@pytest.mark.parametrize("shape", [(1001,), (7, 999), (8, 1, 200), (2, 2, 3000), (30, 40)])
@pytest.mark.parametrize("dtype", ["float32", "int32", "complex64"])
def test_large_arrays_are_numpys(shape, dtype):
    host = np.random.default_rng(0).normal(0, 100, shape).astype(dtype)
    expected = np.array2string(host, separator=", ", prefix="Array(")
    assert repr(snp.array(host)) == f"Array({expected}, shape={shape}, dtype={dtype})"


@pytest.mark.devices
def test_large_arrays_on_devices_are_not_put_together():
    host = np.arange(800 * 640, dtype=np.float32).reshape(800, 640)
    mesh = st.make_mesh((2, 4), ("x", "y"))
    for spec in (st.P("x", "y"), st.P("y"), st.P()):
        x = st.device_put(host, st.sharding.NamedSharding(mesh, spec))
        assert repr(x) == repr(snp.array(host)) and x._host is None


def test_str_and_settings_show_all():
    x = snp.arange(100)[:, None]
    assert str(x) == str(np.arange(100)[:, None]) and str(x).count("\n") == 99
    with np.printoptions(threshold=10**6):
        assert repr(x).count("\n") == 99
    with np.printoptions(edgeitems=2, threshold=5):
        assert repr(x).count("\n") == 4
    assert snp.array_repr(x).count("\n") == 99


def test_weak_types():
    x = snp.asarray(2.0)
    weak = st.jit(lambda: 2.0)()
    assert repr(weak) == "Array(2., dtype=float32, weak_type=True)"
    assert repr(x) == "Array(2., dtype=float32, weak_type=True)"


def test_arrays_that_are_gone():
    x = snp.ones((2, 3))
    x.delete()
    assert repr(x) == "<Array float32[2,3], deleted>" and repr([x]) == f"[{x!r}]"
    y = snp.ones(3)

    def step(y):
        return y + 1

    st.jit(step, donate_argnums=0)(y)
    assert repr(y) == "<Array float32[3], donated to step>"
    for convert in (str, np.asarray, list):
        with pytest.raises(st.errors.DonatedArrayError):
            convert(y)


# Samples of arrays: evenly spread, and of any dtype.


@pytest.mark.parametrize("shape", [(), (7,), (64, 64), (3, 4, 5), (0,), (3, 0, 2), (4096,)])
def test_small_arrays_are_taken_whole(shape):
    host = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    sample = sample_of(snp.array(host))
    assert sample.whole and sample.known.all()
    np.testing.assert_array_equal(sample.values, host)


@pytest.mark.parametrize(
    "shape", [(10**6,), (1000, 1000), (2, 10**6), (10**6, 2), (1, 1, 10**5), (50,) * 3, (9,) * 6]
)
def test_large_ones_by_elements_evenly_spread(shape):
    host = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    sample = sample_of(snp.array(host))
    assert not sample.whole and 500 < sample.values.size <= 4096
    assert (np.diff(sample.values.ravel()) > 0).all()
    middle, spread = sample.values.mean(), sample.values.std()
    # The middles of three stretches have a sixth less spread than what they stand for.
    assert abs(middle / host.mean() - 1) < 0.02 and abs(spread / host.std() - 1) < 0.17


@pytest.mark.parametrize("axes", [12, 13, 14, 20])
def test_of_many_short_axes_some_are_taken_at_one_place(axes):
    assert sample_of(snp.zeros((2,) * axes, np.int8)).values.size == 4096


@pytest.mark.filterwarnings("ignore:dtype .*64 was asked for")
@pytest.mark.parametrize(
    "dtype", ["bool", "int4", "uint4", "int8", "int64", "bfloat16", "float8_e5m2", "float16"]
)
def test_dtypes(dtype):
    x = snp.array([0, 1, 1]).astype(getattr(snp, dtype, dtype))
    assert sample_of(x).values.tolist() == [0, 1, 1]


def test_complex_numbers_by_modulus():
    assert sample_of(snp.array([3 + 4j, -1])).values.tolist() == [5, 1]


@pytest.mark.parametrize(
    "shape",
    [(3, 7, 2), (4, 7, 1), (5, 7, 1), (4, 8, 3), (5, 8, 1), (2, 2, 7, 1), (2, 3, 7, 2), (8, 8, 1),
     (39, 1), (41, 1), (3, 4, 5, 2), (12, 12, 12, 1), (2, 2, 2, 2, 2, 2)],
    ids=str,
)  # fmt: skip
def test_as_much_is_shown_as_there_are_lines_for(shape):
    """All elements, or else three, two or one at both ends of each axis."""
    x = snp.zeros(shape)
    texts = [text_of(x.to_host(), x.type, edge=edge) for edge in (None, 3, 2, 1)]
    fits = [text for text in texts if text.count("\n") < MOST_LINES]
    if fits:
        assert brief_text(x) == fits[0]
    else:
        assert "\n" not in brief_text(x)


def test_a_broadcast_takes_no_memory():
    x = snp.zeros((10**5, 10**5), "int8")  # 10 GB, if it were made
    assert sample_of(x).values.size == 4096


@pytest.mark.devices
@pytest.mark.parametrize("spec", [("x",), (None, "x"), (), (("x", "y"),), ("y", "x")])
def test_parts_on_devices(spec):
    mesh = st.make_mesh((2, 4), ("x", "y"))
    host = np.arange(800 * 640, dtype=np.float32).reshape(800, 640)
    x = st.device_put(host, st.sharding.NamedSharding(mesh, st.P(*spec)))
    sample = sample_of(x)
    assert x._host is None, "it was put together"
    np.testing.assert_array_equal(sample.values, sample_of(snp.array(host)).values)
    assert sample.known.all()
