"""Modules read in a child: damaged ones, and what modules may not have in them."""

import random

import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.xla import pjrt
from stretto._engine.xla.artifacts import Functions
from stretto.export import child
from stretto.export.container import from_bytes
from stretto.files.names import Damaged
from tests.export.exchange import FILES

CALLS = {
    "a callback": "custom_call @xla_ffi_python_cpu_callback(%arg0) {api_version = 4 : i32}",
    "another function": "custom_call @no_such_function(%arg0)",
}


CALLED = '"custom_call"() <{call_target_name = "bad"}> ('


def artifact(lines):
    text = f"""module {{
    func.func public @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {{
    {lines}
    return %0 : tensor<2xf32>
    }}
    }}"""
    return pjrt.portable_artifact(text, "1.13.7")


def test_functions_come_back_under_names_of_their_own():
    module = artifact("%0 = stablehlo.sine %arg0 : tensor<2xf32>")
    first, second = child.functions_of([module, module])
    assert first == second
    assert first.main.endswith("_main") and f"@{first.main}(" in first.text
    assert first.inputs == first.outputs == ("tensor<2xf32>",) and first.targets == ()
    assert "stablehlo.sine" in child.text_of(module)


@pytest.mark.parametrize("kind", CALLS)
def test_custom_calls_that_are_not_listed_are_refused_by_name(kind):
    module = artifact(f"%0 = stablehlo.{CALLS[kind]} : (tensor<2xf32>) -> tensor<2xf32>")
    with pytest.raises(Damaged, match=r"the module has the custom call '(xla|no)_"):
        child.functions_of([module])


@pytest.mark.parametrize("call", ["custom_call @bad(", 'custom_call @"b(ad"(', CALLED])
def test_what_a_child_says_is_held_to_the_list_again(call):
    good = Functions("stablehlo.custom_call @lapack_sgetrf_ffi(%0)", "main", (), (), ())
    assert child.checked(good) is good
    with pytest.raises(Damaged, match=r"custom call 'b"):
        child.checked(good._replace(text=f"%0 = stablehlo.{call}%arg0)"))


def test_shapes_are_fixed():
    content = from_bytes((FILES / "symbolic_product.jax").read_bytes()).module
    (functions,) = child.functions_of([content])
    assert functions.inputs == ("tensor<?x?xf32>",) * 2
    ins = ["tensor<2x3xf32>", "tensor<3x4xf32>"]
    fixed = child.functions_at(functions, ins, ["tensor<2x4xf32>", "tensor<4x3xf32>"])
    assert fixed.inputs == tuple(ins) and "?" not in fixed.text
    with pytest.raises(Damaged):
        child.functions_at(functions, ins, ["tensor<2x5xf32>", "tensor<4x3xf32>"])


def test_a_child_that_ends_is_an_error(monkeypatch):
    monkeypatch.setattr(child, "CODE", "import os; os.kill(os.getpid(), 6) # {home}")
    with pytest.raises(Damaged, match="ended the process that did, SIGABRT: it is damaged"):
        child.functions_of([b"x"])
    monkeypatch.setattr(child, "CODE", "raise SystemExit(3) # {home}")
    with pytest.raises(Damaged, match="with status 3"):
        child.functions_of([b"x"])


def test_a_child_that_takes_too_long_is_an_error(monkeypatch):
    monkeypatch.setattr(child, "CODE", "import time; time.sleep(60) # {home}")
    monkeypatch.setattr(child, "_SECONDS", 0.1)
    with pytest.raises(Damaged, match=r"longer than 0\.1 s"):
        child.functions_of([b"x"])


@pytest.mark.parametrize("seed", range(6))
def test_damaged_modules_end_no_process_of_ours(seed):
    """Each either is refused, or can be called; ``python -m tests.export.fuzz`` tries hundreds."""
    content = (FILES / "sine_and_sum.jax").read_bytes()
    rng, start = random.Random(seed), content.find(b"ML\xefR")
    damaged = bytearray(content)
    for _ in range(2):
        damaged[start + 20 + rng.randrange(900)] = rng.randrange(256)
    try:
        fun = st.export.load(bytes(damaged))
    except Damaged as error:
        assert str(error).startswith("export.load: ")
    else:
        assert fun(snp.ones((3, 4)))["sine"].shape == (3, 4)
