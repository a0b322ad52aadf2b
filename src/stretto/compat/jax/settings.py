"""``jax.config``: JAX's settings by their names, over Stretto's where both have one.

A setting of JAX's that changes nothing that Stretto computes is kept and can be read; one that
would change what is computed or checked, and does not here, is refused. A name that JAX does not
have is an error.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

from stretto._engine.core.config import SETTINGS
from stretto._engine.core.config import config as ours
from stretto._engine.core.errors import ConfigError

OURS = {
    "jax_debug_infs": "debug_infs",
    "jax_debug_nans": "debug_nans",
    "jax_default_matmul_precision": "default_matmul_precision",
    "jax_default_prng_impl": "default_prng_impl",
    "jax_disable_jit": "disable_jit",
    "jax_enable_compilation_cache": "disk_cache",
    "jax_enable_x64": "enable_x64",
    "jax_log_compiles": "log_compiles",
    "jax_num_cpu_devices": "num_cpu_devices",
    "jax_numpy_dtype_promotion": "numpy_dtype_promotion",
    "jax_numpy_rank_promotion": "numpy_rank_promotion",
    "jax_threefry_partitionable": "threefry_partitionable",
}
"""JAX's name, and Stretto's for the same setting."""

KEPT: dict[str, Any] = {
    "jax_array_garbage_collection_guard": None,
    "jax_bcoo_cusparse_lowering": False,
    "jax_captured_constants_report_frames": 0,
    "jax_captured_constants_warn_bytes": 2_000_000_000,
    "jax_check_tracer_leaks": False,
    "jax_compilation_cache_dir": None,
    "jax_compilation_cache_include_metadata_in_key": False,
    "jax_compilation_cache_max_size": -1,
    "jax_compiler_enable_remat_pass": True,
    "jax_cpu_collectives_implementation": None,
    "jax_cpu_enable_async_dispatch": True,
    "jax_debug_key_reuse": False,
    "jax_debug_log_modules": "",
    "jax_default_device": None,
    "jax_disable_most_optimizations": False,
    "jax_distributed_debug": False,
    "jax_dump_ir_modes": "stablehlo",
    "jax_dump_ir_to": "",
    "jax_enable_checks": False,
    "jax_enable_custom_prng": False,
    "jax_enable_pgle": False,
    "jax_error_checking_behavior_divide": "ignore",
    "jax_error_checking_behavior_nan": "ignore",
    "jax_error_checking_behavior_oob": "ignore",
    "jax_exec_time_optimization_effort": 0.0,
    "jax_explain_cache_misses": False,
    "jax_export_calling_convention_version": 10,
    "jax_export_ignore_forward_compatibility": False,
    "jax_hlo_source_file_canonicalization_regex": None,
    "jax_include_debug_info_in_dumps": True,
    "jax_include_full_tracebacks_in_locations": True,
    "jax_legacy_prng_key": "allow",
    "jax_log_checkpoint_residuals": False,
    "jax_logging_level": None,
    "jax_memory_fitting_effort": 0.0,
    "jax_memory_fitting_level": "O2",
    "jax_mutable_array_checks": True,
    "jax_no_tracing": False,
    "jax_optimization_level": "UNKNOWN",
    "jax_persistent_cache_enable_xla_caches": "xla_gpu_per_fusion_autotune_cache_dir",
    "jax_persistent_cache_min_compile_time_secs": 1.0,
    "jax_persistent_cache_min_entry_size_bytes": 0,
    "jax_pgle_aggregation_percentile": 90,
    "jax_pgle_profiling_runs": 3,
    "jax_platform_name": "",
    "jax_platforms": None,
    "jax_pprint_use_color": True,
    "jax_raise_persistent_cache_errors": False,
    "jax_random_seed_offset": 0,
    "jax_remove_size_one_mesh_axis_from_type": False,
    "jax_serialization_version": 0,
    "jax_share_binary_between_hosts": False,
    "jax_softmax_custom_jvp": True,
    "jax_threefry_gpu_kernel_lowering": False,
    "jax_traceback_filtering": "auto",
    "jax_traceback_in_locations_limit": 10,
    "jax_transfer_guard": None,
    "jax_transfer_guard_device_to_device": None,
    "jax_transfer_guard_device_to_host": None,
    "jax_transfer_guard_host_to_device": None,
    "jax_use_direct_linearize": True,
    "jax_use_shardy_partitioner": True,
    "jax_xla_profile_version": 0,
}
"""Other settings of JAX's, and their defaults."""

_TRANSFERS = "what moves between devices and the host is not watched here"
_CHECKS = "results are not checked by it here; jax.experimental.checkify checks them"
REFUSED: dict[str, tuple[tuple[Any, ...], str]] = {
    "jax_array_garbage_collection_guard": ((None, "allow"), "arrays in cycles are not watched"),
    "jax_debug_key_reuse": ((False,), "keys that are used again are not found here"),
    "jax_dump_ir_to": (("", None), "jax.jit(f).lower(...).as_text() has the text"),
    "jax_error_checking_behavior_divide": (("ignore",), _CHECKS),
    "jax_error_checking_behavior_nan": (("ignore",), _CHECKS),
    "jax_error_checking_behavior_oob": (("ignore",), _CHECKS),
    "jax_legacy_prng_key": (("allow",), "raw keys are taken everywhere here"),
    "jax_transfer_guard": ((None, "allow"), _TRANSFERS),
    "jax_transfer_guard_device_to_device": ((None, "allow"), _TRANSFERS),
    "jax_transfer_guard_device_to_host": ((None, "allow"), _TRANSFERS),
    "jax_transfer_guard_host_to_device": ((None, "allow"), _TRANSFERS),
}
"""Settings whose other values would change what is computed or checked: those taken, and why."""

_FILTERING = {"off": "off", "tracebackhide": "hide", "remove_frames": "hide",
              "quiet_remove_frames": "hide", "auto": "hide"}  # fmt: skip
_PLATFORMS = ("", "cpu", "gpu", "cuda")
_PLACES = ("jax_default_device", "jax_platforms", "jax_platform_name")
"""The settings that say where arrays are that were not put anywhere, the strongest first."""


class Config:
    """The settings, read as attributes or by ``read``, and set by ``update``."""

    def __init__(self) -> None:
        object.__setattr__(self, "_kept", dict(KEPT))

    def read(self, name: str) -> Any:
        """Return the value of a setting.

        Args:
            name: JAX's name for it.

        Raises:
            AttributeError: JAX has no such setting.
        """
        if name in OURS:
            return getattr(ours, OURS[name])
        if name in self._kept:
            return self._kept[name]
        raise AttributeError(f"Unrecognized config option: {name}")

    def update(self, name: str, value: Any) -> None:
        """Set one, for all threads.

        Args:
            name: JAX's name for it.
            value: the value.

        Raises:
            AttributeError: JAX has no such setting.
            ConfigError: the setting does not take the value.
        """
        if name in OURS:
            ours.update(OURS[name], _as_ours(name, value))
            return
        if name not in self._kept:
            raise AttributeError(f"Unrecognized config option: {name}")
        _check(name, value)
        if name == "jax_traceback_filtering":
            ours.update("traceback_filtering", _FILTERING[value])
        if name in _PLACES:
            self._put_in_force(name, value)
        self._kept[name] = value

    def _put_in_force(self, name: str, value: Any) -> None:
        """Have arrays that are not put anywhere where the settings say, one of which is new."""
        said = [str((value if n == name else self._kept[n]) or "") for n in _PLACES]
        first = next((text for text in said if text), "").split(",", maxsplit=1)[0].strip()
        try:
            ours.update("default_device", None if first in ("", "cpu") else first)
        except ConfigError as error:
            raise RuntimeError(f"jax.config.update: {name} = {value!r}: {error}") from None

    def __getattr__(self, name: str) -> Any:
        return self.read(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self.update(name, value)

    @property
    def values(self) -> dict[str, Any]:
        """All settings by name."""
        return {name: self.read(name) for name in (*OURS, *self._kept)}

    @property
    def x64_enabled(self) -> bool:
        """True where 64-bit types are allowed."""
        return ours.enable_x64

    @property
    def jax_enable_x64(self) -> bool:
        """True where 64-bit types are allowed."""
        return ours.enable_x64

    def parse_flags_with_absl(self) -> None:
        """Do nothing: settings come from ``update`` and from the environment."""

    config_with_absl = parse_flags_with_absl


def _as_ours(name: str, value: Any) -> Any:
    if name == "jax_numpy_dtype_promotion" or not isinstance(value, int):
        return value
    return bool(value) if SETTINGS[OURS[name]].choices == (False, True) else value


def _is_offset(value: Any) -> bool:
    return type(value) is int and abs(value) < 1 << 31


def _check(name: str, value: Any) -> None:
    """Refuse what cannot be honoured."""
    taken, why = REFUSED.get(name, ((value,), ""))
    if value not in taken:
        raise NotImplementedError(
            f"jax.config.update: {name} must be {' or '.join(map(repr, taken))} in Stretto, got "
            f"{value!r}: {why}"
        )
    if name == "jax_random_seed_offset" and not _is_offset(value):
        raise TypeError(f"jax.config.update: {name} must be an integer of 32 bits; got {value!r}")
    if name in ("jax_platforms", "jax_platform_name"):
        for platform in (value or "").split(","):
            if platform.strip() not in _PLATFORMS:
                raise RuntimeError(
                    f"jax.config.update: {name} must be among 'cpu', 'gpu' and 'cuda' here; got "
                    f"{value!r}"
                )
    if name == "jax_traceback_filtering" and value not in _FILTERING:
        raise ValueError(
            f"jax.config.update: jax_traceback_filtering must be one of {', '.join(_FILTERING)}; "
            f"got {value!r}"
        )


config = Config()


def block(name: str, default: Any = None, parameter: str = "value") -> Callable[..., Any]:
    """Return the context manager of a setting, as ``jax.debug_nans`` is that of ``jax_debug_nans``.

    Args:
        name: JAX's name of the setting.
        default: the value where it is called with none.
        parameter: what JAX calls the value.
    """

    @contextlib.contextmanager
    def kept(value: Any) -> Iterator[None]:
        _check(name, value)
        before = config._kept[name]
        config._kept[name] = value
        try:
            yield
        finally:
            config._kept[name] = before

    def within(*args: Any, **kwargs: Any) -> Any:
        given = (*args, kwargs.pop(parameter)) if parameter in kwargs else args
        if kwargs or len(given) > 1:
            raise TypeError(f"jax.{within.__name__}: expected {parameter}, got {args}, {kwargs}")
        value = given[0] if given else default
        if name in OURS:
            return ours(**{OURS[name]: _as_ours(name, value)})
        return kept(value)

    within.__name__ = within.__qualname__ = name.removeprefix("jax_")
    within.__doc__ = f"Set ``{name}`` inside a ``with`` block."
    return within


def start() -> None:
    """Set JAX's defaults, and what ``JAX_...`` says in the environment."""
    ours.threefry_partitionable = True
    ours.integer_overflow = "wrap"  # NumPy's integers of 64 bits lose the high ones in JAX
    ours.stable_forms = False  # programs are those that JAX traces
    ours.recompilation_warning = 0  # JAX has none, and libraries that raise at warnings rely on it
    for name in (*OURS, *KEPT):
        text = os.environ.get(name.upper())
        if text is not None:
            config.update(name, _read(name, text))


def _read(name: str, text: str) -> Any:
    current = config.read(name)
    if isinstance(current, bool):
        if text.lower() in ("1", "true", "yes", "on", "t", "y"):
            return True
        if text.lower() in ("0", "false", "no", "off", "f", "n", ""):
            return False
        raise ValueError(f"{name.upper()} must be a truth value such as 1 or 0; got {text!r}")
    if isinstance(current, int):
        return int(text)
    return float(text) if isinstance(current, float) else text
