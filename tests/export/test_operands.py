"""What is checked of operands in files, beyond type inference."""

import json
import re

import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.ops.arithmetic import Add, Neg
from stretto._engine.ops.random_bits import Threefry2x32
from stretto._engine.ops.sort import Sort
from stretto.export.operands import operands_of
from stretto.export.operations import class_of
from stretto.export.rules import with_rules
from stretto.export.written_programs import Reader, Writer
from stretto.files.names import Damaged


def test_numbers_of_operands():
    assert [operands_of(cls) for cls in (Neg, Add, Threefry2x32, Sort)] == [1, 2, 4, None]
    assert operands_of(class_of("hyp1f1")) == 3
    assert operands_of(class_of("scan")) is None


def scanned(x):
    return lax.scan(lambda c, row: (c + row, c), x, snp.ones((4, 3)))


def ruled(x):
    own = st.custom_jvp(lambda x: snp.sin(x) * 2)
    own.defjvp(lambda p, t: (own(*p), t[0]))
    return own(x)


def backwards(x):
    own = st.custom_vjp(lambda x: snp.sin(x) * 2)
    own.defvjp(lambda x: (snp.sin(x) * 2, x), lambda r, ct: (r * ct,))
    return own(x)


def looped(x):
    return lax.while_loop(lambda c: c[0] > 1, lambda c: c / 2, x)


def branched(x):
    return lax.cond(x[0] > 0, snp.sin, snp.cos, x)


def linear(x):
    return lax.linear_call(lambda r, x: x / r, lambda r, ct: ct / r, x, x)


def solved(x):
    return lax.custom_linear_solve(lambda y: y * x, x, lambda matvec, b: b / x)


def mapped(x):
    own = st.custom_vmap(lambda x: snp.sin(x) * 2)
    own.def_vmap(lambda size, over, x: (x, True))
    return own(x)


CASES = [
    (scanned, "scan", "carry", 0, "must have a leading axis of 4"),
    (scanned, "scan", "carry", 9, "says that 9 are of a kind"),
    (scanned, "scan", "length", 5, "must have a leading axis of 5"),
    (scanned, "scan", "unroll", 0, "0 steps in each iteration"),
    (looped, "while", "body_consts", 1, "the carry returned is of types"),
    (branched, "cond", "size", 3, r"must be an int32 of shape \(3,\)"),
    (linear, "linear_call", "linear", 2, "is for 1 operands or results, and it has 2"),
    (solved, "custom_linear_solve", "consts", [2, 0, 0], "operand"),
]


@pytest.mark.parametrize(("fun", "name", "parameter", "value", "words"), CASES)
def test_parameters_that_do_not_fit_the_operands(fun, name, parameter, value, words):
    record, arrays = written(fun)
    operation = [op for op in record["operations"] if op[0] == name][-1]
    operation[1][parameter] = value
    with pytest.raises(Damaged, match=words):
        Reader(record, arrays)


def gathered(x):
    return x[snp.array([2, 0])]


def added(x):
    return x.at[snp.array([2, 0])].add(1.0)


def product(x):
    return lax.dot_general(x[None], x[:, None], (((1,), (0,)), ((), ())))


def spread(x):
    return lax.broadcast_in_dim(x, (2, 3), (1,))


def counted(x):
    return lax.broadcasted_iota("int32", (3, 2), 1) + x[:, None]


def convolved(x):
    return lax.conv_general_dilated(x[None, None], snp.ones((1, 1, 2)), (1,), "SAME")


@pytest.mark.parametrize(
    ("fun", "name", "place", "value", "words"),
    [
        (lambda x: (x[:, None] * x).T, "transpose", ["permutation", 0], 0, "no axes of an array"),
        (lambda x: (x[:, None] * x).T, "transpose", ["permutation"], [0], "it permutes 1 axes"),
        (gathered, "gather", ["slice_sizes", 0], 4, "are no part of float32"),
        (gathered, "gather", ["slice_sizes"], [1, 1], "its slices have 2 axes"),
        (gathered, "gather", ["dimension_numbers", 2, 0], 1, r"\[1\] are no axes of an array"),
        (added, "scatter_add", ["dimension_numbers", 2, 0], -1, r"\[-1\] are no axes"),
        (product, "dot_general", ["summed", 0, 0], 2, r"\[2\] are no axes"),
        (spread, "broadcast_in_dim", ["dims", 0], 2, r"\[2\] are no axes of an array of rank 2"),
        (counted, "iota", ["dimension"], 2, r"\[2\] are no axes"),
        (
            convolved,
            "conv_general_dilated",
            ["dims", 2, 0],
            1,
            r"are no axes of an array of rank 3",
        ),
        (convolved, "conv_general_dilated", ["dims", 0], [0, 1], "it does not name each of 3"),
    ],
)
def test_axes_that_an_array_has_not(fun, name, place, value, words):
    record, arrays = written(fun)
    holder = [op for op in record["operations"] if op[0] == name][-1][1]
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    with pytest.raises(Damaged, match=words):
        Reader(record, arrays)


def written(fun):
    program = with_rules(st.make_graph(fun)(snp.ones(3)), 1, "save")
    w = Writer("save")
    w.program(program)
    record = json.loads(json.dumps({**w.tables(), "sizes": []}))
    Reader(record, w.arrays)  # as it is, it is right
    return record, w.arrays


@pytest.mark.parametrize(
    "fun", [scanned, ruled, backwards, looped, branched, linear, solved, mapped]
)
def test_programs_with_another_operand(fun):
    """Whatever holds programs gets operands of the types of their inputs."""
    record, arrays = written(fun)
    record["types"].append(["int8", False, [7]])
    wrong = len(record["types"]) - 1
    last = record["programs"][-1]
    equations = [e for e in last[2] if record["operations"][e[0]][0] in NAMES]
    assert equations
    for k in range(len(equations[-1][1])):
        changed = json.loads(json.dumps(record))
        changed["programs"][-1][1].append(wrong)
        changed["programs"][-1][2] = shifted(changed["programs"][-1], record, k)
        with pytest.raises(Damaged, match="equation") as caught:
            Reader(changed, arrays)
        assert re.search(r"must be|must have|takes", str(caught.value)), caught.value


NAMES = {"scan", "custom_jvp", "custom_vjp", "while", "cond", "linear_call", "custom_vmap",
         "custom_linear_solve"}  # fmt: skip


def shifted(program, record, k):
    """The equations behind one more input, which the k-th operand of a loop or a rule reads."""
    _, inputs, equations, outputs = program
    new = len(inputs) - 1
    later = lambda a: a if isinstance(a, list) or a < new else a + 1
    made = [[op, [later(a) for a in reads], outs] for op, reads, outs in equations]
    (holder,) = [e for e in made if record["operations"][e[0]][0] in NAMES][-1:]
    holder[1][k] = new
    program[3] = [later(a) for a in outputs]
    return made


def test_rules_that_do_not_fit():
    for fun, rule in ((ruled, "JvpRule"), (backwards, "VjpRule")):
        record, arrays = written(fun)
        for name, parameters in record["operations"]:
            if name in ("custom_jvp", "custom_vjp") and parameters["rule"][0] == rule:
                parameters["rule"][1][{"JvpRule": 2, "VjpRule": 3}[rule]] = [True, True]
        with pytest.raises(Damaged, match="its rule is for 2 operands or results, and it has 1"):
            Reader(record, arrays)


def test_a_negative_number_of_operands_is_none():
    record, arrays = written(scanned)
    for name, parameters in record["operations"]:
        if name == "scan":
            parameters["consts"] = -1
    with pytest.raises(Damaged, match="says that -1 are of a kind"):
        Reader(record, arrays)
