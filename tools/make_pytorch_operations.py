"""Writes ``pytorch-operations.md``: which of PyTorch's operations have a function here.

Run ``python tools/make_pytorch_operations.py``; a test fails while the file says something else.
"""

import importlib
import inspect
import pathlib

from stretto.torch import table

TARGET = pathlib.Path(__file__).parents[1] / "docs" / "pytorch-operations.md"

HEAD = """\
# PyTorch's operations here

Written by `tools/make_pytorch_operations.py` from the table itself, and tested to be up to date.
`stretto.from_torch` has PyTorch export a module, and runs what it exports: these operations, by
PyTorch's own names. One that is not here is named with its place in the module when that is
imported.

`make torch-samples` calls each with PyTorch's own samples (`OpInfo`, PyTorch 2.13), in floats of
64 or 32 bits, their complex numbers, int64 and bool, and compares values, and gradients where there
are any. As PyTorch dispatches them, in November 2026:

| floats | operations | calls right | wrong | known to differ | gradients right | wrong | known |
| --- | --- | --- | --- | --- | --- | --- | --- |
| float64 | 374 | 71,075 | 4 | 6 | 42,506 | 0 | 148 |
| float32 | 374 | 71,020 | 4 | 14 | 42,528 | 0 | 148 |

The 4 are `repeat_interleave` of a tensor without `output_size`, which is refused in words since. In
float32 13 values and 61 gradients of those that are right are rounded otherwise than PyTorch's:
both are as near to float64's. Another 34 calls are refused. Exported as whole functions, 1,862 of
1,893 calls were right before the last corrections, and have not been called again since. What is
known to differ:

- `logsumexp` and `logaddexp` of nothing but `exp(-inf)`: slopes are 0 here and NaN in PyTorch.
- Slopes by NaN of `amax` and `amin`, and of `prod` by infinities, NaN and what they are multiplied
  with: PyTorch divides the product by the element.
- `svd`'s vectors of equal singular values have slopes of NaN in PyTorch.
- `pinv(hermitian=True)` of a matrix that is not: PyTorch mixes the triangle that it reads with the
  other one.
- `bincount` counts up to `minlength`, and refuses an element that is not below it.
- In float32, a range of int32 that ends at a fraction is refused: PyTorch gives it one element more
  than that of int64. Two convolutions sum their products in another order.
"""


def page() -> str:
    """The page."""
    lines = [HEAD]
    for path in sorted(pathlib.Path(inspect.getfile(table)).parent.glob("[!_]*.py")):
        family = importlib.import_module(f"{table.__name__}.{path.stem}")
        title = (inspect.getdoc(family) or "").splitlines()[0]
        names = ", ".join([f"`{name.removeprefix('aten.')}`" for name in sorted(family.TABLE)])
        lines.append(f"\n## {title.removesuffix('.')}\n\n{names}\n")
    return "".join(lines)


if __name__ == "__main__":
    TARGET.write_text(page(), "utf-8")
