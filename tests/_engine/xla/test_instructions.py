"""Instructions of compiled programs: their operands, and the lines of the source."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import NamedSharding, P
from stretto._engine.xla.instructions import instructions_of
from tests.meshes import mesh


def f(x, y):
    product = x @ y
    return snp.fft.fft(product).real


def test_operands_and_lines():
    x = np.ones((64, 64), np.float32)
    every = list(instructions_of(st.jit(f).lower(x, x).compile()._executable))
    found, by_number = {i.opcode: i for i in every}, {i.number: i for i in every}
    dot = found["dot"]
    assert {by_number[n].opcode for n in dot.operands} <= {"parameter", "copy", "fusion"}
    assert dot.is_main
    assert (dot.file, dot.line) == (__file__, f.__code__.co_firstlineno + 1)
    assert found["fft"].line == f.__code__.co_firstlineno + 2
    assert found["parameter"].file == ""


@pytest.mark.devices
def test_lines_of_programs_on_several_devices():
    x = st.device_put(np.ones((64, 64), np.float32), NamedSharding(mesh(x=4), P("x")))
    every = instructions_of(st.jit(f).lower(x, x).compile()._executable)
    first = f.__code__.co_firstlineno
    (line,) = [(i.file, i.line - first) for i in every if i.opcode == "dot"]
    assert line == (__file__, 1)
