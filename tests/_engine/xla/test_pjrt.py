"""The boundary to jaxlib: versions, buffers both ways, compiled text."""

import ctypes
import subprocess
import sys
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.types import array_type
from stretto._engine.lowering.text import Facts, Text
from stretto._engine.xla import patience, pjrt

LIBRARY, REDUCE = "xla_cpu_experimental_ynn_fusion_type", "LIBRARY_FUSION_TYPE_REDUCE"


def layouts():
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    yield from (x, x.T, x[:, ::2], x[..., 1], x[0, 0, 0:0], np.float32(3) + np.zeros(()), x[::-1])
    yield np.broadcast_to(np.float32(2), (3, 4))
    for dtype in (
        bool,
        "i1",
        "u2",
        "i8",
        "f8",
        "c16",
        "f2",
        ml_dtypes.bfloat16,
        ml_dtypes.float8_e5m2,
        ml_dtypes.int4,
    ):
        yield np.ones((2, 3), dtype)


@pytest.mark.parametrize("own", [False, True])
def test_there_and_back(own):
    for x in layouts():
        type = array_type(x.shape, x.dtype)
        back = pjrt.to_host(pjrt.to_device(x, type, own))
        assert (back.shape, back.dtype) == (x.shape, x.dtype)
        np.testing.assert_array_equal(back, x)
        assert not back.flags.writeable


def aligned(size):
    """Zeros at an address that is a multiple of 64, which the runtime takes without a copy."""
    memory = np.zeros(size + 16, np.float32)
    start = -memory.ctypes.data % 64 // memory.itemsize
    return memory[start : start + size]


def test_memory_that_is_not_ours_is_copied():
    x = aligned(1 << 16)
    buffer = pjrt.to_device(x, array_type(x.shape, x.dtype), own=False)
    x[:] = 1
    np.testing.assert_array_equal(pjrt.to_host(buffer), 0)


def test_memory_that_is_ours_is_not():
    x = aligned(1 << 16)
    buffer = pjrt.to_device(x, array_type(x.shape, x.dtype), own=True)
    assert buffer.unsafe_buffer_pointer() == x.ctypes.data


def test_compile_text():
    type = array_type((2,), np.dtype(np.float32))
    text = Text("""
    func.func public @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
      %y = stablehlo.add %x, %x : tensor<2xf32>
      return %y, %x : tensor<2xf32>, tensor<2xf32>
    }""")
    executable = pjrt.compile_text(text, [type, type])
    x = pjrt.to_device(np.array([1, 2], np.float32), type, True)
    y, same = executable([x])
    pjrt.wait(y)
    np.testing.assert_array_equal(pjrt.to_host(y), [2, 4])
    np.testing.assert_array_equal(pjrt.to_host(same), [1, 2])
    assert "add" in executable.as_text()
    assert executable.cost_analysis()["flops"] == 2
    assert executable.memory_analysis().argument_size_in_bytes == 8


def test_text_that_is_wrong_is_refused():
    with pytest.raises(Exception, match="stablehlo"):
        pjrt.compile_text(Text("func.func @main() { stablehlo.nonsense }"), [])


def test_errors_of_a_computation_reach_the_user():
    big = st.jit(lambda n: snp.zeros((1 << 20, 1 << 20)) + n)
    # With jaxlib 0.12 it is refused before it is compiled.
    with pytest.raises(MemoryError, match=r"it (needs|has an array of) 4,398,046,511,104 bytes"):
        st.block_until_ready(big(1.0))


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize("has_loops", [False, True])
def test_errors_of_the_compiler_are_raised(monkeypatch, has_loops):
    at, facts, tried = pjrt.runtime(), Facts(has_loops=has_loops), []

    def fail(*args):
        tried.append(args)
        raise at.jax.JaxRuntimeError("INTERNAL: no")

    monkeypatch.setattr(pjrt, "_load", fail)
    with pytest.raises(at.jax.JaxRuntimeError, match="no"):
        pjrt.load(at, Text("", facts=facts), ())
    assert len(tried) == 1  # for another reason it is not compiled again


def test_what_a_program_needs_is_provided_before_it_is_loaded(monkeypatch):
    at = pjrt.runtime()
    compiled = st.jit(lambda x: x * 3 + 1).lower(snp.ones(5)).compile()._executable
    content = pjrt.serialize(compiled)
    order = []
    monkeypatch.setattr(at, "provide", order.append)
    loaded = pjrt.deserialize(content, compiled.text, ())
    assert loaded is not None and order == [compiled.text.facts]
    pjrt.load(at, compiled.text, ())
    assert order == [compiled.text.facts] * 2
    assert pjrt.deserialize(b"no program", compiled.text, ()) is None


def test_an_error_while_waiting_is_raised_alone():
    def fail():
        raise RuntimeError("INTERNAL: no")

    buffer = SimpleNamespace(is_ready=lambda: True, block_until_ready=fail)
    with pytest.raises(RuntimeError, match="no") as caught:
        pjrt.wait(buffer)
    assert not isinstance(caught.value.__context__, RuntimeError)


def test_signals_are_heard_before_one_waits_in_the_runtime(monkeypatch):
    order = []
    monkeypatch.setattr(pjrt, "patient", lambda buffers: order.append([*buffers]))
    buffer = SimpleNamespace(
        is_ready=lambda: True, block_until_ready=lambda: order.append("runtime")
    )
    pjrt.wait(buffer)
    assert order == [[buffer], "runtime"]
    first, second = snp.ones(2).to_buffer(), snp.ones(3).to_buffer()
    pjrt.wait_for_all((first, second))
    assert order[2:] == [[first, second]]


@pytest.mark.parametrize(
    "use",
    [
        lambda x, program: pjrt.to_device(np.ones(2, np.float32), x.type, own=True),
        lambda x, program: pjrt.wait(x.to_buffer()),
        lambda x, program: pjrt.wait_for_all([x.to_buffer()]),
        lambda x, program: pjrt.run_to_the_end(program, [x.to_buffer()]),
        lambda x, program: program([x.to_buffer()]),
        lambda x, program: pjrt.load(pjrt.runtime(), program.text, ()),
    ],
    ids=["put", "wait", "wait for several", "run to the end", "run", "compile"],
)
def test_threads_end_before_they_enter_the_runtime(monkeypatch, use):
    """Where the process ends, and only there."""

    class Ended(BaseException):
        pass

    def end():
        raise Ended

    x = st.jit(lambda x: x)(snp.ones(2))
    program = st.jit(lambda x: x + 1).lower(x).compile()._executable
    x.to_buffer()
    monkeypatch.setattr(patience, "end_threads", end)
    monkeypatch.setattr(pjrt, "end_threads", end)
    use(x, program)
    patience.unusual.append("ended")
    try:
        with pytest.raises(Ended):
            use(x, program)
    finally:
        patience.unusual.clear()
    use(x, program)


def test_memory_is_given_to_others_once_it_is_computed(monkeypatch):
    waited, wait = [], pjrt.wait
    monkeypatch.setattr(pjrt, "wait", lambda buffer: (waited.append(buffer), wait(buffer)))
    buffer = snp.ones(3).to_buffer()
    capsule = pjrt.to_dlpack(buffer)
    assert waited == [buffer]
    np.testing.assert_array_equal(pjrt.from_dlpack(capsule), np.ones(3))


def test_jaxlib_is_loaded_when_first_needed():
    code = """
import sys, os
import stretto as st, stretto.numpy as snp
x = snp.ones(3) * 2 + snp.arange(3)
print("jaxlib._jax" in sys.modules, "jax" in sys.modules)
st.jit(lambda x: x + 1)(x)
print("jaxlib._jax" in sys.modules, "jax" in sys.modules, os.environ.get("TF_CPP_MIN_LOG_LEVEL"))
"""
    assert run(code).split() == ["False", "False", "True", "False", "None"]


def test_the_runtime_is_loaded_before_its_profiler():
    """What is loaded first decides what is logged."""
    code = """if True:
        import sys
        from stretto._engine.xla import pjrt
        pjrt.profiler()
        names = [*sys.modules]
        print(names.index("jaxlib._jax") < names.index("jaxlib._profiler"))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


def test_sums_go_to_the_library(monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    chosen = dict(pjrt.runtime().compile_options(Facts(), ()).env_option_overrides)
    assert chosen == {LIBRARY: REDUCE}


def test_flags_of_the_user_come_first(monkeypatch):
    given = ((LIBRARY, "LIBRARY_FUSION_TYPE_DOT"), ("xla_cpu_enable_fast_math", True))
    assert dict(pjrt.runtime().compile_options(Facts(), given).env_option_overrides) == dict(given)
    monkeypatch.setenv("XLA_FLAGS", f"--{LIBRARY}=LIBRARY_FUSION_TYPE_DOT")
    assert not pjrt.runtime().compile_options(Facts(), ()).env_option_overrides


WITHOUT = """
import copy, pickle, sys
sys.path.insert(0, sys.argv[1])  # where importing jax raises what nobody catches
import stretto as st
st.config.num_cpu_devices = 2
st.config.interpret_small = False
import numpy as np
import stretto.numpy as snp

half = st.sharding.NamedSharding(st.make_mesh((2,), ("d",)), st.P("d"))
for name in NAMES:
    for put in (lambda x: x, lambda x: st.device_put(x, half)):
        make = lambda: st.jit(lambda x: x.T)(put(snp.ones((2, 4), name)))
        for read in (np.asarray, repr, str, copy.copy, pickle.dumps, st.device_get):
            read(make())
        make().tolist(), make().block_until_ready()
        assert np.asarray(make()).dtype == name and (np.asarray(make()) == 1).all(), name
        st.save(sys.argv[2], {"x": make()}), st.load(sys.argv[2])
        [np.asarray(shard.data) for shard in make().addressable_shards]
        make().delete()
st.debug.callback(print, make())
assert "jax" not in sys.modules
"""
READ = [
    "bool",
    "int8",
    "int16",
    "int32",
    "uint8",
    "uint16",
    "uint32",
    "float16",
    "bfloat16",
    "float32",
    "complex64",
    "int4",
    "uint4",
    "int2",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3b11fnuz",
    "float8_e8m0fnu",
    "float4_e2m1fn",
]


def test_nothing_imports_jax(tmp_path):
    (tmp_path / "jax").mkdir()
    (tmp_path / "jax" / "__init__.py").write_text("import os\nprint('imported')\nos._exit(9)\n")
    code = WITHOUT.replace("NAMES", repr(READ))
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), str(tmp_path / "file")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "imported" not in done.stdout, done


def test_others_may_import_what_they_like():
    """What is kept from jaxlib, which goes by the builtins of its caller, is there for others."""
    load = ctypes.pythonapi.PyImport_ImportModule
    load.restype, load.argtypes = ctypes.py_object, [ctypes.c_char_p]
    without = pjrt.without_jax(lambda load: load(b"jax.numpy"))
    with pytest.raises(ModuleNotFoundError, match="No module named 'jax"):
        without(load)
    assert pjrt.without_jax(lambda load: load(b"math"))(load).pi > 3
    assert load(b"math").pi > 3


@pytest.mark.parametrize(
    ("needed", "parts", "is_looked_at"),
    [
        (pjrt.LARGE, 1, False),
        (pjrt.LARGE + 1, 1, True),
        (pjrt.LARGE // 2, 2, False),
        (pjrt.LARGE // 2 + 1, 2, True),
    ],
)
def test_programs_whose_room_is_looked_at_each_time(monkeypatch, needed, parts, is_looked_at):
    monkeypatch.setattr(pjrt, "bytes_needed", lambda loaded: needed)
    loaded = SimpleNamespace(execute_sharded=len)
    run = pjrt.runner(loaded, (), Text("", facts=Facts()), parts)
    assert isinstance(run, pjrt.RunIfRoom) is is_looked_at
    assert is_looked_at or run is len


@pytest.mark.parametrize(
    ("rows", "own", "is_copied"),
    [(np.s_[:], False, True), (np.s_[:], True, False), (np.s_[:, 1:], False, False)],
    ids=["somebody else's", "own", "rows that lie apart"],
)
def test_memory_that_nobody_else_writes_to_is_not_copied_again(rows, own, is_copied):
    """The rows of an array that lie apart were put together for the buffer."""
    asked = []
    at = SimpleNamespace(sharding=0, device=0, copies=7)
    at.put = lambda *args, **settings: asked.append((args[4], settings))
    array = np.zeros((3, 4), np.float32)[rows]
    pjrt.to_device(array, array_type(array.shape, array.dtype), own, at)
    ((is_put_there, settings),) = asked
    assert is_put_there and settings.get("host_buffer_semantics") == (7 if is_copied else None)
    assert settings["enable_x64"] is True


@pytest.mark.parametrize("name", ["jax", "jax.numpy"])
def test_reading_an_array_does_not_import_jax(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "jax.numpy", SimpleNamespace())
    with pytest.raises(ModuleNotFoundError, match="No module named 'jax"):
        pjrt._import_but_jax(name)
    assert pjrt._import_but_jax("sys") is sys


@pytest.fixture
def of_the_runtime(monkeypatch):
    """What jaxlib is asked for, with what."""
    asked = []
    note = lambda name: lambda *args: asked.append((name, *args))
    names = ("batched_block_until_ready", "collect_garbage")
    jax = SimpleNamespace(**{name: note(name) for name in names}, JaxRuntimeError=RuntimeError)
    monkeypatch.setattr(pjrt, "runtime", lambda: SimpleNamespace(jax=jax))
    return asked


def test_several_buffers_are_waited_for_together(of_the_runtime):
    pjrt.wait_for_all(("one", "other"))
    assert of_the_runtime == [("batched_block_until_ready", ["one", "other"])]


def test_what_is_kept_of_past_calls_is_freed(of_the_runtime):
    pjrt.tidy()
    assert of_the_runtime == [("collect_garbage",)]


def test_profiles_are_named_and_have_no_calls_of_python(monkeypatch):
    made = SimpleNamespace(ProfileOptions=SimpleNamespace, ProfilerSession=vars)
    monkeypatch.setattr(pjrt, "profiler", lambda: made)
    assert pjrt.start_profile("name") == {"python_tracer_level": 0, "session_id": "name"}


def test_hlo_takes_arguments_and_gives_results_one_by_one():
    lowered = st.jit(lambda x, y: (x + y[0], y)).lower(snp.ones(3), snp.ones(2))
    text = pjrt.hlo_of_text(lowered.as_text())
    assert "{(f32[3]{0}, f32[2]{0})->(f32[3]{0}, f32[2]{0})}" in text
    one = pjrt.hlo_of_text(st.jit(snp.sin).lower(snp.ones(3)).as_text())
    assert "{(f32[3]{0})->f32[3]{0}}" in one and "tuple" not in one
