"""``jax.Array`` and ``jax.core.Tracer`` are for ``isinstance``."""

import functools

import stretto as st
import stretto.numpy as snp
from stretto.compat.jax.types import Array, Tracer, is_key
from tests.compat.jax.running import prints


def test_arrays_tracers_and_keys_are_arrays():
    seen = []

    def f(x, key):
        seen.append([isinstance(v, cls) for v in (x, key) for cls in (Array, Tracer)])
        return x

    key = st.random.key(0)
    st.jit(f)(1.0, key)
    f(snp.ones(2), key)
    f(1.0, None)
    assert seen == [[True] * 4, [True, False, True, False], [False] * 4]
    assert is_key(key) and not is_key(snp.ones(2))


def test_functions_can_be_chosen_by_the_class():
    @functools.singledispatch
    def kind(x):
        return "other"

    kind.register(Array)(lambda x: "array")
    assert [kind(x) for x in (snp.ones(2), st.random.key(0), 1.0)] == ["array", "array", "other"]
    assert issubclass(type(snp.ones(2)), Array) and not issubclass(float, Array)
    assert not issubclass(type(snp.ones(2)), Tracer) and issubclass(Tracer, Tracer)


def test_methods_can_be_read_off_the_class():
    assert Array.sum(snp.ones(3)) == 3 and Array.item.__name__ == "item"
    assert not hasattr(Array, "nonsense")


def test_tracers_of_a_librarys_own_that_set_their_trace():
    assert prints(
        """
        from jax._src import core

        class Boxed(core.Tracer):
            __slots__ = ("value",)

            def __init__(self, trace, value):
                self._trace = trace
                self.value = value

            @property
            def aval(self):
                return core.get_aval(self.value)

        class Doubles(core.Trace):
            def process_primitive(self, primitive, tracers, params):
                values = [t.value if isinstance(t, Boxed) else t for t in tracers]
                with core.set_current_trace(self.outer):
                    out = 2 * primitive.bind(*values, **params)
                return Boxed(self, out)

        with core.take_current_trace() as outer:
            trace = Doubles()
            trace.outer = outer
            box = Boxed(trace, jnp.ones(3))
            with core.set_current_trace(trace):
                out = jnp.sin(box)
        print(box.shape, box._trace is trace, trace.full_raise(box) is box)
        print(out.value / jnp.sin(1.0))
        try:
            box.nonsense
        except AttributeError as error:
            print(error)
        """
    ) == ["(3,) True True", "[2. 2. 2.]", "'Boxed' object has no attribute 'nonsense'"]
