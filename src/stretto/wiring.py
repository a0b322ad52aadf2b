"""Wiring: the eager interpreter, operators of values, the planner's clock, settings of processes.

The one place where layers meet; nothing else may import from a higher one.
"""

from __future__ import annotations

import sys

from stretto._engine import api, xla
from stretto._engine.core.config import of_process, settings, watch
from stretto._engine.core.guarded import guard
from stretto._engine.core.interpreter import Value, install_eager
from stretto._engine.core.lazy import LazyModule
from stretto._engine.eager.interpreter import EAGER
from stretto._engine.kernels import advise_huge_pages
from stretto._engine.passes.formulations import measured
from stretto._engine.xla.array import Array
from stretto._engine.xla.device import check_device_count
from stretto._engine.xla.memory import keep_memory
from stretto.numpy import methods, stable_forms

install_eager(EAGER)
methods.attach(Value)
stable_forms.attach()
guard(Value)
guard(Array)
measured.clock.seconds_of = lambda program: xla.kernels.seconds_of(program)  # noqa: PLW0108 (it would load)

_CHECKED = "stretto._engine.eager.checked"
_checked = LazyModule(_CHECKED)  # few programs ask for it


def _follow(everywhere: bool) -> None:
    """Look for NaN where settings ask for it, and no longer where they do not."""
    if settings.key.debugged or type(settings).key.debugged or _CHECKED in sys.modules:
        _checked.follow(everywhere)


watch.follow = _follow
_follow(True)

of_process("num_cpu_devices", check_device_count)
of_process("keep_memory", keep_memory)
of_process("huge_pages", advise_huge_pages)
of_process("default_device", lambda name: api.sharding.placement.follow_default_device(name))  # noqa: PLW0108 (as above)
