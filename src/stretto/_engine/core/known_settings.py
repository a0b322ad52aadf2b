"""Settings: their defaults, the values that each takes, and what they mean."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

from stretto._engine.core.errors import ConfigError
from stretto._engine.core.mesh import Mesh


class Setting(NamedTuple):
    """A setting: its default, the values it takes, whether programs depend on it, its meaning."""

    default: Any
    choices: tuple[Any, ...] | type  # none: any int from 0 on; a class: None or one of that
    shapes_programs: bool
    meaning: str


_BOOL = (False, True)
SETTINGS: dict[str, Setting] = {
    "enable_x64": Setting(False, _BOOL, True, "64-bit types may be asked for, and are the default"),
    "integer_overflow": Setting(
        "raise",
        ("raise", "wrap"),
        False,
        "raise: NumPy's integers and seeds that do not fit in the bits that arrays have are "
        "refused; wrap: they lose the high bits, as in JAX",
    ),
    "threefry_partitionable": Setting(
        False, _BOOL, True, "random bits use the counter layout that can be split over devices"
    ),
    "numpy_dtype_promotion": Setting(
        "standard", ("standard", "strict"), True, "strict: only weak types give way to others"
    ),
    "default_matmul_precision": Setting(
        None,
        (None, "default", "high", "highest", "bfloat16", "tensorfloat32", "float32"),
        True,
        "the precision of products and convolutions without one; None: the compiler's",
    ),
    "numpy_rank_promotion": Setting(
        "allow",
        ("allow", "warn", "raise"),
        True,
        "whether arrays of different ranks, none of them 0, broadcast with each other",
    ),
    "check_static_indices": Setting(
        False,
        _BOOL,
        True,
        "reading at a constant index that is out of bounds raises, and does not clamp",
    ),
    "default_prng_impl": Setting(
        "threefry2x32",
        ("threefry2x32", "rbg", "unsafe_rbg"),
        True,
        "the implementation of new keys, and the one assumed of raw keys",
    ),
    "plan": Setting(
        "auto",
        ("auto", "measure", "at once", "batched", "wide", "written out", "in turn"),
        True,
        "the formulation of what vmap maps inside jit: auto, the fastest by estimate for each "
        "operation; measure, the fastest of the others as measured when it is first needed",
    ),
    "memory_budget": Setting(
        0, (), True, "the bytes that chunk_size='auto' stays within; 0: half of what is free"
    ),
    "simplify": Setting(
        True,
        _BOOL,
        True,
        "equal work, and work on constants, is done once before compiling; what several kernels "
        "read is stored",
    ),
    "stable_forms": Setting(
        True,
        _BOOL,
        True,
        "formulas such as log(1 + x) are computed as forms that lose no digits, here log1p(x), "
        "where they are traced or differentiated",
    ),
    "roll_loops": Setting(
        True, _BOOL, True, "repeated operations of a compiled program are compiled as one loop"
    ),
    "interpret_small": Setting(
        True, _BOOL, True, "jitted programs of a few small operations run in NumPy, not compiled"
    ),
    "eager_compiled": Setting(
        True, _BOOL, False, "outside jit, large operations that XLA does faster are compiled"
    ),
    "tiers": Setting(
        False,
        _BOOL,
        False,
        "jitted functions first run as compiled quickly, until a thread has optimized the program",
    ),
    "compile_in_background": Setting(
        True,
        _BOOL,
        False,
        "a jitted function's first call returns before a program is compiled that takes long; who "
        "reads its results waits",
    ),
    "keep_memory": Setting(
        False,
        _BOOL,
        False,
        "the process keeps the memory that is freed, for the next call; set for good, and before "
        "anything is compiled",
    ),
    "num_cpu_devices": Setting(
        1,
        (),
        False,
        "how many devices the processors are taken for; set for good, and before anything is "
        "compiled",
    ),
    "default_device": Setting(
        None,
        str,
        False,
        "the device of arrays that were not put anywhere, by its name, such as 'gpu'; None: the "
        "first CPU device; of all threads that begin later",
    ),
    "disk_cache": Setting(
        True, _BOOL, False, "compiled programs are kept on disk, for other processes"
    ),
    "disk_cache_size": Setting(
        1 << 30, (), False, "the bytes that compiled programs may take on disk, all together"
    ),
    "mesh": Setting(
        None,
        Mesh,
        True,
        "the mesh that a PartitionSpec alone is over; stretto.sharding.set_mesh sets it",
    ),
    "debug_nans": Setting(
        False, _BOOL, True, "an operation that makes NaN raises, with its place and operands"
    ),
    "debug_infs": Setting(
        False, _BOOL, True, "an operation that makes infinity raises, with its place and operands"
    ),
    "disable_jit": Setting(
        False, _BOOL, True, "jitted functions, loops and branches run as Python"
    ),
    "log_compiles": Setting(
        False, _BOOL, False, "each compilation is logged, as a warning of the logger 'stretto'"
    ),
    "slow_compile_warning": Setting(
        10,
        (),
        False,
        "after how many seconds of compiling a program the logger 'stretto' warns of it, and says "
        "later how long it took; 0: never",
    ),
    "recompilation_warning": Setting(
        16,
        (),
        False,
        "how many signatures a function is compiled for without a warning; 0: any number",
    ),
    "traceback_filtering": Setting(
        "hide", ("hide", "off"), False, "hide: the frames inside stretto are left out of tracebacks"
    ),
}


def unknown(name: str) -> ConfigError:
    """Return the error for a name that no setting has."""
    return ConfigError(f"config has no setting {name!r}; there are: {', '.join(SETTINGS)}")


def checked(name: str, value: Any) -> Any:
    """Return the value, if the setting takes it; otherwise raise ``ConfigError``."""
    setting = SETTINGS.get(name)
    if setting is None:
        raise unknown(name)
    choices = setting.choices
    if isinstance(choices, type):
        if value is None or isinstance(value, choices):
            return value
        choices = ()
    elif not choices and type(value) is int and value >= 0:
        return value
    for choice in choices:
        if value is choice or (type(value) is type(choice) and value == choice):
            return choice
    raise ConfigError(f"config.{name} must be {_expected(setting, repr)}; got {value!r}")


def _expected(setting: Setting, show: Callable[[Any], str]) -> str:
    if isinstance(setting.choices, type):
        return f"None or a {setting.choices.__name__}"
    if not setting.choices:
        return "an int, 0 or more"
    return f"one of {', '.join(map(show, setting.choices))}"


def from_environment(name: str, setting: Setting) -> Any:
    """Return the value that ``STRETTO_NAME`` gives a setting, or else its default."""
    text = os.environ.get(f"STRETTO_{name.upper()}")
    if text is None:
        return setting.default
    choices = setting.choices
    if choices is str:
        return text or None
    if choices == _BOOL:
        words = {"1": True, "true": True, "0": False, "false": False, "": False}
        if text.lower() in words:
            return words[text.lower()]
    elif not isinstance(choices, type):
        if text in choices:
            return text
        if not choices and text.isdecimal():
            return int(text)
    raise ConfigError(f"STRETTO_{name.upper()} must be {_expected(setting, str)}; got {text!r}")
