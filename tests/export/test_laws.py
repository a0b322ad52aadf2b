"""The law of export: what onnxruntime computes from a file is what arrays give here.

For each law of a primitive, of one dtype of each kind, the function is exported and run; and for
float32 the derivatives of it, backwards. What is refused is refused in words, by name.
"""

import numpy as np
import pytest

import stretto.numpy as snp
from stretto import enable_x64, export, vjp
from stretto._engine.core import tree
from stretto._engine.core.types import is_complex, is_inexact
from stretto.errors import ExportError, MissingRuleError
from stretto.laws import Law, TypeOf, check_close
from tests.export.running import run
from tests.form.test_every_primitive import HERE, laws_of

REFUSED = {
    # No operator, and none is written out.
    "eig", "geqp3", "hessenberg", "pivoted_qr", "schur", "triangular_sylvester",
    "tridiagonal_reduction",
    # Python is called, or devices are, or what a file of StableHLO holds.
    "io_callback", "pure_callback", "shard_map", "module_call",
    # It is made where programs are compiled.
    "after", "fused_attention", "fused_gather", "fused_rows", "fused_scan", "fused_updates",
    # Of these dtypes.
    "scatter_mul complex64", "sort float8_e4m3fn",
}  # fmt: skip

SIGNS = {"svd", "eigh"}
"""Vectors that LAPACK and rotations give in opposite directions."""


def chosen() -> list[Law]:
    """One law for each primitive and dtype, and those of a second number of arguments."""
    found = {}
    for path in sorted(HERE.rglob("test_*.py")):
        for law in laws_of(path):
            if law.primitive is None or not isinstance(law.primitive, type):
                continue
            dtypes = tuple([np.dtype(a.dtype).name for a in law.args])
            found.setdefault((law.primitive.name, dtypes), law)
    return list(found.values())


def handed(dtype: np.dtype) -> np.dtype:
    """The dtype in which onnxruntime takes arrays and hands them back: it has no bfloat16 there."""
    return np.dtype(np.float32) if dtype.name == "bfloat16" else dtype


def compared(law: Law, function, values) -> None:
    """Export a function of arrays, run it, and compare."""
    want = [np.asarray(x) for x in tree.leaves(function(*values))]

    def outer(*xs):
        xs = [snp.asarray(x).astype(v.dtype) for x, v in zip(xs, values)]
        return [x.astype(handed(x.dtype)) for x in tree.leaves(function(*xs))]

    given = [v.astype(handed(v.dtype)) for v in values]
    got = run(export.onnx(outer, *given), given)
    got = [g.astype(w.dtype) if handed(w.dtype) != w.dtype else g for g, w in zip(got, want)]
    for g, w in zip(got, want, strict=True):
        if is_complex(w.dtype):
            g = g[..., 0] + 1j * g[..., 1]
        assert g.dtype == w.dtype, f"{law}: {g.dtype} for {w.dtype}"
        if law.primitive is not None and law.primitive.name in SIGNS:
            g, w = np.abs(g), np.abs(w)
        check_close(g, w, f"{law}: exported", 4 * law.options.get("factor", 1.0))


@pytest.mark.parametrize("law", chosen(), ids=str)
def test_exported(law):
    wide = any(np.dtype(a.dtype).name in ("float64", "complex128", "int64", "uint64")
               for a in law.args)  # fmt: skip
    with enable_x64(wide):
        rng = np.random.default_rng(0)
        values = [a.draw(rng) if isinstance(a, TypeOf) else np.asarray(a) for a in law.args]
        of_this = {f"{law.primitive.name} {np.dtype(a.dtype).name}" for a in law.args}
        if law.primitive.name in REFUSED or of_this & REFUSED:
            with pytest.raises(ExportError, match="export to ONNX: "):
                export.onnx(law.call, *values)
            return
        compared(law, law.call, values)
        floats = [i for i, v in enumerate(values) if v.dtype == np.float32]
        if not floats or not law.options.get("derivative", True) or law.primitive.name in SIGNS:
            return

        def backward(*xs):
            def moved(*some):
                whole = [*xs]
                for i, x in zip(floats, some):
                    whole[i] = x
                return [v for v in tree.leaves(law.call(*whole)) if is_inexact(v.dtype)]

            outs, back = vjp(moved, *[xs[i] for i in floats])
            return back([x * 0 + 1 for x in outs])

        try:
            backward(*values)
        except MissingRuleError:
            return
        try:
            compared(law, backward, values)
        except ExportError as refused:
            assert "rule is not in ONNX" in str(refused) or "library" in str(refused)
