"""Writes ``conformance.md``: how Stretto follows the array API standard, and where it does not.

Run ``python tools/make_conformance.py``; a test fails while the file says something else.
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.conformance import (  # noqa: E402
    deviations,
    special,
    standard,
    test_scipy,
    test_sklearn,
)

TARGET = ROOT / "docs" / "conformance.md"

HEAD = """\
# The Python array API standard

Written by `tools/make_conformance.py` from the tables of `tests/conformance`, and tested to be up
to date. `stretto.numpy` follows the [standard](https://data-apis.org/array-api/2024.12), version
2024.12, with its `linalg` and `fft` extensions: `x.__array_namespace__()` gives it for every array,
also inside `jit`, and `stretto.numpy.__array_namespace_info__()` says what it can do.

    >>> import stretto.numpy as snp
    >>> snp.__array_api_version__, snp.ones(2).__array_namespace__().__name__
    ('2024.12', 'stretto.numpy')

## What the tests check

Each against `array_api_strict`, which has nothing beyond the standard, with 64-bit types and
without:
"""


RANDOM = """
## Random programs

`make program-storm` applies up to seven functions of NumPy's and SciPy's vocabulary to each other
at random, in float32: eagerly, under `jit`, `vmap` and `jit(vmap)`, and their gradients under
`jit(vmap(grad))`. Results are held to NumPy's in float64, as far as float32 can tell: NumPy's
programs run as well with each result moved by a rounding, and what is off is measured again with
more of these, with results rounded to float32, and, for gradients, with the roundings of the
gradient's own program. Of 100,000 programs, and 1,500 of thousands of elements (`--large`), none
was told apart by this. What float32, or a slope, cannot hold is left out of it; other libraries
have these, too:

- **Where a function has no derivative**, the gradient is NaN: that of `cbrt` at 0, or of
  `arctan2(0, 0)`, is infinite or undefined, and was multiplied by 0. (What a mask leaves out has
  none: [masks](masks.md).)
- **Gradients that cancel.** The gradient of `arctan2(expm1(x), x)` is a difference of nearly equal
  numbers near 0, and float32 keeps three digits of it at 0.001.
- **Large arguments of `sinc`.** `pi * x` is rounded before the sine is taken: at 900 four digits
  are left, as in NumPy's float32.
- **Outside of float32.** Programs with results above 1e37 or below 1e-36 are left out: float32
  has infinities there, and compiled programs take subnormal numbers for zero. So are products whose
  factors leave that range in some order, and gradients that do on their way.
- **Jumps.** `mod(x, y)` next to a multiple, and the element that `median` takes of nearly equal
  ones, are a rounding's. The sign of NaN is a library's own.

It found `argmax` out of range and slopes of quotients that overflow between
([decision 71](decisions/0071-what-is-compared-with-its-own-elements-is-computed-once.md)).

`make plan-storm` does the same for networks as ensembles: every plan, library, pass and option of
XLA's that is set, against one member after the other in float64. An hour of it, half with the
machine's vectors and half with AVX2's, drew 493 networks in 1,972 programs, and none was off.
`make library-storm` holds sums and products of few operands by XLA's library to those without it.
"""


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    real = sum(len(rows) for rows in special.REAL.values())
    complex_ = sum(len({row for row, _, _ in special.complex_rows(n)})
                   for n in special.COMPLEX_NAMES)  # fmt: skip
    cases = sum(len(list(special.real_rows(n))) for n in special.REAL)
    cases += sum(len(list(special.complex_rows(n))) for n in special.COMPLEX_NAMES)
    parts += [
        f"- {len(standard.FUNCTIONS)} functions take every call that their signatures in the "
        f"standard allow, and give arrays of the same shapes, dtypes and values: for arrays of "
        f"each dtype, for pairs that promote together, and with Python numbers;",
        f"- {real} special cases of real numbers and {complex_} of complex ones (infinities, NaN, "
        f"signed zeros), as {cases} calls, eagerly and compiled: all are as the standard has them;",
        f"- the array object: {len(standard.ATTRIBUTES)} attributes, {len(standard.METHODS)} "
        f"methods, {len(standard.OPERATORS) + len(standard.UNARY_OPERATORS)} operators, reflected "
        f"and in place, indexing, and DLPack in both directions.",
        "",
        "## Deviations",
        "",
        "| the standard | Stretto | why |",
        "| --- | --- | --- |",
    ]
    parts += [f"| {' | '.join(row)} |" for row in deviations.DEVIATIONS.values()]
    parts += ["", *deviations.ERRATA.values()]
    parts += ["", "## Where the standard leaves a choice", ""]
    parts += [f"- {words}" for words in deviations.CHOICES.values()]
    sklearn = ", ".join(f"`{n}`" for n in (*test_sklearn.NUMBERS, *test_sklearn.ARRAYS))
    scipy = ", ".join(f"`{n}`" for n in test_scipy.ALONE)
    parts += [
        "",
        "## Libraries that take any such arrays",
        "",
        "With `SCIPY_ARRAY_API=1` in the environment, and `array_api_dispatch=True` in "
        "scikit-learn's configuration, these compute with Stretto's arrays and never convert to "
        "NumPy's, which the tests count:",
        "",
        f"- scikit-learn: {sklearn};",
        f"- SciPy: {scipy}.",
        "",
        "Functions of theirs that assign to elements of an array, such as `r2_score` and `zscore`, "
        "raise the error of the first deviation: these libraries know of JAX's and Dask's arrays "
        "alone that they are immutable.",
    ]
    return "\n".join(parts) + "\n" + RANDOM


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
