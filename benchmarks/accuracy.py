"""How far functions are from the right value, eagerly and compiled: writes `docs/accuracy.md`.

Run by `make accuracy`, or by hand:

    python -m benchmarks.accuracy

The elementary functions are held to the rows of NumPy's own validation set, which come with NumPy
and state a bound for each function, and, compiled, to NumPy's wider type at numbers drawn at
random; special functions to the tables of Boost that come with SciPy.
A function and dtype are one program, compiled once.
"""

from __future__ import annotations

import argparse
import importlib.resources
import platform
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto import special

__all__ = [
    "COMPILED",
    "ELEMENTARY",
    "SPECIAL",
    "Row",
    "Table",
    "broken",
    "drawn",
    "elementary",
    "main",
    "of_table",
]

TARGET = Path(__file__).parent.parent / "docs" / "accuracy.md"
DTYPES = ("float32", "float64")

ELEMENTARY = (
    "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "cbrt", "cos", "cosh", "exp",
    "exp2", "expm1", "log", "log10", "log1p", "log2", "sin", "sinh", "tan", "tanh",
)  # fmt: skip

COMPILED: dict[tuple[str, str], int] = {
    ("arccosh", "float32"): 4,
    ("arccosh", "float64"): 4,
    ("arcsin", "float64"): 2,
    ("arcsinh", "float32"): 3,
    ("arcsinh", "float64"): 3,
    ("arctanh", "float32"): 3,
    ("arctanh", "float64"): 3,
    ("cbrt", "float64"): 3,
    ("cosh", "float64"): 3,
    ("exp", "float32"): 5,
    ("exp", "float64"): 2,
    ("expm1", "float32"): 6,
    ("expm1", "float64"): 5,
    ("log10", "float64"): 3,
    ("log1p", "float64"): 2,
    ("sinh", "float32"): 6,
    ("sinh", "float64"): 4,
    ("tanh", "float32"): 5,
    ("tanh", "float64"): 7,
}
"""The bound of compiled functions, in units in the last place, where it is not NumPy's.

The worst that was seen in millions of numbers, of jaxlib 0.10.2 and 0.12.0.
"""


class Table(NamedTuple):
    """A table of a special function: where its arguments and values are, and the stated bound."""

    function: str
    data: str
    columns: tuple[int, ...]
    value: int
    bound: float
    """Of the relative error in float64. Arguments in the table are rounded: where a function is
    steep that alone is the error."""
    narrow: float = 2.0**-23
    """The same of float32, against the right value for the float32 argument."""
    apply: Callable[..., Any] | None = None
    """What to call, where it is not the function with the columns as arguments."""

    @property
    def call(self) -> Callable[..., Any]:
        """The function of the columns."""
        return self.apply or getattr(special, self.function)


def _nth(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose first argument, of whole numbers, is an integer."""
    return lambda n, *rest: function(n.astype(int), *rest)


def _after(z: Any, delta: Any) -> Any:
    """1 over the rising factorial, as the table has it."""
    return 1 / special.poch(z, delta)


SPECIAL = (
    Table("erf", "erf_data", (0,), 1, 1e-15, narrow=2.0**-22),
    Table("erfc", "erf_data", (0,), 2, 6e-15, narrow=4e-6),
    Table("erfc", "erf_large_data", (0,), 2, 4e-14, narrow=4e-6),
    Table("erfinv", "erf_inv_data", (0,), 1, 1e-13, narrow=2.0**-21),
    Table("gamma", "test_gamma_data_ipp-near_0", (0,), 1, 5e-15),
    Table("gamma", "test_gamma_data_ipp-near_m10", (0,), 1, 1e-14),
    Table("gamma", "test_gamma_data_ipp-near_m55", (0,), 1, 7e-12),
    Table("gamma", "test_gamma_data_ipp-factorials", (0,), 1, 4e-14),
    Table("gammaln", "test_gamma_data_ipp-near_1", (0,), 2, 1e-13),
    Table("gammaln", "test_gamma_data_ipp-near_2", (0,), 2, 1e-13),
    Table("gammaln", "test_gamma_data_ipp-near_m10", (0,), 2, 5e-11),
    Table("gammaln", "test_gamma_data_ipp-factorials", (0,), 2, 2e-15),
    Table("digamma", "digamma_data", (0,), 1, 2e-15),
    Table("digamma", "digamma_neg_data", (0,), 1, 2e-13),
    Table("digamma", "digamma_root_data", (0,), 1, 1e-15),
    Table("digamma", "digamma_small_data", (0,), 1, 1e-15),
    Table("gammainc", "igamma_small_data", (0, 1), 5, 5e-15),
    Table("gammainc", "igamma_med_data", (0, 1), 5, 2e-13),
    Table("gammainc", "igamma_int_data", (0, 1), 5, 2e-13),
    Table("gammainc", "igamma_big_data", (0, 1), 5, 1e-12),
    Table("gammaincc", "igamma_small_data", (0, 1), 3, 1e-13),
    Table("gammaincc", "igamma_med_data", (0, 1), 3, 2e-13),
    Table("gammaincc", "igamma_int_data", (0, 1), 3, 4e-14),
    Table("gammaincc", "igamma_big_data", (0, 1), 3, 1e-11),
    Table("beta", "beta_med_data", (0, 1), 2, 5e-13),
    Table("beta", "beta_exp_data", (0, 1), 2, 1e-13),
    Table("betainc", "ibeta_data", (0, 1, 2), 5, 5e-13),
    Table("betainc", "ibeta_small_data", (0, 1, 2), 5, 6e-15),
    Table("betainc", "ibeta_int_data", (0, 1, 2), 5, 2e-14),
    Table("betainc", "ibeta_large_data", (0, 1, 2), 5, 4e-10),
    Table("comb", "binomial_data", (0, 1), 2, 1e-13),
    Table("comb", "binomial_large_data", (0, 1), 2, 5e-13),
    Table("poch", "tgamma_delta_ratio_data", (0, 1), 2, 2e-13, apply=_after),
    Table("zeta", "zeta_data", (0,), 1, 1e-14),
    Table("zeta", "zeta_neg_data", (0,), 1, 5e-14),
    Table("zeta", "zeta_1_up_data", (0,), 1, 1e-14),
    Table("zeta", "zeta_1_below_data", (0,), 1, 1e-14),
    Table("exp1", "expint_1_data", (1,), 2, 1e-13),
    Table("expi", "expinti_data", (0,), 1, 1e-13),
    Table("expi", "expinti_data_double", (0,), 1, 1e-13),
    Table("expn", "expint_data", (0, 1), 2, 1e-14, apply=_nth(special.expn)),
    Table("expn", "expint_small_data", (0, 1), 2, 1e-14, apply=_nth(special.expn)),
    Table("owens_t", "owens_t", (0, 1), 2, 5e-14),
    Table("owens_t", "owens_t_large_data", (0, 1), 2, 8e-12),
)


class Row(NamedTuple):
    """A line of the report."""

    function: str
    dtype: str
    rows: int
    flushed: int
    eager: float
    compiled: float
    bound: float
    """Of the compiled function."""
    eager_bound: float
    drawn: float = 0.0
    """The error of the compiled elementary function at numbers drawn at random."""


def compiled(function: Callable[..., Any], *arguments: Any) -> np.ndarray:
    """The function's values as XLA computes them: a jitted call may leave small arrays to NumPy."""
    return np.asarray(st.jit(function).lower(*arguments).compile()(*arguments))


# Elementary functions


def validation(name: str, dtype: str) -> tuple[np.ndarray, np.ndarray, int]:
    """Arguments, right values, and NumPy's bound in units in the last place."""
    data = importlib.resources.files("numpy._core.tests") / "data"
    text = (data / f"umath-validation-set-{name}.csv").read_text(encoding="utf-8")
    lines = [line.split(",") for line in text.splitlines()[1:] if line[:1] not in ("#", "$", "")]
    rows = [line for line in lines if line[0] == f"np.{dtype}"]
    bits = f"u{np.dtype(dtype).itemsize}"
    x, want = (np.array([int(r[i], 16) for r in rows], bits).view(dtype) for i in (1, 2))
    return x, want, max(int(r[3]) for r in rows)


def ulps(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """How many numbers of this dtype lie between; infinite where one alone is NaN."""
    bits = np.dtype(f"i{got.dtype.itemsize}")
    low = np.iinfo(bits).min

    def place(x: np.ndarray) -> np.ndarray:
        """Whole numbers in the order of the numbers; both zeros are 0."""
        whole = x.view(bits)
        return np.where(whole < 0, low - whole, whole).astype(np.longdouble)

    nan = np.isnan(got), np.isnan(want)
    gap = np.abs(place(got) - place(want))
    return np.where(nan[0] | nan[1], np.where(nan[0] & nan[1], 0.0, np.inf), gap)


def subnormal(x: np.ndarray) -> np.ndarray:
    """Whether it is nearer to zero than any normal number."""
    return (x != 0) & (np.abs(x) < np.finfo(x.dtype).tiny)


_DRAWN = 65_537
"""How many numbers are drawn: a prime, as XLA has other kernels for arrays that it cannot share out
evenly among threads, and uses threads for so many."""


def drawn(name: str, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Arguments of all magnitudes, many near 1, and right values; none of them is flushed.

    A value is NumPy's in the next wider type, rounded; on platforms where `longdouble` is no wider
    than float64, it is as right as NumPy's float64.
    """
    rng, finfo = np.random.default_rng(0), np.finfo(dtype)
    sizes = (
        2.0 ** rng.uniform(finfo.minexp + 1, finfo.maxexp - 1, _DRAWN),
        2.0 ** rng.uniform(-10, 10, _DRAWN),
        rng.uniform(0, 4, _DRAWN),
        1 + rng.choice([-1, 1], _DRAWN) * 2.0 ** -rng.uniform(0, finfo.nmant, _DRAWN),
    )
    signs = rng.choice([-1, 1], (_DRAWN, len(sizes)))
    x = (np.stack(sizes, 1) * signs).ravel().astype(dtype)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x.astype(np.longdouble)).astype(dtype)
    kept = np.isfinite(want) & (np.abs(want) > finfo.tiny) & (np.abs(x) > finfo.tiny)
    return x[kept][:_DRAWN], want[kept][:_DRAWN]


def elementary(name: str, dtype: str) -> Row:
    """Measure one function of `stretto.numpy` in one dtype."""
    function = getattr(snp, name)
    x, want, bound = validation(name, dtype)
    with st.enable_x64(dtype == "float64"):
        argument = snp.array(x)
        eager, at_rows = np.asarray(function(argument)), compiled(function, argument)
        more, right = drawn(name, dtype)
        at_drawn = compiled(function, snp.array(more))
    # The least normal number counts with them: half of it is subnormal.
    flushed = subnormal(x) | subnormal(want) | (np.abs(x) == np.finfo(x.dtype).tiny)
    return Row(
        name,
        dtype,
        x.size,
        int(flushed.sum()),
        float(np.max(ulps(eager, want))),
        float(np.max(ulps(at_rows, want)[~flushed])),
        COMPILED.get((name, dtype), bound),
        bound,
        float(np.max(ulps(at_drawn, right))),
    )


# Special functions


def columns_of(table: Table) -> tuple[list[np.ndarray], np.ndarray]:
    """The arguments and the value, of the rows whose value is an ordinary number."""
    with (
        importlib.resources.as_file(
            importlib.resources.files("scipy.special.tests.data") / "boost.npz"
        ) as path,
        np.load(path) as file,
    ):
        rows = file[table.data if "-" in table.data else f"{table.data}_ipp-{table.data}"]
    want = rows[:, table.value]
    with np.errstate(all="ignore"):
        ordinary = np.isfinite(want) & (np.abs(want) > 1e-300) & (np.abs(want) < 1e300)
    rows = rows[ordinary]
    return [rows[:, i] for i in table.columns], want[ordinary]


def relative(got: np.ndarray, want: np.ndarray) -> float:
    """The worst relative error; 1 where only one is not a number."""
    with np.errstate(all="ignore"):
        error = np.abs(got.astype(np.float64) - want) / np.abs(want)
    return float(np.max(np.where(np.isfinite(error), error, got != want), initial=0))


def of_table(table: Table, dtype: str) -> Row:
    """Measure a special function: in float32 against itself in float64 at the same arguments."""
    arguments, want = columns_of(table)
    flushed = np.zeros(want.shape, bool)
    with st.enable_x64():
        if dtype == "float32":
            with np.errstate(all="ignore"):
                narrow = [np.float32(x) for x in arguments]
            want = np.asarray(table.call(*[snp.array(x.astype(np.float64)) for x in narrow]))
            size = np.abs(want)
            flushed = (size < 2e-38) | ~(size < 3e38) | np.any([subnormal(x) for x in narrow], 0)
            arguments = narrow
        arguments = [snp.array(x) for x in arguments]
        eager = np.asarray(table.call(*arguments))
        at_rows = compiled(table.call, *arguments)
    kept = ~flushed
    bound = table.bound if dtype == "float64" else table.narrow
    return Row(
        f"{table.function} ({table.data.removeprefix('test_')})",
        dtype,
        want.size,
        int(flushed.sum()),
        relative(eager[kept], want[kept]),
        relative(at_rows[kept], want[kept]),
        bound,
        bound,
    )


# The report

HEAD = """\
# How exact functions are

Written by `make accuracy`; `tests/benchmarks/test_accuracy.py` holds some of the functions to the
bounds below. Run on {machine}.

Numbers below the least normal one are flushed to zero by compiled programs: rows with such an
argument or value are counted, and left out of what is said of compiled functions.

## Elementary functions

Against NumPy's validation set, {rows:,} rows. Errors are the worst, in units in the last place.
Those in the column *drawn* are of compiled functions at {drawn:,} numbers of all magnitudes,
against NumPy's values in a wider type. The bound is NumPy's, but where a compiled function needs a
greater one, in bold: the worst seen in millions of numbers, with jaxlib 0.10.2 and 0.12.0. Which
of XLA's kernels runs depends on that version, and on the size of the array.

| function | dtype | rows | of them flushed | eager | compiled | drawn | bound |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |
"""

MIDDLE = """
The least normal number is counted with these, as `arcsin` halves it. Eager functions are held to
NumPy's bounds.

## Special functions

In float64 against Boost's tables, as SciPy has them; rows of an infinite value, or one beyond
1e±300, are left out. In float32 against the value in float64 at the rounded argument. Errors are
the worst, relative. A table's arguments are rounded too, so where a function is steep, bounds are
those that SciPy's own tests state. Formulas compute in 64 bits, so float32 results are right to
rounding; `erf`, `erfc` and `erfinv` alone are XLA's own operations.

| function (table) | dtype | rows | of them left out | eager | compiled | bound |
| --- | --- | ---: | ---: | ---: | ---: | ---: |
"""


def rows_of_elementary() -> Iterator[Row]:
    """Every elementary function in every dtype."""
    for name in ELEMENTARY:
        for dtype in DTYPES:
            yield elementary(name, dtype)


def rows_of_tables() -> Iterator[Row]:
    """Every table of special functions in every dtype."""
    for table in SPECIAL:
        for dtype in DTYPES[::-1]:
            yield of_table(table, dtype)


def broken(row: Row) -> bool:
    """Whether an error exceeds its bound."""
    return row.eager > row.eager_bound or max(row.compiled, row.drawn) > row.bound


def page(plain: list[Row], tables: list[Row]) -> str:
    """The report, in Markdown."""
    lines = []
    for r in plain:
        bound = f"**{r.bound:g}**" if (r.function, r.dtype) in COMPILED else f"{r.bound:g}"
        lines.append(
            f"| {r.function} | {r.dtype} | {r.rows} | {r.flushed} | {r.eager:g} | {r.compiled:g} "
            f"| {r.drawn:g} | {bound} |"
        )
    more = [
        f"| {r.function} | {r.dtype} | {r.rows} | {r.flushed} | {r.eager:.1e} | {r.compiled:.1e} "
        f"| {r.bound:.0e} |"
        for r in tables
    ]
    head = HEAD.format(machine=platform.machine(), rows=sum(r.rows for r in plain), drawn=_DRAWN)
    return head + "\n".join(lines) + "\n" + MIDDLE + "\n".join(more) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 0 if all bounds hold, 1 if one is broken."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("--page", type=Path, default=TARGET, help="where to write the report")
    options = parser.parse_args(arguments)
    plain, tables = list(rows_of_elementary()), list(rows_of_tables())
    options.page.write_text(page(plain, tables), encoding="utf-8")
    wrong = [row for row in (*plain, *tables) if broken(row)]
    for row in wrong:
        print(f"beyond its bound: {row}", file=sys.stderr)
    print(f"{len(plain) + len(tables)} rows written to {options.page}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
