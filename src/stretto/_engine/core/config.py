"""Settings: global by attribute, per thread by ``with config(name=value)``, from ``STRETTO_NAME``.

Every setting is declared once, in ``SETTINGS``: its default, the values that it takes, and what it
means. A block, ``config(name=value)``, is also a decorator: the function then runs inside it.
"""

from __future__ import annotations

import functools
import inspect
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, ParamSpec, TypeAlias, TypeVar

from stretto._engine.core.errors import ConfigError
from stretto._engine.core.mesh import Mesh
from stretto._engine.core.threads import RLock, restoring


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
    "tuned": Setting(
        False,
        _BOOL,
        True,
        "estimates go by what the command stretto tune measured on this machine, if it did, and "
        "not by the table for its kind of processor; the last bits may depend on that",
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
    "kernels": Setting(
        True,
        _BOOL,
        True,
        "products and convolutions of floats, softmax, norms and what is like them run in kernels "
        "of our own, where they were built",
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
    "huge_pages": Setting(
        True,
        _BOOL,
        False,
        "on Linux, kernels advise huge pages for the large temporaries of programs; of the whole "
        "process",
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


def unknown_setting(name: str) -> ConfigError:
    """Return the error for a name that no setting has."""
    return ConfigError(f"config has no setting {name!r}; there are: {', '.join(SETTINGS)}")


def check_value(name: str, value: Any) -> Any:
    """Return the value, if the setting takes it; otherwise raise ``ConfigError``."""
    setting = SETTINGS.get(name)
    if setting is None:
        raise unknown_setting(name)
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
    raise ConfigError(f"config.{name} must be {_choices_in_words(setting, repr)}; got {value!r}")


def _choices_in_words(setting: Setting, show: Callable[[Any], str]) -> str:
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
    raise ConfigError(
        f"STRETTO_{name.upper()} must be {_choices_in_words(setting, str)}; got {text!r}"
    )


P = ParamSpec("P")
R = TypeVar("R")

_RANKS = "numpy_rank_promotion"
_SHAPING = tuple(name for name, setting in SETTINGS.items() if setting.shapes_programs)
_PRECISION = _SHAPING.index("default_matmul_precision")
_STABLE = _SHAPING.index("stable_forms")
_DEBUGGED = _SHAPING.index("debug_nans"), _SHAPING.index("debug_infs")


class _Key:
    """Stands for one combination of the settings that shape programs; compared as an object."""

    __slots__ = ("debugged", "precision", "settings", "stable")

    def __init__(self, settings: tuple[Any, ...]) -> None:
        self.settings = settings
        self.precision: str | None = settings[_PRECISION]
        self.stable: bool = settings[_STABLE]
        self.debugged = any([settings[i] for i in _DEBUGGED])

    def __repr__(self) -> str:
        return f"<settings {self.settings}>"


_KEYS: dict[tuple[Any, ...], _Key] = {}


def _key_of(values: Mapping[str, Any], axes: Mapping[Any, int] | None = None) -> _Key:
    settings = (*(values[name] for name in _SHAPING), *(axes or {}).items())
    return _KEYS.setdefault(settings, _Key(settings))


class _Thread(threading.local):
    """Hold what ``with config(...)`` has set in this thread.

    ``axes`` are the sizes of the named axes that are being mapped over. ``key`` stands for these
    and all settings that change what a trace yields: part of every cache key. ``ranks`` is
    ``numpy_rank_promotion``, which operations ask for one by one. Where the thread has none of its
    own, the class attribute holds the global one. ``outer`` is what was set around each block that
    this thread is in.
    """

    values: Mapping[str, Any] = {}
    axes: Mapping[Any, int] = {}
    ranks: str = "allow"
    key: _Key

    def __init__(self) -> None:
        self.outer: list[tuple[_Block, _Here]] = []


settings = _Thread()


class _Watch:
    """Counts the places, everywhere or in blocks of any thread, where ranks are checked.

    While there are none, operations keep short ways for arrays of different ranks. The functions
    in ``forget`` drop those, and are called whenever a place is added; while there is a place,
    nothing is kept. An error that ends a block may leave it counted, which only makes later calls
    slower.
    """

    def __init__(self) -> None:
        self.places = 0
        self.forget: list[Callable[[], None]] = []
        self.follow: Callable[[bool], None] = lambda everywhere: None
        """Called where settings have changed, of all threads or of this one: ``wiring`` sets it."""
        self._lock = RLock()

    def change(self, before: str, after: str) -> None:
        """Note that the setting changes in one place."""
        if before == after == "allow":
            return
        with self._lock:
            self.places += (after != "allow") - (before != "allow")
        if after != "allow":
            for forget in self.forget:
                forget()


watch = _Watch()


_of_process: dict[str, Callable[[Any], None]] = {}
"""The functions that put settings of the whole process into force, by name."""


class Config:
    """The settings; read and set as attributes, or call for a ``with`` block in this thread.

    Such a block is also a decorator, of a function that runs inside it whenever it is called.
    ``update(name, value)`` sets an attribute by its name.

    Raises:
        ConfigError: there is no such setting, it does not take the value, or it is of the whole
            process and is set in a block.
        TypeError: what is decorated is a class, or a generator or coroutine function, whose body
            runs after its call, and with it the block, has ended.

    >>> with config(enable_x64=True):
    ...     config.enable_x64
    True
    >>> config.enable_x64
    False
    >>> @config(enable_x64=True)
    ... def wide():
    ...     return config.enable_x64
    >>> wide(), config.enable_x64
    (True, False)
    """

    def __init__(self) -> None:
        values = {name: from_environment(name, setting) for name, setting in SETTINGS.items()}
        object.__setattr__(self, "_values", values)
        _Thread.key, _Thread.ranks = _key_of(values), values[_RANKS]
        watch.change("allow", values[_RANKS])

    def __getattr__(self, name: str) -> Any:
        if name not in SETTINGS:
            raise unknown_setting(name)
        overrides = settings.values
        return overrides[name] if name in overrides else self._values[name]

    def __setattr__(self, name: str, value: Any) -> None:
        value = check_value(name, value)
        if name in _of_process and value != self._values[name]:
            _of_process[name](value)
        values = {**self._values, name: value}
        key = _key_of(values)
        own = _own_key(settings.values, settings.axes, values)
        before, after = _Thread.ranks, values[_RANKS]
        if after != "allow":
            watch.change(before, after)
        # No interrupt comes between these assignments, which call nothing.
        self._values[name], _Thread.key, _Thread.ranks = value, key, after
        if own is not None:
            settings.key = own
        watch.follow(True)
        if after == "allow":
            watch.change(before, after)

    def __call__(self, **values: Any) -> _Block:
        for name, value in values.items():
            if name in _of_process:
                raise ConfigError(
                    f"config.{name} is of the whole process, not of a block or a function: set "
                    f"config.{name} = {value!r} at the start, or STRETTO_{name.upper()}"
                )
        return _Block({name: check_value(name, value) for name, value in values.items()})

    def update(self, name: str, value: Any) -> None:
        """Set one everywhere, as its attribute does: for names that a program computes.

        Args:
            name: the name of the setting.
            value: its new value.

        Raises:
            ConfigError: there is no such setting, or it does not take the value.
        """
        setattr(self, name, value)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *SETTINGS]

    def __repr__(self) -> str:
        body = ", ".join(f"{name}={getattr(self, name)!r}" for name in SETTINGS)
        return f"config({body})"


class _Block:
    """Settings in force for a ``with`` block of one thread, or for each call of a function.

    Re-enterable and nestable, in several threads at once.
    """

    __slots__ = ("_values",)

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def __enter__(self) -> None:
        values = {**settings.values, **self._values}
        key = _own_key(values, settings.axes, config._values)
        here = _here()
        settings.outer.append((self, here))
        try:
            watch.change("allow", self._values.get(_RANKS, "allow"))
            _set_thread(values, settings.axes, key)
        except BaseException:  # an interrupt: there will be no __exit__
            _go_back(*here)
            settings.outer.pop()
            raise

    def __exit__(self, *error: object) -> None:
        outer = settings.outer
        while outer[-1][0] is not self:  # blocks inside, which an interrupt ended
            outer.pop()
        try:
            _go_back(*outer[-1][1])
        finally:  # once more: an interrupt may have come as the first began
            _go_back(*outer.pop()[1])
        watch.change(self._values.get(_RANKS, "allow"), "allow")

    def __call__(self, fun: Callable[P, R]) -> Callable[P, R]:
        """Decorate a function, so that it runs inside the block."""
        if isinstance(fun, type) or not callable(fun):
            got = f"the class {fun.__name__}" if isinstance(fun, type) else repr(fun)
            raise TypeError(f"{self!r} decorates functions; got {got}")
        body = inspect.unwrap(fun)
        if any(
            [
                suspends(body)
                for suspends in (
                    inspect.isgeneratorfunction,
                    inspect.iscoroutinefunction,
                    inspect.isasyncgenfunction,
                )
            ]
        ):
            raise TypeError(
                f"{self!r} cannot decorate {getattr(body, '__qualname__', body)}, a generator or "
                f"coroutine function: its body runs after its call has returned, with the settings "
                f"of whoever resumes it; put `with {self!r}:` around what needs them, without a "
                f"yield or an await inside"
            )

        @functools.wraps(fun, updated=())
        def inside(*args: P.args, **kwargs: P.kwargs) -> R:
            return under(self._values, lambda: fun(*args, **kwargs))

        return inside

    def __repr__(self) -> str:
        return f"config({', '.join(f'{k}={v!r}' for k, v in self._values.items())})"


def _own_key(
    values: Mapping[str, Any], axes: Mapping[Any, int], all_values: Mapping[str, Any]
) -> _Key | None:
    """Return the key of a thread with values and axes of its own; ``None`` where it has neither."""
    if not values and not axes:
        return None
    return _key_of({name: values.get(name, all_values[name]) for name in _SHAPING}, axes)


_Here: TypeAlias = tuple[Mapping[str, Any], Mapping[Any, int], "_Key | None", _Key]


def _here() -> _Here:
    """Return what this thread has set: its own values, axes and key; and the key of all threads."""
    return settings.values, settings.axes, settings.__dict__.get("key"), _Thread.key


def _go_back(values: Mapping[str, Any], axes: Mapping[Any, int], key: Any, then: _Key) -> None:
    """Set the thread back to this."""
    if key is not None and _Thread.key is not then:  # a setting of all threads was changed
        key = _own_key(values, axes, config._values)
    _set_thread(values, axes, key)


def _set_thread(values: Mapping[str, Any], axes: Mapping[Any, int], key: _Key | None) -> None:
    """Set these in the thread, all or none of them, whatever interrupts it."""
    settings.values, settings.axes = values, axes
    if _RANKS in values:
        settings.ranks = values[_RANKS]
    else:
        settings.__dict__.pop("ranks", None)
    if key is None:
        settings.__dict__.pop("key", None)
    else:
        settings.key = key
    watch.follow(False)


def under(values: Mapping[str, Any], fun: Callable[..., Any], *args: Any) -> Any:
    """Return ``fun(*args)``, run with these settings of the thread."""
    here = _here()

    def run() -> Any:
        inside = {**here[0], **{name: check_value(name, value) for name, value in values.items()}}
        watch.change("allow", values.get(_RANKS, "allow"))
        _set_thread(inside, here[1], _own_key(inside, here[1], config._values))
        return fun(*args)

    result = restoring(lambda: _go_back(*here), run)
    watch.change(values.get(_RANKS, "allow"), "allow")
    return result


def over_axis(name: Any, size: int, fun: Callable[..., Any], *args: Any) -> Any:
    """Return ``fun(*args)``, run while a named axis of this size is mapped over."""
    here = _here()
    axes = {**settings.axes, name: size}
    key = _own_key(settings.values, axes, config._values)

    def run() -> Any:
        _set_thread(here[0], axes, key)
        return fun(*args)

    return restoring(lambda: _go_back(*here), run)


config = Config()


def of_process(name: str, apply: Callable[[Any], None]) -> None:
    """Have ``apply(value)`` put a setting into force, whose value is one for all threads.

    It is called with each new value, before that is stored; at once with that of the environment.
    """
    value = config._values[name]
    if value != SETTINGS[name].default:
        apply(value)
    _of_process[name] = apply


def shaping() -> dict[str, Any]:
    """Return the settings that shape programs, with their values here and now."""
    return {name: getattr(config, name) for name in _SHAPING}


def changed_settings() -> dict[str, Any]:
    """Return the settings that differ from their defaults, with their values here and now."""
    values = {name: getattr(config, name) for name in SETTINGS}
    return {name: value for name, value in values.items() if value != SETTINGS[name].default}


def enable_x64(value: bool = True) -> _Block:
    """Allow 64-bit types, and make them the default, inside a ``with`` block or a function.

    Args:
        value: whether they are allowed.

    Returns:
        A context manager, which is a decorator of functions as well.

    Raises:
        ConfigError: the setting does not take the value.

    >>> with enable_x64():
    ...     config.enable_x64
    True
    """
    return config(enable_x64=value)


def disable_jit(disable: bool = True) -> _Block:
    """Let jitted functions run as they stand, operation by operation, inside a ``with`` block.

    Loops and branches of ``lax`` run in Python, too, where what they depend on is known: functions
    are called for each step, and only the branch that is taken. So Python's ``print``, ``if`` and
    debuggers see values.

    Args:
        disable: whether to let them run so.

    Returns:
        A context manager, which is a decorator of functions as well.

    Raises:
        ConfigError: the setting does not take the value.

    >>> with disable_jit():
    ...     config.disable_jit
    True
    """
    return config(disable_jit=disable)
