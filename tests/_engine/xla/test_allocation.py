"""What is in memory at the peak: sizes that add up, and the lines of the user's code."""

import stretto as st
import stretto.numpy as snp
from stretto._engine.xla.allocation import temporaries_at_peak


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
