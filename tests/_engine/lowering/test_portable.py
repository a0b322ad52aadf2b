"""Modules for files: their constants, positions, and platforms."""

import re

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.errors import ExportError
from stretto._engine.core.types import array_type
from stretto._engine.lowering.polymorphic import lower_for_file
from stretto._engine.lowering.portable import Portable


def text_of(fun, *args, platforms=("cpu",)):
    return lower_for_file(st.make_graph(fun, simplified=True)(*args), (), platforms)


def test_there_are_no_positions():
    text = text_of(lambda x: snp.sin(x) + 1, snp.ones(3))
    assert "loc(" not in text and "@main(%arg0: tensor<3xf32>)" in text


def test_only_the_function_that_is_called_is_public():
    text = text_of(snp.linalg.inv, snp.eye(3), platforms=("cuda", "cpu"))
    kinds = {name: kind for kind, name in re.findall(r"func\.func (\w+) @(\w+)", text)}
    assert kinds.pop("main") == "public" and {*kinds.values()} == {"private"}
    assert {"main_cuda", "main_cpu"} <= {*kinds}


def test_arrays_are_constants():
    program = st.make_graph(lambda x, w: x @ w)(snp.ones(20), snp.ones(20))
    text = lower_for_file(program, [np.arange(20, dtype=np.float32)], ("cpu",))
    assert text.count("%arg") == text.count("%arg0")
    assert f'dense<"0x{np.arange(20, dtype=np.float32).tobytes().hex().upper()}">' in text


def test_constants_have_names_of_their_own():
    b = Portable("cpu")
    assert len({b.array(np.arange(n, dtype=np.int32)).name for n in (3, 17, 18)}) == 3


def test_which_constants_have_a_place_in_a_kernel():
    b, scalar = Portable("cpu"), array_type((), np.dtype(np.float32))
    for array, allowed in ((np.array(2, np.float32), True), (np.ones(2, np.float32), False)):
        text = b.scalar_program([scalar], lambda x, array=array: b.array(array) and [x])
        assert (text is not None) == allowed
    b.array(np.ones(2, np.float32))  # of what is outside it says nothing
    assert b.scalar_program([scalar], lambda x: [x]) is not None


@pytest.mark.parametrize(("size", "digits"), [(16, False), (17, True)])
def test_few_elements_are_written_as_numbers(size, digits):
    program = st.make_graph(lambda x, w: x * w)(snp.ones(size), snp.ones(size))
    text = lower_for_file(program, [np.arange(size, dtype=np.float32)], ("cpu",))
    assert ('dense<"0x' in text) == digits and ("dense<[0.0, 1.0, " in text) != digits


def test_the_platform_is_an_argument():
    text = text_of(snp.sin, snp.ones(3), platforms=("cpu", "tpu"))
    assert "@main(%platform: tensor<i32>" in text and "stablehlo.case" not in text
    text = text_of(snp.linalg.inv, snp.eye(3), platforms=("cuda", "cpu"))
    assert text.index("cusolver_getrf_ffi") < text.index("lapack_sgetrf_ffi")
    assert "@main_cuda" in text and "stablehlo.case" in text
    with pytest.raises(ExportError, match="lapack_sgetrf_ffi, which cpu has, and rocm has not"):
        text_of(snp.linalg.inv, snp.eye(3), platforms=("rocm",))
