"""Portable artifacts as functions of another module."""

import importlib

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


CALL = "%c = stablehlo.custom_call @TARGET(%arg0) : (tensor<3xf32>) -> tensor<3xf32>\n%0 ="
PLACED = """module @m {
sdy.mesh @mesh = <["x"=1]>
func.func public @main(%arg0: tensor<3xf32>) -> (tensor<3xf32>) {
%0 = sdy.sharding_constraint %arg0 <@mesh, [{"x"}]> : tensor<3xf32>
%1 = stablehlo.custom_call @Sharding(%0) : (tensor<3xf32>) -> tensor<3xf32>
%2 = stablehlo.add %1, %0 : tensor<3xf32>
return %2 : tensor<3xf32>
}
}
"""


def test_where_arrays_are_is_dropped():
    ir, context = pjrt.mlir()
    importlib.import_module("jaxlib.mlir.dialects.sdy").register_dialect(context)
    functions = artifacts._functions(ir, ir.Module.parse(PLACED, context), "p_")
    assert functions.targets == () and functions.main == "p_main"
    assert "sdy" not in functions.text and "Sharding" not in functions.text
    assert "stablehlo.add %arg0, %arg0" in functions.text


@pytest.mark.parametrize("target", sorted(artifacts.ALLOWED))
def test_custom_calls_that_are_known(target):
    text = MODULE.replace("%0 =", CALL.replace("TARGET", target), 1)
    found = artifacts._functions(*_parsed(text), "p_").targets
    hidden = target in ("shape_assertion", "Sharding")  # of these nothing is left to call
    assert found == (() if hidden else (target,))


def test_custom_calls_that_are_not_known():
    text = MODULE.replace("%0 =", CALL.replace("TARGET", "system"), 1)
    with pytest.raises(ValueError, match="the module has the custom call 'system'"):
        artifacts._functions(*_parsed(text), "p_")


def test_a_module_has_functions_alone():
    text = "module @m {\nmodule @inner {\n}\n" + MODULE.partition("\n")[2]
    with pytest.raises(ValueError, match=r"has builtin\.module beside its functions"):
        artifacts._functions(*_parsed(text), "p_")


def test_functions_are_private_and_say_nothing_of_their_arguments():
    text = MODULE.replace("%arg0: tensor<3xf32>", "%arg0: tensor<3xf32> {jax.x = 1 : i32}", 1)
    functions = artifacts._functions(*_parsed(text), "p_")
    assert functions.text.count("func.func private @p_") == 2 and "jax.x" not in functions.text
    assert (functions.inputs, functions.outputs) == (("tensor<3xf32>",),) * 2


def test_what_calls_the_functions():
    """What is of another type is converted, on the way in and on the way out."""
    made = artifacts.Functions("TEXT", "f", ("A", "B"), ("C", "D"), ())
    assert artifacts.as_module(made) == (
        "module {\nfunc.func public @main(%arg0: A, %arg1: B) -> (C, D) {\n"
        "%r:2 = func.call @f(%arg0, %arg1) : (A, B) -> (C, D)\n"
        "return %r#0, %r#1 : C, D\n}\nTEXT\n}\n"
    )
    assert artifacts._calling(made, ("A", "X"), ("Y", "D")).splitlines()[1:6] == [
        "func.func public @main(%arg0: A, %arg1: X) -> (Y, D) {",
        "%in1 = stablehlo.convert %arg1 : (X) -> B",
        "%r:2 = func.call @f(%arg0, %in1) : (A, B) -> (C, D)",
        "%out0 = stablehlo.convert %r#0 : (C) -> Y",
        "return %out0, %r#1 : Y, D",
    ]
    nothing = artifacts.Functions("", "f", (), (), ())
    assert "func.call @f() : () -> ()\nreturn\n" in artifacts.as_module(nothing)
    assert artifacts.is_fixed(()) and artifacts.is_fixed(["tensor<f32>", "tensor<2xf32>"])
    assert not artifacts.is_fixed(["tensor<f32>", "tensor<?xf32>"])
