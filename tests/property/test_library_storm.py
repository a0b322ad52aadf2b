"""Random sums and products by YNNPACK, a few of those of ``make library-storm``."""

from stretto._engine.xla import pjrt
from tests.property.library_storm import disagreements, draw_case

WRONG = 84
"""Its kernel is one of those that are not left to the library."""


def test_the_library_agrees_with_xlas_own_kernels():
    cases = [draw_case(seed) for seed in (*range(8), WRONG)]
    assert disagreements(cases) == []


def test_a_kernel_that_misreads_is_found(monkeypatch):
    monkeypatch.setattr(pjrt, "misreads", lambda hlo: False)
    assert "84, sums" in disagreements([draw_case(WRONG)], ["sums"])[0]
