"""Which libraries, and where in their source archives the tests are."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

__all__ = ["LIBRARIES", "Library"]


class Library(NamedTuple):
    """A library's source archive, and its tests.

    Args:
        name: its name on the index of packages.
        version: the version, also in the group ``ecosystem`` of ``pyproject.toml``.
        tests: the folders or files of tests in the archive.
        environ: variables of the environment that the tests need.
        options: more options for pytest.
        left_out: files of tests that need something else than the library, and what.
        apart: files of tests that set something for the whole process, so that each has its own.
        small: files of tests for a part that takes seconds.
    """

    name: str
    version: str
    tests: tuple[str, ...]
    environ: Mapping[str, str] = MappingProxyType({})
    options: tuple[str, ...] = ()
    left_out: Mapping[str, str] = MappingProxyType({})
    apart: tuple[str, ...] = ()
    small: tuple[str, ...] = ()


LIBRARIES = (
    Library(
        "einops",
        "0.8.2",
        ("einops/tests",),
        {"EINOPS_TEST_BACKENDS": "numpy,jax"},
        small=("einops/tests/test_ops.py",),
    ),
    Library(
        "optax",
        "0.2.8",
        ("optax",),
        small=("optax/_src/update_test.py", "optax/tree_utils", "optax/transforms"),
    ),
    Library(
        "chex",
        "0.1.92",
        ("chex",),
        # It runs all functions that Python has for its exit, after which optree has no nodes.
        options=(
            "--deselect",
            "chex/_src/asserts_chexify_test.py::AssertsChexifyTest::test_uninspected_checks",
        ),
        small=("chex/_src/asserts_test.py", "chex/_src/dataclass_test.py"),
    ),
    Library(
        "dm-haiku",
        "0.0.17",
        ("haiku",),
        options=("--ignore=haiku/_src/integration",),
        small=("haiku/_src/base_test.py", "haiku/_src/stateful_test.py"),
    ),
    Library("blackjax", "1.7.1", ("tests",)),
    Library(
        "numpyro",
        "0.22.0",
        ("test",),
        left_out={
            "test/test_examples.py": "the examples, which are not in the archive",
            "test/test_pickle.py": "funsor",
        },
    ),
    Library(
        "flax",
        "0.12.8",
        ("tests/core", "tests/linen", "tests/nnx"),
        {"STRETTO_NUM_CPU_DEVICES": "4"},
        left_out={"tests/nnx/integration_test.py": "it imports Orbax, which needs JAX's runtime"},
        small=("tests/core", "tests/linen/linen_module_test.py", "tests/nnx/module_test.py"),
    ),
    Library(
        "distrax",
        "0.1.9",
        ("distrax",),
        apart=(
            "distrax/_src/bijectors/rational_quadratic_spline_float64_test.py",
            "distrax/_src/distributions/normal_float64_test.py",
            "distrax/_src/distributions/uniform_float64_test.py",
        ),
    ),
    Library(
        "penzai",
        "0.2.5",
        ("tests",),
        left_out={"tests/models/transformer_consistency_test.py": "PyTorch and Transformers"},
        apart=("tests/deprecated/v1/toolshed/sharding_util_test.py",),
    ),
)
"""In the order in which they are run; jaxtyping, JAXopt, Equinox and its kin ship none."""
