"""Every public function: like NumPy's, compiled as eager, vmapped as looped, derived, strict.

`table.py` says how; the entries are in `entries/`.
"""

import importlib
import pkgutil

import pytest

from tests.functions import checks, entries, table

for _, name, _ in pkgutil.iter_modules(entries.__path__):
    importlib.import_module(f"tests.functions.entries.{name}")


def having(reason):
    return [name for name, e in sorted(table.ENTRIES.items()) if not getattr(e, reason)]


@pytest.mark.parametrize("name", having("unlike"))
def test_values(name):
    checks.check_values(table.ENTRIES[name])


@pytest.mark.parametrize("name", having("uncompiled"))
def test_compiled(name):
    checks.check_compiled(table.ENTRIES[name])


@pytest.mark.parametrize("name", having("unmapped"))
def test_vmapped(name):
    checks.check_vmapped(table.ENTRIES[name])


@pytest.mark.parametrize("name", having("undifferentiated"))
def test_gradients(name):
    checks.check_gradients(table.ENTRIES[name])


@pytest.mark.parametrize("name", sorted(table.ENTRIES))
def test_settings(name):
    checks.check_settings(table.ENTRIES[name])


# Of these the programs take minutes to compile (special functions, factorizations), or sum in
# another order, which shows where sums overflow or cancel (transforms).
APART = ("random.", "special.", "scipy.", "lax.linalg.", "numpy.linalg.", "numpy.fft.", "lax.fft")
PADDED = {"numpy.convolve", "numpy.correlate"}
"""Compiled, what pads is multiplied by the other operand, which makes NaN of infinities there."""

AT_EDGES = [
    name
    for name in having("uncompiled")
    if not (name.startswith(APART) or name in PADDED or table.ENTRIES[name].costly)
    and "f32" in table.ENTRIES[name].dtypes
]


@pytest.mark.parametrize("start", range(0, len(AT_EDGES), 40))
def test_edges(start):
    checks.check_edges([table.ENTRIES[name] for name in AT_EDGES[start : start + 40]])


@pytest.mark.parametrize("name", having("narrowed"))
def test_wide_integers(name):
    checks.check_wide_integers(table.ENTRIES[name])
