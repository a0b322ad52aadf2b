"""Portable artifacts as functions of another module."""

import numpy as np
import pytest

from stretto._engine.core.types import array_type
from stretto._engine.lowering.text import Text
from stretto._engine.xla import artifacts, pjrt

MODULE = """module @m {
func.func public @main(%arg0: tensor<3xf32>) -> (tensor<3xf32>) {
%0 = func.call @twice(%arg0) : (tensor<3xf32>) -> tensor<3xf32> loc("secret.py":1:2)
return %0 : tensor<3xf32>
}
func.func private @twice(%arg0: tensor<3xf32>) -> (tensor<3xf32>) {
%0 = stablehlo.add %arg0, %arg0 : tensor<3xf32>
return %0 : tensor<3xf32>
}
}
"""
SIZED = """module @m {
func.func public @main(%arg0: tensor<?xf32>) -> (tensor<?xf32>) {
%0 = stablehlo.add %arg0, %arg0 : tensor<?xf32>
return %0 : tensor<?xf32>
}
}
"""


def test_names_are_those_of_the_bytes():
    content = pjrt.portable_artifact(MODULE, "1.13.7")
    functions = artifacts.functions_of_artifact(content)
    prefix = functions.main.removesuffix("main")
    assert functions.text.count(prefix) == 3 and "@twice" not in functions.text
    assert functions == artifacts.functions_of_artifact(content)
    other = pjrt.portable_artifact(MODULE.replace("add", "multiply"), "1.13.7")
    assert artifacts.functions_of_artifact(other).main != functions.main
    assert "secret" not in functions.text and "secret" not in artifacts.text_of_artifact(content)


def test_a_module_of_them_runs():
    functions = artifacts.functions_of_artifact(pjrt.portable_artifact(MODULE, "1.13.7"))
    type = array_type((3,), np.dtype(np.float32))
    run = pjrt.compile_text(Text(artifacts.as_module(functions)), [type])
    (out,) = run([pjrt.to_device(np.ones(3, np.float32), type, own=False)])
    np.testing.assert_array_equal(pjrt.to_host(out), [2, 2, 2])


def test_shapes_are_fixed():
    functions = artifacts.functions_of_artifact(pjrt.portable_artifact(SIZED, "1.13.7"))
    assert not artifacts.is_fixed(functions.inputs)
    fixed = artifacts.functions_at(functions, ["tensor<4xf32>"], ["tensor<4xf32>"])
    assert artifacts.is_fixed((*fixed.inputs, *fixed.outputs)) and "?" not in fixed.text
    with pytest.raises(ValueError, match=r"refinement failed|failed to infer|convert"):
        artifacts.functions_at(functions, ["tensor<4xf32>"], ["tensor<5xf32>"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (MODULE.replace("@main", "@other"), "no function main"),
        (MODULE.replace("%0 =", "%c = arith.constant 1 : i32\n%0 =", 1), "operation arith.const"),
    ],
)
def test_what_is_refused(text, words):
    with pytest.raises(ValueError, match=words):
        artifacts._functions(*_parsed(text), "p_")


def _parsed(text):
    ir, context = pjrt.mlir()
    return ir, ir.Module.parse(text, context)


def test_bytes_that_are_no_artifact():
    with pytest.raises(ValueError, match=r"."):
        artifacts.functions_of_artifact(b"no module")
    with pytest.raises(ValueError, match="nonsense"):
        pjrt.portable_artifact("nonsense", "1.13.7")
