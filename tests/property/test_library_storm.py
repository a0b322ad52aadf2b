"""Random sums and products by YNNPACK, a few of those of ``make library-storm``."""

from stretto._engine.xla import pjrt
from stretto._engine.xla.clients import load_jaxlib
from tests.property.library_storm import disagreements, draw_case

WRONG = 84
"""Its kernel is one of those that are not left to the library."""


def test_the_library_agrees_with_xlas_own_kernels():
    cases = [draw_case(seed) for seed in (*range(8), WRONG)]
    assert disagreements(cases) == []


def test_a_kernel_that_misreads_is_found(monkeypatch):
    monkeypatch.setattr(pjrt, "misreads", lambda hlo: False)
    found = disagreements([draw_case(WRONG)], ["sums"])
    if load_jaxlib()[0] < (0, 11):
        assert "84, sums" in found[0]
    else:  # 0.11.2 and 0.12.0 read these elements rightly
        assert found == []
