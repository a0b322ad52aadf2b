"""Programs as StableHLO text: names, functions, regions, positions, calls of Python."""

import re
import time

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.position import lines_of
from stretto._engine.core.program import Equation, Program, Var, check, form
from stretto._engine.core.recorder import record
from stretto._engine.core.types import array_type
from stretto._engine.lowering import stablehlo
from stretto._engine.lowering.stablehlo import Builder, lower
from stretto._engine.lowering.text import Operand
from stretto._engine.ops.arithmetic import ADD
from stretto._engine.ops.iota import Constant, Held
from stretto._engine.xla.pjrt import compile_text, to_device, to_host

X = snp.array(1.5)


def test_constants_are_written_once():
    text = st.jit(lambda x: (x + 2.0) * 2.0 + 2.0).lower(snp.float32(1)).as_text()
    assert text.count("stablehlo.constant") == 1


def test_a_constant_made_in_a_region_stays_there():
    def f(p, x):
        y = st.lax.cond(p, lambda: x * 3.0, lambda: x - 3.0)
        return y + 3.0

    text = st.jit(f).lower(True, snp.float32(1)).as_text()
    assert text.count("dense<3.0>") == 3
    assert [float(st.jit(f)(p, snp.float32(1))) for p in (True, False)] == [6.0, 1.0]


def test_arrays_and_splats():
    def build(b, x):
        table = b.array(np.array([1.5, -2.0, 0.25], np.float32))
        return [b.emit("add", x, table), b.splat(7, array_type((2, 2), np.dtype(np.int32)))]

    class Table:
        multiple, effects, endless = True, frozenset(), False
        lower = staticmethod(build)
        work = staticmethod(lambda types, outs: 0)

    x = Var(array_type((3,), np.dtype(np.float32)))
    outs = [Var(x.type), Var(array_type((2, 2), np.dtype(np.int32)))]
    program = Program([x], [Equation(Table, [x], outs)], outs)
    y, splat = map(
        to_host,
        compile_text(lower(program), program.out_types)(
            [to_device(np.zeros(3, "f4"), x.type, True)]
        ),
    )
    np.testing.assert_array_equal(y, [1.5, -2.0, 0.25])
    np.testing.assert_array_equal(splat, np.full((2, 2), 7))


def test_loops_in_branches_in_loops():
    @st.jit
    def called(x):
        return snp.sin(x) + x + 2.0  # more than x

    def f(x):
        def body(c, i):
            c = st.lax.cond(
                i % 2 == 0,
                lambda: st.lax.while_loop(lambda c: c < 3, called, c),
                lambda: c - called(c),
            )
            return c, st.lax.switch(i, [lambda: c, lambda: called(c), lambda: -c])

        return st.lax.scan(body, x, snp.arange(4))

    with st.config(disable_jit=True):
        want = f(0.5)
    got = st.jit(f)(0.5)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-5)
    np.testing.assert_allclose(got[1], want[1], rtol=1e-5)
    assert st.jit(f).lower(0.5).as_text().count("func.func private") == 1


def test_names_that_mlir_does_not_take():
    def f(x):
        return x + 1

    for name in ("λ", "a-b c", "", "main", '"quoted"', "f.<locals>.g", "9"):
        f.__name__ = name
        assert float(st.jit(f)(1.0)) == 2
        inner = st.jit(f)
        assert float(st.jit(lambda x, inner=inner: inner(x))(1.0)) == 2


@pytest.mark.parametrize(
    "file", ["plain.py", 'quo"te.py', "back\\slash.py", "ünï.py", "new\nline.py", "<stdin>"]
)
def test_positions_in_files_of_any_name(file):
    space = {"snp": snp}
    exec(compile("\n\ndef f(x):\n    return snp.sin(x) * 2\n", file, "exec"), space)
    lowered = st.jit(space["f"]).lower(1.0)
    if file == "plain.py":
        assert 'loc("plain.py":4:0)' in lowered.as_text()
    np.testing.assert_allclose(lowered.compile()(1.0), 2 * np.sin(1), rtol=1e-6)


def test_positions_reach_the_compiled_program():
    text = st.jit(lambda x: snp.sin(x) * x).lower(snp.ones(3)).compile().as_text()
    assert "test_stablehlo.py" in text


def test_no_inputs_and_no_outputs():
    assert compile_text(lower(Program((), (), ())), ())([]) == []
    x = Var(array_type((), np.dtype(np.float32)))
    assert "return\n" in lower(Program([x], [], []))


def test_inline_takes_no_captured_values():
    outside = snp.arange(3.0)
    type = array_type((3,), np.dtype(np.float32))

    class Greedy:
        multiple, effects = False, frozenset()
        lower = staticmethod(lambda b, x: b.inline(lambda v: v + outside, x))

    x, y = Var(type), Var(type)
    with pytest.raises(AssertionError, match="captured a value while being lowered"):
        lower(Program([x], [Equation(Greedy, [x], [y])], [y]))


def test_regions_restore_what_was_outside():
    b = Builder()
    type = array_type((), np.dtype(np.float32))
    outer = b.scalar(1.0, type.dtype)
    text = b.region((type,), lambda x: [b.emit("add", x, b.scalar(1.0, type.dtype), out=type)])
    assert text.count("stablehlo.constant") == 1 and "stablehlo.return" in text
    assert b.scalar(1.0, type.dtype).name == outer.name


def test_a_program_lowered_alone_or_as_part_is_the_same():
    type = array_type((2,), np.dtype(np.float32))
    program = record(lambda x, y: ([ADD(x, y), x], None), [type, type])[0]
    args = [to_device(np.array(v, np.float32), type, True) for v in ([1, 2], [3, 4])]
    outs = compile_text(lower(program), program.out_types)(args)
    np.testing.assert_array_equal(to_host(outs[0]), [4, 6])
    np.testing.assert_array_equal(to_host(outs[1]), [1, 2])


def test_outputs_in_the_place_of_inputs():
    program = st.make_graph(lambda x, y, z: (y * 2, x, z.sum()))(*[snp.ones(3)] * 3)
    head = lower(program, {1: 0, 0: 1}).split("\n")[1]
    assert "%arg0: tensor<3xf32> {tf.aliasing_output = 1 : i32}, " in head
    assert "%arg1: tensor<3xf32> {tf.aliasing_output = 0 : i32}, %arg2: tensor<3xf32>)" in head
    assert "aliasing" not in lower(program)
    compiled = compile_text(lower(program, {1: 0, 0: 1}), program.out_types)
    assert compiled.memory_analysis().alias_size_in_bytes == 24


def effects(f, *args):
    """The text of a function with calls of Python."""
    return st.jit(f).lower(*args).as_text()


def test_calls_of_python_are_numbered_and_kept():
    def f(x):
        st.debug.callback(print, x)
        st.io_callback(len, None, x)
        return st.pure_callback(abs, x, x)

    text = effects(f, X)
    assert [f"index = {i} : ui64" in text for i in range(4)] == [True, True, True, False]
    assert text.count("has_side_effect = true") == 2
    assert "i32" not in text.split("#u0")[0].replace("4 : i32", "")  # no token


def test_a_token_goes_through_calls_loops_and_branches():
    def show(x):
        st.debug.callback(print, x, ordered=True)
        return x

    inner = st.jit(show)
    text = effects(lambda x: inner(inner(x)), X)
    assert text.count("(tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)") == 2
    assert "%token: tensor<i32>" in text
    loop = lambda x: st.lax.scan(lambda c, _: (show(c), None), x, None, length=3)[0]
    assert "tensor<i32>, tensor<f32>, tensor<i32>) -> " in effects(loop, X)
    branch = lambda x: st.lax.cond(x > 0, show, lambda x: -x, x)
    (line,) = [x for x in effects(branch, X).splitlines() if x.endswith("tensor<i32>) loc(#u1)")]
    assert line.startswith("}) : (tensor<i32>) -> (tensor<f32>, tensor<i32>)")
    assert "token" not in effects(st.jit(lambda x: x + 1), X)


def test_named_operations_stand_in_their_lines():
    def f(x):
        with st.named_scope("here"):
            return snp.sin(x)

    text = st.jit(f).lower(X).as_text()
    assert '"stablehlo.sine"(%arg0) : (tensor<f32>) -> tensor<f32> loc(#n0)' in text
    assert '#n0 = loc("here/sin"(#u0))' in text


def test_named_operations_of_one_call_have_their_own_names():
    def f(x):
        with st.named_scope("here"):
            return snp.sinc(x)

    text = st.jit(f).lower(X).as_text()
    names = [e.primitive.name for e in st.make_graph(f)(X).equations]
    places = {e.place[:2] for e in st.make_graph(f)(X).equations}
    assert len({*names}) > 2 and len(places) == 1
    assert all(f'loc("here/{name}"(#u0))' in text for name in names)


def test_operations_of_called_functions_have_names():
    """The compiler appends them to that of the call; in main none is needed."""
    inner = st.jit(snp.sin)
    text = st.jit(lambda x: snp.cos(inner(x))).lower(X).as_text()
    (sine,) = [line for line in text.splitlines() if "stablehlo.sine" in line]
    (cosine,) = [line for line in text.splitlines() if "stablehlo.cosine" in line]
    alias = sine.rpartition("loc(")[2].rstrip(")")
    assert f'{alias} = loc("sin"(#u' in text and "loc(#u" in cosine


def test_functions_that_call_functions_of_their_name():
    first = st.jit(lambda x: snp.sin(x) * 2)
    second = st.jit(lambda x: first(x) + 1)
    f = lambda x: second(first(x))
    text = st.jit(f).lower(X).as_text()
    names = re.findall(r"func\.func private @(\w+)", text)
    assert len({*names}) == len(names) == 2
    np.testing.assert_allclose(st.jit(f)(X), 2 * np.sin(2 * np.sin(1.5)) + 1, rtol=1e-6)


def test_modules_that_are_called():
    b, type = Builder(), array_type((3,), np.dtype(np.float32))
    b._outputs = (Var(type),)
    x, known, less = Operand("%x", type), "tensor<3xf32>", "tensor<?xf32>"
    for taken, given in ((known, known), (less, less)):
        (out,) = b.call_module("func.func @m", "m", ["solver"], [x], [taken], [given])
        assert out.type == type
    assert b._bodies == ["func.func @m"] and b._facts.targets == {"solver"}
    assert b._facts.has_loops and b._facts.has_reductions and not b._has_scalars_alone
    assert [line.split(" loc")[0] for line in b._lines] == [
        "%1:1 = func.call @m(%x) : (tensor<3xf32>) -> (tensor<3xf32>)",
        "%2 = stablehlo.convert %x : (tensor<3xf32>) -> tensor<?xf32>",
        "%3:1 = func.call @m(%2) : (tensor<?xf32>) -> (tensor<?xf32>)",
        "%4 = stablehlo.convert %3#0 : (tensor<?xf32>) -> tensor<3xf32>",
    ]


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("platform", ["cpu", "gpu"])
def test_calls_that_are_kept_apart_are_not_inlined_on_cpus(apart, platform):
    program = record(lambda x: ([ADD(x, x)], None), [X.type])[0]
    b = type("Other", (Builder,), {"platform": platform})()
    b._in_loop = True
    b.call(program, [Operand("%x", array_type((), np.dtype(np.float32)))], apart)
    kept = apart and platform == "cpu"
    assert ('inlineable = "false"' in b._lines[-1]) == kept
    assert b._facts.largest_call_in_loops == int(kept)


def constant(array):
    """An array held by the program, as a derivative rule may bring one."""
    return Constant(Held(array, array_type(array.shape, array.dtype)))()


LARGE = np.arange(1_000_000, dtype=np.float32)


def everywhere(x):
    """A large constant in main, in regions, in functions, and in regions of functions."""
    inner = st.jit(lambda x: st.lax.cond(x > 0, lambda: x + constant(LARGE)[7], lambda: x))
    looped = st.lax.while_loop(lambda c: c < constant(LARGE)[100], lambda c: inner(c) * 2, x)
    summed = st.lax.scan(lambda c, _: (c + constant(LARGE)[2], c), x, None, length=3)
    return constant(LARGE)[5] * inner(x), looped, summed, constant(LARGE[:5])


def test_large_constants_are_passed_and_not_written():
    start = time.process_time()
    text = st.jit(everywhere).lower(1.5).as_text()
    assert time.process_time() - start < 1
    assert len(text) < 10_000 and text.arrays == (LARGE,)
    assert "dense<[0.0, 1.0, 2.0, 3.0, 4.0]>" in text
    got, want = st.jit(everywhere)(1.5), everywhere(snp.float32(1.5))
    for g, w in zip(st.tree.leaves(got), st.tree.leaves(want), strict=True):
        np.testing.assert_array_equal(g, w)


def test_programs_that_differ_in_large_constants_alone():
    def fun(array):
        return st.jit(lambda x: x * constant(array)[-1])

    first, second = LARGE[:1000], LARGE[1000:2000]
    assert fun(first).lower(2.0).as_text() == fun(second).lower(2.0).as_text()
    assert [float(fun(a)(2.0)) for a in (first, second, first)] == [1998.0, 3998.0, 1998.0]


def test_a_large_constant_beside_donated_arguments_and_callbacks():
    seen = []

    def f(x):
        st.debug.callback(seen.append, x[0])
        return x + constant(LARGE)[: x.size]

    def g(x):
        return x + constant(LARGE)[: x.size]

    np.testing.assert_array_equal(st.jit(f)(np.ones(3, "f4")), [1, 2, 3])
    st.debug.effects_barrier()
    assert len(seen) == 1
    donated = st.jit(g, donate_argnums=0)
    for _ in range(2):
        np.testing.assert_array_equal(donated(snp.ones(2000)), LARGE[:2000] + 1)


def test_a_large_array_of_a_rule_is_passed():
    table = snp.array(LARGE)

    @st.custom_jvp
    def fun(x):
        return x

    fun.defjvp(lambda p, t: (p[0], t[0] * table[: p[0].size]))
    loss = lambda x: st.lax.scan(lambda c, _: (fun(c), None), x, None, length=2)[0].sum()
    traced = st.jit(st.grad(loss)).trace(np.ones(3, "f4"))
    assert len(traced.lower().as_text()) < 10_000
    np.testing.assert_array_equal(st.jit(st.grad(loss))(np.ones(3, "f4")), LARGE[:3] ** 2)


def test_equal_functions_are_written_once():
    def f(x):
        for k in (2.0, 3.0, 2.0, 3.0, 2.0):
            x = st.jit(lambda x, k=k: snp.sin(x) * k)(x)
        return x

    text = st.jit(f).lower(X).as_text()
    assert text.count("func.func private") == 2 and text.count("func.call") == 5
    expected = f(X)
    np.testing.assert_allclose(st.jit(f)(X), expected, rtol=1e-6)


def test_functions_of_other_names_keep_their_own():
    def one(x):
        return snp.sin(x) * 2

    def other(x):
        return snp.sin(x) * 2

    text = st.jit(lambda x: st.jit(one)(x) + st.jit(other)(-x)).lower(X).as_text()
    assert "@one_0" in text and "@other_1" in text


@pytest.mark.parametrize(
    "walk, nested",
    [(lower, False), (lower, True), (str, False), (str, True), (check, True), (form, False)],
)
def test_time_is_in_proportion(walk, nested):
    """Per equation as long for eight times as many; three times is for a busy machine."""

    def each(count):
        def steps(x):
            for _ in range(count // 2):
                x = snp.sin(x) * 1.5
            return x

        def loops(x):
            once = lambda c, _: (steps(c), None)
            twice = lambda c, _: (st.lax.scan(once, c, None, length=2)[0], None)
            return st.lax.cond(x > 0, lambda: st.lax.scan(twice, x, None, length=2)[0], lambda: x)

        program = st.make_graph(loops if nested else steps)(1.5)
        times = []
        for _ in range(8):
            again = Program(program.inputs, program.equations, program.outputs)
            start = time.process_time()
            walk(again)
            times.append(time.process_time() - start)
        return min(times) / count

    assert each(4000) < 3 * each(500)


def test_zeros_of_both_signs_are_two_constants():
    zero, minus = np.zeros(2, np.float32), -np.zeros(2, np.float32)
    text = st.jit(lambda x: (snp.maximum(x, 0.0), x + -0.0, x * 0.0)).lower(zero).as_text()
    assert text.count("dense<0.0>") == text.count("dense<-0.0>") == 1
    out = st.jit(lambda x: x + -0.0)(minus)
    np.testing.assert_array_equal(np.signbit(out), [True, True])


def test_the_lines_of_a_function_are_found_once(monkeypatch):
    source = "def f(x):\n" + " x = x * x\n" * 300 + " return x\n"
    scope = {}
    exec(compile(source, "straight.py", "exec"), scope)
    asked = []
    monkeypatch.setattr(stablehlo, "lines_of", lambda code: asked.append(code) or lines_of(code))
    text = lower(record(lambda x: ([scope["f"](x)], None), [X.type])[0])
    assert asked == [scope["f"].__code__]
    for line in (2, 150, 301):
        assert f'loc("straight.py":{line}:0)' in text
    assert text.count('loc("straight.py"') == 300
