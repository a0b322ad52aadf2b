"""The device of what was not put anywhere: ``default_device``.

Layer 7 (api). ``runtime/on_device`` has the interpreter that is current meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from stretto._engine.core.config import watch
from stretto._engine.core.interpreter import state
from stretto._engine.core.shardings import SingleDeviceSharding
from stretto._engine.runtime.device import Device, as_device
from stretto._engine.runtime.eager import EAGER
from stretto._engine.runtime.on_device import OnDevice

__all__ = ["default_device"]


@contextmanager
def default_device(device: Device | str | None) -> Iterator[None]:
    """Make arrays and compute on a device, in a block of this thread or a decorated function.

    Arrays that are made in the block are put on the device, and so are those that operations and
    jitted functions take, if they were not put anywhere: as by ``device_put``, so that what is
    computed from them later stays there, too. Arrays that were put somewhere, and functions that
    say where they run, by shardings or a mesh, go by that. Inside a trace it has no effect: a
    program runs where its arguments are.

    Args:
        device: the device, or its name; None for the first one, where arrays are by default.

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
    wanted, first = as_device(device, "default_device"), as_device(None, "default_device")
    around = state.interpreter
    if not around.at_rest:
        yield
        return
    state.interpreter = EAGER if wanted == first else OnDevice(SingleDeviceSharding(wanted))
    watch.follow(False)
    try:
        yield
    finally:
        state.interpreter = around
