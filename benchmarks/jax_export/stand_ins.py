"""A plugin for pytest: what JAX's tests import of JAX's tests, and of its private modules.

The helpers of ``jax._src.test_util`` are in no module of Stretto's; those that tests of ``export``
call are here, over absl. Private names that Stretto does not have are there to import, and say so
when they are called.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
from absl.testing import absltest, parameterized

from stretto.compat.jax.modules import RefusedName, install

__all__ = ["pytest_load_initial_conftests"]

_PRIVATE = "it is a private name of JAX's"


def pytest_load_initial_conftests() -> None:
    """Have ``import jax`` give Stretto, with these modules: called for plugins named by ``-p``."""
    install()
    import jax

    _module("jax._src.test_util", _test_util())
    for name in ("", ".mlir", ".mlir.dialects"):
        _module(f"jax._src.lib{name}", {})
    _named("jax._src.lib.mlir.dialects", "hlo")
    _named("jax._src", "compute_on")
    _named("jax._src.sharding_impls", "GSPMDSharding")
    _named("jax._src.interpreters.mlir", "hlo", "TokenSet")
    _named("jax._src.core", "MemorySpace", "max_dim")
    _module("jax._src.config", {**_settings(), "parse_flags_with_absl": lambda: None})
    kinds = ["lowerable", "control_flow_allowed", "remat_allowed", "custom_derivatives_allowed"]
    lists = [f"{kind}_effects" for kind in [*kinds, "ordered"]]
    _module(
        "jax._src.effects", {name: SimpleNamespace(add_type=lambda kind: None) for name in lists}
    )
    own = {
        "canonicalize_platform": lambda name: {"gpu": "cuda"}.get(name, name),
    }
    _module("jax._src.xla_bridge", own)
    single = lambda device, memory_kind=None: jax.sharding.SingleDeviceSharding(
        device, **({"memory_kind": memory_kind} if memory_kind else {})
    )
    _module("jax._src.sharding_impls", {"make_single_device_sharding": single})
    types = _types()
    _module("jax._src.dtypes", {"_jax_types": types, **{t.name: t for t in types}})


def _module(name: str, names: dict[str, Any]) -> None:
    """Give a module these names; make it, if there is none."""
    try:
        module = importlib.import_module(name)
    except ImportError:
        module = sys.modules[name] = ModuleType(name)
        module.__path__ = []
        parent, _, last = name.rpartition(".")
        setattr(importlib.import_module(parent), last, module)
    vars(module).update(names)


def _named(module: str, *names: str) -> None:
    """Give a module those of these names that it lacks, to be imported and not called."""
    found = importlib.import_module(module)
    for name in names:
        if not hasattr(found, name):
            vars(found)[name] = RefusedName(f"{module}.{name}", _PRIVATE)


def _types() -> list[np.dtype]:
    """Return the dtypes that there are, by JAX's private list of them."""
    import ml_dtypes

    plain = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64"
    found = [np.dtype(name) for name in [*plain.split(), "complex64", "complex128"]]
    narrow = """bfloat16 float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3
        float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu
        int1 int2 int4 uint1 uint2 uint4"""
    return found + [np.dtype(getattr(ml_dtypes, n)) for n in narrow.split()]


# Settings


class _Setting:
    """A setting of ``jax.config``, read by ``value`` and set by a ``with`` statement."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def value(self) -> Any:
        import jax

        return jax.config.read(self._name)

    @contextlib.contextmanager
    def __call__(self, value: Any) -> Iterator[None]:
        import jax

        before = self.value
        jax.config.update(self._name, value)
        try:
            yield
        finally:
            jax.config.update(self._name, before)


def _settings() -> dict[str, Any]:
    names = {
        "jax_export_calling_convention_version": "jax_export_calling_convention_version",
        "export_ignore_forward_compatibility": "jax_export_ignore_forward_compatibility",
        "use_shardy_partitioner": "jax_use_shardy_partitioner",
    }
    made: dict[str, Any] = {name: _Setting(ours) for name, ours in names.items()}
    made["use_simplified_jaxpr_constants"] = SimpleNamespace(value=False)
    made["export_ignore_custom_call_safety_checks"] = RefusedName(
        "jax._src.config.export_ignore_custom_call_safety_checks", _PRIVATE
    )
    return made


# jax._src.test_util


class _TestCase(parameterized.TestCase):
    def setUp(self) -> None:
        super().setUp()
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        for name, value in getattr(type(self), "settings", {}).items():
            stack.enter_context(_Setting(name)(value))

    def assertAllClose(self, x: Any, y: Any, **tolerances: Any) -> None:
        """Hold trees to each other: structure, dtypes but for Python's numbers, and values."""
        import jax

        if isinstance(x, (tuple, list, dict)):
            self.assertIs(type(x), type(y))
            xs, ys = [jax.tree.leaves(tree) for tree in (x, y)]
            self.assertEqual(len(xs), len(ys))
            for one, other in zip(xs, ys, strict=True):
                self.assertAllClose(one, other, **tolerances)
            return
        one, other = np.asarray(x), np.asarray(y)
        if all([hasattr(value, "dtype") for value in (x, y)]):
            self.assertEqual(one.dtype, other.dtype)
        self.assertEqual(one.shape, other.shape)
        if one.dtype.kind in "OV":
            wide = one.dtype.fields is None and one.dtype.kind == "V"
            one, other = [a.astype(np.float32) if wide and a.itemsize else a for a in (one, other)]
        if one.dtype.kind in "bVO":
            np.testing.assert_array_equal(one, other)
            return
        bound = {"atol": 1e-5, "rtol": 1e-5, **tolerances}
        of = np.complex128 if one.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(one.astype(of), other.astype(of), **bound)

    assertArraysAllClose = assertAllClose

    def assertArraysEqual(self, x: Any, y: Any) -> None:
        """Hold arrays to be equal."""
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def _with_config(**settings: Any) -> Callable[[type], type]:
    def decorate(cls: type) -> type:
        cls.settings = settings  # type: ignore[attr-defined]
        return cls

    return decorate


def _parameterized(
    *, kwargs: Sequence[dict[str, Any]], testcase_name: Callable[[Any], Any] | None = None
) -> Any:
    """Make a test of each set of arguments, named after them."""
    cases = []
    for case in kwargs:
        rest = {key: value for key, value in case.items() if key != "testcase_name"}
        name: Any = "_".join([f"{key}={value}" for key, value in rest.items()])
        name = case.get("testcase_name", name) if testcase_name is None else testcase_name(case)
        cases.append({**rest, "testcase_name": "_" + re.sub(r"\W+", "_", str(name)).strip("_")})
    return parameterized.named_parameters(*cases)


def _mesh(shape: Sequence[int], names: Any, axis_types: Any = None) -> Any:
    import jax

    del axis_types
    count = int(np.prod(shape))
    return jax.sharding.Mesh(np.array(jax.devices()[:count]).reshape(tuple(shape)), names)


def _with_explicit_mesh(shape: Sequence[int], names: Any) -> Any:
    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(test)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            import jax

            mesh = _mesh(shape, names)
            with jax.set_mesh(mesh):
                return test(self, *args, **kwargs, mesh=mesh)

        del call.__wrapped__  # type: ignore[attr-defined]
        return call

    return decorate


def _run_on_devices(*tags: str) -> Any:
    return absltest.unittest.skip(f"runs on {', '.join(tags)} alone")


def _request(count: int) -> None:
    import jax

    jax.config.update("jax_num_cpu_devices", count)


def _test_util() -> dict[str, Any]:
    return {
        "JaxTestCase": _TestCase,
        "JaxTestLoader": absltest.unittest.TestLoader,
        "create_mesh": _mesh,
        "device_under_test": lambda: "cpu",
        "is_device_rocm": lambda: False,
        "parameterized_filterable": _parameterized,
        "request_cpu_devices": _request,
        "run_on_devices": _run_on_devices,
        "test_device_matches": lambda tags: "cpu" in tags,
        "with_config": _with_config,
        "with_explicit_mesh": _with_explicit_mesh,
    }
