"""Ahead of time: traced, lowered, compiled, and called."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.api.graph import typeof
from stretto._engine.api.jit.stages import on_device
from stretto._engine.core.program import check


def test_lower_and_compile():
    def affine(w, b, x):
        return x @ w + b

    args = snp.ones((4, 2)), snp.ones(2), snp.ones(4)
    lowered = st.jit(affine).lower(*args)
    assert "stablehlo.dot_general" in lowered.as_text()
    compiled = lowered.compile()
    assert "dot" in compiled.as_text()
    np.testing.assert_array_equal(compiled(*args), [5, 5])
    np.testing.assert_array_equal(compiled(*map(np.asarray, args)), [5, 5])
    assert compiled.cost_analysis()["flops"] > 0
    memory = compiled.memory_analysis()
    assert memory.output_size_in_bytes >= 8 and memory.argument_size_in_bytes >= 56


def test_arguments_that_do_not_fit_are_named():
    compiled = st.jit(lambda tree, y: (tree["w"] @ y, tree["b"])).lower(
        {"w": snp.ones((2, 3)), "b": snp.ones(2)}, snp.ones(3)
    ).compile()  # fmt: skip
    tree = {"w": snp.ones((2, 3)), "b": snp.ones(2)}
    for wrong, message in [
        (
            ({**tree, "w": snp.ones((3, 3))}, snp.ones(3)),
            r"function: compiled for tree\['w'\] as float32\[2,3\], called with float32\[3,3\]",
        ),
        ((tree, snp.arange(3)), r"compiled for y as float32\[3\], called with int32\[3\]"),
        (
            ({"w": snp.ones(1), "b": snp.ones(1)}, snp.ones(1)),
            r"tree\['b'\] as .*; for tree\['w'\] as .*; for y as .*",
        ),
        ((tree,), r"another structure.*a tuple of length 2 and a tuple of length 1"),
        (({**tree, "c": 1.0}, snp.ones(3)), r"\(args, kwargs\)\[0\]\[0\]: .*keys"),
        (({**tree, "w": "text"}, snp.ones(3)), r"function: tree\['w'\] must be an array"),
    ]:
        with pytest.raises(TypeError, match=message):
            compiled(*wrong)
    with pytest.raises(TypeError, match="another structure"):
        compiled(tree, y=snp.ones(3))


@pytest.mark.parametrize(
    "use",
    [
        lambda f: st.jit(f)(snp.ones(2)),
        lambda f: st.grad(lambda x: f(x).sum())(snp.ones(2)),
        lambda f: st.vmap(f)(snp.ones((3, 2))),
    ],
)
def test_a_compiled_function_cannot_be_transformed(use):
    compiled = st.jit(snp.sin).lower(snp.ones(2)).compile()
    with pytest.raises(TypeError, match=r"sin: .*takes arrays only, and x is traced.*jitted one"):
        use(compiled)
    out = []
    st.jit(lambda x: out.append(compiled(snp.zeros(2))) or x)(1.0)  # with arrays it runs
    np.testing.assert_array_equal(out[0], 0)


def test_the_text_is_that_of_what_is_compiled():
    def f(used, unused, also):
        for _ in range(50):
            unused = snp.sin(unused)
        return used * 2

    args = snp.ones(2), snp.ones(3), 5
    lowered = st.jit(f).lower(*args)
    assert "%arg1" not in lowered.as_text() and "sine" not in lowered.as_text()
    assert lowered.compile()._executable.text == lowered.as_text()
    np.testing.assert_array_equal(lowered.compile()(*args), 2)
    kept = st.jit(f, keep_unused=True).lower(*args)
    assert "%arg2: tensor<i32>" in kept.as_text() and "sine" not in kept.as_text()
    np.testing.assert_array_equal(kept.compile()(*args), 2)
    np.testing.assert_array_equal(st.jit(f, keep_unused=True)(*args), 2)


def test_unused_work_leaves_a_copy():
    def f(x):
        y = snp.copy(x)
        unused = y
        for _ in range(1000):
            unused = unused * x
        return y

    compiled = st.jit(f).lower(snp.ones((64, 64))).compile()
    text = compiled.as_text()
    assert "multiply" not in text
    entry = text[text.index("ENTRY") :]
    assert "copy" in entry and "fusion" not in entry
    assert compiled.cost_analysis().get("flops", 0) == 0
    np.testing.assert_array_equal(compiled(snp.ones((64, 64))), 1)


def test_what_the_stages_tell():
    f = st.jit(lambda x, n, *, y: {"a": x[:n] + y, "b": (x,)}, static_argnums=1, donate_argnums=0)
    x, y = snp.ones(4), snp.ones((2, 3), snp.int32)[0, :2]
    traced = f.trace(x, 2, y=y)
    for stage in (traced, traced.lower(), traced.lower().compile()):
        (info,), named = stage.args_info
        assert (info.shape, info.dtype, info.donated) == ((4,), np.float32, True)
        assert (named["y"].shape, named["y"].dtype.name, named["y"].donated) == (
            (2,),
            "int32",
            False,
        )
        assert stage.out_info["a"] == st.ShapeDtypeStruct((2,), snp.float32)
        assert stage.out_info["b"][0].shape == (4,)
        assert stage.fun_name == "function"
        assert stage.in_tree == st.tree.structure(((1,), {"y": 1}))
        assert stage.out_tree == st.tree.structure({"a": 1, "b": (1,)})
    assert f.eval_shape(x, 2, y=y) == traced.out_info
    assert st.jit(snp.sin).trace(x).args_info == st.jit(lambda x: x).lower(x).args_info
    (info,), named = st.jit(snp.sin).trace(x).args_info
    assert info == st.typing.ArgInfo((4,), np.dtype(np.float32), False) and named == {}


def test_costs_before_and_after_optimization():
    lowered = st.jit(lambda x: snp.sin(x) @ x).lower(snp.ones((8, 8)))
    assert lowered.cost_analysis()["flops"] == 8 * 8 * 8 * 2
    assert lowered.cost_analysis()["transcendentals"] == 64
    assert lowered.compile().cost_analysis()["flops"] > 0


def test_what_captures_a_traced_value_is_not_compiled():
    def outer(x):
        inner = st.jit(lambda y: x + y)
        assert "add" in str(inner.trace(1.0))
        with pytest.raises(
            st.errors.TracedValueError, match=r"captures a traced value \(the argument x\); pass"
        ):
            inner.lower(1.0).compile()
        return inner(x)

    assert float(st.jit(outer)(1.0)) == 2


# Options of the compiler


def test_compiler_options():
    plain = st.jit(lambda x: snp.sqrt(x) * 2)
    lowered = plain.lower(4.0)
    one = lowered.compile()
    other = lowered.compile(compiler_options={"xla_backend_optimization_level": 0})
    again = lowered.compile(compiler_options={"xla_backend_optimization_level": 0})
    assert one._executable is not other._executable is again._executable
    fast = st.jit(lambda x: snp.sqrt(x) * 2, compiler_options={"xla_cpu_enable_fast_math": True})
    assert [float(f(4.0)) for f in (one, other, again, fast, fast)] == [4] * 5
    assert fast.lower(4.0).compile()._executable is not one._executable
    both = fast.lower(4.0).compile({"xla_backend_optimization_level": 0})
    assert float(both(4.0)) == 4


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"xla_nonsense": 1}, st.errors.ConfigError, "No such compile option: 'xla_nonsense'.*XLA"),
        (
            {"xla_cpu_enable_fast_math": "perhaps"},
            st.errors.ConfigError,
            "xla_cpu_enable_fast_math, 'perhaps' is not a valid bool value",
        ),
        ({"xla_cpu_enable_fast_math": None}, TypeError, "compiler_options must have names"),
        ({1: True}, TypeError, "compiler_options must have names"),
        (["xla"], TypeError, "compiler_options must be a dict of XLA's flags, got list"),
    ],
)
def test_compiler_options_that_are_not_there(options, error, message):
    with pytest.raises(error, match=message):
        st.jit(snp.sin, compiler_options=options)(1.0)
    with pytest.raises(error, match=message):
        st.jit(snp.sin).lower(1.0).compile(compiler_options=options)


def test_compiler_options_hold_for_a_whole_program():
    f = st.jit(snp.sin, compiler_options={"xla_cpu_enable_fast_math": True})
    for use in (lambda: st.jit(f)(1.0), lambda: st.grad(f)(1.0), lambda: st.vmap(f)(snp.ones(2))):
        with pytest.raises(ValueError, match=r"sin has compiler_options.*outermost jit"):
            use()
    inner = st.jit(snp.sin)
    outer = st.jit(inner, compiler_options={"xla_cpu_enable_fast_math": True})
    assert float(outer(0.0)) == 0


def test_lower_with_static_and_keyword_arguments():
    f = st.jit(lambda x, n, y=0.0: x * n + y, static_argnums=1)
    assert float(f.lower(2.0, 3).compile()(2.0)) == 6
    assert float(f.lower(2.0, 3, y=1.0).compile()(2.0, y=5.0)) == 11
    assert float(st.jit(lambda x, y=0.0: x - y).lower(2.0, y=1.0).compile()(2.0, y=5.0)) == -3


def test_arguments_by_name_are_told_apart():
    f = st.jit(lambda x=0.0, y=0.0: x - y)
    one = np.float32(1)
    assert [float(f.trace(**{name: one}).lower().compile()(**{name: one})) for name in "xy"] == [
        1.0,
        -1.0,
    ]


def test_lower_for_shapes_alone():
    spec = st.ShapeDtypeStruct((2, 3), snp.float32)
    assert (spec.ndim, spec.size, repr(spec)) == (
        2,
        6,
        "ShapeDtypeStruct(shape=(2, 3), dtype=float32)",
    )
    compiled = (
        st.jit(lambda t: t["x"].sum(0) + t["y"]).lower({"x": spec, "y": snp.ones(3)}).compile()
    )
    np.testing.assert_array_equal(compiled({"x": snp.ones((2, 3)), "y": snp.ones(3)}), [3, 3, 3])


def test_the_trace_can_be_read():
    traced = st.jit(lambda x: snp.sin(x) * 2).trace(1.0)
    assert "sin" in str(traced) and len(traced.program.equations) == 2
    check(traced.program)


def test_programs_name_the_users_line():
    text = st.jit(lambda x: snp.sin(x) + 1).lower(1.0).as_text()
    assert "test_stages.py" in text


def test_what_stages_tell_under_jaxs_names():
    traced = st.jit(lambda x, y: {"z": x + y}, donate_argnums=1).trace(1.0, y=snp.ones(2))
    lowered = traced.lower()
    compiled = lowered.compile()
    assert traced.jaxpr is traced.program
    assert traced.out_avals["z"] is snp.ones(2).type
    for stage in (traced, lowered, compiled):
        assert stage.in_avals == ((typeof(1.0),), {"y": snp.ones(2).type})
        assert stage.donate_argnums == (1,)
    assert compiled.call(1.0, y=snp.ones(2))["z"].tolist() == [2.0, 2.0]
    assert lowered.as_text("stablehlo") == lowered.as_text(dialect=None)
    assert "ENTRY" in lowered.as_text("hlo")
    with pytest.raises(ValueError, match="dialect must be 'stablehlo', 'hlo' or None, got 'mhlo'"):
        lowered.as_text("mhlo")


def test_classes_of_the_stages():
    jitted = st.jit(lambda x: x + 1)
    lowered = jitted.lower(1.0)
    assert isinstance(jitted, st.typing.Jitted)
    assert isinstance(jitted.trace(1.0), st.typing.TracedCall)
    assert isinstance(lowered, st.typing.Lowered)
    assert isinstance(lowered.compile(), st.typing.Compiled)
    assert isinstance(lowered.args_info[0][0], st.typing.ArgInfo)


def test_three_arguments_that_differ_are_named_and_the_others_counted():
    compiled = st.jit(lambda *xs: xs).lower(*[snp.ones(2)] * 5).compile()
    for count in (1, 2, 3, 4, 5):
        args = [*[snp.ones(3)] * count, *[snp.ones(2)] * (5 - count)]
        with pytest.raises(TypeError, match="compiled for") as raised:
            compiled(*args)
        message = str(raised.value).split("\n")[0]
        assert message.count("called with float32[3]") == min(count, 3)
        assert ("more that differ" in message) is (count > 3)
        assert count <= 3 or f", and {count - 3} more that differ" in message
    assert [x.tolist() for x in compiled(*[snp.ones(2)] * 5)] == [[1, 1]] * 5


def test_numbers_are_compared_by_shape_and_dtype_alone():
    compiled = st.jit(lambda x: x + 1).lower(snp.float32(1)).compile()
    assert compiled(2.0) == 3  # of weak type
    with pytest.raises(TypeError, match=r"compiled for x as float32\[\], called with int32\[\]"):
        compiled(2)


@pytest.mark.devices
def test_arrays_that_are_elsewhere_are_refused():
    mesh = st.make_mesh((8,), ("data",))
    split, whole = (st.sharding.NamedSharding(mesh, st.P(name)) for name in ("data", None))
    compiled = st.jit(lambda x: x + 1, in_shardings=split).lower(snp.ones(8)).compile()
    np.testing.assert_array_equal(compiled(snp.ones(8)), 2)
    np.testing.assert_array_equal(compiled(st.device_put(snp.ones(8), split)), 2)
    with pytest.raises(TypeError, match=r"for x with the sharding .*'data'.*, called with"):
        compiled(st.device_put(snp.ones(8), whole))


def test_arrays_of_numpy_are_copied_to_the_device():
    """Also where their memory is such that the runtime would take it as it is."""
    memory = np.zeros((1 << 16) + 16, np.float32)
    x = memory[-memory.ctypes.data % 64 // 4 :][: 1 << 16]
    there = on_device(x)
    x[:] = 1
    np.testing.assert_array_equal(there, 0)
    for other in (2.0, snp.ones(2), np.float32(3), np.zeros((0, 2), np.float32), np.ones(2, "f8")):
        assert on_device(other) is other


@pytest.mark.parametrize("static", [(), (2,)])
def test_what_is_traced_beforehand_is_not_traced_again_by_a_call(static):
    traced = []

    def weighted(x, y=1.0, z=2):
        traced.append(1)
        return x + 10 * y + 100 * z

    f, x = st.jit(weighted, static_argnums=static), snp.ones(2)
    calls = [((x,), {}), ((x,), {"y": 3.0}), ((x, 3.0), {}), ((x, 3.0, 4), {})]
    if not static:
        calls += [((x,), {"z": 5}), ((x, 3.0), {"z": 5})]
    for count, (args, named) in enumerate(calls, 1):
        f.trace(*args, **named)
        out = f(*args, **named)
        assert len(traced) == count
        np.testing.assert_array_equal(out, weighted(*args, **named))
        traced.pop()  # which the function itself has added
