"""What notebooks and terminals show of arrays."""

from types import SimpleNamespace

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.cards import Card, bars, curve
from stretto._engine.core.types import array_type
from stretto._engine.xla import printing
from stretto._engine.xla.device import Device
from tests.pages import page_of, printed, text_in


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (3.0, ["float32[]", "3.0", "weak"]),
        ([1.0, np.nan, np.inf], ["float32[3]", "1 NaN, 1 infinite", "12 bytes"]),
        ([np.nan, np.nan], ["2 NaN"]),
        ([], ["no elements"]),
        ([[True, False]], ["bool[1,2]", "mean 0.5"]),
        ([3 + 4j, 0], ["complex64[2]", "modulus, least 0", "greatest 5"]),
        ([[1, 2], [3, 4]], ["int32[2,2]", "least 1, mean 2.5, greatest 4"]),
        ([[[1, 2], [3, 4]]] * 3, ["int32[3,2,2]"]),
    ],
    ids=str,
)
def test_values(x, words):
    text = text_in(snp.array(x) if not isinstance(x, float) else snp.asarray(x))
    for word in words:
        assert word in text
    assert printed(snp.array(x)).startswith("Array ")


def test_values_are_folded_away():
    (values,) = [item for item in printing.card_of(snp.ones((2, 3))).body if isinstance(item, Card)]
    assert (values.title, values.open, len(values.body)) == ("values", False, 2)


@pytest.mark.parametrize("dtype", ["bfloat16", "int4", "float8_e4m3fn", "float16", "uint8"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 3, 4), (0, 2), (5000,), (300, 200)])
def test_dtypes_and_shapes(dtype, shape):
    x = snp.ones(shape, getattr(snp, dtype))
    html = page_of(x)
    pictured = x.size > 1
    assert pictured == ("<svg" in html or "<img" in html)
    assert printed(x).count("\n") <= 45


def test_pictures_by_the_number_of_axes():
    assert (
        "<path" in page_of(snp.arange(9.0)) and "z" not in page_of(snp.arange(9.0)).split('d="')[1]
    )
    assert "h5.1V48z" in page_of(snp.arange(9000.0))
    assert "<img" in page_of(snp.ones((3, 1, 5)))
    assert "of a sample of 4,096" in text_in(snp.ones((200, 200)))


def test_large_arrays_are_not_printed():
    x = snp.zeros((10**5, 10**5), "int8")  # 10 GB, if it were made
    html = page_of(x)
    assert "10.0 GB" in html and len(html) < 5000 and "<b>values</b>" not in html


def test_extremes_do_not_overflow():
    with np.errstate(all="raise"):
        text = text_in(snp.array([3e38, -3e38, 3e38], np.float32))
    assert "mean 1e+38" in text


def test_arrays_that_are_gone():
    x = snp.ones(3)
    st.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert "donated to" in text_in(x) and "donated to" in printed(x)
    y = snp.ones(3)
    y.delete()
    assert "deleted" in text_in(y)


def test_traced_values_are_text():
    @st.jit
    def f(x):
        assert not hasattr(x, "_repr_html_") and repr(x) == "<traced float32[3]>"
        return x

    f(snp.ones(3))


@pytest.mark.devices
def test_arrays_on_devices():
    mesh = st.make_mesh((8,), ("x",))
    host = np.arange(6400.0, dtype=np.float32).reshape(80, 80)
    for spec in (st.P("x"), st.P(), st.P(None, "x")):
        x = st.device_put(host, st.sharding.NamedSharding(mesh, spec))
        html = page_of(x)
        assert "NamedSharding" in html and "<img" in html and x._host is None
    x.delete()
    assert "deleted" in text_in(x) and repr(x) == "<Array float32[80,80], deleted>"


def test_how_many_elements_are_sampled():
    """At most 4,096, spread evenly: all of short axes."""
    whole, part = (printing.sample_of(snp.arange(float(n))) for n in (4096, 4097))
    assert whole.whole and not part.whole
    assert whole.values.tolist() == [*range(4096)] and part.values.size == 4096
    matrix = printing.sample_of(snp.zeros((3, 5000)))
    assert matrix.values.shape == (3, 1365)


def test_rows_of_400_values_are_drawn_one_by_one():
    assert printing._picture(printing.sample_of(snp.zeros(400))) == curve(np.zeros(400))
    assert printing._picture(printing.sample_of(snp.zeros(401))) == bars(np.zeros(401))


@pytest.mark.parametrize(("size", "is_fetched"), [(1 << 22, True), ((1 << 22) + 1, False)])
def test_sixteen_mebibytes_are_fetched_from_a_gpu(monkeypatch, size, is_fetched):
    far = SimpleNamespace(device_list=[Device("gpu", 0)], indices=lambda shape: [(slice(None),)])
    monkeypatch.setattr(printing, "sharding_if_any", lambda x: far)
    type = array_type((size,), np.dtype(np.float32))
    x = SimpleNamespace(type=type, _host=None, parts=lambda: [np.zeros(size, np.float32)])
    assert (printing.sample_of(x) is not None) is is_fetched
