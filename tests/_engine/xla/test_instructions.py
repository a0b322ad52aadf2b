"""The instructions of compiled programs, and what comes of them; protocol buffers."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import P, lax
from stretto._engine.xla import pjrt
from stretto._engine.xla.instructions import (
    _MOVED,
    Instruction,
    Temporary,
    Transfer,
    _argument,
    _with_line,
    fields,
    has_collectives,
    instructions_in,
    instructions_of,
    numbers,
    op_names,
    size_of,
    temporaries_at_peak,
    transfers_of,
)
from stretto._engine.xla.options import field
from stretto.sharding import NamedSharding
from tests.meshes import mesh

pytestmark = pytest.mark.usefixtures("without_kernels")


def f(x, y):
    product = x @ y
    return snp.fft.fft(product).real


@pytest.fixture(autouse=True)
def _compiled_anew():
    """Programs that are kept on disk have the lines of the file that they were compiled from."""
    with st.config(disk_cache=False):
        yield


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


def test_a_line_is_that_of_what_reads_the_result_through_what_has_none():
    def instruction(number, *operands, file="", line=0):
        return Instruction(number, "", "", b"", operands, 0, True, file, line, False, "")

    moved, converted, read = instruction(1), instruction(2, 1), instruction(3, 2, file="a", line=7)
    readers = {1: [converted], 2: [converted, read]}
    assert _with_line(moved, readers) is read
    assert _with_line(moved, {1: [converted]}) is moved
    assert _with_line(read, readers) is read


# Collectives read from compiled programs, beside their text.


def compiled(f, *args):
    return st.jit(f).lower(*args).compile()


@pytest.mark.devices
@pytest.mark.parametrize("dtype", [bool, np.int8, np.float16, np.float32, np.complex64])
def test_kinds_and_bytes(dtype):
    over = mesh(x=4)
    f = st.shard_map(
        lambda a: (
            lax.all_gather(a, "x", tiled=True),
            lax.all_to_all(a, "x", 0, 0, tiled=True),
            lax.ppermute(a, "x", [(0, 1), (1, 0)]),
        ),
        mesh=over,
        in_specs=P("x"),
        out_specs=(P(), P("x"), P("x")),
    )
    program = compiled(f, np.ones((16, 3), dtype))
    size = np.dtype(dtype).itemsize
    found = {t.kind: t.bytes for t in transfers_of(program._executable)}
    assert found == {
        "all-gather": 48 * size,
        "all-to-all": 12 * size,
        "collective-permute": 12 * size,
    }
    text = program.as_text()
    assert all(re.search(rf"\b{kind}(-start)?\(", text) for kind in found)


@pytest.mark.devices
def test_the_argument_that_is_gathered():
    over = mesh(x=4)
    put = lambda *shape: st.device_put(np.ones(shape, np.float32), NamedSharding(over, P("x")))
    program = compiled(lambda x, w: x @ w, put(8, 16), put(16, 4))
    (gathered,) = transfers_of(program._executable)
    assert (gathered.kind, gathered.argument) == ("all-gather", 1)
    program = compiled(lambda x, w: x @ (w + x[0, 0]), put(8, 16), put(16, 4))
    assert {t.argument for t in transfers_of(program._executable)} == {None}


@pytest.mark.devices
def test_no_collective_in_a_program_of_one_device():
    assert transfers_of(compiled(lambda x: x + 1, np.ones(3, np.float32))._executable) == []


# What is in memory at the peak: sizes that add up, and the lines of the user's code.


def test_what_is_alive_at_the_peak():
    def f(x, y):
        first = snp.tanh(x @ y)
        second = snp.tanh(first @ y)
        return (first * second) @ y

    line = f.__code__.co_firstlineno
    executable = st.jit(f).lower(snp.ones((64, 64)), snp.ones((64, 64))).compile()._executable
    found = temporaries_at_peak(executable)
    assert sum(t.bytes for t in found) == executable.memory_analysis().temp_size_in_bytes
    assert {t.file for t in found} == {__file__}
    assert {t.line for t in found} <= {line + 1, line + 2, line + 3}
    assert [t.bytes for t in found] == sorted([t.bytes for t in found], reverse=True)


def test_nothing_where_xla_does_not_tell():
    class Silent:
        loaded = type("Loaded", (), {"hlo_modules": staticmethod(list)})

        def memory_analysis(self):
            return object()

    assert temporaries_at_peak(Silent()) == []  # type: ignore[arg-type]


# Names of operations in profiles.


def test_names_by_module_and_instruction():
    def named(x):
        with st.named_scope("part"):
            return snp.sin(x) @ x

    compiled = st.jit(named).lower(snp.ones((4, 4))).compile()
    names = op_names({"named"})
    assert any("part" in name for name in names.values())
    assert {module for module, _ in names} == {"named"}
    assert op_names({"no such module"}) == {}
    del compiled


# The encoding of protocol buffers, by hand.


def test_fields_of_each_kind():
    message = bytes([0x08, 0x96, 0x01])  # 1: the integer 150
    message += bytes([0x12, 0x03]) + b"abc"  # 2: bytes
    message += bytes([0x19]) + bytes(8)  # 3: eight bytes
    message += bytes([0x25]) + bytes(4)  # 4: four bytes
    found = [(n, v if isinstance(v, int) else bytes(v)) for n, v in fields(message)]
    assert found == [(1, 150), (2, b"abc"), (3, bytes(8)), (4, bytes(4))]


def test_numbers_packed_or_alone():
    assert list(numbers(bytes([3, 0x8E, 0x02, 0x9E, 0xA7, 0x05]))) == [3, 270, 86942]
    assert list(numbers(7)) == [7]
    assert list(numbers(b"")) == []


def test_fields_that_are_written_are_read():
    content = bytes(300)
    message = field(500, content) + field(1, b"a")
    assert message[:2] == bytes([0xA2, 0x1F])  # 500 << 3 | 2
    assert [(n, bytes(v)) for n, v in fields(message)] == [(500, content), (1, b"a")]


def shape(kind, *dimensions, parts=()):
    """A shape as XLA serializes it: the number of its type, and its sizes or its parts."""
    sizes = b"".join([bytes([3 << 3, n]) for n in dimensions])
    return bytes([2 << 3, kind]) + sizes + b"".join([field(4, part) for part in parts])


def test_the_bytes_of_arrays_by_the_number_of_their_type():
    """Those of XLA's xla_data.proto."""
    widths = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 2, 8: 4, 9: 8, 10: 2, 11: 4, 12: 8, 15: 8,
              16: 2, 18: 16, 20: 1}  # fmt: skip
    assert {kind: size_of(shape(kind, 3, 5)) for kind in widths} == {
        kind: 15 * width for kind, width in widths.items()
    }
    pair = shape(13, parts=[shape(11, 2), shape(12, 3)])
    assert (size_of(pair), size_of(pair, last=True)) == (32, 24)


# Modules by hand, as XLA serializes them.


def varint(number, value):
    """A field with an integer."""
    return bytes([*packed(number << 3), *packed(value)])


def packed(*values):
    """Integers of variable length, one after another."""
    out = []
    for value in values:
        while value > 127:
            out.append(value & 127 | 128)
            value >>= 7
        out.append(value)
    return bytes(out)


def message(**by_number):
    """A message of the fields that are given as ``f7=...``; lists are repeated fields."""
    out = b""
    for name, value in by_number.items():
        number = int(name[1:])
        for one in value if isinstance(value, list) else [value]:
            one = one.encode() if isinstance(one, str) else one
            out += varint(number, one) if isinstance(one, int) else field(number, one)
    return out


def module(*computations, entry=0, frames=b"", name="module"):
    """A module of computations, each a number and its instructions."""
    every = [message(f2=list(parts), f5=number) for number, parts in computations]
    content = message(f3=every, f6=entry, f17=frames)
    return SimpleNamespace(name=name, as_serialized_hlo_module_proto=lambda: content)


def executable(*modules):
    return SimpleNamespace(loaded=SimpleNamespace(hlo_modules=lambda: list(modules)))


FLOATS = message(f2=11, f3=[2, 3])
FRAMES = message(
    f1=["a.py", "b.py"],
    f3=[message(f1=2, f3=30), message(f1=1, f3=4), message(f1=3, f3=5), message(f3=6)],
    f4=[message(f1=1), message(f1=2), message(f1=3), message(f1=4), message(f1=5), message()],
)


def test_the_fields_of_instructions():
    add = message(
        f1="sum.1",
        f2="add",
        f3=FLOATS,
        f7=message(f2="scope/add", f3="a.py", f4=300),
        f35=5,
        f36=packed(3, 200),
    )
    given = message(f1="x", f2="parameter", f9=1, f35=3, f36=[7, 9])
    loop = message(f68=b"..xla_cpu_small_call..")
    found = list(instructions_in(module((4, [add, given]), (0, [loop]), entry=4)))
    assert [i._replace(shape=bytes(i.shape)) for i in found] == [
        Instruction(5, "sum.1", "add", FLOATS, (3, 200), 0, True, "a.py", 300, False, "scope/add"),
        Instruction(3, "x", "parameter", b"", (7, 9), 1, True, "", 0, False, ""),
        Instruction(0, "", "", b"", (), 0, False, "", 0, True, ""),
    ]
    twice = list(instructions_of(executable(*[module((0, [add]))] * 2)))
    assert [(i.name, i.is_main) for i in twice] == [("sum.1", True)] * 2


@pytest.mark.parametrize(
    ("metadata", "line"),
    [
        (message(f15=1), ("b.py", 30)),
        (message(f15=2), ("a.py", 4)),
        (message(f15=3), ("", 5)),  # a file that is not there
        (message(f15=4), ("", 6)),  # none
        (message(f15=5), ("", 0)),  # a place that is not there
        (message(f15=6), ("", 0)),  # none
        (message(f15=7), ("", 0)),  # a frame that is not there
        (message(f3="c.py", f4=9, f15=1), ("c.py", 9)),
        (message(f3="-", f4=9), ("", 0)),
        (b"", ("", 0)),
    ],
)
def test_lines_by_the_number_of_a_frame(metadata, line):
    (found,) = instructions_in(module((0, [message(f7=metadata)]), frames=FRAMES))
    assert (found.file, found.line) == line


def test_transfers_in_the_order_of_the_text():
    pair = message(f2=13, f4=[FLOATS, message(f2=11, f3=[8, 3])])
    line = lambda n: message(f3="a.py", f4=n)
    inside = [message(f2="all-reduce", f3=FLOATS, f7=line(4), f35=9)]
    main = [
        message(f2="parameter", f9=1, f35=1),
        message(f2="all-gather-start", f3=pair, f7=line(7), f35=2, f36=1),
        message(f2="all-to-all", f3=pair, f35=3, f36=packed(2, 2)),
        message(f2="add", f3=FLOATS, f7=line(8), f35=4, f36=3),
        message(f2="reduce", f3=FLOATS, f35=5, f36=3),
    ]
    program = executable(module((8, inside), (3, main), entry=3))
    assert transfers_of(program) == [
        Transfer("all-reduce", 24, "a.py", 4, None),
        Transfer("all-gather", 96, "a.py", 7, 1),
        Transfer("all-to-all", 120, "a.py", 8, None),
    ]
    assert has_collectives(program)
    assert not has_collectives(executable(module((0, [main[0], main[3], main[4]]))))
    assert not has_collectives(executable())


def test_names_on_which_programs_agree(monkeypatch):
    named = lambda name, op: message(f1=name, f7=message(f2=op))
    one = module((0, [named("a", "sin"), named("b", "sin"), named("c", "")]), name="f")
    two = module((0, [named("a", "sin"), named("b", "cos"), named("c", "tan")]), name="f")
    other = module((0, [named("a", "exp")]), name="g")
    live = [SimpleNamespace(hlo_modules=lambda m=m: [m]) for m in (one, two, other, one)]
    monkeypatch.setattr(pjrt, "live_executables", lambda: live)
    assert op_names({"f"}) == {("f", "a"): "sin", ("f", "c"): "tan"}
    assert op_names(["f", "g"])["g", "a"] == "exp"


def test_temporaries_of_a_buffer_assignment():
    """Not what comes in, goes out or is constant; what has no instruction has no line."""
    buffers = [
        message(f1=1, f2=100, f3=message(f4=6)),
        message(f1=2, f2=300, f3=message(f4=7)),
        message(f1=3, f2=200),
        message(f2=50, f3=message(f4=6)),
    ]
    allocations = [message(), message(f1=1, f5=1), message(f1=2, f7=1), message(f1=3, f12=1)]
    peaks = [message(f1=0, f2=packed(1, 2, 3, 0, 9))]
    peaks += [message(f1=k, f2=packed(2)) for k in (1, 2, 3)]
    stats = message(f1=buffers, f3=allocations, f5=peaks)
    program = executable(module((0, [message(f7=message(f3="a.py", f4=4), f35=6)])))
    program.memory_analysis = lambda: SimpleNamespace(serialized_buffer_assignment_proto=stats)
    assert temporaries_at_peak(program) == [
        Temporary(300, "", 0),
        Temporary(200, "", 0),
        Temporary(100, "a.py", 4),
        Temporary(50, "a.py", 4),
        Temporary(0, "", 0),
    ]


def test_the_argument_behind_an_instruction():
    """Through what only moves it, of what has one operand."""
    made = lambda number, opcode, *operands, parameter=None: SimpleNamespace(
        number=number, opcode=opcode, operands=operands, parameter=parameter
    )
    all_of_them = [
        made(1, "parameter", parameter=4),
        made(2, sorted(_MOVED)[0], 1),
        made(3, "all-gather", 2),
        made(4, "add", 1, 1),
        made(5, "all-gather", 4),
        made(6, "all-gather", 9),
        made(7, "sine", 1),
        made(8, "all-gather", 7),
    ]
    by_number = {one.number: one for one in all_of_them}
    found = {k: _argument(by_number[k], by_number) for k in (3, 4, 5, 6, 8)}
    assert found == {3: 4, 4: None, 5: None, 6: None, 8: None}
