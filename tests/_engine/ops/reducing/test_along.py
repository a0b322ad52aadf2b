"""What goes along an axis as calls of kernels: where there are any, and where there are none."""

from typing import Any

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.kernels import WITHOUT
from stretto._engine.ops.reducing.along import TOP, WORTH

pytestmark = pytest.mark.skipif(bool(WITHOUT), reason=f"there are no kernels: {WITHOUT}")


def called(function, *types):
    """How many calls of these kernels the program has for arguments of such shapes and dtypes."""
    arguments = [st.ShapeDtypeStruct(*type) for type in types]
    jitted: Any = st.jit(function)
    text = jitted.lower(*arguments).as_text()
    return sum(
        [text.count(f'call_target_name = "stretto_{name}') for name in ("along_axis", "top_k")]
    )


RUNNING = {name: getattr(lax, name) for name in ("cumsum", "cumprod", "cummax", "cummin")}
PLACES = {name: getattr(lax, name) for name in ("argmax", "argmin")}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [*RUNNING, *PLACES])
def test_one_call_for_floats(name, dtype):
    f = {**RUNNING, **PLACES}[name]
    with st.enable_x64():
        for axis in (0, 1, 2):
            assert called(lambda x: f(x, axis), ((40, 30, 50), dtype)) == 1  # noqa: B023
        with st.config(kernels=False):
            assert called(lambda x: f(x, 0), ((40,), dtype)) == 0


def test_one_call_for_all_members():
    for f in (lambda x: lax.cumsum(x, 0), lambda x: lax.argmax(x, 0), lambda x: lax.top_k(x, 3)):
        for axis in (0, 1):
            assert called(st.vmap(f, in_axes=axis), ((90, 80), np.float32)) == 1


def test_integers_are_added_up_and_no_more():
    with st.enable_x64():
        for dtype in ("int32", "uint32", "int64", "uint64"):
            assert called(lambda x: lax.cumsum(x, 0), ((40,), dtype)) == 1
    for name in ("cumprod", "cummax", "cummin", "argmax"):
        assert called(lambda x: getattr(lax, name)(x, 0), ((40,), "int32")) == 0  # noqa: B023
    assert called(lambda x: lax.top_k(x, 3), ((40,), "int32")) == 0
    assert called(lambda x: lax.cumsum(x, 0), ((40,), "int8")) == 0


def test_narrow_floats_are_widened_before():
    for name in RUNNING:
        f = lambda x: getattr(lax, name)(x, 0)  # noqa: B023
        assert called(f, ((40,), "bfloat16")) == 1
        x = np.ones(40, np.float16)
        np.testing.assert_array_equal(st.jit(f)(x), f(x))


def test_short_axes_are_xlas_however_many_lines_there_are():
    for name in (*RUNNING, *PLACES):
        f = lambda x: getattr(lax, name)(x, 1)  # noqa: B023
        assert called(f, ((3000, WORTH), np.float32)) == 1
        assert called(f, ((3000, WORTH - 1), np.float32)) == 0


def test_many_greatest_are_xlas():
    assert called(lambda x: lax.top_k(x, 1), ((3000, 1), np.float32)) == 1
    assert called(lambda x: lax.top_k(x, TOP), ((2, 3000), np.float32)) == 1
    assert called(lambda x: lax.top_k(x, TOP + 1), ((2, 3000), np.float32)) == 0


def test_recurrences_of_derivatives():
    assert called(st.grad(lambda x: snp.sum(lax.cumprod(x, 0))), ((90,), np.float32)) == 2
    assert called(lambda x: lax.cumlogsumexp(x, 0), ((90,), np.float32)) == 2


def test_axes_of_any_size_have_no_kernel():
    file = st.export.stablehlo(lambda x: lax.cumsum(x, 0), snp.ones(40), dynamic_axes=({0: "n"},))
    np.testing.assert_array_equal(file(np.ones(5, np.float32)), np.arange(1, 6))


def test_nothing_is_called_for_no_lines():
    for f in (lambda x: lax.argmax(x, 1), lambda x: lax.cumsum(x, 1), lambda x: lax.top_k(x, 3)):
        assert called(f, ((0, 90), np.float32)) == 0
