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

`make torch-samples` calls each with PyTorch's own samples (`OpInfo`, PyTorch 2.13), of floats,
integers, bool and complex numbers, and compares values, and gradients where there are any. With
`ARGS="--floats float32"` it does so in float32, int32 and complex64, and a number that is not
PyTorch's must be as near to that of float64 as PyTorch's own float32 is; how many were is in
brackets. As measured in November 2026, the exported ones an hour before the others; what was mended
after a run (`squeeze`, `repeat_interleave`) was run again by itself, and its counts put in:

| | operations | calls right | differ | refused | gradients right | differ |
| --- | --- | --- | --- | --- | --- | --- |
| float64, as PyTorch dispatches them | 374 | 71,075 | 6 | 38 | 42,506 | 148 |
| float64, exported as whole functions | 336 | 1,840 | 1 | 14 | 1,512 | 12 |
| float32, as PyTorch dispatches them | 374 | 71,020 (13) | 14 | 38 | 42,528 (61) | 148 |
| float32, exported as whole functions | 335 | 1,837 (5) | 1 | 11 | 1,510 (7) | 14 |

All that differ are known, each by what it is called with:

- `bincount` raises an error for an element that is not below `minlength` (6; exported 1).
- `arange` of int32 raises one for a range that ends at a fraction (6, in float32). In PyTorch it
  has one element more than that of int64.
- A transposed convolution sums its products in another order (2, in float32). It is within four
  roundings of the sum of their sizes.
- Gradients are NaN in PyTorch and numbers here: of `amax` and `amin` by NaN (52), of `prod` by NaN
  and infinities (34), of `logsumexp` and `logaddexp` of nothing but -inf (44), of singular vectors
  of equal singular values (12).
- `linalg.pinv(hermitian=True)` of a matrix that is not Hermitian: PyTorch's gradients mix the
  triangle that it reads with the other one (6).
- `max_unpool` whose indices repeat writes one element twice: which gradient counts is undefined
  (exported, 12 and 14).

Of gradients by a Cholesky factor the triangle that is read is compared, of those by a complex
Hermitian matrix the Hermitian part, of eigenvectors and singular vectors what does not depend on
their phases. Refused in words are `bincount` and `repeat_interleave` without a size,
`embedding_bag` with `scale_grad_by_freq`, antialiased resizing to a size with other factors, and
complex numbers of half precision; `gaussian_nll_loss` and `one_hot` without `num_classes` by
`torch.export` itself.
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
