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

`make torch-samples` calls each with PyTorch's own samples (`OpInfo`, PyTorch 2.13), in float64,
int64, bool and complex128, and compares values, and gradients where there are any. As measured in
November 2026:

| | operations | calls | values differ | gradients | differ |
| --- | --- | --- | --- | --- | --- |
| as PyTorch dispatches them | 340 | 23,271 | 8 | 13,475 | 24 |
| exported as whole functions | 102 | 626 | 0 | 603 | 12 |

- `logaddexp` of complex numbers gives another branch of the logarithm, 2π away, in a few elements;
  `logcumsumexp` of complex numbers is refused.
- `cholesky_solve` and `cholesky_inverse` read one triangle of a matrix: gradients by the other one
  differ.
- `max_unpool` whose indices repeat writes one element twice: which gradient counts is undefined.
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
