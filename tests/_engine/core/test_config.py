"""Settings: everywhere, for a block, for a thread, from the environment."""

import functools
import inspect
import logging
import threading

import pytest

import stretto as st
from stretto._engine.core.config import (
    changed_settings,
    config,
    disable_jit,
    enable_x64,
    of_process,
    over_axis,
    settings,
    shaping,
    under,
    watch,
)
from stretto._engine.core.errors import ConfigError


@pytest.fixture(autouse=True)
def unchanged():
    before = repr(config)
    yield
    assert repr(config) == before


def test_attributes_set_the_value_everywhere():
    seen = []
    config.enable_x64 = True
    try:
        thread = threading.Thread(target=lambda: seen.append(config.enable_x64))
        thread.start()
        thread.join()
    finally:
        config.enable_x64 = False
    assert seen == [True]


def test_a_block_is_of_its_thread():
    seen = {}

    def other():
        seen["before"] = config.enable_x64
        with config(threefry_partitionable=True):
            seen["inside"] = config.threefry_partitionable, config.enable_x64

    with config(enable_x64=True):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert config.enable_x64
        assert not config.threefry_partitionable
    assert seen == {"before": False, "inside": (True, False)}


def test_blocks_nest_and_can_be_entered_again():
    block = enable_x64()
    with block:
        with config(enable_x64=False, numpy_dtype_promotion="strict"):
            assert not config.enable_x64
            with block:
                assert config.enable_x64
                assert config.numpy_dtype_promotion == "strict"
            assert not config.enable_x64
        assert config.enable_x64
        assert config.numpy_dtype_promotion == "standard"
    assert not config.enable_x64


def test_a_setting_of_all_threads_holds_behind_a_block_in_which_it_was_changed():
    with st.config(default_matmul_precision="highest"):
        wanted = settings.key.precision
    before = st.config.default_matmul_precision
    try:
        with st.config(enable_x64=True):
            with st.config(debug_nans=True):
                st.config.default_matmul_precision = "highest"
            assert settings.key.precision == wanted is not None
    finally:
        st.config.default_matmul_precision = before
    assert settings.key.precision is None


def test_nothing_is_left_of_blocks_that_have_ended():
    """Not of those inside either, which an interrupt ended without a word."""
    outside, inside = enable_x64(), config(numpy_rank_promotion="raise")
    for _ in range(2):
        with outside, enable_x64():
            assert len(settings.outer) == 2
        assert not settings.outer
    outside.__enter__()
    enable_x64().__enter__()
    outside.__exit__()
    assert not settings.outer and not config.enable_x64
    assert "key" not in vars(settings) and "ranks" not in vars(settings)
    with inside:
        assert settings.ranks == "raise" and watch.places == 1
    assert settings.ranks == "allow" and watch.places == 0
    assert under({"numpy_rank_promotion": "raise"}, lambda: (settings.ranks, watch.places)) == (
        "raise",
        1,
    )
    assert settings.ranks == "allow" and watch.places == 0 and "key" not in vars(settings)


def test_a_block_that_cannot_begin_leaves_nothing(monkeypatch):
    def interrupted(everywhere):
        monkeypatch.undo()
        raise KeyboardInterrupt

    rest = settings.key
    monkeypatch.setattr(watch, "follow", interrupted)
    with pytest.raises(KeyboardInterrupt):
        enable_x64().__enter__()
    assert not settings.outer and settings.key is rest and not config.enable_x64


def test_places_where_ranks_are_checked_are_counted_and_short_ways_forgotten(monkeypatch):
    forgotten = []
    monkeypatch.setattr(watch, "forget", [lambda: forgotten.append(watch.places)])
    with config(numpy_rank_promotion="raise"):
        with config(numpy_rank_promotion="warn"), config(numpy_rank_promotion="allow"):
            assert watch.places == 2 and forgotten == [1, 2]
        assert watch.places == 1
        config.numpy_rank_promotion = "warn"
        try:
            assert watch.places == 2 and forgotten == [1, 2, 2]
        finally:
            config.numpy_rank_promotion = "allow"
    assert watch.places == 0 and forgotten == [1, 2, 2]


def test_axes_that_are_mapped_over_are_part_of_the_key():
    rest = settings.key
    key = lambda: (settings.key, dict(settings.axes), config.enable_x64)
    found, axes, _ = over_axis("i", 3, key)
    assert axes == {"i": 3} and found is not rest and settings.key is rest
    assert over_axis("i", 3, key)[0] is found is not over_axis("i", 4, key)[0]
    assert over_axis("j", 2, lambda: over_axis("i", 3, key))[1] == {"j": 2, "i": 3}
    with enable_x64():
        assert over_axis("i", 3, key)[1:] == ({"i": 3}, True)
    assert not settings.axes and settings.key is rest


def test_settings_of_the_process_are_put_into_force(monkeypatch):
    """Those of the environment at once, and others before they are stored, where they differ."""
    seen = []
    monkeypatch.setattr("stretto._engine.core.config._of_process", {})
    apply = lambda value: seen.append((value, config.recompilation_warning))
    of_process("recompilation_warning", apply)
    assert seen == []
    config.recompilation_warning = 3
    try:
        config.recompilation_warning = 3
        of_process("recompilation_warning", apply)
        assert seen == [(3, 16), (3, 3)]
        assert changed_settings()["recompilation_warning"] == 3
    finally:
        config.recompilation_warning = 16
    assert seen[2:] == [(16, 3)] and "recompilation_warning" not in changed_settings()
    with pytest.raises(ConfigError, match="is of the whole process, not of a block"):
        config(recompilation_warning=3)


def test_a_block_ends_with_an_error_too():
    with pytest.raises(ZeroDivisionError), enable_x64():
        raise ZeroDivisionError
    assert not config.enable_x64


def test_a_block_is_a_decorator():
    @config(enable_x64=True, numpy_dtype_promotion="strict")
    def f(a, *, b=2):
        """Both settings."""
        return a, b, config.enable_x64, config.numpy_dtype_promotion

    for _ in range(2):
        assert f(1, b=3) == (1, 3, True, "strict")
        assert not config.enable_x64
    assert (f.__name__, f.__doc__, str(inspect.signature(f))) == (
        "f",
        "Both settings.",
        "(a, *, b=2)",
    )

    @st.enable_x64()
    def number():
        return st.numpy.array(1.5).dtype.itemsize

    assert number() == 8 and st.numpy.array(1.5).dtype.itemsize == 4


def test_a_decorated_function_calls_itself_and_fails_and_is_a_method():
    @st.enable_x64()
    def down(n):
        with enable_x64(False):
            assert not config.enable_x64
            if n:
                down(n - 1)
            assert not config.enable_x64
        assert config.enable_x64
        if not n:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        down(3)
    assert not config.enable_x64

    class Model:
        @config(enable_x64=True)
        def wide(self):
            return self, config.enable_x64

        @staticmethod
        @config(enable_x64=True)
        def static():
            return config.enable_x64

    model = Model()
    assert model.wide() == (model, True) and Model.static()
    assert config(enable_x64=True)(functools.partial(getattr, config))("enable_x64")


def test_one_block_decorates_several_functions_and_transformations_see_it():
    wide = enable_x64()
    half, double = wide(lambda x: x / 2), wide(lambda x: x * 2)
    assert half(1.0) == 0.5 and double(1.0) == 2.0
    jitted = st.jit(wide(lambda x: x + st.numpy.array(1.5, "float64")))
    assert jitted(1.0).dtype == "float64"
    assert wide(st.jit(lambda x: x))(1.5).dtype == "float64"


def test_one_block_serves_threads_at_once():
    block = enable_x64()
    entered, may_leave = threading.Event(), threading.Event()
    seen = []

    @block
    def other():
        entered.set()
        may_leave.wait(10)
        seen.append(config.enable_x64)

    thread = threading.Thread(target=lambda: (other(), seen.append(config.enable_x64)))
    thread.start()
    assert entered.wait(10)
    with config(numpy_dtype_promotion="strict"), block:
        may_leave.set()
        thread.join()
        assert config.enable_x64 and config.numpy_dtype_promotion == "strict"
    assert seen == [True, False]
    assert config.numpy_dtype_promotion == "standard"


def test_what_runs_after_its_call_is_no_function_to_decorate():
    def generator():
        yield config.enable_x64

    async def coroutine():
        return config.enable_x64

    async def both():
        yield config.enable_x64

    for fun in (generator, coroutine, both):
        for made in (fun, functools.partial(fun)):
            with pytest.raises(TypeError, match=r"config\(enable_x64=True\) cannot decorate .*"):
                enable_x64()(made)
    with pytest.raises(TypeError, match="decorates functions; got the class Thing"):

        @enable_x64()
        class Thing:
            pass

    with pytest.raises(TypeError, match="decorates functions; got 3"):
        enable_x64()(3)


def test_short_forms_of_settings():
    forms = {
        st.config(default_matmul_precision="high"): ("default_matmul_precision", "high"),
        st.config(default_prng_impl="rbg"): ("default_prng_impl", "rbg"),
        st.config(log_compiles=True): ("log_compiles", True),
        st.config(numpy_dtype_promotion="strict"): ("numpy_dtype_promotion", "strict"),
        st.config(threefry_partitionable=True): ("threefry_partitionable", True),
    }
    for block, (name, value) in forms.items():
        before = getattr(config, name)
        with block:
            assert getattr(config, name) == value != before
        assert getattr(config, name) == before


def test_log_compiles_is_a_block(caplog):
    with (
        st.config(log_compiles=True),
        config(interpret_small=False),
        caplog.at_level(logging.WARNING),
    ):
        st.jit(lambda x: x * 7)(1.0)
    assert caplog.records and caplog.records[0].name == "stretto"


def test_update_sets_everywhere():
    config.update("recompilation_warning", 3)
    assert config.recompilation_warning == 3
    config.update("recompilation_warning", 16)
    with pytest.raises(ConfigError, match="no setting 'jax_enable_x64'; there are: enable_x64"):
        config.update("jax_enable_x64", True)


def test_the_precision_of_products_is_a_setting():
    rest = settings.key
    for value in ("default", "high", "highest", "bfloat16", "tensorfloat32", "float32"):
        with st.config(default_matmul_precision=value):
            assert config.default_matmul_precision == value
            assert settings.key is not rest
            with st.config(default_matmul_precision=None):
                assert settings.key is rest
    with pytest.raises(
        ConfigError, match="default_matmul_precision must be one of None, 'default', 'high'"
    ):
        st.config(default_matmul_precision="exact")


def test_enable_x64_takes_its_value():
    with enable_x64(), st.enable_x64(False):
        assert not config.enable_x64


def test_the_key_stands_for_the_settings_in_force():
    rest = settings.key
    with enable_x64():
        wide = settings.key
        assert wide is not rest
        with config(enable_x64=False):
            assert settings.key is rest
        assert settings.key is wide
    assert settings.key is rest
    with enable_x64():
        assert settings.key is wide


def test_a_key_says_what_it_stands_for():
    with config(enable_x64=True, default_matmul_precision="high"):
        key = settings.key
        assert key.settings == tuple(shaping().values())
        assert repr(key) == f"<settings {key.settings}>" and "True" in repr(key)
        assert (key.precision, key.stable, key.debugged) == ("high", True, False)
    for name in ("debug_nans", "debug_infs"):
        with config(**{name: True}, stable_forms=False):
            assert settings.key.debugged and not settings.key.stable


def test_the_key_follows_what_is_set_everywhere_inside_a_block():
    with enable_x64():
        wide = settings.key
        config.threefry_partitionable = True
        try:
            assert settings.key is not wide
            with config(threefry_partitionable=False):
                assert settings.key is wide
            assert settings.key is not wide
        finally:
            config.threefry_partitionable = False
        assert settings.key is wide


def test_settings_that_shape_no_program_leave_the_key():
    rest = settings.key
    with config(log_compiles=True, recompilation_warning=1, traceback_filtering="off"):
        assert settings.key is rest
        with pytest.raises(ConfigError, match="must be one of 'hide', 'off'; got 'on'"):
            config.traceback_filtering = "on"


def test_disable_jit_is_a_block():
    with disable_jit():
        assert config.disable_jit
        with disable_jit(disable=False):
            assert not config.disable_jit
    assert not config.disable_jit and st.disable_jit is disable_jit
