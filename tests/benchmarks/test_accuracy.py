"""Functions are as exact as `benchmarks/accuracy.py` states, in the tables that need no minute."""

import functools
from pathlib import Path

import numpy as np
import pytest

import stretto as st
from benchmarks import accuracy
from stretto.laws import FULLY

QUICK = ("erf", "erfc", "digamma", "gamma", "gammaln", "zeta")
TITLE = lambda table: f"{table.function}-{table.data}"
ROOT = Path(__file__).parent.parent.parent
GLIBC = {"arccosh": 2, "arctanh": 2, "cbrt": 4, "log10": 2, "sinh": 2}
"""Known errors in units in the last place, as glibc's manual has them for float64 on x86-64.

NumPy calls these functions where the processor has no 512-bit vectors, and others elsewhere.
"""


@pytest.fixture(autouse=True)
def as_users_compile(monkeypatch):
    monkeypatch.setattr(st, "jit", functools.partial(st.jit, compiler_options=FULLY))


@pytest.mark.parametrize("dtype", accuracy.DTYPES)
@pytest.mark.parametrize("name", accuracy.ELEMENTARY)
def test_elementary_functions(name, dtype):
    row = accuracy.elementary(name, dtype)
    assert row.rows > 100
    assert not accuracy.broken(row), row


@pytest.mark.parametrize("dtype", accuracy.DTYPES)
@pytest.mark.parametrize("name", accuracy.ELEMENTARY)
def test_enough_numbers_are_drawn_of_each_domain(name, dtype):
    """As many as make XLA take its other kernels; NumPy's values there are near the right ones."""
    x, right = accuracy.drawn(name, dtype)
    assert x.size == right.size == 65_537
    near = getattr(np, name)(x)
    bound = max(accuracy.validation(name, dtype)[2], GLIBC.get(name, 0))
    assert np.max(accuracy.ulps(near, right)) <= bound


def test_an_eager_error_is_held_to_its_own_bound():
    row = accuracy.Row("f", "float64", 1, 0, 2.0, 2.0, bound=3, eager_bound=1, drawn=2.0)
    assert accuracy.broken(row)
    assert not accuracy.broken(row._replace(eager=1.0))
    assert accuracy.broken(row._replace(eager=1.0, drawn=4.0))


@pytest.mark.parametrize("table", [t for t in accuracy.SPECIAL if t.function in QUICK], ids=TITLE)
def test_special_functions(table):
    row = accuracy.of_table(table, "float64")
    assert row.rows > 10
    assert not accuracy.broken(row), row


def test_units_in_the_last_place():
    one, tiny = np.float64([1, -1, 0, np.nan, 1, np.inf]), np.finfo(np.float64).smallest_subnormal
    other = np.array([np.nextafter(1, 2), np.nextafter(-1, 0), -tiny, np.nan, np.nan, np.inf])
    np.testing.assert_array_equal(accuracy.ulps(one, other), [1, 1, 1, 0, np.inf, 0])


def test_the_page_is_of_this_table():
    """Each bound is in the page, so the page was written since."""
    text = (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8")
    for (name, dtype), bound in accuracy.COMPILED.items():
        assert any(
            line.startswith(f"| {name} | {dtype} |") and line.endswith(f"| **{bound}** |")
            for line in text.splitlines()
        ), (name, dtype)
    for table in accuracy.SPECIAL:
        assert f"| {table.function} ({table.data.removeprefix('test_')}) | float64 |" in text
