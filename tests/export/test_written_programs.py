"""Programs as JSON and back: the program of every law, and what a damaged one is told."""

import json
import re

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.config import enable_x64
from stretto._engine.core.errors import ExportError
from stretto._engine.core.primitive import PRIMITIVES
from stretto._engine.core.program import Program, check, form
from stretto.export import operations
from stretto.export.rules import with_rules
from stretto.export.written_programs import Reader, Writer
from stretto.files.names import Damaged
from stretto.laws import TypeOf
from tests.form.test_every_primitive import HERE, laws_of

WIDE = {np.dtype(name) for name in ("int64", "uint64", "float64", "complex128")}
ADD = ["add", {}]


def tables(**changed):
    """The tables of a program that adds one number to itself."""
    record = {
        "variables": [],
        "sizes": [],
        "types": [["float32", False, [2]]],
        "constants": [],
        "operations": [ADD],
        "programs": [["double", [0], [[0, [0, 0], [0]]], [1]]],
    }
    return {**record, **changed}


def back(program, **changed):
    """The program, written and read."""
    w = Writer("save")
    number = w.program(program)
    record = json.loads(json.dumps({**w.tables(), "sizes": [], **changed}))
    return Reader(record, w.arrays).program(number)


def shown(program):
    """A program as it prints itself, without names of policies, which are functions."""
    return re.sub(r"policy=[^\]]*", "", str(program))


def traced(law):
    wide = {getattr(a, "dtype", None) for a in law.args} & WIDE
    rng = np.random.default_rng(0)
    with enable_x64(bool(wide)):
        values = [a.draw(rng) if isinstance(a, TypeOf) else np.asarray(a) for a in law.args]
        program = st.make_graph(law.call)(*values)
        try:
            whole = with_rules(program, 1, "save")
            return whole, back(whole)
        except ExportError as error:
            return None, str(error)


def names_in(program):
    found = set()
    for e in program.equations:
        found.add(e.primitive.name)
        for _, value in e.primitive.parameters():
            for inner in value if isinstance(value, tuple) else (value,):
                found |= names_in(inner) if isinstance(inner, Program) else set()
    return found


def test_the_programs_of_all_laws_come_back():
    """Each primitive does, in one law at least, or is refused with a reason."""
    found, refused = set(), set()
    mirrors = [path for path in sorted(HERE.rglob("test_*.py")) if path.parent != HERE / "export"]
    for law in [law for path in mirrors for law in laws_of(path)]:
        whole, read = traced(law)
        if whole is None:
            refused.add(re.match(r"save: (\w+)", read)[1])
            assert re.search(r": .*: \w", read)
            continue
        assert shown(read) == shown(whole), str(law)
        check(read)
        found |= names_in(read)
    ours = {p.name for p in PRIMITIVES if p.__module__.startswith("stretto.")}
    assert ours == operations.HOMES.keys() | operations.REFUSED.keys()
    assert sorted(ours - found) == sorted(operations.REFUSED)
    assert refused & ours <= operations.REFUSED.keys()


def test_programs_are_the_same_bit_by_bit():
    def f(x):
        return snp.where(x > 0, x * -0.0, snp.array([1.5, np.nan, np.inf])).astype("bfloat16") + 1

    program = st.make_graph(f, simplified=True)(snp.ones(3))
    assert form(back(program)) is form(back(program))
    assert shown(back(program)) == shown(program)


def test_equal_parts_are_written_once():
    inner = st.jit(lambda x: snp.sin(x) * x)
    program = st.make_graph(lambda x: inner(inner(x)))(snp.ones(3))
    w = Writer("save")
    w.program(program)
    record = w.tables()
    assert [len(record[key]) for key in ("programs", "types")] == [2, 1]
    assert [name for name, _ in record["operations"]] == ["sin", "mul", "call", "call"]


def test_positions_are_not_written():
    w = Writer("save")
    w.program(st.make_graph(lambda x: x + x)(snp.ones(3)))
    assert __file__ not in json.dumps(w.tables())


def test_a_program_of_the_tables():
    program = Reader(tables(), []).program(0)
    assert str(program) == "{ double(a:f32[2])\n  b:f32[2] = add a a\n  return b }"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"programs": None}, "no table of programs"),
        ({"types": [["float31", False, [2]]]}, "there is no dtype 'float31'"),
        ({"types": [["float32", 0, [2]]]}, "expected true or false"),
        ({"types": [["float32", False, [-2]]]}, "no array has this shape"),
        ({"types": [["float32", False, [2**40, 2**40]]]}, "no array has this shape"),
        ({"types": [["float32", False, [1] * 65]]}, "at most 64 sizes"),
        ({"operations": [["os.system", {}]]}, "no operation 'os.system'"),
        ({"operations": [["pure_callback", {}]]}, "no operation 'pure_callback'"),
        ({"operations": [["add", {"axis": 0}]]}, "add has no parameter 'axis'"),
        ({"operations": [["rev", {"axes": "0"}]]}, "rev, axes: expected a list"),
        ({"operations": [["rev", {"axes": [0.5]}]]}, "rev, axes: expected a size"),
        ({"operations": [["rev", {}]]}, "missing 1 required positional argument: 'axes'"),
        ({"operations": [["iota", {"dtype": 3, "shape": [2], "dimension": 0}]]}, "no dtype 3"),
        ({"operations": [["call", {"program": 0}]]}, "expected an integer from 0 to -1"),
        ({"programs": [["f", [0], [[0, [0, 1], [0]]], [1]]]}, "from 0 to 0, got 1"),
        ({"programs": [["f", [0], [[0, [0], [0]]], [1]]]}, "(add): it takes 2 operands, and has 1"),
        ({"programs": [["f", [0], [[0, [0, 0], []]], [0]]]}, "has results [], inferred"),
        ({"programs": [["f", [0], [[0, [0, [0, "00"]], [0]]], [1]]]}, "has 1 bytes"),
        ({"programs": [["f", [0], [[0, [0, [0, "zz"]], [0]]], [1]]]}, "hexadecimal"),
        ({"programs": [[7, [0], [], [0]]]}, "expected text"),
        ({"programs": [["f", [9], [], [0]]]}, "from 0 to 0, got 9"),
        ({"constants": [0]}, "it has 0 constants"),
    ],
)
def test_damaged_tables(changed, words):
    with pytest.raises(Damaged) as caught:
        Reader(tables(**changed), [])
    assert words in str(caught.value)


def test_results_have_the_types_that_are_inferred():
    types = [["float32", False, [2]], ["float32", False, [3]]]
    programs = [["f", [0], [[0, [0, 0], [1]]], [1]]]
    with pytest.raises(Damaged, match=re.escape("[float32[3]], inferred [float32[2]]")):
        Reader(tables(types=types, programs=programs), [])


def test_programs_that_call_each_other_without_end():
    """Each program calls the one before twice: 2^60 operations, though the file is short."""
    count = 60
    calls = [["call", {"program": k}] for k in range(count)]
    twice = [[f"f{k}", [0], [[k, [0], [0]], [k, [1], [0]]], [2]] for k in range(count)]
    with pytest.raises(Damaged, match="call each other too often"):
        Reader(tables(operations=calls, programs=[["f", [0], [], [0]], *twice]), [])


def test_constants_have_the_type_that_is_described():
    record = tables(constants=[0], operations=[["constant", {"held": 0}]])
    record["programs"] = [["f", [], [[0, [], [0]]], [0]]]
    program = Reader(record, [np.ones(2, np.float32)]).program(0)
    assert program.out_types[0].shape == (2,)
    with pytest.raises(Damaged, match=r"constant 0 is damaged: it is float64\[2\]"):
        Reader(record, [np.ones(2)])


def test_former_names(monkeypatch):
    """Files of earlier versions name operations and parameters as these were called."""
    monkeypatch.setitem(operations.FORMER, "flip", "rev")
    monkeypatch.setitem(operations.FORMER_PARAMETERS, ("rev", "dims"), "axes")
    record = tables(operations=[["flip", {"dims": [0]}]])
    record["programs"] = [["f", [0], [[0, [0], [0]]], [1]]]
    assert "rev a [axes=(0,)]" in str(Reader(record, []).program(0))


def test_an_operation_of_ones_own_is_refused():
    w = Writer("save")
    program = st.make_graph(lambda x: st.lax.psum(x, "i"), axis_env=[("i", 2)])(snp.ones(3))
    with pytest.raises(ExportError, match=r"^save: psum at .*: it works across a named axis"):
        w.program(program)
