"""What a file of figures says of the machine."""

import pytest

from benchmarks import machine

FIRST = "processor\t: 0\nmodel name\t: AMD EPYC\nflags\t\t: fpu {flags}\n"
SECOND = "\nprocessor\t: 1\nmodel name\t: another\nflags\t\t: fpu avx512f\n"


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        ("sse2 avx2 avx512f", "AMD EPYC, 512-bit vectors"),
        ("sse2 avx2", "AMD EPYC, 256-bit vectors"),
        ("sse2", "AMD EPYC, 128-bit vectors"),
        ("", "AMD EPYC"),
    ],
)
def test_the_first_processor_with_its_widest_vectors(flags, name):
    assert machine.processor(FIRST.format(flags=flags) + SECOND) == name


def test_one_without_a_name_is_left_to_the_system():
    assert machine.processor("processor\t: 0\nBogoMIPS\t: 50\n") == ""
    assert machine.describe()["cpu"]
