"""Settings: global by attribute, per thread by ``with config(name=value)``, from ``STRETTO_NAME``.

Layer 1 (core). Every setting is declared once, in ``_SETTINGS``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from stretto.core.errors import ConfigError

__all__ = ["config", "disable_jit", "enable_x64", "mapped_axis", "settings", "shaping", "watch"]


class _Setting(NamedTuple):
    default: Any
    choices: tuple[Any, ...]  # none: any int from 0 on
    shapes_programs: bool
    meaning: str


_BOOL = (False, True)
_SETTINGS: dict[str, _Setting] = {
    "enable_x64": _Setting(
        False, _BOOL, True, "64-bit types may be asked for, and are the default"
    ),
    "threefry_partitionable": _Setting(
        False, _BOOL, True, "random bits use the counter layout that can be split over devices"
    ),
    "numpy_dtype_promotion": _Setting(
        "standard", ("standard", "strict"), True, "strict: operands of different types are refused"
    ),
    "numpy_rank_promotion": _Setting(
        "allow",
        ("allow", "warn", "raise"),
        True,
        "whether arrays of different ranks, none of them 0, broadcast with each other",
    ),
    "check_static_indices": _Setting(
        False,
        _BOOL,
        True,
        "reading at an index that is a number raises where it is out of bounds, and does not clamp",
    ),
    "default_prng_impl": _Setting(
        "threefry2x32",
        ("threefry2x32", "rbg", "unsafe_rbg"),
        True,
        "the implementation of new keys, and that raw keys are taken to be of",
    ),
    "plan": _Setting(
        "auto",
        ("auto", "measure", "at once", "batched", "wide", "written out", "in turn"),
        True,
        "the formulation of what vmap maps inside jit: auto, the fastest by estimate for each "
        "operation; measure, the fastest of the others as measured when it is first needed",
    ),
    "memory_budget": _Setting(
        0, (), True, "the bytes that chunk_size='auto' keeps to; 0: half of what is free"
    ),
    "simplify": _Setting(
        True, _BOOL, True, "equal work, and work on constants, is done once before compiling"
    ),
    "roll_loops": _Setting(
        True, _BOOL, True, "repeated operations of a compiled program are handed over as one loop"
    ),
    "interpret_small": _Setting(
        True, _BOOL, True, "jitted programs of a few small operations run in NumPy, not compiled"
    ),
    "eager_compiled": _Setting(
        True, _BOOL, False, "outside jit, large operations that XLA does faster are compiled"
    ),
    "disk_cache": _Setting(
        True, _BOOL, False, "compiled programs are kept on disk, for other processes"
    ),
    "disk_cache_size": _Setting(
        1 << 30, (), False, "the bytes that the compiled programs on disk may take together"
    ),
    "disable_jit": _Setting(False, _BOOL, True, "jit runs its function as it stands"),
    "log_compiles": _Setting(
        False, _BOOL, False, "each compilation is logged, as a warning of the logger 'stretto'"
    ),
    "recompilation_warning": _Setting(
        16, (), False, "how many signatures a function is compiled for without a remark; 0: any"
    ),
    "traceback_filtering": _Setting(
        "hide", ("hide", "off"), False, "hide: the frames inside stretto are left out of tracebacks"
    ),
}
_RANKS = "numpy_rank_promotion"
_SHAPING = tuple(name for name, setting in _SETTINGS.items() if setting.shapes_programs)


def _unknown(name: str) -> ConfigError:
    return ConfigError(f"config has no setting {name!r}; there are: {', '.join(_SETTINGS)}")


def _check(name: str, value: Any) -> Any:
    setting = _SETTINGS.get(name)
    if setting is None:
        raise _unknown(name)
    if not setting.choices and type(value) is int and value >= 0:
        return value
    for choice in setting.choices:
        if value is choice or (type(value) is type(choice) and value == choice):
            return choice
    raise ConfigError(f"config.{name} must be {_expected(setting, repr)}; got {value!r}")


def _expected(setting: _Setting, show: Callable[[Any], str]) -> str:
    if not setting.choices:
        return "an int, 0 or more"
    return f"one of {', '.join(map(show, setting.choices))}"


def _from_environment(name: str, setting: _Setting) -> Any:
    text = os.environ.get(f"STRETTO_{name.upper()}")
    if text is None:
        return setting.default
    if setting.choices == _BOOL:
        words = {"1": True, "true": True, "0": False, "false": False, "": False}
        if text.lower() in words:
            return words[text.lower()]
    elif text in setting.choices:
        return text
    elif not setting.choices and text.isdecimal():
        return int(text)
    raise ConfigError(f"STRETTO_{name.upper()} must be {_expected(setting, str)}; got {text!r}")


class _Key:
    """Stands for one combination of the settings that shape programs; compared as an object."""

    __slots__ = ("settings",)

    def __init__(self, settings: tuple[Any, ...]) -> None:
        self.settings = settings

    def __repr__(self) -> str:
        return f"<settings {self.settings}>"


_KEYS: dict[tuple[Any, ...], _Key] = {}


def _key_of(values: Mapping[str, Any], axes: Mapping[Any, int] | None = None) -> _Key:
    settings = (*(values[name] for name in _SHAPING), *(axes or {}).items())
    return _KEYS.setdefault(settings, _Key(settings))


class _Thread(threading.local):
    """What ``with config(...)`` has set in this thread.

    ``axes`` are the sizes of the named axes that are being mapped over. ``key`` stands for these
    and all settings that change what a trace yields: part of every cache key. ``ranks`` is
    ``numpy_rank_promotion``, which operations ask for one by one. Where the thread has none of its
    own, the class attribute is the global one.
    """

    values: Mapping[str, Any] = {}
    axes: Mapping[Any, int] = {}
    ranks: str = "allow"
    key: _Key


settings = _Thread()


class _Watch:
    """In how many places, everywhere or in blocks of any thread, ranks are checked.

    Until then operations keep short ways for arrays of different ranks. ``forget`` has functions
    that drop those, which are called where a place is added; nothing is kept while there are any.
    """

    def __init__(self) -> None:
        self.places = 0
        self.forget: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    def change(self, before: str, after: str) -> None:
        """Note that in one place the setting changes."""
        with self._lock:
            self.places += (after != "allow") - (before != "allow")
        if after != "allow":
            for forget in self.forget:
                forget()


watch = _Watch()


class Config:
    """The settings; read and set as attributes, or call for a ``with`` block in this thread.

    Raises ``ConfigError`` for an unknown name or a value that the setting does not take.

    >>> with config(enable_x64=True):
    ...     config.enable_x64
    True
    >>> config.enable_x64
    False
    """

    def __init__(self) -> None:
        values = {name: _from_environment(name, setting) for name, setting in _SETTINGS.items()}
        object.__setattr__(self, "_values", values)
        _Thread.key = _key_of(values)
        self._ranks_were("allow")

    def _ranks_were(self, before: str) -> None:
        _Thread.ranks = self._values["numpy_rank_promotion"]
        watch.change(before, _Thread.ranks)

    def __getattr__(self, name: str) -> Any:
        if name not in _SETTINGS:
            raise _unknown(name)
        overrides = settings.values
        return overrides[name] if name in overrides else self._values[name]

    def __setattr__(self, name: str, value: Any) -> None:
        before = _Thread.ranks
        self._values[name] = _check(name, value)
        _Thread.key = _key_of(self._values)
        self._ranks_were(before)
        _set_thread(settings.values)

    def __call__(self, **values: Any) -> _Block:
        return _Block({name: _check(name, value) for name, value in values.items()})

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *_SETTINGS]

    def __repr__(self) -> str:
        body = ", ".join(f"{name}={getattr(self, name)!r}" for name in _SETTINGS)
        return f"config({body})"


class _Block:
    """Settings in force for one ``with`` block of one thread; re-enterable, nestable."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values
        self._outer: list[Mapping[str, Any]] = []

    def __enter__(self) -> None:
        self._outer.append(settings.values)
        if _RANKS in self._values:
            watch.change("allow", self._values[_RANKS])
        _set_thread({**settings.values, **self._values})

    def __exit__(self, *error: object) -> None:
        _set_thread(self._outer.pop())
        if _RANKS in self._values:
            watch.change(self._values[_RANKS], "allow")


def _set_thread(values: Mapping[str, Any]) -> None:
    """Make these the values, and with the global ones the key, of this thread."""
    settings.values = values
    if _RANKS in values:
        settings.ranks = values[_RANKS]
    else:
        settings.__dict__.pop("ranks", None)
    if values or settings.axes:
        settings.key = _key_of({name: getattr(config, name) for name in _SHAPING}, settings.axes)
    else:
        settings.__dict__.pop("key", None)


class mapped_axis:  # reads as a statement: `with mapped_axis(name, size):`
    """A named axis in force for one ``with`` block of one thread."""

    def __init__(self, name: Any, size: int) -> None:
        self._axes = {**settings.axes, name: size}

    def __enter__(self) -> None:
        self._outer = settings.axes
        settings.axes = self._axes
        _set_thread(settings.values)

    def __exit__(self, *error: object) -> None:
        settings.axes = self._outer
        _set_thread(settings.values)


config = Config()


def shaping() -> dict[str, Any]:
    """The settings that shape programs, as they are here and now."""
    return {name: getattr(config, name) for name in _SHAPING}


def enable_x64(value: bool = True) -> _Block:
    """Allow 64-bit types, and make them the default, inside a ``with`` block.

    >>> with enable_x64():
    ...     config.enable_x64
    True
    """
    return config(enable_x64=value)


def disable_jit(disable: bool = True) -> _Block:
    """Let jitted functions run as they stand, operation by operation, inside a ``with`` block.

    Python's ``print``, ``if`` and debuggers then see values.

    >>> with disable_jit():
    ...     config.disable_jit
    True
    """
    return config(disable_jit=disable)
