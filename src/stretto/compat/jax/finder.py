"""The finder of ``jax`` and its submodules, and what ``import`` then gives.

A module ``jax.a.b`` is a view: its names are looked up, when first asked for, in its home. That is
the row ``a.b`` of ``table``, and otherwise the module ``stretto.a.b``, for those in ``SAME``.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import pathlib
import sys
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any

from stretto._engine.core.interpreter import ARRAY_METHODS
from stretto.compat.jax.naming import REFUSED, ROWS, RefusedName, module_of

VERSION = "0.10.2"
"""The version of JAX whose names are presented."""

ROOT = "stretto.compat.jax.root"
SAME = frozenset({"distributed", "image", "numpy.fft", "scipy"})
"""Modules, with all below them, that are Stretto's as they are."""

PUBLIC = {
    "abstract_arrays": "core",
    "api": "",
    "array": "",
    "basearray": "",
    "config": "",
    "debugging": "debug",
    "effects": "extend.core",
    "image.scale": "image",
    "lax.control_flow": "lax",
    "lax.convolution": "lax",
    "lax.lax": "lax",
    "lax.parallel": "lax",
    "lax.slicing": "lax",
    "linear_util": "extend.linear_util",
    "mesh": "sharding",
    "named_sharding": "sharding",
    "nn.functions": "nn",
    "numpy.lax_numpy": "numpy",
    "numpy.reductions": "numpy",
    "numpy.ufuncs": "numpy",
    "ops.scatter": "ops",
    "partition_spec": "sharding",
    "public_test_util": "test_util",
    "shard_map": "experimental.shard_map",
    "sharding_impls": "sharding",
    "source_info_util": "extend.source_info_util",
    "tree": "tree",
}
"""The public modules that have the names of those of ``jax._src``."""


def _home(path: str) -> Any:
    """Return the module that has the names of ``jax.<path>``; None if there is none."""
    if not path:
        return importlib.import_module(ROOT)
    if path not in ROWS and path.startswith("_src."):
        path = path.removeprefix("_src.")
        path = PUBLIC.get(path, path)
        if not path:
            return importlib.import_module(ROOT)
    if path in ROWS:
        return module_of(path)
    if path in REFUSED:
        return RefusedName(f"jax.{path}", REFUSED[path])
    parts = path.split(".")
    for i in range(1, len(parts) + 1):
        if ".".join(parts[:i]) in SAME:
            found: Any = importlib.import_module("stretto." + ".".join(parts[:i]))
            for part in parts[i:]:
                found = getattr(found, part, None)
            return found
    return None


class Presented(ModuleType):
    """A module of JAX's name, whose names are those of its home."""

    __home__: Any

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__version__", "__version_info__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name)
        path = f"{self.__name__}.{name}".partition(".")[2]
        public = path.removeprefix("_src.")
        moved = path != public and public in PUBLIC
        if path in ROWS or public in ROWS or public in SAME or moved:
            return importlib.import_module(f"jax.{path}")
        try:
            value = getattr(self.__home__, name)
        except AttributeError as error:
            hint = str(error).partition(": ")[2]
            raise AttributeError(
                f"module {self.__name__!r}, as Stretto presents it, has no attribute {name!r}"
                + (f": {hint}" if hint else ""),
                name=name,
                obj=self,
            ) from None
        if isinstance(value, ModuleType) and not isinstance(value, Presented):
            if _home(path) is None:  # a module of Stretto's that JAX has no counterpart of
                raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
            return importlib.import_module(f"jax.{path}")
        self.__dict__[name] = value
        return value

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self.__home__)})


class _Distribution(importlib.metadata.Distribution):
    """Answers ``importlib.metadata`` for JAX."""

    def read_text(self, filename: str) -> str | None:
        """Return the metadata, for this file alone."""
        lines = "Metadata-Version: 2.1", "Name: jax", f"Version: {VERSION}", ""
        return "\n".join(lines) if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        """Return the path; there are no files."""
        return pathlib.Path(path)


class _Finder(importlib.metadata.DistributionFinder, importlib.abc.Loader):
    """Finds ``jax`` and what is below it, before any other finder does."""

    def find_distributions(self, context: Any = None) -> Iterable[importlib.metadata.Distribution]:
        """JAX, of the version whose names are presented."""
        name = getattr(context, "name", None)
        return [_Distribution()] if name in (None, "jax") else []

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module of JAX's; None for other packages."""
        if fullname != "jax" and not fullname.startswith("jax."):
            return None
        home = _home(fullname.partition(".")[2])
        if home is None:
            raise ModuleNotFoundError(
                f"No module named {fullname!r}: Stretto stands for JAX here, and does not have "
                f"this module of it",
                name=fullname,
            )
        spec = importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        spec.loader_state = home
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Return the view, empty as yet."""
        return Presented(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Give the view its home."""
        assert module.__spec__ is not None
        home = module.__spec__.loader_state
        module.__dict__["__home__"] = home
        module.__doc__ = getattr(home, "__doc__", None)
        if hasattr(home, "__all__"):
            module.__dict__["__all__"] = home.__all__


_FINDER = _Finder()


def install() -> None:
    """Have ``import jax`` give Stretto under JAX's names, in this process, from now on.

    Settings whose defaults differ are set to JAX's, and those that ``JAX_...`` in the environment
    has to these. Called again, it does nothing.

    Raises:
        RuntimeError: JAX itself was imported before.

    >>> import stretto as st
    >>> st.as_jax.install()  # doctest: +SKIP
    >>> import jax  # doctest: +SKIP
    """
    if _FINDER in sys.meta_path:
        return
    there = sys.modules.get("jax")
    if there is not None:
        raise RuntimeError(
            f"stretto.as_jax.install: JAX was imported already, from "
            f"{getattr(there, '__file__', None)}: call install() before anything imports jax, or "
            f"run `python -m stretto.as_jax script.py`"
        )
    from stretto.compat.jax import attributes, calls, settings  # noqa: PLC0415 (they change Stretto)

    sys.meta_path.insert(0, _FINDER)
    settings.start()
    calls.read_flags()
    attributes.attach()
    ARRAY_METHODS.append("__jax_array__")
