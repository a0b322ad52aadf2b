"""The device of what was not put anywhere: ``default_device`` in a block, and the setting.

``eager/interpreter`` has the interpreter that is current meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from stretto._engine.core.config import watch
from stretto._engine.core.errors import ConfigError
from stretto._engine.core.interpreter import _State, state
from stretto._engine.core.shardings import SingleDeviceSharding
from stretto._engine.eager.interpreter import EAGER, OnDevice
from stretto._engine.xla.device import Device, as_device
from stretto._engine.xla.device import default_device as first_device


@contextmanager
def default_device(device: Device | str | None) -> Iterator[None]:
    """Make arrays and compute on a device, in a block of this thread or a decorated function.

    Arrays that are made in the block are put on the device, and so are those that operations and
    jitted functions take, if they were not put anywhere: as by ``device_put``, so that what is
    computed from them later stays there, too. Arrays that were put somewhere, and functions that
    say where they run, by shardings or a mesh, go by that. Inside a trace it has no effect: a
    program runs where its arguments are.

    Args:
        device: the device, or its name; None for that of ``config.default_device``.

    Returns:
        A context manager, which is a decorator as well.

    Raises:
        ValueError: the device is not there.

    As ``jax.default_device``, whose arrays do not stay, though.

    >>> import stretto as st, stretto.numpy as snp
    >>> with st.default_device(st.devices()[-1]):
    ...     x = snp.ones(2) + 1
    >>> x.device == st.devices()[-1]
    True
    """
    around, outermost = state.interpreter, state.interpreter is _State.interpreter
    inside = _State.interpreter
    if device is not None:
        inside = _interpreter(as_device(device, "default_device"))
    if not around.at_rest:
        yield
        return
    state.interpreter = inside
    watch.follow(False)
    try:
        yield
    finally:
        state.interpreter = _State.interpreter if outermost else around


def follow_setting(name: str | None) -> None:
    """Put ``config.default_device`` into force, in this thread and in those that begin later.

    Args:
        name: the device's name; None for the first.

    Raises:
        ConfigError: the device is not there, or something is being traced.
    """
    here = state.interpreter
    if not here.at_rest:
        raise ConfigError(
            f"config.default_device = {name!r} was set while a function was traced: set it outside"
        )
    before = _State.interpreter
    try:
        _State.interpreter = _interpreter(as_device(name, "config", "default_device"))
    except ValueError as error:
        raise ConfigError(str(error)) from None
    if here is before:  # not in a block of this thread
        state.interpreter = _State.interpreter
    watch.follow(True)


def _interpreter(device: Device) -> Any:
    """Return the one that computes on a device what was not put anywhere."""
    at_home = device == first_device()
    return EAGER if at_home else OnDevice(SingleDeviceSharding(device))
